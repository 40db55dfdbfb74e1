/* SPDX-License-Identifier: Apache-2.0 */
/* cordon logs: what agents wrote, and what happened to them. */
#include <stdio.h>
#include <strings.h>
#include <time.h>

#include "agent/job.h"
#include "base/json.h"
#include "cli/agent_view.h"
#include "cli/commands.h"

#define FOLLOW_MS 200

enum { OPT_AGENT = 1, OPT_RUN, OPT_FOLLOW };

static const struct cordon_option options[] = {
	{ "agent", 0, CORDON_ARG_TEXT, "NAME", "only of this agent", OPT_AGENT },
	{ "run", 0, CORDON_ARG_TEXT, "RUN", "of this run (default: the latest)", OPT_RUN },
	{ "follow", 'f', CORDON_ARG_NONE, NULL, "go on until the agents have ended", OPT_FOLLOW },
	{ 0 },
};

struct args {
	const char *agent, *run;
	bool follow;
};

static int set(void *data, int key, const char *arg, struct cordon_error *err)
{
	struct args *args = data;

	(void)err;
	if (key == OPT_AGENT)
		args->agent = arg;
	else if (key == OPT_RUN)
		args->run = arg;
	else
		args->follow = true;
	return 0;
}

struct logs {
	struct cordon_cli *cli;
	struct cordon_home home;
	struct cordon_crew_info run;
	struct cordon_agent_view view;
	const char **names;
	size_t *indices; /* of the jobs that are shown */
	int64_t *since;	 /* the last event of each that was printed */
	size_t n;
};

static void print_event(struct logs *logs, size_t i, json_t *event)
{
	const char *type = cordon_json_string(event, "type");
	const json_t *text = json_object_get(event, "text");
	bool error = type && cordon_streq(type, "stderr");

	if (!type || !json_is_string(text))
		return;
	if (logs->cli->json) {
		json_object_set_new(event, "agentName", json_string(logs->names[i]));
		json_object_set_new(event, "runId", json_string(logs->run.id));
		(void)json_dumpf(event, stdout, JSON_COMPACT);
		putchar('\n');
	} else if (error || cordon_streq(type, "stdout")) {
		cordon_agent_view_output(&logs->view, i, error ? 2 : 1, json_string_value(text),
					 json_string_length(text));
	} else if (!cordon_streq(type, "started")) {
		cordon_agent_view_note(&logs->view, i, json_string_value(text));
	}
}

struct entry {
	size_t job;
	json_t *event; /* borrowed */
	const char *time;
};

static int by_time(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	int c = strcmp(x->time, y->time);

	if (c)
		return c;
	if (x->job != y->job)
		return x->job < y->job ? -1 : 1;
	return cordon_json_integer(x->event, "index") < cordon_json_integer(y->event, "index") ? -1 : 1;
}

/* Prints what is new in all logs, in the order of time. */
static int print_new(struct logs *logs, struct cordon_error *err)
{
	autofree struct entry *entries = NULL;
	json_t *all = json_array();
	size_t n = 0, at, total = 0;
	json_t *event;
	int r = 0;

	for (size_t i = 0; r == 0 && i < logs->n; i++) {
		json_t *events = NULL;
		int64_t dropped = 0, last = logs->since[i];

		r = cordon_crew_log(&logs->home, logs->run.id, logs->indices[i], logs->since[i], 0, &events, &last,
				    &dropped, err);
		if (r < 0)
			break;
		if (dropped && logs->since[i] < 0 && !logs->cli->json)
			cordon_cli_log(logs->cli, "LOGS", "%s: %lld earlier events are not kept", logs->names[i],
				       (long long)dropped);
		logs->since[i] = last > logs->since[i] ? last : logs->since[i];
		total += json_array_size(events);
		json_array_append_new(all, events);
	}
	entries = calloc(total + 1, sizeof(*entries));
	if (r == 0 && !entries)
		r = cordon_fail_errno(err, -ENOMEM, "cannot read the logs");
	for (size_t i = 0; r == 0 && i < json_array_size(all); i++) {
		json_array_foreach(json_array_get(all, i), at, event) {
			const char *time = cordon_json_string(event, "time");

			entries[n++] = (struct entry){ .job = i, .event = event, .time = time ? time : "" };
		}
	}
	if (n)
		qsort(entries, n, sizeof(*entries), by_time);
	for (size_t i = 0; r == 0 && i < n; i++)
		print_event(logs, entries[i].job, entries[i].event);
	json_decref(all);
	fflush(stdout);
	return r;
}

