/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a command that sees a directory through cordon-lens, without the rest of a sandbox, for tests and benchmarks:
 *
 *     mount_lens --lens PATH --root DIR --at DIR [--rw|--ro|--deny PATTERN | --protect PATH]... [--permissive]
 *                [--read-only] [--no-temps] [--lens-pid FILE] -- CMD [ARG]...
 *
 * Two processes, as in `cordon run`: one stays outside and starts the lens; the other goes into a user and mount
 * namespace with one id, mounts the view, hands the device out, drops every capability and becomes the command. The
 * exit status is the command's; 120 when something of this failed, 121 when the lens did not end as it should.
 */
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/mount.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/io.h"
#include "policy/handover.h"

#define FAILED 120
#define LENS_FAILED 121

struct setup {
	const char *lens, *root, *at, *lens_pid;
	struct cordon_policy *policy;
	bool temps;
	char **command;
};

static void fail(const char *what)
{
	fprintf(stderr, "mount_lens: %s: %s\n", what, strerror(errno));
	_exit(FAILED);
}

static void fail_error(const struct cordon_error *err)
{
	fprintf(stderr, "mount_lens: %s\n", err->message);
	_exit(FAILED);
}

static void write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	if (fd < 0 || cordon_write_all(fd, text, strlen(text)) < 0)
		fail(path);
	close(fd);
}

/* ---- the command line ---- */

static void add_rule(struct setup *setup, const char *option, const char *arg)
{
	struct cordon_error err = { 0 };
	int r;

	if (!setup->policy && cordon_policy_new(setup->root ? setup->root : "", &setup->policy, &err) < 0)
		fail_error(&err);
	if (cordon_streq(option, "--protect"))
		r = cordon_policy_protect(setup->policy, arg, &err);
	else
		r = cordon_policy_grant(setup->policy, arg,
					cordon_streq(option, "--rw")   ? CORDON_ACCESS_WRITE
					: cordon_streq(option, "--ro") ? CORDON_ACCESS_READ
								       : CORDON_ACCESS_NONE,
					&err);
	if (r < 0)
		fail_error(&err);
}

static void parse(int argc, char **argv, struct setup *setup)
{
	bool permissive = false, read_only = false;
	struct cordon_error err = { 0 };
	int i;

	for (i = 1; i < argc && !cordon_streq(argv[i], "--"); i++) {
		const char *option = argv[i];

		if (cordon_streq(option, "--permissive")) {
			permissive = true;
			continue;
		}
		if (cordon_streq(option, "--read-only")) {
			read_only = true;
			continue;
		}
		if (cordon_streq(option, "--no-temps")) {
			setup->temps = false;
			continue;
		}
		errno = EINVAL;
		if (++i == argc)
			fail(option);
		if (cordon_streq(option, "--lens"))
			setup->lens = argv[i];
		else if (cordon_streq(option, "--root"))
			setup->root = argv[i];
		else if (cordon_streq(option, "--at"))
			setup->at = argv[i];
		else if (cordon_streq(option, "--lens-pid"))
			setup->lens_pid = argv[i];
		else
			add_rule(setup, option, argv[i]);
	}
	errno = EINVAL;
	if (!setup->lens || !setup->root || !setup->at || i + 1 >= argc)
		fail("usage: mount_lens --lens PATH --root DIR --at DIR [RULE]... -- CMD [ARG]...");
	if (!setup->policy && cordon_policy_new(setup->root, &setup->policy, &err) < 0)
		fail_error(&err);
	cordon_policy_set_mode(setup->policy, permissive ? CORDON_MODE_PERMISSIVE : CORDON_MODE_STRICT);
	setup->policy->read_only = read_only;
	setup->command = argv + i + 1;
}

/* ---- descriptors over a socket ---- */

union control {
	char bytes[CMSG_SPACE(sizeof(int))];
	struct cmsghdr align;
};

static void send_fd(int socket, int fd)
{
	char byte = 0;
	struct iovec iov = { &byte, 1 };
	union control control = { .bytes = { 0 } };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)
	};
	struct cmsghdr *header = CMSG_FIRSTHDR(&msg);

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(header), &fd, sizeof(fd));
	if (sendmsg(socket, &msg, 0) != 1)
		fail("sendmsg");
}

static int receive_fd(int socket)
{
	char byte;
	struct iovec iov = { &byte, 1 };
	union control control;
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)
	};
	const struct cmsghdr *header;
	int fd;

	if (recvmsg(socket, &msg, MSG_CMSG_CLOEXEC) != 1)
		return -1;
	header = CMSG_FIRSTHDR(&msg);
	if (!header || header->cmsg_type != SCM_RIGHTS)
		return -1;
	memcpy(&fd, CMSG_DATA(header), sizeof(fd));
	return fd;
}

/* ---- inside ---- */

static void enter_namespaces(void)
{
	unsigned int uid = getuid(), gid = getgid();
	char map[64];

	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
		fail("unshare");
	write_text("/proc/self/setgroups", "deny");
	(void)snprintf(map, sizeof(map), "%u %u 1", uid, uid);
	write_text("/proc/self/uid_map", map);
	(void)snprintf(map, sizeof(map), "%u %u 1", gid, gid);
	write_text("/proc/self/gid_map", map);
	if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
		fail("mount");
}

