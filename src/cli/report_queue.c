/* SPDX-License-Identifier: Apache-2.0 */
/* Queues reports for a stderr that the agent shares. */
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <termios.h>

#include "base/io.h"
#include "base/text.h"
#include "cli/report_queue.h"

#define LINE_MAX_BYTES (1u << 20)

void cordon_report_queue_init(struct cordon_report_queue *queue, const struct cordon_cli *cli)
{
	*queue = (struct cordon_report_queue){ .cli = cli,
					       .report = CORDON_BUF(CORDON_REPORT_QUEUE_MAX),
					       .held = CORDON_BUF(CORDON_REPORT_QUEUE_MAX),
					       .file = -1,
					       .waiting = CORDON_BUF(CORDON_REPORT_QUEUE_MAX),
					       .terminal = cordon_open_terminal_again(STDERR_FILENO) };
}

/* While the agent has a terminal of its own, the user's terminal is raw: a newline does not return to the first
 * column. */
static const char *line_end(void)
{
	struct termios set;

	return tcgetattr(STDERR_FILENO, &set) == 0 && !(set.c_oflag & OPOST) ? "\r\n" : "\n";
}

void cordon_report_queue_line(struct cordon_report_queue *queue, const char *tag, const char *fmt, ...)
{
	autobuf struct cordon_buf raw = CORDON_BUF(LINE_MAX_BYTES);
	va_list args;
	int r;

	if (!queue->cli || queue->cli->json || (queue->cli->quiet && queue->file < 0))
		return;
	va_start(args, fmt);
	r = cordon_buf_addv(&raw, fmt, args);
	va_end(args);
	if (r < 0 || cordon_buf_addf(&queue->report, "[%s] ", tag) < 0 ||
	    cordon_text_escape(&queue->report, raw.data, raw.len) < 0)
		return;
	cordon_buf_addc(&queue->report, '\n');
}

/* Writes as much as stderr takes without blocking. Returns -EAGAIN when that is nothing. */
static ssize_t write_now(const struct cordon_report_queue *queue, const char *text, size_t n)
{
	struct iovec iov = { (void *)(uintptr_t)text, n };
	struct pollfd ready = { .fd = STDERR_FILENO, .events = POLLOUT };
	struct stat st;
	ssize_t got;

	if (queue->terminal >= 0) {
		got = write(queue->terminal, text, n);
	} else if (fstat(STDERR_FILENO, &st) == 0 && S_ISREG(st.st_mode)) {
		got = write(STDERR_FILENO, text, n);
	} else {
		got = pwritev2(STDERR_FILENO, &iov, 1, -1, RWF_NOWAIT);
		/* These are pipes before Linux 6.4, and terminals that we could not open again. Between poll and write
		 * the agent may fill the pipe. O_NONBLOCK is no way out: the agent shares the open file description. */
		if (got < 0 && (errno == EOPNOTSUPP || errno == ENOSYS || errno == EINVAL || errno == ESPIPE)) {
			if (poll(&ready, 1, 0) != 1)
				return -EAGAIN;
			got = write(STDERR_FILENO, text, n < PIPE_BUF ? n : PIPE_BUF);
		}
	}
	return got < 0 ? -errno : got;
}

/* Begins a new line where the agent's last line has no end. */
static void begin_line(struct cordon_report_queue *queue)
{
	autobuf struct cordon_buf whole = CORDON_BUF(2 * CORDON_REPORT_QUEUE_MAX);
	bool *mid_line = queue->output ? &queue->output->screen.mid_line : &queue->mid_line;

	if (queue->partly_written || !*mid_line || cordon_buf_adds(&whole, line_end()) < 0 ||
	    cordon_buf_add(&whole, queue->waiting.data, queue->waiting.len) < 0 || whole.len > CORDON_REPORT_QUEUE_MAX)
		return;
	*mid_line = false;
	cordon_buf_reset(&queue->waiting);
	cordon_buf_add(&queue->waiting, whole.data, whole.len);
}

