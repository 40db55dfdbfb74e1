/* SPDX-License-Identifier: Apache-2.0 */
/*
 * This runs in the supervisor of one job: a process that the owner of the crew forked, and that can outlive the owner.
 * It calls cordon_run(), logs what the program writes and what happens, and reports it to the owner.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "job/crew_internal.h"
#include "job/log.h"
#include "job/relay.h"
#include "policy/policy.h"
#include "policy/shares.h"
#include "run/event_text.h"
#include "run/result.h"
#include "sandbox/plan/plan.h"
#include "view/show.h"

#define KEPT_MAX 1024 /* descriptors */

/* One of the program's two output streams. */
struct output {
	int fd;	      /* our end, or -1 */
	int inner;    /* the program's end, until the program has its copy; then -1 */
	char rest[4]; /* the beginning of a character that is not complete yet */
	size_t n_rest;
};

struct supervisor {
	const struct cordon_crew_start *start;
	struct cordon_relay relay;
	struct cordon_session_log log;
	bool log_failed;
	struct output outputs[2];
	struct cordon_job job; /* index, name, and run_id when it is known */
	bool want_cancel;      /* somebody asked to cancel the job, or its owner has ended */
	bool want_kill;
	bool cancelled; /* on_serve() has ended the run with its grace time */
	bool killed;	/* on_serve() has ended the run at once */
};

/* ---- reports to the log and to the owner ---- */

/* Adds an event to the log. Makes the log at the first event, so that making it does not delay the start. */
static void log_text(struct supervisor *s, const char *type, const char *text, size_t n)
{
	if (s->log.fd < 0 && !s->log_failed && cordon_session_log_open(s->start->dir_fd, &s->log, NULL) < 0)
		s->log_failed = true;
	if (s->log.fd >= 0 && cordon_session_log_add(&s->log, type, NULL, text, n) < 0)
		s->log_failed = true;
}

static void note(struct supervisor *s, const char *type, const char *fmt, ...) CORDON_PRINTF(3, 4);

static void note(struct supervisor *s, const char *type, const char *fmt, ...)
{
	autobuf struct cordon_buf text = CORDON_BUF(65536);
	va_list args;

	va_start(args, fmt);
	if (cordon_buf_addv(&text, fmt, args) == 0)
		log_text(s, type, text.data, text.len);
	va_end(args);
}

static void on_event(void *data, const struct cordon_event *event)
{
	autobuf struct cordon_buf text = CORDON_BUF(65536);
	struct supervisor *s = data;
	const char *kind = cordon_event_text(event, &text);

	if (event->kind == CORDON_EVENT_STARTED) {
		cordon_crew_job_running(s->start->dir_fd);
		cordon_relay_running(&s->relay, s->job.run_id);
		return;
	}
	if (kind)
		log_text(s, kind, text.data, text.len);
	cordon_relay_event(&s->relay, event);
}

/* ---- the program's output ---- */

/* Returns how many bytes at the end are the beginning of an incomplete character. */
static size_t incomplete_bytes(const char *bytes, size_t n)
{
	for (size_t i = 1; i <= 3 && i <= n; i++) {
		unsigned char c = (unsigned char)bytes[n - i];

		if ((c & 0xc0) == 0x80)
			continue;
		return (c >= 0xf0 ? 4U : c >= 0xe0 ? 3U : c >= 0xc0 ? 2U : 1U) > i ? i : 0;
	}
	return 0;
}

static void pass_on(struct supervisor *s, const struct output *output, const char *bytes, size_t n)
{
	bool error = output == &s->outputs[1];

	if (!n)
		return;
	log_text(s, error ? "stderr" : "stdout", bytes, n);
	if (!s->start->detached)
		cordon_relay_output(&s->relay, error ? 2 : 1, bytes, n);
}

/* Returns false when there is nothing more to read now. */
static bool take_output(struct supervisor *s, struct output *output)
{
	char chunk[CORDON_CREW_PIECE_MAX];
	size_t have = output->n_rest, whole;
	ssize_t n = read(output->fd, chunk + have, sizeof(chunk) - have);

	if (n < 0 && errno == EINTR)
		return true;
	if (n < 0 && errno == EAGAIN)
		return false;
	memcpy(chunk, output->rest, have);
	output->n_rest = 0;
	if (n <= 0) {
		pass_on(s, output, chunk, have);
		cordon_closep(&output->fd);
		return false;
	}
	have += (size_t)n;
	whole = have - incomplete_bytes(chunk, have);
	output->n_rest = have - whole;
	memcpy(output->rest, chunk + whole, output->n_rest);
	pass_on(s, output, chunk, whole);
	return true;
}

/* When the owner reads too slowly, we stop reading the program's output. That slows down the program, but never the
 * supervisor. */
static bool may_read(const struct supervisor *s)
{
	return s->relay.queue.len < CORDON_RELAY_QUEUE_HIGH;
}

