/* SPDX-License-Identifier: Apache-2.0 */
/* The command table, and main() of cordon. */
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>

#include "base/title.h"
#include "cli/cli.h"
#include "cli/commands.h"

const struct cordon_command *const cordon_commands[] = {
	/* Runs and this machine. */
	&cordon_cmd_run,
	&cordon_cmd_learn,
	&cordon_cmd_doctor,
	&cordon_cmd_gc,
	/* Folder workspaces: WORKSPACE_FOLDERS, PRD files, links. */
	&cordon_cmd_validate,
	&cordon_cmd_check_file,
	&cordon_cmd_infer_scope,
	&cordon_cmd_update_prd,
	&cordon_cmd_mount,
	&cordon_cmd_unmount,
	&cordon_cmd_prompt_section,
	/* Questions about a policy, and the audit log. */
	&cordon_cmd_check,
	&cordon_cmd_why,
	&cordon_cmd_tree,
	&cordon_cmd_completion,
	&cordon_cmd_audit,
	&cordon_cmd_audit_verify,
	/* Projects, their workspaces and sessions. */
	&cordon_cmd_project_create,
	&cordon_cmd_project_list,
	&cordon_cmd_project_get,
	&cordon_cmd_project_update,
	&cordon_cmd_project_delete,
	&cordon_cmd_workspace_create,
	&cordon_cmd_workspace_list,
	&cordon_cmd_workspace_get,
	&cordon_cmd_workspace_sync,
	&cordon_cmd_workspace_delete,
	&cordon_cmd_session_start,
	&cordon_cmd_session_list,
	&cordon_cmd_session_get,
	&cordon_cmd_session_send,
	&cordon_cmd_session_output,
	&cordon_cmd_session_attach,
	&cordon_cmd_session_exec,
	&cordon_cmd_session_wait,
	&cordon_cmd_session_stop,
	&cordon_cmd_session_cleanup,
	&cordon_cmd_mcp,
	NULL,
};

static void print_help(void)
{
	size_t width = 0;

	for (size_t i = 0; cordon_commands[i]; i++)
		if (strlen(cordon_commands[i]->name) > width)
			width = strlen(cordon_commands[i]->name);
	printf("Usage: cordon COMMAND [OPTION]... [ARGUMENT]...\n\n"
	       "Run AI agents in workspaces whose boundaries the Linux kernel holds.\n\nCommands:\n");
	for (size_t i = 0; cordon_commands[i]; i++)
		printf("  %-*s  %s\n", (int)width, cordon_commands[i]->name, cordon_commands[i]->summary);
	printf("\n'cordon COMMAND --help' explains one; cordon(1) has the rest.\n");
}

/* Returns how many words of argv the command's name takes ("audit verify" takes two), or 0 if argv names another
 * command. */
static int words_matched(const struct cordon_command *command, int argc, char **argv)
{
	const char *name = command->name;

	for (int i = 0; i < argc; i++) {
		size_t n = strcspn(name, " ");

		if (strlen(argv[i]) != n || memcmp(argv[i], name, n) != 0)
			return 0;
		name += n;
		if (!*name)
			return i + 1;
		name++;
	}
	return 0;
}

static const struct cordon_command *find_command(int argc, char **argv, int *ret_words)
{
	const struct cordon_command *found = NULL;

	*ret_words = 0;
	for (size_t i = 0; cordon_commands[i]; i++) {
		int words = words_matched(cordon_commands[i], argc, argv);

		if (words <= *ret_words)
			continue;
		*ret_words = words;
		found = cordon_commands[i];
	}
	return found;
}

/* Lists the commands that begin with the word, so that "cordon session" shows what can follow. */
static int unknown_command(const struct cordon_cli *cli, const char *word)
{
	autobuf struct cordon_buf list = CORDON_BUF(1024);
	size_t n = strlen(word);

	for (size_t i = 0; cordon_commands[i]; i++) {
		const char *name = cordon_commands[i]->name;

		if (n && strncmp(name, word, n) == 0 && name[n] == ' ')
			cordon_buf_addf(&list, "%s%s", list.len ? ", " : "", name);
	}
	if (list.len)
		return cordon_cli_usage(cli, "incomplete command: %s; there are %s", word, list.data);
	return cordon_cli_usage(cli, "unknown command: %s", word);
}

static int dispatch(struct cordon_cli *cli, int argc, char **argv)
{
	const struct cordon_command *command;
	bool help = argc > 1 && cordon_streq(argv[1], "help");
	int words;

	if (argc < 2) {
		print_help();
		return CORDON_EXIT_USAGE;
	}
	if (cordon_streq(argv[1], "--help") || cordon_streq(argv[1], "-h") || (help && argc == 2)) {
		print_help();
		return CORDON_EXIT_OK;
	}
	if (cordon_streq(argv[1], "--version")) {
		printf("cordon %s\n", cordon_version());
		return CORDON_EXIT_OK;
	}
	if (help) {
		argc--;
		argv++;
	}
	command = find_command(argc - 1, argv + 1, &words);
	if (!command)
		return unknown_command(cli, argv[1]);
	if (help) {
		cordon_cli_help(command);
		return CORDON_EXIT_OK;
	}
	cli->command = command;
	return command->run(cli, argc - words, argv + words);
}

/* Opens /dev/null for every standard stream that is closed. Otherwise the next file that we open would become one. */
static void fill_streams(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd < 3);
	cordon_closep(&fd);
}

int main(int argc, char **argv)
{
	static const struct cordon_command none = { .name = "", .operands = "", .summary = "" };
	struct cordon_cli cli = { .command = &none, .failure_exit = CORDON_EXIT_NO };
	struct cordon_error err = { 0 };
	int r;

	/* During a start the heap grows and shrinks many times by what one step needs. Pages that nobody touches cost
	 * nothing. */
	mallopt(M_TOP_PAD, 1 << 20);
	mallopt(M_TRIM_THRESHOLD, 16 << 20);
	mallopt(M_ARENA_MAX, 1); /* the thread of the watch allocates next to nothing and needs no arena of its own */
	cordon_title_init(argc, argv);
	cordon_cli_name_settings();
	fill_streams();
	/* A closed pipe is then an error of write(2) and not the end of the process. */
	signal(SIGPIPE, SIG_IGN);
	r = dispatch(&cli, argc, argv);
	if (fflush(stdout) == 0 && !ferror(stdout))
		return r;
	/* A reader that closed the pipe needs no message. Other errors, such as a full disk, do. */
	if (errno != EPIPE) {
		cordon_fail_errno(&err, -errno, "cannot write to standard output");
		cordon_cli_fail(&cli, &err);
	}
	return r ? r : cli.failure_exit;
}
