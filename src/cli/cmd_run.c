/* SPDX-License-Identifier: Apache-2.0 */
/* cordon run, and what stands for a line of it: turns options into a run, reports its events, and prints its result. */
#include <fcntl.h>
#include <stdio.h>

#include "attest/attest.h"
#include "base/io.h"
#include "base/path.h"
#include "cli/commands.h"
#include "cli/git_take.h"
#include "cli/recipe_options.h"
#include "cli/reports.h"
#include "cli/run_summary.h"
#include "cli/view_summary.h"
#include "config/profile.h"
#include "loop/hook.h"
#include "policy/folders.h"
#include "run/metrics.h"
#include "sandbox/plan/plan.h"
#include "view/view.h"

enum {
	KEY_DRY_RUN = 1,
	KEY_REPORTS,
	KEY_RESULT,
	KEY_SUMMARY,
	KEY_NO_SUMMARY,
	KEY_METRICS,
	KEY_ATTEST,
};

static const struct cordon_option options[] = {
	CORDON_RECIPE_OPTIONS(CORDON_RECIPE_OF_RUN),
	CORDON_REPORTS_OPTION(KEY_REPORTS),
	{ "dry-run", 0, CORDON_ARG_NONE, NULL, "print the plan and start nothing", KEY_DRY_RUN },
	{ "result", 0, CORDON_ARG_FILE, "FILE", "write the result object to FILE", KEY_RESULT },
	{ "metrics", 0, CORDON_ARG_FILE, "FILE", "measure what cordon itself costs, and write it to FILE as JSON",
	  KEY_METRICS },
	{ "attest", 0, CORDON_ARG_FILE, "KEY", "sign with this ssh key what the run was, for 'cordon verify-run'",
	  KEY_ATTEST },
	{ "summary", 0, CORDON_ARG_NONE, NULL, "print afterwards what changed and was refused (default: on a terminal)",
	  KEY_SUMMARY },
	{ "no-summary", 0, CORDON_ARG_NONE, NULL, "print no summary", KEY_NO_SUMMARY },
	{ 0 },
};

/* What the words behind the options are. */
typedef enum line_kind {
	LINE_COMMAND, /* a command */
	LINE_CLIENT,  /* a client and its arguments: `cordon claude ...` */
	LINE_SHELL,   /* none: a shell */
} line_kind;

struct args {
	struct cordon_recipe recipe;
	line_kind line;
	char **client_argv; /* of LINE_CLIENT: with the arguments that its profile adds; texts are borrowed */
	cordon_reports_when reports;
	const char *reports_path;
	const char *result;
	const char *metrics;
	const char *attest;
	bool dry_run;
	int summary; /* key of the option that was given last, or 0 */
};

static int set(void *data, int key, const char *arg, struct cordon_error *err)
{
	struct args *args = data;

	if (cordon_recipe_owns(key))
		return cordon_cli_set(&args->recipe, key, arg, err);
	if (key == KEY_REPORTS)
		return cordon_reports_parse(arg, &args->reports, &args->reports_path, err);
	if (key == KEY_RESULT)
		args->result = arg;
	else if (key == KEY_METRICS)
		args->metrics = arg;
	else if (key == KEY_ATTEST)
		args->attest = arg;
	else if (key == KEY_DRY_RUN)
		args->dry_run = true;
	else
		args->summary = key;
	return 0;
}

struct run {
	struct cordon_cli *cli;
	struct args *args;
	const struct cordon_policy *policy; /* of the recipe */
	struct cordon_reporter reporter;
	struct cordon_run_summary summary;
	struct cordon_home home; /* open only for a view or commits */
	struct cordon_view_work work;
	struct cordon_view view; /* of --cow, after the run; open only if it has changes */
	char git_id[CORDON_ID_SIZE];
	struct cordon_attest attest; /* the rest of these is used only with --attest */
	struct cordon_attest_key key;
	struct cordon_git_take *take;
	/* The directories of --result and --metrics, opened before the agent starts, so that the agent cannot replace them by
	 * links. */
	int result_fd;
	int metrics_fd;
};

