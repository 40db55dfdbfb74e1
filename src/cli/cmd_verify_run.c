/* SPDX-License-Identifier: Apache-2.0 */
/* cordon verify-run: says whether an attestation of a run is genuine, and whether everything is as the run left it. */
#include <fcntl.h>
#include <stdio.h>

#include "attest/attest.h"
#include "base/io.h"
#include "base/json.h"
#include "base/path.h"
#include "cli/attested.h"
#include "cli/commands.h"
#include "policy/folders.h"

enum { KEY_SIGNERS = 1, KEY_ROOT, KEY_NO_FILES, KEY_NO_CHAIN };

static const struct cordon_option options[] = {
	{ "signers", 0, CORDON_ARG_FILE, "FILE",
	  "who may sign, as of ssh-keygen(1) (default: signers in the state directory)", KEY_SIGNERS },
	{ "root", 0, CORDON_ARG_DIR, "DIR",
	  "where the files or the repository are (default: the git top level, else .)", KEY_ROOT },
	{ "no-files", 0, CORDON_ARG_NONE, NULL, "do not compare changed files: they were changed again since",
	  KEY_NO_FILES },
	{ "no-chain", 0, CORDON_ARG_NONE, NULL, "do not ask the audit log: the run was on another machine",
	  KEY_NO_CHAIN },
	{ 0 },
};

struct args {
	const char *signers, *root;
	bool no_files, no_chain;
};

static int set(void *data, int key, const char *arg, struct cordon_error *err)
{
	struct args *args = data;

	(void)err;
	if (key == KEY_SIGNERS)
		args->signers = arg;
	else if (key == KEY_ROOT)
		args->root = arg;
	args->no_files |= key == KEY_NO_FILES;
	args->no_chain |= key == KEY_NO_CHAIN;
	return 0;
}

static void print_text(const struct cordon_cli *cli, const struct cordon_attest_answer *answer)
{
	const json_t *predicate = json_object_get(answer->statement, "predicate"), *run, *failure;
	size_t i;

	json_array_foreach(answer->failures, i, failure)
		fprintf(stderr, "cordon: %s\n", json_string_value(failure));
	if (!predicate || cli->quiet)
		return;
	run = json_object_get(predicate, "run");
	printf("signed by %s\n", answer->signer);
	printf("run %s, %s to %s: %s, %zu refused\n", cordon_json_text(run, "id"), cordon_json_text(run, "startedAt"),
	       cordon_json_text(run, "endedAt"), cordon_json_text(run, "state"), answer->refusals);
	printf("policy %s\n",
	       cordon_json_text(json_object_get(json_object_get(predicate, "policy"), "digest"), "sha256"));
	if (!cordon_json_true(json_object_get(predicate, "files"), "complete"))
		printf("the statement does not list every file that was changed\n");
}

static int answer_with(struct cordon_cli *cli, const struct cordon_attest_question *ask, const char *text, size_t n,
		       struct cordon_error *err)
{
	struct cordon_attest_answer answer CORDON_CLEANUP(cordon_attest_answer_done) = { 0 };
	int r = cordon_attest_verify(ask, text, n, &answer, err);
	bool valid;

	if (r < 0)
		return r;
	valid = json_array_size(answer.failures) == 0;
	if (cli->json)
		r = cordon_cli_print_json(cli, json_pack("{s:b, s:s?, s:I, s:O, s:O?}", "valid", (int)valid, "signer",
							 answer.signer, "refusals", (json_int_t)answer.refusals,
							 "failures", answer.failures, "statement", answer.statement));
	else
		print_text(cli, &answer);
	return r ? r : valid ? CORDON_EXIT_OK : CORDON_EXIT_NO;
}

struct commit {
	struct cordon_cli *cli;
	struct cordon_attest_question *ask;
	int answer;
	bool found;
};

