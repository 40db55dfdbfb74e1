/* SPDX-License-Identifier: Apache-2.0 */
/* Knows which system calls name paths, and reads those paths from a process that is stopped in such a call. */
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>

#include "base/path.h"
#include "base/sys.h"
#include "sandbox/inside/calls.h"

#define SHORT_PATH 256

enum { CWD = CORDON_CALL_CWD, NONE = CORDON_CALL_NONE };

static const struct cordon_call calls[] = {
	{ SYS_openat, CORDON_CALL_OPEN, 0, 1, NONE, NONE, 2 },
	{ SYS_openat2, CORDON_CALL_OPEN_BY_STRUCT, 0, 1, NONE, NONE, 2 },
	{ SYS_mkdirat, CORDON_CALL_CREATE, 0, 1, NONE, NONE, NONE },
	{ SYS_mknodat, CORDON_CALL_CREATE, 0, 1, NONE, NONE, NONE },
	{ SYS_symlinkat, CORDON_CALL_CREATE, 1, 2, NONE, NONE, NONE },
	{ SYS_linkat, CORDON_CALL_LINK, 0, 1, 2, 3, NONE },
	{ SYS_renameat, CORDON_CALL_RENAME, 0, 1, 2, 3, NONE },
	{ SYS_renameat2, CORDON_CALL_RENAME, 0, 1, 2, 3, NONE },
	{ SYS_bind, CORDON_CALL_BIND, NONE, 1, NONE, NONE, 2 },
	{ SYS_execve, CORDON_CALL_EXECUTE, CWD, 0, NONE, NONE, NONE },
	{ SYS_execveat, CORDON_CALL_EXECUTE, 0, 1, NONE, NONE, NONE },
	{ SYS_truncate, CORDON_CALL_CHANGE, CWD, 0, NONE, NONE, NONE },
	{ SYS_unlinkat, CORDON_CALL_DELETE, 0, 1, NONE, NONE, NONE },
	{ SYS_fchmodat, CORDON_CALL_CHANGE, 0, 1, NONE, NONE, NONE },
	{ 452 /* fchmodat2 */, CORDON_CALL_CHANGE, 0, 1, NONE, NONE, NONE },
	{ SYS_fchownat, CORDON_CALL_CHANGE, 0, 1, NONE, NONE, NONE },
	{ SYS_utimensat, CORDON_CALL_CHANGE, 0, 1, NONE, NONE, NONE },
	{ SYS_setxattr, CORDON_CALL_CHANGE, CWD, 0, NONE, NONE, NONE },
	{ SYS_lsetxattr, CORDON_CALL_CHANGE, CWD, 0, NONE, NONE, NONE },
	{ SYS_removexattr, CORDON_CALL_CHANGE, CWD, 0, NONE, NONE, NONE },
	{ SYS_lremovexattr, CORDON_CALL_CHANGE, CWD, 0, NONE, NONE, NONE },
	{ 463 /* setxattrat */, CORDON_CALL_CHANGE, 0, 1, NONE, NONE, NONE },
	{ 466 /* removexattrat */, CORDON_CALL_CHANGE, 0, 1, NONE, NONE, NONE },
	{ SYS_newfstatat, CORDON_CALL_LOOK, 0, 1, NONE, NONE, NONE },
	{ SYS_statx, CORDON_CALL_LOOK, 0, 1, NONE, NONE, NONE },
	{ SYS_faccessat, CORDON_CALL_LOOK, 0, 1, NONE, NONE, NONE },
	{ SYS_faccessat2, CORDON_CALL_LOOK, 0, 1, NONE, NONE, NONE },
	{ SYS_readlinkat, CORDON_CALL_LOOK, 0, 1, NONE, NONE, NONE },
	{ SYS_statfs, CORDON_CALL_LOOK, CWD, 0, NONE, NONE, NONE },
	{ SYS_chdir, CORDON_CALL_LOOK, CWD, 0, NONE, NONE, NONE },
	{ SYS_getxattr, CORDON_CALL_LOOK, CWD, 0, NONE, NONE, NONE },
	{ SYS_lgetxattr, CORDON_CALL_LOOK, CWD, 0, NONE, NONE, NONE },
	{ SYS_listxattr, CORDON_CALL_LOOK, CWD, 0, NONE, NONE, NONE },
	{ SYS_llistxattr, CORDON_CALL_LOOK, CWD, 0, NONE, NONE, NONE },
	{ 464 /* getxattrat */, CORDON_CALL_LOOK, 0, 1, NONE, NONE, NONE },
	{ 465 /* listxattrat */, CORDON_CALL_LOOK, 0, 1, NONE, NONE, NONE },
#ifdef SYS_open /* architectures with the older calls */
	{ SYS_open, CORDON_CALL_OPEN, CWD, 0, NONE, NONE, 1 },
	{ SYS_stat, CORDON_CALL_LOOK, CWD, 0, NONE, NONE, NONE },
	{ SYS_lstat, CORDON_CALL_LOOK, CWD, 0, NONE, NONE, NONE },
	{ SYS_access, CORDON_CALL_LOOK, CWD, 0, NONE, NONE, NONE },
	{ SYS_readlink, CORDON_CALL_LOOK, CWD, 0, NONE, NONE, NONE },
	{ SYS_creat, CORDON_CALL_OPEN, CWD, 0, NONE, NONE, NONE },
	{ SYS_mkdir, CORDON_CALL_CREATE, CWD, 0, NONE, NONE, NONE },
	{ SYS_mknod, CORDON_CALL_CREATE, CWD, 0, NONE, NONE, NONE },
	{ SYS_symlink, CORDON_CALL_CREATE, CWD, 1, NONE, NONE, NONE },
	{ SYS_link, CORDON_CALL_LINK, CWD, 0, CWD, 1, NONE },
	{ SYS_rename, CORDON_CALL_RENAME, CWD, 0, CWD, 1, NONE },
	{ SYS_unlink, CORDON_CALL_DELETE, CWD, 0, NONE, NONE, NONE },
	{ SYS_rmdir, CORDON_CALL_DELETE, CWD, 0, NONE, NONE, NONE },
	{ SYS_chmod, CORDON_CALL_CHANGE, CWD, 0, NONE, NONE, NONE },
	{ SYS_chown, CORDON_CALL_CHANGE, CWD, 0, NONE, NONE, NONE },
	{ SYS_lchown, CORDON_CALL_CHANGE, CWD, 0, NONE, NONE, NONE },
	{ SYS_utime, CORDON_CALL_CHANGE, CWD, 0, NONE, NONE, NONE },
	{ SYS_utimes, CORDON_CALL_CHANGE, CWD, 0, NONE, NONE, NONE },
	{ SYS_futimesat, CORDON_CALL_CHANGE, 0, 1, NONE, NONE, NONE },
#endif
};