/* Opens the directory of a file that is written at the end. */
static int open_dir_of(const char *path, int *ret_fd, struct cordon_error *err)
{
	const char *base = path ? cordon_path_base(path) : NULL;
	char dir[CORDON_PATH_MAX] = ".";

	if (!base)
		return 0;
	if (base != path && cordon_copy(dir, sizeof(dir), path, (size_t)(base - path)) < 0)
		return cordon_fail_errno(err, -ENAMETOOLONG, "cannot write %s", path);
	*ret_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return *ret_fd < 0 ? cordon_fail_errno(err, -errno, "cannot write %s", path) : 0;
}

/* Called when the plan is built: what else can refuse the run refuses it here, before the agent starts. */
static int on_planned(void *data, const struct cordon_plan *plan, struct cordon_error *err)
{
	struct run *run = data;
	const struct args *asked = run->args;
	int r = open_dir_of(run->args->result, &run->result_fd, err);

	if (r == 0)
		r = open_dir_of(run->args->metrics, &run->metrics_fd, err);
	if (r == 0)
		r = cordon_reports_begin(&run->reporter.queue, asked->reports, asked->reports_path, run->policy, plan,
					 run->args->dry_run, err);
	if (r < 0)
		return r;
	cordon_reporter_plan(&run->reporter, plan);
	cordon_run_summary_begin(&run->summary);
	return 0;
}

static void on_launched(void *data, struct cordon_child *child)
{
	cordon_reporter_launched(&((struct run *)data)->reporter, child);
}

static void on_event(void *data, const struct cordon_event *event)
{
	struct run *run = data;

	cordon_reporter_event(&run->reporter, event);
	cordon_run_summary_event(&run->summary, event);
	if (run->args->attest)
		cordon_attest_event(&run->attest, event);
}

/* Says where the program is on the host, and the line that works, when it is not there inside. */
static void hint_at_program(const struct run *run, struct cordon_error *err)
{
	const char *name = run->args->recipe.spec.argv[0];
	struct cordon_profile_dirs dirs;
	char path[CORDON_PATH_MAX], profile[CORDON_PATH_MAX];
	bool own;

	if (cordon_exit_of_error(err, 0) != CORDON_EXIT_NOT_FOUND)
		return;
	if (strchr(name, '/') ? name[0] != '/' || access(name, X_OK) < 0 ||
					cordon_copy(path, sizeof(path), name, strlen(name)) < 0
			      : !cordon_program_on_path(name, getenv("PATH"), run->policy->root.path, path))
		return;
	cordon_profile_dirs_find(&dirs);
	if (cordon_profile_find(&dirs, cordon_path_base(name), profile, &own, NULL) == 0)
		cordon_error_hint(err, "on the host it is %s: cordon run --profile %s -- %s", path,
				  cordon_path_base(name), name);
	else
		cordon_error_hint(err, "on the host it is %s: cordon run --program %s -- %s", path, name, name);
}

static int print_plan(struct run *run)
{
	struct cordon_plan *plan = NULL;
	struct cordon_error err = { 0 };
	autofree char *text = NULL;
	int r = cordon_view_plan(&run->home, &run->args->recipe.spec, &run->work, &plan, &err);

	if (r == 0)
		r = on_planned(run, plan, &err);
	if (r == 0)
		r = cordon_plan_check_program(plan, &err);
	if (r == 0) {
		text = run->cli->json ? cordon_plan_to_json(plan) : cordon_plan_to_text(plan);
		if (!text)
			cordon_fail(&err, -ENOMEM, CORDON_KIND_LIMIT, "cannot print the plan");
	}
	cordon_plan_free(plan);
	if (!text) {
		hint_at_program(run, &err);
		return cordon_cli_fail(run->cli, &err);
	}
	fputs(text, stdout);
	if (run->cli->json)
		putchar('\n');
	return CORDON_EXIT_OK;
}

