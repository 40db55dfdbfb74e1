/* SPDX-License-Identifier: Apache-2.0 */
/* Answers many questions from standard input, one answer each on standard output. */
#include <poll.h>

#include "base/io.h"
#include "base/text.h"
#include "cli/stream.h"

#define CHUNK ((size_t)64 << 10)
#define BATCH ((size_t)8 << 20)
#define LARGE 4096 /* a read of this many bytes is taken for a stream and not for a single question */
#define LARGE_WAIT_MS 2

struct stream {
	struct cordon_buf in;
	size_t at; /* start of the first question in `in` that was not answered */
	bool ended;
	struct cordon_buf out;
};

static int flush(struct stream *s, struct cordon_error *err)
{
	int r = cordon_write_all(STDOUT_FILENO, s->out.data, s->out.len);

	cordon_buf_reset(&s->out);
	return r < 0 ? cordon_fail_errno(err, r, "cannot write to standard output") : 0;
}

static bool ready(int milliseconds)
{
	struct pollfd p = { .fd = STDIN_FILENO, .events = POLLIN };

	return poll(&p, 1, milliseconds) > 0;
}

/* Reads once and appends to what is there. Returns the number of bytes, 0 at the end of input, or -errno. */
static ssize_t read_more(struct stream *s, size_t room, struct cordon_error *err)
{
	char *to = cordon_buf_room(&s->in, room);
	ssize_t n;

	if (!to)
		return cordon_fail_errno(err, -ENOMEM, "cannot read standard input");
	for (;;) {
		n = read(STDIN_FILENO, to, room);
		if (n >= 0)
			break;
		if (errno == EAGAIN)
			ready(-1);
		else if (errno != EINTR)
			return cordon_fail_errno(err, -errno, "cannot read standard input");
	}
	s->ended = n == 0;
	s->in.len += (size_t)n;
	return n;
}

/* Fills the next batch: the rest of a question, and more input. A single question is answered without delay. After a
 * large read it waits a moment for the next one, because large batches need fewer system calls. */
static int refill(struct stream *s, struct cordon_error *err)
{
	size_t left = s->in.len - s->at;
	ssize_t n;

	if (left > CORDON_QUESTION_MAX)
		return cordon_fail(err, -E2BIG, CORDON_KIND_LIMIT, "a path on standard input is longer than %u bytes",
				   CORDON_QUESTION_MAX);
	if (left && s->at)
		memmove(s->in.data, s->in.data + s->at, left);
	s->in.len = left;
	s->at = 0;
	do {
		if (s->out.len && !ready(0)) {
			int r = flush(s, err);

			if (r < 0)
				return r;
		}
		n = read_more(s, CHUNK, err);
	} while (n > 0 && s->in.len + CHUNK <= BATCH && ready(n >= LARGE ? LARGE_WAIT_MS : 0));
	return n < 0 ? (int)n : 0;
}

/* Answers every whole question in the buffer, and at the end of input also the one without a separator. */
static int answer_all(struct stream *s, char separator, cordon_answer_fn *answer, void *data, struct cordon_error *err)
{
	while (s->at < s->in.len) {
		char *question = s->in.data + s->at;
		size_t left = s->in.len - s->at;
		char *end = memchr(question, separator, left);
		size_t len = end ? (size_t)(end - question) : left;
		int r;

		if (!end && !s->ended)
			return 0;
		question[len] = '\0';
		r = answer(data, question, len, &s->out);
		if (r < 0)
			return cordon_fail_errno(err, r, "cannot answer");
		s->at += len + (end ? 1 : 0);
		if (s->out.len >= CHUNK) {
			r = flush(s, err);
			if (r < 0)
				return r;
		}
	}
	return 0;
}

int cordon_stream_run(const struct cordon_cli *cli, char separator, void (*begin)(void *data), cordon_answer_fn *answer,
		      void *data)
{
	struct stream s = { .in = CORDON_BUF(BATCH + CHUNK), .out = CORDON_BUF(16u * CORDON_QUESTION_MAX) };
	struct cordon_error err = { 0 };
	int r = 0, exit_code = CORDON_EXIT_OK;

	while (r == 0 && !s.ended) {
		r = refill(&s, &err);
		begin(data);
		if (r == 0)
			r = answer_all(&s, separator, answer, data, &err);
	}
	if (r == 0)
		r = flush(&s, &err);
	/* A reader that closed the pipe wants no more answers and no error message. */
	if (r < 0)
		exit_code = r == -EPIPE ? cli->failure_exit : cordon_cli_fail(cli, &err);
	cordon_buf_done(&s.in);
	cordon_buf_done(&s.out);
	return exit_code;
}

/* Returns whether a name needs no escaping; most names need none. */
static bool plain_ascii(const char *name, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)name[i];

		if (c < 0x20 || c >= 0x7f || c == '\\')
			return false;
	}
	return true;
}

int cordon_stream_line(struct cordon_buf *out, const char *word, const char *name, size_t len, char separator)
{
	int r = cordon_buf_adds(out, word);

	if (r == 0)
		r = cordon_buf_addc(out, ' ');
	if (r == 0)
		r = separator == '\0' || plain_ascii(name, len) ? cordon_buf_add(out, name, len)
								: cordon_text_escape(out, name, len);
	return r < 0 ? r : cordon_buf_addc(out, separator);
}

static int put_json(const char *bytes, size_t n, void *out)
{
	return cordon_buf_add(out, bytes, n) < 0 ? -1 : 0;
}

int cordon_stream_json(struct cordon_buf *out, json_t *value)
{
	int r = value ? json_dump_callback(value, put_json, out, JSON_COMPACT) : -1;

	json_decref(value);
	return r < 0 ? -ENOMEM : cordon_buf_addc(out, '\n');
}
