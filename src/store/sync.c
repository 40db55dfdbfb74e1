/* SPDX-License-Identifier: Apache-2.0 */
/* What comes into a workspace that exists: the project's files, on demand and at the start of a session. */
#include <stdio.h>
#include <sys/stat.h>

#include "base/path.h"
#include "base/tree.h"
#include "policy/policy.h"
#include "store/internal.h"

int cordon_workspace_path(const struct cordon_store *store, const char *project_id, const char *workspace_id,
			  char ret_path[static CORDON_PATH_MAX], struct cordon_error *err)
{
	char project[CORDON_ID_SIZE], workspace[CORDON_ID_SIZE], below[2 * CORDON_ID_SIZE + 32];
	int r = cordon_id_uuid("project_id", project_id, project, err);

	if (r == 0)
		r = cordon_id_workspace("workspace_id", workspace_id, workspace, err);
	if (r < 0)
		return r;
	snprintf(below, sizeof(below), "projects/%s/workspaces/%s", project, workspace);
	r = cordon_path_join(store->home.path, below, ret_path, CORDON_PATH_MAX);
	return r < 0 ? cordon_fail_errno(err, r, "the path of workspace %s", workspace) : 0;
}

/* A workspace that must exist, by what the caller calls it: its project, which stays as long as it is held, and its id. */
static int hold_workspace(const struct cordon_store *store, const char *project_id, const char *workspace_id,
			  struct cordon_project *project, char ret_id[static CORDON_ID_SIZE], struct cordon_error *err)
{
	json_auto_t *record = NULL;
	int r = cordon_id_workspace("workspace_id", workspace_id, ret_id, err);

	if (r == 0)
		r = cordon_project_hold(store, project_id, LOCK_SH, project, err);
	return r < 0 ? r : cordon_workspace_read(project, ret_id, &record, err);
}

static int open_workspace(const struct cordon_project *project, const char *id, int *ret_fd, struct cordon_error *err)
{
	autofd int workspaces = -1;
	int r = cordon_project_workspaces(project, &workspaces, err);

	/* Made again when an agent of a project without isolation removed it. */
	return r < 0 ? r : cordon_store_dir(workspaces, id, ret_fd, err);
}

int cordon_workspace_prepare(const struct cordon_store *store, const struct cordon_project *project, const char *id,
			     struct cordon_error *err)
{
	autostage struct cordon_stage stage = CORDON_STAGE_NONE;
	struct cordon_copy_budget budget = CORDON_COPY_BUDGET;
	autofd int workspace = -1;
	struct stat st;
	int r = open_workspace(project, id, &workspace, err);

	if (r < 0 || !cordon_project_isolated(project) || fstatat(workspace, "AGENTS.md", &st, AT_SYMLINK_NOFOLLOW) == 0)
		return r;
	r = cordon_stage_temp(store, &stage, err);
	if (r == 0)
		r = cordon_tree_copy(project->tree_fd, "AGENTS.md", stage.fd, &budget, err);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	/* Never over anything: what came to be meanwhile, a dangling link too, stays. */
	if (renameat2(stage.fd, "AGENTS.md", workspace, "AGENTS.md", RENAME_NOREPLACE) < 0 && errno != EEXIST)
		return cordon_fail_errno(err, -errno, "cannot copy AGENTS.md into workspace %s", id);
	return 0;
}

int cordon_workspace_sync(const struct cordon_store *store, const char *project_id, const char *workspace_id,
			  json_t **ret_copied, struct cordon_error *err)
{
	static const char *const names[] = { "AGENTS.md", ".factory" };
	autoproject struct cordon_project project = CORDON_PROJECT_NONE;
	autostage struct cordon_stage stage = CORDON_STAGE_NONE;
	json_auto_t *copied = json_array();
	char id[CORDON_ID_SIZE];
	autofd int locks = -1;
	autofd int lock = -1;
	autofd int workspace = -1;
	int r = hold_workspace(store, project_id, workspace_id, &project, id, err);

	if (r == 0)
		r = cordon_store_dir(project.state_fd, "locks", &locks, err);
	if (r == 0)
		r = cordon_lock_take(locks, id, LOCK_EX, &lock, err);
	if (r == 0)
		r = cordon_active_none(store, &project, id, "the workspace", err);
	if (r == 0)
		r = open_workspace(&project, id, &workspace, err);
	if (r == 0)
		r = cordon_stage_temp(store, &stage, err);
	/* All of it is copied aside first, so that what can't be copied leaves the workspace as it was. */
	if (r == 0)
		r = cordon_workspace_fill(project.tree_fd, cordon_project_isolated(&project), stage.fd, err);
	for (size_t i = 0; r == 0 && i < CORDON_ARRAY_SIZE(names); i++) {
		if (faccessat(stage.fd, names[i], F_OK, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		r = cordon_tree_merge(stage.fd, names[i], workspace, err);
		if (r == 0 && json_array_append_new(copied, json_string(names[i])) < 0)
			r = cordon_no_memory(err);
	}
	if (r < 0)
		return r;
	*ret_copied = cordon_steal_ptr(&copied);
	return 0;
}

int cordon_policy_of(const struct cordon_project *project, const char *id, const json_t *settings,
		     struct cordon_policy **ret_policy, struct cordon_error *err)
{
	bool isolated = json_is_true(json_object_get(settings, "workspace_isolation"));
	struct cordon_policy *policy = NULL;
	autofd int workspace = -1;
	char root[64];
	size_t i;
	json_t *path;
	int r = open_workspace(project, id, &workspace, err);

	if (r < 0)
		return r;
	/* By descriptor: the name may be turned into a link by an agent of a project without isolation. */
	snprintf(root, sizeof(root), "/proc/self/fd/%d", isolated ? workspace : project->tree_fd);
	r = cordon_policy_new(root, &policy, err);
	json_array_foreach(isolated ? json_object_get(settings, "protected_paths") : NULL, i, path) {
		if (r == 0)
			r = cordon_policy_add_protected(policy, json_string_value(path), "protected_paths", false, err);
	}
	if (r < 0) {
		cordon_policy_free(policy);
		return r;
	}
	*ret_policy = policy;
	return 0;
}

int cordon_workspace_policy(const struct cordon_store *store, const char *project_id, const char *workspace_id,
			    struct cordon_policy **ret_policy, bool *ret_isolated, struct cordon_error *err)
{
	autoproject struct cordon_project project = CORDON_PROJECT_NONE;
	char id[CORDON_ID_SIZE];
	int r = hold_workspace(store, project_id, workspace_id, &project, id, err);

	if (r == 0)
		r = cordon_policy_of(&project, id, project.record, ret_policy, err);
	if (r < 0)
		return r;
	*ret_isolated = cordon_project_isolated(&project);
	return 0;
}
