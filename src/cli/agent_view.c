/* SPDX-License-Identifier: Apache-2.0 */
/* Shows agents that run: their lines, and on a terminal a table below them. */
#include <stdio.h>
#include <sys/ioctl.h>

#include "base/io.h"
#include "base/text.h"
#include "base/time.h"
#include "cli/agent_view.h"
#include "run/event_text.h"

#define LINE_MAX_BYTES 16384 /* a longer line is printed in pieces */
#define LAST_MAX 256
#define REDRAW_MS 100
#define LINES_MAX ((size_t)4 << 20)

struct cordon_agent_row {
	struct cordon_job job;
	struct cordon_buf part[2]; /* of stdout and stderr: a line that has no end yet */
	char last[LAST_MAX];	   /* the last line, escaped */
	unsigned int violations;
};

cordon_agent_show cordon_agent_view_choose(size_t agents)
{
	const char *term = getenv("TERM");

	if (isatty(STDOUT_FILENO) && isatty(STDERR_FILENO) && term && !cordon_streq(term, "dumb"))
		return CORDON_SHOW_TABLE;
	return agents == 1 ? CORDON_SHOW_BYTES : CORDON_SHOW_LINES;
}

int cordon_agent_view_init(struct cordon_agent_view *view, const struct cordon_cli *cli, cordon_agent_show show,
			   const char *run, struct cordon_home *home, const char *const *names, size_t n,
			   struct cordon_error *err)
{
	*view = (struct cordon_agent_view){ .cli = cli,
					    .show = show,
					    .run = run,
					    .home = home,
					    .n = n,
					    .colour = cordon_cli_colour(STDOUT_FILENO),
					    .lines = CORDON_BUF(LINES_MAX) };
	view->rows = calloc(n + 1, sizeof(*view->rows));
	if (!view->rows)
		return cordon_fail_errno(err, -ENOMEM, "cannot show the agents");
	for (size_t i = 0; i < n; i++) {
		struct cordon_agent_row *row = &view->rows[i];
		size_t len = strlen(names[i]);

		row->job = (struct cordon_job){ .index = i, .exit_code = -1, .own_exit = -1 };
		row->part[0].max = row->part[1].max = LINE_MAX_BYTES;
		cordon_copy(row->job.name, sizeof(row->job.name), names[i], len);
		view->width = len > view->width ? len : view->width;
	}
	return 0;
}

void cordon_agent_view_done(struct cordon_agent_view *view)
{
	for (size_t i = 0; view->rows && i < view->n; i++) {
		cordon_buf_done(&view->rows[i].part[0]);
		cordon_buf_done(&view->rows[i].part[1]);
	}
	free(view->rows);
	view->rows = NULL;
	cordon_buf_done(&view->lines);
}

const struct cordon_job *cordon_agent_view_job(const struct cordon_agent_view *view, size_t index)
{
	return &view->rows[index].job;
}

void cordon_agent_duration(const struct cordon_job *job, char *ret_text, size_t size)
{
	int64_t until = job->ended ? job->ended : cordon_time_now();
	int64_t ms = until > job->started ? until - job->started : 0;

	if (!job->started)
		snprintf(ret_text, size, "-");
	else if (ms < 60000)
		snprintf(ret_text, size, "%lld.%llds", (long long)ms / 1000, (long long)ms % 1000 / 100);
	else
		snprintf(ret_text, size, "%lldm%02llds", (long long)ms / 60000, (long long)ms / 1000 % 60);
}

/* ---- the table ---- */

static const char *state_colour(cordon_job_state state)
{
	switch (state) {
	case CORDON_JOB_COMPLETED:
		return "\033[32m";
	case CORDON_JOB_RUNNING:
		return "\033[36m";
	case CORDON_JOB_QUEUED:
	case CORDON_JOB_STARTING:
		return "\033[2m";
	case CORDON_JOB_CANCELLED:
	case CORDON_JOB_TIMEOUT:
		return "\033[33m";
	case CORDON_JOB_FAILED:
	case CORDON_JOB_REFUSED:
	case CORDON_JOB_LOST:
	case CORDON_JOB__MAX:
	default:
		return "\033[31m";
	}
}

