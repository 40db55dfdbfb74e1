/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Temporary names of atomic saves in cordon-lens (docs/lens.md has the rule). Editors, `sed -i`, formatters and git
 * write to another name beside a file and rename it into place. Such a name is out of scope where the scope judges
 * names, so:
 *   - the run can make it when it has one of the shapes of policy/temp_names.c, and may write the name it would become;
 *   - only this run sees it; a file of the host that looks alike stays hidden;
 *   - the run can write it, remove it, or rename it to a name in scope or to another such name, and nothing else;
 *   - the lens removes the remaining ones when it ends.
 */
#include <dirent.h>
#include <fcntl.h>

#include "base/path.h"
#include "lens/lens.h"
#include "policy/temp_names.h"

#define SIBLINGS_MAX 10000 /* entries read to find a file beside which a temporary name may stand */

struct beside {
	const struct lens *lens;
	const char *dir_path;
};

static bool writable(void *data, const char *name, size_t n)
{
	const struct beside *beside = data;
	char text[NAME_MAX + 1], path[CORDON_PATH_MAX];

	return cordon_copy(text, sizeof(text), name, n) == 0 && !cordon_streq(text, ".") && !cordon_streq(text, "..") &&
	       cordon_path_join(beside->dir_path, text, path, sizeof(path)) == 0 &&
	       lens_judge(beside->lens, path) == LENS_WRITE;
}

/* Whether the directory has a file that the run may write. */
static bool has_writable(struct beside *beside, int dir_fd)
{
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	bool found = false;

	if (!dir) {
		cordon_closep(&fd);
		return false;
	}
	for (size_t i = 0; !found && i < SIBLINGS_MAX && (entry = readdir(dir)) != NULL; i++)
		found = (entry->d_type == DT_REG || entry->d_type == DT_UNKNOWN) &&
			writable(beside, entry->d_name, strlen(entry->d_name));
	closedir(dir);
	return found;
}

bool lens_temp_name_shape(const struct lens *lens, const char *dir_path, int dir_fd, const char *name, bool link)
{
	struct beside beside = { lens, dir_path };
	char path[CORDON_PATH_MAX];

	if (!lens->editor_temps || cordon_path_join(dir_path, name, path, sizeof(path)) < 0 ||
	    lens_judge_forbidden(lens, path))
		return false;
	return cordon_temp_of_name(name, link, writable, &beside) ||
	       (!link && cordon_temp_of_any(name) && has_writable(&beside, dir_fd));
}

struct lens_temp_name *lens_temp_name_find(const struct lens *lens, const struct lens_node *parent, const char *name)
{
	for (struct lens_temp_name *temp = lens->temp_names; temp; temp = temp->next)
		if (temp->parent == parent && cordon_streq(temp->text, name))
			return temp;
	return NULL;
}

struct lens_temp_name *lens_temp_name_find_file(const struct lens *lens, const struct lens_node *parent,
						const char *name, const struct lens_id *id)
{
	struct lens_temp_name *temp = lens_temp_name_find(lens, parent, name);

	return temp && lens_id_equal(&temp->id, id) ? temp : NULL;
}

int lens_temp_name_add(struct lens *lens, struct lens_node *parent, const char *name, const struct lens_id *id)
{
	struct lens_temp_name *temp = lens_temp_name_find(lens, parent, name);
	size_t n = strlen(name);

	if (temp) {
		temp->id = *id;
		return 0;
	}
	if (lens->n_temp_names >= LENS_TEMP_NAMES_MAX)
		return -ENOSPC;
	temp = malloc(sizeof(*temp) + n + 1);
	if (!temp)
		return -ENOMEM;
	memcpy(temp->text, name, n + 1);
	temp->parent = parent;
	temp->id = *id;
	temp->next = lens->temp_names;
	lens->temp_names = temp;
	lens->n_temp_names++;
	parent->children++;
	return 0;
}

void lens_temp_name_drop(struct lens *lens, struct lens_temp_name *temp)
{
	for (struct lens_temp_name **at = &lens->temp_names; *at; at = &(*at)->next) {
		if (*at != temp)
			continue;
		*at = temp->next;
		lens->n_temp_names--;
		temp->parent->children--;
		lens_node_release(lens, temp->parent);
		free(temp);
		return;
	}
}

bool lens_temp_names_below(const struct lens *lens, const struct lens_node *dir)
{
	for (const struct lens_temp_name *temp = lens->temp_names; temp; temp = temp->next)
		for (const struct lens_node *node = temp->parent; node; node = node->names ? node->names->parent : NULL)
			if (node == dir)
				return true;
	return false;
}

void lens_temp_names_remove(struct lens *lens)
{
	while (lens->temp_names) {
		struct lens_temp_name *temp = lens->temp_names;
		autofd int dir_fd = lens_open_node(lens, temp->parent, false);
		struct statx stx;

		if (dir_fd >= 0 && lens_stat(dir_fd, temp->text, &stx) == 0) {
			struct lens_id id = lens_id_of(&stx);

			if (lens_id_equal(&id, &temp->id))
				(void)unlinkat(dir_fd, temp->text, 0);
		}
		lens_temp_name_drop(lens, temp);
	}
}
