/* SPDX-License-Identifier: Apache-2.0 */
/* The supervisor's loop: time-out, signals, terminal, watch, limits, and what is left at the end. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/time.h"
#include "sandbox/enter.h"
#include "sandbox/launch.h"
#include "sandbox/lens_process.h"
#include "sandbox/quarantine.h"
#include "sandbox/terminal.h"
#include "sandbox/watch.h"

#define LENS_GRACE_MS 1000
#define LOCK_MS 100

struct supervisor {
	struct cordon_child *child;
	const struct cordon_observer *observer;
	struct cordon_result *result;
	pthread_mutex_t lock;				    /* held but while we wait: see watch.h */
	struct cordon_watch *watches[1 + CORDON_ENTER_MAX]; /* of the agent, and of programs that entered */
	struct cordon_terminal *terminal;
	struct cordon_lens_process lens;
	int signals;
	sigset_t old_mask;
	uint64_t deadline; /* CLOCK_MONOTONIC ms of the next step towards the end, 0: none */
	bool started;	   /* the agent's program was about to run */
	bool exited;	   /* the agent's status is known */
	bool empty;	   /* and nothing but PID 1, which is ending, is left inside */
	bool ending;	   /* SIGTERM was sent */
	bool killed;
	bool lens_told; /* to end */
	bool timed_out;
	int cancelled_by; /* signal, or 0 */
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

/* SIGTERM to the tree and a period of grace, then SIGKILL to its PID 1, which takes everything with it. */
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
	/* Who waits for an answer of the lens can't even be killed before it comes, or the lens is gone. It cleans up if it
	 * can; one that hangs does not. */
	if (s->lens.pidfd >= 0) {
		syscall(SYS_pidfd_send_signal, s->lens.pidfd, s->lens_told ? SIGKILL : SIGTERM, NULL, 0);
		s->deadline = s->lens_told ? 0 : now_ms() + LENS_GRACE_MS;
		s->lens_told = true;
	}
}