/* Appends what fits into `columns` of an escaped text. */
static void add_cut(struct cordon_buf *out, const char *text, size_t columns)
{
	cordon_buf_add(out, text, cordon_text_fit(text, strlen(text), columns));
}

static void add_row(const struct cordon_agent_view *view, const struct cordon_agent_row *row, size_t columns,
		    struct cordon_buf *out)
{
	autobuf struct cordon_buf text = CORDON_BUF(2048);
	const char *state = cordon_agent_state_name(row->job.state);
	char took[32], seen[32] = "";
	size_t head;

	cordon_agent_duration(&row->job, took, sizeof(took));
	if (row->violations)
		snprintf(seen, sizeof(seen), "%u refused", row->violations);
	cordon_buf_addf(&text, "%-*s  ", (int)view->width, row->job.name);
	head = text.len;
	cordon_buf_addf(&text, "%-9s  %7s  %10s  %s", state, took, seen, row->last);
	if (!view->colour || head + strlen(state) >= columns) {
		add_cut(out, text.data, columns);
	} else {
		cordon_buf_add(out, text.data, head);
		cordon_buf_addf(out, "%s%s\033[0m", state_colour(row->job.state), state);
		add_cut(out, text.data + head + strlen(state), columns - head - strlen(state));
	}
	cordon_buf_adds(out, "\n");
}

/* Agents that run come first: there may be more agents than lines on the screen. */
static void add_table(struct cordon_agent_view *view, struct cordon_buf *out)
{
	struct winsize size = { 0 };
	size_t rows, columns, shown = 0;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || !size.ws_row || !size.ws_col)
		size = (struct winsize){ .ws_row = 24, .ws_col = 80 };
	columns = size.ws_col > 1 ? size.ws_col - 1U : 1;
	rows = size.ws_row > 4 ? size.ws_row - 3U : 1;
	if (view->n <= rows) {
		for (size_t i = 0; i < view->n; i++)
			add_row(view, &view->rows[i], columns, out);
		view->drawn = view->n;
		return;
	}
	for (size_t i = 0; i < view->n && shown + 1 < rows; i++) {
		cordon_job_state state = view->rows[i].job.state;

		if (state != CORDON_JOB_STARTING && state != CORDON_JOB_RUNNING)
			continue;
		add_row(view, &view->rows[i], columns, out);
		shown++;
	}
	cordon_buf_addf(out, "and %zu more\n", view->n - shown);
	view->drawn = shown + 1;
}

static void write_out(struct cordon_agent_view *view, int fd, const char *bytes, size_t n)
{
	if (view->one_stream)
		fd = STDOUT_FILENO;
	if (!view->closed && n && cordon_write_all(fd, bytes, n) < 0)
		view->closed = true;
}

/* Takes the table away, prints the lines that have come, and draws the table again, all in one write. */
static void redraw(struct cordon_agent_view *view)
{
	autobuf struct cordon_buf out = CORDON_BUF(2 * LINES_MAX);

	if (view->drawn)
		cordon_buf_addf(&out, "\r\033[%zuA\033[J", view->drawn);
	view->drawn = 0;
	cordon_buf_add(&out, view->lines.data ? view->lines.data : "", view->lines.len);
	cordon_buf_reset(&view->lines);
	add_table(view, &out);
	write_out(view, STDOUT_FILENO, out.data ? out.data : "", out.len);
	view->drawn_at = cordon_time_monotonic();
	view->stale = false;
}

/* ---- lines ---- */

