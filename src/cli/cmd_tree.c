/* SPDX-License-Identifier: Apache-2.0 */
/* cordon tree: prints the tree as the agent would see it. */
#include <stdio.h>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/manager.h"
#include "cli/recipe_options.h"
#include "config/net_setting.h"
#include "policy/shares.h"
#include "run/tree.h"

enum { KEY_DEPTH, KEY_ALL };

static const struct cordon_option options[] = {
	CORDON_RECIPE_OPTIONS(CORDON_RECIPE_OF_QUESTIONS),
	{ "depth", 'd', CORDON_ARG_TEXT, "N", "levels to show (default 3)", KEY_DEPTH },
	{ "all", 'a', CORDON_ARG_NONE, NULL, "fold nothing, leave nothing out", KEY_ALL },
	{ 0 },
};

struct args {
	struct cordon_recipe recipe;
	uint64_t depth;
	bool depth_given;
	bool all;
};

static int set(void *data, int key, const char *arg, struct cordon_error *err)
{
	struct args *args = data;

	if (cordon_recipe_owns(key))
		return cordon_cli_set(&args->recipe, key, arg, err);
	if (key == KEY_ALL) {
		args->all = true;
		return 0;
	}
	args->depth_given = true;
	if (cordon_parse_u64(arg, 1, CORDON_PATH_MAX, &args->depth) < 0)
		return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "--depth is a number from 1 on, not %s", arg);
	return 0;
}

struct tree {
	const struct cordon_cli *cli;
	const struct cordon_policy *policy;
	bool colour;
	bool whole;			/* the tree begins at the root */
	json_t *stack[CORDON_PATH_MAX]; /* with --json: the last object of each level, borrowed from the first */
};

static void print_mark(const struct tree *t, cordon_mark mark, unsigned int level)
{
	static const char *const colours[] = { "\033[32m", "\033[36m", "\033[33m", "\033[35m", "\033[31m" };

	printf("%s%-9s%s %*s", t->colour ? colours[mark] : "", cordon_mark_name(mark), t->colour ? "\033[0m" : "",
	       (int)(2 * level), "");
}

static void print_name(const char *name, const char *after)
{
	autobuf struct cordon_buf safe = CORDON_BUF(8 * CORDON_PATH_MAX);

	if (cordon_text_escape(&safe, name, strlen(name)) == 0)
		printf("%s%s", safe.data, after);
}

/* Prints what follows the name of a folded directory: the number of its entries, and whether all have the same mark. */
static void print_folded(const struct cordon_tree_entry *entry)
{
	if (entry->mark == CORDON_MARK_DENIED && entry->uniform)
		return;
	if (entry->n < 0)
		printf("  (cannot be read: %s", strerror(-entry->n));
	else
		printf("  (%d%s %s", entry->n, entry->n == CORDON_TREE_COUNT_MAX ? "+" : "",
		       entry->n == 1 ? "entry" : "entries");
	if (entry->except) {
		printf(", except ");
		print_name(entry->except, "");
	}
	printf("%s)", entry->uniform ? "" : ", mixed");
}

static void print_entry(void *data, const struct cordon_tree_entry *entry)
{
	struct tree *t = data;

	t->whole |= !*entry->path;
	print_mark(t, entry->mark, entry->level);
	print_name(entry->name, entry->type == DT_DIR ? "/" : "");
	if (entry->target) {
		printf(" -> ");
		print_name(entry->target, "");
	}
	if (entry->share) {
		printf("  (shows ");
		print_name(entry->share, ")");
	}
	if (entry->folded)
		print_folded(entry);
	putchar('\n');
}

static void print_rest(void *data, const struct cordon_tree_rest *rest)
{
	int indent = (int)(2 * (rest->level + 1));

	(void)data;
	if (rest->error)
		printf("%9s %*s(cannot be read: %s)\n", "", indent, "", strerror(-rest->error));
	if (!rest->hidden && !rest->cut)
		return;
	printf("%9s %*s\u2026 %zu%s more (", "", indent, "", rest->hidden, rest->cut ? "+" : "");
	for (size_t m = 0, said = 0; m < CORDON_MARK__MAX; m++)
		if (rest->by_mark[m])
			printf("%s%zu %s", said++ ? ", " : "", rest->by_mark[m], cordon_mark_name((cordon_mark)m));
	printf(")\n");
}

static void add_entry(void *data, const struct cordon_tree_entry *entry)
{
	struct tree *t = data;
	json_t *object = json_pack("{s:o, s:o, s:s, s:s}", "name", cordon_cli_json_text(entry->name), "path",
				   cordon_cli_json_text(entry->path), "type", cordon_tree_type(entry->type), "mark",
				   cordon_mark_name(entry->mark));

	t->whole |= !*entry->path;
	if (entry->level)
		json_array_append_new(json_object_get(t->stack[entry->level - 1], "children"), object);
	t->stack[entry->level] = object;
	if (entry->target)
		json_object_set_new(object, "target", cordon_cli_json_text(entry->target));
	if (entry->share) {
		json_object_set_new(object, "share", cordon_cli_json_text(entry->share));
	} else if (entry->folded) {
		json_object_set_new(object, "folded", json_true());
		json_object_set_new(object, "uniform", json_boolean(entry->uniform && !entry->except));
		if (entry->mark != CORDON_MARK_DENIED || !entry->uniform)
			json_object_set_new(object, "entries", entry->n < 0 ? json_null() : json_integer(entry->n));
		if (entry->except)
			json_object_set_new(object, "except", cordon_cli_json_text(entry->except));
	} else if (entry->type == DT_DIR) {
		json_object_set_new(object, "children", json_array());
	}
}

