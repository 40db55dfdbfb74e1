/* SPDX-License-Identifier: Apache-2.0 */
/* Walks the writable part of the root, within bounds, and compares times. */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/path.h"
#include "base/time.h"
#include "protect/executes.h"
#include "run/changes.h"

struct walk {
	const struct cordon_policy *policy;
	struct timespec since;
	int64_t deadline;
	struct cordon_changes *changes;
	const struct cordon_changes_listener *listener; /* or NULL */
	char **dirs; /* the folders that are still to be read, relative to the root */
	size_t n, cap;
	bool explained; /* something in the current folder is new, which may be why the folder's own time is new */
};

static int push(struct walk *walk, const char *path)
{
	if (walk->n == walk->cap) {
		size_t cap = walk->cap ? walk->cap * 2 : 64;
		char **bigger = reallocarray(walk->dirs, cap, sizeof(*bigger));

		if (!bigger)
			return -ENOMEM;
		walk->dirs = bigger;
		walk->cap = cap;
	}
	walk->dirs[walk->n] = strdup(path);
	return walk->dirs[walk->n] ? (int)(walk->n++, 0) : -ENOMEM;
}

static bool is_since(const struct statx_timestamp *time, const struct timespec *since)
{
	return time->tv_sec > since->tv_sec || (time->tv_sec == since->tv_sec && time->tv_nsec >= since->tv_nsec);
}

static bool in_git(const char *path)
{
	for (const char *at = path; at; at = strchr(at, '/') ? strchr(at, '/') + 1 : NULL)
		if (cordon_path_within(at, ".git"))
			return true;
	return false;
}

static int add_change(struct walk *walk, const char *path, const struct statx *st)
{
	struct cordon_changes *changes = walk->changes;
	bool created = st->stx_mask & STATX_BTIME && is_since(&st->stx_btime, &walk->since);
	const char *who = cordon_executes(path, st->stx_mode);
	struct cordon_decision decision;

	cordon_policy_decide(walk->policy, path, CORDON_OP_WRITE, &decision);
	if (decision.verdict == CORDON_DENY)
		return 0; /* the run could not write it, so the host changed it */
	if (!in_git(path)) {
		int r = walk->listener ? walk->listener->file(walk->listener->data, path, created) : 0;

		if (r < 0)
			return r;
		changes->created += created;
		changes->modified += !created;
	}
	if (!who || changes->n_executes++ >= CORDON_CHANGES_SHOWN_MAX)
		return 0;
	changes->executes[changes->n_executes - 1] = (struct cordon_change){ strdup(path), who, created };
	return changes->executes[changes->n_executes - 1].path ? 0 : -ENOMEM;
}

static int check_entry(struct walk *walk, int dir_fd, const char *dir, const char *name)
{
	char path[CORDON_PATH_MAX];
	struct statx st;

	if (cordon_path_join(dir, name, path, sizeof(path)) < 0) {
		walk->changes->stopped = true;
		return 0;
	}
	if (statx(dir_fd, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, STATX_BASIC_STATS | STATX_BTIME, &st) < 0)
		return 0;
	walk->explained |= is_since(&st.stx_ctime, &walk->since);
	if (S_ISDIR(st.stx_mode)) {
		/* Git's objects are many, their names are hashes of their content, and nobody executes them. */
		bool objects = cordon_streq(name, "objects") && in_git(path);

		return objects || st.stx_attributes & STATX_ATTR_MOUNT_ROOT ? 0 : push(walk, path);
	}
	return is_since(&st.stx_ctime, &walk->since) ? add_change(walk, path, &st) : 0;
}

static bool exhausted(struct walk *walk)
{
	if (walk->changes->looked >= CORDON_CHANGES_ENTRIES_MAX ||
	    (walk->changes->looked % 256 == 0 && cordon_time_monotonic() > walk->deadline))
		walk->changes->stopped = true;
	return walk->changes->stopped;
}

/* Adds a folder whose time is new although nothing in it is: something was removed from it. */
static int add_removed_from(struct walk *walk, int fd, const char *dir)
{
	struct cordon_changes *changes = walk->changes;
	struct statx st;

	if (walk->explained || changes->stopped || in_git(dir) ||
	    statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &st) < 0 || !is_since(&st.stx_mtime, &walk->since))
		return 0;
	if (changes->n_removed_from++ >= CORDON_CHANGES_SHOWN_MAX)
		return 0;
	changes->removed_from[changes->n_removed_from - 1] = strdup(dir);
	return changes->removed_from[changes->n_removed_from - 1] ? 0 : -ENOMEM;
}

/* Counts a folder that changed and that we can't read: a program that knows a name in it can still use what is
 * there. */
