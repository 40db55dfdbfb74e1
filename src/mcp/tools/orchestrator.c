/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tools for orchestrators, shared areas and grants. INVARIANT: every change of who may use what needs a person's
 * approval, also one that takes access away: a client that speaks for an agent must not choose what others see.
 */
#include "base/text.h"
#include "flow/edit.h"
#include "flow/settings_json.h"
#include "mcp/tools.h"

static json_t *records(const struct cordon_settings_file *settings)
{
	json_t *orchestrators = json_array(), *areas = json_array();
	json_auto_t *access = cordon_access_json(settings);

	for (size_t i = 0; i < settings->n_orchestrators; i++)
		json_array_append_new(orchestrators, cordon_orchestrator_json(&settings->orchestrators[i]));
	for (size_t i = 0; i < settings->n_areas; i++)
		json_array_append_new(areas, cordon_area_json(settings, &settings->areas[i]));
	return json_pack("{s:o, s:o, s:O}", "orchestrators", orchestrators, "shared_areas", areas, "crossings",
			 json_object_get(access, "crossings"));
}

static int orchestrator_list(struct cordon_mcp_request *request, json_t *args, json_t **ret_result, char **ret_text,
			     struct cordon_error *err)
{
	struct cordon_errors errors CORDON_CLEANUP(cordon_errors_done) = { 0 };
	autosettings struct cordon_settings_file *settings = NULL;

	(void)request, (void)args, (void)ret_text;
	if (cordon_settings_load(NULL, 0, &settings, &errors) < 0)
		return cordon_errors_first(&errors, err);
	*ret_result = records(settings);
	return *ret_result ? 0 : cordon_fail(err, -ENOMEM, CORDON_KIND_LIMIT, "out of memory");
}

/* ---- changes ---- */

static struct cordon_settings_edit edit_of(const struct cordon_mcp_request *request, cordon_settings_edit_kind kind,
					   const json_t *args)
{
	return (struct cordon_settings_edit){
		.kind = kind,
		.shown = request->question ? cordon_json_string(request->question->means, "settings") : NULL,
		.id = cordon_json_string(args, "orchestrator_id"),
		.key = cordon_json_string(args, "key"),
		.path = cordon_json_string(args, "path"),
		.text = cordon_json_string(args, "description"),
		.domain = cordon_json_string(args, "domain"),
		.read_only = cordon_json_true(args, "read_only"),
		.cross_domain = cordon_json_true(args, "cross_domain")
	};
}

/* Makes the change. The result says whether there was one, and what it is about as it is now. */
static int change(const struct cordon_mcp_request *request, cordon_settings_edit_kind kind, const json_t *args,
		  json_t **ret_result, struct cordon_error *err)
{
	struct cordon_errors errors CORDON_CLEANUP(cordon_errors_done) = { 0 };
	struct cordon_settings_edited edited autoedited = { 0 };
	const struct cordon_orchestrator *orchestrator = NULL;
	struct cordon_settings_edit edit = edit_of(request, kind, args);
	const struct cordon_shared_area *area = NULL;
	json_t *result, *holders = NULL;

	if (cordon_settings_change(&request->mcp->store->home, &edit, &edited, &holders, &errors) < 0)
		return cordon_errors_first(&errors, err);
	result = json_pack("{s:b, s:o*}", "changed", (int)edited.changed, "ended", holders);
	if (edit.id && cordon_settings_orchestrator(edited.after, edit.id, &orchestrator, NULL) == 0)
		json_object_set_new(result, "orchestrator", cordon_orchestrator_json(orchestrator));
	if (edit.key && cordon_settings_area(edited.after, edit.key, &area, NULL) == 0)
		json_object_set_new(result, "shared_area", cordon_area_json(edited.after, area));
	*ret_result = result;
	return 0;
}

#define CHANGE(name, kind)                                                                                             \
	static int name(struct cordon_mcp_request *request, json_t *args, json_t **ret_result, char **ret_text,        \
			struct cordon_error *err)                                                                      \
	{                                                                                                              \
		(void)ret_text;                                                                                        \
		return change(request, kind, args, ret_result, err);                                                   \
	}
