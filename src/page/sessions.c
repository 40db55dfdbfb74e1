/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of sessions: rows for those that run, and a page with all of them. */
#include "page/internal.h"
#include "session/session.h"

#define PAGE_SIZE ((size_t)50)

/* The name of a project, which is read once for all its sessions. */
static const char *project_name(struct cordon_page *page, json_t *names, const char *id)
{
	autoprojectrecord struct cordon_project_record project = { 0 };

	if (!json_object_get(names, id))
		json_object_set_new(names, id,
				    json_string(cordon_project_get(page->store, id, &project, NULL) == 0 ? project.name
													 : id));
	return cordon_page_string(names, id);
}

static void session_row(struct cordon_page *page, const json_t *session, json_t *names)
{
	const char *started = cordon_page_string(session, "started_at");
	struct cordon_html *html = &page->html;

	cordon_html(html, "<tr><td data-label=\"Session\">");
	cordon_page_id(page, "/session/", cordon_page_string(session, "session_id"));
	cordon_html(html, "</td><td data-label=\"State\">");
	cordon_page_state(page, cordon_page_string(session, "state"));
	cordon_html(html, "</td><td data-label=\"Project\">%s</td><td data-label=\"Command\">",
		    project_name(page, names, cordon_page_string(session, "project_id")));
	cordon_page_command_short(page, json_object_get(session, "command"));
	cordon_html(html, "</td><td data-label=\"Started\">");
	cordon_page_time(page, *started ? started : cordon_page_string(session, "created_at"));
	cordon_html(html, "</td></tr>");
}

void cordon_page_session_table(struct cordon_page *page, const json_t *sessions)
{
	json_auto_t *names = json_object();
	json_t *session;
	size_t i;

	cordon_html(&page->html,
		    "<table class=\"stack\"><thead><tr><th scope=\"col\">Session</th><th scope=\"col\">State</th>"
		    "<th scope=\"col\">Project</th><th scope=\"col\">Command</th>"
		    "<th scope=\"col\">Started</th></tr></thead><tbody>");
	json_array_foreach(sessions, i, session)
		session_row(page, session, names);
	cordon_html(&page->html, "</tbody></table>");
}

void cordon_page_sessions(struct cordon_page *page)
{
	struct cordon_session_query query = { .limit = PAGE_SIZE,
					      .offset = cordon_page_offset(page),
					      .newest_first = true };
	json_auto_t *list = NULL;
	struct cordon_error err = { 0 };
	size_t total = 0;

	cordon_page_begin(page, "Sessions", "audit");
	cordon_page_flush(page);
	cordon_html(&page->html, "<section id=\"sessions\" aria-label=\"Sessions\">");
	if (cordon_session_list(page->store, &query, &list, &total, &err) < 0)
		cordon_html(&page->html, "<p class=\"alert\">%s</p>", err.message);
	else if (!json_array_size(list))
		cordon_page_empty(page, total ? "There are no older sessions." : "There are no sessions yet.");
	else
		cordon_page_session_table(page, list);
	cordon_page_pager(page, "/sessions", query.offset, PAGE_SIZE, total);
	cordon_html(&page->html, "</section>");
}
