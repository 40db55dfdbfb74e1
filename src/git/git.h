/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commits under control. With `--git commit` a run gets a git directory of its own: a configuration of ours, no hooks,
 * copies of refs and index, and the host's objects as a read-only alternate. It is mounted where the repository's own
 * git directory is, so that the real one is not there to be poisoned. What the run committed is taken over afterwards.
 *
 *     RECORD/git/         what the run sees as its git directory. INVARIANT: hostile, once the run has begun.
 *     RECORD/git-start/   ours: refs, HEAD and index as they were at the start; the index may be a second name of the host's
 *     RECORD/git-start/git/, RECORD/git-work/
 *                         of a view: the git directory as it was at the start, and room for the kernel. RECORD/git has what the
 *                         run changes of it, so that the index, which may be large, need not be copied. After the run, what it
 *                         left alone gets a second name in RECORD/git (settle.c), which is the whole directory then.
 *     RECORD/git-take/    ours, while commits are taken over
 *
 * Taking over has two steps. cordon_git_take_judge() packs the new objects and checks them with git in a sandbox,
 * compares each new commit with each parent, and asks the policy about each path; nothing of the host changes.
 * cordon_git_take_finish() stores the pack in the repository and moves the refs, if they still have the values that the
 * run started with.
 */
#ifndef CORDON_GIT_H
#define CORDON_GIT_H

#include "base/buf.h"
#include "config/values.h"
#include "policy/policy.h"

#define CORDON_GIT_FINDINGS_MAX 100 /* that are kept one by one; the others are counted */

/* ---- before a run ---- */

/*
 * The mode of a run that `asked` for one or for none: `commit` in a view, `read` in a strict folder workspace, else
 * CORDON_GIT_DEFAULT, which changes nothing. Where nobody asked and the repository is one that can't be committed to
 * (an unfinished merge, a partial clone), the mode of a view is `read` and *ret_why says why, else it is "".
 */
cordon_git_mode cordon_git_mode_choose(const struct cordon_policy *policy, cordon_git_mode asked, bool view,
				       struct cordon_error *ret_why);

struct cordon_git_begin {
	cordon_git_mode mode;
	bool asked;	    /* somebody asked for the mode by its name */
	const char *record; /* `commit`: the git directory is made below this directory, an absolute path */
	bool view;	    /* the record is a view, in which the run works */
	const char *at;	    /* where the run sees the root; NULL: at its own path */
};

/* Gives a run the repository in a mode: changes the policy of the run, and with `commit` makes the git directory. Call it when
 * the policy has all its shares. A root without a repository is left alone, unless the mode is `commit` and `asked`. */
int cordon_git_begin(struct cordon_policy *policy, const struct cordon_git_begin *ask, struct cordon_error *err);

/* ---- after a run ---- */

typedef enum cordon_git_state {
	CORDON_GIT_NOTHING, /* the run has changed nothing that is taken over */
	CORDON_GIT_READY,   /* may be taken over */
	CORDON_GIT_REFUSED, /* the policy, or what the host did meanwhile, forbids it */
	CORDON_GIT_TAKEN,
} cordon_git_state;

/* A ref that is taken over. Ids are hexadecimal; `old` is "" for a new one. */
struct cordon_git_ref {
	char *name;
	char *old, *new;
	bool forced; /* the old commit is not among the ancestors of the new one */
};

/* A path in a commit that the policy does not allow, or warns of. */
struct cordon_git_finding {
	char *commit; /* its id; "" for the index */
	char *path;
	char *why; /* one sentence */
	bool refused;
};

/* Everything here is escaped for people, except the fields of refs. */
struct cordon_git_take {
	cordon_git_state state;
	struct cordon_git_ref *refs;
	size_t n_refs;
	size_t n_commits;			/* new ones */
	char *commits;				/* their ids, oldest first, each followed by a newline; NULL: none */
	struct cordon_git_finding *findings;	/* refusals first */
	size_t n_findings, n_refused, n_warned; /* the last two count all */
	char **notes;				/* what was left out, and what to do about it */
	size_t n_notes;
	struct cordon_git_taking *taking; /* what finish needs */
};

/* Whether the run of a record has moved a ref or HEAD, or made one. */
bool cordon_git_changed(const char *record);

/*
 * Judges what the run of a record has committed. The policy is the run's, without what cordon_git_begin() added. 0 also
 * when it is refused, which the take says; an error when it could not be judged.
 */
int cordon_git_take_judge(const struct cordon_policy *policy, const char *record, struct cordon_git_take **ret_take,
			  struct cordon_error *err);
/* Takes over what is ready. When it fails, kind conflict means that the host's refs, HEAD or index changed meanwhile;
 * then no ref was moved. */
int cordon_git_take_finish(struct cordon_git_take *take, struct cordon_error *err);
/* Accepts NULL; always returns NULL. */
struct cordon_git_take *cordon_git_take_free(struct cordon_git_take *take);

/* ---- cordon git check, cordon git install-hook ---- */

/* The commits that a question is about. The root may also be a bare repository, as it is for a hook of a server: then objects that wait for the hook's answer count,
 * too. */
struct cordon_git_check {
	const char *range; /* A..B, or one commit; NULL: what is staged */
	bool unpushed; /* without the commits that a remote-tracking branch has; in a bare repository, that a ref has */
	const char *notes; /* a commit of notes; NULL: those of refs/notes/cordon */
};

/* Judges commits of the host's own repository in the same way; the take has the findings, and its state is NOTHING or
 * REFUSED. */
int cordon_git_check(const struct cordon_policy *policy, const struct cordon_git_check *ask,
		     struct cordon_git_take **ret_take, struct cordon_error *err);

/* Writes a hook that runs `command`, which is quoted for a shell already, as pre-commit or pre-push. A hook that is not
 * ours stays, and is an error, unless `force`. */
int cordon_git_install_hook(const struct cordon_root *root, const char *name, const char *command, bool force,
			    char ret_path[static CORDON_PATH_MAX], struct cordon_error *err);

/* ---- attestations ---- */

#define CORDON_GIT_ATTESTATION "attestation" /* in a record: becomes a note of its commits when they are taken over */
#define CORDON_GIT_ATTESTATION_MAX ((size_t)8 << 20)

/* Gives commits of the host's repository a note (refs/notes/cordon). `commits`: ids, each followed by a newline. */
int cordon_git_attach(const struct cordon_root *root, const char *commits, const char *text, size_t n,
		      struct cordon_error *err);
/* Calls fn for each commit of a range with its note, which is empty when it has none, and valid until fn returns. */
int cordon_git_notes_each(const struct cordon_root *root, const struct cordon_git_check *ask,
			  int (*fn)(void *data, const char *id, const char *text, size_t n, struct cordon_error *err),
			  void *data, struct cordon_error *err);

#endif
