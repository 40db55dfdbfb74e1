/* SPDX-License-Identifier: Apache-2.0 */
/* Folder workspaces on the command line: variables, folder lists, and log lines. */
#include <stdio.h>

#include "base/path.h"
#include "base/text.h"
#include "cli/manager.h"
#include "config/extent.h"
#include "config/prd.h"

static const char *variable(const char *name)
{
	const char *value = getenv(name);

	return value && *value ? value : NULL;
}

static int parse_enabled(const char *value, bool *ret_enabled, struct cordon_error *err)
{
	static const char *const yes[] = { "true", "1", "yes", "on" };
	static const char *const no[] = { "false", "0", "no", "off" };

	for (size_t i = 0; i < CORDON_ARRAY_SIZE(yes); i++) {
		if (cordon_streq(value, yes[i]) || cordon_streq(value, no[i])) {
			*ret_enabled = cordon_streq(value, yes[i]);
			return 0;
		}
	}
	return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "WORKSPACE_ENABLED is true or false, not %s", value);
}

int cordon_manager_env(struct cordon_recipe_variables *ret_env, struct cordon_error *err)
{
	const char *mode = variable("WORKSPACE_MODE"), *enabled = variable("WORKSPACE_ENABLED");
	struct cordon_recipe_variables env = {
		.folders = variable("WORKSPACE_FOLDERS"),
		.root = variable("WORKSPACE_REPO_ROOT"),
		.has_mode = mode,
	};
	bool on = true;
	int r = mode ? cordon_mode_parse(mode, &env.mode, err) : 0;

	if (r < 0)
		return cordon_error_prefix(err, r, "WORKSPACE_MODE");
	r = enabled ? parse_enabled(enabled, &on, err) : 0;
	if (r < 0)
		return r;
	env.disabled = !on;
	*ret_env = env;
	return 0;
}

/* Joins the folders to one list again, with commas in names escaped, so that messages show what was parsed. */
static int join(const struct cordon_folders *folders, char **ret_list)
{
	autobuf struct cordon_buf buf = CORDON_BUF(1u << 21);
	int r = 0;

	for (size_t i = 0; r == 0 && i < folders->n; i++)
		r = cordon_folders_add(&buf, folders->items[i]);
	if (r == 0) {
		*ret_list = cordon_buf_steal(&buf);
		r = *ret_list ? 0 : -ENOMEM;
	}
	return r;
}

static int fail(const struct cordon_cli *cli, struct cordon_manager *manager, const struct cordon_error *err)
{
	cordon_manager_done(manager);
	return cordon_cli_fail(cli, err);
}

/* Takes folders and mode of the preset. That its folders exist is checked with the others; here we see that none leads to
 * where the presets that it extends have none. */
static int use_preset(struct cordon_manager *ws, const char *name, struct cordon_errors *errors)
{
	struct cordon_settings_file *settings CORDON_CLEANUP(cordon_settings_freep) = NULL;
	struct cordon_extent narrowed CORDON_CLEANUP(cordon_extent_done) = { 0 };
	struct cordon_errors missing CORDON_CLEANUP(cordon_errors_done) = { 0 };
	autobuf struct cordon_buf list = CORDON_BUF(1u << 21);
	const struct cordon_preset *preset, *from;
	struct cordon_error err = { 0 };
	int r = cordon_settings_load(NULL, CORDON_SETTINGS_TEXT_ONLY, &settings, errors);

	if (r < 0)
		return r;
	if (cordon_settings_preset(settings, name, &preset, &err) < 0)
		return cordon_errors_add(errors, &err, NULL, 0, 0);
	from = cordon_preset_with_folders(preset);
	for (size_t i = 0; r == 0 && from && i < from->folders.n; i++)
		r = cordon_folders_add(&list, from->folders.items[i].text);
	if (r < 0 || !(ws->preset = cordon_buf_steal(&list)))
		return cordon_errors_add(errors, (cordon_fail_errno(&err, -ENOMEM, "folder list"), &err), NULL, 0, 0);
	if (!*ws->preset) {
		cordon_fail(&err, -EINVAL, CORDON_KIND_USAGE, "the preset %s has no folders", name);
		return cordon_errors_add(errors, &err, NULL, 0, 0);
	}
	if (cordon_extent_narrow_preset(&narrowed, &ws->root, settings, name, &missing) < 0)
		for (size_t i = 0; i < missing.n; i++)
			if (missing.items[i].kind == CORDON_KIND_POLICY_DENIED && !*missing.items[i].where)
				r = cordon_errors_add(errors, &missing.items[i], NULL, 0, 0);
	if ((from = cordon_preset_with_mode(preset)) && from->mode == CORDON_MODE_STRICT)
		ws->mode = CORDON_MODE_STRICT;
	return r;
}

