/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adds and removes agents by inserting and deleting bytes. The document gives the places of all values; the result is
 * parsed again, and every other agent must be what it was.
 */
#include <fcntl.h>
#include <jansson.h>
#include <strings.h>

#include "agent/edit.h"
#include "base/io.h"
#include "base/path.h"
#include "config/edit_file.h"
#include "config/edit_yaml.h"

#define EMPTY_FILE "{\n  \"agents\": []\n}\n"
#define INDENT_MAX 256

/* ---- the new agent ---- */

/* Splits at commas outside of braces. */
static json_t *split_patterns(const char *list)
{
	json_t *patterns = json_array();

	for (const char *at = list; at && *at;) {
		const char *end = at;
		unsigned int depth = 0;

		for (; *end && (*end != ',' || depth); end++) {
			if (*end == '\\' && end[1])
				end++;
			else if (*end == '{')
				depth++;
			else if (*end == '}' && depth)
				depth--;
		}
		while (*at == ' ')
			at++;
		for (size_t n = end > at ? (size_t)(end - at) : 0; n; n--) {
			if (at[n - 1] == ' ')
				continue;
			json_array_append_new(patterns, json_stringn(at, n));
			break;
		}
		at = *end ? end + 1 : end;
	}
	return patterns;
}

static json_t *draft_json(const struct cordon_agent_draft *draft)
{
	json_t *agent = json_object(), *scope = json_object();

	json_object_set_new(agent, "name", json_string(draft->name));
	json_object_set_new(agent, "role", json_string(draft->role));
	if (draft->description)
		json_object_set_new(agent, "description", json_string(draft->description));
	if (draft->read) {
		json_object_set_new(scope, "read", split_patterns(draft->read));
		json_object_set_new(scope, "write", split_patterns(draft->patterns));
	} else {
		json_object_set_new(scope, "patterns", split_patterns(draft->patterns));
		json_object_set_new(scope, "readOnly", json_boolean(draft->read_only));
	}
	json_object_set_new(agent, "scope", scope);
	if (draft->model)
		json_object_set_new(agent, "model", json_string(draft->model));
	return agent;
}

/* ---- places ---- */

struct edit {
	const struct cordon_document *doc;
	const struct cordon_node *list;
	struct cordon_buf *out;
};

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* The blanks at the start of the line of `at`; *ret_own says whether nothing else stands before `at`. */
static size_t indent_of(const struct cordon_document *doc, size_t at, const char **ret_indent, bool *ret_own)
{
	size_t start = at, n = 0;

	while (start > 0 && doc->source[start - 1] != '\n')
		start--;
	while (start + n < at && is_blank(doc->source[start + n]))
		n++;
	*ret_indent = doc->source + start;
	*ret_own = start + n == at;
	return n;
}

static int copy(const struct edit *edit, size_t from, size_t to)
{
	return cordon_buf_add(edit->out, edit->doc->source + from, to - from);
}

static const struct cordon_node *last_of(const struct cordon_node *list)
{
	const struct cordon_node *node = list->first;

	while (node && node->next)
		node = node->next;
	return node;
}

/* ---- adding ---- */

/* Writes the agent over several lines; `indent` stands before each line but the first. */
static int put_lines(struct cordon_buf *out, const json_t *agent, const char *indent, size_t n_indent, bool tabs)
{
	autofree char *text = json_dumps(agent, JSON_INDENT(1));
	bool start = false;
	int r = text ? 0 : -ENOMEM;

	for (const char *p = text; r == 0 && p && *p; p++) {
		if (start && *p == ' ') {
			r = cordon_buf_adds(out, tabs ? "\t" : "  ");
			continue;
		}
		start = *p == '\n';
		r = cordon_buf_addc(out, *p);
		if (r == 0 && start)
			r = cordon_buf_add(out, indent, n_indent);
	}
	return r;
}

static int put_compact(struct cordon_buf *out, const json_t *agent)
{
	autofree char *text = json_dumps(agent, 0);

	return text ? cordon_buf_adds(out, text) : -ENOMEM;
}