static int make_outputs(struct supervisor *s, struct cordon_error *err)
{
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(s->outputs); i++) {
		int ends[2];

		if (pipe2(ends, O_CLOEXEC) < 0)
			return cordon_fail_errno(err, -errno, "cannot make a pipe");
		s->outputs[i].fd = ends[0];
		s->outputs[i].inner = ends[1];
		if (fcntl(ends[0], F_SETFL, O_NONBLOCK) < 0)
			return cordon_fail_errno(err, -errno, "cannot set up a pipe");
	}
	return 0;
}

/* The program inherits our standard streams, so we make the pipes our standard streams during the launch. */
static int on_planned(void *data, const struct cordon_plan *plan, struct cordon_error *err)
{
	struct supervisor *s = data;

	cordon_copy(s->job.run_id, sizeof(s->job.run_id), plan->run_id, strlen(plan->run_id));
	for (int i = 0; i < 2; i++)
		if (dup2(s->outputs[i].inner, i + 1) < 0)
			return cordon_fail_errno(err, -errno, "cannot set up the streams");
	return 0;
}

/* Closes our copies of the program's ends, which would keep the pipes open after the program has ended. */
static void close_inner(struct supervisor *s)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int fd = 0; fd < 3; fd++)
		if (null < 0 || dup2(null, fd) < 0)
			close(fd);
	if (null > 2)
		close(null);
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(s->outputs); i++)
		cordon_closep(&s->outputs[i].inner);
}

/* Makes log and record now, while init builds the sandbox: making a file takes about a tenth of the time that this
 * takes. */
static void on_launched(void *data, struct cordon_child *child)
{
	struct supervisor *s = data;

	(void)child;
	close_inner(s);
	note(s, "started", "%s", s->start->spec->run.argv[0]);
	(void)cordon_crew_job_prepare(s->start->dir_fd, &s->job, &s->start->spec->run, NULL);
}

/* ---- requests to end the run ---- */

static void read_orders(struct supervisor *s)
{
	char order;

	for (;;) {
		ssize_t n = s->relay.fd < 0 ? 0 : recv(s->relay.fd, &order, 1, MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n <= 0)
			break;
		s->want_cancel = true;
		s->want_kill |= order == CORDON_CREW_ORDER_KILL;
	}
	cordon_closep(&s->relay.fd);
	cordon_buf_reset(&s->relay.queue);
	if (!s->start->detached)
		s->want_cancel = true;
}

enum { FD_WAKE, FD_OWNER, FD_OUTPUTS, N_FDS = FD_OUTPUTS + 2 };

static size_t on_fds(void *data, struct pollfd *ret_fds)
{
	struct supervisor *s = data;

	ret_fds[FD_WAKE] = (struct pollfd){ .fd = s->start->alive_fd, .events = POLLIN };
	ret_fds[FD_OWNER] = (struct pollfd){ .fd = s->relay.fd,
					     .events = (short)(POLLIN | (s->relay.queue.len ? POLLOUT : 0)) };
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(s->outputs); i++)
		ret_fds[FD_OUTPUTS + i] = (struct pollfd){ .fd = may_read(s) ? s->outputs[i].fd : -1, .events = POLLIN };
	return N_FDS;
}

static void wake_ourselves(const struct supervisor *s)
{
	if (write(s->start->alive_fd, "", 1) < 0)
		return; /* the FIFO is full, and so it wakes us anyway */
}

/* Returns true to end the run: the first time with its grace time, the second time at once. */
static bool on_serve(void *data, const struct pollfd *fds, size_t n)
{
	struct supervisor *s = data;

	(void)n;
	if (cordon_crew_woken(s->start->alive_fd))
		s->want_cancel |= cordon_crew_requested(s->start->crew_fd, s->start->job->index);
	if (s->relay.fd < 0 ? !s->start->detached : fds[FD_OWNER].revents & (POLLIN | POLLHUP | POLLERR))
		read_orders(s);
	cordon_relay_flush(&s->relay);
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(s->outputs); i++)
		if (fds[FD_OUTPUTS + i].fd >= 0 && fds[FD_OUTPUTS + i].revents)
			take_output(s, &s->outputs[i]);
	if (s->want_cancel && !s->cancelled) {
		s->cancelled = true;
		if (s->want_kill)
			wake_ourselves(s); /* so that this is called again and returns true for the second time */
		return true;
	}
	if (s->want_kill && !s->killed) {
		s->killed = true;
		return true;
	}
	return false;
}

/* ---- beginning and end ---- */

/* These are that of its root, and those of its fences and shares. */
void cordon_crew_needs(const struct cordon_policy *policy, int *kept, size_t max, size_t *n)
{
	if (!policy || *n == max)
		return;
	kept[(*n)++] = policy->root.fd;
	for (size_t i = 0; i < policy->n_fences; i++)
		cordon_crew_needs(policy->fences[i], kept, max, n);
	for (size_t i = 0; i < policy->n_shares && *n < max; i++) {
		kept[(*n)++] = policy->shares[i].fd;
		cordon_crew_needs(policy->shares[i].policy, kept, max, n);
	}
}

