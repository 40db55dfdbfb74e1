/* SPDX-License-Identifier: Apache-2.0 */
/* Asks one question about one path or host, and explains the answer. */
#include "policy/asker.h"

#define SENTENCE_MAX (1u << 20)

void cordon_asker_init(struct cordon_asker *asker, const struct cordon_policy *policy, cordon_op op)
{
	asker->policy = policy;
	asker->op = op;
	cordon_resolver_init(&asker->resolver, &policy->root);
}

void cordon_asker_done(struct cordon_asker *asker)
{
	cordon_resolver_done(&asker->resolver);
}

void cordon_asker_refresh(struct cordon_asker *asker)
{
	cordon_resolver_refresh(&asker->resolver);
}

static void ask_host(struct cordon_asker *asker, const char *host, size_t len)
{
	asker->resolved.exists = false;
	if (!memchr(host, '\0', len) && cordon_policy_check_host(asker->policy, host, &asker->decision, NULL) == 0)
		return;
	asker->decision = (struct cordon_decision){ .verdict = CORDON_DENY, .reason = CORDON_REASON_UNRESOLVABLE };
}

void cordon_asker_ask(struct cordon_asker *asker, const char *path, size_t len)
{
	if (asker->connect) {
		ask_host(asker, path, len);
		return;
	}
	if (memchr(path, '\0', len)) {
		asker->resolved.place = CORDON_PLACE_UNRESOLVABLE;
		asker->resolved.exists = false;
		asker->resolved.path[0] = '\0';
	} else {
		cordon_resolver_ask(&asker->resolver, path, &asker->resolved);
	}
	cordon_policy_judge(asker->policy, &asker->resolved, asker->op, &asker->decision);
}

const char *cordon_asker_op(const struct cordon_asker *asker)
{
	return asker->connect ? "connect" : cordon_op_name(asker->op);
}

cordon_op cordon_default_op(const struct cordon_policy *policy, const char *op)
{
	if (op)
		return cordon_streq(op, "write") ? CORDON_OP_WRITE : CORDON_OP_READ;
	return cordon_policy_has_write(policy) ? CORDON_OP_WRITE : CORDON_OP_READ;
}

/* Whether the text is a host with its port, and no file has that name. */
static bool is_host(const struct cordon_policy *policy, const char *text)
{
	const char *colon = strrchr(text, ':');
	CORDON_UNCLEARED struct cordon_resolved found;
	struct cordon_net_rule rule;

	if (!colon || strchr(text, '/') || cordon_net_rule_parse(text, strlen(text), &rule, NULL) < 0)
		return false;
	cordon_resolve(&policy->root, text, &found);
	return !found.exists;
}

int cordon_policy_why(const struct cordon_policy *policy, const char *op, const char *text, struct cordon_why *ret_why,
		      struct cordon_error *err)
{
	struct cordon_asker *asker = &ret_why->asker;
	int r;

	ret_why->because = ret_why->remedy = (struct cordon_buf)CORDON_BUF(SENTENCE_MAX);
	asker->connect = op ? cordon_op_connects(op) : is_host(policy, text);
	if (asker->connect && (r = cordon_policy_check_host(policy, text, &asker->decision, err)) < 0)
		return r;
	cordon_asker_init(asker, policy, cordon_default_op(policy, op));
	cordon_asker_ask(asker, text, strlen(text));
	cordon_asker_done(asker);
	r = asker->connect
		    ? cordon_policy_explain_host(policy, &asker->decision, &ret_why->because, &ret_why->remedy)
		    : cordon_policy_explain(policy, &asker->decision, asker->op, &ret_why->because, &ret_why->remedy);
	return r < 0 ? cordon_fail_errno(err, r, "cannot explain %s", text) : 0;
}

void cordon_why_done(struct cordon_why *why)
{
	cordon_buf_done(&why->because);
	cordon_buf_done(&why->remedy);
}
