/* SPDX-License-Identifier: Apache-2.0 */
/* The watch: answers seccomp notifications, refuses guarded names early, reports accesses outside the scope. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#include "base/sys.h"
#include "sandbox/watch.h"
#include "sandbox/watch_guards.h"
#include "sandbox/watch_report.h"
#include "sandbox/watch_sight.h"

#ifndef SECCOMP_IOCTL_NOTIF_SET_FLAGS
#define SECCOMP_IOCTL_NOTIF_SET_FLAGS SECCOMP_IOW(4, __u64)
#define SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP (1UL << 0)
#endif

#define STACK (256 << 10)
#define AT_ONCE_NS 3000 /* a call that came sooner than two switches of the processor had been waiting for us */

struct cordon_watch {
	const struct cordon_child *child;
	const struct cordon_observer *observer;
	pthread_mutex_t *lock;
	int listener;
	bool reporting;
	bool begun; /* the program runs: before, the calls are our own process's, which nobody can look into */
	struct cordon_places places; /* nothing inside can change a process's root */
	atomic_bool settled;	     /* both are known */
	struct cordon_watch_guards *guards;
	struct cordon_reports *reports;
	pthread_t receiver;
	bool running;
	atomic_bool stop;
	/* The receiver's. */
	struct seccomp_notif_sizes sizes;
	struct seccomp_notif *notif;
	struct seccomp_notif_resp *resp;
	struct cordon_touch touches[CORDON_TOUCHES_MAX];
	uint32_t last; /* who called before */
	bool apart;    /* this call had been waiting, and its caller is another one: probably on another processor */
};

/* Whether the kernel wakes us on the processor of who calls, and the caller on ours; best effort, from 6.6 on. */
static void wake_here(const struct cordon_watch *watch, bool here)
{
	ioctl(watch->listener, SECCOMP_IOCTL_NOTIF_SET_FLAGS, here ? SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP : 0);
}

struct cordon_watch *cordon_watch_new(const struct cordon_child *child, const struct cordon_observer *observer,
				      int listener, pthread_mutex_t *lock)
{
	struct cordon_watch *watch = calloc(1, sizeof(*watch));

	if (!watch)
		return NULL;
	watch->child = child;
	watch->observer = observer;
	watch->lock = lock;
	watch->listener = -1;
	watch->places = (struct cordon_places){ child->plan, .root_fd = -1, .workspace_fd = child->policy->root.fd };
	watch->guards = cordon_watch_guards_new(child);
	watch->reports = cordon_reports_new(child, observer);
	if (!watch->guards || !watch->reports || syscall(SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 0, &watch->sizes) < 0)
		return cordon_watch_free(watch);
	/* The kernel may know longer structures than we were built with. */
	watch->notif = calloc(1, watch->sizes.seccomp_notif + sizeof(*watch->notif));
	watch->resp = calloc(1, watch->sizes.seccomp_notif_resp + sizeof(*watch->resp));
	if (!watch->notif || !watch->resp)
		return cordon_watch_free(watch);
	watch->listener = listener;
	wake_here(watch, true);
	watch->reporting = child->variant == CORDON_SECCOMP_FULL || child->variant == CORDON_SECCOMP_LEARN;
	return watch;
}

/* A thread that waits for a call leaves it only by a signal, which may come right before it begins to wait. */
static void end_receiver(struct cordon_watch *watch)
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
	end_receiver(watch);
	cordon_reports_free(watch->reports);
	cordon_closep(&watch->listener);
	cordon_closep(&watch->places.root_fd);
	free(watch->guards);
	free(watch->notif);
	free(watch->resp);
	free(watch);
	return NULL;
}

unsigned int cordon_watch_count(const struct cordon_watch *watch)
{
	return cordon_reports_count(watch->reports);
}

bool cordon_watch_blames_agent(const struct cordon_watch *watch, const struct cordon_guard *guard)
{
	return cordon_watch_guards_blame(watch->guards, watch->places.root_fd, guard);
}

/* False when the process died meanwhile: what was read may be of another one. */
static bool answer(struct cordon_watch *watch, int error)
{
	bool sent;

	memset(watch->resp, 0, watch->sizes.seccomp_notif_resp);
	watch->resp->id = watch->notif->id;
	watch->resp->error = error;
	watch->resp->flags = error ? 0 : SECCOMP_USER_NOTIF_FLAG_CONTINUE;
	/* Who waited on a processor of its own must not be drawn to ours, where the one that we answered before runs: the
	 * other processor would stay idle for milliseconds. */
	if (watch->apart)
		wake_here(watch, false);
	sent = ioctl(watch->listener, SECCOMP_IOCTL_NOTIF_SEND, watch->resp) == 0;
	if (watch->apart)
		wake_here(watch, true);
	return sent;
}

