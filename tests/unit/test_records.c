/* SPDX-License-Identifier: Apache-2.0 */
/* Records as structs: what the reader accepts, what it refuses, and that the writer writes what was read. */
#include "unit.h"

#include "base/io.h"
#include "protect/defaults.h"
#include "store/internal.h"

static json_t *parse(const char *text)
{
	json_t *object = json_loads(text, 0, NULL);

	assert_non_null(object);
	return object;
}

static const char session_text[] =
	"{\"session_id\": \"s\", \"project_id\": \"p\", \"workspace_id\": \"w\", \"status\": \"failed\", \"state\": \"timeout\","
	" \"turns\": [{\"at\": \"t\", \"message\": \"m\"}], \"depth\": 2, \"child_sessions\": [\"c\"],"
	" \"created_at\": \"2026-01-02T03:04:05.678Z\", \"workspace_isolation\": true, \"protected_paths\": [\"a\"],"
	" \"default_protection\": false, \"net\": \"none\", \"profile\": [\"claude\"],"
	" \"shares\": [\"/opt:ro\"], \"home\": \"workspace\", \"env\": {\"K\": \"V\"}, \"env_pass\": [\"X\"], \"best_effort\": true,"
	" \"agent\": {\"model\": \"m\"}, \"limits\": {\"max_sessions\": 1, \"max_recursion_depth\": 0, \"max_agents_per_session\": 3,"
	" \"timeout_seconds\": 4, \"memory_bytes\": 5, \"pids\": 6, \"max_cost_usd\": 2.5}, \"command\": [\"x\", \"y\"],"
	" \"own_command\": true, \"terminal\": true, \"context\": {},"
	" \"timeout_ms\": 7, \"fail_on_violation\": true, \"ancestor_workspaces\": [\"u\"], \"parent_session_id\": \"q\","
	" \"updated_at\": \"2026-01-02T03:04:05.679Z\", \"notes\": [], \"run_id\": \"r\", \"pid\": 8,"
	" \"started_at\": \"2026-01-02T03:04:05.680Z\", \"enforcement\": {\"tier\": \"full\"}, \"protected\": [], \"exit_code\": null,"
	" \"signal\": 9, \"ended_at\": \"2026-01-02T03:04:05.681Z\", \"duration_ms\": 10, \"violations\": 11,"
	" \"failed_on_violation\": true, \"error\": {\"kind\": \"internal\"}}";

static void everything_of_a_session_comes_back_in_its_order(void **state)
{
	autosessionrecord struct cordon_session_record record = { 0 };
	json_auto_t *object = parse(session_text);
	json_auto_t *again = NULL;
	autofree char *before = json_dumps(object, JSON_COMPACT);
	autofree char *after = NULL;

	(void)state;
	assert_int_equal(cordon_fields_read(&cordon_session_kind, object, &record, NULL), 0);
	assert_int_equal(record.status, CORDON_SESSION_FAILED);
	assert_int_equal(record.state, CORDON_SESSION_RUN_TIMEOUT);
	assert_string_equal(json_string_value(record.settings.net), "none");
	assert_false(record.settings.default_protection);
	assert_int_equal(cordon_settings_value(&record.settings, CORDON_RECIPE_PIDS), 6);
	assert_true(record.ended);
	assert_int_equal(record.exit_code, -1);
	assert_int_equal(record.signal, 9);
	again = cordon_fields_write(&cordon_session_kind, &record, false);
	after = json_dumps(again, JSON_COMPACT);
	assert_string_equal(before, after);
}

