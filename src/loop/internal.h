/* SPDX-License-Identifier: Apache-2.0 */
/* What the source files of the loop share. */
#ifndef CORDON_LOOP_INTERNAL_H
#define CORDON_LOOP_INTERNAL_H

#include "job/crew.h"
#include "loop/git.h"
#include "loop/journal.h"
#include "loop/layers.h"
#include "loop/logs.h"
#include "loop/loop.h"
#include "loop/progress.h"
#include "view/delta.h"
#include "view/view.h"

#define CORDON_LOOP_STACK_MAX 12 /* accepted results that wait, before no new view is begun */
#define CORDON_LOOP_BOOT_SIZE 40
#define CORDON_LOOP_OPEN_DIR (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define CORDON_LOOP_DIRS "loops"
#define CORDON_LOOP_STOP "stop"			       /* there when somebody asked the loop to end */
#define CORDON_LOOP_FAILURES "failures"		       /* what a detached loop said on its standard error */
#define CORDON_LOOP_PROMPT_AT "/run/cordon-prompt.txt" /* where {prompt_file} is inside */

/* A call of the agent, until it is decided what becomes of it. */
struct cordon_loop_call {
	uint64_t n; /* 0: the place is free */
	size_t story;
	unsigned int attempt;
	struct cordon_policy *policy;
	struct cordon_view view;		 /* of the agent */
	bool git;				 /* the agent has a git directory of its own */
	size_t n_stack;				 /* accepted results that the view began with */
	char *layers[CORDON_LOOP_STACK_MAX + 2]; /* absolute paths of upper directories, topmost first */
	size_t n_layers;
	char **argv;
	char **env; /* that of the options, and the last one names the story */
	size_t n_env;
	int input; /* the prompt, or -1 */
	struct cordon_loop_logs logs;
	size_t job;	       /* in the crew: of the agent, then of the check */
	bool checking;	       /* the agent has ended, and its result is checked */
	bool ended;	       /* the job has ended, and nobody has looked at it */
	struct cordon_job how; /* it ended */
	struct cordon_job agent_job;
	/* The check. */
	struct cordon_policy *check_policy;
	struct cordon_view check_view, check_result; /* the second has the part of the result that is in scope */
	char *check_argv[4];
	struct cordon_buf check_output;
	/* The result. */
	struct cordon_layer result;
	struct cordon_delta
		changed; /* what apply would do: a layer does not name what an opaque directory or a whiteout deletes */
	json_t *outside; /* paths outside the scope that were warned of */
	uint64_t own_us;
	int64_t mark_us; /* when the present piece of our own work began; 0: none */
};

/* A result that was accepted, and is not in the host's tree yet. */
struct cordon_loop_accepted {
	uint64_t n;
	size_t story;
	char view[CORDON_RUN_ID_SIZE];
	char commit[CORDON_LOOP_GIT_ID]; /* or "" */
	struct cordon_layer layer;
	json_t *result; /* the object for whoever wants to know */
};

struct cordon_loop {
	const struct cordon_home *home;
	struct cordon_loop_options options;
	char key[40];
	char dir[CORDON_PATH_MAX]; /* state/loops/<key>, absolute */
	int dir_fd, lock_fd;
	int prd_locks[CORDON_LOOP_PRDS_MAX];
	struct cordon_root root;
	struct cordon_prd **prds;
	struct cordon_loop_story *stories;
	size_t *first; /* of each PRD: the index of its first story */
	size_t n_stories;
	size_t *order; /* room for all stories */
	struct cordon_journal journal;
	struct cordon_crew *crew;
	struct cordon_loop_call *calls; /* one place per worker */
	size_t n_calls, n_live;
	struct cordon_loop_accepted stack[CORDON_LOOP_STACK_MAX + 1]; /* oldest first */
	size_t n_stack;
	char landing[CORDON_RUN_ID_SIZE]; /* the view of a landing that was interrupted, or "" */
	struct cordon_loop_git git;
	uint64_t n;	/* of the last call */
	int64_t began;	/* monotonic ms */
	int64_t looked; /* for requests; the same */
	uint64_t calls_ms;
	size_t n_ended;
	bool stopping;
	bool gave_back;			     /* results went back while they were brought over */
	json_t *types[CORDON_LOOP_PRDS_MAX]; /* of files that no scope has: patterns, per PRD */
	struct cordon_loop_summary summary;
};

/* engine.c: writes an event to the journal, which takes ownership, and tells the observer. */
int cordon_loop_say(struct cordon_loop *loop, json_t *event, bool durable, struct cordon_error *err);
void cordon_loop_tell(struct cordon_loop *loop, json_t *event);
void cordon_loop_set(struct cordon_loop *loop, size_t story, cordon_story_state state);
int64_t cordon_loop_us(void);
/* The ms that are left, from what `calls` calls took and how many stories are left; -1 when nothing is known yet. */
int64_t cordon_loop_estimate_of(uint64_t calls_ms, size_t calls, size_t left, size_t workers);
const char *cordon_loop_prd_name(const struct cordon_loop *loop, size_t story);
/* The name of a PRD and the id of a story, for the journal. */
json_t *cordon_loop_event(const struct cordon_loop *loop, const char *event, uint64_t n, size_t story);

/* control.c: the directory of a loop, which must be there; and whether a process runs the loop. */
int cordon_loop_dir_open(const struct cordon_home *home, const char *id, int *ret_fd, struct cordon_error *err);
bool cordon_loop_is_running(int dir_fd);

