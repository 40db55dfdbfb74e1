/* SPDX-License-Identifier: Apache-2.0 */
/* Runs one program: makes an id, opens the audit log, chooses the tier, plans, records the run, launches and supervises
 * it, and fills the result. Nothing here prints. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/confirmed.h"
#include "base/dirs.h"
#include "base/exit.h"
#include "base/path.h"
#include "protect/repositories.h"
#include "run/audit.h"
#include "run/event_text.h"
#include "run/live.h"
#include "run/result.h"
#include "sandbox/host/launch.h"
#include "sandbox/host/metrics.h"
#include "sandbox/host/selftest.h"
#include "sandbox/inside/landlock.h"

#define HANDS "hands" /* a file in state/, of which the hands of runs in the same root lock a part */

struct run {
	const struct cordon_run_spec *spec;
	const struct cordon_observer *observer; /* the caller's */
	struct cordon_home home;
	char id[CORDON_UUID_SIZE];
	char cwd[CORDON_PATH_MAX];
	char tier_tmp[sizeof(CORDON_TIER_TMP) + CORDON_UUID_SIZE]; /* the lower tier's directory, or "" */
	struct cordon_run_audit audit;
	struct cordon_live_run live;
	struct cordon_repositories_mark mark;
	struct cordon_child child;
	struct cordon_result *result;
};

/* clang-format off */
#define RUN(spec_) { .spec = (spec_), .home = CORDON_HOME_NONE, .live = CORDON_LIVE_RUN_NONE, .mark = CORDON_REPOSITORIES_MARK_NONE }
/* clang-format on */

static int open_run(struct run *run, struct cordon_error *err)
{
	int r = cordon_home_open(&run->home, err);

	if (r < 0)
		return r;
	r = cordon_uuid_new(run->id);
	if (r < 0)
		return cordon_fail_errno(err, r, "cannot make an id");
	if (!run->spec->cwd && !getcwd(run->cwd, sizeof(run->cwd)))
		run->cwd[0] = '\0';
	return 0;
}

static int open_audit(struct run *run, struct cordon_error *err)
{
	const struct cordon_run_spec *spec = run->spec;
	struct cordon_audit_ids ids = { .session_id = spec->session_id ? spec->session_id : run->id,
					.project_id = spec->project_id,
					.agent = spec->agent,
					.orchestrator_id = spec->orchestrator_id,
					.workspace_id = spec->workspace_id };

	run->audit.policy = spec->policy;
	return cordon_audit_open(&run->home, &ids, &run->audit.log, err);
}

/* Plans the run. When the machine lets us set up no sandbox with namespaces and the user asked for best effort, it plans
 * the lower tier, with a temporary directory of its own.
 *
 * INVARIANT: only the machine decides about the tier, never the workspace: a tree that an agent prepared so that a mount
 * fails gets its run refused. */
static int make_plan(struct run *run, bool dry, struct cordon_plan **ret_plan, struct cordon_error *err)
{
	struct cordon_plan_spec spec = { .run = run->spec,
					 .run_id = run->id,
					 .cwd = run->spec->cwd ? run->spec->cwd : run->cwd,
					 .home_path = run->home.path,
					 .home_asked = run->home.asked,
					 .landlock_abi = cordon_landlock_abi() };
	struct cordon_error why = { 0 };

	if (run->spec->best_effort && cordon_setup_probe(&why) < 0) {
		spec.tier_why = why.message;
		snprintf(run->tier_tmp, sizeof(run->tier_tmp), "%s%s", CORDON_TIER_TMP, run->id);
		spec.tier = CORDON_TIER_LANDLOCK;
		spec.tier_tmp = run->tier_tmp;
		if (!dry && mkdir(run->tier_tmp, 0700) < 0) {
			int r = cordon_fail_errno(err, -errno, "cannot make %s", run->tier_tmp);

			run->tier_tmp[0] = '\0';
			return r;
		}
	}
	return cordon_plan_build(&spec, ret_plan, err);
}

