/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settings of other sandboxes as a policy file, and a report that accounts for every line of theirs. What can't be said is made
 * stricter where that is possible, and named.
 */
#ifndef CORDON_CONFIG_IMPORT_H
#define CORDON_CONFIG_IMPORT_H

#include <jansson.h>

#include "base/buf.h"
#include "config/errors.h"

#define CORDON_IMPORT_LINES_MAX 10000

typedef enum cordon_import_from {
	CORDON_IMPORT_SRT,    /* sandbox-runtime: JSON */
	CORDON_IMPORT_CODEX,  /* config.toml */
	CORDON_IMPORT_CLAUDE, /* settings.json of Claude Code */
} cordon_import_from;

typedef enum cordon_import_verdict {
	CORDON_IMPORT_SAME,
	CORDON_IMPORT_STRICTER,
	CORDON_IMPORT_WEAKER,
	CORDON_IMPORT_NONE, /* not enforceable: it is about something else than access, or the kernel can't see it */
	CORDON_IMPORT__MAX
} cordon_import_verdict;

/* One value of theirs. */
struct cordon_import_line {
	char *key;	       /* "network.allowedDomains"; members of a list have the key of the list */
	char *value;	       /* as text; "[]" and "{}" for empty ones */
	uint32_t line, column; /* 0: a default, which nobody wrote */
	cordon_import_verdict verdict;
	char *became; /* of the policy, or NULL */
	char *why;    /* unless it is the same */
};

struct cordon_import {
	struct cordon_import_line *lines;
	size_t n, space;
	json_t *policy; /* the keys of a policy file */
};

void cordon_import_done(struct cordon_import *import);
/* Adds a value; copies everything. */
int cordon_import_add(struct cordon_import *import, const char *key, const char *value, uint32_t line, uint32_t column);

/* Reads a text and makes the policy. `name` is for messages, `root` an absolute path, which paths of theirs may lie in. */
int cordon_import_read(cordon_import_from from, const char *name, const char *text, size_t n, const char *root,
		       struct cordon_import *ret_import, struct cordon_errors *errors);
/* Appends the policy as YAML. */
int cordon_import_yaml(const struct cordon_import *import, struct cordon_buf *ret_text);
/* "same", "stricter", "weaker", "not enforceable" */
const char *cordon_import_verdict_name(cordon_import_verdict verdict);

/* ---- toml.c ---- */

/*
 * Reads TOML as far as settings use it, and adds every value: tables and arrays of tables, dotted and quoted keys, strings of all four
 * kinds, arrays, inline tables; numbers, dates and booleans as the text that they are. A key that is given twice is an error.
 */
int cordon_toml_read(const char *name, const char *text, size_t n, struct cordon_import *import,
		     struct cordon_errors *errors);

#endif
