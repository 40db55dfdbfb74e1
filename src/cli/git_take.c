/* SPDX-License-Identifier: Apache-2.0 */
/* Commits of a run on the command line. */
#include <stdio.h>

#include "cli/git_take.h"
#include "view/show.h"

cordon_git_mode cordon_cli_git_choose(const struct cordon_cli *cli, const struct cordon_policy *policy,
				      cordon_git_mode asked, bool view)
{
	struct cordon_error why;
	cordon_git_mode mode = cordon_git_mode_choose(policy, asked, view, &why);

	if (why.code)
		cordon_cli_notice(cli, "the repository can only be read inside: %s", why.message);
	return mode;
}

/* ---- printing ---- */

static void print_line(void *data, const char *line)
{
	cordon_cli_log(data, "GIT", "%s", line);
}

void cordon_cli_git_print(const struct cordon_cli *cli, const json_t *git)
{
	cordon_git_lines(git, print_line, (void *)(uintptr_t)cli);
}

void cordon_cli_git_report(const struct cordon_cli *cli, const char *id, json_t *git)
{
	json_auto_t *wrapped = cli->json ? json_pack("{s:s, s:s, s:O}", "kind", "git", "id", id, "git", git) : NULL;
	autofree char *text = wrapped ? json_dumps(wrapped, JSON_COMPACT) : NULL;

	if (cli->json)
		fprintf(stderr, "%s\n", text ? text : "");
	else
		cordon_cli_git_print(cli, git);
}

bool cordon_cli_git_take(const struct cordon_cli *cli, const struct cordon_home *home, struct cordon_git_record *record)
{
	struct cordon_git_take *take = NULL;
	struct cordon_error err = { 0 };
	int r = cordon_git_record_take(home, record, &take, &err);
	bool refused = r < 0 || take->state == CORDON_GIT_REFUSED;
	json_auto_t *object = take ? cordon_git_take_json(take) : NULL;

	if (r < 0)
		cordon_cli_fail(cli, &err);
	if (object && refused)
		json_object_set_new(object, "id", json_string(record->id));
	if (object && (!cli->json || take->state != CORDON_GIT_NOTHING || take->n_notes))
		cordon_cli_git_report(cli, record->id, object);
	cordon_git_take_free(take);
	return !refused;
}
