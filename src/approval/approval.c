/* SPDX-License-Identifier: Apache-2.0 */
/* What happens to an approval: the question, the answer, and its use. Each step is taken under the lock. */
#include <sodium.h>
#include <stdio.h>

#include "approval/internal.h"
#include "audit/audit.h"
#include "base/buf.h"
#include "base/digest.h"
#include "base/text.h"
#include "base/time.h"

/* The text of an array is the same only if all of its parts are. */
static int make_digest(const struct cordon_approval_ask *ask, char ret_digest[static CORDON_DIGEST_SIZE],
		       struct cordon_error *err)
{
	/* jansson takes no const value; we change nothing through it. */
	json_auto_t *about = json_pack("[s, s, s, O, s, O?, O?]", ask->principal, ask->method, ask->tool,
				       (json_t *)(uintptr_t)ask->args, ask->question, (json_t *)(uintptr_t)ask->grant,
				       (json_t *)(uintptr_t)ask->means);
	autofree char *text = about ? json_dumps(about, JSON_COMPACT | JSON_SORT_KEYS) : NULL;

	if (!text)
		return cordon_no_memory(err);
	cordon_digest(text, strlen(text), ret_digest);
	return 0;
}

static int audit(const struct cordon_store *store, const char *op, const struct cordon_approval_record *record,
		 struct cordon_error *err)
{
	const struct cordon_audit_ids ids = { .session_id = *record->session_id ? record->session_id : NULL,
					      .project_id = *record->project_id ? record->project_id : NULL };
	bool answered = *record->answered_at;
	json_auto_t *detail = json_pack("{s:s, s:s, s:s, s:s*, s:s, s:s*, s:s*, s:s*, s:s*}", "approval", record->id,
					"tool", record->tool, "principal", record->principal, "client", record->client,
					"question", record->question, "widens", record->widens, "by",
					record->answered_by, "on",
					answered ? cordon_approval_way_name(record->answered_on) : NULL, "span",
					answered && record->state != CORDON_APPROVAL_DENIED
						? cordon_approval_span_name(record->span)
						: NULL);
	const struct cordon_audit_event event = { .type = CORDON_AUDIT_APPROVAL, .op = op, .detail = detail };
	struct cordon_audit *log = NULL;
	int r = detail ? cordon_audit_open(&store->home, &ids, &log, err) : cordon_no_memory(err);

	if (r == 0)
		r = cordon_audit_write(log, &event, err);
	cordon_audit_close(log);
	return r;
}

/* As with a run, what cannot be recorded in the audit log is not done. */
static int save(const struct cordon_store *store, int dir_fd, const char *op,
		const struct cordon_approval_record *record, struct cordon_error *err)
{
	char file[CORDON_APPROVAL_ID_LENGTH + sizeof(CORDON_APPROVAL_SUFFIX)];
	int r = audit(store, op, record, err);

	snprintf(file, sizeof(file), "%.*s" CORDON_APPROVAL_SUFFIX, CORDON_APPROVAL_ID_LENGTH, record->id);
	return r < 0 ? r : cordon_record_save(&cordon_approval_kind, dir_fd, file, record, err);
}

/* Opens the directory and takes the lock. */
static int begin(const struct cordon_store *store, int *ret_dir, int *ret_lock, struct cordon_error *err)
{
	int r = sodium_init() < 0 ? cordon_fail(err, -EIO, CORDON_KIND_INTERNAL, "libsodium can't be used")
				  : cordon_approval_dir(&store->home, ret_dir, err);

	return r < 0 ? r : cordon_lock_take(*ret_dir, "lock", LOCK_EX, ret_lock, err);
}

/* ---- the question ---- */

/* Whether an id has these digits at a place. */
static bool has_at(const char *id, size_t at, const char *hex, size_t n)
{
	return strlen(id) == CORDON_APPROVAL_ID_LENGTH && strncmp(id + at, hex, n) == 0;
}

static bool is_of(const char *id, const char *who)
{
	return has_at(id, CORDON_APPROVAL_WHO_AT, who, CORDON_APPROVAL_CALL_AT - CORDON_APPROVAL_WHO_AT);
}

/* Whether an earlier question about the same call says what to do now. */
static bool still_counts(const struct cordon_approval_record *record, const struct cordon_approval_ask *ask, int64_t now)
{
	return record->state == CORDON_APPROVAL_WAITING || record->state == CORDON_APPROVAL_APPROVED ||
	       (record->state == CORDON_APPROVAL_DENIED && !ask->again && !cordon_approval_is_over(record, now));
}

