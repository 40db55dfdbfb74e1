/* SPDX-License-Identifier: Apache-2.0 */
/* The policy of a recipe, without shares: collects rules from settings, variables, presets and files, and finds every
 * error in them. */
#include <sys/stat.h>

#include "base/path.h"
#include "config/extent.h"
#include "config/managed.h"
#include "policy/folders.h"
#include "protect/homes.h"
#include "recipe/recipe.h"

int cordon_recipe_open_root(const struct cordon_recipe *recipe, struct cordon_root *ret_root, struct cordon_error *err)
{
	int r;

	if (recipe->root) {
		r = cordon_root_open(recipe->root, ret_root, err);
		return r < 0 ? cordon_error_prefix(err, r, "%s", cordon_recipe_rows[CORDON_RECIPE_ROOT].dashed) : 0;
	}
	if (recipe->variables.root) {
		r = cordon_root_open(recipe->variables.root, ret_root, err);
		return r < 0 ? cordon_error_prefix(err, r, "WORKSPACE_REPO_ROOT") : 0;
	}
	return cordon_repo_root(".", ret_root, err);
}

int cordon_recipe_find_dirs(struct cordon_recipe *recipe, struct cordon_error *err)
{
	if (!recipe->dirs && (recipe->dirs = calloc(1, sizeof(*recipe->dirs))))
		cordon_profile_dirs_find(recipe->dirs);
	return recipe->dirs ? 0 : cordon_fail_errno(err, -ENOMEM, "profiles");
}

/* The state of one build. */
struct making {
	struct cordon_recipe *recipe;
	struct cordon_root root;
	struct cordon_policy_rule *rules;
	size_t n_rules;
	char *preset_folders; /* the list that a preset leaves, or NULL */
	struct cordon_buf write_folders;
	struct cordon_errors *errors;
};

static void report(struct making *m, const struct cordon_error *err)
{
	cordon_errors_add(m->errors, err, NULL, 0, 0);
}

/* Errors of one file stay together, in their order. */
static void report_all(struct making *m, const struct cordon_errors *errors)
{
	for (size_t i = 0; i < errors->n; i++)
		report(m, &errors->items[i]);
	m->errors->dropped += errors->dropped;
}

static void add_rule(struct making *m, cordon_rule_kind kind, const char *text, const char *where)
{
	m->rules[m->n_rules++] = (struct cordon_policy_rule){ .kind = kind, .text = text, .where = where };
}

/* ---- folders ---- */

/* Notes the folders that are missing or outside; returns whether there are some. */
static bool note_bad_folders(struct making *m, const struct cordon_folders *folders)
{
	char path[CORDON_PATH_MAX];
	bool bad = false;

	for (size_t i = 0; i < folders->n; i++) {
		struct cordon_error err = { 0 };

		if (cordon_folder_resolve(&m->root, folders->items[i], path, &err) == 0)
			continue;
		bad = true;
		cordon_errors_add(&m->recipe->folder_errors, &err, NULL, 0, 0);
	}
	return bad;
}

static void add_folders(struct making *m, const char *list, const char *where)
{
	struct cordon_folders folders CORDON_CLEANUP(cordon_folders_done) = { 0 };

	/* A list that can't be parsed is refused when the policy is built. */
	if (cordon_folders_parse(list, &folders, NULL) < 0 || !note_bad_folders(m, &folders))
		add_rule(m, CORDON_RULE_FOLDERS, list, where);
}

/* Finds the preset in the settings. */
static void load_preset(struct making *m)
{
	struct cordon_errors errors CORDON_CLEANUP(cordon_errors_done) = { 0 };
	struct cordon_recipe *recipe = m->recipe;
	struct cordon_error err = { 0 };

	if (!recipe->preset_name)
		return;
	if (cordon_settings_load(NULL, CORDON_SETTINGS_TEXT_ONLY, &recipe->settings, &errors) < 0)
		report_all(m, &errors);
	else if (cordon_settings_preset(recipe->settings, recipe->preset_name, &recipe->preset, &err) < 0)
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
	for (const struct cordon_preset *preset = m->recipe->preset; preset; preset = preset->parent)
		for (size_t i = 0; i < preset->protected_paths.n; i++)
			add_rule(m, CORDON_RULE_PROTECT, preset->protected_paths.items[i].text,
				 preset->protected_paths.items[i].where);
}

