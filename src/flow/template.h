/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Templates: text in which {{name}} stands for a value.
 *
 * INVARIANT: a text is expanded once, from left to right, and what a value contains is never looked at again. So a value
 * that an agent or a caller wrote can't bring in another value.
 */
#ifndef CORDON_FLOW_TEMPLATE_H
#define CORDON_FLOW_TEMPLATE_H

#include "base/buf.h"
#include "base/error.h"

/* One piece of a template: literal text, or the name between braces without blanks around it. */
struct cordon_template_piece {
	bool is_name;
	const char *text;
	size_t n;
	size_t at; /* byte of the template where it begins */
};

/* Takes the next piece, from *at on; false at the end. -EINVAL through *ret_bad when braces have no end. */
bool cordon_template_next(const char *text, size_t len, size_t *at, struct cordon_template_piece *ret_piece,
			  bool *ret_bad);

/* Finds a value; appends it to `out`. Returns 0, -ENOENT for a name that does not exist, or an error of the buffer. */
typedef int cordon_template_fn(void *data, const char *name, size_t n, struct cordon_buf *out);

/* Expands the text; -E2BIG when the result is larger than out->max. */
int cordon_template_expand(const char *text, cordon_template_fn *value, void *data, struct cordon_buf *out,
			   struct cordon_error *err);

#endif
