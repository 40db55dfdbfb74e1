/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PID 1 of a sandbox while the agent runs: reaps processes, reports the agent's end, and keeps boundaries in force.
 *
 * Two things show that something has changed: the mount table (the host removed or replaced what a mount is on), and
 * the directories that lead to boundaries (the host renamed one and made another, or made the name of a boundary, which
 * nobody inside can do). To watch directories we use dnotify: it merges many changes into one signal, and other runs
 * can't use it up, while inotify has a small number of instances per user.
 */
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/exit.h"
#include "base/names.h"
#include "base/path.h"
#include "base/resolve.h"
#include "sandbox/inside/door.h"
#include "sandbox/inside/hand.h"
#include "sandbox/inside/network.h"

#define DIRS_MAX 512
#define END_TRIES 20 /* how many tenths of a second the remaining processes have to end */
#define POLL_MS 50   /* how often we look at the names when a directory can't be watched */

struct init {
	struct cordon_inside *in;
	pid_t agent;
	pid_t hands[CORDON_HANDS_MAX]; /* per listener; 0: none */
	struct cordon_door door;
	int signals;
	int mount_table;
	int dirs[DIRS_MAX];
	size_t n_dirs;
	ino_t pinned[CORDON_MOUNTS_MAX];	 /* per pin: the inode that was pinned and watched last, 0: none */
	bool blind;				 /* some directory can't be watched: look at the names every POLL_MS */
	bool guarding;				 /* the plan has boundaries that we must keep in force */
	uint8_t guard_states[CORDON_GUARDS_MAX]; /* enum guard_state, per boundary: what was reported last */
	struct cordon_names names; /* which names are missing in the workspace; valid since its directory is watched */
	int names_fd;		   /* the workspace, for `names`; -1: nothing is known */
	unsigned int way; /* the number of directories that lead to missing boundaries and were made after the plan */
};

/* What PID 1 last saw of a boundary. */
enum guard_state {
	ABSENT, /* its name has never existed */
	IN_FORCE,
	GONE, /* the host removed it */
	ODD,  /* its name belongs to something on which nothing can be mounted */
};

static void report(const struct init *init, cordon_notice_kind kind, int code, size_t index)
{
	struct cordon_notice notice = { .kind = kind, .code = code, .index = (uint32_t)index };

	cordon_notice_send(init->in->ctl, &notice, -1);
}

static void watch_dir(struct init *init, const char *inside)
{
	int fd;

	if (init->n_dirs == DIRS_MAX) {
		init->blind = true;
		return;
	}
	fd = cordon_open_beneath(init->in->mounts.root_fd, inside + 1, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0) {
		init->blind |= fd != -ENOENT && fd != -ENOTDIR;
		return;
	}
	if (fcntl(fd, F_NOTIFY, (long)(DN_CREATE | DN_RENAME | DN_MULTISHOT)) < 0) {
		init->blind = true;
		close(fd);
		return;
	}
	init->dirs[init->n_dirs++] = fd;
}

/* Forgets which names were missing in the workspace. Later questions are answered from a new listing, where
 * possible. */
static void forget_names(struct init *init)
{
	const struct cordon_plan *plan = init->in->plan;

	cordon_closep(&init->names_fd);
	if (!plan->lens)
		init->names_fd = cordon_open_beneath(init->in->mounts.root_fd, plan->areas[0].at + 1,
						     O_PATH | O_DIRECTORY | O_CLOEXEC);
	cordon_names_init(&init->names, init->names_fd);
}

/* Whether nothing of a missing boundary's path has been made, not even the first directory that leads to it. */
static bool is_still_absent(struct init *init, const struct cordon_guard *guard)
{
	return init->names_fd >= 0 && guard->state == CORDON_GUARD_ABSENT && guard->area == 0 &&
	       cordon_names_lack_first(&init->names, guard->path);
}

