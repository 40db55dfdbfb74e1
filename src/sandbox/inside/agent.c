/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's process: every layer goes on, in an order in which none can be undone, then exec. */
#include <fcntl.h>
#include <linux/close_range.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/resolve.h"
#include "sandbox/inside.h"
#include "sandbox/landlock.h"
#include "sandbox/streams.h"

static void loopback_up(const struct cordon_inside *in)
{
	struct ifreq request = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request) < 0)
		cordon_inside_fail(in, -errno, "bring up", "the loopback interface");
	close(fd);
}

/* A network of its own, with nothing in it but the loopback interface, for PID 1 as well; then PID 1's word that the tree
 * stands. */
static void meet_init(struct cordon_inside *in)
{
	struct cordon_notice notice = { .kind = CORDON_NOTICE_GO };
	eventfd_t go;
	int fd = -1;

	if (in->peer < 0)
		return;
	if (in->plan->net_none) {
		if (unshare(CLONE_NEWNET) < 0)
			cordon_inside_fail(in, -errno, "make", "a network namespace");
		loopback_up(in);
		fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			cordon_inside_fail(in, -errno, "open", "/proc/self/ns/net");
	}
	if (cordon_notice_send(in->peer, &notice, fd) < 0)
		_exit(125);
	if (fd >= 0)
		close(fd);
	/* PID 1 can't end without us. */
	if (eventfd_read(in->go, &go) < 0)
		cordon_inside_fail(in, -errno, "wait for", "the tree");
	close(in->go);
	close(in->peer);
}

