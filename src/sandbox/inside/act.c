/* SPDX-License-Identifier: Apache-2.0 */
/* The hand carries out a deed that was judged, on the directory that was judged. */
#include <fcntl.h>
#include <linux/fs.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>

#include "base/move_dir.h"
#include "base/sys.h"
#include "sandbox/inside/deed.h"
#include "sandbox/inside/made.h"

#ifndef SYS_pidfd_getfd
#define SYS_pidfd_getfd 438
#endif
#define PIDFD_OF_THREAD O_EXCL /* PIDFD_THREAD */

/* The flags that open(2) does not ignore; openat2(2), which we use, refuses others. The kernel adds LARGE_FILE for a 64-bit
 * process; libc has no name for it there. */
#define OPEN_FLAGS                                                                                                     \
	((uint64_t)(O_ACCMODE | O_CREAT | O_EXCL | O_NOCTTY | O_TRUNC | O_APPEND | O_NONBLOCK | O_SYNC | O_ASYNC |     \
		    O_DIRECT | O_DIRECTORY | O_NOFOLLOW | O_NOATIME | O_CLOEXEC | O_PATH | O_TMPFILE))
#define LARGE_FILE 0100000U
#define MODE_BITS 01777U /* no set-user-id and no set-group-id */
#define OPEN_TRIES 4	 /* how often a name may come and go between our look and our open */
#define WAIT_US 50000	 /* how often a child that waits for a FIFO looks whether its caller still waits */

void cordon_deed_answer_call(const struct cordon_hand *hand, uint64_t id, int error, bool go_on)
{
	struct seccomp_notif_resp response = { .id = id,
					       .error = error,
					       .flags = go_on ? SECCOMP_USER_NOTIF_FLAG_CONTINUE : 0 };

	ioctl(hand->listener, SECCOMP_IOCTL_NOTIF_SEND, &response);
}

void cordon_deed_give_file(const struct cordon_hand *hand, uint64_t id, int *fd, bool close_on_exec)
{
	struct seccomp_notif_addfd add = { .id = id,
					   .srcfd = (uint32_t)*fd,
					   .newfd_flags = close_on_exec ? O_CLOEXEC : 0 };
	struct seccomp_notif_resp response = { .id = id };
	int number = ioctl(hand->listener, SECCOMP_IOCTL_NOTIF_ADDFD, &add);

	/* It fails when the caller's table of descriptors is full: the caller gets the kernel's error. */
	if (number < 0)
		response.error = -errno;
	else
		response.val = number;
	cordon_closep(fd);
	ioctl(hand->listener, SECCOMP_IOCTL_NOTIF_SEND, &response);
}

static cordon_deed_answer done(struct cordon_deed *deed, int error)
{
	deed->error = error;
	return CORDON_DEED_DONE;
}

static bool set_id_bits(uint64_t mode)
{
	return mode & (S_ISUID | S_ISGID);
}

/* Whether a file is the one that was judged, by number and time of birth. */
static bool is_judged(int fd, const struct cordon_spot *spot)
{
	struct statx st;

	return statx(fd, "", AT_EMPTY_PATH, STATX_TYPE | STATX_INO | STATX_BTIME, &st) == 0 && st.stx_ino == spot->ino &&
	       (st.stx_mode & S_IFMT) == spot->type && (!spot->birth || spot->birth == cordon_spot_birth(&st));
}

/* Opens what exists, and nothing else: the file that has the name now must be the one that was judged. */
static int open_judged(const struct cordon_spot *spot)
{
	int fd = openat(spot->dir_fd, spot->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);

	if (fd >= 0 && !is_judged(fd, spot)) {
		close(fd);
		fd = -1;
		errno = EAGAIN;
	}
	return fd;
}

static int reopen(int fd, int flags)
{
	char path[CORDON_FD_PATH_SIZE];

	return open(cordon_fd_path(fd, path), flags | O_NOCTTY | O_CLOEXEC);
}

/* O_NOFOLLOW stays visible in the flags of a file. What the name leads to now must be what was judged. */
static int open_by_name(const struct cordon_spot *spot, int flags)
{
	int fd = openat(spot->dir_fd, spot->name, flags | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC);

	if (fd >= 0 && !is_judged(fd, spot)) {
		close(fd);
		errno = EACCES;
		return -1;
	}
	return fd;
}

static void on_alarm(int number)
{
	(void)number; /* it only ends the wait */
}

