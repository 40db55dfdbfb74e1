/* SPDX-License-Identifier: Apache-2.0 */
/* Records as structs: what the reader accepts, what it refuses, and that the writer writes what was read. */
#include "unit.h"

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
	assert_int_equal(record.settings.limits.pids, 6);
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
	assert_int_equal(to.settings.limits.memory_bytes, 5);
	assert_null(to.settings.limits.other);
}

static void every_status_has_its_name(void **state)
{
	(void)state;
	for (cordon_session_status i = CORDON_SESSION_ACTIVE; i < CORDON_SESSION__MAX; i++)
		assert_int_equal(cordon_session_status_parse(cordon_session_status_name(i)), i);
	assert_int_equal(cordon_session_status_parse("lost"), CORDON_SESSION__MAX);
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
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
