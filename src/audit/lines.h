/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a log line by line with the hash of each line, in bounded memory whatever the file contains. */
#ifndef CORDON_AUDIT_LINES_H
#define CORDON_AUDIT_LINES_H

#include <sys/types.h>

#include "audit/record.h"

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
