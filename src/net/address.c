/* SPDX-License-Identifier: Apache-2.0 */
/* Which addresses are public, and the forms of addresses. */
#include <arpa/inet.h>
#include <stdio.h>

#include "net/helper.h"

struct range {
	uint8_t bytes[4];
	unsigned int bits;
};

/* Of IPv4. The ranges for documentation are public: nobody has them. */
static const struct range not_public[] = {
	{ { 0 }, 8 }, /* this network */
	{ { 10 }, 8 },
	{ { 100, 64 }, 10 }, /* shared by providers and clouds */
	{ { 127 }, 8 },
	{ { 169, 254 }, 16 }, /* link-local; metadata of clouds */
	{ { 172, 16 }, 12 },
	{ { 192, 0, 0 }, 24 },	 /* protocols; metadata of a cloud */
	{ { 192, 88, 99 }, 24 }, /* relays of 6to4 */
	{ { 192, 168 }, 16 },
	{ { 198, 18 }, 15 },	      /* measurements; labels of ours */
	{ { 168, 63, 129, 16 }, 32 }, /* metadata of a cloud */
	{ { 224 }, 4 },		      /* multicast */
	{ { 240 }, 4 },		      /* reserved, broadcast */
};

static bool v4_is_public(const uint8_t bytes[static 4])
{
	uint32_t address = (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];

	for (size_t i = 0; i < CORDON_ARRAY_SIZE(not_public); i++) {
		const uint8_t *b = not_public[i].bytes;
		uint32_t range = (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];

		if (((address ^ range) >> (32 - not_public[i].bits)) == 0)
			return false;
	}
	return true;
}

bool net_address_is_public(const struct cordon_net_address *address)
{
	static const uint8_t nat64[12] = { 0, 0x64, 0xff, 0x9b };
	const uint8_t *b = address->bytes;

	/* The last four bytes are an IPv4 address, which counts. */
	if (cordon_net_address_is_v4(address) || memcmp(b, nat64, sizeof(nat64)) == 0)
		return v4_is_public(b + 12);
	if ((b[0] & 0xe0) != 0x20)
		return false; /* only 2000::/3 is global */
	/* 6to4 and Teredo carry IPv4 addresses; 2001:2::/48 is for measurements, and for labels of ours. */
	if (b[0] == 0x20 && b[1] == 0x02)
		return false;
	return !(b[0] == 0x20 && b[1] == 0x01 && b[2] == 0 && (b[3] == 0 || b[3] == 2));
}

bool net_address_is_loopback(const struct cordon_net_address *address)
{
	static const struct cordon_net_address home6 = { { [15] = 1 } };

	return cordon_net_address_is_v4(address) ? address->bytes[12] == 127 : net_address_equal(address, &home6);
}

bool net_address_granted(const struct cordon_net_list *list, const struct cordon_net_address *address, uint16_t port)
{
	if (cordon_net_list_find_address(list, address, port))
		return true;
	return net_address_is_loopback(address) && cordon_net_list_find(list, "localhost", port);
}

bool net_address_equal(const struct cordon_net_address *a, const struct cordon_net_address *b)
{
	return memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}

void net_address_from(const struct sockaddr_storage *from, struct cordon_net_address *ret, uint16_t *ret_port)
{
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;

	*ret = (struct cordon_net_address){ 0 };
	*ret_port = 0;
	if (from->ss_family == AF_INET) {
		memcpy(&v4, from, sizeof(v4));
		ret->bytes[10] = ret->bytes[11] = 0xff;
		memcpy(ret->bytes + 12, &v4.sin_addr, 4);
		*ret_port = ntohs(v4.sin_port);
	} else if (from->ss_family == AF_INET6) {
		memcpy(&v6, from, sizeof(v6));
		memcpy(ret->bytes, &v6.sin6_addr, 16);
		*ret_port = ntohs(v6.sin6_port);
	}
}

socklen_t net_address_to(const struct cordon_net_address *address, uint16_t port, struct sockaddr_storage *ret)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(port) };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };

	*ret = (struct sockaddr_storage){ 0 };
	if (cordon_net_address_is_v4(address)) {
		memcpy(&v4.sin_addr, address->bytes + 12, 4);
		memcpy(ret, &v4, sizeof(v4));
		return sizeof(v4);
	}
	memcpy(&v6.sin6_addr, address->bytes, 16);
	memcpy(ret, &v6, sizeof(v6));
	return sizeof(v6);
}

void net_host_port(const char *host, uint16_t port, char ret[static CORDON_NET_RULE_SIZE])
{
	bool brackets = strchr(host, ':') != NULL;

	snprintf(ret, CORDON_NET_RULE_SIZE, "%s%.253s%s:%u", brackets ? "[" : "", host, brackets ? "]" : "", port);
}
