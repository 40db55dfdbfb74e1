/* SPDX-License-Identifier: Apache-2.0 */
/* Shows a loop that works: lines, a table on a terminal, a stream of JSON, and a summary. */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>

#include "base/io.h"
#include "base/json.h"
#include "base/path.h"
#include "base/text.h"
#include "base/time.h"
#include "cli/loop_view.h"
#include "cli/manager.h"

#define REDRAW_MS 200
#define TABLE_MAX ((size_t)256 << 10)
#define SHOWN_MAX 20 /* changes that --confirm lists */
#define SHORT 8	     /* characters of an id that people type */

void cordon_loop_view_init(struct cordon_loop_view *view, const struct cordon_cli *cli, bool verbose)
{
	const char *term = getenv("TERM");

	*view = (struct cordon_loop_view){ .cli = cli,
					   .verbose = verbose,
					   .table = !cli->json && !cli->quiet && isatty(STDERR_FILENO) && term &&
						    !cordon_streq(term, "dumb"),
					   .colour = cordon_cli_colour(STDERR_FILENO) };
}

void cordon_loop_view_done(struct cordon_loop_view *view)
{
	*view = (struct cordon_loop_view){ 0 };
}

/* ---- the table ---- */

/* Takes the table away before a line is printed; the next tick draws it again. */
static void erase(struct cordon_loop_view *view)
{
	if (view->drawn)
		dprintf(STDERR_FILENO, "\r\033[%zuA\033[J", view->drawn);
	view->drawn = 0;
}

static void add_duration(struct cordon_buf *out, int64_t ms)
{
	if (ms < 60000)
		cordon_buf_addf(out, "%lld.%llds", (long long)ms / 1000, (long long)ms % 1000 / 100);
	else if (ms < 3600000)
		cordon_buf_addf(out, "%lldm%02llds", (long long)ms / 60000, (long long)ms / 1000 % 60);
	else
		cordon_buf_addf(out, "%lldh%02lldm", (long long)ms / 3600000, (long long)ms / 60000 % 60);
}

/* Appends a line, cut at the width of the screen. */
static void add_line(struct cordon_buf *out, const struct cordon_buf *line, size_t columns)
{
	const char *text = line->data ? line->data : "";

	cordon_buf_add(out, text, cordon_text_fit(text, line->len, columns));
	cordon_buf_addc(out, '\n');
}

static void add_head(const struct cordon_loop *loop, size_t columns, struct cordon_buf *out)
{
	const struct cordon_loop_options *options = cordon_loop_options(loop);
	const struct cordon_loop_summary *summary = cordon_loop_summary(loop);
	autobuf struct cordon_buf line = CORDON_BUF(4096);
	size_t passed = 0, parked = 0, n = cordon_loop_count(loop);
	int64_t left = cordon_loop_estimate(loop);

	for (size_t i = 0; i < n; i++) {
		passed += cordon_loop_story(loop, i)->state >= CORDON_STORY_ACCEPTED &&
			  cordon_loop_story(loop, i)->state != CORDON_STORY_PARKED;
		parked += cordon_loop_story(loop, i)->state == CORDON_STORY_PARKED;
	}
	cordon_buf_addf(&line, "%zu/%zu passed", passed, n);
	if (parked)
		cordon_buf_addf(&line, ", %zu parked", parked);
	cordon_buf_addf(&line, "  iteration %u/%u", summary->iterations, options->max_iterations);
	if (options->prds[0].folders) {
		cordon_buf_adds(&line, "  workspace ");
		cordon_text_escape(&line, options->prds[0].folders, strlen(options->prds[0].folders));
		cordon_buf_addf(&line, " (%s)", cordon_mode_name(options->prds[0].mode));
	}
	if (summary->violations)
		cordon_buf_addf(&line, "  %u violations", summary->violations);
	if (left >= 0 && passed + parked < n) {
		cordon_buf_adds(&line, "  about ");
		add_duration(&line, left);
		cordon_buf_adds(&line, " left");
	}
	add_line(out, &line, columns);
}

static const char *colour_of(cordon_story_state state)
{
	switch (state) {
	case CORDON_STORY_WORKING:
	case CORDON_STORY_CHECKING:
		return "\033[36m";
	case CORDON_STORY_ACCEPTED:
	case CORDON_STORY_PASSED:
		return "\033[32m";
	case CORDON_STORY_PARKED:
		return "\033[31m";
	case CORDON_STORY_WAITING:
	case CORDON_STORY__MAX:
	default:
		return "\033[2m";
	}
}

