/* SPDX-License-Identifier: Apache-2.0 */
/* policy_check: says what an agent in a workspace may do with a path, and why, by the one decision function. */
#include "policy/policy.h"
#include "mcp/internal.h"
#include "mcp/tools.h"
#include "store/store.h"

static json_t *describe(const char *path, const char *operation, const char *verdict, const char *reason,
			const char *rule, const char *text, const char *remedy)
{
	json_t *answer = json_pack("{s:s, s:s, s:s, s:s, s:s}", "path", path, "operation", operation, "verdict",
				   verdict, "reason", reason, "explanation", text);

	if (answer && rule)
		json_object_set_new(answer, "rule", json_string(rule));
	if (answer && remedy && *remedy)
		json_object_set_new(answer, "suggestion", json_string(remedy));
	return answer;
}

static json_t *describe_outside(const char *path, const char *operation)
{
	return describe(path, operation, cordon_streq(operation, "read") ? "outside" : "deny", "outside_root", NULL,
			"outside " CORDON_WORKSPACE_AT
			" an agent sees a read-only system and private temporary directories, nothing else of the host",
			"use a path below " CORDON_WORKSPACE_AT);
}

/* The answer must reveal nothing about the host to the agent of a session: neither where the workspace lies there, nor
 * where a link in it would lead. */
static bool names_the_host(const struct cordon_decision *decision)
{
	return decision->reason == CORDON_REASON_OUTSIDE_ROOT || decision->reason == CORDON_REASON_UNRESOLVABLE;
}

static int policy_check(struct cordon_mcp_request *request, json_t *args, json_t **ret_result, char **ret_text,
			struct cordon_error *err)
{
	autobuf struct cordon_buf text = CORDON_BUF(4 * CORDON_PATH_MAX);
	autobuf struct cordon_buf remedy = CORDON_BUF(4 * CORDON_PATH_MAX);
	const struct cordon_store *store = request->mcp->store;
	const char *project = cordon_json_string(args, "project_id");
	const char *path = cordon_json_string(args, "path");
	const char *operation = cordon_json_string(args, "operation");
	struct cordon_workspace_request wanted = { .id = cordon_json_string(args, "workspace_id") };
	struct cordon_policy *policy = NULL;
	struct cordon_decision decision;
	autoworkspacerecord struct cordon_workspace_record workspace = { 0 };
	char below[CORDON_PATH_MAX];
	cordon_op op;
	bool isolated = false;
	int r;

	(void)ret_text;
	if (!operation)
		operation = "write";
	op = cordon_streq(operation, "read") ? CORDON_OP_READ : CORDON_OP_WRITE;
	r = cordon_workspace_resolve(store, project, &wanted, false, &workspace, NULL, err);
	if (r == 0)
		r = cordon_workspace_policy(store, project, workspace.id, &policy, &isolated, err);
	if (r < 0 && request->mcp->options.session && err->kind == CORDON_KIND_POLICY_DENIED)
		return cordon_fail(err, r, CORDON_KIND_POLICY_DENIED,
				   "a protected path of this workspace can't be held");
	if (r < 0)
		return r;
	r = cordon_workspace_below(path, isolated, workspace.id, below, sizeof(below));
	if (r == -EXDEV) {
		*ret_result = describe_outside(path, operation);
		r = 0;
	} else if (r == 0) {
		r = cordon_policy_check(policy, below, op, &decision, err);
		if (r == 0 && request->mcp->options.session && names_the_host(&decision)) {
			*ret_result = describe_outside(path, operation);
			goto out;
		}
		if (r == 0)
			r = cordon_policy_explain(policy, &decision, op, &text, &remedy);
		if (r == 0)
			*ret_result = describe(path, operation, cordon_verdict_name(decision.verdict),
					       cordon_reason_name(decision.reason), decision.rule,
					       text.data ? text.data : "", remedy.data);
		else if (!err->code)
			cordon_fail_errno(err, r, "cannot explain the decision");
	} else {
		cordon_fail(err, r, CORDON_KIND_USAGE, "path is too long");
	}
out:
	cordon_policy_free(policy);
	if (r == 0 && !*ret_result)
		r = cordon_fail(err, -ENOMEM, CORDON_KIND_LIMIT, "out of memory");
	return r;
}

const struct cordon_mcp_tool cordon_mcp_policy_check = {
	.name = "policy_check",
	.title = "Check policy",
	.description =
		"Say whether an agent in a workspace may read or write a path, which rule decides, and what would change it. "
		"Nothing is touched. Absolute paths are as the agent sees them (/workspace/...), relative ones start where "
		"it starts.",
	.input = CORDON_INPUT_POLICY_CHECK,
	.output = CORDON_OUTPUT_POLICY_CHECK,
	.always = CORDON_ALWAYS_POLICY_CHECK,
	.read_only = true,
	.idempotent = true,
	.call = policy_check,
};
