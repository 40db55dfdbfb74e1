/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trust in a file of agents: a record in state/trust that a person has seen this content at this path. A file that has
 * changed since, by one byte, is not trusted.
 */
#ifndef CORDON_AGENT_TRUST_H
#define CORDON_AGENT_TRUST_H

#include "agent/agent.h"

/* False also when it cannot be found out. */
bool cordon_agents_trusted(const struct cordon_agents *agents);
/* Records trust in the content that was read, or removes the record. Sets agents->trusted. */
int cordon_agents_trust(struct cordon_agents *agents, bool trust, struct cordon_error *err);

#endif