/* Watches the directories that lead to a boundary which is still missing and that were made after the plan. */
static void watch_way(struct init *init, const struct cordon_guard *guard)
{
	const char *end = guard->inside + strlen(guard->dir) + 1;
	char part[CORDON_PATH_MAX];

	while ((end = strchr(end, '/'))) {
		if (cordon_copy(part, sizeof(part), guard->inside, (size_t)(end - guard->inside)) < 0)
			return;
		watch_dir(init, part);
		end++;
	}
}

/* Watches every directory that leads to a boundary: each is the root of an area, or pinned, or was made after the
 * plan. */
static void watch_dirs(struct init *init)
{
	const struct cordon_plan *plan = init->in->plan;

	for (size_t i = 0; i < init->n_dirs; i++)
		close(init->dirs[i]);
	init->n_dirs = 0;
	for (size_t i = 0; i < plan->n_areas; i++)
		watch_dir(init, plan->areas[i].at);
	for (size_t i = 0; i < plan->n_steps; i++)
		if (plan->steps[i].kind == CORDON_STEP_PIN && (plan->steps[i].flags & CORDON_STEP_IS_DIR))
			watch_dir(init, plan->steps[i].path);
	/* The directory of the workspace is watched now, so we get a signal for every name that is made from here
	 * on. */
	forget_names(init);
	for (size_t i = 0; i < plan->n_guards; i++)
		if (plan->guards[i].state == CORDON_GUARD_ABSENT && !is_still_absent(init, &plan->guards[i]))
			watch_way(init, &plan->guards[i]);
}

/* Whether the host has put another directory or link where one is pinned. */
static bool pins_moved(struct init *init)
{
	const struct cordon_plan *plan = init->in->plan;
	struct stat own = { 0 };
	bool moved = false;

	fstat(init->in->mounts.root_fd, &own);
	for (size_t i = 0; i < plan->n_steps && i < CORDON_MOUNTS_MAX; i++) {
		struct stat st = { 0 };

		if (plan->steps[i].kind != CORDON_STEP_PIN)
			continue;
		if (fstatat(init->in->mounts.root_fd, plan->steps[i].path + 1, &st, AT_SYMLINK_NOFOLLOW) < 0)
			st.st_ino = 0;
		else if (st.st_dev == own.st_dev)
			continue; /* a directory of our own file system, which nobody moves */
		moved |= init->pinned[i] != st.st_ino;
		init->pinned[i] = st.st_ino;
	}
	return moved;
}

/* Remembers what was pinned. When the host has replaced it since, the next look finds the difference. */
static void remember_pins(struct init *init)
{
	const struct cordon_plan *plan = init->in->plan;

	for (size_t i = 0; i < plan->n_steps && i < CORDON_MOUNTS_MAX; i++)
		if (plan->steps[i].kind == CORDON_STEP_PIN)
			init->pinned[i] = plan->steps[i].ino;
	if (plan->view)
		pins_moved(init); /* takes the numbers that the entries have in the view */
}

/* Whether the lens keeps this boundary in force, because it judges every name itself. */
static bool by_lens(const struct cordon_plan *plan, const struct cordon_guard *guard)
{
	return plan->lens && guard->area == 0;
}

static void check_guard(struct init *init, size_t i, unsigned int *ret_way)
{
	const struct cordon_guard *guard = &init->in->plan->guards[i];
	int r = cordon_mounts_hold(&init->in->mounts, init->in->plan, i, ret_way);
	enum guard_state was = init->guard_states[i], is = IN_FORCE;

	if (r == 1) {
		init->guard_states[i] = IN_FORCE;
		return;
	}
	if (r == -EACCES) {
		init->blind = true; /* we could not look: try again soon */
		return;
	}
	if (r == -ENOENT)
		is = was == ABSENT ? ABSENT : GONE;
	else if (r < 0)
		is = ODD;
	/* A link that the plan pinned is as it should be. */
	if (r == -ELOOP && guard->state == CORDON_GUARD_LINK)
		is = IN_FORCE, r = 1;
	init->guard_states[i] = (uint8_t)is;
	if (r == 1 || (is != IN_FORCE && is == was))
		return;
	report(init, was == ABSENT ? CORDON_NOTICE_MADE : CORDON_NOTICE_LOST, r, i);
}

