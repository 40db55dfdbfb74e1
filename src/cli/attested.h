/* SPDX-License-Identifier: Apache-2.0 */
/* Attestations on the command line: who may sign, and which commits have one. */
#ifndef CORDON_CLI_ATTESTED_H
#define CORDON_CLI_ATTESTED_H

#include "base/home.h"
#include "cli/cli.h"
#include "git/git.h"

/* The file of allowed signers: the one that was named, or `signers` in the state directory. */
int cordon_cli_signers(const struct cordon_home *home, const char *named, char ret[static CORDON_PATH_MAX],
		       struct cordon_error *err);

/* Refuses commits without a valid attestation, or of a run in which something was refused. Adds an object for each to
 * `ret_refused`, and prints a line for it, unless --json was given. */
int cordon_cli_attested(struct cordon_cli *cli, const struct cordon_root *root, const struct cordon_git_check *ask,
			const char *signers, json_t *ret_refused, struct cordon_error *err);

#endif
