/* SPDX-License-Identifier: Apache-2.0 */
/* Workspaces: created once whatever is asked how often, found by id or by external id, deleted. */
#include <sodium.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/path.h"
#include "base/resolve.h"
#include "base/tree.h"
#include "store/internal.h"

#define HASH_SIZE (2 * crypto_hash_sha256_BYTES + 1)

json_t *cordon_workspace_public(const json_t *record)
{
	static const char *const hidden[] = { "last_session_id", NULL };

	return cordon_record_public(record, hidden);
}

json_t *cordon_workspace_record(const char *project, const char *id, const struct cordon_workspace_request *request)
{
	json_t *record = json_pack("{s:i, s:s, s:s, s:s*, s:s*}", "schema", CORDON_SCHEMA, "id", id, "project_id",
				   project, "external_id", request->external_id, "source", request->source);

	if (record && cordon_record_stamp(record, "created_at") < 0) {
		json_decref(record);
		return NULL;
	}
	return record;
}

int cordon_workspace_read(const struct cordon_project *project, const char *id, json_t **ret_record,
			  struct cordon_error *err)
{
	char path[CORDON_ID_SIZE + 32];
	int r;

	snprintf(path, sizeof(path), "workspaces/%s.json", id);
	r = cordon_record_read(project->state_fd, path, ret_record, err);
	if (r == -ENOENT) {
		cordon_fail(err, r, CORDON_KIND_NOT_FOUND, "workspace %s does not exist in project %s", id, project->id);
		cordon_error_hint(err, "see 'cordon workspace list %s'", project->id);
	}
	return r;
}

/* The file that says which workspace an external id means: a hash, because the id may hold any character. */
static void external_name(const struct cordon_workspace_request *request, char ret_name[static HASH_SIZE])
{
	unsigned char digest[crypto_hash_sha256_BYTES];
	const char *source = request->source ? request->source : "";
	crypto_hash_sha256_state state;

	crypto_hash_sha256_init(&state);
	crypto_hash_sha256_update(&state, (const unsigned char *)source, strlen(source) + 1);
	crypto_hash_sha256_update(&state, (const unsigned char *)request->external_id, strlen(request->external_id));
	crypto_hash_sha256_final(&state, digest);
	sodium_bin2hex(ret_name, HASH_SIZE, digest, sizeof(digest));
}

static bool same_text(const json_t *record, const char *key, const char *text)
{
	return cordon_streq(cordon_record_text(record, key), text ? text : "");
}

/*
 * The workspace recorded for an external id. The index is only a hint: an entry is written before its workspace and
 * removed after it, so what it names must exist and say the same.
 */
static int find_external(const struct cordon_project *project, const struct cordon_workspace_request *request,
			 json_t **ret_record, struct cordon_error *err)
{
	char name[HASH_SIZE], path[HASH_SIZE + 16], id[CORDON_ID_SIZE];
	json_auto_t *entry = NULL;
	json_auto_t *record = NULL;
	int r;

	external_name(request, name);
	snprintf(path, sizeof(path), "external/%s", name);
	r = cordon_record_read(project->state_fd, path, &entry, err);
	if (r < 0)
		return r;
	r = cordon_id_workspace("workspace_id", cordon_record_text(entry, "workspace_id"), id, err);
	if (r == 0)
		r = cordon_workspace_read(project, id, &record, err);
	if (r < 0)
		return r;
	if (!same_text(record, "external_id", request->external_id) || !same_text(record, "source", request->source))
		return -ENOENT;
	*ret_record = cordon_steal_ptr(&record);
	return 0;
}

static int write_external(const struct cordon_project *project, const struct cordon_stage *stage,
			  const struct cordon_workspace_request *request, const char *id, struct cordon_error *err)
{
	json_auto_t *entry = json_pack("{s:i, s:s}", "schema", CORDON_SCHEMA, "workspace_id", id);
	char name[HASH_SIZE];
	autofd int dir = -1;
	int r = entry ? cordon_store_dir(project->state_fd, "external", &dir, err) : cordon_no_memory(err);

	if (r < 0)
		return r;
	external_name(request, name);
	return cordon_stage_record(stage, dir, name, entry, err);
}

