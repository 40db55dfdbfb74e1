/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's process before its exec: applies every layer, in an order in which no later step can undo an earlier
 * one. */
#include <fcntl.h>
#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/exit.h"
#include "base/resolve.h"
#include "base/sys.h"
#include "sandbox/inside/detach.h"
#include "sandbox/inside/inside.h"
#include "sandbox/inside/landlock.h"
#include "sandbox/inside/network.h"

/* Makes a network namespace with only the loopback interface, and passes it to PID 1, which joins it. With a list of
 * hosts it passes sockets to cordon-net. */
static void make_network(struct cordon_inside *in)
{
	struct cordon_notice notice = { .kind = CORDON_NOTICE_GO };
	const char *what;
	int fd = -1, r;

	if (in->peer < 0)
		return;
	if (in->plan->own_network) {
		if (unshare(CLONE_NEWNET) < 0)
			cordon_inside_fail(in, -errno, "make", "a network namespace");
		r = cordon_network_open(in->plan->net, in->net, in->wake, &what);
		if (r < 0)
			cordon_inside_fail(in, r, "make", what);
		cordon_closep(&in->net);
		cordon_closep(&in->wake);
		fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			cordon_inside_fail(in, -errno, "open", "/proc/self/ns/net");
	}
	if (cordon_notice_send(in->peer, &notice, fd) < 0)
		_exit(CORDON_EXIT_REFUSED);
	if (fd >= 0)
		close(fd);
}

/* PID 1 signals twice: when the tree is built, and when it has left the host's tree and network. */
static void wait_for_init(const struct cordon_inside *in)
{
	eventfd_t go;

	/* The wait always ends: when PID 1 dies, the kernel kills us. */
	if (in->peer >= 0 && eventfd_read(in->go, &go) < 0)
		cordon_inside_fail(in, -errno, "wait for", "the tree");
}

/* Opens a terminal for the agent in the sandbox's own devpts and sends its master to the supervisor. */
static void open_terminal(const struct cordon_inside *in)
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

static int rights_class(const struct cordon_step *step)
{
	switch (step->right) {
	case CORDON_RIGHT_LIST:
		return CORDON_LANDLOCK_LIST;
	case CORDON_RIGHT_READ:
		return CORDON_LANDLOCK_READ;
	case CORDON_RIGHT_WRITE:
		return CORDON_LANDLOCK_WRITE;
	case CORDON_RIGHT_DEVICE:
		return step->flags & CORDON_STEP_IS_DEVICE ? CORDON_LANDLOCK_NODE : CORDON_LANDLOCK_DEVICE;
	case CORDON_RIGHT_NONE:
	case CORDON_RIGHT__MAX:
		break;
	}
	return -1;
}

/* How many rules the layers of this process have; the supervisor is told with the start. */
static int n_rules;

static int allow(const struct cordon_inside *in, int ruleset, int fd, enum cordon_landlock_class rights)
{
	n_rules++;
	return cordon_landlock_allow(ruleset, in->landlock_abi, fd, rights);
}

int cordon_agent_ruleset(const struct cordon_inside *in)
{
	int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int ruleset, r;

	if (root < 0)
		cordon_inside_fail(in, -errno, "open", "/");
	ruleset = cordon_landlock_begin(in->landlock_abi);
	if (ruleset < 0)
		cordon_inside_fail(in, ruleset, "begin", "the Landlock domain");
	r = allow(in, ruleset, root, CORDON_LANDLOCK_LIST);
	if (r < 0)
		cordon_inside_fail(in, r, "Landlock rule", "/");
	for (size_t i = 0; i < in->plan->n_steps; i++) {
		const struct cordon_step *step = &in->plan->steps[i];
		int rights = rights_class(step);
		int fd;

		if (rights < 0)
			continue;
		fd = cordon_open_beneath(root, step->path + 1, O_PATH | O_CLOEXEC);
		r = fd < 0 ? fd : allow(in, ruleset, fd, (enum cordon_landlock_class)rights);
		if (r < 0)
			cordon_inside_fail(in, r, "Landlock rule", step->path);
		close(fd);
	}
	close(root);
	return ruleset;
}

/* The rules of the second layer: the agent itself makes entries in everything that it may write, except the held
 * directories. */
static int make_second_ruleset(const struct cordon_inside *in)
{
	const struct cordon_plan *plan = in->plan;
	int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int ruleset = cordon_landlock_begin_second(in->landlock_abi);
	int r = root < 0 ? -errno : ruleset < 0 ? ruleset : 0;

	for (size_t i = 0; r == 0 && i < plan->n_steps; i++) {
		const struct cordon_step *step = &plan->steps[i];
		int fd;

		if (step->right != CORDON_RIGHT_WRITE || (step->flags & CORDON_STEP_HELD))
			continue;
		fd = cordon_open_beneath(root, step->path + 1, O_PATH | O_CLOEXEC);
		r = fd < 0 ? fd : allow(in, ruleset, fd, CORDON_LANDLOCK_MAKE);
		cordon_closep(&fd);
	}
	for (size_t i = 0; r == 0 && i < plan->n_open_dirs; i++) {
		const struct cordon_open_dir *dir = &plan->open_dirs[i];
		int fd = cordon_open_beneath(root, dir->path + 1, O_PATH | O_DIRECTORY | O_CLOEXEC);
		struct stat st;

		/* INVARIANT: only a directory of which the plan saw that it contains no boundary gets this right. When
		 * another one has its name by now, the hand makes the entries. In a view directories have other numbers,
		 * but there boundaries go by their names alone, and these are not below this directory. */
		if (fd >= 0 && fstat(fd, &st) == 0 && (plan->view || (st.st_dev == dir->dev && st.st_ino == dir->ino)))
			r = allow(in, ruleset, fd, dir->no_links ? CORDON_LANDLOCK_MAKE_NO_LINKS : CORDON_LANDLOCK_MAKE);
		cordon_closep(&fd);
	}
	if (r < 0)
		cordon_inside_fail(in, r, "hold", "the directories of boundaries");
	close(root);
	return ruleset;
}

