/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Audit: what the log has, newest first, by a filter, and how much of it there was at which time. A log may have a
 * gigabyte, so a search is bounded in time; the page shows where it stopped, and continues from there.
 */
#include "audit/query.h"
#include "audit/verify.h"
#include "base/text.h"
#include "base/time.h"
#include "page/internal.h"
#include "page/timeline.h"

/* The fields of the form, which are also the names in the address. */
enum {
	CORDON_AUDIT_ASK_RUN,
	CORDON_AUDIT_ASK_AGENT,
	CORDON_AUDIT_ASK_PATH,
	CORDON_AUDIT_ASK_DECISION,
	CORDON_AUDIT_ASK_EVENT,
	CORDON_AUDIT_ASK_SINCE,
	CORDON_AUDIT_ASK_UNTIL,
	CORDON_AUDIT_ASK_LOG,
	CORDON_AUDIT_ASK__MAX
};

struct cordon_audit_ask {
	const char *texts[CORDON_AUDIT_ASK__MAX]; /* as they were given, or "" */
	struct cordon_buf path, agent;		  /* as the log has them */
	struct cordon_audit_filter filter;
	uint64_t before; /* the number of a record, or 0 */
};

#define autoask CORDON_CLEANUP(audit_ask_done)

#define RECORDS_SHOWN 50
#define SEARCH_MS 3000	/* for a page of records */
#define TIMELINE_MS 500 /* for what only the time line counts */
#define LOOK_EVERY 256	/* records between two looks at the clock */
#define TEXT_MAX_ASKED 4096
#define CALLS "calls"

/* ---- the filter ---- */

static const char *const fields[] = { "run", "agent", "path", "decision", "event", "since", "until", "log" };
_Static_assert(CORDON_ARRAY_SIZE(fields) == CORDON_AUDIT_ASK__MAX, "every field has a name");

static void page_audit_whole(struct cordon_page *page, bool calls);

/* Reads the filter from the address; kind usage. The caller frees it, also after a failure. */
static int audit_ask_read(const struct cordon_page *page, struct cordon_audit_ask *ret_ask, struct cordon_error *err)
{
	struct cordon_audit_ask ask = { .path = CORDON_BUF(8 * TEXT_MAX_ASKED),
					.agent = CORDON_BUF(8 * TEXT_MAX_ASKED) };
	const char *before = cordon_page_arg(page, "before");
	int64_t now = cordon_time_now();
	int r = 0;

	for (size_t i = 0; i < CORDON_AUDIT_ASK__MAX; i++) {
		const char *text = cordon_page_arg(page, fields[i]);

		ask.texts[i] = text && strlen(text) <= TEXT_MAX_ASKED ? text : "";
	}
	ask.filter.calls = cordon_streq(ask.texts[CORDON_AUDIT_ASK_LOG], CALLS);
	if (*ask.texts[CORDON_AUDIT_ASK_AGENT])
		ask.filter.agent = cordon_audit_as_logged(ask.texts[CORDON_AUDIT_ASK_AGENT], &ask.agent);
	if (*ask.texts[CORDON_AUDIT_ASK_PATH])
		ask.filter.path = cordon_audit_as_logged(ask.texts[CORDON_AUDIT_ASK_PATH], &ask.path);
	if ((*ask.texts[CORDON_AUDIT_ASK_AGENT] && !ask.filter.agent) ||
	    (*ask.texts[CORDON_AUDIT_ASK_PATH] && !ask.filter.path))
		r = cordon_fail_errno(err, -ENOMEM, "the filter");
	if (r == 0 && *ask.texts[CORDON_AUDIT_ASK_RUN])
		r = cordon_audit_run_parse(ask.texts[CORDON_AUDIT_ASK_RUN], &ask.filter, err);
	if (r == 0 && *ask.texts[CORDON_AUDIT_ASK_DECISION])
		r = cordon_audit_decision_parse(ask.texts[CORDON_AUDIT_ASK_DECISION], &ask.filter, err);
	if (r == 0 && *ask.texts[CORDON_AUDIT_ASK_EVENT])
		r = cordon_audit_kinds_parse(ask.texts[CORDON_AUDIT_ASK_EVENT], &ask.filter, err);
	if (r == 0 && *ask.texts[CORDON_AUDIT_ASK_SINCE])
		r = cordon_audit_since_parse(ask.texts[CORDON_AUDIT_ASK_SINCE], now, &ask.filter, err);
	if (r == 0 && *ask.texts[CORDON_AUDIT_ASK_UNTIL])
		r = cordon_audit_until_parse(ask.texts[CORDON_AUDIT_ASK_UNTIL], now, &ask.filter, err);
	if (r == 0 && before && cordon_parse_u64(before, 1, INT64_MAX, &ask.before) < 0)
		r = cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "not the number of a record: %s", before);
	*ret_ask = ask;
	return r;
}

