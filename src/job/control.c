/* SPDX-License-Identifier: Apache-2.0 */
/* The control socket of a session, both ends. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>

#include "base/io.h"
#include "base/json.h"
#include "job/control.h"

#define SOCKET_NAME "control"
#define ANSWER_SECONDS 30
#define OUT_MAX ((size_t)4 << 20)
#define FRAME_HEAD 5

/* The address goes through the descriptor of the directory, because its path may be longer than a socket address can
 * hold. */
static void address_of(int dir_fd, struct sockaddr_un *ret_address)
{
	*ret_address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	snprintf(ret_address->sun_path, sizeof(ret_address->sun_path), "/proc/self/fd/%d/" SOCKET_NAME, dir_fd);
}

int cordon_control_connect(int session_dir_fd, int *ret_fd, struct cordon_error *err)
{
	autofd int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct timeval timeout = { .tv_sec = ANSWER_SECONDS };
	struct sockaddr_un address;

	address_of(session_dir_fd, &address);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		return cordon_fail(err, -errno, CORDON_KIND_CONFLICT, "the session does not run");
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
	*ret_fd = cordon_steal_fd(&fd);
	return 0;
}

/* Reads up to the newline, one byte at a time: on an attached connection frames follow, which the caller reads. */
static int read_line(int fd, struct cordon_buf *line)
{
	for (;;) {
		char byte;
		ssize_t n = recv(fd, &byte, 1, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EPIPE;
		if (byte == '\n')
			return 0;
		if (cordon_buf_addc(line, byte) < 0)
			return -E2BIG;
	}
}

/* Sends a blank, which JSON ignores, and the descriptors with it. */
static int send_fds(int fd, const int fds[static CORDON_CONTROL_FDS])
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int) * CORDON_CONTROL_FDS)];
	} control = { 0 };
	struct iovec iov = { (char[]){ ' ' }, 1 };
	struct msghdr message = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control.space)
	};
	struct cmsghdr *c = CMSG_FIRSTHDR(&message);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int) * CORDON_CONTROL_FDS);
	memcpy(CMSG_DATA(c), fds, sizeof(int) * CORDON_CONTROL_FDS);
	return sendmsg(fd, &message, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

static int send_request(int fd, json_t *request)
{
	autofree char *text = request ? json_dumps(request, JSON_COMPACT) : NULL;
	int r = text ? cordon_write_all(fd, text, strlen(text)) : -ENOMEM;

	json_decref(request);
	return r < 0 ? r : cordon_write_all(fd, "\n", 1);
}

static int connection_lost(int code, struct cordon_error *err)
{
	if (code == -EAGAIN)
		return cordon_fail(err, code, CORDON_KIND_CONFLICT,
				   "the process of the session did not answer within %d seconds", ANSWER_SECONDS);
	return cordon_fail(err, code, CORDON_KIND_CONFLICT, "the session ended before it answered");
}

int cordon_control_ask_with(int fd, json_t *request, const int fds[static CORDON_CONTROL_FDS], struct cordon_error *err)
{
	struct timeval no_timeout = { 0 };
	int r = send_fds(fd, fds);

	if (r < 0)
		json_decref(request);
	else
		r = send_request(fd, request);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &no_timeout, sizeof(no_timeout));
	return r < 0 ? connection_lost(r, err) : 0;
}

int cordon_control_ask(int fd, json_t *request, json_t **ret_answer, struct cordon_error *err)
{
	int r = send_request(fd, request);

	return r < 0 ? connection_lost(r, err) : cordon_control_answer(fd, ret_answer, err);
}

int cordon_control_answer(int fd, json_t **ret_answer, struct cordon_error *err)
{
	autobuf struct cordon_buf line = CORDON_BUF(CORDON_CONTROL_REQUEST_MAX);
	json_auto_t *answer = NULL;
	const json_t *error;
	int r = read_line(fd, &line);

	if (r < 0)
		return connection_lost(r, err);
	answer = json_loadb(line.data ? line.data : "", line.len, JSON_REJECT_DUPLICATES, NULL);
	error = json_object_get(answer, "error");
	if (!answer || error) {
		const char *message = cordon_json_string(error, "message");

		cordon_fail(err, -EINVAL, cordon_kind_parse(cordon_json_string(error, "kind")), "%s",
			    message ? message : "the session gave no proper answer");
		return -EINVAL;
	}
	if (ret_answer)
		*ret_answer = cordon_steal_ptr(&answer);
	return 0;
}

static void frame_head(char head[static FRAME_HEAD], char type, size_t n)
{
	head[0] = type;
	for (size_t i = 0; i < 4; i++)
		head[1 + i] = (char)(unsigned char)(n >> (8 * (3 - i)));
}

int cordon_frame_send(int fd, char type, const void *bytes, size_t n)
{
	char head[FRAME_HEAD];
	int r;

	if (n > CORDON_FRAME_MAX)
		return -E2BIG;
	frame_head(head, type, n);
	r = cordon_write_all(fd, head, sizeof(head));
	return r < 0 ? r : cordon_write_all(fd, bytes, n);
}

