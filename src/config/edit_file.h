/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Edits a configuration file in one atomic step, under a lock that leaves no file behind. Keeps mode and owner. The file
 * must be a regular one, not a link to one.
 */
#ifndef CORDON_CONFIG_EDIT_FILE_H
#define CORDON_CONFIG_EDIT_FILE_H

#include "base/buf.h"
#include "config/errors.h"

#define CORDON_EDIT_LOCK_MS 5000

/* Gets the text and makes the new one; `ret_text` is empty, and its max bounds the result. Nothing is written when
 * *ret_changed stays false or a negative errno is returned. May be called again when somebody else has written the file
 * meanwhile. `name` is for messages. */
typedef int cordon_edit_fn(void *data, const char *name, const char *text, size_t len, struct cordon_buf *ret_text,
			   bool *ret_changed, struct cordon_errors *errors);

/* Waits at most CORDON_EDIT_LOCK_MS for another process that holds the lock (then kind `conflict`). */
int cordon_edit_file(const char *path, size_t max, cordon_edit_fn *edit, void *data, struct cordon_errors *errors);

#endif
