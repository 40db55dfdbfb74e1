/* SPDX-License-Identifier: Apache-2.0 */
/* An arena: memory that is released all at once, for data that is built up and then only read. */
#ifndef CORDON_BASE_ARENA_H
#define CORDON_BASE_ARENA_H

#include <stdarg.h>

#include "base/util.h"

struct cordon_arena;

/* Functions return NULL without memory. The memory is zeroed and aligned for any object. */
struct cordon_arena *cordon_arena_new(void);
struct cordon_arena *cordon_arena_free(struct cordon_arena *arena);
void *cordon_arena_alloc(struct cordon_arena *arena, size_t size);
/* Returns a larger array of `cap` entries of `size` bytes, with the first n copied from the old one. The old array
 * is released with the arena. */
void *cordon_arena_grow(struct cordon_arena *arena, const void *old, size_t n, size_t cap, size_t size);
char *cordon_arena_strdup(struct cordon_arena *arena, const char *s);
char *cordon_arena_printf(struct cordon_arena *arena, const char *fmt, ...) CORDON_PRINTF(2, 3);
char *cordon_arena_vprintf(struct cordon_arena *arena, const char *fmt, va_list args) CORDON_PRINTF(2, 0);

#endif
