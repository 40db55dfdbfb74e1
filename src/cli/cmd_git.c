/* SPDX-License-Identifier: Apache-2.0 */
/* cordon git: judges commits by a policy, installs a hook that does, and takes over commits that a run left. */
#include <stdio.h>
#include <sys/stat.h>

#include "base/json.h"
#include "base/path.h"
#include "base/text.h"
#include "cli/attested.h"
#include "cli/commands.h"
#include "cli/git_take.h"
#include "cli/recipe_options.h"
#include "policy/folders.h"
#include "view/show.h"

/* ---- cordon git check ---- */

enum { KEY_STAGED = 1, KEY_UNPUSHED, KEY_ATTESTED, KEY_SIGNERS, KEY_NOTES, KEY_PRE_PUSH, KEY_FORCE };

static const struct cordon_option check_options[] = {
	CORDON_RECIPE_OPTIONS(CORDON_RECIPE_OF_GIT),
	{ "staged", 0, CORDON_ARG_NONE, NULL, "judge what is staged, as a pre-commit hook does", KEY_STAGED },
	{ "unpushed", 0, CORDON_ARG_NONE, NULL, "judge every commit of RANGE that no remote has", KEY_UNPUSHED },
	{ "attested", 0, CORDON_ARG_NONE, NULL, "refuse commits without a valid attestation, or of runs with refusals",
	  KEY_ATTESTED },
	{ "signers", 0, CORDON_ARG_FILE, "FILE", "whose attestations count (default: signers in the state directory)",
	  KEY_SIGNERS },
	{ "notes", 0, CORDON_ARG_TEXT, "COMMIT", "where attestations are (default: refs/notes/cordon)", KEY_NOTES },
	{ 0 },
};

struct check_args {
	struct cordon_recipe recipe;
	struct cordon_git_check ask;
	bool staged, attested;
	const char *signers;
};

static int set_check(void *data, int key, const char *arg, struct cordon_error *err)
{
	struct check_args *args = data;

	if (cordon_recipe_owns(key))
		return cordon_cli_set(&args->recipe, key, arg, err);
	if (key == KEY_SIGNERS)
		args->signers = arg;
	if (key == KEY_NOTES)
		args->ask.notes = arg;
	args->attested |= key == KEY_ATTESTED;
	args->staged |= key == KEY_STAGED;
	args->ask.unpushed |= key == KEY_UNPUSHED;
	return 0;
}

/* Outside the scope is outside, whatever the mode; the policy file or the option must say "permissive" for warnings. */
static bool is_refused(const struct check_args *args, const struct cordon_git_take *take,
		       const struct cordon_policy *policy)
{
	const struct cordon_recipe *recipe = &args->recipe;
	bool says = recipe->values.where[CORDON_RECIPE_MODE] ||
		    (recipe->file && recipe->file->values.where[CORDON_RECIPE_MODE]);

	return take->n_refused || (take->n_warned && !(says && policy->mode == CORDON_MODE_PERMISSIVE));
}

static int print_check(struct cordon_cli *cli, const struct check_args *args, const struct cordon_git_take *take,
		       const struct cordon_policy *policy, json_t *unattested)
{
	bool paths = is_refused(args, take, policy), refused = paths || json_array_size(unattested);
	json_auto_t *object = cordon_git_take_json(take);
	int r = 0;

	if (cli->json) {
		json_object_set_new(object, "state", json_string(refused ? "refused" : "allowed"));
		if (args->attested)
			json_object_set(object, "unattested", unattested);
		r = cordon_cli_print_json(cli, json_incref(object));
	} else {
		cordon_cli_git_print(cli, object);
		if (!cli->quiet && !refused)
			printf("%zu commit%s%s, and every path is allowed\n", take->n_commits,
			       take->n_commits == 1 ? "" : "s", args->attested ? ", attested" : "");
	}
	return r ? r : refused ? CORDON_EXIT_NO : CORDON_EXIT_OK;
}

