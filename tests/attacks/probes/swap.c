/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Swaps two names while a file below them is opened again and again:
 *
 *     swap keep COUNTER A B                       exchanges A and B until standard input ends, and counts in the file COUNTER
 *     swap open ROUNDS RACED DIR NAME TEXT [A B]  opens DIR/NAME in every way, at least ROUNDS times and until there was an
 *                                                 exchange during RACED of them. The exchanges are those of a thread, or
 *                                                 those that standard input counts. Ends with 1 and FOREIGN at the first
 *                                                 descriptor whose content is not TEXT, with 3 when time ran out.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define SECONDS 150

static const char *first, *second;
static atomic_bool ended;
static atomic_long own_swaps, *swaps = &own_swaps;

/*
 * Keeps the calling thread on the first processor or off it. Where who exchanges and who opens had to share one, they would
 * meet only when one is made to stop in the middle of a call, every few milliseconds.
 */
static void choose_processor(bool is_first)
{
	cpu_set_t all, chosen;
	int number = 0;

	if (sched_getaffinity(0, sizeof(all), &all) < 0 || CPU_COUNT(&all) < 2)
		return;
	while (!CPU_ISSET(number, &all))
		number++;
	chosen = all;
	CPU_CLR(number, &chosen);
	if (is_first) {
		CPU_ZERO(&chosen);
		CPU_SET(number, &chosen);
	}
	(void)sched_setaffinity(0, sizeof(chosen), &chosen);
}

static void *exchange(void *data)
{
	(void)data;
	choose_processor(true);
	while (!ended)
		*swaps += renameat2(AT_FDCWD, first, AT_FDCWD, second, RENAME_EXCHANGE) == 0;
	return NULL;
}

/* The counter in a file, which another process may see. */
static bool map_counter(int fd, int protection)
{
	void *map = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(*swaps), protection, MAP_SHARED, fd, 0);

	if (map == MAP_FAILED)
		return false;
	swaps = map;
	return true;
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
	printf("%ld\n", (long)*swaps);
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

static bool time_is_left(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now); /* what is paused or starved is not too slow */
	return now.tv_sec < SECONDS;
}

static int open_often(long least_rounds, long least_raced, const char *dir, const char *name, const char *text)
{
	long rounds = 0, raced = 0, opened = 0, errors[256] = { 0 };
	int kept = -1;
	pthread_t thread;

	if (first && pthread_create(&thread, NULL, exchange, NULL) != 0)
		return 2;
	choose_processor(false);
	for (; rounds < least_rounds || raced < least_raced; rounds++) {
		char content[64] = "";
		long before;
		ssize_t n;
		int fd;

		if (rounds % 1000 == 0 && !time_is_left())
			break;
		if (kept < 0)
			kept = open(dir, O_PATH | O_DIRECTORY);
		before = *swaps;
		fd = open_somehow(kept < 0 ? 0 : rounds % 5, dir, name, kept);
		raced += *swaps != before;
		n = fd < 0 ? -1 : pread(fd, content, sizeof(content) - 1, 0);
		if (n < 0)
			errors[errno & 255]++;
		else if ((size_t)n != strlen(text) || memcmp(content, text, (size_t)n) != 0) {
			printf("FOREIGN in round %ld: %zd bytes, %s\n", rounds, n, content);
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
	printf("rounds %ld raced %ld opened %ld swaps %ld", rounds, raced, opened, (long)*swaps);
	for (int i = 0; i < 256; i++)
		if (errors[i])
			printf(" %s %ld", strerrorname_np(i), errors[i]);
	puts("");
	return rounds < least_rounds || raced < least_raced ? 3 : 0;
}

int main(int argc, char **argv)
{
	if (argc == 5 && strcmp(argv[1], "keep") == 0) {
		first = argv[3];
		second = argv[4];
		return map_counter(open(argv[2], O_RDWR), PROT_READ | PROT_WRITE) ? keep() : 2;
	}
	if ((argc != 7 && argc != 9) || strcmp(argv[1], "open") != 0)
		return 2;
	if (argc == 9) {
		first = argv[7];
		second = argv[8];
	} else if (!map_counter(0, PROT_READ)) {
		return 2;
	}
	return open_often(atol(argv[2]), atol(argv[3]), argv[4], argv[5], argv[6]);
}
