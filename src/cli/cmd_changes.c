/* SPDX-License-Identifier: Apache-2.0 */
/* cordon changes: lists, shows, applies, undoes and discards what runs changed in their views. */
#include <fcntl.h>
#include <stdio.h>

#include "base/path.h"
#include "base/text.h"
#include "cli/changes_view.h"
#include "cli/commands.h"
#include "cli/git_take.h"
#include "cli/records.h"
#include "policy/folders.h"

enum { OPT_ROOT = 1, OPT_ALL, OPT_STAT, OPT_NAME_STATUS, OPT_NO_PAGER, OPT_PATCH, OPT_DRY_RUN };

/* clang-format off */
#define ROOT_OPTION \
	{ "root", 0, CORDON_ARG_DIR, "DIR", "the root whose views are meant (default: the git top level, else .)", OPT_ROOT }
/* clang-format on */

struct args {
	const char *root;
	bool all, no_pager, patch, dry_run;
	cordon_changes_form form;
	const char **paths; /* relative to the root of the view */
	size_t n_paths;
	/* What the arguments name: */
	struct cordon_home home;
	struct cordon_view view;
	char *storage; /* of paths */
};

static void args_done(struct args *args)
{
	cordon_view_close(&args->view);
	cordon_home_done(&args->home);
	free(args->paths);
	free(args->storage);
}

/* clang-format off */
#define ARGS_NONE { .home = CORDON_HOME_NONE, .view = CORDON_VIEW_NONE }
/* clang-format on */
#define autoargs CORDON_CLEANUP(args_done)

static int set(void *data, int key, const char *arg, struct cordon_error *err)
{
	struct args *args = data;

	(void)err;
	switch (key) {
	case OPT_ROOT:
		args->root = arg;
		break;
	case OPT_ALL:
		args->all = true;
		break;
	case OPT_STAT:
		args->form = CORDON_CHANGES_STAT;
		break;
	case OPT_NAME_STATUS:
		args->form = CORDON_CHANGES_NAME_STATUS;
		break;
	case OPT_NO_PAGER:
		args->no_pager = true;
		break;
	case OPT_PATCH:
		args->patch = true;
		break;
	default:
		args->dry_run = true;
		break;
	}
	return 0;
}

/* Opens the root that the command is about. */
static int open_root(const struct args *args, struct cordon_root *ret_root, struct cordon_error *err)
{
	return args->root ? cordon_root_open(args->root, ret_root, err) : cordon_repo_root(".", ret_root, err);
}

/* A path of the command line becomes one relative to the root of the view. A relative path starts at the current directory
 * if that lies in the root, else at the root. */
static int place_path(const struct args *args, const char *given, char ret[static CORDON_PATH_MAX],
		      struct cordon_error *err)
{
	const char *root = args->view.record.root;
	char here[CORDON_PATH_MAX], joined[CORDON_PATH_MAX], clean[CORDON_PATH_MAX];
	size_t n = strlen(root);
	int r;

	if (*given != '/' && getcwd(here, sizeof(here)) && cordon_path_within(here, root))
		r = cordon_path_join(here, given, joined, sizeof(joined));
	else if (*given != '/')
		r = cordon_path_join(root, given, joined, sizeof(joined));
	else
		r = cordon_copy(joined, sizeof(joined), given, strlen(given));
	if (r == 0)
		r = cordon_path_clean(joined, clean, sizeof(clean));
	if (r < 0 || !cordon_path_within(clean, root))
		return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "not a path in %s: %s", root, given);
	return cordon_copy(ret, CORDON_PATH_MAX, clean[n] ? clean + n + (n > 1) : "",
			   strlen(clean + n) - (clean[n] && n > 1));
}

static int place_paths(struct args *args, int argc, char **argv, struct cordon_error *err)
{
	args->paths = calloc((size_t)argc + 1, sizeof(*args->paths));
	args->storage = calloc((size_t)argc + 1, CORDON_PATH_MAX);
	if (!args->paths || !args->storage)
		return cordon_fail_errno(err, -ENOMEM, "cannot read the arguments");
	for (int i = 0; i < argc; i++) {
		char *at = args->storage + (size_t)i * CORDON_PATH_MAX;
		int r = place_path(args, argv[i], at, err);

		if (r < 0)
			return r;
		args->paths[args->n_paths++] = at;
	}
	return 0;
}

