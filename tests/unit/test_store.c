/* SPDX-License-Identifier: Apache-2.0 */
/* Projects and workspaces on disk: what is created, what is refused, and what hostile trees cannot do. */
#include "unit.h"

#include "base/io.h"
#include "store/internal.h"

static struct cordon_store store = CORDON_STORE_NONE;

static int store_setup(void **state)
{
	char home[2 * UNIT_PATH];

	if (unit_setup(state) < 0)
		return -1;
	snprintf(home, sizeof(home), "%s/home", unit_dir);
	return setenv("CORDON_HOME", home, 1) == 0 && cordon_store_open(&store, NULL) == 0 ? 0 : -1;
}

static int store_teardown(void **state)
{
	cordon_store_done(&store);
	return unit_teardown(state);
}

#define store_test(name) cmocka_unit_test_setup_teardown(name, store_setup, store_teardown)

/* Calls the functions of the store and returns their results in the form that clients see, which most of these tests
 * are about. */
static int shown_project(int r, struct cordon_project_record *record, json_t **ret)
{
	if (r == 0) {
		*ret = cordon_project_json(record);
		assert_non_null(*ret);
	}
	cordon_project_record_done(record);
	return r;
}

static int shown_workspace(int r, struct cordon_workspace_record *record, json_t **ret)
{
	if (r == 0) {
		*ret = cordon_workspace_json(record);
		assert_non_null(*ret);
	}
	cordon_workspace_record_done(record);
	return r;
}

static int shown_project_create(const struct cordon_store *in, const json_t *settings, const char *template_dir,
				json_t **ret, struct cordon_error *err)
{
	const struct cordon_template template = { .dir = template_dir };
	struct cordon_project_record record = { 0 };

	return shown_project(cordon_project_create(in, settings, template_dir ? &template : NULL, &record, err),
			     &record, ret);
}

static int shown_project_get(const struct cordon_store *in, const char *id, json_t **ret, struct cordon_error *err)
{
	struct cordon_project_record record = { 0 };

	return shown_project(cordon_project_get(in, id, &record, err), &record, ret);
}

static int shown_project_update(const struct cordon_store *in, const char *id, const json_t *changes, json_t **ret,
				json_t **ret_running, struct cordon_error *err)
{
	struct cordon_project_record record = { 0 };

	return shown_project(cordon_project_update(in, id, changes, NULL, &record, ret_running, err), &record, ret);
}

static int shown_workspace_create(const struct cordon_store *in, const char *project,
				  const struct cordon_workspace_request *request, json_t **ret, bool *ret_created,
				  struct cordon_error *err)
{
	struct cordon_workspace_record record = { 0 };

	return shown_workspace(cordon_workspace_create(in, project, request, &record, ret_created, err), &record, ret);
}

static int shown_workspace_get(const struct cordon_store *in, const char *project, const char *id, json_t **ret,
			       struct cordon_error *err)
{
	struct cordon_workspace_record record = { 0 };

	return shown_workspace(cordon_workspace_get(in, project, id, &record, err), &record, ret);
}

static int shown_workspace_resolve(const struct cordon_store *in, const char *project,
				   const struct cordon_workspace_request *request, bool create_missing, json_t **ret,
				   bool *ret_created, struct cordon_error *err)
{
	struct cordon_workspace_record record = { 0 };

	return shown_workspace(cordon_workspace_resolve(in, project, request, create_missing, &record, ret_created, err),
			       &record, ret);
}

static json_t *create(const char *settings)
{
	json_auto_t *wanted = json_loads(settings, 0, NULL);
	struct cordon_error err = { 0 };
	json_t *project = NULL;

	assert_non_null(wanted);
	if (shown_project_create(&store, wanted, NULL, &project, &err) < 0)
		fail_msg("%s", err.message);
	return project;
}

static const char *text(const json_t *record, const char *key)
{
	const char *value = json_string_value(json_object_get(record, key));

	assert_non_null(value);
	return value;
}

/* "home/projects/<id>/<below>" */
static const char *path_of(const json_t *project, const char *below)
{
	static char path[1024];

	snprintf(path, sizeof(path), "home/projects/%s/%s", text(project, "id"), below);
	return path;
}

