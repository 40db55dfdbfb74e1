/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures TCP connections of a sandbox to a server outside it.
 *
 *     net_bench serve PORT                    on 127.0.0.1; a client's first byte says what it wants
 *     net_bench connect ADDRESS PORT ROUNDS   median microseconds of connect(2), and until the server's first byte
 *     net_bench get ADDRESS PORT MEGABYTES    Gbit/s that arrive
 *     net_bench idle ADDRESS PORT COUNT       opens so many, says "ready" and holds them until its input ends
 */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS_MAX 10000
#define BLOCK (256 << 10)

static char block[BLOCK];

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

static struct sockaddr_in name_of(const char *address, const char *port)
{
	struct sockaddr_in name = { .sin_family = AF_INET, .sin_port = htons((uint16_t)strtoul(port, NULL, 10)) };

	if (inet_pton(AF_INET, address, &name.sin_addr) != 1)
		fail(address);
	return name;
}

static int dial(const struct sockaddr_in *name)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

	if (fd < 0 || connect(fd, (const struct sockaddr *)name, sizeof(*name)) < 0)
		fail("connect");
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	return fd;
}

static void serve_client(int fd)
{
	char want;

	while (read(fd, &want, 1) == 1) {
		if (want == '.' && write(fd, "!", 1) != 1)
			break;
		while (want == 'g' && write(fd, block, sizeof(block)) > 0)
			;
	}
	close(fd);
}

static void serve(const char *port)
{
	struct sockaddr_in name = name_of("127.0.0.1", port);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

	signal(SIGCHLD, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (fd < 0 || bind(fd, (const struct sockaddr *)&name, sizeof(name)) < 0 || listen(fd, 4096) < 0)
		fail("listen");
	puts("ready");
	fflush(stdout);
	for (;;) {
		int client = accept(fd, NULL, NULL);

		if (client >= 0 && fork() == 0) {
			close(fd);
			serve_client(client);
			_exit(0);
		}
		close(client);
	}
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void measure_connect(const struct sockaddr_in *name, size_t rounds)
{
	static double connects[ROUNDS_MAX], bytes[ROUNDS_MAX];
	char answer;

	for (size_t i = 0; i < rounds; i++) {
		double began = now();
		int fd = dial(name);

		connects[i] = now() - began;
		if (write(fd, ".", 1) != 1 || read(fd, &answer, 1) != 1)
			fail("first byte");
		bytes[i] = now() - began;
		close(fd);
	}
	qsort(connects, rounds, sizeof(double), compare);
	qsort(bytes, rounds, sizeof(double), compare);
	printf("%.1f %.1f\n", connects[rounds / 2], bytes[rounds / 2]);
}

static void measure_get(const struct sockaddr_in *name, double megabytes)
{
	int fd = dial(name);
	double began = now(), got = 0;

	if (write(fd, "g", 1) != 1)
		fail("get");
	while (got < megabytes * 1e6) {
		ssize_t n = read(fd, block, sizeof(block));

		if (n <= 0)
			fail("get");
		got += (double)n;
	}
	printf("%.2f\n", got * 8 / 1e3 / (now() - began));
}

static void hold(const struct sockaddr_in *name, size_t n)
{
	struct rlimit files;

	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
	for (size_t i = 0; i < n; i++)
		dial(name);
	puts("ready");
	fflush(stdout);
	while (read(0, block, 1) > 0)
		;
}

int main(int argc, char **argv)
{
	struct sockaddr_in name;
	size_t n;

	if (argc == 3 && strcmp(argv[1], "serve") == 0)
		serve(argv[2]);
	if (argc != 5) {
		fputs("usage: net_bench serve PORT | connect|get|idle ADDRESS PORT COUNT\n", stderr);
		return 2;
	}
	name = name_of(argv[2], argv[3]);
	n = strtoul(argv[4], NULL, 10);
	if (strcmp(argv[1], "connect") == 0)
		measure_connect(&name, n < ROUNDS_MAX ? n : ROUNDS_MAX);
	else if (strcmp(argv[1], "get") == 0)
		measure_get(&name, (double)n);
	else
		hold(&name, n);
	return 0;
}
