/* SPDX-License-Identifier: Apache-2.0 */
/* Builds a policy from options, variables and a policy file, and reports every error in them. */
#include <stdio.h>
#include <sys/stat.h>

#include "base/path.h"
#include "cli/manager.h"
#include "cli/scope.h"
#include "config/extent.h"
#include "config/policy_build.h"
#include "protect/homes.h"

/* These options become rules without further checks. Folder lists are checked first. */
static const struct {
	int key;
	const char *option;
	cordon_rule_kind kind;
} rule_options[] = {
	{ CORDON_SCOPE_RW, "--rw", CORDON_RULE_WRITE },
	{ CORDON_SCOPE_RO, "--ro", CORDON_RULE_READ },
	{ CORDON_SCOPE_DENY, "--deny", CORDON_RULE_DENY },
	{ CORDON_SCOPE_WITHIN, "--within", CORDON_RULE_WITHIN },
	{ CORDON_SCOPE_PROTECT, "--protect", CORDON_RULE_PROTECT },
	{ CORDON_SCOPE_UNPROTECT, "--unprotect", CORDON_RULE_UNPROTECT },
	{ CORDON_SCOPE_NET, "--net", CORDON_RULE_NET },
};

static int set_once(const char **slot, const char *option, const char *arg, struct cordon_error *err)
{
	if (*slot)
		return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "%s was given twice: %s and %s", option, *slot, arg);
	*slot = arg;
	return 0;
}

int cordon_scope_set(struct cordon_scope *scope, int key, const char *arg, struct cordon_error *err)
{
	struct cordon_scope_rule *rules;

	if (key == CORDON_SCOPE_ROOT)
		return set_once(&scope->root, "--root", arg, err);
	if (key == CORDON_SCOPE_MODE)
		return set_once(&scope->mode, "--workspace-mode", arg, err);
	if (key == CORDON_SCOPE_PRESET)
		return set_once(&scope->preset_name, "--preset", arg, err);
	if (key == CORDON_SCOPE_POLICY)
		return set_once(&scope->policy_path, "--policy", arg, err);
	if (key == CORDON_SCOPE_READ_ONLY || key == CORDON_SCOPE_NO_DEFAULT_PROTECT || key == CORDON_SCOPE_DENY_SECRETS) {
		scope->read_only |= key == CORDON_SCOPE_READ_ONLY;
		scope->deny_secrets |= key == CORDON_SCOPE_DENY_SECRETS;
		scope->no_default_protect |= key == CORDON_SCOPE_NO_DEFAULT_PROTECT;
		return 0;
	}
	rules = reallocarray(scope->rules, scope->n_rules + 1, sizeof(*rules));
	if (!rules)
		return cordon_fail_errno(err, -ENOMEM, "options");
	rules[scope->n_rules++] = (struct cordon_scope_rule){ .key = key, .text = arg };
	scope->rules = rules;
	return 0;
}

void cordon_scope_done(struct cordon_scope *scope)
{
	free(scope->rules);
	scope->file = cordon_policy_file_free(scope->file);
	for (size_t i = 0; i < scope->n_profiles; i++) {
		cordon_policy_file_free(scope->profiles[i]);
		free(scope->profile_names[i]);
	}
	free(scope->dirs);
	cordon_settings_free(scope->settings);
	*scope = (struct cordon_scope){ 0 };
}

int cordon_scope_open_root(const struct cordon_scope *scope, const char *env_root, struct cordon_root *ret_root,
			   struct cordon_error *err)
{
	int r;

	if (scope->root) {
		r = cordon_root_open(scope->root, ret_root, err);
		return r < 0 ? cordon_error_prefix(err, r, "--root") : 0;
	}
	if (env_root) {
		r = cordon_root_open(env_root, ret_root, err);
		return r < 0 ? cordon_error_prefix(err, r, "WORKSPACE_REPO_ROOT") : 0;
	}
	return cordon_repo_root(".", ret_root, err);
}

/* The state of one build. */
struct making {
	const struct cordon_cli *cli;
	struct cordon_scope *scope;
	struct cordon_manager_env env;
	struct cordon_root root;
	struct cordon_policy_rule *rules;
	size_t n_rules;
	struct cordon_folders *bad; /* lists with folders that are missing or outside; these errors have a wording of their own */
	size_t n_bad;
	char *preset_folders; /* the list that a preset leaves, or NULL */
	int exit_code;
};

