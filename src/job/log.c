/* SPDX-License-Identifier: Apache-2.0 */
/* The events of a session: a ring on disk. */
#include <fcntl.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/io.h"
#include "base/json.h"
#include "base/text.h"
#include "base/time.h"
#include "job/log.h"

#define FILE_NOW "events"
#define FILE_OLD "events.old"
#define READ_MAX ((size_t)4 * CORDON_EVENTS_BYTES)

/* The index that a line begins with; INT64_MAX when it does not look like a line of ours. */
static int64_t quick_index(const char *line, size_t n)
{
	static const char front[] = "{\"index\":";
	int64_t index = 0;
	size_t i = sizeof(front) - 1;

	if (n <= i || memcmp(line, front, i) != 0)
		return INT64_MAX;
	for (; i < n && line[i] >= '0' && line[i] <= '9' && index < INT64_MAX / 100; i++)
		index = 10 * index + line[i] - '0';
	return i < n && line[i] == ',' ? index : INT64_MAX;
}

/* Calls `take` for each whole line with an event after index `since`, without parsing the others; `passed` (may be
 * NULL) gets the indices of these. Returns how many bytes the whole lines have. */
static size_t each_line(const struct cordon_buf *text, int64_t since, void (*take)(void *data, json_t *event),
			void (*passed)(void *data, int64_t index), void *data)
{
	size_t at = 0;

	while (at < text->len) {
		const char *end = memchr(text->data + at, '\n', text->len - at);
		json_auto_t *event = NULL;
		int64_t index;

		if (!end)
			break;
		index = quick_index(text->data + at, (size_t)(end - text->data) - at);
		if (index > since)
			event = json_loadb(text->data + at, (size_t)(end - text->data) - at, JSON_REJECT_DUPLICATES,
					   NULL);
		else if (passed)
			passed(data, index);
		if (event)
			take(data, event);
		at = (size_t)(end - text->data) + 1;
	}
	return at;
}

static int read_events(int dir_fd, const char *name, struct cordon_buf *text, struct cordon_error *err)
{
	int r = cordon_read_file(dir_fd, name, O_NOFOLLOW, text, err);

	return r == -ENOENT ? 0 : r;
}

static int64_t index_of(const json_t *event)
{
	return cordon_json_integer(event, "index");
}

static void count(void *data, json_t *event)
{
	struct cordon_job_log *log = data;

	log->last = index_of(event);
	log->in_file++;
}

