/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the audit log: selects records, formats them, and goes through the log from its beginning or from its end. */
#include <stdio.h>
#include <sys/inotify.h>

#include "audit/chain.h"
#include "audit/query.h"
#include "base/json.h"
#include "base/text.h"
#include "base/time.h"

#define RUN_SHOWN 8 /* characters of a session id in a line for a person */

static int parse_time(const char *text, int64_t now, int64_t *ret_time, struct cordon_error *err)
{
	uint64_t back;
	int r;

	if (cordon_parse_duration(text, 1000, &back) == 0 && back <= (uint64_t)INT64_MAX / 2) {
		*ret_time = now - (int64_t)back;
		return 0;
	}
	if (cordon_time_parse(text, ret_time) == 0)
		return 0;
	r = cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "not a time: %s", text);
	cordon_error_hint(err, "say 10m, 2h or 2026-01-02T03:04:05Z");
	return r;
}

int cordon_audit_since_parse(const char *text, int64_t now, struct cordon_audit_filter *filter, struct cordon_error *err)
{
	int r = parse_time(text, now, &filter->since, err);

	filter->has_since |= r == 0;
	return r;
}

int cordon_audit_until_parse(const char *text, int64_t now, struct cordon_audit_filter *filter, struct cordon_error *err)
{
	int r = parse_time(text, now, &filter->until, err);

	filter->has_until |= r == 0;
	return r;
}

int cordon_audit_decision_parse(const char *decision, struct cordon_audit_filter *filter, struct cordon_error *err)
{
	for (cordon_verdict verdict = CORDON_ALLOW; verdict <= CORDON_DENY; verdict++) {
		if (!cordon_streq(cordon_verdict_name(verdict), decision))
			continue;
		filter->decision = decision;
		return 0;
	}
	return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "no such decision: %s; there are allow, warn and deny",
			   decision);
}

static void name_kinds(struct cordon_buf *buf)
{
	for (size_t i = 0; i < CORDON_AUDIT__MAX; i++)
		cordon_buf_addf(buf, "%s%s", i ? " " : "", cordon_audit_type_name((cordon_audit_type)i));
}

int cordon_audit_kinds_parse(const char *list, struct cordon_audit_filter *filter, struct cordon_error *err)
{
	uint32_t types = 0;

	for (const char *p = list;; p++) {
		size_t n = strcspn(p, ",");
		cordon_audit_type type;

		if (cordon_audit_type_parse(p, n, &type) < 0) {
			autobuf struct cordon_buf names = CORDON_BUF(1024);
			int r = cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "no such event: %.*s",
					    (int)(n < 200 ? n : 200), p);

			name_kinds(&names);
			cordon_error_hint(err, "there are: %s", names.data ? names.data : "");
			return r;
		}
		types |= UINT32_C(1) << type;
		p += n;
		if (!*p)
			break;
	}
	filter->types |= types;
	return 0;
}

