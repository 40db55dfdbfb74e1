/* SPDX-License-Identifier: Apache-2.0 */
/* Loops: a list of them, and one as a board of its stories, which can be stopped and whose stories can be tried
 * again. */
#include <stdio.h>

#include "base/io.h"
#include "base/time.h"
#include "job/crew.h"
#include "loop/control.h"
#include "loop/loop.h"
#include "page/internal.h"

#define LOOPS_SHOWN 200
#define TOPICS_MAX 16
#define CARDS_SHOWN 100 /* in one column */
#define SHORT 8		/* characters of an id that people read */

static void page_loop_story(struct cordon_page *page, const json_t *board);
static void page_loop_call(struct cordon_page *page, const json_t *board);
static void page_loop_output(struct cordon_page *page, const json_t *board);

static bool is_running(const json_t *loop)
{
	return cordon_json_is(loop, "state", "running");
}

/* ---- the list ---- */

/* Those that run come first, then the latest. */
static int by_importance(const void *a, const void *b)
{
	const json_t *one = *(const json_t *const *)a, *other = *(const json_t *const *)b;

	if (is_running(one) != is_running(other))
		return is_running(one) ? -1 : 1;
	return strcmp(cordon_json_text(other, "updated_at"), cordon_json_text(one, "updated_at"));
}

static void paths(struct cordon_page *page, const json_t *list)
{
	const json_t *path;
	size_t i;

	json_array_foreach(list, i, path)
		cordon_html(&page->html, "%s<code>%s</code>", i ? " " : "", json_string_value(path));
}

static void loop_row(struct cordon_page *page, const json_t *loop)
{
	const char *id = cordon_json_text(loop, "loop_id");
	struct cordon_html *html = &page->html;

	cordon_html(html, "<tr><td data-label=\"Loop\"><a href=\"/loop/%s\">", id);
	cordon_html_text(html, id, strnlen(id, SHORT));
	cordon_html(html, "</a></td><td data-label=\"State\">");
	cordon_page_state(page, cordon_json_text(loop, "state"));
	cordon_html(html, "</td><td data-label=\"Stories\">%lld of %lld passed", cordon_json_integer(loop, "passed"),
		    cordon_json_integer(loop, "total"));
	if (cordon_json_integer(loop, "parked"))
		cordon_html(html, ", %lld parked", cordon_json_integer(loop, "parked"));
	cordon_html(html, "</td><td data-label=\"PRD\">");
	paths(page, json_object_get(loop, "prds"));
	cordon_html(html, "</td><td data-label=\"Last change\">");
	cordon_page_time(page, cordon_json_text(loop, "updated_at"));
	cordon_html(html, "</td></tr>");
}

static void loop_table(struct cordon_page *page, const json_t *list)
{
	size_t i, n = json_array_size(list);
	autofree const json_t **sorted = calloc(n + 1, sizeof(void *));

	for (i = 0; sorted && i < n; i++)
		sorted[i] = json_array_get(list, i);
	if (!sorted) {
		page->html.failed = true;
		return;
	}
	qsort(sorted, n, sizeof(void *), by_importance);
	cordon_html(&page->html,
		    "<table class=\"stack\"><thead><tr><th scope=\"col\">Loop</th><th scope=\"col\">State</th>"
		    "<th scope=\"col\">Stories</th><th scope=\"col\">PRD</th>"
		    "<th scope=\"col\">Last change</th></tr></thead><tbody>");
	for (i = 0; i < n && i < LOOPS_SHOWN; i++)
		loop_row(page, sorted[i]);
	cordon_html(&page->html, "</tbody></table>");
	if (n > LOOPS_SHOWN)
		cordon_html(&page->html, "<p class=\"quiet\">%zu older loops are not shown.</p>", n - LOOPS_SHOWN);
}

void cordon_page_loops(struct cordon_page *page)
{
	autobuf struct cordon_buf topics = CORDON_BUF(TOPICS_MAX * 64);
	json_auto_t *list = NULL;
	struct cordon_error err = { 0 };
	const json_t *loop;
	size_t i, n = 0;
	int r;

	cordon_page_begin(page, "Loops", "loops");
	cordon_page_flush(page);
	r = cordon_loop_list(&page->store->home, &list, &err);
	json_array_foreach(list, i, loop)
		if (is_running(loop) && n++ < TOPICS_MAX)
			(void)cordon_buf_addf(&topics, "%sloops/%s", n > 1 ? " " : "",
					      cordon_json_text(loop, "loop_id"));
	cordon_html(&page->html, "<section id=\"loops\" aria-label=\"Loops\" data-live=\"%s\">", topics.data);
	if (r < 0)
		cordon_html(&page->html, "<p class=\"alert\">%s.</p>", err.message);
	else if (!json_array_size(list))
		cordon_page_empty(page, "There is no loop. 'cordon loop' has an agent do the stories of a PRD.");
	else
		loop_table(page, list);
	cordon_html(&page->html, "</section>");
}

