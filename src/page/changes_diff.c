/* SPDX-License-Identifier: Apache-2.0 */
/* The diff of one change: hunks in git's format, with a colour and a sign for each line, and bounded. */
#include <stdio.h>

#include "page/changes.h"

const char *cordon_page_change_word(const struct cordon_delta_change *change)
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

/* One line of a hunk. A sign says the same as the colour. */
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
static void write_facts(struct cordon_page *page, const struct cordon_delta_change *change,
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

bool cordon_page_diff(struct cordon_page *page, const struct cordon_page_view *shown,
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
	write_facts(page, change, &compared);
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
