/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plan: what will be enforced, as pure data. cordon_plan_build() turns a run specification into it, `--dry-run`
 * prints it, and the child of cordon_launch() applies it between clone and exec, where nothing may be allocated.
 *
 * Ownership: every string and array of a plan lives in the plan's arena and dies with cordon_plan_free().
 */
#ifndef CORDON_SANDBOX_PLAN_H
#define CORDON_SANDBOX_PLAN_H

#include <sys/types.h>

#include "config/values.h"
#include "policy/policy.h"
#include "sandbox/limits.h"

#define CORDON_MOUNTS_MAX 4096
#define CORDON_ENV_MAX 1024
#define CORDON_PLACEHOLDERS_MAX 256 /* names shown as unreadable beside a granted folder, per directory */

/* What a front end asks for. Pointers stay the caller's; the plan copies. */
struct cordon_share {
	const char *source;
	const char *target; /* NULL: the same path inside */
	bool read_only;
};

/* How much of the design this kernel lets us build. */
typedef enum cordon_tier {
	CORDON_TIER_FULL,     /* namespaces, mounts, Landlock, seccomp, no capabilities */
	CORDON_TIER_LANDLOCK, /* best effort where namespaces are refused: Landlock and seccomp carry folder scopes */
} cordon_tier;

struct cordon_run_spec {
	const char *run_id;
	cordon_tier tier;
	cordon_lens_use lens;
	const char *tier_tmp;	      /* lower tier: the host directory that serves as /tmp and home */
	struct cordon_policy *policy; /* names that must not come to be are added to it */
	const char *home_path;	      /* canonical $CORDON_HOME, never to be seen inside; or NULL */
	const char *home_asked;	      /* the same as the environment names it, maybe through links; or NULL */
	const char *at;		      /* where the agent sees the root; NULL: the same path */
	const char *cwd;	      /* host directory of the caller; the root when it lies outside */
	const char *home;	      /* host directory that becomes HOME, or NULL for a private one */
	char *const *env;	      /* "K=V" */
	size_t n_env;
	char *const *keep_env; /* names taken from our environment */
	size_t n_keep_env;
	const struct cordon_share *shares;
	size_t n_shares;
	char *const *argv; /* NULL-terminated */
	bool net_none;
	bool best_effort;
	bool enterable;
	bool terminal; /* give the agent a pty for the streams that are terminals */
	struct cordon_limits limits;
	uint64_t tmp_size;   /* bytes of the private file system; 0: CORDON_TMP_SIZE_DEFAULT */
	uint64_t timeout_ms; /* 0: none */
	uint64_t grace_ms;
};

#define CORDON_TMP_SIZE_DEFAULT ((uint64_t)2 << 30)
#define CORDON_GRACE_DEFAULT_MS 5000

/* What a path inside may be used for, as Landlock sees it. Ordered by strength is not implied. */
typedef enum cordon_right {
	CORDON_RIGHT_NONE,
	CORDON_RIGHT_LIST,   /* list directories, nothing else */
	CORDON_RIGHT_READ,   /* read and execute */
	CORDON_RIGHT_WRITE,  /* everything below */
	CORDON_RIGHT_DEVICE, /* read, write and control a device */
	CORDON_RIGHT__MAX
} cordon_right;

/*
 * One step of building the tree, in the order of the array. All destinations are absolute paths inside; they are
 * opened beneath the new root without following links.
 */
typedef enum cordon_step_kind {
	CORDON_STEP_DIR,     /* make a directory of our own file system */
	CORDON_STEP_FILE,    /* make a file with `text` as content */
	CORDON_STEP_LINK,    /* make a link to `text` */
	CORDON_STEP_FREEZE,  /* everything so far becomes read-only, nosuid, nodev */
	CORDON_STEP_BIND,    /* mount the host's `source`, which must still be the inode seen by the plan */
	CORDON_STEP_PRIVATE, /* our own directory becomes a writable mount of its own */
	CORDON_STEP_MASK,    /* an empty, unreadable file or directory covers what is there */
	CORDON_STEP_PIN,     /* what stands here in the workspace can't be renamed or removed; it stays usable */
	CORDON_STEP_PROC,
	CORDON_STEP_DEVPTS,
	CORDON_STEP_LENS, /* the workspace as cordon-lens shows it */
	CORDON_STEP_RULE, /* lower tier: a Landlock rule on the host's own tree, no mount */
	CORDON_STEP__MAX
} cordon_step_kind;

#define CORDON_STEP_READ_ONLY (1u << 0)
#define CORDON_STEP_IS_DEVICE (1u << 1) /* keeps device nodes usable */
#define CORDON_STEP_PROTECT (1u << 2)	/* a protected path: watched, bound again when it dissolves */
#define CORDON_STEP_IS_DIR (1u << 3)
#define CORDON_STEP_SYSTEM (1u << 4) /* part of what the freeze makes read-only */

struct cordon_step {
	cordon_step_kind kind;
	unsigned int flags;
	cordon_right right;
	mode_t mode;
	const char *path;   /* inside */
	const char *source; /* on the host, canonical; for PIN: relative to pin_base */
	const char *text;
	size_t text_len;
	dev_t dev; /* identity of source when the plan was made */
	ino_t ino;
};

typedef enum cordon_guard_state { CORDON_GUARD_PRESENT, CORDON_GUARD_ABSENT, CORDON_GUARD_LINK } cordon_guard_state;

