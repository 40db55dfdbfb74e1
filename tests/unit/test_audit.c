/* SPDX-License-Identifier: Apache-2.0 */
/* The audit log: records that stay one safe line, limits, and queries. */
#include "audit_log.h"

#include <sys/file.h>

#include "audit/query.h"
#include "base/text.h"
#include "base/time.h"

/* U+202E, and U+202C that ends it, because tools warn about a source file that leaves it open. */
#define BIDI "\xe2\x80\xae\xe2\x80\xac"

/* ---- one record ---- */

static json_t *render(const struct cordon_audit_event *event)
{
	const struct cordon_audit_ids ids = { "run", "project", "agent", "orchestrator", "workspace" };
	autobuf struct cordon_buf body = CORDON_BUF(CORDON_AUDIT_LINE_MAX), line = CORDON_BUF(CORDON_AUDIT_LINE_MAX);
	struct cordon_audit_record record;

	assert_int_equal(cordon_audit_render_body(&ids, event, &body), 0);
	assert_int_equal(cordon_audit_render_line(INT64_MAX, CORDON_AUDIT_HASH_NONE, 0, body.data, body.len, &line), 0);
	assert_true(line.len <= CORDON_AUDIT_LINE_MAX);
	assert_true(cordon_text_safe(line.data, line.len - 1));
	assert_int_equal(line.data[line.len - 1], '\n');
	assert_int_equal(cordon_audit_parse(line.data, line.len - 1, &record), 0);
	return record.object;
}

static const char *text_of(json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key));
}

static void record_has_the_fields_of_its_event(void **state)
{
	const struct cordon_audit_event event = { .type = CORDON_AUDIT_REFUSAL,
						  .op = "write",
						  .path = "lib/a",
						  .rule = "src/**",
						  .mode = "strict",
						  .decision = "deny",
						  .request_id = "7",
						  .success = CORDON_AUDIT_FAILED,
						  .kind = CORDON_KIND_POLICY_DENIED };
	static const char *const want[][2] = {
		{ "event", "refusal" },
		{ "session_id", "run" },
		{ "project_id", "project" },
		{ "agent", "agent" },
		{ "workspace_id", "workspace" },
		{ "orchestrator_id", "orchestrator" },
		{ "op", "write" },
		{ "path", "lib/a" },
		{ "rule", "src/**" },
		{ "mode", "strict" },
		{ "decision", "deny" },
		{ "request_id", "7" },
		{ "kind", "policy_denied" },
		{ "time", "1970-01-01T00:00:00.000Z" },
	};
	json_t *object = render(&event);

	(void)state;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(want); i++)
		assert_string_equal(text_of(object, want[i][0]), want[i][1]);
	assert_true(json_is_false(json_object_get(object, "success")));
	assert_int_equal(json_object_size(object), CORDON_ARRAY_SIZE(want) + 4); /* v, seq, prev, success */
	json_decref(object);
}

static void record_of_any_bytes_is_one_safe_line(void **state)
{
	static const char hostile[] = "a\x1b[2J\nb\r\t\x7f\x01\xff\xc3(" BIDI "\xc2\x85\"\\";
	json_t *detail = json_pack("{s:s}", "text", "\x1b\n\x7f" BIDI);
	const struct cordon_audit_event event = { .path = hostile, .detail = detail };
	json_t *object = render(&event);

	(void)state;
	assert_string_equal(text_of(object, "path"),
			    "a\\e[2J\\nb\\r\\t\\x7f\\x01\\xff\\xc3(\\u{202e}\\u{202c}\\u{85}\"\\\\");
	json_decref(object);
	json_decref(detail);
}

