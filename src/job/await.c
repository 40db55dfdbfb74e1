/* SPDX-License-Identifier: Apache-2.0 */
/* Waits for a session that was started: until its program runs, its process reports why not, its process dies, or the
 * time is over. */
#include <poll.h>
#include <sys/socket.h>

#include "base/json.h"
#include "job/start.h"

#define ANSWER_MAX 65536
#define LOCK_TRIES 20
#define RETRY_MS 10

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

void cordon_session_start_of(struct cordon_session_start *start, const struct cordon_session_record *record,
			     bool spawned)
{
	struct cordon_session_answer *answer = &start->answer;

	cordon_copy(answer->session_id, sizeof(answer->session_id), record->id, strlen(record->id));
	cordon_copy(answer->workspace_id, sizeof(answer->workspace_id), record->workspace_id,
		    strlen(record->workspace_id));
	answer->spawned = spawned;
	if (spawned)
		start->due = cordon_time_monotonic() + CORDON_START_TIMEOUT_MS;
}

int cordon_session_start_begin(const struct cordon_store *store, const struct cordon_session_request *request,
			       struct cordon_session_start *start, struct cordon_error *err)
{
	return cordon_session_begin(store, request, start, err);
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

void cordon_session_refuse(const struct cordon_store *store, struct cordon_session_record *record,
			   const struct cordon_error *err)
{
	record->status = CORDON_SESSION_FAILED;
	record->state = CORDON_SESSION_REFUSED;
	json_decref(record->error);
	record->error = json_pack("{s:s, s:s, s:s}", "kind", cordon_kind_name(err->kind), "message", err->message,
				  "hint", err->hint);
	cordon_session_write(store, record, NULL);
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
	cordon_session_refuse(store, &record, err);
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

/* Begins the start as soon as no other one is under way in the workspace. A process that hangs while it starts a session
 * keeps the lock, so this gives up after some time. */
static int begin_in_turn(const struct cordon_store *store, const struct cordon_session_request *request,
			 struct cordon_session_start *start, struct cordon_error *err)
{
	int64_t until = cordon_time_monotonic() + CORDON_START_TIMEOUT_MS;
	int r;

	while ((r = cordon_session_begin(store, request, start, err)) == -EAGAIN) {
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
