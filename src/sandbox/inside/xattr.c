/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hand sets extended attributes for the agent. The name of an attribute is in the agent's memory, where no filter sees
 * it, and some mean something to the next view: overlayfs hides files of a lower layer that has its own attributes. So such
 * a call never continues; the hand sets the attribute, under the name that it has judged.
 */
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>

#include "base/sys.h"
#include "sandbox/inside/deed.h"

#define NAME_SIZE 256	      /* XATTR_NAME_MAX and a NUL */
#define VALUE_SIZE (64 << 10) /* XATTR_SIZE_MAX */

/* The third argument of setxattrat(2). */
struct value_args {
	uint64_t value;
	uint32_t size, flags;
};

struct request {
	int object; /* O_PATH */
	uint64_t name, value, size;
	int flags;
};

static bool is_overlay_mark(const char *name)
{
	return strncmp(name, "user.overlay.", 13) == 0 || strncmp(name, "trusted.overlay.", 16) == 0;
}

/* Opens what a path leads to, as the call would. */
static int open_object(const struct cordon_hand *hand, const struct cordon_deed *deed)
{
	const struct cordon_touch *touch = &deed->touches[0];
	struct open_how how = { .flags = O_PATH | O_CLOEXEC | (touch->follows ? 0 : O_NOFOLLOW),
				.resolve = RESOLVE_NO_MAGICLINKS };
	autofd int base = -1;
	const char *rest;
	int fd;

	errno = touch->too_long ? ENAMETOOLONG : EFAULT;
	if (!touch->has_text || !cordon_spot_base(&deed->who, touch, &base, &rest))
		return -1;
	if (!*rest && !touch->follows)
		return errno = EPERM, -1; /* a link of a process has no attributes */
	if (!*rest)
		return cordon_steal_fd(&base);
	fd = cordon_sys_openat2(base < 0 ? hand->spots.root_fd : base, rest, &how, sizeof(how));
	if (fd >= 0 || errno != ELOOP)
		return fd;
	return cordon_spot_walk(&hand->spots, &deed->who, base, rest, touch->follows);
}

/* Whether a descriptor was opened with O_PATH: the kernel sets no attributes by it. */
static bool is_path_only(const struct cordon_deed *deed, int number)
{
	char path[CORDON_PROC_PATH_SIZE], what[CORDON_DIGITS_SIZE + 8], digits[CORDON_DIGITS_SIZE], text[256];
	autofd int fd = -1;
	const char *flags;
	ssize_t n;

	cordon_concat(what, sizeof(what), "fdinfo/", cordon_digits((unsigned int)number, digits), (char *)NULL);
	fd = open(cordon_proc_path(deed->who.thread, what, path), O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	text[n < 0 ? 0 : n] = '\0';
	flags = strstr(text, "flags:");
	errno = EBADF;
	return !flags || (strtoul(flags + strlen("flags:"), NULL, 8) & O_PATH);
}

static int open_number(const struct cordon_deed *deed, int number)
{
	char path[CORDON_PROC_PATH_SIZE], what[CORDON_DIGITS_SIZE + 4], digits[CORDON_DIGITS_SIZE];

	errno = EBADF;
	if (number < 0 || is_path_only(deed, number))
		return -1;
	cordon_concat(what, sizeof(what), "fd/", cordon_digits((unsigned int)number, digits), (char *)NULL);
	return open(cordon_proc_path(deed->who.thread, what, path), O_PATH | O_CLOEXEC);
}

/* Reads the arguments. False when the kernel should answer: it finds the same mistake. */
static bool read_request(const struct cordon_hand *hand, const struct cordon_deed *deed, struct request *ret)
{
	const __u64 *args = deed->notif->data.args;
	struct value_args at;

	if (deed->notif->data.nr == SYS_fsetxattr) {
		*ret = (struct request){ open_number(deed, (int)args[0]), args[1], args[2], args[3], (int)args[4] };
		return ret->object >= 0;
	}
	if (deed->notif->data.nr == SYS_setxattr || deed->notif->data.nr == SYS_lsetxattr) {
		*ret = (struct request){ open_object(hand, deed), args[1], args[2], args[3], (int)args[4] };
		return ret->object >= 0;
	}
	errno = args[5] != sizeof(at) ? EINVAL : EFAULT;
	if (args[5] != sizeof(at) || !cordon_calls_read_memory((pid_t)deed->notif->pid, args[4], &at, sizeof(at)))
		return false;
	if ((args[2] & AT_EMPTY_PATH) && deed->touches[0].has_text && !deed->touches[0].text[0])
		*ret = (struct request){ open_number(deed, (int)args[0]), args[3], at.value, at.size, (int)at.flags };
	else
		*ret = (struct request){ open_object(hand, deed), args[3], at.value, at.size, (int)at.flags };
	return ret->object >= 0;
}

/* 0, or the kernel's error for such a name. */
static int read_name(const struct cordon_deed *deed, uint64_t address, char name[static NAME_SIZE])
{
	for (size_t i = 0; i < NAME_SIZE; i++) {
		if (!cordon_calls_read_memory((pid_t)deed->notif->pid, address + i, &name[i], 1))
			return -EFAULT;
		if (!name[i])
			return i > 0 ? 0 : -ERANGE;
	}
	return -ERANGE;
}

/* Refuses, with the path of what has been opened for the report. */
static cordon_deed_answer refuse_mark(struct cordon_deed *deed, int object)
{
	struct cordon_spot *spot = &deed->spots[0];
	char link[CORDON_FD_PATH_SIZE];
	ssize_t n = readlink(cordon_fd_path(object, link), spot->path, sizeof(spot->path) - 1);

	if (n > 0)
		spot->path[n] = '\0';
	else
		cordon_concat(spot->path, sizeof(spot->path), "(unreadable)", (char *)NULL);
	deed->error = -EPERM;
	deed->why = CORDON_HAND_OVERLAY_MARK;
	deed->blame = spot;
	return CORDON_DEED_REFUSED;
}

cordon_deed_answer cordon_deed_set_xattr(struct cordon_hand *hand, struct cordon_deed *deed)
{
	static char value[VALUE_SIZE];
	char name[NAME_SIZE], path[CORDON_FD_PATH_SIZE];
	struct request request = { .object = -1 };
	cordon_deed_answer answer = CORDON_DEED_DONE;

	/* A call that we can't read fails as the kernel would have it fail; it does not continue, because by then it could be
	 * another one. */
	if (!read_request(hand, deed, &request)) {
		deed->error = -errno;
	} else {
		deed->error = read_name(deed, request.name, name);
		if (deed->error == 0 && request.size > sizeof(value)) {
			deed->error = -E2BIG;
		} else if (deed->error == 0 && request.size &&
			   !cordon_calls_read_memory((pid_t)deed->notif->pid, request.value, value, request.size)) {
			deed->error = -EFAULT;
		} else if (deed->error == 0) {
			if (!cordon_deed_caller_waits(hand, deed->notif->id))
				answer = CORDON_DEED_GONE;
			else if (is_overlay_mark(name))
				answer = refuse_mark(deed, request.object);
			else
				deed->error = setxattr(cordon_fd_path(request.object, path), name, value, request.size,
						       request.flags) < 0
						      ? -errno
						      : 0;
		}
	}
	cordon_closep(&request.object);
	return answer;
}
