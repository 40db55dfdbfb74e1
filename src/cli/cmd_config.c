/* SPDX-License-Identifier: Apache-2.0 */
/* cordon config: the settings file, found, judged, shown and taken over from elsewhere. */
#include <stdio.h>

#include "audit/audit.h"
#include "base/confirmed.h"
#include "base/path.h"
#include "base/resolve.h"
#include "cli/commands.h"
#include "cli/pairs.h"
#include "flow/edit.h"
#include "flow/flow.h"
#include "flow/settings_json.h"

static const struct cordon_option options[] = { CORDON_CONFIG_OPTION, { 0 } };

struct args {
	const char *config, *operand;
};

static int set(void *data, int key, const char *arg, struct cordon_error *err)
{
	(void)key;
	(void)err;
	((struct args *)data)->config = arg;
	return 0;
}

static bool begin(struct cordon_cli *cli, int argc, char **argv, int operands, struct args *args, int *ret_exit)
{
	struct cordon_error err = { 0 };
	int first, r = cordon_cli_parse(cli, argc, argv, 0, set, args, &first, &err);

	if (r != 0) {
		*ret_exit = r > 0 ? CORDON_EXIT_OK : cordon_cli_fail(cli, &err);
		return false;
	}
	if (argc - first > operands) {
		*ret_exit = cordon_cli_usage(cli, "unexpected argument: %s", argv[first + operands]);
		return false;
	}
	args->operand = first < argc ? argv[first] : NULL;
	return true;
}

static int run_path(struct cordon_cli *cli, int argc, char **argv)
{
	struct cordon_error err = { 0 };
	char path[CORDON_PATH_MAX];
	struct args args = { 0 };
	int code;

	if (!begin(cli, argc, argv, 0, &args, &code))
		return code;
	if (cordon_settings_path(args.config, path, &err) < 0)
		return cordon_cli_fail(cli, &err);
	if (cli->json)
		return cordon_cli_print_json(cli, json_pack("{s:o}", "path", cordon_cli_json_text(path)));
	printf("%s\n", path);
	return CORDON_EXIT_OK;
}

/* ---- show ---- */

/* Prints one line for each value, with the keys that lead to it: orchestrators.alpha.private_workspace=/srv/a */
/* NOLINTNEXTLINE(misc-no-recursion): the settings are as deep as cordon_settings_json() makes them. */
static void print_flat(struct cordon_buf *path, const json_t *value)
{
	struct cordon_buf text autobuf = CORDON_BUF(65536);
	size_t len = path->len;
	const char *key;
	json_t *item;

	if (json_is_object(value)) {
		json_object_foreach((json_t *)(uintptr_t)value, key, item) {
			(void)cordon_buf_addf(path, "%s%s", len ? "." : "", key);
			print_flat(path, item);
			path->len = len;
			if (path->data)
				path->data[len] = '\0';
		}
		return;
	}
	cordon_cli_pair_value(&text, value);
	printf("%s=%s\n", path->data ? path->data : "", text.data ? text.data : "");
}

static int run_show(struct cordon_cli *cli, int argc, char **argv)
{
	struct cordon_buf path autobuf = CORDON_BUF(65536);
	autosettings struct cordon_settings_file *settings = NULL;
	struct args args = { 0 };
	json_t *value;
	int code;

	if (!begin(cli, argc, argv, 0, &args, &code) || !cordon_cli_load_settings(cli, args.config, 0, &settings, &code))
		return code;
	value = cordon_settings_json(settings);
	if (cli->json)
		return cordon_cli_print_json(cli, value);
	print_flat(&path, value);
	json_decref(value);
	return CORDON_EXIT_OK;
}

/* ---- validate ---- */

struct notices {
	const struct cordon_cli *cli;
	json_t *list; /* or NULL: print them */
};

static void tell(void *data, const char *where, const char *text)
{
	const struct notices *notices = data;

	if (notices->list)
		json_array_append_new(notices->list,
				      json_pack("{s:o, s:o}", "where", cordon_cli_json_text(where ? where : ""),
						"message", cordon_cli_json_text(text)));
	else
		cordon_cli_log(notices->cli, "CONFIG", "%s%s%s", where ? where : "", where && *where ? ": " : "", text);
}

