/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cordon-job ID: keeps one session, from its start to its end. It has its supervisor run the program, answers requests
 * that come through the control socket, and writes the record. The process that starts the session executes it
 * (start.c); people do not. It has no terminal and prints nothing.
 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/timerfd.h>

#include "audit/audit.h"
#include "base/exit.h"
#include "base/json.h"
#include "base/lock.h"
#include "base/setting.h"
#include "base/time.h"
#include "config/managed.h"
#include "config/net_setting.h"
#include "job/control.h"
#include "job/internal.h"
#include "job/supervisor.h"
#include "protect/repositories.h"
#include "recipe/recipe.h"
#include "run/audit.h"
#include "run/result.h"
#include "sandbox/host/enter.h"
#include "sandbox/host/launch.h"
#include "sandbox/host/net_process.h"
#include "sandbox/plan/print.h"

#define CANCELLED_GRACE_MS 5000 /* the time that a program has to end itself when its start was cancelled */

struct session_process {
	struct cordon_store store;
	char id[CORDON_ID_SIZE];
	int dir_fd;
	struct cordon_session_record record; /* empty until it has been read */
	struct cordon_supervisor job;	     /* its program, log and streams */
	struct cordon_control control;
	struct cordon_recipe recipe;
	struct cordon_net_list net; /* the hosts in force: the policy's, then what `session net` made of them */
	struct cordon_audit *audit; /* for further programs, and for what happens before there is a run */
	int timer;		    /* expires at the end of the grace time that a stop request gave */
	bool stop;		    /* a stop was requested and on_serve() has not returned it yet */
	uint32_t entered;	    /* how many programs exec has started so far */
	bool start_reported;	    /* the starter has the outcome of the start */
	int start_fd;		    /* a byte from here cancels the start; -1 when the starter has closed its end */
};

/* ---- requests that come through the control socket ---- */

static json_t *failure(cordon_kind kind, const char *message)
{
	return json_pack("{s:{s:s, s:s}}", "error", "kind", cordon_kind_name(kind), "message", message);
}

static json_t *success(const struct session_process *s)
{
	return json_pack("{s:b, s:I}", "ok", 1, "last_event_index", (json_int_t)s->job.log.last);
}

/* Keeps the newest CORDON_TURNS_MAX turns, and the first CORDON_TURN_TEXT_MAX bytes of each. */
static int add_turn(struct cordon_session_record *record, const char *message)
{
	char now[CORDON_TIME_SIZE];
	size_t n = strlen(message);

	if (n > CORDON_TURN_TEXT_MAX) {
		n = CORDON_TURN_TEXT_MAX;
		while (n && ((unsigned char)message[n] & 0xc0) == 0x80)
			n--;
	}
	cordon_record_stamp(now);
	if (json_array_append_new(record->turns, json_pack("{s:s, s:s%}", "at", now, "message", message, n)) < 0)
		return -ENOMEM;
	while (json_array_size(record->turns) > CORDON_TURNS_MAX)
		json_array_remove(record->turns, 0);
	return 0;
}

/* Sends a message and a newline to the program's standard input, and puts the message into record and log. `message`
 * may be NULL. Returns what cordon_streams_send() returns, or -ENOMEM. */
static int send_input(struct session_process *s, const char *message, bool end_input)
{
	autobuf struct cordon_buf line = CORDON_BUF(CORDON_INPUT_MAX);
	int r = 0;

	if (message)
		r = cordon_buf_addf(&line, "%s\n", message);
	if (r == 0)
		r = cordon_streams_send(&s->job.streams, line.data, line.len, end_input);
	if (r < 0 || !message)
		return r;
	cordon_supervisor_log(&s->job, "message", "user", message, strlen(message));
	return add_turn(&s->record, message);
}

static json_t *on_send(struct session_process *s, const json_t *request)
{
	const char *message = cordon_json_string(request, "message");
	bool end_input = cordon_json_true(request, "end_input");
	int r = message || end_input ? send_input(s, message, end_input) : 0;

	if (r == -EPIPE)
		return failure(CORDON_KIND_CONFLICT, "the session's standard input is closed");
	if (r < 0)
		return failure(CORDON_KIND_LIMIT, "the session does not read its standard input");
	if (message)
		cordon_session_write(&s->store, &s->record, NULL);
	return success(s);
}

