/* SPDX-License-Identifier: Apache-2.0 */
/* What anybody may ask of a run: to go on, to end, to hear an answer; and what a revoked grant means for running steps. */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>

#include "base/io.h"
#include "base/lock.h"
#include "base/text.h"
#include "flow/internal.h"
#include "flow/step.h"
#include "job/crew.h"

#define WAIT_POLL_MS 250
#define LOCK_POLL_MS 10
#define LOCK_TRIES 500
#define KEPT_SIZE (2 * CORDON_SETTINGS_ID_MAX + 2)

/* A run with its lock, for whoever continues it. */
struct held {
	struct cordon_flow_run run;
	int lock;
	struct cordon_flow_standing standing;
	struct cordon_journal journal;
};

/* clang-format off */
#define HELD_NONE { .run = CORDON_FLOW_RUN_NONE, .lock = -1, .journal = CORDON_JOURNAL_NONE }
/* clang-format on */

static void held_done(struct held *held)
{
	cordon_journal_done(&held->journal);
	cordon_flow_standing_done(&held->standing);
	cordon_closep(&held->lock);
	cordon_flow_run_done(&held->run);
}

static int hold(const struct cordon_home *home, const char *id, struct held *held, struct cordon_error *err)
{
	int r;

	*held = (struct held)HELD_NONE;
	r = cordon_flow_run_open(home, id, &held->run, err);
	if (r == 0)
		r = cordon_flow_run_lock(&held->run, &held->lock, err);
	return r < 0 ? r : cordon_flow_standing(&held->run, &held->standing, err);
}

static int refuse_ended(const struct cordon_flow_run *run, const struct cordon_flow_progress *progress,
			struct cordon_error *err)
{
	return cordon_fail(err, -EALREADY, CORDON_KIND_CONFLICT, "the run %s has ended: %s", run->id,
			   cordon_flow_state_name(progress->state));
}

int cordon_flow_resume(const struct cordon_home *home, const char *id, struct cordon_error *err)
{
	CORDON_CLEANUP(held_done) struct held held = HELD_NONE;
	int r = hold(home, id, &held, err);

	if (r < 0)
		return r;
	if (cordon_flow_state_ended(held.standing.progress.state))
		return refuse_ended(&held.run, &held.standing.progress, err);
	if (held.standing.progress.state == CORDON_FLOW_WAITING) {
		cordon_fail(err, -EAGAIN, CORDON_KIND_CONFLICT, "the run %s waits for a person", held.run.id);
		cordon_error_hint(err, "answer with 'cordon workflow approve %s' or 'reject'", held.run.id);
		return -EAGAIN;
	}
	return cordon_flow_spawn(held.run.id, held.lock, err);
}

static int read_state(const struct cordon_flow_run *run, cordon_flow_state *ret_state, struct cordon_error *err)
{
	autostanding struct cordon_flow_standing standing = { 0 };
	int r = cordon_flow_standing(run, &standing, err);

	if (r == 0)
		*ret_state = standing.progress.state;
	return r;
}

static bool waits(const struct cordon_flow_run *run)
{
	cordon_flow_state state;

	return read_state(run, &state, NULL) == 0 && state == CORDON_FLOW_WAITING;
}

/* Whoever answers must have seen what waits now. */
static int check_shown(const struct held *held, const struct cordon_flow_reply *reply, struct cordon_error *err)
{
	const struct cordon_flow_progress *progress = &held->standing.progress;

	if (progress->state != CORDON_FLOW_WAITING)
		return cordon_fail(err, -EALREADY, CORDON_KIND_CONFLICT, "the run %s does not wait for an answer: %s",
				   held->run.id, cordon_flow_state_name(progress->state));
	if (cordon_streq(reply->step, held->run.workflow->steps[progress->at].id) &&
	    reply->attempt == progress->steps[progress->at].attempt)
		return 0;
	return cordon_fail(err, -ESTALE, CORDON_KIND_CONFLICT,
			   "the run %s has gone on since: now step %s waits for an answer, attempt %llu", held->run.id,
			   held->run.workflow->steps[progress->at].id,
			   (unsigned long long)progress->steps[progress->at].attempt);
}

int cordon_flow_answer(const struct cordon_home *home, const char *id, const struct cordon_flow_reply *reply,
		       struct cordon_error *err)
{
	CORDON_CLEANUP(held_done) struct held held = HELD_NONE;
	json_auto_t *event = NULL;
	const char *note = reply->note;
	size_t n = note ? strlen(note) : 0;
	int r;

