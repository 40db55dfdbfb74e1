/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the tables of tests/cases: one case per line, fields separated by tabs. */
#ifndef CORDON_TESTS_CASES_H
#define CORDON_TESTS_CASES_H

#include "unit.h"

#include "base/buf.h"
#include "base/io.h"

#define CASES_FIELDS_MAX 8

/*
 * Calls `row` with the fields of each line of tests/cases/NAME and returns how many there were. A line that starts
 * with # is a comment where the table has any; a line with another number of fields fails the test.
 */
static inline size_t cases_each(const char *name, bool comments, size_t fields,
				void (*row)(char **field, const char *where))
{
	autobuf struct cordon_buf text = CORDON_BUF(1 << 20);
	char where[512], path[512];
	size_t rows = 0, line = 0;

	snprintf(path, sizeof(path), "%s/%s", getenv("CORDON_CASES"), name);
	assert_int_equal(cordon_read_file(AT_FDCWD, path, 0, &text, NULL), 0);
	for (char *p = text.data, *end; *p; p = end + 1) {
		char *field[CASES_FIELDS_MAX] = { 0 };
		size_t n = 0;

		end = strchr(p, '\n');
		assert_non_null(end);
		*end = '\0';
		snprintf(where, sizeof(where), "%s:%zu", name, ++line);
		if (comments && (!*p || *p == '#'))
			continue;
		for (char *f = p; f && n < CASES_FIELDS_MAX; n++) {
			field[n] = f;
			f = strchr(f, '\t');
			if (f)
				*f++ = '\0';
		}
		if (n != fields) {
			fail_msg("%s has %zu fields, not %zu", where, n, fields);
			continue;
		}
		row(field, where);
		rows++;
	}
	return rows;
}

#endif