/* Finds the newest question about this call. Returns false when there is none that still counts. */
static bool find_same(int dir_fd, const json_t *names, const char *digest, const struct cordon_approval_ask *ask,
		      struct cordon_approval_record *ret_record)
{
	autoapproval struct cordon_approval_record newest = { 0 };
	size_t i;
	json_t *name;

	json_array_foreach(names, i, name) {
		struct cordon_approval_record record = { 0 };
		const char *id = json_string_value(name);

		if (!has_at(id, CORDON_APPROVAL_CALL_AT, digest, CORDON_APPROVAL_ID_LENGTH - CORDON_APPROVAL_CALL_AT) ||
		    cordon_approval_read(dir_fd, id, &record, NULL) < 0)
			continue;
		if (cordon_streq(record.digest, digest) && strcmp(record.created_at, newest.created_at) > 0) {
			cordon_approval_record_done(&newest);
			newest = record;
		} else {
			cordon_approval_record_done(&record);
		}
	}
	if (!*newest.id || !still_counts(&newest, ask, cordon_time_now()))
		return false;
	*ret_record = newest;
	newest = (struct cordon_approval_record){ 0 };
	return true;
}

/* Makes room for one more among those of `who`, or of all if it is NULL: removes the oldest that is over. */
static int make_room(int dir_fd, const json_t *names, const char *who, size_t most, struct cordon_error *err)
{
	char oldest[CORDON_ID_SIZE] = "", oldest_at[CORDON_TIME_SIZE] = "";
	int64_t now = cordon_time_now();
	size_t i, n = 0;
	json_t *name;

	json_array_foreach(names, i, name) {
		n += !who || is_of(json_string_value(name), who);
	}
	if (n < most)
		return 0;
	json_array_foreach(names, i, name) {
		autoapproval struct cordon_approval_record record = { 0 };
		const char *id = json_string_value(name);

		if ((who && !is_of(id, who)) || cordon_approval_read(dir_fd, id, &record, NULL) < 0 ||
		    !cordon_approval_is_over(&record, now) || (*oldest && strcmp(record.created_at, oldest_at) > 0))
			continue;
		memcpy(oldest, record.id, sizeof(oldest));
		memcpy(oldest_at, record.created_at, sizeof(oldest_at));
	}
	if (*oldest)
		return cordon_approval_remove(dir_fd, oldest, err);
	cordon_fail(err, -ENOSPC, CORDON_KIND_LIMIT, "%zu approvals%s wait for a person, or were denied of late", n,
		    who ? " of this client" : "");
	cordon_error_hint(err, "see 'cordon approvals list', and answer some");
	return -ENOSPC;
}

/* Copies a text that a person reads. It may have been escaped before. */
static int put_text(const char *text, char **ret_copy)
{
	autobuf struct cordon_buf escaped = CORDON_BUF(8 * CORDON_APPROVAL_TEXT_MAX);

	if (!text)
		return 0;
	if (cordon_text_safe(text, strlen(text)))
		*ret_copy = strdup(text);
	else if (cordon_text_escape(&escaped, text, strlen(text)) == 0)
		*ret_copy = cordon_buf_steal(&escaped);
	return *ret_copy ? 0 : -ENOMEM;
}

static int fill(const struct cordon_approval_ask *ask, const char *who, const char *digest,
		struct cordon_approval_record *record, struct cordon_error *err)
{
	int64_t now = cordon_time_now();
	unsigned char random[CORDON_APPROVAL_WHO_AT / 2];
	char first[CORDON_APPROVAL_WHO_AT + 1];

	randombytes_buf(random, sizeof(random));
	sodium_bin2hex(first, sizeof(first), random, sizeof(random));
	snprintf(record->id, sizeof(record->id), "%s%.*s%.*s", first, CORDON_APPROVAL_CALL_AT - CORDON_APPROVAL_WHO_AT,
		 who, CORDON_APPROVAL_ID_LENGTH - CORDON_APPROVAL_CALL_AT, digest);
	cordon_copy(record->digest, sizeof(record->digest), digest, strlen(digest));
	cordon_time_format(now, record->created_at);
	cordon_time_format(now + CORDON_APPROVAL_LIFE_MS, record->expires_at);
	/* An id that is none names nothing. */
	if (ask->project_id)
		cordon_id_uuid("project_id", ask->project_id, record->project_id, NULL);
	if (ask->session_id)
		cordon_id_uuid("session_id", ask->session_id, record->session_id, NULL);
	record->choices = ask->grant ? json_pack("[s, s, s]", "once", "session", "policy") : json_pack("[s]", "once");
	record->grant = ask->grant ? json_deep_copy(ask->grant) : NULL;
	if (put_text(ask->principal, &record->principal) < 0 || put_text(ask->client, &record->client) < 0 ||
	    put_text(ask->tool, &record->tool) < 0 || put_text(ask->question, &record->question) < 0 ||
	    put_text(ask->widens, &record->widens) < 0 || !record->choices || (ask->grant && !record->grant))
		return cordon_no_memory(err);
	return 0;
}