const char *const cordon_touch_ops[] = { "read", "write", "create", "delete", "rename", "execute", "look", NULL };

const char *cordon_proc_path(pid_t pid, const char *what, char ret[static CORDON_PROC_PATH_SIZE])
{
	char digits[CORDON_DIGITS_SIZE];

	cordon_concat(ret, CORDON_PROC_PATH_SIZE, "/proc/", cordon_digits((uint32_t)pid, digits), "/", what,
		      (char *)NULL);
	return ret;
}

bool cordon_calls_read_memory(pid_t pid, uint64_t address, void *into, size_t n)
{
	struct iovec local = { into, n };
	struct iovec remote = { (void *)(uintptr_t)address, n };

	return process_vm_readv(pid, &local, 1, &remote, 1, 0) == (ssize_t)n;
}

/* The string may end right before an unmapped page, so we never read into the next page unless the string goes on
 * there. Nearly all strings are short, so the first read asks for SHORT_PATH bytes only. */
bool cordon_calls_read_string(pid_t pid, uint64_t address, char ret[static CORDON_PATH_MAX])
{
	size_t at = 0, most = SHORT_PATH;

	while (at < CORDON_PATH_MAX) {
		size_t n = 4096 - ((address + at) & 4095);

		if (n > most)
			n = most;
		if (n > CORDON_PATH_MAX - at)
			n = CORDON_PATH_MAX - at;
		if (!cordon_calls_read_memory(pid, address + at, ret + at, n)) {
			errno = EFAULT;
			return false;
		}
		if (memchr(ret + at, '\0', n))
			return true;
		at += n;
		most = CORDON_PATH_MAX;
	}
	errno = ENAMETOOLONG;
	return false;
}

