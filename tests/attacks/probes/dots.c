/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes, renames and removes entries through ".." while a thread renames something else: dots ROUNDS. The kernel's lock for
 * renames is one for the whole machine, so it does not matter who renames. Prints how many rounds there were, how many calls
 * failed, and how often the kernel itself answered EAGAIN to a lookup that may not leave its directory.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static atomic_bool stop;

static void *renamer(void *unused)
{
	(void)unused;
	while (!stop) {
		rename("src/here", "src/there");
		rename("src/there", "src/here");
	}
	return NULL;
}

static long once(const char *from, const char *to)
{
	int fd = open(from, O_CREAT | O_EXCL | O_WRONLY, 0644);

	if (fd < 0 || close(fd) < 0 || rename(from, to) < 0 || unlink(to) < 0) {
		perror(from);
		return 1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	long rounds = argc == 2 ? strtol(argv[1], NULL, 10) : 0, failed = 0, again = 0;
	struct open_how how = { .flags = O_PATH, .resolve = RESOLVE_BENEATH };
	pthread_t thread;

	mkdir("d", 0755);
	mkdir("deep/er/d", 0755);
	mkdir("src/here", 0755);
	if (!rounds || pthread_create(&thread, NULL, renamer, NULL) != 0)
		return 2;
	for (long i = 0; i < rounds; i++) {
		int fd = (int)syscall(SYS_openat2, AT_FDCWD, "deep/er/../../d/../deep/er/../er", &how, sizeof(how));

		if (fd >= 0)
			close(fd);
		else
			again += errno == EAGAIN;
		failed += i % 2 ? once("d/../dots", "d/../dots-y")
				: once("deep/er/d/../../er/dots", "deep/er/d/../dots-y");
	}
	stop = 1;
	pthread_join(thread, NULL);
	rmdir("d");
	rmdir("deep/er/d");
	printf("%ld rounds, %ld failed, %ld again\n", rounds, failed, again);
	return failed != 0;
}
