/* SPDX-License-Identifier: Apache-2.0 */
/* cordon status: which agents run, and how those ended that ran. */
#include <stdio.h>
#include <time.h>

#include "agent/job.h"
#include "base/time.h"
#include "cli/agent_view.h"
#include "cli/commands.h"
#include "cli/records.h"

#define SHOWN_DEFAULT 10
#define WATCH_MS 500
#define SHORT_ID 8

enum { OPT_WATCH = 1, OPT_LIMIT };

static const struct cordon_option options[] = {
	{ "watch", 0, CORDON_ARG_NONE, NULL, "show it again when it changes, until nothing runs any more", OPT_WATCH },
	{ "limit", 0, CORDON_ARG_TEXT, "N", "how many runs that have ended are shown (default: 10)", OPT_LIMIT },
	{ 0 },
};

struct args {
	bool watch;
	size_t limit;
};

static int set(void *data, int key, const char *arg, struct cordon_error *err)
{
	struct args *args = data;

	if (key == OPT_LIMIT)
		return cordon_cli_parse_limit(arg, &args->limit, err);
	args->watch = true;
	return 0;
}

struct status {
	struct cordon_home home;
	const char *prefix; /* or NULL */
	size_t limit;
	json_t *runs; /* what --json prints */
	json_t *rows; /* what people get */
	bool busy;
};

static void add_job(struct status *s, const struct cordon_crew_info *run, const struct cordon_job *job, json_t *list)
{
	char took[32], reason[1024], started[CORDON_TIME_SIZE] = "-", code[16] = "-";

	json_array_append_new(list, cordon_agent_result(&s->home, run->id, job, 0));
	s->busy |= !cordon_job_state_ended(job->state);
	cordon_agent_duration(job, took, sizeof(took));
	cordon_agent_reason(job, reason, sizeof(reason));
	if (job->started)
		cordon_time_format(job->started, started);
	if (cordon_job_state_ended(job->state))
		snprintf(code, sizeof(code), "%d", job->own_exit);
	json_array_append_new(s->rows, json_pack("{s:s%, s:s, s:s, s:s, s:s, s:i, s:s, s:o}", "run", run->id, SHORT_ID,
						 "agent", job->name, "state", cordon_agent_state_name(job->state),
						 "time", took, "exit", code, "refused", (int)job->violations, "started",
						 started, "why", *reason ? cordon_cli_json_text(reason) : json_null()));
}

static int add_run(struct status *s, const char *id, struct cordon_error *err)
{
	autofree struct cordon_job *jobs = NULL;
	struct cordon_crew_info run;
	json_t *list = json_array();
	char created[CORDON_TIME_SIZE];
	size_t n = 0;
	int r = cordon_crew_read(&s->home, id, &run, &jobs, &n, err);

	for (size_t i = 0; r == 0 && i < n; i++)
		add_job(s, &run, &jobs[i], list);
	if (r < 0) {
		json_decref(list);
		return r;
	}
	cordon_time_format(run.created, created);
	json_array_append_new(s->runs,
			      json_pack("{s:s, s:o, s:s, s:b, s:b, s:o}", "runId", run.id, "root",
					cordon_cli_json_text(run.label + strlen(CORDON_AGENT_LABEL)), "createdAt",
					created, "detached", run.detached, "owned", run.owned, "agents", list));
	return 0;
}

/* Whether an agent of the run has not ended. */
static bool is_busy(const struct status *s, const struct cordon_crew_info *run)
{
	autofree struct cordon_job *jobs = NULL;
	struct cordon_crew_info info;
	bool busy = false;
	size_t n = 0;

	if (run->owned)
		return true;
	if (cordon_crew_read(&s->home, run->id, &info, &jobs, &n, NULL) < 0)
		return false;
	for (size_t i = 0; i < n; i++)
		busy |= !cordon_job_state_ended(jobs[i].state);
	return busy;
}

