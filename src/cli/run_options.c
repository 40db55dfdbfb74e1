/* SPDX-License-Identifier: Apache-2.0 */
/* The options of commands that run an agent. */
#include <stdio.h>

#include "base/path.h"
#include "cli/run_options.h"
#include "protect/shares.h"
#include "protect/worktree.h"

static int append(struct cordon_run_list *list, const char *text, struct cordon_error *err)
{
	char **bigger = realloc(list->items, (list->n + 1) * sizeof(*bigger));

	if (bigger)
		list->items = bigger;
	if (!bigger || !(list->items[list->n] = strdup(text)))
		return cordon_fail_errno(err, -ENOMEM, "options");
	list->n++;
	return 0;
}

static void list_done(struct cordon_run_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		free(list->items[i]);
	free(list->items);
	*list = (struct cordon_run_list){ 0 };
}

static int append_share(struct cordon_run_options *options, const struct cordon_share_value *share,
			struct cordon_error *err)
{
	struct cordon_share_value *bigger = realloc(options->shares, (options->n_shares + 1) * sizeof(*bigger));

	if (!bigger)
		return cordon_fail_errno(err, -ENOMEM, "options");
	options->shares = bigger;
	options->shares[options->n_shares++] = *share;
	return 0;
}

static int set_env(struct cordon_run_options *options, const char *arg, struct cordon_error *err)
{
	size_t n = strcspn(arg, "=");
	int r = cordon_env_name_check(arg, n, err);

	if (r < 0)
		return r;
	if (!arg[n])
		return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE,
				   "%s has no value; use NAME=VALUE, or --keep-env NAME", arg);
	return append(&options->env, arg, err);
}

/* Makes a host directory absolute that an option gave relative to the current directory. */
static int make_absolute(const char *path, char ret[static CORDON_PATH_MAX], struct cordon_error *err)
{
	char cwd[CORDON_PATH_MAX];

	if (path[0] == '/')
		return cordon_copy(ret, CORDON_PATH_MAX, path, strlen(path)) < 0
			       ? cordon_fail_errno(err, -ENAMETOOLONG, "%s", path)
			       : 0;
	if (!getcwd(cwd, sizeof(cwd)))
		return cordon_fail_errno(err, -errno, "cannot tell the current directory");
	return cordon_path_join(cwd, path, ret, CORDON_PATH_MAX) < 0 ? cordon_fail_errno(err, -ENAMETOOLONG, "%s", path)
								     : 0;
}

static int set_share(struct cordon_run_options *options, const char *arg, struct cordon_error *err)
{
	struct cordon_share_value share = { 0 };
	char source[CORDON_PATH_MAX];
	int r = cordon_share_parse(arg, &share, err);

	if (r < 0)
		return r;
	r = make_absolute(share.source, source, err);
	if (r == 0) {
		free(share.source);
		share.source = strdup(source);
		r = share.source ? append_share(options, &share, err) : cordon_fail_errno(err, -ENOMEM, "options");
	}
	if (r < 0)
		cordon_share_done(&share);
	return r;
}

static int set_value(struct cordon_run_options *options, int key, const char *arg, struct cordon_error *err)
{
	struct cordon_run_spec *spec = &options->spec;

	switch (key) {
	case CORDON_RUN_TIMEOUT:
		return cordon_timeout_parse(arg, &spec->timeout_ms, err);
	case CORDON_RUN_GRACE:
		return cordon_timeout_parse(arg, &spec->grace_ms, err);
	case CORDON_RUN_MEMORY:
		return cordon_memory_parse(arg, &spec->memory_bytes, err);
	case CORDON_RUN_TMP_SIZE:
		return cordon_memory_parse(arg, &spec->tmp_bytes, err);
	case CORDON_RUN_PIDS:
		return cordon_pids_parse(arg, &spec->pids, err);
	case CORDON_RUN_CPUS:
		return cordon_cpus_parse(arg, &spec->cpu_millis, err);
	case CORDON_RUN_REPORTS:
		return cordon_reports_parse(arg, &options->reports, &options->reports_path, err);
	case CORDON_RUN_ENV:
		return set_env(options, arg, err);
	case CORDON_RUN_PROGRAM:
		return append(&options->programs, arg, err);
	case CORDON_RUN_KEEP_ENV:
		return cordon_env_pattern_check(arg, err) < 0 ? -EINVAL : append(&options->keep_env, arg, err);
	default:
		return set_share(options, arg, err);
	}
}

