/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the audit log is whole; and its export. */
#include "audit/verify.h"

#include "base/time.h"
#include "page/audit.h"

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

static void check(struct cordon_page *page, size_t files, int64_t deadline)
{
	struct cordon_audit_part part = { .files = files, .deadline = deadline };
	struct cordon_audit_report found = { 0 };
	struct cordon_error err = { 0 };

	if (cordon_audit_verify(&page->store->home, &part, &found, &err) < 0)
		cordon_html(&page->html, "<p class=\"alert\" role=\"alert\">%s</p>", err.message);
	else
		report(page, &found);
}

static void offer(struct cordon_page *page, const struct cordon_audit_extent *extent)
{
	cordon_html(&page->html, "<p>The log has %llu MiB in %zu %s. ", (unsigned long long)(extent->bytes >> 20),
		    extent->files, extent->files == 1 ? "file" : "files");
	if (extent->files > 1)
		cordon_html(&page->html, "<a href=\"/audit/check?files=2\">Check the newest two files</a> or ");
	cordon_html(&page->html,
		    "<a href=\"/audit/check\">check all of it</a>, which takes some seconds for each 100 MiB.</p>");
}

void cordon_page_audit_whole(struct cordon_page *page)
{
	struct cordon_audit_extent extent = { 0 };
	struct cordon_error err = { 0 };

	cordon_html(&page->html, "<section id=\"whole\"><h2>Is the log whole?</h2>");
	if (cordon_audit_extent(&page->store->home, &extent, &err) < 0)
		cordon_html(&page->html, "<p class=\"alert\" role=\"alert\">%s</p>", err.message);
	else if (extent.bytes <= CHECKED_AT_ONCE)
		check(page, 0, 0);
	else
		offer(page, &extent);
	cordon_html(&page->html, "</section>");
}

void cordon_page_audit_check(struct cordon_page *page)
{
	const char *text = cordon_page_arg(page, "files");
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
	check(page, (size_t)files, cordon_time_monotonic() + CHECK_MS);
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

/* Writes the records as they are in the log, newest first. When it is not all of them, a last line says so, and from which number on to go on. */
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
	int r = cordon_audit_ask_read(page, &ask, &err);

	if (r == 0) {
		page->answer->type = "application/x-ndjson";
		cordon_copy(page->answer->file, sizeof(page->answer->file), "cordon-audit.jsonl",
			    strlen("cordon-audit.jsonl"));
		r = export(page, &ask, &err);
	}
	if (r < 0)
		cordon_page_fail_error(page, &err);
}
