/* SPDX-License-Identifier: Apache-2.0 */
/* Approvals: what waits for a person, the answer, and what was answered. */
#include "job/session.h"
#include "page/internal.h"

#define ANSWERED_SHOWN 50

/* ---- how many wait, on every page ---- */

void cordon_page_waiting(struct cordon_page *page)
{
	struct cordon_html *html = &page->html;
	bool more = false;
	size_t n = cordon_approvals_waiting(page->store, &more);

	/* An empty one is there, too, so that the script finds the place. */
	if (!n && !more) {
		cordon_html(html,
			    "<span id=\"count\" class=\"live\" data-said=\"No question waits for an answer.\"></span>");
		return;
	}
	cordon_html(html,
		    "<span id=\"count\" class=\"live state wait\" data-said=\"%zu%s question%s for an answer.\">%zu%s waiting</span>",
		    n, more ? " or more" : "", n == 1 && !more ? " waits" : "s wait", n, more ? "+" : "");
}

/* ---- the questions ---- */

/* Text of any length: nothing of what a person decides about is cut. */
static void write_long(struct cordon_page *page, const char *class, const char *text)
{
	cordon_html(&page->html, "<p class=\"%s\">", class);
	cordon_html_text(&page->html, text, strlen(text));
	cordon_html(&page->html, "</p>");
}

static void write_id(struct cordon_page *page, const char *id)
{
	cordon_html_text(&page->html, id, strnlen(id, CORDON_APPROVAL_SHORT));
}

static void write_facts(struct cordon_page *page, const struct cordon_approval_record *record)
{
	struct cordon_html *html = &page->html;

	cordon_html(html, "<dl><dt>Asked by</dt><dd><code>%s</code>", record->principal);
	if (record->client)
		cordon_html(html, "</dd><dt>Client</dt><dd>%s", record->client);
	if (*record->session_id)
		cordon_html(html, "</dd><dt>Session</dt><dd><a href=\"/session/%s\">%s</a>", record->session_id,
			    record->session_id);
	if (*record->project_id)
		cordon_html(html, "</dd><dt>Project</dt><dd><code>%s</code>", record->project_id);
	cordon_html(html, "</dd><dt>Asked at</dt><dd>");
	cordon_page_time(page, record->created_at);
	cordon_html(html, "</dd><dt>Expires at</dt><dd>");
	cordon_page_time(page, record->expires_at);
	cordon_html(html, "</dd></dl>");
}

static void write_choice(struct cordon_page *page, const char *value, const char *label)
{
	cordon_html(&page->html,
		    "<label class=\"inline\"><input type=\"radio\" name=\"answer\" value=\"%s\" required> %s</label>",
		    value, label);
}

/*
 * Nothing is chosen before the person chooses, and the button belongs to one question. So when questions come and go
 * while somebody aims at a button, the answer is still about the question that has the mark; and the script leaves a
 * list alone in which something is chosen.
 */
static void write_form(struct cordon_page *page, const struct cordon_approval_record *record)
{
	struct cordon_html *html = &page->html;

	cordon_page_form(page, "/approvals", NULL);
	cordon_html(html,
		    "<input type=\"hidden\" name=\"id\" value=\"%s\"><fieldset class=\"choices\"><legend>Your answer to ",
		    record->id);
	write_id(page, record->id);
	cordon_html(html, "</legend>");
	write_choice(page, "once", record->grant ? "Approve for one run of the session" : "Approve this call, once");
	if (cordon_approval_offers(record, CORDON_APPROVAL_SESSION))
		write_choice(page, "session", "Approve for this session, also when it is resumed");
	if (cordon_approval_offers(record, CORDON_APPROVAL_POLICY))
		write_choice(page, "policy", "Approve, and write it into the settings of the project");
	write_choice(page, "deny", "Deny");
	cordon_html(html, "</fieldset><button class=\"main\">Answer</button></form>");
}

static void write_waiting(struct cordon_page *page, const struct cordon_approvals *approvals)
{
	struct cordon_html *html = &page->html;

	cordon_html(html, "<section id=\"waiting\"><h2>What waits for an answer</h2>");
	if (!approvals->waiting)
		cordon_page_empty(page, "Nothing waits for a person.");
	for (size_t i = 0; i < approvals->n; i++) {
		const struct cordon_approval_record *record = &approvals->items[i];

		if (record->state != CORDON_APPROVAL_WAITING)
			continue;
		cordon_html(html, "<article class=\"card\" id=\"a-%s\"><h3><code>%s</code> ", record->id, record->tool);
		write_id(page, record->id);
		cordon_html(html, "</h3>");
		write_long(page, "question", record->question);
		if (record->widens) {
			cordon_html(html, "<div class=\"warn\"><strong>What it would widen</strong>");
			write_long(page, "question", record->widens);
			cordon_html(html, "</div>");
		}
		write_facts(page, record);
		write_form(page, record);
		cordon_html(html, "</article>");
	}
	cordon_html(html, "</section>");
}

