/* SPDX-License-Identifier: Apache-2.0 */
/* Selects the records of the audit log to show, and formats them. */
#include <stdio.h>

#include "audit/query.h"
#include "base/text.h"
#include "base/time.h"

#define RUN_SHOWN 8 /* characters of a session id in a line for a person */

static int parse_time(const char *text, int64_t now, int64_t *ret_time, struct cordon_error *err)
{
	uint64_t back;
	int r;

	if (cordon_parse_duration(text, 1000, &back) == 0 && back <= (uint64_t)INT64_MAX / 2) {
		*ret_time = now - (int64_t)back;
		return 0;
	}
	if (cordon_time_parse(text, ret_time) == 0)
		return 0;
	r = cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "not a time: %s", text);
	cordon_error_hint(err, "say 10m, 2h or 2026-01-02T03:04:05Z");
	return r;
}

int cordon_audit_since_parse(const char *text, int64_t now, struct cordon_audit_filter *filter, struct cordon_error *err)
{
	int r = parse_time(text, now, &filter->since, err);

	filter->has_since |= r == 0;
	return r;
}

int cordon_audit_until_parse(const char *text, int64_t now, struct cordon_audit_filter *filter, struct cordon_error *err)
{
	int r = parse_time(text, now, &filter->until, err);

	filter->has_until |= r == 0;
	return r;
}

int cordon_audit_decision_parse(const char *decision, struct cordon_audit_filter *filter, struct cordon_error *err)
{
	for (cordon_verdict verdict = CORDON_ALLOW; verdict <= CORDON_DENY; verdict++) {
		if (!cordon_streq(cordon_verdict_name(verdict), decision))
			continue;
		filter->decision = decision;
		return 0;
	}
	return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "no such decision: %s; there are allow, warn and deny",
			   decision);
}

static void name_kinds(struct cordon_buf *buf)
{
	for (size_t i = 0; i < CORDON_AUDIT__MAX; i++)
		cordon_buf_addf(buf, "%s%s", i ? " " : "", cordon_audit_type_name((cordon_audit_type)i));
}

int cordon_audit_kinds_parse(const char *list, struct cordon_audit_filter *filter, struct cordon_error *err)
{
	uint32_t types = 0;

	for (const char *p = list;; p++) {
		size_t n = strcspn(p, ",");
		cordon_audit_type type;

		if (cordon_audit_type_parse(p, n, &type) < 0) {
			autobuf struct cordon_buf names = CORDON_BUF(1024);
			int r = cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "no such event: %.*s",
					    (int)(n < 200 ? n : 200), p);

			name_kinds(&names);
			cordon_error_hint(err, "there are: %s", names.data ? names.data : "");
			return r;
		}
		types |= UINT32_C(1) << type;
		p += n;
		if (!*p)
			break;
	}
	filter->types |= types;
	return 0;
}

