/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends requests to an HTTP server on 127.0.0.1 and measures the answers.
 *
 *     serve_bench PORT CONNECTIONS SECONDS <REQUESTS
 *
 * The input has whole requests, each followed by a NUL byte, which are sent in turns; each connection waits for its answer
 * before it sends the next. A server that keeps a connection open gets the next request on it; one that closes it is
 * connected to anew. Prints answers per second, the median of microseconds from the first byte sent (or connect) to the last byte received, and the
 * number of connections. Each answer must have the status 200 and a result.
 */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define INPUT_MAX (1 << 20)
#define ANSWER_MAX (256 << 10)
#define CONNECTIONS_MAX 1024
#define TIMES_MAX (1 << 20)

struct connection {
	int fd;
	double began;
	size_t got;
	char *answer;
};

static char input[INPUT_MAX + 1];
static size_t n_input;
static const char *request = input;
static struct connection connections[CONNECTIONS_MAX];
static float times[TIMES_MAX];
static size_t n_times, n_connects;
static int epoll_fd;
static struct sockaddr_in server = { .sin_family = AF_INET };

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

/* Sends the request, over a new socket if there is none. It is small, so the socket's buffer takes all of it. */
static void ask(struct connection *connection)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = connection };
	size_t size = strlen(request);
	int on = 1;

	connection->began = now();
	connection->got = 0;
	if (connection->fd < 0) {
		connection->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (connection->fd < 0 || connect(connection->fd, (struct sockaddr *)&server, sizeof(server)) < 0)
			fail("connect");
		setsockopt(connection->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
		if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, connection->fd, &event) < 0)
			fail("epoll_ctl");
		n_connects++;
	}
	if (send(connection->fd, request, size, MSG_NOSIGNAL) != (ssize_t)size)
		fail("send");
	request += size + 1;
	if (request >= input + n_input)
		request = input;
}

static const char *header(const char *head, const char *name)
{
	const char *at = strcasestr(head, name);

	return at ? at + strlen(name) : NULL;
}

/* Whether all of the answer has arrived, and whether the server closes the connection then. */
static bool is_whole(const struct connection *connection, bool ended, bool *ret_close)
{
	const char *body = strstr(connection->answer, "\r\n\r\n");
	const char *length, *end;
	size_t left;

	if (!body)
		return false;
	body += 4;
	left = connection->got - (size_t)(body - connection->answer);
	length = header(connection->answer, "\r\nContent-Length: ");
	end = header(connection->answer, "\r\nConnection: close");
	*ret_close = end && end < body;
	if (length && length < body)
		return left >= strtoul(length, NULL, 10);
	if (header(connection->answer, "\r\nTransfer-Encoding: chunked"))
		return left >= 5 && memcmp(connection->answer + connection->got - 5, "0\r\n\r\n", 5) == 0;
	*ret_close = true;
	return ended;
}

/* Takes what has arrived; asks again after a whole answer. */
static void take(struct connection *connection)
{
	ssize_t n = recv(connection->fd, connection->answer + connection->got, ANSWER_MAX - connection->got, 0);
	bool is_closed = false;

	if (n < 0)
		fail("recv");
	connection->got += (size_t)n;
	connection->answer[connection->got] = '\0';
	if (!is_whole(connection, n == 0, &is_closed)) {
		if (n == 0 || connection->got == ANSWER_MAX) {
			fprintf(stderr, "no whole answer: %.300s\n", connection->answer);
			exit(1);
		}
		return;
	}
	if (strncmp(connection->answer, "HTTP/1.1 200", 12) != 0 || !strstr(connection->answer, "\"result\"")) {
		fprintf(stderr, "not a good answer: %.600s\n", connection->answer);
		exit(1);
	}
	if (n_times < TIMES_MAX)
		times[n_times++] = (float)(now() - connection->began);
	if (is_closed) {
		close(connection->fd);
		connection->fd = -1;
	}
	ask(connection);
}

static int compare(const void *one, const void *other)
{
	float a = *(const float *)one, b = *(const float *)other;

	return (a > b) - (a < b);
}

int main(int argc, char **argv)
{
	struct epoll_event events[64];
	size_t count;
	double began, end;

	if (argc != 4) {
		fputs("usage: serve_bench PORT CONNECTIONS SECONDS <REQUESTS\n", stderr);
		return 2;
	}
	server.sin_port = htons((uint16_t)strtoul(argv[1], NULL, 10));
	server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	count = strtoul(argv[2], NULL, 10);
	n_input = fread(input, 1, INPUT_MAX, stdin);
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (epoll_fd < 0 || !n_input || input[n_input - 1] != '\0' || count > CONNECTIONS_MAX)
		fail("cannot begin");
	began = now();
	end = began + strtod(argv[3], NULL) * 1e6;
	for (size_t i = 0; i < count; i++) {
		connections[i] = (struct connection){ .fd = -1, .answer = malloc(ANSWER_MAX + 1) };
		if (!connections[i].answer)
			fail("malloc");
		ask(&connections[i]);
	}
	while (now() < end) {
		int n = epoll_wait(epoll_fd, events, 64, 1000);

		for (int i = 0; i < n; i++)
			take(events[i].data.ptr);
	}
	end = now();
	if (!n_times)
		fail("no answers");
	qsort(times, n_times, sizeof(*times), compare);
	printf("%.1f %.1f %zu\n", (double)n_times * 1e6 / (end - began), (double)times[n_times / 2], n_connects);
	return 0;
}
