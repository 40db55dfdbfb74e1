/* SPDX-License-Identifier: Apache-2.0 */
/* Commits of a run on the command line: the mode that is chosen, taking them over, and how both are printed. */
#ifndef CORDON_CLI_GIT_TAKE_H
#define CORDON_CLI_GIT_TAKE_H

#include "cli/cli.h"
#include "git/record.h"

/* Chooses the mode of a run, and says so when it is not the usual one. `view`: the run works in a view. */
cordon_git_mode cordon_cli_git_choose(const struct cordon_cli *cli, const struct cordon_policy *policy,
				      cordon_git_mode asked, bool view);
/* Takes over the commits of a record, which it closes, and prints what happened on stderr. False when something was
 * refused. */
bool cordon_cli_git_take(const struct cordon_cli *cli, const struct cordon_home *home, struct cordon_git_record *record);

/* Prints what became of the commits of the record `id`, an object of cordon_git_take_json(), on stderr: as lines, or with
 * --json as one object. */
void cordon_cli_git_report(const struct cordon_cli *cli, const char *id, json_t *git);
/* Prints refs, findings and notes of what cordon_git_take_json() returned, each on a line that begins with [GIT]. */
void cordon_cli_git_print(const struct cordon_cli *cli, const json_t *git);

#endif
