/* SPDX-License-Identifier: Apache-2.0 */
/* Writes what happens in a run to the audit log. */
#include "run/audit.h"
#include "run/event_text.h"
#include "run/metrics.h"
#include "run/result.h"

/* Writes one event. Takes the reference to `detail`, which may be NULL. */
static int record(struct cordon_run_audit *audit, struct cordon_audit_event *event, json_t *detail,
		  struct cordon_error *err)
{
	int r;

	event->mode = audit->policy->mode == CORDON_MODE_STRICT ? "strict" : "permissive";
	event->detail = detail;
	r = audit->log ? cordon_audit_write(audit->log, event, err) : 0;
	json_decref(detail);
	return r;
}

int cordon_run_audit_start(struct cordon_run_audit *audit, const struct cordon_plan *plan, struct cordon_error *err)
{
	struct cordon_audit_event event = { .type = CORDON_AUDIT_START, .path = plan->root };
	json_t *missing = cordon_missing_json(plan);

	return record(audit, &event,
		      json_pack("{s:o, s:s, s:b, s:s, s:o}", "command", cordon_audit_text(plan->argv[0]), "net",
				cordon_plan_network(plan), "best_effort", plan->asked.best_effort, "tier",
				plan->tier == CORDON_TIER_FULL ? "full" : "landlock", "missing", missing),
		      err);
}

void cordon_run_audit_event(struct cordon_run_audit *audit, const struct cordon_event *event)
{
	struct cordon_audit_event out = { .op = event->op, .path = event->path };
	autobuf struct cordon_buf text = CORDON_BUF(4096);
	json_t *detail = NULL;

	switch (event->kind) {
	case CORDON_EVENT_VIOLATION:
		out.type = CORDON_AUDIT_VIOLATION;
		out.decision = cordon_verdict_name(event->verdict);
		if (cordon_event_of_net(event))
			detail = json_pack("{s:s, s:o*}", "reason", cordon_reason_name(event->reason), "would_allow",
					   event->rule ? cordon_audit_text(event->rule) : NULL);
		else
			out.rule = event->rule;
		if (event->count > 1 && !detail)
			detail = json_pack("{s:i}", "count", (int)event->count);
		break;
	case CORDON_EVENT_UNTOLD:
		out = (struct cordon_audit_event){ .type = CORDON_AUDIT_VIOLATION };
		detail = json_pack("{s:I}", "count", (json_int_t)event->count);
		break;
	case CORDON_EVENT_LOST:
		out.type = CORDON_AUDIT_PROTECTED_LOST;
		out.success = event->held ? CORDON_AUDIT_SUCCEEDED : CORDON_AUDIT_FAILED;
		break;
	case CORDON_EVENT_MADE:
		out.type = CORDON_AUDIT_PROTECTED_CREATED;
		out.rule = event->rule;
		out.op = "create";
		out.decision = "allow";
		out.success = event->held ? CORDON_AUDIT_SUCCEEDED : CORDON_AUDIT_FAILED;
		detail = json_pack("{s:b}", "by_agent", false);
		break;
	case CORDON_EVENT_LIMIT:
		out.type = CORDON_AUDIT_LIMIT;
		detail = json_pack("{s:I}", "limit", (json_int_t)event->limit);
		break;
	case CORDON_EVENT_HARD_LINK:
		out.type = CORDON_AUDIT_GRANT;
		out.op = "copy_apart";
		detail = json_pack("{s:i}", "files", (int)event->count);
		break;
	case CORDON_EVENT_OFFLINE:
		out.type = CORDON_AUDIT_REFUSAL;
		out.op = "network";
		out.decision = "deny";
		out.success = CORDON_AUDIT_FAILED;
		if (cordon_event_text(event, &text))
			detail = json_pack("{s:o}", "message", cordon_audit_text(text.data));
		break;
	case CORDON_EVENT_STARTED:
	case CORDON_EVENT_SCREEN:
	case CORDON_EVENT_LEFT:
	case CORDON_EVENT_REACHED:
		return;
	}
	record(audit, &out, detail, NULL);
}

void cordon_run_audit_end(struct cordon_run_audit *audit, const struct cordon_result *result)
{
	bool completed = result->state == CORDON_STATE_COMPLETED;
	struct cordon_audit_event event = { .type = CORDON_AUDIT_END,
					    .success = completed ? CORDON_AUDIT_SUCCEEDED : CORDON_AUDIT_FAILED,
					    .kind = result->error.code ? result->error.kind : CORDON_KIND_NONE };

	record(audit, &event,
	       json_pack("{s:s, s:i, s:i, s:I, s:i, s:o*, s:s*, s:o*}", "state", cordon_state_name(result->state),
			 "exit_code", result->exit_code, "signal", result->signal, "duration_ms",
			 (json_int_t)result->duration_ms, "violations", (int)result->violations, "repositories",
			 cordon_result_repositories(result), "limit", result->limit, "metrics",
			 result->metrics ? cordon_metrics_json(result) : NULL),
	       NULL);
}

void cordon_run_audit_refusal(struct cordon_run_audit *audit, const struct cordon_error *why)
{
	struct cordon_audit_event event = {
		.type = CORDON_AUDIT_REFUSAL, .success = CORDON_AUDIT_FAILED, .kind = why->kind, .decision = "deny"
	};

	record(audit, &event, json_pack("{s:o}", "message", cordon_audit_text(why->message)), NULL);
}
