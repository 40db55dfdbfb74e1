/* SPDX-License-Identifier: Apache-2.0 */
/* Workflows: runs and definitions, and one run, which can be answered, canceled and resumed. */
#include <stdio.h>

#include "config/settings_file.h"
#include "flow/flow.h"
#include "flow/orchestrator_file.h"
#include "page/internal.h"
#include "page/workflow.h"

#define RUNS_SHOWN 50
#define ORCHESTRATORS_SHOWN 100
#define PATH_SIZE (CORDON_FLOW_RUN_SIZE + 16)
#define TOPICS_MAX 16

/* ---- the list of runs ---- */

static void run_row(struct cordon_page *page, const json_t *run)
{
	struct cordon_html *html = &page->html;
	const char *id = cordon_json_text(run, "runId");

	cordon_html(html, "<tr><td data-label=\"Run\"><a href=\"/workflow/%s\">%s</a></td><td data-label=\"State\">",
		    id, id);
	cordon_page_state(page, cordon_json_text(run, "state"));
	cordon_html(html, "</td><td data-label=\"Workflow\">%s of %s</td><td data-label=\"Now\">%s</td>",
		    cordon_json_text(run, "workflowId"), cordon_json_text(run, "orchestratorId"),
		    cordon_json_text(run, "summary"));
	cordon_html(html, "<td data-label=\"Last change\">");
	cordon_page_time(page, cordon_json_text(run, "updatedAt"));
	cordon_html(html, "</td></tr>");
}

/* The newest runs that have not ended. */
static void topics_of(struct cordon_page *page, const json_t *list, struct cordon_buf *ret_topics)
{
	const json_t *run;
	size_t i, n = 0;

	json_array_foreach(list, i, run) {
		char place[PATH_SIZE];

		if (!*cordon_json_text(run, "currentStepId") || n++ >= TOPICS_MAX)
			continue;
		snprintf(place, sizeof(place), "flow/%.*s", CORDON_FLOW_RUN_SIZE, cordon_json_text(run, "runId"));
		cordon_page_topic(page, place, ret_topics);
	}
}

static void runs(struct cordon_page *page)
{
	const char *before = cordon_page_arg(page, "before");
	autobuf struct cordon_buf topics = CORDON_BUF(TOPICS_MAX * PATH_SIZE);
	struct cordon_html *html = &page->html;
	json_auto_t *list = NULL;
	struct cordon_error err = { 0 };
	bool more = false;
	json_t *run;
	size_t i;
	int r = cordon_flow_latest(&page->store->home, before, RUNS_SHOWN, &list, &more, &err);

	topics_of(page, list, &topics);
	cordon_html(html, "<section id=\"runs\" data-live=\"%s\"><h2>Runs</h2>", topics.data);
	if (r < 0) {
		cordon_html(html, "<p class=\"alert\">%s.</p>", err.message);
	} else if (!json_array_size(list)) {
		cordon_page_empty(page, before ? "There are no older runs." : "No workflow has run yet.");
	} else {
		cordon_html(html,
			    "<table class=\"stack\"><thead><tr><th scope=\"col\">Run</th><th scope=\"col\">State</th>"
			    "<th scope=\"col\">Workflow</th><th scope=\"col\">Now</th>"
			    "<th scope=\"col\">Last change</th></tr></thead><tbody>");
		json_array_foreach(list, i, run)
			run_row(page, run);
		cordon_html(html, "</tbody></table>");
		if (more)
			cordon_html(html, "<p><a href=\"/workflow?before=%s\">Older runs</a></p>",
				    cordon_json_text(json_array_get(list, json_array_size(list) - 1), "runId"));
	}
	if (before)
		cordon_html(html, "<p><a href=\"/workflow\">The newest runs</a></p>");
	cordon_html(html, "</section>");
}

/* ---- definitions ---- */

struct definitions {
	struct cordon_settings_file *settings;
	const struct cordon_orchestrator *orchestrator;
	struct cordon_orchestrator_file *file;
	struct cordon_workflow *workflows;
	size_t n;
	struct cordon_errors errors;
};

static void definitions_done(struct definitions *d)
{
	cordon_orchestrator_file_freep(&d->file);
	cordon_settings_freep(&d->settings);
	cordon_errors_done(&d->errors);
}

