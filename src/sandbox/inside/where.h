/* SPDX-License-Identifier: Apache-2.0 */
/* Finds out where a path that the agent named leads, for reports only. The hand looks, in the agent's own tree, and opens
 * everything with O_PATH. */
#ifndef CORDON_SANDBOX_INSIDE_WHERE_H
#define CORDON_SANDBOX_INSIDE_WHERE_H

#include <limits.h>

#include "sandbox/inside/calls.h"
#include "sandbox/plan/plan.h"

struct cordon_where {
	bool shown;  /* the agent's tree has at least its directory; false: only the host's tree may have it */
	bool exists; /* the path exists inside */
	bool unseen; /* nobody looked whether it exists: it is the lens's */
	mode_t type; /* the file type of what exists */
	char inside[CORDON_PATH_MAX]; /* absolute, as the agent sees it, resolved as far as its tree goes */
};

/* The directories whose files programs always read, NULL-terminated; docs/watch.md has the same list. */
extern const char *const cordon_watch_system[];

/* Whether the text alone shows that a path lies in a system directory: it has no ".." and does not go through a
 * process's entry in /proc. Links in system directories belong to the administrator. Costs no system call. */
bool cordon_where_plainly_system(const char *path);
/* The same for a path that is already resolved. */
bool cordon_where_is_system(const char *path);

/* Translates an inside path into the host's: the agent may see the root, a share or its home at another path. */
bool cordon_where_to_host(const struct cordon_plan *plan, const char *inside, char ret[static CORDON_PATH_MAX]);

/* The directories from which paths are looked up. */
struct cordon_places {
	const struct cordon_plan *plan;
	int root_fd; /* the root directory of the agent's processes, or -1 */
};

/* A quick test with at most two system calls, which suffices for most calls of a build: true when a path leads through
 * no link to a place in the workspace, whether something exists there or not; `ret` is that place relative to the root.
 * False means that the test does not know. */
bool cordon_where_plainly_within(const struct cordon_places *places, const struct cordon_touch *touch,
				 char ret[static CORDON_PATH_MAX]);

/* Finds where the path of a touch leads. False for what has no name, such as a pipe or a removed file. */
bool cordon_where_find(const struct cordon_places *places, pid_t pid, const struct cordon_touch *touch,
		       struct cordon_where *ret);

#endif