/* ---- the board ---- */

/* A link to a story of the PRD with this path. */
static void story_link(struct cordon_page *page, const json_t *board, const char *prd, const char *id)
{
	const json_t *path, *prds = json_object_get(board, "prds");
	size_t i;

	json_array_foreach(prds, i, path) {
		if (!cordon_streq(json_string_value(path), prd))
			continue;
		cordon_html(&page->html, "<a href=\"/loop/%s/story?prd=%zu&amp;id=", page->id, i);
		cordon_html_url(&page->html, id);
		cordon_html(&page->html, "\">%s</a>", id);
		return;
	}
	cordon_html(&page->html, "%s", id);
}

/* Links to the stories that a story waits for; whether it can be tried again, and the button for it. */
static void page_loop_needs(struct cordon_page *page, const json_t *board, const json_t *story)
{
	const json_t *id;
	size_t i;

	json_array_foreach(json_object_get(story, "dependencies"), i, id) {
		cordon_html(&page->html, "%s", i ? ", " : "");
		story_link(page, board, cordon_json_text(story, "prd"), json_string_value(id));
	}
}

static bool page_loop_can_retry(const json_t *story)
{
	return cordon_json_is(story, "state", cordon_story_state_name(CORDON_STORY_PARKED)) ||
	       (cordon_json_is(story, "state", cordon_story_state_name(CORDON_STORY_WAITING)) &&
		cordon_json_integer(story, "failures") > 0);
}

static void page_loop_retry(struct cordon_page *page, const json_t *story)
{
	struct cordon_html *html = &page->html;

	cordon_html(html,
		    "<form method=\"post\" action=\"/loop/%s\"><input type=\"hidden\" name=\"token\" value=\"%s\">",
		    page->id, page->request->token);
	cordon_html(html, "<input type=\"hidden\" name=\"action\" value=\"retry\">");
	cordon_html(html, "<input type=\"hidden\" name=\"prd\" value=\"%s\">", cordon_json_text(story, "prd"));
	cordon_html(html, "<input type=\"hidden\" name=\"story\" value=\"%s\">", cordon_json_text(story, "id"));
	cordon_html(html, "<button>Try again<span class=\"hidden\">: %s</span></button></form>",
		    cordon_json_text(story, "id"));
}

/* How long it has been worked on: since the call or the check began, or all calls so far. */
static void story_time(struct cordon_page *page, const json_t *story, bool open)
{
	int64_t since, ms = cordon_json_integer(story, "duration_ms");

	if (open && cordon_time_parse(cordon_json_text(story, "since"), &since) == 0)
		ms = cordon_time_now() - since;
	if (ms <= 0)
		return;
	cordon_html(&page->html, " \u00b7 ");
	cordon_page_duration(page, ms);
}

static void card(struct cordon_page *page, const json_t *board, const json_t *story, cordon_story_state state)
{
	bool open = state == CORDON_STORY_WORKING || state == CORDON_STORY_CHECKING;
	json_int_t attempts = cordon_json_integer(story, "attempts"),
		   violations = cordon_json_integer(story, "violations");
	const char *reason = cordon_json_text(story, "reason"), *last = cordon_json_text(story, "last");
	struct cordon_html *html = &page->html;

	cordon_html(html, "<li class=\"card\"><h3>");
	story_link(page, board, cordon_json_text(story, "prd"), cordon_json_text(story, "id"));
	cordon_html(html, "</h3><p>%s</p>", cordon_json_text(story, "title"));
	if (json_array_size(json_object_get(story, "dependencies")) && state != CORDON_STORY_PASSED) {
		cordon_html(html, "<p class=\"quiet\">after ");
		page_loop_needs(page, board, story);
		cordon_html(html, "</p>");
	}
	if (attempts) {
		cordon_html(html, "<p class=\"quiet\">%lld attempt%s", attempts, attempts == 1 ? "" : "s");
		story_time(page, story, open);
		if (violations)
			cordon_html(html, " \u00b7 %lld refusal%s", violations, violations == 1 ? "" : "s");
		cordon_html(html, "</p>");
	}
	if (*reason && state != CORDON_STORY_PASSED && state != CORDON_STORY_ACCEPTED)
		cordon_html(html, "<p class=\"reason\">%s%s</p>",
			    state == CORDON_STORY_PARKED ? "" : "Before: ", reason);
	if (*last)
		cordon_html(html, "<p class=\"line\"><code>%s</code></p>", last);
	if (page_loop_can_retry(story))
		page_loop_retry(page, story);
	cordon_html(html, "</li>");
}

