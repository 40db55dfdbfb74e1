/* SPDX-License-Identifier: Apache-2.0 */
/* The supervisor's loop: handles time-out, signals, terminal, watch and limits, and cleans up at the end. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#include "base/exit.h"
#include "base/time.h"
#include "sandbox/host/discarded.h"
#include "sandbox/host/enter.h"
#include "sandbox/host/failure.h"
#include "sandbox/host/launch.h"
#include "sandbox/host/lens_process.h"
#include "sandbox/host/lens_reports.h"
#include "sandbox/host/memory.h"
#include "sandbox/host/metrics.h"
#include "sandbox/host/net_reports.h"
#include "sandbox/host/terminal.h"
#include "sandbox/host/tripwire.h"
#include "sandbox/watch/watch.h"

#define LENS_GRACE_MS 1000

struct supervisor {
	struct cordon_child *child;
	const struct cordon_observer *observer;
	struct cordon_result *result;
	pthread_mutex_t lock; /* we hold it except while we wait; the thread that hears the lens takes it */
	struct cordon_watch *watches[1 + CORDON_ENTER_MAX]; /* of the agent, and of programs that were started later */
	struct cordon_terminal *terminal;
	struct cordon_lens_process lens;
	struct cordon_watched watched;
	struct cordon_lens_reports *lens_reports;
	struct cordon_tripwires *tripwires;
	int signals;
	int own;		      /* a directory of the private file systems, or -1 */
	bool own_is_home;	      /* it is the private home */
	int view;		      /* what the lens shows instead of the host's tree, or -1 */
	struct cordon_memory *memory; /* NULL unless we limit the memory ourselves */
	sigset_t old_mask;
	uint64_t deadline; /* CLOCK_MONOTONIC in ms: when end_tree() takes its next step; 0: never */
	bool started;	   /* the agent's program was about to run */
	bool exited;	   /* the agent's status is known */
	bool empty;	   /* only PID 1, which is ending, is left inside */
	bool ending;	   /* SIGTERM was sent */
	bool killed;
	bool lens_signalled; /* SIGTERM was sent to the lens */
	bool timed_out;
	int cancelled_by; /* the signal, or 0 */
	int status;
	int no_exec; /* errno of a failed exec, or 0 */
};

static uint64_t now_ms(void)
{
	return (uint64_t)cordon_time_monotonic();
}

static void emit(const struct supervisor *s, const struct cordon_event *event)
{
	s->observer->event(s->observer->data, event);
}

static void report_limit(const struct supervisor *s, const char *op, uint64_t limit)
{
	struct cordon_event event = { .kind = CORDON_EVENT_LIMIT, .op = op, .limit = limit, .count = 1 };

	emit(s, &event);
}

/* Takes the next step towards the end of the run: SIGTERM to all its processes, and after a period of grace SIGKILL to
 * its PID 1, with which the kernel ends all others. */
static void end_tree(struct supervisor *s)
{
	struct cordon_notice notice = { .kind = CORDON_NOTICE_TERMINATE };

	if (!s->ending && s->started && cordon_notice_send(s->child->ctl, &notice, -1) == 0) {
		s->ending = true;
		s->deadline = now_ms() + s->child->plan->grace_ms;
		return;
	}
	s->ending = s->killed = true;
	s->deadline = 0;
	syscall(SYS_pidfd_send_signal, s->child->pidfd, SIGKILL, NULL, 0);
	/* A process that waits for an answer of the lens can't be killed until the lens answers or ends. So we end the
	 * lens too: first with SIGTERM, so that it can clean up, then with SIGKILL, in case it hangs. */
	if (s->lens.pidfd >= 0) {
		syscall(SYS_pidfd_send_signal, s->lens.pidfd, s->lens_signalled ? SIGKILL : SIGTERM, NULL, 0);
		s->deadline = s->lens_signalled ? 0 : now_ms() + LENS_GRACE_MS;
		s->lens_signalled = true;
	}
}

