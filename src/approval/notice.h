/* SPDX-License-Identifier: Apache-2.0 */
/* Notices on the desktop about approvals that wait. */
#ifndef CORDON_APPROVAL_NOTICE_H
#define CORDON_APPROVAL_NOTICE_H

#include "approval/approval.h"

/* An approval begins to wait: sends a notice now, or makes it due together with others. *due is when that is, monotonic,
 * or INT64_MAX: never, as before the first notice. */
void cordon_approval_notice(const struct cordon_store *store, const struct cordon_approval_record *record, int64_t *due);
/* Sends the one that is due. */
void cordon_approval_notice_work(const struct cordon_store *store, int64_t now, int64_t *due);

#endif
