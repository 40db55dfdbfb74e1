/* SPDX-License-Identifier: Apache-2.0 */
/* The watch finds out where a path that the agent named leads. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/path.h"
#include "base/resolve.h"
#include "base/sys.h"
#include "sandbox/inside/where.h"

const char *const cordon_watch_system[] = { "/usr",  "/etc",  "/lib", "/lib64", "/lib32", "/libx32", "/bin",
					    "/sbin", "/proc", "/dev", "/sys",	"/run",	  NULL };

static bool has_dotdot(const char *path)
{
	for (const char *p = strstr(path, "/.."); p; p = strstr(p + 1, "/.."))
		if (p[3] == '/' || p[3] == '\0')
			return true;
	return false;
}

bool cordon_where_is_system(const char *path)
{
	for (const char *const *dir = cordon_watch_system; *dir; dir++)
		if (cordon_path_within(path, *dir))
			return true;
	return cordon_streq(path, "/");
}

/* Moves *p to the next component, past slashes and "."; returns its length, 0 at the end. */
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

static bool is_word(const char *p, size_t n, const char *word)
{
	return n == strlen(word) && memcmp(p, word, n) == 0;
}

/* Whether a path may be a link of a process: some names below /proc and /dev stand for what a process has open, and may
 * lead anywhere. */
static bool may_be_process_link(const char *path)
{
	size_t n = component(&path);
	const char *next = path + n;

	if (is_word(path, n, "proc"))
		return true;
	if (!is_word(path, n, "dev"))
		return false;
	n = component(&next);
	return is_word(next, n, "fd") || is_word(next, n, "stdin") || is_word(next, n, "stdout") ||
	       is_word(next, n, "stderr");
}

bool cordon_where_plainly_system(const char *path)
{
	return cordon_where_is_system(path) && !may_be_process_link(path) && !has_dotdot(path);
}

/* The components of a path behind /proc, without "." and with ".." resolved. Resolving ".." by text is correct here,
 * because the components before a link of a process are real directories. */
struct proc_names {
	const char *at[6];
	size_t len[6], n;
};

/* Recognises the links of a process: PID/cwd, root, exe, fd/N and map_files/X, also below PID/task/TID. Returns the
 * index of the component that says which link it is, or 0. */
static size_t process_link(const struct proc_names *names)
{
	size_t what = names->n > 2 && is_word(names->at[1], names->len[1], "task") ? 3 : 1;
	const char *process = names->at[0];
	size_t len = names->n ? names->len[0] : 0;

	if (names->n <= what || (!is_word(process, len, "self") && !is_word(process, len, "thread-self") &&
				 strspn(process, "0123456789") < len))
		return 0;
	if (is_word(names->at[what], names->len[what], "fd") || is_word(names->at[what], names->len[what], "map_files"))
		return names->n == what + 2 ? what : 0;
	return names->n == what + 1 && (is_word(names->at[what], names->len[what], "cwd") ||
					is_word(names->at[what], names->len[what], "root") ||
					is_word(names->at[what], names->len[what], "exe"))
		       ? what
		       : 0;
}

/* Replaces /dev/fd and the standard streams, which are links, by /proc/self/fd. */
static bool replace_dev(char path[static CORDON_PATH_MAX])
{
	static const char *const streams[] = { "stdin", "stdout", "stderr" };
	CORDON_UNCLEARED char link[CORDON_PATH_MAX];
	const char *p = path, *name, *after;
	size_t n = component(&p);
	int r = -1;

	if (!is_word(p, n, "dev"))
		return true;
	name = p + n;
	n = component(&name);
	after = name + n;
	if (is_word(name, n, "fd"))
		r = snprintf(link, sizeof(link), "/proc/self/fd%s", after);
	for (int i = 0; i < 3; i++)
		if (is_word(name, n, streams[i]))
			r = snprintf(link, sizeof(link), "/proc/self/fd/%d%s", i, after);
	if (r < 0 || (size_t)r >= sizeof(link))
		return false;
	memcpy(path, link, (size_t)r + 1);
	return true;
}

/* The process that /proc/self means for a thread. */
static pid_t leader_of(pid_t tid)
{
	char path[40], text[512];
	const char *at;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	cordon_closep(&fd);
	if (n <= 0)
		return tid;
	text[n] = '\0';
	at = strstr(text, "\nTgid:");
	return at ? (pid_t)strtol(at + strlen("\nTgid:"), NULL, 10) : tid;
}

/* Reads where a link of a process leads. False for what has no name: a pipe, or a file that was removed or never had a
 * name. */
