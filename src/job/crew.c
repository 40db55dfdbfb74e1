/* SPDX-License-Identifier: Apache-2.0 */
/* This runs in the owner of a crew: the queue, the states of its jobs, and what their supervisors report. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/exit.h"
#include "base/io.h"
#include "base/text.h"
#include "base/time.h"
#include "job/crew_internal.h"
#include "job/relay.h"
#include "run/result.h"

#define PACKETS_PER_TURN 16 /* packets of one job that we take before we serve the next job */

/* A job. Only the disk has its result. */
struct member {
	size_t index;
	char name[CORDON_CREW_NAME_MAX + 1];
	cordon_job_state state;
	char run_id[CORDON_RUN_ID_SIZE];
	int64_t started;
	struct cordon_job_spec spec;
	pid_t pid;
	int fd;	       /* the socket to its supervisor, or -1 */
	bool unwanted; /* somebody asked to cancel it */
};

struct cordon_crew {
	struct cordon_crew_info info;
	bool repeatable;
	struct cordon_crew_observer observer;
	int crew_fd, owner_fd, jobs_fd, epoll_fd;
	struct member **members; /* pointers, because an observer may add members while we use one */
	size_t n, cap;
	off_t jobs_size; /* the size of the file */
	size_t next;	 /* the first member that start_some() has not looked at */
	size_t active;	 /* how many have a supervisor */
	size_t waiting;	 /* how many are queued */
	bool stopped;	 /* all jobs were cancelled, so later ones are cancelled too */
};

/* ---- beginning and end ---- */

static int judge_label(const char *label, struct cordon_error *err)
{
	size_t n = strlen(label);

	if (n > CORDON_CREW_LABEL_MAX)
		return cordon_fail(err, -E2BIG, CORDON_KIND_LIMIT, "the label of a crew has at most %d bytes",
				   CORDON_CREW_LABEL_MAX);
	if (!cordon_text_safe(label, n))
		return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE,
				   "the label of a crew has no control characters and is UTF-8");
	return 0;
}

static int open_crew(struct cordon_crew *crew, struct cordon_error *err)
{
	autohome struct cordon_home home = CORDON_HOME_NONE;
	struct epoll_event wake = { .events = EPOLLIN, .data.u64 = CORDON_CREW_ALL };
	int r = cordon_home_open(&home, err);

	if (r == 0)
		r = cordon_crew_make(&home, &crew->info, &crew->crew_fd, &crew->owner_fd, err);
	if (r < 0)
		return r;
	crew->jobs_fd = openat(crew->crew_fd, CORDON_CREW_JOBS, O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC);
	crew->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (crew->jobs_fd < 0 || crew->epoll_fd < 0 ||
	    epoll_ctl(crew->epoll_fd, EPOLL_CTL_ADD, crew->owner_fd, &wake) < 0)
		return cordon_fail_errno(err, -errno, "cannot make the crew");
	return 0;
}

int cordon_crew_new(const struct cordon_crew_options *options, struct cordon_crew **ret_crew, struct cordon_error *err)
{
	const char *label = options->label ? options->label : "";
	struct cordon_crew *crew;
	int r = judge_label(label, err);

	if (r < 0)
		return r;
	if (options->max_concurrent < 1 || options->max_concurrent > CORDON_CREW_CONCURRENT_MAX)
		return cordon_fail(err, -ERANGE, CORDON_KIND_USAGE, "a crew runs 1 to %d jobs at a time",
				   CORDON_CREW_CONCURRENT_MAX);
	crew = calloc(1, sizeof(*crew));
	if (!crew)
		return cordon_fail_errno(err, -ENOMEM, "cannot make the crew");
	crew->crew_fd = crew->owner_fd = crew->jobs_fd = crew->epoll_fd = -1;
	crew->observer = options->observer;
	crew->info = (struct cordon_crew_info){ .created = cordon_time_now(),
						.max_concurrent = options->max_concurrent,
						.detached = options->detached };
	crew->repeatable = options->repeatable;
	cordon_copy(crew->info.label, sizeof(crew->info.label), label, strlen(label));
	r = cordon_uuid_new(crew->info.id);
	r = r < 0 ? cordon_fail_errno(err, r, "cannot make an id") : open_crew(crew, err);
	if (r < 0) {
		cordon_crew_free(crew);
		return r;
	}
	*ret_crew = crew;
	return 0;
}

