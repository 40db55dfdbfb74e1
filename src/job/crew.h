/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A crew runs many jobs at once, for the front ends. It prints nothing and knows no command-line options.
 *
 *     owner (a front end: one thread, one poll loop)
 *      ├─ fork ──► supervisor of job 0 ── cordon_view_run() ──► sandbox
 *      ├─ fork ──► supervisor of job 1 ── cordon_view_run() ──► sandbox   at most max_concurrent at a time
 *      └─ jobs 2, 3, ... wait in a queue and start in the order in which they were added
 *
 * Every job that has started has a supervisor: a process of its own, in a session of its own, without the owner's
 * descriptors. It reports to the owner over a socket, and it writes everything to disk. The owner reads the result of
 * a job from the same file as any other process.
 *
 *     state/crew/<uuid>/crew.json      what the crew is: label, bound, detached or not
 *     state/crew/<uuid>/jobs           the names of the jobs, one per line, in the order of their indices
 *     state/crew/<uuid>/owner          a FIFO that the owner has open and locked until it ends
 *     state/crew/<uuid>/cancel/<n>     somebody wants job n cancelled; `all`: every job of the crew
 *     state/crew/<uuid>/<n>/alive      a FIFO that the supervisor of job n has open and locked until it ends
 *     state/crew/<uuid>/<n>/job.json   written when the program runs: command, root, hosts, shares
 *     state/crew/<uuid>/<n>/policy     its policy, as policy/handover.h writes it
 *     state/crew/<uuid>/<n>/result.json  written when it has ended: the result as `cordon run --json` prints it, and more
 *     state/crew/<uuid>/<n>/events     what it wrote and what happened, a ring (job/log.h)
 *
 * A process lives while it holds the lock of its FIFO; process ids are never used for this. A byte in the FIFO makes
 * the process look at cancel/. Directories are 0700 and files 0600, and no sandbox shows state/: a crew uses nothing
 * that an agent can write, and no agent can reach a FIFO.
 *
 * When the owner dies, however it dies, the jobs of a detached crew run on to their end. Supervisors of any other crew
 * cancel their jobs, and the results say so. Jobs that were still queued never start, and count as lost. When a
 * supervisor dies, the kernel kills its sandbox, and the job is lost.
 */
#ifndef CORDON_JOB_CREW_H
#define CORDON_CREW_KEEP_MS ((uint64_t)cordon_state_kinds[CORDON_STATE_KIND_CREWS].keep_ms)
#define CORDON_JOB_CREW_H

#include <jansson.h>

#include "base/home.h"
#include "config/values.h"
#include "state/kinds.h"

#define CORDON_CREW_CONCURRENT_MAX 64
#define CORDON_CREW_JOBS_MAX 10000
#define CORDON_CREW_NAME_MAX 64	    /* bytes of a job's name */
#define CORDON_CREW_LABEL_MAX 256   /* bytes of a crew's label */
#define CORDON_CREW_PIECE_MAX 32768 /* bytes of output in one call */
#define CORDON_CREW_TICK_MS 250
#define CORDON_CREW_ALL SIZE_MAX /* in the place of an index: every job */

typedef enum cordon_job_state {
	CORDON_JOB_QUEUED,
	CORDON_JOB_STARTING, /* it has a supervisor, and its program does not run yet */
	CORDON_JOB_RUNNING,
	CORDON_JOB_COMPLETED, /* this and the next four are the states of cordon_run_state */
	CORDON_JOB_FAILED,
	CORDON_JOB_TIMEOUT,
	CORDON_JOB_CANCELLED,
	CORDON_JOB_REFUSED,
	CORDON_JOB_LOST, /* its supervisor died, or its owner did before it started */
	CORDON_JOB__MAX
} cordon_job_state;

/* Returns "queued", "starting", "running", "lost", or a name that cordon_state_name() returns. */
const char *cordon_job_state_name(cordon_job_state state);
bool cordon_job_state_ended(cordon_job_state state);

