/* SPDX-License-Identifier: Apache-2.0 */
/* A handle on the audit log: whose events it records, how much it may write, and when the log is synced. */
#include <stdio.h>

#include "audit/audit.h"
#include "audit/chain.h"
#include "base/text.h"
#include "base/time.h"

/* Limits per event type and handle. Records: a burst, then a steady rate. Bytes: so that long names in few records
 * cannot push other runs' records out of the log; what they may take in a day is a small part of what is kept. */
#define BURST_RECORDS INT64_C(200)
#define RECORDS_PER_S INT64_C(50)
#define BURST_BYTES INT64_C(1048576)
#define BYTES_PER_S INT64_C(1024)

/* The share of one principal in the log of calls. In a day it is a third of what is kept there at most. */
#define CALLS_BURST_RECORDS INT64_C(1000)
#define CALLS_DROPPED_EVERY_MS 60000 /* between two `dropped` records there */
#define SHARES_MAX 64

#define DROPPED_EVERY_MS 1000 /* between two `dropped` records */
#define RETRY_MS 1000	      /* after a failure, limited events are not tried again for this long */
#define SHORT_WAIT_MS 100     /* wait for the lock, while an agent waits for its supervisor */
#define SYNC_EVERY_MS 5000
#define SHORT_RUN_MS 1000

/* A token bucket. Tokens are counted in thousandths and added every millisecond. */
struct bucket {
	int64_t records, bytes;
	int64_t filled; /* monotonic time of the last refill, 0 before the first use */
};

/* What one principal may record of its calls. */
struct share {
	char *name;
	struct bucket bucket;
	uint64_t dropped; /* since the last `dropped` record */
};

struct cordon_audit {
	struct cordon_chain chain;
	struct cordon_chain calls; /* opened for the first call; its head_fd is -1 before */
	struct share shares[SHARES_MAX];
	int64_t calls_reported; /* monotonic time of the last `dropped` record in the log of calls */
	char *names[5];		/* in the order of struct cordon_audit_ids */
	struct bucket buckets[CORDON_AUDIT__MAX];
	uint64_t pending; /* dropped since the last `dropped` record */
	uint64_t pending_by[CORDON_AUDIT__MAX];
	uint64_t pending_failed; /* those of them that could not be written */
	/* Monotonic times: of opening, of the last `dropped` record, of the last sync. */
	int64_t opened, reported, synced;
	int64_t failed;	 /* monotonic time of the last failure, 0 when there was none */
	bool unsynced;	 /* something was written since the last sync */
	bool noteworthy; /* other records than start and end were written */
};

static struct cordon_audit *release(struct cordon_audit *audit)
{
	cordon_chain_done(&audit->chain);
	cordon_chain_done(&audit->calls);
	for (size_t i = 0; i < SHARES_MAX; i++)
		free(audit->shares[i].name);
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(audit->names); i++)
		free(audit->names[i]);
	free(audit);
	return NULL;
}

int cordon_audit_open(const struct cordon_home *home, const struct cordon_audit_ids *ids,
		      struct cordon_audit **ret_audit, struct cordon_error *err)
{
	struct cordon_audit *audit = calloc(1, sizeof(*audit));
	const char *const list[] = { ids->session_id, ids->project_id, ids->agent, ids->orchestrator_id,
				     ids->workspace_id };
	int r;

	if (!audit)
		return cordon_fail_errno(err, -ENOMEM, "cannot open the audit log");
	audit->chain = audit->calls = (struct cordon_chain){ .dir_fd = -1, .head_fd = -1, .log_fd = -1 };
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(list); i++) {
		if (!list[i])
			continue;
		audit->names[i] = strdup(list[i]);
		if (!audit->names[i]) {
			release(audit);
			return cordon_fail_errno(err, -ENOMEM, "cannot open the audit log");
		}
	}
	r = cordon_chain_open(home, &audit->chain, err);
	if (r < 0) {
		release(audit);
		return r;
	}
	audit->opened = audit->synced = cordon_time_monotonic();
	*ret_audit = audit;
	return 0;
}

void cordon_audit_set_rotation(struct cordon_audit *audit, uint64_t bytes, unsigned int keep)
{
	audit->chain.rotate = bytes;
	audit->chain.keep = keep < 1 ? 1 : keep > CORDON_CHAIN_KEEP_MAX ? CORDON_CHAIN_KEEP_MAX : keep;
}

/* Whether the type is rate-limited. What an operator does, and what happens once per run, is never left out. */
static bool is_limited(cordon_audit_type type)
{
	return type == CORDON_AUDIT_VIOLATION || type == CORDON_AUDIT_PROTECTED_LOST ||
	       type == CORDON_AUDIT_PROTECTED_CREATED || type == CORDON_AUDIT_LIMIT;
}

/* Whether it may wait long for the lock. No agent waits for the writer of such an event. */
static bool may_wait_long(cordon_audit_type type)
{
	return !is_limited(type) && type != CORDON_AUDIT_DROPPED;
}

