/* SPDX-License-Identifier: Apache-2.0 */
/* Splits folder lists, and finds the folders inside the root. */
#include <fcntl.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "policy/folders.h"

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

void cordon_folders_done(struct cordon_folders *folders)
{
	for (size_t i = 0; i < folders->n; i++)
		free(folders->items[i]);
	free(folders->items);
	*folders = (struct cordon_folders){ 0 };
}

/* Takes one entry, up to the comma that ends it. Drops blanks around it; `\,` becomes a comma. */
static int take_entry(const char **list, char **ret_entry)
{
	const char *s = *list;
	autobuf struct cordon_buf entry = CORDON_BUF(CORDON_PATH_MAX);
	int r = 0;

	while (is_blank(*s))
		s++;
	for (; *s && *s != ',' && r == 0; s++) {
		if (s[0] == '\\' && s[1] == ',')
			s++;
		r = cordon_buf_addc(&entry, *s);
	}
	if (r < 0)
		return r;
	while (entry.len && is_blank(entry.data[entry.len - 1]))
		entry.data[--entry.len] = '\0';
	*list = s;
	*ret_entry = cordon_buf_steal(&entry);
	return *ret_entry ? 0 : -ENOMEM;
}

static int add_entry(struct cordon_folders *folders, char *entry, struct cordon_error *err)
{
	char **items;

	if (!*entry) {
		free(entry);
		cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "entry %zu of the workspace folder list is empty",
			    folders->n + 1);
		cordon_error_hint(err, "separate folders by single commas, as in \"lib,src\"");
		return -EINVAL;
	}
	if (folders->n == CORDON_FOLDERS_MAX) {
		free(entry);
		return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "more than %d workspace folders",
				   CORDON_FOLDERS_MAX);
	}
	items = reallocarray(folders->items, folders->n + 1, sizeof(*items));
	if (!items) {
		free(entry);
		return cordon_fail_errno(err, -ENOMEM, "cannot read the workspace folder list");
	}
	items[folders->n++] = entry;
	folders->items = items;
	return 0;
}

int cordon_folders_parse(const char *list, struct cordon_folders *ret_folders, struct cordon_error *err)
{
	struct cordon_folders folders = { 0 };
	const char *s = list;
	int r;

	while (is_blank(*s))
		s++;
	if (!*s) {
		cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "the workspace folder list is empty");
		cordon_error_hint(err, "name at least one folder, as in \"lib,src\"");
		return -EINVAL;
	}
	for (;;) {
		char *entry = NULL;

		r = take_entry(&s, &entry);
		if (r == -E2BIG)
			r = cordon_fail(err, -EINVAL, CORDON_KIND_USAGE,
					"entry %zu of the workspace folder list is too long", folders.n + 1);
		else if (r < 0)
			r = cordon_fail_errno(err, r, "cannot read the workspace folder list");
		else
			r = add_entry(&folders, entry, err);
		if (r < 0) {
			cordon_folders_done(&folders);
			return r;
		}
		if (!*s)
			break;
		s++;
	}
	*ret_folders = folders;
	return 0;
}

int cordon_folders_add(struct cordon_buf *list, const char *folder)
{
	int r = list->len ? cordon_buf_addc(list, ',') : 0;

	for (const char *p = folder; r == 0 && *p; p++)
		r = cordon_buf_add(list, *p == ',' ? "\\," : p, *p == ',' ? 2 : 1);
	return r;
}

int cordon_folder_resolve(const struct cordon_root *root, const char *folder, char ret_path[static CORDON_PATH_MAX],
			  struct cordon_error *err)
{
	struct cordon_resolved resolved;
	struct stat st;
	autofd int fd = -1;

	cordon_resolve(root, folder, &resolved);
	if (resolved.place == CORDON_PLACE_OUTSIDE) {
		cordon_fail(err, -EXDEV, CORDON_KIND_POLICY_DENIED, "Workspace folder is outside repository: %s",
			    folder);
		cordon_error_hint(err, "it resolves to %s, the repository is %s", resolved.path, root->path);
		return -EXDEV;
	}
	if (resolved.place != CORDON_PLACE_INSIDE || !resolved.exists) {
		cordon_fail(err, -ENOENT, CORDON_KIND_NOT_FOUND, "Workspace folder does not exist: %s", folder);
		cordon_error_hint(err, "create it below %s, or leave it out", root->path);
		return -ENOENT;
	}
	fd = cordon_open_beneath(root->fd, resolved.path, O_PATH | O_NOFOLLOW);
	if (fd < 0)
		return cordon_fail_errno(err, fd, "cannot open workspace folder %s", folder);
	if (fstat(fd, &st) < 0)
		return cordon_fail_errno(err, -errno, "cannot open workspace folder %s", folder);
	if (!S_ISDIR(st.st_mode))
		return cordon_fail(err, -ENOTDIR, CORDON_KIND_NOT_FOUND, "Workspace folder is not a directory: %s",
				   folder);
	return cordon_copy(ret_path, CORDON_PATH_MAX, resolved.path, strlen(resolved.path));
}