static void audit_ask_done(struct cordon_audit_ask *ask)
{
	cordon_buf_done(&ask->path);
	cordon_buf_done(&ask->agent);
}

/* The same filter as a part of an address: "run=1234&amp;since=1h", or "". `since` and `until` are used instead of what
 * was asked, unless they are NULL. */
static void audit_ask_url(struct cordon_page *page, const struct cordon_audit_ask *ask, const char *since,
			  const char *until)
{
	bool first = true;

	for (size_t i = 0; i < CORDON_AUDIT_ASK__MAX; i++) {
		const char *text = since && i == CORDON_AUDIT_ASK_SINCE	  ? since
				   : until && i == CORDON_AUDIT_ASK_UNTIL ? until
									  : ask->texts[i];

		if (!*text)
			continue;
		cordon_html(&page->html, "%s%s=", first ? "" : "&", fields[i]);
		cordon_html_url(&page->html, text);
		first = false;
	}
}

static void option(struct cordon_page *page, const char *value, const char *text, const char *chosen)
{
	bool is = cordon_streq(value, chosen);

	if (is)
		cordon_html(&page->html, "<option value=\"%s\" selected>%s</option>", value, text);
	else
		cordon_html(&page->html, "<option value=\"%s\">%s</option>", value, text);
}

static void input(struct cordon_page *page, const struct cordon_audit_ask *ask, size_t field, const char *label,
		  const char *hint)
{
	cordon_html(&page->html, "<label>%s <input type=\"search\" name=\"%s\" value=\"%s\" placeholder=\"%s\"></label>",
		    label, fields[field], ask->texts[field], hint);
}

static void filter_form(struct cordon_page *page, const struct cordon_audit_ask *ask)
{
	const char *decision = ask->texts[CORDON_AUDIT_ASK_DECISION], *event = ask->texts[CORDON_AUDIT_ASK_EVENT];
	struct cordon_html *html = &page->html;

	cordon_html(html,
		    "<section id=\"filter\"><h2>Filter</h2><form method=\"get\" action=\"/audit\" role=\"search\">");
	input(page, ask, CORDON_AUDIT_ASK_RUN, "Run or session", "first characters");
	input(page, ask, CORDON_AUDIT_ASK_AGENT, "Agent or orchestrator", "part of a name");
	input(page, ask, CORDON_AUDIT_ASK_PATH, "Path or host", "part of it");
	cordon_html(html, "<label>Log <select name=\"log\">");
	option(page, "", "events", ask->texts[CORDON_AUDIT_ASK_LOG]);
	option(page, CALLS, "calls of clients", ask->texts[CORDON_AUDIT_ASK_LOG]);
	cordon_html(html, "</select></label><label>Decision <select name=\"decision\">");
	option(page, "", "any", decision);
	for (cordon_verdict verdict = CORDON_ALLOW; verdict <= CORDON_DENY; verdict++)
		option(page, cordon_verdict_name(verdict), cordon_verdict_name(verdict), decision);
	cordon_html(html, "</select></label><label>Event <select name=\"event\">");
	option(page, "", "any", event);
	for (cordon_audit_type type = CORDON_AUDIT_START; type < CORDON_AUDIT__MAX; type++)
		option(page, cordon_audit_type_name(type), cordon_audit_type_name(type), event);
	if (strchr(event, ',')) /* a list, as an address may have it */
		option(page, event, event, event);
	cordon_html(html, "</select></label>");
	input(page, ask, CORDON_AUDIT_ASK_SINCE, "From", "24h, or a time");
	input(page, ask, CORDON_AUDIT_ASK_UNTIL, "Until", "1h, or a time");
	cordon_html(
		html,
		"<button class=\"main\">Show</button> <a class=\"button\" href=\"/audit\">Show all</a></form></section>");
}

