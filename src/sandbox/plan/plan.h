/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plan says, as pure data, what a run will enforce. cordon_plan_build() makes it from a run specification,
 * `--dry-run` prints it, and the child of cordon_launch() applies it between clone and exec, where it may not allocate
 * memory.
 *
 * INVARIANT: nobody writes to a plan after it was built. The code that changes something during a run keeps that state
 * itself.
 *
 * Ownership: every string and array of a plan lives in the plan's arena and dies with cordon_plan_free().
 */
#ifndef CORDON_SANDBOX_PLAN_PLAN_H
#define CORDON_SANDBOX_PLAN_PLAN_H

#include <sys/types.h>
#include <time.h>

#include "base/buf.h"
#include "config/values.h"
#include "policy/net.h"
#include "policy/shares.h"
#include "sandbox/plan/layers.h"
#include "sandbox/plan/limits.h"

#define CORDON_MOUNTS_MAX 4096
#define CORDON_ENV_MAX 1024
#define CORDON_PLACEHOLDERS_MAX 256  /* per directory: names beside a granted folder that are shown as unreadable */
#define CORDON_OPEN_DIRS_MAX 48	     /* per held directory: subdirectories in which the agent itself makes entries */
#define CORDON_HELD_ENTRIES_MAX 4096 /* per directory of a boundary: what was in it at the start is known by number */
#define CORDON_AREAS_MAX 64
#define CORDON_GUARDS_MAX 4096
#define CORDON_NET_INJECT_PORT 900 /* of the first endpoint with a credential; a port that the agent can't bind */

/* The input of cordon_plan_build(). The caller keeps ownership of every pointer; the plan makes copies. */
struct cordon_plan_spec {
	const struct cordon_run_spec *run; /* the build adds protected names and grants to its policy */
	const char *run_id;
	cordon_tier tier;
	const char *tier_why;	   /* lower tier: why there is no full one, a clause */
	const char *tier_tmp;	   /* lower tier: the host directory that serves as /tmp and home */
	unsigned int landlock_abi; /* of this kernel; 0: none */
	const char *cwd;	/* the caller's directory on the host; the agent starts in it, if it lies in the root */
	const char *home_path;	/* canonical $CORDON_HOME, which the agent may never see; or NULL */
	const char *home_asked; /* $CORDON_HOME as the environment names it, maybe through links; or NULL */
};

#define CORDON_TMP_SIZE_DEFAULT ((uint64_t)2 << 30)
#define CORDON_GRACE_DEFAULT_MS 5000

/* What a Landlock rule allows at a path inside. The order of the values says nothing about their strength. */
typedef enum cordon_right {
	CORDON_RIGHT_NONE,
	CORDON_RIGHT_LIST,   /* list directories, nothing else */
	CORDON_RIGHT_READ,   /* read and execute */
	CORDON_RIGHT_WRITE,  /* read, write and execute; make, remove and rename entries */
	CORDON_RIGHT_DEVICE, /* read, write and control a device */
	CORDON_RIGHT__MAX
} cordon_right;

/*
 * One step of building the tree; the array has them in the order in which they are applied. All destinations are
 * absolute paths inside, which are opened beneath the new root without following links.
 */
typedef enum cordon_step_kind {
	CORDON_STEP_DIR,     /* make a directory in our own file system */
	CORDON_STEP_FILE,    /* make a file with `text` as content */
	CORDON_STEP_LINK,    /* make a link to `text` */
	CORDON_STEP_FREEZE,  /* make everything that was built so far read-only, nosuid and nodev */
	CORDON_STEP_BIND,    /* mount the host's `source`, which must still be the inode that the plan has seen */
	CORDON_STEP_PRIVATE, /* make our own directory a writable mount of its own */
	CORDON_STEP_MASK,    /* cover what is there with an empty, unreadable file or directory */
	CORDON_STEP_PIN,     /* make it impossible to rename or remove this entry of the workspace; it stays usable */
	CORDON_STEP_PROC,
	CORDON_STEP_DEVPTS,
	CORDON_STEP_MQUEUE, /* mount the POSIX message queues of the run's own ipc namespace */
	CORDON_STEP_LENS,   /* mount the workspace as cordon-lens shows it */
	CORDON_STEP_LAYER,  /* put an overlay here: writes go into the directory `source` of our own file system */
	CORDON_STEP_VIEW,   /* make the view: an overlay of `source`, from which later steps mount what lies in it */
	CORDON_STEP_RULE,   /* lower tier: add a Landlock rule on the host's own tree, without a mount */
	CORDON_STEP__MAX
} cordon_step_kind;

