/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a policy file: one table row per key, every error reported at its place, and nothing guessed. */
#include "config/policy_file.h"
#include "base/path.h"
#include "config/reader.h"
#include "config/suggest.h"
#include "policy/policy.h"

#define VERSION "1"

struct reader {
	struct cordon_reader in;
	struct cordon_policy_file *file;
};

struct key;

/* Readers and checks return 0 also for a bad value, which they report; -ENOMEM stops the reading. */
typedef int read_fn(struct reader *reader, const struct cordon_node *node, const struct key *key);
typedef int check_fn(const char *text, struct cordon_error *err);
typedef int limit_fn(const char *text, uint64_t *ret_value, struct cordon_error *err);

struct key {
	const char *name;
	read_fn *read;
	size_t slot;  /* of the value in struct cordon_policy_file */
	size_t where; /* of the field for its place, if there is one */
	check_fn *check;
	limit_fn *limit;
};

#define SLOT(member) offsetof(struct cordon_policy_file, member)

static void *slot_of(const struct reader *reader, size_t slot)
{
	return (char *)reader->file + slot;
}

static int read_keys(struct reader *reader, const struct cordon_node *mapping, const struct key *keys, size_t n);

static int read_version(struct reader *reader, const struct cordon_node *node, const struct key *key)
{
	if (node->type == CORDON_NODE_SCALAR && cordon_streq(node->text, VERSION))
		return 0;
	if (node->type != CORDON_NODE_BAD)
		cordon_node_fail(reader->in.doc, node, reader->in.errors, "write " VERSION, "%s must be " VERSION,
				 key->name);
	return 0;
}

static int read_bool(struct reader *reader, const struct cordon_node *node, const struct key *key)
{
	if (!cordon_reader_bool(&reader->in, node, key->name, slot_of(reader, key->slot)))
		return 0;
	return cordon_reader_where(&reader->in, node, slot_of(reader, key->where));
}

static int read_mode(struct reader *reader, const struct cordon_node *node, const struct key *key)
{
	struct cordon_error err;

	if (!cordon_reader_text(&reader->in, node, key->name))
		return 0;
	if (cordon_mode_parse(node->text, &reader->file->mode, &err) < 0)
		return cordon_reader_refuse(&reader->in, node, &err, CORDON_READER_WHOLE);
	return cordon_reader_where(&reader->in, node, &reader->file->mode_where);
}

static int read_net(struct reader *reader, const struct cordon_node *node, const struct key *key)
{
	struct cordon_error err;

	if (!cordon_reader_text(&reader->in, node, key->name))
		return 0;
	if (cordon_net_parse(node->text, &reader->file->net, &err) < 0)
		return cordon_reader_refuse(&reader->in, node, &err, CORDON_READER_WHOLE);
	return cordon_reader_where(&reader->in, node, &reader->file->net_where);
}

static int read_lens(struct reader *reader, const struct cordon_node *node, const struct key *key)
{
	struct cordon_error err;

	if (!cordon_reader_text(&reader->in, node, key->name))
		return 0;
	if (cordon_lens_parse(node->text, &reader->file->lens, &err) < 0)
		return cordon_reader_refuse(&reader->in, node, &err, CORDON_READER_WHOLE);
	return cordon_reader_where(&reader->in, node, &reader->file->lens_where);
}

/* Checks of one text. */

static int check_pattern(const char *text, struct cordon_error *err)
{
	size_t column;

	return cordon_pattern_check(text, &column, err);
}

/* Which character of a bad pattern is wrong. */
static size_t fault_in_pattern(const char *text)
{
	size_t column = 0;

	return cordon_pattern_check(text, &column, NULL) < 0 && column ? column - 1 : CORDON_READER_WHOLE;
}

static int check_protected(const char *text, struct cordon_error *err)
{
	char clean[CORDON_PATH_MAX];

	return cordon_protected_clean(text, clean, err);
}

static int check_folder(const char *text, struct cordon_error *err)
{
	return text[0] ? 0 : cordon_fail(err, -EINVAL, CORDON_KIND_CONFIG, "the name of a folder is empty");
}

static int check_env_name(const char *text, struct cordon_error *err)
{
	return cordon_env_name_check(text, strlen(text), err);
}

/* A path of the host or of the sandbox must be absolute: the file may lie anywhere, so there is nothing that the
 * path could be relative to. */
