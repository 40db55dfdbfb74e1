/* SPDX-License-Identifier: Apache-2.0 */
/* Starts and resumes sessions: finds out which session is meant and whether it may start, and prepares its record. */
#include <stdio.h>

#include "base/buf.h"
#include "base/setting.h"
#include "base/text.h"
#include "job/control.h"
#include "job/internal.h"
#include "job/start.h"

static const struct cordon_field input_fields[] = {
	{ .key = "message", .type = CORDON_FIELD_STRING, .offset = offsetof(struct cordon_session_input, message) },
	{ .key = "end_input", .type = CORDON_FIELD_BOOL, .offset = offsetof(struct cordon_session_input, end_input) },
	{ 0 },
};

const struct cordon_record_kind cordon_session_input_kind = {
	.what = "session",
	.size = sizeof(struct cordon_session_input),
	.other = offsetof(struct cordon_session_input, other),
	.fields = input_fields,
};

/*
 * Returns the requested command, else the one with which the resumed session was started, else the one that the project
 * has now. A project without one leaves a resumed session what it had.
 */
static json_t *choose_command(const struct cordon_session_request *request, const struct cordon_project *project,
			      const struct cordon_session_record *earlier)
{
	json_t *command = request->command;

	if (!command && earlier && (earlier->own_command || !json_array_size(project->record.agent_command)))
		command = earlier->command;
	return command ? command : project->record.agent_command;
}

static int judge(const struct cordon_session_request *request, struct cordon_error *err)
{
	if (request->message && strlen(request->message) > CORDON_MESSAGE_MAX)
		return cordon_fail(err, -E2BIG, CORDON_KIND_LIMIT, "a message has at most %zu bytes",
				   CORDON_MESSAGE_MAX);
	return request->command ? cordon_command_judge("command", request->command, err) : 0;
}

static bool in_array(const json_t *array, const json_t *wanted)
{
	size_t i;
	json_t *item;

	json_array_foreach(array, i, item) {
		if (json_equal(item, wanted))
			return true;
	}
	return false;
}

static bool all_in(const json_t *items, const json_t *array)
{
	size_t i;
	json_t *item;

	json_array_foreach(items, i, item) {
		if (!in_array(array, item))
			return false;
	}
	return true;
}

/* Compares what both sessions may do with files. check_rights() compares isolation and workspace before, for better
 * messages. */
static int compare_policies(const struct cordon_project *project, const struct cordon_session_record *parent,
			    const struct cordon_session_record *child, struct cordon_error *err)
{
	struct cordon_policy *outer = NULL, *inner = NULL;
	int r = cordon_policy_of(project, parent->workspace_id, &parent->settings, parent->ancestor_workspaces, &outer,
				 err);

	if (r == 0)
		r = cordon_policy_of(project, child->workspace_id, &child->settings, child->ancestor_workspaces, &inner,
				     err);
	if (r == 0)
		r = cordon_policy_within(inner, outer, err);
	cordon_policy_free(outer);
	cordon_policy_free(inner);
	return r;
}

/* Records the workspaces of the session's ancestors: its parent's first, then that of the parent's parent, and so
 * on. */
static int put_ancestors(const struct cordon_session_record *parent, struct cordon_session_record *record)
{
	json_auto_t *list = json_pack("[s]", parent->workspace_id);

	if (!list || (parent->ancestor_workspaces && json_array_extend(list, parent->ancestor_workspaces) < 0))
		return -ENOMEM;
	json_decref(record->ancestor_workspaces);
	record->ancestor_workspaces = cordon_steal_ptr(&list);
	return 0;
}

/*
 * INVARIANT: a session that another session starts never has more rights than that one: it sees no more, may change no
 * more, reaches no other network and gets none of our variables that the first did not get.
 */
