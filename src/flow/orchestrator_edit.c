/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of orchestrator.yaml: agents, the selector, workflows. */
#include "base/path.h"
#include "config/edit_file.h"
#include "config/edit_yaml.h"
#include "flow/edit.h"
#include "flow/flow.h"
#include "flow/orchestrator_file.h"

struct changing {
	const struct cordon_orchestrator *orchestrator;
	const struct cordon_orchestrator_edit *edit;
	bool changed;
};

static int fail(struct cordon_errors *errors, const struct cordon_error *err)
{
	return cordon_errors_add(errors, err, NULL, 0, 0);
}

static int add_agent(const struct cordon_orchestrator_edit *edit, const struct cordon_orchestrator_file *before,
		     struct cordon_yaml *yaml, struct cordon_errors *errors)
{
	const char *keys[] = { "agents", edit->id };
	const struct cordon_flow_agent *old = NULL;
	struct cordon_error err = { 0 };
	json_t *value;

	if (cordon_orchestrator_file_agent(before, edit->id, &old, NULL) == 0) {
		if (cordon_streq(old->provider, edit->provider) &&
		    old->can_orchestrate_workflows == edit->can_orchestrate &&
		    (old->model && edit->model ? cordon_streq(old->model, edit->model) : old->model == edit->model))
			return 0;
		cordon_fail(&err, -EEXIST, CORDON_KIND_CONFLICT, "the orchestrator %s has an agent %s already",
			    before->id, edit->id);
		cordon_error_hint(&err, "remove it first, or choose another id");
		return fail(errors, &err);
	}
	value = json_pack("{s:s, s:s*, s:b}", "provider", edit->provider, "model", edit->model,
			  "can_orchestrate_workflows", edit->can_orchestrate);
	if (!value) {
		cordon_fail(&err, -EILSEQ, CORDON_KIND_USAGE, "the provider or the model is not valid text");
		return fail(errors, &err);
	}
	return cordon_yaml_put(yaml, keys, 2, value, errors);
}

static int remove_agent(const struct cordon_orchestrator_edit *edit, struct cordon_yaml *yaml,
			struct cordon_errors *errors)
{
	const char *keys[] = { "agents", edit->id };
	const struct cordon_node *node = cordon_yaml_get(yaml, keys, 2);

	return node ? cordon_yaml_drop(yaml, cordon_yaml_get(yaml, keys, 1), node, errors) : 0;
}

/* ---- workflows ---- */

/* The node of a workflow in the text that is being changed, or NULL. */
static const struct cordon_node *workflow_node(const struct cordon_yaml *yaml, const char *id,
					       const struct cordon_node **ret_list)
{
	static const char *const keys[] = { "workflows" };
	const struct cordon_node *node;

	*ret_list = cordon_yaml_get(yaml, keys, 1);
	node = *ret_list ? (*ret_list)->first : NULL;
	for (; node; node = node->next) {
		const struct cordon_node *name = node->type == CORDON_NODE_MAPPING ? cordon_node_get(node, "id") : NULL;

		if (name && name->type == CORDON_NODE_SCALAR && cordon_streq(name->text, id))
			return node;
	}
	return NULL;
}

/* A workflow of one step, to begin with. The values are texts, as those of a file that was read. */
static json_t *first_workflow(const struct cordon_orchestrator_edit *edit, const char *agent)
{
	return json_pack("{s:s, s:s, s:s, s:[s], s:[{s:s, s:s, s:s, s:s, s:s, s:[s]}]}", "id", edit->id, "version", "1",
			 "description", edit->description ? edit->description : edit->id, "inputs", "user_prompt",
			 "steps", "id", "work", "type", "agent_task", "agent", agent, "workspace_mode", "run_workspace",
			 "prompt", edit->prompt ? edit->prompt : "{{inputs.user_prompt}}", "outputs", "summary");
}

