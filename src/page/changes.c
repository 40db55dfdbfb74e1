/* SPDX-License-Identifier: Apache-2.0 */
/* Copy-on-write views: the list of them, and one with its diffs, what would become of its changes, and the forms to
 * apply, undo and discard it. */
#include <stdio.h>

#include "git/git.h"
#include "page/changes.h"

/* One view while it is shown. */
struct cordon_page_view {
	struct cordon_view view;
	struct cordon_delta delta;
	struct cordon_apply_result judged;
	size_t *places; /* of the changes in the order in which they are shown */
	size_t n;
	bool ready; /* can be applied: its run has ended, and nothing is in the way of all of it */
	/* For each change: the refusal or conflict, or NULL. */
	const struct cordon_apply_item **in_the_way;
};

/* How much of the diffs still fits on the page. */
struct cordon_page_room {
	size_t lines, bytes;
	size_t each_lines, each_bytes; /* of one file */
	size_t file_bytes;	       /* a side of a file that is longer is not read */
};

/* ---- one change ---- */

/* The word for what happens to it: "added", "deleted", ... */
static const char *page_change_word(const struct cordon_delta_change *change)
{
	switch (change->kind) {
	case CORDON_DELTA_ADDED:
		return change->copied && change->fresh ? "moved to here" : "added";
	case CORDON_DELTA_DELETED:
		return "deleted";
	case CORDON_DELTA_MODIFIED:
		return (change->old.mode & S_IFMT) != (change->new.mode &S_IFMT) ? "other type" : "modified";
	case CORDON_DELTA_TOUCHED:
		break;
	}
	return "attributes";
}

/* One line of a hunk. The sign has the same meaning as the colour. */
static void write_line(struct cordon_html *html, const char *line, size_t n)
{
	size_t shown = n < CORDON_HTML_LINE_MAX ? n : CORDON_HTML_LINE_MAX;

	while (shown < n && shown > 0 && ((unsigned char)line[shown] & 0xc0) == 0x80)
		shown--;
	cordon_html(html, "<span class=\"%s\">", n && *line == '+' ? "add" : n && *line == '-' ? "del" : "same");
	cordon_html_text(html, line, shown);
	if (shown < n)
		cordon_html(html, "\u2026 %zu bytes more", n - shown);
	cordon_html(html, "</span>\n");
}

/* What a line takes of the room. */
static bool take(struct cordon_page_room *room, size_t n)
{
	size_t bytes = n < CORDON_HTML_LINE_MAX ? n : CORDON_HTML_LINE_MAX;

	if (!room->lines || room->bytes < bytes)
		return false;
	room->lines--;
	room->bytes -= bytes;
	return true;
}

/* How many lines of a hunk fit; *ret_all is how many it has. The first is the one with the numbers. */
static size_t count_lines(const struct cordon_buf *text, struct cordon_page_room *room, size_t *ret_all)
{
	size_t fit = 0, all = 0;
	bool room_left = true;

	for (size_t at = 0; at < text->len; all++) {
		const char *end = memchr(text->data + at, '\n', text->len - at);
		size_t n = end ? (size_t)(end - (text->data + at)) : text->len - at;

		room_left = room_left && take(room, n);
		fit += room_left;
		at += n + 1;
	}
	*ret_all = all;
	return fit;
}

/* Writes the head of a hunk: with a box if all of it is shown and it can be chosen. */
static void write_head(struct cordon_page *page, size_t change, size_t hunk, size_t hunks, bool boxed, const char *line,
		       size_t n)
{
	struct cordon_html *html = &page->html;

	if (boxed)
		cordon_html(html,
			    "<label class=\"inline hunk\"><input type=\"checkbox\" name=\"hunk\" value=\"%zu.%zu\"> ",
			    change, hunk);
	else
		cordon_html(html, "<p class=\"hunk\">");
	cordon_html(html, "Hunk %zu of %zu <code>", hunk + 1, hunks);
	cordon_html_text(html, line, n);
	cordon_html(html, boxed ? "</code></label>" : "</code></p>");
}

