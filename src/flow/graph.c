/* SPDX-License-Identifier: Apache-2.0 */
/* Draws the steps of a workflow and how a run stands, as lines of text or as an SVG picture. */
#include "base/buf.h"
#include "base/text.h"
#include "flow/flow.h"

#define DRAWING_MAX ((size_t)4 << 20)

/* One way out of a step. */
struct way {
	size_t to; /* CORDON_FLOW_END: the workflow ends */
	const char *label;
	bool fails; /* it ends because the review rejected */
};

static size_t ways_of(const struct cordon_flow_step *step, struct way ret[static 2])
{
	if (step->type == CORDON_FLOW_TASK) {
		ret[0] = (struct way){ .to = step->next, .label = "next" };
		return 1;
	}
	ret[0] = (struct way){ .to = step->on_approve, .label = "approve" };
	ret[1] = (struct way){ .to = step->on_reject, .label = "reject", .fails = !step->has_on_reject };
	return 2;
}

static const json_t *state_of(const json_t *status, const char *id)
{
	const json_t *step;
	size_t i;

	json_array_foreach(json_object_get(status, "steps"), i, step)
		if (cordon_streq(json_string_value(json_object_get(step, "id")), id))
			return step;
	return NULL;
}

static const char *word_of(const json_t *step)
{
	const char *state = json_string_value(json_object_get(step, "state"));

	return state ? state : "";
}

static const char *name_of(const struct cordon_workflow *workflow, const struct way *way)
{
	if (way->to < workflow->n_steps)
		return workflow->steps[way->to].id;
	return way->fails ? "failed" : "done";
}

/* ---- text ---- */

struct marks {
	const char *const *states; /* pairs of a state and its mark */
	const char *down, *branch, *last, *arrow, *none;
};

static const char *const plain_states[] = { "pending",	"[ ]", "running",  "[>]", "waiting", "[?]", "finished", "[x]",
					    "approved", "[x]", "rejected", "[-]", "failed",  "[!]", NULL };
static const char *const fine_states[] = { "pending",  "○", "running",	"▶", "waiting", "◆", "finished", "●",
					   "approved", "●", "rejected", "◐", "failed",	"✗", NULL };
static const struct marks plain = { plain_states, "|", "+-", "`-", "->", "*" };
static const struct marks fine = { fine_states, "│", "├─", "└─", "→", "•" };

static const char *mark_of(const struct marks *marks, const char *state)
{
	for (size_t i = 0; marks->states[i]; i += 2)
		if (cordon_streq(marks->states[i], state))
			return marks->states[i + 1];
	return marks->none;
}

static int add_step(struct cordon_buf *out, const struct marks *marks, const struct cordon_workflow *workflow, size_t i,
		    const json_t *status)
{
	const struct cordon_flow_step *step = &workflow->steps[i];
	const json_t *state = state_of(status, step->id);
	json_int_t attempts = json_integer_value(json_object_get(state, "attempts"));
	struct way ways[2];
	size_t n = ways_of(step, ways);
	int r = cordon_buf_addf(out, "%s %s  (%s%s%s%s)", mark_of(marks, word_of(state)), step->id,
				cordon_flow_type_name(step->type), step->agent ? " by " : "",
				step->agent ? step->agent : "", step->run_workspace ? ", run_workspace" : "");

	if (r == 0 && state)
		r = cordon_buf_addf(out, "  %s", word_of(state));
	if (r == 0 && attempts > 1)
		r = cordon_buf_addf(out, ", attempt %lld", (long long)attempts);
	for (size_t k = 0; r == 0 && k < n; k++)
		r = cordon_buf_addf(out, "\n%s %s %s %s%s", k + 1 < n ? marks->branch : marks->last, ways[k].label,
				    marks->arrow, name_of(workflow, &ways[k]),
				    ways[k].to < workflow->n_steps && ways[k].to <= i ? " (again)" : "");
	return r < 0 ? r : cordon_buf_adds(out, "\n");
}

char *cordon_flow_graph_text(const struct cordon_workflow *workflow, const json_t *status, bool unicode)
{
	struct cordon_buf out = CORDON_BUF(DRAWING_MAX);
	int r = cordon_buf_addf(&out, "%s", workflow->id);

	if (r == 0 && status)
		r = cordon_buf_addf(&out, "  %s  %s", json_string_value(json_object_get(status, "runId")),
				    word_of(status));
	if (r == 0)
		r = cordon_buf_adds(&out, "\n");
	for (size_t i = 0; r == 0 && i < workflow->n_steps; i++)
		r = add_step(&out, unicode ? &fine : &plain, workflow, i, status);
	if (r < 0) {
		cordon_buf_done(&out);
		return NULL;
	}
	return cordon_buf_steal(&out);
}

/* ---- SVG ---- */

#define BOX_WIDTH 260
#define BOX_HEIGHT 56
#define BOX_GAP 44
#define LEFT 90
#define TOP 60
#define LANE 14 /* between ways that lead around boxes */

static int y_of(size_t i)
{
	return TOP + (int)i * (BOX_HEIGHT + BOX_GAP);
}

static const char *colour_of(const char *state)
{
	static const char *const colours[] = { "running", "#cfe4ff",  "waiting", "#fff0b8",  "finished",
					       "#d4f2d8", "approved", "#d4f2d8", "rejected", "#ffe2c9",
					       "failed",  "#ffd3d3",  NULL };

	for (size_t i = 0; colours[i]; i += 2)
		if (cordon_streq(colours[i], state))
			return colours[i + 1];
	return "#f3f3f3";
}

