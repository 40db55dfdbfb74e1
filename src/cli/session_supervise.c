/* SPDX-License-Identifier: Apache-2.0 */
/* The supervisor of a session: a process of its own, started by `session start`, that no one calls by hand. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/timerfd.h>
#include <sys/wait.h>

#include "base/io.h"
#include "base/time.h"
#include "cli/commands.h"
#include "cli/run_events.h"
#include "cli/session_streams.h"
#include "sandbox/enter.h"
#include "sandbox/report.h"
#include "sandbox/runs.h"
#include "store/session_internal.h"

struct supervisor {
	struct cordon_cli *cli;
	struct cordon_store store;
	char id[CORDON_ID_SIZE];
	char run_id[CORDON_UUID_SIZE];
	int dir_fd;
	json_t *record;
	struct cordon_session_log log;
	struct cordon_control control;
	struct cordon_streams streams;
	struct cordon_policy *policy;
	struct cordon_plan *plan;
	struct cordon_child child;
	struct cordon_run_events events;
	struct cordon_run_record run;
	int taken_fd;
	int timer;	  /* the end of the grace time that a stop asked for */
	bool stop;	  /* asked for, not yet passed on */
	uint32_t entered; /* programs that were started by exec so far */
	bool announced;	  /* whoever started us has been told */
};

/* Says to whoever waits for the start how it went. */
static void announce(struct supervisor *s, const struct cordon_error *err)
{
	json_auto_t *answer = err ? json_pack("{s:s, s:s, s:s}", "kind", cordon_kind_name(err->kind), "message",
					      err->message, "hint", err->hint)
				  : json_pack("{s:I}", "last_event_index", (json_int_t)s->log.last);
	autofree char *text = answer ? json_dumps(answer, JSON_COMPACT) : NULL;

	if (s->announced)
		return;
	s->announced = true;
	if (text && cordon_write_all(CORDON_SUPERVISOR_READY, text, strlen(text)) == 0)
		cordon_write_all(CORDON_SUPERVISOR_READY, "\n", 1);
	close(CORDON_SUPERVISOR_READY);
}

static void save(struct supervisor *s)
{
	autoproject struct cordon_project project = CORDON_PROJECT_NONE;

	/* The copy first: whoever reads in the record that the session has ended finds the copy to say so too. */
	if (cordon_project_hold(&s->store, cordon_record_text(s->record, "project_id"), LOCK_SH, &project, NULL) == 0)
		cordon_session_publish(&s->store, &project, s->record, NULL);
	cordon_session_write(&s->store, s->id, s->record, NULL);
}

static void note(struct supervisor *s, const char *type, const char *fmt, ...) CORDON_PRINTF(3, 4);

static void note(struct supervisor *s, const char *type, const char *fmt, ...)
{
	autobuf struct cordon_buf text = CORDON_BUF(65536);
	va_list args;

	va_start(args, fmt);
	if (cordon_buf_addv(&text, fmt, args) == 0)
		cordon_session_log_add(&s->log, type, NULL, text.data, text.len);
	va_end(args);
}

/* ---- what others ask of the session ---- */

static json_t *failure(cordon_kind kind, const char *message)
{
	return json_pack("{s:{s:s, s:s}}", "error", "kind", cordon_kind_name(kind), "message", message);
}

static json_t *success(const struct supervisor *s)
{
	return json_pack("{s:b, s:I}", "ok", 1, "last_event_index", (json_int_t)s->log.last);
}

static int send_message(struct supervisor *s, const char *message, bool end_input)
{
	autobuf struct cordon_buf line = CORDON_BUF(CORDON_INPUT_MAX);
	int r = 0;

	if (message)
		r = cordon_buf_addf(&line, "%s\n", message);
	if (r == 0)
		r = cordon_streams_send(&s->streams, line.data, line.len, end_input);
	if (r < 0 || !message)
		return r;
	cordon_session_log_add(&s->log, "message", "user", message, strlen(message));
	return cordon_session_add_turn(s->record, message);
}

