/* SPDX-License-Identifier: Apache-2.0 */
/* Hunks of a change, and what a person chose of them. */
#include "view/pick.h"

#include "base/path.h"
#include "view/internal.h"
#include "view/merge.h"

void cordon_compared_done(struct cordon_compared *compared)
{
	cordon_text_done(&compared->a);
	cordon_text_done(&compared->b);
	cordon_edits_done(&compared->edits);
	free(compared->hunks);
	cordon_buf_done(&compared->old);
	cordon_buf_done(&compared->new);
	*compared = (struct cordon_compared){ 0 };
}

/* Reads one side. What is longer than the bound is not read at all. */
static int read_side(const struct cordon_delta *delta, const struct cordon_delta_change *change, bool old,
		     struct cordon_compared *compared, struct cordon_error *err)
{
	int r = cordon_delta_read(delta, change, old, old ? &compared->old : &compared->new, err);

	if (r != -E2BIG)
		return r;
	compared->too_large = true;
	return 0;
}

/* If the host changed the text, too, an apply writes both changes. So that is what a person has to see. */
static int merge(const struct cordon_view *view, const struct cordon_delta *delta,
		 const struct cordon_delta_change *change, struct cordon_compared *compared, struct cordon_error *err)
{
	autobuf struct cordon_buf merged = CORDON_BUF(2 * CORDON_TEXT_BYTES_MAX);
	int r = cordon_merge_change(view, delta, change, &merged, &compared->conflict, err);

	if (r < 0 || compared->conflict)
		return r;
	cordon_buf_done(&compared->new);
	compared->new = merged;
	merged = (struct cordon_buf){ 0 };
	compared->merged = true;
	return 0;
}

static int find_hunks(struct cordon_compared *compared)
{
	int r = cordon_text_init(&compared->a, compared->old.data, compared->old.len);

	if (r == 0)
		r = cordon_text_init(&compared->b, compared->new.data, compared->new.len);
	if (r == 0)
		r = cordon_lines_diff(&compared->a, &compared->b, &compared->edits);
	if (r == 0 && !(compared->hunks = calloc(compared->edits.n + 1, sizeof(*compared->hunks))))
		r = -ENOMEM;
	for (size_t i = 0; r == 0 && i < compared->edits.n; compared->n++) {
		struct cordon_hunk *hunk = &compared->hunks[compared->n];

		cordon_hunk_at(&compared->a, &compared->b, &compared->edits, i, hunk);
		i = hunk->first + hunk->n;
	}
	for (size_t i = 0; r == 0 && i < compared->edits.n; i++) {
		compared->removed += compared->edits.edit[i].n_a;
		compared->added += compared->edits.edit[i].n_b;
	}
	return r;
}

int cordon_compare(const struct cordon_view *view, const struct cordon_delta *delta,
		   const struct cordon_delta_change *change, size_t max, struct cordon_compared *ret_compared,
		   struct cordon_error *err)
{
	autocompared struct cordon_compared compared = { .old = CORDON_BUF(max), .new = CORDON_BUF(max) };
	int r = read_side(delta, change, true, &compared, err);

	if (r == 0)
		r = read_side(delta, change, false, &compared, err);
	if (r == 0 && !compared.too_large && change->edited && change->kind == CORDON_DELTA_MODIFIED)
		r = merge(view, delta, change, &compared, err);
	compared.text = r == 0 && !compared.too_large && cordon_text_is(compared.old.data, compared.old.len) &&
			cordon_text_is(compared.new.data, compared.new.len);
	if (r == 0 && compared.text && (r = find_hunks(&compared)) < 0)
		cordon_fail_errno(err, r, "cannot compare %s", change->path);
	if (r < 0)
		return r;
	*ret_compared = compared;
	compared = (struct cordon_compared){ 0 };
	return 0;
}

bool cordon_pick_by_hunk(const struct cordon_delta_change *change, const struct cordon_compared *compared)
{
	return compared->text && compared->n && change->kind == CORDON_DELTA_MODIFIED && S_ISREG(change->old.mode) &&
	       S_ISREG(change->new.mode) && (change->old.mode & 0777) == (change->new.mode & 0777);
}

