/* SPDX-License-Identifier: Apache-2.0 */
/* One session: how it stands, what it writes, what it was refused, what it may do; and what a person can do about
 * it. */
#include <stdio.h>

#include "job/session.h"
#include "page/internal.h"
#include "policy/policy.h"

/* ---- allowing more ---- */

/* Empty fields are not given. */
static const char *given(const char *text)
{
	return text && *text ? text : NULL;
}

static bool writes(const char *access)
{
	return access && cordon_streq(access, "write");
}

/* Whether what the address asks about can be allowed at all. */
static void judge_html(struct cordon_page *page, const struct cordon_allowance *allowance)
{
	struct cordon_session_allowed allowed;
	struct cordon_error err = { 0 };

	if (!allowance->host && !allowance->path)
		return;
	if (cordon_session_may_allow(page->store, page->id, allowance, false, NULL, &allowed, &err) < 0)
		cordon_html(&page->html, "<p class=\"alert\" role=\"alert\">This can not be allowed: %s.</p>",
			    err.message);
	else if (allowed.already)
		cordon_html(&page->html, "<p class=\"done\">The session has <code>%s</code>%s.</p>", allowed.text,
			    allowed.now ? " already" : " from its next start on");
}

/* "/session/ID/allow" asks what to allow; the query's host, or path and access, are filled in. The other does what
 * its form says; *ret_done is a word for cordon_page_redirect(). */
static void page_session_allow(struct cordon_page *page, const struct cordon_session_record *session)
{
	const struct cordon_allowance allowance = { .host = given(cordon_page_arg(page, "host")),
						    .path = given(cordon_page_arg(page, "path")),
						    .write = writes(cordon_page_arg(page, "access")) };
	struct cordon_html *html = &page->html;
	char title[48], path[CORDON_ID_SIZE + 16];

	snprintf(title, sizeof(title), "Allow session %.8s more", session->id);
	snprintf(path, sizeof(path), "/session/%s", session->id);
	cordon_page_begin(page, title, NULL);
	cordon_html(html,
		    "<p class=\"warn\">This widens what the agent can do. A host can be allowed at once if the session runs "
		    "with a list of hosts. A sandbox that runs can't be widened by paths: a path counts from the "
		    "next start of the session on.</p>");
	judge_html(page, &allowance);
	cordon_page_form(page, path, "allow");
	cordon_html(html,
		    "<label>Host, as example.org or example.org:443<input type=\"text\" name=\"host\" value=\"%s\" "
		    "autocomplete=\"off\" spellcheck=\"false\" size=\"40\"></label>",
		    allowance.host);
	cordon_html(html,
		    "<label>Or a path of this machine<input type=\"text\" name=\"path\" value=\"%s\" "
		    "autocomplete=\"off\" spellcheck=\"false\" size=\"40\"></label>",
		    allowance.path);
	cordon_html(html, "<label>Access to the path<select name=\"access\"><option value=\"read\">read</option>"
			  "<option value=\"write\"");
	if (allowance.write)
		cordon_html(html, " selected");
	cordon_html(html,
		    ">read and write</option></select></label>"
		    "<label>For how long<select name=\"span\"><option value=\"once\">one run of this session</option>"
		    "<option value=\"session\">this session, also when it is resumed</option>"
		    "<option value=\"policy\">all sessions of its project from now on: written into its settings</option>"
		    "</select></label><button class=\"danger\">Allow it</button></form>"
		    "<p><a href=\"%s\">Back to the session</a></p>",
		    path);
}

static int page_session_do_allow(struct cordon_page *page, const char **ret_done, struct cordon_error *err)
{
	const struct cordon_allowance allowance = { .host = given(cordon_page_field(page, "host")),
						    .path = given(cordon_page_field(page, "path")),
						    .write = writes(cordon_page_field(page, "access")) };
	const char *span_text = cordon_page_field(page, "span");
	struct cordon_session_allowed allowed;
	cordon_approval_span span;
	int r = cordon_approval_span_parse(span_text ? span_text : "", &span, err);

	if (r == 0 && !allowance.host == !allowance.path)
		r = cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "Say a host or a path, one of them");
	if (r == 0)
		r = cordon_session_allow(page->store, page->id, &allowance, span, NULL, &allowed, err);
	if (r == 0)
		*ret_done = allowed.already ? "allowed-before"
			    : allowed.now   ? "session-allowed"
					    : "session-allowed-later";
	return r;
}

