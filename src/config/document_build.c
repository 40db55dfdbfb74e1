/* SPDX-License-Identifier: Apache-2.0 */
/* Links nodes into a document, without recursion, and refuses what no file may contain. */
#include <stdarg.h>
#include <stdio.h>

#include "base/text.h"
#include "config/document_build.h"

static void place_of(const struct cordon_document *doc, size_t offset, size_t *ret_line, size_t *ret_column)
{
	size_t line = 1, column = 1;

	for (size_t i = 0; i < offset && i < doc->len; i++) {
		if (doc->source[i] == '\n') {
			line++;
			column = 1;
		} else if (((unsigned char)doc->source[i] & 0xc0) != 0x80) {
			column++;
		}
	}
	*ret_line = line;
	*ret_column = column;
}

CORDON_PRINTF(6, 0)
static int fail(struct cordon_builder *builder, size_t line, size_t column, int code, const char *hint, const char *fmt,
		va_list args)
{
	char text[512];
	struct cordon_error err;

	if (cordon_errors_drop(builder->errors))
		return code;
	if (vsnprintf(text, sizeof(text), fmt, args) < 0)
		text[0] = '\0';
	cordon_fail(&err, code, code == -E2BIG ? CORDON_KIND_LIMIT : CORDON_KIND_CONFIG, "%s", text);
	if (hint)
		cordon_error_hint(&err, "%s", hint);
	return cordon_errors_add(builder->errors, &err, builder->doc->name, line, column);
}

int cordon_build_fail(struct cordon_builder *builder, size_t line, size_t column, int code, const char *hint,
		      const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	fail(builder, line, column, code, hint, fmt, args);
	va_end(args);
	return code;
}

int cordon_build_fail_at(struct cordon_builder *builder, size_t offset, int code, const char *hint, const char *fmt, ...)
{
	size_t line, column;
	va_list args;

	if (cordon_errors_drop(builder->errors))
		return code;
	place_of(builder->doc, offset, &line, &column);
	va_start(args, fmt);
	fail(builder, line, column, code, hint, fmt, args);
	va_end(args);
	return code;
}

static struct cordon_node *new_node(struct cordon_builder *builder, cordon_node_type type,
				    const struct cordon_span *span)
{
	struct cordon_node *node = cordon_document_alloc(builder->doc, sizeof(*node));

	if (node)
		*node = (struct cordon_node){
			.type = type, .line = span->line, .column = span->column, .start = span->start, .end = span->end
		};
	builder->latest = node;
	return node;
}

/* Makes a node the root, the next key of the innermost mapping, or the next child. */
static int attach(struct cordon_builder *builder, struct cordon_node *node)
{
	struct cordon_build_frame *frame;

	if (builder->depth == 0) {
		builder->doc->root = node;
		return 0;
	}
	frame = &builder->stack[builder->depth - 1];
	if (frame->node->type == CORDON_NODE_MAPPING && !frame->key) {
		if (node->type != CORDON_NODE_SCALAR)
			return cordon_build_fail(builder, node->line, node->column, -EINVAL, NULL,
						 "a key must be plain text");
		frame->key = node;
		return 0;
	}
	node->key = frame->key;
	frame->key = NULL;
	if (frame->last)
		frame->last->next = node;
	else
		frame->node->first = node;
	frame->last = node;
	frame->node->n++;
	return 0;
}

int cordon_build_open(struct cordon_builder *builder, cordon_node_type type, const struct cordon_span *span)
{
	struct cordon_node *node;
	int r;

	if (builder->depth == builder->max_depth)
		return cordon_build_fail(builder, span->line, span->column, -E2BIG, NULL,
					 "nested deeper than %zu levels", builder->max_depth);
	node = new_node(builder, type, span);
	if (!node)
		return -ENOMEM;
	r = attach(builder, node);
	if (r < 0)
		return r;
	builder->stack[builder->depth++] = (struct cordon_build_frame){ .node = node };
	return 0;
}

static int by_text(const void *a, const void *b)
{
	const struct cordon_node *x = *(const struct cordon_node *const *)a;
	const struct cordon_node *y = *(const struct cordon_node *const *)b;
	int c = strcmp(x->text, y->text);

	return c ? c : x->start < y->start ? -1 : x->start > y->start;
}

