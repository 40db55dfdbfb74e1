/* SPDX-License-Identifier: Apache-2.0 */
/* Workflows: runs and definitions, and one run, which can be answered, canceled and resumed. */
#include <stdio.h>

#include "config/settings_file.h"
#include "flow/drawing.h"
#include "flow/flow.h"
#include "flow/orchestrator_file.h"
#include "page/internal.h"

/* ---- steps ---- */

#define OUTPUT_SHOWN ((size_t)16 << 10) /* bytes of one output */
#define OUTPUTS_SHOWN ((size_t)1 << 20) /* of all on a page */
#define OUTPUT_OPEN 2000		/* what is no longer is shown without a click */
#define ATTEMPTS_SHOWN 10

/* ---- the picture ---- */

static void box(struct cordon_page *page, const struct cordon_flow_box *box)
{
	struct cordon_html *html = &page->html;
	const struct cordon_flow_step *step = box->step;
	int middle = box->x + box->width / 2;

	cordon_html(html, "<g class=\"box %s\"><rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"%d\"/>",
		    *box->state ? box->state : "none", box->x, box->y, box->width, box->height,
		    step ? 8 : box->height / 2);
	cordon_html(html, "<text x=\"%d\" y=\"%d\" class=\"name\">%s</text>", middle, box->y + (step ? 24 : 19),
		    step ? step->id : "end");
	if (step) {
		cordon_html(html, "<text x=\"%d\" y=\"%d\">%s%s%s%s%s", middle, box->y + 43,
			    cordon_flow_type_name(step->type), step->agent ? " by " : "", step->agent,
			    *box->state ? ", " : "", box->state);
		if (box->attempts > 1)
			cordon_html(html, " (%lld)", (long long)box->attempts);
		cordon_html(html, "</text>");
	}
	cordon_html(html, "</g>");
}

static void way(struct cordon_page *page, const struct cordon_flow_way *way)
{
	struct cordon_html *html = &page->html;

	cordon_html(html, "<polyline marker-end=\"url(#tip)\" points=\"");
	for (size_t i = 0; i < way->n_points; i++)
		cordon_html(html, "%s%d,%d", i ? " " : "", way->points[i].x, way->points[i].y);
	cordon_html(html, "\"/><text class=\"%s\" x=\"%d\" y=\"%d\">%s</text>", way->text_ends ? "ends" : "begins",
		    way->text.x, way->text.y, way->label);
}

/* The picture. `status` is what cordon_flow_status() returned, or NULL. */
static void page_flow_graph(struct cordon_page *page, const struct cordon_workflow *workflow, const json_t *status)
{
	struct cordon_html *html = &page->html;
	struct cordon_flow_drawing drawing;

	cordon_flow_draw(workflow, status, &drawing);
	cordon_html(html,
		    "<section id=\"graph\"><h2>Picture</h2><svg class=\"graph\" viewBox=\"0 40 %d %d\" width=\"%d\" "
		    "height=\"%d\" role=\"img\" aria-labelledby=\"graph-title graph-text\">",
		    drawing.width, drawing.height - 50, drawing.width, drawing.height - 50);
	cordon_html(html,
		    "<title id=\"graph-title\">The steps of %s</title><desc id=\"graph-text\">The list of steps below "
		    "has the same facts.</desc>",
		    workflow->id);
	cordon_html(html, "<defs><marker id=\"tip\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"8\" "
			  "markerHeight=\"8\" orient=\"auto\"><path d=\"M 0 0 L 8 4 L 0 8 z\"/></marker></defs>");
	for (size_t i = 0; i < drawing.n_ways; i++)
		way(page, &drawing.ways[i]);
	for (size_t i = 0; i < drawing.n_boxes; i++)
		box(page, &drawing.boxes[i]);
	cordon_html(html, "</svg></section>");
}

/* ---- the list ---- */

