/* SPDX-License-Identifier: Apache-2.0 */
/* The fileScope of a PRD: patterns for exactly the folder, and an edit that changes nothing else. */
#include "unit.h"

#include <dirent.h>
#include <sys/file.h>
#include <sys/wait.h>

#include "base/io.h"
#include "config/prd.h"
#include "policy/pattern.h"

#define autoerrors CORDON_CLEANUP(cordon_errors_done)
#define autochanges CORDON_CLEANUP(cordon_prd_changes_done)
#define autojson CORDON_CLEANUP(json_decrefp)

static json_t *two_patterns(void)
{
	json_t *patterns = json_pack("[ss]", "lib/**/*.ts", "a\"b/**");

	assert_non_null(patterns);
	return patterns;
}

static void check_scope(const char *const *folders, size_t n, unsigned int flags, const char *expected)
{
	struct cordon_error err = { 0 };
	json_t *patterns = NULL;
	autofree char *text = NULL;

	assert_int_equal(cordon_prd_infer_scope(folders, n, flags, &patterns, &err), 0);
	text = json_dumps(patterns, JSON_COMPACT);
	assert_string_equal(text, expected);
	json_decref(patterns);
}

static void the_eight_patterns_come_in_a_fixed_order(void **state)
{
	(void)state;
	check_scope((const char *const[]){ "lib", "src/./deep/", "./lib" }, 3, 0,
		    "[\"lib/**/*.sh\",\"lib/**/*.js\",\"lib/**/*.ts\",\"lib/**/*.py\",\"lib/**/*.json\",\"lib/**/*.md\","
		    "\"lib/**/*.yaml\",\"lib/**/*.yml\",\"src/deep/**/*.sh\",\"src/deep/**/*.js\",\"src/deep/**/*.ts\","
		    "\"src/deep/**/*.py\",\"src/deep/**/*.json\",\"src/deep/**/*.md\",\"src/deep/**/*.yaml\","
		    "\"src/deep/**/*.yml\"]");
	check_scope((const char *const[]){ "lib" }, 1, CORDON_SCOPE_WITH_FOLDER,
		    "[\"lib/**/*.sh\",\"lib/**/*.js\",\"lib/**/*.ts\",\"lib/**/*.py\",\"lib/**/*.json\",\"lib/**/*.md\","
		    "\"lib/**/*.yaml\",\"lib/**/*.yml\",\"lib/\"]");
	check_scope((const char *const[]){ "" }, 1, CORDON_SCOPE_WITH_FOLDER,
		    "[\"**/*.sh\",\"**/*.js\",\"**/*.ts\",\"**/*.py\",\"**/*.json\",\"**/*.md\",\"**/*.yaml\",\"**/*.yml\","
		    "\"**\"]");
}

static void a_folder_of_any_name_gives_json_and_patterns_that_mean_it(void **state)
{
	static const char *const names[] = { "a\"b", "new\nline", "star*", "{a,b}", "[x]", "back\\slash",
					     "ü€",   "!not",	  "\x01",  "a b,c", "?" };

	(void)state;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(names); i++) {
		json_t *patterns = NULL, *again;
		autofree char *text = NULL;
		char inside[64], beside[64];
		struct cordon_pattern *pattern;

		assert_int_equal(cordon_prd_infer_scope(&names[i], 1, 0, &patterns, NULL), 0);
		text = json_dumps(patterns, 0);
		assert_non_null(text);
		again = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
		assert_true(json_equal(again, patterns));
		assert_int_equal(cordon_pattern_compile(json_string_value(json_array_get(again, 2)), &pattern, NULL), 0);
		snprintf(inside, sizeof(inside), "%s/deep/x.ts", names[i]);
		snprintf(beside, sizeof(beside), "x%s/deep/x.ts", names[i]);
		assert_true(cordon_pattern_match(pattern, inside, NULL));
		assert_false(cordon_pattern_match(pattern, beside, NULL));
		assert_false(cordon_pattern_match(pattern, "starry/x.ts", NULL));
		assert_false(cordon_pattern_match(pattern, "a/x.ts", NULL));
		cordon_pattern_free(pattern);
		json_decref(again);
		json_decref(patterns);
	}
}

static void a_name_that_json_cannot_hold_is_a_clear_error(void **state)
{
	static const struct {
		const char *folder, *message;
	} bad[] = {
		{ "caf\xe9", "not UTF-8" },
		{ "/abs", "below the repository root" },
		{ "a/../../b", "below the repository root" },
	};

	(void)state;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(bad); i++) {
		struct cordon_error err = { 0 };
		json_t *patterns = NULL;

		assert_true(cordon_prd_infer_scope(&bad[i].folder, 1, 0, &patterns, &err) < 0);
		assert_int_equal(err.kind, CORDON_KIND_USAGE);
		assert_non_null(strstr(err.message, bad[i].message));
		assert_null(patterns);
	}
}

