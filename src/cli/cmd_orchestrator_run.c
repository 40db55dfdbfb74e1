/* SPDX-License-Identifier: Apache-2.0 */
/* cordon orchestrator run: one command with what an orchestrator may see, without a workflow. */
#include <stdio.h>

#include "cli/commands.h"
#include "cli/held_grants.h"
#include "cli/pairs.h"
#include "cli/reports.h"
#include "flow/step.h"

enum { OPT_RUN = 1, OPT_RUN_WORKSPACE, OPT_TIMEOUT, OPT_DRY_RUN };

static const struct cordon_option options[] = {
	CORDON_CONFIG_OPTION,
	{ "run-id", 0, CORDON_ARG_TEXT, "NAME", "with the work area of this run, work/runs/NAME, which is made",
	  OPT_RUN },
	{ "run-workspace", 0, CORDON_ARG_NONE, NULL, "only that work area may be written", OPT_RUN_WORKSPACE },
	{ "timeout", 0, CORDON_ARG_TEXT, "DURATION", "end the command after this time (90, 90s, 1500ms, 2m, 1h)",
	  OPT_TIMEOUT },
	{ "dry-run", 0, CORDON_ARG_NONE, NULL, "print the plan and start nothing", OPT_DRY_RUN },
	{ 0 },
};

struct args {
	const char *config;
	struct cordon_step_spec_ask ask;
};

static int set(void *data, int key, const char *arg, struct cordon_error *err)
{
	struct args *args = data;

	switch (key) {
	case CORDON_KEY_CONFIG:
		args->config = arg;
		return 0;
	case OPT_RUN:
		args->ask.run_id = arg;
		return cordon_settings_id_check("the id of a run", arg, err);
	case OPT_RUN_WORKSPACE:
		args->ask.run_workspace = true;
		return 0;
	case OPT_TIMEOUT:
		return cordon_timeout_parse(arg, &args->ask.timeout_ms, err);
	default:
		args->ask.dry = true;
		return 0;
	}
}

/* A command while it runs. */
struct run {
	struct cordon_reporter reporter;
	struct cordon_held_grants *held;
};

static int on_planned(void *data, const struct cordon_plan *plan, struct cordon_error *err)
{
	struct cordon_reporter *reporter = &((struct run *)data)->reporter;
	int r = cordon_reports_begin(&reporter->queue, CORDON_REPORTS_DEFAULT, NULL, reporter->policy, plan, false, err);

	if (r == 0)
		cordon_reporter_plan(reporter, plan);
	return r;
}

static void on_launched(void *data, struct cordon_child *child)
{
	cordon_reporter_launched(&((struct run *)data)->reporter, child);
}

static void on_event(void *data, const struct cordon_event *event)
{
	cordon_reporter_event(&((struct run *)data)->reporter, event);
}

static size_t on_fds(void *data, struct pollfd *ret_fds)
{
	return cordon_held_grants_fds(((struct run *)data)->held, ret_fds);
}

static bool on_serve(void *data, const struct pollfd *fds, size_t n)
{
	return cordon_held_grants_serve(((struct run *)data)->held, fds, n);
}

static int print_plan(struct cordon_cli *cli, const struct cordon_step_spec *step)
{
	struct cordon_plan *plan = NULL;
	struct cordon_error err = { 0 };
	autofree char *text = NULL;

	if (cordon_run_plan(&step->recipe.spec, &plan, &err) < 0)
		return cordon_cli_fail(cli, &err);
	text = cli->json ? cordon_plan_to_json(plan) : cordon_plan_to_text(plan);
	cordon_plan_free(plan);
	if (!text) {
		cordon_fail(&err, -ENOMEM, CORDON_KIND_LIMIT, "cannot print the plan");
		return cordon_cli_fail(cli, &err);
	}
	printf("%s%s", text, cli->json ? "\n" : "");
	return CORDON_EXIT_OK;
}