/* Gives up everything of the owner that the run does not need: its descriptors, signal handlers and session. */
static void detach_from_owner(const struct cordon_crew_start *start)
{
	int kept[KEPT_MAX] = { start->crew_fd, start->dir_fd, start->alive_fd, start->owner };
	int input = start->spec->input;
	size_t n = 4;
	sigset_t blocked;
	int null;

	setsid();
	prctl(PR_SET_NAME, "cordon-job", 0, 0, 0);
	for (int number = 1; number < NSIG; number++)
		signal(number, SIG_DFL);
	/* A write to a closed pipe must fail with an error and not end the process. */
	signal(SIGPIPE, SIG_IGN);
	/* These stay blocked until the run's loop reads them, for which they mean cancel. After the run they have no
	 * effect. */
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGINT);
	sigaddset(&blocked, SIGTERM);
	sigaddset(&blocked, SIGHUP);
	sigaddset(&blocked, SIGQUIT);
	sigprocmask(SIG_SETMASK, &blocked, NULL);
	if (input > 0)
		dup2(input, 0);
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int fd = input > 0 ? 1 : 0; fd < 3; fd++)
		if (null < 0 || dup2(null, fd) < 0)
			close(fd);
	cordon_crew_needs(start->spec->run.policy, kept, KEPT_MAX, &n);
	cordon_close_except(kept, n);
}

static void note_end(struct supervisor *s, const struct cordon_result *result)
{
	const char *state = cordon_state_name(result->state);

	if (result->error.code)
		note(s, "ended", "%s: %s", state, result->error.message);
	else if (result->signal)
		note(s, "ended", "%s: signal %d", state, result->signal);
	else
		note(s, "ended", "%s: exit code %d", state, result->exit_code);
}

static void note_git_line(void *data, const char *line)
{
	note(data, "notice", "git: %s", line);
}

/* Notes what became of the commits. */
static void note_git(struct supervisor *s, const struct cordon_result *result)
{
	json_auto_t *git = result->git ? json_loads(result->git, 0, NULL) : NULL;

	cordon_git_lines(git, note_git_line, s);
}

/* Reads what is left in the pipes, when nobody inside writes any more. */
static void drain(struct supervisor *s)
{
	close_inner(s);
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(s->outputs); i++) {
		struct output *output = &s->outputs[i];

		while (output->fd >= 0 && take_output(s, output))
			;
		pass_on(s, output, output->rest, output->n_rest);
	}
}

/* Runs the program of the job; the result has the error. */
static void run_job(const struct cordon_job_spec *spec, const struct cordon_observer *observer,
		    struct cordon_result *ret_result)
{
	autohome struct cordon_home home = CORDON_HOME_NONE;
	/* This process has a copy of the memory, so the policy is its own. */
	struct cordon_view_work work = { .policy = (struct cordon_policy *)(uintptr_t)spec->run.policy,
					 .cow = spec->cow,
					 .git = spec->git };
	struct cordon_error err = { 0 };

	if (!spec->cow && spec->git == CORDON_GIT_DEFAULT)
		(void)cordon_run(&spec->run, observer, ret_result, &err);
	else if (cordon_home_open(&home, &err) < 0)
		cordon_result_refuse(ret_result, &err);
	else
		(void)cordon_view_run(&home, &spec->run, &work, observer, ret_result, &err);
}

void cordon_crew_supervise(const struct cordon_crew_start *start)
{
	struct supervisor s = { .start = start,
				.relay = CORDON_RELAY(start->owner),
				.log = CORDON_SESSION_LOG_NONE,
				.job = *start->job,
				.outputs = { { .fd = -1, .inner = -1 }, { .fd = -1, .inner = -1 } } };
	struct cordon_observer observer = { .data = &s,
					    .planned = on_planned,
					    .launched = on_launched,
					    .event = on_event,
					    .fds = on_fds,
					    .serve = on_serve };
	struct cordon_result result = { 0 };
	struct cordon_error err = { 0 };

	detach_from_owner(start);
	/* A request to cancel that was made before this process could be woken is on disk, so we look for one once in
	 * any case. */
	wake_ourselves(&s);
	if (make_outputs(&s, &err) < 0)
		cordon_result_refuse(&result, &err);
	else
		run_job(start->spec, &observer, &result);
	drain(&s);
	note_git(&s, &result);
	note_end(&s, &result);
	/* If the result cannot be written, other processes see the job as lost. There is nobody to whom we could report
	 * this. */
	(void)cordon_crew_result_write(start->dir_fd, start->job, &result, s.log_failed, !start->repeatable, NULL);
	if (start->detached)
		cordon_relay_flush(&s.relay);
	else
		cordon_relay_finish(&s.relay);
	_exit(0);
}