	if (n > CORDON_FLOW_NOTE_MAX || (note && !cordon_utf8_valid(note, n)))
		return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "a note is text in UTF-8 of at most %d bytes",
				   CORDON_FLOW_NOTE_MAX);
	/* An engine that has just said that the run waits has its lock for another moment. */
	for (int tries = 0; (r = hold(home, id, &held, err)) == -EBUSY && waits(&held.run) && tries < LOCK_TRIES;
	     tries++) {
		held_done(&held);
		(void)poll(NULL, 0, LOCK_POLL_MS);
	}
	if (r == 0)
		r = check_shown(&held, reply, err);
	if (r < 0)
		return r;
	event = json_pack("{s:s, s:s, s:{s:s, s:s}, s:I}", "event", "answer", "step",
			  held.run.workflow->steps[held.standing.progress.at].id, "outputs", "decision",
			  reply->approve ? "approve" : "reject", "feedback", note ? note : "", "uid",
			  (json_int_t)getuid());
	r = event ? cordon_journal_open(held.run.fd, &held.journal, NULL, err)
		  : cordon_fail_errno(err, -ENOMEM, "cannot record the answer");
	if (r == 0)
		r = cordon_journal_add(&held.journal, event, CORDON_JOURNAL_BULKY, err);
	return r < 0 ? r : cordon_flow_spawn(held.run.id, held.lock, err);
}

/* ---- ends ---- */

static int request(const struct cordon_flow_run *run, const char *name, const char *text, struct cordon_error *err)
{
	int r = cordon_write_file(run->fd, name, 0600, text, strlen(text), err);

	return r < 0 ? cordon_error_prefix(err, r, "cannot ask the run %s to end", run->id) : 0;
}

/* Without an engine the run ends here and now. */
static int end_dead(const struct cordon_home *home, const char *id, struct cordon_error *err)
{
	CORDON_CLEANUP(held_done) struct held held = HELD_NONE;
	CORDON_CLEANUP(cordon_flow_stage_done) struct cordon_flow_stage stage = CORDON_FLOW_STAGE_NONE;
	json_auto_t *event = json_pack("{s:s, s:s, s:s}", "event", "done", "state", "canceled", "reason", "canceled");
	int r = hold(home, id, &held, err);

	if (r < 0 || cordon_flow_state_ended(held.standing.progress.state))
		return r;
	if (cordon_flow_settle(home, &held.run, &held.standing.progress, held.standing.events, &stage, NULL) == 0)
		cordon_flow_stage_remove(&stage);
	cordon_step_spec_forget(home, held.run.id);
	r = cordon_journal_open(held.run.fd, &held.journal, NULL, err);
	return r < 0 ? r : cordon_journal_add(&held.journal, event, CORDON_JOURNAL_DURABLE, err);
}

int cordon_flow_cancel(const struct cordon_home *home, const char *id, struct cordon_error *err)
{
	autoflow struct cordon_flow_run run = CORDON_FLOW_RUN_NONE;
	autostanding struct cordon_flow_standing standing = { 0 };
	const struct cordon_flow_progress *progress = &standing.progress;
	int r = cordon_flow_run_open(home, id, &run, err);

	if (r == 0)
		r = cordon_flow_standing(&run, &standing, err);
	if (r < 0 || progress->state == CORDON_FLOW_CANCELED)
		return r;
	if (cordon_flow_state_ended(progress->state))
		return refuse_ended(&run, progress, err);
	r = request(&run, CORDON_FLOW_CANCEL, "", err);
	if (r == 0 && progress->crew)
		(void)cordon_crew_cancel_by_name(home, progress->crew, NULL, NULL);
	/* The engine may end between the two looks: then it has seen the request, or nobody does and we end it. */
	if (r == 0 && !cordon_flow_engine(&run))
		r = end_dead(home, run.id, err);
	return r == -EBUSY ? 0 : r; /* an engine has just begun; it sees the request first */
}

/* ---- waiting ---- */

