/* SPDX-License-Identifier: Apache-2.0 */
/* One question about one path or host, as check, why and tree ask and print it. */
#ifndef CORDON_CLI_VERDICT_H
#define CORDON_CLI_VERDICT_H

#include "cli/cli.h"
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

/* Returns {"path","op","decision","reason","access","rule","where","resolved","exists"} of the last answer. */
json_t *cordon_asker_json(const struct cordon_asker *asker, const char *path, size_t len);

/* The name of the operation: "read", "write" or "connect". */
const char *cordon_asker_op(const struct cordon_asker *asker);

/* Whether --op has the value that asks about hosts. */
static inline bool cordon_op_connects(const char *op)
{
	return op && cordon_streq(op, "connect");
}

/* Returns the operation of a question that names none: write if the policy lets anything be written, else read. */
cordon_op cordon_default_op(const struct cordon_policy *policy, const char *op);

#endif