static json_t *workspace(const json_t *project, struct cordon_workspace_request request, bool *ret_created)
{
	struct cordon_error err = { 0 };
	json_t *made = NULL;

	if (shown_workspace_create(&store, text(project, "id"), &request, &made, ret_created, &err) < 0)
		fail_msg("%s", err.message);
	return made;
}

static void expect_error(int r, cordon_kind kind, const struct cordon_error *err, const char *word)
{
	assert_true(r < 0);
	assert_int_equal(err->kind, kind);
	if (!strstr(err->message, word))
		fail_msg("\"%s\" does not say \"%s\"", err->message, word);
}

static void expect_content(const char *path, const char *want)
{
	autobuf struct cordon_buf content = CORDON_BUF(1 << 20);

	assert_int_equal(cordon_read_file(AT_FDCWD, path, O_NOFOLLOW, &content, NULL), 0);
	assert_string_equal(content.data, want);
}

static bool exists(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0;
}

static void project_has_its_default_workspace_and_metadata(void **state)
{
	json_auto_t *project = create("{\"name\": \"p\", \"init_git\": false}");
	json_auto_t *metadata = json_load_file(path_of(project, "metadata.json"), 0, NULL);
	json_auto_t *found = NULL;
	char below[128];

	(void)state;
	assert_true(json_is_false(json_object_get(metadata, "workspace_isolation")));
	assert_int_equal(json_array_size(json_object_get(metadata, "protected_paths")), 0);
	assert_true(json_is_array(json_object_get(metadata, "protected_paths")));
	assert_true(json_is_object(json_object_get(metadata, "limits")));
	assert_true(json_is_object(json_object_get(metadata, "agent")));
	assert_string_equal(text(metadata, "id"), text(project, "id"));
	snprintf(below, sizeof(below), "workspaces/%s", text(project, "default_workspace_id"));
	assert_true(exists(path_of(project, below)));
	assert_true(exists(path_of(project, "sessions")));
	assert_int_equal(shown_workspace_get(&store, text(project, "id"), text(project, "default_workspace_id"), &found,
					     NULL),
			 0);
	assert_string_equal(text(found, "source"), "project_create");
}

static void metadata_shows_no_environment_and_the_record_does(void **state)
{
	json_auto_t *project = create(
		"{\"name\": \"p\", \"env\": {\"KEY\": \"s3cret\"}, \"agent_command\": [\"x\", \"--token=s3cret\"]}");
	autobuf struct cordon_buf content = CORDON_BUF(1 << 20);

	(void)state;
	assert_string_equal(text(json_object_get(project, "env"), "KEY"), "s3cret");
	assert_int_equal(cordon_read_file(AT_FDCWD, path_of(project, "metadata.json"), 0, &content, NULL), 0);
	assert_null(strstr(content.data, "s3cret"));
}

