/* SPDX-License-Identifier: Apache-2.0 */
/* From options, variables and a policy file to a policy; every error of them is reported. */
#include <stdio.h>

#include "cli/manager.h"
#include "cli/scope.h"
#include "sandbox/protect_defaults.h"

static const struct {
	int key;
	const char *option;
	cordon_access access;
} grant_options[] = {
	{ CORDON_SCOPE_RW, "--rw", CORDON_ACCESS_WRITE },
	{ CORDON_SCOPE_RO, "--ro", CORDON_ACCESS_READ },
	{ CORDON_SCOPE_DENY, "--deny", CORDON_ACCESS_NONE },
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
	if (key == CORDON_SCOPE_POLICY)
		return set_once(&scope->policy_path, "--policy", arg, err);
	if (key == CORDON_SCOPE_READ_ONLY || key == CORDON_SCOPE_NO_DEFAULT_PROTECT) {
		scope->read_only |= key == CORDON_SCOPE_READ_ONLY;
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
	*scope = (struct cordon_scope){ 0 };
}

void cordon_scope_policy_freep(struct cordon_policy **policy)
{
	*policy = cordon_policy_free(*policy);
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

/* Reporting: the first error decides the exit code, the others are printed too. */
static void report(const struct cordon_cli *cli, const struct cordon_error *err, int *exit_code)
{
	int code = cordon_cli_fail(cli, err);

	if (!*exit_code)
		*exit_code = code;
}

/* What is wrong with an option's value is wrong usage; what the tree makes impossible is a refusal. */
static void report_option(const struct cordon_cli *cli, struct cordon_error *err, const char *option, int *exit_code)
{
	if (err->kind == CORDON_KIND_CONFIG)
		err->kind = CORDON_KIND_USAGE;
	cordon_error_prefix(err, err->code, "%s", option);
	report(cli, err, exit_code);
}

static void add_rules(const struct cordon_cli *cli, const struct cordon_scope *scope, struct cordon_policy *policy,
		      int *exit_code)
{
	for (size_t i = 0; i < scope->n_rules; i++) {
		const struct cordon_scope_rule *rule = &scope->rules[i];
		struct cordon_error err = { 0 };

		if (rule->key == CORDON_SCOPE_PROTECT &&
		    cordon_policy_add_protected(policy, rule->text, "--protect", false, &err) < 0)
			report_option(cli, &err, "--protect", exit_code);
		for (size_t g = 0; g < CORDON_ARRAY_SIZE(grant_options); g++)
			if (rule->key == grant_options[g].key &&
			    cordon_policy_add_grant(policy, rule->text, grant_options[g].access,
						    grant_options[g].option, &err) < 0)
				report_option(cli, &err, grant_options[g].option, exit_code);
	}
}

static void add_folders(const struct cordon_cli *cli, const char *list, const char *option,
			struct cordon_policy *policy, int *exit_code)
{
	struct cordon_folders folders CORDON_CLEANUP(cordon_folders_done) = { 0 };
	struct cordon_error err = { 0 };

	if (cordon_folders_parse(list, &folders, &err) < 0) {
		report_option(cli, &err, option, exit_code);
		return;
	}
	if (cordon_manager_check_folders(cli, &policy->root, &folders) > 0) {
		if (!*exit_code)
			*exit_code = cli->failure_exit;
		return;
	}
	if (cordon_policy_grant_folders(policy, list, &err) < 0)
		report_option(cli, &err, option, exit_code);
}

/* Every --workspace, else the variable where no other scope was asked for. True when there was a list. */
static bool add_folder_lists(const struct cordon_cli *cli, const struct cordon_scope *scope,
			     const struct cordon_manager_env *env, struct cordon_policy *policy, int *exit_code)
{
	bool scoped = scope->policy_path, listed = false;

	for (size_t i = 0; i < scope->n_rules; i++) {
		int key = scope->rules[i].key;

		scoped |= key == CORDON_SCOPE_RW || key == CORDON_SCOPE_RO;
		listed |= key == CORDON_SCOPE_WORKSPACE;
		if (key == CORDON_SCOPE_WORKSPACE && !env->disabled)
			add_folders(cli, scope->rules[i].text, "--workspace", policy, exit_code);
	}
	if (!listed && !scoped && env->folders) {
		listed = true;
		if (!env->disabled)
			add_folders(cli, env->folders, "WORKSPACE_FOLDERS", policy, exit_code);
	}
	if (listed && env->disabled)
		cordon_manager_say_disabled(cli, &policy->root);
	return listed && !env->disabled;
}

static void load_file(const struct cordon_cli *cli, struct cordon_scope *scope, struct cordon_policy *policy,
		      int *exit_code)
{
	struct cordon_errors errors CORDON_CLEANUP(cordon_errors_done) = { 0 };
	int r = cordon_policy_file_load(scope->policy_path, &scope->file, &errors);

	if (r == 0)
		r = cordon_policy_file_apply(scope->file, policy, &errors);
	if (r == 0)
		return;
	r = cordon_cli_fail_all(cli, &errors);
	if (!*exit_code)
		*exit_code = r;
}

/* Flags over the file over the variable over the command's default for folders over strict. */
static int settle_mode(const struct cordon_scope *scope, const struct cordon_manager_env *env, bool folders,
		       struct cordon_policy *policy, struct cordon_error *err)
{
	cordon_mode mode = policy->mode;
	int r = 0;

	if (scope->mode)
		r = cordon_mode_parse(scope->mode, &mode, err);
	else if (scope->file && scope->file->mode_where)
		mode = scope->file->mode;
	else if (env->has_mode)
		mode = env->mode;
	else if (folders || (scope->file && scope->file->workspace.n))
		mode = scope->folder_mode;
	if (r < 0)
		return cordon_error_prefix(err, r, "--workspace-mode");
	cordon_policy_set_mode(policy, mode);
	/* A policy file is written once and used by many; who runs it says whether to watch. */
	policy->reports = scope->mode || env->has_mode;
	return 0;
}

int cordon_scope_build(struct cordon_cli *cli, struct cordon_scope *scope, struct cordon_policy **ret_policy)
{
	struct cordon_policy *policy CORDON_CLEANUP(cordon_scope_policy_freep) = NULL;
	struct cordon_root root CORDON_CLEANUP(cordon_root_done) = { .fd = -1 };
	struct cordon_manager_env env;
	struct cordon_error err = { 0 };
	int exit_code = 0;
	bool folders;

	if (cordon_manager_env(&env, &err) < 0 || cordon_scope_open_root(scope, env.root, &root, &err) < 0 ||
	    cordon_policy_new(root.path, &policy, &err) < 0)
		return cordon_cli_fail(cli, &err);
	if (scope->policy_path)
		load_file(cli, scope, policy, &exit_code);
	add_rules(cli, scope, policy, &exit_code);
	folders = add_folder_lists(cli, scope, &env, policy, &exit_code);
	policy->read_only |= scope->read_only;
	if (!scope->no_default_protect && !(scope->file && !scope->file->default_protect) &&
	    cordon_protect_defaults_add(policy, &err) < 0)
		report(cli, &err, &exit_code);
	if (settle_mode(scope, &env, folders, policy, &err) < 0)
		report(cli, &err, &exit_code);
	if (exit_code)
		return exit_code;
	*ret_policy = cordon_steal_ptr(&policy);
	return 0;
}
