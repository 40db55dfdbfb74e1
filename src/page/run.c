/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of agents: a list of crews, one crew with its jobs, and one job: how it stands, what it writes, what it may
 * do. */
#include <stdio.h>

#include "base/time.h"
#include "job/crew.h"
#include "page/internal.h"
#include "policy/policy.h"

#define PAGE_SIZE ((size_t)50)
#define JOBS_SHOWN ((size_t)200)
#define REFUSALS_SHOWN 50

static void ms_time(struct cordon_page *page, int64_t ms)
{
	char text[CORDON_TIME_SIZE];

	if (!ms)
		return;
	cordon_time_format(ms, text);
	cordon_page_time(page, text);
}

/* ---- crews ---- */

void cordon_page_crew_table(struct cordon_page *page, const struct cordon_page_crew *crews, size_t n)
{
	struct cordon_html *html = &page->html;

	cordon_html(html, "<table class=\"stack\"><thead><tr><th scope=\"col\">Run</th><th scope=\"col\">State</th>"
			  "<th scope=\"col\">What</th><th scope=\"col\">Started</th></tr></thead><tbody>");
	for (size_t i = 0; i < n; i++) {
		const struct cordon_crew_info *info = &crews[i].info;

		cordon_html(html, "<tr><td data-label=\"Run\">");
		cordon_page_id(page, "/run/", info->id);
		cordon_html(html, "</td><td data-label=\"State\">");
		cordon_page_state(page, crews[i].runs ? "running" : "ended");
		cordon_html(html, "</td><td data-label=\"What\">%s</td><td data-label=\"Started\">",
			    *info->label ? info->label : "without a label");
		ms_time(page, info->created);
		cordon_html(html, "</td></tr>");
	}
	cordon_html(html, "</tbody></table>");
}

int cordon_page_crews(const struct cordon_page *page, struct cordon_page_crew **ret_crews, size_t *ret_n,
		      struct cordon_error *err)
{
	autofree struct cordon_crew_info *infos = NULL;
	struct cordon_page_crew *crews;
	size_t n = 0;
	int r = cordon_crew_list(&page->store->home, &infos, &n, err);

	if (r < 0)
		return r;
	crews = calloc(n + 1, sizeof(*crews));
	if (!crews)
		return cordon_fail_errno(err, -ENOMEM, "runs");
	for (size_t i = 0; i < n; i++) { /* the newest first */
		crews[i].info = infos[n - 1 - i];
		crews[i].runs = cordon_crew_runs(&page->store->home, &crews[i].info);
	}
	*ret_crews = crews;
	*ret_n = n;
	return 0;
}

void cordon_page_runs(struct cordon_page *page)
{
	autofree struct cordon_page_crew *crews = NULL;
	size_t n = 0, offset = cordon_page_offset(page);
	struct cordon_error err = { 0 };

	cordon_page_begin(page, "Agent runs", "crew audit");
	cordon_page_flush(page);
	cordon_html(&page->html, "<section id=\"runs\" aria-label=\"Runs\">");
	if (cordon_page_crews(page, &crews, &n, &err) < 0)
		cordon_html(&page->html, "<p class=\"alert\">%s</p>", err.message);
	else if (offset >= n)
		cordon_page_empty(page, n ? "There are no older runs." : "There are no runs of agents yet.");
	else
		cordon_page_crew_table(page, crews + offset, n - offset < PAGE_SIZE ? n - offset : PAGE_SIZE);
	cordon_page_pager(page, "/runs", offset, PAGE_SIZE, n);
	cordon_html(&page->html, "</section>");
}

/* ---- one crew ---- */

struct crew {
	struct cordon_crew_info info;
	struct cordon_job *jobs;
	size_t n;
};

static void crew_done(struct crew *crew)
{
	free(crew->jobs);
}

static size_t count_open(const struct crew *crew)
{
	size_t n = 0;

	for (size_t i = 0; crew->jobs && i < crew->n; i++)
		n += !cordon_job_state_ended(crew->jobs[i].state);
	return n;
}

