/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the audit log backwards, for those who want its newest records and not all of it. */
#include "audit/chain.h"
#include "audit/query.h"

#define BLOCK ((size_t)256 << 10) /* more than the longest record */

struct search {
	const struct cordon_audit_latest *ask;
	json_t *records;
	uint64_t looked; /* bytes */
	char *block;
};

static bool is_over(const struct search *s)
{
	return json_array_size(s->records) == s->ask->max || (s->ask->bytes && s->looked >= s->ask->bytes);
}

/* Whether the line may be a record that is wanted: says no to most of the others without parsing them. A record says its event
 * before it says anything that somebody else wrote. */
static bool may_match(const struct cordon_audit_filter *filter, const char *line, size_t n)
{
	static const char key[] = "\"event\":\"";
	const char *event, *end;
	cordon_audit_type type;

	if (filter->run && !memmem(line, n, filter->run, strlen(filter->run)))
		return false;
	if (!filter->types || !(event = memmem(line, n, key, sizeof(key) - 1)))
		return true;
	event += sizeof(key) - 1;
	end = memchr(event, '"', n - (size_t)(event - line));
	return end && cordon_audit_type_parse(event, (size_t)(end - event), &type) == 0 &&
	       (filter->types & UINT32_C(1) << type);
}

static int take(struct search *s, const char *line, size_t n)
{
	autorecord struct cordon_audit_record record = { 0 };

	if (!n || n >= CORDON_AUDIT_LINE_MAX || !may_match(&s->ask->filter, line, n) ||
	    cordon_audit_parse(line, n, &record) < 0 || !cordon_audit_match(&s->ask->filter, &record) ||
	    (s->ask->before && record.seq >= s->ask->before))
		return 0;
	return json_array_append(s->records, record.object) < 0 ? -ENOMEM : 0;
}

/* Takes the lines of the block, the last one first. Returns how many bytes at its beginning are left: of a line that began
 * earlier, or behind the end of the search. */
static ssize_t take_lines(struct search *s, size_t n, bool from_start)
{
	size_t end = n;

	while (end > 0 && !is_over(s)) {
		const char *newline = memrchr(s->block, '\n', end);
		size_t start = newline ? (size_t)(newline - s->block) + 1 : 0;
		int r;

		/* Without a newline in the whole block it is no log any more; what it is instead is passed over. */
		if (!newline && !from_start)
			return end < n ? (ssize_t)end : 0;
		r = take(s, s->block + start, end - start);
		if (r < 0)
			return r;
		end = newline ? start - 1 : 0;
	}
	return (ssize_t)end;
}

/* Looks at one file from its end on. *ret_left is whether it has bytes that were not looked at. */
static int search_file(struct search *s, const struct cordon_chain_file *file, bool *ret_left)
{
	off_t end = file->size;

	while (end > 0 && !is_over(s)) {
		size_t n = end < (off_t)BLOCK ? (size_t)end : BLOCK;
		ssize_t got = pread(file->fd, s->block, n, end - (off_t)n), left;

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		left = take_lines(s, (size_t)got, (off_t)n == end);
		if (left < 0)
			return (int)left;
		s->looked += n - (size_t)left;
		end -= (off_t)n - (off_t)left;
	}
	*ret_left = end > 0;
	return 0;
}

int cordon_audit_latest(const struct cordon_home *home, const struct cordon_audit_latest *ask, json_t **ret_records,
			bool *ret_more, struct cordon_error *err)
{
	autoview struct cordon_chain_view view = { 0 };
	autofree char *block = malloc(BLOCK);
	json_auto_t *records = json_array();
	struct search s = { .ask = ask, .records = records, .block = block };
	autofd int dir = -1;
	bool more = false;
	int r = block && records ? cordon_home_subdir(home, "audit", &dir, err) : -ENOMEM;

	if (r == -ENOMEM)
		return cordon_fail_errno(err, r, "cannot read the audit log");
	if (r == 0)
		r = cordon_chain_view(dir, 0, &view, err);
	if (r < 0)
		return r;
	for (size_t i = view.n_files; i-- > 0 && !more;) {
		if (view.files[i].fd >= 0)
			r = search_file(&s, &view.files[i], &more);
		if (r < 0)
			return cordon_fail_errno(err, r, "cannot read the audit log %s", view.files[i].name);
	}
	if (ret_more)
		*ret_more = more;
	*ret_records = cordon_steal_ptr(&records);
	return 0;
}