static void on_deadline(struct supervisor *s)
{
	if (!s->ending) {
		s->timed_out = true;
		report_limit(s, "timeout", s->child->plan->timeout_ms);
	}
	end_tree(s);
}

static void on_signals(struct supervisor *s)
{
	struct signalfd_siginfo info;

	while (read(s->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo == SIGWINCH) {
			if (s->terminal)
				cordon_terminal_resize(s->terminal);
			continue;
		}
		if (!s->cancelled_by)
			s->cancelled_by = (int)info.ssi_signo;
		end_tree(s);
	}
}

/* The host has replaced what has the name of a boundary, or has made a missing one. When code is 0, PID 1 has put it
 * under its rule. We never move or remove anything of the host. */
static void on_boundary(const struct supervisor *s, const struct cordon_notice *notice)
{
	bool made = notice->kind == CORDON_NOTICE_MADE;
	struct cordon_event event = { .kind = made ? CORDON_EVENT_MADE : CORDON_EVENT_LOST,
				      .held = notice->code == 0,
				      .count = 1 };
	const struct cordon_guard *guard;

	if (notice->index >= s->child->plan->n_guards)
		return;
	guard = &s->child->plan->guards[notice->index];
	event.path = guard->inside;
	event.rule = guard->path;
	event.denied = guard->kind == CORDON_GUARD_DENIED;
	if (made)
		s->result->protected_made++;
	else
		s->result->protected_lost++;
	emit(s, &event);
}

static void on_fuse(struct supervisor *s, int fuse_fd)
{
	struct cordon_notice ready = { .kind = CORDON_NOTICE_LENS_READY };

	if (s->lens.pid > 0 || fuse_fd < 0)
		return;
	if (cordon_lens_start(s->child->policy, s->child->plan, s->watched.workspace_fd, fuse_fd,
			      s->result->metrics ? s->result->metrics->fd : -1, &s->lens, &s->result->error) < 0) {
		end_tree(s); /* the program has not started, so this kills at once */
		return;
	}
	s->lens_reports = cordon_lens_reports_start(s->lens.refusals_fd, s->child, &s->watched, &s->lock);
	if (s->lens_reports) {
		cordon_notice_send(s->child->ctl, &ready, -1);
	} else {
		cordon_fail(&s->result->error, -ENOMEM, CORDON_KIND_LIMIT, "cannot hear what cordon-lens refuses");
		end_tree(s);
	}
}

/* The run can't go on without the lens: every access to the view fails now. */
static void on_lens_death(struct supervisor *s)
{
	if (!s->ending && !s->exited)
		cordon_fail(&s->result->error, -ENOTCONN, CORDON_KIND_INTERNAL,
			    "cordon-lens died, and with it the view of the workspace");
	s->started = false;
	end_tree(s);
	cordon_lens_stop(&s->lens);
}

/* A program that was started later could not run, or has ended. */
static void on_left(const struct supervisor *s, const struct cordon_notice *notice)
{
	struct cordon_error err = { 0 };
	struct cordon_event event = {
		.kind = CORDON_EVENT_LEFT, .number = notice->index, .status = notice->code, .count = 1
	};

	if (notice->kind == CORDON_NOTICE_NO_EXEC)
		cordon_fail_exec(&err, notice->code, "it");
	else if (notice->kind == CORDON_NOTICE_FAILED)
		cordon_fail(&err, notice->code, CORDON_KIND_IO, "cannot enter the sandbox: %s %s: %s", notice->what,
			    notice->object, strerror(-notice->code));
	event.why = err.code ? &err : NULL;
	emit(s, &event);
}

/* True when the watch has taken the listener. */
static bool add_watch(struct supervisor *s, int listener)
{
	for (size_t i = 0; listener >= 0 && s->watched.memory && i < CORDON_ARRAY_SIZE(s->watches); i++) {
		if (s->watches[i])
			continue;
		s->watched.memory->runs[i] = false;
		s->watched.memory->last[i] = 0;
		s->watches[i] = cordon_watch_new(&s->watched, listener, (uint32_t)i);
		return s->watches[i] != NULL;
	}
	return false;
}

