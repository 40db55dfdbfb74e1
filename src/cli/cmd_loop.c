/* SPDX-License-Identifier: Apache-2.0 */
/* cordon loop: has an agent do the stories of PRDs, one after the other or side by side. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/path.h"
#include "base/program.h"
#include "cli/commands.h"
#include "cli/loop_view.h"
#include "cli/manager.h"
#include "cli/recipe_options.h"
#include "config/extent.h"
#include "loop/control.h"
#include "loop/loop.h"

enum {
	OPT_PRD = 1,
	OPT_ITERATIONS,
	OPT_PARALLEL,
	OPT_WORKERS,
	OPT_VERIFY,
	OPT_CONFIRM,
	OPT_NO_VIEWS,
	OPT_FILE_SCOPE,
	OPT_UPDATE_SCOPE,
	OPT_LOG_DIR,
	OPT_METRICS,
	OPT_VERBOSE,
	OPT_UNCHECKED,
};

/* clang-format off */
static const struct cordon_option options[] = {
	{ "prd", 0, CORDON_ARG_FILE, "FILE", "the stories (default: prd.json; repeatable)", OPT_PRD },
	{ "max-iterations", 0, CORDON_ARG_TEXT, "N", "calls of the agent, failed ones included (default: 10)", OPT_ITERATIONS },
	{ "parallel", 0, CORDON_ARG_NONE, NULL, "do stories side by side that do not wait for each other", OPT_PARALLEL },
	{ "max-workers", 0, CORDON_ARG_TEXT, "N", "how many side by side (default: maxWorkers of the PRD, else 3)", OPT_WORKERS },
	{ "verify", 0, CORDON_ARG_TEXT, "COMMAND", "a result counts only if this exits with 0, run with sh -c", OPT_VERIFY },
	{ "confirm", 0, CORDON_ARG_NONE, NULL, "show each result and ask before it is taken over", OPT_CONFIRM },
	{ "no-views", 0, CORDON_ARG_NONE, NULL, "let the agent change the tree itself; excludes --parallel", OPT_NO_VIEWS },
	{ "git", 0, CORDON_ARG_CHOICE, "none|read|commit", "the repository: not there, read-only, or commits are taken over (default)", CORDON_KEY_RECIPE + CORDON_RECIPE_GIT },
	{ "fail-on-violation", 0, CORDON_ARG_NONE, NULL, "a call that was refused or warned of something has failed", CORDON_KEY_RECIPE + CORDON_RECIPE_FAIL_ON_VIOLATION },
	{ "file-scope", 0, CORDON_ARG_CHOICE, "off|warn|enforce", "the fileScope of stories (default: enforce in strict mode)", OPT_FILE_SCOPE },
	{ "update-scope", 0, CORDON_ARG_CHOICE, "off|suggest|write", "new file types in inferred fileScopes (default: suggest)", OPT_UPDATE_SCOPE },
	{ "log-dir", 0, CORDON_ARG_DIR, "DIR", "put a copy of each call's logs there", OPT_LOG_DIR },
	{ "metrics", 0, CORDON_ARG_FILE, "FILE", "write what the loop cost to FILE, as an object", OPT_METRICS },
	{ "disable-workspace-checks", 0, CORDON_ARG_NONE, NULL, "the repository is the scope, whatever the folders are", OPT_UNCHECKED },
	{ "verbose", 'v', CORDON_ARG_NONE, NULL, "print what agents write, too", OPT_VERBOSE },
	CORDON_RECIPE_OPTIONS(CORDON_RECIPE_OF_LOOP),
	{ 0 },
};
/* clang-format on */

struct args {
	struct cordon_recipe recipe;
	const char *prds[CORDON_LOOP_PRDS_MAX];
	size_t n_prds;
	unsigned int iterations, workers;
	bool parallel, confirm, no_views, verbose, unchecked;
	const char *verify, *log_dir, *metrics;
	cordon_file_scope file_scope;
	cordon_update_scope update_scope;
};

static int set_number(unsigned int *ret, const char *option, const char *arg, unsigned int max, struct cordon_error *err)
{
	uint64_t value;

	if (cordon_parse_u64(arg, 1, max, &value) < 0)
		return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "%s: not a number from 1 to %u: '%s'", option, max,
				   arg);
	*ret = (unsigned int)value;
	return 0;
}

