/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Passes a policy to another process of cordon (cordon-lens) over a descriptor: a memfd, a pipe or a file.
 *
 * The form is a sequence of NUL-terminated strings, because neither a pattern nor a path can contain a NUL:
 *     "cordon-policy" "2" (key value...)* "end"
 *     root PATH · mode strict|permissive · read_only yes|no · editor_temps yes|no
 *     grant none|read|write PATTERN WHERE · protect PATH WHERE by_default|asked · fence NAME yes|no
 * The yes or no of a fence says whether it is read-only; the grants behind it belong to it, and no protected paths
 * follow. An empty WHERE means none. A message that is cut off or has an unknown key is an error: both processes are
 * of the same version of cordon.
 */
#ifndef CORDON_POLICY_HANDOVER_H
#define CORDON_POLICY_HANDOVER_H

#include "policy/policy.h"

#define CORDON_HANDOVER_MAX (32u << 20)

/* Writes the whole policy; the caller rewinds a memfd. */
int cordon_handover_write(const struct cordon_policy *policy, bool editor_temps, int fd, struct cordon_error *err);

/* Reads to the end of `fd` and builds the policy. `root_fd` is duplicated and becomes its root: the path of the root
 * is only for messages and for links with absolute targets, and is not opened again. */
int cordon_handover_read(int fd, int root_fd, struct cordon_policy **ret_policy, bool *ret_editor_temps,
			 struct cordon_error *err);

#endif