static json_t *on_send(struct supervisor *s, const json_t *request)
{
	const char *message = json_string_value(json_object_get(request, "message"));
	bool end_input = json_is_true(json_object_get(request, "end_input"));
	int r = message || end_input ? send_message(s, message, end_input) : 0;

	if (r == -EPIPE)
		return failure(CORDON_KIND_CONFLICT, "the session's standard input is closed");
	if (r < 0)
		return failure(CORDON_KIND_LIMIT, "the session does not read its standard input");
	if (message)
		cordon_session_write(&s->store, s->id, s->record, NULL);
	return success(s);
}

static json_t *on_stop(struct supervisor *s, const json_t *request)
{
	json_int_t grace = json_integer_value(json_object_get(request, "grace_ms"));
	struct itimerspec when = { .it_value = { .tv_sec = grace / 1000, .tv_nsec = grace % 1000 * 1000000 + 1 } };

	if (grace < 0 || grace > 86400000)
		return failure(CORDON_KIND_USAGE, "grace_ms is out of range");
	timerfd_settime(s->timer, 0, &when, NULL);
	s->stop = true;
	return success(s);
}

static json_t *on_child(struct supervisor *s, const json_t *request)
{
	json_t *children = json_object_get(s->record, "child_sessions");

	if ((json_int_t)json_array_size(children) >= json_integer_value(json_object_get(request, "max")))
		return failure(CORDON_KIND_LIMIT,
			       "the session has started as many sessions as it may (max_agents_per_session)");
	json_array_append(children, json_object_get(request, "session_id"));
	cordon_session_write(&s->store, s->id, s->record, NULL);
	return success(s);
}

/* Pointers into the array's own strings, ended by NULL. */
static char **string_list(const json_t *array)
{
	char **list = calloc(json_array_size(array) + 1, sizeof(char *));
	size_t i;
	json_t *item;

	json_array_foreach(array, i, item) {
		if (list)
			list[i] = (char *)(uintptr_t)json_string_value(item); /* NOLINT: execve takes no const */
	}
	return list;
}

/* Starts a further program; the answer comes at its end. */
static json_t *on_exec(struct supervisor *s, struct cordon_control_client *client, const json_t *request)
{
	json_t *command = json_object_get(request, "command");
	struct cordon_audit_event entry = { .type = CORDON_AUDIT_CALL, .op = "execute" };
	struct cordon_error err = { 0 };
	autofree char **argv = NULL;

	if (!s->announced || client->fds[CORDON_CONTROL_FDS - 1] < 0)
		return failure(CORDON_KIND_CONFLICT, "the session has not started yet");
	if (cordon_command_judge("command", command, &err) < 0)
		return failure(err.kind, err.message);
	argv = string_list(command);
	entry.path = argv ? argv[0] : NULL;
	/* As with a run: nothing is started that is not recorded. */
	if (!argv || cordon_audit_write(s->events.audit, &entry, &err) < 0 ||
	    cordon_enter(&s->child, s->entered + 1, argv, client->fds, &err) < 0)
		return failure(err.kind, err.message);
	for (size_t i = 0; i < CORDON_CONTROL_FDS; i++)
		cordon_closep(&client->fds[i]);
	client->number = ++s->entered;
	note(s, "notice", "exec: %s", argv[0]);
	return NULL;
}

static void on_left(void *data, uint32_t number, int status, const struct cordon_error *why)
{
	struct supervisor *s = data;
	json_t *reply;

	if (why)
		reply = json_pack("{s:b, s:i, s:{s:s, s:s}}", "ok", 1, "exit_code",
				  why->kind == CORDON_KIND_NOT_FOUND ? CORDON_EXIT_NOT_FOUND
								     : CORDON_EXIT_NOT_EXECUTABLE,
				  "why", "kind", cordon_kind_name(why->kind), "message", why->message);
	else if (WIFSIGNALED(status))
		reply = json_pack("{s:b, s:i}", "ok", 1, "signal", WTERMSIG(status));
	else
		reply = json_pack("{s:b, s:i}", "ok", 1, "exit_code", WEXITSTATUS(status));
	cordon_control_tell(&s->control, number, reply);
}

static void on_gone(void *data, uint32_t number)
{
	struct supervisor *s = data;

	cordon_enter_end(&s->child, number);
}

