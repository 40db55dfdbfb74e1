/* SPDX-License-Identifier: Apache-2.0 */
/* Commits of a run on the command line: what `cordon run` does before and after a run, and how it is printed. */
#ifndef CORDON_CLI_GIT_TAKE_H
#define CORDON_CLI_GIT_TAKE_H

#include "cli/cli.h"
#include "git/record.h"

/* What belongs to one run; with a view, the view has the record. */
struct cordon_cli_git {
	struct cordon_home home;
	struct cordon_git_record record;
	cordon_git_mode mode;
	bool asked; /* for the mode, by its name */
};

/* clang-format off */
#define CORDON_CLI_GIT_NONE { .home = CORDON_HOME_NONE, .record = CORDON_GIT_RECORD_NONE }
/* clang-format on */

/* Chooses the mode of a run, and says so when it is not the usual one. `view`: the run works in a view. */
void cordon_cli_git_choose(const struct cordon_cli *cli, struct cordon_cli_git *git, const struct cordon_policy *policy,
			   cordon_git_mode asked, bool view);
/* Changes the policy of a run for the repository. `record` is the directory of the view in which the run works; with NULL
 * a record is made. */
int cordon_cli_git_begin(struct cordon_cli_git *git, struct cordon_policy *policy, const char *record, const char *at,
			 struct cordon_error *err);
/* Takes over what the run committed, unless it worked in a view, and prints what happened on stderr. False when
 * something was refused. */
bool cordon_cli_git_end(const struct cordon_cli *cli, struct cordon_cli_git *git);
/* Removes what was made for a run that was not started. */
void cordon_cli_git_drop(struct cordon_cli_git *git);

/* Prints refs, findings and notes of what cordon_git_take_json() returned, each on a line that begins with [GIT]. */
void cordon_cli_git_print(const struct cordon_cli *cli, const json_t *git);

#endif