/* The first error decides the exit code; all errors are printed. */
static void keep_code(struct making *m, int code)
{
	if (!m->exit_code)
		m->exit_code = code;
}

static void report(struct making *m, const struct cordon_error *err)
{
	keep_code(m, cordon_cli_fail(m->cli, err));
}

static void add_rule(struct making *m, cordon_rule_kind kind, const char *text, const char *option)
{
	m->rules[m->n_rules++] = (struct cordon_policy_rule){ .kind = kind, .text = text, .where = option };
}

static bool all_resolve(const struct cordon_root *root, const struct cordon_folders *folders)
{
	char path[CORDON_PATH_MAX];

	for (size_t i = 0; i < folders->n; i++)
		if (cordon_folder_resolve(root, folders->items[i], path, NULL) < 0)
			return false;
	return true;
}

static void add_folders(struct making *m, const char *list, const char *option)
{
	struct cordon_folders folders = { 0 };

	/* A list that can't be parsed is refused when the policy is built. */
	if (cordon_folders_parse(list, &folders, NULL) == 0 && !all_resolve(&m->root, &folders)) {
		m->bad[m->n_bad++] = folders;
		return;
	}
	cordon_folders_done(&folders);
	add_rule(m, CORDON_RULE_FOLDERS, list, option);
}

/* Finds the preset in the settings. */
static void load_preset(struct making *m)
{
	struct cordon_errors errors CORDON_CLEANUP(cordon_errors_done) = { 0 };
	struct cordon_scope *scope = m->scope;
	struct cordon_error err = { 0 };

	if (!scope->preset_name)
		return;
	if (cordon_settings_load(NULL, CORDON_SETTINGS_TEXT_ONLY, &scope->settings, &errors) < 0)
		keep_code(m, cordon_cli_fail_all(m->cli, &errors));
	else if (cordon_settings_preset(scope->settings, scope->preset_name, &scope->preset, &err) < 0)
		report(m, &err);
}

static size_t count_protected(const struct cordon_preset *preset)
{
	size_t n = 0;

	for (; preset; preset = preset->parent)
		n += preset->protected_paths.n;
	return n;
}

static void add_protected(struct making *m)
{
	for (const struct cordon_preset *preset = m->scope->preset; preset; preset = preset->parent)
		for (size_t i = 0; i < preset->protected_paths.n; i++)
			add_rule(m, CORDON_RULE_PROTECT, preset->protected_paths.items[i].text,
				 preset->protected_paths.items[i].where);
}

/* All folders of the options, as if they were one list. */
static int narrow_by_options(struct making *m, struct cordon_extent *ws, struct cordon_errors *errors)
{
	struct cordon_buf all autobuf = CORDON_BUF(1u << 21);
	struct cordon_error err = { 0 };
	int r = 0;

	for (size_t i = 0; r == 0 && i < m->scope->n_rules; i++)
		if (m->scope->rules[i].key == CORDON_SCOPE_WORKSPACE)
			r = cordon_buf_addf(&all, "%s%s", all.len ? "," : "", m->scope->rules[i].text);
	if (r < 0) {
		cordon_fail_errno(&err, r, "--workspace");
		return cordon_errors_add(errors, &err, NULL, 0, 0);
	}
	return all.len ? cordon_extent_narrow_list(ws, &m->root, all.data, errors) : 0;
}

/* Folders that are missing or outside have their own wording. */
static void report_workspace(struct making *m, const struct cordon_errors *errors)
{
	for (size_t i = 0; i < errors->n; i++)
		if (*errors->items[i].where || errors->items[i].kind == CORDON_KIND_CONFIG)
			keep_code(m, cordon_cli_fail(m->cli, &errors->items[i]));
		else
			cordon_manager_report_folder(m->cli, &errors->items[i]);
	keep_code(m, m->cli->failure_exit);
}

/* Adds what is both in the preset and in the folders of the options. Returns whether that is a list. */
static bool add_preset_folders(struct making *m)
{
	struct cordon_extent ws CORDON_CLEANUP(cordon_extent_done) = { 0 };
	struct cordon_errors errors CORDON_CLEANUP(cordon_errors_done) = { 0 };
	int r = cordon_extent_narrow_preset(&ws, &m->root, m->scope->settings, m->scope->preset_name, &errors);

	if (r == 0)
		r = narrow_by_options(m, &ws, &errors);
	if (r == 0 && !(m->preset_folders = cordon_extent_list(&ws)))
		keep_code(m, m->cli->failure_exit);
	if (r < 0)
		report_workspace(m, &errors);
	else if (ws.limited)
		add_rule(m, CORDON_RULE_FOLDERS, m->preset_folders, "--preset");
	return ws.limited;
}

