/* SPDX-License-Identifier: Apache-2.0 */
/* Parses options with the table of a command, and prints the help text from the same table. */
#include <stdio.h>

#include "cli/cli.h"
#include "config/recipe_table.h"
#include "config/suggest.h"

#define HELP_COLUMN 30

enum { KEY_JSON = CORDON_KEY_COMMON, KEY_QUIET, KEY_HELP };

const struct cordon_option cordon_common_options[] = {
	{ "json", 0, CORDON_ARG_NONE, NULL, "print machine-readable JSON", KEY_JSON },
	{ "quiet", 'q', CORDON_ARG_NONE, NULL, "print no log lines, and ids only", KEY_QUIET },
	{ "help", 'h', CORDON_ARG_NONE, NULL, "show this help", KEY_HELP },
	{ 0 },
};

/* Adds the options of the rows that name one of these commands. */
static size_t add_rows(unsigned int commands, const struct cordon_option **all, size_t n)
{
	for (size_t i = 0; i < CORDON_RECIPE__MAX && n < CORDON_OPTIONS_MAX; i++)
		if (cordon_recipe_rows[i].commands & commands)
			all[n++] = &cordon_recipe_rows[i].option;
	return n;
}

size_t cordon_cli_options(const struct cordon_command *command,
			  const struct cordon_option *ret_all[static CORDON_OPTIONS_MAX])
{
	size_t n = 0;

	for (const struct cordon_option *o = command->options; o && o->name && n < CORDON_OPTIONS_MAX; o++) {
		if (*o->name)
			ret_all[n++] = o;
		else
			n = add_rows((unsigned int)o->key, ret_all, n);
	}
	for (const struct cordon_option *o = cordon_common_options; o->name && n < CORDON_OPTIONS_MAX; o++)
		ret_all[n++] = o;
	return n;
}

/* The state of one parse. */
struct parse {
	struct cordon_cli *cli;
	const struct cordon_option *all[CORDON_OPTIONS_MAX];
	size_t n;
	int argc;
	char **argv;
	int next; /* index of the argument that comes next */
	int (*set)(void *data, int key, const char *arg, struct cordon_error *err);
	void *data;
	struct cordon_error *err;
};

CORDON_PRINTF(2, 3)
static int misuse(struct parse *p, const char *fmt, ...)
{
	char text[sizeof(p->err->message)];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	cordon_fail(p->err, -EINVAL, CORDON_KIND_USAGE, "%s", text);
	cordon_error_hint(p->err, "see 'cordon %s --help'", p->cli->command->name);
	return -EINVAL;
}

static bool choice_allows(const char *choices, const char *arg)
{
	size_t len = strlen(arg);

	for (const char *c = choices; *c;) {
		size_t n = strcspn(c, "|");

		if (n == len && memcmp(c, arg, n) == 0)
			return true;
		c += n + (c[n] == '|');
	}
	return false;
}

/* Applies one option whose value, if any, is known. Returns 1 after --help. */
static int take(struct parse *p, const struct cordon_option *option, const char *value)
{
	if (option->key == KEY_HELP) {
		cordon_cli_help(p->cli->command);
		return 1;
	}
	if (option->key == KEY_JSON || option->key == KEY_QUIET) {
		*(option->key == KEY_JSON ? &p->cli->json : &p->cli->quiet) = true;
		return 0;
	}
	if (option->arg == CORDON_ARG_CHOICE && !choice_allows(option->meta, value))
		return misuse(p, "--%s is %s, not %s", option->name, option->meta, value);
	return p->set(p->data, option->key, value, p->err);
}

static const char *next_value(struct parse *p)
{
	return p->next < p->argc ? p->argv[p->next++] : NULL;
}

/* Adds the options that `text` may have been meant for: those that begin with it, else the closest one. */
static void add_meant(const struct parse *p, const char *text, size_t len, struct cordon_buf *list)
{
	const char *closest = NULL;
	size_t best = CORDON_SUGGEST_FAR;
	char word[64];

	if (!len || cordon_copy(word, sizeof(word), text, len) < 0)
		return;
	for (size_t i = 0; i < p->n; i++) {
		const char *name = p->all[i]->name;

		if (strncmp(name, word, len) == 0)
			cordon_buf_addf(list, "%s--%s", list->len ? " or " : "", name);
		if (cordon_suggest_closer(word, name, &best))
			closest = name;
	}
	if (!list->len && closest)
		cordon_buf_addf(list, "--%s", closest);
}

static int unknown_option(struct parse *p, const char *dashes, const char *text, size_t len)
{
	autobuf struct cordon_buf list = CORDON_BUF(512);

	misuse(p, "unknown option: %s%.*s", dashes, (int)(len < CORDON_PATH_MAX ? len : CORDON_PATH_MAX), text);
	add_meant(p, text, len, &list);
	if (list.len)
		cordon_error_hint(p->err, "did you mean %s?", list.data);
	return -EINVAL;
}

/* Parses "--name", "--name value" or "--name=value". Names are never abbreviated, so that a new option breaks no
 * script. */
