/* SPDX-License-Identifier: Apache-2.0 */
/* The hand finds out where a path that the agent named leads, for the reports. */
#include <fcntl.h>
#include <sys/stat.h>

#include "base/path.h"
#include "base/resolve.h"
#include "base/sys.h"
#include "sandbox/inside/where.h"

#define RESOLVE_TRIES 64

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
	char digits[CORDON_DIGITS_SIZE];
	int r = -1;

	if (!is_word(p, n, "dev"))
		return true;
	name = p + n;
	n = component(&name);
	after = name + n;
	if (is_word(name, n, "fd"))
		r = cordon_concat(link, sizeof(link), "/proc/self/fd", after, (char *)NULL);
	for (int i = 0; i < 3; i++)
		if (is_word(name, n, streams[i]))
			r = cordon_concat(link, sizeof(link), "/proc/self/fd/", cordon_digits((unsigned int)i, digits),
					  after, (char *)NULL);
	if (r < 0)
		return false;
	memcpy(path, link, strlen(link) + 1);
	return true;
}

/* The process that /proc/self means for a thread. */
static pid_t leader_of(pid_t tid)
{
	char path[CORDON_PROC_PATH_SIZE], text[512];
	int fd = open(cordon_proc_path(tid, "status", path), O_RDONLY | O_CLOEXEC);
	const char *at;
	ssize_t n;

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
	char link[CORDON_PATH_MAX], process[CORDON_DIGITS_SIZE], text[NAME_MAX + 1], digits[CORDON_DIGITS_SIZE];
	const char *number = process;
	struct stat st;
	int base = AT_FDCWD;
	ssize_t got;

	if (cordon_copy(text, sizeof(text), names->at[what], (size_t)(last - names->at[what])) < 0)
		return false;
	if (strspn(names->at[0], "0123456789") > 0) {
		/* It is a number of the run's own pid namespace, so only the run's own /proc knows it. */
		base = root_fd;
		if (cordon_copy(process, sizeof(process), names->at[0], names->len[0]) < 0)
			return false;
	} else {
		number = cordon_digits((uint32_t)(is_word(names->at[0], names->len[0], "self") ? leader_of(tid) : tid),
				       digits);
	}
	if (base == -1 || cordon_concat(link, sizeof(link), base == AT_FDCWD ? "/" : "", "proc/", number, "/", text,
					(char *)NULL) < 0)
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

/* The kernel answers EAGAIN for a path with ".." while anybody on the machine renames or mounts something. */
static int open_resolving(int root_fd, const char *path, int flags, uint64_t resolve)
{
	struct open_how how = { .flags = (uint64_t)(unsigned int)(O_PATH | O_CLOEXEC | flags),
				.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | resolve };
	int fd = -1;

	errno = root_fd < 0 ? EBADF : EAGAIN;
	for (int tries = 0; fd < 0 && errno == EAGAIN && tries < RESOLVE_TRIES; tries++)
		fd = cordon_sys_openat2(root_fd, path, &how, sizeof(how));
	return fd;
}

static int open_inside(int root_fd, const char *path, int flags)
{
	return open_resolving(root_fd, path, flags, 0);
}

/* When a path went through /proc/self, that was we, and not the process that named it. */
static bool name_self(char path[static CORDON_PATH_MAX])
{
	CORDON_UNCLEARED char rest[CORDON_PATH_MAX];
	char own[CORDON_PROC_PATH_SIZE];
	size_t n = strlen(cordon_proc_path(getpid(), "", own)) - 1; /* without the slash */

	if (strncmp(path, own, n) != 0 || (path[n] && path[n] != '/'))
		return true;
	memcpy(rest, path + n, strlen(path + n) + 1);
	return cordon_concat(path, CORDON_PATH_MAX, "/proc/self", rest, (char *)NULL) == 0;
}

/* The path of what is open. */
static bool name_of(int fd, char ret[static CORDON_PATH_MAX])
{
	char link[CORDON_FD_PATH_SIZE];
	ssize_t n = readlink(cordon_fd_path(fd, link), ret, CORDON_PATH_MAX - 1);

	if (n <= 0 || ret[0] != '/')
		return false;
	ret[n] = '\0';
	return name_self(ret);
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
	/* What a mask hides may be there: only the host's tree says it. */
	if (name_of(fd, dir) && cordon_path_join(dir, name, ret, CORDON_PATH_MAX) == 0)
		taken = faccessat(fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0 ? FOUND : errno == EACCES ? LOST : MISSING;
	n = taken == FOUND && follow ? readlinkat(fd, name, target, sizeof(target) - 1) : -1;
	close(fd);
	if (n <= 0)
		return taken;
	target[n] = '\0';
	return cordon_path_join(target[0] == '/' ? "" : dir, target, path, CORDON_PATH_MAX) == 0 ? AGAIN : LOST;
}

/* Opens the longest part of a path that can be opened and is followed by a name: its true path, and its length. */
static int open_stem(int root_fd, const char *path, char ret[static CORDON_PATH_MAX], size_t *ret_len)
{
	size_t len = strlen(path);
	int fd = -1;

	memcpy(ret, path, len + 1);
	while (fd < 0 && len > 0) {
		while (len > 0 && ret[len - 1] == '/')
			len--;
		while (len > 0 && ret[len - 1] != '/')
			len--;
		ret[len] = '\0';
		fd = len ? open_inside(root_fd, ret, O_DIRECTORY) : -1;
	}
	*ret_len = len;
	if (fd >= 0 && !name_of(fd, ret))
		cordon_closep(&fd);
	return fd;
}

/* Resolves the longest part of a path that can be opened. When the next name is a link, replaces it by its target.
 * False when that changes nothing. */
static bool expand_once(int root_fd, char path[static CORDON_PATH_MAX])
{
	CORDON_UNCLEARED char stem[CORDON_PATH_MAX], name[CORDON_PATH_MAX], target[CORDON_PATH_MAX], part[NAME_MAX + 1];
	size_t len, n;
	const char *rest;
	ssize_t got = -1;
	int fd = open_stem(root_fd, path, name, &len);

	if (fd < 0)
		return false;
	rest = path + len;
	n = component(&rest);
	/* The links of processes are not ours to read. */
	if (cordon_copy(part, sizeof(part), rest, n) == 0 && *part && !cordon_path_within(name, "/proc"))
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
	bool there;

	if (!cordon_path_within(touch->path, plan->at) || has_dotdot(touch->path))
		return false;
	/* The lens judges and reports by what it is asked for: we ask it for nothing. */
	if (plan->lens) {
		there = true;
	} else if (touch->direct) {
		there = find_direct(places->root_fd, touch->path, touch->follows, ret) != LOST;
	} else {
		int fd = open_resolving(places->root_fd, touch->path, touch->follows ? 0 : O_NOFOLLOW,
					RESOLVE_NO_SYMLINKS);

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

/* Finds the path of what the sandbox does not show: resolves the part that it shows, and adds the rest as it was written.
 * Nobody looks at the host's tree for it. */
static bool find_hidden(int root_fd, const char *path, char ret[static CORDON_PATH_MAX])
{
	CORDON_UNCLEARED char way[CORDON_PATH_MAX], stem[CORDON_PATH_MAX], rest[CORDON_PATH_MAX];
	const char *p;
	size_t len, n;
	bool loops;
	char first;
	int fd;

	memcpy(way, path, strlen(path) + 1);
	for (unsigned int links = 0; expand_once(root_fd, way); links++)
		if (may_be_process_link(way) || links == CORDON_LINKS_MAX)
			return false;
	fd = open_stem(root_fd, way, stem, &len);
	if (fd < 0)
		return false;
	p = way + len;
	n = component(&p);
	/* A link that leads to itself leads nowhere. */
	loops = cordon_copy(rest, sizeof(rest), p, n) == 0 && *rest && readlinkat(fd, rest, &first, 1) >= 0;
	close(fd);
	/* Behind a name that is not there, ".." leads nowhere. */
	return !loops && cordon_path_clean(way + len, rest, sizeof(rest)) == 0 &&
	       cordon_path_join(stem, rest, ret, CORDON_PATH_MAX) == 0;
}

static mode_t type_of(int root_fd, const char *path, bool follow)
{
	struct stat st;

	return fstatat(root_fd, *path ? path + strspn(path, "/") : ".", &st,
		       (follow ? 0 : AT_SYMLINK_NOFOLLOW) | AT_EMPTY_PATH) == 0
		       ? st.st_mode & S_IFMT
		       : 0;
}

bool cordon_where_find(const struct cordon_places *places, pid_t pid, const struct cordon_touch *touch,
		       struct cordon_where *ret)
{
	CORDON_UNCLEARED char path[CORDON_PATH_MAX];
	replacement replaced = REPLACED;
	finding found = LOST;

	ret->type = 0;
	ret->unseen = false;
	if (touch->nameless)
		return false;
	memcpy(path, touch->path, strlen(touch->path) + 1);
	for (unsigned int links = 0; replaced == REPLACED && links < CORDON_LINKS_MAX && may_be_process_link(path);
	     links++)
		replaced = replace_process_link(places->root_fd, pid, path);
	if (replaced == NAMELESS)
		return false;
	/* The lens judges and reports by what it is asked for: we ask it for nothing, but take the path as it is written. */
	if (places->plan->lens && cordon_path_within(path, places->plan->at) && !has_dotdot(path)) {
		ret->shown = true;
		ret->exists = false;
		ret->unseen = true;
		return cordon_path_clean(path, ret->inside, CORDON_PATH_MAX) == 0;
	}
	if (touch->direct && cordon_streq(path, touch->path))
		found = find_direct(places->root_fd, path, touch->follows, ret->inside);
	if (found == LOST)
		found = find_inside(places->root_fd, pid, path, touch->follows, ret->inside);
	if (found == FOUND || found == MISSING) {
		ret->shown = true;
		ret->exists = found == FOUND;
		if (ret->exists)
			ret->type = type_of(places->root_fd, ret->inside, false);
		return true;
	}
	ret->shown = ret->exists = false;
	/* The host's own /proc has other numbers for the run's processes. */
	return !cordon_path_within(path, "/proc") && find_hidden(places->root_fd, path, ret->inside);
}