/* Into [ ... ], in the style of the last agent. */
static int add_to_flow(const struct edit *edit, const json_t *agent)
{
	const struct cordon_node *last = last_of(edit->list);
	const char *indent;
	size_t n, end = last ? last->end : edit->list->end;
	bool own, lines;
	int r;

	n = indent_of(edit->doc, last ? last->start : edit->list->start, &indent, &own);
	n = n < INDENT_MAX ? n : INDENT_MAX;
	lines = last ? own : edit->doc->format == CORDON_FORMAT_JSON;
	if (!last) {
		r = copy(edit, 0, edit->list->start);
		if (r == 0)
			r = cordon_buf_adds(edit->out, lines ? "[\n" : "[");
		if (r == 0 && lines && ((r = cordon_buf_add(edit->out, indent, n)) == 0))
			r = cordon_buf_adds(edit->out, "  ");
	} else {
		r = copy(edit, 0, end);
		if (r == 0)
			r = cordon_buf_adds(edit->out, lines ? ",\n" : ", ");
		if (r == 0 && lines)
			r = cordon_buf_add(edit->out, indent, n);
	}
	if (r == 0 && lines) {
		char deeper[INDENT_MAX + 3];

		memcpy(deeper, indent, n);
		deeper[n] = deeper[n + 1] = ' ';
		r = put_lines(edit->out, agent, deeper, last ? n : n + 2, n && *indent == '\t');
	} else if (r == 0) {
		r = put_compact(edit->out, agent);
	}
	if (r == 0 && !last) {
		if (lines && (r = cordon_buf_adds(edit->out, "\n")) == 0)
			r = cordon_buf_add(edit->out, indent, n);
		if (r == 0)
			r = cordon_buf_adds(edit->out, "]");
	}
	return r < 0 ? r : copy(edit, end, edit->doc->len);
}

/* One item of a YAML block list. Text is in double quotes, which YAML and JSON read alike. */
static int put_item(struct cordon_buf *out, const json_t *agent, const char *indent, size_t n)
{
	const char *key, *lead = "- ";
	const json_t *value;
	json_t *members = json_deep_copy(agent);
	int r = members ? 0 : -ENOMEM;

	json_object_foreach(members, key, value) {
		autofree char *text = json_dumps(value, JSON_ENCODE_ANY);

		if (r == 0)
			r = text ? cordon_buf_add(out, indent, n) : -ENOMEM;
		if (r == 0)
			r = cordon_buf_addf(out, "%s%s: %s\n", lead, key, text);
		lead = "  ";
	}
	json_decref(members);
	return r;
}

static int add_to_block(const struct edit *edit, const json_t *agent)
{
	const char *indent;
	bool own;
	size_t n = indent_of(edit->doc, edit->list->start, &indent, &own);
	size_t at = cordon_document_next_line(edit->doc, cordon_node_content_end(edit->doc, edit->list));
	int r = copy(edit, 0, at);

	if (r == 0 && at && edit->doc->source[at - 1] != '\n')
		r = cordon_buf_addc(edit->out, '\n');
	if (r == 0)
		r = put_item(edit->out, agent, indent, n);
	return r < 0 ? r : copy(edit, at, edit->doc->len);
}

/* ---- removing ---- */

static int remove_from_flow(const struct edit *edit, const struct cordon_node *item)
{
	const struct cordon_node *before = NULL;
	size_t from = edit->list->start, to = edit->list->end;
	int r;

	for (const struct cordon_node *node = edit->list->first; node != item; node = node->next)
		before = node;
	if (item->next) {
		from = item->start;
		to = item->next->start;
	} else if (before) {
		from = before->end;
		to = item->end;
	}
	r = copy(edit, 0, from);
	if (r == 0 && edit->list->n == 1)
		r = cordon_buf_adds(edit->out, "[]");
	return r < 0 ? r : copy(edit, to, edit->doc->len);
}

/* Removes the lines of the item. Comments before and behind it stay. */
static int remove_from_block(const struct edit *edit, const struct cordon_node *item)
{
	size_t from = item->start, to = cordon_document_next_line(edit->doc, cordon_node_content_end(edit->doc, item)),
	       colon;
	int r;

	while (from > 0 && edit->doc->source[from - 1] != '\n')
		from--;
	if (edit->list->n > 1) {
		r = copy(edit, 0, from);
	} else {
		colon = edit->list->key->end;
		while (edit->doc->source[colon] != ':')
			colon++;
		r = copy(edit, 0, colon + 1);
		if (r == 0)
			r = cordon_buf_adds(edit->out, " []");
		if (r == 0)
			r = copy(edit, colon + 1, from);
	}
	return r < 0 ? r : copy(edit, to, edit->doc->len);
}

/* ---- the whole edit ---- */

/* Whether the new text holds what the old one held, except for the agent that was added at the end or removed. */
static bool same_otherwise(const struct cordon_agents *old, const struct cordon_agents *new, size_t removed)
{
	for (size_t i = 0, k = 0; i < old->n; i++) {
		json_auto_t *before = NULL;
		json_auto_t *after = NULL;

		if (i == removed)
			continue;
		if (k >= new->n)
			return false;
		before = cordon_node_json(old->items[i].node);
		after = cordon_node_json(new->items[k++].node);
		if (!json_equal(before, after))
			return false;
	}
	return true;
}

static int fail(struct cordon_errors *errors, int code, const char *file, const char *what)
{
	struct cordon_error err = { 0 };

	if (code == -ENOMEM || code == -E2BIG)
		cordon_fail_errno(&err, code, "cannot change %s", file);
	else
		cordon_fail(&err, code, CORDON_KIND_CONFIG, "cannot change %s: %s", file, what);
	return cordon_errors_add(errors, &err, NULL, 0, 0);
}

