/* SPDX-License-Identifier: Apache-2.0 */
/* cordon serve: starts the HTTP server, an executable of its own, in place of this process. */
#include <unistd.h>

#include "base/program.h"
#include "cli/commands.h"

#define PROGRAM "cordon-serve"
#define WORDS_MAX 64

enum { OPT_LISTEN = 1, OPT_ANY, OPT_HOST, OPT_TOOLSET, OPT_LABELS };

/* The arguments of the program: "listen=127.0.0.1:8080". */
struct words {
	char *items[WORDS_MAX + 2];
	int n;
};

static int set(void *data, int key, const char *arg, struct cordon_error *err)
{
	static const char *const names[] = {
		[OPT_LISTEN] = "listen", [OPT_ANY] = "any", [OPT_HOST] = "host", [OPT_TOOLSET] = "toolset", [OPT_LABELS] = "metrics-labels"
	};
	struct words *words = data;
	autobuf struct cordon_buf word = CORDON_BUF(CORDON_PATH_MAX + 64);

	if (words->n > WORDS_MAX || cordon_buf_addf(&word, "%s=%s", names[key], arg ? arg : "1") < 0)
		return cordon_fail(err, -E2BIG, CORDON_KIND_USAGE, "too many or too long options");
	words->items[words->n] = cordon_buf_steal(&word);
	if (!words->items[words->n])
		return cordon_fail(err, -ENOMEM, CORDON_KIND_LIMIT, "out of memory");
	words->n++;
	return 0;
}

static int run(struct cordon_cli *cli, int argc, char **argv)
{
	char program[CORDON_PATH_MAX], name[] = PROGRAM;
	struct words words = { .items = { name }, .n = 1 };
	struct cordon_error err = { 0 };
	int first, r = cordon_cli_parse(cli, argc, argv, 0, set, &words, &first, &err);

	if (r > 0)
		return CORDON_EXIT_OK;
	if (r == 0 && first < argc)
		return cordon_cli_usage(cli, "no argument is expected, not %s", argv[first]);
	if (r == 0)
		r = cordon_program_find(PROGRAM, program, &err);
	if (r == 0) {
		execv(program, words.items);
		cordon_fail_errno(&err, -errno, "cannot execute %s", program);
	}
	for (int i = 1; i < words.n; i++)
		free(words.items[i]);
	return cordon_cli_fail(cli, &err);
}

static const struct cordon_option options[] = {
	{ "listen", 0, CORDON_ARG_TEXT, "ADDRESS",
	  "unix:PATH, 127.0.0.1:PORT or [::1]:PORT; may be given several times", OPT_LISTEN },
	{ "insecure-any", 0, CORDON_ARG_TEXT, "ADDRESS:PORT", "listen where others can connect; needs a front with TLS",
	  OPT_ANY },
	{ "allow-host", 0, CORDON_ARG_TEXT, "HOST[:PORT]", "also serve requests for this Host, of a front", OPT_HOST },
	{ "toolset", 0, CORDON_ARG_TEXT, "LIST",
	  "offer only these tools or families, as in project,session or manage,run", OPT_TOOLSET },
	{ "metrics-labels", 0, CORDON_ARG_NONE, NULL, "let /metrics say of which projects sessions are", OPT_LABELS },
	{ 0 },
};

const struct cordon_command cordon_cmd_serve = {
	.name = "serve",
	.operands = "",
	.summary = "serve projects, workspaces and sessions to MCP clients over HTTP",
	.details =
		"The endpoint is /mcp. By default the server listens on a Unix socket below $XDG_RUNTIME_DIR, for this user alone.\n"
		"On a port every client needs a token; see 'cordon token create'. Sessions go on when the server ends.\n"
		"/metrics has counts for a monitoring system, for a token with the scope read that is for all projects.\n",
	.options = options,
	.run = run,
};