static int add_workflow(const struct cordon_orchestrator_edit *edit, const struct cordon_orchestrator_file *before,
			struct cordon_yaml *yaml, struct cordon_errors *errors)
{
	const char *wanted = edit->agent ? edit->agent : before->selector_agent, *keys[] = { "workflows" };
	const struct cordon_node *list, *node = workflow_node(yaml, edit->id, &list);
	const struct cordon_flow_agent *agent = NULL;
	struct cordon_error err = { 0 };
	json_auto_t *value = NULL;
	json_auto_t *old = node ? cordon_node_json(node) : NULL;

	if (cordon_orchestrator_file_agent(before, wanted, &agent, &err) < 0)
		return fail(errors, &err);
	value = first_workflow(edit, wanted);
	if (!value) {
		cordon_fail(&err, -EILSEQ, CORDON_KIND_USAGE, "the prompt or the description is not valid text");
		return fail(errors, &err);
	}
	if (old && json_equal(old, value))
		return 0;
	if (old) {
		cordon_fail(&err, -EEXIST, CORDON_KIND_CONFLICT, "the orchestrator %s has another workflow %s already",
			    before->id, edit->id);
		cordon_error_hint(&err, "remove it first, or choose another id");
		return fail(errors, &err);
	}
	json_object_set_new(value, "version", json_integer(1));
	return list ? cordon_yaml_append(yaml, list, json_incref(value), errors)
		    : cordon_yaml_put(yaml, keys, 1, json_pack("[O]", value), errors);
}

static int remove_workflow(const struct cordon_orchestrator_edit *edit, const struct cordon_orchestrator_file *before,
			   struct cordon_yaml *yaml, struct cordon_errors *errors)
{
	const struct cordon_node *list, *node = workflow_node(yaml, edit->id, &list);
	struct cordon_error err = { 0 };

	if (!node)
		return 0;
	if (before->default_workflow && cordon_streq(before->default_workflow, edit->id)) {
		cordon_fail(&err, -EBUSY, CORDON_KIND_CONFLICT, "%s is the default workflow of %s", edit->id,
			    before->id);
		cordon_error_hint(&err, "'cordon orchestrator set-default-workflow' chooses another first");
		return fail(errors, &err);
	}
	return cordon_yaml_drop(yaml, list, node, errors);
}

/* ---- the rest ---- */

static int put(struct cordon_yaml *yaml, const char *key, json_t *value, const char *as_text,
	       struct cordon_errors *errors)
{
	const struct cordon_node *node = cordon_yaml_get(yaml, &key, 1);

	if (node && node->type == CORDON_NODE_SCALAR && cordon_streq(node->text, as_text)) {
		json_decref(value);
		return 0;
	}
	return cordon_yaml_put(yaml, &key, 1, value, errors);
}

static int change(const struct changing *c, const struct cordon_orchestrator_file *before, struct cordon_yaml *yaml,
		  struct cordon_errors *errors)
{
	const struct cordon_orchestrator_edit *edit = c->edit;
	char digits[CORDON_DIGITS_SIZE];

	switch (edit->kind) {
	case CORDON_EDIT_ADD_AGENT:
		return add_agent(edit, before, yaml, errors);
	case CORDON_EDIT_REMOVE_AGENT:
		return remove_agent(edit, yaml, errors);
	case CORDON_EDIT_SELECTOR_AGENT:
		return put(yaml, "selector_agent", json_string(edit->id), edit->id, errors);
	case CORDON_EDIT_DEFAULT_WORKFLOW:
		return put(yaml, "default_workflow", json_string(edit->id), edit->id, errors);
	case CORDON_EDIT_ADD_WORKFLOW:
		return add_workflow(edit, before, yaml, errors);
	case CORDON_EDIT_REMOVE_WORKFLOW:
		return remove_workflow(edit, before, yaml, errors);
	case CORDON_EDIT_SELECTION_MAX_RETRIES:
	default:
		return put(yaml, "selection_max_retries", json_integer((json_int_t)edit->number),
			   cordon_digits(edit->number, digits), errors);
	}
}

/* Refuses what breaks a workflow, such as the removal of an agent that one uses. A file that had errors in its workflows
 * before may keep them: a person mends them one after the other. */
