/* SPDX-License-Identifier: Apache-2.0 */
/* Attestations on the command line. */
#include <stdio.h>

#include "attest/attest.h"
#include "base/path.h"
#include "cli/attested.h"

int cordon_cli_signers(const struct cordon_home *home, const char *named, char ret[static CORDON_PATH_MAX],
		       struct cordon_error *err)
{
	int r = named ? cordon_copy(ret, CORDON_PATH_MAX, named, strlen(named))
		      : cordon_path_join(home->path, "signers", ret, CORDON_PATH_MAX);

	if (r < 0)
		return cordon_fail_errno(err, r, "the file of allowed signers");
	if (access(ret, R_OK) == 0)
		return 0;
	cordon_fail_errno(err, -errno, "cannot read the file of allowed signers %s", ret);
	cordon_error_hint(err, "a line of it is a name, a space, and a public key; --signers names another file");
	return err->code;
}

struct attested {
	struct cordon_cli *cli;
	struct cordon_attest_question ask;
	json_t *refused;
};

static void refuse(struct attested *a, const char *id, const char *why)
{
	json_array_append_new(a->refused, json_pack("{s:s, s:s}", "commit", id, "why", why));
	if (!a->cli->json)
		fprintf(stderr, "[GIT] REFUSED: commit %.12s: %s\n", id, why);
}

static int judge(void *data, const char *id, const char *text, size_t n, struct cordon_error *err)
{
	struct attested *a = data;
	struct cordon_attest_answer answer CORDON_CLEANUP(cordon_attest_answer_done) = { 0 };
	char why[128];
	int r;

	if (!n) {
		refuse(a, id, "it has no attestation");
		return 0;
	}
	a->ask.commit = id;
	r = cordon_attest_verify(&a->ask, text, n, &answer, err);
	if (r < 0)
		return r;
	if (json_array_size(answer.failures)) {
		refuse(a, id, json_string_value(json_array_get(answer.failures, 0)));
	} else if (answer.refusals) {
		snprintf(why, sizeof(why), "%zu accesses of its run were refused", answer.refusals);
		refuse(a, id, why);
	}
	return 0;
}

int cordon_cli_attested(struct cordon_cli *cli, const struct cordon_root *root, const struct cordon_git_check *ask,
			const char *signers, json_t *ret_refused, struct cordon_error *err)
{
	struct attested a = { .cli = cli, .ask = { .root = root->path, .signers = signers }, .refused = ret_refused };

	return cordon_git_notes_each(root, ask, judge, &a, err);
}