static int add_unread(struct walk *walk, const char *dir)
{
	autofd int fd = cordon_open_beneath(walk->policy->root.fd, dir, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct statx st;

	if (fd < 0 || statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &st) < 0 || !S_ISDIR(st.stx_mode) ||
	    !is_since(&st.stx_ctime, &walk->since) || walk->changes->n_unread++)
		return 0;
	walk->changes->unread = strdup(dir);
	return walk->changes->unread ? 0 : -ENOMEM;
}

static int read_dir(struct walk *walk, const char *dir)
{
	int fd = cordon_open_beneath(walk->policy->root.fd, dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *stream = fd < 0 ? NULL : fdopendir(fd);
	int r = 0;

	if (!stream) {
		if (fd >= 0)
			close(fd);
		return fd == -EACCES ? add_unread(walk, dir) : 0;
	}
	walk->explained = false;
	for (struct dirent *entry; r == 0 && (entry = readdir(stream));) {
		if (cordon_streq(entry->d_name, ".") || cordon_streq(entry->d_name, ".."))
			continue;
		walk->changes->looked++;
		if (exhausted(walk))
			break;
		r = check_entry(walk, dirfd(stream), dir, entry->d_name);
	}
	if (r == 0)
		r = add_removed_from(walk, dirfd(stream), dir);
	closedir(stream);
	return r;
}

/* Checks a granted file, or adds a granted folder to those that are walked. A grant that is a link is not in the
 * scope. */
static int push_grant(struct walk *walk, const char *path)
{
	autofd int fd = cordon_open_beneath(walk->policy->root.fd, path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct statx st;

	if (fd < 0 || statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME, &st) < 0)
		return 0;
	if (S_ISDIR(st.stx_mode))
		return push(walk, path);
	return is_since(&st.stx_ctime, &walk->since) ? add_change(walk, path, &st) : 0;
}

/* Adds the folders where the walk begins: the writable ones, without those that lie in another; or the root, when a
 * pattern or the mode lets the run write in other places too. */
static int begin(struct walk *walk)
{
	const struct cordon_policy *policy = walk->policy;
	bool everywhere = policy->mode == CORDON_MODE_PERMISSIVE || !cordon_policy_has_scope(policy);
	int r = 0;

	if (policy->read_only)
		return 0;
	for (size_t i = 0; i < policy->n_grants; i++)
		for (size_t j = 0; j < cordon_pattern_alternatives(policy->grants[i].pattern); j++)
			everywhere |= policy->grants[i].access == CORDON_ACCESS_WRITE &&
				      !cordon_pattern_literal(policy->grants[i].pattern, j);
	if (everywhere)
		return push(walk, "");
	for (size_t i = 0; r == 0 && i < policy->n_grants; i++) {
		for (size_t j = 0; r == 0 && j < cordon_pattern_alternatives(policy->grants[i].pattern); j++) {
			const char *path = cordon_pattern_literal(policy->grants[i].pattern, j);
			bool covered = policy->grants[i].access != CORDON_ACCESS_WRITE;

			for (size_t k = 0; k < policy->n_grants && !covered; k++)
				for (size_t l = 0; l < cordon_pattern_alternatives(policy->grants[k].pattern); l++) {
					const char *other = cordon_pattern_literal(policy->grants[k].pattern, l);
					bool same = cordon_streq(other, path);

					covered |= policy->grants[k].access == CORDON_ACCESS_WRITE &&
						   cordon_path_within(path, other) &&
						   (!same || k < i || (k == i && l < j));
				}
			if (!covered)
				r = push_grant(walk, path);
		}
	}
	return r;
}

int cordon_changes_find(const struct cordon_policy *policy, const struct timespec *since,
			const struct cordon_changes_listener *listener, struct cordon_changes *ret,
			struct cordon_error *err)
{
	struct cordon_changes changes = { 0 };
	struct walk walk = { .policy = policy,
			     .since = *since,
			     .changes = &changes,
			     .listener = listener,
			     .deadline = cordon_time_monotonic() + CORDON_CHANGES_MS_MAX };
	int r = begin(&walk);

	while (r == 0 && walk.n && !changes.stopped) {
		autofree char *dir = walk.dirs[--walk.n];

		r = read_dir(&walk, dir);
	}
	while (walk.n)
		free(walk.dirs[--walk.n]);
	free(walk.dirs);
	if (r < 0) {
		cordon_changes_done(&changes);
		return cordon_fail_errno(err, r, "changes of the run");
	}
	*ret = changes;
	return 0;
}

void cordon_changes_done(struct cordon_changes *changes)
{
	for (size_t i = 0; i < CORDON_CHANGES_SHOWN_MAX; i++) {
		free(changes->executes[i].path);
		free(changes->removed_from[i]);
	}
	free(changes->unread);
	*changes = (struct cordon_changes){ 0 };
}
