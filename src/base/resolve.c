/* SPDX-License-Identifier: Apache-2.0 */
/* Finds where a path leads, component by component, as the kernel would walk it. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/path.h"
#include "base/resolve.h"
#include "base/sys.h"

#define WALK_FLAGS (O_PATH | O_NOFOLLOW | O_CLOEXEC)

/*
 * The walk: `done` is the canonical prefix, `fd` its descriptor while it exists, `missing` how many trailing
 * components of `done` do not exist, `rest` what is still to be walked.
 */
struct walk {
	int fd;
	size_t missing;
	unsigned int links;
	size_t done_len;
	char done[CORDON_PATH_MAX];
	char rest[2 * CORDON_PATH_MAX];
	const struct cordon_root *root;
	cordon_link_fn met; /* or NULL */
	void *data;
	int met_result; /* what `met` returned when it stopped the walk */
};

static int step_to(struct walk *w, int fd)
{
	if (fd < 0)
		return fd;
	if (w->fd >= 0)
		close(w->fd);
	w->fd = fd;
	return 0;
}

static int push(struct walk *w, const char *name, size_t n)
{
	size_t slash = w->done_len > 1 ? 1 : 0;

	if (w->done_len + slash + n >= sizeof(w->done))
		return -ENAMETOOLONG;
	if (slash)
		w->done[w->done_len++] = '/';
	memcpy(w->done + w->done_len, name, n);
	w->done_len += n;
	w->done[w->done_len] = '\0';
	return 0;
}

static void pop(struct walk *w)
{
	while (w->done_len > 1 && w->done[w->done_len - 1] != '/')
		w->done_len--;
	if (w->done_len > 1)
		w->done_len--;
	w->done[w->done_len] = '\0';
}

static int walk_up(struct walk *w)
{
	pop(w);
	if (w->missing) {
		w->missing--;
		return 0;
	}
	return step_to(w, openat(w->fd, "..", WALK_FLAGS | O_DIRECTORY));
}

/* Puts the text of a link before the rest of the path. */
static int expand(struct walk *w, const char *target, size_t n, const char *after)
{
	char joined[sizeof(w->rest)];
	int len = snprintf(joined, sizeof(joined), "%.*s/%s", (int)n, target, after);

	if (n == 0 || len < 0 || (size_t)len >= sizeof(joined))
		return n == 0 ? -ENOENT : -ENAMETOOLONG;
	if (++w->links > CORDON_LINKS_MAX)
		return -ELOOP;
	memcpy(w->rest, joined, (size_t)len + 1);
	if (target[0] == '/') {
		w->done_len = 1;
		w->done[0] = '/';
		w->done[1] = '\0';
		return step_to(w, open("/", WALK_FLAGS | O_DIRECTORY));
	}
	return 0;
}

/* Reports to the caller that `name` in the current directory is a link. */
static int report_link(struct walk *w, const char *name, const char *rest)
{
	char link[CORDON_PATH_MAX];
	const char *inside = w->done + strlen(w->root->path);

	if (!w->met || !cordon_path_within(w->done, w->root->path))
		return 0;
	while (*inside == '/')
		inside++;
	if (cordon_path_join(inside, name, link, sizeof(link)) < 0)
		return -ENAMETOOLONG;
	while (*rest == '/')
		rest++;
	w->met_result = w->met(w->data, link, rest);
	return w->met_result ? -ECANCELED : 0;
}

/* Walks one ordinary name; `after` is the rest of the path behind it (inside w->rest). */
static int walk_name(struct walk *w, const char *name, size_t n, const char *after, bool *ret_expanded)
{
	char component[NAME_MAX + 1];
	char target[CORDON_PATH_MAX];
	ssize_t len;
	int fd, r;

	*ret_expanded = false;
	if (cordon_copy(component, sizeof(component), name, n) < 0)
		return -ENAMETOOLONG;
	if (!w->missing) {
		len = readlinkat(w->fd, component, target, sizeof(target));
		if (len >= 0) {
			*ret_expanded = true;
			if ((size_t)len >= sizeof(target))
				return -ENAMETOOLONG;
			r = report_link(w, component, after);
			return r < 0 ? r : expand(w, target, (size_t)len, after);
		}
		fd = openat(w->fd, component, WALK_FLAGS);
		if (fd >= 0) {
			r = push(w, name, n);
			if (r < 0) {
				close(fd);
				return r;
			}
			return step_to(w, fd);
		}
		/* It does not exist, is not a directory, or we may not look into it: the rest of the path is only
		 * names. */
		if (errno != ENOENT && errno != ENOTDIR && errno != EACCES)
			return -errno;
	}
	r = push(w, name, n);
	if (r == 0)
		w->missing++;
	return r;
}