static int check_workflows(const struct cordon_orchestrator_file *before, const struct cordon_orchestrator_file *after,
			   struct cordon_errors *errors)
{
	struct cordon_errors old CORDON_CLEANUP(cordon_errors_done) = { 0 };
	struct cordon_errors new CORDON_CLEANUP(cordon_errors_done) = { 0 };
	struct cordon_workflow *workflows;
	size_t n;

	if (cordon_flow_read(before, &workflows, &n, &old) < 0 || cordon_flow_read(after, &workflows, &n, &new) < 0)
		return cordon_errors_add(errors, &(struct cordon_error){ .code = -ENOMEM, .kind = CORDON_KIND_LIMIT },
					 NULL, 0, 0);
	if (new.n <= old.n)
		return 0;
	for (size_t i = 0; i < new.n; i++)
		cordon_errors_add(errors, &new.items[i], NULL, 0, 0);
	return -EINVAL;
}

static int edit_text(void *data, const char *name, const char *text, size_t len, struct cordon_buf *ret_text,
		     bool *ret_changed, struct cordon_errors *errors)
{
	autoorchestratorfile struct cordon_orchestrator_file *before = NULL;
	autoorchestratorfile struct cordon_orchestrator_file *after = NULL;
	struct changing *c = data;
	struct cordon_yaml yaml autoyaml = { 0 };
	struct cordon_error err = { 0 };
	int r = cordon_orchestrator_file_parse(name, c->orchestrator->id, text, len, &before, errors);

	if (r == 0)
		r = cordon_yaml_begin(&yaml, name, text, len, errors);
	if (r == 0)
		r = change(c, before, &yaml, errors);
	if (r == 0)
		r = cordon_orchestrator_file_parse(name, c->orchestrator->id, yaml.text.data ? yaml.text.data : "",
						   yaml.text.len, &after, errors);
	if (r == 0)
		r = check_workflows(before, after, errors);
	if (r < 0)
		return r;
	*ret_changed = yaml.text.len != len || (yaml.text.data && memcmp(yaml.text.data, text, len) != 0);
	c->changed = *ret_changed;
	if (*ret_changed && cordon_buf_add(ret_text, yaml.text.data, yaml.text.len) < 0) {
		cordon_fail_errno(&err, -E2BIG, "%s", name);
		return fail(errors, &err);
	}
	return 0;
}

int cordon_orchestrator_edit(const struct cordon_orchestrator *orchestrator, const struct cordon_orchestrator_edit *edit,
			     bool *ret_changed, struct cordon_errors *errors)
{
	struct changing c = { .orchestrator = orchestrator, .edit = edit };
	autoorchestratorfile struct cordon_orchestrator_file *file = NULL;
	bool workflow = edit->kind == CORDON_EDIT_DEFAULT_WORKFLOW || edit->kind == CORDON_EDIT_ADD_WORKFLOW ||
			edit->kind == CORDON_EDIT_REMOVE_WORKFLOW;
	struct cordon_error err = { 0 };
	char path[CORDON_PATH_MAX];
	int r = edit->id ? cordon_settings_id_check(workflow ? "the id of a workflow" : "the id of an agent", edit->id,
						    &err)
			 : 0;

	if (r == 0 && edit->provider)
		r = cordon_settings_id_check("the name of a provider", edit->provider, &err);
	if (r == 0 && cordon_path_join(orchestrator->private_workspace, CORDON_ORCHESTRATOR_FILE, path, sizeof(path)) < 0)
		r = cordon_fail_errno(&err, -ENAMETOOLONG, "%s", orchestrator->private_workspace);
	if (r < 0)
		return fail(errors, &err);
	/* This opens the directory by its components and says what to do when there is no file. */
	r = cordon_orchestrator_file_load(orchestrator, &file, errors);
	if (r == 0)
		r = cordon_edit_file(path, CORDON_CONFIG_SIZE_MAX, edit_text, &c, errors);
	if (r == 0)
		*ret_changed = c.changed;
	return r;
}