/* Opens /dev/null for each closed standard stream; the next file that is opened would get its number otherwise. */
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

/*
 * Whether a file that is changed now gets a time that is not before `start`. Most changes get the time of the last tick. From
 * Linux 6.13 on, the change of a file that somebody has just looked at gets the exact time, and afterwards no file of the
 * machine gets an earlier one: to ask is what makes it true.
 */
static bool file_times_passed(const struct timespec *start)
{
	autofd int file = memfd_create("time", MFD_CLOEXEC | MFD_NOEXEC_SEAL); /* the latter is younger: Linux 6.3 */
	struct timespec now;
	struct stat st;

	if (file >= 0 && fstat(file, &st) == 0 && fchmod(file, 0600) == 0 && fstat(file, &st) == 0)
		now = st.st_ctim;
	else
		clock_gettime(CLOCK_REALTIME_COARSE, &now);
	return now.tv_sec > start->tv_sec || (now.tv_sec == start->tv_sec && now.tv_nsec >= start->tv_nsec);
}

/* What the host changes beside the program must have a later time than the start of the view, or nobody would see later that
 * the host changed it. So the program begins when file times have passed the start, which on older kernels is at the next
 * tick. */
static void pass_view_start(const struct timespec *start)
{
	const struct timespec pause = { .tv_nsec = 250000 };

	for (unsigned int i = 0; i < 200 && !file_times_passed(start); i++)
		nanosleep(&pause, NULL);
}

static void install_filter(const struct cordon_inside *in)
{
	struct cordon_notice notice = { .kind = CORDON_NOTICE_STARTED, .code = n_rules };
	int listener = -1;
	int r = 0;

	if (in->limits->by[CORDON_LIMIT_CPUS] == CORDON_LIMITS_BY_AFFINITY)
		r = cordon_seccomp_install(CORDON_SECCOMP_PIN_CPUS, NULL);
	if (r == 0 && in->plan->layers.differs[CORDON_DIFFERENCE_UNIX_SOCKETS])
		r = cordon_seccomp_install(CORDON_SECCOMP_NO_UNIX, NULL);
	if (r == 0 && in->plan->layers.differs[CORDON_DIFFERENCE_TRUNCATE])
		r = cordon_seccomp_install(CORDON_SECCOMP_NO_TRUNCATE, NULL);
	if (r == 0)
		r = in->plan->net ? cordon_seccomp_install_with_routes(in->variant, &listener)
				  : cordon_seccomp_install(in->variant, &listener);
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

	for (char *const *path = in->candidates; *path; path++) {
		execve(*path, in->argv, in->plan->env);
		/* An error about a file that exists is a better answer than a missing file in a later directory. */
		if (errno != ENOENT && errno != ENOTDIR && notice.code == -ENOENT)
			notice.code = -errno;
	}
	cordon_notice_send(in->ctl, &notice, -1);
	_exit(cordon_exit_of_exec(notice.code));
}

_Noreturn void cordon_agent(struct cordon_inside *in)
{
	int ruleset = -1, second = -1;
	int r;

	/* A session of its own, also without a terminal: the agent can't signal the caller's or type into its
	 * terminal. */
	if (setsid() < 0)
		cordon_inside_fail(in, -errno, "begin", "a session");
	reset_signals();
	umask(in->umask);
	make_network(in);
	/* While PID 1 builds the tree, we do what does not depend on it. */
	cordon_inside_forbid_namespaces(in);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		cordon_inside_fail(in, -errno, "set", "no_new_privs");
	r = cordon_caps_keep_lasting(0);
	if (r < 0)
		cordon_inside_fail(in, r, "drop", "capabilities");
	wait_for_init(in);
	open_terminal(in);
	fill_streams(in);
	r = cordon_detach_devices();
	if (r < 0)
		cordon_inside_fail(in, r, "open again", "a standard stream");
	r = cordon_limits_child(in->limits);
	if (r < 0)
		cordon_inside_fail(in, r, "set", "resource limits");
	if (chdir(in->plan->cwd) < 0 && chdir(in->plan->at) < 0)
		cordon_inside_fail(in, -errno, "enter", in->plan->cwd);
	if (in->landlock_abi)
		ruleset = cordon_agent_ruleset(in);
	if (in->landlock_abi && in->plan->n_held)
		second = make_second_ruleset(in);
	r = cordon_caps_keep_now(0);
	if (r < 0)
		cordon_inside_fail(in, r, "drop", "capabilities");
	if (ruleset >= 0 && (r = cordon_landlock_enforce(ruleset, in->landlock_abi)) < 0)
		cordon_inside_fail(in, r, "enforce", "the Landlock domain");
	if (second >= 0 && (r = cordon_landlock_enforce(second, in->landlock_abi)) < 0)
		cordon_inside_fail(in, r, "enforce", "the held directories");
	wait_for_init(in);
	/* The exec closes whatever the caller left open. Our own descriptors are close-on-exec from the beginning. */
	if (syscall(SYS_close_range, 3, ~0U, CLOSE_RANGE_CLOEXEC) < 0)
		cordon_inside_fail(in, -errno, "close", "inherited descriptors");
	if (in->plan->view)
		pass_view_start(&in->plan->view_since);
	install_filter(in);
	run_program(in);
}