static int check_absolute(const char *text, struct cordon_error *err)
{
	char clean[CORDON_PATH_MAX];
	int r;

	if (text[0] != '/') {
		cordon_fail(err, -EINVAL, CORDON_KIND_CONFIG, "'%s' is not an absolute path", text);
		cordon_error_hint(err, "start it with /");
		return -EINVAL;
	}
	r = cordon_path_clean(text, clean, sizeof(clean));
	if (r < 0 || cordon_streq(clean, "/"))
		return cordon_fail(err, -EINVAL, CORDON_KIND_CONFIG, "'%s' %s", text,
				   r == -EXDEV ? "holds .."
				   : r < 0     ? "is too long"
					       : "can't be used here");
	return 0;
}

static int take_text(struct reader *reader, const struct cordon_node *node, const struct key *key,
		     struct cordon_setting *ret_setting)
{
	struct cordon_error err;

	if (!cordon_reader_text(&reader->in, node, key->name))
		return 0;
	if (key->check(node->text, &err) < 0)
		return cordon_reader_refuse(&reader->in, node, &err,
					    key->check == check_pattern ? fault_in_pattern(node->text)
									: CORDON_READER_WHOLE);
	*ret_setting = (struct cordon_setting){ .text = node->text, .line = node->line, .column = node->column };
	return cordon_reader_where(&reader->in, node, &ret_setting->where);
}

static int read_list(struct reader *reader, const struct cordon_node *node, const struct key *key)
{
	struct cordon_setting_list *list = slot_of(reader, key->slot);

	if (!cordon_reader_collection(&reader->in, node, CORDON_NODE_SEQUENCE, key->name))
		return 0;
	list->items = cordon_document_alloc(reader->in.doc, node->n * sizeof(*list->items));
	list->n = 0; /* a duplicate key is read twice */
	if (!list->items)
		return -ENOMEM;
	for (const struct cordon_node *item = node->first; item; item = item->next) {
		int r = take_text(reader, item, key, &list->items[list->n]);

		if (r < 0)
			return r;
		list->n += list->items[list->n].text != NULL;
	}
	return 0;
}

static int read_env(struct reader *reader, const struct cordon_node *node, const struct key *key)
{
	struct cordon_policy_file *file = reader->file;
	struct cordon_error err;

	if (!cordon_reader_collection(&reader->in, node, CORDON_NODE_MAPPING, key->name))
		return 0;
	file->env = cordon_document_alloc(reader->in.doc, node->n * sizeof(*file->env));
	file->n_env = 0;
	if (!file->env)
		return -ENOMEM;
	for (const struct cordon_node *item = node->first; item; item = item->next) {
		struct cordon_env_setting *env = &file->env[file->n_env];

		if (cordon_env_name_check(item->key->text, item->key->len, &err) < 0)
			cordon_reader_refuse(&reader->in, item->key, &err, CORDON_READER_WHOLE);
		if (!cordon_reader_text(&reader->in, item, item->key->text))
			continue;
		env->name = item->key->text;
		env->value = item->text;
		if (cordon_reader_where(&reader->in, item->key, &env->where) < 0)
			return -ENOMEM;
		file->n_env++;
	}
	return 0;
}

static char *keep_path(struct reader *reader, const char *path)
{
	size_t size = strlen(path) + 1;
	char *clean = cordon_document_alloc(reader->in.doc, size);

	if (clean)
		cordon_path_clean(path, clean, size);
	return clean;
}

static int read_path(struct reader *reader, const struct cordon_node *node, const struct key *key)
{
	struct cordon_setting *setting = slot_of(reader, key->slot);
	int r = take_text(reader, node, key, setting);

	if (r < 0 || !setting->text)
		return r;
	setting->text = keep_path(reader, setting->text);
	return setting->text ? 0 : -ENOMEM;
}

static int take_share(struct reader *reader, const struct cordon_node *node, struct cordon_share_setting *ret_setting)
{
	struct cordon_share_value share CORDON_CLEANUP(cordon_share_done) = { 0 };
	struct cordon_error err;

	if (!cordon_reader_text(&reader->in, node, "share"))
		return 0;
	if (cordon_share_parse(node->text, &share, &err) < 0 || check_absolute(share.source, &err) < 0)
		return cordon_reader_refuse(&reader->in, node, &err, CORDON_READER_WHOLE);
	ret_setting->share.source = keep_path(reader, share.source);
	ret_setting->share.target = share.target ? keep_path(reader, share.target) : NULL;
	ret_setting->share.read_only = share.read_only;
	if (!ret_setting->share.source || (share.target && !ret_setting->share.target))
		return -ENOMEM;
	return cordon_reader_where(&reader->in, node, &ret_setting->where);
}

