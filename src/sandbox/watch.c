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
#include "sandbox/watch_calls.h"

#ifndef SECCOMP_IOCTL_NOTIF_SET_FLAGS
#define SECCOMP_IOCTL_NOTIF_SET_FLAGS SECCOMP_IOW(4, __u64)
#define SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP (1UL << 0)
#endif

#define SERVE_MAX 64      /* notifications answered before the rest of the supervisor gets its turn */
#define RECENT_NS 50000000LL /* a creation let through longer ago than this does not explain a guarded name */
#define SLACK_NS 10000000LL
#define DENIED_NS 2000000000LL

struct recent {
	int64_t at; /* CLOCK_REALTIME ns, comparable with file times */
	int root_fd;
	char path[CORDON_PATH_MAX];
};

struct report {
	uint64_t hash; /* 0: free */
	unsigned int count;
	cordon_verdict verdict;
	cordon_reason reason;
	const char *op;
	char *path;
};

struct cordon_watch {
	const struct cordon_child *child;
	const struct cordon_observer *observer;
	int listener;
	bool reporting;
	bool begun; /* the program runs: before, the calls are our own process's, which nobody can look into */
	unsigned int violations;
	unsigned int unreadable;
	struct seccomp_notif_sizes sizes;
	struct seccomp_notif *notif;
	struct seccomp_notif_resp *resp;
	struct recent recent[CORDON_WATCH_RECENT];
	size_t next_recent;
	int64_t *denied; /* per guard: when its name was last refused */
	struct report reports[CORDON_WATCH_REPORTS];
	size_t n_reports;
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
	watch->listener = -1;
	for (size_t i = 0; i < CORDON_WATCH_RECENT; i++)
		watch->recent[i].root_fd = -1;
	if (syscall(SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 0, &watch->sizes) < 0)
		return cordon_watch_free(watch);
	/* The kernel may know longer structures than we were built with. */
	watch->notif = calloc(1, watch->sizes.seccomp_notif + sizeof(*watch->notif));
	watch->resp = calloc(1, watch->sizes.seccomp_notif_resp + sizeof(*watch->resp));
	watch->denied = calloc(child->plan->n_guards + 1, sizeof(*watch->denied));
	if (!watch->notif || !watch->resp || !watch->denied)
		return cordon_watch_free(watch);
	/* Best effort: halves the cost of a trapped call on 6.6 and later. */
	ioctl(listener, SECCOMP_IOCTL_NOTIF_SET_FLAGS, sync);
	watch->listener = listener;
	watch->reporting = child->variant == CORDON_SECCOMP_FULL || child->variant == CORDON_SECCOMP_LEARN;
	return watch;
}

/* What was folded is told once more, with its count. */
static void tell_folded(struct cordon_watch *watch)
{
	for (size_t i = 0; i < CORDON_WATCH_REPORTS; i++) {
		const struct report *r = &watch->reports[i];
		struct cordon_event event = { .kind = CORDON_EVENT_VIOLATION, .op = r->op, .path = r->path,
					      .verdict = r->verdict, .reason = r->reason, .count = r->count,
					      .by_agent = true };

		if (r->hash && r->count > 1)
			watch->observer->event(watch->observer->data, &event);
	}
}

struct cordon_watch *cordon_watch_free(struct cordon_watch *watch)
{
	if (!watch)
		return NULL;
	tell_folded(watch);
	for (size_t i = 0; i < CORDON_WATCH_REPORTS; i++)
		free(watch->reports[i].path);
	for (size_t i = 0; i < CORDON_WATCH_RECENT; i++)
		cordon_closep(&watch->recent[i].root_fd);
	cordon_closep(&watch->listener);
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
	return watch->violations;
}

static uint64_t hash_of(const char *op, const char *path)
{
	uint64_t h = 1469598103934665603ULL;

	for (const char *p = op; *p; p++)
		h = (h ^ (unsigned char)*p) * 1099511628211ULL;
	for (const char *p = path; *p; p++)
		h = (h ^ (unsigned char)*p) * 1099511628211ULL;
	return h ? h : 1;
}