static int walk_all(struct walk *w)
{
	char *p = w->rest;

	while (*p) {
		bool expanded = false;
		size_t n;
		int r = 0;

		while (*p == '/')
			p++;
		n = strcspn(p, "/");
		if (n == 0)
			break;
		if (n == 2 && p[0] == '.' && p[1] == '.')
			r = walk_up(w);
		else if (!(n == 1 && p[0] == '.'))
			r = walk_name(w, p, n, p + n, &expanded);
		if (r < 0)
			return r;
		p = expanded ? w->rest : p + n;
	}
	return 0;
}

static void fill_resolved(const struct cordon_root *root, const struct walk *w, struct cordon_resolved *ret)
{
	const char *inside = w->done + strlen(root->path);

	ret->exists = w->missing == 0;
	if (!cordon_path_within(w->done, root->path)) {
		ret->place = CORDON_PLACE_OUTSIDE;
		memcpy(ret->path, w->done, w->done_len + 1);
		return;
	}
	while (*inside == '/')
		inside++;
	ret->place = CORDON_PLACE_INSIDE;
	memmove(ret->path, inside, strlen(inside) + 1);
}

int cordon_resolve_links(const struct cordon_root *root, const char *path, cordon_link_fn met, void *data,
			 struct cordon_resolved *ret_resolved)
{
	CORDON_UNCLEARED struct walk w; /* the two paths in it are large, and set when they are used */
	bool absolute = path[0] == '/';
	int r;

	w.fd = -1;
	w.missing = w.done_len = 0;
	w.links = 0;
	w.done[0] = w.rest[0] = '\0';
	w.root = root;
	w.met = met;
	w.data = data;
	w.met_result = 0;
	ret_resolved->place = CORDON_PLACE_UNRESOLVABLE;
	ret_resolved->exists = false;
	ret_resolved->path[0] = '\0';
	if (!*path || cordon_copy(w.rest, sizeof(w.rest) / 2, path, strlen(path)) < 0)
		return 0;
	w.fd = absolute ? open("/", WALK_FLAGS | O_DIRECTORY) : fcntl(root->fd, F_DUPFD_CLOEXEC, 0);
	if (w.fd < 0)
		return 0;
	w.done_len = absolute ? 1 : strlen(root->path);
	memcpy(w.done, absolute ? "/" : root->path, w.done_len + 1);
	r = walk_all(&w);
	close(w.fd);
	if (r == 0)
		fill_resolved(root, &w, ret_resolved);
	else
		memcpy(ret_resolved->path, w.done, w.done_len + 1);
	return w.met_result;
}

void cordon_resolve(const struct cordon_root *root, const char *path, struct cordon_resolved *ret_resolved)
{
	cordon_resolve_links(root, path, NULL, NULL, ret_resolved);
}

/* Whether an absolute path is canonical except for slashes and dots, with one system call; true for nearly all
 * paths. */
static bool already_canonical(const char *absolute, char ret[static CORDON_PATH_MAX])
{
	struct open_how how = { .flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
				.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS };
	autofd int fd = -1;

	if (cordon_path_clean(absolute, ret, CORDON_PATH_MAX) < 0)
		return false;
	fd = cordon_sys_openat2(AT_FDCWD, ret, &how, sizeof(how));
	return fd >= 0;
}

/* Makes the path canonical by walking it. */
static int make_canonical(const char *absolute, char ret[static CORDON_PATH_MAX])
{
	struct cordon_root slash = { .fd = -1, .path = "/" };
	struct cordon_resolved resolved;

	cordon_resolve(&slash, absolute, &resolved);
	if (resolved.place != CORDON_PLACE_INSIDE || !resolved.exists)
		return -ENOENT;
	return cordon_path_join("/", resolved.path, ret, CORDON_PATH_MAX);
}