static int check_rights(const struct cordon_project *project, const struct cordon_session_record *parent,
			const struct cordon_session_record *child, struct cordon_error *err)
{
	const struct cordon_settings *outer = &parent->settings, *inner = &child->settings;
	struct cordon_error policy_err = { 0 };
	const char *what = NULL;

	if (!cordon_streq(parent->project_id, child->project_id))
		what = "it would run in another project";
	else if (outer->workspace_isolation && !inner->workspace_isolation)
		what = "it would not be isolated";
	else if (outer->workspace_isolation && !cordon_streq(parent->workspace_id, child->workspace_id))
		what = "it would run in another workspace";
	else if (cordon_settings_value(outer, CORDON_RECIPE_COW) && !cordon_settings_value(inner, CORDON_RECIPE_COW))
		what = "it would change the workspace itself";
	else if (!cordon_git_within((cordon_git_mode)cordon_settings_value(inner, CORDON_RECIPE_GIT),
				    (cordon_git_mode)cordon_settings_value(outer, CORDON_RECIPE_GIT)))
		what = "it could do more with the repository";
	else if (!cordon_settings_value(outer, CORDON_RECIPE_BEST_EFFORT) &&
		 cordon_settings_value(inner, CORDON_RECIPE_BEST_EFFORT))
		what = "it could run with fewer layers";
	else if (!all_in(inner->env_pass, outer->env_pass))
		what = "it would get more variables";
	else if (!all_in(inner->profile, outer->profile))
		what = "it would have another profile";
	else if (compare_policies(project, parent, child, &policy_err) < 0)
		what = policy_err.message;
	if (!what)
		return 0;
	return cordon_fail(err, -EPERM, CORDON_KIND_POLICY_DENIED,
			   "a session can start only sessions that are as strict as itself; %s", what);
}

/* Reports the child to its parent, which may refuse it, and puts depth, parent and ancestors into the child's
 * record. */
static int register_with_parent(const struct cordon_store *store, const struct cordon_project *project,
				const char *parent_id, struct cordon_session_record *record, struct cordon_error *err)
{
	const struct cordon_settings_limits *limits = &project->record.settings.limits;
	autosessionrecord struct cordon_session_record parent = { 0 };
	autofd int dir = -1;
	autofd int fd = -1;
	int r = cordon_session_read(store, parent_id, &parent, err);

	if (r == 0 && put_ancestors(&parent, record) < 0)
		r = cordon_no_memory(err);
	if (r == 0)
		r = check_rights(project, &parent, record, err);
	if (r < 0)
		return r;
	record->depth = parent.depth + 1;
	if (record->depth > limits->max_recursion_depth)
		return cordon_fail(err, -ELOOP, CORDON_KIND_LIMIT,
				   "sessions may start sessions %lld deep (max_recursion_depth)",
				   (long long)limits->max_recursion_depth);
	cordon_copy(record->parent_session_id, sizeof(record->parent_session_id), parent.id, strlen(parent.id));
	r = cordon_session_open(store, parent_id, &dir, err);
	if (r == 0)
		r = cordon_control_connect(dir, &fd, err);
	if (r < 0)
		return cordon_error_prefix(err, r, "parent session");
	return cordon_control_ask(fd,
				  json_pack("{s:s, s:s, s:I}", "op", "child", "session_id", record->id, "max",
					    (json_int_t)limits->max_agents_per_session),
				  NULL, err);
}

static int new_record(const struct cordon_project *project, const char *workspace, struct cordon_session_record *record,
		      struct cordon_error *err)
{
	if (cordon_uuid_new(record->id) < 0)
		return cordon_fail_errno(err, -errno, "cannot make an id");
	cordon_copy(record->project_id, sizeof(record->project_id), project->id, strlen(project->id));
	cordon_copy(record->workspace_id, sizeof(record->workspace_id), workspace, strlen(workspace));
	cordon_record_stamp(record->created_at);
	record->turns = json_array();
	record->child_sessions = json_array();
	return record->turns && record->child_sessions ? 0 : cordon_no_memory(err);
}

