/* SPDX-License-Identifier: Apache-2.0 */
/* Projects: created with their default workspace, read, listed, changed and deleted. */
#include <stdio.h>
#include <sys/stat.h>

#include "base/tree.h"
#include "store/internal.h"

void cordon_project_release(struct cordon_project *project)
{
	json_decref(project->record);
	project->record = NULL;
	cordon_closep(&project->tree_fd);
	cordon_closep(&project->state_fd);
	cordon_closep(&project->lock_fd);
}

static int no_project(const char *id, struct cordon_error *err)
{
	int r = cordon_fail(err, -ENOENT, CORDON_KIND_NOT_FOUND, "project %s does not exist", id);

	cordon_error_hint(err, "see 'cordon project list'");
	return r;
}

static void hand_over(struct cordon_project *from, struct cordon_project *to)
{
	*to = *from;
	*from = (struct cordon_project)CORDON_PROJECT_NONE;
}

int cordon_project_hold(const struct cordon_store *store, const char *id, int operation,
			struct cordon_project *ret_project, struct cordon_error *err)
{
	autoproject struct cordon_project project = CORDON_PROJECT_NONE;
	struct stat held, named;
	int r = cordon_id_uuid("project_id", id, project.id, err);

	if (r < 0)
		return r;
	project.state_fd = openat(store->projects_fd, project.id, CORDON_OPEN_DIR);
	if (project.state_fd < 0)
		return errno == ENOENT ? no_project(project.id, err)
				       : cordon_fail_errno(err, -errno, "cannot open project %s", project.id);
	if (operation) {
		r = cordon_lock_take(project.state_fd, "lock", operation, &project.lock_fd, err);
		if (r < 0)
			return r;
		/* It may have been deleted while we waited; then its directory is in a stage, or gone. */
		if (fstat(project.state_fd, &held) < 0 ||
		    fstatat(store->projects_fd, project.id, &named, AT_SYMLINK_NOFOLLOW) < 0 ||
		    held.st_ino != named.st_ino)
			return no_project(project.id, err);
	}
	r = cordon_record_read(project.state_fd, "project.json", &project.record, err);
	if (r < 0)
		return r == -ENOENT ? no_project(project.id, err) : r;
	/* Only under the lock: a directory that somebody removed by hand is made again, one that a deletion takes
	 * away meanwhile must not be. */
	if (operation) {
		r = cordon_store_dir(store->trees_fd, project.id, &project.tree_fd, err);
		if (r < 0)
			return r;
	}
	hand_over(&project, ret_project);
	return 0;
}

bool cordon_project_isolated(const struct cordon_project *project)
{
	return json_is_true(json_object_get(project->record, "workspace_isolation"));
}

int cordon_project_workspaces(const struct cordon_project *project, int *ret_fd, struct cordon_error *err)
{
	int r = cordon_store_dir(project->tree_fd, "workspaces", ret_fd, err);

	return r < 0 ? cordon_error_prefix(err, r, "project %s", project->id) : 0;
}

json_t *cordon_project_public(const json_t *record)
{
	return cordon_record_public(record, NULL);
}

/* The files agents may see: of the template, the default workspace, and a copy of the record. */
static int stage_tree(const struct cordon_stage *stage, const json_t *record, const char *template_dir, bool git,
		      struct cordon_error *err)
{
	json_auto_t *metadata = cordon_project_metadata(record);
	const char *url = json_string_value(json_object_get(record, "remote_url"));
	autofd int tree = -1;
	autofd int sessions = -1;
	autofd int workspaces = -1;
	autofd int workspace = -1;
	int r = cordon_store_dir(stage->fd, "tree", &tree, err);

