/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the DNS queries that the agent sends, and the answers to them. */
#include <assert.h>

#include "net/dns.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct cordon_net_address address = { { 0x20, 1, 0xd, 0xb8, [15] = 1 } };
	struct cordon_dns_query query;
	uint8_t answer[CORDON_DNS_ANSWER_MAX];
	char again[CORDON_NET_NAME_SIZE];
	int r = cordon_dns_parse(data, size, &query);
	size_t n;

	if (r == -EBADMSG)
		return 0;
	assert(r == 0 ? query.question_len >= 5 && query.question_len <= size - CORDON_DNS_HEADER
		      : query.question_len == 0);
	if (r == 0 && query.name[0])
		assert(cordon_net_name_clean(query.name, strlen(query.name), again) == 0 &&
		       cordon_streq(query.name, again));
	n = cordon_dns_answer(data, &query, CORDON_DNS_OK, &address, answer);
	assert(n >= CORDON_DNS_HEADER && n <= sizeof(answer) && (answer[2] & 0x80));
	assert(memcmp(answer + CORDON_DNS_HEADER, data + CORDON_DNS_HEADER, query.question_len) == 0);
	return 0;
}
