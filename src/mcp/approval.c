/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A person decides about deletions, about settings that widen access, and about changes that leave a view. In the modern
 * era the server asks with an input_required result, in the legacy era with a request of its own. A client that supports
 * neither is refused.
 *
 * INVARIANT: requestState comes back under the control of the caller. It is authenticated by a key of this process over
 * principal, expiry, method and all arguments, so an approval is valid only for the call that was asked about.
 */
#include <sodium.h>
#include <stdio.h>

#include "base/text.h"
#include "base/time.h"
#include "config/values.h"
#include "mcp/internal.h"

#define STATE_LIFE_MS 600000
#define ANSWER_LIFE_MS 600000

static bool lacks(const json_t *list, const json_t *wanted)
{
	size_t i;
	json_t *item;

	json_array_foreach(list, i, item) {
		if (json_equal(item, wanted))
			return false;
	}
	return true;
}

/* Returns whether one list has an item that the other has not. */
static bool has_more(const json_t *list, const json_t *other)
{
	size_t i;
	json_t *item;

	json_array_foreach(list, i, item) {
		if (lacks(other, item))
			return true;
	}
	return false;
}

/* A limit of 0 means that there is no limit. */
static bool grows(int64_t before, int64_t after)
{
	return before && (!after || after > before);
}

/* Lists the shares of `after` that show more than those of `before`: new ones, and those that were read-only. */
static void add_shares(const json_t *before, const json_t *after, struct cordon_buf *ret_text)
{
	size_t i;
	json_t *item;

	json_array_foreach(after, i, item) {
		struct cordon_share_value share = { 0 };
		autofree char *writable = NULL;
		bool known = !lacks(before, item);

		if (known || cordon_share_parse(json_string_value(item), &share, NULL) < 0)
			continue;
		/* The same share, once writable, is no more when it can only be read. */
		if (share.read_only) {
			json_auto_t *wider = NULL;
			size_t n = json_string_length(item) - strlen(":ro");

			writable = strndup(json_string_value(item), n);
			wider = writable ? json_string(writable) : NULL;
			known = wider && !lacks(before, wider);
		}
		if (!known) {
			cordon_buf_addf(ret_text, "%sagents could %s ", ret_text->len ? "; " : "",
					share.read_only ? "read" : "read and change");
			cordon_text_escape(ret_text, share.source, strlen(share.source));
			cordon_buf_adds(ret_text, " of the host");
		}
		cordon_share_done(&share);
	}
}

static void add_profiles(const json_t *before, const json_t *after, struct cordon_buf *ret_text)
{
	size_t i;
	json_t *item;

	json_array_foreach(after, i, item) {
		if (!lacks(before, item))
			continue;
		cordon_buf_addf(ret_text, "%sagents would get the program and the variables of profile ",
				ret_text->len ? "; " : "");
		cordon_text_escape(ret_text, json_string_value(item), json_string_length(item));
	}
}

static void add_home(const char *before, const char *after, struct cordon_buf *ret_text)
{
	if (*after != '/' || cordon_streq(before, after))
		return;
	cordon_buf_addf(ret_text, "%sthe agents of all workspaces would share one home, ", ret_text->len ? "; " : "");
	cordon_text_escape(ret_text, after, strlen(after));
	cordon_buf_adds(ret_text, " of the host, and see what the others leave there");
}

static bool limits_grow(const struct cordon_settings_limits *before, const struct cordon_settings_limits *after)
{
	/* For the depth, 0 is a value like any other: it means no recursion. */
	return grows(before->max_sessions, after->max_sessions) ||
	       after->max_recursion_depth > before->max_recursion_depth ||
	       grows(before->max_agents_per_session, after->max_agents_per_session) ||
	       grows(before->timeout_seconds, after->timeout_seconds) ||
	       grows(before->memory_bytes, after->memory_bytes) || grows(before->pids, after->pids) ||
	       (before->max_cost_usd > 0 && (after->max_cost_usd <= 0 || after->max_cost_usd > before->max_cost_usd));
}

static void add_reason(struct cordon_buf *text, bool holds, const char *reason)
{
	if (holds)
		cordon_buf_addf(text, "%s%s", text->len ? "; " : "", reason);
}

