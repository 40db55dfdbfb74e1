/* SPDX-License-Identifier: Apache-2.0 */
/* cordon run: policy, plan, launch, supervise. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "audit/audit.h"
#include "base/home.h"
#include "base/io.h"
#include "base/path.h"
#include "base/tree.h"
#include "cli/commands.h"
#include "cli/run_events.h"
#include "cli/scope.h"
#include "config/values.h"
#include "sandbox/launch.h"
#include "sandbox/report.h"
#include "sandbox/runs.h"

enum {
	KEY_AT,
	KEY_ENV,
	KEY_KEEP_ENV,
	KEY_HOME,
	KEY_SHARE,
	KEY_NET,
	KEY_TIMEOUT,
	KEY_GRACE,
	KEY_MEMORY,
	KEY_PIDS,
	KEY_CPUS,
	KEY_TMP_SIZE,
	KEY_LENS,
	KEY_BEST_EFFORT,
	KEY_DRY_RUN,
	KEY_RESULT,
};

static const struct cordon_option options[] = {
	CORDON_SCOPE_OPTIONS,
	{ "at", 0, CORDON_ARG_TEXT, "PATH", "where the agent sees the root (default: the same path)", KEY_AT },
	{ "env", 0, CORDON_ARG_TEXT, "NAME=VALUE", "set a variable (repeatable)", KEY_ENV },
	{ "keep-env", 0, CORDON_ARG_TEXT, "NAME", "pass a variable on (repeatable)", KEY_KEEP_ENV },
	{ "home", 0, CORDON_ARG_DIR, "DIR", "home directory that stays (default: private and empty)", KEY_HOME },
	{ "share", 0, CORDON_ARG_DIR, "DIR[:PATH][:ro]", "show another host directory (repeatable)", KEY_SHARE },
	{ "net", 0, CORDON_ARG_CHOICE, "host|none", "network: the host's, or only a loopback of its own", KEY_NET },
	{ "timeout", 0, CORDON_ARG_TEXT, "DURATION", "end the run after this time (90, 90s, 1500ms, 2m, 1h)", KEY_TIMEOUT },
	{ "grace", 0, CORDON_ARG_TEXT, "DURATION", "time between SIGTERM and SIGKILL (default: 5s)", KEY_GRACE },
	{ "memory", 0, CORDON_ARG_TEXT, "SIZE", "memory of the whole run (512M, 2G)", KEY_MEMORY },
	{ "pids", 0, CORDON_ARG_TEXT, "N", "processes and threads of the run", KEY_PIDS },
	{ "cpus", 0, CORDON_ARG_TEXT, "N", "CPUs the run may use (2, 0.5)", KEY_CPUS },
	{ "tmp-size", 0, CORDON_ARG_TEXT, "SIZE", "bytes of the private /tmp, /run and home (default: 2G)", KEY_TMP_SIZE },
	{ "lens", 0, CORDON_ARG_CHOICE, "auto|always|never", "judge names at every operation (default: where a pattern needs it)",
	  KEY_LENS },
	{ "best-effort", 0, CORDON_ARG_NONE, NULL, "run with fewer layers where the kernel lacks some", KEY_BEST_EFFORT },
	{ "dry-run", 0, CORDON_ARG_NONE, NULL, "print the plan and start nothing", KEY_DRY_RUN },
	{ "result", 0, CORDON_ARG_FILE, "FILE", "write the result object to FILE", KEY_RESULT },
	{ 0 },
};

/* A list of strings or shares that grows with the options. */
struct list {
	char **items;
	size_t n;
};

struct args {
	struct cordon_scope scope;
	const char *at, *home, *result;
	struct list env, keep_env;
	struct cordon_share_value *shares;
	size_t n_shares;
	bool net_given;
	cordon_net net;
	uint64_t timeout_ms, grace_ms, memory, pids, cpus, tmp_size;
	bool best_effort, dry_run;
	cordon_lens_use lens;
};