/* ---- what was found ---- */

struct found {
	json_t *records;
	uint64_t n, refused, last; /* how many there are, and the number of the last one that is shown */
	struct cordon_timeline line;
	struct cordon_audit_searched searched;
	int64_t until; /* the time line is counted up to then; 0: the page is not full yet */
	bool begun;    /* the time line has its end */
	bool failed;
};

static bool take(void *data, const struct cordon_audit_record *record, const char *line, size_t n)
{
	bool refused = cordon_audit_tone_of(record) == CORDON_AUDIT_TONE_REFUSED ||
		       cordon_json_is(record->object, "decision", "deny");
	struct found *found = data;

	(void)line, (void)n;
	if (!found->begun)
		cordon_timeline_init(&found->line, record->time);
	found->begun = true;
	found->n++;
	found->refused += refused;
	cordon_timeline_add(&found->line, record->time, refused);
	if (json_array_size(found->records) < RECORDS_SHOWN) {
		found->failed |= json_array_append(found->records, record->object) < 0;
		found->last = record->seq;
		return !found->failed;
	}
	if (!found->until)
		found->until = cordon_time_monotonic() + TIMELINE_MS;
	return found->n % LOOK_EVERY != 0 || cordon_time_monotonic() < found->until;
}

static void time_of(struct cordon_page *page, int64_t ms)
{
	char text[CORDON_TIME_SIZE];

	cordon_time_format(ms, text);
	cordon_page_time(page, text);
}

static void timeline_table(struct cordon_page *page, const struct cordon_audit_ask *ask,
			   const struct cordon_timeline *line)
{
	struct cordon_html *html = &page->html;
	size_t bars = cordon_timeline_bars(line);

	cordon_html(html, "<details><summary>The same as a table</summary><table><thead><tr><th scope=\"col\">From</th>"
			  "<th scope=\"col\" class=\"number\">Records</th><th scope=\"col\" class=\"number\">Refused</th>"
			  "</tr></thead><tbody>");
	for (size_t i = bars; i-- > 0;) {
		char from[CORDON_TIME_SIZE], to[CORDON_TIME_SIZE];

		if (!cordon_timeline_all(line, i))
			continue;
		cordon_time_format(cordon_timeline_time(line, i), from);
		cordon_time_format(cordon_timeline_time(line, i + 1), to);
		cordon_html(html, "<tr><th scope=\"row\"><a href=\"/audit?");
		audit_ask_url(page, ask, from, to);
		cordon_html(html, "\">");
		cordon_page_time(page, from);
		cordon_html(html, "</a></th><td class=\"number\">%llu</td><td class=\"number\">%llu</td></tr>",
			    (unsigned long long)cordon_timeline_all(line, i),
			    (unsigned long long)cordon_timeline_refused(line, i));
	}
	cordon_html(html, "</tbody></table></details>");
}