static bool write_hunk(struct cordon_page *page, size_t change, const struct cordon_compared *compared, size_t hunk,
		       bool boxed, struct cordon_page_room *room)
{
	autobuf struct cordon_buf text = CORDON_BUF(CORDON_PATCH_MAX);
	size_t all, fit, line = 0;

	if (cordon_hunk_add(&compared->a, &compared->b, &compared->edits, &compared->hunks[hunk], &text) < 0) {
		page->html.failed = true;
		return false;
	}
	fit = count_lines(&text, room, &all);
	if (fit < 2)
		return false;
	for (size_t at = 0; line < fit; line++) {
		const char *end = memchr(text.data + at, '\n', text.len - at);
		size_t n = end ? (size_t)(end - (text.data + at)) : text.len - at;

		if (line == 0) {
			write_head(page, change, hunk, compared->n, boxed && fit == all, text.data, n);
			cordon_html(&page->html, "<pre class=\"diff\">");
		} else {
			write_line(&page->html, text.data + at, n);
		}
		at += n + 1;
	}
	cordon_html(&page->html, "</pre>");
	return fit == all;
}

/* Facts that no line of the diff has. */
static void write_change_facts(struct cordon_page *page, const struct cordon_delta_change *change,
			       const struct cordon_compared *compared)
{
	struct cordon_html *html = &page->html;
	mode_t old = change->old.mode & 07777, new = change->new.mode & 07777;
	char modes[64];

	if (old && new &&old != new) {
		snprintf(modes, sizeof(modes), "Mode %04o becomes %04o.", old, new);
		cordon_html(html, "<p>%s</p>", modes);
	}
	if (change->set_id)
		cordon_html(html, "<p>Without its set-id or sticky bit, which does not come out of a view.</p>");
	if (S_ISLNK(change->new.mode) || S_ISLNK(change->old.mode))
		cordon_html(html, "<p>%s; the text is its target.</p>",
			    S_ISLNK(change->new.mode) ? "A symbolic link" : "It was a symbolic link");
	if (compared->merged)
		cordon_html(html, "<p>The host changed it, too. Both changes are merged, and this is the result.</p>");
	if (compared->too_large || !compared->text)
		cordon_html(html, "<p>%s: %llu bytes become %llu bytes.</p>",
			    compared->too_large ? "Too large to be shown here" : "Binary",
			    (unsigned long long)change->old.size, (unsigned long long)change->new.size);
	else if (compared->n)
		cordon_html(html, "<p>Lines: %zu added, %zu removed.</p>", compared->added, compared->removed);
	else
		cordon_html(html, compared->old.len || compared->new.len ? "<p>The content stays the same.</p>"
									 : "<p>An empty file.</p>");
}

/* The hunks of one change, those that can be chosen with a box. Returns false when there was no room for all of
 * it, and writes a note about it. */
static bool page_diff(struct cordon_page *page, const struct cordon_page_view *shown,
		      const struct cordon_delta_change *change, struct cordon_page_room *room)
{
	struct cordon_page_room here = { .lines = room->lines < room->each_lines ? room->lines : room->each_lines,
					 .bytes = room->bytes < room->each_bytes ? room->bytes : room->each_bytes };
	const struct cordon_page_room before = here;
	autocompared struct cordon_compared compared = { 0 };
	struct cordon_error err = { 0 };
	size_t place = (size_t)(change - shown->delta.changes), i = 0;
	bool boxed;

	if (cordon_compare(&shown->view, &shown->delta, change, room->file_bytes, &compared, &err) < 0) {
		cordon_html(&page->html, "<p class=\"alert\">%s.</p>", err.message);
		return true;
	}
	write_change_facts(page, change, &compared);
	boxed = shown->ready && cordon_pick_by_hunk(change, &compared);
	while (i < compared.n && write_hunk(page, place, &compared, i, boxed, &here))
		i++;
	room->lines -= before.lines - here.lines;
	room->bytes -= before.bytes - here.bytes;
	if (i < compared.n)
		cordon_html(&page->html, "<p class=\"warn\">Not all of it is shown: %zu of %zu hunks are whole.</p>", i,
			    compared.n);
	return i == compared.n && !compared.too_large;
}

