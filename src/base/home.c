/* SPDX-License-Identifier: Apache-2.0 */
/* Finds, makes and checks the state directory, once per process. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/home.h"
#include "base/path.h"

#define DIR_FLAGS (O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

static const char *get_nonempty(const char *name)
{
	const char *value = getenv(name);

	return value && *value ? value : NULL;
}

/* Computes the clean, absolute path of the state directory. */
static int find_path(char ret[static CORDON_PATH_MAX], struct cordon_error *err)
{
	const char *name = "CORDON_HOME", *below = "";
	const char *base = get_nonempty(name);
	char joined[CORDON_PATH_MAX];
	int r;

	if (!base) {
		name = "XDG_DATA_HOME";
		below = "cordon";
		base = get_nonempty(name);
		/* The XDG specification requires that a relative value is ignored. */
		if (base && *base != '/')
			base = NULL;
	}
	if (!base) {
		name = "HOME";
		below = ".local/share/cordon";
		base = get_nonempty(name);
	}
	if (!base) {
		r = cordon_fail(err, -ENOENT, CORDON_KIND_CONFIG, "cannot find the state directory: HOME is not set");
		cordon_error_hint(err, "set CORDON_HOME to an absolute path");
		return r;
	}
	if (*base != '/') {
		r = cordon_fail(err, -EINVAL, CORDON_KIND_CONFIG, "%s is not an absolute path: %s", name, base);
		cordon_error_hint(err, "set CORDON_HOME to an absolute path");
		return r;
	}
	r = cordon_path_join(base, below, joined, sizeof(joined));
	if (r == 0)
		r = cordon_path_clean(joined, ret, CORDON_PATH_MAX);
	if (r == 0 && cordon_streq(ret, "/"))
		r = -EINVAL;
	if (r < 0)
		return cordon_fail(err, r, CORDON_KIND_CONFIG, "%s cannot be the state directory: %s: %s", name, base,
				   r == -EXDEV	  ? "it contains '..'"
				   : r == -EINVAL ? "it is the root of the file system"
						  : "it is too long");
	return 0;
}

/* INVARIANT: nobody but the caller can have put files into a directory that passes this check. */
static int check_owner(int fd, const char *path, struct cordon_error *err)
{
	struct stat st;
	int r;

	if (fstat(fd, &st) < 0)
		return cordon_fail_errno(err, -errno, "cannot look at %s", path);
	if (st.st_uid != geteuid()) {
		r = cordon_fail(err, -EPERM, CORDON_KIND_CONFIG, "%s belongs to user %u, not to you (user %u)", path,
				(unsigned int)st.st_uid, (unsigned int)geteuid());
		cordon_error_hint(err, "set CORDON_HOME to a directory of your own");
		return r;
	}
	if (st.st_mode & 022) {
		r = cordon_fail(err, -EPERM, CORDON_KIND_CONFIG, "%s can be written by others (mode %04o)", path,
				(unsigned int)st.st_mode & 07777);
		cordon_error_hint(err, "chmod go-w it, or set CORDON_HOME to another directory");
		return r;
	}
	return 0;
}

static int fail_open(struct cordon_error *err, int code, const char *path)
{
	int r;

	if (code != -ELOOP && code != -ENOTDIR)
		return cordon_fail_errno(err, code, "cannot open %s", path);
	/* With O_DIRECTORY the kernel returns ENOTDIR also for a link in the last component. */
	r = cordon_fail(err, code, CORDON_KIND_CONFIG, "%s is a symbolic link or no directory", path);
	cordon_error_hint(err, "set CORDON_HOME to the real directory");
	return r;
}

/* Opens one directory in `parent` and makes it when it is missing. `path` is its name for errors. */
static int open_or_make(int parent, const char *name, int flags, const char *path, int *ret_fd, struct cordon_error *err)
{
	int fd = openat(parent, name, flags | DIR_FLAGS);

	if (fd < 0 && errno == ENOENT) {
		/* Another process may make it first: then we open that one, and the caller checks it. */
		if (mkdirat(parent, name, 0700) < 0 && errno != EEXIST)
			return cordon_fail_errno(err, -errno, "cannot make %s", path);
		fd = openat(parent, name, flags | DIR_FLAGS);
	}
	if (fd < 0)
		return fail_open(err, -errno, path);
	*ret_fd = fd;
	return 0;
}

