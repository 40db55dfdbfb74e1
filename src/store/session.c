/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions as records: found, listed, waited for, lost, cleaned up; and talked to while they run. */
#include <poll.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#include "base/resolve.h"
#include "base/time.h"
#include "base/tree.h"
#include "store/session_control.h"
#include "store/session_internal.h"
#include "store/session_log.h"

#define WAIT_STEP_MS 200

json_t *cordon_session_public(const json_t *record)
{
	static const char *const hidden[] = { "pid", "env_pass", "env", "context", NULL };

	return cordon_record_public(record, hidden);
}

int cordon_session_open(const struct cordon_store *store, const char *id, int *ret_dir_fd, struct cordon_error *err)
{
	char judged[CORDON_ID_SIZE];
	int fd, r = cordon_id_uuid("session_id", id, judged, err);

	if (r < 0)
		return r;
	fd = openat(store->sessions_fd, judged, CORDON_OPEN_DIR);
	if (fd < 0 && errno == ENOENT) {
		r = cordon_fail(err, -ENOENT, CORDON_KIND_NOT_FOUND, "session %s does not exist", judged);
		cordon_error_hint(err,
				  "see 'cordon session list'; ended sessions are removed by 'cordon session cleanup'");
		return r;
	}
	if (fd < 0)
		return cordon_fail_errno(err, -errno, "cannot open session %s", judged);
	*ret_dir_fd = fd;
	return 0;
}

int cordon_session_read(const struct cordon_store *store, const char *id, json_t **ret_record, struct cordon_error *err)
{
	autofd int dir = -1;
	int r = cordon_session_open(store, id, &dir, err);

	return r < 0 ? r : cordon_record_read(dir, "record.json", ret_record, err);
}

int cordon_session_write(const struct cordon_store *store, const char *id, json_t *record, struct cordon_error *err)
{
	autostage struct cordon_stage stage = CORDON_STAGE_NONE;
	autofd int dir = -1;
	int r = cordon_session_open(store, id, &dir, err);

	if (r == 0 && cordon_record_stamp(record, "updated_at") < 0)
		r = cordon_no_memory(err);
	if (r == 0)
		r = cordon_stage_temp(store, &stage, err);
	if (r == 0)
		r = cordon_stage_record(&stage, dir, "record.json", record, err);
	/* The list of sessions shows how each stands; those who watch the list see a change of its directory. */
	if (r == 0)
		futimens(store->sessions_fd, NULL);
	return r;
}

int cordon_session_publish(const struct cordon_store *store, const struct cordon_project *project, const json_t *record,
			   struct cordon_error *err)
{
	autostage struct cordon_stage stage = CORDON_STAGE_NONE;
	json_auto_t *copy = cordon_session_public(record);
	char name[CORDON_ID_SIZE + 8];
	autofd int dir = -1;
	int r = cordon_store_dir(project->tree_fd, "sessions", &dir, err);

	snprintf(name, sizeof(name), "%s.json", cordon_record_text(record, "session_id"));
	if (r == 0)
		r = cordon_stage_temp(store, &stage, err);
	return r < 0 ? r : cordon_publish(&stage, dir, name, copy, err);
}

int cordon_session_stamp_workspace(const struct cordon_store *store, const struct cordon_project *project,
				   const char *workspace, const char *session, struct cordon_error *err)
{
	autostage struct cordon_stage stage = CORDON_STAGE_NONE;
	json_auto_t *record = NULL;
	char name[CORDON_ID_SIZE + 8];
	autofd int dir = -1;
	int r = cordon_workspace_read(project, workspace, &record, err);

	if (r == 0 && (cordon_record_stamp(record, "last_session_at") < 0 ||
		       json_object_set_new(record, "last_session_id", json_string(session)) < 0))
		r = cordon_no_memory(err);
	if (r == 0)
		r = cordon_store_dir(project->state_fd, "workspaces", &dir, err);
	if (r == 0)
		r = cordon_stage_temp(store, &stage, err);
	snprintf(name, sizeof(name), "%s.json", workspace);
	return r < 0 ? r : cordon_stage_record(&stage, dir, name, record, err);
}

int cordon_session_add_turn(json_t *record, const char *message)
{
	json_t *turns = json_object_get(record, "turns");
	json_auto_t *turn = json_object();
	size_t n = strlen(message);

	if (n > CORDON_TURN_TEXT_MAX) {
		n = CORDON_TURN_TEXT_MAX;
		while (n && ((unsigned char)message[n] & 0xc0) == 0x80)
			n--;
	}
	if (!json_is_array(turns) || cordon_record_stamp(turn, "at") < 0 ||
	    json_object_set_new(turn, "message", json_stringn(message, n)) < 0 || json_array_append(turns, turn) < 0)
		return -ENOMEM;
	while (json_array_size(turns) > CORDON_TURNS_MAX)
		json_array_remove(turns, 0);
	return 0;
}

