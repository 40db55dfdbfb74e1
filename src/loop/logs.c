/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the logs of calls, and copies them. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/dirs.h"
#include "base/io.h"
#include "base/text.h"
#include "loop/logs.h"

#define LOGS "logs"
#define LAST_MAX 4096 /* bytes in which the last line is looked for */
#define OPEN_DIR (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

static const char *const names[] = { "output.log", "error.log", "combined.log" };

static int write_prompt(int dir_fd, const struct cordon_buf *prompt)
{
	autofd int fd = openat(dir_fd, "prompt.txt", O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);

	return fd < 0 ? -errno : cordon_write_all(fd, prompt->data ? prompt->data : "", prompt->len);
}

int cordon_loop_logs_open(int loop_fd, const char *story, uint64_t n, const struct cordon_buf *prompt,
			  struct cordon_loop_logs *ret_logs, struct cordon_error *err)
{
	struct cordon_loop_logs logs = CORDON_LOOP_LOGS_NONE;
	autofd int all = -1;
	int r = 0;

	snprintf(logs.name, sizeof(logs.name), "%s.%llu", story, (unsigned long long)n);
	if (mkdirat(loop_fd, LOGS, 0700) < 0 && errno != EEXIST)
		r = -errno;
	all = openat(loop_fd, LOGS, OPEN_DIR);
	if (r == 0 && (all < 0 || (mkdirat(all, logs.name, 0700) < 0 && errno != EEXIST) ||
		       (logs.dir_fd = openat(all, logs.name, OPEN_DIR)) < 0))
		r = -errno;
	if (r == 0)
		r = write_prompt(logs.dir_fd, prompt);
	for (size_t i = 0; r == 0 && i < CORDON_ARRAY_SIZE(names); i++)
		if ((logs.fds[i] = openat(logs.dir_fd, names[i], O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
					  0600)) < 0)
			r = -errno;
	if (r < 0) {
		cordon_loop_logs_done(&logs);
		return cordon_fail_errno(err, r, "cannot make the logs of %s", story);
	}
	*ret_logs = logs;
	return 0;
}

static void append(struct cordon_loop_logs *logs, size_t which, const char *bytes, size_t n)
{
	size_t room = CORDON_LOOP_LOG_MAX - logs->size[which];

	if (logs->fds[which] < 0 || !room)
		return;
	if (cordon_write_all(logs->fds[which], bytes, n < room ? n : room) == 0)
		logs->size[which] += n < room ? n : room;
}

void cordon_loop_logs_add(struct cordon_loop_logs *logs, int stream, const char *bytes, size_t n)
{
	append(logs, stream == 2 ? 1 : 0, bytes, n);
	append(logs, 2, bytes, n);
}

void cordon_loop_logs_done(struct cordon_loop_logs *logs)
{
	cordon_closep(&logs->dir_fd);
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(logs->fds); i++)
		cordon_closep(&logs->fds[i]);
}

void cordon_loop_last_line(const char *bytes, size_t n, char ret[static CORDON_LOOP_LINE_MAX + 1])
{
	size_t end = n, start;

	while (end > 0 && (bytes[end - 1] == '\n' || bytes[end - 1] == '\r' || bytes[end - 1] == ' '))
		end--;
	for (start = end; start > 0 && bytes[start - 1] != '\n';)
		start--;
	if (end > start)
		cordon_text_escape_fixed(ret, CORDON_LOOP_LINE_MAX + 1, bytes + start, end - start);
}

int cordon_loop_logs_read(int loop_fd, const char *name, const char *log, int *ret_fd)
{
	autofd int all = openat(loop_fd, LOGS, OPEN_DIR);
	autofd int dir = all < 0 || strchr(name, '/') ? -1 : openat(all, name, OPEN_DIR);
	int fd = dir < 0 ? -1 : openat(dir, log, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return -ENOENT;
	*ret_fd = fd;
	return 0;
}

void cordon_loop_logs_last(int loop_fd, const char *name, char ret[static CORDON_LOOP_LINE_MAX + 1])
{
	char bytes[LAST_MAX];
	autofd int fd = -1;
	ssize_t n;
	off_t size;

	if (cordon_loop_logs_read(loop_fd, name, names[2], &fd) < 0)
		return;
	size = lseek(fd, 0, SEEK_END);
	n = size > 0 ? pread(fd, bytes, sizeof(bytes), size > LAST_MAX ? size - LAST_MAX : 0) : 0;
	if (n > 0)
		cordon_loop_last_line(bytes, (size_t)n, ret);
}

static int copy_log(const struct cordon_loop_logs *logs, const char *name, int to)
{
	autofd int in = openat(logs->dir_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC), out = -1;
	uint64_t budget = CORDON_LOOP_LOG_MAX;

	if (unlinkat(to, name, 0) < 0 && errno != ENOENT)
		return -errno;
	out = openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	return in < 0 || out < 0 ? -errno : cordon_copy_bytes(in, out, &budget);
}

int cordon_loop_logs_publish(const struct cordon_loop_logs *logs, const char *dir, struct cordon_error *err)
{
	autofd int parent = -1, to = -1;
	int r = 0;

	if (mkdir(dir, 0755) < 0 && errno != EEXIST)
		return cordon_fail_errno(err, -errno, "cannot make %s", dir);
	parent = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (parent < 0 || (mkdirat(parent, logs->name, 0755) < 0 && errno != EEXIST) ||
	    (to = openat(parent, logs->name, OPEN_DIR)) < 0)
		return cordon_fail_errno(err, -errno, "cannot write logs to %s", dir);
	r = copy_log(logs, "prompt.txt", to);
	for (size_t i = 0; r == 0 && i < CORDON_ARRAY_SIZE(names); i++)
		r = copy_log(logs, names[i], to);
	return r < 0 ? cordon_fail_errno(err, r, "cannot write logs to %s", dir) : 0;
}

void cordon_loop_logs_clear(int loop_fd)
{
	(void)cordon_dirs_remove(loop_fd, LOGS, NULL);
}
