/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loop over the stories of one or several PRDs. It prints nothing and knows no command-line options.
 *
 *     ready stories ──► agent in a view ──► check in a fresh view ──► accepted ──► host's tree, commit, "passes"
 *          ▲                  │ fails             │ fails               │ conflicts
 *          └──────────────────┴── with a note ────┴─────────────────────┘           parked after three failures
 *
 * One process, one thread: it starts agents and checks as jobs of a crew (job/crew.h) and takes results over one after
 * the other. While a view is live the host's tree stays as it is: an accepted result becomes a frozen layer, and new views
 * begin on top of these layers. When no view is live, all accepted results are brought to the host in one step.
 *
 *     state/loops/<key>/journal      what happened, one JSON object per line (journal.h); the key is made of root and PRDs
 *     state/loops/<key>/logs/<worker>/   prompt.txt, output.log, error.log, combined.log of each call of the agent
 *     state/loops/<key>/results      the result of each call, one JSON object per line
 *     state/loops/<key>.lock, <prd>.prd  held by the process that runs the loop
 *
 * Killed at any instant, the same call goes on where it was: what was accepted is brought over first, and calls that had
 * not ended are made again.
 */
#ifndef CORDON_LOOP_LOOP_H
#define CORDON_LOOP_LOOP_H

#include <jansson.h>

#include "base/home.h"
#include "config/prd.h"
#include "config/settings_file.h"
#include "config/values.h"
#include "policy/policy.h"

#define CORDON_LOOP_ITERATIONS 10 /* the default of --max-iterations */
#define CORDON_LOOP_ITERATIONS_MAX 100000
#define CORDON_LOOP_WORKERS 3 /* the default of --max-workers */
#define CORDON_LOOP_TIMEOUT_MS ((uint64_t)600 * 1000)
#define CORDON_LOOP_ATTEMPTS 3 /* failures after which a story is parked */
#define CORDON_LOOP_PRDS_MAX 64
#define CORDON_LOOP_NOTE_MAX 4096 /* bytes of a note of an earlier attempt */
#define CORDON_LOOP_LINE_MAX 160  /* bytes of the last line that is shown */

typedef enum cordon_story_state {
	CORDON_STORY_WAITING,  /* for others, or for a worker */
	CORDON_STORY_WORKING,  /* its agent runs */
	CORDON_STORY_CHECKING, /* the command of `verify` runs */
	CORDON_STORY_ACCEPTED, /* its result waits until no view is live */
	CORDON_STORY_PASSED,
	CORDON_STORY_PARKED, /* after too many failures, or because a person said no */
	CORDON_STORY__MAX
} cordon_story_state;

/* "waiting", "working", "checking", "accepted", "passed", "parked". */
const char *cordon_story_state_name(cordon_story_state state);

/* What a front end sees of a story. Strings belong to the loop. */
struct cordon_loop_story {
	const struct cordon_prd_story *story;
	size_t prd; /* index of its PRD */
	cordon_story_state state;
	unsigned int failures, calls;
	unsigned int violations;	     /* of all calls */
	int64_t since;			     /* monotonic ms when the state began */
	char last[CORDON_LOOP_LINE_MAX + 1]; /* the last line that its agent wrote, escaped */
	char *reason;			     /* why the last call failed, or why it is parked; or NULL */
	char *note;			     /* of earlier attempts, for the next prompt; or NULL */
};

/* One PRD and the workspace of its stories. */
struct cordon_loop_prd {
	const char *path;	  /* absolute */
	const char *folders;	  /* the list as a message shows it; NULL: the root is the scope */
	const char *const *items; /* the folders, each relative to the root */
	size_t n_items;
	cordon_mode mode;
};

/* What the policy of a call is to hold. */
struct cordon_loop_scope {
	const struct cordon_loop_prd *prd; /* its folders and mode; NULL: the whole root, for checks and for applying */
	bool strict;			   /* whatever the mode */
};

typedef enum cordon_file_scope {
	CORDON_FILE_SCOPE_DEFAULT, /* a scope that a person wrote is enforced in strict mode; all else is warned of */
	CORDON_FILE_SCOPE_OFF,
	CORDON_FILE_SCOPE_WARN,
	CORDON_FILE_SCOPE_ENFORCE,
} cordon_file_scope;

