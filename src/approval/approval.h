/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Approvals: state/approvals/<id>.json, one file (0600) for each question that a call of a tool puts to a person.
 *
 *     waiting ──► approved ──► done       a person said yes; the call was made
 *        │  └───► denied                  a person said no
 *        └──────► expired                 nobody answered, or the approved call was not made in time
 *
 * INVARIANT: every change of a record is decided under one lock, so the first answer wins and an approval is used once. An
 * approval counts for the call that was asked about: its digest covers principal, method, tool, all arguments, the question
 * that the person read, what the arguments meant then, and what it grants, which names the run of the session.
 *
 * Every question, answer and use is in the audit log; what cannot be recorded there is not done. No sandbox sees state/, so
 * the agent that asks can't answer. The directory can be watched with inotify: each change is a rename to <id>.json.
 */
#ifndef CORDON_APPROVAL_APPROVAL_H
#define CORDON_APPROVAL_APPROVAL_H

#include "store/store.h"

#define CORDON_APPROVALS_DIR "approvals" /* below state/ */
#define CORDON_APPROVAL_LIFE_MS 3600000	 /* how long a question waits, and how long an answer then holds */
#define CORDON_APPROVALS_MAX 2048
#define CORDON_APPROVALS_EACH_MAX 32 /* of one principal */
#define CORDON_APPROVAL_SHORT 8	     /* characters of an id by which people name it */
#define CORDON_APPROVAL_TEXT_MAX ((size_t)64 << 10)

typedef enum cordon_approval_state {
	CORDON_APPROVAL_WAITING,
	CORDON_APPROVAL_APPROVED,
	CORDON_APPROVAL_DENIED,
	CORDON_APPROVAL_EXPIRED,
	CORDON_APPROVAL_DONE,
	CORDON_APPROVAL__MAX
} cordon_approval_state;

/* For how long an answer counts. Most questions know only `once`. */
typedef enum cordon_approval_span {
	CORDON_APPROVAL_ONCE,	 /* this call; of a grant: this run of the session */
	CORDON_APPROVAL_SESSION, /* a grant: also when the session is resumed */
	CORDON_APPROVAL_POLICY,	 /* a grant: written into the settings of the project */
	CORDON_APPROVAL_SPAN__MAX
} cordon_approval_span;

/* Where the answer came from. */
typedef enum cordon_approval_way {
	CORDON_APPROVAL_BY_NOBODY,
	CORDON_APPROVAL_BY_PAGE,
	CORDON_APPROVAL_BY_TERMINAL,
	CORDON_APPROVAL_BY_CLIENT, /* the MCP client that made the call asked its person */
	CORDON_APPROVAL_WAY__MAX
} cordon_approval_way;

/* All texts were escaped (base/text.h) and can be shown to a person on a terminal; a page escapes its markup. */
struct cordon_approval_record {
	char id[CORDON_ID_SIZE];
	char created_at[CORDON_TIME_SIZE], expires_at[CORDON_TIME_SIZE];
	cordon_approval_state state; /* as of now: one that waited too long is expired */
	char *principal;	     /* who makes the call: "token:ID", "uid:N", "session:ID", "local" */
	char *client;		     /* what the client calls itself, or NULL */
	char project_id[CORDON_ID_SIZE], session_id[CORDON_ID_SIZE]; /* "": not known */
	char *tool;
	char *question;
	char *widens;	 /* what agents could do then that they can't do now, or NULL */
	json_t *choices; /* names of spans: what the question can be answered with; `once` is always there */
	json_t *grant;	 /* of a grant: {session_id, run_id, host} or {session_id, run_id, path, access}; or NULL */
	char digest[65];
	char answered_at[CORDON_TIME_SIZE]; /* this and the rest: "" or zero until there is an answer */
	char *answered_by;
	cordon_approval_way answered_on;
	cordon_approval_span span;
	json_t *other;
};

void cordon_approval_record_done(struct cordon_approval_record *record);
#define autoapproval CORDON_CLEANUP(cordon_approval_record_done)
/* What people see of it: all but the digest. A new reference. */
json_t *cordon_approval_json(const struct cordon_approval_record *record);

