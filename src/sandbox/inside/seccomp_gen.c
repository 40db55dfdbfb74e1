/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that runs when cordon is built: turns the table below into BPF programs and prints them as C
 * (seccomp_filters.h).
 *
 * libseccomp gives the numbers of the calls on the target architecture. We assemble the programs ourselves, because
 * libseccomp can't express "anything but these" for the low half of an argument: an allow-list with exceptions for
 * ioctl or socket families would either refuse too much, or let a caller pass by setting bits in the upper half.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "sandbox/inside/ioctl_table.h"
#include "sandbox/inside/seccomp_code.h"

#ifndef SECCOMP_RET_USER_NOTIF
#define SECCOMP_RET_USER_NOTIF 0x7fc00000U
#endif

/* Constants of Linux that are hidden or missing in the headers. */
#define NEW_NAMESPACES 0x7e020000U /* CLONE_NEWNS, CGROUP, UTS, IPC, USER, PID, NET */
#define NEW_TIME 0x00000080U	   /* CLONE_NEWTIME; for clone(2) these bits are the exit signal */
#define X32_BIT 0x40000000U
#define RANDOMIZE_OFF 0x0040000U /* ADDR_NO_RANDOMIZE */
#define PRIO_OF_USER 2U		 /* PRIO_USER */
#define IOPRIO_OF_USER 3U	 /* IOPRIO_WHO_USER */
#define WHITEOUT 4U		 /* RENAME_WHITEOUT */
#define SOCKET_TYPE 0xfU	 /* SOCK_TYPE_MASK: the rest of the argument are flags */
#define COMMANDS_END 1039U	 /* fcntl: the first command after F_SET_FILE_RW_HINT, F_GETDELEG of 6.19 */
#define SET_IDS (S_ISUID | S_ISGID)

enum action {
	ALLOW,
	REFUSE,	       /* EPERM */
	ABSENT,	       /* ENOSYS: callers can do without it */
	BY_THE_HAND,   /* the same, but the hand may call it */
	REFUSE_AGENTS, /* EPERM, but the hand may call it */
	SOCKET,	       /* allowed when argument 0 is a family of the list, else EAFNOSUPPORT; see emit_socket() */
	SOCKETPAIR,    /* allowed for AF_UNIX only */
	CLONE,	       /* allowed when argument 0 asks for no new namespace */
	UNSHARE,       /* the same, and no time namespace */
	PERSONALITY,   /* allowed for the native one, with or without address randomisation */
	NOT_INIT,      /* allowed when argument 0, a process, is not PID 1 */
	PRIORITY,      /* allowed when arguments 0 and 1 name neither PID 1 nor all processes of a user */
	IO_PRIORITY,   /* the same, with the constants of ioprio_set */
	IOCTL,	       /* allowed for the requests of ioctl_table.h, else ENOTTY */
	FCNTL,	       /* allowed except for leases, and for commands that are newer than this table */
	MODE_BY_ARG_1, /* allowed when the mode in argument 1 has no set-user-id and no set-group-id bit */
	MODE_BY_ARG_2, /* the same, with the mode in argument 2 */
	RENAME_FLAGS,  /* allowed when argument 4 asks for no whiteout, which would be a device node */
};

/* The first variant in which the hand is notified of a call. */
enum watch {
	NEVER,
	CHANGES,	/* CHANGE and every later one */
	OPENS_BY_ARG_1, /* CHANGE if the flags in argument 1 may change something; FULL unless it only looks */
	OPENS_BY_ARG_2, /* the same, with the flags in argument 2 */
	TOUCHES,	/* FULL */
	LOOKS,		/* LEARN only, which has all the others too */
};

/*
 * The whole policy. Blanks separate `names`; "name=NR" gives the number of a call that is newer than libseccomp (from
 * 424 on it is the same on every architecture). A call that is not in the table gets ENOSYS: obsolete calls (uselib,
 * ustat, sysfs, _sysctl, create_module, afs_syscall, ...), and all that future kernels add.
 */
