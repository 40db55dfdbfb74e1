/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libcordon: ask what a policy says about a path, and run a program under a policy.
 *
 * A policy belongs to one root directory. It has grants (a pattern below the root and rights),
 * protected paths and a mode. cordon_policy_check() resolves a path the way the kernel would, and
 * judges the result by component, never by string prefix. cordon_run() runs a program in a sandbox
 * that enforces the policy; cordon_run_plan() says what it would enforce.
 *
 * Conventions. A function returns 0 or a negative errno; it does not change its outputs on failure;
 * `err` may be NULL. Nothing here prints, exits or logs. Several threads may read a policy when no
 * thread changes it any more.
 */
#ifndef CORDON_H
#define CORDON_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CORDON_API __attribute__((visibility("default")))

/* Named maxima for what a user controls. */
#define CORDON_PATH_MAX 4096
#define CORDON_PATTERN_MAX 4096
#define CORDON_GRANTS_MAX 4096
#define CORDON_OBSERVER_FDS 48
#define CORDON_RUN_ID_SIZE 37 /* a UUID and its NUL */

/* The stable vocabulary of failures; cordon_kind_name() gives the word used in JSON. */
typedef enum cordon_kind {
	CORDON_KIND_NONE,
	CORDON_KIND_USAGE,
	CORDON_KIND_CONFIG,
	CORDON_KIND_POLICY_DENIED,
	CORDON_KIND_KERNEL_UNSUPPORTED,
	CORDON_KIND_NOT_FOUND,
	CORDON_KIND_CONFLICT,
	CORDON_KIND_LIMIT,
	CORDON_KIND_IO,
	CORDON_KIND_INTERNAL,
	CORDON_KIND__MAX
} cordon_kind;

/* The caller provides it, usually on the stack; start from `struct cordon_error err = {0};`. */
struct cordon_error {
	int code;	   /* negative errno; 0 when there is no error */
	cordon_kind kind;  /* what kind of failure */
	char message[768]; /* one line: what failed and on which object, control characters escaped */
	char where[512];   /* "file:line:column" or "", for configuration */
	char hint[384];	   /* what to do about it, or "" */
};

typedef enum cordon_access { CORDON_ACCESS_NONE, CORDON_ACCESS_READ, CORDON_ACCESS_WRITE } cordon_access;
typedef enum cordon_op { CORDON_OP_READ, CORDON_OP_WRITE } cordon_op;
typedef enum cordon_mode { CORDON_MODE_STRICT, CORDON_MODE_PERMISSIVE } cordon_mode;
typedef enum cordon_verdict { CORDON_ALLOW, CORDON_WARN, CORDON_DENY } cordon_verdict;

/* Which kind of rule decided. */
typedef enum cordon_reason {
	CORDON_REASON_GRANT,	    /* the most specific matching grant */
	CORDON_REASON_DENY,	    /* a `none` grant, which always wins */
	CORDON_REASON_PROTECTED,    /* a protected path or something below one */
	CORDON_REASON_NO_GRANT,	    /* inside the root, no grant matches */
	CORDON_REASON_OUTSIDE_ROOT, /* resolves to a place outside the root */
	CORDON_REASON_UNRESOLVABLE, /* a loop of links, or a name that can't exist */
	CORDON_REASON_NO_HOST,	    /* no rule of the list allows the host on this port */
	CORDON_REASON_OTHER_HOST,   /* the stream named another host than the one that was looked up */
	CORDON_REASON_NOT_PUBLIC,   /* the host has an address that is not public, and no rule names it */
	CORDON_REASON_HIDDEN_HOST,  /* the stream hides which host it is for: an encrypted client hello */
	CORDON_REASON__MAX
} cordon_reason;

struct cordon_decision {
	cordon_verdict verdict;
	cordon_reason reason;
	cordon_access access;		/* the rights that the path has under the policy, whatever was asked */
	const char *rule;		/* text of the deciding pattern or path, or NULL; it belongs to the policy */
	const char *rule_where;		/* "file:line:column" or the option it came from, or NULL */
	const char *fence;		/* name of the fence that decided, NULL when the policy itself did */
	char resolved[CORDON_PATH_MAX]; /* relative to the root ("" is the root), absolute when outside */
};

