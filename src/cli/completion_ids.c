/* SPDX-License-Identifier: Apache-2.0 */
/* Prints names and ids for the completions of shells: one per line, and after a tab what tells it from the others. */
#include <stdio.h>

#include "approval/approval.h"
#include "audit/query.h"
#include "base/json.h"
#include "base/text.h"
#include "base/time.h"
#include "cli/completion_ids.h"
#include "cli/records.h"
#include "config/settings_file.h"
#include "flow/flow.h"
#include "job/crew.h"
#include "view/view.h"

#define RUNS_SHOWN 50
#define RUNS_AGE_MS ((int64_t)7 * 24 * 3600 * 1000)

/* Prints a line unless the text does not begin as the user's word does, or could not be typed as an argument. */
static void print_line(const char *beginning, const char *text, const char *about)
{
	if (strncmp(text, beginning, strlen(beginning)) != 0 || *text == '-' || !cordon_text_safe(text, strlen(text)))
		return;
	printf("%s\t%s\n", text, cordon_text_safe(about, strlen(about)) ? about : "");
}

/* Prints what the records are called. A name that several have is replaced by the ids; the id of a record with a name is
 * for a user who has begun to type it. */
static void print_named(const char *beginning, const json_t *records, const char *name_key)
{
	json_auto_t *names = json_object();
	size_t i;
	json_t *record;

	json_array_foreach(records, i, record) {
		const char *name = cordon_json_string(record, name_key);

		if (name)
			json_object_set_new(names, name, json_boolean(!json_object_get(names, name)));
	}
	json_array_foreach(records, i, record) {
		const char *name = cordon_json_string(record, name_key);
		const char *id = cordon_json_string(record, "id");
		bool unique = name && cordon_json_true(names, name);

		if (unique)
			print_line(beginning, name, id);
		if (!unique || *beginning)
			print_line(beginning, id, name ? name : "");
	}
}

static int print_projects(const struct cordon_store *store, const char *beginning, struct cordon_error *err)
{
	json_auto_t *projects = NULL;
	int r = cordon_project_list(store, NULL, &projects, NULL, err);

	if (r == 0)
		print_named(beginning, projects, "name");
	return r;
}

static int print_workspaces(const struct cordon_store *store, const char *project, const char *beginning,
			    struct cordon_error *err)
{
	json_auto_t *workspaces = NULL;
	char id[CORDON_ID_SIZE];
	int r = cordon_project_find(store, project, 0, id, err);

	if (r == 0)
		r = cordon_workspace_list(store, id, NULL, &workspaces, NULL, err);
	if (r == 0)
		print_named(beginning, workspaces, "external_id");
	return r;
}

static int print_sessions(const struct cordon_store *store, const char *beginning, struct cordon_error *err)
{
	struct cordon_session_query query = { .brief = true };
	json_auto_t *sessions = NULL;
	size_t i;
	json_t *session;
	int r = cordon_session_list(store, &query, &sessions, NULL, err);

	json_array_foreach(sessions, i, session) {
		const char *program = json_string_value(json_array_get(json_object_get(session, "command"), 0));
		char about[256];

		snprintf(about, sizeof(about), "%s %s", cordon_json_string(session, "status"), program ? program : "");
		print_line(beginning, cordon_json_string(session, "session_id"), about);
	}
	return r;
}

static int print_runs(const struct cordon_home *home, const char *beginning, struct cordon_error *err)
{
	struct cordon_audit_filter filter = { .has_since = true, .since = cordon_time_now() - RUNS_AGE_MS };
	json_auto_t *runs = NULL;
	size_t at = 0;
	const char *id;
	json_t *seen;
	int r = cordon_audit_runs(home, &filter, &runs, err);

	json_object_foreach(runs, id, seen) {
		char when[CORDON_TIME_SIZE];

		if (json_object_size(runs) - at++ > RUNS_SHOWN)
			continue;
		cordon_time_format(json_integer_value(seen), when);
		print_line(beginning, id, when);
	}
	return r;
}

static int print_crews(const struct cordon_home *home, const char *beginning, struct cordon_error *err)
{
	autofree struct cordon_crew_info *crews = NULL;
	size_t n = 0;
	int r = cordon_crew_list(home, &crews, &n, err);

	for (size_t i = n > RUNS_SHOWN ? n - RUNS_SHOWN : 0; r == 0 && i < n; i++) {
		char when[CORDON_TIME_SIZE];

		cordon_time_format(crews[i].created, when);
		print_line(beginning, crews[i].id, when);
	}
	return r;
}

