/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a file of agents: one table row per key, and every error at its place. */
#include "agent/internal.h"
#include "base/text.h"
#include "config/suggest.h"

#define TEXT_MAX 65536
#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

struct reading {
	struct cordon_reader in;
	struct cordon_agent *agent; /* the one that is being read */
};

struct key;

/* Readers return 0 also for a bad value, which they report; -ENOMEM stops the reading. */
typedef int read_fn(struct reading *reading, const struct cordon_node *node, const struct key *key);

struct key {
	const char *name;
	read_fn *read;
	size_t slot;	     /* of the value in struct cordon_agent */
	cordon_recipe_id id; /* of a value that the table of a run has */
};

#define SLOT(member) offsetof(struct cordon_agent, member)

static void *slot_of(const struct reading *reading, const struct key *key)
{
	return (char *)reading->agent + key->slot;
}

/* ---- words ---- */

int cordon_agent_name_check(const char *name, struct cordon_error *err)
{
	size_t n = strlen(name);

	if (n >= 1 && n <= CORDON_AGENT_NAME_MAX && strspn(name, LETTERS " _.-") == n && name[0] != ' ' &&
	    name[n - 1] != ' ')
		return 0;
	cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "not a name for an agent: '%.80s'", name);
	cordon_error_hint(err,
			  "1 to %d letters, digits, blanks, dots, dashes and underscores, without a blank at either end",
			  CORDON_AGENT_NAME_MAX);
	return -EINVAL;
}

int cordon_agent_role_check(const char *role, struct cordon_error *err)
{
	size_t n = strlen(role);

	if (n >= 1 && n <= CORDON_AGENT_NAME_MAX && strspn(role, LETTERS "_.-") == n)
		return 0;
	cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "not a role: '%.80s'", role);
	cordon_error_hint(err, "write one word; 'cordon role list' shows the known ones");
	return -EINVAL;
}

static int read_name(struct reading *reading, const struct cordon_node *node, const struct key *key)
{
	struct cordon_error err = { 0 };

	if (!cordon_reader_text(&reading->in, node, key->name))
		return 0;
	if (cordon_agent_name_check(node->text, &err) < 0)
		return cordon_reader_refuse(&reading->in, node, &err, CORDON_READER_WHOLE);
	reading->agent->name = node->text;
	return 0;
}

static int read_role(struct reading *reading, const struct cordon_node *node, const struct key *key)
{
	struct cordon_error err = { 0 };

	if (!cordon_reader_text(&reading->in, node, key->name))
		return 0;
	if (cordon_agent_role_check(node->text, &err) < 0)
		return cordon_reader_refuse(&reading->in, node, &err, CORDON_READER_WHOLE);
	reading->agent->role = node->text;
	return 0;
}

static int read_text(struct reading *reading, const struct cordon_node *node, const struct key *key)
{
	if (!cordon_reader_text(&reading->in, node, key->name))
		return 0;
	if (node->len > TEXT_MAX)
		return cordon_node_fail(reading->in.doc, node, reading->in.errors, NULL, "%s is longer than %d bytes",
					key->name, TEXT_MAX),
		       0;
	*(const char **)slot_of(reading, key) = node->text;
	return 0;
}

/* Reads a name that stands for something else: a profile, or the agent that this one extends. */
static int read_reference(struct reading *reading, const struct cordon_node *node, const struct key *key)
{
	struct cordon_setting *setting = slot_of(reading, key);
	struct cordon_error err = { 0 };

	if (!cordon_reader_text(&reading->in, node, key->name))
		return 0;
	if (cordon_agent_name_check(node->text, &err) < 0) {
		cordon_error_prefix(&err, err.code, "%s", key->name);
		return cordon_reader_refuse(&reading->in, node, &err, CORDON_READER_WHOLE);
	}
	*setting = (struct cordon_setting){ .text = node->text, .line = node->line, .column = node->column };
	return cordon_reader_where(&reading->in, node, &setting->where);
}

/* ---- scopes ---- */

/* Reads a list of patterns. An empty one is allowed where another list may say something. */
static int read_patterns(struct reading *reading, const struct cordon_node *node, const char *what, bool may_be_empty,
			 struct cordon_setting_list *ret_list)
{
	struct cordon_document *doc = reading->in.doc;

