/* SPDX-License-Identifier: Apache-2.0 */
/*
 * This runs in the supervisor of one job: a process that the owner of the crew forked, and that can outlive the owner.
 * It runs the program (job/supervisor.h), and reports to the owner what the program writes and what happens.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "base/child.h"
#include "job/crew_internal.h"
#include "job/relay.h"
#include "job/supervisor.h"
#include "policy/policy.h"
#include "policy/shares.h"
#include "run/result.h"
#include "sandbox/plan/plan.h"

#define KEPT_MAX 1024 /* descriptors */

struct crew_job {
	struct cordon_supervisor supervisor;
	const struct cordon_crew_start *start;
	struct cordon_relay relay;
	struct cordon_job job; /* index, name, and run_id when it is known */
	bool want_cancel;      /* somebody asked to cancel the job, or its owner has ended */
	bool want_kill;
	bool cancelled; /* on_serve() has ended the run with its grace time */
	bool killed;	/* on_serve() has ended the run at once */
};

/* ---- reports to the owner ---- */

static void on_event(void *data, const struct cordon_event *event)
{
	struct crew_job *s = data;

	if (event->kind != CORDON_EVENT_STARTED) {
		cordon_relay_event(&s->relay, event);
		return;
	}
	cordon_crew_job_running(s->start->dir_fd);
	cordon_relay_running(&s->relay, s->job.run_id);
}

_Static_assert(CORDON_STREAMS_PIECE_MAX <= CORDON_CREW_PIECE_MAX, "the owner gets a piece of output in one packet");

static void on_output(void *data, int stream, const char *bytes, size_t n)
{
	struct crew_job *s = data;

	if (!s->start->detached)
		cordon_relay_output(&s->relay, stream, bytes, n);
}

/* When the owner reads too slowly, the program has to wait. */
static bool is_full(void *data)
{
	const struct crew_job *s = data;

	return s->relay.queue.len >= CORDON_RELAY_QUEUE_HIGH;
}

static int on_planned(void *data, const struct cordon_plan *plan, struct cordon_error *err)
{
	struct crew_job *s = data;

	(void)err;
	cordon_copy(s->job.run_id, sizeof(s->job.run_id), plan->run_id, strlen(plan->run_id));
	return 0;
}

/* Makes log and record now, while init builds the sandbox: making a file takes about a tenth of the time that this
 * takes. */
static void on_launched(void *data)
{
	struct crew_job *s = data;

	cordon_supervisor_note(&s->supervisor, "started", "%s", s->start->spec->run.argv[0]);
	(void)cordon_crew_job_prepare(s->start->dir_fd, &s->job, &s->start->spec->run, NULL);
}

/* ---- requests to end the run ---- */

static void read_orders(struct crew_job *s)
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

enum { FD_WAKE, FD_OWNER, N_FDS };

static size_t on_fds(void *data, struct pollfd *ret_fds)
{
	struct crew_job *s = data;

	ret_fds[FD_WAKE] = (struct pollfd){ .fd = s->start->alive_fd, .events = POLLIN };
	ret_fds[FD_OWNER] = (struct pollfd){ .fd = s->relay.fd,
					     .events = (short)(POLLIN | (s->relay.queue.len ? POLLOUT : 0)) };
	return N_FDS;
}

static void wake_ourselves(const struct crew_job *s)
{
	if (write(s->start->alive_fd, "", 1) < 0)
		return; /* the FIFO is full, and so it wakes us anyway */
}

