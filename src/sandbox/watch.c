/* SPDX-License-Identifier: Apache-2.0 */
/* The watch: answers seccomp notifications, refuses guarded names early, reports accesses outside the scope. */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/path.h"
#include "base/sys.h"
#include "sandbox/watch.h"
#include "sandbox/watch_report.h"
#include "sandbox/watch_sight.h"

#ifndef SECCOMP_IOCTL_NOTIF_SET_FLAGS
#define SECCOMP_IOCTL_NOTIF_SET_FLAGS SECCOMP_IOW(4, __u64)
#define SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP (1UL << 0)
#endif

/* A creation let through longer ago than this does not explain a guarded name. A thread that the processors have no time
 * for may well take that long from our answer to its deed; in doubt the name is taken away, which loses nothing. */
#define RECENT_NS 1000000000LL
#define SLACK_NS 10000000LL
#define DENIED_NS 2000000000LL
#define TURNS_OF_SEVERAL 16 /* of 64 */

struct recent {
	int64_t at; /* CLOCK_REALTIME ns, comparable with file times */
	char path[CORDON_PATH_MAX];
};

struct cordon_watch {
	const struct cordon_child *child;
	const struct cordon_observer *observer;
	int listener;
	bool reporting;
	bool begun; /* the program runs: before, the calls are our own process's, which nobody can look into */
	struct seccomp_notif_sizes sizes;
	struct seccomp_notif *notif;
	struct seccomp_notif_resp *resp;
	struct recent recent[CORDON_WATCH_RECENT];
	int64_t doubt; /* when the last creation was let through that made nothing it had named and is not among those */
	size_t next_recent;
	int64_t *denied; /* per guard: when its name was last refused */
	struct cordon_reports *reports;
	uint32_t last_pid;
	uint64_t turns; /* of the last 64 calls: whether each came from another process than the one before */
	bool apart;	/* the kernel wakes us and the callers where it likes */
	int root_fd; /* of the agent's tree; nothing inside can change a process's root */
	struct cordon_touch touches[CORDON_TOUCHES_MAX];
};

static int64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (int64_t)ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

struct cordon_watch *cordon_watch_new(const struct cordon_child *child, const struct cordon_observer *observer, int listener)
{
	struct cordon_watch *watch = calloc(1, sizeof(*watch));
	uint64_t sync = SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP;

	if (!watch)
		return NULL;
	watch->child = child;
	watch->observer = observer;
	watch->listener = watch->root_fd = -1;
	if (syscall(SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 0, &watch->sizes) < 0)
		return cordon_watch_free(watch);
	/* The kernel may know longer structures than we were built with. */
	watch->notif = calloc(1, watch->sizes.seccomp_notif + sizeof(*watch->notif));
	watch->resp = calloc(1, watch->sizes.seccomp_notif_resp + sizeof(*watch->resp));
	watch->denied = calloc(child->plan->n_guards + 1, sizeof(*watch->denied));
	watch->reports = cordon_reports_new(child, observer);
	if (!watch->notif || !watch->resp || !watch->denied || !watch->reports)
		return cordon_watch_free(watch);
	/* Best effort: halves the cost of a trapped call on 6.6 and later. */
	ioctl(listener, SECCOMP_IOCTL_NOTIF_SET_FLAGS, sync);
	cordon_sys_prompt();
	watch->listener = listener;
	watch->reporting = child->variant == CORDON_SECCOMP_FULL || child->variant == CORDON_SECCOMP_LEARN;
	return watch;
}

struct cordon_watch *cordon_watch_free(struct cordon_watch *watch)
{
	if (!watch)
		return NULL;
	cordon_reports_free(watch->reports);
	cordon_closep(&watch->listener);
	cordon_closep(&watch->root_fd);
	free(watch->notif);
	free(watch->resp);
	free(watch->denied);
	free(watch);
	return NULL;
}

int cordon_watch_fd(const struct cordon_watch *watch)
{
	return watch->listener;
}

unsigned int cordon_watch_count(const struct cordon_watch *watch)
{
	return cordon_reports_count(watch->reports);
}