static int load(const char *orchestrator, struct definitions *d, struct cordon_error *err)
{
	int r = cordon_flow_definitions(NULL, orchestrator, &d->settings, &d->orchestrator, &d->file, &d->workflows,
					&d->n, &d->errors);

	return r < 0 ? cordon_errors_first(&d->errors, err) : 0;
}

static void definition_rows(struct cordon_page *page, const char *orchestrator)
{
	CORDON_CLEANUP(definitions_done) struct definitions d = { 0 };
	struct cordon_html *html = &page->html;
	struct cordon_error err = { 0 };

	if (load(orchestrator, &d, &err) < 0) {
		cordon_html(html,
			    "<tr><td data-label=\"Workflow\">%s</td><td colspan=\"3\"><p class=\"alert\">%s. "
			    "<code>%s</code></p></td></tr>",
			    orchestrator, err.message, err.where);
		return;
	}
	for (size_t i = 0; i < d.n; i++) {
		cordon_html(html, "<tr><td data-label=\"Workflow\"><a href=\"/workflow/definition?orchestrator=");
		cordon_html_url(html, orchestrator);
		cordon_html(html, "&amp;workflow=");
		cordon_html_url(html, d.workflows[i].id);
		cordon_html(html, "\">%s of %s</a></td><td data-label=\"Version\">%llu</td>", d.workflows[i].id,
			    orchestrator, (unsigned long long)d.workflows[i].version);
		cordon_html(html, "<td data-label=\"Steps\">%zu</td><td data-label=\"Description\">%s</td></tr>",
			    d.workflows[i].n_steps, d.workflows[i].description);
	}
}

static void definitions(struct cordon_page *page)
{
	struct cordon_errors errors CORDON_CLEANUP(cordon_errors_done) = { 0 };
	autosettings struct cordon_settings_file *settings = NULL;
	struct cordon_html *html = &page->html;
	struct cordon_error err = { 0 };

	cordon_html(html, "<section id=\"definitions\"><h2>Definitions</h2>");
	if (cordon_settings_load(NULL, 0, &settings, &errors) < 0 || errors.n) {
		cordon_errors_first(&errors, &err);
		cordon_html(html, "<p class=\"alert\">%s. <code>%s</code></p>", err.message, err.where);
	} else if (!settings->n_orchestrators) {
		cordon_page_empty(page, "There is no orchestrator. 'cordon orchestrator add' makes one.");
	} else {
		cordon_html(html, "<table class=\"stack\"><thead><tr><th scope=\"col\">Workflow</th>"
				  "<th scope=\"col\">Version</th><th scope=\"col\">Steps</th>"
				  "<th scope=\"col\">Description</th></tr></thead><tbody>");
		for (size_t i = 0; i < settings->n_orchestrators && i < ORCHESTRATORS_SHOWN; i++)
			definition_rows(page, settings->orchestrators[i].id);
		cordon_html(html, "</tbody></table>");
		if (settings->n_orchestrators > ORCHESTRATORS_SHOWN)
			cordon_html(html, "<p class=\"quiet\">%zu orchestrators are not shown.</p>",
				    settings->n_orchestrators - ORCHESTRATORS_SHOWN);
	}
	cordon_html(html, "</section>");
}

void cordon_page_workflows(struct cordon_page *page)
{
	cordon_page_begin(page, "Workflows", "flow");
	cordon_page_flush(page);
	runs(page);
	definitions(page);
}

static void definition(struct cordon_page *page)
{
	const char *orchestrator = cordon_page_arg(page, "orchestrator"), *id = cordon_page_arg(page, "workflow");
	CORDON_CLEANUP(definitions_done) struct definitions d = { 0 };
	const struct cordon_workflow *workflow = NULL;
	struct cordon_error err = { 0 };
	char title[2 * CORDON_FLOW_ID_MAX + 32];
	int r = orchestrator && id ? load(orchestrator, &d, &err)
				   : cordon_fail(&err, -ENOENT, CORDON_KIND_NOT_FOUND, "There is nothing here");

	if (r == 0)
		r = cordon_flow_find(d.workflows, d.n, d.orchestrator->id, id, &workflow, &err);
	if (r < 0 || !workflow) {
		cordon_page_fail_error(page, &err);
		return;
	}
	snprintf(title, sizeof(title), "Workflow %.64s of %.64s", workflow->id, d.orchestrator->id);
	cordon_page_begin(page, title, NULL);
	cordon_html(&page->html, "<p>%s</p>", workflow->description);
	cordon_page_flow_graph(page, workflow, NULL);
	cordon_page_flow_steps(page, workflow, NULL, NULL);
}