/* Whether a word can be asked for in the middle of a line. */
static bool is_revision(const char *text)
{
	return *text && *text != '-' &&
	       text[strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/_-.~^")] == '\0';
}

static int ask_attested(struct cordon_cli *cli, const struct check_args *args, const struct cordon_root *root,
			json_t *ret_refused, struct cordon_error *err)
{
	autohome struct cordon_home home = CORDON_HOME_NONE;
	char signers[CORDON_PATH_MAX];
	int r = cordon_home_open(&home, err);

	if (r == 0)
		r = cordon_cli_signers(&home, args->signers, signers, err);
	return r < 0 ? r : cordon_cli_attested(cli, root, &args->ask, signers, ret_refused, err);
}

static int check_with(struct cordon_cli *cli, struct check_args *args, int argc, char **argv)
{
	json_auto_t *unattested = json_array();
	struct cordon_policy *policy;
	struct cordon_git_take *take = NULL;
	struct cordon_error err = { 0 };
	int first, r = cordon_cli_parse(cli, argc, argv, 0, set_check, args, &first, &err);

	if (r != 0)
		return r > 0 ? CORDON_EXIT_OK : cordon_cli_fail(cli, &err);
	if (args->staged ? first != argc : first + 1 != argc)
		return cordon_cli_usage(cli, args->staged ? "--staged takes no range" : "give one range, or --staged");
	if (args->attested && args->staged)
		return cordon_cli_usage(cli, "what is staged has no attestation yet: --attested needs a range");
	if (!args->attested && (args->signers || args->ask.notes))
		return cordon_cli_usage(cli, "--signers and --notes need --attested");
	if (args->ask.notes && !is_revision(args->ask.notes))
		return cordon_cli_usage(cli, "--notes %s: it is no commit", args->ask.notes);
	args->ask.range = args->staged ? NULL : argv[first];
	r = cordon_cli_compile(cli, &args->recipe, CORDON_RECIPE_ASKS);
	if (r)
		return r;
	policy = args->recipe.policy;
	if (cordon_git_check(policy, &args->ask, &take, &err) < 0)
		return cordon_cli_fail(cli, &err);
	if (args->attested && ask_attested(cli, args, &policy->root, unattested, &err) < 0)
		r = cordon_cli_fail(cli, &err);
	else
		r = print_check(cli, args, take, policy, unattested);
	cordon_git_take_free(take);
	return r;
}

static int check(struct cordon_cli *cli, int argc, char **argv)
{
	struct check_args args = { 0 };
	int r = check_with(cli, &args, argc, argv);

	cordon_recipe_done(&args.recipe);
	return r;
}

const struct cordon_command cordon_cmd_git_check = {
	.name = "git check",
	.operands = "[RANGE]",
	.summary = "say whether a policy allows what commits change",
	.details = "RANGE is A..B, or one commit. Each commit is compared with each parent, and each changed path is judged\n"
		   "as a write. Submodules, and names that git could take for .git, are never allowed. With --attested each\n"
		   "commit must also have a git note that 'cordon run --attest' wrote, of a run without refusals.\n"
		   "\n"
		   "Exit status: 0 every path is allowed, 1 one is not, 2 wrong usage. With the mode permissive a path outside\n"
		   "the folders is a warning.\n",
	.options = check_options,
	.run = check,
};

/* ---- cordon git install-hook ---- */

static const struct cordon_option hook_options[] = {
	CORDON_RECIPE_OPTIONS(CORDON_RECIPE_OF_GIT),
	{ "pre-push", 0, CORDON_ARG_NONE, NULL, "judge commits before a push (default: before each commit)",
	  KEY_PRE_PUSH },
	{ "force", 0, CORDON_ARG_NONE, NULL, "replace a hook that is there", KEY_FORCE },
	{ 0 },
};

struct hook_args {
	struct cordon_recipe recipe;
	struct cordon_buf command;
	bool pre_push, force;
	int code;
};

/* Appends a word, quoted for a shell. */
static int add_word(struct cordon_buf *text, const char *word)
{
	int r = cordon_buf_adds(text, text->len ? " '" : "'");

	for (; r == 0 && *word; word++)
		r = *word == '\'' ? cordon_buf_adds(text, "'\\''") : cordon_buf_addc(text, *word);
	return r < 0 ? r : cordon_buf_addc(text, '\'');
}

/* The options of the scope become those of the hook's command. */
static int set_hook(void *data, int key, const char *arg, struct cordon_error *err)
{
	struct hook_args *args = data;

	if (key == KEY_PRE_PUSH || key == KEY_FORCE) {
		args->pre_push |= key == KEY_PRE_PUSH;
		args->force |= key == KEY_FORCE;
		return 0;
	}
	if (key != CORDON_KEY_RECIPE + CORDON_RECIPE_ROOT) {
		bool file = key == CORDON_KEY_RECIPE + CORDON_RECIPE_POLICY && arg[0] != '/';
		char path[CORDON_PATH_MAX], cwd[CORDON_PATH_MAX];

		/* The hook runs in the top directory, wherever the file was named. */
		if (file && (!getcwd(cwd, sizeof(cwd)) || cordon_path_join(cwd, arg, path, sizeof(path)) < 0))
			return cordon_fail_errno(err, -errno, "--policy %s", arg);
		if (add_word(&args->command, cordon_recipe_rows[key - CORDON_KEY_RECIPE].dashed) < 0 ||
		    (arg && add_word(&args->command, file ? path : arg) < 0))
			return cordon_fail_errno(err, -ENOMEM, "options");
	}
	return cordon_cli_set(&args->recipe, key, arg, err);
}

static int hook_with(struct cordon_cli *cli, struct hook_args *args, int argc, char **argv)
{
	struct cordon_policy *policy;
	CORDON_UNCLEARED char path[CORDON_PATH_MAX], program[CORDON_PATH_MAX];
	const char *name;
	struct cordon_error err = { 0 };
	ssize_t n = readlink("/proc/self/exe", program, sizeof(program) - 1);
	int first, r;

	if (n <= 0)
		return cordon_cli_usage(cli, "the path of cordon can't be found out");
	program[n] = '\0';
	if (add_word(&args->command, program) < 0 || cordon_buf_adds(&args->command, " git check") < 0)
		return cordon_cli_usage(cli, "no memory");
	r = cordon_cli_parse(cli, argc, argv, 0, set_hook, args, &first, &err);
	if (r != 0)
		return r > 0 ? CORDON_EXIT_OK : cordon_cli_fail(cli, &err);
	if (first != argc)
		return cordon_cli_usage(cli, "unexpected argument: %s", argv[first]);
	/* A mistake in the options is reported now, and not at the first commit. */
	r = cordon_cli_compile(cli, &args->recipe, CORDON_RECIPE_ASKS);
	if (r)
		return r;
	policy = args->recipe.policy;
	name = args->pre_push ? "pre-push" : "pre-commit";
	if (cordon_git_install_hook(&policy->root, name, args->command.data, args->force, path, &err) < 0)
		return cordon_cli_fail(cli, &err);
	if (cli->json)
		return cordon_cli_print_json(cli,
					     json_pack("{s:s, s:o}", "hook", name, "path", cordon_cli_json_text(path)));
	if (!cli->quiet)
		printf("%s\n", path);
	return CORDON_EXIT_OK;
}

static int install_hook(struct cordon_cli *cli, int argc, char **argv)
{
	struct hook_args args = { .command = CORDON_BUF((size_t)256 << 10) };
	int r = hook_with(cli, &args, argc, argv);

	cordon_recipe_done(&args.recipe);
	cordon_buf_done(&args.command);
	return r;
}

const struct cordon_command cordon_cmd_git_install_hook = {
	.name = "git install-hook",
	.operands = "",
	.summary = "have git judge each commit or push by a policy",
	.details = "Writes a pre-commit hook, or with --pre-push a pre-push hook, that calls 'cordon git check' with the same\n"
		   "options. A hook of somebody else stays, unless --force is given.\n",
	.options = hook_options,
	.run = install_hook,
};

/* ---- cordon git take, list, drop ---- */

static int set_nothing(void *data, int key, const char *arg, struct cordon_error *err)
{
	(void)data, (void)key, (void)arg, (void)err;
	return 0;
}

/* Opens the record that the only operand names; without one, the latest of this repository. */
static int open_record(struct cordon_cli *cli, int argc, char **argv, bool needs_id, struct cordon_home *home,
		       struct cordon_git_record *ret_record)
{
	struct cordon_root root = { .fd = -1 };
	struct cordon_error err = { 0 };
	int first, r = cordon_cli_parse(cli, argc, argv, 0, set_nothing, NULL, &first, &err);
	bool in_repository;

	if (r != 0)
		return r > 0 ? -1 : cordon_cli_fail(cli, &err);
	if (argc - first > 1 || (needs_id && first == argc))
		return cordon_cli_usage(cli, "give one id");
	in_repository = cordon_repo_root(".", &root, NULL) == 0;
	if (cordon_home_open(home, &err) < 0 ||
	    cordon_git_record_open(home, first < argc ? argv[first] : "latest", in_repository ? root.path : NULL,
				   ret_record, &err) < 0)
		r = cordon_cli_fail(cli, &err);
	cordon_root_done(&root);
	return r;
}

static int take(struct cordon_cli *cli, int argc, char **argv)
{
	autohome struct cordon_home home = CORDON_HOME_NONE;
	struct cordon_git_record record = CORDON_GIT_RECORD_NONE;
	int r = open_record(cli, argc, argv, false, &home, &record);

	if (r == 0)
		r = cordon_cli_git_take(cli, &home, &record) ? CORDON_EXIT_OK : CORDON_EXIT_NO;
	return r < 0 ? CORDON_EXIT_OK : r;
}

static int drop(struct cordon_cli *cli, int argc, char **argv)
{
	autohome struct cordon_home home = CORDON_HOME_NONE;
	struct cordon_git_record record = CORDON_GIT_RECORD_NONE;
	struct cordon_error err = { 0 };
	int r = open_record(cli, argc, argv, true, &home, &record);

	if (r == 0 && cordon_git_record_remove(&home, &record, &err) < 0)
		r = cordon_cli_fail(cli, &err);
	return r < 0 ? CORDON_EXIT_OK : r;
}

static int add_entry(void *data, const char *id, const char *root)
{
	return json_array_append_new(data, json_pack("{s:s, s:o}", "id", id, "root", cordon_cli_json_text(root))) < 0
		       ? -ENOMEM
		       : 0;
}

static int list(struct cordon_cli *cli, int argc, char **argv)
{
	autohome struct cordon_home home = CORDON_HOME_NONE;
	struct cordon_error err = { 0 };
	int first, r = cordon_cli_parse(cli, argc, argv, 0, set_nothing, NULL, &first, &err);
	json_t *entries = json_array(), *entry;
	size_t i;

	if (r == 0 && first != argc)
		r = cordon_fail(&err, -EINVAL, CORDON_KIND_USAGE, "unexpected argument: %s", argv[first]);
	if (r == 0)
		r = cordon_home_open(&home, &err);
	if (r == 0)
		r = cordon_git_record_each(&home, add_entry, entries, &err);
	if (r == 0 && cli->json)
		return cordon_cli_print_json(cli, entries);
	if (r == 0)
		json_array_foreach(entries, i, entry)
			printf(cli->quiet ? "%s\n" : "%s  %s\n", cordon_json_string(entry, "id"),
			       cordon_json_string(entry, "root"));
	json_decref(entries);
	return r < 0 ? cordon_cli_fail(cli, &err) : CORDON_EXIT_OK;
}

const struct cordon_command cordon_cmd_git_take = {
	.name = "git take",
	.operands = "[ID]",
	.summary = "take over commits that a run left",
	.details = "For runs with --git commit whose commits were refused, or that were killed. Without ID: the latest of this\n"
		   "repository. Those of a view (--cow) come with 'cordon changes apply'.\n"
		   "\n"
		   "Exit status: 0 taken over, 1 refused.\n",
	.run = take,
};

const struct cordon_command cordon_cmd_git_list = {
	.name = "git list",
	.operands = "",
	.summary = "list runs whose commits wait",
	.run = list,
};

const struct cordon_command cordon_cmd_git_drop = {
	.name = "git drop",
	.operands = "ID",
	.summary = "remove commits that were not taken over",
	.run = drop,
};