static const struct group {
	enum action action;
	enum watch watch;
	const char *names;
} table[] = {
	/* Descriptors, and files that are already open. */
	{ ALLOW, NEVER,
	  "read write readv writev pread64 pwrite64 preadv pwritev preadv2 pwritev2 close close_range lseek dup dup2 dup3 "
	  "flock fsync fdatasync sync syncfs sync_file_range ftruncate fallocate fadvise64 readahead sendfile "
	  "copy_file_range splice tee vmsplice pipe pipe2 getdents getdents64 fstat fstatfs fchdir fchown "
	  "fgetxattr flistxattr fremovexattr cachestat=451" },
	/* A lease on a file stops everybody else who opens it, for 45 seconds each time. */
	{ FCNTL, NEVER, "fcntl" },
	/* Looking at names is not an access, because what the agent must not see is not mounted. But a learning run
	 * needs these. */
	{ ALLOW, LOOKS,
	  "stat lstat newfstatat statx statfs access faccessat faccessat2 readlink readlinkat chdir getxattr lgetxattr "
	  "listxattr llistxattr getxattrat=464 listxattrat=465" },
	{ ALLOW, NEVER, "getcwd umask" },
	/* A program of the caller's with a set-user-id bit would outlive the run and lend the caller's rights to every user
	 * of the host. mkdir is not among these: the kernel ignores the bits there. What opens files is below. */
	{ MODE_BY_ARG_1, NEVER, "fchmod" },
	{ MODE_BY_ARG_1, CHANGES, "creat mknod chmod" },
	{ MODE_BY_ARG_2, CHANGES, "mknodat fchmodat fchmodat2=452" },
	/* Opening. openat2 has flags and mode in memory, where another thread can change them after whoever has judged
	 * them: then a call that only reads makes a program with a set-user-id bit. Callers have a way without it. */
	{ ALLOW, OPENS_BY_ARG_1, "open" },
	{ ALLOW, OPENS_BY_ARG_2, "openat" },
	{ BY_THE_HAND, NEVER, "openat2" },
	/* Making names. bind makes one for a socket; renames and links give a new name to something that exists. */
	{ ALLOW, CHANGES, "mkdir mkdirat symlink symlinkat link linkat rename renameat bind" },
	{ RENAME_FLAGS, CHANGES, "renameat2" },
	/* Changing or removing what a path names. */
	{ ALLOW, CHANGES,
	  "truncate unlink unlinkat rmdir chown lchown fchownat utime utimes futimesat utimensat "
	  "setxattr lsetxattr fsetxattr removexattr lremovexattr setxattrat=463 removexattrat=466" },
	{ ALLOW, TOUCHES, "execve execveat" },
	/* Waiting for descriptors, timers, file changes. */
	{ ALLOW, NEVER,
	  "poll ppoll select pselect6 epoll_create epoll_create1 epoll_ctl epoll_ctl_old epoll_wait epoll_wait_old "
	  "epoll_pwait epoll_pwait2 eventfd eventfd2 signalfd signalfd4 timerfd_create timerfd_settime timerfd_gettime "
	  "inotify_init inotify_init1 inotify_add_watch inotify_rm_watch" },
	/* The old asynchronous I/O works on open descriptors only and takes no path, unlike io_uring. */
	{ ALLOW, NEVER, "io_setup io_submit io_cancel io_getevents io_pgetevents io_destroy" },
	/* Memory. */
	{ ALLOW, NEVER,
	  "brk mmap munmap mremap mprotect madvise mincore msync mlock mlock2 munlock mlockall munlockall "
	  "remap_file_pages memfd_create membarrier pkey_alloc pkey_free pkey_mprotect process_madvise process_mrelease "
	  "get_mempolicy set_mempolicy mbind set_mempolicy_home_node=450 map_shadow_stack=453 mseal=462" },
	/* Processes, threads and their ids. The agent has no capability, so the calls that set ids do only harmless
	 * things. */
	{ ALLOW, NEVER,
	  "fork vfork exit exit_group wait4 waitid getpid getppid gettid getpgid getpgrp setpgid getsid setsid getuid geteuid "
	  "getgid getegid getresuid getresgid getgroups setuid setgid setreuid setregid setresuid setresgid setfsuid "
	  "setfsgid setgroups capget capset prctl arch_prctl set_tid_address set_robust_list get_robust_list futex "
	  "futex_waitv=449 futex_wake=454 futex_wait=455 futex_requeue=456 rseq set_thread_area get_thread_area "
	  "restart_syscall pidfd_open pidfd_send_signal getcpu" },
	/* Signals. The pid namespace, and from 6.12 on the Landlock scope, decide which processes they can reach. */
	{ ALLOW, NEVER,
	  "kill tkill tgkill rt_sigaction rt_sigprocmask rt_sigpending rt_sigtimedwait rt_sigsuspend rt_sigreturn "
	  "rt_sigqueueinfo rt_tgsigqueueinfo sigaltstack pause alarm" },
	/* Scheduling and resource limits; hard limits can't be raised, and the PIN variant refuses sched_setaffinity. */
	{ ALLOW, NEVER,
	  "sched_yield sched_getaffinity sched_getparam sched_getscheduler sched_getattr sched_get_priority_max "
	  "sched_get_priority_min sched_rr_get_interval getpriority ioprio_get getrlimit setrlimit getrusage times" },
	/* PID 1 must stay able to mount protected paths again when the host replaces them. It runs as the agent's user,
	 * so these calls could take its descriptors or its processor time away. (They can do so to the hand; then its
	 * requests are refused.) */
	{ NOT_INIT, NEVER, "prlimit64 sched_setaffinity sched_setparam sched_setscheduler sched_setattr" },
	{ PRIORITY, NEVER, "setpriority" },
	{ IO_PRIORITY, NEVER, "ioprio_set" },
	/* Reading the time; timers. */
	{ ALLOW, NEVER,
	  "time gettimeofday clock_gettime clock_getres clock_nanosleep nanosleep getitimer setitimer timer_create "
	  "timer_settime timer_gettime timer_getoverrun timer_delete" },
	{ ALLOW, NEVER, "uname sysinfo getrandom" },
	/* Sockets of the allowed families. */
	{ ALLOW, NEVER,
	  "connect listen accept accept4 getsockname getpeername sendto recvfrom sendmsg recvmsg sendmmsg recvmmsg shutdown "
	  "setsockopt getsockopt" },
	/* System V and POSIX queues, shared memory, semaphores: the run has an IPC namespace of its own. */
	{ ALLOW, NEVER,
	  "shmget shmat shmdt shmctl semget semop semtimedop semctl msgget msgsnd msgrcv msgctl mq_open mq_unlink "
	  "mq_timedsend mq_timedreceive mq_notify mq_getsetattr" },
	/* Debuggers work inside. Only processes of the same Landlock domain and user namespace can be traced, PID 1 is
	 * not dumpable, and since 4.8 the filter sees a call after a tracer has changed it. */
	{ ALLOW, NEVER, "ptrace process_vm_readv process_vm_writev kcmp pidfd_getfd" },
	/* Programs that restrict themselves further (browsers, other sandboxes). A filter on top of ours can only
	 * refuse more: errors win over notifications, and while the hand listens the kernel gives no second listener
	 * (EBUSY). The hand marks a process that gives up rights by Landlock, so that it does not give them
	 * back. */
	{ ALLOW, NEVER, "seccomp landlock_create_ruleset landlock_add_rule" },
	{ ALLOW, CHANGES, "landlock_restrict_self" },

	{ SOCKET, NEVER, "socket" },
	{ SOCKETPAIR, NEVER, "socketpair" },
	{ CLONE, NEVER, "clone" },
	{ UNSHARE, NEVER, "unshare" },
	{ PERSONALITY, NEVER, "personality" },
	{ IOCTL, NEVER, "ioctl" },

	/* It has its flags in memory, where the filter can't see that they ask for a namespace. libc falls back to
	 * clone. */
	{ ABSENT, NEVER, "clone3" },
	/* They show the mount table, like /proc; programs read /proc when these are missing. */
	{ ABSENT, NEVER, "statmount=457 listmount=458" },
	/* It locks memory and prevents hibernation of the host. */
	{ ABSENT, NEVER, "memfd_secret" },

	/* Namespaces and mounts: the agent could unmount or change its tree with them. */
	{ REFUSE, NEVER,
	  "setns mount umount umount2 pivot_root chroot fsopen fsconfig fsmount fspick open_tree move_mount mount_setattr "
	  "open_tree_attr=467" },
	/* Calls that bypass the other rules: requests that no filter sees, and files by handle instead of by path. */
	{ REFUSE, NEVER,
	  "io_uring_setup io_uring_enter io_uring_register open_by_handle_at fanotify_init fanotify_mark "
	  "lookup_dcookie" },
	/* The hand tells by it two files apart that had the same number in the same tick of the clock. */
	{ REFUSE_AGENTS, NEVER, "name_to_handle_at" },
	/* Kernel interfaces that need privileges, or through which programs have often gained them. */
	{ REFUSE, NEVER,
	  "bpf perf_event_open userfaultfd keyctl add_key request_key kexec_load kexec_file_load init_module finit_module "
	  "delete_module modify_ldt move_pages migrate_pages" },
	/* The machine as a whole. */
	{ REFUSE, NEVER,
	  "reboot swapon swapoff acct quotactl quotactl_fd syslog iopl ioperm nfsservctl vhangup sethostname setdomainname "
	  "settimeofday clock_settime clock_adjtime adjtimex stime" },
};