static void record_that_is_too_large_is_cut_field_by_field(void **state)
{
	char path[4 * CORDON_PATH_MAX], word[400];
	json_t *detail = json_pack("{s:[], s:i, s:s, s:{}}", "command", "exit_code", 7, "long", "", "nested");
	struct cordon_audit_event event = { .path = path, .rule = "kept", .detail = detail };
	json_t *object, *cut;

	(void)state;
	memset(path, '\x1b', sizeof(path));
	path[sizeof(path) - 1] = '\0';
	memset(word, 'w', sizeof(word));
	for (int i = 0; i < 100; i++)
		json_array_append_new(json_object_get(detail, "command"), json_stringn(word, sizeof(word)));
	object = render(&event);
	cut = json_object_get(object, "cut");
	assert_int_equal(json_array_size(cut), 2);
	assert_string_equal(json_string_value(json_array_get(cut, 0)), "path");
	assert_string_equal(json_string_value(json_array_get(cut, 1)), "detail");
	assert_string_equal(text_of(object, "rule"), "kept");
	assert_true(strlen(text_of(object, "path")) > 1000);
	assert_int_equal(json_integer_value(json_object_get(json_object_get(object, "detail"), "exit_code")), 7);
	assert_int_equal(json_array_size(json_object_get(json_object_get(object, "detail"), "command")), 5);
	json_decref(object);
	json_decref(detail);
}

static void record_fits_however_large_every_field_is(void **state)
{
	static char huge[100001];
	json_t *detail = json_object();
	struct cordon_audit_event event = {
		.op = huge, .path = huge, .rule = huge, .mode = huge, .decision = huge, .request_id = huge, .detail = detail
	};
	char key[80];

	(void)state;
	memset(huge, '"', 100000);
	huge[100000] = '\0';
	for (int i = 0; i < 500; i++) {
		snprintf(key, sizeof(key), "member-%060d", i);
		json_object_set_new(detail, key, json_string(huge));
	}
	json_decref(render(&event));
	json_decref(detail);
}

static void text_for_detail_is_safe_and_bounded(void **state)
{
	static char huge[100001];
	json_t *text = cordon_audit_text("a\nb\xff");
	json_t *cut;

	(void)state;
	memset(huge, '\xff', 100000);
	huge[100000] = '\0';
	assert_string_equal(json_string_value(text), "a\\nb\\xff");
	cut = cordon_audit_text(huge);
	assert_non_null(cut);
	assert_null(cordon_audit_text(NULL));
	json_decref(text);
	json_decref(cut);
}

static void line_that_is_no_record_is_refused(void **state)
{
#define FRONT "{\"v\":1,\"seq\":1,\"prev\":\"" CORDON_AUDIT_HASH_NONE "\",\"time\":\"2026-01-02T03:04:05Z\""
	static const char *const bad[] = {
		"",
		"x",
		"[]",
		"{}",
		FRONT "}",
		FRONT ",\"event\":7}",
		FRONT ",\"event\":\"end\"",
		FRONT ",\"event\":\"end\"}x",
		FRONT ",\"event\":\"end\",\"event\":\"end\"}",
		FRONT ",\"event\":\"end\",\"path\":\"\xff\"}",
		"{\"v\":2,\"seq\":1,\"prev\":\"" CORDON_AUDIT_HASH_NONE "\",\"time\":\"2026-01-02\",\"event\":\"end\"}",
		"{\"v\":1,\"seq\":0,\"prev\":\"" CORDON_AUDIT_HASH_NONE "\",\"time\":\"2026-01-02\",\"event\":\"end\"}",
		"{\"v\":1,\"seq\":1,\"prev\":\"00\",\"time\":\"2026-01-02\",\"event\":\"end\"}",
		"{\"v\":1,\"seq\":1,\"prev\":\"" CORDON_AUDIT_HASH_NONE "\",\"time\":\"soon\",\"event\":\"end\"}",
	};
	struct cordon_audit_record record;

	(void)state;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(bad); i++)
		assert_int_equal(cordon_audit_parse(bad[i], strlen(bad[i]), &record), -EINVAL);
	assert_int_equal(cordon_audit_parse(FRONT ",\"event\":\"new\"}", sizeof(FRONT) - 1 + 15, &record), 0);
	assert_int_equal(record.type, CORDON_AUDIT__MAX);
	cordon_audit_record_done(&record);
}