/* ---- the list ---- */

#define PAGE_SIZE ((size_t)50)

/* The name of a project, which is read once for all its sessions. */
static const char *project_name(struct cordon_page *page, json_t *names, const char *id)
{
	autoprojectrecord struct cordon_project_record project = { 0 };

	if (!json_object_get(names, id))
		json_object_set_new(names, id,
				    json_string(cordon_project_get(page->store, id, &project, NULL) == 0 ? project.name
													 : id));
	return cordon_json_text(names, id);
}

static void session_row(struct cordon_page *page, const json_t *session, json_t *names)
{
	const char *started = cordon_json_text(session, "started_at");
	struct cordon_html *html = &page->html;

	cordon_html(html, "<tr><td data-label=\"Session\">");
	cordon_page_id(page, "/session/", cordon_json_text(session, "session_id"));
	cordon_html(html, "</td><td data-label=\"State\">");
	cordon_page_state(page, cordon_json_text(session, "state"));
	cordon_html(html, "</td><td data-label=\"Project\">%s</td><td data-label=\"Command\">",
		    project_name(page, names, cordon_json_text(session, "project_id")));
	cordon_page_command_short(page, json_object_get(session, "command"));
	cordon_html(html, "</td><td data-label=\"Started\">");
	cordon_page_time(page, *started ? started : cordon_json_text(session, "created_at"));
	cordon_html(html, "</td></tr>");
}

void cordon_page_session_table(struct cordon_page *page, const json_t *sessions)
{
	json_auto_t *names = json_object();
	json_t *session;
	size_t i;

	cordon_html(&page->html,
		    "<table class=\"stack\"><thead><tr><th scope=\"col\">Session</th><th scope=\"col\">State</th>"
		    "<th scope=\"col\">Project</th><th scope=\"col\">Command</th>"
		    "<th scope=\"col\">Started</th></tr></thead><tbody>");
	json_array_foreach(sessions, i, session)
		session_row(page, session, names);
	cordon_html(&page->html, "</tbody></table>");
}

void cordon_page_sessions(struct cordon_page *page)
{
	struct cordon_session_query query = {
		.limit = PAGE_SIZE, .offset = cordon_page_offset(page), .brief = true, .newest_first = true
	};
	json_auto_t *list = NULL;
	struct cordon_error err = { 0 };
	size_t total = 0;

	cordon_page_begin(page, "Sessions", "audit");
	cordon_page_flush(page);
	cordon_html(&page->html, "<section id=\"sessions\" aria-label=\"Sessions\">");
	if (cordon_session_list(page->store, &query, &list, &total, &err) < 0)
		cordon_html(&page->html, "<p class=\"alert\">%s</p>", err.message);
	else if (!json_array_size(list))
		cordon_page_empty(page, total ? "There are no older sessions." : "There are no sessions yet.");
	else
		cordon_page_session_table(page, list);
	cordon_page_pager(page, "/sessions", query.offset, PAGE_SIZE, total);
	cordon_html(&page->html, "</section>");
}

/* ---- one session ---- */

#define REFUSALS_SHOWN 50
#define CHILDREN_SHOWN 100
#define GRACE_SECONDS 10
#define LINE_MAX_BYTES ((size_t)65536)

/* ---- how it stands ---- */

static void row(struct cordon_page *page, const char *name, const char *value)
{
	if (value && *value)
		cordon_html(&page->html, "<dt>%s</dt><dd>%s</dd>", name, value);
}

static void time_row(struct cordon_page *page, const char *name, const char *time)
{
	if (!*time)
		return;
	cordon_html(&page->html, "<dt>%s</dt><dd>", name);
	cordon_page_time(page, time);
	cordon_html(&page->html, "</dd>");
}

