/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The directories in which steps run. An attempt works in a copy of the run directory, and the step sees the copy at the
 * run directory's place. When the step has finished, one rename puts the copy into the place of the run directory; when it
 * fails or is never finished, the copy is removed. So the run directory has what finished steps left, each once.
 *
 *     <private>/work/runs/<run>/            the run directory
 *     <private>/work/runs/.<run>/<n>/       the copy of attempt n
 *
 * INVARIANT: agents of earlier steps and of other runs may have written everything below the private workspace but these
 * directories. Everything is opened by component, and no link is followed.
 */
#ifndef CORDON_FLOW_STAGE_H
#define CORDON_FLOW_STAGE_H

#include "base/error.h"

#define CORDON_STAGE_IDENTITY_SIZE 64

struct cordon_flow_stage {
	int runs_fd; /* <private>/work/runs */
	int own_fd;  /* .<run> */
	int dir_fd;  /* the copy of the attempt, or -1 */
	char id[48];
	char own[CORDON_PATH_MAX]; /* .<run>, on the host */
	char dir[CORDON_PATH_MAX]; /* the copy, on the host; "" without one */
};

/* clang-format off */
#define CORDON_FLOW_STAGE_NONE { .runs_fd = -1, .own_fd = -1, .dir_fd = -1 }
/* clang-format on */
void cordon_flow_stage_done(struct cordon_flow_stage *stage);

/* Makes the directories of a run that are missing. */
int cordon_flow_stage_open(const char *private_path, const char *run_id, struct cordon_flow_stage *ret_stage,
			   struct cordon_error *err);
/* Removes copies of earlier attempts, and makes that of attempt n. */
int cordon_flow_stage_copy(struct cordon_flow_stage *stage, uint64_t n, struct cordon_error *err);
/* Makes what the step wrote durable, and says which directory it is. */
int cordon_flow_stage_seal(struct cordon_flow_stage *stage, char ret_identity[static CORDON_STAGE_IDENTITY_SIZE],
			   struct cordon_error *err);
/* Puts the copy of attempt n into the place of the run directory. May be called again: nothing happens when the run
 * directory is the one with this identity already. */
int cordon_flow_stage_commit(struct cordon_flow_stage *stage, uint64_t n, const char *identity,
			     struct cordon_error *err);
/* Removes all copies. */
void cordon_flow_stage_clear(struct cordon_flow_stage *stage);
/* The same and the directories of cordon beside the run directory, when the run has ended. */
void cordon_flow_stage_remove(struct cordon_flow_stage *stage);

#endif