	if (r == 0)
		r = cordon_store_dir(tree, "sessions", &sessions, err);
	if (r == 0)
		r = cordon_store_dir(tree, "workspaces", &workspaces, err);
	if (r == 0)
		r = cordon_store_dir(workspaces, cordon_record_text(record, "default_workspace_id"), &workspace, err);
	if (r == 0 && template_dir) {
		autofd int source = open(template_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		if (source < 0)
			return cordon_fail_errno(err, -errno, "cannot open the template %s", template_dir);
		r = cordon_workspace_fill(source, true, tree, err);
	}
	if (r == 0)
		r = cordon_workspace_fill(tree, json_is_true(json_object_get(record, "workspace_isolation")), workspace,
					  err);
	if (r == 0 && git)
		r = cordon_git_init(workspace, url, err);
	if (r == 0)
		r = cordon_publish(stage, tree, "metadata.json", metadata, err);
	if (r == 0 && (fsync(workspace) < 0 || fsync(workspaces) < 0 || fsync(tree) < 0))
		r = cordon_fail_errno(err, -errno, "cannot create the project");
	return r;
}

static int stage_state(const struct cordon_stage *stage, const json_t *record, struct cordon_error *err)
{
	static const struct cordon_workspace_request origin = { .source = "project_create" };
	const char *workspace_id = cordon_record_text(record, "default_workspace_id");
	json_auto_t *workspace = cordon_workspace_record(cordon_record_text(record, "id"), workspace_id, &origin);
	char name[CORDON_ID_SIZE + 8];
	autofd int state = -1;
	autofd int workspaces = -1;
	int r = workspace ? cordon_store_dir(stage->fd, "state", &state, err) : cordon_no_memory(err);

	snprintf(name, sizeof(name), "%s.json", workspace_id);
	if (r == 0)
		r = cordon_store_dir(state, "workspaces", &workspaces, err);
	if (r == 0)
		r = cordon_record_write(workspaces, name, workspace, err);
	return r < 0 ? r : cordon_record_write(state, "project.json", record, err);
}

/* The tree goes first: a project is there once its records are. */
static int commit(const struct cordon_store *store, int stage_fd, const char *id)
{
	if (renameat2(stage_fd, "tree", store->trees_fd, id, RENAME_NOREPLACE) < 0 && errno != ENOENT)
		return -errno;
	if (fsync(store->trees_fd) < 0)
		return -errno;
	if (renameat2(stage_fd, "state", store->projects_fd, id, RENAME_NOREPLACE) < 0 || fsync(store->projects_fd) < 0)
		return -errno;
	return 0;
}

int cordon_project_recover(const struct cordon_store *store, int stage_fd, const char *id)
{
	bool deletes = faccessat(stage_fd, "delete", F_OK, AT_SYMLINK_NOFOLLOW) == 0;
	bool state = faccessat(stage_fd, "state", F_OK, AT_SYMLINK_NOFOLLOW) == 0;
	bool tree = faccessat(stage_fd, "tree", F_OK, AT_SYMLINK_NOFOLLOW) == 0;
	int r = 0;

	if (!state)
		return 0; /* created: done; deleted: not begun */
	if (!deletes && !tree)
		return commit(store, stage_fd, id);
	if (deletes)
		r = cordon_tree_move(store->trees_fd, id, stage_fd, "tree");
	return r == -ENOENT || r == -EEXIST ? 0 : r;
}

/* Takes init_git out of the settings: it is about creation and no setting. */
static int take_git(json_t *settings, bool *ret_git, struct cordon_error *err)
{
	const json_t *value = json_object_get(settings, "init_git");

	*ret_git = !value || json_is_true(value);
	if (value && !json_is_boolean(value))
		return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "init_git must be true or false");
	json_object_del(settings, "init_git");
	return 0;
}

static int new_record(json_t *settings, json_t **ret_record, struct cordon_error *err)
{
	json_auto_t *record = cordon_settings_default();
	char id[CORDON_UUID_SIZE], workspace[CORDON_UUID_SIZE];
	int r;

	if (!record)
		return cordon_no_memory(err);
	r = cordon_settings_apply(record, settings, err);
	if (r < 0)
		return r;
	if (json_is_null(json_object_get(record, "name")))
		return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "name is required");
	if (cordon_uuid_new(id) < 0 || cordon_uuid_new(workspace) < 0 ||
	    json_object_set_new(record, "id", json_string(id)) < 0 ||
	    json_object_set_new(record, "default_workspace_id", json_string(workspace)) < 0 ||
	    cordon_record_stamp(record, "created_at") < 0)
		return cordon_no_memory(err);
	*ret_record = cordon_steal_ptr(&record);
	return 0;
}

int cordon_project_create(const struct cordon_store *store, const json_t *settings, const char *template_dir,
			  json_t **ret_project, struct cordon_error *err)
{
	autostage struct cordon_stage stage = CORDON_STAGE_NONE;
	json_auto_t *wanted = json_deep_copy(settings);
	json_auto_t *record = NULL;
	json_auto_t *answer = NULL;
	char name[CORDON_ID_SIZE + 8];
	bool git = true;
	int r = take_git(wanted, &git, err);

	if (r == 0)
		r = new_record(wanted, &record, err);
	if (r < 0)
		return r;
	answer = cordon_project_public(record);
	if (!answer)
		return cordon_no_memory(err);
	snprintf(name, sizeof(name), "pj.%s", cordon_record_text(record, "id"));
	r = cordon_stage_open(store, name, &stage, err);
	if (r == 0)
		r = stage_tree(&stage, record, template_dir, git, err);
	if (r == 0)
		r = stage_state(&stage, record, err);
	if (r < 0)
		return r;
	r = commit(store, stage.fd, cordon_record_text(record, "id"));
	if (r < 0) {
		cordon_tree_move(store->trees_fd, cordon_record_text(record, "id"), stage.fd, "tree");
		return cordon_fail_errno(err, r, "cannot create the project");
	}
	*ret_project = cordon_steal_ptr(&answer);
	return 0;
}