/* Old text and new text: they may differ only where a fileScope is added, byte for byte. */
static void edits_keep_every_other_byte(void **state)
{
	static const struct {
		const char *old, *new, *ids;
	} rows[] = {
		/* absent, one member per line */
		{ "{\n  \"userStories\": [\n    {\n      \"id\": \"US-001\",\n      \"passes\" : false\n    }\n  ]\n}\n",
		  "{\n  \"userStories\": [\n    {\n      \"id\": \"US-001\",\n      \"passes\" : false,\n      \"fileScope\" : [\n"
		  "        \"lib/**/*.ts\",\n        \"a\\\"b/**\"\n      ]\n    }\n  ]\n}\n",
		  "US-001 " },
		/* null and [] are replaced in their place */
		{ "{\"userStories\": [{\"id\": \"A\", \"fileScope\": null, \"x\": 1}, {\"fileScope\": [ ], \"id\": \"B\"}]}",
		  "{\"userStories\": [{\"id\": \"A\", \"fileScope\": [\"lib/**/*.ts\", \"a\\\"b/**\"], \"x\": 1}, "
		  "{\"fileScope\": [\"lib/**/*.ts\",\"a\\\"b/**\"], \"id\": \"B\"}]}",
		  "A B " },
		/* compact */
		{ "{\"userStories\":[{\"id\":\"A\"}]}",
		  "{\"userStories\":[{\"id\":\"A\",\"fileScope\":[\"lib/**/*.ts\",\"a\\\"b/**\"]}]}", "A " },
		{ "{\"userStories\":[{\"id\": \"A\"}]}",
		  "{\"userStories\":[{\"id\": \"A\", \"fileScope\": [\"lib/**/*.ts\", \"a\\\"b/**\"]}]}", "A " },
		{ "{\"userStories\":[{ \"id\":\"A\" }]}",
		  "{\"userStories\":[{ \"id\":\"A\", \"fileScope\":[\"lib/**/*.ts\", \"a\\\"b/**\"] }]}", "A " },
		/* tabs, and line ends of Windows */
		{ "{\r\n\t\"userStories\": [\r\n\t\t{\r\n\t\t\t\"id\": \"A\"\r\n\t\t}\r\n\t]\r\n}\r\n",
		  "{\r\n\t\"userStories\": [\r\n\t\t{\r\n\t\t\t\"id\": \"A\",\r\n\t\t\t\"fileScope\": [\r\n\t\t\t\t\"lib/**/*.ts\","
		  "\r\n\t\t\t\t\"a\\\"b/**\"\r\n\t\t\t]\r\n\t\t}\r\n\t]\r\n}\r\n",
		  "A " },
		/* explicit scopes stay, odd blanks and escapes too */
		{ " { \"n\" : 1.50e+1 , \"userStories\"\t: [ { \"fileScope\" : [ \"x\" ] ,\"id\" : \"\\u0041\" } ] } ",
		  " { \"n\" : 1.50e+1 , \"userStories\"\t: [ { \"fileScope\" : [ \"x\" ] ,\"id\" : \"\\u0041\" } ] } ",
		  "" },
		{ "{\"userStories\": []}", "{\"userStories\": []}", "" },
		/* a fileScope that is not in a story is not touched */
		{ "{\"fileScope\":null,\"userStories\":[{\"id\":\"A\",\"deep\":{\"fileScope\":null},\"fileScope\":[1]}]}",
		  "{\"fileScope\":null,\"userStories\":[{\"id\":\"A\",\"deep\":{\"fileScope\":null},\"fileScope\":[1]}]}",
		  "" },
	};
	autojson json_t *patterns = two_patterns();

	(void)state;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(rows); i++) {
		autobuf struct cordon_buf text = CORDON_BUF(1 << 16), ids = CORDON_BUF(100), again = CORDON_BUF(1 << 16);
		autoerrors struct cordon_errors errors = { 0 };
		autochanges struct cordon_prd_changes changes = { 0 }, none = { 0 };

		assert_int_equal(cordon_prd_edit_scope("p", rows[i].old, strlen(rows[i].old), patterns, &text, &changes,
						       &errors),
				 0);
		assert_string_equal(text.data, rows[i].new);
		for (size_t j = 0; j < changes.n; j++)
			cordon_buf_addf(&ids, "%s ", changes.ids[j]);
		assert_string_equal(ids.data ? ids.data : "", rows[i].ids);
		assert_int_equal(cordon_prd_edit_scope("p", text.data, text.len, patterns, &again, &none, &errors), 0);
		assert_string_equal(again.data, rows[i].new);
		assert_int_equal(none.n, 0);
	}
}

