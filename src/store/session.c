/* SPDX-License-Identifier: Apache-2.0 */
/* The records of sessions: makes, reads, writes, publishes, lists and removes them, and marks those of lost
 * sessions. */
#include <stdio.h>
#include <sys/stat.h>

#include "base/dirs.h"
#include "base/json.h"
#include "base/resolve.h"
#include "state/kinds.h"
#include "store/internal.h"

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

int cordon_session_read(const struct cordon_store *store, const char *id, struct cordon_session_record *ret_record,
			struct cordon_error *err)
{
	autofd int dir = -1;
	int r = cordon_session_open(store, id, &dir, err);

	return r < 0 ? r : cordon_record_load(&cordon_session_kind, dir, "record.json", ret_record, err);
}

int cordon_session_write(const struct cordon_store *store, struct cordon_session_record *record,
			 struct cordon_error *err)
{
	autostage struct cordon_stage stage = CORDON_STAGE_NONE;
	autofd int dir = -1;
	int r = cordon_session_open(store, record->id, &dir, err);

	if (r == 0)
		r = cordon_stage_temp(store, &stage, err);
	cordon_record_stamp(record->updated_at);
	if (r == 0)
		r = cordon_stage_save(&stage, &cordon_session_kind, dir, "record.json", record, err);
	/* A list of sessions shows the status of each. A process that watches the list learns of the change from
	 * this. */
	if (r == 0)
		futimens(store->sessions_fd, NULL);
	return r;
}

int cordon_session_make(const struct cordon_store *store, struct cordon_session_record *record, int *ret_alive,
			struct cordon_error *err)
{
	autostage struct cordon_stage stage = CORDON_STAGE_NONE;
	autofd int dir = -1;
	autofd int alive = -1;
	int r = cordon_stage_temp(store, &stage, err);

	if (r == 0)
		r = cordon_state_dir(stage.fd, "session", &dir, err);
	if (r == 0)
		r = cordon_lock_take(dir, "alive", LOCK_EX, &alive, err);
	cordon_record_stamp(record->updated_at);
	if (r == 0)
		r = cordon_record_save(&cordon_session_kind, dir, "record.json", record, err);
	if (r < 0)
		return r;
	if (renameat2(stage.fd, "session", store->sessions_fd, record->id, RENAME_NOREPLACE) < 0 ||
	    fsync(store->sessions_fd) < 0)
		return cordon_fail_errno(err, -errno, "cannot make the session's directory");
	*ret_alive = cordon_steal_fd(&alive);
	return 0;
}

int cordon_session_publish(const struct cordon_store *store, const struct cordon_project *project,
			   const struct cordon_session_record *record, struct cordon_error *err)
{
	autostage struct cordon_stage stage = CORDON_STAGE_NONE;
	json_auto_t *copy = cordon_session_json(record);
	char name[CORDON_ID_SIZE + 8];
	autofd int dir = -1;
	int r = cordon_state_dir(project->tree_fd, "sessions", &dir, err);

	snprintf(name, sizeof(name), "%s.json", record->id);
	if (r == 0)
		r = cordon_stage_temp(store, &stage, err);
	return r < 0 ? r : cordon_publish(&stage, dir, name, copy, err);
}

/* Marks the session as lost if its record says active and it has no process. */
static int mark_if_lost(const struct cordon_store *store, struct cordon_session_record *record, struct cordon_error *err)
{
	struct cordon_session_record now = { 0 };
	char id[CORDON_ID_SIZE];
	autofd int dir = -1;
	autofd int alive = -1;
	int r = cordon_id_uuid("session_id", record->id, id, err);

	if (r < 0)
		return r;
	if (record->status != CORDON_SESSION_ACTIVE || cordon_session_lives(store, id))
		return 0;
	r = cordon_session_open(store, id, &dir, err);
	if (r < 0)
		return r;
	r = cordon_lock_take(dir, "alive", LOCK_EX | LOCK_NB, &alive, NULL);
	if (r < 0)
		return 0; /* another process is resuming it */
	/* The session may have ended properly since we read the record, so we read it again. */
	r = cordon_record_load(&cordon_session_kind, dir, "record.json", &now, err);
	if (r < 0)
		return r;
	cordon_session_record_done(record);
	*record = now;
	if (record->status != CORDON_SESSION_ACTIVE)
		return 0;
	record->status = CORDON_SESSION_FAILED;
	record->state = CORDON_SESSION_LOST;
	json_decref(record->error);
	record->error = json_pack("{s:s, s:s}", "kind", "internal", "message",
				  "the session was lost: its process was killed, or the machine went down");
	return record->error ? cordon_session_write(store, record, err) : cordon_no_memory(err);
}

int cordon_session_get(const struct cordon_store *store, const char *id, struct cordon_session_record *ret_session,
		       struct cordon_error *err)
{
	autosessionrecord struct cordon_session_record record = { 0 };
	int r = cordon_session_read(store, id, &record, err);

	if (r == 0)
		r = mark_if_lost(store, &record, err);
	if (r < 0)
		return r;
	*ret_session = record;
	record = (struct cordon_session_record){ 0 };
	return 0;
}

/* The filter of a list; its ids have been judged. */
struct wanted {
	char project[CORDON_ID_SIZE], workspace[CORDON_ID_SIZE];
	const char *status;
	const json_t *only;
};

