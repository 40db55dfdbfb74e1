/* SPDX-License-Identifier: Apache-2.0 */
/* What an option of the command line is: a row of a command's table (cli/cli.h) or of the table of a run
 * (config/recipe_table.h). */
#ifndef CORDON_BASE_OPTION_H
#define CORDON_BASE_OPTION_H

/* What an option's argument is; completion uses it. */
enum cordon_arg {
	CORDON_ARG_NONE,
	CORDON_ARG_TEXT,
	CORDON_ARG_FILE,
	CORDON_ARG_DIR,
	CORDON_ARG_CHOICE,
	CORDON_ARG_PROFILE,
	CORDON_ARG_HOSTS, /* hosts, or one of the words that follow in `meta` */
};

#define CORDON_KEY_RECIPE 900  /* the rows of config/recipe_table.h: this, and the row's id */
#define CORDON_KEY_COMMON 1000 /* --json, --quiet, --help */

struct cordon_option {
	const char *name; /* without dashes; NULL ends the table */
	char letter;	  /* short form, or 0 */
	enum cordon_arg arg;
	const char *meta; /* what help calls the argument: "PATTERN"; for CHOICE "read|write" */
	const char *help; /* one line */
	int key;	  /* what the callback gets; CORDON_KEY_RECIPE and above are reserved */
};

#endif