static void hidden_fields_are_not_shown_to_others(void **state)
{
	static const char *const hidden[] = { "pid",	 "env",	   "env_pass", "context",
					      "profile", "shares", "home",     "own_command" };
	autosessionrecord struct cordon_session_record record = { 0 };
	json_auto_t *object = parse(session_text);
	json_auto_t *shown = NULL;

	(void)state;
	assert_int_equal(cordon_fields_read(&cordon_session_kind, object, &record, NULL), 0);
	shown = cordon_session_json(&record);
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(hidden); i++) {
		assert_non_null(json_object_get(object, hidden[i]));
		assert_null(json_object_get(shown, hidden[i]));
		json_object_del(object, hidden[i]);
	}
	assert_true(json_equal(object, shown));
}

static void absent_fields_are_not_written(void **state)
{
	static const char text[] =
		"{\"session_id\": \"s\", \"project_id\": \"p\", \"workspace_id\": \"w\", \"status\": \"active\", \"state\": \"starting\","
		" \"turns\": [], \"child_sessions\": []}";
	static const char *const absent[] = {
		"exit_code",  "signal",	 "ended_at",	      "violations",	   "error",
		"timeout_ms", "context", "parent_session_id", "fail_on_violation", "failed_on_violation",
		"notes"
	};
	autosessionrecord struct cordon_session_record record = { 0 };
	json_auto_t *object = parse(text);
	json_auto_t *again = NULL;

	(void)state;
	assert_int_equal(cordon_fields_complete(&cordon_session_kind, object, NULL), 0);
	assert_int_equal(cordon_fields_read(&cordon_session_kind, object, &record, NULL), 0);
	assert_false(record.ended);
	again = cordon_fields_write(&cordon_session_kind, &record, false);
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(absent); i++)
		assert_null(json_object_get(again, absent[i]));
	/* A record of an older version does not have this field, and its project was protected. */
	assert_true(json_is_true(json_object_get(again, "default_protection")));
}

/* A setting that has another name now keeps its value; otherwise `none` would become the default, which is wider. */
static void a_key_of_an_older_version_is_read_under_its_new_name(void **state)
{
	autoprojectrecord struct cordon_project_record record = { 0 };
	json_auto_t *object = parse("{\"network\": \"none\"}");
	json_auto_t *again = NULL;

	(void)state;
	assert_int_equal(cordon_fields_read(&cordon_project_kind, object, &record, NULL), 0);
	assert_string_equal(json_string_value(record.settings.net), "none");
	again = cordon_project_json(&record);
	assert_string_equal(json_string_value(json_object_get(again, "net")), "none");
	assert_null(json_object_get(again, "network"));
}

static void keys_that_this_version_does_not_know_are_kept(void **state)
{
	autoworkspacerecord struct cordon_workspace_record record = { 0 };
	json_auto_t *object = parse(
		"{\"schema\": 1, \"id\": \"w\", \"project_id\": \"p\", \"colour\": {\"r\": 1}, \"last_session_id\": \"s\"}");
	json_auto_t *shown = NULL;

	(void)state;
	assert_int_equal(cordon_fields_read(&cordon_workspace_kind, object, &record, NULL), 0);
	shown = cordon_workspace_json(&record);
	assert_int_equal(json_object_size(shown), 3);
	assert_true(json_equal(json_object_get(shown, "colour"), json_object_get(object, "colour")));
}

