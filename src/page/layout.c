/* SPDX-License-Identifier: Apache-2.0 */
/* The frame around every page: head, navigation, what was done, and the page about a failure. */
#include <stdio.h>

#include "audit/audit.h"
#include "base/text.h"
#include "job/session.h"
#include "page/internal.h"

/* What an action that has just been done is called. The word stands in the address, so it must not be free text. */
static const struct {
	const char *word, *text;
} done[] = {
	{ "stopped", "The session ends now." },
	{ "approved",
	  "Approved: the call may be made, once. A client that waits goes on now; another has to call again." },
	{ "allowed", "Approved. It is allowed now." },
	{ "allowed-later", "Approved; " CORDON_SESSION_ALLOWED_LATER "." },
	{ "denied", "Denied." },
	{ "applied", "The changes are in the host's tree." },
	{ "applied-commits", "The changes are in the host's tree, and the commits of the run in its repository." },
	{ "undone", "The host's tree is as it was before the last apply." },
	{ "discarded", "The view and its changes are gone." },
	{ "recovered", "Nothing is unfinished any more." },
	{ "step-approved", "The step is approved, and the run goes on." },
	{ "step-rejected", "The step is rejected, and the run goes on from there." },
	{ "run-canceled", "The run is canceled; the agent that ran ends." },
	{ "run-resumed", "The run goes on." },
	{ "loop-stopped", "The loop ends now; its agents get a moment to end." },
	{ "story-retried", "The story has its attempts back and waits for its turn." },
	{ "story-retried-later",
	  "The story has its attempts back. The loop does not run; it goes on when it is started again." },
	{ "granted", "The access is granted, from the next step on." },
	{ "revoked", "The access is revoked, and what holds it ends after its grace time." },
	{ "revoked-kept", "The access is revoked, and what holds it goes on until it ends." },
	{ "session-allowed", "The session has it now." },
	{ "session-allowed-later",
	  "It is allowed from the next start of the session on; what runs now has to end first." },
	{ "allowed-before", "The session had it already." },
	{ "sent", "The line was sent." },
	{ "cancelled", "What was cancelled ends now." },
};

static const char *done_text(const char *word)
{
	for (size_t i = 0; word && i < CORDON_ARRAY_SIZE(done); i++)
		if (cordon_streq(done[i].word, word))
			return done[i].text;
	return NULL;
}

/* The navigation marks the page that is shown, and the list to which a single thing belongs. */
static bool is_here(const char *path, const char *at)
{
	size_t n = strlen(path);

	return cordon_streq(path, at) || (n > 1 && strncmp(path, at, n) == 0 && at[n] == '/');
}

static void navigation(struct cordon_page *page)
{
	cordon_html(&page->html, "<nav aria-label=\"Pages\"><ul>");
	for (const struct cordon_page_route *route = cordon_page_routes; route->path; route++) {
		if (!route->label)
			continue;
		cordon_html(&page->html, "<li><a href=\"%s\" aria-current=\"%s\">%s</a>", route->path,
			    is_here(route->path, page->request->path) ? "page" : "false", route->label);
		if (route->get == cordon_page_approvals)
			cordon_page_waiting(page);
		cordon_html(&page->html, "</li>");
	}
	cordon_html(&page->html, "</ul></nav>");
}

void cordon_page_begin(struct cordon_page *page, const char *title, const char *live)
{
	const char *text = done_text(cordon_page_arg(page, "done"));
	struct cordon_html *html = &page->html;
	bool known = *page->request->token;

	page->framed = true;
	/* A screen reader reads the title of a new page first, so what was done is there, too. */
	cordon_html(html,
		    "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>%s%s%s - cordon</title>"
		    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">"
		    "<link rel=\"icon\" href=\"/page/icon.svg?%s\" type=\"image/svg+xml\">"
		    "<link rel=\"stylesheet\" href=\"/page/style.css?%s\">",
		    text ? text : "", text ? " " : "", title, cordon_page_assets_version(),
		    cordon_page_assets_version());
	if (known)
		cordon_html(html, "<script src=\"/page/script.js?%s\" defer></script>", cordon_page_assets_version());
	/* The navigation of every page has the number of waiting approvals, so this comes first: the number of topics
	 * of a stream is limited. */
	cordon_html(html,
		    "</head><body data-live=\"%s%s\"><a class=\"skip\" href=\"#main\">Skip to the content</a><header>",
		    known && live && !strstr(live, "approvals") ? "approvals " : "", live ? live : "");
	cordon_html(html, "<p class=\"brand\"><a href=\"/\">cordon</a></p>");
	if (known)
		navigation(page);
	cordon_html(html, "</header><main id=\"main\" tabindex=\"-1\"><h1>%s</h1>", title);
	cordon_html(html, "<p id=\"said\" role=\"status\" aria-live=\"polite\">");
	if (text)
		cordon_html(html, "<span class=\"done\">%s</span>", text);
	cordon_html(html, "</p>");
}