static void end_watch(struct supervisor *s, size_t i)
{
	if (!s->watches[i])
		return;
	cordon_watch_hear(s->watches[i]);
	s->result->violations += cordon_watch_count(s->watches[i]);
	s->watches[i] = cordon_watch_free(s->watches[i]);
}

/* Somebody tries to read what a rule hides. A program that runs has a watch: a run with tripwires traps changes. */
static void on_tripwire(void *data, const struct cordon_hand_message *message)
{
	struct supervisor *s = data;

	for (size_t i = 0; i < CORDON_ARRAY_SIZE(s->watches); i++) {
		if (!s->watches[i])
			continue;
		cordon_watch_tell(s->watches[i], message);
		return;
	}
}

static void on_notice(struct supervisor *s, const struct cordon_notice *notice, int fd)
{
	switch ((cordon_notice_kind)notice->kind) {
	case CORDON_NOTICE_FAILED:
		notice->index ? on_left(s, notice) : cordon_failure_describe(notice, &s->result->error);
		break;
	case CORDON_NOTICE_NO_EXEC:
		if (notice->index)
			on_left(s, notice);
		else
			s->no_exec = -notice->code;
		break;
	case CORDON_NOTICE_LEFT:
		on_left(s, notice);
		break;
	case CORDON_NOTICE_PTY:
		if (!s->terminal && fd >= 0 && (s->terminal = calloc(1, sizeof(*s->terminal)))) {
			cordon_terminal_begin(s->terminal, fd, s->child->terminal,
					      s->child->terminal[2] ? &s->child->output->screen : NULL);
			s->child->output->terminal = s->terminal;
			fd = -1;
		}
		break;
	case CORDON_NOTICE_OWN:
		if (s->own < 0) {
			s->own = fd;
			s->own_is_home = notice->index == 1;
			fd = -1;
		}
		break;
	case CORDON_NOTICE_MEMORY:
		if (s->memory && notice->code >= 0 && notice->code < CORDON_MEMORY__MAX) {
			cordon_memory_take(s->memory, (enum cordon_memory_fd)notice->code, fd);
			fd = -1;
		}
		break;
	case CORDON_NOTICE_VIEW:
		if (s->view < 0 && fd >= 0) {
			s->view = s->watched.workspace_fd = fd;
			fd = -1;
		}
		break;
	case CORDON_NOTICE_FUSE:
		on_fuse(s, fd);
		fd = -1;
		break;
	case CORDON_NOTICE_TRIPWIRES:
		/* When there is no memory, PID 1 gets an error as soon as it looks at them, and the run is refused. */
		if (!s->tripwires && fd >= 0) {
			s->tripwires = cordon_tripwires_new(fd, s->child, &s->watched, on_tripwire, s);
			fd = -1;
		}
		break;
	case CORDON_NOTICE_STARTED:
		s->started = true;
		if (s->result->metrics && !s->result->metrics->landlock_rules)
			s->result->metrics->landlock_rules = (unsigned int)notice->code;
		if (fd >= 0 && add_watch(s, fd))
			fd = -1;
		break;
	case CORDON_NOTICE_EXITED:
		s->exited = true;
		s->empty = notice->index == 1;
		s->status = notice->code;
		s->result->usage = notice->usage;
		cordon_metrics_exited(s->result->metrics);
		break;
	case CORDON_NOTICE_LOST:
	case CORDON_NOTICE_MADE:
		on_boundary(s, notice);
		break;
	case CORDON_NOTICE_GO:
	case CORDON_NOTICE_LENS_READY:
	case CORDON_NOTICE_TERMINATE:
	case CORDON_NOTICE_STREAM:
	case CORDON_NOTICE_ENTER:
	case CORDON_NOTICE_LEAVE:
	case CORDON_NOTICE_HAND:
		break;
	}
	if (fd >= 0)
		close(fd);
}