static int append(struct list *list, const char *text, struct cordon_error *err)
{
	char **bigger = realloc(list->items, (list->n + 1) * sizeof(*bigger));

	if (bigger)
		list->items = bigger;
	if (!bigger || !(list->items[list->n] = strdup(text)))
		return cordon_fail_errno(err, -ENOMEM, "options");
	list->n++;
	return 0;
}

static int append_share(struct args *args, const struct cordon_share_value *share, struct cordon_error *err)
{
	struct cordon_share_value *bigger = realloc(args->shares, (args->n_shares + 1) * sizeof(*bigger));

	if (!bigger)
		return cordon_fail_errno(err, -ENOMEM, "options");
	args->shares = bigger;
	args->shares[args->n_shares++] = *share;
	return 0;
}

static int set_env(struct args *args, const char *arg, struct cordon_error *err)
{
	size_t n = strcspn(arg, "=");
	int r = cordon_env_name_check(arg, n, err);

	if (r < 0)
		return r;
	if (!arg[n])
		return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "%s has no value; use NAME=VALUE, or --keep-env NAME", arg);
	return append(&args->env, arg, err);
}

/* A relative host directory of an option is relative to the current directory. */
static int absolute(const char *path, char ret[static CORDON_PATH_MAX], struct cordon_error *err)
{
	char cwd[CORDON_PATH_MAX];

	if (path[0] == '/')
		return cordon_copy(ret, CORDON_PATH_MAX, path, strlen(path)) < 0 ? cordon_fail_errno(err, -ENAMETOOLONG, "%s", path) : 0;
	if (!getcwd(cwd, sizeof(cwd)))
		return cordon_fail_errno(err, -errno, "cannot tell the current directory");
	return cordon_path_join(cwd, path, ret, CORDON_PATH_MAX) < 0 ? cordon_fail_errno(err, -ENAMETOOLONG, "%s", path) : 0;
}

static int set_share(struct args *args, const char *arg, struct cordon_error *err)
{
	struct cordon_share_value share = { 0 };
	char source[CORDON_PATH_MAX];
	int r = cordon_share_parse(arg, &share, err);

	if (r < 0)
		return r;
	r = absolute(share.source, source, err);
	if (r == 0) {
		free(share.source);
		share.source = strdup(source);
		r = share.source ? append_share(args, &share, err) : cordon_fail_errno(err, -ENOMEM, "options");
	}
	if (r < 0)
		cordon_share_done(&share);
	return r;
}

static int set_value(struct args *args, int key, const char *arg, struct cordon_error *err)
{
	switch (key) {
	case KEY_NET:
		args->net_given = true;
		return cordon_net_parse(arg, &args->net, err);
	case KEY_TIMEOUT:
		return cordon_timeout_parse(arg, &args->timeout_ms, err);
	case KEY_GRACE:
		return cordon_timeout_parse(arg, &args->grace_ms, err);
	case KEY_MEMORY:
		return cordon_memory_parse(arg, &args->memory, err);
	case KEY_TMP_SIZE:
		return cordon_memory_parse(arg, &args->tmp_size, err);
	case KEY_PIDS:
		return cordon_pids_parse(arg, &args->pids, err);
	case KEY_CPUS:
		return cordon_cpus_parse(arg, &args->cpus, err);
	case KEY_ENV:
		return set_env(args, arg, err);
	case KEY_KEEP_ENV:
		return cordon_env_name_check(arg, strlen(arg), err) < 0 ? -EINVAL : append(&args->keep_env, arg, err);
	default:
		return set_share(args, arg, err);
	}
}

static int set(void *data, int key, const char *arg, struct cordon_error *err)
{
	struct args *args = data;
	int r;

	if (cordon_scope_owns(key))
		return cordon_scope_set(&args->scope, key, arg, err);
	switch (key) {
	case KEY_AT:
		args->at = arg;
		return 0;
	case KEY_HOME:
		args->home = arg;
		return 0;
	case KEY_RESULT:
		args->result = arg;
		return 0;
	case KEY_LENS:
		args->lens = cordon_streq(arg, "always") ? CORDON_LENS_ALWAYS :
			     cordon_streq(arg, "never")	 ? CORDON_LENS_NEVER :
							   CORDON_LENS_AUTO;
		return 0;
	case KEY_BEST_EFFORT:
		args->best_effort = true;
		return 0;
	case KEY_DRY_RUN:
		args->dry_run = true;
		return 0;
	default:
		break;
	}
	r = set_value(args, key, arg, err);
	if (r < 0)
		for (const struct cordon_option *o = options; o->name; o++)
			if (o->key == key)
				return cordon_error_prefix(err, r, "--%s", o->name);
	return r;
}