struct cordon_policy;

/* The path of the root may contain symbolic links. The root is opened here, and only once. */
CORDON_API int cordon_policy_new(const char *root, struct cordon_policy **ret_policy, struct cordon_error *err);
/* Accepts NULL; always returns NULL. */
CORDON_API struct cordon_policy *cordon_policy_free(struct cordon_policy *policy);

/* Adds a grant. A bad pattern is an error that names the column; it is never skipped. */
CORDON_API int cordon_policy_grant(struct cordon_policy *policy, const char *pattern, cordon_access access,
				   struct cordon_error *err);
/* Grants write access to each folder of a comma-separated list (blanks around entries are dropped, `\,` is a
 * comma). Folders are resolved first: each must exist and lie inside the root. */
CORDON_API int cordon_policy_grant_folders(struct cordon_policy *policy, const char *folders, struct cordon_error *err);
/* Protects a path relative to the root against every change; a trailing slash is ignored. */
CORDON_API int cordon_policy_protect(struct cordon_policy *policy, const char *path, struct cordon_error *err);
/* Strict wins: a policy inside a strict fence is strict, whatever its own mode is. */
CORDON_API void cordon_policy_set_mode(struct cordon_policy *policy, cordon_mode mode);
/* Puts `policy` inside another policy of the same root: from now on the answer is the stricter of both. Decisions call
 * the fence `name`. The fence belongs to the policy afterwards, or is freed when this fails. */
CORDON_API int cordon_policy_fence(struct cordon_policy *policy, const char *name, struct cordon_policy *fence,
				   struct cordon_error *err);
/* 0 when `child` allows nothing that `parent` does not allow; its root is that of the parent or lies below it. Else
 * -EPERM, and `err` names in one line the shortest path that is freer, or the host or share. Patterns are compared exactly, as
 * sets of paths; what would be too large for that is refused with -E2BIG, and rules that are not UTF-8 with -EILSEQ. */
CORDON_API int cordon_policy_within(const struct cordon_policy *child, const struct cordon_policy *parent,
				    struct cordon_error *err);
/* Adds hosts that a run may reach, separated by commas: `api.example.com:443`, `*.example.com`, `github.com:22/tcp`,
 * `localhost:5432`, `192.0.2.7:80`, `[2001:db8::1]:443`; the port is 443 when none is given. From the first call on the
 * run reaches these hosts and no others; "" adds none. A policy without a list does not limit the network. */
CORDON_API int cordon_policy_allow_hosts(struct cordon_policy *policy, const char *hosts, struct cordon_error *err);
/* Adds what a cordon.yaml or .json file says. On failure `err` has the first error and the policy is unchanged. */
CORDON_API int cordon_policy_load(struct cordon_policy *policy, const char *file, struct cordon_error *err);

/* Resolves `path` (relative to the root, or absolute) and decides. A denial is a decision, not an error. */
CORDON_API int cordon_policy_check(const struct cordon_policy *policy, const char *path, cordon_op op,
				   struct cordon_decision *ret_decision, struct cordon_error *err);
/* Decides whether a run may reach HOST[:PORT]; `resolved` is the host in the form of rules. No name is looked up. */
CORDON_API int cordon_policy_check_host(const struct cordon_policy *policy, const char *host,
					struct cordon_decision *ret_decision, struct cordon_error *err);

/*
 * ---- running a program ----
 */

typedef enum cordon_net { CORDON_NET_HOST, CORDON_NET_NONE } cordon_net;
/* Whether cordon-lens judges names at every operation, or only where a pattern needs it. */
typedef enum cordon_lens_use { CORDON_LENS_AUTO, CORDON_LENS_ALWAYS, CORDON_LENS_NEVER } cordon_lens_use;

