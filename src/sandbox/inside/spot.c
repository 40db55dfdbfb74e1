/* SPDX-License-Identifier: Apache-2.0 */
/* The hand finds the directory and the name that a call means, and judges the directory. */
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include "base/path.h"
#include "base/resolve.h"
#include "base/sys.h"
#include "policy/temp_names.h"
#include "sandbox/inside/spot.h"

/* Follows no link of a process: /proc/self would be somebody else here. */
static int open_dir(int base, const char *text, uint64_t resolve)
{
	struct open_how how = { .flags = O_PATH | O_DIRECTORY | O_CLOEXEC, .resolve = resolve | RESOLVE_NO_MAGICLINKS };

	return cordon_sys_openat2(base, text, &how, sizeof(how));
}

void cordon_spot_done(struct cordon_spot *spot)
{
	cordon_closep(&spot->dir_fd);
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

static bool take_word(const char **p, const char *word)
{
	const char *at = *p;
	size_t n = component(&at);

	if (n != strlen(word) || memcmp(at, word, n) != 0)
		return false;
	*p = at + n;
	return true;
}

static bool take_number(const char **p, uint64_t *ret)
{
	char digits[CORDON_DIGITS_SIZE];
	const char *at = *p;
	size_t n = component(&at);

	if (n == 0 || cordon_copy(digits, sizeof(digits), at, n) < 0 || cordon_parse_u64(digits, 0, INT_MAX, ret) < 0)
		return false;
	*p = at + n;
	return true;
}

/*
 * Recognises a text that begins with a link of the caller's own process, such as /proc/self/fd/3 or /dev/fd/3: for us
 * /proc/self would be somebody else. Sets `what` to the link's name below /proc/PID and *text to the rest.
 */
static bool take_own_link(const struct cordon_spot_caller *caller, const char **text,
			  char what[static CORDON_DIGITS_SIZE + 4], pid_t *ret_pid)
{
	static const char *const streams[] = { "stdin", "stdout", "stderr" };
	const char *p = *text;
	char digits[CORDON_DIGITS_SIZE];
	uint64_t number;
	bool fd = false;

	*ret_pid = caller->leader;
	if (take_word(&p, "dev")) {
		const char *after = p;

		fd = take_word(&after, "fd") && take_number(&after, &number);
		if (fd)
			p = after;
		for (unsigned int i = 0; !fd && i < 3; i++)
			if (take_word(&p, streams[i])) {
				number = i;
				fd = true;
			}
		if (!fd)
			return false;
	} else {
		if (!take_word(&p, "proc"))
			return false;
		if (take_word(&p, "thread-self"))
			*ret_pid = caller->thread;
		else if (take_number(&p, &number)) {
			if (number != (uint64_t)caller->leader && number != (uint64_t)caller->thread)
				return false;
			*ret_pid = (pid_t)number;
		} else if (!take_word(&p, "self"))
			return false;
		if (take_word(&p, "task")) {
			if (!take_number(&p, &number) || number != (uint64_t)caller->thread)
				return false;
			*ret_pid = caller->thread;
		}
		if (take_word(&p, "cwd"))
			cordon_concat(what, CORDON_DIGITS_SIZE + 4, "cwd", (char *)NULL);
		else if (take_word(&p, "root"))
			cordon_concat(what, CORDON_DIGITS_SIZE + 4, "root", (char *)NULL);
		else if (take_word(&p, "fd") && take_number(&p, &number))
			fd = true;
		else
			return false;
	}
	if (fd)
		cordon_concat(what, CORDON_DIGITS_SIZE + 4, "fd/", cordon_digits(number, digits), (char *)NULL);
	*text = p;
	return true;
}

/* Opens the directory from which a relative path of the caller starts. */
static int open_start(const struct cordon_spot_caller *caller, int start)
{
	char path[CORDON_PROC_PATH_SIZE], what[CORDON_DIGITS_SIZE + 4] = "cwd", digits[CORDON_DIGITS_SIZE];

	if (start != AT_FDCWD && start < 0)
		return -1;
	if (start != AT_FDCWD)
		cordon_concat(what, sizeof(what), "fd/", cordon_digits((unsigned int)start, digits), (char *)NULL);
	return open(cordon_proc_path(caller->thread, what, path), O_PATH | O_CLOEXEC);
}

bool cordon_spot_base(const struct cordon_spot_caller *caller, const struct cordon_touch *touch, int *ret_fd,
		      const char **ret_text)
{
	char path[CORDON_PROC_PATH_SIZE], what[CORDON_DIGITS_SIZE + 4];
	const char *text = touch->text;
	pid_t pid;

	if (text[0] == '/' && take_own_link(caller, &text, what, &pid)) {
		*ret_fd = open(cordon_proc_path(pid, what, path), O_PATH | O_CLOEXEC);
		*ret_text = text + strspn(text, "/");
		return *ret_fd >= 0;
	}
	*ret_text = touch->text;
	*ret_fd = -1;
	if (text[0] == '/')
		return true;
	*ret_fd = open_start(caller, touch->start);
	return *ret_fd >= 0;
}

static bool id_of(int fd, const char *path, struct cordon_dir_id *ret)
{
	struct stat st;

	if (fstatat(fd, path, &st, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) < 0)
		return false;
	*ret = (struct cordon_dir_id){ st.st_dev, st.st_ino };
	return true;
}

/* Sets which directory a spot has. False when it was removed. */
static bool identify(int dir_fd, struct cordon_spot *ret)
{
	struct statx st;

	if (statx(dir_fd, "", AT_EMPTY_PATH, STATX_INO | STATX_NLINK | STATX_BTIME, &st) < 0 || st.stx_nlink == 0)
		return false;
	ret->dir_id = (struct cordon_dir_id){ makedev(st.stx_dev_major, st.stx_dev_minor), st.stx_ino };
	ret->dir_birth = cordon_spot_birth(&st);
	return true;
}

static bool same_id(const struct cordon_dir_id *a, const struct cordon_dir_id *b)
{
	return a->ino == b->ino && a->dev == b->dev && a->ino;
}

static size_t free_slot(const struct cordon_spots *spots, const struct cordon_spot *spot)
{
	return spot->dir_id.ino % CORDON_ARRAY_SIZE(spots->free);
}

static bool is_known_free(const struct cordon_spots *spots, const struct cordon_spot *spot)
{
	const struct cordon_free_dir *dir = &spots->free[free_slot(spots, spot)];

	return spots->placed == spots->memory->placed && same_id(&dir->id, &spot->dir_id) &&
	       dir->birth == spot->dir_birth;
}

void cordon_spot_remember_free(struct cordon_spots *spots, const struct cordon_spot *spot)
{
	if (spots->placed != spots->memory->placed) {
		memset(spots->free, 0, sizeof(spots->free));
		spots->placed = spots->memory->placed;
	}
	spots->free[free_slot(spots, spot)] = (struct cordon_free_dir){ spot->dir_id, spot->dir_birth };
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

typedef enum known_kind { NOT_KNOWN, HELD_DIR, OPEN_DIR, STEP_DIR } known_kind;

/* Which directory of the plan this is. */
static known_kind find_id(const struct cordon_spots *spots, const struct cordon_dir_id *id, size_t *ret)
{
	const struct cordon_plan *plan = spots->plan;
	const struct cordon_hand_memory *memory = spots->memory;

	for (size_t i = 0; i < memory->n_ids; i++) {
		if (!same_id(&memory->ids[i], id))
			continue;
		if (i < cordon_hand_open_id(plan, 0)) {
			*ret = i;
			return HELD_DIR;
		}
		if (i < cordon_hand_step_id(plan, 0)) {
			*ret = i - cordon_hand_open_id(plan, 0);
			return OPEN_DIR;
		}
		*ret = i - cordon_hand_step_id(plan, 0);
		return STEP_DIR;
	}
	return NOT_KNOWN;
}

/* Sets `ret` to the path of a directory in the plan's words: that of the held directory `depth` levels above it, and the
 * names of the last levels of its true path. */
static bool name_below(const struct cordon_plan *plan, int dir_fd, size_t held, unsigned int depth,
		       char ret[static CORDON_PATH_MAX])
{
	CORDON_UNCLEARED char path[CORDON_PATH_MAX];
	char link[CORDON_FD_PATH_SIZE];
	const char *at;
	ssize_t n;

	if (depth == 0)
		return cordon_copy(ret, CORDON_PATH_MAX, plan->held[held].path, strlen(plan->held[held].path)) == 0;
	n = readlink(cordon_fd_path(dir_fd, link), path, sizeof(path) - 1);
	if (n <= 0 || n == (ssize_t)sizeof(path) - 1 || path[0] != '/')
		return false;
	path[n] = '\0';
	at = path + n;
	for (unsigned int i = 0; i < depth; i++) {
		while (at > path && at[-1] != '/')
			at--;
		if (at == path)
			return false;
		at--;
	}
	return cordon_path_join(plan->held[held].path, at + 1, ret, CORDON_PATH_MAX) == 0;
}

/* Whether the name of a boundary stands, or would appear, in this directory. */
static bool is_boundary_dir(const struct cordon_plan *plan, const char *path)
{
	size_t n = strlen(path);

	for (size_t i = 0; *path && i < plan->n_guards; i++) {
		const char *inside = plan->guards[i].inside;
		const char *base = strrchr(inside, '/');

		if ((size_t)(base - inside) == n && memcmp(inside, path, n) == 0)
			return true;
	}
	return false;
}

bool cordon_spot_classify(const struct cordon_spots *spots, int dir_fd, struct cordon_spot *ret)
{
	const struct cordon_plan *plan = spots->plan;
	char up[3 * (CORDON_SPOT_DEPTH_MAX + 1) + 1] = "";
	struct cordon_dir_id id, above;

	ret->class = CORDON_SPOT_ELSEWHERE;
	ret->boundary = ret->in_git = ret->mixed = false;
	ret->path[0] = '\0';
	if (!identify(dir_fd, ret))
		return false;
	id = ret->dir_id;
	if (spots->quick && is_known_free(spots, ret)) {
		ret->class = CORDON_SPOT_FREE;
		return true;
	}
	for (unsigned int depth = 0; depth <= CORDON_SPOT_DEPTH_MAX; depth++) {
		size_t i = 0;

		switch (find_id(spots, &id, &i)) {
		case HELD_DIR:
			ret->class = CORDON_SPOT_HELD;
			ret->held = i;
			ret->in_git = plan->held[i].git;
			if (!name_below(plan, dir_fd, i, depth, ret->path))
				return false;
			/* What is below a boundary is the boundary's: its mount answers, and where the host has just
			 * replaced it and there is none, Landlock does. */
			if (cordon_plan_guard_above(plan, plan->held[i].path, ret->path))
				ret->class = CORDON_SPOT_ELSEWHERE;
			ret->boundary = depth == 0 ? plan->held[i].boundary : is_boundary_dir(plan, ret->path);
			return true;
		case OPEN_DIR:
			ret->class = CORDON_SPOT_FREE;
			ret->in_git = plan->open_dirs[i].no_links;
			return true;
		case STEP_DIR:
			if (plan->steps[i].right == CORDON_RIGHT_WRITE)
				ret->class = CORDON_SPOT_FREE;
			ret->mixed = has_read_only_below(plan, plan->steps[i].path);
			return true;
		case NOT_KNOWN:
			break;
		}
		memcpy(up + 3 * (size_t)depth, "../", 4);
		if (!id_of(dir_fd, up, &above))
			return false;
		if (same_id(&above, &id))
			return true; /* the root: no directory of the plan contains it */
		id = above;
	}
	return false;
}

struct temp_search {
	const struct cordon_plan *plan;
	const char *dir;
	size_t dir_len;
	const struct cordon_guard *found;
};

/* Whether a boundary of this directory has this name. */
static bool is_boundary_name(void *data, const char *name, size_t n)
{
	struct temp_search *search = data;

	for (size_t i = 0; i < search->plan->n_guards; i++) {
		const char *inside = search->plan->guards[i].inside;

		if (search->plan->guards[i].inside_len == search->dir_len + 1 + n &&
		    memcmp(inside, search->dir, search->dir_len) == 0 && inside[search->dir_len] == '/' &&
		    memcmp(inside + search->dir_len + 1, name, n) == 0) {
			search->found = &search->plan->guards[i];
			return true;
		}
	}
	return false;
}

/* The boundary that a host's save of this name would replace: agents that made the name first would keep the file. */
static const struct cordon_guard *temp_guard(const struct cordon_plan *plan, const struct cordon_spot *spot,
					     size_t dir_len)
{
	struct temp_search search = { .plan = plan, .dir = spot->path, .dir_len = dir_len };

	return spot->boundary && cordon_temp_predictable(spot->name, is_boundary_name, &search) ? search.found : NULL;
}

void cordon_spot_look(const struct cordon_spots *spots, struct cordon_spot *spot)
{
	const unsigned int wanted = STATX_TYPE | STATX_INO | (spot->boundary ? STATX_BTIME | STATX_NLINK : 0);
	struct statx st;

	(void)spots;
	spot->exists = statx(spot->dir_fd, spot->name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, wanted, &st) == 0;
	spot->type = spot->exists ? st.stx_mode & S_IFMT : 0;
	spot->ino = spot->exists ? st.stx_ino : 0;
	spot->only_name = spot->exists && (S_ISDIR(spot->type) || ((st.stx_mask & STATX_NLINK) && st.stx_nlink == 1));
	spot->birth = spot->exists ? cordon_spot_birth(&st) : 0;
}

/* Whether a spot lies in the tree of the lens. The lens reports what it is asked for, and what it has answered once the
 * kernel may not ask again: so we do not look at a name there before the deed. */
static bool is_of_lens(const struct cordon_plan *plan, const struct cordon_spot *spot)
{
	return plan->lens && (spot->class == CORDON_SPOT_ELSEWHERE ||
			      (spot->class == CORDON_SPOT_HELD && !plan->held[spot->held].ino));
}

/* Completes a spot whose directory and name are known; `makes`: the call makes the name; `follows`: it follows a
 * link there. */
static bool fill(const struct cordon_spots *spots, struct cordon_spot *spot, bool makes, bool follows)
{
	size_t dir_len;

	spot->guard = spot->temp = NULL;
	if (!cordon_spot_classify(spots, spot->dir_fd, spot))
		return false;
	spot->exists = spot->only_name = false;
	spot->type = 0;
	/* Where the kernel decides, only a link at the end could lead elsewhere. */
	if (spots->quick && spot->class == CORDON_SPOT_FREE && !follows)
		return true;
	if (!is_of_lens(spots->plan, spot) || (spot->class == CORDON_SPOT_HELD && !makes))
		cordon_spot_look(spots, spot);
	if (spot->class != CORDON_SPOT_HELD || !*spot->path)
		return true;
	dir_len = strlen(spot->path);
	spot->temp = temp_guard(spots->plan, spot, dir_len);
	if (cordon_path_join(spot->path, spot->name, spot->path, sizeof(spot->path)) < 0) {
		spot->path[0] = '\0'; /* longer than any boundary */
		return true;
	}
	spot->guard = cordon_plan_guard_at(spots->plan, spot->path);
	spot->in_git = cordon_plan_in_git_dir(spots->plan, spot->path);
	return true;
}

/* Cuts a text into the way to a directory and the last name. False when it has no last name. */
static bool split(const char *text, char way[static CORDON_PATH_MAX], struct cordon_spot *spot)
{
	size_t end = strlen(text), start;

	while (end > 0 && text[end - 1] == '/')
		end--;
	for (start = end; start > 0 && text[start - 1] != '/'; start--)
		;
	spot->slash = text[end] == '/';
	if (start == end || cordon_copy(spot->name, sizeof(spot->name), text + start, end - start) < 0 ||
	    cordon_streq(spot->name, ".") || cordon_streq(spot->name, ".."))
		return false;
	return cordon_copy(way, CORDON_PATH_MAX, start ? text : ".", start ? start : 1) == 0;
}

/* An absolute path as one that starts at the root that we have open. */
static const char *from_root(const char *path)
{
	path += strspn(path, "/");
	return *path ? path : ".";
}

bool cordon_spot_of_file(const struct cordon_spots *spots, int fd, struct cordon_spot *ret)
{
	CORDON_UNCLEARED char path[CORDON_PATH_MAX], way[CORDON_PATH_MAX];
	char link[CORDON_FD_PATH_SIZE];
	struct stat st, named;
	ssize_t n = readlink(cordon_fd_path(fd, link), path, sizeof(path) - 1);

	ret->dir_fd = -1;
	if (n <= 0 || n == (ssize_t)sizeof(path) - 1 || path[0] != '/' || fstat(fd, &st) < 0 || st.st_nlink == 0)
		return false;
	path[n] = '\0';
	if (!split(path, way, ret) || ret->slash)
		return false;
	ret->dir_fd = open_dir(spots->root_fd, from_root(way), RESOLVE_NO_SYMLINKS);
	if (ret->dir_fd >= 0 && fstatat(ret->dir_fd, ret->name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
	    named.st_dev == st.st_dev && named.st_ino == st.st_ino && fill(spots, ret, false, true))
		return true;
	cordon_spot_done(ret);
	return false;
}

static bool is_proc(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) < 0 || fs.f_type == PROC_SUPER_MAGIC;
}

/* Opens what a link of the caller's process leads to, if the text begins with one; moves *text behind it. */
static int open_own_link(const struct cordon_spot_caller *caller, const char **text)
{
	char what[CORDON_DIGITS_SIZE + 4], path[CORDON_PROC_PATH_SIZE];
	pid_t pid;

	return take_own_link(caller, text, what, &pid) ? open(cordon_proc_path(pid, what, path), O_PATH | O_CLOEXEC)
						       : -1;
}

/* Puts the target of a link in front of what follows it. */
static bool put_in_front(char text[static CORDON_PATH_MAX], const char *target, size_t n, const char *rest)
{
	size_t left = strlen(rest) + 1;

	if (n + 1 + left > CORDON_PATH_MAX)
		return false;
	memmove(text + n + 1, rest, left);
	memcpy(text, target, n);
	text[n] = '/';
	return true;
}

/*
 * Opens a directory name by name, for a way on which a link leads to a link of the caller's process, such as
 * here -> /proc/self/cwd: the kernel would take that link for ours. Takes `base`, which may be -1 for the root.
 */
static int walk(const struct cordon_spots *spots, const struct cordon_spot_caller *caller, int base, const char *way,
		bool follow)
{
	CORDON_UNCLEARED char text[CORDON_PATH_MAX], target[CORDON_PATH_MAX];
	char name[NAME_MAX + 1];
	const char *p = text;
	int at = base >= 0 ? base : fcntl(spots->root_fd, F_DUPFD_CLOEXEC, 3);

	memcpy(text, way, strlen(way) + 1);
	for (unsigned int links = 0; at >= 0;) {
		size_t n = component(&p);
		struct stat st;
		int next;

		if (n == 0)
			return at;
		next = cordon_copy(name, sizeof(name), p, n) < 0 || is_proc(at)
			       ? -1
			       : openat(at, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		p += n;
		if (next >= 0 && fstat(next, &st) == 0 && S_ISLNK(st.st_mode) && (follow || p[strspn(p, "/")])) {
			ssize_t got = readlinkat(next, "", target, sizeof(target) - 1);

			cordon_closep(&next);
			if (got <= 0 || ++links > CORDON_LINKS_MAX || !put_in_front(text, target, (size_t)got, p))
				break;
			p = text;
			if (text[0] != '/')
				continue;
			next = open_own_link(caller, &p);
			if (next < 0 && p != text)
				break; /* a link to what is not open */
			if (next < 0)
				next = fcntl(spots->root_fd, F_DUPFD_CLOEXEC, 3);
		}
		close(at);
		at = next;
	}
	cordon_closep(&at);
	return -1;
}

int cordon_spot_walk(const struct cordon_spots *spots, const struct cordon_spot_caller *caller, int base,
		     const char *text, bool follow)
{
	return walk(spots, caller, base < 0 ? -1 : fcntl(base, F_DUPFD_CLOEXEC, 3), text, follow);
}

static int open_way(const struct cordon_spots *spots, const struct cordon_spot_caller *caller, int base, const char *way)
{
	int fd = base < 0 ? open_dir(spots->root_fd, from_root(way), 0) : open_dir(base, way, 0);

	if (fd >= 0 || errno != ELOOP)
		return fd;
	return cordon_spot_walk(spots, caller, base, way, true);
}

bool cordon_spot_find(const struct cordon_spots *spots, const struct cordon_spot_caller *caller,
		      const struct cordon_touch *touch, struct cordon_spot *ret)
{
	CORDON_UNCLEARED char text[CORDON_PATH_MAX], way[CORDON_PATH_MAX];
	const char *rest;
	autofd int base = -1;

	ret->dir_fd = -1;
	if (!touch->has_text || !touch->text[0] || !cordon_spot_base(caller, touch, &base, &rest))
		return false;
	if (!*rest)
		return touch->follows && cordon_spot_of_file(spots, base, ret);
	memcpy(text, rest, strlen(rest) + 1);
	for (unsigned int links = 0; links < CORDON_LINKS_MAX; links++) {
		const char *p = text;
		ssize_t n;

		if (!split(text, way, ret))
			return false;
		ret->dir_fd = open_way(spots, caller, base, way);
		if (ret->dir_fd < 0 || !fill(spots, ret, touch->creates, touch->follows))
			break;
		if (!S_ISLNK(ret->type) || !touch->follows)
			return true;
		/* The call follows the link. */
		n = ret->slash ? -1 : readlinkat(ret->dir_fd, ret->name, text, sizeof(text) - 1);
		if (n <= 0)
			break;
		text[n] = '\0';
		cordon_closep(&base);
		base = text[0] == '/' ? open_own_link(caller, &p) : cordon_steal_fd(&ret->dir_fd);
		cordon_spot_done(ret);
		if (p == text)
			continue;
		/* A link to what the caller has open, such as /dev/stdout. */
		p += strspn(p, "/");
		if (base < 0)
			return false;
		if (!*p)
			return cordon_spot_of_file(spots, base, ret);
		memmove(text, p, strlen(p) + 1);
	}
	cordon_spot_done(ret);
	return false;
}
