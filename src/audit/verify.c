/* SPDX-License-Identifier: Apache-2.0 */
/* Checks whether the audit log is complete: every line follows from the one before it, and the last line is the one
 * that was written last. */
#include <stdarg.h>
#include <stdio.h>

#include "audit/verify.h"
#include "base/time.h"

#define LINES_BETWEEN_LOOKS 1000 /* at the clock */

/* A place in the log. */
struct place {
	const char *file;
	uint64_t line;
};

struct state {
	const struct cordon_chain_view *view;
	const struct cordon_audit_part *part;
	struct cordon_audit_report report;
	/* The last line determines what must come next; not known at the beginning of a pruned log. */
	uint64_t seq;
	struct place last;
	char hash[CORDON_AUDIT_HASH_SIZE];
	bool known;
	bool head_met; /* the chain has passed the place to which the head points */
	/* A line that does not continue the chain is held until the next record, which may explain it. */
	bool held;
	char held_hash[CORDON_AUDIT_HASH_SIZE];
	char held_reason[128];
	size_t held_size;
	struct place held_place;
	/* The oldest record, when the log does not begin with file 1, and whether a later record says why. */
	struct place first;
	uint64_t first_seq;
	char first_prev[CORDON_AUDIT_HASH_SIZE];
	bool pruned;
};

CORDON_PRINTF(3, 4)
static void fill_finding(struct cordon_audit_finding *finding, struct place place, const char *fmt, ...)
{
	va_list args;

	snprintf(finding->file, sizeof(finding->file), "%s", place.file);
	finding->line = place.line;
	va_start(args, fmt);
	vsnprintf(finding->reason, sizeof(finding->reason), fmt, args);
	va_end(args);
}

#define report_break(s, place, ...)                                                                                    \
	do {                                                                                                           \
		if ((s)->report.breaks++ == 0)                                                                         \
			fill_finding(&(s)->report.first_break, (place), __VA_ARGS__);                                  \
	} while (0)

static void report_torn(struct state *s, struct place place, const char *what)
{
	if (s->report.torn++ == 0)
		fill_finding(&s->report.first_torn, place, "%s", what);
}

/* The held line was not explained, so it broke the chain. */
static void report_held(struct state *s)
{
	if (!s->held)
		return;
	report_break(s, s->held_place, "%s", s->held_reason);
	s->held = false;
	memcpy(s->hash, s->held_hash, sizeof(s->hash));
	s->last = s->held_place;
}

static void hold_line(struct state *s, struct place place, const struct cordon_line *line, const char *reason)
{
	report_held(s);
	s->held = true;
	s->held_place = place;
	s->held_size = line->n;
	memcpy(s->held_hash, line->hash, sizeof(s->held_hash));
	snprintf(s->held_reason, sizeof(s->held_reason), "%s", reason);
}

/* Whether this is the `repaired` record of an unfinished line directly before it, which is then no break. */
static bool explains_held(const struct state *s, const struct cordon_audit_record *record)
{
	const char *reason = cordon_audit_detail_text(record, "reason");

	return s->held && s->known && record->type == CORDON_AUDIT_REPAIRED && reason && cordon_streq(reason, "torn") &&
	       cordon_audit_detail_number(record, "bytes") == s->held_size && record->seq == s->seq + 1 &&
	       cordon_streq(record->prev, s->held_hash);
}

/* Uses what a record of the chain says about the log itself. */
static void apply_record(struct state *s, struct place place, const struct cordon_audit_record *record)
{
	const char *reason = cordon_audit_detail_text(record, "reason");
	const char *hash = cordon_audit_detail_text(record, "last_hash");

	if (record->type == CORDON_AUDIT_REPAIRED && reason && cordon_streq(reason, "no_head"))
		report_break(s, place,
			     "the head of the log was missing here: records before this line may have been removed");
	if (record->type == CORDON_AUDIT_PRUNED && hash && cordon_streq(hash, s->first_prev) &&
	    cordon_audit_detail_number(record, "last_seq") + 1 == s->first_seq)
		s->pruned = true;
}

static void judge_record(struct state *s, struct place place, const struct cordon_line *line,
			 const struct cordon_audit_record *record)
{
	if (!s->known) {
		s->first_seq = record->seq;
		memcpy(s->first_prev, record->prev, sizeof(s->first_prev));
		s->first = place;
	} else if (explains_held(s, record)) {
		report_torn(s, s->held_place, "an unfinished line of a writer that died; repaired");
		s->held = false;
	} else {
		report_held(s);
		if (record->seq > s->seq + 1)
			report_break(s, place, "record %llu expected, %llu found: records were removed or reordered",
				     (unsigned long long)s->seq + 1, (unsigned long long)record->seq);
		else if (record->seq <= s->seq)
			report_break(s, place, "record %llu expected, %llu found: a record was inserted or reordered",
				     (unsigned long long)s->seq + 1, (unsigned long long)record->seq);
		else if (!cordon_streq(record->prev, s->hash))
			report_break(s, s->last.file ? s->last : place,
				     "changed after it was written: the next record names another hash");
	}
	if (!s->report.first_seq)
		s->report.first_seq = record->seq;
	s->known = true;
	s->seq = record->seq;
	memcpy(s->hash, line->hash, sizeof(s->hash));
	s->last = place;
	s->report.records++;
	if (s->part->seq && record->seq == s->part->seq)
		memcpy(s->report.seq_hash, line->hash, sizeof(s->report.seq_hash));
	apply_record(s, place, record);
}

