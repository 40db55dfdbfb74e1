/* SPDX-License-Identifier: Apache-2.0 */
/* A definition as JSON: for people, and as the copy that a run keeps. */
#include "flow/workflow.h"

static json_t *strings(const char *const *texts, size_t n)
{
	json_t *list = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(list, json_string(texts[i]));
	return list;
}

static json_t *number(uint64_t value)
{
	return json_integer((json_int_t)value);
}

static void set_step_of(json_t *object, const char *key, const struct cordon_workflow *workflow, size_t i)
{
	if (i < workflow->n_steps)
		json_object_set_new(object, key, json_string(workflow->steps[i].id));
}

static json_t *outputs_json(const struct cordon_flow_step *step)
{
	json_t *list = json_array();

	for (size_t i = 0; i < step->n_outputs; i++)
		json_array_append_new(list,
				      json_sprintf("%s%s", step->outputs[i].key, step->outputs[i].optional ? "?" : ""));
	return list;
}

static json_t *step_json(const struct cordon_workflow *workflow, const struct cordon_flow_step *step)
{
	json_t *object = json_object(), *files = json_object(), *needs = json_array(), *limits = json_object();

	json_object_set_new(object, "id", json_string(step->id));
	json_object_set_new(object, "type", json_string(cordon_flow_type_name(step->type)));
	if (step->agent)
		json_object_set_new(object, "agent", json_string(step->agent));
	if (step->prompt)
		json_object_set_new(object, "prompt", json_string(step->prompt));
	if (step->context)
		json_object_set_new(object, "context", json_string(step->context));
	json_object_set_new(object, "workspace_mode",
			    json_string(step->run_workspace ? "run_workspace" : "orchestrator_workspace"));
	set_step_of(object, "next", workflow, step->next);
	set_step_of(object, "on_approve", workflow, step->on_approve);
	set_step_of(object, "on_reject", workflow, step->on_reject);
	for (size_t i = 0; i < step->n_needs; i++)
		json_array_append_new(needs, json_string(workflow->steps[step->needs[i]].id));
	if (step->type != CORDON_FLOW_HUMAN_REVIEW)
		json_object_set_new(object, "outputs", outputs_json(step));
	for (size_t i = 0; i < step->n_outputs; i++)
		if (step->outputs[i].file)
			json_object_set_new(files, step->outputs[i].key, json_string(step->outputs[i].file));
	json_object_set_new(limits, "max_retries", number(step->max_retries));
	if (step->timeout_s)
		json_object_set_new(limits, "timeout_seconds", number(step->timeout_s));
	if (json_array_size(needs))
		json_object_set(object, "needs", needs);
	if (json_object_size(files))
		json_object_set(object, "output_files", files);
	if (step->n_priority)
		json_object_set_new(object, "final_output_priority", strings(step->priority, step->n_priority));
	json_object_set(object, "limits", limits);
	json_decref(needs);
	json_decref(files);
	json_decref(limits);
	return object;
}

json_t *cordon_workflow_json(const struct cordon_workflow *workflow)
{
	json_t *object = json_object(), *limits = json_object(), *steps = json_array();

	json_object_set_new(object, "id", json_string(workflow->id));
	json_object_set_new(object, "version", number(workflow->version));
	json_object_set_new(object, "description", json_string(workflow->description));
	json_object_set_new(object, "tags", strings(workflow->tags, workflow->n_tags));
	json_object_set_new(object, "inputs", strings(workflow->inputs, workflow->n_inputs));
	if (workflow->max_total_iterations)
		json_object_set_new(limits, "max_total_iterations", number(workflow->max_total_iterations));
	if (workflow->run_timeout_s)
		json_object_set_new(limits, "run_timeout_seconds", number(workflow->run_timeout_s));
	if (json_object_size(limits))
		json_object_set(object, "limits", limits);
	for (size_t i = 0; i < workflow->n_steps; i++)
		json_array_append_new(steps, step_json(workflow, &workflow->steps[i]));
	json_object_set_new(object, "steps", steps);
	json_decref(limits);
	return object;
}

int cordon_workflow_parse(const json_t *definition, struct cordon_document **ret_doc,
			  const struct cordon_workflow **ret_workflow, struct cordon_error *err)
{
	struct cordon_errors errors CORDON_CLEANUP(cordon_errors_done) = { 0 };
	json_auto_t *list = json_pack("[O]", definition);
	autofree char *text = list ? json_dumps(list, JSON_COMPACT) : NULL;
	struct cordon_workflows_ask ask = { .snapshot = true };
	struct cordon_workflow *workflows = NULL;
	autodocument struct cordon_document *doc = NULL;
	size_t n = 0;
	int r = !text ? -ENOMEM
		      : cordon_document_parse("the definition of the run", CORDON_FORMAT_JSON, text, strlen(text),
					      CORDON_CONFIG_DEPTH_MAX, &doc, &errors);

	if (r == 0) {
		ask.reader = (struct cordon_reader){ .doc = doc, .errors = &errors };
		ask.node = doc->root;
		r = cordon_workflows_read(&ask, &workflows, &n);
	}
	if (errors.n)
		return cordon_errors_first(&errors, err);
	if (r < 0 || n != 1)
		return cordon_fail_errno(err, r < 0 ? r : -EBADMSG, "cannot read the definition of the run");
	*ret_workflow = &workflows[0];
	*ret_doc = cordon_steal_ptr(&doc);
	return 0;
}
