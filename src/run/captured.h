/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a program in a sandbox as cordon_run() does, for callers that want its answer and not its streams: it gets a text on
 * its standard input, and what it writes is captured. A process of its own supervises the run, so that the streams of the
 * caller stay as they are.
 */
#ifndef CORDON_RUN_CAPTURED_H
#define CORDON_RUN_CAPTURED_H

#include "base/buf.h"
#include "base/error.h"

struct cordon_captured {
	int own_exit; /* the exit status that `cordon run` would have */
	cordon_run_state state;
	struct cordon_error error; /* why it was refused, or why cordon ended it */
};

/* `ret_out` and `ret_text` (standard error) get at most their max; what comes beyond it is read and dropped. Either may be
 * NULL. Returns 0 when the run has an end, whatever that is, and -errno when it could not even be supervised. The caller
 * sets limits in the spec, a time limit included. */
int cordon_run_captured(const struct cordon_run_spec *spec, const void *input, size_t n_input,
			struct cordon_buf *ret_out, struct cordon_buf *ret_text, struct cordon_captured *ret_end,
			struct cordon_error *err);

#endif