int cordon_run_options_set(struct cordon_run_options *options, int key, const char *arg, struct cordon_error *err)
{
	int r;

	if (cordon_scope_owns(key))
		return cordon_scope_set(&options->scope, key, arg, err);
	switch (key) {
	case CORDON_RUN_AT:
		options->spec.at = arg;
		return 0;
	case CORDON_RUN_HOME:
		options->home = arg;
		return 0;
	case CORDON_RUN_LENS:
		options->lens_given = true;
		return cordon_lens_parse(arg, &options->spec.lens, err);
	case CORDON_RUN_GIT:
		r = cordon_git_parse(arg, &options->git, err);
		return r < 0 ? cordon_error_prefix(err, r, "--git") : 0;
	case CORDON_RUN_BEST_EFFORT:
		options->spec.best_effort = true;
		return 0;
	case CORDON_RUN_COW:
		options->cow = true;
		return 0;
	case CORDON_RUN_FAIL_ON_VIOLATION:
		options->spec.fail_on_violation = true;
		return 0;
	default:
		break;
	}
	r = set_value(options, key, arg, err);
	if (r < 0)
		for (const struct cordon_option *o = options->table; o->name; o++)
			if (o->key == key)
				return cordon_error_prefix(err, r, "--%s", o->name);
	return r;
}

void cordon_run_options_done(struct cordon_run_options *options)
{
	list_done(&options->env);
	list_done(&options->keep_env);
	list_done(&options->programs);
	for (size_t i = 0; i < options->n_shares; i++)
		cordon_share_done(&options->shares[i]);
	free(options->shares);
	cordon_profile_use_done(&options->profile);
	cordon_scope_done(&options->scope);
}

static bool has_name(const struct cordon_run_list *list, const char *assignment)
{
	size_t n = strcspn(assignment, "=");

	for (size_t i = 0; i < list->n; i++)
		if (strncmp(list->items[i], assignment, n) == 0 && (!list->items[i][n] || list->items[i][n] == '='))
			return true;
	return false;
}

/* Variables of profiles come first, then those of the file, then those of the options: later ones win. A variable that
 * the user keeps by its name wins over the value of a profile. */
static int merge_env(struct cordon_run_options *options, const struct cordon_policy_file *file, struct cordon_error *err)
{
	const struct cordon_profile_use *profile = &options->profile;
	const struct cordon_preset *preset = cordon_preset_with_env_pass(options->scope.preset);
	struct cordon_run_list merged = { 0 };
	int r = 0;

	for (size_t i = 0; r == 0 && i < profile->n_env; i++)
		if (!has_name(&options->keep_env, profile->env[i]))
			r = append(&merged, profile->env[i], err);
	for (size_t i = 0; r == 0 && file && i < file->n_env; i++) {
		autobuf struct cordon_buf text = CORDON_BUF(1 << 20);

		r = cordon_buf_addf(&text, "%s=%s", file->env[i].name, file->env[i].value);
		r = r < 0 ? cordon_fail_errno(err, r, "%s", file->env[i].where) : append(&merged, text.data, err);
	}
	for (size_t i = 0; r == 0 && i < options->env.n; i++)
		r = append(&merged, options->env.items[i], err);
	list_done(&options->env);
	options->env = merged;
	for (size_t i = 0; r == 0 && file && i < file->keep_env.n; i++)
		r = append(&options->keep_env, file->keep_env.items[i].text, err);
	for (size_t i = 0; r == 0 && i < profile->n_keep_env; i++)
		r = append(&options->keep_env, profile->keep_env[i], err);
	for (size_t i = 0; r == 0 && preset && i < preset->env_pass.n; i++)
		r = append(&options->keep_env, preset->env_pass.items[i].text, err);
	return r;
}

static int merge_shares(struct cordon_run_options *options, const struct cordon_policy_file *file,
			struct cordon_error *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < file->n_shares; i++) {
		struct cordon_share_value share = { .read_only = file->shares[i].share.read_only };

		share.source = strdup(file->shares[i].share.source);
		share.target = file->shares[i].share.target ? strdup(file->shares[i].share.target) : NULL;
		r = share.source ? append_share(options, &share, err) : cordon_fail_errno(err, -ENOMEM, "options");
	}
	return r;
}

/* Takes settings from a policy file or a profile where nothing before it set them. */
static void merge_settings(struct cordon_run_options *options, const struct cordon_policy_file *file)
{
	struct cordon_run_spec *spec = &options->spec;

	options->home = options->home ? options->home : file->home.text;
	spec->at = spec->at ? spec->at : file->at.text;
	if (!options->lens_given && file->lens_where) {
		spec->lens = file->lens;
		options->lens_given = true;
	}
	spec->timeout_ms = spec->timeout_ms ? spec->timeout_ms : file->limits.timeout_ms;
	spec->memory_bytes = spec->memory_bytes ? spec->memory_bytes : file->limits.memory_bytes;
	spec->pids = spec->pids ? spec->pids : file->limits.pids;
	spec->cpu_millis = spec->cpu_millis ? spec->cpu_millis : file->limits.cpu_millis;
	spec->tmp_bytes = spec->tmp_bytes ? spec->tmp_bytes : file->limits.tmp_bytes;
	spec->best_effort |= file->best_effort;
	options->cow |= file->cow;
	options->git = options->git ? options->git : file->git;
}

