/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work that may take long is done in a child process, so that the server goes on with others: what copies or reads
 * trees, waits for the lock of another process, or asks one that may hang.
 *
 *     server   cordon_mcp_apart() forks, and the call waits
 *     child    `work` makes a value, which is sent as JSON, with a descriptor if there is one
 *     server   says that it has it; `done` answers, or goes on with the call
 *
 * A child that only reads has bounds, and ends with its call. INVARIANT: one that changes something is never cut off.
 * When nobody waits for its value any more, it is told so at the end, and `left` does what is then to be done.
 *
 * A child has the store and its socket, and none of the server's other descriptors, streams and keys (base/secret.h).
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/time.h"
#include "mcp/internal.h"

#define VALUE_MAX ((size_t)64 << 20)
#define CHILDREN_MAX 64	   /* at once; further calls wait */
#define CHILDREN_OF_ONE 16 /* of one client */
#define ABOUT_SIZE 128
#define RETRY_MS 1000 /* a child that waits for its turn is begun when another has ended; this is for all other cases */
#define REAP_MS 200

/* What the server says to the child at the end. */
enum { TAKEN = 't', CANCELLED = 'c' };

struct cordon_mcp_child {
	struct cordon_mcp_child *next;
	const struct cordon_mcp_work *work;
	struct cordon_mcp_call *call; /* while it waits for its turn */
	char principal[CORDON_ID_SIZE + 16];
	char about[ABOUT_SIZE]; /* what it changes, or "" */
	pid_t pid;		/* 0: it waits for its turn */
	int fd;			/* our end of its socket */
	int passed;		/* the descriptor that came with the value, or -1 */
	struct cordon_buf text;
	bool kept; /* what the call said before */
	bool left; /* nobody waits for it any more */
	bool over; /* it has sent its value, so it ends now */
};

/* ---- in the child ---- */

static int server_fd = -1;

bool cordon_mcp_apart_left(void)
{
	char byte;

	return recv(server_fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0;
}

static int send_value(const char *text, int passed)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct iovec part = { (char *)(uintptr_t)text, strlen(text) };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };

	if (passed >= 0) {
		message.msg_control = &control;
		message.msg_controllen = sizeof(control.space);
		CMSG_FIRSTHDR(&message)->cmsg_level = SOL_SOCKET;
		CMSG_FIRSTHDR(&message)->cmsg_type = SCM_RIGHTS;
		CMSG_FIRSTHDR(&message)->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(CMSG_FIRSTHDR(&message)), &passed, sizeof(int));
	}
	while (part.iov_len) {
		ssize_t n = sendmsg(server_fd, &message, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		part.iov_base = (char *)part.iov_base + n;
		part.iov_len -= (size_t)n;
		message.msg_control = NULL;
		message.msg_controllen = 0;
	}
	return shutdown(server_fd, SHUT_WR) < 0 ? -errno : 0;
}

/* What the server says to the value; '\0' when it has gone. */
static char hear(void)
{
	char byte = '\0';

	while (recv(server_fd, &byte, 1, 0) < 0 && errno == EINTR)
		;
	return byte;
}

/* Makes a child, whose output is not an answer of the server. */
static pid_t fork_child(const struct cordon_mcp *mcp, int fd, bool reads)
{
	pid_t pid = cordon_store_fork(mcp->store, fd, reads);
	int null = pid == 0 ? open("/dev/null", O_RDWR | O_CLOEXEC) : -1;

	for (int i = 0; null >= 0 && i < 3; i++)
		dup2(null, i);
	return pid;
}

_Noreturn static void be_child(struct cordon_mcp_call *call, const struct cordon_mcp_work *work, int fd)
{
	json_t *value;
	autofree char *text = NULL;
	int passed = -1, r;
	char said;

	server_fd = fd;
	value = work->work(call, &passed);
	text = value ? json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
	r = send_value(text ? text : "null", passed);
	said = hear();
	if ((r < 0 || said != TAKEN) && work->left)
		work->left(call, value, said == CANCELLED);
	_exit(0);
}

/* ---- in the server ---- */

