/* SPDX-License-Identifier: Apache-2.0 */
/* The head of the audit log, its lock, the names of its files, and the view that readers have of them. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#include "audit/chain.h"
#include "base/time.h"

/* The text always has the same length, so that it can be replaced in place. */
#define HEAD_FORMAT "cordon-audit-head 1 %020llu %020llu %020llu %s\n"
#define HEAD_WORDS "cordon-audit-head 1 "
#define HEAD_LEN (sizeof(HEAD_WORDS) - 1 + 21 + 21 + 21 + CORDON_AUDIT_HASH_SIZE)
#define VIEW_MAX (2UL * CORDON_CHAIN_KEEP_MAX)
#define READ_FLAGS (O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)

int cordon_chain_lock(int head_fd, int how, int64_t wait_ms)
{
	int64_t deadline = cordon_time_monotonic() + wait_ms;
	struct timespec pause = { .tv_nsec = 20000 };

	/* flock() has no time limit, and a stopped process may hold the lock for ever. */
	while (flock(head_fd, how | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return -errno;
		if (cordon_time_monotonic() >= deadline)
			return -ETIMEDOUT;
		nanosleep(&pause, NULL);
		if (pause.tv_nsec < 1000000)
			pause.tv_nsec *= 2;
	}
	return 0;
}

void cordon_chain_name(uint64_t number, char ret[static CORDON_CHAIN_NAME_SIZE])
{
	snprintf(ret, CORDON_CHAIN_NAME_SIZE, "audit-%06llu.jsonl", (unsigned long long)number);
}

static bool parse_name(const char *name, uint64_t *ret_number)
{
	char digits[24], again[CORDON_CHAIN_NAME_SIZE];
	size_t n;

	if (strncmp(name, "audit-", 6) != 0)
		return false;
	n = strspn(name + 6, "0123456789");
	if (cordon_copy(digits, sizeof(digits), name + 6, n) < 0 ||
	    cordon_parse_u64(digits, 1, UINT64_MAX / 2, ret_number) < 0)
		return false;
	cordon_chain_name(*ret_number, again);
	return cordon_streq(again, name);
}

int cordon_chain_head_write(int head_fd, const struct cordon_chain_head *head)
{
	char text[HEAD_LEN + 1];
	int n = snprintf(text, sizeof(text), HEAD_FORMAT, (unsigned long long)head->seq, (unsigned long long)head->file,
			 (unsigned long long)head->size, head->hash);
	ssize_t w;

	if (n != (int)HEAD_LEN)
		return -EINVAL;
	do
		w = pwrite(head_fd, text, HEAD_LEN, 0);
	while (w < 0 && errno == EINTR);
	return w < 0 ? -errno : w == (ssize_t)HEAD_LEN ? 0 : -EIO;
}

int cordon_chain_head_read(int head_fd, struct cordon_chain_head *ret_head)
{
	struct cordon_chain_head head = { 0 };
	char text[HEAD_LEN + 2];
	uint64_t *const numbers[] = { &head.seq, &head.file, &head.size };
	const char *p = text + sizeof(HEAD_WORDS) - 1;
	ssize_t n;

	do
		n = pread(head_fd, text, sizeof(text) - 1, 0);
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		return n < 0 ? -errno : -ENODATA;
	text[n] = '\0';
	if (n != (ssize_t)HEAD_LEN || strlen(text) != HEAD_LEN || text[HEAD_LEN - 1] != '\n' ||
	    strncmp(text, HEAD_WORDS, sizeof(HEAD_WORDS) - 1) != 0)
		return -EBADMSG;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(numbers); i++, p += 21) {
		char digits[21];

		if (p[20] != ' ' || cordon_copy(digits, sizeof(digits), p, 20) < 0 ||
		    cordon_parse_u64(digits, 0, INT64_MAX, numbers[i]) < 0)
			return -EBADMSG;
	}
	if (strspn(p, "0123456789abcdef") != CORDON_AUDIT_HASH_SIZE - 1 || head.file < 1)
		return -EBADMSG;
	cordon_copy(head.hash, sizeof(head.hash), p, CORDON_AUDIT_HASH_SIZE - 1);
	*ret_head = head;
	return 0;
}

