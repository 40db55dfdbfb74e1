/* SPDX-License-Identifier: Apache-2.0 */
/* cordon learn: runs a command that may do everything in the root, and writes the policy that the command needs. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/path.h"
#include "cli/commands.h"
#include "cli/recipe_options.h"
#include "cli/reports.h"
#include "learn/learned.h"

#define DEFAULT_OUTPUT "cordon.yaml"

enum { KEY_OUTPUT, KEY_FORCE, KEY_NO_PATTERNS, KEY_REPORTS };

static const struct cordon_option options[] = {
	{ "output", 'o', CORDON_ARG_FILE, "FILE", "where the policy goes; - is stdout (default: " DEFAULT_OUTPUT ")",
	  KEY_OUTPUT },
	{ "force", 'f', CORDON_ARG_NONE, NULL, "replace a file that exists", KEY_FORCE },
	{ "no-patterns", 0, CORDON_ARG_NONE, NULL, "grant folders and single files only, which need no lens",
	  KEY_NO_PATTERNS },
	CORDON_RECIPE_OPTION(CORDON_RECIPE_DENY, "deny", CORDON_ARG_FILE, "PATTERN",
			     "neither read nor written, now and later (repeatable)"),
	CORDON_RECIPE_OPTION(CORDON_RECIPE_PROTECT, "protect", CORDON_ARG_FILE, "PATH",
			     "never changes, now and later (repeatable)"),
	CORDON_RECIPE_OPTION(CORDON_RECIPE_UNPROTECT, "unprotect", CORDON_ARG_FILE, "PATH",
			     "lift one default protection, now and later (repeatable)"),
	CORDON_RECIPE_OPTIONS(CORDON_RECIPE_OF_LEARN),
	CORDON_REPORTS_OPTION(KEY_REPORTS),
	{ 0 },
};

struct args {
	struct cordon_recipe recipe;
	cordon_reports_when reports;
	const char *reports_path;
	const char *output;
	bool force, no_patterns;
};

struct learner {
	struct cordon_cli *cli;
	struct args *args;
	struct cordon_policy *policy;
	struct cordon_reporter reporter;
	struct cordon_learned learned;
	struct cordon_profile_use program; /* what the program consists of, when it is no part of the system */
	int output_dir;			   /* opened before the agent starts, so that the agent cannot replace it */
};

static int set(void *data, int key, const char *arg, struct cordon_error *err)
{
	struct args *args = data;

	if (cordon_recipe_owns(key))
		return cordon_cli_set(&args->recipe, key, arg, err);
	if (key == KEY_REPORTS)
		return cordon_reports_parse(arg, &args->reports, &args->reports_path, err);
	if (key == KEY_OUTPUT)
		args->output = arg;
	args->force |= key == KEY_FORCE;
	args->no_patterns |= key == KEY_NO_PATTERNS;
	return 0;
}

static void on_event(void *data, const struct cordon_event *event)
{
	struct learner *learner = data;

	if (event->kind == CORDON_EVENT_VIOLATION && event->reason == CORDON_REASON_NO_HOST && event->rule)
		cordon_learned_host(&learner->learned, event->rule, false);
	if (event->kind == CORDON_EVENT_REACHED)
		cordon_learned_host(&learner->learned, event->path, true);
	cordon_reporter_event(&learner->reporter, event);
}

static void on_launched(void *data, struct cordon_child *child)
{
	cordon_reporter_launched(&((struct learner *)data)->reporter, child);
}

static void on_sight(void *data, const struct cordon_sight *sight)
{
	cordon_learned_sight(&((struct learner *)data)->learned, sight);
}

static bool to_stdout(const struct args *args)
{
	return cordon_streq(args->output, "-");
}

