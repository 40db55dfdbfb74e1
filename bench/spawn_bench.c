/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures how long command lines take from spawn to exit, or with -f to the first byte that they print. The commands
 * are interleaved, so that all of them have the same noise.
 *
 *     spawn_bench [-f] ROUNDS NAME [VARIABLE=VALUE]... COMMAND [ARG]... [';' NAME COMMAND [ARG]...]...
 *
 * Every round runs each command once, beginning with another one each time; the first tenth of the rounds is not
 * counted. After each command the kernel gets some time to remove what the command left (it removes network and
 * mount namespaces in the background), so that this does not slow down the next command. It prints one line per
 * command: name, median, tenth and ninetieth percentile in microseconds, the median as a multiple of the first
 * command's, the least, and the median of the processor time, also of the processes that a command leaves behind. A
 * command that does not exit with 0 ends the measurement.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define COMMANDS_MAX 16
#define ENV_MAX 1024
#define ROUNDS_MAX 10000
#define SETTLE_NS 20000000

struct command {
	const char *name;
	char **argv;
	char *env[ENV_MAX];
	double *us, *cpu_us;
};

static double times[COMMANDS_MAX][ROUNDS_MAX], cpu_times[COMMANDS_MAX][ROUNDS_MAX];

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* The processor time of all processes that have ended; those that a command leaves become our children. */
static double cpu_us(void)
{
	struct rusage usage;

	while (waitpid(-1, NULL, 0) > 0)
		;
	getrusage(RUSAGE_CHILDREN, &usage);
	return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e6 +
	       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

/* posix_spawn shares memory until exec, so the size of this program adds nothing. Where `output` is a descriptor, the first byte
 * from it ends the time; the command prints one line. */
static double measure(const struct command *command, const posix_spawn_file_actions_t *actions, int output)
{
	double before = now_us(), first = 0;
	char line[PIPE_BUF];
	int status = 0, r;
	pid_t pid;

	r = posix_spawnp(&pid, command->argv[0], actions, NULL, command->argv, command->env);
	if (r != 0) {
		fprintf(stderr, "spawn_bench: %s: %s\n", command->argv[0], strerror(r));
		exit(1);
	}
	if (output >= 0) {
		(void)!read(output, line, sizeof(line));
		first = now_us() - before;
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
		fprintf(stderr, "spawn_bench: %s ended with status %#x\n", command->name, (unsigned int)status);
		exit(1);
	}
	return output >= 0 ? first : now_us() - before;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Takes variables off the beginning of a command line, and fills the environment: the first of the same name counts. */
static void take_env(struct command *command)
{
	size_t n = 0;

	while (command->argv[0] && strchr(command->argv[0], '='))
		command->env[n++] = *command->argv++;
	for (char **old = environ; *old && n < ENV_MAX - 1; old++) {
		size_t len = strcspn(*old, "=") + 1, i = 0;

		while (i < n && strncmp(command->env[i], *old, len) != 0)
			i++;
		if (i == n)
			command->env[n++] = *old;
	}
}

/* Splits argv at the words ";"; returns how many commands there are, 0 when a part is incomplete. */
static size_t split(int argc, char **argv, struct command *commands)
{
	size_t n = 0;

	for (int i = 0; i < argc && n < COMMANDS_MAX; n++) {
		int end = i;

		while (end < argc && strcmp(argv[end], ";") != 0)
			end++;
		if (end - i < 2)
			return 0;
		commands[n].name = argv[i];
		commands[n].argv = argv + i + 1;
		argv[end] = NULL; /* argv[argc] is NULL already */
		take_env(&commands[n]);
		if (!commands[n].argv[0])
			return 0;
		i = end + 1;
	}
	return n;
}

int main(int argc, char **argv)
{
	static struct command commands[COMMANDS_MAX];
	posix_spawn_file_actions_t actions;
	int output[2] = { -1, -1 };
	bool first = argc > 1 && strcmp(argv[1], "-f") == 0;
	argc -= first;
	argv += first;
	long rounds = argc > 1 ? strtol(argv[1], NULL, 10) : 0;
	size_t n = argc > 2 ? split(argc - 2, argv + 2, commands) : 0;
	long warm = rounds / 10;

	if (rounds < 1 || rounds > ROUNDS_MAX || n == 0) {
		fprintf(stderr,
			"usage: spawn_bench [-f] ROUNDS NAME [VARIABLE=VALUE]... COMMAND [ARG]... [';' NAME COMMAND ...]...\n");
		return 2;
	}
	if (posix_spawn_file_actions_init(&actions) != 0 ||
	    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0) != 0 ||
	    (first && pipe2(output, O_CLOEXEC) < 0) ||
	    (first ? posix_spawn_file_actions_adddup2(&actions, output[1], STDOUT_FILENO)
		   : posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0)) != 0 ||
	    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
		return 1;
	for (size_t i = 0; i < n; i++) {
		commands[i].us = times[i];
		commands[i].cpu_us = cpu_times[i];
	}
	for (long round = -warm; round < rounds; round++) {
		for (size_t i = 0; i < n; i++) {
			const struct timespec settle = { .tv_nsec = SETTLE_NS };
			struct command *command = &commands[((size_t)(round + warm) + i) % n];
			double cpu = cpu_us(), us = measure(command, &actions, output[0]);

			cpu = cpu_us() - cpu;
			nanosleep(&settle, NULL);
			if (round >= 0) {
				command->us[round] = us;
				command->cpu_us[round] = cpu;
			}
		}
	}
	for (size_t i = 0; i < n; i++) {
		qsort(commands[i].us, (size_t)rounds, sizeof(double), compare);
		qsort(commands[i].cpu_us, (size_t)rounds, sizeof(double), compare);
	}
	for (size_t i = 0; i < n; i++) {
		const double *us = commands[i].us;

		printf("%s\t%.1f\t%.1f\t%.1f\t%.3f\t%.1f\t%.1f\n", commands[i].name, us[rounds / 2], us[rounds / 10],
		       us[rounds * 9 / 10], us[rounds / 2] / commands[0].us[rounds / 2], us[0],
		       commands[i].cpu_us[rounds / 2]);
	}
	posix_spawn_file_actions_destroy(&actions);
	return 0;
}
