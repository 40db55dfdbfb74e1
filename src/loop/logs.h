/* SPDX-License-Identifier: Apache-2.0 */
/* The logs of one call of the agent: prompt.txt, output.log, error.log, combined.log in state/loops/<key>/logs/<worker>. */
#ifndef CORDON_LOOP_LOGS_H
#define CORDON_LOOP_LOGS_H

#include "base/buf.h"
#include "base/error.h"
#include "loop/loop.h"

#define CORDON_LOOP_LOG_MAX ((size_t)16 << 20) /* bytes of each */

struct cordon_loop_logs {
	int dir_fd;
	int fds[3];	/* output, error, combined */
	size_t size[3]; /* written so far */
	char name[192]; /* of the worker: the story's id and the number of the call */
};

/* clang-format off */
#define CORDON_LOOP_LOGS_NONE { .dir_fd = -1, .fds = { -1, -1, -1 } }
/* clang-format on */

int cordon_loop_logs_open(int loop_fd, const char *story, uint64_t n, const struct cordon_buf *prompt,
			  struct cordon_loop_logs *ret_logs, struct cordon_error *err);
/* The agent wrote to its standard output (1) or error (2). What does not fit is left out. */
void cordon_loop_logs_add(struct cordon_loop_logs *logs, int stream, const char *bytes, size_t n);
void cordon_loop_logs_done(struct cordon_loop_logs *logs);
/* Keeps the last line of these bytes that is not empty, escaped and cut; without one `ret` stays as it is. */
void cordon_loop_last_line(const char *bytes, size_t n, char ret[static CORDON_LOOP_LINE_MAX + 1]);
/* The same of what the call with these logs has written so far. */
void cordon_loop_logs_last(int loop_fd, const char *name, char ret[static CORDON_LOOP_LINE_MAX + 1]);
/* Opens a log of the call to read it: "prompt.txt", "output.log", "error.log" or "combined.log". */
int cordon_loop_logs_read(int loop_fd, const char *name, const char *log, int *ret_fd);
/* Copies them to DIR/<worker>, where whatever has these names is replaced. */
int cordon_loop_logs_publish(const struct cordon_loop_logs *logs, const char *dir, struct cordon_error *err);
/* Removes what earlier loops left. */
void cordon_loop_logs_clear(int loop_fd);

#endif
