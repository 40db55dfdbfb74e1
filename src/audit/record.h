/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns one record into text, and back. A line is `{"v":1,"seq":N,"prev":"<sha-256>","time":"…",` followed by a body
 * that starts with "event" and ends with "}". The front is known only under the log's lock, the body before that.
 *
 * INVARIANT: a rendered line is valid JSON in printable UTF-8 without control characters, with at most
 * CORDON_AUDIT_LINE_MAX bytes including its newline, whatever bytes the event contains.
 *
 * A log is read line by line with the hash of each line, in bounded memory whatever the file contains.
 */
#ifndef CORDON_AUDIT_RECORD_H
#define CORDON_AUDIT_RECORD_H

#include <sys/types.h>

#include "audit/audit.h"
#include "base/buf.h"

#define CORDON_AUDIT_VERSION 1
#define CORDON_AUDIT_LINE_MAX 8192
#define CORDON_AUDIT_HASH_SIZE 65 /* SHA-256 in lower-case hexadecimal and a NUL */
/* The `prev` of the very first record. */
#define CORDON_AUDIT_HASH_NONE "0000000000000000000000000000000000000000000000000000000000000000"

/* Appends the body. If it does not fit, fields are cut one by one and named in "cut". `ids` may be NULL. */
int cordon_audit_render_body(const struct cordon_audit_ids *ids, const struct cordon_audit_event *event,
			     struct cordon_buf *ret_body);
/* Appends the whole line with its newline. */
int cordon_audit_render_line(uint64_t seq, const char *prev, int64_t time, const char *body, size_t n,
			     struct cordon_buf *ret_line);

/* A parsed line. Strings belong to `object`; a missing field is NULL. */
struct cordon_audit_record {
	json_t *object;
	uint64_t seq;
	int64_t time;
	cordon_audit_type type; /* CORDON_AUDIT__MAX for an event that this version does not know */
	const char *event;
	const char *prev;
	const char *session_id;
};

#define autorecord CORDON_CLEANUP(cordon_audit_record_done)

/* `line` is without its newline. -EINVAL when it is no record of this version; then there is nothing to release. */
int cordon_audit_parse(const char *line, size_t n, struct cordon_audit_record *ret_record);
void cordon_audit_record_done(struct cordon_audit_record *record);
/* The number and the time (CORDON_TIME_SIZE - 1 bytes in `line`) at the front of a line, which costs much less than
 * parsing it. False when it does not begin as cordon_audit_render_line() writes it; then it may be a record all the
 * same. */
bool cordon_audit_front(const char *line, size_t n, uint64_t *ret_seq, const char **ret_time);

/* A string or number in `detail`; NULL or 0 when there is none. */
const char *cordon_audit_detail_text(const struct cordon_audit_record *record, const char *key);
uint64_t cordon_audit_detail_number(const struct cordon_audit_record *record, const char *key);

/* ---- lines ---- */

struct cordon_line {
	off_t start;
	off_t end;			   /* behind the newline, when there is one */
	bool whole;			   /* ends in a newline; only the last line of a file may not */
	const char *text;		   /* without the newline; NULL when it is too long for a record */
	size_t n;			   /* length of the line, also when it is too long */
	char hash[CORDON_AUDIT_HASH_SIZE]; /* of the n bytes */
};

struct cordon_lines {
	int fd; /* borrowed */
	off_t at, limit;
	size_t pos, have;
	char buf[8 * CORDON_AUDIT_LINE_MAX];
};

/* From offset `at` to `limit`, or to the end of the file when that comes first. */
void cordon_lines_init(struct cordon_lines *lines, int fd, off_t at, off_t limit);
/* 1 and a line (valid until the next call), 0 at the end, or -errno. */
int cordon_lines_next(struct cordon_lines *lines, struct cordon_line *ret_line);

/* SHA-256 in hexadecimal. */
void cordon_audit_hash(const char *bytes, size_t n, char ret[static CORDON_AUDIT_HASH_SIZE]);

#endif
