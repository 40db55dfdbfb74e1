/* SPDX-License-Identifier: Apache-2.0 */
/* Decides what becomes of a call whose agent or check has ended: it failed, is checked, or is accepted. */
#include <fcntl.h>
#include <stdio.h>

#include "base/io.h"
#include "base/text.h"
#include "base/time.h"
#include "loop/internal.h"
#include "view/show.h"

#define TAIL_MAX 1024 /* bytes of the agent's output in a note */

/* ---- failures ---- */

static void publish_logs(struct cordon_loop *loop, const struct cordon_loop_call *call)
{
	struct cordon_error err = { 0 };

	if (loop->options.log_dir && cordon_loop_logs_publish(&call->logs, loop->options.log_dir, &err) < 0)
		cordon_loop_tell(loop, json_pack("{s:s, s:s}", "event", "notice", "message", err.message));
}

int cordon_loop_park(struct cordon_loop *loop, size_t story, uint64_t n, struct cordon_error *err)
{
	json_t *event = cordon_loop_event(loop, "parked", n, story);

	json_object_set_new(event, "reason",
			    json_string(loop->stories[story].reason ? loop->stories[story].reason : "it failed"));
	cordon_loop_set(loop, story, CORDON_STORY_PARKED);
	return cordon_loop_say(loop, event, false, err);
}

int cordon_loop_fail(struct cordon_loop *loop, struct cordon_loop_call *call, bool counts, const char *note,
		     struct cordon_error *err)
{
	autobuf struct cordon_buf safe = CORDON_BUF(4 * CORDON_LOOP_NOTE_MAX);
	size_t story = call->story;
	uint64_t n = call->n;
	json_t *event = cordon_loop_event(loop, "failed", call->n, story);
	int r;

	if (cordon_text_escape_lines(&safe, note, strlen(note)) < 0)
		cordon_buf_reset(&safe);
	if (safe.data && safe.len > CORDON_LOOP_NOTE_MAX)
		safe.data[safe.len = CORDON_LOOP_NOTE_MAX] = '\0';
	while (safe.data && safe.len && !cordon_utf8_valid(safe.data, safe.len))
		safe.data[--safe.len] = '\0';
	cordon_loop_note(loop, story, call->attempt, safe.data ? safe.data : "");
	json_object_set_new(event, "counts", json_boolean(counts));
	json_object_set_new(event, "note", json_string(safe.data ? safe.data : ""));
	json_object_set_new(event, "result", cordon_loop_result(loop, call, false, loop->stories[story].reason));
	publish_logs(loop, call);
	loop->stories[story].failures += counts;
	cordon_loop_set(loop, story, CORDON_STORY_WAITING);
	r = cordon_loop_say(loop, event, false, err);
	cordon_loop_call_done(loop, call);
	if (r == 0 && loop->stories[story].failures >= CORDON_LOOP_ATTEMPTS)
		r = cordon_loop_park(loop, story, n, err);
	return r;
}