static void add_story(const struct cordon_loop_view *view, const struct cordon_loop_story *one, size_t columns,
		      struct cordon_buf *out)
{
	autobuf struct cordon_buf line = CORDON_BUF(8192);
	bool runs = one->state == CORDON_STORY_WORKING || one->state == CORDON_STORY_CHECKING;

	if (view->colour)
		cordon_buf_adds(out, colour_of(one->state));
	cordon_buf_addf(&line, "%-9s ", cordon_story_state_name(one->state));
	cordon_text_escape(&line, one->story->id, strlen(one->story->id));
	cordon_buf_adds(&line, "  ");
	if (runs) {
		add_duration(&line, cordon_time_monotonic() - one->since);
		cordon_buf_adds(&line, "  ");
	}
	if (runs && *one->last)
		cordon_buf_adds(&line, one->last);
	else if (one->reason && one->state != CORDON_STORY_PASSED)
		cordon_buf_addf(&line, "%s", one->reason);
	else
		cordon_text_escape(&line, one->story->title, strlen(one->story->title));
	add_line(out, &line, columns);
	if (view->colour)
		cordon_buf_adds(out, "\033[0m");
}

/* Stories that are worked on come first: there may be more stories than lines on the screen. */
static void draw(struct cordon_loop_view *view, const struct cordon_loop *loop)
{
	static const cordon_story_state order[] = { CORDON_STORY_WORKING, CORDON_STORY_CHECKING, CORDON_STORY_PARKED,
						    CORDON_STORY_WAITING, CORDON_STORY_ACCEPTED, CORDON_STORY_PASSED };
	autobuf struct cordon_buf out = CORDON_BUF(TABLE_MAX);
	struct winsize size = { 0 };
	size_t rows, columns, shown = 0, n = cordon_loop_count(loop);

	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) < 0 || !size.ws_row || !size.ws_col)
		size = (struct winsize){ .ws_row = 24, .ws_col = 80 };
	columns = size.ws_col > 1 ? size.ws_col - 1U : 1;
	rows = size.ws_row > 6 ? size.ws_row - 5U : 1;
	if (view->drawn)
		cordon_buf_addf(&out, "\r\033[%zuA\033[J", view->drawn);
	add_head(loop, columns, &out);
	for (size_t s = 0; s < CORDON_ARRAY_SIZE(order); s++)
		for (size_t i = 0; i < n && shown < rows; i++)
			if (cordon_loop_story(loop, i)->state == order[s]) {
				add_story(view, cordon_loop_story(loop, i), columns, &out);
				shown++;
			}
	if (n > shown)
		cordon_buf_addf(&out, "and %zu more\n", n - shown);
	view->drawn = 1 + shown + (n > shown);
	(void)cordon_write_all(STDERR_FILENO, out.data ? out.data : "", out.len);
	view->drawn_at = cordon_time_monotonic();
}

bool cordon_loop_view_tick(void *data, const struct cordon_loop *loop)
{
	struct cordon_loop_view *view = data;

	if (view->table && cordon_time_monotonic() - view->drawn_at >= REDRAW_MS)
		draw(view, loop);
	return false;
}

/* ---- events ---- */

static void print_scopes(const struct cordon_loop_view *view, const json_t *event)
{
	const json_t *stories = json_object_get(event, "stories");
	json_t *id;
	size_t i;

	cordon_cli_workspace_log(view->cli, "Auto-inferring fileScope from workspace...");
	json_array_foreach(stories, i, id)
		cordon_cli_workspace_log(view->cli, "Setting fileScope for story %s", json_string_value(id));
	cordon_cli_workspace_log(view->cli, "Updated fileScope for %zu stories", json_array_size(stories));
}

