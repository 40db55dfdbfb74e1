/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads YAML into a document, from libyaml's events. libyaml has no limits of its own and takes quadratic time on
 * deep nesting. But to find a key it reads ahead by no more than one line and 1,024 characters, so its work is
 * bounded when we stop at the event that goes too deep. The directives before a document are the exception, and are
 * counted first.
 */
#include <yaml.h>

#include "base/text.h"
#include "config/document_build.h"

#define DIRECTIVES_MAX 16

struct reader {
	struct cordon_builder *builder;
	yaml_parser_t parser;
	uint32_t *offsets; /* byte offset of each character: libyaml counts characters, not bytes */
	size_t n_chars;
	struct anchor {
		const char *name;
		const struct cordon_node *node;
	} anchors[CORDON_CONFIG_ANCHORS_MAX];
	size_t n_anchors;
};

static const char quote_hint[] = "quote values that hold special characters: 'src/{a,b}/**', '*.md'";

static const char tab_hint[] = "indent with spaces, not with tabs";

/* libyaml compares every tag directive with all before it, so their number must be bounded. */
static int limit_directives(struct cordon_builder *builder)
{
	const char *text = builder->doc->source;
	size_t n = 0;

	for (size_t i = 0; i < builder->doc->len; i++) {
		if (text[i] != '%' || (i > 0 && text[i - 1] != '\n' && text[i - 1] != '\r'))
			continue;
		if (++n > DIRECTIVES_MAX)
			return cordon_build_fail_at(builder, i, -E2BIG, NULL, "more than %d lines start with %%",
						    DIRECTIVES_MAX);
	}
	return 0;
}

static int count_characters(struct reader *reader, size_t bom)
{
	const struct cordon_document *doc = reader->builder->doc;
	size_t n = 0;

	reader->offsets = calloc(doc->len + 1, sizeof(*reader->offsets));
	if (!reader->offsets)
		return -ENOMEM;
	for (size_t i = bom; i < doc->len;) {
		size_t len = cordon_utf8_char(doc->source + i, doc->len - i);

		reader->offsets[n++] = (uint32_t)i;
		i += len ? len : 1;
	}
	reader->offsets[n] = (uint32_t)doc->len;
	reader->n_chars = n;
	return 0;
}

static uint32_t offset_of(const struct reader *reader, const yaml_mark_t *mark)
{
	return reader->offsets[mark->index < reader->n_chars ? mark->index : reader->n_chars];
}

static struct cordon_span span_of(const struct reader *reader, const yaml_event_t *event)
{
	return (struct cordon_span){ .line = (uint32_t)event->start_mark.line + 1,
				     .column = (uint32_t)event->start_mark.column + 1,
				     .start = offset_of(reader, &event->start_mark),
				     .end = offset_of(reader, &event->end_mark) };
}

static int syntax_error(struct reader *reader, size_t bom)
{
	const yaml_parser_t *parser = &reader->parser;
	const char *problem = parser->problem ? parser->problem : "unknown problem";
	bool tab = reader->builder->doc->source[offset_of(reader, &parser->problem_mark)] == '\t';
	/* YAML takes a pattern that starts with a star for an alias; the error must point at the star. */
	bool alias = parser->context && strstr(parser->context, "alias");
	const yaml_mark_t *mark = alias ? &parser->context_mark : &parser->problem_mark;

	switch (parser->error) {
	case YAML_MEMORY_ERROR:
		return -ENOMEM;
	case YAML_READER_ERROR:
		return cordon_build_fail_at(reader->builder, parser->problem_offset + bom, -EINVAL, NULL,
					    "not valid YAML: %s", problem);
	case YAML_NO_ERROR:
	case YAML_SCANNER_ERROR:
	case YAML_PARSER_ERROR:
	case YAML_COMPOSER_ERROR:
	case YAML_WRITER_ERROR:
	case YAML_EMITTER_ERROR:
	default:
		return cordon_build_fail(reader->builder, mark->line + 1, mark->column + 1, -EINVAL,
					 tab ? tab_hint : quote_hint, "not valid YAML: %s%s%s",
					 parser->context ? parser->context : "", parser->context ? ", " : "", problem);
	}
}

