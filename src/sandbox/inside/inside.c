/* SPDX-License-Identifier: Apache-2.0 */
/* PID 1 before the agent runs: sets its identity, forks the agent's process, and has the tree built. */
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <sched.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/exit.h"
#include "base/io.h"
#include "sandbox/inside/detach.h"
#include "sandbox/inside/inside.h"

static void copy_text(char *dst, size_t size, const char *src)
{
	size_t n = strlen(src);

	cordon_copy(dst, size, src, n < size ? n : size - 1);
}

_Noreturn void cordon_inside_fail(const struct cordon_inside *in, int code, const char *what, const char *object)
{
	struct cordon_notice notice = { .kind = CORDON_NOTICE_FAILED, .code = code, .index = in->number };

	copy_text(notice.what, sizeof(notice.what), what);
	copy_text(notice.object, sizeof(notice.object), object);
	cordon_notice_send(in->ctl, &notice, -1);
	_exit(CORDON_EXIT_REFUSED);
}

static int write_text(int dir, const char *path, const char *text)
{
	int fd = openat(dir, path, O_WRONLY | O_CLOEXEC);
	int r;

	if (fd < 0)
		return -errno;
	r = cordon_write_all(fd, text, strlen(text));
	close(fd);
	return r;
}

/* Maps the caller's own id; no other id exists inside. */
static int map_id(const char *file, uint32_t id)
{
	char digits[CORDON_DIGITS_SIZE], map[2 * CORDON_DIGITS_SIZE];
	const char *number = cordon_digits(id, digits);

	cordon_concat(map, sizeof(map), number, " ", number, " 1", (char *)NULL);
	return write_text(AT_FDCWD, file, map);
}

static void map_ids(const struct cordon_inside *in)
{
	int r;

	if ((r = map_id("/proc/self/uid_map", in->plan->uid)) < 0)
		cordon_inside_fail(in, r, "map user ids", "/proc/self/uid_map");
	if ((r = write_text(AT_FDCWD, "/proc/self/setgroups", "deny")) < 0)
		cordon_inside_fail(in, r, "deny setgroups", "/proc/self/setgroups");
	if ((r = map_id("/proc/self/gid_map", in->plan->gid)) < 0)
		cordon_inside_fail(in, r, "map group ids", "/proc/self/gid_map");
}

void cordon_inside_forbid_namespaces(const struct cordon_inside *in)
{
	int r = in->host_proc < 0 ? 0 : write_text(in->host_proc, "sys/user/max_user_namespaces", "0");

	if (r < 0)
		cordon_inside_fail(in, r, "forbid nested user namespaces", "/proc/sys/user/max_user_namespaces");
	if (in->host_proc >= 0)
		close(in->host_proc);
}

static void wait_for_go(const struct cordon_inside *in)
{
	struct cordon_notice notice;
	int fd;

	/* This also fails when the supervisor died before we set the death signal. */
	if (cordon_notice_receive(in->ctl, &notice, &fd) != 1 || notice.kind != CORDON_NOTICE_GO)
		_exit(CORDON_EXIT_REFUSED);
}

/* Emptying the sets that outlive an exec needs CAP_SETPCAP. A process without it (the lower tier of an ordinary user)
 * can't get anything from them, because no_new_privs is set. */
static bool may_set_caps(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { 0 };

	return syscall(SYS_capget, &header, data) == 0 && (data[0].effective & (1u << CAP_SETPCAP));
}

static int empty_lasting_sets(uint64_t keep)
{
	if (prctl(PR_SET_SECUREBITS, SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |
					     SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE |
					     SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED) < 0)
		return -errno;
	for (unsigned long cap = 0; cap < 64; cap++) {
		if (keep & ((uint64_t)1 << cap))
			continue;
		if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0) {
			if (errno == EINVAL)
				break; /* past the last capability that this kernel knows */
			return -errno;
		}
	}
	return 0;
}

static void await_record(void *data)
{
	wait_for_go(data);
}

/* Sends the lens's device to the supervisor, which starts cordon-lens, and waits until that answers. */
static int serve_lens(void *data, int fuse_fd, int view_fd)
{
	struct cordon_inside *in = data;
	struct cordon_notice view = { .kind = CORDON_NOTICE_VIEW }, notice = { .kind = CORDON_NOTICE_FUSE };
	int fd, r = view_fd < 0 ? 0 : cordon_notice_send(in->ctl, &view, view_fd);

	if (r == 0)
		r = cordon_notice_send(in->ctl, &notice, fuse_fd);
	close(fuse_fd);
	if (r < 0)
		return r;
	/* When cordon-lens did not start, the supervisor reports why. */
	if (cordon_notice_receive(in->ctl, &notice, &fd) != 1 || notice.kind != CORDON_NOTICE_LENS_READY)
		_exit(CORDON_EXIT_REFUSED);
	return 0;
}