/* Only on x86-64, because numbers below 424 differ elsewhere: the trampolines of probes that the host has set; a traced
 * program would die without them. The kernel itself refuses them when they are called from anywhere else. */
static const struct group x86_table[] = { { ALLOW, NEVER, "uretprobe=335 uprobe=336" } };

enum { CALLS_MAX = 600 };

struct call {
	uint32_t nr;
	enum action action;
	enum watch watch;
	char name[32];
};

static struct call calls[CALLS_MAX];
static size_t n_calls;
static uint32_t arch;

/* HAND is BASE with what the hand does for others. */
enum variant { HAND, BASE, CHANGE, FULL, LEARN, PIN, NO_UNIX, NO_TRUNCATE, NO_XATTR };

/* Returns `yes` if argument `arg` is one of the values, else `no`. */
static void emit_one_of(struct code *code, unsigned int arg, const uint32_t *values, size_t n, uint32_t yes, uint32_t no)
{
	emit_load_arg(code, arg);
	for (size_t i = 0; i < n; i++)
		emit(code, BPF_JMP | BPF_JEQ | BPF_K, (uint8_t)(n - i), 0, values[i]);
	emit_return(code, no);
	emit_return(code, yes);
}

/* Returns `yes` if argument `arg` has any of the bits, else `no`. */
static void emit_any_bit(struct code *code, unsigned int arg, uint32_t bits, uint32_t yes, uint32_t no)
{
	emit_load_arg(code, arg);
	emit(code, BPF_JMP | BPF_JSET | BPF_K, 0, 1, bits);
	emit_return(code, yes);
	emit_return(code, no);
}

