/* SPDX-License-Identifier: Apache-2.0 */
/* Access: the matrix of orchestrators and shared areas, granting and revoking in it, and what a policy allows. */
#include <stdio.h>

#include "agent/job.h"
#include "base/time.h"
#include "config/net_setting.h"
#include "config/settings_file.h"
#include "flow/access_svg.h"
#include "flow/edit.h"
#include "flow/flow.h"
#include "page/internal.h"
#include "policy/asker.h"
#include "policy/policy.h"
#include "run/tree.h"
#include "store/store.h"
#include "view/view.h"

/* A policy that somebody asks about. */
struct cordon_page_chosen {
	struct cordon_policy *policy;
	char title[512];
	struct cordon_html link; /* the address of the page about it, as text of an attribute is not yet */
	json_t *net, *shares;	 /* of a record whose policy does not have them; else NULL */
	bool in_workspace;	 /* paths may be named as an agent of a project sees them */
	bool no_hosts;		 /* the record does not have the hosts that could be reached */
};

/* ---- choosing ---- */

#define SHOWN 100 /* entries of a list to choose from */

/* The fields of the address that name a policy. */
static const char *const fields[] = { "project", "workspace", "session", "run", "job", "view", "repository", "agent" };

static const char *arg_or_null(const struct cordon_page *page, const char *name)
{
	const char *text = cordon_page_arg(page, name);

	return text && *text ? text : NULL;
}

/* Whether the address names a policy; then the policy. The caller frees it, also after a failure. */
static bool page_chooses(const struct cordon_page *page)
{
	return arg_or_null(page, "project") || arg_or_null(page, "session") || arg_or_null(page, "run") ||
	       arg_or_null(page, "view") || arg_or_null(page, "repository");
}

/* The fields of a form that goes on with the policy that is shown. */
static void page_chosen_fields(struct cordon_page *page)
{
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(fields); i++)
		if (arg_or_null(page, fields[i]))
			cordon_html(&page->html, "<input type=\"hidden\" name=\"%s\" value=\"%s\">", fields[i],
				    arg_or_null(page, fields[i]));
}

static void make_link(const struct cordon_page *page, struct cordon_html *link)
{
	bool first = true;

	cordon_html(link, "/access/policy");
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(fields); i++) {
		if (!arg_or_null(page, fields[i]))
			continue;
		(void)cordon_buf_addf(&link->out, "%s%s=", first ? "?" : "&", fields[i]);
		cordon_html_url(link, arg_or_null(page, fields[i]));
		first = false;
	}
}

static void page_chosen_done(struct cordon_page_chosen *chosen)
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
	struct cordon_workspace_request wanted = { .id = arg_or_null(page, "workspace") };
	autoworkspacerecord struct cordon_workspace_record workspace = { 0 };
	autoprojectrecord struct cordon_project_record project = { 0 };
	bool isolated;
	int r = cordon_project_get(page->store, arg_or_null(page, "project"), &project, err);

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
	int r = cordon_session_get(page->store, arg_or_null(page, "session"), &session, err);

	if (r == 0)
		r = cordon_session_policy(page->store, &session, &c->policy, err);
	c->in_workspace = true;
	snprintf(c->title, sizeof(c->title), "The session %s, with the settings that it started with", session.id);
	return r;
}

/* The hosts stand beside the policy in the record of a job, and become a part of it again; what was shown of the host
 * does not. */
static int of_job(struct cordon_page *page, struct cordon_page_chosen *c, struct cordon_error *err)
{
	json_auto_t *record = NULL;
	uint64_t index = 0;
	int r;

	if (cordon_parse_u64(arg_or_null(page, "job") ? arg_or_null(page, "job") : "", 0, SIZE_MAX, &index) < 0)
		return cordon_fail(err, -ENOENT, CORDON_KIND_NOT_FOUND, "the run has no such job");
	r = cordon_crew_record(&page->store->home, arg_or_null(page, "run"), (size_t)index, &record, err);
	if (r == 0)
		r = cordon_crew_policy(&page->store->home, arg_or_null(page, "run"), (size_t)index, &c->policy, err);
	if (r == 0)
		r = cordon_net_list_from_json("net", json_object_get(record, "net"), NULL, &c->policy->net, err);
	c->shares = json_incref(json_object_get(record, "shares"));
	snprintf(c->title, sizeof(c->title), "The job %.128s of the run %.64s", cordon_json_text(record, "name"),
		 arg_or_null(page, "run"));
	return r;
}

