/* SPDX-License-Identifier: Apache-2.0 */
/* Copies the project's files into a workspace that exists, on demand and at the start of a session; builds its
 * policy. */
#include <stdio.h>
#include <sys/stat.h>

#include "base/dirs.h"
#include "base/listing.h"
#include "base/path.h"
#include "store/places.h"

/* Workspaces with a default protection of their own in one policy; CORDON_DEPTH_MAX of them may be ancestors. */
#define PLACES_MAX 128
#define NEIGHBOURS_WHOLE_MAX 8 /* other workspaces in which missing names are held as well */

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

/* The workspaces with a default protection of their own, as paths in the project, when the whole project is the root. */
struct places {
	char text[PLACES_MAX][sizeof("workspaces/") + CORDON_ID_SIZE];
	const char *paths[PLACES_MAX];
	size_t n;
	size_t n_whole; /* the first ones of them have all of the list */
};

static bool has_place(const struct places *places, const char *id)
{
	for (size_t i = 0; i < places->n; i++)
		if (cordon_streq(places->paths[i] + strlen("workspaces/"), id))
			return true;
	return false;
}

static void add_place(struct places *places, const char *id)
{
	if (places->n == PLACES_MAX || has_place(places, id) ||
	    cordon_concat(places->text[places->n], sizeof(places->text[0]), "workspaces/", id, (char *)NULL) < 0)
		return;
	places->paths[places->n] = places->text[places->n];
	places->n++;
}

static int compare_ids(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* Adds the other workspaces of the project, by their records: the agent sees them too, and somebody works in them. */
static int add_neighbours(const struct cordon_project *project, struct places *places, struct cordon_error *err)
{
	CORDON_UNCLEARED struct cordon_listing listing;
	char ids[PLACES_MAX][CORDON_ID_SIZE];
	const struct dirent64 *entry;
	autofd int fd = -1;
	size_t n = 0;
	int r = cordon_state_dir(project->state_fd, "workspaces", &fd, err);

	if (r < 0)
		return r;
	cordon_listing_init(&listing, fd);
	while (n < PLACES_MAX && (entry = cordon_listing_next(&listing))) {
		size_t len = strlen(entry->d_name), end = strlen(".json");

		if (len > end && cordon_streq(entry->d_name + len - end, ".json") &&
		    cordon_copy(ids[n], sizeof(ids[n]), entry->d_name, len - end) == 0)
			n++;
	}
	qsort(ids, n, sizeof(ids[0]), compare_ids);
	for (size_t i = 0; i < n; i++)
		add_place(places, ids[i]);
	return 0;
}

/*
 * When the whole project is the root, the default protection of what the host would execute applies below workspaces:
 * that of the session, those of its ancestors, because it must not have more rights than they have, and the other ones of
 * the project.
 */
static int places_of(const struct cordon_project *project, const json_t *ancestors, const char *id, struct places *ret,
		     struct cordon_error *err)
{
	int r;

	ret->n = 0;
	add_place(ret, id);
	for (size_t i = 0; i < json_array_size(ancestors); i++)
		add_place(ret, json_string_value(json_array_get(ancestors, i)));
	ret->n_whole = ret->n + NEIGHBOURS_WHOLE_MAX;
	r = add_neighbours(project, ret, err);
	if (ret->n_whole > ret->n)
		ret->n_whole = ret->n;
	return r;
}

/* What the settings say, as far as it is about the workspace itself. */
static int fill(const struct cordon_settings *settings, struct cordon_recipe *recipe, struct cordon_error *err)
{
	size_t i;
	json_t *path;
	int r = 0;

	if (!settings->default_protection)
		r = cordon_recipe_set(recipe, CORDON_RECIPE_DEFAULT_PROTECT, NULL, "default_protection", err);
	json_array_foreach(settings->workspace_isolation ? settings->protected_paths : NULL, i, path) {
		if (r == 0)
			r = cordon_recipe_add_rule(recipe, CORDON_RULE_PROTECT, json_string_value(path),
						   "protected_paths", err);
	}
	recipe->net_record = settings->net;
	for (cordon_recipe_id id = 0; id < CORDON_RECIPE__MAX; id++) {
		const struct cordon_recipe_row *row = &cordon_recipe_rows[id];

		/* The caller may have set one, as the time-out of this session. */
		if (row->project && !recipe->values.where[id])
			cordon_recipe_set_value(recipe, id,
						cordon_settings_value(settings, id) * (row->unit ? row->unit : 1));
	}
	return r;
}

int cordon_settings_compile(const struct cordon_project *project, const char *id, const struct cordon_settings *settings,
			    const json_t *ancestors, bool starts, struct cordon_recipe *recipe, struct cordon_error *err)
{
	bool isolated = settings->workspace_isolation;
	CORDON_UNCLEARED struct places places;
	char root[64];
	autofd int workspace = -1;
	int r = open_workspace(project, id, &workspace, err);

	if (r == 0)
		r = fill(settings, recipe, err);
	if (r == 0 && !isolated) {
		r = places_of(project, ancestors, id, &places, err);
		recipe->defaults_below = places.paths;
		recipe->n_defaults_below = places.n;
		recipe->n_present_below = places.n - places.n_whole;
	}
	/* Use the descriptor: an agent of a project without isolation could replace the name by a link. */
	snprintf(root, sizeof(root), "/proc/self/fd/%d", isolated ? workspace : project->tree_fd);
	recipe->root = root;
	if (r == 0)
		r = cordon_places_compile(project, id, settings, isolated ? workspace : project->tree_fd, starts,
					  recipe, err);
	recipe->root = NULL;
	recipe->defaults_below = NULL;
	recipe->n_defaults_below = recipe->n_present_below = 0;
	return r;
}

int cordon_policy_of(const struct cordon_project *project, const char *id, const struct cordon_settings *settings,
		     const json_t *ancestors, struct cordon_policy **ret_policy, struct cordon_error *err)
{
	struct cordon_recipe recipe CORDON_CLEANUP(cordon_recipe_done) = { 0 };
	int r = cordon_settings_compile(project, id, settings, ancestors, false, &recipe, err);

	if (r == 0)
		*ret_policy = cordon_steal_ptr(&recipe.policy);
	return r;
}

int cordon_workspace_policy(const struct cordon_store *store, const char *project_id, const char *workspace_id,
			    struct cordon_policy **ret_policy, bool *ret_isolated, struct cordon_error *err)
{
	autoproject struct cordon_project project = CORDON_PROJECT_NONE;
	char id[CORDON_ID_SIZE];
	int r = hold_workspace(store, project_id, workspace_id, &project, id, err);

	if (r == 0)
		r = cordon_policy_of(&project, id, &project.record.settings, NULL, ret_policy, err);
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
					session->ancestor_workspaces, ret_policy, err);
}