static void lines_of_any_length_are_read_with_their_hash(void **state)
{
	static const size_t lengths[] = { 0, 1, 8190, 8191, 8192, 65535, 65536, 65537, 300000, 5 };
	autofree struct cordon_lines *lines = malloc(sizeof(*lines));
	autofree char *bytes = malloc(300000);
	struct cordon_line line;
	autofd int fd = -1;
	off_t at = 0;

	(void)state;
	memset(bytes, 'z', 300000);
	unit_write("lines", "");
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(lengths); i++) {
		write_bytes("lines", O_APPEND, bytes, lengths[i]);
		write_bytes("lines", O_APPEND, "\n", 1);
	}
	write_bytes("lines", O_APPEND, "rest", 4);
	fd = open("lines", O_RDONLY | O_CLOEXEC);
	cordon_lines_init(lines, fd, 0, INT64_MAX);
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(lengths); i++) {
		char hash[CORDON_AUDIT_HASH_SIZE];

		cordon_audit_hash(bytes, lengths[i], hash);
		assert_int_equal(cordon_lines_next(lines, &line), 1);
		assert_true(line.whole);
		assert_int_equal(line.start, at);
		assert_int_equal(line.n, lengths[i]);
		assert_string_equal(line.hash, hash);
		assert_int_equal(line.text != NULL, lengths[i] < CORDON_AUDIT_LINE_MAX);
		at = line.end;
	}
	assert_int_equal(cordon_lines_next(lines, &line), 1);
	assert_false(line.whole);
	assert_memory_equal(line.text, "rest", 4);
	assert_int_equal(cordon_lines_next(lines, &line), 0);
}

/* ---- limits ---- */

/* Checks that each of `n` events is in the log or in the count of a `dropped` record, and that at least so many were
 * dropped. */
static void expect_all_counted(cordon_audit_type type, uint64_t n, uint64_t dropped)
{
	autofree char *text = read_text(LOG, NULL);
	uint64_t sum = 0, seen = 0;

	for (char *p = text, *newline; (newline = strchr(p, '\n')); p = newline + 1) {
		autorecord struct cordon_audit_record record = { 0 };

		assert_int_equal(cordon_audit_parse(p, (size_t)(newline - p), &record), 0);
		seen += record.type == type;
		sum += record.type == CORDON_AUDIT_DROPPED ? cordon_audit_detail_number(&record, "count") : 0;
	}
	assert_int_equal(seen + sum, n);
	assert_true(sum >= dropped);
}

static void storm_is_bounded_counted_and_hides_nothing_else(void **state)
{
	struct cordon_audit *audit = open_audit("storm");
	struct stat st;

	(void)state;
	write_event(audit, CORDON_AUDIT_START, NULL);
	for (int i = 0; i < 20000; i++)
		write_event(audit, CORDON_AUDIT_VIOLATION, "lib/x");
	write_event(audit, CORDON_AUDIT_PROTECTED_LOST, "AGENTS.md");
	for (int i = 0; i < 300; i++)
		write_event(audit, CORDON_AUDIT_REFUSAL, NULL);
	write_event(audit, CORDON_AUDIT_END, NULL);
	cordon_audit_close(audit);
	expect_all_counted(CORDON_AUDIT_VIOLATION, 20000, 19001);
	assert_int_equal(count_text(LOG, "\"event\":\"protected_lost\""), 1);
	assert_int_equal(count_text(LOG, "\"event\":\"refusal\""), 300);
	assert_int_equal(count_text(LOG, "\"event\":\"end\""), 1);
	assert_int_equal(stat(LOG, &st), 0);
	assert_true(st.st_size < 400000);
	assert_int_equal(verify().breaks, 0);
}

static void dropped_records_come_before_the_end_and_sum_up(void **state)
{
	struct cordon_audit *audit = open_audit("sum");

	(void)state;
	for (int i = 0; i < 1000; i++)
		write_event(audit, CORDON_AUDIT_VIOLATION, "x");
	write_event(audit, CORDON_AUDIT_END, NULL);
	expect_all_counted(CORDON_AUDIT_VIOLATION, 1000, 1);
	cordon_audit_close(audit);
}