/* Checks all boundaries. True when more or fewer directories lead to missing ones than before: then they must be
 * watched again. */
static bool check_guards(struct init *init)
{
	const struct cordon_plan *plan = init->in->plan;
	unsigned int way = 0;
	bool changed;

	for (size_t i = 0; i < plan->n_guards; i++)
		if (!by_lens(plan, &plan->guards[i]) &&
		    !(init->guard_states[i] == ABSENT && is_still_absent(init, &plan->guards[i])))
			check_guard(init, i, &way);
	changed = way != init->way;
	init->way = way;
	return changed;
}

/* Checks all boundaries and renews pins and watches until nothing changes any more. */
static void renew(struct init *init)
{
	bool changed, moved;

	changed = check_guards(init);
	/* Pin and watch what is there now, then check again: names may have been made in it before it was watched. */
	for (int tries = 0; tries < 8 && ((moved = pins_moved(init)) || changed); tries++) {
		if (moved)
			cordon_mounts_pin_again(&init->in->mounts, init->in->plan);
		watch_dirs(init);
		changed = check_guards(init);
	}
}

static void check(struct init *init)
{
	if (!init->guarding)
		return;
	forget_names(init);
	renew(init);
}

static bool is_hand(const struct init *init, pid_t pid)
{
	for (size_t i = 0; i < CORDON_HANDS_MAX; i++)
		if (pid && init->hands[i] == pid)
			return true;
	return false;
}

static bool has_hand(const struct init *init)
{
	for (size_t i = 0; i < CORDON_HANDS_MAX; i++)
		if (init->hands[i])
			return true;
	return false;
}

/* Whether hands are our only children. False also when there is no hand, or the kernel does not list children. */
static bool only_hands_left(const struct init *init)
{
	int fd = has_hand(init) ? open("/proc/self/task/1/children", O_RDONLY | O_CLOEXEC) : -1;
	char text[CORDON_HANDS_MAX * CORDON_DIGITS_SIZE];
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text));
	bool any = false;

	cordon_closep(&fd);
	for (ssize_t i = 0; i < n; i++) {
		pid_t pid = 0;

		for (; i < n && text[i] >= '0' && text[i] <= '9'; i++)
			pid = pid * 10 + (text[i] - '0');
		if (!is_hand(init, pid))
			return false;
		any = true;
	}
	return any && n < (ssize_t)sizeof(text);
}

/* Ends the processes that the agent left; true when none is left. The kernel ends those that can't die now when we
 * end. */
static bool end_the_rest(const struct init *init)
{
	const struct timespec tick = { .tv_nsec = 100000000 };
	sigset_t child;
	pid_t left;

	if (only_hands_left(init))
		return true; /* they have nobody to serve any more; the kernel ends them when we end */

	/* Every process inside descends from us: when we have no children, none is left. kill(-1) makes the kernel look
	 * through every process of the host, so we do not call it when it is not needed. */
	while ((left = waitpid(-1, NULL, WNOHANG)) > 0)
		;
	if (left < 0 && errno == ECHILD)
		return true;
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	kill(-1, SIGKILL);
	for (int tries = 0; tries < END_TRIES; tries++) {
		pid_t pid;

		while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
			;
		if (pid < 0)
			return errno == ECHILD;
		sigtimedwait(&child, NULL, &tick);
	}
	return false;
}

static void reap(struct init *init)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		struct cordon_notice notice = { .kind = CORDON_NOTICE_EXITED, .code = status };

		for (size_t i = 0; i < CORDON_HANDS_MAX; i++)
			if (init->hands[i] == pid)
				init->hands[i] = 0;
		if (pid != init->agent) {
			cordon_door_reaped(&init->door, init->in, pid, status);
			continue;
		}
		notice.index = end_the_rest(init);
		getrusage(RUSAGE_CHILDREN, &notice.usage);
		cordon_notice_send(init->in->ctl, &notice, -1);
		_exit(0);
	}
}

