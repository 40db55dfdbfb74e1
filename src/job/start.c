/* SPDX-License-Identifier: Apache-2.0 */
/* Starts and resumes sessions: finds out which session is meant and whether it may start, prepares its record, starts
 * cordon-job, and waits until its program runs, it reports why not, it dies, or the time is over. */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/child.h"
#include "base/json.h"
#include "base/program.h"
#include "base/setting.h"
#include "base/text.h"
#include "job/control.h"
#include "job/internal.h"

#define ANSWER_MAX 65536
#define LOCK_TRIES 20
#define RETRY_MS 10
#define PROGRAM "cordon-job"

struct cordon_session_start {
	struct cordon_session_answer answer;
	int fd;			/* our end of the start's socket; -1 when there is nothing to wait for */
	int64_t due;		/* monotonic milliseconds */
	struct cordon_buf text; /* what the process has sent so far */
	bool cancelled;
};

/* What the steps of a start share; it owns none of these. */
struct starting {
	const struct cordon_store *store;
	const struct cordon_session_request *request;
	const struct cordon_project *project; /* with its lock held */
	const char *workspace;		      /* its id */
	int lock_fd;			      /* of the workspace */
	const char *message;		      /* for the program's standard input, or NULL */
	struct cordon_session_start *start;
};

/* This runs between fork and exec, so it makes async-signal-safe calls only. */
_Noreturn static void exec_session(const char *program, char **argv, const int fds[static CORDON_SESSION_FD__MAX])
{
	int high[CORDON_SESSION_FD__MAX];

	/* Copy the descriptors to high numbers first, so that dup2() below does not overwrite one that is still
	 * needed. */
	for (int fd = CORDON_SESSION_FD_ALIVE; fd < CORDON_SESSION_FD__MAX; fd++)
		high[fd] = fcntl(fds[fd], F_DUPFD, 16);
	for (int fd = CORDON_SESSION_FD_ALIVE; fd < CORDON_SESSION_FD__MAX; fd++)
		dup2(high[fd], fd);
	close_range(CORDON_SESSION_FD__MAX, ~0U, 0);
	execve(program, argv, environ);
	_exit(127);
}

