/* SPDX-License-Identifier: Apache-2.0 */
/* For other processes: sends to a session, reads its output, stops it, waits for its end. */
#include <poll.h>
#include <stdio.h>
#include <sys/inotify.h>

#include "base/json.h"
#include "base/time.h"
#include "job/control.h"
#include "job/internal.h"
#include "job/log.h"

#define WAIT_STEP_MS 200

/* Sends a request to the session's process and waits for its answer; kind conflict when there is no process. */
static int ask(const struct cordon_store *store, const char *id, json_t *request, json_t **ret_answer,
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
	r = ask(store, id, json_pack("{s:s, s:o, s:b}", "op", "send", "message", text, "end_input", (int)end_input),
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
	r = ask(store, id, json_pack("{s:s, s:I}", "op", "stop", "grace_ms", (json_int_t)grace_ms), NULL, err);
	/* An error does not matter when the session ended by itself meanwhile. */
	return r < 0 && !cordon_session_lives(store, record.id) ? 0 : r;
}

int cordon_session_net(const struct cordon_store *store, const char *id, json_t *allow, json_t *revoke,
		       json_t **ret_net, struct cordon_error *err)
{
	json_auto_t *answer = NULL;
	json_t *request = json_pack("{s:s, s:O*, s:O*}", "op", "net", "allow", allow, "revoke", revoke);
	int r = ask(store, id, request, &answer, err);

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
