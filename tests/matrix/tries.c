/* SPDX-License-Identifier: Apache-2.0 */
/* One cell: the arguments of a row of the table of calls, the call, and what may follow a success. */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <utime.h>

#include "matrix.h"

#define OWN "own"
#define DIRECTORY_NAME "planted-by-a-cell"

static char buffer[4096];
static struct open_how how;

bool has_secret(const void *data, size_t size)
{
	return memmem(data, size, SECRET, strlen(SECRET)) != NULL;
}

static const char *leak(const char *how_so, const void *data, size_t size)
{
	return has_secret(data, size) ? how_so : NULL;
}

/* ---- arguments ---- */

struct bag {
	int opened[8];
	int count;
	bool lacks; /* an argument that can't be had: the cell does not apply */
	char magic[64];
	struct sockaddr_un address;
	int pipe[2];
};

static long kept(struct bag *bag, int fd)
{
	if (fd < 0) {
		bag->lacks = true;
		return -1;
	}
	bag->opened[bag->count++] = fd;
	return fd;
}

/* What the attacker owns lies beside the target in one half of the cells, where a run's folders are mounts of their own, and elsewhere in
 * the other half. No link can be made in a git directory. */
static const char *own(const char *name)
{
	static char texts[8][PATH_MAX];
	static int next;
	char *text = texts[next++ % 8];
	const char *beside = strcmp(name, "ownlink") != 0 ? world.beside : "scratch";
	snprintf(text, PATH_MAX, "%s/%s/allowed-%s", world.root, beside, name);
	return text;
}

/* The own file, directory and link are there, and the free name is free. */
static const char *ready(const char *name)
{
	const char *path = own(name);
	struct stat st;
	bool there = lstat(path, &st) == 0;
	if (strcmp(name, "taken") == 0) {
		if (there && unlink(path) < 0)
			rmdir(path);
	} else if (strcmp(name, "owndir") == 0) {
		if (there && !S_ISDIR(st.st_mode))
			unlink(path);
		mkdir(path, 0755);
	} else if (strcmp(name, "ownlink") == 0) {
		if (!there && symlink("allowed-" OWN, path) < 0)
			die(path);
	} else if (!there || !S_ISREG(st.st_mode) || st.st_size != 4 || st.st_nlink != 1 ||
		   (st.st_mode & 07777) != 0644) {
		if (there && unlink(path) < 0)
			rmdir(path);
		int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
		if (fd < 0 || write(fd, "own\n", 4) != 4)
			die(path);
		close(fd);
	}
	return path;
}

static long tmpfile_fd(struct bag *bag)
{
	char place[PATH_MAX];
	snprintf(place, sizeof(place), "%s/%s", world.root, world.beside);
	int fd = open(place, O_TMPFILE | O_RDWR | O_CLOEXEC, 0644);
	if (fd >= 0 && write(fd, "tmp\n", 4) != 4)
		die("a file without a name");
	return kept(bag, fd);
}

static long pipe_end(struct bag *bag, int end)
{
	if (pipe2(bag->pipe, O_NONBLOCK | O_CLOEXEC) < 0 || write(bag->pipe[1], "piped\n", end ? 0 : 6) < 0)
		die("pipe");
	kept(bag, bag->pipe[0]);
	kept(bag, bag->pipe[1]);
	return bag->pipe[end];
}

