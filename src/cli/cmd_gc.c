/* SPDX-License-Identifier: Apache-2.0 */
/* cordon gc: removes what runs left behind that were killed, and the records of what ended long ago. */
#include <stdio.h>

#include "approval/approval.h"
#include "audit/audit.h"
#include "base/home.h"
#include "cli/commands.h"
#include "flow/flow.h"
#include "git/record.h"
#include "job/crew.h"
#include "loop/control.h"
#include "run/live.h"
#include "state/kinds.h"
#include "store/store.h"
#include "view/view.h"

static int set(void *data, int key, const char *arg, struct cordon_error *err)
{
	(void)data, (void)key, (void)arg, (void)err; /* This command has the common options only. */
	return 0;
}

/* What was found of one kind. */
struct found {
	size_t removed;
	struct cordon_gc_counts runs;
	struct cordon_view_counts views;
};

static int collect_runs(const struct cordon_home *home, uint64_t keep_ms, struct found *found, struct cordon_error *err)
{
	(void)keep_ms; /* What a dead run left is of no use to anybody. */
	return cordon_live_gc(home, &found->runs, err);
}

static int collect_crews(const struct cordon_home *home, uint64_t keep_ms, struct found *found, struct cordon_error *err)
{
	size_t live;

	return cordon_crew_gc(home, keep_ms, &found->removed, &live, err);
}

static int collect_views(const struct cordon_home *home, uint64_t keep_ms, struct found *found, struct cordon_error *err)
{
	return cordon_view_gc(home, keep_ms, &found->views, err);
}

static int collect_commits(const struct cordon_home *home, uint64_t keep_ms, struct found *found,
			   struct cordon_error *err)
{
	(void)keep_ms;
	return cordon_git_record_gc(home, &found->removed, err);
}

static int collect_loops(const struct cordon_home *home, uint64_t keep_ms, struct found *found, struct cordon_error *err)
{
	return cordon_loop_gc(home, keep_ms, &found->removed, err);
}

static int collect_workflows(const struct cordon_home *home, uint64_t keep_ms, struct found *found,
			     struct cordon_error *err)
{
	return cordon_flow_gc(home, keep_ms, &found->removed, err);
}

static int collect_approvals(const struct cordon_home *home, uint64_t keep_ms, struct found *found,
			     struct cordon_error *err)
{
	return cordon_approvals_gc(home, (int64_t)keep_ms, &found->removed, err);
}

static int collect_sessions(const struct cordon_home *home, uint64_t keep_ms, struct found *found,
			    struct cordon_error *err)
{
	return cordon_session_gc(home, keep_ms, &found->removed, err);
}

/* How the rooms remove what state/kinds.h says that they keep. What has a name for others is counted under it. */
static const struct {
	cordon_state_kind kind;
	const char *key, *one, *many;
	int (*collect)(const struct cordon_home *home, uint64_t keep_ms, struct found *found, struct cordon_error *err);
} collectors[] = {
	{ CORDON_STATE_KIND_RUNS, NULL, NULL, NULL, collect_runs },
	{ CORDON_STATE_KIND_CREWS, "crews", "crews", "crews", collect_crews },
	{ CORDON_STATE_KIND_VIEWS, NULL, NULL, NULL, collect_views },
	{ CORDON_STATE_KIND_COMMITS, NULL, NULL, NULL, collect_commits },
	{ CORDON_STATE_KIND_LOOPS, "loops", "loop", "loops", collect_loops },
	{ CORDON_STATE_KIND_WORKFLOWS, "workflows", "workflow run", "workflow runs", collect_workflows },
	{ CORDON_STATE_KIND_APPROVALS, "approvals", "approval", "approvals", collect_approvals },
	{ CORDON_STATE_KIND_SESSIONS, "sessions", "session", "sessions", collect_sessions },
};

static void record(const struct cordon_home *home, const struct found all[static CORDON_STATE_KIND__MAX])
{
	const struct cordon_gc_counts *counts = &all[CORDON_STATE_KIND_RUNS].runs;
	size_t crews = all[CORDON_STATE_KIND_CREWS].removed, views = all[CORDON_STATE_KIND_VIEWS].views.removed;
	struct cordon_audit_event event = { .type = CORDON_AUDIT_GC, .success = CORDON_AUDIT_SUCCEEDED };
	struct cordon_audit_ids ids = { 0 };
	struct cordon_audit *audit = NULL;

	if (!counts->records && !counts->cgroups && !counts->directories && !crews && !views)
		return;
	event.detail = json_pack("{s:I, s:I, s:I, s:I, s:I}", "records", (json_int_t)counts->records, "cgroups",
				 (json_int_t)counts->cgroups, "directories", (json_int_t)counts->directories, "crews",
				 (json_int_t)crews, "views", (json_int_t)views);
	if (cordon_audit_open(home, &ids, &audit, NULL) == 0)
		cordon_audit_write(audit, &event, NULL);
	cordon_audit_close(audit);
	json_decref(event.detail);
}