/* ---- the list of views ---- */

#define VIEWS_SHOWN 25
#define COUNTED_MOST 2000 /* changes of a view that the list counts */

/* changes.c: "3 files: 1 added, ...". */
static void page_counts(struct cordon_page *page, const struct cordon_changes_counts *counts)
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
		page_counts(page, &counts);
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

/* ---- one view ---- */

#define FILES_SHOWN 200
#define UNDO_SHOWN 100

/* On the page of a view; a file alone has more. */
static const struct cordon_page_room some_room = {
	.lines = 6000, .bytes = 1 << 20, .each_lines = 500, .each_bytes = 128 << 10, .file_bytes = 2 << 20
};
static const struct cordon_page_room file_room = {
	.lines = 50000, .bytes = 8 << 20, .each_lines = 50000, .each_bytes = 8 << 20, .file_bytes = CORDON_TEXT_BYTES_MAX
};

bool cordon_page_view_open(struct cordon_page *page, struct cordon_view *ret_view)
{
	struct cordon_error err = { 0 };

	if (cordon_view_open(&page->store->home, page->id, ret_view, &err) == 0)
		return true;
	cordon_page_fail(page, 404, &err);
	return false;
}

static void view_done(struct cordon_page_view *shown)
{
	cordon_apply_done(&shown->judged);
	cordon_delta_done(&shown->delta);
	cordon_view_close(&shown->view);
	free(shown->places);
	free(shown->in_the_way);
}

#define autopageview CORDON_CLEANUP(view_done)

/* First what the host would execute, then what goes, then the rest. */
static void put_deletions_first(struct cordon_page_view *shown, size_t *sorted)
{
	size_t at = 0;

	for (int round = 0; round < 3; round++)
		for (size_t i = 0; i < shown->n; i++) {
			const struct cordon_delta_change *change = &shown->delta.changes[shown->places[i]];
			int group = change->who ? 0 : change->kind == CORDON_DELTA_DELETED ? 1 : 2;

			if (group == round)
				sorted[at++] = shown->places[i];
		}
}

/* Finds out what the view changes and what would become of it. */
static int look(struct cordon_page_view *shown, struct cordon_error *ret_not_ready, struct cordon_error *err)
{
	const struct cordon_apply_items *lists[] = { &shown->judged.refused, &shown->judged.conflicts };
	size_t *sorted;
	int r = cordon_view_foresee(&shown->view, &shown->delta, &shown->judged, err);

	if (r < 0)
		return r;
	shown->ready = cordon_view_check_apply(&shown->view, &shown->delta, ret_not_ready) == 0 &&
		       !cordon_view_unfinished(&shown->view);
	/* NOLINTNEXTLINE(bugprone-sizeof-expression): an array of pointers. */
	shown->in_the_way = calloc(shown->delta.n + 1, sizeof(*shown->in_the_way));
	sorted = calloc(shown->delta.n + 1, sizeof(*sorted));
	if (!shown->in_the_way || !sorted ||
	    cordon_changes_order(&shown->delta, NULL, 0, &shown->places, &shown->n) < 0) {
		free(sorted);
		return cordon_fail_errno(err, -ENOMEM, "cannot list the changes");
	}
	put_deletions_first(shown, sorted);
	free(shown->places);
	shown->places = sorted;
	for (size_t k = CORDON_ARRAY_SIZE(lists); k-- > 0;)
		for (size_t i = 0; i < lists[k]->n; i++)
			shown->in_the_way[lists[k]->item[i].change] = &lists[k]->item[i];
	return 0;
}

