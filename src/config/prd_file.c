/* SPDX-License-Identifier: Apache-2.0 */
/* Edits a PRD in its file. */
#include "config/edit_file.h"
#include "config/prd.h"

struct update {
	const json_t *patterns;
	struct cordon_prd_changes changes;
};

static int edit(void *data, const char *name, const char *text, size_t len, struct cordon_buf *ret_text,
		bool *ret_changed, struct cordon_errors *errors)
{
	struct update *update = data;
	int r;

	cordon_prd_changes_done(&update->changes);
	r = cordon_prd_edit_scope(name, text, len, update->patterns, ret_text, &update->changes, errors);
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