/* A record that says active without anybody who looks after it: says so from now on. */
static int settle(const struct cordon_store *store, json_t **record, struct cordon_error *err)
{
	char id[CORDON_ID_SIZE];
	autofd int dir = -1;
	autofd int alive = -1;
	json_t *now = NULL;
	int r = cordon_id_uuid("session_id", cordon_record_text(*record, "session_id"), id, err);

	if (r < 0)
		return r;
	if (!cordon_streq(cordon_record_text(*record, "status"), "active") || cordon_session_lives(store, id))
		return 0;
	r = cordon_session_open(store, id, &dir, err);
	if (r < 0)
		return r;
	r = cordon_lock_take(dir, "alive", LOCK_EX | LOCK_NB, &alive, NULL);
	if (r < 0)
		return 0; /* it is being resumed just now */
	/* It may have ended properly between our looks. */
	r = cordon_record_read(dir, "record.json", &now, err);
	if (r < 0)
		return r;
	json_decref(*record);
	*record = now;
	if (!cordon_streq(cordon_record_text(now, "status"), "active"))
		return 0;
	if (json_object_set_new(now, "status", json_string("failed")) < 0 ||
	    json_object_set_new(now, "state", json_string("lost")) < 0 ||
	    json_object_set_new(now, "error",
				json_pack("{s:s, s:s}", "kind", "internal", "message",
					  "the session was lost: its supervisor was killed, or the machine went down")) <
		    0)
		return cordon_no_memory(err);
	return cordon_session_write(store, id, now, err);
}

static int read_settled(const struct cordon_store *store, const char *id, json_t **ret_record, struct cordon_error *err)
{
	json_t *record = NULL;
	int r = cordon_session_read(store, id, &record, err);

	if (r == 0)
		r = settle(store, &record, err);
	if (r < 0) {
		json_decref(record);
		return r;
	}
	*ret_record = record;
	return 0;
}

int cordon_session_get(const struct cordon_store *store, const char *id, json_t **ret_session, struct cordon_error *err)
{
	json_auto_t *record = NULL;
	json_t *answer;
	int r = read_settled(store, id, &record, err);

	if (r < 0)
		return r;
	answer = cordon_session_public(record);
	if (!answer)
		return cordon_no_memory(err);
	*ret_session = answer;
	return 0;
}

static bool matches(const json_t *record, const struct cordon_session_query *query, const char *project,
		    const char *workspace)
{
	return (!*project || cordon_streq(cordon_record_text(record, "project_id"), project)) &&
	       (!*workspace || cordon_streq(cordon_record_text(record, "workspace_id"), workspace)) &&
	       (!query->status || cordon_streq(cordon_record_text(record, "status"), query->status));
}

static int compare(const void *a, const void *b)
{
	const json_t *x = *(json_t *const *)a, *y = *(json_t *const *)b;
	int r = strcmp(cordon_record_text(x, "created_at"), cordon_record_text(y, "created_at"));

	return r ? r : strcmp(cordon_record_text(x, "session_id"), cordon_record_text(y, "session_id"));
}

/* Reads all records that match; one that is removed meanwhile is no part of the list. */
static int gather(const struct cordon_store *store, const struct cordon_session_query *query, json_t *list,
		  struct cordon_error *err)
{
	char project[CORDON_ID_SIZE] = "", workspace[CORDON_ID_SIZE] = "";
	json_auto_t *names = NULL;
	size_t i;
	json_t *name;
	int r = cordon_record_names(store->sessions_fd, NULL, &names, err);

	if (r == 0 && query->project)
		r = cordon_id_uuid("project_id", query->project, project, err);
	if (r == 0 && query->workspace)
		r = cordon_id_workspace("workspace_id", query->workspace, workspace, err);
	if (r < 0)
		return r;
	json_array_foreach(names, i, name) {
		json_auto_t *record = NULL;

		r = read_settled(store, json_string_value(name), &record, err);
		if (r == -ENOENT || r == -EINVAL)
			continue;
		if (r < 0)
			return r;
		if (matches(record, query, project, workspace) && json_array_append(list, record) < 0)
			return cordon_no_memory(err);
	}
	return 0;
}

int cordon_session_list(const struct cordon_store *store, const struct cordon_session_query *query,
			json_t **ret_sessions, size_t *ret_total, struct cordon_error *err)
{
	json_auto_t *all = json_array();
	json_auto_t *list = json_array();
	size_t limit = query->limit ? query->limit : CORDON_LIST_MAX;
	json_t **sorted;
	size_t n;
	int r = gather(store, query, all, err);

	if (r < 0)
		return r;
	n = json_array_size(all);
	sorted = calloc(n + 1, sizeof(json_t *));
	if (!sorted)
		return cordon_no_memory(err);
	for (size_t i = 0; i < n; i++)
		sorted[i] = json_array_get(all, i);
	qsort(sorted, n, sizeof(json_t *), compare);
	for (size_t i = query->offset; r == 0 && i < n && i - query->offset < limit; i++)
		if (json_array_append_new(list, cordon_session_public(sorted[i])) < 0)
			r = cordon_no_memory(err);
	free(sorted);
	if (r < 0)
		return r;
	*ret_sessions = cordon_steal_ptr(&list);
	if (ret_total)
		*ret_total = n;
	return 0;
}

