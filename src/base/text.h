/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8, and escaping of hostile bytes for a terminal, a log or JSON. */
#ifndef CORDON_BASE_TEXT_H
#define CORDON_BASE_TEXT_H

#include "base/buf.h"

/* Length of the valid UTF-8 character at s (1 to 4), or 0 when the bytes there are not one. No overlong forms,
 * no surrogates. */
size_t cordon_utf8_char(const char *s, size_t n);
/* Decodes the first n bytes (1 to 4), which must be a valid character. */
static inline uint32_t cordon_utf8_decode(const char *s, size_t n)
{
	const unsigned char *u = (const unsigned char *)s;

	switch (n) {
	case 1:
		return u[0];
	case 2:
		return (uint32_t)(u[0] & 0x1f) << 6 | (u[1] & 0x3f);
	case 3:
		return (uint32_t)(u[0] & 0x0f) << 12 | (uint32_t)(u[1] & 0x3f) << 6 | (u[2] & 0x3f);
	default:
		return (uint32_t)(u[0] & 0x07) << 18 | (uint32_t)(u[1] & 0x3f) << 12 | (uint32_t)(u[2] & 0x3f) << 6 |
		       (u[3] & 0x3f);
	}
}

/* Put before every line of an agent's output where it is shown together with text of ours. */
#define CORDON_AGENT_MARK "| "

bool cordon_utf8_valid(const char *s, size_t n);

/*
 * Appends `s` as valid UTF-8 on one line: control characters (C0, DEL, C1), line and paragraph separators, format characters (bidi
 * controls among them), characters that are not seen (base/invisible.h) and invalid bytes become \n, \t, \r, \e, \xNN or \u{NNNN};
 * a backslash becomes \\.
 */
int cordon_text_escape(struct cordon_buf *buf, const char *s, size_t n);
/* The same between quotation marks, which the text can't close: one in it becomes \". For text of somebody else in a sentence of ours. */
int cordon_text_quote(struct cordon_buf *buf, const char *s, size_t n);
/* Like cordon_text_escape() for text of several lines: newlines, tabs and backslashes stay as they are. */
int cordon_text_escape_lines(struct cordon_buf *buf, const char *s, size_t n);
/* Like cordon_text_escape_lines(), with `mark` before every line; a line begins where `buf` is empty or ends with a
 * newline. So nobody takes the text of somebody else for text of ours. */
int cordon_text_mark_lines(struct cordon_buf *buf, const char *mark, const char *s, size_t n);
/* Like cordon_text_escape(), into a fixed buffer, cut at a whole character; for error messages and code that must
 * not allocate. */
void cordon_text_escape_fixed(char *dst, size_t size, const char *s, size_t n);
/* Whether escaping would change nothing but backslashes: the text is safe to show, or was escaped before. */
bool cordon_text_safe(const char *s, size_t n);
/* How many bytes of escaped text fit into so many columns of a terminal. A character that may be two columns wide counts as two. */
size_t cordon_text_fit(const char *s, size_t n, size_t columns);

#endif