static json_t *handle(void *data, struct cordon_control_client *client, const char *op, const json_t *request)
{
	struct supervisor *s = data;

	if (cordon_streq(op, "exec"))
		return on_exec(s, client, request);
	if (cordon_streq(op, "send"))
		return on_send(s, request);
	if (cordon_streq(op, "stop"))
		return on_stop(s, request);
	if (cordon_streq(op, "child"))
		return on_child(s, request);
	if (!cordon_streq(op, "attach"))
		return failure(CORDON_KIND_USAGE, "unknown request");
	if (!s->streams.terminal)
		return failure(CORDON_KIND_CONFLICT, "the session has no terminal");
	client->attached = true;
	return success(s);
}

/* "COLUMNS ROWS" */
static void set_size(struct supervisor *s, const char *bytes, size_t n)
{
	uint64_t columns, rows;
	char size[32], *blank;

	if (cordon_copy(size, sizeof(size), bytes, n) < 0 || !(blank = strchr(size, ' ')))
		return;
	*blank = '\0';
	if (cordon_parse_u64(size, 1, UINT16_MAX, &columns) == 0 &&
	    cordon_parse_u64(blank + 1, 1, UINT16_MAX, &rows) == 0)
		cordon_streams_resize(&s->streams, (unsigned short)columns, (unsigned short)rows);
}

static void on_frame(void *data, char type, const char *bytes, size_t n)
{
	struct supervisor *s = data;

	if (type == 'd')
		cordon_streams_send(&s->streams, bytes, n, false);
	if (type == 'w')
		set_size(s, bytes, n);
}

/* ---- what happens during the run ---- */

static void on_started(struct supervisor *s)
{
	struct cordon_result nothing = { .exit_code = -1 };
	json_auto_t *report = NULL;

	clock_gettime(CLOCK_REALTIME, &nothing.started);
	nothing.ended = nothing.started;
	report = cordon_result_json(s->run_id, s->plan, &s->child, &nothing);
	json_object_set_new(s->record, "state", json_string("running"));
	json_object_set(s->record, "started_at", json_object_get(report, "started_at"));
	json_object_set(s->record, "enforcement", json_object_get(report, "enforcement"));
	json_object_set(s->record, "protected", json_object_get(report, "protected"));
	save(s);
	announce(s, NULL);
}

static void on_event(void *data, const struct cordon_event *event)
{
	struct supervisor *s = data;

	cordon_run_events_take(&s->events, event);
	switch (event->kind) {
	case CORDON_EVENT_STARTED:
		on_started(s);
		break;
	case CORDON_EVENT_VIOLATION:
		note(s, "violation", "%s %s: %s", cordon_verdict_name(event->verdict), event->op, event->path);
		break;
	case CORDON_EVENT_UNTOLD:
		note(s, "violation", "%u more violations", event->count);
		break;
	case CORDON_EVENT_LOST:
		note(s, "notice", "the host replaced a protected path: %s", event->path);
		break;
	case CORDON_EVENT_MADE:
		note(s, "violation", "a protected name came to be: %s", event->path);
		break;
	case CORDON_EVENT_LIMIT:
		note(s, "notice", "the %s limit was reached", event->op);
		break;
	case CORDON_EVENT_HARD_LINK:
		note(s, "notice", "a protected path had other names and was copied apart: %s", event->path);
		break;
	}
}

static size_t on_fds(void *data, struct pollfd *ret_fds)
{
	struct supervisor *s = data;
	size_t n = cordon_streams_fds(&s->streams, ret_fds);

	ret_fds[n++] = (struct pollfd){ .fd = s->timer, .events = POLLIN };
	return n + cordon_control_fds(&s->control, ret_fds + n);
}

static bool on_serve(void *data, const struct pollfd *fds, size_t n)
{
	struct supervisor *s = data;
	uint64_t expired;
	bool end = read(s->timer, &expired, sizeof(expired)) > 0;

	cordon_streams_serve(&s->streams);
	cordon_control_serve(&s->control, fds, n);
	end |= s->stop;
	s->stop = false;
	return end;
}

/* ---- from the record to the plan ---- */

