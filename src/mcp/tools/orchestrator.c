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
	return (struct cordon_settings_edit){ .kind = kind,
					      .shown = request->question
							       ? cordon_mcp_arg(request->question->means, "directory")
							       : NULL,
					      .id = cordon_mcp_arg(args, "orchestrator_id"),
					      .key = cordon_mcp_arg(args, "key"),
					      .path = cordon_mcp_arg(args, "path"),
					      .text = cordon_mcp_arg(args, "description"),
					      .domain = cordon_mcp_arg(args, "domain"),
					      .read_only = json_is_true(json_object_get(args, "read_only")),
					      .cross_domain = json_is_true(json_object_get(args, "cross_domain")) };
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
	const char *value = cordon_mcp_arg(args, name);

	if (value)
		(void)cordon_text_escape(text, value, strlen(value));
}

/* Names the directory behind a key: a person judges that, and not what the client calls it. The change is then for this
 * directory only. "" stands for an area that does not exist, about which the change itself says so. */
static int add_directory(struct cordon_mcp_question *question, const json_t *args, struct cordon_error *err)
{
	struct cordon_errors errors CORDON_CLEANUP(cordon_errors_done) = { 0 };
	autosettings struct cordon_settings_file *settings = NULL;
	const struct cordon_shared_area *area = NULL;

	if (cordon_settings_load(NULL, CORDON_SETTINGS_TEXT_ONLY, &settings, &errors) < 0)
		return cordon_errors_first(&errors, err);
	(void)cordon_settings_area(settings, cordon_mcp_arg(args, "key"), &area, NULL);
	question->means = json_pack("{s:o}", "directory", cordon_audit_text(area ? area->path : ""));
	if (!question->means)
		return cordon_fail(err, -ENOMEM, CORDON_KIND_LIMIT, "out of memory");
	if (!area)
		return 0;
	(void)cordon_buf_adds(&question->text, " (");
	(void)cordon_text_escape(&question->text, area->path, strlen(area->path));
	(void)cordon_buf_adds(&question->text, ")");
	return 0;
}

static int ask_remove(const struct cordon_mcp_request *request, const json_t *args,
		      struct cordon_mcp_question *question, struct cordon_error *err)
{
	(void)request, (void)err;
	cordon_buf_adds(&question->text, "Remove the orchestrator ");
	add_arg(&question->text, args, "orchestrator_id");
	cordon_buf_adds(&question->text, " from the settings? Its files stay.");
	return 0;
}

static int ask_shared_add(const struct cordon_mcp_request *request, const json_t *args,
			  struct cordon_mcp_question *question, struct cordon_error *err)
{
	(void)request, (void)err;
	cordon_buf_adds(&question->text, "Make ");
	add_arg(&question->text, args, "path");
	cordon_buf_adds(&question->text, " of the host a shared area, ");
	add_arg(&question->text, args, "key");
	cordon_buf_adds(&question->text, ", which orchestrators can be granted?");
	return 0;
}

static int ask_shared_remove(const struct cordon_mcp_request *request, const json_t *args,
			     struct cordon_mcp_question *question, struct cordon_error *err)
{
	int r;

	(void)request;
	cordon_buf_adds(&question->text, "Remove the shared area ");
	add_arg(&question->text, args, "key");
	r = add_directory(question, args, err);
	cordon_buf_adds(&question->text, " from the settings? Its files stay.");
	return r;
}

static int ask_grant(const struct cordon_mcp_request *request, const json_t *args, struct cordon_mcp_question *question,
		     struct cordon_error *err)
{
	int r;

	(void)request;
	cordon_buf_adds(&question->text, "Let the agents of ");
	add_arg(&question->text, args, "orchestrator_id");
	cordon_buf_addf(&question->text, " %s the shared area ",
			json_is_true(json_object_get(args, "read_only")) ? "read" : "read and change");
	add_arg(&question->text, args, "key");
	r = add_directory(question, args, err);
	cordon_buf_adds(&question->text, json_is_true(json_object_get(args, "cross_domain"))
						 ? ", also if it belongs to another domain?"
						 : "?");
	return r;
}

static int ask_revoke(const struct cordon_mcp_request *request, const json_t *args,
		      struct cordon_mcp_question *question, struct cordon_error *err)
{
	int r;

