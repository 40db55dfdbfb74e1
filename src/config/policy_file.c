/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a policy file: one table row per key, every error reported at its place, and nothing guessed. */
#include "base/path.h"
#include "config/policy_reader.h"
#include "config/profile.h"
#include "config/suggest.h"
#include "policy/policy.h"

#define VERSION "1"
#define SLOT(member) offsetof(struct cordon_policy_file, member)

static int read_version(struct cordon_policy_reader *reader, const struct cordon_node *node,
			const struct cordon_policy_key *key)
{
	if (node->type == CORDON_NODE_SCALAR && cordon_streq(node->text, VERSION))
		return 0;
	if (node->type != CORDON_NODE_BAD)
		cordon_node_fail(reader->in.doc, node, reader->in.errors, "write " VERSION, "%s must be " VERSION,
				 key->name);
	return 0;
}

static int read_net(struct cordon_policy_reader *reader, const struct cordon_node *node,
		    const struct cordon_policy_key *key)
{
	(void)key;
	return cordon_net_read(&reader->in, node, reader->trust->credentials, &reader->file->net);
}

/* A number, a word or a flag. */
static int read_value(struct cordon_policy_reader *reader, const struct cordon_node *node,
		      const struct cordon_policy_key *key)
{
	return cordon_recipe_read(&reader->in, node, key->name, (cordon_recipe_id)(key->row - cordon_recipe_rows), NULL,
				  &reader->file->values);
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

int cordon_policy_check_protected(const char *text, struct cordon_error *err)
{
	char clean[CORDON_PATH_MAX];

	return cordon_protected_clean(text, clean, err);
}

static int check_folder(const char *text, struct cordon_error *err)
{
	return text[0] ? 0 : cordon_fail(err, -EINVAL, CORDON_KIND_CONFIG, "the name of a folder is empty");
}

static int check_text(const char *text, struct cordon_error *err)
{
	return text[0] ? 0 : cordon_fail(err, -EINVAL, CORDON_KIND_CONFIG, "the text is empty");
}

static int check_program(const char *text, struct cordon_error *err)
{
	if (text[0] && text[0] != '-' && !strchr(text, '/') && strlen(text) < 256)
		return 0;
	cordon_fail(err, -EINVAL, CORDON_KIND_CONFIG, "'%s' is not the name of a program", text);
	cordon_error_hint(err, "write the name without a directory; it is found on the PATH");
	return -EINVAL;
}

/* A path of the host or of the sandbox must be absolute: the file may lie anywhere, so there is nothing that the
 * path could be relative to. */
int cordon_policy_check_absolute(const char *text, struct cordon_error *err)
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

int cordon_policy_take_text(struct cordon_policy_reader *reader, const struct cordon_node *node,
			    const struct cordon_policy_key *key, struct cordon_setting *ret_setting)
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

int cordon_policy_read_list(struct cordon_policy_reader *reader, const struct cordon_node *node,
			    const struct cordon_policy_key *key)
{
	struct cordon_setting_list *list = cordon_policy_slot(reader, key->slot);

	if (!cordon_reader_collection(&reader->in, node, CORDON_NODE_SEQUENCE, key->name))
		return 0;
	list->items = cordon_document_alloc(reader->in.doc, node->n * sizeof(*list->items));
	list->n = 0; /* a duplicate key is read twice */
	if (!list->items)
		return -ENOMEM;
	for (const struct cordon_node *item = node->first; item; item = item->next) {
		int r = cordon_policy_take_text(reader, item, key, &list->items[list->n]);

		if (r < 0)
			return r;
		list->n += list->items[list->n].text != NULL;
	}
	return 0;
}

static int read_env(struct cordon_policy_reader *reader, const struct cordon_node *node,
		    const struct cordon_policy_key *key)
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

char *cordon_policy_keep_path(struct cordon_policy_reader *reader, const char *path)
{
	size_t size = strlen(path) + 1;
	char *clean = cordon_document_alloc(reader->in.doc, size);

	if (clean)
		cordon_path_clean(path, clean, size);
	return clean;
}

static int read_text(struct cordon_policy_reader *reader, const struct cordon_node *node,
		     const struct cordon_policy_key *key)
{
	return cordon_policy_take_text(reader, node, key, cordon_policy_slot(reader, key->slot));
}

/* A path of the host, or with cordon_policy_check_absolute one of the sandbox, where ~ means nothing. */
static int read_path(struct cordon_policy_reader *reader, const struct cordon_node *node,
		     const struct cordon_policy_key *key)
{
	struct cordon_setting *setting = cordon_policy_slot(reader, key->slot);
	char expanded[CORDON_PATH_MAX];
	struct cordon_error err;
	const char *text = node->text;
	int r;

	if (key->check || node->type != CORDON_NODE_SCALAR || !cordon_home_rest(text)) {
		struct cordon_policy_key absolute = *key;

		absolute.check = cordon_policy_check_absolute;
		r = cordon_policy_take_text(reader, node, &absolute, setting);
		text = setting->text;
	} else if (cordon_policy_expand_home(reader, &text, expanded, &err) < 0 ||
		   cordon_policy_check_absolute(text, &err) < 0) {
		return cordon_reader_refuse(&reader->in, node, &err, CORDON_READER_WHOLE);
	} else {
		r = cordon_reader_where(&reader->in, node, &setting->where);
	}
	if (r < 0 || !text)
		return r;
	setting->text = cordon_policy_keep_path(reader, text);
	return setting->text ? 0 : -ENOMEM;
}

static int take_share(struct cordon_policy_reader *reader, const struct cordon_node *node,
		      struct cordon_share_setting *ret_setting)
{
	struct cordon_share_value share CORDON_CLEANUP(cordon_share_done) = { 0 };
	char expanded[CORDON_PATH_MAX], in_home[CORDON_PATH_MAX] = "";
	const char *source, *target;
	struct cordon_error err;

	if (!cordon_reader_text(&reader->in, node, "share"))
		return 0;
	if (cordon_share_parse(node->text, &share, &err) < 0)
		return cordon_reader_refuse(&reader->in, node, &err, CORDON_READER_WHOLE);
	source = share.source;
	if (cordon_policy_expand_home(reader, &source, expanded, &err) < 0 ||
	    cordon_policy_check_absolute(source, &err) < 0)
		return cordon_reader_refuse(&reader->in, node, &err, CORDON_READER_WHOLE);
	/* What lies in the user's home lies in the run's home inside. */
	target = share.target;
	if (!target && source == expanded &&
	    cordon_path_join("~", cordon_home_rest(share.source), in_home, sizeof(in_home)) == 0)
		target = in_home;
	ret_setting->share.source = cordon_policy_keep_path(reader, source);
	ret_setting->share.target = target ? cordon_policy_keep_path(reader, target) : NULL;
	ret_setting->share.read_only = share.read_only;
	if (!ret_setting->share.source || (target && !ret_setting->share.target))
		return -ENOMEM;
	return cordon_reader_where(&reader->in, node, &ret_setting->where);
}

static int read_shares(struct cordon_policy_reader *reader, const struct cordon_node *node,
		       const struct cordon_policy_key *key)
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

static int read_limits(struct cordon_policy_reader *reader, const struct cordon_node *node,
		       const struct cordon_policy_key *key);

/* How the rows are read that are no plain values. */
static const struct cordon_policy_key readers[CORDON_RECIPE__MAX] = {
	[CORDON_RECIPE_VERSION] = { .read = read_version },
	[CORDON_RECIPE_WORKSPACE] = { .read = cordon_policy_read_list, .slot = SLOT(workspace), .check = check_folder },
	[CORDON_RECIPE_RW] = { .read = cordon_policy_read_list, .slot = SLOT(rw), .check = check_pattern },
	[CORDON_RECIPE_RO] = { .read = cordon_policy_read_list, .slot = SLOT(ro), .check = check_pattern },
	[CORDON_RECIPE_DENY] = { .read = cordon_policy_read_list, .slot = SLOT(deny), .check = check_pattern },
	[CORDON_RECIPE_WITHIN] = { .read = cordon_policy_read_list, .slot = SLOT(within), .check = check_pattern },
	[CORDON_RECIPE_PROTECT] = { .read = cordon_policy_read_list,
				    .slot = SLOT(protect),
				    .check = cordon_policy_check_protected },
	[CORDON_RECIPE_UNPROTECT] = { .read = cordon_policy_read_list,
				      .slot = SLOT(unprotect),
				      .check = cordon_policy_check_protected },
	[CORDON_RECIPE_PROFILE] = { .read = cordon_policy_read_names,
				    .slot = SLOT(profiles),
				    .check = cordon_profile_name_check },
	[CORDON_RECIPE_AT] = { .read = read_path, .slot = SLOT(at), .check = cordon_policy_check_absolute },
	[CORDON_RECIPE_HOME] = { .read = read_path, .slot = SLOT(home) },
	[CORDON_RECIPE_SHARE] = { .read = read_shares },
	[CORDON_RECIPE_NET] = { .read = read_net },
	[CORDON_RECIPE_PROGRAM] = { .read = cordon_policy_read_names, .slot = SLOT(program), .check = check_program },
	[CORDON_RECIPE_ENV] = { .read = read_env },
	[CORDON_RECIPE_KEEP_ENV] = { .read = cordon_policy_read_list,
				     .slot = SLOT(keep_env),
				     .check = cordon_env_pattern_check },
	[CORDON_RECIPE_LIMITS] = { .read = read_limits },
	[CORDON_RECIPE_DESCRIPTION] = { .read = read_text, .slot = SLOT(description), .check = check_text },
	[CORDON_RECIPE_STATE] = { .read = cordon_policy_read_state },
	[CORDON_RECIPE_PRIVATE] = { .read = cordon_policy_read_private, .slot = SLOT(private_dirs) },
	[CORDON_RECIPE_ARGV] = { .read = cordon_policy_read_list, .slot = SLOT(argv), .check = check_text },
	[CORDON_RECIPE_ARGV_HINT] = { .read = cordon_policy_read_list, .slot = SLOT(argv_hint), .check = check_text },
};

/* The keys of the file, or those below `limits`. */
static size_t make_keys(bool limits, struct cordon_policy_key ret_keys[static CORDON_RECIPE__MAX])
{
	size_t n = 0;

	for (size_t i = 0; i < CORDON_RECIPE__MAX; i++) {
		const struct cordon_recipe_row *row = &cordon_recipe_rows[i];

		if (!row->key || row->limit != limits)
			continue;
		ret_keys[n] = readers[i];
		ret_keys[n].name = row->key;
		ret_keys[n].row = row;
		if (!ret_keys[n].read)
			ret_keys[n].read = read_value;
		n++;
	}
	return n;
}

static int read_limits(struct cordon_policy_reader *reader, const struct cordon_node *node,
		       const struct cordon_policy_key *key)
{
	CORDON_UNCLEARED struct cordon_policy_key keys[CORDON_RECIPE__MAX];

	if (!cordon_reader_collection(&reader->in, node, CORDON_NODE_MAPPING, key->name))
		return 0;
	return cordon_policy_read_keys(reader, node, keys, make_keys(true, keys));
}

/* Suggests what the user may have meant by an unknown key. */
static void explain_unknown(const char *word, const struct cordon_policy_key *keys, size_t n, struct cordon_error *err)
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
	for (size_t i = 0; keys[0].row && !keys[0].row->limit && i < CORDON_RECIPE__MAX; i++)
		if (cordon_recipe_rows[i].limit && cordon_suggest_closer(word, cordon_recipe_rows[i].key, &best)) {
			meant = cordon_recipe_rows[i].key;
			under_limits = true;
		}
	if (!meant)
		cordon_error_hint(err, "known are %s", list.data ? list.data : "");
	else if (under_limits)
		cordon_error_hint(err, "it belongs under limits: {%s: ...}", meant);
	else
		cordon_error_hint(err, "did you mean '%s'?", meant);
}

