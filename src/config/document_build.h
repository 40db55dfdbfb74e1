/* SPDX-License-Identifier: Apache-2.0 */
/* How the two parsers make a document: they report what they read, and the builder links it and checks the limits. */
#ifndef CORDON_CONFIG_DOCUMENT_BUILD_H
#define CORDON_CONFIG_DOCUMENT_BUILD_H

#include "config/document.h"

struct cordon_span {
	uint32_t line, column;
	uint32_t start, end;
};

struct cordon_build_frame {
	struct cordon_node *node;
	struct cordon_node *last;
	struct cordon_node *key; /* was read, but its value was not yet */
};

/* `stack` has room for max_depth frames. */
struct cordon_builder {
	struct cordon_document *doc;
	struct cordon_errors *errors;
	struct cordon_build_frame *stack;
	size_t depth;
	size_t max_depth;
	bool aliases;		    /* anchors and aliases are read, not refused */
	struct cordon_node *latest; /* the node that was made last */
	size_t copied;		    /* nodes that were made for aliases */
};

/* The parsers. Each returns 0 when the document is complete. */
int cordon_document_read_yaml(struct cordon_builder *builder);
int cordon_document_read_json(struct cordon_builder *builder);

int cordon_build_open(struct cordon_builder *builder, cordon_node_type type, const struct cordon_span *span);
/* `end` is the offset behind the closing bracket. */
int cordon_build_close(struct cordon_builder *builder, uint32_t end);
/* `text` of `len` bytes is copied; CORDON_NODE_BAD takes NULL and 0. */
int cordon_build_scalar(struct cordon_builder *builder, cordon_node_type type, cordon_style style, const char *text,
			size_t len, const struct cordon_span *span);

/* Adds a copy of a node, with everything below it, as if it stood at `span`. */
int cordon_build_copy(struct cordon_builder *builder, const struct cordon_node *node, const struct cordon_span *span);

/* Adds an error at a place without a node; returns `code`. */
int cordon_build_fail(struct cordon_builder *builder, size_t line, size_t column, int code, const char *hint,
		      const char *fmt, ...) CORDON_PRINTF(6, 7);
/* The same at a byte offset. It counts lines from the start of the text, so use it for errors only. */
int cordon_build_fail_at(struct cordon_builder *builder, size_t offset, int code, const char *hint, const char *fmt,
			 ...) CORDON_PRINTF(5, 6);

#endif