struct cordon_crew *cordon_crew_free(struct cordon_crew *crew)
{
	if (!crew)
		return NULL;
	for (size_t i = 0; i < crew->n; i++) {
		cordon_closep(&crew->members[i]->fd); /* the supervisor learns from this that the owner has ended */
		free(crew->members[i]);
	}
	free(crew->members);
	cordon_closep(&crew->epoll_fd);
	cordon_closep(&crew->jobs_fd);
	cordon_closep(&crew->owner_fd);
	cordon_closep(&crew->crew_fd);
	free(crew);
	return NULL;
}

const char *cordon_crew_id(const struct cordon_crew *crew)
{
	return crew->info.id;
}

size_t cordon_crew_count(const struct cordon_crew *crew)
{
	return crew->n;
}

bool cordon_crew_busy(const struct cordon_crew *crew)
{
	return crew->active || crew->waiting;
}

/* Whether the observer wants to be called regularly; and the call. */
static bool crew_ticks(const struct cordon_crew *crew)
{
	return crew->observer.tick;
}

static void crew_tick(const struct cordon_crew *crew)
{
	if (crew->observer.tick)
		crew->observer.tick(crew->observer.data);
}

int cordon_crew_fd(const struct cordon_crew *crew)
{
	return crew->epoll_fd;
}

/* ---- the queue ---- */

static int judge_name(const char *name, struct cordon_error *err)
{
	size_t n = strlen(name);

	if (n < 1 || n > CORDON_CREW_NAME_MAX || name[0] == ' ' || name[n - 1] == ' ' ||
	    strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789 ._-") != n) {
		cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "not a name for a job: %.80s", name);
		cordon_error_hint(
			err,
			"1 to %d letters, digits, blanks, dots, dashes and underscores, without a blank at either end",
			CORDON_CREW_NAME_MAX);
		return -EINVAL;
	}
	return 0;
}

int cordon_crew_find(const struct cordon_crew *crew, const char *name, size_t *ret_index, struct cordon_error *err)
{
	for (size_t i = 0; i < crew->n; i++) {
		if (!cordon_streq(crew->members[i]->name, name))
			continue;
		*ret_index = i;
		return 0;
	}
	return cordon_fail(err, -ENOENT, CORDON_KIND_NOT_FOUND, "the crew has no job %.80s", name);
}

static int judge_job(const struct cordon_crew *crew, const struct cordon_job_spec *job, struct cordon_error *err)
{
	size_t other;
	int r = judge_name(job->name, err);

	if (r < 0)
		return r;
	if (cordon_crew_find(crew, job->name, &other, NULL) == 0)
		return cordon_fail(err, -EEXIST, CORDON_KIND_CONFLICT, "the crew has a job %s already", job->name);
	if (crew->n >= CORDON_CREW_JOBS_MAX)
		return cordon_fail(err, -E2BIG, CORDON_KIND_LIMIT, "a crew has at most %d jobs", CORDON_CREW_JOBS_MAX);
	if (!job->run.policy || !job->run.argv || !job->run.argv[0] || job->run.terminal || job->input < 0)
		return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE,
				   "the job %s has no policy or no command, or wants a terminal", job->name);
	return 0;
}

static int make_room(struct cordon_crew *crew)
{
	size_t cap = crew->cap ? crew->cap * 2 : 64;
	struct member **grown;

	if (crew->n < crew->cap)
		return 0;
	grown = reallocarray(crew->members, cap, sizeof(void *));
	if (!grown)
		return -ENOMEM;
	crew->members = grown;
	crew->cap = cap;
	return 0;
}

/* Writes a line with one call, so that only the last line can be incomplete, after a crash. If the disk is full,
 * removes the part that was written. */
