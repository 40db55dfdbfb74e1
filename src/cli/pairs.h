/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the commands about orchestrators, shared areas, channel profiles and workflows have in common. They read or change the
 * settings, and print lines of key=value, tables with --table, and objects with --json.
 */
#ifndef CORDON_CLI_PAIRS_H
#define CORDON_CLI_PAIRS_H

#include "cli/records.h"
#include "flow/edit.h"

/* Keys of options. A command's own options are texts and flags, which it numbers from 0. */
#define CORDON_PAIRS_OWN_MAX 4
#define CORDON_KEY_CONFIG 700
#define CORDON_KEY_TABLE 701
#define CORDON_KEY_TEXT(n) (710 + (n))
#define CORDON_KEY_FLAG(n) (720 + (n))

/* clang-format off */
#define CORDON_CONFIG_OPTION \
	{ "config", 0, CORDON_ARG_FILE, "FILE", "settings file (default: $CORDON_CONFIG, else config.yaml in $CORDON_HOME)", CORDON_KEY_CONFIG }
#define CORDON_TABLE_OPTION \
	{ "table", 0, CORDON_ARG_NONE, NULL, "print a table", CORDON_KEY_TABLE }
/* clang-format on */

struct cordon_pairs_args {
	const char *config, *operands[3];
	bool table;
	const char *text[CORDON_PAIRS_OWN_MAX]; /* NULL: not given */
	bool flag[CORDON_PAIRS_OWN_MAX];
};

/* Parses the options and exactly `n` operands. Returns false with the exit code when there is nothing more to do. */
bool cordon_cli_begin(struct cordon_cli *cli, int argc, char **argv, int n, struct cordon_pairs_args *ret_args,
		      int *ret_exit);
/* A value as it stands behind the equals sign: escaped, lists with commas, a grant as "docs" or "docs:ro". `text` is
 * emptied first. */
void cordon_cli_pair_value(struct cordon_buf *text, const json_t *value);
/* Prints a first line, if it is not NULL, and then one key=value line for each member. With --json it prints the object,
 * with --quiet the first member's value alone. Takes the reference. Returns the exit code. */
int cordon_cli_answer_pairs(const struct cordon_cli *cli, const char *headline, json_t *record);
/* Prints one line for each record, with a tab between its key=value pairs, or as `table` says. Takes the reference. */
int cordon_cli_list_pairs(const struct cordon_cli *cli, const struct cordon_column *columns, bool table,
			  json_t *records);
/* Each of these prints every error and sets *ret_exit when it returns false. Flags are those of cordon_settings_load(). */
bool cordon_cli_load_settings(const struct cordon_cli *cli, const char *config, unsigned int flags,
			      struct cordon_settings_file **ret_settings, int *ret_exit);
bool cordon_cli_load_orchestrator(const struct cordon_cli *cli, const char *config, const char *id,
				  struct cordon_settings_file **ret_settings,
				  const struct cordon_orchestrator **ret_orchestrator, int *ret_exit);
bool cordon_cli_change_settings(const struct cordon_cli *cli, const struct cordon_settings_edit *edit,
				struct cordon_settings_edited *ret_edited, int *ret_exit);

/* Whole commands: list all records of a kind, or show the one that the operand names. `record` returns record number i, NULL
 * after the last; `find` returns NULL with the error. */
int cordon_cli_list_settings(struct cordon_cli *cli, int argc, char **argv, const struct cordon_column *columns,
			     json_t *(*record)(const struct cordon_settings_file *settings, size_t i));
int cordon_cli_show_settings(struct cordon_cli *cli, int argc, char **argv,
			     json_t *(*find)(const struct cordon_settings_file *settings, const char *id,
					     struct cordon_error *err));

#endif
