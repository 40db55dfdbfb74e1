/* SPDX-License-Identifier: Apache-2.0 */
/* Records of the store on a terminal: tables and lists of fields; names in them may be hostile and are escaped. */
#ifndef CORDON_CLI_RECORDS_H
#define CORDON_CLI_RECORDS_H

#include "cli/cli.h"

struct cordon_column {
	const char *key; /* of the record; NULL ends the table */
	const char *header;
};

/* Aligned and with a header on a terminal, else one line per record with tabs between. */
void cordon_cli_print_table(const struct cordon_column *columns, const json_t *records);
/* One "key: value" line per field; what is no string, number or truth value as compact JSON. */
void cordon_cli_print_record(json_t *record);
/* The record, or the JSON with --json; takes the reference. The exit code. */
int cordon_cli_answer(const struct cordon_cli *cli, json_t *record);
/* Opens the store or prints why not; *ret_exit is then the exit code. */
struct cordon_store;
bool cordon_cli_open_store(const struct cordon_cli *cli, struct cordon_store *ret_store, int *ret_exit);
/* The value of --limit. */
int cordon_cli_parse_limit(const char *arg, size_t *ret_limit, struct cordon_error *err);
/* Adds a command-line argument to a JSON array or object; kind usage when it is not valid UTF-8. */
int cordon_cli_append_text(json_t *array, const char *option, const char *text, struct cordon_error *err);
int cordon_cli_set_text(json_t *object, const char *key, const char *text, struct cordon_error *err);

#endif