/* A child of the hand opens a FIFO, which waits for a reader, and answers the call. */
_Noreturn static void open_fifo(const struct cordon_hand *hand, const struct cordon_deed *deed, int path_fd, int flags)
{
	const struct itimerval tick = { .it_interval.tv_usec = WAIT_US, .it_value.tv_usec = WAIT_US };
	struct sigaction wake = { .sa_handler = on_alarm };
	int fd;

	/* The supervisor learns from the end of this connection that the hand is gone, also while we wait. */
	close(hand->socket);
	sigaction(SIGALRM, &wake, NULL);
	setitimer(ITIMER_REAL, &tick, NULL);
	while ((fd = reopen(path_fd, flags)) < 0 && errno == EINTR)
		if (!cordon_deed_caller_waits(hand, deed->notif->id))
			_exit(0);
	if (fd < 0)
		cordon_deed_answer_call(hand, deed->notif->id, -errno, false);
	else
		cordon_deed_give_file(hand, deed->notif->id, &fd, deed->touches[0].flags & O_CLOEXEC);
	_exit(0);
}

static cordon_deed_answer open_existing(struct cordon_hand *hand, struct cordon_deed *deed)
{
	const struct cordon_touch *touch = &deed->touches[0];
	const struct cordon_spot *spot = &deed->spots[0];
	autofd int path_fd = open_judged(spot);
	int flags = (int)(touch->flags & OPEN_FLAGS & ~(uint64_t)(O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC));
	bool waits = S_ISFIFO(spot->type) && !(flags & O_NONBLOCK) && (flags & O_ACCMODE) == O_WRONLY;
	pid_t child;
	int now;

	if (path_fd < 0)
		return done(deed, -errno);
	if (waits) {
		child = fork();
		if (child == 0)
			open_fifo(hand, deed, path_fd, flags);
		return child < 0 ? done(deed, -EAGAIN) : CORDON_DEED_APART;
	}
	deed->fd = touch->flags & O_NOFOLLOW && !(flags & O_TRUNC) ? open_by_name(spot, flags | O_NONBLOCK)
								   : reopen(path_fd, flags | O_NONBLOCK);
	if (deed->fd < 0)
		return done(deed, -errno);
	if (!(flags & O_NONBLOCK) &&
	    ((now = fcntl(deed->fd, F_GETFL)) < 0 || fcntl(deed->fd, F_SETFL, now & ~O_NONBLOCK) < 0)) {
		cordon_closep(&deed->fd);
		return done(deed, -EIO);
	}
	return done(deed, 0);
}

/* Makes a new file, or one without a name. */
static cordon_deed_answer make_file(struct cordon_hand *hand, struct cordon_deed *deed, uint64_t flags)
{
	const struct cordon_touch *touch = &deed->touches[0];
	const struct cordon_spot *spot = &deed->spots[0];
	bool unnamed = !spot->name[0];
	struct open_how how = { .flags = flags | LARGE_FILE | O_NOCTTY | O_CLOEXEC | (unnamed ? 0 : O_CREAT | O_EXCL),
				.mode = touch->mode & 07777,
				.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS };

	deed->fd = cordon_sys_openat2(spot->dir_fd, unnamed ? "." : spot->name, &how, sizeof(how));
	if (deed->fd < 0)
		return done(deed, -errno);
	if (spot->class == CORDON_SPOT_HELD && spot->boundary)
		cordon_made_add(hand->memory, deed->fd, "");
	return done(deed, 0);
}

static cordon_deed_answer do_open(struct cordon_hand *hand, struct cordon_deed *deed)
{
	const struct cordon_touch *touch = &deed->touches[0];
	struct cordon_spot *spot = &deed->spots[0];
	uint64_t flags = touch->flags & OPEN_FLAGS;
	bool makes = touch->creates || (flags & O_TMPFILE) == O_TMPFILE;
	cordon_deed_answer answer;

	if (touch->creates && (flags & O_DIRECTORY) && (flags & O_TMPFILE) != O_TMPFILE)
		return CORDON_DEED_CONTINUE;
	if (makes && set_id_bits(touch->mode))
		return done(deed, -EPERM);
	for (int tries = 0; tries < OPEN_TRIES; tries++) {
		answer = spot->exists && spot->name[0] ? open_existing(hand, deed) : make_file(hand, deed, flags);
		/* The name has come or gone since we looked. */
		if (answer != CORDON_DEED_DONE || !spot->name[0] || (flags & O_EXCL) ||
		    (deed->error != (spot->exists ? -ENOENT : -EEXIST) && deed->error != -EAGAIN))
			return answer;
		deed->error = 0;
		cordon_spot_look(&hand->spots, spot);
		answer = cordon_deed_judge(hand, deed);
		if (answer != CORDON_DEED_DONE)
			return answer;
	}
	return done(deed, -EACCES);
}