/* All folders of the settings, as if they were one list. */
static int narrow_by_settings(struct making *m, struct cordon_extent *ws, struct cordon_errors *errors)
{
	struct cordon_buf all autobuf = CORDON_BUF(1u << 21);
	struct cordon_error err = { 0 };
	int r = 0;

	for (size_t i = 0; r == 0 && i < m->recipe->n_rules; i++)
		if (m->recipe->rules[i].kind == CORDON_RULE_FOLDERS)
			r = cordon_buf_addf(&all, "%s%s", all.len ? "," : "", m->recipe->rules[i].text);
	if (r < 0) {
		cordon_fail_errno(&err, r, "folders");
		return cordon_errors_add(errors, &err, NULL, 0, 0);
	}
	return all.len ? cordon_extent_narrow_list(ws, &m->root, all.data, errors) : 0;
}

/* Folders that are missing or outside have their own wording. */
static void report_extent(struct making *m, const struct cordon_errors *errors)
{
	for (size_t i = 0; i < errors->n; i++)
		cordon_errors_add(*errors->items[i].where || errors->items[i].kind == CORDON_KIND_CONFIG
					  ? m->errors
					  : &m->recipe->folder_errors,
				  &errors->items[i], NULL, 0, 0);
}

/* Adds what is both in the preset and in the folders of the settings. Returns whether that is a list. */
static bool add_preset_folders(struct making *m)
{
	struct cordon_extent ws CORDON_CLEANUP(cordon_extent_done) = { 0 };
	struct cordon_errors errors CORDON_CLEANUP(cordon_errors_done) = { 0 };
	struct cordon_error err = { 0 };
	int r = cordon_extent_narrow_preset(&ws, &m->root, m->recipe->settings, m->recipe->preset_name, &errors);

	if (r == 0)
		r = narrow_by_settings(m, &ws, &errors);
	if (r == 0 && !(m->preset_folders = cordon_extent_list(&ws))) {
		cordon_fail_errno(&err, -ENOMEM, "folders");
		report(m, &err);
	}
	if (r < 0)
		report_extent(m, &errors);
	else if (ws.limited)
		add_rule(m, CORDON_RULE_FOLDERS, m->preset_folders, cordon_recipe_rows[CORDON_RECIPE_PRESET].dashed);
	return ws.limited;
}

/* Adds the folders that alone may be written, which are relative to where the person stands. */
static void add_write(struct making *m)
{
	const char *where = cordon_recipe_rows[CORDON_RECIPE_WRITE].dashed;
	struct cordon_folders folders CORDON_CLEANUP(cordon_folders_done) = { 0 };
	const struct cordon_recipe *recipe = m->recipe;
	struct cordon_error err = { 0 };
	char path[CORDON_PATH_MAX];
	int r = cordon_folders_parse(recipe->write, &folders, &err);

	for (size_t i = 0; i < recipe->n_rules && r == 0; i++)
		if (recipe->rules[i].kind == CORDON_RULE_FOLDERS)
			r = cordon_fail(&err, -EINVAL, CORDON_KIND_USAGE, "can't be used with %s",
					recipe->rules[i].where);
	if (r == 0 && recipe->preset_name)
		r = cordon_fail(&err, -EINVAL, CORDON_KIND_USAGE, "can't be used with a preset");
	if (r == 0 && recipe->values.where[CORDON_RECIPE_MODE] &&
	    recipe->values.of[CORDON_RECIPE_MODE] != CORDON_MODE_STRICT)
		r = cordon_fail(&err, -EINVAL, CORDON_KIND_USAGE, "is always strict");
	for (size_t i = 0; i < folders.n && r == 0; i++) {
		char inside[CORDON_PATH_MAX];

		r = cordon_path_absolute(folders.items[i], path, &err);
		/* What is missing or outside is named as it is, and refused with the others. */
		if (r == 0 && cordon_folder_resolve(&m->root, path, inside, NULL) == 0)
			memcpy(path, *inside ? inside : ".", *inside ? strlen(inside) + 1 : 2);
		if (r == 0 && (r = cordon_folders_add(&m->write_folders, path)) < 0)
			cordon_fail_errno(&err, r, "folders");
	}
	if (r < 0) {
		cordon_error_prefix(&err, r, "%s", where);
		report(m, &err);
		return;
	}
	add_folders(m, m->write_folders.data, where);
	add_rule(m, CORDON_RULE_READ, ".", where);
}