/* The state of a job. It has no pointers, so it can be copied freely. */
struct cordon_job {
	size_t index;
	char name[CORDON_CREW_NAME_MAX + 1];
	cordon_job_state state;
	char run_id[CORDON_RUN_ID_SIZE]; /* "" until it is known; names the run in the audit log */
	int exit_code; /* of the program; -1 when it was killed by a signal, never ran, or has not ended */
	int signal;    /* or 0 */
	int own_exit;  /* what `cordon run` would exit with; -1 until the job has ended */
	unsigned int violations;
	int64_t started, ended; /* ms since 1970; 0 when it has not started or ended, or the time is not known */
	cordon_kind kind;	/* of the error, when the run was refused or ended by an error of ours; else none */
	char message[768];	/* of the same error; else "" */
};

/* The functions that report to the front end. Each may be NULL. They are called only from within cordon_crew_serve()
 * and cordon_crew_wait(), one at a time, in the order in which reports arrive. They may add and cancel jobs. */
struct cordon_crew_observer {
	void *data;
	/* The state of a job has changed. */
	void (*state)(void *data, const struct cordon_job *job);
	/* Something happened in its run: a violation, a limit, a boundary, ... The strings are valid during the call
	 * only; `result` and `why` are not set. */
	void (*event)(void *data, size_t index, const struct cordon_event *event);
	/* The program wrote to its standard output (1) or error (2). The bytes may be any, but no UTF-8 character is
	 * split. */
	void (*output)(void *data, size_t index, int stream, const char *bytes, size_t n);
	/* cordon_crew_wait() has handled what there was. It calls this at least every CORDON_CREW_TICK_MS. */
	void (*tick)(void *data);
};

struct cordon_crew_options {
	const char *label;	     /* for people: UTF-8 without control characters, or NULL; copied */
	unsigned int max_concurrent; /* 1 to CORDON_CREW_CONCURRENT_MAX */
	bool detached;	 /* jobs outlive the owner; their output goes to their logs only, so they never wait for it */
	bool repeatable; /* after a power cut nobody asks for results: the work is done again. They are not synced */
	struct cordon_crew_observer observer;
};

/* Describes a job. */
struct cordon_job_spec {
	const char *name; /* copied; 1 to 64 of A-Z a-z 0-9 . _ - and blanks, but no blank first or last; unique in the crew */
	/*
	 * The struct is copied. What it points to (policy, argv, env, and the other strings) stays the caller's,
	 * unchanged, until the job has left the state `queued` or the crew is freed. Several jobs may share a policy:
	 * each supervisor has a copy of the memory. `terminal` must be false.
	 */
	struct cordon_run_spec run;
	bool cow;	     /* works in a copy-on-write view of its own; the result names it */
	cordon_git_mode git; /* what it may do with the repository; the result says what became of commits */
	int input;	     /* becomes the standard input; stays the caller's, and open as long; 0: /dev/null */
};

struct cordon_crew;

/* Adds the descriptors that a run with this policy needs to the `*n` that are in `kept`, as far as there is room for
 * `max`: for an owner that closes all others. */
void cordon_crew_needs(const struct cordon_policy *policy, int *kept, size_t max, size_t *n);

/* Makes a crew with its directory. The caller becomes the owner: it must have no other threads, and descriptors 0 to 2
 * must be open, whatever they are. */
int cordon_crew_new(const struct cordon_crew_options *options, struct cordon_crew **ret_crew, struct cordon_error *err);
/*
 * Ends the ownership, as the death of the owner would. Waits for nothing. A process that does not exit afterwards
 * should first serve the crew until it is no longer busy, because the supervisors are its children and it must wait for
 * them. Accepts NULL; always returns NULL.
 */
struct cordon_crew *cordon_crew_free(struct cordon_crew *crew);
/* A UUID. */
const char *cordon_crew_id(const struct cordon_crew *crew);

/* Puts a job at the end of the queue. kind usage for a bad name or spec, conflict for a name that is taken, limit when
 * the crew is full. */
int cordon_crew_add(struct cordon_crew *crew, const struct cordon_job_spec *job, size_t *ret_index,
		    struct cordon_error *err);
size_t cordon_crew_count(const struct cordon_crew *crew);
/* The state of a job of this crew. `index` is below the count. */
void cordon_crew_job(const struct cordon_crew *crew, size_t index, struct cordon_job *ret_job);
/* Returns -ENOENT (kind not_found) when there is no such job. */
int cordon_crew_find(const struct cordon_crew *crew, const char *name, size_t *ret_index, struct cordon_error *err);

