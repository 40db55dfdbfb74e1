/* SPDX-License-Identifier: Apache-2.0 */
/* cordon completion: prints completions for bash, zsh and fish, made from the option tables. */
#include <stdio.h>

#include "cli/commands.h"
#include "cli/completion_ids.h"

enum { OPT_IDS = 1, OPT_PROJECT };

static const struct cordon_option options[] = {
	{ "ids", 0, CORDON_ARG_CHOICE, CORDON_ID_KINDS, "print names and ids instead, for the completions", OPT_IDS },
	{ "project", 0, CORDON_ARG_TEXT, "PROJECT", "with --ids workspaces: of this project", OPT_PROJECT },
	{ 0 },
};

struct args {
	const char *ids, *project;
};

static int set(void *data, int key, const char *arg, struct cordon_error *err)
{
	struct args *args = data;

	(void)err;
	*(key == OPT_IDS ? &args->ids : &args->project) = arg;
	return 0;
}

#define IDS_MAX 2
/* Prints the names of the profiles. */
#define LIST_PROFILES "cordon profile list 2>/dev/null | sed \"s/ .*//\""

/* What may be completed for an argument. For operands, the words of `operands` decide it: "FILE [FOLDERS]",
 * "bash|zsh|fish". */
struct wanted {
	const char *ids[IDS_MAX]; /* for operands: the kind of the first and of the second one; the rest comes after these */
	size_t n_ids;
	bool files;
	bool dirs;
	bool folders; /* a comma list of directories */
	bool programs;
	bool profiles;	 /* a comma list of them */
	char words[128]; /* separated by blanks */
};

/* The kind of id that a word of the help stands for (completion_ids.h), or NULL. */
static const char *kind_of_id(const char *word, size_t n)
{
	static const char *const kinds[][2] = {
		{ "PROJECT", "projects" }, { "WORKSPACE", "workspaces" },
		{ "SESSION", "sessions" }, { "RUN-ID", "runs" },
		{ "RUN", "crews" },	   { "ORCHESTRATOR", "orchestrators" },
		{ "AREA", "areas" },	   { "CHANNEL-PROFILE", "channel-profiles" },
		{ "VIEW", "views" },	   { "WORKFLOW-RUN", "workflow-runs" },
		{ "PRESET", "presets" },   { "APPROVAL", "approvals" },
	};

	for (size_t i = 0; i < CORDON_ARRAY_SIZE(kinds); i++)
		if (strlen(kinds[i][0]) == n && memcmp(kinds[i][0], word, n) == 0)
			return kinds[i][1];
	return NULL;
}

static void want_words(struct wanted *wanted, const char *choices, size_t n)
{
	size_t at = strlen(wanted->words);

	snprintf(wanted->words + at, sizeof(wanted->words) - at, "%s%.*s", at ? " " : "", (int)n, choices);
	for (char *p = wanted->words; *p; p++)
		if (*p == '|')
			*p = ' ';
}

static void want_operand(struct wanted *wanted, const char *word, size_t n)
{
	static const struct {
		const char *word;
		size_t offset;
	} kinds[] = {
		{ "FILE", offsetof(struct wanted, files) },	  { "PATH", offsetof(struct wanted, files) },
		{ "PRD", offsetof(struct wanted, files) },	  { "DIR", offsetof(struct wanted, dirs) },
		{ "FOLDERS", offsetof(struct wanted, folders) },  { "CMD", offsetof(struct wanted, programs) },
		{ "PROFILE", offsetof(struct wanted, profiles) },
	};

	for (size_t i = 0; i < CORDON_ARRAY_SIZE(kinds); i++)
		if (strlen(kinds[i].word) == n && memcmp(kinds[i].word, word, n) == 0)
			*(bool *)((char *)wanted + kinds[i].offset) = true;
	if (kind_of_id(word, n) && wanted->n_ids < IDS_MAX)
		wanted->ids[wanted->n_ids++] = kind_of_id(word, n);
	else if (n == 4 && memcmp(word, "MODE", n) == 0)
		want_words(wanted, "strict|permissive", 17);
	else if (memchr(word, '|', n))
		want_words(wanted, word, n);
}

static struct wanted operands_of(const struct cordon_command *command)
{
	struct wanted wanted = { 0 };

