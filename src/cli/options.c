/* SPDX-License-Identifier: Apache-2.0 */
/* Option tables over getopt_long, and the help text made from them. */
#include <getopt.h>
#include <stdio.h>

#include "cli/cli.h"

#define OPTIONS_MAX 64
#define KEY_JSON 1000
#define KEY_HELP 1001

const struct cordon_option cordon_common_options[] = {
	{ "json", 0, CORDON_ARG_NONE, NULL, "print machine-readable JSON", KEY_JSON },
	{ "help", 'h', CORDON_ARG_NONE, NULL, "show this help", KEY_HELP },
	{ 0 },
};

/* The command's own options followed by the common ones. */
static size_t gather(const struct cordon_command *command, const struct cordon_option *all[static OPTIONS_MAX])
{
	size_t n = 0;

	for (const struct cordon_option *o = command->options; o && o->name && n < OPTIONS_MAX; o++)
		all[n++] = o;
	for (const struct cordon_option *o = cordon_common_options; o->name && n < OPTIONS_MAX; o++)
		all[n++] = o;
	return n;
}

static bool choice_allows(const char *choices, const char *arg)
{
	size_t len = strlen(arg);

	for (const char *p = choices; *p;) {
		size_t n = strcspn(p, "|");

		if (n == len && memcmp(p, arg, n) == 0)
			return true;
		p += n + (p[n] == '|');
	}
	return false;
}

static int usage_error(const struct cordon_cli *cli, struct cordon_error *err, const char *what, const char *option)
{
	int r = cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "%s%s", what, option);

	cordon_error_hint(err, "see 'cordon %s --help'", cli->command->name);
	return r;
}

int cordon_cli_parse(struct cordon_cli *cli, int argc, char **argv, unsigned int flags,
		     int (*set)(void *data, int key, const char *arg, struct cordon_error *err), void *data,
		     int *ret_first, struct cordon_error *err)
{
	const struct cordon_option *all[OPTIONS_MAX];
	size_t n = gather(cli->command, all);
	struct option longs[OPTIONS_MAX + 1] = { 0 };
	char shorts[2 * OPTIONS_MAX + 3];
	size_t at = 0;

	shorts[at++] = flags & CORDON_PARSE_STOP ? '+' : '-';
	shorts[at++] = ':';
	for (size_t i = 0; i < n; i++) {
		longs[i] = (struct option){ all[i]->name, all[i]->arg ? required_argument : no_argument, NULL,
					    256 + (int)i };
		if (!all[i]->letter)
			continue;
		shorts[at++] = all[i]->letter;
		if (all[i]->arg)
			shorts[at++] = ':';
	}
	shorts[at] = '\0';

	int kept = 1; /* operands found between options are moved to the front, then behind what was parsed */

	opterr = 0;
	optind = 0;
	for (;;) {
		int c = getopt_long(argc, argv, shorts, longs, NULL);
		const struct cordon_option *option = NULL;
		int r;

		if (c == -1)
			break;
		if (c == 1) {
			argv[kept++] = optarg;
			continue;
		}
		for (size_t i = 0; i < n; i++)
			if (c == 256 + (int)i || (all[i]->letter && c == all[i]->letter))
				option = all[i];
		if (c == ':')
			return usage_error(cli, err, "option needs a value: ", argv[optind - 1]);
		if (!option)
			return usage_error(cli, err, "unknown or ambiguous option: ", argv[optind - 1]);
		if (option->key == KEY_HELP) {
			cordon_cli_help(cli->command);
			return 1;
		}
		if (option->key == KEY_JSON) {
			cli->json = true;
			continue;
		}
		if (option->arg == CORDON_ARG_CHOICE && !choice_allows(option->meta, optarg)) {
			r = cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "--%s is %s, not %s", option->name,
					option->meta, optarg);
			return r;
		}
		r = set(data, option->key, optarg, err);
		if (r < 0)
			return r;
	}
	/* Operands seen so far stand in argv[1..kept), those after "--" from optind on: make them one run. */
	for (int i = kept - 1; i >= 1; i--)
		argv[optind - kept + i] = argv[i];
	*ret_first = optind - (kept - 1);
	return 0;
}

void cordon_cli_help(const struct cordon_command *command)
{
	const struct cordon_option *all[OPTIONS_MAX];
	size_t n = gather(command, all);

	printf("Usage: cordon %s [OPTION]...%s%s\n\n", command->name, *command->operands ? " " : "", command->operands);
	printf("%c%s.\n", command->summary[0] & ~0x20, command->summary + 1);
	if (command->details)
		printf("\n%s", command->details);
	printf("\nOptions:\n");
	for (size_t i = 0; i < n; i++) {
		char letter[8] = "    ";
		char left[96];

		if (all[i]->letter)
			snprintf(letter, sizeof(letter), "-%c, ", all[i]->letter);
		snprintf(left, sizeof(left), "%s--%s%s%s", letter, all[i]->name, all[i]->meta ? " " : "",
			 all[i]->meta ? all[i]->meta : "");
		printf("  %-28s %s\n", left, all[i]->help);
	}
}
