/* SPDX-License-Identifier: Apache-2.0 */
/* One story of a loop with the calls of its agent, and one call with its logs. */
#include <stdio.h>

#include "base/io.h"
#include "crew/crew.h"
#include "loop/control.h"
#include "loop/loop.h"
#include "page/internal.h"

#define REFUSALS_SHOWN 100

static json_int_t number(const json_t *object, const char *name)
{
	return json_integer_value(json_object_get(object, name));
}

static bool is_open(const json_t *call)
{
	return cordon_streq(cordon_page_string(call, "state"), cordon_story_state_name(CORDON_STORY_WORKING));
}

static void not_found(struct cordon_page *page, const char *what)
{
	struct cordon_error err = { 0 };

	cordon_fail(&err, -ENOENT, CORDON_KIND_NOT_FOUND, "%s", what);
	cordon_page_fail_error(page, &err);
}

/* ---- a story ---- */

/* The story that the arguments name: the number of its PRD, and its id. */
static const json_t *find_story(const struct cordon_page *page, const json_t *board)
{
	const char *prd = cordon_page_arg(page, "prd"), *id = cordon_page_arg(page, "id");
	const json_t *story;
	uint64_t n;
	size_t i;

	if (!prd || !id || cordon_parse_u64(prd, 0, CORDON_LOOP_PRDS_MAX, &n) < 0)
		return NULL;
	prd = json_string_value(json_array_get(json_object_get(board, "prds"), (size_t)n));
	json_array_foreach(json_object_get(board, "stories"), i, story)
		if (prd && cordon_streq(cordon_page_string(story, "prd"), prd) &&
		    cordon_streq(cordon_page_string(story, "id"), id))
			return story;
	return NULL;
}

static void call_row(struct cordon_page *page, const json_t *call)
{
	struct cordon_html *html = &page->html;
	const char *note = cordon_page_string(call, "note");

	cordon_html(html, "<tr><td data-label=\"Attempt\"><a href=\"/loop/%s/call?n=%lld\">Attempt %lld</a></td>",
		    page->id, number(call, "n"), number(call, "attempt"));
	cordon_html(html, "<td data-label=\"State\">");
	cordon_page_state(page, cordon_page_string(call, "state"));
	cordon_html(html, "</td><td data-label=\"Began\">");
	cordon_page_time(page, cordon_page_string(call, "began_at"));
	cordon_html(html, "</td><td data-label=\"Took\">");
	if (json_object_get(call, "duration_ms"))
		cordon_page_duration(page, number(call, "duration_ms"));
	cordon_html(html, "</td><td data-label=\"Refusals\">%lld</td><td data-label=\"Why it failed\">",
		    number(call, "violations"));
	cordon_html_text(html, note, strcspn(note, "\n"));
	cordon_html(html, "</td></tr>");
}

static void calls(struct cordon_page *page, const json_t *story)
{
	const json_t *list = json_object_get(story, "calls");

	cordon_html(&page->html, "<section id=\"calls\"><h2>Calls of the agent</h2>");
	if (!json_array_size(list)) {
		cordon_page_empty(page, "No agent was called for it yet.");
	} else {
		cordon_html(&page->html,
			    "<table class=\"stack\"><thead><tr><th scope=\"col\">Call</th><th scope=\"col\">State</th>"
			    "<th scope=\"col\">Began</th><th scope=\"col\">Took</th><th scope=\"col\">Refusals</th>"
			    "<th scope=\"col\">Why it failed</th></tr></thead><tbody>");
		for (size_t i = json_array_size(list); i-- > 0;)
			call_row(page, json_array_get(list, i));
		cordon_html(&page->html, "</tbody></table>");
	}
	cordon_html(&page->html, "</section>");
}