int cordon_frame_next(const struct cordon_buf *buf, char *ret_type, const char **ret_bytes, size_t *ret_n)
{
	size_t n = 0;

	if (buf->len < FRAME_HEAD)
		return 0;
	for (size_t i = 1; i < FRAME_HEAD; i++)
		n = n << 8 | (unsigned char)buf->data[i];
	if (n > CORDON_FRAME_MAX)
		return -EPROTO;
	if (buf->len < FRAME_HEAD + n)
		return 0;
	*ret_type = buf->data[0];
	*ret_bytes = buf->data + FRAME_HEAD;
	*ret_n = n;
	return 1;
}

static void cut_front(struct cordon_buf *buf, size_t n)
{
	memmove(buf->data, buf->data + n, buf->len - n);
	buf->len -= n;
	buf->data[buf->len] = '\0';
}

void cordon_frame_drop(struct cordon_buf *buf, size_t n)
{
	cut_front(buf, FRAME_HEAD + n);
}

int cordon_control_open(struct cordon_control *control, int session_dir_fd, struct cordon_error *err)
{
	struct sockaddr_un address;

	for (size_t i = 0; i < CORDON_CONTROL_CLIENTS; i++)
		control->clients[i] = (struct cordon_control_client){ .fd = -1,
								      .fds = { -1, -1, -1 },
								      .in = CORDON_BUF(CORDON_CONTROL_REQUEST_MAX),
								      .out = CORDON_BUF(OUT_MAX) };
	address_of(session_dir_fd, &address);
	unlinkat(session_dir_fd, SOCKET_NAME, 0); /* an earlier process of this session may have left it */
	control->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (control->listen_fd < 0 || fchmod(control->listen_fd, 0600) < 0 ||
	    bind(control->listen_fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    fchmodat(session_dir_fd, SOCKET_NAME, 0600, 0) < 0 || listen(control->listen_fd, 64) < 0)
		return cordon_fail_errno(err, -errno, "cannot make the session's control socket");
	return 0;
}

static void drop(struct cordon_control_client *client)
{
	cordon_closep(&client->fd);
	client->attached = false;
	client->number = 0;
	for (size_t i = 0; i < CORDON_CONTROL_FDS; i++)
		cordon_closep(&client->fds[i]);
	cordon_buf_done(&client->in);
	cordon_buf_done(&client->out);
}

void cordon_control_done(struct cordon_control *control, int session_dir_fd)
{
	unlinkat(session_dir_fd, SOCKET_NAME, 0);
	cordon_closep(&control->listen_fd);
	for (size_t i = 0; i < CORDON_CONTROL_CLIENTS; i++)
		drop(&control->clients[i]);
}

size_t cordon_control_fds(const struct cordon_control *control, struct pollfd *ret_fds)
{
	size_t n = 0, used = 0;

	for (size_t i = 0; i < CORDON_CONTROL_CLIENTS; i++) {
		const struct cordon_control_client *client = &control->clients[i];

		if (client->fd < 0)
			continue;
		used++;
		ret_fds[n++] = (struct pollfd){ .fd = client->fd,
						.events = (short)(POLLIN | (client->out.len ? POLLOUT : 0)) };
	}
	/* A client that connects when all places are taken waits until one is free. */
	if (used < CORDON_CONTROL_CLIENTS)
		ret_fds[n++] = (struct pollfd){ .fd = control->listen_fd, .events = POLLIN };
	return n;
}

static void write_out(struct cordon_control_client *client)
{
	ssize_t n = client->out.len ? send(client->fd, client->out.data, client->out.len, MSG_NOSIGNAL | MSG_DONTWAIT)
				    : 0;

	if (n > 0)
		cut_front(&client->out, (size_t)n);
	else if (n < 0 && errno != EAGAIN && errno != EINTR)
		drop(client);
}

/* Queues bytes in frames for one client. Drops a client that does not read fast enough. */
static void queue_output(struct cordon_control_client *client, const char *bytes, size_t n)
{
	while (n && client->fd >= 0) {
		size_t part = n < CORDON_FRAME_MAX ? n : CORDON_FRAME_MAX;
		char head[FRAME_HEAD];

		frame_head(head, 'd', part);
		if (cordon_buf_add(&client->out, head, sizeof(head)) < 0 ||
		    cordon_buf_add(&client->out, bytes, part) < 0)
			drop(client);
		bytes += part;
		n -= part;
	}
}

/* Returns false when it had to drop the client. */
static bool put_answer(struct cordon_control_client *client, const json_t *reply)
{
	autofree char *text = reply ? json_dumps(reply, JSON_COMPACT) : NULL;

	if (text && cordon_buf_adds(&client->out, text) == 0 && cordon_buf_addc(&client->out, '\n') == 0)
		return true;
	drop(client);
	return false;
}

static void answer(struct cordon_control *control, struct cordon_control_client *client, const char *line, size_t len)
{
	json_auto_t *request = json_loadb(line, len, JSON_REJECT_DUPLICATES, NULL);
	const char *op = cordon_json_string(request, "op");
	json_auto_t *reply = op ? control->handle(control->data, client, op, request) : NULL;

	if (client->number || !put_answer(client, reply))
		return;
	if (client->attached && control->recent)
		queue_output(client, control->recent->data, control->recent->len);
}

void cordon_control_reply(struct cordon_control *control, uint32_t number, json_t *reply)
{
	for (size_t i = 0; i < CORDON_CONTROL_CLIENTS; i++) {
		struct cordon_control_client *client = &control->clients[i];

		if (client->fd < 0 || client->number != number)
			continue;
		client->number = 0;
		if (put_answer(client, reply))
			write_out(client);
	}
	json_decref(reply);
}

/* Handles everything that the client has sent: one request per line, or frames once it is attached. */
static void handle_input(struct cordon_control *control, struct cordon_control_client *client)
{
	while (client->fd >= 0 && client->in.len) {
		if (client->attached) {
			const char *bytes;
			char type;
			size_t n;
			int r = cordon_frame_next(&client->in, &type, &bytes, &n);

			if (r < 0)
				drop(client);
			if (r <= 0)
				return;
			control->frame(control->data, type, bytes, n);
			cordon_frame_drop(&client->in, n);
		} else {
			const char *end = memchr(client->in.data, '\n', client->in.len);
			size_t n = end ? (size_t)(end - client->in.data) : 0;

			if (!end)
				return;
			answer(control, client, client->in.data, n);
			if (client->fd >= 0)
				cut_front(&client->in, n + 1);
		}
	}
}

/* Receives bytes and descriptors. Keeps the first CORDON_CONTROL_FDS descriptors and closes all others. */
static ssize_t receive(struct cordon_control_client *client, char *bytes, size_t size)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int) * CORDON_CONTROL_FDS)];
	} control;
	struct iovec iov = { bytes, size };
	struct msghdr message = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)
	};
	ssize_t n = recvmsg(client->fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	for (struct cmsghdr *c = n < 0 ? NULL : CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c)) {
		size_t count = c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS
				       ? (c->cmsg_len - CMSG_LEN(0)) / sizeof(int)
				       : 0;

		for (size_t i = 0; i < count; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
			if (i < CORDON_CONTROL_FDS && client->fds[i] < 0)
				client->fds[i] = fd;
			else
				close(fd);
		}
	}
	return n;
}