static int fill_env(const struct supervisor *s, struct cordon_buf *storage, char **env, size_t max, size_t *ret_n,
		    struct cordon_error *err)
{
	autofree char *agent = json_dumps(json_object_get(s->record, "agent"), JSON_COMPACT);
	autofree char *context = json_dumps(json_object_get(s->record, "context"), JSON_COMPACT);
	json_t *own = json_object_get(s->record, "env");
	size_t offsets[CORDON_ENV_MAX], n = 0;
	const char *name;
	json_t *value;
	int r = 0;

	json_object_foreach(own, name, value) {
		if (r == 0 && n < max) {
			offsets[n++] = storage->len;
			r = cordon_buf_addf(storage, "%s=%s%c", name, json_string_value(value), 0);
		}
	}
	const char *const ours[][2] = {
		{ "CORDON_SESSION_ID", s->id },
		{ "CORDON_PROJECT_ID", cordon_record_text(s->record, "project_id") },
		{ "CORDON_WORKSPACE_ID", cordon_record_text(s->record, "workspace_id") },
		{ "CORDON_AGENT", agent },
		{ "CORDON_CONTEXT", context },
	};

	for (size_t i = 0; r == 0 && i < CORDON_ARRAY_SIZE(ours) && n < max; i++) {
		if (!ours[i][1])
			continue;
		offsets[n++] = storage->len;
		r = cordon_buf_addf(storage, "%s=%s%c", ours[i][0], ours[i][1], 0);
	}
	for (size_t i = 0; i < n; i++)
		env[i] = storage->data + offsets[i];
	*ret_n = n;
	return r < 0 ? cordon_fail(err, r, CORDON_KIND_LIMIT, "the environment is too large") : 0;
}

static int build_plan(struct supervisor *s, struct cordon_error *err)
{
	autobuf struct cordon_buf storage = CORDON_BUF((size_t)32 << 20);
	const json_t *limits = json_object_get(s->record, "limits");
	const json_t *passed = json_object_get(s->record, "env_pass");
	autofree char **argv = string_list(json_object_get(s->record, "command"));
	autofree char **keep = string_list(passed);
	char *env[CORDON_ENV_MAX / 2], cwd[CORDON_PATH_MAX];
	json_int_t timeout = json_integer_value(json_object_get(s->record, "timeout_ms"));
	struct cordon_run_spec spec = {
		.run_id = s->run_id,
		.policy = s->policy,
		.home_path = s->store.home.path,
		.at = "/workspace",
		.cwd = cwd,
		.env = env,
		.keep_env = keep,
		.n_keep_env = json_array_size(passed),
		.argv = argv,
		.net_none = cordon_streq(cordon_record_text(s->record, "network"), "none"),
		.best_effort = json_is_true(json_object_get(s->record, "best_effort")),
		.enterable = true,
		.terminal = s->streams.terminal,
		.limits = { .memory_bytes = (uint64_t)json_integer_value(json_object_get(limits, "memory_bytes")),
			    .pids = (uint32_t)json_integer_value(json_object_get(limits, "pids")) },
		.timeout_ms = timeout ? (uint64_t)timeout
				      : (uint64_t)json_integer_value(json_object_get(limits, "timeout_seconds")) * 1000,
	};
	int r;

	if (!argv || !keep)
		return cordon_no_memory(err);
	r = fill_env(s, &storage, env, CORDON_ARRAY_SIZE(env), &spec.n_env, err);
	if (r == 0)
		r = cordon_workspace_path(&s->store, cordon_record_text(s->record, "project_id"),
					  cordon_record_text(s->record, "workspace_id"), cwd, err);
	return r < 0 ? r : cordon_plan_build(&spec, &s->plan, err);
}

static int build_policy(struct supervisor *s, struct cordon_error *err)
{
	autoproject struct cordon_project project = CORDON_PROJECT_NONE;
	int r = cordon_project_hold(&s->store, cordon_record_text(s->record, "project_id"), LOCK_SH, &project, err);

	return r < 0 ? r
		     : cordon_policy_of(&project, cordon_record_text(s->record, "workspace_id"), s->record, &s->policy,
					err);
}

