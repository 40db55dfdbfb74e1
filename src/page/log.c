/* SPDX-License-Identifier: Apache-2.0 */
/* What agents wrote and what happened to them: the text of a log, as it stands and as it grows. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/text.h"
#include "job/crew.h"
#include "job/session.h"
#include "page/internal.h"

#define SHOWN_MAX ((size_t)256 << 10) /* bytes of a log on one page; the newest are shown */
#define FILE_MAX ((size_t)64 << 20)   /* of a download; what is kept of a log is less */

static bool is_output(const json_t *event)
{
	const char *type = cordon_json_text(event, "type");

	return cordon_streq(type, "stdout") || cordon_streq(type, "stderr");
}

/* The first of the newest events that fit on a page. */
static size_t first_shown(const json_t *events)
{
	size_t first = json_array_size(events), bytes = 0;

	while (first > 0 && (bytes += strlen(cordon_json_text(json_array_get(events, first - 1), "text"))) <= SHOWN_MAX)
		first--;
	return first;
}

/* Whoever wrote to a stream wrote one text, however many events it became: a colour or a line may be cut between two.
 * Returns the index behind the last of them. */
static size_t join(const json_t *events, size_t i, struct cordon_buf *ret_text)
{
	const char *type = cordon_json_text(json_array_get(events, i), "type");

	for (; i < json_array_size(events); i++) {
		const json_t *event = json_array_get(events, i);

		if (!cordon_streq(cordon_json_text(event, "type"), type) ||
		    cordon_buf_adds(ret_text, cordon_json_text(event, "text")) < 0)
			break;
	}
	return i;
}

void cordon_page_events(struct cordon_page *page, const json_t *events)
{
	bool begins = true; /* a line */

	for (size_t i = first_shown(events); i < json_array_size(events);) {
		const json_t *event = json_array_get(events, i);
		const char *type = cordon_json_text(event, "type");
		autobuf struct cordon_buf text = CORDON_BUF(2 * SHOWN_MAX);

		if (is_output(event)) {
			size_t next = join(events, i, &text);

			if (text.len)
				cordon_html_output(&page->html, text.data, text.len);
			begins = text.len ? text.data[text.len - 1] == '\n' : begins;
			i = next > i ? next : i + 1;
			continue;
		}
		cordon_html(&page->html, "%s<span class=\"event %s\">[%s] %s</span>\n", begins ? "" : "\n",
			    cordon_streq(type, "violation") || cordon_streq(type, "warning") ? "bad" : "", type,
			    cordon_json_text(event, "text"));
		begins = true;
		i++;
	}
}

/* ---- a log that grows ---- */

static int read_session(struct cordon_page *page, const char *id, int64_t since, json_t **ret_events, int64_t *ret_last,
			int64_t *ret_dropped)
{
	json_auto_t *output = NULL;

	if (cordon_session_output(page->store, id, since, 0, &output, NULL) < 0)
		return -ENOENT;
	*ret_events = json_incref(json_object_get(output, "events"));
	*ret_last = cordon_json_integer(output, "last_index");
	*ret_dropped = cordon_json_integer(output, "dropped_events");
	return 0;
}

static int read_log(struct cordon_page *page, const struct cordon_page_log *log, int64_t since, json_t **ret_events,
		    int64_t *ret_last, int64_t *ret_dropped)
{
	int r = log->session ? read_session(page, log->session, since, ret_events, ret_last, ret_dropped)
			     : cordon_crew_log(&page->store->home, log->crew, log->job, since, 0, ret_events, ret_last,
					       ret_dropped, NULL);

	if (r < 0)
		return -ENOENT; /* What is too old is removed by 'cordon gc'. */
	if (*ret_last < since)
		*ret_last = since;
	return 0;
}

static void begin_log(struct cordon_page *page, const struct cordon_page_log *log, int64_t since)
{
	cordon_html(&page->html, "<pre id=\"%s\" tabindex=\"0\" role=\"region\" aria-label=\"%s\"", log->id, log->label);
	if (log->more)
		cordon_html(&page->html, " data-more=\"%s\" data-since=\"%lld\"", log->more, (long long)since);
	cordon_html(&page->html, ">");
}

/* What the page has already; -1 on a page from before the first event. */
static int64_t since_of(const struct cordon_page *page)
{
	const char *text = cordon_page_arg(page, "since");
	uint64_t since;

	return text && cordon_parse_u64(text, 0, INT64_MAX, &since) == 0 ? (int64_t)since : -1;
}

