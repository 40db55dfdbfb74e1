/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /metrics: what happened since the server started, and how things stand, as OpenMetrics text. Counters come from the audit
 * log, of which each request reads what is new, for a short time at most: what is left is counted by the next one. Sessions are
 * counted as their list does it, at most once in five seconds. No name of a project is in it unless the operator asked for labels.
 */
#include <stdio.h>
#include <unistd.h>

#include "approval/approval.h"
#include "base/json.h"
#include "base/time.h"
#include "serve/metrics.h"

#define READ_MS 50    /* of the audit log, in one request */
#define AGAIN_MS 5000 /* between two counts of sessions */
#define SESSIONS_MAX 100000

static const double bounds[CORDON_SERVE_BUCKETS] = { 0.05, 0.1, 0.25, 0.5, 1, 5, 30, 60, 300, 1800, 7200 };
static const char *const kinds[CORDON_REFUSED__MAX] = { "rule", "outside", "network", "commit", "run" };
static const char *const states[] = { "completed", "failed", "timeout", "cancelled", "refused" };

/* ---- counting ---- */

static void observe(struct cordon_serve_times *times, json_int_t ms)
{
	double seconds = ms < 0 ? 0 : (double)ms / 1000;

	times->n++;
	times->sum += seconds;
	for (size_t i = 0; i < CORDON_SERVE_BUCKETS; i++)
		times->below[i] += seconds <= bounds[i];
}

static void count_end(struct cordon_serve_counts *counts, const json_t *detail)
{
	const json_t *startup = json_object_get(json_object_get(detail, "metrics"), "startup_ms");

	for (size_t i = 0; i < CORDON_ARRAY_SIZE(states); i++)
		counts->ended[i] += cordon_json_is(detail, "state", states[i]);
	observe(&counts->duration, cordon_json_integer(detail, "duration_ms"));
	if (json_is_number(startup))
		observe(&counts->startup, (json_int_t)json_number_value(startup));
}

static void count_violation(struct cordon_serve_counts *counts, const json_t *object, const json_t *detail)
{
	const char *op = cordon_json_text(object, "op");
	bool net = cordon_streq(op, "connect") || cordon_streq(op, "resolve");
	cordon_serve_refused kind = net					 ? CORDON_REFUSED_NETWORK
				    : cordon_json_string(object, "rule") ? CORDON_REFUSED_RULE
									 : CORDON_REFUSED_OUTSIDE;
	json_int_t n = cordon_json_integer_or(detail, "count", 1);

	/* One that repeats another says how often, and the first was counted; one without an operation stands for many. */
	if (n > 1 && *op)
		n--;
	*(cordon_json_is(object, "decision", "warn") ? &counts->warned : &counts->refused[kind]) += n > 0 ? (uint64_t)n
													  : 0;
}

static void count_record(struct cordon_serve_counts *counts, const struct cordon_audit_record *record)
{
	const json_t *detail = json_object_get(record->object, "detail");
	const char *op = cordon_json_text(record->object, "op");

	if (record->type == CORDON_AUDIT_START)
		counts->started++;
	else if (record->type == CORDON_AUDIT_END)
		count_end(counts, detail);
	else if (record->type == CORDON_AUDIT_VIOLATION)
		count_violation(counts, record->object, detail);
	else if (record->type == CORDON_AUDIT_REFUSAL)
		counts->refused[cordon_streq(op, "git-take")  ? CORDON_REFUSED_COMMIT
				: cordon_streq(op, "network") ? CORDON_REFUSED_NETWORK
							      : CORDON_REFUSED_RUN]++;
	else if (record->type == CORDON_AUDIT_CALL)
		counts->calls++;
}

/* Reads what is new. */
static int follow(struct cordon_serve_counts *counts, const struct cordon_store *store, struct cordon_error *err)
{
	struct cordon_audit_filter filter = { .has_since = true, .since = counts->since };
	int64_t until = cordon_time_monotonic() + READ_MS;
	struct cordon_audit_item item;
	int r = counts->reader ? cordon_audit_reader_refresh(counts->reader, err)
			       : cordon_audit_reader_new(&store->home, &filter, &counts->reader, err);

	counts->behind = false;
	while (r == 0 && (r = cordon_audit_reader_next(counts->reader, &item, err)) > 0) {
		if (!item.damaged && cordon_audit_match(&filter, &item.record))
			count_record(counts, &item.record);
		r = 0;
		if (cordon_time_monotonic() >= until) {
			counts->behind = true;
			break;
		}
	}
	return r;
}

/* {project or "": {status: count}} */
static json_t *count_by_project(const struct cordon_store *store)
{
	struct cordon_session_query query = { .brief = true, .limit = SESSIONS_MAX };
	json_auto_t *sessions = NULL;
	json_t *found = json_object(), *session;
	size_t total, i;

	if (cordon_session_list(store, &query, &sessions, &total, NULL) < 0)
		return found;
	json_array_foreach(sessions, i, session) {
		const char *project = cordon_json_text(session, "project_id"),
			   *status = cordon_json_text(session, "status");
		json_t *counts = json_object_get(found, project);

		if (!counts && json_object_set_new(found, project, json_object()) == 0)
			counts = json_object_get(found, project);
		json_object_set_new(counts, status, json_integer(cordon_json_integer(counts, status) + 1));
	}
	return found;
}

