/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints records of the store on a terminal, as tables and lists of fields. Names in them are untrusted and are
 * escaped.
 */
#ifndef CORDON_CLI_RECORDS_H
#define CORDON_CLI_RECORDS_H

#include "cli/cli.h"
#include "store/store.h"

struct cordon_column {
	const char *key; /* key in the record; NULL ends the table */
	const char *header;
};

/* Prints columns that fit the screen, with a header, on a terminal; else one line per record with tabs between the
 * columns. Of UUIDs it prints the first characters where the screen is narrow. With --quiet it prints the first column, which is the id, and no header. */
void cordon_cli_print_table(const struct cordon_cli *cli, const struct cordon_column *columns, const json_t *records);
/* Prints one "key: value" line per field. Arrays and objects are printed as compact JSON. */
void cordon_cli_print_record(json_t *record);
/* Prints the record, as JSON with --json, its id alone with --quiet, and takes the reference. Returns the exit code. */
int cordon_cli_answer(const struct cordon_cli *cli, json_t *record);
/* Opens the store, or prints the error and sets *ret_exit to the exit code. */
bool cordon_cli_open_store(const struct cordon_cli *cli, struct cordon_store *ret_store, int *ret_exit);
/* Find what the text means (store.h), or print the error and set *ret_exit. Flags are CORDON_FIND_*. */
bool cordon_cli_find_project(const struct cordon_cli *cli, const struct cordon_store *store, const char *text,
			     unsigned int flags, char ret_id[static CORDON_ID_SIZE], int *ret_exit);
bool cordon_cli_find_workspace(const struct cordon_cli *cli, const struct cordon_store *store, const char *project,
			       const char *text, unsigned int flags, char ret_id[static CORDON_ID_SIZE], int *ret_exit);
bool cordon_cli_find_session(const struct cordon_cli *cli, const struct cordon_store *store, const char *text,
			     char ret_id[static CORDON_ID_SIZE], int *ret_exit);
/* Parses the value of --limit. */
int cordon_cli_parse_limit(const char *arg, size_t *ret_limit, struct cordon_error *err);
/* Adds a command-line argument to a JSON array or object. The error is of kind usage when it is not valid UTF-8. */
int cordon_cli_append_text(json_t *array, const char *option, const char *text, struct cordon_error *err);
int cordon_cli_set_text(json_t *object, const char *key, const char *text, struct cordon_error *err);
/* The value of --net as a setting has it: a word, or a list of the hosts that commas separate. A second list adds to the
 * first. */
int cordon_cli_set_hosts(json_t *object, const char *key, const char *text, struct cordon_error *err);

#endif