static void write_line(const struct run *run, int dir_fd, const char *path, const char *text)
{
	autobuf struct cordon_buf line = CORDON_BUF(SIZE_MAX / 2);
	struct cordon_error err = { 0 };

	if (dir_fd >= 0 && cordon_buf_addf(&line, "%s\n", text) == 0)
		cordon_write_file(dir_fd, cordon_path_base(path), 0644, line.data, line.len, &err);
	if (err.code)
		cordon_cli_fail(run->cli, &err);
}

static void write_metrics(const struct run *run, const struct cordon_result *result)
{
	json_auto_t *object = result->metrics ? cordon_metrics_json(result) : NULL;
	autofree char *text = NULL;

	if (!object || run->metrics_fd < 0)
		return;
	json_object_set_new(object, "session_id", json_string(result->run_id));
	json_object_set_new(object, "duration_ms", json_integer((json_int_t)result->duration_ms));
	text = json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(12));
	if (text)
		write_line(run, run->metrics_fd, run->args->metrics, text);
}

/* Writes the result to --result FILE, or with --json to stderr. Returns true in the latter case: the result then
 * carries the error. */
static bool print_result(struct run *run, const struct cordon_result *result)
{
	autofree char *text = run->cli->json || run->args->result ? cordon_result_to_json(result) : NULL;

	if (text && run->args->result) {
		write_line(run, run->result_fd, run->args->result, text);
	} else if (text) {
		cordon_report_queue_next_line(&run->reporter.queue);
		fprintf(stderr, "%s\n", text);
	}
	return run->cli->json && !run->args->result;
}

static bool wants_summary(const struct run *run, const struct cordon_result *result)
{
	/* An internal error means that the sandbox or the lens died under the command; any other error, that the
	 * command was not started. */
	bool ran = result->launched && (!result->error.code || result->error.kind == CORDON_KIND_INTERNAL);

	if (!ran || run->cli->json || run->cli->quiet || run->args->summary == KEY_NO_SUMMARY)
		return false;
	return run->args->summary == KEY_SUMMARY || isatty(STDERR_FILENO);
}

/* Says what the run is to work in. */
static int prepare_work(struct run *run, struct cordon_error *err)
{
	const struct cordon_recipe_values *values = &run->args->recipe.values;
	cordon_git_mode git = (cordon_git_mode)cordon_recipe_value(values, CORDON_RECIPE_GIT);
	bool cow = cordon_recipe_value(values, CORDON_RECIPE_COW);

	run->work = (struct cordon_view_work){ .policy = run->args->recipe.policy,
					       .cow = cow,
					       .git = cordon_cli_git_choose(run->cli, run->policy, git,
									    cow || run->args->line == LINE_CLIENT ||
										    run->args->recipe.write),
					       .git_chosen = git == CORDON_GIT_DEFAULT,
					       .ret_git_id = run->git_id,
					       .ret_take = run->args->attest ? &run->take : NULL };
	if (run->args->attest && (cordon_attest_key_open(run->args->attest, run->policy, &run->key, err) < 0 ||
				  cordon_attest_begin(&run->attest, run->policy, err) < 0))
		return err->code;
	return run->args->attest || cow || run->work.git == CORDON_GIT_COMMIT ? cordon_home_open(&run->home, err) : 0;
}

/* Opens the view of the run again, to say what is in it. */
static void open_view(struct run *run, const struct cordon_result *result)
{
	struct cordon_error err = { 0 };

	if (*result->view_id && cordon_view_open(&run->home, result->view_id, &run->view, &err) < 0)
		cordon_cli_fail(run->cli, &err);
}

/* Prints what became of commits. */
static void report_git(struct run *run, const struct cordon_result *result)
{
	json_auto_t *git = result->git ? json_loads(result->git, 0, NULL) : NULL;

	if (git)
		cordon_cli_git_report(run->cli, run->git_id, git);
}

/* Writes the attestation where people find it: in the state directory, and beside --result. */
static int keep_attestation(struct run *run, const struct cordon_attest_end *end, const struct cordon_buf *text,
			    struct cordon_error *err)
{
	CORDON_UNCLEARED char path[CORDON_PATH_MAX];
	autofree char *name = NULL;
	int r = cordon_attest_keep(&run->home, end, run->git_id, text, path, err);

