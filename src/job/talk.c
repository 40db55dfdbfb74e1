/* SPDX-License-Identifier: Apache-2.0 */
/* For other processes: sends to a session, reads its output, stops it, waits for its end, runs further commands in
 * it, and allows it a host or a path that its settings do not have. */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/inotify.h>

#include "audit/audit.h"
#include "base/json.h"
#include "base/time.h"
#include "job/control.h"
#include "job/internal.h"
#include "job/log.h"
#include "job/session.h"

#define WAIT_STEP_MS 200

/* Sends a request to the session's process and waits for its answer; kind conflict when there is no process. */
static int ask_session(const struct cordon_store *store, const char *id, json_t *request, json_t **ret_answer,
		       struct cordon_error *err)
{
	autofd int dir = -1;
	autofd int fd = -1;
	int r = cordon_session_open(store, id, &dir, err);

	if (r == 0)
		r = cordon_control_connect(dir, &fd, err);
	if (r < 0) {
		json_decref(request);
		return r;
	}
	return cordon_control_ask(fd, request, ret_answer, err);
}

int cordon_session_send(const struct cordon_store *store, const char *id, const char *message, bool end_input,
			int64_t *ret_index, struct cordon_error *err)
{
	json_auto_t *answer = NULL;
	json_t *text;
	int r;

	if (message && strlen(message) > CORDON_MESSAGE_MAX)
		return cordon_fail(err, -E2BIG, CORDON_KIND_LIMIT, "a message has at most %zu bytes",
				   CORDON_MESSAGE_MAX);
	text = message ? json_string(message) : json_null();
	if (!text)
		return cordon_fail(err, -EILSEQ, CORDON_KIND_USAGE, "the message is not valid UTF-8");
	r = ask_session(store, id,
			json_pack("{s:s, s:o, s:b}", "op", "send", "message", text, "end_input", (int)end_input),
			&answer, err);
	if (r < 0)
		return r;
	*ret_index = cordon_json_integer(answer, "last_event_index");
	return 0;
}

int cordon_session_stop(const struct cordon_store *store, const char *id, uint64_t grace_ms, struct cordon_error *err)
{
	autosessionrecord struct cordon_session_record record = { 0 };
	int r = cordon_session_get(store, id, &record, err);

	if (r < 0 || record.status != CORDON_SESSION_ACTIVE)
		return r;
	r = ask_session(store, id, json_pack("{s:s, s:I}", "op", "stop", "grace_ms", (json_int_t)grace_ms), NULL, err);
	/* An error does not matter when the session ended by itself meanwhile. */
	return r < 0 && !cordon_session_lives(store, record.id) ? 0 : r;
}

int cordon_session_net(const struct cordon_store *store, const char *id, json_t *allow, json_t *revoke,
		       json_t **ret_net, struct cordon_error *err)
{
	json_auto_t *answer = NULL;
	json_t *request = json_pack("{s:s, s:O*, s:O*}", "op", "net", "allow", allow, "revoke", revoke);
	int r = ask_session(store, id, request, &answer, err);

	if (r < 0)
		return r;
	*ret_net = json_incref(json_object_get(answer, "net"));
	return 0;
}

int cordon_session_output(const struct cordon_store *store, const char *id, int64_t since, size_t max,
			  json_t **ret_output, struct cordon_error *err)
{
	autosessionrecord struct cordon_session_record record = { 0 };
	json_t *events = NULL, *output, *event;
	int64_t last = 0, dropped = 0;
	autofd int dir = -1;
	bool more;
	size_t i;
	/* Read the record first: when it says that the session has ended, all its events have been written. */
	int r = cordon_session_get(store, id, &record, err);

	if (r == 0)
		r = cordon_session_open(store, id, &dir, err);
	if (r == 0)
		r = cordon_job_log_read(dir, since, max, &events, &last, &dropped, err);
	if (r < 0)
		return r;
	json_array_foreach(events, i, event) {
		json_object_set_new(event, "session_id", json_string(record.id));
	}
	/* Who wants at most so many gets the rest with the index of the last of them. */
	event = max ? json_array_get(events, max - 1) : NULL;
	more = event && cordon_json_integer(event, "index") < last;
	if (more)
		last = cordon_json_integer(event, "index");
	output = json_pack("{s:s, s:s, s:I, s:o, s:b, s:b, s:O*, s:I}", "session_id", record.id, "status",
			   cordon_session_status_name(record.status), "last_index", (json_int_t)last, "events", events,
			   "completed", record.status == CORDON_SESSION_COMPLETED, "failed",
			   record.status == CORDON_SESSION_FAILED, "error", record.error, "dropped_events",
			   (json_int_t)dropped);
	if (!output)
		return cordon_no_memory(err);
	if (more)
		json_object_set_new(output, "more", json_true());
	*ret_output = output;
	return 0;
}

