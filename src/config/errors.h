/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bounded list of errors, so that one pass over a file reports all of them, in the order of their places.
 *
 *     struct cordon_errors errors CORDON_CLEANUP(cordon_errors_done) = { 0 };
 *
 * Functions that take a list return 0 or a negative errno like all others; on failure they have added at least one
 * error.
 */
#ifndef CORDON_CONFIG_ERRORS_H
#define CORDON_CONFIG_ERRORS_H

#include "base/error.h"

#define CORDON_ERRORS_MAX 64

struct cordon_errors {
	struct cordon_error *items; /* sorted by place; an error without a place stays where it was added */
	size_t n;
	size_t dropped; /* how many errors more than CORDON_ERRORS_MAX there were */
	struct cordon_errors_place {
		size_t line;
		size_t column;
	} * places;
};

void cordon_errors_done(struct cordon_errors *errors);
/* Adds a copy of `err`, with `where` made from file, line and column (line 0: only the file; file NULL: `where` is
 * unchanged). Returns err->code, so that a failing function can end with it. `errors` may be NULL. */
int cordon_errors_add(struct cordon_errors *errors, const struct cordon_error *err, const char *file, size_t line,
		      size_t column);
/* True when the list is full: then it counts one more dropped error, and the caller need not make the text. A file
 * can have a hundred thousand errors. */
bool cordon_errors_drop(struct cordon_errors *errors);
/* For callers that report only one: copies the first error to `err` and returns its code; 0 when there is none. */
int cordon_errors_first(const struct cordon_errors *errors, struct cordon_error *err);

#endif