static void a_value_of_another_type_is_refused_and_named(void **state)
{
	static const struct {
		const struct cordon_record_kind *kind;
		const char *text, *word;
	} rows[] = {
		{ &cordon_session_kind, "{\"session_id\": 1}", "session_id" },
		{ &cordon_session_kind, "{\"status\": \"happy\"}", "status" },
		{ &cordon_session_kind, "{\"status\": null}", "status" },
		{ &cordon_session_kind, "{\"state\": 1}", "state" },
		{ &cordon_session_kind, "{\"turns\": {}}", "turns" },
		{ &cordon_session_kind, "{\"depth\": \"1\"}", "depth" },
		{ &cordon_session_kind, "{\"depth\": 1.5}", "depth" },
		{ &cordon_session_kind, "{\"command\": [1]}", "command" },
		{ &cordon_session_kind, "{\"terminal\": 1}", "terminal" },
		{ &cordon_session_kind, "{\"exit_code\": \"0\"}", "exit_code" },
		{ &cordon_session_kind, "{\"limits\": []}", "limits" },
		{ &cordon_session_kind, "{\"limits\": {\"pids\": true}}", "limits" },
		{ &cordon_session_kind, "{\"error\": \"x\"}", "error" },
		{ &cordon_session_kind,
		  "{\"created_at\": \"a text that is longer than any time that was ever written\"}", "created_at" },
		{ &cordon_project_kind, "{\"name\": null}", "name" },
		{ &cordon_project_kind, "{\"net\": \"some\"}", "net" },
		{ &cordon_project_kind, "{\"env\": []}", "env" },
		{ &cordon_workspace_kind, "{\"external_id\": 1}", "external_id" },
	};

	(void)state;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(rows); i++) {
		json_auto_t *object = parse(rows[i].text);
		char record[sizeof(struct cordon_session_record) + sizeof(struct cordon_project_record)],
			before[sizeof(record)];
		struct cordon_error err = { 0 };

		memset(record, 'x', sizeof(record));
		memcpy(before, record, sizeof(record));
		assert_int_equal(cordon_fields_read(rows[i].kind, object, record, &err), -EBADMSG);
		assert_int_equal(err.kind, CORDON_KIND_IO);
		if (!strstr(err.message, rows[i].word))
			fail_msg("\"%s\" does not say \"%s\"", err.message, rows[i].word);
		assert_memory_equal(record, before, sizeof(record));
	}
}

static void a_record_without_what_it_needs_is_damaged(void **state)
{
	json_auto_t *object = parse("{\"session_id\": \"s\", \"project_id\": \"p\"}");
	struct cordon_error err = { 0 };

	(void)state;
	assert_int_equal(cordon_fields_complete(&cordon_session_kind, object, &err), -EBADMSG);
	assert_non_null(strstr(err.message, "workspace_id"));
}

static void settings_are_copied_completely_and_share_nothing(void **state)
{
	autosessionrecord struct cordon_session_record from = { 0 };
	autosessionrecord struct cordon_session_record to = { 0 };
	json_auto_t *object = parse(session_text);
	json_auto_t *other = parse("{\"protected_paths\": [\"old\"], \"limits\": {\"new_limit\": 1}}");

	(void)state;
	assert_int_equal(cordon_fields_read(&cordon_session_kind, object, &from, NULL), 0);
	assert_int_equal(cordon_fields_read(&cordon_session_kind, other, &to, NULL), 0);
	assert_int_equal(cordon_settings_copy(&to.settings, &from.settings), 0);
	assert_true(json_equal(to.settings.protected_paths, from.settings.protected_paths));
	assert_ptr_not_equal(to.settings.protected_paths, from.settings.protected_paths);
	assert_int_equal(cordon_settings_value(&to.settings, CORDON_RECIPE_MEMORY), 5);
	assert_null(to.settings.limits.other);
}

static void every_status_has_its_name(void **state)
{
	(void)state;
	for (cordon_session_status i = CORDON_SESSION_ACTIVE; i < CORDON_SESSION__MAX; i++)
		assert_int_equal(cordon_session_status_parse(cordon_session_status_name(i)), i);
	assert_int_equal(cordon_session_status_parse("lost"), CORDON_SESSION__MAX);
}

static void add_entry(json_t *entries, const char *path, const char *state, bool by_default, const char *where,
		      bool links)
{
	assert_int_equal(json_array_append_new(entries, json_pack("{s:s, s:s, s:b, s:s?, s:b}", "path", path, "state",
								  state, "by_default", by_default, "where", where,
								  "hard_links", links)),
			 0);
}