static void faults_are_reported_at_their_places_all_at_once(void **state)
{
	static const struct {
		const char *text, *errors[5];
	} rows[] = {
		{ "", { "p:1:1 not valid JSON" } },
		{ "{\"userStories\": [}", { "p:1:18 not valid JSON" } },
		{ "[]", { "p:1:1 a PRD must be an object, not a list" } },
		{ "{\"stories\": []}", { "p:1:1 the PRD has no userStories" } },
		{ "{\"userStories\": {}}", { "p:1:17 userStories must be a list, not a mapping" } },
		{ "{\"userStories\": null}", { "p:1:17 userStories must be a list, not null" } },
		{ "{\"userStories\": [\n {\"id\": \"A\"},\n 5, {\"title\": \"x\"},\n {\"id\": 7}, {\"id\": \"\"}]}",
		  { "p:3:2 userStories[1] must be an object, not a number", "p:3:5 userStories[2] has no id",
		    "p:4:9 the id of userStories[3] must be text", "p:4:20 the id of userStories[4]" } },
		{ "{\"userStories\": [{\"id\": \"A\", \"fileScope\": \"lib\"}]}",
		  { "p:1:43 the fileScope of userStories[0] must be a list, not text" } },
		{ "{\"userStories\": [{\"id\": \"A\", \"id\": \"B\"}]}", { "p:1:30 not valid JSON: duplicate" } },
		{ "{\"userStories\": [], \"userStories\": []}", { "p:1:21 not valid JSON: duplicate" } },
		{ "{\"userStories\": [{\"id\": \"\xff\"}]}", { "p:1:25 not valid JSON" } },
	};
	autojson json_t *patterns = two_patterns();

	(void)state;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(rows); i++) {
		autobuf struct cordon_buf text = CORDON_BUF(1 << 16);
		autoerrors struct cordon_errors errors = { 0 };
		autochanges struct cordon_prd_changes changes = { 0 };
		size_t n = 0;

		assert_true(cordon_prd_edit_scope("p", rows[i].text, strlen(rows[i].text), patterns, &text, &changes,
						  &errors) < 0);
		for (; n < 5 && rows[i].errors[n]; n++) {
			char said[2048];

			assert_true(n < errors.n);
			snprintf(said, sizeof(said), "%s %s", errors.items[n].where, errors.items[n].message);
			if (strncmp(said, rows[i].errors[n], strlen(rows[i].errors[n])) != 0)
				fail_msg("%s, not %s", said, rows[i].errors[n]);
		}
		assert_int_equal(errors.n, n);
		assert_int_equal(changes.n, 0);
		assert_int_equal(text.len, 0);
	}
}

static const char before[] =
	"{\n  \"userStories\": [\n    {\"id\": \"US-001\", \"fileScope\": []},\n    {\"id\": \"US-002\"}\n  ]\n}\n";

static void read_prd(struct cordon_buf *buf)
{
	cordon_buf_reset(buf);
	assert_int_equal(cordon_read_file(AT_FDCWD, "prd.json", 0, buf, NULL), 0);
}

static int count_entries(void)
{
	DIR *dir = opendir(".");
	int n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n - 2;
}

static void a_file_is_replaced_once_and_keeps_mode_and_owner(void **state)
{
	autobuf struct cordon_buf once = CORDON_BUF(4096), twice = CORDON_BUF(4096);
	autochanges struct cordon_prd_changes changes = { 0 }, none = { 0 };
	autoerrors struct cordon_errors errors = { 0 };
	autojson json_t *patterns = two_patterns();
	uid_t owner = geteuid() == 0 ? 1234 : geteuid();
	struct stat first, second;

	(void)state;
	unit_write("prd.json", before);
	assert_int_equal(chmod("prd.json", 0640), 0);
	if (geteuid() == 0)
		assert_int_equal(chown("prd.json", owner, owner), 0);
	assert_int_equal(cordon_prd_update_scope("prd.json", patterns, &changes, &errors), 0);
	assert_int_equal(changes.n, 2);
	assert_string_equal(changes.ids[0], "US-001");
	assert_string_equal(changes.ids[1], "US-002");
	read_prd(&once);
	assert_int_equal(stat("prd.json", &first), 0);
	assert_int_equal(first.st_mode & 07777, 0640);
	assert_int_equal(first.st_uid, owner);
	assert_int_equal(cordon_prd_update_scope("./prd.json", patterns, &none, &errors), 0);
	assert_int_equal(none.n, 0);
	read_prd(&twice);
	assert_string_equal(once.data, twice.data);
	assert_int_equal(stat("prd.json", &second), 0);
	assert_int_equal(first.st_ino, second.st_ino);
	assert_int_equal(count_entries(), 1);
}