static int set_own(struct args *args, int key, const char *arg, struct cordon_error *err)
{
	switch (key) {
	case OPT_PRD:
		if (args->n_prds == CORDON_LOOP_PRDS_MAX)
			return cordon_fail(err, -E2BIG, CORDON_KIND_USAGE, "--prd: at most %d", CORDON_LOOP_PRDS_MAX);
		args->prds[args->n_prds++] = arg;
		return 0;
	case OPT_ITERATIONS:
		return set_number(&args->iterations, "--max-iterations", arg, CORDON_LOOP_ITERATIONS_MAX, err);
	case OPT_WORKERS:
		return set_number(&args->workers, "--max-workers", arg, CORDON_PRD_WORKERS_MAX, err);
	case OPT_PARALLEL:
		args->parallel = true;
		return 0;
	case OPT_VERIFY:
		args->verify = arg;
		return 0;
	case OPT_CONFIRM:
		args->confirm = true;
		return 0;
	case OPT_NO_VIEWS:
		args->no_views = true;
		return 0;
	case OPT_FILE_SCOPE:
		args->file_scope = cordon_streq(arg, "off")    ? CORDON_FILE_SCOPE_OFF
				   : cordon_streq(arg, "warn") ? CORDON_FILE_SCOPE_WARN
							       : CORDON_FILE_SCOPE_ENFORCE;
		return 0;
	case OPT_UPDATE_SCOPE:
		args->update_scope = cordon_streq(arg, "off")	  ? CORDON_UPDATE_SCOPE_OFF
				     : cordon_streq(arg, "write") ? CORDON_UPDATE_SCOPE_WRITE
								  : CORDON_UPDATE_SCOPE_SUGGEST;
		return 0;
	case OPT_LOG_DIR:
		args->log_dir = arg;
		return 0;
	case OPT_METRICS:
		args->metrics = arg;
		return 0;
	case OPT_UNCHECKED:
		args->unchecked = true;
		return 0;
	default:
		args->verbose = true;
		return 0;
	}
}

static int set(void *data, int key, const char *arg, struct cordon_error *err)
{
	struct args *args = data;

	return cordon_recipe_owns(key) ? cordon_cli_set(&args->recipe, key, arg, err) : set_own(args, key, arg, err);
}

/* ---- what the loop gets ---- */

struct looping {
	struct cordon_cli *cli;
	struct args *args;
	const struct cordon_policy *policy; /* of the options alone */
	struct cordon_settings_file *settings;
	struct cordon_home home;
	struct cordon_loop_options options;
	struct cordon_loop_prd prds[CORDON_LOOP_PRDS_MAX];
	char *paths[CORDON_LOOP_PRDS_MAX];
	char *lists[CORDON_LOOP_PRDS_MAX]; /* the folders, for building policies */
	const char **items[CORDON_LOOP_PRDS_MAX];
	struct cordon_extent extents[CORDON_LOOP_PRDS_MAX];
	unsigned int max_workers; /* of the PRDs, the most */
	char log_dir[CORDON_PATH_MAX];
	struct cordon_loop_view view;
};

static void looping_done(struct looping *l)
{
	cordon_loop_view_done(&l->view);
	for (size_t i = 0; i < CORDON_LOOP_PRDS_MAX; i++) {
		free(l->paths[i]);
		free(l->lists[i]);
		free(l->items[i]);
		cordon_extent_done(&l->extents[i]);
	}
	cordon_settings_freep(&l->settings);
	cordon_home_done(&l->home);
}

/* Makes the policy of a call: that of the options, with the folders of the PRD. */
static int make_policy(void *data, const struct cordon_loop_scope *scope, struct cordon_policy **ret_policy,
		       struct cordon_error *err)
{
	const struct looping *l = data;
	size_t i = scope->prd ? (size_t)(scope->prd - l->prds) : 0;
	cordon_mode mode = !scope->prd || scope->strict ? CORDON_MODE_STRICT : scope->prd->mode;
	const char *list = !scope->prd ? NULL : l->lists[i] ? l->lists[i] : "";
	CORDON_CLEANUP(cordon_policy_freep) struct cordon_policy *policy = NULL;
	int r = cordon_recipe_again(&l->args->recipe, list, mode, &policy, err);