	for (const char *p = command->operands; *p;) {
		size_t skip = strspn(p, " []().-"), n;

		p += skip;
		n = strcspn(p, " []().");
		want_operand(&wanted, p, n);
		p += n;
	}
	return wanted;
}

static struct wanted argument_of(const struct cordon_option *option)
{
	struct wanted wanted = { 0 };

	if (option->arg == CORDON_ARG_TEXT && kind_of_id(option->meta, strlen(option->meta)))
		wanted.ids[wanted.n_ids++] = kind_of_id(option->meta, strlen(option->meta));
	wanted.files = option->arg == CORDON_ARG_FILE;
	wanted.folders = option->arg == CORDON_ARG_DIR && cordon_streq(option->meta, "FOLDERS");
	wanted.dirs = option->arg == CORDON_ARG_DIR && !wanted.folders;
	wanted.profiles = option->arg == CORDON_ARG_PROFILE;
	if (option->arg == CORDON_ARG_CHOICE)
		want_words(&wanted, option->meta, strlen(option->meta));
	if (option->arg == CORDON_ARG_HOSTS && strchr(option->meta, '|'))
		want_words(&wanted, strchr(option->meta, '|') + 1, strlen(strchr(option->meta, '|') + 1));
	return wanted;
}

/* Prints one of our own texts between single quotes. A quote in the text closes the string, is escaped, and opens it
 * again. */
static void put_quoted(const char *s, const char *escape)
{
	for (; *s; s++) {
		if (*s == '\'')
			fputs("'\\''", stdout);
		else if (strchr(escape, *s))
			printf("\\%c", *s);
		else
			putchar(*s);
	}
}

/* Commands of two words ("audit verify") stand next to each other in the table. Returns true for the first command with
 * this first word; ret_len is the length of that word. */
static bool begins_group(size_t i, size_t *ret_len)
{
	const char *name = cordon_commands[i]->name;
	size_t n = strcspn(name, " ");

	*ret_len = n;
	return i == 0 || strncmp(cordon_commands[i - 1]->name, name, n) != 0 ||
	       strcspn(cordon_commands[i - 1]->name, " ") != n;
}

/* Returns the second word of command j if it is in the group of command i, else NULL. */
static const char *second_word(size_t i, size_t j)
{
	size_t n = strcspn(cordon_commands[i]->name, " ");
	const char *name = cordon_commands[j]->name;

	return strncmp(name, cordon_commands[i]->name, n) == 0 && name[n] == ' ' ? name + n + 1 : NULL;
}

/* Prints the options of the command that take a value, with blanks around each, so that a script can tell values from
 * operands. */
static void put_valued(const struct cordon_command *command)
{
	const struct cordon_option *all[CORDON_OPTIONS_MAX];
	size_t n = cordon_cli_options(command, all);

	putchar(' ');
	for (size_t i = 0; i < n; i++) {
		if (all[i]->arg)
			printf("--%s ", all[i]->name);
		if (all[i]->arg && all[i]->letter)
			printf("-%c ", all[i]->letter);
	}
}

/* Returns how many words the command's name has. */
static int words_of(const struct cordon_command *command)
{
	return strchr(command->name, ' ') ? 2 : 1;
}

/* Calls `put` for every group, that is for every first word that has second words. */
static void each_group(void (*put)(const char *group, size_t len, size_t first))
{
	for (size_t i = 0; cordon_commands[i]; i++) {
		size_t len, seconds = 0;

		if (!begins_group(i, &len))
			continue;
		for (size_t j = i; cordon_commands[j]; j++)
			seconds += second_word(i, j) != NULL;
		if (seconds)
			put(cordon_commands[i]->name, len, i);
	}
}

static void put_first_words(void)
{
	size_t len;

	for (size_t i = 0; cordon_commands[i]; i++)
		if (begins_group(i, &len))
			printf("%.*s ", (int)len, cordon_commands[i]->name);
	for (size_t i = 0; cordon_clients[i]; i++)
		printf("%s ", cordon_clients[i]);
}

static void put_second_words(size_t first, const char *between)
{
	for (size_t j = first, said = 0; cordon_commands[j]; j++)
		if (second_word(first, j))
			printf("%s%s", said++ ? between : "", second_word(first, j));
}

/* ---- bash ---- */

