/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the filters with a listener: which calls it gets, that it gets no others, and that signals do not interrupt a
 * call. */
#include "unit.h"

#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>

#include "sandbox/inside/seccomp.h"

#define RUBBISH ((long)0xdeadbeef00000000UL)
#define HERE ((long)AT_FDCWD)
#define P(s) ((long)(s))

/* One call, and the first variant in which the listener gets it. A call that the architecture lacks has the number
 * -1. */
struct row {
	const char *name;
	long nr;
	enum { NEVER, CHANGE, FULL, LEARN } watched;
	long args[5];
};

#ifdef SYS_open
#define OLD(name) SYS_##name
#else
#define OLD(name) -1
#endif

static const struct row rows[] = {
	/* Calls that make a name. Their order is not important: the listener gets a call that fails as well. */
	{ "openat O_CREAT", SYS_openat, CHANGE, { HERE, P("a"), O_CREAT | O_WRONLY, 0600 } },
	{ "openat O_CREAT with rubbish", SYS_openat, CHANGE, { HERE, P("a2"), RUBBISH | O_CREAT | O_WRONLY, 0600 } },
	{ "openat O_CREAT O_DIRECTORY", SYS_openat, CHANGE, { HERE, P("a3"), O_CREAT | O_DIRECTORY, 0600 } },
	{ "mkdirat", SYS_mkdirat, CHANGE, { HERE, P("c"), 0700 } },
	{ "mknodat", SYS_mknodat, CHANGE, { HERE, P("d"), S_IFIFO | 0600, 0 } },
	{ "symlinkat", SYS_symlinkat, CHANGE, { P("a"), HERE, P("e") } },
	{ "linkat", SYS_linkat, CHANGE, { HERE, P("a"), HERE, P("f"), 0 } },
	{ "renameat2", SYS_renameat2, CHANGE, { HERE, P("f"), HERE, P("g"), 0 } },
	{ "bind", SYS_bind, CHANGE, { -1, 0, 0 } },
	{ "open O_CREAT", OLD(open), CHANGE, { P("h"), O_CREAT | O_WRONLY, 0600 } },
	{ "open O_CREAT with rubbish", OLD(open), CHANGE, { P("h2"), RUBBISH | O_CREAT | O_WRONLY, 0600 } },
	{ "creat", OLD(creat), CHANGE, { P("i"), 0600 } },
	{ "mkdir", OLD(mkdir), CHANGE, { P("j"), 0700 } },
	{ "mknod", OLD(mknod), CHANGE, { P("k"), S_IFIFO | 0600, 0 } },
	{ "symlink", OLD(symlink), CHANGE, { P("a"), P("l") } },
	{ "link", OLD(link), CHANGE, { P("a"), P("m") } },
	{ "rename", OLD(rename), CHANGE, { P("m"), P("n") } },
	{ "renameat", OLD(renameat), CHANGE, { HERE, P("n"), HERE, P("o") } },
	/* Calls that act on a name that exists. */
	{ "openat to read", SYS_openat, FULL, { HERE, P("a"), O_RDONLY } },
	{ "openat to write", SYS_openat, CHANGE, { HERE, P("a"), O_WRONLY | O_TRUNC } },
	{ "openat O_TMPFILE", SYS_openat, CHANGE, { HERE, P("."), O_TMPFILE | O_WRONLY, 0600 } },
	{ "openat O_PATH", SYS_openat, LEARN, { HERE, P("a"), O_PATH } },
	{ "openat O_DIRECTORY", SYS_openat, LEARN, { HERE, P("a"), O_DIRECTORY } },
	{ "open to read", OLD(open), FULL, { P("a"), O_RDONLY } },
	{ "execve", SYS_execve, FULL, { P("missing"), 0, 0 } },
	{ "execveat", SYS_execveat, FULL, { HERE, P("missing"), 0, 0, 0 } },
	{ "truncate", SYS_truncate, CHANGE, { P("a"), 0 } },
	{ "fchmodat", SYS_fchmodat, CHANGE, { HERE, P("a"), 0600 } },
	{ "fchmodat2", 452, CHANGE, { HERE, P("a"), 0600, 0 } },
	{ "chmod", OLD(chmod), CHANGE, { P("a"), 0600 } },
	{ "chown", OLD(chown), CHANGE, { P("a"), -1, -1 } },
	{ "lchown", OLD(lchown), CHANGE, { P("a"), -1, -1 } },
	{ "fchownat", SYS_fchownat, CHANGE, { HERE, P("a"), -1, -1, 0 } },
	{ "utime", OLD(utime), CHANGE, { P("a"), 0 } },
	{ "utimes", OLD(utimes), CHANGE, { P("a"), 0 } },
	{ "futimesat", OLD(futimesat), CHANGE, { HERE, P("a"), 0 } },
	{ "utimensat", SYS_utimensat, CHANGE, { HERE, P("a"), 0, 0 } },
	{ "setxattr", SYS_setxattr, CHANGE, { P("a"), P("user.x"), P("v"), 1, 0 } },
	{ "lsetxattr", SYS_lsetxattr, CHANGE, { P("a"), P("user.x"), P("v"), 1, 0 } },
	{ "removexattr", SYS_removexattr, CHANGE, { P("a"), P("user.x") } },
	{ "lremovexattr", SYS_lremovexattr, CHANGE, { P("a"), P("user.x") } },
	{ "setxattrat", 463, CHANGE, { HERE, P("a"), 0, P("user.x"), 0 } },
	{ "removexattrat", 466, CHANGE, { HERE, P("a"), 0, P("user.x") } },
	{ "unlinkat", SYS_unlinkat, CHANGE, { HERE, P("g"), 0 } },
	{ "unlink", OLD(unlink), CHANGE, { P("o") } },
	{ "rmdir", OLD(rmdir), CHANGE, { P("j") } },
	/* Calls that look, or work on what is open. */
	{ "newfstatat", SYS_newfstatat, LEARN, { HERE, P("a"), P(&(char[512]){ 0 }), 0 } },
	{ "statx", SYS_statx, LEARN, { HERE, P("a"), 0, 0, P(&(char[512]){ 0 }) } },
	{ "faccessat", SYS_faccessat, LEARN, { HERE, P("a"), R_OK } },
	{ "readlinkat", SYS_readlinkat, LEARN, { HERE, P("e"), P(&(char[8]){ 0 }), 8 } },
	{ "getxattr", SYS_getxattr, LEARN, { P("a"), P("user.x"), 0, 0 } },
	{ "getxattrat", 464, LEARN, { HERE, P("a"), 0, P("user.x"), 0 } },
	{ "fchmod", SYS_fchmod, NEVER, { -1, 0600 } },
	{ "write", SYS_write, NEVER, { -1, 0, 0 } },
	{ "connect", SYS_connect, NEVER, { -1, 0, 0 } },
	{ "chdir", SYS_chdir, LEARN, { P("."), 0 } },
	/* Refused calls stay refused, and the listener does not get them. */
	{ "mount", SYS_mount, NEVER, { 0, 0, 0, 0, 0 } },
	{ "chroot", SYS_chroot, NEVER, { P(".") } },
};