static void print_passed(const struct cordon_loop_view *view, const json_t *event)
{
	json_t *story, *path;
	size_t i, k;

	json_array_foreach(json_object_get(event, "stories"), i, story) {
		size_t n = json_array_size(json_object_get(story, "files_changed"));
		const char *commit = cordon_json_text(story, "commit");

		json_array_foreach(json_object_get(story, "outside_scope"), k, path)
			cordon_cli_workspace_log(view->cli, "WARNING: %s changed a file outside its scope: %s",
						 cordon_json_text(story, "story_id"), json_string_value(path));
		cordon_cli_log(view->cli, "INFO", "%s passed: %zu file%s in %.1f s%s%.9s",
			       cordon_json_text(story, "story_id"), n, n == 1 ? "" : "s",
			       (double)cordon_json_integer(story, "duration_ms") / 1000, *commit ? ", commit " : "",
			       commit);
	}
}

static void print_types(const struct cordon_loop_view *view, const json_t *event)
{
	bool written = cordon_json_true(event, "written");
	json_t *pattern;
	size_t i;

	json_array_foreach(json_object_get(event, "patterns"), i, pattern)
		cordon_cli_workspace_log(view->cli, written ? "Added to fileScope: %s" : "Suggestion for fileScope: %s",
					 json_string_value(pattern));
}

static void print_event(struct cordon_loop_view *view, const struct cordon_loop *loop, const json_t *event)
{
	const struct cordon_cli *cli = view->cli;
	const char *what = cordon_json_text(event, "event");

	if (cordon_streq(what, "scopes")) {
		print_scopes(view, event);
	} else if (cordon_streq(what, "begin")) {
		cordon_cli_log(cli, "INFO", "%s%lld stories, %lld at a time",
			       cordon_json_true(event, "resumed") ? "Going on: " : "",
			       cordon_json_integer(event, "stories"), cordon_json_integer(event, "workers"));
	} else if (cordon_streq(what, "call")) {
		cordon_cli_log(cli, "INFO", "Iteration %lld/%u: %s %s (attempt %lld)",
			       cordon_json_integer(event, "iteration"), cordon_loop_options(loop)->max_iterations,
			       cordon_json_text(event, "story"), cordon_json_text(event, "title"),
			       cordon_json_integer(event, "attempt"));
	} else if (cordon_streq(what, "failed")) {
		const char *note = cordon_json_text(event, "note");

		cordon_cli_log(cli, "INFO", "%s failed: %.*s", cordon_json_text(event, "story"),
			       (int)strcspn(note, "\n"), note);
	} else if (cordon_streq(what, "passed")) {
		print_passed(view, event);
	} else if (cordon_streq(what, "parked")) {
		cordon_cli_log(cli, "INFO", "%s is parked: %s", cordon_json_text(event, "story"),
			       cordon_json_text(event, "reason"));
	} else if (cordon_streq(what, "retry")) {
		cordon_cli_log(cli, "INFO", "%s has its attempts back", cordon_json_text(event, "story"));
	} else if (cordon_streq(what, "interrupted")) {
		cordon_cli_log(cli, "INFO", "%s was interrupted%s%.*s", cordon_json_text(event, "story"),
			       *cordon_json_text(event, "view") ? "; its changes wait in view " : "", SHORT,
			       cordon_json_text(event, "view"));
	} else if (cordon_streq(what, "types")) {
		print_types(view, event);
	} else if (cordon_streq(what, "notice")) {
		cordon_cli_log(cli, "INFO", "%s", cordon_json_text(event, "message"));
	}
}

static void print_json_line(const json_t *value)
{
	autofree char *text = json_dumps(value, JSON_COMPACT);

	if (text) {
		printf("%s\n", text);
		fflush(stdout);
	}
}

void cordon_loop_view_event(void *data, const struct cordon_loop *loop, const json_t *event)
{
	struct cordon_loop_view *view = data;

	if (view->cli->json) {
		print_json_line(event);
		return;
	}
	erase(view);
	print_event(view, loop, event);
}

void cordon_loop_view_violation(void *data, const struct cordon_loop *loop, size_t story,
				const struct cordon_event *event)
{
	struct cordon_loop_view *view = data;
	const struct cordon_loop_options *options = cordon_loop_options(loop);
	const struct cordon_loop_prd *prd = &options->prds[cordon_loop_story(loop, story)->prd];
	CORDON_UNCLEARED char path[CORDON_PATH_MAX];
	json_t *object;

	if (view->cli->json) {
		object = json_pack("{s:s, s:s, s:s, s:o, s:s, s:s}", "event", "violation", "story",
				   cordon_loop_story(loop, story)->story->id, "op", event->op ? event->op : "", "path",
				   cordon_cli_json_text(event->path ? event->path : ""), "decision",
				   cordon_verdict_name(event->verdict), "rule", event->rule ? event->rule : "");
		print_json_line(object);
		json_decref(object);
		return;
	}
	if (!event->path ||
	    cordon_path_join(event->path[0] == '/' ? "" : options->root, event->path, path, sizeof(path)) < 0)
		return;
	erase(view);
	cordon_manager_report_access(view->cli,
				     event->verdict == CORDON_DENY ? CORDON_MODE_STRICT : CORDON_MODE_PERMISSIVE, path,
				     event->op && cordon_streq(event->op, "read") ? CORDON_OP_READ : CORDON_OP_WRITE,
				     prd->folders, NULL);
}