static bool read_link_of(pid_t pid, const char *what, char ret[static CORDON_PATH_MAX])
{
	char link[CORDON_PROC_PATH_SIZE];
	ssize_t n;

	cordon_proc_path(pid, what, link);
	n = readlink(link, ret, CORDON_PATH_MAX - 1);
	if (n <= 0 || ret[0] != '/')
		return false;
	ret[n] = '\0';
	return true;
}

/* The kernel puts " (deleted)" behind the path of a removed file, but a name may end so itself: asks whether it was
 * removed. */
static bool is_removed(pid_t pid, const char *what)
{
	char link[CORDON_PROC_PATH_SIZE];
	struct stat st;

	cordon_proc_path(pid, what, link);
	return stat(link, &st) == 0 && st.st_nlink == 0;
}

/* For a path that starts in a removed directory and leads out of it by "..", or that is too long together with the directory in
 * which it starts: sets `base` to the directory that it leads to, and `name` to its last component. False when the path goes
 * through links: then only the kernel knows where it leads. */
static bool leave_start(pid_t pid, const char *what, char name[static CORDON_PATH_MAX],
			char base[static CORDON_PATH_MAX])
{
	struct open_how how = { .flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
				.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS };
	char start[CORDON_PROC_PATH_SIZE], link[CORDON_FD_PATH_SIZE], way[CORDON_PATH_MAX];
	const char *last = cordon_path_base(name);
	autofd int from = -1, to = -1;
	ssize_t n;

	if (last == name || !*last || cordon_streq(last, ".") || cordon_streq(last, "..") ||
	    cordon_copy(way, sizeof(way), name, (size_t)(last - name)) < 0)
		return false;
	cordon_proc_path(pid, what, start);
	from = open(start, O_PATH | O_DIRECTORY | O_CLOEXEC);
	to = from < 0 ? -1 : cordon_sys_openat2(from, way, &how, sizeof(how));
	n = to < 0 ? -1 : readlink(cordon_fd_path(to, link), base, CORDON_PATH_MAX - 1);
	if (n <= 0 || base[0] != '/')
		return false;
	base[n] = '\0';
	if (cordon_path_is_deleted(base))
		return false;
	memmove(name, last, strlen(last) + 1);
	return true;
}

/* For a relative path that is too long when it is made absolute. Sets touch->deep when it stays too long, or leads nowhere. */
static bool read_long(pid_t pid, const char *what, char name[static CORDON_PATH_MAX], struct cordon_touch *touch)
{
	CORDON_UNCLEARED char base[CORDON_PATH_MAX];

	errno = 0;
	if (touch->direct || !leave_start(pid, what, name, base)) {
		touch->deep = touch->direct || errno == ENAMETOOLONG || errno == ENOENT || errno == ENOTDIR;
		return false;
	}
	touch->direct = true;
	touch->deep = cordon_path_join(base, name, touch->path, CORDON_PATH_MAX) < 0;
	return !touch->deep;
}

/* Makes a relative path absolute: puts the directory from which it starts in front of it. */
static bool read_start(pid_t pid, int dir, struct cordon_touch *touch)
{
	CORDON_UNCLEARED char name[CORDON_PATH_MAX], base[CORDON_PATH_MAX];
	char what[CORDON_DIGITS_SIZE + 4] = "cwd", digits[CORDON_DIGITS_SIZE];

	memcpy(name, touch->path, strlen(touch->path) + 1);
	if (dir != AT_FDCWD)
		cordon_concat(what, sizeof(what), "fd/", cordon_digits((uint32_t)dir, digits), (char *)NULL);
	touch->direct = *name && !strchr(name, '/') && !cordon_streq(name, ".") && !cordon_streq(name, "..");
	errno = 0;
	if (!read_link_of(pid, what, base))
		return errno == ENAMETOOLONG && read_long(pid, what, name, touch);
	touch->nameless = cordon_path_is_deleted(base) && is_removed(pid, what);
	if (touch->nameless && leave_start(pid, what, name, base)) {
		touch->nameless = false;
		touch->direct = true;
	}
	return cordon_path_join(base, name, touch->path, CORDON_PATH_MAX) == 0 || read_long(pid, what, name, touch);
}

