/* SPDX-License-Identifier: Apache-2.0 */
/* Which settings of an agent have an effect, and the roles that there are. */
#include <stdio.h>

#include "agent/internal.h"

bool cordon_agent_net_has_profile(const struct cordon_net_setting *net)
{
	bool profile = net->word && cordon_streq(net->word, CORDON_NET_WORD_PROFILE);

	for (size_t i = 0; i < net->allow.n; i++)
		profile |= cordon_streq(net->allow.items[i].text, CORDON_NET_WORD_PROFILE);
	return profile;
}

struct cordon_net_setting cordon_agent_net(const struct cordon_agents *agents, const struct cordon_agent *agent)
{
	struct cordon_net_setting net = agent->net;

	if (agents->trusted)
		return net;
	net.n_inject = 0;
	if (cordon_agent_net_has_profile(&net))
		net = (struct cordon_net_setting){ .where = net.where, .word = CORDON_NET_WORD_NONE };
	return net;
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
		{ "best_effort", agent->values.where[CORDON_RECIPE_BEST_EFFORT],
		  agent->values.of[CORDON_RECIPE_BEST_EFFORT] },
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