/* Prints a line. `mark` stands between the name and the line. */
static void print_line(struct cordon_agent_view *view, size_t index, int stream, const char *mark, const char *line,
		       size_t n)
{
	struct cordon_agent_row *row = &view->rows[index];
	autobuf struct cordon_buf text = CORDON_BUF(LINES_MAX);

	if (view->colour)
		cordon_buf_addf(&text, "\033[%zum[%s]\033[0m%*s ", 31 + index % 6, row->job.name,
				(int)(view->width - strlen(row->job.name)), "");
	else
		cordon_buf_addf(&text, "[%s]%*s ", row->job.name, (int)(view->width - strlen(row->job.name)), "");
	cordon_buf_adds(&text, mark);
	if (n && line[n - 1] == '\r')
		n--;
	cordon_text_escape_lines(&text, line, n);
	cordon_buf_adds(&text, "\n");
	cordon_text_escape_fixed(row->last, sizeof(row->last), line, n);
	view->stale = true;
	if (view->show != CORDON_SHOW_TABLE)
		write_out(view, stream, text.data, text.len);
	else if (cordon_buf_add(&view->lines, text.data, text.len) < 0 || view->lines.len > LINES_MAX / 2)
		redraw(view);
}

static void take_lines(struct cordon_agent_view *view, size_t index, int stream, const char *bytes, size_t n)
{
	struct cordon_buf *part = &view->rows[index].part[stream == 2];

	while (n) {
		const char *end = memchr(bytes, '\n', n);
		size_t take = end ? (size_t)(end - bytes) : n;

		if (part->len + take > LINE_MAX_BYTES)
			take = LINE_MAX_BYTES - part->len;
		else if (!end) {
			(void)cordon_buf_add(part, bytes, take);
			return;
		}
		if (cordon_buf_add(part, bytes, take) == 0)
			print_line(view, index, stream, "", part->data ? part->data : "", part->len);
		cordon_buf_reset(part);
		take += end && bytes + take == end;
		bytes += take;
		n -= take;
	}
}

/* Prints lines that have no end. */
static void flush_parts(struct cordon_agent_view *view, size_t index)
{
	struct cordon_agent_row *row = &view->rows[index];

	for (int i = 0; i < 2; i++) {
		if (row->part[i].len)
			print_line(view, index, i + 1, "", row->part[i].data, row->part[i].len);
		cordon_buf_reset(&row->part[i]);
	}
}

/* ---- events ---- */

/* Takes the reference to `more`, whose members come last. */
static void print_event(struct cordon_agent_view *view, size_t index, const char *what, json_t *more)
{
	char now[CORDON_TIME_SIZE];
	json_t *event;
	char *text;

	cordon_time_format(cordon_time_now(), now);
	event = json_pack("{s:s, s:s, s:s, s:s}", "event", what, "time", now, "runId", view->run, "agentName",
			  view->rows[index].job.name);
	if (event && more)
		json_object_update_missing(event, more);
	json_decref(more);
	text = event ? json_dumps(event, JSON_COMPACT) : NULL;
	json_decref(event);
	if (text) {
		write_out(view, STDOUT_FILENO, text, strlen(text));
		write_out(view, STDOUT_FILENO, "\n", 1);
	}
	free(text);
}

/* Every agent has one execution:end, its last event; before it may come one that says why. */
static void print_state(struct cordon_agent_view *view, const struct cordon_job *job)
{
	char reason[1024];

	cordon_agent_reason(job, reason, sizeof(reason));
	if (job->state == CORDON_JOB_RUNNING)
		print_event(view, job->index, "execution:start", NULL);
	if (!cordon_job_state_ended(job->state))
		return;
	if (job->state == CORDON_JOB_TIMEOUT)
		print_event(view, job->index, "execution:timeout", json_pack("{s:s}", "error", reason));
	else if (job->state == CORDON_JOB_CANCELLED)
		print_event(view, job->index, "execution:cancelled", json_pack("{s:s}", "error", reason));
	else if (job->state == CORDON_JOB_REFUSED || job->state == CORDON_JOB_LOST)
		print_event(view, job->index, "execution:error", json_pack("{s:s}", "error", reason));
	print_event(view, job->index, "execution:end", cordon_agent_result(view->home, view->run, job, 0));
}

/* ---- the observer ---- */