/* False when the other side is gone. */
static bool on_ctl(struct supervisor *s)
{
	for (;;) {
		struct cordon_notice notice;
		int fd = -1;
		int r = cordon_notice_receive(s->child->ctl, &notice, &fd);

		if (r == -EAGAIN)
			return true;
		if (r != 1)
			return false;
		on_notice(s, &notice, fd);
	}
}

/* The agent's process has closed its end of the pipe: by its exec, or because it could not exec; then a notice says
 * so. */
static void on_exec(struct supervisor *s)
{
	struct cordon_event event = { .kind = CORDON_EVENT_STARTED, .count = 1, .result = s->result };

	cordon_closep(&s->child->exec_fd);
	on_ctl(s);
	if (s->started && !s->no_exec && !s->result->error.code) {
		cordon_metrics_started(s->result->metrics);
		emit(s, &event);
	}
}

/* Lets the observer handle its own descriptors; it may ask to end the run. */
static void serve_caller(struct supervisor *s, const struct pollfd *fds, size_t n)
{
	if (!n || !s->observer->serve(s->observer->data, fds, n))
		return;
	if (!s->cancelled_by)
		s->cancelled_by = SIGTERM;
	end_tree(s);
}

static void on_memory(struct supervisor *s)
{
	if (s->killed)
		return;
	report_limit(s, "memory", s->child->plan->limits.memory_bytes);
	s->result->hit_memory = true;
	s->started = false; /* no period of grace, because there is no memory for it */
	end_tree(s);
}

/* The run has used its network, or cordon-net has something to say, or has ended. */
static void on_net(struct supervisor *s)
{
	if (cordon_net_serve(&s->child->net, s->observer, s->result) < 0)
		end_tree(s);
}

static void begin(struct supervisor *s)
{
	static const int caught[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH };
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(caught); i++)
		sigaddset(&set, caught[i]);
	sigprocmask(SIG_BLOCK, &set, &s->old_mask);
	s->signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	fcntl(s->child->ctl, F_SETFL, O_NONBLOCK);
	if (s->child->plan->timeout_ms)
		s->deadline = now_ms() + s->child->plan->timeout_ms;
	if (s->child->limits.choice.by[CORDON_LIMIT_MEMORY] == CORDON_LIMITS_BY_WATCHER)
		s->memory = cordon_memory_new(s->child->plan->limits.memory_bytes, s->child->pid,
					      s->child->plan->tier == CORDON_TIER_FULL);
	else
		return;
	if (!s->memory) {
		cordon_fail_errno(&s->result->error, -ENOMEM, "cannot watch the memory of the run");
		end_tree(s); /* the program has not started, so this kills at once */
	}
}

/* How long we may wait for events, in ms; -1: until one comes. */
static int time_to_wait(const struct supervisor *s)
{
	uint64_t look = s->killed ? 0 : cordon_memory_due(s->memory);
	uint64_t until = s->deadline && (!look || s->deadline < look) ? s->deadline : look;
	uint64_t now = until ? now_ms() : 0;

	return !until ? -1 : until <= now ? 0 : until - now > 60000 ? 60000 : (int)(until - now);
}

/* Whether we may clean up before PID 1 has ended. Its end takes long because the kernel removes its mounts; meanwhile we
 * do our part, and cordon_child_reap() waits for it at last. But a cgroup can be removed only when it is empty, and the
 * lens must serve its view as long as a process may use it. */
static bool may_leave(const struct supervisor *s)
{
	return s->empty && !s->child->limits.n_groups && s->lens.pid <= 0;
}

/* Where no control group limits the memory, we look at it from time to time. */
static void watch_memory(struct supervisor *s)
{
	uint64_t used;

	if (s->killed || !cordon_memory_due(s->memory) || now_ms() < cordon_memory_due(s->memory))
		return;
	pthread_mutex_unlock(&s->lock); /* nobody has to wait for it */
	used = cordon_memory_look(s->memory, s->own);
	pthread_mutex_lock(&s->lock);
	if (used > s->child->plan->limits.memory_bytes)
		on_memory(s);
}

