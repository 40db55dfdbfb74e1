/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Templates of PRDs: JSON files with {{name}} in their strings. A value is put into the string and the whole string is written
 * as JSON, so that no value can end it or add a key. Every other byte of the template stays.
 *
 * A name is a letter or '_', then letters, digits, '_' and '-'; blanks around it are allowed. "{{" that is not followed by a name
 * and "}}" stays as it is. Names of keys are not changed.
 */
#ifndef CORDON_CONFIG_TEMPLATE_H
#define CORDON_CONFIG_TEMPLATE_H

#include "base/buf.h"
#include "config/errors.h"

#define CORDON_TEMPLATE_VARS_MAX 256

struct cordon_template_var {
	const char *name;
	size_t n_name;
	const char *value; /* UTF-8 */
	bool used;	   /* set by filling */
};

/* "NAME=VALUE" to a variable that points into the text; kind usage. */
int cordon_template_var_parse(const char *text, struct cordon_template_var *ret_var, struct cordon_error *err);

/* Fills a template. `name` is for messages. A variable that is missing, and one that the template does not use, is an error;
 * all are found in one pass. `ret_text` (empty; its max bounds the result) gets the new text. */
int cordon_template_fill(const char *name, const char *text, size_t len, struct cordon_template_var *vars, size_t n,
			 struct cordon_buf *ret_text, struct cordon_errors *errors);

#endif