/* Argument 0 says what argument 1 is. Refuses a call for all processes of a user, and for PID 1. */
static void emit_not_init(struct code *code, uint32_t of_user, uint32_t refuse)
{
	emit_load_arg(code, 0);
	emit(code, BPF_JMP | BPF_JEQ | BPF_K, 2, 0, of_user);
	emit_load_arg(code, 1);
	emit(code, BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 1);
	emit_return(code, refuse);
	emit_return(code, SECCOMP_RET_ALLOW);
}

/* The flags with which open may change something. O_TMPFILE includes the bit of O_DIRECTORY, so we leave that out. */
#define CHANGING_FLAGS (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | (O_TMPFILE & ~O_DIRECTORY))

/* Listing a directory and opening with O_PATH only look at names, as stat does. They do not count as access, and they
 * are most of what git or find open. */
static void emit_open_unless_looking(struct code *code, unsigned int arg)
{
	emit_load_arg(code, arg);
	emit(code, BPF_JMP | BPF_JSET | BPF_K, 1, 0, CHANGING_FLAGS);
	emit(code, BPF_JMP | BPF_JSET | BPF_K, 1, 0, O_DIRECTORY | O_PATH);
	emit_return(code, SECCOMP_RET_USER_NOTIF);
	emit_return(code, SECCOMP_RET_ALLOW);
}

/* Goes on if argument `arg`, a mode, has no set-user-id and no set-group-id bit. */
static void emit_mode(struct code *code, unsigned int arg)
{
	emit_load_arg(code, arg);
	emit(code, BPF_JMP | BPF_JSET | BPF_K, 0, 1, SET_IDS);
	emit_errno(code, EPERM);
}

/* The same for open, where `arg` has the flags and the next one the mode, which the kernel reads only when it may make a
 * file. */
static void emit_open_mode(struct code *code, unsigned int arg)
{
	emit_load_arg(code, arg);
	emit(code, BPF_JMP | BPF_JSET | BPF_K, 0, 3, O_CREAT | (O_TMPFILE & ~O_DIRECTORY));
	emit_mode(code, arg + 1);
}

