/* SPDX-License-Identifier: Apache-2.0 */
/* Edits a YAML text by inserting and deleting bytes. */
#include "config/edit_yaml.h"

#define STEP 2

/* One change, so that the result can be compared with what it must be. */
struct change {
	enum { PUT, APPEND, REPLACE, DROP } kind;
	const struct cordon_node *target; /* PUT, DROP: the collection; NULL: there is no document yet */
	const struct cordon_node *child;  /* DROP */
	const char *key;		  /* PUT */
	const json_t *value;
};

/* ---- what the result must be ---- */

/* A value as cordon_node_json() would return it. */
/* NOLINTNEXTLINE(misc-no-recursion): CORDON_CONFIG_DEPTH_MAX bounds it. */
static json_t *as_texts(const json_t *value)
{
	struct cordon_buf text = CORDON_BUF(CORDON_CONFIG_SIZE_MAX);
	const char *key;
	json_t *item, *result;
	size_t i;

	if (json_is_string(value))
		return json_string(json_string_value(value));
	if (json_is_array(value)) {
		result = json_array();
		json_array_foreach(value, i, item) {
			json_array_append_new(result, as_texts(item));
		}
		return result;
	}
	if (json_is_object(value)) {
		result = json_object();
		json_object_foreach((json_t *)(uintptr_t)value, key, item) {
			json_object_set_new(result, key, as_texts(item));
		}
		return result;
	}
	result = cordon_yaml_write_flow(&text, value) == 0 ? json_string(text.data) : NULL;
	cordon_buf_done(&text);
	return result;
}

/* NOLINTNEXTLINE(misc-no-recursion): CORDON_CONFIG_DEPTH_MAX bounds it. */
static json_t *changed(const struct cordon_node *node, const struct change *change)
{
	bool here = node == change->target;
	json_t *value;

	if (here && change->kind == REPLACE)
		return as_texts(change->value);
	if (here && node->type == CORDON_NODE_SCALAR)
		value = change->kind == PUT ? json_object() : json_array();
	else if (node->type == CORDON_NODE_SCALAR || node->type == CORDON_NODE_BAD)
		return cordon_node_json(node);
	else
		value = node->type == CORDON_NODE_SEQUENCE ? json_array() : json_object();
	for (const struct cordon_node *child = node->first; child; child = child->next) {
		if (here && change->kind == DROP && child == change->child)
			continue;
		if (node->type == CORDON_NODE_SEQUENCE)
			json_array_append_new(value, changed(child, change));
		else
			json_object_set_new(value, child->key->text, changed(child, change));
	}
	if (here && change->kind == PUT)
		json_object_set_new(value, change->key, as_texts(change->value));
	if (here && change->kind == APPEND)
		json_array_append_new(value, as_texts(change->value));
	return value;
}

static json_t *expected(const struct cordon_yaml *yaml, const struct change *change)
{
	json_t *value;

	if (yaml->doc)
		return changed(yaml->doc->root, change);
	value = json_object();
	json_object_set_new(value, change->key, as_texts(change->value));
	return value;
}

/* ---- the state of an edit ---- */

bool cordon_yaml_is_empty(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (text[i] == '#')
			while (i < len && text[i] != '\n')
				i++;
		else if (!strchr(" \t\r\n", text[i]))
			return false;
	}
	return true;
}

static int parse(const struct cordon_yaml *yaml, const struct cordon_buf *text, struct cordon_document **ret_doc,
		 struct cordon_errors *errors)
{
	size_t before = errors->n + errors->dropped;
	int r;

	if (cordon_yaml_is_empty(text->data ? text->data : "", text->len))
		return 0;
	r = cordon_document_parse(yaml->name, CORDON_FORMAT_YAML_ALIASES, text->data, text->len,
				  CORDON_CONFIG_DEPTH_MAX, ret_doc, errors);
	return r < 0 ? r : errors->n + errors->dropped > before ? -EINVAL : 0;
}

int cordon_yaml_begin(struct cordon_yaml *yaml, const char *name, const char *text, size_t len,
		      struct cordon_errors *errors)
{
	struct cordon_error err = { 0 };

	*yaml = (struct cordon_yaml){ .name = name, .text = CORDON_BUF(CORDON_CONFIG_SIZE_MAX) };
	if (cordon_buf_add(&yaml->text, text, len) < 0) {
		cordon_fail_errno(&err, -ENOMEM, "%s", name);
		return cordon_errors_add(errors, &err, NULL, 0, 0);
	}
	return parse(yaml, &yaml->text, &yaml->doc, errors);
}

void cordon_yaml_done(struct cordon_yaml *yaml)
{
	cordon_buf_done(&yaml->text);
	yaml->doc = cordon_document_free(yaml->doc);
}

