/* SPDX-License-Identifier: Apache-2.0 */
/* The hand's own process: serves the seccomp listener, one call at a time. */
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/exit.h"
#include "base/path.h"
#include "base/sys.h"
#include "base/title.h"
#include "sandbox/inside/tell.h"

#ifndef SECCOMP_IOCTL_NOTIF_SET_FLAGS
#define SECCOMP_IOCTL_NOTIF_SET_FLAGS SECCOMP_IOW(4, __u64)
#define SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP (1UL << 0)
#endif

#define AT_ONCE_NS 3000 /* two context switches take longer: a call that arrives sooner had been waiting for us */

/* The kernel may know longer structures than we were built with. */
union notification {
	struct seccomp_notif notif;
	char space[1024];
};

/* What the process uses; static, so that only the pages that are needed are touched. */
static struct server {
	struct cordon_hand hand;
	bool learning;
	int proc_fd; /* the run's own /proc, which only we can write */
	size_t notif_size;
	union notification received;
	struct cordon_touch touches[CORDON_TOUCHES_MAX];
	struct cordon_deed deed;
	struct cordon_hand_message message;
	uint32_t last;	/* the process that called before */
	bool other_cpu; /* the call had been waiting and is of another process, which probably has another processor */
} server;

/* Sets whether the kernel wakes us on the processor of the caller, and the caller on ours; best effort, from Linux 6.6
 * on. */
static void set_sync_wake(bool sync)
{
	ioctl(server.hand.listener, SECCOMP_IOCTL_NOTIF_SET_FLAGS, sync ? SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP : 0);
}

/* A caller that waited on another processor must not be woken on ours, where the caller that we answered before runs: the
 * other processor would stay idle for milliseconds. */
static void answer(int error, bool go_on)
{
	if (server.other_cpu)
		set_sync_wake(false);
	cordon_deed_answer_call(&server.hand, server.received.notif.id, error, go_on);
	if (server.other_cpu)
		set_sync_wake(true);
}

static bool look(size_t n)
{
	return cordon_tell_look(server.hand.plan, server.hand.in->policy, server.hand.spots.root_fd,
				(pid_t)server.received.notif.pid, server.touches, n, &server.message);
}

/* Tells of the call, after making sure that the paths belong to the process that called. */
static void tell(int error)
{
	server.message.code = error;
	if (cordon_deed_caller_waits(&server.hand, server.received.notif.id))
		cordon_tell_send(&server.hand, &server.message, true);
}

static const char *op_of(const struct cordon_deed *deed)
{
	switch (deed->kind) {
	case CORDON_DEED_REMOVE:
		return "delete";
	case CORDON_DEED_RENAME:
		return deed->blame->exists ? "rename" : "create";
	case CORDON_DEED_LINK:
		return deed->blame == &deed->spots[0] ? "read" : "create";
	case CORDON_DEED_OPEN:
	case CORDON_DEED_TRUNCATE:
		return deed->blame->exists ? "write" : "create";
	case CORDON_DEED_SET_XATTR:
		return "write";
	case CORDON_DEED_MKDIR:
	case CORDON_DEED_MKNOD:
	case CORDON_DEED_SYMLINK:
	case CORDON_DEED_BIND:
	case CORDON_DEED_NONE:
		break;
	}
	return "create";
}

/* Tells that a name was refused for a boundary, for the host, or because the caller gave up rights. */
static void tell_refusal(void)
{
	const struct cordon_deed *deed = &server.deed;
	const char *path = deed->blame ? deed->blame->path : "";

	if (!*path)
		path = server.touches[deed->blame == &deed->spots[0] ? 0 : deed->n - 1].path;
	if (!cordon_deed_caller_waits(&server.hand, server.received.notif.id))
		return;
	cordon_tell_path(&server.message, CORDON_HAND_REFUSED, deed->why, op_of(deed), path);
	cordon_tell_send(&server.hand, &server.message, true);
}

static void tell_too_large(void)
{
	cordon_tell_path(&server.message, CORDON_HAND_TOO_LARGE, 0, "rename", server.touches[0].path);
	cordon_tell_send(&server.hand, &server.message, true);
}

/* Serves landlock_restrict_self(2): marks the caller, which is about to give up rights that the hand has. Where no directory is
 * held, the hand gives nothing back, and whoever can't be marked (a program that is not dumpable) may restrict itself. */