static int start(struct cordon_cli *cli, struct cordon_step_spec *step, struct cordon_held_grants *held)
{
	struct run run = { .held = held };
	struct cordon_reporter *reporter = &run.reporter;
	struct cordon_observer observer = { .data = &run,
					    .planned = on_planned,
					    .launched = on_launched,
					    .event = on_event,
					    .fds = on_fds,
					    .serve = on_serve };
	struct cordon_result result;
	autofree char *text = NULL;
	int code;

	cordon_reporter_init(reporter, cli, step->recipe.policy);
	step->recipe.spec.terminal = true;
	(void)cordon_run(&step->recipe.spec, &observer, &result, NULL);
	cordon_reporter_result(reporter, &result);
	cordon_report_queue_flush(&reporter->queue);
	cordon_report_queue_next_line(&reporter->queue);
	if (*held->revoked)
		cordon_cli_notice(cli, "the shared area %s was revoked: the command was ended", held->revoked);
	text = cli->json && *result.run_id ? cordon_result_to_json(&result) : NULL;
	if (text)
		fprintf(stderr, "%s\n", text);
	else if (result.error.code)
		cordon_cli_fail(cli, &result.error);
	code = result.own_exit;
	cordon_result_done(&result);
	cordon_reporter_done(reporter);
	return code;
}

/* Finds the orchestrator, and runs the command with what it has. */
static int run_as(struct cordon_cli *cli, struct args *args, const char *id, struct cordon_held_grants *held)
{
	struct cordon_errors errors CORDON_CLEANUP(cordon_errors_done) = { 0 };
	autosettings struct cordon_settings_file *settings = NULL;
	struct cordon_step_spec step autostepspec = CORDON_STEP_SPEC_NONE;
	int code;

	if (!cordon_cli_load_orchestrator(cli, args->config, id, &settings, &args->ask.orchestrator, &code))
		return code;
	args->ask.settings = settings;
	held->orchestrator = args->ask.orchestrator;
	if (cordon_step_spec_init(&args->ask, &step, &errors) < 0)
		return cordon_cli_fail_all(cli, &errors);
	return args->ask.dry ? print_plan(cli, &step) : start(cli, &step, held);
}

static int run(struct cordon_cli *cli, int argc, char **argv)
{
	struct cordon_held_grants held;
	struct cordon_error err = { 0 };
	struct args args = { 0 };
	int first, code, r = cordon_cli_parse(cli, argc, argv, CORDON_PARSE_STOP, set, &args, &first, &err);

	cli->failure_exit = CORDON_EXIT_REFUSED;
	if (r != 0)
		return r > 0 ? CORDON_EXIT_OK : cordon_cli_fail(cli, &err);
	if (first == argc)
		return cordon_cli_usage(cli, "an orchestrator is expected");
	if (argc - first > 1 && cordon_streq(argv[first + 1], "--"))
		argv[first + 1] = argv[first], first++;
	if (argc - first < 2)
		return cordon_cli_usage(cli, "no command to run");
	if (args.ask.run_workspace && !args.ask.run_id)
		return cordon_cli_usage(cli, "--run-workspace needs --run-id");
	args.ask.argv = argv + first + 1;
	if (cordon_held_grants_begin(&held, args.config, &err) < 0)
		return cordon_cli_fail(cli, &err);
	code = run_as(cli, &args, argv[first], &held);
	cordon_held_grants_done(&held);
	return code;
}

const struct cordon_command cordon_cmd_orchestrator_run = {
	.name = "orchestrator run",
	.operands = "ORCHESTRATOR -- CMD [ARG]...",
	.summary = "run one command with what an orchestrator may see",
	.details = "The command starts in the private workspace. It sees that, the shared areas that are granted, a read-only\n"
		   "system, and nothing else of the host. Revoking one of these areas ends it. Exit status: as of 'cordon run'.\n",
	.options = options,
	.run = run,
};
