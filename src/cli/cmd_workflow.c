/* SPDX-License-Identifier: Apache-2.0 */
/* cordon workflow: the workflows of orchestrators, and their runs. */
#include <langinfo.h>
#include <locale.h>
#include <stdio.h>

#include "base/json.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/pairs.h"
#include "cli/workflow_step.h"
#include "flow/flow.h"
#include "flow/orchestrator_file.h"

enum { OPT_INPUT = 1, OPT_WAIT, OPT_GRAPH, OPT_SVG, OPT_RUN, OPT_STEP, OPT_NOTE, OPT_CHECK };

static const struct cordon_option config_options[] = { CORDON_CONFIG_OPTION, { 0 } };
static const struct cordon_option show_options[] = {
	CORDON_CONFIG_OPTION,
	{ "graph", 0, CORDON_ARG_NONE, NULL, "draw the steps on the terminal", OPT_GRAPH },
	{ "svg", 0, CORDON_ARG_NONE, NULL, "print a picture of the steps", OPT_SVG },
	{ "run", 0, CORDON_ARG_TEXT, "WORKFLOW-RUN", "draw how this run stands", OPT_RUN },
	{ 0 },
};
static const struct cordon_option run_options[] = {
	CORDON_CONFIG_OPTION,
	{ "input", 0, CORDON_ARG_TEXT, "NAME=VALUE", "an input of the workflow; may be given several times", OPT_INPUT },
	{ "wait", 0, CORDON_ARG_NONE, NULL, "wait until the run has ended", OPT_WAIT },
	{ "check", 0, CORDON_ARG_NONE, NULL, "judge everything and start nothing", OPT_CHECK },
	{ 0 },
};
static const struct cordon_option wait_options[] = {
	{ "wait", 0, CORDON_ARG_NONE, NULL, "wait until the run has ended", OPT_WAIT },
	{ 0 },
};
static const struct cordon_option logs_options[] = {
	{ "step", 0, CORDON_ARG_TEXT, "STEP", "of this step only", OPT_STEP },
	{ 0 },
};
static const struct cordon_option answer_options[] = {
	{ "step", 0, CORDON_ARG_TEXT, "STEP[:ATTEMPT]", "answer this step, or nothing (default: show it and ask)",
	  OPT_STEP },
	{ "note", 0, CORDON_ARG_TEXT, "TEXT", "what later steps read as the step's feedback", OPT_NOTE },
	{ "wait", 0, CORDON_ARG_NONE, NULL, "wait until the run has ended", OPT_WAIT },
	{ 0 },
};

struct args {
	const char *config, *run, *step, *note, *operands[2];
	bool wait, graph, svg, check;
	json_t *inputs;
	struct cordon_home home;
};

static void args_done(struct args *args)
{
	json_decref(args->inputs);
	cordon_home_done(&args->home);
}

#define ARGS CORDON_CLEANUP(args_done) struct args args = { .home = CORDON_HOME_NONE, .inputs = json_object() }

static int set_input(struct args *args, const char *arg, struct cordon_error *err)
{
	const char *equals = strchr(arg, '=');
	char name[CORDON_FLOW_ID_MAX + 1];

	if (!equals || cordon_copy(name, sizeof(name), arg, (size_t)(equals - arg)) < 0 || !cordon_flow_id_valid(name))
		return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "--input wants NAME=VALUE, not '%.80s'", arg);
	if (json_object_get(args->inputs, name))
		return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "--input %s is given twice", name);
	return cordon_cli_set_text(args->inputs, name, equals + 1, err);
}

static int set(void *data, int key, const char *arg, struct cordon_error *err)
{
	struct args *args = data;

	switch (key) {
	case CORDON_KEY_CONFIG:
		args->config = arg;
		break;
	case OPT_INPUT:
		return set_input(args, arg, err);
	case OPT_WAIT:
		args->wait = true;
		break;
	case OPT_GRAPH:
		args->graph = true;
		break;
	case OPT_SVG:
		args->svg = true;
		break;
	case OPT_RUN:
		args->run = arg;
		break;
	case OPT_STEP:
		args->step = arg;
		break;
	case OPT_CHECK:
		args->check = true;
		break;
	default:
		args->note = arg;
		break;
	}
	return 0;
}

/* Parses options and between `least` and `most` operands, and opens the home. Returns false with the exit code when there is
 * nothing more to do. */
