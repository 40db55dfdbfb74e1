/* SPDX-License-Identifier: Apache-2.0 */
/* Performance: what cordon itself cost in the newest runs that were measured, as small charts and as a table. */
#include "base/time.h"
#include "page/internal.h"
#include "run/stats.h"

#define RUNS_SHOWN 60
#define SEARCH_MS 2000
#define CHART_WIDTH 300.0
#define CHART_HEIGHT 64.0

/* One chart: a number of each run, and perhaps a second one that is not less, such as the 99th percentile. */
struct measure {
	const char *title, *what, *unit;
	const char *group, *key, *upper; /* members of the numbers of a run; group and upper may be NULL */
	double scale;
};

static const struct measure measures[] = {
	{ "Start", "Time until the program was executed", "ms", NULL, "startup_ms", NULL, 1 },
	{ "Overhead", "Start, end, and processor time of cordon between them", "ms", NULL, "overhead_ms", NULL, 1 },
	{ "Decisions", "Time of one decision: half of them, and 99 percent of them at most", "\u00b5s", "decide",
	  "ns_p50", "ns_p99", 0.001 },
	{ "Watch", "System calls that the watch received", "calls", "watch", "events", NULL, 1 },
	{ "Lens", "Time of one look-up: half of them, and 99 percent of them at most", "\u00b5s", "lens", "us_p50",
	  "us_p99", 1 },
	{ "Network", "Time from a connection to the answer of its host: half of them, and 99 percent of them at most",
	  "ms", "net", "us_p50", "us_p99", 0.001 },
	{ "Network, processor", "Processor time of the process that serves the network", "ms", "net", "cpu_ms", NULL, 1 },
	{ "Memory", "Greatest memory of cordon's own processes", "MiB", NULL, "helper_rss_bytes", NULL, 1.0 / (1 << 20) },
};

/* A number of a run; -1 when it has none. */
static double number(const json_t *run, const char *group, const char *key)
{
	const json_t *value = json_object_get(group ? json_object_get(run, group) : run, key);

	return json_is_number(value) ? json_number_value(value) : -1;
}

static int by_value(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* ---- charts ---- */

struct series {
	const struct measure *measure;
	size_t n, known; /* runs, and those that have the number */
	double value[RUNS_SHOWN], upper[RUNS_SHOWN];
	double median, most;
};

static void collect(const struct measure *measure, const json_t *runs, struct series *ret)
{
	double sorted[RUNS_SHOWN];

	*ret = (struct series){ .measure = measure, .n = json_array_size(runs) };
	for (size_t i = 0; i < ret->n; i++) {
		const json_t *run = json_array_get(runs, ret->n - 1 - i); /* the oldest stands on the left */
		double value = number(run, measure->group, measure->key);
		double upper = measure->upper ? number(run, measure->group, measure->upper) : value;

		ret->value[i] = value < 0 ? -1 : value * measure->scale;
		ret->upper[i] = upper < 0 ? -1 : upper * measure->scale;
		if (value < 0)
			continue;
		sorted[ret->known++] = ret->value[i];
		ret->most = ret->upper[i] > ret->most ? ret->upper[i] : ret->most;
	}
	if (!ret->known)
		return;
	qsort(sorted, ret->known, sizeof(*sorted), by_value);
	ret->median = sorted[ret->known / 2];
}

static void bar(struct cordon_html *html, const char *class, double x, double width, double value, double most)
{
	double height = most > 0 ? CHART_HEIGHT * value / most : 0;

	height = height < 1 ? 1 : height;
	cordon_html(html, "<rect class=\"bar %s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>", class, x,
		    CHART_HEIGHT - height, width, height);
}

static void draw(struct cordon_html *html, const struct series *s)
{
	const struct measure *m = s->measure;
	double step = CHART_WIDTH / (double)(s->n < 10 ? 10 : s->n);

	cordon_html(html,
		    "<svg class=\"chart\" viewBox=\"0 0 %d %d\" preserveAspectRatio=\"none\" role=\"img\"><title>%s</title>",
		    (int)CHART_WIDTH, (int)CHART_HEIGHT, m->title);
	cordon_html(html, "<desc>%s, a bar for each run, the newest on the right. The highest is %.1f %s.</desc>",
		    m->what, s->most, m->unit);
	for (size_t i = 0; i < s->n; i++) {
		double x = step * (double)i;

		if (s->value[i] < 0)
			continue;
		cordon_html(html, "<g><title>%.1f", s->value[i]);
		if (m->upper)
			cordon_html(html, " to %.1f", s->upper[i]);
		cordon_html(html, " %s</title>", m->unit);
		if (m->upper)
			bar(html, "upper", x, step - 1, s->upper[i], s->most);
		bar(html, "", x, step - 1, s->value[i], s->most);
		cordon_html(html, "</g>");
	}
	cordon_html(html, "<path class=\"axis\" d=\"M0 %d H%d\"/></svg>", (int)CHART_HEIGHT, (int)CHART_WIDTH);
}

static void chart(struct cordon_page *page, const struct measure *m, const json_t *runs)
{
	struct cordon_html *html = &page->html;
	struct series s;

	collect(m, runs, &s);
	cordon_html(html, "<li class=\"card\"><h3>%s</h3><p class=\"quiet\">%s.</p>", m->title, m->what);
	if (s.known) {
		draw(html, &s);
		cordon_html(html, "<p>Median %.1f %s, ", s.median, m->unit);
		cordon_html(html, "highest %.1f %s, in %zu of %zu runs.</p>", s.most, m->unit, s.known, s.n);
	} else {
		cordon_page_empty(page, "None of these runs has it.");
	}
	cordon_html(html, "</li>");
}

static void charts(struct cordon_page *page, const json_t *runs)
{
	cordon_html(&page->html, "<section id=\"charts\"><h2>Charts</h2><ul class=\"cards\">");
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(measures); i++)
		chart(page, &measures[i], runs);
	cordon_html(&page->html, "</ul></section>");
}

