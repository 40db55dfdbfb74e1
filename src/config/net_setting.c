/* SPDX-License-Identifier: Apache-2.0 */
/* Reads what files, options and records say about the network. */
#include "config/net_setting.h"

#include "config/values.h"

static bool is_word(const char *text)
{
	return cordon_streq(text, CORDON_NET_WORD_HOST) || cordon_streq(text, CORDON_NET_WORD_NONE) ||
	       cordon_streq(text, CORDON_NET_WORD_PROFILE);
}

/* ---- from a file ---- */

static int read_allow(const struct cordon_reader *reader, const struct cordon_node *node, const char *what,
		      struct cordon_setting_list *ret)
{
	if (!cordon_reader_collection(reader, node, CORDON_NODE_SEQUENCE, what))
		return 0;
	ret->items = cordon_document_alloc(reader->doc, (node->n ? node->n : 1) * sizeof(*ret->items));
	ret->n = 0; /* a duplicate key is read twice */
	if (!ret->items)
		return -ENOMEM;
	for (const struct cordon_node *item = node->first; item; item = item->next) {
		struct cordon_setting *setting = &ret->items[ret->n];
		struct cordon_error err = { 0 };
		size_t column = 0;

		if (!cordon_reader_text(reader, item, what))
			continue;
		if (!cordon_streq(item->text, CORDON_NET_WORD_PROFILE) &&
		    cordon_net_rule_check(item->text, &column, &err) < 0) {
			if (cordon_reader_refuse(reader, item, &err, column ? column - 1 : CORDON_READER_WHOLE) < 0)
				return -ENOMEM;
			continue;
		}
		*setting = (struct cordon_setting){ .text = item->text, .line = item->line, .column = item->column };
		if (cordon_reader_where(reader, item, &setting->where) < 0)
			return -ENOMEM;
		ret->n++;
	}
	return 0;
}

/* The fields of a credential, in the order of `slots`. */
static const char *const inject_keys[] = { "host", "header", "from_env", "base_url_env", "prefix", "path" };
enum { INJECT_HOST, INJECT_HEADER, INJECT_FROM_ENV, INJECT_BASE_URL_ENV, INJECT_PREFIX, INJECT_PATH, INJECT__MAX };
#define INJECT_NEEDED INJECT_PREFIX /* the fields before this one must be there */

static size_t inject_key(const char *name)
{
	size_t i = 0;

	while (i < INJECT__MAX && !cordon_streq(inject_keys[i], name))
		i++;
	return i;
}

/* Makes a credential of its texts; the strings are borrowed but for `name`, which gets the clean name of the host. */
static int make_inject(const char *const texts[static INJECT__MAX], char name[static CORDON_NET_NAME_SIZE],
		       struct cordon_net_inject *ret, struct cordon_error *err)
{
	static char nothing[] = "";
	struct cordon_net_list probe = { 0 };
	struct cordon_net_rule rule;
	union {
		const char *in;
		char *out; /* the list copies it, and does not change it */
	} text[INJECT__MAX];
	int r;

	for (size_t i = 0; i < INJECT__MAX; i++) {
		if (!texts[i] && i < INJECT_NEEDED)
			return cordon_fail(err, -EINVAL, CORDON_KIND_CONFIG, "an entry of inject has no %s",
					   inject_keys[i]);
		if (texts[i])
			text[i].in = texts[i];
		else
			text[i].out = nothing;
	}
	r = cordon_net_rule_parse(texts[INJECT_HOST], strlen(texts[INJECT_HOST]), &rule, err);
	if (r == 0 && (rule.kind != CORDON_NET_KIND_NAME || rule.tcp))
		r = cordon_fail(err, -EINVAL, CORDON_KIND_CONFIG,
				"a credential goes to one host with a name, not to '%s'", texts[INJECT_HOST]);
	if (r < 0)
		return r;
	memcpy(name, rule.name, sizeof(rule.name));
	*ret = (struct cordon_net_inject){ .host = name,
					   .port = rule.port,
					   .header = text[INJECT_HEADER].out,
					   .from_env = text[INJECT_FROM_ENV].out,
					   .base_url_env = text[INJECT_BASE_URL_ENV].out,
					   .prefix = text[INJECT_PREFIX].out,
					   .path = text[INJECT_PATH].out };
	r = cordon_net_list_inject(&probe, ret, err);
	cordon_net_list_done(&probe);
	return r;
}