static bool begin(struct cordon_cli *cli, int argc, char **argv, int least, int most, struct args *args, int *ret_exit)
{
	struct cordon_error err = { 0 };
	int first, r = cordon_cli_parse(cli, argc, argv, 0, set, args, &first, &err);

	if (r != 0) {
		*ret_exit = r > 0 ? CORDON_EXIT_OK : cordon_cli_fail(cli, &err);
		return false;
	}
	if (argc - first < least || argc - first > most) {
		*ret_exit = argc - first < least
				    ? cordon_cli_usage(cli, "an argument is missing: %s", cli->command->operands)
				    : cordon_cli_usage(cli, "unexpected argument: %s", argv[first + most]);
		return false;
	}
	for (int i = 0; i < argc - first; i++)
		args->operands[i] = argv[first + i];
	if (cordon_home_open(&args->home, &err) < 0) {
		*ret_exit = cordon_cli_fail(cli, &err);
		return false;
	}
	return true;
}

/* Prints "key=value", with control characters escaped. */
static void print_pair(const char *key, const char *value)
{
	autobuf struct cordon_buf text = CORDON_BUF(1 << 20);

	if (cordon_text_escape(&text, value, strlen(value)) == 0)
		printf("%s=%s\n", key, text.data ? text.data : "");
}

/* ---- definitions ---- */

/* What one orchestrator defines. */
struct definitions {
	struct cordon_settings_file *settings;
	const struct cordon_orchestrator *orchestrator;
	struct cordon_orchestrator_file *file;
	struct cordon_workflow *workflows;
	size_t n;
};

static void definitions_done(struct definitions *d)
{
	cordon_orchestrator_file_freep(&d->file);
	cordon_settings_freep(&d->settings);
}

static int load(const struct args *args, const char *orchestrator, struct definitions *d, struct cordon_errors *errors)
{
	return cordon_flow_definitions(args->config, orchestrator, &d->settings, &d->orchestrator, &d->file,
				       &d->workflows, &d->n, errors);
}

static json_t *list_json(const struct definitions *d)
{
	json_t *list = json_array();

	for (size_t i = 0; i < d->n; i++)
		json_array_append_new(list,
				      json_pack("{s:s, s:s, s:I, s:I, s:o}", "orchestrator", d->orchestrator->id, "id",
						d->workflows[i].id, "version", (json_int_t)d->workflows[i].version,
						"steps", (json_int_t)d->workflows[i].n_steps, "description",
						cordon_cli_json_text(d->workflows[i].description)));
	return list;
}

static int run_list(struct cordon_cli *cli, int argc, char **argv)
{
	static const struct cordon_column columns[] = { { "id", "WORKFLOW" },
							{ "version", "VERSION" },
							{ "steps", "STEPS" },
							{ "description", "DESCRIPTION" },
							{ 0 } };
	struct cordon_errors errors CORDON_CLEANUP(cordon_errors_done) = { 0 };
	CORDON_CLEANUP(definitions_done) struct definitions d = { 0 };
	json_auto_t *list = NULL;
	int code;
	ARGS;

	if (!begin(cli, argc, argv, 1, 1, &args, &code))
		return code;
	if (load(&args, args.operands[0], &d, &errors) < 0)
		return cordon_cli_fail_all(cli, &errors);
	list = list_json(&d);
	if (cli->json)
		return cordon_cli_print_json(cli, json_incref(list));
	cordon_cli_print_table(cli, columns, list);
	return CORDON_EXIT_OK;
}

static bool is_utf8(void)
{
	return setlocale(LC_CTYPE, "") && cordon_streq(nl_langinfo(CODESET), "UTF-8");
}

static int draw(struct cordon_cli *cli, const struct args *args, const struct cordon_workflow *workflow)
{
	autofree char *text = NULL;
	json_auto_t *status = NULL;
	struct cordon_error err = { 0 };

	if (args->run && cordon_flow_status(&args->home, args->run, &status, &err) < 0)
		return cordon_cli_fail(cli, &err);
	text = args->svg ? cordon_flow_graph_svg(workflow, status) : cordon_flow_graph_text(workflow, status, is_utf8());
	if (!text) {
		cordon_fail_errno(&err, -ENOMEM, "cannot draw the workflow");
		return cordon_cli_fail(cli, &err);
	}
	fputs(text, stdout);
	return CORDON_EXIT_OK;
}

