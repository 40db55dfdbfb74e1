/* SPDX-License-Identifier: Apache-2.0 */
/* What the files about the records of approvals share. */
#ifndef CORDON_APPROVAL_INTERNAL_H
#define CORDON_APPROVAL_INTERNAL_H

#include "approval/approval.h"
#include "base/lock.h"
#include "state/record.h"

#define CORDON_APPROVAL_SUFFIX ".json"
/*
 * An id has 32 hexadecimal digits: 8 random ones, by which people name it, then 8 of the hash of the principal and 16 of the
 * digest. So the names in the directory suffice to find the questions about one call, and to count those of one principal.
 */
#define CORDON_APPROVAL_ID_LENGTH 32
#define CORDON_APPROVAL_WHO_AT CORDON_APPROVAL_SHORT
#define CORDON_APPROVAL_CALL_AT 16

extern const struct cordon_record_kind cordon_approval_kind;

int cordon_approval_dir(const struct cordon_home *home, int *ret_fd, struct cordon_error *err);
/* Reads a record and settles its state. `id` may be any text. */
int cordon_approval_read(int dir_fd, const char *id, struct cordon_approval_record *ret_record,
			 struct cordon_error *err);
int cordon_approval_remove(int dir_fd, const char *id, struct cordon_error *err);
/* Whether nothing depends on the record any more. A denial on the page or in the terminal stands until it expires; one in a
 * client is about the call that the client made. */
bool cordon_approval_is_over(const struct cordon_approval_record *record, int64_t now);

#endif