static int judge(const struct cordon_approval_ask *ask, struct cordon_error *err)
{
	const char *const texts[] = { ask->question, ask->widens, ask->client };

	/* A person must be able to read all of it, so nothing is cut. */
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(texts); i++)
		if (texts[i] && strlen(texts[i]) > CORDON_APPROVAL_TEXT_MAX)
			return cordon_fail(err, -E2BIG, CORDON_KIND_LIMIT,
					   "the question to a person would be longer than %zu bytes: ask for less",
					   CORDON_APPROVAL_TEXT_MAX);
	return 0;
}

int cordon_approval_ask(const struct cordon_store *store, const struct cordon_approval_ask *ask,
			struct cordon_approval_record *ret_record, bool *ret_new, struct cordon_error *err)
{
	autoapproval struct cordon_approval_record record = { 0 };
	char digest[CORDON_DIGEST_SIZE], who[CORDON_DIGEST_SIZE];
	json_auto_t *names = NULL;
	autofd int dir = -1;
	autofd int lock = -1;
	bool is_new = false;
	int r = judge(ask, err);

	if (r == 0)
		r = begin(store, &dir, &lock, err);
	if (r == 0)
		r = make_digest(ask, digest, err);
	if (r == 0)
		r = cordon_record_names(dir, CORDON_APPROVAL_SUFFIX, &names, err);
	if (r < 0)
		return r;
	if (!find_same(dir, names, digest, ask, &record)) {
		cordon_digest(ask->principal, strlen(ask->principal), who);
		is_new = true;
		r = make_room(dir, names, who, CORDON_APPROVALS_EACH_MAX, err);
		if (r == 0)
			r = make_room(dir, names, NULL, CORDON_APPROVALS_MAX, err);
		if (r == 0)
			r = fill(ask, who, digest, &record, err);
		if (r == 0)
			r = save(store, dir, "ask", &record, err);
	}
	if (r < 0)
		return r;
	*ret_record = record;
	record = (struct cordon_approval_record){ 0 };
	if (ret_new)
		*ret_new = is_new;
	return 0;
}

/* ---- the answer ---- */

static int too_late(const struct cordon_approval_record *record, struct cordon_error *err)
{
	if (record->state == CORDON_APPROVAL_EXPIRED)
		return cordon_fail(err, -EALREADY, CORDON_KIND_CONFLICT, "approval %.8s expired at %s", record->id,
				   record->expires_at);
	return cordon_fail(err, -EALREADY, CORDON_KIND_CONFLICT, "approval %.8s was %s already, by %s (%s) at %s",
			   record->id, record->state == CORDON_APPROVAL_DENIED ? "denied" : "approved",
			   record->answered_by ? record->answered_by : "somebody",
			   cordon_approval_way_name(record->answered_on), record->answered_at);
}

static int put_answer(const struct cordon_approval_answer *answer, struct cordon_approval_record *record,
		      struct cordon_error *err)
{
	int64_t now = cordon_time_now();
	char user[32];

	snprintf(user, sizeof(user), "uid:%lu", (unsigned long)getuid());
	record->state = answer->approve ? CORDON_APPROVAL_APPROVED : CORDON_APPROVAL_DENIED;
	record->span = answer->approve ? answer->span : CORDON_APPROVAL_ONCE;
	record->answered_on = answer->on;
	cordon_time_format(now, record->answered_at);
	cordon_time_format(now + CORDON_APPROVAL_LIFE_MS, record->expires_at);
	return put_text(answer->by ? answer->by : user, &record->answered_by) < 0 ? cordon_no_memory(err) : 0;
}