static void serve_restriction(void)
{
	bool acts = server.hand.plan->n_held || server.hand.plan->view;
	bool marked = !acts || (cordon_deed_caller_waits(&server.hand, server.received.notif.id) &&
				cordon_caller_mark(server.proc_fd, (pid_t)server.received.notif.pid));

	answer(marked ? 0 : -EPERM, marked);
}

/* Our own process before its exec: it executes the program, and nobody can read its memory. */
static bool is_own_exec(size_t n)
{
	atomic_bool *runs = &server.hand.memory->runs[server.hand.number];

	if (*runs)
		return false;
	if (n == 1 && !server.touches[0].known && cordon_streq(server.touches[0].op, "execute"))
		return true;
	*runs = true;
	return false;
}

/* It tells before it answers, so that a report comes before anything that the program writes or does afterwards. */
static void serve_call(size_t n)
{
	struct cordon_deed *deed = &server.deed;
	/* In a mode that does not warn, a call that succeeds is not reported, and one that fails has changed nothing: so it
	 * is enough to look afterwards. */
	bool later = cordon_tell_skips_free(server.hand.plan);
	cordon_deed_answer what;
	bool told;

	if (server.learning && cordon_tell_sight(server.hand.plan, server.hand.spots.root_fd,
						 (pid_t)server.received.notif.pid, server.touches, n, &server.message))
		cordon_tell_send(&server.hand, &server.message, false);
	told = !later && look(n);
	what = cordon_deed_serve(&server.hand, &server.received.notif, server.touches, n, deed);
	switch (what) {
	case CORDON_DEED_FREE:
		if (!later && told)
			tell(CORDON_ERROR_UNKNOWN);
		answer(0, true);
		break;
	case CORDON_DEED_CONTINUE:
		if (later ? look(n) : told)
			tell(CORDON_ERROR_UNKNOWN);
		answer(0, true);
		break;
	case CORDON_DEED_REFUSED:
		tell_refusal();
		answer(deed->error, false);
		break;
	case CORDON_DEED_DONE:
		if (later ? deed->error && look(n) : told)
			tell(deed->error);
		if (deed->too_large)
			tell_too_large();
		if (deed->fd >= 0)
			cordon_deed_give_file(&server.hand, server.received.notif.id, &deed->fd,
					      server.touches[0].flags & O_CLOEXEC);
		else
			answer(deed->error, false);
		break;
	case CORDON_DEED_APART:
	case CORDON_DEED_GONE:
		break;
	}
	cordon_deed_done(deed);
}

static void serve(void)
{
	struct cordon_hand_memory *memory = server.hand.memory;
	size_t n;

	if (server.received.notif.data.nr == SYS_landlock_restrict_self) {
		serve_restriction();
		return;
	}
	n = cordon_calls_read(&server.received.notif, server.touches);
	if (n && server.touches[n - 1].writes)
		memory->changed = true;
	if (is_own_exec(n)) {
		answer(0, true);
		return;
	}
	serve_call(n);
}

/* Whether every process under the filter is gone. */
static bool hung_up(void)
{
	struct pollfd fd = { .fd = server.hand.listener };

	return poll(&fd, 1, 0) == 1 && fd.revents & (POLLHUP | POLLERR);
}

static int64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

_Noreturn static void serve_calls(void)
{
	_Atomic uint64_t *serving = &server.hand.memory->serving[server.hand.number];

	for (;;) {
		int64_t begun = now_ns();

		memset(&server.received, 0, server.notif_size);
		if (ioctl(server.hand.listener, SECCOMP_IOCTL_NOTIF_RECV, &server.received.notif) < 0) {
			/* ENOENT: the caller was killed before we received its call, or no process is left. */
			if (errno != EINTR && (errno != ENOENT || hung_up()))
				_exit(0);
			continue;
		}
		*serving = server.received.notif.id;
		server.hand.memory->last[server.hand.number] = server.received.notif.id;
		server.other_cpu = server.received.notif.pid != server.last && now_ns() - begun < AT_ONCE_NS;
		server.last = server.received.notif.pid;
		server.hand.memory->calls++;
		serve();
		*serving = 0;
	}
}

/* Receives the listener, with the supervisor's first packet. */
static int receive_listener(int socket)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	char byte;
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control.space)
	};
	struct cmsghdr *c;
	int fd = -1;

	if (recvmsg(socket, &msg, MSG_CMSG_CLOEXEC) != 1 || !(c = CMSG_FIRSTHDR(&msg)) || c->cmsg_level != SOL_SOCKET ||
	    c->cmsg_type != SCM_RIGHTS || c->cmsg_len != CMSG_LEN(sizeof(int)))
		return -EBADMSG;
	memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	return fd;
}