int cordon_session_wait(const struct cordon_store *store, const char *id, uint64_t timeout_ms, struct cordon_error *err)
{
	autofd int dir = -1;
	char judged[CORDON_ID_SIZE];
	int64_t began = cordon_time_monotonic();
	autofd int watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	char path[64], events[4096];
	int r = cordon_id_uuid("session_id", id, judged, err);

	if (r == 0)
		r = cordon_session_open(store, id, &dir, err);
	if (r < 0)
		return r;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", dir);
	/* The session's process writes its record shortly before it ends, and inotify reports that. Nothing reports the
	 * release of its lock a moment later, so we look again after 1 ms, and every WAIT_STEP_MS in any case. */
	if (watch >= 0)
		inotify_add_watch(watch, path, IN_MOVED_TO | IN_DELETE);
	while (cordon_session_lives(store, judged)) {
		struct pollfd fd = { .fd = watch, .events = POLLIN };
		uint64_t passed = (uint64_t)(cordon_time_monotonic() - began);

		if (passed >= timeout_ms)
			return cordon_fail(err, -ETIMEDOUT, CORDON_KIND_LIMIT, "session %s has not ended yet", judged);
		if (poll(&fd, 1, timeout_ms - passed < WAIT_STEP_MS ? (int)(timeout_ms - passed) : WAIT_STEP_MS) > 0) {
			while (read(watch, events, sizeof(events)) > 0)
				;
			poll(NULL, 0, 1);
		}
	}
	return 0;
}

/* ---- further commands ----
 *
 * Their streams are pipes, because a file of the caller would lead out of the sandbox. */

static int make_pipes(struct cordon_session_exec *exec, int ret_inner[static CORDON_CONTROL_FDS])
{
	int pair[2];

	if (pipe2(pair, O_CLOEXEC) < 0)
		return -errno;
	ret_inner[0] = pair[0];
	exec->input = pair[1];
	for (int i = 0; i < 2; i++) {
		if (pipe2(pair, O_CLOEXEC) < 0)
			return -errno;
		exec->output[i] = pair[0];
		ret_inner[1 + i] = pair[1];
	}
	if (fcntl(exec->input, F_SETFL, O_NONBLOCK) < 0 || fcntl(exec->output[0], F_SETFL, O_NONBLOCK) < 0 ||
	    fcntl(exec->output[1], F_SETFL, O_NONBLOCK) < 0)
		return -errno;
	return 0;
}

int cordon_session_exec_begin(const struct cordon_store *store, const char *id, json_t *command,
			      struct cordon_session_exec *ret_exec, struct cordon_error *err)
{
	struct cordon_session_exec exec = CORDON_SESSION_EXEC_NONE;
	int inner[CORDON_CONTROL_FDS] = { -1, -1, -1 };
	autofd int dir = -1;
	int r = cordon_session_open(store, id, &dir, err);

	if (r == 0)
		r = cordon_control_connect(dir, &exec.control, err);
	if (r == 0 && (r = make_pipes(&exec, inner)) < 0)
		cordon_fail_errno(err, r, "cannot make a pipe");
	if (r == 0)
		r = cordon_control_ask_with(exec.control, json_pack("{s:s, s:O}", "op", "exec", "command", command),
					    inner, err);
	for (int i = 0; i < CORDON_CONTROL_FDS; i++)
		cordon_closep(&inner[i]);
	if (r < 0)
		cordon_session_exec_done(&exec);
	else
		*ret_exec = exec;
	return r;
}

int cordon_session_exec_answer(const struct cordon_session_exec *exec, json_t **ret_answer, struct cordon_error *err)
{
	return cordon_control_answer(exec->control, ret_answer, err);
}

void cordon_session_exec_done(struct cordon_session_exec *exec)
{
	cordon_closep(&exec->control);
	cordon_closep(&exec->input);
	cordon_closep(&exec->output[0]);
	cordon_closep(&exec->output[1]);
}

/* ---- allowances ---- */

/* What is known about a session and an allowance for it. */
struct allowing {
	const struct cordon_store *store;
	struct cordon_session_record session;
	struct cordon_project_record project; /* its settings, and all that the session gets at its next start */
	json_t *allowance;
	bool runs;
	bool has;      /* the running session has it */
	bool has_next; /* it would have it after its next start */
};

static void allowing_done(struct allowing *allowing)
{
	cordon_session_record_done(&allowing->session);
	cordon_project_record_done(&allowing->project);
	json_decref(allowing->allowance);
}