/* Adds every list of folders and the preset, else the list of the variable if no other scope was asked for. Returns
 * whether there was a list. */
static bool add_folder_lists(struct making *m)
{
	const struct cordon_recipe *recipe = m->recipe;
	bool scoped = recipe->policy_path || recipe->preset_name, listed = false;

	if (recipe->write) {
		add_write(m);
		return true;
	}
	for (size_t i = 0; i < recipe->n_rules; i++) {
		const struct cordon_policy_rule *rule = &recipe->rules[i];

		scoped |= rule->kind == CORDON_RULE_WRITE || rule->kind == CORDON_RULE_READ;
		listed |= rule->kind == CORDON_RULE_FOLDERS;
		if (rule->kind == CORDON_RULE_FOLDERS && !recipe->variables.disabled && !recipe->preset)
			add_folders(m, rule->text, rule->where);
	}
	if (recipe->preset && !recipe->variables.disabled)
		return add_preset_folders(m);
	listed |= recipe->preset && cordon_preset_with_folders(recipe->preset);
	if (!listed && !scoped && recipe->variables.folders) {
		listed = true;
		if (!recipe->variables.disabled)
			add_folders(m, recipe->variables.folders, "WORKSPACE_FOLDERS");
	}
	return listed;
}

/* ---- files ---- */

/* The absolute path of the policy file, as it was named. */
static bool name_file(const char *path, char ret[static CORDON_PATH_MAX])
{
	char cwd[CORDON_PATH_MAX];

	return (path[0] == '/' || getcwd(cwd, sizeof(cwd))) &&
	       cordon_path_join(path[0] == '/' ? "" : cwd, path, ret, CORDON_PATH_MAX) == 0;
}

/* Whether the policy file may speak of the home directory: the user owns it, and no agent can have written it. */
static void judge_file(const struct making *m, struct cordon_policy_trust *ret_trust)
{
	char asked[CORDON_PATH_MAX];
	struct stat st;

	*ret_trust = (struct cordon_policy_trust){ .why_not = "a file that you do not own can't speak of your home" };
	if (!name_file(m->recipe->policy_path, asked))
		return;
	if (stat(asked, &st) < 0 || st.st_uid != geteuid() || (st.st_mode & S_IWOTH))
		return;
	ret_trust->why_not = "a file inside the workspace can't speak of your home";
	if (cordon_policy_file_inside(asked, m->root.path))
		return;
	ret_trust->credentials = true;
	ret_trust->why_not = "there is no home directory (HOME)";
	ret_trust->home = *m->recipe->dirs->home ? m->recipe->dirs->home : NULL;
}

static bool find_dirs(struct making *m)
{
	struct cordon_error err = { 0 };

	if (cordon_recipe_find_dirs(m->recipe, &err) == 0)
		return true;
	report(m, &err);
	return false;
}

static void load_file(struct making *m)
{
	struct cordon_errors errors CORDON_CLEANUP(cordon_errors_done) = { 0 };
	struct cordon_policy_trust trust;

	if (!m->recipe->policy_path || !find_dirs(m))
		return;
	judge_file(m, &trust);
	if (cordon_policy_file_load(m->recipe->policy_path, &trust, &m->recipe->file, &errors) < 0)
		report_all(m, &errors);
}

static void load_profile(struct making *m, const char *name)
{
	struct cordon_recipe *recipe = m->recipe;
	struct cordon_errors errors CORDON_CLEANUP(cordon_errors_done) = { 0 };
	struct cordon_policy_file *file = NULL;
	struct cordon_error err = { 0 };

	for (size_t i = 0; i < recipe->n_profiles; i++)
		if (cordon_streq(recipe->profile_names[i], name))
			return;
	if (cordon_profile_load(recipe->dirs, name, &file, &errors) < 0)
		report_all(m, &errors);
	else if (cordon_recipe_add_profile(recipe, name, file, &err) < 0)
		report(m, &err);
}

