/* SPDX-License-Identifier: Apache-2.0 */
/* The records of approvals: read, listed, found and removed. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

#include "approval/internal.h"
#include "base/json.h"
#include "base/time.h"
#include "state/kinds.h"

#define COUNTED_MOST 100 /* records that are read to say how many wait */

static const char *const state_names[] = { "waiting", "approved", "denied", "expired", "done", NULL };
static const char *const span_names[] = { "once", "session", "policy", NULL };
static const char *const way_names[] = { "nobody", "page", "terminal", "client", NULL };

/* NOLINTBEGIN(bugprone-macro-parentheses, bugprone-sizeof-expression): a member, and a pointer in a record. */
#define APPROVAL(key_, type_, member_)                                                                                 \
	.key = (key_), .type = CORDON_FIELD_##type_, .offset = offsetof(struct cordon_approval_record, member_),       \
	.size = sizeof(((struct cordon_approval_record *)0)->member_)

static const struct cordon_field fields[] = {
	{ APPROVAL("id", TEXT, id), .needed = true },
	{ APPROVAL("state", NAME, state), .names = state_names, .needed = true },
	{ APPROVAL("created_at", TEXT, created_at), .needed = true },
	{ APPROVAL("expires_at", TEXT, expires_at), .needed = true },
	{ APPROVAL("principal", STRING, principal), .needed = true },
	{ APPROVAL("client", STRING, client) },
	{ APPROVAL("project_id", TEXT, project_id) },
	{ APPROVAL("session_id", TEXT, session_id) },
	{ APPROVAL("tool", STRING, tool), .needed = true },
	{ APPROVAL("question", STRING, question), .needed = true },
	{ APPROVAL("widens", STRING, widens) },
	{ APPROVAL("choices", STRINGS, choices), .needed = true },
	{ APPROVAL("grant", OBJECT, grant) },
	{ APPROVAL("digest", TEXT, digest), .needed = true, .hidden = true },
	{ APPROVAL("answered_at", TEXT, answered_at) },
	{ APPROVAL("answered_by", STRING, answered_by) },
	{ APPROVAL("answered_on", NAME, answered_on), .names = way_names, .needed = true },
	{ APPROVAL("span", NAME, span), .names = span_names, .needed = true },
	{ 0 },
};
/* NOLINTEND(bugprone-macro-parentheses, bugprone-sizeof-expression) */

const struct cordon_record_kind cordon_approval_kind = {
	.what = "approval",
	.size = sizeof(struct cordon_approval_record),
	.other = offsetof(struct cordon_approval_record, other),
	.id = offsetof(struct cordon_approval_record, id),
	.created_at = offsetof(struct cordon_approval_record, created_at),
	.fields = fields,
};

const char *cordon_approval_state_name(cordon_approval_state state)
{
	return state_names[state];
}

const char *cordon_approval_span_name(cordon_approval_span span)
{
	return span_names[span];
}

const char *cordon_approval_way_name(cordon_approval_way way)
{
	return way_names[way];
}

int cordon_approval_span_parse(const char *text, cordon_approval_span *ret_span, struct cordon_error *err)
{
	for (size_t i = 0; i < CORDON_APPROVAL_SPAN__MAX; i++) {
		if (!cordon_streq(text, span_names[i]))
			continue;
		*ret_span = (cordon_approval_span)i;
		return 0;
	}
	return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "an approval is for once, session or policy, not %.80s",
			   text);
}

bool cordon_approval_offers(const struct cordon_approval_record *record, cordon_approval_span span)
{
	return cordon_json_has(record->choices, span_names[span]);
}

void cordon_approval_record_done(struct cordon_approval_record *record)
{
	cordon_fields_done(&cordon_approval_kind, record);
}

/* The answer has no fields before there is one. */
json_t *cordon_approval_json(const struct cordon_approval_record *record)
{
	json_t *object = cordon_fields_write(&cordon_approval_kind, record, true);

	if (!*record->answered_at) {
		json_object_del(object, "answered_on");
		json_object_del(object, "span");
	}
	return object;
}

int cordon_approval_dir(const struct cordon_home *home, int *ret_fd, struct cordon_error *err)
{
	return cordon_state_kind_open(home, CORDON_STATE_KIND_APPROVALS, ret_fd, err);
}

static int no_approval(const char *text, struct cordon_error *err)
{
	int r = cordon_fail(err, -ENOENT, CORDON_KIND_NOT_FOUND, "there is no approval %.80s", text);

	cordon_error_hint(err, "see 'cordon approvals list'");
	return r;
}

static bool is_id(const char *text)
{
	return strlen(text) == CORDON_APPROVAL_ID_LENGTH &&
	       strspn(text, "0123456789abcdef") == CORDON_APPROVAL_ID_LENGTH;
}

/* A time that can't be read has passed. */
static bool has_passed(const char *time, int64_t now)
{
	int64_t ms;

	return cordon_time_parse(time, &ms) < 0 || ms <= now;
}

