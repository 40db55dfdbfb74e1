/* SPDX-License-Identifier: Apache-2.0 */
/* cordon loop retry: gives stories that have failed their attempts back. */
#include <stdio.h>

#include "base/json.h"
#include "cli/commands.h"
#include "cli/manager.h"
#include "cli/recipe_options.h"
#include "loop/control.h"
#include "loop/loop.h"

enum { OPT_PRD = 1, OPT_IN };

static const struct cordon_option options[] = {
	{ "prd", 0, CORDON_ARG_FILE, "FILE", "as in 'cordon loop' (default: prd.json; repeatable)", OPT_PRD },
	{ "in", 0, CORDON_ARG_FILE, "FILE", "the PRD that has the stories, where several have", OPT_IN },
	CORDON_RECIPE_OPTIONS(CORDON_RECIPE_OF_ROOTS),
	{ 0 },
};

struct args {
	struct cordon_recipe recipe;
	struct cordon_root root;
	struct cordon_home home;
	char *prds[CORDON_LOOP_PRDS_MAX]; /* canonical */
	size_t n_prds;
	char *in; /* the same, or NULL */
	char loop[CORDON_LOOP_ID_SIZE];
};

static void args_done(struct args *args)
{
	for (size_t i = 0; i < args->n_prds; i++)
		free(args->prds[i]);
	free(args->in);
	cordon_recipe_done(&args->recipe);
	cordon_root_done(&args->root);
	cordon_home_done(&args->home);
}

static int set(void *data, int key, const char *arg, struct cordon_error *err)
{
	struct args *args = data;
	int r;

	if (cordon_recipe_owns(key))
		return cordon_cli_set(&args->recipe, key, arg, err);
	if (key == OPT_IN)
		return args->in ? cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "--in is given twice")
				: cordon_loop_prd_path(arg, &args->in, err);
	if (args->n_prds == CORDON_LOOP_PRDS_MAX)
		return cordon_fail(err, -E2BIG, CORDON_KIND_USAGE, "--prd: at most %d", CORDON_LOOP_PRDS_MAX);
	r = cordon_loop_prd_path(arg, &args->prds[args->n_prds], err);
	args->n_prds += r == 0;
	return r;
}

/* Finds out which loop is meant, as 'cordon loop' does. */
static int find_loop(struct args *args, struct cordon_error *err)
{
	int r = cordon_manager_env(&args->recipe.variables, err);

	if (r == 0 && !args->n_prds)
		r = set(args, OPT_PRD, CORDON_LOOP_PRD, err);
	if (r == 0)
		r = cordon_recipe_open_root(&args->recipe, &args->root, err);
	if (r == 0)
		r = cordon_home_open(&args->home, err);
	return r < 0 ? r
		     : cordon_loop_id(args->root.path, (const char *const *)args->prds, args->n_prds, args->loop, err);
}

static int retry(struct cordon_cli *cli, const struct args *args, char **stories, int n)
{
	json_auto_t *status = NULL;
	json_t *given = json_array();
	struct cordon_error err = { 0 };
	bool runs;

	for (int i = 0; i < n; i++) {
		if (cordon_loop_retry(&args->home, args->loop, args->in, stories[i], &err) < 0) {
			json_decref(given);
			return cordon_cli_fail(cli, &err);
		}
		json_array_append_new(given, json_string(stories[i]));
	}
	if (cordon_loop_status(&args->home, args->loop, &status, &err) < 0) {
		json_decref(given);
		return cordon_cli_fail(cli, &err);
	}
	runs = cordon_json_is(status, "state", "running");
	if (cli->json)
		return cordon_cli_print_json(cli, json_pack("{s:s, s:b, s:o}", "loop_id", args->loop, "running",
							    (int)runs, "stories", given));
	json_decref(given);
	if (!runs)
		cordon_cli_notice(cli, "the loop does not run: 'cordon loop' goes on with %s",
				  n > 1 ? "these stories" : "this story");
	return CORDON_EXIT_OK;
}

static int run(struct cordon_cli *cli, int argc, char **argv)
{
	CORDON_CLEANUP(args_done) struct args args = { .root.fd = -1, .home = CORDON_HOME_NONE };
	struct cordon_error err = { 0 };
	int first, r = cordon_cli_parse(cli, argc, argv, 0, set, &args, &first, &err);

	if (r != 0)
		return r > 0 ? CORDON_EXIT_OK : cordon_cli_fail(cli, &err);
	if (first == argc)
		return cordon_cli_usage(cli, "an argument is missing: %s", cli->command->operands);
	if (find_loop(&args, &err) < 0)
		return cordon_cli_fail(cli, &err);
	return retry(cli, &args, argv + first, argc - first);
}

const struct cordon_command cordon_cmd_loop_retry = {
	.name = "loop retry",
	.operands = "STORY...",
	.summary = "give stories that have failed all their attempts back",
	.details = "A story that is parked waits for its turn again. The loop is the one with the same root and the same PRDs.\n"
		   "If it runs, it goes on with the stories at once; else it does when it is started again, and other parked\n"
		   "stories stay parked.\n"
		   "\n"
		   "Exit status: 0 done, 1 refused, 2 wrong usage.\n",
	.options = options,
	.run = run,
};
