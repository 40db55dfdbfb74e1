/* SPDX-License-Identifier: Apache-2.0 */
/* Reads journals and appends to them. */
#include "state/journal.h"

#include <fcntl.h>

#include "base/io.h"
#include "base/json.h"
#include "base/time.h"

int cordon_journal_parse(const char *text, size_t len, json_t **ret_events, size_t *ret_whole, struct cordon_error *err)
{
	json_auto_t *events = json_array();
	size_t at = 0;

	while (at < len) {
		const char *end = memchr(text + at, '\n', len - at);
		size_t n = end ? (size_t)(end - text) - at : 0;
		json_t *event = end ? json_loadb(text + at, n, JSON_REJECT_DUPLICATES, NULL) : NULL;

		if (!end)
			break; /* the writer was killed; the next one cuts this off */
		if (!json_is_object(event) ||
		    cordon_json_integer(event, "seq") != (json_int_t)json_array_size(events) + 1) {
			json_decref(event);
			return cordon_fail(err, -EBADMSG, CORDON_KIND_IO, "the journal is damaged in line %zu",
					   json_array_size(events) + 1);
		}
		json_array_append_new(events, event);
		at += n + 1;
	}
	if (ret_whole)
		*ret_whole = at;
	*ret_events = cordon_steal_ptr(&events);
	return 0;
}

int cordon_journal_read(int dir_fd, json_t **ret_events, struct cordon_error *err)
{
	autobuf struct cordon_buf text = CORDON_BUF(CORDON_JOURNAL_MAX);
	int r = cordon_read_file(dir_fd, CORDON_JOURNAL, O_NOFOLLOW, &text, err);

	if (r < 0 && r != -ENOENT)
		return r;
	return cordon_journal_parse(text.data ? text.data : "", text.len, ret_events, NULL, err);
}

int cordon_journal_open(int dir_fd, struct cordon_journal *ret_journal, json_t **ret_events, struct cordon_error *err)
{
	autobuf struct cordon_buf text = CORDON_BUF(CORDON_JOURNAL_MAX);
	json_auto_t *events = NULL;
	autofd int fd = openat(dir_fd, CORDON_JOURNAL, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	size_t whole = 0;
	int r = fd < 0 ? cordon_fail_errno(err, -errno, "cannot open the journal")
		       : cordon_read_fd(fd, "the journal", &text, err);

	if (r == 0)
		r = cordon_journal_parse(text.data ? text.data : "", text.len, &events, &whole, err);
	if (r == 0 && (ftruncate(fd, (off_t)whole) < 0 || lseek(fd, (off_t)whole, SEEK_SET) < 0))
		r = cordon_fail_errno(err, -errno, "cannot open the journal");
	if (r < 0)
		return r;
	*ret_journal = (struct cordon_journal){ .fd = cordon_steal_fd(&fd), .seq = json_array_size(events) };
	if (ret_events)
		*ret_events = cordon_steal_ptr(&events);
	return 0;
}

void cordon_journal_done(struct cordon_journal *journal)
{
	cordon_closep(&journal->fd);
}

int cordon_journal_add(struct cordon_journal *journal, json_t *event, cordon_journal_how how, struct cordon_error *err)
{
	autofree char *text = NULL;
	char now[CORDON_TIME_SIZE];
	off_t size = lseek(journal->fd, 0, SEEK_CUR);
	size_t n;
	int r;

	cordon_time_format(cordon_time_now(), now);
	json_object_set_new(event, "seq", json_integer((json_int_t)journal->seq + 1));
	json_object_set_new(event, "time", json_string(now));
	text = json_dumps(event, JSON_COMPACT);
	n = text ? strlen(text) : 0;
	if (!text || n >= CORDON_JOURNAL_LINE_MAX)
		return cordon_fail_errno(err, text ? -E2BIG : -ENOMEM, "cannot write to the journal");
	/* What could not be read any more could not be ended either. */
	if (how == CORDON_JOURNAL_BULKY && (size_t)size + n > CORDON_JOURNAL_MAX - CORDON_JOURNAL_SPARE)
		return cordon_fail(err, -E2BIG, CORDON_KIND_LIMIT, "the journal is full");
	text[n] = '\n'; /* instead of the NUL: one write has the whole line */
	r = cordon_write_all(journal->fd, text, n + 1);
	if (r == 0 && how != CORDON_JOURNAL_SOON && fdatasync(journal->fd) < 0)
		r = -errno;
	if (r < 0)
		return cordon_fail_errno(err, r, "cannot write to the journal");
	journal->seq++;
	return 0;
}

int cordon_journal_clear(struct cordon_journal *journal, struct cordon_error *err)
{
	if (ftruncate(journal->fd, 0) < 0 || lseek(journal->fd, 0, SEEK_SET) < 0)
		return cordon_fail_errno(err, -errno, "cannot clear the journal");
	journal->seq = 0;
	return 0;
}
