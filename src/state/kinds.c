/* SPDX-License-Identifier: Apache-2.0 */
/* The table of what is on disk, and the walk through the directory of a kind. */
#include "state/kinds.h"

#include <dirent.h>
#include <fcntl.h>

#include "base/lock.h"
#include "base/path.h"

#define DAY_MS ((int64_t)24 * 3600 * 1000)
#define WEEK_MS (7 * DAY_MS)

const struct cordon_state_row cordon_state_kinds[CORDON_STATE_KIND__MAX] = {
	[CORDON_STATE_KIND_RUNS] = { "runs", ".", 0 },
	[CORDON_STATE_KIND_CREWS] = { "crew", "owner", WEEK_MS },
	[CORDON_STATE_KIND_VIEWS] = { "views", ".", WEEK_MS }, /* once applied or discarded; before that, for ever */
	[CORDON_STATE_KIND_COMMITS] = { "git", ".", 0 },       /* without commits; with some, for ever */
	[CORDON_STATE_KIND_LOOPS] = { "loops", "journal", WEEK_MS },
	[CORDON_STATE_KIND_WORKFLOWS] = { "flow", "lock", 30 * DAY_MS },
	[CORDON_STATE_KIND_STEPS] = { "steps", ".", 0 },
	[CORDON_STATE_KIND_APPROVALS] = { "approvals", NULL, WEEK_MS },
	[CORDON_STATE_KIND_SESSIONS] = { "sessions", "alive", 30 * DAY_MS },
	[CORDON_STATE_KIND_STAGING] = { "staging", NULL, CORDON_STATE_FOREVER }, /* the next store ends it */
	[CORDON_STATE_KIND_CHECKS] = { "git-check", NULL, CORDON_STATE_FOREVER },
	[CORDON_STATE_KIND_PROJECTS] = { "projects", NULL, CORDON_STATE_FOREVER },
	[CORDON_STATE_KIND_AUDIT] = { "audit", NULL, CORDON_STATE_FOREVER }, /* the log bounds itself */
	[CORDON_STATE_KIND_TOKENS] = { "tokens", NULL, CORDON_STATE_FOREVER },
	[CORDON_STATE_KIND_TRUST] = { "trust", NULL, CORDON_STATE_FOREVER },
	[CORDON_STATE_KIND_CONFIRMED] = { "confirmed", NULL, CORDON_STATE_FOREVER },
	[CORDON_STATE_KIND_WRITTEN] = { "written", NULL, CORDON_STATE_FOREVER },
	[CORDON_STATE_KIND_ATTESTATIONS] = { "attestations", NULL, CORDON_STATE_FOREVER }, /* they are evidence */
	[CORDON_STATE_KIND_KEPT] = { "kept", NULL, CORDON_STATE_FOREVER },
	[CORDON_STATE_KIND_SERVE] = { "serve", NULL, CORDON_STATE_FOREVER },
};

int cordon_state_kind_open(const struct cordon_home *home, cordon_state_kind kind, int *ret_fd, struct cordon_error *err)
{
	return cordon_home_subdir(home, cordon_state_kinds[kind].dir, ret_fd, err);
}

int cordon_state_kind_each(const struct cordon_home *home, cordon_state_kind kind,
			   int (*each)(void *data, int dir_fd, const char *name), void *data, struct cordon_error *err)
{
	autofd int fd = -1;
	DIR *dir;
	int r = cordon_state_kind_open(home, kind, &fd, err);

	if (r < 0)
		return r;
	dir = fdopendir(fd);
	if (!dir)
		return cordon_fail_errno(err, -errno, "cannot list state/%s", cordon_state_kinds[kind].dir);
	fd = -1; /* closedir() closes it */
	for (const struct dirent *entry; r == 0 && (entry = readdir(dir));)
		if (!cordon_streq(entry->d_name, ".") && !cordon_streq(entry->d_name, ".."))
			r = each(data, dirfd(dir), entry->d_name);
	closedir(dir);
	return r;
}

bool cordon_state_kind_lives(cordon_state_kind kind, int entry_fd)
{
	const char *alive = cordon_state_kinds[kind].alive;
	autofd int fd = alive ? openat(entry_fd, alive, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC) : -1;

	return fd >= 0 && cordon_lock_is_held(fd);
}
