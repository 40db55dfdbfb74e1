/* SPDX-License-Identifier: Apache-2.0 */
/* The host's repository, running git on it, and refs as lists. No hook, filter or configuration of the repository is used. */
#ifndef CORDON_GIT_REPO_H
#define CORDON_GIT_REPO_H

#include "git/git.h"

#define CORDON_GIT_ID_SIZE 65 /* a SHA-256 in hexadecimal digits, and NUL */
#define CORDON_GIT_ALTERNATES_MAX 16

/* ---- repo.c: the host's repository ---- */

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
/* Opens a root that is itself a bare repository; 1 when it is none. For questions about commits only: no run gets one. */
int cordon_git_repo_open_bare(const struct cordon_root *root, struct cordon_git_repo *ret_repo, struct cordon_error *err);
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

/* ---- command.c: running git ---- */

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
	bool may_differ; /* the exit status 1 is no failure */
	int held; /* stays open in git, so that a lock on it is held until git ends, whoever is killed; 0: none */
};

/* Runs git on the host, with an environment and a configuration of ours. When git fails, the error has its last line.
 * `ret_output` may be NULL. */
int cordon_git_call(const struct cordon_git_call *call, struct cordon_buf *ret_output, struct cordon_error *err);

/* A git that answers one question after another, on the descriptor. */
struct cordon_git_process {
	pid_t pid;
	int fd; /* a socket, or -1 */
};

int cordon_git_start(const struct cordon_git_call *call, struct cordon_git_process *ret, struct cordon_error *err);
/* May be called again. */
void cordon_git_stop(struct cordon_git_process *process);

/* ---- refs.c: refs as lists ---- */

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

/* ---- settle.c: the git directory of a run in a view ---- */

/* Where the git directory of a run that has not begun can be changed; `own` is the worktree's part of it, or "". */
int cordon_git_before(const char *record, const char *own, char ret[static CORDON_PATH_MAX]);
/* Opens the index that the run of a record began with; a descriptor, or less than 0 when the run had no git directory of its
 * own. */
int cordon_git_start_index(int record_fd);

#endif
