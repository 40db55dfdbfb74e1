/* SPDX-License-Identifier: Apache-2.0 */
/* Draws the steps of a workflow and how a run stands, as lines of text or as an SVG picture. */
#include "base/buf.h"
#include "base/json.h"
#include "base/text.h"
#include "flow/drawing.h"

#define DRAWING_MAX ((size_t)4 << 20)

/* ---- the layout ---- */

#define BOX_WIDTH 260
#define BOX_HEIGHT 56
#define BOX_GAP 44
#define END_HEIGHT 28
#define LEFT 118
#define RIGHT 190
#define TOP 60
#define LANE 14 /* between ways that lead around boxes */
#define LANES_LEFT 4
#define LANES_RIGHT 8

static const json_t *state_of(const json_t *status, const char *id)
{
	const json_t *step;
	size_t i;

	json_array_foreach(json_object_get(status, "steps"), i, step)
		if (cordon_streq(cordon_json_string(step, "id"), id))
			return step;
	return NULL;
}

static void add_box(struct cordon_flow_drawing *drawing, const struct cordon_flow_step *step, const json_t *state)
{
	size_t i = drawing->n_boxes++;

	drawing->boxes[i] = (struct cordon_flow_box){
		.x = LEFT,
		.y = TOP + (int)i * (BOX_HEIGHT + BOX_GAP),
		.width = BOX_WIDTH,
		.height = step ? BOX_HEIGHT : END_HEIGHT,
		.step = step,
		.state = cordon_json_text(state, "state"),
		.attempts = cordon_json_integer(state, "attempts"),
	};
}

/* Adds a way from a step to a step or to the end. */
static void add_way(struct cordon_flow_drawing *drawing, size_t from, size_t to, const char *label, bool fails)
{
	size_t end = drawing->n_boxes - 1, i = drawing->n_ways++;
	struct cordon_flow_way *way = &drawing->ways[i];
	bool left = cordon_streq(label, "reject");
	const struct cordon_flow_box *a = &drawing->boxes[from], *b;
	int edge = left ? LEFT : LEFT + BOX_WIDTH, x, y1, y2;

	to = to < end ? to : end;
	b = &drawing->boxes[to];
	*way = (struct cordon_flow_way){ .from = from, .to = to, .label = label, .fails = fails, .text_ends = left };
	if (to == from + 1 && !left) {
		x = LEFT + BOX_WIDTH / 2;
		way->points[way->n_points++] = (struct cordon_flow_point){ x, a->y + a->height };
		way->points[way->n_points++] = (struct cordon_flow_point){ x, b->y - 2 };
		way->text = (struct cordon_flow_point){ x + 6, (a->y + a->height + b->y) / 2 + 4 };
		return;
	}
	x = left ? LEFT - 20 - LANE * (int)(i % LANES_LEFT) : LEFT + BOX_WIDTH + 20 + LANE * (int)(i % LANES_RIGHT);
	y1 = a->y + BOX_HEIGHT / 2 + (left ? 8 : 0);
	y2 = b->y + (to == end ? END_HEIGHT / 2 : BOX_HEIGHT / 2 - 8);
	way->points[way->n_points++] = (struct cordon_flow_point){ edge, y1 };
	way->points[way->n_points++] = (struct cordon_flow_point){ x, y1 };
	way->points[way->n_points++] = (struct cordon_flow_point){ x, y2 };
	way->points[way->n_points++] = (struct cordon_flow_point){ left ? edge - 2 : edge + 2, y2 };
	way->text = (struct cordon_flow_point){ left ? x - 4 : x + 4, (y1 + y2) / 2 };
}

void cordon_flow_draw(const struct cordon_workflow *workflow, const json_t *status,
		      struct cordon_flow_drawing *ret_drawing)
{
	*ret_drawing = (struct cordon_flow_drawing){ .width = LEFT + BOX_WIDTH + RIGHT };
	for (size_t i = 0; i < workflow->n_steps; i++)
		add_box(ret_drawing, &workflow->steps[i], state_of(status, workflow->steps[i].id));
	add_box(ret_drawing, NULL, NULL);
	ret_drawing->height = ret_drawing->boxes[workflow->n_steps].y + END_HEIGHT + 32;
	for (size_t i = 0; i < workflow->n_steps; i++) {
		const struct cordon_flow_step *step = &workflow->steps[i];

		if (step->type == CORDON_FLOW_TASK) {
			add_way(ret_drawing, i, step->next, "next", false);
			continue;
		}
		add_way(ret_drawing, i, step->on_approve, "approve", false);
		add_way(ret_drawing, i, step->on_reject, "reject", !step->has_on_reject);
	}
}

