/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PID 1 of a sandbox once the agent runs: reaps, passes on the end, and keeps protected paths protected.
 *
 * Two things tell that something changed: the mount table (the host unlinked or replaced what a mount stands on) and
 * the directories on the way to protected names (the host renamed one away and made another, or a guarded name came
 * to be). Directory notification is dnotify: it merges floods, and unlike inotify there is no small number of
 * instances per user that other runs could use up.
 */
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/path.h"
#include "base/resolve.h"
#include "sandbox/enter.h"

#define GUARDS_MAX 4096
#define DIRS_MAX 512
#define END_TRIES 20 /* tenths of a second that the end of left-over processes may take */
#define POLL_MS 50   /* how often names are looked at where the kernel has no directory notification */

struct init {
	struct cordon_inside *in;
	pid_t agent;
	struct cordon_door door;
	int signals;
	int mount_table;
	int dirs[DIRS_MAX];
	size_t n_dirs;
	ino_t held[CORDON_MOUNTS_MAX]; /* per pin: what stood there when it was last pinned and watched, 0: nothing */
	bool blind;		       /* some directory can't be watched: look from time to time */
	bool guarding;
	uint64_t made[GUARDS_MAX];	 /* identity of what stands under a guarded name and was reported, 0: nothing */
	uint8_t gone[CORDON_MOUNTS_MAX]; /* protected steps whose path the host removed */
};

static void tell(const struct init *init, cordon_notice_kind kind, int code, size_t index)
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
	if (fd < 0)
		return;
	if (fcntl(fd, F_NOTIFY, (long)(DN_CREATE | DN_RENAME | DN_MULTISHOT)) < 0) {
		init->blind = true;
		close(fd);
		return;
	}
	init->dirs[init->n_dirs++] = fd;
}

/* Every directory on the way to a protected or guarded name is the root or pinned. */
static void watch_dirs(struct init *init)
{
	const struct cordon_plan *plan = init->in->plan;

	for (size_t i = 0; i < init->n_dirs; i++)
		close(init->dirs[i]);
	init->n_dirs = 0;
	watch_dir(init, plan->at);
	for (size_t i = 0; i < plan->n_steps; i++)
		if (plan->steps[i].kind == CORDON_STEP_PIN && (plan->steps[i].flags & CORDON_STEP_IS_DIR))
			watch_dir(init, plan->steps[i].path);
}

/* Whether the host put another directory or link where one is pinned. */
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
			continue; /* a directory of ours stands there, which nobody moves */
		moved |= init->held[i] != st.st_ino;
		init->held[i] = st.st_ino;
	}
	return moved;
}

/* What was pinned, which is not what stands there if the host was quick. */
static void remember_pins(struct init *init)
{
	const struct cordon_plan *plan = init->in->plan;

	for (size_t i = 0; i < plan->n_steps && i < CORDON_MOUNTS_MAX; i++)
		if (plan->steps[i].kind == CORDON_STEP_PIN)
			init->held[i] = plan->steps[i].ino;
}

/* Binds again what dissolved, and tells. */
static void check_protected(struct init *init)
{
	const struct cordon_plan *plan = init->in->plan;

	for (size_t i = 0; i < plan->n_steps && i < CORDON_MOUNTS_MAX; i++) {
		int r;

		if (!(plan->steps[i].flags & CORDON_STEP_PROTECT))
			continue;
		r = cordon_mounts_protect_again(&init->in->mounts, plan->steps[i].path);
		if (r == 1) {
			init->gone[i] = 0;
			continue;
		}
		if (r != 0 && init->gone[i])
			continue; /* still away, already told */
		init->gone[i] = r != 0;
		tell(init, CORDON_NOTICE_LOST, r, i);
	}
}

/* Guarded names that came to be are made read-only at once; what happens to them is the supervisor's decision. */
static void check_guards(struct init *init)
{
	const struct cordon_plan *plan = init->in->plan;

	for (size_t i = 0; i < plan->n_guards && i < GUARDS_MAX; i++) {
		const struct cordon_guard *guard = &plan->guards[i];
		char path[CORDON_PATH_MAX], dir[CORDON_PATH_MAX];
		struct statx st;
		uint64_t identity;

		if (guard->state != CORDON_GUARD_ABSENT || cordon_path_join(plan->at, guard->dir, dir, sizeof(dir)) < 0 ||
		    cordon_path_join(dir, guard->name, path, sizeof(path)) < 0)
			continue;
		if (statx(init->in->mounts.root_fd, path + 1, AT_SYMLINK_NOFOLLOW, STATX_INO | STATX_BTIME, &st) < 0) {
			init->made[i] = 0;
			continue;
		}
		/* What was taken away may be made again before we look, even with the same inode number. */
		identity = (st.stx_ino << 1 | 1) ^ (uint64_t)st.stx_btime.tv_sec << 32 ^
			   (uint64_t)st.stx_btime.tv_nsec << 2;
		if (init->made[i] == identity)
			continue;
		init->made[i] = identity;
		tell(init, CORDON_NOTICE_MADE, cordon_mounts_protect_again(&init->in->mounts, path), i);
	}
}