void cordon_agent_view_state(void *data, const struct cordon_job *job)
{
	struct cordon_agent_view *view = data;
	struct cordon_agent_row *row = &view->rows[job->index];

	row->job = *job;
	view->stale = true;
	if (cordon_job_state_ended(job->state)) {
		row->violations = job->violations > row->violations ? job->violations : row->violations;
		flush_parts(view, job->index);
	}
	if (view->show == CORDON_SHOW_EVENTS)
		print_state(view, job);
}

void cordon_agent_view_event(void *data, size_t index, const struct cordon_event *event)
{
	autobuf struct cordon_buf text = CORDON_BUF(65536);
	struct cordon_agent_view *view = data;
	const char *kind = cordon_event_text(event, &text);

	if (event->kind == CORDON_EVENT_VIOLATION || event->kind == CORDON_EVENT_UNTOLD)
		view->rows[index].violations += event->count ? event->count : 1;
	view->stale = true;
	if (kind && text.len)
		cordon_agent_view_note(view, index, text.data);
}

/* The text may hold the name of a file, and so a line of its own. */
void cordon_agent_view_note(struct cordon_agent_view *view, size_t index, const char *text)
{
	autobuf struct cordon_buf safe = CORDON_BUF(LINES_MAX);
	const char *name = view->rows[index].job.name;

	if (view->show == CORDON_SHOW_LINES || view->show == CORDON_SHOW_TABLE) {
		if (cordon_text_escape(&safe, text, strlen(text)) == 0)
			print_line(view, index, STDERR_FILENO, "! ", safe.data ? safe.data : "", safe.len);
	} else if (view->show == CORDON_SHOW_BYTES && view->mid_line) {
		cordon_buf_addf(&view->lines, "%s: %s%c", name, text, '\0');
	} else if (view->show == CORDON_SHOW_BYTES) {
		cordon_cli_log(view->cli, "AGENT", "%s: %s", name, text);
	}
}

/* Prints the notes that waited for the end of a line of the agent. */
static void print_waiting(struct cordon_agent_view *view)
{
	for (size_t at = 0; at < view->lines.len; at += strlen(view->lines.data + at) + 1)
		cordon_cli_log(view->cli, "AGENT", "%s", view->lines.data + at);
	cordon_buf_reset(&view->lines);
}

static void pass_bytes(struct cordon_agent_view *view, int stream, const char *bytes, size_t n)
{
	write_out(view, stream == 2 ? STDERR_FILENO : STDOUT_FILENO, bytes, n);
	if (stream != 2 || !n)
		return;
	view->mid_line = bytes[n - 1] != '\n';
	if (!view->mid_line)
		print_waiting(view);
}

void cordon_agent_view_output(void *data, size_t index, int stream, const char *bytes, size_t n)
{
	struct cordon_agent_view *view = data;

	switch (view->show) {
	case CORDON_SHOW_BYTES:
		pass_bytes(view, stream, bytes, n);
		break;
	case CORDON_SHOW_LINES:
	case CORDON_SHOW_TABLE:
		take_lines(view, index, stream, bytes, n);
		break;
	case CORDON_SHOW_EVENTS:
		print_event(view, index, "execution:output",
			    json_pack("{s:s, s:o}", "stream", stream == 2 ? "stderr" : "stdout", "data",
				      cordon_cli_json_bytes(bytes, n)));
		break;
	case CORDON_SHOW_NOTHING:
	default:
		break;
	}
}

void cordon_agent_view_tick(void *data)
{
	struct cordon_agent_view *view = data;
	int64_t since = cordon_time_monotonic() - view->drawn_at;

	if (view->show == CORDON_SHOW_TABLE && ((view->stale && since >= REDRAW_MS) || since >= CORDON_CREW_TICK_MS))
		redraw(view);
}

void cordon_agent_view_end(struct cordon_agent_view *view)
{
	for (size_t i = 0; i < view->n; i++)
		flush_parts(view, i);
	if (view->show == CORDON_SHOW_TABLE)
		redraw(view);
	else if (view->lines.len)
		print_waiting(view);
}
