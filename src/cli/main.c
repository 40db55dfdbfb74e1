/* SPDX-License-Identifier: Apache-2.0 */
/* The command table, and main() of cordon. */
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

#include "base/path.h"
#include "base/title.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/policy_live.h"
#include "config/suggest.h"

const struct cordon_command *const cordon_commands[] = {
	/* Runs and this machine. */
	&cordon_cmd_run,
	&cordon_cmd_shell,
	&cordon_cmd_learn,
	&cordon_cmd_loop,
	&cordon_cmd_loop_retry,
	&cordon_cmd_profile_list,
	&cordon_cmd_profile_show,
	&cordon_cmd_doctor,
	&cordon_cmd_gc,
	&cordon_cmd_version,
	/* What runs changed in their views. */
	&cordon_cmd_changes_list,
	&cordon_cmd_changes_show,
	&cordon_cmd_changes_diff,
	&cordon_cmd_changes_apply,
	&cordon_cmd_changes_undo,
	&cordon_cmd_changes_discard,
	/* Named agents. */
	&cordon_cmd_execute,
	&cordon_cmd_status,
	&cordon_cmd_logs,
	&cordon_cmd_agent_init,
	&cordon_cmd_agent_list,
	&cordon_cmd_agent_show,
	&cordon_cmd_agent_validate,
	&cordon_cmd_agent_trust,
	&cordon_cmd_agent_add,
	&cordon_cmd_agent_remove,
	&cordon_cmd_role_list,
	/* Folder workspaces: WORKSPACE_FOLDERS, PRD files, links. */
	&cordon_cmd_validate,
	&cordon_cmd_check_file,
	&cordon_cmd_infer_scope,
	&cordon_cmd_update_prd,
	&cordon_cmd_mount,
	&cordon_cmd_unmount,
	&cordon_cmd_prompt_section,
	&cordon_cmd_preset_list,
	&cordon_cmd_preset_show,
	/* PRD files. */
	&cordon_cmd_prd_validate,
	&cordon_cmd_prd_schema,
	&cordon_cmd_prd_deps,
	&cordon_cmd_prd_ready,
	&cordon_cmd_prd_check_cycles,
	&cordon_cmd_prd_new,
	&cordon_cmd_get_source,
	&cordon_cmd_clone_source,
	/* Questions about a policy, and the audit log. */
	&cordon_cmd_check,
	&cordon_cmd_policy_diff,
	&cordon_cmd_policy_test,
	&cordon_cmd_policy_import,
	&cordon_cmd_why,
	&cordon_cmd_tree,
	&cordon_cmd_completion,
	&cordon_cmd_stats,
	&cordon_cmd_audit,
	&cordon_cmd_audit_verify,
	&cordon_cmd_verify_run,
	/* Commits. */
	&cordon_cmd_git_check,
	&cordon_cmd_git_install_hook,
	&cordon_cmd_git_take,
	&cordon_cmd_git_list,
	&cordon_cmd_git_drop,
	/* Projects, their workspaces and sessions. */
	&cordon_cmd_project_create,
	&cordon_cmd_project_import,
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
	&cordon_cmd_session_net,
	&cordon_cmd_session_allow,
	&cordon_cmd_session_cleanup,
	/* Orchestrators, shared areas and their settings. */
	&cordon_cmd_orchestrator_list,
	&cordon_cmd_orchestrator_add,
	&cordon_cmd_orchestrator_show,
	&cordon_cmd_orchestrator_remove,
	&cordon_cmd_orchestrator_set_private_workspace,
	&cordon_cmd_orchestrator_unset_private_workspace,
	&cordon_cmd_orchestrator_grant_shared_access,
	&cordon_cmd_orchestrator_revoke_shared_access,
	&cordon_cmd_orchestrator_set_selector_agent,
	&cordon_cmd_orchestrator_set_default_workflow,
	&cordon_cmd_orchestrator_set_selection_max_retries,
	&cordon_cmd_orchestrator_run,
	&cordon_cmd_orchestrator_agent_list,
	&cordon_cmd_orchestrator_agent_add,
	&cordon_cmd_orchestrator_agent_show,
	&cordon_cmd_orchestrator_agent_remove,
	&cordon_cmd_shared_list,
	&cordon_cmd_shared_add,
	&cordon_cmd_shared_show,
	&cordon_cmd_shared_remove,
	&cordon_cmd_channel_profile_list,
	&cordon_cmd_channel_profile_add,
	&cordon_cmd_channel_profile_show,
	&cordon_cmd_channel_profile_remove,
	&cordon_cmd_channel_profile_set_orchestrator,
	&cordon_cmd_access,
	&cordon_cmd_config_validate,
	&cordon_cmd_config_show,
	&cordon_cmd_config_path,
	&cordon_cmd_config_import,
	&cordon_cmd_config_confirm,
	/* Workflows of orchestrators. */
	&cordon_cmd_workflow_list,
	&cordon_cmd_workflow_show,
	&cordon_cmd_workflow_add,
	&cordon_cmd_workflow_remove,
	&cordon_cmd_workflow_validate,
	&cordon_cmd_workflow_run,
	&cordon_cmd_workflow_runs,
	&cordon_cmd_workflow_status,
	&cordon_cmd_workflow_progress,
	&cordon_cmd_workflow_logs,
	&cordon_cmd_workflow_cancel,
	&cordon_cmd_workflow_resume,
	&cordon_cmd_workflow_approve,
	&cordon_cmd_workflow_reject,
	&cordon_cmd_mcp,
	&cordon_cmd_serve,
	&cordon_cmd_open,
	&cordon_cmd_token_create,
	&cordon_cmd_token_list,
	&cordon_cmd_token_revoke,
	&cordon_cmd_approvals_list,
	&cordon_cmd_approvals_show,
	&cordon_cmd_approvals_approve,
	&cordon_cmd_approvals_deny,
	NULL,
};