int cordon_manager_open(const struct cordon_cli *cli, const struct cordon_recipe *recipe, const char *folders,
			struct cordon_manager *ret_manager)
{
	struct cordon_manager ws = { .cli = cli, .root.fd = -1, .mode = CORDON_MODE_PERMISSIVE };
	struct cordon_errors errors CORDON_CLEANUP(cordon_errors_done) = { 0 };
	struct cordon_recipe named = { .root = recipe->root };
	struct cordon_recipe_variables env;
	struct cordon_error err = { 0 };
	int r = cordon_manager_env(&env, &err);

	if (r < 0)
		return cordon_cli_fail(cli, &err);
	if (folders && recipe->preset_name)
		return cordon_cli_usage(cli, "give FOLDERS or --preset, not both");
	if (!folders && !recipe->preset_name)
		folders = env.folders;
	ws.disabled = env.disabled;
	if (!folders && !recipe->preset_name && !ws.disabled)
		return cordon_cli_usage(cli, "no folders: give FOLDERS or set WORKSPACE_FOLDERS");
	if (recipe->values.where[CORDON_RECIPE_MODE])
		ws.mode = (cordon_mode)recipe->values.of[CORDON_RECIPE_MODE];
	else if (env.has_mode)
		ws.mode = env.mode;
	named.variables = env;
	r = cordon_recipe_open_root(&named, &ws.root, &err);
	if (r == 0 && recipe->preset_name && use_preset(&ws, recipe->preset_name, &errors) < 0) {
		cordon_manager_done(&ws);
		return cordon_cli_fail_all(cli, &errors);
	}
	folders = ws.preset ? ws.preset : folders;
	ws.text = folders;
	if (r == 0 && !ws.disabled)
		r = cordon_folders_parse(folders, &ws.folders, &err);
	if (r == 0 && join(&ws.folders, &ws.list) < 0)
		r = cordon_fail_errno(&err, -ENOMEM, "folder list");
	if (r < 0)
		return fail(cli, &ws, &err);
	*ret_manager = ws;
	return 0;
}

void cordon_manager_done(struct cordon_manager *manager)
{
	cordon_root_done(&manager->root);
	cordon_folders_done(&manager->folders);
	cordon_freep(&manager->list);
	cordon_freep(&manager->preset);
}

void cordon_manager_announce(const struct cordon_manager *manager)
{
	const struct cordon_cli *cli = manager->cli;

	cordon_cli_workspace_log(cli, "Initialized workspace manager");
	if (!manager->disabled)
		cordon_cli_workspace_log(cli, "  Folders: %s", manager->list);
	cordon_cli_workspace_log(cli, "  Mode: %s", cordon_mode_name(manager->mode));
	cordon_cli_workspace_log(cli, "  Repo Root: %s", manager->root.path);
}

void cordon_manager_report_folder(const struct cordon_cli *cli, const struct cordon_error *err)
{
	if (cli->json)
		cordon_cli_fail(cli, err);
	else
		fprintf(stderr, "[WORKSPACE] %s\n", err->message); /* escaped when it was made */
}

