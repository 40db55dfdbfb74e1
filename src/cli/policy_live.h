/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asks questions about a policy in a real sandbox: one for all of them, in which cordon itself tries each thing.
 *
 * Nothing of the user's changes: the root is a copy-on-write view that is thrown away, files of shares are opened for writing
 * only where they exist and nothing is written, a file that is read is only opened, and a connection is closed at once. What can't be tried
 * so is not asked, and the answer says why.
 */
#ifndef CORDON_CLI_POLICY_LIVE_H
#define CORDON_CLI_POLICY_LIVE_H

#include "config/questions.h"
#include "recipe/recipe.h"

/* The name under which cordon is started inside, and becomes the program that tries. */
#define CORDON_LIVE_PROBE "cordon-policy-probe"

typedef enum cordon_live_state {
	CORDON_LIVE_NOT_ASKED,
	CORDON_LIVE_ALLOWED,
	CORDON_LIVE_REFUSED,
	CORDON_LIVE_NO_ANSWER, /* it failed for a reason that has nothing to do with rights */
} cordon_live_state;

struct cordon_live_answer {
	cordon_live_state state;
	const char *why_not; /* it was not asked */
};

/* What must be in a recipe before it is compiled. */
struct cordon_live_way {
	char program[CORDON_PATH_MAX];
	struct cordon_share share;
};

int cordon_live_prepare(struct cordon_live_way *live, struct cordon_recipe *recipe, struct cordon_error *err);
/* `recipe` has been compiled. `ret_answers` has one for each question. */
int cordon_live_ask(struct cordon_recipe *recipe, const struct cordon_questions *questions,
		    struct cordon_live_answer *ret_answers, struct cordon_error *err);

/* Inside: reads questions on standard input and writes one character for each. */
int cordon_live_probe(void);

#endif
