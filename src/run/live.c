/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the list of live runs, and removes what dead ones have left. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/dirs.h"
#include "base/io.h"
#include "base/lock.h"
#include "base/path.h"
#include "policy/shares.h"
#include "run/live.h"
#include "sandbox/host/limits.h"

#define RECORD_MAX ((size_t)4 << 20)
#define RECORD_MAGIC "cordon-run 2"
#define SPARE "spare-run" /* a file in state/ that the next run takes as its record */

/* A record is a list of strings, each with a NUL at its end: the magic, the root, then the protected paths, of which that
 * of a run in a view has none. Each path has a letter in front of it, which says whether the user asked for it or it is on the built-in list. */
#define ASKED 'a'
#define BY_DEFAULT 'd'

static bool is_default(const struct cordon_protected *path)
{
	return path->by_default && path->where && cordon_streq(path->where, CORDON_PROTECTED_BY_DEFAULT);
}

static int write_record(int fd, const struct cordon_policy *policy, bool view)
{
	autobuf struct cordon_buf text = CORDON_BUF(RECORD_MAX);
	int r;

	if ((r = cordon_buf_add(&text, RECORD_MAGIC, sizeof(RECORD_MAGIC))) < 0 ||
	    (r = cordon_buf_add(&text, policy->root.path, strlen(policy->root.path) + 1)) < 0)
		return r;
	for (size_t i = 0; !view && i < policy->n_protected; i++) {
		const struct cordon_protected *path = &policy->protected_paths[i];

		if ((r = cordon_buf_addc(&text, is_default(path) ? BY_DEFAULT : ASKED)) < 0 ||
		    (r = cordon_buf_add(&text, path->path, strlen(path->path) + 1)) < 0)
			return r;
	}
	r = cordon_write_all(fd, text.data, text.len);
	if (r == 0 && ftruncate(fd, (off_t)text.len) < 0)
		r = -errno;
	return r;
}

/* Whether the run of this record is dead: then nobody has the lock, and we get it. */
static bool is_dead(int fd)
{
	return cordon_lock(fd, LOCK_EX | LOCK_NB) == 0;
}

/* Whether a policy lets the run change an absolute path or something in it: where that lies in the root it must be protected
 * too, or not granted. */
static bool root_reaches(const struct cordon_policy *policy, const char *absolute)
{
	const char *root = policy->root.path;

	if (!cordon_path_within(absolute, root))
		return cordon_path_within(root, absolute) && cordon_policy_has_write(policy);
	absolute += strlen(root);
	return !cordon_policy_holds(policy, absolute + strspn(absolute, "/"));
}

static bool share_reaches(const struct cordon_policy_share *share, const char *absolute)
{
	if (share->read_only || share->kind != CORDON_SHARE_PLAIN || share->lower)
		return false;
	return share->policy ? root_reaches(share->policy, absolute) : cordon_path_within(share->source, absolute);
}

/* Whether this run could change an absolute path of the host; in a view only through shares. */
static bool reaches(const struct cordon_policy *policy, bool view, const char *absolute)
{
	bool any = !view && root_reaches(policy, absolute);

	for (size_t i = 0; !any && i < policy->n_shares; i++)
		any = share_reaches(&policy->shares[i], absolute);
	return any;
}

static bool has_defaults(const struct cordon_policy *policy)
{
	for (size_t i = 0; i < policy->n_protected; i++)
		if (is_default(&policy->protected_paths[i]))
			return true;
	return false;
}

static bool overlap(const char *a, const char *b)
{
	return cordon_path_within(a, b) || cordon_path_within(b, a);
}

/* Whether the root of another run has something in common with what this run sees. */
static bool meets(const struct cordon_policy *policy, const char *root)
{
	bool any = overlap(root, policy->root.path);

	for (size_t i = 0; !any && i < policy->n_shares; i++)
		any = overlap(root, policy->shares[i].source);
	return any;
}

