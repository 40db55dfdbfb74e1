/* SPDX-License-Identifier: Apache-2.0 */
/* The last things that were refused, from the end of the audit log. */
#include "audit/query.h"
#include "base/path.h"
#include "page/internal.h"

#define LOOKED_AT ((uint64_t)16 << 20) /* bytes of the log */

#define REFUSALS                                                                                                       \
	(UINT32_C(1) << CORDON_AUDIT_VIOLATION | UINT32_C(1) << CORDON_AUDIT_REFUSAL |                                 \
	 UINT32_C(1) << CORDON_AUDIT_PROTECTED_LOST | UINT32_C(1) << CORDON_AUDIT_LIMIT)

/* "refused", "warned of", ...: what happened, as one word with its colour. */
static void decision_html(struct cordon_page *page, const json_t *record)
{
	const char *event = cordon_json_text(record, "event"), *decision = cordon_json_text(record, "decision");

	if (*decision)
		cordon_page_state(page, decision);
	else
		cordon_page_state(page, cordon_streq(event, "refusal") ? "deny" : event);
}

static void what_html(struct cordon_page *page, const json_t *record)
{
	const json_t *detail = json_object_get(record, "detail");
	const char *op = cordon_json_text(record, "op"), *path = cordon_json_text(record, "path");
	const char *rule = cordon_json_text(record, "rule"), *message = cordon_json_text(detail, "message");
	const char *would = cordon_json_text(detail, "would_allow"), *reason = cordon_json_text(detail, "reason");
	json_int_t count = cordon_json_integer(detail, "count");
	struct cordon_html *html = &page->html;

	if (*op || *path)
		cordon_html(html, "%s <code>%s</code>", op, path);
	if (*message)
		cordon_html(html, "%s%s", *op || *path ? ": " : "", message);
	if (!*op && !*path && !*message)
		cordon_html(html, "%s", cordon_json_text(record, "event"));
	if (count > 1)
		cordon_html(html, " (%lld times)", (long long)count);
	if (*rule)
		cordon_html(html, " <span class=\"quiet\">by the rule <code>%s</code></span>", rule);
	if (*would)
		cordon_html(html, " <span class=\"quiet\">would be allowed by <code>%s</code></span>", would);
	else if (*reason)
		cordon_html(html, " <span class=\"quiet\">%s</span>", reason);
}

/* A session has a page of its own; of any other run the audit log knows most. */
static void run_html(struct cordon_page *page, const char *id)
{
	autofd int dir = -1;

	if (*id)
		cordon_page_id(page,
			       cordon_session_open(page->store, id, &dir, NULL) == 0 ? "/session/" : "/audit?run=", id);
}

/* What could be allowed: a host, or a path outside of the root. What is protected in the root stays so. */
static void allow_html(struct cordon_page *page, const struct cordon_page_refusals *ask, const json_t *record)
{
	const char *host = cordon_json_text(json_object_get(record, "detail"), "would_allow");
	const char *path = cordon_json_text(record, "path"), *op = cordon_json_text(record, "op");
	bool reads = cordon_streq(op, "read") || cordon_streq(op, "execute");
	struct cordon_html *html = &page->html;

	if (*host) {
		cordon_html(html, " <a href=\"%s?host=", ask->allow);
		cordon_html_url(html, host);
	} else if (*path == '/' && ask->root && !cordon_path_within(path, ask->root)) {
		cordon_html(html, " <a href=\"%s?access=%s&amp;path=", ask->allow, reads ? "read" : "write");
		cordon_html_url(html, path);
	} else {
		return;
	}
	cordon_html(html, "\">Allow it<span class=\"hidden\">: %s</span></a>", *host ? host : path);
}

void cordon_page_refusals(struct cordon_page *page, const struct cordon_page_refusals *ask)
{
	struct cordon_audit_latest latest = { .filter = { .types = REFUSALS, .run = ask->run },
					      .max = ask->max,
					      .bytes = LOOKED_AT };
	struct cordon_html *html = &page->html;
	json_auto_t *records = NULL;
	struct cordon_error err = { 0 };
	json_t *record;
	bool more;
	size_t i;

	if (cordon_audit_latest(&page->store->home, &latest, &records, &more, &err) < 0) {
		cordon_html(html, "<p class=\"alert\">%s</p>", err.message);
		return;
	}
	if (!json_array_size(records)) {
		cordon_page_empty(page, more ? "Nothing was refused recently." : "Nothing was refused.");
		return;
	}
	cordon_html(html, "<table class=\"stack\"><thead><tr><th scope=\"col\">Time</th>");
	if (!ask->run)
		cordon_html(html, "<th scope=\"col\">Run</th>");
	cordon_html(html, "<th scope=\"col\">Decision</th><th scope=\"col\">What</th></tr></thead><tbody>");
	json_array_foreach(records, i, record) {
		cordon_html(html, "<tr><td data-label=\"Time\">");
		cordon_page_time(page, cordon_json_text(record, "time"));
		if (!ask->run) {
			cordon_html(html, "</td><td data-label=\"Run\">");
			run_html(page, cordon_json_text(record, "session_id"));
		}
		cordon_html(html, "</td><td data-label=\"Decision\">");
		decision_html(page, record);
		cordon_html(html, "</td><td data-label=\"What\">");
		what_html(page, record);
		if (ask->allow)
			allow_html(page, ask, record);
		cordon_html(html, "</td></tr>");
	}
	cordon_html(html, "</tbody></table>");
	if (ask->run) {
		cordon_html(html, "<p><a href=\"/audit?run=");
		cordon_html_url(html, ask->run);
		cordon_html(html, "\">All that was recorded about it</a></p>");
	} else {
		cordon_html(html, "<p><a href=\"/audit?event=violation,refusal\">All that was refused</a></p>");
	}
}