void cordon_page_end(struct cordon_page *page)
{
	struct cordon_html *html = &page->html;

	cordon_html(html, "</main><footer><p>cordon %s", cordon_version());
	if (*page->request->token) {
		cordon_html(
			html,
			" \u00b7 <span id=\"live\" class=\"quiet\">not live: load the page again to see changes</span></p>");
		cordon_html(html,
			    "<form method=\"post\" action=\"/logout\"><input type=\"hidden\" name=\"token\" value=\"%s\">"
			    "<button class=\"plain\">Log out</button></form>",
			    page->request->token);
	} else {
		cordon_html(html, "</p>");
	}
	cordon_html(html, "</footer></body></html>\n");
}

void cordon_page_flush(struct cordon_page *page)
{
	const struct cordon_page_request *request = page->request;

	if (!request->send || page->html.failed || !page->html.out.len)
		return;
	page->sent = true;
	request->send(request->data, page->answer, page->html.out.data, page->html.out.len);
	cordon_buf_reset(&page->html.out);
}

void cordon_page_fail(struct cordon_page *page, int status, const struct cordon_error *err)
{
	struct cordon_html *html = &page->html;

	/* Nothing of a page that was begun is shown beside the failure, unless it has left already. */
	if (!page->sent) {
		cordon_buf_reset(&html->out);
		page->answer->status = status;
		page->answer->type = "text/html; charset=utf-8";
		*page->answer->location = *page->answer->file = '\0';
		cordon_page_begin(page,
				  status == 404	  ? "Not found"
				  : status == 401 ? "Not logged in"
						  : "That did not work",
				  NULL);
	}
	cordon_html(html, "<div class=\"alert\" role=\"alert\"><p>%s.</p>", err->message);
	if (*err->where)
		cordon_html(html, "<p><code>%s</code></p>", err->where);
	if (*err->hint)
		cordon_html(html, "<p>What to do: %s.</p>", err->hint);
	cordon_html(html, "</div>");
	if (*page->request->token)
		cordon_html(html, "<p><a href=\"%s\">Back</a></p>",
			    cordon_streq(page->request->method, "POST") ? page->request->path : "/");
}

int cordon_page_status_of(const struct cordon_error *err)
{
	return err->kind == CORDON_KIND_NOT_FOUND				      ? 404
	       : err->kind == CORDON_KIND_USAGE					      ? 400
	       : err->kind == CORDON_KIND_POLICY_DENIED				      ? 403
	       : err->kind == CORDON_KIND_CONFLICT || err->kind == CORDON_KIND_CONFIG ? 409
										      : 500;
}

void cordon_page_fail_error(struct cordon_page *page, const struct cordon_error *err)
{
	cordon_page_fail(page, cordon_page_status_of(err), err);
}

void cordon_page_redirect(struct cordon_page *page, const char *word, const char *path, ...)
{
	char *location = page->answer->location;
	size_t size = sizeof(page->answer->location);
	va_list args;
	int n;

	va_start(args, path);
	n = vsnprintf(location, size, path, args);
	va_end(args);
	if (n > 0 && (size_t)n < size && word)
		snprintf(location + n, size - (size_t)n, "%sdone=%s", strchr(location, '?') ? "&" : "?", word);
	page->answer->status = 303;
	cordon_html(&page->html, "<p><a href=\"%s\">Go on</a></p>", location);
}

/* ---- parts ---- */

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

/* The state is shown by colour and by word. */
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
