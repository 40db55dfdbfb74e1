/* SPDX-License-Identifier: Apache-2.0 */
/* cordon mcp: serves the Model Context Protocol on the standard streams. */
#include "cli/commands.h"
#include "cli/records.h"
#include "job/session.h"
#include "mcp/mcp.h"

enum { OPT_APPROVED = 1, OPT_SELF_TEST, OPT_SESSION };

struct args {
	struct cordon_mcp_options options;
	bool self_test;
	const char *session;
	char id[CORDON_ID_SIZE];
};

static int set(void *data, int key, const char *arg, struct cordon_error *err)
{
	struct args *args = data;

	(void)err;
	if (key == OPT_SESSION)
		args->session = arg;
	else if (key == OPT_APPROVED)
		args->options.approved = true;
	else
		args->self_test = true;
	return 0;
}

static int run(struct cordon_cli *cli, int argc, char **argv)
{
	autostore struct cordon_store store = CORDON_STORE_NONE;
	struct args args = { 0 };
	struct cordon_error err = { 0 };
	struct cordon_mcp *mcp = NULL;
	int first, r = cordon_cli_parse(cli, argc, argv, 0, set, &args, &first, &err);

	if (r != 0)
		return r > 0 ? CORDON_EXIT_OK : cordon_cli_fail(cli, &err);
	if (first < argc)
		return cordon_cli_usage(cli, "no argument is expected, not %s", argv[first]);
	if (!cordon_cli_open_store(cli, &store, &r))
		return r;
	if (args.session) {
		autosessionrecord struct cordon_session_record session = { 0 };

		if (cordon_session_find(&store, args.session, args.id, &err) < 0 ||
		    cordon_session_get(&store, args.id, &session, &err) < 0)
			return cordon_cli_fail(cli, &err);
		args.options.session = args.id;
	}
	if (cordon_mcp_new(&store, &args.options, &mcp, &err) < 0)
		return cordon_cli_fail(cli, &err);
	if (args.self_test) {
		r = cordon_cli_print_json(cli, cordon_mcp_discover(mcp));
	} else {
		r = cordon_mcp_stdio(mcp, STDIN_FILENO, STDOUT_FILENO, &err);
		r = r < 0 ? cordon_cli_fail(cli, &err) : CORDON_EXIT_OK;
	}
	cordon_mcp_free(mcp);
	return r;
}

static const struct cordon_option options[] = {
	{ "approved", 0, CORDON_ARG_NONE, NULL, "delete and widen access without asking a person each time",
	  OPT_APPROVED },
	{ "session", 0, CORDON_ARG_TEXT, "SESSION", "serve the agent of this session, and only what it may have",
	  OPT_SESSION },
	{ "self-test", 0, CORDON_ARG_NONE, NULL, "print what the server says about itself, and end", OPT_SELF_TEST },
	{ 0 },
};

const struct cordon_command cordon_cmd_mcp = {
	.name = "mcp",
	.operands = "",
	.summary = "serve projects, workspaces and sessions to MCP clients on the standard streams",
	.details = "Speaks protocol 2026-07-28 and, after an initialize, 2025-11-25 and older. The end of the input ends the server;\n"
		   "sessions go on without it.\n",
	.options = options,
	.run = run,
};