static void job_row(struct cordon_page *page, const struct crew *crew, const struct cordon_job *job)
{
	struct cordon_html *html = &page->html;

	cordon_html(html, "<tr><td data-label=\"Job\"><a href=\"/run/%s/%zu\">%s</a></td><td data-label=\"State\">",
		    crew->info.id, job->index, job->name);
	cordon_page_state(page, cordon_job_state_name(job->state));
	cordon_html(html, "</td><td data-label=\"Exit\">");
	if (job->signal)
		cordon_html(html, "signal %d", job->signal);
	else if (job->exit_code >= 0)
		cordon_html(html, "%d", job->exit_code);
	cordon_html(html, "</td><td data-label=\"Refused\">%u</td><td data-label=\"Started\">", job->violations);
	ms_time(page, job->started);
	cordon_html(html, "</td><td data-label=\"Lasted\">");
	if (job->started && job->ended >= job->started)
		cordon_page_duration(page, job->ended - job->started);
	cordon_html(html, "</td></tr>");
}

static void jobs_section(struct cordon_page *page, const struct crew *crew)
{
	struct cordon_html *html = &page->html;
	size_t offset = cordon_page_offset(page);
	char path[64];

	cordon_html(html, "<section id=\"jobs\"><h2>Jobs</h2><table class=\"stack\"><thead><tr><th scope=\"col\">Job</th>"
			  "<th scope=\"col\">State</th><th scope=\"col\">Exit</th><th scope=\"col\">Refused</th>"
			  "<th scope=\"col\">Started</th><th scope=\"col\">Lasted</th></tr></thead><tbody>");
	for (size_t i = offset; i < crew->n && i - offset < JOBS_SHOWN; i++)
		job_row(page, crew, &crew->jobs[i]);
	cordon_html(html, "</tbody></table>");
	snprintf(path, sizeof(path), "/run/%s", crew->info.id);
	cordon_page_pager(page, path, offset, JOBS_SHOWN, crew->n);
	cordon_html(html, "</section>");
}

static void cancel_form(struct cordon_page *page, const char *path, const char *label, const char *button)
{
	cordon_page_form(page, path, "cancel");
	cordon_html(&page->html,
		    "<label class=\"inline\"><input type=\"checkbox\" name=\"sure\" value=\"yes\" required>%s</label>"
		    "<button class=\"danger\">%s</button></form>",
		    label, button);
}

static void show_crew(struct cordon_page *page, const struct crew *crew)
{
	struct cordon_html *html = &page->html;
	size_t open = count_open(crew);
	char title[32], live[64], path[64];

	snprintf(title, sizeof(title), "Run %.8s", crew->info.id);
	snprintf(live, sizeof(live), "crew/%s audit", crew->info.id);
	snprintf(path, sizeof(path), "/run/%s", crew->info.id);
	cordon_page_begin(page, title, live);
	cordon_html(html,
		    "<section id=\"state\" aria-label=\"State\" data-said=\"%zu of %zu jobs have ended\"><dl><dt>State</dt><dd>",
		    crew->n - open, crew->n);
	cordon_page_state(page, open ? "running" : "ended");
	cordon_html(html, " %zu of %zu jobs have ended</dd>", crew->n - open, crew->n);
	if (*crew->info.label)
		cordon_html(html, "<dt>What</dt><dd>%s</dd>", crew->info.label);
	cordon_html(html, "<dt>Started</dt><dd>");
	ms_time(page, crew->info.created);
	cordon_html(html, "</dd><dt>At once</dt><dd>at most %u</dd><dt>Started by</dt><dd>%s</dd></dl>",
		    crew->info.max_concurrent,
		    crew->info.owned	  ? "a process that lives and waits for it"
		    : crew->info.detached ? "a process that has ended; its jobs go on"
					  : "a process that has ended");
	if (open)
		cancel_form(page, path, "Yes, end all jobs that have not ended", "Cancel all jobs");
	cordon_html(html, "</section>");
	jobs_section(page, crew);
}

/* ---- one job ---- */