static void timeline(struct cordon_page *page, const struct cordon_audit_ask *ask, struct found *found)
{
	struct cordon_html *html = &page->html;

	if (ask->filter.has_since && !found->searched.more)
		cordon_timeline_reach(&found->line, ask->filter.since);
	cordon_html(html, "<section id=\"timeline\"><h2>Time line</h2><p>%llu %s", (unsigned long long)found->n,
		    found->n == 1 ? "record matches" : "records match");
	cordon_html(html, ", of which %llu %s refused", (unsigned long long)found->refused,
		    found->refused == 1 ? "was" : "were");
	if (found->searched.more)
		cordon_html(html, ", among the %llu records from number %llu on; what is older was not counted",
			    (unsigned long long)found->searched.records, (unsigned long long)found->searched.seq);
	cordon_html(html, ". Each bar is %s; the red part, and the mark above it, is what was refused.</p>",
		    cordon_timeline_width(&found->line));
	cordon_timeline_svg(page, &found->line, "Records by time");
	cordon_html(html, "<p class=\"ends quiet\"><span>");
	time_of(page, cordon_timeline_time(&found->line, 0));
	cordon_html(html, "</span><span>");
	time_of(page, cordon_timeline_time(&found->line, cordon_timeline_bars(&found->line)));
	cordon_html(html, "</span></p>");
	timeline_table(page, ask, &found->line);
	cordon_html(html, "</section>");
}

/* ---- records ---- */

static void detail(struct cordon_page *page, const char *key, const json_t *value)
{
	autofree char *dump = json_is_string(value) ? NULL : json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);

	cordon_html(&page->html, "<dt>%s</dt><dd><code>%s</code></dd>", key,
		    json_is_string(value) ? json_string_value(value)
		    : dump		  ? dump
					  : "");
}

static void details(struct cordon_page *page, const json_t *object)
{
	const char *key;
	json_t *value;

	cordon_html(&page->html, "<details><summary>Details of record %lld</summary><dl>",
		    (long long)cordon_json_integer(object, "seq"));
	json_object_foreach((json_t *)(uintptr_t)object, key, value) {
		if (!cordon_streq(key, "detail"))
			detail(page, key, value);
	}
	json_object_foreach(json_object_get(object, "detail"), key, value) {
		detail(page, key, value);
	}
	cordon_html(&page->html, "</dl></details>");
}

/* The run of a record: more of it, and its session if it has one. */
static void who(struct cordon_page *page, const json_t *object)
{
	const char *id = cordon_json_text(object, "session_id"), *agent = cordon_json_text(object, "agent");
	const char *orchestrator = cordon_json_text(object, "orchestrator_id");
	struct cordon_html *html = &page->html;

	if (*id) {
		cordon_html(html, "<a href=\"/audit?run=");
		cordon_html_url(html, id);
		cordon_html(html, "\"><code class=\"id\">");
		cordon_html_text(html, id, strnlen(id, 8));
		cordon_html(html, "</code></a> ");
	}
	if (*id && *cordon_json_text(object, "project_id")) {
		cordon_html(html, "<a href=\"/session/");
		cordon_html_url(html, id);
		cordon_html(html, "\">session</a> ");
	}
	cordon_html(html, "%s%s%s", agent, *agent && *orchestrator ? ", " : "", orchestrator);
}

static void row(struct cordon_page *page, json_t *object)
{
	static const char *const colours[] = {
		[CORDON_AUDIT_TONE_PLAIN] = "quiet",
		[CORDON_AUDIT_TONE_CHANGE] = "busy",
		[CORDON_AUDIT_TONE_LOOK] = "wait",
		[CORDON_AUDIT_TONE_REFUSED] = "bad",
	};
	autobuf struct cordon_buf what = CORDON_BUF(4 * CORDON_AUDIT_LINE_MAX);
	struct cordon_audit_record record = { .object = object, .event = cordon_json_text(object, "event") };
	struct cordon_html *html = &page->html;

	if (cordon_audit_type_parse(record.event, strlen(record.event), &record.type) < 0)
		record.type = CORDON_AUDIT__MAX;
	(void)cordon_audit_format_what(&record, &what);
	cordon_html(html, "<tr><td data-label=\"Number\" class=\"number\">%lld</td><td data-label=\"Time\">",
		    (long long)cordon_json_integer(object, "seq"));
	cordon_page_time(page, cordon_json_text(object, "time"));
	cordon_html(html, "</td><td data-label=\"Event\"><span class=\"state %s\">%s</span></td><td data-label=\"Run\">",
		    colours[cordon_audit_tone_of(&record)], record.event);
	who(page, object);
	cordon_html(html, "</td><td data-label=\"What\"><code>%s</code>", what.len ? what.data + 1 : "");
	details(page, object);
	cordon_html(html, "</td></tr>");
}

