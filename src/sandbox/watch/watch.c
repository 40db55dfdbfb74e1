/* SPDX-License-Identifier: Apache-2.0 */
/* The watch is a thread of the supervisor. It answers seccomp notifications, has the hand make entries in held
 * directories, and reports refusals. */
#include <assert.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/sys.h"
#include "sandbox/watch/held.h"
#include "sandbox/watch/report.h"
#include "sandbox/watch/sight.h"
#include "sandbox/watch/watch.h"

#ifndef SECCOMP_IOCTL_NOTIF_SET_FLAGS
#define SECCOMP_IOCTL_NOTIF_SET_FLAGS SECCOMP_IOW(4, __u64)
#define SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP (1UL << 0)
#endif

#define STACK (256 << 10)
#define AT_ONCE_NS 3000 /* two context switches take longer: a call that arrives sooner had been waiting for us */

struct cordon_watch {
	const struct cordon_watched *watched;
	pthread_mutex_t *lock;
	int listener;
	bool program_runs; /* the program runs; before, our own process calls, and nobody can read its memory */
	struct cordon_places places; /* found once: nothing inside can change the root of a process */
	atomic_bool ready;	     /* the program runs, and its root is known */
	struct cordon_reports *reports;
	pthread_t receiver;
	bool running;
	atomic_bool stop;
	atomic_bool changed; /* the watch has seen a call that may change something */
	/* Only the receiver uses these. */
	struct seccomp_notif_sizes sizes;
	struct seccomp_notif *notif;
	struct seccomp_notif_resp *resp;
	struct cordon_touch touches[CORDON_TOUCHES_MAX];
	struct cordon_held_watch held;
	struct cordon_held_call call;
	uint32_t last;	/* the process that called before */
	bool other_cpu; /* the call had been waiting and is of another process, which probably has another processor */
};

/* Sets whether the kernel wakes us on the processor of the caller, and the caller on ours; best effort, from Linux 6.6
 * on. */
static void set_sync_wake(const struct cordon_watch *watch, bool sync)
{
	ioctl(watch->listener, SECCOMP_IOCTL_NOTIF_SET_FLAGS, sync ? SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP : 0);
}

struct cordon_watch *cordon_watch_new(const struct cordon_watched *watched, int listener, pthread_mutex_t *lock)
{
	struct cordon_watch *watch = calloc(1, sizeof(*watch));

	if (!watch)
		return NULL;
	watch->watched = watched;
	watch->lock = lock;
	watch->listener = -1;
	watch->places = (struct cordon_places){ watched->plan, .root_fd = -1, .workspace_fd = watched->workspace_fd };
	watch->reports = cordon_reports_new(watched);
	if (!watch->reports || syscall(SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 0, &watch->sizes) < 0)
		return cordon_watch_free(watch);
	/* The kernel may know longer structures than we were built with. */
	watch->notif = calloc(1, watch->sizes.seccomp_notif + sizeof(*watch->notif));
	watch->resp = calloc(1, watch->sizes.seccomp_notif_resp + sizeof(*watch->resp));
	if (!watch->notif || !watch->resp)
		return cordon_watch_free(watch);
	watch->listener = listener;
	set_sync_wake(watch, true);
	cordon_held_init(&watch->held, watched, &watch->places, listener, &watch->stop);
	return watch;
}

/* Only a signal ends the wait of the receiver. It may come right before the wait begins, so we send it until the thread
 * has ended. */
void cordon_watch_stop(struct cordon_watch *watch)
{
	const struct timespec pause = { .tv_nsec = 100000 };

	if (!watch->running)
		return;
	watch->stop = true;
	pthread_mutex_unlock(watch->lock);
	while (pthread_tryjoin_np(watch->receiver, NULL) != 0) {
		pthread_kill(watch->receiver, SIGURG);
		nanosleep(&pause, NULL);
	}
	pthread_mutex_lock(watch->lock);
	watch->running = false;
}

struct cordon_watch *cordon_watch_free(struct cordon_watch *watch)
{
	if (!watch)
		return NULL;
	cordon_watch_stop(watch);
	cordon_reports_free(watch->reports);
	cordon_closep(&watch->listener);
	cordon_closep(&watch->places.root_fd);
	cordon_held_done(&watch->held);
	free(watch->notif);
	free(watch->resp);
	free(watch);
	return NULL;
}