static void long_names_use_up_their_share_of_bytes(void **state)
{
	struct cordon_audit *audit = open_audit("bytes");
	char path[6000];
	struct stat st;

	(void)state;
	memset(path, 'p', sizeof(path));
	path[sizeof(path) - 1] = '\0';
	/* Write as many records as a burst may have, but more than its megabyte. */
	for (int i = 0; i < 200; i++)
		write_event(audit, CORDON_AUDIT_VIOLATION, path);
	cordon_audit_close(audit);
	assert_int_equal(stat(LOG, &st), 0);
	assert_true(st.st_size > 1000000 && st.st_size < 1100000);
	expect_all_counted(CORDON_AUDIT_VIOLATION, 200, 1);
	assert_int_equal(verify().breaks, 0);
}

static void log_that_cannot_be_written_holds_up_no_agent(void **state)
{
	struct cordon_audit *audit = open_audit("stuck");
	const struct cordon_audit_event event = { .type = CORDON_AUDIT_VIOLATION };
	autofd int other = open(HEAD, O_RDWR | O_CLOEXEC);
	int64_t began;

	(void)state;
	write_event(audit, CORDON_AUDIT_START, NULL);
	assert_int_equal(flock(other, LOCK_EX), 0);
	began = cordon_time_monotonic();
	assert_int_equal(cordon_audit_write(audit, &event, NULL), -ETIMEDOUT);
	for (int i = 0; i < 100; i++)
		assert_int_equal(cordon_audit_write(audit, &event, NULL), 0);
	/* There is one short wait for the event and one for its count, and none for the other events. */
	assert_true(cordon_time_monotonic() - began < 1000);
	assert_int_equal(flock(other, LOCK_UN), 0);
	write_event(audit, CORDON_AUDIT_END, NULL);
	cordon_audit_close(audit);
	assert_int_equal(count_text(LOG, "\"count\":101,\"failed\":101"), 1);
	expect_whole(3);
}

static void log_takes_no_forged_records_about_itself(void **state)
{
	struct cordon_audit *audit = open_audit("forge");
	const struct cordon_audit_event event = { .type = CORDON_AUDIT_REPAIRED };

	(void)state;
	assert_int_equal(cordon_audit_write(audit, &event, NULL), -EINVAL);
	cordon_audit_close(audit);
	expect_whole(0);
}

/* ---- queries ---- */

static void filters_are_read_and_applied(void **state)
{
	struct cordon_audit_filter filter = { 0 };
	struct cordon_error err = { 0 };
	struct cordon_audit_record record = { .type = CORDON_AUDIT_END, .time = 5000, .session_id = "abcdef" };

	(void)state;
	assert_true(cordon_audit_match(&filter, &record));
	assert_int_equal(cordon_audit_since_parse("2s", 7000, &filter, &err), 0);
	assert_int_equal(filter.since, 5000);
	assert_true(cordon_audit_match(&filter, &record));
	record.time = 4999;
	assert_false(cordon_audit_match(&filter, &record));
	assert_int_equal(cordon_audit_since_parse("1970-01-01T00:00:01Z", 0, &filter, &err), 0);
	assert_true(cordon_audit_match(&filter, &record));
	assert_int_equal(cordon_audit_since_parse("yesterday", 0, &filter, &err), -EINVAL);
	assert_int_equal(cordon_audit_kinds_parse("violation,limit", &filter, &err), 0);
	assert_false(cordon_audit_match(&filter, &record));
	assert_int_equal(cordon_audit_kinds_parse("end", &filter, &err), 0);
	assert_true(cordon_audit_match(&filter, &record));
	assert_int_equal(cordon_audit_kinds_parse("end,,gc", &filter, &err), -EINVAL);
	assert_int_equal(cordon_audit_kinds_parse("", &filter, &err), -EINVAL);
	assert_int_equal(cordon_audit_run_parse("abcd", &filter, &err), 0);
	assert_true(cordon_audit_match(&filter, &record));
	assert_int_equal(cordon_audit_run_parse("bcde", &filter, &err), 0);
	assert_false(cordon_audit_match(&filter, &record));
	record.session_id = NULL;
	assert_false(cordon_audit_match(&filter, &record));
	assert_int_equal(cordon_audit_run_parse("abc", &filter, &err), -EINVAL);
	assert_int_equal(cordon_audit_run_parse("ab/../c", &filter, &err), -EINVAL);
}

