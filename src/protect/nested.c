/* SPDX-License-Identifier: Apache-2.0 */
/* Looks for nested repositories in the uppermost directories of a root. */
#include <fcntl.h>
#include <sys/stat.h>

#include "base/listing.h"
#include "base/path.h"
#include "protect/git.h"
#include "protect/nested.h"

/* Directories in which nobody keeps repositories of his own, and which are large. */
static const char *const skipped[] = { ".git", "node_modules", "__pycache__", ".venv", "venv", "target", ".cache" };

struct search {
	struct cordon_protect_collector *c;
	size_t looks; /* so far */
	char *queue[CORDON_NESTED_LISTED_MAX];
	unsigned int depths[CORDON_NESTED_LISTED_MAX];
	size_t first, n;
};

static bool is_skipped(const char *name)
{
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(skipped); i++)
		if (cordon_streq(name, skipped[i]))
			return true;
	return false;
}

/* Queues a directory to be listed, unless it is known to have none in it: most file systems count the directories in a
 * directory as its links. */
static int push(struct search *s, int fd, const char *name, const char *path, unsigned int depth)
{
	struct stat st;

	if (depth >= CORDON_NESTED_DEPTH_MAX || s->n == CORDON_ARRAY_SIZE(s->queue) ||
	    fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || st.st_nlink == 2)
		return 0;
	s->queue[s->n] = strdup(path);
	s->depths[s->n] = depth;
	return s->queue[s->n++] ? 0 : -ENOMEM;
}

/* Holds a repository part by part; or, when there are too many of them, its git directory as a whole. */
static int hold(struct search *s, const char *path, bool bare)
{
	struct cordon_protect_collector *c = s->c;
	size_t before = c->list.n;
	int r = -E2BIG;

	if (c->nested_left) {
		c->nested_left--;
		r = cordon_protect_repository(c, path, bare);
	}
	if (r != -E2BIG)
		return r;
	cordon_protect_truncate(c, before);
	c->list.collapsed = true;
	return cordon_protect_collect(c, path, bare ? "" : ".git");
}

static bool is_called_git(const char *name)
{
	size_t n = strlen(name);

	return n > 4 && cordon_streq(name + n - 4, ".git");
}

/* Looks at one directory, by its name in the open directory `fd`. */
static int look(struct search *s, int fd, const char *name, const char *path, unsigned int depth)
{
	CORDON_UNCLEARED char inner[NAME_MAX + 8];
	struct stat st;
	int r = 0;

	s->looks++;
	if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	/* Its owner could look into it after a chmod. */
	if (faccessat(fd, name, R_OK | X_OK, AT_EACCESS) < 0 && errno == EACCES)
		return cordon_protect_unread(s->c, path, -EACCES);
	if (is_called_git(name) && cordon_protect_is_git_dir(s->c, path))
		r = hold(s, path, true);
	if (r == 0 && cordon_path_join(name, ".git", inner, sizeof(inner)) == 0 &&
	    fstatat(fd, inner, &st, AT_SYMLINK_NOFOLLOW) == 0)
		r = hold(s, path, false);
	return r < 0 ? r : push(s, fd, name, path, depth);
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Reads the names of the directories in a directory, sorted, so that the bounds leave out the same ones each time. */
static void read_names(int fd, char **ret_names, size_t *ret_n)
{
	CORDON_UNCLEARED struct cordon_listing listing;
	const struct dirent64 *entry;
	size_t n = 0;

	cordon_listing_init(&listing, fd);
	for (size_t read = 0; n < CORDON_NESTED_NAMES_MAX && read < 4 * CORDON_NESTED_NAMES_MAX &&
			      (entry = cordon_listing_next(&listing));
	     read++) {
		struct stat st;

		if (entry->d_type != DT_DIR &&
		    (entry->d_type != DT_UNKNOWN || fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		     !S_ISDIR(st.st_mode)))
			continue;
		if (is_skipped(entry->d_name))
			continue;
		ret_names[n] = strdup(entry->d_name);
		if (!ret_names[n])
			break;
		n++;
	}
	qsort(ret_names, n, sizeof(*ret_names), compare_names);
	*ret_n = n;
}

/* Whether git keeps much of its own under this name in a git directory, and nobody a repository. */
static bool is_of_git(const char *name)
{
	return cordon_streq(name, "objects") || cordon_streq(name, "refs") || cordon_streq(name, "logs");
}

/* INVARIANT: the directories in a bare repository are looked at as well. An agent makes the parts of one in a directory that
 * holds others. */
static int search_dir(struct search *s, const char *dir, unsigned int depth)
{
	autofd int fd = cordon_open_beneath(s->c->root->fd, dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	CORDON_UNCLEARED char path[CORDON_PATH_MAX];
	char *names[CORDON_NESTED_NAMES_MAX];
	size_t n = 0;
	bool bare = fd >= 0 && cordon_protect_is_git_dir(s->c, dir);
	int r = fd < 0 ? cordon_protect_unread(s->c, dir, fd) : bare && *dir ? hold(s, dir, true) : 0;

	if (fd >= 0)
		read_names(fd, names, &n);
	for (size_t i = 0; i < n; i++) {
		if (r == 0 && s->looks < CORDON_NESTED_LOOKS_MAX &&
		    cordon_path_join(dir, names[i], path, sizeof(path)) == 0)
			r = look(s, fd, names[i], path,
				 bare && is_of_git(names[i]) ? CORDON_NESTED_DEPTH_MAX : depth + 1);
		free(names[i]);
	}
	return r;
}

int cordon_protect_nested(struct cordon_protect_collector *c)
{
	struct search s = { .c = c };
	int r = search_dir(&s, "", 0);

	for (; r == 0 && s.first < s.n && s.looks < CORDON_NESTED_LOOKS_MAX; s.first++)
		r = search_dir(&s, s.queue[s.first], s.depths[s.first]);
	for (size_t i = 0; i < s.n; i++)
		free(s.queue[i]);
	return r;
}