typedef enum cordon_update_scope {
	CORDON_UPDATE_SCOPE_SUGGEST,
	CORDON_UPDATE_SCOPE_OFF,
	CORDON_UPDATE_SCOPE_WRITE,
} cordon_update_scope;

struct cordon_loop;

/* What the front end is told. Each may be NULL, except `policy`. */
struct cordon_loop_observer {
	void *data;
	/* Makes the policy of a call, with its shares. */
	void *maker;
	int (*policy)(void *maker, const struct cordon_loop_scope *scope, struct cordon_policy **ret_policy,
		      struct cordon_error *err);
	/* Something happened: an object with `event` and more, which journal.h describes. */
	void (*event)(void *data, const struct cordon_loop *loop, const json_t *event);
	/* The agent of a story was refused something, or warned. */
	void (*violation)(void *data, const struct cordon_loop *loop, size_t story, const struct cordon_event *event);
	/* The agent of a story, or its check, wrote to its standard output (1) or error (2). */
	void (*output)(void *data, const struct cordon_loop *loop, size_t story, int stream, const char *bytes,
		       size_t n);
	/* Whether a result is taken over. `changes` is what it changes, as `cordon changes diff --json` says it. -EINTR
	 * when a signal came instead of an answer, another -errno when nobody can be asked. */
	int (*confirm)(void *data, const struct cordon_loop *loop, size_t story, const json_t *changes);
	/* Called at least every CORDON_CREW_TICK_MS. True ends the loop as a signal does. */
	bool (*tick)(void *data, const struct cordon_loop *loop);
};

struct cordon_loop_options {
	const char *root; /* canonical */
	struct cordon_loop_prd *prds;
	size_t n_prds;
	char *const *argv;	     /* of the agent; {prompt_file} stands for a file with the prompt */
	struct cordon_run_spec spec; /* limits, environment and so on; no policy, command or view */
	const char *verify;	     /* for `sh -c`, or NULL */
	unsigned int max_iterations, workers;
	bool confirm;
	bool no_views;	     /* agents work in the host's tree, one after the other */
	cordon_git_mode git; /* as `cordon run --git` */
	cordon_file_scope file_scope;
	cordon_update_scope update_scope;
	const struct cordon_settings_file *settings; /* for validation hooks; or NULL */
	const char *log_dir;			     /* absolute; gets copies of the logs; or NULL */
	struct cordon_loop_observer observer;
};

/* What the loop has done. */
struct cordon_loop_summary {
	size_t passed, parked, waiting; /* stories, all in all */
	size_t done;			/* stories that passed in this call */
	unsigned int iterations;	/* calls of the agent */
	unsigned int violations, conflicts;
	int64_t duration_ms;
	uint64_t agents_ms, checks_ms; /* the time that agents and checks took, added up */
	uint64_t own_us;	       /* the time that cordon itself took: before calls and after them */
	int signal;		       /* that ended it, or 0 */
	bool out_of_iterations;
	bool unconfirmed;		  /* a person said no, or nobody could be asked */
	char kept[4][CORDON_RUN_ID_SIZE]; /* views of calls that were interrupted: the first ones */
	size_t n_kept;
};

/* Opens the loop: reads the PRDs, takes the locks, and brings over what an interrupted one had accepted. kind conflict when
 * another loop works on a PRD. */
int cordon_loop_open(const struct cordon_home *home, const struct cordon_loop_options *options,
		     struct cordon_loop **ret_loop, struct cordon_errors *errors);
/* Works until nothing is left to be done. */
int cordon_loop_work(struct cordon_loop *loop, struct cordon_loop_summary *ret_summary, struct cordon_error *err);
/* Accepts NULL; always returns NULL. */
struct cordon_loop *cordon_loop_close(struct cordon_loop *loop);

/* For observers. */
size_t cordon_loop_count(const struct cordon_loop *loop);
const struct cordon_loop_story *cordon_loop_story(const struct cordon_loop *loop, size_t index);
const struct cordon_loop_summary *cordon_loop_summary(const struct cordon_loop *loop);
const struct cordon_loop_options *cordon_loop_options(const struct cordon_loop *loop);
/* The directory with journal, logs and results. */
const char *cordon_loop_dir(const struct cordon_loop *loop);
/* An estimate of the ms that are left, from the mean of the calls so far; -1 when nothing is known yet. */
int64_t cordon_loop_estimate(const struct cordon_loop *loop);

#endif
