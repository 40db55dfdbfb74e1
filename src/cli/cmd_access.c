/* SPDX-License-Identifier: Apache-2.0 */
/* cordon access: which orchestrator may use which shared area. */
#include <stdio.h>

#include "cli/commands.h"
#include "cli/pairs.h"
#include "flow/access_svg.h"
#include "flow/settings_json.h"

#define SVG_MAX (64u << 20)

enum { SVG };

static const struct cordon_option options[] = {
	CORDON_CONFIG_OPTION,
	{ "svg", 0, CORDON_ARG_NONE, NULL, "print a picture (SVG)", CORDON_KEY_FLAG(SVG) },
	{ 0 },
};

static int print_svg(struct cordon_cli *cli, const struct cordon_settings_file *settings)
{
	struct cordon_buf text autobuf = CORDON_BUF(SVG_MAX);
	struct cordon_error err = { 0 };
	int r = cordon_access_svg(settings, &text);

	if (r < 0) {
		cordon_fail_errno(&err, r, "the picture");
		return cordon_cli_fail(cli, &err);
	}
	fputs(text.data, stdout);
	return CORDON_EXIT_OK;
}

static const char *word_of(const struct cordon_settings_file *settings, const struct cordon_orchestrator *orchestrator,
			   const struct cordon_shared_area *area)
{
	const struct cordon_area_grant *grant = cordon_orchestrator_grant(orchestrator, area->key);

	if (!grant)
		return "-";
	if (cordon_settings_crosses(settings, orchestrator, area))
		return grant->read_only ? "ro!" : "rw!";
	return grant->read_only ? "ro" : "rw";
}

/* Areas stand in columns. */
static void print_matrix(const struct cordon_settings_file *settings)
{
	bool colour = cordon_cli_colour(STDOUT_FILENO), crossing = false;
	size_t left = strlen("ORCHESTRATOR"), width;

	for (size_t i = 0; i < settings->n_orchestrators; i++)
		if (strlen(settings->orchestrators[i].id) > left)
			left = strlen(settings->orchestrators[i].id);
	printf("%-*s", (int)left, "ORCHESTRATOR");
	for (size_t k = 0; k < settings->n_areas; k++)
		printf("  %-3s", settings->areas[k].key);
	putchar('\n');
	for (size_t i = 0; i < settings->n_orchestrators; i++) {
		printf("%-*s", (int)left, settings->orchestrators[i].id);
		for (size_t k = 0; k < settings->n_areas; k++) {
			const char *word = word_of(settings, &settings->orchestrators[i], &settings->areas[k]);
			const char *on = !colour	     ? ""
					 : strchr(word, '!') ? "\033[31m"
					 : word[0] == '-'    ? "\033[2m"
							     : "\033[32m";

			width = strlen(settings->areas[k].key) > 3 ? strlen(settings->areas[k].key) : 3;
			crossing |= strchr(word, '!') != NULL;
			printf("  %s%s%s", on, word, *on ? "\033[0m" : "");
			for (size_t n = strlen(word); n < width && k + 1 < settings->n_areas; n++)
				putchar(' ');
		}
		putchar('\n');
	}
	if (crossing)
		printf("! belongs to another domain than a channel profile of the orchestrator\n");
}

static int run(struct cordon_cli *cli, int argc, char **argv)
{
	autosettings struct cordon_settings_file *settings = NULL;
	struct cordon_pairs_args args;
	int code;

	if (!cordon_cli_begin(cli, argc, argv, 0, &args, &code) ||
	    !cordon_cli_load_settings(cli, args.config, 0, &settings, &code))
		return code;
	if (args.flag[SVG])
		return print_svg(cli, settings);
	if (cli->json)
		return cordon_cli_print_json(cli, cordon_access_json(settings));
	print_matrix(settings);
	return CORDON_EXIT_OK;
}

const struct cordon_command cordon_cmd_access = {
	.name = "access",
	.operands = "",
	.summary = "show which orchestrator may use which shared area",
	.details = "rw: for reading and writing; ro: for reading; -: the area is not there for it; !: across domains.\n",
	.options = options,
	.run = run,
};
