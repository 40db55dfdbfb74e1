/* SPDX-License-Identifier: Apache-2.0 */
/* Reads from the sandbox's /proc in which system call a process inside waits. */
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/vfs.h>
#include <time.h>

#include "base/path.h"
#include "sandbox/host/discarded.h"
#include "sandbox/host/stopped.h"

#define CALL_TRIES 50 /* how often we look at a process that is not yet asleep in its call */
#define CALL_PAUSE_NS 20000

static void find_proc(struct cordon_stopped *s)
{
	struct statfs fs;

	s->proc_fd = cordon_inside_open_dir(s->child, "/proc");
	if (s->proc_fd < 0 || fstatfs(s->proc_fd, &fs) < 0 || fs.f_type != PROC_SUPER_MAGIC)
		cordon_closep(&s->proc_fd);
}

static int open_of(const struct cordon_stopped *s, uint32_t thread, const char *file)
{
	char name[32];

	snprintf(name, sizeof(name), "%u/%s", thread, file);
	return openat(s->proc_fd, name, O_RDONLY | O_CLOEXEC);
}

/* Reads "NR ARG0 ... ARG5 SP PC"; while a process still runs, the text is "running". */
static bool read_registers(int fd, long *ret_nr, uint64_t ret_args[static 6])
{
	const struct timespec pause = { .tv_nsec = CALL_PAUSE_NS };

	for (int tries = 0; tries < CALL_TRIES; tries++) {
		unsigned long long args[6];
		char text[256];
		ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

		if (n <= 0)
			return false;
		text[n] = '\0';
		if (sscanf(text, /* NOLINT(cert-err34-c): the kernel wrote it, and rubbish only changes the words of a report */
			   "%ld %llx %llx %llx %llx %llx %llx", ret_nr, &args[0], &args[1], &args[2], &args[3],
			   &args[4], &args[5]) == 7) {
			for (size_t i = 0; i < 6; i++)
				ret_args[i] = args[i];
			return true;
		}
		nanosleep(&pause, NULL);
	}
	return false;
}

/* Reads a string that may end right before an unmapped page. */
static void read_text(int mem_fd, uint64_t address, char ret[static CORDON_PATH_MAX])
{
	size_t at = 0;

	while (at < CORDON_PATH_MAX - 1) {
		size_t n = 4096 - ((address + at) & 4095);
		ssize_t got;

		if (n > CORDON_PATH_MAX - 1 - at)
			n = CORDON_PATH_MAX - 1 - at;
		got = pread(mem_fd, ret + at, n, (off_t)(address + at));
		if (got <= 0)
			break;
		if (memchr(ret + at, '\0', (size_t)got))
			return;
		at += (size_t)got;
	}
	ret[0] = '\0';
}

void cordon_stopped_read(struct cordon_stopped *s, uint32_t thread)
{
	const struct cordon_call *call;
	autofd int fd = -1, mem_fd = -1;
	uint64_t args[6];
	long nr;

	s->known = false;
	s->kind = CORDON_CALL_LOOK;
	s->path[0] = s->path2[0] = '\0';
	if (s->proc_fd < 0)
		find_proc(s);
	fd = s->proc_fd < 0 ? -1 : open_of(s, thread, "syscall");
	if (fd < 0 || !read_registers(fd, &nr, args))
		return;
	s->known = true;
	call = cordon_call_find(nr);
	if (!call || call->kind == CORDON_CALL_LOOK)
		return;
	s->kind = call->kind;
	mem_fd = open_of(s, thread, "mem");
	if (call->kind != CORDON_CALL_BIND)
		read_text(mem_fd, args[call->path], s->path);
	if (call->path2 != CORDON_CALL_NONE)
		read_text(mem_fd, args[call->path2], s->path2);
	s->flags = call->flags == CORDON_CALL_NONE ? O_CREAT | O_WRONLY | O_TRUNC : args[call->flags] & UINT32_MAX;
	if (call->kind == CORDON_CALL_OPEN_BY_STRUCT) {
		struct open_how how = { 0 };

		/* When it can't be read, we take it for the simplest open. */
		if (pread(mem_fd, &how, sizeof(how.flags), (off_t)args[call->flags]) < (ssize_t)sizeof(how.flags))
			how.flags = O_RDONLY;
		s->flags = how.flags;
	}
}

const char *cordon_stopped_rest(const char *path, const char *name)
{
	size_t len = strlen(name);
	const char *found = NULL;

	for (const char *at = path; *at;) {
		size_t n = strcspn(at, "/");
		const char *next = at + n + strspn(at + n, "/");

		/* When the name is in the path twice, either may have been refused; we take the last, which leaves the
		 * shortest rest. */
		if (n == len && strncmp(at, name, n) == 0)
			found = next;
		at = next;
	}
	return found;
}

const char *cordon_stopped_open(uint64_t flags, bool exists)
{
	bool writes = (flags & O_ACCMODE) != O_RDONLY || (flags & O_TRUNC);

	if (flags & O_PATH)
		return NULL;
	if (!exists)
		return flags & O_CREAT ? "create" : NULL;
	if ((flags & O_CREAT) && (flags & O_EXCL))
		return NULL; /* EEXIST */
	if ((flags & O_TMPFILE) == O_TMPFILE)
		return "create";
	if (!writes && (flags & O_DIRECTORY))
		return NULL; /* a listing */
	return writes ? "write" : "read";
}

void cordon_stopped_done(struct cordon_stopped *s)
{
	cordon_closep(&s->proc_fd);
}