int cordon_workspace_fill(int project_fd, bool isolated, int dst_fd, struct cordon_error *err)
{
	struct cordon_copy_budget budget = CORDON_COPY_BUDGET;
	int r = isolated ? cordon_tree_copy(project_fd, "AGENTS.md", dst_fd, &budget, err) : -ENOENT;

	if (r == 0 || r == -ENOENT)
		r = cordon_tree_copy(project_fd, ".factory", dst_fd, &budget, err);
	return r == -ENOENT ? 0 : r;
}

/* Puts what the stage prepared under the workspace's name. A directory that is already there keeps what it has. */
static int place(int stage_fd, int workspaces_fd, const char *id)
{
	static const char *const names[] = { "AGENTS.md", ".factory" };
	autofd int tree = -1;
	autofd int dst = -1;

	if (renameat2(stage_fd, "tree", workspaces_fd, id, RENAME_NOREPLACE) == 0)
		return fsync(workspaces_fd) < 0 ? -errno : 0;
	if (errno != EEXIST)
		return -errno;
	tree = openat(stage_fd, "tree", CORDON_OPEN_DIR);
	dst = openat(workspaces_fd, id, CORDON_OPEN_DIR);
	if (tree < 0 || dst < 0)
		return -errno;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(names); i++)
		if (renameat2(tree, names[i], dst, names[i], RENAME_NOREPLACE) < 0 && errno != ENOENT && errno != EEXIST)
			return -errno;
	if (fsync(dst) < 0 || fsync(workspaces_fd) < 0)
		return -errno;
	return cordon_tree_remove(stage_fd, "tree", NULL);
}

/* The record makes the workspace exist. */
static int commit(int stage_fd, int state_fd, const char *id)
{
	char name[CORDON_ID_SIZE + 8];
	autofd int records = openat(state_fd, "workspaces", CORDON_OPEN_DIR);

	snprintf(name, sizeof(name), "%s.json", id);
	if (records < 0 || renameat2(stage_fd, "record.json", records, name, RENAME_NOREPLACE) < 0 || fsync(records) < 0)
		return -errno;
	return 0;
}

static int stage_workspace(const struct cordon_project *project, const struct cordon_stage *stage,
			   const struct cordon_workspace_request *request, const json_t *record,
			   struct cordon_error *err)
{
	autofd int tree = -1;
	int r = cordon_store_dir(stage->fd, "tree", &tree, err);

	if (r == 0)
		r = cordon_workspace_fill(project->tree_fd, cordon_project_isolated(project), tree, err);
	if (r == 0 && request->external_id)
		r = write_external(project, stage, request, cordon_record_text(record, "id"), err);
	/* Last: a record in the stage says that all the rest is ready. */
	if (r == 0)
		r = cordon_record_write(stage->fd, "record.json", record, err);
	return r;
}

static int create(const struct cordon_store *store, const struct cordon_project *project, const char *id,
		  const struct cordon_workspace_request *request, json_t **ret_record, struct cordon_error *err)
{
	autostage struct cordon_stage stage = CORDON_STAGE_NONE;
	json_auto_t *record = cordon_workspace_record(project->id, id, request);
	char name[2 * CORDON_ID_SIZE + 8];
	autofd int workspaces = -1;
	int r = record ? cordon_project_workspaces(project, &workspaces, err) : cordon_no_memory(err);

	if (r < 0)
		return r;
	snprintf(name, sizeof(name), "ws.%s.%s", project->id, id);
	r = cordon_stage_open(store, name, &stage, err);
	if (r == 0)
		r = stage_workspace(project, &stage, request, record, err);
	if (r < 0)
		return r;
	r = place(stage.fd, workspaces, id);
	if (r == -ENOTDIR || r == -ELOOP)
		return cordon_fail(err, -EEXIST, CORDON_KIND_CONFLICT, "workspaces/%s of project %s is not a directory",
				   id, project->id);
	if (r == 0)
		r = commit(stage.fd, project->state_fd, id);
	if (r < 0)
		return cordon_fail_errno(err, r, "cannot create workspace %s", id);
	*ret_record = cordon_steal_ptr(&record);
	return 0;
}

