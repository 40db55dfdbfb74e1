/* SPDX-License-Identifier: Apache-2.0 */
/* The watch finds the calls that make an entry in a held directory, and has the hand make it. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/path.h"
#include "base/sys.h"
#include "sandbox/watch/held.h"

#define PIDFD_OF_THREAD O_EXCL /* PIDFD_THREAD */

#ifndef SYS_pidfd_getfd
#define SYS_pidfd_getfd 438
#endif

/* The flags that open(2) does not ignore. The kernel adds LARGE_FILE for a 64-bit process; libc has no name for it
 * there. */
#define OPEN_FLAGS                                                                                                     \
	(O_ACCMODE | O_CREAT | O_EXCL | O_NOCTTY | O_TRUNC | O_APPEND | O_NONBLOCK | O_SYNC | O_ASYNC | O_DIRECT |     \
	 O_DIRECTORY | O_NOFOLLOW | O_NOATIME | O_CLOEXEC | O_PATH | O_TMPFILE)
#define LARGE_FILE 0100000U
/* The resolve flags of openat2(2) that we serve. RESOLVE_CACHED is not among them: with it the kernel makes nothing. */
#define KNOWN_RESOLVE                                                                                                  \
	((uint64_t)(RESOLVE_NO_XDEV | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH | RESOLVE_IN_ROOT))

void cordon_held_init(struct cordon_held_watch *held, const struct cordon_watched *watched,
		      const struct cordon_places *places, int listener, const atomic_bool *stop)
{
	*held = (struct cordon_held_watch){
		.watched = watched, .places = places, .listener = listener, .stop = stop, .files = CORDON_CALLER_FILES_NONE
	};
	held->filters = cordon_caller_own_filters() + watched->filters;
}

void cordon_held_done(struct cordon_held_watch *held)
{
	cordon_caller_files_done(&held->files);
}