void cordon_loop_view_output(void *data, const struct cordon_loop *loop, size_t story, int stream, const char *bytes,
			     size_t n)
{
	struct cordon_loop_view *view = data;
	autobuf struct cordon_buf text = CORDON_BUF((size_t)1 << 20), mark = CORDON_BUF(1024);

	(void)stream;
	if (!view->verbose || view->cli->json || view->cli->quiet ||
	    cordon_text_escape(&mark, cordon_loop_story(loop, story)->story->id,
			       strlen(cordon_loop_story(loop, story)->story->id)) < 0 ||
	    cordon_buf_adds(&mark, " " CORDON_AGENT_MARK) < 0 || cordon_text_mark_lines(&text, mark.data, bytes, n) < 0)
		return;
	erase(view);
	if (text.len && text.data[text.len - 1] != '\n')
		(void)cordon_buf_addc(&text, '\n');
	(void)cordon_write_all(STDERR_FILENO, text.data ? text.data : "", text.len);
}

/* ---- asking ---- */

/* Reads the answer of a person: 1 for yes. The loop has blocked the signals that stop it: one ends the wait with -EINTR, and stays
 * pending for the loop to take. */
static int read_answer(void)
{
	CORDON_UNCLEARED char answer[4096]; /* a terminal gives no longer line */
	autofd int signals = -1;
	struct pollfd fds[] = { { .fd = STDIN_FILENO, .events = POLLIN }, { .events = POLLIN } };
	sigset_t stops;
	ssize_t n;

	sigemptyset(&stops);
	sigaddset(&stops, SIGINT);
	sigaddset(&stops, SIGTERM);
	sigaddset(&stops, SIGHUP);
	signals = signalfd(-1, &stops, SFD_CLOEXEC);
	if (signals < 0)
		return -errno;
	fds[1].fd = signals;
	while (poll(fds, CORDON_ARRAY_SIZE(fds), -1) < 0)
		if (errno != EINTR)
			return -errno;
	if (fds[1].revents)
		return -EINTR;
	n = read(STDIN_FILENO, answer, sizeof(answer) - 1);
	if (n <= 0)
		return 0;
	answer[n] = '\0';
	answer[strcspn(answer, "\r\n")] = '\0';
	return strcasecmp(answer, "y") == 0 || strcasecmp(answer, "yes") == 0;
}

static void print_change(const json_t *change)
{
	const char *who = cordon_json_text(change, "executed_by");

	fprintf(stderr, "  %s %s", cordon_json_text(change, "status"), cordon_json_text(change, "path"));
	if (cordon_json_true(change, "binary"))
		fprintf(stderr, "  binary");
	else if (json_object_get(change, "insertions"))
		fprintf(stderr, "  +%lld -%lld", cordon_json_integer(change, "insertions"),
			cordon_json_integer(change, "deletions"));
	fprintf(stderr, "%s%s\n", *who ? "  executed by " : "", who);
}

int cordon_loop_view_confirm(void *data, const struct cordon_loop *loop, size_t story, const json_t *changes)
{
	struct cordon_loop_view *view = data;
	const json_t *list = json_object_get(changes, "changes");
	json_t *change;
	size_t i;
	int r;

	erase(view);
	if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO)) {
		cordon_cli_log(view->cli, "INFO", "--confirm needs a terminal: the result of %s is not taken over",
			       cordon_loop_story(loop, story)->story->id);
		return -ENOTTY;
	}
	fprintf(stderr, "%s changes %zu file%s:\n", cordon_loop_story(loop, story)->story->id, json_array_size(list),
		json_array_size(list) == 1 ? "" : "s");
	json_array_foreach(list, i, change)
		if (i < SHOWN_MAX)
			print_change(change);
	if (i > SHOWN_MAX)
		fprintf(stderr, "  and %zu more\n", i - SHOWN_MAX);
	/* What was typed before the question is no answer to it. */
	(void)tcflush(STDIN_FILENO, TCIFLUSH);
	fprintf(stderr, "Take this result over? [y/N] ");
	fflush(stderr);
	r = read_answer();
	if (r < 0)
		fputc('\n', stderr);
	return r;
}

