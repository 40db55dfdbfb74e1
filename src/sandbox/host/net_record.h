/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What cordon-net and the supervisor tell each other over a SOCK_SEQPACKET socket: the supervisor sends a new list of
 * rules as text (cordon_net_list_text()), cordon-net sends records. When the supervisor ends its side, cordon-net sends
 * what it has not told yet, and exits.
 */
#ifndef CORDON_SANDBOX_HOST_NET_RECORD_H
#define CORDON_SANDBOX_HOST_NET_RECORD_H

#include "policy/net.h"

#define CORDON_NET_CONFIG_MAX ((size_t)1 << 20)

enum cordon_net_record_kind {
	CORDON_NET_FAILED = 1, /* it can't begin: text says why */
	CORDON_NET_REFUSED,    /* an attempt of the run */
	CORDON_NET_LIMIT,      /* a bound was reached: text is its name, limit its value */
	CORDON_NET_UNTOLD,     /* more refusals, which are not reported one by one: limit says how many */
	CORDON_NET_REACHED, /* while learning: text is a host and port that the list allows, and that was connected to */
};

struct cordon_net_record {
	uint32_t kind;
	uint32_t reason;  /* REFUSED: cordon_reason */
	uint32_t resolve; /* REFUSED: a name was asked for; else a connection */
	uint32_t limit;
	char text[CORDON_NET_RULE_SIZE]; /* REFUSED, REACHED: "host:port", or a name */
	char rule[CORDON_NET_RULE_SIZE]; /* REFUSED: the rule that would allow it, or "" */
};

#endif