/* Tells of a violation the first time, counts it afterwards. A full table counts without telling: the count in the
 * result is exact, the record is bounded. */
static void violation(struct cordon_watch *watch, const char *op, const char *path, const char *rule, cordon_verdict verdict,
		      cordon_reason reason)
{
	struct cordon_event event = { .kind = CORDON_EVENT_VIOLATION, .op = op, .path = path, .rule = rule, .reason = reason,
				      .verdict = verdict, .count = 1, .by_agent = true };
	uint64_t hash = hash_of(op, path);
	size_t at = hash % CORDON_WATCH_REPORTS;

	watch->violations++;
	for (size_t i = 0; i < CORDON_WATCH_REPORTS; i++, at = (at + 1) % CORDON_WATCH_REPORTS) {
		struct report *r = &watch->reports[at];

		if (r->hash == hash && cordon_streq(r->op, op) && cordon_streq(r->path, path)) {
			r->count++;
			return;
		}
		if (r->hash)
			continue;
		if (watch->n_reports >= CORDON_WATCH_REPORTS - 1 || !(r->path = strdup(path)))
			return;
		*r = (struct report){ .hash = hash, .count = 1, .op = op, .path = r->path, .verdict = verdict, .reason = reason };
		watch->n_reports++;
		watch->observer->event(watch->observer->data, &event);
		return;
	}
}

