/* SPDX-License-Identifier: Apache-2.0 */
/* Fills recipes, one setting after the other. */
#include "recipe/recipe.h"
#include "base/path.h"

int cordon_recipe_add_text(struct cordon_recipe_list *list, const char *text, struct cordon_error *err)
{
	char **bigger = reallocarray(list->items, list->n + 1, sizeof(*bigger));

	if (bigger)
		list->items = bigger;
	if (!bigger || !(list->items[list->n] = strdup(text)))
		return cordon_fail_errno(err, -ENOMEM, "options");
	list->n++;
	return 0;
}

static void list_done(struct cordon_recipe_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		free(list->items[i]);
	free(list->items);
}

int cordon_recipe_add_rule(struct cordon_recipe *recipe, cordon_rule_kind kind, const char *text, const char *where,
			   struct cordon_error *err)
{
	struct cordon_policy_rule *rules = reallocarray(recipe->rules, recipe->n_rules + 1, sizeof(*rules));

	if (!rules)
		return cordon_fail_errno(err, -ENOMEM, "options");
	rules[recipe->n_rules++] = (struct cordon_policy_rule){ .kind = kind, .text = text, .where = where };
	recipe->rules = rules;
	return 0;
}

int cordon_recipe_add_env(struct cordon_recipe *recipe, const char *name, const char *value, struct cordon_error *err)
{
	autobuf struct cordon_buf text = CORDON_BUF((size_t)32 << 20);

	if (cordon_buf_addf(&text, "%s=%s", name, value) < 0)
		return cordon_fail(err, -E2BIG, CORDON_KIND_LIMIT, "the environment is too large");
	return cordon_recipe_add_text(&recipe->env, text.data, err);
}

int cordon_recipe_add_profile(struct cordon_recipe *recipe, const char *name, struct cordon_policy_file *file,
			      struct cordon_error *err)
{
	char *copy = recipe->n_profiles < CORDON_PROFILES_MAX ? strdup(name) : NULL;

	if (copy) {
		recipe->profile_names[recipe->n_profiles] = copy;
		recipe->profiles[recipe->n_profiles++] = file;
		return 0;
	}
	cordon_policy_file_free(file);
	return recipe->n_profiles == CORDON_PROFILES_MAX
		       ? cordon_fail(err, -E2BIG, CORDON_KIND_LIMIT, "a run has more than %d profiles",
				     CORDON_PROFILES_MAX)
		       : cordon_fail_errno(err, -ENOMEM, "profiles");
}

void cordon_recipe_set_value(struct cordon_recipe *recipe, cordon_recipe_id id, uint64_t value)
{
	recipe->values.of[id] = value;
	recipe->values.where[id] = value ? "" : NULL;
}

static int add_env(struct cordon_recipe *recipe, const char *text, struct cordon_error *err)
{
	size_t n = strcspn(text, "=");
	int r = cordon_env_name_check(text, n, err);

	if (r < 0)
		return r;
	if (!text[n])
		return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "%s has no value; use NAME=VALUE, or %s NAME", text,
				   cordon_recipe_rows[CORDON_RECIPE_KEEP_ENV].dashed);
	return cordon_recipe_add_text(&recipe->env, text, err);
}

static int add_share(struct cordon_recipe *recipe, const char *text, struct cordon_error *err)
{
	struct cordon_share_value share = { 0 }, *bigger;
	char source[CORDON_PATH_MAX];
	int r = cordon_share_parse(text, &share, err);

	if (r == 0)
		r = cordon_path_absolute(share.source, source, err);
	if (r == 0) {
		free(share.source);
		share.source = strdup(source);
		bigger = share.source ? reallocarray(recipe->shares, recipe->n_shares + 1, sizeof(*bigger)) : NULL;
		if (!bigger) {
			r = cordon_fail_errno(err, -ENOMEM, "options");
		} else {
			recipe->shares = bigger;
			recipe->shares[recipe->n_shares++] = share;
		}
	}
	if (r < 0)
		cordon_share_done(&share);
	return r;
}

