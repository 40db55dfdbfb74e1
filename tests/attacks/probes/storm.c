/* SPDX-License-Identifier: Apache-2.0 */
/* Many threads open files while signals rain on them: storm THREADS OPENS FILE. Counts calls that came back early. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <unistd.h>

static const char *file;
static long opens;
static atomic_long worked, interrupted, failed, signals;
static atomic_bool go, stop;

static void on_signal(int number)
{
	(void)number;
	signals++;
}

static void *opener(void *unused)
{
	(void)unused;
	while (!go)
		usleep(1000);
	for (long i = 0; i < opens; i++) {
		int fd = open(file, O_RDONLY | O_CLOEXEC);

		if (fd >= 0)
			worked++;
		else if (errno == EINTR)
			interrupted++;
		else
			failed++;
		if (fd >= 0)
			close(fd);
	}
	return NULL;
}

static void *shooter(void *targets)
{
	pthread_t *all = targets;

	for (unsigned int i = 0; !stop; i++) {
		pthread_kill(all[i % 16], SIGUSR1);
		usleep(50);
		go = signals > 0;
	}
	return NULL;
}

int main(int argc, char **argv)
{
	/* A call that no supervisor took yet can be interrupted (the kernel's rule); it is then begun again, unseen. */
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
	static pthread_t threads[2000];
	pthread_t gun;
	long n;

	n = argc == 4 ? strtol(argv[1], NULL, 10) : 0;
	if (n < 16 || n > 2000)
		return 2;
	opens = strtol(argv[2], NULL, 10);
	file = argv[3];
	sigaction(SIGUSR1, &action, NULL);
	for (long i = 0; i < n; i++) {
		if (pthread_create(&threads[i], NULL, opener, NULL))
			return 3;
		/* It rains on the first sixteen before anybody works. */
		if (i == 15)
			pthread_create(&gun, NULL, shooter, threads);
	}
	for (long i = 16; i < n; i++)
		pthread_join(threads[i], NULL);
	stop = true; /* the first sixteen are shot at: they must exist until nobody shoots */
	pthread_join(gun, NULL);
	for (long i = 0; i < 16; i++)
		pthread_join(threads[i], NULL);
	printf("worked %ld\ninterrupted %ld\nfailed %ld\nsignals %ld\n", worked, interrupted, failed, signals);
	return 0;
}