void cordon_page_loop_story(struct cordon_page *page, const json_t *board)
{
	const json_t *story = find_story(page, board);
	struct cordon_html *html = &page->html;
	const char *reason = cordon_page_string(story, "reason"), *commit = cordon_page_string(story, "commit");
	char topics[64], title[CORDON_PRD_ID_MAX + 16];

	if (!story) {
		not_found(page, "The loop has no such story");
		return;
	}
	snprintf(topics, sizeof(topics), "loops/%.32s", page->id);
	snprintf(title, sizeof(title), "Story %.*s", CORDON_PRD_ID_MAX, cordon_page_string(story, "id"));
	cordon_page_begin(page, title, topics);
	cordon_html(html, "<p><a href=\"/loop/%s\">All stories of the loop</a></p>", page->id);
	cordon_html(html, "<section id=\"story\" aria-label=\"Story\" data-said=\"%s\"><p>%s</p><dl><dt>State</dt><dd>",
		    cordon_page_string(story, "state"), cordon_page_string(story, "title"));
	cordon_page_state(page, cordon_page_string(story, "state"));
	cordon_html(html, "</dd>");
	if (json_array_size(json_object_get(story, "dependencies"))) {
		cordon_html(html, "<dt>Comes after</dt><dd>");
		cordon_page_loop_needs(page, board, story);
		cordon_html(html, "</dd>");
	}
	cordon_html(html, "<dt>Failures</dt><dd>%lld of %d</dd><dt>PRD</dt><dd><code>%s</code></dd>",
		    number(story, "failures"), CORDON_LOOP_ATTEMPTS, cordon_page_string(story, "prd"));
	if (*commit)
		cordon_html(html, "<dt>Commit</dt><dd><code>%s</code></dd>", commit);
	cordon_html(html, "</dl>");
	if (*reason && !*commit)
		cordon_html(html, "<p class=\"reason\">%s</p>", reason);
	if (cordon_page_loop_can_retry(story))
		cordon_page_loop_retry(page, story);
	cordon_html(html, "</section>");
	calls(page, story);
}

/* ---- a call ---- */

/* The call that the argument names, and its story. */
static const json_t *find_call(const struct cordon_page *page, const json_t *board, const json_t **ret_story)
{
	const char *text = cordon_page_arg(page, "n");
	const json_t *story, *call;
	uint64_t n;
	size_t i, k;

	if (!text || cordon_parse_u64(text, 1, INT64_MAX, &n) < 0)
		return NULL;
	json_array_foreach(json_object_get(board, "stories"), i, story)
		json_array_foreach(json_object_get(story, "calls"), k, call)
			if (number(call, "n") == (json_int_t)n) {
				*ret_story = story;
				return call;
			}
	return NULL;
}

/* What the agent was refused, or warned of, as its log has it. */
static void refusals(struct cordon_page *page, const json_t *call)
{
	json_auto_t *events = NULL;
	const json_t *event;
	int64_t last, dropped;
	size_t i, n = 0;

	cordon_html(&page->html, "<section id=\"refusals\"><h2>Refusals</h2>");
	(void)cordon_crew_log(&page->store->home, cordon_page_string(call, "crew"), (size_t)number(call, "job"), -1, 0,
			      &events, &last, &dropped, NULL);
	json_array_foreach(events, i, event) {
		if (!cordon_streq(cordon_page_string(event, "type"), "violation"))
			continue;
		if (!n)
			cordon_html(&page->html, "<ul>");
		if (n++ < REFUSALS_SHOWN)
			cordon_html(&page->html, "<li><code>%s</code></li>", cordon_page_string(event, "text"));
	}
	if (n)
		cordon_html(&page->html, "</ul>");
	if (n > REFUSALS_SHOWN)
		cordon_html(&page->html, "<p class=\"quiet\">and %zu more</p>", n - REFUSALS_SHOWN);
	if (!n && number(call, "violations"))
		cordon_html(&page->html,
			    "<p class=\"quiet\">There were %lld; <a href=\"/audit?run=%s\">the audit log</a> "
			    "has them.</p>",
			    number(call, "violations"), cordon_page_string(call, "run_id"));
	else if (!n)
		cordon_page_empty(page, "The agent was refused nothing.");
	cordon_html(&page->html, "</section>");
}

/* The logs of a call that are files. */
static const struct {
	const char *word, *file, *label;
} logs[] = {
	{ "combined", "combined.log", "Output and errors" },
	{ "output", "output.log", "Output" },
	{ "error", "error.log", "Errors" },
	{ "prompt", "prompt.txt", "Prompt" },
};

static size_t chosen_log(const struct cordon_page *page)
{
	const char *word = cordon_page_arg(page, "log");

	for (size_t i = 0; word && i < CORDON_ARRAY_SIZE(logs); i++)
		if (cordon_streq(logs[i].word, word))
			return i;
	return 0;
}

static void log_links(struct cordon_page *page, const json_t *call, size_t chosen)
{
	cordon_html(&page->html, "<ul class=\"links\">");
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(logs); i++)
		cordon_html(&page->html,
			    "<li><a href=\"/loop/%s/call?n=%lld&amp;log=%s\" aria-current=\"%s\">%s</a></li>", page->id,
			    number(call, "n"), logs[i].word, i == chosen ? "page" : "false", logs[i].label);
	cordon_html(&page->html, "</ul>");
}