/* The end of what the agent wrote. */
static void add_tail(const struct cordon_loop_call *call, struct cordon_buf *text)
{
	autofd int fd = openat(call->logs.dir_fd, "combined.log", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	char bytes[TAIL_MAX];
	off_t size = fd < 0 ? 0 : lseek(fd, 0, SEEK_END);
	ssize_t n = size > 0 ? pread(fd, bytes, sizeof(bytes), size > TAIL_MAX ? size - TAIL_MAX : 0) : 0;

	if (n > 0) {
		(void)cordon_buf_adds(text, "\n\nThe end of its output:\n\n");
		(void)cordon_text_mark_lines(text, CORDON_AGENT_MARK, bytes, (size_t)n);
	}
}

static int fail_agent(struct cordon_loop *loop, struct cordon_loop_call *call, struct cordon_error *err)
{
	autobuf struct cordon_buf note = CORDON_BUF(16 * TAIL_MAX);
	const struct cordon_job *job = &call->how;

	if (job->state == CORDON_JOB_TIMEOUT)
		(void)cordon_buf_addf(&note, "The agent did not end within %llu s.",
				      (unsigned long long)loop->options.spec.timeout_ms / 1000);
	else if (*job->message)
		(void)cordon_buf_addf(&note, "The agent could not run: %s.", job->message);
	else if (job->signal)
		(void)cordon_buf_addf(&note, "The agent was ended by signal %d.", job->signal);
	else if (job->exit_code == 0)
		(void)cordon_buf_addf(&note, "The agent was refused or warned of %u accesses, which fails the story.",
				      job->violations);
	else
		(void)cordon_buf_addf(&note, "The agent ended with exit code %d.", job->exit_code);
	add_tail(call, &note);
	return cordon_loop_fail(loop, call, true, note.data ? note.data : "", err);
}

/* Somebody stopped the loop: the view stays, and its name is told. */
static int interrupt(struct cordon_loop *loop, struct cordon_loop_call *call, struct cordon_error *err)
{
	struct cordon_loop_summary *summary = &loop->summary;
	json_t *event = cordon_loop_event(loop, "interrupted", call->n, call->story);
	bool removed = true;
	char id[CORDON_RUN_ID_SIZE] = "";
	size_t story = call->story;

	if (call->view.dir_fd >= 0) {
		memcpy(id, call->view.record.id, sizeof(id));
		if (call->view.record.state == CORDON_VIEW_LIVE)
			(void)cordon_view_end(loop->home, &call->view, call->agent_job.run_id, false, &removed, NULL);
		else
			removed = false;
		cordon_view_close(&call->view);
	}
	if (!removed && summary->n_kept < CORDON_ARRAY_SIZE(summary->kept))
		memcpy(summary->kept[summary->n_kept++], id, sizeof(id));
	json_object_set_new(event, "view", json_string(removed ? "" : id));
	publish_logs(loop, call);
	cordon_loop_call_done(loop, call);
	cordon_loop_set(loop, story, CORDON_STORY_WAITING);
	return cordon_loop_say(loop, event, false, err);
}

/* ---- accepting ---- */

/* 1: take the result over; 0: do not; -EINTR: a signal came instead of an answer. */
static int confirm(struct cordon_loop *loop, struct cordon_loop_call *call, struct cordon_error *err)
{
	json_auto_t *changes = NULL;
	int r;

	(void)err;
	if (!loop->options.confirm)
		return 1;
	if (call->view.dir_fd >= 0)
		changes = cordon_changes_json(&call->changed, NULL, 0, true, 0);
	r = loop->options.observer.confirm
		    ? loop->options.observer.confirm(loop->options.observer.data, loop, call->story, changes)
		    : -ENOTTY;
	return r < 0 && r != -EINTR ? 0 : r;
}

/* The person said no: the view stays for them, and the story is not tried again. */
static int decline(struct cordon_loop *loop, struct cordon_loop_call *call, struct cordon_error *err)
{
	struct cordon_loop_summary *summary = &loop->summary;
	char id[CORDON_RUN_ID_SIZE] = "";
	size_t story = call->story;
	uint64_t n = call->n;
	int r;

	if (call->view.dir_fd >= 0) {
		memcpy(id, call->view.record.id, sizeof(id));
		cordon_view_close(&call->view);
		if (summary->n_kept < CORDON_ARRAY_SIZE(summary->kept))
			memcpy(summary->kept[summary->n_kept++], id, sizeof(id));
	}
	summary->unconfirmed = true;
	r = cordon_loop_fail(loop, call, false, "The result was not confirmed.", err);
	return r < 0 ? r : cordon_loop_park(loop, story, n, err);
}

static int conflict(struct cordon_loop *loop, struct cordon_loop_call *call, const struct cordon_loop_accepted *other,
		    const char *path, struct cordon_error *err)
{
	char note[CORDON_PATH_MAX + 512];

	loop->summary.conflicts++;
	snprintf(note, sizeof(note),
		 "The result conflicts with story %s, which was accepted meanwhile: both changed %s. The repository has that "
		 "change now; begin from there.",
		 loop->stories[other->story].story->id, path);
	return cordon_loop_fail(loop, call, false, note, err);
}

static bool has_changes(const struct cordon_loop_call *call)
{
	return call->view.dir_fd >= 0 && call->result.n > 0;
}

static int accept(struct cordon_loop *loop, struct cordon_loop_call *call, struct cordon_error *err)
{
	char view[CORDON_RUN_ID_SIZE] = "";
	json_auto_t *result = NULL;
	size_t story = call->story;
	uint64_t n = call->n;
	json_t *event;
	int r;

	for (size_t i = call->n_stack; i < loop->n_stack; i++) {
		const char *path = cordon_layer_conflict(&loop->stack[i].layer, &call->result);

		if (path)
			return conflict(loop, call, &loop->stack[i], path, err);
	}
	r = cordon_loop_hooks(loop, CORDON_HOOK_APPLY, story, &call->changed, err);
	if (r != 0)
		return r < 0 ? r : cordon_loop_fail(loop, call, true, err->message, err);
	r = confirm(loop, call, err);
	if (r == -EINTR)
		return interrupt(loop, call, err);
	if (r <= 0)
		return r < 0 ? r : decline(loop, call, err);
	if (has_changes(call)) {
		memcpy(view, call->view.record.id, sizeof(view));
		cordon_view_close(&call->view);
	}
	result = cordon_loop_result(loop, call, true, NULL);
	event = cordon_loop_event(loop, "accepted", n, story);
	json_object_set_new(event, "view", json_string(view));
	json_object_set(event, "result", result);
	r = cordon_loop_say(loop, event, true, err);
	publish_logs(loop, call);
	cordon_loop_call_done(loop, call);
	if (r < 0)
		return r;
	cordon_loop_set(loop, story, CORDON_STORY_ACCEPTED);
	return cordon_loop_push(loop, n, story, view, "", json_incref(result), err);
}

/* ---- deciding ---- */

/* Records the end of the agent's view: from here on nobody changes it. */
static int end_view(struct cordon_loop *loop, struct cordon_loop_call *call, struct cordon_error *err)
{
	bool removed;

	return call->view.dir_fd < 0 || call->view.record.state != CORDON_VIEW_LIVE
		       ? 0
		       : cordon_view_end(loop->home, &call->view, call->how.run_id, true, &removed, err);
}

static uint64_t took(const struct cordon_job *job)
{
	return job->started && job->ended > job->started ? (uint64_t)(job->ended - job->started) : 0;
}

static int decide_agent(struct cordon_loop *loop, struct cordon_loop_call *call, struct cordon_error *err)
{
	const struct cordon_job *job = &call->how;
	autofree char *why = NULL;
	int r;

	call->agent_job = *job;
	loop->summary.agents_ms += took(job);
	loop->calls_ms += took(job);
	loop->n_ended++;
	loop->summary.violations += job->violations;
	loop->stories[call->story].violations += job->violations;
	if (job->state == CORDON_JOB_CANCELLED || job->state == CORDON_JOB_QUEUED)
		return interrupt(loop, call, err);
	if (job->state == CORDON_JOB_LOST)
		return cordon_loop_fail(loop, call, false, "The process that watched the agent was killed.", err);
	if (job->state == CORDON_JOB_REFUSED)
		return cordon_fail(err, -EPERM, job->kind, "%s",
				   *job->message ? job->message : "the agent could not run");
	r = end_view(loop, call, err);
	if (r < 0)
		return r;
	if (job->state != CORDON_JOB_COMPLETED)
		return fail_agent(loop, call, err);
	if (call->view.dir_fd >= 0)
		r = cordon_loop_judge(loop, call, &why, err);
	if (r < 0)
		return r;
	if (why)
		return cordon_loop_fail(loop, call, true, why, err);
	return loop->options.verify ? cordon_loop_check(loop, call, err) : accept(loop, call, err);
}

static int decide_check(struct cordon_loop *loop, struct cordon_loop_call *call, struct cordon_error *err)
{
	autobuf struct cordon_buf note = CORDON_BUF(8 * CORDON_LOOP_NOTE_MAX);
	const struct cordon_job *job = &call->how;

	loop->summary.checks_ms += took(job);
	if (job->state == CORDON_JOB_CANCELLED || job->state == CORDON_JOB_QUEUED)
		return interrupt(loop, call, err);
	if (job->state == CORDON_JOB_LOST)
		return cordon_loop_fail(loop, call, false, "The process that watched the check was killed.", err);
	if (job->state == CORDON_JOB_REFUSED)
		return cordon_fail(err, -EPERM, job->kind, "the check: %s",
				   *job->message ? job->message : "it could not run");
	if (job->state == CORDON_JOB_COMPLETED)
		return accept(loop, call, err);
	if (job->state == CORDON_JOB_TIMEOUT)
		(void)cordon_buf_adds(&note, "The check of the result did not end in time.");
	else if (job->signal)
		(void)cordon_buf_addf(&note, "The check of the result was ended by signal %d.", job->signal);
	else
		(void)cordon_buf_addf(&note, "The check of the result ended with exit code %d.", job->exit_code);
	if (call->check_output.len) {
		(void)cordon_buf_adds(&note, "\n\nThe end of its output:\n\n");
		(void)cordon_text_mark_lines(&note, CORDON_AGENT_MARK, call->check_output.data, call->check_output.len);
	}
	return cordon_loop_fail(loop, call, true, note.data ? note.data : "", err);
}

int cordon_loop_decide(struct cordon_loop *loop, struct cordon_loop_call *call, struct cordon_error *err)
{
	return call->checking ? decide_check(loop, call, err) : decide_agent(loop, call, err);
}
