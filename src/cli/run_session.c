/* SPDX-License-Identifier: Apache-2.0 */
/* One run of an agent: policy, plan, record, launch, supervision. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/tree.h"
#include "cli/run_session.h"

/* A policy file that the agent could write would be its own master at the next run. */
static int protect_policy_file(const struct cordon_run_options *options, struct cordon_policy *policy,
			       struct cordon_error *err)
{
	struct cordon_resolved found;
	char path[CORDON_PATH_MAX];
	int r;

	if (!options->scope.policy_path)
		return 0;
	r = cordon_run_absolute(options->scope.policy_path, path, err);
	if (r < 0)
		return r;
	cordon_resolve(&policy->root, path, &found);
	if (found.place != CORDON_PLACE_INSIDE || !*found.path)
		return 0;
	return cordon_policy_add_protected(policy, found.path, "the policy file itself", true, err);
}

/* Where namespaces are refused and the user said --best-effort: the lower tier, with a directory of its own. */
static int choose_tier(struct cordon_run_session *run, struct cordon_error *err)
{
	int r = run->options->best_effort ? cordon_namespaces_probe() : 0;

	if (r == 0)
		return 0;
	run->tier = CORDON_TIER_LANDLOCK;
	snprintf(run->tier_tmp, sizeof(run->tier_tmp), "%s%s", CORDON_TIER_TMP, run->id);
	cordon_cli_log(run->cli, "INFO",
		       "best effort: no namespaces here (%s); Landlock and seccomp alone hold the folders",
		       strerror(-r));
	if (!run->dry && mkdir(run->tier_tmp, 0700) < 0) {
		r = cordon_fail_errno(err, -errno, "cannot make %s", run->tier_tmp);
		run->tier_tmp[0] = '\0';
		return r;
	}
	return 0;
}

static int build_plan(struct cordon_run_session *run, char **argv, struct cordon_error *err)
{
	const struct cordon_run_options *options = run->options;
	autofree struct cordon_share *shares = calloc(options->n_shares + 1, sizeof(*shares));
	struct cordon_run_spec spec = {
		.run_id = run->id,
		.tier = run->tier,
		.lens = options->lens,
		.tier_tmp = run->tier_tmp,
		.policy = run->policy,
		.home_path = run->home.path,
		.home_asked = run->home.asked,
		.at = options->at,
		.cwd = run->cwd,
		.env = options->env.items,
		.n_env = options->env.n,
		.keep_env = options->keep_env.items,
		.n_keep_env = options->keep_env.n,
		.shares = shares,
		.n_shares = options->n_shares,
		.argv = argv,
		.net_none = options->net == CORDON_NET_NONE,
		.best_effort = options->best_effort,
		.terminal = true,
		.limits = { .memory_bytes = options->memory,
			    .pids = (uint32_t)options->pids,
			    .cpu_millis = (uint32_t)options->cpus },
		.tmp_size = options->tmp_size,
		.timeout_ms = options->timeout_ms,
		.grace_ms = options->grace_ms,
	};
	int r;

	if (!shares)
		return cordon_fail_errno(err, -ENOMEM, "shares");
	for (size_t i = 0; i < options->n_shares; i++)
		shares[i] = (struct cordon_share){ options->shares[i].source, options->shares[i].target,
						   options->shares[i].read_only };
	if (options->home) {
		r = cordon_run_absolute(options->home, run->home_dir, err);
		if (r < 0)
			return r;
		spec.home = run->home_dir;
	}
	r = protect_policy_file(options, run->policy, err);
	return r < 0 ? r : cordon_plan_build(&spec, &run->plan, err);
}

int cordon_run_session_open(struct cordon_run_session *run)
{
	struct cordon_error err = { 0 };
	int r = cordon_scope_build(run->cli, &run->options->scope, &run->policy);

	if (r)
		return r;
	if (cordon_run_options_merge(run->options, &err) < 0 || cordon_home_open(&run->home, &err) < 0)
		return cordon_cli_fail(run->cli, &err);
	r = cordon_uuid_new(run->id);
	if (r < 0) {
		cordon_fail_errno(&err, r, "cannot make an id");
		return cordon_cli_fail(run->cli, &err);
	}
	if (!getcwd(run->cwd, sizeof(run->cwd)))
		run->cwd[0] = '\0';
	r = cordon_run_events_init(&run->events, run->cli, &run->home, run->id, run->policy, run->dry, &err);
	return r < 0 ? cordon_cli_fail(run->cli, &err) : 0;
}

int cordon_run_session_plan(struct cordon_run_session *run, char **argv, struct cordon_error *err)
{
	int r = choose_tier(run, err);

	return r < 0 ? r : build_plan(run, argv, err);
}

int cordon_run_session_run(struct cordon_run_session *run, const struct cordon_observer *observer,
			   struct cordon_child *ret_child, struct cordon_result *ret_result, struct cordon_error *err)
{
	int r;

	if ((r = cordon_runs_enter(&run->home, run->id, run->policy, &run->record, err)) < 0 ||
	    (r = cordon_home_subdir(&run->home, "taken", &run->taken_fd, err)) < 0 ||
	    (r = cordon_run_events_start(&run->events, run->plan, err)) < 0 ||
	    (r = cordon_launch(run->plan, run->policy, run->taken_fd, observer, ret_child, err)) < 0)
		return r;
	cordon_supervise(ret_child, observer, ret_result);
	cordon_run_events_end(&run->events, ret_result);
	return 0;
}

void cordon_run_session_done(struct cordon_run_session *run)
{
	cordon_run_events_done(&run->events);
	if (run->tier_tmp[0] && !run->dry)
		cordon_tree_remove(AT_FDCWD, run->tier_tmp, NULL);
	cordon_runs_leave(&run->record);
	cordon_closep(&run->taken_fd);
	cordon_plan_free(run->plan);
	cordon_policy_free(run->policy);
	cordon_home_done(&run->home);
}
