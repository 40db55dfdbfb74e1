/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the audit log: selects records, formats them, and waits for more. A reader holds the log's lock only while
 * it lists the files, so it never sees half of a record and never delays a writer.
 */
#ifndef CORDON_AUDIT_QUERY_H
#define CORDON_AUDIT_QUERY_H

#include "audit/record.h"

/* What to show; zero means all. */
struct cordon_audit_filter {
	bool calls; /* of a search: the log of clients' calls, and not that of everything else. A reader reads both, by time */
	bool has_since, has_until;
	int64_t since, until; /* milliseconds since 1970; `until` is not included */
	uint32_t types;	      /* bit (1 << type) for each that is wanted */
	const char *run;      /* beginning of a session id */
	const char *agent;    /* part of the name of an agent or orchestrator */
	const char *path;     /* part of a path or host; this and `agent` as cordon_audit_as_logged() returns them */
	const char *decision; /* "allow", "warn", "deny" */
};

#define CORDON_AUDIT_RUN_MIN 4 /* characters of a session id that must be given */

/* "10m" before `now`, or a time in RFC 3339 (base/time.h). The other is the end. */
int cordon_audit_since_parse(const char *text, int64_t now, struct cordon_audit_filter *filter,
			     struct cordon_error *err);
int cordon_audit_until_parse(const char *text, int64_t now, struct cordon_audit_filter *filter,
			     struct cordon_error *err);
/* Adds the events of a comma-separated list. An unknown one is an error that lists the known ones. */
int cordon_audit_kinds_parse(const char *list, struct cordon_audit_filter *filter, struct cordon_error *err);
/* Sets the decision; any other word than those of struct cordon_audit_event is an error. `decision` is borrowed. */
int cordon_audit_decision_parse(const char *decision, struct cordon_audit_filter *filter, struct cordon_error *err);
/* Sets the run; too few characters, or characters that no id has, are an error. `run` is borrowed. */
int cordon_audit_run_parse(const char *run, struct cordon_audit_filter *filter, struct cordon_error *err);

/* A part of a path, host or name as the log has it: escaped, unless it is safe already, as what was copied from a
 * listing is. The result may be `text` itself, or lies in `buf`; NULL without memory. */
const char *cordon_audit_as_logged(const char *text, struct cordon_buf *buf);

bool cordon_audit_match(const struct cordon_audit_filter *filter, const struct cordon_audit_record *record);

/*
 * Appends the record as one line for a person, without a newline: time, event, first characters of the run, what
 * happened. Safe for a terminal whatever the log contains; `colour` adds escape sequences of our own.
 */
int cordon_audit_format(const struct cordon_audit_record *record, bool colour, struct cordon_buf *ret_text);
/* The last part of that: " deny write src/x rule=src/**". */
int cordon_audit_format_what(const struct cordon_audit_record *record, struct cordon_buf *ret_text);

/* How a record is shown among others. */
typedef enum cordon_audit_tone {
	CORDON_AUDIT_TONE_PLAIN,
	CORDON_AUDIT_TONE_CHANGE,  /* somebody changed what holds */
	CORDON_AUDIT_TONE_LOOK,	   /* a person should look at it */
	CORDON_AUDIT_TONE_REFUSED, /* something was refused, or a protection lost */
} cordon_audit_tone;
cordon_audit_tone cordon_audit_tone_of(const struct cordon_audit_record *record);

/* One line of the log; strings and record belong to the reader until the next call. */
struct cordon_audit_item {
	const char *file; /* below state/audit */
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

/*
 * A search from the newest record to the oldest, for a log of any size: it reads from the end, and parses only what may
 * match. What is damaged is passed over.
 */
struct cordon_audit_search {
	struct cordon_audit_filter filter;
	uint64_t before;  /* only records with a lower number; 0: all */
	uint64_t bytes;	  /* how much of the log before that is looked at; 0: all of it */
	int64_t deadline; /* of cordon_time_monotonic(); 0: none */
	void *data;
	/* Gets each record that matches, and its line; false ends the search. */
	bool (*take)(void *data, const struct cordon_audit_record *record, const char *line, size_t n);
};

/* How far a search came. */
struct cordon_audit_searched {
	uint64_t bytes;	  /* that were looked at */
	uint64_t records; /* that were looked at */
	uint64_t seq;	  /* number of the oldest of them; 0: none */
	bool more;	  /* the log goes on before that */
};

int cordon_audit_search(const struct cordon_home *home, const struct cordon_audit_search *search,
			struct cordon_audit_searched *ret_searched, struct cordon_error *err);

/* The newest records that match. */
struct cordon_audit_latest {
	struct cordon_audit_filter filter;
	uint64_t before; /* as in a search */
	size_t max;	 /* records */
	uint64_t bytes;
};

/* Returns an array of records as they are in the log, newest first. *ret_more (may be NULL) is whether the log goes on
 * before the point at which the search ended. */
int cordon_audit_latest(const struct cordon_home *home, const struct cordon_audit_latest *ask, json_t **ret_records,
			bool *ret_more, struct cordon_error *err);

/* How much there is of a log: of that of calls, or of the other one. */
struct cordon_audit_extent {
	size_t files;
	uint64_t bytes;
};
int cordon_audit_extent(const struct cordon_home *home, bool calls, struct cordon_audit_extent *ret_extent,
			struct cordon_error *err);

/* Returns an object with the id of every run that has a record that matches, in the order of the log, and the time of
 * the first such record. */
int cordon_audit_runs(const struct cordon_home *home, const struct cordon_audit_filter *filter, json_t **ret_runs,
		      struct cordon_error *err);

/* A descriptor that becomes readable when the log changes, made at the first call; -errno. */
int cordon_audit_reader_fd(struct cordon_audit_reader *reader, struct cordon_error *err);
/* Looks for new records; a rotation in between loses nothing. -ENOENT when the directory is gone. */
int cordon_audit_reader_refresh(struct cordon_audit_reader *reader, struct cordon_error *err);

#endif
