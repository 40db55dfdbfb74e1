/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a person must approve a call, which the tool itself says, and the questions about projects: deletions, and settings that
 * widen access.
 */
#include "approval/widening.h"
#include "base/text.h"
#include "mcp/tools.h"

/* A text that is not whole is no text. */
static int no_text(struct cordon_error *err)
{
	return cordon_fail(err, -ENOMEM, CORDON_KIND_LIMIT, "the question to a person can't be made");
}

/* A name is untrusted text, and a person reads the question. */
static int add_name(struct cordon_buf *text, const char *name, struct cordon_error *err)
{
	return cordon_text_quote(text, name, strlen(name)) < 0 ? no_text(err) : 0;
}

int cordon_mcp_question_settings(struct cordon_mcp_question *question, const char *digest, struct cordon_error *err)
{
	if (!question->means)
		question->means = json_object();
	if (json_object_set_new(question->means, "settings", json_string(digest)) < 0 ||
	    cordon_buf_addf(&question->text, " The settings before have the SHA-256 %.*s.", CORDON_DIGEST_SHOWN,
			    digest) < 0)
		return no_text(err);
	return 0;
}

int cordon_mcp_ask_settings(const struct cordon_mcp_request *request, const json_t *args,
			    struct cordon_mcp_question *question, struct cordon_error *err)
{
	const char *id = cordon_json_string(args, "project_id");
	autoprojectrecord struct cordon_project_record project = { 0 };
	autoprojectrecord struct cordon_project_record before = { 0 };
	autoprojectrecord struct cordon_project_record after = { 0 };
	struct cordon_buf *text = &question->text;
	char digest[CORDON_DIGEST_SIZE];
	int r = id ? cordon_project_get(request->mcp->store, id, &project, err) : 0;

	if (r == 0)
		r = cordon_project_preview(id ? &project : NULL, args, &before, &after, err);
	if (r == 0)
		r = cordon_settings_widening(&before.settings, &after.settings, &question->widens, err);
	if (r < 0 || !question->widens.len)
		return r;
	cordon_buf_adds(text, id ? "Change the settings of project " : "Create project ");
	r = add_name(text, id ? project.name : after.name, err);
	if (r == 0 && cordon_buf_addf(text, "? %s.", question->widens.data) < 0)
		r = no_text(err);
	if (r == 0 && cordon_project_digest(&before, digest) < 0)
		r = no_text(err);
	return r < 0 ? r : cordon_mcp_question_settings(question, digest, err);
}

/* INVARIANT: an approval dies with the settings that it was asked about, whatever would be wider now. */
static bool is_approved(const struct cordon_mcp_request *request, const struct cordon_project_record *before,
			const struct cordon_buf *now)
{
	const struct cordon_buf *shown = &request->question->widens;
	const char *asked = cordon_json_string(request->question->means, "settings");
	char digest[CORDON_DIGEST_SIZE];

	return request->approved && asked && cordon_project_digest(before, digest) == 0 &&
	       cordon_streq(asked, digest) && now->len == shown->len && memcmp(now->data, shown->data, now->len) == 0;
}

int cordon_mcp_judge_settings(const void *data, const struct cordon_project_record *before,
			      const struct cordon_project_record *after, struct cordon_error *err)
{
	const struct cordon_mcp_request *request = data;
	autobuf struct cordon_buf now = CORDON_BUF(CORDON_MCP_QUESTION_MAX);
	int r = cordon_settings_widening(&before->settings, &after->settings, &now, err);

	if (r < 0 || (!now.len && !request->approved) || (cordon_mcp_may(request) && !request->approved) ||
	    is_approved(request, before, &now))
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
