/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A parsed configuration file. A document is a hierarchy of nodes, and every node knows its place in the file. YAML
 * is read through libyaml's events; JSON is checked by jansson, and a scanner of ours finds the places. The document
 * is the same either way.
 *
 * A document is immutable and owns all its memory; nodes live as long as it does. Scalars are text. The code that
 * reads a scalar decides what it must be: no type is ever guessed from `no`, `0x10` or `1e3`.
 *
 * These are refused: files over a size, nesting over a depth, anchors and aliases (unless the format is
 * CORDON_FORMAT_YAML_ALIASES), tags, duplicate keys, keys that are not scalars, more than one YAML document, NUL and
 * invalid UTF-8.
 */
#ifndef CORDON_CONFIG_DOCUMENT_H
#define CORDON_CONFIG_DOCUMENT_H

#include "config/errors.h"

#define CORDON_CONFIG_SIZE_MAX (1u << 20)
#define CORDON_CONFIG_DEPTH_MAX 32

#define CORDON_CONFIG_ANCHORS_MAX 64
#define CORDON_CONFIG_COPIES_MAX 4096 /* nodes that aliases stand for, in one document */

/* With aliases, each alias is a copy of what it stands for. The format of the document is then CORDON_FORMAT_YAML. */
typedef enum cordon_format { CORDON_FORMAT_YAML, CORDON_FORMAT_JSON, CORDON_FORMAT_YAML_ALIASES } cordon_format;

typedef enum cordon_node_type {
	CORDON_NODE_SCALAR,
	CORDON_NODE_SEQUENCE,
	CORDON_NODE_MAPPING,
	CORDON_NODE_BAD, /* stands for something that was refused (an alias); its error is already in the list */
} cordon_node_type;

typedef enum cordon_style {
	CORDON_STYLE_PLAIN,  /* in JSON: a number, true, false, null */
	CORDON_STYLE_SINGLE, /* 'quoted' */
	CORDON_STYLE_DOUBLE, /* "quoted"; every JSON string */
	CORDON_STYLE_BLOCK,  /* | or > */
} cordon_style;

struct cordon_node {
	cordon_node_type type;
	cordon_style style;
	uint32_t line, column;		 /* from 1, the column in characters */
	uint32_t start, end;		 /* bytes of the source, quotes and brackets included; the end of a YAML block
					  * collection may lie behind blanks and comments that follow it */
	uint32_t len;			 /* of `text` */
	uint32_t n;			 /* children */
	const char *text;		 /* scalars only: unquoted, without a NUL inside and with one at its end */
	const struct cordon_node *key;	 /* of a member of a mapping: its key, a scalar; else NULL */
	const struct cordon_node *first; /* children, in the order of the file */
	const struct cordon_node *next;
};

struct cordon_document {
	const char *name; /* the file, for messages */
	cordon_format format;
	const char *source;
	size_t len;
	const struct cordon_node *root;
	struct cordon_arena *arena; /* the memory of everything that belongs to the document */
};

/*
 * Reads and parses a file: .yaml and .yml are YAML, .json is JSON, anything else is refused. If the only errors are
 * such that the rest can be read (duplicate keys, tags, anchors, aliases), it returns 0 with a document and with
 * those errors in the list, so that the caller finds the errors of the rest, too. So a good file means an empty
 * list, not 0.
 */
int cordon_document_load(const char *path, struct cordon_document **ret_doc, struct cordon_errors *errors);
/* The same for text in memory, which is copied; `max_depth` is how deep collections may be nested. */
int cordon_document_parse(const char *name, cordon_format format, const char *text, size_t len, size_t max_depth,
			  struct cordon_document **ret_doc, struct cordon_errors *errors);
struct cordon_document *cordon_document_free(struct cordon_document *doc);
void cordon_document_freep(struct cordon_document **doc);
#define autodocument CORDON_CLEANUP(cordon_document_freep)

/* Returns the member of a mapping with this name, or NULL. */
const struct cordon_node *cordon_node_get(const struct cordon_node *mapping, const char *name);
/* "a list", "text", "a number", ... as a message calls it. */
const char *cordon_node_describe(const struct cordon_document *doc, const struct cordon_node *node);

/* Adds an error of kind `config` at `node` and returns -EINVAL. `hint` may be NULL; it is not a format. */
int cordon_node_fail(const struct cordon_document *doc, const struct cordon_node *node, struct cordon_errors *errors,
		     const char *hint, const char *fmt, ...) CORDON_PRINTF(5, 6);
/* Where character `at` (from 0) of a scalar's text stands in the file, if the text is on one line without escapes;
 * else the start of the scalar. */
void cordon_node_place(const struct cordon_document *doc, const struct cordon_node *node, size_t at, size_t *ret_line,
		       size_t *ret_column);

/* Allocates memory that is freed with the document; NULL without memory. For data that is made from the document. */
void *cordon_document_alloc(struct cordon_document *doc, size_t size);
/* "file:line:column" of a node, in the memory of the document. */
const char *cordon_document_where(struct cordon_document *doc, const struct cordon_node *node);

#endif