int cordon_approval_answer(const struct cordon_store *store, const char *id, const struct cordon_approval_answer *answer,
			   struct cordon_approval_record *ret_record, struct cordon_error *err)
{
	autoapproval struct cordon_approval_record record = { 0 };
	autofd int dir = -1;
	autofd int lock = -1;
	int r = begin(store, &dir, &lock, err);

	if (r == 0)
		r = cordon_approval_read(dir, id, &record, err);
	if (r == 0 && record.state != CORDON_APPROVAL_WAITING)
		r = too_late(&record, err);
	if (r == 0 && answer->approve && !cordon_approval_offers(&record, answer->span))
		r = cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "approval %.8s can only be approved once, not for %s",
				record.id, cordon_approval_span_name(answer->span));
	if (r == 0)
		r = put_answer(answer, &record, err);
	if (r == 0)
		r = save(store, dir, answer->approve ? "approve" : "deny", &record, err);
	if (r < 0 || !ret_record)
		return r;
	*ret_record = record;
	record = (struct cordon_approval_record){ 0 };
	return 0;
}

/* ---- its use ---- */

/* Why a call can't go on with this record. */
static int judge_use(const struct cordon_approval_record *record, struct cordon_error *err)
{
	if (record->state == CORDON_APPROVAL_APPROVED)
		return 0;
	if (record->state == CORDON_APPROVAL_WAITING)
		return cordon_fail(err, -EAGAIN, CORDON_KIND_POLICY_DENIED, "approval %.8s waits for a person",
				   record->id);
	if (record->state == CORDON_APPROVAL_DENIED)
		return cordon_fail(err, -EPERM, CORDON_KIND_POLICY_DENIED, "%s denied this at %s (%s)",
				   record->answered_by ? record->answered_by : "a person", record->answered_at,
				   cordon_approval_way_name(record->answered_on));
	if (record->state == CORDON_APPROVAL_DONE)
		return cordon_fail(err, -EPERM, CORDON_KIND_POLICY_DENIED, "approval %.8s was used before", record->id);
	return cordon_fail(err, -EPERM, CORDON_KIND_POLICY_DENIED, "approval %.8s expired at %s", record->id,
			   record->expires_at);
}

int cordon_approval_use(const struct cordon_store *store, const char *id, const struct cordon_approval_ask *ask,
			struct cordon_approval_record *ret_record, struct cordon_error *err)
{
	autoapproval struct cordon_approval_record record = { 0 };
	char digest[CORDON_DIGEST_SIZE] = "";
	autofd int dir = -1;
	autofd int lock = -1;
	int r = begin(store, &dir, &lock, err);

	if (r == 0 && ask)
		r = make_digest(ask, digest, err);
	if (r == 0)
		r = cordon_approval_read(dir, id, &record, err);
	if (r == 0 && ask && !cordon_streq(record.digest, digest))
		r = cordon_fail(err, -ESTALE, CORDON_KIND_POLICY_DENIED,
				"approval %.8s is about another call, or about what this call would have done then",
				record.id);
	if (r == 0)
		r = judge_use(&record, err);
	if (r == 0) {
		record.state = CORDON_APPROVAL_DONE;
		r = save(store, dir, "use", &record, err);
	}
	if (r < 0 || !ret_record)
		return r;
	*ret_record = record;
	record = (struct cordon_approval_record){ 0 };
	return 0;
}

/* ---- those of a client that is no more ---- */

int cordon_approvals_withdraw(const struct cordon_store *store, const char *principal, struct cordon_error *err)
{
	json_auto_t *names = NULL;
	char who[CORDON_DIGEST_SIZE];
	autofd int dir = -1;
	autofd int lock = -1;
	size_t i;
	json_t *name;
	int r = begin(store, &dir, &lock, err);

	if (r == 0)
		r = cordon_record_names(dir, CORDON_APPROVAL_SUFFIX, &names, err);
	cordon_digest(principal, strlen(principal), who);
	json_array_foreach(names, i, name) {
		autoapproval struct cordon_approval_record record = { 0 };

		if (r < 0)
			break;
		/* The name has only the beginning of the digest. One that can't be read can't be used either. */
		if (!is_of(json_string_value(name), who) ||
		    cordon_approval_read(dir, json_string_value(name), &record, NULL) < 0 ||
		    !cordon_streq(record.principal, principal) ||
		    (record.state != CORDON_APPROVAL_WAITING && record.state != CORDON_APPROVAL_APPROVED))
			continue;
		cordon_time_format(cordon_time_now(), record.expires_at);
		r = save(store, dir, "withdraw", &record, err);
	}
	return r;
}