static void on_signal(struct init *init)
{
	struct signalfd_siginfo info;
	bool look = false;

	while (read(init->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo == SIGCHLD)
			reap(init);
		else if (info.ssi_signo == SIGIO)
			look = true;
	}
	if (look)
		check(init);
}

/* When the hand does not start, its end of the socket is closed, and the supervisor refuses the call. */
static void start_hand(struct init *init, int socket, uint32_t number)
{
	pid_t pid = number < CORDON_HANDS_MAX && init->in->memory ? fork() : -1;

	if (pid == 0) {
		setrlimit(RLIMIT_NOFILE, &init->in->nofile);
		cordon_hand(init->in, socket, number);
	}
	close(socket);
	if (pid > 0)
		init->hands[number] = pid;
}

static void on_notice(struct init *init)
{
	struct cordon_notice notice;
	int fd;
	int r = cordon_notice_receive(init->in->ctl, &notice, &fd);

	if (r == 0 || (r < 0 && r != -EAGAIN))
		_exit(CORDON_EXIT_REFUSED); /* the supervisor is gone */
	if (r != 1)
		return;
	if (notice.kind == CORDON_NOTICE_HAND && fd >= 0) {
		start_hand(init, fd, notice.index);
		return;
	}
	if (notice.kind == CORDON_NOTICE_TERMINATE) {
		kill(-1, SIGTERM);
		kill(-1, SIGCONT);
	}
	cordon_door_notice(&init->door, init->in, &notice, fd);
}

/* Closes our copies of the agent's streams, which would keep its pipes open. */
static void close_streams(const struct cordon_inside *in)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null < 0)
		cordon_inside_fail(in, -errno, "open", "/dev/null");
	for (int fd = 0; fd < 3; fd++)
		dup2(null, fd);
	if (null > 2)
		close(null);
}

static void send_opened(const struct cordon_inside *in, const struct cordon_notice *notice, int fd)
{
	if (fd < 0)
		return;
	cordon_notice_send(in->ctl, notice, fd);
	close(fd);
}

/* Sends a directory of the private file systems to the supervisor, which looks at the end whether they are full, and
 * when it is the private home, counts what is left there: then no process shows it any more. */
static void send_own(const struct cordon_inside *in)
{
	struct cordon_notice notice = { .kind = CORDON_NOTICE_OWN };
	const char *path = "/run";

	for (size_t i = 0; i < in->plan->n_steps; i++) {
		if (in->plan->steps[i].kind != CORDON_STEP_PRIVATE ||
		    !cordon_streq(in->plan->steps[i].path, in->plan->home))
			continue;
		path = in->plan->home;
		notice.index = 1;
		break;
	}
	send_opened(in, &notice, cordon_open_beneath(in->mounts.root_fd, path + 1, O_PATH | O_DIRECTORY | O_CLOEXEC));
}

/* Sends what shows the processes and the shared memory of our namespaces, where the supervisor limits the memory. The
 * list of segments is that of the namespace in which it was opened. */
static void send_memory(const struct cordon_inside *in)
{
	struct cordon_notice notice = { .kind = CORDON_NOTICE_MEMORY, .code = CORDON_MEMORY_SHM };
	int proc;

	if (in->limits->by[CORDON_LIMIT_MEMORY] != CORDON_LIMITS_BY_WATCHER)
		return;
	send_opened(in, &notice, open("/proc/sysvipc/shm", O_RDONLY | O_CLOEXEC));
	notice.code = CORDON_MEMORY_PROC;
	proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (proc < 0)
		cordon_inside_fail(in, -errno, "open", "/proc");
	send_opened(in, &notice, proc);
}

