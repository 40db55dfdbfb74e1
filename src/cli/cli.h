/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command table and its options. One table per command is the source of --help, of the completions and of the test
 * that compares the manual pages with them.
 *
 * To add a command: write src/cli/cmd_<verb>.c with a `const struct cordon_command cordon_cmd_<verb>`, declare it in
 * commands.h, add it to the table in main.c, and write man/cordon-<verb>.1.
 */
#ifndef CORDON_CLI_CLI_H
#define CORDON_CLI_CLI_H

#include <jansson.h>

#include "base/buf.h"
#include "base/exit.h"
#include "base/option.h"
#include "config/errors.h"

#define CORDON_OPTIONS_MAX 64

struct cordon_cli;

struct cordon_command {
	const char *name; /* "check-file", "audit verify" */
	const char *operands; /* "FILE FOLDERS", "[PATH]", "-- CMD [ARG]..."; completion reads the words (cmd_completion.c) */
	const char *summary; /* one line, lower case, no full stop */
	const char *details; /* paragraphs for --help, or NULL */
	const struct cordon_option *options;
	int (*run)(struct cordon_cli *cli, int argc, char **argv); /* argv[0] is the command; returns an exit code */
};

/* The state of one invocation; it lives in main(). */
struct cordon_cli {
	const struct cordon_command *command;
	bool json;	  /* --json was given; set by the option parser for every command */
	bool quiet;	  /* so was --quiet: print no log lines, and of records the ids only */
	int failure_exit; /* what cordon_cli_fail() returns: 1, or 125 for commands that start an agent */
	pid_t last;	  /* a child that is ending, for which main() waits at last; 0: none */
};

/* The options that every command has: --json, --quiet, --help. The parser, help and completions append them to each table. */
extern const struct cordon_option cordon_common_options[];
/* Fills in the command's own options followed by the common ones. Returns how many there are. */
size_t cordon_cli_options(const struct cordon_command *command,
			  const struct cordon_option *ret_all[static CORDON_OPTIONS_MAX]);

/*
 * Parses options of argv with the command's table; calls `set` for each (arg is NULL for flags; return < 0 to stop
 * after having filled err). Options may stand anywhere before "--"; with CORDON_PARSE_STOP the first operand ends
 * them (for commands that run another). Names are never abbreviated. On success *ret_first is the index of the
 * first operand and operands are gathered at the end of argv. Returns 0, or -errno with err (kind usage). --help
 * prints and returns 1.
 */
enum { CORDON_PARSE_STOP = 1 };
int cordon_cli_parse(struct cordon_cli *cli, int argc, char **argv, unsigned int flags,
		     int (*set)(void *data, int key, const char *arg, struct cordon_error *err), void *data,
		     int *ret_first, struct cordon_error *err);

/* Prints the error (one line, or an object with --json on stderr) and returns its exit code (base/exit.h), which is
 * cli->failure_exit for most. A command that finds several errors calls it once for each. */
int cordon_cli_fail(const struct cordon_cli *cli, const struct cordon_error *err);
/* Prints all errors and returns the exit code of the first. */
int cordon_cli_fail_all(const struct cordon_cli *cli, const struct cordon_errors *errors);
/* For usage errors: fills in an error, prints it and returns 2. */
int cordon_cli_usage(const struct cordon_cli *cli, const char *fmt, ...) CORDON_PRINTF(2, 3);

/* Makes a JSON string of any bytes: valid UTF-8 stays as it is, all else becomes escaped text (base/text.h). The second
 * form takes bytes that may include NUL. Both return NULL when memory is out. */
json_t *cordon_cli_json_text(const char *s);
json_t *cordon_cli_json_bytes(const char *s, size_t n);
/* Prints a JSON value and a newline on stdout, and takes the reference. Returns 0 or an exit code. */
int cordon_cli_print_json(const struct cordon_cli *cli, json_t *value);
/* Prints "[WORKSPACE] ..." on stderr with control characters escaped. Prints nothing with --quiet, nor with --json: stderr
 * then has error objects only, and the command's object has the same facts. */
void cordon_cli_workspace_log(const struct cordon_cli *cli, const char *fmt, ...) CORDON_PRINTF(2, 3);
/* Prints the same line, but with --json as {"kind":"notice","message"}: for what must be reported in any case. */
void cordon_cli_notice(const struct cordon_cli *cli, const char *fmt, ...) CORDON_PRINTF(2, 3);
/* Prints the same line with another tag: "[INFO] ...". */
void cordon_cli_log(const struct cordon_cli *cli, const char *tag, const char *fmt, ...) CORDON_PRINTF(3, 4);
/* Returns whether to print colours: on a terminal, and never with NO_COLOR. */
bool cordon_cli_colour(int fd);

/* Makes messages of the library name options. main() calls it once. */
void cordon_cli_name_settings(void);

/* The option table, and for a command that is also a group ("audit") the commands of the group. */
void cordon_cli_help(const struct cordon_command *command);
/* Returns what follows the first word of the command's name ("verify" of "audit verify") if that word is `group`, else
 * NULL. With "" it returns the whole name. */
const char *cordon_cli_word_after(const struct cordon_command *command, const char *group);

/* The command table of main.c, for help, completions and tests. */
extern const struct cordon_command *const cordon_commands[];

#endif
