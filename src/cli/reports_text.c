/* SPDX-License-Identifier: Apache-2.0 */
/* The texts of reports: turns the events of a run into lines for a person. */
#include <inttypes.h>
#include <stdio.h>

#include "base/path.h"
#include "base/setting.h"
#include "cli/reports.h"
#include "policy/temp_names.h"
#include "protect/repositories.h"
#include "run/event_text.h"
#include "run/result.h"

#define WORKSPACE "WORKSPACE"
#define NETWORK "NETWORK"
#define ENVIRONMENT "ENVIRONMENT"

void cordon_reporter_init(struct cordon_reporter *reporter, struct cordon_cli *cli, const struct cordon_policy *policy)
{
	cordon_report_queue_init(&reporter->queue, cli);
	reporter->policy = policy;
}

void cordon_reporter_done(struct cordon_reporter *reporter)
{
	cordon_report_queue_done(&reporter->queue);
}

/* Reported on stderr, so that nobody takes the lower tier for the full one. */
static void report_missing(const struct cordon_reporter *reporter, const json_t *missing)
{
	autobuf struct cordon_buf names = CORDON_BUF(4096);
	const json_t *name;
	size_t i;

	json_array_foreach(missing, i, name)
		if (cordon_buf_addf(&names, "%s%s", i ? ", " : "", json_string_value(name)) < 0)
			return;
	if (names.len)
		cordon_cli_log(reporter->queue.cli, "INFO", "best effort: not active here: %s", names.data);
}

void cordon_reporter_plan(struct cordon_reporter *reporter, const struct cordon_plan *plan)
{
	json_auto_t *missing = plan->asked.best_effort ? cordon_missing_json(plan) : NULL;

	if (plan->tier == CORDON_TIER_LANDLOCK)
		cordon_cli_log(reporter->queue.cli, "INFO",
			       "best effort: %s; Landlock and seccomp alone hold the folders", plan->tier_why);
	report_missing(reporter, missing);
	if (reporter->policy->has_home)
		cordon_cli_log(reporter->queue.cli, WORKSPACE,
			       "WARNING: the root %s is or contains your home directory: known secrets in it are hidden, "
			       "everything else is in reach",
			       reporter->policy->root.path);
}

void cordon_reporter_launched(struct cordon_reporter *reporter, const struct cordon_child *child)
{
	reporter->queue.output = child->output;
}

/* The decision that the event reports. */
static struct cordon_decision decision_of(const struct cordon_policy *policy, const struct cordon_event *event)
{
	struct cordon_decision decision = { .verdict = event->verdict,
					    .reason = event->reason,
					    .rule = event->rule,
					    .rule_where = event->rule_where,
					    .fence = event->fence };
	const char *path = event->path;

	if (cordon_path_within(path, policy->root.path)) {
		path += strlen(policy->root.path);
		path += strspn(path, "/");
	}
	cordon_copy(decision.resolved, sizeof(decision.resolved), path, strlen(path));
	return decision;
}

static bool is_base_of(void *path, const char *name, size_t n)
{
	const char *base = cordon_path_base(path);

	return strlen(base) == n && memcmp(base, name, n) == 0;
}

/* Reports which rule refused. Of a name beside a boundary it says why that boundary's rule is about it. */
static void report_rule(struct cordon_reporter *reporter, const struct cordon_event *event,
			const struct cordon_decision *d)
{
	autofree char *rule = strdup(d->rule);
	const char *name = cordon_path_base(event->path);

	cordon_report_queue_line(&reporter->queue, WORKSPACE, "  Rule: %s%s%s%s%s", d->rule, d->rule_where ? " (" : "",
				 d->rule_where ? d->rule_where : "", d->rule_where ? ")" : "",
				 d->reason == CORDON_REASON_PROTECTED && rule &&
						 cordon_temp_predictable(name, is_base_of, rule)
					 ? ", as a temporary name of it"
					 : "");
}

