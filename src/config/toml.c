/* SPDX-License-Identifier: Apache-2.0 */
/* Reads TOML as far as settings of other programs use it: one pass, bounded, every error with its place. */
#include <string.h>

#include "base/text.h"
#include "config/import.h"

#define DEPTH_MAX 16
#define KEY_MAX 1024
#define TEXT_MAX ((size_t)1 << 20)

struct reader {
	const char *name, *at, *end, *line_start;
	uint32_t line;
	struct cordon_import *import;
	struct cordon_errors *errors;
	char table[KEY_MAX]; /* the key of the current table, with a dot behind it; or "" */
};

static int fail(struct reader *r, const char *what)
{
	struct cordon_error err = { 0 };

	cordon_fail(&err, -EINVAL, CORDON_KIND_CONFIG, "%s", what);
	return cordon_errors_add(r->errors, &err, r->name, r->line, (size_t)(r->at - r->line_start) + 1);
}

static int peek(const struct reader *r)
{
	return r->at < r->end ? (unsigned char)*r->at : -1;
}

static void next(struct reader *r)
{
	if (*r->at++ == '\n') {
		r->line++;
		r->line_start = r->at;
	}
}

/* Skips blanks and comments; with `lines` ends of lines, too. */
static void skip(struct reader *r, bool lines)
{
	for (int c; (c = peek(r)) >= 0;) {
		if (c == '#')
			while (peek(r) >= 0 && peek(r) != '\n')
				next(r);
		else if (c == ' ' || c == '\t' || c == '\r' || (lines && c == '\n'))
			next(r);
		else
			return;
	}
}