static bool is_same(int root_fd, const char *path, dev_t dev, ino_t ino)
{
	struct stat st;

	return fstatat(root_fd, path + 1, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_dev == dev && st.st_ino == ino;
}

static size_t longer(const char *dir, const char *path, size_t best)
{
	size_t n = strlen(path);

	return n > best && cordon_path_within(dir, path) ? n : best;
}

typedef enum dir_class {
	ELSEWHERE, /* no held directory contains it */
	FREE,	   /* the agent itself makes entries in it */
	HELD,	   /* only the hand makes entries in it */
} dir_class;

static bool is_open_dir(const struct cordon_held_watch *held, const struct cordon_open_dir *dir)
{
	const struct cordon_open_ids *ids = held->watched->open_ids;
	size_t i = (size_t)(dir - held->watched->plan->open_dirs);

	if (!held->watched->plan->view)
		return is_same(held->places->root_fd, dir->path, dir->dev, dir->ino);
	return ids->dirs && is_same(held->places->root_fd, dir->path, ids->dirs[i].dev, ids->dirs[i].ino);
}

/* Whether the plan mounts something that may only be read below a directory. */
static bool has_read_only_below(const struct cordon_plan *plan, const char *dir)
{
	for (size_t i = 0; i < plan->n_steps; i++) {
		const struct cordon_step *step = &plan->steps[i];

		if (step->kind == CORDON_STEP_BIND && step->right != CORDON_RIGHT_WRITE &&
		    cordon_path_within(step->path, dir) && !cordon_streq(step->path, dir))
			return true;
	}
	return false;
}

/* Says who may make entries in a directory, by its true path inside. Directories can be renamed, so the identity of an
 * open directory is compared again. When another directory has its name by now, the hand makes the entries. */
static dir_class classify_dir(const struct cordon_held_watch *held, const char *dir,
			      const struct cordon_open_dir **ret_open_dir)
{
	const struct cordon_plan *plan = held->watched->plan;
	const struct cordon_open_dir *open_dir = NULL;
	size_t best = 0, own = 0;

	*ret_open_dir = NULL;

	for (size_t i = 0; i < plan->n_held; i++)
		best = longer(dir, plan->held[i].path, best);
	if (!best)
		return ELSEWHERE;
	for (size_t i = 0; i < plan->n_steps; i++)
		if (plan->steps[i].right == CORDON_RIGHT_WRITE && !(plan->steps[i].flags & CORDON_STEP_HELD))
			own = longer(dir, plan->steps[i].path, own);
	if (own > best)
		return has_read_only_below(plan, dir) ? ELSEWHERE : FREE;
	for (size_t i = 0; i < plan->n_open_dirs && !open_dir; i++)
		if (cordon_path_within(dir, plan->open_dirs[i].path))
			open_dir = &plan->open_dirs[i];
	if (!open_dir || !is_open_dir(held, open_dir))
		return HELD;
	*ret_open_dir = open_dir;
	return FREE;
}

static bool dir_of(const char *path, char ret[static CORDON_PATH_MAX])
{
	const char *slash = strrchr(path, '/');

	return slash && cordon_copy(ret, CORDON_PATH_MAX, path, slash == path ? 1 : (size_t)(slash - path)) == 0;
}

bool cordon_held_is_free(const struct cordon_held_watch *held, const struct cordon_touch *touch)
{
	CORDON_UNCLEARED char dir[CORDON_PATH_MAX];
	const struct cordon_open_dir *open_dir;
	bool is_free;

	if (!touch->known || touch->nameless || !dir_of(touch->path, dir))
		return false;
	/* When the kernel gave the true path of the directory, its text alone shows where the directory is. */
	if (held->free_ino && cordon_streq(dir, held->free_dir))
		is_free = is_same(held->places->root_fd, dir, held->free_dev, held->free_ino);
	else
		is_free = touch->direct && classify_dir(held, dir, &open_dir) == FREE;
	if (!is_free)
		return false;
	/* When the call follows links, the name must not be one: it could lead somewhere else. */
	if (touch->follows) {
		struct stat st;

		return fstatat(held->places->root_fd, touch->path + 1, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		       !S_ISLNK(st.st_mode);
	}
	return true;
}

void cordon_held_forget(struct cordon_held_watch *held)
{
	held->free_ino = 0;
}

static void remember_free_dir(struct cordon_held_watch *held, const struct cordon_touch *touch,
			      const struct cordon_spot *spot)
{
	struct stat st;

	/* A ".." behind a link would lead somewhere else than the text says. */
	if (!spot->open_dir || strstr(touch->path + touch->own, "..") || !dir_of(touch->path, held->free_dir) ||
	    fstat(spot->dir_fd, &st) < 0)
		return;
	held->free_dev = st.st_dev;
	held->free_ino = st.st_ino;
}

static void examine(const struct cordon_held_watch *held, struct cordon_spot *spot)
{
	struct stat st;

	spot->exists = fstatat(spot->dir_fd, spot->name, &st, AT_SYMLINK_NOFOLLOW) == 0;
	spot->type = spot->exists ? st.st_mode & S_IFMT : 0;
	spot->guard = cordon_plan_guard_at(held->watched->plan, spot->path);
}

/* Fills a spot whose directory has the true path `dir`. What has the name is examined only in a held directory or when
 * asked. */
static bool fill_spot(const struct cordon_held_watch *held, struct cordon_spot *spot, const char *dir, bool want_type)
{
	dir_class where;

	if (cordon_path_join(dir, spot->name, spot->path, sizeof(spot->path)) < 0) {
		cordon_closep(&spot->dir_fd);
		return false;
	}
	where = classify_dir(held, dir, &spot->open_dir);
	spot->held = where == HELD;
	spot->free = where == FREE;
	spot->type = 0;
	if (spot->held || want_type)
		examine(held, spot);
	return true;
}

/* Finds the spot of an openat2() that limits how its path may be resolved: resolves the process's own text from the
 * directory in which the process starts, with the same limits. */
static bool find_bounded(const struct cordon_held_watch *held, pid_t pid, int dir, const struct cordon_touch *touch,
			 struct cordon_spot *spot)
{
	struct open_how how = { .flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
				.resolve = touch->resolve | RESOLVE_NO_MAGICLINKS };
	const char *text = touch->path + touch->own, *name = cordon_path_base(text);
	CORDON_UNCLEARED char way[CORDON_PATH_MAX], link[CORDON_FD_PATH_SIZE];
	char start[64];
	autofd int base = -1;
	ssize_t n;

	if (!*name || cordon_copy(spot->name, sizeof(spot->name), name, strlen(name)) < 0 || cordon_streq(name, ".") ||
	    cordon_streq(name, "..") || cordon_copy(way, sizeof(way), text, (size_t)(name - text)) < 0)
		return false;
	if (dir == AT_FDCWD)
		snprintf(start, sizeof(start), "/proc/%d/cwd", (int)pid);
	else
		snprintf(start, sizeof(start), "/proc/%d/fd/%d", (int)pid, dir);
	base = open(start, O_PATH | O_DIRECTORY | O_CLOEXEC);
	spot->dir_fd = base < 0 ? -1 : cordon_sys_openat2(base, *way ? way : ".", &how, sizeof(how));
	if (spot->dir_fd < 0)
		return false;
	n = readlink(cordon_fd_path(spot->dir_fd, link), way, sizeof(way) - 1);
	if (n <= 0 || way[0] != '/') {
		cordon_closep(&spot->dir_fd);
		return false;
	}
	way[n] = '\0';
	return fill_spot(held, spot, way, true);
}

/* Finds a name in a directory whose path is longer than that of any boundary: the hand may make it, wherever the
 * directory is. */
static bool find_deep(const struct cordon_touch *touch, pid_t pid, struct cordon_spot *spot)
{
	struct stat st;
	char start[64];

	if (touch->start == AT_FDCWD)
		snprintf(start, sizeof(start), "/proc/%d/cwd", (int)pid);
	else
		snprintf(start, sizeof(start), "/proc/%d/fd/%d", (int)pid, touch->start);
	if (cordon_copy(spot->name, sizeof(spot->name), touch->path, strlen(touch->path)) < 0)
		return false;
	spot->dir_fd = open(start, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (spot->dir_fd < 0)
		return false;
	spot->exists = fstatat(spot->dir_fd, spot->name, &st, AT_SYMLINK_NOFOLLOW) == 0;
	spot->type = spot->exists ? st.st_mode & S_IFMT : 0;
	spot->held = true;
	spot->free = false;
	spot->guard = NULL;
	spot->path[0] = '\0';
	if (spot->type != S_IFLNK || !touch->follows)
		return true;
	cordon_closep(&spot->dir_fd);
	return false;
}

/* Finds the directory and the name that a touch means; resolves links at its end when the call follows them. False when
 * there is no such directory: then the kernel answers the call. */
static bool find_spot(const struct cordon_held_watch *held, const struct seccomp_notif *notif,
		      const struct cordon_touch *touch, bool pair, struct cordon_spot *spot)
{
	CORDON_UNCLEARED char path[CORDON_PATH_MAX], dir[CORDON_PATH_MAX], target[CORDON_PATH_MAX];
	size_t len = strlen(touch->path);
	pid_t pid = (pid_t)notif->pid;

	spot->dir_fd = -1;
	spot->slash = false;
	if (touch->deep)
		return find_deep(touch, pid, spot);
	if (!touch->known || touch->nameless || !len)
		return false;
	spot->slash = touch->path[len - 1] == '/';
	if (touch->resolve & (RESOLVE_BENEATH | RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS))
		return !spot->slash && find_bounded(held, pid, (int)notif->data.args[0], touch, spot);
	memcpy(path, touch->path, len + 1);
	for (unsigned int links = 0; links < CORDON_LINKS_MAX; links++) {
		ssize_t n;

		spot->dir_fd = cordon_where_parent(held->places, pid, path, dir, spot->name);
		if (spot->dir_fd < 0 || !fill_spot(held, spot, dir, touch->follows || pair)) {
			spot->dir_fd = -1;
			return false;
		}
		if (spot->type != S_IFLNK || !touch->follows)
			return true;
		n = readlinkat(spot->dir_fd, spot->name, target, sizeof(target) - 1);
		cordon_closep(&spot->dir_fd);
		if (n <= 0)
			return false;
		target[n] = '\0';
		if (cordon_path_join(target[0] == '/' ? "" : dir, target, path, sizeof(path)) < 0)
			return false;
	}
	return false;
}

/* The number N of /proc/self/fd/N or /dev/fd/N, by which linkat(2) can name a file that has no name; or -1. */
static int own_descriptor(const char *path)
{
	static const char *const dirs[] = { "/proc/self/fd/", "/proc/thread-self/fd/", "/dev/fd/" };
	uint64_t number;

	for (size_t i = 0; i < CORDON_ARRAY_SIZE(dirs); i++)
		if (strncmp(path, dirs[i], strlen(dirs[i])) == 0 &&
		    cordon_parse_u64(path + strlen(dirs[i]), 0, INT_MAX, &number) == 0)
			return (int)number;
	return -1;
}

/* Opens the file that a linkat(2) names by a descriptor instead of a path; or -1. */
static int linked_descriptor(const struct seccomp_notif *notif, const struct cordon_touch *touch)
{
	char path[64];
	int number = -1;

	if (notif->data.nr != SYS_linkat)
		return -1;
	if ((notif->data.args[4] & AT_EMPTY_PATH) && touch->known && !touch->path[touch->own])
		number = (int)notif->data.args[0];
	else if ((notif->data.args[4] & AT_SYMLINK_FOLLOW) && touch->known)
		number = own_descriptor(touch->path);
	if (number < 0)
		return -1;
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)notif->pid, number);
	return open(path, O_PATH | O_CLOEXEC);
}

/* The calls that make entries. `arg` is the argument with the mode, or with the text of a symbolic link. */
static const struct entry_call {
	long nr;
	cordon_hand_request_kind kind;
	int arg; /* -1: none */
} entry_calls[] = {
	{ SYS_openat, CORDON_HAND_OPEN, -1 },	   { SYS_openat2, CORDON_HAND_OPEN, -1 },
	{ SYS_mkdirat, CORDON_HAND_MKDIR, 2 },	   { SYS_mknodat, CORDON_HAND_MKNOD, 2 },
	{ SYS_symlinkat, CORDON_HAND_SYMLINK, 0 }, { SYS_linkat, CORDON_HAND_LINK, -1 },
	{ SYS_renameat2, CORDON_HAND_RENAME, -1 }, { SYS_renameat, CORDON_HAND_RENAME, -1 },
	{ SYS_bind, CORDON_HAND_BIND, -1 },
#ifdef SYS_open
	{ SYS_open, CORDON_HAND_OPEN, -1 },	   { SYS_creat, CORDON_HAND_OPEN, -1 },
	{ SYS_mkdir, CORDON_HAND_MKDIR, 1 },	   { SYS_mknod, CORDON_HAND_MKNOD, 1 },
	{ SYS_symlink, CORDON_HAND_SYMLINK, 0 },   { SYS_link, CORDON_HAND_LINK, -1 },
	{ SYS_rename, CORDON_HAND_RENAME, -1 },
#endif
};

static const struct entry_call *find_entry_call(long nr)
{
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(entry_calls); i++)
		if (entry_calls[i].nr == nr)
			return &entry_calls[i];
	return NULL;
}