bool cordon_approval_is_over(const struct cordon_approval_record *record, int64_t now)
{
	return record->state == CORDON_APPROVAL_DONE || record->state == CORDON_APPROVAL_EXPIRED ||
	       (record->state == CORDON_APPROVAL_DENIED &&
		(record->answered_on == CORDON_APPROVAL_BY_CLIENT || has_passed(record->expires_at, now)));
}

int cordon_approval_read(int dir_fd, const char *id, struct cordon_approval_record *ret_record, struct cordon_error *err)
{
	struct cordon_approval_record record = { 0 };
	char file[CORDON_APPROVAL_ID_LENGTH + sizeof(CORDON_APPROVAL_SUFFIX)];
	int r;

	if (!is_id(id))
		return no_approval(id, err);
	snprintf(file, sizeof(file), "%s" CORDON_APPROVAL_SUFFIX, id);
	r = cordon_record_load(&cordon_approval_kind, dir_fd, file, &record, err);
	if (r == -ENOENT)
		return no_approval(id, err);
	if (r == 0 && !cordon_streq(record.id, id)) {
		cordon_approval_record_done(&record);
		r = cordon_fail(err, -EBADMSG, CORDON_KIND_IO, "the record of an approval is damaged: id");
	}
	if (r < 0)
		return cordon_error_prefix(err, r, "approval %s", id);
	if ((record.state == CORDON_APPROVAL_WAITING || record.state == CORDON_APPROVAL_APPROVED) &&
	    has_passed(record.expires_at, cordon_time_now()))
		record.state = CORDON_APPROVAL_EXPIRED;
	*ret_record = record;
	return 0;
}

int cordon_approval_remove(int dir_fd, const char *id, struct cordon_error *err)
{
	char file[NAME_MAX + 1];

	snprintf(file, sizeof(file), "%s" CORDON_APPROVAL_SUFFIX, id);
	if (unlinkat(dir_fd, file, 0) < 0 && errno != ENOENT)
		return cordon_fail_errno(err, -errno, "cannot remove the approval %s", id);
	return 0;
}

int cordon_approval_get(const struct cordon_store *store, const char *id, struct cordon_approval_record *ret_record,
			struct cordon_error *err)
{
	autofd int dir = -1;
	int r = cordon_approval_dir(&store->home, &dir, err);

	return r < 0 ? r : cordon_approval_read(dir, id, ret_record, err);
}

void cordon_approvals_done(struct cordon_approvals *approvals)
{
	for (size_t i = 0; i < approvals->n; i++)
		cordon_approval_record_done(&approvals->items[i]);
	free(approvals->items);
	*approvals = (struct cordon_approvals){ 0 };
}

static int compare(const void *a, const void *b)
{
	const struct cordon_approval_record *x = a, *y = b;
	int r = strcmp(x->created_at, y->created_at);

	return r ? r : strcmp(x->id, y->id);
}

static bool fits(const struct cordon_approval_query *query, const struct cordon_approval_record *record)
{
	if (!query)
		return true;
	return (!query->waiting || record->state == CORDON_APPROVAL_WAITING) &&
	       (!query->only || cordon_json_has(query->only, record->project_id)) &&
	       (!query->session || cordon_streq(query->session, record->session_id));
}

int cordon_approvals_load(const struct cordon_store *store, const struct cordon_approval_query *query,
			  struct cordon_approvals *ret_approvals, struct cordon_error *err)
{
	autoapprovals struct cordon_approvals approvals = { 0 };
	json_auto_t *names = NULL;
	autofd int dir = -1;
	size_t i;
	json_t *name;
	int r = cordon_approval_dir(&store->home, &dir, err);

	if (r == 0)
		r = cordon_record_names(dir, CORDON_APPROVAL_SUFFIX, &names, err);
	if (r < 0)
		return r;
	approvals.items = calloc(json_array_size(names) + 1, sizeof(*approvals.items));
	if (!approvals.items)
		return cordon_no_memory(err);
	json_array_foreach(names, i, name) {
		struct cordon_approval_record record = { 0 };

		r = cordon_approval_read(dir, json_string_value(name), &record, err);
		if (r == -ENOENT) /* One that is removed meanwhile is no part of the list. */
			continue;
		if (r < 0)
			return r;
		if (!fits(query, &record)) {
			cordon_approval_record_done(&record);
			continue;
		}
		approvals.waiting += record.state == CORDON_APPROVAL_WAITING;
		approvals.items[approvals.n++] = record;
	}
	qsort(approvals.items, approvals.n, sizeof(*approvals.items), compare);
	*ret_approvals = approvals;
	approvals = (struct cordon_approvals){ 0 };
	return 0;
}