/* Reads the profiles of the settings, then those that the policy file names. */
static void load_profiles(struct making *m)
{
	const struct cordon_recipe *recipe = m->recipe;

	for (size_t i = 0; i < recipe->profile_lists.n && find_dirs(m); i++) {
		for (const char *p = recipe->profile_lists.items[i];; p++) {
			size_t n = strcspn(p, ",");
			autofree char *name = strndup(p, n);

			load_profile(m, name ? name : "");
			p += n;
			if (!*p)
				break;
		}
	}
	for (size_t i = 0; recipe->file && i < recipe->file->profiles.n; i++)
		load_profile(m, recipe->file->profiles.items[i].text);
}

/* ---- the whole ---- */

/* The setting has precedence, then the file, the variable, the default for folders, and strict. A preset can only make
 * it stricter, or say what nobody else says. */
static cordon_mode choose_mode(const struct making *m, bool folders)
{
	const struct cordon_recipe *recipe = m->recipe;
	const struct cordon_preset *preset = cordon_preset_with_mode(recipe->preset);

	if (recipe->write || (preset && preset->mode == CORDON_MODE_STRICT))
		return CORDON_MODE_STRICT;
	if (recipe->values.where[CORDON_RECIPE_MODE])
		return (cordon_mode)recipe->values.of[CORDON_RECIPE_MODE];
	if (recipe->file && recipe->file->values.where[CORDON_RECIPE_MODE])
		return (cordon_mode)recipe->file->values.of[CORDON_RECIPE_MODE];
	if (recipe->variables.has_mode)
		return recipe->variables.mode;
	if (preset)
		return preset->mode;
	return folders || (recipe->file && recipe->file->workspace.n) ? recipe->folder_mode : CORDON_MODE_STRICT;
}

/* What every policy of a recipe has. */
static struct cordon_policy_spec begin_spec(const struct cordon_recipe *recipe, const char *root,
					    const struct cordon_policy_rule *rules)
{
	return (struct cordon_policy_spec){
		.root = root,
		.rules = rules,
		/* A policy file is used by many; whoever runs it decides whether reads are reported. */
		.reports_reads = recipe->reports_reads || recipe->values.where[CORDON_RECIPE_MODE] ||
				 recipe->variables.has_mode || cordon_preset_with_mode(recipe->preset) ||
				 recipe->n_profiles,
		.deny_secrets = recipe->write || cordon_recipe_value(&recipe->values, CORDON_RECIPE_DENY_SECRETS),
		.read_only = cordon_recipe_value(&recipe->values, CORDON_RECIPE_READ_ONLY),
		.no_default_protection = !cordon_recipe_value(&recipe->values, CORDON_RECIPE_DEFAULT_PROTECT),
		.file = recipe->file,
		.managed = recipe->managed,
		.file_path = recipe->file_path,
		.profiles = (struct cordon_policy_file *const *)recipe->profiles,
		.n_profiles = recipe->n_profiles,
		.net = recipe->net,
		.net_record = recipe->net_record,
		.profile_net = recipe->profile_net,
		.defaults_below = recipe->defaults_below,
		.n_defaults_below = recipe->n_defaults_below,
		.n_present_below = recipe->n_present_below,
	};
}

static void build(struct making *m, const char *root)
{
	struct cordon_errors errors CORDON_CLEANUP(cordon_errors_done) = { 0 };
	struct cordon_recipe *recipe = m->recipe;
	struct cordon_policy_spec spec;
	char path[CORDON_PATH_MAX];
	bool listed;

	load_file(m);
	load_profiles(m);
	if (cordon_managed_load(&recipe->managed, &errors) < 0) {
		report_all(m, &errors);
		return;
	}
	for (size_t i = 0; i < recipe->n_rules; i++)
		if (recipe->rules[i].kind != CORDON_RULE_FOLDERS)
			m->rules[m->n_rules++] = recipe->rules[i];
	add_protected(m);
	listed = add_folder_lists(m);
	spec = begin_spec(recipe, root, m->rules);
	spec.n_rules = m->n_rules;
	if (recipe->policy_path && name_file(recipe->policy_path, path))
		spec.file_path = path;
	spec.mode = choose_mode(m, listed && !recipe->variables.disabled);
	if (cordon_policy_build(&spec, &recipe->policy, &errors) < 0)
		report_all(m, &errors);
	else if (!cordon_recipe_value(&recipe->values, CORDON_RECIPE_EDITOR_TEMPS))
		recipe->policy->no_editor_temps = true;
	recipe->disabled = listed && recipe->variables.disabled && !recipe->write;
}