/* Sends the device of the tripwires to the supervisor, which serves them in its loop. */
static int serve_tripwires(void *data, int fuse_fd)
{
	struct cordon_inside *in = data;
	struct cordon_notice notice = { .kind = CORDON_NOTICE_TRIPWIRES };
	int r = cordon_notice_send(in->ctl, &notice, fuse_fd);

	close(fuse_fd);
	return r;
}

int cordon_caps_keep_lasting(uint64_t keep)
{
	return may_set_caps() ? empty_lasting_sets(keep) : 0;
}

int cordon_caps_keep(uint64_t keep)
{
	int r = cordon_caps_keep_lasting(keep);

	return r < 0 ? r : cordon_caps_keep_now(keep);
}

int cordon_caps_keep_now(uint64_t keep)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { 0 };

	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
		return -errno;
	for (size_t i = 0; i < 2; i++)
		data[i].effective = data[i].permitted = (uint32_t)(keep >> (32 * i));
	return syscall(SYS_capset, &header, data) < 0 ? -errno : 0;
}

static pid_t fork_agent(struct cordon_inside *in)
{
	int pair[2];
	pid_t agent;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		cordon_inside_fail(in, -errno, "make", "a socket");
	in->host_proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (in->host_proc < 0)
		cordon_inside_fail(in, -errno, "open", "/proc");
	in->go = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
	if (in->go < 0)
		cordon_inside_fail(in, -errno, "make", "an eventfd");
	agent = fork();
	if (agent < 0)
		cordon_inside_fail(in, -errno, "fork", "the agent's process");
	in->peer = pair[agent == 0];
	close(pair[agent != 0]);
	if (agent == 0)
		cordon_agent(in);
	cordon_closep(&in->host_proc);
	cordon_closep(&in->wake);
	close(in->exec_fd);
	return agent;
}

/* Sends the signal for which the agent's process waits in wait_for_init() (agent.c). */
static void signal_agent(const struct cordon_inside *in)
{
	if (eventfd_write(in->go, 1) < 0)
		cordon_inside_fail(in, -errno, "start", "the agent's process");
}

/* Joins the agent's network, so that the agent sees nothing of the host's through us. */
static void join_agent(struct cordon_inside *in)
{
	struct cordon_notice notice;
	int fd;

	/* When the agent's process has ended early, it has reported why to the supervisor. */
	if (cordon_notice_receive(in->peer, &notice, &fd) != 1 || notice.kind != CORDON_NOTICE_GO)
		_exit(CORDON_EXIT_REFUSED);
	if (in->plan->own_network && (fd < 0 || setns(fd, CLONE_NEWNET) < 0))
		cordon_inside_fail(in, fd < 0 ? -EBADF : -errno, "join", "the network of the agent");
	if (fd >= 0)
		close(fd);
	close(in->peer);
}

_Noreturn void cordon_inside_build(struct cordon_inside *in)
{
	const struct cordon_mounts_calls calls = { await_record, serve_lens, serve_tripwires, in };
	struct cordon_failure fail = { "build", "the sandbox" };
	pid_t agent;
	int stream = 0;
	int r;

	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		cordon_inside_fail(in, -errno, "set", "the death signal");
	map_ids(in);
	/* From here on nobody can read our memory or trace us; our /proc files belong to root. */
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		cordon_inside_fail(in, -errno, "close", "our memory to others");
	wait_for_go(in);
	if (sethostname(in->plan->hostname, strlen(in->plan->hostname)) < 0)
		cordon_inside_fail(in, -errno, "set host name", in->plan->hostname);
	r = cordon_detach_files(in->plan->uid, &stream);
	if (r < 0)
		cordon_inside_fail(in, r, "make read-only the file behind", cordon_detach_name(stream));
	in->umask = umask(0);
	agent = fork_agent(in);
	r = cordon_mounts_apply(in->plan, &calls, &in->mounts, &fail);
	if (r < 0)
		cordon_inside_fail(in, r, fail.what, fail.object);
	/* From here on the agent's process can open paths of the new tree; it goes on while we unmount the host's
	 * tree. */
	signal_agent(in);
	/* INVARIANT: this comes first, because the agent's program may start as soon as the host's tree is gone. */
	join_agent(in);
	r = cordon_mounts_leave(&fail);
	if (r < 0)
		cordon_inside_fail(in, r, fail.what, fail.object);
	signal_agent(in);
	close(in->go);
	cordon_init(in, agent);
}
