/* SPDX-License-Identifier: Apache-2.0 */
/* From a recipe to the policy with its shares and to the specification of the run. */
#include "base/path.h"
#include "config/managed.h"
#include "protect/shares.h"
#include "protect/worktree.h"
#include "recipe/recipe.h"

static bool has_name(const struct cordon_recipe_list *list, const char *assignment)
{
	size_t n = strcspn(assignment, "=");

	for (size_t i = 0; i < list->n; i++)
		if (strncmp(list->items[i], assignment, n) == 0 && (!list->items[i][n] || list->items[i][n] == '='))
			return true;
	return false;
}

/* Variables of profiles come first, then those of the file, then those of the settings: later ones win. A variable
 * that the user keeps by its name wins over the value of a profile. */
static int merge_env(struct cordon_recipe *recipe, struct cordon_error *err)
{
	const struct cordon_policy_file *file = recipe->file;
	const struct cordon_profile_use *profile = &recipe->profile;
	struct cordon_recipe_list own = recipe->env;
	int r = 0;

	recipe->env = (struct cordon_recipe_list){ 0 };
	for (size_t i = 0; r == 0 && i < profile->n_env; i++)
		if (!has_name(&recipe->keep_env, profile->env[i]))
			r = cordon_recipe_add_text(&recipe->env, profile->env[i], err);
	for (size_t i = 0; r == 0 && file && i < file->n_env; i++)
		r = cordon_recipe_add_env(recipe, file->env[i].name, file->env[i].value, err);
	for (size_t i = 0; i < own.n; i++) {
		if (r == 0)
			r = cordon_recipe_add_text(&recipe->env, own.items[i], err);
		free(own.items[i]);
	}
	free(own.items);
	return r;
}

static int merge_kept(struct cordon_recipe *recipe, struct cordon_error *err)
{
	const struct cordon_policy_file *file = recipe->file;
	const struct cordon_profile_use *profile = &recipe->profile;
	const struct cordon_preset *preset = cordon_preset_with_env_pass(recipe->preset);
	int r = 0;

	for (size_t i = 0; r == 0 && file && i < file->keep_env.n; i++)
		r = cordon_recipe_add_text(&recipe->keep_env, file->keep_env.items[i].text, err);
	for (size_t i = 0; r == 0 && i < recipe->pass_env.n; i++)
		r = cordon_recipe_add_text(&recipe->keep_env, recipe->pass_env.items[i], err);
	for (size_t i = 0; r == 0 && i < profile->n_keep_env; i++)
		r = cordon_recipe_add_text(&recipe->keep_env, profile->keep_env[i], err);
	for (size_t i = 0; r == 0 && preset && i < preset->env_pass.n; i++)
		r = cordon_recipe_add_text(&recipe->keep_env, preset->env_pass.items[i].text, err);
	return r;
}

/* Takes settings from a policy file or a profile where nothing before it set them. */
static void merge_settings(struct cordon_recipe *recipe, const struct cordon_policy_file *file)
{
	if (!recipe->home && file->home.text) {
		recipe->home = file->home.text;
		recipe->home_of_file = true;
	}
	recipe->at = recipe->at ? recipe->at : file->at.text;
	cordon_recipe_values_add(&recipe->values, &file->values);
}

/* Collects what profiles, and the policy file as far as it speaks like one, give to the run. */
static int use_profiles(struct cordon_recipe *recipe, bool make, struct cordon_error *err)
{
	struct cordon_profile_ask ask = { .path = getenv("PATH"), .root = recipe->policy->root.path, .make = make };
	char home[CORDON_PATH_MAX];
	int r = 0;

	if (!recipe->n_profiles && !recipe->file && !recipe->programs.n && !recipe->program)
		return 0;
	if ((r = cordon_recipe_find_dirs(recipe, err)) < 0)
		return r;
	ask.home = recipe->dirs->home;
	if (recipe->home) {
		if ((r = cordon_path_absolute(recipe->home, home, err)) < 0)
			return r;
		ask.run_home = home;
	}
	for (size_t i = 0; r == 0 && i < recipe->n_profiles; i++)
		r = cordon_profile_collect(recipe->profiles[i], recipe->profile_names[i], &ask, &recipe->profile, err);
	if (r == 0 && recipe->file)
		r = cordon_profile_collect(recipe->file, NULL, &ask, &recipe->profile, err);
	for (size_t i = 0; r >= 0 && i < recipe->programs.n; i++) {
		const char *name = recipe->programs.items[i];
		const char *where = cordon_recipe_rows[CORDON_RECIPE_PROGRAM].dashed;

		r = cordon_profile_program(name, where, &ask, &recipe->profile, err);
		if (r == 0)
			return cordon_fail(err, -ENOENT, CORDON_KIND_NOT_FOUND,
					   "%s: there is no %s on your PATH outside the workspace", where, name);
	}
	if (r >= 0 && recipe->program)
		r = cordon_profile_program(recipe->program, recipe->program_of, &ask, &recipe->profile, err);
	return r < 0 ? r : 0;
}

/* Merges settings, policy file and profiles. Lists are joined; of single values the first one counts. */
static int merge(struct cordon_recipe *recipe, bool make, struct cordon_error *err)
{
	int r = 0;

	if (recipe->file)
		merge_settings(recipe, recipe->file);
	for (size_t i = 0; !recipe->without_settings && i < recipe->n_profiles; i++)
		merge_settings(recipe, recipe->profiles[i]);
	if (!recipe->collected)
		r = use_profiles(recipe, make, err);
	if (r == 0)
		r = merge_env(recipe, err);
	return r < 0 ? r : merge_kept(recipe, err);
}