/* Returns true to end the run: the first time with its grace time, the second time at once. */
static bool on_serve(void *data, const struct pollfd *fds, size_t n)
{
	struct crew_job *s = data;

	(void)n;
	if (cordon_crew_woken(s->start->alive_fd))
		s->want_cancel |= cordon_crew_requested(s->start->crew_fd, s->start->job->index);
	if (s->relay.fd < 0 ? !s->start->detached : fds[FD_OWNER].revents & (POLLIN | POLLHUP | POLLERR))
		read_orders(s);
	cordon_relay_flush(&s->relay);
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

/* Makes a process that has nothing of the owner that the run does not need: no other descriptors, no signal
 * handlers, and a session of its own. */
static pid_t fork_supervisor(const struct cordon_crew_start *start)
{
	int kept[KEPT_MAX] = { start->crew_fd, start->dir_fd, start->alive_fd, start->owner };
	const int streams[] = { start->spec->input > 0 ? start->spec->input : -1, -1, -1 };
	struct cordon_fork how = {
		.streams = streams, .kept = kept, .n_kept = 4, .own_session = true, .plain_signals = true
	};
	sigset_t blocked;

	/* These stay blocked until the run's loop reads them, for which they mean cancel. After the run they have no
	 * effect. */
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGINT);
	sigaddset(&blocked, SIGTERM);
	sigaddset(&blocked, SIGHUP);
	sigaddset(&blocked, SIGQUIT);
	how.blocked = &blocked;
	cordon_crew_needs(start->spec->run.policy, kept, KEPT_MAX, &how.n_kept);
	return cordon_child_fork(&how);
}

/* Runs the program of the job; the result has the error. */
static void run_job(struct crew_job *s, struct cordon_result *ret_result)
{
	autohome struct cordon_home home = CORDON_HOME_NONE;
	const struct cordon_job_spec *spec = s->start->spec;
	/* This process has a copy of the memory, so the policy is its own. */
	struct cordon_view_work work = { .policy = (struct cordon_policy *)(uintptr_t)spec->run.policy,
					 .cow = spec->cow,
					 .git = spec->git };
	struct cordon_error err = { 0 };

	if (cordon_supervisor_open(&s->supervisor, CORDON_STREAMS_OUTPUT, &err) < 0 || cordon_home_open(&home, &err) < 0)
		cordon_result_refuse(ret_result, &err);
	else
		(void)cordon_supervisor_run(&s->supervisor, &home, &spec->run, &work, ret_result, &err);
}

/* In the child. */
static _Noreturn void supervise(const struct cordon_crew_start *start)
{
	static const struct cordon_supervisor_calls calls = { .planned = on_planned,
							      .launched = on_launched,
							      .event = on_event,
							      .output = on_output,
							      .full = is_full,
							      .fds = on_fds,
							      .serve = on_serve };
	struct crew_job s = { .supervisor = CORDON_SUPERVISOR_NONE,
			      .start = start,
			      .relay = CORDON_RELAY(start->owner),
			      .job = *start->job };
	struct cordon_result result = { 0 };

	s.supervisor.calls = &calls;
	s.supervisor.data = &s;
	s.supervisor.dir_fd = start->dir_fd;
	prctl(PR_SET_NAME, "cordon-job", 0, 0, 0);
	/* A write to a closed pipe must fail with an error and not end the process. */
	signal(SIGPIPE, SIG_IGN);
	/* A request to cancel that was made before this process could be woken is on disk, so we look for one once in
	 * any case. */
	wake_ourselves(&s);
	run_job(&s, &result);
	json_decref(cordon_supervisor_note_git(&s.supervisor, &result));
	cordon_supervisor_note_end(&s.supervisor, &result);
	/* If the result cannot be written, other processes see the job as lost. There is nobody to whom we could report
	 * this. */
	(void)cordon_crew_result_write(start->dir_fd, start->job, &result, s.supervisor.log_failed, !start->repeatable,
				       NULL);
	if (start->detached)
		cordon_relay_flush(&s.relay);
	else
		cordon_relay_finish(&s.relay);
	_exit(0);
}

pid_t cordon_crew_supervise(const struct cordon_crew_start *start)
{
	pid_t pid = fork_supervisor(start);

	if (pid == 0)
		supervise(start);
	return pid;
}