/* Ends what a killed call began, and says so. */
static void recover(const struct cordon_cli *cli, struct args *args)
{
	struct cordon_error err = { 0 };
	size_t ended = 0;

	if (cordon_view_recover(&args->home, &ended, &err) < 0)
		cordon_cli_notice(cli, "an apply or undo that was interrupted: %s%s%s", err.message,
				  *err.hint ? "; " : "", err.hint);
	else if (ended)
		cordon_cli_log(cli, "CHANGES", "ended %zu that %s interrupted", ended, ended == 1 ? "was" : "were");
}

static int open_view(struct args *args, const char *id, struct cordon_error *err)
{
	struct cordon_root root = { .fd = -1 };
	char whole[CORDON_ID_SIZE];
	int r = open_root(args, &root, err);

	if (r == 0)
		r = cordon_view_find(&args->home, id, args->all ? -1 : root.fd, whole, err);
	cordon_root_done(&root);
	return r == 0 ? cordon_view_open(&args->home, whole, &args->view, err) : r;
}

enum { NEEDS_ID = 1, TAKES_PATHS = 2 };

/* Parses the command line, and opens the view that it names. */
static bool begin(struct cordon_cli *cli, int argc, char **argv, unsigned int flags, struct args *args, int *ret_exit)
{
	struct cordon_error err = { 0 };
	int first, r = cordon_cli_parse(cli, argc, argv, 0, set, args, &first, &err);

	if (r > 0) {
		*ret_exit = CORDON_EXIT_OK;
		return false;
	}
	if (r == 0 && first == argc && flags & NEEDS_ID) {
		*ret_exit = cordon_cli_usage(cli, "which view? give its id, or 'latest'");
		return false;
	}
	if (r == 0 && argc - first > 1 && !(flags & TAKES_PATHS)) {
		*ret_exit = cordon_cli_usage(cli, "unexpected argument: %s", argv[first + 1]);
		return false;
	}
	if (r == 0)
		r = cordon_home_open(&args->home, &err);
	if (r == 0) {
		recover(cli, args);
		r = open_view(args, first < argc ? argv[first] : "latest", &err);
	}
	if (r == 0 && argc - first > 1)
		r = place_paths(args, argc - first - 1, argv + first + 1, &err);
	if (r == 0)
		return true;
	*ret_exit = cordon_cli_fail(cli, &err);
	return false;
}

/* ---- list, show, diff ---- */

static json_t *record_json(const struct cordon_view_record *record)
{
	json_t *object = cordon_view_json(record);
	autobuf struct cordon_buf command = CORDON_BUF(1 << 20);
	size_t i;
	json_t *word;

	/* A table has one column for the command. */
	json_array_foreach(record->command, i, word)
		cordon_buf_addf(&command, "%s%s", i ? " " : "", json_string_value(word));
	if (object)
		json_object_set_new(object, "command_line", json_string(command.data ? command.data : ""));
	return object;
}