static int read_shares(struct reader *reader, const struct cordon_node *node, const struct key *key)
{
	struct cordon_policy_file *file = reader->file;

	if (!cordon_reader_collection(&reader->in, node, CORDON_NODE_SEQUENCE, key->name))
		return 0;
	file->shares = cordon_document_alloc(reader->in.doc, node->n * sizeof(*file->shares));
	file->n_shares = 0;
	if (!file->shares)
		return -ENOMEM;
	for (const struct cordon_node *item = node->first; item; item = item->next) {
		int r = take_share(reader, item, &file->shares[file->n_shares]);

		if (r < 0)
			return r;
		file->n_shares += file->shares[file->n_shares].where != NULL;
	}
	return 0;
}

/* Reads a number with or without a unit, with or without quotes, in either format. */
static int read_limit(struct reader *reader, const struct cordon_node *node, const struct key *key)
{
	struct cordon_error err;

	if (node->type == CORDON_NODE_BAD)
		return 0;
	if (node->type != CORDON_NODE_SCALAR) {
		cordon_node_fail(reader->in.doc, node, reader->in.errors, NULL, "%s must be a number, not %s",
				 key->name, cordon_node_describe(reader->in.doc, node));
		return 0;
	}
	if (key->limit(node->text, slot_of(reader, key->slot), &err) < 0)
		return cordon_reader_refuse(&reader->in, node, &err, CORDON_READER_WHOLE);
	return 0;
}

static const struct key limit_keys[] = {
	{ .name = "timeout", .read = read_limit, .slot = SLOT(limits.timeout_ms), .limit = cordon_timeout_parse },
	{ .name = "memory", .read = read_limit, .slot = SLOT(limits.memory_bytes), .limit = cordon_memory_parse },
	{ .name = "pids", .read = read_limit, .slot = SLOT(limits.pids), .limit = cordon_pids_parse },
	{ .name = "cpus", .read = read_limit, .slot = SLOT(limits.cpu_millis), .limit = cordon_cpus_parse },
	{ .name = "tmp_size", .read = read_limit, .slot = SLOT(limits.tmp_bytes), .limit = cordon_memory_parse },
};

static int read_limits(struct reader *reader, const struct cordon_node *node, const struct key *key)
{
	if (!cordon_reader_collection(&reader->in, node, CORDON_NODE_MAPPING, key->name))
		return 0;
	return read_keys(reader, node, limit_keys, CORDON_ARRAY_SIZE(limit_keys));
}

static const struct key top_keys[] = {
	{ .name = "version", .read = read_version },
	{ .name = "mode", .read = read_mode },
	{ .name = "workspace", .read = read_list, .slot = SLOT(workspace), .check = check_folder },
	{ .name = "rw", .read = read_list, .slot = SLOT(rw), .check = check_pattern },
	{ .name = "ro", .read = read_list, .slot = SLOT(ro), .check = check_pattern },
	{ .name = "deny", .read = read_list, .slot = SLOT(deny), .check = check_pattern },
	{ .name = "within", .read = read_list, .slot = SLOT(within), .check = check_pattern },
	{ .name = "read_only", .read = read_bool, .slot = SLOT(read_only), .where = SLOT(read_only_where) },
	{ .name = "protect", .read = read_list, .slot = SLOT(protect), .check = check_protected },
	{ .name = "unprotect", .read = read_list, .slot = SLOT(unprotect), .check = check_protected },
	{ .name = "default_protect",
	  .read = read_bool,
	  .slot = SLOT(default_protect),
	  .where = SLOT(default_protect_where) },
	{ .name = "env", .read = read_env },
	{ .name = "keep_env", .read = read_list, .slot = SLOT(keep_env), .check = check_env_name },
	{ .name = "home", .read = read_path, .slot = SLOT(home), .check = check_absolute },
	{ .name = "at", .read = read_path, .slot = SLOT(at), .check = check_absolute },
	{ .name = "share", .read = read_shares },
	{ .name = "net", .read = read_net },
	{ .name = "lens", .read = read_lens },
	{ .name = "editor_temps", .read = read_bool, .slot = SLOT(editor_temps), .where = SLOT(editor_temps_where) },
	{ .name = "limits", .read = read_limits },
	{ .name = "best_effort", .read = read_bool, .slot = SLOT(best_effort), .where = SLOT(best_effort_where) },
};

