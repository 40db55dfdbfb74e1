/* SPDX-License-Identifier: Apache-2.0 */
/* cordon prd: checks a PRD and answers questions about its stories. */
#include <stdio.h>

#include "base/text.h"
#include "cli/commands.h"
#include "config/prd.h"

#define DEFAULT_PRD "prd.json"

static int set(void *data, int key, const char *arg, struct cordon_error *err)
{
	(void)data, (void)key, (void)arg, (void)err; /* These commands have the common options only. */
	return 0;
}

/* Parses options, and operands of which the last, the PRD, may be left out. Returns an exit code in *ret_exit and false when
 * the command has nothing more to do. */
static bool parse(struct cordon_cli *cli, int argc, char **argv, int operands, const char **ret_id,
		  const char **ret_prd, int *ret_exit)
{
	struct cordon_error err = { 0 };
	int first, r = cordon_cli_parse(cli, argc, argv, 0, set, NULL, &first, &err);

	*ret_exit = r > 0 ? CORDON_EXIT_OK : r < 0 ? cordon_cli_fail(cli, &err) : 0;
	if (r != 0)
		return false;
	if (argc - first < operands - 1 || argc - first > operands) {
		*ret_exit = operands == 1
				    ? cordon_cli_usage(cli, "one PRD is expected, not %d arguments", argc - first)
				    : cordon_cli_usage(cli, "the id of a story and a PRD are expected, not %d arguments",
						       argc - first);
		return false;
	}
	if (operands == 2)
		*ret_id = argv[first];
	*ret_prd = argc - first == operands ? argv[argc - 1] : DEFAULT_PRD;
	return true;
}

static bool load(struct cordon_cli *cli, const char *path, unsigned int flags, struct cordon_prd **ret_prd,
		 int *ret_exit)
{
	struct cordon_errors errors CORDON_CLEANUP(cordon_errors_done) = { 0 };

	if (cordon_prd_load_flags(path, flags, ret_prd, &errors) == 0)
		return true;
	*ret_exit = cordon_cli_fail_all(cli, &errors);
	return false;
}

static size_t count_passed(const struct cordon_prd *prd)
{
	size_t n = 0;

	for (size_t i = 0; i < prd->n_stories; i++)
		n += prd->stories[i].passes;
	return n;
}

/* "US-001  Title", or with --quiet the id alone. */
static void print_story(const struct cordon_cli *cli, const struct cordon_prd_story *story, const char *state)
{
	autobuf struct cordon_buf title = CORDON_BUF(CORDON_PRD_SIZE_MAX * 8);

	if (cli->quiet || cordon_text_escape(&title, story->title, strlen(story->title)) < 0)
		printf("%s\n", story->id);
	else
		printf("%s  %s%s%s\n", story->id, state, *state ? "  " : "", title.data ? title.data : "");
}

static json_t *story_json(const struct cordon_prd_story *story)
{
	return json_pack("{s:s, s:s, s:b, s:o}", "id", story->id, "title", story->title, "passes", story->passes,
			 "priority", story->has_priority ? json_integer(story->priority) : json_null());
}

static int validate(struct cordon_cli *cli, int argc, char **argv)
{
	autoprd struct cordon_prd *prd = NULL;
	autofree size_t *ready = NULL;
	const char *path = NULL;
	json_t *notices;
	int code;

	if (!parse(cli, argc, argv, 1, NULL, &path, &code) || !load(cli, path, 0, &prd, &code))
		return code;
	ready = calloc(prd->n_stories + 1, sizeof(*ready));
	notices = json_array();
	for (size_t i = 0; i < prd->n_notices; i++) {
		cordon_cli_log(cli, "INFO", "%s", prd->notices[i]);
		json_array_append_new(notices, cordon_cli_json_text(prd->notices[i]));
	}
	if (cli->json)
		return cordon_cli_print_json(cli, json_pack("{s:b, s:s, s:i, s:i, s:i, s:o}", "valid", true, "project",
							    prd->project, "stories", (int)prd->n_stories, "passed",
							    (int)count_passed(prd), "ready",
							    ready ? (int)cordon_prd_ready(prd, ready) : 0, "notices",
							    notices));
	json_decref(notices);
	if (!cli->quiet)
		printf("PRD valid (%zu stories, %zu passed)\n", prd->n_stories, count_passed(prd));
	return CORDON_EXIT_OK;
}

