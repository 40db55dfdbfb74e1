/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a person must approve a call, which the tool itself says, and the questions about projects: deletions, and settings that
 * widen access.
 */
#include "base/text.h"
#include "config/values.h"
#include "mcp/tools.h"

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

/* What would be wider. INVARIANT: when a reason could not be written down, nothing is said. */
struct reasons {
	struct cordon_buf *text;
	int failed; /* the first error, or 0 */
};

static void note(struct reasons *reasons, int r)
{
	if (r < 0 && !reasons->failed)
		reasons->failed = r;
}

/* Adds a reason; `value`, which is untrusted text, and `after` may be NULL. */
static void add_reason(struct reasons *reasons, const char *reason, const char *value, const char *after)
{
	note(reasons, cordon_buf_addf(reasons->text, "%s%s", reasons->text->len ? "; " : "", reason));
	if (value)
		note(reasons, cordon_text_escape(reasons->text, value, strlen(value)));
	if (after)
		note(reasons, cordon_buf_adds(reasons->text, after));
}

static void add_if(struct reasons *reasons, bool holds, const char *reason)
{
	if (holds)
		add_reason(reasons, reason, NULL, NULL);
}

/* Lists the shares of `after` that show more than those of `before`: new ones, and those that were read-only. */
static void add_shares(struct reasons *reasons, const json_t *before, const json_t *after)
{
	size_t i;
	json_t *item;

	json_array_foreach(after, i, item) {
		struct cordon_share_value share = { 0 };
		autofree char *writable = NULL;
		int r;

		if (!lacks(before, item))
			continue;
		r = cordon_share_parse(json_string_value(item), &share, NULL);
		note(reasons, r);
		if (r < 0)
			continue;
		/* The same share, once writable, is no more when it can only be read. */
		if (share.read_only) {
			json_auto_t *wider = NULL;
			size_t n = json_string_length(item) - strlen(":ro");

			writable = strndup(json_string_value(item), n);
			wider = writable ? json_string(writable) : NULL;
			if (wider && !lacks(before, wider)) {
				cordon_share_done(&share);
				continue;
			}
		}
		add_reason(reasons, share.read_only ? "agents could read " : "agents could read and change ",
			   share.source, " of the host");
		cordon_share_done(&share);
	}
}

static void add_profiles(struct reasons *reasons, const json_t *before, const json_t *after)
{
	size_t i;
	json_t *item;

	json_array_foreach(after, i, item) {
		if (lacks(before, item))
			add_reason(reasons, "agents would get the program and the variables of profile ",
				   json_string_value(item), NULL);
	}
}

