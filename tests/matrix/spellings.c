/* SPDX-License-Identifier: Apache-2.0 */
/* Every spelling of a path: the second table of the matrix. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "matrix.h"

#define DEEP_NAME 250
#define DEEP_LEVELS 20
/* The kernel gives up after 40 links, and counts those of a walk that it has to begin again (somebody's dentry went away) twice: a longer
 * chain is now and then ELOOP for no reason that a test could know. */
#define CHAIN 16
#define NAME_ROOM 128
#define FILE_LINK "scratch/file"
#define CHAIN_LINK "scratch/chain"

/* How a spelling is made. `before` stands in front of what `what` names; %s in it is the number of a descriptor or process. */
enum base {
	AT_ROOT,     /* the working directory is the root */
	AT_PARENT,   /* it is the directory of the target */
	AT_PARENT_F, /* the same, entered by a descriptor opened for reading */
	AT_PARENT_P, /* the same, entered by an O_PATH descriptor */
	AT_SCRATCH,
	AT_DEEP,
	FD_ROOT, /* a descriptor of the root is given to the call */
	FD_PARENT,
	FD_PARENT_PATH,
	FD_SCRATCH,
	FD_DEEP,
	FD_PROTECTED,
	IN_PARENT, /* the number of a descriptor of the target's directory stands in the text */
	IN_PARENT_P,
	IN_FILE_P, /* the number of a descriptor of the target itself stands in the text */
	IN_FILE_R,
	IN_CHILD, /* the number of a process that stands in the target's directory */
};

enum what { REL, ABS, LEAF, UP_PARENT, DEEP_REL, NAMED, NOTHING };

struct spelling {
	const char *name;
	enum base base;
	const char *before;
	enum what what;
	const char *after;
	bool main;
};