/* Our own process, before the program runs, can't be looked into by an ordinary user; so it may take a few calls. */
static void find_root(struct cordon_watch *watch, pid_t pid)
{
	char link[40];

	snprintf(link, sizeof(link), "/proc/%d/root", (int)pid);
	watch->places.root_fd = open(link, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* A process that was killed meanwhile may have left its number to another, whose memory we then read. */
static bool still_there(const struct cordon_watch *watch)
{
	return ioctl(watch->listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &watch->notif->id) == 0;
}

static bool makes_names(const struct cordon_watch *watch, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (watch->touches[i].creates)
			return true;
	return false;
}

/* Most calls of a build: a file in a system directory or in the workspace, of which nobody is told. Without the lock. */
static bool is_nobodys_business(const struct cordon_watch *watch, size_t n)
{
	return n == 1 && watch->settled && watch->reporting && !watch->observer->sight && !watch->touches[0].creates &&
	       cordon_reports_pass(watch->reports, &watch->places, &watch->touches[0]);
}

/* With the lock. */
static void serve_judged(struct cordon_watch *watch, size_t n)
{
	pid_t pid = (pid_t)watch->notif->pid;
	bool made[CORDON_TOUCHES_MAX] = { false };

	/* What was read decides before the answer only about calls that make names, for who learns, and where the tree is; of all
	 * others something is told after it, and an answer that arrives says that the process was there. */
	if ((watch->places.root_fd < 0 || watch->observer->sight || makes_names(watch, n)) && !still_there(watch))
		return;
	if (watch->places.root_fd < 0)
		find_root(watch, pid);
	if (!watch->begun && n == 1 && !watch->touches[0].known && cordon_streq(watch->touches[0].op, "execute"))
		n = 0;
	else
		watch->begun = true;
	watch->settled = watch->begun && watch->places.root_fd >= 0;

	for (size_t i = 0; i < n; i++) {
		const struct cordon_touch *touch = &watch->touches[i];
		const struct cordon_guard *guard;

		if (!touch->creates)
			continue;
		guard = cordon_watch_guards_judge(watch->guards, watch->places.root_fd, touch);
		if (guard) {
			if (answer(watch, -EACCES))
				cordon_reports_refused(watch->reports, guard);
			return;
		}
		/* Afterwards it is too late to tell whether an open wrote a file or made it. */
		made[i] = watch->reporting && touch->known && touch->follows &&
			  !cordon_where_exists(&watch->places, pid, touch);
	}
	for (size_t i = 0; watch->observer->sight && i < n; i++)
		cordon_sight_tell(watch->child, watch->observer, &watch->touches[i]);
	/* Before it goes on: then it may be gone, and with it what its names stand for. */
	for (size_t i = 0; watch->reporting && i < n; i++)
		if (!cordon_streq(watch->touches[i].op, "look"))
			cordon_reports_look(watch->reports, i, &watch->places, pid, &watch->touches[i], made[i]);
	if (!answer(watch, 0))
		return;
	for (size_t i = 0; watch->reporting && i < n; i++)
		if (!cordon_streq(watch->touches[i].op, "look"))
			cordon_reports_tell(watch->reports, i);
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

static void *receive(void *data)
{
	struct cordon_watch *watch = data;
	sigset_t set;

	sigfillset(&set);
	sigdelset(&set, SIGURG);
	pthread_sigmask(SIG_SETMASK, &set, NULL);
	cordon_sys_prompt();
	while (!watch->stop) {
		int64_t begun = now_ns();
		size_t n;

		memset(watch->notif, 0, watch->sizes.seccomp_notif);
		if (ioctl(watch->listener, SECCOMP_IOCTL_NOTIF_RECV, watch->notif) < 0) {
			/* ENOENT: the process was killed before we looked, or there is none any more. */
			if (errno != EINTR && (errno != ENOENT || hung_up(watch)))
				break;
			continue;
		}
		watch->apart = watch->notif->pid != watch->last && now_ns() - begun < AT_ONCE_NS;
		watch->last = watch->notif->pid;
		n = cordon_watch_read_call(watch->notif, watch->touches);
		if (is_nobodys_business(watch, n)) {
			answer(watch, 0);
			continue;
		}
		pthread_mutex_lock(watch->lock);
		serve_judged(watch, n);
		pthread_mutex_unlock(watch->lock);
	}
	return NULL;
}

static void on_signal(int number)
{
	(void)number; /* it is there to end a call */
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
	/* The end of all processes is told unasked. */
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