static void add_rest(void *data, const struct cordon_tree_rest *rest)
{
	const struct tree *t = data;
	json_t *object = t->stack[rest->level];

	if (rest->error)
		json_object_set_new(object, "error", json_string(strerror(-rest->error)));
	if (!rest->hidden && !rest->cut)
		return;
	json_object_set_new(object, "more", json_integer((json_int_t)rest->hidden));
	json_object_set_new(object, "cut", json_boolean(rest->cut));
}

/* Prints the shares outside the root, after the tree. */
static void show_other_shares(struct tree *t, json_t *object)
{
	json_t *array = object ? json_array() : NULL;

	for (size_t i = 0; i < t->policy->n_shares; i++) {
		const struct cordon_policy_share *share = &t->policy->shares[i];
		const char *target = share->home ? "~" : share->target;
		cordon_mark mark = share->read_only ? CORDON_MARK_RO : CORDON_MARK_RW;

		if (share->in_root)
			continue;
		if (array) {
			json_array_append_new(array, json_pack("{s:o, s:o, s:s}", "path", cordon_cli_json_text(target),
							       "share", cordon_cli_json_text(share->source), "mark",
							       cordon_mark_name(mark)));
			continue;
		}
		print_mark(t, mark, 0);
		print_name(target, "  (shows ");
		print_name(share->source, ")\n");
	}
	if (array)
		json_object_set_new(object, "shares", array);
}

/* The hosts that can be reached, after the files. */
static void show_net(const struct tree *t, json_t *object)
{
	const struct cordon_net_list *net = &t->policy->net;

	if (object) {
		json_object_set_new(object, "net", cordon_net_list_json(net));
		return;
	}
	if (!net->listed)
		return;
	printf("\nnetwork: %s\n", cordon_net_list_is_none(net) ? "none" : "these hosts and no others");
	for (size_t i = 0; i < net->n; i++)
		printf("  %s\n", net->rules[i].text);
	for (size_t i = 0; i < net->n_inject; i++)
		printf("  %s:%u  (by %s, with the credential in %s)\n", net->inject[i].host, net->inject[i].port,
		       net->inject[i].base_url_env, net->inject[i].from_env);
}

static int show(struct tree *t, struct cordon_tree_spec *spec)
{
	struct cordon_error err = { 0 };
	json_t *object;

	spec->data = t;
	spec->entry = t->cli->json ? add_entry : print_entry;
	spec->end = t->cli->json ? add_rest : print_rest;
	if (cordon_tree_walk(spec, &err) < 0)
		return cordon_cli_fail(t->cli, &err);
	object = t->stack[0];
	if (t->whole && t->policy->n_shares)
		show_other_shares(t, object);
	if (t->whole)
		show_net(t, object);
	if (!t->cli->json)
		return CORDON_EXIT_OK;
	json_object_set_new(object, "root", cordon_cli_json_text(t->policy->root.path));
	json_object_set_new(object, "mode", json_string(cordon_mode_name(t->policy->mode)));
	return cordon_cli_print_json(t->cli, object);
}

static int run_with(struct cordon_cli *cli, struct args *args, int argc, char **argv)
{
	struct cordon_error err = { 0 };
	int first, r = cordon_cli_parse(cli, argc, argv, 0, set, args, &first, &err);
	struct tree t = { .cli = cli, .colour = cordon_cli_colour(STDOUT_FILENO) };
	struct cordon_tree_spec spec = { .all = args->all };

	if (r != 0)
		return r > 0 ? CORDON_EXIT_OK : cordon_cli_fail(cli, &err);
	if (argc - first > 1)
		return cordon_cli_usage(cli, "one path is expected, not %d", argc - first);
	args->recipe.folder_mode = CORDON_MODE_PERMISSIVE;
	r = cordon_cli_compile(cli, &args->recipe, CORDON_RECIPE_ASKS);
	if (r)
		return r;
	t.policy = spec.policy = args->recipe.policy;
	spec.depth = args->depth_given ? args->depth : args->all ? 0 : CORDON_TREE_DEPTH;
	spec.path = first < argc ? argv[first] : ".";
	return show(&t, &spec);
}

static int run(struct cordon_cli *cli, int argc, char **argv)
{
	struct args args = { 0 };
	int r = run_with(cli, &args, argc, argv);

	cordon_recipe_done(&args.recipe);
	return r;
}

const struct cordon_command cordon_cmd_tree = {
	.name = "tree",
	.operands = "[PATH]",
	.summary = "show the tree as an agent would see it",
	.details = "Each entry is marked rw, ro, protected or denied, in permissive mode also warn. A directory in which\n"
		   "everything is alike is one line with the number of its entries; one below the depth that is not is called\n"
		   "mixed. After the files come the hosts that can be reached, if there is a list. Takes the options of\n"
		   "'cordon check' and judges as it does.\n",
	.options = options,
	.run = run,
};