/* Where a heading stands in the list of all commands. */
static const struct {
	const struct cordon_command *first;
	const char *heading;
} headings[] = {
	{ &cordon_cmd_run, "Runs and this machine" },
	{ &cordon_cmd_changes_list, "What runs changed in their views" },
	{ &cordon_cmd_execute, "Several agents" },
	{ &cordon_cmd_validate, "Folder workspaces and PRD files" },
	{ &cordon_cmd_check, "Policies and the audit log" },
	{ &cordon_cmd_git_check, "Commits" },
	{ &cordon_cmd_project_create, "Projects, workspaces and sessions" },
	{ &cordon_cmd_orchestrator_list, "Orchestrators, shared areas and their settings" },
	{ &cordon_cmd_workflow_list, "Workflows" },
	{ &cordon_cmd_mcp, "Servers, tokens and approvals" },
};

static const char *heading_of(const struct cordon_command *command)
{
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(headings); i++)
		if (headings[i].first == command)
			return headings[i].heading;
	return NULL;
}

/* Lists all commands below their headings, or those of a group without the group's name. */
static void print_commands(const char *group)
{
	size_t width = 0;
	const char *word, *heading;

	for (size_t i = 0; cordon_commands[i]; i++)
		if ((word = cordon_cli_word_after(cordon_commands[i], group)) && strlen(word) > width)
			width = strlen(word);
	for (size_t i = 0; cordon_commands[i]; i++) {
		if (!(word = cordon_cli_word_after(cordon_commands[i], group)))
			continue;
		if (!*group && (heading = heading_of(cordon_commands[i])))
			printf("\n%s:\n", heading);
		printf("  %-*s  %s\n", (int)width, word, cordon_commands[i]->summary);
	}
}

/* What a person needs first. */
static void print_help(void)
{
	printf("Usage: cordon [OPTION]... claude|codex|gemini|opencode [ARGUMENT]...\n"
	       "       cordon COMMAND [OPTION]... [ARGUMENT]...\n\n"
	       "Run AI agents in workspaces whose boundaries the Linux kernel holds.\n\nCommands:\n"
	       "  claude, codex,     the agent you have, in one word: its profile and its hosts, known secrets hidden, a git\n"
	       "  gemini, opencode   directory of its own; options of 'run' stand before the name\n"
	       "  run                any other command\n"
	       "  shell              a shell in the sandbox that a run would have\n"
	       "  why, tree          what would be allowed, and why\n"
	       "  learn              a policy from what a command did\n"
	       "  changes            look at, apply or undo what a view changed\n"
	       "  audit              what happened: runs and refusals\n"
	       "  open               the page\n"
	       "  doctor             what this machine can enforce, and how to mend it\n\n"
	       "Examples:\n"
	       "  cordon claude\n"
	       "  cordon --cow codex exec 'fix the tests'; cordon changes show\n"
	       "  cordon run --write src -- make test\n\n"
	       "'cordon help all' lists every command, 'cordon COMMAND --help' explains one; cordon(1) has the rest.\n");
}

static void print_all(void)
{
	printf("Usage: cordon COMMAND [OPTION]... [ARGUMENT]...\n\nCommands:\n");
	print_commands("");
	printf("\n'cordon COMMAND --help' explains one; cordon(1) has the rest.\n");
}

