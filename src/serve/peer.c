/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who is at the other end of a connection.
 *
 * A port of the loopback is open to every user of the machine, and what lets a person in can be seen by others: a link
 * stands in the arguments of the browser that opens it, and browsers send a cookie to all ports of a host. So the page
 * asks the kernel too.
 *
 * A Unix socket may lie in a directory that an agent sees. The agent is the same user, so its namespaces tell it from
 * others.
 */
#include <dirent.h>
#include <fcntl.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "serve/internal.h"

#ifndef SO_PEERPIDFD /* Linux 6.5 */
#define SO_PEERPIDFD 77
#endif

/* ---- the tables of sockets ---- */

/* The kernel's answer about one socket: a message of its family, then attributes. */
struct found {
	struct nlmsghdr head;
	char body[1024];
};

/* Asks for one socket. -ENOENT when there is none. */
static int ask(const void *question, size_t size, size_t at_least, struct found *ret_found)
{
	autofd int netlink = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	ssize_t n;

	if (netlink < 0 || send(netlink, question, size, 0) < 0)
		return -errno;
	/* The kernel has answered when send() returns. */
	n = recv(netlink, ret_found, sizeof(*ret_found), MSG_DONTWAIT);
	if (n < 0)
		return -errno;
	if ((size_t)n < offsetof(struct found, body) + at_least || ret_found->head.nlmsg_type != SOCK_DIAG_BY_FAMILY ||
	    ret_found->head.nlmsg_len > (size_t)n)
		return -ENOENT;
	return 0;
}

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

int cordon_peer_uid(int fd, uid_t *ret_uid, uint32_t *ret_inode)
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
	struct inet_diag_msg socket;
	struct found found = { 0 };
	int r;

	if (getsockname(fd, &ours.any, &ours_size) < 0 || getpeername(fd, &theirs.any, &theirs_size) < 0)
		return -errno;
	if (ours.any.sa_family != AF_INET && ours.any.sa_family != AF_INET6)
		return -EAFNOSUPPORT;
	/* The socket of the client: our addresses with the sides exchanged. */
	question.about.sdiag_family = (__u8)ours.any.sa_family;
	put(&theirs, &question.about.id.idiag_sport, question.about.id.idiag_src);
	put(&ours, &question.about.id.idiag_dport, question.about.id.idiag_dst);
	r = ask(&question, sizeof(question), sizeof(socket), &found);
	if (r < 0)
		return r;
	memcpy(&socket, found.body, sizeof(socket));
	/* A socket that its process has closed belongs to nobody, and the kernel then returns 0. */
	if (!socket.idiag_inode)
		return -ENOENT;
	*ret_uid = socket.idiag_uid;
	*ret_inode = socket.idiag_inode;
	return 0;
}

/* The inode of the other end of a Unix socket, or 0. */
static uint32_t peer_inode(int fd)
{
	struct {
		struct nlmsghdr head;
		struct unix_diag_req about;
	} question = {
		.head = { .nlmsg_len = sizeof(question), .nlmsg_type = SOCK_DIAG_BY_FAMILY, .nlmsg_flags = NLM_F_REQUEST },
		.about = { .sdiag_family = AF_UNIX,
			   .udiag_states = ~0U,
			   .udiag_show = UDIAG_SHOW_PEER,
			   .udiag_cookie = { INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE } },
	};
	size_t at = sizeof(struct unix_diag_msg), end;
	struct found found = { 0 };
	struct stat st;

	if (fstat(fd, &st) < 0)
		return 0;
	question.about.udiag_ino = (__u32)st.st_ino;
	if (ask(&question, sizeof(question), at, &found) < 0)
		return 0;
	end = found.head.nlmsg_len - sizeof(found.head);
	for (struct rtattr attr; at + sizeof(attr) <= end; at += RTA_ALIGN(attr.rta_len)) {
		uint32_t inode;

		memcpy(&attr, found.body + at, sizeof(attr));
		if (attr.rta_len < sizeof(attr) || at + attr.rta_len > end)
			break;
		if (attr.rta_type == UNIX_DIAG_PEER && attr.rta_len == RTA_LENGTH(sizeof(inode))) {
			memcpy(&inode, found.body + at + RTA_LENGTH(0), sizeof(inode));
			return inode;
		}
	}
	return 0;
}