int cordon_project_get(const struct cordon_store *store, const char *id, json_t **ret_project, struct cordon_error *err)
{
	autoproject struct cordon_project project = CORDON_PROJECT_NONE;
	json_t *answer;
	int r = cordon_project_hold(store, id, 0, &project, err);

	if (r < 0)
		return r;
	answer = cordon_project_public(project.record);
	if (!answer)
		return cordon_no_memory(err);
	*ret_project = answer;
	return 0;
}

static int publish(const struct cordon_stage *stage, const struct cordon_project *project, struct cordon_error *err)
{
	json_auto_t *metadata = cordon_project_metadata(project->record);

	return cordon_publish(stage, project->tree_fd, "metadata.json", metadata, err);
}

int cordon_project_republish(const struct cordon_stage *stage, const char *id)
{
	autoproject struct cordon_project project = CORDON_PROJECT_NONE;
	int r = cordon_project_hold(stage->store, id, LOCK_SH | LOCK_NB, &project, NULL);

	/* Gone, or somebody is changing it just now and will publish that. */
	if (r == -ENOENT || r == -EWOULDBLOCK)
		return 0;
	return r < 0 ? r : publish(stage, &project, NULL);
}

/* Judges the changes and puts them into the record. Limits are changed one by one: naming one must not reset the
 * others. */
static int change(json_t *record, const json_t *changes, struct cordon_error *err)
{
	json_auto_t *wanted = json_deep_copy(changes);
	json_auto_t *limits = json_deep_copy(json_object_get(record, "limits"));
	json_t *given = json_object_get(wanted, "limits");

	if (!wanted || !limits)
		return cordon_no_memory(err);
	if (json_is_object(given) &&
	    (json_object_update(limits, given) < 0 || json_object_set(wanted, "limits", limits) < 0))
		return cordon_no_memory(err);
	return cordon_settings_apply(record, wanted, err);
}

int cordon_project_update(const struct cordon_store *store, const char *id, const json_t *changes, json_t **ret_project,
			  json_t **ret_running, struct cordon_error *err)
{
	autoproject struct cordon_project project = CORDON_PROJECT_NONE;
	autostage struct cordon_stage stage = CORDON_STAGE_NONE;
	json_auto_t *answer = NULL;
	json_auto_t *running = NULL;
	char name[CORDON_ID_SIZE + 8];
	int r = cordon_project_hold(store, id, LOCK_EX, &project, err);

	if (r == 0)
		r = change(project.record, changes, err);
	if (r == 0)
		r = cordon_active_list(store, &project, NULL, &running, err);
	if (r < 0)
		return r;
	if (cordon_record_stamp(project.record, "updated_at") < 0 || !(answer = cordon_project_public(project.record)))
		return cordon_no_memory(err);
	snprintf(name, sizeof(name), "up.%s", project.id);
	r = cordon_stage_open(store, name, &stage, err);
	if (r == 0)
		r = cordon_stage_record(&stage, project.state_fd, "project.json", project.record, err);
	if (r < 0)
		return r;
	/* Tells whoever watches the list of projects (inotify) that an entry of it reads differently now. */
	futimens(store->projects_fd, NULL);
	r = publish(&stage, &project, err);
	if (r < 0)
		return cordon_error_prefix(err, r, "the settings are saved, but not published");
	*ret_project = cordon_steal_ptr(&answer);
	if (ret_running)
		*ret_running = cordon_steal_ptr(&running);
	return 0;
}

int cordon_project_delete(const struct cordon_store *store, const char *id, bool *ret_deleted, struct cordon_error *err)
{
	autoproject struct cordon_project project = CORDON_PROJECT_NONE;
	autostage struct cordon_stage stage = CORDON_STAGE_NONE;
	char name[CORDON_ID_SIZE + 8];
	int r = cordon_project_hold(store, id, LOCK_EX, &project, err);

	if (r == -ENOENT) {
		*ret_deleted = false;
		return 0;
	}
	if (r == 0)
		r = cordon_active_none(store, &project, NULL, "the project", err);
	if (r < 0)
		return r;
	snprintf(name, sizeof(name), "pj.%s", project.id);
	r = cordon_stage_open(store, name, &stage, err);
	if (r == 0)
		r = cordon_stage_delete(&stage, err);
	if (r < 0)
		return r;
	if (renameat2(store->projects_fd, project.id, stage.fd, "state", RENAME_NOREPLACE) < 0 ||
	    fsync(store->projects_fd) < 0)
		return cordon_fail_errno(err, -errno, "cannot delete project %s", project.id);
	r = cordon_tree_move(store->trees_fd, project.id, stage.fd, "tree");
	if (r < 0) {
		/* The stage stays, so that the next repair tries again. */
		cordon_closep(&stage.fd);
		return cordon_fail_errno(err, r, "cannot delete the directory of project %s", project.id);
	}
	*ret_deleted = true;
	return 0;
}
