/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What there is below state/: one row for each directory, with the lock that says whether an entry is in use and how long
 * entries stay after their end. The rooms that own the directories open and walk them by the row; `cordon gc` goes
 * through the table.
 */
#ifndef CORDON_STATE_KINDS_H
#define CORDON_STATE_KINDS_H

#include "base/home.h"

typedef enum cordon_state_kind {
	CORDON_STATE_KIND_RUNS,
	CORDON_STATE_KIND_CREWS,
	CORDON_STATE_KIND_VIEWS,
	CORDON_STATE_KIND_COMMITS, /* repositories of runs */
	CORDON_STATE_KIND_LOOPS,
	CORDON_STATE_KIND_WORKFLOWS,
	CORDON_STATE_KIND_STEPS,
	CORDON_STATE_KIND_APPROVALS,
	CORDON_STATE_KIND_SESSIONS,
	/* What `cordon gc` removes nothing of. */
	CORDON_STATE_KIND_STAGING,
	CORDON_STATE_KIND_CHECKS,
	CORDON_STATE_KIND_PROJECTS,
	CORDON_STATE_KIND_AUDIT,
	CORDON_STATE_KIND_TOKENS,
	CORDON_STATE_KIND_TRUST,
	CORDON_STATE_KIND_CONFIRMED,
	CORDON_STATE_KIND_WRITTEN,
	CORDON_STATE_KIND_KEPT,
	CORDON_STATE_KIND_ATTESTATIONS,
	CORDON_STATE_KIND_SERVE,
	CORDON_STATE_KIND__MAX
} cordon_state_kind;

#define CORDON_STATE_FOREVER INT64_MAX

struct cordon_state_row {
	const char *dir;   /* below state/ */
	const char *alive; /* a file in an entry that its process locks; ".": the entry itself; NULL: it has no process */
	int64_t keep_ms;   /* how long `cordon gc` keeps what has ended; CORDON_STATE_FOREVER */
};

extern const struct cordon_state_row cordon_state_kinds[CORDON_STATE_KIND__MAX];

/* Opens the directory of a kind, and makes it when it is missing. */
int cordon_state_kind_open(const struct cordon_home *home, cordon_state_kind kind, int *ret_fd,
			   struct cordon_error *err);
/* Calls `each` with every name in the directory of a kind, until it returns something other than 0, which is returned.
 * Names have no order, and may begin with a dot. `each` may remove the entry. */
int cordon_state_kind_each(const struct cordon_home *home, cordon_state_kind kind,
			   int (*each)(void *data, int dir_fd, const char *name), void *data, struct cordon_error *err);
/* Whether a process holds an entry, which is open. */
bool cordon_state_kind_lives(cordon_state_kind kind, int entry_fd);

#endif
