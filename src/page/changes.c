/* SPDX-License-Identifier: Apache-2.0 */
/* The list of copy-on-write views, with what each of them changes. */
#include "page/changes.h"

#define VIEWS_SHOWN 25
#define COUNTED_MOST 2000 /* changes of a view that the list counts */

void cordon_page_counts(struct cordon_page *page, const struct cordon_changes_counts *counts)
{
	size_t files = counts->added + counts->modified + counts->deleted;

	cordon_html(&page->html, "%zu file%s: %zu added, %zu modified, %zu deleted", files, files == 1 ? "" : "s",
		    counts->added, counts->modified, counts->deleted);
	if (counts->executed)
		cordon_html(&page->html, "; the host would execute %zu of them", counts->executed);
	if (counts->left_out)
		cordon_html(&page->html, "; %zu left out", counts->left_out);
}

/* What a view changes, if it has not too many files to be counted for a list. */
static void write_summary(struct cordon_page *page, const struct cordon_view_record *record)
{
	autoview struct cordon_view view = CORDON_VIEW_NONE;
	autodelta struct cordon_delta delta = CORDON_DELTA_NONE;
	struct cordon_changes_counts counts;
	struct cordon_error err = { 0 };
	bool more = false;

	if (cordon_view_open(&page->store->home, record->id, &view, &err) < 0 ||
	    cordon_delta_find_most(&view, COUNTED_MOST, &delta, &more, &err) < 0) {
		cordon_html(&page->html, "%s", err.message);
		return;
	}
	cordon_changes_count(&delta, &counts);
	if (more)
		cordon_html(&page->html, "more than %d changes", COUNTED_MOST);
	else if (!delta.n && !delta.n_left)
		cordon_html(&page->html, "nothing that the host does not have");
	else
		cordon_page_counts(page, &counts);
}

static void view_row(struct cordon_page *page, const struct cordon_view_record *record)
{
	struct cordon_html *html = &page->html;

	cordon_html(html, "<tr><td class=\"tight\" data-label=\"View\"><a href=\"/changes/%s\">", record->id);
	cordon_html_text(html, record->id, strnlen(record->id, 8));
	cordon_html(html, "</a></td><td data-label=\"State\">");
	cordon_page_state(page, cordon_view_state_name(record->state));
	cordon_html(html, "</td><td class=\"broad\" data-label=\"Changes\">");
	write_summary(page, record);
	cordon_html(html, "</td><td class=\"broad\" data-label=\"Root\">");
	cordon_page_name(page, record->root);
	cordon_html(html, "</td><td data-label=\"Command\">");
	cordon_page_command(page, record->command);
	cordon_html(html, "</td><td class=\"tight\" data-label=\"Begun\">");
	cordon_page_time(page, record->created_at);
	cordon_html(html, "</td></tr>");
}

void cordon_page_changes_list(struct cordon_page *page)
{
	autoviewlist struct cordon_view_list list = { 0 };
	struct cordon_html *html = &page->html;
	struct cordon_error err = { 0 };
	size_t skipped = cordon_page_number(page, "skip"), end;

	cordon_page_begin(page, "Changes", "views audit");
	cordon_page_flush(page);
	cordon_html(html,
		    "<p>What runs changed in copy-on-write views. Nothing of it is in the host's tree before somebody "
		    "applies it.</p><section id=\"views\"><h2>Views</h2>");
	if (cordon_view_list(&page->store->home, -1, &list, &err) < 0) {
		cordon_html(html, "<p class=\"alert\">%s.</p></section>", err.message);
		return;
	}
	end = skipped < list.n ? list.n - skipped : 0;
	if (!end) {
		cordon_page_empty(page, list.n ? "There are no older views." : "There is no view.");
	} else {
		cordon_html(html,
			    "<table class=\"stack\"><thead><tr><th scope=\"col\">View</th><th scope=\"col\">State</th>"
			    "<th scope=\"col\">Changes</th><th scope=\"col\">Root</th><th scope=\"col\">Command</th>"
			    "<th scope=\"col\">Begun</th></tr></thead><tbody>");
		for (size_t i = end; i-- > 0 && end - i <= VIEWS_SHOWN;)
			view_row(page, &list.items[i]);
		cordon_html(html, "</tbody></table>");
	}
	if (end > VIEWS_SHOWN)
		cordon_html(html, "<p><a href=\"/changes?skip=%zu\">Older views</a></p>", skipped + VIEWS_SHOWN);
	cordon_html(html, "</section>");
}
