/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of a workflow that need all of its steps: what they refer to, their templates and their outputs. */
#ifndef CORDON_FLOW_WORKFLOW_CHECK_H
#define CORDON_FLOW_WORKFLOW_CHECK_H

#include "flow/workflow.h"

/* What a step refers to, until all steps are read. The nodes may be NULL. */
struct cordon_flow_refs {
	const struct cordon_node *next, *on_approve, *on_reject, *needs, *files, *priority;
	const char **needs_ids;
	bool wants_files; /* prompt_type: file_output */
};

/* `refs` has one entry for each step. Fills in what the steps refer to; errors go to the reader's list. */
int cordon_workflow_check(const struct cordon_reader *reader, struct cordon_workflow *workflow,
			  const struct cordon_flow_refs *refs);
/* Checks the text of a prompt's file; errors have their place in it. */
void cordon_workflow_check_file(struct cordon_workflow *workflow, struct cordon_flow_step *step, const char *path,
				const char *text, struct cordon_errors *errors);

#endif
