/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list of live runs: each has a small file in state/runs, which its supervisor locks. A file that nobody locks
 * belongs to a run that died; the next run with an overlapping root, or `cordon gc`, removes the file and what the run
 * has left.
 *
 * Runs whose roots overlap must agree on what is protected: a later run is refused unless it can't change anything that
 * an earlier one protects in the later one's root (cordon_policy_holds()). Paths of the built-in list count only when
 * the later run does not protect the built-in list itself. A run in a view neither asks nor is asked: what it writes goes
 * into a layer of its own, so it shares nothing with another run that either could change.
 */
#ifndef CORDON_RUN_LIVE_H
#define CORDON_RUN_LIVE_H

#include "base/home.h"
#include "sandbox/plan/plan.h"

/* The lower tier has its temporary files on the host, in a directory of this name with the run's id behind it. */
#define CORDON_TIER_TMP "/tmp/cordon-"

struct cordon_live_run {
	int dir_fd;
	int fd;	      /* holds the lock */
	int state_fd; /* borrowed from the home */
	char id[CORDON_UUID_SIZE];
};

/* clang-format off */
#define CORDON_LIVE_RUN_NONE { .dir_fd = -1, .fd = -1 }
/* clang-format on */

/* Adds a run to the list. An error of kind conflict (-EBUSY) when a live run protects what this one would not
 * protect. */
int cordon_live_enter(const struct cordon_home *home, const char *run_id, const struct cordon_policy *policy, bool view,
		      struct cordon_live_run *ret_record, struct cordon_error *err);
/* Removes a run from the list. Call it before the home is closed. */
void cordon_live_leave(struct cordon_live_run *record);

struct cordon_gc_counts {
	size_t records;
	size_t cgroups;
	size_t directories;
	size_t live;
};

/* Removes what dead runs have left: records, cgroups, temporary directories. Never touches those of a live run. */
int cordon_live_gc(const struct cordon_home *home, struct cordon_gc_counts *ret_counts, struct cordon_error *err);

#endif