/* Fills in everything that is new with each run of the session, the first or a resumed one. */
static int prepare_record(const struct cordon_project *project, const struct cordon_session_request *request,
			  json_t *command, struct cordon_session_record *record, struct cordon_error *err)
{
	json_t *kept = json_deep_copy(command);
	json_t *context = request->context ? json_deep_copy(request->context) : NULL;
	int r;

	/* Free what belongs to the earlier run. */
	json_decref(record->command);
	json_decref(record->context);
	json_decref(record->enforcement);
	json_decref(record->error);
	record->command = kept;
	record->own_command |= request->command != NULL;
	record->context = context;
	record->enforcement = record->error = NULL;
	record->ended = record->failed_on_violation = false;
	record->status = CORDON_SESSION_ACTIVE;
	record->state = CORDON_SESSION_STARTING;
	record->terminal = request->terminal;
	record->timeout_ms = (int64_t)request->timeout_ms;
	record->fail_on_violation = request->fail_on_violation;
	if (!kept || (request->context && !context) ||
	    cordon_settings_copy(&record->settings, &project->record.settings) < 0)
		return cordon_no_memory(err);
	if (cordon_settings_value(&record->settings, CORDON_RECIPE_GIT) && !record->settings.workspace_isolation) {
		cordon_fail(err, -EINVAL, CORDON_KIND_CONFIG,
			    "the setting git is for isolated projects: the others have no repository at their top");
		cordon_error_hint(err, "set workspace_isolation, or set git to default");
		return -EINVAL;
	}
	if (request->net)
		return cordon_settings_narrow_net(&record->settings, request->net, err);
	/* A resumed session may have been granted more than its project gives. */
	r = cordon_allowances_apply(record->allowances, false, &record->settings, err);
	cordon_allowances_used(record->allowances);
	return r;
}

static int lock_ended(const struct cordon_store *store, struct cordon_session_record *record, int *ret_alive,
		      struct cordon_error *err)
{
	autofd int dir = -1;
	int r = cordon_session_open(store, record->id, &dir, err);

	if (r == 0)
		r = cordon_lock_take(dir, "alive", LOCK_EX, ret_alive, err); /* waits for its last process to end */
	return r < 0 ? r : cordon_session_write(store, record, err);
}

static int check_limits(const struct cordon_store *store, const struct cordon_project *project, struct cordon_error *err)
{
	int64_t most = project->record.settings.limits.max_sessions;
	json_auto_t *running = NULL;
	int r = cordon_active_list(store, project, NULL, &running, err);

	if (r == 0 && (int64_t)json_array_size(running) >= most) {
		r = cordon_fail(err, -EUSERS, CORDON_KIND_LIMIT,
				"the project has %zu running sessions already (max_sessions %lld)",
				json_array_size(running), (long long)most);
		cordon_error_hint(err, "stop one, or raise the limit: %s",
				  cordon_setting_name(CORDON_SETTING_MAX_SESSIONS));
	}
	return r;
}

/* Writes the first message into a file, from which the session's process reads it before it starts the program. So the
 * message reaches even a program that ends at once. */
static int save_input(const struct cordon_store *store, const char *id, const char *message, bool end_input,
		      struct cordon_error *err)
{
	/* The cast is safe: the writer does not change the message. */
	struct cordon_session_input input = { .message = (char *)(uintptr_t)message, .end_input = end_input };
	autostage struct cordon_stage stage = CORDON_STAGE_NONE;
	autofd int dir = -1;
	int r = cordon_session_open(store, id, &dir, err);

	if (message && !cordon_utf8_valid(message, strlen(message)))
		return cordon_fail(err, -EILSEQ, CORDON_KIND_USAGE, "the message is not valid UTF-8");
	if (r == 0)
		r = cordon_stage_temp(store, &stage, err);
	return r < 0 ? r : cordon_stage_save(&stage, &cordon_session_input_kind, dir, CORDON_SESSION_INPUT, &input, err);
}