static void write_facts(struct cordon_page *page, const struct cordon_page_view *shown)
{
	const struct cordon_view_record *record = &shown->view.record;
	struct cordon_html *html = &page->html;
	size_t i;
	json_t *below;

	cordon_html(html, "<section id=\"facts\" data-said=\"The view is %s.\"><h2>The view</h2><dl><dt>State</dt><dd>",
		    cordon_view_state_name(record->state));
	cordon_page_state(page, cordon_view_state_name(record->state));
	if (record->lost)
		cordon_html(html, " its process was killed before it could record its end");
	cordon_html(html, "</dd><dt>Root</dt><dd>");
	cordon_page_name(page, record->root);
	cordon_html(html, "</dd><dt>Command</dt><dd>");
	cordon_page_command(page, record->command);
	cordon_html(html, "</dd><dt>Begun</dt><dd>");
	cordon_page_time(page, record->created_at);
	if (*record->session)
		cordon_html(html, "</dd><dt>Session</dt><dd><a href=\"/session/%s\">%s</a>", record->session,
			    record->session);
	if (*record->run)
		cordon_html(html, "</dd><dt>Run</dt><dd><code>%s</code>", record->run);
	cordon_html(html, "</dd><dt>View</dt><dd><code>%s</code>", record->id);
	json_array_foreach(record->layers, i, below) {
		cordon_html(html, "</dd><dt>Made on top of</dt><dd><a href=\"/changes/%s\">%s</a>",
			    json_string_value(below), json_string_value(below));
	}
	cordon_html(html, "</dd></dl></section>");
}

static void hidden_field(struct cordon_page *page, const char *name, const char *value)
{
	cordon_html(&page->html, "<input type=\"hidden\" name=\"%s\" value=\"%s\">", name, value);
}

/* The button that applies everything. What the host would execute and what goes must have been seen. */
static void write_apply_all(struct cordon_page *page, const struct cordon_page_view *shown, const char *path,
			    const struct cordon_changes_counts *counts)
{
	struct cordon_html *html = &page->html;

	cordon_page_form(page, path, "all");
	hidden_field(page, "shown", shown->judged.shown);
	if (counts->executed || counts->deleted) {
		cordon_html(html,
			    "<label class=\"inline\"><input type=\"checkbox\" name=\"sure\" value=\"yes\" required> I have "
			    "looked at");
		if (counts->executed)
			cordon_html(html, " what the host would execute (%zu)", counts->executed);
		cordon_html(html, counts->executed && counts->deleted ? " and at" : "");
		if (counts->deleted)
			cordon_html(html, " what is deleted (%zu)", counts->deleted);
		cordon_html(html, "</label>");
	}
	cordon_html(html, "<button class=\"main\">Apply all of it to the host's tree</button></form>");
	if (shown->view.record.git == CORDON_VIEW_GIT_COMMIT && cordon_git_changed(shown->view.path))
		cordon_html(html, "<p>The run made commits. They are judged and taken over when all of the view is "
				  "applied, and not with a part of it.</p>");
}

static void write_obstacles(struct cordon_page *page, const struct cordon_apply_items *items, const char *what)
{
	if (!items->n)
		return;
	cordon_html(&page->html, "<h3>%s</h3><ul>", what);
	for (size_t i = 0; i < items->n && i < FILES_SHOWN; i++) {
		cordon_html(&page->html, "<li>");
		cordon_page_name(page, items->item[i].path);
		cordon_html(&page->html, ": %s</li>", items->item[i].why);
	}
	if (items->n > FILES_SHOWN)
		cordon_html(&page->html, "<li>and %zu more</li>", items->n - FILES_SHOWN);
	cordon_html(&page->html, "</ul>");
}

/* The way to the page that asks again. */
static void write_discard(struct cordon_page *page, const struct cordon_page_view *shown, const char *path)
{
	if (shown->view.record.state != CORDON_VIEW_LIVE)
		cordon_html(&page->html,
			    "<p><a class=\"button danger\" href=\"%s/discard\">Discard these changes</a></p>", path);
}