static void emit_allowed(struct code *code, enum watch watch, enum variant variant)
{
	unsigned int flags = watch == OPENS_BY_ARG_1 ? 1 : 2;

	switch (watch) {
	case OPENS_BY_ARG_1:
	case OPENS_BY_ARG_2:
		emit_open_mode(code, flags);
		if (variant == CHANGE)
			emit_any_bit(code, flags, CHANGING_FLAGS, SECCOMP_RET_USER_NOTIF, SECCOMP_RET_ALLOW);
		else if (variant == FULL)
			emit_open_unless_looking(code, flags);
		else
			emit_return(code, variant > FULL ? SECCOMP_RET_USER_NOTIF : SECCOMP_RET_ALLOW);
		return;
	case CHANGES:
		emit_return(code, variant <= BASE ? SECCOMP_RET_ALLOW : SECCOMP_RET_USER_NOTIF);
		return;
	case TOUCHES:
		emit_return(code, variant >= FULL ? SECCOMP_RET_USER_NOTIF : SECCOMP_RET_ALLOW);
		return;
	case LOOKS:
		emit_return(code, variant == LEARN ? SECCOMP_RET_USER_NOTIF : SECCOMP_RET_ALLOW);
		return;
	case NEVER:
		emit_return(code, SECCOMP_RET_ALLOW);
		return;
	}
}

/* The families that have sockets. In a run with a list of hosts also NETLINK_ROUTE, by which programs ask for interfaces
 * and addresses: that network has nothing to hide, and to change it takes a capability that no agent has. */
static void emit_socket(struct code *code, bool routes)
{
	static const uint32_t families[] = { AF_UNIX, AF_INET, AF_INET6 };

	if (routes) {
		emit_load_arg(code, 0);
		emit(code, BPF_JMP | BPF_JEQ | BPF_K, 0, 4, AF_NETLINK);
		emit_load_arg(code, 2);
		emit(code, BPF_JMP | BPF_JEQ | BPF_K, 0, 1, NETLINK_ROUTE);
		emit_return(code, SECCOMP_RET_ALLOW);
		emit_errno(code, EPROTONOSUPPORT);
	}
	emit_one_of(code, 0, families, 3, SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO | EAFNOSUPPORT);
}