bool cordon_watch_changed(const struct cordon_watch *watch)
{
	return watch->changed;
}

unsigned int cordon_watch_count(const struct cordon_watch *watch)
{
	return cordon_reports_count(watch->reports);
}

/* Lets the call continue, or makes it return `error`, 0 for success. */
static void answer(struct cordon_watch *watch, int error, bool go_on)
{
	memset(watch->resp, 0, watch->sizes.seccomp_notif_resp);
	watch->resp->id = watch->notif->id;
	watch->resp->error = error;
	watch->resp->flags = go_on ? SECCOMP_USER_NOTIF_FLAG_CONTINUE : 0;
	/* A caller that waited on another processor must not be woken on ours, where the caller that we answered before
	 * runs: the other processor would stay idle for milliseconds. */
	if (watch->other_cpu)
		set_sync_wake(watch, false);
	ioctl(watch->listener, SECCOMP_IOCTL_NOTIF_SEND, watch->resp);
	if (watch->other_cpu)
		set_sync_wake(watch, true);
}

/* An ordinary user can't open the root of our own process before the program runs, so this may take a few calls. */
static void find_root(struct cordon_watch *watch, pid_t pid)
{
	char link[40];

	snprintf(link, sizeof(link), "/proc/%d/root", (int)pid);
	watch->places.root_fd = open(link, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* Whether the caller is still waiting. When it was killed, another process may have its pid, and we may have read that
 * one's memory. */
static bool caller_waits(const struct cordon_watch *watch)
{
	return ioctl(watch->listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &watch->notif->id) == 0;
}

/* Takes the numbers that directories have in a view. */
static void learn_open_dirs(const struct cordon_watch *watch)
{
	const struct cordon_plan *plan = watch->watched->plan;
	struct cordon_open_ids *ids = watch->watched->open_ids;

	if (!plan->view || ids->known || watch->places.root_fd < 0)
		return;
	ids->known = true;
	ids->dirs = calloc(plan->n_open_dirs + 1, sizeof(*ids->dirs));
	for (size_t i = 0; ids->dirs && i < plan->n_open_dirs; i++) {
		struct stat st;

		if (fstatat(watch->places.root_fd, plan->open_dirs[i].path + 1, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		ids->dirs[i].dev = st.st_dev;
		ids->dirs[i].ino = st.st_ino;
	}
}

/* Finds out the root of the agent's processes, and whether the program runs. The caller holds the lock. */
static void get_ready(struct cordon_watch *watch, size_t n)
{
	if (watch->places.root_fd < 0 && caller_waits(watch))
		find_root(watch, (pid_t)watch->notif->pid);
	learn_open_dirs(watch);
	if (!watch->program_runs && n == 1 && !watch->touches[0].known && cordon_streq(watch->touches[0].op, "execute"))
		return; /* our own process before the exec, whose memory nobody can read */
	watch->program_runs = true;
	watch->ready = watch->places.root_fd >= 0;
}

/* Whether the call can continue at once, because it is not reported and no boundary is concerned. This is so for most
 * calls of a build. The caller does not hold the lock. */
static bool is_plain(const struct cordon_watch *watch, size_t n)
{
	if (n == 0)
		return true;
	if (!watch->ready || watch->watched->observer->sight)
		return false;
	if (cordon_reports_skip_free(watch->reports)) {
		bool free = true;

		for (size_t i = 0; free && i < n; i++)
			free = cordon_held_is_free(&watch->held, &watch->touches[i]);
		if (free)
			return true;
	}
	return n == 1 && !watch->touches[0].creates &&
	       cordon_reports_skip(watch->reports, &watch->places, &watch->touches[0]);
}

/* Judges the paths of a call before it continues: afterwards its process may be gone, and its paths can't be
 * resolved. */
static void judge_call(struct cordon_watch *watch, size_t n)
{
	pid_t pid = (pid_t)watch->notif->pid;

	pthread_mutex_lock(watch->lock);
	for (size_t i = 0; watch->watched->observer->sight && i < n; i++)
		cordon_sight_report(watch->watched, &watch->touches[i]);
	for (size_t i = 0; i < n; i++)
		cordon_reports_judge(watch->reports, i, &watch->places, pid, &watch->touches[i]);
	pthread_mutex_unlock(watch->lock);
}

/* Reports the judged paths, after making sure that they belong to the process that called. */
static void report_call(struct cordon_watch *watch, size_t n, int error)
{
	if (!cordon_reports_pending(watch->reports) || !caller_waits(watch))
		return;
	pthread_mutex_lock(watch->lock);
	for (size_t i = 0; i < n; i++)
		cordon_reports_report(watch->reports, i, error);
	pthread_mutex_unlock(watch->lock);
}

/* Gives the caller the file that the hand opened. */
static void answer_with_file(struct cordon_watch *watch, int fd)
{
	struct seccomp_notif_addfd add = { .id = watch->notif->id,
					   .flags = SECCOMP_ADDFD_FLAG_SEND,
					   .srcfd = (uint32_t)fd,
					   .newfd_flags = watch->touches[0].flags & O_CLOEXEC ? O_CLOEXEC : 0 };

	/* It fails when the caller's table of descriptors is full: the caller gets the kernel's error. */
	if (ioctl(watch->listener, SECCOMP_IOCTL_NOTIF_ADDFD, &add) < 0 && errno != ENOENT && errno != EINPROGRESS)
		answer(watch, -errno, false);
}

/* Reports the name that was refused for a boundary, or because the caller gave up rights. */
static void report_refusal(struct cordon_watch *watch, size_t n, int error, const struct cordon_guard *guard)
{
	const struct cordon_spot *spot = &watch->call.spots[n - 1];

	if (error == -EBUSY && watch->call.spots[0].guard == guard)
		spot = &watch->call.spots[0];
	pthread_mutex_lock(watch->lock);
	cordon_reports_refused(watch->reports, spot->exists ? "rename" : "create", guard, spot->path);
	pthread_mutex_unlock(watch->lock);
}

static void report_too_large(struct cordon_watch *watch)
{
	pthread_mutex_lock(watch->lock);
	cordon_reports_too_large(watch->reports, watch->call.spots[0].path);
	pthread_mutex_unlock(watch->lock);
}

/* Serves a call that makes an entry in a held directory. It reports before it answers, so that the report comes before
 * anything that the program writes or does afterwards. */
static void serve_held(struct cordon_watch *watch, size_t n)
{
	/* In a mode that does not warn, a call that succeeds is not reported, and one that fails has changed nothing:
	 * so it is enough to judge it afterwards. */
	bool later = !watch->watched->observer->sight && cordon_reports_skip_free(watch->reports);
	const struct cordon_guard *guard = NULL;
	int error = 0, fd = -1;

	if (!later)
		judge_call(watch, n);
	switch (cordon_held_serve(&watch->held, watch->notif, watch->touches, &watch->call, &error, &fd, &guard)) {
	case CORDON_HELD_CONTINUE:
		if (later)
			judge_call(watch, n);
		report_call(watch, n, CORDON_ERROR_UNKNOWN);
		answer(watch, 0, true);
		break;
	case CORDON_HELD_REFUSE:
		if (caller_waits(watch))
			report_refusal(watch, n, error, guard);
		answer(watch, error, false);
		break;
	case CORDON_HELD_DONE:
		if (later && error)
			judge_call(watch, n);
		if (!later || error)
			report_call(watch, n, error);
		if (error == -EXDEV && watch->watched->hand->too_large)
			report_too_large(watch);
		if (fd >= 0)
			answer_with_file(watch, fd);
		else
			answer(watch, error, false);
		cordon_closep(&fd);
		break;
	case CORDON_HELD_GONE:
		break;
	}
}

/* Serves landlock_restrict_self(2): marks the caller, which is about to give up rights that the hand has. */
static void serve_restriction(struct cordon_watch *watch)
{
	bool marked = caller_waits(watch) && cordon_caller_mark((pid_t)watch->notif->pid);

	answer(watch, marked ? 0 : -EPERM, marked);
}

static bool is_symlink(long nr)
{
#ifdef SYS_open
	if (nr == SYS_symlink)
		return true;
#endif
	return nr == SYS_symlinkat;
}

static void serve(struct cordon_watch *watch)
{
	size_t n;

	if (watch->notif->data.nr == SYS_landlock_restrict_self) {
		serve_restriction(watch);
		return;
	}
	n = cordon_watch_read_call(watch->notif, watch->touches);
	if (n && watch->touches[n - 1].writes)
		watch->changed = true;
	if (!watch->ready) {
		pthread_mutex_lock(watch->lock);
		get_ready(watch, n);
		pthread_mutex_unlock(watch->lock);
	}
	if (n == 2 || (n == 1 && cordon_streq(watch->touches[0].op, "delete")) || is_symlink(watch->notif->data.nr))
		cordon_held_forget(&watch->held);
	if (!watch->program_runs || (!cordon_held_may_move(&watch->held, watch->notif) && is_plain(watch, n))) {
		answer(watch, 0, true);
		return;
	}
	switch (cordon_held_find(&watch->held, watch->notif, watch->touches, n, &watch->call)) {
	case CORDON_HELD_YES:
		serve_held(watch, n);
		cordon_held_call_done(&watch->call);
		return;
	case CORDON_HELD_FREE:
		if (watch->watched->observer->sight || !cordon_reports_skip_free(watch->reports))
			break;
		answer(watch, 0, true);
		return;
	case CORDON_HELD_NOT:
		break;
	}
	judge_call(watch, n);
	report_call(watch, n, CORDON_ERROR_UNKNOWN);
	answer(watch, 0, true);
}

/* Whether every process under the filter is gone. */
static bool hung_up(const struct cordon_watch *watch)
{
	struct pollfd fd = { .fd = watch->listener };

	return poll(&fd, 1, 0) == 1 && fd.revents & (POLLHUP | POLLERR);
}

static int64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

/*
 * INVARIANT: the watch resolves paths with the agent's rights. Root with capabilities can pass directories that the
 * agent, which is root without capabilities, can't pass, and the hand would act behind them. Only this thread gives up
 * the capabilities.
 */
static void drop_path_capabilities(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { 0 };
	bool done = syscall(SYS_capget, &header, data) == 0;

	data[0].effective &= ~(1U << CAP_DAC_OVERRIDE | 1U << CAP_DAC_READ_SEARCH);
	done = done && syscall(SYS_capset, &header, data) == 0;
	assert(done);
}

static void *receive(void *data)
{
	struct cordon_watch *watch = data;
	sigset_t set;

	sigfillset(&set);
	sigdelset(&set, SIGURG);
	pthread_sigmask(SIG_SETMASK, &set, NULL);
	cordon_sys_request_short_slice();
	drop_path_capabilities();
	while (!watch->stop) {
		int64_t begun = now_ns();

		memset(watch->notif, 0, watch->sizes.seccomp_notif);
		if (ioctl(watch->listener, SECCOMP_IOCTL_NOTIF_RECV, watch->notif) < 0) {
			/* ENOENT: the caller was killed before we received its call, or no process is left. */
			if (errno != EINTR && (errno != ENOENT || hung_up(watch)))
				break;
			continue;
		}
		watch->other_cpu = watch->notif->pid != watch->last && now_ns() - begun < AT_ONCE_NS;
		watch->last = watch->notif->pid;
		if (watch->watched->meter)
			cordon_meter_count(&watch->watched->meter->watch_events);
		serve(watch);
	}
	return NULL;
}

static void on_signal(int number)
{
	(void)number; /* the signal only interrupts the wait */
}

static int start_receiver(struct cordon_watch *watch)
{
	struct sigaction wake = { .sa_handler = on_signal };
	pthread_attr_t attr;
	int r = pthread_attr_init(&attr);

	if (r)
		return -r;
	sigaction(SIGURG, &wake, NULL);
	r = pthread_attr_setstacksize(&attr, STACK);
	if (r == 0)
		r = pthread_create(&watch->receiver, &attr, receive, watch);
	pthread_attr_destroy(&attr);
	watch->running = r == 0;
	return -r;
}

struct pollfd cordon_watch_poll(const struct cordon_watch *watch)
{
	if (!watch)
		return (struct pollfd){ .fd = -1 };
	/* poll() reports POLLHUP, the end of all processes, even when no events are asked for. */
	return (struct pollfd){ .fd = watch->listener, .events = watch->running ? 0 : POLLIN };
}

int cordon_watch_wake(struct cordon_watch *watch, short revents)
{
	int r;

	if (!(revents & POLLIN))
		return 0;
	r = start_receiver(watch);
	return r < 0 ? r : 1;
}
