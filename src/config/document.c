/* SPDX-License-Identifier: Apache-2.0 */
/* Loads a document, as YAML or JSON by the file's extension, and manages its memory. */
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/io.h"
#include "base/text.h"
#include "config/document_build.h"

void *cordon_document_alloc(struct cordon_document *doc, size_t size)
{
	return cordon_arena_alloc(doc->arena, size);
}

struct cordon_document *cordon_document_free(struct cordon_document *doc)
{
	if (!doc)
		return NULL;
	cordon_arena_free(doc->arena);
	free(doc);
	return NULL;
}

void cordon_document_freep(struct cordon_document **doc)
{
	*doc = cordon_document_free(*doc);
}

static const char *keep(struct cordon_document *doc, const char *bytes, size_t n)
{
	char *copy = cordon_document_alloc(doc, n + 1);

	return copy ? memcpy(copy, bytes, n) : NULL;
}

static int no_memory(struct cordon_errors *errors, const char *name)
{
	struct cordon_error err;

	cordon_fail_errno(&err, -ENOMEM, "cannot read %s", name);
	return cordon_errors_add(errors, &err, NULL, 0, 0);
}

int cordon_document_parse(const char *name, cordon_format format, const char *text, size_t len, size_t max_depth,
			  struct cordon_document **ret_doc, struct cordon_errors *errors)
{
	autodocument struct cordon_document *doc = calloc(1, sizeof(*doc));
	autofree struct cordon_build_frame *stack = calloc(max_depth, sizeof(*stack));
	struct cordon_builder builder = { .errors = errors, .stack = stack, .max_depth = max_depth };
	int r;

	if (!doc || !stack || !(doc->arena = cordon_arena_new()))
		return no_memory(errors, name);
	builder.doc = doc;
	builder.aliases = format == CORDON_FORMAT_YAML_ALIASES;
	doc->format = builder.aliases ? CORDON_FORMAT_YAML : format;
	doc->len = len;
	doc->name = keep(doc, name, strlen(name));
	doc->source = keep(doc, text, len);
	if (!doc->name || !doc->source)
		return no_memory(errors, name);
	if (len > UINT32_MAX / 2)
		return cordon_build_fail(&builder, 0, 0, -E2BIG, NULL, "%s is too large", name);
	r = format == CORDON_FORMAT_JSON ? cordon_document_read_json(&builder) : cordon_document_read_yaml(&builder);
	if (r == -ENOMEM)
		return no_memory(errors, name);
	if (r < 0)
		return r;
	*ret_doc = cordon_steal_ptr(&doc);
	return 0;
}

static int format_of(const char *path, cordon_format *ret_format)
{
	static const struct {
		const char *ext;
		cordon_format format;
	} known[] = { { ".yaml", CORDON_FORMAT_YAML }, { ".yml", CORDON_FORMAT_YAML }, { ".json", CORDON_FORMAT_JSON } };
	size_t len = strlen(path);

	for (size_t i = 0; i < CORDON_ARRAY_SIZE(known); i++) {
		size_t n = strlen(known[i].ext);

		if (len > n && cordon_streq(path + len - n, known[i].ext)) {
			*ret_format = known[i].format;
			return 0;
		}
	}
	return -EINVAL;
}

int cordon_document_load(const char *path, struct cordon_document **ret_doc, struct cordon_errors *errors)
{
	struct cordon_buf buf autobuf = CORDON_BUF(CORDON_CONFIG_SIZE_MAX);
	struct cordon_error err;
	cordon_format format;

	if (format_of(path, &format) < 0) {
		cordon_fail(&err, -EINVAL, CORDON_KIND_CONFIG, "%s is neither .yaml, .yml nor .json", path);
		cordon_error_hint(&err, "the extension says how a file is read; rename it");
		return cordon_errors_add(errors, &err, NULL, 0, 0);
	}
	if (cordon_read_file(AT_FDCWD, path, 0, &buf, &err) < 0)
		return cordon_errors_add(errors, &err, NULL, 0, 0);
	return cordon_document_parse(path, format, buf.data ? buf.data : "", buf.len, CORDON_CONFIG_DEPTH_MAX, ret_doc,
				     errors);
}

const struct cordon_node *cordon_node_get(const struct cordon_node *mapping, const char *name)
{
	if (mapping->type != CORDON_NODE_MAPPING)
		return NULL;
	for (const struct cordon_node *node = mapping->first; node; node = node->next)
		if (cordon_streq(node->key->text, name))
			return node;
	return NULL;
}

const char *cordon_node_describe(const struct cordon_document *doc, const struct cordon_node *node)
{
	if (node->type == CORDON_NODE_SEQUENCE)
		return "a list";
	if (node->type == CORDON_NODE_MAPPING)
		return "a mapping";
	if (node->style != CORDON_STYLE_PLAIN)
		return "text";
	if (node->len == 0)
		return "nothing";
	if (doc->format == CORDON_FORMAT_YAML)
		return "text";
	switch (node->text[0]) {
	case 'n':
		return "null";
	case 't':
		return "true";
	case 'f':
		return "false";
	default:
		return "a number";
	}
}

int cordon_node_fail(const struct cordon_document *doc, const struct cordon_node *node, struct cordon_errors *errors,
		     const char *hint, const char *fmt, ...)
{
	autofree char *text = NULL;
	struct cordon_error err;
	va_list args;
	int n;

	if (cordon_errors_drop(errors))
		return -EINVAL;
	va_start(args, fmt);
	n = vasprintf(&text, fmt, args);
	va_end(args);
	cordon_fail(&err, -EINVAL, CORDON_KIND_CONFIG, "%s", n < 0 ? "invalid value" : text);
	if (n < 0)
		text = NULL;
	if (hint)
		cordon_error_hint(&err, "%s", hint);
	return cordon_errors_add(errors, &err, doc->name, node->line, node->column);
}

void cordon_node_place(const struct cordon_document *doc, const struct cordon_node *node, size_t at, size_t *ret_line,
		       size_t *ret_column)
{
	size_t quote = node->style == CORDON_STYLE_PLAIN ? 0 : 1;
	bool plain = node->type == CORDON_NODE_SCALAR && node->style != CORDON_STYLE_BLOCK &&
		     node->end - node->start == node->len + 2 * quote &&
		     memcmp(doc->source + node->start + quote, node->text, node->len) == 0 &&
		     !memchr(node->text, '\n', node->len);

	*ret_line = node->line;
	*ret_column = node->column + (plain ? quote + at : 0);
}

const char *cordon_document_where(struct cordon_document *doc, const struct cordon_node *node)
{
	struct cordon_error err = { 0 };

	cordon_error_where(&err, doc->name, node->line, node->column);
	return keep(doc, err.where, strlen(err.where));
}