static bool matches(const void *data, const void *query)
{
	const struct cordon_session_record *record = data;
	const struct wanted *wanted = query;

	return (!*wanted->project || cordon_streq(record->project_id, wanted->project)) &&
	       (!*wanted->workspace || cordon_streq(record->workspace_id, wanted->workspace)) &&
	       (!wanted->only || cordon_json_has(wanted->only, record->project_id)) &&
	       (!wanted->status || record->status == cordon_session_status_parse(wanted->status));
}

static json_t *show(const void *record)
{
	return cordon_session_json(record);
}

static json_t *show_brief(const void *record)
{
	return cordon_session_brief_json(record);
}

/* A name that is not a session id is not a session, so it is left out of the list, as is a session that is removed
 * meanwhile. */
static int load(const struct cordon_store *store, const char *name, void *ret_record, struct cordon_error *err)
{
	int r = cordon_session_get(store, name, ret_record, err);

	return r == -EINVAL ? -ENOENT : r;
}

/* The same for a list of sessions that run: their processes hold their locks, so the others need not be read. */
static int load_running(const struct cordon_store *store, const char *name, void *ret_record, struct cordon_error *err)
{
	return cordon_session_lives(store, name) ? load(store, name, ret_record, err) : -ENOENT;
}

int cordon_session_list(const struct cordon_store *store, const struct cordon_session_query *query,
			json_t **ret_sessions, size_t *ret_total, struct cordon_error *err)
{
	struct wanted wanted = { .status = query->status, .only = query->only };
	struct cordon_list_source source = {
		.kind = &cordon_session_kind,
		.dir_fd = store->sessions_fd,
		.limit = query->limit ? query->limit : CORDON_LIST_MAX,
		.offset = query->offset,
		.ids_only = query->ids_only,
		.newest_first = query->newest_first,
		.path = "/record.json",
		.show = query->brief ? show_brief : show,
		.load = query->status && cordon_streq(query->status, "active") ? load_running : load,
		.matches = matches,
		.wanted = &wanted,
	};
	bool all = !query->project && !query->workspace && !query->status && !query->only;
	int r = query->project ? cordon_id_uuid("project_id", query->project, wanted.project, err) : 0;

	if (r == 0 && query->workspace)
		r = cordon_id_workspace("workspace_id", query->workspace, wanted.workspace, err);
	if (all)
		source.matches = NULL;
	source.quick = all;
	return r < 0 ? r : cordon_record_list(store, &source, ret_sessions, ret_total, err);
}

/* Removes the published copy of the record. An agent may have put anything in its place, so we follow no link. */
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

static bool is_old(const struct cordon_session_record *record, uint64_t max_age_ms)
{
	int64_t then;

	return record->status != CORDON_SESSION_ACTIVE && cordon_time_parse(record->updated_at, &then) == 0 &&
	       cordon_time_now() - then >= (int64_t)(max_age_ms < INT64_MAX ? max_age_ms : INT64_MAX);
}

/* Returns 1 when it removed the session, 0 when the session has to stay. */
static int remove_old(const struct cordon_store *store, const char *id, uint64_t max_age_ms, struct cordon_error *err)
{
	autosessionrecord struct cordon_session_record record = { 0 };
	autostage struct cordon_stage stage = CORDON_STAGE_NONE;
	autofd int alive = -1;
	autofd int dir = -1;
	int r = load(store, id, &record, err);

	if (r < 0 || !is_old(&record, max_age_ms))
		return r == -ENOENT ? 0 : r;
	/* Hold the lock, so that nobody resumes the session meanwhile. */
	if (cordon_session_open(store, record.id, &dir, NULL) < 0 ||
	    cordon_lock_take(dir, "alive", LOCK_EX | LOCK_NB, &alive, NULL) < 0)
		return 0;
	r = cordon_stage_temp(store, &stage, err);
	if (r < 0)
		return r;
	r = cordon_dirs_move(store->sessions_fd, record.id, stage.fd, "session");
	if (r < 0)
		return cordon_fail_errno(err, r, "cannot remove session %s", record.id);
	unpublish(store, record.project_id, record.id);
	return 1;
}

/* `strict`: a session that can't be judged is an error. Otherwise it stays. */
static int remove_all_old(const struct cordon_store *store, uint64_t max_age_ms, bool strict, size_t *ret_removed,
			  struct cordon_error *err)
{
	json_auto_t *names = NULL;
	size_t i, removed = 0;
	json_t *name;
	int r = cordon_record_names(store->sessions_fd, NULL, &names, err);

	if (r < 0)
		return r;
	json_array_foreach(names, i, name) {
		r = remove_old(store, json_string_value(name), max_age_ms, strict ? err : NULL);
		if (r < 0 && strict)
			return r;
		removed += r > 0;
	}
	*ret_removed = removed;
	return 0;
}

int cordon_session_cleanup(const struct cordon_store *store, uint64_t max_age_ms, size_t *ret_removed,
			   struct cordon_error *err)
{
	return remove_all_old(store, max_age_ms, true, ret_removed, err);
}

int cordon_session_gc(const struct cordon_home *home, uint64_t max_age_ms, size_t *ret_removed, struct cordon_error *err)
{
	autostore struct cordon_store store = CORDON_STORE_NONE;
	int r;

	*ret_removed = 0;
	/* Opening a store makes its directories; who never had a session needs none. */
	if (faccessat(home->state_fd, cordon_state_kinds[CORDON_STATE_KIND_SESSIONS].dir, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	r = cordon_store_open(&store, err);
	return r < 0 ? r : remove_all_old(&store, max_age_ms, false, ret_removed, err);
}
