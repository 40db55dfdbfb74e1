/* SPDX-License-Identifier: Apache-2.0 */
/* cordon check: says whether paths or hosts are allowed, for its arguments or for a stream of paths. */
#include <stdio.h>

#include "cli/commands.h"
#include "cli/recipe_options.h"
#include "cli/stream.h"
#include "cli/verdict.h"

enum { KEY_OP, KEY_STDIN, KEY_STDIN0 };

static const struct cordon_option options[] = {
	CORDON_RECIPE_OPTIONS(CORDON_RECIPE_OF_QUESTIONS),
	{ "op", 0, CORDON_ARG_CHOICE, "read|write|connect",
	  "what is to be done; connect asks about hosts (default: write if anything may be written)", KEY_OP },
	{ "stdin", 0, CORDON_ARG_NONE, NULL, "read paths from standard input, one a line", KEY_STDIN },
	{ "stdin0", 'z', CORDON_ARG_NONE, NULL, "the same, with NUL after each path and each answer", KEY_STDIN0 },
	{ 0 },
};

struct args {
	struct cordon_recipe recipe;
	const char *op;
	bool stream;
	char separator;
};

static int set(void *data, int key, const char *arg, struct cordon_error *err)
{
	struct args *args = data;

	if (cordon_recipe_owns(key))
		return cordon_cli_set(&args->recipe, key, arg, err);
	if (key == KEY_OP)
		args->op = arg;
	else
		args->stream = true;
	if (key == KEY_STDIN0)
		args->separator = '\0';
	return 0;
}

struct check {
	const struct cordon_cli *cli;
	struct cordon_asker asker;
	char separator;
	bool denied;
};

static void begin(void *data)
{
	struct check *check = data;

	cordon_asker_refresh(&check->asker);
}

static int answer(void *data, const char *path, size_t len, struct cordon_buf *out)
{
	struct check *check = data;

	cordon_asker_ask(&check->asker, path, len);
	check->denied |= check->asker.decision.verdict == CORDON_DENY;
	if (check->cli->json)
		return cordon_stream_json(out, cordon_asker_json(&check->asker, path, len));
	return cordon_stream_line(out, cordon_verdict_name(check->asker.decision.verdict), path, len, check->separator);
}

static int check_operands(struct check *check, int n, char **paths)
{
	autobuf struct cordon_buf out = CORDON_BUF(SIZE_MAX / 2);
	struct cordon_error err = { 0 };
	int r = 0;

	/* A mistake in a host is wrong usage; a stream, which others write, gets "deny". */
	for (int i = 0; check->asker.connect && i < n; i++) {
		struct cordon_decision decision;

		if (cordon_policy_check_host(check->asker.policy, paths[i], &decision, &err) < 0)
			return cordon_cli_fail(check->cli, &err);
	}
	for (int i = 0; r == 0 && i < n; i++)
		r = answer(check, paths[i], strlen(paths[i]), &out);
	if (r < 0) {
		cordon_fail_errno(&err, r, "cannot answer");
		return cordon_cli_fail(check->cli, &err);
	}
	fwrite(out.data, 1, out.len, stdout);
	return check->denied ? CORDON_EXIT_NO : CORDON_EXIT_OK;
}

static int run_with(struct cordon_cli *cli, struct args *args, int argc, char **argv)
{
	struct check check = { .cli = cli };
	struct cordon_error err = { 0 };
	int first, r = cordon_cli_parse(cli, argc, argv, 0, set, args, &first, &err);

	if (r != 0)
		return r > 0 ? CORDON_EXIT_OK : cordon_cli_fail(cli, &err);
	if (args->stream && first < argc)
		return cordon_cli_usage(cli, "paths come from standard input or as arguments, not both");
	if (!args->stream && first == argc)
		return cordon_cli_usage(cli, "no path to check");
	check.separator = args->separator;
	args->recipe.folder_mode = CORDON_MODE_PERMISSIVE;
	r = cordon_cli_compile(cli, &args->recipe, CORDON_RECIPE_ASKS);
	if (r)
		return r;
	cordon_asker_init(&check.asker, args->recipe.policy, cordon_default_op(args->recipe.policy, args->op));
	check.asker.connect = cordon_op_connects(args->op);
	r = args->stream ? cordon_stream_run(cli, args->separator, begin, answer, &check)
			 : check_operands(&check, argc - first, argv + first);
	cordon_asker_done(&check.asker);
	return r;
}

static int run(struct cordon_cli *cli, int argc, char **argv)
{
	struct args args = { .separator = '\n' };
	int r = run_with(cli, &args, argc, argv);

	cordon_recipe_done(&args.recipe);
	return r;
}

const struct cordon_command cordon_cmd_check = {
	.name = "check",
	.operands = "PATH...",
	.summary = "say whether paths or hosts are allowed",
	.details = "Prints 'allow PATH' or 'deny PATH' for each, in order; a relative PATH is relative to the root.\n"
		   "Judges in the mode that 'cordon run' would have with the same options, and in permissive mode prints\n"
		   "'warn PATH' for what is let through with a warning. With --op connect each PATH is a\n"
		   "HOST[:PORT], and --net or the policy file says what is allowed; no name is looked up.\n"
		   "\n"
		   "Exit status: 0 all are allowed, 1 one is not, 2 wrong usage. With --stdin or --stdin0: 0 when every\n"
		   "question was answered.\n",
	.options = options,
	.run = run,
};