static void settings_are_judged_and_every_bad_path_is_named(void **state)
{
	static const struct {
		const char *settings;
		const char *word;
	} rows[] = {
		{ "{}", "name is required" },
		{ "{\"name\": \"\"}", "name" },
		{ "{\"name\": 5}", "name" },
		{ "{\"name\": \"a\\nb\"}", "control characters" },
		{ "{\"name\": \"p\", \"colour\": 1}", "unknown setting: colour" },
		{ "{\"name\": \"p\", \"github_token\": \"x\"}", "unknown setting: github_token" },
		{ "{\"name\": \"p\", \"workspace_isolation\": \"yes\"}", "workspace_isolation must be true or false" },
		{ "{\"name\": \"p\", \"protected_paths\": \"AGENTS.md\"}", "protected_paths must be an array" },
		{ "{\"name\": \"p\", \"protected_paths\": [\"ok\", \"/etc\", \"a/../b\", \"\", \".\", \"./\", 5]}",
		  "[1] is absolute" },
		{ "{\"name\": \"p\", \"protected_paths\": [\"ok\", \"/etc\", \"a/../b\"]}", "[2] has '..'" },
		{ "{\"name\": \"p\", \"protected_paths\": [\"\"]}", "[0] is empty" },
		{ "{\"name\": \"p\", \"protected_paths\": [\"./.\"]}", "[0] means the workspace itself" },
		{ "{\"name\": \"p\", \"protected_paths\": [{}]}", "[0] is not a string" },
		{ "{\"name\": \"p\", \"limits\": {\"pids\": 0}}", "limits.pids" },
		{ "{\"name\": \"p\", \"limits\": {\"speed\": 1}}", "unknown limit: speed" },
		{ "{\"name\": \"p\", \"net\": \"lan\"}", "net" },
		{ "{\"name\": \"p\", \"env\": {\"A=B\": \"x\"}}", "not a variable name" },
		{ "{\"name\": \"p\", \"env_pass\": [\"1X\"]}", "not a variable name" },
		{ "{\"name\": \"p\", \"agent_command\": [\"\"]}", "agent_command[0]" },
		{ "{\"name\": \"p\", \"remote_url\": \"ext::sh -c id\"}", "remote_url" },
		{ "{\"name\": \"p\", \"remote_url\": \"--upload-pack=x\"}", "remote_url" },
		{ "{\"name\": \"p\", \"remote_url\": \"ssh://-oProxyCommand=x\"}", "remote_url" },
		{ "{\"name\": \"p\", \"init_git\": 1}", "init_git" },
		{ "[]", "" },
	};

	(void)state;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(rows); i++) {
		json_auto_t *settings = json_loads(rows[i].settings, 0, NULL);
		struct cordon_error err = { 0 };
		json_t *project = NULL;

		expect_error(shown_project_create(&store, settings, NULL, &project, &err), CORDON_KIND_USAGE, &err,
			     rows[i].word);
	}
	/* The refused requests have left nothing behind. */
	json_auto_t *projects = NULL;
	size_t total = 1;

	assert_int_equal(cordon_project_list(&store, NULL, &projects, &total, NULL), 0);
	assert_int_equal(total, 0);
	assert_int_equal(rmdir("home/projects"), 0);
	assert_int_equal(rmdir("home/state/staging"), 0);
}

static void protected_paths_stay_as_written_without_duplicates(void **state)
{
	json_auto_t *project = create(
		"{\"name\": \"p\", \"protected_paths\": [\"AGENTS.md\", \".factory/\", \"./AGENTS.md\", \".factory\"]}");
	json_auto_t *want = json_loads("[\"AGENTS.md\", \".factory/\"]", 0, NULL);

	(void)state;
	assert_true(json_equal(json_object_get(project, "protected_paths"), want));
}

static void ids_are_judged_before_any_path_is_made_of_them(void **state)
{
	static const char *const bad[] = { "",	   "..",  "../../etc", "/etc", "a/b", "a.b", "-o\n",
					   "\xff", "a b", "a\\b",      "a:b",  "~",   "%2e", "ws\t" };
	json_auto_t *project = create("{\"name\": \"p\"}");
	char huge[4096];

	(void)state;
	memset(huge, 'a', sizeof(huge) - 1);
	huge[sizeof(huge) - 1] = '\0';
	for (size_t i = 0; i <= CORDON_ARRAY_SIZE(bad); i++) {
		const char *id = i < CORDON_ARRAY_SIZE(bad) ? bad[i] : huge;
		struct cordon_workspace_request request = { .id = id };
		struct cordon_error err = { 0 };
		json_t *made = NULL;
		bool flag;

		expect_error(shown_workspace_create(&store, text(project, "id"), &request, &made, &flag, &err),
			     CORDON_KIND_USAGE, &err, "workspace_id");
		expect_error(cordon_workspace_delete(&store, text(project, "id"), id, &flag, &err), CORDON_KIND_USAGE,
			     &err, "workspace_id");
		expect_error(shown_project_get(&store, id, &made, &err), CORDON_KIND_USAGE, &err, "project_id");
		expect_error(cordon_project_delete(&store, id, &flag, &err), CORDON_KIND_USAGE, &err, "project_id");
	}
}