CHANGE(orchestrator_add, CORDON_EDIT_ADD_ORCHESTRATOR)
CHANGE(orchestrator_remove, CORDON_EDIT_REMOVE_ORCHESTRATOR)
CHANGE(shared_add, CORDON_EDIT_ADD_AREA)
CHANGE(shared_remove, CORDON_EDIT_REMOVE_AREA)
CHANGE(shared_grant, CORDON_EDIT_GRANT)
CHANGE(shared_revoke, CORDON_EDIT_REVOKE)

/* ---- questions ---- */

/* Adds an argument, which is untrusted text. */
static void add_arg(struct cordon_buf *text, const json_t *args, const char *name)
{
	const char *value = cordon_json_string(args, name);

	if (value)
		(void)cordon_text_quote(text, value, strlen(value));
}

/* Names the directory behind a key: a person judges that, and not what the client calls it. An area that does not exist has none, and
 * the change itself says so. */
static void add_directory(struct cordon_buf *text, const struct cordon_settings_file *settings, const json_t *args)
{
	const struct cordon_shared_area *area = NULL;

	if (cordon_settings_area(settings, cordon_json_string(args, "key"), &area, NULL) < 0)
		return;
	(void)cordon_buf_adds(text, " (");
	(void)cordon_text_quote(text, area->path, strlen(area->path));
	(void)cordon_buf_adds(text, ")");
}

/* Asks with the words that `say` writes. INVARIANT: the change is then for these settings only. */
static int ask_about(struct cordon_mcp_question *question, const json_t *args,
		     void (*say)(struct cordon_buf *text, const struct cordon_settings_file *settings,
				 const json_t *args),
		     struct cordon_error *err)
{
	struct cordon_errors errors CORDON_CLEANUP(cordon_errors_done) = { 0 };
	autosettings struct cordon_settings_file *settings = NULL;

	if (cordon_settings_load(NULL, CORDON_SETTINGS_TEXT_ONLY, &settings, &errors) < 0)
		return cordon_errors_first(&errors, err);
	say(&question->text, settings, args);
	return cordon_mcp_question_settings(question, settings->digest, err);
}

static void say_remove(struct cordon_buf *text, const struct cordon_settings_file *settings, const json_t *args)
{
	(void)settings;
	cordon_buf_adds(text, "Remove the orchestrator ");
	add_arg(text, args, "orchestrator_id");
	cordon_buf_adds(text, " from the settings? Its files stay.");
}

static void say_shared_add(struct cordon_buf *text, const struct cordon_settings_file *settings, const json_t *args)
{
	(void)settings;
	cordon_buf_adds(text, "Make ");
	add_arg(text, args, "path");
	cordon_buf_adds(text, " of the host a shared area, ");
	add_arg(text, args, "key");
	if (cordon_json_string(args, "domain")) {
		cordon_buf_adds(text, " of the domain ");
		add_arg(text, args, "domain");
	}
	cordon_buf_adds(text, ", which orchestrators can be granted?");
}

static void say_shared_remove(struct cordon_buf *text, const struct cordon_settings_file *settings, const json_t *args)
{
	cordon_buf_adds(text, "Remove the shared area ");
	add_arg(text, args, "key");
	add_directory(text, settings, args);
	cordon_buf_adds(text, " from the settings? Its files stay.");
}

static void say_grant(struct cordon_buf *text, const struct cordon_settings_file *settings, const json_t *args)
{
	cordon_buf_adds(text, "Let the agents of ");
	add_arg(text, args, "orchestrator_id");
	cordon_buf_addf(text, " %s the shared area ", cordon_json_true(args, "read_only") ? "read" : "read and change");
	add_arg(text, args, "key");
	add_directory(text, settings, args);
	cordon_buf_adds(text, cordon_json_true(args, "cross_domain") ? ", also if it belongs to another domain?" : "?");
}

static void say_revoke(struct cordon_buf *text, const struct cordon_settings_file *settings, const json_t *args)
{
	cordon_buf_adds(text, "Take the shared area ");
	add_arg(text, args, "key");
	add_directory(text, settings, args);
	cordon_buf_adds(text, " away from the agents of ");
	add_arg(text, args, "orchestrator_id");
	cordon_buf_adds(text, "?");
}

