/* SPDX-License-Identifier: Apache-2.0 */
/* Which calls a person must approve, and the question: deletions, settings that widen access, changes that leave a view, and grants. */
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
	add_reason(ret_text, !cordon_git_within(after->git, before->git),
		   "agents could do more with the repository of the workspace");
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
			       struct cordon_mcp_question *question)
{
	autoprojectrecord struct cordon_project_record before = { 0 };
	autoprojectrecord struct cordon_project_record after = { 0 };

	if (cordon_project_preview(project, args, &before, &after, NULL) < 0)
		return;
	widening(&before.settings, &after.settings, &question->widens);
	if (question->widens.len)
		cordon_buf_addf(&question->text, "%s project %s? %s.", project ? "Change the settings of" : "Create",
				name, question->widens.data);
}

static bool ask_about_project(const struct cordon_mcp_request *request, const char *tool, json_t *args,
			      struct cordon_mcp_question *question)
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
		cordon_buf_addf(&question->text, "Delete project %s (%s) with all its workspaces and files?", name.data,
				id);
	if (cordon_streq(tool, "workspace_delete") && workspace &&
	    cordon_workspace_get(store, id, workspace, &found, NULL) == 0)
		cordon_buf_addf(&question->text, "Delete workspace %s of project %s with all its files?", workspace,
				name.data);
	if (creates || cordon_streq(tool, "project_update"))
		ask_about_settings(creates ? NULL : &project, name.data, args, question);
	return question->text.len > 0;
}

void cordon_mcp_question_done(struct cordon_mcp_question *question)
{
	cordon_buf_done(&question->text);
	cordon_buf_done(&question->widens);
	json_decref(question->grant);
	question->grant = NULL;
}

bool cordon_mcp_needs_approval(const struct cordon_mcp_request *request, const struct cordon_mcp_tool *tool,
			       json_t *args, struct cordon_mcp_question *question)
{
	/* The agent of a session never has anybody's consent in advance. */
	if (request->mcp->options.approved && !request->mcp->options.session)
		return false;
	if (tool == &cordon_mcp_grant_request)
		return cordon_mcp_grant_question(request, args, question);
	if (cordon_streq(tool->name, "changes_apply") || cordon_streq(tool->name, "changes_discard")) {
		cordon_mcp_changes_question(request, tool->name, args, &question->text);
		return question->text.len > 0;
	}
	return tool->ask ? tool->ask(args, &question->text) : ask_about_project(request, tool->name, args, question);
}