static int write_name(struct cordon_crew *crew, const char *name)
{
	char line[CORDON_CREW_NAME_MAX + 2];
	int n = snprintf(line, sizeof(line), "%s\n", name);
	int r = cordon_write_all(crew->jobs_fd, line, (size_t)n);

	if (r < 0 && ftruncate(crew->jobs_fd, crew->jobs_size) < 0)
		return -errno;
	crew->jobs_size += r < 0 ? 0 : n;
	return r;
}

int cordon_crew_add(struct cordon_crew *crew, const struct cordon_job_spec *job, size_t *ret_index,
		    struct cordon_error *err)
{
	struct member *member;
	int r = judge_job(crew, job, err);

	if (r < 0)
		return r;
	r = make_room(crew);
	member = r < 0 ? NULL : calloc(1, sizeof(*member));
	if (!member)
		return cordon_fail_errno(err, -ENOMEM, "cannot add the job %s", job->name);
	r = write_name(crew, job->name);
	if (r < 0) {
		free(member);
		return cordon_fail_errno(err, r, "cannot add the job %s", job->name);
	}
	*member = (struct member){ .index = crew->n, .state = CORDON_JOB_QUEUED, .spec = *job, .fd = -1 };
	member->spec.name = NULL; /* the copy is in the member */
	cordon_copy(member->name, sizeof(member->name), job->name, strlen(job->name));
	crew->members[crew->n++] = member;
	crew->waiting++;
	cordon_crew_wake(crew->crew_fd, CORDON_CREW_OWNER);
	if (ret_index)
		*ret_index = member->index;
	return 0;
}

/* Returns what the owner knows about the job without reading the disk. */
static struct cordon_job job_of(const struct member *member)
{
	struct cordon_job job = { .index = member->index,
				  .state = member->state,
				  .started = member->started,
				  .exit_code = -1,
				  .own_exit = -1 };

	memcpy(job.name, member->name, sizeof(job.name));
	memcpy(job.run_id, member->run_id, sizeof(job.run_id));
	return job;
}

void cordon_crew_job(const struct cordon_crew *crew, size_t index, struct cordon_job *ret_job)
{
	const struct member *member = crew->members[index];

	*ret_job = job_of(member);
	if (member->state != CORDON_JOB_QUEUED)
		cordon_crew_job_read(crew->crew_fd, index, true, ret_job);
	ret_job->state = member->state; /* the state that the observer knows; the disk may have a later one */
}

/* ---- states ---- */

static void report_state(const struct cordon_crew *crew, const struct cordon_job *job)
{
	if (crew->observer.state)
		crew->observer.state(crew->observer.data, job);
}

static void set_state(struct cordon_crew *crew, struct member *member, cordon_job_state state)
{
	struct cordon_job job;

	if (member->state == CORDON_JOB_QUEUED)
		crew->waiting--;
	member->state = state;
	job = job_of(member);
	if (state == CORDON_JOB_CANCELLED)
		job.own_exit = CORDON_EXIT_SIGNAL + SIGTERM; /* the job was queued; a job that ran has a result */
	report_state(crew, &job);
}

/* Reads from the disk how the job ended, and reports that. */
static void report_result(struct cordon_crew *crew, struct member *member)
{
	struct cordon_job job = job_of(member);

	cordon_crew_job_read(crew->crew_fd, member->index, true, &job);
	if (!cordon_job_state_ended(job.state))
		job.state = CORDON_JOB_LOST; /* nobody is left to write a result */
	member->state = job.state;
	report_state(crew, &job);
}

/* The supervisor closed its end of the socket, which happens only when it ends. */
static void end_member(struct cordon_crew *crew, struct member *member)
{
	epoll_ctl(crew->epoll_fd, EPOLL_CTL_DEL, member->fd, NULL);
	cordon_closep(&member->fd);
	while (waitpid(member->pid, NULL, 0) < 0 && errno == EINTR)
		;
	crew->active--;
	report_result(crew, member);
}

