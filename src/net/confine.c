/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What cordon-net gives up before it reads anything from the run: capabilities, all files (by Landlock, where the
 * kernel has it, and by the filter), and every system call that it does not need. It dies with the supervisor.
 */
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/sys.h"
#include "net/helper.h"

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#elif defined(__riscv)
#define ARCH AUDIT_ARCH_RISCV64
#else
#error "cordon-net does not know this architecture"
#endif

#define ALLOW(name) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

/* No call that names a file. Sockets are those of the Internet, to dial and to ask name servers. Everything else fails
 * with EACCES: a library that looks for a file goes on without it. */
static const struct sock_filter filter[] = {
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	ALLOW(splice),
	ALLOW(epoll_pwait),
#ifdef SYS_epoll_wait
	ALLOW(epoll_wait),
#endif
	ALLOW(epoll_ctl),
	ALLOW(accept4),
	ALLOW(read),
	ALLOW(write),
	ALLOW(readv),
	ALLOW(writev),
	ALLOW(recvfrom),
	ALLOW(sendto),
	ALLOW(recvmsg),
	ALLOW(sendmsg),
	ALLOW(close),
	ALLOW(shutdown),
	ALLOW(connect),
	ALLOW(bind),
	ALLOW(listen),
	ALLOW(getsockname),
	ALLOW(getpeername),
	ALLOW(getsockopt),
	ALLOW(setsockopt),
	ALLOW(pipe2),
	ALLOW(fcntl),
	ALLOW(ppoll),
#ifdef SYS_poll
	ALLOW(poll),
#endif
	ALLOW(brk),
	ALLOW(mmap),
	ALLOW(munmap),
	ALLOW(mremap),
	ALLOW(madvise),
	ALLOW(futex),
	ALLOW(clock_gettime),
	ALLOW(gettimeofday),
	ALLOW(getrandom),
	ALLOW(getpid),
	ALLOW(rt_sigreturn),
	ALLOW(rt_sigprocmask),
	ALLOW(restart_syscall),
	ALLOW(exit),
	ALLOW(exit_group),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 4),
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_INET, 1, 0),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_INET6, 0, 1),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
};

static int drop_capabilities(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { { 0 }, { 0 } };

	return syscall(SYS_capset, &header, none) < 0 ? -errno : 0;
}

/* A Landlock domain without a single rule: no file can be opened. A kernel without Landlock has the filter, which
 * allows no such call either. */
static int close_files(void)
{
	struct landlock_ruleset_attr attr = { .handled_access_fs = (1u << 13) - 1 }; /* all rights of the first ABI */
	int fd = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);
	int r = 0;

	if (fd < 0)
		return errno == ENOSYS || errno == EOPNOTSUPP ? 0 : -errno;
	if (syscall(SYS_landlock_restrict_self, fd, 0) < 0)
		r = -errno;
	close(fd);
	return r;
}

int net_confine(pid_t parent, const char **ret_what)
{
	const struct sock_fprog program = { CORDON_ARRAY_SIZE(filter), (struct sock_filter *)(uintptr_t)filter };
	int r;

	*ret_what = "die with the supervisor";
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		return -errno;
	if (getppid() != parent)
		return -ESRCH;
	*ret_what = "give up rights";
	if (prctl(PR_SET_DUMPABLE, 0) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	cordon_sys_request_short_slice();
	if (chdir("/") < 0)
		return -errno;
	if ((r = drop_capabilities()) < 0 || (r = close_files()) < 0)
		return r;
	*ret_what = "install a system call filter";
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0 ? -errno : 0;
}