static void unlink_child(struct cordon_mcp *mcp, struct cordon_mcp_child *child)
{
	struct cordon_mcp_child **link = &mcp->children;

	while (*link != child)
		link = &(*link)->next;
	*link = child->next;
	cordon_closep(&child->fd);
	cordon_closep(&child->passed);
	cordon_buf_done(&child->text);
	free(child);
}

static struct cordon_mcp_child *new_child(struct cordon_mcp *mcp, const struct cordon_mcp_work *work,
					  const char *principal)
{
	struct cordon_mcp_child *child = calloc(1, sizeof(*child));

	if (!child)
		return NULL;
	child->work = work;
	child->fd = child->passed = -1;
	child->text = (struct cordon_buf)CORDON_BUF(VALUE_MAX);
	if (principal)
		(void)cordon_copy(child->principal, sizeof(child->principal), principal, strlen(principal));
	child->next = mcp->children;
	mcp->children = child;
	return child;
}

/* Whether one more child may run now. */
static bool has_room(const struct cordon_mcp *mcp, const struct cordon_mcp_child *wanted)
{
	size_t all = 0, own = 0;

	for (const struct cordon_mcp_child *child = mcp->children; child; child = child->next) {
		if (!child->pid || child->over)
			continue;
		all++;
		own += cordon_streq(child->principal, wanted->principal);
	}
	return all < CHILDREN_MAX && own < CHILDREN_OF_ONE;
}

/* Calls of one client that change the same thing are carried out in the order in which they came. The list begins
 * with the newest. */
static bool has_earlier(const struct cordon_mcp_child *child)
{
	if (!*child->about)
		return false;
	for (const struct cordon_mcp_child *earlier = child->next; earlier; earlier = earlier->next)
		if (!earlier->over && cordon_streq(earlier->about, child->about) &&
		    cordon_streq(earlier->principal, child->principal))
			return true;
	return false;
}

/* A place is free: the call that has waited longest, of those whose client has room, goes on at once. The list
 * begins with the newest. */
static void wake(struct cordon_mcp *mcp)
{
	const struct cordon_mcp_child *asked = NULL; /* neighbours are often of one client: its room is counted once */
	struct cordon_mcp_child *oldest = NULL;
	bool room = false;

	for (struct cordon_mcp_child *child = mcp->children; child; child = child->next) {
		if (child->pid || !child->call || child->call->due == 0) /* one that goes on already has its place */
			continue;
		if (!asked || !cordon_streq(asked->principal, child->principal))
			room = has_room(mcp, child);
		asked = child;
		if (room && !has_earlier(child))
			oldest = child;
	}
	if (oldest)
		oldest->call->due = 0;
}

static int start(struct cordon_mcp_call *call, struct cordon_mcp_child *child)
{
	int pair[2], r;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	child->call = NULL;
	child->pid = fork_child(call->request.mcp, pair[1], child->work->reads);
	if (child->pid == 0)
		be_child(call, child->work, pair[1]);
	r = child->pid < 0 ? (int)child->pid : 0;
	close(pair[1]);
	child->fd = pair[0];
	if (r < 0) {
		child->pid = 0;
		return r;
	}
	call->due = INT64_MAX;
	return cordon_mcp_call_wait(call, child->fd);
}

int cordon_mcp_apart(struct cordon_mcp_call *call, const struct cordon_mcp_work *work)
{
	call->child = new_child(call->request.mcp, work, call->request.channel->principal);
	if (!call->child)
		return -ENOMEM;
	call->child->call = call;
	if (call->about)
		(void)cordon_copy(call->child->about, sizeof(call->child->about), call->about, strlen(call->about));
	call->child->kept = call->kept;
	call->kept = true; /* what was begun is answered */
	call->due = 0;
	return 0;
}