/* Reports by which rule something was refused, and what would lift that. */
static void report_remedy(struct cordon_reporter *reporter, const struct cordon_event *event)
{
	autobuf struct cordon_buf text = CORDON_BUF(4 * CORDON_PATH_MAX), remedy = CORDON_BUF(4 * CORDON_PATH_MAX);
	cordon_op op = cordon_streq(event->op, "read") || cordon_streq(event->op, "execute") ? CORDON_OP_READ
											     : CORDON_OP_WRITE;
	const struct cordon_decision decision = decision_of(reporter->policy, event);

	if (event->path[0] != '/')
		return; /* its name could not be read */
	if ((decision.reason == CORDON_REASON_DENY || decision.reason == CORDON_REASON_PROTECTED ||
	     decision.reason == CORDON_REASON_GRANT) &&
	    !decision.rule)
		return;
	if (decision.rule)
		report_rule(reporter, event, &decision);
	if (cordon_policy_explain(reporter->policy, &decision, op, &text, &remedy) == 0 && remedy.len)
		cordon_report_queue_line(&reporter->queue, WORKSPACE, "  To allow it: %s", remedy.data);
}

/* Reports one attempt to reach a host, with the rule that would allow it. */
static void report_host(struct cordon_reporter *reporter, const struct cordon_event *event)
{
	struct cordon_report_queue *queue = &reporter->queue;
	CORDON_UNCLEARED struct cordon_decision decision;
	const char *what = "BLOCKED: a host that is not in the list";

	if (cordon_policy_check_host(reporter->policy, event->path, &decision, NULL) == 0 &&
	    decision.verdict == CORDON_ALLOW)
		what = "BLOCKED: a connection that does not say which host it is made to";
	if (event->reason == CORDON_REASON_OTHER_HOST)
		what = "BLOCKED: a connection that names another host than the one it was made to";
	else if (event->reason == CORDON_REASON_HIDDEN_HOST)
		what = "BLOCKED: a connection that hides which host it is for (encrypted client hello)";
	else if (event->reason == CORDON_REASON_NOT_PUBLIC)
		what = "BLOCKED: a host of the list whose address is not public";
	cordon_report_queue_line(queue, NETWORK, "%s", what);
	cordon_report_queue_line(queue, NETWORK, "  Host: %s", event->path);
	if (event->rule)
		cordon_report_queue_line(queue, NETWORK, "  To allow it: %s '%s'",
					 cordon_setting_name(CORDON_SETTING_NET), event->rule);
	else if (event->reason == CORDON_REASON_OTHER_HOST)
		cordon_report_queue_line(queue, NETWORK,
					 "  To allow it: look up the host that is meant; /tcp in its rule skips the look");
}

static void report_variable(struct cordon_reporter *reporter, const char *name)
{
	if (getenv(name))
		cordon_report_queue_line(&reporter->queue, ENVIRONMENT,
					 "MISSING: %s was to be passed on, but only the endpoint of `inject` has its value",
					 name);
	else
		cordon_report_queue_line(&reporter->queue, ENVIRONMENT,
					 "MISSING: %s was to be passed on, and is not set", name);
}

/* Reports one access. People and scripts know these words, so they stay as they are. */
static void report_violation(struct cordon_reporter *reporter, const struct cordon_event *event)
{
	struct cordon_report_queue *queue = &reporter->queue;

	if (event->count > 1) {
		cordon_report_queue_line(queue, cordon_event_of_net(event) ? NETWORK : WORKSPACE, "  (%u times: %s %s)",
					 event->count, event->op, event->path);
		return;
	}
	if (cordon_event_of_net(event)) {
		report_host(reporter, event);
		return;
	}
	if (cordon_streq(event->op, CORDON_OP_ENV)) {
		report_variable(reporter, event->path);
		return;
	}
	if (event->reason == CORDON_REASON_PROTECTED)
		cordon_report_queue_line(queue, WORKSPACE, "BLOCKED: Change of a protected path");
	else if (event->verdict == CORDON_WARN)
		cordon_report_queue_line(queue, WORKSPACE, "WARNING: File access outside workspace (permissive mode)");
	else
		cordon_report_queue_line(queue, WORKSPACE, "BLOCKED: File access outside workspace");
	cordon_report_queue_line(queue, WORKSPACE, "  File: %s", event->path);
	cordon_report_queue_line(queue, WORKSPACE, "  Operation: %s", event->op);
	if (event->verdict != CORDON_WARN && event->reason != CORDON_REASON_PROTECTED && reporter->policy->folders)
		cordon_report_queue_line(queue, WORKSPACE, "  Workspace folders: %s", reporter->policy->folders);
	if (event->verdict != CORDON_WARN)
		report_remedy(reporter, event);
}