static int check_free(const struct learner *learner, struct cordon_error *err)
{
	struct stat st;

	if (learner->args->force ||
	    fstatat(learner->output_dir, cordon_path_base(learner->args->output), &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	cordon_fail(err, -EEXIST, CORDON_KIND_CONFLICT, "%s exists", learner->args->output);
	cordon_error_hint(err, "name another with --output, or replace it with --force");
	return -EEXIST;
}

static int open_output(struct learner *learner, struct cordon_error *err)
{
	const char *output = learner->args->output, *base = cordon_path_base(output);
	char dir[CORDON_PATH_MAX] = ".";

	if (to_stdout(learner->args))
		return 0;
	if (!*base || cordon_streq(base, ".") || cordon_streq(base, ".."))
		return cordon_fail(err, -EISDIR, CORDON_KIND_USAGE, "--output: %s is not the name of a file", output);
	if (base != output && cordon_copy(dir, sizeof(dir), output, (size_t)(base - output)) < 0)
		return cordon_fail_errno(err, -ENAMETOOLONG, "--output");
	learner->output_dir = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (learner->output_dir < 0)
		return cordon_fail_errno(err, -errno, "cannot write %s", output);
	return check_free(learner, err);
}

static json_t *patterns(const struct cordon_learned *learned, cordon_access access)
{
	json_t *array = json_array();

	for (size_t i = 0; i < learned->grants.n; i++)
		if (learned->grants.items[i].access == access)
			json_array_append_new(array, cordon_cli_json_text(learned->grants.items[i].pattern));
	return array;
}

static void report_learned(const struct learner *learner, const struct cordon_result *result)
{
	const struct cordon_learned *learned = &learner->learned;

	if (learner->cli->json) {
		json_t *object = json_pack("{s:s, s:o, s:o, s:o, s:i, s:i, s:b, s:i}", "kind", "learned", "output",
					   cordon_cli_json_text(learner->args->output), "rw",
					   patterns(learned, CORDON_ACCESS_WRITE), "ro",
					   patterns(learned, CORDON_ACCESS_READ), "secrets", (int)learned->n_secrets,
					   "outside", (int)learned->n_outside, "complete", !learned->truncated,
					   "exit_code", result->own_exit);
		char *text = object ? json_dumps(object, JSON_COMPACT) : NULL;

		json_decref(object);
		fprintf(stderr, "%s\n", text ? text : "{}");
		free(text);
		return;
	}
	cordon_cli_log(learner->cli, "LEARN", "%zu grants%s%s", learned->grants.n,
		       to_stdout(learner->args) ? "" : " in ", to_stdout(learner->args) ? "" : learner->args->output);
	if (learned->n_secrets || learned->n_outside)
		cordon_cli_log(learner->cli, "LEARN",
			       "not granted, see the comments: %zu secrets, %zu places outside the root",
			       learned->n_secrets, learned->n_outside);
	if (learned->hosts.n)
		cordon_cli_log(
			learner->cli, "LEARN",
			"hosts that were refused and are in the list now: %zu; with them the command may ask for more",
			learned->hosts.n);
	if (learned->truncated)
		cordon_cli_log(learner->cli, "LEARN", "more than %d paths were used; the policy covers those seen first",
			       CORDON_LEARN_PATHS_MAX);
	if (result->own_exit)
		cordon_cli_log(learner->cli, "LEARN", "the command failed; the policy covers what it used until then");
}

/* Collects the rules that the user gave as options; the policy file repeats them. */
static int gather_rules(const struct cordon_recipe *recipe, struct cordon_policy_rule **ret_rules, size_t *ret_n)
{
	struct cordon_policy_rule *rules = calloc(recipe->n_rules + 1, sizeof(*rules));
	size_t n = 0;

	if (!rules)
		return -ENOMEM;
	for (size_t i = 0; i < recipe->n_rules; i++)
		if (recipe->rules[i].kind != CORDON_RULE_NET)
			rules[n++] = (struct cordon_policy_rule){ .kind = recipe->rules[i].kind,
								  .text = recipe->rules[i].text };
	*ret_rules = rules;
	*ret_n = n;
	return 0;
}

static int make_text(struct learner *learner, struct cordon_buf *ret_text, struct cordon_error *err)
{
	const struct cordon_recipe *asked = &learner->args->recipe;
	struct cordon_learned_from from = { .run = &asked->spec,
					    .no_default_protection = !cordon_recipe_value(&asked->values,
											  CORDON_RECIPE_DEFAULT_PROTECT),
					    .shares = asked->home || asked->n_shares,
					    .program = &learner->program,
					    .output = to_stdout(learner->args) ? NULL : learner->args->output };
	autobuf struct cordon_buf profiles = CORDON_BUF(4096);
	struct cordon_policy_rule *rules = NULL;
	int r = gather_rules(asked, &rules, &from.n_rules);

	for (size_t i = 0; r == 0 && i < asked->n_profiles; i++)
		r = cordon_buf_addf(&profiles, "%s%s", i ? "," : "", asked->profile_names[i]);
	from.profiles = profiles.data;
	from.rules = rules;
	r = r < 0 ? cordon_fail_errno(err, r, "learned policy")
		  : cordon_learned_text(&learner->learned, &from, ret_text, err);
	free(rules);
	return r;
}

static int conclude(struct learner *learner, const struct cordon_result *result)
{
	autobuf struct cordon_buf text = CORDON_BUF((size_t)1 << 20);
	struct cordon_error err = { 0 };
	const char *output = learner->args->output;

	if (result->error.code)
		return cordon_cli_fail(learner->cli, &result->error), result->own_exit;
	if (make_text(learner, &text, &err) < 0)
		return cordon_cli_fail(learner->cli, &err);
	if (to_stdout(learner->args)) {
		if (fwrite(text.data, 1, text.len, stdout) != text.len || fflush(stdout) != 0) {
			cordon_fail_errno(&err, -errno, "cannot write the policy");
			return cordon_cli_fail(learner->cli, &err);
		}
	} else if (check_free(learner, &err) < 0 || cordon_write_file(learner->output_dir, cordon_path_base(output),
								      0644, text.data, text.len, &err) < 0) {
		return cordon_cli_fail(learner->cli, &err);
	}
	report_learned(learner, result);
	return result->own_exit;
}

static int on_planned(void *data, const struct cordon_plan *plan, struct cordon_error *err)
{
	struct learner *learner = data;
	const struct args *asked = learner->args;
	int r = open_output(learner, err);

	if (r == 0)
		r = cordon_reports_begin(&learner->reporter.queue, asked->reports, asked->reports_path, learner->policy,
					 plan, false, err);
	if (r < 0)
		return r;
	cordon_reporter_plan(&learner->reporter, plan);
	for (size_t i = 0; i < plan->n_notes; i++)
		cordon_cli_log(learner->cli, "LEARN", "%s", plan->notes[i]);
	return 0;
}

static int start(struct learner *learner)
{
	struct cordon_observer observer = {
		.data = learner, .planned = on_planned, .launched = on_launched, .event = on_event, .sight = on_sight
	};
	bool named = !learner->args->no_patterns && access("/dev/fuse", R_OK | W_OK) == 0;
	struct cordon_result result;
	struct cordon_error err = { 0 };
	int r;

	if (!named && !learner->args->no_patterns)
		cordon_cli_log(learner->cli, "LEARN",
			       "/dev/fuse can't be used: only folders and single files are granted");
	if (cordon_learned_init(&learner->learned, learner->policy, named, &err) < 0)
		return cordon_cli_fail(learner->cli, &err);
	cordon_run(&learner->args->recipe.spec, &observer, &result, NULL);
	cordon_reporter_result(&learner->reporter, &result);
	cordon_report_queue_flush(&learner->reporter.queue);
	cordon_report_queue_next_line(&learner->reporter.queue);
	r = conclude(learner, &result);
	cordon_result_done(&result);
	return r;
}

/* A program that is no part of the system: the run finds it by its name, and the policy shows what it consists of. */
static int find_program(struct learner *learner, struct cordon_error *err)
{
	struct cordon_run_spec *spec = &learner->args->recipe.spec;
	struct cordon_profile_ask ask = { .home = "", .path = getenv("PATH"), .root = learner->policy->root.path };
	int r = cordon_profile_program(spec->argv[0], "the program", &ask, &learner->program, err);

	if (r > 0 && !spec->path)
		spec->path = learner->program.path;
	return r < 0 ? r : 0;
}

static int learn_with(struct cordon_cli *cli, struct args *args, int argc, char **argv)
{
	struct learner learner = { .cli = cli, .args = args, .output_dir = -1 };
	struct cordon_error err = { 0 };
	int first, r = cordon_cli_parse(cli, argc, argv, CORDON_PARSE_STOP, set, args, &first, &err);

	if (r != 0)
		return r > 0 ? CORDON_EXIT_OK : cordon_cli_fail(cli, &err);
	if (first == argc)
		return cordon_cli_usage(cli, "no command to learn from");
	(void)cordon_recipe_set(&args->recipe, CORDON_RECIPE_MODE, "permissive", "learn", &err);
	args->recipe.spec.argv = argv + first;
	args->recipe.spec.terminal = true;
	args->recipe.spec.learns = true;
	r = cordon_cli_compile(cli, &args->recipe, CORDON_RECIPE_STARTS);
	if (r)
		return r;
	learner.policy = args->recipe.policy;
	cordon_reporter_init(&learner.reporter, cli, learner.policy);
	learner.reporter.omit_warnings = true;
	r = find_program(&learner, &err) < 0 ? cordon_cli_fail(cli, &err) : start(&learner);
	cordon_profile_use_done(&learner.program);
	cordon_learned_done(&learner.learned);
	cordon_reporter_done(&learner.reporter);
	cordon_closep(&learner.output_dir);
	return r;
}

static int learn(struct cordon_cli *cli, int argc, char **argv)
{
	struct args args = { .output = DEFAULT_OUTPUT };
	int r;

	cli->failure_exit = CORDON_EXIT_REFUSED;
	r = learn_with(cli, &args, argc, argv);
	cordon_recipe_done(&args.recipe);
	return r;
}

const struct cordon_command cordon_cmd_learn = {
	.name = "learn",
	.operands = "-- CMD [ARG]...",
	.summary = "run a command and write the policy that it needs",
	.details =
		"The command may do everything in the root; what the host would execute stays protected. Outside it sees,\n"
		"read-only, what the user could see, known secrets left out, and what it writes in the home or in /tmp is\n"
		"discarded. What it used inside the root becomes a strict policy of few patterns for 'cordon run --policy'.\n"
		"Secrets and places outside the root are never granted: they stand in the file as comments. With --net HOSTS the\n"
		"hosts of these that it connected to become the policy's list, and those that it asked for beside them.\n",
	.options = options,
	.run = learn,
};