static void print_client_help(const char *client)
{
	printf("Usage: cordon [OPTION]... %s [ARGUMENT]...\n\n"
	       "Run %s in a sandbox: 'cordon run --profile %s --net profile --deny-secrets', and a git directory of its own\n"
	       "whose commits are taken over at the end. Options are those of 'cordon run' and stand before the name; everything\n"
	       "behind it is the client's.\n",
	       client, client, client);
}

static void print_group_help(const char *group)
{
	printf("Usage: cordon %s COMMAND [OPTION]... [ARGUMENT]...\n\nCommands:\n", group);
	print_commands(group);
	printf("\n'cordon %s COMMAND --help' explains one; cordon-%s(1) has the rest.\n", group, group);
}

static bool is_group(const char *word)
{
	for (size_t i = 0; *word && cordon_commands[i]; i++)
		if (cordon_cli_word_after(cordon_commands[i], word))
			return true;
	return false;
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

/* Whether a word names a command as the original's functions are named: orchestrator.grant_shared_access. */
static bool is_dotted(const char *name, const char *word)
{
	for (; *name && *word; name++, word++)
		if (*name != *word && !(*name == ' ' && *word == '.') && !(*name == '-' && *word == '_'))
			return false;
	return !*name && !*word;
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
	for (size_t i = 0; !found && argc > 0 && strchr(argv[0], '.') && cordon_commands[i]; i++) {
		if (!is_dotted(cordon_commands[i]->name, argv[0]))
			continue;
		*ret_words = 1;
		found = cordon_commands[i];
	}
	return found;
}

/* Adds the commands whose second word this is: "start" is "session start". */
static void add_second(const char *word, struct cordon_buf *list)
{
	for (size_t i = 0; cordon_commands[i]; i++) {
		const char *second = strchr(cordon_commands[i]->name, ' ');

		if (second && cordon_streq(second + 1, word))
			cordon_buf_addf(list, "%scordon %s", list->len ? ", " : "", cordon_commands[i]->name);
	}
}

/* Adds the command that was probably meant. `group` is "" or a known first word, and `word` is what follows it. */
static void add_closest(const char *group, const char *word, struct cordon_buf *list)
{
	const struct cordon_command *closest = NULL;
	size_t best = CORDON_SUGGEST_FAR;

	for (size_t i = 0; cordon_commands[i]; i++) {
		const char *known = cordon_cli_word_after(cordon_commands[i], group);
		char first[64];

		if (!known || cordon_copy(first, sizeof(first), known, strcspn(known, " ")) < 0)
			continue;
		if (cordon_suggest_closer(word, first, &best))
			closest = cordon_commands[i];
	}
	if (closest)
		cordon_buf_addf(list, "cordon %s%s%.*s", group, *group ? " " : "",
				(int)strcspn(cordon_cli_word_after(closest, group), " "),
				cordon_cli_word_after(closest, group));
}

/* Names the command that was probably meant. */
static int unknown_command(const struct cordon_cli *cli, int argc, char **argv)
{
	autobuf struct cordon_buf list = CORDON_BUF(1024);
	bool group = argc > 1 && is_group(argv[0]);
	struct cordon_error err = { 0 };

	cordon_fail(&err, -EINVAL, CORDON_KIND_USAGE, "unknown command: %s%s%s", argv[0], group ? " " : "",
		    group ? argv[1] : "");
	if (!group)
		add_second(argv[0], &list);
	if (!list.len)
		add_closest(group ? argv[0] : "", argv[group ? 1 : 0], &list);
	if (list.len)
		cordon_error_hint(&err, "did you mean %s?", list.data);
	else
		cordon_error_hint(&err, "see 'cordon %s%s--help'", group ? argv[0] : "", group ? " " : "");
	return cordon_cli_fail(cli, &err);
}

static bool is_client(const char *word)
{
	for (size_t i = 0; cordon_clients[i]; i++)
		if (cordon_streq(cordon_clients[i], word))
			return true;
	return false;
}

/* "cordon --cow make": shows the line that was probably meant. */
static int options_before(const struct cordon_cli *cli, int argc, char **argv, int first)
{
	autobuf struct cordon_buf words = CORDON_BUF(256);
	struct cordon_error err = { 0 };
	int n;

	for (int i = 1; i < first; i++)
		cordon_buf_addf(&words, " %s", argv[i]);
	cordon_fail(&err, -EINVAL, CORDON_KIND_USAGE, "options stand before a client's name only, and %s is none",
		    argv[first]);
	if (find_command(argc - first, argv + first, &n) && words.len)
		cordon_error_hint(&err, "write: cordon %s%s ...", argv[first], words.data);
	else if (words.len)
		cordon_error_hint(&err, "write: cordon run%s -- %s ...", words.data, argv[first]);
	return cordon_cli_fail(cli, &err);
}

static bool asks_for_help(const char *word)
{
	return cordon_streq(word, "--help") || cordon_streq(word, "-h");
}

/* Answers what names no command: a group ("cordon session", "cordon session --help") or a word that is not known. */
static int no_command(struct cordon_cli *cli, int argc, char **argv, bool help)
{
	if (is_group(argv[0]) && (help || argc == 1 || asks_for_help(argv[1]))) {
		print_group_help(argv[0]);
		return help || argc > 1 ? CORDON_EXIT_OK : CORDON_EXIT_USAGE;
	}
	for (int i = 1; i < argc; i++)
		if (cordon_streq(argv[i], "--json"))
			cli->json = true;
	return unknown_command(cli, argc, argv);
}

static int dispatch(struct cordon_cli *cli, int argc, char **argv)
{
	const struct cordon_command *command;
	bool help = argc > 1 && cordon_streq(argv[1], "help");
	int words, first;

	if (argc < 2) {
		print_help();
		return CORDON_EXIT_USAGE;
	}
	if (is_client(argv[1]))
		return cordon_run_client(cli, argc, argv);
	if (help && argc == 3 && cordon_streq(argv[2], "all")) {
		print_all();
		return CORDON_EXIT_OK;
	}
	if (help && argc == 3 && is_client(argv[2])) {
		print_client_help(argv[2]);
		return CORDON_EXIT_OK;
	}
	if (asks_for_help(argv[1]) || (help && (argc == 2 || asks_for_help(argv[2])))) {
		print_help();
		return CORDON_EXIT_OK;
	}
	if (cordon_streq(argv[1], "--version") || cordon_streq(argv[1], "-V")) {
		cli->command = &cordon_cmd_version;
		return cordon_cmd_version.run(cli, argc - 1, argv + 1);
	}
	if (argv[1][0] == '-' && (first = cordon_run_first_word(cli, argc, argv)) > 0)
		return is_client(argv[first]) ? cordon_run_client(cli, argc, argv)
					      : options_before(cli, argc, argv, first);
	if (help) {
		argc--;
		argv++;
	}
	command = find_command(argc - 1, argv + 1, &words);
	if (!command)
		return no_command(cli, argc - 1, argv + 1, help);
	if (help) {
		cordon_cli_help(command);
		return CORDON_EXIT_OK;
	}
	/* "audit" is a command and a group: a word after it is a command that is not known. */
	if (!*command->operands && is_group(command->name) && words + 1 < argc && argv[words + 1][0] != '-')
		return no_command(cli, argc - words, argv + words, false);
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

/* Waits for PID 1 of a run, whose mounts the kernel takes its time to remove. */
static void wait_for_last(pid_t pid)
{
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

int main(int argc, char **argv)
{
	static const struct cordon_command none = { .name = "", .operands = "", .summary = "" };
	struct cordon_cli cli = { .command = &none, .failure_exit = CORDON_EXIT_NO };
	struct cordon_error err = { 0 };
	int r;

	if (argc == 1 && cordon_streq(cordon_path_base(argv[0]), CORDON_LIVE_PROBE))
		return cordon_live_probe();
	/* During a start the heap grows and shrinks many times by what one step needs. Pages that nobody touches cost
	 * nothing. */
	mallopt(M_TOP_PAD, 1 << 20);
	mallopt(M_TRIM_THRESHOLD, 16 << 20);
	mallopt(M_ARENA_MAX,
		1); /* the thread that hears the lens allocates next to nothing and needs no arena of its own */
	cordon_title_init(argc, argv);
	cordon_cli_name_settings();
	fill_streams();
	/* A closed pipe is then an error of write(2) and not the end of the process. */
	signal(SIGPIPE, SIG_IGN);
	r = dispatch(&cli, argc, argv);
	if (fflush(stdout) == 0 && !ferror(stdout)) {
		wait_for_last(cli.last);
		return r;
	}
	/* A reader that closed the pipe needs no message. Other errors, such as a full disk, do. */
	if (errno != EPIPE) {
		cordon_fail_errno(&err, -errno, "cannot write to standard output");
		cordon_cli_fail(&cli, &err);
	}
	wait_for_last(cli.last);
	return r ? r : cli.failure_exit;
}