static long argument(char letter, const struct call *call, struct spelled *spelled, struct bag *bag)
{
	static struct timespec times[2] = { { 1000000000, 0 }, { 1000000000, 0 } };
	static struct timeval timevals[2] = { { 1000000000, 0 }, { 1000000000, 0 } };
	static struct utimbuf utimes = { 1000000000, 1000000000 };
	static char *const argv[] = { "cell", NULL }, *const envp[] = { NULL };
	static struct {
		uint64_t value;
		uint32_t size, flags;
	} attribute;
	static uint64_t zeros[16], inode_flags = 0x80000 | 0x40; /* extents, as ext4 has them, and "no dump" */
	static struct iovec out = { "X", 1 }, in = { buffer, sizeof(buffer) };
	int fd;

	switch (letter) {
	case 'd':
		return spelled->dirfd;
	case 'P':
		bag->lacks |= spelled->dirfd != AT_FDCWD;
		return (long)spelled->path;
	case 'p':
		return (long)spelled->path;
	case 'R':
		return kept(bag, openat(spelled->dirfd, spelled->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC));
	case 'Q':
		return kept(bag, openat(spelled->dirfd, spelled->path, O_PATH | O_CLOEXEC));
	case 'D':
		return AT_FDCWD;
	case 'o':
		return (long)ready(OWN);
	case 'O':
		return (long)ready("owndir");
	case 'l':
		return (long)ready("ownlink");
	case 't':
		return (long)ready("taken");
	case 'F':
		return tmpfile_fd(bag);
	case 'h':
		snprintf(bag->magic, sizeof(bag->magic), "/proc/self/fd/%ld", tmpfile_fd(bag));
		return (long)bag->magic;
	case 'f':
		return kept(bag, open(ready(OWN), O_RDWR | O_CLOEXEC));
	case 'a':
		return (long)call->a;
	case 'b':
		return (long)call->b;
	case '0':
		return 0;
	case '1':
		return 1;
	case 'm':
		return -1;
	case 'e':
		return (long)"";
	case 'x':
		return (long)"../scratch/allowed-own";
	case 'v':
		return (long)buffer;
	case 'z':
		return sizeof(buffer);
	case 'n':
		return (long)"user.matrix";
	case 'N':
		return (long)"user.secret";
	case 'u':
		return (long)"X";
	case 'T':
		return (long)times;
	case 'U':
		return (long)timevals;
	case 'Y':
		return (long)&utimes;
	case 'S':
		return kept(bag, socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
	case 'k':
		bag->lacks |= spelled->dirfd != AT_FDCWD || strlen(spelled->path) >= sizeof(bag->address.sun_path);
		bag->address.sun_family = AF_UNIX;
		memcpy(bag->address.sun_path, spelled->path, sizeof(bag->address.sun_path) - 1);
		return (long)&bag->address;
	case 'K':
		return sizeof(bag->address);
	case 'X':
		return (long)argv;
	case 'E':
		return (long)envp;
	case 'H':
		how = (struct open_how){ .flags = call->a, .resolve = call->resolve };
		if (call->a & O_CREAT || (call->a & O_TMPFILE) == O_TMPFILE)
			how.mode = 0644;
		return (long)&how;
	case 'A':
		attribute.value = (uint64_t)(uintptr_t)(call->then == 'r' ? buffer : "X");
		attribute.size = call->then == 'r' ? sizeof(buffer) : 1;
		return (long)&attribute;
	case 'G':
		return (long)(call->a == FS_IOC_SETFLAGS ? &inode_flags : zeros);
	case 's':
		return (long)(call->b ? call->b : call->a);
	case 'B':
		return (long)&out;
	case 'C':
		return (long)&in;
	case 'I':
		fd = (int)(call->number == SYS_fanotify_mark ? syscall(SYS_fanotify_init, 0, 0)
							     : syscall(SYS_inotify_init1, O_CLOEXEC));
		return kept(bag, fd);
	case 'V': {
		static int mount_id;
		memset(buffer, 0, 8);
		*(unsigned int *)(void *)buffer = 128; /* handle_bytes of struct file_handle */
		return (long)&mount_id;
	}
	case 'i':
		return pipe_end(bag, 0);
	case 'j':
		return pipe_end(bag, 1);
	default:
		die("a letter of the table");
	}
}

/* ---- what follows a success ---- */

static const char *read_all(int fd, const char *how_so)
{
	ssize_t got = pread(fd, buffer, sizeof(buffer), 0);
	if (got < 0 && errno == EISDIR) {
		got = syscall(SYS_getdents64, fd, buffer, sizeof(buffer));
		lseek(fd, 0, SEEK_SET);
	}
	return got > 0 ? leak(how_so, buffer, (size_t)got) : NULL;
}

/* Everything that a descriptor might be good for. What comes of it is seen from the host. */
static const char *use_fully(int fd)
{
	char magic[64];
	struct timespec times[2] = { { 1000000001, 0 }, { 1000000001, 0 } };
	struct stat st;
	bool directory = fstat(fd, &st) == 0 && S_ISDIR(st.st_mode);

	(void)!write(fd, "W", 1);
	(void)!ftruncate(fd, 2);
	fchmod(fd, directory ? 0755 : 0777);
	futimens(fd, times);
	fsetxattr(fd, "user.matrix", "X", 1, 0);
	fallocate(fd, 0, 0, 100);
	snprintf(magic, sizeof(magic), "/proc/self/fd/%d", fd);
	linkat(AT_FDCWD, magic, AT_FDCWD, ready("taken"), AT_SYMLINK_FOLLOW);
	chmod(magic, directory ? 0755 : 0777);
	void *map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map != MAP_FAILED) {
		if (fstat(fd, &st) == 0 && st.st_size > 0)
			*(volatile char *)map = 'M';
		munmap(map, 4096);
	}
	int again = open(magic, O_RDWR | O_CLOEXEC);
	if (again >= 0) {
		(void)!pwrite(again, "A", 1, 0);
		close(again);
	}
	if (directory && !world.compare) {
		int made = openat(fd, DIRECTORY_NAME, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
		if (made >= 0)
			close(made);
		unlinkat(fd, DIRECTORY_NAME, 0);
	}
	return NULL;
}

/* A descriptor that gives no right of its own may lead to one that does. */
static const char *use_o_path(int fd)
{
	const char *told = NULL;
	char magic[64];
	snprintf(magic, sizeof(magic), "/proc/self/fd/%d", fd);
	int again = open(magic, O_RDWR | O_CLOEXEC | O_NONBLOCK);
	if (again >= 0) {
		told = read_all(again, "read through O_PATH");
		(void)!pwrite(again, "P", 1, 0);
		close(again);
	} else if ((again = open(magic, O_RDONLY | O_CLOEXEC | O_NONBLOCK)) >= 0) {
		told = read_all(again, "read through O_PATH");
		close(again);
	}
	return told;
}

static const char *open_handle(void)
{
	char handle[256];
	memcpy(handle, buffer, sizeof(handle));
	int at = open(world.root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	long fd = syscall(SYS_open_by_handle_at, at, handle, O_RDWR);
	close(at);
	if (fd < 0)
		return NULL;
	const char *told = read_all((int)fd, "read by handle");
	use_fully((int)fd);
	close((int)fd);
	return told ? told : "a handle was opened";
}

static const char *look_at(const char *path, const char *how_so)
{
	const char *told = NULL;
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd >= 0) {
		told = read_all(fd, how_so);
		close(fd);
	}
	return told;
}

static const char *after_mapping(const struct call *call, void *map)
{
	const char *told = NULL;
	if (map && (call->a & PROT_WRITE)) {
		/* Beyond the end of an empty file there is nothing; a signal would end us. */
		struct iovec here = { "M", 1 }, there = { map, 1 };
		(void)!process_vm_writev(getpid(), &here, 1, &there, 1, 0);
	} else {
		struct iovec here = { buffer, 64 }, there = { map, 64 };
		ssize_t got = process_vm_readv(getpid(), &here, 1, &there, 1, 0);
		told = got > 0 ? leak("read through a mapping", buffer, (size_t)got) : NULL;
	}
	munmap(map, 4096);
	return told;
}

static const char *follow_up(const struct call *call, const struct target *target, struct bag *bag, long result)
{
	const char *told = NULL;
	int fd = (int)result;
	bool boundary = target->kind == 'b';

	switch (call->then) {
	case 'w':
	case 'W':
	case 'T':
		told = read_all(fd, "read");
		if (!world.compare && call->then == 'W')
			use_fully(fd);
		else
			(void)!write(fd, "w", 1);
		close(fd);
		return told;
	case 'p':
		told = use_o_path(fd);
		close(fd);
		return told;
	case 'r':
		return leak(call->name, buffer, sizeof(buffer));
	case 't':
		told = look_at(own("taken"), "read after it was moved or linked");
		ready("taken");
		return told;
	case 'o':
		told = look_at(own(OWN), "read after it was copied or exchanged");
		return told ? told : look_at(own("owndir"), "read after it was exchanged");
	case 'j':
		return read(bag->pipe[0], buffer, sizeof(buffer)) > 0
			       ? leak("read through a pipe", buffer, sizeof(buffer))
			       : NULL;
	case 'm':
		return after_mapping(call, (void *)result);
	case 'H':
		return boundary ? open_handle() : NULL;
	case 'L':
		return boundary ? "must be refused" : NULL;
	case 'M':
		return "must be refused everywhere";
	case 'c':
		told = look_at(".", "listed after chdir");
		return told;
	default:
		return NULL;
	}
}

/* ---- one cell ---- */

static int execute(const struct call *call, long *v, const char **ret_told)
{
	int ends[2];
	volatile int failed = 0;
	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
		die("pipe");
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	pid_t pid = vfork();
	if (pid == 0) {
		dup2(null, 0);
		dup2(null, 2);
		dup2(ends[1], 1);
		syscall(call->number, v[0], v[1], v[2], v[3], v[4]);
		failed = errno;
		_exit(1);
	}
	close(null);
	close(ends[1]);
	waitpid(pid, NULL, 0);
	ssize_t got = read(ends[0], buffer, sizeof(buffer));
	if (got > 0)
		*ret_told = leak("it was executed", buffer, (size_t)got);
	close(ends[0]);
	return failed;
}

int call_try(const struct call *call, const struct target *target, struct spelled *spelled, const char **ret_told)
{
	struct bag bag = { .count = 0 };
	long v[6] = { 0 };
	int outcome = -1;

	if (call->then == 'r')
		memset(buffer, 0, sizeof(buffer));
	for (int i = 0; call->args[i]; i++)
		v[i] = argument(call->args[i], call, spelled, &bag);
	if (!bag.lacks && call->then == 'x') {
		outcome = execute(call, v, ret_told);
	} else if (!bag.lacks) {
		errno = 0;
		long result = syscall(call->number, v[0], v[1], v[2], v[3], v[4], v[5]);
		outcome = result == -1 ? errno : 0;
		if (result != -1)
			*ret_told = follow_up(call, target, &bag, result);
	}
	while (bag.count)
		close(bag.opened[--bag.count]);
	return outcome;
}
