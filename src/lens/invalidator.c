/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The invalidator: a child process of cordon-lens that has the kernel drop names, attributes and content from its
 * caches.
 *
 * To drop a name or content the kernel takes locks that a process of the run may hold while it waits for an answer
 * of the lens, and this cannot be interrupted. If the lens did it itself and was killed at that moment, it could not
 * end, its device would stay open, and the run and the lens would wait for each other for ever. So the invalidator
 * has a clone of the device and nothing else. When the lens dies, its device closes, the kernel ends the requests
 * that the lens had taken, and the locks are released. The invalidator refuses the requests that nobody had taken
 * yet.
 *
 * Two threads forward messages. One handles content that a delayed answer waits for (delayed.c), and waits for pages
 * only. The other handles everything that the second thread of the lens sends; dropping names is part of that, and
 * waits for directories.
 */
#include <fcntl.h>
#include <limits.h>
#include <linux/fuse.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>

#include "lens/lens.h"

#define UNKNOWN_MAX 256
#define UNKNOWN_TRIES 12 /* waits 1 ms, then twice as long each time: 4 s in all */

/* A message in the form that the device takes; the name ends with a NUL. */
struct message {
	struct fuse_out_header header;
	union {
		struct fuse_notify_inval_inode_out inode;
		struct {
			struct fuse_notify_inval_entry_out entry;
			char name[NAME_MAX + 1];
		};
	};
};

/* ---- in the process of the lens ---- */

static int send_message(int socket, struct message *message, size_t body, int flags)
{
	ssize_t n;

	message->header.len = (uint32_t)(sizeof(message->header) + body);
	do
		n = send(socket, message, message->header.len, MSG_NOSIGNAL | flags);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : 0;
}

void lens_invalidate_inode(const struct lens *lens, uint64_t ino, bool content)
{
	struct message message = { .header.error = FUSE_NOTIFY_INVAL_INODE,
				   .inode = { .ino = ino, .off = content ? 0 : -1, .len = 0 } };

	(void)send_message(lens->invalidator_fd, &message, sizeof(message.inode), 0);
}

void lens_invalidate_entry(const struct lens *lens, uint64_t parent, const char *name)
{
	struct message message = { .header.error = FUSE_NOTIFY_INVAL_ENTRY };
	size_t n = strlen(name);

	if (cordon_copy(message.name, sizeof(message.name), name, n) < 0)
		return;
	message.entry.parent = parent;
	message.entry.namelen = (uint32_t)n;
	(void)send_message(lens->invalidator_fd, &message, sizeof(message.entry) + n + 1, 0);
}

int lens_invalidate_content(const struct lens *lens, uint64_t ino, uint64_t number)
{
	struct message message = { .header = { .error = FUSE_NOTIFY_INVAL_INODE, .unique = number },
				   .inode = { .ino = ino, .off = 0, .len = 0 } };

	return send_message(lens->content_fd, &message, sizeof(message.inode), MSG_DONTWAIT);
}

uint64_t lens_invalidated_content(const struct lens *lens)
{
	uint64_t number = lens->dropped;
	ssize_t n;

	while ((n = recv(lens->content_fd, &number, sizeof(number), MSG_DONTWAIT)) == (ssize_t)sizeof(number))
		;
	return n < 0 && (errno == EAGAIN || errno == EINTR) ? number : UINT64_MAX;
}

/* ---- in the process of the invalidator ---- */

struct invalidator {
	int socket;
	int content;
	int device;
};

/* Refuses the requests that the dead lens had not taken. Ends with the process, when there is no message left to
 * forward. */
static void *refuse_rest(void *data)
{
	static char request[LENS_REQUEST_MAX + 8192];
	const struct invalidator *invalidator = data;
	struct pollfd gone = { .fd = invalidator->socket, .events = POLLRDHUP };

	while (poll(&gone, 1, -1) <= 0)
		;
	for (;;) {
		struct fuse_out_header answer = { .len = sizeof(answer), .error = -ENOTCONN };
		struct fuse_in_header header;
		ssize_t n = read(invalidator->device, request, sizeof(request));

		if (n < 0 && (errno == ENODEV || errno == ECONNABORTED))
			break;
		if (n < (ssize_t)sizeof(header))
			continue;
		memcpy(&header, request, sizeof(header));
		answer.unique = header.unique;
		if (header.opcode != FUSE_FORGET && header.opcode != FUSE_BATCH_FORGET && header.unique)
			n = write(invalidator->device, &answer, sizeof(answer));
	}
	return NULL;
}

/*
 * A node that the kernel did not know when we asked it to drop something of it. Perhaps the kernel has forgotten the
 * node. Or the answer with which it will know the node is still on its way, with attributes from before the change,
 * which the kernel would then use. So we ask again.
 */
struct unknown {
	struct fuse_notify_inval_inode_out inode;
	int64_t due; /* ms, CLOCK_MONOTONIC */
	unsigned int tries;
};

struct unknowns {
	struct unknown nodes[UNKNOWN_MAX];
	size_t n;
};