static void bash_wanted(const struct wanted *wanted, const char *indent)
{
	if (wanted->files)
		printf("%s_cordon_add -f -- \"$cur\"\n", indent);
	else if (wanted->dirs)
		printf("%s_cordon_add -d -- \"$cur\"\n", indent);
	if (wanted->folders)
		printf("%s_cordon_add -P \"${cur%%\"${cur##*,}\"}\" -d -- \"${cur##*,}\"\n", indent);
	if (wanted->profiles)
		printf("%s_cordon_add -P \"${cur%%\"${cur##*,}\"}\" -W \"$(" LIST_PROFILES ")\" -- \"${cur##*,}\"\n",
		       indent);
	if (wanted->programs)
		printf("%s_cordon_add -c -- \"$cur\"\n", indent);
	if (wanted->words[0])
		printf("%s_cordon_add -W '%s' -- \"$cur\"\n", indent, wanted->words);
}

static void bash_command(const struct cordon_command *command)
{
	const struct cordon_option *all[CORDON_OPTIONS_MAX];
	size_t n = cordon_cli_options(command, all);
	struct wanted wanted = operands_of(command);

	printf("\t'%s')\n\t\t_cordon_operands %d '", command->name, words_of(command) + 1);
	put_valued(command);
	printf("'\n\t\tcase \"$prev\" in\n");
	for (size_t i = 0; i < n; i++) {
		struct wanted argument = argument_of(all[i]);

		if (!all[i]->arg)
			continue;
		printf("\t\t--%s", all[i]->name);
		if (all[i]->letter)
			printf(" | -%c", all[i]->letter);
		printf(")\n");
		if (argument.n_ids)
			printf("\t\t\t_cordon_ids %s\n", argument.ids[0]);
		bash_wanted(&argument, "\t\t\t");
		printf("\t\t\treturn\n\t\t\t;;\n");
	}
	printf("\t\tesac\n\t\tcase \"$cur\" in\n\t\t-*) _cordon_add -W '");
	for (size_t i = 0; i < n; i++)
		printf("%s--%s", i ? " " : "", all[i]->name);
	printf("' -- \"$cur\" ;;\n\t\t*)\n\t\t\tcase ${#operands[@]} in\n");
	for (size_t i = 0; i < wanted.n_ids; i++)
		printf("\t\t\t%zu) _cordon_ids %s ;;\n", i, wanted.ids[i]);
	printf("\t\t\t*)\n\t\t\t\t:\n");
	bash_wanted(&wanted, "\t\t\t\t");
	printf("\t\t\t\t;;\n\t\t\tesac\n\t\t\t;;\n\t\tesac\n\t\t;;\n");
}

static void bash_group(const char *group, size_t len, size_t first)
{
	printf("\t%.*s)\n\t\t[ \"$COMP_CWORD\" -ne 2 ] || _cordon_add -W '", (int)len, group);
	put_second_words(first, " ");
	printf("' -- \"$cur\"\n\t\tcase \"${COMP_WORDS[2]}\" in\n\t\t");
	put_second_words(first, " | ");
	printf(") name=\"$name ${COMP_WORDS[2]}\" ;;\n\t\tesac\n\t\t;;\n");
}

static void print_bash(void)
{
	printf("# bash completion for cordon, made by 'cordon completion bash'.\n\n"
	       "_cordon_add()\n{\n"
	       "\tlocal line\n"
	       "\twhile IFS= read -r line; do COMPREPLY+=(\"$line\"); done < <(compgen \"$@\")\n"
	       "}\n\n"
	       "# Names and ids of a kind; those of workspaces belong to the project that is the first operand.\n"
	       "_cordon_ids()\n{\n"
	       "\tlocal line program=${COMP_WORDS[0]/#\\~/$HOME}\n"
	       "\twhile IFS=$'\\t' read -r line _; do COMPREPLY+=(\"$line\"); done < <(\n"
	       "\t\t\"$program\" completion --ids \"$1\" ${operands[0]+--project \"${operands[0]}\"} -- \"$cur\" 2>/dev/null\n"
	       "\t)\n"
	       "}\n\n"
	       "# The operands before the cursor. $1 is the index of the first word after the command, $2 the options with a value.\n"
	       "_cordon_operands()\n{\n"
	       "\tlocal i word\n"
	       "\tfor ((i = $1; i < COMP_CWORD; i++)); do\n"
	       "\t\tword=${COMP_WORDS[i]}\n"
	       "\t\tcase \"$word\" in\n"
	       "\t\t--) ;;\n"
	       "\t\t=) ((i++)) ;;\n"
	       "\t\t-*) if [[ $2 == *\" $word \"* && ${COMP_WORDS[i + 1]} != = ]]; then ((i++)); fi ;;\n"
	       "\t\t*) operands+=(\"$word\") ;;\n"
	       "\t\tesac\n"
	       "\tdone\n"
	       "}\n\n"
	       "_cordon()\n{\n"
	       "\tlocal operands=()\n"
	       "\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} name=${COMP_WORDS[1]}\n"
	       "\tCOMPREPLY=()\n"
	       "\tif [ \"$COMP_CWORD\" -eq 1 ]; then\n"
	       "\t\t_cordon_add -W '");
	put_first_words();
	printf("help --help --version' -- \"$cur\"\n\t\treturn\n\tfi\n"
	       "\tcompopt -o filenames 2>/dev/null\n"
	       "\tcase \"$name\" in\n");
	each_group(bash_group);
	printf("\tesac\n\tcase \"$name\" in\n");
	for (size_t i = 0; cordon_commands[i]; i++)
		bash_command(cordon_commands[i]);
	printf("\tesac\n}\n\ncomplete -F _cordon cordon\n");
}