/* Reads the file of each orchestrator, and passes every error on. Returns how many there were. */
static size_t check_orchestrators(const struct cordon_settings_file *settings,
				  void (*tell_error)(void *data, const struct cordon_error *err), void *data)
{
	size_t n = 0;

	for (size_t i = 0; i < settings->n_orchestrators; i++) {
		struct cordon_errors errors CORDON_CLEANUP(cordon_errors_done) = { 0 };
		autoorchestratorfile struct cordon_orchestrator_file *file = NULL;
		struct cordon_workflow *workflows;
		size_t n_workflows;

		if (cordon_orchestrator_file_load(&settings->orchestrators[i], &file, &errors) == 0 && file)
			(void)cordon_flow_read(file, &workflows, &n_workflows, &errors);
		for (size_t k = 0; k < errors.n; k++)
			tell_error(data, &errors.items[k]);
		n += errors.n;
	}
	return n;
}

static void fail_with(void *data, const struct cordon_error *err)
{
	cordon_cli_fail(data, err);
}

static int run_validate(struct cordon_cli *cli, int argc, char **argv)
{
	struct cordon_errors errors CORDON_CLEANUP(cordon_errors_done) = { 0 };
	autosettings struct cordon_settings_file *settings = NULL;
	json_auto_t *list = NULL;
	struct notices notices = { .cli = cli };
	struct args args = { 0 };
	int code;

	if (!begin(cli, argc, argv, 1, &args, &code))
		return code;
	if (args.operand && args.config)
		return cordon_cli_usage(cli, "a file is named twice");
	args.config = args.operand ? args.operand : args.config;
	if (cordon_settings_load(args.config, CORDON_SETTINGS_TEXT_ONLY, &settings, &errors) == 0) {
		notices.list = list = cli->json ? json_array() : NULL;
		cordon_settings_notices(settings, tell, &notices);
		if (cordon_settings_check(settings, &errors) == 0)
			(void)cordon_settings_check_confirmed(settings, &errors);
	}
	code = errors.n ? cordon_cli_fail_all(cli, &errors) : CORDON_EXIT_OK;
	if (settings && check_orchestrators(settings, fail_with, cli))
		code = CORDON_EXIT_NO;
	if (code || !settings)
		return code ? code : CORDON_EXIT_NO;
	if (cli->json)
		return cordon_cli_print_json(cli, json_pack("{s:b, s:o, s:I, s:I, s:I, s:O}", "valid", 1, "file",
							    cordon_cli_json_text(settings->path), "orchestrators",
							    (json_int_t)settings->n_orchestrators, "shared_workspaces",
							    (json_int_t)settings->n_areas, "channel_profiles",
							    (json_int_t)settings->n_profiles, "notices", list));
	printf("Configuration valid (%zu orchestrators, %zu shared areas, %zu channel profiles)\n",
	       settings->n_orchestrators, settings->n_areas, settings->n_profiles);
	return CORDON_EXIT_OK;
}

/* ---- import ---- */

static void tell_error(void *data, const struct cordon_error *err)
{
	tell(data, err->where, err->message);
}

static int run_import(struct cordon_cli *cli, int argc, char **argv)
{
	struct cordon_errors errors CORDON_CLEANUP(cordon_errors_done) = { 0 };
	struct cordon_settings_edited edited autoedited = { 0 };
	struct notices notices = { .cli = cli };
	json_auto_t *list = NULL;
	struct args args = { 0 };
	int code;

	if (!begin(cli, argc, argv, 1, &args, &code))
		return code;
	if (!args.operand)
		return cordon_cli_usage(cli, "the file to take over is expected");
	if (cordon_settings_edit(&(struct cordon_settings_edit){ .kind = CORDON_EDIT_IMPORT,
								 .config = args.config,
								 .path = args.operand },
				 &edited, &errors) < 0)
		return cordon_cli_fail_all(cli, &errors);
	notices.list = list = cli->json ? json_array() : NULL;
	cordon_settings_notices(edited.after, tell, &notices);
	/* What the orchestrators' own files lack is for the person to mend; the settings are taken over. */
	(void)check_orchestrators(edited.after, tell_error, &notices);
	return cordon_cli_answer_pairs(cli, "settings imported",
				       json_pack("{s:o, s:I, s:I, s:I, s:O*}", "file",
						 cordon_cli_json_text(edited.after->path), "orchestrators",
						 (json_int_t)edited.after->n_orchestrators, "shared_workspaces",
						 (json_int_t)edited.after->n_areas, "channel_profiles",
						 (json_int_t)edited.after->n_profiles, "notices", list));
}