/* At the place to which the head points, the chain must be as the head says. */
static void judge_head(struct state *s, struct place place)
{
	const struct cordon_chain_head *head = &s->view->head;

	s->head_met = true;
	if (s->held || s->seq != head->seq)
		report_break(s, place, "the log stands at record %llu here, its head at %llu",
			     (unsigned long long)s->seq, (unsigned long long)head->seq);
	else if (!cordon_streq(s->hash, head->hash))
		report_break(s, place, "changed after it was written: the head of the log names another hash");
}

static void judge_line(struct state *s, bool current, struct place place, const struct cordon_line *line)
{
	autorecord struct cordon_audit_record record = { 0 };
	bool parsed = line->text && cordon_audit_parse(line->text, line->n, &record) == 0;
	bool follows = parsed && s->known && record.seq == s->seq + 1 && cordon_streq(record.prev, s->hash);

	if (parsed && (line->whole || follows))
		judge_record(s, place, line, &record);
	else if (line->whole)
		hold_line(s, place, line, line->text ? "not a record" : "not a record: too long");
	else if (current && s->head_met)
		report_torn(s, place, "an unfinished last line of a writer that died; the next writer repairs it");
	else
		hold_line(s, place, line, "cut off: the line is not complete");
}

static int judge_file(struct state *s, const struct cordon_chain_file *file, struct cordon_lines *lines)
{
	bool current = file == &s->view->files[s->view->n_files - 1];
	bool good = s->view->state == CORDON_HEAD_GOOD;
	struct place place = { .file = file->name };
	struct cordon_line line;
	int r = 0;

	if (current && good && s->view->head.size == 0)
		judge_head(s, s->last.file ? s->last : place);
	if (file->fd < 0)
		return 0;
	s->report.files++;
	cordon_lines_init(lines, file->fd, 0, file->size);
	while (!s->report.stopped && (r = cordon_lines_next(lines, &line)) > 0) {
		place.line++;
		s->report.stopped = s->part->deadline && place.line % LINES_BETWEEN_LOOKS == 0 &&
				    cordon_time_monotonic() >= s->part->deadline;
		judge_line(s, current, place, &line);
		if (current && good && !s->head_met && (uint64_t)line.end == s->view->head.size)
			judge_head(s, place);
	}
	return r;
}

/* Checks what is known only when everything was read. */
static void judge_whole(struct state *s)
{
	const struct cordon_chain_view *view = s->view;
	struct place end = s->last.file ? s->last : (struct place){ .file = CORDON_CHAIN_LOG };

	report_held(s);
	if (s->first.file && !s->pruned && s->report.whole) {
		/* This is the earliest place, whatever was found behind it. */
		s->report.breaks++;
		fill_finding(&s->report.first_break, s->first,
			     "record 1 expected, %llu found: the beginning was removed",
			     (unsigned long long)s->first_seq);
	}
	if (view->state == CORDON_HEAD_DAMAGED || (view->state == CORDON_HEAD_MISSING && s->last.file))
		report_break(s, ((struct place){ .file = "head" }), "%s: records at the end may have been removed",
			     view->state == CORDON_HEAD_MISSING ? "missing" : "damaged");
	else if (view->state == CORDON_HEAD_GOOD && !s->head_met)
		report_break(s, end, "the log ends at record %llu or is not what was written, its head stands at %llu",
			     (unsigned long long)s->seq, (unsigned long long)view->head.seq);
}

int cordon_audit_verify(const struct cordon_home *home, const struct cordon_audit_part *part,
			struct cordon_audit_report *ret_report, struct cordon_error *err)
{
	struct cordon_lines lines;
	autochain struct cordon_chain_view view = { 0 };
	struct state s = { .view = &view, .part = part, .hash = CORDON_AUDIT_HASH_NONE };
	autofd int dir_fd = -1;
	size_t from;
	int r = cordon_home_subdir(home, cordon_chain_dir(part->calls), &dir_fd, err);

	if (r == 0)
		r = cordon_chain_view(dir_fd, 0, &view, err);
	if (r < 0)
		return r;
	from = part->files && part->files < view.n_files ? view.n_files - part->files : 0;
	s.report.whole = from == 0;
	s.known = view.n_files > 0 && view.files[from].number == 1;
	for (size_t i = from; i < view.n_files && !s.report.stopped; i++) {
		r = judge_file(&s, &view.files[i], &lines);
		if (r < 0)
			return cordon_fail_errno(err, r, "cannot read the audit log %s", view.files[i].name);
	}
	if (!s.report.stopped)
		judge_whole(&s);
	s.report.whole &= !s.report.stopped;
	s.report.last_seq = s.seq;
	memcpy(s.report.last_hash, s.hash, sizeof(s.hash));
	*ret_report = s.report;
	return 0;
}
