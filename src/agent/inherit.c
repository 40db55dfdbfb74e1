/* SPDX-License-Identifier: Apache-2.0 */
/* `extends`: fills in what an agent has from another one, and refuses what would widen that. */
#include "agent/internal.h"

struct inheriting {
	struct cordon_agents *agents;
	struct cordon_errors *errors;
	unsigned char *seen; /* per agent: 0 not yet, 1 on the way, 2 done */
};

static struct cordon_agent *parent_of(const struct cordon_agents *agents, const struct cordon_agent *agent)
{
	for (size_t i = 0; agent->extends.text && i < agents->n; i++)
		if (agents->items[i].name && strcasecmp(agents->items[i].name, agent->extends.text) == 0)
			return &agents->items[i];
	return NULL;
}

static void refuse(const struct inheriting *h, const struct cordon_agent *agent, const char *key, const char *why)
{
	const struct cordon_node *node = cordon_node_get(agent->node, key);

	cordon_node_fail(h->agents->doc, node ? node : agent->node, h->errors,
			 "an agent that extends another may only narrow it", "%s is wider than that of %s: %s", key,
			 agent->extends.text, why);
}

/* Takes numbers, words and flags of the parent where there are none. */
static void inherit_values(const struct inheriting *h, struct cordon_agent *agent, const struct cordon_agent *parent)
{
	for (cordon_recipe_id id = 0; id < CORDON_RECIPE__MAX; id++) {
		const char *key = cordon_recipe_rows[id].agent, *why = NULL;

		if (!key)
			continue;
		if (!agent->values.where[id]) {
			agent->values.of[id] = parent->values.of[id];
			agent->values.where[id] = parent->values.where[id];
		} else if (!cordon_recipe_narrow_value(&agent->values, &parent->values, id, &why)) {
			refuse(h, agent, cordon_recipe_limit(key) ? "limits" : key, why);
		}
	}
}

static bool lists(const struct cordon_setting_list *list, const char *text)
{
	for (size_t i = 0; i < list->n; i++)
		if (cordon_streq(list->items[i].text, text))
			return true;
	return false;
}

static void inherit_names(const struct inheriting *h, struct cordon_agent *agent, const struct cordon_agent *parent)
{
	if (!agent->env_pass_where) {
		agent->env_pass = parent->env_pass;
		agent->env_pass_where = parent->env_pass_where;
		return;
	}
	for (size_t i = 0; i < agent->env_pass.n; i++)
		if (!lists(&parent->env_pass, agent->env_pass.items[i].text))
			refuse(h, agent, "env_pass", agent->env_pass.items[i].text);
}

static void inherit_net(const struct inheriting *h, struct cordon_agent *agent, const struct cordon_agent *parent)
{
	const struct cordon_net_list nothing = { .listed = true };
	struct cordon_net_list inner = { 0 }, outer = { 0 };
	struct cordon_error err = { 0 };

	if (!agent->net.where) {
		agent->net = parent->net;
		return;
	}
	/* Both may mean the hosts of a profile, which is the same one or was refused. */
	if (agent->net.word && parent->net.word && cordon_streq(agent->net.word, parent->net.word))
		return;
	if (cordon_net_setting_list(&agent->net, &nothing, &inner, &err) < 0 ||
	    cordon_net_setting_list(&parent->net, &nothing, &outer, &err) < 0 ||
	    cordon_net_list_within(&inner, &outer, &err) < 0)
		refuse(h, agent, "net", err.message);
	else if (cordon_agent_net_has_profile(&agent->net) && outer.listed)
		refuse(h, agent, "net", "the hosts of the profile are not in it");
	cordon_net_list_done(&inner);
	cordon_net_list_done(&outer);
}

/* The variables of the parent come first, so that those of the agent replace them. */
static int inherit_env(const struct inheriting *h, struct cordon_agent *agent, const struct cordon_agent *parent)
{
	size_t n = parent->n_env + agent->n_env;
	struct cordon_env_setting *env = cordon_document_alloc(h->agents->doc, (n + 1) * sizeof(*env));

	if (!env)
		return -ENOMEM;
	if (parent->n_env)
		memcpy(env, parent->env, parent->n_env * sizeof(*env));
	if (agent->n_env)
		memcpy(env + parent->n_env, agent->env, agent->n_env * sizeof(*env));
	agent->env = env;
	agent->n_env = n;
	return 0;
}