static json_t *found_json(const struct found all[static CORDON_STATE_KIND__MAX])
{
	const struct cordon_gc_counts *runs = &all[CORDON_STATE_KIND_RUNS].runs;
	const struct cordon_view_counts *views = &all[CORDON_STATE_KIND_VIEWS].views;
	json_t *object = json_pack("{s:I, s:I, s:I, s:I}", "records", (json_int_t)runs->records, "cgroups",
				   (json_int_t)runs->cgroups, "directories", (json_int_t)runs->directories, "live",
				   (json_int_t)runs->live);

	for (size_t i = 0; i < CORDON_ARRAY_SIZE(collectors); i++)
		if (collectors[i].key)
			json_object_set_new(object, collectors[i].key,
					    json_integer((json_int_t)all[collectors[i].kind].removed));
	json_object_set_new(object, "views",
			    json_pack("{s:I, s:I, s:I}", "removed", (json_int_t)views->removed, "waiting",
				      (json_int_t)views->waiting, "live", (json_int_t)views->live));
	return object;
}

static void print_found(const struct found all[static CORDON_STATE_KIND__MAX])
{
	const struct cordon_gc_counts *runs = &all[CORDON_STATE_KIND_RUNS].runs;
	const struct cordon_view_counts *views = &all[CORDON_STATE_KIND_VIEWS].views;

	printf("removed %zu records, %zu cgroups and %zu directories of dead runs", runs->records, runs->cgroups,
	       runs->directories);
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(collectors); i++) {
		size_t n = all[collectors[i].kind].removed;

		if (collectors[i].key && n)
			printf(", and %zu %s", n, n == 1 ? collectors[i].one : collectors[i].many);
	}
	if (views->removed)
		printf(", and %zu view%s", views->removed, views->removed == 1 ? "" : "s");
	printf("; %zu runs live", runs->live);
	if (views->live)
		printf(", %zu view%s live", views->live, views->live == 1 ? "" : "s");
	if (views->waiting)
		printf(", %zu view%s for a decision", views->waiting, views->waiting == 1 ? " waits" : "s wait");
	putchar('\n');
}

static int run(struct cordon_cli *cli, int argc, char **argv)
{
	autohome struct cordon_home home = CORDON_HOME_NONE;
	struct found all[CORDON_STATE_KIND__MAX] = { 0 };
	struct cordon_error err = { 0 };
	int first, r = cordon_cli_parse(cli, argc, argv, 0, set, NULL, &first, &err);

	if (r != 0)
		return r > 0 ? CORDON_EXIT_OK : cordon_cli_fail(cli, &err);
	if (first < argc)
		return cordon_cli_usage(cli, "unexpected argument: %s", argv[first]);
	r = cordon_home_open(&home, &err);
	for (size_t i = 0; r == 0 && i < CORDON_ARRAY_SIZE(collectors); i++) {
		cordon_state_kind kind = collectors[i].kind;

		r = collectors[i].collect(&home, (uint64_t)cordon_state_kinds[kind].keep_ms, &all[kind], &err);
	}
	if (r < 0)
		return cordon_cli_fail(cli, &err);
	all[CORDON_STATE_KIND_RUNS].runs.directories += all[CORDON_STATE_KIND_COMMITS].removed;
	record(&home, all);
	if (cli->json)
		return cordon_cli_print_json(cli, found_json(all));
	print_found(all);
	return CORDON_EXIT_OK;
}

const struct cordon_command cordon_cmd_gc = {
	.name = "gc",
	.operands = "",
	.summary = "remove what killed runs left behind",
	.details =
		"A supervisor that was killed takes its sandbox with it; what may stay is its record, a cgroup and, for a\n"
		"best-effort run, a temporary directory. Live runs are never touched. Of crews and loops that ended more than\n"
		"a week ago, results and logs are removed too, and so are views that were applied or discarded as long ago.\n"
		"Loops that can go on stay, and so do views whose changes nobody has applied or discarded, and those with\n"
		"something that an interrupted undo could not end. Approvals are removed a week after they expired, and\n"
		"sessions 30 days after they ended.\n",
	.options = NULL,
	.run = run,
};
