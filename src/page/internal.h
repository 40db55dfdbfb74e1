/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the page share: the request that is answered, the frame around every page, and small parts of
 * many. */
#ifndef CORDON_PAGE_INTERNAL_H
#define CORDON_PAGE_INTERNAL_H

#include <jansson.h>

#include "base/json.h"
#include "job/crew.h"
#include "page/form.h"
#include "page/html.h"
#include "page/page.h"

/* One request while it is answered. */
struct cordon_page {
	const struct cordon_page_request *request;
	const struct cordon_store *store;
	struct cordon_page_answer *answer;
	struct cordon_html html;
	struct cordon_form query, form;
	const char *id;	  /* what stands behind the path of the page: "/session/ID", or "" */
	const char *part; /* what stands behind that: "/session/ID/output", or "" */
	bool framed;	  /* cordon_page_begin() was called */
	bool sent;	  /* a part of the answer has left, so its status stands */
};

/*
 * One kind of page. A path that ends with a slash is followed by an id, and perhaps by a slash and one more word. `get`
 * writes a page, or answers otherwise; `post` does what the field "action" says and then redirects, or fails.
 */
struct cordon_page_route {
	const char *path;
	const char *label; /* in the navigation, or NULL */
	void (*get)(struct cordon_page *page);
	void (*post)(struct cordon_page *page); /* or NULL */
};

extern const struct cordon_page_route cordon_page_routes[]; /* ends with an empty one */

void cordon_page_home(struct cordon_page *page);
void cordon_page_approvals(struct cordon_page *page);
void cordon_page_approvals_act(struct cordon_page *page);
void cordon_page_changes_list(struct cordon_page *page);
void cordon_page_changes(struct cordon_page *page);
void cordon_page_changes_act(struct cordon_page *page);
void cordon_page_workflows(struct cordon_page *page);
void cordon_page_workflow(struct cordon_page *page);
void cordon_page_workflow_act(struct cordon_page *page);
void cordon_page_loops(struct cordon_page *page);
void cordon_page_loop(struct cordon_page *page);
void cordon_page_loop_act(struct cordon_page *page);
void cordon_page_access(struct cordon_page *page);
void cordon_page_access_change(struct cordon_page *page);
void cordon_page_access_do(struct cordon_page *page);
void cordon_page_access_picture(struct cordon_page *page);
void cordon_page_access_policy(struct cordon_page *page);
void cordon_page_audit_log(struct cordon_page *page);
void cordon_page_audit_check(struct cordon_page *page);
void cordon_page_audit_export(struct cordon_page *page);
void cordon_page_performance(struct cordon_page *page);
void cordon_page_doctor(struct cordon_page *page);
void cordon_page_sessions(struct cordon_page *page);
void cordon_page_session(struct cordon_page *page);
void cordon_page_session_act(struct cordon_page *page);
void cordon_page_runs(struct cordon_page *page);
void cordon_page_run(struct cordon_page *page);
void cordon_page_run_act(struct cordon_page *page);

/* assets.c: a text that changes with the files, so that a browser may keep them. */
const char *cordon_page_assets_version(void);

/* approvals.c: how many questions wait for an answer, for the navigation. */
void cordon_page_waiting(struct cordon_page *page);

/* layout.c: the frame. `live` are the directories below state/ whose changes make the script fetch the page again,
 * separated by blanks ("audit approvals sessions/ID"), or NULL. A list that finds more of them later has these in an
 * attribute data-live of its own. */
void cordon_page_begin(struct cordon_page *page, const char *title, const char *live);
void cordon_page_end(struct cordon_page *page);
/* Sends what is ready. A page that reads many records calls it first, so that its reader sees something at once. */
void cordon_page_flush(struct cordon_page *page);
/* A whole page about what went wrong: the message, the hint, and a way back. */
void cordon_page_fail(struct cordon_page *page, int status, const struct cordon_error *err);
/* The status that fits the kind of an error; and the same page with it. */
int cordon_page_status_of(const struct cordon_error *err);
void cordon_page_fail_error(struct cordon_page *page, const struct cordon_error *err);
/* There is nothing at this address. */
void cordon_page_not_found(struct cordon_page *page);
/* Whether the script asks for the parts of a page that changed: what is costly, or grows by itself, is then left
 * out. */
bool cordon_page_is_refresh(const struct cordon_page *page);
/* After an action: the browser gets `path`, which may have a query. `word` is one of the table in layout.c, which the
 * next page shows as a sentence; or NULL. */
void cordon_page_redirect(struct cordon_page *page, const char *word, const char *path, ...) CORDON_PRINTF(3, 4);

/* A value of the query or of the form; NULL when it is not there. */
const char *cordon_page_arg(const struct cordon_page *page, const char *name);
const char *cordon_page_field(const struct cordon_page *page, const char *name);
/* A number of the query, or 0. */
size_t cordon_page_number(const struct cordon_page *page, const char *name);
/* Whether the form asks for this action. */
bool cordon_page_does(const struct cordon_page *page, const char *action);