static int run_list(struct cordon_cli *cli, int argc, char **argv)
{
	static const struct cordon_column columns[] = {
		{ "id", "ID" },	    { "state", "STATE" },	   { "created_at", "CREATED" },
		{ "root", "ROOT" }, { "command_line", "COMMAND" }, { 0 },
	};
	autoargs struct args args = ARGS_NONE;
	autoviewlist struct cordon_view_list list = { 0 };
	struct cordon_root root = { .fd = -1 };
	struct cordon_error err = { 0 };
	json_auto_t *records = json_array();
	int first, r = cordon_cli_parse(cli, argc, argv, 0, set, &args, &first, &err);

	if (r > 0)
		return CORDON_EXIT_OK;
	if (r == 0 && first < argc)
		return cordon_cli_usage(cli, "unexpected argument: %s", argv[first]);
	if (r == 0)
		r = cordon_home_open(&args.home, &err);
	if (r == 0)
		recover(cli, &args);
	if (r == 0 && !args.all)
		r = open_root(&args, &root, &err);
	if (r == 0)
		r = cordon_view_list(&args.home, root.fd, &list, &err);
	cordon_root_done(&root);
	if (r < 0)
		return cordon_cli_fail(cli, &err);
	for (size_t i = 0; i < list.n; i++)
		json_array_append_new(records, record_json(&list.items[i]));
	if (cli->json)
		return cordon_cli_print_json(cli,
					     json_pack("{s:O, s:I}", "changes", records, "total", (json_int_t)list.n));
	cordon_cli_print_table(cli, columns, records);
	return CORDON_EXIT_OK;
}

static int run_show(struct cordon_cli *cli, int argc, char **argv)
{
	autoargs struct args args = ARGS_NONE;
	autodelta struct cordon_delta delta = CORDON_DELTA_NONE;
	struct cordon_error err = { 0 };
	int code;

	if (!begin(cli, argc, argv, 0, &args, &code))
		return code;
	if (cordon_delta_find(&args.view, &delta, &err) < 0)
		return cordon_cli_fail(cli, &err);
	if (cli->json) {
		json_t *record = record_json(&args.view.record);
		json_auto_t *changes = cordon_changes_json(&delta, NULL, 0, false, 0);

		json_object_update(record, changes);
		return cordon_cli_print_json(cli, record);
	}
	if (!cli->quiet) {
		json_auto_t *record = record_json(&args.view.record);

		json_object_del(record, "command"); /* the command line is easier to read */
		cordon_cli_print_record(record);
		putchar('\n');
		fflush(stdout);
	}
	return cordon_changes_show(cli, &delta, CORDON_CHANGES_NAME_STATUS, NULL, 0, false);
}

static int run_diff(struct cordon_cli *cli, int argc, char **argv)
{
	autoargs struct args args = ARGS_NONE;
	autodelta struct cordon_delta delta = CORDON_DELTA_NONE;
	struct cordon_error err = { 0 };
	int code;

	if (!begin(cli, argc, argv, TAKES_PATHS, &args, &code))
		return code;
	if (cordon_delta_find(&args.view, &delta, &err) < 0)
		return cordon_cli_fail(cli, &err);
	if (cli->json)
		return cordon_cli_print_json(cli, cordon_changes_json(&delta, args.paths, args.n_paths, true, 0));
	return cordon_changes_show(cli, &delta, args.form, args.paths, args.n_paths, !args.no_pager);
}

/* ---- apply, undo, discard ---- */

static void print_items(const struct cordon_apply_items *items, const char *heading, bool deletions)
{
	bool first = true;

	for (size_t i = 0; i < items->n; i++) {
		const struct cordon_apply_item *item = &items->item[i];
		autobuf struct cordon_buf path = CORDON_BUF(8 * CORDON_PATH_MAX);

		if (deletions && item->letter != 'D')
			continue;
		if (first)
			printf("%s\n", heading);
		first = false;
		cordon_text_escape(&path, item->path, strlen(item->path));
		printf("%c\t%s%s%s%s\n", item->letter, path.data, item->dir ? "/" : "", item->why ? ": " : "",
		       item->why      ? item->why
		       : item->merged ? " (merged with the host's changes)"
		       : item->part   ? " (in part)"
				      : "");
	}
}

static size_t count_files(const struct cordon_apply_items *items)
{
	size_t n = 0;

	for (size_t i = 0; i < items->n; i++)
		n += !items->item[i].dir;
	return n;
}