/* ---- one run ---- */

static void facts(struct cordon_page *page, const json_t *status)
{
	struct cordon_html *html = &page->html;
	const json_t *inputs = json_object_get(status, "inputs");
	json_t *value;
	const char *key;

	cordon_html(html, "<section id=\"summary\" aria-label=\"Summary\" data-said=\"%s\"><dl><dt>State</dt><dd>",
		    cordon_json_text(status, "summary"));
	cordon_page_state(page, cordon_json_text(status, "state"));
	cordon_html(html, "</dd><dt>Now</dt><dd>%s</dd><dt>Run</dt><dd><code>%s</code></dd>",
		    cordon_json_text(status, "summary"), cordon_json_text(status, "runId"));
	cordon_html(html, "<dt>Steps done</dt><dd>%lld</dd><dt>Began</dt><dd>",
		    cordon_json_integer(status, "totalIterations"));
	cordon_page_time(page, cordon_json_text(status, "startedAt"));
	cordon_html(html, "</dd><dt>Last change</dt><dd>");
	cordon_page_time(page, cordon_json_text(status, "updatedAt"));
	cordon_html(html, "</dd><dt>Files of the run</dt><dd><code>%s</code></dd></dl>",
		    cordon_json_text(status, "runWorkspace"));
	if (json_object_size(inputs)) {
		cordon_html(html, "<h2>Inputs</h2><dl>");
		json_object_foreach((json_t *)(uintptr_t)inputs, key, value)
			cordon_html(html, "<dt>%s</dt><dd>%s</dd>", key, json_string_value(value));
		cordon_html(html, "</dl>");
	}
	cordon_html(html, "</section>");
}

/* The step that waits, and the answer. The form has the step that it is about, and how often that was answered
 * before. */
static void question(struct cordon_page *page, const struct cordon_flow_run *run, const json_t *status, const char *path)
{
	const char *id = cordon_json_text(status, "currentStepId");
	size_t at = cordon_workflow_step(run->workflow, id);
	const char *prompt = at == SIZE_MAX ? NULL : run->workflow->steps[at].prompt;
	struct cordon_html *html = &page->html;

	cordon_html(html, "<section id=\"question\" data-said=\"Step %s waits for you\">", id);
	if (cordon_json_true(status, "pendingHumanInput")) {
		cordon_html(html, "<div class=\"warn\"><h2>Step %s waits for your answer</h2>", id);
		if (prompt) {
			cordon_html(html, "<pre tabindex=\"0\" role=\"region\" aria-label=\"What is asked\">");
			cordon_html_output(html, prompt, strlen(prompt));
			cordon_html(html, "</pre>");
		}
		cordon_page_form(page, path, NULL);
		cordon_html(html, "<input type=\"hidden\" name=\"step\" value=\"%s\">", id);
		cordon_html(html, "<input type=\"hidden\" name=\"attempt\" value=\"%lld\">",
			    cordon_json_integer(status, "currentAttempt"));
		cordon_html(html,
			    "<label class=\"wide\">Note for later steps (at most %d bytes)"
			    "<textarea name=\"note\" rows=\"3\" cols=\"60\" maxlength=\"%d\"></textarea></label>",
			    CORDON_FLOW_NOTE_MAX, CORDON_FLOW_NOTE_MAX);
		cordon_html(html, "<button class=\"main\" name=\"action\" value=\"approve\">Approve this step</button>"
				  "<button class=\"danger\" name=\"action\" value=\"reject\">Reject this step</button>"
				  "</form></div>");
	}
	cordon_html(html, "</section>");
}

static void actions(struct cordon_page *page, const json_t *status, const char *path)
{
	struct cordon_html *html = &page->html;
	const char *reason = cordon_json_text(status, "terminalReason");

	cordon_html(html, "<section id=\"actions\" aria-label=\"Actions\">");
	if (cordon_json_is(status, "nextExpectedAction", "resume")) {
		cordon_html(html,
			    "<p class=\"warn\">Its engine was ended before the run was. Steps that have ended are not "
			    "repeated; one that had not ended starts again.</p>");
		cordon_page_button(page, path, "resume", "Resume this run");
	}
	if (*cordon_json_text(status, "currentStepId")) {
		cordon_page_form(page, path, "cancel");
		cordon_html(html,
			    "<label class=\"inline\"><input type=\"checkbox\" name=\"sure\" value=\"yes\" required> "
			    "End it for good, with the agent that runs</label>"
			    "<button class=\"danger\">Cancel this run</button></form>");
	} else if (*reason) {
		cordon_html(html, "<p class=\"reason\">%s</p>", reason);
	}
	cordon_html(html, "</section>");
}