	if (!cordon_reader_collection(&reading->in, node, CORDON_NODE_SEQUENCE, what))
		return 0;
	if (!node->n && !may_be_empty)
		cordon_node_fail(doc, node, reading->in.errors, "write at least one, such as \"src/**\"",
				 "%s must not be empty", what);
	ret_list->items = cordon_document_alloc(doc, (node->n + 1) * sizeof(*ret_list->items));
	ret_list->n = 0;
	if (!ret_list->items)
		return -ENOMEM;
	for (const struct cordon_node *item = node->first; item; item = item->next) {
		struct cordon_setting *setting = &ret_list->items[ret_list->n];
		int r = cordon_reader_pattern(&reading->in, item, what);

		if (r < 0)
			return r;
		if (!r)
			continue;
		*setting = (struct cordon_setting){ .text = item->text, .line = item->line, .column = item->column };
		if (cordon_reader_where(&reading->in, item, &setting->where) < 0)
			return -ENOMEM;
		ret_list->n++;
	}
	return 0;
}

static const char *const scope_keys[] = { "patterns", "readOnly", "read", "write" };

static void refuse_unknown(const struct cordon_reader *in, const struct cordon_node *node, const char *const *known,
			   size_t n)
{
	autobuf struct cordon_buf list = CORDON_BUF(256);
	size_t best = CORDON_SUGGEST_FAR;
	struct cordon_error err = { 0 };
	const char *meant = NULL;

	if (cordon_errors_drop(in->errors))
		return;
	cordon_fail(&err, -EINVAL, CORDON_KIND_CONFIG, "unknown key '%s'", node->key->text);
	for (size_t i = 0; i < n; i++) {
		if (cordon_suggest_closer(node->key->text, known[i], &best))
			meant = known[i];
		cordon_buf_addf(&list, "%s%s", i ? ", " : "", known[i]);
	}
	if (meant)
		cordon_error_hint(&err, "did you mean '%s'?", meant);
	else
		cordon_error_hint(&err, "known are %s", list.data ? list.data : "");
	cordon_reader_refuse(in, node->key, &err, CORDON_READER_WHOLE);
}

/* Reads {"patterns", "readOnly"} or {"read", "write"}. */
static int read_scope_mapping(struct reading *reading, const struct cordon_node *node)
{
	const struct cordon_node *patterns = cordon_node_get(node, "patterns"), *read = cordon_node_get(node, "read"),
				 *write = cordon_node_get(node, "write"), *only = cordon_node_get(node, "readOnly");
	struct cordon_agent *agent = reading->agent;
	bool read_only = false;
	int r = 0;

	for (const struct cordon_node *item = node->first; item; item = item->next) {
		bool known = false;

		for (size_t i = 0; i < CORDON_ARRAY_SIZE(scope_keys); i++)
			known |= cordon_streq(item->key->text, scope_keys[i]);
		if (!known)
			refuse_unknown(&reading->in, item, scope_keys, CORDON_ARRAY_SIZE(scope_keys));
	}
	if ((patterns || only) && (read || write)) {
		cordon_node_fail(reading->in.doc, (read ? read : write)->key, reading->in.errors,
				 "write either patterns and readOnly, or read and write",
				 "a scope has one of two forms, not both");
		return 0;
	}
	if (read || write) {
		/* Without any pattern a policy would grant everything. */
		if (!(read ? read->n : 0) && !(write ? write->n : 0) && (!read || read->type == CORDON_NODE_SEQUENCE) &&
		    (!write || write->type == CORDON_NODE_SEQUENCE))
			cordon_node_fail(reading->in.doc, node, reading->in.errors,
					 "write at least one, such as \"src/**\"", "the scope has no patterns");
		if (read)
			r = read_patterns(reading, read, "read", true, &agent->read);
		return r == 0 && write ? read_patterns(reading, write, "write", true, &agent->write) : r;
	}
	if (only)
		cordon_reader_bool(&reading->in, only, "readOnly", &read_only);
	if (!patterns) {
		cordon_node_fail(reading->in.doc, node, reading->in.errors, "add \"patterns\": [\"src/**\"]",
				 "the scope has no patterns");
		return 0;
	}
	return read_patterns(reading, patterns, "patterns", false, read_only ? &agent->read : &agent->write);
}

static int read_scope(struct reading *reading, const struct cordon_node *node, const struct key *key)
{
	int r = cordon_reader_where(&reading->in, node, &reading->agent->scope_where);

	if (r < 0)
		return r;
	if (node->type == CORDON_NODE_SEQUENCE)
		return read_patterns(reading, node, key->name, false, &reading->agent->write);
	if (node->type == CORDON_NODE_MAPPING)
		return read_scope_mapping(reading, node);
	if (node->type != CORDON_NODE_BAD)
		cordon_node_fail(reading->in.doc, node, reading->in.errors,
				 "write [\"src/**\"], or {\"read\": [], \"write\": []}",
				 "scope must be a list or a mapping, not %s",
				 cordon_node_describe(reading->in.doc, node));
	return 0;
}