/* Releases the lock while it waits. 0 or -errno. */
static int wait_for(struct supervisor *s, struct pollfd *fds, size_t n, int ms)
{
	int r;

	pthread_mutex_unlock(&s->lock);
	r = poll(fds, n, ms) < 0 && errno != EINTR ? -errno : 0;
	pthread_mutex_lock(&s->lock);
	return r;
}

/* Reports that a program has left the alternate screen, so that messages which waited for that can be shown. */
static void report_screen(struct supervisor *s)
{
	struct cordon_event event = { .kind = CORDON_EVENT_SCREEN, .count = 1 };

	if (!s->child->output->screen.left || s->child->output->screen.alternate)
		return;
	s->child->output->screen.left = false;
	emit(s, &event);
}

/* Runs until PID 1, and with it everything inside, is gone, or may_leave() says that we need not wait for that. */
static void loop(struct supervisor *s)
{
	enum {
		PID,
		CTL,
		SIGNALS,
		OOM,
		NET,
		LENS,
		TRIPWIRES,
		EXEC,
		TERMINAL,
		OUTPUT = TERMINAL + 2,
		WATCH = OUTPUT + 2,
		N = WATCH + CORDON_WATCH_FDS * (1 + CORDON_ENTER_MAX)
	};
	struct pollfd fds[N + CORDON_OBSERVER_FDS];

	fds[PID] = (struct pollfd){ .fd = s->child->pidfd, .events = POLLIN };
	fds[CTL] = (struct pollfd){ .fd = s->child->ctl, .events = POLLIN };
	fds[SIGNALS] = (struct pollfd){ .fd = s->signals, .events = POLLIN };
	fds[OOM] = (struct pollfd){ .fd = s->child->limits.oom_fd, .events = POLLIN };
	if (!s->child->limits.n_groups)
		fds[OOM].fd = -1;
	for (;;) {
		size_t n_more;

		for (size_t i = 0; i < CORDON_ARRAY_SIZE(s->watches); i++)
			cordon_watch_poll(s->watches[i], &fds[WATCH + CORDON_WATCH_FDS * i]);
		fds[NET] = (struct pollfd){ .fd = cordon_net_poll(&s->child->net), .events = POLLIN };
		fds[LENS] = (struct pollfd){ .fd = s->lens.pidfd, .events = POLLIN };
		fds[TRIPWIRES] = (struct pollfd){ .fd = cordon_tripwires_poll(s->tripwires), .events = POLLIN };
		fds[EXEC] = (struct pollfd){ .fd = s->child->exec_fd, .events = POLLIN };
		fds[TERMINAL] = fds[TERMINAL + 1] = (struct pollfd){ .fd = -1 };
		if (s->terminal)
			cordon_terminal_poll(s->terminal, &fds[TERMINAL]);
		cordon_output_poll(s->child->output, &fds[OUTPUT]);
		n_more = s->observer->fds ? s->observer->fds(s->observer->data, fds + N) : 0;
		if (wait_for(s, fds, N + n_more, time_to_wait(s)) < 0)
			end_tree(s);
		if (fds[CTL].revents && !on_ctl(s))
			fds[CTL].fd = -1;
		for (size_t i = 0; i < CORDON_ARRAY_SIZE(s->watches); i++)
			if (s->watches[i] && !cordon_watch_serve(s->watches[i], &fds[WATCH + CORDON_WATCH_FDS * i]))
				end_watch(s, i);
		if (fds[TRIPWIRES].revents)
			cordon_tripwires_serve(s->tripwires);
		if (fds[NET].revents)
			on_net(s);
		if (fds[EXEC].revents)
			on_exec(s);
		serve_caller(s, fds + N, n_more);
		if (fds[SIGNALS].revents)
			on_signals(s);
		if (fds[OOM].revents && cordon_limits_ran_out(&s->child->limits))
			on_memory(s);
		watch_memory(s);
		if (s->terminal)
			cordon_terminal_move(s->terminal, &fds[TERMINAL]);
		cordon_output_move(s->child->output, &fds[OUTPUT]);
		report_screen(s);
		if (fds[PID].revents || may_leave(s))
			return;
		if (fds[LENS].revents)
			on_lens_death(s);
		if (s->deadline && now_ms() >= s->deadline)
			on_deadline(s);
	}
}