static int take_over(const struct inheriting *h, struct cordon_agent *agent, const struct cordon_agent *parent)
{
	if (!agent->scope_where) {
		agent->read = parent->read;
		agent->write = parent->write;
		agent->scope_where = parent->scope_where;
	}
	if (!cordon_node_get(agent->node, "role"))
		agent->role = parent->role;
	agent->description = agent->description ? agent->description : parent->description;
	agent->model = agent->model ? agent->model : parent->model;
	agent->instructions = agent->instructions ? agent->instructions : parent->instructions;
	agent->command = agent->command ? agent->command : parent->command;
	inherit_values(h, agent, parent);
	inherit_names(h, agent, parent);
	inherit_net(h, agent, parent);
	if (!agent->profile.text)
		agent->profile = parent->profile;
	else if (!parent->profile.text || !cordon_streq(agent->profile.text, parent->profile.text))
		refuse(h, agent, "profile", parent->profile.text ? parent->profile.text : "that has none");
	return inherit_env(h, agent, parent);
}

/* Handles the parents first. The recursion ends at a cycle, and is at most as deep as there are agents. */
static int inherit(struct inheriting *h, size_t index)
{
	struct cordon_agent *agent = &h->agents->items[index], *parent = parent_of(h->agents, agent);
	const struct cordon_agent *nearest = NULL;
	struct cordon_error err = { 0 };
	int r = 0;

	if (h->seen[index] == 2 || !agent->extends.text) {
		h->seen[index] = 2;
		return 0;
	}
	if (!parent) {
		cordon_agents_get(h->agents, agent->extends.text, &nearest, &err);
		err.kind = CORDON_KIND_CONFIG;
		cordon_errors_add(h->errors, &err, h->agents->doc->name, agent->extends.line, agent->extends.column);
		h->seen[index] = 2;
		return 0;
	}
	if (h->seen[index] == 1) {
		cordon_node_fail(h->agents->doc, cordon_node_get(agent->node, "extends"), h->errors, NULL,
				 "the agent %s extends itself, over others", agent->name ? agent->name : "");
		return 0;
	}
	h->seen[index] = 1;
	r = inherit(h, (size_t)(parent - h->agents->items));
	if (r == 0 && h->seen[index] == 1)
		r = take_over(h, agent, parent);
	h->seen[index] = 2;
	return r;
}

int cordon_agents_inherit(struct cordon_agents *agents, struct cordon_errors *errors)
{
	autofree unsigned char *seen = calloc(agents->n + 1, 1);
	struct inheriting h = { .agents = agents, .errors = errors, .seen = seen };
	int r = seen ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < agents->n; i++)
		r = inherit(&h, i);
	return r;
}

/* ---- scopes ---- */

static int scope_of(const struct cordon_agents *agents, const struct cordon_agent *agent,
		    struct cordon_policy **ret_policy, struct cordon_error *err)
{
	struct cordon_policy *policy CORDON_CLEANUP(cordon_policy_freep) = NULL;
	int r = cordon_policy_new(agents->root.path, &policy, err);

	for (size_t i = 0; r == 0 && i < agent->read.n; i++)
		r = cordon_policy_add_grant(policy, agent->read.items[i].text, CORDON_ACCESS_READ, NULL, err);
	for (size_t i = 0; r == 0 && i < agent->write.n; i++)
		r = cordon_policy_add_grant(policy, agent->write.items[i].text, CORDON_ACCESS_WRITE, NULL, err);
	if (r == 0)
		*ret_policy = cordon_steal_ptr(&policy);
	return r;
}

void cordon_agents_check_scopes(const struct cordon_agents *agents, struct cordon_errors *errors)
{
	for (size_t i = 0; i < agents->n; i++) {
		const struct cordon_agent *agent = &agents->items[i], *parent = parent_of(agents, agent);
		struct cordon_policy *own CORDON_CLEANUP(cordon_policy_freep) = NULL;
		struct cordon_policy *outer CORDON_CLEANUP(cordon_policy_freep) = NULL;
		const struct cordon_node *node = cordon_node_get(agent->node, "scope");
		struct cordon_error err = { 0 };

		/* A scope of which no pattern is right has been refused, and would count as the whole root here. */
		if (!parent || !node || !(agent->read.n + agent->write.n) || !(parent->read.n + parent->write.n))
			continue;
		if (scope_of(agents, agent, &own, &err) < 0 || scope_of(agents, parent, &outer, &err) < 0)
			cordon_errors_add(errors, &err, NULL, 0, 0);
		else if (cordon_policy_within(own, outer, &err) < 0)
			cordon_node_fail(agents->doc, node, errors, "an agent that extends another may only narrow it",
					 "scope is wider than that of %s: %s", agent->extends.text, err.message);
	}
}
