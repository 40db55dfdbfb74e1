/* SPDX-License-Identifier: Apache-2.0 */
/* Records of runs whose commits are to be taken over. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "audit/audit.h"
#include "base/dirs.h"
#include "base/io.h"
#include "base/lock.h"
#include "base/path.h"
#include "git/record.h"
#include "policy/handover.h"
#include "state/kinds.h"

#define RECORDS_MAX 10000
#define YOUNG_S 60
#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

void cordon_git_record_close(struct cordon_git_record *record)
{
	cordon_closep(&record->dir_fd);
}

static int write_policy(const struct cordon_git_record *record, const struct cordon_policy *policy,
			struct cordon_error *err)
{
	autofd int fd = openat(record->dir_fd, "policy", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600), root = -1;
	int r = fd < 0 ? cordon_fail_errno(err, -errno, "cannot write %s/policy", record->path)
		       : cordon_handover_write(policy, !policy->no_editor_temps, fd, err);

	/* Nothing here waits for the disk: what the run commits does not, either. */
	root = r < 0 ? -1 : openat(record->dir_fd, "root", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (r == 0 && (root < 0 || cordon_write_all(root, policy->root.path, strlen(policy->root.path)) < 0))
		r = cordon_fail_errno(err, -errno, "cannot write %s/root", record->path);
	return r;
}

static int path_of(const struct cordon_home *home, struct cordon_git_record *record, struct cordon_error *err)
{
	return cordon_concat(record->path, sizeof(record->path), home->path, "/state/git/", record->id, (char *)NULL) < 0
		       ? cordon_fail_errno(err, -ENAMETOOLONG, "%s", home->path)
		       : 0;
}

int cordon_git_record_make(const struct cordon_home *home, const struct cordon_policy *policy,
			   struct cordon_git_record *ret_record, struct cordon_error *err)
{
	struct cordon_git_record record = CORDON_GIT_RECORD_NONE;
	autofd int dir = -1;
	int r = cordon_state_kind_open(home, CORDON_STATE_KIND_COMMITS, &dir, err);

	if (r < 0)
		return r;
	if ((r = cordon_uuid_new(record.id)) < 0)
		return cordon_fail_errno(err, r, "cannot make an id");
	if ((r = path_of(home, &record, err)) < 0)
		return r;
	if (mkdirat(dir, record.id, 0700) < 0 || (record.dir_fd = openat(dir, record.id, DIR_FLAGS)) < 0)
		r = -errno;
	if (r == 0)
		r = cordon_lock(record.dir_fd, LOCK_EX | LOCK_NB);
	if (r < 0)
		cordon_fail_errno(err, r, "cannot make %s", record.path);
	else
		r = write_policy(&record, policy, err);
	if (r < 0) {
		cordon_git_record_remove(home, &record, NULL);
		return r;
	}
	*ret_record = record;
	return 0;
}

static int read_root(int dir, const char *id, struct cordon_buf *ret)
{
	autofd int fd = openat(dir, id, DIR_FLAGS);

	ret->max = CORDON_PATH_MAX;
	return fd < 0 ? -errno : cordon_read_file(fd, "root", O_NOFOLLOW, ret, NULL);
}

struct entry {
	char id[CORDON_UUID_SIZE];
	struct timespec made;
};

static int by_time(const void *a, const void *b)
{
	const struct timespec *x = &((const struct entry *)a)->made, *y = &((const struct entry *)b)->made;

	if (x->tv_sec != y->tv_sec)
		return x->tv_sec < y->tv_sec ? -1 : 1;
	return x->tv_nsec < y->tv_nsec ? -1 : x->tv_nsec > y->tv_nsec;
}

