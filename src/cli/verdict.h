/* SPDX-License-Identifier: Apache-2.0 */
/* One question about one path, as check, why and tree ask and print it. */
#ifndef CORDON_CLI_VERDICT_H
#define CORDON_CLI_VERDICT_H

#include "cli/cli.h"
#include "policy/policy.h"

/* Reused from question to question: it is large, and the resolver remembers directories. */
struct cordon_asker {
	const struct cordon_policy *policy;
	cordon_op op;
	struct cordon_resolver resolver;
	struct cordon_resolved resolved;
	struct cordon_decision decision;
};

void cordon_asker_init(struct cordon_asker *asker, const struct cordon_policy *policy, cordon_op op);
void cordon_asker_done(struct cordon_asker *asker);
/* Forgets what the resolver has read. Call it before each batch of questions. */
void cordon_asker_refresh(struct cordon_asker *asker);
/* Fills in `resolved` and `decision`. A path with a NUL inside can't exist; it is refused and never cut. */
void cordon_asker_ask(struct cordon_asker *asker, const char *path, size_t len);

/* Returns {"path","op","decision","reason","access","rule","where","resolved","exists"} of the last answer. */
json_t *cordon_asker_json(const struct cordon_asker *asker, const char *path, size_t len);

/* Returns the operation of a question that names none: write if the policy lets anything be written, else read. */
cordon_op cordon_default_op(const struct cordon_policy *policy, const char *op);

#endif
