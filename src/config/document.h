/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A configuration file as a tree in which every node knows its place: YAML through libyaml's events, JSON through
 * jansson (which judges it) and a scanner of ours (which finds the places). The same tree either way.
 *
 * A tree is immutable and owns all its memory; nodes live as long as it does. Scalars are text. Whoever reads one
 * says what it must be: `no`, `0x10` and `1e3` are never guessed to be anything.
 *
 * Refused: files over a size, nesting over a depth, anchors, aliases, tags, duplicate keys, keys that are not
 * scalars, more than one document, NUL and invalid UTF-8.
 */
#ifndef CORDON_CONFIG_TREE_H
#define CORDON_CONFIG_TREE_H

#include "config/errors.h"

#define CORDON_CONFIG_SIZE_MAX (1u << 20)
#define CORDON_CONFIG_DEPTH_MAX 32

typedef enum cordon_format { CORDON_FORMAT_YAML, CORDON_FORMAT_JSON } cordon_format;

typedef enum cordon_node_type {
	CORDON_NODE_SCALAR,
	CORDON_NODE_SEQUENCE,
	CORDON_NODE_MAPPING,
	CORDON_NODE_BAD, /* stands for what was refused (an alias); its error is in the list already */
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
	uint32_t line, column;		 /* 1-based, the column in characters */
	uint32_t start, end;		 /* bytes of the source, quotes and brackets included; the end of a YAML block
					  * collection may lie behind blanks and comments that follow it */
	uint32_t len;			 /* of `text` */
	uint32_t n;			 /* children */
	const char *text;		 /* scalars only: unquoted, no NUL inside, one behind it */
	const struct cordon_node *key;	 /* of a member of a mapping: its key, a scalar; else NULL */
	const struct cordon_node *first; /* children, in the order of the file */
	const struct cordon_node *next;
};

struct cordon_tree_chunk;

struct cordon_tree {
	const char *name; /* the file, for messages */
	cordon_format format;
	const char *source;
	size_t len;
	const struct cordon_node *root;
	struct cordon_tree_chunk *memory;
};

/*
 * Reads and parses a file: .yaml and .yml are YAML, .json is JSON, anything else is refused. A tree that is whole but
 * for what can be passed over (duplicate keys, tags, anchors, aliases) is returned with 0 and those errors in the
 * list, so that the caller finds the faults of the rest too: an empty list, not 0, means a good file.
 */
int cordon_tree_load(const char *path, struct cordon_tree **ret_tree, struct cordon_errors *errors);
/* The same for text in memory, which is copied; `max_depth` counts collections inside each other. */
int cordon_tree_parse(const char *name, cordon_format format, const char *text, size_t len, size_t max_depth,
		      struct cordon_tree **ret_tree, struct cordon_errors *errors);
struct cordon_tree *cordon_tree_free(struct cordon_tree *tree);
void cordon_tree_freep(struct cordon_tree **tree);
#define autotree CORDON_CLEANUP(cordon_tree_freep)

/* The member of a mapping by name, or NULL. */
const struct cordon_node *cordon_node_get(const struct cordon_node *mapping, const char *name);
/* "a list", "text", "a number", ... as a message calls it. */
const char *cordon_node_describe(const struct cordon_tree *tree, const struct cordon_node *node);

/* Adds an error of kind `config` at `node` and returns -EINVAL. `hint` may be NULL; it is no format. */
int cordon_node_fail(const struct cordon_tree *tree, const struct cordon_node *node, struct cordon_errors *errors,
		     const char *hint, const char *fmt, ...) CORDON_PRINTF(5, 6);
/* Where character `at` (0-based) of a scalar's text stands in the file, when the text was written out plainly on one
 * line; else the start of the scalar. */
void cordon_node_place(const struct cordon_tree *tree, const struct cordon_node *node, size_t at, size_t *ret_line,
		       size_t *ret_column);

/* Memory that is freed with the tree; NULL without memory. What is made of a tree may live here too. */
void *cordon_tree_alloc(struct cordon_tree *tree, size_t size);
/* "file:line:column" of a node, in the tree's memory. */
const char *cordon_tree_where(struct cordon_tree *tree, const struct cordon_node *node);

#endif