static void add_home(struct reasons *reasons, const char *before, const char *after)
{
	if (*after == '/' && !cordon_streq(before, after))
		add_reason(reasons, "the agents of all workspaces would share one home, ", after,
			   " of the host, and see what the others leave there");
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

/* A list that can't be told counts as wider. */
static void add_net(struct reasons *reasons, const struct cordon_settings *before, const struct cordon_settings *after)
{
	struct cordon_net_list outer = { 0 }, inner = { 0 };
	struct cordon_error err = { 0 };

	if (cordon_settings_net(before, &outer, &err) < 0 || cordon_settings_net(after, &inner, &err) < 0 ||
	    (outer.listed && !inner.listed))
		add_reason(reasons, "agents would get the host's network", NULL, NULL);
	else if (cordon_net_list_within(&inner, &outer, &err) < 0)
		/* The message begins with "it would". */
		add_reason(reasons, "agents", NULL, err.message + strlen("it"));
	cordon_net_list_done(&outer);
	cordon_net_list_done(&inner);
}

/* Lists what agents could do under the settings `after` that they can't do under `before`. It compares whole records,
 * so that a limit that is left out or a value that is reset counts like one that is named. */
static int widening(const struct cordon_settings *before, const struct cordon_settings *after,
		    struct cordon_buf *ret_text, struct cordon_error *err)
{
	struct reasons reasons = { .text = ret_text };

	add_if(&reasons, before->workspace_isolation && !after->workspace_isolation,
	       "agents would see the whole project and every workspace in it");
	add_if(&reasons, has_more(before->protected_paths, after->protected_paths),
	       "agents could change paths that are protected now");
	add_if(&reasons, before->default_protection && !after->default_protection,
	       "agents could change what the host executes later");
	add_net(&reasons, before, after);
	add_if(&reasons, before->cow && !after->cow, "sessions would change the workspace itself");
	add_if(&reasons, !cordon_git_within(after->git, before->git),
	       "agents could do more with the repository of the workspace");
	add_if(&reasons, after->best_effort && !before->best_effort,
	       "sessions would start although a protection is missing");
	add_if(&reasons, has_more(after->env_pass, before->env_pass),
	       "agents would get more variables of cordon's environment");
	add_if(&reasons, limits_grow(&before->limits, &after->limits),
	       "agents would get more processes, memory, time, money or sessions");
	add_home(&reasons, before->home, after->home);
	add_profiles(&reasons, before->profile, after->profile);
	add_shares(&reasons, before->shares, after->shares);
	return reasons.failed ? cordon_fail_errno(err, reasons.failed, "cannot tell what agents could do then") : 0;
}

/* A text that is not whole is no text. */
static int no_text(struct cordon_error *err)
{
	return cordon_fail(err, -ENOMEM, CORDON_KIND_LIMIT, "the question to a person can't be made");
}

/* A name is untrusted text, and a person reads the question. */
static int add_name(struct cordon_buf *text, const char *name, struct cordon_error *err)
{
	return cordon_text_escape(text, name, strlen(name)) < 0 ? no_text(err) : 0;
}

int cordon_mcp_ask_settings(const struct cordon_mcp_request *request, const json_t *args,
			    struct cordon_mcp_question *question, struct cordon_error *err)
{
	const char *id = cordon_mcp_arg(args, "project_id");
	autoprojectrecord struct cordon_project_record project = { 0 };
	autoprojectrecord struct cordon_project_record before = { 0 };
	autoprojectrecord struct cordon_project_record after = { 0 };
	struct cordon_buf *text = &question->text;
	int r = id ? cordon_project_get(request->mcp->store, id, &project, err) : 0;

	if (r == 0)
		r = cordon_project_preview(id ? &project : NULL, args, &before, &after, err);
	if (r == 0)
		r = widening(&before.settings, &after.settings, &question->widens, err);
	if (r < 0 || !question->widens.len)
		return r;
	cordon_buf_adds(text, id ? "Change the settings of project " : "Create project ");
	r = add_name(text, id ? project.name : after.name, err);
	return r == 0 && cordon_buf_addf(text, "? %s.", question->widens.data) < 0 ? no_text(err) : r;
}

int cordon_mcp_judge_settings(const void *data, const struct cordon_settings *before,
			      const struct cordon_settings *after, struct cordon_error *err)
{
	const struct cordon_mcp_request *request = data;
	const struct cordon_buf *shown = &request->question->widens;
	autobuf struct cordon_buf now = CORDON_BUF(CORDON_MCP_QUESTION_MAX);
	int r = widening(before, after, &now, err);

	if (r < 0 || !now.len || (cordon_mcp_may(request) && !request->approved) ||
	    (request->approved && now.len == shown->len && memcmp(now.data, shown->data, now.len) == 0))
		return r;
	return cordon_fail(err, -EAGAIN, CORDON_KIND_CONFLICT,
			   "the settings of the project have just changed: ask again");
}

/* One that does not exist needs no approval: the tool says so, and deletes nothing. */
int cordon_mcp_ask_delete(const struct cordon_mcp_request *request, const json_t *args,
			  struct cordon_mcp_question *question, struct cordon_error *err)
{
	const char *id = cordon_json_string(args, "project_id"), *workspace = cordon_json_string(args, "workspace_id");
	autoprojectrecord struct cordon_project_record project = { 0 };
	autoworkspacerecord struct cordon_workspace_record found = { 0 };
	struct cordon_buf *text = &question->text;
	int r = cordon_project_get(request->mcp->store, id, &project, err);

	bool exists = r != -ENOENT || workspace;

	if (r == 0 && workspace) {
		r = cordon_workspace_get(request->mcp->store, id, workspace, &found, err);
		exists = r != -ENOENT;
	}
	if (!exists) {
		*err = (struct cordon_error){ 0 };
		return 0;
	}
	if (r == 0)
		r = workspace ? cordon_buf_addf(text, "Delete workspace %s of project ", found.id)
			      : cordon_buf_adds(text, "Delete project ");
	if (r == 0)
		r = add_name(text, project.name, err);
	if (r == 0)
		r = workspace ? cordon_buf_adds(text, " with all its files?")
			      : cordon_buf_addf(text, " (%s) with all its workspaces and files?", project.id);
	return r < 0 && !err->code ? no_text(err) : r;
}

void cordon_mcp_question_done(struct cordon_mcp_question *question)
{
	cordon_buf_done(&question->text);
	cordon_buf_done(&question->widens);
	json_decref(question->grant);
	json_decref(question->means);
	question->grant = question->means = NULL;
}

/* The agent of a session never has anybody's consent in advance. */
static bool consented(const struct cordon_mcp_request *request)
{
	return request->mcp->options.approved && !request->mcp->options.session;
}

bool cordon_mcp_may(const struct cordon_mcp_request *request)
{
	return request->approved || consented(request);
}

int cordon_mcp_look(const struct cordon_mcp_request *request, const struct cordon_mcp_tool *tool, const json_t *args,
		    struct cordon_mcp_question *question, bool *ret_asks, struct cordon_error *err)
{
	int r = tool->ask ? tool->ask(request, args, question, err) : 0;

	if (r == 0)
		*ret_asks = question->text.len > 0 && !consented(request);
	return r;
}
