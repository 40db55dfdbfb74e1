/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fileScope of a PRD, a JSON file of user stories (cordon-update-prd(1)): patterns inferred from folders, and an
 * edit that adds them to the stories that lack them and leaves every other byte of the file alone.
 */
#ifndef CORDON_CONFIG_PRD_H
#define CORDON_CONFIG_PRD_H

#include <jansson.h>

#include "base/buf.h"
#include "config/errors.h"

#define CORDON_PRD_SIZE_MAX (4u << 20)

enum { CORDON_SCOPE_WITH_FOLDER = 1 };

/*
 * Returns the patterns of each folder as a JSON array of strings: every file below it that ends in .sh .js .ts .py
 * .json .md .yaml .yml, then `FOLDER/` with CORDON_SCOPE_WITH_FOLDER. Folders are relative to the repository root,
 * as cordon_folder_resolve() returns them ("" is the root itself); a repeated one counts once. Special characters
 * are escaped, so that the patterns mean that folder. A name that is not UTF-8 cannot be written in JSON and is an
 * error.
 */
int cordon_prd_infer_scope(const char *const *folders, size_t n, unsigned int flags, json_t **ret_patterns,
			   struct cordon_error *err);

/* The ids of the stories that were changed, in the order of the file. */
struct cordon_prd_changes {
	char **ids;
	size_t n;
};
void cordon_prd_changes_done(struct cordon_prd_changes *changes);

/*
 * Sets `fileScope` in every story where it is absent, null or []. Pure: text in, text out. `ret_text` (empty; its
 * max bounds the result) gets the whole new text, which was parsed again and compared: except for the added values
 * it equals the old text. `name` is for messages. Errors have line and column, and all are found in one pass.
 */
int cordon_prd_edit_scope(const char *name, const char *text, size_t len, const json_t *patterns,
			  struct cordon_buf *ret_text, struct cordon_prd_changes *ret_changes,
			  struct cordon_errors *errors);

/*
 * The same in a file, as cordon_edit_file() edits. Writes only when a story changes.
 */
int cordon_prd_update_scope(const char *path, const json_t *patterns, struct cordon_prd_changes *ret_changes,
			    struct cordon_errors *errors);

#endif