static int by_value(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* Searches argument 1 in the list of requests. The kernel reads 32 bits of it. */
static void emit_ioctl(struct code *code, enum variant variant)
{
	enum {
		AGENT = sizeof(ioctl_requests) / sizeof(uint32_t),
		ALL = AGENT + sizeof(hand_requests) / sizeof(uint32_t)
	};
	static struct leaf leaves[2 * ALL + 1];
	static struct code yes, no;
	uint32_t requests[ALL], next = 0;
	size_t n = variant == HAND ? ALL : AGENT, n_leaves = 0;

	yes.n = no.n = 0;
	emit_return(&yes, SECCOMP_RET_ALLOW);
	emit_errno(&no, ENOTTY);
	memcpy(requests, ioctl_requests, sizeof(ioctl_requests));
	memcpy(requests + AGENT, hand_requests, sizeof(hand_requests));
	qsort(requests, n, sizeof(requests[0]), by_value);
	for (size_t i = 0; i < n; i++) {
		if (i > 0 && requests[i] == requests[i - 1])
			fail("twice in the table", "a request of ioctl");
		if (requests[i] > next)
			add_leaf(leaves, &n_leaves, next, &no);
		add_leaf(leaves, &n_leaves, requests[i], &yes);
		next = requests[i] + 1;
	}
	add_leaf(leaves, &n_leaves, next, &no);
	emit_load_arg(code, 1);
	emit_search(code, leaves, n_leaves);
	free_leaves(leaves, n_leaves);
}

/* Commands below F_SETLEASE are as old as Linux. Later ones than ours may be further leases, as F_SETDELEG of 6.19 is: they
 * do not exist. */
static void emit_fcntl(struct code *code, uint32_t refuse)
{
	emit_load_arg(code, 1);
	emit(code, BPF_JMP | BPF_JGE | BPF_K, 0, 6, F_SETLEASE);
	emit(code, BPF_JMP | BPF_JGE | BPF_K, 0, 1, COMMANDS_END);
	emit_errno(code, EINVAL);
	emit(code, BPF_JMP | BPF_JEQ | BPF_K, 0, 3, F_SETLEASE);
	emit_load_arg(code, 2);
	emit(code, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, F_UNLCK);
	emit_return(code, refuse);
	emit_return(code, SECCOMP_RET_ALLOW);
}

static void emit_call(struct code *code, const struct call *call, enum variant variant, bool routes)
{
	static const uint32_t pairs[] = { AF_UNIX };
	static const uint32_t personas[] = { 0, RANDOMIZE_OFF, 0xffffffffU };
	static const uint32_t init[] = { 1 };
	const uint32_t allow = SECCOMP_RET_ALLOW, refuse = SECCOMP_RET_ERRNO | EPERM;

	switch (call->action) {
	case ALLOW:
		emit_allowed(code, call->watch, variant);
		return;
	case REFUSE:
		emit_return(code, refuse);
		return;
	case ABSENT:
		emit_errno(code, ENOSYS);
		return;
	case BY_THE_HAND:
		emit_return(code, variant == HAND ? allow : SECCOMP_RET_ERRNO | ENOSYS);
		return;
	case REFUSE_AGENTS:
		emit_return(code, variant == HAND ? allow : refuse);
		return;
	case SOCKET:
		emit_socket(code, routes);
		return;
	case SOCKETPAIR:
		emit_one_of(code, 0, pairs, 1, allow, SECCOMP_RET_ERRNO | EAFNOSUPPORT);
		return;
	case CLONE:
		emit_any_bit(code, 0, NEW_NAMESPACES, refuse, allow);
		return;
	case UNSHARE:
		emit_any_bit(code, 0, NEW_NAMESPACES | NEW_TIME, refuse, allow);
		return;
	case PERSONALITY:
		emit_one_of(code, 0, personas, 3, allow, refuse);
		return;
	case NOT_INIT:
		emit_one_of(code, 0, init, 1, refuse, allow);
		return;
	case PRIORITY:
		emit_not_init(code, PRIO_OF_USER, refuse);
		return;
	case IO_PRIORITY:
		emit_not_init(code, IOPRIO_OF_USER, refuse);
		return;
	case IOCTL:
		emit_ioctl(code, variant);
		return;
	case FCNTL:
		emit_fcntl(code, refuse);
		return;
	case MODE_BY_ARG_1:
	case MODE_BY_ARG_2:
		emit_mode(code, call->action == MODE_BY_ARG_1 ? 1 : 2);
		emit_allowed(code, call->watch, variant);
		return;
	case RENAME_FLAGS:
		emit_any_bit(code, 4, WHITEOUT, SECCOMP_RET_ERRNO | EINVAL,
			     variant <= BASE ? allow : SECCOMP_RET_USER_NOTIF);
		return;
	}
}

static void emit_entry(struct code *code)
{
	emit(code, BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, arch));
	emit(code, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, arch);
	emit_return(code, SECCOMP_RET_KILL_PROCESS);
	emit(code, BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, nr));
	if (arch == AUDIT_ARCH_X86_64) {
		/* A tracer writes -1 to skip a call. It is no x32 number: let it get ENOSYS. */
		emit(code, BPF_JMP | BPF_JEQ | BPF_K, 2, 0, 0xffffffffU);
		emit(code, BPF_JMP | BPF_JSET | BPF_K, 0, 1, X32_BIT);
		emit_return(code, SECCOMP_RET_KILL_PROCESS);
	}
}

static void build(struct code *code, enum variant variant, bool routes)
{
	static struct leaf leaves[2 * CALLS_MAX + 1];
	static struct code made;
	size_t n = 0;
	uint32_t next = 0;

	for (size_t i = 0; i < n_calls; i++) {
		if (calls[i].nr > next) {
			made.n = 0;
			emit_errno(&made, ENOSYS);
			add_leaf(leaves, &n, next, &made);
		}
		made.n = 0;
		emit_call(&made, &calls[i], variant, routes);
		add_leaf(leaves, &n, calls[i].nr, &made);
		next = calls[i].nr + 1;
	}
	made.n = 0;
	emit_errno(&made, ENOSYS);
	add_leaf(leaves, &n, next, &made);

	emit_entry(code);
	emit_search(code, leaves, n);
	free_leaves(leaves, n);
}