static void check_refused(const char *path, cordon_kind kind, const char *message)
{
	autochanges struct cordon_prd_changes changes = { 0 };
	autoerrors struct cordon_errors errors = { 0 };
	autojson json_t *patterns = two_patterns();

	assert_true(cordon_prd_update_scope(path, patterns, &changes, &errors) < 0);
	assert_int_equal(errors.n, 1);
	assert_int_equal(errors.items[0].kind, kind);
	if (!strstr(errors.items[0].message, message))
		fail_msg("%s", errors.items[0].message);
	assert_int_equal(changes.n, 0);
}

static void only_a_regular_file_is_changed(void **state)
{
	autobuf struct cordon_buf text = CORDON_BUF(4096);

	(void)state;
	unit_write("prd.json", before);
	unit_link("prd.json", "link.json");
	unit_mkdir("dir");
	assert_int_equal(mkfifo("fifo", 0600), 0);
	check_refused("link.json", CORDON_KIND_IO, "is a symbolic link");
	check_refused("dir", CORDON_KIND_IO, "is not a regular file");
	check_refused("dir/", CORDON_KIND_IO, "is not a regular file");
	check_refused("..", CORDON_KIND_IO, "is not a regular file");
	check_refused("", CORDON_KIND_IO, "is not a regular file");
	check_refused("fifo", CORDON_KIND_IO, "is not a regular file");
	check_refused("missing.json", CORDON_KIND_NOT_FOUND, "missing.json");
	check_refused("missing/prd.json", CORDON_KIND_NOT_FOUND, "missing/prd.json");
	check_refused("prd.json/prd.json", CORDON_KIND_IO, "prd.json");
	read_prd(&text);
	assert_string_equal(text.data, before);
	assert_int_equal(count_entries(), 4);
}

static void a_refused_edit_leaves_the_file_alone(void **state)
{
	static const char bad[] = "{\"userStories\": [{\"id\": \"A\"}, {}]}";
	autobuf struct cordon_buf text = CORDON_BUF(4096);

	(void)state;
	unit_write("prd.json", bad);
	check_refused("prd.json", CORDON_KIND_CONFIG, "userStories[1] has no id");
	read_prd(&text);
	assert_string_equal(text.data, bad);
}

/* Eight processes, each with a different pattern: one of them fills all stories, the others find nothing to do. */
static void writers_at_the_same_time_do_not_mix(void **state)
{
	autobuf struct cordon_buf text = CORDON_BUF(1 << 16);
	json_t *prd, *first;
	int winners = 0;
	pid_t children[8];

	(void)state;
	unit_write("prd.json", before);
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(children); i++) {
		children[i] = fork();
		assert_true(children[i] >= 0);
		if (children[i] == 0) {
			struct cordon_prd_changes changes = { 0 };
			json_t *patterns = json_pack("[i]", (int)i);
			int r = cordon_prd_update_scope("prd.json", patterns, &changes, NULL);

			_exit(r < 0 ? 99 : (int)changes.n);
		}
	}
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(children); i++) {
		int status;

		assert_int_equal(waitpid(children[i], &status, 0), children[i]);
		assert_true(WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 2));
		winners += WEXITSTATUS(status) == 2;
	}
	assert_int_equal(winners, 1);
	read_prd(&text);
	prd = json_loads(text.data, 0, NULL);
	first = json_object_get(json_array_get(json_object_get(prd, "userStories"), 0), "fileScope");
	assert_true(json_equal(first,
			       json_object_get(json_array_get(json_object_get(prd, "userStories"), 1), "fileScope")));
	json_decref(prd);
	assert_int_equal(count_entries(), 1);
}

