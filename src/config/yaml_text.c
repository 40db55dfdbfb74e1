/* SPDX-License-Identifier: Apache-2.0 */
/* Writes values as YAML, and finds places in a YAML text, for edits. */
#include <strings.h>

#include "config/edit_yaml.h"

#define STEP 2		/* blanks that each level is indented by */
#define SHORT_MEMBERS 3 /* a mapping of so many scalars is an item on one line */

/* ---- values ---- */

/* Whether a text means itself without quotes: to YAML 1.1 and 1.2, and to a reader who knows neither. */
static bool is_plain(const char *text)
{
	static const char *const words[] = { "true", "false", "null", "yes", "no", "on", "off", "y", "n" };
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
	size_t n = strlen(text);

	if (!n || (!strchr(letters, text[0]) && text[0] != '/' && text[0] != '_'))
		return false;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(words); i++)
		if (strcasecmp(words[i], text) == 0)
			return false;
	for (size_t i = 1; i < n; i++)
		if (!strchr(letters, text[i]) && !strchr("0123456789_./-", text[i]))
			return false;
	return true;
}

static int write_text(struct cordon_buf *out, const char *text)
{
	autofree char *quoted = NULL;
	json_t *value;

	if (is_plain(text))
		return cordon_buf_adds(out, text);
	value = json_string(text);
	/* YAML reads a JSON string as JSON does. */
	quoted = value ? json_dumps(value, JSON_ENCODE_ANY) : NULL;
	json_decref(value);
	return quoted ? cordon_buf_adds(out, quoted) : -ENOMEM;
}

static int write_scalar(struct cordon_buf *out, const json_t *value)
{
	if (json_is_string(value))
		return write_text(out, json_string_value(value));
	if (json_is_integer(value))
		return cordon_buf_addf(out, "%lld", (long long)json_integer_value(value));
	return cordon_buf_adds(out, json_is_true(value) ? "true" : json_is_false(value) ? "false" : "null");
}

/* NOLINTNEXTLINE(misc-no-recursion): CORDON_CONFIG_DEPTH_MAX bounds it. */
int cordon_yaml_write_flow(struct cordon_buf *out, const json_t *value)
{
	const char *key, *between = "";
	json_t *item;
	size_t i;
	int r;

	if (json_is_array(value)) {
		r = cordon_buf_addc(out, '[');
		json_array_foreach(value, i, item) {
			r = r < 0 ? r : cordon_buf_adds(out, i ? ", " : "");
			r = r < 0 ? r : cordon_yaml_write_flow(out, item);
		}
		return r < 0 ? r : cordon_buf_addc(out, ']');
	}
	if (!json_is_object(value))
		return write_scalar(out, value);
	r = cordon_buf_addc(out, '{');
	json_object_foreach((json_t *)(uintptr_t)value, key, item) {
		r = r < 0 ? r : cordon_buf_adds(out, between);
		r = r < 0 ? r : write_text(out, key);
		r = r < 0 ? r : cordon_buf_adds(out, ": ");
		r = r < 0 ? r : cordon_yaml_write_flow(out, item);
		between = ", ";
	}
	return r < 0 ? r : cordon_buf_addc(out, '}');
}

static int write_indent(struct cordon_buf *out, size_t n)
{
	int r = 0;

	while (r == 0 && n--)
		r = cordon_buf_addc(out, ' ');
	return r;
}

static bool has_lines(const json_t *value)
{
	return json_is_array(value) ? json_array_size(value) > 0 : json_object_size(value) > 0;
}

/* Writes "KEY: VALUE" without the indentation of its first line. */
/* NOLINTNEXTLINE(misc-no-recursion): CORDON_CONFIG_DEPTH_MAX bounds it. */
static int write_pair(struct cordon_buf *out, size_t indent, const char *key, const json_t *value)
{
	const char *inner;
	json_t *item;
	size_t i;
	int r = write_text(out, key);

	if (r == 0)
		r = cordon_buf_addc(out, ':');
	if (r == 0 && !has_lines(value)) {
		r = cordon_buf_addc(out, ' ');
		r = r < 0 ? r : cordon_yaml_write_flow(out, value);
	}
	if (r == 0)
		r = cordon_buf_addc(out, '\n');
	json_array_foreach(value, i, item) {
		r = r < 0 ? r : cordon_yaml_write_item(out, indent + STEP, item);
	}
	json_object_foreach((json_t *)(uintptr_t)value, inner, item) {
		r = r < 0 ? r : cordon_yaml_write_member(out, indent + STEP, inner, item);
	}
	return r;
}