/* The ways to what is not shown. */
static void ways(struct cordon_page *page, const struct cordon_audit_ask *ask, const struct found *found)
{
	struct cordon_html *html = &page->html;
	uint64_t before = found->n > json_array_size(found->records) ? found->last
			  : found->searched.more		     ? found->searched.seq
								     : 0;

	cordon_html(html, "<p>");
	if (ask->before) {
		cordon_html(html, "<a href=\"/audit?");
		audit_ask_url(page, ask, NULL, NULL);
		cordon_html(html, "\">Newest records</a> ");
	}
	if (before) {
		cordon_html(html, "<a rel=\"next\" href=\"/audit?");
		audit_ask_url(page, ask, NULL, NULL);
		cordon_html(html, "&amp;before=%llu\">%s</a> ", (unsigned long long)before,
			    before == found->last ? "Older records" : "Go on with the search in older records");
	}
	cordon_html(html, "<a href=\"/audit/export?");
	audit_ask_url(page, ask, NULL, NULL);
	cordon_html(html, "\" download>Export what the filter selects (JSON Lines)</a></p>");
}

static void records(struct cordon_page *page, const struct cordon_audit_ask *ask, const struct found *found)
{
	struct cordon_html *html = &page->html;
	json_t *object;
	size_t i;

	cordon_html(html, "<section id=\"records\" data-said=\"The list of records has changed.\"><h2>Records</h2>");
	if (!json_array_size(found->records)) {
		cordon_page_empty(page, found->searched.more ? "None was found so far." : "There is none.");
	} else {
		cordon_html(html, "<table class=\"stack\"><thead><tr><th scope=\"col\" class=\"number\">Number</th>"
				  "<th scope=\"col\">Time</th><th scope=\"col\">Event</th><th scope=\"col\">Run</th>"
				  "<th scope=\"col\">What</th></tr></thead><tbody>");
		json_array_foreach(found->records, i, object) {
			row(page, object);
		}
		cordon_html(html, "</tbody></table>");
	}
	ways(page, ask, found);
	cordon_html(html, "</section>");
}

/* ---- the page ---- */

static void search(struct cordon_page *page, const struct cordon_audit_ask *ask)
{
	json_auto_t *list = json_array();
	struct found found = { .records = list };
	struct cordon_audit_search what = { .filter = ask->filter,
					    .before = ask->before,
					    .deadline = cordon_time_monotonic() + SEARCH_MS,
					    .data = &found,
					    .take = take };
	struct cordon_error err = { 0 };

	/* It ends with the filter, or now; older pages have one that ends with their first record. */
	cordon_timeline_init(&found.line, ask->filter.has_until ? ask->filter.until - 1 : cordon_time_now());
	found.begun = !ask->before;
	if (!list || cordon_audit_search(&page->store->home, &what, &found.searched, &err) < 0 || found.failed) {
		cordon_html(&page->html, "<p class=\"alert\" role=\"alert\">%s</p>",
			    *err.message ? err.message : "out of memory");
		return;
	}
	timeline(page, ask, &found);
	cordon_page_flush(page);
	page_audit_whole(page, ask->filter.calls);
	records(page, ask, &found);
}

void cordon_page_audit_log(struct cordon_page *page)
{
	autoask struct cordon_audit_ask ask = { 0 };
	struct cordon_error err = { 0 };
	int r = audit_ask_read(page, &ask, &err);

	if (r < 0)
		page->answer->status = 400;
	cordon_page_begin(page, "Audit", r == 0 && !ask.before ? "audit" : NULL);
	cordon_page_flush(page);
	if (r < 0)
		cordon_html(&page->html, "<div class=\"alert\" role=\"alert\"><p>%s.</p><p>%s</p></div>", err.message,
			    err.hint);
	filter_form(page, &ask);
	if (r == 0)
		search(page, &ask);
}