static int open_log(struct cordon_page *page, const json_t *call, size_t which, int *ret_fd, struct cordon_error *err)
{
	return cordon_loop_log(&page->store->home, page->id, cordon_page_string(call, "log"), logs[which].file, ret_fd,
			       err);
}

static void output(struct cordon_page *page, const json_t *call)
{
	size_t chosen = chosen_log(page);
	struct cordon_page_log log = { .id = "output", .label = logs[chosen].label };
	autofd int fd = -1;
	char more[96];

	cordon_html(&page->html, "<section id=\"logs\"><h2>%s</h2>", logs[chosen].label);
	log_links(page, call, chosen);
	snprintf(more, sizeof(more), "/loop/%.32s/output?n=%lld&log=%s", page->id, (long long)number(call, "n"),
		 logs[chosen].word);
	if (is_open(call))
		log.more = more;
	if (open_log(page, call, chosen, &fd, NULL) < 0)
		cordon_page_empty(page, "It is not kept any more.");
	else
		cordon_page_file(page, fd, &log);
	cordon_html(&page->html, "</section>");
}

static void call_facts(struct cordon_page *page, const json_t *call)
{
	struct cordon_html *html = &page->html;
	const char *note = cordon_page_string(call, "note");

	cordon_html(html, "<section id=\"call\" aria-label=\"Call\" data-said=\"%s\"><dl><dt>State</dt><dd>",
		    cordon_page_string(call, "state"));
	cordon_page_state(page, cordon_page_string(call, "state"));
	cordon_html(html, "</dd><dt>Began</dt><dd>");
	cordon_page_time(page, cordon_page_string(call, "began_at"));
	cordon_html(html, "</dd>");
	if (json_object_get(call, "duration_ms")) {
		cordon_html(html, "<dt>Took</dt><dd>");
		cordon_page_duration(page, number(call, "duration_ms"));
		cordon_html(html, "</dd><dt>Exit status</dt><dd>%lld</dd><dt>Files changed</dt><dd>%lld</dd>",
			    number(call, "exit_code"), number(call, "files"));
	}
	if (*cordon_page_string(call, "run_id"))
		cordon_html(html, "<dt>Run</dt><dd><a href=\"/audit?run=%s\"><code>%s</code></a></dd>",
			    cordon_page_string(call, "run_id"), cordon_page_string(call, "run_id"));
	if (*cordon_page_string(call, "commit"))
		cordon_html(html, "<dt>Commit</dt><dd><code>%s</code></dd>", cordon_page_string(call, "commit"));
	cordon_html(html, "</dl>");
	if (*note) {
		cordon_html(html, "<h2>What the next attempt is told</h2><pre tabindex=\"0\" role=\"region\" "
				  "aria-label=\"What the next attempt is told\">");
		cordon_html_output(html, note, strlen(note));
		cordon_html(html, "</pre>");
	}
	cordon_html(html, "</section>");
}

void cordon_page_loop_call(struct cordon_page *page, const json_t *board)
{
	const json_t *story = NULL, *call = find_call(page, board, &story);
	autobuf struct cordon_buf topics = CORDON_BUF(1024);
	char title[CORDON_PRD_ID_MAX + 48];

	if (!call) {
		not_found(page, "The loop has no such call of the agent");
		return;
	}
	(void)cordon_buf_addf(&topics, "loops/%s", page->id);
	cordon_page_loop_topic(page, call, &topics);
	snprintf(title, sizeof(title), "%.*s, attempt %lld", CORDON_PRD_ID_MAX, cordon_page_string(story, "id"),
		 (long long)number(call, "attempt"));
	cordon_page_begin(page, title, topics.data);
	cordon_html(&page->html, "<p><a href=\"/loop/%s\">All stories of the loop</a></p>", page->id);
	call_facts(page, call);
	refusals(page, call);
	output(page, call);
}

void cordon_page_loop_output(struct cordon_page *page, const json_t *board)
{
	const json_t *story, *call = find_call(page, board, &story);
	struct cordon_error err = { 0 };
	autofd int fd = -1;

	if (!call)
		not_found(page, "The loop has no such call of the agent");
	else if (open_log(page, call, chosen_log(page), &fd, &err) < 0)
		cordon_page_fail_error(page, &err);
	else
		cordon_page_file_more(page, fd);
}
