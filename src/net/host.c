/* SPDX-License-Identifier: Apache-2.0 */
/* Asks the kernel whether a service of the host has an address of its loopback. Nothing is connected to. */
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <sys/socket.h>

#include "net/helper.h"

struct question {
	struct nlmsghdr header;
	struct inet_diag_req_v2 of;
};

static int diag = -1; /* a socket in the network of the host */

void net_host_begin(void)
{
	diag = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
}

static void put(const struct cordon_net_address *address, bool v4, __be32 ret[4])
{
	memcpy(ret, address->bytes + (v4 ? 12 : 0), v4 ? 4 : 16);
}

/* For UDP the kernel takes the two ends of the question for each other, in some versions. */
static bool ask(const struct cordon_net_address *address, uint16_t port, bool udp, bool other_end)
{
	bool v4 = cordon_net_address_is_v4(address);
	struct question question = { .header = { .nlmsg_len = sizeof(question),
						 .nlmsg_type = SOCK_DIAG_BY_FAMILY,
						 .nlmsg_flags = NLM_F_REQUEST },
				     .of = { .sdiag_family = v4 ? AF_INET : AF_INET6,
					     .sdiag_protocol = udp ? IPPROTO_UDP : IPPROTO_TCP,
					     .idiag_states = ~0u,
					     .id = { .idiag_cookie = { INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE } } } };
	struct inet_diag_sockid *id = &question.of.id;
	CORDON_UNCLEARED uint8_t answer[1024];
	struct nlmsghdr header;

	put(address, v4, id->idiag_src);
	put(address, v4, id->idiag_dst);
	*(other_end ? &id->idiag_dport : &id->idiag_sport) = htons(port);
	if (send(diag, &question, sizeof(question), MSG_DONTWAIT) < 0 ||
	    recv(diag, answer, sizeof(answer), MSG_DONTWAIT) < (ssize_t)sizeof(header))
		return false;
	memcpy(&header, answer, sizeof(header));
	return header.nlmsg_type == SOCK_DIAG_BY_FAMILY;
}

bool net_host_has(const struct cordon_net_address *address, uint16_t port, bool udp)
{
	return diag >= 0 && (ask(address, port, udp, udp) || (udp && ask(address, port, udp, false)));
}
