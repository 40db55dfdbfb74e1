/* SPDX-License-Identifier: Apache-2.0 */
/* cordon execute: runs named agents, alone or side by side, and cancels them. */
#include <assert.h>
#include <fcntl.h>
#include <stdio.h>

#include "agent/job.h"
#include "base/json.h"
#include "cli/agent_view.h"
#include "cli/commands.h"
#include "cli/recipe_options.h"
#include "view/show.h"

#define CONCURRENT_DEFAULT 4

enum {
	OPT_AGENT = 1,
	OPT_AGENTS,
	OPT_ALL,
	OPT_COMMAND,
	OPT_TIMEOUT,
	OPT_CONCURRENT,
	OPT_NET,
	OPT_CWD,
	OPT_DETACH,
	OPT_EVENTS,
	OPT_DRY_RUN,
	OPT_CANCEL,
	OPT_ROOT,
	OPT_CONFIG,
};

static const struct cordon_option options[] = {
	{ "agent", 0, CORDON_ARG_TEXT, "NAME", "run this agent", OPT_AGENT },
	{ "agents", 0, CORDON_ARG_TEXT, "NAMES", "run these, a comma list", OPT_AGENTS },
	{ "all", 0, CORDON_ARG_NONE, NULL, "run every agent of the file", OPT_ALL },
	{ "command", 0, CORDON_ARG_TEXT, "STRING", "what to run, with sh -c (default: the agent's own command)",
	  OPT_COMMAND },
	{ "timeout", 0, CORDON_ARG_TEXT, "MS", "end an agent after this time: milliseconds, or 90s, 2m, 1h",
	  OPT_TIMEOUT },
	CORDON_RECIPE_OPTIONS(CORDON_RECIPE_OF_EXECUTE),
	{ "net", 0, CORDON_ARG_HOSTS, "HOSTS|none", "reach only these hosts of those that the agent may reach", OPT_NET },
	{ "max-concurrent", 0, CORDON_ARG_TEXT, "N", "how many run at the same time (default: 4)", OPT_CONCURRENT },
	{ "cwd", 0, CORDON_ARG_CHOICE, "root|temp", "start in the root (default) or in the private temporary directory",
	  OPT_CWD },
	{ "detach", 0, CORDON_ARG_NONE, NULL, "print the run and return; the agents go on", OPT_DETACH },
	{ "events", 0, CORDON_ARG_NONE, NULL, "print what happens as JSON Lines", OPT_EVENTS },
	{ "dry-run", 0, CORDON_ARG_NONE, NULL, "print the plans and start nothing", OPT_DRY_RUN },
	{ "cancel", 0, CORDON_ARG_TEXT, "RUN", "cancel a run, or with --agent one agent of it", OPT_CANCEL },
	{ "root", 0, CORDON_ARG_DIR, "DIR", "repository root (default: the git top level, else .)", OPT_ROOT },
	{ "config", 0, CORDON_ARG_FILE, "FILE",
	  "file of agents (default: agents.json or .agent/agents.yaml in the root)", OPT_CONFIG },
	{ 0 },
};

struct args {
	const char *agent, *agents, *cancel, *root, *config;
	bool all, detach, events, dry_run;
	unsigned int max_concurrent;
	struct cordon_agent_start start;
	struct cordon_recipe recipe; /* its values only */
};

static int set_number(struct args *args, int key, const char *arg, struct cordon_error *err)
{
	uint64_t value;

	if (key == OPT_TIMEOUT) {
		if (cordon_parse_duration(arg, 1, &value) < 0 || !value || value > CORDON_TIMEOUT_MAX_MS)
			return cordon_fail(
				err, -EINVAL, CORDON_KIND_USAGE,
				"--timeout: not a time: '%s'; write milliseconds, or a number with ms, s, m or h", arg);
		cordon_recipe_set_value(&args->recipe, CORDON_RECIPE_TIMEOUT, value);
		return 0;
	}
	if (cordon_parse_u64(arg, 1, CORDON_CREW_CONCURRENT_MAX, &value) < 0)
		return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "--max-concurrent: not a number from 1 to %d: '%s'",
				   CORDON_CREW_CONCURRENT_MAX, arg);
	args->max_concurrent = (unsigned int)value;
	return 0;
}