	/* What the preset of a PRD protects holds for all its stories, and for runs beside them. */
	for (size_t k = 0; r == 0 && k < l->options.n_prds; k++)
		for (const struct cordon_preset *p = l->extents[k].presets[1]; r == 0 && p; p = p->parent)
			for (size_t n = 0; r == 0 && n < p->protected_paths.n; n++)
				r = cordon_policy_add_protected(policy, p->protected_paths.items[n].text,
								p->protected_paths.items[n].where, false, err);
	if (r == 0)
		r = cordon_recipe_share(&l->args->recipe, policy, err);
	if (r == 0)
		*ret_policy = cordon_steal_ptr(&policy);
	return r;
}

/* The agent: the command line's, that of the settings, or claude. */
static int choose_agent(struct looping *l, char **argv, struct cordon_error *err)
{
	struct cordon_errors errors CORDON_CLEANUP(cordon_errors_done) = { 0 };
	const struct cordon_provider *provider = NULL;
	char path[CORDON_PATH_MAX];
	int r;

	r = cordon_settings_load(NULL, CORDON_SETTINGS_TEXT_ONLY, &l->settings, &errors);
	if (r < 0 || errors.n)
		return cordon_errors_first(&errors, err);
	l->options.settings = l->settings;
	if (*argv) {
		l->options.argv = argv;
		return 0;
	}
	provider = l->settings->loop;
	r = provider ? 0 : cordon_settings_provider(l->settings, "anthropic", &provider, err);
	if (r < 0)
		return r;
	if (!cordon_program_on_path(provider->command[0], getenv("PATH"), NULL, path) && provider->command[0][0] != '/') {
		r = cordon_fail(err, -ENOENT, CORDON_KIND_USAGE, "no agent: %s is not installed", provider->command[0]);
		cordon_error_hint(err, "give one after --, or set defaults.loop.command in the settings");
		return r;
	}
	l->options.argv = provider->command;
	if (provider->profile)
		r = cordon_recipe_set(&l->args->recipe, CORDON_RECIPE_PROFILE, provider->profile, "profile", err);
	for (size_t i = 0; r == 0 && i < provider->env_pass.n; i++)
		r = cordon_recipe_set(&l->args->recipe, CORDON_RECIPE_KEEP_ENV, provider->env_pass.items[i].text,
				      "env_pass", err);
	for (size_t i = 0; r == 0 && i < provider->n_env; i++)
		r = cordon_recipe_add_env(&l->args->recipe, provider->env[i].name, provider->env[i].value, err);
	return r;
}

/* ---- PRDs and their folders ---- */

/* The PRD by its own path: what the loop writes and the sandbox protects must be one file. */
static int name_prd(struct looping *l, size_t i, const char *name, struct cordon_error *err)
{
	char *path = NULL;
	int r = cordon_loop_prd_path(name, &path, err);

	if (r < 0)
		return r;
	for (size_t k = 0; k < i; k++)
		if (cordon_streq(l->paths[k], path)) {
			free(path);
			return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "--prd: %s is named twice", name);
		}
	l->paths[i] = path;
	return 0;
}

/* Joins the lists of all --workspace to one, or takes that of the variable; NULL when there is none. */
static char *folder_list(const struct looping *l, const struct cordon_recipe_variables *env)
{
	const struct cordon_recipe *recipe = &l->args->recipe;
	autobuf struct cordon_buf list = CORDON_BUF(1u << 21);
	bool scoped = recipe->policy_path;

	for (size_t i = 0; i < recipe->n_rules; i++) {
		cordon_rule_kind kind = recipe->rules[i].kind;

		scoped |= kind == CORDON_RULE_WRITE || kind == CORDON_RULE_READ;
		if (kind == CORDON_RULE_FOLDERS &&
		    cordon_buf_addf(&list, "%s%s", list.len ? "," : "", recipe->rules[i].text) < 0)
			return NULL;
	}
	if (!list.len && !scoped && env->folders && cordon_buf_adds(&list, env->folders) < 0)
		return NULL;
	return list.len ? cordon_buf_steal(&list) : NULL;
}

