/* SPDX-License-Identifier: Apache-2.0 */
/* Starting and resuming sessions: which one is meant, whether it may be, and its record. */
#include <sodium.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/io.h"
#include "store/session_control.h"
#include "store/session_internal.h"

/* What a session of the project is held to from its start to its end, whatever becomes of the settings. */
static const char *const snapshot[] = {
	"workspace_isolation", "protected_paths", "network", "env", "env_pass", "best_effort", "agent"
};

static json_int_t limit_of(const struct cordon_project *project, const char *name)
{
	return json_integer_value(json_object_get(json_object_get(project->record, "limits"), name));
}

static int put_snapshot(const struct cordon_project *project, json_t *record)
{
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(snapshot); i++)
		if (json_object_set(record, snapshot[i], json_object_get(project->record, snapshot[i])) < 0)
			return -ENOMEM;
	return json_object_set(record, "limits", json_object_get(project->record, "limits")) < 0 ? -ENOMEM : 0;
}

/* The command that is asked for, else the one of the session that is resumed, else the project's. */
static json_t *choose_command(const struct cordon_session_request *request, const struct cordon_project *project,
			      const json_t *earlier)
{
	json_t *command = request->command;

	if (!command && earlier)
		command = json_object_get(earlier, "command");
	return command ? command : json_object_get(project->record, "agent_command");
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

/*
 * INVARIANT: a session that another session starts is never freer than that one: it sees no more, may change no
 * more, reaches no other network and gets no variables of ours that the first did not get.
 */
static int not_freer(const json_t *parent, const json_t *child, struct cordon_error *err)
{
	bool isolated = json_is_true(json_object_get(parent, "workspace_isolation"));
	const char *what = NULL;

	if (!cordon_streq(cordon_record_text(parent, "project_id"), cordon_record_text(child, "project_id")))
		what = "it would run in another project";
	else if (isolated && !json_is_true(json_object_get(child, "workspace_isolation")))
		what = "it would not be isolated";
	else if (isolated &&
		 !cordon_streq(cordon_record_text(parent, "workspace_id"), cordon_record_text(child, "workspace_id")))
		what = "it would run in another workspace";
	else if (isolated &&
		 !all_in(json_object_get(parent, "protected_paths"), json_object_get(child, "protected_paths")))
		what = "it would protect less";
	else if (cordon_streq(cordon_record_text(parent, "network"), "none") &&
		 !cordon_streq(cordon_record_text(child, "network"), "none"))
		what = "it would have the host's network";
	else if (!json_is_true(json_object_get(parent, "best_effort")) &&
		 json_is_true(json_object_get(child, "best_effort")))
		what = "it could run with fewer layers";
	else if (!all_in(json_object_get(child, "env_pass"), json_object_get(parent, "env_pass")))
		what = "it would get more variables";
	if (!what)
		return 0;
	return cordon_fail(err, -EPERM, CORDON_KIND_POLICY_DENIED,
			   "a session can start only sessions that are as strict as itself; %s", what);
}

/* Tells the parent about its child, which it may refuse, and puts the child's place into its record. */
static int join_parent(const struct cordon_store *store, const struct cordon_project *project, const char *parent_id,
		       json_t *record, struct cordon_error *err)
{
	json_auto_t *parent = NULL;
	autofd int dir = -1;
	autofd int fd = -1;
	json_int_t depth;
	int r = cordon_session_read(store, parent_id, &parent, err);

	if (r == 0)
		r = not_freer(parent, record, err);
	if (r < 0)
		return r;
	depth = json_integer_value(json_object_get(parent, "depth")) + 1;
	if (depth > limit_of(project, "max_recursion_depth"))
		return cordon_fail(err, -ELOOP, CORDON_KIND_LIMIT,
				   "sessions may start sessions %lld deep (max_recursion_depth)",
				   (long long)limit_of(project, "max_recursion_depth"));
	if (json_object_set_new(record, "depth", json_integer(depth)) < 0 ||
	    json_object_set(record, "parent_session_id", json_object_get(parent, "session_id")) < 0)
		return cordon_no_memory(err);
	r = cordon_session_open(store, parent_id, &dir, err);
	if (r == 0)
		r = cordon_control_connect(dir, &fd, err);
	if (r < 0)
		return cordon_error_prefix(err, r, "parent session");
	return cordon_control_ask(fd,
				  json_pack("{s:s, s:O, s:I}", "op", "child", "session_id",
					    json_object_get(record, "session_id"), "max",
					    limit_of(project, "max_agents_per_session")),
				  NULL, err);
}

static int new_record(const struct cordon_project *project, const char *workspace, json_t **ret_record,
		      struct cordon_error *err)
{
	char id[CORDON_UUID_SIZE];
	json_t *record;

	if (cordon_uuid_new(id) < 0)
		return cordon_fail_errno(err, -errno, "cannot make an id");
	record = json_pack("{s:i, s:s, s:s, s:s, s:s, s:s, s:[], s:i, s:[]}", "schema", CORDON_SCHEMA, "session_id", id,
			   "project_id", project->id, "workspace_id", workspace, "status", "active", "state",
			   "starting", "turns", "depth", 0, "child_sessions");
	if (!record || cordon_record_stamp(record, "created_at") < 0) {
		json_decref(record);
		return cordon_no_memory(err);
	}
	*ret_record = record;
	return 0;
}

/* Fills in what holds for this run of the session, the first or a resumed one. */
static int prepare_record(const struct cordon_project *project, const struct cordon_session_request *request,
			  json_t *command, json_t *record, struct cordon_error *err)
{
	static const char *const of_a_run[] = { "exit_code",  "signal",	     "ended_at", "duration_ms", "error",
						"violations", "enforcement", "context",	 "timeout_ms" };

	for (size_t i = 0; i < CORDON_ARRAY_SIZE(of_a_run); i++)
		json_object_del(record, of_a_run[i]);
	if (put_snapshot(project, record) < 0 || json_object_set(record, "command", command) < 0 ||
	    json_object_set_new(record, "status", json_string("active")) < 0 ||
	    json_object_set_new(record, "state", json_string("starting")) < 0 ||
	    json_object_set_new(record, "terminal", json_boolean(request->terminal)) < 0)
		return cordon_no_memory(err);
	if (request->context && json_object_set(record, "context", request->context) < 0)
		return cordon_no_memory(err);
	if (request->timeout_ms &&
	    json_object_set_new(record, "timeout_ms", json_integer((json_int_t)request->timeout_ms)) < 0)
		return cordon_no_memory(err);
	return 0;
}

/* Makes the directory of a new session, its lock held by us from its first moment. */
static int make_dir(const struct cordon_store *store, json_t *record, int *ret_alive, struct cordon_error *err)
{
	autostage struct cordon_stage stage = CORDON_STAGE_NONE;
	autofd int dir = -1;
	autofd int alive = -1;
	int r = cordon_stage_temp(store, &stage, err);

	if (r == 0)
		r = cordon_store_dir(stage.fd, "session", &dir, err);
	if (r == 0)
		r = cordon_lock_take(dir, "alive", LOCK_EX, &alive, err);
	if (r == 0 && cordon_record_stamp(record, "updated_at") < 0)
		r = cordon_no_memory(err);
	if (r == 0)
		r = cordon_record_write(dir, "record.json", record, err);
	if (r < 0)
		return r;
	if (renameat2(stage.fd, "session", store->sessions_fd, cordon_record_text(record, "session_id"),
		      RENAME_NOREPLACE) < 0 ||
	    fsync(store->sessions_fd) < 0)
		return cordon_fail_errno(err, -errno, "cannot make the session's directory");
	*ret_alive = cordon_steal_fd(&alive);
	return 0;
}

static int take_dir(const struct cordon_store *store, json_t *record, int *ret_alive, struct cordon_error *err)
{
	const char *id = cordon_record_text(record, "session_id");
	autofd int dir = -1;
	int r = cordon_session_open(store, id, &dir, err);

	if (r == 0)
		r = cordon_lock_take(dir, "alive", LOCK_EX, ret_alive, err); /* its last supervisor may just be leaving */
	return r < 0 ? r : cordon_session_write(store, id, record, err);
}

static int within_limits(const struct cordon_store *store, const struct cordon_project *project,
			 struct cordon_error *err)
{
	json_auto_t *running = NULL;
	json_int_t most = limit_of(project, "max_sessions");
	int r = cordon_active_list(store, project, NULL, &running, err);

	if (r == 0 && (json_int_t)json_array_size(running) >= most) {
		r = cordon_fail(err, -EUSERS, CORDON_KIND_LIMIT,
				"the project has %zu running sessions already (max_sessions %lld)",
				json_array_size(running), (long long)most);
		cordon_error_hint(err, "stop one, or raise the limit: cordon project update --max-sessions");
	}
	return r;
}

/* The program could not be started: the session says why, and is over. */
static void record_refusal(const struct cordon_store *store, json_t *record, const struct cordon_error *err)
{
	const char *id = cordon_record_text(record, "session_id");
	json_auto_t *now = NULL;

	/* The supervisor has said more, if it came so far. */
	if (cordon_session_read(store, id, &now, NULL) == 0 && !cordon_streq(cordon_record_text(now, "status"), "active"))
		return;
	json_object_set_new(record, "status", json_string("failed"));
	json_object_set_new(record, "state", json_string("refused"));
	json_object_set_new(record, "error",
			    json_pack("{s:s, s:s, s:s}", "kind", cordon_kind_name(err->kind), "message", err->message,
				      "hint", err->hint));
	cordon_session_write(store, id, record, NULL);
}

/* The first message waits in a file: a program that ends at once has still been given it. */
static int leave_input(const struct cordon_store *store, const char *id, const char *message, bool end_input,
		       struct cordon_error *err)
{
	autostage struct cordon_stage stage = CORDON_STAGE_NONE;
	json_auto_t *input = json_pack("{s:i, s:s?, s:b}", "schema", CORDON_SCHEMA, "message", message, "end_input",
				       (int)end_input);
	autofd int dir = -1;
	int r = 0;

	if (!input)
		return cordon_fail(err, -EILSEQ, CORDON_KIND_USAGE, "the message is not valid UTF-8");
	r = cordon_session_open(store, id, &dir, err);
	if (r == 0)
		r = cordon_stage_temp(store, &stage, err);
	return r < 0 ? r : cordon_stage_record(&stage, dir, CORDON_SESSION_INPUT, input, err);
}

static int launch(const struct cordon_store *store, const struct cordon_project *project, json_t *record, bool resumed,
		  const char *message, bool end_input, int64_t *ret_index, struct cordon_error *err)
{
	const char *id = cordon_record_text(record, "session_id");
	const char *workspace = cordon_record_text(record, "workspace_id");
	autofd int alive = -1;
	int r = resumed ? take_dir(store, record, &alive, err) : make_dir(store, record, &alive, err);

	if (r == 0)
		r = leave_input(store, id, message, end_input, err);
	if (r == 0)
		r = cordon_active_add(project, workspace, id, err);
	if (r == 0)
		r = cordon_session_stamp_workspace(store, project, workspace, id, err);
	if (r < 0)
		return r;
	r = cordon_session_spawn(id, alive, ret_index, err);
	if (r < 0) {
		record_refusal(store, record, err);
		cordon_active_remove(project, workspace, id);
	}
	return r;
}

/* What goes to the agent's standard input: the message, and where its attachments lie. */
static int compose(const struct cordon_session_request *request, const json_t *files, struct cordon_buf *ret_text,
		   struct cordon_error *err)
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

static int begin(const struct cordon_store *store, const struct cordon_project *project, const char *workspace,
		 const struct cordon_session_request *request, const char *message, json_t *earlier,
		 json_t **ret_record, int64_t *ret_index, struct cordon_error *err)
{
	json_auto_t *record = earlier ? json_deep_copy(earlier) : NULL;
	json_t *command = choose_command(request, project, earlier);
	int r = 0;

	if (json_array_size(command) == 0) {
		r = cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "there is no command to run");
		cordon_error_hint(err, "give one, or set the project's agent_command");
		return r;
	}
	if (!record)
		r = new_record(project, workspace, &record, err);
	if (r == 0)
		r = prepare_record(project, request, command, record, err);
	if (r == 0 && request->parent)
		r = join_parent(store, project, request->parent, record, err);
	if (r == 0)
		r = within_limits(store, project, err);
	if (r == 0)
		r = cordon_workspace_prepare(store, project, workspace, err);
	if (r == 0)
		r = launch(store, project, record, earlier != NULL, message, request->end_input, ret_index, err);
	if (r < 0)
		return r;
	*ret_record = cordon_steal_ptr(&record);
	return 0;
}

