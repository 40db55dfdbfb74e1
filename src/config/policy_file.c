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

static int read_bool(struct cordon_policy_reader *reader, const struct cordon_node *node,
		     const struct cordon_policy_key *key)
{
	if (!cordon_reader_bool(&reader->in, node, key->name, cordon_policy_slot(reader, key->slot)))
		return 0;
	return cordon_reader_where(&reader->in, node, cordon_policy_slot(reader, key->where));
}

static int read_mode(struct cordon_policy_reader *reader, const struct cordon_node *node,
		     const struct cordon_policy_key *key)
{
	struct cordon_error err;

	if (!cordon_reader_text(&reader->in, node, key->name))
		return 0;
	if (cordon_mode_parse(node->text, &reader->file->mode, &err) < 0)
		return cordon_reader_refuse(&reader->in, node, &err, CORDON_READER_WHOLE);
	return cordon_reader_where(&reader->in, node, &reader->file->mode_where);
}

static int read_net(struct cordon_policy_reader *reader, const struct cordon_node *node,
		    const struct cordon_policy_key *key)
{
	(void)key;
	return cordon_net_read(&reader->in, node, reader->trust->credentials, &reader->file->net);
}

static int read_lens(struct cordon_policy_reader *reader, const struct cordon_node *node,
		     const struct cordon_policy_key *key)
{
	struct cordon_error err;

	if (!cordon_reader_text(&reader->in, node, key->name))
		return 0;
	if (cordon_lens_parse(node->text, &reader->file->lens, &err) < 0)
		return cordon_reader_refuse(&reader->in, node, &err, CORDON_READER_WHOLE);
	return cordon_reader_where(&reader->in, node, &reader->file->lens_where);
}

static int read_git(struct cordon_policy_reader *reader, const struct cordon_node *node,
		    const struct cordon_policy_key *key)
{
	struct cordon_error err;

	if (!cordon_reader_text(&reader->in, node, key->name))
		return 0;
	if (cordon_git_parse(node->text, &reader->file->git, &err) < 0)
		return cordon_reader_refuse(&reader->in, node, &err, CORDON_READER_WHOLE);
	return cordon_reader_where(&reader->in, node, &reader->file->git_where);
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

/* Reads a number with or without a unit, with or without quotes, in either format. */
static int read_limit(struct cordon_policy_reader *reader, const struct cordon_node *node,
		      const struct cordon_policy_key *key)
{
	struct cordon_error err;

	if (node->type == CORDON_NODE_BAD)
		return 0;
	if (node->type != CORDON_NODE_SCALAR) {
		cordon_node_fail(reader->in.doc, node, reader->in.errors, NULL, "%s must be a number, not %s",
				 key->name, cordon_node_describe(reader->in.doc, node));
		return 0;
	}
	if (key->limit(node->text, cordon_policy_slot(reader, key->slot), &err) < 0)
		return cordon_reader_refuse(&reader->in, node, &err, CORDON_READER_WHOLE);
	return 0;
}

static const struct cordon_policy_key limit_keys[] = {
	{ .name = "timeout", .read = read_limit, .slot = SLOT(limits.timeout_ms), .limit = cordon_timeout_parse },
	{ .name = "memory", .read = read_limit, .slot = SLOT(limits.memory_bytes), .limit = cordon_memory_parse },
	{ .name = "pids", .read = read_limit, .slot = SLOT(limits.pids), .limit = cordon_pids_parse },
	{ .name = "cpus", .read = read_limit, .slot = SLOT(limits.cpu_millis), .limit = cordon_cpus_parse },
	{ .name = "tmp_size", .read = read_limit, .slot = SLOT(limits.tmp_bytes), .limit = cordon_memory_parse },
};

static int read_limits(struct cordon_policy_reader *reader, const struct cordon_node *node,
		       const struct cordon_policy_key *key)
{
	if (!cordon_reader_collection(&reader->in, node, CORDON_NODE_MAPPING, key->name))
		return 0;
	return cordon_policy_read_keys(reader, node, limit_keys, CORDON_ARRAY_SIZE(limit_keys));
}

static const struct cordon_policy_key top_keys[] = {
	{ .name = "version", .read = read_version },
	{ .name = "mode", .read = read_mode },
	{ .name = "workspace", .read = cordon_policy_read_list, .slot = SLOT(workspace), .check = check_folder },
	{ .name = "rw", .read = cordon_policy_read_list, .slot = SLOT(rw), .check = check_pattern },
	{ .name = "ro", .read = cordon_policy_read_list, .slot = SLOT(ro), .check = check_pattern },
	{ .name = "deny", .read = cordon_policy_read_list, .slot = SLOT(deny), .check = check_pattern },
	{ .name = "within", .read = cordon_policy_read_list, .slot = SLOT(within), .check = check_pattern },
	{ .name = "deny_secrets", .read = read_bool, .slot = SLOT(deny_secrets), .where = SLOT(deny_secrets_where) },
	{ .name = "read_only", .read = read_bool, .slot = SLOT(read_only), .where = SLOT(read_only_where) },
	{ .name = "protect",
	  .read = cordon_policy_read_list,
	  .slot = SLOT(protect),
	  .check = cordon_policy_check_protected },
	{ .name = "unprotect",
	  .read = cordon_policy_read_list,
	  .slot = SLOT(unprotect),
	  .check = cordon_policy_check_protected },
	{ .name = "default_protect",
	  .read = read_bool,
	  .slot = SLOT(default_protect),
	  .where = SLOT(default_protect_where) },
	{ .name = "env", .read = read_env },
	{ .name = "keep_env", .read = cordon_policy_read_list, .slot = SLOT(keep_env), .check = cordon_env_pattern_check },
	{ .name = "home", .read = read_path, .slot = SLOT(home) },
	{ .name = "at", .read = read_path, .slot = SLOT(at), .check = cordon_policy_check_absolute },
	{ .name = "share", .read = read_shares },
	{ .name = "net", .read = read_net },
	{ .name = "lens", .read = read_lens },
	{ .name = "editor_temps", .read = read_bool, .slot = SLOT(editor_temps), .where = SLOT(editor_temps_where) },
	{ .name = "limits", .read = read_limits },
	{ .name = "git", .read = read_git },
	{ .name = "best_effort", .read = read_bool, .slot = SLOT(best_effort), .where = SLOT(best_effort_where) },
	{ .name = "cow", .read = read_bool, .slot = SLOT(cow), .where = SLOT(cow_where) },
	{ .name = "profiles",
	  .read = cordon_policy_read_names,
	  .slot = SLOT(profiles),
	  .check = cordon_profile_name_check },
	{ .name = "description", .read = read_text, .slot = SLOT(description), .check = check_text },
	{ .name = "program", .read = cordon_policy_read_names, .slot = SLOT(program), .check = check_program },
	{ .name = "state", .read = cordon_policy_read_state },
	{ .name = "private", .read = cordon_policy_read_private, .slot = SLOT(private_dirs) },
	{ .name = "argv_hint", .read = cordon_policy_read_list, .slot = SLOT(argv_hint), .check = check_text },
};

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

	if (!file) {
		cordon_document_free(doc);
		return no_memory(errors, "the policy file");
	}
	*file = (struct cordon_policy_file){ .doc = doc, .default_protect = true, .editor_temps = true };
	if (cordon_reader_collection(&reader.in, doc->root, CORDON_NODE_MAPPING, "a policy file") &&
	    cordon_policy_read_keys(&reader, doc->root, top_keys, CORDON_ARRAY_SIZE(top_keys)) < 0)
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