int cordon_root_open(const char *path, struct cordon_root *ret_root, struct cordon_error *err)
{
	CORDON_UNCLEARED char absolute[2 * CORDON_PATH_MAX];
	autofd int fd = -1;
	struct stat here, there;
	int r;

	if (!*path)
		return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "the root directory is an empty path");
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return cordon_fail_errno(err, -errno, "cannot open directory %s", path);
	if (path[0] == '/') {
		if (cordon_copy(absolute, sizeof(absolute), path, strlen(path)) < 0)
			return cordon_fail_errno(err, -ENAMETOOLONG, "directory %s", path);
	} else {
		if (!getcwd(absolute, CORDON_PATH_MAX))
			return cordon_fail_errno(err, -errno, "cannot tell the current directory");
		if (cordon_path_join(absolute, path, absolute + strlen(absolute) + 1, CORDON_PATH_MAX - 1) < 0)
			return cordon_fail_errno(err, -ENAMETOOLONG, "directory %s", path);
		memmove(absolute, absolute + strlen(absolute) + 1, strlen(absolute + strlen(absolute) + 1) + 1);
	}
	r = already_canonical(absolute, ret_root->path) ? 0 : make_canonical(absolute, ret_root->path);
	if (r < 0)
		return cordon_fail_errno(err, r, "cannot resolve directory %s", path);
	/* The path must lead to the directory that was opened; otherwise it was replaced in between. */
	if (fstat(fd, &here) < 0 || lstat(ret_root->path, &there) < 0 || here.st_ino != there.st_ino ||
	    here.st_dev != there.st_dev)
		return cordon_fail(err, -ESTALE, CORDON_KIND_IO, "directory %s changed while it was opened", path);
	ret_root->fd = cordon_steal_fd(&fd);
	return 0;
}

void cordon_root_done(struct cordon_root *root)
{
	cordon_closep(&root->fd);
}

static int walk_beneath(int dir_fd, const char *path, int flags)
{
	int fd = fcntl(dir_fd, F_DUPFD_CLOEXEC, 0);

	while (fd >= 0) {
		size_t n = strcspn(path, "/");
		char name[NAME_MAX + 1];
		bool last = path[n] == '\0';
		struct stat st;
		int next;

		if (cordon_copy(name, sizeof(name), path, n) < 0) {
			close(fd);
			return -ENAMETOOLONG;
		}
		if (cordon_streq(name, "..")) {
			close(fd);
			return -EXDEV;
		}
		next = openat(fd, *name ? name : ".",
			      last ? flags | O_NOFOLLOW | O_CLOEXEC : O_PATH | O_NOFOLLOW | O_CLOEXEC);
		close(fd);
		if (next < 0)
			return -errno;
		/* O_PATH with O_NOFOLLOW opens a link itself instead of failing. */
		if (fstat(next, &st) < 0 || S_ISLNK(st.st_mode)) {
			close(next);
			return -ELOOP;
		}
		if (last)
			return next;
		fd = next;
		path += n + 1;
	}
	return -errno;
}

int cordon_open_beneath(int dir_fd, const char *path, int flags)
{
	struct open_how how = {
		.flags = (uint64_t)(unsigned int)(flags | O_CLOEXEC),
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};
	int fd = cordon_sys_openat2(dir_fd, *path ? path : ".", &how, sizeof(how));

	if (fd >= 0)
		return fd;
	if (errno != ENOSYS && errno != EPERM && errno != EAGAIN)
		return -errno;
	return walk_beneath(dir_fd, path, flags);
}

int cordon_resolve_open(const char *given, char ret_path[static CORDON_PATH_MAX])
{
	const struct cordon_root slash = { .fd = -1, .path = "/" };
	CORDON_UNCLEARED struct cordon_resolved found;
	autofd int root = -1;

	if (given[0] != '/')
		return -EINVAL;
	cordon_resolve(&slash, given, &found);
	if (found.place != CORDON_PLACE_INSIDE)
		return -ELOOP;
	if (!found.exists)
		return -ENOENT;
	if (cordon_path_join("/", found.path, ret_path, CORDON_PATH_MAX) < 0)
		return -ENAMETOOLONG;
	root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return root < 0 ? -errno : cordon_open_beneath(root, ret_path + 1, O_PATH | O_NOFOLLOW | O_CLOEXEC);
}
