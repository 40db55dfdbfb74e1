/* SPDX-License-Identifier: Apache-2.0 */
/* The first page: what runs now, what waits for a person, what was refused last. */
#include "page/internal.h"
#include "session/session.h"

#define SESSIONS_SHOWN 1000

static void session_row(struct cordon_page *page, const json_t *session)
{
	const char *id = cordon_page_string(session, "session_id");

	cordon_html(&page->html, "<tr><td data-label=\"Session\"><a href=\"/session/%s\">", id);
	cordon_html_text(&page->html, id, strnlen(id, 8));
	cordon_html(&page->html, "</a></td><td data-label=\"State\">");
	cordon_page_state(page, cordon_page_string(session, "state"));
	cordon_html(&page->html, "</td><td data-label=\"Command\">");
	cordon_page_command(page, json_object_get(session, "command"));
	cordon_html(&page->html, "</td><td data-label=\"Since\">");
	cordon_page_time(page, cordon_page_string(session, "started_at"));
	cordon_html(&page->html, "</td></tr>");
}

static void sessions(struct cordon_page *page)
{
	struct cordon_session_query query = { .status = "active", .limit = SESSIONS_SHOWN };
	json_auto_t *list = NULL;
	struct cordon_error err = { 0 };
	json_t *session;
	size_t i, total = 0;

	cordon_html(&page->html, "<section id=\"sessions\"><h2>Sessions that run</h2>");
	if (cordon_session_list(page->store, &query, &list, &total, &err) < 0)
		cordon_html(&page->html, "<p class=\"alert\">%s</p>", err.message);
	else if (!total)
		cordon_page_empty(page, "No session runs.");
	else {
		cordon_html(&page->html,
			    "<table class=\"stack\"><thead><tr><th>Session</th><th>State</th><th>Command</th>"
			    "<th>Since</th></tr></thead><tbody>");
		json_array_foreach(list, i, session) {
			session_row(page, session);
		}
		cordon_html(&page->html, "</tbody></table>");
	}
	cordon_html(&page->html, "</section>");
}

void cordon_page_home(struct cordon_page *page)
{
	cordon_page_begin(page, "What runs now", "audit approvals views");
	cordon_page_flush(page);
	sessions(page);
}