/* What a person should know about a session that is not what it may look like. */
static void add_notes(struct supervisor *s)
{
	json_t *notes = json_array();

	if (!json_is_true(json_object_get(s->record, "workspace_isolation")) &&
	    json_array_size(json_object_get(s->record, "protected_paths")))
		json_array_append_new(notes, json_string("protected_paths are ignored: the project is not isolated"));
	json_object_set_new(s->record, "notes", notes);
}

/* ---- beginning and end ---- */

static int take_input(struct supervisor *s, struct cordon_error *err)
{
	json_auto_t *input = NULL;
	int r = cordon_record_read(s->dir_fd, CORDON_SESSION_INPUT, &input, err);

	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return r;
	unlinkat(s->dir_fd, CORDON_SESSION_INPUT, 0);
	r = send_message(s, json_string_value(json_object_get(input, "message")),
			 json_is_true(json_object_get(input, "end_input")));
	return r < 0 ? cordon_fail_errno(err, r, "cannot give the session its first message") : 0;
}

static int prepare(struct supervisor *s, struct cordon_error *err)
{
	struct cordon_audit_ids ids = { .session_id = s->id };
	int r = cordon_session_open(&s->store, s->id, &s->dir_fd, err);

	if (r == 0)
		r = cordon_session_read(&s->store, s->id, &s->record, err);
	if (r < 0)
		return r;
	ids.project_id = cordon_record_text(s->record, "project_id");
	ids.workspace_id = cordon_record_text(s->record, "workspace_id");
	s->control = (struct cordon_control){ .listen_fd = -1,
					      .handle = handle,
					      .gone = on_gone,
					      .frame = on_frame,
					      .data = s,
					      .recent = &s->streams.recent };
	s->streams.log = &s->log;
	s->streams.control = &s->control;
	if ((r = cordon_session_log_open(s->dir_fd, &s->log, err)) < 0 ||
	    (r = cordon_streams_open(&s->streams, json_is_true(json_object_get(s->record, "terminal")), err)) < 0 ||
	    (r = cordon_control_open(&s->control, s->dir_fd, err)) < 0 || (r = build_policy(s, err)) < 0 ||
	    (r = cordon_audit_open(&s->store.home, &ids, &s->events.audit, err)) < 0)
		return r;
	cordon_voice_init(&s->events.voice, s->cli);
	s->events.policy = s->policy;
	s->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (s->timer < 0)
		return cordon_fail_errno(err, -errno, "timerfd_create");
	add_notes(s);
	json_object_set_new(s->record, "run_id", json_string(s->run_id));
	json_object_set_new(s->record, "pid", json_integer(getpid()));
	r = take_input(s, err);
	return r < 0 ? r : build_plan(s, err);
}

static int launch(struct supervisor *s, const struct cordon_observer *observer, struct cordon_error *err)
{
	int r = cordon_runs_enter(&s->store.home, s->run_id, s->policy, &s->run, err);

	if (r == 0)
		r = cordon_home_subdir(&s->store.home, "taken", &s->taken_fd, err);
	if (r == 0)
		r = cordon_run_events_start(&s->events, s->plan, err);
	if (r == 0)
		r = cordon_streams_wear(&s->streams, err);
	if (r < 0)
		return r;
	note(s, "started", "%s", s->plan->argv[0]);
	r = cordon_launch(s->plan, s->policy, s->taken_fd, observer, &s->child, err);
	cordon_streams_take_off(&s->streams);
	return r;
}

/* Puts the result into the record; the seed knows three words for how a session stands. */
static void conclude(struct supervisor *s, const struct cordon_result *result)
{
	static const char *const kept[] = { "state",	   "exit_code",	 "signal",	"started_at", "ended_at",
					    "duration_ms", "violations", "enforcement", "protected",  "error" };
	json_auto_t *report = cordon_result_json(s->run_id, s->plan, s->child.plan ? &s->child : NULL, result);
	bool fine = result->state == CORDON_STATE_COMPLETED || result->state == CORDON_STATE_CANCELLED;

	for (size_t i = 0; i < CORDON_ARRAY_SIZE(kept); i++) {
		json_t *value = json_object_get(report, kept[i]);

		if (value)
			json_object_set(s->record, kept[i], value);
	}
	json_object_set_new(s->record, "status", json_string(fine ? "completed" : "failed"));
	if (result->error.code)
		note(s, "ended", "%s: %s", cordon_state_name(result->state), result->error.message);
	else if (result->signal)
		note(s, "ended", "%s: signal %d", cordon_state_name(result->state), result->signal);
	else
		note(s, "ended", "%s: exit code %d", cordon_state_name(result->state), result->exit_code);
	save(s);
}