int cordon_audit_run_parse(const char *run, struct cordon_audit_filter *filter, struct cordon_error *err)
{
	size_t n = strlen(run);

	if (n < CORDON_AUDIT_RUN_MIN ||
	    strspn(run, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") != n)
		return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE,
				   "not a run id, or less than %d characters of one: %s", CORDON_AUDIT_RUN_MIN, run);
	filter->run = run;
	return 0;
}

const char *cordon_audit_as_logged(const char *text, struct cordon_buf *buf)
{
	if (cordon_text_safe(text, strlen(text)))
		return text;
	return cordon_text_escape(buf, text, strlen(text)) == 0 ? buf->data : NULL;
}

static bool has(const struct cordon_audit_record *record, const char *key, const char *part)
{
	const char *text = cordon_json_string(record->object, key);

	return text && strstr(text, part);
}

bool cordon_audit_match(const struct cordon_audit_filter *filter, const struct cordon_audit_record *record)
{
	const char *decision;

	if ((filter->has_since && record->time < filter->since) || (filter->has_until && record->time >= filter->until))
		return false;
	if (filter->types && (record->type == CORDON_AUDIT__MAX || !(filter->types & UINT32_C(1) << record->type)))
		return false;
	if (filter->run && (!record->session_id || strncmp(record->session_id, filter->run, strlen(filter->run)) != 0))
		return false;
	if ((filter->path && !has(record, "path", filter->path)) ||
	    (filter->agent && !has(record, "agent", filter->agent) && !has(record, "orchestrator_id", filter->agent)))
		return false;
	decision = filter->decision ? cordon_json_string(record->object, "decision") : "";
	return !filter->decision || (decision && cordon_streq(decision, filter->decision));
}

/* The log contains safe text, which is shown as it is. Anything else in it is forged, and is escaped here. */
static int add_safe(struct cordon_buf *buf, const char *s, size_t n)
{
	return cordon_text_safe(s, n) ? cordon_buf_add(buf, s, n) : cordon_text_escape(buf, s, n);
}

static int add_value(struct cordon_buf *buf, const char *key, json_t *value)
{
	autofree char *dump = NULL;
	int r = cordon_buf_addc(buf, ' ');

	if (r == 0)
		r = add_safe(buf, key, strlen(key));
	if (r == 0)
		r = cordon_buf_addc(buf, '=');
	if (r < 0)
		return r;
	if (json_is_string(value))
		return add_safe(buf, json_string_value(value), json_string_length(value));
	dump = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
	return dump ? add_safe(buf, dump, strlen(dump)) : -ENOMEM;
}

cordon_audit_tone cordon_audit_tone_of(const struct cordon_audit_record *record)
{
	switch (record->type) {
	case CORDON_AUDIT_VIOLATION:
		return cordon_json_is(record->object, "decision", "warn") ? CORDON_AUDIT_TONE_LOOK
									  : CORDON_AUDIT_TONE_REFUSED;
	case CORDON_AUDIT_PROTECTED_LOST:
	case CORDON_AUDIT_PROTECTED_CREATED:
	case CORDON_AUDIT_REFUSAL:
		return CORDON_AUDIT_TONE_REFUSED;
	case CORDON_AUDIT_LIMIT:
	case CORDON_AUDIT_DROPPED:
	case CORDON_AUDIT_PRUNED:
	case CORDON_AUDIT_REPAIRED:
		return CORDON_AUDIT_TONE_LOOK;
	case CORDON_AUDIT_GRANT:
	case CORDON_AUDIT_CHANGES:
	case CORDON_AUDIT_APPROVAL:
		return CORDON_AUDIT_TONE_CHANGE;
	case CORDON_AUDIT_START:
	case CORDON_AUDIT_END:
	case CORDON_AUDIT_GC:
	case CORDON_AUDIT_CALL:
	case CORDON_AUDIT_ROTATED:
	case CORDON_AUDIT__MAX:
	default:
		return CORDON_AUDIT_TONE_PLAIN;
	}
}

/* "2026-01-02T03:04:05.678Z  violation          9d1c20aa". */
static int add_columns(struct cordon_buf *buf, const struct cordon_audit_record *record, bool colour)
{
	static const char *const colours[] = {
		[CORDON_AUDIT_TONE_PLAIN] = NULL,
		[CORDON_AUDIT_TONE_CHANGE] = "\x1b[36m",
		[CORDON_AUDIT_TONE_LOOK] = "\x1b[33m",
		[CORDON_AUDIT_TONE_REFUSED] = "\x1b[31m",
	};
	const char *paint = colour ? colours[cordon_audit_tone_of(record)] : NULL;
	char when[CORDON_TIME_SIZE], event[32], run[RUN_SHOWN + 1] = "-";
	char shown[CORDON_TIME_SIZE + sizeof(event)];

	cordon_time_format(record->time, when);
	cordon_text_escape_fixed(event, sizeof(event), record->event, strlen(record->event));
	if (record->session_id)
		cordon_text_escape_fixed(run, sizeof(run), record->session_id, strlen(record->session_id));
	snprintf(shown, sizeof(shown), "%-17s", event);
	return cordon_buf_addf(buf, "%s  %s%s%s  %-*s ", when, paint ? paint : "", shown, paint ? "\x1b[0m" : "",
			       RUN_SHOWN, run);
}

int cordon_audit_format(const struct cordon_audit_record *record, bool colour, struct cordon_buf *ret_text)
{
	int r = add_columns(ret_text, record, colour);

	return r < 0 ? r : cordon_audit_format_what(record, ret_text);
}

int cordon_audit_format_what(const struct cordon_audit_record *record, struct cordon_buf *ret_text)
{
	/* These are clear without a name and come first; the rest follows with its name. */
	static const char *const plain[] = { "decision", "op", "path" };
	static const char *const named[] = {
		"rule",		"mode",	     "kind", "success", "project_id", "agent", "orchestrator_id",
		"workspace_id", "request_id"
	};
	json_t *detail = json_object_get(record->object, "detail");
	json_t *value;
	const char *key;
	int r = 0;

	for (size_t i = 0; r == 0 && i < CORDON_ARRAY_SIZE(plain); i++) {
		value = json_object_get(record->object, plain[i]);
		if (!json_is_string(value))
			continue;
		r = cordon_buf_addc(ret_text, ' ');
		if (r == 0)
			r = add_safe(ret_text, json_string_value(value), json_string_length(value));
	}
	for (size_t i = 0; r == 0 && i < CORDON_ARRAY_SIZE(named); i++) {
		value = json_object_get(record->object, named[i]);
		if (value)
			r = add_value(ret_text, named[i], value);
	}
	json_object_foreach(detail, key, value) {
		if (cordon_streq(key, "metrics"))
			continue; /* 'cordon stats' shows them */
		if (r == 0)
			r = add_value(ret_text, key, value);
	}
	return r;
}

/* ---- reading the log from its beginning ---- */

#define LOGS 2 /* of events, and of calls */

struct log {
	int dir_fd;
	bool calls;
	struct cordon_chain_view view;
	size_t index;	 /* of the file being read, n_files at the end */
	uint64_t number; /* number of that file */
	off_t at;	 /* offset behind the last line that was returned */
	uint64_t line;
	char name[CORDON_CHAIN_NAME_SIZE + 8];
	bool has; /* an item that was read, and not returned yet */
	struct cordon_audit_item item;
	struct cordon_audit_record record;
	struct cordon_lines lines;
};

struct cordon_audit_reader {
	int watch_fd;
	bool has_since;
	int64_t since;
	bool follows; /* a writer may still finish an incomplete last line */
	struct log logs[LOGS];
};

struct cordon_audit_reader *cordon_audit_reader_free(struct cordon_audit_reader *reader)
{
	if (!reader)
		return NULL;
	for (size_t i = 0; i < LOGS; i++) {
		cordon_audit_record_done(&reader->logs[i].record);
		cordon_chain_view_done(&reader->logs[i].view);
		cordon_closep(&reader->logs[i].dir_fd);
	}
	cordon_closep(&reader->watch_fd);
	free(reader);
	return NULL;
}

/* Begins to read file `index` of the view at an offset. */
static void begin_file(struct log *log, size_t index, off_t at)
{
	const struct cordon_chain_file *file = &log->view.files[index];

	log->index = index;
	log->number = file->number;
	log->at = at;
	if (at == 0)
		log->line = 0;
	snprintf(log->name, sizeof(log->name), "%s%s", log->calls ? "calls/" : "", file->name);
	cordon_lines_init(&log->lines, file->fd, at, file->size);
}

int cordon_audit_reader_new(const struct cordon_home *home, const struct cordon_audit_filter *filter,
			    struct cordon_audit_reader **ret_reader, struct cordon_error *err)
{
	struct cordon_audit_reader *reader = calloc(1, sizeof(*reader));
	int r = 0;

	if (!reader)
		return cordon_fail_errno(err, -ENOMEM, "cannot read the audit log");
	reader->watch_fd = -1;
	reader->has_since = filter->has_since;
	reader->since = filter->since;
	for (size_t i = 0; i < LOGS; i++) {
		reader->logs[i].dir_fd = -1;
		reader->logs[i].calls = i > 0;
	}
	for (size_t i = 0; r == 0 && i < LOGS; i++) {
		struct log *log = &reader->logs[i];

		r = cordon_home_subdir(home, cordon_chain_dir(log->calls), &log->dir_fd, err);
		if (r == 0)
			r = cordon_chain_view(log->dir_fd, 0, &log->view, err);
		if (r == 0)
			begin_file(log, 0, 0);
	}
	if (r < 0) {
		cordon_audit_reader_free(reader);
		return r;
	}
	*ret_reader = reader;
	return 0;
}

/* Reads the next item of a log, unless it has one. */
static int fill(const struct cordon_audit_reader *reader, struct log *log, struct cordon_error *err)
{
	while (!log->has) {
		const struct cordon_chain_file *file = &log->view.files[log->index];
		bool last = log->index + 1 == log->view.n_files;
		struct cordon_line line;
		int r = 0;

		if (file->fd >= 0 && !cordon_chain_file_before(file, reader->has_since, reader->since))
			r = cordon_lines_next(&log->lines, &line);
		if (r < 0)
			return cordon_fail_errno(err, r, "cannot read the audit log %s", log->name);
		if (r == 0 && last)
			return 0;
		if (r == 0) {
			begin_file(log, log->index + 1, 0);
			continue;
		}
		if (!line.whole && last && reader->follows)
			return 0;
		log->at = line.end;
		log->line++;
		log->has = true;
		log->item = (struct cordon_audit_item){
			.file = log->name, .line = log->line, .text = line.text, .n = line.n
		};
		cordon_audit_record_done(&log->record);
		if (line.text && cordon_audit_parse(line.text, line.n, &log->record) == 0)
			log->item.record = log->record;
		else
			log->item.damaged = true;
	}
	return 0;
}

/* Whether an item comes before another: what is damaged has no time, and comes at once. */
static bool is_earlier(const struct cordon_audit_item *a, const struct cordon_audit_item *b)
{
	return a->damaged || (!b->damaged && a->record.time < b->record.time);
}

int cordon_audit_reader_next(struct cordon_audit_reader *reader, struct cordon_audit_item *ret_item,
			     struct cordon_error *err)
{
	struct log *next = NULL;
	int r = 0;

	for (size_t i = 0; r == 0 && i < LOGS; i++) {
		struct log *log = &reader->logs[i];

		r = fill(reader, log, err);
		if (r == 0 && log->has && (!next || is_earlier(&log->item, &next->item)))
			next = log;
	}
	if (r < 0 || !next)
		return r;
	next->has = false;
	*ret_item = next->item;
	return 1;
}

int cordon_audit_reader_fd(struct cordon_audit_reader *reader, struct cordon_error *err)
{
	char path[40];

	reader->follows = true;
	if (reader->watch_fd >= 0)
		return reader->watch_fd;
	reader->watch_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	for (size_t i = 0; i < LOGS; i++) {
		/* Use the descriptor, so that it is the directory that we read and no other. */
		snprintf(path, sizeof(path), "/proc/self/fd/%d", reader->logs[i].dir_fd);
		if (reader->watch_fd < 0 ||
		    inotify_add_watch(reader->watch_fd, path, IN_MODIFY | IN_CREATE | IN_MOVED_TO | IN_DELETE_SELF) < 0) {
			int r = cordon_fail_errno(err, -errno, "cannot watch the audit log");

			cordon_closep(&reader->watch_fd);
			return r;
		}
	}
	return reader->watch_fd;
}

/* Empties the queue. Only the event that the directory is gone matters. */
static int drain(int watch_fd)
{
	_Alignas(struct inotify_event) char events[4096];
	ssize_t n;
	int r = 0;

	while ((n = read(watch_fd, events, sizeof(events))) > 0) {
		for (const char *p = events; p < events + n;) {
			const struct inotify_event *event = (const struct inotify_event *)(const void *)p;

			if (event->mask & (IN_DELETE_SELF | IN_IGNORED | IN_UNMOUNT))
				r = -ENOENT;
			p += sizeof(*event) + event->len;
		}
	}
	return n < 0 && errno != EAGAIN && errno != EINTR ? -errno : r;
}

static int refresh(struct log *log, struct cordon_error *err)
{
	struct cordon_chain_view view;
	size_t index = 0;
	int r = cordon_chain_view(log->dir_fd, log->number, &view, err);

	if (r < 0)
		return r;
	while (index + 1 < view.n_files && view.files[index].number < log->number)
		index++;
	cordon_chain_view_done(&log->view);
	log->view = view;
	/* The file may be gone by now; then the file in its place is read from its beginning. */
	begin_file(log, index,
		   view.files[index].number == log->number && log->at <= view.files[index].size ? log->at : 0);
	return 0;
}

int cordon_audit_reader_refresh(struct cordon_audit_reader *reader, struct cordon_error *err)
{
	int r = reader->watch_fd >= 0 ? drain(reader->watch_fd) : 0;

	if (r < 0)
		return cordon_fail_errno(err, r, "the audit log cannot be followed any more");
	for (size_t i = 0; r == 0 && i < LOGS; i++)
		r = refresh(&reader->logs[i], err);
	return r;
}

static void freep_reader(struct cordon_audit_reader **reader)
{
	*reader = cordon_audit_reader_free(*reader);
}

int cordon_audit_runs(const struct cordon_home *home, const struct cordon_audit_filter *filter, json_t **ret_runs,
		      struct cordon_error *err)
{
	CORDON_CLEANUP(freep_reader) struct cordon_audit_reader *reader = NULL;
	json_auto_t *runs = json_object(); /* keeps the order in which keys are added */
	struct cordon_audit_item item;
	int r = cordon_audit_reader_new(home, filter, &reader, err);

	while (r == 0 && (r = cordon_audit_reader_next(reader, &item, err)) > 0) {
		const char *id = item.damaged ? NULL : item.record.session_id;

		r = 0;
		if (!id || json_object_get(runs, id) || !cordon_audit_match(filter, &item.record))
			continue;
		if (json_object_set_new(runs, id, json_integer(item.record.time)) < 0)
			r = cordon_fail_errno(err, -ENOMEM, "runs");
	}
	if (r == 0)
		*ret_runs = cordon_steal_ptr(&runs);
	return r;
}

/* ---- reading the log from its end ---- */

#define BLOCK ((size_t)256 << 10) /* more than the longest record */

struct state {
	const struct cordon_audit_search *search;
	struct cordon_audit_searched searched;
	char since[CORDON_TIME_SIZE], until[CORDON_TIME_SIZE]; /* of the filter, as lines have them */
	bool stopped;					       /* by whoever takes the records */
	char *block;
};

static bool is_over(const struct state *s)
{
	return s->stopped || (s->search->bytes && s->searched.bytes >= s->search->bytes);
}

/* Whether the line contains a text as the log writes it, behind `key` if that is not NULL. What would have to be
 * escaped is left to the parser. */
static bool may_have(const char *line, size_t n, const char *key, const char *text)
{
	char both[512];

	if (!text || strpbrk(text, "\"\\"))
		return true;
	if (key && cordon_concat(both, sizeof(both), "\"", key, "\":\"", text, (char *)NULL) == 0)
		text = both;
	return memmem(line, n, text, strlen(text));
}

/* Whether a line that begins as we write them may match: it rules most of the others out without parsing them. A record
 * has its event before anything that somebody else wrote. */
static bool may_match(const struct cordon_audit_filter *filter, const char *line, size_t n)
{
	static const char key[] = "\"event\":\"";
	const char *event, *end;
	cordon_audit_type type;

	if (!may_have(line, n, "session_id", filter->run) || !may_have(line, n, NULL, filter->path) ||
	    !may_have(line, n, NULL, filter->agent) || !may_have(line, n, "decision", filter->decision))
		return false;
	if (!filter->types || !(event = memmem(line, n, key, sizeof(key) - 1)))
		return true;
	event += sizeof(key) - 1;
	end = memchr(event, '"', n - (size_t)(event - line));
	return end && cordon_audit_type_parse(event, (size_t)(end - event), &type) == 0 &&
	       (filter->types & UINT32_C(1) << type);
}

/* The same for its time. */
static bool in_time(const struct state *s, const char *time)
{
	return (!s->search->filter.has_since || memcmp(time, s->since, CORDON_TIME_SIZE - 1) >= 0) &&
	       (!s->search->filter.has_until || memcmp(time, s->until, CORDON_TIME_SIZE - 1) < 0);
}

/* Passes one line to the caller if it matches. */
static void look(struct state *s, const char *line, size_t n)
{
	const struct cordon_audit_search *search = s->search;
	autorecord struct cordon_audit_record record = { 0 };
	const char *time;
	uint64_t seq;
	bool known = n < CORDON_AUDIT_LINE_MAX && cordon_audit_front(line, n, &seq, &time);

	/* What comes behind the place where the search begins costs nothing. */
	if (!n || (known && search->before && seq >= search->before))
		return;
	s->searched.bytes += n + 1;
	if (known) {
		s->searched.records++;
		s->searched.seq = seq;
	}
	if (n >= CORDON_AUDIT_LINE_MAX || (known && (!in_time(s, time) || !may_match(&search->filter, line, n))) ||
	    cordon_audit_parse(line, n, &record) < 0 || !cordon_audit_match(&search->filter, &record) ||
	    (search->before && record.seq >= search->before))
		return;
	s->stopped = !search->take(search->data, &record, line, n);
}

/* Searches the lines of the block, the last one first. Returns how many bytes at its beginning are left: of a line that
 * began earlier, or behind the end of the search. */
static size_t look_at_block(struct state *s, size_t n, bool from_start)
{
	size_t end = n;

	while (end > 0 && !is_over(s)) {
		const char *newline = memrchr(s->block, '\n', end);
		size_t start = newline ? (size_t)(newline - s->block) + 1 : 0;

		if (!newline && !from_start && end < n)
			return end;
		/* Without a newline in the whole block it is no log any more; what it is instead is passed over. */
		if (!newline && !from_start) {
			s->searched.bytes += n;
			return 0;
		}
		look(s, s->block + start, end - start);
		end = newline ? start - 1 : 0;
	}
	return end;
}

/* Searches one file from its end. */
static int search_file(struct state *s, const struct cordon_chain_file *file)
{
	off_t end = file->size;

	while (end > 0 && !is_over(s)) {
		size_t n = end < (off_t)BLOCK ? (size_t)end : BLOCK, left;
		ssize_t got = pread(file->fd, s->block, n, end - (off_t)n);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		left = look_at_block(s, (size_t)got, (off_t)n == end);
		end -= (off_t)n - (off_t)left;
		if (s->search->deadline && cordon_time_monotonic() >= s->search->deadline)
			s->stopped = true;
	}
	s->searched.more = end > 0;
	return 0;
}

/* Whether the whole file comes behind the place where the search begins. */
static bool is_behind(const struct state *s, const struct cordon_chain_file *file)
{
	char line[256];
	const char *time;
	uint64_t seq;
	ssize_t n = s->search->before ? pread(file->fd, line, sizeof(line), 0) : -1;

	return n > 0 && cordon_audit_front(line, (size_t)n, &seq, &time) && seq >= s->search->before;
}

int cordon_audit_search(const struct cordon_home *home, const struct cordon_audit_search *search,
			struct cordon_audit_searched *ret_searched, struct cordon_error *err)
{
	autochain struct cordon_chain_view view = { 0 };
	autofree char *block = malloc(BLOCK);
	struct state s = { .search = search, .block = block };
	autofd int dir = -1;
	int r = block ? cordon_home_subdir(home, cordon_chain_dir(search->filter.calls), &dir, err)
		      : cordon_fail_errno(err, -ENOMEM, "cannot read the audit log");

	if (r == 0)
		r = cordon_chain_view(dir, 0, &view, err);
	cordon_time_format(search->filter.since, s.since);
	cordon_time_format(search->filter.until, s.until);
	for (size_t i = view.n_files; r == 0 && i-- > 0 && !s.searched.more;) {
		const struct cordon_chain_file *file = &view.files[i];

		if (file->fd < 0 || is_behind(&s, file))
			continue;
		if (cordon_chain_file_before(file, search->filter.has_since, search->filter.since))
			break;
		r = search_file(&s, file);
		if (r < 0)
			cordon_fail_errno(err, r, "cannot read the audit log %s", file->name);
	}
	if (r == 0)
		*ret_searched = s.searched;
	return r;
}

int cordon_audit_extent(const struct cordon_home *home, bool calls, struct cordon_audit_extent *ret_extent,
			struct cordon_error *err)
{
	autochain struct cordon_chain_view view = { 0 };
	struct cordon_audit_extent extent = { 0 };
	autofd int dir = -1;
	int r = cordon_home_subdir(home, cordon_chain_dir(calls), &dir, err);

	if (r == 0)
		r = cordon_chain_view(dir, 0, &view, err);
	for (size_t i = 0; r == 0 && i < view.n_files; i++) {
		extent.files += view.files[i].fd >= 0;
		extent.bytes += view.files[i].fd >= 0 ? (uint64_t)view.files[i].size : 0;
	}
	if (r == 0)
		*ret_extent = extent;
	return r;
}

struct latest {
	const struct cordon_audit_latest *ask;
	json_t *records;
	bool failed; /* no memory */
};

static bool add_record(void *data, const struct cordon_audit_record *record, const char *line, size_t n)
{
	struct latest *latest = data;

	(void)line, (void)n;
	latest->failed |= json_array_append(latest->records, record->object) < 0;
	return !latest->failed && json_array_size(latest->records) < latest->ask->max;
}

int cordon_audit_latest(const struct cordon_home *home, const struct cordon_audit_latest *ask, json_t **ret_records,
			bool *ret_more, struct cordon_error *err)
{
	json_auto_t *records = json_array();
	struct latest latest = { .ask = ask, .records = records };
	struct cordon_audit_search search = {
		.filter = ask->filter, .before = ask->before, .bytes = ask->bytes, .data = &latest, .take = add_record
	};
	struct cordon_audit_searched searched = { 0 };
	int r = cordon_audit_search(home, &search, &searched, err);

	if (r == 0 && latest.failed)
		r = cordon_fail_errno(err, -ENOMEM, "cannot read the audit log");
	if (r < 0)
		return r;
	if (ret_more)
		*ret_more = searched.more;
	*ret_records = cordon_steal_ptr(&records);
	return 0;
}