static int of_view(struct cordon_page *page, struct cordon_page_chosen *c, struct cordon_error *err)
{
	autoview struct cordon_view view = CORDON_VIEW_NONE;
	char id[CORDON_ID_SIZE];
	int r = cordon_id_uuid("view", arg_or_null(page, "view"), id, err);

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
	const char *name = arg_or_null(page, "agent"), *repository = arg_or_null(page, "repository");
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
	c->policy = cordon_steal_ptr(&job.recipe.policy);
	cordon_agent_job_done(&job);
	snprintf(c->title, sizeof(c->title), "The agent %s of %.256s%s", agent->name, agents->root.path,
		 agents->trusted ? "" : ", whose file is not trusted");
	return 0;
}

static int page_choose(struct cordon_page *page, struct cordon_page_chosen *ret_chosen, struct cordon_error *err)
{
	*ret_chosen = (struct cordon_page_chosen){ .link = { .out = CORDON_BUF(1u << 20) } };
	make_link(page, &ret_chosen->link);
	if (ret_chosen->link.failed || !ret_chosen->link.out.data)
		return cordon_fail(err, -E2BIG, CORDON_KIND_USAGE, "The address is too long");
	if (arg_or_null(page, "project"))
		return of_project(page, ret_chosen, err);
	if (arg_or_null(page, "session"))
		return of_session(page, ret_chosen, err);
	if (arg_or_null(page, "run"))
		return of_job(page, ret_chosen, err);
	return arg_or_null(page, "view") ? of_view(page, ret_chosen, err) : of_agent(page, ret_chosen, err);
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
			cordon_html(&page->html, "<option value=\"%s\">%s</option>", cordon_json_text(project, "id"),
				    cordon_json_text(project, "name"));
		}
		end_select(page);
	}
	cordon_html(&page->html, "</li>");
}