/* clang-format off */
static const struct spelling spellings[] = {
	{"relative",                        AT_ROOT,        "",                             REL,       "", true},
	{"absolute",                        AT_ROOT,        "",                             ABS,       "", true},
	{"dot slash",                       AT_ROOT,        "./",                           REL,       "", false},
	{"doubled slashes",                 AT_ROOT,        "//",                           ABS,       "", false},
	{"through a sibling and back",      AT_ROOT,        "scratch/../",                  REL,       "", true},
	{"through a protected one and back", AT_ROOT,       "prot/../",                     REL,       "", false},
	{"trailing slash",                  AT_ROOT,        "",                             REL,       "/", true},
	{"trailing slash and dot",          AT_ROOT,        "",                             REL,       "/.", false},
	{"dirfd of the root",               FD_ROOT,        "",                             REL,       "", false},
	{"dirfd of the parent",             FD_PARENT,      "",                             LEAF,      "", true},
	{"O_PATH dirfd of the parent",      FD_PARENT_PATH, "",                             LEAF,      "", true},
	{"dirfd of the parent, dot slash",  FD_PARENT,      "./",                           LEAF,      "", false},
	{"dirfd of the parent, up and back", FD_PARENT,     "../",                          UP_PARENT, "", false},
	{"dirfd elsewhere, up",             FD_SCRATCH,     "../",                          REL,       "", false},
	{"dirfd in a protected directory",  FD_PROTECTED,   "../",                          REL,       "", false},
	{"dirfd too deep",                  FD_DEEP,        "",                             DEEP_REL,  "", true},
	{"dirfd and an absolute path",      FD_DEEP,        "",                             ABS,       "", false},
	{"working directory too deep",      AT_DEEP,        "",                             DEEP_REL,  "", false},
	{"chdir to the parent",             AT_PARENT,      "",                             LEAF,      "", false},
	{"fchdir to the parent",            AT_PARENT_F,    "",                             LEAF,      "", false},
	{"fchdir by O_PATH",                AT_PARENT_P,    "./",                           LEAF,      "", false},
	{"chdir elsewhere, up",             AT_SCRATCH,     "../",                          REL,       "", false},
	{"/proc/self/cwd",                  AT_ROOT,        "/proc/self/cwd/",              REL,       "", true},
	{"/proc/self/root",                 AT_ROOT,        "/proc/self/root",              ABS,       "", true},
	{"/proc/self/fd",                   IN_PARENT,      "/proc/self/fd/%s/",            LEAF,      "", true},
	{"/proc/self/fd of O_PATH",         IN_PARENT_P,    "/proc/self/fd/%s/./",          LEAF,      "", false},
	{"/proc/thread-self/cwd",           AT_PARENT,      "/proc/thread-self/cwd/",       LEAF,      "", false},
	{"/proc/thread-self/root",          AT_ROOT,        "/proc/thread-self/root",       ABS,       "", false},
	{"/proc/thread-self/fd",            IN_PARENT,      "/proc/thread-self/fd/%s/",     LEAF,      "", false},
	{"/proc/PID/cwd",                   AT_ROOT,        "/proc/%P/cwd/",                REL,       "", false},
	{"/proc/PID/root",                  AT_ROOT,        "/proc/%P/root",                ABS,       "", false},
	{"/proc/PID/fd",                    IN_PARENT,      "/proc/%P/fd/%s/",              LEAF,      "", false},
	{"/proc/PID/task/TID/cwd",          AT_ROOT,        "/proc/%P/task/%P/cwd/",        REL,       "", false},
	{"/dev/fd",                         IN_PARENT,      "/dev/fd/%s/",                  LEAF,      "", false},
	{"/proc/self, doubled",             AT_ROOT,        "//proc/./self//cwd/",          REL,       "", false},
	{"/proc/self twice",                AT_ROOT,        "/proc/self/root/proc/self/cwd/", REL,     "", false},
	{"another process's cwd",           IN_CHILD,       "/proc/%s/cwd/",                LEAF,      "", false},
	{"another process's root",          IN_CHILD,       "/proc/%s/root",                ABS,       "", false},
	{"root of PID 1",                   AT_ROOT,        "/proc/1/root",                 ABS,       "", false},
	{"a magic link in the middle",      AT_SCRATCH,     "/proc/self/cwd/../",           REL,       "", false},
	{"a magic link to a neighbour",     IN_PARENT,      "/proc/self/fd/%s/../",         UP_PARENT, "", false},
	{"a link to the parent",            AT_ROOT,        "scratch/parent",               NAMED,     "/", true},
	{"a relative link to the parent",   FD_SCRATCH,     "relparent",                    NAMED,     "/", false},
	{"a link to the name",              AT_ROOT,        FILE_LINK,                      NAMED,     "", true},
	{"a chain of links",                AT_ROOT,        CHAIN_LINK,                     NAMED,     "", false},
	{"a link to /proc/self/cwd",        AT_ROOT,        "scratch/magic-cwd/",           REL,       "", false},
	{"a link to /proc/self/root",       AT_ROOT,        "scratch/magic-root",           ABS,       "", false},
	{"nearly PATH_MAX of dots",         AT_ROOT,        "./",                           REL,       "<", true},
	{"nearly PATH_MAX of slashes",      AT_ROOT,        "/",                            ABS,       "<", false},
	{"PATH_MAX and one more",           AT_ROOT,        "./",                           REL,       ">", false},
	{"the magic link of itself",        IN_FILE_P,      "/proc/self/fd/%s",             NOTHING,   "", true},
	{"the magic link of itself, opened", IN_FILE_R,     "/dev/fd/%s",                   NOTHING,   "", false},
};
/* clang-format on */

const int spelling_count = (int)(sizeof(spellings) / sizeof(spellings[0]));

const char *spelling_name(int spelling)
{
	return spellings[spelling].name;
}

bool spelling_is_main(int spelling)
{
	return spellings[spelling].main;
}

