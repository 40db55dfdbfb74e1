/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces of text for a stderr that is shared with the agent. */
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <termios.h>

#include "base/io.h"
#include "base/text.h"
#include "cli/voice.h"

#define LINE_MAX_BYTES (1u << 20)

void cordon_voice_init(struct cordon_voice *voice, const struct cordon_cli *cli)
{
	*voice = (struct cordon_voice){ .cli = cli,
					.piece = CORDON_BUF(CORDON_VOICE_WAITING_MAX),
					.waiting = CORDON_BUF(CORDON_VOICE_WAITING_MAX),
					.terminal = cordon_open_terminal_again(STDERR_FILENO) };
}

/* While the agent has a terminal of its own the user's is raw: a newline there does not go back to the first column. */
static const char *line_end(void)
{
	struct termios set;

	return tcgetattr(STDERR_FILENO, &set) == 0 && !(set.c_oflag & OPOST) ? "\r\n" : "\n";
}

void cordon_voice_line(struct cordon_voice *voice, const char *tag, const char *fmt, ...)
{
	autobuf struct cordon_buf raw = CORDON_BUF(LINE_MAX_BYTES);
	va_list args;
	int r;

	if (!voice->cli || voice->cli->json)
		return;
	va_start(args, fmt);
	r = cordon_buf_addv(&raw, fmt, args);
	va_end(args);
	if (r < 0 || cordon_buf_addf(&voice->piece, "[%s] ", tag) < 0 ||
	    cordon_text_escape(&voice->piece, raw.data, raw.len) < 0)
		return;
	cordon_buf_adds(&voice->piece, line_end());
}

/* Writes as much as goes without waiting; -EAGAIN when that is nothing. */
static ssize_t write_now(const struct cordon_voice *voice, const char *text, size_t n)
{
	struct iovec iov = { (void *)(uintptr_t)text, n };
	struct pollfd ready = { .fd = STDERR_FILENO, .events = POLLOUT };
	struct stat st;
	ssize_t got;

	if (voice->terminal >= 0) {
		got = write(voice->terminal, text, n);
	} else if (fstat(STDERR_FILENO, &st) == 0 && S_ISREG(st.st_mode)) {
		got = write(STDERR_FILENO, text, n);
	} else {
		got = pwritev2(STDERR_FILENO, &iov, 1, -1, RWF_NOWAIT);
		/* Pipes before Linux 6.4, where the agent may just fit in between the two calls, and somebody else's
		 * terminal. O_NONBLOCK would be the agent's, too. */
		if (got < 0 && (errno == EOPNOTSUPP || errno == ENOSYS || errno == EINVAL || errno == ESPIPE)) {
			if (poll(&ready, 1, 0) != 1)
				return -EAGAIN;
			got = write(STDERR_FILENO, text, n < PIPE_BUF ? n : PIPE_BUF);
		}
	}
	return got < 0 ? -errno : got;
}

static void write_waiting(struct cordon_voice *voice)
{
	struct cordon_buf *waiting = &voice->waiting;
	size_t at = 0;

	while (at < waiting->len) {
		ssize_t n = write_now(voice, waiting->data + at, waiting->len - at);

		if (n == -EINTR)
			continue;
		if (n == -EAGAIN)
			break;
		if (n < 0)
			at = waiting->len; /* nobody will ever read it */
		else
			at += (size_t)n;
	}
	if (at) {
		memmove(waiting->data, waiting->data + at, waiting->len - at + 1);
		waiting->len -= at;
	}
}

void cordon_voice_say(struct cordon_voice *voice)
{
	if (!voice->piece.len)
		return;
	if (voice->left_out || cordon_buf_add(&voice->waiting, voice->piece.data, voice->piece.len) < 0)
		voice->left_out++;
	cordon_buf_reset(&voice->piece);
	write_waiting(voice);
}

void cordon_voice_flush(struct cordon_voice *voice)
{
	if (voice->waiting.len)
		cordon_write_all(STDERR_FILENO, voice->waiting.data, voice->waiting.len);
	cordon_buf_reset(&voice->waiting);
	if (voice->left_out)
		cordon_cli_log(voice->cli, "WORKSPACE",
			       "  (%u more reports are only in the log: nobody read them here)", voice->left_out);
	voice->left_out = 0;
}

void cordon_voice_done(struct cordon_voice *voice)
{
	if (!voice->cli)
		return; /* was never begun */
	cordon_voice_flush(voice);
	cordon_buf_done(&voice->piece);
	cordon_buf_done(&voice->waiting);
	cordon_closep(&voice->terminal);
}