/* Prints what was applied. Deletions stand by themselves, so that nobody overlooks them. */
static void print_applied(const struct cordon_apply_result *result, bool judged_only)
{
	struct cordon_apply_items others = { 0 };

	others.item = calloc(result->applied.n + 1, sizeof(*others.item));
	for (size_t i = 0; others.item && i < result->applied.n; i++)
		if (result->applied.item[i].letter != 'D')
			others.item[others.n++] = result->applied.item[i];
	print_items(&others, judged_only ? "would change:" : "changed:", false);
	print_items(&result->applied, judged_only ? "would delete:" : "deleted:", true);
	print_items(&result->left, "left out:", false);
	for (size_t i = 0; i < result->applied.n; i++)
		if (result->applied.item[i].warned) {
			printf("outside the scope, which a permissive run only warns of: yes\n");
			break;
		}
	free(others.item);
}

/* Whoever runs git here next must know. */
static void warn_of_repositories(const struct cordon_cli *cli, const struct cordon_repositories *found)
{
	for (size_t i = 0; i < found->n && i < CORDON_REPOSITORIES_SHOWN_MAX; i++) {
		autobuf struct cordon_buf text = CORDON_BUF(2 * CORDON_PATH_MAX);

		fflush(stdout);
		if (cordon_repository_text(&found->items[i], &text) == 0)
			cordon_cli_notice(cli, "WARNING: %s", text.data);
	}
}

static int report(const struct cordon_cli *cli, const char *id, const struct cordon_apply_result *result, int r,
		  const struct cordon_error *err)
{
	if (cli->json) {
		json_t *object = cordon_apply_json(result, 0);

		json_object_set_new(object, "id", json_string(id));
		json_object_set_new(object, "done", json_boolean(r == 0));
		cordon_cli_print_json(cli, object);
	} else if (result->git) {
		json_auto_t *git = cordon_git_take_json(result->git);

		fflush(stdout);
		cordon_cli_git_print(cli, git);
	}
	if (!cli->json)
		warn_of_repositories(cli, &result->repositories);
	if (!cli->json && r < 0) {
		print_items(&result->refused, "refused:", false);
		print_items(&result->conflicts, "conflicts:", false);
		fflush(stdout);
	}
	return r < 0 ? cordon_cli_fail(cli, err) : CORDON_EXIT_OK;
}

static int run_apply(struct cordon_cli *cli, int argc, char **argv)
{
	autoargs struct args args = ARGS_NONE;
	autoapply struct cordon_apply_result result = { 0 };
	struct cordon_picker picker = { .view = &args.view, .terminal = isatty(STDOUT_FILENO) };
	struct cordon_apply_request request = { 0 };
	struct cordon_error err = { 0 };
	char id[CORDON_ID_SIZE];
	int code, r;

	if (!begin(cli, argc, argv, TAKES_PATHS, &args, &code))
		return code;
	if (args.patch && cli->json)
		return cordon_cli_usage(cli, "-p asks, and --json is for programs: give one of them");
	request.paths = args.paths;
	request.n_paths = args.n_paths;
	request.only_judge = args.dry_run;
	request.pick = args.patch ? cordon_picker_ask : NULL;
	request.data = &picker;
	memcpy(id, args.view.record.id, sizeof(id));
	r = cordon_view_apply(&args.view, &request, &result, &err);
	if (!args.dry_run && err.kind != CORDON_KIND_USAGE)
		cordon_view_audit(&args.home, &args.view, "apply", &result, r < 0 ? &err : NULL);
	if (r == 0 && !cli->json && !cli->quiet) {
		print_applied(&result, args.dry_run);
		if (args.dry_run)
			printf("%zu files would change\n", count_files(&result.applied));
		else
			printf("applied %zu files of %.8s; 'cordon changes undo %.8s' takes it back\n",
			       count_files(&result.applied), id, id);
	}
	return report(cli, id, &result, r, &err);
}

static int run_undo(struct cordon_cli *cli, int argc, char **argv)
{
	autoargs struct args args = ARGS_NONE;
	autoapply struct cordon_apply_result result = { 0 };
	struct cordon_error err = { 0 };
	char id[CORDON_ID_SIZE];
	int code, r;

	if (!begin(cli, argc, argv, 0, &args, &code))
		return code;
	memcpy(id, args.view.record.id, sizeof(id));
	r = cordon_view_undo(&args.view, NULL, &result, &err);
	cordon_view_audit(&args.home, &args.view, "undo", &result, r < 0 ? &err : NULL);
	if (r == 0 && !cli->json && !cli->quiet) {
		print_applied(&result, false);
		printf("undid %zu files of %.8s; the view still has its changes\n", count_files(&result.applied), id);
	}
	return report(cli, id, &result, r, &err);
}

