/* SPDX-License-Identifier: Apache-2.0 */
/* Creates workspaces, finds them by id or by external id, and deletes them. Creating one that exists returns it. */
#include <sodium.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/dirs.h"
#include "base/path.h"
#include "base/resolve.h"
#include "store/internal.h"

#define HASH_SIZE (2 * crypto_hash_sha256_BYTES + 1)

/* The index entry of an external id: which workspace the id means. */
struct external_entry {
	char workspace_id[CORDON_ID_SIZE];
	json_t *other;
};

static const struct cordon_field external_fields[] = {
	{ .key = "workspace_id", .type = CORDON_FIELD_TEXT, .size = CORDON_ID_SIZE, .needed = true },
	{ 0 },
};

static const struct cordon_record_kind external_kind = {
	.what = "workspace",
	.size = sizeof(struct external_entry),
	.other = offsetof(struct external_entry, other),
	.fields = external_fields,
};

int cordon_workspace_new(const char *project, const char *id, const struct cordon_workspace_request *request,
			 struct cordon_workspace_record *ret_record)
{
	autoworkspacerecord struct cordon_workspace_record record = { 0 };

	if (cordon_copy(record.id, sizeof(record.id), id, strlen(id)) < 0 ||
	    cordon_copy(record.project_id, sizeof(record.project_id), project, strlen(project)) < 0)
		return -EINVAL;
	if ((request->external_id && !(record.external_id = strdup(request->external_id))) ||
	    (request->source && !(record.source = strdup(request->source))))
		return -ENOMEM;
	cordon_record_stamp(record.created_at);
	*ret_record = record;
	record = (struct cordon_workspace_record){ 0 };
	return 0;
}

int cordon_workspace_read(const struct cordon_project *project, const char *id,
			  struct cordon_workspace_record *ret_record, struct cordon_error *err)
{
	char path[CORDON_ID_SIZE + 32];
	int r;

	snprintf(path, sizeof(path), "workspaces/%s.json", id);
	r = cordon_record_load(&cordon_workspace_kind, project->state_fd, path, ret_record, err);
	if (r == -ENOENT) {
		cordon_fail(err, r, CORDON_KIND_NOT_FOUND, "workspace %s does not exist in project %s", id, project->id);
		cordon_error_hint(err, "see 'cordon workspace list %s'", project->id);
	}
	return r;
}

int cordon_workspace_stamp(const struct cordon_store *store, const struct cordon_project *project, const char *id,
			   const char *session, struct cordon_error *err)
{
	autostage struct cordon_stage stage = CORDON_STAGE_NONE;
	autoworkspacerecord struct cordon_workspace_record record = { 0 };
	char name[CORDON_ID_SIZE + 8];
	autofd int dir = -1;
	int r = cordon_workspace_read(project, id, &record, err);

	if (r == 0)
		r = cordon_state_dir(project->state_fd, "workspaces", &dir, err);
	if (r == 0)
		r = cordon_stage_temp(store, &stage, err);
	if (r < 0)
		return r;
	cordon_record_stamp(record.last_session_at);
	cordon_copy(record.last_session_id, sizeof(record.last_session_id), session, strlen(session));
	snprintf(name, sizeof(name), "%s.json", id);
	return cordon_stage_save(&stage, &cordon_workspace_kind, dir, name, &record, err);
}

/* The file name of an index entry: a hash of source and external id, because these may have any characters. */
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

static bool same_text(const char *a, const char *b)
{
	return cordon_streq(a ? a : "", b ? b : "");
}

/* Moves a record to the caller, who frees it. */
static void move_record(struct cordon_workspace_record *from, struct cordon_workspace_record *to)
{
	*to = *from;
	*from = (struct cordon_workspace_record){ 0 };
}

/*
 * Finds the workspace of an external id. An index entry is written before its workspace and removed after it, so the
 * entry counts only if the workspace exists and its record has the same external id and source.
 */
static int find_external(const struct cordon_project *project, const struct cordon_workspace_request *request,
			 struct cordon_workspace_record *ret_record, struct cordon_error *err)
{
	autoworkspacerecord struct cordon_workspace_record record = { 0 };
	char name[HASH_SIZE], path[HASH_SIZE + 16], id[CORDON_ID_SIZE];
	struct external_entry entry;
	int r;

	external_name(request, name);
	snprintf(path, sizeof(path), "external/%s", name);
	r = cordon_record_load(&external_kind, project->state_fd, path, &entry, err);
	if (r < 0)
		return r;
	r = cordon_id_workspace("workspace_id", entry.workspace_id, id, err);
	cordon_fields_done(&external_kind, &entry);
	if (r == 0)
		r = cordon_workspace_read(project, id, &record, err);
	if (r < 0)
		return r;
	if (!same_text(record.external_id, request->external_id) || !same_text(record.source, request->source))
		return -ENOENT;
	move_record(&record, ret_record);
	return 0;
}

