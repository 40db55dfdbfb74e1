/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Carries things into a git directory while they turn into symbolic links, or get some: carry ROUNDS GIT, in a directory
 * where src can be written. Prints how many rounds there were, how often something came there, and how many links stood in
 * GIT, from where they are removed.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOOK_EVERY 20 /* rounds */

#define PLACES 4

static atomic_bool stop;
static long links;
static char places[PLACES][128], late[PLACES][144];

static void *turner(void *unused)
{
	unsigned int seed = 5, place = 0;

	(void)unused;
	while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
		/* A directory without links becomes one with a link; a file becomes a link; a link comes into the directory. */
		renameat2(AT_FDCWD, "src/turn-dir", AT_FDCWD, "src/turn-full", RENAME_EXCHANGE);
		renameat2(AT_FDCWD, "src/turn-file", AT_FDCWD, "src/turn-link", RENAME_EXCHANGE);
		(void)symlink("/etc/passwd", "src/turn-dir/late");
		(void)symlink("/etc/passwd", late[place++ % PLACES]);
		for (volatile unsigned int i = (unsigned int)rand_r(&seed) % 9000; i; i--)
			;
		unlink("src/turn-dir/late");
	}
	return NULL;
}

static int remove_link(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)ftw;
	if (type == FTW_SL || type == FTW_SLN) {
		links++;
		unlink(path);
	}
	return 0;
}

static void set_up(void)
{
	mkdir("src/turn-dir", 0755);
	mkdir("src/turn-full", 0755);
	(void)symlink("/etc/passwd", "src/turn-full/HEAD");
	close(open("src/turn-file", O_CREAT | O_WRONLY, 0644));
	(void)symlink("/etc/passwd", "src/turn-link");
}

static void clear(void)
{
	for (int i = 0; i < PLACES; i++) {
		unlink(places[i]);
		rmdir(places[i]);
	}
}

static int carry(long round)
{
	const char *place = places[round % PLACES];

	switch (round % 6) {
	case 0:
		return rename("src/turn-dir", place);
	case 1:
		return rename("src/turn-file", place);
	case 2:
		return link("src/turn-file", place);
	case 3:
		return linkat(AT_FDCWD, "src/turn-file", AT_FDCWD, place, AT_SYMLINK_FOLLOW);
	case 4:
		/* Within the git directory, where it gets a link while it moves. */
		return mkdir(place, 0755) < 0 ? -1 : rename(place, places[(round + 1) % PLACES]);
	default:
		close(open(place, O_CREAT | O_WRONLY, 0644));
		return renameat2(AT_FDCWD, place, AT_FDCWD, "src/turn-file", RENAME_EXCHANGE);
	}
}

int main(int argc, char **argv)
{
	long rounds = argc == 3 ? strtol(argv[1], NULL, 10) : 0, came = 0;
	pthread_t thread;

	if (!rounds)
		return 2;
	for (int i = 0; i < PLACES; i++) {
		snprintf(places[i], sizeof(places[i]), "%s/carried-%d", argv[2], i);
		snprintf(late[i], sizeof(late[i]), "%s/late", places[i]);
	}
	set_up();
	if (pthread_create(&thread, NULL, turner, NULL) != 0)
		return 2;
	for (long i = 0; i < rounds; i++) {
		came += carry(i) == 0;
		if ((i + 1) % LOOK_EVERY == 0)
			nftw(argv[2], remove_link, 16, FTW_PHYS);
		if (i % 2)
			clear();
		set_up(); /* what was carried away */
	}
	stop = 1;
	pthread_join(thread, NULL);
	nftw(argv[2], remove_link, 16, FTW_PHYS);
	clear();
	printf("%ld rounds, %ld came, %ld links\n", rounds, came, links);
	return 0;
}
