/* SPDX-License-Identifier: Apache-2.0 */
/* The error object of cordon: filled on the caller's stack, never allocated. */
#include <stdarg.h>
#include <stdio.h>

#include "base/error.h"
#include "base/text.h"

/* error.h defines these as macros, too, for the static analyzer. */
#undef cordon_fail
#undef cordon_fail_errno
#undef cordon_error_prefix

static const char *const kind_names[] = {
	[CORDON_KIND_NONE] = "none",
	[CORDON_KIND_USAGE] = "usage",
	[CORDON_KIND_CONFIG] = "config",
	[CORDON_KIND_POLICY_DENIED] = "policy_denied",
	[CORDON_KIND_KERNEL_UNSUPPORTED] = "kernel_unsupported",
	[CORDON_KIND_NOT_FOUND] = "not_found",
	[CORDON_KIND_CONFLICT] = "conflict",
	[CORDON_KIND_LIMIT] = "limit",
	[CORDON_KIND_IO] = "io",
	[CORDON_KIND_INTERNAL] = "internal",
};

cordon_kind cordon_kind_parse(const char *name)
{
	for (int kind = CORDON_KIND_USAGE; name && kind < CORDON_KIND__MAX; kind++)
		if (cordon_streq(kind_names[kind], name))
			return (cordon_kind)kind;
	return CORDON_KIND_INTERNAL;
}

const char *cordon_kind_name(cordon_kind kind)
{
	return (unsigned int)kind < CORDON_KIND__MAX ? kind_names[kind] : "internal";
}

/*
 * Formats a message and escapes what is unsafe in it. Escaping doubles backslashes, so a message must not pass
 * through here twice: cordon_error_prefix() keeps the old text as it is.
 */
CORDON_PRINTF(3, 0)
static void format_safe(char *dst, size_t size, const char *fmt, va_list args)
{
	char raw[4 * CORDON_PATH_MAX];
	int n = vsnprintf(raw, sizeof(raw), fmt, args);
	size_t len = n < 0 ? 0 : (size_t)n < sizeof(raw) ? (size_t)n : sizeof(raw) - 1;

	cordon_text_escape_fixed(dst, size, raw, len);
}

CORDON_PRINTF(4, 0)
static int fill(struct cordon_error *err, int code, cordon_kind kind, const char *fmt, va_list args)
{
	if (!err)
		return code;
	err->code = code;
	err->kind = kind;
	err->where[0] = err->hint[0] = '\0';
	format_safe(err->message, sizeof(err->message), fmt, args);
	return code;
}

int cordon_fail(struct cordon_error *err, int code, cordon_kind kind, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	fill(err, code, kind, fmt, args);
	va_end(args);
	return code;
}

int cordon_fail_errno(struct cordon_error *err, int code, const char *fmt, ...)
{
	cordon_kind kind = code == -ENOMEM || code == -EMFILE || code == -ENFILE ? CORDON_KIND_LIMIT
			   : code == -ENOENT					 ? CORDON_KIND_NOT_FOUND
										 : CORDON_KIND_IO;
	va_list args;
	size_t len;

	if (!err)
		return code;
	va_start(args, fmt);
	fill(err, code, kind, fmt, args);
	va_end(args);
	len = strlen(err->message);
	snprintf(err->message + len, sizeof(err->message) - len, ": %s", strerror(-code));
	return code;
}

/* Removes the first bytes of a last character that was cut; the text was valid before. */
static void drop_partial_char(char *text)
{
	size_t len = strlen(text), back = 1;

	while (back <= 4 && back <= len && ((unsigned char)text[len - back] & 0xc0) == 0x80)
		back++;
	if (back <= len && cordon_utf8_char(text + len - back, back) == 0)
		text[len - back] = '\0';
}

int cordon_error_prefix(struct cordon_error *err, int code, const char *fmt, ...)
{
	char front[sizeof(err->message)];
	char old[sizeof(err->message)];
	va_list args;

	if (!err)
		return code;
	va_start(args, fmt);
	format_safe(front, sizeof(front), fmt, args);
	va_end(args);
	memcpy(old, err->message, sizeof(old));
	if (snprintf(err->message, sizeof(err->message), "%s: %s", front, old) < 0)
		err->message[0] = '\0';
	drop_partial_char(err->message);
	return err->code;
}

void cordon_error_where(struct cordon_error *err, const char *file, size_t line, size_t column)
{
	char safe[384];

	if (!err)
		return;
	cordon_text_escape_fixed(safe, sizeof(safe), file, strlen(file));
	if (line)
		snprintf(err->where, sizeof(err->where), "%s:%zu:%zu", safe, line, column);
	else
		snprintf(err->where, sizeof(err->where), "%s", safe);
}

void cordon_error_hint(struct cordon_error *err, const char *fmt, ...)
{
	va_list args;

	if (!err)
		return;
	va_start(args, fmt);
	format_safe(err->hint, sizeof(err->hint), fmt, args);
	va_end(args);
}
