/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table of questions about a policy with the answers that are expected, for `cordon policy test`:
 *
 *     version: 1
 *     questions:
 *       - allow write src/a.ts
 *       - deny read .env
 *       - warn write notes.md         # permissive mode lets it through and warns
 *       - deny connect evil.example   # HOST[:PORT]
 *
 * What follows the operation, to the end of the text, is the path or the host. All errors are found in one pass.
 */
#ifndef CORDON_CONFIG_QUESTIONS_H
#define CORDON_CONFIG_QUESTIONS_H

#include "config/document.h"

#define CORDON_QUESTIONS_MAX 10000

struct cordon_question {
	cordon_verdict expected;
	cordon_op op;
	bool connect;	  /* the subject is a host, and `op` means nothing */
	const char *text; /* as it was written: all three words */
	const char *subject;
	const char *where; /* file:line:column */
};

struct cordon_questions {
	struct cordon_document *doc; /* owns all texts */
	struct cordon_question *items;
	size_t n;
};

int cordon_questions_load(const char *path, struct cordon_questions *ret, struct cordon_errors *errors);
int cordon_questions_parse(const char *name, cordon_format format, const char *text, size_t len,
			   struct cordon_questions *ret, struct cordon_errors *errors);
void cordon_questions_done(struct cordon_questions *questions);

#endif