/* Asks the program to end now, and ends it by force after the grace time. */
static void end_after(struct session_process *s, int64_t grace_ms)
{
	struct itimerspec when = { .it_value = { .tv_sec = grace_ms / 1000, .tv_nsec = grace_ms % 1000 * 1000000 + 1 } };

	timerfd_settime(s->timer, 0, &when, NULL);
	s->stop = true;
}

static json_t *on_stop(struct session_process *s, const json_t *request)
{
	json_int_t grace = cordon_json_integer(request, "grace_ms");

	if (grace < 0 || grace > 86400000)
		return failure(CORDON_KIND_USAGE, "grace_ms is out of range");
	end_after(s, grace);
	return success(s);
}

static json_t *on_child(struct session_process *s, const json_t *request)
{
	json_t *children = s->record.child_sessions;

	if ((json_int_t)json_array_size(children) >= cordon_json_integer(request, "max"))
		return failure(CORDON_KIND_LIMIT,
			       "the session has started as many sessions as it may (max_agents_per_session)");
	json_array_append(children, json_object_get(request, "session_id"));
	cordon_session_write(&s->store, &s->record, NULL);
	return success(s);
}

/* Adds and removes rules; all of them, or an error. */
static int change_list(struct cordon_net_list *list, json_t *allow, json_t *revoke, struct cordon_error *err)
{
	struct cordon_net_rule rule;
	size_t i;
	json_t *item;
	int r = 0;

	json_array_foreach(revoke, i, item) {
		const char *text = json_string_value(item);

		r = cordon_net_rule_parse(text ? text : "", text ? strlen(text) : 0, &rule, err);
		if (r == 0 && cordon_net_list_remove(list, &rule) < 0) {
			cordon_net_rule_text(&rule, rule.text);
			return cordon_fail(err, -ENOENT, CORDON_KIND_NOT_FOUND, "the list has no rule %s", rule.text);
		}
		if (r < 0)
			return r;
	}
	json_array_foreach(allow, i, item) {
		const char *text = json_string_value(item);

		r = cordon_net_rule_parse(text ? text : "", text ? strlen(text) : 0, &rule, err);
		if (r == 0)
			r = cordon_managed_host(&rule, err);
		if (r == 0)
			r = cordon_net_list_add(list, &rule, "session net", err);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Gives cordon-net a list, records it, and keeps it as ours. */
static int set_list(struct session_process *s, struct cordon_net_list *list, struct cordon_error *err)
{
	struct cordon_audit_event entry = { .type = CORDON_AUDIT_GRANT, .op = "net" };
	autobuf struct cordon_buf text = CORDON_BUF((size_t)CORDON_NET_RULES_MAX * CORDON_NET_RULE_SIZE);
	json_auto_t *net = cordon_net_list_json(list);
	json_auto_t *detail = net ? json_pack("{s:O}", "net", net) : NULL;
	int r = detail ? cordon_net_list_text(list, &text) : -ENOMEM;

	if (r < 0)
		return cordon_fail_errno(err, r, "a list of hosts");
	entry.detail = detail;
	/* As with a run, what cannot be recorded in the audit log is not done. */
	r = cordon_audit_write(s->audit, &entry, err);
	if (r == 0)
		r = cordon_child_net(s->job.child, text.data ? text.data : "", err);
	if (r < 0)
		return r;
	cordon_net_list_done(&s->net);
	s->net = *list;
	*list = (struct cordon_net_list){ 0 };
	json_decref(s->record.settings.net);
	s->record.settings.net = cordon_steal_ptr(&net);
	cordon_supervisor_note(&s->job, "notice", "network: %s", text.data ? text.data : "no host");
	return cordon_session_write(&s->store, &s->record, err);
}

/* Changes the list of hosts; without a change it tells the list. */
static json_t *on_net(struct session_process *s, const json_t *request)
{
	json_t *allow = json_object_get(request, "allow"), *revoke = json_object_get(request, "revoke");
	struct cordon_net_list list = { 0 };
	struct cordon_error err = { 0 };
	json_auto_t *net = NULL;
	int r = 0;

	if (!s->start_reported || !s->job.child)
		return failure(CORDON_KIND_CONFLICT, "the session has not started yet");
	if (json_array_size(allow) || json_array_size(revoke)) {
		/* Without a list, the run has no helper that could serve one. */
		if (!s->recipe.policy->net.listed || cordon_net_list_is_none(&s->recipe.policy->net))
			return failure(CORDON_KIND_CONFLICT, "the session was started without a list of hosts");
		r = cordon_net_list_copy(&list, &s->net) < 0 ? cordon_fail_errno(&err, -ENOMEM, "a list of hosts")
							     : change_list(&list, allow, revoke, &err);
		if (r == 0)
			r = set_list(s, &list, &err);
		cordon_net_list_done(&list);
	}
	if (r < 0)
		return failure(err.kind, err.message);
	net = cordon_net_list_json(&s->net);
	return net ? json_pack("{s:b, s:O}", "ok", 1, "net", net) : NULL;
}

/* Keeps an allowance for the next starts. */
static json_t *on_allow(struct session_process *s, const json_t *request)
{
	const json_t *allowance = json_object_get(request, "allowance");
	struct cordon_error err = { 0 };
	int r = *cordon_allowance_text(allowance) ? cordon_allowances_put(&s->record.allowances, allowance, &err)
						  : cordon_fail(&err, -EINVAL, CORDON_KIND_USAGE, "no allowance");

	if (r == 0)
		r = cordon_session_write(&s->store, &s->record, &err);
	if (r < 0)
		return failure(err.kind, err.message);
	cordon_supervisor_note(&s->job, "notice", "allowed from the next start on: %s",
			       cordon_allowance_text(allowance));
	return success(s);
}

/* Returns a list of pointers into the array's own strings, ended by NULL, which the caller frees; NULL when there is no
 * memory. */
static char **strings_of(const json_t *array)
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

/* Starts a further program. The client gets the answer when that program ends. */
static json_t *on_exec(struct session_process *s, struct cordon_control_client *client, const json_t *request)
{
	json_t *command = json_object_get(request, "command");
	struct cordon_audit_event entry = { .type = CORDON_AUDIT_CALL, .op = "execute" };
	struct cordon_error err = { 0 };
	autofree char **argv = NULL;

	if (!s->start_reported || !s->job.child || client->fds[CORDON_CONTROL_FDS - 1] < 0)
		return failure(CORDON_KIND_CONFLICT, "the session has not started yet");
	if (cordon_command_judge("command", command, &err) < 0)
		return failure(err.kind, err.message);
	argv = strings_of(command);
	entry.path = argv ? argv[0] : NULL;
	/* As with a run, a program that cannot be recorded in the audit log is not started. */
	if (!argv || cordon_audit_write(s->audit, &entry, &err) < 0 ||
	    cordon_enter(s->job.child, s->entered + 1, argv, client->fds, &err) < 0)
		return failure(err.kind, err.message);
	for (size_t i = 0; i < CORDON_CONTROL_FDS; i++)
		cordon_closep(&client->fds[i]);
	client->number = ++s->entered;
	cordon_supervisor_note(&s->job, "notice", "exec: %s", argv[0]);
	return NULL;
}

/* A further program has ended: sends its exit status to the client that waits for it. */
static void report_exit(struct session_process *s, const struct cordon_event *event)
{
	struct cordon_ending ending = cordon_ending_of_wait(event->status);
	const struct cordon_error *why = event->why;
	json_t *reply;

	if (why)
		reply = json_pack("{s:b, s:i, s:{s:s, s:s}}", "ok", 1, "exit_code",
				  cordon_exit_of_error(why, CORDON_EXIT_NOT_EXECUTABLE), "why", "kind",
				  cordon_kind_name(why->kind), "message", why->message);
	else if (ending.signal)
		reply = json_pack("{s:b, s:i}", "ok", 1, "signal", ending.signal);
	else
		reply = json_pack("{s:b, s:i}", "ok", 1, "exit_code", ending.exit_code);
	cordon_control_reply(&s->control, event->number, reply);
}

static void on_disconnected(void *data, uint32_t number)
{
	struct session_process *s = data;

	cordon_enter_end(s->job.child, number);
}

static json_t *handle(void *data, struct cordon_control_client *client, const char *op, const json_t *request)
{
	struct session_process *s = data;

	if (cordon_streq(op, "exec"))
		return on_exec(s, client, request);
	if (cordon_streq(op, "send"))
		return on_send(s, request);
	if (cordon_streq(op, "stop"))
		return on_stop(s, request);
	if (cordon_streq(op, "net"))
		return on_net(s, request);
	if (cordon_streq(op, "allow"))
		return on_allow(s, request);
	if (cordon_streq(op, "child"))
		return on_child(s, request);
	if (!cordon_streq(op, "attach"))
		return failure(CORDON_KIND_USAGE, "unknown request");
	if (!s->job.streams.terminal)
		return failure(CORDON_KIND_CONFLICT, "the session has no terminal");
	client->attached = true;
	return success(s);
}

/* "COLUMNS ROWS" */
static void set_size(struct session_process *s, const char *bytes, size_t n)
{
	uint64_t columns, rows;
	char size[32], *blank;

	if (cordon_copy(size, sizeof(size), bytes, n) < 0 || !(blank = strchr(size, ' ')))
		return;
	*blank = '\0';
	if (cordon_parse_u64(size, 1, UINT16_MAX, &columns) == 0 &&
	    cordon_parse_u64(blank + 1, 1, UINT16_MAX, &rows) == 0)
		cordon_streams_resize(&s->job.streams, (unsigned short)columns, (unsigned short)rows);
}

static void on_frame(void *data, char type, const char *bytes, size_t n)
{
	struct session_process *s = data;

	if (type == 'd')
		cordon_streams_send(&s->job.streams, bytes, n, false);
	if (type == 'w')
		set_size(s, bytes, n);
}

/* Opens the control socket. The run's loop answers requests from now on. */
static int open_control(struct session_process *s, struct cordon_error *err)
{
	s->control = (struct cordon_control){ .listen_fd = -1,
					      .handle = handle,
					      .disconnected = on_disconnected,
					      .frame = on_frame,
					      .data = s,
					      .recent = &s->job.streams.recent };
	return cordon_control_open(&s->control, s->dir_fd, err);
}

/* ---- the run ---- */

/* Reports the outcome of the start to the process that waits for it, and lets others start sessions in the
 * workspace. */
static void report_start(struct session_process *s, const struct cordon_error *err)
{
	json_auto_t *answer = err ? json_pack("{s:s, s:s, s:s, s:b}", "kind", cordon_kind_name(err->kind), "message",
					      err->message, "hint", err->hint, "no_exec", err->code == -ENOEXEC)
				  : json_pack("{s:I}", "last_event_index", (json_int_t)s->job.log.last);
	autobuf struct cordon_buf line = CORDON_BUF(65536);
	autofree char *text = answer ? json_dumps(answer, JSON_COMPACT) : NULL;

	if (s->start_reported)
		return;
	s->start_reported = true;
	/* Closing is not enough to release the lock, because PID 1 of the sandbox has a copy of the descriptor. */
	(void)cordon_lock(CORDON_SESSION_FD_LOCK, LOCK_UN);
	close(CORDON_SESSION_FD_LOCK);
	if (text && s->start_fd >= 0 && cordon_buf_addf(&line, "%s\n", text) == 0)
		send(s->start_fd, line.data, line.len, MSG_NOSIGNAL);
}

/* Whether the starter cancelled the start. A starter that has ended did not cancel it. */
static bool start_is_cancelled(struct session_process *s)
{
	char byte;
	ssize_t n = s->start_fd < 0 ? 0 : recv(s->start_fd, &byte, 1, MSG_DONTWAIT);

	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		cordon_closep(&s->start_fd);
	return n > 0;
}

static void save(struct session_process *s)
{
	autoproject struct cordon_project project = CORDON_PROJECT_NONE;

	/* Write the published copy first: once the record says that the session has ended, the copy says so too. */
	if (cordon_project_hold(&s->store, s->record.project_id, LOCK_SH, &project, NULL) == 0)
		cordon_session_publish(&s->store, &project, &s->record, NULL);
	cordon_session_write(&s->store, &s->record, NULL);
}

static void put_time(const struct timespec *time, char ret[static CORDON_TIME_SIZE])
{
	cordon_time_format((int64_t)time->tv_sec * 1000 + time->tv_nsec / 1000000, ret);
}

/* Records which layers enforce the policy and what they protect, in the form that the result of a run has. */
static void put_layers(struct session_process *s, const struct cordon_result *result)
{
	json_decref(s->record.enforcement);
	s->record.enforcement = cordon_result_enforcement(result);
	if (result->plan) {
		json_auto_t *protected = cordon_plan_protected_json(result->plan);

		json_decref(s->record.protected);
		s->record.protected = cordon_protected_pack(protected);
		cordon_protected_table(s->record.protected_table);
	}
}

static void put_run_id(struct session_process *s, const char *run_id)
{
	s->record.view_id[0] = '\0';
	json_decref(s->record.git_result);
	s->record.git_result = NULL;
	cordon_copy(s->record.run_id, sizeof(s->record.run_id), run_id, strlen(run_id));
}

static void on_started(struct session_process *s, const struct cordon_result *result)
{
	put_run_id(s, result->run_id);
	memcpy(s->record.view_id, result->view_id, sizeof(result->view_id));
	s->record.state = CORDON_SESSION_RUNNING;
	put_time(&result->started, s->record.started_at);
	put_layers(s, result);
	save(s);
	report_start(s, NULL);
}

static void on_event(void *data, const struct cordon_event *event)
{
	struct session_process *s = data;

	if (event->kind == CORDON_EVENT_STARTED)
		on_started(s, event->result);
	else if (event->kind == CORDON_EVENT_LEFT)
		report_exit(s, event);
}

static void on_screen(void *data, const char *bytes, size_t n)
{
	struct session_process *s = data;

	cordon_control_send_output(&s->control, bytes, n);
}

static size_t on_fds(void *data, struct pollfd *ret_fds)
{
	struct session_process *s = data;
	size_t n = 0;

	ret_fds[n++] = (struct pollfd){ .fd = s->timer, .events = POLLIN };
	if (s->start_fd >= 0)
		ret_fds[n++] = (struct pollfd){ .fd = s->start_fd, .events = POLLIN };
	return n + cordon_control_fds(&s->control, ret_fds + n);
}

static bool on_serve(void *data, const struct pollfd *fds, size_t n)
{
	struct session_process *s = data;
	uint64_t expired;
	bool end = read(s->timer, &expired, sizeof(expired)) > 0;

	cordon_control_serve(&s->control, fds, n);
	if (start_is_cancelled(s))
		end_after(s, CANCELLED_GRACE_MS);
	end |= s->stop;
	s->stop = false;
	return end;
}

/* Variables come after those of the profiles: the project's settings win. */
static int fill_env(struct session_process *s, struct cordon_error *err)
{
	autofree char *agent = json_dumps(s->record.settings.agent, JSON_COMPACT);
	autofree char *context = json_dumps(s->record.context, JSON_COMPACT);
	double cost = s->record.settings.limits.max_cost_usd;
	char cost_text[32];
	const char *const ours[][2] = {
		{ "CORDON_SESSION_ID", s->id },
		{ "CORDON_PROJECT_ID", s->record.project_id },
		{ "CORDON_WORKSPACE_ID", s->record.workspace_id },
		{ "CORDON_AGENT", agent },
		{ "CORDON_CONTEXT", context },
		{ "CORDON_MAX_COST_USD", cost > 0 ? cost_text : NULL },
	};
	const char *name;
	json_t *value;
	size_t k;
	int r = 0;

	snprintf(cost_text, sizeof(cost_text), "%.2f", cost);
	json_object_foreach(s->record.settings.env, name, value) {
		if (r == 0)
			r = cordon_recipe_add_env(&s->recipe, name, json_string_value(value), err);
	}
	for (size_t i = 0; r == 0 && i < CORDON_ARRAY_SIZE(ours); i++)
		if (ours[i][1])
			r = cordon_recipe_add_env(&s->recipe, ours[i][0], ours[i][1], err);
	json_array_foreach(s->record.settings.env_pass, k, value) {
		if (r == 0)
			r = cordon_recipe_add_text(&s->recipe.pass_env, json_string_value(value), err);
	}
	return r;
}

static int compile(struct session_process *s, struct cordon_error *err)
{
	autoproject struct cordon_project project = CORDON_PROJECT_NONE;
	const struct cordon_session_record *record = &s->record;
	int r = cordon_project_hold(&s->store, record->project_id, LOCK_SH, &project, err);

	if (r == 0)
		r = fill_env(s, err);
	if (r < 0)
		return r;
	cordon_recipe_set_value(&s->recipe, CORDON_RECIPE_TIMEOUT, (uint64_t)record->timeout_ms);
	cordon_recipe_set_value(&s->recipe, CORDON_RECIPE_FAIL_ON_VIOLATION, record->fail_on_violation);
	return cordon_settings_compile(&project, record->workspace_id, &record->settings, record->ancestor_workspaces,
				       true, &s->recipe, err);
}

/* Adds notes for people about settings that have no effect in this session. */
static void add_notes(struct session_process *s)
{
	json_t *notes = json_array(), *allowance;
	size_t i;

	if (!s->record.settings.workspace_isolation && json_array_size(s->record.settings.protected_paths))
		json_array_append_new(notes, json_string("protected_paths are ignored: the project is not isolated"));
	json_array_foreach(s->record.allowances, i, allowance) {
		const char *share = cordon_json_string(allowance, "share");

		if (share && !cordon_allowance_within(allowance, &s->record.settings))
			json_array_append_new(notes, json_sprintf("allowed, but not there any more: %s", share));
	}
	json_decref(s->record.notes);
	s->record.notes = notes;
}

static int take_input(struct session_process *s, struct cordon_error *err)
{
	struct cordon_session_input input;
	int r = cordon_record_load(&cordon_session_input_kind, s->dir_fd, CORDON_SESSION_INPUT, &input, err);

	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return r;
	unlinkat(s->dir_fd, CORDON_SESSION_INPUT, 0);
	r = send_input(s, input.message, input.end_input);
	cordon_fields_done(&cordon_session_input_kind, &input);
	return r < 0 ? cordon_fail_errno(err, r, "cannot give the session its first message") : 0;
}

static int prepare(struct session_process *s, struct cordon_error *err)
{
	struct cordon_audit_ids ids = { .session_id = s->id };
	int r = cordon_session_open(&s->store, s->id, &s->dir_fd, err);

	if (r == 0)
		r = cordon_session_read(&s->store, s->id, &s->record, err);
	if (r < 0)
		return r;
	ids.project_id = s->record.project_id;
	ids.workspace_id = s->record.workspace_id;
	s->job.dir_fd = s->dir_fd;
	if ((r = cordon_job_log_open(s->dir_fd, &s->job.log, err)) < 0 ||
	    (r = cordon_supervisor_open(&s->job, s->record.terminal ? CORDON_STREAMS_TERMINAL : CORDON_STREAMS_PIPES,
					err)) < 0 ||
	    (r = open_control(s, err)) < 0 || (r = compile(s, err)) < 0 ||
	    (r = cordon_audit_open(&s->store.home, &ids, &s->audit, err)) < 0)
		return r;
	s->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (s->timer < 0)
		return cordon_fail_errno(err, -errno, "timerfd_create");
	add_notes(s);
	s->record.pid = getpid();
	return take_input(s, err);
}

static cordon_session_state state_of(cordon_run_state state)
{
	static const cordon_session_state states[] = {
		[CORDON_STATE_COMPLETED] = CORDON_SESSION_RUN_COMPLETED,
		[CORDON_STATE_FAILED] = CORDON_SESSION_RUN_FAILED,
		[CORDON_STATE_TIMEOUT] = CORDON_SESSION_RUN_TIMEOUT,
		[CORDON_STATE_CANCELLED] = CORDON_SESSION_RUN_CANCELLED,
		[CORDON_STATE_REFUSED] = CORDON_SESSION_REFUSED,
	};

	return states[state];
}

/* Puts the result into record and log. A session has only three statuses; a cancelled run counts as completed. */
static void record_result(struct session_process *s, const struct cordon_result *result)
{
	bool fine = result->state == CORDON_STATE_COMPLETED || result->state == CORDON_STATE_CANCELLED;
	struct cordon_session_record *record = &s->record;

	record->state = state_of(result->state);
	record->status = fine ? CORDON_SESSION_COMPLETED : CORDON_SESSION_FAILED;
	record->ended = true;
	record->exit_code = result->exit_code;
	record->signal = result->signal ? result->signal : -1;
	record->duration_ms = (int64_t)result->duration_ms;
	record->violations = result->violations;
	record->failed_on_violation = result->failed_on_violation;
	put_time(&result->started, record->started_at);
	put_time(&result->ended, record->ended_at);
	put_layers(s, result);
	if (result->error.code) {
		json_decref(record->error);
		record->error = json_pack("{s:s, s:s, s:s, s:s}", "kind", cordon_kind_name(result->error.kind),
					  "message", result->error.message, "where", result->error.where, "hint",
					  result->error.hint);
	}
	if (result->limit && result->state == CORDON_STATE_FAILED) {
		bool own = result->hit_memory;

		json_decref(record->error);
		record->error = json_pack("{s:s, s:s, s:s, s:s}", "kind", cordon_kind_name(CORDON_KIND_LIMIT), "message",
					  own ? "the run used more memory than its limit allows, and was ended"
					      : "a control group around the run or the machine had no more memory, and "
						"the kernel killed the run",
					  "where", "", "hint",
					  own ? cordon_setting_name(CORDON_SETTING_MEMORY)
					      : "give it more memory there");
	}
	if (!result->error.code && result->failed_on_violation)
		cordon_supervisor_note(&s->job, "ended", "%s: exit code %d, but %u accesses were refused or warned of",
				       cordon_state_name(result->state), result->exit_code, result->violations);
	else if (!result->error.code && result->limit)
		cordon_supervisor_note(&s->job, "ended", "%s: limit: %s", cordon_state_name(result->state),
				       result->limit);
	else
		cordon_supervisor_note_end(&s->job, result);
	save(s);
}

/* Records and reports an error that happened before there was a run. */
static void refuse(struct session_process *s, const struct cordon_error *err)
{
	struct cordon_run_audit audit = { .log = s->audit, .policy = s->recipe.policy };
	struct cordon_result result = { 0 };

	cordon_result_refuse(&result, err);
	if (s->audit)
		cordon_run_audit_refusal(&audit, err);
	if (*s->record.id)
		record_result(s, &result);
	report_start(s, err);
}

static void note_repositories(struct session_process *s, const struct cordon_repositories *found)
{
	for (size_t i = 0; found && i < found->n && i < CORDON_REPOSITORIES_SHOWN_MAX; i++) {
		autobuf struct cordon_buf text = CORDON_BUF(2 * CORDON_PATH_MAX);

		if (cordon_repository_text(&found->items[i], &text) == 0)
			cordon_supervisor_note(&s->job, "warning", "%s", text.data);
	}
}

static int on_planned(void *data, const struct cordon_plan *plan, struct cordon_error *err)
{
	struct session_process *s = data;

	if (start_is_cancelled(s))
		return cordon_fail(err, -ECANCELED, CORDON_KIND_CONFLICT,
				   "the start was taken back before the program ran");
	put_run_id(s, plan->run_id);
	cordon_supervisor_note(&s->job, "started", "%s", plan->argv[0]);
	return 0;
}

static const struct cordon_supervisor_calls calls = {
	.planned = on_planned, .event = on_event, .screen = on_screen, .fds = on_fds, .serve = on_serve
};

/* Runs the program that the record describes, to its end. */
static int run_program(struct session_process *s, struct cordon_result *ret_result, struct cordon_error *err)
{
	autofree char **argv = strings_of(s->record.command);
	struct cordon_run_spec spec = s->recipe.spec;
	char cwd[CORDON_PATH_MAX];
	struct cordon_view_work work = {
		.policy = s->recipe.policy,
		.cow = cordon_recipe_value(&s->recipe.values, CORDON_RECIPE_COW),
		.git = (cordon_git_mode)cordon_recipe_value(&s->recipe.values, CORDON_RECIPE_GIT),
		.session = s->id,
	};
	int r;

	if (!argv || cordon_net_list_copy(&s->net, &s->recipe.policy->net) < 0)
		return cordon_no_memory(err);
	r = cordon_workspace_path(&s->store, s->record.project_id, s->record.workspace_id, cwd, err);
	if (r < 0)
		return r;
	spec.argv = argv;
	spec.cwd = cwd;
	spec.enterable = true;
	spec.measure = true;
	spec.terminal = s->job.streams.terminal;
	spec.session_id = s->id;
	spec.project_id = s->record.project_id;
	spec.workspace_id = s->record.workspace_id;
	return cordon_supervisor_run(&s->job, &s->store.home, &spec, &work, ret_result, err);
}

static void run(struct session_process *s)
{
	struct cordon_result result = { 0 };
	struct cordon_error err = { 0 };
	int r = prepare(s, &err);

	if (r == 0)
		r = run_program(s, &result, &err);
	if (r < 0 && !*result.run_id) {
		refuse(s, &err);
		return;
	}
	note_repositories(s, result.repositories);
	json_decref(s->record.git_result);
	s->record.git_result = cordon_supervisor_note_git(&s->job, &result);
	record_result(s, &result);
	report_start(s, result.error.code ? &result.error : NULL);
	cordon_result_done(&result);
}

static void clean_up(struct session_process *s)
{
	autoproject struct cordon_project project = CORDON_PROJECT_NONE;

	if (*s->record.id && cordon_project_hold(&s->store, s->record.project_id, LOCK_SH, &project, NULL) == 0)
		cordon_active_remove(&project, s->record.workspace_id, s->id);
	if (s->dir_fd >= 0 && s->control.handle)
		cordon_control_done(&s->control, s->dir_fd);
	cordon_audit_close(s->audit);
	cordon_closep(&s->timer);
	cordon_supervisor_done(&s->job);
	cordon_net_list_done(&s->net);
	cordon_recipe_done(&s->recipe);
	cordon_session_record_done(&s->record);
	cordon_closep(&s->dir_fd);
}

/* Runs the session whose record was prepared, to its end. Reports an error to the process that waits for the start,
 * and writes it into record, log and audit. Returns 0, or -errno when the store could not be opened, so that there is
 * no record to write. */
static int keep_session(const char *id)
{
	struct session_process s = { .store = CORDON_STORE_NONE,
				     .dir_fd = -1,
				     .job = CORDON_SUPERVISOR_NONE,
				     .control = { .listen_fd = -1 },
				     .timer = -1,
				     .start_fd = CORDON_SESSION_FD_START };
	struct cordon_error err = { 0 };
	int r = cordon_id_uuid("session_id", id, s.id, &err);

	s.job.calls = &calls;
	s.job.data = &s;
	s.job.role = "assistant";
	cordon_settings_name();
	if (r == 0)
		r = cordon_store_open(&s.store, &err);
	if (r < 0) {
		report_start(&s, &err);
		return r;
	}
	run(&s);
	clean_up(&s);
	cordon_store_done(&s.store);
	return 0;
}

int main(int argc, char **argv)
{
	/* No program that this process executes may inherit them. */
	for (int fd = CORDON_SESSION_FD_ALIVE; fd < CORDON_SESSION_FD__MAX; fd++) {
		if (argc != 2 || fcntl(fd, F_SETFD, FD_CLOEXEC) < 0) {
			fputs("cordon-job is started by 'cordon session start' and by 'cordon mcp'\n", stderr);
			return 2;
		}
	}
	return keep_session(argv[1]) < 0 ? 1 : 0;
}