#define CORDON_STEP_READ_ONLY (1u << 0)
#define CORDON_STEP_IS_DEVICE (1u << 1) /* device nodes stay usable on this mount */
#define CORDON_STEP_PROTECT (1u << 2)	/* a protected path: PID 1 watches its mount and renews it when it is gone */
#define CORDON_STEP_IS_DIR (1u << 3)
#define CORDON_STEP_SYSTEM (1u << 4)   /* comes before CORDON_STEP_FREEZE, which makes it read-only */
#define CORDON_STEP_HELD (1u << 5)     /* its directory is a held one */
#define CORDON_STEP_SHARE (1u << 6)    /* a share; where its path lies in the workspace, that name is a boundary */
#define CORDON_STEP_IF_THERE (1u << 7) /* of a mask: it is no error when the name has gone since the plan was built */
#define CORDON_STEP_IN_ETC                                                                                             \
	(1u << 9) /* when the administrator replaced it since the plan was built, the new one will do */
#define CORDON_STEP_IN_VIEW (1u << 10)	 /* of a BIND: its source lies in the workspace, and comes from the view */
#define CORDON_STEP_TRIP (1u << 11)	 /* a node of the tripwires (tripwire.h) */
#define CORDON_STEP_NO_SOCKETS (1u << 8) /* the plan looked through all of it and found no socket and no FIFO */

struct cordon_step {
	cordon_step_kind kind;
	unsigned int flags;
	cordon_right right;
	mode_t mode;
	const char *path;   /* inside */
	const char *source; /* on the host, canonical; for PIN: relative to its area */
	const char *text;   /* of a BIND: a directory of the host of which the source has the changes (overlay.h) */
	size_t text_len;
	dev_t dev; /* identity of source when the plan was made */
	ino_t ino;
	size_t area; /* for PIN */
};

/* A tree of the host with boundaries in it: the workspace is the first area, writable shares follow. */
struct cordon_area {
	const char *source; /* on the host, canonical */
	const char *at;	    /* inside */
	dev_t dev;	    /* identity of source when the plan was made */
	ino_t ino;
	const struct cordon_policy *policy; /* says what is protected in it; borrowed until the run is launched */
};

/* Why a name is a boundary. */
typedef enum cordon_guard_kind {
	CORDON_GUARD_PROTECTED, /* the path is protected; the agent can read it */
	CORDON_GUARD_READ_ONLY, /* a narrower grant lets the agent only read it */
	CORDON_GUARD_DENIED,	/* the agent can't read it */
	CORDON_GUARD_SHARE,	/* a share is mounted here */
	CORDON_GUARD__MAX
} cordon_guard_kind;

typedef enum cordon_guard_state { CORDON_GUARD_PRESENT, CORDON_GUARD_ABSENT, CORDON_GUARD_LINK } cordon_guard_state;

/*
 * A boundary as the plan found it: a name that the agent may not make, move or replace. The agent has no right to make
 * entries in the directory where the name stands or would appear, nor in the directories above it (struct cordon_held).
 */
struct cordon_guard {
	const char *path;  /* relative to its area, as the user named it */
	size_t len;	   /* of path */
	uint64_t sum;	   /* of its bytes: most paths are told apart by it */
	const char *where; /* the setting or file that asked for it, or NULL */
	bool by_default;
	cordon_guard_kind kind;
	cordon_guard_state state;
	size_t area;
	const char *inside; /* where the agent sees it, or would */
	size_t inside_len;  /* of inside */
	const char *dir;    /* its deepest existing directory, inside */
	bool hard_links;    /* it had more than one name when the plan was built; the start makes a copy of its own */
};

/* A protected path that the agent does not see, and of which a file had more than one name when the plan was built: the
 * agent may see the other name, so the start makes a copy of its own. */
struct cordon_second_name {
	const char *path; /* relative to its area */
	size_t area;
};

/* A directory in which a boundary's name stands or would appear, or one above such a directory. Landlock withholds the
 * right to make, write and remove entries in it; the hand does it for those with other names (sandbox/inside/hand.h). */
