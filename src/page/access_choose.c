/* SPDX-License-Identifier: Apache-2.0 */
/* The policy that somebody asks about: of a project, of a session, of a recorded run, or of an agent of a repository. */
#include <stdio.h>

#include "agent/job.h"
#include "config/net_setting.h"
#include "page/access.h"
#include "view/view.h"

#define SHOWN 100 /* entries of a list to choose from */

/* The fields of the address that name a policy. */
static const char *const fields[] = { "project", "workspace", "session", "run", "job", "view", "repository", "agent" };

static const char *arg(const struct cordon_page *page, const char *name)
{
	const char *text = cordon_page_arg(page, name);

	return text && *text ? text : NULL;
}

bool cordon_page_chooses(const struct cordon_page *page)
{
	return arg(page, "project") || arg(page, "session") || arg(page, "run") || arg(page, "view") ||
	       arg(page, "repository");
}

void cordon_page_chosen_fields(struct cordon_page *page)
{
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(fields); i++)
		if (arg(page, fields[i]))
			cordon_html(&page->html, "<input type=\"hidden\" name=\"%s\" value=\"%s\">", fields[i],
				    arg(page, fields[i]));
}

static void make_link(const struct cordon_page *page, struct cordon_html *link)
{
	bool first = true;

	cordon_html(link, "/access/policy");
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(fields); i++) {
		if (!arg(page, fields[i]))
			continue;
		(void)cordon_buf_addf(&link->out, "%s%s=", first ? "?" : "&", fields[i]);
		cordon_html_url(link, arg(page, fields[i]));
		first = false;
	}
}

void cordon_page_chosen_done(struct cordon_page_chosen *chosen)
{
	cordon_policy_free(chosen->policy);
	cordon_buf_done(&chosen->link.out);
	json_decref(chosen->net);
	json_decref(chosen->shares);
	*chosen = (struct cordon_page_chosen){ 0 };
}

/* ---- the kinds ---- */

static int of_project(struct cordon_page *page, struct cordon_page_chosen *c, struct cordon_error *err)
{
	struct cordon_workspace_request wanted = { .id = arg(page, "workspace") };
	autoworkspacerecord struct cordon_workspace_record workspace = { 0 };
	autoprojectrecord struct cordon_project_record project = { 0 };
	bool isolated;
	int r = cordon_project_get(page->store, arg(page, "project"), &project, err);

	if (r == 0)
		r = cordon_workspace_resolve(page->store, project.id, &wanted, false, &workspace, NULL, err);
	if (r == 0)
		r = cordon_workspace_policy(page->store, project.id, workspace.id, &c->policy, &isolated, err);
	if (r < 0)
		return r;
	c->in_workspace = true;
	snprintf(c->title, sizeof(c->title), "Sessions that start now in the project %.256s, workspace %s",
		 project.name, workspace.id);
	return 0;
}

static int of_session(struct cordon_page *page, struct cordon_page_chosen *c, struct cordon_error *err)
{
	autosessionrecord struct cordon_session_record session = { 0 };
	int r = cordon_session_get(page->store, arg(page, "session"), &session, err);

	if (r == 0)
		r = cordon_session_policy(page->store, &session, &c->policy, err);
	c->in_workspace = true;
	snprintf(c->title, sizeof(c->title), "The session %s, with the settings that it started with", session.id);
	return r;
}

/* The hosts stand beside the policy in the record of a job, and become a part of it again; what was shown of the host does not. */
static int of_job(struct cordon_page *page, struct cordon_page_chosen *c, struct cordon_error *err)
{
	json_auto_t *record = NULL;
	uint64_t index = 0;
	int r;

	if (cordon_parse_u64(arg(page, "job") ? arg(page, "job") : "", 0, SIZE_MAX, &index) < 0)
		return cordon_fail(err, -ENOENT, CORDON_KIND_NOT_FOUND, "the run has no such job");
	r = cordon_crew_record(&page->store->home, arg(page, "run"), (size_t)index, &record, err);
	if (r == 0)
		r = cordon_crew_policy(&page->store->home, arg(page, "run"), (size_t)index, &c->policy, err);
	if (r == 0)
		r = cordon_net_list_from_json("net", json_object_get(record, "net"), NULL, &c->policy->net, err);
	c->shares = json_incref(json_object_get(record, "shares"));
	snprintf(c->title, sizeof(c->title), "The job %.128s of the run %.64s", cordon_page_string(record, "name"),
		 arg(page, "run"));
	return r;
}

static int of_view(struct cordon_page *page, struct cordon_page_chosen *c, struct cordon_error *err)
{
	autoview struct cordon_view view = CORDON_VIEW_NONE;
	char id[CORDON_ID_SIZE];
	int r = cordon_id_uuid("view", arg(page, "view"), id, err);

	if (r == 0)
		r = cordon_view_open(&page->store->home, id, &view, err);
	if (r == 0)
		r = cordon_view_policy(&view, &c->policy, err);
	c->net = json_string("not a part of this record");
	c->no_hosts = true;
	snprintf(c->title, sizeof(c->title), "The run in the view %s", id);
	return r;
}