/* Adds every --workspace and the preset, else the list of the variable if no other scope was asked for. Returns whether
 * there was a list. */
static bool add_folder_lists(struct making *m)
{
	const struct cordon_scope *scope = m->scope;
	bool scoped = scope->policy_path || scope->preset_name, listed = false;

	for (size_t i = 0; i < scope->n_rules; i++) {
		int key = scope->rules[i].key;

		scoped |= key == CORDON_SCOPE_RW || key == CORDON_SCOPE_RO;
		listed |= key == CORDON_SCOPE_WORKSPACE;
		if (key == CORDON_SCOPE_WORKSPACE && !m->env.disabled && !scope->preset)
			add_folders(m, scope->rules[i].text, "--workspace");
	}
	if (scope->preset && !m->env.disabled)
		return add_preset_folders(m);
	listed |= scope->preset && cordon_preset_with_folders(scope->preset);
	if (!listed && !scoped && m->env.folders) {
		listed = true;
		if (!m->env.disabled)
			add_folders(m, m->env.folders, "WORKSPACE_FOLDERS");
	}
	return listed;
}

static void add_options(struct making *m)
{
	for (size_t i = 0; i < m->scope->n_rules; i++)
		for (size_t k = 0; k < CORDON_ARRAY_SIZE(rule_options); k++)
			if (m->scope->rules[i].key == rule_options[k].key)
				add_rule(m, rule_options[k].kind, m->scope->rules[i].text, rule_options[k].option);
}

/* Whether the policy file may speak of the home directory: the user owns it, and no agent can have written it. */
static void judge_file(const struct making *m, struct cordon_policy_trust *ret_trust)
{
	const char *path = m->scope->policy_path;
	char cwd[CORDON_PATH_MAX], asked[CORDON_PATH_MAX];
	struct stat st;

	*ret_trust = (struct cordon_policy_trust){ .why_not = "a file that you do not own can't speak of your home" };
	if ((path[0] != '/' && !getcwd(cwd, sizeof(cwd))) ||
	    cordon_path_join(path[0] == '/' ? "" : cwd, path, asked, sizeof(asked)) < 0)
		return;
	if (stat(asked, &st) < 0 || st.st_uid != geteuid() || (st.st_mode & S_IWOTH))
		return;
	ret_trust->why_not = "a file inside the workspace can't speak of your home";
	if (cordon_policy_file_inside(asked, m->root.path))
		return;
	ret_trust->credentials = true;
	ret_trust->why_not = "there is no home directory (HOME)";
	ret_trust->home = *m->scope->dirs->home ? m->scope->dirs->home : NULL;
}

/* Finds the directories of profiles, and the home, once. */
static bool find_dirs(struct making *m)
{
	struct cordon_error err = { 0 };

	if (!m->scope->dirs && (m->scope->dirs = calloc(1, sizeof(*m->scope->dirs))))
		cordon_profile_dirs_find(m->scope->dirs);
	if (m->scope->dirs)
		return true;
	cordon_fail_errno(&err, -ENOMEM, "profiles");
	report(m, &err);
	return false;
}

/* Reads the policy file and prints its errors. */
static void load_file(struct making *m)
{
	struct cordon_errors errors CORDON_CLEANUP(cordon_errors_done) = { 0 };
	struct cordon_policy_trust trust;

	if (!m->scope->policy_path || !find_dirs(m))
		return;
	judge_file(m, &trust);
	if (cordon_policy_file_load(m->scope->policy_path, &trust, &m->scope->file, &errors) < 0)
		keep_code(m, cordon_cli_fail_all(m->cli, &errors));
}

static void load_profile(struct making *m, const char *name)
{
	struct cordon_scope *scope = m->scope;
	struct cordon_errors errors CORDON_CLEANUP(cordon_errors_done) = { 0 };
	struct cordon_policy_file *file = NULL;
	struct cordon_error err = { 0 };

	for (size_t i = 0; i < scope->n_profiles; i++)
		if (cordon_streq(scope->profile_names[i], name))
			return;
	if (scope->n_profiles == CORDON_PROFILES_MAX) {
		cordon_fail(&err, -E2BIG, CORDON_KIND_LIMIT, "a run has more than %d profiles", CORDON_PROFILES_MAX);
		report(m, &err);
	} else if (cordon_profile_load(scope->dirs, name, &file, &errors) < 0) {
		keep_code(m, cordon_cli_fail_all(m->cli, &errors));
	} else if ((scope->profile_names[scope->n_profiles] = strdup(name))) {
		scope->profiles[scope->n_profiles++] = file;
	} else {
		cordon_policy_file_free(file);
		cordon_fail_errno(&err, -ENOMEM, "profiles");
		report(m, &err);
	}
}

