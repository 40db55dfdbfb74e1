/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loops as others see them: whoever has the id of a loop can start it without waiting for it, look at it, and stop it. The
 * id is made of the root and the PRDs, so the loop that goes on after a kill has the id of the one that was killed.
 */
#ifndef CORDON_LOOP_CONTROL_H
#define CORDON_LOOP_CONTROL_H

#include <jansson.h>

#include "base/home.h"

#define CORDON_LOOP_ID_SIZE 33
#define CORDON_LOOP_PRD "prd.json" /* the default of --prd */

/* The PRD by its own path, allocated: what the loop writes and the sandbox protects must be one file. Errors: not_found. */
int cordon_loop_prd_path(const char *name, char **ret_path, struct cordon_error *err);

/* The id of the loop over these PRDs. `root` and the paths are canonical; their order does not matter. */
int cordon_loop_id(const char *root, const char *const *prds, size_t n, char ret_id[static CORDON_LOOP_ID_SIZE],
		   struct cordon_error *err);
/* Starts `cordon loop` with these arguments, `argv[0]` included, as a process that outlives the caller. What it says about
 * a failure is in the status. *ret_fd is a descriptor of the process, which is readable when it has ended. kind
 * conflict when the loop runs already. */
int cordon_loop_detach(const struct cordon_home *home, const char *id, char *const *argv, int *ret_fd, pid_t *ret_pid,
		       struct cordon_error *err);
/* Asks a loop to end as Ctrl-C does: views of agents that run are kept. Does nothing if it does not run. */
int cordon_loop_stop(const struct cordon_home *home, const char *id, struct cordon_error *err);
/*
 * Gives a story that has failed all its attempts back; one that is parked waits for its turn again. A loop that runs takes it
 * within a moment, and any other when it goes on: it then does this story and no other that was parked. `prd` may be NULL if only
 * one PRD of the loop has the story. Errors: not_found; usage; conflict for a story that has not failed.
 */
int cordon_loop_retry(const struct cordon_home *home, const char *id, const char *prd, const char *story,
		      struct cordon_error *err);

/*
 * {"loop_id", "state", "pid", "root", "prds", "summary", "total", "passed", "parked", "iterations", "workers", "violations",
 *  "began_at", "updated_at", "stories", "truncated", "kept_views", "error"}
 *
 * `pid` is that of the process that runs the loop, or ran it last. `state` is running, done, or stopped: it can go on. `workers` are the agents that run, with the story of each. Violations
 * are counted when a call ends. -ENOENT with kind not_found for a loop that never began.
 */
int cordon_loop_status(const struct cordon_home *home, const char *id, json_t **ret_status, struct cordon_error *err);
/*
 * The same with all stories and for people who look at it: `stopping`, `estimate_ms` (left, if the loop runs and one is known),
 * `workers_max` and `crew`; and of each story `dependencies`, `since`, `duration_ms` (of all its calls), `last` (the last line that
 * its agent wrote, while it works) and `calls`, the oldest first:
 *
 * {"n", "attempt", "state", "began_at", "ended_at", "duration_ms", "violations", "exit_code", "run_id", "files", "note", "commit", "log",
 *  "crew", "job"}
 *
 * `state` is working, checking, accepted, passed, failed or interrupted; `crew` and `job` name the run of the agent (job/crew.h).
 */
int cordon_loop_board(const struct cordon_home *home, const char *id, json_t **ret_board, struct cordon_error *err);
/* Opens a log of a call, which `log` of the call names, to read it: "prompt.txt", "output.log", "error.log" or "combined.log". */
int cordon_loop_log(const struct cordon_home *home, const char *id, const char *log, const char *name, int *ret_fd,
		    struct cordon_error *err);
/* An array of the status of all loops, without their stories. */
int cordon_loop_list(const struct cordon_home *home, json_t **ret_list, struct cordon_error *err);
/* Removes journals and logs of loops that ended more than max_age_ms ago; views have rules of their own (view/view.h). One that can
 * go on stays. */
int cordon_loop_gc(const struct cordon_home *home, uint64_t max_age_ms, size_t *ret_removed, struct cordon_error *err);
/* The first line that the process of a loop wrote about a failure, as an error; false when there is none. */
bool cordon_loop_failure(const struct cordon_home *home, const char *id, struct cordon_error *ret_err);

#endif
