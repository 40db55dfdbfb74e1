/* SPDX-License-Identifier: Apache-2.0 */
/* What happens during a run, told to the person on stderr and to the audit log. */
#include <inttypes.h>
#include <stdio.h>

#include "cli/run_events.h"
#include "sandbox/landlock.h"
#include "sandbox/report.h"

#define WORKSPACE "WORKSPACE"

int cordon_run_events_init(struct cordon_run_events *events, struct cordon_cli *cli, const struct cordon_home *home,
			   const char *run_id, const struct cordon_policy *policy, bool quiet, struct cordon_error *err)
{
	struct cordon_audit_ids ids = { .session_id = run_id };

	cordon_voice_init(&events->voice, cli);
	events->policy = policy;
	return quiet ? 0 : cordon_audit_open(home, &ids, &events->audit, err);
}

void cordon_run_events_done(struct cordon_run_events *events)
{
	uint64_t lost = events->audit ? cordon_audit_unrecorded(events->audit) : 0;

	events->audit = cordon_audit_close(events->audit);
	cordon_voice_flush(&events->voice);
	/* The one thing that the log itself can't tell. */
	if (lost)
		cordon_cli_notice(events->voice.cli,
				  "WARNING: %" PRIu64 " events are missing in the audit log: it could not be written",
				  lost);
	cordon_voice_done(&events->voice);
}

static const char *mode_of(const struct cordon_run_events *events)
{
	return events->policy->mode == CORDON_MODE_STRICT ? "strict" : "permissive";
}

static int record(struct cordon_run_events *events, struct cordon_audit_event *event, json_t *detail,
		  struct cordon_error *err)
{
	int r;

	event->mode = mode_of(events);
	event->detail = detail;
	r = events->audit ? cordon_audit_write(events->audit, event, err) : 0;
	json_decref(detail);
	return r;
}

/* On stderr, so that nobody takes the lower tier for the full one. */
static void say_missing(const struct cordon_run_events *events, const json_t *missing)
{
	autobuf struct cordon_buf names = CORDON_BUF(4096);
	const json_t *name;
	size_t i;

	json_array_foreach(missing, i, name)
		if (cordon_buf_addf(&names, "%s%s", i ? ", " : "", json_string_value(name)) < 0)
			return;
	if (names.len)
		cordon_cli_log(events->voice.cli, "INFO", "best effort: not active here: %s", names.data);
}

int cordon_run_events_start(struct cordon_run_events *events, const struct cordon_plan *plan, struct cordon_error *err)
{
	struct cordon_audit_event event = { .type = CORDON_AUDIT_START, .path = plan->root };
	json_t *missing = cordon_missing_json(plan->tier, cordon_landlock_abi());

	if (plan->best_effort)
		say_missing(events, missing);
	return record(events, &event,
		      json_pack("{s:o, s:s, s:b, s:s, s:o}", "command", cordon_audit_text(plan->argv[0]), "net",
				plan->net_none ? "none" : "host", "best_effort", plan->best_effort, "tier",
				plan->tier == CORDON_TIER_FULL ? "full" : "landlock", "missing", missing),
		      err);
}

/* The seed's words. */
static void say_violation(struct cordon_run_events *events, const struct cordon_event *event)
{
	struct cordon_voice *voice = &events->voice;

	if (event->count > 1) {
		cordon_voice_line(voice, WORKSPACE, "  (%u times: %s %s)", event->count, event->op, event->path);
		return;
	}
	if (event->reason == CORDON_REASON_PROTECTED)
		cordon_voice_line(voice, WORKSPACE, "BLOCKED: Change of a protected path");
	else if (event->verdict == CORDON_WARN)
		cordon_voice_line(voice, WORKSPACE, "WARNING: File access outside workspace (permissive mode)");
	else
		cordon_voice_line(voice, WORKSPACE, "BLOCKED: File access outside workspace");
	cordon_voice_line(voice, WORKSPACE, "  File: %s", event->path);
	cordon_voice_line(voice, WORKSPACE, "  Operation: %s", event->op);
	if (event->verdict != CORDON_WARN && event->reason != CORDON_REASON_PROTECTED && events->policy->folders)
		cordon_voice_line(voice, WORKSPACE, "  Workspace folders: %s", events->policy->folders);
}

static void take_violation(struct cordon_run_events *events, const struct cordon_event *event)
{
	struct cordon_audit_event out = { .type = CORDON_AUDIT_VIOLATION,
					  .op = event->op,
					  .path = event->path,
					  .rule = event->rule,
					  .decision = cordon_verdict_name(event->verdict) };

	if (!events->hush || event->verdict != CORDON_WARN)
		say_violation(events, event);
	record(events, &out, event->count > 1 ? json_pack("{s:i}", "count", (int)event->count) : NULL, NULL);
}

