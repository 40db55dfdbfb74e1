/* SPDX-License-Identifier: Apache-2.0 */
/* Many questions on standard input, one answer each on standard output: fast in bulk, prompt for a co-process. */
#ifndef CORDON_CLI_STREAM_H
#define CORDON_CLI_STREAM_H

#include "cli/cli.h"

#define CORDON_RECORD_MAX (1u << 20)

/* Appends the answer to one record (NUL-terminated; `len` tells whether there is a NUL inside it) to `out`. Returns 0
 * or -errno, which ends the stream. */
typedef int cordon_answer_fn(void *data, const char *record, size_t len, struct cordon_buf *out);

/*
 * Reads records ended by `separator` (the last one needs none) until the end of input. Questions that come quickly are
 * answered in batches; `begin` is called before each, so that nothing learnt for an earlier one is used. Answers are
 * written before waiting for more input, so that who asks one question gets its answer. Prints what went wrong; 0 when
 * every question was answered, else an exit code.
 */
int cordon_stream_run(const struct cordon_cli *cli, char separator, void (*begin)(void *data), cordon_answer_fn *answer,
		      void *data);

/* "WORD NAME" and the separator; the name raw before a NUL, escaped (base/text.h) before a newline. */
int cordon_stream_line(struct cordon_buf *out, const char *word, const char *name, size_t len, char separator);
/* A JSON value and a newline; takes the reference. */
int cordon_stream_json(struct cordon_buf *out, json_t *value);

#endif
