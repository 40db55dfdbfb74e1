/* SPDX-License-Identifier: Apache-2.0 */
/* What a policy says about a host, and why. */
#include "base/setting.h"
#include "base/text.h"
#include "policy/policy.h"

int cordon_policy_allow_hosts(struct cordon_policy *policy, const char *hosts, struct cordon_error *err)
{
	return cordon_net_list_parse(&policy->net, hosts, NULL, err);
}

static const struct cordon_net_rule *find(const struct cordon_net_list *list, const struct cordon_net_rule *asked)
{
	const struct cordon_net_rule *found;

	if (asked->kind != CORDON_NET_KIND_ADDRESS)
		return cordon_net_list_find(list, asked->name, asked->port);
	found = cordon_net_list_find_address(list, &asked->address, asked->port);
	return found || !cordon_net_address_is_localhost(&asked->address) ? found : cordon_net_list_find(list, "localhost", asked->port);
}

int cordon_policy_check_host(const struct cordon_policy *policy, const char *host, struct cordon_decision *ret_decision,
			     struct cordon_error *err)
{
	const struct cordon_net_rule *found;
	struct cordon_net_rule asked;
	int r = cordon_net_rule_parse(host, strlen(host), &asked, err);

	if (r < 0)
		return r;
	if (asked.kind == CORDON_NET_KIND_WILDCARD) {
		cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "`%s` is more than one host", host);
		cordon_error_hint(err, "ask about one of them");
		return -EINVAL;
	}
	found = find(&policy->net, &asked);
	*ret_decision = (struct cordon_decision){ .verdict = CORDON_ALLOW, .reason = CORDON_REASON_GRANT };
	/* The question is about the host and port; how the stream is looked at is the rule's business. */
	asked.tcp = false;
	cordon_net_rule_text(&asked, ret_decision->resolved);
	if (!policy->net.listed)
		return 0;
	if (found) {
		ret_decision->rule = found->text;
		ret_decision->rule_where = found->where;
	} else {
		ret_decision->verdict = CORDON_DENY;
		ret_decision->reason = CORDON_REASON_NO_HOST;
		if (policy->fence_net.listed && !find(&policy->fence_net, &asked))
			ret_decision->fence = policy->fence_net_name;
	}
	return 0;
}

static int explain_allowed(const struct cordon_decision *d, struct cordon_buf *ret_text, struct cordon_buf *ret_remedy)
{
	int r;

	if (!d->rule) {
		r = cordon_buf_addf(ret_text, "%s can be reached: the run has the network of the host, all of it",
				    d->resolved);
		return r < 0 ? r
			     : cordon_buf_addf(ret_remedy, "%s with the hosts that are needed, or %s none",
					       cordon_setting_name(CORDON_SETTING_NET),
					       cordon_setting_name(CORDON_SETTING_NET));
	}
	r = cordon_buf_addf(ret_text, "%s is allowed by `%s`", d->resolved, d->rule);
	if (r == 0 && d->rule_where) {
		r = cordon_buf_adds(ret_text, " (");
		if (r == 0)
			r = cordon_text_escape(ret_text, d->rule_where, strlen(d->rule_where));
		if (r == 0)
			r = cordon_buf_adds(ret_text, ")");
	}
	return r < 0 ? r : cordon_buf_addf(ret_remedy, "remove `%s` from the list", d->rule);
}

int cordon_policy_explain_host(const struct cordon_policy *policy, const struct cordon_decision *decision,
			       struct cordon_buf *ret_text, struct cordon_buf *ret_remedy)
{
	int r;

	if (decision->verdict == CORDON_ALLOW)
		return explain_allowed(decision, ret_text, ret_remedy);
	if (cordon_net_list_is_none(&policy->net))
		r = cordon_buf_addf(ret_text, "%s can't be reached: the run has no network", decision->resolved);
	else
		r = cordon_buf_addf(ret_text, "no rule of the list%s allows %s", decision->fence ? " of the fence" : "",
				    decision->resolved);
	if (r == 0 && decision->fence) {
		r = cordon_buf_adds(ret_remedy, "widen the fence ");
		return r < 0 ? r : cordon_text_escape(ret_remedy, decision->fence, strlen(decision->fence));
	}
	return r < 0 ? r
		     : cordon_buf_addf(ret_remedy, "%s '%s'", cordon_setting_name(CORDON_SETTING_NET),
				       decision->resolved);
}