/* The filter that only protects the CPU mask; the main filter kills calls of another ABI. */
static void build_pin(struct code *code)
{
	int nr = seccomp_syscall_resolve_name_arch(arch, "sched_setaffinity");

	if (nr < 0)
		fail("no such call here", "sched_setaffinity");
	emit(code, BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, nr));
	emit(code, BPF_JMP | BPF_JEQ | BPF_K, 0, 1, (uint32_t)nr);
	emit_errno(code, EPERM);
	emit_return(code, SECCOMP_RET_ALLOW);
}

static uint32_t number_of(const char *name)
{
	int nr = seccomp_syscall_resolve_name_arch(arch, name);

	if (nr < 0)
		fail("no such call here", name);
	return (uint32_t)nr;
}

/* Goes on with `body` for this call, and past it for any other, with the number loaded again. */
static void emit_if_call(struct code *code, uint32_t nr, const struct code *body)
{
	emit(code, BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, nr));
	emit(code, BPF_JMP | BPF_JEQ | BPF_K, 0, (uint8_t)body->n, nr);
	for (size_t i = 0; i < body->n; i++)
		emit(code, body->at[i].code, body->at[i].jt, body->at[i].jf, body->at[i].k);
}

/*
 * The filter for kernels on which nothing else keeps the host's abstract sockets out of reach. Names stand in memory, where no
 * filter sees them, so there is no socket that could still be given one. Of a pair, a datagram socket could: sendto(2) and
 * connect(2) give it another peer (SOCK_RAW is the same to the kernel). Streams and SOCK_SEQPACKET stay what they are for ever.
 */
static void build_no_unix(struct code *code)
{
	static const uint32_t family[] = { AF_UNIX };
	static struct code body;

	body.n = 0;
	emit_one_of(&body, 0, family, 1, SECCOMP_RET_ERRNO | EACCES, SECCOMP_RET_ALLOW);
	emit_if_call(code, number_of("socket"), &body);
	body.n = 0;
	emit_load_arg(&body, 1);
	emit(&body, BPF_ALU | BPF_AND | BPF_K, 0, 0, SOCKET_TYPE);
	emit(&body, BPF_JMP | BPF_JEQ | BPF_K, 2, 0, SOCK_STREAM);
	emit(&body, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, SOCK_SEQPACKET);
	emit_errno(&body, EACCES);
	emit_return(&body, SECCOMP_RET_ALLOW);
	emit_if_call(code, number_of("socketpair"), &body);
	emit_return(code, SECCOMP_RET_ALLOW);
}

/* If the flags in `arg` truncate and do not ask for a right to write (then Landlock judges them): EACCES. Access mode 3 asks for
 * none, although the kernel wants the file to be writable. */
static void emit_no_truncation(struct code *code, const char *name, unsigned int arg)
{
	static struct code body;

	body.n = 0;
	emit_load_arg(&body, arg);
	emit(&body, BPF_JMP | BPF_JSET | BPF_K, 0, 4, O_TRUNC);
	emit(&body, BPF_ALU | BPF_AND | BPF_K, 0, 0, O_ACCMODE);
	emit(&body, BPF_JMP | BPF_JEQ | BPF_K, 2, 0, O_WRONLY);
	emit(&body, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, O_RDWR);
	emit_errno(&body, EACCES);
	emit_return(&body, SECCOMP_RET_ALLOW);
	emit_if_call(code, number_of(name), &body);
}

/*
 * The filter for runs that rest on a Landlock without a right to truncate: what may only be read could be emptied by
 * truncate(2), and by opening it for reading with O_TRUNC.
 */
static void build_no_truncate(struct code *code)
{
	static struct code body;

	body.n = 0;
	emit_errno(&body, EACCES);
	emit_if_call(code, number_of("truncate"), &body);
	if (seccomp_syscall_resolve_name_arch(arch, "open") >= 0)
		emit_no_truncation(code, "open", 1);
	emit_no_truncation(code, "openat", 2);
	emit_return(code, SECCOMP_RET_ALLOW);
}

/* The filter for runs that rest on Landlock alone, which judges no attributes: an access list opens a file to others, wherever it
 * lies. To programs it looks like a file system that keeps none. */
static void build_no_xattr(struct code *code)
{
	static const char *const names[] = { "setxattr",    "lsetxattr",    "fsetxattr",
					     "removexattr", "lremovexattr", "fremovexattr" };
	static const uint32_t newer[] = { 463, 466 }; /* setxattrat, removexattrat: the same everywhere */
	static struct code body;

	body.n = 0;
	emit_errno(&body, EOPNOTSUPP);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		emit_if_call(code, number_of(names[i]), &body);
	for (size_t i = 0; i < sizeof(newer) / sizeof(newer[0]); i++)
		emit_if_call(code, newer[i], &body);
	emit_return(code, SECCOMP_RET_ALLOW);
}