/* The agent's terminal lives in the sandbox's own devpts; its master goes to the supervisor. */
static void take_terminal(const struct cordon_inside *in)
{
	struct cordon_notice notice = { .kind = CORDON_NOTICE_PTY };
	int unlock = 0;
	int master, slave;

	if (!in->terminal[0] && !in->terminal[1] && !in->terminal[2])
		return;
	master = open("/dev/pts/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (master < 0 || ioctl(master, TIOCSPTLCK, &unlock) < 0)
		cordon_inside_fail(in, -errno, "open", "/dev/pts/ptmx");
	slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (slave < 0 || cordon_notice_send(in->ctl, &notice, master) < 0)
		cordon_inside_fail(in, -errno, "make", "a terminal");
	close(master);
	if (ioctl(slave, TIOCSCTTY, 0) < 0)
		cordon_inside_fail(in, -errno, "take", "the terminal");
	for (int fd = 0; fd < 3; fd++)
		if (in->terminal[fd] && dup2(slave, fd) < 0)
			cordon_inside_fail(in, -errno, "take", "the terminal");
	close(slave);
}

static void reset_signals(void)
{
	struct sigaction dfl = { .sa_handler = SIG_DFL };
	sigset_t none;

	for (int sig = 1; sig < NSIG; sig++)
		sigaction(sig, &dfl, NULL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

static int rights_class(cordon_right right)
{
	switch (right) {
	case CORDON_RIGHT_LIST:
		return CORDON_LANDLOCK_LIST;
	case CORDON_RIGHT_READ:
		return CORDON_LANDLOCK_READ;
	case CORDON_RIGHT_WRITE:
		return CORDON_LANDLOCK_WRITE;
	case CORDON_RIGHT_DEVICE:
		return CORDON_LANDLOCK_DEVICE;
	case CORDON_RIGHT_NONE:
	case CORDON_RIGHT__MAX:
		break;
	}
	return -1;
}

static int make_ruleset(const struct cordon_inside *in)
{
	int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int ruleset, r;

	if (root < 0)
		cordon_inside_fail(in, -errno, "open", "/");
	ruleset = cordon_landlock_begin(in->landlock_abi);
	if (ruleset < 0)
		cordon_inside_fail(in, ruleset, "begin", "the Landlock domain");
	r = cordon_landlock_allow(ruleset, in->landlock_abi, root, CORDON_LANDLOCK_LIST);
	if (r < 0)
		cordon_inside_fail(in, r, "Landlock rule", "/");
	for (size_t i = 0; i < in->plan->n_steps; i++) {
		const struct cordon_step *step = &in->plan->steps[i];
		int class = rights_class(step->right);
		int fd;

		if (class < 0)
			continue;
		fd = cordon_open_beneath(root, step->path + 1, O_PATH | O_CLOEXEC);
		r = fd < 0 ? fd
			   : cordon_landlock_allow(ruleset, in->landlock_abi, fd, (enum cordon_landlock_class) class);
		if (r < 0)
			cordon_inside_fail(in, r, "Landlock rule", step->path);
		close(fd);
	}
	close(root);
	return ruleset;
}

/* Standard streams that were closed must not be filled by the next file somebody opens. */
static void fill_streams(const struct cordon_inside *in)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd < 3);
	if (fd < 0)
		cordon_inside_fail(in, -errno, "open", "/dev/null");
	close(fd);
}

static void install_filter(const struct cordon_inside *in)
{
	struct cordon_notice notice = { .kind = CORDON_NOTICE_STARTED };
	int listener = -1;
	int r = 0;

	if (in->limits->by[CORDON_LIMIT_CPUS] == CORDON_LIMITS_BY_AFFINITY)
		r = cordon_seccomp_install(CORDON_SECCOMP_PIN_CPUS, NULL);
	if (r == 0)
		r = cordon_seccomp_install(in->variant, &listener);
	if (r < 0)
		cordon_inside_fail(in, r, "install", "the system call filter");
	r = cordon_notice_send(in->ctl, &notice, listener);
	if (r < 0)
		cordon_inside_fail(in, r, "hand over", "the system call listener");
	if (listener >= 0)
		close(listener);
}

_Noreturn static void run_program(const struct cordon_inside *in)
{
	struct cordon_notice notice = { .kind = CORDON_NOTICE_NO_EXEC, .code = -ENOENT, .index = in->number };

	for (char **path = in->plan->candidates; *path; path++) {
		execve(*path, in->plan->argv, in->plan->env);
		/* What exists but can't be run is the better answer than what is missing further on. */
		if (errno != ENOENT && errno != ENOTDIR && notice.code == -ENOENT)
			notice.code = -errno;
	}
	cordon_notice_send(in->ctl, &notice, -1);
	_exit(notice.code == -ENOENT ? 127 : 126);
}

_Noreturn void cordon_agent(struct cordon_inside *in)
{
	int ruleset = -1;
	int r;

	/* A session of its own also without a terminal: the caller's can't be signalled or typed into. */
	if (setsid() < 0)
		cordon_inside_fail(in, -errno, "begin", "a session");
	reset_signals();
	umask(in->umask);
	meet_init(in);
	take_terminal(in);
	fill_streams(in);
	r = cordon_streams_devices();
	if (r < 0)
		cordon_inside_fail(in, r, "open again", "a standard stream");
	r = cordon_limits_child(in->limits);
	if (r < 0)
		cordon_inside_fail(in, r, "set", "resource limits");
	if (chdir(in->plan->cwd) < 0 && chdir(in->plan->at) < 0)
		cordon_inside_fail(in, -errno, "enter", in->plan->cwd);
	if (in->landlock_abi)
		ruleset = make_ruleset(in);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		cordon_inside_fail(in, -errno, "set", "no_new_privs");
	r = cordon_caps_keep(0);
	if (r < 0)
		cordon_inside_fail(in, r, "drop", "capabilities");
	if (ruleset >= 0 && (r = cordon_landlock_enforce(ruleset, in->landlock_abi)) < 0)
		cordon_inside_fail(in, r, "enforce", "the Landlock domain");
	/* Whatever the caller left open at whatever number. Ours are close-on-exec from birth. */
	if (syscall(SYS_close_range, 3, ~0U, CLOSE_RANGE_CLOEXEC) < 0)
		cordon_inside_fail(in, -errno, "close", "inherited descriptors");
	install_filter(in);
	run_program(in);
}