#define ASK(name)                                                                                                      \
	static int ask_##name(const struct cordon_mcp_request *request, const json_t *args,                            \
			      struct cordon_mcp_question *question, struct cordon_error *err)                          \
	{                                                                                                              \
		(void)request;                                                                                         \
		return ask_about(question, args, say_##name, err);                                                     \
	}
ASK(remove)
ASK(shared_add)
ASK(shared_remove)
ASK(grant)
ASK(revoke)

/* ---- tools ---- */

const struct cordon_mcp_tool cordon_mcp_orchestrator_list = {
	.name = "orchestrator_list",
	.title = "List orchestrators",
	.description =
		"List orchestrators with their private workspaces and grants, shared areas, and grants across domains.",
	.input = CORDON_INPUT_ORCHESTRATOR_LIST,
	.output = CORDON_OUTPUT_ORCHESTRATOR_LIST,
	.always = CORDON_ALWAYS_ORCHESTRATOR_LIST,
	.read_only = true,
	.idempotent = true,
	.call = orchestrator_list,
};

const struct cordon_mcp_tool cordon_mcp_orchestrator_add = {
	.name = "orchestrator_add",
	.title = "Add orchestrator",
	.apart = true,
	.description = "Add an orchestrator with a private workspace and no shared area.",
	.input = CORDON_INPUT_ORCHESTRATOR_ADD,
	.output = CORDON_OUTPUT_ORCHESTRATOR_ADD,
	.always = CORDON_ALWAYS_ORCHESTRATOR_ADD,
	.idempotent = true,
	.call = orchestrator_add,
};

const struct cordon_mcp_tool cordon_mcp_orchestrator_remove = {
	.name = "orchestrator_remove",
	.title = "Remove orchestrator",
	.apart = true,
	.description = "Take an orchestrator out of the settings; its files stay. Needs a person's approval.",
	.input = CORDON_INPUT_ORCHESTRATOR_REMOVE,
	.output = CORDON_OUTPUT_ORCHESTRATOR_REMOVE,
	.always = CORDON_ALWAYS_ORCHESTRATOR_REMOVE,
	.destructive = true,
	.idempotent = true,
	.ask = ask_remove,
	.call = orchestrator_remove,
};

const struct cordon_mcp_tool cordon_mcp_shared_add = {
	.name = "shared_add",
	.title = "Add shared area",
	.apart = true,
	.description = "Make a directory of the host an area that orchestrators can be granted. Needs a person's approval.",
	.input = CORDON_INPUT_SHARED_ADD,
	.output = CORDON_OUTPUT_SHARED_ADD,
	.always = CORDON_ALWAYS_SHARED_ADD,
	.idempotent = true,
	.ask = ask_shared_add,
	.call = shared_add,
};

const struct cordon_mcp_tool cordon_mcp_shared_remove = {
	.name = "shared_remove",
	.title = "Remove shared area",
	.apart = true,
	.description = "Take an area that nobody is granted out of the settings; its files stay. Needs a person's approval.",
	.input = CORDON_INPUT_SHARED_REMOVE,
	.output = CORDON_OUTPUT_SHARED_REMOVE,
	.always = CORDON_ALWAYS_SHARED_REMOVE,
	.destructive = true,
	.idempotent = true,
	.ask = ask_shared_remove,
	.call = shared_remove,
};

const struct cordon_mcp_tool cordon_mcp_shared_grant = {
	.name = "shared_grant",
	.title = "Grant shared area",
	.apart = true,
	.description =
		"Let the agents of an orchestrator use a shared area from their next step on. Needs a person's approval.",
	.input = CORDON_INPUT_SHARED_GRANT,
	.output = CORDON_OUTPUT_SHARED_GRANT,
	.always = CORDON_ALWAYS_SHARED_GRANT,
	.idempotent = true,
	.ask = ask_grant,
	.call = shared_grant,
};

const struct cordon_mcp_tool cordon_mcp_shared_revoke = {
	.name = "shared_revoke",
	.title = "Revoke shared area",
	.apart = true,
	.description =
		"Take a shared area away from an orchestrator, and end its steps that have it. Needs a person's approval.",
	.input = CORDON_INPUT_SHARED_REVOKE,
	.output = CORDON_OUTPUT_SHARED_REVOKE,
	.always = CORDON_ALWAYS_SHARED_REVOKE,
	.destructive = true,
	.idempotent = true,
	.ask = ask_revoke,
	.call = shared_revoke,
};
