/* SPDX-License-Identifier: Apache-2.0 */
/* The loop itself: chooses stories, starts calls, waits, has ended calls decided, and lands results. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/signalfd.h>

#include "audit/audit.h"
#include "base/json.h"
#include "base/lock.h"
#include "base/path.h"
#include "base/text.h"
#include "base/time.h"
#include "loop/internal.h"

const char *cordon_story_state_name(cordon_story_state state)
{
	static const char *const names[] = { "waiting", "working", "checking", "accepted", "passed", "parked" };

	return names[state];
}

int64_t cordon_loop_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* ---- telling ---- */

void cordon_loop_tell(struct cordon_loop *loop, json_t *event)
{
	if (event && loop->options.observer.event)
		loop->options.observer.event(loop->options.observer.data, loop, event);
	json_decref(event);
}

int cordon_loop_say(struct cordon_loop *loop, json_t *event, bool durable, struct cordon_error *err)
{
	int r = event ? cordon_journal_add(&loop->journal, event,
					   durable ? CORDON_JOURNAL_DURABLE : CORDON_JOURNAL_SOON, err)
		      : cordon_fail_errno(err, -ENOMEM, "cannot write to the journal of the loop");

	if (r == 0)
		cordon_loop_tell(loop, json_incref(event));
	json_decref(event);
	return r;
}

json_t *cordon_loop_event(const struct cordon_loop *loop, const char *event, uint64_t n, size_t story)
{
	const struct cordon_loop_story *one = &loop->stories[story];

	return json_pack("{s:s, s:I, s:s, s:s}", "event", event, "n", (json_int_t)n, "prd",
			 loop->options.prds[one->prd].path, "story", one->story->id);
}

void cordon_loop_set(struct cordon_loop *loop, size_t story, cordon_story_state state)
{
	loop->stories[story].state = state;
	loop->stories[story].since = cordon_time_monotonic();
	/* What depends on it may begin: its view shows the result. */
	loop->prds[loop->stories[story].prd]->stories[story - loop->first[loop->stories[story].prd]].passes =
		state == CORDON_STORY_ACCEPTED || state == CORDON_STORY_PASSED;
}

size_t cordon_loop_count(const struct cordon_loop *loop)
{
	return loop->n_stories;
}

const struct cordon_loop_story *cordon_loop_story(const struct cordon_loop *loop, size_t index)
{
	return &loop->stories[index];
}

const struct cordon_loop_summary *cordon_loop_summary(const struct cordon_loop *loop)
{
	return &loop->summary;
}

const struct cordon_loop_options *cordon_loop_options(const struct cordon_loop *loop)
{
	return &loop->options;
}

const char *cordon_loop_dir(const struct cordon_loop *loop)
{
	return loop->dir;
}

int64_t cordon_loop_estimate_of(uint64_t calls_ms, size_t calls, size_t left, size_t workers)
{
	return calls && workers ? (int64_t)(calls_ms / calls * left / workers) : -1;
}

int64_t cordon_loop_estimate(const struct cordon_loop *loop)
{
	size_t left = 0;

	for (size_t i = 0; i < loop->n_stories; i++)
		left += loop->stories[i].state < CORDON_STORY_ACCEPTED;
	return cordon_loop_estimate_of(loop->calls_ms, loop->n_ended, left, loop->n_calls);
}

/* ---- choosing ---- */

static bool comes_before(const struct cordon_loop *loop, size_t a, size_t b)
{
	const struct cordon_prd_story *one = loop->stories[a].story, *other = loop->stories[b].story;

	if (one->has_priority != other->has_priority)
		return one->has_priority;
	return one->has_priority && one->priority != other->priority ? one->priority < other->priority : a < b;
}