bool cordon_chain_rename_pending(int dir_fd, const struct cordon_chain_head *head)
{
	char name[CORDON_CHAIN_NAME_SIZE];

	if (head->size != 0 || head->file < 2)
		return false;
	cordon_chain_name(head->file - 1, name);
	return faccessat(dir_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT &&
	       faccessat(dir_fd, CORDON_CHAIN_LOG, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static void closedirp(DIR **dir)
{
	if (*dir)
		closedir(*dir);
}

/* Calls `found` with each number; a negative result stops the walk and is returned. */
static int each_number(int dir_fd, int (*found)(void *data, uint64_t number), void *data)
{
	CORDON_CLEANUP(closedirp) DIR *dir = NULL;
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct dirent *entry;
	uint64_t number;
	int r = 0;

	if (fd < 0)
		return -errno;
	dir = fdopendir(fd);
	if (!dir) {
		r = -errno;
		close(fd);
		return r;
	}
	while (r >= 0 && (entry = readdir(dir)))
		if (parse_name(entry->d_name, &number))
			r = found(data, number);
	return r;
}

static int keep_highest(void *data, uint64_t number)
{
	uint64_t *highest = data;

	if (number > *highest)
		*highest = number;
	return 0;
}

int cordon_chain_last_number(int dir_fd, uint64_t *ret_number)
{
	uint64_t highest = 0;
	int r = each_number(dir_fd, keep_highest, &highest);

	if (r == 0)
		*ret_number = highest;
	return r;
}

static int view_add(struct cordon_chain_view *view, uint64_t number)
{
	struct cordon_chain_file *files;

	/* The files that writers keep, the current one, and those that a lowered limit left behind. */
	if (view->n_files > VIEW_MAX)
		return -E2BIG;
	files = realloc(view->files, (view->n_files + 1) * sizeof(*files));
	if (!files)
		return -ENOMEM;
	view->files = files;
	files[view->n_files] = (struct cordon_chain_file){ .number = number, .fd = -1 };
	cordon_chain_name(number, files[view->n_files].name);
	view->n_files++;
	return 0;
}

static int view_add_number(void *data, uint64_t number)
{
	return view_add(data, number);
}

static int by_number(const void *a, const void *b)
{
	uint64_t x = ((const struct cordon_chain_file *)a)->number, y = ((const struct cordon_chain_file *)b)->number;

	return (x > y) - (x < y);
}

static int view_open(int dir_fd, struct cordon_chain_file *file)
{
	struct stat st;

	file->fd = openat(dir_fd, file->name, READ_FLAGS);
	if (file->fd < 0)
		return errno == ENOENT ? 0 : -errno;
	if (fstat(file->fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	file->size = st.st_size;
	file->modified = (int64_t)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000;
	return 0;
}

/* Called under the lock: lists the files, with the current one last. */
static int view_fill(int dir_fd, uint64_t from, struct cordon_chain_view *view, struct cordon_error *err)
{
	bool pending = view->state == CORDON_HEAD_GOOD && cordon_chain_rename_pending(dir_fd, &view->head);
	uint64_t current;
	int r = each_number(dir_fd, view_add_number, view);

	if (r < 0)
		return cordon_fail_errno(err, r, "cannot list the audit log");
	if (view->n_files)
		qsort(view->files, view->n_files, sizeof(*view->files), by_number);
	current = view->n_files ? view->files[view->n_files - 1].number + 1 : 1;
	if (view->state == CORDON_HEAD_GOOD)
		current = pending ? view->head.file - 1 : view->head.file;
	r = view_add(view, current);
	if (r == 0 && pending) {
		/* The file that still has the current name is the one before it; the current one is empty. */
		snprintf(view->files[view->n_files - 1].name, CORDON_CHAIN_NAME_SIZE, CORDON_CHAIN_LOG);
		r = view_add(view, view->head.file);
	} else if (r == 0) {
		snprintf(view->files[view->n_files - 1].name, CORDON_CHAIN_NAME_SIZE, CORDON_CHAIN_LOG);
	}
	for (size_t i = 0; r == 0 && i < view->n_files - pending; i++) {
		if (view->files[i].number < from)
			continue;
		r = view_open(dir_fd, &view->files[i]);
		if (r < 0)
			return cordon_fail_errno(err, r, "cannot open the audit log %s", view->files[i].name);
	}
	return r < 0 ? cordon_fail_errno(err, r, "cannot list the audit log") : 0;
}

int cordon_chain_view(int dir_fd, uint64_t from, struct cordon_chain_view *ret_view, struct cordon_error *err)
{
	autoview struct cordon_chain_view view = { .state = CORDON_HEAD_MISSING };
	autofd int head_fd = openat(dir_fd, "head", READ_FLAGS);
	int r;

	if (head_fd < 0 && errno != ENOENT)
		return cordon_fail_errno(err, -errno, "cannot open the head of the audit log");
	if (head_fd >= 0) {
		r = cordon_chain_lock(head_fd, LOCK_SH, CORDON_CHAIN_LOCK_MS);
		if (r < 0)
			return cordon_fail_errno(err, r, "cannot lock the audit log");
		r = cordon_chain_head_read(head_fd, &view.head);
		view.state = r == 0 ? CORDON_HEAD_GOOD : r == -ENODATA ? CORDON_HEAD_MISSING : CORDON_HEAD_DAMAGED;
	}
	r = view_fill(dir_fd, from, &view, err);
	if (r < 0)
		return r;
	*ret_view = view;
	view = (struct cordon_chain_view){ 0 };
	return 0;
}

void cordon_chain_view_done(struct cordon_chain_view *view)
{
	for (size_t i = 0; i < view->n_files; i++)
		cordon_closep(&view->files[i].fd);
	free(view->files);
	*view = (struct cordon_chain_view){ 0 };
}
