/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that is all released at once: for data that is built up and then only read. */
#ifndef CORDON_BASE_ARENA_H
#define CORDON_BASE_ARENA_H

#include <stdarg.h>

#include "base/util.h"

struct cordon_arena;

/* NULL without memory. What is allocated is zeroed and aligned for any object. */
struct cordon_arena *cordon_arena_new(void);
struct cordon_arena *cordon_arena_free(struct cordon_arena *arena);
void *cordon_arena_alloc(struct cordon_arena *arena, size_t size);
char *cordon_arena_strdup(struct cordon_arena *arena, const char *s);
char *cordon_arena_vprintf(struct cordon_arena *arena, const char *fmt, va_list args) CORDON_PRINTF(2, 0);

#endif
