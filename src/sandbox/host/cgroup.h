/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Control groups, as far as limits.c needs them: finds where ours may be made, makes one, ends its processes and
 * removes it. Nothing here walks down a hierarchy, and all that it reads is bounded.
 *
 * Ownership: a struct cordon_cgroup owns two descriptors; cordon_cgroup_done() closes them and removes nothing.
 */
#ifndef CORDON_SANDBOX_HOST_CGROUP_H
#define CORDON_SANDBOX_HOST_CGROUP_H

#include <sys/types.h>

#include "base/util.h"
#include "cordon.h"

#define CORDON_CGROUP_LEVELS 32 /* how many groups we look at, from our own one upwards */
#define CORDON_CGROUP_MOUNTINFO_MAX (8 << 20)
#define CORDON_CGROUP_TEXT_MAX (64 << 10)      /* of one file of a group */
#define CORDON_CGROUP_SELF "cordon-supervisor" /* where cordon_cgroup_move_to_leaf() moves a supervisor */

enum cordon_controller {
	CORDON_CONTROLLER_MEMORY,
	CORDON_CONTROLLER_PIDS,
	CORDON_CONTROLLER_CPU,
	CORDON_CONTROLLER__MAX
};

/* One hierarchy as this process sees it; `dir` is "" when it is not mounted or our group is not below the mount. */
struct cordon_cgroup_tree {
	char top[CORDON_PATH_MAX]; /* the mount point */
	char dir[CORDON_PATH_MAX]; /* the directory of our own group: `top` or below it */
};

struct cordon_cgroup_trees {
	struct cordon_cgroup_tree v2;
	struct cordon_cgroup_tree v1[CORDON_CONTROLLER__MAX];
};

struct cordon_cgroup {
	int parent_fd;
	int fd;
	bool v2;
	char path[CORDON_PATH_MAX];
};

/* "memory", "pids", "cpu". */
extern const char *const cordon_controller_names[CORDON_CONTROLLER__MAX];

/* Reads /proc/self/cgroup and /proc/self/mountinfo. 0 or -errno; on a host without cgroups 0 with empty paths. */
int cordon_cgroup_find(struct cordon_cgroup_trees *ret_trees);
/* The same from texts, for tests. */
void cordon_cgroup_parse(const char *cgroup, const char *mountinfo, struct cordon_cgroup_trees *ret_trees);

/* Write and read whole small files of a group. 0 or -errno. */
int cordon_cgroup_write(int dir_fd, const char *file, const char *text);
int cordon_cgroup_read(int dir_fd, const char *file, char *ret_text, size_t size);
/* Whether a list of words has this one. */
bool cordon_cgroup_has_word(const char *text, const char *word);
/* The number behind "key " at the start of a line; 0 when there is no such line. */
uint64_t cordon_cgroup_value(const char *text, const char *key);

/* Makes `name` in `parent`, which must be on a cgroup file system. 0 or -errno; *ret untouched on failure. */
int cordon_cgroup_make(const char *parent, const char *name, bool v2, struct cordon_cgroup *ret);
/* Opens a group that exists; -ENOENT when it does not. */
int cordon_cgroup_open(const char *parent, const char *name, struct cordon_cgroup *ret);
void cordon_cgroup_done(struct cordon_cgroup *group);

/* Whether the group has no process. A group that can't be read counts as used. */
bool cordon_cgroup_empty(const struct cordon_cgroup *group);
/* Ends every process in the group and removes it, within about two seconds. 0, or -errno when the group stays. */
int cordon_cgroup_remove(const struct cordon_cgroup *group, const char *name);

/*
 * v2 only: a group that enables controllers for its children may not contain processes itself. When this process is the
 * only one in its group, it moves into a group CORDON_CGROUP_SELF below it, so that other groups can be made beside
 * that one. 0, -EBUSY when other processes are in the group, or another -errno; nothing is changed on failure.
 * move_back() undoes it after it has disabled the controllers (a text such as "-memory -pids", or NULL).
 */
int cordon_cgroup_move_to_leaf(int own_fd);
void cordon_cgroup_move_back(int own_fd, const char *disable);

#endif
