/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One thread rewrites a path while another calls with it: flip ROUNDS SECONDS GOOD BAD INODE. GOOD may be changed, BAD may
 * not; on the host it has that inode number. Prints how many rounds were made and how often BAD was opened for writing.
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
#include <time.h>
#include <unistd.h>

static char path[4096];
static const char *good, *bad;
static atomic_bool stop;

static void *flipper(void *unused)
{
	size_t n = strlen(good) > strlen(bad) ? strlen(good) + 1 : strlen(bad) + 1;
	unsigned int seed = 1;

	(void)unused;
	while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
		memcpy(path, bad, n);
		for (volatile unsigned int i = (unsigned int)rand_r(&seed) % 3000; i; i--)
			;
		memcpy(path, good, n);
		for (volatile unsigned int i = (unsigned int)rand_r(&seed) % 3000; i; i--)
			;
	}
	return NULL;
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	char good_text[4096] = { 0 }, bad_text[4096] = { 0 };
	ino_t wanted;
	pthread_t thread;
	long rounds, reached = 0, done = 0;
	double end;

	if (argc != 6)
		return 2;
	wanted = (ino_t)strtoull(argv[5], NULL, 10);
	strncpy(good_text, argv[3], sizeof(good_text) - 1);
	strncpy(bad_text, argv[4], sizeof(bad_text) - 1);
	good = good_text;
	bad = bad_text;
	rounds = strtol(argv[1], NULL, 10);
	end = now() + strtod(argv[2], NULL);
	memcpy(path, good, sizeof(path));
	pthread_create(&thread, NULL, flipper, NULL);
	for (; done < rounds && now() < end; done++) {
		struct stat st;
		int fd;

		switch (done % 8) {
		case 0:
			syscall(SYS_chmod, path, 0644);
			break;
		case 1:
			syscall(SYS_truncate, path, 4);
			break;
		case 2:
			syscall(SYS_utimensat, AT_FDCWD, path, NULL, 0);
			break;
		case 3:
			syscall(SYS_setxattr, path, "user.flip", "x", 1, 0);
			break;
		default:
			fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_NOFOLLOW);
			if (fd < 0)
				break;
			if (fstat(fd, &st) == 0 && st.st_ino == wanted)
				reached += write(fd, "evil", 4) == 4;
			close(fd);
		}
	}
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
	printf("rounds %ld\nreached %ld\n", done, reached);
	return 0;
}
