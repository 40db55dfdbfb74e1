/* SPDX-License-Identifier: Apache-2.0 */
/* What a person does with the changes of a view: apply all or a part, undo, discard. The library decides, as for the
 * command. */
#include "page/changes.h"

#define LISTED 200

static void write_items(struct cordon_page *page, const struct cordon_apply_items *items, const char *heading)
{
	struct cordon_html *html = &page->html;

	if (!items->n)
		return;
	cordon_html(html, "<h2>%s</h2><ul>", heading);
	for (size_t i = 0; i < items->n && i < LISTED; i++) {
		cordon_html(html, "<li>");
		cordon_page_name(page, items->item[i].path);
		if (items->item[i].why)
			cordon_html(html, ": %s", items->item[i].why);
		cordon_html(html, "</li>");
	}
	if (items->n > LISTED)
		cordon_html(html, "<li>and %zu more</li>", items->n - LISTED);
	cordon_html(html, "</ul>");
}

/* What git reported about the commits of the run. */
static void write_git(struct cordon_page *page, const struct cordon_git_take *take)
{
	struct cordon_html *html = &page->html;

	if (!take || (!take->n_findings && !take->n_notes))
		return;
	cordon_html(html, "<h2>Commits</h2><ul>");
	for (size_t i = 0; i < take->n_findings; i++)
		cordon_html(html, "<li>%s: <code>%s</code>: %s</li>", take->findings[i].refused ? "Refused" : "Warning",
			    take->findings[i].path, take->findings[i].why);
	for (size_t i = 0; i < take->n_notes; i++)
		cordon_html(html, "<li>%s</li>", take->notes[i]);
	cordon_html(html, "</ul>");
}

/* Names everything that stood in the way. Nothing was written. */
static void fail(struct cordon_page *page, const struct cordon_apply_result *result, const struct cordon_error *err)
{
	cordon_page_fail_error(page, err);
	write_items(page, &result->refused, "Refused by the policy of the run");
	write_items(page, &result->conflicts, "Conflicts with what the host has changed");
	write_git(page, result->git);
}

static void fail_form(struct cordon_page *page, const char *what, const char *hint)
{
	struct cordon_error err = { 0 };

	cordon_fail(&err, -EINVAL, CORDON_KIND_USAGE, "%s", what);
	cordon_error_hint(&err, "%s", hint);
	cordon_page_fail_error(page, &err);
}

/* ---- apply ---- */

/* The result of an apply may need more than one sentence. */
static void answer_applied(struct cordon_page *page, const struct cordon_apply_result *result, const char *id)
{
	bool commits = result->git && result->git->state == CORDON_GIT_TAKEN;

	if (!result->git || (!result->git->n_findings && !result->git->n_notes)) {
		cordon_page_redirect(page, commits ? "applied-commits" : "applied", "/changes/%s", id);
		return;
	}
	cordon_page_begin(page, "Applied", NULL);
	cordon_html(&page->html, "<p>The changes are in the host's tree%s.</p>",
		    commits ? ", and the commits of the run in its repository" : "");
	write_git(page, result->git);
	cordon_html(&page->html, "<p><a href=\"/changes/%s\">The view</a></p>", id);
}

static void apply(struct cordon_page *page, struct cordon_view *view, struct cordon_apply_request *request)
{
	autoapply struct cordon_apply_result result = { 0 };
	struct cordon_error err = { 0 };
	char id[CORDON_ID_SIZE];
	int r;

	request->shown = cordon_page_field(page, "shown");
	if (!request->shown) {
		fail_form(page, "The form does not say what was shown", "load the page again");
		return;
	}
	memcpy(id, view->record.id, sizeof(id));
	r = cordon_view_apply(view, request, &result, &err);
	if (err.kind != CORDON_KIND_USAGE)
		cordon_view_audit(&page->store->home, view, "apply", &result, r < 0 ? &err : NULL);
	cordon_page_audit(page, "changes_apply", *view->record.session ? view->record.session : NULL, id,
			  r < 0 ? &err : NULL);
	if (r < 0)
		fail(page, &result, &err);
	else
		answer_applied(page, &result, id);
}

static void apply_all(struct cordon_page *page, struct cordon_view *view)
{
	struct cordon_apply_request request = { 0 };
	autodelta struct cordon_delta delta = CORDON_DELTA_NONE;
	struct cordon_changes_counts counts;
	struct cordon_error err = { 0 };

	if (!cordon_page_field(page, "sure")) {
		if (cordon_delta_find(view, &delta, &err) < 0) {
			cordon_page_fail_error(page, &err);
			return;
		}
		cordon_changes_count(&delta, &counts);
		if (counts.executed || counts.deleted) {
			fail_form(page,
				  "The host would execute some of it, or some of it is deleted, and the box about that is not ticked",
				  "go back, look at it, and tick the box");
			return;
		}
	}
	apply(page, view, &request);
}

