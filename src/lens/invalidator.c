/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process of its own that tells the kernel what to drop from its caches.
 *
 * To drop a name or content the kernel takes locks that a process of the run may hold while it waits for an answer
 * of the lens, and it cannot be interrupted meanwhile. If the lens did it itself and was killed at that moment, it
 * could not end, its device would stay open, and run and lens would wait for each other for ever. So the teller has
 * a device of its own (a clone) and nothing else: when the lens dies, its device closes, the kernel ends the
 * requests it had taken, and the locks are let go. Requests that nobody had taken yet are refused by the teller.
 *
 * Two threads pass messages on. The one for content that an answer waits for (late.c) waits for pages and nothing
 * else; the other takes all that the second thread of the lens tells, and names among it wait for directories.
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
#define UNKNOWN_TRIES 12 /* 1 ms and twice as long each time: 4 s */

/* A message as the device takes it; the name ends with a NUL. */
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

/* ---- the lens's side ---- */

static int send_message(int socket, struct message *message, size_t body, int flags)
{
	ssize_t n;

	message->header.len = (uint32_t)(sizeof(message->header) + body);
	do
		n = send(socket, message, message->header.len, MSG_NOSIGNAL | flags);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : 0;
}

void lens_tell_inode(const struct lens *lens, uint64_t ino, bool content)
{
	struct message message = { .header.error = FUSE_NOTIFY_INVAL_INODE,
				   .inode = { .ino = ino, .off = content ? 0 : -1, .len = 0 } };

	(void)send_message(lens->teller_fd, &message, sizeof(message.inode), 0);
}

void lens_tell_entry(const struct lens *lens, uint64_t parent, const char *name)
{
	struct message message = { .header.error = FUSE_NOTIFY_INVAL_ENTRY };
	size_t n = strlen(name);

	if (cordon_copy(message.name, sizeof(message.name), name, n) < 0)
		return;
	message.entry.parent = parent;
	message.entry.namelen = (uint32_t)n;
	(void)send_message(lens->teller_fd, &message, sizeof(message.entry) + n + 1, 0);
}

int lens_tell_content(const struct lens *lens, uint64_t ino, uint64_t number)
{
	struct message message = { .header = { .error = FUSE_NOTIFY_INVAL_INODE, .unique = number },
				   .inode = { .ino = ino, .off = 0, .len = 0 } };

	return send_message(lens->content_fd, &message, sizeof(message.inode), MSG_DONTWAIT);
}

uint64_t lens_told_content(const struct lens *lens)
{
	uint64_t number = lens->dropped;
	ssize_t n;

	while ((n = recv(lens->content_fd, &number, sizeof(number), MSG_DONTWAIT)) == (ssize_t)sizeof(number))
		;
	return n < 0 && (errno == EAGAIN || errno == EINTR) ? number : UINT64_MAX;
}

/* ---- the teller ---- */

struct teller {
	int socket;
	int content;
	int device;
};

/* Refuses what the dead lens had not taken. Ends with the process, when nothing is left to be told. */
static void *refuse_rest(void *data)
{
	static char request[LENS_REQUEST_MAX + 8192];
	const struct teller *teller = data;
	struct pollfd gone = { .fd = teller->socket, .events = POLLRDHUP };

	while (poll(&gone, 1, -1) <= 0)
		;
	for (;;) {
		struct fuse_out_header answer = { .len = sizeof(answer), .error = -ENOTCONN };
		struct fuse_in_header header;
		ssize_t n = read(teller->device, request, sizeof(request));

		if (n < 0 && (errno == ENODEV || errno == ECONNABORTED))
			break;
		if (n < (ssize_t)sizeof(header))
			continue;
		memcpy(&header, request, sizeof(header));
		answer.unique = header.unique;
		if (header.opcode != FUSE_FORGET && header.opcode != FUSE_BATCH_FORGET && header.unique)
			n = write(teller->device, &answer, sizeof(answer));
	}
	return NULL;
}