static int fail(const struct cordon_yaml *yaml, int code, struct cordon_errors *errors)
{
	struct cordon_error err = { 0 };

	if (code == -ENOMEM || code == -E2BIG)
		cordon_fail_errno(&err, code, "cannot change %s", yaml->name);
	else
		cordon_fail(&err, code, CORDON_KIND_CONFIG, "cannot change %s without changing other lines", yaml->name);
	cordon_error_hint(&err, code == -E2BIG ? "the file would become too large" : "edit it by hand");
	return cordon_errors_add(errors, &err, NULL, 0, 0);
}

/* A value that is not valid UTF-8 has become no JSON. */
static int refuse_value(const struct cordon_yaml *yaml, struct cordon_errors *errors)
{
	struct cordon_error err = { 0 };

	cordon_fail(&err, -EILSEQ, CORDON_KIND_USAGE, "%s can only hold valid UTF-8", yaml->name);
	return cordon_errors_add(errors, &err, NULL, 0, 0);
}

/* Takes the new text over, if it says what it must say. */
static int take(struct cordon_yaml *yaml, int r, struct cordon_buf *text, const struct change *change,
		struct cordon_errors *errors)
{
	struct cordon_errors faults CORDON_CLEANUP(cordon_errors_done) = { 0 };
	struct cordon_document *doc = NULL;
	json_auto_t *wanted = expected(yaml, change);
	json_auto_t *got = NULL;

	if (r == 0 && parse(yaml, text, &doc, &faults) < 0)
		r = -EINVAL;
	if (r == 0) {
		got = doc ? cordon_node_json(doc->root) : json_object();
		if (!json_equal(wanted, got))
			r = -EINVAL;
	}
	if (r < 0) {
		cordon_document_free(doc);
		cordon_buf_done(text);
		return fail(yaml, r, errors);
	}
	cordon_yaml_done(yaml);
	yaml->text = *text;
	yaml->doc = doc;
	return 0;
}

const struct cordon_node *cordon_yaml_get(const struct cordon_yaml *yaml, const char *const *keys, size_t n)
{
	const struct cordon_node *node = yaml->doc ? yaml->doc->root : NULL;

	for (size_t i = 0; node && i < n; i++)
		node = cordon_node_get(node, keys[i]);
	return node;
}

/* ---- places ---- */

static int copy(const struct cordon_yaml *yaml, struct cordon_buf *out, size_t from, size_t to)
{
	return to > from ? cordon_buf_add(out, yaml->text.data + from, to - from) : 0;
}

static bool is_flow(const struct cordon_yaml *yaml, const struct cordon_node *node)
{
	return node->type != CORDON_NODE_SCALAR && strchr("[{", yaml->text.data[node->start]);
}

static bool is_none(const struct cordon_node *node)
{
	return node->type == CORDON_NODE_SCALAR && node->style == CORDON_STYLE_PLAIN &&
	       (!node->len || cordon_streq(node->text, "~") || cordon_streq(node->text, "null"));
}

/* Whether an anchor or a tag stands before a value. It would go with the value. */
static bool is_marked(const struct cordon_yaml *yaml, const struct cordon_node *node)
{
	return node->end > node->start && strchr("&!", yaml->text.data[node->start]);
}

/* Whether nothing but blanks stands before a place in its line. */
static bool begins_line(const struct cordon_yaml *yaml, size_t at)
{
	size_t line = cordon_document_line(yaml->doc, at);

	return strspn(yaml->text.data + line, " ") >= at - line;
}

/* Whether the members of an empty collection can stand on lines of their own: it is the value of a key that does so. */
static bool can_open(const struct cordon_yaml *yaml, const struct cordon_node *node)
{
	return !node->key || begins_line(yaml, node->key->start);
}

static size_t indent_in(const struct cordon_node *node)
{
	return node->key ? node->key->column - 1 + STEP : 0;
}

static const struct cordon_node *last_of(const struct cordon_node *node)
{
	const struct cordon_node *last = node->first;

	while (last && last->next)
		last = last->next;
	return last;
}

/* The colon behind a key. */
static size_t colon_of(const struct cordon_yaml *yaml, const struct cordon_node *node)
{
	size_t at = node->key->end;

	while (at < yaml->text.len && yaml->text.data[at] != ':')
		at++;
	return at;
}

/* ---- adding ---- */

static int write_entry(struct cordon_buf *out, const struct change *change, size_t indent)
{
	return change->kind == PUT ? cordon_yaml_write_member(out, indent, change->key, change->value)
				   : cordon_yaml_write_item(out, indent, change->value);
}

