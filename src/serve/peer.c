/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose socket is at the other end of a connection over the loopback. A port of the loopback is open to every user of the machine,
 * and what lets a person in can be seen by others: a link stands in the arguments of the browser that opens it, and browsers send a
 * cookie to all ports of a host. So the page asks the kernel too.
 */
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "serve/internal.h"

union address {
	struct sockaddr any;
	struct sockaddr_in four;
	struct sockaddr_in6 six;
};

/* Writes the address and port of a socket as the kernel's question wants them. */
static void put(const union address *address, __be16 *ret_port, __be32 ret_words[static 4])
{
	if (address->any.sa_family == AF_INET) {
		*ret_port = address->four.sin_port;
		memcpy(ret_words, &address->four.sin_addr, sizeof(address->four.sin_addr));
	} else {
		*ret_port = address->six.sin6_port;
		memcpy(ret_words, &address->six.sin6_addr, sizeof(address->six.sin6_addr));
	}
}

/* Asks for the socket of the client: our addresses with the sides exchanged. */
static int ask(int netlink, int fd)
{
	struct {
		struct nlmsghdr head;
		struct inet_diag_req_v2 about;
	} question = {
		.head = { .nlmsg_len = sizeof(question), .nlmsg_type = SOCK_DIAG_BY_FAMILY, .nlmsg_flags = NLM_F_REQUEST },
		.about = { .sdiag_protocol = IPPROTO_TCP,
			   .idiag_states = ~0U,
			   .id.idiag_cookie = { INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE } },
	};
	union address ours = { 0 }, theirs = { 0 };
	socklen_t ours_size = sizeof(ours), theirs_size = sizeof(theirs);

	if (getsockname(fd, &ours.any, &ours_size) < 0 || getpeername(fd, &theirs.any, &theirs_size) < 0)
		return -errno;
	if (ours.any.sa_family != AF_INET && ours.any.sa_family != AF_INET6)
		return -EAFNOSUPPORT;
	question.about.sdiag_family = (__u8)ours.any.sa_family;
	put(&theirs, &question.about.id.idiag_sport, question.about.id.idiag_src);
	put(&ours, &question.about.id.idiag_dport, question.about.id.idiag_dst);
	return send(netlink, &question, sizeof(question), 0) < 0 ? -errno : 0;
}

int cordon_peer_uid(int fd, uid_t *ret_uid)
{
	autofd int netlink = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	struct {
		struct nlmsghdr head;
		struct inet_diag_msg found;
		char rest[512]; /* attributes */
	} answer = { 0 };
	ssize_t n;
	int r = netlink < 0 ? -errno : ask(netlink, fd);

	if (r < 0)
		return r;
	/* The kernel has answered when send() returns. */
	n = recv(netlink, &answer, sizeof(answer), MSG_DONTWAIT);
	if (n < 0)
		return -errno;
	if ((size_t)n < offsetof(__typeof__(answer), rest) || answer.head.nlmsg_type != SOCK_DIAG_BY_FAMILY)
		return -ENOENT;
	/* A socket that its process has closed belongs to nobody, and the kernel then says 0. */
	if (!answer.found.idiag_inode)
		return -ENOENT;
	*ret_uid = answer.found.idiag_uid;
	return 0;
}