static int set(void *data, int key, const char *arg, struct cordon_error *err)
{
	struct args *args = data;

	if (cordon_recipe_owns(key))
		return cordon_cli_set(&args->recipe, key, arg, err);
	switch (key) {
	case OPT_AGENT:
		args->agent = arg;
		break;
	case OPT_AGENTS:
		args->agents = arg;
		break;
	case OPT_ALL:
		args->all = true;
		break;
	case OPT_COMMAND:
		args->start.command = arg;
		break;
	case OPT_NET:
		args->start.net = arg;
		break;
	case OPT_CWD:
		args->start.in_temp = cordon_streq(arg, "temp");
		break;
	case OPT_DETACH:
		args->detach = true;
		break;
	case OPT_EVENTS:
		args->events = true;
		break;
	case OPT_DRY_RUN:
		args->dry_run = args->start.dry = true;
		break;
	case OPT_CANCEL:
		args->cancel = arg;
		break;
	case OPT_ROOT:
		args->root = arg;
		break;
	case OPT_CONFIG:
		args->config = arg;
		break;
	default:
		return set_number(args, key, arg, err);
	}
	return 0;
}

/* Returns what is wrong with the options together, or NULL. */
static const char *misuse(const struct cordon_cli *cli, const struct args *args)
{
	int chosen = !!args->agent + !!args->agents + args->all;

	if (args->cancel)
		return args->agents || args->all || args->start.argv || args->start.command || args->detach ||
				       args->dry_run || args->events
			       ? "--cancel goes with --agent only"
			       : NULL;
	if (chosen != 1)
		return chosen ? "--agent, --agents and --all exclude each other"
			      : "one of --agent, --agents and --all is expected";
	if (args->start.argv && args->start.command)
		return "a command is given twice: with --command and after --";
	if (cli->json && args->events)
		return "--json and --events exclude each other";
	if (args->detach && (args->events || args->dry_run))
		return "--detach goes with neither --events nor --dry-run";
	return NULL;
}

/* ---- which agents ---- */

struct execution {
	struct cordon_cli *cli;
	struct args *args;
	struct cordon_agents *agents;
	struct cordon_agent_job *jobs;
	size_t n;
	struct cordon_home home;
	struct cordon_crew *crew;
	struct cordon_agent_view view;
};

static int add_agent(const struct cordon_agents *agents, const char *name, const struct cordon_agent **chosen,
		     size_t *n, struct cordon_error *err)
{
	const struct cordon_agent *agent;
	int r = cordon_agents_get(agents, name, &agent, err);

	for (size_t i = 0; r == 0 && i < *n; i++)
		if (chosen[i] == agent)
			r = cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "the agent %s is named twice", agent->name);
	if (r == 0)
		chosen[(*n)++] = agent;
	return r;
}

/* Fills `chosen`, which has room for all. */
static int choose(const struct args *args, const struct cordon_agents *agents, const struct cordon_agent **chosen,
		  size_t *ret_n, struct cordon_error *err)
{
	int r = 0;

	*ret_n = 0;
	for (size_t i = 0; args->all && r == 0 && i < agents->n; i++)
		r = add_agent(agents, agents->items[i].name, chosen, ret_n, err);
	if (args->agent)
		r = add_agent(agents, args->agent, chosen, ret_n, err);
	for (const char *at = args->agents; r == 0 && at;) {
		const char *end = strchrnul(at, ',');
		char name[CORDON_AGENT_NAME_MAX + 1];

		while (*at == ' ')
			at++;
		while (end > at && end[-1] == ' ')
			end--;
		if (cordon_copy(name, sizeof(name), at, end > at ? (size_t)(end - at) : 0) < 0)
			return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "--agents: a name is too long");
		r = add_agent(agents, name, chosen, ret_n, err);
		at = strchr(end, ',');
		at = at ? at + 1 : NULL;
	}
	if (r == 0 && !*ret_n)
		r = cordon_fail(err, -ENOENT, CORDON_KIND_NOT_FOUND, "%s has no agents", agents->doc->name);
	return r;
}

static void tell(void *data, const char *where, const char *text)
{
	const struct cordon_cli *cli = data;

	if (cli->json)
		cordon_cli_notice(cli, "%s%s%s", where ? where : "", where ? ": " : "", text);
	else
		cordon_cli_log(cli, "AGENT", "%s%s%s", where ? where : "", where ? ": " : "", text);
}