/* As a run of the agent would have it, with its profile; nothing is started or made. */
static int of_agent(struct cordon_page *page, struct cordon_page_chosen *c, struct cordon_error *err)
{
	struct cordon_errors errors CORDON_CLEANUP(cordon_errors_done) = { 0 };
	char none[] = "true", *argv[] = { none, NULL };
	const struct cordon_agent_start start = { .argv = argv, .dry = true };
	const char *name = arg(page, "agent"), *repository = arg(page, "repository");
	autoagents struct cordon_agents *agents = NULL;
	const struct cordon_agent *agent = NULL;
	struct cordon_agent_job job;
	int r;

	if (*repository != '/')
		return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "a repository is named by its absolute path: %s",
				   repository);
	if (!name)
		return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "say which agent of %s", repository);
	if (cordon_agents_load(repository, NULL, &agents, &errors) < 0)
		return cordon_errors_first(&errors, err);
	r = cordon_agents_get(agents, name, &agent, err);
	if (r < 0)
		return r;
	if (cordon_agent_job_init(agents, agent, &start, &job, &errors) < 0)
		return cordon_errors_first(&errors, err);
	c->policy = cordon_steal_ptr(&job.policy);
	cordon_agent_job_done(&job);
	snprintf(c->title, sizeof(c->title), "The agent %s of %.256s%s", agent->name, agents->root.path,
		 agents->trusted ? "" : ", whose file is not trusted");
	return 0;
}

int cordon_page_choose(struct cordon_page *page, struct cordon_page_chosen *ret_chosen, struct cordon_error *err)
{
	*ret_chosen = (struct cordon_page_chosen){ .link = { .out = CORDON_BUF(1u << 20) } };
	make_link(page, &ret_chosen->link);
	if (ret_chosen->link.failed || !ret_chosen->link.out.data)
		return cordon_fail(err, -E2BIG, CORDON_KIND_USAGE, "The address is too long");
	if (arg(page, "project"))
		return of_project(page, ret_chosen, err);
	if (arg(page, "session"))
		return of_session(page, ret_chosen, err);
	if (arg(page, "run"))
		return of_job(page, ret_chosen, err);
	return arg(page, "view") ? of_view(page, ret_chosen, err) : of_agent(page, ret_chosen, err);
}

/* ---- choosing ---- */

static void begin(struct cordon_page *page, const char *title)
{
	cordon_html(&page->html, "<li class=\"card\"><h3>%s</h3>", title);
}

static void begin_select(struct cordon_page *page, const char *label, const char *name)
{
	cordon_html(&page->html, "<form method=\"get\" action=\"/access/policy\"><label>%s <select name=\"%s\">", label,
		    name);
}

static void end_select(struct cordon_page *page)
{
	cordon_html(&page->html, "</select></label><button>Show</button></form>");
}

static void choose_project(struct cordon_page *page)
{
	json_auto_t *list = NULL;
	json_t *project;
	size_t i;

	begin(page, "A project");
	if (cordon_project_list(page->store, &(struct cordon_list_query){ .limit = SHOWN }, &list, NULL, NULL) < 0 ||
	    !json_array_size(list)) {
		cordon_page_empty(page, "There is none.");
	} else {
		begin_select(page, "Project", "project");
		json_array_foreach(list, i, project) {
			cordon_html(&page->html, "<option value=\"%s\">%s</option>", cordon_page_string(project, "id"),
				    cordon_page_string(project, "name"));
		}
		end_select(page);
	}
	cordon_html(&page->html, "</li>");
}

static void choose_session(struct cordon_page *page)
{
	struct cordon_session_query query = { .limit = SHOWN, .newest_first = true };
	json_auto_t *list = NULL;
	json_t *session;
	size_t i;

	begin(page, "A session");
	if (cordon_session_list(page->store, &query, &list, NULL, NULL) < 0 || !json_array_size(list)) {
		cordon_page_empty(page, "There is none.");
	} else {
		begin_select(page, "Session", "session");
		json_array_foreach(list, i, session) {
			const char *id = cordon_page_string(session, "session_id");

			cordon_html(&page->html, "<option value=\"%s\">", id);
			cordon_html_text(&page->html, id, strnlen(id, 8));
			cordon_html(&page->html, " %s, %s</option>", cordon_page_string(session, "state"),
				    cordon_page_string(session, "created_at"));
		}
		end_select(page);
	}
	cordon_html(&page->html, "</li>");
}

static void choose_view(struct cordon_page *page)
{
	autoviewlist struct cordon_view_list list = { 0 };

	begin(page, "A recorded run");
	if (cordon_view_list(&page->store->home, -1, &list, NULL) == 0 && list.n) {
		begin_select(page, "Run in a view", "view");
		for (size_t i = list.n, n = 0; i-- > 0 && n < SHOWN; n++) {
			const struct cordon_view_record *record = &list.items[i];

			cordon_html(&page->html, "<option value=\"%s\">", record->id);
			cordon_html_text(&page->html, record->id, strnlen(record->id, 8));
			cordon_html(&page->html, " of %s, %s</option>", record->root, record->created_at);
		}
		end_select(page);
	}
	cordon_html(
		&page->html,
		"<p class=\"quiet\">The pages of <a href=\"/runs\">agent runs</a> lead to the policies of their jobs.</p></li>");
}

static void choose_agent(struct cordon_page *page)
{
	begin(page, "An agent of a repository");
	cordon_html(&page->html,
		    "<form method=\"get\" action=\"/access/policy\"><label>Repository <input type=\"text\" name=\"repository\" "
		    "placeholder=\"/home/you/project\" required></label><label>Agent <input type=\"text\" name=\"agent\" "
		    "required></label><button>Show</button></form></li>");
}

void cordon_page_chooser(struct cordon_page *page)
{
	cordon_html(&page->html, "<section id=\"choose\"><h2>Whose policy</h2><ul class=\"cards\">");
	choose_project(page);
	choose_session(page);
	choose_view(page);
	choose_agent(page);
	cordon_html(&page->html, "</ul></section>");
}
