/* SPDX-License-Identifier: Apache-2.0 */
/* Copies the project's files into a workspace that exists, on demand and at the start of a session; builds its
 * policy. */
#include <stdio.h>
#include <sys/stat.h>

#include "base/dirs.h"
#include "base/listing.h"
#include "base/path.h"
#include "config/policy_build.h"
#include "store/places.h"

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

/* Holds the project of a workspace that must exist, and judges the id of the workspace. */
static int hold_workspace(const struct cordon_store *store, const char *project_id, const char *workspace_id,
			  struct cordon_project *project, char ret_id[static CORDON_ID_SIZE], struct cordon_error *err)
{
	autoworkspacerecord struct cordon_workspace_record record = { 0 };
	int r = cordon_id_workspace("workspace_id", workspace_id, ret_id, err);

	if (r == 0)
		r = cordon_project_hold(store, project_id, LOCK_SH, project, err);
	return r < 0 ? r : cordon_workspace_read(project, ret_id, &record, err);
}

static int open_workspace(const struct cordon_project *project, const char *id, int *ret_fd, struct cordon_error *err)
{
	autofd int workspaces = -1;
	int r = cordon_project_workspaces(project, &workspaces, err);

	/* This makes the directory again if an agent of a project without isolation removed it. */
	return r < 0 ? r : cordon_state_dir(workspaces, id, ret_fd, err);
}

int cordon_workspace_prepare(const struct cordon_store *store, const struct cordon_project *project, const char *id,
			     struct cordon_error *err)
{
	autostage struct cordon_stage stage = CORDON_STAGE_NONE;
	struct cordon_copy_budget budget = CORDON_COPY_BUDGET;
	autofd int workspace = -1;
	struct stat st;
	int r = open_workspace(project, id, &workspace, err);