/* Reads the profiles of the options, then those that the policy file names. */
static void load_profiles(struct making *m)
{
	const struct cordon_scope *scope = m->scope;

	for (size_t i = 0; i < scope->n_rules; i++) {
		if (scope->rules[i].key != CORDON_SCOPE_PROFILE || !find_dirs(m))
			continue;
		for (const char *p = scope->rules[i].text;; p++) {
			size_t n = strcspn(p, ",");
			autofree char *name = strndup(p, n);

			load_profile(m, name ? name : "");
			p += n;
			if (!*p)
				break;
		}
	}
	for (size_t i = 0; scope->file && i < scope->file->profiles.n; i++)
		load_profile(m, scope->file->profiles.items[i].text);
}

/* The option has precedence, then the file, the variable, the command's default for folders, and strict. A preset can only
 * make it stricter, or say what nobody else says. */
static void choose_mode(struct making *m, bool folders, cordon_mode *ret_mode)
{
	const struct cordon_scope *scope = m->scope;
	const struct cordon_preset *preset = cordon_preset_with_mode(scope->preset);
	struct cordon_error err = { 0 };

	*ret_mode = CORDON_MODE_STRICT;
	if (preset && preset->mode == CORDON_MODE_STRICT && !scope->mode)
		return;
	if (scope->mode && cordon_mode_parse(scope->mode, ret_mode, &err) < 0) {
		cordon_error_prefix(&err, err.code, "--workspace-mode");
		report(m, &err);
	} else if (scope->mode) {
		if (preset && preset->mode == CORDON_MODE_STRICT)
			*ret_mode = CORDON_MODE_STRICT;
	} else if (scope->file && scope->file->mode_where) {
		*ret_mode = scope->file->mode;
	} else if (m->env.has_mode) {
		*ret_mode = m->env.mode;
	} else if (preset) {
		*ret_mode = preset->mode;
	} else if (folders || (scope->file && scope->file->workspace.n)) {
		*ret_mode = scope->folder_mode;
	}
}

static void build(struct making *m, struct cordon_policy **ret_policy)
{
	struct cordon_errors errors CORDON_CLEANUP(cordon_errors_done) = { 0 };
	struct cordon_policy_spec spec = {
		.root = m->root.path,
		.rules = m->rules,
		/* A policy file is written once and used by many; whoever runs it decides whether reads are
		 * reported. */
		.reports_reads = m->scope->mode || m->env.has_mode || cordon_preset_with_mode(m->scope->preset),
		.deny_secrets = m->scope->deny_secrets,
		.read_only = m->scope->read_only,
		.no_default_protection = m->scope->no_default_protect,
	};
	char path[CORDON_PATH_MAX], cwd[CORDON_PATH_MAX];
	bool listed;

	load_file(m);
	load_profiles(m);
	add_options(m);
	add_protected(m);
	listed = add_folder_lists(m);
	spec.n_rules = m->n_rules;
	spec.file = m->scope->file;
	spec.profiles = m->scope->profiles;
	spec.n_profiles = m->scope->n_profiles;
	spec.reports_reads |= m->scope->n_profiles > 0;
	if (m->scope->policy_path && (m->scope->policy_path[0] == '/' || getcwd(cwd, sizeof(cwd))) &&
	    cordon_path_join(m->scope->policy_path[0] == '/' ? "" : cwd, m->scope->policy_path, path, sizeof(path)) == 0)
		spec.file_path = path;
	choose_mode(m, listed && !m->env.disabled, &spec.mode);
	if (cordon_policy_build(&spec, ret_policy, &errors) < 0)
		keep_code(m, cordon_cli_fail_all(m->cli, &errors));
	for (size_t i = 0; i < m->n_bad; i++)
		if (cordon_manager_check_folders(m->cli, &m->root, &m->bad[i]) > 0)
			keep_code(m, m->cli->failure_exit);
	if (listed && m->env.disabled)
		cordon_manager_report_disabled(m->cli, &m->root);
}