/* Walks down a clean absolute path and makes what is missing. Follows links above the last component: the user put
 * them there. */
static int make_path(const char *path, int *ret_fd, struct cordon_error *err)
{
	autofd int fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	char name[NAME_MAX + 1];
	int r;

	if (fd < 0)
		return cordon_fail_errno(err, -errno, "cannot open /");
	for (const char *p = path + 1;;) {
		size_t n = strcspn(p, "/");
		bool last = p[n] == '\0';
		int next = -1;

		if (cordon_copy(name, sizeof(name), p, n) < 0)
			return cordon_fail_errno(err, -ENAMETOOLONG, "cannot make %s", path);
		if (!last)
			next = openat(fd, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (last || (next < 0 && errno == ENOENT)) {
			r = open_or_make(fd, name, O_PATH, path, &next, err);
			if (r < 0)
				return r;
		}
		if (next < 0)
			return cordon_fail_errno(err, -errno, "cannot make %s", path);
		close(fd);
		fd = next;
		if (last)
			break;
		p += n + 1;
	}
	*ret_fd = cordon_steal_fd(&fd);
	return 0;
}

int cordon_home_open(struct cordon_home *ret_home, struct cordon_error *err)
{
	char path[CORDON_PATH_MAX], asked[CORDON_PATH_MAX], canonical[CORDON_PATH_MAX], link[32];
	autofd int fd = -1;
	autofd int state_fd = -1;
	ssize_t n;
	int r = find_path(path, err);

	if (r < 0)
		return r;
	fd = open(path, O_PATH | DIR_FLAGS);
	if (fd < 0 && errno != ENOENT)
		return fail_open(err, -errno, path);
	if (fd < 0) {
		r = make_path(path, &fd, err);
		if (r < 0)
			return r;
	}
	r = check_owner(fd, path, err);
	if (r < 0)
		return r;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, canonical, sizeof(canonical));
	if (n < 0 || (size_t)n >= sizeof(canonical))
		return cordon_fail_errno(err, n < 0 ? -errno : -ENAMETOOLONG, "cannot find the real name of %s", path);
	canonical[n] = '\0';
	memcpy(asked, path, sizeof(asked));
	if (cordon_path_join(canonical, "state", path, sizeof(path)) < 0)
		return cordon_fail_errno(err, -ENAMETOOLONG, "cannot open %s", canonical);
	r = open_or_make(fd, "state", O_RDONLY, path, &state_fd, err);
	if (r == 0)
		r = check_owner(state_fd, path, err);
	if (r < 0)
		return r;
	ret_home->fd = cordon_steal_fd(&fd);
	ret_home->state_fd = cordon_steal_fd(&state_fd);
	memcpy(ret_home->path, canonical, (size_t)n + 1);
	memcpy(ret_home->asked, asked, sizeof(asked));
	return 0;
}

void cordon_home_done(struct cordon_home *home)
{
	cordon_closep(&home->fd);
	cordon_closep(&home->state_fd);
}

int cordon_home_subdir(const struct cordon_home *home, const char *path, int *ret_fd, struct cordon_error *err)
{
	char name[NAME_MAX + 1], clean[CORDON_PATH_MAX];
	autofd int fd = -1;
	int parent = home->state_fd;
	int r = cordon_path_clean(path, clean, sizeof(clean));

	if (r < 0 || !*clean || *clean == '/')
		return cordon_fail(err, r < 0 ? r : -EINVAL, CORDON_KIND_INTERNAL, "no directory below state/: %s",
				   path);
	for (const char *p = clean; *p;) {
		size_t n = strcspn(p, "/");
		int next = -1;

		if (cordon_copy(name, sizeof(name), p, n) < 0)
			return cordon_fail_errno(err, -ENAMETOOLONG, "cannot open state/%s", path);
		r = open_or_make(parent, name, O_RDONLY, path, &next, err);
		if (r < 0)
			return cordon_error_prefix(err, r, "%s/state", home->path);
		cordon_closep(&fd);
		fd = parent = next;
		p += n + (p[n] == '/');
	}
	r = check_owner(fd, path, err);
	if (r < 0)
		return cordon_error_prefix(err, r, "%s/state", home->path);
	*ret_fd = cordon_steal_fd(&fd);
	return 0;
}
