/* SPDX-License-Identifier: Apache-2.0 */
/* The files of the audit log: head and lock, what readers see of them, appending with one write per record, and repair
 * of what a dead writer left behind. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#include "audit/chain.h"
#include "base/time.h"

/* ---- the head, its lock, and the names of the files ---- */

/* The text always has the same length, so that it can be replaced in place. */
#define HEAD_FORMAT "cordon-audit-head 1 %020llu %020llu %020llu %s\n"
#define HEAD_WORDS "cordon-audit-head 1 "
#define HEAD_LEN (sizeof(HEAD_WORDS) - 1 + 21 + 21 + 21 + CORDON_AUDIT_HASH_SIZE)
#define VIEW_MAX (2UL * CORDON_CHAIN_KEEP_MAX)
#define READ_FLAGS (O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)

static int chain_lock(int head_fd, int how, int64_t wait_ms)
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

/* Whether the head says that audit.jsonl was rotated, but it still has its old name. */
static bool chain_rename_pending(int dir_fd, const struct cordon_chain_head *head)
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

/* The highest number of an earlier file, 0 when there is none. */
static int chain_last_number(int dir_fd, uint64_t *ret_number)
{
	uint64_t highest = 0;
	int r = each_number(dir_fd, keep_highest, &highest);

	if (r < 0)
		return r;
	*ret_number = highest;
	return 0;
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
	bool pending = view->state == CORDON_HEAD_GOOD && chain_rename_pending(dir_fd, &view->head);
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
	autochain struct cordon_chain_view view = { .state = CORDON_HEAD_MISSING };
	autofd int head_fd = openat(dir_fd, "head", READ_FLAGS);
	int r;

	if (head_fd < 0 && errno != ENOENT)
		return cordon_fail_errno(err, -errno, "cannot open the head of the audit log");
	if (head_fd >= 0) {
		r = chain_lock(head_fd, LOCK_SH, CORDON_CHAIN_LOCK_MS);
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

/* ---- appending ---- */

#define END_SIZE INT64_C(262144) /* enough for many records of any size */
#define FILE_FLAGS (O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)

/* What a writer found when log and head did not agree. */
struct findings {
	size_t torn;	/* bytes of an unfinished last line */
	size_t foreign; /* complete lines that do not continue the chain */
	uint64_t lost;	/* records that the head counts and the log no longer has */
	bool headless;	/* there were records but no readable head */
};

/* Opens or makes a regular file. */
static int open_file(struct cordon_chain *chain, const char *name, int flags, int *ret_fd)
{
	autofd int fd = openat(chain->dir_fd, name, FILE_FLAGS | flags);
	struct stat st;

	if (fd < 0 && errno == ENOENT) {
		fd = openat(chain->dir_fd, name, FILE_FLAGS | flags | O_CREAT, 0600);
		chain->made = true;
	}
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	*ret_fd = cordon_steal_fd(&fd);
	return 0;
}

static int open_log(struct cordon_chain *chain, uint64_t number)
{
	int fd = -1;
	int r = open_file(chain, CORDON_CHAIN_LOG, O_APPEND, &fd);

	if (r < 0)
		return r;
	cordon_closep(&chain->log_fd);
	chain->log_fd = fd;
	chain->file = number;
	return 0;
}

const char *cordon_chain_dir(bool calls)
{
	return calls ? "audit/calls" : "audit";
}

static struct cordon_chain chain_in(int dir_fd, unsigned int keep)
{
	return (struct cordon_chain){
		.dir_fd = dir_fd,
		.head_fd = -1,
		.log_fd = -1,
		.rotate = CORDON_CHAIN_ROTATE,
		.keep = keep,
		.wait_ms = CORDON_CHAIN_LOCK_MS,
	};
}

int cordon_chain_open(const struct cordon_home *home, struct cordon_chain *ret_chain, struct cordon_error *err)
{
	struct cordon_chain chain = chain_in(-1, CORDON_CHAIN_KEEP);
	int r = cordon_home_subdir(home, cordon_chain_dir(false), &chain.dir_fd, err);

	if (r < 0)
		return r;
	r = open_file(&chain, "head", 0, &chain.head_fd);
	if (r < 0) {
		cordon_chain_done(&chain);
		return cordon_fail_errno(err, r, "cannot open the audit log in %s/state/audit", home->path);
	}
	*ret_chain = chain;
	return 0;
}

int cordon_chain_open_calls(const struct cordon_chain *main, struct cordon_chain *ret_chain, struct cordon_error *err)
{
	struct cordon_chain chain = chain_in(-1, main->keep < CORDON_CHAIN_CALLS_KEEP ? main->keep
										      : CORDON_CHAIN_CALLS_KEEP);
	int r = mkdirat(main->dir_fd, "calls", 0700) < 0 && errno != EEXIST ? -errno : 0;

	chain.rotate = main->rotate;
	if (r == 0 && (chain.dir_fd = openat(main->dir_fd, "calls", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) < 0)
		r = -errno;
	if (r == 0)
		r = open_file(&chain, "head", 0, &chain.head_fd);
	if (r < 0) {
		cordon_chain_done(&chain);
		return cordon_fail_errno(err, r, "cannot open the audit log of calls");
	}
	*ret_chain = chain;
	return 0;
}

void cordon_chain_done(struct cordon_chain *chain)
{
	cordon_closep(&chain->log_fd);
	cordon_closep(&chain->head_fd);
	cordon_closep(&chain->dir_fd);
}

int cordon_chain_sync(struct cordon_chain *chain)
{
	if (chain->log_fd < 0)
		return 0;
	/* Sync the log first: a head that is ahead of its log would claim that records were removed. */
	if (fdatasync(chain->log_fd) < 0 || fdatasync(chain->head_fd) < 0)
		return -errno;
	if (chain->made && fsync(chain->dir_fd) < 0)
		return -errno;
	chain->made = false;
	return 0;
}

/* Locks the file with the name `head`, also when somebody removed the one that this handle had open. */
static int lock_head(struct cordon_chain *chain)
{
	for (int tries = 0; tries < 8; tries++) {
		struct stat st;
		int fd = -1, r = chain_lock(chain->head_fd, LOCK_EX, chain->wait_ms);

		if (r < 0)
			return r;
		if (fstat(chain->head_fd, &st) < 0)
			return -errno;
		if (st.st_nlink > 0)
			return 0;
		r = open_file(chain, "head", 0, &fd);
		if (r < 0)
			return r;
		cordon_closep(&chain->head_fd);
		chain->head_fd = fd;
	}
	return -ESTALE;
}

/*
 * Writes one record with one write, which also ends an unfinished line before it. INVARIANT: a record that was not
 * written completely is removed again, so that no reader sees it.
 */
static int put(struct cordon_chain *chain, struct cordon_chain_head *head, const char *body, size_t n)
{
	autobuf struct cordon_buf line = CORDON_BUF(CORDON_AUDIT_LINE_MAX + 1);
	size_t lead = chain->open_line ? 1 : 0;
	int r = cordon_buf_add(&line, "\n", lead);
	ssize_t w;

	if (r == 0)
		r = cordon_audit_render_line(head->seq + 1, head->hash, cordon_time_now(), body, n, &line);
	if (r < 0)
		return r;
	do
		w = write(chain->log_fd, line.data, line.len);
	while (w < 0 && errno == EINTR);
	if (w != (ssize_t)line.len) {
		r = w < 0 ? -errno : -ENOSPC;
		/* If this fails, too, the next writer finds an unfinished line and records that. */
		if (w > 0 && ftruncate(chain->log_fd, (off_t)head->size) < 0)
			r = -errno;
		return r;
	}
	chain->open_line = false;
	head->seq++;
	head->size += line.len;
	cordon_audit_hash(line.data + lead, line.len - lead - 1, head->hash);
	/* The record is in the log: if the head cannot be written, the next writer corrects it. */
	cordon_chain_head_write(chain->head_fd, head);
	return 0;
}

/* Writes a record of the log about itself; takes the reference of `detail`. */
static int put_own(struct cordon_chain *chain, struct cordon_chain_head *head, cordon_audit_type type, json_t *detail)
{
	struct cordon_audit_event event = { .type = type, .detail = detail };
	autobuf struct cordon_buf body = CORDON_BUF(CORDON_AUDIT_LINE_MAX);
	int r = detail ? cordon_audit_render_body(NULL, &event, &body) : -ENOMEM;

	json_decref(detail);
	return r < 0 ? r : put(chain, head, body.data, body.len);
}

static int put_findings(struct cordon_chain *chain, struct cordon_chain_head *head, const struct findings *found)
{
	int r = 0;

	/* Write only what was found. The unfinished line comes first: its record must follow it directly. */
	if (found->torn)
		r = put_own(chain, head, CORDON_AUDIT_REPAIRED,
			    json_pack("{s:s, s:I}", "reason", "torn", "bytes", (json_int_t)found->torn));
	if (r == 0 && found->headless)
		r = put_own(chain, head, CORDON_AUDIT_REPAIRED, json_pack("{s:s}", "reason", "no_head"));
	if (r == 0 && found->foreign)
		r = put_own(chain, head, CORDON_AUDIT_REPAIRED,
			    json_pack("{s:s, s:I}", "reason", "foreign", "lines", (json_int_t)found->foreign));
	if (r == 0 && found->lost)
		r = put_own(chain, head, CORDON_AUDIT_REPAIRED,
			    json_pack("{s:s, s:I}", "reason", "lost", "records", (json_int_t)found->lost));
	return r;
}

/* Updates the head for one line: as the next record if the line is that, else only as the line that the next record
 * follows. With `blind` set nothing is known yet, and the first record shows where the chain is. */
static bool take_line(struct cordon_chain_head *head, const struct cordon_line *line, bool *blind)
{
	autorecord struct cordon_audit_record record = { 0 };
	bool chains = false;

	if (line->text && cordon_audit_parse(line->text, line->n, &record) == 0)
		chains = *blind || (record.seq == head->seq + 1 && cordon_streq(record.prev, head->hash));
	if (chains) {
		head->seq = record.seq;
		*blind = false;
	}
	memcpy(head->hash, line->hash, sizeof(head->hash));
	return chains;
}

/* Reads what lies behind head->size in `fd` and updates the head line by line. With `blind` set the head knows
 * nothing yet; then reading begins at the first complete line. */
static int take_tail(int fd, bool blind, struct cordon_chain_head *head, struct findings *found, bool *ret_open_line)
{
	struct cordon_lines lines;
	bool skip = blind && head->size > 0;
	struct cordon_line line;
	int r;

	*ret_open_line = false;
	cordon_lines_init(&lines, fd, (off_t)head->size, INT64_MAX);
	while ((r = cordon_lines_next(&lines, &line)) > 0) {
		bool chains = !skip && take_line(head, &line, &blind);

		if (!chains && line.whole && !skip)
			found->foreign++;
		if (!chains && !line.whole)
			found->torn = line.n;
		*ret_open_line = !line.whole;
		head->size = (uint64_t)line.end;
		skip = false;
	}
	return r;
}

/* Sets the head from the end of a file when nothing is known. */
static int take_end(int fd, struct cordon_chain_head *head, struct findings *found, bool *ret_open_line)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	head->size = st.st_size > END_SIZE ? (uint64_t)(st.st_size - END_SIZE) : 0;
	return take_tail(fd, true, head, found, ret_open_line);
}

/* The log is shorter than the head says. The chain continues from the head, so that the gap stays visible. */
static int take_loss(struct cordon_chain *chain, struct cordon_chain_head *head, struct findings *found)
{
	struct cordon_chain_head left = { .file = head->file };
	struct findings ignored = { 0 };
	int r = take_end(chain->log_fd, &left, &ignored, &chain->open_line);

	if (r < 0)
		return r;
	head->size = left.size;
	/* Only the last newline is missing. */
	if (left.seq == head->seq && cordon_streq(left.hash, head->hash))
		return 0;
	/* An empty file does not show how many records there were; at least one is gone. */
	found->lost = left.seq && left.seq < head->seq ? head->seq - left.seq : 1;
	return 0;
}

/* Sets the head when it cannot be read: from the last file that is not empty. */
static int rebuild(struct cordon_chain *chain, struct cordon_chain_head *ret_head, struct findings *found)
{
	struct cordon_chain_head head = { .hash = CORDON_AUDIT_HASH_NONE };
	char name[CORDON_CHAIN_NAME_SIZE];
	uint64_t last;
	int r = chain_last_number(chain->dir_fd, &last);

	if (r == 0)
		r = open_log(chain, last + 1);
	if (r == 0)
		r = take_end(chain->log_fd, &head, found, &chain->open_line);
	if (r < 0)
		return r;
	if (head.size == 0 && last > 0) {
		autofd int fd = -1;
		bool ignored;

		cordon_chain_name(last, name);
		r = open_file(chain, name, 0, &fd);
		if (r == 0)
			r = take_end(fd, &head, found, &ignored);
		if (r < 0)
			return r;
		head.size = 0;
	}
	head.file = last + 1;
	found->headless = head.seq > 0 || head.size > 0;
	*ret_head = head;
	/* The head is written before the first record: a writer that dies right after that record must not leave a
	 * log without a head. */
	return cordon_chain_head_write(chain->head_fd, &head);
}

/* Opens the log that belongs to the head. It may have been rotated or removed since the last record. */
static int open_current(struct cordon_chain *chain, const struct cordon_chain_head *head, off_t *ret_size)
{
	char name[CORDON_CHAIN_NAME_SIZE];
	struct stat st;
	int r;

	if (chain_rename_pending(chain->dir_fd, head)) {
		cordon_chain_name(head->file - 1, name);
		if (renameat(chain->dir_fd, CORDON_CHAIN_LOG, chain->dir_fd, name) < 0)
			return -errno;
	}
	for (int tries = 0; tries < 2; tries++) {
		if (chain->log_fd < 0 || chain->file != head->file) {
			r = open_log(chain, head->file);
			if (r < 0)
				return r;
		}
		if (fstat(chain->log_fd, &st) < 0)
			return -errno;
		if (st.st_nlink > 0)
			break;
		cordon_closep(&chain->log_fd);
	}
	*ret_size = st.st_size;
	return chain->log_fd < 0 ? -ESTALE : 0;
}

/* Called under the lock. Finds where the chain is, and repairs and records every difference. */
static int load(struct cordon_chain *chain, struct cordon_chain_head *ret_head)
{
	struct cordon_chain_head head = { 0 };
	struct findings found = { 0 };
	off_t size = 0;
	int r = cordon_chain_head_read(chain->head_fd, &head);

	chain->open_line = false;
	if (r == -ENODATA || r == -EBADMSG) {
		r = rebuild(chain, &head, &found);
	} else if (r == 0) {
		r = open_current(chain, &head, &size);
		if (r == 0 && (uint64_t)size > head.size)
			r = take_tail(chain->log_fd, false, &head, &found, &chain->open_line);
		else if (r == 0 && (uint64_t)size < head.size)
			r = take_loss(chain, &head, &found);
	}
	if (r == 0)
		r = put_findings(chain, &head, &found);
	if (r == 0)
		*ret_head = head;
	return r;
}

/* Finds where the chain was at the end of file `number`: the first record of the next file shows it. */
static int end_of(struct cordon_chain *chain, uint64_t number, struct cordon_chain_head *ret_last)
{
	struct cordon_lines lines;
	autorecord struct cordon_audit_record record = { 0 };
	char name[CORDON_CHAIN_NAME_SIZE];
	struct cordon_line line;
	autofd int fd = -1;

	cordon_chain_name(number + 1, name);
	fd = openat(chain->dir_fd, name, FILE_FLAGS);
	if (fd < 0)
		return -errno;
	cordon_lines_init(&lines, fd, 0, CORDON_AUDIT_LINE_MAX);
	if (cordon_lines_next(&lines, &line) <= 0 || !line.text || cordon_audit_parse(line.text, line.n, &record) < 0)
		return -EBADMSG;
	ret_last->seq = record.seq - 1;
	return cordon_copy(ret_last->hash, sizeof(ret_last->hash), record.prev, strlen(record.prev));
}

static bool exists(struct cordon_chain *chain, uint64_t number)
{
	char name[CORDON_CHAIN_NAME_SIZE];

	cordon_chain_name(number, name);
	return number > 0 && faccessat(chain->dir_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Removes the oldest files when there are more than `keep`. Writes the record first: no file disappears without one. */
static int prune(struct cordon_chain *chain, struct cordon_chain_head *head)
{
	uint64_t beyond = head->file - 1 > chain->keep ? head->file - 1 - chain->keep : 0;
	uint64_t old = beyond;

	while (exists(chain, old - 1))
		old--;
	for (; old <= beyond && exists(chain, old); old++) {
		struct cordon_chain_head last;
		char name[CORDON_CHAIN_NAME_SIZE];
		int r;

		/* A damaged next file does not show it; cordon_audit_verify() finds that damage anyway. */
		if (end_of(chain, old, &last) < 0)
			last = (struct cordon_chain_head){ .hash = CORDON_AUDIT_HASH_NONE };
		cordon_chain_name(old, name);
		r = put_own(chain, head, CORDON_AUDIT_PRUNED,
			    json_pack("{s:s, s:I, s:s}", "file", name, "last_seq", (json_int_t)last.seq, "last_hash",
				      last.hash));
		if (r == 0 && unlinkat(chain->dir_fd, name, 0) < 0)
			r = -errno;
		if (r < 0)
			return r;
	}
	return 0;
}

/* Gives the current file its number and begins a new one. */
static int rotate(struct cordon_chain *chain, struct cordon_chain_head *head)
{
	struct cordon_chain_head next = *head;
	char name[CORDON_CHAIN_NAME_SIZE];
	uint64_t number = head->file;
	int r = 0;

	/* Do not overwrite a file that should not exist. */
	if (exists(chain, number)) {
		r = chain_last_number(chain->dir_fd, &number);
		number++;
	}
	/* The new file continues the old one, so the old one must be on disk first. */
	if (r == 0 && fdatasync(chain->log_fd) < 0)
		r = -errno;
	if (r < 0)
		return r;
	cordon_chain_name(number, name);
	next.file = number + 1;
	next.size = 0;
	r = cordon_chain_head_write(chain->head_fd, &next);
	if (r == 0 && renameat(chain->dir_fd, CORDON_CHAIN_LOG, chain->dir_fd, name) < 0) {
		r = -errno;
		cordon_chain_head_write(chain->head_fd, head);
	}
	if (r < 0)
		return r;
	*head = next;
	chain->made = true;
	return open_log(chain, head->file);
}

int cordon_chain_append(struct cordon_chain *chain, const char *body, size_t n, struct cordon_error *err)
{
	struct cordon_chain_head head = { 0 };
	char name[CORDON_CHAIN_NAME_SIZE];
	int r = lock_head(chain);

	if (r < 0)
		return cordon_fail_errno(err, r, "cannot lock the audit log");
	r = load(chain, &head);
	/* A log that cannot be rotated (its directory may be immutable by attribute) still takes records. */
	if (r == 0 && head.size >= chain->rotate)
		rotate(chain, &head);
	if (r == 0 && head.size == 0 && head.file > 1) {
		cordon_chain_name(head.file - 1, name);
		r = put_own(chain, &head, CORDON_AUDIT_ROTATED, json_pack("{s:s}", "file", name));
		if (r == 0)
			prune(chain, &head);
	}
	if (r == 0)
		r = put(chain, &head, body, n);
	flock(chain->head_fd, LOCK_UN);
	return r < 0 ? cordon_fail_errno(err, r, "cannot write the audit log") : 0;
}
