/* SPDX-License-Identifier: Apache-2.0 */
/* Which runs live, and what dead ones left. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/path.h"
#include "base/tree.h"
#include "sandbox/runs.h"

#define RECORD_MAX ((size_t)4 << 20)
#define RECORD_MAGIC "cordon-run 1"
#define SPARE "spare-run" /* in state/ */

/* A record is a list of strings, each ended by NUL: the magic, the root, then the protected paths. */
static int write_record(int fd, const struct cordon_policy *policy)
{
	autobuf struct cordon_buf text = CORDON_BUF(RECORD_MAX);
	int r;

	if ((r = cordon_buf_add(&text, RECORD_MAGIC, sizeof(RECORD_MAGIC))) < 0 ||
	    (r = cordon_buf_add(&text, policy->root.path, strlen(policy->root.path) + 1)) < 0)
		return r;
	for (size_t i = 0; i < policy->n_protected; i++)
		if ((r = cordon_buf_add(&text, policy->protected_paths[i].path,
					strlen(policy->protected_paths[i].path) + 1)) < 0)
			return r;
	r = cordon_write_all(fd, text.data, text.len);
	if (r == 0 && ftruncate(fd, (off_t)text.len) < 0)
		r = -errno;
	return r;
}

/* Next string of a record; NULL at its end or when it is not ended properly. */
static const char *next_string(const struct cordon_buf *text, size_t *at)
{
	const char *s = text->data + *at;
	const char *end = *at < text->len ? memchr(s, '\0', text->len - *at) : NULL;

	if (!end)
		return NULL;
	*at += (size_t)(end - s) + 1;
	return s;
}

/* True when the lock could be had: nobody lives behind this file. */
static bool is_dead(int fd)
{
	return flock(fd, LOCK_EX | LOCK_NB) == 0;
}

static bool protects(const struct cordon_policy *policy, const char *absolute)
{
	char path[CORDON_PATH_MAX];

	for (size_t i = 0; i < policy->n_protected; i++)
		if (cordon_path_join(policy->root.path, policy->protected_paths[i].path, path, sizeof(path)) == 0 &&
		    cordon_path_within(absolute, path))
			return true;
	return policy->read_only;
}

/* Compares with one other record. One whose run is dead is for gc, which tells left-overs by it. */
static int compare(int dir_fd, const char *name, const struct cordon_policy *policy, bool *ret_dead,
		   struct cordon_error *err)
{
	autobuf struct cordon_buf text = CORDON_BUF(RECORD_MAX);
	autofd int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	const char *magic, *root, *path;
	size_t at = 0;

	if (fd < 0 || cordon_read_fd(fd, name, &text, NULL) < 0 || !text.len)
		return 0;
	magic = next_string(&text, &at);
	root = next_string(&text, &at);
	if (!magic || !cordon_streq(magic, RECORD_MAGIC) || !root ||
	    (!cordon_path_within(root, policy->root.path) && !cordon_path_within(policy->root.path, root)))
		return 0;
	if (is_dead(fd)) {
		*ret_dead = true;
		return 0;
	}
	while ((path = next_string(&text, &at))) {
		char absolute[CORDON_PATH_MAX];

		if (cordon_path_join(root, path, absolute, sizeof(absolute)) < 0 ||
		    !cordon_path_within(absolute, policy->root.path) || protects(policy, absolute))
			continue;
		cordon_fail(err, -EBUSY, CORDON_KIND_CONFLICT,
			    "run %s is active in %s and protects %s, which this run would not", name, root, absolute);
		cordon_error_hint(err, "protect it here too, or wait for that run to end");
		return -EBUSY;
	}
	return 0;
}

static int compare_all(int dir_fd, const struct cordon_policy *policy, bool *ret_dead, struct cordon_error *err)
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
			r = compare(dir_fd, entry->d_name, policy, ret_dead, err);
	closedir(dir);
	return r;
}

/* A locked file of the run's name. Making and removing one is most of what a record costs, so one is kept for the next. */
static int make_record(const struct cordon_home *home, int dir_fd, const char *run_id)
{
	int fd;

	if (renameat2(home->state_fd, SPARE, dir_fd, run_id, RENAME_NOREPLACE) == 0) {
		fd = openat(dir_fd, run_id, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
		if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
			return fd;
		/* Who laid it down has not let go of it yet. */
		cordon_closep(&fd);
		unlinkat(dir_fd, run_id, 0);
	}
	fd = openat(dir_fd, run_id, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) == 0)
		return fd < 0 ? -errno : fd;
	cordon_closep(&fd);
	return -EBUSY;
}

int cordon_runs_enter(const struct cordon_home *home, const char *run_id, const struct cordon_policy *policy,
		      struct cordon_run_record *ret_record, struct cordon_error *err)
{
	autofd int dir = -1;
	autofd int fd = -1;
	struct cordon_gc_counts counts;
	bool dead = false;
	int r = cordon_home_subdir(home, "runs", &dir, err);

	if (r < 0)
		return r;
	/* Two runs that start at once must see each other. Released when the directory is closed. */
	if (flock(dir, LOCK_EX) < 0)
		return cordon_fail_errno(err, -errno, "cannot lock the list of runs");
	r = compare_all(dir, policy, &dead, err);
	if (r < 0)
		return r;
	fd = make_record(home, dir, run_id);
	if (fd < 0)
		return cordon_fail_errno(err, fd, "cannot record the run %s", run_id);
	r = write_record(fd, policy);
	if (r < 0) {
		unlinkat(dir, run_id, 0);
		return cordon_fail_errno(err, r, "cannot record the run %s", run_id);
	}
	flock(dir, LOCK_UN);
	if (dead)
		cordon_runs_gc(home, &counts, NULL); /* rare; what it can't remove now is for the next one */
	cordon_copy(ret_record->id, sizeof(ret_record->id), run_id, strlen(run_id));
	ret_record->state_fd = home->state_fd;
	ret_record->dir_fd = cordon_steal_fd(&dir);
	ret_record->fd = cordon_steal_fd(&fd);
	return 0;
}

void cordon_runs_leave(struct cordon_run_record *record)
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

/* Temporary directories of dead runs of the lower tier: ours by owner, theirs by name. */
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
		if (cordon_tree_remove(dirfd(dir), entry->d_name, NULL) == 0)
			removed++;
	}
	closedir(dir);
	return removed;
}

int cordon_runs_gc(const struct cordon_home *home, struct cordon_gc_counts *ret_counts, struct cordon_error *err)
{
	struct cordon_gc_counts counts = { 0 };
	autofd int fd = -1;
	DIR *dir;
	int r = cordon_home_subdir(home, "runs", &fd, err);

	if (r < 0)
		return r;
	/* Cgroups first: they are told apart by the records that the second step removes. */
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
		/* A run that is just starting holds the lock of the directory until its own is taken. */
		if (flock(dirfd(dir), LOCK_EX) == 0 && is_dead(record) && unlinkat(dirfd(dir), entry->d_name, 0) == 0)
			counts.records++;
		else
			counts.live++;
		flock(dirfd(dir), LOCK_UN);
		close(record);
	}
	closedir(dir);
	*ret_counts = counts;
	return 0;
}