/* Reads the path that the process named and makes it absolute, as the process sees it. */
static bool read_path(const struct seccomp_notif *notif, int dir_arg, int path_arg, struct cordon_touch *touch)
{
	touch->start = dir_arg >= 0 ? (int)notif->data.args[dir_arg] : AT_FDCWD;
	if (!cordon_calls_read_string((pid_t)notif->pid, notif->data.args[path_arg], touch->text)) {
		touch->too_long = errno == ENAMETOOLONG;
		touch->text[0] = '\0'; /* what was read has no end */
		return false;
	}
	touch->has_text = true;
	memcpy(touch->path, touch->text, strlen(touch->text) + 1);
	return touch->path[0] == '/' || read_start((pid_t)notif->pid, touch->start, touch);
}

static bool is_empty(const struct seccomp_notif *notif, int path_arg)
{
	char first;

	return cordon_calls_read_memory((pid_t)notif->pid, notif->data.args[path_arg], &first, 1) && !first;
}

static bool read_socket_path(const struct seccomp_notif *notif, struct cordon_touch *touch)
{
	struct sockaddr_un address = { 0 };
	char name[sizeof(address.sun_path) + 1] = "", base[CORDON_PATH_MAX];
	int len = (int)notif->data.args[2]; /* the kernel reads this argument as an int, too */
	size_t n = len > (int)sizeof(address) ? sizeof(address) : (size_t)len;

	if (len <= (int)sizeof(address.sun_family) || len > (int)sizeof(address) ||
	    !cordon_calls_read_memory((pid_t)notif->pid, notif->data.args[1], &address, n))
		return false;
	if (address.sun_family != AF_UNIX || !address.sun_path[0])
		return false;
	memcpy(name, address.sun_path, sizeof(address.sun_path)); /* sun_path need not end with a NUL */
	memcpy(touch->text, name, sizeof(name));
	touch->has_text = true;
	if (name[0] == '/')
		touch->known = cordon_copy(touch->path, sizeof(touch->path), name, strlen(name)) == 0;
	else
		touch->known = read_link_of((pid_t)notif->pid, "cwd", base) &&
			       cordon_path_join(base, name, touch->path, sizeof(touch->path)) == 0;
	return true;
}

static void open_touch(struct cordon_touch *touch, uint64_t flags)
{
	if (flags & O_PATH) {
		/* It opens nothing, and with O_PATH the kernel ignores the flags that would change something. */
		touch->op = "look";
		touch->writes = false;
		return;
	}
	touch->flags = flags;
	touch->creates = flags & O_CREAT;
	touch->if_missing = touch->creates && (flags & O_ACCMODE) == O_RDONLY && !(flags & O_TRUNC);
	touch->writes = touch->creates || (flags & O_ACCMODE) != O_RDONLY || (flags & O_TRUNC);
	/* Before the call nobody knows whether it makes the file or only writes it, unless O_EXCL is set: we call it a
	 * write. */
	touch->op = touch->creates && (flags & O_EXCL) ? "create" : touch->writes ? "write" : "read";
	touch->follows = !(flags & O_NOFOLLOW) && !(touch->creates && (flags & O_EXCL));
}

/* Whether a call that is no open follows a link at the end of its (first) path. */
static bool follows(const struct seccomp_notif *notif)
{
	const __u64 *args = notif->data.args;

	switch (notif->data.nr) {
	case SYS_linkat:
		return args[4] & AT_SYMLINK_FOLLOW;
	case SYS_fchownat:
	case SYS_execveat:
		return !(args[4] & AT_SYMLINK_NOFOLLOW);
	case SYS_utimensat:
	case 452: /* fchmodat2 */
		return !(args[3] & AT_SYMLINK_NOFOLLOW);
	case 463: /* setxattrat */
	case 466: /* removexattrat */
		return !(args[2] & AT_SYMLINK_NOFOLLOW);
	case SYS_lsetxattr:
	case SYS_lremovexattr:
#ifdef SYS_open
	case SYS_lchown:
	case SYS_link:
#endif
		return false;
	default:
		return true;
	}
}

