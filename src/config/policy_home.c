/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the keys of a policy file that reach into the user's home: profiles, program, state and private. */
#include "base/path.h"
#include "config/policy_reader.h"

static int check_variable(const char *text, struct cordon_error *err)
{
	return cordon_env_name_check(text, strlen(text), err);
}

/* Expands a path that begins with ~ to a path of the host; *path is unchanged when it does not. The whole home is never
 * meant: it holds the user's keys. */
int cordon_policy_expand_home(const struct cordon_policy_reader *reader, const char **path,
			      char ret[static CORDON_PATH_MAX], struct cordon_error *err)
{
	const char *rest = cordon_home_rest(*path);

	if (!rest)
		return 0;
	if (!reader->trust->home) {
		cordon_fail(err, -EINVAL, CORDON_KIND_CONFIG, "'%s': %s", *path, reader->trust->why_not);
		cordon_error_hint(err, "write the absolute path, or keep the policy file outside the workspace");
		return -EINVAL;
	}
	if (!*rest)
		return cordon_fail(err, -EINVAL, CORDON_KIND_CONFIG, "'%s' is the whole home directory", *path);
	if (cordon_path_join(reader->trust->home, rest, ret, CORDON_PATH_MAX) < 0)
		return cordon_fail(err, -EINVAL, CORDON_KIND_CONFIG, "'%s' is too long", *path);
	*path = ret;
	return 0;
}

/* Takes a directory of the home, written ~/DIR: its path below the home. */
static int take_home_dir(struct cordon_policy_reader *reader, const struct cordon_node *node, const char *what,
			 const char **ret_path)
{
	const char *rest, *path;
	char expanded[CORDON_PATH_MAX];
	struct cordon_error err;

	if (!cordon_reader_text(&reader->in, node, what))
		return 0;
	path = node->text;
	rest = cordon_home_rest(path);
	if (!rest || !*rest) {
		cordon_fail(&err, -EINVAL, CORDON_KIND_CONFIG, "'%s' is not a directory in the home", node->text);
		cordon_error_hint(&err, "write ~/DIR");
		return cordon_reader_refuse(&reader->in, node, &err, CORDON_READER_WHOLE);
	}
	if (cordon_policy_expand_home(reader, &path, expanded, &err) < 0 || cordon_policy_check_absolute(path, &err) < 0)
		return cordon_reader_refuse(&reader->in, node, &err, CORDON_READER_WHOLE);
	*ret_path = cordon_policy_keep_path(reader, rest);
	return *ret_path ? 0 : -ENOMEM;
}

int cordon_policy_read_private(struct cordon_policy_reader *reader, const struct cordon_node *node,
			       const struct cordon_policy_key *key)
{
	struct cordon_setting_list *list = cordon_policy_slot(reader, key->slot);

	if (!cordon_reader_collection(&reader->in, node, CORDON_NODE_SEQUENCE, key->name))
		return 0;
	list->items = cordon_document_alloc(reader->in.doc, node->n * sizeof(*list->items));
	list->n = 0;
	if (!list->items)
		return -ENOMEM;
	for (const struct cordon_node *item = node->first; item; item = item->next) {
		struct cordon_setting *setting = &list->items[list->n];
		int r = take_home_dir(reader, item, key->name, &setting->text);

		if (r == 0 && setting->text)
			r = cordon_reader_where(&reader->in, item, &setting->where);
		if (r < 0)
			return r;
		list->n += setting->text != NULL;
	}
	return 0;
}

static int read_state_path(struct cordon_policy_reader *reader, const struct cordon_node *node,
			   const struct cordon_policy_key *key)
{
	return take_home_dir(reader, node, key->name, &reader->file->state[reader->file->n_state].path);
}

static int read_state_variable(struct cordon_policy_reader *reader, const struct cordon_node *node,
			       const struct cordon_policy_key *key)
{
	struct cordon_setting setting = { 0 };
	int r = cordon_policy_take_text(reader, node, key, &setting);

	reader->file->state[reader->file->n_state].variable = setting.text;
	return r;
}

static int read_state_hold(struct cordon_policy_reader *reader, const struct cordon_node *node,
			   const struct cordon_policy_key *key)
{
	struct cordon_state_setting *state = &reader->file->state[reader->file->n_state];
	struct cordon_policy_key list = *key;

	/* The list lies in the state and not in the file. */
	list.slot = (size_t)((char *)(cordon_streq(key->name, "hold") ? &state->hold : &state->hold_moved) -
			     (char *)reader->file);
	return cordon_policy_read_list(reader, node, &list);
}

static const struct cordon_policy_key state_keys[] = {
	{ .name = "path", .read = read_state_path },
	{ .name = "variable", .read = read_state_variable, .check = check_variable },
	{ .name = "hold", .read = read_state_hold, .check = cordon_policy_check_protected },
	{ .name = "hold_moved", .read = read_state_hold, .check = cordon_policy_check_protected },
};

int cordon_policy_read_state(struct cordon_policy_reader *reader, const struct cordon_node *node,
			     const struct cordon_policy_key *key)
{
	struct cordon_policy_file *file = reader->file;

	if (!cordon_reader_collection(&reader->in, node, CORDON_NODE_SEQUENCE, key->name))
		return 0;
	file->state = cordon_document_alloc(reader->in.doc, (node->n + 1) * sizeof(*file->state));
	file->n_state = 0;
	if (!file->state)
		return -ENOMEM;
	for (const struct cordon_node *item = node->first; item; item = item->next) {
		struct cordon_state_setting *state = &file->state[file->n_state];
		int r = item->type == CORDON_NODE_MAPPING
				? cordon_policy_read_keys(reader, item, state_keys, CORDON_ARRAY_SIZE(state_keys))
				: take_home_dir(reader, item, key->name, &state->path);

		if (r == 0 && !state->path && item->type == CORDON_NODE_MAPPING && !cordon_node_get(item, "path"))
			cordon_node_fail(reader->in.doc, item, reader->in.errors, "write {path: ~/DIR}",
					 "a state directory has no path");
		if (r == 0)
			r = cordon_reader_where(&reader->in, item, &state->where);
		if (r < 0)
			return r;
		file->n_state += state->path != NULL;
	}
	return 0;
}

/* These keys reach into the home, which a file inside the workspace may not. */
static bool may_reach_home(const struct cordon_policy_reader *reader, const struct cordon_node *node, const char *name)
{
	if (reader->trust->home || reader->trust->profile)
		return true;
	cordon_node_fail(reader->in.doc, node->key, reader->in.errors,
			 "name profiles when you start the run, or keep the policy file outside the workspace",
			 "%s: %s", name, reader->trust->why_not);
	return false;
}

int cordon_policy_read_names(struct cordon_policy_reader *reader, const struct cordon_node *node,
			     const struct cordon_policy_key *key)
{
	struct cordon_setting_list *list = cordon_policy_slot(reader, key->slot);

	if (!may_reach_home(reader, node, key->name))
		return 0;
	if (node->type == CORDON_NODE_SEQUENCE)
		return cordon_policy_read_list(reader, node, key);
	list->items = cordon_document_alloc(reader->in.doc, sizeof(*list->items));
	if (!list->items)
		return -ENOMEM;
	list->n = 1;
	if (cordon_policy_take_text(reader, node, key, list->items) < 0)
		return -ENOMEM;
	list->n = list->items[0].text != NULL;
	return 0;
}