	(void)request;
	cordon_buf_adds(&question->text, "Take the shared area ");
	add_arg(&question->text, args, "key");
	r = add_directory(question, args, err);
	cordon_buf_adds(&question->text, " away from the agents of ");
	add_arg(&question->text, args, "orchestrator_id");
	cordon_buf_adds(&question->text, "?");
	return r;
}

/* ---- tools ---- */

#define ID "\"orchestrator_id\": {\"type\": \"string\", \"maxLength\": 64}"
#define KEY "\"key\": {\"type\": \"string\", \"maxLength\": 64}"
#define INPUT(required, properties)                                                                                    \
	"{\"type\": \"object\", \"additionalProperties\": false, \"required\": [" required                             \
	"], \"properties\": {" properties "}}"
#define CHANGED                                                                                                        \
	"{\"changed\": {\"type\": \"boolean\"}, \"orchestrator\": {\"type\": \"object\"},"                             \
	"\"shared_area\": {\"type\": \"object\"}, \"ended\": {\"type\": \"array\", \"items\": {\"type\": \"object\"}}}"

const struct cordon_mcp_tool cordon_mcp_orchestrator_list = {
	.name = "orchestrator_list",
	.title = "List orchestrators",
	.description =
		"List orchestrators with their private workspaces and grants, shared areas, and grants across domains.",
	.input = INPUT("", ""),
	.output = "{\"orchestrators\": {\"type\": \"array\", \"items\": {\"type\": \"object\"}}, \"shared_areas\": {\"type\": \"array\","
		  "\"items\": {\"type\": \"object\"}}, \"crossings\": {\"type\": \"array\", \"items\": {\"type\": \"object\"}}}",
	.always = "[\"orchestrators\", \"shared_areas\", \"crossings\"]",
	.read_only = true,
	.idempotent = true,
	.call = orchestrator_list,
};

const struct cordon_mcp_tool cordon_mcp_orchestrator_add = {
	.name = "orchestrator_add",
	.title = "Add orchestrator",
	.apart = true,
	.description = "Add an orchestrator with a private workspace and no shared area.",
	.input = INPUT("\"orchestrator_id\"", ID),
	.output = CHANGED,
	.always = "[\"changed\"]",
	.idempotent = true,
	.call = orchestrator_add,
};

const struct cordon_mcp_tool cordon_mcp_orchestrator_remove = {
	.name = "orchestrator_remove",
	.title = "Remove orchestrator",
	.apart = true,
	.description = "Take an orchestrator out of the settings; its files stay. Needs a person's approval.",
	.input = INPUT("\"orchestrator_id\"", ID),
	.output = CHANGED,
	.always = "[\"changed\"]",
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
	.input = INPUT(
		"\"key\", \"path\", \"description\"", KEY
		", \"path\": {\"type\": \"string\", \"maxLength\": 4000, \"description\": \"Absolute\"},"
		"\"description\": {\"type\": \"string\", \"maxLength\": 4000}, \"domain\": {\"type\": \"string\", \"maxLength\": 256}"),
	.output = CHANGED,
	.always = "[\"changed\"]",
	.idempotent = true,
	.ask = ask_shared_add,
	.call = shared_add,
};

const struct cordon_mcp_tool cordon_mcp_shared_remove = {
	.name = "shared_remove",
	.title = "Remove shared area",
	.apart = true,
	.description = "Take an area that nobody is granted out of the settings; its files stay. Needs a person's approval.",
	.input = INPUT("\"key\"", KEY),
	.output = CHANGED,
	.always = "[\"changed\"]",
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
	.input = INPUT("\"orchestrator_id\", \"key\"",
		       ID ", " KEY ", \"read_only\": {\"type\": \"boolean\", \"default\": false},"
			  "\"cross_domain\": {\"type\": \"boolean\", \"default\": false}"),
	.output = CHANGED,
	.always = "[\"changed\"]",
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
	.input = INPUT("\"orchestrator_id\", \"key\"", ID ", " KEY),
	.output = CHANGED,
	.always = "[\"changed\"]",
	.destructive = true,
	.idempotent = true,
	.ask = ask_revoke,
	.call = shared_revoke,
};