/* Everything of the user would be in reach of the run, though nobody said so. */
static int check_found(const struct cordon_root *root, struct cordon_error *err)
{
	int r;

	if (!cordon_homes_own_in(root))
		return 0;
	r = cordon_fail(err, -EPERM, CORDON_KIND_POLICY_DENIED,
			"nobody named the root, and it would be %s, which is your home directory or contains it",
			root->path);
	if (cordon_streq(root->path, "/"))
		cordon_error_hint(err, "change to a project, or name one with --root");
	else
		cordon_error_hint(err, "change to a project, or say so with --root %s", root->path);
	return r;
}

int cordon_scope_build(struct cordon_cli *cli, struct cordon_scope *scope, struct cordon_policy **ret_policy)
{
	struct making m = { .cli = cli, .scope = scope, .root = { .fd = -1 } };
	struct cordon_policy *policy = NULL;
	struct cordon_error err = { 0 };

	if (cordon_manager_env(&m.env, &err) < 0 || cordon_scope_open_root(scope, m.env.root, &m.root, &err) < 0)
		return cordon_cli_fail(cli, &err);
	if (!scope->root && !m.env.root && check_found(&m.root, &err) < 0)
		report(&m, &err);
	load_preset(&m);
	/* There may be one rule more than there are options: the variable's, or the preset's. */
	m.rules = calloc(scope->n_rules + 1 + count_protected(scope->preset), sizeof(*m.rules));
	m.bad = calloc(scope->n_rules + 1, sizeof(*m.bad));
	if (m.rules && m.bad) {
		build(&m, &policy);
	} else {
		cordon_fail_errno(&err, -ENOMEM, "options");
		report(&m, &err);
	}
	for (size_t i = 0; i < m.n_bad; i++)
		cordon_folders_done(&m.bad[i]);
	free(m.bad);
	free(m.rules);
	free(m.preset_folders);
	cordon_root_done(&m.root);
	if (m.exit_code) {
		cordon_policy_free(policy);
		return m.exit_code;
	}
	*ret_policy = policy;
	return 0;
}

static bool is_scope(int key)
{
	return key == CORDON_SCOPE_RW || key == CORDON_SCOPE_RO || key == CORDON_SCOPE_WITHIN;
}

int cordon_scope_again(const struct cordon_scope *scope, const char *root, const char *folders, cordon_mode mode,
		       struct cordon_policy **ret_policy, struct cordon_error *err)
{
	struct cordon_errors errors CORDON_CLEANUP(cordon_errors_done) = { 0 };
	autofree struct cordon_policy_rule *rules = calloc(scope->n_rules + count_protected(scope->preset) + 1,
							   sizeof(*rules));
	struct cordon_policy_spec spec = { .root = root,
					   .rules = rules,
					   .mode = mode,
					   .reports_reads = scope->mode || scope->n_profiles,
					   .deny_secrets = scope->deny_secrets,
					   .read_only = scope->read_only,
					   .no_default_protection = scope->no_default_protect,
					   .file = scope->file,
					   .profiles = (struct cordon_policy_file *const *)scope->profiles,
					   .n_profiles = scope->n_profiles };
	int r;

	if (!rules)
		return cordon_fail_errno(err, -ENOMEM, "options");
	for (size_t i = 0; i < scope->n_rules; i++)
		for (size_t k = 0; k < CORDON_ARRAY_SIZE(rule_options); k++)
			if (scope->rules[i].key == rule_options[k].key && (folders || !is_scope(scope->rules[i].key)))
				rules[spec.n_rules++] = (struct cordon_policy_rule){ .kind = rule_options[k].kind,
										     .text = scope->rules[i].text,
										     .where = rule_options[k].option };
	for (const struct cordon_preset *preset = scope->preset; preset; preset = preset->parent)
		for (size_t i = 0; i < preset->protected_paths.n; i++)
			rules[spec.n_rules++] = (struct cordon_policy_rule){
				.kind = CORDON_RULE_PROTECT,
				.text = preset->protected_paths.items[i].text,
				.where = preset->protected_paths.items[i].where
			};
	if (folders && *folders)
		rules[spec.n_rules++] = (struct cordon_policy_rule){ .kind = CORDON_RULE_FOLDERS,
								     .text = folders,
								     .where = "workspace" };
	r = cordon_policy_build(&spec, ret_policy, &errors);
	return r < 0 ? cordon_errors_first(&errors, err) : 0;
}