/* The mode that options, variables, a policy file or a preset ask for. */
static bool mode_is_given(const struct looping *l, const struct cordon_recipe_variables *env)
{
	const struct cordon_recipe *recipe = &l->args->recipe;

	return recipe->values.where[CORDON_RECIPE_MODE] || env->has_mode ||
	       (recipe->file && recipe->file->values.where[CORDON_RECIPE_MODE]) ||
	       cordon_preset_with_mode(recipe->preset);
}

/* Finds the folders and the mode of a PRD: what options and variables say, and the PRD can only narrow that. */
static int find_folders(struct looping *l, size_t i, const struct cordon_recipe_variables *env,
			struct cordon_errors *errors)
{
	struct cordon_extent *ws = &l->extents[i];
	const struct cordon_recipe *recipe = &l->args->recipe;
	struct cordon_loop_prd *prd = &l->prds[i];
	bool off = env->disabled || l->args->unchecked, given = mode_is_given(l, env);
	autofree char *list = off ? NULL : folder_list(l, env);
	autoprd struct cordon_prd *read = NULL;
	int r = cordon_prd_load(l->paths[i], &read, errors);

	if (r == 0 && list)
		r = cordon_extent_narrow_list(ws, &l->policy->root, list, errors);
	if (r == 0 && recipe->preset_name && !off)
		r = cordon_extent_narrow_preset(ws, &l->policy->root, l->settings, recipe->preset_name, errors);
	if (r == 0 && !off)
		r = cordon_extent_narrow_prd(ws, &l->policy->root, read, l->settings, errors);
	if (r < 0)
		return r;
	*prd = (struct cordon_loop_prd){ .path = l->paths[i],
					 .mode = ws->limited && !given ? CORDON_MODE_PERMISSIVE : l->policy->mode };
	if (ws->has_mode && ws->mode == CORDON_MODE_STRICT)
		prd->mode = CORDON_MODE_STRICT;
	if (ws->limited) {
		l->lists[i] = cordon_extent_list(ws);
		l->items[i] = calloc(ws->n + 1, sizeof(**l->items));
	}
	for (size_t k = 0; l->items[i] && k < ws->n; k++)
		l->items[i][k] = ws->folders[k].path;
	prd->folders = l->lists[i];
	prd->items = l->items[i];
	prd->n_items = l->items[i] ? ws->n : 0;
	l->max_workers = read->parallel_enabled && read->max_workers > l->max_workers ? read->max_workers
										      : l->max_workers;
	return 0;
}

/* A bad folder has a wording of its own, which scripts know. */
static int report(const struct looping *l, const struct cordon_errors *errors)
{
	int code = 0;

	for (size_t i = 0; i < errors->n; i++) {
		if (strncmp(errors->items[i].message, "Workspace folder ", 17) == 0)
			cordon_manager_report_folder(l->cli, &errors->items[i]);
		else
			code = cordon_cli_fail(l->cli, &errors->items[i]);
	}
	return code ? code : CORDON_EXIT_NO;
}

/* Returns 0, or an exit code after having printed every error. */
static int open_prds(struct looping *l)
{
	struct cordon_errors errors CORDON_CLEANUP(cordon_errors_done) = { 0 };
	struct cordon_recipe_variables env;
	struct cordon_error err = { 0 };

	if (cordon_manager_env(&env, &err) < 0)
		return cordon_cli_fail(l->cli, &err);
	if (!l->args->n_prds)
		l->args->prds[l->args->n_prds++] = CORDON_LOOP_PRD;
	for (size_t i = 0; i < l->args->n_prds; i++)
		if (name_prd(l, i, l->args->prds[i], &err) < 0)
			return cordon_cli_fail(l->cli, &err);
		else
			(void)find_folders(l, i, &env, &errors);
	l->options.prds = l->prds;
	l->options.n_prds = l->args->n_prds;
	return errors.n ? report(l, &errors) : 0;
}