static void job_state_section(struct cordon_page *page, const struct crew *crew, const struct cordon_job *job,
			      const json_t *record, const char *path)
{
	struct cordon_html *html = &page->html;
	json_auto_t *result = NULL;
	const char *view;

	cordon_html(html,
		    "<section id=\"state\" aria-label=\"State\" data-said=\"The job is %s\"><dl><dt>State</dt><dd>",
		    cordon_job_state_name(job->state));
	cordon_page_state(page, cordon_job_state_name(job->state));
	cordon_html(html, "</dd><dt>Part of</dt><dd><a href=\"/run/%s\">%s</a></dd>", crew->info.id,
		    *crew->info.label ? crew->info.label : crew->info.id);
	if (record) {
		cordon_html(html, "<dt>Command</dt><dd>");
		cordon_page_command(page, json_object_get(record, "command"));
		cordon_html(html, "</dd>");
	}
	if (job->started) {
		cordon_html(html, "<dt>Started</dt><dd>");
		ms_time(page, job->started);
		cordon_html(html, "</dd>");
	}
	if (job->ended) {
		cordon_html(html, "<dt>Ended</dt><dd>");
		ms_time(page, job->ended);
		cordon_html(html, "</dd>");
	}
	if (job->signal)
		cordon_html(html, "<dt>Ended by</dt><dd>signal %d</dd>", job->signal);
	else if (job->exit_code >= 0)
		cordon_html(html, "<dt>Exit code</dt><dd>%d</dd>", job->exit_code);
	if (*job->message)
		cordon_html(html, "<dt>Error</dt><dd>%s</dd>", job->message);
	if (cordon_job_state_ended(job->state))
		cordon_html(html, "<dt>Refused or warned of</dt><dd>%u accesses</dd>", job->violations);
	if (cordon_crew_result(&page->store->home, crew->info.id, job->index, &result, NULL) == 0 &&
	    *(view = cordon_json_text(result, "view")))
		cordon_html(html, "<dt>Changes</dt><dd><a href=\"/changes/%s\">What it changed in its view</a></dd>",
			    view);
	cordon_html(html, "</dl>");
	if (!cordon_job_state_ended(job->state))
		cancel_form(page, path, "Yes, end this job and all its processes", "Cancel this job");
	cordon_html(html, "</section>");
}

static void output_section(struct cordon_page *page, size_t index, const char *path)
{
	char more[96];

	if (cordon_page_is_refresh(page))
		return; /* it grows by itself */
	snprintf(more, sizeof(more), "%s?part=output", path);
	cordon_html(&page->html, "<section id=\"written\"><h2>Output</h2>");
	cordon_page_log(page, &(struct cordon_page_log){
				      .crew = page->id, .job = index, .id = "output", .label = "Output", .more = more });
	cordon_html(&page->html, "<p><a href=\"%s?part=log\">Download all of it that is kept</a></p></section>", path);
}

static void policy_section(struct cordon_page *page, size_t index, const json_t *record, const char *path)
{
	struct cordon_policy *policy CORDON_CLEANUP(cordon_policy_freep) = NULL;
	char ask[CORDON_ID_SIZE + 64];
	struct cordon_error err = { 0 };

	snprintf(ask, sizeof(ask), "/access/policy?run=%s&job=%zu", page->id, index);
	cordon_html(&page->html, "<section id=\"policy\"><h2>What it may do</h2>");
	if (!record)
		cordon_page_empty(page, "Its program has not run.");
	else if (cordon_crew_policy(&page->store->home, page->id, index, &policy, &err) < 0)
		cordon_html(&page->html, "<p class=\"alert\">%s</p>", err.message);
	else
		cordon_page_policy(page, &(struct cordon_page_policy){ .policy = policy,
								       .link = path,
								       .ask = ask,
								       .net = json_object_get(record, "net"),
								       .shares = json_object_get(record, "shares") });
	cordon_html(&page->html, "</section>");
}

