/* SPDX-License-Identifier: Apache-2.0 */
/* Where a path that the agent named leads. */
#include <fcntl.h>
#include <stdio.h>

#include "base/path.h"
#include "base/resolve.h"
#include "base/sys.h"
#include "sandbox/watch_where.h"

const char *const cordon_watch_system[] = { "/usr", "/etc", "/lib", "/lib64", "/lib32", "/libx32", "/bin",
					    "/sbin", "/proc", "/dev", "/sys", "/run", NULL };

static bool climbs(const char *path)
{
	for (const char *p = strstr(path, "/.."); p; p = strstr(p + 1, "/.."))
		if (p[3] == '/' || p[3] == '\0')
			return true;
	return false;
}

/* Below /proc and /dev there are names that stand for what a process has open, and lead anywhere. */
static bool may_stand_for_another(const char *path)
{
	return strncmp(path, "/proc/", 6) == 0 || strncmp(path, "/dev/fd", 7) == 0 || strncmp(path, "/dev/std", 8) == 0 ||
	       strncmp(path, "//", 2) == 0;
}

bool cordon_where_is_system(const char *path)
{
	for (const char *const *dir = cordon_watch_system; *dir; dir++)
		if (cordon_path_within(path, *dir))
			return true;
	return cordon_streq(path, "/");
}

bool cordon_where_plainly_system(const char *path)
{
	return cordon_where_is_system(path) && !may_stand_for_another(path) && !climbs(path);
}

/* The next component of *p, without slashes and "."; its length, 0 at the end. */
static size_t component(const char **p)
{
	for (;;) {
		size_t n;

		*p += strspn(*p, "/");
		n = strcspn(*p, "/");
		if (n != 1 || **p != '.')
			return n;
		*p += 1;
	}
}

static bool is(const char *p, size_t n, const char *word)
{
	return n == strlen(word) && memcmp(p, word, n) == 0;
}

/* /proc/PID/cwd, root, exe, fd/N, map_files/X, also below task/TID: `p` stands behind /proc; true with the end of it. */
static bool process_link(const char *p, const char **ret_process, size_t *ret_len, const char **ret_what,
			 const char **ret_end)
{
	size_t n = component(&p);

	*ret_process = p;
	*ret_len = n;
	if (!is(p, n, "self") && !is(p, n, "thread-self") && (n == 0 || strspn(p, "0123456789") < n))
		return false;
	p += n;
	n = component(&p);
	if (is(p, n, "task")) {
		p += n;
		p += component(&p);
		n = component(&p);
	}
	*ret_what = p;
	if (is(p, n, "fd") || is(p, n, "map_files")) {
		p += n;
		n = component(&p);
		*ret_end = p + n;
		return n > 0;
	}
	*ret_end = p + n;
	return is(p, n, "cwd") || is(p, n, "root") || is(p, n, "exe");
}

/* Puts in the place of such a name what it stands for. False when that has no path (a pipe, a socket). */
static bool replace_process_link(int root_fd, pid_t pid, char path[static CORDON_PATH_MAX])
{
	const char *p = path, *process, *what, *end;
	char link[CORDON_PATH_MAX], target[CORDON_PATH_MAX], rest[CORDON_PATH_MAX];
	size_t n = component(&p), len;
	ssize_t got;

	if (is(p, n, "dev")) {
		const char *name = p + n, *after;
		static const char *const streams[] = { "stdin", "stdout", "stderr" };
		int r = -1;

		n = component(&name);
		after = name + n;
		if (is(name, n, "fd"))
			r = snprintf(link, sizeof(link), "/proc/self/fd%s", after);
		for (int i = 0; i < 3; i++)
			if (is(name, n, streams[i]))
				r = snprintf(link, sizeof(link), "/proc/self/fd/%d%s", i, after);
		if (r < 0 || (size_t)r >= sizeof(link))
			return true;
		memcpy(path, link, (size_t)r + 1);
		p = path;
		n = component(&p);
	}
	if (!is(p, n, "proc") || !process_link(p + n, &process, &len, &what, &end))
		return true;
	if (process[0] >= '0' && process[0] <= '9') {
		/* A number of the run's own pid namespace: its /proc knows it. */
		snprintf(link, sizeof(link), "proc/%.*s/%.*s", (int)len, process, (int)(end - what), what);
		got = root_fd < 0 ? -1 : readlinkat(root_fd, link, target, sizeof(target) - 1);
	} else {
		snprintf(link, sizeof(link), "/proc/%d/%.*s", (int)pid, (int)(end - what), what);
		got = readlink(link, target, sizeof(target) - 1);
	}
	if (got <= 0)
		return true;
	target[got] = '\0';
	if (target[0] != '/')
		return false;
	memcpy(rest, end, strlen(end) + 1);
	return cordon_path_join(target, rest + strspn(rest, "/"), path, CORDON_PATH_MAX) == 0;
}