static void args_done(struct args *args)
{
	for (size_t i = 0; i < args->env.n; i++)
		free(args->env.items[i]);
	for (size_t i = 0; i < args->keep_env.n; i++)
		free(args->keep_env.items[i]);
	for (size_t i = 0; i < args->n_shares; i++)
		cordon_share_done(&args->shares[i]);
	free(args->env.items);
	free(args->keep_env.items);
	free(args->shares);
	cordon_scope_done(&args->scope);
}

/* What the policy file says where no option does; lists add up, the file's entries first. */
static int merge_file(struct args *args, struct cordon_error *err)
{
	const struct cordon_policy_file *file = args->scope.file;
	struct args merged = { 0 };
	int r = 0;

	if (!file)
		return 0;
	for (size_t i = 0; r == 0 && i < file->n_env; i++) {
		autobuf struct cordon_buf text = CORDON_BUF(1 << 20);

		r = cordon_buf_addf(&text, "%s=%s", file->env[i].name, file->env[i].value);
		r = r < 0 ? cordon_fail_errno(err, r, "%s", file->env[i].where) : append(&merged.env, text.data, err);
	}
	for (size_t i = 0; r == 0 && i < args->env.n; i++)
		r = append(&merged.env, args->env.items[i], err);
	for (size_t i = 0; i < args->env.n; i++)
		free(args->env.items[i]);
	free(args->env.items);
	args->env = merged.env;
	for (size_t i = 0; r == 0 && i < file->keep_env.n; i++)
		r = append(&args->keep_env, file->keep_env.items[i].text, err);
	for (size_t i = 0; r == 0 && i < file->n_shares; i++) {
		struct cordon_share_value share = { .read_only = file->shares[i].share.read_only };

		share.source = strdup(file->shares[i].share.source);
		share.target = file->shares[i].share.target ? strdup(file->shares[i].share.target) : NULL;
		r = share.source ? append_share(args, &share, err) : cordon_fail_errno(err, -ENOMEM, "options");
	}
	args->at = args->at ? args->at : file->at.text;
	args->home = args->home ? args->home : file->home.text;
	args->net = args->net_given ? args->net : file->net;
	args->timeout_ms = args->timeout_ms ? args->timeout_ms : file->limits.timeout_ms;
	args->memory = args->memory ? args->memory : file->limits.memory_bytes;
	args->pids = args->pids ? args->pids : file->limits.pids;
	args->cpus = args->cpus ? args->cpus : file->limits.cpu_millis;
	args->tmp_size = args->tmp_size ? args->tmp_size : file->limits.tmp_bytes;
	args->best_effort |= file->best_effort;
	return r;
}

/* A policy file that the agent could write would be its own master at the next run. */
static int protect_policy_file(const struct args *args, struct cordon_policy *policy, struct cordon_error *err)
{
	struct cordon_resolved found;
	char path[CORDON_PATH_MAX];
	int r;

	if (!args->scope.policy_path)
		return 0;
	r = absolute(args->scope.policy_path, path, err);
	if (r < 0)
		return r;
	cordon_resolve(&policy->root, path, &found);
	if (found.place != CORDON_PLACE_INSIDE || !*found.path)
		return 0;
	return cordon_policy_add_protected(policy, found.path, "the policy file itself", true, err);
}

struct run {
	struct cordon_cli *cli;
	struct args *args;
	struct cordon_policy *policy;
	struct cordon_home home;
	char id[CORDON_UUID_SIZE];
	char cwd[CORDON_PATH_MAX];
	char home_dir[CORDON_PATH_MAX];
	struct cordon_plan *plan;
	struct cordon_run_record record;
	int taken_fd;
	struct cordon_run_events events;
	cordon_tier tier;
	char tier_tmp[sizeof(CORDON_TIER_TMP) + CORDON_UUID_SIZE]; /* "" while there is none */
};