/* A list that can't be told counts as wider. */
static void add_net(const struct cordon_settings *before, const struct cordon_settings *after,
		    struct cordon_buf *ret_text)
{
	struct cordon_net_list outer = { 0 }, inner = { 0 };
	struct cordon_error err = { 0 };

	if (cordon_settings_net(before, &outer, &err) < 0 || cordon_settings_net(after, &inner, &err) < 0 ||
	    (outer.listed && !inner.listed))
		add_reason(ret_text, true, "agents would get the host's network");
	else if (cordon_net_list_within(&inner, &outer, &err) < 0)
		/* The message begins with "it would". */
		cordon_buf_addf(ret_text, "%sagents%s", ret_text->len ? "; " : "", err.message + strlen("it"));
	cordon_net_list_done(&outer);
	cordon_net_list_done(&inner);
}

/* Lists what agents could do under the settings `after` that they can't do under `before`. It compares whole records,
 * so that a limit that is left out or a value that is reset counts like one that is named. */
static void widening(const struct cordon_settings *before, const struct cordon_settings *after,
		     struct cordon_buf *ret_text)
{
	add_reason(ret_text, before->workspace_isolation && !after->workspace_isolation,
		   "agents would see the whole project and every workspace in it");
	add_reason(ret_text, has_more(before->protected_paths, after->protected_paths),
		   "agents could change paths that are protected now");
	add_reason(ret_text, before->default_protection && !after->default_protection,
		   "agents could change what the host executes later");
	add_net(before, after, ret_text);
	add_reason(ret_text, before->cow && !after->cow, "sessions would change the workspace itself");
	add_reason(ret_text, after->best_effort && !before->best_effort,
		   "sessions would start although a protection is missing");
	add_reason(ret_text, has_more(after->env_pass, before->env_pass),
		   "agents would get more variables of cordon's environment");
	add_reason(ret_text, limits_grow(&before->limits, &after->limits),
		   "agents would get more processes, memory, time, money or sessions");
	add_home(before->home, after->home, ret_text);
	add_profiles(before->profile, after->profile, ret_text);
	add_shares(before->shares, after->shares, ret_text);
}

/* Adds the question about settings, if there is one. The tool itself refuses settings that are not valid. */
static void ask_about_settings(const struct cordon_project_record *project, const char *name, const json_t *args,
			       struct cordon_buf *ret_question)
{
	autobuf struct cordon_buf reasons = CORDON_BUF(CORDON_MCP_QUESTION_MAX);
	autoprojectrecord struct cordon_project_record before = { 0 };
	autoprojectrecord struct cordon_project_record after = { 0 };

	if (cordon_project_preview(project, args, &before, &after, NULL) < 0)
		return;
	widening(&before.settings, &after.settings, &reasons);
	if (reasons.len)
		cordon_buf_addf(ret_question, "%s project %s? %s.", project ? "Change the settings of" : "Create", name,
				reasons.data);
}

static bool ask_about_project(const struct cordon_mcp_request *request, const char *tool, json_t *args,
			      struct cordon_buf *ret_question)
{
	const struct cordon_store *store = request->mcp->store;
	const char *id = cordon_mcp_arg(args, "project_id");
	const char *workspace = cordon_mcp_arg(args, "workspace_id");
	autobuf struct cordon_buf name = CORDON_BUF(8 * CORDON_NAME_MAX);
	bool creates = cordon_streq(tool, "project_create");
	autoprojectrecord struct cordon_project_record project = { 0 };
	autoworkspacerecord struct cordon_workspace_record found = { 0 };
	const char *given;

	/* The tool itself answers when the project does not exist or its id is not valid. */
	if ((!creates && (!id || cordon_project_get(store, id, &project, NULL) < 0)))
		return false;
	/* A name is untrusted text, and a person reads the question. */
	given = creates ? cordon_mcp_arg(args, "name") : project.name;
	if (!given || strlen(given) > CORDON_NAME_MAX || cordon_text_escape(&name, given, strlen(given)) < 0)
		return false;
	if (cordon_streq(tool, "project_delete"))
		cordon_buf_addf(ret_question, "Delete project %s (%s) with all its workspaces and files?", name.data,
				id);
	if (cordon_streq(tool, "workspace_delete") && workspace &&
	    cordon_workspace_get(store, id, workspace, &found, NULL) == 0)
		cordon_buf_addf(ret_question, "Delete workspace %s of project %s with all its files?", workspace,
				name.data);
	if (creates || cordon_streq(tool, "project_update"))
		ask_about_settings(creates ? NULL : &project, name.data, args, ret_question);
	return ret_question->len > 0;
}