int cordon_run_plan(const struct cordon_run_spec *spec, struct cordon_plan **ret_plan, struct cordon_error *err)
{
	struct run run = RUN(spec);
	int r = open_run(&run, err);

	if (r == 0)
		r = make_plan(&run, true, ret_plan, err);
	cordon_home_done(&run.home);
	return r;
}

static void on_event(void *data, const struct cordon_event *event)
{
	struct run *run = data;

	if (cordon_event_is_refusal_by_limit(event))
		run->result->violations++;
	cordon_run_audit_event(&run->audit, event);
	if (run->observer->event)
		run->observer->event(run->observer->data, event);
}

static size_t on_fds(void *data, struct pollfd *ret_fds)
{
	const struct run *run = data;

	return run->observer->fds(run->observer->data, ret_fds);
}

static bool on_serve(void *data, const struct pollfd *fds, size_t n)
{
	const struct run *run = data;

	return run->observer->serve(run->observer->data, fds, n);
}

static void on_sight(void *data, const struct cordon_sight *sight)
{
	const struct run *run = data;

	run->observer->sight(run->observer->data, sight);
}

/* Variables that were asked for and are not there. */
static void report_variables(struct run *run)
{
	const struct cordon_plan *plan = run->result->plan;

	for (size_t i = 0; i < plan->n_absent_env; i++) {
		struct cordon_event event = { .kind = CORDON_EVENT_VIOLATION,
					      .op = CORDON_OP_ENV,
					      .path = plan->absent_env[i],
					      .verdict = CORDON_DENY,
					      .reason = CORDON_REASON_NO_GRANT,
					      .count = 1 };

		run->result->violations++;
		on_event(run, &event);
	}
}

/* Finds the repositories in which the run has left something that git would execute. */
static void find_repositories(struct run *run)
{
	struct cordon_result *result = run->result;
	/* What a run in a view leaves in its root is judged when it is applied. */
	unsigned int where = CORDON_REPOSITORIES_IN_SHARES | (run->spec->view ? 0 : CORDON_REPOSITORIES_IN_ROOT);

	if (result->changed)
		result->repositories = calloc(1, sizeof(*result->repositories));
	if (result->repositories)
		cordon_repositories_find(run->spec->policy, &run->mark, where, result->duration_ms,
					 result->repositories);
}

static void fail_on_violation(struct cordon_result *result)
{
	if (result->state != CORDON_STATE_COMPLETED || !result->violations)
		return;
	result->state = CORDON_STATE_FAILED;
	result->failed_on_violation = true;
	result->own_exit = CORDON_EXIT_VIOLATION;
}

/* Keeps the identities of the paths that this run is the first to use, and remembers where its agent writes. */
static int remember_paths(const struct run *run, struct cordon_error *err)
{
	const struct cordon_policy *policy = run->spec->policy;
	int r = 0;

	for (size_t i = 0; r == 0 && i < policy->n_shares; i++) {
		const struct cordon_policy_share *share = &policy->shares[i];
		struct cordon_named named = { .given = share->named, .path = share->source, .fd = share->fd };

		if (share->named && !share->is_known)
			r = cordon_confirmed_use(&run->home, &named, err);
	}
	/* This comes second: what one share of the run shows is not refused because of another one. */
	if (r == 0)
		r = cordon_written_add(&run->home, policy->root.path, err);
	for (size_t i = 0; r == 0 && i < policy->n_shares; i++)
		if (!policy->shares[i].read_only && policy->shares[i].kind == CORDON_SHARE_PLAIN)
			r = cordon_written_add(&run->home, policy->shares[i].source, err);
	return r;
}