/* The shares that somebody wrote down: in settings, and in the policy file. */
static size_t list_written(const struct cordon_recipe *recipe, bool missing_too, struct cordon_share *ret_shares)
{
	const struct cordon_policy_file *file = recipe->file;
	size_t n = 0;

	for (size_t i = 0; i < recipe->n_shares; i++)
		if (missing_too || access(recipe->shares[i].source, F_OK) == 0)
			ret_shares[n++] = (struct cordon_share){ .source = recipe->shares[i].source,
								 .target = recipe->shares[i].target,
								 .read_only = recipe->shares[i].read_only,
								 .named = CORDON_NAMED_NOW };
	for (size_t i = 0; file && i < file->n_shares; i++)
		if (missing_too || access(file->shares[i].share.source, F_OK) == 0)
			ret_shares[n++] = (struct cordon_share){ .source = file->shares[i].share.source,
								 .target = file->shares[i].share.target,
								 .read_only = file->shares[i].share.read_only,
								 .named = CORDON_NAMED_BEFORE };
	return n;
}

/* What a person or a profile shows of the host must be among what its owner lets be shown. What cordon keeps itself, the
 * programs of profiles and layers that are discarded are not asked about. */
static int check_shares(const struct cordon_recipe *recipe, const struct cordon_share *shares, size_t n,
			const struct cordon_share *home, struct cordon_error *err)
{
	int r = home ? cordon_managed_share(recipe->managed, home->source, false, err) : 0;

	for (size_t i = 0; r == 0 && i < n; i++)
		if (shares[i].named != CORDON_NAMED_BY_NOBODY && !shares[i].own && shares[i].kind == CORDON_SHARE_PLAIN)
			r = cordon_managed_share(recipe->managed, shares[i].source, shares[i].read_only, err);
	return r;
}

static int add_shares(const struct cordon_recipe *recipe, struct cordon_policy *policy, bool missing_too,
		      struct cordon_error *err)
{
	const struct cordon_profile_use *profile = &recipe->profile;
	size_t n = recipe->n_places + recipe->n_shares + (recipe->file ? recipe->file->n_shares : 0);
	autofree struct cordon_share *shares = calloc(n + profile->n_shares + 1, sizeof(*shares));
	bool protect = cordon_recipe_value(&recipe->values, CORDON_RECIPE_DEFAULT_PROTECT) &&
		       (!recipe->file || cordon_recipe_value(&recipe->file->values, CORDON_RECIPE_DEFAULT_PROTECT));
	char home[CORDON_PATH_MAX] = "";
	struct cordon_share run_home = { .source = home,
					 .named = recipe->home_of_file ? CORDON_NAMED_BEFORE : CORDON_NAMED_NOW };
	int r;

	if (!shares)
		return cordon_fail_errno(err, -ENOMEM, "shares");
	n = 0;
	for (size_t i = 0; i < recipe->n_places; i++)
		shares[n++] = recipe->places[i];
	n += list_written(recipe, missing_too, shares + n);
	for (size_t i = 0; i < profile->n_shares; i++)
		shares[n++] = profile->shares[i];
	if (recipe->home && (r = cordon_path_absolute(recipe->home, home, err)) < 0)
		return r;
	if (!missing_too && access(home, F_OK) < 0)
		home[0] = '\0';
	r = check_shares(recipe, shares, n, *home ? &run_home : NULL, err);
	if (r < 0)
		return r;
	r = cordon_shares_add(policy, shares, n, *home ? &run_home : NULL, recipe->at, protect, err);
	return r < 0 || recipe->without_worktree ? r : cordon_worktree_share(policy, err);
}

int cordon_recipe_share(const struct cordon_recipe *recipe, struct cordon_policy *policy, struct cordon_error *err)
{
	return add_shares(recipe, policy, true, err);
}

/* Narrows the hosts to those that the caller asks for. */
static int narrow_net(struct cordon_recipe *recipe, struct cordon_error *err)
{
	struct cordon_net_list list = { 0 };
	int r;

	if (!recipe->net_within)
		return 0;
	r = cordon_net_option(recipe->net_within, "net", &recipe->policy->net, &list, err);
	if (r == 0)
		r = cordon_net_list_narrow(&recipe->policy->net, &list, err);
	cordon_net_list_done(&list);
	return r;
}

static void fill_spec(struct cordon_recipe *recipe)
{
	struct cordon_run_spec *spec = &recipe->spec;

	cordon_recipe_values_put(&recipe->values, spec);
	spec->policy = recipe->policy;
	spec->at = recipe->at;
	spec->net = cordon_net_list_is_none(&recipe->policy->net) ? CORDON_NET_NONE : CORDON_NET_HOST;
	spec->env = recipe->env.items;
	spec->n_env = recipe->env.n;
	spec->keep_env = recipe->keep_env.items;
	spec->n_keep_env = recipe->keep_env.n;
	spec->home_env = recipe->profile.home_env;
	spec->n_home_env = recipe->profile.n_home_env;
	spec->path = recipe->profile.path;
}

int cordon_recipe_compile(struct cordon_recipe *recipe, cordon_recipe_use use, struct cordon_errors *errors)
{
	struct cordon_error err = { 0 };
	int r = cordon_recipe_policy(recipe, errors);

	if (r < 0)
		return r;
	r = narrow_net(recipe, &err);
	if (r == 0)
		r = merge(recipe, use == CORDON_RECIPE_STARTS, &err);
	if (r == 0)
		r = add_shares(recipe, recipe->policy, use != CORDON_RECIPE_ASKS, &err);
	if (r < 0)
		return cordon_errors_add(errors, &err, NULL, 0, 0);
	fill_spec(recipe);
	return 0;
}