static void column(struct cordon_page *page, const json_t *board, cordon_story_state state)
{
	static const char *const titles[] = { "Waiting", "Working", "Checking", "Accepted", "Passed", "Parked" };
	const char *name = cordon_story_state_name(state);
	const json_t *story;
	size_t i, n = 0;

	json_array_foreach(json_object_get(board, "stories"), i, story)
		n += cordon_streq(cordon_json_text(story, "state"), name);
	cordon_html(&page->html, "<section id=\"%s\" class=\"live\" data-count=\"%zu\"><h2>%s (%zu)</h2>", name, n,
		    titles[state], n);
	if (n)
		cordon_html(&page->html, "<ul>");
	n = 0;
	json_array_foreach(json_object_get(board, "stories"), i, story)
		if (cordon_streq(cordon_json_text(story, "state"), name) && n++ < CARDS_SHOWN)
			card(page, board, story, state);
	if (n)
		cordon_html(&page->html, "</ul>");
	if (n > CARDS_SHOWN)
		cordon_html(&page->html, "<p class=\"quiet\">and %zu more</p>", n - CARDS_SHOWN);
	cordon_html(&page->html, "</section>");
}

/* ---- one loop ---- */

static void facts(struct cordon_page *page, const json_t *board)
{
	struct cordon_html *html = &page->html;
	const char *error = cordon_json_text(board, "error");
	json_int_t workers = (json_int_t)json_array_size(json_object_get(board, "workers"));

	cordon_html(html, "<section id=\"summary\" aria-label=\"Summary\" data-said=\"%s\"><dl><dt>State</dt><dd>",
		    cordon_json_text(board, "summary"));
	cordon_page_state(page, cordon_json_text(board, "state"));
	if (cordon_json_true(board, "stopping"))
		cordon_html(html, " it was asked to stop");
	cordon_html(html, "</dd><dt>Stories</dt><dd>%lld of %lld have passed, %lld parked</dd>",
		    cordon_json_integer(board, "passed"), cordon_json_integer(board, "total"),
		    cordon_json_integer(board, "parked"));
	if (is_running(board)) {
		cordon_html(html, "<dt>Agents</dt><dd>%lld of %lld run</dd>", workers,
			    cordon_json_integer(board, "workers_max"));
		if (json_object_get(board, "estimate_ms")) {
			cordon_html(html, "<dt>Time left</dt><dd>about ");
			cordon_page_duration(page, cordon_json_integer(board, "estimate_ms"));
			cordon_html(html, ", if every story takes as long as those so far</dd>");
		}
	}
	cordon_html(html, "<dt>Calls</dt><dd>%lld since it began or went on</dd><dt>Refusals</dt><dd>%lld</dd>",
		    cordon_json_integer(board, "iterations"), cordon_json_integer(board, "violations"));
	cordon_html(html, "<dt>Repository</dt><dd><code>%s</code></dd><dt>PRD</dt><dd>",
		    cordon_json_text(board, "root"));
	paths(page, json_object_get(board, "prds"));
	cordon_html(html, "</dd><dt>Began</dt><dd>");
	cordon_page_time(page, cordon_json_text(board, "began_at"));
	cordon_html(html, "</dd><dt>Last change</dt><dd>");
	cordon_page_time(page, cordon_json_text(board, "updated_at"));
	cordon_html(html, "</dd></dl>");
	if (*error)
		cordon_html(html, "<p class=\"alert\">It ended with an error: %s.</p>", error);
	cordon_html(html, "</section>");
}