static void workspace_creation_is_idempotent_and_folds_case(void **state)
{
	json_auto_t *project = create("{\"name\": \"p\"}");
	bool created = false;
	json_auto_t *first = workspace(project, (struct cordon_workspace_request){ .id = "ABC-123" }, &created);
	json_auto_t *second = NULL;

	(void)state;
	assert_true(created);
	assert_string_equal(text(first, "id"), "abc-123");
	unit_write(path_of(project, "workspaces/abc-123/AGENTS.md"), "theirs");
	unit_write(path_of(project, "AGENTS.md"), "ours");
	second = workspace(project, (struct cordon_workspace_request){ .id = "abc-123", .source = "other" }, &created);
	assert_false(created);
	assert_true(json_equal(first, second));
	expect_content(path_of(project, "workspaces/abc-123/AGENTS.md"), "theirs");
}

static void agents_md_is_copied_with_isolation_only_and_factory_always(void **state)
{
	json_auto_t *isolated = create("{\"name\": \"i\", \"workspace_isolation\": true}");
	json_auto_t *open_project = create("{\"name\": \"o\"}");
	const json_t *both[] = { isolated, open_project };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		unit_write(path_of(both[i], "AGENTS.md"), "rules");
		unit_mkdir(path_of(both[i], ".factory"));
		unit_write(path_of(both[i], ".factory/mcp.json"), "{}");
		json_decref(workspace(both[i], (struct cordon_workspace_request){ .id = "w" }, NULL));
		expect_content(path_of(both[i], "workspaces/w/.factory/mcp.json"), "{}");
	}
	expect_content(path_of(isolated, "workspaces/w/AGENTS.md"), "rules");
	assert_false(exists(path_of(open_project, "workspaces/w/AGENTS.md")));
}

static void directory_that_is_already_there_keeps_its_files(void **state)
{
	json_auto_t *project = create("{\"name\": \"i\", \"workspace_isolation\": true}");

	(void)state;
	unit_write(path_of(project, "AGENTS.md"), "ours");
	unit_mkdir(path_of(project, ".factory"));
	unit_write(path_of(project, ".factory/a"), "ours");
	unit_mkdir(path_of(project, "workspaces/w"));
	unit_write(path_of(project, "workspaces/w/AGENTS.md"), "theirs");
	json_decref(workspace(project, (struct cordon_workspace_request){ .id = "w" }, NULL));
	expect_content(path_of(project, "workspaces/w/AGENTS.md"), "theirs");
	expect_content(path_of(project, "workspaces/w/.factory/a"), "ours");
}

static void links_at_either_end_fail_the_creation_and_touch_nothing(void **state)
{
	json_auto_t *project = create("{\"name\": \"i\", \"workspace_isolation\": true}");
	struct cordon_workspace_request request = { .id = "w" };
	struct cordon_error err = { 0 };
	json_t *made = NULL;
	bool created;

	(void)state;
	unit_write("secret", "secret");
	unit_mkdir("outside");
	unit_link("../../../secret", path_of(project, "AGENTS.md"));
	expect_error(shown_workspace_create(&store, text(project, "id"), &request, &made, &created, &err),
		     CORDON_KIND_POLICY_DENIED, &err, "AGENTS.md is a link");
	assert_false(exists(path_of(project, "workspaces/w")));
	assert_int_equal(unlink(path_of(project, "AGENTS.md")), 0);
	/* The workspace's own directory is a link that leads out. */
	unit_write(path_of(project, "AGENTS.md"), "rules");
	unit_link("../../../../outside", path_of(project, "workspaces/w"));
	expect_error(shown_workspace_create(&store, text(project, "id"), &request, &made, &created, &err),
		     CORDON_KIND_CONFLICT, &err, "not a directory");
	assert_false(exists("outside/AGENTS.md"));
	assert_int_equal(unlink(path_of(project, "workspaces/w")), 0);
	/* The directory of all workspaces is a link that leads out. */
	assert_int_equal(rename(path_of(project, "workspaces"), "elsewhere"), 0);
	unit_link("../../../outside", path_of(project, "workspaces"));
	expect_error(shown_workspace_create(&store, text(project, "id"), &request, &made, &created, &err),
		     CORDON_KIND_CONFLICT, &err, "workspaces is not a directory");
	assert_false(exists("outside/w"));
	assert_int_equal(unlink(path_of(project, "workspaces")), 0);
	/* A FIFO would make a careless reader wait for ever. */
	assert_int_equal(unlink(path_of(project, "AGENTS.md")), 0);
	assert_int_equal(mkfifo(path_of(project, "AGENTS.md"), 0600), 0);
	expect_error(shown_workspace_create(&store, text(project, "id"), &request, &made, &created, &err),
		     CORDON_KIND_POLICY_DENIED, &err, "AGENTS.md is a FIFO");
	expect_error(shown_workspace_get(&store, text(project, "id"), "w", &made, &err), CORDON_KIND_NOT_FOUND, &err,
		     "does not exist");
}

