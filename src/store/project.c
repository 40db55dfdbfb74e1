/* SPDX-License-Identifier: Apache-2.0 */
/* Creates projects with their default workspace, and reads, changes and deletes them. */
#include <stdio.h>
#include <sys/stat.h>

#include "base/dirs.h"
#include "store/internal.h"

void cordon_project_release(struct cordon_project *project)
{
	cordon_project_record_done(&project->record);
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

static void move_project(struct cordon_project *from, struct cordon_project *to)
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
		/* The project may have been deleted while we waited; then its directory is in a stage, or does not
		 * exist. */
		if (fstat(project.state_fd, &held) < 0 ||
		    fstatat(store->projects_fd, project.id, &named, AT_SYMLINK_NOFOLLOW) < 0 ||
		    held.st_ino != named.st_ino)
			return no_project(project.id, err);
	}
	r = cordon_record_load(&cordon_project_kind, project.state_fd, "project.json", &project.record, err);
	if (r < 0)
		return r == -ENOENT ? no_project(project.id, err) : r;
	/* Only with the lock: this makes the directory again if somebody removed it by hand, but it must not do so
	 * while another process deletes the project. */
	if (operation) {
		r = cordon_state_dir(store->trees_fd, project.id, &project.tree_fd, err);
		if (r < 0)
			return r;
	}
	move_project(&project, ret_project);
	return 0;
}

int cordon_project_workspaces(const struct cordon_project *project, int *ret_fd, struct cordon_error *err)
{
	int r = cordon_state_dir(project->tree_fd, "workspaces", ret_fd, err);

	return r < 0 ? cordon_error_prefix(err, r, "project %s", project->id) : 0;
}

int cordon_project_publish(const struct cordon_stage *stage, const struct cordon_project_record *record, int tree_fd,
			   struct cordon_error *err)
{
	json_auto_t *metadata = cordon_fields_write(&cordon_project_kind, record, true);

	return cordon_publish(stage, tree_fd, "metadata.json", metadata, err);
}

/* Copies AGENTS.md and .factory of the template into the tree, and with `whole` everything into the state, from which
 * each workspace gets a copy. */
static int stage_template(const struct cordon_template *template, int tree_fd, int state_fd, struct cordon_error *err)
{
	const struct cordon_copy_bounds *bounds = template->whole ? template->whole : &cordon_copy_small;
	struct cordon_copy_budget budget = CORDON_COPY_BUDGET_OF(bounds);
	autofd int source = open(template->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	autofd int whole = -1;
	int r;

	if (source < 0)
		return cordon_fail_errno(err, -errno, "cannot open the template %s", template->dir);
	r = cordon_workspace_fill(source, true, tree_fd, err);
	if (r < 0 || !template->whole)
		return r;
	r = cordon_state_dir(state_fd, CORDON_TEMPLATE, &whole, err);
	if (r == 0)
		r = cordon_dirs_copy_all(source, whole, &budget, err);
	if (r == 0 && syncfs(whole) < 0)
		r = cordon_fail_errno(err, -errno, "cannot copy %s", template->dir);
	return r;
}

/* Makes the tree that agents may see: the files of the template, the default workspace, and a copy of the record. */
static int stage_tree(const struct cordon_stage *stage, const struct cordon_project_record *record, int state_fd,
		      const struct cordon_template *template, bool git, struct cordon_error *err)
{
	autofd int tree = -1;
	autofd int sessions = -1;
	autofd int workspaces = -1;
	autofd int workspace = -1;
	int r = cordon_state_dir(stage->fd, "tree", &tree, err);

	if (r == 0)
		r = cordon_state_dir(tree, "sessions", &sessions, err);
	if (r == 0)
		r = cordon_state_dir(tree, "workspaces", &workspaces, err);
	if (r == 0)
		r = cordon_state_dir(workspaces, record->default_workspace_id, &workspace, err);
	if (r == 0 && template)
		r = stage_template(template, tree, state_fd, err);
	if (r == 0)
		r = cordon_workspace_populate(tree, state_fd, record->settings.workspace_isolation, workspace, err);
	if (r == 0 && git && faccessat(workspace, ".git", F_OK, AT_SYMLINK_NOFOLLOW) < 0)
		r = cordon_git_init(workspace, record->remote_url, err);
	if (r == 0)
		r = cordon_project_publish(stage, record, tree, err);
	if (r == 0 && (fsync(workspace) < 0 || fsync(workspaces) < 0 || fsync(tree) < 0))
		r = cordon_fail_errno(err, -errno, "cannot create the project");
	return r;
}

static int stage_state(int state, const struct cordon_project_record *record, struct cordon_error *err)
{
	static const struct cordon_workspace_request origin = { .source = "project_create" };
	autoworkspacerecord struct cordon_workspace_record workspace = { 0 };
	char name[CORDON_ID_SIZE + 8];
	autofd int workspaces = -1;
	int r = cordon_workspace_new(record->id, record->default_workspace_id, &origin, &workspace) < 0
			? cordon_no_memory(err)
			: cordon_state_dir(state, "workspaces", &workspaces, err);

	snprintf(name, sizeof(name), "%s.json", record->default_workspace_id);
	if (r == 0)
		r = cordon_record_save(&cordon_workspace_kind, workspaces, name, &workspace, err);
	return r < 0 ? r : cordon_record_save(&cordon_project_kind, state, "project.json", record, err);
}

int cordon_project_commit(const struct cordon_store *store, int stage_fd, const char *id)
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
		return 0; /* a creation that is complete or was not ready, or a deletion that had not begun */
	if (!deletes && !tree)
		return cordon_project_commit(store, stage_fd, id);
	if (deletes)
		r = cordon_dirs_move(store->trees_fd, id, stage_fd, "tree");
	return r == -ENOENT || r == -EEXIST ? 0 : r;
}