static void send_fd(int sock, int fd)
{
	char byte = 'x', control[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)
	};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	if (sendmsg(sock, &msg, 0) != 1)
		_exit(252);
}

static int receive_fd(int sock)
{
	char byte, control[CMSG_SPACE(sizeof(int))];
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)
	};
	int fd;

	assert_int_equal(recvmsg(sock, &msg, MSG_CMSG_CLOEXEC), 1);
	assert_non_null(CMSG_FIRSTHDR(&msg));
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(fd));
	return fd;
}

/* Starts `body` in a child under the filter; returns its pid and the listener. */
static pid_t start(enum cordon_seccomp_variant variant, int (*body)(const void *), const void *data, int *ret_listener)
{
	int pair[2];
	pid_t pid;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		int listener;

		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || cordon_seccomp_install(variant, &listener) < 0)
			_exit(251);
		send_fd(pair[0], listener);
		/* Only the supervisor may have the listener open, because a process can't answer its own calls. */
		close(listener);
		_exit(body(data));
	}
	close(pair[0]);
	*ret_listener = receive_fd(pair[1]);
	close(pair[1]);
	return pid;
}

static void answer(int listener, uint64_t id)
{
	struct seccomp_notif_resp response = { .id = id, .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE };

	assert_int_equal(ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &response), 0);
}

/* Lets all calls continue until the child has ended; returns how many the listener got, with the number of the last in
 * *ret_nr. A pidfd shows the end: before Linux 6.11 the listener hangs up only when the child was reaped. */
static int supervise(pid_t pid, int listener, long *ret_nr)
{
	autofd int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct pollfd polls[] = { { .fd = listener, .events = POLLIN }, { .fd = pidfd, .events = POLLIN } };
	int n = 0, status;

	assert_true(pidfd >= 0);
	while (poll(polls, 2, 20000) > 0 && !(polls[1].revents & POLLIN)) {
		struct seccomp_notif notice = { 0 };

		if (!(polls[0].revents & POLLIN))
			continue;
		assert_int_equal(ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &notice), 0);
		*ret_nr = notice.data.nr;
		answer(listener, notice.id);
		n++;
	}
	close(listener);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	return n;
}