/* Suggests what the user may have meant by an unknown key. */
static void explain_unknown(const char *word, const struct key *keys, size_t n, struct cordon_error *err)
{
	struct cordon_buf list autobuf = CORDON_BUF(sizeof(err->hint));
	const char *meant = NULL;
	size_t best = CORDON_SUGGEST_FAR;
	bool under_limits = false;

	for (size_t i = 0; i < n; i++) {
		if (cordon_suggest_closer(word, keys[i].name, &best))
			meant = keys[i].name;
		cordon_buf_addf(&list, "%s%s", i ? ", " : "", keys[i].name);
	}
	for (size_t i = 0; keys == top_keys && i < CORDON_ARRAY_SIZE(limit_keys); i++)
		if (cordon_suggest_closer(word, limit_keys[i].name, &best)) {
			meant = limit_keys[i].name;
			under_limits = true;
		}
	if (!meant)
		cordon_error_hint(err, "known are %s", list.data ? list.data : "");
	else if (under_limits)
		cordon_error_hint(err, "it belongs under limits: {%s: ...}", meant);
	else
		cordon_error_hint(err, "did you mean '%s'?", meant);
}

static int read_keys(struct reader *reader, const struct cordon_node *mapping, const struct key *keys, size_t n)
{
	for (const struct cordon_node *node = mapping->first; node; node = node->next) {
		const struct key *key = NULL;
		struct cordon_error err;
		int r;

		for (size_t i = 0; i < n && !key; i++)
			if (cordon_streq(keys[i].name, node->key->text))
				key = &keys[i];
		if (!key && cordon_errors_drop(reader->in.errors))
			continue;
		if (!key) {
			cordon_fail(&err, -EINVAL, CORDON_KIND_CONFIG, "unknown key '%s'", node->key->text);
			explain_unknown(node->key->text, keys, n, &err);
			cordon_reader_refuse(&reader->in, node->key, &err, CORDON_READER_WHOLE);
			continue;
		}
		r = key->read(reader, node, key);
		if (r < 0)
			return r;
	}
	return 0;
}

struct cordon_policy_file *cordon_policy_file_free(struct cordon_policy_file *file)
{
	if (file)
		cordon_document_free(file->doc);
	free(file);
	return NULL;
}

void cordon_policy_file_freep(struct cordon_policy_file **file)
{
	*file = cordon_policy_file_free(*file);
}

static int no_memory(struct cordon_errors *errors, const char *name)
{
	struct cordon_error err;

	cordon_fail_errno(&err, -ENOMEM, "cannot read %s", name);
	return cordon_errors_add(errors, &err, NULL, 0, 0);
}

/* Takes the document. `before` is how many errors there were before it was read: errors of the document count, too. */
static int make_file(struct cordon_document *doc, size_t before, struct cordon_policy_file **ret_file,
		     struct cordon_errors *errors)
{
	CORDON_CLEANUP(cordon_policy_file_freep) struct cordon_policy_file *file = calloc(1, sizeof(*file));
	struct reader reader = { .in = { .doc = doc, .errors = errors }, .file = file };

	if (!file) {
		cordon_document_free(doc);
		return no_memory(errors, "the policy file");
	}
	*file = (struct cordon_policy_file){ .doc = doc, .default_protect = true, .editor_temps = true };
	if (cordon_reader_collection(&reader.in, doc->root, CORDON_NODE_MAPPING, "a policy file") &&
	    read_keys(&reader, doc->root, top_keys, CORDON_ARRAY_SIZE(top_keys)) < 0)
		return no_memory(errors, doc->name);
	if (errors->n + errors->dropped > before)
		return -EINVAL;
	*ret_file = cordon_steal_ptr(&file);
	return 0;
}

int cordon_policy_file_load(const char *path, struct cordon_policy_file **ret_file, struct cordon_errors *errors)
{
	size_t before = errors->n + errors->dropped;
	struct cordon_document *doc;
	int r = cordon_document_load(path, &doc, errors);

	return r < 0 ? r : make_file(doc, before, ret_file, errors);
}

int cordon_policy_file_parse(const char *name, cordon_format format, const char *text, size_t len,
			     struct cordon_policy_file **ret_file, struct cordon_errors *errors)
{
	size_t before = errors->n + errors->dropped;
	struct cordon_document *doc;
	int r = cordon_document_parse(name, format, text, len, CORDON_CONFIG_DEPTH_MAX, &doc, errors);

	return r < 0 ? r : make_file(doc, before, ret_file, errors);
}
