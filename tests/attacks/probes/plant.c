/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tries to make a forbidden name by every call that can, while the memory that holds the name changes: plant WAY ROUNDS NAME.
 * Prints how many rounds were run to their end and how many of them made the harmless name, so that a test knows that the
 * calls work at all, and "planted" at once when the forbidden one stands there. Several may run in the same directory.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static char buffer[256];
static const char *bad, *way;
static char good[64], moved[64], bad_path[256], good_path[256];
static atomic_int stop;

/* Flips between the two names, each time in one piece as far as a reader of the first bytes can tell. */
static void *flip(void *unused)
{
	(void)unused;
	while (!stop) {
		memcpy(buffer, bad_path, sizeof(buffer));
		for (volatile int i = 0; i < rand() % 400; i++)
			;
		memcpy(buffer, good_path, sizeof(buffer));
		for (volatile int i = 0; i < rand() % 400; i++)
			;
	}
	return NULL;
}

static int make(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd, r;

	if (strcmp(way, "open") == 0 || strcmp(way, "magic") == 0 || strcmp(way, "idle") == 0 ||
	    strcmp(way, "absolute") == 0)
		fd = (int)syscall(SYS_openat, AT_FDCWD, buffer, O_CREAT | O_WRONLY, 0644);
	else if (strcmp(way, "mkdir") == 0)
		return mkdir(buffer, 0755);
	else if (strcmp(way, "symlink") == 0)
		return symlink("target", buffer);
	else if (strcmp(way, "link") == 0)
		return link("source", buffer);
	else if (strcmp(way, "mknod") == 0)
		return mknod(buffer, S_IFIFO | 0644, 0);
	else if (strcmp(way, "rename") == 0) {
		fd = open(moved, O_CREAT | O_WRONLY, 0644);
		close(fd);
		return rename(moved, buffer);
	} else if (strcmp(way, "bind") == 0) {
		fd = socket(AF_UNIX, SOCK_STREAM, 0);
		memcpy(address.sun_path, buffer, sizeof(address.sun_path) - 1);
		r = bind(fd, (struct sockaddr *)&address, sizeof(address));
		close(fd);
		return r;
	} else
		exit(3);
	if (fd < 0)
		return -1;
	close(fd);
	return 0;
}

static int stands(const char *path)
{
	return faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

int main(int argc, char **argv)
{
	long rounds = argc == 4 ? atol(argv[2]) : 0, ended = 0, made = 0;
	const char *prefix = "";
	struct sched_param none = { 0 };
	char here[128];
	struct timespec now;
	pthread_t thread;

	if (!rounds)
		return 2;
	way = argv[1];
	bad = argv[3];
	/* Each sandbox has a numbering of processes of its own: the number alone is not unique. */
	clock_gettime(CLOCK_MONOTONIC, &now);
	snprintf(good, sizeof(good), "harmless-%d-%ld", getpid(), now.tv_nsec);
	snprintf(moved, sizeof(moved), "src/moved-%d-%ld", getpid(), now.tv_nsec);
	if (strcmp(way, "magic") == 0)
		prefix = "/proc/self/cwd/";
	else if (strcmp(way, "absolute") == 0 && getcwd(here, sizeof(here) - 1))
		prefix = strcat(here, "/");
	snprintf(bad_path, sizeof(bad_path), "%s%s", prefix, bad);
	snprintf(good_path, sizeof(good_path), "%s%s", prefix, good);
	if (strcmp(way, "idle") == 0 && sched_setscheduler(0, SCHED_IDLE, &none) < 0)
		return 2;
	memcpy(buffer, good_path, sizeof(buffer));
	if (pthread_create(&thread, NULL, flip, NULL))
		return 2;
	/* A busy machine may leave the forbidden name in place for as long as all rounds take: then there are more of them. */
	for (; ended < rounds || (made <= rounds / 100 && ended < 100 * rounds); ended++) {
		if (make() == 0)
			made++;
		if (stands(bad)) {
			printf("planted %ld\n", ended);
			return 1;
		}
		unlink(good);
		rmdir(good);
	}
	stop = 1;
	pthread_join(thread, NULL);
	printf("rounds %ld made %ld\n", rounds, made);
	return 0;
}
