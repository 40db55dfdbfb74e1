/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Swaps two names while a file below them is opened again and again:
 *
 *     swap keep A B                         exchanges A and B until standard input ends; prints how often
 *     swap open ROUNDS DIR NAME TEXT [A B]  opens DIR/NAME in every way so often, while a thread exchanges A and B, and
 *                                           ends with 1 and FOREIGN at the first descriptor whose content is not TEXT
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *first, *second;
static atomic_bool ended;
static atomic_long swaps;

static void *exchange(void *data)
{
	(void)data;
	while (!ended)
		swaps += renameat2(AT_FDCWD, first, AT_FDCWD, second, RENAME_EXCHANGE) == 0;
	return NULL;
}

static int keep(void)
{
	struct pollfd input = { .fd = 0, .events = POLLIN };
	pthread_t thread;

	if (pthread_create(&thread, NULL, exchange, NULL) != 0)
		return 2;
	(void)poll(&input, 1, -1);
	ended = true;
	(void)pthread_join(thread, NULL);
	printf("%ld\n", (long)swaps);
	return 0;
}

static int open_somehow(long way, const char *dir, const char *name, int kept)
{
	char path[4096];
	int dir_fd, fd, error;

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	switch (way) {
	case 0:
		return open(path, O_RDONLY);
	case 1:
		return open(path, O_RDWR);
	case 2:
		return openat(kept, name, O_RDONLY);
	default:
		dir_fd = open(dir, O_DIRECTORY | (way == 3 ? O_RDONLY : O_PATH));
		if (dir_fd < 0)
			return -1;
		fd = openat(dir_fd, name, O_RDONLY);
		error = errno;
		close(dir_fd);
		errno = error;
		return fd;
	}
}

static int open_often(long rounds, const char *dir, const char *name, const char *text)
{
	long opened = 0, errors[256] = { 0 };
	int kept = -1;
	pthread_t thread;

	if (first && pthread_create(&thread, NULL, exchange, NULL) != 0)
		return 2;
	for (long i = 0; i < rounds; i++) {
		char content[64] = "";
		ssize_t n;
		int fd;

		if (kept < 0)
			kept = open(dir, O_PATH | O_DIRECTORY);
		fd = open_somehow(kept < 0 ? 0 : i % 5, dir, name, kept);
		n = fd < 0 ? -1 : pread(fd, content, sizeof(content) - 1, 0);
		if (n < 0)
			errors[errno & 255]++;
		else if ((size_t)n != strlen(text) || memcmp(content, text, (size_t)n) != 0) {
			printf("FOREIGN in round %ld: %zd bytes, %s\n", i, n, content);
			return 1;
		} else {
			opened++;
		}
		if (fd >= 0)
			close(fd);
	}
	ended = true;
	if (first)
		(void)pthread_join(thread, NULL);
	printf("rounds %ld opened %ld swaps %ld", rounds, opened, (long)swaps);
	for (int i = 0; i < 256; i++)
		if (errors[i])
			printf(" %s %ld", strerrorname_np(i), errors[i]);
	puts("");
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 4 && strcmp(argv[1], "keep") == 0) {
		first = argv[2];
		second = argv[3];
		return keep();
	}
	if ((argc != 6 && argc != 8) || strcmp(argv[1], "open") != 0)
		return 2;
	if (argc == 8) {
		first = argv[6];
		second = argv[7];
	}
	return open_often(atol(argv[2]), argv[3], argv[4], argv[5]);
}