/* layout.c: small parts. A form begins with the login's token and, if it is not NULL, the field "action". */
void cordon_page_form(struct cordon_page *page, const char *path, const char *action);
/* A whole form with one button. */
void cordon_page_button(struct cordon_page *page, const char *path, const char *action, const char *label);
/* A point in time in RFC 3339: readable, and exact in the attribute; nothing for NULL and "". */
void cordon_page_time(struct cordon_page *page, const char *time);
/* "850 ms", "12 s", "3 min 4 s". */
void cordon_page_duration(struct cordon_page *page, int64_t ms);
/* A state as a word with a colour of its own; the words of sessions, runs, stories, steps and views are known. */
void cordon_page_state(struct cordon_page *page, const char *state);
/* Strings of an array with a blank between them, as one line of code. */
void cordon_page_command(struct cordon_page *page, const json_t *words);
/* A name of the file system, on one line whatever bytes it has; as code, or as text for an attribute. */
void cordon_page_name(struct cordon_page *page, const char *name);
void cordon_page_name_text(struct cordon_page *page, const char *name);
/* The beginning of it, for lists. */
void cordon_page_command_short(struct cordon_page *page, const json_t *words);
/* The first characters of an id, as a link to `path` and the id behind it. */
void cordon_page_id(struct cordon_page *page, const char *path, const char *id);
/* "There is nothing here yet", in words. */
void cordon_page_empty(struct cordon_page *page, const char *text);
/* The number in the query's `offset`, or 0; and links to what is older and newer than the `size` of `total` entries
 * from there on. */
size_t cordon_page_offset(const struct cordon_page *page);
void cordon_page_pager(struct cordon_page *page, const char *path, size_t offset, size_t size, size_t total);

/* log.c: events of a log (job/log.h) as the text of a <pre>: what a program wrote, and what happened to it. The
 * newest if they are too many. */
void cordon_page_events(struct cordon_page *page, const json_t *events);
/* The log of a session, or of a job of a crew. */
struct cordon_page_log {
	const char *session; /* or NULL, and then these two: */
	const char *crew;
	size_t job;
	const char *id, *label; /* of the element */
	const char *more;	/* the address that answers with cordon_page_log_more(), while the log grows; or NULL */
};
void cordon_page_log(struct cordon_page *page, const struct cordon_page_log *log);
/* What has come since the event that the argument "since" names; a whole answer without a frame. */
void cordon_page_log_more(struct cordon_page *page, const struct cordon_page_log *log);
/* What the program wrote, as a file "NAME.log". */
void cordon_page_log_file(struct cordon_page *page, const struct cordon_page_log *log, const char *name);
/* The same for a log that is a file, and of which the end is shown; `crew` and `job` do not count. */
void cordon_page_file(struct cordon_page *page, int fd, const struct cordon_page_log *log);
void cordon_page_file_more(struct cordon_page *page, int fd);
/* Adds a directory below state/ to the topics of a page, if it is there already. */
void cordon_page_topic(struct cordon_page *page, const char *place, struct cordon_buf *topics);

/* tree.c: a policy as a tree, from the query's `path` on. `net` and `shares` may be NULL: those of the policy. `link`
 * is the address of the page, perhaps with a query, on which this is the part with the id "policy". */
struct cordon_policy;
struct cordon_page_policy {
	const struct cordon_policy *policy;
	const char *link;
	const char *ask; /* the address of a page that answers questions about it; or NULL */
	const json_t *net, *shares;
};
void cordon_page_policy(struct cordon_page *page, const struct cordon_page_policy *shown);
/* A list of hosts, as a setting has it, in words. */
void cordon_page_net(struct cordon_page *page, const json_t *net);

/* refusals.c: a table of the last things that were refused. */
struct cordon_page_refusals {
	const char *run; /* to this run or session; NULL: to all */
	size_t max;
	const char *allow; /* the address that asks about allowing a host, or a path outside of `root`; or NULL */
	const char *root;
};
void cordon_page_refusals(struct cordon_page *page, const struct cordon_page_refusals *ask);

/* session.c, run.c: tables of sessions, as cordon_session_list() gives them, and of crews. */
void cordon_page_session_table(struct cordon_page *page, const json_t *sessions);
struct cordon_page_crew {
	struct cordon_crew_info info;
	bool runs;
};
void cordon_page_crew_table(struct cordon_page *page, const struct cordon_page_crew *crews, size_t n);
/* All crews, the newest first; the caller frees the array. */
int cordon_page_crews(const struct cordon_page *page, struct cordon_page_crew **ret_crews, size_t *ret_n,
		      struct cordon_error *err);

/* doctor.c: how the machine stands, in one line. */
void cordon_page_machine(struct cordon_page *page);

/* One audit record for an action of the person: what, about which session or project (or NULL), and how it ended. */
void cordon_page_audit(struct cordon_page *page, const char *action, const char *session, const char *about,
		       const struct cordon_error *err);

#endif
