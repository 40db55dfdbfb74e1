/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Control groups as far as limits.c needs them: where ours may be made, making one, ending and removing it. Nothing
 * is walked downwards; what is read is bounded.
 *
 * Ownership: a struct cordon_cgroup owns two descriptors; cordon_cgroup_done() closes them and removes nothing.
 */
#ifndef CORDON_SANDBOX_CGROUP_H
#define CORDON_SANDBOX_CGROUP_H

#include <sys/types.h>

#include "base/util.h"
#include "cordon.h"

#define CORDON_CGROUP_LEVELS 32 /* ancestors looked at, from our own group upwards */
#define CORDON_CGROUP_MOUNTINFO_MAX (8 << 20)
#define CORDON_CGROUP_TEXT_MAX (64 << 10)      /* of one file of a group */
#define CORDON_CGROUP_SELF "cordon-supervisor" /* where a supervisor steps aside, see cordon_cgroup_step_aside() */

enum cordon_controller {
	CORDON_CONTROLLER_MEMORY,
	CORDON_CONTROLLER_PIDS,
	CORDON_CONTROLLER_CPU,
	CORDON_CONTROLLER__MAX
};

/* One hierarchy as this process sees it; `dir` is "" when it is not mounted or our group is not below the mount. */
struct cordon_cgroup_tree {
	char top[CORDON_PATH_MAX]; /* the mount point */
	char dir[CORDON_PATH_MAX]; /* our own group's directory, at or below top */
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

/* Reads /proc/self/cgroup and /proc/self/mountinfo. 0 or -errno; a host without cgroups is 0 with empty paths. */
int cordon_cgroup_find(struct cordon_cgroup_trees *ret_trees);
/* The same from texts, for tests. */
void cordon_cgroup_parse(const char *cgroup, const char *mountinfo, struct cordon_cgroup_trees *ret_trees);

/* Whole small files of a group, by descriptor. 0 or -errno. */
int cordon_cgroup_write(int dir_fd, const char *file, const char *text);
int cordon_cgroup_read(int dir_fd, const char *file, char *ret_text, size_t size);
/* Whether a list of words has this one; the number behind "key " at the start of a line, 0 without one. */
bool cordon_cgroup_has_word(const char *text, const char *word);
uint64_t cordon_cgroup_value(const char *text, const char *key);

/* Makes `name` in `parent`, which must be on a cgroup file system. 0 or -errno; *ret untouched on failure. */
int cordon_cgroup_make(const char *parent, const char *name, bool v2, struct cordon_cgroup *ret);
/* The same, for a group that is there: -ENOENT if not. */
int cordon_cgroup_open(const char *parent, const char *name, struct cordon_cgroup *ret);
void cordon_cgroup_done(struct cordon_cgroup *group);

/* Whether no process is in it. An unreadable one counts as used. */
bool cordon_cgroup_empty(const struct cordon_cgroup *group);
/* Ends every process in it and removes it, within about two seconds. 0 or -errno of what stays. */
int cordon_cgroup_remove(const struct cordon_cgroup *group, const char *name);

/*
 * v2 only: a group that hands out controllers may hold no process itself. Where this process is the only one in its
 * group, it moves into a group CORDON_CGROUP_SELF below it, so that others can be made beside it; step_back() undoes
 * that, after the controllers (a text such as "-memory -pids", or NULL) were taken back. 0, -EBUSY with company, or
 * another -errno; nothing is changed on failure.
 */
int cordon_cgroup_step_aside(int own_fd);
void cordon_cgroup_step_back(int own_fd, const char *disable);

#endif