/* The words that people and scripts know: where the loop works, and how. */
static void announce(const struct looping *l)
{
	for (size_t i = 0; i < l->options.n_prds; i++) {
		const struct cordon_loop_prd *prd = &l->prds[i];
		struct cordon_manager manager = { .cli = l->cli,
						  .mode = prd->mode,
						  .disabled = !prd->folders,
						  .list = l->lists[i],
						  .root = l->policy->root };

		if (l->options.n_prds > 1)
			cordon_cli_log(l->cli, "INFO", "PRD: %s", prd->path);
		if (!prd->folders) {
			cordon_cli_log(l->cli, "INFO", "Workspace sandboxing: Disabled");
			continue;
		}
		cordon_manager_announce(&manager);
		for (size_t k = 0; k < prd->n_items; k++)
			cordon_cli_workspace_log(l->cli, "Validated workspace folder: %s", prd->items[k]);
		cordon_cli_workspace_log(l->cli, "All workspace folders validated");
		cordon_cli_log(l->cli, "INFO", "Workspace sandboxing: Enabled (mode: %s)", cordon_mode_name(prd->mode));
	}
}

/* ---- running ---- */

/* How many stories are done side by side. */
static unsigned int count_workers(const struct looping *l)
{
	if (l->args->workers)
		return l->args->workers;
	if (!l->args->parallel)
		return 1;
	return l->max_workers ? l->max_workers : CORDON_LOOP_WORKERS;
}

static int fill_options(struct looping *l, struct cordon_error *err)
{
	struct cordon_loop_options *o = &l->options;
	const struct args *args = l->args;
	char cwd[CORDON_PATH_MAX];

	o->root = l->policy->root.path;
	o->spec = args->recipe.spec;
	o->spec.policy = NULL;
	o->spec.timeout_ms = o->spec.timeout_ms ? o->spec.timeout_ms : CORDON_LOOP_TIMEOUT_MS;
	o->verify = args->verify;
	o->max_iterations = args->iterations ? args->iterations : CORDON_LOOP_ITERATIONS;
	o->workers = count_workers(l);
	o->confirm = args->confirm;
	o->no_views = args->no_views;
	o->git = (cordon_git_mode)cordon_recipe_value(&args->recipe.values, CORDON_RECIPE_GIT);
	o->file_scope = args->file_scope;
	o->update_scope = args->update_scope;
	o->observer = (struct cordon_loop_observer){ .data = &l->view,
						     .maker = l,
						     .policy = make_policy,
						     .output = cordon_loop_view_output,
						     .event = cordon_loop_view_event,
						     .violation = cordon_loop_view_violation,
						     .confirm = cordon_loop_view_confirm,
						     .tick = cordon_loop_view_tick };
	if (args->log_dir) {
		if ((args->log_dir[0] != '/' && !getcwd(cwd, sizeof(cwd))) ||
		    cordon_path_join(args->log_dir[0] == '/' ? "" : cwd, args->log_dir, l->log_dir,
				     sizeof(l->log_dir)) < 0)
			return cordon_fail_errno(err, -ENAMETOOLONG, "--log-dir");
		o->log_dir = l->log_dir;
	}
	return 0;
}

/* Opens the directory of --metrics before an agent starts, so that no agent can replace it by a link. */
static int open_metrics(const struct looping *l, int *ret_fd, struct cordon_error *err)
{
	const char *base = l->args->metrics ? cordon_path_base(l->args->metrics) : NULL;
	char dir[CORDON_PATH_MAX] = ".";

	if (!base)
		return 0;
	if (base != l->args->metrics &&
	    cordon_copy(dir, sizeof(dir), l->args->metrics, (size_t)(base - l->args->metrics)) < 0)
		return cordon_fail_errno(err, -ENAMETOOLONG, "--metrics");
	*ret_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return *ret_fd < 0 ? cordon_fail_errno(err, -errno, "cannot write %s", l->args->metrics) : 0;
}

static void write_metrics(const struct looping *l, int fd, const struct cordon_loop *loop,
			  const struct cordon_loop_summary *summary)
{
	json_auto_t *object = fd < 0 ? NULL : cordon_loop_view_json(loop, summary);
	autofree char *text = object ? json_dumps(object, JSON_INDENT(2)) : NULL;
	autobuf struct cordon_buf line = CORDON_BUF(SIZE_MAX / 2);
	struct cordon_error err = { 0 };

	if (text && cordon_buf_addf(&line, "%s\n", text) == 0 &&
	    cordon_write_file(fd, cordon_path_base(l->args->metrics), 0644, line.data, line.len, &err) < 0)
		cordon_cli_fail(l->cli, &err);
}