bool cordon_held_may_move(const struct cordon_held_watch *held, const struct seccomp_notif *notif)
{
	const struct entry_call *entry_call = find_entry_call(notif->data.nr);

	return held->watched->plan->view && !held->watched->plan->lens && entry_call &&
	       entry_call->kind == CORDON_HAND_RENAME;
}

/* Whether a call renames a directory of a view, which overlayfs may refuse. */
static bool moves_dir(const struct cordon_held_watch *held, const struct seccomp_notif *notif,
		      const struct cordon_held_call *call)
{
	const struct cordon_plan *plan = held->watched->plan;

	return call->n == 2 && call->spots[0].dir_fd >= 0 && S_ISDIR(call->spots[0].type) &&
	       cordon_held_may_move(held, notif) && cordon_path_within(call->spots[0].path, plan->at) &&
	       cordon_path_within(call->spots[1].path, plan->at);
}

cordon_held_found cordon_held_find(struct cordon_held_watch *held, const struct seccomp_notif *notif,
				   const struct cordon_touch *touches, size_t n, struct cordon_held_call *ret_call)
{
	struct cordon_held_call *call = ret_call;
	bool found = true, any = false, free = true;

	call->n = n;
	call->file_fd = -1;
	for (size_t i = 0; i < CORDON_TOUCHES_MAX; i++) {
		call->spots[i].dir_fd = -1;
		call->spots[i].held = call->spots[i].free = call->spots[i].exists = false;
		call->spots[i].guard = NULL;
	}
	if ((!held->watched->plan->n_held && !held->watched->plan->view) || !n || !touches[n - 1].creates ||
	    (touches[0].resolve & ~KNOWN_RESOLVE))
		return CORDON_HELD_NOT;
	if (n == 2)
		call->file_fd = linked_descriptor(notif, &touches[0]);
	for (size_t i = 0; i < n; i++) {
		if (i == 0 && call->file_fd >= 0)
			continue;
		/* The result for the last path counts: when the first one does not exist, the kernel says so. */
		found = find_spot(held, notif, &touches[i], n == 2, &call->spots[i]);
		any |= found && call->spots[i].held;
		free &= found && call->spots[i].free;
	}
	if (found && (any || moves_dir(held, notif, call)))
		return CORDON_HELD_YES;
	if (n == 1 && free && !touches[0].resolve)
		remember_free_dir(held, &touches[0], &call->spots[0]);
	cordon_held_call_done(call);
	return free && call->file_fd < 0 ? CORDON_HELD_FREE : CORDON_HELD_NOT;
}

