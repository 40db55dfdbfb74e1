/* SPDX-License-Identifier: Apache-2.0 */
/* cordon clone-source: clones the source of a PRD. */
#include "cli/commands.h"
#include "git/clone.h"

static int set(void *data, int key, const char *arg, struct cordon_error *err)
{
	(void)data, (void)key, (void)arg, (void)err; /* This command has the common options only. */
	return 0;
}

static int run(struct cordon_cli *cli, int argc, char **argv)
{
	struct cordon_error err = { 0 };
	int first, r = cordon_cli_parse(cli, argc, argv, 0, set, NULL, &first, &err);

	if (r != 0)
		return r > 0 ? CORDON_EXIT_OK : cordon_cli_fail(cli, &err);
	if (argc - first != 2)
		return cordon_cli_usage(cli, "a source and a destination are expected, not %d arguments", argc - first);
	if (cordon_git_clone(argv[first], argv[first + 1], &err) < 0)
		return cordon_cli_fail(cli, &err);
	cordon_cli_log(cli, "INFO", "Cloned %s to %s", argv[first], argv[first + 1]);
	if (cli->json)
		return cordon_cli_print_json(cli, json_pack("{s:o, s:o}", "source", cordon_cli_json_text(argv[first]),
							    "path", cordon_cli_json_text(argv[first + 1])));
	return CORDON_EXIT_OK;
}

const struct cordon_command cordon_cmd_clone_source = {
	.name = "clone-source",
	.operands = "SOURCE DIR",
	.summary = "clone a repository in a sandbox",
	.details = "SOURCE is an address (https://, http://, git://, file:///) or the path of a repository; DIR is missing or empty.\n"
		   "Git can write DIR and reach the host of the address, or read the source, and nothing else. It gets no credentials,\n"
		   "and clones no submodules.\n",
	.options = NULL,
	.run = run,
};