	if (r == 0 && run->result_fd >= 0) {
		if (asprintf(&name, "%s" CORDON_ATTEST_SUFFIX, cordon_path_base(run->args->result)) < 0) {
			name = NULL;
			return cordon_fail_errno(err, -ENOMEM, "attestation");
		}
		r = cordon_write_file(run->result_fd, name, 0644, text->data, text->len, err);
	}
	if (r == 0)
		cordon_cli_log(run->cli, "ATTEST", "%s", path);
	return r;
}

/* A run that was to be attested and is not has failed, whatever the command did. */
static int attest(struct run *run, const struct cordon_result *result)
{
	struct cordon_attest_end end = { .spec = &run->args->recipe.spec,
					 .result = result,
					 .cow = run->work.cow,
					 .view = run->view.dir_fd >= 0 ? &run->view : NULL,
					 .take = run->take };
	autobuf struct cordon_buf text = { 0 };
	struct cordon_error err = { 0 };
	int r;

	if (!run->args->attest || !result->launched)
		return result->own_exit;
	/* What changed is in the view, or nothing was changed. */
	r = cordon_attest_make(&run->home, &run->attest, &end, &run->key, &text, &err);
	if (r == 0)
		r = keep_attestation(run, &end, &text, &err);
	if (r == 0)
		return result->own_exit;
	cordon_error_prefix(&err, r, "the run is not attested");
	r = cordon_cli_fail(run->cli, &err);
	return result->own_exit ? result->own_exit : r;
}

static int start(struct run *run)
{
	struct cordon_observer observer = { .data = run,
					    .planned = on_planned,
					    .launched = on_launched,
					    .event = on_event,
					    .reached = run->args->attest };
	struct cordon_report_queue *queue = &run->reporter.queue;
	struct cordon_result result;
	bool carries_error = false;
	int r;

	/* What a view keeps is looked at when nothing of the run is left. */
	run->args->recipe.spec.leave_init = !run->work.cow && run->work.git != CORDON_GIT_COMMIT;
	(void)cordon_view_run(&run->home, &run->args->recipe.spec, &run->work, &observer, &result, NULL);
	run->cli->last = result.init;
	open_view(run, &result);
	hint_at_program(run, &result.error);
	cordon_reporter_result(&run->reporter, &result);
	write_metrics(run, &result);
	if (*result.run_id)
		carries_error = print_result(run, &result);
	cordon_report_queue_flush(queue);
	if (result.error.code && !carries_error) {
		cordon_report_queue_next_line(queue);
		cordon_cli_fail(run->cli, &result.error);
	}
	if (wants_summary(run, &result)) {
		cordon_report_queue_next_line(queue);
		cordon_run_summary_end(&run->summary, run->cli, run->policy, run->work.cow ? &run->view : NULL, &result);
	} else if (run->view.dir_fd >= 0 && !run->cli->json && !run->cli->quiet && run->args->summary != KEY_NO_SUMMARY) {
		cordon_report_queue_next_line(queue);
		cordon_view_notice(run->cli, &run->view);
	}
	report_git(run, &result);
	r = attest(run, &result);
	cordon_result_done(&result);
	return r;
}

/* Asks the validation hooks of the settings before a run with folders. Settings that can't be read could have one. */
static int ask_hooks(struct cordon_cli *cli, const struct cordon_policy *policy)
{
	struct cordon_errors errors CORDON_CLEANUP(cordon_errors_done) = { 0 };
	struct cordon_folders folders CORDON_CLEANUP(cordon_folders_done) = { 0 };
	autosettings struct cordon_settings_file *settings = NULL;
	struct cordon_hook_ask ask = { .event = CORDON_HOOK_START, .root = &policy->root, .mode = policy->mode };
	struct cordon_error err = { 0 };

	if (!policy->folders)
		return 0;
	if (cordon_settings_load(NULL, CORDON_SETTINGS_TEXT_ONLY, &settings, &errors) < 0)
		return cordon_cli_fail_all(cli, &errors);
	if (!cordon_hooks_have(settings, CORDON_HOOK_START))
		return 0;
	if (cordon_folders_parse(policy->folders, &folders, &err) < 0)
		return cordon_cli_fail(cli, &err);
	ask.folders = (const char *const *)folders.items;
	ask.n_folders = folders.n;
	return cordon_hooks_run(settings, &ask, &err) < 0 ? cordon_cli_fail(cli, &err) : 0;
}