static void whole_run(struct cordon_page *page, const struct cordon_flow_run *run, const json_t *status)
{
	char topics[CORDON_FLOW_RUN_SIZE + 8], title[2 * CORDON_FLOW_ID_MAX + 32], path[PATH_SIZE];

	snprintf(topics, sizeof(topics), "flow/%s", run->id);
	snprintf(path, sizeof(path), "/workflow/%s", run->id);
	snprintf(title, sizeof(title), "Workflow %.64s of %.64s", run->workflow_id, run->orchestrator);
	cordon_page_begin(page, title, topics);
	question(page, run, status, path);
	facts(page, status);
	actions(page, status, path);
	cordon_page_flow_graph(page, run->workflow, status);
	cordon_page_flow_steps(page, run->workflow, status, run->id);
}

void cordon_page_workflow(struct cordon_page *page)
{
	autoflow struct cordon_flow_run run = CORDON_FLOW_RUN_NONE;
	json_auto_t *status = NULL;
	struct cordon_error err = { 0 };
	int r;

	if (cordon_streq(page->id, "definition") && !*page->part) {
		definition(page);
		return;
	}
	r = cordon_flow_run_open(&page->store->home, page->id, &run, &err);
	/* The beginning of an id finds a run, too; an address is the whole one. */
	if (r == 0 && !cordon_streq(run.id, page->id))
		r = cordon_fail(&err, -ENOENT, CORDON_KIND_NOT_FOUND, "there is no run %s", page->id);
	if (r == 0 && *page->part && !cordon_page_flow_part(page))
		r = cordon_fail(&err, -ENOENT, CORDON_KIND_NOT_FOUND, "There is nothing here");
	if (r == 0 && !*page->part)
		r = cordon_flow_status(&page->store->home, run.id, &status, &err);
	if (r < 0)
		cordon_page_fail_error(page, &err);
	else if (status)
		whole_run(page, &run, status);
}

/* ---- actions ---- */

static int answer(struct cordon_page *page, struct cordon_error *err)
{
	const char *note = cordon_page_field(page, "note"), *attempt = cordon_page_field(page, "attempt");
	struct cordon_flow_reply reply = { .approve = cordon_page_does(page, "approve"),
					   .note = note && *note ? note : NULL,
					   .step = cordon_page_field(page, "step") };

	if (!reply.step || !attempt || cordon_parse_u64(attempt, 0, UINT32_MAX, &reply.attempt) < 0)
		return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "The form does not say which step it is about");
	return cordon_flow_answer(&page->store->home, page->id, &reply, err);
}

static int resume(struct cordon_page *page, struct cordon_error *err)
{
	return cordon_flow_resume(&page->store->home, page->id, err);
}

static int cancel(struct cordon_page *page, struct cordon_error *err)
{
	const char *sure = cordon_page_field(page, "sure");

	if (!sure || !cordon_streq(sure, "yes"))
		return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "Tick the box if the run is to end for good");
	return cordon_flow_cancel(&page->store->home, page->id, err);
}

void cordon_page_workflow_act(struct cordon_page *page)
{
	static const struct {
		const char *action, *tool, *done;
		int (*act)(struct cordon_page *page, struct cordon_error *err);
	} known[] = { { "approve", "workflow_answer", "step-approved", answer },
		      { "reject", "workflow_answer", "step-rejected", answer },
		      { "cancel", "workflow_cancel", "run-canceled", cancel },
		      { "resume", "workflow_resume", "run-resumed", resume } };
	struct cordon_error err = { 0 };

	for (size_t i = 0; i < CORDON_ARRAY_SIZE(known); i++) {
		int r;

		if (!cordon_page_does(page, known[i].action))
			continue;
		r = known[i].act(page, &err);
		cordon_page_audit(page, known[i].tool, NULL, page->id, r < 0 ? &err : NULL);
		if (r < 0)
			cordon_page_fail_error(page, &err);
		else
			cordon_page_redirect(page, known[i].done, "/workflow/%s", page->id);
		return;
	}
	cordon_fail(&err, -EINVAL, CORDON_KIND_USAGE, "A run can be answered, canceled or resumed");
	cordon_page_fail_error(page, &err);
}