/* ---- the end ---- */

json_t *cordon_loop_view_json(const struct cordon_loop *loop, const struct cordon_loop_summary *summary)
{
	json_t *stories = json_array(), *kept = json_array();

	for (size_t i = 0; i < cordon_loop_count(loop); i++) {
		const struct cordon_loop_story *one = cordon_loop_story(loop, i);

		json_array_append_new(stories,
				      json_pack("{s:s, s:s, s:I, s:s?}", "id", one->story->id, "state",
						cordon_story_state_name(one->state), "calls", (json_int_t)one->calls,
						"reason", one->state == CORDON_STORY_PASSED ? NULL : one->reason));
	}
	for (size_t i = 0; i < summary->n_kept; i++)
		json_array_append_new(kept, json_string(summary->kept[i]));
	return json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:o, s:o}", "event", "summary",
			 "passed", (json_int_t)summary->passed, "parked", (json_int_t)summary->parked, "waiting",
			 (json_int_t)summary->waiting, "iterations", (json_int_t)summary->iterations, "violations",
			 (json_int_t)summary->violations, "conflicts", (json_int_t)summary->conflicts, "duration_ms",
			 (json_int_t)summary->duration_ms, "agents_ms", (json_int_t)summary->agents_ms, "checks_ms",
			 (json_int_t)summary->checks_ms, "overhead_ms", (double)summary->own_us / 1000, "kept_views",
			 kept, "stories", stories);
}

static void print_summary(const struct cordon_loop_view *view, const struct cordon_loop_summary *summary)
{
	const struct cordon_cli *cli = view->cli;
	unsigned int calls = summary->iterations ? summary->iterations : 1;

	cordon_cli_log(cli, "INFO", "%zu passed, %zu parked, %zu left; %u iterations in %.1f s", summary->passed,
		       summary->parked, summary->waiting, summary->iterations, (double)summary->duration_ms / 1000);
	cordon_cli_log(cli, "INFO", "agents %.1f s, checks %.1f s, cordon itself %.1f s (%.1f ms for each iteration)",
		       (double)summary->agents_ms / 1000, (double)summary->checks_ms / 1000,
		       (double)summary->own_us / 1000000, (double)summary->own_us / 1000 / calls);
	if (summary->violations || summary->conflicts)
		cordon_cli_log(cli, "INFO", "%u violations, %u conflicts", summary->violations, summary->conflicts);
	if (summary->out_of_iterations)
		cordon_cli_log(cli, "INFO", "The limit of iterations is reached; the same command goes on");
	for (size_t i = 0; i < summary->n_kept; i++)
		cordon_cli_log(cli, "INFO", "Changes wait in view %.*s: cordon changes diff %.*s", SHORT,
			       summary->kept[i], SHORT, summary->kept[i]);
}

void cordon_loop_view_end(struct cordon_loop_view *view, const struct cordon_loop *loop,
			  const struct cordon_loop_summary *summary)
{
	json_t *object;

	if (view->cli->json) {
		object = cordon_loop_view_json(loop, summary);
		print_json_line(object);
		json_decref(object);
		return;
	}
	erase(view);
	if (view->table) {
		draw(view, loop);
		view->drawn = 0;
	}
	print_summary(view, summary);
	for (size_t i = 0; i < cordon_loop_count(loop); i++) {
		const struct cordon_loop_story *one = cordon_loop_story(loop, i);
		autobuf struct cordon_buf line = CORDON_BUF(8192);

		cordon_text_escape(&line, one->story->id, strlen(one->story->id));
		cordon_buf_addf(&line, "\t%s", cordon_story_state_name(one->state));
		if (one->state != CORDON_STORY_PASSED && one->reason)
			cordon_buf_addf(&line, "\t%s", one->reason);
		printf("%s\n", line.data ? line.data : "");
	}
}