bool cordon_mcp_needs_approval(const struct cordon_mcp_request *request, const struct cordon_mcp_tool *tool,
			       json_t *args, struct cordon_buf *ret_question)
{
	if (request->mcp->options.approved)
		return false;
	if (cordon_streq(tool->name, "changes_apply") || cordon_streq(tool->name, "changes_discard")) {
		cordon_mcp_changes_question(request, tool->name, args, ret_question);
		return ret_question->len > 0;
	}
	return tool->ask ? tool->ask(args, ret_question) : ask_about_project(request, tool->name, args, ret_question);
}

/* Makes "<expiry>.<mac>"; the code covers everything that the approval is about. */
static int make_state(const struct cordon_mcp_request *request, const char *tool, const json_t *args, int64_t expiry,
		      char ret_state[static CORDON_MCP_STATE_SIZE])
{
	autofree char *text = json_dumps(args, JSON_COMPACT | JSON_SORT_KEYS);
	autobuf struct cordon_buf about = CORDON_BUF(2 * CORDON_MCP_MESSAGE_MAX);
	unsigned char mac[crypto_auth_BYTES];
	char hex[2 * crypto_auth_BYTES + 1];
	const char *principal = request->channel->principal;

	if (!text || cordon_buf_addf(&about, "%lld\n%s\n%s\n%s\n%s", (long long)expiry, principal ? principal : "",
				     request->method, tool, text) < 0)
		return -ENOMEM;
	crypto_auth(mac, (const unsigned char *)about.data, about.len, request->mcp->key);
	sodium_bin2hex(hex, sizeof(hex), mac, sizeof(mac));
	snprintf(ret_state, CORDON_MCP_STATE_SIZE, "%lld.%s", (long long)expiry, hex);
	return 0;
}

int cordon_mcp_state_make(const struct cordon_mcp_request *request, const char *tool, const json_t *about,
			  char ret_state[static CORDON_MCP_STATE_SIZE])
{
	return make_state(request, tool, about, cordon_time_now() + STATE_LIFE_MS, ret_state);
}

bool cordon_mcp_state_holds(const struct cordon_mcp_request *request, const char *tool, const json_t *about,
			    const char *state)
{
	const char *dot = strchr(state, '.');
	char digits[24], want[CORDON_MCP_STATE_SIZE];
	uint64_t expiry;

	if (!dot || cordon_copy(digits, sizeof(digits), state, (size_t)(dot - state)) < 0 ||
	    cordon_parse_u64(digits, 0, INT64_MAX, &expiry) < 0 || (int64_t)expiry < cordon_time_now() ||
	    make_state(request, tool, about, (int64_t)expiry, want) < 0)
		return false;
	return strlen(state) == strlen(want) && sodium_memcmp(state, want, strlen(want)) == 0;
}

static json_t *form(const char *question)
{
	return json_pack("{s:s, s:{s:s, s:{s:{s:s, s:s, s:b}}, s:[s]}}", "message", question, "requestedSchema", "type",
			 "object", "properties", "approve", "type", "boolean", "title", "Approve", "default", 0,
			 "required", "approve");
}

static bool says_yes(const json_t *answer)
{
	const char *action = cordon_mcp_arg(answer, "action");

	return action && cordon_streq(action, "accept") &&
	       json_is_true(json_object_get(json_object_get(answer, "content"), "approve"));
}

static void fail_declined(struct cordon_error *err, const char *why)
{
	cordon_fail(err, -EPERM, CORDON_KIND_POLICY_DENIED, "%s; nothing was changed", why);
	cordon_error_hint(err, "a person must approve this, here or with the cordon command");
}

