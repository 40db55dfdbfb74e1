/* SPDX-License-Identifier: Apache-2.0 */
/* Collects paths of the default protection, and reads the files of the tree that name more of them. */
#include <fcntl.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/path.h"
#include "protect/collect.h"

static bool has(const struct cordon_protect_list *list, const char *path)
{
	for (size_t i = 0; i < list->n; i++)
		if (cordon_streq(list->paths[i], path))
			return true;
	return false;
}

static int append(struct cordon_protect_list *list, size_t *cap, const char *path)
{
	if (list->n == CORDON_PROTECT_DEFAULTS_MAX)
		return -E2BIG;
	if (list->n == *cap) {
		size_t bigger_cap = *cap ? 2 * *cap : 256;
		char **bigger = realloc(list->paths, bigger_cap * sizeof(*bigger));

		if (!bigger)
			return -ENOMEM;
		list->paths = bigger;
		*cap = bigger_cap;
	}
	list->paths[list->n] = strdup(path);
	if (!list->paths[list->n])
		return -ENOMEM;
	list->n++;
	return 0;
}

bool cordon_protect_collected(const struct cordon_protect_collector *c, const char *path)
{
	return has(&c->list, path);
}

int cordon_protect_append(struct cordon_protect_collector *c, const char *path)
{
	return append(&c->list, &c->cap, path);
}

int cordon_protect_visit(struct cordon_protect_collector *c, const char *git_dir)
{
	return has(&c->git_dirs, git_dir) ? 1 : append(&c->git_dirs, &c->git_dirs_cap, git_dir);
}

int cordon_protect_collect(struct cordon_protect_collector *c, const char *dir, const char *name)
{
	CORDON_UNCLEARED char path[CORDON_PATH_MAX];
	int r = cordon_path_join(dir, name, path, sizeof(path));

	if (r < 0)
		return r;
	return cordon_protect_collected(c, path) ? 0 : cordon_protect_append(c, path);
}

void cordon_protect_truncate(struct cordon_protect_collector *c, size_t n)
{
	while (c->list.n > n)
		free(c->list.paths[--c->list.n]);
}

void cordon_protect_list_done(struct cordon_protect_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		free(list->paths[i]);
	free(list->paths);
	*list = (struct cordon_protect_list){ 0 };
}

int cordon_protect_unread(struct cordon_protect_collector *c, const char *dir, int error)
{
	autofd int fd = error == -EACCES ? cordon_open_beneath(c->root->fd, dir, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || st.st_uid != geteuid())
		return 0;
	free(c->closed);
	c->closed = strdup(*dir ? dir : ".");
	return c->closed ? -EACCES : -ENOMEM;
}

enum cordon_protect_type cordon_protect_type_of(const struct cordon_protect_collector *c, const char *path)
{
	autofd int fd = -ENOENT;
	struct stat st;

	if (!cordon_names_lack(c->names, path))
		fd = cordon_open_beneath(c->root->fd, path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd == -ENOENT || fd == -ENOTDIR)
		return CORDON_PROTECT_MISSING;
	if (fd < 0 || fstat(fd, &st) < 0)
		return CORDON_PROTECT_OTHER;
	if (S_ISREG(st.st_mode))
		return CORDON_PROTECT_FILE;
	return S_ISDIR(st.st_mode) ? CORDON_PROTECT_DIR : CORDON_PROTECT_OTHER;
}

int cordon_protect_read(struct cordon_protect_collector *c, const char *path, size_t max, struct cordon_buf *buf)
{
	const int flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
	autofd int fd = cordon_names_lack(c->names, path) ? -ENOENT : cordon_open_beneath(c->root->fd, path, flags);
	struct stat st;
	int r;

	if (fd == -ELOOP) {
		struct cordon_resolved where;

		cordon_resolve(c->root, path, &where);
		if (where.place == CORDON_PLACE_INSIDE)
			fd = cordon_open_beneath(c->root->fd, where.path, flags);
	}
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return 1;
	buf->max = max < c->bytes_left ? max : c->bytes_left;
	r = cordon_read_regular(fd, &st, path, buf, NULL);
	if (r == -E2BIG || r == -ENOMEM)
		return r;
	c->bytes_left -= buf->len;
	return r < 0 || buf->len == 0 ? 1 : 0;
}

bool cordon_protect_locate(const struct cordon_protect_collector *c, const char *base, const char *text,
			   char ret[static CORDON_PATH_MAX])
{
	const char *home = getenv("HOME");
	char joined[CORDON_PATH_MAX];
	struct cordon_resolved where;
	size_t root_len = strlen(c->root->path);

	if (!*text)
		return false;
	if (text[0] == '~') {
		if (text[1] != '/' || !home || cordon_path_join(home, text + 2, joined, sizeof(joined)) < 0)
			return false;
	} else if (text[0] != '/') {
		if (!base || cordon_path_join(base, text, joined, sizeof(joined)) < 0)
			return false;
	} else if (cordon_copy(joined, sizeof(joined), text, strlen(text)) < 0) {
		return false;
	}
	cordon_resolve(c->root, joined, &where);
	if (where.place != CORDON_PLACE_INSIDE)
		return false;
	if (joined[0] == '/' && strncmp(joined, c->root->path, root_len) == 0 && joined[root_len] == '/')
		memmove(joined, joined + root_len + 1, strlen(joined + root_len + 1) + 1);
	/* For another name of the root, or a path with "..", use what it resolves to now. */
	if (joined[0] == '/' || cordon_path_clean(joined, ret, CORDON_PATH_MAX) < 0)
		return cordon_copy(ret, CORDON_PATH_MAX, where.path, strlen(where.path)) == 0;
	return true;
}