void cordon_held_call_done(struct cordon_held_call *call)
{
	cordon_closep(&call->file_fd);
	for (size_t i = 0; i < CORDON_TOUCHES_MAX; i++)
		cordon_closep(&call->spots[i].dir_fd);
}

/* Takes a copy of the agent's socket. */
static int get_socket(pid_t thread, pid_t leader, int number)
{
	/* A thread may have descriptors of its own; before Linux 6.9 a pidfd can be opened for the leader only. */
	autofd int pidfd = (int)syscall(SYS_pidfd_open, thread, PIDFD_OF_THREAD);

	if (pidfd < 0 && thread == leader)
		pidfd = (int)syscall(SYS_pidfd_open, leader, 0);
	return pidfd < 0 ? -1 : (int)syscall(SYS_pidfd_getfd, pidfd, number, 0);
}

static bool set_name(char ret[static NAME_MAX + 2], const struct cordon_spot *spot)
{
	size_t n = strlen(spot->name);

	memcpy(ret, spot->name, n);
	if (spot->slash)
		ret[n++] = '/';
	ret[n] = '\0';
	return n > 0;
}

/* Fills the request for an open. False when the name exists and is no regular file: opening it may wait for another
 * process, so the caller itself opens it. */
static bool set_open(struct cordon_hand_request *request, const struct seccomp_notif *notif,
		     const struct cordon_touch *touch, const struct cordon_spot *spot)
{
	request->flags = touch->flags;
	request->mode = (uint32_t)touch->mode;
	request->resolve = (uint32_t)(touch->resolve & RESOLVE_NO_XDEV);
	/* The hand uses openat2, which refuses unknown bits where the older calls ignore them. */
	if (notif->data.nr != SYS_openat2) {
		request->flags = (request->flags & OPEN_FLAGS) | LARGE_FILE;
		request->mode &= 07777;
	} else if (touch->mode != request->mode) {
		return false;
	}
	return !spot->exists || spot->type == S_IFREG;
}

