/* SPDX-License-Identifier: Apache-2.0 */
/* Reads from /proc what the hand must know about a caller before the hand acts for it. */
#include <fcntl.h>

#include "sandbox/inside/caller.h"
#include "sandbox/inside/calls.h"

#define MARK 0x100UL /* the bit that dumps shared DAX mappings: off by default, and it means nothing else */

static int open_proc(pid_t pid, const char *name, int flags)
{
	char path[CORDON_PROC_PATH_SIZE];

	return open(cordon_proc_path(pid, name, path), flags | O_CLOEXEC);
}

/* Reads a /proc file from its beginning, each time again. */
static bool read_all(int fd, char *text, size_t size)
{
	ssize_t n = fd < 0 ? -1 : pread(fd, text, size - 1, 0);

	text[n < 0 ? 0 : n] = '\0';
	return n > 0;
}

static bool number_after(const char *text, const char *word, int base, unsigned long *ret)
{
	const char *at = strstr(text, word);

	if (!at)
		return false;
	*ret = strtoul(at + strlen(word), NULL, base);
	return true;
}

void cordon_caller_files_done(struct cordon_caller_files *files)
{
	cordon_closep(&files->status_fd);
	cordon_closep(&files->dumped_fd);
	files->pid = 0;
}

static bool read_files(const struct cordon_caller_files *files, struct cordon_caller *ret_caller)
{
	unsigned long leader, umask, filters;
	char text[4096];

	if (!read_all(files->status_fd, text, sizeof(text)) || !number_after(text, "\nTgid:", 10, &leader) ||
	    !number_after(text, "\nUmask:", 8, &umask) || !number_after(text, "\nSeccomp_filters:", 10, &filters) ||
	    !read_all(files->dumped_fd, text, sizeof(text)))
		return false;
	*ret_caller = (struct cordon_caller){ (pid_t)leader, (mode_t)umask, (unsigned int)filters,
					      strtoul(text, NULL, 16) & MARK };
	return true;
}

bool cordon_caller_read(struct cordon_caller_files *files, pid_t pid, struct cordon_caller *ret_caller)
{
	if (files->pid == pid && read_files(files, ret_caller))
		return true;
	cordon_caller_files_done(files);
	files->status_fd = open_proc(pid, "status", O_RDONLY);
	files->dumped_fd = open_proc(pid, "coredump_filter", O_RDONLY);
	files->pid = pid;
	return read_files(files, ret_caller);
}

bool cordon_caller_mark(int proc_fd, pid_t pid)
{
	char path[CORDON_PROC_PATH_SIZE];
	autofd int fd = openat(proc_fd, cordon_proc_path(pid, "coredump_filter", path) + strlen("/proc/"),
			       O_RDWR | O_CLOEXEC);
	char text[64], digits[CORDON_DIGITS_SIZE];
	size_t n;

	if (!read_all(fd, text, sizeof(text)))
		return false;
	/* The kernel reads decimal digits as well. */
	cordon_concat(text, sizeof(text), cordon_digits(strtoul(text, NULL, 16) | MARK, digits), "\n", (char *)NULL);
	n = strlen(text);
	return pwrite(fd, text, n, 0) == (ssize_t)n;
}

unsigned int cordon_caller_own_filters(void)
{
	struct cordon_caller_files files = CORDON_CALLER_FILES_NONE;
	struct cordon_caller own;
	bool known = cordon_caller_read(&files, getpid(), &own);

	cordon_caller_files_done(&files);
	return known ? own.filters : 0;
}
