/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The result of a step in the agent's answer:
 *
 *     [workflow_result]{"token": "...", "status": "complete", "decision": "approve", ...}[/workflow_result]
 *
 * The answer is what the agent wrote to its standard output. When every line of it is a JSON object, as `codex exec --json`
 * and `claude --output-format stream-json` print, only the agent's own messages count, not what its tools printed.
 *
 * INVARIANT: an envelope counts only with the token that the prompt of this attempt has. No file that was written before
 * the attempt can contain it, so text of a file that the agent repeats is never taken for its answer.
 */
#ifndef CORDON_FLOW_ENVELOPE_H
#define CORDON_FLOW_ENVELOPE_H

#include <jansson.h>

#include "base/error.h"

#define CORDON_ENVELOPE_MAX ((size_t)1 << 20) /* bytes of an answer that are looked at: the last ones */
#define CORDON_ENVELOPE_TOKEN_SIZE 33

/* Finds the one envelope with this token. *ret_envelope is an object, or NULL when there is none. Two of them, or one that
 * is no JSON, are errors. */
int cordon_envelope_find(const char *answer, size_t n, const char *token, json_t **ret_envelope,
			 struct cordon_error *err);

#endif
