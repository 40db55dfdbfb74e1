/* SPDX-License-Identifier: Apache-2.0 */
/* The first page: what waits for a person, what runs now, what was refused last, and how the machine stands. */
#include "agent/job.h"
#include "approval/approval.h"
#include "flow/flow.h"
#include "job/session.h"
#include "loop/control.h"
#include "page/internal.h"
#include "view/view.h"

#define SESSIONS_SHOWN ((size_t)2000)
#define LISTED ((size_t)20) /* of any other kind */
#define REFUSALS_SHOWN 15

static void alert(struct cordon_page *page, const struct cordon_error *err)
{
	cordon_html(&page->html, "<p class=\"alert\">%s</p>", err->message);
}

/* The rest of a list that was cut. */
static void rest(struct cordon_page *page, size_t shown, size_t all, const char *path)
{
	if (shown < all)
		cordon_html(&page->html, "<p><a href=\"%s\">%zu more</a></p>", path, all - shown);
}

/* ---- what waits ---- */

static void approvals_html(struct cordon_page *page, const struct cordon_approvals *approvals)
{
	struct cordon_html *html = &page->html;
	size_t n = approvals->n < LISTED ? approvals->n : LISTED;

	if (!approvals->n)
		return;
	cordon_html(html, "<h3>Approvals</h3><ul>");
	for (size_t i = 0; i < n; i++) {
		const struct cordon_approval_record *record = &approvals->items[i];

		cordon_html(html, "<li><a href=\"/approvals#a-%s\">%s</a> <span class=\"quiet\">asked by %s, ",
			    record->id, record->question ? record->question : record->tool, record->principal);
		cordon_page_time(page, record->created_at);
		cordon_html(html, "</span></li>");
	}
	cordon_html(html, "</ul>");
	rest(page, n, approvals->n, "/approvals");
}

static bool in_state(const json_t *run, const char *state)
{
	return cordon_streq(cordon_json_text(run, "state"), state);
}

static size_t count_in(const json_t *runs, const char *state)
{
	json_t *run;
	size_t i, n = 0;

	json_array_foreach(runs, i, run)
		n += in_state(run, state);
	return n;
}

/* Runs of workflows in one of two states, the newest first. */
static void workflows_html(struct cordon_page *page, const json_t *runs, const char *state, const char *other)
{
	struct cordon_html *html = &page->html;
	size_t all = count_in(runs, state) + (other ? count_in(runs, other) : 0), shown = 0;

	if (!all)
		return;
	cordon_html(html, "<h3>Workflows</h3><ul>");
	for (size_t i = json_array_size(runs); i-- > 0 && shown < LISTED;) {
		const json_t *run = json_array_get(runs, i);
		const char *id = cordon_json_text(run, "runId");

		if (!in_state(run, state) && !(other && in_state(run, other)))
			continue;
		shown++;
		cordon_html(html, "<li><a href=\"/workflow/");
		cordon_html_url(html, id);
		cordon_html(html, "\">%s</a> of %s ", cordon_json_text(run, "workflowId"),
			    cordon_json_text(run, "orchestratorId"));
		cordon_page_state(page, cordon_json_text(run, "state"));
		if (*cordon_json_text(run, "currentStepId"))
			cordon_html(html, " <span class=\"quiet\">at step %s</span>",
				    cordon_json_text(run, "currentStepId"));
		cordon_html(html, "</li>");
	}
	cordon_html(html, "</ul>");
	rest(page, shown, all, "/workflow");
}

static size_t count_ended(const struct cordon_view_list *views)
{
	size_t n = 0;

	for (size_t i = 0; i < views->n; i++)
		n += views->items[i].state == CORDON_VIEW_ENDED;
	return n;
}

static void views_html(struct cordon_page *page, const struct cordon_view_list *views)
{
	struct cordon_html *html = &page->html;
	size_t all = count_ended(views), shown = 0;

	if (!all)
		return;
	cordon_html(html, "<h3>Changes</h3><ul>");
	for (size_t i = views->n; i-- > 0 && shown < LISTED;) {
		const struct cordon_view_record *view = &views->items[i];

		if (view->state != CORDON_VIEW_ENDED)
			continue;
		shown++;
		cordon_html(html, "<li><a href=\"/changes/%s\">Changes in %s</a> by ", view->id, view->root);
		cordon_page_command_short(page, view->command);
		cordon_html(html, " <span class=\"quiet\">");
		cordon_page_time(page, view->created_at);
		cordon_html(html, "</span></li>");
	}
	cordon_html(html, "</ul>");
	rest(page, shown, all, "/changes");
}