static int parse_long(struct parse *p, const char *text)
{
	size_t len = strcspn(text, "=");
	const char *value = text[len] == '=' ? text + len + 1 : NULL;

	for (size_t i = 0; i < p->n; i++) {
		const struct cordon_option *option = p->all[i];

		if (strlen(option->name) != len || memcmp(option->name, text, len) != 0)
			continue;
		if (!option->arg && value)
			return misuse(p, "option --%s takes no value", option->name);
		if (option->arg && !value)
			value = next_value(p);
		if (option->arg && !value)
			return misuse(p, "option --%s needs a value: %s", option->name, option->meta);
		return take(p, option, value);
	}
	return unknown_option(p, "--", text, len);
}

/* Parses "-x", "-xyz" for flags, "-x value" or "-xvalue". */
static int parse_short(struct parse *p, const char *text)
{
	const char *whole = text;

	for (; *text; text++) {
		const struct cordon_option *option = NULL;
		const char *value = NULL;
		int r;

		for (size_t i = 0; i < p->n; i++)
			if (p->all[i]->letter && p->all[i]->letter == *text)
				option = p->all[i];
		/* "-json" is "--json" with a dash too few; a letter alone is too little to tell what was meant. */
		if (!option && text == whole && text[1])
			return unknown_option(p, "-", text, strcspn(text, "="));
		if (!option)
			return misuse(p, "unknown option: -%c", *text);
		if (option->arg) {
			value = text[1] ? text + 1 : next_value(p);
			if (!value)
				return misuse(p, "option -%c needs a value: %s", *text, option->meta);
		}
		r = take(p, option, value);
		if (r != 0 || option->arg)
			return r;
	}
	return 0;
}

/* Looks ahead for --json, so that an error in an option before it is printed as JSON too. */
static void find_json(const struct parse *p)
{
	for (int i = p->next; i < p->argc && !cordon_streq(p->argv[i], "--"); i++)
		if (cordon_streq(p->argv[i], "--json"))
			p->cli->json = true;
}

int cordon_cli_parse(struct cordon_cli *cli, int argc, char **argv, unsigned int flags,
		     int (*set)(void *data, int key, const char *arg, struct cordon_error *err), void *data,
		     int *ret_first, struct cordon_error *err)
{
	struct parse p = { .cli = cli, .argc = argc, .argv = argv, .next = 1, .set = set, .data = data, .err = err };
	int kept = 0;

	p.n = cordon_cli_options(cli->command, p.all);
	while (p.next < argc) {
		char *arg = argv[p.next];
		int r;

		if (arg[0] != '-' || !arg[1]) {
			if (flags & CORDON_PARSE_STOP)
				break;
			p.next++;
			argv[1 + kept++] = arg;
			continue;
		}
		p.next++;
		if (cordon_streq(arg, "--"))
			break;
		r = arg[1] == '-' ? parse_long(&p, arg + 2) : parse_short(&p, arg + 1);
		if (r < 0 && !(flags & CORDON_PARSE_STOP))
			find_json(&p);
		if (r != 0)
			return r;
	}
	/* The operands found so far are argv[1..kept], the rest begins at p.next. Move them next to each other. */
	for (int k = kept; k >= 1; k--)
		argv[p.next - kept + k - 1] = argv[k];
	*ret_first = p.next - kept;
	return 0;
}

const char *cordon_cli_word_after(const struct cordon_command *command, const char *group)
{
	size_t n = strlen(group);

	if (!n)
		return command->name;
	return strncmp(command->name, group, n) == 0 && command->name[n] == ' ' ? command->name + n + 1 : NULL;
}

void cordon_cli_help(const struct cordon_command *command)
{
	const struct cordon_option *all[CORDON_OPTIONS_MAX];
	size_t n = cordon_cli_options(command, all);

	printf("Usage: cordon %s [OPTION]...%s%s\n\n", command->name, *command->operands ? " " : "", command->operands);
	printf("%c%s.\n", command->summary[0] & ~0x20, command->summary + 1);
	if (command->details)
		printf("\n%s", command->details);
	printf("\nOptions:\n");
	for (size_t i = 0; i < n; i++) {
		char letter[8] = "    ";
		int width;

		if (all[i]->letter)
			snprintf(letter, sizeof(letter), "-%c, ", all[i]->letter);
		width = printf("  %s--%s%s%s", letter, all[i]->name, all[i]->meta ? " " : "",
			       all[i]->meta ? all[i]->meta : "");
		if (width >= HELP_COLUMN)
			width = printf("\n") - 1;
		printf("%*s %s\n", HELP_COLUMN - width, "", all[i]->help);
	}
	for (size_t i = 0, said = 0; cordon_commands[i]; i++)
		if (cordon_cli_word_after(cordon_commands[i], command->name))
			printf("%s  cordon %s  %s\n", said++ ? "" : "\nFurther commands:\n", cordon_commands[i]->name,
			       cordon_commands[i]->summary);
}
