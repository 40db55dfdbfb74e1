/* SPDX-License-Identifier: Apache-2.0 */
/* cordon prd new: fills a template of $CORDON_HOME/templates and prints the PRD. */
#include <fcntl.h>
#include <stdio.h>

#include "base/home.h"
#include "base/io.h"
#include "base/path.h"
#include "cli/commands.h"
#include "config/prd.h"
#include "config/settings_file.h"
#include "config/template.h"

enum { KEY_TEMPLATE, KEY_SET };

static const struct cordon_option options[] = {
	{ "template", 0, CORDON_ARG_TEXT, "NAME", "the template, NAME.json in $CORDON_HOME/templates", KEY_TEMPLATE },
	{ "set", 0, CORDON_ARG_TEXT, "NAME=VALUE", "the value of {{NAME}} (repeatable)", KEY_SET },
	{ 0 },
};

struct args {
	const char *template;
	struct cordon_template_var vars[CORDON_TEMPLATE_VARS_MAX];
	size_t n;
};

static bool is_set(const struct args *args, const struct cordon_template_var *var)
{
	for (size_t i = 0; i < args->n; i++)
		if (args->vars[i].n_name == var->n_name && memcmp(args->vars[i].name, var->name, var->n_name) == 0)
			return true;
	return false;
}

static int set(void *data, int key, const char *arg, struct cordon_error *err)
{
	struct args *args = data;
	struct cordon_template_var var;
	int r;

	if (key == KEY_TEMPLATE) {
		args->template = arg;
		return 0;
	}
	r = cordon_template_var_parse(arg, &var, err);
	if (r < 0)
		return cordon_error_prefix(err, r, "--set");
	if (is_set(args, &var))
		return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "--set: %.*s was given twice", (int)var.n_name,
				   var.name);
	if (args->n == CORDON_TEMPLATE_VARS_MAX)
		return cordon_fail(err, -E2BIG, CORDON_KIND_USAGE, "--set: more than %d variables",
				   CORDON_TEMPLATE_VARS_MAX);
	args->vars[args->n++] = var;
	return 0;
}

/* Finds the file of the template, and reads it. */
static int read_template(const char *name, char ret_path[static CORDON_PATH_MAX], struct cordon_buf *ret_text,
			 struct cordon_error *err)
{
	struct cordon_home home CORDON_CLEANUP(cordon_home_done) = CORDON_HOME_NONE;
	char file[CORDON_SETTINGS_ID_MAX + 32];
	int r = cordon_settings_id_check("the name of a template", name, err);

	if (r == 0)
		r = cordon_home_open(&home, err);
	if (r < 0)
		return r;
	snprintf(file, sizeof(file), "templates/%s.json", name);
	if (cordon_path_join(home.path, file, ret_path, CORDON_PATH_MAX) < 0)
		return cordon_fail_errno(err, -ENAMETOOLONG, "%s", home.path);
	r = cordon_read_file(AT_FDCWD, ret_path, O_NOFOLLOW, ret_text, err);
	if (r == -ENOENT) {
		cordon_fail(err, r, CORDON_KIND_NOT_FOUND, "there is no template '%s'", name);
		cordon_error_hint(err, "a template is the file %s", ret_path);
	}
	return r;
}

static int make(struct cordon_cli *cli, struct args *args)
{
	struct cordon_errors errors CORDON_CLEANUP(cordon_errors_done) = { 0 };
	autobuf struct cordon_buf text = CORDON_BUF(CORDON_PRD_SIZE_MAX), made = CORDON_BUF(CORDON_PRD_SIZE_MAX);
	autoprd struct cordon_prd *prd = NULL;
	char path[CORDON_PATH_MAX], name[CORDON_PATH_MAX + 32];
	struct cordon_error err = { 0 };

	if (read_template(args->template, path, &text, &err) < 0)
		return cordon_cli_fail(cli, &err);
	if (cordon_template_fill(path, text.data ? text.data : "", text.len, args->vars, args->n, &made, &errors) < 0)
		return cordon_cli_fail_all(cli, &errors);
	/* What is printed is a PRD that the other commands accept. */
	snprintf(name, sizeof(name), "%s, filled", path);
	if (cordon_prd_read(name, made.data, made.len, &prd, &errors) < 0)
		return cordon_cli_fail_all(cli, &errors);
	fwrite(made.data, 1, made.len, stdout);
	if (made.data[made.len - 1] != '\n')
		putchar('\n');
	return CORDON_EXIT_OK;
}

static int run(struct cordon_cli *cli, int argc, char **argv)
{
	struct args args = { 0 };
	struct cordon_error err = { 0 };
	int first, r = cordon_cli_parse(cli, argc, argv, 0, set, &args, &first, &err);

	if (r != 0)
		return r > 0 ? CORDON_EXIT_OK : cordon_cli_fail(cli, &err);
	if (first < argc)
		return cordon_cli_usage(cli, "unexpected argument: %s", argv[first]);
	if (!args.template)
		return cordon_cli_usage(cli, "no template: give --template NAME");
	return make(cli, &args);
}

const struct cordon_command cordon_cmd_prd_new = {
	.name = "prd new",
	.operands = "",
	.summary = "print a PRD made from a template",
	.details = "{{NAME}} in a string of the template becomes the value of --set NAME=VALUE, written as JSON. A variable without\n"
		   "a value, and a value without a variable, is an error.\n",
	.options = options,
	.run = run,
};