static void add_rows(json_t *entries, const char *dir, size_t first, size_t end)
{
	size_t n;
	const struct cordon_protect_row *rows = cordon_protect_rows(&n);
	char path[512];

	for (size_t i = first; i < end && i < n; i++) {
		snprintf(path, sizeof(path), "%s%s", dir, rows[i].path);
		add_entry(entries, path, "absent", true, "protected by default", false);
	}
}

/* Packs, expects this number of items, and expects the same text after unpacking. */
static void expect_packed(const json_t *entries, size_t n)
{
	char table[CORDON_PROTECTED_TABLE_SIZE];
	json_auto_t *items = cordon_protected_pack(entries);
	json_auto_t *again = NULL;
	autofree char *before = json_dumps(entries, JSON_COMPACT);
	autofree char *after = NULL;
	size_t unlisted = 1;

	cordon_protected_table(table);
	assert_int_equal(json_array_size(items), n);
	again = cordon_protected_unpack(items, table, &unlisted);
	after = json_dumps(again, JSON_COMPACT);
	assert_string_equal(after, before);
	assert_int_equal(unlisted, 0);
}

static void what_is_protected_is_packed_and_comes_back_in_its_order(void **state)
{
	json_auto_t *entries = json_array();
	size_t rows;

	(void)state;
	cordon_protect_rows(&rows);
	expect_packed(entries, 0);
	add_rows(entries, "", 0, rows);
	expect_packed(entries, 1);
	add_rows(entries, "a/b/", 3, 50); /* another directory: another run */
	expect_packed(entries, 2);
	add_rows(entries, "a/b/", 50, 60); /* goes on */
	expect_packed(entries, 2);
	add_rows(entries, "a/b/", 59, 61); /* a row twice: other rows of the same directory */
	expect_packed(entries, 2);
	add_rows(entries, "c/", 7, 8); /* one name stays a name */
	add_entry(entries, "c/.git/hooks", "present", true, "protected by default", false);
	add_entry(entries, ".git", "link", true, "protected by default", false);
	add_rows(entries, "c/", 8, 10);
	expect_packed(entries, 6);
	/* Whatever says more than a state and a path stays as it is, between rows that would go on. */
	add_entry(entries, "AGENTS.md", "absent", false, "protected_paths", false);
	add_rows(entries, "c/", 10, 12);
	add_entry(entries, ".envrc", "present", true, "protected by default", true);
	add_entry(entries, ".envrc", "absent", true, NULL, false);
	add_entry(entries, "cordon.yaml", "absent", true, "elsewhere", false);
	add_entry(entries, "cordon.yml", "absent", false, "protected by default", false);
	add_entry(entries, "cordon.json", "2-5 x", true, "protected by default", false);
	add_entry(entries, "/cordon.json", "absent", true, "protected by default", false);
	add_entry(entries, "a b/0-3 c", "absent", true, "protected by default", false);
	add_entry(entries, "", "absent", true, "protected by default", false);
	assert_int_equal(json_array_append_new(entries, json_pack("{s:s}", "path", ".envrc")), 0);
	expect_packed(entries, 17);
}

static void rows_of_another_table_are_counted_and_not_listed(void **state)
{
	static const char text[] =
		"{\"session_id\": \"s\", \"project_id\": \"p\", \"workspace_id\": \"w\", \"status\": \"active\","
		" \"state\": \"running\", \"turns\": [], \"child_sessions\": [], \"protected\": [\"0-9 \","
		" \"absent HEAD\", \"4-8 a/b\", {\"path\": \"x\"}], \"protected_table\": \"0123456789abcdef\"}";
	autosessionrecord struct cordon_session_record record = { 0 };
	json_auto_t *object = parse(text);
	json_auto_t *shown = NULL;
	json_auto_t *again = NULL;

	(void)state;
	assert_int_equal(cordon_fields_read(&cordon_session_kind, object, &record, NULL), 0);
	shown = cordon_session_json(&record);
	assert_int_equal(json_array_size(json_object_get(shown, "protected")), 2);
	assert_null(json_object_get(shown, "protected_table"));
	assert_non_null(
		strstr(json_string_value(json_array_get(json_object_get(shown, "notes"), 0)), "15 missing names"));
	/* The record itself keeps them, and has no such note. */
	again = cordon_fields_write(&cordon_session_kind, &record, false);
	assert_true(json_equal(json_object_get(again, "protected"), json_object_get(object, "protected")));
	assert_null(json_object_get(again, "notes"));
	json_decref(shown);
	cordon_protected_table(record.protected_table);
	shown = cordon_session_json(&record);
	assert_int_equal(json_array_size(json_object_get(shown, "protected")), 17);
	assert_null(json_object_get(shown, "notes"));
	json_decref(shown);
	shown = cordon_session_brief_json(&record);
	assert_null(json_object_get(shown, "protected"));
}