static void read_in(struct cordon_control *control, struct cordon_control_client *client)
{
	char chunk[65536];
	ssize_t n = receive(client, chunk, sizeof(chunk));

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0 || cordon_buf_add(&client->in, chunk, (size_t)n) < 0) {
		if (client->number)
			control->disconnected(control->data, client->number);
		drop(client);
		return;
	}
	handle_input(control, client);
}

/* Whether the peer is a process of our user in our user namespace. A process inside a sandbox has our uid but another
 * user namespace. It cannot see our socket; if it reaches the socket all the same, we refuse it. We let root in,
 * because root can do everything without the socket anyway. */
static bool may_ask(const struct ucred *peer)
{
	char path[48];
	struct stat theirs, ours;

	if (peer->uid != geteuid())
		return peer->uid == 0;
	snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)peer->pid);
	return stat(path, &theirs) == 0 && stat("/proc/self/ns/user", &ours) == 0 && theirs.st_dev == ours.st_dev &&
	       theirs.st_ino == ours.st_ino;
}

static void accept_one(struct cordon_control *control)
{
	struct ucred peer = { 0 };
	socklen_t size = sizeof(peer);
	int fd = accept4(control->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0)
		return;
	for (size_t i = 0; i < CORDON_CONTROL_CLIENTS; i++) {
		if (control->clients[i].fd >= 0)
			continue;
		if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0 || !may_ask(&peer))
			break;
		control->clients[i].fd = fd;
		return;
	}
	close(fd);
}

void cordon_control_serve(struct cordon_control *control, const struct pollfd *fds, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (!fds[i].revents)
			continue;
		if (fds[i].fd == control->listen_fd) {
			accept_one(control);
			continue;
		}
		for (size_t k = 0; k < CORDON_CONTROL_CLIENTS; k++) {
			struct cordon_control_client *client = &control->clients[k];

			if (client->fd != fds[i].fd)
				continue;
			if (fds[i].revents & POLLOUT)
				write_out(client);
			if (client->fd >= 0 && (fds[i].revents & (POLLIN | POLLHUP | POLLERR)))
				read_in(control, client);
			if (client->fd >= 0)
				write_out(client);
			break;
		}
	}
}

void cordon_control_send_output(struct cordon_control *control, const char *bytes, size_t n)
{
	for (size_t i = 0; i < CORDON_CONTROL_CLIENTS; i++) {
		struct cordon_control_client *client = &control->clients[i];

		if (client->fd < 0 || !client->attached)
			continue;
		queue_output(client, bytes, n);
		if (client->fd >= 0)
			write_out(client);
	}
}