/* Refuses tags, and anchors unless they are read, but continues, so that the rest of the file is checked, too. */
static void refuse_properties(struct reader *reader, const yaml_char_t *anchor, const yaml_char_t *tag,
			      const struct cordon_span *span)
{
	if (anchor && !reader->builder->aliases)
		cordon_build_fail(reader->builder, span->line, span->column, -EINVAL,
				  "write the value out, or quote it if it is text that starts with &",
				  "anchors are not supported: &%s", (const char *)anchor);
	if (tag)
		cordon_build_fail(reader->builder, span->line, span->column, -EINVAL,
				  "leave it out, or quote it if it is text that starts with !",
				  "tags are not supported: %s", (const char *)tag);
}

/* Remembers the node that was just made by its anchor. An anchor that is given twice means the later node from then on. */
static int remember(struct reader *reader, const yaml_char_t *anchor, const struct cordon_span *span)
{
	struct cordon_builder *builder = reader->builder;
	struct anchor *found = NULL;
	size_t size;
	char *name;

	if (!anchor || !builder->aliases)
		return 0;
	for (size_t i = 0; i < reader->n_anchors && !found; i++)
		if (cordon_streq(reader->anchors[i].name, (const char *)anchor))
			found = &reader->anchors[i];
	if (found) {
		found->node = builder->latest;
		return 0;
	}
	if (reader->n_anchors == CORDON_CONFIG_ANCHORS_MAX)
		return cordon_build_fail(builder, span->line, span->column, -E2BIG, NULL, "more than %d anchors",
					 CORDON_CONFIG_ANCHORS_MAX);
	size = strlen((const char *)anchor) + 1;
	name = cordon_document_alloc(builder->doc, size);
	if (!name)
		return -ENOMEM;
	memcpy(name, anchor, size);
	reader->anchors[reader->n_anchors++] = (struct anchor){ .name = name, .node = builder->latest };
	return 0;
}

static int take_scalar(struct reader *reader, const yaml_event_t *event, const struct cordon_span *span)
{
	yaml_scalar_style_t yaml_style = event->data.scalar.style;
	cordon_style style = yaml_style == YAML_SINGLE_QUOTED_SCALAR_STYLE   ? CORDON_STYLE_SINGLE
			     : yaml_style == YAML_DOUBLE_QUOTED_SCALAR_STYLE ? CORDON_STYLE_DOUBLE
			     : yaml_style == YAML_LITERAL_SCALAR_STYLE	     ? CORDON_STYLE_BLOCK
			     : yaml_style == YAML_FOLDED_SCALAR_STYLE	     ? CORDON_STYLE_BLOCK
									     : CORDON_STYLE_PLAIN;
	int r;

	refuse_properties(reader, event->data.scalar.anchor, event->data.scalar.tag, span);
	r = cordon_build_scalar(reader->builder, CORDON_NODE_SCALAR, style, (const char *)event->data.scalar.value,
				event->data.scalar.length, span);
	return r < 0 ? r : remember(reader, event->data.scalar.anchor, span);
}

static int open_collection(struct reader *reader, cordon_node_type type, const yaml_char_t *anchor,
			   const yaml_char_t *tag, const struct cordon_span *span)
{
	int r;

	refuse_properties(reader, anchor, tag, span);
	r = cordon_build_open(reader->builder, type, span);
	return r < 0 ? r : remember(reader, anchor, span);
}

/* Puts a copy in the place of an alias. A collection that is still open would contain itself. */
static int copy_alias(struct reader *reader, const char *name, const struct cordon_span *span)
{
	struct cordon_builder *builder = reader->builder;
	const struct cordon_node *node = NULL;

	for (size_t i = 0; i < reader->n_anchors; i++)
		if (cordon_streq(reader->anchors[i].name, name))
			node = reader->anchors[i].node;
	for (size_t i = 0; node && i < builder->depth; i++)
		if (builder->stack[i].node == node)
			return cordon_build_fail(builder, span->line, span->column, -EINVAL, NULL,
						 "the alias *%s stands inside the value that it means", name);
	if (node)
		return cordon_build_copy(builder, node, span);
	cordon_build_fail(builder, span->line, span->column, -EINVAL, "quote text that starts with *, as in '*.md'",
			  "there is no anchor &%s before this alias", name);
	return cordon_build_scalar(builder, CORDON_NODE_BAD, CORDON_STYLE_PLAIN, NULL, 0, span);
}

