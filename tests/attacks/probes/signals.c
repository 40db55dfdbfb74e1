/* SPDX-License-Identifier: Apache-2.0 */
/* Makes ROUNDS files with O_EXCL while a timer sends a signal every few microseconds: signals ROUNDS DIR. Prints how many calls
 * said that the file was made, that it existed already, and that they were interrupted. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <unistd.h>

static volatile sig_atomic_t seen;

static void on_alarm(int number)
{
	(void)number;
	seen++;
}

int main(int argc, char **argv)
{
	struct itimerval often = { { 0, 30 }, { 0, 30 } }, never = { 0 };
	struct sigaction action = { .sa_handler = on_alarm, .sa_flags = SA_RESTART };
	long made = 0, existed = 0, other = 0, rounds = argc == 3 ? atol(argv[1]) : 0;
	char name[256];

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	for (long i = 0; i < rounds; i++) {
		int fd;

		snprintf(name, sizeof(name), "%s/file-%ld", argv[2], i);
		fd = open(name, O_CREAT | O_EXCL | O_WRONLY, 0644);
		if (fd >= 0)
			made++, close(fd);
		else if (errno == EEXIST)
			existed++;
		else
			other++;
	}
	setitimer(ITIMER_REAL, &never, NULL);
	printf("made %ld existed %ld other %ld signals %d\n", made, existed, other, seen > 100);
	return 0;
}