static bool is_device(mode_t mode)
{
	return (mode & S_IFMT) && !S_ISREG(mode) && !S_ISFIFO(mode) && !S_ISSOCK(mode);
}

/* Turns the call into a request for the hand. False when the kernel should answer it: then the call continues. */
static bool make_request(struct cordon_held_watch *held, const struct seccomp_notif *notif,
			 const struct cordon_touch *touches, const struct cordon_held_call *call,
			 const struct cordon_caller *caller, int dirs[static 2])
{
	const struct entry_call *entry_call = find_entry_call(notif->data.nr);
	const struct cordon_spot *first = &call->spots[0], *last = &call->spots[call->n - 1];
	struct cordon_hand_request *request = &held->request;

	if (!entry_call || (call->n == 2 && call->file_fd < 0 && first->dir_fd < 0))
		return false;
	if (last->slash && entry_call->kind != CORDON_HAND_MKDIR && entry_call->kind != CORDON_HAND_RENAME)
		return false;
	request->kind = entry_call->kind;
	request->umask = (uint32_t)caller->umask;
	request->flags = request->mode = request->resolve = 0;
	request->other[0] = request->text[0] = '\0';
	set_name(request->name, last);
	dirs[0] = last->dir_fd;
	switch (entry_call->kind) {
	case CORDON_HAND_OPEN:
		return set_open(request, notif, &touches[0], last);
	case CORDON_HAND_MKDIR:
	case CORDON_HAND_MKNOD:
		request->mode = (uint32_t)notif->data.args[entry_call->arg];
		return entry_call->kind == CORDON_HAND_MKDIR || !is_device(request->mode);
	case CORDON_HAND_SYMLINK:
		return cordon_watch_read_string((pid_t)notif->pid, notif->data.args[entry_call->arg], request->text);
	case CORDON_HAND_LINK:
		dirs[1] = call->file_fd >= 0 ? call->file_fd : first->dir_fd;
		return call->file_fd >= 0 || set_name(request->other, first);
	case CORDON_HAND_RENAME:
		request->flags = notif->data.nr == SYS_renameat2 ? (uint32_t)notif->data.args[4] : 0;
		dirs[1] = first->dir_fd;
		return set_name(request->other, first);
	case CORDON_HAND_BIND:
		dirs[1] = get_socket((pid_t)notif->pid, caller->leader, (int)notif->data.args[0]);
		return dirs[1] >= 0;
	}
	return false;
}

