/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the audit log share: a home of their own, and looks at the log. */
#ifndef CORDON_TESTS_AUDIT_LOG_H
#define CORDON_TESTS_AUDIT_LOG_H

#include "unit.h"

#include "audit/verify.h"
#include "base/io.h"

#define LOG "home/state/audit/audit.jsonl"
#define OLD "home/state/audit/audit-000001.jsonl"
#define HEAD "home/state/audit/head"

static struct cordon_home home = CORDON_HOME_NONE;

static inline int setup(void **state)
{
	char path[2 * UNIT_PATH];

	if (unit_setup(state) < 0)
		return -1;
	snprintf(path, sizeof(path), "%s/home", unit_dir);
	setenv("CORDON_HOME", path, 1);
	return cordon_home_open(&home, NULL);
}

static inline int teardown(void **state)
{
	cordon_home_done(&home);
	return unit_teardown(state);
}

static inline struct cordon_audit *open_audit(const char *run)
{
	const struct cordon_audit_ids ids = { .session_id = run };
	struct cordon_audit *audit = NULL;
	struct cordon_error err = { 0 };

	assert_int_equal(cordon_audit_open(&home, &ids, &audit, &err), 0);
	return audit;
}

static inline void write_event(struct cordon_audit *audit, cordon_audit_type type, const char *path)
{
	const struct cordon_audit_event event = { .type = type, .path = path };
	struct cordon_error err = { 0 };
	int r = cordon_audit_write(audit, &event, &err);

	if (r < 0)
		print_error("%s\n", err.message);
	assert_int_equal(r, 0);
}

static inline char *read_text(const char *path, size_t *ret_n)
{
	struct cordon_buf buf = CORDON_BUF(64 << 20);

	assert_int_equal(cordon_read_file(AT_FDCWD, path, 0, &buf, NULL), 0);
	if (ret_n)
		*ret_n = buf.len;
	return cordon_buf_steal(&buf);
}

static inline void write_bytes(const char *path, int flags, const char *bytes, size_t n)
{
	autofd int fd = open(path, O_WRONLY | O_CLOEXEC | flags, 0600);

	assert_true(fd >= 0);
	assert_int_equal(cordon_write_all(fd, bytes, n), 0);
}

static inline struct cordon_audit_report verify(void)
{
	struct cordon_audit_report report;
	struct cordon_error err = { 0 };

	assert_int_equal(cordon_audit_verify(&home, &(struct cordon_audit_part){ 0 }, &report, &err), 0);
	return report;
}

static inline void expect_whole(uint64_t records)
{
	struct cordon_audit_report report = verify();

	if (report.breaks)
		print_error("%s:%d: %s\n", report.first_break.file, (int)report.first_break.line,
			    report.first_break.reason);
	assert_int_equal(report.breaks, 0);
	assert_int_equal(report.records, records);
}

static inline size_t count_text(const char *path, const char *word)
{
	autofree char *text = read_text(path, NULL);
	size_t n = 0;

	for (const char *p = text; (p = strstr(p, word)); p++)
		n++;
	return n;
}

#define in_home(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

#endif