static int schema(struct cordon_cli *cli, int argc, char **argv)
{
	struct cordon_error err = { 0 };
	int first, r = cordon_cli_parse(cli, argc, argv, 0, set, NULL, &first, &err);

	if (r != 0)
		return r > 0 ? CORDON_EXIT_OK : cordon_cli_fail(cli, &err);
	if (first < argc)
		return cordon_cli_usage(cli, "unexpected argument: %s", argv[first]);
	fputs(cordon_prd_schema, stdout);
	return CORDON_EXIT_OK;
}

static int ready(struct cordon_cli *cli, int argc, char **argv)
{
	autoprd struct cordon_prd *prd = NULL;
	autofree size_t *indices = NULL;
	const char *path = NULL;
	struct cordon_error err = { 0 };
	json_t *array;
	size_t n;
	int code;

	if (!parse(cli, argc, argv, 1, NULL, &path, &code) || !load(cli, path, 0, &prd, &code))
		return code;
	indices = calloc(prd->n_stories + 1, sizeof(*indices));
	if (!indices) {
		cordon_fail_errno(&err, -ENOMEM, "%s", path);
		return cordon_cli_fail(cli, &err);
	}
	n = cordon_prd_ready(prd, indices);
	array = json_array();
	for (size_t i = 0; i < n; i++)
		if (cli->json)
			json_array_append_new(array, story_json(&prd->stories[indices[i]]));
		else
			print_story(cli, &prd->stories[indices[i]], "");
	if (cli->json)
		return cordon_cli_print_json(cli, array);
	json_decref(array);
	return CORDON_EXIT_OK;
}

/* The stories that depend on a story, directly or not. */
static int mark_users(const struct cordon_prd *prd, size_t story, bool *ret_marks)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < prd->n_stories; i++) {
		autofree bool *needs = calloc(prd->n_stories + 1, sizeof(*needs));

		r = needs ? cordon_prd_mark_deps(prd, i, needs) : -ENOMEM;
		if (r == 0)
			ret_marks[i] = needs[story];
	}
	return r;
}

static json_t *marked_json(const struct cordon_prd *prd, const bool *marks, bool open_only)
{
	json_t *array = json_array();

	for (size_t i = 0; i < prd->n_stories; i++)
		if (marks[i] && !(open_only && prd->stories[i].passes))
			json_array_append_new(array, json_string(prd->stories[i].id));
	return array;
}

static int print_deps(struct cordon_cli *cli, const struct cordon_prd *prd, size_t story, const bool *needs,
		      const bool *users)
{
	json_t *direct = json_array();

	for (size_t i = 0; i < prd->stories[story].n_deps; i++)
		json_array_append_new(direct, json_string(prd->stories[prd->stories[story].deps[i]].id));
	if (cli->json)
		return cordon_cli_print_json(cli,
					     json_pack("{s:s, s:o, s:o, s:o, s:o}", "id", prd->stories[story].id,
						       "dependencies", direct, "all", marked_json(prd, needs, false),
						       "open", marked_json(prd, needs, true), "dependents",
						       marked_json(prd, users, false)));
	json_decref(direct);
	for (size_t i = 0; i < prd->n_stories; i++)
		if (needs[i])
			print_story(cli, &prd->stories[i], prd->stories[i].passes ? "passed" : "open  ");
	return CORDON_EXIT_OK;
}

static int deps(struct cordon_cli *cli, int argc, char **argv)
{
	autoprd struct cordon_prd *prd = NULL;
	autofree bool *needs = NULL, *users = NULL;
	const char *path = NULL, *id = NULL;
	struct cordon_error err = { 0 };
	size_t story = 0;
	int code, r;

	if (!parse(cli, argc, argv, 2, &id, &path, &code) || !load(cli, path, 0, &prd, &code))
		return code;
	r = cordon_prd_find(prd, id, &story, &err);
	if (r == 0) {
		needs = calloc(prd->n_stories + 1, sizeof(*needs));
		users = calloc(prd->n_stories + 1, sizeof(*users));
		r = needs && users ? cordon_prd_mark_deps(prd, story, needs) : -ENOMEM;
		if (r == 0 && cli->json)
			r = mark_users(prd, story, users);
		if (r != 0)
			cordon_fail_errno(&err, r, "%s", path);
	}
	return r == 0 ? print_deps(cli, prd, story, needs, users) : cordon_cli_fail(cli, &err);
}