static int open_resolving(int root_fd, const char *path, int flags, uint64_t resolve)
{
	struct open_how how = { .flags = (uint64_t)(unsigned int)(O_PATH | O_CLOEXEC | flags),
				.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | resolve };

	errno = EBADF;
	return root_fd < 0 ? -1 : cordon_sys_openat2(root_fd, path, &how, sizeof(how));
}

static int open_inside(int root_fd, const char *path, int flags)
{
	return open_resolving(root_fd, path, flags, 0);
}

/* The name of what is open. */
static bool name_of(int fd, char ret[static CORDON_PATH_MAX])
{
	char link[32];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, ret, CORDON_PATH_MAX - 1);
	if (n <= 0 || ret[0] != '/')
		return false;
	ret[n] = '\0';
	return true;
}

/* Cuts the last component off into `ret_name`; false when there is none that could be a name. */
static bool split(char path[static CORDON_PATH_MAX], char ret_name[static NAME_MAX + 1])
{
	size_t len = strlen(path), start;

	while (len > 1 && path[len - 1] == '/')
		len--;
	for (start = len; start > 0 && path[start - 1] != '/'; start--)
		;
	if (cordon_copy(ret_name, NAME_MAX + 1, path + start, len - start) < 0 || !*ret_name || is(ret_name, len - start, ".") ||
	    is(ret_name, len - start, ".."))
		return false;
	path[start] = '\0';
	return true;
}

typedef enum finding { FOUND, MISSING /* but its directory is there */, AGAIN /* a link was expanded */, LOST } finding;

/* By the directory: for a name that is not there, or that a call takes as it stands. A link that leads nowhere is put
 * into `path` expanded. */
