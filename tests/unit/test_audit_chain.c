/* SPDX-License-Identifier: Apache-2.0 */
/* The audit log on disk: a chain that shows every change, repair after a crash, and rotation. */
#include "audit_log.h"

#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>

#include "audit/chain.h"

/* Writes `n` records with a handle of their own. */
static void write_some(int n)
{
	struct cordon_audit *audit = open_audit("some");

	for (int i = 0; i < n; i++)
		write_event(audit, CORDON_AUDIT_GRANT, "x");
	cordon_audit_close(audit);
}

static void expect_break(const char *file, uint64_t line, const char *word)
{
	struct cordon_audit_report report = verify();

	assert_true(report.breaks > 0);
	assert_string_equal(report.first_break.file, file);
	if (report.first_break.line != line || !strstr(report.first_break.reason, word))
		print_error("%d: %s\n", (int)report.first_break.line, report.first_break.reason);
	assert_int_equal(report.first_break.line, line);
	assert_non_null(strstr(report.first_break.reason, word));
}

/* Calls `edit` on the lines of the log and writes back what is left; NULL removes a line. */
static void edit_log(void (*edit)(char *lines[], size_t n))
{
	size_t size, n = 0;
	autofree char *text = read_text(LOG, &size);
	autobuf struct cordon_buf out = CORDON_BUF(1 << 20);
	char *lines[64];

	for (char *p = text; *p && n < 64;) {
		char *newline = strchr(p, '\n');

		assert_non_null(newline);
		*newline = '\0';
		lines[n++] = p;
		p = newline + 1;
	}
	edit(lines, n);
	for (size_t i = 0; i < n; i++)
		if (lines[i])
			assert_int_equal(cordon_buf_addf(&out, "%s\n", lines[i]), 0);
	write_bytes(LOG, O_TRUNC, out.data, out.len);
}

/* ---- the chain ---- */

