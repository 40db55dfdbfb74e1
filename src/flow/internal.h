/* SPDX-License-Identifier: Apache-2.0 */
/* What the source files of runs share. */
#ifndef CORDON_FLOW_INTERNAL_H
#define CORDON_FLOW_INTERNAL_H

#include "flow/flow.h"
#include "flow/journal.h"
#include "flow/orchestrator_file.h"
#include "flow/private.h"
#include "flow/progress.h"
#include "flow/stage.h"

#define CORDON_FLOW_DIR (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define CORDON_FLOW_CANCEL "cancel"
#define CORDON_FLOW_REVOKED "revoked"

/* runs.c: makes the directory of a run with its record, and locks it before anybody can see it. Takes ownership of the
 * record. */
int cordon_flow_run_make(const struct cordon_home *home, json_t *record, const char *id, int *ret_lock,
			 struct cordon_error *err);
/* Takes the lock of a run; kind conflict when an engine lives. */
int cordon_flow_run_lock(const struct cordon_flow_run *run, int *ret_fd, struct cordon_error *err);
/* The process id of the engine; 0 when none lives. */
pid_t cordon_flow_engine(const struct cordon_flow_run *run);
bool cordon_flow_requested(const struct cordon_flow_run *run, const char *name);
/* Calls `each` for every run, oldest first, until it returns a negative errno. */
int cordon_flow_each(const struct cordon_home *home, int (*each)(void *data, struct cordon_flow_run *run), void *data,
		     struct cordon_error *err);

/* The same for at most `limit` runs, newest first, that are older than the run `before`, which may be NULL. */
int cordon_flow_each_latest(const struct cordon_home *home, const char *before, size_t limit,
			    int (*each)(void *data, struct cordon_flow_run *run), void *data, bool *ret_more,
			    struct cordon_error *err);

/* status.c: the journal of a run, and where it stands by it. */
struct cordon_flow_standing {
	json_t *events;
	struct cordon_flow_progress progress;
};

#define autostanding CORDON_CLEANUP(cordon_flow_standing_done)
int cordon_flow_standing(const struct cordon_flow_run *run, struct cordon_flow_standing *ret_standing,
			 struct cordon_error *err);
/* Accepts one that was never filled. */
void cordon_flow_standing_done(struct cordon_flow_standing *standing);

/* engine.c: starts the engine of a run in a process of its own, which inherits the lock. */
int cordon_flow_spawn(const char *id, int lock, struct cordon_error *err);

/* Finishes what a killed engine had said and not done: what the last finished step left is taken over, and what an attempt
 * left that never ended goes. Opens the directories of the run. */
int cordon_flow_settle(const struct cordon_home *home, const struct cordon_flow_run *run,
		       const struct cordon_flow_progress *progress, const json_t *events,
		       struct cordon_flow_stage *ret_stage, struct cordon_error *err);

/* What the engine works with. */
struct cordon_flow_engine {
	const struct cordon_home *home;
	struct cordon_flow_run run;
	json_t *events; /* everything in the journal */
	struct cordon_journal journal;
	struct cordon_flow_progress progress;
	struct cordon_crew *crew;
	struct cordon_flow_stage stage;
	struct cordon_buf *answer; /* of the agent that runs */
	bool cut;		   /* the answer lacks its beginning: its first line is a part of one */
};

/* Writes an event to the journal, which takes ownership, and applies it. */
int cordon_flow_say(struct cordon_flow_engine *engine, json_t *event, struct cordon_error *err);
/* attempt.c: runs the step that comes next, once, to its end. An error is not the agent's fault: the run must end. */
int cordon_flow_attempt(struct cordon_flow_engine *engine, struct cordon_error *err);

/* Gets what the agent that runs has written to its standard output. */
void cordon_flow_hear(struct cordon_flow_engine *engine, const char *bytes, size_t n);

/* prompt.c */
struct cordon_flow_prompt {
	const struct cordon_flow_run *run;
	const struct cordon_flow_progress *progress;
	const struct cordon_flow_step *step;
	unsigned int attempt;
	const char *run_workspace, *token;
};
/* The text that the agent gets. */
int cordon_flow_prompt(const struct cordon_flow_prompt *prompt, struct cordon_buf *ret_text, struct cordon_error *err);
/* context.md: the run, and the shared areas that the agent has. */
int cordon_flow_context(const struct cordon_flow_prompt *p, const struct cordon_orchestrator *orchestrator,
			struct cordon_buf *out, struct cordon_error *err);
/* Reads a file of a prompt below the private workspace. -ENOENT when it is missing. */
int cordon_flow_prompt_file(int private_fd, const char *path, struct cordon_buf *ret_text, struct cordon_error *err);

/* access.c */
void cordon_flow_record_refusal(const struct cordon_home *home, const char *orchestrator, const char *workflow,
				const char *step, const struct cordon_error *why);
/* The words of a provider's command for a step; {model} and {prompt_file} stand for their values. The caller frees the array
 * with cordon_flow_argv_free(). *ret_file: whether the prompt is wanted in a file. */
char **cordon_flow_argv(const struct cordon_provider *provider, const char *model, const char *prompt_file,
			bool *ret_file);
void cordon_flow_argv_free(char **argv);

#endif