static void write_actions(struct cordon_page *page, const struct cordon_page_view *shown,
			  const struct cordon_error *not_ready, const char *path)
{
	const struct cordon_apply_result *judged = &shown->judged;
	struct cordon_changes_counts counts;
	struct cordon_html *html = &page->html;

	cordon_changes_count(&shown->delta, &counts);
	cordon_html(html, "<section id=\"actions\"><h2>What it changes</h2><p>");
	if (shown->n)
		page_counts(page, &counts);
	else
		cordon_html(html, "Nothing that the host's tree does not have.");
	cordon_html(html, "</p>");
	if (not_ready->code)
		cordon_html(html, "<p class=\"warn\">It can't be applied now: %s.</p>", not_ready->message);
	else if (cordon_view_unfinished(&shown->view)) {
		cordon_html(html, "<p class=\"warn\">An apply or undo of this view was interrupted, or goes on at this "
				  "moment.</p>");
		cordon_page_button(page, path, "recover", "End what was interrupted");
	} else if (judged->refused.n || judged->conflicts.n) {
		cordon_html(html,
			    "<div class=\"warn\"><p>Not all of it can be applied at once. Choose below what is to be "
			    "applied.</p>");
		write_obstacles(page, &judged->refused, "Refused by the policy of the run");
		write_obstacles(page, &judged->conflicts, "Conflicts with what the host has changed");
		cordon_html(html, "</div>");
	} else if (shown->n) {
		write_apply_all(page, shown, path, &counts);
	}
	write_discard(page, shown, path);
	cordon_html(html, "</section>");
}

/* What an undo would take back. */
static void write_undo(struct cordon_page *page, struct cordon_page_view *shown, const char *path)
{
	const struct cordon_undo_request look_only = { .only_judge = true };
	autoapply struct cordon_apply_result undo = { 0 };
	struct cordon_html *html = &page->html;
	struct cordon_error err = { 0 };

	if (shown->view.record.state == CORDON_VIEW_LIVE || cordon_view_unfinished(&shown->view) ||
	    cordon_view_undo(&shown->view, &look_only, &undo, &err) < 0)
		return;
	cordon_html(html, "<section id=\"undo\"><h2>Undo</h2>");
	if (undo.conflicts.n) {
		cordon_html(html, "<div class=\"warn\"><p>What was applied can't be taken back.</p>");
		write_obstacles(page, &undo.conflicts, "The host went on with these");
		cordon_html(html, "</div></section>");
		return;
	}
	cordon_html(html, "<details><summary>The last apply changed %zu path%s</summary><ul>", undo.applied.n,
		    undo.applied.n == 1 ? "" : "s");
	for (size_t i = 0; i < undo.applied.n && i < UNDO_SHOWN; i++) {
		const struct cordon_apply_item *item = &undo.applied.item[i];

		cordon_html(html, "<li>");
		cordon_page_name(page, item->path);
		cordon_html(html, "%s would be %s</li>", item->dir ? "/" : "",
			    item->letter == 'D'	  ? "removed"
			    : item->letter == 'A' ? "there again"
						  : "as it was before");
	}
	if (undo.applied.n > UNDO_SHOWN)
		cordon_html(html, "<li>and %zu more</li>", undo.applied.n - UNDO_SHOWN);
	cordon_html(html, "</ul></details>");
	cordon_page_form(page, path, "undo");
	hidden_field(page, "shown", undo.shown);
	cordon_html(html, "<button>Undo the last apply</button></form></section>");
}

/* ---- its files ---- */

static void write_left_out(struct cordon_page *page, const struct cordon_delta *delta)
{
	if (!delta->n_left)
		return;
	cordon_html(&page->html, "<section id=\"left\"><h2>Left out</h2><p>These never come out of a view.</p><ul>");
	for (size_t i = 0; i < delta->n_left && i < FILES_SHOWN; i++) {
		cordon_html(&page->html, "<li>");
		cordon_page_name(page, delta->left[i].path);
		cordon_html(&page->html, ": %s</li>", delta->left[i].what);
	}
	if (delta->n_left > FILES_SHOWN)
		cordon_html(&page->html, "<li>and %zu more</li>", delta->n_left - FILES_SHOWN);
	cordon_html(&page->html, "</ul></section>");
}

