/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the system call filter from inside: what it refuses and how, what it allows, and that programs run. */
#include "unit.h"

#include <linux/netlink.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "sandbox/inside/seccomp.h"

#define RUBBISH 0xdeadbeef00000000UL
#define X32_BIT 0x40000000L

/* Makes the call with arguments on which no kernel can act: bad descriptors, bad pointers, unknown flags. */
static int errno_of(long nr)
{
	errno = 0;
	return syscall(nr, -1L, -1L, -1L, -1L, -1L, -1L) < 0 ? errno : 0;
}

/* Runs `body` in a child with the filter (or without, as a control) and returns its wait status. */
static int status_under(bool filtered, enum cordon_seccomp_variant variant, int (*body)(long arg), long arg)
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0) {
		int listener;

		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
			_exit(250);
		if (filtered && cordon_seccomp_install(variant, &listener) < 0)
			_exit(251);
		_exit(body(arg));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

/* The same for a body that ends by itself: returns its exit code. */
static int code_under(bool filtered, int (*body)(long arg), long arg)
{
	int status = status_under(filtered, CORDON_SECCOMP_BASE, body, arg);

	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int call(long nr)
{
	return errno_of(nr);
}

/* clang-format off */
#define CALL(name, control) { SYS_##name, #name, control }
/* clang-format on */

/* `control`: as root and without the filter the kernel answers the same call with another error, which shows that EPERM
 * comes from the filter. It is not set where the call would really do something with such arguments. */
static const struct refused {
	long nr;
	const char *name;
	bool control;
} refused[] = {
	CALL(setns, true),
	CALL(mount, true),
	CALL(umount2, true),
	CALL(pivot_root, true),
	CALL(chroot, true),
	CALL(fsopen, true),
	CALL(fsconfig, true),
	CALL(fsmount, true),
	CALL(fspick, true),
	CALL(open_tree, true),
	CALL(move_mount, true),
	CALL(mount_setattr, true),
	{ 467, "open_tree_attr", true },
	CALL(io_uring_setup, true),
	CALL(io_uring_enter, true),
	CALL(io_uring_register, true),
	CALL(open_by_handle_at, true),
	CALL(name_to_handle_at, true),
	CALL(fanotify_init, true),
	CALL(fanotify_mark, true),
	CALL(bpf, true),
	CALL(perf_event_open, true),
	CALL(userfaultfd, true),
	CALL(keyctl, true),
	CALL(add_key, true),
	CALL(request_key, true),
	CALL(kexec_load, false),
	CALL(kexec_file_load, false),
	CALL(init_module, false),
	CALL(finit_module, false),
	CALL(delete_module, false),
	CALL(move_pages, true),
	CALL(migrate_pages, true),
	CALL(reboot, false),
	CALL(swapon, true),
	CALL(swapoff, true),
	CALL(acct, true),
	CALL(quotactl, true),
	CALL(quotactl_fd, true),
	CALL(syslog, true),
	CALL(vhangup, false),
	CALL(sethostname, true),
	CALL(setdomainname, true),
	CALL(settimeofday, true),
	CALL(clock_settime, true),
	CALL(clock_adjtime, true),
	CALL(adjtimex, true),
#ifdef SYS_modify_ldt
	CALL(modify_ldt, true),
#endif
#ifdef SYS_iopl
	CALL(iopl, true),
	CALL(ioperm, true),
#endif
};

static void dangerous_calls_are_refused_with_eperm(void **state)
{
	(void)state;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(refused); i++) {
		int answer = code_under(true, call, refused[i].nr);

		if (answer != EPERM)
			fail_msg("%s gives %s under the filter", refused[i].name, strerrorname_np(answer));
		if (getuid() != 0 || !refused[i].control)
			continue;
		answer = code_under(false, call, refused[i].nr);
		if (answer == EPERM)
			fail_msg("%s gives EPERM without the filter too: the row proves nothing", refused[i].name);
	}
}

static void unknown_numbers_do_not_exist(void **state)
{
	static const long numbers[] = { SYS_clone3, SYS_openat2, SYS_memfd_secret, 457, 458, 468, 469, 470, 471,
					600,	    1023,	 0x3fffffff,	   -1 };

	(void)state;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(numbers); i++)
		assert_int_equal(code_under(true, call, numbers[i]), ENOSYS);
	assert_int_not_equal(code_under(false, call, SYS_clone3), ENOSYS);
}