/* A protected path as found. Absent ones are guarded: (dir, name) is the first name that must not come to be. */
struct cordon_guard {
	const char *path; /* relative to the root, as asked for */
	const char *where;
	bool by_default;
	cordon_guard_state state;
	const char *inside; /* where the agent would see it */
	const char *dir;    /* absent: deepest existing directory, relative to the root */
	const char *name;   /* absent: the first missing component */
	bool hard_links;    /* had more than one name; copied apart at start */
};

struct cordon_plan {
	struct cordon_arena *arena;
	int slash_fd; /* the host's root, while the plan is built */
	int root_fd;  /* the workspace that was judged, the policy's; while the plan is built */
	cordon_tier tier;
	const char *tmp; /* inside: what TMPDIR and TEMP_DIR name */
	const char *run_id;
	const char *root;	 /* host, canonical */
	const char *at;		 /* inside */
	const char *pin_base;	 /* the host directory that holds all pinned names: the root, or / in permissive mode */
	const char *pin_base_at; /* the same inside */
	dev_t pin_base_dev;	 /* identity of the base when the plan was made */
	ino_t pin_base_ino;
	const char *cwd; /* inside */
	const char *hostname;
	const char *user; /* name of uid, for passwd and USER */
	const char *home; /* inside */
	uid_t uid;
	gid_t gid;
	cordon_mode mode;
	bool lens; /* the workspace is seen through cordon-lens */
	bool net_none;
	bool terminal;
	bool best_effort;
	bool enterable; /* further programs may be started inside later (enter.h) */
	struct cordon_step *steps;
	size_t n_steps;
	size_t cap_steps;
	struct cordon_guard *guards;
	size_t n_guards;
	bool fold_case; /* names that differ only in case are one name in the root's file system */
	char **env;	/* NULL-terminated */
	size_t n_env;
	char **argv;	   /* NULL-terminated */
	char **candidates; /* full paths to try for argv[0], NULL-terminated */
	struct cordon_limits limits;
	uint64_t tmp_size;
	uint64_t timeout_ms;
	uint64_t grace_ms;
	char **notes; /* one line each: what a person should know about this plan */
	size_t n_notes;
};

/* Resolves everything to canonical paths and identities; touches nothing. */
int cordon_plan_build(const struct cordon_run_spec *spec, struct cordon_plan **ret_plan, struct cordon_error *err);
struct cordon_plan *cordon_plan_free(struct cordon_plan *plan);

/* Arena helpers for the modules that build a plan. NULL without memory. */
void *cordon_plan_alloc(struct cordon_plan *plan, size_t size);
char *cordon_plan_printf(struct cordon_plan *plan, const char *fmt, ...) CORDON_PRINTF(2, 3);
struct cordon_step *cordon_plan_step(struct cordon_plan *plan, cordon_step_kind kind, const char *path);
/* Full paths to try for a program, in the order of the PATH in env, NULL-terminated; NULL without memory. */
char **cordon_env_candidates(struct cordon_arena *arena, char *const *env, size_t n_env, const char *name);
int cordon_plan_note(struct cordon_plan *plan, const char *fmt, ...) CORDON_PRINTF(2, 3);

/* Parts of the build, each in a file of its own. */
int cordon_plan_system(struct cordon_plan *plan, const struct cordon_run_spec *spec, struct cordon_error *err);
int cordon_plan_scope(struct cordon_plan *plan, const struct cordon_run_spec *spec, struct cordon_error *err);
int cordon_plan_protect(struct cordon_plan *plan, const struct cordon_run_spec *spec, struct cordon_error *err);
int cordon_plan_lower_tier(struct cordon_plan *plan, const struct cordon_run_spec *spec, struct cordon_error *err);
int cordon_plan_env(struct cordon_plan *plan, const struct cordon_run_spec *spec, struct cordon_error *err);
/* Makes every missing parent of an inside path on our own file system; `ret_host` (CORDON_PATH_MAX bytes, may be
 * NULL) is the host path that shows there when something of the host is mounted over it, "" otherwise. */
int cordon_plan_parents(struct cordon_plan *plan, const char *path, char *ret_host, struct cordon_error *err);
/* Refuses a writable `source` of `option` that holds the workspace or lies in it. */
int cordon_plan_apart(const struct cordon_plan *plan, const char *option, const char *source, struct cordon_error *err);
int cordon_plan_bind(struct cordon_plan *plan, const char *source, const char *path, unsigned int flags,
		     cordon_right right, struct cordon_error *err);

/* Where a grant names something literally, the rights in force there (plan_scope.c); for the lower tier. */
typedef int (*cordon_boundary_fn)(void *data, const char *path, cordon_access access, cordon_access outer,
				  struct cordon_error *err);
int cordon_plan_boundaries(struct cordon_plan *plan, const struct cordon_policy *policy, cordon_boundary_fn fn,
			   void *data, struct cordon_error *err);

/* While the plan is built: the descriptor from which a canonical host path is to be looked at, with *path turned into the
 * rest of it. What lies in the workspace is looked for in the directory that was judged, whatever bears its name by now. */
int cordon_plan_anchor(const struct cordon_plan *plan, const char **path);

/* Whether an inside path lies on a file system of ours, which nobody outside has. */
bool cordon_plan_is_private(const struct cordon_plan *plan, const char *path);

/* Temporary directory and home of a permissive run, whose /tmp and home directories are the host's. */
#define CORDON_PERMISSIVE_TMP "/run/tmp"
#define CORDON_PERMISSIVE_HOME "/run/home"

#define CORDON_SANDBOX_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

const char *cordon_step_name(cordon_step_kind kind);
const char *cordon_right_name(cordon_right right);

#endif