static int list(int dir_fd, struct entry **ret_entries, size_t *ret_n, struct cordon_error *err)
{
	int fd = openat(dir_fd, ".", DIR_FLAGS);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct entry *entries = NULL;
	size_t n = 0, space = 0;
	int r = dir ? 0 : cordon_fail_errno(err, -errno, "cannot list the records");

	for (struct dirent *entry; r == 0 && n < RECORDS_MAX && (entry = readdir(dir));) {
		char path[CORDON_UUID_SIZE + 16];
		struct stat st;

		if (!cordon_uuid_valid(entry->d_name) ||
		    cordon_concat(path, sizeof(path), entry->d_name, "/policy", (char *)NULL) < 0 ||
		    fstatat(fd, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		if (n == space) {
			struct entry *bigger = reallocarray(entries, space ? 2 * space : 32, sizeof(*entries));

			if (!bigger) {
				r = cordon_fail_errno(err, -ENOMEM, "records");
				break;
			}
			entries = bigger;
			space = space ? 2 * space : 32;
		}
		cordon_copy(entries[n].id, sizeof(entries[n].id), entry->d_name, strlen(entry->d_name));
		entries[n++].made = st.st_mtim;
	}
	if (dir)
		closedir(dir);
	if (r < 0) {
		free(entries);
		return r;
	}
	if (n > 1)
		qsort(entries, n, sizeof(*entries), by_time);
	*ret_entries = entries;
	*ret_n = n;
	return 0;
}

int cordon_git_record_each(const struct cordon_home *home, int (*fn)(void *data, const char *id, const char *root),
			   void *data, struct cordon_error *err)
{
	autofree struct entry *entries = NULL;
	autofd int dir = -1;
	size_t n = 0;
	int r = cordon_state_kind_open(home, CORDON_STATE_KIND_COMMITS, &dir, err);

	if (r == 0)
		r = list(dir, &entries, &n, err);
	for (size_t i = 0; r == 0 && i < n; i++) {
		autobuf struct cordon_buf root = { 0 };

		if (read_root(dir, entries[i].id, &root) == 0 && root.len)
			r = fn(data, entries[i].id, root.data);
	}
	return r;
}

struct search {
	const char *text, *root;
	char found[CORDON_UUID_SIZE];
	unsigned int n;
};

static int match(void *data, const char *id, const char *root)
{
	struct search *search = data;
	bool latest = cordon_streq(search->text, "latest");

	if ((search->root && !cordon_streq(root, search->root)) ||
	    (!latest && strncmp(id, search->text, strlen(search->text)) != 0))
		return 0;
	search->n = latest ? 1 : search->n + 1;
	return cordon_copy(search->found, sizeof(search->found), id, strlen(id));
}

int cordon_git_record_open(const struct cordon_home *home, const char *text, const char *root,
			   struct cordon_git_record *ret_record, struct cordon_error *err)
{
	struct search search = { .text = text, .root = cordon_streq(text, "latest") ? root : NULL };
	struct cordon_git_record record = CORDON_GIT_RECORD_NONE;
	autofd int dir = -1;
	int r = cordon_git_record_each(home, match, &search, err);

	if (r < 0)
		return r;
	if (search.n != 1 || (strlen(text) < 4 && !cordon_streq(text, "latest"))) {
		r = cordon_fail(err, -ENOENT, search.n > 1 ? CORDON_KIND_USAGE : CORDON_KIND_NOT_FOUND,
				search.n > 1 ? "several runs have an id that begins with %s"
					     : "no run has commits that wait under the id %s",
				text);
		cordon_error_hint(err, "'cordon git list' has them");
		return r;
	}
	memcpy(record.id, search.found, sizeof(record.id));
	if ((r = path_of(home, &record, err)) < 0 ||
	    (r = cordon_state_kind_open(home, CORDON_STATE_KIND_COMMITS, &dir, err)) < 0)
		return r;
	record.dir_fd = openat(dir, record.id, DIR_FLAGS);
	if (record.dir_fd < 0)
		return cordon_fail_errno(err, -errno, "cannot open %s", record.path);
	r = cordon_lock(record.dir_fd, LOCK_EX | LOCK_NB);
	if (r < 0) {
		r = r == -EWOULDBLOCK
			    ? cordon_fail(err, -EBUSY, CORDON_KIND_CONFLICT, "the run of %s has not ended", record.id)
			    : cordon_fail_errno(err, r, "cannot lock %s", record.path);
		cordon_git_record_close(&record);
		return r;
	}
	*ret_record = record;
	return 0;
}

int cordon_git_record_policy(const struct cordon_git_record *record, struct cordon_policy **ret_policy,
			     struct cordon_error *err)
{
	autobuf struct cordon_buf path = CORDON_BUF(CORDON_PATH_MAX);
	struct cordon_root root = { .fd = -1 };
	autofd int fd = openat(record->dir_fd, "policy", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	bool temps;
	int r = fd < 0 ? cordon_fail_errno(err, -errno, "cannot read %s/policy", record->path)
		       : cordon_read_file(record->dir_fd, "root", O_NOFOLLOW, &path, err);

	if (r == 0)
		r = cordon_root_open(path.data ? path.data : "", &root, err);
	if (r == 0)
		r = cordon_handover_read(fd, root.fd, ret_policy, &temps, err);
	cordon_root_done(&root);
	return r;
}

int cordon_git_record_remove(const struct cordon_home *home, struct cordon_git_record *record, struct cordon_error *err)
{
	autofd int dir = -1;
	int r = cordon_state_kind_open(home, CORDON_STATE_KIND_COMMITS, &dir, err);

	if (r == 0)
		r = cordon_dirs_remove(dir, record->id, err);
	cordon_git_record_close(record);
	return r;
}

struct gc {
	const struct cordon_home *home;
	size_t removed;
};

static int collect(void *data, int dir, const char *name)
{
	struct gc *gc = data;
	struct cordon_git_record record = CORDON_GIT_RECORD_NONE;
	struct stat st;

	if (!cordon_uuid_valid(name))
		return 0;
	memcpy(record.id, name, sizeof(record.id));
	record.dir_fd = openat(dir, record.id, DIR_FLAGS);
	/* A run that is just being made has no lock yet. */
	if (record.dir_fd >= 0 && fstat(record.dir_fd, &st) == 0 && st.st_mtim.tv_sec + YOUNG_S < time(NULL) &&
	    cordon_lock(record.dir_fd, LOCK_EX | LOCK_NB) == 0 && path_of(gc->home, &record, NULL) == 0 &&
	    !cordon_git_changed(record.path))
		gc->removed += cordon_git_record_remove(gc->home, &record, NULL) == 0;
	cordon_git_record_close(&record);
	return 0;
}

int cordon_git_record_gc(const struct cordon_home *home, size_t *ret_removed, struct cordon_error *err)
{
	struct gc gc = { .home = home };
	int r = cordon_state_kind_each(home, CORDON_STATE_KIND_COMMITS, collect, &gc, err);

	*ret_removed = gc.removed;
	return r;
}

/* Writes what was taken over, or why it was not; `failed` may be NULL. */
static void audit(const struct cordon_home *home, const struct cordon_git_record *record, const char *root,
		  const struct cordon_git_take *take, const struct cordon_error *failed)
{
	bool taken = take && take->state == CORDON_GIT_TAKEN, refused = take && take->state == CORDON_GIT_REFUSED;
	struct cordon_audit_event event = {
		.type = failed || refused ? CORDON_AUDIT_REFUSAL : CORDON_AUDIT_CHANGES,
		.op = "git-take",
		.path = root,
		.success = failed || refused ? CORDON_AUDIT_FAILED : CORDON_AUDIT_SUCCEEDED,
		.kind = failed	  ? failed->kind
			: refused ? CORDON_KIND_POLICY_DENIED
				  : CORDON_KIND_NONE,
	};
	struct cordon_audit_ids ids = { 0 };
	struct cordon_audit *log = NULL;

	if (!failed && !taken && !refused)
		return;
	event.detail = json_pack("{s:s, s:I, s:I, s:I}", "record", record->id, "commits",
				 (json_int_t)(take ? take->n_commits : 0), "refs", (json_int_t)(take ? take->n_refs : 0),
				 "refused", (json_int_t)(take ? take->n_refused : 0));
	if (cordon_audit_open(home, &ids, &log, NULL) == 0)
		cordon_audit_write(log, &event, NULL);
	cordon_audit_close(log);
	json_decref(event.detail);
}

int cordon_git_record_take(const struct cordon_home *home, struct cordon_git_record *record,
			   struct cordon_git_take **ret_take, struct cordon_error *err)
{
	CORDON_CLEANUP(cordon_policy_freep) struct cordon_policy *policy = NULL;
	struct cordon_git_take *take = NULL;
	struct cordon_error own = { 0 };
	int r;

	err = err ? err : &own;
	r = cordon_git_record_policy(record, &policy, err);
	if (r == 0)
		r = cordon_git_take_judge(policy, record->path, &take, err);
	if (r == 0 && take->state == CORDON_GIT_READY)
		r = cordon_git_take_finish(take, err);
	if (r < 0)
		cordon_error_hint(err, "'cordon git take %.8s' tries again", record->id);
	audit(home, record, policy ? policy->root.path : NULL, take, r < 0 ? err : NULL);
	if (r == 0 && take->state != CORDON_GIT_REFUSED)
		cordon_git_record_remove(home, record, NULL);
	cordon_git_record_close(record);
	*ret_take = take;
	return r;
}
