/* SPDX-License-Identifier: Apache-2.0 */
/* cordon run: policy, plan, launch, supervise. */
#include <fcntl.h>
#include <stdio.h>

#include "base/io.h"
#include "base/path.h"
#include "cli/commands.h"
#include "cli/run_session.h"
#include "cli/run_summary.h"
#include "sandbox/report.h"

enum {
	KEY_DRY_RUN = 1,
	KEY_RESULT,
	KEY_SUMMARY,
	KEY_NO_SUMMARY,
};

static const struct cordon_option options[] = {
	CORDON_SCOPE_OPTIONS,
	CORDON_RUN_OPTIONS,
	{ "lens", 0, CORDON_ARG_CHOICE, "auto|always|never",
	  "judge names at every operation (default: where a pattern needs it)", CORDON_RUN_LENS },
	{ "best-effort", 0, CORDON_ARG_NONE, NULL, "run with fewer layers where the kernel lacks some",
	  CORDON_RUN_BEST_EFFORT },
	{ "dry-run", 0, CORDON_ARG_NONE, NULL, "print the plan and start nothing", KEY_DRY_RUN },
	{ "result", 0, CORDON_ARG_FILE, "FILE", "write the result object to FILE", KEY_RESULT },
	{ "summary", 0, CORDON_ARG_NONE, NULL, "say afterwards what changed and was refused (default: on a terminal)",
	  KEY_SUMMARY },
	{ "no-summary", 0, CORDON_ARG_NONE, NULL, "do not", KEY_NO_SUMMARY },
	{ 0 },
};

struct args {
	struct cordon_run_options run;
	const char *result;
	bool dry_run;
	int summary; /* key of the option that was given last, or 0 */
};

static int set(void *data, int key, const char *arg, struct cordon_error *err)
{
	struct args *args = data;

	if (cordon_run_options_own(key))
		return cordon_run_options_set(&args->run, key, arg, err);
	if (key == KEY_RESULT)
		args->result = arg;
	else if (key == KEY_DRY_RUN)
		args->dry_run = true;
	else
		args->summary = key;
	return 0;
}

struct run {
	struct cordon_cli *cli;
	struct args *args;
	struct cordon_run_session session;
	int result_fd; /* the directory of --result, opened before the agent could put a link there */
	struct cordon_run_summary summary;
};

static int print_plan(const struct run *run)
{
	autobuf struct cordon_buf text = CORDON_BUF(16 << 20);
	struct cordon_error err = { 0 };

	if (run->cli->json)
		return cordon_cli_print_json(run->cli, cordon_plan_json(run->session.plan));
	if (cordon_plan_text(run->session.plan, &text) < 0) {
		cordon_fail(&err, -ENOMEM, CORDON_KIND_LIMIT, "cannot print the plan");
		return cordon_cli_fail(run->cli, &err);
	}
	fwrite(text.data, 1, text.len, stdout);
	return CORDON_EXIT_OK;
}

static int open_result(struct run *run, struct cordon_error *err)
{
	const char *base = run->args->result ? cordon_path_base(run->args->result) : NULL;
	char dir[CORDON_PATH_MAX] = ".";

	if (!base)
		return 0;
	if (base != run->args->result &&
	    cordon_copy(dir, sizeof(dir), run->args->result, (size_t)(base - run->args->result)) < 0)
		return cordon_fail_errno(err, -ENAMETOOLONG, "cannot write the result");
	run->result_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return run->result_fd < 0 ? cordon_fail_errno(err, -errno, "cannot write %s", run->args->result) : 0;
}

/* The result goes to --result FILE, with --json to stderr. */
static void print_result(const struct run *run, const struct cordon_child *child, const struct cordon_result *result)
{
	json_t *object;
	char *text;

	if (!run->cli->json && !run->args->result)
		return;
	object = cordon_result_json(run->session.id, run->session.plan, child, result);
	text = object ? json_dumps(object, JSON_COMPACT) : NULL;
	json_decref(object);
	if (!text)
		return;
	if (run->args->result) {
		autobuf struct cordon_buf line = CORDON_BUF(SIZE_MAX / 2);
		struct cordon_error err = { 0 };

		if (run->result_fd >= 0 && cordon_buf_addf(&line, "%s\n", text) == 0)
			cordon_write_file(run->result_fd, cordon_path_base(run->args->result), 0644, line.data,
					  line.len, &err);
		if (err.code)
			cordon_cli_fail(run->cli, &err);
	} else {
		fprintf(stderr, "%s\n", text);
	}
	free(text);
}