static json_t *count_all(const struct cordon_store *store)
{
	static const char *const statuses[] = { "active", "completed", "failed" };
	json_t *counts = json_object();

	for (size_t i = 0; i < CORDON_ARRAY_SIZE(statuses); i++) {
		struct cordon_session_query query = { .status = statuses[i], .limit = 1, .ids_only = true };
		json_auto_t *sessions = NULL;
		size_t total = 0;

		if (cordon_session_list(store, &query, &sessions, &total, NULL) == 0)
			json_object_set_new(counts, statuses[i], json_integer((json_int_t)total));
	}
	return json_pack("{s:o}", "", counts);
}

/* ---- text ---- */

static void family(struct cordon_buf *out, const char *name, const char *type, const char *help)
{
	cordon_buf_addf(out, "# TYPE cordon_%s %s\n# HELP cordon_%s %s\n", name, type, name, help);
}

static void value(struct cordon_buf *out, const char *name, const char *labels, uint64_t n)
{
	cordon_buf_addf(out, "cordon_%s%s %llu\n", name, labels, (unsigned long long)n);
}

static void times_text(struct cordon_buf *out, const char *name, const char *help,
		       const struct cordon_serve_times *times)
{
	family(out, name, "histogram", help);
	for (size_t i = 0; i < CORDON_SERVE_BUCKETS; i++)
		cordon_buf_addf(out, "cordon_%s_bucket{le=\"%g\"} %llu\n", name, bounds[i],
				(unsigned long long)times->below[i]);
	cordon_buf_addf(out, "cordon_%s_bucket{le=\"+Inf\"} %llu\ncordon_%s_sum %.3f\ncordon_%s_count %llu\n", name,
			(unsigned long long)times->n, name, times->sum, name, (unsigned long long)times->n);
}

/* A label: backslashes, quotation marks and ends of lines are escaped. */
static void label(struct cordon_buf *out, const char *text)
{
	for (; *text; text++)
		if (*text == '\\' || *text == '"')
			cordon_buf_addf(out, "\\%c", *text);
		else if (*text == '\n')
			cordon_buf_adds(out, "\\n");
		else
			cordon_buf_addc(out, *text);
}

static void sessions_text(struct cordon_buf *out, const json_t *sessions)
{
	const char *project, *state;
	json_t *counts, *n;

	family(out, "sessions", "gauge", "Sessions by state.");
	json_object_foreach((json_t *)(uintptr_t)sessions, project, counts)
		json_object_foreach(counts, state, n) {
			cordon_buf_addf(out, "cordon_sessions{state=\"%s\"", state);
			if (*project) {
				cordon_buf_adds(out, ",project=\"");
				label(out, project);
				cordon_buf_adds(out, "\"");
			}
			cordon_buf_addf(out, "} %lld\n", (long long)json_integer_value(n));
		}
}

static void runs_text(struct cordon_buf *out, const struct cordon_serve_counts *counts)
{
	char labels[64];

	family(out, "runs_started", "counter", "Runs that began since the server started.");
	value(out, "runs_started_total", "", counts->started);
	family(out, "runs_ended", "counter", "Runs that ended, by state.");
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(states); i++) {
		snprintf(labels, sizeof(labels), "{state=\"%s\"}", states[i]);
		value(out, "runs_ended_total", labels, counts->ended[i]);
	}
	family(out, "refusals", "counter", "What was refused, by the kind of rule.");
	for (size_t i = 0; i < CORDON_REFUSED__MAX; i++) {
		snprintf(labels, sizeof(labels), "{kind=\"%s\"}", kinds[i]);
		value(out, "refusals_total", labels, counts->refused[i]);
	}
	family(out, "warnings", "counter", "Accesses outside that were let through with a warning.");
	value(out, "warnings_total", "", counts->warned);
	family(out, "calls", "counter", "Calls of clients.");
	value(out, "calls_total", "", counts->calls);
	times_text(out, "run_duration_seconds", "How long runs took.", &counts->duration);
	times_text(out, "run_startup_seconds", "How long it took until the program of a measured run started.",
		   &counts->startup);
}

static uint64_t resident_bytes(void)
{
	FILE *file = fopen("/proc/self/statm", "re");
	unsigned long long all, resident = 0;

	if (file && fscanf(file, "%llu %llu", &all, &resident) != 2)
		resident = 0;
	if (file)
		fclose(file);
	return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

int cordon_serve_metrics(struct cordon_serve_counts *counts, const struct cordon_store *store, bool labels,
			 struct cordon_buf *ret_text, struct cordon_error *err)
{
	int64_t now = cordon_time_monotonic();
	bool more = false;
	int r = follow(counts, store, err);

	if (r < 0)
		return r;
	if (!counts->sessions || now >= counts->counted + AGAIN_MS) {
		json_decref(counts->sessions);
		counts->sessions = labels ? count_by_project(store) : count_all(store);
		counts->counted = now;
	}
	runs_text(ret_text, counts);
	sessions_text(ret_text, counts->sessions);
	family(ret_text, "approvals_waiting", "gauge", "Questions that wait for a person.");
	value(ret_text, "approvals_waiting", "", cordon_approvals_waiting(store, &more));
	family(ret_text, "audit_behind", "gauge", "1 while records of the audit log are not counted yet.");
	value(ret_text, "audit_behind", "", counts->behind);
	family(ret_text, "server_resident_bytes", "gauge", "Memory of the server.");
	value(ret_text, "server_resident_bytes", "", resident_bytes());
	return cordon_buf_adds(ret_text, "# EOF\n") < 0 ? cordon_fail_errno(err, -ENOMEM, "metrics") : 0;
}

void cordon_serve_counts_done(struct cordon_serve_counts *counts)
{
	counts->reader = cordon_audit_reader_free(counts->reader);
	json_decref(counts->sessions);
	counts->sessions = NULL;
}