struct cordon_held {
	const char *path; /* inside */
	dev_t dev;
	ino_t ino;
	int fd;		    /* open only while the plan is built, or -1 */
	bool boundary;	    /* the name of a boundary stands in this very directory, or would appear in it */
	bool git;	    /* it is, or lies in, a git directory of the host's */
	bool all_known;	    /* in a view: what is changed in it is not the host's */
	uint64_t *entries;  /* of a boundary's directory: the inode numbers of what was in it, sorted */
	uint64_t *names;    /* the sums of their names, sorted */
	size_t n_entries;   /* CORDON_HELD_ENTRIES_MAX: there may be more */
	uint64_t listed_ns; /* when they were listed: what was born later was not there */
};

/* A sum of a name, by which a name that stood in a directory at the start is known again. */
uint64_t cordon_held_name_sum(const char *name);

/* A directory in a held one that contains no boundary: the agent itself makes entries in it and below. In directories
 * beyond CORDON_OPEN_DIRS_MAX, and in those that are made during the run, the hand makes them. */
struct cordon_open_dir {
	const char *path; /* inside */
	dev_t dev;
	ino_t ino;
	bool no_links; /* it is part of a git directory */
};

struct cordon_plan {
	struct cordon_arena *arena;
	int slash_fd; /* the host's root directory; open only while the plan is built */
	int root_fd;  /* the workspace that the policy opened and judged; valid only while the plan is built */
	cordon_tier tier;
	const char *tier_why; /* lower tier: why there is no full one, a clause; else NULL */
	struct cordon_layers layers;
	const char *tmp; /* inside: the value of TMPDIR and TEMP_DIR */
	const char *run_id;
	const char *root; /* host, canonical */
	const char *at;	  /* inside */
	/* On the host: the directory that receives what the run changes in the workspace, with "upper" and "work" in it;
	 * NULL when the run changes the workspace itself. */
	const char *view;
	char **view_layers; /* upper layers between the view and the root, topmost first */
	size_t n_view_layers;
	struct timespec view_since; /* the program begins when the clock of file times has passed it */
	struct cordon_area areas[CORDON_AREAS_MAX];
	size_t n_areas;
	const char *cwd; /* inside */
	const char *hostname;
	const char *user;  /* the name of uid, for /etc/passwd and USER */
	const char *shell; /* the login shell, for /etc/passwd and SHELL; a program that the agent sees */
	const char *home;  /* inside */
	bool home_shown;   /* of a learning run: home is the user's own, under a layer that is discarded at the end */
	uid_t uid;
	gid_t gid;
	cordon_mode mode;
	bool lens;	/* the agent sees the workspace through cordon-lens */
	bool tripwires; /* reading what a rule hides is reported by tripwires (tripwire.h), and not by a trap */
	bool net_none;
	bool own_network; /* a network namespace of its own: with no network, and with a list of hosts */
	const struct cordon_net_list *net; /* the list of hosts that cordon-net serves: &net_list; or NULL */
	struct cordon_net_list net_list;
	/* What was asked for. Only numbers and flags are to be used: its pointers are the caller's. */
	struct cordon_run_spec asked;
	struct cordon_step *steps;
	size_t n_steps;
	size_t cap_steps;
	struct cordon_guard *guards;
	size_t n_guards;
	uint64_t guard_sums[64]; /* a bit for each sum that the path of a guard has */
	struct cordon_second_name *second_names;
	size_t n_second_names;
	size_t cap_guards;
	struct cordon_held *held;
	size_t n_held;
	struct cordon_open_dir *open_dirs;
	size_t n_open_dirs;
	char **env; /* NULL-terminated */
	size_t n_env;
	const char **absent_env; /* names that were asked for and are not in env */
	size_t n_absent_env;
	char **argv;	   /* NULL-terminated */
	char **candidates; /* full paths to try for argv[0], NULL-terminated */
	struct cordon_limits limits;
	uint64_t tmp_size;
	uint64_t timeout_ms;
	uint64_t grace_ms;
	char **notes; /* one line each: what a person should know about this plan */
	size_t n_notes;
};

/* Resolves everything to canonical paths and identities; changes nothing on the machine. */
int cordon_plan_build(const struct cordon_plan_spec *spec, struct cordon_plan **ret_plan, struct cordon_error *err);