static cordon_deed_answer do_truncate(struct cordon_hand *hand, struct cordon_deed *deed)
{
	off_t length = (off_t)deed->notif->data.args[deed->arg];
	autofd int path_fd = -1, fd = -1;

	(void)hand;
	if (length < 0 || !S_ISREG(deed->spots[0].type))
		return CORDON_DEED_CONTINUE;
	path_fd = open_judged(&deed->spots[0]);
	fd = path_fd < 0 ? -1 : reopen(path_fd, O_WRONLY | O_NONBLOCK);
	return done(deed, fd < 0 || ftruncate(fd, length) < 0 ? -errno : 0);
}

static bool is_device(uint64_t mode)
{
	return (mode & S_IFMT) && !S_ISREG(mode) && !S_ISFIFO(mode) && !S_ISSOCK(mode);
}

static const char *name_of(const struct cordon_spot *spot, char ret[static NAME_MAX + 2])
{
	size_t n = strlen(spot->name);

	memcpy(ret, spot->name, n);
	if (spot->slash)
		ret[n++] = '/';
	ret[n] = '\0';
	return ret;
}

static int link_file(const struct cordon_deed *deed)
{
	const struct cordon_spot *first = &deed->spots[0], *last = &deed->spots[1];
	autofd int judged = -1;
	char path[CORDON_FD_PATH_SIZE];
	int file = deed->file_fd;

	/* By its entry in /proc, which leads to the descriptor that was judged and not through a name. */
	if (file < 0) {
		if (S_ISLNK(first->type))
			return linkat(first->dir_fd, first->name, last->dir_fd, last->name, 0) < 0 ? -errno : 0;
		judged = open_judged(first);
		if (judged < 0)
			return errno == EAGAIN ? -ENOENT : -errno;
		file = judged;
	}
	return linkat(AT_FDCWD, cordon_fd_path(file, path), last->dir_fd, last->name, AT_SYMLINK_FOLLOW) < 0 ? -errno
													     : 0;
}

/* Takes a copy of the agent's socket. */
static int get_socket(const struct cordon_deed *deed)
{
	int number = (int)deed->notif->data.args[0];
	/* A thread may have descriptors of its own; before Linux 6.9 a pidfd can be opened for the leader only. */
	autofd int pidfd = (int)syscall(SYS_pidfd_open, deed->who.thread, PIDFD_OF_THREAD);

	if (pidfd < 0 && deed->who.thread == deed->who.leader)
		pidfd = (int)syscall(SYS_pidfd_open, deed->who.leader, 0);
	return pidfd < 0 ? -1 : (int)syscall(SYS_pidfd_getfd, pidfd, number, 0);
}

static cordon_deed_answer do_bind(const struct cordon_hand *hand, struct cordon_deed *deed)
{
	const struct cordon_spot *spot = &deed->spots[0];
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	autofd int socket = get_socket(deed);
	size_t n = strlen(spot->name);
	int r;

	if (socket < 0 || n >= sizeof(address.sun_path))
		return CORDON_DEED_CONTINUE;
	/* Make sure that it is the caller's. */
	if (!cordon_deed_caller_waits(hand, deed->notif->id))
		return CORDON_DEED_GONE;
	memcpy(address.sun_path, spot->name, n + 1);
	/* There is no bindat(2), so we change the directory. */
	if (fchdir(spot->dir_fd) < 0)
		return done(deed, -errno);
	r = bind(socket, (const struct sockaddr *)&address,
		 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n + 1)) < 0
		    ? -errno
		    : 0;
	return done(deed, chdir("/") < 0 ? -errno : r);
}

/* Remembers what has the name now, if the directory is one of a boundary. */
static void remember(struct cordon_hand *hand, const struct cordon_spot *spot)
{
	if (spot->class == CORDON_SPOT_HELD && spot->boundary)
		cordon_made_add(hand->memory, spot->dir_fd, spot->name);
}

/* Forgets what had the name, if the directory is one of a boundary: else a program that makes and removes one file again and
 * again would fill the table. */
static void forget(struct cordon_hand *hand, const struct cordon_spot *spot)
{
	if (spot->class == CORDON_SPOT_HELD && spot->boundary && spot->only_name)
		cordon_made_forget(hand->memory, spot->ino);
}

