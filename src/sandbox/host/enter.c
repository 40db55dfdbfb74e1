/* SPDX-License-Identifier: Apache-2.0 */
/* The supervisor asks PID 1 to start another program in a sandbox that already runs. */
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/exit.h"
#include "base/io.h"
#include "sandbox/host/enter.h"

/* Writes the paths to try, an empty string, and the arguments, each with a NUL at its end. */
static int write_program(const struct cordon_plan *plan, char *const *argv, struct cordon_buf *text)
{
	struct cordon_arena *arena = cordon_arena_new();
	char **candidates = arena ? cordon_env_candidates(arena, plan->env, plan->n_env, argv[0]) : NULL;
	int r = candidates ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && candidates[i]; i++)
		r = i < CORDON_ENTER_CANDIDATES_MAX ? cordon_buf_addf(text, "%s%c", candidates[i], 0) : -E2BIG;
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
	if (!child->plan->asked.enterable || child->plan->tier != CORDON_TIER_FULL)
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