static bool follow_process_link(int root_fd, pid_t tid, const struct proc_names *names, size_t what,
				char ret[static CORDON_PATH_MAX])
{
	const char *last = names->at[names->n - 1] + names->len[names->n - 1];
	char link[CORDON_PATH_MAX];
	struct stat st;
	int base = AT_FDCWD, r;
	ssize_t got;

	if (strspn(names->at[0], "0123456789") > 0) {
		/* It is a number of the run's own pid namespace, so only the run's own /proc knows it. */
		base = root_fd;
		r = snprintf(link, sizeof(link), "proc/%.*s/%.*s", (int)names->len[0], names->at[0],
			     (int)(last - names->at[what]), names->at[what]);
	} else {
		pid_t pid = is_word(names->at[0], names->len[0], "self") ? leader_of(tid) : tid;

		r = snprintf(link, sizeof(link), "/proc/%d/%.*s", (int)pid, (int)(last - names->at[what]),
			     names->at[what]);
	}
	if (r < 0 || (size_t)r >= sizeof(link) || (base != AT_FDCWD && base < 0))
		return false;
	got = readlinkat(base, link, ret, CORDON_PATH_MAX - 1);
	if (got <= 0 || ret[0] != '/')
		return false;
	ret[got] = '\0';
	return !cordon_path_is_deleted(ret) || fstatat(base, link, &st, 0) < 0 || st.st_nlink > 0;
}

typedef enum replacement { AS_IT_IS, REPLACED, NAMELESS } replacement;

/* Replaces the first link of a process in a path by what it leads to. */
static replacement replace_process_link(int root_fd, pid_t pid, char path[static CORDON_PATH_MAX])
{
	CORDON_UNCLEARED char target[CORDON_PATH_MAX], rest[CORDON_PATH_MAX];
	struct proc_names names = { .n = 0 };
	const char *p = path;
	size_t n, what = 0;

	if (!replace_dev(path))
		return NAMELESS;
	n = component(&p);
	if (!is_word(p, n, "proc"))
		return AS_IT_IS;
	for (p += n; !what && names.n < CORDON_ARRAY_SIZE(names.at) && (n = component(&p)) > 0; p += n) {
		if (!is_word(p, n, "..")) {
			names.at[names.n] = p;
			names.len[names.n++] = n;
			what = process_link(&names);
		} else if (names.n-- == 0) {
			memmove(path, p + n, strlen(p + n) + 1); /* out of /proc again */
			if (!*path)
				memcpy(path, "/", 2);
			return REPLACED;
		}
	}
	if (!what)
		return AS_IT_IS;
	memcpy(rest, p, strlen(p) + 1);
	if (!follow_process_link(root_fd, pid, &names, what, target))
		return NAMELESS;
	return cordon_path_join(target, rest + strspn(rest, "/"), path, CORDON_PATH_MAX) == 0 ? REPLACED : NAMELESS;
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

/* The path of what is open. */
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
	if (cordon_copy(ret_name, NAME_MAX + 1, path + start, len - start) < 0 || !*ret_name ||
	    is_word(ret_name, len - start, ".") || is_word(ret_name, len - start, ".."))
		return false;
	path[start] = '\0';
	return true;
}

typedef enum finding { FOUND, MISSING /* but its directory exists */, AGAIN /* a link was expanded */, LOST } finding;

/* Finds a name through its directory: a name that does not exist, or one at whose end the call does not follow a link.
 * Replaces a link whose target is missing by that target, in `path`. */
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

/* Resolves the longest part of a path that can be opened. When the next name is a link, replaces it by its target.
 * False when that changes nothing. */
static bool expand_once(int root_fd, char path[static CORDON_PATH_MAX])
{
	CORDON_UNCLEARED char stem[CORDON_PATH_MAX], name[CORDON_PATH_MAX], target[CORDON_PATH_MAX], part[NAME_MAX + 1];
	size_t len = strlen(path), n;
	const char *rest;
	ssize_t got = -1;
	int fd = -1;

	memcpy(stem, path, len + 1);
	while (fd < 0 && len > 0) {
		while (len > 0 && stem[len - 1] == '/')
			len--;
		while (len > 0 && stem[len - 1] != '/')
			len--;
		stem[len] = '\0';
		fd = len ? open_inside(root_fd, stem, O_DIRECTORY) : -1;
	}
	if (fd < 0 || !name_of(fd, name)) {
		cordon_closep(&fd);
		return false;
	}
	rest = path + len;
	n = component(&rest);
	if (cordon_copy(part, sizeof(part), rest, n) == 0 && *part)
		got = readlinkat(fd, part, target, sizeof(target) - 1);
	close(fd);
	if (got > 0) {
		target[got] = '\0';
		rest += n;
		if (cordon_path_join(target[0] == '/' ? "" : name, target, name, sizeof(name)) < 0)
			return false;
	}
	memcpy(stem, rest, strlen(rest) + 1);
	return cordon_path_join(name, stem + strspn(stem, "/"), name, sizeof(name)) == 0 && !cordon_streq(name, path) &&
	       cordon_copy(path, CORDON_PATH_MAX, name, strlen(name)) == 0;
}

/* Follows the links of a path up to a link of a process, which only we can follow. False, with the path unchanged, when
 * it leads to none. */
static bool reach_process_link(int root_fd, char path[static CORDON_PATH_MAX])
{
	CORDON_UNCLEARED char way[CORDON_PATH_MAX];

	memcpy(way, path, strlen(path) + 1);
	for (unsigned int links = 0; links < CORDON_LINKS_MAX && expand_once(root_fd, way); links++) {
		if (!may_be_process_link(way))
			continue;
		memcpy(path, way, strlen(way) + 1);
		return true;
	}
	return false;
}