bool cordon_workspace_indexed(int state_fd, const struct cordon_workspace_request *request)
{
	char name[HASH_SIZE], path[HASH_SIZE + 16];

	external_name(request, name);
	snprintf(path, sizeof(path), "external/%s", name);
	return faccessat(state_fd, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

int cordon_workspace_index(int state_fd, const struct cordon_stage *stage,
			   const struct cordon_workspace_request *request, const char *id, struct cordon_error *err)
{
	struct external_entry entry = { 0 };
	char name[HASH_SIZE];
	autofd int dir = -1;
	int r = cordon_state_dir(state_fd, "external", &dir, err);

	if (r < 0)
		return r;
	cordon_copy(entry.workspace_id, sizeof(entry.workspace_id), id, strlen(id));
	external_name(request, name);
	return cordon_stage_save(stage, &external_kind, dir, name, &entry, err);
}

/* The names that a workspace gets from its project. */
static const char *const filled[] = { "AGENTS.md", ".factory" };

int cordon_workspace_fill(int project_fd, bool isolated, int dst_fd, struct cordon_error *err)
{
	struct cordon_copy_budget budget = CORDON_COPY_BUDGET;
	int r = 0;

	for (size_t i = isolated ? 0 : 1; r == 0 && i < CORDON_ARRAY_SIZE(filled); i++) {
		if (faccessat(dst_fd, filled[i], F_OK, AT_SYMLINK_NOFOLLOW) == 0)
			continue;
		r = cordon_dirs_copy(project_fd, filled[i], dst_fd, &budget, err);
		r = r == -ENOENT ? 0 : r;
	}
	return r;
}

int cordon_workspace_populate(int project_fd, int state_fd, bool isolated, int dst_fd, struct cordon_error *err)
{
	static const struct cordon_copy_bounds bounds = { CORDON_COPY_TREE };
	struct cordon_copy_budget budget = CORDON_COPY_BUDGET_OF(&bounds);
	autofd int template = openat(state_fd, CORDON_TEMPLATE, CORDON_OPEN_DIR);
	int r = 0;

	if (template <0 && errno != ENOENT)
		return cordon_fail_errno(err, -errno, "cannot open the project's template");
	if (template >= 0)
		r = cordon_dirs_copy_all(template, dst_fd, &budget, err);
	if (r == 0 && template >= 0 && syncfs(dst_fd) < 0)
		r = cordon_fail_errno(err, -errno, "cannot copy the project's template");
	return r < 0 ? r : cordon_workspace_fill(project_fd, isolated, dst_fd, err);
}

/* Moves the directory from the stage to the workspace's name. If a directory is there already, moves only files that it
 * lacks. */
static int place(int stage_fd, int workspaces_fd, const char *id)
{
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
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(filled); i++)
		if (renameat2(tree, filled[i], dst, filled[i], RENAME_NOREPLACE) < 0 && errno != ENOENT &&
		    errno != EEXIST)
			return -errno;
	if (fsync(dst) < 0 || fsync(workspaces_fd) < 0)
		return -errno;
	return cordon_dirs_remove(stage_fd, "tree", NULL);
}

/* Moves the record into place. From then on the workspace exists. */
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
			   const struct cordon_workspace_request *request, const struct cordon_workspace_record *record,
			   struct cordon_error *err)
{
	autofd int tree = -1;
	int r = cordon_state_dir(stage->fd, "tree", &tree, err);

	if (r == 0)
		r = cordon_workspace_populate(project->tree_fd, project->state_fd,
					      project->record.settings.workspace_isolation, tree, err);
	if (r == 0 && request->external_id)
		r = cordon_workspace_index(project->state_fd, stage, request, record->id, err);
	/* Write the record last: a record in the stage means that everything else is ready. */
	if (r == 0)
		r = cordon_record_save(&cordon_workspace_kind, stage->fd, "record.json", record, err);
	return r;
}

static int create(const struct cordon_store *store, const struct cordon_project *project, const char *id,
		  const struct cordon_workspace_request *request, struct cordon_workspace_record *ret_record,
		  struct cordon_error *err)
{
	autostage struct cordon_stage stage = CORDON_STAGE_NONE;
	autoworkspacerecord struct cordon_workspace_record record = { 0 };
	char name[2 * CORDON_ID_SIZE + 8];
	autofd int workspaces = -1;
	int r = cordon_workspace_new(project->id, id, request, &record) < 0
			? cordon_no_memory(err)
			: cordon_project_workspaces(project, &workspaces, err);

	if (r < 0)
		return r;
	snprintf(name, sizeof(name), "ws.%s.%s", project->id, id);
	r = cordon_stage_open(store, name, &stage, err);
	if (r == 0)
		r = stage_workspace(project, &stage, request, &record, err);
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
	move_record(&record, ret_record);
	return 0;
}

