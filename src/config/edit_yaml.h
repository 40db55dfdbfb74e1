/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Edits of a YAML text that leave every other byte alone: comments, order, quotes and blank lines stay. An edit inserts or
 * deletes bytes at the places that the document gives; then the result is parsed again, and must hold exactly what the
 * old text held and the change. An edit that would change anything else fails.
 *
 *     struct cordon_yaml yaml = { 0 };
 *     r = cordon_yaml_begin(&yaml, "config.yaml", text, len, errors);
 *     r = cordon_yaml_put(&yaml, (const char *[]){ "a", "b" }, 2, json_string("c"), errors);
 *     ... yaml.text ...
 *     cordon_yaml_done(&yaml);
 */
#ifndef CORDON_CONFIG_EDIT_YAML_H
#define CORDON_CONFIG_EDIT_YAML_H

#include <jansson.h>

#include "base/buf.h"
#include "config/document.h"

struct cordon_yaml {
	const char *name;	     /* of the file, for messages */
	struct cordon_buf text;	     /* as it is now */
	struct cordon_document *doc; /* of this text; NULL when it has nothing but blanks and comments */
};
#define autoyaml CORDON_CLEANUP(cordon_yaml_done)

int cordon_yaml_begin(struct cordon_yaml *yaml, const char *name, const char *text, size_t len,
		      struct cordon_errors *errors);
void cordon_yaml_done(struct cordon_yaml *yaml);

/* The node at the end of a path of keys, or NULL. It is valid until the next edit. */
const struct cordon_node *cordon_yaml_get(const struct cordon_yaml *yaml, const char *const *keys, size_t n);

/* Sets what the path of keys leads to. Makes the mappings on the way that are missing or empty. Takes the reference. */
int cordon_yaml_put(struct cordon_yaml *yaml, const char *const *keys, size_t n, json_t *value,
		    struct cordon_errors *errors);
/* Puts a member into a mapping, or another value into the place of the one that it has. */
int cordon_yaml_put_in(struct cordon_yaml *yaml, const struct cordon_node *mapping, const char *key, json_t *value,
		       struct cordon_errors *errors);
/* Adds an item to the end of a list. Takes the reference. */
int cordon_yaml_append(struct cordon_yaml *yaml, const struct cordon_node *list, json_t *value,
		       struct cordon_errors *errors);
/* Replaces a value. Takes the reference. */
int cordon_yaml_replace(struct cordon_yaml *yaml, const struct cordon_node *node, json_t *value,
			struct cordon_errors *errors);
/* Removes a member of a mapping or an item of a list. Comments around it stay. */
int cordon_yaml_drop(struct cordon_yaml *yaml, const struct cordon_node *parent, const struct cordon_node *child,
		     struct cordon_errors *errors);

/* Whether a text has nothing but blanks and comments, which libyaml takes for no document. */
bool cordon_yaml_is_empty(const char *text, size_t len);

/* ---- yaml_text.c: values as text, and places in a text ---- */

/* A value on one line: {a: b, c: [d, "e f"]}. */
int cordon_yaml_write_flow(struct cordon_buf *out, const json_t *value);
/* A member of a mapping over several lines, each with `indent` blanks before it. */
int cordon_yaml_write_member(struct cordon_buf *out, size_t indent, const char *key, const json_t *value);
/* The same for an item of a list. */
int cordon_yaml_write_item(struct cordon_buf *out, size_t indent, const json_t *value);
/* A node as JSON in which every scalar is a string; NULL without memory. */
json_t *cordon_node_json(const struct cordon_node *node);
/* Where the text of a node ends. The end of a block collection may lie behind comments, that of its last value does not. */
size_t cordon_node_content_end(const struct cordon_document *doc, const struct cordon_node *node);
/* The beginning of the line that holds a byte, and of the line after it. */
size_t cordon_document_line(const struct cordon_document *doc, size_t at);
size_t cordon_document_next_line(const struct cordon_document *doc, size_t at);

#endif
