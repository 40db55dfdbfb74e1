/* SPDX-License-Identifier: Apache-2.0 */
/* cordon gc: removes what runs left behind that were killed, and the records of crews that ended long ago. */
#include <stdio.h>

#include "approval/approval.h"
#include "audit/audit.h"
#include "base/home.h"
#include "cli/commands.h"
#include "crew/crew.h"
#include "flow/flow.h"
#include "run/live.h"
#include "approval/approval.h"
#include "git/record.h"
#include "view/view.h"

static int set(void *data, int key, const char *arg, struct cordon_error *err)
{
	(void)data, (void)key, (void)arg, (void)err; /* This command has the common options only. */
	return 0;
}

static void record(const struct cordon_home *home, const struct cordon_gc_counts *counts, size_t crews, size_t views)
{
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

static int run(struct cordon_cli *cli, int argc, char **argv)
{
	autohome struct cordon_home home = CORDON_HOME_NONE;
	struct cordon_gc_counts counts = { 0 };
	struct cordon_error err = { 0 };
	struct cordon_view_counts views = { 0 };
	size_t crews = 0, live_crews = 0, workflows = 0, commits = 0, approvals = 0;
	int first, r = cordon_cli_parse(cli, argc, argv, 0, set, NULL, &first, &err);

	if (r != 0)
		return r > 0 ? CORDON_EXIT_OK : cordon_cli_fail(cli, &err);
	if (first < argc)
		return cordon_cli_usage(cli, "unexpected argument: %s", argv[first]);
	if (cordon_home_open(&home, &err) < 0 || cordon_live_gc(&home, &counts, &err) < 0 ||
	    cordon_crew_gc(&home, CORDON_CREW_KEEP_MS, &crews, &live_crews, &err) < 0 ||
	    cordon_view_gc(&home, CORDON_VIEW_KEEP_MS, &views, &err) < 0 ||
	    cordon_git_record_gc(&home, &commits, &err) < 0 ||
	    cordon_flow_gc(&home, CORDON_FLOW_KEEP_MS, &workflows, &err) < 0 ||
	    cordon_approvals_gc(&home, CORDON_APPROVALS_KEEP_MS, &approvals, &err) < 0)
		return cordon_cli_fail(cli, &err);
	counts.directories += commits;
	record(&home, &counts, crews, views.removed);
	if (cli->json)
		return cordon_cli_print_json(cli,
					     json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:{s:I, s:I, s:I}}",
						       "records", (json_int_t)counts.records, "cgroups",
						       (json_int_t)counts.cgroups, "directories",
						       (json_int_t)counts.directories, "live", (json_int_t)counts.live,
						       "crews", (json_int_t)crews, "workflows", (json_int_t)workflows,
						       "approvals", (json_int_t)approvals, "views", "removed",
						       (json_int_t)views.removed, "waiting", (json_int_t)views.waiting,
						       "live", (json_int_t)views.live));
	printf("removed %zu records, %zu cgroups and %zu directories of dead runs", counts.records, counts.cgroups,
	       counts.directories);
	if (crews)
		printf(", and %zu crews", crews);
	if (workflows)
		printf(", and %zu workflow run%s", workflows, workflows == 1 ? "" : "s");
	if (approvals)
		printf(", and %zu approval%s", approvals, approvals == 1 ? "" : "s");
	if (views.removed)
		printf(", and %zu view%s", views.removed, views.removed == 1 ? "" : "s");
	printf("; %zu runs live", counts.live);
	if (views.live)
		printf(", %zu view%s live", views.live, views.live == 1 ? "" : "s");
	if (views.waiting)
		printf(", %zu view%s for a decision", views.waiting, views.waiting == 1 ? " waits" : "s wait");
	putchar('\n');
	return CORDON_EXIT_OK;
}

const struct cordon_command cordon_cmd_gc = {
	.name = "gc",
	.operands = "",
	.summary = "remove what killed runs left behind",
	.details =
		"A supervisor that was killed takes its sandbox with it; what may stay is its record, a cgroup and, for a\n"
		"best-effort run, a temporary directory. Live runs are never touched. Of crews that ended more than a week\n"
		"ago, results and logs are removed too, and so are views that were applied or discarded as long ago. Views\n"
		"whose changes nobody has applied or discarded stay, and so do those with something that an interrupted undo\n"
		"could not end. Approvals are removed a week after they expired.\n",
	.options = NULL,
	.run = run,
};