/* A run has a copy of its definition, which may differ from what the file says now. */
static int draw_run(struct cordon_cli *cli, struct args *args)
{
	autoflow struct cordon_flow_run run = CORDON_FLOW_RUN_NONE;
	struct cordon_error err = { 0 };

	if (cordon_flow_run_open(&args->home, args->run, &run, &err) < 0)
		return cordon_cli_fail(cli, &err);
	return draw(cli, args, run.workflow);
}

static int run_show(struct cordon_cli *cli, int argc, char **argv)
{
	struct cordon_errors errors CORDON_CLEANUP(cordon_errors_done) = { 0 };
	CORDON_CLEANUP(definitions_done) struct definitions d = { 0 };
	const struct cordon_workflow *workflow = NULL;
	struct cordon_error err = { 0 };
	int code;
	ARGS;

	if (!begin(cli, argc, argv, 0, 2, &args, &code))
		return code;
	if (args.run && (args.graph || args.svg) && !args.operands[0])
		return draw_run(cli, &args);
	if (!args.operands[1])
		return cordon_cli_usage(cli, "an argument is missing: %s", cli->command->operands);
	if (load(&args, args.operands[0], &d, &errors) < 0)
		return cordon_cli_fail_all(cli, &errors);
	if (cordon_flow_find(d.workflows, d.n, d.orchestrator->id, args.operands[1], &workflow, &err) < 0)
		return cordon_cli_fail(cli, &err);
	if (args.graph || args.svg)
		return draw(cli, &args, workflow);
	return cordon_cli_answer(cli, cordon_workflow_json(workflow));
}

static void tell_notice(void *data, const char *where, const char *text)
{
	cordon_cli_notice(data, "%s: %s", where, text);
}

static int validate_one(struct cordon_cli *cli, const struct args *args, const char *orchestrator, size_t *total)
{
	struct cordon_errors errors CORDON_CLEANUP(cordon_errors_done) = { 0 };
	CORDON_CLEANUP(definitions_done) struct definitions d = { 0 };

	if (load(args, orchestrator, &d, &errors) < 0)
		return cordon_cli_fail_all(cli, &errors);
	for (size_t i = 0; i < d.n; i++) {
		cordon_workflow_notices(d.file->doc, &d.workflows[i], tell_notice, cli);
		(void)cordon_flow_access(&args->home, d.settings, d.orchestrator, d.file, &d.workflows[i], &errors);
	}
	*total += d.n;
	return errors.n ? cordon_cli_fail_all(cli, &errors) : CORDON_EXIT_OK;
}

static int run_validate(struct cordon_cli *cli, int argc, char **argv)
{
	struct cordon_errors errors CORDON_CLEANUP(cordon_errors_done) = { 0 };
	autosettings struct cordon_settings_file *settings = NULL;
	size_t total = 0;
	int code, worst = CORDON_EXIT_OK;
	ARGS;

	if (!begin(cli, argc, argv, 0, 1, &args, &code))
		return code;
	if (args.operands[0]) {
		worst = validate_one(cli, &args, args.operands[0], &total);
	} else {
		if (cordon_settings_load(args.config, 0, &settings, &errors) < 0 || errors.n)
			return cordon_cli_fail_all(cli, &errors);
		for (size_t i = 0; i < settings->n_orchestrators; i++) {
			code = validate_one(cli, &args, settings->orchestrators[i].id, &total);
			worst = code ? code : worst;
		}
	}
	if (worst)
		return CORDON_EXIT_NO;
	if (cli->json)
		return cordon_cli_print_json(cli, json_pack("{s:b, s:I}", "valid", 1, "workflows", (json_int_t)total));
	printf("Workflows valid (%zu)\n", total);
	return CORDON_EXIT_OK;
}

/* ---- runs ---- */

/* 0 when the run succeeded, 124 when it timed out, else 1. */
static int exit_of(const json_t *status)
{
	const char *reason = cordon_json_text(status, "terminalReason");

	if (cordon_json_is(status, "state", "succeeded"))
		return CORDON_EXIT_OK;
	return cordon_streq(reason, "timeout") ? CORDON_EXIT_TIMEOUT : CORDON_EXIT_NO;
}

static void print_status(const json_t *status)
{
	static const char *const keys[][2] = { { "run_id", "runId" },	      { "state", "state" },
					       { "summary", "summary" },      { "orchestrator", "orchestratorId" },
					       { "workflow", "workflowId" },  { "current_step", "currentStepId" },
					       { "started_at", "startedAt" }, { "updated_at", "updatedAt" } };
	autobuf struct cordon_buf names = CORDON_BUF(65536);
	json_t *inputs = json_object_get(status, "inputs"), *value;
	const char *key;

	for (size_t i = 0; i < CORDON_ARRAY_SIZE(keys); i++)
		print_pair(keys[i][0], cordon_json_text(status, keys[i][1]));
	json_object_foreach(inputs, key, value)
		if (cordon_buf_addf(&names, "%s%s", names.len ? "," : "", key) < 0)
			break;
	printf("input_count=%zu\n", json_object_size(inputs));
	print_pair("input_keys", names.data ? names.data : "");
}