#define autoallowing CORDON_CLEANUP(allowing_done)

static int find_allowance(const struct cordon_store *store, const char *id, const struct cordon_allowance *wanted,
			  cordon_approval_span span, struct allowing *allowing, struct cordon_error *err)
{
	int r = cordon_allowance_make(wanted, &allowing->allowance, err);

	allowing->store = store;
	if (r == 0)
		r = cordon_session_get(store, id, &allowing->session, err);
	if (r == 0)
		r = cordon_project_get(store, allowing->session.project_id, &allowing->project, err);
	if (r == 0 && span != CORDON_APPROVAL_POLICY)
		r = cordon_allowances_apply(allowing->session.allowances, span == CORDON_APPROVAL_SESSION,
					    &allowing->project.settings, err);
	if (r < 0)
		return r;
	allowing->runs = allowing->session.status == CORDON_SESSION_ACTIVE;
	allowing->has = allowing->runs && cordon_allowance_within(allowing->allowance, &allowing->session.settings);
	allowing->has_next = cordon_allowance_within(allowing->allowance, &allowing->project.settings);
	return 0;
}

/* Whether it can be: no share shows what must not be seen, and its path exists. */
static int judge(const struct allowing *allowing, struct cordon_error *err)
{
	return allowing->has_next ? 0 : cordon_allowance_judge(allowing->allowance, &allowing->project.settings, err);
}

static void tell(const struct allowing *allowing, struct cordon_session_allowed *ret_allowed)
{
	ret_allowed->now = allowing->has;
	ret_allowed->already = allowing->has || allowing->has_next;
	snprintf(ret_allowed->text, sizeof(ret_allowed->text), "%s", cordon_allowance_text(allowing->allowance));
}

int cordon_session_may_allow(const struct cordon_store *store, const char *id, const struct cordon_allowance *allowance,
			     bool only_words, struct cordon_session_record *ret_session,
			     struct cordon_session_allowed *ret_allowed, struct cordon_error *err)
{
	autoallowing struct allowing allowing = { 0 };
	int r = find_allowance(store, id, allowance, CORDON_APPROVAL_ONCE, &allowing, err);

	if (r == 0 && !only_words)
		r = judge(&allowing, err);
	if (r < 0)
		return r;
	tell(&allowing, ret_allowed);
	if (ret_session) {
		*ret_session = allowing.session;
		allowing.session = (struct cordon_session_record){ 0 };
	}
	return 0;
}

static int audit(const struct allowing *allowing, cordon_approval_span span, struct cordon_error *err)
{
	const struct cordon_audit_ids ids = { .session_id = allowing->session.id,
					      .project_id = allowing->session.project_id,
					      .workspace_id = allowing->session.workspace_id };
	bool host = json_object_get(allowing->allowance, "host");
	json_auto_t *detail = json_pack("{s:s, s:s}", host ? "host" : "share",
					cordon_allowance_text(allowing->allowance), "for",
					cordon_approval_span_name(span));
	const struct cordon_audit_event event = {
		.type = CORDON_AUDIT_GRANT, .op = host ? "net" : "share", .decision = "allow", .detail = detail
	};
	struct cordon_audit *log = NULL;
	int r = detail ? cordon_audit_open(&allowing->store->home, &ids, &log, err) : cordon_no_memory(err);

	if (r == 0)
		r = cordon_audit_write(log, &event, err);
	cordon_audit_close(log);
	return r;
}

/* Changes the list of hosts of the running session. A session that was started without one has none that could be
 * changed. */
static int allow_now(struct allowing *allowing, struct cordon_error *err)
{
	json_t *host = json_object_get(allowing->allowance, "host");
	json_auto_t *hosts = host ? json_pack("[O]", host) : NULL;
	json_auto_t *net = NULL;
	struct cordon_net_list list = { 0 };
	bool none;
	int r;

	if (!host || allowing->has || !allowing->runs)
		return 0;
	none = cordon_settings_net(&allowing->session.settings, &list, NULL) < 0 || cordon_net_list_is_none(&list);
	cordon_net_list_done(&list);
	r = cordon_session_net(allowing->store, allowing->session.id, hosts, NULL, &net, err);
	if (r < 0 && none && err->kind == CORDON_KIND_CONFLICT)
		return 0;
	allowing->has = r == 0;
	return r;
}