/* Fills the list of jobs, and says whether one of them has not ended. */
static int choose(struct logs *logs, const char *agent, struct cordon_job **ret_jobs, struct cordon_error *err)
{
	struct cordon_job only = { 0 };
	size_t n = 0;
	int r = cordon_crew_read(&logs->home, logs->run.id, &logs->run, ret_jobs, &n, err);

	if (r == 0 && agent)
		r = cordon_agent_find_job(&logs->home, logs->run.id, agent, &only, err);
	if (r < 0)
		return r;
	logs->names = calloc(n + 1, sizeof(*logs->names));
	logs->indices = calloc(n + 1, sizeof(*logs->indices));
	logs->since = calloc(n + 1, sizeof(*logs->since));
	if (!logs->names || !logs->indices || !logs->since)
		return cordon_fail_errno(err, -ENOMEM, "cannot read the logs");
	for (size_t i = 0; i < n; i++) {
		if (agent && (*ret_jobs)[i].index != only.index)
			continue;
		logs->names[logs->n] = (*ret_jobs)[i].name;
		logs->indices[logs->n] = (*ret_jobs)[i].index;
		logs->since[logs->n++] = -1;
	}
	return 0;
}

static bool busy(const struct logs *logs)
{
	autofree struct cordon_job *jobs = NULL;
	struct cordon_crew_info info;
	size_t n = 0;

	if (cordon_crew_read(&logs->home, logs->run.id, &info, &jobs, &n, NULL) < 0)
		return false;
	for (size_t i = 0; i < logs->n; i++)
		for (size_t k = 0; k < n; k++)
			if (jobs[k].index == logs->indices[i] && !cordon_job_state_ended(jobs[k].state))
				return true;
	return false;
}

static int print_logs(struct logs *logs, bool follow, struct cordon_error *err)
{
	static const struct timespec pause = { .tv_nsec = FOLLOW_MS * 1000000L };
	int r = 0;

	for (bool more = true; r == 0 && more;) {
		/* Looked at before the log is read, so that the last lines of an agent are not missed. */
		more = follow && busy(logs) && !logs->view.closed && !ferror(stdout);
		r = print_new(logs, err);
		if (r == 0 && more)
			nanosleep(&pause, NULL);
	}
	return r;
}

static int run(struct cordon_cli *cli, int argc, char **argv)
{
	struct logs logs = { .cli = cli, .home = CORDON_HOME_NONE };
	autofree struct cordon_job *jobs = NULL;
	struct args args = { 0 };
	struct cordon_error err = { 0 };
	int first, r = cordon_cli_parse(cli, argc, argv, 0, set, &args, &first, &err);

	if (r != 0)
		return r > 0 ? CORDON_EXIT_OK : cordon_cli_fail(cli, &err);
	if (first < argc)
		return cordon_cli_usage(cli, "unexpected argument: %s", argv[first]);
	r = cordon_home_open(&logs.home, &err);
	if (r == 0)
		r = cordon_agent_find_run(&logs.home, args.run, &logs.run, &err);
	if (r == 0)
		r = choose(&logs, args.agent, &jobs, &err);
	if (r == 0)
		r = cordon_agent_view_init(&logs.view, cli, logs.n == 1 ? CORDON_SHOW_BYTES : CORDON_SHOW_LINES,
					   logs.run.id, &logs.home, logs.names, logs.n, &err);
	if (r == 0) {
		logs.view.one_stream = true;
		if (isatty(STDOUT_FILENO))
			logs.view.show = CORDON_SHOW_LINES; /* escaped: a log must not control the terminal */
		r = print_logs(&logs, args.follow, &err);
		cordon_agent_view_end(&logs.view);
	}
	cordon_agent_view_done(&logs.view);
	free(logs.names);
	free(logs.indices);
	free(logs.since);
	cordon_home_done(&logs.home);
	return r < 0 ? cordon_cli_fail(cli, &err) : CORDON_EXIT_OK;
}

const struct cordon_command cordon_cmd_logs = {
	.name = "logs",
	.operands = "",
	.summary = "print what agents wrote, and what happened to them",
	.details = "Lines of several agents have the name of the agent before them. A line with ! is not the agent's own: it says\n"
		   "what was refused, or how the agent ended. The log of an agent keeps its last thousand events.\n",
	.options = options,
	.run = run,
};