static bool killed_by_filter(int status)
{
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS;
}

#ifdef __x86_64__
static int int80(long nr)
{
	long result;

	__asm__ volatile("int $0x80"
			 : "=a"(result)
			 : "a"(nr), "b"(0), "c"(0), "d"(0)
			 : "memory", "r8", "r9", "r10", "r11");
	return result > 0 ? 0 : 1;
}

static void x32_numbers_kill_the_process(void **state)
{
	(void)state;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(refused); i++)
		assert_true(killed_by_filter(status_under(true, CORDON_SECCOMP_BASE, call, refused[i].nr | X32_BIT)));
	assert_true(killed_by_filter(status_under(true, CORDON_SECCOMP_BASE, call, SYS_getpid | X32_BIT)));
	assert_true(killed_by_filter(status_under(true, CORDON_SECCOMP_FULL, call, SYS_getpid | X32_BIT)));
	/* The range of x32's own numbers, and one of them with another high bit. */
	assert_true(killed_by_filter(status_under(true, CORDON_SECCOMP_BASE, call, 512 | X32_BIT)));
	assert_true(killed_by_filter(status_under(true, CORDON_SECCOMP_BASE, call, 0x50000000L)));
	assert_false(killed_by_filter(status_under(false, CORDON_SECCOMP_BASE, call, SYS_getpid | X32_BIT)));
}

static void i386_entry_kills_the_process(void **state)
{
	(void)state;
	assert_int_equal(code_under(false, int80, 20), 0); /* getpid of i386 works on the bare kernel */
	assert_true(killed_by_filter(status_under(true, CORDON_SECCOMP_BASE, int80, 20)));
	assert_true(killed_by_filter(status_under(true, CORDON_SECCOMP_CHANGE, int80, 20)));
	assert_true(killed_by_filter(status_under(true, CORDON_SECCOMP_FULL, int80, 20)));
}
#endif

/* The filter looks at a request before the kernel looks at the descriptor: EBADF means that the filter lets it pass. */
static int request(long number)
{
	return syscall(SYS_ioctl, -1, number, NULL) < 0 ? errno : 0;
}

static void terminal_injection_is_refused_whatever_the_upper_half(void **state)
{
	static const unsigned long requests[] = { TIOCSTI, TIOCLINUX, TIOCCONS, TIOCSETD };

	(void)state;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(requests); i++) {
		assert_int_equal(code_under(true, request, (long)requests[i]), ENOTTY);
		assert_int_equal(code_under(true, request, (long)(requests[i] | RUBBISH)), ENOTTY);
		assert_int_equal(code_under(false, request, (long)(requests[i] | RUBBISH)), EBADF);
	}
	assert_int_equal(code_under(true, request, TIOCGWINSZ), EBADF);
	assert_int_equal(code_under(true, request, (long)(TCGETS | RUBBISH)), EBADF);
}

/* Makes a call in a directory of its own as a child, and tells from the parent whether a file has the bits. */
static int with_mode(long nr, long mode)
{
	const char *name = "made";

	umask(0);
	switch (nr) {
	case SYS_openat:
		return syscall(nr, AT_FDCWD, name, O_CREAT | O_WRONLY, mode) < 0 ? errno : 0;
	case SYS_mknodat:
		return syscall(nr, AT_FDCWD, name, mode | S_IFREG, 0) < 0 ? errno : 0;
	case SYS_fchmodat:
		return syscall(nr, AT_FDCWD, "there", mode) < 0 ? errno : 0;
	case 452: /* fchmodat2 */
		return syscall(nr, AT_FDCWD, "there", mode, 0) < 0 && errno != ENOSYS ? errno : 0;
	case SYS_fchmod:
		return syscall(nr, open("there", O_RDONLY | O_CLOEXEC), mode) < 0 ? errno : 0;
	default:
		return 255;
	}
}

static int set_user_id(long nr)
{
	return with_mode(nr, 04755);
}

static int set_group_id_with_rubbish(long nr)
{
	return with_mode(nr, (long)(RUBBISH | 02755));
}

static int plain_mode(long nr)
{
	return with_mode(nr, 01755);
}