static void take_untold(struct cordon_run_events *events, const struct cordon_event *event)
{
	struct cordon_audit_event out = { .type = CORDON_AUDIT_VIOLATION };

	cordon_voice_line(&events->voice, WORKSPACE, "  (%u more accesses outside workspace are not listed)",
			  event->count);
	record(events, &out, json_pack("{s:I}", "count", (json_int_t)event->count), NULL);
}

static void take_lost(struct cordon_run_events *events, const struct cordon_event *event)
{
	struct cordon_audit_event out = { .type = CORDON_AUDIT_PROTECTED_LOST,
					  .path = event->path,
					  .success = event->held ? CORDON_AUDIT_SUCCEEDED : CORDON_AUDIT_FAILED };

	cordon_voice_line(&events->voice, WORKSPACE, "WARNING: the host replaced a protected path; it is %s: %s",
			  event->held ? "protected again" : "gone, and protected should it return", event->path);
	record(events, &out, NULL, NULL);
}

static void take_made(struct cordon_run_events *events, const struct cordon_event *event)
{
	struct cordon_audit_event out = { .type = CORDON_AUDIT_PROTECTED_CREATED,
					  .path = event->path,
					  .rule = event->rule,
					  .op = "create",
					  .decision = event->by_agent ? "deny" : "allow",
					  .success = event->held ? CORDON_AUDIT_SUCCEEDED : CORDON_AUDIT_FAILED };

	if (event->by_agent)
		cordon_voice_line(&events->voice, WORKSPACE, "BLOCKED: a protected name came to be and %s: %s",
				  event->held ? "was taken away" : "could not be taken away", event->path);
	else
		cordon_voice_line(&events->voice, WORKSPACE,
				  "WARNING: the host made a protected path; it is protected from now on: %s",
				  event->path);
	record(events, &out, json_pack("{s:b}", "by_agent", event->by_agent), NULL);
}

void cordon_run_events_take(void *data, const struct cordon_event *event)
{
	struct cordon_run_events *events = data;
	struct cordon_audit_event out = { .type = CORDON_AUDIT_LIMIT, .op = event->op, .path = event->path };

	switch (event->kind) {
	case CORDON_EVENT_VIOLATION:
		take_violation(events, event);
		break;
	case CORDON_EVENT_UNTOLD:
		take_untold(events, event);
		break;
	case CORDON_EVENT_LOST:
		take_lost(events, event);
		break;
	case CORDON_EVENT_MADE:
		take_made(events, event);
		break;
	case CORDON_EVENT_LIMIT:
		cordon_voice_line(&events->voice, "LIMIT", "%s limit was reached", event->op);
		record(events, &out, NULL, NULL);
		break;
	case CORDON_EVENT_HARD_LINK:
		cordon_voice_line(&events->voice, WORKSPACE,
				  "a protected path had other names (hard links) and was copied apart: %s", event->path);
		out.type = CORDON_AUDIT_GRANT;
		out.op = "copy_apart";
		record(events, &out, json_pack("{s:i}", "files", (int)event->count), NULL);
		break;
	case CORDON_EVENT_STARTED:
		break;
	}
	cordon_voice_say(&events->voice);
}

void cordon_run_events_end(struct cordon_run_events *events, const struct cordon_result *result)
{
	struct cordon_audit_event event = { .type = CORDON_AUDIT_END,
					    .success = result->state == CORDON_STATE_COMPLETED ? CORDON_AUDIT_SUCCEEDED
											       : CORDON_AUDIT_FAILED,
					    .kind = result->error.code ? result->error.kind : CORDON_KIND_NONE };

	record(events, &event,
	       json_pack("{s:s, s:i, s:i, s:I, s:i}", "state", cordon_state_name(result->state), "exit_code",
			 result->exit_code, "signal", result->signal, "duration_ms", (json_int_t)result->duration_ms,
			 "violations", (int)result->violations),
	       NULL);
}

void cordon_run_events_refused(struct cordon_run_events *events, const struct cordon_error *err)
{
	struct cordon_audit_event event = {
		.type = CORDON_AUDIT_REFUSAL, .success = CORDON_AUDIT_FAILED, .kind = err->kind, .decision = "deny"
	};

	record(events, &event, json_pack("{s:o}", "message", cordon_audit_text(err->message)), NULL);
}