size_t cordon_manager_check_folders(const struct cordon_cli *cli, const struct cordon_root *root,
				    const struct cordon_folders *folders)
{
	char path[CORDON_PATH_MAX];
	size_t bad = 0;

	for (size_t i = 0; i < folders->n; i++) {
		struct cordon_error err = { 0 };

		if (cordon_folder_resolve(root, folders->items[i], path, &err) < 0) {
			cordon_manager_report_folder(cli, &err);
			bad++;
		}
	}
	return bad;
}

void cordon_manager_report_access(const struct cordon_cli *cli, cordon_mode mode, const char *file, cordon_op op,
				  const char *folders, const char *resolved)
{
	if (mode == CORDON_MODE_STRICT)
		cordon_cli_workspace_log(cli, "BLOCKED: File access outside workspace");
	else
		cordon_cli_workspace_log(cli, "WARNING: File access outside workspace (permissive mode)");
	cordon_cli_workspace_log(cli, "  File: %s", file);
	cordon_cli_workspace_log(cli, "  Operation: %s", cordon_op_name(op));
	if (mode == CORDON_MODE_STRICT && folders)
		cordon_cli_workspace_log(cli, "  Workspace folders: %s", folders);
	if (resolved && !cordon_streq(resolved, file))
		cordon_cli_workspace_log(cli, "  Leads to: %s", resolved);
}

void cordon_manager_report_disabled(const struct cordon_cli *cli, const char *root)
{
	cordon_cli_notice(cli,
			  "Workspace checks are disabled (WORKSPACE_ENABLED=false): the repository is the scope, %s",
			  root);
}

static int outside(const char *folder, struct cordon_error *err)
{
	return cordon_fail(err, -EXDEV, CORDON_KIND_POLICY_DENIED, "Workspace folder is outside repository: %s", folder);
}

int cordon_manager_place(const struct cordon_root *root, const char *folder, char ret_place[static CORDON_PATH_MAX],
			 struct cordon_error *err)
{
	struct cordon_resolved resolved;

	if (folder[0] != '/' && cordon_path_clean(folder, ret_place, CORDON_PATH_MAX) == 0)
		return 0;
	cordon_resolve(root, folder, &resolved);
	if (resolved.place != CORDON_PLACE_INSIDE)
		return outside(folder, err);
	return cordon_copy(ret_place, CORDON_PATH_MAX, resolved.path, strlen(resolved.path));
}

/* Resolves each folder, because patterns are matched after links have been followed. */
static int resolve_folders(const struct cordon_manager *manager, char **ret_paths, struct cordon_error *err)
{
	struct cordon_resolved resolved;

	for (size_t i = 0; i < manager->folders.n; i++) {
		cordon_resolve(&manager->root, manager->folders.items[i], &resolved);
		if (resolved.place != CORDON_PLACE_INSIDE)
			return outside(manager->folders.items[i], err);
		ret_paths[i] = strdup(resolved.path);
		if (!ret_paths[i])
			return cordon_fail_errno(err, -ENOMEM, "folder list");
	}
	return 0;
}

int cordon_manager_infer(const struct cordon_manager *manager, unsigned int flags, json_t **ret_patterns,
			 struct cordon_error *err)
{
	static const char *const everything[] = { "" };
	size_t n = manager->folders.n;
	char **paths;
	int r;

	if (manager->disabled)
		return cordon_prd_infer_scope(everything, 1, flags, ret_patterns, err);
	paths = calloc(n, sizeof(*paths));
	if (!paths)
		return cordon_fail_errno(err, -ENOMEM, "folder list");
	r = resolve_folders(manager, paths, err);
	if (r == 0)
		r = cordon_prd_infer_scope((const char *const *)paths, n, flags, ret_patterns, err);
	for (size_t i = 0; i < n; i++)
		free(paths[i]);
	free(paths);
	return r;
}
