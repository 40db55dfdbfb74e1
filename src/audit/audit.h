/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing the audit trail: one JSON line per event in state/audit/audit.jsonl (docs/audit.md, audit-schema.json).
 *
 * Every cordon process appends to the one log. A record is one write under a lock, so records of several processes
 * never mix, and each names the SHA-256 of the line before it. Killing a writer at any instant costs at most the
 * record that it had not acknowledged.
 *
 * What an agent can cause in any number (violation, protected_lost, protected_created, limit) is rate-limited per
 * handle and event, in records and in bytes; start, end, refusal, grant and gc never. What is left out is counted, and the count is written as a `dropped` record as
 * soon as the limit allows it, at the latest when the handle is closed.
 *
 * Durability. A record survives the death of every process once cordon_audit_write() has returned. It survives a
 * loss of power once it was synced: after a refusal, after the end of a run that lasted a second or recorded more
 * than start and end, every 5 seconds while such records come in, and when a handle with some is closed. A start
 * never waits for the disk.
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
	CORDON_AUDIT_VIOLATION,		/* an access outside the scope: denied, or let through with a warning */
	CORDON_AUDIT_PROTECTED_LOST,	/* a protected mount was lost */
	CORDON_AUDIT_PROTECTED_CREATED, /* a missing protected name came to be */
	CORDON_AUDIT_GRANT,		/* a grant was given or revoked */
	CORDON_AUDIT_REFUSAL,		/* a run or a change was refused before it began */
	CORDON_AUDIT_LIMIT,		/* a resource limit was hit */
	CORDON_AUDIT_GC,		/* left-overs of a dead run were removed */
	CORDON_AUDIT_CALL,		/* a tool of the MCP server was called, or a command was run in a session */
	CORDON_AUDIT_DROPPED,		/* from here on written by the log itself: records were left out */
	CORDON_AUDIT_ROTATED,		/* the log continues in a new file */
	CORDON_AUDIT_PRUNED,		/* the oldest file was removed */
	CORDON_AUDIT_REPAIRED,		/* a writer found the log damaged */
	CORDON_AUDIT__MAX
} cordon_audit_type;

typedef enum cordon_audit_success {
	CORDON_AUDIT_UNSAID,
	CORDON_AUDIT_SUCCEEDED,
	CORDON_AUDIT_FAILED,
} cordon_audit_success;

/* Who a handle speaks for; any may be NULL. Copied. */
struct cordon_audit_ids {
	const char *session_id;
	const char *project_id;
	const char *agent;
	const char *orchestrator_id;
	const char *workspace_id;
};

/* NULL and zero mean that the record has no such field. Strings are any bytes: they are made safe (base/text.h), a
 * path can be told from its written form. All is borrowed. */
struct cordon_audit_event {
	cordon_audit_type type;
	const char *op; /* "read", "write", "create", "delete", "rename", "execute", ... */
	const char *path;
	const char *rule;     /* text of the deciding pattern or path */
	const char *mode;     /* "strict", "permissive" */
	const char *decision; /* "allow", "warn", "deny" */
	const char *request_id;
	cordon_audit_success success;
	cordon_kind kind; /* of a failure or refusal */
	json_t *detail;	  /* an object; see cordon_audit_text() for its strings */
};

struct cordon_audit_counts {
	uint64_t written; /* events of the caller that are in the log */
	uint64_t dropped; /* over the limit, or could not be written */
};

struct cordon_audit;

/* Makes state/audit and its files when they are missing. Writes nothing. */
int cordon_audit_open(const struct cordon_home *home, const struct cordon_audit_ids *ids,
		      struct cordon_audit **ret_audit, struct cordon_error *err);
/* How many events so far are neither recorded nor counted in a record, because the log could not be written; tries once
 * more to write their count. */
uint64_t cordon_audit_unrecorded(struct cordon_audit *audit);
/* Writes a pending `dropped` record and syncs what deserves it. Accepts NULL; always returns NULL. */
struct cordon_audit *cordon_audit_close(struct cordon_audit *audit);

/*
 * Appends one record. 0 also when the event was left out by the rate limit. A failure (no space, no lock within five
 * seconds, for a limited event a tenth of one) leaves the log as it was; a run must not begin without its start record,
 * but must not fail because a later one could not be written: such an event counts as dropped, and for a second
 * limited events are not tried again.
 */
int cordon_audit_write(struct cordon_audit *audit, const struct cordon_audit_event *event, struct cordon_error *err);
void cordon_audit_count(const struct cordon_audit *audit, struct cordon_audit_counts *ret_counts);

/*
 * For an idle supervisor: writes a `dropped` record and syncs when that is due. Returns in how many milliseconds it
 * wants to be called again, or -1 (which poll() takes as "no time limit"). cordon_audit_write() includes it.
 */
int cordon_audit_tick(struct cordon_audit *audit);

/* A new file is begun once the log has `bytes`; `keep` earlier ones stay (1 to 256). Default 64 MiB and 15. */
void cordon_audit_set_rotation(struct cordon_audit *audit, uint64_t bytes, unsigned int keep);

/* A JSON string for `detail` from any bytes; NULL for NULL or without memory. */
json_t *cordon_audit_text(const char *s);

/* Stable words: "start", "protected_lost", ... */
const char *cordon_audit_type_name(cordon_audit_type type);
/* -ENOENT when there is no such event. */
int cordon_audit_type_parse(const char *name, size_t n, cordon_audit_type *ret_type);

#endif