static void no_call_sets_the_bits_that_lend_an_identity(void **state)
{
	static const long numbers[] = { SYS_openat, SYS_mknodat, SYS_fchmodat, 452, SYS_fchmod };

	(void)state;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(numbers); i++) {
		struct stat st;

		unlink("made");
		close(open("there", O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
		assert_int_equal(code_under(true, set_user_id, numbers[i]), EPERM);
		assert_int_equal(code_under(true, set_group_id_with_rubbish, numbers[i]), EPERM);
		assert_int_equal(access("made", F_OK), -1);
		assert_int_equal(stat("there", &st), 0);
		assert_int_equal(st.st_mode & (S_ISUID | S_ISGID), 0);
		assert_int_equal(code_under(true, plain_mode, numbers[i]), 0);
		unlink("made");
		assert_int_equal(code_under(false, set_user_id, numbers[i]), 0);
		unlink("made");
		unlink("there");
	}
}

static int lease(long type)
{
	int fd = open("leased", O_RDONLY | O_CLOEXEC);

	return syscall(SYS_fcntl, fd, (long)(RUBBISH | F_SETLEASE), type) < 0 ? errno : 0;
}

static int fcntl_command(long command)
{
	return syscall(SYS_fcntl, open("leased", O_RDONLY | O_CLOEXEC), command, 0) < 0 ? errno : 0;
}

static void nobody_gets_a_lease(void **state)
{
	(void)state;
	close(open("leased", O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
	assert_int_equal(code_under(false, lease, F_WRLCK), 0);
	assert_int_equal(code_under(true, lease, F_WRLCK), EPERM);
	assert_int_equal(code_under(true, lease, F_RDLCK), EPERM);
	assert_int_equal(code_under(true, lease, F_UNLCK), code_under(false, lease, F_UNLCK));
	/* F_GETDELEG, F_SETDELEG and what comes after them do not exist inside. */
	for (long command = 1039; command < 1050; command++)
		assert_int_equal(code_under(true, fcntl_command, command), EINVAL);
	for (long command = F_GETLEASE; command < 1039; command++)
		assert_int_equal(code_under(true, fcntl_command, command), code_under(false, fcntl_command, command));
	for (long command = 0; command < 64; command++)
		assert_int_equal(code_under(true, fcntl_command, command), code_under(false, fcntl_command, command));
	unlink("leased");
}

static int socket_of(long family)
{
	return syscall(SYS_socket, family, SOCK_DGRAM, 0) < 0 ? errno : 0;
}

static int pair_of(long family)
{
	int fds[2];

	return syscall(SYS_socketpair, family, SOCK_DGRAM, 0, fds) < 0 ? errno : 0;
}

static void only_unix_and_internet_sockets_can_be_made(void **state)
{
	(void)state;
	for (long family = 0; family < 64; family++) {
		bool allowed = family == AF_UNIX || family == AF_INET || family == AF_INET6;

		/* A kernel without IPv6 itself returns EAFNOSUPPORT. */
		if (!allowed || code_under(false, socket_of, family) == 0) {
			assert_int_equal(code_under(true, socket_of, family), allowed ? 0 : EAFNOSUPPORT);
			assert_int_equal(code_under(true, socket_of, (long)(RUBBISH | family)),
					 allowed ? 0 : EAFNOSUPPORT);
		}
	}
	assert_int_equal(code_under(false, socket_of, AF_NETLINK), 0);
	assert_int_equal(code_under(true, pair_of, AF_UNIX), 0);
	assert_int_equal(code_under(true, pair_of, AF_INET), EAFNOSUPPORT);
	assert_int_equal(code_under(true, pair_of, (long)(RUBBISH | AF_TIPC)), EAFNOSUPPORT);
}

static int route_socket_of(long protocol)
{
	int fd;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    cordon_seccomp_install_with_routes(CORDON_SECCOMP_BASE, NULL) < 0)
		return 250;
	fd = (int)syscall(SYS_socket, protocol < 0 ? AF_PACKET : (long)(RUBBISH | AF_NETLINK), SOCK_RAW,
			  (long)(RUBBISH | (unsigned long)(protocol & 0xff)));
	return fd < 0 ? errno : 0;
}

static void with_routes_netlink_has_the_routes_and_nothing_else(void **state)
{
	(void)state;
	assert_int_equal(code_under(false, route_socket_of, NETLINK_ROUTE), 0);
	for (long protocol = 1; protocol < 32; protocol++)
		assert_int_equal(code_under(false, route_socket_of, protocol), EPROTONOSUPPORT);
	assert_int_equal(code_under(false, route_socket_of, -1), EAFNOSUPPORT);
}

static const unsigned long namespaces[] = { CLONE_NEWNS,   CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC,
					    CLONE_NEWUSER, CLONE_NEWPID,    CLONE_NEWNET };

static int clone_with(long flags)
{
	long pid = syscall(SYS_clone, flags, 0, 0, 0, 0);

	if (pid == 0)
		_exit(0);
	return pid < 0 ? errno : 0;
}

static int unshare_with(long flags)
{
	return syscall(SYS_unshare, flags) < 0 ? errno : 0;
}

static void no_call_makes_a_namespace(void **state)
{
	(void)state;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(namespaces); i++) {
		long flag = (long)namespaces[i];

		assert_int_equal(code_under(true, clone_with, flag | SIGCHLD), EPERM);
		assert_int_equal(code_under(true, clone_with, (long)RUBBISH | flag | CLONE_FS | SIGCHLD), EPERM);
		assert_int_equal(code_under(true, unshare_with, flag), EPERM);
		assert_int_equal(code_under(true, unshare_with, (long)RUBBISH | flag | CLONE_FILES), EPERM);
	}
	assert_int_equal(code_under(true, unshare_with, 0x80 /* CLONE_NEWTIME */), EPERM);
	/* The flags that threads and forks use are allowed. */
	assert_int_equal(code_under(true, clone_with, SIGCHLD), 0);
	assert_int_equal(code_under(true, unshare_with, CLONE_FS | CLONE_FILES), 0);
	assert_int_equal(code_under(false, clone_with, CLONE_NEWUSER | SIGCHLD), 0);
}

static int persona(long value)
{
	return syscall(SYS_personality, value) < 0 ? errno : 0;
}

static void only_native_personalities_can_be_had(void **state)
{
	(void)state;
	assert_int_equal(code_under(true, persona, 0), 0);
	assert_int_equal(code_under(true, persona, ADDR_NO_RANDOMIZE), 0);
	assert_int_equal(code_under(true, persona, 0xffffffffL), 0);
	assert_int_equal(code_under(true, persona, PER_LINUX32), EPERM);
	assert_int_equal(code_under(true, persona, READ_IMPLIES_EXEC), EPERM);
	assert_int_equal(code_under(true, persona, ADDR_NO_RANDOMIZE | PER_LINUX32), EPERM);
	assert_int_equal(code_under(false, persona, READ_IMPLIES_EXEC), 0);
}

static int set_affinity(long pin_too)
{
	unsigned long mask[128];
	int listener = -1;
	long n = syscall(SYS_sched_getaffinity, 0, sizeof(mask), mask);

	if (pin_too && cordon_seccomp_install(CORDON_SECCOMP_PIN_CPUS, &listener) < 0)
		return 255;
	if (n <= 0 || listener != -1)
		return 254;
	return syscall(SYS_sched_setaffinity, 0, n, mask) < 0 ? errno : 0;
}

static void cpu_mask_can_be_pinned(void **state)
{
	(void)state;
	assert_int_equal(code_under(true, set_affinity, 0), 0);
	assert_int_equal(code_under(true, set_affinity, 1), EPERM);
}

static int make_socket(long family)
{
	return syscall(SYS_socket, family, SOCK_STREAM, 0) < 0 ? errno : 0;
}

static int make_pair(long type)
{
	int fds[2];

	return syscall(SYS_socketpair, AF_UNIX, type, 0, fds) < 0 ? errno : 0;
}

/* The filter of a run on an older kernel: the small one first, then the main one. */
static int under_no_unix(int (*body)(long arg), long arg)
{
	if (cordon_seccomp_install(CORDON_SECCOMP_NO_UNIX, NULL) < 0 ||
	    cordon_seccomp_install(CORDON_SECCOMP_BASE, NULL) < 0)
		return 255;
	return body(arg);
}

static int socket_without_unix(long family)
{
	return under_no_unix(make_socket, family);
}

static int pair_without_unix(long type)
{
	return under_no_unix(make_pair, type);
}

static void where_abstract_names_cannot_be_told_apart_no_unix_socket_can_be_made(void **state)
{
	(void)state;
	assert_int_equal(code_under(false, socket_without_unix, AF_UNIX), EACCES);
	assert_int_equal(code_under(false, socket_without_unix, (long)(RUBBISH | AF_UNIX)), EACCES);
	assert_int_equal(code_under(false, socket_without_unix, AF_INET), 0);
	assert_int_equal(code_under(false, socket_without_unix, AF_NETLINK), EAFNOSUPPORT);
	assert_int_equal(code_under(true, make_socket, AF_UNIX), 0);
}

/* A datagram socket of a pair can be given another peer, by name. */
static void pairs_that_can_have_no_other_peer_can_be_made_and_no_others(void **state)
{
	static const long kept[] = { SOCK_STREAM, SOCK_SEQPACKET }, refused_types[] = { SOCK_DGRAM, SOCK_RAW };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(code_under(false, pair_without_unix, kept[i]), 0);
		assert_int_equal(code_under(false, pair_without_unix,
					    (long)(RUBBISH | kept[i] | SOCK_CLOEXEC | SOCK_NONBLOCK)),
				 0);
		assert_int_equal(code_under(false, pair_without_unix, refused_types[i]), EACCES);
		assert_int_equal(code_under(false, pair_without_unix, (long)(RUBBISH | refused_types[i] | SOCK_CLOEXEC)),
				 EACCES);
		assert_int_equal(code_under(true, make_pair, refused_types[i]), 0);
	}
}