static int set_text(const char **slot, const char *text)
{
	*slot = text;
	return 0;
}

/* A setting that is neither a value nor a rule. */
static int set_other(struct cordon_recipe *recipe, cordon_recipe_id id, const char *text, struct cordon_error *err)
{
	switch ((int)id) {
	case CORDON_RECIPE_ROOT:
		return set_text(&recipe->root, text);
	case CORDON_RECIPE_WRITE:
		return set_text(&recipe->write, text);
	case CORDON_RECIPE_PRESET:
		return set_text(&recipe->preset_name, text);
	case CORDON_RECIPE_POLICY:
		return set_text(&recipe->policy_path, text);
	case CORDON_RECIPE_AT:
		return set_text(&recipe->at, text);
	case CORDON_RECIPE_HOME:
		return set_text(&recipe->home, text);
	case CORDON_RECIPE_PROFILE:
		return cordon_recipe_add_text(&recipe->profile_lists, text, err);
	case CORDON_RECIPE_PROGRAM:
		return cordon_recipe_add_text(&recipe->programs, text, err);
	case CORDON_RECIPE_SHARE:
		return add_share(recipe, text, err);
	case CORDON_RECIPE_ENV:
		return add_env(recipe, text, err);
	case CORDON_RECIPE_KEEP_ENV:
		return cordon_env_pattern_check(text, err) < 0 ? -EINVAL
							       : cordon_recipe_add_text(&recipe->keep_env, text, err);
	default:
		return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "can't be set here");
	}
}

static int set_value(struct cordon_recipe *recipe, cordon_recipe_id id, const char *text, struct cordon_error *err)
{
	const struct cordon_recipe_row *row = &cordon_recipe_rows[id];
	uint64_t value = !row->initial;
	int r = row->type == CORDON_RECIPE_FLAG ? 0 : row->parse(text, &value, err);

	if (r == 0) {
		recipe->values.of[id] = value;
		recipe->values.where[id] = text ? text : "";
	}
	return r;
}

int cordon_recipe_set(struct cordon_recipe *recipe, cordon_recipe_id id, const char *text, const char *where,
		      struct cordon_error *err)
{
	const struct cordon_recipe_row *row = &cordon_recipe_rows[id];
	const char *before = id == CORDON_RECIPE_ROOT	  ? recipe->root
			     : id == CORDON_RECIPE_WRITE  ? recipe->write
			     : id == CORDON_RECIPE_PRESET ? recipe->preset_name
			     : id == CORDON_RECIPE_POLICY ? recipe->policy_path
							  : recipe->values.where[id];
	int r;

	if (row->once && before)
		return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "%s was given twice: %s and %s", where, before,
				   text);
	if (row->type == CORDON_RECIPE_RULE)
		return cordon_recipe_add_rule(recipe, (cordon_rule_kind)row->rule, text, where, err);
	r = row->type == CORDON_RECIPE_OTHER ? set_other(recipe, id, text, err) : set_value(recipe, id, text, err);
	return r < 0 ? cordon_error_prefix(err, r, "%s", where) : 0;
}

void cordon_recipe_done(struct cordon_recipe *recipe)
{
	list_done(&recipe->env);
	list_done(&recipe->keep_env);
	list_done(&recipe->pass_env);
	list_done(&recipe->programs);
	list_done(&recipe->profile_lists);
	for (size_t i = 0; i < recipe->n_shares; i++)
		cordon_share_done(&recipe->shares[i]);
	free(recipe->shares);
	free(recipe->rules);
	cordon_policy_file_free(recipe->file);
	cordon_policy_file_free(recipe->managed);
	for (size_t i = 0; i < recipe->n_profiles; i++) {
		cordon_policy_file_free(recipe->profiles[i]);
		free(recipe->profile_names[i]);
	}
	free(recipe->dirs);
	cordon_settings_free(recipe->settings);
	cordon_profile_use_done(&recipe->profile);
	cordon_policy_free(recipe->policy);
	cordon_errors_done(&recipe->folder_errors);
	*recipe = (struct cordon_recipe){ 0 };
}