int cordon_audit_run_parse(const char *run, struct cordon_audit_filter *filter, struct cordon_error *err)
{
	size_t n = strlen(run);

	if (n < CORDON_AUDIT_RUN_MIN ||
	    strspn(run, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") != n)
		return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE,
				   "not a run id, or less than %d characters of one: %s", CORDON_AUDIT_RUN_MIN, run);
	filter->run = run;
	return 0;
}

const char *cordon_audit_as_logged(const char *text, struct cordon_buf *buf)
{
	if (cordon_text_safe(text, strlen(text)))
		return text;
	return cordon_text_escape(buf, text, strlen(text)) == 0 ? buf->data : NULL;
}

static bool has(const struct cordon_audit_record *record, const char *key, const char *part)
{
	const char *text = json_string_value(json_object_get(record->object, key));

	return text && strstr(text, part);
}

bool cordon_audit_match(const struct cordon_audit_filter *filter, const struct cordon_audit_record *record)
{
	const char *decision;

	if ((filter->has_since && record->time < filter->since) || (filter->has_until && record->time >= filter->until))
		return false;
	if (filter->types && (record->type == CORDON_AUDIT__MAX || !(filter->types & UINT32_C(1) << record->type)))
		return false;
	if (filter->run && (!record->session_id || strncmp(record->session_id, filter->run, strlen(filter->run)) != 0))
		return false;
	if ((filter->path && !has(record, "path", filter->path)) ||
	    (filter->agent && !has(record, "agent", filter->agent) && !has(record, "orchestrator_id", filter->agent)))
		return false;
	decision = filter->decision ? json_string_value(json_object_get(record->object, "decision")) : "";
	return !filter->decision || (decision && cordon_streq(decision, filter->decision));
}

/* The log contains safe text, which is shown as it is. Anything else in it is forged, and is escaped here. */
static int add_safe(struct cordon_buf *buf, const char *s, size_t n)
{
	return cordon_text_safe(s, n) ? cordon_buf_add(buf, s, n) : cordon_text_escape(buf, s, n);
}

static int add_value(struct cordon_buf *buf, const char *key, json_t *value)
{
	autofree char *dump = NULL;
	int r = cordon_buf_addc(buf, ' ');

	if (r == 0)
		r = add_safe(buf, key, strlen(key));
	if (r == 0)
		r = cordon_buf_addc(buf, '=');
	if (r < 0)
		return r;
	if (json_is_string(value))
		return add_safe(buf, json_string_value(value), json_string_length(value));
	dump = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
	return dump ? add_safe(buf, dump, strlen(dump)) : -ENOMEM;
}

cordon_audit_tone cordon_audit_tone_of(const struct cordon_audit_record *record)
{
	const char *decision = json_string_value(json_object_get(record->object, "decision"));

	switch (record->type) {
	case CORDON_AUDIT_VIOLATION:
		return decision && cordon_streq(decision, "warn") ? CORDON_AUDIT_TONE_LOOK : CORDON_AUDIT_TONE_REFUSED;
	case CORDON_AUDIT_PROTECTED_LOST:
	case CORDON_AUDIT_PROTECTED_CREATED:
	case CORDON_AUDIT_REFUSAL:
		return CORDON_AUDIT_TONE_REFUSED;
	case CORDON_AUDIT_LIMIT:
	case CORDON_AUDIT_DROPPED:
	case CORDON_AUDIT_PRUNED:
	case CORDON_AUDIT_REPAIRED:
		return CORDON_AUDIT_TONE_LOOK;
	case CORDON_AUDIT_GRANT:
	case CORDON_AUDIT_CHANGES:
	case CORDON_AUDIT_APPROVAL:
		return CORDON_AUDIT_TONE_CHANGE;
	case CORDON_AUDIT_START:
	case CORDON_AUDIT_END:
	case CORDON_AUDIT_GC:
	case CORDON_AUDIT_CALL:
	case CORDON_AUDIT_ROTATED:
	case CORDON_AUDIT__MAX:
	default:
		return CORDON_AUDIT_TONE_PLAIN;
	}
}

/* "2026-01-02T03:04:05.678Z  violation          9d1c20aa". */
static int add_columns(struct cordon_buf *buf, const struct cordon_audit_record *record, bool colour)
{
	static const char *const colours[] = {
		[CORDON_AUDIT_TONE_PLAIN] = NULL,
		[CORDON_AUDIT_TONE_CHANGE] = "\x1b[36m",
		[CORDON_AUDIT_TONE_LOOK] = "\x1b[33m",
		[CORDON_AUDIT_TONE_REFUSED] = "\x1b[31m",
	};
	const char *paint = colour ? colours[cordon_audit_tone_of(record)] : NULL;
	char when[CORDON_TIME_SIZE], event[32], run[RUN_SHOWN + 1] = "-";
	char shown[CORDON_TIME_SIZE + sizeof(event)];

	cordon_time_format(record->time, when);
	cordon_text_escape_fixed(event, sizeof(event), record->event, strlen(record->event));
	if (record->session_id)
		cordon_text_escape_fixed(run, sizeof(run), record->session_id, strlen(record->session_id));
	snprintf(shown, sizeof(shown), "%-17s", event);
	return cordon_buf_addf(buf, "%s  %s%s%s  %-*s ", when, paint ? paint : "", shown, paint ? "\x1b[0m" : "",
			       RUN_SHOWN, run);
}

int cordon_audit_format(const struct cordon_audit_record *record, bool colour, struct cordon_buf *ret_text)
{
	int r = add_columns(ret_text, record, colour);

	return r < 0 ? r : cordon_audit_format_what(record, ret_text);
}

int cordon_audit_format_what(const struct cordon_audit_record *record, struct cordon_buf *ret_text)
{
	/* These are clear without a name and come first; the rest follows with its name. */
	static const char *const plain[] = { "decision", "op", "path" };
	static const char *const named[] = {
		"rule",		"mode",	     "kind", "success", "project_id", "agent", "orchestrator_id",
		"workspace_id", "request_id"
	};
	json_t *detail = json_object_get(record->object, "detail");
	json_t *value;
	const char *key;
	int r = 0;

	for (size_t i = 0; r == 0 && i < CORDON_ARRAY_SIZE(plain); i++) {
		value = json_object_get(record->object, plain[i]);
		if (!json_is_string(value))
			continue;
		r = cordon_buf_addc(ret_text, ' ');
		if (r == 0)
			r = add_safe(ret_text, json_string_value(value), json_string_length(value));
	}
	for (size_t i = 0; r == 0 && i < CORDON_ARRAY_SIZE(named); i++) {
		value = json_object_get(record->object, named[i]);
		if (value)
			r = add_value(ret_text, named[i], value);
	}
	json_object_foreach(detail, key, value) {
		if (cordon_streq(key, "metrics"))
			continue; /* 'cordon stats' shows them */
		if (r == 0)
			r = add_value(ret_text, key, value);
	}
	return r;
}
