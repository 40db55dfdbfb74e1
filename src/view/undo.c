/* SPDX-License-Identifier: Apache-2.0 */
/* Takes back what was applied, discards views, and ends what killed processes began. */
#include <fcntl.h>

#include "audit/audit.h"
#include "view/apply.h"
#include "view/internal.h"
#include "view/journal.h"
#include "view/shown.h"

struct listing {
	struct cordon_apply_result *result;
	bool failed;
};

static void add(struct listing *listing, struct cordon_apply_items *items, const char *path, char letter, bool dir,
		const char *why)
{
	if (items->n == items->cap) {
		size_t cap = items->cap ? 2 * items->cap : 16;
		struct cordon_apply_item *more = reallocarray(items->item, cap, sizeof(*more));

		if (!more) {
			listing->failed = true;
			return;
		}
		items->item = more;
		items->cap = cap;
	}
	items->item[items->n] = (struct cordon_apply_item){
		.path = cordon_arena_strdup(listing->result->arena, path),
		.letter = letter,
		.dir = dir,
		.why = why,
	};
	if (!items->item[items->n++].path)
		listing->failed = true;
}

static void met(void *data, const char *path)
{
	struct listing *listing = data;

	add(listing, &listing->result->conflicts, path, '!', false, "the host went on");
}

/* Lists what an undo restores, with the letter of what happens to each path now. */
static void list_steps(struct listing *listing, const struct cordon_apply_journal *journal)
{
	for (size_t i = 0; i < journal->n; i++) {
		const struct cordon_apply_step *step = &journal->steps[i];
		char letter = 'M';

		if (step->kind == CORDON_APPLY_STEP_PUT)
			letter = 'D';
		else if (step->kind == CORDON_APPLY_STEP_TAKE)
			letter = 'A';
		if (step->kind != CORDON_APPLY_STEP_META && step->kind != CORDON_APPLY_STEP_OPEN)
			add(listing, &listing->result->applied, step->path, letter,
			    S_ISDIR(step->kind == CORDON_APPLY_STEP_PUT ? step->new.mode : step->old.mode), NULL);
	}
}

/* INVARIANT: what a person looked at is what is undone. */
static int check_shown(const struct cordon_undo_request *request, const struct cordon_apply_journal *journal,
		       struct cordon_apply_result *result, struct cordon_error *err)
{
	char now[CORDON_SHOWN_SIZE];

	cordon_shown_journal(journal, now);
	if (request->only_judge)
		memcpy(result->shown, now, sizeof(now));
	if (!request->shown || cordon_streq(now, request->shown))
		return 0;
	cordon_fail(err, -ESTALE, CORDON_KIND_CONFLICT,
		    "the newest apply of view %s is not the one that was shown; nothing was undone",
		    journal->view->record.id);
	cordon_error_hint(err, "look at the view again");
	return -ESTALE;
}

static int undo_latest(struct cordon_view *view, const struct cordon_undo_request *request,
		       struct cordon_apply_result *result, struct cordon_error *err)
{
	autojournal struct cordon_apply_journal journal = CORDON_APPLY_JOURNAL_NONE;
	struct listing listing = { .result = result };
	autofd int root = -1;
	int r = cordon_view_root(view, &root, err);

	if (r == 0)
		r = cordon_apply_journal_latest(view, root, &journal, err);
	if (r == 0)
		r = check_shown(request, &journal, result, err);
	if (r == 0)
		r = cordon_apply_journal_obstacles(&journal, met, &listing, err);
	if (r < 0)
		return r;
	if (result->conflicts.n && !request->only_judge)
		return cordon_fail(err, -EEXIST, CORDON_KIND_CONFLICT,
				   "the host went on with %zu of the paths, the first is %s; nothing was undone",
				   result->conflicts.n, result->conflicts.item[0].path);
	list_steps(&listing, &journal);
	if (listing.failed)
		return cordon_no_memory(err);
	return request->only_judge ? 0 : cordon_apply_journal_undo(&journal, err);
}

int cordon_view_undo(struct cordon_view *view, const struct cordon_undo_request *request,
		     struct cordon_apply_result *ret_result, struct cordon_error *err)
{
	const struct cordon_undo_request newest = { 0 };
	size_t ended;
	int r;