static void the_lock_is_waited_for(void **state)
{
	autochanges struct cordon_prd_changes changes = { 0 };
	autoerrors struct cordon_errors errors = { 0 };
	autojson json_t *patterns = two_patterns();
	autofd int fd = -1;
	pid_t child;
	int status;

	(void)state;
	unit_write("prd.json", before);
	fd = open("prd.json", O_RDONLY | O_CLOEXEC);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		/* This process has a copy of the descriptor; the lock ends when both are closed. */
		usleep(200 * 1000);
		_exit(0);
	}
	cordon_closep(&fd);
	assert_int_equal(cordon_prd_update_scope("prd.json", patterns, &changes, &errors), 0);
	assert_int_equal(waitpid(child, &status, WNOHANG), child);
	assert_int_equal(changes.n, 2);
}

/* An agent that may read the PRD may lock it too. */
static void a_lock_that_is_never_released_does_not_hold_us(void **state)
{
	autobuf struct cordon_buf text = CORDON_BUF(4096);
	autofd int fd = -1;

	(void)state;
	unit_write("prd.json", before);
	fd = open("prd.json", O_RDONLY | O_CLOEXEC);
	assert_int_equal(flock(fd, LOCK_SH), 0);
	check_refused("prd.json", CORDON_KIND_CONFLICT, "is being changed by another process");
	read_prd(&text);
	assert_string_equal(text.data, before);
}

static void a_file_that_may_not_be_written_is_not_replaced(void **state)
{
	autobuf struct cordon_buf text = CORDON_BUF(4096);
	pid_t child;
	int status;

	(void)state;
	unit_write("prd.json", before);
	assert_int_equal(chmod("prd.json", 0444), 0);
	assert_int_equal(chmod(".", 0777), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		struct cordon_prd_changes changes = { 0 };
		struct cordon_errors errors = { 0 };

		if (geteuid() == 0 && (setgid(65534) < 0 || setuid(65534) < 0))
			_exit(99);
		_exit(cordon_prd_update_scope("prd.json", two_patterns(), &changes, &errors) == -EACCES ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	read_prd(&text);
	assert_string_equal(text.data, before);
}

static void deep_and_large_files_are_answered(void **state)
{
	autobuf struct cordon_buf deep = CORDON_BUF(1 << 20), many = CORDON_BUF(CORDON_PRD_SIZE_MAX);
	autobuf struct cordon_buf text = CORDON_BUF(CORDON_PRD_SIZE_MAX);
	autochanges struct cordon_prd_changes changes = { 0 };
	autoerrors struct cordon_errors errors = { 0 };
	autojson json_t *patterns = two_patterns();

	(void)state;
	cordon_buf_adds(&deep, "{\"userStories\": [{\"id\": \"A\", \"x\": ");
	for (int i = 0; i < 1000; i++)
		cordon_buf_addc(&deep, '[');
	for (int i = 0; i < 1000; i++)
		cordon_buf_addc(&deep, ']');
	cordon_buf_adds(&deep, "}]}");
	assert_int_equal(cordon_prd_edit_scope("p", deep.data, deep.len, patterns, &text, &changes, &errors), 0);
	assert_int_equal(changes.n, 1);
	cordon_prd_changes_done(&changes);
	cordon_buf_reset(&text);
	/* 200,000 stories fit, but the result of the edit does not. */
	cordon_buf_adds(&many, "{\"userStories\": [{\"id\":\"A\"}");
	for (int i = 0; i < 200000; i++)
		cordon_buf_adds(&many, ",{\"id\":\"A\"}");
	cordon_buf_adds(&many, "]}");
	assert_int_equal(cordon_prd_edit_scope("p", many.data, many.len, patterns, &text, &changes, &errors), -E2BIG);
	assert_int_equal(errors.items[0].kind, CORDON_KIND_LIMIT);
	assert_int_equal(changes.n, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_eight_patterns_come_in_a_fixed_order),
		cmocka_unit_test(a_folder_of_any_name_gives_json_and_patterns_that_mean_it),
		cmocka_unit_test(a_name_that_json_cannot_hold_is_a_clear_error),
		cmocka_unit_test(edits_keep_every_other_byte),
		cmocka_unit_test(faults_are_reported_at_their_places_all_at_once),
		unit_test_in_dir(a_file_is_replaced_once_and_keeps_mode_and_owner),
		unit_test_in_dir(only_a_regular_file_is_changed),
		unit_test_in_dir(a_refused_edit_leaves_the_file_alone),
		unit_test_in_dir(writers_at_the_same_time_do_not_mix),
		unit_test_in_dir(the_lock_is_waited_for),
		unit_test_in_dir(a_lock_that_is_never_released_does_not_hold_us),
		unit_test_in_dir(a_file_that_may_not_be_written_is_not_replaced),
		cmocka_unit_test(deep_and_large_files_are_answered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
