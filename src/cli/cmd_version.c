/* SPDX-License-Identifier: Apache-2.0 */
/* cordon version: prints the version of the program. */
#include <stdio.h>

#include "cli/commands.h"

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
	if (first < argc)
		return cordon_cli_usage(cli, "unexpected argument: %s", argv[first]);
	if (cli->json)
		return cordon_cli_print_json(cli, json_pack("{s:s}", "version", cordon_version()));
	printf("%s%s\n", cli->quiet ? "" : "cordon ", cordon_version());
	return CORDON_EXIT_OK;
}

const struct cordon_command cordon_cmd_version = {
	.name = "version",
	.operands = "",
	.summary = "print the version",
	.run = run,
};
