/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asks libcordon which of some paths an agent may write when its scope is a list of folders.
 *
 *     cc check_path.c $(pkg-config --cflags --libs cordon) -o check_path
 *     ./check_path . lib,src lib/a.ts libsecret/key
 *
 * Only include/cordon.h is used. The exit status is 0 when every path is allowed, 1 when one is not, 2 on an error.
 */
#include <stdio.h>

#include <cordon.h>

static int report(const char *what, const struct cordon_error *err)
{
	fprintf(stderr, "check_path: %s: %s: %s\n", what, cordon_kind_name(err->kind), err->message);
	if (*err->hint)
		fprintf(stderr, "check_path: hint: %s\n", err->hint);
	return 2;
}

/* Prints one line per path; returns the exit status. */
static int check_all(const struct cordon_policy *policy, char **paths)
{
	struct cordon_decision decision;
	struct cordon_error err = { 0 };
	int status = 0;

	for (; *paths; paths++) {
		if (cordon_policy_check(policy, *paths, CORDON_OP_WRITE, &decision, &err) < 0)
			return report(*paths, &err);
		printf("%s %s (%s%s%s)\n", cordon_verdict_name(decision.verdict), *paths,
		       cordon_reason_name(decision.reason), decision.rule ? ": " : "",
		       decision.rule ? decision.rule : "");
		if (decision.verdict != CORDON_ALLOW)
			status = 1;
	}
	return status;
}

int main(int argc, char **argv)
{
	struct cordon_policy *policy = NULL;
	struct cordon_error err = { 0 };
	int status;

	if (argc < 4) {
		fprintf(stderr, "usage: check_path ROOT FOLDERS PATH...\n");
		return 2;
	}
	if (cordon_policy_new(argv[1], &policy, &err) < 0)
		return report("root", &err);
	cordon_policy_set_mode(policy, CORDON_MODE_STRICT);
	if (cordon_policy_grant_folders(policy, argv[2], &err) < 0)
		status = report("folders", &err);
	else
		status = check_all(policy, argv + 3);
	cordon_policy_free(policy);
	return status;
}