static uint64_t open_flags(const struct seccomp_notif *notif, const struct cordon_call *call)
{
	return call->flags == NONE ? O_CREAT | O_WRONLY | O_TRUNC /* creat */ : (uint32_t)notif->data.args[call->flags];
}

static bool makes_directory(long nr)
{
#ifdef SYS_open
	if (nr == SYS_mkdir)
		return true;
#endif
	return nr == SYS_mkdirat;
}

const struct cordon_call *cordon_call_find(long nr)
{
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(calls); i++)
		if (calls[i].nr == nr)
			return &calls[i];
	return NULL;
}

size_t cordon_calls_read(const struct seccomp_notif *notif, struct cordon_touch touches[static CORDON_TOUCHES_MAX])
{
	const struct cordon_call *call = cordon_call_find(notif->data.nr);
	size_t n = 1;

	/* Nobody but the hand can call openat2. */
	if (!call || call->kind == CORDON_CALL_OPEN_BY_STRUCT)
		return 0;
	for (size_t i = 0; i < CORDON_TOUCHES_MAX; i++) {
		touches[i].op = "write";
		touches[i].writes = true;
		touches[i].flags = touches[i].mode = 0;
		touches[i].directory = touches[i].deep = touches[i].if_missing = false;
		touches[i].creates = touches[i].known = touches[i].follows = touches[i].direct = touches[i].nameless = false;
		touches[i].start = AT_FDCWD;
		touches[i].has_text = touches[i].too_long = false;
		touches[i].path[0] = touches[i].text[0] = '\0';
	}
	if (call->kind == CORDON_CALL_BIND) {
		touches[0].op = "create";
		touches[0].creates = true;
		return read_socket_path(notif, &touches[0]) ? 1 : 0;
	}
	/* utimensat(fd, NULL, ...) and similar calls act on a descriptor, which was judged when it was opened. */
	if (!notif->data.args[call->path])
		return 0;
	touches[0].known = read_path(notif, call->dir, call->path, &touches[0]);
	if (call->kind == CORDON_CALL_LOOK && (!touches[0].known || is_empty(notif, call->path)))
		return 0;
	switch (call->kind) {
	case CORDON_CALL_OPEN:
		open_touch(&touches[0], open_flags(notif, call));
		touches[0].mode = notif->data.args[(call->flags == NONE ? 0 : call->flags) + 1];
		break;
	case CORDON_CALL_CREATE:
		touches[0].op = "create";
		touches[0].creates = true;
		touches[0].directory = makes_directory(notif->data.nr);
		break;
	case CORDON_CALL_DELETE:
		touches[0].op = "delete";
		break;
	case CORDON_CALL_EXECUTE:
		touches[0].op = "execute";
		touches[0].writes = false;
		touches[0].follows = follows(notif);
		break;
	case CORDON_CALL_LOOK:
		touches[0].op = "look";
		touches[0].writes = false;
		break;
	case CORDON_CALL_RENAME:
	case CORDON_CALL_LINK:
		touches[0].op = call->kind == CORDON_CALL_RENAME ? "rename" : "read";
		touches[0].writes = call->kind == CORDON_CALL_RENAME;
		touches[0].follows = call->kind == CORDON_CALL_LINK && follows(notif);
		touches[1].op = call->kind == CORDON_CALL_RENAME ? "rename" : "create";
		touches[1].creates = true;
		touches[1].known = read_path(notif, call->dir2, call->path2, &touches[1]);
		n = 2;
		break;
	case CORDON_CALL_CHANGE:
		touches[0].follows = follows(notif);
		break;
	case CORDON_CALL_BIND:
	case CORDON_CALL_OPEN_BY_STRUCT:
		break;
	}
	return n;
}
