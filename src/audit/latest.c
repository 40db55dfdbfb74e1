/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the audit log backwards, for those who want its newest records and not all of it. */
#include "audit/chain.h"
#include "audit/query.h"
#include "base/time.h"

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

/* Whether the line contains a text as the log writes it, behind `key` if that is not NULL. What would have to be escaped is left to the
 * parser. */
static bool may_have(const char *line, size_t n, const char *key, const char *text)
{
	char both[512];

	if (!text || strpbrk(text, "\"\\"))
		return true;
	if (key && cordon_concat(both, sizeof(both), "\"", key, "\":\"", text, (char *)NULL) == 0)
		text = both;
	return memmem(line, n, text, strlen(text));
}

/* Whether a line that begins as we write them may be a record that is wanted: says no to most of the others without parsing them. A
 * record says its event before it says anything that somebody else wrote. */
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

/* Looks at one line, and gives it away if it matches. */
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

/* Looks at the lines of the block, the last one first. Returns how many bytes at its beginning are left: of a line that began
 * earlier, or behind the end of the search. */
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

/* Looks at one file from its end on. */
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
	autoview struct cordon_chain_view view = { 0 };
	autofree char *block = malloc(BLOCK);
	struct state s = { .search = search, .block = block };
	autofd int dir = -1;
	int r = block ? cordon_home_subdir(home, "audit", &dir, err)
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

int cordon_audit_extent(const struct cordon_home *home, struct cordon_audit_extent *ret_extent, struct cordon_error *err)
{
	autoview struct cordon_chain_view view = { 0 };
	struct cordon_audit_extent extent = { 0 };
	autofd int dir = -1;
	int r = cordon_home_subdir(home, "audit", &dir, err);

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