static void damaged_items_are_left_out(void **state)
{
	json_auto_t *items = parse(
		"[\"\", \"absent\", \"0-\", \"0-1\", \"-1 x\", \"3-2 x\", \"0-99999 \", \"18446744073709551615-0 \","
		" \"0-18446744073709551616 \", 7, null, [], \"present a\", \"x,0-1 d\", \"0-0,\", \"0-0,,1-1 d\","
		" \"0-0,x d\", \"1-1,0-99999 d\"]");
	json_auto_t *entries = NULL;
	char table[CORDON_PROTECTED_TABLE_SIZE];
	size_t unlisted = 0;

	(void)state;
	cordon_protected_table(table);
	entries = cordon_protected_unpack(items, table, &unlisted);
	/* "-1 x" and "x,0-1 d" have the form of a state that this version does not know. */
	assert_int_equal(json_array_size(entries), 7);
	assert_int_equal(unlisted, 15);
}

/* A record as the version before the short form wrote it. */
static void a_record_with_the_long_form_is_read_and_packed_without_loss(void **state)
{
	autosessionrecord struct cordon_session_record record = { 0 };
	autobuf struct cordon_buf text = CORDON_BUF(1 << 20);
	json_auto_t *object = NULL;
	json_auto_t *shown = NULL;
	json_auto_t *packed = NULL;
	char path[512];

	(void)state;
	snprintf(path, sizeof(path), "%s/session-record.json", getenv("CORDON_CASES"));
	assert_int_equal(cordon_read_file(AT_FDCWD, path, 0, &text, NULL), 0);
	object = parse(text.data);
	assert_int_equal(cordon_fields_read(&cordon_session_kind, object, &record, NULL), 0);
	shown = cordon_session_json(&record);
	assert_true(json_array_size(record.protected) > 100);
	assert_true(json_equal(json_object_get(shown, "protected"), json_object_get(object, "protected")));
	assert_int_equal(json_array_size(json_object_get(shown, "notes")), 0);
	packed = cordon_protected_pack(record.protected);
	assert_true(json_array_size(packed) < 30);
	expect_packed(record.protected, json_array_size(packed));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everything_of_a_session_comes_back_in_its_order),
		cmocka_unit_test(hidden_fields_are_not_shown_to_others),
		cmocka_unit_test(absent_fields_are_not_written),
		cmocka_unit_test(a_key_of_an_older_version_is_read_under_its_new_name),
		cmocka_unit_test(keys_that_this_version_does_not_know_are_kept),
		cmocka_unit_test(a_value_of_another_type_is_refused_and_named),
		cmocka_unit_test(a_record_without_what_it_needs_is_damaged),
		cmocka_unit_test(settings_are_copied_completely_and_share_nothing),
		cmocka_unit_test(every_status_has_its_name),
		cmocka_unit_test(what_is_protected_is_packed_and_comes_back_in_its_order),
		cmocka_unit_test(rows_of_another_table_are_counted_and_not_listed),
		cmocka_unit_test(damaged_items_are_left_out),
		cmocka_unit_test(a_record_with_the_long_form_is_read_and_packed_without_loss),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
