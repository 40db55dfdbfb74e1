/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The DNS messages that the run sends, and the answers to them: one question, at most one address. Pure; everything
 * that is parsed here was written by the agent.
 */
#ifndef CORDON_NET_DNS_H
#define CORDON_NET_DNS_H

#include "policy/net.h"

#define CORDON_DNS_HEADER 12
#define CORDON_DNS_ANSWER_MAX 512 /* an answer with one address is always shorter */
#define CORDON_DNS_TTL 60	  /* an address belongs to its name as long as the run lives, so this may be anything */

enum cordon_dns_type { CORDON_DNS_A = 1, CORDON_DNS_AAAA = 28 };
enum cordon_dns_rcode {
	CORDON_DNS_OK = 0,
	CORDON_DNS_FORMAT_ERROR = 1,
	CORDON_DNS_FAILED = 2,
	CORDON_DNS_NO_NAME = 3,
	CORDON_DNS_NOT_IMPLEMENTED = 4,
	CORDON_DNS_REFUSED = 5,
};

struct cordon_dns_query {
	uint16_t id;
	uint16_t type;
	bool recursion_desired;
	size_t question_len;		 /* bytes of the question behind the header, which the answer repeats */
	char name[CORDON_NET_NAME_SIZE]; /* clean; "" when it is no host name that a rule could allow */
};

/*
 * 0; -EBADMSG when it is no query, and nothing may be answered; -EINVAL or -EOPNOTSUPP when only an error can be
 * answered (FORMAT_ERROR, NOT_IMPLEMENTED): then ret_query has what the answer needs.
 */
int cordon_dns_parse(const uint8_t *message, size_t n, struct cordon_dns_query *ret_query);

/* Writes the answer: its code and, unless NULL, one address, which has the family that the question asked for. Returns
 * its length. `message` is what was parsed. */
size_t cordon_dns_answer(const uint8_t *message, const struct cordon_dns_query *query, enum cordon_dns_rcode rcode,
			 const struct cordon_net_address *address, uint8_t ret[static CORDON_DNS_ANSWER_MAX]);

#endif