static int collect(struct status *s, struct cordon_error *err)
{
	autofree struct cordon_crew_info *runs = NULL;
	struct cordon_crew_info run;
	size_t n = 0;
	int r = 0;

	json_decref(s->runs);
	json_decref(s->rows);
	s->runs = json_array();
	s->rows = json_array();
	s->busy = false;
	if (s->prefix) {
		r = cordon_agent_find_run(&s->home, s->prefix, &run, err);
		return r < 0 ? r : add_run(s, run.id, err);
	}
	r = cordon_agent_list_runs(&s->home, &runs, &n, err);
	for (size_t i = 0; r == 0 && i < n; i++) {
		/* Somebody may remove an old run meanwhile. */
		if ((i + s->limit >= n || is_busy(s, &runs[i])) && add_run(s, runs[i].id, NULL) < 0)
			continue;
	}
	return r;
}

static void print(const struct cordon_cli *cli, const struct status *s)
{
	static const struct cordon_column columns[] = {
		{ "run", "RUN" },	  { "agent", "AGENT" }, { "state", "STATE" },
		{ "time", "TIME" },	  { "exit", "EXIT" },	{ "refused", "REFUSED" },
		{ "started", "STARTED" }, { "why", "WHY" },	{ 0 },
	};

	cordon_cli_print_table(cli, columns, s->rows);
	fflush(stdout);
}

/* Shows the table again when it has changed; on a terminal in the same place. */
static int watch(const struct cordon_cli *cli, struct status *s)
{
	static const struct timespec pause = { .tv_nsec = WATCH_MS * 1000000L };
	bool terminal = isatty(STDOUT_FILENO);
	json_auto_t *before = NULL;
	struct cordon_error err = { 0 };
	size_t lines = 0;

	for (;;) {
		if (collect(s, &err) < 0)
			return cordon_cli_fail(cli, &err);
		if (!before || terminal || !json_equal(before, s->rows)) {
			if (terminal && lines)
				printf("\r\033[%zuA\033[J", lines);
			print(cli, s);
			lines = json_array_size(s->rows) + terminal;
		}
		json_decref(before);
		before = json_deep_copy(s->rows);
		if (!s->busy || ferror(stdout))
			return CORDON_EXIT_OK;
		nanosleep(&pause, NULL);
	}
}

static int run(struct cordon_cli *cli, int argc, char **argv)
{
	struct status s = { .home = CORDON_HOME_NONE };
	struct args args = { .limit = SHOWN_DEFAULT };
	struct cordon_error err = { 0 };
	int first, code = CORDON_EXIT_OK;
	int r = cordon_cli_parse(cli, argc, argv, 0, set, &args, &first, &err);

	if (r != 0)
		return r > 0 ? CORDON_EXIT_OK : cordon_cli_fail(cli, &err);
	if (argc - first > 1)
		return cordon_cli_usage(cli, "unexpected argument: %s", argv[first + 1]);
	if (args.watch && cli->json)
		return cordon_cli_usage(cli, "--watch and --json exclude each other");
	s.prefix = first < argc ? argv[first] : NULL;
	s.limit = args.limit;
	if (cordon_home_open(&s.home, &err) < 0 || (!args.watch && collect(&s, &err) < 0))
		code = cordon_cli_fail(cli, &err);
	else if (args.watch)
		code = watch(cli, &s);
	else if (cli->json)
		code = cordon_cli_print_json(cli, json_incref(s.runs));
	else
		print(cli, &s);
	json_decref(s.runs);
	json_decref(s.rows);
	cordon_home_done(&s.home);
	return code;
}

const struct cordon_command cordon_cmd_status = {
	.name = "status",
	.operands = "[RUN]",
	.summary = "show which agents run, and how those ended that ran",
	.details = "RUN is the id that 'cordon execute' printed, or its first characters. Without it, all that runs is shown, and\n"
		   "the runs that ended last. What ended more than a week ago is removed.\n",
	.options = options,
	.run = run,
};