/* What a run asks for. Start from zeroes and set policy and argv. Everything is borrowed until the run has ended. */
struct cordon_run_spec {
	struct cordon_policy *policy; /* do not change it or use it for another run meanwhile */
	char *const *argv;	      /* ends with NULL */
	const char *at;		      /* where the program sees the root; NULL: the same path */
	const char *cwd;	      /* host directory to start in, NULL: the current; outside the root: the root */
	char *const *env;	      /* "NAME=VALUE", in addition to the few that every run has */
	size_t n_env;
	/* Variables to take over from our own environment, beside TERM and LANG; "NPM_*" means all that begin so. */
	char *const *keep_env;
	size_t n_keep_env;
	size_t n_asked_env; /* of keep_env the first ones, which a person asked for: if one is missing, that is a violation */
	char *const *home_env; /* "NAME=PATH", a path below the run's home; those of env win over these */
	size_t n_home_env;
	const char *path; /* directories that come first in PATH, separated by colons; NULL: none */
	/* A copy-on-write view: an absolute path of a directory of the caller's with the empty directories "upper" and
	 * "work" in it, outside the root. What the run changes in the root goes to "upper" (an upper layer of
	 * overlayfs), and the host's tree stays as it is. NULL: the run changes the root itself. */
	const char *view;
	/* Absolute paths of such upper layers that lie between the view and the root, the topmost first. */
	char *const *view_layers;
	size_t n_view_layers;
	cordon_net net;
	cordon_lens_use lens;
	uint64_t memory_bytes; /* limits of the whole run; 0 means no limit, here and below */
	uint64_t pids;	       /* processes and threads; at most 4,194,304 */
	uint64_t cpu_millis;   /* 1500 is one processor and a half */
	uint64_t tmp_bytes;    /* size of the private file systems; 0: 2 GiB */
	uint64_t nice;	       /* nice value of its processes, at most 19; one below our own has no effect */
	uint64_t timeout_ms;
	uint64_t grace_ms;	/* between SIGTERM and SIGKILL; 0: 5 s */
	bool terminal;		/* give the program a terminal of its own for the streams that are terminals */
	bool best_effort;	/* run with fewer layers when the kernel lacks some */
	bool fail_on_violation; /* a run that completes but had a violation has failed */
	bool measure;		/* find out what cordon itself costs; the result has it */
	bool learns;		/* show the host read-only and without secrets, and discard what is written there */
	bool enterable;		/* more programs may be started inside later, as cordon's sessions do */
	const char *agent;	/* a named agent: its environment has nothing of ours. NULL: none */
	const char *agent_role;
	bool in_temp;		/* start in the private temporary directory, wherever cwd is */
	const char *session_id; /* for the audit log; NULL: the run's own id. The next three may be NULL, too */
	const char *project_id;
	const char *workspace_id;
	const char *orchestrator_id;
	bool leave_init; /* cordon_run() may return while PID 1 of the run still ends; then the result's `init` is to be waited for */
};

typedef enum cordon_run_state {
	CORDON_STATE_COMPLETED, /* exit code 0 */
	CORDON_STATE_FAILED,	/* another exit code, or a signal */
	CORDON_STATE_TIMEOUT,
	CORDON_STATE_CANCELLED,
	CORDON_STATE_REFUSED, /* the program never ran */
	CORDON_STATE__MAX
} cordon_run_state;

/* Which system calls of the run are watched. TRIPWIRES: those that change something, and reading what a rule hides. */
typedef enum cordon_watching {
	CORDON_WATCHING_NOTHING,
	CORDON_WATCHING_CHANGES,
	CORDON_WATCHING_ALL,
	CORDON_WATCHING_TRIPWIRES
} cordon_watching;

struct cordon_plan;
struct cordon_repositories;

