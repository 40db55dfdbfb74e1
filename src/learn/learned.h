/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a run used, and the policy file made of it (cordon learn). Feed cordon_learned_sight() as the observer's
 * callback; cordon_learned_text() then gives the text of a cordon.yaml whose rules were checked: every access that was
 * recorded, but for secrets and what was refused, is allowed by them.
 */
#ifndef CORDON_CLI_LEARNED_H
#define CORDON_CLI_LEARNED_H

#include "cli/run_session.h"
#include "policy/learn.h"

#define CORDON_LEARNED_SEARCH_MAX 200000 /* names that are looked at to find secrets in granted folders */
#define CORDON_LEARNED_SEARCH_MS 2000

struct cordon_learned {
	const struct cordon_policy *policy; /* of the run that is learned from */
	struct cordon_learn *inside;
	struct cordon_learn *outside; /* absolute paths without their first slash */
	struct cordon_learn *refused; /* inside, but protected or denied */
	struct cordon_learn_grants grants;
	bool patterns;
	bool truncated;		     /* there were more paths than can be remembered */
	bool unsearched;	     /* secrets that nobody used were not looked for everywhere */
	size_t n_secrets, n_outside; /* left out, once the text is made */
};

int cordon_learned_init(struct cordon_learned *learned, const struct cordon_policy *policy, bool patterns,
			struct cordon_error *err);
void cordon_learned_done(struct cordon_learned *learned);
void cordon_learned_sight(struct cordon_learned *learned, const struct cordon_sight *sight);

/* Adds secrets in the tree that the grants would open though nobody used them. */
int cordon_learned_find_secrets(struct cordon_learned *learned, struct cordon_error *err);

/* `output` is named in the text, or NULL. */
int cordon_learned_text(struct cordon_learned *learned, const struct cordon_run_session *run, const char *output,
			struct cordon_buf *ret_text, struct cordon_error *err);

#endif