/* How the program ended, in words; nothing while it runs. */
static void end_rows(struct cordon_page *page, const struct cordon_session_record *s)
{
	struct cordon_html *html = &page->html;

	if (s->error) {
		cordon_html(html, "<dt>Error</dt><dd>%s", cordon_json_text(s->error, "message"));
		if (*cordon_json_text(s->error, "hint"))
			cordon_html(html, "; %s", cordon_json_text(s->error, "hint"));
		cordon_html(html, "</dd>");
	}
	if (!s->ended || s->status == CORDON_SESSION_ACTIVE)
		return;
	if (s->signal > 0)
		cordon_html(html, "<dt>Ended by</dt><dd>signal %lld</dd>", (long long)s->signal);
	else if (s->exit_code >= 0)
		cordon_html(html, "<dt>Exit code</dt><dd>%lld</dd>", (long long)s->exit_code);
	time_row(page, "Ended", s->ended_at);
	cordon_html(html, "<dt>Lasted</dt><dd>");
	cordon_page_duration(page, s->duration_ms);
	cordon_html(html, "</dd><dt>Refused or warned of</dt><dd>%lld accesses</dd>", (long long)s->violations);
}

static void place_rows(struct cordon_page *page, const struct cordon_session_record *s)
{
	autoprojectrecord struct cordon_project_record project = { 0 };
	struct cordon_html *html = &page->html;
	json_t *note;
	size_t i;

	cordon_html(html, "<dt>Project</dt><dd>%s</dd>",
		    cordon_project_get(page->store, s->project_id, &project, NULL) == 0 ? project.name : s->project_id);
	row(page, "Workspace", s->workspace_id);
	if (*s->parent_session_id) {
		cordon_html(html, "<dt>Started by session</dt><dd>");
		cordon_page_id(page, "/session/", s->parent_session_id);
		cordon_html(html, "</dd>");
	}
	if (*s->view_id)
		cordon_html(html, "<dt>Changes</dt><dd><a href=\"/changes/%s\">What it changed in its view</a></dd>",
			    s->view_id);
	json_array_foreach(s->notes, i, note)
		row(page, "Note", json_string_value(note));
}

/* What a person allowed for its next starts. */
static void allowance_rows(struct cordon_page *page, const struct cordon_session_record *s)
{
	json_t *allowance;
	size_t i;

	json_array_foreach(s->allowances, i, allowance) {
		const char *host = cordon_json_text(allowance, "host");

		cordon_html(&page->html, "<dt>Allowed</dt><dd><code>%s</code>, %s</dd>",
			    *host ? host : cordon_json_text(allowance, "share"),
			    cordon_json_true(allowance, "once") ? "for its next start" : "whenever it is started");
	}
}

static void state_section(struct cordon_page *page, const struct cordon_session_record *s)
{
	struct cordon_html *html = &page->html;

	cordon_html(html,
		    "<section id=\"state\" aria-label=\"State\" data-said=\"The session is %s\"><dl><dt>State</dt><dd>",
		    cordon_session_state_name(s->state));
	cordon_page_state(page, cordon_session_state_name(s->state));
	cordon_html(html, "</dd><dt>Command</dt><dd>");
	cordon_page_command(page, s->command);
	cordon_html(html, "</dd>");
	time_row(page, "Started", *s->started_at ? s->started_at : s->created_at);
	end_rows(page, s);
	place_rows(page, s);
	allowance_rows(page, s);
	cordon_html(html, "</dl></section>");
}

/* ---- what a person can do ---- */

static void stop_form(struct cordon_page *page, const char *path)
{
	struct cordon_html *html = &page->html;

	cordon_page_form(page, path, "stop");
	cordon_html(html, "<label>Time to end by itself<select name=\"grace\"><option value=\"10\">10 seconds</option>"
			  "<option value=\"60\">1 minute</option><option value=\"0\">none, kill it at once</option>"
			  "</select></label><label class=\"inline\"><input type=\"checkbox\" name=\"sure\" value=\"yes\" "
			  "required>Yes, end it and all its processes</label>"
			  "<button class=\"danger\">Stop this session</button></form>");
}

