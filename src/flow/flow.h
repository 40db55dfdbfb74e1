/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs of workflows. Nothing here prints or has options: the command line and the MCP server call it.
 *
 *     state/flow/<run>/run.json    what the run is: orchestrator, inputs, and a copy of its definition with all prompts
 *     state/flow/<run>/journal     what happened, one JSON object per line, only ever appended to and synced each time
 *     state/flow/<run>/lock        the engine of the run holds it; a run has one engine at most
 *     state/flow/<run>/cancel      somebody wants the run to end
 *     state/flow/<run>/revoked     the area whose grant was revoked while a step held it
 *     <private>/work/runs/<run>/   the run directory: what finished steps left there, and nothing of unfinished ones
 *     <private>/work/runs/.<run>/  the copies in which steps run (stage.h)
 *
 * The engine is a process of its own that nobody waits for. It writes to the journal before it does what it says there. A
 * killed engine is continued by `resume`: the journal says which steps have ended, and those are never repeated; a step that
 * had not ended starts again, in a new copy of the run directory and a new view of the private workspace (step_view.h).
 *
 * INVARIANT: no sandbox shows state/, and the only names of work/runs that a step sees are its own run's.
 */
#ifndef CORDON_FLOW_FLOW_H
#define CORDON_FLOW_FLOW_H

#include <jansson.h>

#include "base/home.h"
#include "config/errors.h"
#include "flow/workflow.h"

#define CORDON_FLOW_RUN_SIZE 40 /* "run-20260102T030405-" and 12 hexadecimal digits, and a NUL */
#define CORDON_FLOW_INPUT_MAX ((size_t)64 << 10)
#define CORDON_FLOW_NOTE_MAX 4096
#define CORDON_FLOW_KEPT "kept" /* below state/ */

typedef enum cordon_flow_state {
	CORDON_FLOW_QUEUED,
	CORDON_FLOW_RUNNING,
	CORDON_FLOW_WAITING, /* for a person */
	CORDON_FLOW_SUCCEEDED,
	CORDON_FLOW_FAILED,
	CORDON_FLOW_CANCELED,
	CORDON_FLOW__MAX
} cordon_flow_state;

/* "queued", "running", "waiting", "succeeded", "failed", "canceled" */
const char *cordon_flow_state_name(cordon_flow_state state);
bool cordon_flow_state_ended(cordon_flow_state state);

/* What a run is, as it was when it began. */
struct cordon_flow_run {
	char id[CORDON_FLOW_RUN_SIZE];
	int fd;		/* its directory below state/ */
	json_t *record; /* run.json; the strings below are its */
	const char *orchestrator, *workflow_id, *private_path;
	const json_t *inputs, *agents, *context;
	int64_t created;
	uint64_t max_iterations, run_timeout_ms, step_timeout_ms, max_step_timeout_ms; /* the last: 0 without one */
	struct cordon_document *doc;
	const struct cordon_workflow *workflow;
};

/* clang-format off */
#define CORDON_FLOW_RUN_NONE { .fd = -1 }
/* clang-format on */
void cordon_flow_run_done(struct cordon_flow_run *run);
#define autoflow CORDON_CLEANUP(cordon_flow_run_done)

/* Opens a run by its id or the beginning of it; NULL means the latest. Errors: not_found, usage. */
int cordon_flow_run_open(const struct cordon_home *home, const char *id, struct cordon_flow_run *ret_run,
			 struct cordon_error *err);

/* What is asked of a new run. */
struct cordon_flow_start {
	const char *config;		     /* of the settings; NULL: the usual file */
	const char *orchestrator, *workflow; /* workflow NULL: the orchestrator's default */
	const json_t *inputs;		     /* an object of strings */
	const json_t *context; /* values for {{workflow.channel}} and its like: an object of strings, or NULL */
	bool check_only;       /* judge everything, start nothing */
};

/*
 * Judges the settings, the definition, and what every step reads, writes and runs; then records the run and starts its
 * engine. Errors are all that was found. A refusal is in the audit log.
 */
int cordon_flow_start(const struct cordon_home *home, const struct cordon_flow_start *start,
		      char ret_id[static CORDON_FLOW_RUN_SIZE], struct cordon_errors *errors);
/* Continues a run whose engine has ended before the run did. kind conflict when the engine lives or the run has ended. */
int cordon_flow_resume(const struct cordon_home *home, const char *id, struct cordon_error *err);

/* What a person says about the step that waits. */
struct cordon_flow_reply {
	bool approve;
	const char *note; /* or NULL */
	/* What the person was shown: currentStepId and currentAttempt of the status. INVARIANT: no other step is answered. */
	const char *step;
	uint64_t attempt;
};
/* Answers a step that waits for a person, and continues the run. kind conflict when none waits, or not the one that was shown. */
int cordon_flow_answer(const struct cordon_home *home, const char *id, const struct cordon_flow_reply *reply,
		       struct cordon_error *err);