static int read_credential(const struct cordon_reader *reader, const struct cordon_node *node,
			   struct cordon_net_setting *setting)
{
	const char *texts[INJECT__MAX] = { NULL };
	char *name = cordon_document_alloc(reader->doc, CORDON_NET_NAME_SIZE);
	struct cordon_error err = { 0 };
	size_t before = reader->errors->n + reader->errors->dropped;

	if (!name)
		return -ENOMEM;
	if (!cordon_reader_collection(reader, node, CORDON_NODE_MAPPING, "an entry of inject"))
		return 0;
	for (const struct cordon_node *item = node->first; item; item = item->next) {
		size_t i = inject_key(item->key->text);

		if (i == INJECT__MAX)
			cordon_node_fail(reader->doc, item->key, reader->errors,
					 "known are host, header, from_env, base_url_env, prefix, path",
					 "unknown key '%s'", item->key->text);
		else if (cordon_reader_text(reader, item, inject_keys[i]))
			texts[i] = item->text;
	}
	if (reader->errors->n + reader->errors->dropped > before)
		return 0;
	if (make_inject(texts, name, &setting->inject[setting->n_inject], &err) < 0)
		return cordon_reader_refuse(reader, node, &err, CORDON_READER_WHOLE);
	setting->n_inject++;
	return 0;
}

static int read_inject(const struct cordon_reader *reader, const struct cordon_node *node, bool credentials,
		       struct cordon_net_setting *setting)
{
	if (!cordon_reader_collection(reader, node, CORDON_NODE_SEQUENCE, "inject"))
		return 0;
	if (!credentials) {
		cordon_node_fail(reader->doc, node, reader->errors,
				 "keep the policy file outside the workspace, owned by you",
				 "a file that an agent may write can't hand out credentials");
		return 0;
	}
	setting->inject = cordon_document_alloc(reader->doc, (node->n ? node->n : 1) * sizeof(*setting->inject));
	setting->n_inject = 0;
	if (!setting->inject)
		return -ENOMEM;
	for (const struct cordon_node *item = node->first; item; item = item->next)
		if (read_credential(reader, item, setting) < 0)
			return -ENOMEM;
	return 0;
}

static int read_mapping(const struct cordon_reader *reader, const struct cordon_node *node, bool credentials,
			struct cordon_net_setting *setting)
{
	int r = 0;

	for (const struct cordon_node *item = node->first; r == 0 && item; item = item->next) {
		if (cordon_streq(item->key->text, "allow"))
			r = read_allow(reader, item, "net.allow", &setting->allow);
		else if (cordon_streq(item->key->text, "inject"))
			r = read_inject(reader, item, credentials, setting);
		else
			cordon_node_fail(reader->doc, item->key, reader->errors, "known are allow, inject",
					 "unknown key '%s'", item->key->text);
	}
	return r;
}

int cordon_net_read(const struct cordon_reader *reader, const struct cordon_node *node, bool credentials,
		    struct cordon_net_setting *ret_setting)
{
	struct cordon_net_setting setting = { 0 };
	int r = cordon_reader_where(reader, node, &setting.where);

	if (r < 0)
		return r;
	if (node->type == CORDON_NODE_SEQUENCE) {
		r = read_allow(reader, node, "net", &setting.allow);
	} else if (node->type == CORDON_NODE_MAPPING) {
		r = read_mapping(reader, node, credentials, &setting);
	} else if (!cordon_reader_text(reader, node, "net")) {
		return 0;
	} else if (is_word(node->text)) {
		setting.word = node->text;
	} else {
		cordon_node_fail(reader->doc, node, reader->errors,
				 "use host, none, profile, or a list: [api.example.com]", "'%s' is not a network",
				 node->text);
	}
	if (r == 0)
		*ret_setting = setting;
	return r;
}

/* ---- to a list ---- */