static int ask_modern(struct cordon_mcp_request *request, const struct cordon_mcp_tool *tool, json_t *args,
		      const char *question, json_t **ret_result, struct cordon_mcp_fault *fault)
{
	const json_t *given = json_object_get(request->params, "requestState");
	const json_t *answer = json_object_get(json_object_get(request->params, "inputResponses"), "approve");
	struct cordon_error err = { 0 };
	json_t *params;
	char state[CORDON_MCP_STATE_SIZE];

	if (given &&
	    (!json_is_string(given) || !cordon_mcp_state_holds(request, tool->name, args, json_string_value(given))))
		return cordon_mcp_fail(fault, CORDON_MCP_INVALID_PARAMS,
				       "requestState is not valid for this call, or expired");
	if (given && answer) {
		if (says_yes(answer))
			return CORDON_MCP_APPROVED;
		fail_declined(&err, "the person who was asked did not approve");
		*ret_result = cordon_mcp_tool_result(NULL, NULL, &err);
		return 0;
	}
	if (cordon_mcp_state_make(request, tool->name, args, state) < 0)
		return cordon_mcp_fail(fault, CORDON_MCP_INTERNAL_ERROR, "out of memory");
	params = form(question);
	json_object_set_new(params, "mode", json_string("form"));
	*ret_result = json_pack("{s:s, s:{s:{s:s, s:o}}, s:s}", "resultType", "input_required", "inputRequests",
				"approve", "method", "elicitation/create", "params", params, "requestState", state);
	return 0;
}

struct question {
	const struct cordon_mcp_tool *tool;
	json_t *args;
};

static void drop_question(struct cordon_mcp_call *call)
{
	struct question *question = call->state;

	json_decref(question->args);
	free(question);
}

static void answered(struct cordon_mcp_call *call, const json_t *result)
{
	struct question *question = call->state;
	struct cordon_error err = { 0 };

	if (says_yes(result)) {
		cordon_mcp_tool_run(&call->request, question->tool, question->args);
		return;
	}
	fail_declined(&err, "the person who was asked did not approve");
	cordon_mcp_tool_answer(&call->request, question->tool->name, NULL, NULL, &err);
}

static bool unanswered(struct cordon_mcp_call *call, int64_t now)
{
	const struct question *question = call->state;
	struct cordon_error err = { 0 };

	(void)now;
	fail_declined(&err, "nobody answered the question");
	cordon_mcp_tool_answer(&call->request, question->tool->name, NULL, NULL, &err);
	return true;
}

static int ask_legacy(struct cordon_mcp_request *request, const struct cordon_mcp_tool *tool, json_t *args,
		      const char *text, struct cordon_mcp_fault *fault)
{
	struct question *question = calloc(1, sizeof(*question));
	struct cordon_mcp_call *call = question ? cordon_mcp_call_ask(request, "elicitation/create", form(text)) : NULL;

	if (!call) {
		free(question);
		return cordon_mcp_fail(fault, CORDON_MCP_INTERNAL_ERROR, "too many calls are waiting");
	}
	question->tool = tool;
	question->args = json_incref(args);
	call->state = question;
	call->drop = drop_question;
	call->answered = answered;
	call->step = unanswered;
	call->due = cordon_time_monotonic() + ANSWER_LIFE_MS;
	return CORDON_MCP_LATER;
}

/* An empty object means that the client supports forms; {"url": {}} alone means that it does not. */
static bool can_ask(const struct cordon_mcp_request *request)
{
	const json_t *elicitation = cordon_mcp_client_capability(request, "elicitation");

	if (!json_is_object(elicitation))
		return false;
	return json_object_size(elicitation) == 0 || json_object_get(elicitation, "form") ||
	       !json_object_get(elicitation, "url");
}

int cordon_mcp_approve(struct cordon_mcp_request *request, const struct cordon_mcp_tool *tool, json_t *args,
		       const char *question, json_t **ret_result, struct cordon_mcp_fault *fault)
{
	struct cordon_error err = { 0 };

	if (request->modern && can_ask(request))
		return ask_modern(request, tool, args, question, ret_result, fault);
	if (request->modern) {
		fault->data = json_pack("{s:{s:{}}}", "requiredCapabilities", "elicitation");
		return cordon_mcp_fail(fault, CORDON_MCP_MISSING_CAPABILITY,
				       "%s needs a person's approval, and this client can't ask for it (elicitation)",
				       tool->name);
	}
	/* The versions of the handshake are dates. Elicitation came with 2025-06-18. */
	if (can_ask(request) && strcmp(request->channel->version, "2025-06-18") >= 0)
		return ask_legacy(request, tool, args, question, fault);
	fail_declined(&err, "this needs a person's approval, and the client can't ask for it (elicitation)");
	*ret_result = cordon_mcp_tool_result(NULL, NULL, &err);
	return 0;
}