static int check_cycles(struct cordon_cli *cli, int argc, char **argv)
{
	autoprd struct cordon_prd *prd = NULL;
	const char *path = NULL;
	json_t *cycles;
	int code;

	if (!parse(cli, argc, argv, 1, NULL, &path, &code) || !load(cli, path, CORDON_PRD_CYCLES_ALLOWED, &prd, &code))
		return code;
	cycles = json_array();
	for (size_t i = 0; i < prd->n_cycles; i++) {
		const struct cordon_prd_cycle *cycle = &prd->cycles[i];
		json_t *ids = json_array();

		for (size_t k = 0; k < cycle->n; k++) {
			json_array_append_new(ids, json_string(prd->stories[cycle->stories[k]].id));
			if (!cli->json)
				printf("%s -> ", prd->stories[cycle->stories[k]].id);
		}
		if (!cli->json)
			printf("%s\n", prd->stories[cycle->stories[0]].id);
		json_array_append_new(cycles, ids);
	}
	code = prd->n_cycles ? CORDON_EXIT_NO : CORDON_EXIT_OK;
	if (cli->json) {
		int r = cordon_cli_print_json(cli, json_pack("{s:o}", "cycles", cycles));

		return r ? r : code;
	}
	json_decref(cycles);
	return code;
}

static int get_source(struct cordon_cli *cli, int argc, char **argv)
{
	autoprd struct cordon_prd *prd = NULL;
	const char *path = NULL;
	int code;

	if (!parse(cli, argc, argv, 1, NULL, &path, &code) || !load(cli, path, 0, &prd, &code))
		return code;
	if (cli->json)
		return cordon_cli_print_json(cli, json_pack("{s:s?}", "source_project", prd->source_project));
	if (prd->source_project)
		printf("%s\n", prd->source_project);
	return CORDON_EXIT_OK;
}

const struct cordon_command cordon_cmd_prd_validate = {
	.name = "prd validate",
	.operands = "[PRD]",
	.summary = "check a PRD",
	.details = "Every error is reported with its line and column. Without PRD prd.json is read, here and in the other commands\n"
		   "of this group. Exit status: 0 valid, 1 not, 2 wrong usage.\n",
	.options = NULL,
	.run = validate,
};

const struct cordon_command cordon_cmd_prd_schema = {
	.name = "prd schema",
	.operands = "",
	.summary = "print the JSON Schema of a PRD",
	.details = NULL,
	.options = NULL,
	.run = schema,
};

const struct cordon_command cordon_cmd_prd_deps = {
	.name = "prd deps",
	.operands = "ID [PRD]",
	.summary = "print the stories that a story depends on, directly or not",
	.details = NULL,
	.options = NULL,
	.run = deps,
};

const struct cordon_command cordon_cmd_prd_ready = {
	.name = "prd ready",
	.operands = "[PRD]",
	.summary = "print the stories that can be done now, in their order",
	.details = "A story is ready when it has not passed and every story that it depends on has.\n",
	.options = NULL,
	.run = ready,
};

const struct cordon_command cordon_cmd_prd_check_cycles = {
	.name = "prd check-cycles",
	.operands = "[PRD]",
	.summary = "print stories that wait for each other",
	.details = "Exit status: 0 there are none, 1 there are, or the PRD has errors, 2 wrong usage.\n",
	.options = NULL,
	.run = check_cycles,
};

const struct cordon_command cordon_cmd_get_source = {
	.name = "get-source",
	.operands = "PRD",
	.summary = "print the source_project of a PRD",
	.details = "Prints nothing when the PRD names none.\n",
	.options = NULL,
	.run = get_source,
};
