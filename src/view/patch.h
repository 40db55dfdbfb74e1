/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A change in git's format, so that `git apply` and everything else that reads patches can read it: texts by line, all
 * else as a binary patch. Git knows no directories, and of modes the execute bit only; a comment has what else changed.
 */
#ifndef CORDON_VIEW_PATCH_H
#define CORDON_VIEW_PATCH_H

#include "view/delta.h"
#include "view/lines.h"

#define CORDON_PATCH_CONTEXT 3
#define CORDON_PATCH_FILE_MAX ((size_t)64 << 20) /* a larger file is only named */
#define CORDON_PATCH_MAX ((size_t)512 << 20)	 /* of all text that is kept at once */

struct cordon_patch_count {
	size_t added, removed; /* lines */
	bool binary;
};

/* Appends the patch of one change; nothing for a directory. */
int cordon_patch_add(const struct cordon_delta *delta, const struct cordon_delta_change *change,
		     struct cordon_buf *ret_text, struct cordon_error *err);
/* A comment about what never comes out of a view. */
int cordon_patch_left(const struct cordon_delta_left *left, struct cordon_buf *ret_text);
int cordon_patch_count(const struct cordon_delta *delta, const struct cordon_delta_change *change,
		       struct cordon_patch_count *ret_count, struct cordon_error *err);

/* A group of edits that are shown together, with the lines around them. */
struct cordon_hunk {
	size_t first, n; /* of the edits */
	size_t a, n_a, b, n_b;
};

/* The hunk that begins with edit `first`. */
void cordon_hunk_at(const struct cordon_text *a, const struct cordon_text *b, const struct cordon_edits *edits,
		    size_t first, struct cordon_hunk *ret_hunk);
int cordon_hunk_add(const struct cordon_text *a, const struct cordon_text *b, const struct cordon_edits *edits,
		    const struct cordon_hunk *hunk, struct cordon_buf *ret_text);

/* Appends a path as git writes it: in quotes with escapes if it has bytes that need them. */
int cordon_patch_path(struct cordon_buf *buf, const char *prefix, const char *path);

/* The letter of `git diff --name-status`. */
char cordon_patch_letter(const struct cordon_delta_change *change);

#endif
