/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handing a policy to another process of ours (cordon-lens) over a descriptor: a memfd, a pipe or a file.
 *
 * The form is a sequence of NUL-terminated strings, because neither a pattern nor a path can hold a NUL:
 *     "cordon-policy" "1" (key value...)* "end"
 *     root PATH · mode strict|permissive · read_only yes|no · editor_temps yes|no
 *     grant none|read|write PATTERN WHERE · protect PATH WHERE by_default|asked
 * An empty WHERE stands for none. What is cut off, unknown or repeated where it must not be is an error: both ends
 * are of one version of cordon.
 */
#ifndef CORDON_POLICY_HANDOVER_H
#define CORDON_POLICY_HANDOVER_H

#include "policy/policy.h"

#define CORDON_HANDOVER_MAX (32u << 20)

/* Writes all of it; the caller rewinds a memfd. */
int cordon_handover_write(const struct cordon_policy *policy, bool editor_temps, int fd, struct cordon_error *err);

/* Reads to the end of `fd` and builds the policy anew. `root_fd` becomes its root and is duplicated: the path is only
 * for messages and for links with absolute targets, it is not opened again. */
int cordon_handover_read(int fd, int root_fd, struct cordon_policy **ret_policy, bool *ret_editor_temps,
			 struct cordon_error *err);

#endif