static void forged_or_obstructed_metadata_changes_nothing(void **state)
{
	json_auto_t *project = create("{\"name\": \"p\", \"workspace_isolation\": true}");
	json_auto_t *changes = json_pack("{s:s}", "description", "new");
	json_auto_t *got = NULL;
	json_t *updated = NULL;

	(void)state;
	unit_write(path_of(project, "metadata.json"), "{\"workspace_isolation\": false}");
	assert_int_equal(shown_project_get(&store, text(project, "id"), &got, NULL), 0);
	assert_true(json_is_true(json_object_get(got, "workspace_isolation")));

	/* A link in its place is replaced, not followed; a directory is removed. */
	unit_write("victim", "old");
	assert_int_equal(unlink(path_of(project, "metadata.json")), 0);
	unit_link("../../../victim", path_of(project, "metadata.json"));
	assert_int_equal(shown_project_update(&store, text(project, "id"), changes, &updated, NULL, NULL), 0);
	json_decref(updated);
	expect_content("victim", "old");
	assert_int_equal(unlink(path_of(project, "metadata.json")), 0);
	unit_mkdir(path_of(project, "metadata.json"));
	unit_write(path_of(project, "metadata.json/x"), "x");
	assert_int_equal(chmod(path_of(project, "metadata.json"), 0500), 0);
	assert_int_equal(chmod(path_of(project, ""), 0500), 0);
	assert_int_equal(shown_project_update(&store, text(project, "id"), changes, &updated, NULL, NULL), 0);
	json_decref(updated);
	json_auto_t *metadata = json_load_file(path_of(project, "metadata.json"), 0, NULL);

	assert_string_equal(text(metadata, "description"), "new");
	assert_true(json_is_true(json_object_get(metadata, "workspace_isolation")));
}

static void update_changes_only_what_it_names(void **state)
{
	json_auto_t *project = create(
		"{\"name\": \"p\", \"protected_paths\": [\"a\"], \"limits\": {\"pids\": 7}, \"model\": \"m\"}");
	json_auto_t *changes = json_loads(
		"{\"workspace_isolation\": true, \"limits\": {\"max_sessions\": 2}, \"model\": null}", 0, NULL);
	json_auto_t *bad = json_loads("{\"name\": \"q\", \"protected_paths\": [\"..\"]}", 0, NULL);
	json_auto_t *updated = NULL;
	json_auto_t *got = NULL;
	struct cordon_error err = { 0 };
	json_t *none = NULL;
	json_t *limits;

	(void)state;
	assert_int_equal(shown_project_update(&store, text(project, "id"), changes, &updated, NULL, NULL), 0);
	assert_true(json_is_true(json_object_get(updated, "workspace_isolation")));
	assert_int_equal(json_array_size(json_object_get(updated, "protected_paths")), 1);
	limits = json_object_get(updated, "limits");
	assert_int_equal(json_integer_value(json_object_get(limits, "pids")), 7);
	assert_int_equal(json_integer_value(json_object_get(limits, "max_sessions")), 2);
	assert_null(json_object_get(json_object_get(updated, "agent"), "model"));
	/* A refused change leaves everything as it was. */
	expect_error(shown_project_update(&store, text(project, "id"), bad, &none, NULL, &err), CORDON_KIND_USAGE, &err,
		     "has '..'");
	assert_int_equal(shown_project_get(&store, text(project, "id"), &got, NULL), 0);
	assert_true(json_equal(got, updated));
}