/* Starts the process of a session, which gets the locks; *ret_fd is our end of the socket (job/internal.h). */
static int spawn_process(const char *id, int alive_fd, int lock_fd, int *ret_fd, struct cordon_error *err)
{
	char program[CORDON_PATH_MAX], name[] = PROGRAM, session[CORDON_ID_SIZE];
	char *argv[] = { name, session, NULL };
	autofd int ours = -1;
	autofd int theirs = -1;
	int pair[2] = { -1, -1 }, fds[CORDON_SESSION_FD__MAX] = { -1, -1, -1 };
	pid_t pid;
	int r = cordon_program_find(PROGRAM, program, err);

	if (r < 0) {
		cordon_error_hint(err, "install it; sessions can't run without it");
		return r;
	}
	r = cordon_copy(session, sizeof(session), id, strlen(id));
	if (r == 0 && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		r = -errno;
	if (r < 0)
		return cordon_fail_errno(err, r, "cannot start " PROGRAM);
	ours = pair[0];
	theirs = pair[1];
	fds[CORDON_SESSION_FD_ALIVE] = alive_fd;
	fds[CORDON_SESSION_FD_START] = theirs;
	fds[CORDON_SESSION_FD_LOCK] = lock_fd;
	pid = cordon_child_detach(&(struct cordon_detach){ .kept = fds, .n_kept = CORDON_ARRAY_SIZE(fds) });
	if (pid == 0)
		exec_session(program, argv, fds);
	if (pid < 0)
		return cordon_fail_errno(err, (int)pid, "cannot start " PROGRAM);
	*ret_fd = cordon_steal_fd(&ours);
	return 0;
}

/* Records which session it is. If it was spawned, sets the time at which its start has taken too long. */
static void set_session(struct cordon_session_start *start, const struct cordon_session_record *record, bool spawned)
{
	struct cordon_session_answer *answer = &start->answer;

	cordon_copy(answer->session_id, sizeof(answer->session_id), record->id, strlen(record->id));
	cordon_copy(answer->workspace_id, sizeof(answer->workspace_id), record->workspace_id,
		    strlen(record->workspace_id));
	answer->spawned = spawned;
	if (spawned)
		start->due = cordon_time_monotonic() + CORDON_START_TIMEOUT_MS;
}

/* Records that the program could not be started, and why; the session is then over. The caller holds the lock
 * `alive`. */
static void record_refusal(const struct cordon_store *store, struct cordon_session_record *record,
			   const struct cordon_error *err)
{
	record->status = CORDON_SESSION_FAILED;
	record->state = CORDON_SESSION_REFUSED;
	json_decref(record->error);
	record->error = json_pack("{s:s, s:s, s:s}", "kind", cordon_kind_name(err->kind), "message", err->message,
				  "hint", err->hint);
	cordon_session_write(store, record, NULL);
}

/* ---- which session, and its record ---- */

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
	r = spawn_process(record->id, alive, starting->lock_fd, &starting->start->fd, err);
	if (r < 0) {
		record_refusal(store, record, err);
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
		set_session(starting->start, &record, true);
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
			set_session(starting->start, latest, false);
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

int cordon_session_start_begin(const struct cordon_store *store, const struct cordon_session_request *request,
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

/* ---- waiting for it ---- */

struct cordon_session_start *cordon_session_start_new(void)
{
	struct cordon_session_start *start = calloc(1, sizeof(*start));

	if (start)
		*start = (struct cordon_session_start){ .fd = -1,
							.answer.last_event_index = -1,
							.text = CORDON_BUF(ANSWER_MAX) };
	return start;
}

struct cordon_session_start *cordon_session_start_free(struct cordon_session_start *start)
{
	if (!start)
		return NULL;
	cordon_closep(&start->fd);
	cordon_buf_done(&start->text);
	free(start);
	return NULL;
}

int cordon_session_start_busy(struct cordon_error *err)
{
	cordon_fail(err, -ETIMEDOUT, CORDON_KIND_LIMIT, "another session is being started in the workspace");
	cordon_error_hint(err, "if that start hangs, end its cordon-job process; or use another workspace");
	return -ETIMEDOUT;
}

json_t *cordon_session_start_json(const struct cordon_session_start *start)
{
	const struct cordon_session_answer *answer = &start->answer;

	return json_pack("{s:s, s:s, s:b, s:b, s:I, s:I}", "session_id", answer->session_id, "workspace_id",
			 answer->workspace_id, "spawned", (int)answer->spawned, "workspace_created",
			 (int)answer->workspace_created, "last_event_index", (json_int_t)answer->last_event_index,
			 "due", (json_int_t)start->due);
}

void cordon_session_start_take(struct cordon_session_start *start, const json_t *value, int fd)
{
	struct cordon_session_answer *answer = &start->answer;
	const char *session = cordon_json_text(value, "session_id"),
		   *workspace = cordon_json_text(value, "workspace_id");

	cordon_copy(answer->session_id, sizeof(answer->session_id), session, strlen(session));
	cordon_copy(answer->workspace_id, sizeof(answer->workspace_id), workspace, strlen(workspace));
	answer->spawned = cordon_json_true(value, "spawned");
	answer->workspace_created = cordon_json_true(value, "workspace_created");
	answer->last_event_index = cordon_json_integer(value, "last_event_index");
	start->due = cordon_json_integer(value, "due");
	cordon_closep(&start->fd);
	start->fd = fd;
}

int cordon_session_start_fd(const struct cordon_session_start *start)
{
	return start->fd;
}

int64_t cordon_session_start_due(const struct cordon_session_start *start)
{
	return start->due;
}

void cordon_session_start_cancel(struct cordon_session_start *start)
{
	/* Any byte cancels the start. If the process has ended, there is nothing to cancel, so errors do not matter. */
	if (start->fd >= 0 && !start->cancelled)
		send(start->fd, "c", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
	start->cancelled = true;
}

/* Writes the reason into the record of a session whose process has ended, unless the process itself has written how it
 * ended. */
static void record_end(const struct cordon_store *store, const char *id, const struct cordon_error *err)
{
	autosessionrecord struct cordon_session_record record = { 0 };
	autofd int dir = -1;
	autofd int alive = -1;
	int r = cordon_session_open(store, id, &dir, NULL);

	/* When a process ends, the kernel may close its socket before it releases its lock. So we try for a moment. */
	for (int i = 0; r == 0 && i < LOCK_TRIES; i++) {
		r = cordon_lock_take(dir, "alive", LOCK_EX | LOCK_NB, &alive, NULL);
		if (r != -EWOULDBLOCK)
			break;
		r = 0;
		poll(NULL, 0, 1);
	}
	if (alive < 0 || cordon_session_read(store, id, &record, NULL) < 0 || record.status != CORDON_SESSION_ACTIVE)
		return;
	record_refusal(store, &record, err);
}

/* Reads what the process has sent. Returns 1 when a line is complete, 0 at the end without one, -EAGAIN when more may
 * come. */
static int read_more(struct cordon_session_start *start)
{
	for (;;) {
		char chunk[4096];
		ssize_t n = recv(start->fd, chunk, sizeof(chunk), MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return -EAGAIN;
		if (n <= 0 || cordon_buf_add(&start->text, chunk, (size_t)n) < 0)
			return 0;
		if (chunk[n - 1] == '\n')
			return 1;
	}
}

/* Reads the line that the process sent. Returns 0 when the program runs, else the error. */
static int read_answer(struct cordon_session_start *start, struct cordon_error *err)
{
	json_auto_t *answer = json_loadb(start->text.data ? start->text.data : "", start->text.len, 0, NULL);

	if (!answer)
		return cordon_fail(err, -EIO, CORDON_KIND_INTERNAL,
				   "the session's process ended before the session began");
	if (!json_object_get(answer, "kind")) {
		start->answer.last_event_index = cordon_json_integer(answer, "last_event_index");
		return 0;
	}
	/* -ENOEXEC means that the program does not exist or cannot be executed (base/exit.h). */
	cordon_fail(err, cordon_json_true(answer, "no_exec") ? -ENOEXEC : -ECANCELED,
		    cordon_kind_parse(cordon_json_text(answer, "kind")), "%s", cordon_json_text(answer, "message"));
	if (*cordon_json_text(answer, "hint"))
		cordon_error_hint(err, "%s", cordon_json_text(answer, "hint"));
	return err->code;
}

/* Returns -EAGAIN while the start is under way. A start that succeeds is over at once. A start that fails is over only
 * when its process has ended, so that nobody finds a session that has half ended. */
static int check_start(const struct cordon_store *store, struct cordon_session_start *start, struct cordon_error *err)
{
	struct cordon_error why = { 0 };
	int r = read_more(start);

	if (r == 1 && read_answer(start, &why) == 0)
		return 0;
	if (r != 0 && cordon_time_monotonic() < start->due)
		return -EAGAIN;
	if (r != 0 && !start->text.len)
		cordon_fail(&why, -ETIMEDOUT, CORDON_KIND_LIMIT, "the session did not start in time");
	else if (read_answer(start, &why) == 0)
		return 0;
	cordon_session_start_cancel(start);
	record_end(store, start->answer.session_id, &why);
	if (err)
		*err = why;
	return why.code;
}

int cordon_session_start_finish(const struct cordon_store *store, struct cordon_session_start *start,
				struct cordon_session_answer *ret_answer, struct cordon_error *err)
{
	autosessionrecord struct cordon_session_record now = { 0 };
	int r = start->fd >= 0 ? check_start(store, start, err) : 0;

	if (r == -EAGAIN)
		return r;
	/* The session may have ended by now, so its status comes from the record. */
	if (r == 0)
		r = cordon_session_read(store, start->answer.session_id, &now, err);
	if (r < 0)
		return r;
	start->answer.status = now.status;
	*ret_answer = start->answer;
	return 0;
}

json_t *cordon_session_answer_json(const struct cordon_session_answer *answer)
{
	return json_pack("{s:s, s:s, s:b, s:b, s:I, s:s}", "session_id", answer->session_id, "workspace_id",
			 answer->workspace_id, "spawned", (int)answer->spawned, "workspace_created",
			 (int)answer->workspace_created, "last_event_index", (json_int_t)answer->last_event_index,
			 "status", cordon_session_status_name(answer->status));
}

/* Begins the start as soon as no other one is under way in the workspace. A process that hangs while it starts a
 * session keeps the lock, so this gives up after some time. */
static int begin_in_turn(const struct cordon_store *store, const struct cordon_session_request *request,
			 struct cordon_session_start *start, struct cordon_error *err)
{
	int64_t until = cordon_time_monotonic() + CORDON_START_TIMEOUT_MS;
	int r;

	while ((r = cordon_session_start_begin(store, request, start, err)) == -EAGAIN) {
		if (cordon_time_monotonic() >= until)
			return cordon_session_start_busy(err);
		poll(NULL, 0, RETRY_MS);
	}
	return r;
}

int cordon_session_start(const struct cordon_store *store, const struct cordon_session_request *request,
			 struct cordon_session_answer *ret_answer, struct cordon_error *err)
{
	struct cordon_session_start *start = cordon_session_start_new();
	int r = start ? begin_in_turn(store, request, start, err) : cordon_no_memory(err);

	while (r == 0 && (r = cordon_session_start_finish(store, start, ret_answer, err)) == -EAGAIN) {
		struct pollfd fd = { .fd = start->fd, .events = POLLIN };
		int64_t left = start->due - cordon_time_monotonic();

		poll(&fd, 1, left > 0 ? (int)left : 0);
		r = 0;
	}
	cordon_session_start_free(start);
	return r;
}