/* The directory that holds the last component of an absolute path, as process `pid` would find it. */
static int open_parent(pid_t pid, const char *path, char ret_name[static NAME_MAX + 1])
{
	struct open_how how = { .flags = O_PATH | O_DIRECTORY | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
	char link[40], dir[CORDON_PATH_MAX];
	size_t len = strlen(path);
	const char *slash;
	int root, fd;

	while (len > 1 && path[len - 1] == '/')
		len--;
	if (cordon_copy(dir, sizeof(dir), path, len) < 0)
		return -ENAMETOOLONG;
	slash = strrchr(dir, '/');
	if (!slash || cordon_copy(ret_name, NAME_MAX + 1, slash + 1, strlen(slash + 1)) < 0)
		return -EINVAL;
	dir[slash == dir ? 1 : slash - dir] = '\0';
	snprintf(link, sizeof(link), "/proc/%d/root", (int)pid);
	root = open(link, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return -errno;
	fd = cordon_sys_openat2(root, dir, &how, sizeof(how));
	if (fd < 0)
		fd = -errno;
	close(root);
	return fd;
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
static const struct cordon_guard *guarded(const struct cordon_watch *watch, pid_t pid, const char *path)
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
		if (parent == -1 && (parent = open_parent(pid, path, again)) >= 0 && fstat(parent, &made_in) < 0) {
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

static void remember(struct cordon_watch *watch, pid_t pid, const struct cordon_touch *touch)
{
	struct recent *r = &watch->recent[watch->next_recent++ % CORDON_WATCH_RECENT];
	char link[40];

	snprintf(link, sizeof(link), "/proc/%d/root", (int)pid);
	cordon_closep(&r->root_fd);
	r->at = now_ns();
	r->path[0] = '\0';
	if (!touch->known)
		return;
	r->root_fd = open(link, O_PATH | O_DIRECTORY | O_CLOEXEC);
	memcpy(r->path, touch->path, strlen(touch->path) + 1);
}

/* Whether a creation that was let through made what it had named. */
static bool explained(const struct recent *r)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
	struct statx st;
	int fd;

	if (!r->path[0] || r->root_fd < 0)
		return false;
	fd = cordon_sys_openat2(r->root_fd, r->path, &how, sizeof(how));
	if (fd < 0)
		return false;
	if (statx(fd, "", AT_EMPTY_PATH, STATX_BTIME, &st) < 0 || !(st.stx_mask & STATX_BTIME))
		st.stx_btime.tv_sec = 0;
	close(fd);
	return (int64_t)st.stx_btime.tv_sec * 1000000000LL + st.stx_btime.tv_nsec >= r->at - SLACK_NS;
}

bool cordon_watch_blames_agent(const struct cordon_watch *watch, const struct cordon_guard *guard)
{
	int64_t now = now_ns();

	if (now - watch->denied[guard - watch->child->plan->guards] < DENIED_NS)
		return true;
	for (size_t i = 0; i < CORDON_WATCH_RECENT; i++)
		if (watch->recent[i].at && now - watch->recent[i].at < RECENT_NS && !explained(&watch->recent[i]))
			return true;
	return false;
}

/* Places inside that are private, or that every program reads: never a violation. */
static bool unremarkable(const struct cordon_touch *touch)
{
	static const char *const system[] = { "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/proc",
					      "/dev", "/sys", "/run" };

	for (size_t i = 0; i < CORDON_ARRAY_SIZE(system); i++)
		if (cordon_path_within(touch->path, system[i]))
			return true;
	return cordon_path_within("/", touch->path);
}

/* In the host's terms: the agent may see the root elsewhere. */
static bool to_host(const struct cordon_plan *plan, const char *path, char ret[static CORDON_PATH_MAX])
{
	if (cordon_path_within(path, plan->at))
		return cordon_path_join(plan->root, path + strlen(plan->at), ret, CORDON_PATH_MAX) == 0;
	return cordon_copy(ret, CORDON_PATH_MAX, path, strlen(path)) == 0;
}

static void report(struct cordon_watch *watch, const struct cordon_touch *touch)
{
	const struct cordon_child *child = watch->child;
	struct cordon_resolved resolved;
	struct cordon_decision decision;
	char host[CORDON_PATH_MAX];

	if (!touch->known) {
		if (watch->unreadable++ == 0)
			violation(watch, touch->op, "(unreadable)", NULL,
				  child->plan->mode == CORDON_MODE_PERMISSIVE ? CORDON_WARN : CORDON_DENY,
				  CORDON_REASON_UNRESOLVABLE);
		return;
	}
	if (unremarkable(touch) || !to_host(child->plan, touch->path, host))
		return;
	if (!cordon_path_within(host, child->plan->root) && cordon_plan_is_private(child->plan, touch->path))
		return;
	cordon_resolve(&child->policy->root, host, &resolved);
	cordon_policy_judge(child->policy, &resolved, touch->writes ? CORDON_OP_WRITE : CORDON_OP_READ, &decision);
	if (decision.verdict != CORDON_ALLOW)
		violation(watch, touch->op, host, decision.rule, decision.verdict, decision.reason);
}

/* Where the call would act: unlink, rename and the making of names do not follow a link in the last component. */
static void resolve_sight(const struct cordon_root *root, const char *host, bool follow, struct cordon_resolved *ret)
{
	char dir[CORDON_PATH_MAX];
	const char *name = strrchr(host, '/') + 1;
	struct stat st;
	int fd;

	if (follow || !*name || cordon_streq(name, ".") || cordon_streq(name, "..") ||
	    cordon_copy(dir, sizeof(dir), host, (size_t)(name - host)) < 0) {
		cordon_resolve(root, host, ret);
		return;
	}
	cordon_resolve(root, dir, ret);
	if (ret->place == CORDON_PLACE_UNRESOLVABLE || cordon_path_join(ret->path, name, dir, sizeof(dir)) < 0) {
		ret->place = CORDON_PLACE_UNRESOLVABLE;
		return;
	}
	memcpy(ret->path, dir, strlen(dir) + 1);
	fd = ret->place == CORDON_PLACE_INSIDE ? root->fd : AT_FDCWD;
	ret->exists = fstatat(fd, ret->path, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Tells whoever learns what is about to happen, while the process stands still and the tree is as the call finds it. */
static void tell_sight(struct cordon_watch *watch, const struct cordon_touch *touch)
{
	const struct cordon_child *child = watch->child;
	const struct cordon_root *root = &child->policy->root;
	char host[CORDON_PATH_MAX], clean[CORDON_PATH_MAX], full[CORDON_PATH_MAX];
	bool exclusive = cordon_streq(touch->op, "delete") || cordon_streq(touch->op, "rename") || cordon_streq(touch->op, "create");
	struct cordon_sight sight = { .op = touch->op, .writes = touch->writes };
	struct cordon_resolved found;
	struct stat st;

	if (!touch->known || unremarkable(touch) || !to_host(child->plan, touch->path, host) ||
	    (!cordon_path_within(host, child->plan->root) && cordon_plan_is_private(child->plan, touch->path)))
		return;
	resolve_sight(root, host, !exclusive, &found);
	if (found.place == CORDON_PLACE_UNRESOLVABLE)
		return;
	sight.place = found.place;
	sight.path = found.path;
	if (found.exists && fstatat(found.place == CORDON_PLACE_INSIDE ? root->fd : AT_FDCWD, *found.path ? found.path : ".", &st,
				    AT_SYMLINK_NOFOLLOW) == 0)
		sight.type = st.st_mode & S_IFMT;
	if (cordon_path_clean(host, clean, sizeof(clean)) == 0 && found.place == CORDON_PLACE_INSIDE &&
	    cordon_path_join(root->path, found.path, full, sizeof(full)) == 0)
		sight.linked = !cordon_streq(clean, full);
	watch->observer->sight(watch->observer->data, &sight);
}

static void answer(struct cordon_watch *watch, int error)
{
	memset(watch->resp, 0, watch->sizes.seccomp_notif_resp);
	watch->resp->id = watch->notif->id;
	watch->resp->error = error;
	watch->resp->flags = error ? 0 : SECCOMP_USER_NOTIF_FLAG_CONTINUE;
	/* ENOENT: the process died meanwhile. */
	ioctl(watch->listener, SECCOMP_IOCTL_NOTIF_SEND, watch->resp);
}

static void serve_one(struct cordon_watch *watch)
{
	pid_t pid = (pid_t)watch->notif->pid;
	size_t n = cordon_watch_read_call(watch->notif, watch->touches);

	if (!watch->begun && n == 1 && !watch->touches[0].known && cordon_streq(watch->touches[0].op, "execute"))
		n = 0;
	else
		watch->begun = true;

	for (size_t i = 0; i < n; i++) {
		const struct cordon_touch *touch = &watch->touches[i];
		const struct cordon_guard *guard;

		if (!touch->creates)
			continue;
		guard = touch->known ? guarded(watch, pid, touch->path) : NULL;
		if (guard) {
			watch->denied[guard - watch->child->plan->guards] = now_ns();
			violation(watch, "create", guard->inside, guard->path, CORDON_DENY, CORDON_REASON_PROTECTED);
			answer(watch, -EACCES);
			return;
		}
		remember(watch, pid, touch);
	}
	for (size_t i = 0; watch->observer->sight && i < n; i++)
		tell_sight(watch, &watch->touches[i]);
	answer(watch, 0);
	/* The agent goes on while we look closer. */
	for (size_t i = 0; watch->reporting && i < n; i++)
		if (!cordon_streq(watch->touches[i].op, "look"))
			report(watch, &watch->touches[i]);
}

bool cordon_watch_serve(struct cordon_watch *watch)
{
	for (int served = 0; served < SERVE_MAX; served++) {
		struct pollfd ready = { .fd = watch->listener, .events = POLLIN };

		if (poll(&ready, 1, 0) <= 0)
			return true;
		if (!(ready.revents & POLLIN))
			return false; /* every process under the filter is gone */
		memset(watch->notif, 0, watch->sizes.seccomp_notif);
		if (ioctl(watch->listener, SECCOMP_IOCTL_NOTIF_RECV, watch->notif) < 0) {
			if (errno != ENOENT && errno != EINTR)
				return false;
			continue;
		}
		serve_one(watch);
	}
	return true;
}
