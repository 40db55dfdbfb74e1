/* SPDX-License-Identifier: Apache-2.0 */
/* Removes the control groups that a killed supervisor has left. */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

#include "base/util.h"
#include "sandbox/host/limits.h"

#define ENTRIES_MAX 65536 /* we look at no more in one directory */
#define UNKNOWN_AGE_S 60

struct sweep {
	cordon_limits_fate_fn fate;
	void *data;
	size_t removed;
	int first_error;
};

static const char *run_id_of(const char *name)
{
	size_t n = sizeof(CORDON_LIMITS_PREFIX) - 1;

	return strncmp(name, CORDON_LIMITS_PREFIX, n) == 0 && cordon_uuid_valid(name + n) ? name + n : NULL;
}

/* A cgroup directory has the times of its inode in memory, which is never older than the group: so we never take a
 * young group for an old one. */
static bool is_old(const struct cordon_cgroup *group)
{
	struct stat st;

	return fstat(group->fd, &st) == 0 && time(NULL) - st.st_mtime > UNKNOWN_AGE_S;
}

static void check_group(struct sweep *sweep, const char *dir, const char *name)
{
	const char *run_id = run_id_of(name);
	struct cordon_cgroup group;
	enum cordon_run_fate fate;
	int r;

	if (!run_id && !cordon_streq(name, CORDON_CGROUP_SELF))
		return;
	/* A killed supervisor may also leave its own empty group CORDON_CGROUP_SELF. */
	fate = run_id ? sweep->fate(run_id, sweep->data) : CORDON_RUN_UNKNOWN;
	if (fate == CORDON_RUN_ALIVE || cordon_cgroup_open(dir, name, &group) < 0)
		return;
	if (fate == CORDON_RUN_GONE || (cordon_cgroup_empty(&group) && is_old(&group))) {
		r = cordon_cgroup_remove(&group, name);
		if (r == 0)
			sweep->removed++;
		else if (fate == CORDON_RUN_GONE && sweep->first_error == 0)
			sweep->first_error = r; /* an unknown group may belong to another user, who can remove it */
	}
	cordon_cgroup_done(&group);
}

static void sweep_dir(struct sweep *sweep, const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *entry;

	if (!dir)
		return;
	for (size_t n = 0; n < ENTRIES_MAX && (entry = readdir(dir)); n++)
		if (entry->d_type == DT_DIR)
			check_group(sweep, path, entry->d_name);
	closedir(dir);
}

/* Looks in our own group and its ancestors up to the mount point. */
static void sweep_tree(struct sweep *sweep, const struct cordon_cgroup_tree *tree)
{
	char dir[CORDON_PATH_MAX];

	if (cordon_copy(dir, sizeof(dir), tree->dir, strlen(tree->dir)) < 0)
		return;
	for (int level = 0; level < CORDON_CGROUP_LEVELS && *dir; level++) {
		sweep_dir(sweep, dir);
		if (cordon_streq(dir, tree->top))
			return;
		*strrchr(dir, '/') = '\0';
	}
}

int cordon_limits_gc(cordon_limits_fate_fn fate, void *data, size_t *ret_removed, struct cordon_error *err)
{
	autofree struct cordon_cgroup_trees *trees = malloc(sizeof(*trees));
	struct sweep sweep = { .fate = fate, .data = data };
	int r = trees ? cordon_cgroup_find(trees) : -ENOMEM;

	if (r < 0)
		return cordon_fail_errno(err, r, "cannot find the control groups of this process");
	sweep_tree(&sweep, &trees->v2);
	for (size_t c = 0; c < CORDON_CONTROLLER__MAX; c++) {
		bool seen = false;

		for (size_t before = 0; before < c; before++)
			seen |= cordon_streq(trees->v1[before].dir, trees->v1[c].dir);
		if (!seen)
			sweep_tree(&sweep, &trees->v1[c]);
	}
	if (sweep.first_error < 0)
		return cordon_fail_errno(err, sweep.first_error,
					 "a control group of a run that is gone cannot be removed");
	*ret_removed = sweep.removed;
	return 0;
}