/* ---- checking and exporting ---- */

#define CHECKED_AT_ONCE ((uint64_t)2 << 20) /* a log up to this size is checked whenever the page is shown */
#define CHECK_MS 50000			    /* below the time that a page may take */
#define EXPORT_MS 50000
#define EXPORT_MAX ((uint64_t)256 << 20)
#define EXPORT_PART ((size_t)64 << 10)

/* ---- whether it is whole ---- */

static void finding(struct cordon_page *page, const char *what, const struct cordon_audit_finding *found, uint64_t n)
{
	struct cordon_html *html = &page->html;

	cordon_html(html, "<p class=\"%s\">%s: <code>%s", cordon_streq(what, "Broken") ? "alert" : "warn", what,
		    found->file);
	if (found->line)
		cordon_html(html, ":%llu", (unsigned long long)found->line);
	cordon_html(html, "</code>: %s", found->reason);
	if (n > 1)
		cordon_html(html, "; and %llu more", (unsigned long long)n - 1);
	cordon_html(html, ".</p>");
}

/* Says what was checked, and no more than that. */
static void report(struct cordon_page *page, const struct cordon_audit_report *found)
{
	struct cordon_html *html = &page->html;

	cordon_html(html, "<p><span class=\"state %s\">%s</span> ",
		    found->breaks  ? "bad"
		    : found->whole ? "good"
				   : "wait",
		    found->breaks  ? "broken"
		    : found->whole ? "whole"
				   : "whole as far as checked");
	if (!found->records)
		cordon_html(html, "There is no record yet.</p>");
	else
		cordon_html(html, "%llu records were checked, number %llu to %llu: %s.</p>",
			    (unsigned long long)found->records, (unsigned long long)found->first_seq,
			    (unsigned long long)found->last_seq,
			    found->breaks ? "not every one follows from the one before it, or some are missing"
					  : "each follows from the one before it, and none is missing between them");
	if (found->breaks)
		finding(page, "Broken", &found->first_break, found->breaks);
	if (found->torn)
		finding(page, "Torn", &found->first_torn, found->torn);
	if (found->stopped)
		cordon_html(html,
			    "<p class=\"warn\">The time for a page was over: what follows number %llu was not checked. "
			    "<code>cordon audit verify</code> has no such limit.</p>",
			    (unsigned long long)found->last_seq);
	else if (!found->whole)
		cordon_html(html, "<p class=\"quiet\">What is older was not checked.</p>");
	if (found->records)
		cordon_html(html,
			    "<p class=\"quiet\">The hash of the last of them is <code>%s</code>. Kept elsewhere, it proves the log up "
			    "to there.</p>",
			    found->last_hash);
}

static void check(struct cordon_page *page, bool calls, size_t files, int64_t deadline)
{
	struct cordon_audit_part part = { .calls = calls, .files = files, .deadline = deadline };
	struct cordon_audit_report found = { 0 };
	struct cordon_error err = { 0 };

	if (cordon_audit_verify(&page->store->home, &part, &found, &err) < 0)
		cordon_html(&page->html, "<p class=\"alert\" role=\"alert\">%s</p>", err.message);
	else
		report(page, &found);
}

static void offer(struct cordon_page *page, bool calls, const struct cordon_audit_extent *extent)
{
	cordon_html(&page->html, "<p>The log has %llu MiB in %zu %s. ", (unsigned long long)(extent->bytes >> 20),
		    extent->files, extent->files == 1 ? "file" : "files");
	if (extent->files > 1)
		cordon_html(&page->html, "<a href=\"/audit/check?files=2%s\">Check the newest two files</a> or ",
			    calls ? "&log=calls" : "");
	cordon_html(&page->html,
		    "<a href=\"/audit/check%s\">check all of it</a>, which takes some seconds for each 100 MiB.</p>",
		    calls ? "?log=calls" : "");
}