/* The latest session of the workspace when it is the one that is meant, else NULL. */
static json_t *find_latest(const struct cordon_store *store, const struct cordon_project *project,
			   const char *workspace, const struct cordon_session_request *request)
{
	json_auto_t *where = NULL;
	json_t *latest = NULL;
	const char *id;

	if (request->new_session || request->parent || cordon_workspace_read(project, workspace, &where, NULL) < 0)
		return NULL;
	id = cordon_record_text(where, "last_session_id");
	/* INVARIANT: a session is resumed in its own workspace only, whatever a record of that workspace says. */
	if (!*id || cordon_session_read(store, id, &latest, NULL) < 0 ||
	    !cordon_streq(cordon_record_text(latest, "workspace_id"), workspace) ||
	    !cordon_streq(cordon_record_text(latest, "project_id"), project->id) ||
	    (request->command && !json_equal(request->command, json_object_get(latest, "command")))) {
		json_decref(latest);
		return NULL;
	}
	return latest;
}

/* It ended while we spoke to it, so nobody took the message. A supervisor that answers late has not gone. */
static bool went_away(const struct cordon_store *store, const char *id, int r)
{
	return (r == -EPIPE || r == -ECONNRESET || r == -ECONNREFUSED || r == -ENOENT) &&
	       cordon_session_wait(store, id, CORDON_START_TIMEOUT_MS, NULL) == 0;
}

