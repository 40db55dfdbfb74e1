/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and appends to the journal of a loop. */
#include <fcntl.h>

#include "base/io.h"
#include "base/time.h"
#include "loop/journal.h"

static int parse(const struct cordon_buf *text, json_t *events, size_t *ret_whole, struct cordon_error *err)
{
	size_t at = 0;

	while (at < text->len) {
		const char *end = memchr(text->data + at, '\n', text->len - at);
		size_t n = end ? (size_t)(end - text->data) - at : 0;
		json_t *event = end ? json_loadb(text->data + at, n, JSON_REJECT_DUPLICATES, NULL) : NULL;

		if (!end)
			break; /* the writer was killed */
		if (!json_is_object(event) ||
		    json_integer_value(json_object_get(event, "seq")) != (json_int_t)json_array_size(events) + 1) {
			json_decref(event);
			return cordon_fail(err, -EBADMSG, CORDON_KIND_IO,
					   "the journal of the loop is damaged in line %zu",
					   json_array_size(events) + 1);
		}
		json_array_append_new(events, event);
		at += n + 1;
	}
	*ret_whole = at;
	return 0;
}

int cordon_loop_journal_open(int dir_fd, struct cordon_loop_journal *ret_journal, json_t **ret_events,
			     struct cordon_error *err)
{
	autobuf struct cordon_buf text = CORDON_BUF(CORDON_LOOP_JOURNAL_MAX);
	json_auto_t *events = json_array();
	autofd int fd = openat(dir_fd, CORDON_LOOP_JOURNAL, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	size_t whole = 0;
	int r = fd < 0 ? cordon_fail_errno(err, -errno, "cannot open the journal of the loop")
		       : cordon_read_fd(fd, "the journal of the loop", &text, err);

	if (r == 0)
		r = parse(&text, events, &whole, err);
	if (r == 0 && (ftruncate(fd, (off_t)whole) < 0 || lseek(fd, (off_t)whole, SEEK_SET) < 0))
		r = cordon_fail_errno(err, -errno, "cannot open the journal of the loop");
	if (r < 0)
		return r;
	*ret_journal = (struct cordon_loop_journal){ .fd = cordon_steal_fd(&fd), .seq = json_array_size(events) };
	*ret_events = cordon_steal_ptr(&events);
	return 0;
}

int cordon_loop_journal_read(int dir_fd, json_t **ret_events, struct cordon_error *err)
{
	autobuf struct cordon_buf text = CORDON_BUF(CORDON_LOOP_JOURNAL_MAX);
	json_auto_t *events = json_array();
	autofd int fd = openat(dir_fd, CORDON_LOOP_JOURNAL, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	size_t whole = 0;
	int r = 0;

	if (fd < 0 && errno != ENOENT)
		r = cordon_fail_errno(err, -errno, "cannot open the journal of the loop");
	if (fd >= 0)
		r = cordon_read_fd(fd, "the journal of the loop", &text, err);
	if (r == 0)
		r = parse(&text, events, &whole, err);
	if (r == 0)
		*ret_events = cordon_steal_ptr(&events);
	return r;
}

void cordon_loop_journal_done(struct cordon_loop_journal *journal)
{
	cordon_closep(&journal->fd);
}

int cordon_loop_journal_add(struct cordon_loop_journal *journal, json_t *event, bool durable, struct cordon_error *err)
{
	autofree char *text = NULL;
	char now[CORDON_TIME_SIZE];
	size_t n;
	int r;

	cordon_time_format(cordon_time_now(), now);
	json_object_set_new(event, "seq", json_integer((json_int_t)journal->seq + 1));
	json_object_set_new(event, "time", json_string(now));
	text = json_dumps(event, JSON_COMPACT);
	n = text ? strlen(text) : 0;
	if (!text || n >= CORDON_LOOP_JOURNAL_LINE_MAX)
		return cordon_fail_errno(err, text ? -E2BIG : -ENOMEM, "cannot write to the journal of the loop");
	text[n] = '\n'; /* instead of the NUL: one write has the whole line */
	r = cordon_write_all(journal->fd, text, n + 1);
	if (r == 0 && durable && fdatasync(journal->fd) < 0)
		r = -errno;
	if (r < 0)
		return cordon_fail_errno(err, r, "cannot write to the journal of the loop");
	journal->seq++;
	return 0;
}

int cordon_loop_journal_clear(struct cordon_loop_journal *journal, struct cordon_error *err)
{
	if (ftruncate(journal->fd, 0) < 0 || lseek(journal->fd, 0, SEEK_SET) < 0)
		return cordon_fail_errno(err, -errno, "cannot clear the journal of the loop");
	journal->seq = 0;
	return 0;
}
