/* SPDX-License-Identifier: Apache-2.0 */
/* Where a path that the agent named leads, seen from outside with O_PATH and nothing else. */
#ifndef CORDON_SANDBOX_WATCH_WHERE_H
#define CORDON_SANDBOX_WATCH_WHERE_H

#include "sandbox/plan.h"
#include "sandbox/watch_calls.h"

struct cordon_where {
	bool shown;  /* the agent's tree leads at least to the directory of it; false: only the host's does */
	bool exists; /* something stands there: inside when `shown`, else on the host */
	char inside[CORDON_PATH_MAX]; /* absolute, as the agent sees it */
	char host[CORDON_PATH_MAX];   /* the same in the host's terms */
};

/* The directories whose files programs always read, NULL-terminated; docs/watch.md has the same list. */
extern const char *const cordon_watch_system[];

/* Whether the text alone says that a path lies in a system directory: no "..", no way through a process's entry in
 * /proc. Links there are the administrator's. Costs no system call. */
bool cordon_where_plainly_system(const char *path);
/* The same of a path that was resolved. */
bool cordon_where_is_system(const char *path);

/* The host's name of what stands at an inside path: the agent may see the root, a share or its home elsewhere. */
bool cordon_where_to_host(const struct cordon_plan *plan, const char *inside, char ret[static CORDON_PATH_MAX]);

/* Where to look. */
struct cordon_places {
	const struct cordon_plan *plan;
	int root_fd;	  /* the root directory that the agent's processes have, or -1 */
	int workspace_fd; /* the workspace's own root on the host */
};

/* Whether a path leads by no link to a place in the workspace, be something there or not; `ret` is that place below the root.
 * At most two system calls, which is what most calls of a build get. False says nothing. */
bool cordon_where_plainly_within(const struct cordon_places *places, const struct cordon_touch *touch,
				 char ret[static CORDON_PATH_MAX]);

/* Whether something stands, now, where a call acts: in the agent's tree, or hidden from it on the host. */
bool cordon_where_exists(const struct cordon_places *places, pid_t pid, const struct cordon_touch *touch);

/* False for what has no name (a pipe, a removed file). */
bool cordon_where_find(const struct cordon_places *places, pid_t pid, const struct cordon_touch *touch,
		       struct cordon_where *ret);

#endif