static void write_waiting(struct cordon_report_queue *queue)
{
	struct cordon_buf *waiting = &queue->waiting;
	size_t at = 0;

	if (waiting->len)
		begin_line(queue);
	while (at < waiting->len) {
		ssize_t n = write_now(queue, waiting->data + at, waiting->len - at);

		if (n == -EINTR)
			continue;
		if (n == -EAGAIN)
			break;
		if (n < 0)
			at = waiting->len; /* nobody can read it any more */
		else
			at += (size_t)n;
	}
	queue->partly_written = at < waiting->len && (at || queue->partly_written);
	if (at) {
		memmove(waiting->data, waiting->data + at, waiting->len - at + 1);
		waiting->len -= at;
	}
}

/* Moves what is held back to what waits, with the line ends that the terminal needs now. */
static void release_held(struct cordon_report_queue *queue)
{
	const char *end = line_end();
	size_t before = queue->waiting.len;
	int r = 0;

	for (size_t at = 0; r == 0 && at < queue->held.len;) {
		const char *line = queue->held.data + at;
		const char *newline = memchr(line, '\n', queue->held.len - at);
		size_t n = newline ? (size_t)(newline - line) : queue->held.len - at;

		r = cordon_buf_add(&queue->waiting, line, n);
		if (r == 0)
			r = cordon_buf_adds(&queue->waiting, end);
		at += n + 1;
	}
	if (r < 0) {
		/* There is no room: drop the whole text, so that no report is cut. */
		queue->waiting.len = before;
		queue->waiting.data[before] = '\0';
		queue->left_out++;
	}
	cordon_buf_reset(&queue->held);
}

/* Writes held reports to the file, which takes everything at once. */
static void write_file(struct cordon_report_queue *queue)
{
	if (queue->held.len && cordon_write_all(queue->file, queue->held.data, queue->held.len) < 0)
		queue->left_out++;
	cordon_buf_reset(&queue->held);
}

void cordon_report_queue_release(struct cordon_report_queue *queue)
{
	if (queue->file >= 0)
		return;
	if (queue->held.len)
		release_held(queue);
	write_waiting(queue);
}

void cordon_report_queue_end(struct cordon_report_queue *queue)
{
	if (!queue->report.len)
		return;
	if (queue->left_out || cordon_buf_add(&queue->held, queue->report.data, queue->report.len) < 0)
		queue->left_out++;
	cordon_buf_reset(&queue->report);
	if (queue->file >= 0)
		write_file(queue);
	else if (!queue->holds_back)
		cordon_report_queue_release(queue);
}

void cordon_report_queue_flush(struct cordon_report_queue *queue)
{
	if (queue->held.len)
		release_held(queue);
	if (queue->waiting.len) {
		begin_line(queue);
		cordon_write_all(STDERR_FILENO, queue->waiting.data, queue->waiting.len);
	}
	cordon_buf_reset(&queue->waiting);
	queue->partly_written = false;
	if (queue->left_out) {
		cordon_report_queue_next_line(queue);
		cordon_cli_log(queue->cli, "WORKSPACE",
			       "  (%u more reports are only in the log: nobody read them here)", queue->left_out);
	}
	queue->left_out = 0;
}

void cordon_report_queue_next_line(struct cordon_report_queue *queue)
{
	if (queue->mid_line)
		cordon_write_all(STDERR_FILENO, "\n", 1);
	queue->mid_line = false;
}

void cordon_report_queue_done(struct cordon_report_queue *queue)
{
	if (!queue->cli)
		return; /* it was never initialised */
	cordon_report_queue_flush(queue);
	cordon_buf_done(&queue->report);
	cordon_buf_done(&queue->held);
	cordon_buf_done(&queue->waiting);
	cordon_closep(&queue->terminal);
	cordon_closep(&queue->file);
}