static void show_job(struct cordon_page *page, const struct crew *crew, const struct cordon_job *job)
{
	json_auto_t *record = NULL;
	char title[CORDON_CREW_NAME_MAX + 8], live[96], path[80];

	cordon_crew_record(&page->store->home, page->id, job->index, &record, NULL);
	snprintf(title, sizeof(title), "Job %s", job->name);
	snprintf(live, sizeof(live), "crew/%s/%zu crew/%s audit", crew->info.id, job->index, crew->info.id);
	snprintf(path, sizeof(path), "/run/%s/%zu", crew->info.id, job->index);
	cordon_page_begin(page, title, live);
	job_state_section(page, crew, job, record, path);
	cordon_page_flush(page);
	output_section(page, job->index, path);
	cordon_html(&page->html, "<section id=\"refusals\"><h2>Refused</h2>");
	if (*job->run_id)
		cordon_page_refusals(page, &(struct cordon_page_refusals){ .run = job->run_id, .max = REFUSALS_SHOWN });
	else
		cordon_page_empty(page, "Its program has not run.");
	cordon_html(&page->html, "</section>");
	cordon_page_flush(page);
	policy_section(page, job->index, record, path);
}

/* ---- the pages ---- */

/* Reads the crew, and finds the job that the address names; NULL when it names none. -ENOENT. */
static int read_crew(struct cordon_page *page, struct crew *ret_crew, const struct cordon_job **ret_job,
		     struct cordon_error *err)
{
	uint64_t index;
	int r = cordon_crew_read(&page->store->home, page->id, &ret_crew->info, &ret_crew->jobs, &ret_crew->n, err);

	*ret_job = NULL;
	if (r < 0 || !*page->part)
		return r;
	if (cordon_parse_u64(page->part, 0, CORDON_CREW_JOBS_MAX, &index) < 0 || index >= ret_crew->n)
		return cordon_fail(err, -ENOENT, CORDON_KIND_NOT_FOUND, "The run has no such job");
	*ret_job = &ret_crew->jobs[index];
	return 0;
}

void cordon_page_run(struct cordon_page *page)
{
	struct crew crew CORDON_CLEANUP(crew_done) = { 0 };
	const char *part = cordon_page_arg(page, "part");
	struct cordon_page_log log = { .crew = page->id };
	const struct cordon_job *job;
	struct cordon_error err = { 0 };
	char name[64];

	if (read_crew(page, &crew, &job, &err) < 0) {
		cordon_page_fail_error(page, &err);
	} else if (!job) {
		show_crew(page, &crew);
	} else if (part && (cordon_streq(part, "output") || cordon_streq(part, "log"))) {
		log.job = job->index;
		snprintf(name, sizeof(name), "run-%.8s-%zu", crew.info.id, job->index);
		if (cordon_streq(part, "log"))
			cordon_page_log_file(page, &log, name);
		else
			cordon_page_log_more(page, &log);
	} else {
		show_job(page, &crew, job);
	}
}

void cordon_page_run_act(struct cordon_page *page)
{
	struct crew crew CORDON_CLEANUP(crew_done) = { 0 };
	const struct cordon_job *job;
	struct cordon_error err = { 0 };
	int r = read_crew(page, &crew, &job, &err);

	if (r == 0 && !cordon_page_does(page, "cancel"))
		r = cordon_fail(&err, -EINVAL, CORDON_KIND_USAGE, "There is no such action");
	else if (r == 0 && !cordon_page_field(page, "sure"))
		r = cordon_fail(&err, -EINVAL, CORDON_KIND_USAGE, "Nothing was cancelled: the box was not ticked");
	else if (r == 0)
		r = cordon_crew_cancel_by_name(&page->store->home, crew.info.id, job ? job->name : NULL, &err);
	if (cordon_page_does(page, "cancel") && *crew.info.id)
		cordon_page_audit(page, "run_cancel", job && *job->run_id ? job->run_id : NULL, crew.info.id,
				  r < 0 ? &err : NULL);
	if (r < 0)
		cordon_page_fail_error(page, &err);
	else if (job)
		cordon_page_redirect(page, "cancelled", "/run/%s/%zu", crew.info.id, job->index);
	else
		cordon_page_redirect(page, "cancelled", "/run/%s", crew.info.id);
}