/* NOLINTNEXTLINE(misc-no-recursion): CORDON_CONFIG_DEPTH_MAX bounds it. */
int cordon_yaml_write_member(struct cordon_buf *out, size_t indent, const char *key, const json_t *value)
{
	int r = write_indent(out, indent);

	return r < 0 ? r : write_pair(out, indent, key, value);
}

static bool is_short(const json_t *value)
{
	const char *key;
	json_t *item;

	json_object_foreach((json_t *)(uintptr_t)value, key, item) {
		if (has_lines(item))
			return false;
	}
	return json_object_size(value) <= SHORT_MEMBERS;
}

/* NOLINTNEXTLINE(misc-no-recursion): CORDON_CONFIG_DEPTH_MAX bounds it. */
int cordon_yaml_write_item(struct cordon_buf *out, size_t indent, const json_t *value)
{
	const char *key, *lead = "- ";
	json_t *item;
	int r = 0;

	if (!json_is_object(value) || is_short(value)) {
		r = write_indent(out, indent);
		r = r < 0 ? r : cordon_buf_adds(out, lead);
		r = r < 0 ? r : cordon_yaml_write_flow(out, value);
		return r < 0 ? r : cordon_buf_addc(out, '\n');
	}
	json_object_foreach((json_t *)(uintptr_t)value, key, item) {
		r = r < 0 ? r : write_indent(out, indent);
		r = r < 0 ? r : cordon_buf_adds(out, lead);
		r = r < 0 ? r : write_pair(out, indent + STEP, key, item);
		lead = "  ";
	}
	return r;
}

/* ---- places ---- */

/* NOLINTNEXTLINE(misc-no-recursion): CORDON_CONFIG_DEPTH_MAX bounds it. */
json_t *cordon_node_json(const struct cordon_node *node)
{
	json_t *value;

	if (node->type == CORDON_NODE_SCALAR || node->type == CORDON_NODE_BAD)
		return json_stringn(node->text ? node->text : "", node->len);
	value = node->type == CORDON_NODE_SEQUENCE ? json_array() : json_object();
	for (const struct cordon_node *child = node->first; child; child = child->next)
		if (node->type == CORDON_NODE_SEQUENCE)
			json_array_append_new(value, cordon_node_json(child));
		else
			json_object_set_new(value, child->key->text, cordon_node_json(child));
	return value;
}

/* NOLINTNEXTLINE(misc-no-recursion): CORDON_CONFIG_DEPTH_MAX bounds it. */
size_t cordon_node_content_end(const struct cordon_document *doc, const struct cordon_node *node)
{
	const struct cordon_node *last = node->first;
	bool flow = node->type == CORDON_NODE_SCALAR || doc->format == CORDON_FORMAT_JSON ||
		    (node->start < doc->len && strchr("[{*", doc->source[node->start]));
	size_t end;

	if (flow || !last) {
		end = node->end;
		while (end > node->start && strchr(" \t\r\n", doc->source[end - 1]))
			end--;
		return end;
	}
	while (last->next)
		last = last->next;
	/* An empty value has no bytes; its key has. */
	end = cordon_node_content_end(doc, last);
	return last->key && last->key->end > end ? last->key->end : end;
}

size_t cordon_document_line(const struct cordon_document *doc, size_t at)
{
	while (at > 0 && doc->source[at - 1] != '\n')
		at--;
	return at;
}

size_t cordon_document_next_line(const struct cordon_document *doc, size_t at)
{
	while (at < doc->len && doc->source[at] != '\n')
		at++;
	return at < doc->len ? at + 1 : at;
}