/* Where namespaces are refused and the user said --best-effort: the lower tier, with a directory of its own. */
static int choose_tier(struct run *run, struct cordon_error *err)
{
	int r = run->args->best_effort ? cordon_namespaces_probe() : 0;

	if (r == 0)
		return 0;
	run->tier = CORDON_TIER_LANDLOCK;
	snprintf(run->tier_tmp, sizeof(run->tier_tmp), "%s%s", CORDON_TIER_TMP, run->id);
	cordon_cli_log(run->cli, "INFO", "best effort: no namespaces here (%s); Landlock and seccomp alone hold the folders", strerror(-r));
	if (!run->args->dry_run && mkdir(run->tier_tmp, 0700) < 0) {
		r = cordon_fail_errno(err, -errno, "cannot make %s", run->tier_tmp);
		run->tier_tmp[0] = '\0';
		return r;
	}
	return 0;
}

static int build_plan(struct run *run, char **argv, struct cordon_error *err)
{
	const struct args *args = run->args;
	autofree struct cordon_share *shares = calloc(args->n_shares + 1, sizeof(*shares));
	struct cordon_run_spec spec = {
		.run_id = run->id,
		.tier = run->tier,
		.lens = args->lens,
		.tier_tmp = run->tier_tmp,
		.policy = run->policy,
		.home_path = run->home.path,
		.at = args->at,
		.cwd = run->cwd,
		.env = args->env.items,
		.n_env = args->env.n,
		.keep_env = args->keep_env.items,
		.n_keep_env = args->keep_env.n,
		.shares = shares,
		.n_shares = args->n_shares,
		.argv = argv,
		.net_none = args->net == CORDON_NET_NONE,
		.best_effort = args->best_effort,
		.terminal = true,
		.limits = { .memory_bytes = args->memory, .pids = (uint32_t)args->pids, .cpu_millis = (uint32_t)args->cpus },
		.tmp_size = args->tmp_size,
		.timeout_ms = args->timeout_ms,
		.grace_ms = args->grace_ms,
	};
	int r;

	if (!shares)
		return cordon_fail_errno(err, -ENOMEM, "shares");
	for (size_t i = 0; i < args->n_shares; i++)
		shares[i] = (struct cordon_share){ args->shares[i].source, args->shares[i].target, args->shares[i].read_only };
	if (args->home) {
		r = absolute(args->home, run->home_dir, err);
		if (r < 0)
			return r;
		spec.home = run->home_dir;
	}
	r = protect_policy_file(args, run->policy, err);
	return r < 0 ? r : cordon_plan_build(&spec, &run->plan, err);
}

static int print_plan(const struct run *run)
{
	autobuf struct cordon_buf text = CORDON_BUF(16 << 20);
	struct cordon_error err = { 0 };

	if (run->cli->json)
		return cordon_cli_print_json(run->cli, cordon_plan_json(run->plan));
	if (cordon_plan_text(run->plan, &text) < 0) {
		cordon_fail(&err, -ENOMEM, CORDON_KIND_LIMIT, "cannot print the plan");
		return cordon_cli_fail(run->cli, &err);
	}
	fwrite(text.data, 1, text.len, stdout);
	return CORDON_EXIT_OK;
}

