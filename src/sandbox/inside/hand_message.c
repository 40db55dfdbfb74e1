/* SPDX-License-Identifier: Apache-2.0 */
/* Sends and receives the messages between the supervisor and the hand; both processes use it. */
#include <sched.h>
#include <sys/socket.h>
#include <time.h>

#include "sandbox/inside/hand.h"

/* How long we poll before we sleep: about as long as it takes to wake a sleeping processor. */
#define SOON_NS 60000

union control {
	struct cmsghdr header;
	char space[CMSG_SPACE(2 * sizeof(int))];
};

int cordon_hand_send(int socket, const void *message, size_t n, const int *fds, size_t n_fds)
{
	struct iovec iov = { (void *)(uintptr_t)message, n };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	union control control = { 0 };
	ssize_t sent;

	if (n_fds) {
		struct cmsghdr *c;

		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
		memcpy(CMSG_DATA(c), fds, n_fds * sizeof(int));
	}
	do
		sent = sendmsg(socket, &msg, MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	return sent < 0 ? -errno : 0;
}

static int64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

int cordon_hand_receive(int socket, void *message, size_t size, bool soon, size_t *ret_n, int fds[static 2])
{
	struct iovec iov = { message, size };
	union control control;
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control.space)
	};
	int64_t until = soon ? now_ns() + SOON_NS : 0;
	ssize_t n;

	/* While we poll, another process that needs the processor gets it. */
	while ((n = recvmsg(socket, &msg, MSG_CMSG_CLOEXEC | (soon ? MSG_DONTWAIT : 0))) < 0 && errno == EAGAIN && soon) {
		soon = now_ns() < until;
		if (soon)
			sched_yield();
	}
	if (n <= 0)
		return n < 0 ? -errno : 0;
	fds[0] = fds[1] = -1;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c)) {
		size_t len = c->cmsg_len - CMSG_LEN(0);

		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS && len <= 2 * sizeof(int))
			memcpy(fds, CMSG_DATA(c), len);
	}
	*ret_n = (size_t)n;
	return 1;
}