static void send_form(struct cordon_page *page, const char *path)
{
	cordon_page_form(page, path, "send");
	cordon_html(&page->html, "<label>Send a line to its standard input<input type=\"text\" name=\"line\" "
				 "autocomplete=\"off\" size=\"50\"></label><label class=\"inline\">"
				 "<input type=\"checkbox\" name=\"end\" value=\"yes\">then close its input</label>"
				 "<button>Send</button></form>");
}

static void actions_section(struct cordon_page *page, const struct cordon_session_record *s)
{
	char path[CORDON_ID_SIZE + 16];

	snprintf(path, sizeof(path), "/session/%s", s->id);
	cordon_html(&page->html, "<section id=\"actions\"><h2>Actions</h2>");
	if (s->status == CORDON_SESSION_ACTIVE) {
		send_form(page, path);
		stop_form(page, path);
	} else {
		cordon_page_empty(page, "The session has ended.");
	}
	cordon_html(&page->html, "<p><a href=\"%s/allow\">Allow it a host or a path</a></p></section>", path);
}

/* ---- what it wrote ---- */

static void output_section(struct cordon_page *page, const struct cordon_session_record *s)
{
	char more[CORDON_ID_SIZE + 24];

	if (cordon_page_is_refresh(page))
		return; /* it grows by itself */
	snprintf(more, sizeof(more), "/session/%s/output", s->id);
	cordon_html(&page->html, "<section id=\"written\"><h2>Output</h2>");
	cordon_page_log(page,
			&(struct cordon_page_log){ .session = s->id, .id = "output", .label = "Output", .more = more });
	cordon_html(&page->html, "<p><a href=\"/session/%s/log\">Download all of it that is kept</a></p></section>",
		    s->id);
}

/* ---- the rest ---- */

static void children_section(struct cordon_page *page, const struct cordon_session_record *s)
{
	struct cordon_html *html = &page->html;
	size_t n = json_array_size(s->child_sessions);

	if (!n)
		return;
	cordon_html(html, "<section id=\"children\"><h2>Sessions that it started</h2><ul>");
	for (size_t i = n; i-- > 0 && n - i <= CHILDREN_SHOWN;) {
		const char *id = json_string_value(json_array_get(s->child_sessions, i));
		autosessionrecord struct cordon_session_record child = { 0 };

		if (!id || cordon_session_get(page->store, id, &child, NULL) < 0)
			continue;
		cordon_html(html, "<li>");
		cordon_page_id(page, "/session/", child.id);
		cordon_html(html, " ");
		cordon_page_state(page, cordon_session_state_name(child.state));
		cordon_html(html, " ");
		cordon_page_command_short(page, child.command);
		cordon_html(html, "</li>");
	}
	cordon_html(html, "</ul>");
	if (n > CHILDREN_SHOWN)
		cordon_html(html, "<p class=\"quiet\">The last %d of %zu.</p>", CHILDREN_SHOWN, n);
	cordon_html(html, "</section>");
}

static void show(struct cordon_page *page, const struct cordon_session_record *s)
{
	struct cordon_policy *policy CORDON_CLEANUP(cordon_policy_freep) = NULL;
	char title[32], live[2 * CORDON_ID_SIZE], link[CORDON_ID_SIZE + 16], allow[CORDON_ID_SIZE + 24];
	char ask[CORDON_ID_SIZE + 32];
	struct cordon_error err = { 0 };
	int r;

	snprintf(title, sizeof(title), "Session %.8s", s->id);
	snprintf(link, sizeof(link), "/session/%s", s->id);
	snprintf(allow, sizeof(allow), "%s/allow", link);
	snprintf(ask, sizeof(ask), "/access/policy?session=%s", s->id);
	snprintf(live, sizeof(live), "sessions/%s audit", s->id);
	cordon_page_begin(page, title, live);
	state_section(page, s);
	actions_section(page, s);
	cordon_page_flush(page);
	output_section(page, s);
	r = cordon_session_policy(page->store, s, &policy, &err);
	cordon_html(&page->html, "<section id=\"refusals\"><h2>Refused</h2>");
	cordon_page_refusals(page, &(struct cordon_page_refusals){ .run = s->id,
								   .max = REFUSALS_SHOWN,
								   .allow = allow,
								   .root = r < 0 ? NULL : policy->root.path });
	cordon_html(&page->html, "</section>");
	children_section(page, s);
	cordon_page_flush(page);
	cordon_html(&page->html, "<section id=\"policy\"><h2>What it may do</h2>");
	if (r < 0)
		cordon_html(&page->html, "<p class=\"alert\">%s</p>", err.message);
	else
		cordon_page_policy(page, &(struct cordon_page_policy){ .policy = policy, .link = link, .ask = ask });
	cordon_html(&page->html, "</section>");
}

