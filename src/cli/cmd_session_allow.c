/* SPDX-License-Identifier: Apache-2.0 */
/* cordon session allow: lets a session have a host or a path that its settings do not have. */
#include "cli/commands.h"
#include "cli/records.h"
#include "job/session.h"

enum { OPT_HOST = 1, OPT_PATH, OPT_WRITE, OPT_FOR };

struct args {
	struct cordon_allowance wanted;
	const char *span;
};

static int set(void *data, int key, const char *arg, struct cordon_error *err)
{
	struct args *args = data;

	(void)err;
	if (key == OPT_WRITE)
		args->wanted.write = true;
	else
		*(key == OPT_HOST ? &args->wanted.host : key == OPT_PATH ? &args->wanted.path : &args->span) = arg;
	return 0;
}

static int run(struct cordon_cli *cli, int argc, char **argv)
{
	autostore struct cordon_store store = CORDON_STORE_NONE;
	struct args args = { .span = "run" };
	struct cordon_session_allowed allowed = { 0 };
	cordon_approval_span span = CORDON_APPROVAL_ONCE;
	struct cordon_error err = { 0 };
	char id[CORDON_ID_SIZE];
	int first, r = cordon_cli_parse(cli, argc, argv, 0, set, &args, &first, &err);

	if (r != 0)
		return r > 0 ? CORDON_EXIT_OK : cordon_cli_fail(cli, &err);
	if (argc - first != 1)
		return cordon_cli_usage(cli, "one SESSION is expected");
	if (!args.wanted.host == !args.wanted.path)
		return cordon_cli_usage(cli, "say --host or --path, and not both");
	if (args.wanted.host && args.wanted.write)
		return cordon_cli_usage(cli, "--write is for a path");
	if (!cordon_streq(args.span, "run") && cordon_approval_span_parse(args.span, &span, &err) < 0)
		return cordon_cli_fail(cli, &err);
	if (!cordon_cli_open_store(cli, &store, &r) || !cordon_cli_find_session(cli, &store, argv[first], id, &r))
		return r;
	if (cordon_session_allow(&store, id, &args.wanted, span, NULL, &allowed, &err) < 0)
		return cordon_cli_fail(cli, &err);
	if (!allowed.now)
		cordon_cli_log(cli, "INFO", CORDON_SESSION_ALLOWED_LATER);
	return cordon_cli_answer(cli, json_pack("{s:s, s:s, s:s, s:s, s:b}", "session_id", id, "allowed", allowed.text,
						"for", args.span, "effective", allowed.now ? "now" : "next_start",
						"already", (int)allowed.already));
}

static const struct cordon_option options[] = {
	{ "host", 0, CORDON_ARG_HOSTS, "HOST", "a host, as in example.org:443", OPT_HOST },
	{ "path", 0, CORDON_ARG_FILE, "PATH", "an absolute path of the host, for reading", OPT_PATH },
	{ "write", 0, CORDON_ARG_NONE, NULL, "with --path: for changing, too", OPT_WRITE },
	{ "for", 0, CORDON_ARG_CHOICE, "run|session|policy",
	  "for one run (default), also when it is resumed, or for all sessions of its project", OPT_FOR },
	{ 0 },
};

const struct cordon_command cordon_cmd_session_allow = {
	.name = "session allow",
	.operands = "SESSION",
	.summary = "let a session have a host or a path beside what its settings say",
	.details = "A host counts at once if the session runs with a list of hosts. A running sandbox can't be widened by paths, so\n"
		   "a path counts from the session's next start. The project's protected paths and cordon's own records can't be\n"
		   "had this way.\n",
	.options = options,
	.run = run,
};