int cordon_policy_read_keys(struct cordon_policy_reader *reader, const struct cordon_node *mapping,
			    const struct cordon_policy_key *keys, size_t n)
{
	for (const struct cordon_node *node = mapping->first; node; node = node->next) {
		const struct cordon_policy_key *key = NULL;
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
static int make_file(struct cordon_document *doc, const struct cordon_policy_trust *trust, size_t before,
		     struct cordon_policy_file **ret_file, struct cordon_errors *errors)
{
	static const struct cordon_policy_trust none = { .why_not = "this file may not speak of the home directory" };
	CORDON_CLEANUP(cordon_policy_file_freep) struct cordon_policy_file *file = calloc(1, sizeof(*file));
	struct cordon_policy_reader reader = { .trust = trust ? trust : &none,
					       .in = { .doc = doc, .errors = errors },
					       .file = file };
	CORDON_UNCLEARED struct cordon_policy_key keys[CORDON_RECIPE__MAX];

	if (!file) {
		cordon_document_free(doc);
		return no_memory(errors, "the policy file");
	}
	file->doc = doc;
	if (cordon_reader_collection(&reader.in, doc->root, CORDON_NODE_MAPPING, "a policy file") &&
	    cordon_policy_read_keys(&reader, doc->root, keys, make_keys(false, keys)) < 0)
		return no_memory(errors, doc->name);
	if (errors->n + errors->dropped > before)
		return -EINVAL;
	*ret_file = cordon_steal_ptr(&file);
	return 0;
}

int cordon_policy_file_load(const char *path, const struct cordon_policy_trust *trust,
			    struct cordon_policy_file **ret_file, struct cordon_errors *errors)
{
	size_t before = errors->n + errors->dropped;
	struct cordon_document *doc;
	int r = cordon_document_load(path, &doc, errors);

	return r < 0 ? r : make_file(doc, trust, before, ret_file, errors);
}

int cordon_policy_file_parse(const char *name, cordon_format format, const char *text, size_t len,
			     struct cordon_policy_file **ret_file, struct cordon_errors *errors)
{
	size_t before = errors->n + errors->dropped;
	struct cordon_document *doc;
	int r = cordon_document_parse(name, format, text, len, CORDON_CONFIG_DEPTH_MAX, &doc, errors);

	return r < 0 ? r : make_file(doc, NULL, before, ret_file, errors);
}
