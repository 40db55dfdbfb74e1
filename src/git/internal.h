/* SPDX-License-Identifier: Apache-2.0 */
/* What the files about commits share: the host's repository, running git, and judging. */
#ifndef CORDON_VIEW_GIT_INTERNAL_H
#define CORDON_VIEW_GIT_INTERNAL_H

#include "git/git.h"

#define CORDON_GIT_ID_SIZE 65 /* a SHA-256 in hexadecimal digits, and NUL */
#define CORDON_GIT_DIR "git"
#define CORDON_GIT_START "git-start"
#define CORDON_GIT_STARTED "started" /* in git-start: a line of JSON, HEAD, and the refs */
#define CORDON_GIT_LOWER "git"	     /* in git-start: what lies below the run's git directory */
#define CORDON_GIT_LEFT "left"	     /* the same, when what the run left alone has its second names */
#define CORDON_GIT_TAKE "git-take"
#define CORDON_GIT_STASH "refs/stash"

/* Bounds of what a run may leave to be taken over. */
#define CORDON_GIT_REFS_MAX 100000
#define CORDON_GIT_REFS_BYTES ((size_t)32 << 20)
#define CORDON_GIT_PACK_BYTES ((uint64_t)2 << 30)    /* of the pack */
#define CORDON_GIT_OBJECT_BYTES ((uint64_t)8 << 30)  /* of all new objects when they are unpacked */
#define CORDON_GIT_OBJECTS_MAX ((uint64_t)2000000)   /* new objects */
#define CORDON_GIT_DIFF_BYTES ((size_t)64 << 20)     /* of the list of changed paths */
#define CORDON_GIT_TIMEOUT_MS ((uint64_t)300 * 1000) /* of one call of git, or one sandbox */
#define CORDON_GIT_MEMORY ((uint64_t)2 << 30)
#define CORDON_GIT_ALTERNATES_MAX 16

/* ---- git_repo.c: the host's repository ---- */

struct cordon_git_repo {
	const struct cordon_root *root; /* borrowed */
	char common[CORDON_PATH_MAX];	/* the git directory, absolute; of a linked worktree: the common one */
	char own[CORDON_PATH_MAX];	/* of a linked worktree: worktrees/ID, relative to `common`; else "" */
	int common_fd, own_fd;		/* own_fd is where HEAD and index are */
	bool in_root;			/* the common directory is .git in the root */
	bool module;			/* a submodule: its configuration has core.worktree */
	/* The directories with the repository's objects, its own first. */
	char *objects[CORDON_GIT_ALTERNATES_MAX];
	size_t n_objects;
	char git[CORDON_PATH_MAX]; /* the program */
};

/* clang-format off */
#define CORDON_GIT_REPO_NONE { .common_fd = -1, .own_fd = -1 }
/* clang-format on */

/* Opens the repository of a root. 1 when it has none; -errno when it has one that this file does not understand. */
int cordon_git_repo_open(const struct cordon_root *root, struct cordon_git_repo *ret_repo, struct cordon_error *err);
void cordon_git_repo_done(struct cordon_git_repo *repo);
/* Whether a run can be given a copy of it to commit to; else -errno with the reason. */
int cordon_git_repo_usable(const struct cordon_git_repo *repo, struct cordon_error *err);
/* Writes the configuration of ours: what git must know about the repository, and nothing that names a program. With
 * `remotes` also remotes, branches and the user, for the run. */
int cordon_git_repo_config(const struct cordon_git_repo *repo, bool remotes, struct cordon_buf *ret_text,
			   struct cordon_error *err);
/* The text of HEAD without its newline. */
int cordon_git_repo_head(const struct cordon_git_repo *repo, struct cordon_buf *ret_text, struct cordon_error *err);
/* The name of the other worktree in which a branch is checked out (its directory), or "". */
void cordon_git_repo_in_use(const struct cordon_git_repo *repo, const char *branch, char ret[static CORDON_PATH_MAX]);

/* ---- git_command.c: running git ---- */

/*
 * Makes a git directory that leads git to the refs of the host's repository and to none of its configuration: a
 * directory with a configuration of ours and links to refs, packed-refs and logs.
 */
int cordon_git_shim_make(const struct cordon_git_repo *repo, int dir_fd, const char *name, struct cordon_error *err);

struct cordon_git_call {
	const struct cordon_git_repo *repo;
	const char *git_dir;	 /* of the shim, absolute */
	const char *const *argv; /* without "git"; ends with NULL */
	const char *script;	 /* for sh, instead of argv */
	const char *cwd;	 /* NULL: the root */
	const char *index;	 /* or NULL */
	const char *objects;	 /* where new objects go; NULL: to the repository */
	const void *input;	 /* or NULL */
	size_t n_input;
	size_t max_output;
	int held; /* stays open in git, so that a lock on it is held until git ends, whoever is killed; 0: none */
};

/* Runs git on the host, with an environment and a configuration of ours. When git fails, the error has its last line.
 * `ret_output` may be NULL. */
