/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts a plan and looks after it to the end.
 *
 *   cordon_launch()     clone into new namespaces; the child builds, forks the agent and stays as PID 1
 *   cordon_supervise()  time-out, signals, terminal, watch, limits; returns when nothing of the run is left
 *
 * The calling process becomes the supervisor: signals are handled through it, and its death ends the run.
 */
#ifndef CORDON_SANDBOX_LAUNCH_H
#define CORDON_SANDBOX_LAUNCH_H

#include <poll.h>
#include <sys/resource.h>
#include <time.h>

#include "sandbox/inside.h"
#include "sandbox/plan.h"

typedef enum cordon_run_state {
	CORDON_STATE_COMPLETED, /* exit code 0 */
	CORDON_STATE_FAILED,	/* another exit code, or a signal */
	CORDON_STATE_TIMEOUT,
	CORDON_STATE_CANCELLED,
	CORDON_STATE_REFUSED, /* the agent never ran */
	CORDON_STATE__MAX
} cordon_run_state;

/* What happens during a run, for whoever records and prints it. Strings are borrowed. */
typedef enum cordon_event_kind {
	CORDON_EVENT_VIOLATION, /* an access outside the scope: op, path, decision */
	CORDON_EVENT_UNTOLD,	/* so many (count) violations more, without a report each */
	CORDON_EVENT_LOST,	/* a protected mount dissolved: path; `held` when it was bound again */
	CORDON_EVENT_MADE,	/* a guarded name came to be: path; by_agent; `held` when it was taken away or bound */
	CORDON_EVENT_LIMIT,	/* op: "memory", "pids", "timeout" */
	CORDON_EVENT_HARD_LINK, /* a protected file was copied apart from other names: path */
	CORDON_EVENT_STARTED,	/* the agent's program runs */
} cordon_event_kind;

struct cordon_event {
	cordon_event_kind kind;
	const char *op;
	const char *path;
	const char *rule;
	cordon_verdict verdict;
	cordon_reason reason;
	bool by_agent;
	bool held;
	unsigned int count; /* how often, for folded repetitions; at least 1 */
};

#define CORDON_OBSERVER_FDS 48

/* One path that a call is about to act on or look at, as it is before the call; for whoever learns from a run. */
struct cordon_sight {
	const char *op;	    /* of watch_calls.h */
	cordon_place place; /* never unresolvable */
	const char *path;   /* inside: relative to the root, "" is the root; else absolute on the host. Resolved. */
	bool writes;
	bool creates; /* a name may come to be */
	bool linked;  /* a symbolic link was on the way */
	mode_t type;  /* S_IFMT of what is there; 0: nothing */
};

struct cordon_observer {
	void (*event)(void *data, const struct cordon_event *event);
	void *data;
	/*
	 * Descriptors of the caller's own that the supervisor's loop waits for as well; both are NULL when there are none.
	 * fds() fills at most CORDON_OBSERVER_FDS and returns how many. serve() gets them back after every wait, and returns
	 * true to end the run as a SIGTERM would; a second time kills it.
	 */
	size_t (*fds)(void *data, struct pollfd *ret_fds);
	bool (*serve)(void *data, const struct pollfd *fds, size_t n);
	/* NULL, or told of a program that entered (enter.h): its wait status, or why it could not be started. */
	void (*left)(void *data, uint32_t number, int status, const struct cordon_error *why);
	/* NULL, or told of every path before the call goes on. The run is then watched with CORDON_SECCOMP_LEARN. */
	void (*sight)(void *data, const struct cordon_sight *sight);
};

struct cordon_child {
	const struct cordon_plan *plan;
	const struct cordon_policy *policy;
	pid_t pid; /* PID 1 of the sandbox, as we see it */
	int pidfd;
	int ctl;
	int exec_fd;	   /* at its end once the agent's program was started or could not be; then -1 */
	int quarantine_fd; /* directory for what is taken away, or -1 */
	struct cordon_limits_state limits;
	enum cordon_seccomp_variant variant;
	unsigned int landlock_abi;
	bool terminal[3];
	struct timespec started;
};

struct cordon_result {
	cordon_run_state state;
	int exit_code; /* of the agent; -1 when it was killed by a signal or never ran */
	int signal;    /* or 0 */
	struct timespec started;
	struct timespec ended;
	uint64_t duration_ms;
	struct rusage usage;
	unsigned int violations;
	unsigned int protected_lost;
	unsigned int protected_made;
	struct cordon_limits_hits hits;
	struct cordon_error error; /* why it was refused */
	int own_exit;		   /* what `cordon run` exits with */
};

/* Whether the namespaces of a sandbox can be made here, by making them. 0 or -errno. */
int cordon_namespaces_probe(void);

/* `quarantine_fd` is borrowed. On failure nothing of the run is left. */
int cordon_launch(const struct cordon_plan *plan, const struct cordon_policy *policy, int quarantine_fd,
		  const struct cordon_observer *observer, struct cordon_child *ret_child, struct cordon_error *err);
/* Waits for the end and cleans up; always fills *ret_result. Releases the child. */
void cordon_supervise(struct cordon_child *child, const struct cordon_observer *observer,
		      struct cordon_result *ret_result);

const char *cordon_state_name(cordon_run_state state);

#endif
