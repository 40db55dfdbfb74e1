/* SPDX-License-Identifier: Apache-2.0 */
/* Where a run stands, from its journal. */
#include "flow/progress.h"
#include "base/json.h"
#include "base/time.h"

static const char *const state_names[] = { "queued", "running", "waiting", "succeeded", "failed", "canceled" };

const char *cordon_flow_state_name(cordon_flow_state state)
{
	return state_names[state];
}

bool cordon_flow_state_ended(cordon_flow_state state)
{
	return state >= CORDON_FLOW_SUCCEEDED;
}

static bool has(const json_t *list, const json_t *wanted)
{
	const json_t *item;
	size_t i;

	json_array_foreach(list, i, item)
		if (json_equal(item, wanted))
			return true;
	return false;
}

/* Enters the step that comes next. */
static void enter(struct cordon_flow_progress *p, const struct cordon_workflow *workflow, size_t next)
{
	p->at = next;
	p->blocked = NULL;
	if (next == CORDON_FLOW_END)
		return;
	p->steps[next].failures = 0;
	for (size_t i = 0; i < workflow->steps[next].n_needs; i++)
		if (!p->steps[workflow->steps[next].needs[i]].finished)
			p->blocked = workflow->steps[workflow->steps[next].needs[i]].id;
}

static void decide(struct cordon_flow_progress *p, const struct cordon_workflow *workflow, bool approve)
{
	const struct cordon_flow_step *step = &workflow->steps[p->at];

	if (step->type == CORDON_FLOW_TASK) {
		enter(p, workflow, step->next);
	} else if (approve) {
		enter(p, workflow, step->on_approve);
	} else {
		p->rejected = !step->has_on_reject;
		enter(p, workflow, step->on_reject);
	}
}

static void on_attempt(struct cordon_flow_progress *p, const struct cordon_workflow *workflow, const json_t *event)
{
	size_t step = cordon_workflow_step(workflow, cordon_json_text(event, "step"));

	if (step == SIZE_MAX)
		return;
	/* An attempt that began and never ended starts again under its number, and does not count. */
	p->lost = p->open ? p->lost + 1 : 0;
	p->open = true;
	p->state = CORDON_FLOW_RUNNING;
	p->at = step;
	p->serial = (uint64_t)cordon_json_integer(event, "n");
	p->steps[step].attempt = (unsigned int)cordon_json_integer(event, "attempt");
	p->job = cordon_json_text(event, "job");
	p->areas = json_object_get(event, "areas");
}

static void on_end(struct cordon_flow_progress *p, const struct cordon_workflow *workflow, const json_t *event)
{
	struct cordon_flow_step_state *step;
	const json_t *file;
	size_t i;

	if (!p->open || p->at >= workflow->n_steps)
		return;
	p->open = false;
	p->lost = 0;
	p->iterations++;
	p->used_ms += (uint64_t)cordon_json_integer(event, "duration_ms");
	step = &p->steps[p->at];
	step->ended = p->updated;
	step->failed = !cordon_json_is(event, "result", "complete");
	step->error = step->failed ? cordon_json_text(event, "message") : NULL;
	p->revoked = step->failed && cordon_streq(step->error, "revoked");
	if (step->failed) {
		step->failures++;
		return;
	}
	step->finished++;
	step->outputs = json_object_get(event, "outputs");
	step->decision = cordon_json_string(step->outputs, "decision");
	p->dir = cordon_json_text(event, "dir");
	p->dir_serial = p->serial;
	p->view = cordon_json_string(event, "view");
	json_array_foreach(json_object_get(event, "files"), i, file)
		if (!has(p->files, file))
			json_array_append(p->files, (json_t *)(uintptr_t)file);
	decide(p, workflow, !step->decision || cordon_streq(step->decision, "approve"));
}

static void on_answer(struct cordon_flow_progress *p, const struct cordon_workflow *workflow, const json_t *event)
{
	struct cordon_flow_step_state *step;

	if (p->state != CORDON_FLOW_WAITING || p->at >= workflow->n_steps)
		return;
	step = &p->steps[p->at];
	step->finished++;
	step->attempt++;
	step->ended = p->updated;
	step->outputs = json_object_get(event, "outputs");
	step->decision = cordon_json_string(step->outputs, "decision");
	p->state = CORDON_FLOW_RUNNING;
	p->iterations++;
	decide(p, workflow, step->decision && cordon_streq(step->decision, "approve"));
}

static void on_done(struct cordon_flow_progress *p, const json_t *event)
{
	for (int i = CORDON_FLOW_SUCCEEDED; i < (int)CORDON_FLOW__MAX; i++)
		if (cordon_json_is(event, "state", state_names[i]))
			p->state = (cordon_flow_state)i;
	p->reason = cordon_json_text(event, "reason");
	p->open = false;
}

void cordon_flow_progress_add(struct cordon_flow_progress *progress, const struct cordon_flow_run *run,
			      const json_t *event)
{
	const char *what = cordon_json_text(event, "event");

	if (cordon_time_parse(cordon_json_text(event, "time"), &progress->updated) < 0)
		progress->updated = run->created;
	if (cordon_streq(what, "engine")) {
		progress->crew = cordon_json_text(event, "crew");
		progress->lost = 0;
		if (progress->state == CORDON_FLOW_QUEUED)
			progress->state = CORDON_FLOW_RUNNING;
	} else if (cordon_streq(what, "attempt")) {
		on_attempt(progress, run->workflow, event);
	} else if (cordon_streq(what, "end")) {
		on_end(progress, run->workflow, event);
	} else if (cordon_streq(what, "wait")) {
		progress->state = CORDON_FLOW_WAITING;
	} else if (cordon_streq(what, "answer")) {
		on_answer(progress, run->workflow, event);
	} else if (cordon_streq(what, "done")) {
		on_done(progress, event);
	}
}

void cordon_flow_progress_init(struct cordon_flow_progress *progress, const struct cordon_flow_run *run,
			       const json_t *events)
{
	const json_t *event;
	size_t i;

	*progress = (struct cordon_flow_progress){ .reason = "", .updated = run->created, .files = json_array() };
	enter(progress, run->workflow, 0);
	json_array_foreach(events, i, event)
		cordon_flow_progress_add(progress, run, event);
}

void cordon_flow_progress_done(struct cordon_flow_progress *progress)
{
	json_decref(progress->files);
	progress->files = NULL;
}

const char *cordon_flow_must_end(const struct cordon_flow_progress *progress, const struct cordon_flow_run *run)
{
	const struct cordon_flow_step_state *step;

	if (progress->at == CORDON_FLOW_END)
		return progress->rejected ? "rejected" : "";
	step = &progress->steps[progress->at];
	if (progress->revoked)
		return "revoked";
	if (step->failures > run->workflow->steps[progress->at].max_retries)
		return step->error ? step->error : "failed";
	if (progress->blocked)
		return "needs";
	if (progress->used_ms >= run->run_timeout_ms)
		return "timeout";
	if (progress->iterations >= run->max_iterations)
		return "max_total_iterations";
	return progress->lost > CORDON_FLOW_LOST_MAX ? "lost" : NULL;
}