static int open_for(long flags)
{
	return syscall(SYS_openat, AT_FDCWD, "file", flags, 0644) < 0 ? errno : 0;
}

#ifdef SYS_open
static int old_open_for(long flags)
{
	return syscall(SYS_open, "file", flags, 0644) < 0 ? errno : 0;
}
#endif

static int truncate_by_name(long size)
{
	return truncate("file", size) < 0 ? errno : 0;
}

static int code_without_truncation(int (*body)(long arg), long arg)
{
	int status = status_under(true, CORDON_SECCOMP_NO_TRUNCATE, body, arg);

	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void without_a_right_to_write_nothing_can_be_truncated(void **state)
{
	(void)state;
	close(open("file", O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
	for (size_t i = 0; i < 2; i++) {
		int (*body)(long) = open_for;

#ifdef SYS_open
		if (i)
			body = old_open_for;
#endif
		assert_int_equal(code_without_truncation(body, O_RDONLY | O_TRUNC), EACCES);
		assert_int_equal(code_without_truncation(body, (long)(RUBBISH | O_ACCMODE | O_TRUNC | O_CLOEXEC)),
				 EACCES);
		assert_int_equal(code_without_truncation(body, O_WRONLY | O_TRUNC), 0);
		assert_int_equal(code_without_truncation(body, O_RDWR | O_TRUNC | O_CLOEXEC), 0);
		assert_int_equal(code_without_truncation(body, O_RDONLY), 0);
		assert_int_equal(code_under(false, body, O_RDONLY | O_TRUNC), 0);
	}
	assert_int_equal(code_without_truncation(truncate_by_name, 0), EACCES);
	assert_int_equal(code_under(false, truncate_by_name, 0), 0);
}

/* Newer calls that libc and runtimes try must reach the kernel, so the filter must not return ENOSYS. This kernel may
 * not have them, so the test compares with the answer without the filter. */
static void modern_calls_reach_the_kernel(void **state)
{
	static const long numbers[] = { SYS_rseq,
					SYS_statx,
					SYS_faccessat2,
					SYS_epoll_pwait2,
					SYS_pidfd_open,
					449 /* futex_waitv */,
					450,
					451 /* cachestat */,
					453 /* map_shadow_stack */,
					454,
					455,
					456,
					462 /* mseal */,
					463,
					464,
					465,
					466,
					SYS_landlock_create_ruleset,
					SYS_ptrace,
					SYS_process_vm_readv,
					SYS_seccomp };

	(void)state;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(numbers); i++)
		assert_int_equal(code_under(true, call, numbers[i]), code_under(false, call, numbers[i]));
}

static int run_shell(long command)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	dup2(null, 0);
	dup2(null, 1);
	execl("/bin/sh", "sh", "-ec", (const char *)command, (char *)NULL);
	return 127;
}

static bool have_program(const char *name)
{
	char command[64];

	snprintf(command, sizeof(command), "command -v %s", name);
	return code_under(false, run_shell, (long)command) == 0;
}

static void ordinary_programs_run_under_the_filter(void **state)
{
	static const struct {
		const char *needs, *command;
	} programs[] = {
		{ "bash", "bash -c 'x=$(echo a | cat); for i in 1 2 3; do (sleep 0) & done; wait; [[ $x = a ]]'" },
		{ "git",
		  "export HOME=$PWD; git init -q r; cd r; echo a >f; git add f; git -c user.name=a -c user.email=a@b "
		  "commit -qm m; git gc -q; git worktree add -q ../w; git clone -q . ../c; test -z \"$(git status -s)\"" },
		{ "gcc",
		  "printf '#include <stdio.h>\\nint main(void){return puts(\"x\")<0;}\\n' >h.c; gcc -O2 -pipe -o h h.c; ./h" },
		{ "make", "printf 'all: a b\\na b:\\n\\ttouch $@\\n' >Makefile; make -j4; test -f a -a -f b" },
		{ "/usr/bin/python3",
		  "/usr/bin/python3 -c 'import subprocess,threading,socket,multiprocessing as m,tempfile,os,sqlite3,ssl\n"
		  "t=threading.Thread(target=int); t.start(); t.join()\n"
		  "assert subprocess.run([\"true\"]).returncode==0\n"
		  "assert m.Pool(2).map(abs,[-1,-2])==[1,2]\n"
		  "assert socket.getaddrinfo(\"localhost\",80)\n"
		  "s=socket.create_server((\"127.0.0.1\",0)); c=socket.create_connection(s.getsockname())'" },
		{ "/usr/bin/python3",
		  "/usr/bin/python3 -m venv --without-pip v; v/bin/python -c 'import sys; sys.exit(sys.prefix == sys.base_prefix)'" },
		{ "node", "node -e 'const{Worker}=require(\"worker_threads\"),fs=require(\"fs\");"
			  "require(\"child_process\").execSync(\"true\");fs.writeFileSync(\"n\",\"x\");"
			  "fs.promises.readFile(\"n\").then(()=>new Worker(\"process.exit(0)\",{eval:true})"
			  ".on(\"exit\",c=>require(\"dns\").lookup(\"localhost\",e=>process.exit(c||(e?1:0)))))'" },
		{ "npm", "export HOME=$PWD; npm --offline --version" },
		{ "curl", "echo hello >file; test \"$(curl -s \"file://$PWD/file\")\" = hello" },
		{ "strace", "strace -f -o trace sh -c 'true; /bin/true'; grep -q execve trace" },
		{ "gdb", "gdb -nx -batch -ex run --args /bin/true 2>&1 | grep -q 'exited normally'" },
		{ "java", "java -version 2>&1" },
		{ "tar", "mkdir d; echo x >d/f; tar -czf a.tar.gz d; rm -r d; tar -xzf a.tar.gz; test -f d/f" },
		{ "setarch", "setarch -R true" },
	};

	(void)state;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(programs); i++) {
		if (!have_program(programs[i].needs)) {
			print_message("# %s is not installed here, its row is left out\n", programs[i].needs);
			continue;
		}
		if (code_under(true, run_shell, (long)programs[i].command) != 0)
			fail_msg("under the filter: %s", programs[i].command);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(dangerous_calls_are_refused_with_eperm),
		cmocka_unit_test(unknown_numbers_do_not_exist),
#ifdef __x86_64__
		cmocka_unit_test(x32_numbers_kill_the_process),
		cmocka_unit_test(i386_entry_kills_the_process),
#endif
		cmocka_unit_test(terminal_injection_is_refused_whatever_the_upper_half),
		cmocka_unit_test(no_call_sets_the_bits_that_lend_an_identity),
		cmocka_unit_test(nobody_gets_a_lease),
		cmocka_unit_test(only_unix_and_internet_sockets_can_be_made),
		cmocka_unit_test(with_routes_netlink_has_the_routes_and_nothing_else),
		cmocka_unit_test(no_call_makes_a_namespace),
		cmocka_unit_test(only_native_personalities_can_be_had),
		cmocka_unit_test(cpu_mask_can_be_pinned),
		cmocka_unit_test(where_abstract_names_cannot_be_told_apart_no_unix_socket_can_be_made),
		cmocka_unit_test(pairs_that_can_have_no_other_peer_can_be_made_and_no_others),
		unit_test_in_dir(without_a_right_to_write_nothing_can_be_truncated),
		cmocka_unit_test(modern_calls_reach_the_kernel),
		unit_test_in_dir(ordinary_programs_run_under_the_filter),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