static int add(const struct edit *edit, const struct cordon_agent_draft *draft)
{
	bool flow = edit->doc->source[edit->list->start] == '[';
	json_auto_t *agent = draft_json(draft);

	return !agent ? -ENOMEM : flow ? add_to_flow(edit, agent) : add_to_block(edit, agent);
}

int cordon_agents_edit(const char *file, cordon_format format, const char *text, size_t len,
		       const struct cordon_agent_draft *draft, const char *name, struct cordon_buf *ret_text,
		       struct cordon_errors *errors)
{
	autoagents struct cordon_agents *old = NULL;
	autoagents struct cordon_agents *new = NULL;
	struct cordon_errors faults CORDON_CLEANUP(cordon_errors_done) = { 0 };
	const struct cordon_agent *agent = NULL;
	struct cordon_error err = { 0 };
	struct edit edit = { .out = ret_text };
	size_t removed = SIZE_MAX;
	int r = cordon_agents_parse(file, format, text, len, &old, errors);

	if (r < 0)
		return r;
	edit.doc = old->doc;
	edit.list = cordon_node_get(old->doc->root, "agents");
	r = cordon_agents_get(old, draft ? draft->name : name, &agent, &err);
	if (draft && r == 0) {
		cordon_fail(&err, -EEXIST, CORDON_KIND_CONFLICT, "there is an agent %s already", agent->name);
		return cordon_errors_add(errors, &err, NULL, 0, 0);
	}
	if (!draft && r < 0)
		return cordon_errors_add(errors, &err, NULL, 0, 0);
	if (draft) {
		r = add(&edit, draft);
	} else {
		removed = (size_t)(agent - old->items);
		r = old->doc->source[edit.list->start] == '[' ? remove_from_flow(&edit, agent->node)
							      : remove_from_block(&edit, agent->node);
	}
	if (r < 0)
		return fail(errors, r, file, "");
	r = cordon_agents_parse(file, format, ret_text->data ? ret_text->data : "", ret_text->len, &new, &faults);
	if (r < 0)
		return fail(errors, -EINVAL, file, faults.n ? faults.items[0].message : "the result would be wrong");
	if (!same_otherwise(old, new, removed) || new->n != old->n + (draft ? 1 : 0) - (draft ? 0 : 1))
		return fail(errors, -EINVAL, file, "the result would change other agents; edit it by hand");
	return 0;
}

struct change {
	cordon_format format;
	const struct cordon_agent_draft *draft;
	const char *name;
};

static int change_text(void *data, const char *name, const char *text, size_t len, struct cordon_buf *ret_text,
		       bool *ret_changed, struct cordon_errors *errors)
{
	const struct change *change = data;

	*ret_changed = true;
	return cordon_agents_edit(name, change->format, text, len, change->draft, change->name, ret_text, errors);
}

/* A new file, for the first agent. */
static int make_file(const struct cordon_root *root, const struct change *change, struct cordon_errors *errors)
{
	autobuf struct cordon_buf text = CORDON_BUF(CORDON_CONFIG_SIZE_MAX);
	struct cordon_error err = { 0 };
	int r = cordon_agents_edit(CORDON_AGENTS_JSON, CORDON_FORMAT_JSON, EMPTY_FILE, strlen(EMPTY_FILE),
				   change->draft, NULL, &text, errors);

	if (r < 0)
		return r;
	r = cordon_write_file(root->fd, CORDON_AGENTS_JSON, 0644, text.data, text.len, &err);
	return r < 0 ? cordon_errors_add(errors, &err, NULL, 0, 0) : 0;
}

static int change_file(const struct cordon_root *root, const char *config, struct change *change,
		       char ret_path[static CORDON_PATH_MAX], struct cordon_errors *errors)
{
	struct cordon_error err = { 0 };
	int r = cordon_agents_find(root, config, ret_path, &err);

	if (r == 0)
		r = cordon_agents_format(ret_path, &change->format, &err);
	if (r < 0)
		return cordon_errors_add(errors, &err, NULL, 0, 0);
	if (change->draft && !config && faccessat(root->fd, CORDON_AGENTS_JSON, F_OK, AT_SYMLINK_NOFOLLOW) < 0 &&
	    change->format == CORDON_FORMAT_JSON)
		return make_file(root, change, errors);
	return cordon_edit_file(ret_path, CORDON_CONFIG_SIZE_MAX, change_text, change, errors);
}

int cordon_agents_add(const struct cordon_root *root, const char *config, const struct cordon_agent_draft *draft,
		      char ret_path[static CORDON_PATH_MAX], struct cordon_errors *errors)
{
	struct change change = { .draft = draft };

	return change_file(root, config, &change, ret_path, errors);
}

int cordon_agents_remove(const struct cordon_root *root, const char *config, const char *name,
			 char ret_path[static CORDON_PATH_MAX], struct cordon_errors *errors)
{
	struct change change = { .name = name };

	return change_file(root, config, &change, ret_path, errors);
}