/* Collects what profiles, and the policy file as far as it speaks like one, give to the run. */
static int use_profiles(struct cordon_run_options *options, const struct cordon_policy *policy, bool make,
			struct cordon_error *err)
{
	struct cordon_scope *scope = &options->scope;
	struct cordon_profile_ask ask = { .path = getenv("PATH"), .root = policy->root.path, .make = make };
	char home[CORDON_PATH_MAX];
	int r = 0;

	if (!scope->n_profiles && !scope->file && !options->programs.n)
		return 0;
	if (!scope->dirs && (scope->dirs = calloc(1, sizeof(*scope->dirs))))
		cordon_profile_dirs_find(scope->dirs);
	if (!scope->dirs)
		return cordon_fail_errno(err, -ENOMEM, "options");
	ask.home = scope->dirs->home;
	if (options->home) {
		if ((r = make_absolute(options->home, home, err)) < 0)
			return r;
		ask.run_home = home;
	}
	for (size_t i = 0; r == 0 && i < scope->n_profiles; i++)
		r = cordon_profile_collect(scope->profiles[i], scope->profile_names[i], &ask, &options->profile, err);
	if (r == 0 && scope->file)
		r = cordon_profile_collect(scope->file, NULL, &ask, &options->profile, err);
	for (size_t i = 0; r >= 0 && i < options->programs.n; i++) {
		r = cordon_profile_program(options->programs.items[i], "--program", &ask, &options->profile, err);
		if (r == 0)
			return cordon_fail(err, -ENOENT, CORDON_KIND_NOT_FOUND,
					   "--program: there is no %s on your PATH outside the workspace",
					   options->programs.items[i]);
	}
	return r < 0 ? r : 0;
}

/* Merges options, policy file and profiles. Lists are joined; of single values the first one counts. */
static int merge(struct cordon_run_options *options, const struct cordon_policy *policy, bool make,
		 struct cordon_error *err)
{
	const struct cordon_policy_file *file = options->scope.file;
	struct cordon_run_spec *spec = &options->spec;
	int r;

	if (file)
		merge_settings(options, file);
	for (size_t i = 0; i < options->scope.n_profiles; i++)
		merge_settings(options, options->scope.profiles[i]);
	r = use_profiles(options, policy, make, err);
	if (r == 0)
		r = merge_env(options, file, err);
	if (r == 0 && file)
		r = merge_shares(options, file, err);
	spec->env = options->env.items;
	spec->n_env = options->env.n;
	spec->keep_env = options->keep_env.items;
	spec->n_keep_env = options->keep_env.n;
	spec->home_env = options->profile.home_env;
	spec->n_home_env = options->profile.n_home_env;
	spec->path = options->profile.path;
	return r;
}

static int add_shares(const struct cordon_run_options *options, struct cordon_policy *policy, bool missing_too,
		      struct cordon_error *err)
{
	const struct cordon_policy_file *file = options->scope.file;
	const struct cordon_profile_use *profile = &options->profile;
	autofree struct cordon_share *shares = calloc(options->n_shares + profile->n_shares + 1, sizeof(*shares));
	bool protect = !options->scope.no_default_protect && !(file && !file->default_protect);
	char home[CORDON_PATH_MAX] = "";
	size_t n = 0;
	int r;

	if (!shares)
		return cordon_fail_errno(err, -ENOMEM, "shares");
	for (size_t i = 0; i < options->n_shares; i++)
		if (missing_too || access(options->shares[i].source, F_OK) == 0)
			shares[n++] = (struct cordon_share){ .source = options->shares[i].source,
							     .target = options->shares[i].target,
							     .read_only = options->shares[i].read_only };
	for (size_t i = 0; i < profile->n_shares; i++)
		shares[n++] = profile->shares[i];
	if (options->home && (r = make_absolute(options->home, home, err)) < 0)
		return r;
	if (!missing_too && access(home, F_OK) < 0)
		home[0] = '\0';
	r = cordon_shares_add(policy, shares, n, *home ? home : NULL, options->spec.at, protect, err);
	return r < 0 ? r : cordon_worktree_share(policy, err);
}

int cordon_run_options_policy(struct cordon_cli *cli, struct cordon_run_options *options, cordon_run_use use,
			      struct cordon_policy **ret_policy)
{
	struct cordon_policy *policy CORDON_CLEANUP(cordon_policy_freep) = NULL;
	struct cordon_error err = { 0 };
	int r = cordon_scope_build(cli, &options->scope, &policy);

	if (r)
		return r;
	if (merge(options, policy, use == CORDON_RUN_STARTS, &err) < 0 ||
	    add_shares(options, policy, use != CORDON_RUN_ASKS, &err) < 0)
		return cordon_cli_fail(cli, &err);
	options->spec.net = cordon_net_list_is_none(&policy->net) ? CORDON_NET_NONE : CORDON_NET_HOST;
	options->spec.policy = policy;
	*ret_policy = cordon_steal_ptr(&policy);
	return 0;
}

int cordon_run_options_share(const struct cordon_run_options *options, struct cordon_policy *policy,
			     struct cordon_error *err)
{
	return add_shares(options, policy, true, err);
}
