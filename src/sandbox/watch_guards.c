/* SPDX-License-Identifier: Apache-2.0 */
/* Guarded names: which call would make one, and who made the one that stands there. */
#include <fcntl.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/path.h"
#include "base/sys.h"
#include "sandbox/watch_guards.h"

/* A creation let through longer ago than this does not explain a guarded name. A thread that the processors have no time
 * for may well take that long from our answer to its deed; in doubt the name is taken away, which loses nothing. */
#define RECENT_NS 1000000000LL
#define SLACK_NS 10000000LL
#define DENIED_NS 2000000000LL
#define RECENT 16 /* creations that were let through, kept to tell who made a guarded name */

struct recent {
	int64_t at; /* CLOCK_REALTIME ns, comparable with file times */
	char path[CORDON_PATH_MAX];
};

struct cordon_watch_guards {
	const struct cordon_child *child;
	struct recent recent[RECENT];
	int64_t doubt; /* when the last creation was let through that made nothing it had named and is not among those */
	size_t next_recent;
	int64_t denied[]; /* per guard: when its name was last refused */
};

static int64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (int64_t)ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

struct cordon_watch_guards *cordon_watch_guards_new(const struct cordon_child *child)
{
	size_t n = child->plan->n_guards;
	struct cordon_watch_guards *guards = calloc(1, sizeof(*guards) + n * sizeof(guards->denied[0]));

	if (guards)
		guards->child = child;
	return guards;
}

/* The directory that holds the last component of an absolute path, as the agent would find it. */
static int open_parent(int root_fd, const char *path, char ret_name[static NAME_MAX + 1])
{
	struct open_how how = { .flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
				.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
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

static bool same_name(const struct cordon_watch_guards *guards, const char *a, const char *b)
{
	return guards->child->plan->fold_case ? strcasecmp(a, b) == 0 : cordon_streq(a, b);
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

static const struct cordon_guard *guarded(const struct cordon_watch_guards *guards, int root_fd, const char *path)
{
	const struct cordon_plan *plan = guards->child->plan;
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

		if (guard->state != CORDON_GUARD_ABSENT || !same_name(guards, guard->name, name))
			continue;
		if (parent == -1 && (parent = open_parent(root_fd, path, again)) >= 0 && fstat(parent, &made_in) < 0) {
			close(parent);
			parent = -2;
		}
		if (parent < 0)
			break;
		if (fstatat(guards->child->policy->root.fd, *guard->dir ? guard->dir : ".", &held,
			    AT_SYMLINK_NOFOLLOW) == 0 &&
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

static void remember(struct cordon_watch_guards *guards, int root_fd, const struct cordon_touch *touch)
{
	struct recent *r = &guards->recent[guards->next_recent++ % RECENT];
	int64_t now = now_ns();

	/* Many harmless ones must not push out the one that was not. */
	if (r->at && now - r->at < RECENT_NS && !explained(root_fd, r))
		guards->doubt = r->at;
	r->at = now;
	r->path[0] = '\0';
	if (touch->known)
		memcpy(r->path, touch->path, strlen(touch->path) + 1);
}

const struct cordon_guard *cordon_watch_guards_judge(struct cordon_watch_guards *guards, int root_fd,
						     const struct cordon_touch *touch)
{
	const struct cordon_guard *guard = NULL;

	if (!guards->child->plan->n_guards)
		return NULL;
	if (touch->known)
		guard = guarded(guards, root_fd, touch->path);
	if (guard)
		guards->denied[guard - guards->child->plan->guards] = now_ns();
	else
		remember(guards, root_fd, touch);
	return guard;
}

bool cordon_watch_guards_blame(const struct cordon_watch_guards *guards, int root_fd, const struct cordon_guard *guard)
{
	int64_t now = now_ns();

	if (now - guards->denied[guard - guards->child->plan->guards] < DENIED_NS || now - guards->doubt < RECENT_NS)
		return true;
	for (size_t i = 0; i < RECENT; i++)
		if (guards->recent[i].at && now - guards->recent[i].at < RECENT_NS &&
		    !explained(root_fd, &guards->recent[i]))
			return true;
	return false;
}