void cordon_page_session(struct cordon_page *page)
{
	autosessionrecord struct cordon_session_record session = { 0 };
	const struct cordon_page_log log = { .session = session.id };
	struct cordon_error err = { 0 };
	char name[32];

	if (cordon_session_get(page->store, page->id, &session, &err) < 0) {
		cordon_page_fail_error(page, &err);
	} else if (!*page->part) {
		show(page, &session);
	} else if (cordon_streq(page->part, "allow")) {
		page_session_allow(page, &session);
	} else if (cordon_streq(page->part, "output")) {
		cordon_page_log_more(page, &log);
	} else if (cordon_streq(page->part, "log")) {
		snprintf(name, sizeof(name), "session-%.8s", session.id);
		cordon_page_log_file(page, &log, name);
	} else {
		cordon_page_not_found(page);
	}
}

/* ---- actions ---- */

/* Each does what its form says; *ret_done is a word for cordon_page_redirect(). */
static int stop(struct cordon_page *page, const char **ret_done, struct cordon_error *err)
{
	const char *grace = cordon_page_field(page, "grace");
	uint64_t seconds = GRACE_SECONDS;

	if (!cordon_page_field(page, "sure"))
		return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE,
				   "The session was not stopped: the box was not ticked");
	if (grace && cordon_parse_u64(grace, 0, 3600, &seconds) < 0)
		return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "The time to end is a number of seconds up to 3600");
	*ret_done = "stopped";
	return cordon_session_stop(page->store, page->id, seconds * 1000, err);
}

static int send_line(struct cordon_page *page, const char **ret_done, struct cordon_error *err)
{
	const char *line = cordon_page_field(page, "line");
	bool end = cordon_page_field(page, "end");
	int64_t index;

	if (!line || strlen(line) > LINE_MAX_BYTES)
		return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "A line has at most %zu bytes", LINE_MAX_BYTES);
	*ret_done = "sent";
	return cordon_session_send(page->store, page->id, *line || !end ? line : NULL, end, &index, err);
}

void cordon_page_session_act(struct cordon_page *page)
{
	static const struct {
		const char *action, *audited;
		int (*act)(struct cordon_page *page, const char **ret_done, struct cordon_error *err);
	} actions[] = {
		{ "stop", "session_stop", stop },
		{ "send", "session_send", send_line },
		{ "allow", "session_allow", page_session_do_allow },
	};
	char id[CORDON_ID_SIZE] = "";
	struct cordon_error err = { 0 };
	const char *done = NULL;
	size_t i = 0;
	int r = cordon_id_uuid("session_id", page->id, id, &err);

	while (r == 0 && i < CORDON_ARRAY_SIZE(actions) && !cordon_page_does(page, actions[i].action))
		i++;
	if (r == 0 && i == CORDON_ARRAY_SIZE(actions))
		r = cordon_fail(&err, -EINVAL, CORDON_KIND_USAGE, "There is no such action");
	if (r == 0) {
		r = actions[i].act(page, &done, &err);
		cordon_page_audit(page, actions[i].audited, id, NULL, r < 0 ? &err : NULL);
	}
	if (r < 0)
		cordon_page_fail_error(page, &err);
	else
		cordon_page_redirect(page, done, "/session/%s", id);
}