static void conclude(struct supervisor *s)
{
	struct cordon_result *result = s->result;
	struct cordon_ending ending = { .exit_code = -1 };

	/* Whatever the agent did when it got no more memory, and however many of its processes the kernel had killed
	 * by then: a run that has reached this limit was killed. If the kernel killed PID 1 for another one, too. */
	if (result->hit_memory || (result->hit_outer_memory && !s->exited)) {
		s->exited = false;
		s->killed = true;
	}
	if (s->exited)
		ending = cordon_ending_of_wait(s->status);
	result->exit_code = ending.exit_code;
	result->signal = ending.signal;
	if (!result->error.code && s->no_exec)
		cordon_fail_exec(&result->error, -s->no_exec, s->child->plan->argv[0]);
	else if (!result->error.code && !s->exited && !s->killed && !s->ending)
		cordon_fail(&result->error, -EIO, CORDON_KIND_INTERNAL, "the sandbox ended without saying why");
	if (result->error.code) {
		result->state = CORDON_STATE_REFUSED;
		result->own_exit = cordon_exit_of_error(&result->error, CORDON_EXIT_REFUSED);
		return;
	}
	if (!s->exited && s->killed)
		ending.signal = result->signal = SIGKILL;
	ending.timed_out = s->timed_out;
	/* The result says that the run was interrupted, whatever the agent did with the signal. */
	if (s->cancelled_by)
		ending.signal = s->cancelled_by;
	result->state = s->timed_out		 ? CORDON_STATE_TIMEOUT
			: s->cancelled_by	 ? CORDON_STATE_CANCELLED
			: result->exit_code == 0 ? CORDON_STATE_COMPLETED
						 : CORDON_STATE_FAILED;
	result->limit = s->timed_out				    ? "timeout"
			: s->cancelled_by			    ? NULL
			: result->hit_memory			    ? "memory"
			: result->hit_outer_memory && ending.signal ? "outer_memory"
								    : NULL;
	result->own_exit = cordon_exit_of_ending(&ending);
}

/* Looks at the end whether a limit was reached of which nothing was said yet. */
static void report_limits(struct supervisor *s)
{
	struct cordon_result *result = s->result;
	struct cordon_limits_hits hits = { 0 };
	struct statfs fs;

	cordon_limits_hit(&s->child->limits, &hits);
	/* Cgroup v2 ends the whole group by itself. */
	if (hits.memory && !result->hit_memory)
		report_limit(s, "memory", s->child->plan->limits.memory_bytes);
	result->hit_memory |= hits.memory;
	result->hit_outer_memory = hits.outer_memory && !result->hit_memory;
	if (result->hit_outer_memory)
		report_limit(s, "outer_memory", s->child->plan->limits.memory_bytes);
	result->hit_pids = hits.pids;
	if (hits.pids)
		report_limit(s, "pids", s->child->plan->limits.pids);
	if (s->own < 0 || fstatfs(s->own, &fs) < 0)
		return;
	result->hit_tmp = fs.f_bfree == 0 || fs.f_ffree == 0;
	if (result->hit_tmp)
		report_limit(s, fs.f_bfree == 0 ? "tmp" : "tmp_files",
			     fs.f_bfree == 0 ? s->child->plan->tmp_size : fs.f_files);
}