/* The result goes to --result FILE, with --json to stderr. */
static void print_result(const struct run *run, const struct cordon_child *child, const struct cordon_result *result)
{
	json_t *object;
	char *text;

	if (!run->cli->json && !run->args->result)
		return;
	object = cordon_result_json(run->id, run->plan, child, result);
	text = object ? json_dumps(object, JSON_COMPACT) : NULL;
	json_decref(object);
	if (!text)
		return;
	if (run->args->result) {
		autobuf struct cordon_buf line = CORDON_BUF(SIZE_MAX / 2);
		const char *base = cordon_path_base(run->args->result);
		char dir[CORDON_PATH_MAX] = ".";
		struct cordon_error err = { 0 };
		autofd int fd = -1;

		if (base != run->args->result)
			cordon_copy(dir, sizeof(dir), run->args->result, (size_t)(base - run->args->result));
		fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0)
			cordon_fail_errno(&err, -errno, "cannot write %s", run->args->result);
		else if (cordon_buf_addf(&line, "%s\n", text) == 0)
			cordon_write_file(fd, base, 0644, line.data, line.len, &err);
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
	cordon_run_events_refused(&run->events, err);
	if (run->cli->json || run->args->result)
		print_result(run, NULL, &result);
	if (run->cli->json && !run->args->result)
		return err->kind == CORDON_KIND_USAGE ? CORDON_EXIT_USAGE : CORDON_EXIT_REFUSED;
	return cordon_cli_fail(run->cli, err);
}

static int start(struct run *run, char **argv)
{
	struct cordon_observer observer = { .event = cordon_run_events_take, .data = &run->events };
	struct cordon_child child;
	struct cordon_result result;
	struct cordon_error err = { 0 };

	if (choose_tier(run, &err) < 0 || build_plan(run, argv, &err) < 0)
		return refuse(run, &err);
	if (run->args->dry_run)
		return print_plan(run);
	if (cordon_runs_enter(&run->home, run->id, run->policy, &run->record, &err) < 0 ||
	    cordon_home_subdir(&run->home, "taken", &run->taken_fd, &err) < 0 ||
	    cordon_run_events_start(&run->events, run->plan, &err) < 0 ||
	    cordon_launch(run->plan, run->policy, run->taken_fd, &observer, &child, &err) < 0)
		return refuse(run, &err);
	cordon_supervise(&child, &observer, &result);
	cordon_run_events_end(&run->events, &result);
	print_result(run, &child, &result);
	if (result.error.code && !(run->cli->json && !run->args->result))
		cordon_cli_fail(run->cli, &result.error);
	return result.own_exit;
}

static int run_with(struct cordon_cli *cli, struct args *args, int argc, char **argv)
{
	struct run run = { .cli = cli, .args = args, .home = CORDON_HOME_NONE, .record = CORDON_RUN_RECORD_NONE, .taken_fd = -1 };
	struct cordon_error err = { 0 };
	int first, r = cordon_cli_parse(cli, argc, argv, CORDON_PARSE_STOP, set, args, &first, &err);

	if (r != 0)
		return r > 0 ? CORDON_EXIT_OK : cordon_cli_fail(cli, &err);
	if (first == argc)
		return cordon_cli_usage(cli, "no command to run");
	args->scope.folder_mode = CORDON_MODE_PERMISSIVE;
	r = cordon_scope_build(cli, &args->scope, &run.policy);
	if (r)
		return r;
	if (merge_file(args, &err) < 0 || cordon_uuid_new(run.id) < 0 || cordon_home_open(&run.home, &err) < 0) {
		r = cordon_cli_fail(cli, &err);
	} else {
		if (!getcwd(run.cwd, sizeof(run.cwd)))
			run.cwd[0] = '\0';
		r = cordon_run_events_init(&run.events, cli, &run.home, run.id, run.policy, args->dry_run, &err) < 0 ?
			    cordon_cli_fail(cli, &err) :
			    start(&run, argv + first);
	}
	cordon_run_events_done(&run.events);
	if (run.tier_tmp[0] && !args->dry_run)
		cordon_tree_remove(AT_FDCWD, run.tier_tmp, NULL);
	cordon_runs_leave(&run.record);
	cordon_closep(&run.taken_fd);
	cordon_plan_free(run.plan);
	cordon_policy_free(run.policy);
	cordon_home_done(&run.home);
	return r;
}

static int run(struct cordon_cli *cli, int argc, char **argv)
{
	struct args args = { 0 };
	int r;

	cli->failure_exit = CORDON_EXIT_REFUSED;
	r = run_with(cli, &args, argc, argv);
	args_done(&args);
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