static void set(int fs, const char *key, unsigned int value, int base)
{
	char text[16];

	(void)snprintf(text, sizeof(text), base == 8 ? "%o" : "%u", value);
	if (fsconfig(fs, FSCONFIG_SET_STRING, key, text, 0) < 0)
		fail(key);
}

/* Mounts the view; what the run looks at belongs to it alone, so no other user is let in. */
static int mount_view(const char *at)
{
	int device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	int fs = fsopen("fuse", FSOPEN_CLOEXEC);
	int mnt;

	if (device < 0)
		fail("/dev/fuse");
	if (fs < 0)
		fail("fsopen");
	set(fs, "fd", (unsigned int)device, 10);
	set(fs, "rootmode", S_IFDIR, 8);
	set(fs, "user_id", getuid(), 10);
	set(fs, "group_id", getgid(), 10);
	if (fsconfig(fs, FSCONFIG_SET_FLAG, "default_permissions", NULL, 0) < 0 ||
	    fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		fail("fsconfig");
	mnt = fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	if (mnt < 0 || move_mount(mnt, "", AT_FDCWD, at, MOVE_MOUNT_F_EMPTY_PATH) < 0)
		fail("fsmount");
	close(mnt);
	close(fs);
	return device;
}

static void drop_capabilities(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { { 0 }, { 0 } };

	for (unsigned long cap = 0; cap < 64; cap++)
		(void)prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
	if (syscall(SYS_capset, &header, none) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		fail("capset");
}

static void run_inside(const struct setup *setup, int socket)
{
	char go;
	int device;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	enter_namespaces();
	device = mount_view(setup->at);
	send_fd(socket, device);
	/* The lens must be the only one to hold it: its end is then the end of the connection. */
	close(device);
	if (read(socket, &go, 1) != 1)
		_exit(FAILED);
	close(socket);
	drop_capabilities();
	if (chdir(setup->at) < 0)
		fail(setup->at);
	execvp(setup->command[0], setup->command);
	fail(setup->command[0]);
}

/* ---- outside ---- */

static pid_t start_lens(const struct setup *setup, int device)
{
	int policy_fd = memfd_create("policy", 0);
	int root_fd = fcntl(setup->policy->root.fd, F_DUPFD, 100);
	struct cordon_error err = { 0 };
	char numbers[5][16], line[256] = "";
	int status[2], fuse_fd;
	pid_t pid, self = getpid();
	ssize_t n;

	if (policy_fd < 0 || root_fd < 0 || pipe2(status, O_CLOEXEC) < 0)
		fail("descriptors of the lens");
	if (cordon_handover_write(setup->policy, setup->temps, policy_fd, &err) < 0)
		fail_error(&err);
	if (lseek(policy_fd, 0, SEEK_SET) < 0)
		fail("lseek");
	pid = fork();
	if (pid < 0)
		fail("fork");
	if (pid == 0) {
		int status_fd = fcntl(status[1], F_DUPFD, 100);
		const int fds[] = { root_fd, policy_fd, fuse_fd = fcntl(device, F_DUPFD, 100), status_fd, self };
		char *argv[] = { "cordon-lens", "--root-fd",   numbers[0], "--policy-fd", numbers[1], "--fuse-fd",
				 numbers[2],	"--status-fd", numbers[3], "--parent",	  numbers[4], NULL };

		for (size_t i = 0; i < CORDON_ARRAY_SIZE(fds); i++)
			(void)snprintf(numbers[i], sizeof(numbers[i]), "%d", fds[i]);
		execv(setup->lens, argv);
		fail(setup->lens);
	}
	close(device);
	close(policy_fd);
	close(root_fd);
	close(status[1]);
	n = read(status[0], line, sizeof(line) - 1);
	close(status[0]);
	if (n <= 0 || strncmp(line, "ready", 5) != 0) {
		fprintf(stderr, "mount_lens: the lens says: %s\n", n > 0 ? line : "nothing");
		_exit(FAILED);
	}
	return pid;
}

static int run_outside(const struct setup *setup, int socket, pid_t inside)
{
	char number[16];
	int device = receive_fd(socket);
	int status = 0, lens_status = 0;
	pid_t lens;

	if (device < 0)
		_exit(FAILED);
	lens = start_lens(setup, device);
	if (setup->lens_pid) {
		(void)snprintf(number, sizeof(number), "%d\n", lens);
		write_text(setup->lens_pid, number);
	}
	if (write(socket, "", 1) != 1 || waitpid(inside, &status, 0) != inside)
		fail("waitpid");
	(void)kill(lens, SIGTERM);
	if (waitpid(lens, &lens_status, 0) != lens || lens_status) {
		fprintf(stderr, "mount_lens: the lens ended with status 0x%x\n", lens_status);
		return LENS_FAILED;
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(int argc, char **argv)
{
	struct setup setup = { .temps = true };
	int sockets[2], status;
	pid_t pid;

	parse(argc, argv, &setup);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) < 0)
		fail("socketpair");
	pid = fork();
	if (pid < 0)
		fail("fork");
	if (pid == 0) {
		close(sockets[0]);
		run_inside(&setup, sockets[1]);
	}
	close(sockets[1]);
	status = run_outside(&setup, sockets[0], pid);
	cordon_policy_free(setup.policy);
	return status;
}