/* Moves what belongs to the workspace alone into the stage, with which it is removed. */
static int move_home(int state_fd, const char *id, int stage_fd)
{
	autofd int homes = openat(state_fd, CORDON_HOMES, CORDON_OPEN_DIR);
	int r = homes < 0 ? -errno : cordon_dirs_move(homes, id, stage_fd, "home");

	return r == -ENOENT ? 0 : r;
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

	/* A creation that is complete, or that was not ready; a deletion that had not begun; or the project was
	 * deleted. */
	if (!ready || state < 0)
		return 0;
	snprintf(path, sizeof(path), "%s/workspaces", project_id);
	workspaces = cordon_open_beneath(store->trees_fd, path, CORDON_OPEN_DIR);
	if (deletes) {
		r = workspaces < 0 ? 0 : cordon_dirs_move(workspaces, id, stage_fd, "tree");
		if (r == 0 || r == -ENOENT || r == -EEXIST)
			r = move_home(state, id, stage_fd);
		return r == -EEXIST ? 0 : r;
	}
	if (tree && (workspaces < 0 || place(stage_fd, workspaces, id) < 0))
		return 0; /* something else has the name: the caller takes the creation back by removing the stage */
	r = commit(stage_fd, state, id);
	return r == -EEXIST ? 0 : r;
}

/* Judges the request and makes its id lower case. */
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

/* Finds an existing workspace by id, or else by external id; -ENOENT when there is none. */
static int find(const struct cordon_project *project, const char *id, const struct cordon_workspace_request *request,
		struct cordon_workspace_record *ret_record, struct cordon_error *err)
{
	if (*id)
		return cordon_workspace_read(project, id, ret_record, err);
	return request->external_id ? find_external(project, request, ret_record, err) : -ENOENT;
}

static int create_locked(const struct cordon_store *store, const struct cordon_project *project, char *id,
			 const struct cordon_workspace_request *request, struct cordon_workspace_record *ret_record,
			 bool *ret_created, struct cordon_error *err)
{
	autoworkspacerecord struct cordon_workspace_record other = { 0 };
	autofd int locks = -1;
	autofd int external_lock = -1;
	autofd int lock = -1;
	char name[HASH_SIZE + 2] = "x.";
	int r = cordon_state_dir(project->state_fd, "locks", &locks, err);

	if (r == 0 && request->external_id) {
		external_name(request, name + 2);
		r = cordon_lock_take(locks, name, LOCK_EX, &external_lock, err);
	}
	if (r == 0 && *id)
		r = cordon_lock_take(locks, id, LOCK_EX, &lock, err);
	if (r < 0)
		return r;
	r = find(project, id, request, ret_record, err);
	if (r != -ENOENT) {
		*ret_created = false;
		return r;
	}
	if (*id && request->external_id && find_external(project, request, &other, NULL) == 0)
		return cordon_fail(err, -EEXIST, CORDON_KIND_CONFLICT, "external_id %s already means workspace %s",
				   request->external_id, other.id);
	if (!*id && (r = cordon_uuid_new(id)) < 0)
		return cordon_fail_errno(err, r, "cannot create a workspace");
	*ret_created = true;
	r = create(store, project, id, request, ret_record, err);
	if (r < 0 && lock >= 0)
		unlinkat(locks, id, 0);
	return r;
}

int cordon_workspace_create(const struct cordon_store *store, const char *project_id,
			    const struct cordon_workspace_request *request,
			    struct cordon_workspace_record *ret_workspace, bool *ret_created, struct cordon_error *err)
{
	autoproject struct cordon_project project = CORDON_PROJECT_NONE;
	char id[CORDON_ID_SIZE];
	bool created = false;
	int r = judge(request, id, err);

	if (r == 0)
		r = cordon_project_hold(store, project_id, LOCK_SH, &project, err);
	if (r < 0)
		return r;
	/* Look without a lock first: then a request for a workspace that exists costs two reads only. */
	r = find(&project, id, request, ret_workspace, NULL);
	if (r == -ENOENT)
		r = create_locked(store, &project, id, request, ret_workspace, &created, err);
	else if (r < 0)
		r = find(&project, id, request, ret_workspace, err);
	if (r == 0 && ret_created)
		*ret_created = created;
	return r;
}

int cordon_workspace_resolve(const struct cordon_store *store, const char *project_id,
			     const struct cordon_workspace_request *request, bool create_missing,
			     struct cordon_workspace_record *ret_workspace, bool *ret_created, struct cordon_error *err)
{
	autoproject struct cordon_project project = CORDON_PROJECT_NONE;
	char id[CORDON_ID_SIZE];
	int r;