/* Reads what the child has sent. Returns 0 at the end, -EAGAIN when more may come. */
static int receive(struct cordon_mcp_child *child)
{
	for (;;) {
		union {
			struct cmsghdr header;
			char space[CMSG_SPACE(sizeof(int))];
		} control;
		CORDON_UNCLEARED char bytes[65536];
		struct iovec part = { bytes, sizeof(bytes) };
		struct msghdr message = {
			.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)
		};
		ssize_t n = recvmsg(child->fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
		const struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&message) : NULL;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN ? -EAGAIN : -errno;
		if (c && c->cmsg_type == SCM_RIGHTS && child->passed < 0)
			memcpy(&child->passed, CMSG_DATA(c), sizeof(int));
		if (n == 0)
			return 0;
		if (cordon_buf_add(&child->text, bytes, (size_t)n) < 0)
			return -E2BIG;
	}
}

/* The value is there, or the child has failed. */
static bool finish(struct cordon_mcp_call *call, int r, int64_t now)
{
	struct cordon_mcp_child *child = call->child;
	const struct cordon_mcp_work *work = child->work;
	json_auto_t *value = NULL;
	autofd int passed = cordon_steal_fd(&child->passed);
	const char taken = TAKEN;

	cordon_mcp_call_wait(call, -1);
	call->kept = child->kept;
	call->child = NULL;
	call->due = INT64_MAX;
	if (r == 0 && child->text.len)
		value = json_loadb(child->text.data, child->text.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
	if (child->pid) {
		if (value)
			(void)!send(child->fd, &taken, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
		else if (work->reads)
			kill(child->pid, SIGKILL); /* it may go on with a value that is too long */
		cordon_closep(&child->fd);
		child->left = child->over = true;
	} else {
		unlink_child(call->request.mcp, child);
	}
	wake(call->request.mcp);
	return work->done(call, value, &passed, now);
}

bool cordon_mcp_apart_step(struct cordon_mcp_call *call, int64_t now)
{
	struct cordon_mcp_child *child = call->child;
	int r;

	if (child->pid) {
		r = receive(child);
		return r == -EAGAIN ? false : finish(call, r, now);
	}
	if (!has_room(call->request.mcp, child) || has_earlier(child)) {
		call->due = now + RETRY_MS;
		return false;
	}
	r = start(call, child);
	return r < 0 ? finish(call, r, now) : false;
}

void cordon_mcp_apart_leave(struct cordon_mcp_call *call, bool cancel)
{
	struct cordon_mcp_child *child = call->child;
	const char cancelled = CANCELLED;

	call->child = NULL;
	if (!child->pid) {
		unlink_child(call->request.mcp, child);
		wake(call->request.mcp); /* others may have waited for it */
		return;
	}
	if (child->work->reads)
		kill(child->pid, SIGKILL); /* a child of ours that nobody has waited for yet */
	else if (cancel)
		(void)!send(child->fd, &cancelled, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
	cordon_closep(&child->fd);
	child->left = true;
}

void cordon_mcp_aside(struct cordon_mcp *mcp, void (*work)(const struct cordon_store *store, const char *id),
		      const char *id)
{
	struct cordon_mcp_child *child = new_child(mcp, NULL, NULL);

	if (!child)
		return;
	child->left = true;
	child->pid = fork_child(mcp, -1, false);
	if (child->pid == 0) {
		work(mcp->store, id);
		_exit(0);
	}
	if (child->pid < 0)
		unlink_child(mcp, child);
}

void cordon_mcp_apart_reap(struct cordon_mcp *mcp)
{
	struct cordon_mcp_child *next;
	size_t freed = 0;

	for (struct cordon_mcp_child *child = mcp->children; child; child = next) {
		next = child->next;
		if (!child->left || waitpid(child->pid, NULL, WNOHANG) == 0)
			continue;
		freed += !child->over;
		unlink_child(mcp, child);
	}
	while (freed--)
		wake(mcp);
}

int64_t cordon_mcp_apart_due(const struct cordon_mcp *mcp, int64_t now)
{
	for (const struct cordon_mcp_child *child = mcp->children; child; child = child->next)
		if (child->left)
			return now + REAP_MS;
	return INT64_MAX;
}

/* The server ends. What changes something goes on without it. */
void cordon_mcp_apart_free(struct cordon_mcp *mcp)
{
	while (mcp->children)
		unlink_child(mcp, mcp->children);
}