/* The story that comes next; false when none is ready. */
static bool choose(struct cordon_loop *loop, size_t *ret_story)
{
	bool found = false;

	for (size_t p = 0; p < loop->options.n_prds; p++) {
		size_t n = cordon_prd_ready(loop->prds[p], loop->order);

		for (size_t i = 0; i < n; i++) {
			size_t story = loop->first[p] + loop->order[i];

			if (loop->stories[story].state != CORDON_STORY_WAITING)
				continue;
			if (!found || comes_before(loop, story, *ret_story))
				*ret_story = story;
			found = true;
			break;
		}
	}
	return found;
}

static struct cordon_loop_call *free_place(struct cordon_loop *loop)
{
	for (size_t i = 0; i < loop->n_calls; i++)
		if (!loop->calls[i].n)
			return &loop->calls[i];
	return NULL;
}

static int start_some(struct cordon_loop *loop, struct cordon_error *err)
{
	struct cordon_loop_call *call;
	size_t story;

	/* Before results are too many they must land, and for that all views must have ended. */
	while (!loop->stopping && loop->n_stack + loop->n_live < CORDON_LOOP_STACK_MAX && (call = free_place(loop)) &&
	       choose(loop, &story)) {
		struct cordon_error why = { 0 };
		int r;

		if (loop->summary.iterations >= loop->options.max_iterations) {
			loop->summary.out_of_iterations = true;
			break;
		}
		if (cordon_crew_count(loop->crew) + 2 > CORDON_CREW_JOBS_MAX)
			return cordon_fail(err, -E2BIG, CORDON_KIND_LIMIT, "the loop made %d calls; start it again",
					   CORDON_CREW_JOBS_MAX);
		r = cordon_loop_hooks(loop, CORDON_HOOK_STORY, story, NULL, &why);
		if (r > 0) {
			cordon_loop_note(loop, story, loop->stories[story].calls + 1, why.message);
			r = cordon_loop_park(loop, story, 0, err);
			if (r < 0)
				return r;
			continue;
		}
		if (r == 0)
			r = cordon_loop_call_start(loop, call, story, &why);
		if (r == 0)
			continue;
		/* The sandbox could not be built: the same would happen to the next story. */
		cordon_loop_call_done(loop, call);
		cordon_loop_set(loop, story, CORDON_STORY_WAITING);
		if (err)
			*err = why;
		return r;
	}
	return 0;
}

/* ---- reports of the crew ---- */

static struct cordon_loop_call *call_of(struct cordon_loop *loop, size_t job)
{
	for (size_t i = 0; i < loop->n_calls; i++)
		if (loop->calls[i].n && loop->calls[i].job == job)
			return &loop->calls[i];
	return NULL;
}

static void on_state(void *data, const struct cordon_job *job)
{
	struct cordon_loop *loop = data;
	struct cordon_loop_call *call = call_of(loop, job->index);

	if (!call)
		return;
	if (job->state == CORDON_JOB_RUNNING && call->mark_us) {
		call->own_us += (uint64_t)(cordon_loop_us() - call->mark_us);
		call->mark_us = 0;
	}
	if (!cordon_job_state_ended(job->state))
		return;
	call->how = *job;
	call->ended = true;
	if (!call->mark_us)
		call->mark_us = cordon_loop_us();
}

static void on_event(void *data, size_t index, const struct cordon_event *event)
{
	struct cordon_loop *loop = data;
	struct cordon_loop_call *call = call_of(loop, index);

	if (!call || call->checking)
		return;
	if (event->kind == CORDON_EVENT_VIOLATION && loop->options.observer.violation)
		loop->options.observer.violation(loop->options.observer.data, loop, call->story, event);
}