static int show_status(struct cordon_cli *cli, const struct args *args, const char *id, json_t **ret_status)
{
	struct cordon_error err = { 0 };
	int r = cordon_flow_status(&args->home, id, ret_status, &err);

	if (r < 0)
		return cordon_cli_fail(cli, &err);
	if (cli->json)
		return cordon_cli_print_json(cli, json_incref(*ret_status));
	print_status(*ret_status);
	return CORDON_EXIT_OK;
}

struct pausing {
	struct cordon_cli *cli;
	const char *id;
	bool told;
};

/* Somebody who waits should know that a person has to do something. */
static bool tell_waiting(void *data)
{
	struct pausing *pausing = data;

	if (!pausing->told)
		cordon_cli_notice(pausing->cli, "the run waits for a person: cordon workflow approve|reject %s",
				  pausing->id);
	pausing->told = true;
	return false;
}

static int wait_for(struct cordon_cli *cli, const struct args *args, const char *id)
{
	struct pausing pausing = { .cli = cli, .id = id };
	json_auto_t *status = NULL;
	struct cordon_error err = { 0 };
	int code;

	if (cordon_flow_wait(&args->home, id, tell_waiting, &pausing, &err) < 0)
		return cordon_cli_fail(cli, &err);
	code = show_status(cli, args, id, &status);
	return code ? code : exit_of(status);
}

static int run_run(struct cordon_cli *cli, int argc, char **argv)
{
	struct cordon_errors errors CORDON_CLEANUP(cordon_errors_done) = { 0 };
	struct cordon_flow_start start = { 0 };
	char id[CORDON_FLOW_RUN_SIZE] = "";
	int code;
	ARGS;

	cli->failure_exit = CORDON_EXIT_REFUSED;
	if (!begin(cli, argc, argv, 1, 2, &args, &code))
		return code;
	start = (struct cordon_flow_start){ .config = args.config,
					    .orchestrator = args.operands[0],
					    .workflow = args.operands[1],
					    .inputs = args.inputs,
					    .check_only = args.check };
	if (cordon_flow_start(&args.home, &start, id, &errors) < 0)
		return cordon_cli_fail_all(cli, &errors);
	if (args.check)
		return cli->json ? cordon_cli_print_json(cli, json_pack("{s:b}", "allowed", 1)) : CORDON_EXIT_OK;
	if (!cli->json) {
		if (!cli->quiet)
			puts("workflow started");
		print_pair("run_id", id);
		fflush(stdout);
	}
	if (args.wait)
		return wait_for(cli, &args, id);
	return cli->json ? cordon_cli_print_json(cli, json_pack("{s:s}", "runId", id)) : CORDON_EXIT_OK;
}

static int run_runs(struct cordon_cli *cli, int argc, char **argv)
{
	static const struct cordon_column columns[] = { { "runId", "RUN" },
							{ "state", "STATE" },
							{ "orchestratorId", "ORCHESTRATOR" },
							{ "workflowId", "WORKFLOW" },
							{ "updatedAt", "UPDATED" },
							{ "summary", "SUMMARY" },
							{ 0 } };
	json_auto_t *runs = NULL;
	struct cordon_error err = { 0 };
	int code;
	ARGS;

	if (!begin(cli, argc, argv, 0, 1, &args, &code))
		return code;
	if (cordon_flow_list(&args.home, args.operands[0], &runs, &err) < 0)
		return cordon_cli_fail(cli, &err);
	if (cli->json)
		return cordon_cli_print_json(cli, json_incref(runs));
	cordon_cli_print_table(cli, columns, runs);
	return CORDON_EXIT_OK;
}

static int run_status(struct cordon_cli *cli, int argc, char **argv)
{
	json_auto_t *status = NULL;
	int code;
	ARGS;

	if (!begin(cli, argc, argv, 0, 1, &args, &code))
		return code;
	return show_status(cli, &args, args.operands[0], &status);
}