static bool is_dir(const struct cordon_delta_change *change)
{
	return S_ISDIR(change->kind == CORDON_DELTA_DELETED ? change->old.mode : change->new.mode);
}

static void write_notes(struct cordon_page *page, const struct cordon_page_view *shown, size_t place)
{
	const struct cordon_delta_change *change = &shown->delta.changes[place];
	const struct cordon_apply_item *item = shown->in_the_way[place];
	struct cordon_html *html = &page->html;

	if (change->who)
		cordon_html(html, "<strong class=\"state wait\">executed by %s</strong> ", change->who);
	if (item)
		cordon_html(html, "<strong class=\"state bad\">%s</strong> ", item->why);
	else if (change->edited)
		cordon_html(html, "the host changed it, too ");
	if (is_dir(change) && !cordon_pick_asks(&shown->delta, change))
		cordon_html(html, "comes along with what is in it");
}

/* Whether there is a box for a change: not for what is always refused. */
static bool has_box(const struct cordon_page_view *shown, size_t place)
{
	const struct cordon_apply_items *refused = &shown->judged.refused;
	const struct cordon_apply_item *item = shown->in_the_way[place];

	return shown->ready && cordon_pick_asks(&shown->delta, &shown->delta.changes[place]) &&
	       !(item && item >= refused->item && item < refused->item + refused->n);
}

/* One row: a box where a person may choose, and a link to the diff below. */
static void file_row(struct cordon_page *page, const struct cordon_page_view *shown, size_t place)
{
	const struct cordon_delta_change *change = &shown->delta.changes[place];
	struct cordon_html *html = &page->html;

	cordon_html(html, "<tr><td>");
	if (has_box(shown, place)) {
		cordon_html(html, "<input type=\"checkbox\" name=\"file\" value=\"%zu\" aria-label=\"Choose ", place);
		cordon_page_name_text(page, change->path);
		cordon_html(html, "\">");
	}
	cordon_html(html, "</td><td data-label=\"File\">");
	if (!is_dir(change))
		cordon_html(html, "<a href=\"#diff-%zu\">", place);
	cordon_page_name(page, change->path);
	cordon_html(html, is_dir(change) ? "/" : "</a>");
	cordon_html(html,
		    "</td><td data-label=\"Change\"><span class=\"state %s\">%s</span></td><td data-label=\"Notes\">",
		    change->kind == CORDON_DELTA_DELETED ? "bad"
		    : change->kind == CORDON_DELTA_ADDED ? "good"
							 : "quiet",
		    page_change_word(change));
	write_notes(page, shown, place);
	cordon_html(html, "</td></tr>");
}

static const char *group_of(const struct cordon_delta_change *change)
{
	return change->who			      ? "What the host would execute"
	       : change->kind == CORDON_DELTA_DELETED ? "What is deleted"
						      : "Other changes";
}

static void write_table(struct cordon_page *page, const struct cordon_page_view *shown, size_t from, size_t to)
{
	const char *group = NULL;

	cordon_html(&page->html,
		    "<table class=\"stack files\"><thead><tr><th scope=\"col\">Choose</th><th scope=\"col\">File"
		    "</th><th scope=\"col\">Change</th><th scope=\"col\">Notes</th></tr></thead>");
	for (size_t i = from; i < to; i++) {
		const char *next = group_of(&shown->delta.changes[shown->places[i]]);

		if (group && !cordon_streq(group, next))
			cordon_html(&page->html, "</tbody>");
		if (!group || !cordon_streq(group, next))
			cordon_html(&page->html, "<tbody><tr><th colspan=\"4\" scope=\"rowgroup\">%s</th></tr>", next);
		group = next;
		file_row(page, shown, shown->places[i]);
	}
	cordon_html(&page->html, "</tbody></table>");
}