/* One output as text: at most as much of it as the page still has room for. */
static void output(struct cordon_page *page, const char *key, const json_t *value, size_t *room)
{
	autofree char *dumped = json_is_string(value) ? NULL : json_dumps(value, JSON_INDENT(2) | JSON_ENCODE_ANY);
	const char *text = json_is_string(value) ? json_string_value(value) : dumped ? dumped : "";
	size_t n = json_is_string(value) ? json_string_length(value) : strlen(text);
	size_t shown = n < OUTPUT_SHOWN ? n : OUTPUT_SHOWN;

	shown = shown < *room ? shown : *room;
	*room -= shown;
	cordon_html(&page->html, n <= OUTPUT_OPEN ? "<details open>" : "<details>");
	cordon_html(&page->html,
		    "<summary>%s (%zu bytes)</summary><pre tabindex=\"0\" role=\"region\" aria-label=\"Output %s\">",
		    key, n, key);
	cordon_html_output(&page->html, text, shown);
	cordon_html(&page->html, "</pre>");
	if (shown < n)
		cordon_html(&page->html,
			    "<p class=\"quiet\">%zu bytes more; 'cordon workflow progress' has all of it.</p>",
			    n - shown);
	cordon_html(&page->html, "</details>");
}

static const json_t *state_of(const json_t *status, const char *id)
{
	const json_t *step;
	size_t i;

	json_array_foreach(json_object_get(status, "steps"), i, step)
		if (cordon_streq(cordon_json_text(step, "id"), id))
			return step;
	return NULL;
}

static void step_ways(struct cordon_page *page, const struct cordon_flow_drawing *drawing, size_t i)
{
	cordon_html(&page->html, "<p class=\"quiet\">");
	for (size_t k = 0, n = 0; k < drawing->n_ways; k++) {
		const struct cordon_flow_way *way = &drawing->ways[k];
		const struct cordon_flow_step *to = drawing->boxes[way->to].step;

		if (way->from != i)
			continue;
		cordon_html(&page->html, "%s%s: ", n++ ? " \u00b7 " : "", way->label);
		if (to)
			cordon_html(&page->html, "<a href=\"#step-%s\">%s</a>%s", to->id, to->id,
				    way->to <= i ? " again" : "");
		else
			cordon_html(&page->html, way->fails ? "the run fails" : "the run is done");
	}
	cordon_html(&page->html, "</p>");
}

static void step_state(struct cordon_page *page, const json_t *state, const char *run, size_t *room)
{
	struct cordon_html *html = &page->html;
	json_int_t attempts = cordon_json_integer(state, "attempts");
	const char *error = cordon_json_text(state, "error"), *key;
	json_t *outputs = json_object_get(state, "outputs"), *value;

	if (attempts) {
		cordon_html(html, "<p class=\"quiet\">%lld attempt%s", attempts, attempts == 1 ? "" : "s");
		if (*cordon_json_text(state, "endedAt")) {
			cordon_html(html, ", the last ended ");
			cordon_page_time(page, cordon_json_text(state, "endedAt"));
		}
		if (!cordon_json_is(state, "type", cordon_flow_type_name(CORDON_FLOW_HUMAN_REVIEW)))
			cordon_html(html,
				    " \u00b7 <a href=\"/workflow/%s/log?step=%s\">What its agent wrote<span "
				    "class=\"hidden\"> in step %s</span></a>",
				    run, cordon_json_text(state, "id"), cordon_json_text(state, "id"));
		cordon_html(html, "</p>");
	}
	if (*error)
		cordon_html(html, "<p class=\"reason\">%s</p>", error);
	json_object_foreach(outputs, key, value)
		output(page, key, value, room);
}

