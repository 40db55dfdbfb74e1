/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8, and escaping of hostile bytes for a terminal, a log or JSON. */
#include <stdio.h>

#include "base/invisible.h"
#include "base/text.h"

size_t cordon_utf8_char(const char *s, size_t n)
{
	const unsigned char *u = (const unsigned char *)s;
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t len;
	uint32_t c;

	if (n == 0)
		return 0;
	if (u[0] < 0x80)
		return 1;
	if (u[0] >= 0xc2 && u[0] <= 0xdf)
		len = 2;
	else if ((u[0] & 0xf0) == 0xe0)
		len = 3;
	else if (u[0] >= 0xf0 && u[0] <= 0xf4)
		len = 4;
	else
		return 0;
	if (n < len)
		return 0;
	for (size_t i = 1; i < len; i++)
		if ((u[i] & 0xc0) != 0x80)
			return 0;
	c = cordon_utf8_decode(s, len);
	if (c < least[len] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
		return 0;
	return len;
}

bool cordon_utf8_valid(const char *s, size_t n)
{
	for (size_t i = 0; i < n;) {
		size_t len = cordon_utf8_char(s + i, n - i);

		if (!len)
			return false;
		i += len;
	}
	return true;
}

/* Whether a character could move the cursor, start a new line, reorder the text on a screen, or not be seen at all. */
static bool is_unsafe(uint32_t c)
{
	size_t low = 0, high = CORDON_ARRAY_SIZE(cordon_invisible);

	if (c >= 0x20 && c < 0x7f)
		return false;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (c > cordon_invisible[middle].last)
			low = middle + 1;
		else if (c < cordon_invisible[middle].first)
			high = middle;
		else
			return true;
	}
	return false;
}

bool cordon_text_safe(const char *s, size_t n)
{
	for (size_t i = 0; i < n;) {
		size_t len = cordon_utf8_char(s + i, n - i);

		if (!len || is_unsafe(cordon_utf8_decode(s + i, len)))
			return false;
		i += len;
	}
	return true;
}

/* Writes the safe form of the character at s into out and returns its length in bytes of s. */
static size_t escape_one(const char *s, size_t n, char out[static 16], size_t *ret_len)
{
	size_t len = cordon_utf8_char(s, n);
	uint32_t c;

	if (!len) {
		*ret_len = (size_t)snprintf(out, 16, "\\x%02x", (unsigned int)(unsigned char)*s);
		return 1;
	}
	c = cordon_utf8_decode(s, len);
	if (c == '\\')
		*ret_len = (size_t)snprintf(out, 16, "\\\\");
	else if (!is_unsafe(c)) {
		memcpy(out, s, len);
		*ret_len = len;
	} else if (c == '\n' || c == '\t' || c == '\r' || c == 0x1b)
		*ret_len = (size_t)snprintf(out, 16, "\\%c", c == '\n' ? 'n' : c == '\t' ? 't' : c == '\r' ? 'r' : 'e');
	else if (c < 0x80)
		*ret_len = (size_t)snprintf(out, 16, "\\x%02x", (unsigned int)c);
	else
		*ret_len = (size_t)snprintf(out, 16, "\\u{%x}", (unsigned int)c);
	return len;
}

int cordon_text_escape(struct cordon_buf *buf, const char *s, size_t n)
{
	size_t before = buf->len;

	for (size_t i = 0; i < n;) {
		char out[16];
		size_t len;
		int r;

		i += escape_one(s + i, n - i, out, &len);
		r = cordon_buf_add(buf, out, len);
		if (r < 0) {
			buf->len = before;
			if (buf->data)
				buf->data[before] = '\0';
			return r;
		}
	}
	return cordon_buf_add(buf, "", 0);
}

int cordon_text_quote(struct cordon_buf *buf, const char *s, size_t n)
{
	size_t before = buf->len;
	int r = cordon_buf_addc(buf, '"');

	for (size_t i = 0, len; r == 0 && i < n; i += len) {
		const char *end = memchr(s + i, '"', n - i);

		len = end ? (size_t)(end - (s + i)) : n - i;
		r = cordon_text_escape(buf, s + i, len);
		if (r == 0 && end) {
			r = cordon_buf_adds(buf, "\\\"");
			len++;
		}
	}
	if (r == 0)
		r = cordon_buf_addc(buf, '"');
	if (r < 0) {
		buf->len = before;
		if (buf->data)
			buf->data[before] = '\0';
	}
	return r;
}

void cordon_text_escape_fixed(char *dst, size_t size, const char *s, size_t n)
{
	size_t at = 0;

	for (size_t i = 0; i < n;) {
		char out[16];
		size_t len;

		i += escape_one(s + i, n - i, out, &len);
		if (at + len >= size)
			break;
		memcpy(dst + at, out, len);
		at += len;
	}
	if (size)
		dst[at] = '\0';
}

int cordon_text_escape_lines(struct cordon_buf *buf, const char *s, size_t n)
{
	int r = 0;

	for (size_t i = 0, len; r == 0 && i < n; i += len) {
		bool plain = s[i] == '\n' || s[i] == '\t' || s[i] == '\\';

		len = cordon_utf8_char(s + i, n - i);
		len = len ? len : 1;
		r = plain ? cordon_buf_addc(buf, s[i]) : cordon_text_escape(buf, s + i, len);
	}
	return r;
}

int cordon_text_mark_lines(struct cordon_buf *buf, const char *mark, const char *s, size_t n)
{
	int r = 0;

	for (size_t i = 0, len; r == 0 && i < n; i += len) {
		const char *end = memchr(s + i, '\n', n - i);

		len = end ? (size_t)(end - (s + i)) + 1 : n - i;
		if (buf->len == 0 || buf->data[buf->len - 1] == '\n')
			r = cordon_buf_adds(buf, mark);
		if (r == 0)
			r = cordon_text_escape_lines(buf, s + i, len);
	}
	return r;
}

/* Scripts of East Asia and pictures. Terminals do not agree about all of them: those in doubt count as wide. */
static bool is_wide(uint32_t c)
{
	return (c >= 0x1100 && c <= 0x115f) || (c >= 0x231a && c <= 0x23ff) || (c >= 0x25fd && c <= 0x27bf) ||
	       (c >= 0x2b1b && c <= 0x2b55) || c >= 0x2e80;
}

size_t cordon_text_fit(const char *s, size_t n, size_t columns)
{
	size_t at = 0;

	while (at < n) {
		size_t len = cordon_utf8_char(s + at, n - at);
		size_t width = len && is_wide(cordon_utf8_decode(s + at, len)) ? 2 : 1;

		if (width > columns)
			break;
		columns -= width;
		at += len ? len : 1;
	}
	return at;
}
