/* SPDX-License-Identifier: Apache-2.0 */
/* PID 1 before the agent runs: identity, the fork, the tree. */
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

#include "base/io.h"
#include "sandbox/inside.h"
#include "sandbox/streams.h"

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
	_exit(125);
}

static int write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	int r;

	if (fd < 0)
		return -errno;
	r = cordon_write_all(fd, text, strlen(text));
	close(fd);
	return r;
}

/* "<id> <id> 1": the caller's own id, and no other, exists inside. */
static void id_map(char map[static 40], uint32_t id)
{
	char digits[12];
	size_t n = 0, at = 0;

	do
		digits[n++] = (char)('0' + id % 10);
	while (id /= 10);
	for (int twice = 0; twice < 2; twice++) {
		for (size_t i = n; i-- > 0;)
			map[at++] = digits[i];
		map[at++] = ' ';
	}
	map[at++] = '1';
	map[at] = '\0';
}

static void map_ids(const struct cordon_inside *in)
{
	char map[40];
	int r;

	id_map(map, in->plan->uid);
	if ((r = write_text("/proc/self/uid_map", map)) < 0)
		cordon_inside_fail(in, r, "map user ids", "/proc/self/uid_map");
	if ((r = write_text("/proc/self/setgroups", "deny")) < 0)
		cordon_inside_fail(in, r, "deny setgroups", "/proc/self/setgroups");
	id_map(map, in->plan->gid);
	if ((r = write_text("/proc/self/gid_map", map)) < 0)
		cordon_inside_fail(in, r, "map group ids", "/proc/self/gid_map");
	/* The first of three stops against nested user namespaces; seccomp and Landlock are the others. */
	if ((r = write_text("/proc/sys/user/max_user_namespaces", "0")) < 0)
		cordon_inside_fail(in, r, "forbid nested user namespaces", "/proc/sys/user/max_user_namespaces");
}

static void wait_for_go(const struct cordon_inside *in)
{
	struct cordon_notice notice;
	int fd;

	/* Also tells whether the supervisor died before the death signal was set: then there is nobody to say go. */
	if (cordon_notice_receive(in->ctl, &notice, &fd) != 1 || notice.kind != CORDON_NOTICE_GO)
		_exit(125);
}

/* The sets that outlive an exec need CAP_SETPCAP to be emptied. Who lacks it (the lower tier of an ordinary user) has
 * nothing in them that no_new_privs would let out. */
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
				break; /* past the last one this kernel knows */
			return -errno;
		}
	}
	return 0;
}

/* Hands the view's device to the supervisor, which starts cordon-lens, and waits until that answers. */
static int serve_view(void *data, int fuse_fd)
{
	struct cordon_inside *in = data;
	struct cordon_notice notice = { .kind = CORDON_NOTICE_FUSE };
	int fd, r = cordon_notice_send(in->ctl, &notice, fuse_fd);

	close(fuse_fd);
	if (r < 0)
		return r;
	/* The supervisor says why it could not be started; there is nothing to add. */
	if (cordon_notice_receive(in->ctl, &notice, &fd) != 1 || notice.kind != CORDON_NOTICE_LENS_READY)
		_exit(125);
	return 0;
}

int cordon_caps_keep(uint64_t keep)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { 0 };
	int r = may_set_caps() ? empty_lasting_sets(keep) : 0;

	if (r < 0)
		return r;
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
	in->go = eventfd(0, EFD_CLOEXEC);
	if (in->go < 0)
		cordon_inside_fail(in, -errno, "make", "an eventfd");
	agent = fork();
	if (agent < 0)
		cordon_inside_fail(in, -errno, "fork", "the agent's process");
	in->peer = pair[agent == 0];
	close(pair[agent != 0]);
	if (agent == 0)
		cordon_agent(in);
	close(in->exec_fd);
	return agent;
}

/* Into the agent's network, so that nothing of the host's can be seen through us; then it may go on. */
static void meet_agent(struct cordon_inside *in)
{
	struct cordon_notice notice;
	int fd;

	/* Whoever ends early has told the supervisor why. */
	if (cordon_notice_receive(in->peer, &notice, &fd) != 1 || notice.kind != CORDON_NOTICE_GO)
		_exit(125);
	if (in->plan->net_none && (fd < 0 || setns(fd, CLONE_NEWNET) < 0))
		cordon_inside_fail(in, fd < 0 ? -EBADF : -errno, "join", "the network of the agent");
	if (fd >= 0)
		close(fd);
	if (eventfd_write(in->go, 1) < 0)
		cordon_inside_fail(in, -errno, "start", "the agent's process");
	close(in->go);
	close(in->peer);
}

_Noreturn void cordon_inside_build(struct cordon_inside *in)
{
	struct cordon_failure fail = { "build", "the sandbox" };
	pid_t agent;
	int stream = 0;
	int r;

	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		cordon_inside_fail(in, -errno, "set", "the death signal");
	map_ids(in);
	/* From here on nobody can look into us or trace us; /proc files of ours belong to root. */
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		cordon_inside_fail(in, -errno, "close", "our memory to others");
	wait_for_go(in);
	if (sethostname(in->plan->hostname, strlen(in->plan->hostname)) < 0)
		cordon_inside_fail(in, -errno, "set host name", in->plan->hostname);
	r = cordon_streams_seal(in->plan->uid, &stream);
	if (r < 0)
		cordon_inside_fail(in, r, "make read-only the file behind", cordon_stream_name(stream));
	in->umask = umask(0);
	agent = fork_agent(in);
	r = cordon_mounts_apply(in->plan, serve_view, in, &in->mounts, &fail);
	if (r < 0)
		cordon_inside_fail(in, r, fail.what, fail.object);
	meet_agent(in);
	cordon_init(in, agent);
}