/* Removes init_git from the settings: it is an option of the creation and not a setting. */
static int take_git(json_t *settings, bool *ret_git, struct cordon_error *err)
{
	const json_t *value = json_object_get(settings, "init_git");

	*ret_git = !value || json_is_true(value);
	if (value && !json_is_boolean(value))
		return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "init_git must be true or false");
	json_object_del(settings, "init_git");
	return 0;
}

/* On failure the record may be filled in part; the caller frees it in any case. */
static int fill_record(const json_t *settings, struct cordon_project_record *record, struct cordon_error *err)
{
	int r = cordon_settings_default(record, err);

	if (r == 0)
		r = cordon_settings_apply(record, settings, err);
	if (r < 0)
		return r;
	if (!record->name)
		return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "name is required");
	if (cordon_uuid_new(record->id) < 0 || cordon_uuid_new(record->default_workspace_id) < 0)
		return cordon_fail_errno(err, -errno, "cannot make an id");
	cordon_record_stamp(record->created_at);
	return 0;
}

/* Moves a record to the caller, who frees it. */
static void move_record(struct cordon_project_record *from, struct cordon_project_record *to)
{
	*to = *from;
	*from = (struct cordon_project_record){ 0 };
}

int cordon_project_create(const struct cordon_store *store, const json_t *settings,
			  const struct cordon_template *template, struct cordon_project_record *ret_project,
			  struct cordon_error *err)
{
	autostage struct cordon_stage stage = CORDON_STAGE_NONE;
	autoprojectrecord struct cordon_project_record record = { 0 };
	json_auto_t *wanted = json_deep_copy(settings);
	char name[CORDON_ID_SIZE + 8];
	autofd int state = -1;
	bool git = true;
	int r = take_git(wanted, &git, err);

	if (r == 0)
		r = fill_record(wanted, &record, err);
	if (r == 0)
		r = cordon_places_confirm(NULL, &record.settings, err);
	if (r < 0)
		return r;
	snprintf(name, sizeof(name), "pj.%s", record.id);
	r = cordon_stage_open(store, name, &stage, err);
	if (r == 0)
		r = cordon_state_dir(stage.fd, "unready", &state, err);
	if (r == 0)
		r = stage_tree(&stage, &record, state, template, git, err);
	if (r == 0)
		r = stage_state(state, &record, err);
	/* The name `state` says that everything is there. */
	if (r == 0 && (renameat(stage.fd, "unready", stage.fd, "state") < 0 || fsync(stage.fd) < 0))
		r = cordon_fail_errno(err, -errno, "cannot create the project");
	if (r < 0)
		return r;
	r = cordon_project_commit(store, stage.fd, record.id);
	if (r < 0) {
		cordon_dirs_move(store->trees_fd, record.id, stage.fd, "tree");
		return cordon_fail_errno(err, r, "cannot create the project");
	}
	move_record(&record, ret_project);
	return 0;
}

int cordon_project_get(const struct cordon_store *store, const char *id, struct cordon_project_record *ret_project,
		       struct cordon_error *err)
{
	autoproject struct cordon_project project = CORDON_PROJECT_NONE;
	int r = cordon_project_hold(store, id, 0, &project, err);

	if (r == 0)
		move_record(&project.record, ret_project);
	return r;
}