/* status.c: the status of a loop, with more or less of its stories. */
typedef enum cordon_loop_looks {
	CORDON_LOOP_LOOK_NONE,	/* without stories */
	CORDON_LOOP_LOOK_SOME,	/* as many as one wants to read */
	CORDON_LOOP_LOOK_ALL,	/* every story */
	CORDON_LOOP_LOOK_BOARD, /* every story, with its calls */
} cordon_loop_looks;
int cordon_loop_look(const struct cordon_home *home, const char *id, cordon_loop_looks what, json_t **ret_status,
		     struct cordon_error *err);
/* board.c: adds what a board has more than a status, of which it has the stories with their calls. */
void cordon_loop_board_fill(json_t *status, int dir_fd, const struct cordon_loop_progress *progress);

/* retry.c: calls `each` for every request to try a story again, until it returns a negative errno. `request` is an object with `prd`,
 * `story` and `uid`, or NULL when it can't be read. */
int cordon_loop_requests(int dir_fd, int (*each)(void *data, const char *name, const json_t *request), void *data);
bool cordon_loop_has_requests(int dir_fd);
/* Takes the requests that are there; without `now` only if the last look was a while ago. */
int cordon_loop_take_requests(struct cordon_loop *loop, bool now, struct cordon_error *err);

/* state.c */
/* The key does not depend on the order in which PRDs are named. */
void cordon_loop_make_key(const char *root, const char *const *prds, size_t n, char ret_key[static 33]);
int cordon_loop_state_open(struct cordon_loop *loop, struct cordon_errors *errors);
void cordon_loop_state_close(struct cordon_loop *loop);
/* Takes over what an earlier process had done: counts, notes, and what it had accepted. */
int cordon_loop_state_resume(struct cordon_loop *loop, struct cordon_loop_progress *progress, struct cordon_error *err);
/* Names the time since the machine started; "" when the kernel does not say. */
const char *cordon_loop_boot(char buf[static CORDON_LOOP_BOOT_SIZE]);
/* Keeps the reason and the note of a failed call. */
void cordon_loop_note(struct cordon_loop *loop, size_t story, unsigned int attempt, const char *note);
/* The story has all its attempts again, and is parked no more. */
void cordon_loop_give_back(struct cordon_loop *loop, size_t story);
/* Finds the story that an event of the journal is about. */
bool cordon_loop_find(const struct cordon_loop *loop, const json_t *event, size_t *ret_story);
/* Adds an accepted result to the stack. `result` may be NULL; takes the reference. */
int cordon_loop_push(struct cordon_loop *loop, uint64_t n, size_t story, const char *view, const char *commit,
		     json_t *result, struct cordon_error *err);
void cordon_loop_pop(struct cordon_loop *loop, size_t from);
/* Removes a view in which nobody works any more, if it is there. */
void cordon_loop_remove_view(const struct cordon_loop *loop, const char *id);
/* Opens upper/ of a view. */
int cordon_loop_upper(const struct cordon_loop *loop, const char *view, int *ret_fd, struct cordon_error *err);

/* call.c: starts the agent of a story in the free place `call`. */
int cordon_loop_call_start(struct cordon_loop *loop, struct cordon_loop_call *call, size_t story,
			   struct cordon_error *err);
void cordon_loop_call_done(struct cordon_loop *loop, struct cordon_loop_call *call);
/* No agent may change a PRD: only the loop says what has passed. Runs in one root must agree on what is protected, so checks
 * have the same. */
int cordon_loop_protect(const struct cordon_loop *loop, struct cordon_policy *policy, struct cordon_error *err);
/* The scope of a story: the patterns that are enforced, or that changes are compared with. */
bool cordon_loop_scope_enforced(const struct cordon_loop *loop, size_t story);
bool cordon_loop_scope_inferred(const struct cordon_loop *loop, size_t story);

/* prompt.c */
int cordon_loop_prompt(const struct cordon_loop *loop, size_t story, struct cordon_buf *ret_text,
		       struct cordon_error *err);

/* decide.c: looks at a job that has ended, of an agent or of a check. */
int cordon_loop_decide(struct cordon_loop *loop, struct cordon_loop_call *call, struct cordon_error *err);
/* The call came to nothing: says so, and parks the story if it was the last. `counts`: it was the agent's fault. */
int cordon_loop_fail(struct cordon_loop *loop, struct cordon_loop_call *call, bool counts, const char *note,
		     struct cordon_error *err);

/* The story is not tried again in this loop; its reason was noted. */
int cordon_loop_park(struct cordon_loop *loop, size_t story, uint64_t n, struct cordon_error *err);
/* Runs the validation hooks of an event about a story; 1 when one refused, and err says which. `changed` may be NULL. */
int cordon_loop_hooks(const struct cordon_loop *loop, cordon_hook_event event, size_t story,
		      const struct cordon_delta *changed, struct cordon_error *err);
/* check.c: starts the check of a result. */
int cordon_loop_check(struct cordon_loop *loop, struct cordon_loop_call *call, struct cordon_error *err);
/* Judges the result by the policy and fills `result` and `outside`. *ret_why is allocated when it is refused. */
int cordon_loop_judge(struct cordon_loop *loop, struct cordon_loop_call *call, char **ret_why, struct cordon_error *err);

/* land.c: brings everything on the stack to the host and marks the stories. No view may be live. */
int cordon_loop_land(struct cordon_loop *loop, struct cordon_error *err);

/* result.c: the result object of a call, and what becomes of it: the file of results. */
json_t *cordon_loop_result(const struct cordon_loop *loop, const struct cordon_loop_call *call, bool success,
			   const char *error);
int cordon_loop_update_scope(struct cordon_loop *loop, size_t from, struct cordon_error *err);

#endif
