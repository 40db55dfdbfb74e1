/* SPDX-License-Identifier: Apache-2.0 */
/* The supervisor starts the hand of a listener, hears what it tells, and replaces one that was killed. */
#include <linux/seccomp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "sandbox/inside/notice.h"
#include "sandbox/watch/report.h"
#include "sandbox/watch/watch.h"

#define LOST_LOOKED_AT 64 /* calls of which all but one were given up by their callers */

struct cordon_watch {
	struct cordon_watched *watched;
	uint32_t number;
	int listener;
	int socket; /* to the hand; -1: there is none */
	bool ready; /* the hand has said that it serves */
	struct cordon_reports *reports;
	struct cordon_hand_message message;
};

/* The kernel may know a longer structure than we were built with. */
union notification {
	struct seccomp_notif notif;
	char space[1024];
};

struct cordon_watch *cordon_watch_new(struct cordon_watched *watched, int listener, uint32_t number)
{
	struct cordon_watch *watch = calloc(1, sizeof(*watch));

	if (!watch)
		return NULL;
	watch->watched = watched;
	watch->number = number;
	watch->listener = watch->socket = -1;
	watch->reports = cordon_reports_new(watched);
	if (!watch->reports)
		return cordon_watch_free(watch);
	watch->listener = listener;
	return watch;
}

struct cordon_watch *cordon_watch_free(struct cordon_watch *watch)
{
	if (!watch)
		return NULL;
	cordon_watch_hear(watch);
	cordon_reports_free(watch->reports);
	cordon_closep(&watch->listener);
	cordon_closep(&watch->socket);
	free(watch);
	return NULL;
}

unsigned int cordon_watch_count(const struct cordon_watch *watch)
{
	return cordon_reports_count(watch->reports);
}

void cordon_watch_tell(struct cordon_watch *watch, const struct cordon_hand_message *message)
{
	cordon_reports_told(watch->reports, message);
}

void cordon_watch_poll(const struct cordon_watch *watch, struct pollfd ret[static CORDON_WATCH_FDS])
{
	ret[0] = ret[1] = (struct pollfd){ .fd = -1 };
	if (!watch)
		return;
	/* poll() reports POLLHUP, the end of all processes, even when no events are asked for. */
	ret[0] = (struct pollfd){ .fd = watch->listener, .events = (short)(watch->socket < 0 ? POLLIN : 0) };
	ret[1] = (struct pollfd){ .fd = watch->socket, .events = POLLIN };
}

static void answer(const struct cordon_watch *watch, uint64_t id, int error)
{
	struct seccomp_notif_resp response = { .id = id, .error = error };

	ioctl(watch->listener, SECCOMP_IOCTL_NOTIF_SEND, &response);
}

/* Refuses the call that waits, without a look at it: there is nobody who could judge it. */
static void refuse_next(const struct cordon_watch *watch)
{
	union notification received = { 0 };
	struct pollfd fd = { .fd = watch->listener, .events = POLLIN };

	if (poll(&fd, 1, 0) == 1 && (fd.revents & POLLIN) &&
	    ioctl(watch->listener, SECCOMP_IOCTL_NOTIF_RECV, &received.notif) == 0)
		answer(watch, received.notif.id, -EACCES);
}

/*
 * Refuses a call that the hand had received when it was killed, and had not yet told us of: nobody can receive it again. The
 * kernel numbers calls in the order in which they come; it says EINPROGRESS of one that waits to be received, and ENOENT of
 * one whose caller is gone.
 */
static void refuse_lost(const struct cordon_watch *watch, uint64_t last)
{
	for (unsigned int i = 1; last && i <= LOST_LOOKED_AT; i++) {
		struct seccomp_notif_resp response = { .id = last + i, .error = -EACCES };

		if (ioctl(watch->listener, SECCOMP_IOCTL_NOTIF_SEND, &response) == 0 || errno != ENOENT)
			return;
	}
}

static int send_listener(int socket, int listener)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	char byte = 0;
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control.space)
	};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &listener, sizeof(listener));
	return sendmsg(socket, &msg, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

static int start(struct cordon_watch *watch)
{
	struct cordon_notice notice = { .kind = CORDON_NOTICE_HAND, .index = watch->number };
	int pair[2], r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	r = send_listener(pair[0], watch->listener);
	if (r == 0)
		r = cordon_notice_send(watch->watched->ctl, &notice, pair[1]);
	close(pair[1]);
	if (r < 0) {
		close(pair[0]);
		return r;
	}
	watch->socket = pair[0];
	watch->ready = false;
	return 0;
}

/* The hand is gone: it was killed, or could not start. What it had in hand is refused; the next call starts another. */
static void on_death(struct cordon_watch *watch)
{
	_Atomic uint64_t *serving = &watch->watched->memory->serving[watch->number];
	uint64_t id = *serving;

	cordon_closep(&watch->socket);
	watch->watched->hands[watch->number] = 0;
	*serving = 0;
	if (id)
		answer(watch, id, -EACCES);
	else if (!watch->ready)
		refuse_next(watch);
	else
		refuse_lost(watch, watch->watched->memory->last[watch->number]);
}

bool cordon_watch_is_whole(const struct cordon_hand_message *message, size_t n)
{
	const size_t head = offsetof(struct cordon_hand_message, texts);

	if (n < head || message->kind >= CORDON_HAND__MAX || message->n > CORDON_TOUCHES_MAX)
		return false;
	for (uint32_t i = 0; i < message->n; i++) {
		size_t at = message->touches[i].path_at;

		if (at >= n - head || !memchr(message->texts + at, '\0', n - head - at) ||
		    strlen(message->texts + at) >= CORDON_PATH_MAX || message->touches[i].op >= CORDON_TOUCH_OPS)
			return false;
	}
	return true;
}

void cordon_watch_hear(struct cordon_watch *watch)
{
	while (watch->socket >= 0) {
		ssize_t n = recv(watch->socket, &watch->message, sizeof(watch->message), MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n <= 0) {
			on_death(watch);
			return;
		}
		if (!cordon_watch_is_whole(&watch->message, (size_t)n))
			continue;
		if (watch->message.kind == CORDON_HAND_HELLO) {
			watch->ready = true;
			watch->watched->hands[watch->number] = watch->message.code;
			continue;
		}
		cordon_reports_told(watch->reports, &watch->message);
		if (watch->message.kind != CORDON_HAND_SIGHTS)
			(void)send(watch->socket, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
	}
}

int cordon_watch_serve(struct cordon_watch *watch, const struct pollfd fds[static CORDON_WATCH_FDS])
{
	if (fds[1].revents)
		cordon_watch_hear(watch);
	if ((fds[0].revents & POLLIN) && watch->socket < 0 && start(watch) < 0)
		refuse_next(watch);
	return fds[0].revents & (POLLHUP | POLLERR) && !(fds[0].revents & POLLIN) ? 0 : 1;
}