/* "host", "none" or "list". */
static inline const char *cordon_plan_network(const struct cordon_plan *plan)
{
	return plan->net_none ? "none" : plan->net ? "list" : "host";
}

/* Whether the program is there inside and can be executed; else the error that the run would end with. */
int cordon_plan_check_program(const struct cordon_plan *plan, struct cordon_error *err);

/* Adds a step; NULL when there is no memory or CORDON_MOUNTS_MAX is reached. */
struct cordon_step *cordon_plan_step(struct cordon_plan *plan, cordon_step_kind kind, const char *path);
/* Full paths to try for a program, in the order of the PATH in env, NULL-terminated; NULL when there is no memory. */
char **cordon_env_candidates(struct cordon_arena *arena, char *const *env, size_t n_env, const char *name);
int cordon_plan_note(struct cordon_plan *plan, const char *fmt, ...) CORDON_PRINTF(2, 3);

/* Makes a link inside. Nothing happens where something else stands already, or where a tree of the host is shown. */
int cordon_plan_link(struct cordon_plan *plan, const char *path, const char *text, struct cordon_error *err);
/* Shows a directory of the host at `path` under a layer of ours that receives what the run writes there; it is
 * discarded at the end. */
int cordon_plan_layer(struct cordon_plan *plan, const char *source, const char *path, struct cordon_error *err);

/* Adds a tree with boundaries in it: the root of `policy` (borrowed), which the agent sees at `at`. */
int cordon_plan_area(struct cordon_plan *plan, const char *at, const struct cordon_policy *policy,
		     struct cordon_error *err);
/* Adds a boundary unless the area has one with this `path`, which is relative to the area. *ret_guard (may be NULL) is
 * the boundary that was added or found. */
int cordon_plan_guard(struct cordon_plan *plan, size_t area, cordon_guard_kind kind, cordon_guard_state state,
		      const char *path, struct cordon_guard **ret_guard, struct cordon_error *err);
/* The same for a caller that knows the deepest existing directory of the path, relative to the area: it looks at no
 * file. */
int cordon_plan_guard_in(struct cordon_plan *plan, size_t area, cordon_guard_kind kind, cordon_guard_state state,
			 const char *path, const char *dir, size_t dir_len, struct cordon_guard **ret_guard,
			 struct cordon_error *err);
/* The boundary that has this path inside, or one that lies below it; or NULL. The agent can make, move or remove
 * neither. */
const struct cordon_guard *cordon_plan_guard_at(const struct cordon_plan *plan, const char *path);
/* The boundary that is this path inside, or contains it, and lies below the directory `dir`; or NULL. */
const struct cordon_guard *cordon_plan_guard_above(const struct cordon_plan *plan, const char *dir, const char *path);
/* The boundary because of which a name can't be moved or removed: it has this name, or lies below it. Directories that lead
 * to a boundary are pinned when they existed at the start; those that the agent itself made later it may remove again. */
const struct cordon_guard *cordon_plan_guard_of_name(const struct cordon_plan *plan, const char *path);
/* Whether an inside path lies in a git directory of the host's, in which the agent makes no symbolic link: git on the host would
 * follow it and write where it leads (packed-refs, COMMIT_EDITMSG, logs). Git directories of submodules that the run adds are
 * its own. */
bool cordon_plan_in_git_dir(const struct cordon_plan *plan, const char *path);
/* The step whose mount an inside path lies on: the last of those with the longest path; NULL when the path lies
 * directly on our own file system. */
const struct cordon_step *cordon_plan_covering(const struct cordon_plan *plan, const char *path);

/* The parts of the build, each in a file of its own. */
int cordon_plan_system(struct cordon_plan *plan, const struct cordon_plan_spec *spec, struct cordon_error *err);
/* Finds the name and the shell of the user; -ENOMEM. */
int cordon_plan_account(struct cordon_plan *plan, const struct cordon_plan_spec *spec);
/* Whether the index of the repository can't be written. `git status` and `git diff` write what they found out into it, if they
 * can; unless they are told to leave it, that would be an attempt to change what is read-only. */