/* Everything of the user would be in reach of the run, though nobody said so. */
static void check_found(struct making *m)
{
	struct cordon_error err = { 0 };

	if (!cordon_homes_own_in(&m->root))
		return;
	cordon_fail(&err, -EPERM, CORDON_KIND_POLICY_DENIED,
		    "nobody named the root, and it would be %s, which is your home directory or contains it",
		    m->root.path);
	if (cordon_streq(m->root.path, "/"))
		cordon_error_hint(&err, "change to a project, or name one with %s",
				  cordon_recipe_rows[CORDON_RECIPE_ROOT].dashed);
	else
		cordon_error_hint(&err, "change to a project, or say so with %s %s",
				  cordon_recipe_rows[CORDON_RECIPE_ROOT].dashed, m->root.path);
	report(m, &err);
}

/* Whether the root must be open before the policy is built, which opens it again. */
static bool needs_root(const struct cordon_recipe *recipe)
{
	bool needed = recipe->names_options || !recipe->root || recipe->policy_path || recipe->preset_name ||
		      recipe->write;

	for (size_t i = 0; i < recipe->n_rules; i++)
		needed |= recipe->rules[i].kind == CORDON_RULE_FOLDERS;
	return needed;
}

int cordon_recipe_policy(struct cordon_recipe *recipe, struct cordon_errors *errors)
{
	struct making m = {
		.recipe = recipe, .root = { .fd = -1 }, .write_folders = CORDON_BUF(1u << 21), .errors = errors
	};
	size_t before = errors->n + errors->dropped;
	struct cordon_error err = { 0 };
	const char *root = recipe->root;

	if (needs_root(recipe)) {
		if (cordon_recipe_open_root(recipe, &m.root, &err) < 0) {
			report(&m, &err);
			return err.code;
		}
		root = m.root.path;
		memcpy(recipe->root_path, root, strlen(root) + 1);
		if (!recipe->root && !recipe->variables.root)
			check_found(&m);
	}
	load_preset(&m);
	/* There may be two rules more than there are settings: the variable's, the preset's, or those of --write. */
	m.rules = calloc(recipe->n_rules + 2 + count_protected(recipe->preset), sizeof(*m.rules));
	if (m.rules) {
		build(&m, root);
	} else {
		cordon_fail_errno(&err, -ENOMEM, "options");
		report(&m, &err);
	}
	free(m.rules);
	free(m.preset_folders);
	cordon_buf_done(&m.write_folders);
	cordon_root_done(&m.root);
	if (errors->n + errors->dropped == before && !recipe->folder_errors.n)
		return 0;
	cordon_policy_free(recipe->policy);
	recipe->policy = NULL;
	return -EINVAL;
}

static bool is_grant(cordon_rule_kind kind)
{
	return kind == CORDON_RULE_WRITE || kind == CORDON_RULE_READ || kind == CORDON_RULE_WITHIN;
}

int cordon_recipe_again(const struct cordon_recipe *recipe, const char *folders, cordon_mode mode,
			struct cordon_policy **ret_policy, struct cordon_error *err)
{
	struct cordon_errors errors CORDON_CLEANUP(cordon_errors_done) = { 0 };
	struct making m = { .recipe = (struct cordon_recipe *)(uintptr_t)recipe };
	struct cordon_policy_spec spec;
	char path[CORDON_PATH_MAX];
	int r;

	m.rules = calloc(recipe->n_rules + count_protected(recipe->preset) + 1, sizeof(*m.rules));
	if (!m.rules)
		return cordon_fail_errno(err, -ENOMEM, "options");
	for (size_t i = 0; i < recipe->n_rules; i++)
		if (recipe->rules[i].kind != CORDON_RULE_FOLDERS && (folders || !is_grant(recipe->rules[i].kind)))
			m.rules[m.n_rules++] = recipe->rules[i];
	add_protected(&m);
	if (folders && *folders)
		add_rule(&m, CORDON_RULE_FOLDERS, folders, "workspace");
	spec = begin_spec(recipe, recipe->policy->root.path, m.rules);
	spec.n_rules = m.n_rules;
	spec.mode = mode;
	if (recipe->policy_path && name_file(recipe->policy_path, path))
		spec.file_path = path;
	r = cordon_policy_build(&spec, ret_policy, &errors);
	free(m.rules);
	return r < 0 ? cordon_errors_first(&errors, err) : 0;
}
