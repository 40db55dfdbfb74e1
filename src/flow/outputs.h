/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a step produced: the files that its agent wrote in the run directory, and its envelope. All of it is hostile: files
 * are opened by component from the run directory, no link is followed, and sizes are bounded. What is taken is data: it
 * chooses a path through the workflow only as the decision of a review.
 */
#ifndef CORDON_FLOW_OUTPUTS_H
#define CORDON_FLOW_OUTPUTS_H

#include "flow/workflow.h"

#define CORDON_OUTPUT_MAX ((size_t)256 << 10) /* bytes of one output */
#define CORDON_OUTPUTS_MAX ((size_t)1 << 20)  /* of all outputs of a step together */

/* The path of an output below the run directory, expanded. */
int cordon_output_path(const struct cordon_flow_output *output, const char *run_id, const char *step_id,
		       unsigned int attempt, char ret[static CORDON_PATH_MAX], struct cordon_error *err);

/* Removes what stands at the paths of the step's outputs, so that nothing there is older than the attempt, and makes the
 * directories on the way to them. `dir_fd` is the
 * run directory of the attempt, which nobody else uses yet. */
int cordon_outputs_clear(int dir_fd, const struct cordon_flow_step *step, const char *run_id, unsigned int attempt,
			 struct cordon_error *err);

/*
 * Collects the outputs: *ret_outputs is an object of strings, and *ret_files lists the paths of those that are files.
 * *ret_approve is the decision of a review. `envelope` may be NULL. An error says which output is missing or wrong, as far
 * as the agent is to blame.
 */
int cordon_outputs_take(int dir_fd, const struct cordon_flow_step *step, const char *run_id, unsigned int attempt,
			const json_t *envelope, json_t **ret_outputs, json_t **ret_files, bool *ret_approve,
			struct cordon_error *err);

#endif