/* The same as a list in the order of the steps, with what each has put out; `run` is the id of the run, or NULL. */
static void page_flow_steps(struct cordon_page *page, const struct cordon_workflow *workflow, const json_t *status,
			    const char *run)
{
	struct cordon_html *html = &page->html;
	struct cordon_flow_drawing drawing;
	size_t room = OUTPUTS_SHOWN;

	cordon_flow_draw(workflow, status, &drawing);
	cordon_html(html, "<section aria-labelledby=\"steps\"><h2 id=\"steps\">Steps</h2><ol class=\"steps\">");
	for (size_t i = 0; i < workflow->n_steps; i++) {
		const struct cordon_flow_step *step = &workflow->steps[i];
		const json_t *state = state_of(status, step->id);

		cordon_html(html, "<li class=\"card live\" id=\"step-%s\"><h3>%s ", step->id, step->id);
		if (state)
			cordon_page_state(page, cordon_json_text(state, "state"));
		cordon_html(html, "</h3><p>%s%s%s%s</p>", cordon_flow_type_name(step->type), step->agent ? " by " : "",
			    step->agent, step->run_workspace ? ", in the files of the run" : "");
		step_ways(page, &drawing, i);
		if (state && run)
			step_state(page, state, run, &room);
		cordon_html(html, "</li>");
	}
	cordon_html(html, "</ol></section>");
}

/* ---- logs ---- */

static bool is_running(const json_t *attempt)
{
	return cordon_json_is(attempt, "state", "running");
}

/* The topics of an attempt. The crew changes when its log is created. */
static void topics_of_attempts(struct cordon_page *page, const json_t *attempts, struct cordon_buf *ret_topics)
{
	size_t n = json_array_size(attempts);
	const json_t *last = json_array_get(attempts, n ? n - 1 : 0);
	char place[CORDON_UUID_SIZE + 40];

	(void)cordon_buf_addf(ret_topics, "flow/%s", page->id);
	if (!is_running(last) || !*cordon_json_text(last, "crew"))
		return;
	(void)cordon_buf_addf(ret_topics, " crew/%s", cordon_json_text(last, "crew"));
	snprintf(place, sizeof(place), "crew/%.36s/%lld", cordon_json_text(last, "crew"),
		 (long long)cordon_json_integer(last, "job"));
	cordon_page_topic(page, place, ret_topics);
}

static void attempt_log(struct cordon_page *page, const json_t *attempt, size_t at)
{
	struct cordon_html *html = &page->html;
	char more[160], id[32], label[48];
	struct cordon_page_log log = { .crew = cordon_json_text(attempt, "crew"),
				       .job = (size_t)cordon_json_integer(attempt, "job"),
				       .id = id,
				       .label = label };

	snprintf(id, sizeof(id), "log-%zu", at);
	snprintf(label, sizeof(label), "Output of attempt %lld", (long long)cordon_json_integer(attempt, "attempt"));
	snprintf(more, sizeof(more), "/workflow/%.*s/output?step=%.64s&at=%zu", CORDON_FLOW_RUN_SIZE, page->id,
		 cordon_json_text(attempt, "step"), at);
	cordon_html(html, "<section aria-labelledby=\"attempt-%zu\"><h2 id=\"attempt-%zu\">Attempt %lld</h2>", at, at,
		    cordon_json_integer(attempt, "attempt"));
	cordon_html(html, "<div id=\"facts-%zu\" class=\"live\"><p>", at);
	cordon_page_state(page, cordon_json_text(attempt, "state"));
	cordon_html(html, " began ");
	cordon_page_time(page, cordon_json_text(attempt, "startedAt"));
	if (json_object_get(attempt, "durationMs")) {
		cordon_html(html, ", took ");
		cordon_page_duration(page, cordon_json_integer(attempt, "durationMs"));
		cordon_html(html, ", %lld refusals", cordon_json_integer(attempt, "violations"));
		if (*cordon_json_text(attempt, "runId"))
			cordon_html(html,
				    " \u00b7 <a href=\"/audit?run=%s\">Audit log<span class=\"hidden\"> of attempt %lld</span></a>",
				    cordon_json_text(attempt, "runId"), cordon_json_integer(attempt, "attempt"));
	}
	cordon_html(html, "</p>");
	if (*cordon_json_text(attempt, "error"))
		cordon_html(html, "<p class=\"reason\">%s</p>", cordon_json_text(attempt, "error"));
	cordon_html(html, "</div>");
	if (is_running(attempt))
		log.more = more;
	if (*log.crew)
		cordon_page_log(page, &log);
	else
		cordon_page_empty(page, "What it wrote is not there yet, or not kept any more.");
	cordon_html(html, "</section>");
}