static void log_is_private_and_each_line_names_the_one_before(void **state)
{
	struct stat st;
	autofree char *text = NULL;
	char hash[CORDON_AUDIT_HASH_SIZE], want[100] = "\"prev\":\"" CORDON_AUDIT_HASH_NONE "\"";

	(void)state;
	write_some(3);
	text = read_text(LOG, NULL);
	for (char *p = text, *newline; (newline = strchr(p, '\n')); p = newline + 1) {
		*newline = '\0';
		assert_non_null(strstr(p, want));
		cordon_audit_hash(p, (size_t)(newline - p), hash);
		snprintf(want, sizeof(want), "\"prev\":\"%s\"", hash);
	}
	expect_whole(3);
	assert_string_equal(verify().last_hash, hash);
	assert_int_equal(stat(LOG, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(stat(HEAD, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
}

static void change_one(char *lines[], size_t n)
{
	(void)n;
	*strstr(lines[2], "\"x\"") = '\'';
	lines[2][strlen(lines[2]) - 1] = '}';
}

static void change_value(char *lines[], size_t n)
{
	(void)n;
	strstr(lines[2], "\"x\"")[1] = 'y';
}

static void change_last(char *lines[], size_t n)
{
	strstr(lines[n - 1], "\"x\"")[1] = 'y';
}

static void remove_one(char *lines[], size_t n)
{
	(void)n;
	lines[2] = NULL;
}

static void remove_first(char *lines[], size_t n)
{
	(void)n;
	lines[0] = NULL;
}

static void remove_last_two(char *lines[], size_t n)
{
	lines[n - 1] = lines[n - 2] = NULL;
}

static void remove_all(char *lines[], size_t n)
{
	memset(lines, 0, n * sizeof(*lines));
}

static void swap_two(char *lines[], size_t n)
{
	char *line = lines[2];

	(void)n;
	lines[2] = lines[3];
	lines[3] = line;
}

static void repeat_one(char *lines[], size_t n)
{
	(void)n;
	lines[3] = lines[2];
}

static void every_edit_of_the_log_is_found_at_its_line(void **state)
{
	static const struct {
		void (*edit)(char *lines[], size_t n);
		uint64_t line;
		const char *word;
	} cases[] = {
		{ change_one, 3, "not a record" },
		{ change_value, 3, "changed after it was written" },
		{ change_last, 6, "changed after it was written" },
		{ remove_one, 3, "records were removed" },
		{ remove_first, 1, "record 1 expected, 2 found" },
		{ remove_last_two, 4, "ends at record 4" },
		{ remove_all, 0, "ends at record 0" },
		{ swap_two, 3, "record 3 expected, 4 found" },
		{ repeat_one, 4, "a record was inserted" },
	};

	(void)state;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(cases); i++) {
		unlink(LOG);
		unlink(HEAD);
		write_some(6);
		expect_whole(6);
		edit_log(cases[i].edit);
		expect_break("audit.jsonl", cases[i].line, cases[i].word);
		/* The next writer must not hide the damage. */
		write_some(1);
		assert_true(verify().breaks > 0);
	}
}

static void cut_tail_stays_visible_after_the_next_record(void **state)
{
	(void)state;
	write_some(6);
	edit_log(remove_last_two);
	write_some(2);
	assert_int_equal(count_text(LOG, "\"reason\":\"lost\",\"records\":2"), 1);
	expect_break("audit.jsonl", 5, "record 5 expected, 7 found");
}

static void inserted_line_is_found(void **state)
{
	(void)state;
	write_some(2);
	write_bytes(LOG, O_APPEND, "{\"forged\":true}\n", 16);
	expect_break("audit.jsonl", 3, "not a record");
	write_some(1);
	assert_int_equal(count_text(LOG, "\"reason\":\"foreign\",\"lines\":1"), 1);
	expect_break("audit.jsonl", 3, "not a record");
}

static void missing_head_or_log_is_found(void **state)
{
	(void)state;
	write_some(3);
	unlink(HEAD);
	expect_break("head", 0, "missing");
	write_some(1);
	assert_int_equal(count_text(LOG, "\"reason\":\"no_head\""), 1);
	expect_break("audit.jsonl", 4, "head of the log was missing");
	unlink(LOG);
	unlink(HEAD);
	write_some(3);
	unlink(LOG);
	expect_break("audit.jsonl", 0, "its head stands at 3");
	write_some(1);
	assert_true(verify().breaks > 0);
	unlink(LOG);
	unlink(HEAD);
	write_some(3);
	unit_write(HEAD, "cordon-audit-head 1 rubbish\n");
	expect_break("head", 0, "damaged");
}

static void torn_line_is_noted_then_repaired_with_a_record(void **state)
{
	static const char torn[] = "{\"v\":1,\"seq\":4,\"prev\":\"00";
	struct cordon_audit_report report;

	(void)state;
	write_some(3);
	write_bytes(LOG, O_APPEND, torn, sizeof(torn) - 1);
	expect_whole(3);
	report = verify();
	assert_int_equal(report.torn, 1);
	assert_int_equal(report.first_torn.line, 4);
	write_some(2);
	assert_int_equal(count_text(LOG, "\"reason\":\"torn\",\"bytes\":25"), 1);
	expect_whole(6);
	report = verify();
	assert_int_equal(report.torn, 1);
	assert_int_equal(report.first_torn.line, 4);
	assert_non_null(strstr(report.first_torn.reason, "repaired"));
}

static void torn_first_line_is_repaired_too(void **state)
{
	(void)state;
	write_some(1);
	unit_write(LOG, "{\"v\":1");
	unit_write(HEAD,
		   "cordon-audit-head 1 00000000000000000000 00000000000000000001 00000000000000000000 " CORDON_AUDIT_HASH_NONE
		   "\n");
	assert_int_equal(verify().torn, 1);
	write_some(1);
	expect_whole(2);
	assert_int_equal(verify().torn, 1);
}

static void torn_line_that_was_changed_later_is_a_break(void **state)
{
	autofree char *text = NULL;
	size_t n;

	(void)state;
	write_some(3);
	write_bytes(LOG, O_APPEND, "{\"v\":1,\"seq\"", 12);
	write_some(1);
	expect_whole(5);
	text = read_text(LOG, &n);
	strstr(text, "{\"v\":1,\"seq\"\n")[2] = 'w';
	write_bytes(LOG, O_TRUNC, text, n);
	expect_break("audit.jsonl", 4, "not a record");
}

/* A writer that dies between its two writes leaves a record that the head does not count. */
static void record_behind_the_head_is_taken_over(void **state)
{
	autofree char *head = NULL;
	size_t n;

	(void)state;
	write_some(2);
	head = read_text(HEAD, &n);
	write_some(2);
	write_bytes(HEAD, O_TRUNC, head, n);
	expect_whole(4);
	write_some(1);
	expect_whole(5);
	/* Without its newline it is still a complete record. */
	write_bytes(HEAD, O_TRUNC, head, n);
	assert_int_equal(truncate(LOG, lseek(open(LOG, O_RDONLY | O_CLOEXEC), 0, SEEK_END) - 1), 0);
	expect_whole(5);
	write_some(1);
	expect_whole(6);
	assert_int_equal(verify().torn, 0);
	assert_int_equal(count_text(LOG, "repaired"), 0);
}

static void record_that_does_not_fit_on_the_disk_leaves_no_trace(void **state)
{
	struct rlimit before, small;
	struct cordon_audit *audit = open_audit("full");
	const struct cordon_audit_event event = { .type = CORDON_AUDIT_VIOLATION, .path = "x" };
	struct cordon_error err = { 0 };
	struct stat st, after;

	(void)state;
	write_event(audit, CORDON_AUDIT_START, "x");
	assert_int_equal(stat(LOG, &st), 0);
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	small = (struct rlimit){ .rlim_cur = (rlim_t)st.st_size + 20, .rlim_max = before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	assert_true(cordon_audit_write(audit, &event, &err) < 0);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_int_equal(stat(LOG, &after), 0);
	assert_int_equal(after.st_size, st.st_size);
	write_event(audit, CORDON_AUDIT_END, "x");
	cordon_audit_close(audit);
	expect_whole(3); /* start, dropped, end */
	assert_int_equal(count_text(LOG, "\"count\":1,\"failed\":1"), 1);
}

static void lock_that_somebody_keeps_is_an_error_and_no_hang(void **state)
{
	autofd int other = -1;
	struct cordon_chain chain;
	struct cordon_error err = { 0 };

	(void)state;
	assert_int_equal(cordon_chain_open(&home, &chain, &err), 0);
	chain.wait_ms = 50;
	other = open(HEAD, O_RDWR | O_CLOEXEC);
	assert_int_equal(flock(other, LOCK_EX), 0);
	assert_int_equal(cordon_chain_append(&chain, "\"event\":\"gc\"}", 13, &err), -ETIMEDOUT);
	assert_int_equal(flock(other, LOCK_UN), 0);
	assert_int_equal(cordon_chain_append(&chain, "\"event\":\"gc\"}", 13, &err), 0);
	cordon_chain_done(&chain);
	expect_whole(1);
}

static void log_that_is_no_plain_file_is_refused(void **state)
{
	struct cordon_audit *audit = open_audit("link");
	const struct cordon_audit_event event = { .type = CORDON_AUDIT_START };
	struct cordon_error err = { 0 };

	(void)state;
	unit_write("target", "");
	unit_link("../../../target", LOG);
	assert_true(cordon_audit_write(audit, &event, &err) < 0);
	unlink(LOG);
	assert_int_equal(mkfifo(LOG, 0600), 0);
	assert_true(cordon_audit_write(audit, &event, &err) < 0);
	cordon_audit_close(audit);
	assert_int_equal(count_text("target", "event"), 0);
}

/* ---- rotation ---- */

static void rotation_keeps_one_chain_over_several_files(void **state)
{
	struct cordon_audit *a = open_audit("a"), *b = open_audit("b");

	(void)state;
	cordon_audit_set_rotation(a, 2000, 100);
	cordon_audit_set_rotation(b, 2000, 100);
	for (int i = 0; i < 50; i++)
		write_event(i % 2 ? a : b, CORDON_AUDIT_GRANT, "x");
	cordon_audit_close(a);
	cordon_audit_close(b);
	assert_int_equal(verify().breaks, 0);
	assert_true(verify().files >= 4);
	assert_int_equal(verify().records, 50 + verify().files - 1);
	assert_int_equal(count_text("home/state/audit/audit-000002.jsonl", "\"event\":\"rotated\""), 1);
	assert_int_equal(unlink("home/state/audit/audit-000002.jsonl"), 0);
	expect_break("audit-000003.jsonl", 1, "records were removed");
}

static struct cordon_audit_report verify_part(size_t files, int64_t deadline)
{
	const struct cordon_audit_part part = { .files = files, .deadline = deadline };
	struct cordon_audit_report report = { 0 };

	assert_int_equal(cordon_audit_verify(&home, &part, &report, NULL), 0);
	return report;
}

static void write_call(struct cordon_audit *audit, const char *principal)
{
	const struct cordon_audit_event event = { .type = CORDON_AUDIT_CALL, .principal = principal, .path = principal };

	assert_int_equal(cordon_audit_write(audit, &event, NULL), 0);
}

static void calls_push_out_nothing_else_and_nobody_takes_the_share_of_others(void **state)
{
	static const char calls[] = "home/state/audit/calls/audit.jsonl";
	struct cordon_audit *audit = open_audit("a");
	struct cordon_audit_report report = { 0 };

	(void)state;
	cordon_audit_set_rotation(audit, (uint64_t)4 << 20, 2);
	write_event(audit, CORDON_AUDIT_GRANT, "what matters");
	for (int i = 0; i < 20000; i++)
		write_call(audit, "greedy");
	write_call(audit, "modest");
	write_event(audit, CORDON_AUDIT_CALL, "an act of a person");
	cordon_audit_close(audit);
	/* The log of events has nothing of them. */
	assert_int_equal(verify().breaks, 0);
	assert_int_equal(verify().records, 2);
	assert_int_equal(count_text(LOG, "what matters"), 1);
	assert_int_equal(count_text(LOG, "an act of a person"), 1);
	/* The other one has a share of each, and a count of the rest. */
	assert_int_equal(cordon_audit_verify(&home, &(struct cordon_audit_part){ .calls = true }, &report, NULL), 0);
	assert_int_equal(report.breaks, 0);
	assert_in_range(report.records, 1002, 5000);
	assert_int_equal(count_text(calls, "modest"), 1);
	assert_int_equal(count_text(calls, "\"event\":\"dropped\""), 1);
	assert_int_equal(count_text(calls, "\"principals\":{\"greedy\":"), 1);
	assert_in_range(count_text(calls, "\"path\":\"greedy\""), 1000, 5000);
}

static void part_of_the_log_is_verified_and_called_a_part(void **state)
{
	struct cordon_audit *audit = open_audit("a");
	struct cordon_audit_report all, part;

	(void)state;
	cordon_audit_set_rotation(audit, 2000, 100);
	for (int i = 0; i < 50; i++)
		write_event(audit, CORDON_AUDIT_GRANT, "x");
	cordon_audit_close(audit);
	all = verify_part(0, 0);
	part = verify_part(2, 0);
	assert_true(all.whole && !all.breaks && all.first_seq == 1);
	assert_true(!part.whole && !part.stopped && !part.breaks && part.files == 2 && part.first_seq > 1);
	assert_int_equal(part.last_seq, all.last_seq);
	assert_int_equal(part.records, part.last_seq - part.first_seq + 1);
	assert_true(verify_part(100, 0).whole);
	/* What is wrong in a part is found, and what is wrong before it is none of its business. */
	assert_int_equal(unlink("home/state/audit/audit-000002.jsonl"), 0);
	assert_int_equal(verify_part(2, 0).breaks, 0);
	edit_log(change_one);
	assert_true(verify_part(2, 0).breaks > 0);
}

static void verification_that_runs_out_of_time_says_how_far_it_came(void **state)
{
	struct cordon_audit *audit = open_audit("a");
	struct cordon_audit_report part;

	(void)state;
	for (int i = 0; i < 2500; i++)
		write_event(audit, CORDON_AUDIT_GRANT, "x");
	cordon_audit_close(audit);
	part = verify_part(0, 1);
	assert_true(part.stopped && !part.whole && !part.breaks && part.first_seq == 1);
	assert_true(part.records == part.last_seq && part.last_seq < 2500);
	part = verify_part(0, INT64_MAX);
	assert_true(!part.stopped && part.whole && part.records == 2500);
}

static void pruned_files_leave_a_record_and_an_intact_chain(void **state)
{
	struct cordon_audit *audit = open_audit("a");

	(void)state;
	cordon_audit_set_rotation(audit, 1500, 2);
	for (int i = 0; i < 60; i++)
		write_event(audit, CORDON_AUDIT_GRANT, "x");
	cordon_audit_close(audit);
	assert_int_equal(access(OLD, F_OK), -1);
	assert_int_equal(verify().breaks, 0);
	assert_int_equal(verify().files, 3);
}

static void removed_oldest_file_without_a_record_is_found(void **state)
{
	struct cordon_audit *audit = open_audit("a");

	(void)state;
	cordon_audit_set_rotation(audit, 1500, 50);
	for (int i = 0; i < 20; i++)
		write_event(audit, CORDON_AUDIT_GRANT, "x");
	cordon_audit_close(audit);
	assert_int_equal(verify().breaks, 0);
	assert_int_equal(unlink(OLD), 0);
	expect_break("audit-000002.jsonl", 1, "record 1 expected");
}

/* The head is written before the file is renamed; a writer may die in between, and after. */
static void rotation_that_was_broken_off_is_finished(void **state)
{
	struct cordon_chain_head head;
	struct cordon_audit *waiting = open_audit("waiting");

	(void)state;
	write_event(waiting, CORDON_AUDIT_GRANT, "x");
	for (int stage = 0; stage < 2; stage++) {
		autofd int fd = open(HEAD, O_RDWR | O_CLOEXEC);
		char name[CORDON_CHAIN_NAME_SIZE], path[UNIT_PATH];

		write_some(2);
		assert_int_equal(cordon_chain_head_read(fd, &head), 0);
		cordon_chain_name(head.file, name);
		snprintf(path, sizeof(path), "home/state/audit/%s", name);
		head.file++;
		head.size = 0;
		assert_int_equal(cordon_chain_head_write(fd, &head), 0);
		if (stage == 1)
			assert_int_equal(rename(LOG, path), 0);
		assert_int_equal(verify().breaks, 0);
		/* A handle that still has the old file open must not write to it. */
		write_event(waiting, CORDON_AUDIT_GRANT, "x");
		assert_int_equal(access(path, F_OK), 0);
		assert_int_equal(count_text(LOG, "\"event\":\"rotated\""), 1);
		assert_int_equal(verify().breaks, 0);
	}
	cordon_audit_close(waiting);
	expect_whole(1 + 2 * (2 + 2));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		in_home(log_is_private_and_each_line_names_the_one_before),
		in_home(every_edit_of_the_log_is_found_at_its_line),
		in_home(cut_tail_stays_visible_after_the_next_record),
		in_home(inserted_line_is_found),
		in_home(missing_head_or_log_is_found),
		in_home(torn_line_is_noted_then_repaired_with_a_record),
		in_home(torn_first_line_is_repaired_too),
		in_home(torn_line_that_was_changed_later_is_a_break),
		in_home(record_behind_the_head_is_taken_over),
		in_home(record_that_does_not_fit_on_the_disk_leaves_no_trace),
		in_home(lock_that_somebody_keeps_is_an_error_and_no_hang),
		in_home(log_that_is_no_plain_file_is_refused),
		in_home(rotation_keeps_one_chain_over_several_files),
		in_home(calls_push_out_nothing_else_and_nobody_takes_the_share_of_others),
		in_home(part_of_the_log_is_verified_and_called_a_part),
		in_home(verification_that_runs_out_of_time_says_how_far_it_came),
		in_home(pruned_files_leave_a_record_and_an_intact_chain),
		in_home(removed_oldest_file_without_a_record_is_found),
		in_home(rotation_that_was_broken_off_is_finished),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
