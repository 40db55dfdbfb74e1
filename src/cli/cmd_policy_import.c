/* SPDX-License-Identifier: Apache-2.0 */
/* cordon policy import: settings of another sandbox as a policy file, with a report about every line of theirs. */
#include <fcntl.h>
#include <stdio.h>

#include "base/io.h"
#include "base/path.h"
#include "base/text.h"
#include "cli/commands.h"
#include "config/document.h"
#include "config/import.h"
#include "policy/folders.h"

enum { KEY_OUTPUT = 1, KEY_ROOT };

static const struct cordon_option options[] = {
	{ "output", 'o', CORDON_ARG_FILE, "FILE", "write the policy to FILE, which must not exist (default: stdout)",
	  KEY_OUTPUT },
	{ "root", 0, CORDON_ARG_DIR, "DIR", "root of the policy (default: the git top level, else .)", KEY_ROOT },
	{ 0 },
};

struct args {
	const char *output, *root;
};

static int set(void *data, int key, const char *arg, struct cordon_error *err)
{
	struct args *args = data;

	(void)err;
	*(key == KEY_OUTPUT ? &args->output : &args->root) = arg;
	return 0;
}

static const struct {
	const char *name;
	cordon_import_from from;
} kinds[] = { { "srt", CORDON_IMPORT_SRT }, { "codex", CORDON_IMPORT_CODEX }, { "claude", CORDON_IMPORT_CLAUDE } };

static void print_report(const struct cordon_import *import, const char *file)
{
	for (size_t i = 0; i < import->n; i++) {
		const struct cordon_import_line *line = &import->lines[i];
		autobuf struct cordon_buf text = CORDON_BUF((size_t)1 << 20);

		if (line->line ? cordon_buf_addf(&text, "%s:%u:%u: ", file, line->line, line->column) < 0
			       : cordon_buf_addf(&text, "%s: (default) ", file) < 0)
			continue;
		if (cordon_text_escape(&text, line->key, strlen(line->key)) < 0 || cordon_buf_adds(&text, " = ") < 0 ||
		    cordon_text_escape(&text, line->value, strnlen(line->value, 200)) < 0)
			continue;
		fprintf(stderr, "%-15s %s%s%s%s%s\n", cordon_import_verdict_name(line->verdict), text.data,
			line->became ? " -> " : "", line->became ? line->became : "", line->why ? ": " : "",
			line->why ? line->why : "");
	}
}

static json_t *report_json(const struct cordon_import *import)
{
	json_t *list = json_array();

	for (size_t i = 0; i < import->n; i++) {
		const struct cordon_import_line *line = &import->lines[i];

		json_array_append_new(list, json_pack("{s:o, s:o, s:i, s:i, s:s, s:s?, s:o?}", "key",
						      cordon_cli_json_text(line->key), "value",
						      cordon_cli_json_text(line->value), "line", (int)line->line,
						      "column", (int)line->column, "verdict",
						      cordon_import_verdict_name(line->verdict), "became", line->became,
						      "why", line->why ? cordon_cli_json_text(line->why) : NULL));
	}
	return list;
}

/* Writes a file that is not there yet. */
static int write_new(const char *path, const struct cordon_buf *text, struct cordon_error *err)
{
	autofd int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	int r = fd < 0 ? -errno : cordon_write_all(fd, text->data, text->len);

	return r < 0 ? cordon_fail_errno(err, r, "cannot write %s", path) : 0;
}

static int print(struct cordon_cli *cli, const struct args *args, const struct cordon_import *import, const char *file)
{
	autobuf struct cordon_buf text = CORDON_BUF((size_t)8 << 20);
	struct cordon_error err = { 0 };

	if (cordon_import_yaml(import, &text) < 0) {
		cordon_fail_errno(&err, -ENOMEM, "cannot write the policy");
		return cordon_cli_fail(cli, &err);
	}
	if (args->output && write_new(args->output, &text, &err) < 0)
		return cordon_cli_fail(cli, &err);
	if (cli->json)
		return cordon_cli_print_json(cli, json_pack("{s:O, s:o}", "policy", import->policy, "report",
							    report_json(import)));
	if (!args->output)
		fwrite(text.data, 1, text.len, stdout);
	if (!cli->quiet)
		print_report(import, file);
	return CORDON_EXIT_OK;
}

static int import_file(struct cordon_cli *cli, const struct args *args, cordon_import_from from, const char *file)
{
	struct cordon_errors errors CORDON_CLEANUP(cordon_errors_done) = { 0 };
	struct cordon_import import CORDON_CLEANUP(cordon_import_done) = { 0 };
	struct cordon_root root CORDON_CLEANUP(cordon_root_done) = { .fd = -1 };
	autobuf struct cordon_buf text = CORDON_BUF(CORDON_CONFIG_SIZE_MAX);
	struct cordon_error err = { 0 };
	int r = args->root ? cordon_root_open(args->root, &root, &err) : cordon_repo_root(".", &root, &err);

	if (r == 0)
		r = cordon_read_file(AT_FDCWD, file, 0, &text, &err);
	if (r < 0)
		return cordon_cli_fail(cli, &err);
	if (cordon_import_read(from, file, text.len ? text.data : "", text.len, root.path, &import, &errors) < 0)
		return cordon_cli_fail_all(cli, &errors);
	return print(cli, args, &import, file);
}

static int run(struct cordon_cli *cli, int argc, char **argv)
{
	struct args args = { 0 };
	struct cordon_error err = { 0 };
	int first, r = cordon_cli_parse(cli, argc, argv, 0, set, &args, &first, &err);

	if (r != 0)
		return r > 0 ? CORDON_EXIT_OK : cordon_cli_fail(cli, &err);
	if (first + 2 != argc)
		return cordon_cli_usage(cli, "give srt, codex or claude, and a file");
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(kinds); i++)
		if (cordon_streq(argv[first], kinds[i].name))
			return import_file(cli, &args, kinds[i].from, argv[first + 1]);
	return cordon_cli_usage(cli, "'%s' is not known: srt, codex or claude", argv[first]);
}

const struct cordon_command cordon_cmd_policy_import = {
	.name = "policy import",
	.operands = "srt|codex|claude FILE",
	.summary = "make a policy file of the settings of another sandbox",
	.details = "FILE is the settings file of sandbox-runtime (JSON), Codex (config.toml) or Claude Code (settings.json). The\n"
		   "policy goes to standard output. A report on standard error accounts for each value of theirs: the same,\n"
		   "stricter, weaker, or not enforceable, and why.\n",
	.options = options,
	.run = run,
};