const char *const cordon_clients[] = { "claude", "codex", "gemini", "opencode", NULL };

/* What a client gets without options: its profile and the hosts of that, and no known secrets. A git directory of its own is
 * chosen where the root has one (prepare_work()). */
static int add_client(struct args *args, const char *name, struct cordon_error *err)
{
	struct cordon_recipe *recipe = &args->recipe;
	int r = cordon_recipe_set(recipe, CORDON_RECIPE_PROFILE, name, name, err);

	recipe->profile_net = true;
	return r < 0 ? r : cordon_recipe_set(recipe, CORDON_RECIPE_DENY_SECRETS, NULL, name, err);
}

/* Puts the arguments without which the client can't work inside behind its name. */
static int make_client_argv(struct args *args, struct cordon_error *err)
{
	const struct cordon_recipe *recipe = &args->recipe;
	const struct cordon_setting_list *more = NULL;
	char *const *given = recipe->spec.argv;
	size_t n = 0;

	for (size_t i = 0; i < recipe->n_profiles; i++)
		if (cordon_streq(recipe->profile_names[i], given[0]))
			more = &recipe->profiles[i]->argv;
	while (given[n])
		n++;
	args->client_argv = calloc(n + (more ? more->n : 0) + 1, sizeof(char *));
	if (!args->client_argv)
		return cordon_fail_errno(err, -ENOMEM, "cannot run %s", given[0]);
	args->client_argv[0] = given[0];
	for (size_t i = 0; more && i < more->n; i++)
		args->client_argv[1 + i] = (char *)(uintptr_t)more->items[i].text;
	memcpy(args->client_argv + 1 + (more ? more->n : 0), given + 1, (n - 1) * sizeof(char *));
	args->recipe.spec.argv = args->client_argv;
	return 0;
}

/* Takes what follows the options. Returns 0 or an exit status. */
static int take_line(struct cordon_cli *cli, struct args *args, int argc, char **argv, int first)
{
	static char *shell[] = { NULL, NULL };
	struct cordon_error err = { 0 };

	if (args->line == LINE_SHELL) {
		if (first < argc)
			return cordon_cli_usage(cli, "a shell takes no command; use 'cordon run -- %s'", argv[first]);
		shell[0] = access("/bin/bash", X_OK) == 0 ? "/bin/bash" : "/bin/sh";
		argv = shell;
		first = 0;
	} else if (first == argc) {
		return cordon_cli_usage(cli, "no command to run");
	}
	args->recipe.spec.argv = argv + first;
	return args->line == LINE_CLIENT && add_client(args, argv[first], &err) < 0 ? cordon_cli_fail(cli, &err) : 0;
}

