/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the audit log: one JSON line per event in state/audit/audit.jsonl (docs/audit.md, docs/audit-schema.json).
 *
 * Every cordon process appends to this log. A record is one write under a lock, so records of several processes never
 * mix, and each contains the SHA-256 of the line before it. If a writer is killed at any moment, at most the record
 * that it had not acknowledged is lost.
 *
 * Calls of clients (CORDON_AUDIT_CALL with a principal) have a log of their own (chain.h), in which each principal has
 * a share: they push out no other record, and nobody's calls push out all of somebody else's.
 *
 * Events that an agent can cause in any number (violation, protected_lost, protected_created, limit) are rate-limited
 * per handle and event, in records and in bytes; the others never are. Events that are left out are counted, and the
 * count is written as a `dropped` record as soon as the limit allows it, at the latest when the handle is closed.
 *
 * Durability. A record survives the death of every process when cordon_audit_write() has returned. It survives a loss
 * of power when it was synced: after a refusal, after the end of a run that lasted a second or recorded more than start
 * and end, every 5 seconds while such records come in, and when a handle with such records is closed. The start of a
 * run never waits for the disk.
 *
 * A handle belongs to the process that opened it: a child made by fork or clone must not use it, and must close its
 * copies (they are close-on-exec). Nothing here may be called between clone and exec.
 */
#ifndef CORDON_AUDIT_AUDIT_H
#define CORDON_AUDIT_AUDIT_H

#include <jansson.h>

#include "base/home.h"

typedef enum cordon_audit_type {
	CORDON_AUDIT_START,		/* a run began; detail says what is enforced */
	CORDON_AUDIT_END,		/* a run ended; detail has exit_code, signal, duration_ms, violations */
	CORDON_AUDIT_VIOLATION,		/* an access outside the scope: denied, or allowed with a warning */
	CORDON_AUDIT_PROTECTED_LOST,	/* a protected mount was lost */
	CORDON_AUDIT_PROTECTED_CREATED, /* a missing protected name was created */
	CORDON_AUDIT_GRANT,		/* a grant was given or revoked */
	CORDON_AUDIT_REFUSAL,		/* a run or a change was refused before it began */
	CORDON_AUDIT_LIMIT,		/* a resource limit was hit */
	CORDON_AUDIT_GC,		/* left-overs of a dead run were removed */
	CORDON_AUDIT_CHANGES,		/* the changes of a view were applied, undone or discarded */
	CORDON_AUDIT_CALL,		/* a tool of the MCP server was called, or a command was run in a session */
	CORDON_AUDIT_APPROVAL,		/* a person was asked for an approval or answered, or an approval was used */
	CORDON_AUDIT_DROPPED,		/* from here on, records that the log itself writes: records were left out */
	CORDON_AUDIT_ROTATED,		/* the log continues in a new file */
	CORDON_AUDIT_PRUNED,		/* the oldest file was removed */
	CORDON_AUDIT_REPAIRED,		/* a writer found the log damaged */
	CORDON_AUDIT__MAX
} cordon_audit_type;

typedef enum cordon_audit_success {
	CORDON_AUDIT_NO_SUCCESS_FIELD,
	CORDON_AUDIT_SUCCEEDED,
	CORDON_AUDIT_FAILED,
} cordon_audit_success;

/* Whose events a handle records; any may be NULL. Copied. */
struct cordon_audit_ids {
	const char *session_id;
	const char *project_id;
	const char *agent;
	const char *orchestrator_id;
	const char *workspace_id;
};

/* NULL and zero mean that the record has no such field. Strings may be any bytes: they are escaped (base/text.h),
 * and a path can be recovered from its escaped form. The caller keeps everything. */
struct cordon_audit_event {
	cordon_audit_type type;
	const char *op; /* "read", "write", "create", "delete", "rename", "execute", ... */
	const char *path;
	const char *rule;     /* text of the deciding pattern or path */
	const char *mode;     /* "strict", "permissive" */
	const char *decision; /* "allow", "warn", "deny" */
	const char *request_id;
	const char *principal; /* of a call of a client: who made it, and whose share it takes; not part of the record */
	cordon_audit_success success;
	cordon_kind kind; /* of a failure or refusal */
	json_t *detail;	  /* an object; see cordon_audit_text() for its strings */
};

struct cordon_audit;

/* Makes state/audit and its files when they are missing. Writes nothing. */
int cordon_audit_open(const struct cordon_home *home, const struct cordon_audit_ids *ids,
		      struct cordon_audit **ret_audit, struct cordon_error *err);
/* How many events so far are neither recorded nor counted in a record, because the log could not be written. Tries
 * once more to write their count. */
uint64_t cordon_audit_unrecorded(struct cordon_audit *audit);
/* Writes a pending `dropped` record, and syncs if there are records that should survive a loss of power. Accepts
 * NULL; always returns NULL. */
struct cordon_audit *cordon_audit_close(struct cordon_audit *audit);

/*
 * Appends one record. Returns 0 also when the rate limit left the event out. After a failure (no space, no lock
 * within five seconds, for a limited event within a tenth of a second) the log is unchanged. A run must not begin
 * without its start record, but it must not fail because a later record could not be written: such an event counts
 * as dropped, and for a second limited events are not tried again.
 */
int cordon_audit_write(struct cordon_audit *audit, const struct cordon_audit_event *event, struct cordon_error *err);

/* A new file begins when the log has `bytes`; `keep` earlier ones stay (1 to 256). The default is 64 MiB and 15;
 * only tests change it. */
void cordon_audit_set_rotation(struct cordon_audit *audit, uint64_t bytes, unsigned int keep);

/* A JSON string for `detail` from any bytes; NULL for NULL or without memory. */
json_t *cordon_audit_text(const char *s);

/* Stable words: "start", "protected_lost", ... */
const char *cordon_audit_type_name(cordon_audit_type type);
/* -ENOENT when there is no such event. */
int cordon_audit_type_parse(const char *name, size_t n, cordon_audit_type *ret_type);

#endif
