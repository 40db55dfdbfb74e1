/* SPDX-License-Identifier: Apache-2.0 */
/* What the two kinds of imports share. */
#ifndef CORDON_STORE_IMPORT_H
#define CORDON_STORE_IMPORT_H

#include "base/buf.h"
#include "store/internal.h"

#define CORDON_NOTICES_MAX 200

/* Adds a text to the notices, with control characters escaped; counts silently what is beyond CORDON_NOTICES_MAX. */
int cordon_import_note(json_t *notices, const char *fmt, ...) CORDON_PRINTF(2, 3);

/* Whether `dir_fd` holds projects of the original: below projects/ (`ret_fd` is that directory), or itself (`ret_fd` is
 * -1). */
bool cordon_import_is_store(int dir_fd, int *ret_fd);
/* Imports the projects of such a directory. */
int cordon_import_store(const struct cordon_store *store, int dir_fd, int projects_fd, const json_t *settings,
			json_t **ret_projects, json_t *notices, struct cordon_error *err);

#endif