int cordon_workspace_recover(const struct cordon_store *store, int stage_fd, const char *project_id, const char *id)
{
	autofd int state = openat(store->projects_fd, project_id, CORDON_OPEN_DIR);
	bool deletes = faccessat(stage_fd, "delete", F_OK, AT_SYMLINK_NOFOLLOW) == 0;
	bool ready = faccessat(stage_fd, "record.json", F_OK, AT_SYMLINK_NOFOLLOW) == 0;
	bool tree = faccessat(stage_fd, "tree", F_OK, AT_SYMLINK_NOFOLLOW) == 0;
	autofd int workspaces = -1;
	char path[2 * CORDON_ID_SIZE + 16];
	int r = 0;

	/* Created: done, or not ready; deleted: not begun; or the project went, and all of it with it. */
	if (!ready || state < 0)
		return 0;
	snprintf(path, sizeof(path), "%s/workspaces", project_id);
	workspaces = cordon_open_beneath(store->trees_fd, path, CORDON_OPEN_DIR);
	if (deletes) {
		r = workspaces < 0 ? 0 : cordon_tree_move(workspaces, id, stage_fd, "tree");
		return r == -ENOENT || r == -EEXIST ? 0 : r;
	}
	if (tree && (workspaces < 0 || place(stage_fd, workspaces, id) < 0))
		return 0; /* something else took the name: taken back with the stage */
	r = commit(stage_fd, state, id);
	return r == -EEXIST ? 0 : r;
}

/* Judges and folds what the caller said. */
static int judge(const struct cordon_workspace_request *request, char ret_id[static CORDON_ID_SIZE],
		 struct cordon_error *err)
{
	int r = request->id ? cordon_id_workspace("workspace_id", request->id, ret_id, err) : 0;

	if (!request->id)
		ret_id[0] = '\0';
	if (r == 0 && request->external_id) {
		r = cordon_text_judge("external_id", request->external_id, CORDON_EXTERNAL_MAX, err);
		if (r == 0 && !*request->external_id)
			r = cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "external_id is empty");
	}
	if (r == 0 && request->source)
		r = cordon_text_judge("source", request->source, CORDON_NAME_MAX, err);
	return r;
}

static int finish(json_t *record, bool created, json_t **ret_workspace, bool *ret_created, struct cordon_error *err)
{
	json_t *answer = cordon_workspace_public(record);

	json_decref(record);
	if (!answer)
		return cordon_no_memory(err);
	*ret_workspace = answer;
	if (ret_created)
		*ret_created = created;
	return 0;
}

/* Looks for an existing one by id, else by external id. -ENOENT when there is none. */
static int find(const struct cordon_project *project, const char *id, const struct cordon_workspace_request *request,
		json_t **ret_record, struct cordon_error *err)
{
	if (*id)
		return cordon_workspace_read(project, id, ret_record, err);
	return request->external_id ? find_external(project, request, ret_record, err) : -ENOENT;
}

static int create_locked(const struct cordon_store *store, const struct cordon_project *project, char *id,
			 const struct cordon_workspace_request *request, json_t **ret_record, bool *ret_created,
			 struct cordon_error *err)
{
	autofd int locks = -1;
	autofd int external_lock = -1;
	autofd int lock = -1;
	char name[HASH_SIZE + 2] = "x.";
	json_t *record = NULL;
	int r = cordon_store_dir(project->state_fd, "locks", &locks, err);

