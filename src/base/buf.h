/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A growing string with a hard maximum. `data` is NUL-terminated whenever it is not NULL.
 * INVARIANT: len < cap when cap > 0; len <= max. A failed append changes nothing.
 * Appends return 0, -ENOMEM, or -E2BIG when `max` would be exceeded.
 */
#ifndef CORDON_BASE_BUF_H
#define CORDON_BASE_BUF_H

#include <stdarg.h>

#include "base/util.h"

struct cordon_buf {
	char *data;
	size_t len;
	size_t cap;
	size_t max;
};

/* `struct cordon_buf b = CORDON_BUF(4096);` */
/* clang-format off */
#define CORDON_BUF(maximum) { .max = (maximum) }
/* clang-format on */
#define autobuf CORDON_CLEANUP(cordon_buf_done)

void cordon_buf_done(struct cordon_buf *buf);
int cordon_buf_add(struct cordon_buf *buf, const void *bytes, size_t n);
int cordon_buf_adds(struct cordon_buf *buf, const char *s);
int cordon_buf_addc(struct cordon_buf *buf, char c);
int cordon_buf_addf(struct cordon_buf *buf, const char *fmt, ...) CORDON_PRINTF(2, 3);
int cordon_buf_addv(struct cordon_buf *buf, const char *fmt, va_list args) CORDON_PRINTF(2, 0);
/* Makes room for `n` more bytes after len and returns where to write them, or NULL. */
char *cordon_buf_room(struct cordon_buf *buf, size_t n);
void cordon_buf_reset(struct cordon_buf *buf);
/* Returns the string, which the caller must free ("" is allocated when empty); the buffer is empty afterwards. NULL
 * without memory. */
char *cordon_buf_steal(struct cordon_buf *buf);

/* The next string of a list of strings, each with a NUL at its end, from *at on; NULL at the end, or when the NUL is
 * missing. */
const char *cordon_buf_next_string(const struct cordon_buf *buf, size_t *at);

#endif
