/* SPDX-License-Identifier: Apache-2.0 */
/* The definitions of an orchestrator with their prompts, and the record of a new run. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/random.h>
#include <time.h>

#include "base/time.h"
#include "config/suggest.h"
#include "flow/internal.h"
#include "flow/workflow_check.h"

/* ---- definitions ---- */

static bool has_agent(const void *data, const char *id)
{
	const struct cordon_flow_agent *agent;

	return cordon_orchestrator_file_agent(data, id, &agent, NULL) == 0;
}

int cordon_flow_read(const struct cordon_orchestrator_file *file, struct cordon_workflow **ret_workflows, size_t *ret_n,
		     struct cordon_errors *errors)
{
	struct cordon_workflows_ask ask = { .reader = { .doc = file->doc, .errors = errors },
					    .node = file->workflows,
					    .has_agent = has_agent,
					    .data = file };
	const struct cordon_node *wanted = cordon_node_get(file->doc->root, "default_workflow");
	int r = cordon_workflows_read(&ask, ret_workflows, ret_n);

	if (r < 0)
		return r;
	for (size_t i = 0; wanted && file->default_workflow && i < *ret_n; i++)
		if ((*ret_workflows)[i].id && cordon_streq((*ret_workflows)[i].id, file->default_workflow))
			wanted = NULL;
	if (wanted && file->default_workflow && file->workflows)
		cordon_node_fail(file->doc, wanted, errors, NULL, "there is no workflow %s", file->default_workflow);
	return 0;
}

/* Reads one file of a prompt into the memory of the document. */
static int read_text(struct cordon_document *doc, int fd, const char *path, const char **ret_text,
		     struct cordon_error *err)
{
	autobuf struct cordon_buf text = CORDON_BUF(CORDON_FLOW_PROMPT_MAX);
	char *copy;
	int r = cordon_flow_prompt_file(fd, path, &text, err);

	if (r < 0)
		return r;
	copy = cordon_document_alloc(doc, text.len + 1);
	if (!copy)
		return cordon_fail_errno(err, -ENOMEM, "cannot read the prompt %s", path);
	if (text.len)
		memcpy(copy, text.data, text.len);
	*ret_text = copy;
	return 0;
}

/* Replaces the path of a prompt's file by its text; what stands beside it becomes the context. */
static void read_prompt(struct cordon_orchestrator_file *file, int fd, struct cordon_workflow *workflow,
			struct cordon_flow_step *step, struct cordon_errors *errors)
{
	const struct cordon_node *node = cordon_node_get(step->node, "prompt");
	const char *path = step->prompt, *text = NULL;
	char beside[CORDON_PATH_MAX];
	struct cordon_error err = { 0 };
	size_t stem = strlen(path) - strlen(".prompt.md");

	step->prompt_file = false;
	if (read_text(file->doc, fd, path, &text, &err) < 0) {
		cordon_errors_add(errors, &err, file->doc->name, node->line, node->column);
		return;
	}
	step->prompt = text;
	cordon_workflow_check_file(workflow, step, path, text, errors);
	if (cordon_copy(beside, sizeof(beside), path, stem) < 0 ||
	    cordon_concat(beside + stem, sizeof(beside) - stem, ".context.md", (char *)NULL) < 0)
		return;
	if (read_text(file->doc, fd, beside, &text, &err) == 0) {
		step->context = text;
		cordon_workflow_check_file(workflow, step, beside, text, errors);
	} else if (err.code != -ENOENT) {
		cordon_errors_add(errors, &err, file->doc->name, node->line, node->column);
	}
}