static void add_call(const struct group *group, const char *word, size_t len)
{
	struct call *call = &calls[n_calls];
	size_t name_len = strcspn(word, "= ");
	long given = name_len < len ? strtol(word + name_len + 1, NULL, 10) : -1;
	int nr;

	if (n_calls == CALLS_MAX || name_len >= sizeof(call->name))
		fail("table too long", word);
	memcpy(call->name, word, name_len);
	call->name[name_len] = '\0';
	nr = seccomp_syscall_resolve_name_arch(arch, call->name);
	if (nr == __NR_SCMP_ERROR && given < 0)
		fail("libseccomp does not know this call and the table gives no number", call->name);
	if (nr == __NR_SCMP_ERROR)
		nr = (int)given;
	if (nr < 0)
		return; /* not on this architecture */
	if (given >= 0 && nr != given)
		fail("libseccomp has another number than the table", call->name);
	call->nr = (uint32_t)nr;
	call->action = group->action;
	call->watch = group->watch;
	n_calls++;
}

static void add_groups(const struct group *groups, size_t n)
{
	for (size_t i = 0; i < n; i++)
		for (const char *p = groups[i].names; *p; p += strspn(p, " ")) {
			size_t len = strcspn(p, " ");

			add_call(&groups[i], p, len);
			p += len;
		}
}

static int by_number(const void *a, const void *b)
{
	uint32_t x = ((const struct call *)a)->nr, y = ((const struct call *)b)->nr;

	return x < y ? -1 : x > y;
}

static void print(const char *name, enum variant variant, bool routes)
{
	static struct code code;

	code.n = 0;
	if (variant == PIN)
		build_pin(&code);
	else if (variant == NO_UNIX)
		build_no_unix(&code);
	else if (variant == NO_TRUNCATE)
		build_no_truncate(&code);
	else if (variant == NO_XATTR)
		build_no_xattr(&code);
	else
		build(&code, variant, routes);
	printf("static const struct sock_filter filter_%s[] = {\n", name);
	for (size_t i = 0; i < code.n; i++)
		printf("\t{ 0x%02x, %u, %u, 0x%08x },\n", code.at[i].code, code.at[i].jt, code.at[i].jf, code.at[i].k);
	printf("};\n\n");
}

int main(int argc, char **argv)
{
	if (argc != 2)
		fail("usage", "seccomp_gen ARCHITECTURE");
	arch = seccomp_arch_resolve_name(argv[1]);
	if (arch == 0)
		fail("libseccomp does not know this architecture", argv[1]);
	if (!(arch & __AUDIT_ARCH_LE) || !(arch & __AUDIT_ARCH_64BIT))
		fail("only for 64-bit little-endian machines", argv[1]);
	/* These have requests of their own for terminals. */
	if (arch == AUDIT_ARCH_PPC64LE || arch == AUDIT_ARCH_MIPSEL64)
		fail("ioctl_table.h has the numbers of other machines", argv[1]);
	add_groups(table, sizeof(table) / sizeof(table[0]));
	if (arch == AUDIT_ARCH_X86_64)
		add_groups(x86_table, sizeof(x86_table) / sizeof(x86_table[0]));
	qsort(calls, n_calls, sizeof(calls[0]), by_number);
	for (size_t i = 1; i < n_calls; i++)
		if (calls[i].nr == calls[i - 1].nr)
			fail("twice in the table", calls[i].name);

	printf("/* Made by seccomp_gen from its table; for %s. Do not edit. */\n", argv[1]);
	print("hand", HAND, false);
	print("base", BASE, false);
	print("change", CHANGE, false);
	print("full", FULL, false);
	print("learn", LEARN, false);
	print("base_routes", BASE, true);
	print("change_routes", CHANGE, true);
	print("full_routes", FULL, true);
	print("learn_routes", LEARN, true);
	print("pin_cpus", PIN, false);
	print("no_unix", NO_UNIX, false);
	print("no_truncate", NO_TRUNCATE, false);
	print("no_xattr", NO_XATTR, false);
	return fflush(stdout) == 0 && !ferror(stdout) ? 0 : 1;
}