static int do_row(const void *data)
{
	const struct row *row = data;

	syscall(row->nr, row->args[0], row->args[1], row->args[2], row->args[3], row->args[4]);
	return 0;
}

static void check_rows(enum cordon_seccomp_variant variant)
{
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(rows); i++) {
		bool expected = rows[i].watched == CHANGE ||
				(rows[i].watched == FULL && variant != CORDON_SECCOMP_CHANGE) ||
				(rows[i].watched == LEARN && variant == CORDON_SECCOMP_LEARN);
		long nr = -1;
		int listener, n;
		pid_t pid;

		if (rows[i].nr < 0)
			continue;
		pid = start(variant, do_row, &rows[i], &listener);
		n = supervise(pid, listener, &nr);
		if (n != expected || (expected && nr != rows[i].nr))
			fail_msg("%s: reported %d times (call %ld), expected %d", rows[i].name, n, nr, expected);
	}
}

static void change_reports_what_changes_something_by_its_path_and_nothing_else(void **state)
{
	struct stat st;

	(void)state;
	check_rows(CORDON_SECCOMP_CHANGE);
	/* The calls that continued have really happened. */
	assert_int_equal(lstat("c", &st), 0);
	assert_true(S_ISDIR(st.st_mode));
	assert_int_equal(lstat("a2", &st), 0);
}

static void full_reports_what_touches_a_path_and_nothing_else(void **state)
{
	(void)state;
	check_rows(CORDON_SECCOMP_FULL);
}

static void learn_reports_what_looks_at_a_path_too(void **state)
{
	(void)state;
	check_rows(CORDON_SECCOMP_LEARN);
}

static void ignore_signal(int sig)
{
	(void)sig;
}

static int make_directory(const void *name)
{
	struct sigaction action = { .sa_handler = ignore_signal }; /* an interrupted call would fail */

	sigaction(SIGUSR1, &action, NULL);
	return mkdir(name, 0700) == 0 ? 0 : errno;
}

static void signals_do_not_interrupt_a_received_call(void **state)
{
	struct seccomp_notif notice = { 0 };
	struct timespec moment = { .tv_nsec = 20 * 1000 * 1000 };
	int listener, status;
	pid_t pid = start(CORDON_SECCOMP_CHANGE, make_directory, "made", &listener);

	(void)state;
	assert_int_equal(ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &notice), 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(kill(pid, SIGUSR1), 0);
		nanosleep(&moment, NULL);
	}
	answer(listener, notice.id);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	close(listener);
}

static int second_listener(const void *data)
{
	int listener = -1, r = cordon_seccomp_install(CORDON_SECCOMP_FULL, &listener);

	(void)data;
	if (r != -EBUSY || listener != -1)
		return 1;
	/* Filters without a listener can still be added. */
	return cordon_seccomp_install(CORDON_SECCOMP_BASE, NULL) == 0 ? 0 : 2;
}

static void agent_cannot_take_a_listener_of_its_own(void **state)
{
	long nr;
	int listener;
	pid_t pid = start(CORDON_SECCOMP_CHANGE, second_listener, NULL, &listener);

	(void)state;
	assert_int_equal(supervise(pid, listener, &nr), 0);
}

static int watched_after_listener_is_gone(const void *data)
{
	/* When nobody listens any more, the kernel refuses the call with ENOSYS and does not let it through. */
	(void)data;
	return mkdir("never", 0700) < 0 && errno == ENOSYS ? 0 : 1;
}

static void a_dead_supervisor_fails_closed(void **state)
{
	int listener, status;
	pid_t pid = start(CORDON_SECCOMP_CHANGE, watched_after_listener_is_gone, NULL, &listener);

	(void)state;
	close(listener);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	assert_int_equal(access("never", F_OK), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		unit_test_in_dir(change_reports_what_changes_something_by_its_path_and_nothing_else),
		unit_test_in_dir(full_reports_what_touches_a_path_and_nothing_else),
		unit_test_in_dir(learn_reports_what_looks_at_a_path_too),
		unit_test_in_dir(signals_do_not_interrupt_a_received_call),
		unit_test_in_dir(agent_cannot_take_a_listener_of_its_own),
		unit_test_in_dir(a_dead_supervisor_fails_closed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