/* ---- the table ---- */

/* Numbers of one group, each with its name, as "24 calls"; a group that the run does not have is a dash. */
static void cell(struct cordon_page *page, const char *label, const json_t *run, const char *group,
		 const char *const *keys)
{
	const json_t *object = group ? json_object_get(run, group) : run;
	struct cordon_html *html = &page->html;

	cordon_html(html, "<td data-label=\"%s\">", label);
	for (size_t i = 0; json_is_object(object) && keys[i]; i += 2) {
		double value = number(run, group, keys[i]);

		if (value < 0)
			cordon_html(html, "%s\u2013 %s", i ? ", " : "", keys[i + 1]);
		else if (json_is_integer(json_object_get(object, keys[i])))
			cordon_html(html, "%s%lld %s", i ? ", " : "", (long long)value, keys[i + 1]);
		else
			cordon_html(html, "%s%.1f %s", i ? ", " : "", value, keys[i + 1]);
	}
	cordon_html(html, "%s</td>", json_is_object(object) ? "" : "\u2013");
}

static void row(struct cordon_page *page, const json_t *run)
{
	static const char *const start[] = { "startup_ms", "ms", NULL }, *const overhead[] = { "overhead_ms", "ms",
											       NULL };
	static const char *const decide[] = { "calls", "calls", "ns_p50", "ns (half)", "ns_p99", "ns (99 %)", NULL };
	static const char *const watch[] = { "events", "calls", "dropped", "only counted", NULL };
	static const char *const lens[] = { "lookups",	      "look-ups", "denied",	    "refused", "us_p50",
					    "\u00b5s (half)", "us_p99",	  "\u00b5s (99 %)", NULL };
	static const char *const net[] = { "connections", "connections",    "refused", "refused",
					   "us_p50",	  "\u00b5s (half)", "us_p99",  "\u00b5s (99 %)",
					   "cpu_ms",	  "ms processor",   NULL };
	static const char *const rules[] = { "mounts", "mounts", "landlock_rules", "rules", NULL };
	const char *id = cordon_json_text(run, "session_id");
	struct cordon_html *html = &page->html;

	cordon_html(html, "<tr><th scope=\"row\"><a href=\"/audit?run=");
	cordon_html_url(html, id);
	cordon_html(html, "\"><code class=\"id\">");
	cordon_html_text(html, id, strnlen(id, 8));
	cordon_html(html, "</code></a></th><td data-label=\"Ended\">");
	cordon_page_time(page, cordon_json_text(run, "time"));
	cordon_html(html, "</td><td data-label=\"Took\">");
	cordon_page_duration(page, (int64_t)cordon_json_integer(run, "duration_ms"));
	cordon_html(html, "</td>");
	cell(page, "Start", run, NULL, start);
	cell(page, "Overhead", run, NULL, overhead);
	cell(page, "Boundary", run, NULL, rules);
	cell(page, "Decisions", run, "decide", decide);
	cell(page, "Watch", run, "watch", watch);
	cell(page, "Lens", run, "lens", lens);
	cell(page, "Network", run, "net", net);
	cordon_html(html, "<td data-label=\"Memory\">%.1f MiB</td></tr>",
		    number(run, NULL, "helper_rss_bytes") / (1 << 20));
}

