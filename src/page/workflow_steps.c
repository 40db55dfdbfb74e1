/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of a workflow, as a picture and as a list with their outputs; and what the agents of a step wrote. */
#include <stdio.h>

#include "flow/drawing.h"
#include "page/workflow.h"

#define OUTPUT_SHOWN ((size_t)16 << 10) /* bytes of one output */
#define OUTPUTS_SHOWN ((size_t)1 << 20) /* of all on a page */
#define OUTPUT_OPEN 2000		/* what is no longer is shown without a click */
#define ATTEMPTS_SHOWN 10

static json_int_t number(const json_t *object, const char *name)
{
	return json_integer_value(json_object_get(object, name));
}

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

void cordon_page_flow_graph(struct cordon_page *page, const struct cordon_workflow *workflow, const json_t *status)
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
		if (cordon_streq(cordon_page_string(step, "id"), id))
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
	json_int_t attempts = number(state, "attempts");
	const char *error = cordon_page_string(state, "error"), *key;
	json_t *outputs = json_object_get(state, "outputs"), *value;

	if (attempts) {
		cordon_html(html, "<p class=\"quiet\">%lld attempt%s", attempts, attempts == 1 ? "" : "s");
		if (*cordon_page_string(state, "endedAt")) {
			cordon_html(html, ", the last ended ");
			cordon_page_time(page, cordon_page_string(state, "endedAt"));
		}
		if (!cordon_streq(cordon_page_string(state, "type"), cordon_flow_type_name(CORDON_FLOW_HUMAN_REVIEW)))
			cordon_html(html,
				    " \u00b7 <a href=\"/workflow/%s/log?step=%s\">What its agent wrote<span "
				    "class=\"hidden\"> in step %s</span></a>",
				    run, cordon_page_string(state, "id"), cordon_page_string(state, "id"));
		cordon_html(html, "</p>");
	}
	if (*error)
		cordon_html(html, "<p class=\"reason\">%s</p>", error);
	json_object_foreach(outputs, key, value)
		output(page, key, value, room);
}

void cordon_page_flow_steps(struct cordon_page *page, const struct cordon_workflow *workflow, const json_t *status,
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
			cordon_page_state(page, cordon_page_string(state, "state"));
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
	return cordon_streq(cordon_page_string(attempt, "state"), "running");
}

/* Where an attempt is heard of. The crew says when the log comes to be. */
static void topics_of(struct cordon_page *page, const json_t *attempts, struct cordon_buf *ret_topics)
{
	size_t n = json_array_size(attempts);
	const json_t *last = json_array_get(attempts, n ? n - 1 : 0);
	char place[CORDON_UUID_SIZE + 40];

	(void)cordon_buf_addf(ret_topics, "flow/%s", page->id);
	if (!is_running(last) || !*cordon_page_string(last, "crew"))
		return;
	(void)cordon_buf_addf(ret_topics, " crew/%s", cordon_page_string(last, "crew"));
	snprintf(place, sizeof(place), "crew/%.36s/%lld", cordon_page_string(last, "crew"),
		 (long long)number(last, "job"));
	cordon_page_topic(page, place, ret_topics);
}

static void attempt_log(struct cordon_page *page, const json_t *attempt, size_t at)
{
	struct cordon_html *html = &page->html;
	char more[160], id[32], label[48];
	struct cordon_page_log log = { .crew = cordon_page_string(attempt, "crew"),
				       .job = (size_t)number(attempt, "job"),
				       .id = id,
				       .label = label };

	snprintf(id, sizeof(id), "log-%zu", at);
	snprintf(label, sizeof(label), "Output of attempt %lld", (long long)number(attempt, "attempt"));
	snprintf(more, sizeof(more), "/workflow/%.*s/output?step=%.64s&at=%zu", CORDON_FLOW_RUN_SIZE, page->id,
		 cordon_page_string(attempt, "step"), at);
	cordon_html(html, "<section aria-labelledby=\"attempt-%zu\"><h2 id=\"attempt-%zu\">Attempt %lld</h2>", at, at,
		    number(attempt, "attempt"));
	cordon_html(html, "<div id=\"facts-%zu\" class=\"live\"><p>", at);
	cordon_page_state(page, cordon_page_string(attempt, "state"));
	cordon_html(html, " began ");
	cordon_page_time(page, cordon_page_string(attempt, "startedAt"));
	if (json_object_get(attempt, "durationMs")) {
		cordon_html(html, ", took ");
		cordon_page_duration(page, number(attempt, "durationMs"));
		cordon_html(html, ", %lld refusals", number(attempt, "violations"));
		if (*cordon_page_string(attempt, "runId"))
			cordon_html(html,
				    " \u00b7 <a href=\"/audit?run=%s\">Audit log<span class=\"hidden\"> of attempt %lld</span></a>",
				    cordon_page_string(attempt, "runId"), number(attempt, "attempt"));
	}
	cordon_html(html, "</p>");
	if (*cordon_page_string(attempt, "error"))
		cordon_html(html, "<p class=\"reason\">%s</p>", cordon_page_string(attempt, "error"));
	cordon_html(html, "</div>");
	if (is_running(attempt))
		log.more = more;
	if (*log.crew)
		cordon_page_log(page, &log);
	else
		cordon_page_empty(page, "What it wrote is not there yet, or not kept any more.");
	cordon_html(html, "</section>");
}

/* An attempt that begins while the page is open is told here, and seen when the page is loaded again. */
static void latest(struct cordon_page *page, const char *step, const json_t *attempts)
{
	size_t n = json_array_size(attempts);
	const json_t *last = json_array_get(attempts, n ? n - 1 : 0);

	cordon_html(&page->html, "<p id=\"latest\" data-said=\"Attempt %lld: %s\">", number(last, "attempt"),
		    cordon_page_string(last, "state"));
	if (n)
		cordon_html(&page->html, "Latest: <a href=\"/workflow/%s/log?step=%s\">attempt %lld</a>, %s.", page->id,
			    step, number(last, "attempt"), cordon_page_string(last, "state"));
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
	topics_of(page, attempts, &topics);
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
	log.crew = cordon_page_string(attempt, "crew");
	log.job = (size_t)number(attempt, "job");
	cordon_page_log_more(page, &log);
}

bool cordon_page_flow_part(struct cordon_page *page)
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