/* The directory that holds the last component of an absolute path, as the agent would find it. */
static int open_parent(int root_fd, const char *path, char ret_name[static NAME_MAX + 1])
{
	struct open_how how = { .flags = O_PATH | O_DIRECTORY | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
	char dir[CORDON_PATH_MAX];
	size_t len = strlen(path);
	const char *slash;
	int fd;

	while (len > 1 && path[len - 1] == '/')
		len--;
	if (cordon_copy(dir, sizeof(dir), path, len) < 0)
		return -ENAMETOOLONG;
	slash = strrchr(dir, '/');
	if (!slash || cordon_copy(ret_name, NAME_MAX + 1, slash + 1, strlen(slash + 1)) < 0)
		return -EINVAL;
	dir[slash == dir ? 1 : slash - dir] = '\0';
	fd = cordon_sys_openat2(root_fd, dir, &how, sizeof(how));
	return fd < 0 ? -errno : fd;
}

static bool same_name(const struct cordon_watch *watch, const char *a, const char *b)
{
	return watch->child->plan->fold_case ? strcasecmp(a, b) == 0 : cordon_streq(a, b);
}

static const char *last_component(const char *path, char ret[static NAME_MAX + 1])
{
	size_t len = strlen(path), start;

	while (len > 1 && path[len - 1] == '/')
		len--;
	for (start = len; start > 0 && path[start - 1] != '/'; start--)
		;
	return cordon_copy(ret, NAME_MAX + 1, path + start, len - start) < 0 ? NULL : ret;
}

/* The guard whose name this call would make, or NULL. */
static const struct cordon_guard *guarded(const struct cordon_watch *watch, const char *path)
{
	const struct cordon_plan *plan = watch->child->plan;
	char name[NAME_MAX + 1];
	const struct cordon_guard *found = NULL;
	struct stat made_in, held;
	int parent = -1;

	/* Nearly every call ends here: the name is not one of ours. */
	if (!last_component(path, name))
		return NULL;
	for (size_t i = 0; !found && i < plan->n_guards; i++) {
		const struct cordon_guard *guard = &plan->guards[i];
		char again[NAME_MAX + 1];

		if (guard->state != CORDON_GUARD_ABSENT || !same_name(watch, guard->name, name))
			continue;
		if (parent == -1 && (parent = open_parent(watch->root_fd, path, again)) >= 0 && fstat(parent, &made_in) < 0) {
			close(parent);
			parent = -2;
		}
		if (parent < 0)
			break;
		if (fstatat(watch->child->policy->root.fd, *guard->dir ? guard->dir : ".", &held, AT_SYMLINK_NOFOLLOW) == 0 &&
		    held.st_ino == made_in.st_ino && held.st_dev == made_in.st_dev)
			found = guard;
	}
	if (parent >= 0)
		close(parent);
	return found;
}

/* Whether a creation that was let through made what it had named. */
static bool explained(int root_fd, const struct recent *r)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
	struct statx st;
	int fd;

	if (!r->path[0] || root_fd < 0)
		return false;
	fd = cordon_sys_openat2(root_fd, r->path, &how, sizeof(how));
	if (fd < 0)
		return false;
	if (statx(fd, "", AT_EMPTY_PATH, STATX_BTIME, &st) < 0 || !(st.stx_mask & STATX_BTIME))
		st.stx_btime.tv_sec = 0;
	close(fd);
	return (int64_t)st.stx_btime.tv_sec * 1000000000LL + st.stx_btime.tv_nsec >= r->at - SLACK_NS;
}

static void remember(struct cordon_watch *watch, const struct cordon_touch *touch)
{
	struct recent *r = &watch->recent[watch->next_recent++ % CORDON_WATCH_RECENT];
	int64_t now = now_ns();

	/* Many harmless ones must not push out the one that was not. */
	if (r->at && now - r->at < RECENT_NS && !explained(watch->root_fd, r))
		watch->doubt = r->at;
	r->at = now;
	r->path[0] = '\0';
	if (touch->known)
		memcpy(r->path, touch->path, strlen(touch->path) + 1);
}

bool cordon_watch_blames_agent(const struct cordon_watch *watch, const struct cordon_guard *guard)
{
	int64_t now = now_ns();

	if (now - watch->denied[guard - watch->child->plan->guards] < DENIED_NS || now - watch->doubt < RECENT_NS)
		return true;
	for (size_t i = 0; i < CORDON_WATCH_RECENT; i++)
		if (watch->recent[i].at && now - watch->recent[i].at < RECENT_NS && !explained(watch->root_fd, &watch->recent[i]))
			return true;
	return false;
}