/* How a run went. Needs cordon_result_done(). */
struct cordon_result {
	char run_id[CORDON_RUN_ID_SIZE];  /* "" when the run was refused before it got one */
	char view_id[CORDON_RUN_ID_SIZE]; /* the last name of the spec's view; "" when it has none, or changed nothing */
	cordon_run_state state;
	int exit_code; /* of the program; -1 when it was killed by a signal or never ran */
	int signal;    /* or 0 */
	int own_exit;  /* the exit status of `cordon run` */
	struct timespec started;
	struct timespec ended;
	uint64_t duration_ms;
	struct rusage usage;
	bool launched; /* the sandbox was built; else the five fields below mean nothing */
	unsigned int landlock_abi;
	cordon_watching watching;
	const char *memory_by, *pids_by, *cpus_by; /* what enforces each limit ("cgroup2", "watcher", ...), or NULL */
	bool hit_memory, hit_pids;		   /* limits that the run has reached */
	bool hit_outer_memory; /* the kernel killed a process of the run for memory, and not for the run's own limit */
	bool hit_tmp;	       /* the private file systems had no room left at the end */
	const char *limit;     /* what ended the run: "memory", "outer_memory" or "timeout"; or NULL */
	bool changed;	       /* the run may have changed files: the watch saw such a call, or was off */
	unsigned int violations;     /* refusals and warnings, as far as they were watched */
	unsigned int discarded;	     /* files that were in the private home at the end, up to 10,000 */
	unsigned int protected_lost; /* boundaries that the host replaced */
	unsigned int protected_made; /* boundaries that the host made */
	bool failed_on_violation;
	bool offline;		   /* the helper of a list of hosts ended before the run, which then reached nothing */
	bool mid_line;		   /* the last line on standard error has no end, as far as it went through us */
	uint64_t unrecorded;	   /* events that could not be written to the audit log */
	struct cordon_error error; /* why it was refused, or why cordon itself had to end it */
	struct cordon_plan *plan;  /* what was enforced; NULL when there was no plan; owned by the result */
	struct cordon_metrics *metrics; /* what cordon itself cost, when the run was to be measured; else NULL; owned */
	struct cordon_repositories *repositories; /* what git would execute of what the run left, or NULL; owned */
	char *git;  /* what became of its commits, a JSON object; NULL when nothing was looked at; owned */
	pid_t init; /* our child that is ending, for the caller to wait for; 0 unless the spec has `leave_init` */
};

/* What happens during a run, and which fields of the event say more. Strings are borrowed. */
typedef enum cordon_event_kind {
	/* An access outside the scope: op, path, and the decision: verdict to fence. With the op "env": a variable, path, that was
	 * asked for and is not there. */
	CORDON_EVENT_VIOLATION,
	CORDON_EVENT_UNTOLD,	/* more violations, which are not reported one by one: count */
	CORDON_EVENT_LOST,	/* the host replaced what has a boundary's name: path; `held` when in force again */
	CORDON_EVENT_MADE,	/* the host made the name of a boundary: path; `held` when in force now */
	CORDON_EVENT_LIMIT,	/* the run has reached a limit: op, limit */
	CORDON_EVENT_HARD_LINK, /* a protected file with other names was replaced by a copy of its own: path */
	CORDON_EVENT_STARTED,	/* the program runs: result, as far as it is known */
	CORDON_EVENT_SCREEN,	/* a full-screen program has left the terminal's alternate screen */
	CORDON_EVENT_LEFT,	/* a program that was started later has ended: number; status, or why it never ran */
	CORDON_EVENT_OFFLINE, /* the helper of a list of hosts has ended, and nothing can be reached: status, or why */
	CORDON_EVENT_REACHED, /* when the observer wants it: a host of the list was connected to: path */
} cordon_event_kind;

struct cordon_event {
	cordon_event_kind kind;
	const char *op;
	const char *path;
	const char *rule;
	cordon_verdict verdict;
	cordon_reason reason;
	const char *rule_where, *fence; /* as in struct cordon_decision */
	bool held;
	bool denied;	    /* MADE, LOST: the boundary hides what is there, instead of making it read-only */
	unsigned int count; /* how often it happened; at least 1 */
	/* LIMIT: its value; op is "memory" or "tmp" (bytes), "tmp_files" (files), "pids", "timeout" (milliseconds) or
	 * "move" (entries of the directory `path` of a view, which was not renamed). */
	uint64_t limit;
	const struct cordon_result *result;
	uint32_t number;
	int status; /* as of waitpid() */
	const struct cordon_error *why;
};