/* The supervisor could not be started, so we write the result in its place. */
static void refuse(struct cordon_crew *crew, struct member *member, const struct cordon_error *why)
{
	autofd int dir = cordon_crew_job_open(crew->crew_fd, member->index);
	struct cordon_result result = { 0 };
	struct cordon_job job;

	cordon_result_refuse(&result, why);
	crew->waiting--;
	member->state = CORDON_JOB_REFUSED;
	job = job_of(member);
	job.own_exit = result.own_exit;
	job.kind = why->kind;
	cordon_copy(job.message, sizeof(job.message), why->message, strlen(why->message));
	if (dir >= 0)
		(void)cordon_crew_result_write(dir, &job, &result, false, true, NULL);
	report_state(crew, &job);
}

static int start_supervisor(struct cordon_crew *crew, struct member *member, struct cordon_error *err)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u64 = member->index };
	struct cordon_crew_start start;
	struct cordon_job job;
	autofd int dir = -1;
	autofd int alive = -1;
	autofd int ours = -1;
	autofd int theirs = -1;
	int pair[2];
	int r = cordon_crew_job_make(crew->crew_fd, member->index, &dir, &alive, err);

	if (r < 0)
		return r;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return cordon_fail_errno(err, -errno, "cannot make a socket");
	ours = pair[0];
	theirs = pair[1];
	if (epoll_ctl(crew->epoll_fd, EPOLL_CTL_ADD, ours, &event) < 0)
		return cordon_fail_errno(err, -errno, "cannot wait for a job");
	job = job_of(member);
	start = (struct cordon_crew_start){ .job = &job,
					    .spec = &member->spec,
					    .detached = crew->info.detached,
					    .repeatable = crew->repeatable,
					    .crew_fd = crew->crew_fd,
					    .dir_fd = dir,
					    .alive_fd = alive,
					    .owner = theirs };
	member->pid = cordon_crew_supervise(&start);
	if (member->pid < 0)
		return cordon_fail_errno(err, (int)member->pid, "cannot fork");
	member->fd = cordon_steal_fd(&ours);
	return 0;
}

static void start_some(struct cordon_crew *crew)
{
	while (crew->next < crew->n && crew->active < crew->info.max_concurrent) {
		struct member *member = crew->members[crew->next++];
		struct cordon_error err = { 0 };

		if (member->state != CORDON_JOB_QUEUED)
			continue;
		if (crew->stopped || member->unwanted || cordon_crew_requested(crew->crew_fd, member->index)) {
			set_state(crew, member, CORDON_JOB_CANCELLED);
		} else if (start_supervisor(crew, member, &err) < 0) {
			refuse(crew, member, &err);
		} else {
			crew->active++;
			set_state(crew, member, CORDON_JOB_STARTING);
		}
	}
}

static void take_request(void *data, size_t index)
{
	struct cordon_crew *crew = data;

	if (index == CORDON_CREW_ALL)
		crew->stopped = true;
	else if (index < crew->n)
		crew->members[index]->unwanted = true;
}

/* Cancels at once the queued jobs that somebody asked to cancel. The process that asked also woke the supervisors of
 * those that run. */
static void cancel_queued(struct cordon_crew *crew)
{
	cordon_crew_requests(crew->crew_fd, take_request, crew);
	for (size_t i = crew->next; i < crew->n; i++) {
		struct member *member = crew->members[i];

		if (member->state == CORDON_JOB_QUEUED && (crew->stopped || member->unwanted))
			set_state(crew, member, CORDON_JOB_CANCELLED);
	}
}

/* ---- what supervisors report ---- */

static void take_packet(struct cordon_crew *crew, struct member *member, const struct cordon_relayed *packet)
{
	const struct cordon_crew_observer *observer = &crew->observer;
	size_t index = member->index;

	switch (packet->kind) {
	case CORDON_RELAYED_RUNNING:
		cordon_copy(member->run_id, sizeof(member->run_id), packet->run_id, strlen(packet->run_id));
		member->started = cordon_time_now();
		set_state(crew, member, CORDON_JOB_RUNNING);
		break;
	case CORDON_RELAYED_OUTPUT:
		if (observer->output)
			observer->output(observer->data, index, packet->stream, packet->bytes, packet->n);
		break;
	case CORDON_RELAYED_EVENT:
		if (observer->event)
			observer->event(observer->data, index, &packet->event);
		break;
	}
}