int cordon_where_parent(const struct cordon_places *places, pid_t pid, char path[static CORDON_PATH_MAX],
			char ret_dir[static CORDON_PATH_MAX], char ret_name[static NAME_MAX + 1])
{
	for (unsigned int links = 0; links < CORDON_LINKS_MAX; links++) {
		int fd, r;

		if (may_be_process_link(path)) {
			replacement replaced = replace_process_link(places->root_fd, pid, path);

			if (replaced == REPLACED)
				continue;
			if (replaced == NAMELESS)
				return -ENOENT;
		}
		memcpy(ret_dir, path, strlen(path) + 1);
		if (!split(ret_dir, ret_name))
			return -EINVAL;
		fd = open_inside(places->root_fd, ret_dir, O_DIRECTORY);
		r = -errno;
		if (fd >= 0 && name_of(fd, ret_dir))
			return fd;
		if (fd >= 0) {
			close(fd);
			return -ENOENT;
		}
		/* A link may lead to a link of a process, which only we can follow. */
		if (!reach_process_link(places->root_fd, ret_dir) ||
		    cordon_path_join(ret_dir, ret_name, path, CORDON_PATH_MAX) < 0)
			return r;
	}
	return -ELOOP;
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
		if ((taken == AGAIN && may_be_process_link(path)) ||
		    (taken == LOST && reach_process_link(root_fd, path))) {
			replacement replaced = replace_process_link(root_fd, pid, path);

			if (replaced == NAMELESS)
				return LOST;
			if (replaced == REPLACED)
				taken = AGAIN;
		}
	}
	return taken == AGAIN ? LOST : taken;
}

/* Finds a name in a directory whose true path is known. It leads somewhere else only when it is a link, so one call is
 * enough. */
static finding find_direct(int root_fd, const char *path, bool follow, char ret[static CORDON_PATH_MAX])
{
	char first;
	ssize_t n = root_fd < 0 ? -1 : readlinkat(root_fd, path + strspn(path, "/"), &first, 1);

	if (root_fd < 0 || (n >= 0 && follow) || (n < 0 && errno != EINVAL && errno != ENOENT))
		return LOST;
	memcpy(ret, path, strlen(path) + 1);
	return n >= 0 || errno == EINVAL ? FOUND : MISSING;
}

bool cordon_where_plainly_within(const struct cordon_places *places, const struct cordon_touch *touch,
				 char ret[static CORDON_PATH_MAX])
{
	const struct cordon_plan *plan = places->plan;
	const char *rest = touch->path + strlen(plan->at);
	/* INVARIANT: the watch never waits for the lens, which may be slow or dead: it looks at the directory behind
	 * the lens's view. */
	int base = plan->lens ? places->workspace_fd : places->root_fd;
	const char *way = plan->lens ? rest : touch->path;
	bool there;

	if (!cordon_path_within(touch->path, plan->at) || has_dotdot(touch->path))
		return false;
	if (touch->direct) {
		there = find_direct(base, way, touch->follows, ret) != LOST;
	} else {
		int fd = open_resolving(base, way, touch->follows ? 0 : O_NOFOLLOW, RESOLVE_NO_SYMLINKS);

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

/* Finds a path that the sandbox does not show. It follows the host's links, so that a report names the file that was
 * meant. */
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

bool cordon_where_find(const struct cordon_places *places, pid_t pid, const struct cordon_touch *touch,
		       struct cordon_where *ret)
{
	const struct cordon_plan *plan = places->plan;
	CORDON_UNCLEARED char path[CORDON_PATH_MAX];
	replacement replaced = REPLACED;
	finding found = LOST;

	if (touch->nameless)
		return false;
	memcpy(path, touch->path, strlen(touch->path) + 1);
	for (unsigned int links = 0; replaced == REPLACED && links < CORDON_LINKS_MAX && may_be_process_link(path);
	     links++)
		replaced = replace_process_link(places->root_fd, pid, path);
	if (replaced == NAMELESS)
		return false;
	if (plan->lens && cordon_path_within(path, plan->at)) {
		if (!find_outside(plan, path, touch->follows, ret))
			return false;
		memcpy(ret->inside, ret->host, strlen(ret->host) + 1);
		ret->shown = cordon_path_within(ret->host, plan->root);
		return true;
	}
	if (touch->direct && cordon_streq(path, touch->path))
		found = find_direct(places->root_fd, path, touch->follows, ret->inside);
	if (found == LOST)
		found = find_inside(places->root_fd, pid, path, touch->follows, ret->inside);
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
	/* The host's own /proc has other numbers for the run's processes. */
	if (cordon_path_within(path, "/proc") || !find_outside(plan, path, touch->follows, ret))
		return false;
	memcpy(ret->inside, has_dotdot(path) ? ret->host : path, strlen(has_dotdot(path) ? ret->host : path) + 1);
	return true;
}