static void check(struct init *init)
{
	if (!init->guarding)
		return;
	check_protected(init);
	/* Hold and watch what stands there now, then look again: it may have been filled before it was watched. */
	for (int tries = 0; tries < 8 && pins_moved(init); tries++) {
		cordon_mounts_pin_again(&init->in->mounts, init->in->plan);
		watch_dirs(init);
		check_protected(init);
	}
	check_guards(init);
}

/* Ends whatever the agent left behind; true when nothing is left. What can't die now is the kernel's to end with us. */
static bool end_the_rest(void)
{
	const struct timespec tick = { .tv_nsec = 100000000 };
	sigset_t child;
	pid_t left;

	/* Every process in here descends from us: without children there is nobody left. Signalling all of them makes the
	 * kernel look through every process of the host, so it is not done for nothing. */
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

		if (pid != init->agent) {
			cordon_door_reaped(&init->door, init->in, pid, status);
			continue;
		}
		notice.index = end_the_rest();
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

static void on_notice(struct init *init)
{
	struct cordon_notice notice;
	int fd;
	int r = cordon_notice_receive(init->in->ctl, &notice, &fd);

	if (r == 0 || (r < 0 && r != -EAGAIN))
		_exit(125); /* the supervisor is gone */
	if (r != 1)
		return;
	if (notice.kind == CORDON_NOTICE_TERMINATE) {
		kill(-1, SIGTERM);
		kill(-1, SIGCONT);
	}
	cordon_door_notice(&init->door, init->in, &notice, fd);
}

/* Our copies of the agent's streams would keep its pipes open. */
static void let_go_of_streams(const struct cordon_inside *in)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null < 0)
		cordon_inside_fail(in, -errno, "open", "/dev/null");
	for (int fd = 0; fd < 3; fd++)
		dup2(null, fd);
	if (null > 2)
		close(null);
}

static bool has_guards(const struct cordon_plan *plan)
{
	for (size_t i = 0; i < plan->n_steps; i++)
		if (plan->steps[i].flags & CORDON_STEP_PROTECT)
			return true;
	return plan->n_guards > 0;
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
	static struct init init; /* zeroed, and not on the stack: it is touched only where it is used */
	struct pollfd fds[3];
	uint64_t keep = 0;
	int r;

	init.in = in;
	init.agent = agent;
	init.mount_table = -1;
	init.door = (struct cordon_door)CORDON_DOOR_CLOSED;
	let_go_of_streams(in);
	block_signals(&init);
	init.guarding = has_guards(in->plan);
	if (init.guarding) {
		init.mount_table = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
		if (init.mount_table < 0)
			cordon_inside_fail(in, -errno, "watch", "the mount table");
		remember_pins(&init);
		watch_dirs(&init);
	}
	/* Mounting is all that is left to do, and only inside our own namespaces; and emptying the bounding set, which mounting
	 * needs, of those who enter later. */
	if (init.guarding)
		keep = (uint64_t)1 << CAP_SYS_ADMIN | (uint64_t)in->plan->enterable << CAP_SETPCAP;
	r = cordon_caps_keep(keep);
	if (r < 0)
		cordon_inside_fail(in, r, "drop", "capabilities of init");
	check(&init);
	reap(&init);
	fds[0] = (struct pollfd){ .fd = init.signals, .events = POLLIN };
	fds[1] = (struct pollfd){ .fd = in->ctl, .events = POLLIN };
	fds[2] = (struct pollfd){ .fd = init.mount_table, .events = POLLPRI };
	for (;;) {
		if (poll(fds, 3, init.blind ? POLL_MS : -1) == 0 || (fds[2].revents & (POLLPRI | POLLERR)))
			check(&init);
		if (fds[0].revents)
			on_signal(&init);
		if (fds[1].revents)
			on_notice(&init);
	}
}