/* Loads the file and prepares every agent. Returns 0, or an exit code after having printed every error. */
static int prepare(struct execution *x)
{
	struct cordon_errors errors CORDON_CLEANUP(cordon_errors_done) = { 0 };
	autofree const struct cordon_agent **chosen = NULL;
	struct cordon_error err = { 0 };
	size_t n = 0;

	if (cordon_agents_load(x->args->root, x->args->config, &x->agents, &errors) < 0)
		return cordon_cli_fail_all(x->cli, &errors);
	chosen = calloc(x->agents->n + 1, sizeof(void *));
	x->jobs = calloc(x->agents->n + 1, sizeof(*x->jobs));
	if (!chosen || !x->jobs)
		cordon_fail_errno(&err, -ENOMEM, "cannot start the agents");
	else
		(void)choose(x->args, x->agents, chosen, &n, &err);
	if (!err.code)
		(void)cordon_home_open(&x->home, &err);
	if (err.code)
		return cordon_cli_fail(x->cli, &err);
	for (size_t i = 0; i < n; i++) {
		cordon_agent_notices(x->agents, chosen[i], tell, x->cli);
		if (cordon_agent_job_init(x->agents, chosen[i], &x->args->start, &x->jobs[x->n], &errors) == 0)
			x->n++;
	}
	return errors.n ? cordon_cli_fail_all(x->cli, &errors) : 0;
}

static void finish(struct execution *x)
{
	cordon_crew_free(x->crew);
	for (size_t i = 0; i < x->n; i++)
		cordon_agent_job_done(&x->jobs[i]);
	free(x->jobs);
	cordon_agents_free(x->agents);
	cordon_home_done(&x->home);
}

static const char *name_of(const struct execution *x, size_t i)
{
	assert(x->jobs[i].agent); /* every job that was prepared has one */
	return x->jobs[i].agent->name;
}

/* ---- dry run ---- */

static int print_plans(struct execution *x)
{
	json_t *plans = json_array();
	int code = CORDON_EXIT_OK;

	for (size_t i = 0; i < x->n; i++) {
		struct cordon_plan *plan = NULL;
		struct cordon_error err = { 0 };
		autofree char *text = NULL;

		if (cordon_run_plan(&x->jobs[i].recipe.spec, &plan, &err) < 0) {
			cordon_error_prefix(&err, err.code, "%s", name_of(x, i));
			code = cordon_cli_fail(x->cli, &err);
			continue;
		}
		text = x->cli->json ? cordon_plan_to_json(plan) : cordon_plan_to_text(plan);
		cordon_plan_free(plan);
		if (x->cli->json)
			json_array_append_new(plans, json_pack("{s:s, s:o}", "agentName", name_of(x, i), "plan",
							       text ? json_loads(text, 0, NULL) : json_null()));
		else
			printf("%sagent      %s\n%s", i ? "\n" : "", name_of(x, i), text ? text : "");
	}
	if (!x->cli->json || code) {
		json_decref(plans);
		return code;
	}
	return cordon_cli_print_json(x->cli, plans);
}

/* ---- running ---- */

/* One agent gets our standard input, unless that is a terminal: nobody could say to which of several a line goes. */
static int make_crew(struct execution *x, int *ret_input, struct cordon_error *err)
{
	struct cordon_crew_options crew = {
		.max_concurrent = x->args->max_concurrent,
		.observer = { .data = &x->view,
			      .state = cordon_agent_view_state,
			      .event = cordon_agent_view_event,
			      .output = cordon_agent_view_output,
			      .tick = x->view.show == CORDON_SHOW_TABLE ? cordon_agent_view_tick : NULL },
	};

	if (x->n == 1 && !isatty(STDIN_FILENO))
		*ret_input = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
	return cordon_agent_crew(x->agents, x->jobs, x->n, &crew, *ret_input > 0 ? *ret_input : 0, &x->crew, err);
}

