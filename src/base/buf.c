/* SPDX-License-Identifier: Apache-2.0 */
/* A growing string with a hard maximum. */
#include <stdio.h>

#include "base/buf.h"

void cordon_buf_done(struct cordon_buf *buf)
{
	free(buf->data);
	*buf = (struct cordon_buf){ .max = buf->max };
}

char *cordon_buf_room(struct cordon_buf *buf, size_t n)
{
	size_t need, cap;
	char *data;

	if (n > buf->max || buf->len > buf->max - n)
		return NULL;
	need = buf->len + n + 1;
	if (need > buf->cap) {
		cap = buf->cap ? buf->cap * 2 : 64;
		if (cap < need)
			cap = need;
		data = realloc(buf->data, cap);
		if (!data)
			return NULL;
		buf->data = data;
		buf->cap = cap;
		buf->data[buf->len] = '\0';
	}
	return buf->data + buf->len;
}

int cordon_buf_add(struct cordon_buf *buf, const void *bytes, size_t n)
{
	char *room = cordon_buf_room(buf, n);

	if (!room)
		return n > buf->max || buf->len > buf->max - n ? -E2BIG : -ENOMEM;
	if (n)
		memcpy(room, bytes, n);
	buf->len += n;
	buf->data[buf->len] = '\0';
	return 0;
}

int cordon_buf_adds(struct cordon_buf *buf, const char *s)
{
	return cordon_buf_add(buf, s, strlen(s));
}

int cordon_buf_addc(struct cordon_buf *buf, char c)
{
	return cordon_buf_add(buf, &c, 1);
}

int cordon_buf_addv(struct cordon_buf *buf, const char *fmt, va_list args)
{
	va_list again;
	char *room;
	int n;

	va_copy(again, args);
	n = vsnprintf(NULL, 0, fmt, again);
	va_end(again);
	if (n < 0)
		return -EINVAL;
	room = cordon_buf_room(buf, (size_t)n);
	if (!room)
		return (size_t)n > buf->max || buf->len > buf->max - (size_t)n ? -E2BIG : -ENOMEM;
	vsnprintf(room, (size_t)n + 1, fmt, args);
	buf->len += (size_t)n;
	return 0;
}

int cordon_buf_addf(struct cordon_buf *buf, const char *fmt, ...)
{
	va_list args;
	int r;

	va_start(args, fmt);
	r = cordon_buf_addv(buf, fmt, args);
	va_end(args);
	return r;
}

void cordon_buf_reset(struct cordon_buf *buf)
{
	buf->len = 0;
	if (buf->data)
		buf->data[0] = '\0';
}

char *cordon_buf_steal(struct cordon_buf *buf)
{
	char *data;

	if (!cordon_buf_room(buf, 0))
		return NULL;
	data = buf->data;
	buf->data = NULL;
	buf->len = buf->cap = 0;
	return data;
}

const char *cordon_buf_next_string(const struct cordon_buf *buf, size_t *at)
{
	const char *s = buf->data ? buf->data + *at : NULL;
	const char *end = s && *at < buf->len ? memchr(s, '\0', buf->len - *at) : NULL;

	if (!end)
		return NULL;
	*at += (size_t)(end - s) + 1;
	return s;
}
