/* SPDX-License-Identifier: Apache-2.0 */
/* Prints what a run changed in its view. */
#include <sys/stat.h>

#include "base/text.h"
#include "cli/view_summary.h"
#include "view/delta.h"

#define TAG "SUMMARY"
#define SHOWN_MAX 10
#define SHORT 8 /* characters of an id that people type */

static const char *word(cordon_delta_kind kind)
{
	return kind == CORDON_DELTA_ADDED ? "created" : kind == CORDON_DELTA_DELETED ? "deleted" : "changed";
}

static void print_executes(const struct cordon_cli *cli, const struct cordon_delta *delta)
{
	size_t shown = 0;

	if (!delta->n_executes)
		return;
	cordon_cli_log(cli, TAG, "of what was changed the host would execute:");
	for (size_t i = 0; i < delta->n && shown < SHOWN_MAX; i++) {
		const struct cordon_delta_change *change = &delta->changes[i];
		autobuf struct cordon_buf path = CORDON_BUF(4 * CORDON_PATH_MAX);

		if (!change->who || cordon_text_escape(&path, change->path, strlen(change->path)) < 0)
			continue;
		cordon_cli_log(cli, TAG, "  %s %s (%s)", word(change->kind), path.data ? path.data : "", change->who);
		shown++;
	}
	if (delta->n_executes > shown)
		cordon_cli_log(cli, TAG, "  and %zu more", delta->n_executes - shown);
}

void cordon_view_summary(const struct cordon_cli *cli, const struct cordon_view *view)
{
	autodelta struct cordon_delta delta = CORDON_DELTA_NONE;
	struct cordon_error err = { 0 };
	size_t counts[CORDON_DELTA_TOUCHED + 1] = { 0 };
	const char *id = view->record.id;

	if (cordon_delta_find(view, &delta, &err) < 0) {
		cordon_cli_log(cli, TAG, "the changes in view %.*s are not known: %s", SHORT, id, err.message);
		return;
	}
	print_executes(cli, &delta);
	for (size_t i = 0; i < delta.n; i++)
		counts[delta.changes[i].kind] += !S_ISDIR(delta.changes[i].new.mode ? delta.changes[i].new.mode
										    : delta.changes[i].old.mode);
	cordon_cli_log(cli, TAG, "in view %.*s: %zu created, %zu changed, %zu deleted; the root itself is as it was",
		       SHORT, id, counts[CORDON_DELTA_ADDED],
		       counts[CORDON_DELTA_MODIFIED] + counts[CORDON_DELTA_TOUCHED], counts[CORDON_DELTA_DELETED]);
	if (delta.n_left)
		cordon_cli_log(cli, TAG, "%zu special file%s would be left out", delta.n_left,
			       delta.n_left == 1 ? "" : "s");
	cordon_cli_log(cli, TAG, "  cordon changes diff %.*s", SHORT, id);
	cordon_cli_log(cli, TAG, "  cordon changes apply %.*s", SHORT, id);
	cordon_cli_log(cli, TAG, "  cordon changes discard %.*s", SHORT, id);
}

void cordon_view_notice(const struct cordon_cli *cli, const struct cordon_view *view)
{
	cordon_cli_log(cli, "VIEW", "changes wait in view %.*s: cordon changes diff %.*s", SHORT, view->record.id,
		       SHORT, view->record.id);
}
