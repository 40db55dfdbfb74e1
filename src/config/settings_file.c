/* SPDX-License-Identifier: Apache-2.0 */
/* Finds and reads config.yaml, and judges its text. settings_check.c looks at what its paths lead to. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/home.h"
#include "base/io.h"
#include "base/path.h"
#include "base/resolve.h"
#include "config/edit_yaml.h"
#include "config/settings_reader.h"
#include "config/suggest.h"
#include "protect/homes.h"

#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
#define TEXT_MAX 4096

/* ---- values ---- */

int cordon_settings_id_check(const char *what, const char *id, struct cordon_error *err)
{
	size_t n = strlen(id);

	if (n >= 1 && n <= CORDON_SETTINGS_ID_MAX && strspn(id, LETTERS "_-") == n)
		return 0;
	cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "not %s: '%.80s'", what, id);
	cordon_error_hint(err, "1 to %d letters, digits, dashes and underscores", CORDON_SETTINGS_ID_MAX);
	return -EINVAL;
}

int cordon_settings_resolve(const char *path, char ret[static CORDON_PATH_MAX])
{
	const struct cordon_root slash = { .fd = -1, .path = "/" };
	CORDON_UNCLEARED struct cordon_resolved found;

	cordon_resolve(&slash, path, &found);
	if (found.place != CORDON_PLACE_INSIDE)
		return -ELOOP;
	return cordon_path_join("/", found.path, ret, CORDON_PATH_MAX);
}

bool cordon_settings_is_none(const struct cordon_node *node)
{
	return node->type == CORDON_NODE_SCALAR && node->style == CORDON_STYLE_PLAIN &&
	       (!node->len || cordon_streq(node->text, "~") || cordon_streq(node->text, "null"));
}

const char *cordon_settings_keep(const struct cordon_settings_reader *reader, const char *text)
{
	size_t size = strlen(text) + 1;
	char *copy = cordon_document_alloc(reader->in.doc, size);

	return copy ? memcpy(copy, text, size) : NULL;
}

/* An id that is the key of a mapping. */
static bool check_key(const struct cordon_settings_reader *reader, const struct cordon_node *node, const char *what)
{
	struct cordon_error err = { 0 };

	if (cordon_settings_id_check(what, node->key->text, &err) == 0)
		return true;
	cordon_reader_refuse(&reader->in, node->key, &err, CORDON_READER_WHOLE);
	return false;
}

int cordon_settings_read_text(struct cordon_settings_reader *reader, const struct cordon_node *node, const char *what,
			      const char **ret_text)
{
	if (!cordon_reader_text(&reader->in, node, what))
		return 0;
	if (!node->len || node->len > TEXT_MAX || strspn(node->text, " \t\n") == node->len)
		cordon_node_fail(reader->in.doc, node, reader->in.errors, NULL,
				 node->len > TEXT_MAX ? "%s is too long" : "%s must not be empty", what);
	else
		*ret_text = node->text;
	return 0;
}

int cordon_settings_read_path(struct cordon_settings_reader *reader, const struct cordon_node *node, const char *what,
			      const char **ret_given, const char **ret_path)
{
	char path[CORDON_PATH_MAX];

	if (!cordon_reader_text(&reader->in, node, what))
		return 0;
	if (node->text[0] != '/') {
		cordon_node_fail(reader->in.doc, node, reader->in.errors,
				 "write the whole path; ~ stands for nothing here",
				 "%s must be an absolute path, not '%.200s'", what, node->text);
		return 0;
	}
	/* A path that an agent made a circle of links must not keep a person from taking it out of the settings. It stays as it
	 * is written, and whoever looks at it or opens it refuses it. */
	if (cordon_settings_resolve(node->text, path) < 0 && cordon_path_clean(node->text, path, sizeof(path)) < 0) {
		cordon_node_fail(reader->in.doc, node, reader->in.errors, NULL, "%s can't be resolved: %.400s", what,
				 node->text);
		return 0;
	}
	*ret_given = node->text;
	*ret_path = cordon_settings_keep(reader, path);
	return *ret_path ? 0 : -ENOMEM;
}

