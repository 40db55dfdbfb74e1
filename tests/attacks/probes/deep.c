/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One thread flips a descriptor, or the working directory, between a directory whose path is longer than PATH_MAX, one that
 * may be written, and one that may not, while another makes names in it: deep descriptor|directory ROUNDS BAD GOOD. In GOOD
 * it makes "harmless" only by chance of the flip; in BAD nothing may come to be. Prints how many calls succeeded.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NAME_LENGTH 200
#define LEVELS 24 /* more than 4,096 bytes */
#define SLOT 100

static int deep_fd, bad_fd;
static bool by_descriptor;
static atomic_bool stop;

/* Behind the lens no path is longer than PATH_MAX: there it is as deep as it can be. */
static int make_deep(void)
{
	char name[NAME_LENGTH + 1];
	int at = open("src", O_RDONLY | O_DIRECTORY);

	memset(name, 'd', NAME_LENGTH);
	name[NAME_LENGTH] = '\0';
	for (int i = 0; i < LEVELS && at >= 0; i++) {
		int next;

		if (mkdirat(at, name, 0755) < 0 && errno != EEXIST)
			return errno == ENAMETOOLONG ? at : -1;
		next = openat(at, name, O_RDONLY | O_DIRECTORY);
		close(at);
		at = next;
	}
	return at;
}

static void *flipper(void *unused)
{
	unsigned int seed = 7;

	(void)unused;
	while (!atomic_load_explicit(&stop, memory_order_relaxed))
		for (int i = 0; i < 2; i++) {
			int fd = i ? bad_fd : deep_fd;

			if (by_descriptor)
				dup3(fd, SLOT, 0);
			else if (fchdir(fd) < 0)
				abort();
			for (volatile unsigned int n = (unsigned int)rand_r(&seed) % 4000; n; n--)
				;
		}
	return NULL;
}

static bool once(long round)
{
	int at = by_descriptor ? SLOT : AT_FDCWD, fd;

	switch (round % 6) {
	case 0:
		fd = openat(at, "planted", O_CREAT | O_WRONLY, 0755);
		return fd >= 0 && close(fd) == 0;
	case 1:
		return mkdirat(at, "planted-dir", 0755) == 0;
	case 2:
		return symlinkat("/etc/passwd", at, "planted-link") == 0;
	case 3:
		return mknodat(at, "planted-node", S_IFREG | 0644, 0) == 0;
	case 4:
		fd = openat(at, "pre-commit", O_WRONLY | O_TRUNC);
		return fd >= 0 && close(fd) == 0;
	default:
		/* What was made in the deep directory goes away again, and the hook must not. */
		unlinkat(at, "planted", 0);
		unlinkat(at, "planted-link", 0);
		unlinkat(at, "planted-node", 0);
		unlinkat(at, "planted-dir", AT_REMOVEDIR);
		return unlinkat(at, "pre-commit", 0) == 0;
	}
}

int main(int argc, char **argv)
{
	long rounds, made = 0;
	pthread_t thread;
	int good;

	if (argc != 5)
		return 2;
	by_descriptor = strcmp(argv[1], "descriptor") == 0;
	rounds = strtol(argv[2], NULL, 10);
	deep_fd = make_deep();
	bad_fd = open(argv[3], O_RDONLY | O_DIRECTORY);
	good = open(argv[4], O_RDONLY | O_DIRECTORY);
	if (deep_fd < 0 || bad_fd < 0 || good < 0 || openat(deep_fd, "pre-commit", O_CREAT | O_WRONLY, 0644) < 0) {
		perror("set-up");
		return 1;
	}
	close(openat(good, "harmless", O_CREAT | O_WRONLY, 0644));
	if (by_descriptor)
		dup3(deep_fd, SLOT, 0);
	else if (fchdir(deep_fd) < 0)
		return 1;
	if (pthread_create(&thread, NULL, flipper, NULL) != 0)
		return 1;
	/* A busy machine may leave the bad directory in place for as long as all rounds take: then there are more of them. */
	for (long i = 0; i < rounds || (!made && i < 100 * rounds); i++)
		made += once(i);
	stop = true;
	pthread_join(thread, NULL);
	printf("%ld rounds, %ld made\n", rounds, made);
	return 0;
}