static int run_progress(struct cordon_cli *cli, int argc, char **argv)
{
	json_auto_t *status = NULL;
	struct cordon_error err = { 0 };
	int code;
	ARGS;

	if (!begin(cli, argc, argv, 0, 1, &args, &code))
		return code;
	if (cordon_flow_status(&args.home, args.operands[0], &status, &err) < 0)
		return cordon_cli_fail(cli, &err);
	return cordon_cli_print_json(cli, json_incref(status));
}

static void print_log(const json_t *log)
{
	autobuf struct cordon_buf text = CORDON_BUF((size_t)64 << 20);
	const json_t *event;
	size_t i;

	printf("== %s, attempt %lld, %s\n", cordon_json_text(log, "step"),
	       (long long)cordon_json_integer(log, "attempt"), cordon_json_text(log, "startedAt"));
	json_array_foreach(json_object_get(log, "events"), i, event) {
		const char *type = cordon_json_text(event, "type"), *line = cordon_json_text(event, "text");
		bool agent = cordon_streq(type, "stdout") || cordon_streq(type, "stderr");

		if (agent) {
			if (cordon_text_mark_lines(&text, CORDON_AGENT_MARK, line, strlen(line)) < 0)
				break;
			continue;
		}
		if (text.len && text.data[text.len - 1] != '\n' && cordon_buf_addc(&text, '\n') < 0)
			break;
		if (cordon_buf_addf(&text, "%s: ", type) < 0 || cordon_text_escape(&text, line, strlen(line)) < 0 ||
		    cordon_buf_addc(&text, '\n') < 0)
			break;
	}
	if (text.len)
		fwrite(text.data, 1, text.len, stdout);
}

static int run_logs(struct cordon_cli *cli, int argc, char **argv)
{
	json_auto_t *logs = NULL;
	struct cordon_error err = { 0 };
	const json_t *log;
	int code;
	size_t i;
	ARGS;

	if (!begin(cli, argc, argv, 0, 1, &args, &code))
		return code;
	if (cordon_flow_logs(&args.home, args.operands[0], args.step, &logs, &err) < 0)
		return cordon_cli_fail(cli, &err);
	if (cli->json)
		return cordon_cli_print_json(cli, json_incref(logs));
	json_array_foreach(logs, i, log)
		print_log(log);
	return CORDON_EXIT_OK;
}

/* ---- changes of runs ---- */

/* Says what was done, or waits for the end of the run. */
static int answer(struct cordon_cli *cli, const struct args *args, const char *said)
{
	autoflow struct cordon_flow_run run = CORDON_FLOW_RUN_NONE;
	struct cordon_error err = { 0 };

	if (cordon_flow_run_open(&args->home, args->operands[0], &run, &err) < 0)
		return cordon_cli_fail(cli, &err);
	if (!cli->json) {
		if (!cli->quiet)
			puts(said);
		print_pair("run_id", run.id);
		fflush(stdout);
	}
	if (args->wait)
		return wait_for(cli, args, run.id);
	return cli->json ? cordon_cli_print_json(cli, json_pack("{s:s}", "runId", run.id)) : CORDON_EXIT_OK;
}

static int run_cancel(struct cordon_cli *cli, int argc, char **argv)
{
	struct cordon_error err = { 0 };
	int code;
	ARGS;

	if (!begin(cli, argc, argv, 1, 1, &args, &code))
		return code;
	if (cordon_flow_cancel(&args.home, args.operands[0], &err) < 0)
		return cordon_cli_fail(cli, &err);
	return answer(cli, &args, "workflow canceled");
}

static int run_resume(struct cordon_cli *cli, int argc, char **argv)
{
	struct cordon_error err = { 0 };
	int code;
	ARGS;

	if (!begin(cli, argc, argv, 1, 1, &args, &code))
		return code;
	if (cordon_flow_resume(&args.home, args.operands[0], &err) < 0)
		return cordon_cli_fail(cli, &err);
	return answer(cli, &args, "workflow resumed");
}

/* INVARIANT: the answer is for the step that was named or shown. If another one waits by then, nothing happens. */
static int decide(struct cordon_cli *cli, int argc, char **argv, bool approve)
{
	autoflow struct cordon_flow_run run = CORDON_FLOW_RUN_NONE;
	struct cordon_flow_reply reply;
	struct cordon_cli_step answered = { 0 };
	struct cordon_error err = { 0 };
	int code;
	ARGS;

	if (!begin(cli, argc, argv, 1, 1, &args, &code))
		return code;
	if (cordon_flow_run_open(&args.home, args.operands[0], &run, &err) < 0)
		return cordon_cli_fail(cli, &err);
	if ((code = cordon_cli_step_choose(cli, &args.home, &run, args.step, approve, &answered)) != 0)
		return code;
	reply = (struct cordon_flow_reply){ approve, args.note, answered.step, answered.attempt };
	if (cordon_flow_answer(&args.home, run.id, &reply, &err) < 0)
		return cordon_cli_fail(cli, &err);
	return answer(cli, &args, approve ? "step approved" : "step rejected");
}

