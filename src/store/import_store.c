/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Imports the projects of a store of the original:
 *
 *     projects/<uuid>/metadata.json                the project's record
 *     projects/<uuid>/AGENTS.md, .factory/         what its workspaces begin with
 *     projects/<uuid>/workspaces/<id>/             one per workspace, with its record metadata.json in it
 *
 * All of it is data from elsewhere, and agents of the original could write what lies in a workspace: sizes are bounded, no
 * link is followed, ids are judged. What such a record says counts only where it can't widen anything. Everything is
 * staged first: all projects come to be, or none does.
 */
#include <stdio.h>
#include <sys/stat.h>

#include "base/dirs.h"
#include "base/io.h"
#include "base/json.h"
#include "store/import.h"

#define METADATA "metadata.json"
#define METADATA_MAX ((size_t)1 << 20)
#define PROJECTS_MAX 10000
#define READY "ready" /* in the stage: every project is complete */
#define TOKEN "GH_TOKEN="

/* One project under way. */
struct import {
	const struct cordon_store *store;
	const json_t *given; /* settings that win */
	json_t *notices;
	int dir_fd;		   /* of the project in the original's store */
	struct cordon_stage stage; /* its part of the stage */
	int tree_fd, state_fd, records_fd;
	struct cordon_project_record record;
	struct cordon_copy_budget budget; /* of all its workspaces */
};

/* ---- reading records ---- */