static void actions(struct cordon_page *page, const json_t *board)
{
	struct cordon_html *html = &page->html;
	char path[64];

	cordon_html(html, "<section id=\"actions\" aria-label=\"Actions\">");
	if (cordon_concat(path, sizeof(path), "/loop/", page->id, (char *)NULL) == 0 && is_running(board)) {
		cordon_page_button(page, path, "stop", "Stop this loop");
		cordon_html(html, "<p class=\"quiet\">Its agents end. What they had changed stays in views, and the same "
				  "command goes on later.</p>");
	} else if (cordon_json_integer(board, "passed") < cordon_json_integer(board, "total")) {
		cordon_html(html, "<p class=\"quiet\">It does not run. 'cordon loop' with the same PRD goes on.</p>");
	}
	cordon_html(html, "</section>");
}

static void kept_views(struct cordon_page *page, const json_t *board)
{
	const json_t *kept = json_object_get(board, "kept_views"), *view;
	size_t i;

	cordon_html(&page->html, "<section id=\"kept\">");
	if (json_array_size(kept)) {
		cordon_html(&page->html, "<h2>Views that were kept</h2><ul>");
		json_array_foreach(kept, i, view)
			cordon_html(&page->html, "<li><a href=\"/changes/%s\">What the agent of %s had changed</a></li>",
				    cordon_json_text(view, "view"), cordon_json_text(view, "story"));
		cordon_html(&page->html, "</ul>");
	}
	cordon_html(&page->html, "</section>");
}

/* Adds the logs of a call to the topics of a page, while they grow. */
static void page_loop_topic(struct cordon_page *page, const json_t *call, struct cordon_buf *topics)
{
	char place[CORDON_PATH_MAX];

	if (!cordon_json_is(call, "state", cordon_story_state_name(CORDON_STORY_WORKING)))
		return;
	if (cordon_concat(place, sizeof(place), "loops/", page->id, "/logs/", cordon_json_text(call, "log"),
			  (char *)NULL) == 0)
		cordon_page_topic(page, place, topics);
}

/* The loop itself, and the logs of the agents that run. */
static void topics_of(struct cordon_page *page, const json_t *board, struct cordon_buf *ret_topics)
{
	const json_t *story;
	size_t i;

	(void)cordon_buf_addf(ret_topics, "loops/%s", page->id);
	json_array_foreach(json_object_get(board, "stories"), i, story) {
		const json_t *calls = json_object_get(story, "calls");

		if (json_array_size(calls))
			page_loop_topic(page, json_array_get(calls, json_array_size(calls) - 1), ret_topics);
	}
}

static void whole_board(struct cordon_page *page, const json_t *board)
{
	autobuf struct cordon_buf topics = CORDON_BUF(65536);
	const char *root = cordon_json_text(board, "root"), *base = strrchr(root, '/');
	char title[160];

	topics_of(page, board, &topics);
	if (cordon_concat(title, sizeof(title), "Loop in ", base && base[1] ? base + 1 : root, (char *)NULL) < 0)
		(void)cordon_copy(title, sizeof(title), "Loop", 4);
	cordon_page_begin(page, title, topics.data);
	facts(page, board);
	actions(page, board);
	cordon_html(&page->html, "<div class=\"board\">");
	for (int state = 0; state < CORDON_STORY__MAX; state++)
		column(page, board, (cordon_story_state)state);
	cordon_html(&page->html, "</div>");
	kept_views(page, board);
}

void cordon_page_loop(struct cordon_page *page)
{
	static const struct {
		const char *part;
		void (*show)(struct cordon_page *page, const json_t *board);
	} parts[] = { { "", whole_board },
		      { "story", page_loop_story },
		      { "call", page_loop_call },
		      { "output", page_loop_output } };
	json_auto_t *board = NULL;
	struct cordon_error err = { 0 };

	if (cordon_loop_board(&page->store->home, page->id, &board, &err) < 0) {
		cordon_page_fail_error(page, &err);
		return;
	}
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(parts); i++) {
		if (!cordon_streq(parts[i].part, page->part))
			continue;
		parts[i].show(page, board);
		return;
	}
	cordon_fail(&err, -ENOENT, CORDON_KIND_NOT_FOUND, "There is nothing here");
	cordon_page_fail_error(page, &err);
}

/* ---- actions ---- */

