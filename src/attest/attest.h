/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attestations: what a run was, signed with a key of the person who started it. One file has both:
 *
 *     {"_type": "https://in-toto.io/Statement/v1", ...}       one line, the statement (docs/attestation.md)
 *     -----BEGIN SSH SIGNATURE-----                           of that line with its newline, in the namespace cordon-run,
 *     ...                                                     as `ssh-keygen -Y sign` writes it
 *     -----END SSH SIGNATURE-----
 *
 * They are kept in state/attestations/<run id>, beside the result that a caller wanted as a file, in the record of commits
 * or a view that wait (git.h has the rest), and as a note of each commit that was taken over.
 *
 * INVARIANT: a statement that is read is hostile until its signature was verified; nothing of it is used before.
 */
#ifndef CORDON_ATTEST_H
#define CORDON_ATTEST_H

#include <jansson.h>
#include <time.h>

#include "base/home.h"
#include "git/git.h"
#include "view/view.h"

#define CORDON_ATTEST_NAMESPACE "cordon-run"
#define CORDON_ATTEST_TYPE "https://in-toto.io/Statement/v1"
#define CORDON_ATTEST_PREDICATE "urn:cordon:attestation:run:1"
#define CORDON_ATTEST_SUFFIX ".attestation" /* of the file beside a result */
#define CORDON_ATTEST_MAX CORDON_GIT_ATTESTATION_MAX

/* ---- key.c: ssh-keygen, which has the keys ---- */

struct cordon_attest_key {
	char program[CORDON_PATH_MAX]; /* ssh-keygen */
	char path[CORDON_PATH_MAX];    /* canonical; a private key, or a public one whose private key an agent has */
	char shown[256];	       /* length, fingerprint and type, as ssh-keygen shows them */
};

/* Finds ssh-keygen and looks at the key. A key that the run can write is refused: what it would sign with must be the
 * person's. */
int cordon_attest_key_open(const char *path, const struct cordon_policy *policy, struct cordon_attest_key *ret_key,
			   struct cordon_error *err);
/* Appends the signature. The person may be asked for a passphrase on the terminal. */
int cordon_attest_sign(const struct cordon_attest_key *key, const char *text, size_t n,
		       struct cordon_buf *ret_signature, struct cordon_error *err);
/* Whether somebody of the file of allowed signers made the signature; *ret_who is a name of theirs. -EBADMSG when not. */
int cordon_attest_judge(const char *root, const char *signers, const char *text, size_t n, const char *signature,
			size_t n_signature, struct cordon_buf *ret_who, struct cordon_error *err);
/* Whether a signature is written in the one way in which ssh-keygen writes it. */
bool cordon_attest_armored(const char *signature, size_t n);

/* ---- statement.c: what a run was ---- */

/* Collects what a statement says while the run goes on. Needs cordon_attest_done(). */
struct cordon_attest {
	struct timespec since;
	json_t *policy;	  /* lines */
	json_t *refusals; /* the first ones */
	json_t *hosts;
	size_t refused, warned, unlisted;
	bool more_hosts;
};

/* Before the run: its policy as it was asked for. */
int cordon_attest_begin(struct cordon_attest *attest, const struct cordon_policy *policy, struct cordon_error *err);
void cordon_attest_event(struct cordon_attest *attest, const struct cordon_event *event);
void cordon_attest_done(struct cordon_attest *attest);

/* What a run left. */
struct cordon_attest_end {
	const struct cordon_run_spec *spec;
	const struct cordon_result *result;
	bool cow;			    /* it worked in a view */
	struct cordon_view *view;	    /* which is open; NULL when it is gone, because nothing was changed in it */
	const struct cordon_git_take *take; /* what became of commits where there is no view; or NULL */
};

/* Appends the whole attestation. Commits of a view are judged for it, which takes the view's lock meanwhile. */
int cordon_attest_make(const struct cordon_home *home, const struct cordon_attest *attest,
		       const struct cordon_attest_end *end, const struct cordon_attest_key *key,
		       struct cordon_buf *ret_text, struct cordon_error *err);
/* Stores it for the run, in the view or the record of commits (an id, or NULL) that wait, and as a note of commits that were taken
 * over. `ret_path` gets where it is kept. */
int cordon_attest_keep(const struct cordon_home *home, const struct cordon_attest_end *end, const char *record,
		       const struct cordon_buf *text, char ret_path[static CORDON_PATH_MAX], struct cordon_error *err);

/* ---- verify.c ---- */

struct cordon_attest_question {
	const char *root;		 /* where agents work: no program of it verifies anything */
	const char *signers;		 /* file of allowed signers, as of ssh-keygen(1) */
	const char *commit;		 /* an id that the run must have committed, or NULL */
	const struct cordon_root *files; /* where the changed files must be as the run left them, or NULL */
	const struct cordon_home *home;	 /* whose audit log must have the head of the chain, or NULL */
};

/* The answer. Needs cordon_attest_answer_done(). */
struct cordon_attest_answer {
	json_t *failures;  /* sentences; none: it is valid */
	char *signer;	   /* or NULL */
	json_t *statement; /* NULL unless the signature is valid */
	size_t refusals;   /* of the run, accesses and paths of commits */
};

/* 0 also when something is wrong with it, which the answer says; -errno when it could not be judged. */
int cordon_attest_verify(const struct cordon_attest_question *ask, const char *text, size_t n,
			 struct cordon_attest_answer *ret_answer, struct cordon_error *err);
void cordon_attest_answer_done(struct cordon_attest_answer *answer);
/* The digest of the lines of a policy, as statements have it. */
void cordon_attest_policy_digest(const json_t *lines, char ret_hex[static 65]);

#endif