static void table(struct cordon_page *page, const json_t *runs)
{
	static const char *const heads[] = { "Run",	  "Ended", "Took", "Start",   "Overhead", "Boundary",
					     "Decisions", "Watch", "Lens", "Network", "Memory" };
	size_t i;
	json_t *run;

	cordon_html(&page->html,
		    "<section id=\"numbers\"><h2>The numbers</h2><div class=\"scroll\" tabindex=\"0\" role=\"region\" "
		    "aria-label=\"The numbers\"><table class=\"stack\"><thead><tr>");
	for (i = 0; i < CORDON_ARRAY_SIZE(heads); i++)
		cordon_html(&page->html, "<th scope=\"col\">%s</th>", heads[i]);
	cordon_html(&page->html, "</tr></thead><tbody>");
	json_array_foreach(runs, i, run) {
		row(page, run);
	}
	cordon_html(&page->html, "</tbody></table></div></section>");
}

/* ---- the page ---- */

static void filter_form(struct cordon_page *page, const char *run, const char *since)
{
	cordon_html(&page->html,
		    "<form method=\"get\" action=\"/performance\" role=\"search\"><label>Run or session "
		    "<input type=\"search\" name=\"run\" value=\"%s\" placeholder=\"first characters\"></label>"
		    "<label>From <input type=\"search\" name=\"since\" value=\"%s\" placeholder=\"24h, or a time\"></label>"
		    "<button>Show</button></form>",
		    run, since);
}

void cordon_page_performance(struct cordon_page *page)
{
	const char *run = cordon_page_arg(page, "run"), *since = cordon_page_arg(page, "since");
	struct cordon_stats_ask ask = { .max = RUNS_SHOWN, .deadline = cordon_time_monotonic() + SEARCH_MS };
	struct cordon_error err = { 0 };
	json_auto_t *runs = NULL;
	bool more = false;
	int r = 0;

	if (run && *run)
		r = cordon_audit_run_parse(run, &ask.filter, &err);
	if (r == 0 && since && *since)
		r = cordon_audit_since_parse(since, cordon_time_now(), &ask.filter, &err);
	if (r < 0)
		page->answer->status = 400;
	cordon_page_begin(page, "Performance", r < 0 ? NULL : "audit");
	cordon_html(&page->html,
		    "<p>What cordon itself cost in the newest runs that have ended. Sessions are measured, and "
		    "runs that write their metrics to a file.</p>");
	filter_form(page, run, since);
	cordon_page_flush(page);
	if (r == 0)
		r = cordon_stats_list(&page->store->home, &ask, &runs, NULL, &more, &err);
	if (r < 0) {
		cordon_html(&page->html, "<div class=\"alert\" role=\"alert\"><p>%s.</p><p>%s</p></div>", err.message,
			    err.hint);
		return;
	}
	if (!json_array_size(runs)) {
		cordon_page_empty(page,
				  more ? "No such run in the part of the audit log that could be searched in two seconds."
				       : "No such run was measured yet.");
		return;
	}
	charts(page, runs);
	table(page, runs);
	if (more)
		cordon_html(&page->html, "<p class=\"quiet\">Older runs are not shown.</p>");
}
