/* SPDX-License-Identifier: Apache-2.0 */
/* How runs stand, for people and programs; and what their agents wrote. */
#include <stdio.h>

#include "base/path.h"
#include "base/time.h"
#include "flow/internal.h"

int cordon_flow_standing(const struct cordon_flow_run *run, struct cordon_flow_standing *ret_standing,
			 struct cordon_error *err)
{
	json_t *events = NULL;
	int r = cordon_journal_read(run->fd, &events, err);

	if (r < 0)
		return r;
	ret_standing->events = events;
	cordon_flow_progress_init(&ret_standing->progress, run, events);
	return 0;
}

void cordon_flow_standing_done(struct cordon_flow_standing *standing)
{
	cordon_flow_progress_done(&standing->progress);
	json_decref(standing->events);
	standing->events = NULL;
}

static json_t *time_json(int64_t ms)
{
	char text[CORDON_TIME_SIZE];

	cordon_time_format(ms, text);
	return json_string(text);
}

static const char *step_state(const struct cordon_flow_progress *p, size_t i)
{
	const struct cordon_flow_step_state *step = &p->steps[i];

	if (i == p->at && p->open)
		return "running";
	if (i == p->at && p->state == CORDON_FLOW_WAITING)
		return "waiting";
	if (step->failed)
		return "failed";
	if (!step->finished)
		return "pending";
	return step->decision ? cordon_streq(step->decision, "approve") ? "approved" : "rejected" : "finished";
}

static json_t *steps_json(const struct cordon_flow_run *run, const struct cordon_flow_progress *p)
{
	json_t *steps = json_array();

	for (size_t i = 0; i < run->workflow->n_steps; i++) {
		json_t *step = json_pack("{s:s, s:s, s:s, s:I}", "id", run->workflow->steps[i].id, "type",
					 cordon_flow_type_name(run->workflow->steps[i].type), "state", step_state(p, i),
					 "attempts", (json_int_t)p->steps[i].attempt);

		if (p->steps[i].ended)
			json_object_set_new(step, "endedAt", time_json(p->steps[i].ended));
		if (p->steps[i].error && p->steps[i].failed)
			json_object_set_new(step, "error", json_string(p->steps[i].error));
		if (p->steps[i].outputs)
			json_object_set(step, "outputs", p->steps[i].outputs);
		json_array_append_new(steps, step);
	}
	return steps;
}

/* The outputs of the finished run: those of the last step that finished, the most important first. */
static json_t *outputs_json(const struct cordon_flow_run *run, const struct cordon_flow_progress *p)
{
	json_t *outputs = json_object();
	size_t last = SIZE_MAX;

	for (size_t i = 0; i < run->workflow->n_steps; i++)
		if (p->steps[i].outputs && (last == SIZE_MAX || p->steps[i].ended >= p->steps[last].ended))
			last = i;
	if (last == SIZE_MAX)
		return outputs;
	for (size_t i = 0; i < run->workflow->steps[last].n_priority; i++) {
		const char *key = run->workflow->steps[last].priority[i];
		json_t *value = json_object_get(p->steps[last].outputs, key);

		if (value)
			json_object_set(outputs, key, value);
	}
	json_object_update_missing(outputs, p->steps[last].outputs);
	return outputs;
}

static void summarize(const struct cordon_flow_run *run, const struct cordon_flow_progress *p, pid_t engine, char *ret,
		      size_t size)
{
	const char *step = p->at < run->workflow->n_steps ? run->workflow->steps[p->at].id : "";
	unsigned int attempt = p->at < run->workflow->n_steps ? p->steps[p->at].attempt : 0;

	if (cordon_flow_state_ended(p->state))
		snprintf(ret, size, "%s after %llu iterations%s%.200s", cordon_flow_state_name(p->state),
			 (unsigned long long)p->iterations, *p->reason ? ": " : "", p->reason);
	else if (p->state == CORDON_FLOW_WAITING)
		snprintf(ret, size, "step %s waits for a person", step);
	else if (!engine)
		snprintf(ret, size, "interrupted at step %s; 'cordon workflow resume %s' continues it", step, run->id);
	else if (p->open)
		snprintf(ret, size, "step %s runs, attempt %u", step, attempt);
	else
		snprintf(ret, size, "step %s is next", step);
}