int cordon_settings_read_id(struct cordon_settings_reader *reader, const struct cordon_node *node, const char *what,
			    const char *kind, const char **ret_id)
{
	struct cordon_error err = { 0 };

	if (!cordon_reader_text(&reader->in, node, what))
		return 0;
	if (cordon_settings_id_check(kind, node->text, &err) < 0)
		return cordon_reader_refuse(&reader->in, node, &err, CORDON_READER_WHOLE);
	*ret_id = node->text;
	return 0;
}

/* ---- mappings ---- */

static void refuse_key(const struct cordon_settings_reader *reader, const struct cordon_node *node, const char *what,
		       const struct cordon_settings_key *keys)
{
	size_t best = CORDON_SUGGEST_FAR;
	const char *nearest = NULL;
	char hint[128] = "";

	for (const struct cordon_settings_key *key = keys; key->name; key++)
		if (cordon_suggest_closer(node->key->text, key->name, &best))
			nearest = key->name;
	if (nearest)
		snprintf(hint, sizeof(hint), "did you mean '%s'?", nearest);
	cordon_node_fail(reader->in.doc, node->key, reader->in.errors, *hint ? hint : NULL,
			 "unknown key in %s: '%.80s'", what, node->key->text);
}

int cordon_settings_read_keys(struct cordon_settings_reader *reader, const struct cordon_node *mapping,
			      const char *what, const struct cordon_settings_key *keys, void *data)
{
	int r = 0;

	if (cordon_settings_is_none(mapping) ||
	    !cordon_reader_collection(&reader->in, mapping, CORDON_NODE_MAPPING, what))
		return 0;
	for (const struct cordon_node *node = mapping->first; r == 0 && node; node = node->next) {
		const struct cordon_settings_key *key = keys;

		while (key->name && !cordon_streq(key->name, node->key->text))
			key++;
		if (!key->name)
			refuse_key(reader, node, what, keys);
		else if (key->read)
			r = key->read(reader, node, data);
	}
	return r;
}

int cordon_settings_read_each(struct cordon_settings_reader *reader, const struct cordon_node *mapping,
			      const char *what, const char *id, size_t size, cordon_settings_read_fn *read,
			      void **ret_items, size_t *ret_n)
{
	char *items = NULL;
	size_t n = 0;
	int r = 0;

	if (cordon_settings_is_none(mapping) ||
	    !cordon_reader_collection(&reader->in, mapping, CORDON_NODE_MAPPING, what))
		return 0;
	if (mapping->n > CORDON_SETTINGS_MAX) {
		cordon_node_fail(reader->in.doc, mapping, reader->in.errors, NULL, "%s has more than %d entries", what,
				 CORDON_SETTINGS_MAX);
		return 0;
	}
	items = cordon_document_alloc(reader->in.doc, (mapping->n + 1) * size);
	if (!items)
		return -ENOMEM;
	memset(items, 0, (mapping->n + 1) * size);
	for (const struct cordon_node *node = mapping->first; r == 0 && node; node = node->next)
		if (check_key(reader, node, id))
			r = read(reader, node, items + n++ * size);
	*ret_items = items;
	*ret_n = n;
	return r;
}

/* ---- finding ---- */

/* Finds the item with this id in an array whose members begin with the id. */
static const void *find(const void *items, size_t n, size_t size, const char *id, const char **ret_nearest)
{
	size_t best = CORDON_SUGGEST_FAR;

	for (size_t i = 0; i < n; i++) {
		const char *item = (const char *)items + i * size;
		const char *other = *(const char *const *)(const void *)item;

		if (cordon_streq(other, id))
			return item;
		if (ret_nearest && cordon_suggest_closer(id, other, &best))
			*ret_nearest = other;
	}
	return NULL;
}

static int not_found(struct cordon_error *err, const char *what, const char *id, const char *nearest, const char *list)
{
	cordon_fail(err, -ENOENT, CORDON_KIND_NOT_FOUND, "there is no %s '%.80s'", what, id);
	if (nearest)
		cordon_error_hint(err, "did you mean '%s'?", nearest);
	else
		cordon_error_hint(err, "'cordon %s' shows those that there are", list);
	return -ENOENT;
}