static void external_id_and_source_mean_one_workspace(void **state)
{
	json_auto_t *project = create("{\"name\": \"p\"}");
	struct cordon_workspace_request alice = { .external_id = "+49 151/..", .source = "signal" };
	struct cordon_workspace_request other = { .external_id = "+49 151/..", .source = "slack" };
	bool created = false, deleted = false;
	json_auto_t *first = workspace(project, alice, &created);
	json_auto_t *again = NULL;
	json_auto_t *slack = NULL;
	json_auto_t *found = NULL;
	struct cordon_error err = { 0 };
	json_t *none = NULL;

	(void)state;
	assert_true(created);
	again = workspace(project, alice, &created);
	assert_false(created);
	assert_string_equal(text(first, "id"), text(again, "id"));
	slack = workspace(project, other, &created);
	assert_true(created);
	assert_string_not_equal(text(first, "id"), text(slack, "id"));

	assert_int_equal(shown_workspace_resolve(&store, text(project, "id"), &alice, false, &found, &created, NULL), 0);
	assert_string_equal(text(found, "id"), text(first, "id"));
	/* A second workspace can't take the same external id. */
	alice.id = "mine";
	expect_error(shown_workspace_create(&store, text(project, "id"), &alice, &none, &created, &err),
		     CORDON_KIND_CONFLICT, &err, "already means");
	alice.id = NULL;
	assert_int_equal(cordon_workspace_delete(&store, text(project, "id"), text(first, "id"), &deleted, NULL), 0);
	assert_true(deleted);
	expect_error(shown_workspace_resolve(&store, text(project, "id"), &alice, false, &none, &created, &err),
		     CORDON_KIND_NOT_FOUND, &err, "recorded for");
	json_decref(workspace(project, alice, &created));
	assert_true(created);
}

static void resolution_depends_on_id_and_create(void **state)
{
	json_auto_t *project = create("{\"name\": \"p\"}");
	const char *id = text(project, "id");
	struct cordon_workspace_request none = { 0 };
	struct cordon_workspace_request named = { .id = "w" };
	struct cordon_error err = { 0 };
	json_t *found = NULL;
	bool created = true;

	(void)state;
	/* No id, create false: the default workspace. */
	assert_int_equal(shown_workspace_resolve(&store, id, &none, false, &found, &created, NULL), 0);
	assert_string_equal(text(found, "id"), text(project, "default_workspace_id"));
	assert_false(created);
	json_decref(found);
	/* No id, create true: a new workspace. */
	assert_int_equal(shown_workspace_resolve(&store, id, &none, true, &found, &created, NULL), 0);
	assert_string_not_equal(text(found, "id"), text(project, "default_workspace_id"));
	assert_true(created);
	json_decref(found);
	/* An unknown id, create false: not_found. With create true: a workspace with exactly that id, and then either
	 * finds it. */
	expect_error(shown_workspace_resolve(&store, id, &named, false, &found, &created, &err), CORDON_KIND_NOT_FOUND,
		     &err, "workspace w does not exist");
	for (int i = 0; i < 3; i++) {
		assert_int_equal(shown_workspace_resolve(&store, id, &named, i < 2, &found, &created, NULL), 0);
		assert_string_equal(text(found, "id"), "w");
		assert_int_equal(created, i == 0);
		json_decref(found);
	}
}

static void all_but_the_default_workspace_can_be_deleted_and_missing_ones_are_no_error(void **state)
{
	json_auto_t *project = create("{\"name\": \"p\"}");
	const char *id = text(project, "id");
	struct cordon_error err = { 0 };
	bool deleted = true;
	json_t *none = NULL;

	(void)state;
	assert_int_equal(cordon_workspace_delete(&store, id, "missing", &deleted, NULL), 0);
	assert_false(deleted);
	expect_error(cordon_workspace_delete(&store, id, text(project, "default_workspace_id"), &deleted, &err),
		     CORDON_KIND_CONFLICT, &err, "default");
	json_decref(workspace(project, (struct cordon_workspace_request){ .id = "w" }, NULL));
	unit_mkdir(path_of(project, "workspaces/w/d"));
	assert_int_equal(chmod(path_of(project, "workspaces/w"), 0500), 0);
	assert_int_equal(cordon_workspace_delete(&store, id, "w", &deleted, NULL), 0);
	assert_true(deleted);
	assert_false(exists(path_of(project, "workspaces/w")));
	assert_int_equal(cordon_project_delete(&store, id, &deleted, NULL), 0);
	assert_true(deleted);
	assert_false(exists(path_of(project, "")));
	assert_int_equal(cordon_project_delete(&store, id, &deleted, NULL), 0);
	assert_false(deleted);
	expect_error(shown_project_get(&store, id, &none, &err), CORDON_KIND_NOT_FOUND, &err, "does not exist");
}

