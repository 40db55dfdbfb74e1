/* SPDX-License-Identifier: Apache-2.0 */
/* The command table. */
#include <signal.h>
#include <stdio.h>

#include "cli/cli.h"
#include "cli/commands.h"

const struct cordon_command *const cordon_commands[] = {
	NULL,
};

static void print_help(void)
{
	printf("Usage: cordon COMMAND [OPTION]... [ARGUMENT]...\n\n"
	       "Run AI agents in workspaces whose boundaries the Linux kernel holds.\n\nCommands:\n");
	for (size_t i = 0; cordon_commands[i]; i++)
		printf("  %-16s %s\n", cordon_commands[i]->name, cordon_commands[i]->summary);
	printf("\n'cordon COMMAND --help' explains one; cordon(1) has the rest.\n");
}

int main(int argc, char **argv)
{
	struct cordon_cli cli = { .failure_exit = CORDON_EXIT_NO };
	struct cordon_command none = { .name = "", .operands = "", .summary = "" };

	cli.command = &none;
	/* A closed pipe is an error of the write that meets it, not the end of the process. */
	signal(SIGPIPE, SIG_IGN);
	if (argc < 2) {
		print_help();
		return CORDON_EXIT_USAGE;
	}
	if (cordon_streq(argv[1], "--help") || cordon_streq(argv[1], "-h") || cordon_streq(argv[1], "help")) {
		print_help();
		return CORDON_EXIT_OK;
	}
	if (cordon_streq(argv[1], "--version")) {
		printf("cordon %s\n", cordon_version());
		return CORDON_EXIT_OK;
	}
	for (size_t i = 0; cordon_commands[i]; i++) {
		if (!cordon_streq(argv[1], cordon_commands[i]->name))
			continue;
		cli.command = cordon_commands[i];
		return cli.command->run(&cli, argc - 1, argv + 1);
	}
	return cordon_cli_usage(&cli, "unknown command: %s", argv[1]);
}
