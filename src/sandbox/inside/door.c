/* SPDX-License-Identifier: Apache-2.0 */
/* PID 1 starts more programs in its sandbox; the forked process runs this code too, until its exec. */
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/exit.h"
#include "sandbox/inside/door.h"

/* Splits the text into candidates up to an empty string, then arguments; both point into it. False when it has another
 * form. */
static bool split(char *text, size_t size, char **candidates, char **argv)
{
	size_t n = 0, at = 0;

	if (!size || text[size - 1])
		return false;
	for (; at < size && text[at] && n < CORDON_ENTER_CANDIDATES_MAX; at += strlen(text + at) + 1)
		candidates[n++] = text + at;
	candidates[n] = NULL;
	if (at >= size || text[at])
		return false;
	n = 0;
	for (at++; at < size && n < CORDON_ENTER_ARGS_MAX; at += strlen(text + at) + 1)
		argv[n++] = text + at;
	argv[n] = NULL;
	return at == size && n;
}

_Noreturn static void become_program(const struct cordon_inside *in, uint32_t number, const int streams[static 3],
				     int program)
{
	static char *candidates[CORDON_ENTER_CANDIDATES_MAX + 1], *argv[CORDON_ENTER_ARGS_MAX + 1];
	struct cordon_inside own = *in;
	struct stat st;
	char *text;

	own.number = number;
	own.peer = own.go = own.host_proc = -1;
	own.exec_fd = -1;
	memset(own.terminal, 0, sizeof(own.terminal));
	setrlimit(RLIMIT_NOFILE, &own.nofile);
	if (fstat(program, &st) < 0 || st.st_size <= 0)
		cordon_inside_fail(&own, -EBADMSG, "read", "the command");
	text = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE, program, 0);
	if (text == MAP_FAILED || !split(text, (size_t)st.st_size, candidates, argv))
		cordon_inside_fail(&own, -EBADMSG, "read", "the command");
	own.candidates = candidates;
	own.argv = argv;
	for (int fd = 0; fd < 3; fd++)
		if (streams[fd] < 0 || dup2(streams[fd], fd) < 0)
			cordon_inside_fail(&own, -EBADF, "take", "the standard streams");
	cordon_agent(&own);
}

static void report_end(const struct cordon_inside *in, uint32_t number, int status)
{
	struct cordon_notice notice = { .kind = CORDON_NOTICE_LEFT, .code = status, .index = number };

	cordon_notice_send(in->ctl, &notice, -1);
}

static void start_program(struct cordon_door *door, const struct cordon_inside *in, uint32_t number, int program)
{
	size_t i = 0;
	pid_t pid = -1;

	while (i < CORDON_ENTER_MAX && door->programs[i].pid)
		i++;
	if (i < CORDON_ENTER_MAX)
		pid = fork();
	if (pid == 0)
		become_program(in, number, door->streams, program);
	if (pid > 0) {
		door->programs[i].pid = pid;
		door->programs[i].number = number;
		return;
	}
	struct cordon_notice notice = { .kind = CORDON_NOTICE_NO_EXEC, .code = -EAGAIN, .index = number };

	cordon_notice_send(in->ctl, &notice, -1);
	report_end(in, number, CORDON_EXIT_NOT_EXECUTABLE << 8);
}

static void kill_program(const struct cordon_door *door, uint32_t number)
{
	for (size_t i = 0; i < CORDON_ENTER_MAX; i++) {
		pid_t pid = door->programs[i].pid;

		/* The program leads a process group of its own only some time after the fork. */
		if (pid && door->programs[i].number == number && kill(-pid, SIGKILL) < 0)
			kill(pid, SIGKILL);
	}
}

void cordon_door_notice(struct cordon_door *door, struct cordon_inside *in, const struct cordon_notice *notice, int fd)
{
	if (notice->kind == CORDON_NOTICE_STREAM && notice->code >= 0 && notice->code < 3) {
		cordon_closep(&door->streams[notice->code]);
		door->streams[notice->code] = fd;
		return;
	}
	if (notice->kind == CORDON_NOTICE_ENTER) {
		start_program(door, in, notice->index, fd);
		for (int i = 0; i < 3; i++)
			cordon_closep(&door->streams[i]);
	} else if (notice->kind == CORDON_NOTICE_LEAVE) {
		kill_program(door, notice->index);
	}
	if (fd >= 0)
		close(fd);
}

void cordon_door_reaped(struct cordon_door *door, const struct cordon_inside *in, pid_t pid, int status)
{
	for (size_t i = 0; i < CORDON_ENTER_MAX; i++) {
		if (door->programs[i].pid != pid)
			continue;
		door->programs[i].pid = 0;
		report_end(in, door->programs[i].number, status);
	}
}
