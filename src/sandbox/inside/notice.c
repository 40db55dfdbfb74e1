/* SPDX-License-Identifier: Apache-2.0 */
/* Sends and receives the messages between the supervisor and the processes inside; both use it. */
#include <sys/socket.h>

#include "sandbox/inside/notice.h"

union control {
	struct cmsghdr header;
	char space[CMSG_SPACE(sizeof(int))];
};

int cordon_notice_send(int socket, const struct cordon_notice *notice, int fd)
{
	struct cordon_notice copy = *notice;
	struct iovec iov = { &copy, sizeof(copy) };
	union control control = { 0 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t n;

	if (fd >= 0) {
		struct cmsghdr *c;

		msg.msg_control = &control;
		msg.msg_controllen = sizeof(control.space);
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	}
	do
		n = sendmsg(socket, &msg, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : 0;
}

int cordon_notice_receive(int socket, struct cordon_notice *ret_notice, int *ret_fd)
{
	struct cordon_notice notice = { 0 };
	struct iovec iov = { &notice, sizeof(notice) };
	union control control = { 0 };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control.space)
	};
	int fd = -1;
	ssize_t n;

	do
		n = recvmsg(socket, &msg, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		return n < 0 ? -errno : 0;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c))
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS && c->cmsg_len == CMSG_LEN(sizeof(int)))
			memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	if ((size_t)n != sizeof(notice)) {
		if (fd >= 0)
			close(fd);
		return -EBADMSG;
	}
	/* Our own processes sent the text, but we make sure all the same that it ends. */
	notice.what[sizeof(notice.what) - 1] = notice.object[sizeof(notice.object) - 1] = '\0';
	*ret_notice = notice;
	*ret_fd = fd;
	return 1;
}