/* As its last supervisor left it; NULL when it was cleaned up meanwhile. */
static json_t *reread(const struct cordon_store *store, const char *id)
{
	json_t *record = NULL;

	return cordon_session_read(store, id, &record, NULL) == 0 ? record : NULL;
}

/* The session gets the message: the one that runs, or one that is started with it. */
static int reach(const struct cordon_store *store, const struct cordon_project *project, const char *workspace,
		 const struct cordon_session_request *request, const char *message, json_t **ret_record,
		 bool *ret_spawned, int64_t *ret_index, struct cordon_error *err)
{
	json_auto_t *latest = find_latest(store, project, workspace, request);
	const char *id = cordon_record_text(latest, "session_id");
	int r;

	*ret_spawned = !latest || !cordon_session_runs(store, id);
	if (!*ret_spawned) {
		/* Also without a message: that tells where its output stands. */
		r = cordon_session_send(store, id, message, request->end_input, ret_index, err);
		if (r < 0 && !went_away(store, id, r))
			return r;
		*ret_spawned = r < 0;
	}
	if (*ret_spawned) {
		json_auto_t *earlier = latest ? reread(store, id) : NULL;

		return begin(store, project, workspace, request, message, earlier, ret_record, ret_index, err);
	}
	*ret_record = cordon_steal_ptr(&latest);
	return 0;
}