/* An attempt that begins while the page is open changes this topic, and is shown when the page is loaded again. */
static void latest(struct cordon_page *page, const char *step, const json_t *attempts)
{
	size_t n = json_array_size(attempts);
	const json_t *last = json_array_get(attempts, n ? n - 1 : 0);

	cordon_html(&page->html, "<p id=\"latest\" data-said=\"Attempt %lld: %s\">",
		    cordon_json_integer(last, "attempt"), cordon_json_text(last, "state"));
	if (n)
		cordon_html(&page->html, "Latest: <a href=\"/workflow/%s/log?step=%s\">attempt %lld</a>, %s.", page->id,
			    step, cordon_json_integer(last, "attempt"), cordon_json_text(last, "state"));
	else
		cordon_html(&page->html, "The step has not begun.");
	cordon_html(&page->html, "</p>");
}

static void step_log(struct cordon_page *page, const char *step, const json_t *attempts)
{
	autobuf struct cordon_buf topics = CORDON_BUF(512);
	const char *before = cordon_page_arg(page, "before");
	size_t end = json_array_size(attempts), begin;
	char title[CORDON_FLOW_ID_MAX + 16];
	uint64_t given;

	if (before && cordon_parse_u64(before, 0, end, &given) == 0)
		end = (size_t)given;
	begin = end > ATTEMPTS_SHOWN ? end - ATTEMPTS_SHOWN : 0;
	topics_of_attempts(page, attempts, &topics);
	snprintf(title, sizeof(title), "Step %.*s", CORDON_FLOW_ID_MAX, step);
	cordon_page_begin(page, title, topics.data);
	cordon_html(&page->html, "<p><a href=\"/workflow/%s\">The run</a></p>", page->id);
	latest(page, step, attempts);
	for (size_t i = end; i-- > begin;)
		attempt_log(page, json_array_get(attempts, i), i);
	if (begin)
		cordon_html(&page->html,
			    "<p><a href=\"/workflow/%s/log?step=%s&amp;before=%zu\">Earlier attempts</a></p>", page->id,
			    step, begin);
}

static void more_output(struct cordon_page *page, const json_t *attempts)
{
	const char *text = cordon_page_arg(page, "at");
	struct cordon_page_log log = { 0 };
	struct cordon_error err = { 0 };
	const json_t *attempt;
	uint64_t at;

	attempt = text && cordon_parse_u64(text, 0, UINT32_MAX, &at) == 0 ? json_array_get(attempts, (size_t)at) : NULL;
	if (!attempt || !json_object_get(attempt, "job")) {
		cordon_fail(&err, -ENOENT, CORDON_KIND_NOT_FOUND, "There is no such attempt");
		cordon_page_fail_error(page, &err);
		return;
	}
	log.crew = cordon_json_text(attempt, "crew");
	log.job = (size_t)cordon_json_integer(attempt, "job");
	cordon_page_log_more(page, &log);
}

/* What stands behind the id of a run: "log" and "output". False when it is none of them. */
static bool page_flow_part(struct cordon_page *page)
{
	const char *step = cordon_page_arg(page, "step");
	bool whole = cordon_streq(page->part, "log");
	json_auto_t *attempts = NULL;
	struct cordon_error err = { 0 };

	if (!step || (!whole && !cordon_streq(page->part, "output")))
		return false;
	if (cordon_flow_attempts(&page->store->home, page->id, step, &attempts, &err) < 0)
		cordon_page_fail_error(page, &err);
	else if (whole)
		step_log(page, step, attempts);
	else
		more_output(page, attempts);
	return true;
}

/* ---- runs of workflows ---- */

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
	page_flow_graph(page, workflow, NULL);
	page_flow_steps(page, workflow, NULL, NULL);
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
	page_flow_graph(page, run->workflow, status);
	page_flow_steps(page, run->workflow, status, run->id);
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
	if (r == 0 && *page->part && !page_flow_part(page))
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