static void on_output(void *data, size_t index, int stream, const char *bytes, size_t n)
{
	struct cordon_loop *loop = data;
	struct cordon_loop_call *call = call_of(loop, index);

	if (!call)
		return;
	cordon_loop_last_line(bytes, n, loop->stories[call->story].last);
	if (loop->options.observer.output)
		loop->options.observer.output(loop->options.observer.data, loop, call->story, stream, bytes, n);
	if (!call->checking) {
		cordon_loop_logs_add(&call->logs, stream, bytes, n);
		return;
	}
	/* The end of what the check says tells most. */
	if (call->check_output.len + n > CORDON_LOOP_NOTE_MAX) {
		size_t drop = call->check_output.len + n - CORDON_LOOP_NOTE_MAX;

		drop = drop < call->check_output.len ? drop : call->check_output.len;
		memmove(call->check_output.data, call->check_output.data + drop, call->check_output.len - drop);
		call->check_output.len -= drop;
		if (n > CORDON_LOOP_NOTE_MAX - call->check_output.len) {
			bytes += n - (CORDON_LOOP_NOTE_MAX - call->check_output.len);
			n = CORDON_LOOP_NOTE_MAX - call->check_output.len;
		}
	}
	(void)cordon_buf_add(&call->check_output, bytes, n);
}

/* ---- working ---- */

static int decide_ended(struct cordon_loop *loop, struct cordon_error *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < loop->n_calls; i++) {
		struct cordon_loop_call *call = &loop->calls[i];

		if (!call->n || !call->ended)
			continue;
		call->ended = false;
		r = cordon_loop_decide(loop, call, err);
		if (r < 0)
			cordon_loop_call_done(loop, call);
	}
	return r;
}