const char *cordon_approval_state_name(cordon_approval_state state);
const char *cordon_approval_span_name(cordon_approval_span span);
const char *cordon_approval_way_name(cordon_approval_way way);
/* -EINVAL with kind usage. */
int cordon_approval_span_parse(const char *text, cordon_approval_span *ret_span, struct cordon_error *err);
/* Whether the question can be answered with this span. */
bool cordon_approval_offers(const struct cordon_approval_record *record, cordon_approval_span span);

/* A call that a person must approve. Strings are borrowed and may hold any bytes; those that may be NULL say so. */
struct cordon_approval_ask {
	const char *principal;
	const char *client; /* may be NULL */
	const char *method, *tool;
	const json_t *args;
	const char *question;
	const char *widens;		     /* may be NULL */
	const char *project_id, *session_id; /* may be NULL */
	const json_t *grant;		     /* may be NULL; the question then offers every span */
	const json_t *means; /* may be NULL; what the arguments mean at this moment: an approval counts for nothing else */
	/* A person who has said no to this very call, on the page or in the terminal, is asked again. Otherwise the answer stays
	 * no until it expires. */
	bool again;
};

/*
 * Puts the question, and returns its record: a new one that waits; or that of an earlier question about the same call, which
 * waits, is approved and not used, or was denied (see `again`). *ret_new (may be NULL) is whether it is new. -ENOSPC with
 * kind limit when too many wait.
 */
int cordon_approval_ask(const struct cordon_store *store, const struct cordon_approval_ask *ask,
			struct cordon_approval_record *ret_record, bool *ret_new, struct cordon_error *err);

struct cordon_approval_answer {
	bool approve;
	cordon_approval_span span; /* of an approval */
	cordon_approval_way on;
	const char *by; /* any text; NULL: this process's user */
};

/* Answers a question that waits. The page and the terminal call cordon_session_decide() (job/session.h) instead, which also
 * puts a grant into effect. Kind conflict (-EALREADY) when it was answered or has expired: the message says by whom.
 * ret_record may be NULL. */
int cordon_approval_answer(const struct cordon_store *store, const char *id, const struct cordon_approval_answer *answer,
			   struct cordon_approval_record *ret_record, struct cordon_error *err);

/*
 * Uses an approval for a call, which goes on if this returns 0: the record is done then. -EAGAIN while it waits; -ESTALE when
 * it is about another call, or about what this call would have done then; -EPERM with an error for whoever made the call when
 * it was denied, has expired, or was used before. `ask` is NULL when not the call, but whoever answered did what it is about.
 */
int cordon_approval_use(const struct cordon_store *store, const char *id, const struct cordon_approval_ask *ask,
			struct cordon_approval_record *ret_record, struct cordon_error *err);

/* Whoever made these calls is no more: what waits, or is approved and not used, expires now. */
int cordon_approvals_withdraw(const struct cordon_store *store, const char *principal, struct cordon_error *err);

/* Reads one by its whole id; kind not_found. */
int cordon_approval_get(const struct cordon_store *store, const char *id, struct cordon_approval_record *ret_record,
			struct cordon_error *err);
/* What a person may say instead of an id: its first characters, or "latest" for the newest that waits. */
int cordon_approval_find(const struct cordon_store *store, const char *text, char ret_id[static CORDON_ID_SIZE],
			 struct cordon_error *err);

struct cordon_approvals {
	struct cordon_approval_record *items;
	size_t n;
	size_t waiting; /* how many of them wait */
};
struct cordon_approval_query {
	bool waiting;	     /* only those that wait */
	const json_t *only;  /* only those of projects with these ids; NULL: all */
	const char *session; /* only those of this session; NULL: all */
};
/* Oldest first. `query` may be NULL. */
int cordon_approvals_load(const struct cordon_store *store, const struct cordon_approval_query *query,
			  struct cordon_approvals *ret_approvals, struct cordon_error *err);
void cordon_approvals_done(struct cordon_approvals *approvals);
#define autoapprovals CORDON_CLEANUP(cordon_approvals_done)

/* How many wait, for whoever only wants to say that some do. Looks at a bounded number of records, and none that is too old to
 * wait; *ret_more says that there may be others. */
size_t cordon_approvals_waiting(const struct cordon_store *store, bool *ret_more);

/* Removes records that were answered or expired more than keep_ms ago. */
int cordon_approvals_gc(const struct cordon_home *home, int64_t keep_ms, size_t *ret_removed, struct cordon_error *err);

#endif