static void waiting_section(struct cordon_page *page, const json_t *flows)
{
	const struct cordon_approval_query query = { .waiting = true };
	autoapprovals struct cordon_approvals approvals = { 0 };
	autoviewlist struct cordon_view_list views = { 0 };
	struct cordon_error approvals_err = { 0 }, views_err = { 0 };
	bool no_approvals = cordon_approvals_load(page->store, &query, &approvals, &approvals_err) < 0;
	bool no_views = cordon_view_list(&page->store->home, -1, &views, &views_err) < 0;
	size_t n = approvals.n + count_in(flows, "waiting") + count_ended(&views);

	cordon_html(&page->html, "<section id=\"waiting\" data-said=\"%zu %s for you\"><h2>Waits for you</h2>", n,
		    n == 1 ? "thing waits" : "things wait");
	if (no_approvals)
		alert(page, &approvals_err);
	if (no_views)
		alert(page, &views_err);
	if (!n)
		cordon_page_empty(page, "Nothing waits.");
	approvals_html(page, &approvals);
	workflows_html(page, flows, "waiting", NULL);
	views_html(page, &views);
	cordon_html(&page->html, "</section>");
}

/* ---- what runs ---- */

static size_t sessions_html(struct cordon_page *page)
{
	struct cordon_session_query query = {
		.status = "active", .limit = SESSIONS_SHOWN, .brief = true, .newest_first = true
	};
	json_auto_t *list = NULL;
	struct cordon_error err = { 0 };
	size_t total = 0;

	if (cordon_session_list(page->store, &query, &list, &total, &err) < 0)
		alert(page, &err);
	if (!total)
		return 0;
	cordon_html(&page->html, "<h3>Sessions</h3>");
	cordon_page_session_table(page, list);
	rest(page, json_array_size(list), total, "/sessions");
	return total;
}

/* Crews of agents; those of loops and workflows are shown with these. */
static size_t crews_html(struct cordon_page *page)
{
	autofree struct cordon_page_crew *crews = NULL;
	struct cordon_error err = { 0 };
	size_t n = 0, running = 0;

	if (cordon_page_crews(page, &crews, &n, &err) < 0)
		alert(page, &err);
	for (size_t i = 0; i < n; i++)
		if (crews[i].runs && strncmp(crews[i].info.label, CORDON_AGENT_LABEL, strlen(CORDON_AGENT_LABEL)) == 0)
			crews[running++] = crews[i];
	if (!running)
		return 0;
	cordon_html(&page->html, "<h3>Agent runs</h3>");
	cordon_page_crew_table(page, crews, running < LISTED ? running : LISTED);
	rest(page, LISTED, running, "/runs");
	return running;
}

static size_t loops_html(struct cordon_page *page)
{
	struct cordon_html *html = &page->html;
	json_auto_t *loops = NULL;
	struct cordon_error err = { 0 };
	json_t *loop;
	size_t i, n;

	if (cordon_loop_list(&page->store->home, &loops, &err) < 0)
		alert(page, &err);
	n = count_in(loops, "running");
	if (!n)
		return 0;
	cordon_html(html, "<h3>Loops</h3><ul>");
	json_array_foreach(loops, i, loop) {
		if (in_state(loop, "running"))
			cordon_html(html, "<li><a href=\"/loop/%s\">%s</a> <span class=\"quiet\">%s</span></li>",
				    cordon_json_text(loop, "loop_id"), cordon_json_text(loop, "root"),
				    cordon_json_text(loop, "summary"));
	}
	cordon_html(html, "</ul>");
	return n;
}

static void running_section(struct cordon_page *page, const json_t *flows)
{
	size_t n;

	cordon_html(&page->html, "<section id=\"running\"><h2>What runs now</h2>");
	n = sessions_html(page);
	cordon_page_flush(page);
	n += crews_html(page);
	n += loops_html(page);
	workflows_html(page, flows, "running", "queued");
	n += count_in(flows, "running") + count_in(flows, "queued");
	if (!n)
		cordon_page_empty(page, "Nothing runs.");
	cordon_html(&page->html, "<p><a href=\"/sessions\">Sessions that have ended</a> \u00b7 "
				 "<a href=\"/runs\">Agent runs that have ended</a></p></section>");
}

void cordon_page_home(struct cordon_page *page)
{
	json_auto_t *flows = NULL;
	struct cordon_error err = { 0 };

	cordon_page_begin(page, "Home", "approvals audit crew flow loops sessions views");
	cordon_page_flush(page);
	if (cordon_flow_list(&page->store->home, NULL, &flows, &err) < 0)
		alert(page, &err);
	waiting_section(page, flows);
	cordon_page_flush(page);
	running_section(page, flows);
	cordon_page_flush(page);
	cordon_html(&page->html, "<section id=\"refusals\"><h2>Refused last</h2>");
	cordon_page_refusals(page, &(struct cordon_page_refusals){ .max = REFUSALS_SHOWN });
	cordon_html(&page->html, "</section>");
	if (cordon_page_is_refresh(page))
		return; /* the machine does not change that often */
	cordon_page_flush(page);
	cordon_html(&page->html, "<section id=\"machine\"><h2>This machine</h2>");
	cordon_page_machine(page);
	cordon_html(&page->html, "</section>");
}