static void take_signals(struct cordon_loop *loop, int fd)
{
	struct signalfd_siginfo info;

	while (read(fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (loop->summary.signal)
			cordon_crew_kill(loop->crew, CORDON_CREW_ALL);
		else
			cordon_crew_cancel(loop->crew, CORDON_CREW_ALL);
		if (!loop->summary.signal)
			loop->summary.signal = (int)info.ssi_signo;
		loop->stopping = true;
	}
}

/* Somebody without a terminal asks for the end with a file (control.h). */
static bool is_asked_to_stop(const struct cordon_loop *loop)
{
	return faccessat(loop->dir_fd, CORDON_LOOP_STOP, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static void wait_for_more(struct cordon_loop *loop, int signals)
{
	struct pollfd fds[] = { { .fd = cordon_crew_fd(loop->crew), .events = POLLIN },
				{ .fd = signals, .events = POLLIN } };
	bool asked;

	(void)poll(fds, CORDON_ARRAY_SIZE(fds), CORDON_CREW_TICK_MS);
	take_signals(loop, signals);
	cordon_crew_serve(loop->crew);
	asked = loop->options.observer.tick && loop->options.observer.tick(loop->options.observer.data, loop);
	if (!loop->stopping && (asked || is_asked_to_stop(loop))) {
		loop->stopping = true;
		loop->summary.signal = SIGTERM;
		cordon_crew_cancel(loop->crew, CORDON_CREW_ALL);
	}
}

static int turns(struct cordon_loop *loop, int signals, struct cordon_error *err)
{
	int r = 0;

	while (r == 0) {
		r = decide_ended(loop, err);
		/* One may have come while a person was asked: then no story begins any more. */
		take_signals(loop, signals);
		if (r == 0 && !loop->n_live && loop->n_stack)
			r = cordon_loop_land(loop, err);
		if (r == 0) /* when nothing is left to be done, a request decides whether the loop ends */
			r = cordon_loop_take_requests(loop, !loop->n_live, err);
		if (r == 0)
			r = start_some(loop, err);
		if (r < 0 || (!loop->n_live && !loop->n_stack))
			break;
		if (loop->n_live)
			wait_for_more(loop, signals);
	}
	return r;
}

/* After an error the agents that still run end, so that nobody works for nothing. */
static void end_calls(struct cordon_loop *loop, int signals)
{
	loop->stopping = true;
	cordon_crew_cancel(loop->crew, CORDON_CREW_ALL);
	while (loop->n_live) {
		wait_for_more(loop, signals);
		for (size_t i = 0; i < loop->n_calls; i++)
			if (loop->calls[i].n && loop->calls[i].ended)
				cordon_loop_call_done(loop, &loop->calls[i]);
	}
}

static void sum_up(struct cordon_loop *loop)
{
	struct cordon_loop_summary *summary = &loop->summary;

	summary->passed = summary->parked = summary->waiting = 0;
	for (size_t i = 0; i < loop->n_stories; i++) {
		summary->passed += loop->stories[i].state == CORDON_STORY_PASSED;
		summary->parked += loop->stories[i].state == CORDON_STORY_PARKED;
	}
	summary->waiting = loop->n_stories - summary->passed - summary->parked;
	summary->duration_ms = cordon_time_monotonic() - loop->began;
}

/* Nothing can be done any more, whoever calls: the next loop begins anew. */
static int finish(struct cordon_loop *loop, struct cordon_error *err)
{
	size_t story;

	if (loop->summary.signal || loop->summary.out_of_iterations || choose(loop, &story))
		return 0;
	return cordon_loop_say(loop, json_pack("{s:s}", "event", "done"), false, err);
}

int cordon_loop_work(struct cordon_loop *loop, struct cordon_loop_summary *ret_summary, struct cordon_error *err)
{
	sigset_t caught, before;
	autofd int signals = -1;
	int r;

	sigemptyset(&caught);
	sigaddset(&caught, SIGINT);
	sigaddset(&caught, SIGTERM);
	sigaddset(&caught, SIGHUP);
	sigprocmask(SIG_BLOCK, &caught, &before);
	signals = signalfd(-1, &caught, SFD_NONBLOCK | SFD_CLOEXEC);
	r = signals < 0 ? cordon_fail_errno(err, -errno, "signalfd") : turns(loop, signals, err);
	if (r < 0 && signals >= 0)
		end_calls(loop, signals);
	if (r == 0)
		r = finish(loop, err);
	sigprocmask(SIG_SETMASK, &before, NULL);
	sum_up(loop);
	*ret_summary = loop->summary;
	return r;
}

/* ---- opening and closing ---- */

/* From here on others see that the loop runs, and may stop it. Only who looks at it has the lock now, for an instant.
 * What an earlier loop failed with is no news any more. */
static int show(const struct cordon_loop *loop, struct cordon_error *err)
{
	int failures = openat(loop->dir_fd, CORDON_LOOP_FAILURES, O_WRONLY | O_TRUNC | O_NOFOLLOW | O_CLOEXEC);
	int r;

	cordon_closep(&failures);
	r = cordon_lock(loop->journal.fd, LOCK_EX);
	if (r == 0 && unlinkat(loop->dir_fd, CORDON_LOOP_STOP, 0) < 0 && errno != ENOENT)
		r = -errno;
	return r < 0 ? cordon_fail_errno(err, r, "cannot begin the loop") : 0;
}

static json_t *begin_event(const struct cordon_loop *loop)
{
	json_t *prds = json_array();
	char boot[CORDON_LOOP_BOOT_SIZE];

	for (size_t i = 0; i < loop->options.n_prds; i++)
		json_array_append_new(prds, json_string(loop->options.prds[i].path));
	return json_pack("{s:s, s:s, s:s, s:s, s:I, s:I, s:b, s:s, s:I, s:o, s:o}", "event", "begin", "boot",
			 cordon_loop_boot(boot), "base", loop->git.base, "crew", cordon_crew_id(loop->crew), "stories",
			 (json_int_t)loop->n_stories, "workers", (json_int_t)loop->n_calls, "resumed",
			 (int)(loop->n > 0), "loop", loop->key, "pid", (json_int_t)getpid(), "root",
			 cordon_audit_text(loop->root.path), "prds", prds);
}

static int begin(struct cordon_loop *loop, struct cordon_error *err)
{
	struct cordon_crew_options options = {
		.max_concurrent = loop->options.workers,
		.repeatable = true,
		.observer = { .data = loop, .state = on_state, .event = on_event, .output = on_output }
	};
	autoprogress struct cordon_loop_progress progress = { 0 };
	json_auto_t *events = NULL;
	char label[CORDON_CREW_LABEL_MAX + 1];
	int r = cordon_journal_open(loop->dir_fd, &loop->journal, &events, err);

	if (r == 0)
		r = cordon_loop_progress_read(events, &progress, err);
	if (r < 0)
		return r;
	/* Who asks for one story after the end of a loop wants that one, and not all that were parked. */
	if (progress.done && !cordon_loop_has_requests(loop->dir_fd)) {
		cordon_loop_logs_clear(loop->dir_fd);
		(void)unlinkat(loop->dir_fd, "results", 0);
		r = cordon_journal_clear(&loop->journal, err);
	} else {
		r = cordon_loop_state_resume(loop, &progress, err);
	}
	snprintf(label, sizeof(label), "loop %.200s", loop->root.path);
	options.label = cordon_text_safe(label, strlen(label)) ? label : "loop";
	if (r == 0)
		r = cordon_crew_new(&options, &loop->crew, err);
	if (r == 0)
		r = cordon_loop_git_open(loop, err);
	if (r == 0)
		r = show(loop, err);
	if (r == 0)
		r = cordon_loop_say(loop, begin_event(loop), false, err);
	if (r == 0)
		r = cordon_loop_take_requests(loop, true, err);
	if (r == 0 && loop->n_stack)
		r = cordon_loop_land(loop, err);
	return r;
}

/* The hooks of the start may refuse it all. */
static int ask_hooks(const struct cordon_loop *loop, struct cordon_error *err)
{
	int r = 0;

	for (size_t p = 0; r == 0 && p < loop->options.n_prds; p++)
		if (loop->first[p] < loop->first[p + 1])
			r = cordon_loop_hooks(loop, CORDON_HOOK_START, loop->first[p], NULL, err);
	return r > 0 ? -EPERM : r;
}

int cordon_loop_open(const struct cordon_home *home, const struct cordon_loop_options *options,
		     struct cordon_loop **ret_loop, struct cordon_errors *errors)
{
	struct cordon_loop *loop = calloc(1, sizeof(*loop));
	struct cordon_error err = { 0 };
	int r;

	if (!loop) {
		cordon_fail_errno(&err, -ENOMEM, "the loop");
		return cordon_errors_add(errors, &err, NULL, 0, 0);
	}
	loop->home = home;
	loop->options = *options;
	loop->dir_fd = -1;
	loop->root.fd = -1;
	loop->journal.fd = -1;
	loop->began = cordon_time_monotonic();
	loop->git = (struct cordon_loop_git)CORDON_LOOP_GIT_NONE;
	for (size_t i = 0; i < CORDON_LOOP_PRDS_MAX; i++)
		loop->prd_locks[i] = -1;
	r = cordon_loop_state_open(loop, errors);
	if (r == 0) {
		r = ask_hooks(loop, &err);
		if (r == 0)
			r = begin(loop, &err);
		if (r < 0)
			cordon_errors_add(errors, &err, NULL, 0, 0);
	}
	if (r < 0) {
		cordon_loop_close(loop);
		return r;
	}
	*ret_loop = loop;
	return 0;
}

struct cordon_loop *cordon_loop_close(struct cordon_loop *loop)
{
	if (!loop)
		return NULL;
	for (size_t i = 0; i < loop->n_calls; i++)
		cordon_loop_call_done(loop, &loop->calls[i]);
	cordon_crew_free(loop->crew);
	if (*loop->git.base && !loop->n_stack)
		cordon_loop_remove_view(loop, loop->git.base);
	cordon_loop_git_close(&loop->git);
	cordon_loop_state_close(loop);
	free(loop);
	return NULL;
}