int cordon_project_republish(const struct cordon_stage *stage, const char *id)
{
	autoproject struct cordon_project project = CORDON_PROJECT_NONE;
	int r = cordon_project_hold(stage->store, id, LOCK_SH | LOCK_NB, &project, NULL);

	/* The project is deleted, or another process is changing it and will publish its record. */
	if (r == -ENOENT || r == -EWOULDBLOCK)
		return 0;
	return r < 0 ? r : cordon_project_publish(stage, &project.record, project.tree_fd, NULL);
}

static int copy_record(const struct cordon_project_record *from, struct cordon_project_record *ret_copy,
		       struct cordon_error *err)
{
	json_auto_t *object = cordon_fields_write(&cordon_project_kind, from, false);

	return object ? cordon_fields_read(&cordon_project_kind, object, ret_copy, err) : cordon_no_memory(err);
}

int cordon_project_preview(const struct cordon_project_record *project, const json_t *changes,
			   struct cordon_project_record *ret_before, struct cordon_project_record *ret_after,
			   struct cordon_error *err)
{
	autoprojectrecord struct cordon_project_record before = { 0 };
	autoprojectrecord struct cordon_project_record after = { 0 };
	json_auto_t *wanted = json_deep_copy(changes);
	int r = project ? copy_record(project, &before, err) : cordon_settings_default(&before, err);

	if (r == 0)
		r = copy_record(&before, &after, err);
	/* These are arguments of the calls, not settings. */
	json_object_del(wanted, "project_id");
	json_object_del(wanted, "init_git");
	if (r == 0)
		r = cordon_settings_apply(&after, wanted, err);
	if (r < 0)
		return r;
	move_record(&before, ret_before);
	move_record(&after, ret_after);
	return 0;
}

int cordon_project_change(const struct cordon_store *store, const char *id, const struct cordon_settings_change *change,
			  const struct cordon_settings_judge *judge, struct cordon_project_record *ret_project,
			  json_t **ret_running, struct cordon_error *err)
{
	autoproject struct cordon_project project = CORDON_PROJECT_NONE;
	autoprojectrecord struct cordon_project_record before = { 0 };
	autostage struct cordon_stage stage = CORDON_STAGE_NONE;
	json_auto_t *running = NULL;
	json_auto_t *changes = NULL;
	char name[CORDON_ID_SIZE + 8];
	int r = cordon_project_hold(store, id, LOCK_EX, &project, err);

	if (r == 0)
		r = change->make(change->data, &project.record, &changes, err);
	if (r == 0)
		r = copy_record(&project.record, &before, err);
	if (r == 0)
		r = cordon_settings_apply(&project.record, changes, err);
	if (r == 0 && judge)
		r = judge->judge(judge->data, &before, &project.record, err);
	if (r == 0)
		r = cordon_places_confirm(&before.settings, &project.record.settings, err);
	if (r == 0)
		r = cordon_active_list(store, &project, NULL, &running, err);
	if (r < 0)
		return r;
	cordon_record_stamp(project.record.updated_at);
	snprintf(name, sizeof(name), "up.%s", project.id);
	r = cordon_stage_open(store, name, &stage, err);
	if (r == 0)
		r = cordon_stage_save(&stage, &cordon_project_kind, project.state_fd, "project.json", &project.record,
				      err);
	if (r < 0)
		return r;
	/* A process that watches the list of projects with inotify learns from this that one of them has changed. */
	futimens(store->projects_fd, NULL);
	r = cordon_project_publish(&stage, &project.record, project.tree_fd, err);
	if (r < 0)
		return cordon_error_prefix(err, r, "the settings are saved, but not published");
	move_record(&project.record, ret_project);
	if (ret_running)
		*ret_running = cordon_steal_ptr(&running);
	return 0;
}

/* The changes that the caller named, whatever the settings are. */
static int named_changes(const void *changes, const struct cordon_project_record *project, json_t **ret_changes,
			 struct cordon_error *err)
{
	(void)project;
	(void)err;
	/* jansson takes no const value; nobody changes it. */
	*ret_changes = json_incref((json_t *)(uintptr_t)changes);
	return 0;
}

int cordon_project_update(const struct cordon_store *store, const char *id, const json_t *changes,
			  const struct cordon_settings_judge *judge, struct cordon_project_record *ret_project,
			  json_t **ret_running, struct cordon_error *err)
{
	const struct cordon_settings_change change = { .make = named_changes, .data = changes };

	return cordon_project_change(store, id, &change, judge, ret_project, ret_running, err);
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
	r = cordon_dirs_move(store->trees_fd, project.id, stage.fd, "tree");
	if (r < 0) {
		/* The stage stays, so that the next repair tries again. */
		cordon_closep(&stage.fd);
		return cordon_fail_errno(err, r, "cannot delete the directory of project %s", project.id);
	}
	*ret_deleted = true;
	return 0;
}
