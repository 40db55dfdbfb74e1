/* SPDX-License-Identifier: Apache-2.0 */
/* Asks one question about one path, and prints the answer as an object. */
#include "cli/verdict.h"
#include "cli/manager.h"

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

static json_t *text_or_null(const char *s)
{
	return s ? cordon_cli_json_text(s) : json_null();
}

json_t *cordon_asker_json(const struct cordon_asker *asker, const char *path, size_t len)
{
	static const char *const access_names[] = { "none", "read", "write" };
	const struct cordon_decision *d = &asker->decision;

	return json_pack("{s:o, s:s, s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:b}", "path", cordon_cli_json_bytes(path, len),
			 "op", cordon_asker_op(asker), "decision", cordon_verdict_name(d->verdict), "reason",
			 cordon_reason_name(d->reason), "access", access_names[d->access], "rule",
			 text_or_null(d->rule), "where", text_or_null(d->rule_where), "fence", text_or_null(d->fence),
			 "resolved", cordon_cli_json_text(d->resolved), "exists", (int)asker->resolved.exists);
}

cordon_op cordon_default_op(const struct cordon_policy *policy, const char *op)
{
	if (op)
		return cordon_streq(op, "write") ? CORDON_OP_WRITE : CORDON_OP_READ;
	return cordon_policy_has_write(policy) ? CORDON_OP_WRITE : CORDON_OP_READ;
}