typedef enum cordon_place {
	CORDON_PLACE_INSIDE,
	CORDON_PLACE_OUTSIDE,
	CORDON_PLACE_UNRESOLVABLE, /* a loop of links, a name too long, an empty path */
} cordon_place;

/* One path that a call is about to act on or look at; it describes the path before the call. */
struct cordon_sight {
	const char *op;	    /* "read", "write", "create", "delete", "rename", ... */
	cordon_place place; /* never unresolvable */
	const char *path;   /* inside: relative to the root, "" is the root; else absolute on the host. Resolved. */
	bool writes;
	bool creates; /* the call may make this name */
	bool linked;  /* the path leads through a symbolic link */
	mode_t type;  /* the S_IFMT bits of what exists there; 0: nothing */
};

struct cordon_child;

/* The functions that a caller wants to be called while a program runs. Each may be NULL; they are called one at a
 * time. */
struct cordon_observer {
	void *data;
	/* The plan is built and nothing has begun. A negative errno, with *err filled, refuses the run. */
	int (*planned)(void *data, const struct cordon_plan *plan, struct cordon_error *err);
	/* The sandbox is being built. The child may be used until the run has ended. */
	void (*launched)(void *data, struct cordon_child *child);
	void (*event)(void *data, const struct cordon_event *event);
	/*
	 * The run's loop also waits for descriptors of the caller. fds() fills at most CORDON_OBSERVER_FDS and returns
	 * how many. serve() gets them back after every wait; it returns true to end the run as a SIGTERM would, and a
	 * second true kills the run.
	 */
	size_t (*fds)(void *data, struct pollfd *ret_fds);
	bool (*serve)(void *data, const struct pollfd *fds, size_t n);
	/* Gets every path before its call continues. When it is set, all accesses of the run are watched, which costs
	 * time. */
	void (*sight)(void *data, const struct cordon_sight *sight);
	bool reached; /* also report hosts of a list that were connected to, as `sight` does */
};

/*
 * Runs a program to its end. The calling process becomes its supervisor: it must have no other threads, it handles
 * signals for the run, and its death ends the run. The audit log of $CORDON_HOME records what happens; nothing is
 * printed. `observer` may be NULL. Returns 0 when the sandbox was launched, however the program ended, and -errno when
 * the run was refused before. *ret_result is filled in both cases.
 */
CORDON_API int cordon_run(const struct cordon_run_spec *spec, const struct cordon_observer *observer,
			  struct cordon_result *ret_result, struct cordon_error *err);
/* Accepts a result of zeroes. */
CORDON_API void cordon_result_done(struct cordon_result *result);
/* The result as `cordon run --json` prints it; NULL when there is no memory. Free it with free(). */
CORDON_API char *cordon_result_to_json(const struct cordon_result *result);

/* Plans such a run and says what it would enforce; changes nothing on the machine. */
CORDON_API int cordon_run_plan(const struct cordon_run_spec *spec, struct cordon_plan **ret_plan,
			       struct cordon_error *err);
/* Accepts NULL; always returns NULL. */
CORDON_API struct cordon_plan *cordon_plan_free(struct cordon_plan *plan);
/* The plan as `cordon run --dry-run` prints it, as text or as JSON; NULL when there is no memory. Free it with
 * free(). */
CORDON_API char *cordon_plan_to_text(const struct cordon_plan *plan);
CORDON_API char *cordon_plan_to_json(const struct cordon_plan *plan);

/* Protects what the host would execute later (git hooks, editor and agent settings), as every command of cordon does. */
CORDON_API int cordon_policy_protect_defaults(struct cordon_policy *policy, struct cordon_error *err);

/* Words that stay the same in every version: "usage", "allow", "grant", "completed", ... */
CORDON_API const char *cordon_kind_name(cordon_kind kind);
CORDON_API const char *cordon_verdict_name(cordon_verdict verdict);
CORDON_API const char *cordon_reason_name(cordon_reason reason);
CORDON_API const char *cordon_state_name(cordon_run_state state);
CORDON_API const char *cordon_version(void);

#ifdef __cplusplus
}
#endif
#endif