void cordon_page_log(struct cordon_page *page, const struct cordon_page_log *log)
{
	json_auto_t *events = NULL;
	int64_t last = -1, dropped = 0;

	if (read_log(page, log, -1, &events, &last, &dropped) < 0) {
		cordon_page_empty(page, "What it wrote is not kept any more.");
		return;
	}
	if (dropped > 0 || first_shown(events) > 0)
		cordon_html(&page->html, "<p class=\"quiet\">The beginning is left out.</p>");
	begin_log(page, log, last);
	cordon_page_events(page, events);
	cordon_html(&page->html, "</pre>");
}

void cordon_page_log_more(struct cordon_page *page, const struct cordon_page_log *log)
{
	json_auto_t *events = NULL;
	int64_t since = since_of(page), last = -1, dropped = 0;

	if (read_log(page, log, since, &events, &last, &dropped) < 0)
		last = since;
	cordon_html(&page->html, "<pre data-since=\"%lld\">", (long long)last);
	if (dropped > 0 || first_shown(events) > 0)
		cordon_html(&page->html, "<span class=\"event\">[more was written than this page shows]</span>\n");
	cordon_page_events(page, events);
	cordon_html(&page->html, "</pre>");
}

void cordon_page_log_file(struct cordon_page *page, const struct cordon_page_log *log, const char *name)
{
	struct cordon_buf *out = &page->html.out;
	json_auto_t *events = NULL;
	int64_t last, dropped;
	json_t *event;
	size_t i;

	page->answer->type = "application/octet-stream";
	snprintf(page->answer->file, sizeof(page->answer->file), "%s.log", name);
	out->max = FILE_MAX;
	if (read_log(page, log, -1, &events, &last, &dropped) < 0)
		return;
	/* The bytes as they came: a browser keeps them, and shows nothing of them. */
	json_array_foreach(events, i, event)
		if (is_output(event) && cordon_buf_adds(out, cordon_json_text(event, "text")) < 0)
			page->html.failed = true;
}

/* ---- a log that is a file ---- */

/* The bytes from `from` on, and not a part of a character at their end: the rest of it may not be written yet. */
static ssize_t read_file(int fd, off_t from, char *bytes)
{
	ssize_t n = pread(fd, bytes, SHOWN_MAX, from), cut = n;

	while (cut > 0 && n - cut < 3 && ((unsigned char)bytes[cut - 1] & 0xc0) == 0x80)
		cut--;
	if (cut > 0 && (unsigned char)bytes[cut - 1] >= 0xc0 &&
	    !cordon_utf8_valid(bytes + cut - 1, (size_t)(n - cut + 1)))
		return cut - 1;
	return n;
}

void cordon_page_file(struct cordon_page *page, int fd, const struct cordon_page_log *log)
{
	autofree char *bytes = malloc(SHOWN_MAX);
	struct stat st;
	off_t from;
	ssize_t n;

	if (!bytes || fstat(fd, &st) < 0) {
		page->html.failed = true;
		return;
	}
	from = st.st_size > (off_t)SHOWN_MAX ? st.st_size - (off_t)SHOWN_MAX : 0;
	n = log->more ? read_file(fd, from, bytes) : pread(fd, bytes, SHOWN_MAX, from);
	if (from)
		cordon_html(&page->html, "<p class=\"quiet\">The first %lld bytes are left out.</p>", (long long)from);
	if (n <= 0 && !log->more) {
		cordon_page_empty(page, "It is empty.");
		return;
	}
	begin_log(page, log, from + (n > 0 ? n : 0));
	if (n > 0)
		cordon_html_output(&page->html, bytes, (size_t)n);
	cordon_html(&page->html, "</pre>");
}

void cordon_page_file_more(struct cordon_page *page, int fd)
{
	autofree char *bytes = malloc(SHOWN_MAX);
	off_t from = (off_t)since_of(page);
	ssize_t n = bytes && from >= 0 ? read_file(fd, from, bytes) : -1;

	cordon_html(&page->html, "<pre data-since=\"%lld\">", (long long)from + (n > 0 ? n : 0));
	if (n > 0)
		cordon_html_output(&page->html, bytes, (size_t)n);
	cordon_html(&page->html, "</pre>");
}

/* ---- topics ---- */

void cordon_page_topic(struct cordon_page *page, const char *place, struct cordon_buf *topics)
{
	if (faccessat(page->store->home.state_fd, place, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
		return;
	(void)cordon_buf_adds(topics, topics->len ? " " : "");
	for (; *place; place++) {
		unsigned char c = (unsigned char)*place;
		bool plain = c == '-' || c == '/' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
			     (c >= '0' && c <= '9');

		(void)(plain ? cordon_buf_addc(topics, (char)c) : cordon_buf_addf(topics, "%%%02X", c));
	}
}