/* Ends a run and the whole process tree of the step that runs, with its grace time. Does not wait for the end. */
int cordon_flow_cancel(const struct cordon_home *home, const char *id, struct cordon_error *err);
/* Waits until the run has ended. `pause` may be NULL; it is called while the run waits for a person, at most every
 * quarter of a second, and returns true to stop waiting. */
int cordon_flow_wait(const struct cordon_home *home, const char *id, bool (*pause)(void *data), void *data,
		     struct cordon_error *err);

/*
 * Ends the running steps of an orchestrator that hold a shared area (NULL: any), after their grace time; the runs fail with the reason
 * `revoked`. With `keep` only lists them. *ret_ended is an array of {run_id, step, attempt}. To be called when the grant is
 * gone from the settings.
 */
int cordon_flow_end_holders(const struct cordon_home *home, const char *orchestrator, const char *area, bool keep,
			    json_t **ret_ended, struct cordon_error *err);

/*
 * Commands of `cordon orchestrator run` watch the settings themselves, and end when they lose an area. `keep` says before the
 * change that they shall not; a later call without it says the opposite, also to those that were kept. They watch the
 * directory state/kept.
 */
int cordon_flow_keep_commands(const struct cordon_home *home, const char *orchestrator, const char *area, bool keep,
			      struct cordon_error *err);
bool cordon_flow_keeps_commands(const struct cordon_home *home, const char *orchestrator, const char *area);

/*
 * How a run stands: runId, orchestratorId, workflowId, state, inputs, currentStepId, currentAttempt, startedAt, updatedAt,
 * totalIterations, terminalReason, summary, pendingHumanInput, nextExpectedAction, engine (a process id or null), runWorkspace,
 * steps[{id, type, state, attempts, ...}], and `outputs` when it has ended. NULL without memory.
 */
int cordon_flow_status(const struct cordon_home *home, const char *id, json_t **ret_status, struct cordon_error *err);
/* The runs, oldest first, without `steps` and `outputs`. */
int cordon_flow_list(const struct cordon_home *home, const char *orchestrator, json_t **ret_runs,
		     struct cordon_error *err);
/* At most `limit` runs, the newest first, that are older than the run `before` (NULL: of all). *ret_more: there are older ones. */
int cordon_flow_latest(const struct cordon_home *home, const char *before, size_t limit, json_t **ret_runs,
		       bool *ret_more, struct cordon_error *err);
/*
 * The attempts of a run, the oldest first: an array of {step, attempt, state, startedAt, endedAt, durationMs, violations, exitCode, error, runId,
 * crew, job}; `step` NULL means all. `state` is running, complete, failed or lost; `crew` and `job` name the log (job/crew.h), and are not
 * there when that is not kept any more.
 */
int cordon_flow_attempts(const struct cordon_home *home, const char *id, const char *step, json_t **ret_attempts,
			 struct cordon_error *err);
/* What the agents of a run wrote and what happened: an array of {step, attempt, startedAt, events[]}; `step` NULL means all. */
int cordon_flow_logs(const struct cordon_home *home, const char *id, const char *step, json_t **ret_logs,
		     struct cordon_error *err);
/* Removes the records of runs that ended longer ago than that. Run directories stay: they are the orchestrator's. */
int cordon_flow_gc(const struct cordon_home *home, uint64_t max_age_ms, size_t *ret_removed, struct cordon_error *err);

/* ---- definitions ---- */

struct cordon_settings_file;
struct cordon_orchestrator;
struct cordon_orchestrator_file;

/* Reads what `workflows` of a file says, without the files of prompts; errors go to the list, -ENOMEM is returned. */
int cordon_flow_read(const struct cordon_orchestrator_file *file, struct cordon_workflow **ret_workflows, size_t *ret_n,
		     struct cordon_errors *errors);
/* The definitions of an orchestrator, checked whole, with the texts of prompts. The caller frees settings and file, to which
 * everything else belongs. `config` may be NULL. */
int cordon_flow_definitions(const char *config, const char *orchestrator, struct cordon_settings_file **ret_settings,
			    const struct cordon_orchestrator **ret_orchestrator,
			    struct cordon_orchestrator_file **ret_file, struct cordon_workflow **ret_workflows,
			    size_t *ret_n, struct cordon_errors *errors);
/* Finds one by its id; the error of kind not_found suggests the nearest. */
int cordon_flow_find(const struct cordon_workflow *workflows, size_t n, const char *orchestrator, const char *id,
		     const struct cordon_workflow **ret_workflow, struct cordon_error *err);

/* Judges what a step's own definition names, and builds its specification without starting it. Adds every refusal
 * to the list and to the audit log. */
int cordon_flow_access(const struct cordon_home *home, const struct cordon_settings_file *settings,
		       const struct cordon_orchestrator *orchestrator, const struct cordon_orchestrator_file *file,
		       const struct cordon_workflow *workflow, struct cordon_errors *errors);

/* Draws the steps: `status` is what cordon_flow_status() returned, or NULL. As lines of text, or as a picture. */
char *cordon_flow_graph_text(const struct cordon_workflow *workflow, const json_t *status, bool unicode);
char *cordon_flow_graph_svg(const struct cordon_workflow *workflow, const json_t *status);

#endif
