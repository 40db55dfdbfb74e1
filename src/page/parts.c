/* SPDX-License-Identifier: Apache-2.0 */
/* Small parts of many pages: forms, times, states, commands; and the audit record of an action. */
#include <stdio.h>

#include "audit/audit.h"
#include "base/text.h"
#include "page/internal.h"

#define SHORT_MAX ((size_t)160) /* bytes of a command in a list */
#define ID_SHOWN 8		/* characters of an id, as the commands show it */

void cordon_page_form(struct cordon_page *page, const char *path, const char *action)
{
	cordon_html(&page->html,
		    "<form method=\"post\" action=\"%s\"><input type=\"hidden\" name=\"token\" value=\"%s\">", path,
		    page->request->token);
	if (action)
		cordon_html(&page->html, "<input type=\"hidden\" name=\"action\" value=\"%s\">", action);
}

void cordon_page_button(struct cordon_page *page, const char *path, const char *action, const char *label)
{
	cordon_page_form(page, path, action);
	cordon_html(&page->html, "<button>%s</button></form>", label);
}

void cordon_page_time(struct cordon_page *page, const char *time)
{
	/* "2026-01-02T03:04:05.678Z" reads as "2026-01-02 03:04:05"; the script turns it into local time. */
	if (!time || strlen(time) < 19)
		return;
	cordon_html(&page->html, "<time datetime=\"%s\">", time);
	cordon_html_text(&page->html, time, 10);
	cordon_html(&page->html, " ");
	cordon_html_text(&page->html, time + 11, 8);
	cordon_html(&page->html, " UTC</time>");
}

void cordon_page_duration(struct cordon_page *page, int64_t ms)
{
	if (ms < 1000)
		cordon_html(&page->html, "%lld ms", (long long)ms);
	else if (ms < 60000)
		cordon_html(&page->html, "%.1f s", (double)ms / 1000);
	else if (ms < 3600000)
		cordon_html(&page->html, "%lld min %lld s", (long long)(ms / 60000), (long long)(ms / 1000 % 60));
	else
		cordon_html(&page->html, "%lld h %lld min", (long long)(ms / 3600000), (long long)(ms / 60000 % 60));
}

/* The colour says how it is, and the word says it too. */
static const char *colour_of(const char *state)
{
	static const struct {
		const char *state, *colour;
	} known[] = {
		{ "active", "busy" },	   { "running", "busy" },  { "starting", "busy" },   { "live", "busy" },
		{ "working", "busy" },	   { "checking", "busy" }, { "completed", "good" },  { "passed", "good" },
		{ "succeeded", "good" },   { "applied", "good" },  { "accepted", "good" },   { "approved", "good" },
		{ "allow", "good" },	   { "failed", "bad" },	   { "timeout", "bad" },     { "lost", "bad" },
		{ "refused", "bad" },	   { "deny", "bad" },	   { "denied", "bad" },	     { "rejected", "bad" },
		{ "parked", "bad" },	   { "waiting", "wait" },  { "ended", "wait" },	     { "warn", "wait" },
		{ "pending", "wait" },	   { "queued", "wait" },   { "cancelled", "quiet" }, { "discarded", "quiet" },
		{ "interrupted", "wait" }, { "finished", "good" }, { "done", "good" },	     { "rw", "good" },
		{ "ok", "good" },	   { "missing", "bad" },   { "protected", "wait" },  { "complete", "good" },
	};

	for (size_t i = 0; state && i < CORDON_ARRAY_SIZE(known); i++)
		if (cordon_streq(known[i].state, state))
			return known[i].colour;
	return "quiet";
}

void cordon_page_state(struct cordon_page *page, const char *state)
{
	cordon_html(&page->html, "<span class=\"state %s\">%s</span>", colour_of(state), state);
}