	if (r < 0 || !project->record.settings.workspace_isolation ||
	    fstatat(workspace, "AGENTS.md", &st, AT_SYMLINK_NOFOLLOW) == 0)
		return r;
	r = cordon_stage_temp(store, &stage, err);
	if (r == 0)
		r = cordon_dirs_copy(project->tree_fd, "AGENTS.md", stage.fd, &budget, err);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	/* Never replace anything: what was made meanwhile stays, even a dangling link. */
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
		r = cordon_state_dir(project.state_fd, "locks", &locks, err);
	if (r == 0)
		r = cordon_lock_take(locks, id, LOCK_EX, &lock, err);
	if (r == 0)
		r = cordon_active_none(store, &project, id, "the workspace", err);
	if (r == 0)
		r = open_workspace(&project, id, &workspace, err);
	if (r == 0)
		r = cordon_stage_temp(store, &stage, err);
	/* Copy everything into the stage first, so that the workspace is unchanged if something can't be copied. */
	if (r == 0)
		r = cordon_workspace_fill(project.tree_fd, project.record.settings.workspace_isolation, stage.fd, err);
	for (size_t i = 0; r == 0 && i < CORDON_ARRAY_SIZE(names); i++) {
		if (faccessat(stage.fd, names[i], F_OK, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		r = cordon_dirs_merge(stage.fd, names[i], workspace, err);
		if (r == 0 && json_array_append_new(copied, json_string(names[i])) < 0)
			r = cordon_no_memory(err);
	}
	if (r < 0)
		return r;
	*ret_copied = cordon_steal_ptr(&copied);
	return 0;
}

/* Makes the rules for the protected paths of the settings, *ret_n of them. Returns NULL when there is no memory. */
static struct cordon_policy_rule *rules_of(const struct cordon_settings *settings, size_t *ret_n)
{
	const json_t *paths = settings->workspace_isolation ? settings->protected_paths : NULL;
	struct cordon_policy_rule *rules = calloc(json_array_size(paths) + 1, sizeof(*rules));
	size_t i;
	json_t *path;

	json_array_foreach(paths, i, path) {
		if (rules)
			rules[i] = (struct cordon_policy_rule){ CORDON_RULE_PROTECT, json_string_value(path),
								"protected_paths" };
	}
	*ret_n = json_array_size(paths);
	return rules;
}

/*
 * When the whole project is the root, the default protection of what the host would execute applies below workspaces:
 * that of the session, and those of its ancestors, because it must not have more rights than they have.
 */
static int places_of(const json_t *ancestors, const char *id, struct cordon_buf *ret_text, const char **ret_places,
		     size_t max, size_t *ret_n)
{
	size_t offsets[CORDON_DEPTH_MAX + 1], n = 0;
	int r = 0;

	for (size_t i = 0; r == 0 && i <= json_array_size(ancestors) && n < max; i++) {
		offsets[n++] = ret_text->len;
		r = cordon_buf_addf(ret_text, "workspaces/%s%c",
				    i ? json_string_value(json_array_get(ancestors, i - 1)) : id, 0);
	}
	for (size_t i = 0; r == 0 && i < n; i++)
		ret_places[i] = ret_text->data + offsets[i];
	*ret_n = n;
	return r;
}

int cordon_policy_of(const struct cordon_project *project, const char *id, const struct cordon_settings *settings,
		     const json_t *ancestors, struct cordon_policy **ret_policy, struct cordon_profile_use *ret_use,
		     struct cordon_error *err)
{
	bool isolated = settings->workspace_isolation;
	struct cordon_errors errors CORDON_CLEANUP(cordon_errors_done) = { 0 };
	autobuf struct cordon_buf text = CORDON_BUF(1 << 16);
	autofree struct cordon_policy_rule *rules = NULL;
	const char *places[CORDON_DEPTH_MAX + 1];
	struct cordon_policy *policy = NULL;
	char root[64];
	struct cordon_policy_spec spec = {
		.root = root,
		.defaults_below = places,
		.no_default_protection = !settings->default_protection,
	};
	autoprofiles struct cordon_profiles profiles = { 0 };
	autofd int workspace = -1;
	int r = open_workspace(project, id, &workspace, err);

	if (r == 0)
		r = cordon_profiles_load(settings, &profiles, err);
	if (r < 0)
		return r;
	spec.profiles = profiles.files;
	spec.n_profiles = profiles.n;
	spec.net_record = settings->net;
	spec.reports_reads = profiles.n > 0;
	rules = rules_of(settings, &spec.n_rules);
	if (!rules || (!isolated &&
		       places_of(ancestors, id, &text, places, CORDON_ARRAY_SIZE(places), &spec.n_defaults_below) < 0))
		return cordon_no_memory(err);
	spec.rules = rules;
	/* Use the descriptor: an agent of a project without isolation could replace the name by a link. */
	snprintf(root, sizeof(root), "/proc/self/fd/%d", isolated ? workspace : project->tree_fd);
	r = cordon_policy_build(&spec, &policy, &errors);
	if (r < 0)
		return cordon_errors_first(&errors, err);
	r = cordon_places_add(project, id, settings, &profiles, policy, ret_use, err);
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
		r = cordon_policy_of(&project, id, &project.record.settings, NULL, ret_policy, NULL, err);
	if (r < 0)
		return r;
	*ret_isolated = project.record.settings.workspace_isolation;
	return 0;
}

int cordon_workspace_below(const char *path, bool isolated, const char *id, char *ret_path, size_t size)
{
	char prefix[CORDON_ID_SIZE + 16] = "";
	size_t n = strlen(CORDON_WORKSPACE_AT);

	if (*path == '/') {
		if (strncmp(path, CORDON_WORKSPACE_AT, n) != 0 || (path[n] && path[n] != '/'))
			return -EXDEV;
		path += n + strspn(path + n, "/");
	} else if (!isolated) {
		(void)cordon_concat(prefix, sizeof(prefix), "workspaces/", id, (char *)NULL);
	}
	return cordon_path_join(prefix, path, ret_path, size);
}

int cordon_session_policy(const struct cordon_store *store, const struct cordon_session_record *session,
			  struct cordon_policy **ret_policy, struct cordon_error *err)
{
	autoproject struct cordon_project project = CORDON_PROJECT_NONE;
	int r = cordon_project_hold(store, session->project_id, LOCK_SH, &project, err);

	return r < 0 ? r
		     : cordon_policy_of(&project, session->workspace_id, &session->settings,
					session->ancestor_workspaces, ret_policy, NULL, err);
}
