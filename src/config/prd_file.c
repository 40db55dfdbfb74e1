/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a PRD from its file, and edits it there. */
#include <fcntl.h>

#include "base/io.h"
#include "config/edit_file.h"
#include "config/prd.h"

int cordon_prd_load_flags(const char *path, unsigned int flags, struct cordon_prd **ret_prd,
			  struct cordon_errors *errors)
{
	struct cordon_buf text autobuf = CORDON_BUF(CORDON_PRD_SIZE_MAX);
	struct cordon_error err = { 0 };
	int r = cordon_read_file(AT_FDCWD, path, O_NOFOLLOW, &text, &err);

	if (r == -ENOENT)
		err.kind = CORDON_KIND_NOT_FOUND;
	if (r == -ELOOP) {
		cordon_fail(&err, r, CORDON_KIND_IO, "%s is a symbolic link", path);
		cordon_error_hint(&err, "give the path of the file that the link points to");
	}
	if (r < 0)
		return cordon_errors_add(errors, &err, NULL, 0, 0);
	return cordon_prd_read_flags(path, text.data ? text.data : "", text.len, flags, ret_prd, errors);
}

int cordon_prd_load(const char *path, struct cordon_prd **ret_prd, struct cordon_errors *errors)
{
	return cordon_prd_load_flags(path, 0, ret_prd, errors);
}

struct update {
	const json_t *patterns; /* or edits */
	const struct cordon_prd_edit *edits;
	size_t n;
	struct cordon_prd_changes changes;
};

static int edit(void *data, const char *name, const char *text, size_t len, struct cordon_buf *ret_text,
		bool *ret_changed, struct cordon_errors *errors)
{
	struct update *update = data;
	int r;

	cordon_prd_changes_done(&update->changes);
	r = update->patterns
		    ? cordon_prd_edit_scope(name, text, len, update->patterns, ret_text, &update->changes, errors)
		    : cordon_prd_edit_text(name, text, len, update->edits, update->n, ret_text, &update->changes,
					   errors);
	*ret_changed = r == 0 && update->changes.n;
	return r;
}

int cordon_prd_update_scope(const char *path, const json_t *patterns, struct cordon_prd_changes *ret_changes,
			    struct cordon_errors *errors)
{
	struct update update = { .patterns = patterns };
	int r = cordon_edit_file(path, CORDON_PRD_SIZE_MAX, edit, &update, errors);

	if (r < 0)
		cordon_prd_changes_done(&update.changes);
	else
		*ret_changes = update.changes;
	return r;
}

int cordon_prd_apply(const char *path, const struct cordon_prd_edit *edits, size_t n, struct cordon_errors *errors)
{
	struct update update = { .edits = edits, .n = n };
	int r = cordon_edit_file(path, CORDON_PRD_SIZE_MAX, edit, &update, errors);

	cordon_prd_changes_done(&update.changes);
	return r;
}