/*
 * A node that the kernel did not know when it was told of it. Perhaps it has forgotten it. Or the answer that it will know
 * it by is on its way to the process that asked, with attributes of before the change, which would then be believed.
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

/* False when the kernel does not know the node. */
static bool pass(int device, struct message *message, size_t n)
{
	message->header.unique = 0; /* what marks it as no answer */
	return write(device, message, n) >= 0 || errno != ENOENT || message->header.error != FUSE_NOTIFY_INVAL_INODE;
}

/* Tells the kernel again of those that are due; returns for how long there is nothing to do, as poll() takes it. */
static int pass_again(int device, struct unknowns *unknowns)
{
	int64_t now = now_ms(), next = INT64_MAX;

	for (size_t i = 0; i < unknowns->n;) {
		struct unknown *unknown = &unknowns->nodes[i];
		struct message message = { .header = { .len = sizeof(message.header) + sizeof(message.inode),
						       .error = FUSE_NOTIFY_INVAL_INODE },
					   .inode = unknown->inode };

		if (unknown->due <= now) {
			if (pass(device, &message, message.header.len) || ++unknown->tries == UNKNOWN_TRIES) {
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

/* Passes messages on until the lens is gone, and their numbers back. */
static void pass_on(int socket, int device)
{
	struct unknowns unknowns = { .n = 0 };
	struct message message;

	for (;;) {
		struct pollfd ready = { .fd = socket, .events = POLLIN };
		uint64_t number;
		ssize_t n;

		if (unknowns.n && poll(&ready, 1, pass_again(device, &unknowns)) <= 0)
			continue;
		n = recv(socket, &message, sizeof(message), 0);
		if (n == 0)
			break;
		if (n < (ssize_t)sizeof(message.header))
			continue;
		number = message.header.unique;
		if (!pass(device, &message, (size_t)n) && unknowns.n < UNKNOWN_MAX)
			unknowns.nodes[unknowns.n++] = (struct unknown){ .inode = message.inode, .due = now_ms() + 1 };
		if (number)
			(void)send(socket, &number, sizeof(number), MSG_NOSIGNAL);
	}
}

static void *pass_content(void *data)
{
	const struct teller *teller = data;

	pass_on(teller->content, teller->device);
	return NULL;
}

static void teller_run(struct teller *teller)
{
	pthread_t rest, content;

	if (pthread_create(&rest, NULL, refuse_rest, teller) != 0 ||
	    pthread_create(&content, NULL, pass_content, teller) != 0)
		_exit(1);
	pass_on(teller->socket, teller->device);
	/* It may be waiting for what only refuse_rest() can end. */
	(void)pthread_join(content, NULL);
	_exit(0);
}

int lens_teller_device(int fuse_fd)
{
	autofd int clone = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	uint32_t original = (uint32_t)fuse_fd;

	if (clone < 0 || ioctl(clone, FUSE_DEV_IOC_CLONE, &original) < 0)
		return -errno;
	return cordon_steal_fd(&clone);
}

int lens_teller_start(struct lens *lens, int device)
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
		struct teller teller = { .socket = its, .content = its_content, .device = device };
		static const int ignored[] = { SIGTERM, SIGINT, SIGHUP, SIGQUIT };
		const int kept[] = { teller.socket, teller.content, teller.device };

		/* It ends when the lens has ended, not before and not by a signal to the group. */
		for (size_t i = 0; i < CORDON_ARRAY_SIZE(ignored); i++)
			(void)signal(ignored[i], SIG_IGN);
		(void)prctl(PR_SET_PDEATHSIG, 0);
		(void)prctl(PR_SET_DUMPABLE, 0);
		/* Holding the lens's device would keep it from closing. */
		cordon_close_except(kept, CORDON_ARRAY_SIZE(kept));
		teller_run(&teller);
	}
	lens->teller_fd = cordon_steal_fd(&own);
	lens->content_fd = cordon_steal_fd(&own_content);
	lens->teller = pid;
	return 0;
}

void lens_teller_stop(struct lens *lens)
{
	cordon_closep(&lens->teller_fd);
	cordon_closep(&lens->content_fd);
	if (lens->teller > 0)
		(void)waitpid(lens->teller, NULL, 0);
}