int cordon_flow_definitions(const char *config, const char *orchestrator, struct cordon_settings_file **ret_settings,
			    const struct cordon_orchestrator **ret_orchestrator,
			    struct cordon_orchestrator_file **ret_file, struct cordon_workflow **ret_workflows,
			    size_t *ret_n, struct cordon_errors *errors)
{
	autosettings struct cordon_settings_file *settings = NULL;
	autoorchestratorfile struct cordon_orchestrator_file *file = NULL;
	const struct cordon_orchestrator *found = NULL;
	struct cordon_error err = { 0 };
	autofd int fd = -1;
	int r = cordon_settings_load(config, 0, &settings, errors);

	if (r < 0 || errors->n)
		return r < 0 ? r : -EINVAL;
	r = cordon_settings_orchestrator(settings, orchestrator, &found, &err);
	if (r == 0)
		r = cordon_private_open(found, false, &fd, &err);
	if (r < 0) {
		cordon_errors_add(errors, &err, NULL, 0, 0);
		return r;
	}
	r = cordon_orchestrator_file_load(found, &file, errors);
	if (r == 0 && file)
		r = cordon_flow_read(file, ret_workflows, ret_n, errors);
	for (size_t i = 0; r == 0 && i < *ret_n; i++)
		for (size_t k = 0; k < (*ret_workflows)[i].n_steps; k++)
			if ((*ret_workflows)[i].steps[k].prompt_file)
				read_prompt(file, fd, &(*ret_workflows)[i], &(*ret_workflows)[i].steps[k], errors);
	if (r < 0 || errors->n)
		return r < 0 ? r : -EINVAL;
	*ret_settings = cordon_steal_ptr(&settings);
	*ret_file = cordon_steal_ptr(&file);
	*ret_orchestrator = found;
	return 0;
}

int cordon_flow_find(const struct cordon_workflow *workflows, size_t n, const char *orchestrator, const char *id,
		     const struct cordon_workflow **ret_workflow, struct cordon_error *err)
{
	const char *nearest = NULL;
	size_t best = CORDON_SUGGEST_FAR;

	for (size_t i = 0; i < n; i++) {
		if (cordon_streq(workflows[i].id, id)) {
			*ret_workflow = &workflows[i];
			return 0;
		}
		if (cordon_suggest_closer(id, workflows[i].id, &best))
			nearest = workflows[i].id;
	}
	cordon_fail(err, -ENOENT, CORDON_KIND_NOT_FOUND, "%s has no workflow %.80s", orchestrator, id);
	if (nearest)
		cordon_error_hint(err, "did you mean %s", nearest);
	return -ENOENT;
}

/* ---- a new run ---- */

static int check_inputs(const struct cordon_workflow *workflow, const json_t *inputs, struct cordon_errors *errors)
{
	struct cordon_error err = { 0 };
	const char *key;
	json_t *value;

	for (size_t i = 0; i < workflow->n_inputs; i++) {
		if (json_object_get(inputs, workflow->inputs[i]))
			continue;
		cordon_fail(&err, -EINVAL, CORDON_KIND_USAGE, "the input %s is missing", workflow->inputs[i]);
		cordon_error_hint(&err, "the workflow %s needs it", workflow->id);
		cordon_errors_add(errors, &err, NULL, 0, 0);
	}
	json_object_foreach((json_t *)(uintptr_t)inputs, key, value) {
		bool known = false;

		for (size_t i = 0; !known && i < workflow->n_inputs; i++)
			known = cordon_streq(workflow->inputs[i], key);
		err = (struct cordon_error){ 0 };
		if (!known)
			cordon_fail(&err, -EINVAL, CORDON_KIND_USAGE, "the workflow %s has no input %.80s",
				    workflow->id, key);
		else if (!json_is_string(value) || strlen(json_string_value(value)) != json_string_length(value))
			cordon_fail(&err, -EINVAL, CORDON_KIND_USAGE, "the input %s must be text", key);
		else if (json_string_length(value) > CORDON_FLOW_INPUT_MAX)
			cordon_fail(&err, -E2BIG, CORDON_KIND_LIMIT, "the input %s is larger than %zu bytes", key,
				    CORDON_FLOW_INPUT_MAX);
		if (err.code)
			cordon_errors_add(errors, &err, NULL, 0, 0);
	}
	return errors->n ? -EINVAL : 0;
}

static int make_id(char ret[static CORDON_FLOW_RUN_SIZE])
{
	time_t now = (time_t)(cordon_time_now() / 1000);
	unsigned char bytes[6];
	char stamp[20];
	struct tm tm;

	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes) || !gmtime_r(&now, &tm) ||
	    !strftime(stamp, sizeof(stamp), "%Y%m%dT%H%M%S", &tm))
		return -EIO;
	snprintf(ret, CORDON_FLOW_RUN_SIZE, "run-%s-%02x%02x%02x%02x%02x%02x", stamp, bytes[0], bytes[1], bytes[2],
		 bytes[3], bytes[4], bytes[5]);
	return 0;
}