int cordon_settings_orchestrator(const struct cordon_settings_file *settings, const char *id,
				 const struct cordon_orchestrator **ret_orchestrator, struct cordon_error *err)
{
	const char *nearest = NULL;
	const void *found = find(settings->orchestrators, settings->n_orchestrators, sizeof(**ret_orchestrator), id,
				 &nearest);

	if (!found)
		return not_found(err, "orchestrator", id, nearest, "orchestrator list");
	*ret_orchestrator = found;
	return 0;
}

int cordon_settings_area(const struct cordon_settings_file *settings, const char *key,
			 const struct cordon_shared_area **ret_area, struct cordon_error *err)
{
	const char *nearest = NULL;
	const void *found = find(settings->areas, settings->n_areas, sizeof(**ret_area), key, &nearest);

	if (!found)
		return not_found(err, "shared area", key, nearest, "shared list");
	*ret_area = found;
	return 0;
}

int cordon_settings_profile(const struct cordon_settings_file *settings, const char *id,
			    const struct cordon_channel_profile **ret_profile, struct cordon_error *err)
{
	const char *nearest = NULL;
	const void *found = find(settings->profiles, settings->n_profiles, sizeof(**ret_profile), id, &nearest);

	if (!found)
		return not_found(err, "channel profile", id, nearest, "channel-profile list");
	*ret_profile = found;
	return 0;
}

int cordon_settings_preset(const struct cordon_settings_file *settings, const char *name,
			   const struct cordon_preset **ret_preset, struct cordon_error *err)
{
	const char *nearest = NULL;
	const void *found = find(settings->presets, settings->n_presets, sizeof(**ret_preset), name, &nearest);

	if (!found)
		return not_found(err, "preset", name, nearest, "preset list");
	*ret_preset = found;
	return 0;
}

int cordon_settings_provider(const struct cordon_settings_file *settings, const char *name,
			     const struct cordon_provider **ret_provider, struct cordon_error *err)
{
	const char *nearest = NULL;
	const void *found = find(settings->providers, settings->n_providers, sizeof(**ret_provider), name, &nearest);

	if (!found) {
		not_found(err, "provider", name, nearest, "config show");
		if (!nearest)
			cordon_error_hint(err, "add it to defaults.providers in %s, with its command", settings->path);
		return -ENOENT;
	}
	*ret_provider = found;
	return 0;
}

const struct cordon_area_grant *cordon_orchestrator_grant(const struct cordon_orchestrator *orchestrator,
							  const char *key)
{
	for (size_t i = 0; i < orchestrator->n_grants; i++)
		if (cordon_streq(orchestrator->grants[i].area->key, key))
			return &orchestrator->grants[i];
	return NULL;
}

/* ---- the file ---- */

struct cordon_settings_file *cordon_settings_free(struct cordon_settings_file *settings)
{
	if (settings)
		cordon_document_free(settings->doc);
	free(settings);
	return NULL;
}

void cordon_settings_freep(struct cordon_settings_file **settings)
{
	*settings = cordon_settings_free(*settings);
}

int cordon_settings_path(const char *config, char ret_path[static CORDON_PATH_MAX], struct cordon_error *err)
{
	autohome struct cordon_home home = CORDON_HOME_NONE;
	const char *variable = getenv("CORDON_CONFIG");
	char cwd[CORDON_PATH_MAX] = "";
	int r;

	if (!config && variable && *variable)
		config = variable;
	if (!config) {
		r = cordon_home_open(&home, err);
		if (r == 0 && cordon_path_join(home.path, CORDON_SETTINGS_FILE, ret_path, CORDON_PATH_MAX) < 0)
			r = cordon_fail_errno(err, -ENAMETOOLONG, "%s", home.path);
		return r;
	}
	if (*config != '/' && !getcwd(cwd, sizeof(cwd)))
		return cordon_fail_errno(err, -errno, "cannot find the current directory");
	r = *config == '/' ? cordon_copy(ret_path, CORDON_PATH_MAX, config, strlen(config))
			   : cordon_path_join(cwd, config, ret_path, CORDON_PATH_MAX);
	return r < 0 ? cordon_fail_errno(err, r, "%s", config) : 0;
}