/* Whether a record is new enough to wait: from the file alone, which is written when a question is put or answered. */
static bool may_wait(int dir_fd, const char *file, int64_t now)
{
	struct stat st;

	return fstatat(dir_fd, file, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       (int64_t)st.st_mtim.tv_sec * 1000 > now - CORDON_APPROVAL_LIFE_MS - 1000;
}

size_t cordon_approvals_waiting(const struct cordon_store *store, bool *ret_more)
{
	int64_t now = cordon_time_now();
	json_auto_t *names = NULL;
	autofd int dir = -1;
	size_t i, n = 0, looked_at = 0;
	json_t *name;

	*ret_more = false;
	if (cordon_approval_dir(&store->home, &dir, NULL) < 0 ||
	    cordon_record_names(dir, CORDON_APPROVAL_SUFFIX, &names, NULL) < 0)
		return 0;
	json_array_foreach(names, i, name) {
		autoapproval struct cordon_approval_record record = { 0 };
		char file[CORDON_APPROVAL_ID_LENGTH + sizeof(CORDON_APPROVAL_SUFFIX)];

		snprintf(file, sizeof(file), "%.*s" CORDON_APPROVAL_SUFFIX, CORDON_APPROVAL_ID_LENGTH,
			 json_string_value(name));
		if (!may_wait(dir, file, now))
			continue;
		if (looked_at++ == COUNTED_MOST) {
			*ret_more = true;
			break;
		}
		n += cordon_approval_read(dir, json_string_value(name), &record, NULL) == 0 &&
		     record.state == CORDON_APPROVAL_WAITING;
	}
	return n;
}

static int find_latest(const struct cordon_store *store, char ret_id[static CORDON_ID_SIZE], struct cordon_error *err)
{
	const struct cordon_approval_query query = { .waiting = true };
	autoapprovals struct cordon_approvals waiting = { 0 };
	int r = cordon_approvals_load(store, &query, &waiting, err);

	if (r == 0 && waiting.n == 0)
		r = cordon_fail(err, -ENOENT, CORDON_KIND_NOT_FOUND, "no approval waits for an answer");
	return r < 0 ? r
		     : cordon_copy(ret_id, CORDON_ID_SIZE, waiting.items[waiting.n - 1].id, CORDON_APPROVAL_ID_LENGTH);
}

int cordon_approval_find(const struct cordon_store *store, const char *text, char ret_id[static CORDON_ID_SIZE],
			 struct cordon_error *err)
{
	const char *found = NULL;
	json_auto_t *names = NULL;
	autofd int dir = -1;
	size_t i, n = strlen(text);
	json_t *name;
	int r;

	if (cordon_streq(text, "latest"))
		return find_latest(store, ret_id, err);
	if (n < CORDON_FIND_MIN) {
		r = cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "say at least %d characters of the id of an approval",
				CORDON_FIND_MIN);
		cordon_error_hint(err, "see 'cordon approvals list'");
		return r;
	}
	r = cordon_approval_dir(&store->home, &dir, err);
	if (r == 0)
		r = cordon_record_names(dir, CORDON_APPROVAL_SUFFIX, &names, err);
	if (r < 0)
		return r;
	json_array_foreach(names, i, name) {
		if (!is_id(json_string_value(name)) || strncasecmp(json_string_value(name), text, n) != 0)
			continue;
		if (found) {
			r = cordon_fail(err, -ENOTUNIQ, CORDON_KIND_USAGE, "%.80s may be approval %s or %s", text,
					found, json_string_value(name));
			cordon_error_hint(err, "say more of the id");
			return r;
		}
		found = json_string_value(name);
	}
	return found ? cordon_copy(ret_id, CORDON_ID_SIZE, found, strlen(found)) : no_approval(text, err);
}

/* Temporary files of writers that were killed. Every writer holds the lock, so none of them is in use. */
static int remove_temporary(void *data, int dir_fd, const char *name)
{
	(void)data;
	if (strncmp(name, ".cordon-", strlen(".cordon-")) == 0)
		unlinkat(dir_fd, name, 0);
	return 0;
}

int cordon_approvals_gc(const struct cordon_home *home, int64_t keep_ms, size_t *ret_removed, struct cordon_error *err)
{
	int64_t before = cordon_time_now() - keep_ms;
	json_auto_t *names = NULL;
	autofd int dir = -1;
	autofd int lock = -1;
	size_t i, removed = 0;
	json_t *name;
	int r = cordon_approval_dir(home, &dir, err);

	if (r == 0)
		r = cordon_lock_take(dir, "lock", LOCK_EX, &lock, err);
	if (r == 0)
		r = cordon_state_kind_each(home, CORDON_STATE_KIND_APPROVALS, remove_temporary, NULL, err);
	if (r == 0)
		r = cordon_record_names(dir, CORDON_APPROVAL_SUFFIX, &names, err);
	json_array_foreach(names, i, name) {
		autoapproval struct cordon_approval_record record = { 0 };

		/* Whatever was answered: it expires an hour later, and is not needed then. */
		if (r < 0 || cordon_approval_read(dir, json_string_value(name), &record, NULL) < 0 ||
		    !cordon_approval_is_over(&record, cordon_time_now()) || !has_passed(record.expires_at, before))
			continue;
		r = cordon_approval_remove(dir, record.id, err);
		removed += r == 0;
	}
	if (r == 0)
		*ret_removed = removed;
	return r;
}