int cordon_git_call(const struct cordon_git_call *call, struct cordon_buf *ret_output, struct cordon_error *err);

struct cordon_git_sandbox {
	const char *scratch; /* absolute; it becomes the root, and can be written */
	const char *script;  /* for sh */
	/* Directories that the script may read, as /objects/0, /objects/1 and so on. */
	const char *const *objects;
	size_t n_objects;
	const char *git; /* the program */
};

/* Runs a script in a sandbox without network, with bounds on time, memory and the size of each file. *ret_status is the
 * exit status of the script, and `ret_text` the end of what it wrote to standard error. */
int cordon_git_sandbox(const struct cordon_git_sandbox *ask, int *ret_status, struct cordon_buf *ret_text,
		       struct cordon_error *err);

/* ---- git_refs.c: refs as lists ---- */

struct cordon_git_refs {
	struct cordon_git_named {
		char *name;
		char id[CORDON_GIT_ID_SIZE];
		size_t order;  /* in which it was added */
		bool symbolic; /* it stands for another one */
	} * items;	       /* sorted by name */
	size_t n, space;
};

void cordon_git_refs_done(struct cordon_git_refs *refs);
const char *cordon_git_refs_find(const struct cordon_git_refs *refs, const char *name);
bool cordon_git_refs_is_symbolic(const struct cordon_git_refs *refs, const char *name);
/* Lines of an id, a space and a name. */
int cordon_git_refs_parse(const char *text, size_t n, struct cordon_git_refs *ret_refs, struct cordon_error *err);
/* The branches, tags and the stash of a git directory, or all its refs; follows no link. */
int cordon_git_refs_read(int git_fd, bool all, struct cordon_git_refs *ret_refs, struct cordon_error *err);
bool cordon_git_id_valid(const char *id, size_t n);
/* The text of HEAD of a directory that a run could write, without its newline: "ref: refs/heads/..." or an id. */
int cordon_git_head_read(int dir_fd, struct cordon_buf *ret_text, struct cordon_error *err);

/* ---- git_settle.c: the git directory of a run in a view, after the run ---- */

/* Makes RECORD/git the whole directory. May be killed and called again. */
int cordon_git_settle(int record_fd, int start_fd, struct cordon_error *err);
/* Where the git directory of a run that has not begun can be changed; `own` is the worktree's part of it, or "". */
int cordon_git_before(const char *record, const char *own, char ret[static CORDON_PATH_MAX]);

/* ---- git_judge.c: judging paths ---- */

int cordon_git_note(struct cordon_git_take *take, struct cordon_error *err, const char *fmt, ...) CORDON_PRINTF(3, 4);

/* One pair of commits that were compared. */
typedef enum cordon_git_pair_use {
	CORDON_GIT_JUDGED, /* each changed path is judged */
	CORDON_GIT_CLEAN, /* the same, but not the paths that a merge without conflicts takes from the other side: those
			      that differ from no other parent, and that this side did not change since the fork */
	CORDON_GIT_HELP,  /* only tells which paths changed */
} cordon_git_pair_use;

struct cordon_git_pair {
	char commit[CORDON_GIT_ID_SIZE], parent[CORDON_GIT_ID_SIZE]; /* the parent is "" for a first commit */
	cordon_git_pair_use use;
	size_t other;		    /* CLEAN: the pair of the same commit and the other parent */
	size_t first_base, n_bases; /* CLEAN: pairs of the parent and each merge base */
	size_t first, n;	    /* the changed paths, once they are read */
};

struct cordon_git_change {
	const char *path; /* in the text that was parsed */
	unsigned int old_mode, new_mode;
	const char *id; /* the new one; ends with a space */
};

struct cordon_git_changes {
	struct cordon_git_change *items;
	size_t n, space;
};

void cordon_git_changes_done(struct cordon_git_changes *changes);
/* Parses the output of `git diff-tree --stdin --raw -z` for these pairs. The text must stay; it is changed. */
int cordon_git_changes_parse(char *text, size_t n, struct cordon_git_pair *pairs, size_t n_pairs,
			     struct cordon_git_changes *ret_changes, struct cordon_error *err);
int cordon_git_judge_pairs(const struct cordon_policy *policy, const struct cordon_git_pair *pairs, size_t n_pairs,
			   const struct cordon_git_changes *changes, struct cordon_git_take *take,
			   struct cordon_error *err);
/* Judges one changed path; *ret_allowed is false when it is refused. */
int cordon_git_judge(const struct cordon_policy *policy, const char *commit, const struct cordon_git_change *change,
		     struct cordon_git_take *take, bool *ret_allowed, struct cordon_error *err);
/* Reads lines "USE COMMIT PARENT" as the scripts write them. */
int cordon_git_pairs_parse(const char *text, size_t n, struct cordon_git_pair **ret_pairs, size_t *ret_n,
			   struct cordon_error *err);
/* The part of a shell script that writes the file `pairs` for the commits of the file `commits` ("ID PARENT...") and the
 * file `moves` ("OLD NEW"), and compares them into the file `diff`. */
extern const char cordon_git_pairs_script[];

#endif
