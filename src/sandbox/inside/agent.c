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
#include "sandbox/inside/hand.h"
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

/* PID 1 signals twice: when the tree is built, and when it has left the host's network and tree. */
static void wait_for_init(const struct cordon_inside *in)
{
	eventfd_t go;

	/* The wait always ends: when PID 1 dies, the kernel kills us. */
	if (in->peer >= 0 && eventfd_read(in->go, &go) < 0)
		cordon_inside_fail(in, -errno, "wait for", "the tree");
}

/*
 * Whether PID 1 has left the host's network and unmounted the host's tree. That tree lies over ours until then, so that ".." of
 * the root leads there. The kernel tells PID 1 later, when no processor looks at the tree any more: nobody has to wait for that.
 */
static bool has_left_host(void)
{
	struct stat root, above;

	return stat("/", &root) == 0 && stat("/..", &above) == 0 && root.st_dev == above.st_dev &&
	       root.st_ino == above.st_ino;
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
		return step->flags & CORDON_STEP_TRIP ? CORDON_LANDLOCK_TRIP : CORDON_LANDLOCK_LIST;
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

/* Notes which directory this is, for the hand: it recognises directories by their numbers. Only the agent's own process
 * does it, before any program has run. */
static void note_dir(const struct cordon_inside *in, size_t id, const struct stat *st)
{
	if (in->number == 0 && in->memory && S_ISDIR(st->st_mode))
		in->memory->ids[id] = (struct cordon_dir_id){ st->st_dev, st->st_ino };
}

/* The rights of the second layer at a step: the agent itself makes, writes and removes entries in everything that it may
 * write, except the held directories. */
static int second_class(const struct cordon_step *step)
{
	if (step->right == CORDON_RIGHT_DEVICE)
		return CORDON_LANDLOCK_WRITE_FILES;
	return step->right == CORDON_RIGHT_WRITE && !(step->flags & CORDON_STEP_HELD) ? CORDON_LANDLOCK_MAKE : -1;
}

/* The rules of both layers at one step; `second` is -1 without a second layer. */
static int add_step(const struct cordon_inside *in, int root, int first, int second, size_t i)
{
	const struct cordon_step *step = &in->plan->steps[i];
	int rights = rights_class(step), more = second < 0 ? -1 : second_class(step);
	bool bind = second >= 0 && step->kind == CORDON_STEP_BIND &&
		    !(step->flags & (CORDON_STEP_SYSTEM | CORDON_STEP_HELD));
	bool noted = more == CORDON_LANDLOCK_MAKE || (bind && more < 0);
	struct stat st;
	int fd, r = 0;

	if (rights < 0 && more < 0 && !bind)
		return 0;
	fd = cordon_open_beneath(root, step->path + 1, O_PATH | O_CLOEXEC);
	if (fd < 0)
		return rights < 0 && more < 0 ? 0 : fd;
	if (rights >= 0)
		r = allow(in, first, fd, (enum cordon_landlock_class)rights);
	if (r == 0 && more >= 0)
		r = allow(in, second, fd, (enum cordon_landlock_class)more);
	if (r == 0 && noted && fstat(fd, &st) == 0)
		note_dir(in, cordon_hand_step_id(in->plan, i), &st);
	close(fd);
	return r;
}

static int add_open_dirs(const struct cordon_inside *in, int root, int ruleset)
{
	const struct cordon_plan *plan = in->plan;
	int r = 0;

	for (size_t i = 0; r == 0 && i < plan->n_open_dirs; i++) {
		const struct cordon_open_dir *dir = &plan->open_dirs[i];
		int fd = cordon_open_beneath(root, dir->path + 1, O_PATH | O_DIRECTORY | O_CLOEXEC);
		struct stat st;

		/* INVARIANT: only a directory of which the plan saw that it contains no boundary gets this right. When
		 * another one has its name by now, the hand makes the entries. In a view directories have other numbers,
		 * but there boundaries go by their names alone, and these are not below this directory. */
		if (fd >= 0 && fstat(fd, &st) == 0 && (plan->view || (st.st_dev == dir->dev && st.st_ino == dir->ino))) {
			r = allow(in, ruleset, fd, dir->no_links ? CORDON_LANDLOCK_MAKE_NO_LINKS : CORDON_LANDLOCK_MAKE);
			note_dir(in, cordon_hand_open_id(plan, i), &st);
		}
		cordon_closep(&fd);
	}
	return r;
}

/* What the second layer has beside the steps. */
static void finish_second(const struct cordon_inside *in, int root, int ruleset)
{
	const struct cordon_plan *plan = in->plan;
	int r = add_open_dirs(in, root, ruleset);

	for (size_t i = 0; r == 0 && i < plan->n_held; i++) {
		int fd = cordon_open_beneath(root, plan->held[i].path + 1, O_PATH | O_DIRECTORY | O_CLOEXEC);
		struct stat st;

		if (fd >= 0 && fstat(fd, &st) == 0)
			note_dir(in, cordon_hand_held_id(plan, i), &st);
		cordon_closep(&fd);
	}
	if (r < 0)
		cordon_inside_fail(in, r, "hold", "the directories of boundaries");
	if (in->number == 0 && in->memory)
		in->memory->n_ids = cordon_hand_n_ids(plan);
}

/* Makes the rulesets of both layers; the second one only where directories are held. */
static void make_rulesets(const struct cordon_inside *in, int *ret_first, int *ret_second)
{
	int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int first, second = -1, r;

	if (root < 0)
		cordon_inside_fail(in, -errno, "open", "/");
	first = cordon_landlock_begin(in->landlock_abi);
	if (first < 0)
		cordon_inside_fail(in, first, "begin", "the Landlock domain");
	if (in->plan->n_held && (second = cordon_landlock_begin_second(in->landlock_abi)) < 0)
		cordon_inside_fail(in, second, "hold", "the directories of boundaries");
	/* The tree is ours. In the lower tier it is the host's, of which only what a rule names can be listed. */
	r = in->plan->tier == CORDON_TIER_FULL ? allow(in, first, root, CORDON_LANDLOCK_LIST) : 0;
	if (r < 0)
		cordon_inside_fail(in, r, "Landlock rule", "/");
	for (size_t i = 0; i < in->plan->n_steps; i++)
		if ((r = add_step(in, root, first, second, i)) < 0)
			cordon_inside_fail(in, r, "Landlock rule", in->plan->steps[i].path);
	if (second >= 0)
		finish_second(in, root, second);
	close(root);
	*ret_first = first;
	*ret_second = second;
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

/* Installs the system call filter. Returns its listener, or -1. */
static int install_filter(const struct cordon_inside *in)
{
	int listener = -1;
	int r = 0;

	if (in->limits->by[CORDON_LIMIT_CPUS] == CORDON_LIMITS_BY_AFFINITY)
		r = cordon_seccomp_install(CORDON_SECCOMP_PIN_CPUS, NULL);
	if (r == 0 && in->plan->layers.differs[CORDON_DIFFERENCE_UNIX_SOCKETS])
		r = cordon_seccomp_install(CORDON_SECCOMP_NO_UNIX, NULL);
	if (r == 0 && in->plan->layers.differs[CORDON_DIFFERENCE_TRUNCATE])
		r = cordon_seccomp_install(CORDON_SECCOMP_NO_TRUNCATE, NULL);
	/* Where no hand judges the names of attributes, none can be set: some mean something to the next view. */
	if (r == 0 && !cordon_seccomp_watches(in->variant))
		r = cordon_seccomp_install(CORDON_SECCOMP_NO_XATTR, NULL);
	if (r == 0)
		r = in->plan->net ? cordon_seccomp_install_with_routes(in->variant, &listener)
				  : cordon_seccomp_install(in->variant, &listener);
	if (r < 0)
		cordon_inside_fail(in, r, "install", "the system call filter");
	return listener;
}

/* Tells the supervisor that the program is about to run, and hands it the listener. */
static void tell_start(const struct cordon_inside *in, int listener)
{
	struct cordon_notice notice = { .kind = CORDON_NOTICE_STARTED, .code = n_rules };
	int r = cordon_notice_send(in->ctl, &notice, listener);

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

/* The agent has no capability and no resource limit that would let it lower its nice value again. */
static void set_nice(const struct cordon_inside *in)
{
	const struct rlimit none = { 0, 0 };
	int wanted = (int)in->plan->asked.nice;

	if (wanted == 0)
		return;
	if (setrlimit(RLIMIT_NICE, &none) < 0 ||
	    (getpriority(PRIO_PROCESS, 0) < wanted && setpriority(PRIO_PROCESS, 0, wanted) < 0))
		cordon_inside_fail(in, -errno, "set", "the nice value");
}

_Noreturn void cordon_agent(struct cordon_inside *in)
{
	int ruleset = -1, second = -1;
	int r, listener;
	bool left;

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
	set_nice(in);
	if (chdir(in->plan->cwd) < 0 && chdir(in->plan->at) < 0)
		cordon_inside_fail(in, -errno, "enter", in->plan->cwd);
	if (in->landlock_abi)
		make_rulesets(in, &ruleset, &second);
	r = cordon_caps_keep_now(0);
	if (r < 0)
		cordon_inside_fail(in, r, "drop", "capabilities");
	if (ruleset >= 0 && (r = cordon_landlock_enforce(ruleset, in->landlock_abi)) < 0)
		cordon_inside_fail(in, r, "enforce", "the Landlock domain");
	if (second >= 0 && (r = cordon_landlock_enforce(second, in->landlock_abi)) < 0)
		cordon_inside_fail(in, r, "enforce", "the held directories");
	/* The exec closes whatever the caller left open. Our own descriptors are close-on-exec from the beginning. */
	if (syscall(SYS_close_range, 3, ~0U, CLOSE_RANGE_CLOEXEC) < 0)
		cordon_inside_fail(in, -errno, "close", "inherited descriptors");
	if (in->plan->view)
		pass_view_start(&in->plan->view_since);
	left = has_left_host();
	/* The kernel takes its time to translate the filter. What we do from here on is allowed by every variant, without
	 * a trap. */
	listener = install_filter(in);
	if (!left)
		wait_for_init(in);
	tell_start(in, listener);
	run_program(in);
}