/* Compares this run with one other record. Does not remove the record of a dead run, because gc finds by it what that
 * run left. */
static int compare(int dir_fd, const char *name, const struct cordon_policy *policy, bool view, bool *ret_dead,
		   struct cordon_error *err)
{
	autobuf struct cordon_buf text = CORDON_BUF(RECORD_MAX);
	autofd int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	const char *magic, *root, *path;
	size_t at = 0;

	if (fd < 0 || cordon_read_fd(fd, name, &text, NULL) < 0 || !text.len)
		return 0;
	magic = cordon_buf_next_string(&text, &at);
	root = cordon_buf_next_string(&text, &at);
	if (!magic || !cordon_streq(magic, RECORD_MAGIC) || !root || !meets(policy, root))
		return 0;
	if (is_dead(fd)) {
		*ret_dead = true;
		return 0;
	}
	while ((path = cordon_buf_next_string(&text, &at))) {
		char absolute[CORDON_PATH_MAX];

		/* A run that protects the built-in list in its own root need not protect that of another root. */
		if (*path == BY_DEFAULT && has_defaults(policy))
			continue;
		if (!*path || cordon_path_join(root, path + 1, absolute, sizeof(absolute)) < 0 ||
		    !reaches(policy, view, absolute))
			continue;
		cordon_fail(err, -EBUSY, CORDON_KIND_CONFLICT,
			    "run %s is active in %s and protects %s, which this run would not", name, root, absolute);
		cordon_error_hint(err, "protect it here too, or wait for that run to end");
		return -EBUSY;
	}
	return 0;
}

static int compare_all(int dir_fd, const struct cordon_policy *policy, bool view, bool *ret_dead,
		       struct cordon_error *err)
{
	int copy = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = copy < 0 ? NULL : fdopendir(copy);
	int r = 0;

	if (!dir) {
		r = -errno;
		if (copy >= 0)
			close(copy);
		return cordon_fail_errno(err, r, "cannot list the live runs");
	}
	for (struct dirent *entry; r == 0 && (entry = readdir(dir));)
		if (cordon_uuid_valid(entry->d_name))
			r = compare(dir_fd, entry->d_name, policy, view, ret_dead, err);
	closedir(dir);
	return r;
}

/* Makes a locked file with the run's name. Most of the time for a record goes into making and removing the file, so a
 * run leaves its file for the next one. */