static int run_discard(struct cordon_cli *cli, int argc, char **argv)
{
	autoargs struct args args = ARGS_NONE;
	struct cordon_error err = { 0 };
	char id[CORDON_ID_SIZE];
	int code, r;

	if (!begin(cli, argc, argv, NEEDS_ID, &args, &code))
		return code;
	memcpy(id, args.view.record.id, sizeof(id));
	r = cordon_view_discard(&args.home, &args.view, &err);
	if (r < 0)
		return cordon_cli_fail(cli, &err);
	return cordon_cli_answer(cli, json_pack("{s:s, s:b}", "id", id, "discarded", 1));
}

static const struct cordon_option list_options[] = {
	ROOT_OPTION,
	{ "all", 'a', CORDON_ARG_NONE, NULL, "list the views of every root", OPT_ALL },
	{ 0 },
};

static const struct cordon_option root_options[] = { ROOT_OPTION, { 0 } };

static const struct cordon_option diff_options[] = {
	ROOT_OPTION,
	{ "stat", 0, CORDON_ARG_NONE, NULL, "print how many lines changed in each file", OPT_STAT },
	{ "name-status", 0, CORDON_ARG_NONE, NULL, "print only names, each with A, M, T or D", OPT_NAME_STATUS },
	{ "no-pager", 0, CORDON_ARG_NONE, NULL, "print to the terminal directly", OPT_NO_PAGER },
	{ 0 },
};

static const struct cordon_option apply_options[] = {
	ROOT_OPTION,
	{ "patch", 'p', CORDON_ARG_NONE, NULL, "ask about each hunk", OPT_PATCH },
	{ "dry-run", 'n', CORDON_ARG_NONE, NULL, "judge and merge, and write nothing", OPT_DRY_RUN },
	{ 0 },
};

const struct cordon_command cordon_cmd_changes_list = {
	.name = "changes list",
	.operands = "",
	.summary = "list the views of this root, oldest first",
	.options = list_options,
	.run = run_list,
};

const struct cordon_command cordon_cmd_changes_show = {
	.name = "changes show",
	.operands = "[VIEW]",
	.summary = "show a view and the names of what it changed",
	.details = "VIEW is an id, the first characters of one, or 'latest', which is the default: the newest view of this root.\n",
	.options = root_options,
	.run = run_show,
};

const struct cordon_command cordon_cmd_changes_diff = {
	.name = "changes diff",
	.operands = "[VIEW [PATH]...]",
	.summary = "show what a view changed, in git's format",
	.details = "'git apply' reads the output. What the host would execute later stands first, with a comment that says so.\n",
	.options = diff_options,
	.run = run_diff,
};

const struct cordon_command cordon_cmd_changes_apply = {
	.name = "changes apply",
	.operands = "[VIEW [PATH]...]",
	.summary = "bring the changes of a view into the host's tree",
	.details = "Everything that is named is applied, or nothing. Each path is judged by the policy of the run. A text that the\n"
		   "host changed meanwhile is merged if that can be done; any other conflict is named.\n",
	.options = apply_options,
	.run = run_apply,
};

const struct cordon_command cordon_cmd_changes_undo = {
	.name = "changes undo",
	.operands = "[VIEW]",
	.summary = "take the newest apply of a view back",
	.details = "Refused where the host went on with a file after it was applied.\n",
	.options = root_options,
	.run = run_undo,
};

const struct cordon_command cordon_cmd_changes_discard = {
	.name = "changes discard",
	.operands = "VIEW",
	.summary = "remove a view with its changes",
	.details = "What was applied stays, and can't be undone any more.\n",
	.options = root_options,
	.run = run_discard,
};