static void answered_row(struct cordon_page *page, const struct cordon_approval_record *record)
{
	struct cordon_html *html = &page->html;

	cordon_html(html, "<tr><td class=\"tight\" data-label=\"Approval\"><code>");
	write_id(page, record->id);
	cordon_html(html, "</code></td><td data-label=\"State\">");
	cordon_page_state(page, cordon_approval_state_name(record->state));
	cordon_html(html,
		    "</td><td class=\"broad\" data-label=\"Question\">%s</td><td data-label=\"Asked by\"><code>%s</code></td>",
		    record->question, record->principal);
	cordon_html(html, "<td data-label=\"Answered by\">");
	if (record->answered_by)
		cordon_html(html, "%s (%s)", record->answered_by, cordon_approval_way_name(record->answered_on));
	cordon_html(html, "</td><td class=\"tight\" data-label=\"For\">%s</td><td data-label=\"At\">",
		    *record->answered_at && record->state != CORDON_APPROVAL_DENIED
			    ? cordon_approval_span_name(record->span)
			    : "");
	cordon_page_time(page, *record->answered_at ? record->answered_at : record->expires_at);
	cordon_html(html, "</td></tr>");
}

/* The newest first. */
static void write_answered(struct cordon_page *page, const struct cordon_approvals *approvals)
{
	size_t skipped = cordon_page_number(page, "skip"), seen = 0, i = approvals->n;
	struct cordon_html *html = &page->html;

	cordon_html(html, "<section id=\"answered\"><h2>What was answered, or has expired</h2>");
	if (approvals->n - approvals->waiting <= skipped) {
		cordon_page_empty(page, skipped ? "There is nothing older." : "Nothing was answered in the last days.");
		cordon_html(html, "</section>");
		return;
	}
	cordon_html(html,
		    "<table class=\"stack\"><thead><tr><th scope=\"col\">Approval</th><th scope=\"col\">State</th>"
		    "<th scope=\"col\">Question</th><th scope=\"col\">Asked by</th><th scope=\"col\">Answered by</th>"
		    "<th scope=\"col\">For</th><th scope=\"col\">At</th></tr></thead><tbody>");
	while (i-- > 0 && seen < skipped + ANSWERED_SHOWN)
		if (approvals->items[i].state != CORDON_APPROVAL_WAITING && ++seen > skipped)
			answered_row(page, &approvals->items[i]);
	cordon_html(html, "</tbody></table>");
	if (approvals->n - approvals->waiting > skipped + ANSWERED_SHOWN)
		cordon_html(html, "<p><a href=\"/approvals?skip=%zu\">Older ones</a></p>", skipped + ANSWERED_SHOWN);
	cordon_html(html, "</section>");
}

void cordon_page_approvals(struct cordon_page *page)
{
	autoapprovals struct cordon_approvals approvals = { 0 };
	struct cordon_error err = { 0 };

	cordon_page_begin(page, "Approvals", "approvals");
	cordon_page_flush(page);
	if (cordon_approvals_load(page->store, NULL, &approvals, &err) < 0) {
		cordon_html(&page->html, "<p class=\"alert\">%s.</p>", err.message);
		return;
	}
	write_waiting(page, &approvals);
	write_answered(page, &approvals);
}

/* ---- the answer ---- */

void cordon_page_approvals_act(struct cordon_page *page)
{
	const char *id = cordon_page_field(page, "id"), *text = cordon_page_field(page, "answer");
	struct cordon_approval_answer answer = { .on = CORDON_APPROVAL_BY_PAGE, .by = page->request->who };
	autoapproval struct cordon_approval_record record = { 0 };
	struct cordon_session_allowed allowed = { 0 };
	struct cordon_error err = { 0 };
	int r = 0;

	answer.approve = text && !cordon_streq(text, "deny");
	if (!id || !text)
		r = cordon_fail(&err, -EINVAL, CORDON_KIND_USAGE, "Choose an answer first");
	if (r == 0 && answer.approve)
		r = cordon_approval_span_parse(text, &answer.span, &err);
	if (r == 0)
		r = cordon_session_decide(page->store, id, &answer, &record, &allowed, &err);
	if (r == 0 || err.kind != CORDON_KIND_USAGE)
		cordon_page_audit(page, "approval_answer", *record.session_id ? record.session_id : NULL, id,
				  r < 0 ? &err : NULL);
	if (r < 0)
		cordon_page_fail_error(page, &err);
	else
		cordon_page_redirect(page,
				     !answer.approve ? "denied"
				     : !record.grant ? "approved"
				     : allowed.now   ? "allowed"
						     : "allowed-later",
				     "/approvals");
}