static int make_record(const struct cordon_home *home, int dir_fd, const char *run_id)
{
	int fd;

	if (renameat2(home->state_fd, SPARE, dir_fd, run_id, RENAME_NOREPLACE) == 0) {
		fd = openat(dir_fd, run_id, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
		if (fd >= 0 && cordon_lock(fd, LOCK_EX | LOCK_NB) == 0)
			return fd;
		/* The run that left it has not released its lock yet. */
		cordon_closep(&fd);
		unlinkat(dir_fd, run_id, 0);
	}
	fd = openat(dir_fd, run_id, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0 || cordon_lock(fd, LOCK_EX | LOCK_NB) == 0)
		return fd < 0 ? -errno : fd;
	cordon_closep(&fd);
	return -EBUSY;
}

int cordon_live_enter(const struct cordon_home *home, const char *run_id, const struct cordon_policy *policy, bool view,
		      struct cordon_live_run *ret_record, struct cordon_error *err)
{
	autofd int dir = -1;
	autofd int fd = -1;
	struct cordon_gc_counts counts;
	bool dead = false;
	int r = cordon_home_subdir(home, "runs", &dir, err);

	if (r < 0)
		return r;
	/* Two runs that start at the same time must see each other's records. */
	r = cordon_lock(dir, LOCK_EX);
	if (r < 0)
		return cordon_fail_errno(err, r, "cannot lock the list of runs");
	r = compare_all(dir, policy, view, &dead, err);
	if (r < 0)
		return r;
	fd = make_record(home, dir, run_id);
	if (fd < 0)
		return cordon_fail_errno(err, fd, "cannot record the run %s", run_id);
	r = write_record(fd, policy, view);
	if (r < 0) {
		unlinkat(dir, run_id, 0);
		return cordon_fail_errno(err, r, "cannot record the run %s", run_id);
	}
	(void)cordon_lock(dir, LOCK_UN);
	if (dead)
		cordon_live_gc(home, &counts, NULL); /* a later run removes what this can't remove now */
	cordon_copy(ret_record->id, sizeof(ret_record->id), run_id, strlen(run_id));
	ret_record->state_fd = home->state_fd;
	ret_record->dir_fd = cordon_steal_fd(&dir);
	ret_record->fd = cordon_steal_fd(&fd);
	return 0;
}

void cordon_live_leave(struct cordon_live_run *record)
{
	if (record->dir_fd >= 0 && renameat2(record->dir_fd, record->id, record->state_fd, SPARE, RENAME_NOREPLACE) < 0)
		unlinkat(record->dir_fd, record->id, 0);
	cordon_closep(&record->fd);
	cordon_closep(&record->dir_fd);
}

static enum cordon_run_fate fate_of(const char *run_id, void *data)
{
	int dir_fd = *(int *)data;
	autofd int fd = openat(dir_fd, run_id, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return CORDON_RUN_UNKNOWN;
	return is_dead(fd) ? CORDON_RUN_GONE : CORDON_RUN_ALIVE;
}

/* Removes the temporary directories of dead runs of the lower tier: they belong to our user and have the name of such a
 * run. */
static size_t remove_directories(int runs_fd)
{
	const char *prefix = cordon_path_base(CORDON_TIER_TMP);
	DIR *dir = opendir("/tmp");
	size_t removed = 0;

	if (!dir)
		return 0;
	for (struct dirent *entry; (entry = readdir(dir));) {
		struct stat st;

		if (strncmp(entry->d_name, prefix, strlen(prefix)) != 0 ||
		    !cordon_uuid_valid(entry->d_name + strlen(prefix)) ||
		    fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode) ||
		    st.st_uid != geteuid() || fate_of(entry->d_name + strlen(prefix), &runs_fd) != CORDON_RUN_GONE)
			continue;
		if (cordon_dirs_remove(dirfd(dir), entry->d_name, NULL) == 0)
			removed++;
	}
	closedir(dir);
	return removed;
}

int cordon_live_gc(const struct cordon_home *home, struct cordon_gc_counts *ret_counts, struct cordon_error *err)
{
	struct cordon_gc_counts counts = { 0 };
	autofd int fd = -1;
	DIR *dir;
	int r = cordon_home_subdir(home, "runs", &fd, err);

	if (r < 0)
		return r;
	/* Cgroups and directories first, because the records, which are removed last, say which of them belong to dead
	 * runs. */
	r = cordon_limits_gc(fate_of, &fd, &counts.cgroups, err);
	if (r < 0)
		return r;
	counts.directories = remove_directories(fd);
	dir = fdopendir(fd);
	if (!dir)
		return cordon_fail_errno(err, -errno, "cannot list the runs");
	fd = -1;
	for (struct dirent *entry; (entry = readdir(dir));) {
		int record;

		if (!cordon_uuid_valid(entry->d_name))
			continue;
		record = openat(dirfd(dir), entry->d_name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
		if (record < 0)
			continue;
		/* A run that is just starting holds the lock of the directory until it has locked its record. */
		if (cordon_lock(dirfd(dir), LOCK_EX) == 0 && is_dead(record) &&
		    unlinkat(dirfd(dir), entry->d_name, 0) == 0)
			counts.records++;
		else
			counts.live++;
		(void)cordon_lock(dirfd(dir), LOCK_UN);
		close(record);
	}
	closedir(dir);
	*ret_counts = counts;
	return 0;
}