/* Ids have letters, digits, dashes and underscores only, so nothing of them means anything in XML. */
static int add_box(struct cordon_buf *out, const struct cordon_flow_step *step, size_t i, const json_t *state)
{
	json_int_t attempts = json_integer_value(json_object_get(state, "attempts"));
	int r = cordon_buf_addf(out,
				"<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"8\" fill=\"%s\" stroke=\"#555\"/>\n"
				"<text x=\"%d\" y=\"%d\" text-anchor=\"middle\" font-weight=\"bold\">%s</text>\n"
				"<text x=\"%d\" y=\"%d\" text-anchor=\"middle\" font-size=\"12\">%s%s%s",
				LEFT, y_of(i), BOX_WIDTH, BOX_HEIGHT, colour_of(word_of(state)), LEFT + BOX_WIDTH / 2,
				y_of(i) + 24, step->id, LEFT + BOX_WIDTH / 2, y_of(i) + 43,
				cordon_flow_type_name(step->type), step->agent ? " by " : "",
				step->agent ? step->agent : "");

	if (r == 0 && *word_of(state))
		r = cordon_buf_addf(out, ", %s", word_of(state));
	if (r == 0 && attempts > 1)
		r = cordon_buf_addf(out, " (%lld)", (long long)attempts);
	return r < 0 ? r : cordon_buf_adds(out, "</text>\n");
}

/* A way to the next box is a straight line; any other goes around on the right for approvals, on the left for rejections. */
static int add_way(struct cordon_buf *out, const struct way *way, size_t from, size_t end, size_t *lane)
{
	size_t to = way->to < end ? way->to : end;
	bool left = cordon_streq(way->label, "reject");
	int y1 = y_of(from) + BOX_HEIGHT, y2 = y_of(to), x = LEFT + BOX_WIDTH / 2, edge, out_x;

	if (to == from + 1 && !left)
		return cordon_buf_addf(out,
				       "<path d=\"M %d %d L %d %d\" class=\"way\"/>\n<text x=\"%d\" y=\"%d\" "
				       "font-size=\"11\">%s</text>\n",
				       x, y1, x, y2 - 2, x + 6, (y1 + y2) / 2 + 4, way->label);
	edge = left ? LEFT : LEFT + BOX_WIDTH;
	out_x = left ? LEFT - 20 - LANE * (int)(*lane % 4) : LEFT + BOX_WIDTH + 20 + LANE * (int)(*lane % 8);
	(*lane)++;
	y1 = y_of(from) + BOX_HEIGHT / 2 + (left ? 8 : 0);
	y2 = y_of(to) + (to == end ? 14 : BOX_HEIGHT / 2 - 8);
	return cordon_buf_addf(out,
			       "<path d=\"M %d %d L %d %d L %d %d L %d %d\" class=\"way\"/>\n"
			       "<text x=\"%d\" y=\"%d\" font-size=\"11\" text-anchor=\"%s\">%s</text>\n",
			       edge, y1, out_x, y1, out_x, y2, left ? edge - 2 : edge + 2, y2,
			       left ? out_x - 4 : out_x + 4, (y1 + y2) / 2, left ? "end" : "start", way->label);
}

static int add_picture(struct cordon_buf *out, const struct cordon_workflow *workflow, const json_t *status)
{
	size_t lane = 0, n = workflow->n_steps;
	int r = cordon_buf_addf(
		out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" font-family=\"sans-serif\" "
		"font-size=\"14\">\n<defs><marker id=\"tip\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" "
		"markerWidth=\"8\" markerHeight=\"8\" orient=\"auto\"><path d=\"M 0 0 L 8 4 L 0 8 z\"/></marker>"
		"</defs>\n<style>.way{fill:none;stroke:#333;marker-end:url(#tip)}</style>\n"
		"<text x=\"%d\" y=\"30\" text-anchor=\"middle\" font-size=\"16\">%s%s%s%s%s</text>\n",
		LEFT * 2 + BOX_WIDTH + 8 * LANE, y_of(n) + 60, LEFT + BOX_WIDTH / 2, workflow->id, status ? ": " : "",
		status ? json_string_value(json_object_get(status, "runId")) : "", status ? ", " : "", word_of(status));

	for (size_t i = 0; r == 0 && i < n; i++) {
		struct way ways[2];
		size_t n_ways = ways_of(&workflow->steps[i], ways);

		r = add_box(out, &workflow->steps[i], i, state_of(status, workflow->steps[i].id));
		for (size_t k = 0; r == 0 && k < n_ways; k++)
			r = add_way(out, &ways[k], i, n, &lane);
	}
	if (r == 0)
		r = cordon_buf_addf(out,
				    "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"28\" rx=\"14\" fill=\"#fff\" "
				    "stroke=\"#555\"/>\n<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">end</text>\n</svg>\n",
				    LEFT, y_of(n), BOX_WIDTH, LEFT + BOX_WIDTH / 2, y_of(n) + 19);
	return r;
}

char *cordon_flow_graph_svg(const struct cordon_workflow *workflow, const json_t *status)
{
	struct cordon_buf out = CORDON_BUF(DRAWING_MAX);

	if (add_picture(&out, workflow, status) < 0) {
		cordon_buf_done(&out);
		return NULL;
	}
	return cordon_buf_steal(&out);
}
