/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process of its own that tells the kernel what to drop from its caches.
 *
 * To drop a name or content the kernel takes locks that a process of the run may hold while it waits for an answer
 * of the lens, and it cannot be interrupted meanwhile. If the lens did it itself and was killed at that moment, it
 * could not end, its device would stay open, and run and lens would wait for each other for ever. So the teller has
 * a device of its own (a clone) and nothing else: when the lens dies, its device closes, the kernel ends the
 * requests it had taken, and the locks are let go. Requests that nobody had taken yet are refused by the teller.
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

#include "lens/lens.h"

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

static void send_message(const struct lens *lens, struct message *message, size_t body)
{
	ssize_t n;

	message->header.len = (uint32_t)(sizeof(message->header) + body);
	do
		n = send(lens->teller_fd, message, message->header.len, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
}

void lens_tell_inode(const struct lens *lens, uint64_t ino, bool content)
{
	struct message message = { .header.error = FUSE_NOTIFY_INVAL_INODE,
				   .inode = { .ino = ino, .off = content ? 0 : -1, .len = 0 } };

	send_message(lens, &message, sizeof(message.inode));
}

void lens_tell_entry(const struct lens *lens, uint64_t parent, const char *name)
{
	struct message message = { .header.error = FUSE_NOTIFY_INVAL_ENTRY };
	size_t n = strlen(name);

	if (cordon_copy(message.name, sizeof(message.name), name, n) < 0)
		return;
	message.entry.parent = parent;
	message.entry.namelen = (uint32_t)n;
	send_message(lens, &message, sizeof(message.entry) + n + 1);
}

/* ---- the teller ---- */

struct teller {
	int socket;
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

/* Passes messages on until the lens is gone. */
static void teller_run(struct teller *teller)
{
	struct message message;
	pthread_t thread;
	ssize_t n;

	if (pthread_create(&thread, NULL, refuse_rest, teller) != 0)
		_exit(1);
	while ((n = recv(teller->socket, &message, sizeof(message), 0)) != 0) {
		/* What the kernel does not know needs no dropping. */
		if (n > 0 && write(teller->device, &message, (size_t)n) < 0 && errno == ENODEV)
			break;
	}
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
	int sockets[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0)
		return -errno;
	pid = fork();
	if (pid < 0) {
		(void)close(sockets[0]);
		(void)close(sockets[1]);
		return -errno;
	}
	if (pid == 0) {
		struct teller teller = { .socket = sockets[1], .device = device };
		static const int ignored[] = { SIGTERM, SIGINT, SIGHUP, SIGQUIT };
		const int kept[] = { teller.socket, teller.device };

		/* It ends when the lens has ended, not before and not by a signal to the group. */
		for (size_t i = 0; i < CORDON_ARRAY_SIZE(ignored); i++)
			(void)signal(ignored[i], SIG_IGN);
		(void)prctl(PR_SET_PDEATHSIG, 0);
		(void)prctl(PR_SET_DUMPABLE, 0);
		/* Holding the lens's device would keep it from closing. */
		cordon_close_except(kept, CORDON_ARRAY_SIZE(kept));
		teller_run(&teller);
	}
	(void)close(sockets[1]);
	lens->teller_fd = sockets[0];
	lens->teller = pid;
	return 0;
}

void lens_teller_stop(struct lens *lens)
{
	cordon_closep(&lens->teller_fd);
	if (lens->teller > 0)
		(void)waitpid(lens->teller, NULL, 0);
}
