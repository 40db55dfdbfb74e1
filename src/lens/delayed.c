/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers of cordon-lens that wait until the kernel has dropped content that is out of date.
 *
 * Where fanotify does not report changes on the host, the lens finds a change in the attributes. The kernel asks for
 * these when its old ones are no longer valid, and always before it opens a file. The kernel must have dropped the
 * old content before it gets the answer; otherwise the process that opens the file reads the old content.
 *
 * Only an answer to GETATTR may wait. To drop content the kernel waits for pages, and so for reads and writes of
 * other processes, which the lens serves meanwhile; a process that asks for attributes holds no page. The
 * invalidator drops the content in a thread that never drops names: dropping a name waits for a directory, which the
 * asking process may hold. So no two of them wait for each other.
 */
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include "lens/lens.h"

struct lens_delayed {
	struct lens_delayed *next;
	fuse_req_t req;
	struct stat attr;
	uint64_t ino;
	uint64_t drop; /* the number of the request to the invalidator */
	bool asked;
};

/* While answers wait, reading from the device must not block. */
static void set_waiting(const struct lens *lens, bool waiting)
{
	int fd = fuse_session_fd(lens->session);
	int flags = fcntl(fd, F_GETFL);

	if (flags >= 0)
		(void)fcntl(fd, F_SETFL, waiting ? flags | O_NONBLOCK : flags & ~O_NONBLOCK);
}

void lens_delayed_wait(const struct lens *lens)
{
	set_waiting(lens, true);
}

int lens_delayed_attr(fuse_req_t req, struct lens_node *node, const struct stat *attr)
{
	struct lens *lens = fuse_req_userdata(req);
	struct lens_delayed *delayed = malloc(sizeof(*delayed));

	if (!delayed)
		return -ENOMEM;
	lens_delayed_wait(lens);
	node->drop = ++lens->last_drop;
	*delayed = (struct lens_delayed){ .req = req, .attr = *attr, .ino = lens_ino(lens, node), .drop = node->drop };
	*lens->delayed_end = delayed;
	lens->delayed_end = &delayed->next;
	return 0;
}

/* Sends the requests to the invalidator. True when the socket was full before all were sent. */
static bool ask(struct lens *lens)
{
	for (struct lens_delayed *delayed = lens->delayed; delayed; delayed = delayed->next) {
		int r = delayed->asked ? 0 : lens_invalidate_content(lens, delayed->ino, delayed->drop);

		if (r == -EAGAIN)
			return true;
		/* Without an invalidator the lens is about to end, and nobody must wait for it. */
		if (r < 0)
			lens->dropped = lens->last_drop;
		delayed->asked = true;
	}
	return false;
}

static void answer(struct lens *lens)
{
	while (lens->delayed && lens->delayed->drop <= lens->dropped) {
		struct lens_delayed *delayed = lens->delayed;

		/* The kernel ignores the attributes in an answer to a request from before it dropped the content. */
		fuse_reply_attr(delayed->req, &delayed->attr, 0);
		lens->delayed = delayed->next;
		free(delayed);
	}
	if (!lens->delayed)
		lens->delayed_end = &lens->delayed;
}

void lens_delayed_serve(struct lens *lens)
{
	bool waiting = lens->delayed || lens->n_refusals;

	while (lens->delayed || lens->n_refusals) {
		short more = ask(lens) ? POLLOUT : 0;
		struct pollfd fds[] = {
			{ .fd = lens->delayed ? lens->content_fd : -1, .events = (short)(POLLIN | more) },
			{ .fd = lens->n_refusals ? lens->refusals_fd : -1, .events = POLLIN },
			{ .fd = fuse_session_fd(lens->session), .events = POLLIN },
		};
		bool due = lens->delayed && lens->delayed->drop <= lens->dropped;

		if (!due && poll(fds, CORDON_ARRAY_SIZE(fds), lens_refusals_ms(lens)) < 0)
			return;
		if (fds[0].revents & (POLLIN | POLLHUP | POLLERR))
			lens->dropped = lens_invalidated_content(lens);
		answer(lens);
		lens_refusals_serve(lens);
		if (fds[2].revents)
			break;
	}
	if (waiting && !lens->delayed && !lens->n_refusals)
		set_waiting(lens, false);
}