static void print_reasons(const struct execution *x)
{
	size_t counts[CORDON_JOB__MAX] = { 0 };
	autobuf struct cordon_buf text = CORDON_BUF(512);

	for (size_t i = 0; i < x->n; i++) {
		const struct cordon_job *job = cordon_agent_view_job(&x->view, i);
		struct cordon_error err = { 0 };
		char reason[1024];

		counts[job->state]++;
		cordon_agent_reason(job, reason, sizeof(reason));
		if (job->state == CORDON_JOB_COMPLETED ||
		    (x->n == 1 && job->state == CORDON_JOB_FAILED && !*job->message))
			continue;
		if (!*job->message) {
			cordon_cli_log(x->cli, "EXECUTE", "%s: %s", job->name, reason);
			continue;
		}
		cordon_fail(&err, -EIO, job->kind, "%s: %s", job->name, reason);
		cordon_cli_fail(x->cli, &err);
	}
	for (size_t i = 0; x->n > 1 && i < CORDON_JOB__MAX; i++)
		if (counts[i])
			cordon_buf_addf(&text, "%s%zu %s", text.len ? ", " : "", counts[i],
					cordon_job_state_name((cordon_job_state)i));
	if (text.len)
		cordon_cli_log(x->cli, "EXECUTE", "%s", text.data);
}

struct line {
	const struct cordon_cli *cli;
	const char *name;
};

static void print_git_line(void *data, const char *text)
{
	const struct line *line = data;

	cordon_cli_log(line->cli, "GIT", "%s: %s", line->name, text);
}

/* Says where the changes of each agent are, and what became of its commits. */
static void print_outcomes(const struct execution *x)
{
	for (size_t i = 0; i < x->n; i++) {
		const struct cordon_job *job = cordon_agent_view_job(&x->view, i);
		json_auto_t *result = cordon_agent_result(&x->home, x->view.run, job, 0);
		const char *view = cordon_json_string(result, "view");

		cordon_git_lines(json_object_get(result, "git"), print_git_line,
				 &(struct line){ .cli = x->cli, .name = job->name });
		if (view)
			cordon_cli_log(x->cli, "EXECUTE",
				       "%s: its changes wait in a view; see 'cordon changes diff %.8s'", job->name,
				       view);
	}
}

static int print_results(const struct execution *x)
{
	json_t *results = x->n == 1 ? NULL : json_array();

	for (size_t i = 0; i < x->n; i++) {
		json_t *result = cordon_agent_result(&x->home, x->view.run, cordon_agent_view_job(&x->view, i),
						     CORDON_AGENT_OUTPUT_MAX);

		if (x->n == 1)
			results = result;
		else
			json_array_append_new(results, result);
	}
	return cordon_cli_print_json(x->cli, results);
}

/* One agent: its own status. Several: 1 if one of them did not complete. */
static int exit_code(const struct execution *x, int signal)
{
	const struct cordon_job *only = cordon_agent_view_job(&x->view, 0);

	if (x->n == 1)
		return only->own_exit >= 0 ? only->own_exit : CORDON_EXIT_REFUSED;
	if (signal)
		return CORDON_EXIT_SIGNAL + signal;
	for (size_t i = 0; i < x->n; i++)
		if (cordon_agent_view_job(&x->view, i)->state != CORDON_JOB_COMPLETED)
			return CORDON_EXIT_NO;
	return CORDON_EXIT_OK;
}

static void announce(const struct execution *x, const char *run)
{
	if (x->cli->json)
		cordon_cli_notice(x->cli, "run %s", run);
	else if (!x->args->events)
		cordon_cli_log(x->cli, "EXECUTE", "run %s", run);
}

static int run_agents(struct execution *x)
{
	cordon_agent_show show = x->cli->json	   ? CORDON_SHOW_NOTHING
				 : x->args->events ? CORDON_SHOW_EVENTS
						   : cordon_agent_view_choose(x->n);
	autofree const char **names = calloc(x->n + 1, sizeof(*names));
	struct cordon_error err = { 0 };
	int signal = 0, input = -1, code, r;

	for (size_t i = 0; names && i < x->n; i++)
		names[i] = name_of(x, i);
	x->view.show = show;
	r = names ? make_crew(x, &input, &err) : cordon_fail_errno(&err, -ENOMEM, "cannot start the agents");
	if (r == 0)
		r = cordon_agent_view_init(&x->view, x->cli, show, cordon_crew_id(x->crew), &x->home, names, x->n, &err);
	if (r == 0) {
		announce(x, x->view.run);
		r = cordon_crew_wait(x->crew, &signal, &err);
	}
	cordon_closep(&input);
	if (r < 0) {
		cordon_agent_view_done(&x->view);
		return cordon_cli_fail(x->cli, &err);
	}
	cordon_agent_view_end(&x->view);
	if (!x->args->events && !x->cli->json) {
		print_outcomes(x);
		print_reasons(x);
	}
	code = exit_code(x, signal);
	if (x->cli->json && print_results(x) && !code)
		code = x->cli->failure_exit;
	cordon_agent_view_done(&x->view);
	cordon_agent_clean(&x->home);
	return code;
}