static int print_workflow_runs(const struct cordon_home *home, const char *beginning, struct cordon_error *err)
{
	json_auto_t *runs = NULL;
	int r = cordon_flow_list(home, NULL, &runs, err);
	size_t n = json_array_size(runs);

	for (size_t i = n > RUNS_SHOWN ? n - RUNS_SHOWN : 0; r == 0 && i < n; i++) {
		const json_t *run = json_array_get(runs, i);

		print_line(beginning, cordon_json_string(run, "runId"), cordon_json_string(run, "summary"));
	}
	return r;
}

static int print_views(const struct cordon_home *home, const char *beginning, struct cordon_error *err)
{
	autoviewlist struct cordon_view_list list = { 0 };
	int r = cordon_view_list(home, -1, &list, err);

	if (r == 0 && list.n)
		print_line(beginning, "latest", "the newest of this root");
	for (size_t i = list.n > RUNS_SHOWN ? list.n - RUNS_SHOWN : 0; r == 0 && i < list.n; i++) {
		const struct cordon_view_record *record = &list.items[i];
		const char *program = json_string_value(json_array_get(record->command, 0));
		char about[256];

		snprintf(about, sizeof(about), "%s %s", cordon_view_state_name(record->state), program ? program : "");
		print_line(beginning, record->id, about);
	}
	return r;
}

static int print_approvals(const struct cordon_store *store, const char *beginning, struct cordon_error *err)
{
	const struct cordon_approval_query query = { .waiting = true };
	autoapprovals struct cordon_approvals approvals = { 0 };
	int r = cordon_approvals_load(store, &query, &approvals, err);

	for (size_t i = 0; r == 0 && i < approvals.n; i++) {
		char id[CORDON_APPROVAL_SHORT + 1];

		snprintf(id, sizeof(id), "%.*s", CORDON_APPROVAL_SHORT, approvals.items[i].id);
		print_line(beginning, id, approvals.items[i].tool);
	}
	return r;
}

/* What the settings name. What their paths lead to does not matter here. */
static int print_settings(const char *kind, const char *beginning, struct cordon_error *err)
{
	struct cordon_errors errors CORDON_CLEANUP(cordon_errors_done) = { 0 };
	autosettings struct cordon_settings_file *settings = NULL;

	if (cordon_settings_load(NULL, CORDON_SETTINGS_TEXT_ONLY, &settings, &errors) < 0)
		return cordon_errors_first(&errors, err);
	for (size_t i = 0; cordon_streq(kind, "orchestrators") && i < settings->n_orchestrators; i++)
		print_line(beginning, settings->orchestrators[i].id, settings->orchestrators[i].private_workspace);
	for (size_t i = 0; cordon_streq(kind, "areas") && i < settings->n_areas; i++)
		print_line(beginning, settings->areas[i].key, settings->areas[i].description);
	for (size_t i = 0; cordon_streq(kind, "channel-profiles") && i < settings->n_profiles; i++)
		print_line(beginning, settings->profiles[i].id, settings->profiles[i].channel);
	for (size_t i = 0; cordon_streq(kind, "presets") && i < settings->n_presets; i++)
		print_line(beginning, settings->presets[i].name, "preset");
	return 0;
}

int cordon_cli_completion_ids(const char *kind, const char *project, const char *beginning, struct cordon_error *err)
{
	autostore struct cordon_store store = CORDON_STORE_NONE;
	int r;

	if (cordon_streq(kind, "orchestrators") || cordon_streq(kind, "areas") ||
	    cordon_streq(kind, "channel-profiles") || cordon_streq(kind, "presets"))
		return print_settings(kind, beginning, err);
	r = cordon_store_open(&store, err);
	if (r < 0)
		return r;
	if (cordon_streq(kind, "projects"))
		return print_projects(&store, beginning, err);
	if (cordon_streq(kind, "sessions"))
		return print_sessions(&store, beginning, err);
	if (cordon_streq(kind, "runs"))
		return print_runs(&store.home, beginning, err);
	if (cordon_streq(kind, "crews"))
		return print_crews(&store.home, beginning, err);
	if (cordon_streq(kind, "workflow-runs"))
		return print_workflow_runs(&store.home, beginning, err);
	if (cordon_streq(kind, "approvals"))
		return print_approvals(&store, beginning, err);
	if (cordon_streq(kind, "views"))
		return print_views(&store.home, beginning, err);
	if (!project)
		return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "workspaces of which project? say --project");
	return print_workspaces(&store, project, beginning, err);
}
