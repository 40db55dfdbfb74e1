/* SPDX-License-Identifier: Apache-2.0 */
/* cordon profile list, show: what profiles there are, and what one of them says. */
#include <fcntl.h>
#include <stdio.h>

#include "base/io.h"
#include "cli/commands.h"
#include "config/profile.h"

static int set(void *data, int key, const char *arg, struct cordon_error *err)
{
	(void)data, (void)key, (void)arg, (void)err; /* These commands have the common options only. */
	return 0;
}

/* A profile with errors is listed all the same; showing it says what is wrong. */
static struct cordon_policy_file *load_quietly(const struct cordon_profile_dirs *dirs, const char *name)
{
	struct cordon_errors errors CORDON_CLEANUP(cordon_errors_done) = { 0 };
	struct cordon_policy_file *file = NULL;

	return cordon_profile_load(dirs, name, &file, &errors) < 0 ? NULL : file;
}

static const char *describe(const struct cordon_policy_file *file)
{
	if (!file)
		return "(has errors; see 'cordon profile show')";
	return file->description.text ? file->description.text : "";
}

static void print_list(const struct cordon_profile_dirs *dirs, const struct cordon_profile_entry *entries, size_t n)
{
	int width = 0;

	for (size_t i = 0; i < n; i++)
		if ((int)strlen(entries[i].name) > width)
			width = (int)strlen(entries[i].name);
	for (size_t i = 0; i < n; i++) {
		struct cordon_policy_file *file = load_quietly(dirs, entries[i].name);

		printf("%-*s  %s%s\n", width, entries[i].name, describe(file), entries[i].own ? " (your own)" : "");
		cordon_policy_file_free(file);
	}
}

static int list_json(struct cordon_cli *cli, const struct cordon_profile_dirs *dirs,
		     const struct cordon_profile_entry *entries, size_t n)
{
	json_t *array = json_array();

	for (size_t i = 0; i < n; i++) {
		struct cordon_policy_file *file = load_quietly(dirs, entries[i].name);

		json_array_append_new(array, json_pack("{s:s, s:s, s:b, s:b}", "name", entries[i].name, "description",
						       file && file->description.text ? file->description.text : "",
						       "own", entries[i].own, "valid", file != NULL));
		cordon_policy_file_free(file);
	}
	return cordon_cli_print_json(cli, array);
}

static int list(struct cordon_cli *cli, int argc, char **argv)
{
	autofree struct cordon_profile_entry *entries = NULL;
	struct cordon_profile_dirs dirs;
	struct cordon_error err = { 0 };
	size_t n = 0;
	int first, r = cordon_cli_parse(cli, argc, argv, 0, set, NULL, &first, &err);

	if (r != 0)
		return r > 0 ? CORDON_EXIT_OK : cordon_cli_fail(cli, &err);
	if (first < argc)
		return cordon_cli_usage(cli, "unexpected argument: %s", argv[first]);
	cordon_profile_dirs_find(&dirs);
	if (cordon_profile_list(&dirs, &entries, &n, &err) < 0)
		return cordon_cli_fail(cli, &err);
	if (cli->json)
		return list_json(cli, &dirs, entries, n);
	print_list(&dirs, entries, n);
	return CORDON_EXIT_OK;
}

/* Prints where the programs of a profile are on this machine. */
static void print_programs(const struct cordon_policy_file *file)
{
	for (size_t i = 0; i < file->program.n; i++) {
		const char *name = file->program.items[i].text;
		char path[CORDON_PATH_MAX];

		if (cordon_program_on_path(name, getenv("PATH"), NULL, path))
			printf("# program %s: %s\n", name, path);
		else if (i == 0)
			printf("# program %s: not on your PATH\n", name);
	}
}

static json_t *program_places(const struct cordon_policy_file *file)
{
	json_t *object = json_object();

	for (size_t i = 0; i < file->program.n; i++) {
		const char *name = file->program.items[i].text;
		char path[CORDON_PATH_MAX];

		json_object_set_new(object, name,
				    cordon_program_on_path(name, getenv("PATH"), NULL, path) ? cordon_cli_json_text(path)
											     : json_null());
	}
	return object;
}

static int show(struct cordon_cli *cli, int argc, char **argv)
{
	CORDON_CLEANUP(cordon_policy_file_freep) struct cordon_policy_file *file = NULL;
	struct cordon_errors errors CORDON_CLEANUP(cordon_errors_done) = { 0 };
	autobuf struct cordon_buf text = CORDON_BUF(CORDON_CONFIG_SIZE_MAX);
	struct cordon_profile_dirs dirs;
	struct cordon_error err = { 0 };
	char path[CORDON_PATH_MAX];
	bool own;
	int first, r = cordon_cli_parse(cli, argc, argv, 0, set, NULL, &first, &err);

	if (r != 0)
		return r > 0 ? CORDON_EXIT_OK : cordon_cli_fail(cli, &err);
	if (argc - first != 1)
		return cordon_cli_usage(cli, "one profile is expected, not %d", argc - first);
	cordon_profile_dirs_find(&dirs);
	if (cordon_profile_find(&dirs, argv[first], path, &own, &err) < 0)
		return cordon_cli_fail(cli, &err);
	if (cordon_profile_load(&dirs, argv[first], &file, &errors) < 0)
		return cordon_cli_fail_all(cli, &errors);
	if (cordon_read_file(AT_FDCWD, path, 0, &text, &err) < 0)
		return cordon_cli_fail(cli, &err);
	if (cli->json)
		return cordon_cli_print_json(cli, json_pack("{s:s, s:o, s:b, s:o, s:o}", "name", argv[first], "path",
							    cordon_cli_json_text(path), "own", own, "programs",
							    program_places(file), "text",
							    cordon_cli_json_bytes(text.data, text.len)));
	printf("# %s\n", path);
	print_programs(file);
	if (file->net.allow.n)
		printf("# '--net profile' limits a run to the hosts under net.\n");
	fwrite(text.data, 1, text.len, stdout);
	return CORDON_EXIT_OK;
}

const struct cordon_command cordon_cmd_profile_list = {
	.name = "profile list",
	.operands = "",
	.summary = "list the profiles",
	.details = "A profile says what a program needs beyond the workspace; use it with 'cordon run --profile NAME'.\n",
	.options = NULL,
	.run = list,
};

const struct cordon_command cordon_cmd_profile_show = {
	.name = "profile show",
	.operands = "PROFILE",
	.summary = "print a profile, and where its program is on this machine",
	.details = NULL,
	.options = NULL,
	.run = show,
};