bool cordon_plan_git_reads(const struct cordon_policy *policy);
/* Makes /etc/gitconfig with the host's user.name and user.email, if there are any, and what git must know otherwise. */
int cordon_plan_git_user(struct cordon_plan *plan, const struct cordon_policy *policy, struct cordon_error *err);
/* Changes the text of a file of /etc, if it is one that says how names of hosts are resolved; it may be empty. */
int cordon_plan_host_names(const struct cordon_plan *plan, const char *name, struct cordon_buf *text);
/* Makes the links that lead to certificates; `etc` is a descriptor of /etc. */
int cordon_plan_certificates(struct cordon_plan *plan, int etc, struct cordon_error *err);
/* Plans the overlay in which the run works, if it asks for one. */
int cordon_plan_view(struct cordon_plan *plan, const struct cordon_plan_spec *spec, struct cordon_error *err);
int cordon_plan_scope(struct cordon_plan *plan, const struct cordon_plan_spec *spec, struct cordon_error *err);
/* Mounts the share that serves as home; 1 when there is one, 0 when there is none. */
int cordon_plan_home(struct cordon_plan *plan, const struct cordon_plan_spec *spec, struct cordon_error *err);
/* Mounts the other shares: with `around` those whose target contains the workspace, else the rest. */
int cordon_plan_shares(struct cordon_plan *plan, const struct cordon_plan_spec *spec, bool around,
		       struct cordon_error *err);
int cordon_plan_protect(struct cordon_plan *plan, const struct cordon_plan_spec *spec, struct cordon_error *err);
/* Refuses a plan with a boundary in a directory that folds names. */
int cordon_plan_folding(struct cordon_plan *plan, struct cordon_error *err);
int cordon_plan_hold(struct cordon_plan *plan, struct cordon_error *err);
/* Masks the host's sockets and FIFOs in what the agent may only read. Call it when all other mounts are in the plan. */
int cordon_plan_sockets(struct cordon_plan *plan, struct cordon_error *err);
int cordon_plan_lower_tier(struct cordon_plan *plan, const struct cordon_plan_spec *spec, struct cordon_error *err);
/* For a learning run: shows the host's directories, and returns which of them is its home (NULL: it gets a private
 * one). */
int cordon_plan_learn(struct cordon_plan *plan, const struct cordon_plan_spec *spec, struct cordon_error *err);
const char *cordon_plan_learn_home(struct cordon_plan *plan, const struct cordon_plan_spec *spec);
int cordon_plan_env(struct cordon_plan *plan, const struct cordon_plan_spec *spec, struct cordon_error *err);
/* Makes every missing parent of an inside path on our own file system. When the path lies on a mount of the host,
 * `ret_host` (CORDON_PATH_MAX bytes, may be NULL) is its path on the host, else "". */
int cordon_plan_parents(struct cordon_plan *plan, const char *path, char *ret_host, struct cordon_error *err);
int cordon_plan_bind(struct cordon_plan *plan, const char *source, const char *path, unsigned int flags,
		     cordon_right right, struct cordon_error *err);

/* Calls `fn` for each path that a grant names literally and at which the rights change: `access` are the rights there,
 * `outer` those around it. sandbox/plan/scope.c has it; the lower tier uses it as well. */
typedef int (*cordon_boundary_fn)(void *data, const char *path, cordon_access access, cordon_access outer,
				  struct cordon_error *err);
int cordon_plan_boundaries(struct cordon_plan *plan, const struct cordon_policy *policy, cordon_boundary_fn fn,
			   void *data, struct cordon_error *err);

/* While the plan is built: returns the descriptor of the directory from which to open a canonical host path, and
 * changes *path to the rest of it. A path in the workspace is opened from the directory that the policy judged, even
 * when another directory has its name by now. */
int cordon_plan_anchor(const struct cordon_plan *plan, const char **path);

/* Whether an inside path lies on a file system of ours, which no process outside can see. */
bool cordon_plan_is_private(const struct cordon_plan *plan, const char *path);

/* The value of TMPDIR and TEMP_DIR. It is not /tmp, because the root or a share may lie in /tmp. */
#define CORDON_TEMP_DIR "/run/tmp"
/* The value of HOME when the usual path would lie in the workspace, or the workspace in a directory that becomes the
 * home. */
#define CORDON_SPARE_HOME "/run/home"

const char *cordon_step_name(cordon_step_kind kind);
const char *cordon_right_name(cordon_right right);

#endif
