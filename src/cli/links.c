/* SPDX-License-Identifier: Apache-2.0 */
/* Makes and removes symbolic links to workspace folders in a worker's directory. Follows no link in that directory. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/path.h"
#include "cli/links.h"
#include "cli/recipe_options.h"

#define DIR_FLAGS (O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

void cordon_links_done(struct cordon_links *links)
{
	for (size_t i = 0; i < links->n; i++) {
		free(links->items[i].place);
		free(links->items[i].target);
	}
	cordon_freep(&links->items);
	links->n = 0;
}

/* Fills in the text of a link to the folder. */
static int plan_one(const struct cordon_root *root, const char *folder, bool existing, struct cordon_link *ret_link,
		    struct cordon_error *err)
{
	char place[CORDON_PATH_MAX] = "", leads[CORDON_PATH_MAX], target[CORDON_PATH_MAX];
	struct cordon_link link = { .folder = folder };
	int r = 0;

	if (existing)
		r = cordon_folder_resolve(root, folder, leads, err);
	if (r == 0)
		r = cordon_manager_place(root, folder, place, err);
	if (r < 0)
		return r;
	if (!*place)
		return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE,
				   "Workspace folder is the repository itself and cannot be mounted: %s", folder);
	/* The text does not depend on where the folder leads today, so that unmount finds the link again. */
	if (cordon_path_join(root->path, place, target, sizeof(target)) < 0)
		return cordon_fail_errno(err, -ENAMETOOLONG, "folder %s", folder);
	link.place = strdup(place);
	link.target = strdup(target);
	if (!link.place || !link.target) {
		free(link.place);
		free(link.target);
		return cordon_fail_errno(err, -ENOMEM, "folder %s", folder);
	}
	*ret_link = link;
	return 0;
}

/* The link to the outer folder also reaches a folder inside it, so the inner one needs none. Of two equal folders the
 * first stays. */
static bool covered(const struct cordon_links *links, size_t i)
{
	const char *place = links->items[i].place;

	for (size_t j = 0; j < links->n; j++)
		if (j != i && cordon_path_within(place, links->items[j].place) &&
		    (j < i || !cordon_streq(place, links->items[j].place)))
			return true;
	return false;
}

static void drop_covered(struct cordon_links *links)
{
	size_t kept = 0;
	bool drop[CORDON_FOLDERS_MAX];

	for (size_t i = 0; i < links->n; i++)
		drop[i] = covered(links, i);
	for (size_t i = 0; i < links->n; i++) {
		if (drop[i]) {
			free(links->items[i].place);
			free(links->items[i].target);
		} else {
			links->items[kept++] = links->items[i];
		}
	}
	links->n = kept;
}

int cordon_links_plan(const struct cordon_manager *manager, bool existing, struct cordon_links *ret_links)
{
	struct cordon_links links = { .items = calloc(CORDON_FOLDERS_MAX, sizeof(*links.items)) };
	struct cordon_error err = { 0 };
	int exit_code = 0;

	if (!links.items) {
		cordon_fail_errno(&err, -ENOMEM, "folder list");
		return cordon_cli_fail(manager->cli, &err);
	}
	for (size_t i = 0; i < manager->folders.n && i < CORDON_FOLDERS_MAX; i++) {
		if (plan_one(&manager->root, manager->folders.items[i], existing, &links.items[links.n], &err) == 0) {
			links.n++;
			continue;
		}
		cordon_manager_report_folder(manager->cli, &err);
		if (!exit_code)
			exit_code = cordon_exit_of_error(&err, CORDON_EXIT_NO);
	}
	if (exit_code) {
		cordon_links_done(&links);
		return exit_code;
	}
	drop_covered(&links);
	*ret_links = links;
	return 0;
}

/* Opens the directory that holds the last component of `place`. With `ret_kept` it makes directories that are missing,
 * and *ret_kept is how many existed. Returns -ELOOP or -ENOTDIR for a link or a file on the way. */
static int open_parent(int dir_fd, const char *place, size_t *ret_kept)
{
	int fd = fcntl(dir_fd, F_DUPFD_CLOEXEC, 0);
	size_t depth = 0;

	if (fd < 0)
		return -errno;
	for (const char *p = place; strchr(p, '/'); p = strchr(p, '/') + 1) {
		char name[NAME_MAX + 1];
		int next;

		if (cordon_copy(name, sizeof(name), p, strcspn(p, "/")) < 0) {
			close(fd);
			return -ENAMETOOLONG;
		}
		depth++;
		if (ret_kept && mkdirat(fd, name, 0777) < 0) {
			if (errno != EEXIST) {
				int r = -errno;

				close(fd);
				return r;
			}
			*ret_kept = depth;
		}
		next = openat(fd, name, DIR_FLAGS);
		if (next < 0) {
			int r = -errno;

			close(fd);
			return r;
		}
		close(fd);
		fd = next;
	}
	return fd;
}

/* Returns 1 if `name` is a link with exactly that text, 0 if not, or -errno (-ENOENT if the name does not exist). */
static int is_link_to(int parent, const char *name, const char *target)
{
	char text[CORDON_PATH_MAX];
	ssize_t n = readlinkat(parent, name, text, sizeof(text));

	if (n < 0)
		return errno == EINVAL ? 0 : -errno;
	return (size_t)n == strlen(target) && memcmp(text, target, (size_t)n) == 0;
}

