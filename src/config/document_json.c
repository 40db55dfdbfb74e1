/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads JSON into a document. jansson checks the text, strictly. Only text that it accepted is scanned again here,
 * for the places that jansson does not keep. So the scanner may be simple, but it stays inside the text whatever
 * that contains.
 */
#include <jansson.h>

#include "config/document_build.h"

struct scanner {
	struct cordon_builder *builder;
	const char *text;
	size_t len;
	size_t at;
	uint32_t line, column;
};

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool ends_word(char c)
{
	return is_blank(c) || c == ',' || c == ':' || c == '[' || c == ']' || c == '{' || c == '}' || c == '"';
}

/* Returns the offset behind the token at `at`, which is not blank. */
static size_t token_end(const char *text, size_t len, size_t at)
{
	size_t end = at + 1;

	if (text[at] == '"') {
		while (end < len && text[end] != '"')
			end += text[end] == '\\' ? 2 : 1;
		return end < len ? end + 1 : len;
	}
	if (!ends_word(text[at]))
		while (end < len && !ends_word(text[end]))
			end++;
	return end;
}

/* Finds the start of the token that an error is about: jansson reports the offset behind it. */
static size_t token_start(const char *text, size_t len, size_t behind)
{
	size_t start = 0;

	for (size_t at = 0; at < len && at < behind;) {
		if (is_blank(text[at])) {
			at++;
			continue;
		}
		start = at;
		at = token_end(text, len, at);
	}
	return start;
}

static int judge(struct cordon_builder *builder)
{
	struct cordon_document *doc = builder->doc;
	json_error_t problem;
	json_t *value = json_loadb(doc->source, doc->len, JSON_REJECT_DUPLICATES, &problem);
	size_t behind;

	if (value) {
		json_decref(value);
		return 0;
	}
	if (json_error_code(&problem) == json_error_out_of_memory)
		return -ENOMEM;
	behind = problem.position < 0 ? 0 : (size_t)problem.position;
	return cordon_build_fail_at(builder, token_start(doc->source, doc->len, behind), -EINVAL, NULL,
				    "not valid JSON: %s", problem.text);
}

static unsigned int hex4(const char *s)
{
	unsigned int value = 0;

	for (int i = 0; i < 4; i++) {
		char c = s[i];

		value = value << 4 | (unsigned int)(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
	}
	return value;
}

static size_t put_utf8(char *out, unsigned int c)
{
	if (c < 0x80) {
		out[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		out[0] = (char)(0xc0 | c >> 6);
		out[1] = (char)(0x80 | (c & 0x3f));
		return 2;
	}
	if (c < 0x10000) {
		out[0] = (char)(0xe0 | c >> 12);
		out[1] = (char)(0x80 | (c >> 6 & 0x3f));
		out[2] = (char)(0x80 | (c & 0x3f));
		return 3;
	}
	out[0] = (char)(0xf0 | c >> 18);
	out[1] = (char)(0x80 | (c >> 12 & 0x3f));
	out[2] = (char)(0x80 | (c >> 6 & 0x3f));
	out[3] = (char)(0x80 | (c & 0x3f));
	return 4;
}

/* Replaces the escapes inside of a string; the result is never longer. Returns its length. */
static size_t unescape(const char *s, size_t n, char *out)
{
	static const char plain[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
	size_t len = 0;

	for (size_t i = 0; i < n;) {
		const char *known;

		if (s[i] != '\\' || i + 1 >= n) {
			out[len++] = s[i++];
		} else if (s[i + 1] == 'u' && n - i >= 6) {
			unsigned int c = hex4(s + i + 2);

			i += 6;
			if (c >= 0xd800 && c < 0xdc00 && n - i >= 6) {
				c = 0x10000 + ((c & 0x3ff) << 10) + (hex4(s + i + 2) & 0x3ff);
				i += 6;
			}
			len += put_utf8(out + len, c);
		} else {
			known = strchr(plain, s[i + 1]);
			out[len] = s[i + 1];
			if (known && *known)
				out[len] = meant[known - plain];
			len++;
			i += 2;
		}
	}
	return len;
}

static int add_string(struct scanner *scan, const struct cordon_span *span)
{
	size_t n = span->end - span->start < 2 ? 0 : span->end - span->start - 2;
	autofree char *text = malloc(n + 1);

	if (!text)
		return -ENOMEM;
	n = unescape(scan->text + span->start + 1, n, text);
	return cordon_build_scalar(scan->builder, CORDON_NODE_SCALAR, CORDON_STYLE_DOUBLE, text, n, span);
}

static int add_token(struct scanner *scan, const struct cordon_span *span)
{
	switch (scan->text[span->start]) {
	case '{':
		return cordon_build_open(scan->builder, CORDON_NODE_MAPPING, span);
	case '[':
		return cordon_build_open(scan->builder, CORDON_NODE_SEQUENCE, span);
	case '}':
	case ']':
		return cordon_build_close(scan->builder, span->end);
	case ',':
	case ':':
		/* The builder knows that keys and values alternate. */
		return 0;
	case '"':
		return add_string(scan, span);
	default:
		return cordon_build_scalar(scan->builder, CORDON_NODE_SCALAR, CORDON_STYLE_PLAIN,
					   scan->text + span->start, span->end - span->start, span);
	}
}

int cordon_document_read_json(struct cordon_builder *builder)
{
	struct scanner scan = {
		.builder = builder, .text = builder->doc->source, .len = builder->doc->len, .line = 1, .column = 1
	};
	int r = judge(builder);

	while (r == 0 && scan.at < scan.len) {
		struct cordon_span span = { .line = scan.line, .column = scan.column, .start = (uint32_t)scan.at };

		if (scan.text[scan.at] == '\n') {
			scan.line++;
			scan.column = 1;
			scan.at++;
			continue;
		}
		if (is_blank(scan.text[scan.at])) {
			scan.column++;
			scan.at++;
			continue;
		}
		span.end = (uint32_t)token_end(scan.text, scan.len, scan.at);
		for (; scan.at < span.end; scan.at++)
			scan.column += ((unsigned char)scan.text[scan.at] & 0xc0) != 0x80;
		r = add_token(&scan, &span);
	}
	return r;
}
