/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command table and its options. One table per command is the source of --help, of the completions and of the
 * test that compares man pages with them.
 *
 * To add a command: write src/cli/cmd_<verb>.c with a `const struct cordon_command cordon_cmd_<verb>`, add it to
 * the table in main.c, and write man/cordon-<verb>.1.
 */
#ifndef CORDON_CLI_CLI_H
#define CORDON_CLI_CLI_H

#include <jansson.h>

#include "base/buf.h"
#include "base/error.h"
#include "config/errors.h"

/* Exit codes of cordon itself (design: API). */
enum {
	CORDON_EXIT_OK = 0,
	CORDON_EXIT_NO = 1, /* the answer is no; refused or failed, for commands that start no agent */
	CORDON_EXIT_USAGE = 2,
	CORDON_EXIT_TIMEOUT = 124,
	CORDON_EXIT_REFUSED = 125, /* refused or failed before the agent started */
	CORDON_EXIT_NOT_EXECUTABLE = 126,
	CORDON_EXIT_NOT_FOUND = 127,
	CORDON_EXIT_SIGNAL = 128,
};

/* What an option's argument is, for completion. */
enum cordon_arg { CORDON_ARG_NONE, CORDON_ARG_TEXT, CORDON_ARG_FILE, CORDON_ARG_DIR, CORDON_ARG_CHOICE };

struct cordon_option {
	const char *name; /* without dashes; NULL ends the table */
	char letter;	  /* short form, or 0 */
	enum cordon_arg arg;
	const char *meta; /* how help calls the argument: "PATTERN"; for CHOICE "read|write" */
	const char *help; /* one line */
	int key;	  /* what the callback gets; CORDON_KEY_COMMON and above are taken */
};

#define CORDON_OPTIONS_MAX 64
#define CORDON_KEY_SCOPE 900   /* the options of scope.h */
#define CORDON_KEY_COMMON 1000 /* --json, --help */

struct cordon_cli;

struct cordon_command {
	const char *name;     /* "check-file", "agent add" */
	const char *operands; /* "FILE FOLDERS", "[PATH]", "-- CMD [ARG]..."; completion reads the words (completion.c) */
	const char *summary; /* one line, lower case, no full stop */
	const char *details; /* paragraphs for --help, or NULL */
	const struct cordon_option *options;
	int (*run)(struct cordon_cli *cli, int argc, char **argv); /* argv[0] is the command; returns an exit code */
};

/* State of one invocation; lives in main(). */
struct cordon_cli {
	const struct cordon_command *command;
	bool json;	  /* --json was given; set by the option parser for every command */
	int failure_exit; /* what cordon_cli_fail() returns: 1, or 125 for commands that start an agent */
};

/* Options every command has: --json, --help. Appended to each table by the parser, help and completions. */
extern const struct cordon_option cordon_common_options[];
/* The command's own options followed by the common ones; returns how many. */
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

/* Prints the error (one line, or an object with --json on stderr) and returns the exit code for its kind: 2 for
 * usage, else cli->failure_exit. May be called once per error when a command reports several. */
int cordon_cli_fail(const struct cordon_cli *cli, const struct cordon_error *err);
/* Prints all of them; the code of the first. */
int cordon_cli_fail_all(const struct cordon_cli *cli, const struct cordon_errors *errors);
/* Shorthand for usage errors: fills, prints, returns 2. */
int cordon_cli_usage(const struct cordon_cli *cli, const char *fmt, ...) CORDON_PRINTF(2, 3);

/* A JSON string for any bytes: valid UTF-8 as it is, anything else as escaped text (base/text.h). The second form
 * takes bytes among which there may be a NUL. NULL without memory. */
json_t *cordon_cli_json_text(const char *s);
json_t *cordon_cli_json_bytes(const char *s, size_t n);
/* Prints a JSON value and a newline on stdout, takes the reference. 0 or an exit code. */
int cordon_cli_print_json(const struct cordon_cli *cli, json_t *value);
/* "[WORKSPACE] ..." on stderr, control characters escaped. With --json nothing: stderr then carries error objects
 * only, and the command's object says the same. */
void cordon_cli_workspace_log(const struct cordon_cli *cli, const char *fmt, ...) CORDON_PRINTF(2, 3);
/* The same for what must be said in any case: with --json as {"kind":"notice","message"}. */
void cordon_cli_notice(const struct cordon_cli *cli, const char *fmt, ...) CORDON_PRINTF(2, 3);
/* The same with another tag: "[INFO] ...". */
void cordon_cli_log(const struct cordon_cli *cli, const char *tag, const char *fmt, ...) CORDON_PRINTF(3, 4);
/* Colour only on a terminal, never with NO_COLOR. */
bool cordon_cli_colour(int fd);

void cordon_cli_help(const struct cordon_command *command);

/* The command table of main.c, for help, completions and tests. */
extern const struct cordon_command *const cordon_commands[];

#endif
