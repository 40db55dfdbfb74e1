/* SPDX-License-Identifier: Apache-2.0 */
/* An arena: memory that is released all at once. */
#include <stdalign.h>
#include <stdio.h>

#include "base/arena.h"

#define CHUNK_SIZE ((size_t)16 << 10)

struct chunk {
	struct chunk *next;
	size_t used;
	size_t size;
	alignas(max_align_t) unsigned char data[];
};

struct cordon_arena {
	struct chunk *chunks;
};

struct cordon_arena *cordon_arena_new(void)
{
	return calloc(1, sizeof(struct cordon_arena));
}

struct cordon_arena *cordon_arena_free(struct cordon_arena *arena)
{
	struct chunk *next;

	if (!arena)
		return NULL;
	for (struct chunk *c = arena->chunks; c; c = next) {
		next = c->next;
		free(c);
	}
	free(arena);
	return NULL;
}

void *cordon_arena_alloc(struct cordon_arena *arena, size_t size)
{
	struct chunk *c = arena->chunks;
	void *at;

	if (size > SIZE_MAX / 2)
		return NULL;
	size = (size + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
	if (!c || c->size - c->used < size) {
		size_t room = size > CHUNK_SIZE ? size : CHUNK_SIZE;

		c = calloc(1, sizeof(*c) + room);
		if (!c)
			return NULL;
		c->size = room;
		c->next = arena->chunks;
		arena->chunks = c;
	}
	at = c->data + c->used;
	c->used += size;
	return at;
}

void *cordon_arena_grow(struct cordon_arena *arena, const void *old, size_t n, size_t cap, size_t size)
{
	void *bigger = cap > SIZE_MAX / 2 / size ? NULL : cordon_arena_alloc(arena, cap * size);

	if (bigger && n)
		memcpy(bigger, old, n * size);
	return bigger;
}

char *cordon_arena_strdup(struct cordon_arena *arena, const char *s)
{
	size_t n = strlen(s) + 1;
	char *copy = cordon_arena_alloc(arena, n);

	if (copy)
		memcpy(copy, s, n);
	return copy;
}

char *cordon_arena_vprintf(struct cordon_arena *arena, const char *fmt, va_list args)
{
	va_list again;
	char *text;
	int n;

	va_copy(again, args);
	n = vsnprintf(NULL, 0, fmt, again);
	va_end(again);
	if (n < 0)
		return NULL;
	text = cordon_arena_alloc(arena, (size_t)n + 1);
	if (text)
		vsnprintf(text, (size_t)n + 1, fmt, args);
	return text;
}

char *cordon_arena_printf(struct cordon_arena *arena, const char *fmt, ...)
{
	va_list args;
	char *text;

	va_start(args, fmt);
	text = cordon_arena_vprintf(arena, fmt, args);
	va_end(args);
	return text;
}