static int refuse(struct run *run, const struct cordon_error *err)
{
	struct cordon_result result = { .state = CORDON_STATE_REFUSED, .exit_code = -1, .error = *err };

	clock_gettime(CLOCK_REALTIME, &result.started);
	result.ended = result.started;
	cordon_run_events_refused(&run->session.events, err);
	if (run->cli->json || run->args->result)
		print_result(run, NULL, &result);
	if (run->cli->json && !run->args->result)
		return err->kind == CORDON_KIND_USAGE ? CORDON_EXIT_USAGE : CORDON_EXIT_REFUSED;
	return cordon_cli_fail(run->cli, err);
}

static void on_event(void *data, const struct cordon_event *event)
{
	struct run *run = data;

	cordon_run_events_take(&run->session.events, event);
	cordon_run_summary_event(&run->summary, event);
}

static bool wants_summary(const struct run *run, const struct cordon_result *result)
{
	/* Other errors say that the command was not started; this one, that its sandbox or the lens died under it. */
	bool ran = !result->error.code || result->error.kind == CORDON_KIND_INTERNAL;

	if (!ran || run->cli->json || run->args->summary == KEY_NO_SUMMARY)
		return false;
	return run->args->summary == KEY_SUMMARY || isatty(STDERR_FILENO);
}

static int start(struct run *run, char **argv)
{
	struct cordon_observer observer = { .event = on_event, .data = run };
	struct cordon_child child;
	struct cordon_result result;
	struct cordon_error err = { 0 };

	if (open_result(run, &err) < 0 || cordon_run_session_plan(&run->session, argv, &err) < 0)
		return refuse(run, &err);
	if (run->args->dry_run)
		return print_plan(run);
	cordon_run_summary_begin(&run->summary);
	if (cordon_run_session_run(&run->session, &observer, &child, &result, &err) < 0)
		return refuse(run, &err);
	print_result(run, &child, &result);
	cordon_voice_flush(&run->session.events.voice);
	if (result.error.code && !(run->cli->json && !run->args->result))
		cordon_cli_fail(run->cli, &result.error);
	if (wants_summary(run, &result))
		cordon_run_summary_end(&run->summary, run->cli, &child);
	return result.own_exit;
}

static int run_with(struct cordon_cli *cli, struct args *args, int argc, char **argv)
{
	struct run run = { .cli = cli, .args = args, .session = CORDON_RUN_SESSION(cli, &args->run), .result_fd = -1 };
	struct cordon_error err = { 0 };
	int first, r = cordon_cli_parse(cli, argc, argv, CORDON_PARSE_STOP, set, args, &first, &err);

	if (r != 0)
		return r > 0 ? CORDON_EXIT_OK : cordon_cli_fail(cli, &err);
	if (first == argc)
		return cordon_cli_usage(cli, "no command to run");
	args->run.scope.folder_mode = CORDON_MODE_PERMISSIVE;
	run.session.dry = args->dry_run;
	r = cordon_run_session_open(&run.session);
	if (r == 0)
		r = start(&run, argv + first);
	cordon_run_summary_done(&run.summary);
	cordon_run_session_done(&run.session);
	cordon_closep(&run.result_fd);
	return r;
}

static int run(struct cordon_cli *cli, int argc, char **argv)
{
	struct args args = { .run.table = options };
	int r;

	cli->failure_exit = CORDON_EXIT_REFUSED;
	r = run_with(cli, &args, argc, argv);
	cordon_run_options_done(&args.run);
	return r;
}

const struct cordon_command cordon_cmd_run = {
	.name = "run",
	.operands = "-- CMD [ARG]...",
	.summary = "run a command in a sandbox that the kernel holds",
	.details = "The agent sees the root (--root, default: the git top level), a read-only system and private /tmp, /run,\n"
		   "/dev, /proc and home; nothing else of the host. Without --workspace, --rw or --ro the whole root may be\n"
		   "written. What the host would execute later (git hooks and config, editor and agent settings) is protected.\n"
		   "\n"
		   "Exit status: the command's own; 124 timed out, 125 refused or failed before it started, 126 not\n"
		   "executable, 127 not found, 128+N killed by signal N.\n",
	.options = options,
	.run = run,
};
