/* SPDX-License-Identifier: Apache-2.0 */
/* Prints records of the store on a terminal, as tables and lists of fields. */
#include <stdio.h>
#include <sys/ioctl.h>

#include "base/json.h"
#include "base/text.h"
#include "cli/records.h"
#include "config/net_setting.h"

#define CELL_MAX 65536
#define CELL_MIN 8 /* no column becomes narrower */
#define COLUMNS_MAX 12
#define SCREEN_DEFAULT 80
#define BETWEEN "  "

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
	if (!text || cordon_text_escape(ret_text, text, strlen(text)) < 0) {
		cordon_buf_reset(ret_text);
		cordon_buf_adds(ret_text, "(too long for a line; --json prints it)");
	}
	if (ret_text->len == 0)
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

/* Returns how many columns the terminal on stdout has. */
static size_t screen_width(void)
{
	struct winsize size = { 0 };
	const char *columns = getenv("COLUMNS");
	uint64_t n = SCREEN_DEFAULT;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col)
		return size.ws_col;
	if (!columns || cordon_parse_u64(columns, CELL_MIN, CELL_MAX, &n) < 0)
		n = SCREEN_DEFAULT;
	return n;
}

/* What a table is printed from. */
struct table {
	const struct cordon_column *columns;
	size_t n;
	size_t widths[COLUMNS_MAX]; /* 0: tabs separate the columns */
	bool uuids[COLUMNS_MAX];    /* the column has UUIDs, of which the first characters are enough */
	const json_t *records;
};

static size_t table_width(const struct table *table)
{
	size_t sum = table->n ? (table->n - 1) * strlen(BETWEEN) : 0;

	for (size_t i = 0; i < table->n; i++)
		sum += table->widths[i];
	return sum;
}

static void measure(struct table *table)
{
	autobuf struct cordon_buf text = CORDON_BUF(CELL_MAX);
	size_t at;
	json_t *record;

	for (size_t i = 0; i < table->n; i++) {
		table->widths[i] = width(table->columns[i].header);
		table->uuids[i] = json_array_size(table->records) > 0;
		json_array_foreach(table->records, at, record) {
			cell(json_object_get(record, table->columns[i].key), &text);
			if (width(text.data) > table->widths[i])
				table->widths[i] = width(text.data);
			table->uuids[i] &= cordon_uuid_valid(text.data);
		}
	}
}

/* Makes the table fit the screen: first ids show the characters that are enough for a command, then the widest column
 * loses its end. */
static void fit(struct table *table, size_t screen)
{
	for (size_t i = 0; i < table->n && table_width(table) > screen; i++)
		if (table->uuids[i])
			table->widths[i] = CORDON_FIND_DELETE_MIN;
	while (table_width(table) > screen) {
		size_t widest = 0;

		for (size_t i = 1; i < table->n; i++)
			if (table->widths[i] > table->widths[widest])
				widest = i;
		if (table->widths[widest] <= CELL_MIN)
			return;
		table->widths[widest]--;
	}
}

/* Prints at most `room` characters of the text, with "…" for what was cut off an ordinary cell, and fills up with
 * blanks. */
static void print_cell(const char *text, size_t room, bool is_id, bool last)
{
	size_t n = width(text), keep = n <= room ? n : room - (is_id ? 0 : 1), shown = 0;

	for (; *text && (shown < keep || ((unsigned char)*text & 0xc0) == 0x80); text++) {
		putchar(*text);
		if (((unsigned char)text[1] & 0xc0) != 0x80)
			shown++;
	}
	if (n > room && !is_id)
		fputs("…", stdout);
	for (size_t at = n < room ? n : room; at < room && !last; at++)
		putchar(' ');
}

/* Prints a record, or the header if it is NULL. */
static void print_row(const struct table *table, const json_t *record)
{
	autobuf struct cordon_buf text = CORDON_BUF(CELL_MAX);

	for (size_t i = 0; i < table->n; i++) {
		const struct cordon_column *column = &table->columns[i];

		if (record)
			cell(json_object_get(record, column->key), &text);
		const char *shown = record ? text.data : column->header;

		if (i)
			fputs(table->widths[i] ? BETWEEN : "\t", stdout);
		if (table->widths[i])
			print_cell(shown, table->widths[i], table->uuids[i], i + 1 == table->n);
		else
			fputs(shown, stdout);
	}
	putchar('\n');
}

void cordon_cli_print_table(const struct cordon_cli *cli, const struct cordon_column *columns, const json_t *records)
{
	struct table table = { .columns = columns, .records = records };
	const char *bold = cordon_cli_colour(STDOUT_FILENO) ? "\033[1m" : "";
	size_t at;
	json_t *record;

	while (table.n < COLUMNS_MAX && columns[table.n].key)
		table.n++;
	if (cli->quiet) {
		table.n = 1; /* the first column is the id */
	} else if (isatty(STDOUT_FILENO)) {
		measure(&table);
		fit(&table, screen_width());
		fputs(bold, stdout);
		print_row(&table, NULL);
		fputs(*bold ? "\033[0m" : "", stdout);
	}
	json_array_foreach(records, at, record) {
		print_row(&table, record);
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

/* Returns the id of what the record is about, or NULL. */
static const char *id_of(const json_t *record)
{
	static const char *const keys[] = { "id", "session_id", "workspace_id", "project_id" };
	const char *id = NULL;

	for (size_t i = 0; !id && i < CORDON_ARRAY_SIZE(keys); i++)
		id = cordon_json_string(record, keys[i]);
	return id;
}

int cordon_cli_answer(const struct cordon_cli *cli, json_t *record)
{
	if (cli->json)
		return cordon_cli_print_json(cli, record);
	if (cli->quiet && id_of(record))
		printf("%s\n", id_of(record));
	else
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

int cordon_cli_set_hosts(json_t *object, const char *key, const char *text, struct cordon_error *err)
{
	json_t *list = json_object_get(object, key);

	if (cordon_streq(text, CORDON_NET_WORD_HOST) || cordon_streq(text, CORDON_NET_WORD_NONE) ||
	    cordon_streq(text, CORDON_NET_WORD_PROFILE))
		return cordon_cli_set_text(object, key, text, err);
	if (!json_is_array(list)) {
		list = json_array();
		if (json_object_set_new(object, key, list) < 0)
			return cordon_fail_errno(err, -ENOMEM, "%s", key);
	}
	for (const char *p = text, *end; p; p = *end ? end + 1 : NULL) {
		size_t n;

		end = p + strcspn(p, ",");
		p += strspn(p, " \t");
		for (n = p < end ? (size_t)(end - p) : 0; n && (p[n - 1] == ' ' || p[n - 1] == '\t');)
			n--;
		if (json_array_append_new(list, json_stringn(p, n)) < 0)
			return bad_text(key, text, err);
	}
	return 0;
}