/* Removes directories that have become empty, deepest first; the first `kept` stay. */
static void prune(int dir_fd, const char *place, size_t kept)
{
	char path[CORDON_PATH_MAX];
	size_t depth = 0;

	if (cordon_copy(path, sizeof(path), place, strlen(place)) < 0)
		return;
	for (const char *p = path; *p; p++)
		depth += *p == '/';
	for (char *slash; depth > kept && (slash = strrchr(path, '/')); depth--) {
		autofd int parent = -1;

		*slash = '\0';
		parent = open_parent(dir_fd, path, NULL);
		if (parent < 0 || unlinkat(parent, cordon_path_base(path), AT_REMOVEDIR) < 0)
			return;
	}
}

static int remove_one(struct cordon_link *link, int dir_fd, size_t kept)
{
	const char *name = cordon_path_base(link->place);
	autofd int parent = open_parent(dir_fd, link->place, NULL);
	int r = parent < 0 ? parent : is_link_to(parent, name, link->target);

	link->state = r == -ENOENT ? CORDON_LINK_ABSENT : CORDON_LINK_REFUSED;
	if (r == -ENOENT)
		return 0;
	if (r <= 0)
		return r < 0 && r != -ELOOP && r != -ENOTDIR ? r : -EEXIST;
	if (unlinkat(parent, name, 0) < 0)
		return -errno;
	link->state = CORDON_LINK_REMOVED;
	prune(dir_fd, link->place, kept);
	return 0;
}

static int fail_occupied(const struct cordon_link *link, int code, struct cordon_error *err)
{
	if (code == -EEXIST || code == -ELOOP || code == -ENOTDIR)
		return cordon_fail(err, -EEXIST, CORDON_KIND_CONFLICT, "something else is in the way at %s, left alone",
				   link->place);
	return cordon_fail_errno(err, code, "cannot link %s", link->place);
}

static int make_one(struct cordon_link *link, int dir_fd, struct cordon_error *err)
{
	const char *name = cordon_path_base(link->place);
	autofd int parent = open_parent(dir_fd, link->place, &link->kept);
	struct stat st;
	int r;

	if (parent < 0)
		return fail_occupied(link, parent, err);
	if (symlinkat(link->target, parent, name) < 0) {
		r = errno == EEXIST ? is_link_to(parent, name, link->target) : -errno;
		if (r <= 0)
			return fail_occupied(link, r < 0 ? r : -EEXIST, err);
		return 0;
	}
	link->state = CORDON_LINK_CREATED;
	/* The folder may have been removed meanwhile. Leave no link that leads nowhere. */
	if (fstatat(parent, name, &st, 0) < 0 || !S_ISDIR(st.st_mode))
		return cordon_fail(err, -ENOENT, CORDON_KIND_NOT_FOUND, "Workspace folder does not exist: %s",
				   link->folder);
	return 0;
}

int cordon_links_make(struct cordon_links *links, int dir_fd, struct cordon_error *err)
{
	for (size_t i = 0; i < links->n; i++) {
		int r = make_one(&links->items[i], dir_fd, err);

		if (r == 0)
			continue;
		for (size_t j = i + 1; j-- > 0;) {
			struct cordon_link *link = &links->items[j];

			if (link->state == CORDON_LINK_CREATED)
				remove_one(link, dir_fd, link->kept);
			else if (j == i)
				prune(dir_fd, link->place, link->kept);
		}
		return r;
	}
	return 0;
}

int cordon_links_remove(struct cordon_links *links, int dir_fd, struct cordon_error *err)
{
	int result = 0;

	for (size_t i = 0; i < links->n; i++) {
		int r = remove_one(&links->items[i], dir_fd, 0);

		if (r < 0 && result == 0)
			result = fail_occupied(&links->items[i], r, err);
	}
	return result;
}

json_t *cordon_links_json(const struct cordon_links *links)
{
	static const char *const states[] = { "present", "created", "absent", "removed", "refused" };
	json_t *array = json_array();

	for (size_t i = 0; i < links->n; i++) {
		const struct cordon_link *link = &links->items[i];

		json_array_append_new(array,
				      json_pack("{s:o, s:o, s:o, s:s}", "folder", cordon_cli_json_text(link->folder),
						"path", cordon_cli_json_text(link->place), "target",
						cordon_cli_json_text(link->target), "state", states[link->state]));
	}
	return array;
}

static int set(void *data, int key, const char *arg, struct cordon_error *err)
{
	return cordon_cli_set(data, key, arg, err);
}

int cordon_links_command(struct cordon_cli *cli, int argc, char **argv,
			 int (*act)(struct cordon_cli *cli, const struct cordon_manager *ws, const char *dir))
{
	struct cordon_recipe recipe = { 0 };
	struct cordon_manager ws;
	struct cordon_error err = { 0 };
	int first, r = cordon_cli_parse(cli, argc, argv, 0, set, &recipe, &first, &err);

	if (r != 0)
		return r > 0 ? CORDON_EXIT_OK : cordon_cli_fail(cli, &err);
	if (argc - first < 1 || argc - first > 2)
		return cordon_cli_usage(cli, "a list of folders and a directory are expected, not %d arguments",
					argc - first);
	r = cordon_manager_open(cli, &recipe, argc - first == 2 ? argv[first] : NULL, &ws);
	if (r)
		return r;
	r = act(cli, &ws, argv[argc - 1]);
	cordon_manager_done(&ws);
	return r;
}
