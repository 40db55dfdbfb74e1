/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the audit log: selects records, formats them, and waits for more. A reader holds the log's lock only while
 * it lists the files, so it never sees half of a record and never delays a writer.
 */
#ifndef CORDON_AUDIT_QUERY_H
#define CORDON_AUDIT_QUERY_H

#include "audit/lines.h"

/* What to show; zero means all. */
struct cordon_audit_filter {
	bool has_since;
	int64_t since;	 /* milliseconds since 1970 */
	uint32_t types;	 /* bit (1 << type) for each that is wanted */
	const char *run; /* beginning of a session id */
};

#define CORDON_AUDIT_RUN_MIN 4 /* characters of a session id that must be given */

/* "10m" before `now`, or a time in RFC 3339 (base/time.h). */
int cordon_audit_since_parse(const char *text, int64_t now, struct cordon_audit_filter *filter,
			     struct cordon_error *err);
/* Adds the events of a comma-separated list. An unknown one is an error that lists the known ones. */
int cordon_audit_kinds_parse(const char *list, struct cordon_audit_filter *filter, struct cordon_error *err);
/* Sets the run; too few characters, or characters that no id has, are an error. `run` is borrowed. */
int cordon_audit_run_parse(const char *run, struct cordon_audit_filter *filter, struct cordon_error *err);

bool cordon_audit_match(const struct cordon_audit_filter *filter, const struct cordon_audit_record *record);

/*
 * Appends the record as one line for a person, without a newline: time, event, first characters of the run, what
 * happened. Safe for a terminal whatever the log contains; `colour` adds escape sequences of our own.
 */
int cordon_audit_format(const struct cordon_audit_record *record, bool colour, struct cordon_buf *ret_text);

/* One line of the log; strings and record belong to the reader until the next call. */
struct cordon_audit_item {
	const char *file;
	uint64_t line;
	const char *text; /* as it is in the file, without the newline; NULL when it is too long */
	size_t n;
	bool damaged; /* it is no record, and `record` is empty */
	struct cordon_audit_record record;
};

struct cordon_audit_reader;

/* Skips files that were last written before `filter->since`; the caller does the other filtering with
 * cordon_audit_match(). */
int cordon_audit_reader_new(const struct cordon_home *home, const struct cordon_audit_filter *filter,
			    struct cordon_audit_reader **ret_reader, struct cordon_error *err);
struct cordon_audit_reader *cordon_audit_reader_free(struct cordon_audit_reader *reader);
/* Returns 1 and an item, 0 when there is nothing more for now, or -errno. */
int cordon_audit_reader_next(struct cordon_audit_reader *reader, struct cordon_audit_item *ret_item,
			     struct cordon_error *err);

/* The newest records that match. */
struct cordon_audit_latest {
	struct cordon_audit_filter filter;
	uint64_t before; /* only records with a lower number; 0: all */
	size_t max;	 /* records */
	uint64_t bytes;	 /* about how much of the end of the log is looked at; 0: all of it */
};

/* Returns an array of records as they are in the log, newest first. *ret_more (may be NULL) is whether the log goes on before the
 * point at which the search ended. What is damaged is passed over. */
int cordon_audit_latest(const struct cordon_home *home, const struct cordon_audit_latest *ask, json_t **ret_records,
			bool *ret_more, struct cordon_error *err);

/* Returns an object with the id of every run that has a record that matches, in the order of the log, and the time of the
 * first such record. */
int cordon_audit_runs(const struct cordon_home *home, const struct cordon_audit_filter *filter, json_t **ret_runs,
		      struct cordon_error *err);

/* A descriptor that becomes readable when the log changes, made at the first call; -errno. */
int cordon_audit_reader_fd(struct cordon_audit_reader *reader, struct cordon_error *err);
/* Looks for new records; a rotation in between loses nothing. -ENOENT when the directory is gone. */
int cordon_audit_reader_refresh(struct cordon_audit_reader *reader, struct cordon_error *err);

#endif