/* The diff of one change below its heading. */
static void write_diff(struct cordon_page *page, const struct cordon_page_view *shown, size_t place, const char *path,
		       struct cordon_page_room *room, bool alone)
{
	const struct cordon_delta_change *change = &shown->delta.changes[place];
	struct cordon_html *html = &page->html;
	bool whole = false;

	if (is_dir(change))
		return;
	cordon_html(html, "<div class=\"file\" id=\"diff-%zu\"><h3>", place);
	cordon_page_name(page, change->path);
	cordon_html(html, "</h3>");
	if (change->who)
		cordon_html(html, "<p class=\"warn\">The host would execute this file: %s.</p>", change->who);
	if (room->lines && room->bytes)
		whole = page_diff(page, shown, change, room);
	if (!whole && !alone)
		cordon_html(html, "<p><a href=\"%s/file?n=%zu\">Show more of this file</a></p>", path, place);
	cordon_html(html, "</div>");
}

/* The form in which files and hunks are chosen. */
static void write_files(struct cordon_page *page, const struct cordon_page_view *shown, size_t from, size_t to,
			const char *path, struct cordon_page_room *room)
{
	struct cordon_html *html = &page->html;
	bool alone = to - from == 1 && *page->part;

	cordon_html(html, "<section id=\"files\"><h2>Files</h2>");
	if (shown->ready) {
		cordon_page_form(page, path, "chosen");
		hidden_field(page, "shown", shown->judged.shown);
	}
	cordon_html(html, "<div class=\"wide\">");
	write_table(page, shown, from, to);
	if (from)
		cordon_html(html, "<p><a href=\"%s?skip=%zu\">Files before these</a></p>", path,
			    from > FILES_SHOWN ? from - FILES_SHOWN : 0);
	if (to < shown->n && !alone)
		cordon_html(html, "<p><a href=\"%s?skip=%zu\">The next of %zu files</a></p>", path, to, shown->n);
	for (size_t i = from; i < to; i++) {
		write_diff(page, shown, shown->places[i], path, room, alone);
		cordon_page_flush(page);
	}
	cordon_html(html, "</div>");
	if (shown->ready)
		cordon_html(
			html,
			"<p class=\"sticky\"><button class=\"main\">Apply the chosen files and hunks</button></p></form>");
	cordon_html(html, "</section>");
}

/* ---- the pages ---- */

/* Which files this page is about. Returns false when there is no such file. */
static bool find_range(const struct cordon_page *page, const struct cordon_page_view *shown, size_t *ret_from,
		       size_t *ret_to)
{
	size_t from = cordon_page_number(page, "skip"), wanted = cordon_page_number(page, "n");

	if (!*page->part) {
		*ret_from = from < shown->n ? from : 0;
		*ret_to = shown->n - *ret_from > FILES_SHOWN ? *ret_from + FILES_SHOWN : shown->n;
		return true;
	}
	for (size_t i = 0; i < shown->n; i++)
		if (shown->places[i] == wanted) {
			*ret_from = i;
			*ret_to = i + 1;
			return true;
		}
	return false;
}

static void show(struct cordon_page *page, struct cordon_page_view *shown, const char *path)
{
	struct cordon_page_room room = *page->part ? file_room : some_room;
	struct cordon_error not_ready = { 0 }, err = { 0 };
	size_t from, to;

	write_facts(page, shown);
	cordon_page_flush(page);
	if (look(shown, &not_ready, &err) < 0) {
		/* For example, its root was removed. It can still be discarded. */
		cordon_html(&page->html, "<section id=\"actions\"><h2>What it changes</h2><p class=\"alert\">%s.</p>",
			    err.message);
		write_discard(page, shown, path);
		cordon_html(&page->html, "</section>");
		return;
	}
	if (*page->part)
		cordon_html(&page->html, "<p><a href=\"%s\">All of the view</a></p>", path);
	if (!find_range(page, shown, &from, &to)) {
		cordon_html(&page->html, "<p class=\"alert\">The view has no such change any more.</p>");
		return;
	}
	if (!*page->part) {
		write_actions(page, shown, &not_ready, path);
		write_undo(page, shown, path);
		write_left_out(page, &shown->delta);
	}
	if (to > from)
		write_files(page, shown, from, to, path, &room);
	if (shown->n)
		cordon_html(&page->html, "<p><a href=\"%s/patch\">All of it as a patch for git</a></p>", path);
}

