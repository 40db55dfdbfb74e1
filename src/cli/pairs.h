/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the commands about orchestrators, shared areas and channel profiles print: lines of key=value, tables with --table,
 * and objects with --json. Their options have the settings file in common.
 */
#ifndef CORDON_CLI_PAIRS_H
#define CORDON_CLI_PAIRS_H

#include "cli/records.h"
#include "config/settings_file.h"

#define CORDON_KEY_CONFIG 700
#define CORDON_KEY_TABLE 701

/* clang-format off */
#define CORDON_CONFIG_OPTION \
	{ "config", 0, CORDON_ARG_FILE, "FILE", "settings file (default: $CORDON_CONFIG, else config.yaml in $CORDON_HOME)", CORDON_KEY_CONFIG }
#define CORDON_TABLE_OPTION \
	{ "table", 0, CORDON_ARG_NONE, NULL, "print a table", CORDON_KEY_TABLE }
/* clang-format on */

/* Parses the options and exactly `n` operands, which *ret_operands gets. Returns false with the exit code when there is
 * nothing more to do. */
bool cordon_cli_begin(struct cordon_cli *cli, int argc, char **argv, int n,
		      int (*set)(void *data, int key, const char *arg, struct cordon_error *err), void *data,
		      const char **ret_operands, int *ret_exit);
/* A value as it stands behind the equals sign: escaped, lists with commas, a grant as "docs" or "docs:ro". `text` is
 * emptied first. */
void cordon_cli_pair_value(struct cordon_buf *text, const json_t *value);
/* Prints a first line, if it is not NULL, and then one key=value line for each member. With --json it prints the object,
 * with --quiet the first member's value alone. Takes the reference. Returns the exit code. */
int cordon_cli_answer_pairs(const struct cordon_cli *cli, const char *headline, json_t *record);
/* Prints one line for each record, with a tab between its key=value pairs, or as `table` says. Takes the reference. */
int cordon_cli_list_pairs(const struct cordon_cli *cli, const struct cordon_column *columns, bool table,
			  json_t *records);
/* Loads the settings, or prints every error and sets *ret_exit. Flags are those of cordon_settings_load(). */
bool cordon_cli_load_settings(const struct cordon_cli *cli, const char *config, unsigned int flags,
			      struct cordon_settings_file **ret_settings, int *ret_exit);

#endif
