/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers many questions from standard input, one answer each on standard output: fast in bulk, and without delay for a
 * co-process.
 */
#ifndef CORDON_CLI_STREAM_H
#define CORDON_CLI_STREAM_H

#include "cli/cli.h"

#define CORDON_QUESTION_MAX (1u << 20) /* bytes of one question */

/* Appends the answer to one question (NUL-terminated; `len` shows whether it has a NUL inside) to `out`. Returns 0 or
 * -errno, which ends the stream. */
typedef int cordon_answer_fn(void *data, const char *question, size_t len, struct cordon_buf *out);

/* Reads questions that end with `separator` (the last one needs none) until the end of input. Questions that arrive
 * quickly are answered in batches. Calls `begin` before each batch, so that no answer uses what was read for an earlier
 * batch. Writes all answers before it waits for more input, so that a caller that asks one question gets its answer.
 * Prints errors. Returns 0 when every question was answered, else an exit code. */
int cordon_stream_run(const struct cordon_cli *cli, char separator, void (*begin)(void *data), cordon_answer_fn *answer,
		      void *data);

/* Appends "WORD NAME" and the separator. The name is raw if the separator is NUL, and escaped (base/text.h) if it is a
 * newline. */
int cordon_stream_line(struct cordon_buf *out, const char *word, const char *name, size_t len, char separator);
/* Appends a JSON value and a newline; takes the reference. */
int cordon_stream_json(struct cordon_buf *out, json_t *value);

#endif