static void running_session_keeps_its_workspace_and_project(void **state)
{
	static const char session[] = "0b0b0b0b-0000-4000-8000-000000000001";
	json_auto_t *project = create("{\"name\": \"p\"}");
	const char *id = text(project, "id");
	autofd int alive = -1;
	struct cordon_error err = { 0 };
	char path[256];
	bool deleted;

	(void)state;
	json_decref(workspace(project, (struct cordon_workspace_request){ .id = "w" }, NULL));
	json_decref(workspace(project, (struct cordon_workspace_request){ .id = "free" }, NULL));
	{
		autoproject struct cordon_project held = CORDON_PROJECT_NONE;

		assert_int_equal(cordon_project_hold(&store, id, LOCK_SH, &held, NULL), 0);
		assert_int_equal(cordon_active_add(&held, "w", session, NULL), 0);
	}
	snprintf(path, sizeof(path), "home/state/sessions/%s", session);
	unit_mkdir(path);
	snprintf(path, sizeof(path), "home/state/sessions/%s/alive", session);
	alive = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(flock(alive, LOCK_EX), 0);
	expect_error(cordon_workspace_delete(&store, id, "w", &deleted, &err), CORDON_KIND_CONFLICT, &err, session);
	expect_error(cordon_project_delete(&store, id, &deleted, &err), CORDON_KIND_CONFLICT, &err, session);
	assert_int_equal(cordon_workspace_delete(&store, id, "free", &deleted, NULL), 0);
	assert_true(deleted);
	/* When the process of the session dies, the kernel releases the lock, so nobody has to clean up first. */
	cordon_closep(&alive);
	assert_int_equal(cordon_workspace_delete(&store, id, "w", &deleted, NULL), 0);
	assert_true(deleted);
}

static void sync_brings_later_changes_and_only_then(void **state)
{
	json_auto_t *project = create("{\"name\": \"p\", \"workspace_isolation\": true}");
	const char *id = text(project, "id");
	json_auto_t *copied = NULL;
	struct cordon_error err = { 0 };
	json_t *none = NULL;

	(void)state;
	json_decref(workspace(project, (struct cordon_workspace_request){ .id = "w" }, NULL));
	unit_write(path_of(project, "AGENTS.md"), "v2");
	unit_mkdir(path_of(project, ".factory"));
	unit_write(path_of(project, ".factory/a"), "v2");
	unit_write(path_of(project, "workspaces/w/AGENTS.md"), "v1");
	json_decref(workspace(project, (struct cordon_workspace_request){ .id = "w" }, NULL));
	expect_content(path_of(project, "workspaces/w/AGENTS.md"), "v1");
	assert_int_equal(cordon_workspace_sync(&store, id, "w", &copied, NULL), 0);
	assert_int_equal(json_array_size(copied), 2);
	expect_content(path_of(project, "workspaces/w/AGENTS.md"), "v2");
	expect_content(path_of(project, "workspaces/w/.factory/a"), "v2");
	expect_error(cordon_workspace_sync(&store, id, "missing", &none, &err), CORDON_KIND_NOT_FOUND, &err, "missing");
	assert_false(exists("home/state/projects/locks/missing"));
}