/* Asks the supervisor; conflict when there is none. */
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
	*ret_index = json_integer_value(json_object_get(answer, "last_event_index"));
	return 0;
}

int cordon_session_stop(const struct cordon_store *store, const char *id, uint64_t grace_ms, struct cordon_error *err)
{
	json_auto_t *record = NULL;
	int r = read_settled(store, id, &record, err);

	if (r < 0 || !cordon_streq(cordon_record_text(record, "status"), "active"))
		return r;
	r = ask(store, id, json_pack("{s:s, s:I}", "op", "stop", "grace_ms", (json_int_t)grace_ms), NULL, err);
	/* It ended by itself before we could say so. */
	return r < 0 && !cordon_session_lives(store, cordon_record_text(record, "session_id")) ? 0 : r;
}

int cordon_session_output(const struct cordon_store *store, const char *id, int64_t since, size_t max,
			  json_t **ret_output, struct cordon_error *err)
{
	json_auto_t *record = NULL;
	json_t *events = NULL, *output, *event;
	const char *status, *session;
	int64_t last, dropped;
	autofd int dir = -1;
	size_t i;
	/* The record first: what it says has ended has all its events written. */
	int r = read_settled(store, id, &record, err);

	if (r == 0)
		r = cordon_session_open(store, id, &dir, err);
	if (r == 0)
		r = cordon_session_log_read(dir, since, max, &events, &last, &dropped, err);
	if (r < 0)
		return r;
	status = cordon_record_text(record, "status");
	session = cordon_record_text(record, "session_id");
	json_array_foreach(events, i, event) {
		json_object_set_new(event, "session_id", json_string(session));
	}
	output = json_pack("{s:s, s:s, s:I, s:o, s:b, s:b, s:O*, s:I}", "session_id", session, "status", status,
			   "last_index", (json_int_t)last, "events", events, "completed",
			   cordon_streq(status, "completed"), "failed", cordon_streq(status, "failed"), "error",
			   json_object_get(record, "error"), "dropped_events", (json_int_t)dropped);
	if (!output)
		return cordon_no_memory(err);
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
	/* The supervisor's last act is a record; its lock goes a moment later, which nothing announces. */
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

/* The copy that was made for whoever looks into the project; an agent may have put anything in its place. */
static void unpublish(const struct cordon_store *store, const char *project, const char *session)
{
	char path[2 * CORDON_ID_SIZE + 16];
	autofd int dir = -1;

	snprintf(path, sizeof(path), "%s/sessions", project);
	dir = cordon_open_beneath(store->trees_fd, path, CORDON_OPEN_DIR);
	if (dir < 0)
		return;
	snprintf(path, sizeof(path), "%s.json", session);
	unlinkat(dir, path, 0);
}

int cordon_session_cleanup(const struct cordon_store *store, uint64_t max_age_ms, size_t *ret_removed,
			   struct cordon_error *err)
{
	struct cordon_session_query all = { 0 };
	json_auto_t *sessions = NULL;
	int64_t now = cordon_time_now();
	size_t i, removed = 0;
	json_t *session;
	int r = cordon_session_list(store, &all, &sessions, NULL, err);

	if (r < 0)
		return r;
	json_array_foreach(sessions, i, session) {
		autostage struct cordon_stage stage = CORDON_STAGE_NONE;
		const char *id = cordon_record_text(session, "session_id");
		autofd int alive = -1;
		autofd int dir = -1;
		int64_t then;

		if (cordon_streq(cordon_record_text(session, "status"), "active") ||
		    cordon_time_parse(cordon_record_text(session, "updated_at"), &then) < 0 ||
		    now - then < (int64_t)(max_age_ms < INT64_MAX ? max_age_ms : INT64_MAX))
			continue;
		/* Held, so that nobody resumes it meanwhile. */
		if (cordon_session_open(store, id, &dir, NULL) < 0 ||
		    cordon_lock_take(dir, "alive", LOCK_EX | LOCK_NB, &alive, NULL) < 0)
			continue;
		r = cordon_stage_temp(store, &stage, err);
		if (r < 0)
			return r;
		r = cordon_tree_move(store->sessions_fd, id, stage.fd, "session");
		if (r < 0)
			return cordon_fail_errno(err, r, "cannot remove session %s", id);
		unpublish(store, cordon_record_text(session, "project_id"), id);
		removed++;
	}
	*ret_removed = removed;
	return 0;
}