int cordon_job_log_open(int dir_fd, struct cordon_job_log *ret_log, struct cordon_error *err)
{
	struct cordon_job_log log = { .dir_fd = dir_fd, .fd = -1, .last = -1 };
	autobuf struct cordon_buf old = CORDON_BUF(READ_MAX);
	autobuf struct cordon_buf now = CORDON_BUF(READ_MAX);
	int r = read_events(dir_fd, FILE_OLD, &old, err);

	if (r == 0)
		r = read_events(dir_fd, FILE_NOW, &now, err);
	if (r < 0)
		return r;
	each_line(&old, -1, count, NULL, &log);
	log.in_file = 0;
	log.bytes = each_line(&now, -1, count, NULL, &log);
	log.fd = openat(dir_fd, FILE_NOW, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (log.fd < 0 || ftruncate(log.fd, (off_t)log.bytes) < 0) {
		r = cordon_fail_errno(err, -errno, "cannot write the session's log");
		cordon_closep(&log.fd);
		return r;
	}
	*ret_log = log;
	return 0;
}

void cordon_job_log_done(struct cordon_job_log *log)
{
	cordon_closep(&log->fd);
}

static int rotate(struct cordon_job_log *log)
{
	int fd;

	if (renameat(log->dir_fd, FILE_NOW, log->dir_fd, FILE_OLD) < 0)
		return -errno;
	fd = openat(log->dir_fd, FILE_NOW, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	cordon_closep(&log->fd);
	log->fd = fd;
	log->in_file = 0;
	log->bytes = 0;
	return 0;
}

/* Makes a JSON string of any bytes: valid characters stay as they are, other bytes become \xNN. */
static json_t *safe_text(const char *text, size_t n)
{
	autobuf struct cordon_buf out = CORDON_BUF(8 * (size_t)CORDON_EVENT_TEXT_MAX);

	if (cordon_utf8_valid(text, n) && !memchr(text, '\0', n))
		return json_stringn(text, n);
	for (size_t i = 0; i < n;) {
		size_t len = cordon_utf8_char(text + i, n - i);
		int r = len && text[i] ? cordon_buf_add(&out, text + i, len)
				       : cordon_buf_addf(&out, "\\x%02x", (unsigned int)(unsigned char)text[i]);

		if (r < 0)
			return NULL;
		i += len ? len : 1;
	}
	return json_stringn(out.data ? out.data : "", out.len);
}

static int add_one(struct cordon_job_log *log, const char *type, const char *role, const char *text, size_t n)
{
	char now[CORDON_TIME_SIZE];
	json_auto_t *event = NULL;
	autofree char *line = NULL;
	size_t len;
	int r;

	if ((log->in_file >= CORDON_EVENTS_RING || log->bytes >= CORDON_EVENTS_BYTES) && (r = rotate(log)) < 0)
		return r;
	cordon_time_format(cordon_time_now(), now);
	event = json_pack("{s:I, s:s, s:s, s:s*, s:o}", "index", (json_int_t)log->last + 1, "time", now, "type", type,
			  "role", role, "text", safe_text(text, n));
	line = event ? json_dumps(event, JSON_COMPACT) : NULL;
	if (!line)
		return -ENOMEM;
	len = strlen(line);
	line[len++] = '\n';
	r = cordon_write_all(log->fd, line, len);
	if (r < 0)
		return r;
	log->last++;
	log->in_file++;
	log->bytes += len;
	return 0;
}

int cordon_job_log_add(struct cordon_job_log *log, const char *type, const char *role, const char *text, size_t n)
{
	int r;

	do {
		size_t part = n < CORDON_EVENT_TEXT_MAX ? n : CORDON_EVENT_TEXT_MAX;

		/* Cut between two characters, so that no character is split over two events. */
		while (part < n && part > CORDON_EVENT_TEXT_MAX - 4 && ((unsigned char)text[part] & 0xc0) == 0x80)
			part--;
		r = add_one(log, type, role, text, part);
		text += part;
		n -= part;
	} while (r == 0 && n);
	return r;
}

struct reading {
	int64_t since;
	size_t max;
	int64_t first, last;
	json_t *events;
};

static void note_index(void *data, int64_t at)
{
	struct reading *reading = data;

	if (reading->first < 0)
		reading->first = at;
	reading->last = at;
}

static void gather(void *data, json_t *event)
{
	struct reading *reading = data;
	int64_t at = index_of(event);

	note_index(data, at);
	if (at > reading->since && (!reading->max || json_array_size(reading->events) < reading->max))
		json_array_append(reading->events, event);
}

int cordon_job_log_read(int dir_fd, int64_t since, size_t max, json_t **ret_events, int64_t *ret_last,
			int64_t *ret_dropped, struct cordon_error *err)
{
	autobuf struct cordon_buf old = CORDON_BUF(READ_MAX);
	autobuf struct cordon_buf now = CORDON_BUF(READ_MAX);
	struct reading reading = { .since = since, .max = max, .first = -1, .last = -1 };
	/* Read the new file first: if the writer rotates in between, we see its events twice, and skip them below,
	 * rather than never. */
	int r = read_events(dir_fd, FILE_NOW, &now, err);

	if (r == 0)
		r = read_events(dir_fd, FILE_OLD, &old, err);
	if (r < 0)
		return r;
	reading.events = json_array();
	if (!reading.events)
		return cordon_fail(err, -ENOMEM, CORDON_KIND_LIMIT, "out of memory");
	each_line(&old, since, gather, note_index, &reading);
	if (reading.last > reading.since)
		reading.since = reading.last;
	each_line(&now, reading.since, gather, note_index, &reading);
	*ret_events = reading.events;
	*ret_last = reading.last;
	*ret_dropped = reading.first > since + 1 ? reading.first - since - 1 : 0;
	return 0;
}