static void split(const char *path, char *parent, const char **ret_leaf)
{
	const char *slash = strrchr(path, '/');
	snprintf(parent, PATH_MAX, "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
	*ret_leaf = slash ? slash + 1 : path;
}

static void must_link(const char *to, const char *name)
{
	unlink(name);
	if (symlink(to, name) < 0)
		die(name);
}

/* A chain of directories with long names, entered step by step. Where it can't be made, the spellings that use it do not apply, and
 * the comparison with the native results shows that. */
static void make_deep(void)
{
	char name[DEEP_NAME + 1];
	memset(name, 'd', DEEP_NAME);
	name[DEEP_NAME] = '\0';
	int fd = open("scratch", O_RDONLY | O_DIRECTORY);
	for (int i = 0; i < DEEP_LEVELS; i++) {
		(void)!mkdirat(fd, name, 0755);
		int next = openat(fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		close(fd);
		fd = next;
	}
	world.deep = fd;
	world.deep_levels = DEEP_LEVELS + 1;
}

/* The link that stands for a name, and where it leads. */
static void name_link(const char *before, int target, char *name, char *text)
{
	snprintf(name, NAME_ROOM, "%s%d", before, target);
	if (strcmp(before, CHAIN_LINK) == 0)
		snprintf(text, PATH_MAX, "links/%d-0", target);
	else
		snprintf(text, PATH_MAX, "../%s", world.targets[target].path);
}

/* The links that lead to one target, made when a spelling first needs them. */
static void prepare_links(int target)
{
	char name[NAME_ROOM], text[PATH_MAX + 256], parent[PATH_MAX];
	const char *leaf;
	struct stat st;

	snprintf(name, sizeof(name), "scratch/parent%d", target);
	if (lstat(name, &st) == 0)
		return;
	split(world.targets[target].path, parent, &leaf);
	for (int i = CHAIN - 1; i >= 0; i--) {
		char link[NAME_ROOM];
		snprintf(link, sizeof(link), "scratch/links/%d-%d", target, i);
		if (i + 1 < CHAIN)
			snprintf(text, sizeof(text), "%d-%d", target, i + 1);
		else
			snprintf(text, sizeof(text), "../../%s", world.targets[target].path);
		must_link(text, link);
	}
	name_link(FILE_LINK, target, name, text);
	must_link(text, name);
	name_link(CHAIN_LINK, target, name, text);
	must_link(text, name);
	snprintf(name, sizeof(name), "scratch/relparent%d", target);
	snprintf(text, sizeof(text), "../%s", parent);
	must_link(text, name);
	snprintf(name, sizeof(name), "scratch/parent%d", target);
	snprintf(text, sizeof(text), "%s/%s", world.root, parent);
	must_link(text, name);
}

void spelling_restore(int spelling, int target)
{
	const struct spelling *s = &spellings[spelling];
	char name[NAME_ROOM], path[PATH_MAX], text[PATH_MAX];
	struct stat st;
	if (s->what != NAMED || *s->after)
		return;
	name_link(s->before, target, name, text);
	snprintf(path, sizeof(path), "%s/%s", world.root, name);
	if (lstat(path, &st) == 0 && S_ISLNK(st.st_mode) && st.st_nlink == 1)
		return;
	if (rmdir(path) < 0 || errno == ENOENT)
		unlink(path);
	must_link(text, path);
}

void spellings_prepare(void)
{
	must_link("/proc/self/cwd", "scratch/magic-cwd");
	must_link("/proc/self/root", "scratch/magic-root");
	make_deep();
}

/* Fills up a path with "./" or "/" in front, until it has `size` bytes. */
static void pad(char *path, const char *unit, size_t size)
{
	char full[PATH_ROOM];
	size_t have = strlen(path), one = strlen(unit), at = 0;
	while (at + one + have <= size) {
		memcpy(full + at, unit, one);
		at += one;
	}
	memcpy(full + at, path, have + 1);
	if (strlen(full) < size && one == 2) { /* an odd rest: one more slash after a dot slash does no harm */
		memmove(full + 3, full + 2, strlen(full + 2) + 1);
		full[2] = '/';
	}
	memcpy(path, full, strlen(full) + 1);
}

static int opened(struct spelled *out, int dirfd, const char *path, int flags)
{
	int fd = openat(dirfd, path, flags | O_CLOEXEC);
	if (fd >= 0)
		out->opened[out->count++] = fd;
	return fd;
}

/* Sends the helper process to a directory and waits until it stands there. */
static bool child_goes(const char *parent)
{
	char answer = 'n';
	size_t size = strlen(parent) + 1;
	if (world.child <= 0 || write(world.child_in, parent, size) != (ssize_t)size)
		return false;
	return read(world.child_in, &answer, 1) == 1 && answer == 'y';
}

/* Sets up the directory or descriptor that a spelling starts from; the number that stands in its text goes to *ret_number. */
static bool start_from(enum base base, const char *path, const char *parent, struct spelled *out, int *ret_number)
{
	int fd;
	switch (base) {
	case AT_ROOT:
		return true;
	case AT_PARENT:
		return chdir(parent) == 0;
	case AT_PARENT_F:
	case AT_PARENT_P:
		fd = opened(out, AT_FDCWD, parent, base == AT_PARENT_P ? O_PATH : O_RDONLY | O_DIRECTORY);
		return fd >= 0 && fchdir(fd) == 0;
	case AT_SCRATCH:
		return chdir("scratch") == 0;
	case AT_DEEP:
		return fchdir(world.deep) == 0;
	case FD_ROOT:
		return (out->dirfd = opened(out, AT_FDCWD, ".", O_RDONLY | O_DIRECTORY)) >= 0;
	case FD_PARENT:
		return (out->dirfd = opened(out, AT_FDCWD, parent, O_RDONLY | O_DIRECTORY)) >= 0;
	case FD_PARENT_PATH:
		return (out->dirfd = opened(out, AT_FDCWD, parent, O_PATH | O_DIRECTORY)) >= 0;
	case FD_SCRATCH:
		return (out->dirfd = opened(out, AT_FDCWD, "scratch", O_RDONLY | O_DIRECTORY)) >= 0;
	case FD_PROTECTED:
		return (out->dirfd = opened(out, AT_FDCWD, "prot", O_RDONLY | O_DIRECTORY)) >= 0;
	case FD_DEEP:
		out->dirfd = world.deep;
		return world.deep >= 0;
	case IN_PARENT:
	case IN_PARENT_P:
		return (*ret_number = opened(out, AT_FDCWD, parent,
					     base == IN_PARENT_P ? O_PATH : O_RDONLY | O_DIRECTORY)) >= 0;
	case IN_FILE_P:
	case IN_FILE_R:
		return (*ret_number = opened(out, AT_FDCWD, path, base == IN_FILE_P ? O_PATH : O_RDONLY | O_NONBLOCK)) >=
		       0;
	case IN_CHILD:
		*ret_number = world.child;
		return child_goes(parent);
	}
	return false;
}

static void put_text(struct spelled *out, const struct spelling *s, int target, const char *parent, const char *leaf,
		     int number)
{
	const char *path = world.targets[target].path;
	char *at = out->path, *end = out->path + PATH_MAX;
	for (const char *p = s->before; *p; p++) {
		if (p[0] == '%' && (p[1] == 's' || p[1] == 'P'))
			at += snprintf(at, (size_t)(end - at), "%d", *++p == 's' ? number : (int)getpid());
		else
			*at++ = *p;
	}
	size_t room = (size_t)(out->path + PATH_ROOM - 64 - at);
	switch (s->what) {
	case REL:
		at += snprintf(at, room, "%s", path);
		break;
	case ABS:
		at += snprintf(at, room, "%s/%s", world.root, path);
		break;
	case LEAF:
		at += snprintf(at, room, "%s", leaf);
		break;
	case UP_PARENT: {
		const char *own = strcmp(parent, ".") == 0 ? strrchr(world.root, '/') + 1
				  : strrchr(parent, '/')   ? strrchr(parent, '/') + 1
							   : parent;
		at += snprintf(at, room, "%s/%s", own, leaf);
		break;
	}
	case DEEP_REL:
		for (int i = 0; i < world.deep_levels; i++)
			at += snprintf(at, 4, "../");
		at += snprintf(at, room / 2, "%s", path);
		break;
	case NAMED:
		at += snprintf(at, room, "%d", target);
		if (*s->after)
			snprintf(at, room / 2, "/%s", leaf);
		return;
	case NOTHING:
		*at = '\0';
		break;
	}
	if (strcmp(s->after, "<") == 0)
		pad(out->path, s->before, PATH_MAX - 1);
	else if (strcmp(s->after, ">") == 0)
		pad(out->path, s->before, PATH_MAX);
	else
		memcpy(at, s->after, strlen(s->after) + 1);
}

bool spell(int spelling, int target, struct spelled *out)
{
	const struct spelling *s = &spellings[spelling];
	char parent[PATH_MAX];
	const char *leaf;
	int number = -1;

	out->dirfd = AT_FDCWD;
	out->count = 0;
	if (s->what == NAMED)
		prepare_links(target);
	split(world.targets[target].path, parent, &leaf);
	if (!start_from(s->base, world.targets[target].path, parent, out, &number)) {
		spelled_done(out);
		return false;
	}
	put_text(out, s, target, parent, leaf, number);
	return true;
}

void spelled_done(struct spelled *spelled)
{
	while (spelled->count)
		close(spelled->opened[--spelled->count]);
	if (chdir(world.root) < 0)
		die("back to the root");
}