/* ---- environment and command ---- */

/* What cordon itself sets and nobody may replace. */
static const char *const own_names[] = { "AGENT_NAME",	     "AGENT_ROLE", "AGENT_SCOPE_BASE",
					 "AGENT_SCOPE_TEMP", "TEMP_DIR",   "TMPDIR" };

static int check_variable(const char *name, size_t len, struct cordon_error *err)
{
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(own_names); i++)
		if (cordon_streq(name, own_names[i]))
			return cordon_fail(err, -EINVAL, CORDON_KIND_CONFIG, "%s is set by cordon", name);
	return cordon_env_name_check(name, len, err);
}

/* Reads a value: text, or in JSON also a number, true or false, whose digits or letters it then is. */
static bool take_value(struct reading *reading, const struct cordon_node *node, const char *what)
{
	bool plain = node->type == CORDON_NODE_SCALAR && node->style == CORDON_STYLE_PLAIN;

	if (plain && reading->in.doc->format == CORDON_FORMAT_JSON && !cordon_streq(node->text, "null"))
		return true;
	return cordon_reader_text(&reading->in, node, what);
}

static int read_env(struct reading *reading, const struct cordon_node *node, const struct key *key)
{
	struct cordon_agent *agent = reading->agent;

	if (!cordon_reader_collection(&reading->in, node, CORDON_NODE_MAPPING, key->name))
		return 0;
	agent->env = cordon_document_alloc(reading->in.doc, (node->n + 1) * sizeof(*agent->env));
	agent->n_env = 0;
	if (!agent->env)
		return -ENOMEM;
	for (const struct cordon_node *item = node->first; item; item = item->next) {
		struct cordon_env_setting *env = &agent->env[agent->n_env];
		struct cordon_error err = { 0 };

		if (check_variable(item->key->text, item->key->len, &err) < 0)
			cordon_reader_refuse(&reading->in, item->key, &err, CORDON_READER_WHOLE);
		if (!take_value(reading, item, item->key->text))
			continue;
		*env = (struct cordon_env_setting){ .name = item->key->text, .value = item->text };
		if (cordon_reader_where(&reading->in, item->key, &env->where) < 0)
			return -ENOMEM;
		agent->n_env++;
	}
	return 0;
}

/* Reads a list of texts, each of which `check` accepts; it may be NULL. */
static int read_texts(struct reading *reading, const struct cordon_node *node, const char *what,
		      int (*check)(const char *text, size_t len, struct cordon_error *err),
		      struct cordon_setting_list *ret_list)
{
	if (!cordon_reader_collection(&reading->in, node, CORDON_NODE_SEQUENCE, what))
		return 0;
	ret_list->items = cordon_document_alloc(reading->in.doc, (node->n + 1) * sizeof(*ret_list->items));
	ret_list->n = 0;
	if (!ret_list->items)
		return -ENOMEM;
	for (const struct cordon_node *item = node->first; item; item = item->next) {
		struct cordon_setting *setting = &ret_list->items[ret_list->n];
		struct cordon_error err = { 0 };

		if (!cordon_reader_text(&reading->in, item, what))
			continue;
		if (check && check(item->text, item->len, &err) < 0) {
			cordon_reader_refuse(&reading->in, item, &err, CORDON_READER_WHOLE);
			continue;
		}
		*setting = (struct cordon_setting){ .text = item->text, .line = item->line, .column = item->column };
		if (cordon_reader_where(&reading->in, item, &setting->where) < 0)
			return -ENOMEM;
		ret_list->n++;
	}
	return 0;
}

static int read_env_pass(struct reading *reading, const struct cordon_node *node, const struct key *key)
{
	int r = cordon_reader_where(&reading->in, node, &reading->agent->env_pass_where);

	return r < 0 ? r : read_texts(reading, node, key->name, check_variable, &reading->agent->env_pass);
}