/* ---- zsh ---- */

static void zsh_action(const struct wanted *wanted)
{
	if (wanted->n_ids)
		printf(" _cordon_ids %s", wanted->ids[0]);
	else if (wanted->files)
		printf("_files");
	else if (wanted->folders)
		printf("_sequence _files -/");
	else if (wanted->dirs)
		printf("_files -/");
	else if (wanted->programs)
		printf("_command_names -e");
	else if (wanted->profiles)
		printf("_sequence compadd - $(" LIST_PROFILES ")");
	else if (wanted->words[0])
		printf("(%s)", wanted->words);
}

static void zsh_command(const struct cordon_command *command)
{
	const struct cordon_option *all[CORDON_OPTIONS_MAX];
	size_t n = cordon_cli_options(command, all);
	struct wanted operands = operands_of(command);

	printf("\t('%s')\n\t\tvalued='", command->name);
	put_valued(command);
	printf("'\n\t\t_arguments -s");
	for (size_t i = 0; i < n; i++) {
		struct wanted argument = argument_of(all[i]);

		for (int letter = 0; letter <= (all[i]->letter ? 1 : 0); letter++) {
			printf(" \\\n\t\t\t'*-%s", letter ? "" : "-");
			if (letter)
				putchar(all[i]->letter);
			else
				fputs(all[i]->name, stdout);
			printf("[");
			put_quoted(all[i]->help, "[]:\\");
			printf("]");
			if (all[i]->arg) {
				putchar(':');
				put_quoted(all[i]->meta, "[]:\\");
				putchar(':');
				zsh_action(&argument);
			}
			printf("'");
		}
	}
	for (size_t i = 0; i < operands.n_ids; i++)
		printf(" \\\n\t\t\t'%zu:%s: _cordon_ids %s'", i + 1, operands.ids[i], operands.ids[i]);
	operands.n_ids = 0;
	if (*command->operands) {
		printf(" \\\n\t\t\t'*:");
		put_quoted(command->operands, "[]:\\");
		printf(":");
		zsh_action(&operands);
		printf("'");
	}
	printf("\n\t\t;;\n");
}

static void zsh_described(const char *word, size_t len, const char *summary)
{
	printf("\t\t'%.*s:", (int)len, word);
	put_quoted(summary, ":\\");
	printf("'\n");
}

static void zsh_group(const char *group, size_t len, size_t first)
{
	printf("\t(%.*s)\n\t\tif (( CURRENT == 3 )); then\n\t\t\tcommands=(\n", (int)len, group);
	for (size_t j = first; cordon_commands[j]; j++)
		if (second_word(first, j))
			zsh_described(second_word(first, j), strlen(second_word(first, j)), cordon_commands[j]->summary);
	printf("\t\t\t)\n\t\t\t_describe command commands\n\t\tfi\n\t\tcase $words[3] in\n\t\t(");
	put_second_words(first, "|");
	printf(") name=\"$name $words[3]\"; shift words; (( CURRENT-- )) ;;\n\t\tesac\n\t\t;;\n");
}