void cordon_page_loop_act(struct cordon_page *page)
{
	const struct cordon_home *home = &page->store->home;
	const char *prd = cordon_page_field(page, "prd"), *story = cordon_page_field(page, "story");
	bool stops = cordon_page_does(page, "stop"), retries = cordon_page_does(page, "retry") && story;
	json_auto_t *status = NULL;
	struct cordon_error err = { 0 };
	int r = stops	  ? cordon_loop_stop(home, page->id, &err)
		: retries ? cordon_loop_retry(home, page->id, prd, story, &err)
			  : cordon_fail(&err, -EINVAL, CORDON_KIND_USAGE, "A loop can be stopped, or try a story again");

	if (stops || retries)
		cordon_page_audit(page, stops ? "loop_stop" : "loop_retry", NULL, stops ? page->id : story,
				  r < 0 ? &err : NULL);
	if (r == 0 && retries)
		r = cordon_loop_status(home, page->id, &status, &err);
	if (r < 0)
		cordon_page_fail_error(page, &err);
	else
		cordon_page_redirect(page,
				     stops		  ? "loop-stopped"
				     : is_running(status) ? "story-retried"
							  : "story-retried-later",
				     "/loop/%s", page->id);
}

/* ---- stories and calls ---- */

#define REFUSALS_SHOWN 100

static bool is_open(const json_t *call)
{
	return cordon_json_is(call, "state", cordon_story_state_name(CORDON_STORY_WORKING));
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
		if (prd && cordon_streq(cordon_json_text(story, "prd"), prd) &&
		    cordon_streq(cordon_json_text(story, "id"), id))
			return story;
	return NULL;
}

