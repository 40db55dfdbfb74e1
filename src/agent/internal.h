/* SPDX-License-Identifier: Apache-2.0 */
/* What the source files of agent/ share. */
#ifndef CORDON_AGENT_INTERNAL_H
#define CORDON_AGENT_INTERNAL_H

#include "agent/agent.h"
#include "config/reader.h"

/* Reads the whole document; agents->items and agents->n are set. Values that were inherited are not filled in. */
int cordon_agents_read(struct cordon_agents *agents, struct cordon_errors *errors);
/* Fills in what agents have from those that they extend, and refuses what widens, except scopes. */
int cordon_agents_inherit(struct cordon_agents *agents, struct cordon_errors *errors);
/* Refuses a scope that is wider than the one it extends. Needs the root. */
void cordon_agents_check_scopes(const struct cordon_agents *agents, struct cordon_errors *errors);

/* What counts of the agent's `net`: a file that is not trusted can narrow, and nothing else. */
struct cordon_net_setting cordon_agent_net(const struct cordon_agents *agents, const struct cordon_agent *agent);
/* Whether the setting means the hosts of a profile, which has no effect without trust either. */
bool cordon_agent_net_has_profile(const struct cordon_net_setting *net);

#endif