/* Returns one descriptor for all jobs. The caller polls it for POLLIN and then calls cordon_crew_serve(), which starts
 * queued jobs while there are free places, handles what supervisors have reported, and never waits for a job. */
int cordon_crew_fd(const struct cordon_crew *crew);
void cordon_crew_serve(struct cordon_crew *crew);
/* Whether a job is queued, starting or running. */
bool cordon_crew_busy(const struct cordon_crew *crew);
/* Serves until the crew is not busy, for a front end without a loop of its own. SIGINT, SIGTERM or SIGHUP cancels all
 * jobs, and a second such signal kills them. *ret_signal (may be NULL) is the first signal, or 0. */
int cordon_crew_wait(struct cordon_crew *crew, int *ret_signal, struct cordon_error *err);

/*
 * Cancels one job or CORDON_CREW_ALL. A queued job never starts; a job that runs gets SIGTERM, and SIGKILL after its
 * grace time. May be called again, and for a job that has ended, which keeps its result. Once all were cancelled, the
 * crew starts nothing more: a job that is added later is cancelled too. The observer gets the new states from
 * cordon_crew_serve().
 */
void cordon_crew_cancel(struct cordon_crew *crew, size_t index);
/* The same without the grace time. */
void cordon_crew_kill(struct cordon_crew *crew, size_t index);

/*
 * ---- for any process of the same user, whether the owner lives or not ----
 *
 * Errors: kind usage for an id that is not a UUID, not_found for a crew or a job that does not exist.
 */

struct cordon_crew_info {
	char id[CORDON_UUID_SIZE];
	char label[CORDON_CREW_LABEL_MAX + 1];
	int64_t created; /* ms since 1970 */
	unsigned int max_concurrent;
	bool detached;
	bool owned; /* the owner lives */
};

/* Lists the crews, oldest first; the caller frees the array. */
int cordon_crew_list(const struct cordon_home *home, struct cordon_crew_info **ret_crews, size_t *ret_n,
		     struct cordon_error *err);
/* Whether something of the crew goes on: its owner lives, or a job that outlived it. */
bool cordon_crew_runs(const struct cordon_home *home, const struct cordon_crew_info *crew);
/* Reads a crew and the states of its jobs, in the order of their indices; the caller frees the array. */
int cordon_crew_read(const struct cordon_home *home, const char *id, struct cordon_crew_info *ret_crew,
		     struct cordon_job **ret_jobs, size_t *ret_n, struct cordon_error *err);
/* Reads the log of a job, as cordon_job_log_read() does; an empty array before the job has started. */
int cordon_crew_log(const struct cordon_home *home, const char *id, size_t index, int64_t since, size_t max,
		    json_t **ret_events, int64_t *ret_last, int64_t *ret_dropped, struct cordon_error *err);
/* Reads what a job that has started is: an object with name, run_id, command, started_at, root, net and
 * shares[{path, source, read_only}]. -ENOENT (kind not_found) before its program runs. */
int cordon_crew_record(const struct cordon_home *home, const char *id, size_t index, json_t **ret_record,
		       struct cordon_error *err);
/* The policy of such a job, without its shares and hosts, for the root as it is now. The caller frees it. */
int cordon_crew_policy(const struct cordon_home *home, const char *id, size_t index, struct cordon_policy **ret_policy,
		       struct cordon_error *err);
/* Reads the whole result of a job that has ended; -ENOENT (kind not_found) for any other job, and for one that was
 * lost. */
int cordon_crew_result(const struct cordon_home *home, const char *id, size_t index, json_t **ret_result,
		       struct cordon_error *err);
/* Cancels as cordon_crew_cancel() does; `name` NULL means all jobs. Does not wait until the jobs have ended. */
int cordon_crew_cancel_by_name(const struct cordon_home *home, const char *id, const char *name,
			       struct cordon_error *err);
/* Removes the crews of which no process lives and in which nothing has happened for max_age_ms. *ret_live counts the
 * crews of which a process lives. */
int cordon_crew_gc(const struct cordon_home *home, uint64_t max_age_ms, size_t *ret_removed, size_t *ret_live,
		   struct cordon_error *err);

#endif
