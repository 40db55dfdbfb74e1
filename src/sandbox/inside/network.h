/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The network of a run that may reach a list of hosts, from within. Every address is one of this machine: routes of the
 * type `local` for 0.0.0.0/0 and ::/0 lead all packets to the loopback, and whatever has no listener there is refused by
 * the kernel at once. The listeners belong to cordon-net, which lives in the host's network: the agent's process makes
 * the first ones before the agent runs, and PID 1 makes sockets without an address when cordon-net asks for them. All of
 * them are passed over one SOCK_SEQPACKET pair, whose other end only cordon-net has.
 *
 * cordon-net is started when the run first uses its network: until then the first sockets wait in that pair, connections
 * and queries wait in the sockets, and the supervisor polls an epoll descriptor of its own in which the agent's process
 * has put them all.
 *
 * INVARIANT: no process inside keeps one of these sockets. When cordon-net ends, the network is closed.
 */
#ifndef CORDON_SANDBOX_INSIDE_NETWORK_H
#define CORDON_SANDBOX_INSIDE_NETWORK_H

#include "base/util.h"
#include "policy/net.h"

#define CORDON_NET_SOCKETS_MAX 32 /* in one message */

/* What a socket that was passed is for. */
enum cordon_net_socket {
	CORDON_NET_SOCKET_DNS,	    /* UDP, bound to port 53 of every address */
	CORDON_NET_SOCKET_LISTENER, /* TCP; port 53 is DNS, too */
	CORDON_NET_SOCKET_REFUSALS, /* raw: sees the packets by which the kernel refuses connections or datagrams */
	CORDON_NET_SOCKET_EMPTY,    /* TCP without an address, as cordon-net asked for */
};

/* A message with sockets, from inside to cordon-net. */
struct cordon_net_sockets {
	uint32_t n;
	uint8_t kinds[CORDON_NET_SOCKETS_MAX]; /* enum cordon_net_socket */
};

/* A request of cordon-net to PID 1: so many TCP sockets of this family. */
struct cordon_net_request {
	uint32_t family;
	uint32_t n;
};

/* In the agent's process, which has just made its network namespace and is still privileged in it: brings up the
 * loopback and, with a list, makes routes and sockets, puts these into the epoll descriptor `wake` and passes them. 0 or
 * -errno; *ret_what is what failed. */
int cordon_network_open(const struct cordon_net_list *list, int socket, int wake, const char **ret_what);
/* In PID 1: serves one request. False when cordon-net is gone. */
bool cordon_network_serve(int socket);

/* A message with sockets and their descriptors; both sides use it. */
int cordon_network_send(int socket, const struct cordon_net_sockets *sockets, const int *fds, int flags);

#endif