/* ---- the process at the other end ---- */

/* Whether the process of this directory of /proc has the socket with this inode. */
static bool has_socket(int proc_fd, uint32_t inode)
{
	int fd = openat(proc_fd, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	char want[32], target[32];
	bool found = false;
	ssize_t n;

	if (!dir) {
		cordon_closep(&fd);
		return false;
	}
	snprintf(want, sizeof(want), "socket:[%u]", inode);
	while (!found && (entry = readdir(dir))) {
		n = readlinkat(dirfd(dir), entry->d_name, target, sizeof(target) - 1);
		target[n < 0 ? 0 : n] = '\0';
		found = cordon_streq(target, want);
	}
	closedir(dir);
	return found;
}

/* Opens the process that connected, so that its number can't become that of another one unseen. Before Linux 6.5 there
 * is only the number, whose process must then have the socket. */
static int open_process(int fd, pid_t pid, int proc_fd, int *ret_pidfd)
{
	socklen_t size = sizeof(int);
	uint32_t inode;
	int pidfd;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &size) == 0) {
		*ret_pidfd = pidfd;
		return 0;
	}
	if (errno != ENOPROTOOPT)
		return -errno;
	pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (pidfd < 0)
		return -errno;
	inode = peer_inode(fd);
	if (!inode || !has_socket(proc_fd, inode)) {
		close(pidfd);
		return -ESRCH;
	}
	*ret_pidfd = pidfd;
	return 0;
}

static void close_dir(DIR **dir)
{
	if (*dir)
		closedir(*dir);
}

static bool shares(int proc_fd, const char *theirs, const char *ours)
{
	struct stat a, b;

	return fstatat(proc_fd, theirs, &a, 0) == 0 && stat(ours, &b) == 0 && a.st_dev == b.st_dev &&
	       a.st_ino == b.st_ino;
}

/* Whether this process has the socket, and is in the server's user namespace. */
static bool has_outside(const char *pid, uint32_t inode)
{
	char path[32];
	autofd int proc_fd = -1;

	snprintf(path, sizeof(path), "/proc/%.10s", pid);
	proc_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return proc_fd >= 0 && shares(proc_fd, "ns/user", "/proc/self/ns/user") && has_socket(proc_fd, inode);
}

bool cordon_peer_outside(uint32_t inode, pid_t *hint)
{
	CORDON_CLEANUP(close_dir) DIR *all = NULL;
	const struct dirent *entry;
	char text[16];

	snprintf(text, sizeof(text), "%d", (int)*hint);
	if (*hint > 0 && has_outside(text, inode))
		return true;
	all = opendir("/proc");
	while (all && (entry = readdir(all))) {
		uint64_t pid;

		if (cordon_parse_u64(entry->d_name, 1, INT32_MAX, &pid) < 0 || !has_outside(entry->d_name, inode))
			continue;
		*hint = (pid_t)pid;
		return true;
	}
	return false;
}

int cordon_peer_local(int fd)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);
	struct pollfd ended = { .fd = -1, .events = POLLIN };
	char path[32];
	autofd int proc_fd = -1;
	autofd int pidfd = -1;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0 || peer.uid != geteuid())
		return -EPERM;
	snprintf(path, sizeof(path), "/proc/%d", (int)peer.pid);
	proc_fd = peer.pid > 0 ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	if (proc_fd < 0 || open_process(fd, peer.pid, proc_fd, &pidfd) < 0)
		return -EACCES;
	if (!shares(proc_fd, "ns/user", "/proc/self/ns/user") || !shares(proc_fd, "ns/mnt", "/proc/self/ns/mnt"))
		return -EACCES;
	/* The directory of /proc is of one process, whatever becomes of its number. If the one that connected has not
	 * ended yet, that is the one. */
	ended.fd = pidfd;
	return poll(&ended, 1, 0) == 0 ? 0 : -EACCES;
}
