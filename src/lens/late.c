/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers that wait until the kernel has dropped content that is out of date.
 *
 * Where changes on the host go unreported, they show in the attributes that the kernel asks for when it does not
 * believe the old ones any more, which it does before it opens a file. What it holds of the content must be gone when it
 * gets the answer, or the file that is being opened is read as it was.
 *
 * Only an answer to GETATTR may wait. To drop content the kernel waits for pages, and thereby for reads and writes of
 * other processes, which are served meanwhile; who asks for attributes holds none. The teller does it in a thread
 * that never takes names: these wait for directories, one of which the asking process may hold. So each of them ends.
 */
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include "lens/lens.h"

struct lens_late {
	struct lens_late *next;
	fuse_req_t req;
	struct stat attr;
	uint64_t ino;
	uint64_t drop; /* the number by which the kernel is asked */
	bool asked;
};

/* While answers wait, the device is read only as long as there is something in it. */
static void set_waiting(const struct lens *lens, bool waiting)
{
	int fd = fuse_session_fd(lens->session);
	int flags = fcntl(fd, F_GETFL);

	if (flags >= 0)
		(void)fcntl(fd, F_SETFL, waiting ? flags | O_NONBLOCK : flags & ~O_NONBLOCK);
}

int lens_late_attr(fuse_req_t req, struct lens_node *node, const struct stat *attr)
{
	struct lens *lens = fuse_req_userdata(req);
	struct lens_late *late = malloc(sizeof(*late));

	if (!late)
		return -ENOMEM;
	if (!lens->late)
		set_waiting(lens, true);
	node->drop = ++lens->last_drop;
	*late = (struct lens_late){ .req = req, .attr = *attr, .ino = lens_ino(lens, node), .drop = node->drop };
	*lens->late_end = late;
	lens->late_end = &late->next;
	return 0;
}

/* True when some could not be asked for yet. */
static bool ask(struct lens *lens)
{
	for (struct lens_late *late = lens->late; late; late = late->next) {
		int r = late->asked ? 0 : lens_tell_content(lens, late->ino, late->drop);

		if (r == -EAGAIN)
			return true;
		/* Without a teller the lens is about to end: nobody shall wait for it. */
		if (r < 0)
			lens->dropped = lens->last_drop;
		late->asked = true;
	}
	return false;
}

static void answer(struct lens *lens)
{
	while (lens->late && lens->late->drop <= lens->dropped) {
		struct lens_late *late = lens->late;

		/* The kernel believes nothing of an answer to a question from before it dropped the content. */
		fuse_reply_attr(late->req, &late->attr, 0);
		lens->late = late->next;
		free(late);
	}
	if (lens->late)
		return;
	lens->late_end = &lens->late;
	set_waiting(lens, false);
}

void lens_late_serve(struct lens *lens)
{
	while (lens->late) {
		short more = ask(lens) ? POLLOUT : 0;
		struct pollfd fds[] = {
			{ .fd = lens->content_fd, .events = (short)(POLLIN | more) },
			{ .fd = fuse_session_fd(lens->session), .events = POLLIN },
		};

		if (lens->late->drop > lens->dropped && poll(fds, CORDON_ARRAY_SIZE(fds), -1) < 0)
			return;
		if (fds[0].revents & (POLLIN | POLLHUP | POLLERR))
			lens->dropped = lens_told_content(lens);
		answer(lens);
		if (fds[1].revents)
			return;
	}
}