/* A text is a command for the shell inside, a list is a program and its arguments. */
static int read_command(struct reading *reading, const struct cordon_node *node, const struct key *key)
{
	static char shell[] = "sh", option[] = "-c";
	struct cordon_document *doc = reading->in.doc;
	bool list = node->type == CORDON_NODE_SEQUENCE;
	size_t n = 0;
	char **argv;

	if (node->type == CORDON_NODE_MAPPING)
		return cordon_node_fail(doc, node, reading->in.errors, "write [\"npm\", \"test\"], or \"npm test\"",
					"command must be a list or text, not a mapping"),
		       0;
	if (!list && !cordon_reader_text(&reading->in, node, key->name))
		return 0;
	if ((list && !node->n) || (!list && !node->len) || node->n > CORDON_AGENT_COMMAND_MAX)
		return cordon_node_fail(doc, node, reading->in.errors, NULL, "command must have 1 to %d words",
					CORDON_AGENT_COMMAND_MAX),
		       0;
	argv = cordon_document_alloc(doc, ((size_t)node->n + 4) * sizeof(*argv));
	if (!argv)
		return -ENOMEM;
	if (!list) {
		argv[n++] = shell;
		argv[n++] = option;
	}
	for (const struct cordon_node *item = list ? node->first : node; item; item = list ? item->next : NULL) {
		char *copy;

		if (!cordon_reader_text(&reading->in, item, key->name))
			return 0;
		copy = cordon_document_alloc(doc, (size_t)item->len + 1);
		if (!copy)
			return -ENOMEM;
		memcpy(copy, item->text, (size_t)item->len + 1);
		argv[n++] = copy;
	}
	argv[n] = NULL;
	if (!argv[0] || !*argv[0])
		return cordon_node_fail(doc, node, reading->in.errors, NULL, "the name of the program is empty"), 0;
	reading->agent->command = argv;
	return 0;
}

static int read_net(struct reading *reading, const struct cordon_node *node, const struct key *key)
{
	(void)key;
	return cordon_net_read(&reading->in, node, true, &reading->agent->net);
}

/* ---- limits ---- */

static int parse_timeout(const char *text, uint64_t *ret_ms, struct cordon_error *err)
{
	uint64_t ms;

	if (cordon_parse_duration(text, 1, &ms) < 0 || !ms || ms > CORDON_TIMEOUT_MAX_MS)
		return cordon_fail(err, -EINVAL, CORDON_KIND_CONFIG,
				   "not a time: '%s'; write milliseconds, or a number with ms, s, m or h", text);
	*ret_ms = ms;
	return 0;
}

static int parse_git(const char *text, uint64_t *ret_value, struct cordon_error *err)
{
	int r = cordon_recipe_rows[CORDON_RECIPE_GIT].parse(text, ret_value, err);

	return r < 0 ? cordon_error_prefix(err, r, "git") : 0;
}

/* A number, a word or a flag. A time without a unit is one in milliseconds here. */
static int read_value(struct reading *reading, const struct cordon_node *node, const struct key *key)
{
	cordon_recipe_parse_fn *parse = key->id == CORDON_RECIPE_TIMEOUT ? parse_timeout
					: key->id == CORDON_RECIPE_GIT	 ? parse_git
									 : NULL;

	return cordon_recipe_read(&reading->in, node, key->name, key->id, parse, &reading->agent->values);
}

static int read_limits(struct reading *reading, const struct cordon_node *node, const struct key *key);

/* clang-format off */
static const struct key own_keys[] = {
	{ .name = "name", .read = read_name },
	{ .name = "role", .read = read_role },
	{ .name = "description", .read = read_text, .slot = SLOT(description) },
	{ .name = "scope", .read = read_scope },
	{ .name = "model", .read = read_text, .slot = SLOT(model) },
	{ .name = "instructions", .read = read_text, .slot = SLOT(instructions) },
	{ .name = "command", .read = read_command },
	{ .name = "env", .read = read_env },
	{ .name = "env_pass", .read = read_env_pass },
	{ .name = "profile", .read = read_reference, .slot = SLOT(profile) },
	{ .name = "extends", .read = read_reference, .slot = SLOT(extends) },
	{ .name = "limits", .read = read_limits },
	{ .name = "net", .read = read_net },
};
/* clang-format on */

#define KEYS_MAX (CORDON_ARRAY_SIZE(own_keys) + CORDON_RECIPE__MAX)

/* Adds the keys of the table of a run, those below `limits` or the others. */
static size_t add_rows(bool limits, struct key *keys, size_t n)
{
	for (cordon_recipe_id id = 0; id < CORDON_RECIPE__MAX; id++) {
		const char *name = cordon_recipe_rows[id].agent, *below = name ? cordon_recipe_limit(name) : NULL;

		if (name && (below != NULL) == limits)
			keys[n++] = (struct key){ .name = below ? below : name, .read = read_value, .id = id };
	}
	return n;
}