static int add_profiles(struct cordon_net_list *list, const struct cordon_net_list *profiles, struct cordon_error *err)
{
	int r = 0;

	if (!profiles || !profiles->listed) {
		cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "no profile with a list of hosts is in use");
		cordon_error_hint(err, "name a profile beside it that lists some, or list the hosts");
		return -EINVAL;
	}
	list->listed = true;
	for (size_t i = 0; r == 0 && i < profiles->n; i++)
		r = cordon_net_list_add(list, &profiles->rules[i], profiles->rules[i].where, err);
	for (size_t i = 0; r == 0 && i < profiles->n_inject; i++)
		r = cordon_net_list_inject(list, &profiles->inject[i], err);
	return r;
}

/* Adds one entry of a list: a rule or the word `profile`. */
static int add_entry(struct cordon_net_list *list, const char *text, const char *where,
		     const struct cordon_net_list *profiles, struct cordon_error *err)
{
	struct cordon_net_rule rule;
	int r;

	if (cordon_streq(text, CORDON_NET_WORD_PROFILE))
		return add_profiles(list, profiles, err);
	if (is_word(text)) {
		cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "'%s' stands alone, not in a list", text);
		cordon_error_hint(err, "a host of this name is written %s:443", text);
		return -EINVAL;
	}
	r = cordon_net_rule_parse(text, strlen(text), &rule, err);
	return r < 0 ? r : cordon_net_list_add(list, &rule, where, err);
}

int cordon_net_setting_list(const struct cordon_net_setting *setting, const struct cordon_net_list *profiles,
			    struct cordon_net_list *ret_list, struct cordon_error *err)
{
	bool limits = setting->where && !(setting->word && cordon_streq(setting->word, CORDON_NET_WORD_HOST));
	struct cordon_net_list list = { .listed = limits };
	int r = 0;

	if (setting->word && cordon_streq(setting->word, CORDON_NET_WORD_PROFILE))
		r = add_profiles(&list, profiles, err);
	for (size_t i = 0; r == 0 && i < setting->allow.n; i++)
		r = add_entry(&list, setting->allow.items[i].text, setting->allow.items[i].where, profiles, err);
	for (size_t i = 0; r == 0 && i < setting->n_inject; i++)
		r = cordon_net_list_inject(&list, &setting->inject[i], err);
	if (r < 0)
		cordon_net_list_done(&list);
	else
		*ret_list = list;
	return r;
}

int cordon_net_option(const char *text, const char *where, const struct cordon_net_list *profiles,
		      struct cordon_net_list *list, struct cordon_error *err)
{
	int r = 0;

	if (cordon_streq(text, CORDON_NET_WORD_HOST))
		return 0;
	list->listed = true;
	if (cordon_streq(text, CORDON_NET_WORD_NONE))
		return 0;
	for (const char *p = text, *end; r == 0 && p; p = *end ? end + 1 : NULL) {
		autofree char *entry = NULL;
		size_t n;

		end = p + strcspn(p, ",");
		p += strspn(p, " \t");
		for (n = p < end ? (size_t)(end - p) : 0; n && (p[n - 1] == ' ' || p[n - 1] == '\t');)
			n--;
		entry = strndup(p, n);
		r = entry ? add_entry(list, entry, where, profiles, err) : cordon_fail_errno(err, -ENOMEM, "%s", where);
	}
	return r;
}

/* ---- JSON ---- */

static json_t *inject_json(const struct cordon_net_inject *inject)
{
	char host[CORDON_NET_RULE_SIZE], port[CORDON_DIGITS_SIZE];
	json_t *object;

	cordon_concat(host, sizeof(host), inject->host, ":", cordon_digits(inject->port, port), (char *)NULL);
	object = json_pack("{s:s, s:s, s:s, s:s}", "host", host, "header", inject->header, "from_env", inject->from_env,
			   "base_url_env", inject->base_url_env);
	if (object && *inject->prefix)
		json_object_set_new(object, "prefix", json_string(inject->prefix));
	if (object && *inject->path)
		json_object_set_new(object, "path", json_string(inject->path));
	return object;
}

