/* SPDX-License-Identifier: Apache-2.0 */
/* What the supervisors of sessions and of jobs of a crew have in common. */
#include "job/supervisor.h"

#include <stdarg.h>

#include "run/event_text.h"
#include "run/result.h"
#include "sandbox/plan/plan.h"
#include "view/show.h"

/* ---- the log ---- */

void cordon_supervisor_log(struct cordon_supervisor *supervisor, const char *type, const char *role, const char *text,
			   size_t n)
{
	struct cordon_job_log *log = &supervisor->log;

	if (log->fd < 0 && !supervisor->log_failed && cordon_job_log_open(supervisor->dir_fd, log, NULL) < 0)
		supervisor->log_failed = true;
	if (log->fd >= 0 && cordon_job_log_add(log, type, role, text, n) < 0)
		supervisor->log_failed = true;
}

void cordon_supervisor_note(struct cordon_supervisor *supervisor, const char *type, const char *fmt, ...)
{
	autobuf struct cordon_buf text = CORDON_BUF(65536);
	va_list args;

	va_start(args, fmt);
	if (cordon_buf_addv(&text, fmt, args) == 0)
		cordon_supervisor_log(supervisor, type, NULL, text.data, text.len);
	va_end(args);
}

static void note_git_line(void *data, const char *line)
{
	cordon_supervisor_note(data, "notice", "git: %s", line);
}

json_t *cordon_supervisor_note_git(struct cordon_supervisor *supervisor, const struct cordon_result *result)
{
	json_t *git = result->git ? json_loads(result->git, 0, NULL) : NULL;

	cordon_git_lines(git, note_git_line, supervisor);
	return git;
}

void cordon_supervisor_note_end(struct cordon_supervisor *supervisor, const struct cordon_result *result)
{
	const char *state = cordon_state_name(result->state);

	if (result->error.code)
		cordon_supervisor_note(supervisor, "ended", "%s: %s", state, result->error.message);
	else if (result->signal)
		cordon_supervisor_note(supervisor, "ended", "%s: signal %d", state, result->signal);
	else
		cordon_supervisor_note(supervisor, "ended", "%s: exit code %d", state, result->exit_code);
}

/* ---- the program's output ---- */

static void on_output(void *data, int stream, const char *bytes, size_t n)
{
	struct cordon_supervisor *supervisor = data;
	bool error = stream == STDERR_FILENO;

	cordon_supervisor_log(supervisor, error ? "stderr" : "stdout", error ? NULL : supervisor->role, bytes, n);
	if (supervisor->calls->output)
		supervisor->calls->output(supervisor->data, stream, bytes, n);
}

static void on_screen(void *data, const char *bytes, size_t n)
{
	const struct cordon_supervisor *supervisor = data;

	if (supervisor->calls->screen)
		supervisor->calls->screen(supervisor->data, bytes, n);
}

static bool is_full(void *data)
{
	const struct cordon_supervisor *supervisor = data;

	return supervisor->calls->full && supervisor->calls->full(supervisor->data);
}

int cordon_supervisor_open(struct cordon_supervisor *supervisor, enum cordon_streams_kind kind, struct cordon_error *err)
{
	struct cordon_streams_reader reader = {
		.data = supervisor, .output = on_output, .screen = on_screen, .full = is_full
	};

	return cordon_streams_open(&supervisor->streams, kind, &reader, err);
}

void cordon_supervisor_done(struct cordon_supervisor *supervisor)
{
	cordon_streams_done(&supervisor->streams);
	cordon_job_log_done(&supervisor->log);
}

/* ---- the run ---- */

static int on_planned(void *data, const struct cordon_plan *plan, struct cordon_error *err)
{
	struct cordon_supervisor *supervisor = data;
	int r = cordon_streams_make_standard(&supervisor->streams, err);

	return r == 0 && supervisor->calls->planned ? supervisor->calls->planned(supervisor->data, plan, err) : r;
}

static void on_launched(void *data, struct cordon_child *child)
{
	struct cordon_supervisor *supervisor = data;

	supervisor->child = child;
	cordon_streams_leave_standard(&supervisor->streams);
	if (supervisor->calls->launched)
		supervisor->calls->launched(supervisor->data);
}

static void on_event(void *data, const struct cordon_event *event)
{
	autobuf struct cordon_buf text = CORDON_BUF(65536);
	struct cordon_supervisor *supervisor = data;
	const char *kind = cordon_event_text(event, &text);

	if (kind)
		cordon_supervisor_log(supervisor, kind, NULL, text.data, text.len);
	if (supervisor->calls->event)
		supervisor->calls->event(supervisor->data, event);
}

static size_t on_fds(void *data, struct pollfd *ret_fds)
{
	struct cordon_supervisor *supervisor = data;

	cordon_streams_fds(&supervisor->streams, ret_fds);
	return CORDON_STREAMS_FDS + supervisor->calls->fds(supervisor->data, ret_fds + CORDON_STREAMS_FDS);
}

static bool on_serve(void *data, const struct pollfd *fds, size_t n)
{
	struct cordon_supervisor *supervisor = data;

	cordon_streams_serve(&supervisor->streams, fds);
	return supervisor->calls->serve(supervisor->data, fds + CORDON_STREAMS_FDS, n - CORDON_STREAMS_FDS);
}

int cordon_supervisor_run(struct cordon_supervisor *supervisor, const struct cordon_home *home,
			  const struct cordon_run_spec *spec, const struct cordon_view_work *work,
			  struct cordon_result *ret_result, struct cordon_error *err)
{
	const struct cordon_observer observer = { .data = supervisor,
						  .planned = on_planned,
						  .launched = on_launched,
						  .event = on_event,
						  .fds = on_fds,
						  .serve = on_serve };
	int r = cordon_view_run(home, spec, work, &observer, ret_result, err);

	supervisor->child = NULL;
	cordon_streams_leave_standard(&supervisor->streams);
	cordon_streams_drain(&supervisor->streams);
	return r;
}