static int read_keys(struct reading *reading, const struct cordon_node *mapping, const struct key *keys, size_t n)
{
	const char *names[KEYS_MAX];
	int r = 0;

	for (size_t i = 0; i < n; i++)
		names[i] = keys[i].name;
	for (const struct cordon_node *node = mapping->first; r == 0 && node; node = node->next) {
		const struct key *key = NULL;

		for (size_t i = 0; i < n && !key; i++)
			if (cordon_streq(keys[i].name, node->key->text))
				key = &keys[i];
		if (key)
			r = key->read(reading, node, key);
		else
			refuse_unknown(&reading->in, node, names, n);
	}
	return r;
}

static int read_limits(struct reading *reading, const struct cordon_node *node, const struct key *key)
{
	struct key keys[KEYS_MAX];

	if (!cordon_reader_collection(&reading->in, node, CORDON_NODE_MAPPING, key->name))
		return 0;
	return read_keys(reading, node, keys, add_rows(true, keys, 0));
}

/* ---- the file ---- */

static int read_agent(struct reading *reading, const struct cordon_node *node)
{
	struct cordon_agent *agent = reading->agent;
	struct key keys[KEYS_MAX];
	int r;

	memcpy(keys, own_keys, sizeof(own_keys));
	*agent = (struct cordon_agent){ .role = "unknown", .node = node };
	if (!cordon_reader_collection(&reading->in, node, CORDON_NODE_MAPPING, "an agent"))
		return 0;
	r = read_keys(reading, node, keys, add_rows(false, keys, CORDON_ARRAY_SIZE(own_keys)));
	if (r < 0)
		return r;
	if (!cordon_node_get(node, "name"))
		cordon_node_fail(reading->in.doc, node, reading->in.errors, "add \"name\": \"developer\"",
				 "an agent has no name");
	if (!cordon_node_get(node, "scope") && !cordon_node_get(node, "extends"))
		cordon_node_fail(reading->in.doc, node, reading->in.errors,
				 "add \"scope\": {\"patterns\": [\"src/**\"]}", "the agent %s has no scope",
				 agent->name ? agent->name : "");
	return 0;
}

static void check_names(const struct cordon_agents *agents, struct cordon_errors *errors)
{
	for (size_t i = 0; i < agents->n; i++) {
		const struct cordon_agent *agent = &agents->items[i];
		const struct cordon_node *name = cordon_node_get(agent->node, "name");

		for (size_t k = 0; agent->name && k < i; k++) {
			if (!agents->items[k].name || strcasecmp(agents->items[k].name, agent->name) != 0)
				continue;
			cordon_node_fail(agents->doc, name ? name : agent->node, errors,
					 "names must differ by more than case",
					 "there is an agent %s already, at line %u", agents->items[k].name,
					 agents->items[k].node->line);
			break;
		}
	}
}

int cordon_agents_read(struct cordon_agents *agents, struct cordon_errors *errors)
{
	static const char *const top_keys[] = { "agents" };
	struct reading reading = { .in = { .doc = agents->doc, .errors = errors } };
	const struct cordon_node *root = agents->doc->root, *list;
	int r = 0;

	if (!cordon_reader_collection(&reading.in, root, CORDON_NODE_MAPPING, "a file of agents"))
		return 0;
	for (const struct cordon_node *node = root->first; node; node = node->next)
		if (!cordon_streq(node->key->text, top_keys[0]))
			refuse_unknown(&reading.in, node, top_keys, 1);
	list = cordon_node_get(root, "agents");
	if (!list)
		cordon_node_fail(agents->doc, root, errors, "write {\"agents\": []}", "the file has no list 'agents'");
	if (!list || !cordon_reader_collection(&reading.in, list, CORDON_NODE_SEQUENCE, "agents"))
		return 0;
	if (list->n > CORDON_AGENTS_MAX)
		return cordon_node_fail(agents->doc, list, errors, NULL, "more than %d agents", CORDON_AGENTS_MAX), 0;
	agents->items = cordon_document_alloc(agents->doc, (list->n + 1) * sizeof(*agents->items));
	if (!agents->items)
		return -ENOMEM;
	for (const struct cordon_node *node = list->first; r == 0 && node; node = node->next) {
		reading.agent = &agents->items[agents->n++];
		r = read_agent(&reading, node);
	}
	if (r == 0)
		check_names(agents, errors);
	return r;
}