static void forged_text_is_safe_to_show(void **state)
{
	static const char line[] = FRONT ",\"event\":\"e\\u001b[2J\",\"session_id\":\"\\u202e12345678\","
					 "\"path\":\"\\u001b]0;x\\u0007\",\"decision\":\"de\\nny\","
					 "\"detail\":{\"k\\u001b\":\"\\u009b\",\"n\":[1,{\"\\n\":\"\xc2\x85\"}]}}";
	autorecord struct cordon_audit_record record = { 0 };
	autobuf struct cordon_buf text = CORDON_BUF(4096);

	(void)state;
	assert_int_equal(cordon_audit_parse(line, sizeof(line) - 1, &record), 0);
	assert_int_equal(cordon_audit_format(&record, false, &text), 0);
	assert_true(cordon_text_safe(text.data, text.len));
	assert_non_null(strstr(text.data, "de\\nny \\e]0;x\\x07 k\\e=\\u{9b} n="));
}

static void reader_goes_on_over_rotation(void **state)
{
	const struct cordon_audit_filter all = { 0 };
	struct cordon_audit *audit = open_audit("read");
	struct cordon_audit_reader *reader = NULL;
	struct cordon_audit_item item;
	struct cordon_error err = { 0 };
	uint64_t seq = 0;

	(void)state;
	cordon_audit_set_rotation(audit, 1000, 50);
	assert_int_equal(cordon_audit_reader_new(&home, &all, &reader, &err), 0);
	assert_int_equal(cordon_audit_reader_next(reader, &item, &err), 0);
	assert_true(cordon_audit_reader_fd(reader, &err) >= 0);
	for (int i = 0; i < 40; i++) {
		write_event(audit, CORDON_AUDIT_GRANT, "x");
		if (i % 7)
			continue;
		assert_int_equal(cordon_audit_reader_refresh(reader, &err), 0);
		while (cordon_audit_reader_next(reader, &item, &err) > 0) {
			assert_false(item.damaged);
			assert_int_equal(item.record.seq, ++seq);
		}
	}
	assert_int_equal(cordon_audit_reader_refresh(reader, &err), 0);
	while (cordon_audit_reader_next(reader, &item, &err) > 0)
		assert_int_equal(item.record.seq, ++seq);
	assert_int_equal(seq, verify().records);
	cordon_audit_reader_free(reader);
	cordon_audit_close(audit);
}

/* Numbers of the newest records, as text; "+" behind them when there are more. */
static char *latest(const struct cordon_audit_latest *ask)
{
	struct cordon_buf text = CORDON_BUF(65536);
	struct cordon_error err = { 0 };
	json_auto_t *records = NULL;
	json_t *record;
	bool more;
	size_t i;

	assert_int_equal(cordon_audit_latest(&home, ask, &records, &more, &err), 0);
	json_array_foreach(records, i, record) {
		assert_int_equal(cordon_buf_addf(&text, "%s%d", i ? " " : "",
						 (int)json_integer_value(json_object_get(record, "seq"))),
				 0);
	}
	assert_int_equal(cordon_buf_adds(&text, more ? "+" : ""), 0);
	return cordon_buf_steal(&text);
}

#define assert_latest(want, ...)                                                                                       \
	do {                                                                                                           \
		autofree char *got_ = latest(&(struct cordon_audit_latest){ __VA_ARGS__ });                            \
		assert_string_equal(got_, want);                                                                       \
	} while (0)