static void refuse(struct supervisor *s, const struct cordon_error *err)
{
	struct cordon_result result = { .state = CORDON_STATE_REFUSED, .exit_code = -1, .error = *err };

	clock_gettime(CLOCK_REALTIME, &result.started);
	result.ended = result.started;
	if (s->events.audit)
		cordon_run_events_refused(&s->events, err);
	if (s->record)
		conclude(s, &result);
	announce(s, err);
}

static void supervise(struct supervisor *s)
{
	struct cordon_observer observer = {
		.event = on_event, .data = s, .fds = on_fds, .serve = on_serve, .left = on_left
	};
	struct cordon_result result;
	struct cordon_error err = { 0 };

	if (prepare(s, &err) < 0 || launch(s, &observer, &err) < 0) {
		refuse(s, &err);
		return;
	}
	cordon_supervise(&s->child, &observer, &result);
	cordon_streams_drain(&s->streams);
	cordon_run_events_end(&s->events, &result);
	conclude(s, &result);
	announce(s, result.error.code ? &result.error : NULL);
}

static void leave(struct supervisor *s)
{
	autoproject struct cordon_project project = CORDON_PROJECT_NONE;

	if (s->record &&
	    cordon_project_hold(&s->store, cordon_record_text(s->record, "project_id"), LOCK_SH, &project, NULL) == 0)
		cordon_active_remove(&project, cordon_record_text(s->record, "workspace_id"), s->id);
	if (s->dir_fd >= 0 && s->control.handle)
		cordon_control_done(&s->control, s->dir_fd);
	cordon_run_events_done(&s->events);
	cordon_runs_leave(&s->run);
	cordon_closep(&s->taken_fd);
	cordon_closep(&s->timer);
	cordon_streams_done(&s->streams);
	cordon_session_log_done(&s->log);
	cordon_plan_free(s->plan);
	cordon_policy_free(s->policy);
	json_decref(s->record);
	cordon_closep(&s->dir_fd);
}

static int run(struct cordon_cli *cli, int argc, char **argv)
{
	struct supervisor s = { .cli = cli,
				.store = CORDON_STORE_NONE,
				.dir_fd = -1,
				.log = CORDON_SESSION_LOG_NONE,
				.control = { .listen_fd = -1 },
				.run = CORDON_RUN_RECORD_NONE,
				.taken_fd = -1,
				.timer = -1,
				.streams = {
					.in_fd = -1, .inner = { -1, -1, -1 }, .out = { { .fd = -1 }, { .fd = -1 } } } };
	struct cordon_error err = { 0 };

	/* Only `session start` passes these on; they must not go further. */
	if (fcntl(CORDON_SUPERVISOR_ALIVE, F_SETFD, FD_CLOEXEC) < 0 ||
	    fcntl(CORDON_SUPERVISOR_READY, F_SETFD, FD_CLOEXEC) < 0 || argc != 2)
		return cordon_cli_usage(cli, "this command is started by 'cordon session start'");
	cli->json = true; /* nothing for a person to read: the log and the record tell */
	if (cordon_id_uuid("session_id", argv[1], s.id, &err) < 0 || cordon_uuid_new(s.run_id) < 0 ||
	    cordon_store_open(&s.store, &err) < 0) {
		announce(&s, &err);
		return CORDON_EXIT_NO;
	}
	supervise(&s);
	leave(&s);
	cordon_store_done(&s.store);
	return CORDON_EXIT_OK;
}

const struct cordon_command cordon_cmd_session_supervise = {
	.name = "session supervise",
	.operands = "ID",
	.summary = "look after a session",
	.run = run,
};