/* INVARIANT: each type has its own bucket, so that very many violations cannot hide a lost protection. */
static void refill(struct bucket *bucket, int64_t burst, int64_t now)
{
	int64_t passed = now - bucket->filled;

	if (bucket->filled == 0 || passed > 86400000) {
		bucket->records = burst * 1000;
		bucket->bytes = BURST_BYTES * 1000;
	} else {
		bucket->records += passed * RECORDS_PER_S;
		bucket->bytes += passed * BYTES_PER_S;
		if (bucket->records > burst * 1000)
			bucket->records = burst * 1000;
		if (bucket->bytes > BURST_BYTES * 1000)
			bucket->bytes = BURST_BYTES * 1000;
	}
	bucket->filled = now;
}

static bool spend(struct bucket *bucket, size_t bytes)
{
	if (bucket->bytes < (int64_t)bytes * 1000)
		return false;
	bucket->records -= 1000;
	bucket->bytes -= (int64_t)bytes * 1000;
	return true;
}

static void drop(struct cordon_audit *audit, cordon_audit_type type, bool failed)
{
	audit->pending++;
	audit->pending_by[type]++;
	if (failed)
		audit->pending_failed++;
}

/* Renders an event and appends it, unless it is longer than the bucket of its type allows. */
static int append(struct cordon_audit *audit, const struct cordon_audit_event *event, struct cordon_error *err)
{
	const struct cordon_audit_ids ids = { audit->names[0], audit->names[1], audit->names[2], audit->names[3],
					      audit->names[4] };
	autobuf struct cordon_buf body = CORDON_BUF(CORDON_AUDIT_LINE_MAX);
	int r = cordon_audit_render_body(&ids, event, &body);

	if (r < 0)
		return cordon_fail_errno(err, r, "cannot write the audit log");
	if (is_limited(event->type) && !spend(&audit->buckets[event->type], body.len)) {
		drop(audit, event->type, false);
		return 0;
	}
	audit->chain.wait_ms = may_wait_long(event->type) ? CORDON_CHAIN_LOCK_MS : SHORT_WAIT_MS;
	r = cordon_chain_append(&audit->chain, body.data, body.len, err);
	audit->failed = r < 0 ? cordon_time_monotonic() : 0;
	if (r < 0)
		return r;
	audit->unsynced = true;
	if (event->type != CORDON_AUDIT_START && event->type != CORDON_AUDIT_END)
		audit->noteworthy = true;
	return 0;
}

/* Writes how many events were left out since the last such record; keeps the counts when that fails. */
static void report_dropped(struct cordon_audit *audit, int64_t now)
{
	struct cordon_audit_event event = { .type = CORDON_AUDIT_DROPPED };
	json_t *events = json_object();

	for (size_t i = 0; i < CORDON_AUDIT__MAX; i++)
		if (audit->pending_by[i])
			json_object_set_new(events, cordon_audit_type_name((cordon_audit_type)i),
					    json_integer((json_int_t)audit->pending_by[i]));
	event.detail = json_pack("{s:I, s:I, s:o}", "count", (json_int_t)audit->pending, "failed",
				 (json_int_t)audit->pending_failed, "events", events);
	audit->reported = now;
	if (event.detail && append(audit, &event, NULL) == 0) {
		memset(audit->pending_by, 0, sizeof(audit->pending_by));
		audit->pending = audit->pending_failed = 0;
	}
	json_decref(event.detail);
}

static void sync_log(struct cordon_audit *audit, int64_t now)
{
	/* The result is ignored: a disk that cannot sync will not do better at once. */
	cordon_chain_sync(&audit->chain);
	cordon_chain_sync(&audit->calls);
	audit->synced = now;
	audit->unsynced = false;
}

/* Writes a `dropped` record and syncs, each when it is due. */
static void do_periodic(struct cordon_audit *audit, int64_t now)
{
	if (audit->pending && now - audit->reported >= DROPPED_EVERY_MS)
		report_dropped(audit, now);
	if (audit->unsynced && audit->noteworthy && now - audit->synced >= SYNC_EVERY_MS)
		sync_log(audit, now);
}

/* ---- calls ---- */

static int append_call(struct cordon_audit *audit, const struct cordon_audit_event *event, struct share *share,
		       struct cordon_error *err)
{
	const struct cordon_audit_ids nobody = { 0 };
	autobuf struct cordon_buf body = CORDON_BUF(CORDON_AUDIT_LINE_MAX);
	int r = cordon_audit_render_body(&nobody, event, &body);

	if (r < 0)
		return cordon_fail_errno(err, r, "cannot write the audit log");
	if (share && (share->bucket.records < 1000 || !spend(&share->bucket, body.len))) {
		share->dropped++;
		return 0;
	}
	if (audit->calls.head_fd < 0)
		r = cordon_chain_open_calls(&audit->chain, &audit->calls, err);
	if (r == 0)
		r = cordon_chain_append(&audit->calls, body.data, body.len, err);
	if (r == 0)
		audit->unsynced = audit->noteworthy = true;
	else if (share)
		share->dropped++;
	return r;
}