/* Records the run. Nothing of the agent's runs before. */
static int admit(void *data, struct cordon_error *err)
{
	struct run *run = data;
	bool view = run->spec->view != NULL;
	int r = remember_paths(run, err);

	if (r == 0)
		r = cordon_live_enter(&run->home, run->id, run->spec->policy, view, &run->live, err);
	if (r < 0)
		return r;
	cordon_repositories_begin(run->spec->policy, &run->mark);
	return cordon_run_audit_start(&run->audit, run->result->plan, err);
}

static int run_plan(struct run *run, struct cordon_error *err)
{
	const struct cordon_observer *theirs = run->observer;
	struct cordon_observer observer = { .data = run,
					    .event = on_event,
					    .fds = theirs->fds ? on_fds : NULL,
					    .serve = theirs->serve ? on_serve : NULL,
					    .sight = theirs->sight ? on_sight : NULL,
					    .reached = theirs->reached };
	struct cordon_launch how = { .meter_fd = run->result->metrics ? run->result->metrics->fd : -1,
				     .lock_fd = -1,
				     .admit = admit,
				     .data = run };
	struct cordon_plan *plan = run->result->plan;
	autofd int hands = -1;
	struct cordon_child *child = &run->child;
	int r = theirs->planned ? theirs->planned(theirs->data, plan, err) : 0;

	if (r == 0 && plan->n_held) {
		hands = openat(run->home.state_fd, HANDS, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (hands < 0)
			r = cordon_fail_errno(err, -errno, "cannot open state/" HANDS);
	}
	how.lock_fd = hands;
	if (r == 0)
		r = cordon_launch(plan, run->spec->policy, &observer, &how, child, err);
	if (r < 0)
		return r;
	if (theirs->launched)
		theirs->launched(theirs->data, child);
	report_variables(run);
	cordon_supervise(child, &observer, run->result);
	if (run->spec->fail_on_violation)
		fail_on_violation(run->result);
	find_repositories(run);
	cordon_metrics_ended(run->result->metrics);
	cordon_run_audit_end(&run->audit, run->result);
	return 0;
}

int cordon_run(const struct cordon_run_spec *spec, const struct cordon_observer *observer,
	       struct cordon_result *ret_result, struct cordon_error *err)
{
	static const struct cordon_observer nobody = { 0 };
	struct run run = RUN(spec);
	struct cordon_error own = { 0 };
	int r;

	err = err ? err : &own;
	*ret_result = (struct cordon_result){ 0 };
	if (spec->measure)
		ret_result->metrics = cordon_metrics_new(cordon_meter_now());
	run.observer = observer ? observer : &nobody;
	run.result = ret_result;
	r = open_run(&run, err);
	if (r == 0)
		r = open_audit(&run, err);
	if (r == 0) {
		memcpy(ret_result->run_id, run.id, sizeof(run.id));
		if (spec->view)
			cordon_copy(ret_result->view_id, sizeof(ret_result->view_id), cordon_path_base(spec->view),
				    strlen(cordon_path_base(spec->view)));
		r = make_plan(&run, false, &ret_result->plan, err);
		if (r == 0)
			r = run_plan(&run, err);
		if (r < 0)
			cordon_run_audit_refusal(&run.audit, err);
	}
	if (r < 0)
		cordon_result_refuse(ret_result, err);
	if (run.audit.log)
		ret_result->unrecorded = cordon_audit_unrecorded(run.audit.log);
	cordon_audit_close(run.audit.log);
	if (run.tier_tmp[0])
		cordon_dirs_remove(AT_FDCWD, run.tier_tmp, NULL);
	cordon_closep(&run.mark.index_fd);
	cordon_live_leave(&run.live);
	cordon_home_done(&run.home);
	/* INVARIANT: when we return, no process of the run exists any more; at most PID 1 still does, which has nothing left to do
	 * but to end, and only for a caller that waits for it. */
	if (spec->leave_init && run.child.pid > 0)
		ret_result->init = run.child.pid;
	else
		cordon_child_reap(&run.child);
	return r;
}