/* Whether all boundaries below `path` are there by default, and none has that path itself. */
static bool leads_only_to_defaults(const struct cordon_plan *plan, const char *path)
{
	for (size_t i = 0; i < plan->n_guards; i++)
		if (cordon_path_within(plan->guards[i].inside, path) &&
		    (!plan->guards[i].by_default || cordon_streq(plan->guards[i].inside, path)))
			return false;
	return !plan->fold_case;
}

static const struct cordon_guard link_guard = { .path = "no link in a git directory", .by_default = true };

/*
 * INVARIANT: no symbolic link comes into a git directory of the host's. What is in one already is none, so it may be moved; what
 * comes from elsewhere could become one between our look at it and the hand's deed. The answer to that is the one that makes
 * programs copy instead. Where no held directory takes part, Landlock decides in the same way.
 */
static int judge_links(const struct cordon_plan *plan, const struct cordon_held_call *call,
		       cordon_hand_request_kind kind, bool exchange)
{
	const struct cordon_spot *first = &call->spots[0], *last = &call->spots[call->n - 1];
	bool from = call->n == 2 && first->dir_fd >= 0 && cordon_plan_in_git_dir(plan, first->path);
	bool to = cordon_plan_in_git_dir(plan, last->path);

	if (kind == CORDON_HAND_SYMLINK)
		return to ? -EACCES : 0;
	if (kind != CORDON_HAND_RENAME && kind != CORDON_HAND_LINK)
		return 0;
	if (to && first->type == S_IFLNK)
		return -EACCES;
	return (to && !from) || (exchange && from && !to) ? -EXDEV : 0;
}