static void newest_records_are_found_from_the_end(void **state)
{
	const uint32_t limits = UINT32_C(1) << CORDON_AUDIT_LIMIT;
	struct cordon_audit *audit = open_audit("first-run");
	size_t size = 600 << 10; /* more than two blocks of the search */
	autofree char *junk = malloc(size);

	(void)state;
	assert_non_null(junk);
	assert_latest("", .max = 5);
	for (int i = 0; i < 6; i++)
		write_event(audit, i == 2 ? CORDON_AUDIT_LIMIT : CORDON_AUDIT_GRANT, "\"event\":\"limit\"");
	cordon_audit_close(audit);
	assert_latest("6 5 4 3 2 1", .max = 10);
	assert_latest("6 5+", .max = 2);
	assert_latest("4 3+", .max = 2, .before = 5);
	assert_latest("3", .max = 10, .filter.types = limits);
	/* A line of any length is no record, and hides none. */
	memset(junk, 'x', size);
	junk[0] = junk[size - 1] = '\n';
	write_bytes(LOG, O_APPEND, junk, size);
	assert_latest("6 5 4 3 2 1", .max = 10);
	assert_latest("+", .max = 10, .bytes = 1000);
	/* A writer notes the damage (7); every record from here on is in a file of its own. */
	audit = open_audit("second-run");
	cordon_audit_set_rotation(audit, 1, 50);
	write_event(audit, CORDON_AUDIT_LIMIT, "y");
	write_event(audit, CORDON_AUDIT_GRANT, "z");
	cordon_audit_close(audit);
	{
		autofree char *of_run = latest(&(struct cordon_audit_latest){ .max = 10, .filter.run = "first" });
		autofree char *of_type = latest(&(struct cordon_audit_latest){ .max = 10, .filter.types = limits });

		assert_string_equal(of_run, "6 5 4 3 2 1");
		assert_non_null(strstr(of_type, " 3"));
	}
}

static void newest_records_are_found_by_who_what_and_when(void **state)
{
	const struct cordon_audit_ids ids = { .session_id = "abcd-1", .agent = "qa" },
				      other = { .orchestrator_id = "desk" };
	const struct cordon_audit_event denied = { .type = CORDON_AUDIT_VIOLATION,
						   .path = "lib/\x1b\"x",
						   .decision = "deny" };
	const struct cordon_audit_event warned = { .type = CORDON_AUDIT_VIOLATION, .path = "docs/y", .decision = "warn" };
	autobuf struct cordon_buf text = CORDON_BUF(1024);
	struct cordon_audit *audit = NULL;
	int64_t now;

	(void)state;
	assert_int_equal(cordon_audit_open(&home, &ids, &audit, NULL), 0);
	assert_int_equal(cordon_audit_write(audit, &denied, NULL), 0);
	assert_int_equal(cordon_audit_write(audit, &warned, NULL), 0);
	cordon_audit_close(audit);
	assert_int_equal(cordon_audit_open(&home, &other, &audit, NULL), 0);
	assert_int_equal(cordon_audit_write(audit, &denied, NULL), 0);
	cordon_audit_close(audit);
	now = cordon_time_now() + 1;
	assert_latest("2 1", .max = 9, .filter.agent = "qa");
	assert_latest("3", .max = 9, .filter.agent = "des");
	assert_latest("2 1", .max = 9, .filter.run = "abcd");
	assert_latest("", .max = 9, .filter.run = "bcd-");
	assert_latest("3 1", .max = 9, .filter.decision = "deny");
	assert_latest("2", .max = 9, .filter.path = "cs/y");
	assert_latest("", .max = 9, .filter.path = "qa");
	assert_latest("3 1", .max = 9, .filter.path = cordon_audit_as_logged("b/\x1b\"", &text));
	assert_string_equal(cordon_audit_as_logged("b/\\e", &text), "b/\\e");
	assert_latest("3 2 1", .max = 9,
		      .filter = { .has_until = true, .until = now, .has_since = true, .since = now - 60000 });
	assert_latest("", .max = 9, .filter = { .has_until = true, .until = now - 60000 });
	assert_latest("", .max = 9, .filter = { .has_since = true, .since = now + 500 });
}

static bool count_five(void *data, const struct cordon_audit_record *record, const char *line, size_t n)
{
	(void)record, (void)line, (void)n;
	return ++*(int *)data < 5;
}

