/* SPDX-License-Identifier: Apache-2.0 */
/* The attempts of a run, and what their agents wrote. */
#include "base/json.h"
#include "flow/internal.h"
#include "job/crew.h"

/* The jobs of the crew that was looked at last. */
struct jobs {
	const struct cordon_home *home;
	const char *crew;
	struct cordon_job *items;
	size_t n;
};

static void jobs_done(struct jobs *jobs)
{
	free(jobs->items);
}

/* The index of the job of an attempt; -ENOENT when its crew is not kept any more. */
static int find_job(struct jobs *jobs, const char *crew, const char *name, size_t *ret_index)
{
	struct cordon_crew_info info;

	if (!jobs->crew || !cordon_streq(jobs->crew, crew)) {
		free(jobs->items);
		jobs->items = NULL;
		jobs->n = 0;
		jobs->crew = crew;
		(void)cordon_crew_read(jobs->home, crew, &info, &jobs->items, &jobs->n, NULL);
	}
	for (size_t i = 0; i < jobs->n; i++)
		if (cordon_streq(jobs->items[i].name, name)) {
			*ret_index = i;
			return 0;
		}
	return -ENOENT;
}

static json_t *begin_attempt(struct jobs *jobs, const char *crew, const json_t *event)
{
	json_t *attempt = json_pack("{s:s, s:O, s:s, s:s}", "step", cordon_json_text(event, "step"), "attempt",
				    json_object_get(event, "attempt"), "state", "running", "startedAt",
				    cordon_json_text(event, "time"));
	size_t index;

	if (attempt && find_job(jobs, crew, cordon_json_text(event, "job"), &index) == 0) {
		json_object_set_new(attempt, "crew", json_string(crew));
		json_object_set_new(attempt, "job", json_integer((json_int_t)index));
	}
	return attempt;
}

static void end_attempt(json_t *attempt, const json_t *event)
{
	static const char *const keys[][2] = {
		{ "result", "state" },		{ "ended_at", "endedAt" },   { "duration_ms", "durationMs" },
		{ "violations", "violations" }, { "exit_code", "exitCode" }, { "message", "error" },
		{ "session_id", "runId" },
	};

	for (size_t i = 0; i < CORDON_ARRAY_SIZE(keys); i++)
		if (json_object_get(event, keys[i][0]))
			json_object_set(attempt, keys[i][1], json_object_get(event, keys[i][0]));
}

/* `open` is the attempt that has not ended; an engine that begins finds one that was killed with the engine before. */
static json_t *read_attempts(const struct cordon_home *home, const json_t *events, const char *step, bool lives)
{
	CORDON_CLEANUP(jobs_done) struct jobs jobs = { .home = home };
	json_t *attempts = json_array(), *open = NULL;
	const char *crew = "";
	const json_t *event;
	size_t i;

	json_array_foreach(events, i, event) {
		const char *what = cordon_json_text(event, "event");
		bool ends = cordon_streq(what, "end");

		if (open && (cordon_streq(what, "engine") || cordon_streq(what, "done")))
			json_object_set_new(open, "state", json_string("lost"));
		if (open && ends)
			end_attempt(open, event);
		if (ends || cordon_streq(what, "engine") || cordon_streq(what, "done"))
			open = NULL;
		if (cordon_streq(what, "engine"))
			crew = cordon_json_text(event, "crew");
		if (!cordon_streq(what, "attempt") || (step && !cordon_streq(step, cordon_json_text(event, "step"))))
			continue;
		open = begin_attempt(&jobs, crew, event);
		json_array_append_new(attempts, open);
	}
	if (open && !lives)
		json_object_set_new(open, "state", json_string("lost"));
	return attempts;
}

int cordon_flow_attempts(const struct cordon_home *home, const char *id, const char *step, json_t **ret_attempts,
			 struct cordon_error *err)
{
	autoflow struct cordon_flow_run run = CORDON_FLOW_RUN_NONE;
	json_auto_t *events = NULL;
	bool lives;
	int r = cordon_flow_run_open(home, id, &run, err);

	if (r == 0 && step && cordon_workflow_step(run.workflow, step) == SIZE_MAX)
		r = cordon_fail(err, -ENOENT, CORDON_KIND_NOT_FOUND, "the workflow of %s has no step %.80s", run.id,
				step);
	lives = r == 0 && cordon_flow_engine(&run) != 0; /* first: what it says until it ends is in the journal then */
	if (r == 0)
		r = cordon_journal_read(run.fd, &events, err);
	if (r < 0)
		return r;
	*ret_attempts = read_attempts(home, events, step, lives);
	return *ret_attempts ? 0 : cordon_fail_errno(err, -ENOMEM, "cannot describe the run");
}

/* What was written in an attempt; nothing when that is not kept any more. */
static json_t *events_of(const struct cordon_home *home, const json_t *attempt)
{
	json_t *events = NULL;
	int64_t last, dropped;

	if (json_object_get(attempt, "job"))
		(void)cordon_crew_log(home, cordon_json_text(attempt, "crew"),
				      (size_t)cordon_json_integer(attempt, "job"), -1, 0, &events, &last, &dropped,
				      NULL);
	return events ? events : json_array();
}

int cordon_flow_logs(const struct cordon_home *home, const char *id, const char *step, json_t **ret_logs,
		     struct cordon_error *err)
{
	json_auto_t *attempts = NULL;
	json_t *logs, *attempt;
	size_t i;
	int r = cordon_flow_attempts(home, id, step, &attempts, err);

	if (r < 0)
		return r;
	logs = json_array();
	json_array_foreach(attempts, i, attempt)
		json_array_append_new(logs, json_pack("{s:s, s:O, s:s, s:o}", "step", cordon_json_text(attempt, "step"),
						      "attempt", json_object_get(attempt, "attempt"), "startedAt",
						      cordon_json_text(attempt, "startedAt"), "events",
						      events_of(home, attempt)));
	*ret_logs = logs;
	return logs ? 0 : cordon_fail_errno(err, -ENOMEM, "cannot describe the run");
}
