/* SPDX-License-Identifier: Apache-2.0 */
/* What the files about commits share: names of a record, bounds, git in a sandbox, and judging. */
#ifndef CORDON_GIT_INTERNAL_H
#define CORDON_GIT_INTERNAL_H

#include "base/home.h"
#include "git/repo.h"

#define CORDON_GIT_DIR "git"
#define CORDON_GIT_START "git-start"
#define CORDON_GIT_STARTED "started" /* in git-start: a line of JSON, HEAD, and the refs */
#define CORDON_GIT_LOWER "git"	     /* in git-start: what lies below the run's git directory */
#define CORDON_GIT_LEFT "left"	     /* the same, when what the run left alone has its second names */
#define CORDON_GIT_TAKE "git-take"
#define CORDON_GIT_STASH "refs/stash"
#define CORDON_GIT_NOTES "refs/notes/cordon"

/* Bounds of what a run may leave to be taken over. */
#define CORDON_GIT_REFS_MAX 100000
#define CORDON_GIT_REFS_BYTES ((size_t)32 << 20)
#define CORDON_GIT_PACK_BYTES ((uint64_t)2 << 30)    /* of the pack */
#define CORDON_GIT_OBJECT_BYTES ((uint64_t)8 << 30)  /* of all new objects when they are unpacked */
#define CORDON_GIT_OBJECTS_MAX ((uint64_t)2000000)   /* new objects */
#define CORDON_GIT_DIFF_BYTES ((size_t)64 << 20)     /* of the list of changed paths */
#define CORDON_GIT_TIMEOUT_MS ((uint64_t)300 * 1000) /* of one call of git, or one sandbox */
#define CORDON_GIT_MEMORY ((uint64_t)2 << 30)

/* ---- command.c: git in a sandbox ---- */

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

/* ---- settle.c: the git directory of a run in a view, after the run ---- */

/* Makes RECORD/git the whole directory. May be killed and called again. */
int cordon_git_settle(int record_fd, int start_fd, struct cordon_error *err);

/* ---- check.c: questions about commits of the host's own repository ---- */

struct cordon_git_desk {
	struct cordon_git_repo repo;
	bool bare;
	char quarantine[CORDON_PATH_MAX]; /* objects that wait for the answer of a hook, or "" */
	struct cordon_home home;
	char name[CORDON_UUID_SIZE + 16]; /* of the directory in state/ */
	char path[CORDON_PATH_MAX], shim[CORDON_PATH_MAX];
	int state_fd, dir_fd;
};

/* clang-format off */
#define CORDON_GIT_DESK_NONE { .repo = CORDON_GIT_REPO_NONE, .home = CORDON_HOME_NONE, .state_fd = -1, .dir_fd = -1 }
/* clang-format on */

int cordon_git_desk_open(struct cordon_git_desk *desk, const struct cordon_root *root, struct cordon_error *err);
void cordon_git_desk_done(struct cordon_git_desk *desk);
struct cordon_git_call cordon_git_desk_call(const struct cordon_git_desk *desk, const char *const *argv);
/* The commits that are asked about, oldest first: lines of an id and its parents. */
int cordon_git_desk_commits(const struct cordon_git_desk *desk, const struct cordon_git_check *ask,
			    struct cordon_buf *ret, struct cordon_error *err);

/* ---- notes.c: what is known about commits ---- */

/* Gives each of the commits (ids, each followed by a newline) the text as its note, for a call with a shim. */
int cordon_git_notes_write(const struct cordon_git_call *call, const char *commits, const char *text, size_t n,
			   struct cordon_error *err);

/* ---- judge.c: judging paths ---- */

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
/* Reads lines "USE COMMIT PARENT" as the scripts write them. */
int cordon_git_pairs_parse(const char *text, size_t n, struct cordon_git_pair **ret_pairs, size_t *ret_n,
			   struct cordon_error *err);
/* The part of a shell script that writes the file `pairs` for the commits of the file `commits` ("ID PARENT...") and the
 * file `moves` ("OLD NEW"), and compares them into the file `diff`. */
extern const char cordon_git_pairs_script[];

#endif