	*ret_result = (struct cordon_apply_result){ .arena = cordon_arena_new() };
	if (!ret_result->arena)
		return cordon_no_memory(err);
	request = request ? request : &newest;
	r = request->only_judge ? 0 : cordon_view_lock(view, err);
	if (r == 0 && !request->only_judge)
		r = cordon_apply_journal_recover(view, &ended, err);
	return r == 0 ? undo_latest(view, request, ret_result, err) : r;
}

void cordon_view_audit(const struct cordon_home *home, const struct cordon_view *view, const char *op,
		       const struct cordon_apply_result *result, const struct cordon_error *failed)
{
	struct cordon_audit_event event = {
		.type = failed ? CORDON_AUDIT_REFUSAL : CORDON_AUDIT_CHANGES,
		.op = op,
		.path = view->record.root,
		.success = failed ? CORDON_AUDIT_FAILED : CORDON_AUDIT_SUCCEEDED,
		.kind = failed ? failed->kind : CORDON_KIND_NONE,
	};
	struct cordon_audit_ids ids = { .session_id = *view->record.session ? view->record.session : NULL };
	struct cordon_audit *log = NULL;

	event.detail = json_pack("{s:s, s:I, s:I, s:I}", "view", view->record.id, "paths",
				 (json_int_t)(result ? result->applied.n : 0), "conflicts",
				 (json_int_t)(result ? result->conflicts.n : 0), "refused",
				 (json_int_t)(result ? result->refused.n : 0));
	if (event.detail && result && result->git && result->git->state == CORDON_GIT_TAKEN)
		json_object_set_new(event.detail, "commits", json_integer((json_int_t)result->git->n_commits));
	if (cordon_audit_open(home, &ids, &log, NULL) == 0)
		cordon_audit_write(log, &event, NULL);
	cordon_audit_close(log);
	json_decref(event.detail);
}

/* Whether the directory is gone that a view was made of, or another one has its name. */
static bool has_no_root(const struct cordon_view *view)
{
	autofd int fd = -1;
	int r = cordon_view_root(view, &fd, NULL);

	return r == -ENOENT || r == -ENOTDIR || r == -ESTALE;
}

int cordon_view_discard(const struct cordon_home *home, struct cordon_view *view, struct cordon_error *err)
{
	size_t ended;
	int r = cordon_view_lock(view, err);

	if (r == 0 && view->record.state == CORDON_VIEW_LIVE)
		r = cordon_fail(err, -EBUSY, CORDON_KIND_CONFLICT, "the run of view %s has not ended", view->record.id);
	if (r == 0)
		r = cordon_view_check_above(home, view->record.id, err);
	if (r < 0)
		return r;
	r = cordon_apply_journal_recover(view, &ended, err);
	if (r < 0 && !has_no_root(view))
		return r;
	cordon_view_audit(home, view, "discard", NULL, NULL);
	return cordon_view_remove(home, view, err);
}

bool cordon_view_unfinished(const struct cordon_view *view)
{
	return cordon_apply_journal_pending(view);
}

int cordon_view_recover(const struct cordon_home *home, size_t *ret_ended, struct cordon_error *err)
{
	autoviewlist struct cordon_view_list list = { 0 };
	struct cordon_error first = { 0 };
	int r = cordon_view_list(home, -1, &list, err), failed = 0;

	*ret_ended = 0;
	for (size_t i = 0; r == 0 && i < list.n; i++) {
		autoview struct cordon_view view = CORDON_VIEW_NONE;
		size_t ended = 0;

		if (list.items[i].state == CORDON_VIEW_LIVE ||
		    cordon_view_open(home, list.items[i].id, &view, NULL) < 0 || !cordon_apply_journal_pending(&view) ||
		    cordon_view_lock(&view, NULL) < 0)
			continue;
		if (cordon_apply_journal_recover(&view, &ended, &first) < 0 && failed == 0) {
			failed = first.code;
			if (err)
				*err = first;
		}
		*ret_ended += ended;
	}
	return r < 0 ? r : failed;
}