static void call_row(struct cordon_page *page, const json_t *call)
{
	struct cordon_html *html = &page->html;
	const char *note = cordon_json_text(call, "note");

	cordon_html(html, "<tr><td data-label=\"Attempt\"><a href=\"/loop/%s/call?n=%lld\">Attempt %lld</a></td>",
		    page->id, cordon_json_integer(call, "n"), cordon_json_integer(call, "attempt"));
	cordon_html(html, "<td data-label=\"State\">");
	cordon_page_state(page, cordon_json_text(call, "state"));
	cordon_html(html, "</td><td data-label=\"Began\">");
	cordon_page_time(page, cordon_json_text(call, "began_at"));
	cordon_html(html, "</td><td data-label=\"Took\">");
	if (json_object_get(call, "duration_ms"))
		cordon_page_duration(page, cordon_json_integer(call, "duration_ms"));
	cordon_html(html, "</td><td data-label=\"Refusals\">%lld</td><td data-label=\"Why it failed\">",
		    cordon_json_integer(call, "violations"));
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

/* One story of a loop, one call of its agent, and what that wrote since. `board` is what cordon_loop_board() gives. */
static void page_loop_story(struct cordon_page *page, const json_t *board)
{
	const json_t *story = find_story(page, board);
	struct cordon_html *html = &page->html;
	const char *reason = cordon_json_text(story, "reason"), *commit = cordon_json_text(story, "commit");
	char topics[64], title[CORDON_PRD_ID_MAX + 16];

	if (!story) {
		not_found(page, "The loop has no such story");
		return;
	}
	snprintf(topics, sizeof(topics), "loops/%.32s", page->id);
	snprintf(title, sizeof(title), "Story %.*s", CORDON_PRD_ID_MAX, cordon_json_text(story, "id"));
	cordon_page_begin(page, title, topics);
	cordon_html(html, "<p><a href=\"/loop/%s\">All stories of the loop</a></p>", page->id);
	cordon_html(html, "<section id=\"story\" aria-label=\"Story\" data-said=\"%s\"><p>%s</p><dl><dt>State</dt><dd>",
		    cordon_json_text(story, "state"), cordon_json_text(story, "title"));
	cordon_page_state(page, cordon_json_text(story, "state"));
	cordon_html(html, "</dd>");
	if (json_array_size(json_object_get(story, "dependencies"))) {
		cordon_html(html, "<dt>Comes after</dt><dd>");
		page_loop_needs(page, board, story);
		cordon_html(html, "</dd>");
	}
	cordon_html(html, "<dt>Failures</dt><dd>%lld of %d</dd><dt>PRD</dt><dd><code>%s</code></dd>",
		    cordon_json_integer(story, "failures"), CORDON_LOOP_ATTEMPTS, cordon_json_text(story, "prd"));
	if (*commit)
		cordon_html(html, "<dt>Commit</dt><dd><code>%s</code></dd>", commit);
	cordon_html(html, "</dl>");
	if (*reason && !*commit)
		cordon_html(html, "<p class=\"reason\">%s</p>", reason);
	if (page_loop_can_retry(story))
		page_loop_retry(page, story);
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
			if (cordon_json_integer(call, "n") == (json_int_t)n) {
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
	(void)cordon_crew_log(&page->store->home, cordon_json_text(call, "crew"),
			      (size_t)cordon_json_integer(call, "job"), -1, 0, &events, &last, &dropped, NULL);
	json_array_foreach(events, i, event) {
		if (!cordon_json_is(event, "type", "violation"))
			continue;
		if (!n)
			cordon_html(&page->html, "<ul>");
		if (n++ < REFUSALS_SHOWN)
			cordon_html(&page->html, "<li><code>%s</code></li>", cordon_json_text(event, "text"));
	}
	if (n)
		cordon_html(&page->html, "</ul>");
	if (n > REFUSALS_SHOWN)
		cordon_html(&page->html, "<p class=\"quiet\">and %zu more</p>", n - REFUSALS_SHOWN);
	if (!n && cordon_json_integer(call, "violations"))
		cordon_html(&page->html,
			    "<p class=\"quiet\">There were %lld; <a href=\"/audit?run=%s\">the audit log</a> "
			    "has them.</p>",
			    cordon_json_integer(call, "violations"), cordon_json_text(call, "run_id"));
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
			    cordon_json_integer(call, "n"), logs[i].word, i == chosen ? "page" : "false", logs[i].label);
	cordon_html(&page->html, "</ul>");
}

static int open_log(struct cordon_page *page, const json_t *call, size_t which, int *ret_fd, struct cordon_error *err)
{
	return cordon_loop_log(&page->store->home, page->id, cordon_json_text(call, "log"), logs[which].file, ret_fd,
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
	snprintf(more, sizeof(more), "/loop/%.32s/output?n=%lld&log=%s", page->id,
		 (long long)cordon_json_integer(call, "n"), logs[chosen].word);
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
	const char *note = cordon_json_text(call, "note");

	cordon_html(html, "<section id=\"call\" aria-label=\"Call\" data-said=\"%s\"><dl><dt>State</dt><dd>",
		    cordon_json_text(call, "state"));
	cordon_page_state(page, cordon_json_text(call, "state"));
	cordon_html(html, "</dd><dt>Began</dt><dd>");
	cordon_page_time(page, cordon_json_text(call, "began_at"));
	cordon_html(html, "</dd>");
	if (json_object_get(call, "duration_ms")) {
		cordon_html(html, "<dt>Took</dt><dd>");
		cordon_page_duration(page, cordon_json_integer(call, "duration_ms"));
		cordon_html(html, "</dd><dt>Exit status</dt><dd>%lld</dd><dt>Files changed</dt><dd>%lld</dd>",
			    cordon_json_integer(call, "exit_code"), cordon_json_integer(call, "files"));
	}
	if (*cordon_json_text(call, "run_id"))
		cordon_html(html, "<dt>Run</dt><dd><a href=\"/audit?run=%s\"><code>%s</code></a></dd>",
			    cordon_json_text(call, "run_id"), cordon_json_text(call, "run_id"));
	if (*cordon_json_text(call, "commit"))
		cordon_html(html, "<dt>Commit</dt><dd><code>%s</code></dd>", cordon_json_text(call, "commit"));
	cordon_html(html, "</dl>");
	if (*note) {
		cordon_html(html, "<h2>What the next attempt is told</h2><pre tabindex=\"0\" role=\"region\" "
				  "aria-label=\"What the next attempt is told\">");
		cordon_html_output(html, note, strlen(note));
		cordon_html(html, "</pre>");
	}
	cordon_html(html, "</section>");
}

static void page_loop_call(struct cordon_page *page, const json_t *board)
{
	const json_t *story = NULL, *call = find_call(page, board, &story);
	autobuf struct cordon_buf topics = CORDON_BUF(1024);
	char title[CORDON_PRD_ID_MAX + 48];

	if (!call) {
		not_found(page, "The loop has no such call of the agent");
		return;
	}
	(void)cordon_buf_addf(&topics, "loops/%s", page->id);
	page_loop_topic(page, call, &topics);
	snprintf(title, sizeof(title), "%.*s, attempt %lld", CORDON_PRD_ID_MAX, cordon_json_text(story, "id"),
		 (long long)cordon_json_integer(call, "attempt"));
	cordon_page_begin(page, title, topics.data);
	cordon_html(&page->html, "<p><a href=\"/loop/%s\">All stories of the loop</a></p>", page->id);
	call_facts(page, call);
	refusals(page, call);
	output(page, call);
}

static void page_loop_output(struct cordon_page *page, const json_t *board)
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