static int64_t now_ms(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Writes a message to the device. False when the kernel does not know the node. */
static bool write_message(int device, struct message *message, size_t n)
{
	message->header.unique = 0; /* 0 marks it as a notification, not an answer */
	return write(device, message, n) >= 0 || errno != ENOENT || message->header.error != FUSE_NOTIFY_INVAL_INODE;
}

/* Writes the messages of unknown nodes that are due again. Returns for how long there is nothing to do, as poll()
 * takes it. */
static int retry_unknown(int device, struct unknowns *unknowns)
{
	int64_t now = now_ms(), next = INT64_MAX;

	for (size_t i = 0; i < unknowns->n;) {
		struct unknown *unknown = &unknowns->nodes[i];
		struct message message = { .header = { .len = sizeof(message.header) + sizeof(message.inode),
						       .error = FUSE_NOTIFY_INVAL_INODE },
					   .inode = unknown->inode };

		if (unknown->due <= now) {
			if (write_message(device, &message, message.header.len) || ++unknown->tries == UNKNOWN_TRIES) {
				*unknown = unknowns->nodes[--unknowns->n];
				continue;
			}
			unknown->due = now + (1 << unknown->tries);
		}
		next = unknown->due < next ? unknown->due : next;
		i++;
	}
	return next == INT64_MAX ? -1 : (int)(next - now);
}

/* Forwards messages to the device until the lens is gone, and sends their numbers back. */
static void forward(int socket, int device)
{
	struct unknowns unknowns = { .n = 0 };
	struct message message;

	for (;;) {
		struct pollfd ready = { .fd = socket, .events = POLLIN };
		uint64_t number;
		ssize_t n;

		if (unknowns.n && poll(&ready, 1, retry_unknown(device, &unknowns)) <= 0)
			continue;
		n = recv(socket, &message, sizeof(message), 0);
		if (n == 0)
			break;
		if (n < (ssize_t)sizeof(message.header))
			continue;
		number = message.header.unique;
		if (!write_message(device, &message, (size_t)n) && unknowns.n < UNKNOWN_MAX)
			unknowns.nodes[unknowns.n++] = (struct unknown){ .inode = message.inode, .due = now_ms() + 1 };
		if (number)
			(void)send(socket, &number, sizeof(number), MSG_NOSIGNAL);
	}
}

static void *forward_content(void *data)
{
	const struct invalidator *invalidator = data;

	forward(invalidator->content, invalidator->device);
	return NULL;
}

static void invalidator_run(struct invalidator *invalidator)
{
	pthread_t rest, content;

	if (pthread_create(&rest, NULL, refuse_rest, invalidator) != 0 ||
	    pthread_create(&content, NULL, forward_content, invalidator) != 0)
		_exit(1);
	forward(invalidator->socket, invalidator->device);
	/* That thread may be waiting for a request that only refuse_rest() ends. */
	(void)pthread_join(content, NULL);
	_exit(0);
}

int lens_invalidator_device(int fuse_fd)
{
	autofd int clone = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	uint32_t original = (uint32_t)fuse_fd;

	if (clone < 0 || ioctl(clone, FUSE_DEV_IOC_CLONE, &original) < 0)
		return -errno;
	return cordon_steal_fd(&clone);
}

int lens_invalidator_start(struct lens *lens, int device)
{
	int names[2], contents[2];
	autofd int own = -1, own_content = -1, its = -1, its_content = -1;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, names) < 0)
		return -errno;
	own = names[0];
	its = names[1];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, contents) < 0)
		return -errno;
	own_content = contents[0];
	its_content = contents[1];
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0) {
		struct invalidator invalidator = { .socket = its, .content = its_content, .device = device };
		static const int ignored[] = { SIGTERM, SIGINT, SIGHUP, SIGQUIT };
		const int kept[] = { invalidator.socket, invalidator.content, invalidator.device };

		/* The invalidator ends when the lens has ended: not before, and not by a signal to the process
		 * group. */
		for (size_t i = 0; i < CORDON_ARRAY_SIZE(ignored); i++)
			(void)signal(ignored[i], SIG_IGN);
		(void)prctl(PR_SET_PDEATHSIG, 0);
		(void)prctl(PR_SET_DUMPABLE, 0);
		/* If the invalidator held the lens's device, the device would not close when the lens dies. */
		cordon_close_except(kept, CORDON_ARRAY_SIZE(kept));
		invalidator_run(&invalidator);
	}
	lens->invalidator_fd = cordon_steal_fd(&own);
	lens->content_fd = cordon_steal_fd(&own_content);
	lens->invalidator = pid;
	return 0;
}

void lens_invalidator_stop(struct lens *lens)
{
	cordon_closep(&lens->invalidator_fd);
	cordon_closep(&lens->content_fd);
	/* The supervisor may send SIGTERM just now. */
	while (lens->invalidator > 0 && waitpid(lens->invalidator, NULL, 0) < 0 && errno == EINTR)
		;
}