/* ---- confirm ---- */

/* A change stands also without a log. */
static void record_confirmed(const struct cordon_home *home, const struct cordon_named *named)
{
	struct cordon_audit_event event = { .type = CORDON_AUDIT_GRANT,
					    .op = "confirm",
					    .path = named->path,
					    .decision = "allow",
					    .success = CORDON_AUDIT_SUCCEEDED };
	struct cordon_audit_ids ids = { 0 };
	struct cordon_audit *log = NULL;

	if (cordon_audit_open(home, &ids, &log, NULL) == 0)
		(void)cordon_audit_write(log, &event, NULL);
	cordon_audit_close(log);
}

static int run_confirm(struct cordon_cli *cli, int argc, char **argv)
{
	autohome struct cordon_home home = CORDON_HOME_NONE;
	char given[CORDON_PATH_MAX], path[CORDON_PATH_MAX];
	struct cordon_named named = { .given = given, .path = path };
	struct cordon_error err = { 0 };
	struct args args = { 0 };
	autofd int fd = -1;
	bool changed;
	int code;

	if (!begin(cli, argc, argv, 1, &args, &code))
		return code;
	if (!args.operand || !*args.operand)
		return cordon_cli_usage(cli, "the path to confirm is expected");
	if (cordon_path_absolute(args.operand, given, &err) < 0)
		return cordon_cli_fail(cli, &err);
	named.fd = fd = cordon_resolve_open(given, path);
	if (fd < 0) {
		cordon_fail_errno(&err, fd, "%s", given);
		err.kind = fd == -ENOENT ? CORDON_KIND_NOT_FOUND : err.kind;
		return cordon_cli_fail(cli, &err);
	}
	if (cordon_home_open(&home, &err) < 0 || cordon_confirmed_take(&home, &named, true, &changed, &err) < 0)
		return cordon_cli_fail(cli, &err);
	if (changed)
		record_confirmed(&home, &named);
	return cordon_cli_answer_pairs(cli, changed ? "confirmed" : "confirmed already",
				       json_pack("{s:o, s:o, s:b}", "path", cordon_cli_json_text(given), "leads_to",
						 cordon_cli_json_text(path), "changed", changed));
}

const struct cordon_command cordon_cmd_config_validate = {
	.name = "config validate",
	.operands = "[FILE]",
	.summary = "report every error in the settings",
	.details = "Looks at the settings, at what their paths lead to, and at each orchestrator's file.\n"
		   "Exit status: 0 when all of it is valid, 1 when it is not.\n",
	.options = options,
	.run = run_validate,
};

const struct cordon_command cordon_cmd_config_show = {
	.name = "config show",
	.operands = "",
	.summary = "show the settings that count, with their defaults",
	.options = options,
	.run = run_show,
};

const struct cordon_command cordon_cmd_config_path = {
	.name = "config path",
	.operands = "",
	.summary = "print the path of the settings file",
	.options = options,
	.run = run_path,
};

const struct cordon_command cordon_cmd_config_import = {
	.name = "config import",
	.operands = "FILE",
	.summary = "take over a settings file, with a report",
	.details = "The text of FILE becomes that of the settings, with its comments, if it is valid and there are no settings yet.\n",
	.options = options,
	.run = run_import,
};

const struct cordon_command cordon_cmd_config_confirm = {
	.name = "config confirm",
	.operands = "PATH",
	.summary = "take what stands at a path now as what settings mean by it",
	.details = "A path that settings name (a share, a shared area, a home, an allowance, the state of a profile) is used only\n"
		   "while the same directory or file stands there as when you said yes to it. Look at what is there now; then\n"
		   "this command says yes to that. PATH is written as in the settings.\n",
	.run = run_confirm,
};