static void print_zsh(void)
{
	size_t len;

	printf("#compdef cordon\n# zsh completion for cordon, made by 'cordon completion zsh'.\n\n"
	       "# Names and ids of a kind; those of workspaces belong to the project that is the first operand.\n"
	       "_cordon_ids() {\n"
	       "\tlocal -a found of\n"
	       "\tlocal -i i\n"
	       "\tfor (( i = 2; i < CURRENT; i++ )); do\n"
	       "\t\tcase $words[i] in\n"
	       "\t\t(-*) [[ $valued != *\" $words[i] \"* ]] || (( i++ )) ;;\n"
	       "\t\t(*) of=(--project \"${(Q)words[i]}\"); break ;;\n"
	       "\t\tesac\n"
	       "\tdone\n"
	       "\tfound=(${(f)\"$($program completion --ids $1 $of -- \"${(Q)PREFIX}\" 2>/dev/null)\"})\n"
	       "\tfound=(\"${(@)found//:/\\\\:}\")\n"
	       "\tfound=(\"${(@)found/$'\\t'/:}\")\n"
	       "\t_describe $1 found\n"
	       "}\n\n"
	       "_cordon() {\n\tlocal -a commands\n\tlocal name=$words[2] program=${(e)words[1]} valued=''\n\tcommands=(\n");
	for (size_t i = 0; cordon_commands[i]; i++) {
		if (!begins_group(i, &len))
			continue;
		if (!cordon_commands[i]->name[len]) {
			zsh_described(cordon_commands[i]->name, len, cordon_commands[i]->summary);
			continue;
		}
		printf("\t\t'%.*s:", (int)len, cordon_commands[i]->name);
		put_second_words(i, ", ");
		printf("'\n");
	}
	for (size_t i = 0; cordon_clients[i]; i++)
		zsh_described(cordon_clients[i], strlen(cordon_clients[i]), "run this client in a sandbox");
	printf("\t)\n\tif (( CURRENT == 2 )); then\n\t\t_describe command commands\n\t\treturn\n\tfi\n\tcase $name in\n");
	each_group(zsh_group);
	printf("\tesac\n\tshift words\n\t(( CURRENT-- ))\n\tcase $name in\n");
	for (size_t i = 0; cordon_commands[i]; i++)
		zsh_command(cordon_commands[i]);
	printf("\tesac\n}\n\n_cordon \"$@\"\n");
}

/* ---- fish ---- */

static void fish_condition(const char *name)
{
	printf("complete -c cordon -n '__cordon_command %s", name);
}

/* The condition for the operand at this position: the first one is at 0. */
static void fish_operand(const struct cordon_command *command, size_t at, const char *compare)
{
	fish_condition(command->name);
	printf("; and test (count (__cordon_operands %d \"", words_of(command) + 1);
	put_valued(command);
	printf("\")) %s %zu'", compare, at);
}

static void fish_ids(const char *kind, const struct cordon_command *command)
{
	printf(" -a '(__cordon_ids %s %d \"", kind, words_of(command) + 1);
	put_valued(command);
	printf("\")'");
}

static void fish_wanted(const struct wanted *wanted)
{
	if (wanted->files)
		printf(" -F");
	else if (wanted->dirs || wanted->folders)
		printf(" -a '(__fish_complete_directories)'");
	else if (wanted->programs)
		printf(" -a '(__fish_complete_command)'");
	else if (wanted->profiles)
		printf(" -a '(" LIST_PROFILES ")'");
	if (wanted->words[0])
		printf(" -a '%s'", wanted->words);
}

static void fish_command(const struct cordon_command *command)
{
	const struct cordon_option *all[CORDON_OPTIONS_MAX];
	size_t n = cordon_cli_options(command, all), first = strcspn(command->name, " ");
	struct wanted operands = operands_of(command);

	if (command->name[first])
		printf("complete -c cordon -n '__cordon_command %.*s; and test (count (commandline -opc)) -eq 2' -a %s -d '",
		       (int)first, command->name, command->name + first + 1);
	else
		printf("complete -c cordon -n __fish_use_subcommand -a %s -d '", command->name);
	put_quoted(command->summary, "\\");
	printf("'\n");
	for (size_t i = 0; i < n; i++) {
		struct wanted argument = argument_of(all[i]);

		fish_condition(command->name);
		printf("' -l %s", all[i]->name);
		if (all[i]->letter)
			printf(" -s %c", all[i]->letter);
		if (all[i]->arg)
			printf(" -r");
		if (argument.n_ids)
			fish_ids(argument.ids[0], command);
		fish_wanted(&argument);
		printf(" -d '");
		put_quoted(all[i]->help, "\\");
		printf("'\n");
	}
	for (size_t i = 0; i < operands.n_ids; i++) {
		fish_operand(command, i, "-eq");
		fish_ids(operands.ids[i], command);
		printf("\n");
	}
	if (operands.files || operands.dirs || operands.folders || operands.programs || operands.profiles ||
	    operands.words[0]) {
		fish_operand(command, operands.n_ids, "-ge");
		fish_wanted(&operands);
		printf("\n");
	}
}