/* Cuts what is longer than `max` bytes, between characters. */
static void command_html(struct cordon_page *page, const json_t *words, size_t max)
{
	autobuf struct cordon_buf text = CORDON_BUF(max + 1);
	bool cut = false;
	size_t i;
	json_t *word;

	json_array_foreach(words, i, word) {
		const char *at = json_string_value(word);
		size_t n = at ? strlen(at) : 0, room = max - text.len;

		if (i && room && cordon_buf_addc(&text, ' ') == 0)
			room--;
		cut |= n > room;
		n = n > room ? room : n;
		while (cut && n > 0 && ((unsigned char)at[n] & 0xc0) == 0x80)
			n--;
		if (n)
			cordon_buf_add(&text, at, n);
		if (cut)
			break;
	}
	cordon_html(&page->html, "<code>");
	if (text.len)
		cordon_html_text(&page->html, text.data, text.len);
	cordon_html(&page->html, "%s</code>", cut ? "\u2026" : "");
}

void cordon_page_command(struct cordon_page *page, const json_t *words)
{
	command_html(page, words, CORDON_HTML_TEXT_MAX);
}

void cordon_page_command_short(struct cordon_page *page, const json_t *words)
{
	command_html(page, words, SHORT_MAX);
}

void cordon_page_id(struct cordon_page *page, const char *path, const char *id)
{
	cordon_html(&page->html, "<a class=\"id\" href=\"%s", path);
	cordon_html_url(&page->html, id);
	cordon_html(&page->html, "\">");
	cordon_html_text(&page->html, id, strnlen(id, ID_SHOWN));
	cordon_html(&page->html, "</a>");
}

void cordon_page_name_text(struct cordon_page *page, const char *name)
{
	autobuf struct cordon_buf line = CORDON_BUF(page->html.out.max);

	if (cordon_text_escape(&line, name, strlen(name)) < 0)
		page->html.failed = true;
	else
		cordon_html_text(&page->html, line.data, line.len);
}

void cordon_page_name(struct cordon_page *page, const char *name)
{
	cordon_html(&page->html, "<code>");
	cordon_page_name_text(page, name);
	cordon_html(&page->html, "</code>");
}

void cordon_page_empty(struct cordon_page *page, const char *text)
{
	cordon_html(&page->html, "<p class=\"empty\">%s</p>", text);
}

size_t cordon_page_offset(const struct cordon_page *page)
{
	const char *text = cordon_page_arg(page, "offset");
	uint64_t offset;

	return text && cordon_parse_u64(text, 0, CORDON_LIST_MAX, &offset) == 0 ? (size_t)offset : 0;
}

void cordon_page_pager(struct cordon_page *page, const char *path, size_t offset, size_t size, size_t total)
{
	struct cordon_html *html = &page->html;

	if (!offset && total <= size)
		return;
	cordon_html(html, "<nav aria-label=\"More of the list\" class=\"pager\"><ul>");
	if (offset)
		cordon_html(html, "<li><a href=\"%s?offset=%zu\">Newer</a></li>", path,
			    offset > size ? offset - size : 0);
	if (offset < total)
		cordon_html(html, "<li>%zu to %zu of %zu</li>", offset + 1,
			    total - offset < size ? total : offset + size, total);
	if (offset + size < total)
		cordon_html(html, "<li><a href=\"%s?offset=%zu\">Older</a></li>", path, offset + size);
	cordon_html(html, "</ul></nav>");
}

const char *cordon_page_string(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text ? text : "";
}

void cordon_page_audit(struct cordon_page *page, const char *action, const char *session, const char *about,
		       const struct cordon_error *err)
{
	struct cordon_audit_ids ids = { .session_id = session };
	struct cordon_audit *audit = NULL;
	json_auto_t *detail = json_pack("{s:s, s:o*, s:s, s:o*}", "tool", action, "principal",
					cordon_audit_text(page->request->who), "client", "page", "about",
					cordon_audit_text(about));
	struct cordon_audit_event event = {
		.type = CORDON_AUDIT_CALL,
		.success = err ? CORDON_AUDIT_FAILED : CORDON_AUDIT_SUCCEEDED,
		.kind = err ? err->kind : CORDON_KIND_NONE,
		.detail = detail,
	};

	if (cordon_audit_open(&page->store->home, &ids, &audit, NULL) == 0)
		cordon_audit_write(audit, &event, NULL);
	cordon_audit_close(audit);
}
