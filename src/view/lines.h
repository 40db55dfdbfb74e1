/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texts by line: what differs between two, and a three-way merge. Pure. A line ends with its newline; a last line
 * without one differs from the same line with one.
 */
#ifndef CORDON_VIEW_LINES_H
#define CORDON_VIEW_LINES_H

#include "base/buf.h"

#define CORDON_TEXT_BYTES_MAX ((size_t)16 << 20) /* a larger file counts as binary */
#define CORDON_TEXT_LINES_MAX ((size_t)1 << 20)

struct cordon_text {
	const char *bytes; /* borrowed */
	size_t n_bytes;
	size_t *at; /* where each line begins; at[n] is the end */
	size_t n;
};

/* Lines a to a + n_a of the one text became lines b to b + n_b of the other. */
struct cordon_edit {
	size_t a, n_a, b, n_b;
};

struct cordon_edits {
	struct cordon_edit *edit;
	size_t n;
};

#define autotext CORDON_CLEANUP(cordon_text_done)
#define autoedits CORDON_CLEANUP(cordon_edits_done)

/* Returns whether the bytes can be compared by line: no NUL, and within the bounds above. */
bool cordon_text_is(const char *bytes, size_t n);
/* Finds the lines; 0 or -ENOMEM. */
int cordon_text_init(struct cordon_text *ret_text, const char *bytes, size_t n);
void cordon_text_done(struct cordon_text *text);
void cordon_edits_done(struct cordon_edits *edits);

/* Finds a short list of edits, in order; it is the shortest one unless the texts differ very much. 0 or -ENOMEM. */
int cordon_lines_diff(const struct cordon_text *a, const struct cordon_text *b, struct cordon_edits *ret_edits);

/*
 * Appends `ours` with what `theirs` changed since `base`. Returns -EEXIST when both changed lines that overlap or
 * touch, and then the buffer is not valid. *ret_common: both made the same change.
 */
int cordon_lines_merge(const struct cordon_text *base, const struct cordon_text *ours, const struct cordon_text *theirs,
		       struct cordon_buf *ret_merged, bool *ret_common);

/* Appends `a` with only those edits whose entry in `chosen` is true. */
int cordon_lines_apply(const struct cordon_text *a, const struct cordon_text *b, const struct cordon_edits *edits,
		       const bool *chosen, struct cordon_buf *ret_text);

#endif