static int work(struct looping *l)
{
	struct cordon_errors errors CORDON_CLEANUP(cordon_errors_done) = { 0 };
	struct cordon_loop_summary summary = { 0 };
	struct cordon_error err = { 0 };
	struct cordon_loop *loop = NULL;
	autofd int metrics = -1;
	int r, code;

	if (open_metrics(l, &metrics, &err) < 0)
		return cordon_cli_fail(l->cli, &err);
	if (cordon_loop_open(&l->home, &l->options, &loop, &errors) < 0)
		return cordon_cli_fail_all(l->cli, &errors);
	r = cordon_loop_work(loop, &summary, &err);
	cordon_loop_view_end(&l->view, loop, &summary);
	write_metrics(l, metrics, loop, &summary);
	code = r < 0								   ? cordon_cli_fail(l->cli, &err)
	       : summary.signal							   ? CORDON_EXIT_SIGNAL + summary.signal
	       : summary.passed == cordon_loop_count(loop) && !summary.unconfirmed ? CORDON_EXIT_OK
										   : CORDON_EXIT_NO;
	cordon_loop_close(loop);
	return code;
}

static int run_with(struct cordon_cli *cli, struct looping *l, int argc, char **argv)
{
	struct cordon_error err = { 0 };
	int first, r = cordon_cli_parse(cli, argc, argv, CORDON_PARSE_STOP, set, l->args, &first, &err);

	if (r != 0)
		return r > 0 ? CORDON_EXIT_OK : cordon_cli_fail(cli, &err);
	if (l->args->no_views && (l->args->parallel || l->args->workers > 1))
		return cordon_cli_usage(cli, "--no-views and --parallel exclude each other");
	if (l->args->no_views && l->args->confirm)
		return cordon_cli_usage(cli, "--no-views and --confirm exclude each other");
	if (choose_agent(l, argv + first, &err) < 0)
		return cordon_cli_fail(cli, &err);
	l->args->recipe.folder_mode = CORDON_MODE_PERMISSIVE;
	r = cordon_cli_compile(cli, &l->args->recipe, CORDON_RECIPE_STARTS);
	l->policy = l->args->recipe.policy;
	if (r)
		return r;
	r = open_prds(l);
	if (r)
		return r;
	if (fill_options(l, &err) < 0 || cordon_home_open(&l->home, &err) < 0)
		return cordon_cli_fail(cli, &err);
	cordon_loop_view_init(&l->view, cli, l->args->verbose);
	announce(l);
	return work(l);
}

static int run(struct cordon_cli *cli, int argc, char **argv)
{
	struct args args = { 0 };
	struct looping *l = calloc(1, sizeof(*l));
	struct cordon_error err = { 0 };
	int r;

	cli->failure_exit = CORDON_EXIT_NO;
	if (!l) {
		cordon_fail_errno(&err, -ENOMEM, "the loop");
		return cordon_cli_fail(cli, &err);
	}
	*l = (struct looping){ .cli = cli, .args = &args, .home = CORDON_HOME_NONE };
	r = run_with(cli, l, argc, argv);
	looping_done(l);
	free(l);
	cordon_recipe_done(&args.recipe);
	return r;
}

const struct cordon_command cordon_cmd_loop = {
	.name = "loop",
	.operands = "[-- CMD [ARG]...]",
	.summary = "have an agent do the stories of a PRD, each in a sandbox and a view of its own",
	.details =
		"Ready stories are done in the order of their priority. Each call of CMD gets its prompt on standard input, or\n"
		"in a file that {prompt_file} in CMD stands for. A story passes when CMD exits with 0 and its result passes the\n"
		"checks; only then is the result taken over, and \"passes\" set in the PRD. A story that fails three times is\n"
		"parked. An interrupted loop goes on when it is started again. Without CMD the agent is defaults.loop.command\n"
		"of the settings, else claude.\n"
		"\n"
		"Exit status: 0 all stories pass, 1 not all do or the loop was refused, 2 wrong usage, 128+N stopped by signal N.\n",
	.options = options,
	.run = run,
};
