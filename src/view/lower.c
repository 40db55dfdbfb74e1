/* SPDX-License-Identifier: Apache-2.0 */
/* Reads what lies below the upper layer of a view. */
#include <fcntl.h>

#include "base/path.h"
#include "view/internal.h"
#include "view/lower.h"

int cordon_lower_names(const struct cordon_lower *lower, struct cordon_name_list *names)
{
	size_t n = 0;
	int r = 0;

	for (size_t i = 0; r == 0 && i < lower->n; i++)
		r = cordon_name_list_read(lower->layer[i], names);
	if (r == 0 && lower->root >= 0)
		r = cordon_name_list_read(lower->root, names);
	if (r < 0 || !lower->n)
		return r;
	cordon_name_list_sort(names);
	for (size_t i = 0; i < names->n; i++) {
		if (n && cordon_streq(names->name[n - 1], names->name[i]))
			free(names->name[i]);
		else
			names->name[n++] = names->name[i];
	}
	names->n = n;
	return 0;
}

/* ---- the layers and the root ---- */

int cordon_lower_top(const struct cordon_view *view, int root, struct cordon_lower *ret_lower, struct cordon_error *err)
{
	struct cordon_lower lower = CORDON_LOWER_NONE;
	size_t i;
	json_t *item;
	int r = 0;

	json_array_foreach(view->record.layers, i, item) {
		const char *id = json_string_value(item);
		char path[CORDON_UUID_SIZE + 16];

		if (!id || !cordon_uuid_valid(id) || lower.n == CORDON_VIEW_LAYERS_MAX ||
		    cordon_concat(path, sizeof(path), "../", id, "/" CORDON_VIEW_UPPER, (char *)NULL) < 0) {
			r = cordon_fail(err, -EBADMSG, CORDON_KIND_CONFIG, "the record of view %s is damaged: layers",
					view->record.id);
			break;
		}
		lower.layer[lower.n] = openat(view->dir_fd, path, CORDON_OPEN_DIR);
		if (lower.layer[lower.n] < 0) {
			r = cordon_fail(err, -ESTALE, CORDON_KIND_CONFLICT,
					"view %s was made on top of view %s, which is not there any more",
					view->record.id, id);
			break;
		}
		lower.n++;
	}
	if (r == 0 && (lower.root = openat(root, ".", CORDON_OPEN_DIR)) < 0)
		r = cordon_fail_errno(err, -errno, "cannot open the root of view %s", view->record.id);
	if (r < 0) {
		cordon_lower_done(&lower);
		return r;
	}
	*ret_lower = lower;
	return 0;
}

void cordon_lower_done(struct cordon_lower *lower)
{
	for (size_t i = 0; i < lower->n; i++)
		cordon_closep(&lower->layer[i]);
	lower->n = 0;
	cordon_closep(&lower->root);
}

bool cordon_lower_is_empty(const struct cordon_lower *lower)
{
	return lower->n == 0 && lower->root < 0;
}

/* Looks at a name in one directory. 0 when it is there, and 1 when it is not. */
static int look(int dir_fd, const char *name, struct stat *ret_st)
{
	if (fstatat(dir_fd, name, ret_st, AT_SYMLINK_NOFOLLOW) == 0)
		return 0;
	return errno == ENOENT ? 1 : -errno;
}

int cordon_lower_look(const struct cordon_lower *lower, const char *name, struct cordon_ident *ret_ident, int *ret_dir)
{
	struct stat st;
	int r = 1;

	*ret_ident = (struct cordon_ident){ 0 };
	*ret_dir = -1;
	for (size_t i = 0; r == 1 && i < lower->n; i++) {
		r = look(lower->layer[i], name, &st);
		if (r == 0 && cordon_upper_is_whiteout(lower->layer[i], name, &st))
			return 0;
		if (r == 0)
			*ret_dir = lower->layer[i];
	}
	if (r == 1 && lower->root >= 0) {
		r = look(lower->root, name, &st);
		if (r == 0)
			*ret_dir = lower->root;
	}
	if (r == 0)
		cordon_ident_of(&st, ret_ident);
	return r < 0 ? r : 0;
}

int cordon_lower_open(const struct cordon_lower *lower, const char *name, struct cordon_lower *ret_lower)
{
	struct cordon_lower found = CORDON_LOWER_NONE;
	bool hidden = false;
	struct stat st;
	int r = 0;

	for (size_t i = 0; r >= 0 && !hidden && i < lower->n; i++) {
		r = look(lower->layer[i], name, &st);
		if (r != 0)
			continue;
		if (!S_ISDIR(st.st_mode)) {
			hidden = true; /* a whiteout, or another file */
			continue;
		}
		found.layer[found.n] = cordon_upper_open(lower->layer[i], name, O_RDONLY | O_DIRECTORY);
		if (found.layer[found.n] < 0)
			r = -errno;
		else
			hidden = cordon_upper_has(found.layer[found.n++], CORDON_OVERLAY_ATTRIBUTE("opaque"));
	}
	if (r >= 0 && !hidden && lower->root >= 0) {
		r = look(lower->root, name, &st);
		if (r == 0 && S_ISDIR(st.st_mode) && (found.root = openat(lower->root, name, CORDON_OPEN_DIR)) < 0)
			r = -errno;
	}
	if (r >= 0 && cordon_lower_is_empty(&found))
		r = -ENOENT;
	if (r < 0) {
		cordon_lower_done(&found);
		return r;
	}
	*ret_lower = found;
	return 0;
}

int cordon_lower_find(const struct cordon_lower *lower, const char *path, bool link)
{
	size_t n = strcspn(path, "/");
	char name[NAME_MAX + 1];
	struct cordon_ident ident;
	int dir, fd, r;

	if (!lower->n && lower->root >= 0)
		return cordon_open_beneath(lower->root, path,
					   link ? O_PATH | O_NOFOLLOW : O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
	if (cordon_copy(name, sizeof(name), path, n) < 0)
		return -ENAMETOOLONG;
	if (path[n]) {
		autolower struct cordon_lower below = CORDON_LOWER_NONE;

		r = cordon_lower_open(lower, name, &below);
		return r < 0 ? r : cordon_lower_find(&below, path + n + 1, link);
	}
	r = cordon_lower_look(lower, name, &ident, &dir);
	if (r < 0 || dir < 0)
		return r < 0 ? r : -ENOENT;
	if (link)
		fd = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	else if (dir == lower->root)
		fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	else
		fd = cordon_upper_open(dir, name, O_RDONLY);
	return fd < 0 ? -errno : fd;
}