static json_t *agents_json(const struct cordon_orchestrator_file *file)
{
	json_t *agents = json_object();

	for (size_t i = 0; i < file->n_agents; i++) {
		json_t *agent = json_pack("{s:s}", "provider", file->agents[i].provider);

		if (file->agents[i].model)
			json_object_set_new(agent, "model", json_string(file->agents[i].model));
		json_object_set_new(agents, file->agents[i].id, agent);
	}
	return agents;
}

static json_int_t first_of(uint64_t a, uint64_t b, uint64_t c)
{
	return (json_int_t)(a ? a : b ? b : c);
}

static json_t *limits_json(const struct cordon_orchestrator_file *file, const struct cordon_workflow *workflow)
{
	return json_pack("{s:I, s:I, s:I, s:I}", "max_total_iterations",
			 first_of(workflow->max_total_iterations, file->orchestration.max_total_iterations,
				  CORDON_FLOW_ITERATIONS_DEFAULT),
			 "run_timeout_seconds",
			 first_of(workflow->run_timeout_s, file->orchestration.default_run_timeout_seconds,
				  CORDON_FLOW_RUN_SECONDS_DEFAULT),
			 "step_timeout_seconds",
			 first_of(file->orchestration.default_step_timeout_seconds, CORDON_FLOW_STEP_SECONDS_DEFAULT, 0),
			 "max_step_timeout_seconds", (json_int_t)file->orchestration.max_step_timeout_seconds);
}

static json_t *record_json(const char *id, const struct cordon_flow_start *start,
			   const struct cordon_settings_file *settings, const struct cordon_orchestrator *orchestrator,
			   const struct cordon_orchestrator_file *file, const struct cordon_workflow *workflow)
{
	char now[CORDON_TIME_SIZE];
	json_t *record;

	cordon_time_format(cordon_time_now(), now);
	record = json_pack("{s:i, s:s, s:s, s:s, s:s, s:s, s:s, s:O, s:o, s:o, s:o}", "version", 1, "run_id", id,
			   "orchestrator", orchestrator->id, "workflow", workflow->id, "private_workspace",
			   orchestrator->private_workspace, "config", settings->path, "created_at", now, "inputs",
			   start->inputs, "agents", agents_json(file), "limits", limits_json(file, workflow),
			   "definition", cordon_workflow_json(workflow));
	if (record && start->context)
		json_object_set(record, "context", (json_t *)(uintptr_t)start->context);
	return record;
}

int cordon_flow_start(const struct cordon_home *home, const struct cordon_flow_start *start,
		      char ret_id[static CORDON_FLOW_RUN_SIZE], struct cordon_errors *errors)
{
	autosettings struct cordon_settings_file *settings = NULL;
	autoorchestratorfile struct cordon_orchestrator_file *file = NULL;
	const struct cordon_orchestrator *orchestrator = NULL;
	const struct cordon_workflow *workflow = NULL;
	struct cordon_workflow *workflows = NULL;
	struct cordon_error err = { 0 };
	autofd int lock = -1;
	size_t n = 0;
	int r = cordon_flow_definitions(start->config, start->orchestrator, &settings, &orchestrator, &file, &workflows,
					&n, errors);

	if (r < 0) {
		if (cordon_errors_first(errors, &err) < 0)
			cordon_flow_record_refusal(home, start->orchestrator, start->workflow ? start->workflow : "",
						   NULL, &err);
		return r;
	}
	r = cordon_flow_find(workflows, n, orchestrator->id, start->workflow ? start->workflow : file->default_workflow,
			     &workflow, &err);
	if (r < 0)
		return cordon_errors_add(errors, &err, NULL, 0, 0);
	r = check_inputs(workflow, start->inputs, errors);
	if (r == 0)
		r = cordon_flow_access(home, settings, orchestrator, file, workflow, errors);
	if (r < 0 || start->check_only)
		return r;
	r = make_id(ret_id);
	if (r < 0)
		cordon_fail_errno(&err, r, "cannot make an id");
	if (r == 0)
		r = cordon_flow_run_make(home, record_json(ret_id, start, settings, orchestrator, file, workflow),
					 ret_id, &lock, &err);
	if (r == 0)
		r = cordon_flow_spawn(ret_id, lock, &err);
	return r < 0 ? cordon_errors_add(errors, &err, NULL, 0, 0) : 0;
}
