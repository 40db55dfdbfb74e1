/* SPDX-License-Identifier: Apache-2.0 */
/* The process that keeps a session answers the requests that come through its control socket. */
#include <sys/timerfd.h>

#include "base/exit.h"
#include "base/json.h"
#include "config/net_setting.h"
#include "job/process.h"
#include "sandbox/host/enter.h"
#include "sandbox/host/net_process.h"

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

int cordon_session_send_input(struct session_process *s, const char *message, bool end_input)
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
	int r = message || end_input ? cordon_session_send_input(s, message, end_input) : 0;

	if (r == -EPIPE)
		return failure(CORDON_KIND_CONFLICT, "the session's standard input is closed");
	if (r < 0)
		return failure(CORDON_KIND_LIMIT, "the session does not read its standard input");
	if (message)
		cordon_session_write(&s->store, &s->record, NULL);
	return success(s);
}

void cordon_session_end_after(struct session_process *s, int64_t grace_ms)
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
	cordon_session_end_after(s, grace);
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

char **cordon_session_strings(const json_t *array)
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
	argv = cordon_session_strings(command);
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

void cordon_session_report_exit(struct session_process *s, const struct cordon_event *event)
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

int cordon_session_serve(struct session_process *s, struct cordon_error *err)
{
	s->control = (struct cordon_control){ .listen_fd = -1,
					      .handle = handle,
					      .disconnected = on_disconnected,
					      .frame = on_frame,
					      .data = s,
					      .recent = &s->job.streams.recent };
	return cordon_control_open(&s->control, s->dir_fd, err);
}
