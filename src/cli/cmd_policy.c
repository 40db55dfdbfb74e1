/* SPDX-License-Identifier: Apache-2.0 */
/* cordon policy: compares policy files. */
#include <stdio.h>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/recipe_options.h"
#include "policy/compare.h"

static const struct cordon_option diff_options[] = {
	CORDON_RECIPE_OPTION(CORDON_RECIPE_ROOT, "root", CORDON_ARG_DIR, "DIR",
			     "root of both policies (default: the git top level, else .)"),
	{ 0 },
};

static const char *op_name(cordon_compared_op op)
{
	static const char *const names[] = {
		[CORDON_COMPARED_READ] = "read", [CORDON_COMPARED_WRITE] = "write", [CORDON_COMPARED_CONNECT] = "connect"
	};

	return names[op];
}

/* "`src/**` (a.yaml:3:5)", or what decides when no rule does. */
static int add_answer(struct cordon_buf *text, const struct cordon_answer *answer)
{
	int r = cordon_buf_addf(text, "%s: ", cordon_verdict_name(answer->verdict));

	if (r == 0 && answer->rule) {
		r = cordon_buf_adds(text, "`");
		r = r < 0 ? r : cordon_text_escape(text, answer->rule, strlen(answer->rule));
		r = r < 0 ? r : cordon_buf_adds(text, "`");
	} else if (r == 0) {
		r = cordon_buf_adds(text, answer->verdict == CORDON_ALLOW ? "nothing limits it" : "no rule gives it");
	}
	if (r == 0 && answer->rule_where) {
		r = cordon_buf_adds(text, " (");
		r = r < 0 ? r : cordon_text_escape(text, answer->rule_where, strlen(answer->rule_where));
		r = r < 0 ? r : cordon_buf_adds(text, ")");
	}
	return r;
}

static int add_line(struct cordon_buf *text, const struct cordon_policy_difference *d)
{
	int r = cordon_buf_addf(text, "%c %-7s ", cordon_policy_difference_adds(d) ? '+' : '-', op_name(d->op));

	r = r < 0 ? r : cordon_text_escape(text, *d->witness ? d->witness : ".", *d->witness ? strlen(d->witness) : 1);
	r = r < 0 ? r : cordon_buf_adds(text, "\n    before ");
	r = r < 0 ? r : add_answer(text, &d->before);
	r = r < 0 ? r : cordon_buf_adds(text, "\n    after  ");
	r = r < 0 ? r : add_answer(text, &d->after);
	return r < 0 ? r : cordon_buf_adds(text, "\n");
}

static json_t *answer_json(const struct cordon_answer *answer)
{
	return json_pack("{s:s, s:s, s:o?, s:o?, s:o?}", "decision", cordon_verdict_name(answer->verdict), "reason",
			 cordon_reason_name(answer->reason), "rule",
			 answer->rule ? cordon_cli_json_text(answer->rule) : NULL, "where",
			 answer->rule_where ? cordon_cli_json_text(answer->rule_where) : NULL, "fence",
			 answer->fence ? cordon_cli_json_text(answer->fence) : NULL);
}

static int print_json(const struct cordon_cli *cli, const struct cordon_policy_differences *found)
{
	json_t *added = json_array(), *removed = json_array();

	for (size_t i = 0; i < found->n; i++) {
		const struct cordon_policy_difference *d = &found->items[i];

		json_array_append_new(cordon_policy_difference_adds(d) ? added : removed,
				      json_pack("{s:s, s:o, s:o, s:o}", "op", op_name(d->op), "witness",
						cordon_cli_json_text(*d->witness ? d->witness : "."), "before",
						answer_json(&d->before), "after", answer_json(&d->after)));
	}
	return cordon_cli_print_json(cli, json_pack("{s:o, s:o}", "added", added, "removed", removed));
}

static int print(const struct cordon_cli *cli, const struct cordon_policy_differences *found)
{
	autobuf struct cordon_buf text = CORDON_BUF(SIZE_MAX / 2);
	struct cordon_error err = { 0 };
	size_t added = 0;
	int r = 0;

	if (cli->json)
		return print_json(cli, found);
	for (size_t i = 0; r == 0 && i < found->n; i++) {
		added += cordon_policy_difference_adds(&found->items[i]);
		r = add_line(&text, &found->items[i]);
	}
	if (r < 0) {
		cordon_fail_errno(&err, r, "cannot print the differences");
		return cordon_cli_fail(cli, &err);
	}
	fwrite(text.data, 1, text.len, stdout);
	if (!cli->quiet)
		printf("%zu added, %zu taken away\n", added, found->n - added);
	return 0;
}

static int set(void *data, int key, const char *arg, struct cordon_error *err)
{
	struct cordon_recipe *recipes = data;
	int r = cordon_cli_set(&recipes[0], key, arg, err);

	return r < 0 ? r : cordon_cli_set(&recipes[1], key, arg, err);
}

static bool adds_any(const struct cordon_policy_differences *found)
{
	for (size_t i = 0; i < found->n; i++)
		if (cordon_policy_difference_adds(&found->items[i]))
			return true;
	return false;
}

static int diff_with(struct cordon_cli *cli, struct cordon_recipe recipes[2], int argc, char **argv)
{
	struct cordon_policy_differences found CORDON_CLEANUP(cordon_policy_differences_done) = { 0 };
	struct cordon_error err = { 0 };
	int first, r = cordon_cli_parse(cli, argc, argv, 0, set, recipes, &first, &err);

	if (r != 0)
		return r > 0 ? CORDON_EXIT_OK : cordon_cli_fail(cli, &err);
	if (first + 2 != argc)
		return cordon_cli_usage(cli, "give two policy files");
	for (int i = 0; i < 2; i++) {
		if (cordon_recipe_set(&recipes[i], CORDON_RECIPE_POLICY, argv[first + i], "FILE", &err) < 0)
			return cordon_cli_fail(cli, &err);
		r = cordon_cli_compile(cli, &recipes[i], CORDON_RECIPE_ASKS);
		if (r)
			return r;
	}
	if (cordon_policy_compare(recipes[0].policy, recipes[1].policy, &found, &err) < 0)
		return cordon_cli_fail(cli, &err);
	r = print(cli, &found);
	return r ? r : adds_any(&found) ? CORDON_EXIT_NO : CORDON_EXIT_OK;
}

static int diff(struct cordon_cli *cli, int argc, char **argv)
{
	struct cordon_recipe recipes[2] = { 0 };
	int r = diff_with(cli, recipes, argc, argv);

	cordon_recipe_done(&recipes[0]);
	cordon_recipe_done(&recipes[1]);
	return r;
}

const struct cordon_command cordon_cmd_policy_diff = {
	.name = "policy diff",
	.operands = "FILE FILE",
	.summary = "show what one policy file allows and another one does not",
	.details = "Compares the files exactly, as sets of paths and hosts and not as text: no difference is missed, and none\n"
		   "is invented. Each difference has the shortest path that shows it, and the rules that decide about it.\n"
		   "'+' is what the second file lets through and the first does not, '-' the other way round. What would be\n"
		   "too large to be compared exactly is an error.\n"
		   "\n"
		   "Exit status: 0 the second file allows nothing that the first does not, 1 it does, 2 wrong usage.\n",
	.options = diff_options,
	.run = diff,
};