	if (r == 0 && request->external_id) {
		external_name(request, name + 2);
		r = cordon_lock_take(locks, name, LOCK_EX, &external_lock, err);
	}
	if (r == 0 && *id)
		r = cordon_lock_take(locks, id, LOCK_EX, &lock, err);
	if (r < 0)
		return r;
	r = find(project, id, request, &record, err);
	if (r != -ENOENT) {
		*ret_record = record;
		*ret_created = false;
		return r;
	}
	if (*id && request->external_id && find_external(project, request, &record, NULL) == 0) {
		r = cordon_fail(err, -EEXIST, CORDON_KIND_CONFLICT, "external_id %s already means workspace %s",
				request->external_id, cordon_record_text(record, "id"));
		json_decref(record);
		return r;
	}
	if (!*id && (r = cordon_uuid_new(id)) < 0)
		return cordon_fail_errno(err, r, "cannot create a workspace");
	*ret_created = true;
	r = create(store, project, id, request, ret_record, err);
	if (r < 0 && lock >= 0)
		unlinkat(locks, id, 0);
	return r;
}

int cordon_workspace_create(const struct cordon_store *store, const char *project_id,
			    const struct cordon_workspace_request *request, json_t **ret_workspace, bool *ret_created,
			    struct cordon_error *err)
{
	autoproject struct cordon_project project = CORDON_PROJECT_NONE;
	char id[CORDON_ID_SIZE];
	json_t *record = NULL;
	bool created = false;
	int r = judge(request, id, err);

	if (r == 0)
		r = cordon_project_hold(store, project_id, LOCK_SH, &project, err);
	if (r < 0)
		return r;
	/* Without a lock first: asking again for one that exists costs two reads. */
	r = find(&project, id, request, &record, NULL);
	if (r == -ENOENT)
		r = create_locked(store, &project, id, request, &record, &created, err);
	else if (r < 0)
		r = find(&project, id, request, &record, err);
	return r < 0 ? r : finish(record, created, ret_workspace, ret_created, err);
}

int cordon_workspace_resolve(const struct cordon_store *store, const char *project_id,
			     const struct cordon_workspace_request *request, bool create_missing,
			     json_t **ret_workspace, bool *ret_created, struct cordon_error *err)
{
	autoproject struct cordon_project project = CORDON_PROJECT_NONE;
	char id[CORDON_ID_SIZE];
	json_t *record = NULL;
	int r;

	if (create_missing)
		return cordon_workspace_create(store, project_id, request, ret_workspace, ret_created, err);
	r = judge(request, id, err);
	if (r == 0)
		r = cordon_project_hold(store, project_id, 0, &project, err);
	if (r < 0)
		return r;
	if (!*id && !request->external_id)
		r = cordon_workspace_read(&project, cordon_record_text(project.record, "default_workspace_id"), &record,
					  err);
	else
		r = find(&project, id, request, &record, err);
	if (r == -ENOENT) {
		if (!*id && request->external_id)
			cordon_fail(err, r, CORDON_KIND_NOT_FOUND, "no workspace of project %s is recorded for %s",
				    project.id, request->external_id);
		cordon_error_hint(err, "create it first, or with the session (create_workspace)");
	}
	return r < 0 ? r : finish(record, false, ret_workspace, ret_created, err);
}

int cordon_workspace_get(const struct cordon_store *store, const char *project_id, const char *workspace_id,
			 json_t **ret_workspace, struct cordon_error *err)
{
	autoproject struct cordon_project project = CORDON_PROJECT_NONE;
	char id[CORDON_ID_SIZE];
	json_t *record = NULL;
	int r = cordon_id_workspace("workspace_id", workspace_id, id, err);

	if (r == 0)
		r = cordon_project_hold(store, project_id, 0, &project, err);
	if (r == 0)
		r = cordon_workspace_read(&project, id, &record, err);
	return r < 0 ? r : finish(record, false, ret_workspace, NULL, err);
}

/* The index entry goes last and under its own lock, so that nobody who makes a new one loses it. */
static void remove_external(const struct cordon_project *project, const struct cordon_workspace_request *request)
{
	char hash[HASH_SIZE], name[HASH_SIZE + 16];

	external_name(request, hash);
	snprintf(name, sizeof(name), "external/%s", hash);
	unlinkat(project->state_fd, name, 0);
	snprintf(name, sizeof(name), "locks/x.%s", hash);
	unlinkat(project->state_fd, name, 0);
}