/* Returns when no engine has the lock. */
static int wait_for_engine(const struct cordon_flow_run *run, struct cordon_error *err)
{
	autofd int fd = openat(run->fd, "lock", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	int r = fd < 0 ? -errno : cordon_lock(fd, LOCK_SH);

	return r < 0 ? cordon_fail_errno(err, r, "cannot wait for the run %s", run->id) : 0;
}

int cordon_flow_wait(const struct cordon_home *home, const char *id, bool (*pause)(void *data), void *data,
		     struct cordon_error *err)
{
	autoflow struct cordon_flow_run run = CORDON_FLOW_RUN_NONE;
	cordon_flow_state state = CORDON_FLOW_QUEUED;
	int r = cordon_flow_run_open(home, id, &run, err);

	while (r == 0) {
		r = wait_for_engine(&run, err);
		if (r == 0)
			r = read_state(&run, &state, err);
		if (r < 0 || cordon_flow_state_ended(state))
			break;
		if (state != CORDON_FLOW_WAITING && !cordon_flow_engine(&run)) {
			cordon_fail(err, -EPIPE, CORDON_KIND_INTERNAL, "the engine of the run %s was ended", run.id);
			cordon_error_hint(err, "'cordon workflow resume %s' continues it", run.id);
			return -EPIPE;
		}
		if (pause && pause(data))
			break;
		(void)poll(NULL, 0, WAIT_POLL_MS);
	}
	return r;
}

/* ---- revoked grants ---- */

struct ending {
	const struct cordon_home *home;
	const char *orchestrator, *area;
	bool keep;
	json_t *ended;
	struct cordon_error *err;
};

static bool holds(const json_t *areas, const char *area)
{
	const json_t *name;
	size_t i, n = area ? strlen(area) : 0;

	if (!area)
		return json_array_size(areas) > 0;
	json_array_foreach(areas, i, name)
		if (strncmp(json_string_value(name), area, n) == 0 &&
		    (!json_string_value(name)[n] || json_string_value(name)[n] == ':'))
			return true;
	return false;
}

static int end_holder(void *data, struct cordon_flow_run *run)
{
	struct ending *ending = data;
	autostanding struct cordon_flow_standing standing = { 0 };
	const struct cordon_flow_progress *progress = &standing.progress;
	int r = 0;

	if (!cordon_streq(run->orchestrator, ending->orchestrator) || !cordon_flow_engine(run) ||
	    cordon_flow_standing(run, &standing, NULL) < 0 || !progress->open || !holds(progress->areas, ending->area))
		return 0;
	json_array_append_new(ending->ended, json_pack("{s:s, s:s, s:I}", "run_id", run->id, "step",
						       run->workflow->steps[progress->at].id, "attempt",
						       (json_int_t)progress->steps[progress->at].attempt));
	if (ending->keep)
		return 0;
	r = request(run, CORDON_FLOW_REVOKED, ending->area ? ending->area : "", ending->err);
	if (r == 0 && progress->crew && progress->job)
		(void)cordon_crew_cancel_by_name(ending->home, progress->crew, progress->job, NULL);
	return r;
}

int cordon_flow_end_holders(const struct cordon_home *home, const char *orchestrator, const char *area, bool keep,
			    json_t **ret_ended, struct cordon_error *err)
{
	json_auto_t *ended = json_array();
	struct ending ending = {
		.home = home, .orchestrator = orchestrator, .area = area, .keep = keep, .ended = ended, .err = err
	};
	int r = cordon_flow_each(home, end_holder, &ending, err);

	if (r == 0)
		*ret_ended = cordon_steal_ptr(&ended);
	return r;
}

/* "<orchestrator>.<area>": no id has a dot. */
static void kept_name(const char *orchestrator, const char *area, char ret[static KEPT_SIZE])
{
	(void)cordon_concat(ret, KEPT_SIZE, orchestrator, ".", area, (char *)NULL);
}

int cordon_flow_keep_commands(const struct cordon_home *home, const char *orchestrator, const char *area, bool keep,
			      struct cordon_error *err)
{
	char name[KEPT_SIZE];
	autofd int dir = -1;
	autofd int fd = -1;
	int r = cordon_settings_id_check("the id of an orchestrator", orchestrator, err);

	if (r == 0)
		r = cordon_settings_id_check("the key of a shared area", area, err);
	if (r == 0)
		r = cordon_home_subdir(home, CORDON_FLOW_KEPT, &dir, err);
	if (r < 0)
		return r;
	kept_name(orchestrator, area, name);
	if (!keep)
		r = unlinkat(dir, name, 0) < 0 && errno != ENOENT ? -errno : 0;
	else if ((fd = openat(dir, name, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600)) < 0)
		r = -errno;
	return r < 0 ? cordon_fail_errno(err, r, "cannot record whether commands of %s end", orchestrator) : 0;
}

bool cordon_flow_keeps_commands(const struct cordon_home *home, const char *orchestrator, const char *area)
{
	char name[KEPT_SIZE];
	autofd int dir = -1;

	kept_name(orchestrator, area, name);
	return cordon_home_subdir(home, CORDON_FLOW_KEPT, &dir, NULL) == 0 &&
	       faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}