static void on_deadline(struct supervisor *s)
{
	if (!s->ending) {
		struct cordon_event event = { .kind = CORDON_EVENT_LIMIT, .op = "timeout", .count = 1 };

		s->timed_out = true;
		emit(s, &event);
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

static void on_failed(struct supervisor *s, const struct cordon_notice *notice)
{
	struct cordon_error *err = &s->result->error;
	bool kernel = notice->code == -ENOSYS || notice->code == -EOPNOTSUPP || notice->code == -EPERM;

	if (err->code)
		return;
	cordon_fail(err, notice->code, kernel ? CORDON_KIND_KERNEL_UNSUPPORTED : CORDON_KIND_IO,
		    "cannot set up the sandbox: %s %s: %s", notice->what, notice->object,
		    notice->code == -ESTALE ? "it was replaced while the run started" : strerror(-notice->code));
	if (kernel)
		cordon_error_hint(err, "'cordon doctor' tells what this machine allows");
}

static void on_lost(const struct supervisor *s, const struct cordon_notice *notice)
{
	struct cordon_event event = { .kind = CORDON_EVENT_LOST, .held = notice->code == 0, .count = 1 };

	if (notice->index >= s->child->plan->n_steps)
		return;
	event.path = s->child->plan->steps[notice->index].path;
	s->result->protected_lost++;
	emit(s, &event);
}

/* A guarded name stands there. What the agent made goes into the run's record, what the host made stays. */
static void on_made(const struct supervisor *s, const struct cordon_notice *notice)
{
	struct cordon_event event = { .kind = CORDON_EVENT_MADE, .held = notice->code >= 0, .count = 1 };
	const struct cordon_guard *guard;

	if (notice->index >= s->child->plan->n_guards)
		return;
	guard = &s->child->plan->guards[notice->index];
	event.path = guard->inside;
	event.rule = guard->path;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(s->watches); i++)
		event.by_agent |= s->watches[i] && cordon_watch_blames_agent(s->watches[i], guard);
	if (event.by_agent)
		event.held = cordon_quarantine_take(s->child->policy->root.fd, guard, s->child->quarantine_fd) == 0;
	s->result->protected_made++;
	emit(s, &event);
}

static void on_fuse(struct supervisor *s, int fuse_fd)
{
	struct cordon_notice ready = { .kind = CORDON_NOTICE_LENS_READY };

	if (s->lens.pid > 0 || fuse_fd < 0)
		return;
	if (cordon_lens_start(s->child->policy, fuse_fd, &s->lens, &s->result->error) == 0)
		cordon_notice_send(s->child->ctl, &ready, -1);
	else
		end_tree(s); /* it has not started: ends it at once */
}

/* Whoever still looks at the view gets errors, never an answer; the run can't go on. */
static void on_lens_death(struct supervisor *s)
{
	if (!s->ending && !s->exited)
		cordon_fail(&s->result->error, -ENOTCONN, CORDON_KIND_INTERNAL,
			    "cordon-lens died, and with it the view of the workspace");
	s->started = false;
	end_tree(s);
	cordon_lens_stop(&s->lens);
}

/* A further program could not be started, or has ended. */
static void on_left(const struct supervisor *s, const struct cordon_notice *notice)
{
	struct cordon_error err = { 0 };

	if (!s->observer->left)
		return;
	if (notice->kind == CORDON_NOTICE_NO_EXEC)
		cordon_fail(&err, notice->code, notice->code == -ENOENT ? CORDON_KIND_NOT_FOUND : CORDON_KIND_IO,
			    "cannot run it: %s",
			    notice->code == -ENOENT ? "no such program in the sandbox" : strerror(-notice->code));
	else if (notice->kind == CORDON_NOTICE_FAILED)
		cordon_fail(&err, notice->code, CORDON_KIND_IO, "cannot enter the sandbox: %s %s: %s", notice->what,
			    notice->object, strerror(-notice->code));
	s->observer->left(s->observer->data, notice->index, notice->code, err.code ? &err : NULL);
}

/* True when the watch has taken the listener. */
static bool add_watch(struct supervisor *s, int listener)
{
	for (size_t i = 0; listener >= 0 && i < CORDON_ARRAY_SIZE(s->watches); i++) {
		if (s->watches[i])
			continue;
		s->watches[i] = cordon_watch_new(s->child, s->observer, listener, &s->lock);
		return s->watches[i] != NULL;
	}
	return false;
}

static void end_watch(struct supervisor *s, size_t i)
{
	if (!s->watches[i])
		return;
	s->result->violations += cordon_watch_count(s->watches[i]);
	s->watches[i] = cordon_watch_free(s->watches[i]);
}

/* Without it every trapped call would wait for ever: then it fails with ENOSYS. */
static void on_watch(struct supervisor *s, size_t i, short revents)
{
	int r = cordon_watch_wake(s->watches[i], revents);

	if (r < 0 && !s->result->error.code)
		cordon_fail(&s->result->error, r, CORDON_KIND_IO, "cannot start the watch: %s", strerror(-r));
	if (r < 0)
		end_tree(s);
	if (r <= 0)
		end_watch(s, i);
}

static void on_notice(struct supervisor *s, const struct cordon_notice *notice, int fd)
{
	switch ((cordon_notice_kind)notice->kind) {
	case CORDON_NOTICE_FAILED:
		notice->index ? on_left(s, notice) : on_failed(s, notice);
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
			cordon_terminal_begin(s->terminal, fd, s->child->terminal);
			fd = -1;
		}
		break;
	case CORDON_NOTICE_FUSE:
		on_fuse(s, fd);
		fd = -1;
		break;
	case CORDON_NOTICE_STARTED:
		s->started = true;
		if (fd >= 0 && add_watch(s, fd))
			fd = -1;
		break;
	case CORDON_NOTICE_EXITED:
		s->exited = true;
		s->empty = notice->index == 1;
		s->status = notice->code;
		s->result->usage = notice->usage;
		break;
	case CORDON_NOTICE_LOST:
		on_lost(s, notice);
		break;
	case CORDON_NOTICE_MADE:
		on_made(s, notice);
		break;
	case CORDON_NOTICE_GO:
	case CORDON_NOTICE_LENS_READY:
	case CORDON_NOTICE_TERMINATE:
	case CORDON_NOTICE_STREAM:
	case CORDON_NOTICE_ENTER:
	case CORDON_NOTICE_LEAVE:
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

/* The agent's process gave up its end: by exec, or because there is nothing to exec; then a notice says so. */
static void on_exec(struct supervisor *s)
{
	struct cordon_event event = { .kind = CORDON_EVENT_STARTED, .count = 1 };

	cordon_closep(&s->child->exec_fd);
	on_ctl(s);
	if (s->started && !s->no_exec && !s->result->error.code)
		emit(s, &event);
}

/* What the caller waits for beside us. */
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
	struct cordon_event event = { .kind = CORDON_EVENT_LIMIT, .op = "memory", .count = 1 };

	if (s->killed)
		return;
	emit(s, &event);
	s->result->hits.memory = true;
	s->started = false; /* no grace: there is no memory to use it */
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
}

/* The end of PID 1 is mostly the kernel taking mounts apart, which nobody has to wait for; but a cgroup can be removed
 * only when it is empty, and the lens must not lose its view while somebody may look. */
static bool may_leave(const struct supervisor *s)
{
	return s->empty && !s->child->limits.n_groups && s->lens.pid <= 0;
}

/* Takes the lock. The watch may hold it while it looks at what a link of the agent's leads to, and that may lie in the view of
 * a lens that hangs. When the run has to end, the lens has to, then; what waits for it gets an error. */
static void take_lock(struct supervisor *s)
{
	struct pollfd signals = { .fd = s->signals, .events = POLLIN };
	struct timespec until;

	for (;;) {
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += LOCK_MS * 1000000L;
		until.tv_sec += until.tv_nsec / 1000000000L;
		until.tv_nsec %= 1000000000L;
		if (pthread_mutex_timedlock(&s->lock, &until) == 0)
			return;
		if (s->lens.pidfd >= 0 && ((s->deadline && now_ms() >= s->deadline) || poll(&signals, 1, 0) == 1))
			syscall(SYS_pidfd_send_signal, s->lens.pidfd, SIGKILL, NULL, 0);
	}
}

/* Waits without the lock. 0, or -errno. */
static int wait_for(struct supervisor *s, struct pollfd *fds, size_t n, int ms)
{
	int r;

	pthread_mutex_unlock(&s->lock);
	r = poll(fds, n, ms) < 0 && errno != EINTR ? -errno : 0;
	take_lock(s);
	return r;
}

/* Until PID 1, and with it everything inside, is gone, or as good as gone. */
static void loop(struct supervisor *s)
{
	enum { PID, CTL, SIGNALS, OOM, LENS, EXEC, TERMINAL, WATCH = TERMINAL + 2, N = WATCH + 1 + CORDON_ENTER_MAX };
	struct pollfd fds[N + CORDON_OBSERVER_FDS];

	fds[PID] = (struct pollfd){ .fd = s->child->pidfd, .events = POLLIN };
	fds[CTL] = (struct pollfd){ .fd = s->child->ctl, .events = POLLIN };
	fds[SIGNALS] = (struct pollfd){ .fd = s->signals, .events = POLLIN };
	fds[OOM] = (struct pollfd){ .fd = s->child->limits.oom_fd, .events = POLLIN };
	if (!s->child->limits.n_groups)
		fds[OOM].fd = -1;
	for (;;) {
		uint64_t now = s->deadline ? now_ms() : 0;
		size_t n_more;
		int wait = !s->deadline		       ? -1
			   : s->deadline <= now	       ? 0
			   : s->deadline - now > 60000 ? 60000
						       : (int)(s->deadline - now);

		for (size_t i = 0; i < CORDON_ARRAY_SIZE(s->watches); i++)
			fds[WATCH + i] = cordon_watch_poll(s->watches[i]);
		fds[LENS] = (struct pollfd){ .fd = s->lens.pidfd, .events = POLLIN };
		fds[EXEC] = (struct pollfd){ .fd = s->child->exec_fd, .events = POLLIN };
		fds[TERMINAL] = fds[TERMINAL + 1] = (struct pollfd){ .fd = -1 };
		if (s->terminal)
			cordon_terminal_poll(s->terminal, &fds[TERMINAL]);
		n_more = s->observer->fds ? s->observer->fds(s->observer->data, fds + N) : 0;
		if (wait_for(s, fds, N + n_more, wait) < 0)
			end_tree(s);
		if (fds[CTL].revents && !on_ctl(s))
			fds[CTL].fd = -1;
		for (size_t i = 0; i < CORDON_ARRAY_SIZE(s->watches); i++)
			if (fds[WATCH + i].revents)
				on_watch(s, i, fds[WATCH + i].revents);
		if (fds[EXEC].revents)
			on_exec(s);
		serve_caller(s, fds + N, n_more);
		if (fds[SIGNALS].revents)
			on_signals(s);
		if (fds[OOM].revents)
			on_memory(s);
		if (s->terminal)
			cordon_terminal_move(s->terminal, &fds[TERMINAL]);
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

	result->exit_code = -1;
	if (s->exited && WIFEXITED(s->status))
		result->exit_code = WEXITSTATUS(s->status);
	else if (s->exited && WIFSIGNALED(s->status))
		result->signal = WTERMSIG(s->status);
	if (!result->error.code && s->no_exec) {
		bool missing = s->no_exec == ENOENT;

		cordon_fail(&result->error, -s->no_exec, missing ? CORDON_KIND_NOT_FOUND : CORDON_KIND_IO,
			    "cannot run %s: %s", s->child->plan->argv[0],
			    missing ? "no such program in the sandbox" : strerror(s->no_exec));
		result->own_exit = missing ? 127 : 126;
	} else if (!result->error.code && !s->exited && !s->killed && !s->ending) {
		cordon_fail(&result->error, -EIO, CORDON_KIND_INTERNAL, "the sandbox ended without saying why");
	}
	if (result->error.code) {
		result->state = CORDON_STATE_REFUSED;
		result->own_exit = result->own_exit ? result->own_exit : 125;
		return;
	}
	if (!s->exited && s->killed)
		result->signal = SIGKILL;
	if (s->timed_out) {
		result->state = CORDON_STATE_TIMEOUT;
		result->own_exit = 124;
	} else if (s->cancelled_by) {
		result->state = CORDON_STATE_CANCELLED;
		result->own_exit = 128 + s->cancelled_by;
	} else {
		result->state = result->exit_code == 0 ? CORDON_STATE_COMPLETED : CORDON_STATE_FAILED;
		result->own_exit = result->signal ? 128 + result->signal : result->exit_code;
	}
}

static void finish(struct supervisor *s)
{
	struct cordon_limits_hits hits = { 0 };
	int status;

	on_ctl(s); /* what was said last */
	while (waitpid(s->child->pid, &status, may_leave(s) ? WNOHANG : 0) < 0 && errno == EINTR)
		;
	if (s->child->plan->tier == CORDON_TIER_LANDLOCK)
		cordon_tier_kill_all(SIGKILL); /* no namespace does it for us */
	cordon_lens_stop(&s->lens); /* before the watch, which may just be looking at something of the lens's */
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(s->watches); i++)
		end_watch(s, i);
	if (s->terminal)
		cordon_terminal_end(s->terminal);
	free(s->terminal);
	cordon_limits_hit(&s->child->limits, &hits);
	s->result->hits.memory |= hits.memory;
	s->result->hits.pids = hits.pids;
	if (hits.pids) {
		struct cordon_event event = { .kind = CORDON_EVENT_LIMIT, .op = "pids", .count = 1 };

		emit(s, &event);
	}
	cordon_limits_remove(&s->child->limits);
	cordon_limits_done(&s->child->limits);
	cordon_closep(&s->child->ctl);
	cordon_closep(&s->child->exec_fd);
	cordon_closep(&s->child->pidfd);
	cordon_closep(&s->signals);
	sigprocmask(SIG_SETMASK, &s->old_mask, NULL);
}

void cordon_supervise(struct cordon_child *child, const struct cordon_observer *observer,
		      struct cordon_result *ret_result)
{
	struct supervisor s = { .child = child,
				.observer = observer,
				.result = ret_result,
				.signals = -1,
				.lens = CORDON_LENS_PROCESS_NONE,
				.lock = PTHREAD_MUTEX_INITIALIZER };
	uint64_t begun = now_ms();

	*ret_result = (struct cordon_result){ .started = child->started };
	pthread_mutex_lock(&s.lock);
	begin(&s);
	loop(&s);
	finish(&s);
	pthread_mutex_unlock(&s.lock);
	conclude(&s);
	clock_gettime(CLOCK_REALTIME, &ret_result->ended);
	ret_result->duration_ms = now_ms() - begun;
}

const char *cordon_state_name(cordon_run_state state)
{
	static const char *const names[] = {
		[CORDON_STATE_COMPLETED] = "completed", [CORDON_STATE_FAILED] = "failed",
		[CORDON_STATE_TIMEOUT] = "timeout",	[CORDON_STATE_CANCELLED] = "cancelled",
		[CORDON_STATE_REFUSED] = "refused",
	};

	return (unsigned int)state < CORDON_STATE__MAX ? names[state] : "refused";
}