/* Starts the session's process. We close our copy of the `alive` lock here, so that only that process holds it. */
static int start_process(struct starting *starting, struct cordon_session_record *record, bool resumed,
			 struct cordon_error *err)
{
	const struct cordon_store *store = starting->store;
	const struct cordon_project *project = starting->project;
	autofd int alive = -1;
	int r = resumed ? lock_ended(store, record, &alive, err) : cordon_session_make(store, record, &alive, err);

	if (r == 0)
		r = save_input(store, record->id, starting->message, starting->request->end_input, err);
	if (r == 0)
		r = cordon_active_add(project, record->workspace_id, record->id, err);
	if (r == 0)
		r = cordon_workspace_stamp(store, project, record->workspace_id, record->id, err);
	if (r < 0)
		return r;
	r = cordon_session_spawn(record->id, alive, starting->lock_fd, &starting->start->fd, err);
	if (r < 0) {
		cordon_session_refuse(store, record, err);
		cordon_active_remove(project, record->workspace_id, record->id);
	}
	return r;
}

/* Makes the text for the agent's standard input: the message, and the paths of its attachments. */
static int compose_message(const struct cordon_session_request *request, const json_t *files,
			   struct cordon_buf *ret_text, struct cordon_error *err)
{
	size_t i;
	json_t *file;
	int r = request->message ? cordon_buf_adds(ret_text, request->message) : 0;

	json_array_foreach(files, i, file) {
		if (r == 0)
			r = cordon_buf_addf(ret_text, "%s[attachment: %s]", ret_text->len ? "\n" : "",
					    json_string_value(file));
	}
	return r < 0 ? cordon_fail(err, r, CORDON_KIND_LIMIT, "a message has at most %zu bytes", CORDON_MESSAGE_MAX) : 0;
}

/* Starts a session: a new one, or one that has ended, whose record is `earlier`. Takes what `earlier` owns. */
static int spawn(struct starting *starting, struct cordon_session_record *earlier, struct cordon_error *err)
{
	const struct cordon_session_request *request = starting->request;
	const struct cordon_project *project = starting->project;
	autosessionrecord struct cordon_session_record record = { 0 };
	json_t *command = choose_command(request, project, earlier);
	int r = 0;

	if (json_array_size(command) == 0) {
		r = cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "there is no command to run");
		cordon_error_hint(err, "give one, or set the project's agent_command");
		return r;
	}
	if (earlier) {
		record = *earlier;
		*earlier = (struct cordon_session_record){ 0 };
	} else {
		r = new_record(project, starting->workspace, &record, err);
	}
	if (r == 0)
		r = prepare_record(project, request, command, &record, err);
	if (r == 0 && request->parent)
		r = register_with_parent(starting->store, project, request->parent, &record, err);
	if (r == 0)
		r = check_limits(starting->store, project, err);
	if (r == 0)
		r = cordon_workspace_prepare(starting->store, project, starting->workspace, err);
	if (r == 0)
		r = start_process(starting, &record, earlier != NULL, err);
	if (r == 0)
		cordon_session_start_of(starting->start, &record, true);
	return r;
}

/* Finds the latest session of the workspace, if the request means that one. Returns false when it means a new
 * session. */
static bool find_latest(const struct starting *starting, struct cordon_session_record *ret_latest)
{
	const struct cordon_session_request *request = starting->request;
	autoworkspacerecord struct cordon_workspace_record where = { 0 };

	if (request->new_session || request->parent || request->net ||
	    cordon_workspace_read(starting->project, starting->workspace, &where, NULL) < 0)
		return false;
	/* INVARIANT: a session is resumed in its own workspace only, whatever a record of that workspace says. */
	if (!*where.last_session_id || cordon_session_read(starting->store, where.last_session_id, ret_latest, NULL) < 0)
		return false;
	if (cordon_streq(ret_latest->workspace_id, starting->workspace) &&
	    cordon_streq(ret_latest->project_id, starting->project->id) &&
	    (!request->command || json_equal(request->command, ret_latest->command)))
		return true;
	cordon_session_record_done(ret_latest);
	return false;
}

