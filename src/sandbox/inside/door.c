/* SPDX-License-Identifier: Apache-2.0 */
/* A further program in a sandbox that runs: how the supervisor asks for it, and how PID 1 starts it. */
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/io.h"
#include "sandbox/enter.h"

#define CANDIDATES_MAX 256

/* ---- the supervisor's side ---- */

/* The paths to try, an empty string, the arguments; each ended by NUL. */
static int write_program(const struct cordon_plan *plan, char *const *argv, struct cordon_buf *text)
{
	struct cordon_arena *arena = cordon_arena_new();
	char **candidates = arena ? cordon_env_candidates(arena, plan->env, plan->n_env, argv[0]) : NULL;
	int r = candidates ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && candidates[i]; i++)
		r = i < CANDIDATES_MAX ? cordon_buf_addf(text, "%s%c", candidates[i], 0) : -E2BIG;
	if (r == 0)
		r = cordon_buf_addc(text, '\0');
	for (size_t i = 0; r == 0 && argv[i]; i++)
		r = i < CORDON_ENTER_ARGS_MAX ? cordon_buf_addf(text, "%s%c", argv[i], 0) : -E2BIG;
	cordon_arena_free(arena);
	return r;
}

static int judge_streams(const int streams[static 3], struct cordon_error *err)
{
	for (int i = 0; i < 3; i++) {
		struct stat st;

		if (fstat(streams[i], &st) < 0 || !S_ISFIFO(st.st_mode))
			return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE,
					   "the streams of a further program must be pipes");
	}
	return 0;
}

int cordon_enter(const struct cordon_child *child, uint32_t number, char *const *argv, const int streams[static 3],
		 struct cordon_error *err)
{
	autobuf struct cordon_buf text = CORDON_BUF(CORDON_ENTER_BYTES_MAX);
	struct cordon_notice notice = { .kind = CORDON_NOTICE_STREAM };
	autofd int program = -1;
	int r = judge_streams(streams, err);

	if (r < 0)
		return r;
	if (!child->plan->enterable || child->plan->tier != CORDON_TIER_FULL)
		return cordon_fail(err, -EOPNOTSUPP, CORDON_KIND_KERNEL_UNSUPPORTED,
				   "nothing can enter this sandbox: it has no process of ours inside");
	r = write_program(child->plan, argv, &text);
	if (r < 0)
		return cordon_fail(err, r, CORDON_KIND_LIMIT, "the command has too many or too long arguments");
	program = memfd_create("program", MFD_CLOEXEC);
	r = program < 0 ? -errno : cordon_write_all(program, text.data, text.len);
	for (int i = 0; r == 0 && i < 3; i++) {
		notice.code = i;
		r = cordon_notice_send(child->ctl, &notice, streams[i]);
	}
	notice = (struct cordon_notice){ .kind = CORDON_NOTICE_ENTER, .index = number };
	if (r == 0)
		r = cordon_notice_send(child->ctl, &notice, program);
	return r < 0 ? cordon_fail_errno(err, r, "cannot enter the sandbox") : 0;
}

void cordon_enter_end(const struct cordon_child *child, uint32_t number)
{
	struct cordon_notice notice = { .kind = CORDON_NOTICE_LEAVE, .index = number };

	cordon_notice_send(child->ctl, &notice, -1);
}

/* ---- PID 1's side ---- */

/* Points into the text: candidates up to an empty string, then arguments. False when that is not what it is. */
static bool split(char *text, size_t size, char **candidates, char **argv)
{
	size_t n = 0, at = 0;

	if (!size || text[size - 1])
		return false;
	for (; at < size && text[at] && n < CANDIDATES_MAX; at += strlen(text + at) + 1)
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

_Noreturn static void become(const struct cordon_inside *in, uint32_t number, const int streams[static 3], int program)
{
	static char *candidates[CANDIDATES_MAX + 1], *argv[CORDON_ENTER_ARGS_MAX + 1];
	struct cordon_plan plan = *in->plan;
	struct cordon_inside own = *in;
	struct stat st;
	char *text;

	own.number = number;
	own.plan = &plan;
	own.peer = own.go = -1;
	own.exec_fd = -1;
	memset(own.terminal, 0, sizeof(own.terminal));
	if (fstat(program, &st) < 0 || st.st_size <= 0)
		cordon_inside_fail(&own, -EBADMSG, "read", "the command");
	text = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE, program, 0);
	if (text == MAP_FAILED || !split(text, (size_t)st.st_size, candidates, argv))
		cordon_inside_fail(&own, -EBADMSG, "read", "the command");
	plan.candidates = candidates;
	plan.argv = argv;
	for (int fd = 0; fd < 3; fd++)
		if (streams[fd] < 0 || dup2(streams[fd], fd) < 0)
			cordon_inside_fail(&own, -EBADF, "take", "the standard streams");
	cordon_agent(&own);
}

static void tell_left(const struct cordon_inside *in, uint32_t number, int status)
{
	struct cordon_notice notice = { .kind = CORDON_NOTICE_LEFT, .code = status, .index = number };

	cordon_notice_send(in->ctl, &notice, -1);
}

static void let_in(struct cordon_door *door, const struct cordon_inside *in, uint32_t number, int program)
{
	size_t i = 0;
	pid_t pid = -1;

	while (i < CORDON_ENTER_MAX && door->programs[i].pid)
		i++;
	if (i < CORDON_ENTER_MAX)
		pid = fork();
	if (pid == 0)
		become(in, number, door->streams, program);
	if (pid > 0) {
		door->programs[i].pid = pid;
		door->programs[i].number = number;
		return;
	}
	struct cordon_notice notice = { .kind = CORDON_NOTICE_NO_EXEC, .code = -EAGAIN, .index = number };

	cordon_notice_send(in->ctl, &notice, -1);
	tell_left(in, number, 126 << 8);
}

static void send_out(const struct cordon_door *door, uint32_t number)
{
	for (size_t i = 0; i < CORDON_ENTER_MAX; i++) {
		pid_t pid = door->programs[i].pid;

		/* It leads a group of its own a moment after the fork. */
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
		let_in(door, in, notice->index, fd);
		for (int i = 0; i < 3; i++)
			cordon_closep(&door->streams[i]);
	} else if (notice->kind == CORDON_NOTICE_LEAVE) {
		send_out(door, notice->index);
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
		tell_left(in, door->programs[i].number, status);
	}
}
