/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the steps of a workflow and the ways between them stand in a picture: one box below the other, and at the bottom the end.
 * Plain data, for whoever writes the picture. A way to the next box is a straight line; any other goes around, on the right, or on
 * the left for a rejection.
 */
#ifndef CORDON_FLOW_DRAWING_H
#define CORDON_FLOW_DRAWING_H

#include "flow/flow.h"

#define CORDON_FLOW_POINTS_MAX 4

struct cordon_flow_box {
	int x, y, width, height;
	const struct cordon_flow_step *step; /* NULL: the end */
	const char *state;		     /* of the step, or "" */
	json_int_t attempts;
};

struct cordon_flow_way {
	size_t from, to; /* indices of boxes */
	const char *label;
	bool fails; /* the workflow ends because a review rejected */
	struct cordon_flow_point {
		int x, y;
	} points[CORDON_FLOW_POINTS_MAX], text;
	size_t n_points;
	bool text_ends; /* the label ends at its point, and does not begin there */
};

struct cordon_flow_drawing {
	int width, height;
	struct cordon_flow_box boxes[CORDON_FLOW_STEPS_MAX + 1];
	size_t n_boxes;
	struct cordon_flow_way ways[2 * CORDON_FLOW_STEPS_MAX];
	size_t n_ways;
};

/* `status` is what cordon_flow_status() returned, or NULL; the drawing borrows from both. */
void cordon_flow_draw(const struct cordon_workflow *workflow, const json_t *status,
		      struct cordon_flow_drawing *ret_drawing);
/* Where a way leads: the id of a step, "done" or "failed". */
const char *cordon_flow_way_end(const struct cordon_flow_drawing *drawing, const struct cordon_flow_way *way);

#endif