static int run_with(struct cordon_cli *cli, struct args *args, int argc, char **argv)
{
	struct run run = { .cli = cli,
			   .args = args,
			   .home = CORDON_HOME_NONE,
			   .view = CORDON_VIEW_NONE,
			   .result_fd = -1,
			   .metrics_fd = -1 };
	struct cordon_error err = { 0 };
	int first, r = cordon_cli_parse(cli, argc, argv, CORDON_PARSE_STOP, set, args, &first, &err);
	size_t asked;

	if (r != 0)
		return r > 0 ? CORDON_EXIT_OK : cordon_cli_fail(cli, &err);
	r = take_line(cli, args, argc, argv, first);
	if (r)
		return r;
	args->recipe.folder_mode = CORDON_MODE_PERMISSIVE;
	args->recipe.spec.terminal = true;
	args->recipe.spec.measure = args->metrics;
	asked = args->recipe.keep_env.n;
	r = cordon_cli_compile(cli, &args->recipe, args->dry_run ? CORDON_RECIPE_PLANS : CORDON_RECIPE_STARTS);
	/* Those of the policy file follow on the options', and those of profiles, which may be there or not, come later. */
	args->recipe.spec.n_asked_env = asked + (args->recipe.file ? args->recipe.file->keep_env.n : 0);
	run.policy = args->recipe.policy;
	if (r == 0 && args->line == LINE_CLIENT && make_client_argv(args, &err) < 0)
		r = cordon_cli_fail(cli, &err);
	if (r == 0 && !args->dry_run)
		r = ask_hooks(cli, run.policy);
	if (r)
		return r;
	cordon_reporter_init(&run.reporter, cli, run.policy);
	if (prepare_work(&run, &err) < 0)
		r = cordon_cli_fail(cli, &err);
	else
		r = args->dry_run ? print_plan(&run) : start(&run);
	cordon_view_close(&run.view);
	cordon_home_done(&run.home);
	cordon_run_summary_done(&run.summary);
	cordon_attest_done(&run.attest);
	cordon_git_take_free(run.take);
	cordon_reporter_done(&run.reporter);
	cordon_closep(&run.result_fd);
	cordon_closep(&run.metrics_fd);
	return r;
}

static int run_line(struct cordon_cli *cli, line_kind what, int argc, char **argv)
{
	struct args args = { .line = what };
	int r;

	cli->failure_exit = CORDON_EXIT_REFUSED;
	r = run_with(cli, &args, argc, argv);
	cordon_recipe_done(&args.recipe);
	free(args.client_argv);
	return r;
}

static int run(struct cordon_cli *cli, int argc, char **argv)
{
	return run_line(cli, LINE_COMMAND, argc, argv);
}

static int run_shell(struct cordon_cli *cli, int argc, char **argv)
{
	return run_line(cli, LINE_SHELL, argc, argv);
}

int cordon_run_client(struct cordon_cli *cli, int argc, char **argv)
{
	cli->command = &cordon_cmd_run;
	return run_line(cli, LINE_CLIENT, argc, argv);
}

static int set_nothing(void *data, int key, const char *arg, struct cordon_error *err)
{
	(void)data;
	(void)key;
	(void)arg;
	(void)err;
	return 0;
}

int cordon_run_first_word(const struct cordon_cli *cli, int argc, char **argv)
{
	struct cordon_cli own = *cli;
	struct cordon_error err = { 0 };
	int first;

	own.command = &cordon_cmd_run;
	for (int i = 1; i < argc; i++)
		if (cordon_streq(argv[i], "--help") || cordon_streq(argv[i], "-h"))
			argc = i;
	return cordon_cli_parse(&own, argc, argv, CORDON_PARSE_STOP, set_nothing, NULL, &first, &err) == 0 && first < argc
		       ? first
		       : 0;
}

const struct cordon_command cordon_cmd_run = {
	.name = "run",
	.operands = "-- CMD [ARG]...",
	.summary = "run a command in a sandbox that the kernel holds",
	.details =
		"The agent sees the root (--root, default: the git top level), a read-only system and private /tmp, /run,\n"
		"/dev, /proc and home; nothing else of the host. Without --workspace, --rw or --ro the whole root may be\n"
		"written. What the host would execute later (git hooks and config, editor and agent settings) is protected.\n"
		"\n"
		"Exit status: the command's own; 3 with --fail-on-violation, when that is 0 and something was refused or\n"
		"warned of; 124 timed out, 125 refused or failed before it started, 126 not executable, 127 not found,\n"
		"128+N killed by signal N.\n",
	.options = options,
	.run = run,
};

const struct cordon_command cordon_cmd_shell = {
	.name = "shell",
	.operands = "",
	.summary = "look around in the sandbox that a run would have",
	.details = "Starts a shell, with the options of 'cordon run' and in the same sandbox: what the agent of such a run would see,\n"
		   "and what it could do. What the shell changes in the root is changed; with --cow it is kept apart.\n",
	.options = options,
	.run = run_shell,
};