static int on_commit(void *data, const char *id, const char *text, size_t n, struct cordon_error *err)
{
	struct commit *commit = data;
	int r;

	commit->found = true;
	if (!n) {
		cordon_fail(err, -ENOENT, CORDON_KIND_NOT_FOUND, "commit %.12s has no attestation", id);
		cordon_error_hint(
			err,
			"notes of another repository come with: git fetch REMOTE refs/notes/cordon:refs/notes/cordon");
		commit->answer = CORDON_EXIT_NO;
		return -ENOENT;
	}
	commit->ask->commit = id;
	r = answer_with(commit->cli, commit->ask, text, n, err);
	if (r >= 0)
		commit->answer = r;
	return r < 0 ? r : 0;
}

static int ask_commit(struct cordon_cli *cli, struct cordon_attest_question *ask, const struct cordon_root *root,
		      const char *name)
{
	struct cordon_git_check range = { .range = name };
	struct commit commit = { .cli = cli, .ask = ask, .answer = CORDON_EXIT_USAGE };
	struct cordon_error err = { 0 };

	if (strstr(name, ".."))
		return cordon_cli_usage(cli, "'%s' is a range: give one commit, or a file", name);
	/* Files go on being changed behind a commit; its own id stands for those in it. */
	ask->files = NULL;
	if (cordon_git_notes_each(root, &range, on_commit, &commit, &err) < 0)
		cordon_cli_fail(cli, &err);
	else if (!commit.found)
		return cordon_cli_usage(cli, "there is no commit %s", name);
	return commit.answer;
}

static int verify(struct cordon_cli *cli, struct args *args, const char *what)
{
	struct cordon_root root CORDON_CLEANUP(cordon_root_done) = { .fd = -1 };
	autobuf struct cordon_buf text = CORDON_BUF(CORDON_ATTEST_MAX);
	autohome struct cordon_home home = CORDON_HOME_NONE;
	struct cordon_attest_question ask = { 0 };
	char signers[CORDON_PATH_MAX];
	struct cordon_error err = { 0 };
	bool file = access(what, F_OK) == 0;
	int r = args->root ? cordon_root_open(args->root, &root, &err) : cordon_repo_root(".", &root, &err);

	if (r == 0)
		r = cordon_home_open(&home, &err);
	if (r == 0)
		r = cordon_cli_signers(&home, args->signers, signers, &err);
	if (r == 0 && file)
		r = cordon_read_file(AT_FDCWD, what, 0, &text, &err);
	if (r < 0) {
		cordon_cli_fail(cli, &err);
		return CORDON_EXIT_USAGE;
	}
	ask.root = root.path;
	ask.signers = signers;
	ask.home = args->no_chain ? NULL : &home;
	ask.files = args->no_files ? NULL : &root;
	if (!file)
		return ask_commit(cli, &ask, &root, what);
	r = answer_with(cli, &ask, text.len ? text.data : "", text.len, &err);
	if (r < 0)
		cordon_cli_fail(cli, &err);
	return r < 0 ? CORDON_EXIT_USAGE : r;
}

static int run(struct cordon_cli *cli, int argc, char **argv)
{
	struct args args = { 0 };
	struct cordon_error err = { 0 };
	int first, r = cordon_cli_parse(cli, argc, argv, 0, set, &args, &first, &err);

	if (r != 0)
		return r > 0 ? CORDON_EXIT_OK : cordon_cli_fail(cli, &err);
	if (first + 1 != argc)
		return cordon_cli_usage(cli, "give one commit, or one file");
	return verify(cli, &args, argv[first]);
}

const struct cordon_command cordon_cmd_verify_run = {
	.name = "verify-run",
	.operands = "COMMIT|FILE",
	.summary = "say whether the attestation of a run is genuine",
	.details = "Attestations are made by 'cordon run --attest KEY'. Of a commit it is the git note in refs/notes/cordon; FILE is\n"
		   "one that a run wrote. Asked are the signature, the digest of the policy, whether the commit is one of the run,\n"
		   "or the changed files are as it left them, and whether the audit log still has the record at which it ended.\n"
		   "\n"
		   "Exit status: 0 it is genuine, 1 it is not, and each reason is one line, 2 it could not be asked.\n",
	.options = options,
	.run = run,
};