static void serve_member(struct cordon_crew *crew, struct member *member)
{
	char buffer[CORDON_RELAY_PACKET_MAX];

	for (size_t i = 0; i < PACKETS_PER_TURN && member->fd >= 0; i++) {
		struct cordon_relayed packet;
		int r = cordon_relay_receive(member->fd, buffer, &packet);

		if (r == -EAGAIN)
			return;
		if (r > 0)
			take_packet(crew, member, &packet);
		else
			end_member(crew, member);
	}
}

void cordon_crew_serve(struct cordon_crew *crew)
{
	struct epoll_event events[CORDON_CREW_CONCURRENT_MAX + 1];
	int n = epoll_wait(crew->epoll_fd, events, CORDON_ARRAY_SIZE(events), 0);

	for (int i = 0; i < n; i++) {
		if (events[i].data.u64 != CORDON_CREW_ALL)
			serve_member(crew, crew->members[events[i].data.u64]);
		else if (cordon_crew_woken(crew->owner_fd))
			cancel_queued(crew);
	}
	start_some(crew);
}

/* ---- cancel ---- */

/* Sends an order to the supervisor. Errors do not matter: a supervisor that is about to end needs no order. */
static void send_order(const struct member *member, char what)
{
	if (member->fd >= 0)
		(void)send(member->fd, &what, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void end_jobs(struct cordon_crew *crew, size_t index, char what)
{
	/* A job that never started has no result, so other processes learn from this request that it was cancelled. */
	(void)cordon_crew_request(crew->crew_fd, index);
	if (index == CORDON_CREW_ALL)
		crew->stopped = true;
	for (size_t i = 0; i < crew->n; i++) {
		if (index != CORDON_CREW_ALL && index != i)
			continue;
		crew->members[i]->unwanted = true;
		send_order(crew->members[i], what);
	}
	cordon_crew_wake(crew->crew_fd, CORDON_CREW_OWNER);
}

void cordon_crew_cancel(struct cordon_crew *crew, size_t index)
{
	end_jobs(crew, index, CORDON_CREW_ORDER_CANCEL);
}

void cordon_crew_kill(struct cordon_crew *crew, size_t index)
{
	end_jobs(crew, index, CORDON_CREW_ORDER_KILL);
}

/* ---- waiting ---- */

static void on_signals(struct cordon_crew *crew, int fd, int *first)
{
	struct signalfd_siginfo info;

	while (read(fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (*first)
			cordon_crew_kill(crew, CORDON_CREW_ALL);
		else
			cordon_crew_cancel(crew, CORDON_CREW_ALL);
		if (!*first)
			*first = (int)info.ssi_signo;
	}
}

int cordon_crew_wait(struct cordon_crew *crew, int *ret_signal, struct cordon_error *err)
{
	sigset_t caught, before;
	autofd int fd = -1;
	int first = 0, r = 0;

	sigemptyset(&caught);
	sigaddset(&caught, SIGINT);
	sigaddset(&caught, SIGTERM);
	sigaddset(&caught, SIGHUP);
	sigprocmask(SIG_BLOCK, &caught, &before);
	fd = signalfd(-1, &caught, SFD_NONBLOCK | SFD_CLOEXEC);
	if (fd < 0)
		r = cordon_fail_errno(err, -errno, "signalfd");
	while (r == 0 && cordon_crew_busy(crew)) {
		struct pollfd fds[] = { { .fd = cordon_crew_fd(crew), .events = POLLIN },
					{ .fd = fd, .events = POLLIN } };

		if (poll(fds, CORDON_ARRAY_SIZE(fds), crew_ticks(crew) ? CORDON_CREW_TICK_MS : -1) < 0 && errno != EINTR)
			r = cordon_fail_errno(err, -errno, "poll");
		on_signals(crew, fd, &first);
		cordon_crew_serve(crew);
		crew_tick(crew);
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
	if (r == 0 && ret_signal)
		*ret_signal = first;
	return r;
}