const char *cordon_flow_way_end(const struct cordon_flow_drawing *drawing, const struct cordon_flow_way *way)
{
	const struct cordon_flow_step *step = drawing->boxes[way->to].step;

	return step ? step->id : way->fails ? "failed" : "done";
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

static int print_step(struct cordon_buf *out, const struct marks *marks, const struct cordon_flow_drawing *drawing,
		      size_t i)
{
	const struct cordon_flow_box *box = &drawing->boxes[i];
	const struct cordon_flow_step *step = box->step;
	int r = cordon_buf_addf(out, "%s %s  (%s%s%s%s)", mark_of(marks, box->state), step->id,
				cordon_flow_type_name(step->type), step->agent ? " by " : "",
				step->agent ? step->agent : "", step->run_workspace ? ", run_workspace" : "");

	if (r == 0 && *box->state)
		r = cordon_buf_addf(out, "  %s", box->state);
	if (r == 0 && box->attempts > 1)
		r = cordon_buf_addf(out, ", attempt %lld", (long long)box->attempts);
	for (size_t k = 0; r == 0 && k < drawing->n_ways; k++) {
		const struct cordon_flow_way *way = &drawing->ways[k];
		bool last = k + 1 == drawing->n_ways || drawing->ways[k + 1].from != i;

		if (way->from == i)
			r = cordon_buf_addf(out, "\n%s %s %s %s%s", last ? marks->last : marks->branch, way->label,
					    marks->arrow, cordon_flow_way_end(drawing, way),
					    way->to <= i ? " (again)" : "");
	}
	return r < 0 ? r : cordon_buf_adds(out, "\n");
}

char *cordon_flow_graph_text(const struct cordon_workflow *workflow, const json_t *status, bool unicode)
{
	struct cordon_buf out = CORDON_BUF(DRAWING_MAX);
	struct cordon_flow_drawing drawing;
	int r = cordon_buf_addf(&out, "%s", workflow->id);

	cordon_flow_draw(workflow, status, &drawing);
	if (r == 0 && status)
		r = cordon_buf_addf(&out, "  %s  %s", cordon_json_string(status, "runId"),
				    cordon_json_text(status, "state"));
	if (r == 0)
		r = cordon_buf_adds(&out, "\n");
	for (size_t i = 0; r == 0 && i < workflow->n_steps; i++)
		r = print_step(&out, unicode ? &fine : &plain, &drawing, i);
	if (r < 0) {
		cordon_buf_done(&out);
		return NULL;
	}
	return cordon_buf_steal(&out);
}

/* ---- SVG ---- */

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
static int write_box(struct cordon_buf *out, const struct cordon_flow_box *box)
{
	const struct cordon_flow_step *step = box->step;
	int middle = box->x + box->width / 2;
	int r = cordon_buf_addf(
		out, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"%d\" fill=\"%s\" stroke=\"#555\"/>\n",
		box->x, box->y, box->width, box->height, step ? 8 : box->height / 2,
		step ? colour_of(box->state) : "#fff");

	if (r < 0 || !step)
		return r < 0 ? r
			     : cordon_buf_addf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">end</text>\n",
					       middle, box->y + 19);
	r = cordon_buf_addf(out,
			    "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\" font-weight=\"bold\">%s</text>\n"
			    "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\" font-size=\"12\">%s%s%s",
			    middle, box->y + 24, step->id, middle, box->y + 43, cordon_flow_type_name(step->type),
			    step->agent ? " by " : "", step->agent ? step->agent : "");
	if (r == 0 && *box->state)
		r = cordon_buf_addf(out, ", %s", box->state);
	if (r == 0 && box->attempts > 1)
		r = cordon_buf_addf(out, " (%lld)", (long long)box->attempts);
	return r < 0 ? r : cordon_buf_adds(out, "</text>\n");
}

static int write_way(struct cordon_buf *out, const struct cordon_flow_way *way)
{
	int r = cordon_buf_adds(out, "<path d=\"");

	for (size_t i = 0; r == 0 && i < way->n_points; i++)
		r = cordon_buf_addf(out, "%s %d %d", i ? " L" : "M", way->points[i].x, way->points[i].y);
	return r < 0 ? r
		     : cordon_buf_addf(
			       out,
			       "\" class=\"way\"/>\n<text x=\"%d\" y=\"%d\" font-size=\"11\" text-anchor=\"%s\">%s</text>\n",
			       way->text.x, way->text.y, way->text_ends ? "end" : "start", way->label);
}

static int write_picture(struct cordon_buf *out, const struct cordon_workflow *workflow, const json_t *status)
{
	struct cordon_flow_drawing drawing;
	int r;

	cordon_flow_draw(workflow, status, &drawing);
	r = cordon_buf_addf(
		out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" font-family=\"sans-serif\" "
		"font-size=\"14\">\n<defs><marker id=\"tip\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" "
		"markerWidth=\"8\" markerHeight=\"8\" orient=\"auto\"><path d=\"M 0 0 L 8 4 L 0 8 z\"/></marker>"
		"</defs>\n<style>.way{fill:none;stroke:#333;marker-end:url(#tip)}</style>\n"
		"<text x=\"%d\" y=\"30\" text-anchor=\"middle\" font-size=\"16\">%s%s%s%s%s</text>\n",
		drawing.width, drawing.height, drawing.width / 2, workflow->id, status ? ": " : "",
		status ? cordon_json_string(status, "runId") : "", status ? ", " : "",
		cordon_json_text(status, "state"));
	for (size_t i = 0; r == 0 && i < drawing.n_boxes; i++)
		r = write_box(out, &drawing.boxes[i]);
	for (size_t i = 0; r == 0 && i < drawing.n_ways; i++)
		r = write_way(out, &drawing.ways[i]);
	return r < 0 ? r : cordon_buf_adds(out, "</svg>\n");
}

char *cordon_flow_graph_svg(const struct cordon_workflow *workflow, const json_t *status)
{
	struct cordon_buf out = CORDON_BUF(DRAWING_MAX);

	if (write_picture(&out, workflow, status) < 0) {
		cordon_buf_done(&out);
		return NULL;
	}
	return cordon_buf_steal(&out);
}
