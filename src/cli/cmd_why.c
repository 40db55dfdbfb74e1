/* SPDX-License-Identifier: Apache-2.0 */
/* cordon why: explains the decision about a path: the rule behind it, and what would change it. */
#include <stdio.h>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/manager.h"
#include "cli/run_options.h"
#include "cli/verdict.h"

enum { KEY_OP };

static const struct cordon_option options[] = {
	CORDON_SCOPE_OPTIONS,
	CORDON_SHARE_OPTIONS,
	{ "op", 0, CORDON_ARG_CHOICE, "read|write|connect",
	  "what is to be done (default: connect for HOST:PORT, else write if that may be)", KEY_OP },
	{ 0 },
};

struct args {
	struct cordon_run_options run;
	const char *op;
};

static int set(void *data, int key, const char *arg, struct cordon_error *err)
{
	struct args *args = data;

	if (cordon_run_options_own(key))
		return cordon_run_options_set(&args->run, key, arg, err);
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

static void print_text(const struct cordon_asker *asker, const char *path, const char *because, const char *remedy)
{
	static const char *const colours[] = { "\033[32m", "\033[33m", "\033[31m" };
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
	printf("  %-10s %s\n", "because", because);
	if (*remedy)
		printf("  %-10s %s\n", "to change", remedy);
}

/* Whether the operand is a host with its port, and no file has that name. */
static bool is_host(const struct cordon_policy *policy, const char *text)
{
	const char *colon = strrchr(text, ':');
	CORDON_UNCLEARED struct cordon_resolved found;
	struct cordon_net_rule rule;

	if (!colon || strchr(text, '/') || cordon_net_rule_parse(text, strlen(text), &rule, NULL) < 0)
		return false;
	cordon_resolve(&policy->root, text, &found);
	return !found.exists;
}

static int explain(struct cordon_cli *cli, const struct cordon_policy *policy, cordon_op op, bool connect,
		   const char *path)
{
	autobuf struct cordon_buf because = CORDON_BUF(1u << 20);
	autobuf struct cordon_buf remedy = CORDON_BUF(1u << 20);
	struct cordon_asker asker;
	struct cordon_error err = { 0 };
	json_t *object;
	int r;

	if (connect && cordon_policy_check_host(policy, path, &asker.decision, &err) < 0)
		return cordon_cli_fail(cli, &err);
	cordon_asker_init(&asker, policy, op);
	asker.connect = connect;
	cordon_asker_ask(&asker, path, strlen(path));
	cordon_asker_done(&asker);
	r = connect ? cordon_policy_explain_host(policy, &asker.decision, &because, &remedy)
		    : cordon_policy_explain(policy, &asker.decision, op, &because, &remedy);
	if (r < 0) {
		cordon_fail_errno(&err, r, "cannot explain %s", path);
		return cordon_cli_fail(cli, &err);
	}
	if (!cli->json) {
		print_text(&asker, path, because.data ? because.data : "", remedy.data ? remedy.data : "");
		return CORDON_EXIT_OK;
	}
	object = cordon_asker_json(&asker, path, strlen(path));
	json_object_set_new(object, "root", cordon_cli_json_text(policy->root.path));
	json_object_set_new(object, "mode", json_string(cordon_mode_name(policy->mode)));
	json_object_set_new(object, "because", cordon_cli_json_text(because.data ? because.data : ""));
	json_object_set_new(object, "remedy", cordon_cli_json_text(remedy.data ? remedy.data : ""));
	return cordon_cli_print_json(cli, object);
}

static int run_with(struct cordon_cli *cli, struct args *args, int argc, char **argv)
{
	struct cordon_policy *policy CORDON_CLEANUP(cordon_policy_freep) = NULL;
	struct cordon_error err = { 0 };
	int first, r = cordon_cli_parse(cli, argc, argv, 0, set, args, &first, &err);

	if (r != 0)
		return r > 0 ? CORDON_EXIT_OK : cordon_cli_fail(cli, &err);
	if (argc - first != 1)
		return cordon_cli_usage(cli, "one path is expected, not %d", argc - first);
	r = cordon_run_options_policy(cli, &args->run, CORDON_RUN_ASKS, &policy);
	if (r)
		return r;
	return explain(cli, policy, cordon_default_op(policy, args->op),
		       args->op ? cordon_op_connects(args->op) : is_host(policy, argv[first]), argv[first]);
}

static int run(struct cordon_cli *cli, int argc, char **argv)
{
	struct args args = { .run.table = options };
	int r = run_with(cli, &args, argc, argv);

	cordon_run_options_done(&args.run);
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