static int take_alias(struct reader *reader, const yaml_event_t *event, const struct cordon_span *span)
{
	if (reader->builder->aliases)
		return copy_alias(reader, (const char *)event->data.alias.anchor, span);
	cordon_build_fail(reader->builder, span->line, span->column, -EINVAL,
			  "quote text that starts with *, as in '*.md'", "aliases are not supported: *%s",
			  (const char *)event->data.alias.anchor);
	return cordon_build_scalar(reader->builder, CORDON_NODE_BAD, CORDON_STYLE_PLAIN, NULL, 0, span);
}

static int take_document(struct reader *reader, const yaml_event_t *event, const struct cordon_span *span)
{
	if (reader->builder->doc->root)
		return cordon_build_fail(reader->builder, span->line, span->column, -EINVAL, NULL,
					 "only one document is allowed in a file");
	if (event->data.document_start.tag_directives.start != event->data.document_start.tag_directives.end)
		cordon_build_fail(reader->builder, span->line, span->column, -EINVAL, NULL,
				  "tag directives are not supported");
	return 0;
}

static int take_event(struct reader *reader, const yaml_event_t *event)
{
	struct cordon_span span = span_of(reader, event);

	switch (event->type) {
	case YAML_DOCUMENT_START_EVENT:
		return take_document(reader, event, &span);
	case YAML_ALIAS_EVENT:
		return take_alias(reader, event, &span);
	case YAML_SCALAR_EVENT:
		return take_scalar(reader, event, &span);
	case YAML_SEQUENCE_START_EVENT:
		return open_collection(reader, CORDON_NODE_SEQUENCE, event->data.sequence_start.anchor,
				       event->data.sequence_start.tag, &span);
	case YAML_MAPPING_START_EVENT:
		return open_collection(reader, CORDON_NODE_MAPPING, event->data.mapping_start.anchor,
				       event->data.mapping_start.tag, &span);
	case YAML_SEQUENCE_END_EVENT:
	case YAML_MAPPING_END_EVENT:
		return cordon_build_close(reader->builder, span.end);
	case YAML_NO_EVENT:
	case YAML_STREAM_START_EVENT:
	case YAML_STREAM_END_EVENT:
	case YAML_DOCUMENT_END_EVENT:
	default:
		return 0;
	}
}

static int read_events(struct reader *reader, size_t bom)
{
	bool more = true;
	int r = 0;

	while (r == 0 && more) {
		yaml_event_t event;

		if (!yaml_parser_parse(&reader->parser, &event))
			return syntax_error(reader, bom);
		r = take_event(reader, &event);
		more = event.type != YAML_STREAM_END_EVENT;
		yaml_event_delete(&event);
	}
	return r;
}

int cordon_document_read_yaml(struct cordon_builder *builder)
{
	struct cordon_document *doc = builder->doc;
	size_t bom = doc->len >= 3 && memcmp(doc->source, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
	struct reader reader = { .builder = builder };
	int r = limit_directives(builder);

	if (r < 0)
		return r;
	r = count_characters(&reader, bom);
	if (r < 0)
		return r;
	if (!yaml_parser_initialize(&reader.parser)) {
		free(reader.offsets);
		return -ENOMEM;
	}
	/* Set the encoding, or else a byte order mark would make libyaml read UTF-16. */
	yaml_parser_set_encoding(&reader.parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&reader.parser, (const unsigned char *)doc->source + bom, doc->len - bom);
	r = read_events(&reader, bom);
	yaml_parser_delete(&reader.parser);
	free(reader.offsets);
	if (r == 0 && !doc->root)
		return cordon_build_fail(builder, 1, 1, -EINVAL, NULL, "the file is empty");
	return r;
}