static bool is_directory(int dir_fd, const char *name)
{
	struct stat st;

	return fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

static int read_metadata(int dir_fd, json_t **ret_object, struct cordon_error *err)
{
	autobuf struct cordon_buf text = CORDON_BUF(METADATA_MAX);
	json_auto_t *object = NULL;
	json_error_t where;
	int r = cordon_read_file(dir_fd, METADATA, O_NOFOLLOW, &text, err);

	if (r < 0)
		return r;
	object = json_loadb(text.data ? text.data : "", text.len, JSON_REJECT_DUPLICATES, &where);
	if (!json_is_object(object))
		return cordon_fail(err, -EBADMSG, CORDON_KIND_CONFIG, METADATA ":%d:%d: not a record: %s", where.line,
				   where.column, object ? "an object is expected" : where.text);
	*ret_object = cordon_steal_ptr(&object);
	return 0;
}

/* Copies a time of the original, in our form. */
static void put_time(const json_t *object, const char *key, char ret[static CORDON_TIME_SIZE])
{
	const char *text = cordon_json_string(object, key);
	int64_t ms;

	if (text && cordon_time_parse(text, &ms) == 0)
		cordon_time_format(ms, ret);
}

/* ---- a project's settings ---- */

static bool is_in(const char *const *names, const char *name)
{
	for (; *names; names++)
		if (cordon_streq(*names, name))
			return true;
	return false;
}

/* Keeps of the record what is a setting and can't widen anything that the operator did not ask for. */
static int choose_settings(struct import *import, const json_t *metadata, json_t *settings, struct cordon_error *err)
{
	static const char *const taken[] = {
		"name", "description", "remote_url", "workspace_isolation", "protected_paths", "model", "limits", NULL
	};
	static const char *const ours[] = { "id", "created_at", "updated_at", "default_workspace_id", NULL };
	static const char *const agents[] = { "model",	     "autonomy",    "reasoning", "disabled_tools",
					      "mcp_servers", "permissions", NULL };
	json_auto_t *translated = json_copy((json_t *)(uintptr_t)metadata); /* json_copy() takes no const */
	const char *key;
	json_t *value, *agent = json_object_get(metadata, "agent");
	int r = translated ? cordon_original_settings(translated, import->notices) : -ENOMEM;

	json_object_foreach(translated, key, value) {
		const char *text = json_string_value(value);

		if (r < 0 || is_in(ours, key) || json_is_null(value) || cordon_streq(key, "agent"))
			continue;
		if (is_in(taken, key))
			r = json_object_set(settings, key, value);
		else if ((cordon_streq(key, "net") || cordon_streq(key, "network")) && text && cordon_streq(text, "none"))
			r = json_object_set(settings, "net", value);
		else if (cordon_streq(key, "credential_refs") || cordon_streq(key, "github_token"))
			r = cordon_import_note(import->notices,
					       "%.80s is not taken over: name the variable with the token in env_pass",
					       key);
		else
			r = cordon_import_note(import->notices, "%.80s of " METADATA " is not taken over", key);
	}
	json_object_foreach(json_is_object(agent) ? agent : NULL, key, value) {
		if (r == 0 && is_in(agents, key))
			r = json_object_set(settings, key, value);
	}
	if (r == 0)
		r = json_object_update(settings, (json_t *)(uintptr_t)import->given);
	json_object_del(settings, "init_git");
	return r < 0 ? cordon_no_memory(err) : 0;
}

static int fill_record(struct import *import, const char *id, const json_t *metadata, struct cordon_error *err)
{
	struct cordon_project_record *record = &import->record;
	const char *own = cordon_json_string(metadata, "id");
	const char *workspace = cordon_json_string(metadata, "default_workspace_id");
	json_auto_t *settings = json_object();
	int r = settings ? cordon_settings_default(record, err) : cordon_no_memory(err);

	if (r == 0)
		r = choose_settings(import, metadata, settings, err);
	if (r == 0)
		r = cordon_settings_apply(record, settings, err);
	if (r == 0)
		r = cordon_places_confirm(NULL, &record->settings, err);
	if (r < 0)
		return r;
	if (!record->name)
		return cordon_fail(err, -EINVAL, CORDON_KIND_CONFIG, METADATA " has no name");
	if (own && strcasecmp(own, id) != 0)
		return cordon_fail(err, -EINVAL, CORDON_KIND_CONFIG, METADATA " has another id: %.80s", own);
	if (!workspace)
		return cordon_fail(err, -EINVAL, CORDON_KIND_CONFIG, METADATA " has no default_workspace_id");
	r = cordon_id_workspace("default_workspace_id", workspace, record->default_workspace_id, err);
	cordon_copy(record->id, sizeof(record->id), id, strlen(id));
	cordon_record_stamp(record->created_at);
	put_time(metadata, "created_at", record->created_at);
	return r;
}

/* ---- workspaces ---- */

/* The original wrote a project's GitHub token into this file of its default workspace. */
static bool holds_token(int dir_fd)
{
	autobuf struct cordon_buf text = CORDON_BUF(65536);

	if (cordon_read_file(dir_fd, ".env", O_NOFOLLOW, &text, NULL) < 0 || !text.data)
		return false;
	return strncmp(text.data, TOKEN, strlen(TOKEN)) == 0 || strstr(text.data, "\n" TOKEN);
}

struct left_out {
	bool env;
};

static bool leave_out(void *data, const char *path)
{
	const struct left_out *left = data;

	return cordon_streq(path, METADATA) || (left->env && cordon_streq(path, ".env"));
}

static int copy_workspace(struct import *import, int src, int dst, const char *id, struct cordon_error *err)
{
	struct left_out left = { .env = holds_token(src) };
	const struct cordon_copy_bounds bounds = { CORDON_COPY_TREE, .leave_out = leave_out, .data = &left };
	int r;

	if (left.env)
		cordon_import_note(import->notices,
				   "workspace %s: .env is left out: it holds a token; name its variable in env_pass",
				   id);
	import->budget.bounds = &bounds;
	r = cordon_dirs_copy_all(src, dst, &import->budget, err);
	import->budget.bounds = NULL;
	return r;
}

/* Takes an external id of the workspace's own record, if it is one. An agent could write that record. */
static int take_external(struct import *import, const json_t *metadata, const char *id,
			 struct cordon_workspace_request *request, struct cordon_error *err)
{
	const char *external = cordon_json_string(metadata, "external_id");
	const char *source = cordon_json_string(metadata, "source");
	struct cordon_error fault = { 0 };

	if (source && *source && cordon_text_judge("source", source, CORDON_NAME_MAX, &fault) == 0)
		request->source = source;
	if (!external || !*external)
		return 0;
	if (fault.code || cordon_text_judge("external_id", external, CORDON_EXTERNAL_MAX, &fault) < 0) {
		cordon_import_note(import->notices, "workspace %s: its external id is not taken over: %s", id,
				   fault.message);
		return 0;
	}
	request->external_id = external;
	/* One of the two records is forged, and nobody can tell which. */
	if (cordon_workspace_indexed(import->state_fd, request))
		return cordon_fail(err, -EEXIST, CORDON_KIND_CONFLICT,
				   "workspace %s has the external id of another workspace: %.200s", id, external);
	return cordon_workspace_index(import->state_fd, &import->stage, request, id, err);
}

static int stage_record(struct import *import, const char *id, const json_t *metadata, struct cordon_error *err)
{
	struct cordon_workspace_request request = { 0 };
	autoworkspacerecord struct cordon_workspace_record record = { 0 };
	char name[CORDON_ID_SIZE + 8];
	int r = take_external(import, metadata, id, &request, err);

	if (r < 0)
		return r;
	if (cordon_workspace_new(import->record.id, id, &request, &record) < 0)
		return cordon_no_memory(err);
	put_time(metadata, "created_at", record.created_at);
	snprintf(name, sizeof(name), "%s.json", id);
	return cordon_record_save(&cordon_workspace_kind, import->records_fd, name, &record, err);
}

static int stage_workspace(struct import *import, int src_dir, const char *name, int workspaces_fd,
			   struct cordon_error *err)
{
	struct cordon_error fault = { 0 };
	json_auto_t *metadata = NULL;
	char id[CORDON_ID_SIZE];
	autofd int src = openat(src_dir, name, CORDON_OPEN_DIR);
	autofd int dst = -1;
	int r = cordon_id_workspace("workspace", name, id, err);

	if (r == 0 && src < 0)
		r = cordon_fail_errno(err, -errno, "cannot open the workspace");
	if (r == 0 && mkdirat(workspaces_fd, id, 0700) < 0)
		r = errno == EEXIST ? cordon_fail(err, -EEXIST, CORDON_KIND_CONFLICT, "two workspaces have this id")
				    : cordon_fail_errno(err, -errno, "cannot make the workspace");
	if (r == 0)
		r = cordon_state_dir(workspaces_fd, id, &dst, err);
	if (r == 0)
		r = copy_workspace(import, src, dst, id, err);
	if (r < 0)
		return r;
	r = read_metadata(src, &metadata, &fault);
	if (r < 0 && r != -ENOENT)
		cordon_import_note(import->notices, "workspace %s: its record is not taken over: %s", id, fault.message);
	return stage_record(import, id, r == 0 ? metadata : NULL, err);
}

static int stage_workspaces(struct import *import, struct cordon_error *err)
{
	autofd int src = openat(import->dir_fd, "workspaces", CORDON_OPEN_DIR);
	autofd int workspaces = -1;
	autofd int own = -1;
	json_auto_t *names = NULL;
	size_t i;
	json_t *name;
	int r = cordon_state_dir(import->tree_fd, "workspaces", &workspaces, err);

	if (r == 0 && src < 0 && errno != ENOENT)
		r = cordon_fail_errno(err, -errno, "cannot open workspaces");
	if (r == 0 && src >= 0)
		r = cordon_record_names(src, NULL, &names, err);
	json_array_foreach(names, i, name) {
		const char *text = json_string_value(name);

		if (r == 0 && !is_directory(src, text))
			cordon_import_note(import->notices, "workspaces/%.80s is no directory and not taken over", text);
		else if (r == 0)
			r = stage_workspace(import, src, text, workspaces, err);
		if (r < 0)
			return cordon_error_prefix(err, r, "workspace %.80s", text);
	}
	if (r < 0 || is_directory(workspaces, import->record.default_workspace_id))
		return r;
	cordon_import_note(import->notices, "the default workspace %s is missing and begins empty",
			   import->record.default_workspace_id);
	r = cordon_state_dir(workspaces, import->record.default_workspace_id, &own, err);
	return r < 0 ? r : stage_record(import, import->record.default_workspace_id, NULL, err);
}

/* Names what the original kept beside the workspaces and cordon has no use for. */
static void note_rest(struct import *import)
{
	static const char *const rest[] = { "Dockerfile", "cache",    "config.json", "history",
					    "openspec",	  "sessions", "ssh" };

	for (size_t i = 0; i < CORDON_ARRAY_SIZE(rest); i++)
		if (faccessat(import->dir_fd, rest[i], F_OK, AT_SYMLINK_NOFOLLOW) == 0)
			cordon_import_note(import->notices, "%s of the project is not taken over", rest[i]);
}

/* ---- a project ---- */

static int stage_project(struct import *import, struct cordon_error *err)
{
	autofd int sessions = -1;
	int r = cordon_state_dir(import->stage.fd, "tree", &import->tree_fd, err);

	if (r == 0)
		r = cordon_state_dir(import->stage.fd, "state", &import->state_fd, err);
	if (r == 0)
		r = cordon_state_dir(import->state_fd, "workspaces", &import->records_fd, err);
	if (r == 0)
		r = cordon_state_dir(import->tree_fd, "sessions", &sessions, err);
	if (r == 0)
		r = cordon_workspace_fill(import->dir_fd, true, import->tree_fd, err);
	if (r == 0)
		r = stage_workspaces(import, err);
	if (r == 0)
		r = cordon_project_publish(&import->stage, &import->record, import->tree_fd, err);
	return r < 0 ? r
		     : cordon_record_save(&cordon_project_kind, import->state_fd, "project.json", &import->record, err);
}

/* Puts everything of one project into the stage. */
static int import_project(const struct cordon_store *store, const struct cordon_stage *stage, int dir_fd, const char *id,
			  const json_t *given, json_t *projects, json_t *notices, struct cordon_error *err)
{
	static const struct cordon_copy_bounds bounds = { CORDON_COPY_TREE };
	struct import import = { .store = store,
				 .given = given,
				 .notices = notices,
				 .dir_fd = dir_fd,
				 .stage = { .store = store, .fd = -1 },
				 .tree_fd = -1,
				 .state_fd = -1,
				 .records_fd = -1,
				 .budget = CORDON_COPY_BUDGET_OF(&bounds) };
	json_auto_t *metadata = NULL;
	int r = read_metadata(dir_fd, &metadata, err);

	if (r == 0)
		r = fill_record(&import, id, metadata, err);
	if (r == 0 && is_directory(store->projects_fd, id))
		r = cordon_fail(err, -EEXIST, CORDON_KIND_CONFLICT, "a project with this id exists already");
	if (r == 0 && mkdirat(stage->fd, id, 0700) < 0)
		r = errno == EEXIST ? cordon_fail(err, -EEXIST, CORDON_KIND_CONFLICT, "two projects have this id")
				    : cordon_fail_errno(err, -errno, "cannot stage the project");
	if (r == 0)
		r = cordon_state_dir(stage->fd, id, &import.stage.fd, err);
	if (r == 0)
		r = stage_project(&import, err);
	if (r == 0) {
		note_rest(&import);
		if (is_directory(import.state_fd, "external"))
			cordon_import_note(notices,
					   "project %s: its external ids come from files that agents could write; "
					   "check them with 'cordon workspace list'",
					   id);
		if (json_array_append_new(projects, cordon_project_json(&import.record)) < 0)
			r = cordon_no_memory(err);
	}
	cordon_closep(&import.stage.fd);
	cordon_closep(&import.tree_fd);
	cordon_closep(&import.state_fd);
	cordon_closep(&import.records_fd);
	cordon_project_record_done(&import.record);
	/* What is wrong is the record, not the command. */
	if (r < 0 && err && err->kind == CORDON_KIND_USAGE)
		err->kind = CORDON_KIND_CONFIG;
	return r < 0 ? cordon_error_prefix(err, r, "project %s", id) : 0;
}

/* ---- all of them ---- */

bool cordon_import_is_store(int dir_fd, int *ret_fd)
{
	autofd int projects = openat(dir_fd, "projects", CORDON_OPEN_DIR);
	json_auto_t *names = NULL;
	struct stat st;
	size_t i;
	json_t *name;

	if (fstatat(dir_fd, METADATA, &st, AT_SYMLINK_NOFOLLOW) == 0 && is_directory(dir_fd, "workspaces"))
		return true;
	if (projects < 0 || cordon_record_names(projects, NULL, &names, NULL) < 0)
		return false;
	json_array_foreach(names, i, name) {
		char path[CORDON_ID_SIZE + 32], id[CORDON_ID_SIZE];

		if (cordon_id_uuid("", json_string_value(name), id, NULL) < 0)
			continue;
		snprintf(path, sizeof(path), "%s/" METADATA, json_string_value(name));
		if (fstatat(projects, path, &st, AT_SYMLINK_NOFOLLOW) == 0) {
			*ret_fd = cordon_steal_fd(&projects);
			return true;
		}
	}
	return false;
}

static int import_named(const struct cordon_store *store, const struct cordon_stage *stage, int projects_fd,
			const char *name, const json_t *given, json_t *projects, json_t *notices,
			struct cordon_error *err)
{
	autofd int dir = -1;
	char id[CORDON_ID_SIZE];

	if (cordon_id_uuid("", name, id, NULL) < 0 || !is_directory(projects_fd, name)) {
		cordon_import_note(notices, "projects/%.80s is no project and not taken over", name);
		return 0;
	}
	if (json_array_size(projects) == PROJECTS_MAX)
		return cordon_fail(err, -E2BIG, CORDON_KIND_LIMIT, "one import takes at most %d projects", PROJECTS_MAX);
	dir = openat(projects_fd, name, CORDON_OPEN_DIR);
	if (dir < 0)
		return cordon_fail_errno(err, -errno, "cannot open project %s", id);
	return import_project(store, stage, dir, id, given, projects, notices, err);
}

/* The project that `dir_fd` is. Its id is in its record, which may be the name of the directory or not. */
static int import_single(const struct cordon_store *store, const struct cordon_stage *stage, int dir_fd,
			 const json_t *given, json_t *projects, json_t *notices, struct cordon_error *err)
{
	json_auto_t *metadata = NULL;
	char id[CORDON_ID_SIZE];
	const char *text;
	int r = read_metadata(dir_fd, &metadata, err);

	if (r < 0)
		return r;
	text = cordon_json_string(metadata, "id");
	r = cordon_id_uuid("id of " METADATA, text ? text : "", id, err);
	return r < 0 ? r : import_project(store, stage, dir_fd, id, given, projects, notices, err);
}

int cordon_import_recover(const struct cordon_store *store, int stage_fd)
{
	json_auto_t *names = NULL;
	size_t i;
	json_t *name;
	int r = 0;

	if (faccessat(stage_fd, READY, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
		return 0; /* the caller takes it back by removing the stage */
	if (cordon_record_names(stage_fd, NULL, &names, NULL) < 0)
		return -EIO;
	json_array_foreach(names, i, name) {
		const char *id = json_string_value(name);
		autofd int part = cordon_uuid_valid(id) ? openat(stage_fd, id, CORDON_OPEN_DIR) : -1;

		if (r < 0 || part < 0 || faccessat(part, "state", F_OK, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		r = cordon_project_commit(store, part, id);
	}
	return r;
}

/* Says that the stage is complete, and moves everything to its place. If that fails midway, the next repair goes on. */
static int commit_all(const struct cordon_store *store, struct cordon_stage *stage, struct cordon_error *err)
{
	autofd int ready = -1;
	int r = 0;

	if (syncfs(stage->fd) < 0 ||
	    (ready = openat(stage->fd, READY, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600)) < 0 ||
	    fsync(stage->fd) < 0)
		return cordon_fail_errno(err, -errno, "cannot finish the import");
	r = cordon_import_recover(store, stage->fd);
	if (r < 0) {
		cordon_closep(&stage->fd); /* so that the stage stays */
		return cordon_fail_errno(err, r, "cannot finish the import; the next command tries again");
	}
	futimens(store->projects_fd, NULL);
	return 0;
}

int cordon_import_store(const struct cordon_store *store, int dir_fd, int projects_fd, const json_t *settings,
			json_t **ret_projects, json_t *notices, struct cordon_error *err)
{
	autostage struct cordon_stage stage = CORDON_STAGE_NONE;
	json_auto_t *projects = json_array();
	json_auto_t *given = json_copy((json_t *)(uintptr_t)settings); /* json_copy() takes no const */
	json_auto_t *names = NULL;
	char stage_name[CORDON_ID_SIZE + 8] = "im.";
	autofd int lock = -1;
	size_t i;
	json_t *name;
	int r = projects && given ? 0 : cordon_no_memory(err);

	if (projects_fd >= 0)
		json_object_del(given, "name"); /* it can't be the name of all */
	/* One import at a time, so that no other one makes a project of the same id after we looked for it. */
	if (r == 0)
		r = cordon_lock_take(store->home.state_fd, "import.lock", LOCK_EX, &lock, err);
	if (r == 0 && cordon_uuid_new(stage_name + 3) < 0)
		r = cordon_fail_errno(err, -errno, "cannot make an id");
	if (r == 0)
		r = cordon_stage_open(store, stage_name, &stage, err);
	if (r == 0 && projects_fd < 0)
		r = import_single(store, &stage, dir_fd, given, projects, notices, err);
	if (r == 0 && projects_fd >= 0)
		r = cordon_record_names(projects_fd, NULL, &names, err);
	json_array_foreach(names, i, name) {
		if (r == 0)
			r = import_named(store, &stage, projects_fd, json_string_value(name), given, projects, notices,
					 err);
	}
	if (r == 0)
		r = commit_all(store, &stage, err);
	if (r < 0)
		return r;
	*ret_projects = cordon_steal_ptr(&projects);
	return 0;
}
