/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a program in a sandbox as cordon_run() does, for callers that want its answer and not its streams. A process of
 * its own supervises the run, so that the streams of the caller stay as they are; the run ends with the caller.
 */
#ifndef CORDON_RUN_CAPTURED_H
#define CORDON_RUN_CAPTURED_H

#include "base/buf.h"
#include "base/error.h"

struct cordon_captured {
	int own_exit; /* the exit status that `cordon run` would have */
	cordon_run_state state;
	bool hit_memory;	   /* it used more memory than its limit allows */
	struct cordon_error error; /* why it was refused, or why cordon ended it */
};

/* What such a run has besides its spec. */
struct cordon_capture {
	const int *streams;  /* three: its standard streams, -1: /dev/null */
	const char *home;    /* where it keeps its state; NULL: where the caller does */
	uint64_t file_bytes; /* of a file that it writes; 0: no bound */
};

/* Returns 0 when the run has an end, whatever that is, and -errno when it could not even be supervised. The caller
 * sets limits in the spec, a time limit included. */
int cordon_run_apart(const struct cordon_run_spec *spec, const struct cordon_capture *how,
		     struct cordon_captured *ret_end, struct cordon_error *err);

/* The same for a program that gets a text on its standard input. `ret_out` and `ret_text` (standard error) get at
 * most their max; what comes beyond it is read and dropped. Either may be NULL. */
int cordon_run_captured(const struct cordon_run_spec *spec, const void *input, size_t n_input,
			struct cordon_buf *ret_out, struct cordon_buf *ret_text, struct cordon_captured *ret_end,
			struct cordon_error *err);

#endif