/* False when the process died meanwhile: what was read may be of another one. */
static bool answer(struct cordon_watch *watch, int error)
{
	memset(watch->resp, 0, watch->sizes.seccomp_notif_resp);
	watch->resp->id = watch->notif->id;
	watch->resp->error = error;
	watch->resp->flags = error ? 0 : SECCOMP_USER_NOTIF_FLAG_CONTINUE;
	return ioctl(watch->listener, SECCOMP_IOCTL_NOTIF_SEND, watch->resp) == 0;
}

/* Our own process, before the program runs, can't be looked into by an ordinary user; so it may take a few calls. */
static void find_root(struct cordon_watch *watch, pid_t pid)
{
	char link[40];

	snprintf(link, sizeof(link), "/proc/%d/root", (int)pid);
	watch->root_fd = open(link, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* Refuses the call when it would make a guarded name. */
static bool refuse_guarded(struct cordon_watch *watch, const struct cordon_touch *touch)
{
	const struct cordon_guard *guard = touch->known ? guarded(watch, touch->path) : NULL;

	if (!guard)
		return false;
	watch->denied[guard - watch->child->plan->guards] = now_ns();
	if (answer(watch, -EACCES))
		cordon_reports_refused(watch->reports, guard);
	return true;
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

static void serve_one(struct cordon_watch *watch)
{
	pid_t pid = (pid_t)watch->notif->pid;
	size_t n = cordon_watch_read_call(watch->notif, watch->touches);
	bool made[CORDON_TOUCHES_MAX] = { false };

	/* What was read is used before the answer only by calls that make names, by who learns, and to find the tree; all
	 * others are told after it, and an answer that arrives says as well that the process was there. */
	if ((watch->root_fd < 0 || watch->observer->sight || makes_names(watch, n)) && !still_there(watch))
		return;
	if (watch->root_fd < 0)
		find_root(watch, pid);
	if (!watch->begun && n == 1 && !watch->touches[0].known && cordon_streq(watch->touches[0].op, "execute"))
		n = 0;
	else
		watch->begun = true;

	for (size_t i = 0; i < n; i++) {
		const struct cordon_touch *touch = &watch->touches[i];

		if (!touch->creates)
			continue;
		if (watch->child->plan->n_guards) {
			if (refuse_guarded(watch, touch))
				return;
			remember(watch, touch);
		}
		/* Afterwards it is too late to tell whether an open wrote a file or made it. */
		made[i] = watch->reporting && touch->known && touch->follows && !cordon_where_exists(watch->root_fd, touch->path);
	}
	for (size_t i = 0; watch->observer->sight && i < n; i++)
		cordon_sight_tell(watch->child, watch->observer, &watch->touches[i]);
	if (!answer(watch, 0))
		return;
	/* A call that changes names is the only one that could have changed these since: all others wait for us. */
	for (size_t i = 0; watch->reporting && i < n; i++)
		if (!cordon_streq(watch->touches[i].op, "look"))
			cordon_reports_take(watch->reports, watch->root_fd, pid, &watch->touches[i], made[i]);
}

/* A process that calls again and again is answered fastest on its own processor. Several at a time must not be: each answer
 * would draw one more of them to the processor that we are on. */
static void choose_processor(struct cordon_watch *watch)
{
	bool apart;

	watch->turns = watch->turns << 1 | (watch->notif->pid != watch->last_pid);
	watch->last_pid = watch->notif->pid;
	apart = __builtin_popcountll(watch->turns) > TURNS_OF_SEVERAL;
	if (apart != watch->apart)
		ioctl(watch->listener, SECCOMP_IOCTL_NOTIF_SET_FLAGS, apart ? 0 : SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP);
	watch->apart = apart;
}

bool cordon_watch_serve(struct cordon_watch *watch, short revents)
{
	if (!(revents & POLLIN))
		return false; /* every process under the filter is gone */
	memset(watch->notif, 0, watch->sizes.seccomp_notif);
	if (ioctl(watch->listener, SECCOMP_IOCTL_NOTIF_RECV, watch->notif) == 0) {
		choose_processor(watch);
		serve_one(watch);
	} else if (errno != ENOENT && errno != EINTR) {
		return false;
	}
	return true;
}