/* Decides whether a boundary forbids the call, or the kernel should answer it because the name exists. A rename of a
 * boundary is refused here, with the error of the mount that protects the name: the host may just have replaced what
 * has the name, and then the hand would succeed. */
static cordon_held_answer judge(const struct cordon_plan *plan, const struct cordon_held_call *call,
				const struct entry_call *entry_call, int *ret_error,
				const struct cordon_guard **ret_guard)
{
	bool renames = entry_call && entry_call->kind == CORDON_HAND_RENAME;
	const struct cordon_spot *last = &call->spots[call->n - 1];
	const struct cordon_spot *held = renames && call->spots[0].guard && call->spots[0].exists ? &call->spots[0]
												  : last;

	if (renames && !call->spots[0].exists)
		return CORDON_HELD_CONTINUE;
	if (!held->guard)
		return CORDON_HELD_DONE;
	if (held->exists && !renames)
		return CORDON_HELD_CONTINUE;
	/* An empty directory that leads to paths which are protected by default may be made: each name in it is judged
	 * later. */
	if (entry_call && entry_call->kind == CORDON_HAND_MKDIR && leads_only_to_defaults(plan, held->path))
		return CORDON_HELD_DONE;
	*ret_error = held->exists ? -EBUSY : -EACCES;
	*ret_guard = held->guard;
	return CORDON_HELD_REFUSE;
}

cordon_held_answer cordon_held_serve(struct cordon_held_watch *held, const struct seccomp_notif *notif,
				     const struct cordon_touch *touches, const struct cordon_held_call *call,
				     int *ret_error, int *ret_fd, const struct cordon_guard **ret_guard)
{
	const struct entry_call *entry_call = find_entry_call(notif->data.nr);
	cordon_held_answer answer = judge(held->watched->plan, call, entry_call, ret_error, ret_guard);
	struct cordon_caller caller;
	int dirs[2] = { -1, -1 };
	int r;

	*ret_fd = -1;
	if (answer != CORDON_HELD_DONE)
		return answer;
	r = entry_call ? judge_links(held->watched->plan, call, entry_call->kind,
				     notif->data.nr == SYS_renameat2 && notif->data.args[4] & RENAME_EXCHANGE)
		       : 0;
	if (r < 0) {
		*ret_error = r;
		*ret_guard = &link_guard;
		return r == -EXDEV ? CORDON_HELD_DONE : CORDON_HELD_REFUSE;
	}
	/* INVARIANT: a process that gave up rights gets none of them back through the hand. */
	if (!cordon_caller_read(&held->files, (pid_t)notif->pid, &caller) || caller.filters != held->filters ||
	    caller.marked) {
		if (!call->spots[0].held && !call->spots[call->n - 1].held)
			return CORDON_HELD_CONTINUE; /* the kernel refuses to rename the directory, or does it */
		*ret_error = -EACCES;
		*ret_guard = NULL;
		return CORDON_HELD_REFUSE;
	}
	if (!make_request(held, notif, touches, call, &caller, dirs))
		return CORDON_HELD_CONTINUE;
	/* Make sure that all we read belongs to the process that called, and not to another one that got its pid. */
	if (ioctl(held->listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &notif->id) < 0) {
		if (held->request.kind == CORDON_HAND_BIND)
			cordon_closep(&dirs[1]);
		return CORDON_HELD_GONE;
	}
	r = cordon_hand_ask(held->watched->hand, &held->request, dirs, held->stop, ret_fd);
	if (held->request.kind == CORDON_HAND_BIND)
		cordon_closep(&dirs[1]);
	/* The name belongs to another kind of file, or to a link, by now: nothing is to be made, so the kernel
	 * answers. */
	if (held->request.kind == CORDON_HAND_OPEN &&
	    (r == -ENOTSUP || (r == -ELOOP && !(touches[0].flags & O_NOFOLLOW))))
		return CORDON_HELD_CONTINUE;
	*ret_error = r == -EPIPE || r == -ECANCELED ? -EACCES : r;
	return CORDON_HELD_DONE;
}