static void report_lost(struct cordon_reporter *reporter, const struct cordon_event *event)
{
	cordon_report_queue_line(&reporter->queue, WORKSPACE, "WARNING: the host replaced a %s path; it is %s: %s",
				 event->denied ? "denied" : "protected",
				 event->held ? event->denied ? "hidden again" : "protected again"
					     : "gone, and its name stays reserved",
				 event->path);
}

static void report_made(struct cordon_reporter *reporter, const struct cordon_event *event)
{
	cordon_report_queue_line(&reporter->queue, WORKSPACE, "WARNING: the host made a %s path; it %s: %s",
				 event->denied ? "denied" : "protected",
				 !event->held	 ? "is a link or can't be mounted on, and only its name is held"
				 : event->denied ? "is hidden from now on"
						 : "is protected from now on",
				 event->path);
}

void cordon_reporter_event(struct cordon_reporter *reporter, const struct cordon_event *event)
{
	struct cordon_report_queue *queue = &reporter->queue;
	autobuf struct cordon_buf text = CORDON_BUF(CORDON_PATH_MAX);

	switch (event->kind) {
	case CORDON_EVENT_VIOLATION:
		if (!reporter->omit_warnings || event->verdict != CORDON_WARN)
			report_violation(reporter, event);
		break;
	case CORDON_EVENT_UNTOLD:
		cordon_report_queue_line(queue, WORKSPACE, "  (%u more accesses outside workspace are not listed)",
					 event->count);
		break;
	case CORDON_EVENT_LOST:
		report_lost(reporter, event);
		break;
	case CORDON_EVENT_MADE:
		report_made(reporter, event);
		break;
	case CORDON_EVENT_OFFLINE:
		if (cordon_event_text(event, &text))
			cordon_report_queue_line(queue, NETWORK, "WARNING: %s", text.data);
		break;
	case CORDON_EVENT_LIMIT:
		if (cordon_event_text(event, &text))
			cordon_report_queue_line(queue, "LIMIT", "%s", text.data);
		break;
	case CORDON_EVENT_HARD_LINK:
		cordon_report_queue_line(queue, WORKSPACE,
					 "a protected path had other names (hard links) and was copied apart: %s",
					 event->path);
		break;
	case CORDON_EVENT_SCREEN:
		cordon_report_queue_release(queue);
		break;
	case CORDON_EVENT_STARTED:
	case CORDON_EVENT_LEFT:
	case CORDON_EVENT_REACHED:
		break;
	}
	cordon_report_queue_end(queue);
}

/* Reported with and without a summary: whoever runs git here next must know. */
static void report_repositories(struct cordon_reporter *reporter, const struct cordon_repositories *found)
{
	for (size_t i = 0; i < found->n && i < CORDON_REPOSITORIES_SHOWN_MAX; i++) {
		autobuf struct cordon_buf text = CORDON_BUF(2 * CORDON_PATH_MAX);

		if (cordon_repository_text(&found->items[i], &text) == 0)
			cordon_report_queue_line(&reporter->queue, WORKSPACE, "WARNING: %s", text.data);
	}
	if (found->n > CORDON_REPOSITORIES_SHOWN_MAX)
		cordon_report_queue_line(&reporter->queue, WORKSPACE,
					 "WARNING: and %zu more such repositories or gitlinks",
					 found->n - CORDON_REPOSITORIES_SHOWN_MAX);
	cordon_report_queue_end(&reporter->queue);
}

void cordon_reporter_result(struct cordon_reporter *reporter, const struct cordon_result *result)
{
	reporter->queue.output = NULL; /* it is gone with the child */
	reporter->queue.mid_line = result->mid_line;
	if (result->repositories)
		report_repositories(reporter, result->repositories);
	if (result->unrecorded) {
		cordon_report_queue_flush(&reporter->queue);
		cordon_cli_notice(reporter->queue.cli,
				  "WARNING: %" PRIu64 " events are missing in the audit log: it could not be written",
				  result->unrecorded);
	}
}