/* How many filters the agent starts with, beyond those of the process that makes it. */
static unsigned int agent_filters(const struct cordon_inside *in)
{
	return 1 + (in->limits->by[CORDON_LIMIT_CPUS] == CORDON_LIMITS_BY_AFFINITY) +
	       in->plan->layers.differs[CORDON_DIFFERENCE_UNIX_SOCKETS] +
	       in->plan->layers.differs[CORDON_DIFFERENCE_TRUNCATE];
}

/* Nobody waits for what we start, and a signal never ends us. */
static int set_signals(void)
{
	struct sigaction ignore = { .sa_handler = SIG_IGN, .sa_flags = SA_NOCLDWAIT };
	sigset_t set;

	sigfillset(&set);
	sigdelset(&set, SIGALRM); /* a child that waits for a FIFO uses it */
	return sigprocmask(SIG_SETMASK, &set, NULL) < 0 || sigaction(SIGCHLD, &ignore, NULL) < 0 ||
			       sigaction(SIGXFSZ, &ignore, NULL) < 0 || sigaction(SIGPIPE, &ignore, NULL) < 0
		       ? -errno
		       : 0;
}

/* The /proc that processes inside see is read-only. Ours is another mount of it, which is mounted nowhere. Without it no
 * program can restrict itself. */
static int open_proc(void)
{
	struct mount_attr writable = { .attr_clr = MOUNT_ATTR_RDONLY };
	int fd = open_tree(AT_FDCWD, "/proc", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);

	if (fd >= 0 && mount_setattr(fd, "", AT_EMPTY_PATH, &writable, sizeof(writable)) < 0)
		cordon_closep(&fd);
	return fd;
}

static int set_up(const struct cordon_inside *in, int socket, uint32_t number)
{
	struct cordon_hand *hand = &server.hand;
	struct seccomp_notif_sizes sizes = { 0 };
	int r = setsid() < 0 ? -errno : set_signals();

	if (r == 0)
		r = cordon_limits_child(in->limits);
	if (r == 0 && chdir("/") < 0)
		r = -errno;
	*hand = (struct cordon_hand){ .in = in,
				      .plan = in->plan,
				      .memory = in->memory,
				      .number = number,
				      .listener = -1,
				      .socket = socket,
				      .lock_fd = in->hand_lock,
				      .files = CORDON_CALLER_FILES_NONE };
	hand->spots = (struct cordon_spots){ .plan = in->plan,
					     .memory = in->memory,
					     .root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC) };
	hand->filters = cordon_caller_own_filters() + agent_filters(in);
	server.learning = in->variant == CORDON_SECCOMP_LEARN;
	if (r == 0 && hand->spots.root_fd < 0)
		r = -errno;
	if (r == 0 && (hand->listener = receive_listener(socket)) < 0)
		r = hand->listener;
	if (r == 0 && syscall(SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 0, &sizes) < 0)
		r = -errno;
	if (r == 0 && (sizes.seccomp_notif > sizeof(server.received) || number >= CORDON_HANDS_MAX))
		r = -EINVAL;
	server.notif_size = sizes.seccomp_notif;
	server.proc_fd = open_proc();
	if (r == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		r = -errno;
	if (r == 0)
		r = cordon_caps_keep((uint64_t)1 << CAP_SYS_PTRACE);
	return r == 0 ? cordon_seccomp_install(CORDON_SECCOMP_HAND, NULL) : r;
}

_Noreturn void cordon_hand(const struct cordon_inside *in, int socket, uint32_t number)
{
	const int kept[] = { socket, in->hand_lock };

	cordon_title_set("cordon-hand");
	cordon_sys_request_short_slice();
	cordon_close_except(kept, CORDON_ARRAY_SIZE(kept));
	/* When we end here, the supervisor refuses what the agent asked for. */
	if (set_up(in, socket, number) < 0)
		_exit(CORDON_EXIT_REFUSED);
	set_sync_wake(true);
	cordon_tell_path(&server.message, CORDON_HAND_HELLO, getpid(), "look", "");
	cordon_tell_send(&server.hand, &server.message, false);
	serve_calls();
}
