/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and appends to the journal of a run. */
#include <fcntl.h>

#include "base/io.h"
#include "base/time.h"
#include "flow/journal.h"

#define JOURNAL "journal"

int cordon_flow_journal_parse(const char *text, size_t len, json_t **ret_events, struct cordon_error *err)
{
	json_auto_t *events = json_array();

	for (size_t at = 0; at < len;) {
		const char *end = memchr(text + at, '\n', len - at);
		size_t n = end ? (size_t)(end - text) - at : 0;
		json_t *event = end ? json_loadb(text + at, n, JSON_REJECT_DUPLICATES, NULL) : NULL;

		if (!end)
			break; /* the writer was killed; the next one cuts this off */
		if (!json_is_object(event) ||
		    json_integer_value(json_object_get(event, "seq")) != (json_int_t)json_array_size(events) + 1) {
			json_decref(event);
			return cordon_fail(err, -EBADMSG, CORDON_KIND_IO,
					   "the journal of the run is damaged in line %zu", json_array_size(events) + 1);
		}
		json_array_append_new(events, event);
		at += n + 1;
	}
	*ret_events = cordon_steal_ptr(&events);
	return 0;
}

int cordon_flow_journal_read(int run_fd, json_t **ret_events, struct cordon_error *err)
{
	autobuf struct cordon_buf text = CORDON_BUF(CORDON_FLOW_JOURNAL_MAX);
	int r = cordon_read_file(run_fd, JOURNAL, O_NOFOLLOW, &text, err);

	if (r < 0 && r != -ENOENT)
		return r;
	return cordon_flow_journal_parse(text.data ? text.data : "", text.len, ret_events, err);
}

/* Where the last whole line ends. */
static int whole_length(int fd, off_t *ret_length)
{
	off_t size = lseek(fd, 0, SEEK_END);
	char c;

	while (size > 0) {
		if (pread(fd, &c, 1, size - 1) != 1)
			return -EIO;
		if (c == '\n')
			break;
		size--;
	}
	*ret_length = size;
	return size < 0 ? -errno : 0;
}

int cordon_flow_journal_open(int run_fd, const json_t *events, struct cordon_flow_journal *ret_journal,
			     struct cordon_error *err)
{
	autofd int fd = openat(run_fd, JOURNAL, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	off_t length = 0;
	int r = fd < 0 ? -errno : whole_length(fd, &length);

	if (r == 0 && (ftruncate(fd, length) < 0 || lseek(fd, length, SEEK_SET) < 0))
		r = -errno;
	if (r < 0)
		return cordon_fail_errno(err, r, "cannot open the journal of the run");
	*ret_journal = (struct cordon_flow_journal){ .fd = cordon_steal_fd(&fd), .seq = json_array_size(events) };
	return 0;
}

void cordon_flow_journal_done(struct cordon_flow_journal *journal)
{
	cordon_closep(&journal->fd);
}

int cordon_flow_journal_add(struct cordon_flow_journal *journal, json_t *event, struct cordon_error *err)
{
	autofree char *text = NULL;
	char now[CORDON_TIME_SIZE];
	off_t size = lseek(journal->fd, 0, SEEK_CUR);
	size_t n;
	int r = 0;

	cordon_time_format(cordon_time_now(), now);
	json_object_set_new(event, "seq", json_integer((json_int_t)journal->seq + 1));
	json_object_set_new(event, "time", json_string(now));
	text = json_dumps(event, JSON_COMPACT);
	n = text ? strlen(text) : 0;
	if (!text || n >= CORDON_FLOW_JOURNAL_LINE_MAX)
		return cordon_fail_errno(err, text ? -E2BIG : -ENOMEM, "cannot write to the journal");
	/* What could not be read any more could not be ended either. */
	if (json_object_get(event, "outputs") && (size_t)size + n > CORDON_FLOW_JOURNAL_MAX - CORDON_FLOW_JOURNAL_SPARE)
		return cordon_fail(err, -E2BIG, CORDON_KIND_LIMIT, "the journal of the run is full");
	text[n] = '\n'; /* instead of the NUL: one write has the whole line */
	r = cordon_write_all(journal->fd, text, n + 1);
	if (r == 0 && fdatasync(journal->fd) < 0)
		r = -errno;
	if (r < 0)
		return cordon_fail_errno(err, r, "cannot write to the journal");
	journal->seq++;
	return 0;
}