json_t *cordon_net_list_json(const struct cordon_net_list *list)
{
	json_auto_t *allow = json_array(), *inject = json_array();

	if (!list->listed)
		return json_string(CORDON_NET_WORD_HOST);
	if (cordon_net_list_is_none(list))
		return json_string(CORDON_NET_WORD_NONE);
	for (size_t i = 0; i < list->n; i++)
		if (json_array_append_new(allow, json_string(list->rules[i].text)) < 0)
			return NULL;
	for (size_t i = 0; i < list->n_inject; i++)
		if (json_array_append_new(inject, inject_json(&list->inject[i])) < 0)
			return NULL;
	if (!list->n_inject)
		return cordon_steal_ptr(&allow);
	return json_pack("{s:O, s:O}", "allow", allow, "inject", inject);
}

static int allow_from_json(const char *key, const json_t *value, const struct cordon_net_list *profiles,
			   struct cordon_net_list *list, struct cordon_error *err)
{
	size_t i;
	json_t *item;

	if (!json_is_array(value))
		return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "%s must be a list of hosts", key);
	json_array_foreach(value, i, item) {
		int r;

		if (!json_is_string(item) || strlen(json_string_value(item)) != json_string_length(item))
			return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "%s[%zu] must be text", key, i);
		r = add_entry(list, json_string_value(item), key, profiles, err);
		if (r < 0)
			return cordon_error_prefix(err, r, "%s[%zu]", key, i);
	}
	return 0;
}

static int inject_from_json(const char *key, const json_t *value, struct cordon_net_list *list, struct cordon_error *err)
{
	char name[CORDON_NET_NAME_SIZE];
	size_t i;
	json_t *item;

	if (!json_is_array(value))
		return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "%s.inject must be a list", key);
	json_array_foreach(value, i, item) {
		const char *texts[INJECT__MAX] = { NULL }, *field;
		struct cordon_net_inject inject;
		json_t *text;
		int r;

		if (!json_is_object(item))
			return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "%s.inject[%zu] must be an object", key, i);
		json_object_foreach(item, field, text) {
			size_t k = inject_key(field);

			if (k == INJECT__MAX || !json_is_string(text) ||
			    strlen(json_string_value(text)) != json_string_length(text))
				return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "%s.inject[%zu]: %s '%s'", key, i,
						   k == INJECT__MAX ? "unknown key" : "no text in", field);
			texts[k] = json_string_value(text);
		}
		r = make_inject(texts, name, &inject, err);
		if (r == 0)
			r = cordon_net_list_inject(list, &inject, err);
		if (r < 0)
			return cordon_error_prefix(err, r, "%s.inject[%zu]", key, i);
	}
	return 0;
}

int cordon_net_list_from_json(const char *key, json_t *value, const struct cordon_net_list *profiles,
			      struct cordon_net_list *ret_list, struct cordon_error *err)
{
	const char *word = json_string_value(value), *name;
	struct cordon_net_list list = { .listed = true };
	json_t *item;
	int r = 0;

	if (word && is_word(word)) {
		list.listed = !cordon_streq(word, CORDON_NET_WORD_HOST);
		r = cordon_streq(word, CORDON_NET_WORD_PROFILE) ? add_profiles(&list, profiles, err) : 0;
	} else if (json_is_array(value)) {
		r = allow_from_json(key, value, profiles, &list, err);
	} else if (json_is_object(value)) {
		json_object_foreach(value, name, item) {
			if (cordon_streq(name, "allow"))
				r = allow_from_json(key, item, profiles, &list, err);
			else if (cordon_streq(name, "inject"))
				r = inject_from_json(key, item, &list, err);
			else
				r = cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "%s: unknown key '%.80s'", key, name);
			if (r < 0)
				break;
		}
	} else {
		r = cordon_fail(
			err, -EINVAL, CORDON_KIND_USAGE,
			"%s must be \"host\", \"none\", \"profile\", a list of hosts, or an object with allow and inject",
			key);
	}
	if (r < 0)
		cordon_net_list_done(&list);
	else
		*ret_list = list;
	return r;
}

int cordon_net_json_valid(const char *key, json_t *value, struct cordon_error *err)
{
	const struct cordon_net_list nothing = { .listed = true };
	struct cordon_net_list list = { 0 };
	int r = cordon_net_list_from_json(key, value, &nothing, &list, err);

	cordon_net_list_done(&list);
	return r;
}