static void search_says_how_far_it_came(void **state)
{
	struct cordon_audit_searched searched = { 0 };
	struct cordon_audit *audit = open_audit("run-1");
	struct cordon_audit_extent extent;
	int n = 0;
	struct cordon_audit_search search = { .data = &n, .take = count_five };

	(void)state;
	assert_int_equal(cordon_audit_search(&home, &search, &searched, NULL), 0);
	assert_true(!searched.more && !searched.records && !searched.seq);
	cordon_audit_set_rotation(audit, 2000, 100);
	for (int i = 0; i < 30; i++)
		write_event(audit, CORDON_AUDIT_GRANT, "x");
	cordon_audit_close(audit);
	search.filter.types = UINT32_C(1) << CORDON_AUDIT_GRANT;
	assert_int_equal(cordon_audit_search(&home, &search, &searched, NULL), 0);
	assert_true(n == 5 && searched.more && searched.records >= 5 && searched.bytes < 2500);
	/* It goes on where it stopped; the files behind that place are not read again. */
	search.before = searched.seq;
	n = -1000;
	assert_int_equal(cordon_audit_search(&home, &search, &searched, NULL), 0);
	assert_true(n == -1000 + 25 && !searched.more && searched.seq == 1);
	assert_int_equal(cordon_audit_extent(&home, false, &extent, NULL), 0);
	assert_true(extent.files >= 3 && searched.bytes < extent.bytes);
	/* A deadline that is over stops it after its first look. */
	search = (struct cordon_audit_search){ .deadline = 1, .data = &n, .take = count_five };
	n = -1000;
	assert_int_equal(cordon_audit_search(&home, &search, &searched, NULL), 0);
	assert_true(searched.more && searched.records < 10);
}

static void front_of_a_line_is_read_without_parsing(void **state)
{
	static const char good[] =
		"{\"v\":1,\"seq\":17,\"prev\":\"" CORDON_AUDIT_HASH_NONE
		"\",\"time\":\"2026-01-02T03:04:05.678Z\",\"event\":\"grant\",\"session_id\":\"0123456789012345\"}";
	char line[sizeof(good)];
	const char *time;
	uint64_t seq;

	(void)state;
	assert_true(cordon_audit_front(good, sizeof(good) - 1, &seq, &time));
	assert_true(seq == 17 && strncmp(time, "2026-01-02T03:04:05.678Z\"", CORDON_TIME_SIZE) == 0);
	for (size_t n = 0; n < strlen(good) - 1; n++) { /* whatever is cut off, nothing behind the end is read */
		autofree char *cut = strndup(good, n);

		assert_non_null(cut);
		(void)cordon_audit_front(cut, n, &seq, &time);
	}
	memcpy(line, good, sizeof(good));
	line[13] = 'x';
	assert_false(cordon_audit_front(line, strlen(line), &seq, &time));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(record_has_the_fields_of_its_event),
		cmocka_unit_test(record_of_any_bytes_is_one_safe_line),
		cmocka_unit_test(record_that_is_too_large_is_cut_field_by_field),
		cmocka_unit_test(record_fits_however_large_every_field_is),
		cmocka_unit_test(text_for_detail_is_safe_and_bounded),
		cmocka_unit_test(line_that_is_no_record_is_refused),
		unit_test_in_dir(lines_of_any_length_are_read_with_their_hash),
		in_home(storm_is_bounded_counted_and_hides_nothing_else),
		in_home(dropped_records_come_before_the_end_and_sum_up),
		in_home(long_names_use_up_their_share_of_bytes),
		in_home(log_that_cannot_be_written_holds_up_no_agent),
		in_home(log_takes_no_forged_records_about_itself),
		cmocka_unit_test(filters_are_read_and_applied),
		cmocka_unit_test(forged_text_is_safe_to_show),
		in_home(reader_goes_on_over_rotation),
		in_home(newest_records_are_found_from_the_end),
		in_home(newest_records_are_found_by_who_what_and_when),
		in_home(search_says_how_far_it_came),
		cmocka_unit_test(front_of_a_line_is_read_without_parsing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
