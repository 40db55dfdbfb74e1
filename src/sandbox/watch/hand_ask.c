/* SPDX-License-Identifier: Apache-2.0 */
/* The supervisor sends requests to the hand, one after the other, and has PID 1 start the hand. */
#include <sys/socket.h>

#include "sandbox/watch/hand_ask.h"

static int start(struct cordon_hand *hand, const atomic_bool *stop)
{
	struct cordon_notice notice = { .kind = CORDON_NOTICE_HAND };
	struct cordon_hand_reply hello = { .result = 0 };
	int pair[2], fds[2], r;
	size_t n = 0;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	r = cordon_notice_send(hand->ctl, &notice, pair[1]);
	close(pair[1]);
	hand->fd = pair[0];
	if (r < 0)
		return r;
	do
		r = cordon_hand_receive(hand->fd, &hello, sizeof(hello), false, &n, fds);
	while (r == -EINTR && !*stop);
	if (r != 1 || n != sizeof(hello))
		return -EPIPE;
	hand->pid = hello.result;
	return 0;
}

static int ask(struct cordon_hand *hand, const struct cordon_hand_request *request, const int dirs[static 2],
	       const atomic_bool *stop, int *ret_fd)
{
	struct cordon_hand_reply reply = { .result = -EPIPE };
	size_t got = 0, n = offsetof(struct cordon_hand_request, text) + strlen(request->text) + 1;
	int fds[2] = { -1, -1 };
	int r = hand->fd < 0 ? start(hand, stop) : 0;

	if (r == 0)
		r = cordon_hand_send(hand->fd, request, n, dirs, dirs[1] >= 0 ? 2 : 1);
	if (r < 0)
		return -EPIPE;
	do
		r = cordon_hand_receive(hand->fd, &reply, sizeof(reply), true, &got, fds);
	while (r == -EINTR && !*stop);
	if (r == -EINTR)
		return -ECANCELED;
	if (r != 1 || got != sizeof(reply))
		return -EPIPE;
	hand->too_large = reply.too_large;
	*ret_fd = fds[0];
	cordon_closep(&fds[1]);
	return reply.result;
}

int cordon_hand_ask(struct cordon_hand *hand, const struct cordon_hand_request *request, const int dirs[static 2],
		    const atomic_bool *stop, int *ret_fd)
{
	int r;

	pthread_mutex_lock(&hand->lock);
	r = ask(hand, request, dirs, stop, ret_fd);
	/* Close the socket, because a reply that comes later must not be taken for that of the next request. */
	if (r == -EPIPE || r == -ECANCELED)
		cordon_closep(&hand->fd);
	pthread_mutex_unlock(&hand->lock);
	return r;
}