static int run_approve(struct cordon_cli *cli, int argc, char **argv)
{
	return decide(cli, argc, argv, true);
}

static int run_reject(struct cordon_cli *cli, int argc, char **argv)
{
	return decide(cli, argc, argv, false);
}

/* ---- the commands ---- */

const struct cordon_command cordon_cmd_workflow_list = {
	.name = "workflow list",
	.operands = "ORCHESTRATOR",
	.summary = "list the workflows of an orchestrator",
	.options = config_options,
	.run = run_list,
};

const struct cordon_command cordon_cmd_workflow_show = {
	.name = "workflow show",
	.operands = "[ORCHESTRATOR WORKFLOW]",
	.summary = "show or draw a workflow, or how a run of it stands",
	.details = "With --run and --graph or --svg the operands may be left out: a run has a copy of its definition.\n",
	.options = show_options,
	.run = run_show,
};

const struct cordon_command cordon_cmd_workflow_validate = {
	.name = "workflow validate",
	.operands = "[ORCHESTRATOR]",
	.summary = "report every error in workflows, and what their steps may not use",
	.details = "Without an operand it judges the workflows of all orchestrators.\n\n"
		   "Exit status: 0 when they are valid, 1 when they are not.\n",
	.options = config_options,
	.run = run_validate,
};

const struct cordon_command cordon_cmd_workflow_run = {
	.name = "workflow run",
	.operands = "ORCHESTRATOR [WORKFLOW]",
	.summary = "start a workflow, by default the orchestrator's default one",
	.details = "Everything is judged before the first step starts. The run goes on when this command has ended.\n\n"
		   "Exit status: 0 when it has started, with --wait when it has succeeded; 1 when it failed or was canceled;\n"
		   "124 when it timed out; 125 when it was refused; 2 for wrong usage.\n",
	.options = run_options,
	.run = run_run,
};

const struct cordon_command cordon_cmd_workflow_runs = {
	.name = "workflow runs",
	.operands = "[ORCHESTRATOR]",
	.summary = "list runs of workflows, the oldest first",
	.options = NULL,
	.run = run_runs,
};

const struct cordon_command cordon_cmd_workflow_status = {
	.name = "workflow status",
	.operands = "[WORKFLOW-RUN]",
	.summary = "say how a run stands; by default the latest",
	.options = NULL,
	.run = run_status,
};

const struct cordon_command cordon_cmd_workflow_progress = {
	.name = "workflow progress",
	.operands = "[WORKFLOW-RUN]",
	.summary = "print all that is known about a run, as JSON",
	.options = NULL,
	.run = run_progress,
};

const struct cordon_command cordon_cmd_workflow_logs = {
	.name = "workflow logs",
	.operands = "[WORKFLOW-RUN]",
	.summary = "print what the agents of a run wrote and what happened",
	.options = logs_options,
	.run = run_logs,
};

const struct cordon_command cordon_cmd_workflow_cancel = {
	.name = "workflow cancel",
	.operands = "WORKFLOW-RUN",
	.summary = "end a run, with all processes of the step that runs",
	.options = wait_options,
	.run = run_cancel,
};

const struct cordon_command cordon_cmd_workflow_resume = {
	.name = "workflow resume",
	.operands = "WORKFLOW-RUN",
	.summary = "continue a run whose engine was ended",
	.details = "Steps that have ended are not repeated; one that had not ended starts again.\n",
	.options = wait_options,
	.run = run_resume,
};

const struct cordon_command cordon_cmd_workflow_approve = {
	.name = "workflow approve",
	.operands = "WORKFLOW-RUN",
	.summary = "approve the step that waits for a person, and go on",
	.options = answer_options,
	.run = run_approve,
};

const struct cordon_command cordon_cmd_workflow_reject = {
	.name = "workflow reject",
	.operands = "WORKFLOW-RUN",
	.summary = "reject the step that waits for a person, and go on",
	.options = answer_options,
	.run = run_reject,
};