/* Whether the session ended while we sent the message, so that nobody accepted it. A process that answers late has not
 * ended. */
static bool ended_meanwhile(const struct cordon_store *store, const char *id, int r)
{
	return (r == -EPIPE || r == -ECONNRESET || r == -ECONNREFUSED || r == -ENOENT) &&
	       cordon_session_wait(store, id, CORDON_START_TIMEOUT_MS, NULL) == 0;
}

/* Sends the message to the latest session if it runs, else starts a session with the message. */
static int send_or_start(struct starting *starting, struct cordon_session_record *latest, struct cordon_error *err)
{
	autosessionrecord struct cordon_session_record earlier = { 0 };
	const struct cordon_store *store = starting->store;

	if (latest && cordon_session_runs(store, latest->id)) {
		/* We ask even when there is no message, because the answer has the index of the last event. */
		int r = cordon_session_send(store, latest->id, starting->message, starting->request->end_input,
					    &starting->start->answer.last_event_index, err);

		if (r == 0)
			cordon_session_start_of(starting->start, latest, false);
		if (r == 0 || !ended_meanwhile(store, latest->id, r))
			return r;
	}
	/* Read the record again, as its last process left it. There is none if the session was cleaned up meanwhile. */
	if (latest && cordon_session_read(store, latest->id, &earlier, NULL) == 0)
		return spawn(starting, &earlier, err);
	return spawn(starting, NULL, err);
}

/* The caller holds the lock of the workspace. */
static int start_locked(struct starting *starting, struct cordon_error *err)
{
	const struct cordon_session_request *request = starting->request;
	autobuf struct cordon_buf text = CORDON_BUF(CORDON_MESSAGE_MAX);
	autosessionrecord struct cordon_session_record latest = { 0 };
	bool found = find_latest(starting, &latest);
	json_auto_t *files = NULL;
	int r;

	/* The last process of the session is about to end and still holds its lock. */
	if (found && latest.status != CORDON_SESSION_ACTIVE && cordon_session_lives(starting->store, latest.id))
		return -EAGAIN;
	r = cordon_session_attach_files(starting->store, starting->project, starting->workspace, request->attachments,
					&files, err);
	if (r == 0)
		r = compose_message(request, files, &text, err);
	if (r < 0)
		return r;
	starting->message = text.len ? text.data : NULL;
	return send_or_start(starting, found ? &latest : NULL, err);
}

int cordon_session_begin(const struct cordon_store *store, const struct cordon_session_request *request,
			 struct cordon_session_start *start, struct cordon_error *err)
{
	autoproject struct cordon_project project = CORDON_PROJECT_NONE;
	autoworkspacerecord struct cordon_workspace_record workspace = { 0 };
	struct starting starting = {
		.store = store, .request = request, .project = &project, .start = start, .lock_fd = -1
	};
	autofd int locks = -1;
	autofd int lock = -1;
	bool created = false;
	int r = judge(request, err);

	if (r == 0)
		r = cordon_workspace_resolve(store, request->project, &request->workspace, request->create_workspace,
					     &workspace, &created, err);
	if (r == 0)
		r = cordon_project_hold(store, request->project, LOCK_SH, &project, err);
	/* After -EAGAIN the caller begins again, and then the workspace exists already. So we keep what the first try
	 * reported. */
	start->answer.workspace_created |= created;
	if (r == 0)
		r = cordon_state_dir(project.state_fd, "locks", &locks, err);
	if (r < 0)
		return r;
	r = cordon_lock_take(locks, workspace.id, LOCK_EX | LOCK_NB, &lock, err);
	if (r == -EWOULDBLOCK)
		return -EAGAIN;
	if (r < 0)
		return r;
	starting.workspace = workspace.id;
	starting.lock_fd = lock;
	return start_locked(&starting, err);
}