int cordon_session_start(const struct cordon_store *store, const struct cordon_session_request *request,
			 json_t **ret_answer, struct cordon_error *err)
{
	autoproject struct cordon_project project = CORDON_PROJECT_NONE;
	autobuf struct cordon_buf text = CORDON_BUF(CORDON_MESSAGE_MAX);
	json_auto_t *workspace = NULL;
	json_auto_t *record = NULL;
	json_auto_t *files = NULL;
	json_auto_t *now = NULL;
	int64_t last = -1;
	bool created = false, spawned = false;
	autofd int locks = -1;
	autofd int lock = -1;
	const char *id;
	int r = judge(request, err);

	if (r == 0)
		r = cordon_workspace_resolve(store, request->project, &request->workspace, request->create_workspace,
					     &workspace, &created, err);
	if (r == 0)
		r = cordon_project_hold(store, request->project, LOCK_SH, &project, err);
	if (r == 0)
		r = cordon_store_dir(project.state_fd, "locks", &locks, err);
	if (r < 0)
		return r;
	id = cordon_record_text(workspace, "id");
	r = cordon_lock_take(locks, id, LOCK_EX, &lock, err);
	if (r == 0)
		r = cordon_session_attach_files(store, &project, id, request->attachments, &files, err);
	if (r == 0)
		r = compose(request, files, &text, err);
	if (r == 0)
		r = reach(store, &project, id, request, text.len ? text.data : NULL, &record, &spawned, &last, err);
	/* It may have ended by now. */
	if (r == 0)
		r = cordon_session_read(store, cordon_record_text(record, "session_id"), &now, err);
	if (r < 0)
		return r;
	*ret_answer = json_pack("{s:O, s:s, s:b, s:b, s:I, s:O}", "session_id", json_object_get(now, "session_id"),
				"workspace_id", id, "spawned", (int)spawned, "workspace_created", (int)created,
				"last_event_index", (json_int_t)last, "status", json_object_get(now, "status"));
	return *ret_answer ? 0 : cordon_no_memory(err);
}
