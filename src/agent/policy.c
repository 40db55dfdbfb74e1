/* SPDX-License-Identifier: Apache-2.0 */
/* The policy of an agent, through the one policy builder; and which of its settings have no effect. */
#include <stdio.h>

#include "agent/internal.h"
#include "config/policy_build.h"

bool cordon_agent_net_has_profile(const struct cordon_net_setting *net)
{
	bool profile = net->word && cordon_streq(net->word, CORDON_NET_WORD_PROFILE);

	for (size_t i = 0; i < net->allow.n; i++)
		profile |= cordon_streq(net->allow.items[i].text, CORDON_NET_WORD_PROFILE);
	return profile;
}

/* What counts of the setting: a file that is not trusted can narrow, and nothing else. */
static struct cordon_net_setting trusted_net(const struct cordon_agents *agents, const struct cordon_agent *agent)
{
	struct cordon_net_setting net = agent->net;

	if (agents->trusted)
		return net;
	net.n_inject = 0;
	if (cordon_agent_net_has_profile(&net))
		net = (struct cordon_net_setting){ .where = net.where, .word = CORDON_NET_WORD_NONE };
	return net;
}

int cordon_agent_policy(const struct cordon_agents *agents, const struct cordon_agent *agent,
			struct cordon_policy_file *profile, struct cordon_policy **ret_policy,
			struct cordon_errors *errors)
{
	const struct cordon_net_setting net = trusted_net(agents, agent);
	size_t n = agent->read.n + agent->write.n;
	autofree struct cordon_policy_rule *rules = calloc(n + 1, sizeof(*rules));
	struct cordon_policy_spec spec = { .root = agents->root.path,
					   .rules = rules,
					   .n_rules = n,
					   .profiles = &profile,
					   .n_profiles = profile ? 1 : 0,
					   .file_path = agents->path,
					   .net = &net,
					   .mode = CORDON_MODE_STRICT,
					   .reports_reads = true };
	struct cordon_error err = { 0 };
	int r;

	if (!rules) {
		cordon_fail_errno(&err, -ENOMEM, "cannot build the policy of %s", agent->name);
		return cordon_errors_add(errors, &err, NULL, 0, 0);
	}
	/* INVARIANT: an agent has a scope. A policy without grants would mean the whole repository. */
	if (!n)
		cordon_fail(&err, -EINVAL, CORDON_KIND_CONFIG, "the agent %s has no scope", agent->name);
	else if (profile && (profile->rw.n || profile->ro.n || profile->workspace.n))
		cordon_fail(&err, -EPERM, CORDON_KIND_POLICY_DENIED,
			    "the profile %s grants paths of the repository, which the scope of %s has to do",
			    agent->profile.text, agent->name);
	if (err.code)
		return cordon_errors_add(errors, &err, NULL, 0, 0);
	for (size_t i = 0; i < agent->read.n; i++)
		rules[i] = (struct cordon_policy_rule){ .kind = CORDON_RULE_READ,
							.text = agent->read.items[i].text,
							.where = agent->read.items[i].where };
	for (size_t i = 0; i < agent->write.n; i++)
		rules[agent->read.n + i] = (struct cordon_policy_rule){ .kind = CORDON_RULE_WRITE,
									.text = agent->write.items[i].text,
									.where = agent->write.items[i].where };
	r = cordon_policy_build(&spec, ret_policy, errors);
	if (r == 0)
		(*ret_policy)->no_editor_temps = !agent->editor_temps;
	return r;
}

void cordon_agent_notices(const struct cordon_agents *agents, const struct cordon_agent *agent,
			  void (*tell)(void *data, const char *where, const char *text), void *data)
{
	const struct {
		const char *key, *where;
		bool set;
	} keys[] = {
		{ "env_pass", agent->env_pass_where, agent->env_pass.n },
		{ "net", agent->net.where, cordon_agent_net_has_profile(&agent->net) || agent->net.n_inject },
		{ "profile", agent->profile.where, agent->profile.text },
		{ "best_effort", agent->best_effort_where, agent->best_effort },
	};
	char text[256];

	for (size_t i = 0; i < CORDON_ARRAY_SIZE(keys) && !agents->trusted; i++) {
		if (!keys[i].set)
			continue;
		snprintf(text, sizeof(text), "%s of %s has no effect: the file is not trusted; see 'cordon agent trust'",
			 keys[i].key, agent->name);
		tell(data, keys[i].where, text);
	}
}

static const struct cordon_agent_role roles[] = {
	{ "developer", "writes production code" },
	{ "qa", "writes and runs tests" },
	{ "architect", "designs, and writes specifications" },
	{ "reviewer", "reads code and specifications, and judges them" },
	{ "spec", "writes specifications" },
	{ "unknown", "says nothing about itself" },
};

const struct cordon_agent_role *cordon_agent_roles(size_t *ret_n)
{
	*ret_n = CORDON_ARRAY_SIZE(roles);
	return roles;
}