static int delete_locked(const struct cordon_store *store, const struct cordon_project *project, const char *id,
			 struct cordon_error *err)
{
	autostage struct cordon_stage stage = CORDON_STAGE_NONE;
	char stage_name[2 * CORDON_ID_SIZE + 8], name[CORDON_ID_SIZE + 32];
	autofd int workspaces = -1;
	int r = cordon_project_workspaces(project, &workspaces, err);

	snprintf(stage_name, sizeof(stage_name), "ws.%s.%s", project->id, id);
	if (r == 0)
		r = cordon_stage_open(store, stage_name, &stage, err);
	if (r == 0)
		r = cordon_stage_delete(&stage, err);
	if (r < 0)
		return r;
	snprintf(name, sizeof(name), "workspaces/%s.json", id);
	if (renameat(project->state_fd, name, stage.fd, "record.json") < 0 || fsync(stage.fd) < 0)
		return cordon_fail_errno(err, -errno, "cannot delete workspace %s", id);
	r = cordon_tree_move(workspaces, id, stage.fd, "tree");
	if (r < 0 && r != -ENOENT) {
		/* The stage stays, so that the next repair tries again. */
		cordon_closep(&stage.fd);
		return cordon_fail_errno(err, r, "cannot delete the directory of workspace %s", id);
	}
	return 0;
}

/* Takes the locks of a workspace in their order; its record says which external id it has, and never changes that. */
static int lock_for_deletion(const struct cordon_project *project, const char *id, const json_t *record,
			     int ret_locks[static 3], struct cordon_error *err)
{
	struct cordon_workspace_request request = { .external_id = cordon_record_text(record, "external_id"),
						    .source = cordon_record_text(record, "source") };
	char name[HASH_SIZE + 2] = "x.";
	int r = cordon_store_dir(project->state_fd, "locks", &ret_locks[0], err);

	if (r == 0 && *request.external_id) {
		external_name(&request, name + 2);
		r = cordon_lock_take(ret_locks[0], name, LOCK_EX, &ret_locks[1], err);
	}
	return r < 0 ? r : cordon_lock_take(ret_locks[0], id, LOCK_EX, &ret_locks[2], err);
}

int cordon_workspace_delete(const struct cordon_store *store, const char *project_id, const char *workspace_id,
			    bool *ret_deleted, struct cordon_error *err)
{
	autoproject struct cordon_project project = CORDON_PROJECT_NONE;
	json_auto_t *seen = NULL;
	json_auto_t *record = NULL;
	char id[CORDON_ID_SIZE], name[CORDON_ID_SIZE + 8];
	int locks[3] = { -1, -1, -1 };
	int r = cordon_id_workspace("workspace_id", workspace_id, id, err);

	if (r == 0)
		r = cordon_project_hold(store, project_id, LOCK_SH, &project, err);
	if (r < 0)
		return r;
	if (cordon_streq(id, cordon_record_text(project.record, "default_workspace_id")))
		return cordon_fail(err, -EPERM, CORDON_KIND_CONFLICT,
				   "workspace %s is the default one of its project and can't be deleted", id);
	*ret_deleted = false;
	r = cordon_workspace_read(&project, id, &seen, err);
	if (r == 0)
		r = lock_for_deletion(&project, id, seen, locks, err);
	if (r == 0)
		r = cordon_workspace_read(&project, id, &record, err);
	if (r == 0)
		r = cordon_active_none(store, &project, id, "the workspace", err);
	if (r == 0)
		r = delete_locked(store, &project, id, err);
	if (r == 0) {
		struct cordon_workspace_request request = { .external_id = cordon_record_text(record, "external_id"),
							    .source = cordon_record_text(record, "source") };

		if (*request.external_id)
			remove_external(&project, &request);
		snprintf(name, sizeof(name), "locks/%s", id);
		unlinkat(project.state_fd, name, 0);
		*ret_deleted = true;
	}
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(locks); i++)
		cordon_closep(&locks[i]);
	return r == -ENOENT ? 0 : r;
}
