/* SPDX-License-Identifier: Apache-2.0 */
/*
 * This runs in the engine of a run: a process of its own, in a session of its own, that has the run's lock. It does one step
 * after the other, as the journal and the definition say, until the run has ended or waits for a person.
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>

#include "base/child.h"
#include "base/io.h"
#include "base/time.h"
#include "flow/internal.h"
#include "flow/step.h"
#include "flow/step_view.h"
#include "job/crew.h"

#define DEAD_WAIT_MS 60000 /* how long the agents of a killed engine may take to end */
#define DEAD_POLL_MS 10

int cordon_flow_say(struct cordon_flow_engine *engine, json_t *event, struct cordon_error *err)
{
	cordon_journal_how how = json_object_get(event, "outputs") ? CORDON_JOURNAL_BULKY : CORDON_JOURNAL_DURABLE;
	int r = event ? cordon_journal_add(&engine->journal, event, how, err)
		      : cordon_fail_errno(err, -ENOMEM, "cannot write to the journal");

	if (r == 0 && json_array_append(engine->events, event) == 0)
		cordon_flow_progress_add(&engine->progress, &engine->run, event);
	json_decref(event);
	return r;
}

/* The copies go first: nobody looks at a run that has ended any more. */
static int say_done(struct cordon_flow_engine *engine, cordon_flow_state state, const char *reason,
		    struct cordon_error *err)
{
	if (engine->stage.own_fd >= 0)
		cordon_flow_stage_remove(&engine->stage);
	cordon_step_spec_forget(engine->home, engine->run.id);
	return cordon_flow_say(engine,
			       json_pack("{s:s, s:s, s:s}", "event", "done", "state", cordon_flow_state_name(state),
					 "reason", reason),
			       err);
}

/* ---- the loop ---- */

/* A step that can't be started is a refusal, or a failure of the machine: the run ends, and says why. */
static int give_up(struct cordon_flow_engine *engine, const struct cordon_error *why, struct cordon_error *err)
{
	const struct cordon_flow_step *step = &engine->run.workflow->steps[engine->progress.at];
	char reason[1024];

	cordon_flow_record_refusal(engine->home, engine->run.orchestrator, engine->run.workflow_id, step->id, why);
	snprintf(reason, sizeof(reason), "refused: the step %s: %s", step->id, why->message);
	return say_done(engine, CORDON_FLOW_FAILED, reason, err);
}

static int one_turn(struct cordon_flow_engine *engine, struct cordon_error *err)
{
	const char *reason;
	struct cordon_error why = { 0 };
	int r;

	if (cordon_flow_requested(&engine->run, CORDON_FLOW_CANCEL))
		return say_done(engine, CORDON_FLOW_CANCELED, "canceled", err);
	reason = cordon_flow_must_end(&engine->progress, &engine->run);
	if (reason)
		return say_done(engine, *reason ? CORDON_FLOW_FAILED : CORDON_FLOW_SUCCEEDED, reason, err);
	if (engine->run.workflow->steps[engine->progress.at].type == CORDON_FLOW_HUMAN_REVIEW)
		return cordon_flow_say(engine,
				       json_pack("{s:s, s:s}", "event", "wait", "step",
						 engine->run.workflow->steps[engine->progress.at].id),
				       err);
	r = cordon_flow_attempt(engine, &why);
	if (r < 0 && r != -EINTR)
		return give_up(engine, &why, err);
	return r;
}

/* The agents of an engine that was killed end with it, but not at the same instant. */
static int wait_for_dead(const struct cordon_flow_engine *engine, struct cordon_error *err)
{
	int64_t until = cordon_time_monotonic() + DEAD_WAIT_MS;

	for (bool asked = false; engine->progress.crew; asked = true) {
		struct cordon_crew_info info;
		autofree struct cordon_job *jobs = NULL;
		bool alive = false;
		size_t n = 0;

		if (cordon_crew_read(engine->home, engine->progress.crew, &info, &jobs, &n, NULL) < 0)
			return 0; /* it is gone */
		for (size_t i = 0; i < n; i++)
			alive |= jobs[i].state == CORDON_JOB_STARTING || jobs[i].state == CORDON_JOB_RUNNING;
		if (!alive)
			return 0;
		if (!asked)
			(void)cordon_crew_cancel_by_name(engine->home, engine->progress.crew, NULL, NULL);
		if (cordon_time_monotonic() > until)
			return cordon_fail(err, -EBUSY, CORDON_KIND_CONFLICT,
					   "an agent of the engine that was killed still runs");
		(void)poll(NULL, 0, DEAD_POLL_MS);
	}
	return 0;
}

