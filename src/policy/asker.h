/* SPDX-License-Identifier: Apache-2.0 */
/* One question about one path or host, as check, why and the page ask it. */
#ifndef CORDON_POLICY_ASKER_H
#define CORDON_POLICY_ASKER_H

#include "policy/policy.h"

/* Reused from question to question: it is large, and the resolver remembers directories. */
struct cordon_asker {
	const struct cordon_policy *policy;
	cordon_op op;
	bool connect; /* the questions are about hosts, not paths */
	struct cordon_resolver resolver;
	struct cordon_resolved resolved;
	struct cordon_decision decision;
};

void cordon_asker_init(struct cordon_asker *asker, const struct cordon_policy *policy, cordon_op op);
void cordon_asker_done(struct cordon_asker *asker);
/* Forgets what the resolver has read. Call it before each batch of questions. */
void cordon_asker_refresh(struct cordon_asker *asker);
/* Fills in `resolved` and `decision`. A path with a NUL inside can't exist; it is refused and never cut. So is what is no
 * host. */
void cordon_asker_ask(struct cordon_asker *asker, const char *path, size_t len);
/* The name of the operation: "read", "write" or "connect". */
const char *cordon_asker_op(const struct cordon_asker *asker);

/* Whether the name of an operation, which may be NULL, is the one that asks about hosts. */
static inline bool cordon_op_connects(const char *op)
{
	return op && cordon_streq(op, "connect");
}

/* Returns the operation of a question that names none: write if the policy lets anything be written, else read. */
cordon_op cordon_default_op(const struct cordon_policy *policy, const char *op);

/* An answer with its reasons: one sentence that says what decided, and one that says what to change for the other answer. Both are
 * escaped. */
struct cordon_why {
	struct cordon_asker asker; /* has the answer; can't be asked again */
	struct cordon_buf because, remedy;
};

/*
 * Asks about `text` and explains the answer. `op` is "read", "write", "connect" or NULL: then a text that reads HOST:PORT, and is
 * the name of no file, is a host. kind usage for what is no host. The caller frees the answer, also after a failure.
 */
int cordon_policy_why(const struct cordon_policy *policy, const char *op, const char *text, struct cordon_why *ret_why,
		      struct cordon_error *err);
void cordon_why_done(struct cordon_why *why);
#define autowhy CORDON_CLEANUP(cordon_why_done)

#endif