/* A first word that is no command of its own is described by the words that can follow it. */
static void fish_group(const char *group, size_t len, size_t first)
{
	if (!group[len])
		return;
	printf("complete -c cordon -n __fish_use_subcommand -a %.*s -d '", (int)len, group);
	put_second_words(first, ", ");
	printf("'\n");
}

static void print_fish(void)
{
	printf("# fish completion for cordon, made by 'cordon completion fish'.\n\n"
	       "# Whether these words are the command.\n"
	       "function __cordon_command\n"
	       "    set -l words (commandline -opc)\n"
	       "    set -l last (math 1 + (count $argv))\n"
	       "    test \"$words[2..$last]\" = \"$argv\"\n"
	       "end\n\n"
	       "# The operands before the cursor, after so many words; the options in the second argument take a value.\n"
	       "function __cordon_operands\n"
	       "    set -l words (commandline -opc)\n"
	       "    set -l skip no\n"
	       "    for word in $words[(math $argv[1] + 1)..-1]\n"
	       "        if test $skip = yes\n"
	       "            set skip no\n"
	       "        else if string match -q -- '-*' $word\n"
	       "            string match -q -- \"* $word *\" $argv[2]; and set skip yes\n"
	       "        else\n"
	       "            printf '%%s\\n' $word\n"
	       "        end\n"
	       "    end\n"
	       "end\n\n"
	       "# Names and ids of a kind; those of workspaces belong to the project that is the first operand.\n"
	       "function __cordon_ids\n"
	       "    set -l program (commandline -opc)[1]\n"
	       "    set -l operands (__cordon_operands $argv[2] $argv[3])\n"
	       "    set -l of\n"
	       "    set -q operands[1]; and set of --project $operands[1]\n"
	       "    $program completion --ids $argv[1] $of -- (commandline -ct) 2>/dev/null\n"
	       "end\n\n"
	       "complete -c cordon -f\n");
	each_group(fish_group);
	for (size_t i = 0; cordon_commands[i]; i++)
		fish_command(cordon_commands[i]);
	for (size_t i = 0; cordon_clients[i]; i++)
		printf("complete -c cordon -n __fish_use_subcommand -a %s -d 'run this client in a sandbox'\n",
		       cordon_clients[i]);
}

static int run(struct cordon_cli *cli, int argc, char **argv)
{
	struct cordon_error err = { 0 };
	struct args args = { 0 };
	int first, r = cordon_cli_parse(cli, argc, argv, 0, set, &args, &first, &err);

	if (r != 0)
		return r > 0 ? CORDON_EXIT_OK : cordon_cli_fail(cli, &err);
	if (args.ids && argc - first <= 1) {
		r = cordon_cli_completion_ids(args.ids, args.project, first < argc ? argv[first] : "", &err);
		return r < 0 ? cordon_cli_fail(cli, &err) : CORDON_EXIT_OK;
	}
	if (argc - first != 1)
		return cordon_cli_usage(cli, "one shell is expected: bash, zsh or fish");
	if (cordon_streq(argv[first], "bash"))
		print_bash();
	else if (cordon_streq(argv[first], "zsh"))
		print_zsh();
	else if (cordon_streq(argv[first], "fish"))
		print_fish();
	else
		return cordon_cli_usage(cli, "no completions for %s: bash, zsh or fish", argv[first]);
	return CORDON_EXIT_OK;
}

const struct cordon_command cordon_cmd_completion = {
	.name = "completion",
	.operands = "bash|zsh|fish",
	.summary = "print completions for a shell",
	.details = "For bash: source <(cordon completion bash). An installation puts the files where the shells look.\n"
		   "With --ids the operand is the beginning of a name or id, and what has it is printed one per line, followed by a\n"
		   "tab and what it is.\n",
	.options = options,
	.run = run,
};