static void choose_session(struct cordon_page *page)
{
	struct cordon_session_query query = { .limit = SHOWN, .brief = true, .newest_first = true };
	json_auto_t *list = NULL;
	json_t *session;
	size_t i;

	begin(page, "A session");
	if (cordon_session_list(page->store, &query, &list, NULL, NULL) < 0 || !json_array_size(list)) {
		cordon_page_empty(page, "There is none.");
	} else {
		begin_select(page, "Session", "session");
		json_array_foreach(list, i, session) {
			const char *id = cordon_json_text(session, "session_id");

			cordon_html(&page->html, "<option value=\"%s\">", id);
			cordon_html_text(&page->html, id, strnlen(id, 8));
			cordon_html(&page->html, " %s, %s</option>", cordon_json_text(session, "state"),
				    cordon_json_text(session, "created_at"));
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

/* The forms in which a policy is chosen. */
static void page_chooser(struct cordon_page *page)
{
	cordon_html(&page->html, "<section id=\"choose\"><h2>Whose policy</h2><ul class=\"cards\">");
	choose_project(page);
	choose_session(page);
	choose_view(page);
	choose_agent(page);
	cordon_html(&page->html, "</ul></section>");
}

/* ---- who may what ---- */

#define ROWS_SHOWN 50
#define COLUMNS_SHOWN 12

/* What is shown of a matrix that may have thousands of rows and columns. */
struct matrix {
	struct cordon_page *page;
	const struct cordon_settings_file *settings;
	const char *rows_with, *columns_with; /* parts of names */
	uint64_t row, column;		      /* the first that is shown, among those that match */
	size_t n_rows, n_columns;	      /* that match */
	const struct cordon_orchestrator *rows[ROWS_SHOWN];
	const struct cordon_shared_area *columns[COLUMNS_SHOWN];
	size_t rows_shown, columns_shown;
};

static const char *arg(const struct cordon_page *page, const char *name)
{
	const char *text = cordon_page_arg(page, name);

	return text ? text : "";
}

static uint64_t number(const struct cordon_page *page, const char *name)
{
	uint64_t n = 0;

	return cordon_parse_u64(arg(page, name), 0, CORDON_SETTINGS_MAX, &n) < 0 ? 0 : n;
}

static void choose(struct matrix *m)
{
	for (size_t i = 0; i < m->settings->n_orchestrators; i++) {
		if (!strcasestr(m->settings->orchestrators[i].id, m->rows_with))
			continue;
		if (m->n_rows++ >= m->row && m->rows_shown < ROWS_SHOWN)
			m->rows[m->rows_shown++] = &m->settings->orchestrators[i];
	}
	for (size_t i = 0; i < m->settings->n_areas; i++) {
		if (!strcasestr(m->settings->areas[i].key, m->columns_with))
			continue;
		if (m->n_columns++ >= m->column && m->columns_shown < COLUMNS_SHOWN)
			m->columns[m->columns_shown++] = &m->settings->areas[i];
	}
}

/* What is wrong with the settings; nothing when nothing is. */
static void page_settings_errors(struct cordon_page *page, const struct cordon_errors *errors)
{
	if (!errors->n)
		return;
	cordon_html(&page->html, "<div class=\"alert\" role=\"alert\"><p>The settings have errors; nobody is granted "
				 "anything before they are corrected:</p><ul>");
	for (size_t i = 0; i < errors->n; i++) {
		const struct cordon_error *err = &errors->items[i];

		cordon_html(&page->html, "<li>%s%s%s", err->where, *err->where ? ": " : "", err->message);
		cordon_html(&page->html, "%s%s</li>", *err->hint ? "; " : "", err->hint);
	}
	cordon_html(&page->html, "</ul></div>");
}

/* What an orchestrator may do with an area, in words ("none", "read", "read and write", and whether that crosses
 * domains); the class is the colour. */
static void page_access_word(struct cordon_page *page, const struct cordon_settings_file *settings,
			     const struct cordon_orchestrator *orchestrator, const struct cordon_shared_area *area)
{
	const struct cordon_area_grant *grant = cordon_orchestrator_grant(orchestrator, area->key);

	cordon_html(&page->html, "<span class=\"state %s\">%s</span>",
		    !grant	       ? "quiet"
		    : grant->read_only ? "busy"
				       : "good",
		    !grant	       ? "none"
		    : grant->read_only ? "read"
				       : "read and write");
	if (grant && cordon_settings_crosses(settings, orchestrator, area))
		cordon_html(&page->html, " <span class=\"state wait\">across domains</span>");
}

/* ---- the parts of the page ---- */

static void filter_form(struct matrix *m)
{
	cordon_html(&m->page->html,
		    "<form method=\"get\" action=\"/access\" role=\"search\">"
		    "<label>Orchestrators with <input type=\"search\" name=\"orchestrators\" value=\"%s\"></label>"
		    "<label>Areas with <input type=\"search\" name=\"areas\" value=\"%s\"></label>"
		    "<button>Show</button></form>",
		    m->rows_with, m->columns_with);
}

static void link_to(struct matrix *m, uint64_t row, uint64_t column, const char *text)
{
	struct cordon_html *html = &m->page->html;

	cordon_html(html, " <a href=\"/access?from=%llu&amp;column=%llu&amp;orchestrators=", (unsigned long long)row,
		    (unsigned long long)column);
	cordon_html_url(html, m->rows_with);
	cordon_html(html, "&amp;areas=");
	cordon_html_url(html, m->columns_with);
	cordon_html(html, "\">%s</a>", text);
}

/* What is left out, and the way to it. */
static void more(struct matrix *m)
{
	struct cordon_html *html = &m->page->html;

	if (m->n_rows <= ROWS_SHOWN && m->n_columns <= COLUMNS_SHOWN && !m->row && !m->column)
		return;
	cordon_html(html, "<p>%zu of %zu orchestrators and %zu of %zu areas are shown.", m->rows_shown, m->n_rows,
		    m->columns_shown, m->n_columns);
	if (m->row)
		link_to(m, m->row > ROWS_SHOWN ? m->row - ROWS_SHOWN : 0, m->column, "Orchestrators before these");
	if (m->row + m->rows_shown < m->n_rows)
		link_to(m, m->row + ROWS_SHOWN, m->column, "Next orchestrators");
	if (m->column)
		link_to(m, m->row, m->column > COLUMNS_SHOWN ? m->column - COLUMNS_SHOWN : 0, "Areas before these");
	if (m->column + m->columns_shown < m->n_columns)
		link_to(m, m->row, m->column + COLUMNS_SHOWN, "Next areas");
	cordon_html(html, "</p>");
}

/* Ids have only letters, digits, "_" and "-", so they may stand in an address as they are. */
static void cell(struct matrix *m, const struct cordon_orchestrator *orchestrator, const struct cordon_shared_area *area)
{
	struct cordon_html *html = &m->page->html;

	cordon_html(html, "<td data-label=\"%s\">", area->key);
	page_access_word(m->page, m->settings, orchestrator, area);
	cordon_html(html,
		    " <a href=\"/access/change?orchestrator=%s&amp;area=%s\" aria-label=\"Change %s of %s\">change</a></td>",
		    orchestrator->id, area->key, area->key, orchestrator->id);
}

static void table(struct matrix *m)
{
	struct cordon_html *html = &m->page->html;

	cordon_html(html, "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Matrix\">"
			  "<table class=\"stack\"><thead><tr><th scope=\"col\">Orchestrator</th>");
	for (size_t k = 0; k < m->columns_shown; k++)
		cordon_html(html, "<th scope=\"col\">%s</th>", m->columns[k]->key);
	cordon_html(html, "</tr></thead><tbody>");
	for (size_t i = 0; i < m->rows_shown; i++) {
		cordon_html(html, "<tr><th scope=\"row\">%s</th>", m->rows[i]->id);
		for (size_t k = 0; k < m->columns_shown; k++)
			cell(m, m->rows[i], m->columns[k]);
		cordon_html(html, "</tr>");
	}
	cordon_html(html, "</tbody></table></div>");
}

static void areas(struct matrix *m)
{
	struct cordon_html *html = &m->page->html;

	cordon_html(html, "<section id=\"areas\"><h2>Shared areas</h2><table class=\"stack\"><thead><tr>"
			  "<th scope=\"col\">Area</th><th scope=\"col\">Directory</th><th scope=\"col\">Domain</th>"
			  "<th scope=\"col\">What it is for</th></tr></thead><tbody>");
	for (size_t k = 0; k < m->columns_shown; k++) {
		const struct cordon_shared_area *area = m->columns[k];

		cordon_html(html,
			    "<tr><th scope=\"row\">%s</th><td data-label=\"Directory\"><code>%s</code></td>"
			    "<td data-label=\"Domain\">%s</td><td data-label=\"For\">%s</td></tr>",
			    area->key, area->path, area->domain ? area->domain : "none", area->description);
	}
	cordon_html(html, "</tbody></table></section>");
}

static void show(struct matrix *m)
{
	struct cordon_html *html = &m->page->html;

	cordon_html(html, "<section id=\"matrix\"><h2>Orchestrators and shared areas</h2>");
	if (!m->settings->n_orchestrators || !m->settings->n_areas) {
		cordon_page_empty(m->page, "There is nothing to grant: 'cordon orchestrator add' and 'cordon shared add' "
					   "make orchestrators and areas.");
	} else {
		filter_form(m);
		if (m->rows_shown && m->columns_shown)
			table(m);
		else
			cordon_page_empty(m->page, "No orchestrator or no area has such a name.");
		more(m);
		cordon_html(html, "<p><a href=\"/access/picture\" download>The whole matrix as a picture (SVG)</a></p>");
	}
	cordon_html(html, "</section>");
	if (m->columns_shown)
		areas(m);
}

void cordon_page_access(struct cordon_page *page)
{
	struct cordon_errors errors CORDON_CLEANUP(cordon_errors_done) = { 0 };
	autosettings struct cordon_settings_file *settings = NULL;
	struct matrix m = { .page = page,
			    .rows_with = arg(page, "orchestrators"),
			    .columns_with = arg(page, "areas"),
			    .row = number(page, "from"),
			    .column = number(page, "column") };

	cordon_page_begin(page, "Access", "audit flow");
	cordon_html(&page->html, "<p>What an agent may do with a path or a host: "
				 "<a href=\"/access/policy\">ask a policy</a>.</p>");
	cordon_page_flush(page);
	/* The matrix is shown also when a directory is gone, because what is gone can be revoked. */
	if (cordon_settings_load(NULL, CORDON_SETTINGS_TEXT_ONLY, &settings, &errors) < 0 ||
	    cordon_settings_check(settings, &errors) < 0)
		page_settings_errors(page, &errors);
	if (!settings)
		return;
	m.settings = settings;
	choose(&m);
	show(&m);
}

void cordon_page_access_picture(struct cordon_page *page)
{
	struct cordon_errors errors CORDON_CLEANUP(cordon_errors_done) = { 0 };
	autosettings struct cordon_settings_file *settings = NULL;
	struct cordon_error err = { 0 };

	if (cordon_settings_load(NULL, CORDON_SETTINGS_TEXT_ONLY, &settings, &errors) < 0) {
		cordon_errors_first(&errors, &err);
		cordon_page_fail_error(page, &err);
		return;
	}
	page->answer->type = "image/svg+xml";
	cordon_copy(page->answer->file, sizeof(page->answer->file), "access.svg", strlen("access.svg"));
	if (cordon_access_svg(settings, &page->html.out) < 0)
		page->html.failed = true;
}

/* ---- the policy ---- */

#define FOUND_SHOWN 200
#define FIND_ENTRIES 200000
#define FIND_MS 2000

/* ---- why ---- */

static void fact(struct cordon_page *page, const char *label, const char *text)
{
	cordon_html(&page->html, "<dt>%s</dt><dd><code>%s</code></dd>", label, text);
}

static void answer(struct cordon_page *page, const struct cordon_why *why, const char *asked)
{
	const struct cordon_decision *d = &why->asker.decision;
	struct cordon_html *html = &page->html;

	cordon_html(html, "<div id=\"answer\" class=\"live\"><p>");
	cordon_page_state(page, cordon_verdict_name(d->verdict));
	cordon_html(html, " %s ", cordon_asker_op(&why->asker));
	cordon_page_name(page, asked);
	cordon_html(html, "</p><dl>");
	if (why->asker.connect)
		fact(page, "Means", d->resolved);
	else if (d->reason != CORDON_REASON_UNRESOLVABLE)
		fact(page, why->asker.resolved.exists ? "Leads to" : "Leads to (does not exist yet)",
		     *d->resolved ? d->resolved : ".");
	if (d->rule)
		fact(page, "Rule", d->rule);
	if (d->rule_where)
		fact(page, "From", d->rule_where);
	if (d->fence)
		fact(page, "Fence", d->fence);
	/* Both are escaped already; they are not code. */
	cordon_html(html, "<dt>Because</dt><dd>%s</dd>", why->because.data);
	if (why->remedy.len)
		cordon_html(html, "<dt>To change it</dt><dd>%s</dd>", why->remedy.data);
	cordon_html(html, "</dl></div>");
}

static int ask(const struct cordon_page_chosen *chosen, const char *op, const char *asked, struct cordon_why *ret_why,
	       struct cordon_error *err)
{
	char below[CORDON_PATH_MAX];
	int r;

	/* An agent of a project may be quoted as it is. */
	if (chosen->in_workspace && *asked == '/' && !cordon_op_connects(op) &&
	    cordon_workspace_below(asked, true, "", below, sizeof(below)) == 0)
		asked = *below ? below : ".";
	r = cordon_policy_why(chosen->policy, op, asked, ret_why, err);
	if (r == 0 && ret_why->asker.connect && chosen->no_hosts)
		return cordon_fail(err, -ENODATA, CORDON_KIND_USAGE,
				   "the record of this run does not say which hosts it could reach");
	return r;
}

static void why_section(struct cordon_page *page, const struct cordon_page_chosen *chosen)
{
	static const char *const ops[][2] = { { "", "write or connect, whichever fits" },
					      { "read", "read" },
					      { "write", "write" },
					      { "connect", "connect" } };
	const char *asked = arg(page, "ask"), *op = arg(page, "op");
	struct cordon_html *html = &page->html;
	struct cordon_error err = { 0 };
	struct cordon_why why = { 0 };

	cordon_html(html, "<section id=\"why\"><h2>Why</h2><form method=\"get\" action=\"/access/policy#why\">");
	page_chosen_fields(page);
	cordon_html(html,
		    "<label>Path, or host and port <input type=\"text\" name=\"ask\" value=\"%s\" placeholder=\"src/main.c, example.com:443\">"
		    "</label><label>To <select name=\"op\">",
		    asked);
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(ops); i++)
		cordon_html(html,
			    cordon_streq(ops[i][0], op) ? "<option value=\"%s\" selected>%s</option>"
							: "<option value=\"%s\">%s</option>",
			    ops[i][0], ops[i][1]);
	cordon_html(html, "</select></label><button class=\"main\">Ask</button></form>");
	if (*asked &&
	    ask(chosen, cordon_streq(op, "read") || cordon_streq(op, "write") || cordon_op_connects(op) ? op : NULL,
		asked, &why, &err) == 0)
		answer(page, &why, asked);
	else if (*asked)
		cordon_html(html, "<p class=\"alert\" role=\"alert\">%s</p>", err.message);
	cordon_why_done(&why);
	cordon_html(html, "</section>");
}

/* ---- search ---- */

struct finding {
	struct cordon_page *page;
	const struct cordon_page_chosen *chosen;
	size_t n;
};

static bool found(void *data, const struct cordon_tree_entry *entry)
{
	struct finding *f = data;
	struct cordon_html *html = &f->page->html;

	cordon_html(html, "<li>");
	cordon_page_state(f->page, cordon_mark_name(entry->mark));
	cordon_html(html, " <a href=\"%s&ask=", f->chosen->link.out.data);
	cordon_html_url(html, entry->path);
	cordon_html(html, "#why\">");
	cordon_page_name(f->page, entry->path);
	cordon_html(html, "</a>");
	if (entry->target) {
		cordon_html(html, " \u2192 ");
		cordon_page_name(f->page, entry->target);
	}
	cordon_html(html, "</li>");
	return ++f->n < FOUND_SHOWN;
}

static void find_section(struct cordon_page *page, const struct cordon_page_chosen *chosen)
{
	struct finding finding = { .page = page, .chosen = chosen };
	const struct cordon_tree_search search = { .policy = chosen->policy,
						   .text = arg(page, "find"),
						   .entries = FIND_ENTRIES,
						   .deadline = cordon_time_monotonic() + FIND_MS,
						   .data = &finding,
						   .found = found };
	struct cordon_tree_searched searched = { 0 };
	struct cordon_html *html = &page->html;
	struct cordon_error err = { 0 };

	cordon_html(
		html,
		"<section id=\"find\"><h2>Search</h2><form method=\"get\" action=\"/access/policy#find\" role=\"search\">");
	page_chosen_fields(page);
	cordon_html(html,
		    "<label>Names with <input type=\"search\" name=\"find\" value=\"%s\"></label><button>Search</button></form>",
		    search.text);
	if (*search.text) {
		cordon_html(html, "<ul class=\"tree\">");
		if (cordon_tree_find(&search, &searched, &err) < 0)
			cordon_html(html, "<li class=\"alert\">%s</li>", err.message);
		cordon_html(html, "</ul><p class=\"quiet\">%zu found, among %zu names%s.</p>", finding.n,
			    searched.entries, searched.more ? "; there are more names that were not looked at" : "");
	}
	cordon_html(html, "</section>");
}

/* ---- the page ---- */

void cordon_page_access_policy(struct cordon_page *page)
{
	struct cordon_page_chosen chosen CORDON_CLEANUP(page_chosen_done) = { 0 };
	struct cordon_error err = { 0 };
	struct cordon_html *html = &page->html;

	if (!page_chooses(page)) {
		cordon_page_begin(page, "What a policy says", NULL);
		page_chooser(page);
		return;
	}
	if (page_choose(page, &chosen, &err) < 0) {
		cordon_page_fail_error(page, &err);
		return;
	}
	cordon_page_begin(page, "What a policy says", NULL);
	cordon_html(html, "<p>%s. <a href=\"/access/policy\">Choose another</a></p>", chosen.title);
	cordon_page_flush(page);
	why_section(page, &chosen);
	find_section(page, &chosen);
	cordon_html(html, "<section id=\"policy\"><h2>Tree</h2>");
	cordon_page_policy(page, &(struct cordon_page_policy){ .policy = chosen.policy,
							       .link = chosen.link.out.data,
							       .net = chosen.net,
							       .shares = chosen.shares });
	cordon_html(html, "</section>");
}

/* ---- changing ---- */

struct cell {
	struct cordon_page *page;
	struct cordon_settings_file *settings;
	const struct cordon_orchestrator *orchestrator;
	const struct cordon_shared_area *area;
	const struct cordon_area_grant *grant; /* or NULL */
};

/* Finds what the request names, or fails. */
static bool find(struct cell *c, const char *orchestrator, const char *area)
{
	struct cordon_errors errors CORDON_CLEANUP(cordon_errors_done) = { 0 };
	struct cordon_error err = { 0 };

	if (cordon_settings_load(NULL, CORDON_SETTINGS_TEXT_ONLY, &c->settings, &errors) < 0)
		cordon_errors_first(&errors, &err);
	else if (cordon_settings_orchestrator(c->settings, orchestrator ? orchestrator : "", &c->orchestrator, &err) ==
			 0 &&
		 cordon_settings_area(c->settings, area ? area : "", &c->area, &err) == 0)
		c->grant = cordon_orchestrator_grant(c->orchestrator, c->area->key);
	if (err.code)
		cordon_page_fail_error(c->page, &err);
	return !err.code;
}

static void facts(struct cell *c)
{
	struct cordon_html *html = &c->page->html;
	bool any = false;

	cordon_html(html,
		    "<section id=\"facts\"><h2>What it is about</h2><dl><dt>Orchestrator</dt><dd>%s</dd><dt>Area</dt><dd>%s</dd>",
		    c->orchestrator->id, c->area->key);
	cordon_html(html, "<dt>Directory of the host</dt><dd><code>%s</code></dd><dt>What it is for</dt><dd>%s</dd>",
		    c->area->path, c->area->description);
	cordon_html(html, "<dt>Domain of the area</dt><dd>%s</dd><dt>Domains of the orchestrator</dt><dd>",
		    c->area->domain ? c->area->domain : "none");
	for (size_t i = 0; i < c->settings->n_profiles; i++) {
		const struct cordon_channel_profile *profile = &c->settings->profiles[i];

		if (profile->orchestrator != c->orchestrator || !profile->domain)
			continue;
		cordon_html(html, "%s%s (channel profile %s)", any ? ", " : "", profile->domain, profile->id);
		any = true;
	}
	cordon_html(html, "%s</dd><dt>Access now</dt><dd>", any ? "" : "none");
	page_access_word(c->page, c->settings, c->orchestrator, c->area);
	cordon_html(html, "</dd></dl></section>");
}

/* The steps that have the area mounted, which a change of the settings does not take away by itself. */
static void holders(struct cell *c)
{
	struct cordon_html *html = &c->page->html;
	struct cordon_error err = { 0 };
	json_auto_t *list = NULL;
	json_t *holder;
	size_t i;

	cordon_html(html, "<section id=\"holders\"><h2>Who holds it now</h2>");
	if (cordon_flow_end_holders(&c->page->store->home, c->orchestrator->id, c->area->key, true, &list, &err) < 0) {
		cordon_html(html, "<p class=\"alert\">%s</p>", err.message);
	} else if (!json_array_size(list)) {
		cordon_page_empty(c->page, "No step of a workflow.");
	} else {
		cordon_html(html, "<ul>");
		json_array_foreach(list, i, holder) {
			cordon_html(html, "<li>step <code>%s</code> (attempt %lld) of the run ",
				    cordon_json_text(holder, "step"), (long long)cordon_json_integer(holder, "attempt"));
			cordon_html(html, "<a href=\"/workflow/%s\">%s</a></li>", cordon_json_text(holder, "run_id"),
				    cordon_json_text(holder, "run_id"));
		}
		cordon_html(html, "</ul>");
	}
	cordon_html(html,
		    "<p class=\"quiet\">Commands of 'cordon orchestrator run' may hold it too. They are not listed, "
		    "and end like the steps.</p></section>");
}

static void begin_form(struct cell *c, const char *action)
{
	cordon_page_form(c->page, "/access/change", action);
	cordon_html(&c->page->html,
		    "<input type=\"hidden\" name=\"orchestrator\" value=\"%s\"><input type=\"hidden\" name=\"area\" value=\"%s\">",
		    c->orchestrator->id, c->area->key);
}

static void grant_form(struct cell *c)
{
	struct cordon_html *html = &c->page->html;
	bool crosses = cordon_settings_crosses(c->settings, c->orchestrator, c->area);

	cordon_html(html, "<section id=\"grant\"><h2>%s</h2>", c->grant ? "Grant more or less" : "Grant");
	cordon_html(html, "<p>It holds for all agents of %s, from their next step on.%s</p>", c->orchestrator->id,
		    c->grant && !c->grant->read_only ? " Steps that may write to it now are ended." : "");
	begin_form(c, "grant");
	if (crosses)
		cordon_html(html,
			    "<label class=\"inline\"><input type=\"checkbox\" name=\"cross\" value=\"yes\"> The area belongs to "
			    "another domain than the orchestrator, and it shall have it all the same</label>");
	if (!c->grant || !c->grant->read_only)
		cordon_html(html, "<button name=\"access\" value=\"ro\">%s</button>",
			    c->grant ? "Let it only read from now on" : "Let it read the area");
	if (!c->grant || c->grant->read_only)
		cordon_html(html, "<button name=\"access\" value=\"rw\">%s</button>",
			    c->grant ? "Let it write as well" : "Let it read and write the area");
	cordon_html(html, "</form></section>");
}

static void revoke_form(struct cell *c)
{
	struct cordon_html *html = &c->page->html;

	cordon_html(html,
		    "<section id=\"revoke\"><h2>Revoke</h2><p>Steps that start from now on do not see the area.</p>");
	begin_form(c, "revoke");
	cordon_html(html,
		    "<fieldset><legend>What holds it now</legend>"
		    "<label class=\"inline\"><input type=\"radio\" name=\"keep\" value=\"no\" checked> ends after its grace "
		    "time</label> <label class=\"inline\"><input type=\"radio\" name=\"keep\" value=\"yes\"> goes on until it "
		    "ends by itself</label></fieldset>");
	cordon_html(html, "<button class=\"danger\">Revoke %s from %s</button></form></section>", c->area->key,
		    c->orchestrator->id);
}

static void render(struct cell *c, const struct cordon_errors *errors)
{
	struct cordon_html *html = &c->page->html;

	cordon_page_begin(c->page, "Change access", "flow audit");
	for (size_t i = 0; errors && i < errors->n; i++) {
		cordon_html(html, "<div class=\"alert\" role=\"alert\"><p>That did not work: %s.</p>",
			    errors->items[i].message);
		cordon_html(html, "<p>%s%s</p></div>", *errors->items[i].hint ? "What to do: " : "",
			    errors->items[i].hint);
	}
	facts(c);
	holders(c);
	grant_form(c);
	if (c->grant)
		revoke_form(c);
	cordon_html(html, "<p><a href=\"/access\">All access</a></p>");
}

void cordon_page_access_change(struct cordon_page *page)
{
	struct cell c = { .page = page };

	if (find(&c, cordon_page_arg(page, "orchestrator"), cordon_page_arg(page, "area")))
		render(&c, NULL);
	cordon_settings_free(c.settings);
}

static bool field_is(const struct cordon_page *page, const char *name, const char *value)
{
	const char *given = cordon_page_field(page, name);

	return given && cordon_streq(given, value);
}

/* Makes the change; the page shows the cell again, as it is then. */
static void change(struct cell *c, const struct cordon_settings_edit *edit, const char *done)
{
	struct cordon_errors errors CORDON_CLEANUP(cordon_errors_done) = { 0 };
	struct cordon_settings_edited edited autoedited = { 0 };
	struct cordon_page *page = c->page;
	struct cordon_error err = { 0 };
	json_auto_t *ended = NULL;
	char about[2 * CORDON_SETTINGS_ID_MAX + 2];
	int r = cordon_settings_change(&page->store->home, edit, &edited, &ended, &errors);

	cordon_errors_first(&errors, &err);
	cordon_concat(about, sizeof(about), edit->id, " ", edit->key, (char *)NULL);
	cordon_page_audit(page, edit->kind == CORDON_EDIT_GRANT ? "shared_grant" : "shared_revoke", NULL, about,
			  r < 0 ? &err : NULL);
	if (r == 0) {
		cordon_page_redirect(page, done, "/access/change?orchestrator=%s&area=%s", edit->id, edit->key);
		return;
	}
	page->answer->status = cordon_page_status_of(&err);
	render(c, &errors);
}

void cordon_page_access_do(struct cordon_page *page)
{
	struct cell c = { .page = page };
	struct cordon_settings_edit edit = { .kind = CORDON_EDIT_REVOKE, .keep_running = field_is(page, "keep", "yes") };
	const char *done = edit.keep_running ? "revoked-kept" : "revoked";
	struct cordon_error err = { 0 };

	if (!find(&c, cordon_page_field(page, "orchestrator"), cordon_page_field(page, "area")))
		goto out;
	edit.id = c.orchestrator->id;
	edit.key = c.area->key;
	if (cordon_page_does(page, "grant")) {
		edit = (struct cordon_settings_edit){ .kind = CORDON_EDIT_GRANT,
						      .id = edit.id,
						      .key = edit.key,
						      .read_only = field_is(page, "access", "ro"),
						      .cross_domain = field_is(page, "cross", "yes") };
		done = "granted";
	}
	/* INVARIANT: a form without an access grants none. */
	if ((cordon_page_does(page, "grant") && (edit.read_only || field_is(page, "access", "rw"))) ||
	    cordon_page_does(page, "revoke")) {
		change(&c, &edit, done);
	} else {
		cordon_fail(&err, -EINVAL, CORDON_KIND_USAGE, "The form does not say what to do");
		cordon_page_fail_error(page, &err);
	}
out:
	cordon_settings_free(c.settings);
}
