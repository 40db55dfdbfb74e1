/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the summary of a run. */
#include <stdio.h>

#include "cli/run_summary.h"
#include "cli/view_summary.h"
#include "run/changes.h"
#include "sandbox/host/discarded.h"

#define TAG "SUMMARY"

void cordon_run_summary_begin(struct cordon_run_summary *summary)
{
	/* File times come from this clock, so a file that is changed later never has an earlier time. */
	clock_gettime(CLOCK_REALTIME_COARSE, &summary->since);
}

void cordon_run_summary_event(struct cordon_run_summary *summary, const struct cordon_event *event)
{
	autobuf struct cordon_buf text = CORDON_BUF(2 * CORDON_PATH_MAX);

	if (event->kind == CORDON_EVENT_UNTOLD)
		summary->unlisted += event->count;
	if (event->kind != CORDON_EVENT_VIOLATION)
		return;
	/* An event with a count repeats one that was reported before; the first attempt is counted already. */
	*(event->verdict == CORDON_WARN ? &summary->warned : &summary->refused) += event->count > 1 ? event->count - 1
												    : 1;
	if (event->verdict == CORDON_WARN)
		return;
	if (event->count > 1 || summary->n_shown == CORDON_SUMMARY_REFUSED)
		return;
	if (cordon_buf_addf(&text, "%s %s", event->op, event->path) == 0 &&
	    (summary->shown[summary->n_shown] = cordon_buf_steal(&text)))
		summary->n_shown++;
}

static const char *plural(size_t n)
{
	return n == 1 ? "" : "s";
}

/* Lists the folders on one line, up to CORDON_SUMMARY_FOLDERS of them. */
static void print_removed(const struct cordon_cli *cli, const struct cordon_changes *changes)
{
	autobuf struct cordon_buf names = CORDON_BUF(CORDON_SUMMARY_FOLDERS * 2 * CORDON_PATH_MAX);
	size_t shown = changes->n_removed_from < CORDON_SUMMARY_FOLDERS ? changes->n_removed_from
									: CORDON_SUMMARY_FOLDERS;

	for (size_t i = 0; i < shown; i++)
		if (cordon_buf_addf(&names, "%s%s", i ? ", " : "",
				    *changes->removed_from[i] ? changes->removed_from[i] : ".") < 0)
			return;
	if (changes->n_removed_from > shown &&
	    cordon_buf_addf(&names, " and %zu more", changes->n_removed_from - shown) < 0)
		return;
	if (shown)
		cordon_cli_log(cli, TAG, "files were removed from, or came and went in: %s", names.data);
}

static void print_changes(const struct cordon_cli *cli, const struct cordon_changes *changes)
{
	if (changes->created + changes->modified == 0)
		cordon_cli_log(cli, TAG, "no file was created or changed");
	else
		cordon_cli_log(cli, TAG, "%zu file%s created, %zu changed", changes->created, plural(changes->created),
			       changes->modified);
	print_removed(cli, changes);
	if (changes->n_executes)
		cordon_cli_log(cli, TAG, "of what was created or changed the host may execute:");
	for (size_t i = 0; i < changes->n_executes && i < CORDON_CHANGES_SHOWN_MAX; i++)
		cordon_cli_log(cli, TAG, "  %s %s (%s)", changes->executes[i].created ? "created" : "changed",
			       changes->executes[i].path, changes->executes[i].who);
	if (changes->n_executes > CORDON_CHANGES_SHOWN_MAX)
		cordon_cli_log(cli, TAG, "  and %zu more", changes->n_executes - CORDON_CHANGES_SHOWN_MAX);
	if (changes->n_unread)
		cordon_cli_log(cli, TAG, "%zu folder%s that changed can't be read: %s%s", changes->n_unread,
			       plural(changes->n_unread), changes->unread, changes->n_unread > 1 ? ", ..." : "");
	if (changes->stopped)
		cordon_cli_log(cli, TAG, "only the first %zu names were looked at: there may be more", changes->looked);
}

static void print_refused(const struct cordon_run_summary *summary, const struct cordon_cli *cli,
			  const struct cordon_policy *policy, const struct cordon_result *result)
{
	/* Only these see every refused attempt. */
	bool watched = result->watching == CORDON_WATCHING_ALL || result->watching == CORDON_WATCHING_TRIPWIRES;

	if (summary->refused)
		cordon_cli_log(cli, TAG, "%zu attempt%s refused%s", summary->refused, plural(summary->refused),
			       summary->n_shown ? ":" : "");
	else if (watched && policy->mode == CORDON_MODE_STRICT && !result->violations && !result->protected_made)
		cordon_cli_log(cli, TAG, "no attempt was refused");
	for (size_t i = 0; i < summary->n_shown; i++)
		cordon_cli_log(cli, TAG, "  %s", summary->shown[i]);
	if (summary->warned)
		cordon_cli_log(cli, TAG, "%zu access%s outside the workspace let through with a warning",
			       summary->warned, summary->warned == 1 ? "" : "es");
	if (summary->unlisted)
		cordon_cli_log(cli, TAG, "%zu further accesses outside were counted only", summary->unlisted);
}

static void print_discarded(const struct cordon_cli *cli, const struct cordon_result *result)
{
	if (result->discarded == 1)
		cordon_cli_log(cli, TAG, "1 file in the private home was discarded");
	else if (result->discarded)
		cordon_cli_log(cli, TAG, "%s%u files in the private home were discarded",
			       result->discarded == CORDON_DISCARDED_MAX ? "at least " : "", result->discarded);
}

void cordon_run_summary_end(struct cordon_run_summary *summary, const struct cordon_cli *cli,
			    const struct cordon_policy *policy, const struct cordon_view *view,
			    const struct cordon_result *result)
{
	struct cordon_changes changes = { 0 };
	struct cordon_error err = { 0 };

	if (view && view->dir_fd >= 0)
		cordon_view_summary(cli, view);
	else if (view)
		cordon_cli_log(cli, TAG, "nothing was changed");
	else if (cordon_changes_find(policy, &summary->since, NULL, &changes, &err) < 0)
		cordon_cli_log(cli, TAG, "changes are not known: %s", err.message);
	else
		print_changes(cli, &changes);
	print_refused(summary, cli, policy, result);
	print_discarded(cli, result);
	if (result->limit)
		cordon_cli_log(cli, TAG, "limit: %s ended the run", result->limit);
	if (result->offline)
		cordon_cli_log(cli, TAG,
			       "the helper of the network ended before the command, which reached no host from then on");
	if (result->failed_on_violation)
		cordon_cli_log(cli, TAG, "the command succeeded; the run has failed, as --fail-on-violation asks");
	if (result->violations)
		cordon_cli_log(cli, TAG, "all of it: cordon audit --run %s", result->run_id);
	cordon_changes_done(&changes);
}

void cordon_run_summary_done(struct cordon_run_summary *summary)
{
	for (size_t i = 0; i < summary->n_shown; i++)
		free(summary->shown[i]);
	summary->n_shown = 0;
}