static finding find_by_parent(int root_fd, char path[static CORDON_PATH_MAX], bool follow,
					char ret[static CORDON_PATH_MAX])
{
	char dir[CORDON_PATH_MAX], name[NAME_MAX + 1], target[CORDON_PATH_MAX];
	finding taken = LOST;
	ssize_t n;
	int fd;

	memcpy(dir, path, strlen(path) + 1);
	if (!split(dir, name) || (fd = open_inside(root_fd, dir, O_DIRECTORY)) < 0)
		return LOST;
	if (name_of(fd, dir) && cordon_path_join(dir, name, ret, CORDON_PATH_MAX) == 0)
		taken = faccessat(fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0 ? FOUND : MISSING;
	n = taken == FOUND && follow ? readlinkat(fd, name, target, sizeof(target) - 1) : -1;
	close(fd);
	if (n <= 0)
		return taken;
	target[n] = '\0';
	return cordon_path_join(target[0] == '/' ? "" : dir, target, path, CORDON_PATH_MAX) == 0 ? AGAIN : LOST;
}

static finding find_inside(int root_fd, pid_t pid, char path[static CORDON_PATH_MAX], bool follow,
				     char ret[static CORDON_PATH_MAX])
{
	finding taken = AGAIN;

	for (unsigned int links = 0; taken == AGAIN && links < CORDON_LINKS_MAX; links++) {
		int fd = follow ? open_inside(root_fd, path, 0) : -1;

		if (fd >= 0) {
			taken = name_of(fd, ret) ? FOUND : LOST;
			close(fd);
			return taken;
		}
		taken = find_by_parent(root_fd, path, follow, ret);
		if (taken == AGAIN && may_stand_for_another(path) && !replace_process_link(root_fd, pid, path))
			return LOST;
	}
	return taken == AGAIN ? LOST : taken;
}

/* A name in a directory whose true path is known leads nowhere else unless it is a link: one look tells. */
static finding find_direct(int root_fd, const char *path, bool follow, char ret[static CORDON_PATH_MAX])
{
	char first;
	ssize_t n = root_fd < 0 ? -1 : readlinkat(root_fd, path + strspn(path, "/"), &first, 1);

	if (root_fd < 0 || (n >= 0 && follow) || (n < 0 && errno != EINVAL && errno != ENOENT))
		return LOST;
	memcpy(ret, path, strlen(path) + 1);
	return n >= 0 || errno == EINVAL ? FOUND : MISSING;
}

bool cordon_where_plainly_within(const struct cordon_plan *plan, int root_fd, const struct cordon_touch *touch,
				 char ret[static CORDON_PATH_MAX])
{
	const char *rest = touch->path + strlen(plan->at);
	bool there = false;

	if (!cordon_path_within(touch->path, plan->at) || climbs(touch->path))
		return false;
	if (touch->direct) {
		there = find_direct(root_fd, touch->path, touch->follows, ret) != LOST;
	} else {
		int fd = open_resolving(root_fd, touch->path, touch->follows ? 0 : O_NOFOLLOW, RESOLVE_NO_SYMLINKS);

		there = fd >= 0 || errno == ENOENT;
		if (fd >= 0)
			close(fd);
	}
	return there && cordon_path_clean(rest + strspn(rest, "/"), ret, CORDON_PATH_MAX) == 0;
}

bool cordon_where_to_host(const struct cordon_plan *plan, const char *inside, char ret[static CORDON_PATH_MAX])
{
	const struct cordon_step *best = NULL;

	if (cordon_path_within(inside, plan->at))
		return cordon_path_join(plan->root, inside + strlen(plan->at), ret, CORDON_PATH_MAX) == 0;
	for (size_t i = 0; i < plan->n_steps; i++) {
		const struct cordon_step *s = &plan->steps[i];

		if (s->kind == CORDON_STEP_BIND && cordon_path_within(inside, s->path) &&
		    (!best || strlen(s->path) >= strlen(best->path)))
			best = s;
	}
	if (best && !cordon_streq(best->source, best->path))
		return cordon_path_join(best->source, inside + strlen(best->path), ret, CORDON_PATH_MAX) == 0;
	return cordon_copy(ret, CORDON_PATH_MAX, inside, strlen(inside)) == 0;
}

/* What the sandbox does not show: by the host's own links, so that a report names what was meant. */
static bool find_outside(const struct cordon_plan *plan, const char *path, bool follow, struct cordon_where *ret)
{
	struct cordon_root slash = { .fd = -1, .path = "/" };
	struct cordon_resolved resolved;
	char asked[CORDON_PATH_MAX], name[NAME_MAX + 1] = "";

	if (!cordon_where_to_host(plan, path, asked) || (!follow && !split(asked, name)))
		return false;
	cordon_resolve(&slash, asked, &resolved);
	if (resolved.place != CORDON_PLACE_INSIDE || cordon_path_join("/", resolved.path, asked, sizeof(asked)) < 0 ||
	    cordon_path_join(asked, name, ret->host, sizeof(ret->host)) < 0)
		return false;
	ret->shown = false;
	ret->exists = follow ? resolved.exists : faccessat(AT_FDCWD, ret->host, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
	return true;
}

bool cordon_where_exists(int root_fd, const char *path)
{
	int fd = open_inside(root_fd, path, 0);

	if (fd < 0)
		return false;
	close(fd);
	return true;
}

bool cordon_where_find(const struct cordon_plan *plan, int root_fd, pid_t pid, const struct cordon_touch *touch,
		       struct cordon_where *ret)
{
	CORDON_UNCLEARED char path[CORDON_PATH_MAX];
	finding found = LOST;

	memcpy(path, touch->path, strlen(touch->path) + 1);
	if (may_stand_for_another(path)) {
		if (!replace_process_link(root_fd, pid, path))
			return false;
	} else if (touch->direct) {
		found = find_direct(root_fd, path, touch->follows, ret->inside);
	}
	if (found == LOST)
		found = find_inside(root_fd, pid, path, touch->follows, ret->inside);
	switch (found) {
	case FOUND:
		ret->shown = ret->exists = true;
		return cordon_where_to_host(plan, ret->inside, ret->host);
	case MISSING:
		ret->shown = true;
		ret->exists = false;
		return cordon_where_to_host(plan, ret->inside, ret->host);
	case AGAIN:
	case LOST:
		break;
	}
	if (!find_outside(plan, path, touch->follows, ret))
		return false;
	memcpy(ret->inside, climbs(path) ? ret->host : path, strlen(climbs(path) ? ret->host : path) + 1);
	return true;
}
