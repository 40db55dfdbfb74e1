/* SPDX-License-Identifier: Apache-2.0 */
/* Clean-up attributes, small macros and bounded string helpers that every module uses. */
#ifndef CORDON_BASE_UTIL_H
#define CORDON_BASE_UTIL_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/banned.h"

#define CORDON_CLEANUP(fn) __attribute__((cleanup(fn)))
#define CORDON_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
/* For a large buffer that is written before it is read, in a function that is called often: the compiler's zeroing
 * of the stack would cost more than the function itself. */
#define CORDON_UNCLEARED __attribute__((uninitialized))
#define CORDON_ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

static inline void cordon_freep(void *p)
{
	free(*(void **)p);
	*(void **)p = NULL;
}

/* Closes the descriptor and sets it to -1; keeps errno. */
static inline void cordon_closep(int *fd)
{
	if (*fd >= 0) {
		int saved = errno;
		close(*fd);
		errno = saved;
	}
	*fd = -1;
}

/* `autofree char *x = NULL;` and `autofd int fd = -1;` are released at the end of their scope. */
#define autofree CORDON_CLEANUP(cordon_freep)
#define autofd CORDON_CLEANUP(cordon_closep)

static inline int cordon_steal_fd(int *fd)
{
	int r = *fd;
	*fd = -1;
	return r;
}

/* Closes every descriptor from 3 on except those in `kept`, which may contain -1 and may be in any order. Safe in a
 * child that was just cloned. */
void cordon_close_except(const int *kept, size_t n);

/* Writes a number in decimal digits into `buf`, and returns where they begin in it. Async-signal-safe, which snprintf is
 * not. */
#define CORDON_DIGITS_SIZE 24
const char *cordon_digits(uint64_t value, char buf[static CORDON_DIGITS_SIZE]) __attribute__((warn_unused_result));

/* Joins several strings; the last argument is NULL. -ENAMETOOLONG when the result does not fit, and then `dst` is
 * "". Async-signal-safe. */
int cordon_concat(char *dst, size_t size, ...) __attribute__((sentinel));

/* "/proc/self/fd/N". Async-signal-safe. */
#define CORDON_FD_PATH_SIZE 40
const char *cordon_fd_path(int fd, char buf[static CORDON_FD_PATH_SIZE]);

#define cordon_steal_ptr(p)                                                                                            \
	({                                                                                                             \
		__typeof__(p) steal_from_ = (p);                                                                       \
		__typeof__(*steal_from_) steal_tmp_ = *steal_from_;                                                    \
		*steal_from_ = NULL;                                                                                   \
		steal_tmp_;                                                                                            \
	})

static inline bool cordon_streq(const char *a, const char *b)
{
	return strcmp(a, b) == 0;
}

/* Copies `n` bytes and a NUL into dst of `size`; -ENAMETOOLONG (dst untouched) when it does not fit. */
int cordon_copy(char *dst, size_t size, const char *src, size_t n);

/* Parses all of `s` as a decimal number within [min, max]; -EINVAL or -ERANGE. */
int cordon_parse_u64(const char *s, uint64_t min, uint64_t max, uint64_t *ret_value);
/* "90", "90s", "1500ms", "2m", "1h" to milliseconds; a bare number counts `bare_ms` each. */
int cordon_parse_duration(const char *s, uint64_t bare_ms, uint64_t *ret_ms);
/* "4096", "512k", "64M", "2G" (powers of 1024, an optional B or iB) to bytes. */
int cordon_parse_size(const char *s, uint64_t *ret_bytes);

/* A random version 4 UUID in lower case; `ret` holds 37 bytes. */
#define CORDON_UUID_SIZE 37
int cordon_uuid_new(char ret[static CORDON_UUID_SIZE]);
bool cordon_uuid_valid(const char *s);

#endif