static void session_start_copies_agents_md_for_older_workspaces(void **state)
{
	json_auto_t *project = create("{\"name\": \"p\"}");
	json_auto_t *changes = json_pack("{s:b}", "workspace_isolation", 1);
	autoproject struct cordon_project held = CORDON_PROJECT_NONE;
	json_t *updated = NULL;

	(void)state;
	unit_write(path_of(project, "AGENTS.md"), "rules");
	json_decref(workspace(project, (struct cordon_workspace_request){ .id = "old" }, NULL));
	json_decref(workspace(project, (struct cordon_workspace_request){ .id = "own" }, NULL));
	unit_link("nowhere", path_of(project, "workspaces/own/AGENTS.md"));
	assert_int_equal(shown_project_update(&store, text(project, "id"), changes, &updated, NULL, NULL), 0);
	json_decref(updated);
	assert_int_equal(cordon_project_hold(&store, text(project, "id"), LOCK_SH, &held, NULL), 0);
	assert_int_equal(cordon_workspace_prepare(&store, &held, "old", NULL), 0);
	assert_int_equal(cordon_workspace_prepare(&store, &held, "own", NULL), 0);
	expect_content(path_of(project, "workspaces/old/AGENTS.md"), "rules");
	assert_false(exists(path_of(project, "workspaces/own/nowhere")));
}

static void lists_are_filtered_ordered_and_cut(void **state)
{
	json_auto_t *a = create("{\"name\": \"Alpha One\"}");
	json_auto_t *b = create("{\"name\": \"beta\"}");
	json_auto_t *c = create("{\"name\": \"ALPHA two\"}");
	struct cordon_list_query query = { .name_contains = "alpha" };
	json_auto_t *found = NULL;
	json_t *cut = NULL;
	size_t total = 0;

	(void)state;
	assert_int_equal(cordon_project_list(&store, &query, &found, &total, NULL), 0);
	assert_int_equal(total, 2);
	assert_true(strcmp(text(json_array_get(found, 0), "created_at"),
			   text(json_array_get(found, 1), "created_at")) <= 0);
	query = (struct cordon_list_query){ .limit = 1, .offset = 1 };
	assert_int_equal(cordon_project_list(&store, &query, &cut, &total, NULL), 0);
	assert_int_equal(total, 3);
	assert_int_equal(json_array_size(cut), 1);
	json_decref(cut);
	assert_int_equal(cordon_workspace_list(&store, text(b, "id"), NULL, &cut, &total, NULL), 0);
	assert_int_equal(total, 1);
	assert_string_equal(text(json_array_get(cut, 0), "id"), text(b, "default_workspace_id"));
	json_decref(cut);
	(void)a, (void)c;
}

static void new_repository_is_one_that_git_would_make(void **state)
{
	json_auto_t *project = create("{\"name\": \"p\", \"remote_url\": \"https://example.org/a\\\"b.git\"}");
	char below[128];

	(void)state;
	snprintf(below, sizeof(below), "workspaces/%s/.git/HEAD", text(project, "default_workspace_id"));
	expect_content(path_of(project, below), "ref: refs/heads/main\n");
	snprintf(below, sizeof(below), "workspaces/%s/.git/config", text(project, "default_workspace_id"));
	autobuf struct cordon_buf config = CORDON_BUF(4096);

	assert_int_equal(cordon_read_file(AT_FDCWD, path_of(project, below), 0, &config, NULL), 0);
	assert_non_null(strstr(config.data, "url = \"https://example.org/a\\\"b.git\"\n"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		store_test(project_has_its_default_workspace_and_metadata),
		store_test(metadata_shows_no_environment_and_the_record_does),
		store_test(settings_are_judged_and_every_bad_path_is_named),
		store_test(protected_paths_stay_as_written_without_duplicates),
		store_test(ids_are_judged_before_any_path_is_made_of_them),
		store_test(workspace_creation_is_idempotent_and_folds_case),
		store_test(agents_md_is_copied_with_isolation_only_and_factory_always),
		store_test(directory_that_is_already_there_keeps_its_files),
		store_test(links_at_either_end_fail_the_creation_and_touch_nothing),
		store_test(forged_or_obstructed_metadata_changes_nothing),
		store_test(update_changes_only_what_it_names),
		store_test(external_id_and_source_mean_one_workspace),
		store_test(resolution_depends_on_id_and_create),
		store_test(all_but_the_default_workspace_can_be_deleted_and_missing_ones_are_no_error),
		store_test(running_session_keeps_its_workspace_and_project),
		store_test(sync_brings_later_changes_and_only_then),
		store_test(session_start_copies_agents_md_for_older_workspaces),
		store_test(lists_are_filtered_ordered_and_cut),
		store_test(new_repository_is_one_that_git_would_make),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