static bool has_guards(const struct cordon_plan *plan)
{
	for (size_t i = 0; i < plan->n_guards; i++)
		if (!by_lens(plan, &plan->guards[i]))
			return true;
	return false;
}

static void remember_guards(struct init *init)
{
	const struct cordon_plan *plan = init->in->plan;

	for (size_t i = 0; i < plan->n_guards; i++)
		init->guard_states[i] = plan->guards[i].state == CORDON_GUARD_ABSENT ? ABSENT : IN_FORCE;
}

static void block_signals(struct init *init)
{
	sigset_t all;

	sigfillset(&all);
	if (sigprocmask(SIG_SETMASK, &all, NULL) < 0)
		cordon_inside_fail(init->in, -errno, "block", "signals");
	sigemptyset(&all);
	sigaddset(&all, SIGCHLD);
	sigaddset(&all, SIGIO);
	init->signals = signalfd(-1, &all, SFD_NONBLOCK | SFD_CLOEXEC);
	if (init->signals < 0)
		cordon_inside_fail(init->in, -errno, "open", "a signal descriptor");
}

_Noreturn void cordon_init(struct cordon_inside *in, pid_t agent)
{
	static struct init init; /* static, so that it is zeroed and only the pages that we use take memory */
	struct pollfd fds[4];
	uint64_t keep = 0;
	int r;

	init.in = in;
	/* Each watched directory needs an open descriptor, so we raise our limit. The agent gets the caller's limit. */
	if (getrlimit(RLIMIT_NOFILE, &in->nofile) == 0) {
		struct rlimit most = { in->nofile.rlim_max, in->nofile.rlim_max };

		setrlimit(RLIMIT_NOFILE, &most);
	}
	init.agent = agent;
	init.mount_table = init.names_fd = -1;
	init.door = (struct cordon_door)CORDON_DOOR_CLOSED;
	close_streams(in);
	send_own(in);
	send_memory(in);
	block_signals(&init);
	init.guarding = has_guards(in->plan);
	if (init.guarding) {
		init.mount_table = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
		if (init.mount_table < 0)
			cordon_inside_fail(in, -errno, "watch", "the mount table");
		remember_pins(&init);
		remember_guards(&init);
		watch_dirs(&init);
	}
	/* We keep the capabilities to mount inside our own namespaces, to look into directories that the agent has
	 * closed to itself and to us, and to empty the bounding set of programs that start later (it is not empty,
	 * because we mount). */
	if (init.guarding)
		keep = (uint64_t)1 << CAP_SYS_ADMIN | (uint64_t)1 << CAP_DAC_READ_SEARCH |
		       (uint64_t)in->plan->asked.enterable << CAP_SETPCAP;
	/* The hand reads the calls of the agent's processes. */
	if (in->memory)
		keep |= (uint64_t)1 << CAP_SYS_PTRACE;
	r = cordon_caps_keep(keep);
	if (r < 0)
		cordon_inside_fail(in, r, "drop", "capabilities of init");
	if (init.guarding)
		renew(&init);
	cordon_closep(&init.names_fd);
	reap(&init);
	fds[0] = (struct pollfd){ .fd = init.signals, .events = POLLIN };
	fds[1] = (struct pollfd){ .fd = in->ctl, .events = POLLIN };
	fds[2] = (struct pollfd){ .fd = init.mount_table, .events = POLLPRI };
	fds[3] = (struct pollfd){ .fd = in->net, .events = POLLIN };
	for (;;) {
		if (poll(fds, 4, init.blind ? POLL_MS : -1) == 0 || (fds[2].revents & (POLLPRI | POLLERR)))
			check(&init);
		if (fds[0].revents)
			on_signal(&init);
		if (fds[1].revents)
			on_notice(&init);
		if (fds[3].revents && !cordon_network_serve(in->net)) {
			cordon_closep(&in->net);
			fds[3].fd = -1;
		}
	}
}