static bool is_bare(int c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

static int add_code(struct reader *r, int digits, struct cordon_buf *ret)
{
	uint32_t code = 0;
	char utf8[4];
	size_t n;

	for (int i = 0; i < digits; i++, next(r)) {
		int c = peek(r);
		int digit = c >= '0' && c <= '9'   ? c - '0'
			    : c >= 'a' && c <= 'f' ? c - 'a' + 10
			    : c >= 'A' && c <= 'F' ? c - 'A' + 10
						   : -1;

		if (digit < 0)
			return fail(r, "a hexadecimal digit is expected");
		code = code << 4 | (uint32_t)digit;
	}
	if (!code || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
		return fail(r, "this is no character");
	n = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
	for (size_t i = n; --i > 0; code >>= 6)
		utf8[i] = (char)(0x80 | (code & 0x3f));
	utf8[0] = (char)((n == 1 ? 0 : n == 2 ? 0xc0 : n == 3 ? 0xe0 : 0xf0) | code);
	return cordon_buf_add(ret, utf8, n) < 0 ? fail(r, "the text is too long") : 0;
}

static int add_escape(struct reader *r, bool lines, struct cordon_buf *ret)
{
	static const char letters[] = "btnfre\"\\", bytes[] = "\b\t\n\f\r\033\"\\";
	int c = peek(r);
	const char *letter = c > 0 ? strchr(letters, c) : NULL;

	if (letter) {
		next(r);
		return cordon_buf_addc(ret, bytes[letter - letters]) < 0 ? fail(r, "the text is too long") : 0;
	}
	if (c == 'u' || c == 'U') {
		next(r);
		return add_code(r, c == 'u' ? 4 : 8, ret);
	}
	if (lines && (c == '\n' || c == ' ' || c == '\t' || c == '\r')) {
		while ((c = peek(r)) == '\n' || c == ' ' || c == '\t' || c == '\r')
			next(r);
		return 0;
	}
	return fail(r, "there is no such escape");
}

/* A string of any of the four kinds, from its first quotation mark. */
static int read_string(struct reader *r, struct cordon_buf *ret)
{
	char quote = *r->at;
	bool lines = r->end - r->at >= 3 && r->at[1] == quote && r->at[2] == quote;
	int failed = 0;

	for (int i = 0; i < (lines ? 3 : 1); i++)
		next(r);
	if (lines && peek(r) == '\n')
		next(r);
	while (failed == 0) {
		int c = peek(r);

		if (c < 0 || (c == '\n' && !lines))
			return fail(r, "the text has no end");
		if (c == quote && (!lines || (r->end - r->at >= 3 && r->at[1] == quote && r->at[2] == quote))) {
			for (int i = 0; i < (lines ? 3 : 1); i++)
				next(r);
			return 0;
		}
		if ((c < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7f)
			return fail(r, "a control character");
		next(r);
		if (c == '\\' && quote == '"')
			failed = add_escape(r, lines, ret);
		else if (cordon_buf_addc(ret, (char)c) < 0)
			failed = fail(r, "the text is too long");
	}
	return failed;
}

/* The caller has looked whether there is room. */
static void append(char key[static KEY_MAX], const char *text)
{
	size_t n = strlen(key);

	(void)cordon_copy(key + n, KEY_MAX - n, text, strlen(text));
}

/* A key with its dots, behind what is in `key` already. */
static int read_key(struct reader *r, char key[static KEY_MAX])
{
	for (;;) {
		autobuf struct cordon_buf part = CORDON_BUF(KEY_MAX);
		int failed = 0;

		skip(r, false);
		if (peek(r) == '"' || peek(r) == '\'')
			failed = read_string(r, &part);
		else
			while (failed == 0 && is_bare(peek(r))) {
				failed = cordon_buf_addc(&part, *r->at) < 0 ? fail(r, "the key is too long") : 0;
				next(r);
			}
		if (failed)
			return failed;
		if (!part.len)
			return fail(r, "a key is expected");
		if (strlen(key) + part.len + 2 > KEY_MAX)
			return fail(r, "the key is too long");
		append(key, part.data);
		skip(r, false);
		if (peek(r) != '.')
			return 0;
		next(r);
		append(key, ".");
	}
}

static int add(struct reader *r, const char *key, const char *value, uint32_t line, uint32_t column)
{
	int code = cordon_import_add(r->import, key, value, line, column);

	return code == -E2BIG ? fail(r, "the file has too many values") : code < 0 ? fail(r, "no memory") : 0;
}

static int read_value(struct reader *r, const char *key, int depth);

static int read_array(struct reader *r, const char *key, int depth)
{
	uint32_t line = r->line, column = (uint32_t)(r->at - r->line_start) + 1;
	int failed = 0, n = 0;

	next(r);
	for (skip(r, true); failed == 0 && peek(r) != ']'; skip(r, true), n++) {
		failed = read_value(r, key, depth + 1);
		skip(r, true);
		if (failed == 0 && peek(r) == ',')
			next(r);
		else if (failed == 0 && peek(r) != ']')
			failed = fail(r, "a comma or ']' is expected");
	}
	if (failed == 0)
		next(r);
	return failed || n ? failed : add(r, key, "[]", line, column);
}

static int read_pair(struct reader *r, const char *prefix, int depth);

static int read_inline(struct reader *r, const char *key, int depth)
{
	uint32_t line = r->line, column = (uint32_t)(r->at - r->line_start) + 1;
	char prefix[KEY_MAX];
	int failed = 0, n = 0;

	if (cordon_concat(prefix, sizeof(prefix), key, ".", (char *)NULL) < 0)
		return fail(r, "the key is too long");
	next(r);
	for (skip(r, false); failed == 0 && peek(r) != '}'; skip(r, false), n++) {
		failed = read_pair(r, prefix, depth + 1);
		skip(r, false);
		if (failed == 0 && peek(r) == ',')
			next(r);
		else if (failed == 0 && peek(r) != '}')
			failed = fail(r, "a comma or '}' is expected");
	}
	if (failed == 0)
		next(r);
	return failed || n ? failed : add(r, key, "{}", line, column);
}

static int read_value(struct reader *r, const char *key, int depth)
{
	uint32_t line = r->line, column = (uint32_t)(r->at - r->line_start) + 1;
	autobuf struct cordon_buf text = CORDON_BUF(TEXT_MAX);
	int c = peek(r);

	if (depth > DEPTH_MAX)
		return fail(r, "it is nested too deeply");
	if (c == '[')
		return read_array(r, key, depth);
	if (c == '{')
		return read_inline(r, key, depth);
	if (c == '"' || c == '\'') {
		int failed = read_string(r, &text);

		return failed ? failed : add(r, key, text.len ? text.data : "", line, column);
	}
	while (is_bare(peek(r)) || peek(r) == '+' || peek(r) == '.' || peek(r) == ':') {
		if (cordon_buf_addc(&text, *r->at) < 0)
			return fail(r, "the value is too long");
		next(r);
	}
	return text.len ? add(r, key, text.data, line, column) : fail(r, "a value is expected");
}

static bool is_known(const struct reader *r, const char *key, size_t before)
{
	for (size_t i = 0; i < before; i++)
		if (strcmp(r->import->lines[i].key, key) == 0)
			return true;
	return false;
}

static int read_pair(struct reader *r, const char *prefix, int depth)
{
	char key[KEY_MAX];
	size_t before = r->import->n;
	int failed;

	if (cordon_copy(key, sizeof(key), prefix, strlen(prefix)) < 0)
		return fail(r, "the key is too long");
	if ((failed = read_key(r, key)) != 0)
		return failed;
	/* Tables of an array have the same keys. */
	if (!strstr(key, "[]") && is_known(r, key, before))
		return fail(r, "the key is there already");
	if (peek(r) != '=')
		return fail(r, "'=' is expected");
	next(r);
	skip(r, false);
	return read_value(r, key, depth);
}

/* [table] or [[array of tables]] */
static int read_header(struct reader *r)
{
	bool array = r->end - r->at >= 2 && r->at[1] == '[';
	int failed;

	next(r);
	if (array)
		next(r);
	r->table[0] = '\0';
	if ((failed = read_key(r, r->table)) != 0)
		return failed;
	for (int i = 0; i < (array ? 2 : 1); i++) {
		if (peek(r) != ']')
			return fail(r, "']' is expected");
		next(r);
	}
	if (strlen(r->table) + 4 > sizeof(r->table))
		return fail(r, "the key is too long");
	append(r->table, array ? "[]." : ".");
	return 0;
}

int cordon_toml_read(const char *name, const char *text, size_t n, struct cordon_import *import,
		     struct cordon_errors *errors)
{
	struct reader r = {
		.name = name, .at = text, .end = text + n, .line_start = text, .line = 1, .import = import, .errors = errors
	};
	int failed = 0;

	if (memchr(text, '\0', n) || !cordon_utf8_valid(text, n))
		return fail(&r, "the file is no UTF-8 text");
	for (skip(&r, true); failed == 0 && peek(&r) >= 0; skip(&r, true)) {
		failed = peek(&r) == '[' ? read_header(&r) : read_pair(&r, r.table, 0);
		if (failed == 0)
			skip(&r, false);
		if (failed == 0 && peek(&r) >= 0 && peek(&r) != '\n')
			failed = fail(&r, "the end of the line is expected");
	}
	return failed;
}