/* Sorts the keys instead of comparing each pair: a file may have a hundred thousand keys. */
static int find_duplicates(struct cordon_builder *builder, const struct cordon_node *mapping)
{
	autofree const struct cordon_node **keys = NULL;
	const size_t size = sizeof(const struct cordon_node *);
	size_t n = 0;

	if (mapping->n < 2)
		return 0;
	keys = calloc(mapping->n, size);
	if (!keys)
		return -ENOMEM;
	for (const struct cordon_node *node = mapping->first; node; node = node->next)
		keys[n++] = node->key;
	qsort(keys, n, size, by_text);
	for (size_t i = 1; i < n; i++)
		if (cordon_streq(keys[i]->text, keys[i - 1]->text))
			cordon_node_fail(builder->doc, keys[i], builder->errors, "keep one of the two",
					 "key '%s' stands twice in this mapping, also at line %u", keys[i]->text,
					 (unsigned int)keys[i - 1]->line);
	return 0;
}

int cordon_build_close(struct cordon_builder *builder, uint32_t end)
{
	struct cordon_node *node;

	if (builder->depth == 0)
		return -EINVAL;
	node = builder->stack[--builder->depth].node;
	node->end = end;
	return node->type == CORDON_NODE_MAPPING ? find_duplicates(builder, node) : 0;
}

int cordon_build_scalar(struct cordon_builder *builder, cordon_node_type type, cordon_style style, const char *text,
			size_t len, const struct cordon_span *span)
{
	struct cordon_node *node = new_node(builder, type, span);
	char *copy = cordon_document_alloc(builder->doc, len + 1);

	if (!node || !copy)
		return -ENOMEM;
	if (len)
		memcpy(copy, text, len);
	if (memchr(copy, '\0', len))
		return cordon_build_fail(builder, span->line, span->column, -EINVAL, NULL,
					 "a NUL character has no place in a value");
	node->style = style;
	node->text = copy;
	node->len = (uint32_t)len;
	return attach(builder, node);
}

struct copy_frame {
	const struct cordon_node *next; /* the child of the original that comes next */
	struct cordon_node *copy, *last;
};

static int copy_one(struct cordon_builder *builder, const struct cordon_node *node, struct cordon_node **ret_copy)
{
	struct cordon_node *copy = cordon_document_alloc(builder->doc, sizeof(*copy));

	if (!copy)
		return -ENOMEM;
	if (++builder->copied > CORDON_CONFIG_COPIES_MAX)
		return -E2BIG;
	*copy = *node;
	copy->first = copy->next = NULL;
	*ret_copy = copy;
	return 0;
}

/* Copies a node and everything below it, without recursion. Returns -E2BIG over a bound. */
static int copy_node(struct cordon_builder *builder, const struct cordon_node *node, struct cordon_node **ret_copy)
{
	autofree struct copy_frame *frames = calloc(builder->max_depth + 1, sizeof(*frames));
	size_t depth = 0;
	int r = frames ? copy_one(builder, node, &frames[0].copy) : -ENOMEM;

	if (r < 0)
		return r;
	frames[0].next = node->first;
	*ret_copy = frames[0].copy;
	for (;;) {
		struct copy_frame *frame = &frames[depth];
		const struct cordon_node *child = frame->next;
		struct cordon_node *made = NULL;

		if (!child && !depth)
			return 0;
		if (!child) {
			depth--;
			continue;
		}
		if (builder->depth + depth + 1 > builder->max_depth)
			return -E2BIG;
		r = copy_one(builder, child, &made);
		if (r < 0)
			return r;
		if (frame->last)
			frame->last->next = made;
		else
			frame->copy->first = made;
		frame->last = made;
		frame->next = child->next;
		frames[++depth] = (struct copy_frame){ .next = child->first, .copy = made };
	}
}

int cordon_build_copy(struct cordon_builder *builder, const struct cordon_node *node, const struct cordon_span *span)
{
	struct cordon_node *copy = NULL;
	int r = copy_node(builder, node, &copy);

	if (r == -E2BIG)
		return cordon_build_fail(builder, span->line, span->column, r,
					 "write values out instead of repeating them",
					 "aliases stand for more than %d values, or too deep ones",
					 CORDON_CONFIG_COPIES_MAX);
	if (r < 0)
		return r;
	copy->key = NULL;
	copy->line = span->line;
	copy->column = span->column;
	copy->start = span->start;
	copy->end = span->end;
	return attach(builder, copy);
}