/* Asks again before a view is discarded. */
static void ask_discard(struct cordon_page *page, const struct cordon_page_view *shown, const char *path)
{
	struct cordon_html *html = &page->html;

	write_facts(page, shown);
	cordon_html(html,
		    "<section id=\"discard\"><h2>Discard it?</h2><p>The view is removed with all of its changes, and "
		    "nobody can bring them back. What was applied stays in the host's tree, and can't be undone any "
		    "more.</p>");
	cordon_page_form(page, path, "discard");
	cordon_html(html,
		    "<button class=\"danger\">Discard these changes</button></form><p><a href=\"%s\">Keep them</a></p>"
		    "</section>",
		    path);
}

/* The same bytes as `cordon changes diff` prints into a file. */
static int add_patches(struct cordon_page_view *shown, struct cordon_buf *text, struct cordon_error *err)
{
	int r = cordon_delta_find(&shown->view, &shown->delta, err);

	if (r == 0 && cordon_changes_order(&shown->delta, NULL, 0, &shown->places, &shown->n) < 0)
		r = cordon_fail_errno(err, -ENOMEM, "cannot list the changes");
	for (size_t i = 0; r == 0 && i < shown->delta.n_left; i++)
		r = cordon_patch_left(&shown->delta.left[i], text);
	for (size_t i = 0; r == 0 && i < shown->n; i++)
		r = cordon_patch_add(&shown->delta, &shown->delta.changes[shown->places[i]], text, err);
	if (r == -E2BIG) {
		cordon_fail(err, r, CORDON_KIND_LIMIT, "the patch is longer than %zu MiB", CORDON_PAGE_SIZE_MAX >> 20);
		cordon_error_hint(err, "'cordon changes diff %.8s' has no such bound", shown->view.record.id);
	}
	return r;
}

static void download(struct cordon_page *page, struct cordon_page_view *shown)
{
	struct cordon_error err = { 0 };

	if (add_patches(shown, &page->html.out, &err) < 0) {
		cordon_page_fail_error(page, &err);
		return;
	}
	page->answer->type = "text/x-diff";
	snprintf(page->answer->file, sizeof(page->answer->file), "changes-%.8s.patch", shown->view.record.id);
}

void cordon_page_changes(struct cordon_page *page)
{
	autopageview struct cordon_page_view shown = { .view = CORDON_VIEW_NONE, .delta = CORDON_DELTA_NONE };
	char path[CORDON_ID_SIZE + 16], title[64], live[CORDON_ID_SIZE + 8];
	const char *part = page->part;

	if (*part && !cordon_streq(part, "file") && !cordon_streq(part, "discard") && !cordon_streq(part, "patch")) {
		struct cordon_error err = { 0 };

		cordon_fail(&err, -ENOENT, CORDON_KIND_NOT_FOUND, "There is nothing here");
		cordon_page_fail(page, 404, &err);
		return;
	}
	if (!cordon_page_view_open(page, &shown.view))
		return;
	if (cordon_streq(part, "patch")) {
		download(page, &shown);
		return;
	}
	snprintf(path, sizeof(path), "/changes/%s", shown.view.record.id);
	snprintf(title, sizeof(title), "Changes of view %.8s", shown.view.record.id);
	snprintf(live, sizeof(live), "views/%s", shown.view.record.id);
	cordon_page_begin(page, title, live);
	if (cordon_streq(part, "discard"))
		ask_discard(page, &shown, path);
	else
		show(page, &shown, path);
}
