/* SPDX-License-Identifier: Apache-2.0 */
/* Commits of a run on the command line. */
#include <stdio.h>

#include "cli/git_take.h"
#include "view/show.h"

void cordon_cli_git_choose(const struct cordon_cli *cli, struct cordon_cli_git *git, const struct cordon_policy *policy,
			   cordon_git_mode asked, bool view)
{
	struct cordon_error why;

	git->asked = asked != CORDON_GIT_DEFAULT;
	git->mode = cordon_git_mode_choose(policy, asked, view, &why);
	if (why.code)
		cordon_cli_notice(cli, "the repository can only be read inside: %s", why.message);
}

int cordon_cli_git_begin(struct cordon_cli_git *git, struct cordon_policy *policy, const char *record, const char *at,
			 struct cordon_error *err)
{
	struct cordon_git_begin ask = {
		.mode = git->mode, .asked = git->asked, .record = record, .view = record != NULL, .at = at
	};
	int r = 0;

	if (git->mode == CORDON_GIT_COMMIT && !record) {
		r = cordon_home_open(&git->home, err);
		if (r == 0)
			r = cordon_git_record_make(&git->home, policy, &git->record, err);
		ask.record = git->record.path;
	}
	if (r == 0)
		r = cordon_git_begin(policy, &ask, err);
	if (r < 0)
		cordon_cli_git_drop(git);
	return r;
}

void cordon_cli_git_drop(struct cordon_cli_git *git)
{
	if (git->record.dir_fd >= 0)
		cordon_git_record_remove(&git->home, &git->record, NULL);
	cordon_home_done(&git->home);
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

/* ---- after the run ---- */

/* Says on stderr, as one object with --json, what was taken over. */
static void report(const struct cordon_cli *cli, const struct cordon_cli_git *git, const struct cordon_git_take *take,
		   bool waits)
{
	json_auto_t *object = cordon_git_take_json(take), *wrapped = NULL;
	autofree char *text = NULL;

	if (object && waits)
		json_object_set_new(object, "id", json_string(git->record.id));
	if (!cli->json) {
		cordon_cli_git_print(cli, object);
	} else if (take->state != CORDON_GIT_NOTHING || take->n_notes) {
		wrapped = json_pack("{s:s, s:s, s:O}", "kind", "git", "id", git->record.id, "git", object);
		text = wrapped ? json_dumps(wrapped, JSON_COMPACT) : NULL;
		fprintf(stderr, "%s\n", text ? text : "");
	}
}

bool cordon_cli_git_end(const struct cordon_cli *cli, struct cordon_cli_git *git)
{
	struct cordon_git_take *take = NULL;
	struct cordon_error err = { 0 };
	bool done;
	int r;

	if (git->record.dir_fd < 0)
		return true;
	r = cordon_git_record_take(&git->home, &git->record, &take, &err);
	if (r < 0)
		cordon_cli_fail(cli, &err);
	done = r == 0 && take->state != CORDON_GIT_REFUSED;
	if (take)
		report(cli, git, take, take->state == CORDON_GIT_REFUSED);
	cordon_git_take_free(take);
	cordon_home_done(&git->home);
	return done;
}