static int write_flow_entry(struct cordon_buf *out, const struct change *change)
{
	int r = 0;

	if (change->kind == PUT) {
		json_auto_t *pair = json_object();

		/* "{key: value}" without its braces. */
		json_object_set(pair, change->key, (json_t *)(uintptr_t)change->value);
		struct cordon_buf text autobuf = CORDON_BUF(CORDON_CONFIG_SIZE_MAX);

		r = cordon_yaml_write_flow(&text, pair);
		return r < 0 ? r : cordon_buf_add(out, text.data + 1, text.len - 2);
	}
	return cordon_yaml_write_flow(out, change->value);
}

/* Adds lines at a place, which is the beginning of a line or the end of the text. */
static int insert_lines(const struct cordon_yaml *yaml, struct cordon_buf *out, size_t from, size_t at, size_t indent,
			const struct change *change)
{
	int r = copy(yaml, out, from, at);

	if (r == 0 && out->len && out->data[out->len - 1] != '\n')
		r = cordon_buf_addc(out, '\n');
	if (r == 0)
		r = write_entry(out, change, indent);
	return r < 0 ? r : copy(yaml, out, at, yaml->text.len);
}

/* Into a collection that is empty: `key: {}`, `key: []` or `key:`. */
static int fill(const struct cordon_yaml *yaml, struct cordon_buf *out, const struct change *change)
{
	const struct cordon_node *node = change->target;
	size_t start = node->start, end = node->end;
	int r;

	if (is_marked(yaml, node))
		return -EINVAL;
	if (is_none(node) && !node->len && node->key)
		start = end = colon_of(yaml, node) + 1;
	if (!can_open(yaml, node) || yaml->doc->format == CORDON_FORMAT_JSON) {
		r = copy(yaml, out, 0, start);
		r = r < 0 ? r : cordon_buf_adds(out, change->kind == PUT ? "{" : "[");
		r = r < 0 ? r : write_flow_entry(out, change);
		r = r < 0 ? r : cordon_buf_adds(out, change->kind == PUT ? "}" : "]");
		return r < 0 ? r : copy(yaml, out, end, yaml->text.len);
	}
	/* The blanks before the brackets go with them, unless a comment follows. */
	r = copy(yaml, out, 0, start);
	if (r == 0 && (end >= yaml->text.len || strchr("\r\n", yaml->text.data[end])))
		while (out->len && out->data[out->len - 1] == ' ')
			out->data[--out->len] = '\0';
	return r < 0 ? r
		     : insert_lines(yaml, out, end, cordon_document_next_line(yaml->doc, end), indent_in(node), change);
}

static int add(const struct cordon_yaml *yaml, struct cordon_buf *out, const struct change *change)
{
	const struct cordon_node *node = change->target, *last = node ? last_of(node) : NULL;
	size_t at;
	int r;

	if (!node)
		return insert_lines(yaml, out, 0, yaml->text.len, 0, change);
	if (!last)
		return fill(yaml, out, change);
	if (is_flow(yaml, node)) {
		at = cordon_node_content_end(yaml->doc, last);
		at = last->key && last->key->end > at ? last->key->end : at;
		r = copy(yaml, out, 0, at);
		r = r < 0 ? r : cordon_buf_adds(out, ", ");
		r = r < 0 ? r : write_flow_entry(out, change);
		return r < 0 ? r : copy(yaml, out, at, yaml->text.len);
	}
	at = cordon_document_next_line(yaml->doc, cordon_node_content_end(yaml->doc, node));
	return insert_lines(yaml, out, 0, at, node->column - 1, change);
}

int cordon_yaml_append(struct cordon_yaml *yaml, const struct cordon_node *list, json_t *value,
		       struct cordon_errors *errors)
{
	struct cordon_buf out = CORDON_BUF(CORDON_CONFIG_SIZE_MAX);
	struct change change = { .kind = APPEND, .target = list, .value = value };
	int r = value ? take(yaml, add(yaml, &out, &change), &out, &change, errors) : refuse_value(yaml, errors);

	json_decref(value);
	return r;
}

static int replace(const struct cordon_yaml *yaml, struct cordon_buf *out, const struct cordon_node *node,
		   const json_t *value)
{
	size_t start = node->start, end = cordon_node_content_end(yaml->doc, node);
	bool block = node->type != CORDON_NODE_SCALAR && !is_flow(yaml, node), none = is_none(node) && !node->len;
	int r;

	/* A block begins on a line of its own, and an empty value has no bytes: the new value stands behind the colon. */
	if (((block || none) && !node->key) || is_marked(yaml, node))
		return -EINVAL;
	if (block || none)
		start = colon_of(yaml, node) + 1;
	if (none)
		end = start;
	r = copy(yaml, out, 0, start);
	if (r == 0 && (block || none))
		r = cordon_buf_addc(out, ' ');
	r = r < 0 ? r : cordon_yaml_write_flow(out, value);
	return r < 0 ? r : copy(yaml, out, end, yaml->text.len);
}

