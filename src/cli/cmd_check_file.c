/* SPDX-License-Identifier: Apache-2.0 */
/* cordon check-file: says whether a file lies in one of the folders of a workspace. */
#include <stdio.h>

#include "base/path.h"
#include "cli/commands.h"
#include "cli/manager.h"
#include "cli/recipe_options.h"
#include "cli/stream.h"
#include "cli/verdict.h"
#include "config/policy_build.h"

enum { KEY_OP, KEY_STDIN, KEY_STDIN0 };

static const struct cordon_option options[] = {
	CORDON_RECIPE_OPTIONS(CORDON_RECIPE_OF_FOLDERS | CORDON_RECIPE_OF_MODES),
	{ "op", 0, CORDON_ARG_CHOICE, "read|write", "the operation a warning names (default: write)", KEY_OP },
	{ "stdin", 0, CORDON_ARG_NONE, NULL, "read files from standard input, one a line", KEY_STDIN },
	{ "stdin0", 'z', CORDON_ARG_NONE, NULL, "the same, with NUL after each file and each answer", KEY_STDIN0 },
	{ 0 },
};

struct args {
	struct cordon_recipe recipe;
	cordon_op op;
	bool stream;
	char separator;
};

static int set(void *data, int key, const char *arg, struct cordon_error *err)
{
	struct args *args = data;

	if (cordon_recipe_owns(key))
		return cordon_cli_set(&args->recipe, key, arg, err);
	if (key == KEY_OP)
		args->op = cordon_streq(arg, "read") ? CORDON_OP_READ : CORDON_OP_WRITE;
	else
		args->stream = true;
	if (key == KEY_STDIN0)
		args->separator = '\0';
	return 0;
}

struct check {
	const struct cordon_manager *ws;
	struct cordon_asker asker;
	char separator;
};

static bool inside(const struct check *check)
{
	return check->asker.decision.verdict == CORDON_ALLOW;
}

static json_t *answer_json(const struct check *check, const char *file, size_t len)
{
	return json_pack("{s:o, s:b, s:s, s:o, s:b}", "path", cordon_cli_json_bytes(file, len), "inside",
			 (int)inside(check), "reason", cordon_reason_name(check->asker.decision.reason), "resolved",
			 cordon_cli_json_text(check->asker.decision.resolved), "exists",
			 (int)check->asker.resolved.exists);
}

static void begin(void *data)
{
	struct check *check = data;

	cordon_asker_refresh(&check->asker);
}

static int answer(void *data, const char *file, size_t len, struct cordon_buf *out)
{
	struct check *check = data;

	cordon_asker_ask(&check->asker, file, len);
	if (check->ws->cli->json)
		return cordon_stream_json(out, answer_json(check, file, len));
	return cordon_stream_line(out, inside(check) ? "inside" : "outside", file, len, check->separator);
}

/* Reports a file that lies outside the folders. */
static void report_outside(const struct check *check, const char *file)
{
	const struct cordon_manager *ws = check->ws;
	const char *resolved = check->asker.decision.resolved;
	char asked[2 * CORDON_PATH_MAX], leads[2 * CORDON_PATH_MAX];

	if (cordon_path_join(file[0] == '/' ? "" : ws->root.path, file, asked, sizeof(asked)) < 0 ||
	    cordon_path_join(resolved[0] == '/' ? "" : ws->root.path, resolved, leads, sizeof(leads)) < 0)
		cordon_manager_report_access(ws->cli, ws->mode, file, check->asker.op, ws->list, NULL);
	else
		cordon_manager_report_access(ws->cli, ws->mode, asked, check->asker.op, ws->list, leads);
}

static int check_one(struct check *check, const char *file)
{
	cordon_asker_ask(&check->asker, file, strlen(file));
	if (check->ws->cli->json) {
		int r = cordon_cli_print_json(check->ws->cli, answer_json(check, file, strlen(file)));

		if (r)
			return r;
	} else if (!inside(check)) {
		report_outside(check, file);
	}
	return inside(check) ? CORDON_EXIT_OK : CORDON_EXIT_NO;
}

/* The policy has the folders and nothing else: the question is where a file lies, so nothing is protected by
 * default. */
static int make_policy(const struct cordon_manager *ws, struct cordon_policy **ret_policy)
{
	const struct cordon_policy_rule rule = { CORDON_RULE_FOLDERS, ws->text, "workspace folders" };
	const struct cordon_policy_spec spec = {
		.root = ws->root.path,
		.rules = &rule,
		.n_rules = ws->disabled ? 0 : 1,
		.mode = CORDON_MODE_STRICT,
		.no_default_protection = true,
		.shows_secrets = true,
	};
	struct cordon_errors errors CORDON_CLEANUP(cordon_errors_done) = { 0 };

	if (cordon_manager_check_folders(ws->cli, &ws->root, &ws->folders) > 0)
		return CORDON_EXIT_NO;
	return cordon_policy_build(&spec, ret_policy, &errors) < 0 ? cordon_cli_fail_all(ws->cli, &errors) : 0;
}

static int check_files(const struct cordon_manager *ws, const struct args *args, const char *file)
{
	struct cordon_policy *policy CORDON_CLEANUP(cordon_policy_freep) = NULL;
	struct check check = { .ws = ws, .separator = args->separator };
	int r;

	if (ws->disabled)
		cordon_manager_report_disabled(ws->cli, ws->root.path);
	r = make_policy(ws, &policy);
	if (r)
		return r;
	cordon_asker_init(&check.asker, policy, args->op);
	r = args->stream ? cordon_stream_run(ws->cli, args->separator, begin, answer, &check) : check_one(&check, file);
	cordon_asker_done(&check.asker);
	return r;
}

static int run(struct cordon_cli *cli, int argc, char **argv)
{
	struct args args = { .op = CORDON_OP_WRITE, .separator = '\n' };
	struct cordon_manager ws;
	struct cordon_error err = { 0 };
	int first, files, r = cordon_cli_parse(cli, argc, argv, 0, set, &args, &first, &err);

	if (r != 0)
		return r > 0 ? CORDON_EXIT_OK : cordon_cli_fail(cli, &err);
	files = args.stream ? 0 : 1;
	if (argc - first < files)
		return cordon_cli_usage(cli, "no file to check");
	if (argc - first > files + 1)
		return cordon_cli_usage(cli, "too many arguments: %s", argv[first + files + 1]);
	r = cordon_manager_open(cli, &args.recipe, first + files < argc ? argv[first + files] : NULL, &ws);
	if (r)
		return r;
	r = check_files(&ws, &args, argv[first]);
	cordon_manager_done(&ws);
	return r;
}

const struct cordon_command cordon_cmd_check_file = {
	.name = "check-file",
	.operands = "FILE [FOLDERS]",
	.summary = "say whether a file lies in a workspace folder",
	.details = "FILE is relative to the repository root or absolute, and need not exist. Links are followed and\n"
		   "names compared by component. Without FOLDERS WORKSPACE_FOLDERS is read. With --stdin or --stdin0\n"
		   "there is no FILE, and 'inside NAME' or 'outside NAME' is printed for each.\n"
		   "\n"
		   "Exit status: 0 inside, 1 outside, 2 wrong usage. With --stdin or --stdin0: 0 when every question was\n"
		   "answered.\n",
	.options = options,
	.run = run,
};