/* Writes how many calls of whom were left out since the last such record; keeps the counts when that fails. */
static void report_calls(struct cordon_audit *audit, int64_t now)
{
	struct cordon_audit_event event = { .type = CORDON_AUDIT_DROPPED };
	json_t *principals = json_object();
	json_int_t count = 0;

	for (size_t i = 0; i < SHARES_MAX; i++) {
		const struct share *share = &audit->shares[i];

		if (!share->dropped)
			continue;
		count += (json_int_t)share->dropped;
		json_object_set_new(principals, share->name, json_integer((json_int_t)share->dropped));
	}
	audit->calls_reported = now;
	event.detail = json_pack("{s:I, s:I, s:{s:I}, s:o}", "count", count, "failed", (json_int_t)0, "events", "call",
				 count, "principals", principals);
	if (count && event.detail && append_call(audit, &event, NULL, NULL) == 0)
		for (size_t i = 0; i < SHARES_MAX; i++)
			audit->shares[i].dropped = 0;
	json_decref(event.detail);
}

/* The share of a principal. When there are too many, the one that was used least lately is replaced, after a record of
 * what it left out; NULL without memory. */
static struct share *share_of(struct cordon_audit *audit, const char *principal, int64_t now)
{
	autobuf struct cordon_buf name = CORDON_BUF(1024);
	struct share *oldest = &audit->shares[0];

	if (cordon_text_escape(&name, principal, strnlen(principal, 128)) < 0)
		return NULL;
	for (size_t i = 0; i < SHARES_MAX; i++) {
		struct share *share = &audit->shares[i];

		if (share->name && cordon_streq(share->name, name.data))
			return share;
		/* A place that nobody has was never filled. */
		if (share->bucket.filled < oldest->bucket.filled)
			oldest = share;
	}
	if (oldest->dropped)
		report_calls(audit, now);
	free(oldest->name);
	*oldest = (struct share){ .name = cordon_buf_steal(&name) };
	return oldest->name ? oldest : NULL;
}

static int write_call(struct cordon_audit *audit, const struct cordon_audit_event *event, int64_t now,
		      struct cordon_error *err)
{
	struct share *share = share_of(audit, event->principal, now);
	int r;

	if (!share)
		return cordon_fail_errno(err, -ENOMEM, "cannot write the audit log");
	refill(&share->bucket, CALLS_BURST_RECORDS, now);
	r = append_call(audit, event, share, err);
	if (now - audit->calls_reported >= CALLS_DROPPED_EVERY_MS)
		report_calls(audit, now);
	do_periodic(audit, now);
	return r;
}

int cordon_audit_write(struct cordon_audit *audit, const struct cordon_audit_event *event, struct cordon_error *err)
{
	int64_t now = cordon_time_monotonic();
	bool limited = is_limited(event->type);
	int r = 0;

	if ((unsigned int)event->type >= CORDON_AUDIT_DROPPED)
		return cordon_fail(err, -EINVAL, CORDON_KIND_INTERNAL, "the audit log itself writes these records");
	if (event->type == CORDON_AUDIT_CALL && event->principal)
		return write_call(audit, event, now, err);
	if (limited)
		refill(&audit->buckets[event->type], BURST_RECORDS, now);
	/* The counts belong to the run, so they come before its end. */
	if (event->type == CORDON_AUDIT_END && audit->pending)
		report_dropped(audit, now);
	/* When there are very many events, this is all that each of them costs. INVARIANT: a log that cannot be
	 * written stops no agent. */
	if (limited && audit->buckets[event->type].records < 1000)
		drop(audit, event->type, false);
	else if (limited && audit->failed && now - audit->failed < RETRY_MS)
		drop(audit, event->type, true);
	else
		r = append(audit, event, err);
	if (r < 0)
		drop(audit, event->type, true);
	do_periodic(audit, now);
	if (r == 0 && audit->unsynced &&
	    (event->type == CORDON_AUDIT_REFUSAL ||
	     (event->type == CORDON_AUDIT_END && (audit->noteworthy || now - audit->opened >= SHORT_RUN_MS))))
		sync_log(audit, now);
	return r;
}

uint64_t cordon_audit_unrecorded(struct cordon_audit *audit)
{
	if (audit->pending_failed)
		report_dropped(audit, cordon_time_monotonic());
	return audit->pending_failed;
}

struct cordon_audit *cordon_audit_close(struct cordon_audit *audit)
{
	if (!audit)
		return NULL;
	if (audit->pending)
		report_dropped(audit, cordon_time_monotonic());
	report_calls(audit, cordon_time_monotonic());
	if (audit->unsynced && audit->noteworthy)
		sync_log(audit, cordon_time_monotonic());
	return release(audit);
}