int cordon_settings_parse(const char *path, const char *text, size_t len, struct cordon_settings_file **ret_settings,
			  struct cordon_errors *errors)
{
	autosettings struct cordon_settings_file *settings = calloc(1, sizeof(*settings));
	autohome struct cordon_home home = CORDON_HOME_NONE;
	size_t before = errors->n + errors->dropped;
	struct cordon_error err = { 0 };
	int r;

	if (!settings)
		cordon_fail_errno(&err, -ENOMEM, "%s", path);
	else if (cordon_home_open(&home, &err) == 0 &&
		 cordon_copy(settings->path, sizeof(settings->path), path, strlen(path)) < 0)
		cordon_fail_errno(&err, -ENAMETOOLONG, "%s", path);
	if (err.code || !settings)
		return cordon_errors_add(errors, &err, NULL, 0, 0);
	memcpy(settings->home, home.path, sizeof(home.path));
	cordon_homes_user(settings->user);
	cordon_digest(text, len, settings->digest);
	if (cordon_yaml_is_empty(text, len)) {
		text = "{}";
		len = 2;
	}
	r = cordon_document_parse(path, CORDON_FORMAT_YAML_ALIASES, text, len, CORDON_CONFIG_DEPTH_MAX, &settings->doc,
				  errors);
	if (r < 0)
		return r;
	r = cordon_settings_read(settings, errors);
	if (r < 0) {
		cordon_fail_errno(&err, r, "%s", path);
		return cordon_errors_add(errors, &err, NULL, 0, 0);
	}
	if (errors->n + errors->dropped > before)
		return -EINVAL;
	*ret_settings = cordon_steal_ptr(&settings);
	return 0;
}

/* Refuses a file that others could have written. $CORDON_HOME itself lets nobody else in. */
static int check_writers(const char *path, const struct stat *st, bool named, struct cordon_error *err)
{
	if (st->st_uid != geteuid() && st->st_uid != 0)
		return cordon_fail(err, -EACCES, CORDON_KIND_POLICY_DENIED, "%s belongs to another user", path);
	if (!named || !(st->st_mode & 022))
		return 0;
	cordon_fail(err, -EACCES, CORDON_KIND_POLICY_DENIED, "other users can write to %s", path);
	cordon_error_hint(err, "chmod go-w %s", path);
	return -EACCES;
}

static int read_file(const char *path, bool named, struct cordon_buf *ret_text, struct cordon_error *err)
{
	autofd int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;
	int r;

	if (fd < 0 && errno == ENOENT && !named)
		return 0;
	if (fd < 0 || fstat(fd, &st) < 0) {
		r = cordon_fail_errno(err, -errno, "cannot read %s", path);
		if (r == -ENOENT && err)
			err->kind = CORDON_KIND_NOT_FOUND;
		return r;
	}
	if (!S_ISREG(st.st_mode))
		return cordon_fail(err, -EINVAL, CORDON_KIND_CONFIG, "%s is not a regular file", path);
	r = check_writers(path, &st, named, err);
	return r < 0 ? r : cordon_read_regular(fd, &st, path, ret_text, err);
}

int cordon_settings_load(const char *config, unsigned int flags, struct cordon_settings_file **ret_settings,
			 struct cordon_errors *errors)
{
	struct cordon_buf text autobuf = CORDON_BUF(CORDON_CONFIG_SIZE_MAX);
	autosettings struct cordon_settings_file *settings = NULL;
	const char *variable = getenv("CORDON_CONFIG");
	bool named = config || (variable && *variable);
	char path[CORDON_PATH_MAX];
	struct cordon_error err = { 0 };
	int r = cordon_settings_path(config, path, &err);

	if (r == 0)
		r = read_file(path, named, &text, &err);
	if (r < 0)
		return cordon_errors_add(errors, &err, NULL, 0, 0);
	r = cordon_settings_parse(path, text.data ? text.data : "", text.len, &settings, errors);
	if (r == 0 && !(flags & CORDON_SETTINGS_TEXT_ONLY))
		r = cordon_settings_check(settings, errors);
	if (r < 0)
		return r;
	*ret_settings = cordon_steal_ptr(&settings);
	return 0;
}
