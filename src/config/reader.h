/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small readers that all configuration files share. Each checks that a node is what it must be, and reports an error at
 * the place of the node when it is not. A node that was refused before (CORDON_NODE_BAD) gets no second error.
 */
#ifndef CORDON_CONFIG_READER_H
#define CORDON_CONFIG_READER_H

#include "config/document.h"

#define CORDON_READER_WHOLE SIZE_MAX /* the error is not in a single character of a value */

struct cordon_reader {
	struct cordon_document *doc;
	struct cordon_errors *errors;
};

/* Reports an error that another module found in a value, at the value's place or at the character `at` of it. An error
 * of kind usage becomes one of kind config. Returns 0, so that the reading goes on, or -ENOMEM. */
int cordon_reader_refuse(const struct cordon_reader *reader, const struct cordon_node *node, struct cordon_error *err,
			 size_t at);
/* Whether the node is text. A JSON number is not text, a YAML scalar always is. */
bool cordon_reader_text(const struct cordon_reader *reader, const struct cordon_node *node, const char *what);
/* Whether the node is a list (CORDON_NODE_SEQUENCE) or a mapping. */
bool cordon_reader_collection(const struct cordon_reader *reader, const struct cordon_node *node, cordon_node_type type,
			      const char *what);
/* Whether the node is true or false, without quotes; *ret_value is which. */
bool cordon_reader_bool(const struct cordon_reader *reader, const struct cordon_node *node, const char *what,
			bool *ret_value);
/* Whether the node is a pattern of the grammar (policy/pattern.h); an error points at the wrong character. Returns -ENOMEM
 * without memory, 0 after an error, and 1 for a good pattern. */
int cordon_reader_pattern(const struct cordon_reader *reader, const struct cordon_node *node, const char *what);
/* "file:line:column" of the node; -ENOMEM. */
int cordon_reader_where(const struct cordon_reader *reader, const struct cordon_node *node, const char **ret_where);

#endif