int cordon_yaml_replace(struct cordon_yaml *yaml, const struct cordon_node *node, json_t *value,
			struct cordon_errors *errors)
{
	struct cordon_buf out = CORDON_BUF(CORDON_CONFIG_SIZE_MAX);
	struct change change = { .kind = REPLACE, .target = node, .value = value };
	int r = value ? take(yaml, replace(yaml, &out, node, value), &out, &change, errors) : refuse_value(yaml, errors);

	json_decref(value);
	return r;
}

int cordon_yaml_put_in(struct cordon_yaml *yaml, const struct cordon_node *mapping, const char *key, json_t *value,
		       struct cordon_errors *errors)
{
	const struct cordon_node *old = mapping ? cordon_node_get(mapping, key) : NULL;
	struct cordon_buf out = CORDON_BUF(CORDON_CONFIG_SIZE_MAX);
	struct change change = { .kind = PUT, .target = mapping, .key = key, .value = value };
	int r;

	if (!value)
		return refuse_value(yaml, errors);
	if (old)
		return cordon_yaml_replace(yaml, old, value, errors);
	r = take(yaml, add(yaml, &out, &change), &out, &change, errors);
	json_decref(value);
	return r;
}

int cordon_yaml_put(struct cordon_yaml *yaml, const char *const *keys, size_t n, json_t *value,
		    struct cordon_errors *errors)
{
	const struct cordon_node *node = yaml->doc ? yaml->doc->root : NULL;
	size_t depth = 0;

	if (!value)
		return refuse_value(yaml, errors);
	/* Goes down as far as there are mappings; what is missing becomes part of the value. */
	while (node && depth + 1 < n && cordon_node_get(node, keys[depth]) &&
	       (cordon_node_get(node, keys[depth])->type == CORDON_NODE_MAPPING ||
		is_none(cordon_node_get(node, keys[depth]))))
		node = cordon_node_get(node, keys[depth++]);
	for (size_t i = n - 1; i > depth; i--) {
		json_t *outer = json_object();

		json_object_set_new(outer, keys[i], value);
		value = outer;
	}
	return cordon_yaml_put_in(yaml, node, keys[depth], value, errors);
}

/* ---- removing ---- */

static int drop_from_flow(const struct cordon_yaml *yaml, struct cordon_buf *out, const struct cordon_node *parent,
			  const struct cordon_node *child)
{
	const struct cordon_node *before = NULL;
	size_t from = parent->start + 1, to = parent->end - 1;
	int r;

	for (const struct cordon_node *node = parent->first; node != child; node = node->next)
		before = node;
	if (child->next) {
		from = child->key ? child->key->start : child->start;
		to = child->next->key ? child->next->key->start : child->next->start;
	} else if (before) {
		from = cordon_node_content_end(yaml->doc, before);
		to = cordon_node_content_end(yaml->doc, child);
		to = child->key && child->key->end > to ? child->key->end : to;
	}
	r = copy(yaml, out, 0, from);
	return r < 0 ? r : copy(yaml, out, to, yaml->text.len);
}

/* Removes the lines of a child. */
static int drop_from_block(const struct cordon_yaml *yaml, struct cordon_buf *out, const struct cordon_node *parent,
			   const struct cordon_node *child)
{
	size_t start = child->key ? child->key->start : child->start, end = cordon_node_content_end(yaml->doc, child);
	size_t from = cordon_document_line(yaml->doc, start), to, colon;
	const char *text = yaml->text.data;
	int r;

	end = child->key && child->key->end > end ? child->key->end : end;
	to = cordon_document_next_line(yaml->doc, end);
	/* Nothing else may stand in these lines, but the dash of an item may. */
	if (child->key ? !begins_line(yaml, start) : text[from + strspn(text + from, " ")] != '-')
		return -EINVAL;
	if (parent->n > 1 || !parent->key) {
		r = copy(yaml, out, 0, from);
	} else {
		colon = colon_of(yaml, parent) + 1;
		r = copy(yaml, out, 0, colon);
		r = r < 0 ? r : cordon_buf_adds(out, parent->type == CORDON_NODE_SEQUENCE ? " []" : " {}");
		r = r < 0 ? r : copy(yaml, out, colon, from);
	}
	return r < 0 ? r : copy(yaml, out, to, yaml->text.len);
}

int cordon_yaml_drop(struct cordon_yaml *yaml, const struct cordon_node *parent, const struct cordon_node *child,
		     struct cordon_errors *errors)
{
	struct cordon_buf out = CORDON_BUF(CORDON_CONFIG_SIZE_MAX);
	struct change change = { .kind = DROP, .target = parent, .child = child };
	int r = is_flow(yaml, parent) ? drop_from_flow(yaml, &out, parent, child)
				      : drop_from_block(yaml, &out, parent, child);

	return take(yaml, r, &out, &change, errors);
}
