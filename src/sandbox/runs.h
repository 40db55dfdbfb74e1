/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which runs live: one small file each in state/runs, locked by its supervisor. A file nobody holds the lock of is
 * a run that died; the next run with an overlapping root, or `cordon gc`, removes it and what it left.
 *
 * Runs whose roots overlap must agree on what they share: a later one is refused unless everything that an earlier
 * one protects in the later one's root is protected by the later one too.
 */
#ifndef CORDON_SANDBOX_RUNS_H
#define CORDON_SANDBOX_RUNS_H

#include "base/home.h"
#include "sandbox/plan.h"

/* The lower tier keeps temporary files on the host, in a directory of this name and the run's id. */
#define CORDON_TIER_TMP "/tmp/cordon-"

struct cordon_run_record {
	int dir_fd;
	int fd;	      /* holds the lock */
	int state_fd; /* the home's, borrowed */
	char id[CORDON_UUID_SIZE];
};

#define CORDON_RUN_RECORD_NONE                                                                                         \
	{                                                                                                              \
		.dir_fd = -1, .fd = -1                                                                                 \
	}

/* kind conflict (-EBUSY) when a live run protects what this one would not. */
int cordon_runs_enter(const struct cordon_home *home, const char *run_id, const struct cordon_policy *policy,
		      struct cordon_run_record *ret_record, struct cordon_error *err);
/* Before the home is closed. */
void cordon_runs_leave(struct cordon_run_record *record);

struct cordon_gc_counts {
	size_t records;
	size_t cgroups;
	size_t directories;
	size_t live;
};

/* Removes what dead runs left: records, cgroups, temporary directories. Never touches a live one. */
int cordon_runs_gc(const struct cordon_home *home, struct cordon_gc_counts *ret_counts, struct cordon_error *err);

#endif