static json_t *status_json(const struct cordon_flow_run *run, const struct cordon_flow_progress *p, bool whole)
{
	pid_t engine = cordon_flow_engine(run);
	bool active = !cordon_flow_state_ended(p->state) && p->at < run->workflow->n_steps;
	char summary[512], dir[CORDON_PATH_MAX];
	json_t *status;

	summarize(run, p, engine, summary, sizeof(summary));
	(void)cordon_concat(dir, sizeof(dir), run->private_path, "/work/runs/", run->id, (char *)NULL);
	status = json_pack("{s:s, s:s, s:s, s:s, s:O, s:I, s:o, s:o, s:s, s:s, s:b, s:s, s:o}", "runId", run->id,
			   "orchestratorId", run->orchestrator, "workflowId", run->workflow_id, "state",
			   cordon_flow_state_name(p->state), "inputs", run->inputs, "totalIterations",
			   (json_int_t)p->iterations, "startedAt", time_json(run->created), "updatedAt",
			   time_json(p->updated), "terminalReason", p->reason, "summary", summary, "pendingHumanInput",
			   p->state == CORDON_FLOW_WAITING, "nextExpectedAction",
			   p->state == CORDON_FLOW_WAITING ? "approve or reject"
			   : active && !engine		   ? "resume"
							   : "none",
			   "engine", engine > 1 ? json_integer(engine) : json_null());
	json_object_set_new(status, "currentStepId", active ? json_string(run->workflow->steps[p->at].id) : json_null());
	json_object_set_new(status, "currentAttempt",
			    active ? json_integer((json_int_t)p->steps[p->at].attempt) : json_null());
	json_object_set_new(status, "runWorkspace", json_string(dir));
	if (!whole)
		return status;
	json_object_set_new(status, "steps", steps_json(run, p));
	if (cordon_flow_state_ended(p->state))
		json_object_set_new(status, "outputs", outputs_json(run, p));
	return status;
}

int cordon_flow_status(const struct cordon_home *home, const char *id, json_t **ret_status, struct cordon_error *err)
{
	autoflow struct cordon_flow_run run = CORDON_FLOW_RUN_NONE;
	autostanding struct cordon_flow_standing standing = { 0 };
	int r = cordon_flow_run_open(home, id, &run, err);

	if (r == 0)
		r = cordon_flow_standing(&run, &standing, err);
	if (r != 0)
		return r;
	*ret_status = status_json(&run, &standing.progress, true);
	return *ret_status ? 0 : cordon_fail_errno(err, -ENOMEM, "cannot describe the run");
}

/* ---- lists ---- */

struct listing {
	const char *orchestrator;
	json_t *runs;
};

static int list_run(void *data, struct cordon_flow_run *run)
{
	struct listing *listing = data;
	autostanding struct cordon_flow_standing standing = { 0 };

	if ((!listing->orchestrator || cordon_streq(run->orchestrator, listing->orchestrator)) &&
	    cordon_flow_standing(run, &standing, NULL) == 0)
		json_array_append_new(listing->runs, status_json(run, &standing.progress, false));
	return 0;
}

int cordon_flow_list(const struct cordon_home *home, const char *orchestrator, json_t **ret_runs,
		     struct cordon_error *err)
{
	struct listing listing = { .orchestrator = orchestrator, .runs = json_array() };
	int r = cordon_flow_each(home, list_run, &listing, err);

	if (r < 0)
		json_decref(listing.runs);
	else
		*ret_runs = listing.runs;
	return r;
}

int cordon_flow_latest(const struct cordon_home *home, const char *before, size_t limit, json_t **ret_runs,
		       bool *ret_more, struct cordon_error *err)
{
	struct listing listing = { .runs = json_array() };
	int r = cordon_flow_each_latest(home, before, limit, list_run, &listing, ret_more, err);

	if (r < 0)
		json_decref(listing.runs);
	else
		*ret_runs = listing.runs;
	return r;
}