static void finish(struct supervisor *s)
{
	on_ctl(s); /* receive the last notices */
	s->tripwires = cordon_tripwires_free(s->tripwires);
	if (!may_leave(s))
		cordon_child_reap(s->child);
	if (s->child->plan->tier == CORDON_TIER_LANDLOCK)
		cordon_lower_tier_kill_all(SIGKILL); /* there is no pid namespace that ends them */
	cordon_output_forward(s->child->output);
	cordon_net_end(&s->child->net, s->observer, s->result);
	cordon_lens_stop(&s->lens);
	s->result->violations += cordon_lens_reports_end(s->lens_reports);
	cordon_metrics_net(s->result->metrics, &s->child->net.usage);
	cordon_metrics_lens(s->result->metrics, &s->lens.usage);
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(s->watches); i++)
		end_watch(s, i);
	if (s->watched.memory) {
		s->result->changed |= s->watched.memory->changed;
		if (s->watched.meter)
			s->watched.meter->watch_events += s->watched.memory->calls;
		munmap(s->watched.memory, cordon_hand_memory_size(s->child->plan));
	}
	if (s->terminal)
		cordon_terminal_end(s->terminal);
	s->child->output->terminal = NULL;
	free(s->terminal);
	cordon_output_end(s->child->output);
	s->result->mid_line = s->child->output->screen.mid_line;
	report_limits(s);
	s->child->output = cordon_output_free(s->child->output);
	s->result->discarded = s->own_is_home ? cordon_discarded_count(s->own) : 0;
	cordon_closep(&s->own);
	cordon_closep(&s->view);
	s->memory = cordon_memory_free(s->memory);
	cordon_limits_remove(&s->child->limits);
	cordon_limits_done(&s->child->limits);
	cordon_closep(&s->child->ctl);
	cordon_closep(&s->child->exec_fd);
	cordon_closep(&s->child->pidfd);
	cordon_closep(&s->signals);
	sigprocmask(SIG_SETMASK, &s->old_mask, NULL);
}

static void forward_output(void *data)
{
	cordon_output_forward(((struct cordon_child *)data)->output);
}

/* Records in the result which layers and mechanisms this run has. */
static void record_layers(const struct cordon_child *child, struct cordon_result *result)
{
	result->started = child->started;
	result->changed = !cordon_seccomp_watches(child->variant);
	result->launched = true;
	result->landlock_abi = child->plan->layers.landlock_abi;
	result->watching = child->variant == CORDON_SECCOMP_BASE     ? CORDON_WATCHING_NOTHING
			   : child->plan->tripwires		     ? CORDON_WATCHING_TRIPWIRES
			   : child->variant == CORDON_SECCOMP_CHANGE ? CORDON_WATCHING_CHANGES
								     : CORDON_WATCHING_ALL;
	result->memory_by = cordon_limits_mechanism(&child->limits, CORDON_LIMIT_MEMORY);
	result->pids_by = cordon_limits_mechanism(&child->limits, CORDON_LIMIT_PIDS);
	result->cpus_by = cordon_limits_mechanism(&child->limits, CORDON_LIMIT_CPUS);
}

void cordon_supervise(struct cordon_child *child, const struct cordon_observer *observer, struct cordon_result *result)
{
	struct supervisor s = { .child = child,
				.observer = observer,
				.result = result,
				.signals = -1,
				.own = -1,
				.view = -1,
				.lens = CORDON_LENS_PROCESS_NONE,
				.lock = PTHREAD_MUTEX_INITIALIZER };
	uint64_t begun = now_ms();

	record_layers(child, result);
	s.watched = (struct cordon_watched){ .plan = child->plan,
					     .policy = child->policy,
					     .workspace_fd = child->policy->root.fd,
					     .observer = observer,
					     .memory = child->memory,
					     .ctl = child->ctl,
					     .forward_output = forward_output,
					     .meter = result->metrics ? &result->metrics->meters[CORDON_METER_SUPERVISOR]
								      : NULL,
					     .data = child };
	pthread_mutex_lock(&s.lock);
	begin(&s);
	loop(&s);
	finish(&s);
	pthread_mutex_unlock(&s.lock);
	conclude(&s);
	clock_gettime(CLOCK_REALTIME, &result->ended);
	result->duration_ms = now_ms() - begun;
}