int cordon_flow_settle(const struct cordon_home *home, const struct cordon_flow_run *run,
		       const struct cordon_flow_progress *progress, const json_t *events,
		       struct cordon_flow_stage *ret_stage, struct cordon_error *err)
{
	int r = cordon_flow_stage_open(run->private_path, run->id, ret_stage, err);

	if (r == 0 && progress->dir)
		r = cordon_flow_stage_commit(ret_stage, progress->dir_serial, progress->dir, err);
	if (r == 0 && progress->view)
		r = cordon_step_view_take(home, progress->view, err);
	cordon_step_views_clear(home, events, progress->view);
	return r;
}

static void hear(void *data, size_t index, int stream, const char *bytes, size_t n)
{
	(void)index;
	if (stream == 1)
		cordon_flow_hear(data, bytes, n);
}

/* Opens everything, and finishes what a killed engine had said and not done. */
static int begin(struct cordon_flow_engine *engine, const char *id, struct cordon_error *err)
{
	struct cordon_crew_options options = { .max_concurrent = 1, .observer = { .data = engine, .output = hear } };
	char label[64];
	int r = cordon_flow_run_open(engine->home, id, &engine->run, err);

	if (r == 0)
		r = cordon_journal_open(engine->run.fd, &engine->journal, &engine->events, err);
	if (r < 0)
		return r;
	cordon_flow_progress_init(&engine->progress, &engine->run, engine->events);
	r = wait_for_dead(engine, err);
	if (r == 0)
		r = cordon_flow_settle(engine->home, &engine->run, &engine->progress, engine->events, &engine->stage,
				       err);
	snprintf(label, sizeof(label), "workflow %s", engine->run.id);
	options.label = label;
	if (r == 0)
		r = cordon_crew_new(&options, &engine->crew, err);
	if (r == 0)
		r = cordon_flow_say(engine,
				    json_pack("{s:s, s:s, s:I}", "event", "engine", "crew",
					      cordon_crew_id(engine->crew), "pid", (json_int_t)getpid()),
				    err);
	return r;
}

static void engine_done(struct cordon_flow_engine *engine)
{
	engine->crew = cordon_crew_free(engine->crew);
	cordon_flow_stage_done(&engine->stage);
	cordon_flow_progress_done(&engine->progress);
	cordon_journal_done(&engine->journal);
	json_decref(engine->events);
	cordon_flow_run_done(&engine->run);
}

/* Runs until the run has ended or waits. What can't be said in the journal can be said nowhere: then the run stays as it is,
 * and can be resumed. */
static void work(const char *id, int lock)
{
	autohome struct cordon_home home = CORDON_HOME_NONE;
	struct cordon_flow_engine engine = { .home = &home,
					     .run = CORDON_FLOW_RUN_NONE,
					     .journal = CORDON_JOURNAL_NONE,
					     .stage = CORDON_FLOW_STAGE_NONE };
	struct cordon_error err = { 0 };
	char pid[CORDON_DIGITS_SIZE];
	int r = cordon_home_open(&home, &err);

	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	if (ftruncate(lock, 0) < 0 || pwrite(lock, pid, strlen(pid), 0) < 0)
		return;
	if (r >= 0)
		r = begin(&engine, id, &err);
	if (r < 0 && engine.journal.fd >= 0 && r != -EBUSY)
		r = say_done(&engine, CORDON_FLOW_FAILED, err.message, &err) < 0 ? r : -ECANCELED;
	while (r >= 0 && !cordon_flow_state_ended(engine.progress.state) && engine.progress.state != CORDON_FLOW_WAITING)
		r = one_turn(&engine, &err);
	engine_done(&engine);
}

/* ---- the process ---- */

int cordon_flow_spawn(const char *id, int lock, struct cordon_error *err)
{
	pid_t pid = cordon_child_detach(&(struct cordon_detach){ .kept = &lock, .n_kept = 1 });

	if (pid == 0) {
		prctl(PR_SET_NAME, "cordon-flow", 0, 0, 0);
		signal(SIGPIPE, SIG_IGN);
		work(id, lock);
		_exit(0);
	}
	return pid < 0 ? cordon_fail_errno(err, (int)pid, "cannot start the engine of the run") : 0;
}
