/* SPDX-License-Identifier: Apache-2.0 */
/* cordon why: explains the decision about a path: the rule behind it, and what would change it. */
#include <stdio.h>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/recipe_options.h"
#include "cli/verdict.h"

enum { KEY_OP };

static const struct cordon_option options[] = {
	CORDON_RECIPE_OPTIONS(CORDON_RECIPE_OF_QUESTIONS),
	{ "op", 0, CORDON_ARG_CHOICE, "read|write|connect",
	  "what is to be done (default: connect for HOST:PORT, else write if that may be)", KEY_OP },
	{ 0 },
};

struct args {
	struct cordon_recipe recipe;
	const char *op;
};

static int set(void *data, int key, const char *arg, struct cordon_error *err)
{
	struct args *args = data;

	if (cordon_recipe_owns(key))
		return cordon_cli_set(&args->recipe, key, arg, err);
	args->op = arg;
	return 0;
}

/* Prints "  label     text"; the text is escaped. */
static void print_line(const char *label, const char *text, const char *after)
{
	autobuf struct cordon_buf safe = CORDON_BUF(1u << 20);

	if (cordon_text_escape(&safe, text, strlen(text)) == 0)
		printf("  %-10s %s%s\n", label, safe.data, after);
}

static void print_text(const struct cordon_why *why, const char *path)
{
	static const char *const colours[] = { "\033[32m", "\033[33m", "\033[31m" };
	const struct cordon_asker *asker = &why->asker;
	const struct cordon_decision *d = &asker->decision;
	autobuf struct cordon_buf safe = CORDON_BUF(8u << 20);
	bool colour = cordon_cli_colour(STDOUT_FILENO);

	if (cordon_text_escape(&safe, path, strlen(path)) == 0)
		printf("%s%s%s: %s %s\n", colour ? colours[d->verdict] : "", cordon_verdict_name(d->verdict),
		       colour ? "\033[0m" : "", cordon_asker_op(asker), safe.data);
	if (asker->connect)
		print_line("means", d->resolved, "");
	else if (d->reason != CORDON_REASON_UNRESOLVABLE)
		print_line("leads to", *d->resolved ? d->resolved : ".",
			   asker->resolved.exists ? "" : " (does not exist yet)");
	if (d->rule)
		print_line("rule", d->rule, "");
	else
		print_line("rule",
			   d->reason != CORDON_REASON_GRANT ? "none"
			   : asker->connect		    ? "no list was given"
							    : "no scope was given",
			   "");
	if (d->rule_where)
		print_line("from", d->rule_where, "");
	if (d->fence)
		print_line("fence", d->fence, "");
	/* Both texts are escaped already. */
	printf("  %-10s %s\n", "because", why->because.data ? why->because.data : "");
	if (why->remedy.len)
		printf("  %-10s %s\n", "to change", why->remedy.data);
}

static int explain(struct cordon_cli *cli, const struct cordon_policy *policy, const char *op, const char *path)
{
	autowhy struct cordon_why why;
	struct cordon_error err = { 0 };
	json_t *object;

	if (cordon_policy_why(policy, op, path, &why, &err) < 0)
		return cordon_cli_fail(cli, &err);
	if (!cli->json) {
		print_text(&why, path);
		return CORDON_EXIT_OK;
	}
	object = cordon_asker_json(&why.asker, path, strlen(path));
	json_object_set_new(object, "root", cordon_cli_json_text(policy->root.path));
	json_object_set_new(object, "mode", json_string(cordon_mode_name(policy->mode)));
	json_object_set_new(object, "because", cordon_cli_json_text(why.because.data ? why.because.data : ""));
	json_object_set_new(object, "remedy", cordon_cli_json_text(why.remedy.data ? why.remedy.data : ""));
	return cordon_cli_print_json(cli, object);
}

static int run_with(struct cordon_cli *cli, struct args *args, int argc, char **argv)
{
	struct cordon_error err = { 0 };
	int first, r = cordon_cli_parse(cli, argc, argv, 0, set, args, &first, &err);

	if (r != 0)
		return r > 0 ? CORDON_EXIT_OK : cordon_cli_fail(cli, &err);
	if (argc - first != 1)
		return cordon_cli_usage(cli, "one path is expected, not %d", argc - first);
	args->recipe.folder_mode = CORDON_MODE_PERMISSIVE;
	r = cordon_cli_compile(cli, &args->recipe, CORDON_RECIPE_ASKS);
	if (r)
		return r;
	return explain(cli, args->recipe.policy, args->op, argv[first]);
}

static int run(struct cordon_cli *cli, int argc, char **argv)
{
	struct args args = { 0 };
	int r = run_with(cli, &args, argc, argv);

	cordon_recipe_done(&args.recipe);
	return r;
}

const struct cordon_command cordon_cmd_why = {
	.name = "why",
	.operands = "PATH",
	.summary = "explain what is decided about a path or a host",
	.details = "Prints the decision, where the path leads, the rule that decided and where it stands, and what to change to\n"
		   "get the other answer. Takes the options of 'cordon check' and judges as it does. A PATH that no file has and\n"
		   "that reads HOST:PORT is a host.\n"
		   "\n"
		   "Exit status: 0 when there is an answer, whatever it is.\n",
	.options = options,
	.run = run,
};