	if (create_missing)
		return cordon_workspace_create(store, project_id, request, ret_workspace, ret_created, err);
	r = judge(request, id, err);
	if (r == 0)
		r = cordon_project_hold(store, project_id, 0, &project, err);
	if (r < 0)
		return r;
	if (!*id && !request->external_id)
		r = cordon_workspace_read(&project, project.record.default_workspace_id, ret_workspace, err);
	else
		r = find(&project, id, request, ret_workspace, err);
	if (r == -ENOENT) {
		if (!*id && request->external_id)
			cordon_fail(err, r, CORDON_KIND_NOT_FOUND, "no workspace of project %s is recorded for %s",
				    project.id, request->external_id);
		cordon_error_hint(err, "create it first, or with the session (create_workspace)");
	}
	if (r == 0 && ret_created)
		*ret_created = false;
	return r;
}

int cordon_workspace_get(const struct cordon_store *store, const char *project_id, const char *workspace_id,
			 struct cordon_workspace_record *ret_workspace, struct cordon_error *err)
{
	autoproject struct cordon_project project = CORDON_PROJECT_NONE;
	char id[CORDON_ID_SIZE];
	int r = cordon_id_workspace("workspace_id", workspace_id, id, err);

	if (r == 0)
		r = cordon_project_hold(store, project_id, 0, &project, err);
	return r < 0 ? r : cordon_workspace_read(&project, id, ret_workspace, err);
}

/* Removes the index entry, after the workspace and with the lock of the external id held, so that it never removes the
 * entry of a new workspace. */
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
	r = cordon_dirs_move(workspaces, id, stage.fd, "tree");
	if (r == 0 || r == -ENOENT)
		r = move_home(project->state_fd, id, stage.fd);
	if (r < 0) {
		/* The stage stays, so that the next repair tries again. */
		cordon_closep(&stage.fd);
		return cordon_fail_errno(err, r, "cannot delete the directory of workspace %s", id);
	}
	return 0;
}

/* Takes the locks of a workspace in their order. The external id comes from its record, in which it never changes. */
static int lock_for_deletion(const struct cordon_project *project, const char *id,
			     const struct cordon_workspace_record *record, int ret_locks[static 3],
			     struct cordon_error *err)
{
	struct cordon_workspace_request request = { .external_id = record->external_id, .source = record->source };
	char name[HASH_SIZE + 2] = "x.";
	int r = cordon_state_dir(project->state_fd, "locks", &ret_locks[0], err);

	if (r == 0 && request.external_id) {
		external_name(&request, name + 2);
		r = cordon_lock_take(ret_locks[0], name, LOCK_EX, &ret_locks[1], err);
	}
	return r < 0 ? r : cordon_lock_take(ret_locks[0], id, LOCK_EX, &ret_locks[2], err);
}

int cordon_workspace_delete(const struct cordon_store *store, const char *project_id, const char *workspace_id,
			    bool *ret_deleted, struct cordon_error *err)
{
	autoproject struct cordon_project project = CORDON_PROJECT_NONE;
	autoworkspacerecord struct cordon_workspace_record seen = { 0 };
	autoworkspacerecord struct cordon_workspace_record record = { 0 };
	char id[CORDON_ID_SIZE], name[CORDON_ID_SIZE + 8];
	int locks[3] = { -1, -1, -1 };
	int r = cordon_id_workspace("workspace_id", workspace_id, id, err);

	if (r == 0)
		r = cordon_project_hold(store, project_id, LOCK_SH, &project, err);
	if (r < 0)
		return r;
	if (cordon_streq(id, project.record.default_workspace_id))
		return cordon_fail(err, -EPERM, CORDON_KIND_CONFLICT,
				   "workspace %s is the default one of its project and can't be deleted", id);
	*ret_deleted = false;
	r = cordon_workspace_read(&project, id, &seen, err);
	/* Check before we take the lock as well: a session that is starting holds the lock, and we would wait for
	 * it. */
	if (r == 0)
		r = cordon_active_none(store, &project, id, "the workspace", err);
	if (r == 0)
		r = lock_for_deletion(&project, id, &seen, locks, err);
	if (r == 0)
		r = cordon_workspace_read(&project, id, &record, err);
	if (r == 0)
		r = cordon_active_none(store, &project, id, "the workspace", err);
	if (r == 0)
		r = delete_locked(store, &project, id, err);
	if (r == 0) {
		struct cordon_workspace_request request = { .external_id = record.external_id, .source = record.source };

		if (request.external_id)
			remove_external(&project, &request);
		snprintf(name, sizeof(name), "locks/%s", id);
		unlinkat(project.state_fd, name, 0);
		*ret_deleted = true;
	}
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(locks); i++)
		cordon_closep(&locks[i]);
	return r == -ENOENT ? 0 : r;
}
