/* SPDX-License-Identifier: Apache-2.0 */
/* Commits of a run on the command line. */
#include <stdio.h>

#include "base/text.h"
#include "cli/git_take.h"

#define SHORT_ID 9

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

static void print_ref(const struct cordon_cli *cli, const struct cordon_git_ref *ref)
{
	const char *name = strncmp(ref->name, "refs/heads/", 11) == 0 ? ref->name + 11 : ref->name + 5;
	const char *what = strncmp(ref->name, "refs/tags/", 10) == 0 ? "tag" : "branch";

	if (!*ref->old)
		cordon_cli_log(cli, "GIT", "%s: new %s at %.*s", name, what, SHORT_ID, ref->new);
	else if (ref->forced)
		cordon_cli_log(cli, "GIT", "%s: %.*s became %.*s, which does not contain it; the old one is %s@{1}",
			       name, SHORT_ID, ref->old, SHORT_ID, ref->new, name);
	else
		cordon_cli_log(cli, "GIT", "%s: %.*s..%.*s", name, SHORT_ID, ref->old, SHORT_ID, ref->new);
}

static void print_finding(const struct cordon_cli *cli, const struct cordon_git_finding *finding)
{
	cordon_cli_log(cli, "GIT", "%s: %s (%s%.*s): %s", finding->refused ? "REFUSED" : "WARNING", finding->path,
		       *finding->commit ? "commit " : "staged", SHORT_ID, finding->commit, finding->why);
}

void cordon_cli_git_print(const struct cordon_cli *cli, const struct cordon_git_take *take)
{
	size_t shown = take->n_findings, all = take->n_refused + take->n_warned;

	for (size_t i = 0; i < shown; i++)
		print_finding(cli, &take->findings[i]);
	if (all > shown)
		cordon_cli_log(cli, "GIT", "and %zu paths more", all - shown);
	for (size_t i = 0; i < take->n_notes; i++)
		cordon_cli_log(cli, "GIT", "%s", take->notes[i]);
	for (size_t i = 0; take->state == CORDON_GIT_TAKEN && i < take->n_refs; i++)
		print_ref(cli, &take->refs[i]);
}

json_t *cordon_cli_git_json(const struct cordon_git_take *take)
{
	static const char *const states[] = { "nothing", "ready", "refused", "taken" };
	json_t *refs = json_array(), *findings = json_array(), *notes = json_array();

	for (size_t i = 0; i < take->n_refs; i++)
		json_array_append_new(refs, json_pack("{s:o, s:s, s:s, s:b}", "name",
						      cordon_cli_json_text(take->refs[i].name), "old", take->refs[i].old,
						      "new", take->refs[i].new, "forced", (int)take->refs[i].forced));
	for (size_t i = 0; i < take->n_findings; i++)
		json_array_append_new(findings, json_pack("{s:s, s:s, s:s, s:b}", "commit", take->findings[i].commit,
							  "path", take->findings[i].path, "why", take->findings[i].why,
							  "refused", (int)take->findings[i].refused));
	for (size_t i = 0; i < take->n_notes; i++)
		json_array_append_new(notes, json_string(take->notes[i]));
	return json_pack("{s:s, s:I, s:I, s:I, s:o, s:o, s:o}", "state", states[take->state], "commits",
			 (json_int_t)take->n_commits, "refused", (json_int_t)take->n_refused, "warned",
			 (json_int_t)take->n_warned, "refs", refs, "paths", findings, "notes", notes);
}

/* ---- after the run ---- */

/* Says on stderr, as one object with --json, what was taken over. */
static void report(const struct cordon_cli *cli, const struct cordon_cli_git *git, const struct cordon_git_take *take)
{
	if (cli->json && (take->state != CORDON_GIT_NOTHING || take->n_notes)) {
		json_t *object = json_pack("{s:s, s:s, s:o}", "kind", "git", "id", git->record.id, "git",
					   cordon_cli_git_json(take));
		autofree char *text = object ? json_dumps(object, JSON_COMPACT) : NULL;

		json_decref(object);
		fprintf(stderr, "%s\n", text ? text : "");
		return;
	}
	cordon_cli_git_print(cli, take);
	if (take->state == CORDON_GIT_REFUSED)
		cordon_cli_log(cli, "GIT",
			       "Nothing was taken over. 'cordon git take %.8s' tries again, 'cordon git drop %.8s' removes the "
			       "commits",
			       git->record.id, git->record.id);
}

bool cordon_cli_git_end(const struct cordon_cli *cli, struct cordon_cli_git *git)
{
	CORDON_CLEANUP(cordon_policy_freep) struct cordon_policy *policy = NULL;
	struct cordon_git_take *take = NULL;
	struct cordon_error err = { 0 };
	bool done = true;
	int r;

	if (git->record.dir_fd < 0)
		return true;
	r = cordon_git_record_policy(&git->record, &policy, &err);
	if (r == 0)
		r = cordon_git_take_judge(policy, git->record.path, &take, &err);
	if (r == 0 && take->state == CORDON_GIT_READY)
		r = cordon_git_take_finish(take, &err);
	if (r < 0) {
		cordon_error_hint(&err, "'cordon git take %.8s' tries again", git->record.id);
		cordon_cli_fail(cli, &err);
	}
	cordon_git_record_audit(&git->home, &git->record, policy ? policy->root.path : NULL, take, r < 0 ? &err : NULL);
	if (take)
		report(cli, git, take);
	done = r == 0 && take->state != CORDON_GIT_REFUSED;
	cordon_git_take_free(take);
	if (done)
		cordon_git_record_remove(&git->home, &git->record, NULL);
	cordon_git_record_close(&git->record);
	cordon_home_done(&git->home);
	return done;
}
