/* SPDX-License-Identifier: Apache-2.0 */
/* Prints what all commands have in common: errors, JSON values and [WORKSPACE] lines. */
#include <stdarg.h>
#include <stdio.h>

#include "base/text.h"
#include "cli/cli.h"

#define TEXT_MAX (8u << 20)

json_t *cordon_cli_json_bytes(const char *s, size_t n)
{
	autobuf struct cordon_buf buf = CORDON_BUF(TEXT_MAX);

	/* Valid UTF-8 is passed on as it is (jansson escapes control characters); all else becomes escaped text. */
	if (cordon_utf8_valid(s, n) && !memchr(s, '\0', n))
		return json_stringn(s, n);
	if (cordon_text_escape(&buf, s, n) < 0)
		return NULL;
	return json_stringn(buf.data, buf.len);
}

json_t *cordon_cli_json_text(const char *s)
{
	return cordon_cli_json_bytes(s, strlen(s));
}

int cordon_cli_print_json(const struct cordon_cli *cli, json_t *value)
{
	struct cordon_error err = { 0 };
	int r = value ? json_dumpf(value, stdout, JSON_COMPACT | JSON_ENCODE_ANY) : -1;

	json_decref(value);
	if (r == 0 && putchar('\n') != EOF)
		return CORDON_EXIT_OK;
	cordon_fail(&err, -EIO, CORDON_KIND_IO, "cannot print JSON");
	return cordon_cli_fail(cli, &err);
}

int cordon_cli_fail(const struct cordon_cli *cli, const struct cordon_error *err)
{
	if (cli->json) {
		/* A message may have been cut in the middle of a character, so it may not be valid UTF-8. */
		json_t *object = json_pack("{s:s, s:o, s:o, s:o}", "kind", cordon_kind_name(err->kind), "message",
					   cordon_cli_json_text(err->message), "where",
					   cordon_cli_json_text(err->where), "hint", cordon_cli_json_text(err->hint));

		if (object)
			json_dumpf(object, stderr, JSON_COMPACT);
		fputc('\n', stderr);
		json_decref(object);
	} else {
		fprintf(stderr, "cordon: %s%s%s%s%s\n", err->where, *err->where ? ": " : "", err->message,
			*err->hint ? "; " : "", err->hint);
	}
	return cordon_exit_of_error(err, cli->failure_exit);
}

int cordon_cli_fail_all(const struct cordon_cli *cli, const struct cordon_errors *errors)
{
	struct cordon_error more = { 0 };
	int exit_code = cli->failure_exit;

	for (size_t i = 0; i < errors->n; i++) {
		int code = cordon_cli_fail(cli, &errors->items[i]);

		if (i == 0)
			exit_code = code;
	}
	if (errors->dropped) {
		cordon_fail(&more, -E2BIG, CORDON_KIND_LIMIT, "%zu more errors", errors->dropped);
		cordon_cli_fail(cli, &more);
	}
	return exit_code;
}

int cordon_cli_usage(const struct cordon_cli *cli, const char *fmt, ...)
{
	struct cordon_error err = { 0 };
	char text[sizeof(err.message)];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	cordon_fail(&err, -EINVAL, CORDON_KIND_USAGE, "%s", text);
	cordon_error_hint(&err, "see 'cordon %s%s--help'", cli->command->name, *cli->command->name ? " " : "");
	return cordon_cli_fail(cli, &err);
}

CORDON_PRINTF(2, 0)
static void log_line(const char *tag, const char *fmt, va_list args)
{
	autobuf struct cordon_buf raw = CORDON_BUF(TEXT_MAX / 8);
	autobuf struct cordon_buf safe = CORDON_BUF(TEXT_MAX);

	if (cordon_buf_addv(&raw, fmt, args) == 0 && cordon_text_escape(&safe, raw.data, raw.len) == 0)
		fprintf(stderr, "[%s] %s\n", tag, safe.data);
}

void cordon_cli_log(const struct cordon_cli *cli, const char *tag, const char *fmt, ...)
{
	va_list args;

	if (cli->json || cli->quiet)
		return;
	va_start(args, fmt);
	log_line(tag, fmt, args);
	va_end(args);
}

void cordon_cli_workspace_log(const struct cordon_cli *cli, const char *fmt, ...)
{
	va_list args;

	if (cli->json || cli->quiet)
		return;
	va_start(args, fmt);
	log_line("WORKSPACE", fmt, args);
	va_end(args);
}

void cordon_cli_notice(const struct cordon_cli *cli, const char *fmt, ...)
{
	autobuf struct cordon_buf text = CORDON_BUF(TEXT_MAX / 8);
	json_t *object = NULL;
	va_list args;
	int r = 0;

	va_start(args, fmt);
	if (cli->json)
		r = cordon_buf_addv(&text, fmt, args);
	else
		log_line("WORKSPACE", fmt, args);
	va_end(args);
	if (r < 0 || !cli->json)
		return;
	object = json_pack("{s:s, s:o}", "kind", "notice", "message", cordon_cli_json_text(text.data));
	if (object)
		json_dumpf(object, stderr, JSON_COMPACT);
	fputc('\n', stderr);
	json_decref(object);
}

bool cordon_cli_colour(int fd)
{
	const char *no_color = getenv("NO_COLOR");

	return isatty(fd) && !(no_color && *no_color);
}