/* ---- detached ---- */

static int detach(struct execution *x)
{
	struct cordon_error err = { 0 };
	char run[CORDON_UUID_SIZE];
	json_t *names;

	if (cordon_agents_detach(x->agents, x->jobs, x->n, x->args->max_concurrent, run, &err) < 0)
		return cordon_cli_fail(x->cli, &err);
	if (!x->cli->json) {
		printf("%s\n", run);
		return CORDON_EXIT_OK;
	}
	names = json_array();
	for (size_t i = 0; i < x->n; i++)
		json_array_append_new(names, json_string(name_of(x, i)));
	return cordon_cli_print_json(x->cli, json_pack("{s:s, s:o}", "runId", run, "agents", names));
}

/* ---- cancel ---- */

static int cancel(struct cordon_cli *cli, const struct args *args)
{
	autohome struct cordon_home home = CORDON_HOME_NONE;
	struct cordon_crew_info run;
	struct cordon_job job;
	struct cordon_error err = { 0 };

	cli->failure_exit = CORDON_EXIT_NO;
	if (cordon_home_open(&home, &err) < 0 || cordon_agent_find_run(&home, args->cancel, &run, &err) < 0 ||
	    (args->agent && cordon_agent_find_job(&home, run.id, args->agent, &job, &err) < 0) ||
	    cordon_crew_cancel_by_name(&home, run.id, args->agent ? job.name : NULL, &err) < 0)
		return cordon_cli_fail(cli, &err);
	if (cli->json)
		return cordon_cli_print_json(cli, json_pack("{s:s, s:s?, s:b}", "runId", run.id, "agentName",
							    args->agent, "cancelled", 1));
	printf("cancelled %s%s%s\n", args->agent ? args->agent : "", args->agent ? " of " : "", run.id);
	return CORDON_EXIT_OK;
}

static int run(struct cordon_cli *cli, int argc, char **argv)
{
	struct args args = { .max_concurrent = CONCURRENT_DEFAULT };
	struct execution x = { .cli = cli, .args = &args, .home = CORDON_HOME_NONE };
	struct cordon_error err = { 0 };
	const char *wrong;
	int first, code, r;

	cli->failure_exit = CORDON_EXIT_REFUSED;
	r = cordon_cli_parse(cli, argc, argv, CORDON_PARSE_STOP, set, &args, &first, &err);
	if (r != 0)
		return r > 0 ? CORDON_EXIT_OK : cordon_cli_fail(cli, &err);
	if (first < argc)
		args.start.argv = argv + first;
	args.start.values = args.recipe.values;
	wrong = misuse(cli, &args);
	if (wrong)
		return cordon_cli_usage(cli, "%s", wrong);
	if (args.cancel)
		return cancel(cli, &args);
	code = prepare(&x);
	if (!code)
		code = args.dry_run ? print_plans(&x) : args.detach ? detach(&x) : run_agents(&x);
	finish(&x);
	return code;
}

const struct cordon_command cordon_cmd_execute = {
	.name = "execute",
	.operands = "[-- CMD [ARG]...]",
	.summary = "run named agents, each in the sandbox of its scope",
	.details = "Each agent has a sandbox, a process tree, an environment and a temporary directory of its own (agents.json(5)).\n"
		   "It starts in the root and sees of the repository what its scope says. The run is printed at the start; it\n"
		   "names the whole call for --cancel, 'cordon status' and 'cordon logs'.\n"
		   "\n"
		   "Exit status: of one agent, its own, as of 'cordon run'; of several, 0 when all completed, else 1. 125 when\n"
		   "there is no file of agents or no such agent.\n",
	.options = options,
	.run = run,
};
