/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the page of a workflow: its picture, its steps, and the logs of a step. */
#ifndef CORDON_PAGE_WORKFLOW_H
#define CORDON_PAGE_WORKFLOW_H

#include "flow/flow.h"
#include "page/internal.h"

/* The picture. `status` is what cordon_flow_status() returned, or NULL. */
void cordon_page_flow_graph(struct cordon_page *page, const struct cordon_workflow *workflow, const json_t *status);
/* The same as a list in the order of the steps, with what each has put out; `run` is the id of the run, or NULL. */
void cordon_page_flow_steps(struct cordon_page *page, const struct cordon_workflow *workflow, const json_t *status,
			    const char *run);
/* What stands behind the id of a run: "log" and "output". False when it is none of them. */
bool cordon_page_flow_part(struct cordon_page *page);

#endif
