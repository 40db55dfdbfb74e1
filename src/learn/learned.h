/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a run used, and the policy file made of it (cordon learn). Pass each access that the run's observer reports
 * to cordon_learned_sight(). cordon_learned_text() then writes a cordon.yaml whose rules were checked: they allow
 * every recorded access, except secrets and what was refused.
 */
#ifndef CORDON_LEARN_LEARNED_H
#define CORDON_LEARN_LEARNED_H

#include "config/policy_build.h"
#include "config/profile.h"
#include "learn/learn.h"

#define CORDON_LEARNED_SEARCH_MAX 200000 /* names that are read to find secrets in granted folders */
#define CORDON_LEARNED_SEARCH_MS 2000

struct cordon_learned {
	const struct cordon_policy *policy; /* of the run that is learned from */
	struct cordon_learn *inside;
	struct cordon_learn *outside; /* absolute paths without their first slash */
	struct cordon_learn *refused; /* inside, but protected or denied */
	struct cordon_learn_grants grants;
	struct cordon_net_list used;  /* the hosts of the run's list that it connected to */
	struct cordon_net_list hosts; /* that were asked for and refused, because the run's list does not have them */
	bool patterns;
	bool truncated;		     /* there were more paths than can be stored */
	bool unsearched;	     /* the search for unused secrets did not cover everything */
	size_t n_secrets, n_outside; /* how many were left out; set when the text is made */
};

/* The settings of the run, as far as the policy file repeats them. */
struct cordon_learned_from {
	const struct cordon_run_spec *run;
	const struct cordon_policy_rule *rules; /* the user's rules: what to deny, to protect, or not to protect */
	size_t n_rules;
	bool no_default_protection;
	bool shares;				  /* directories of the host were shared */
	const struct cordon_profile_use *program; /* what it takes to show the program, if it is no part of the system; or NULL */
	const char *profiles;			  /* the profiles that were used, with commas; or NULL */
	const char *output;			  /* the file for the text, which the text mentions; or NULL */
};

int cordon_learned_init(struct cordon_learned *learned, const struct cordon_policy *policy, bool patterns,
			struct cordon_error *err);
void cordon_learned_done(struct cordon_learned *learned);
void cordon_learned_sight(struct cordon_learned *learned, const struct cordon_sight *sight);

/* Adds a host that the run connected to, or that its list refused, in the form of a rule. */
void cordon_learned_host(struct cordon_learned *learned, const char *rule, bool used);

int cordon_learned_text(struct cordon_learned *learned, const struct cordon_learned_from *from,
			struct cordon_buf *ret_text, struct cordon_error *err);

#endif