/* Puts the allowance into the record of a session that has ended; its lock keeps others from starting it. */
static int put_ended(const struct allowing *allowing, const json_t *allowance, struct cordon_error *err)
{
	autosessionrecord struct cordon_session_record record = { 0 };
	autofd int dir = -1;
	autofd int alive = -1;
	int r = cordon_session_open(allowing->store, allowing->session.id, &dir, err);

	if (r == 0)
		r = cordon_lock_take(dir, "alive", LOCK_EX | LOCK_NB, &alive, err);
	if (r == -EWOULDBLOCK)
		return cordon_fail(err, -EAGAIN, CORDON_KIND_CONFLICT,
				   "session %s is just being started or ended: try again", allowing->session.id);
	if (r == 0)
		r = cordon_session_read(allowing->store, allowing->session.id, &record, err);
	if (r == 0)
		r = cordon_allowances_put(&record.allowances, allowance, err);
	return r < 0 ? r : cordon_session_write(allowing->store, &record, err);
}

/* Keeps the allowance for the next starts of the session, or for one of them. While the session runs, only its
 * process writes its record. */
static int keep(const struct allowing *allowing, bool once, struct cordon_error *err)
{
	json_auto_t *allowance = json_deep_copy(allowing->allowance);
	autofd int dir = -1;
	autofd int fd = -1;
	int r;

	if (!allowance || (once && json_object_set_new(allowance, "once", json_true()) < 0))
		return cordon_no_memory(err);
	if (!allowing->runs)
		return put_ended(allowing, allowance, err);
	r = cordon_session_open(allowing->store, allowing->session.id, &dir, err);
	if (r == 0)
		r = cordon_control_connect(dir, &fd, err);
	return r < 0 ? r
		     : cordon_control_ask(fd, json_pack("{s:s, s:O}", "op", "allow", "allowance", allowance), NULL, err);
}

int cordon_session_allow(const struct cordon_store *store, const char *id, const struct cordon_allowance *allowance,
			 cordon_approval_span span, const char *run, struct cordon_session_allowed *ret_allowed,
			 struct cordon_error *err)
{
	autoallowing struct allowing allowing = { 0 };
	int r = find_allowance(store, id, allowance, span, &allowing, err);
	bool keeps;

	if (r == 0)
		r = judge(&allowing, err);
	if (r < 0)
		return r;
	if (span == CORDON_APPROVAL_ONCE && run && !cordon_streq(run, allowing.session.run_id))
		return cordon_fail(err, -ESTALE, CORDON_KIND_CONFLICT,
				   "the run of session %s that this was approved for has ended", allowing.session.id);
	tell(&allowing, ret_allowed);
	/* What the run has need not be kept for another one. */
	ret_allowed->already = span == CORDON_APPROVAL_ONCE ? allowing.has || allowing.has_next
							    : allowing.has_next && (allowing.has || !allowing.runs);
	if (ret_allowed->already)
		return 0;
	r = cordon_allowance_confirm(allowing.allowance, err);
	if (r == 0)
		r = audit(&allowing, span, err);
	if (r == 0)
		r = allow_now(&allowing, err);
	if (r < 0)
		return r;
	keeps = !allowing.has_next && (span != CORDON_APPROVAL_ONCE || !allowing.has);
	if (keeps && span == CORDON_APPROVAL_POLICY)
		r = cordon_project_allow(store, allowing.project.id, allowing.allowance, err);
	else if (keeps)
		r = keep(&allowing, span == CORDON_APPROVAL_ONCE, err);
	ret_allowed->now = allowing.has;
	return r;
}

/* The allowance of an approval, as it was recorded. */
static struct cordon_allowance allowance_of(const json_t *allowance)
{
	return (struct cordon_allowance){ .host = cordon_json_string(allowance, "host"),
					  .path = cordon_json_string(allowance, "path"),
					  .write = cordon_json_is(allowance, "access", "write") };
}

int cordon_session_decide(const struct cordon_store *store, const char *id, const struct cordon_approval_answer *answer,
			  struct cordon_approval_record *ret_record, struct cordon_session_allowed *ret_allowed,
			  struct cordon_error *err)
{
	autoapproval struct cordon_approval_record record = { 0 };
	struct cordon_allowance allowance;
	int r = cordon_approval_answer(store, id, answer, &record, err);

	if (r == 0 && answer->approve && record.grant) {
		allowance = allowance_of(record.grant);
		r = cordon_session_allow(store, record.session_id, &allowance, answer->span,
					 cordon_json_string(record.grant, "run_id"), ret_allowed, err);
		/* The call has nothing left to do. If it comes first, that is as good. */
		if (r == 0 && cordon_approval_use(store, id, NULL, NULL, NULL) == 0)
			record.state = CORDON_APPROVAL_DONE;
		if (r < 0) {
			cordon_error_prefix(err, r, "approved, but not in effect");
			r = -EREMOTEIO;
		}
	}
	if (r < 0)
		return r;
	*ret_record = record;
	record = (struct cordon_approval_record){ 0 };
	return 0;
}
