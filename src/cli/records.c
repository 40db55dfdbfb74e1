/* SPDX-License-Identifier: Apache-2.0 */
/* Prints records of the store on a terminal, as tables and lists of fields. */
#include <stdio.h>

#include "base/text.h"
#include "cli/records.h"

#define CELL_MAX 65536
#define COLUMNS_MAX 12

/* Formats a value for a person, on one line. */
static void cell(const json_t *value, struct cordon_buf *ret_text)
{
	autofree char *dumped = NULL;
	const char *text = json_string_value(value);

	cordon_buf_reset(ret_text);
	if (!value || json_is_null(value))
		text = "-";
	if (!text) {
		dumped = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
		text = dumped;
	}
	if (!text || cordon_text_escape(ret_text, text, strlen(text)) < 0 || ret_text->len == 0)
		cordon_buf_adds(ret_text, "-");
}

/* Returns how many columns the text takes on a terminal: it counts characters, not bytes. */
static size_t width(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += ((unsigned char)*text & 0xc0) != 0x80;
	return n;
}

static void pad(size_t from, size_t to)
{
	for (; from < to; from++)
		putchar(' ');
}

static void print_row(const struct cordon_column *columns, const json_t *record, const size_t *widths)
{
	autobuf struct cordon_buf text = CORDON_BUF(CELL_MAX);

	for (size_t i = 0; columns[i].key; i++) {
		if (record)
			cell(json_object_get(record, columns[i].key), &text);
		const char *shown = record ? text.data : columns[i].header;

		if (i)
			fputs(widths ? "  " : "\t", stdout);
		fputs(shown, stdout);
		if (widths && columns[i + 1].key)
			pad(width(shown), widths[i]);
	}
	putchar('\n');
}

void cordon_cli_print_table(const struct cordon_column *columns, const json_t *records)
{
	bool terminal = isatty(STDOUT_FILENO);
	size_t widths[COLUMNS_MAX] = { 0 };
	size_t at;
	json_t *record;

	if (terminal) {
		autobuf struct cordon_buf text = CORDON_BUF(CELL_MAX);

		for (size_t i = 0; i < COLUMNS_MAX && columns[i].key; i++) {
			widths[i] = width(columns[i].header);
			json_array_foreach(records, at, record) {
				cell(json_object_get(record, columns[i].key), &text);
				if (width(text.data) > widths[i])
					widths[i] = width(text.data);
			}
		}
		print_row(columns, NULL, widths);
	}
	json_array_foreach(records, at, record) {
		print_row(columns, record, terminal ? widths : NULL);
	}
}

void cordon_cli_print_record(json_t *record)
{
	autobuf struct cordon_buf text = CORDON_BUF(CELL_MAX);
	const char *key;
	json_t *value;

	json_object_foreach(record, key, value) {
		cell(value, &text);
		printf("%s: %s\n", key, text.data);
	}
}

int cordon_cli_answer(const struct cordon_cli *cli, json_t *record)
{
	if (cli->json)
		return cordon_cli_print_json(cli, record);
	cordon_cli_print_record(record);
	json_decref(record);
	return CORDON_EXIT_OK;
}

int cordon_cli_parse_limit(const char *arg, size_t *ret_limit, struct cordon_error *err)
{
	uint64_t limit;

	if (cordon_parse_u64(arg, 1, CORDON_LIST_MAX, &limit) < 0)
		return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "--limit is a number from 1 to %d, not %.80s",
				   CORDON_LIST_MAX, arg);
	*ret_limit = limit;
	return 0;
}

bool cordon_cli_open_store(const struct cordon_cli *cli, struct cordon_store *ret_store, int *ret_exit)
{
	struct cordon_error err = { 0 };

	if (cordon_store_open(ret_store, &err) == 0)
		return true;
	*ret_exit = cordon_cli_fail(cli, &err);
	return false;
}

/* Prints the error of a search that failed. Returns whether it succeeded. */
static bool found(const struct cordon_cli *cli, int r, const struct cordon_error *err, int *ret_exit)
{
	if (r < 0)
		*ret_exit = cordon_cli_fail(cli, err);
	return r == 0;
}

bool cordon_cli_find_project(const struct cordon_cli *cli, const struct cordon_store *store, const char *text,
			     unsigned int flags, char ret_id[static CORDON_ID_SIZE], int *ret_exit)
{
	struct cordon_error err = { 0 };

	return found(cli, cordon_project_find(store, text, flags, ret_id, &err), &err, ret_exit);
}

bool cordon_cli_find_workspace(const struct cordon_cli *cli, const struct cordon_store *store, const char *project,
			       const char *text, unsigned int flags, char ret_id[static CORDON_ID_SIZE], int *ret_exit)
{
	struct cordon_error err = { 0 };

	return found(cli, cordon_workspace_find(store, project, text, flags, ret_id, &err), &err, ret_exit);
}

bool cordon_cli_find_session(const struct cordon_cli *cli, const struct cordon_store *store, const char *text,
			     char ret_id[static CORDON_ID_SIZE], int *ret_exit)
{
	struct cordon_error err = { 0 };

	return found(cli, cordon_session_find(store, text, ret_id, &err), &err, ret_exit);
}

static int bad_text(const char *option, const char *text, struct cordon_error *err)
{
	if (!cordon_utf8_valid(text, strlen(text)))
		return cordon_fail(err, -EILSEQ, CORDON_KIND_USAGE, "%s is not valid UTF-8: %s", option, text);
	return cordon_fail_errno(err, -ENOMEM, "%s", option);
}

int cordon_cli_append_text(json_t *array, const char *option, const char *text, struct cordon_error *err)
{
	return json_array_append_new(array, json_string(text)) < 0 ? bad_text(option, text, err) : 0;
}

int cordon_cli_set_text(json_t *object, const char *key, const char *text, struct cordon_error *err)
{
	return json_object_set_new(object, key, json_string(text)) < 0 ? bad_text(key, text, err) : 0;
}