/* "12" is a whole change, "12.3" a hunk of it. */
static bool parse_picked(const char *name, const char *value, struct cordon_picked *ret_picked)
{
	const char *dot = strchr(value, '.');
	char first[CORDON_DIGITS_SIZE];
	uint64_t change, hunk = 0;
	bool hunks = cordon_streq(name, "hunk");

	if (hunks != (dot != NULL) ||
	    cordon_copy(first, sizeof(first), value, dot ? (size_t)(dot - value) : strlen(value)) < 0 ||
	    cordon_parse_u64(first, 0, UINT32_MAX, &change) < 0 ||
	    (hunks && cordon_parse_u64(dot + 1, 0, UINT32_MAX, &hunk) < 0))
		return false;
	*ret_picked = (struct cordon_picked){ .change = (size_t)change,
					      .hunk = hunks ? (size_t)hunk : CORDON_PICKED_WHOLE };
	return true;
}

static int by_place(const void *a, const void *b)
{
	const struct cordon_picked *x = a, *y = b;

	if (x->change != y->change)
		return x->change < y->change ? -1 : 1;
	return x->hunk < y->hunk ? -1 : x->hunk > y->hunk;
}

static void apply_chosen(struct cordon_page *page, struct cordon_view *view)
{
	autofree struct cordon_picked *picked = calloc(page->form.n + 1, sizeof(*picked));
	struct cordon_apply_request request = { .picked = picked };

	for (size_t i = 0; picked && i < page->form.n; i++) {
		const struct cordon_form_field *field = &page->form.items[i];

		if (!cordon_streq(field->name, "file") && !cordon_streq(field->name, "hunk"))
			continue;
		if (!parse_picked(field->name, field->value, &picked[request.n_picked])) {
			fail_form(page, "The form is not one that this page makes", "load the page again");
			return;
		}
		request.n_picked++;
	}
	if (!request.n_picked) {
		fail_form(page, "Nothing was chosen", "tick the boxes of files or hunks");
		return;
	}
	qsort(picked, request.n_picked, sizeof(*picked), by_place);
	apply(page, view, &request);
}

/* ---- undo, discard, recover ---- */

static void undo(struct cordon_page *page, struct cordon_view *view)
{
	const struct cordon_undo_request request = { .shown = cordon_page_field(page, "shown") };
	autoapply struct cordon_apply_result result = { 0 };
	struct cordon_error err = { 0 };
	int r;

	if (!request.shown) {
		fail_form(page, "The form does not say what was shown", "load the page again");
		return;
	}
	r = cordon_view_undo(view, &request, &result, &err);
	cordon_view_audit(&page->store->home, view, "undo", &result, r < 0 ? &err : NULL);
	cordon_page_audit(page, "changes_undo", *view->record.session ? view->record.session : NULL, view->record.id,
			  r < 0 ? &err : NULL);
	if (r < 0)
		fail(page, &result, &err);
	else
		cordon_page_redirect(page, "undone", "/changes/%s", view->record.id);
}

static void discard(struct cordon_page *page, struct cordon_view *view)
{
	char id[CORDON_ID_SIZE], session[CORDON_ID_SIZE];
	struct cordon_error err = { 0 };
	int r;

	memcpy(id, view->record.id, sizeof(id));
	memcpy(session, view->record.session, sizeof(session));
	r = cordon_view_discard(&page->store->home, view, &err);
	cordon_page_audit(page, "changes_discard", *session ? session : NULL, id, r < 0 ? &err : NULL);
	if (r < 0)
		cordon_page_fail_error(page, &err);
	else
		cordon_page_redirect(page, "discarded", "/changes");
}

static void recover(struct cordon_page *page, struct cordon_view *view)
{
	struct cordon_error err = { 0 };
	size_t ended;
	int r = cordon_view_recover(&page->store->home, &ended, &err);

	cordon_page_audit(page, "changes_recover", NULL, view->record.id, r < 0 ? &err : NULL);
	if (r < 0)
		cordon_page_fail_error(page, &err);
	else
		cordon_page_redirect(page, "recovered", "/changes/%s", view->record.id);
}

void cordon_page_changes_act(struct cordon_page *page)
{
	static const struct {
		const char *action;
		void (*act)(struct cordon_page *page, struct cordon_view *view);
	} acts[] = {
		{ "all", apply_all },	{ "chosen", apply_chosen }, { "undo", undo },
		{ "discard", discard }, { "recover", recover },
	};
	autoview struct cordon_view view = CORDON_VIEW_NONE;

	if (!cordon_page_view_open(page, &view))
		return;
	for (size_t i = 0; !*page->part && i < CORDON_ARRAY_SIZE(acts); i++)
		if (cordon_page_does(page, acts[i].action)) {
			acts[i].act(page, &view);
			return;
		}
	fail_form(page, "The form is not one that this page makes", "load the page again");
}
