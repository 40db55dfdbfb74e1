/* SPDX-License-Identifier: Apache-2.0 */
/* Records: JSON objects, one per file. A file is read as a whole and replaced in one step. */
#ifndef CORDON_STATE_RECORD_H
#define CORDON_STATE_RECORD_H

#include "base/time.h"
#include "state/fields.h"

#define CORDON_SCHEMA 1
#define CORDON_RECORD_MAX (8 << 20)

/* A missing record is -ENOENT with kind not_found; a newer schema is kind config. */
int cordon_record_read(int dir_fd, const char *name, json_t **ret_record, struct cordon_error *err);
int cordon_record_write(int dir_fd, const char *name, const json_t *record, struct cordon_error *err);
/* The same for a struct. The caller frees what cordon_record_load() returns with the _done() of its kind. */
int cordon_record_load(const struct cordon_record_kind *kind, int dir_fd, const char *name, void *ret_record,
		       struct cordon_error *err);
int cordon_record_save(const struct cordon_record_kind *kind, int dir_fd, const char *name, const void *record,
		       struct cordon_error *err);
/* Writes the present time, for created_at and similar fields. */
void cordon_record_stamp(char ret_time[static CORDON_TIME_SIZE]);
/* The names in a directory, except those that begin with a dot. Takes only names that end in `suffix` (may be NULL),
 * and cuts it off. The array has no order. */
int cordon_record_names(int dir_fd, const char *suffix, json_t **ret_names, struct cordon_error *err);
int cordon_no_memory(struct cordon_error *err);
/* Opens a directory, and makes it (0700) when it is missing. Refuses a link, and a directory of another user. */
int cordon_state_dir(int dir_fd, const char *name, int *ret_fd, struct cordon_error *err);

#endif