/* Whether the chain is whole, for a small log at once, for others behind a link. */
static void page_audit_whole(struct cordon_page *page, bool calls)
{
	struct cordon_audit_extent extent = { 0 };
	struct cordon_error err = { 0 };

	cordon_html(&page->html, "<section id=\"whole\"><h2>Is the log whole?</h2>");
	if (cordon_audit_extent(&page->store->home, calls, &extent, &err) < 0)
		cordon_html(&page->html, "<p class=\"alert\" role=\"alert\">%s</p>", err.message);
	else if (extent.bytes <= CHECKED_AT_ONCE)
		check(page, calls, 0, 0);
	else
		offer(page, calls, &extent);
	cordon_html(&page->html, "</section>");
}

void cordon_page_audit_check(struct cordon_page *page)
{
	const char *text = cordon_page_arg(page, "files"), *log = cordon_page_arg(page, "log");
	struct cordon_error err = { 0 };
	uint64_t files = 0;

	if (text && cordon_parse_u64(text, 1, CORDON_CHAIN_KEEP_MAX, &files) < 0) {
		cordon_fail(&err, -EINVAL, CORDON_KIND_USAGE, "The address is not one that this page makes");
		cordon_page_fail_error(page, &err);
		return;
	}
	cordon_page_begin(page, "Is the audit log whole?", NULL);
	cordon_page_flush(page);
	cordon_html(&page->html, "<section id=\"whole\">");
	check(page, log && cordon_streq(log, "calls"), (size_t)files, cordon_time_monotonic() + CHECK_MS);
	cordon_html(&page->html, "</section><p><a href=\"/audit\">The audit log</a></p>");
}

/* ---- export ---- */

struct exporting {
	struct cordon_page *page;
	uint64_t bytes;
	uint64_t seq; /* of the last record */
	bool failed;  /* no memory */
};

static bool export_line(void *data, const struct cordon_audit_record *record, const char *line, size_t n)
{
	struct exporting *e = data;
	struct cordon_buf *out = &e->page->html.out;

	e->seq = record->seq;
	e->failed |= cordon_buf_add(out, line, n) < 0 || cordon_buf_addc(out, '\n') < 0;
	e->bytes += n + 1;
	if (out->len >= EXPORT_PART)
		cordon_page_flush(e->page);
	return !e->failed && e->bytes < EXPORT_MAX;
}

/* Writes the records as they are in the log, newest first. When it is not all of them, a last line says so, and from
 * which number on to go on. */
static int export(struct cordon_page *page, const struct cordon_audit_ask *ask, struct cordon_error *err)
{
	struct exporting e = { .page = page };
	const struct cordon_audit_search search = { .filter = ask->filter,
						    .before = ask->before,
						    .deadline = cordon_time_monotonic() + EXPORT_MS,
						    .data = &e,
						    .take = export_line };
	struct cordon_audit_searched searched = { 0 };
	int r = cordon_audit_search(&page->store->home, &search, &searched, err);

	if (r == 0 && e.failed)
		r = cordon_fail_errno(err, -ENOMEM, "the export");
	if ((r == 0 && searched.more) || (r < 0 && page->sent))
		cordon_buf_addf(&page->html.out, "{\"incomplete\":true,\"before\":%llu}\n",
				(unsigned long long)(r < 0 ? e.seq : searched.seq));
	return page->sent ? 0 : r;
}

void cordon_page_audit_export(struct cordon_page *page)
{
	autoask struct cordon_audit_ask ask = { 0 };
	struct cordon_error err = { 0 };
	int r = audit_ask_read(page, &ask, &err);

	if (r == 0) {
		page->answer->type = "application/x-ndjson";
		cordon_copy(page->answer->file, sizeof(page->answer->file), "cordon-audit.jsonl",
			    strlen("cordon-audit.jsonl"));
		r = export(page, &ask, &err);
	}
	if (r < 0)
		cordon_page_fail_error(page, &err);
}
