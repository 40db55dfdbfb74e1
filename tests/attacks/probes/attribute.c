/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One thread rewrites the name of an extended attribute while another sets it: attribute path|descriptor ROUNDS FILE. Prints
 * how many rounds there were, and how many attributes were set.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

/* The names differ in one byte, so that there is never a third one. */
static char name[] = "user.overlay.opaque";
#define TURNS (sizeof("user.overla") - 1)
static atomic_bool stop;
static atomic_long flips;

static void *flipper(void *unused)
{
	unsigned int seed = 3;

	(void)unused;
	while (!atomic_load_explicit(&stop, memory_order_relaxed))
		for (int i = 0; i < 2; i++) {
			((volatile char *)name)[TURNS] = i ? 'y' : 'z';
			flips++;
			for (volatile unsigned int n = (unsigned int)rand_r(&seed) % 3000; n; n--)
				;
		}
	return NULL;
}

int main(int argc, char **argv)
{
	long rounds, done = 0;
	pthread_t thread;
	bool by_path;
	int fd;

	if (argc != 4)
		return 2;
	by_path = strcmp(argv[1], "path") == 0;
	rounds = strtol(argv[2], NULL, 10);
	fd = open(argv[3], O_RDONLY);
	name[TURNS] = 'z';
	if (fd < 0 || pthread_create(&thread, NULL, flipper, NULL) != 0)
		return 1;
	while (flips < 100)
		;
	/* A busy machine may leave the refused name in place for as long as all rounds take: then there are more of them. */
	for (long i = 0; i < rounds || (!done && i < 100 * rounds); i++)
		done += (by_path ? setxattr(argv[3], name, "y", 1, 0) : fsetxattr(fd, name, "y", 1, 0)) == 0;
	stop = true;
	pthread_join(thread, NULL);
	printf("%ld rounds, %ld set\n", rounds, done);
	return 0;
}