static cordon_deed_answer do_rename(struct cordon_hand *hand, struct cordon_deed *deed)
{
	const struct cordon_spot *first = &deed->spots[0], *last = &deed->spots[1];
	uint64_t flags = deed->arg < 0 ? 0 : (uint32_t)deed->notif->data.args[deed->arg];
	char from[NAME_MAX + 2], to[NAME_MAX + 2];
	int r;

	if (flags & ~(uint64_t)(RENAME_NOREPLACE | RENAME_EXCHANGE))
		return CORDON_DEED_CONTINUE;
	/* A name that was not there when we looked must not be there now. */
	if (!last->exists && last->boundary && !(flags & RENAME_EXCHANGE))
		flags |= RENAME_NOREPLACE;
	r = cordon_move_dir(first->dir_fd, name_of(first, from), last->dir_fd, name_of(last, to), (unsigned int)flags,
			    &deed->too_large);
	if (r == 0) {
		if (!(flags & RENAME_EXCHANGE))
			forget(hand, last);
		forget(hand, first);
		remember(hand, last);
		if (flags & RENAME_EXCHANGE)
			remember(hand, first);
		hand->memory->placed++;
	}
	return done(deed, r);
}

static cordon_deed_answer make_entry(struct cordon_hand *hand, struct cordon_deed *deed)
{
	static char text[CORDON_PATH_MAX];
	const struct cordon_spot *spot = &deed->spots[0];
	uint64_t value = deed->arg < 0 ? 0 : deed->notif->data.args[deed->arg];
	char name[NAME_MAX + 2];
	int r;

	if (spot->slash && deed->kind != CORDON_DEED_MKDIR)
		return CORDON_DEED_CONTINUE;
	if (deed->kind == CORDON_DEED_SYMLINK) {
		if (!cordon_calls_read_string((pid_t)deed->notif->pid, value, text))
			return CORDON_DEED_CONTINUE;
		if (!cordon_deed_caller_waits(hand, deed->notif->id))
			return CORDON_DEED_GONE;
		r = symlinkat(text, spot->dir_fd, spot->name) < 0 ? -errno : 0;
	} else if (deed->kind == CORDON_DEED_MKDIR) {
		r = mkdirat(spot->dir_fd, name_of(spot, name), (mode_t)(value & MODE_BITS)) < 0 ? -errno : 0;
		hand->memory->placed++;
	} else {
		if (is_device(value))
			return CORDON_DEED_CONTINUE;
		r = set_id_bits(value)								       ? -EPERM
		    : mknodat(spot->dir_fd, spot->name, (mode_t)(value & (S_IFMT | MODE_BITS)), 0) < 0 ? -errno
												       : 0;
	}
	if (r == 0)
		remember(hand, spot);
	return done(deed, r);
}

cordon_deed_answer cordon_deed_act(struct cordon_hand *hand, struct cordon_deed *deed)
{
	const struct cordon_spot *spot = &deed->spots[0], *last = &deed->spots[deed->n - 1];
	cordon_deed_answer answer;
	char name[NAME_MAX + 2];
	uint64_t flags;

	switch (deed->kind) {
	case CORDON_DEED_OPEN:
		return do_open(hand, deed);
	case CORDON_DEED_TRUNCATE:
		return do_truncate(hand, deed);
	case CORDON_DEED_MKDIR:
	case CORDON_DEED_MKNOD:
	case CORDON_DEED_SYMLINK:
		return make_entry(hand, deed);
	case CORDON_DEED_LINK:
		if (last->slash || spot->slash)
			return CORDON_DEED_CONTINUE;
		answer = done(deed, link_file(deed));
		if (deed->error == 0)
			remember(hand, last);
		return answer;
	case CORDON_DEED_RENAME:
		return do_rename(hand, deed);
	case CORDON_DEED_BIND:
		answer = spot->slash ? CORDON_DEED_CONTINUE : do_bind(hand, deed);
		if (answer == CORDON_DEED_DONE && deed->error == 0)
			remember(hand, spot);
		return answer;
	case CORDON_DEED_REMOVE:
		flags = deed->arg < 0 ? 0 : (uint32_t)deed->notif->data.args[deed->arg];
#ifdef SYS_rmdir
		if (deed->notif->data.nr == SYS_rmdir)
			flags = AT_REMOVEDIR;
#endif
		if (flags & ~(uint64_t)AT_REMOVEDIR)
			return CORDON_DEED_CONTINUE;
		answer = done(deed, unlinkat(spot->dir_fd, name_of(spot, name), (int)flags) < 0 ? -errno : 0);
		if (deed->error == 0)
			forget(hand, spot);
		return answer;
	case CORDON_DEED_NONE:
	case CORDON_DEED_SET_XATTR:
		break;
	}
	return CORDON_DEED_CONTINUE;
}