int cordon_pick_hunks(const struct cordon_compared *compared, const bool *chosen, cordon_pick *ret_pick,
		      struct cordon_buf *ret_content)
{
	autofree bool *edits = calloc(compared->edits.n + 1, sizeof(*edits));
	size_t n = 0;

	if (!edits)
		return -ENOMEM;
	for (size_t i = 0; i < compared->n; i++) {
		const struct cordon_hunk *hunk = &compared->hunks[i];

		for (size_t k = 0; chosen[i] && k < hunk->n; k++)
			edits[hunk->first + k] = true;
		n += chosen[i];
	}
	*ret_pick = n == 0 ? CORDON_PICK_NO : n == compared->n ? CORDON_PICK_ALL : CORDON_PICK_PART;
	return *ret_pick == CORDON_PICK_PART
		       ? cordon_lines_apply(&compared->a, &compared->b, &compared->edits, edits, ret_content)
		       : 0;
}

/* Whether something below a directory changed as well. What is in a new one comes after it, and what was in a deleted
 * one before it. */
static bool has_inner(const struct cordon_delta *delta, const struct cordon_delta_change *change)
{
	size_t i = (size_t)(change - delta->changes);
	bool deleted = change->kind == CORDON_DELTA_DELETED;
	const struct cordon_delta_change *next = deleted ? (i ? change - 1 : NULL)
							 : (i + 1 < delta->n ? change + 1 : NULL);

	return next && cordon_path_within(next->path, change->path) && !cordon_streq(next->path, change->path);
}

bool cordon_pick_asks(const struct cordon_delta *delta, const struct cordon_delta_change *change)
{
	bool dir = S_ISDIR(change->kind == CORDON_DELTA_DELETED ? change->old.mode : change->new.mode);

	if (change->kind == CORDON_DELTA_TOUCHED)
		return change->attributes;
	return !dir || change->kind == CORDON_DELTA_MODIFIED || !has_inner(delta, change);
}

static int no_such(const char *path, struct cordon_error *err)
{
	return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "there is no such hunk of %s; nothing was written", path);
}

/* The hunks of one change that were chosen: those from `first` to `end` in the list. */
static int pick_some(const struct cordon_pick_list *list, size_t first, size_t end, const struct cordon_delta *delta,
		     const struct cordon_delta_change *change, cordon_pick *ret_pick, struct cordon_buf *ret_content,
		     struct cordon_error *err)
{
	autocompared struct cordon_compared compared = { 0 };
	autofree bool *chosen = NULL;
	int r = cordon_compare(list->view, delta, change, CORDON_TEXT_BYTES_MAX, &compared, err);

	if (r < 0)
		return r;
	if (!cordon_pick_by_hunk(change, &compared))
		return no_such(change->path, err);
	chosen = calloc(compared.n, sizeof(*chosen));
	if (!chosen)
		return cordon_no_memory(err);
	for (size_t i = first; i < end; i++) {
		if (list->items[i].hunk >= compared.n)
			return no_such(change->path, err);
		chosen[list->items[i].hunk] = true;
	}
	r = cordon_pick_hunks(&compared, chosen, ret_pick, ret_content);
	return r < 0 ? cordon_fail_errno(err, r, "cannot choose hunks of %s", change->path) : 0;
}

int cordon_pick_listed(void *data, const struct cordon_delta *delta, const struct cordon_delta_change *change,
		       cordon_pick *ret_pick, struct cordon_buf *ret_content, struct cordon_error *err)
{
	struct cordon_pick_list *list = data;
	size_t place = (size_t)(change - delta->changes), first = list->at;
	bool whole = false;

	for (; list->at < list->n && list->items[list->at].change == place; list->at++)
		whole |= list->items[list->at].hunk == CORDON_PICKED_WHOLE;
	if (first == list->at || whole) {
		*ret_pick = whole ? CORDON_PICK_ALL : CORDON_PICK_NO;
		return 0;
	}
	return pick_some(list, first, list->at, delta, change, ret_pick, ret_content, err);
}
