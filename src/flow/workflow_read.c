/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the definitions of workflows: one table row per key, and every error at its place. */
#include "base/path.h"
#include "config/suggest.h"
#include "flow/workflow_check.h"

#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
#define TEXT_MAX 65536

struct reading {
	const struct cordon_workflows_ask *ask;
	struct cordon_reader in;
	struct cordon_workflow *workflow;
	struct cordon_flow_step *step;
	struct cordon_flow_refs *refs; /* of the step */
};

/* Readers return 0 also for a bad value, which they report; -ENOMEM stops the reading. */
typedef int read_fn(struct reading *reading, const struct cordon_node *node);

struct key {
	const char *name;
	read_fn *read;
};

bool cordon_flow_id_valid(const char *id)
{
	size_t n = strlen(id);

	return n >= 1 && n <= CORDON_FLOW_ID_MAX && strspn(id, LETTERS) == n;
}

const char *cordon_flow_type_name(cordon_flow_type type)
{
	static const char *const names[] = { "agent_task", "agent_review", "human_review" };

	return names[type];
}

static void refuse(const struct reading *reading, const struct cordon_node *node, const char *hint, const char *message)
{
	cordon_node_fail(reading->in.doc, node, reading->in.errors, hint, "%s", message);
}

static void refuse_unknown(const struct reading *reading, const struct cordon_node *node, const struct key *keys,
			   size_t n, const char *what)
{
	const char *nearest = NULL;
	size_t best = CORDON_SUGGEST_FAR;
	char hint[160] = "";

	for (size_t i = 0; i < n; i++)
		if (cordon_suggest_closer(node->key->text, keys[i].name, &best))
			nearest = keys[i].name;
	if (nearest)
		(void)cordon_concat(hint, sizeof(hint), "did you mean '", nearest, "'", (char *)NULL);
	cordon_node_fail(reading->in.doc, node->key, reading->in.errors, nearest ? hint : NULL, "%s has no key '%.80s'",
			 what, node->key->text);
}

static int read_keys(struct reading *reading, const struct cordon_node *mapping, const struct key *keys, size_t n,
		     const char *what)
{
	for (const struct cordon_node *node = mapping->first; node; node = node->next) {
		size_t i = 0;
		int r;

		while (i < n && !cordon_streq(keys[i].name, node->key->text))
			i++;
		if (i == n) {
			refuse_unknown(reading, node, keys, n, what);
			continue;
		}
		r = keys[i].read(reading, node);
		if (r < 0)
			return r;
	}
	return 0;
}

/* ---- values ---- */

static const char *read_id(const struct reading *reading, const struct cordon_node *node, const char *what)
{
	if (!cordon_reader_text(&reading->in, node, what))
		return NULL;
	if (cordon_flow_id_valid(node->text))
		return node->text;
	cordon_node_fail(reading->in.doc, node, reading->in.errors, "1 to 64 letters, digits, dashes and underscores",
			 "%s is no id: '%.80s'", what, node->text);
	return NULL;
}

static const char *read_text(const struct reading *reading, const struct cordon_node *node, const char *what, size_t max)
{
	if (!cordon_reader_text(&reading->in, node, what))
		return NULL;
	if (node->len <= max)
		return node->text;
	cordon_node_fail(reading->in.doc, node, reading->in.errors, NULL, "%s is longer than %zu bytes", what, max);
	return NULL;
}

static int read_number(const struct reading *reading, const struct cordon_node *node, uint64_t min, uint64_t max,
		       uint64_t *ret_value)
{
	if (node->type == CORDON_NODE_BAD)
		return 0;
	if (node->type != CORDON_NODE_SCALAR || node->style != CORDON_STYLE_PLAIN ||
	    cordon_parse_u64(node->text, min, max, ret_value) < 0)
		cordon_node_fail(reading->in.doc, node, reading->in.errors, NULL,
				 "%s must be a whole number from %llu to %llu", node->key->text,
				 (unsigned long long)min, (unsigned long long)max);
	return 0;
}

/* Reads a list of ids without doubles, in the memory of the document. */
static int read_ids(const struct reading *reading, const struct cordon_node *node, const char ***ret_ids, size_t *ret_n)
{
	const char **ids;
	size_t n = 0;

	if (!cordon_reader_collection(&reading->in, node, CORDON_NODE_SEQUENCE, node->key->text))
		return 0;
	if (node->n > CORDON_FLOW_KEYS_MAX)
		return cordon_node_fail(reading->in.doc, node, reading->in.errors, NULL, "%s has more than %d entries",
					node->key->text, CORDON_FLOW_KEYS_MAX),
		       0;
	ids = cordon_document_alloc(reading->in.doc, (node->n + 1) * sizeof(*ids));
	if (!ids)
		return -ENOMEM;
	for (const struct cordon_node *item = node->first; item; item = item->next) {
		const char *id = read_id(reading, item, node->key->text);

		for (size_t i = 0; id && i < n; i++) {
			if (!cordon_streq(ids[i], id))
				continue;
			cordon_node_fail(reading->in.doc, item, reading->in.errors, NULL, "%s names %s twice",
					 node->key->text, id);
			id = NULL;
		}
		if (id)
			ids[n++] = id;
	}
	*ret_ids = ids;
	*ret_n = n;
	return 0;
}

/* ---- a step ---- */

static int read_step_id(struct reading *reading, const struct cordon_node *node)
{
	reading->step->id = read_id(reading, node, "the id of a step");
	return 0;
}

static int read_type(struct reading *reading, const struct cordon_node *node)
{
	if (!cordon_reader_text(&reading->in, node, "type"))
		return 0;
	for (int type = CORDON_FLOW_TASK; type <= (int)CORDON_FLOW_HUMAN_REVIEW; type++) {
		if (!cordon_streq(node->text, cordon_flow_type_name((cordon_flow_type)type)))
			continue;
		reading->step->type = (cordon_flow_type)type;
		return 0;
	}
	cordon_node_fail(reading->in.doc, node, reading->in.errors, "agent_task, agent_review or human_review",
			 "there is no type '%.80s' of steps", node->text);
	return 0;
}

static int read_agent(struct reading *reading, const struct cordon_node *node)
{
	const char *id = read_id(reading, node, "the agent of a step");

	if (id && reading->ask->has_agent && !reading->ask->has_agent(reading->ask->data, id))
		cordon_node_fail(reading->in.doc, node, reading->in.errors, "add it to 'agents'",
				 "the orchestrator has no agent %s", id);
	reading->step->agent = id;
	return 0;
}

static int read_prompt(struct reading *reading, const struct cordon_node *node)
{
	static const char suffix[] = ".prompt.md";
	const char *text = read_text(reading, node, "prompt", CORDON_FLOW_PROMPT_MAX);
	size_t n = node->len;

	if (!text)
		return 0;
	reading->step->prompt = text;
	reading->step->prompt_file = !reading->ask->snapshot && !strpbrk(text, " \t\n") && n > sizeof(suffix) - 1 &&
				     cordon_streq(text + n - (sizeof(suffix) - 1), suffix);
	if (reading->step->prompt_file && !cordon_flow_path_valid(text))
		refuse(reading, node, "write a path such as prompts/plan.prompt.md",
		       "a prompt's file lies below the private workspace: the path is relative, without '..'");
	return 0;
}

static int read_context(struct reading *reading, const struct cordon_node *node)
{
	if (!reading->ask->snapshot)
		refuse(reading, node->key, "put it into a file beside the prompt's: prompts/x.context.md",
		       "a step has no key 'context'");
	reading->step->context = read_text(reading, node, "context", CORDON_FLOW_PROMPT_MAX);
	return 0;
}

static int read_prompt_type(struct reading *reading, const struct cordon_node *node)
{
	if (!cordon_reader_text(&reading->in, node, "prompt_type"))
		return 0;
	if (cordon_streq(node->text, "file_output"))
		reading->refs->wants_files = true;
	else if (!cordon_streq(node->text, "workflow_result_envelope"))
		refuse(reading, node, "file_output or workflow_result_envelope", "unknown prompt_type");
	return 0;
}

static int read_mode(struct reading *reading, const struct cordon_node *node)
{
	if (!cordon_reader_text(&reading->in, node, "workspace_mode"))
		return 0;
	if (cordon_streq(node->text, "run_workspace"))
		reading->step->run_workspace = true;
	else if (cordon_streq(node->text, "agent_workspace"))
		refuse(reading, node, "orchestrator_workspace or run_workspace",
		       "workspace_mode agent_workspace is not supported: agents have no workspaces of their own");
	else if (!cordon_streq(node->text, "orchestrator_workspace"))
		cordon_node_fail(reading->in.doc, node, reading->in.errors, "orchestrator_workspace or run_workspace",
				 "there is no workspace_mode '%.80s'", node->text);
	return 0;
}

static int read_next(struct reading *reading, const struct cordon_node *node)
{
	reading->refs->next = read_id(reading, node, "next") ? node : NULL;
	return 0;
}

static int read_on_approve(struct reading *reading, const struct cordon_node *node)
{
	reading->refs->on_approve = read_id(reading, node, "on_approve") ? node : NULL;
	return 0;
}

static int read_on_reject(struct reading *reading, const struct cordon_node *node)
{
	reading->refs->on_reject = read_id(reading, node, "on_reject") ? node : NULL;
	return 0;
}

static int read_needs(struct reading *reading, const struct cordon_node *node)
{
	size_t n;

	reading->refs->needs = node;
	return read_ids(reading, node, &reading->refs->needs_ids, &n);
}

/* Reads one entry of outputs: a key, with a question mark behind it when it may be missing. */
static int read_output(struct reading *reading, const struct cordon_node *node)
{
	struct cordon_flow_step *step = reading->step;
	struct cordon_flow_output output = { 0 };
	char *key;

	if (!cordon_reader_text(&reading->in, node, "an output"))
		return 0;
	output.optional = node->len > 1 && node->text[node->len - 1] == '?';
	key = cordon_document_alloc(reading->in.doc, node->len + 1);
	if (!key)
		return -ENOMEM;
	memcpy(key, node->text, node->len - (output.optional ? 1 : 0));
	output.key = key;
	if (!cordon_flow_id_valid(key))
		cordon_node_fail(reading->in.doc, node, reading->in.errors,
				 "letters, digits, dashes and underscores; 'key?' when it may be missing",
				 "not the key of an output: '%.80s'", node->text);
	else if (cordon_flow_output(step, key))
		cordon_node_fail(reading->in.doc, node, reading->in.errors, NULL, "outputs has %s twice", key);
	else
		step->outputs[step->n_outputs++] = output;
	return 0;
}

static int read_outputs(struct reading *reading, const struct cordon_node *node)
{
	struct cordon_flow_step *step = reading->step;
	int r = 0;

	if (!cordon_reader_collection(&reading->in, node, CORDON_NODE_SEQUENCE, "outputs"))
		return 0;
	if (node->n > CORDON_FLOW_KEYS_MAX)
		return cordon_node_fail(reading->in.doc, node, reading->in.errors, NULL, "more than %d outputs",
					CORDON_FLOW_KEYS_MAX),
		       0;
	step->outputs = cordon_document_alloc(reading->in.doc, (node->n + 1) * sizeof(*step->outputs));
	if (!step->outputs)
		return -ENOMEM;
	for (const struct cordon_node *item = node->first; r == 0 && item; item = item->next)
		r = read_output(reading, item);
	return r;
}

static int read_output_files(struct reading *reading, const struct cordon_node *node)
{
	if (cordon_reader_collection(&reading->in, node, CORDON_NODE_MAPPING, "output_files"))
		reading->refs->files = node;
	return 0;
}

static int read_priority(struct reading *reading, const struct cordon_node *node)
{
	reading->refs->priority = node;
	return read_ids(reading, node, &reading->step->priority, &reading->step->n_priority);
}

static int read_retries(struct reading *reading, const struct cordon_node *node)
{
	return read_number(reading, node, 0, CORDON_FLOW_RETRIES_MAX, &reading->step->max_retries);
}

static int read_step_timeout(struct reading *reading, const struct cordon_node *node)
{
	return read_number(reading, node, 1, CORDON_FLOW_SECONDS_MAX, &reading->step->timeout_s);
}

static int read_step_limits(struct reading *reading, const struct cordon_node *node)
{
	static const struct key keys[] = { { "max_retries", read_retries }, { "timeout_seconds", read_step_timeout } };

	if (!cordon_reader_collection(&reading->in, node, CORDON_NODE_MAPPING, "limits"))
		return 0;
	return read_keys(reading, node, keys, CORDON_ARRAY_SIZE(keys), "limits of a step");
}

static int read_step(struct reading *reading, const struct cordon_node *node)
{
	static const struct key keys[] = {
		{ "id", read_step_id },
		{ "type", read_type },
		{ "agent", read_agent },
		{ "prompt", read_prompt },
		{ "prompt_type", read_prompt_type },
		{ "workspace_mode", read_mode },
		{ "next", read_next },
		{ "on_approve", read_on_approve },
		{ "on_reject", read_on_reject },
		{ "needs", read_needs },
		{ "outputs", read_outputs },
		{ "output_files", read_output_files },
		{ "final_output_priority", read_priority },
		{ "limits", read_step_limits },
		{ "context", read_context },
	};

	*reading->step = (struct cordon_flow_step){
		.node = node, .next = CORDON_FLOW_END, .on_approve = CORDON_FLOW_END, .on_reject = CORDON_FLOW_END
	};
	if (!cordon_reader_collection(&reading->in, node, CORDON_NODE_MAPPING, "a step"))
		return 0;
	return read_keys(reading, node, keys, CORDON_ARRAY_SIZE(keys), "a step");
}

/* ---- a workflow ---- */

static int read_workflow_id(struct reading *reading, const struct cordon_node *node)
{
	reading->workflow->id = read_id(reading, node, "the id of a workflow");
	return 0;
}

static int read_version(struct reading *reading, const struct cordon_node *node)
{
	return read_number(reading, node, 1, UINT32_MAX, &reading->workflow->version);
}

static int read_description(struct reading *reading, const struct cordon_node *node)
{
	const char *text = read_text(reading, node, "description", TEXT_MAX);

	if (text)
		reading->workflow->description = text;
	return 0;
}

static int read_tags(struct reading *reading, const struct cordon_node *node)
{
	return read_ids(reading, node, &reading->workflow->tags, &reading->workflow->n_tags);
}

static int read_inputs(struct reading *reading, const struct cordon_node *node)
{
	return read_ids(reading, node, &reading->workflow->inputs, &reading->workflow->n_inputs);
}

static int read_iterations(struct reading *reading, const struct cordon_node *node)
{
	return read_number(reading, node, 1, CORDON_FLOW_ITERATIONS_MAX, &reading->workflow->max_total_iterations);
}

static int read_run_timeout(struct reading *reading, const struct cordon_node *node)
{
	return read_number(reading, node, 1, CORDON_FLOW_SECONDS_MAX, &reading->workflow->run_timeout_s);
}

static int read_limits(struct reading *reading, const struct cordon_node *node)
{
	static const struct key keys[] = { { "max_total_iterations", read_iterations },
					   { "run_timeout_seconds", read_run_timeout } };

	if (!cordon_reader_collection(&reading->in, node, CORDON_NODE_MAPPING, "limits"))
		return 0;
	return read_keys(reading, node, keys, CORDON_ARRAY_SIZE(keys), "limits of a workflow");
}

static int read_steps(struct reading *reading, const struct cordon_node *node)
{
	struct cordon_workflow *workflow = reading->workflow;
	struct cordon_flow_refs *refs;
	int r = 0;

	if (!cordon_reader_collection(&reading->in, node, CORDON_NODE_SEQUENCE, "steps"))
		return 0;
	if (!node->n || node->n > CORDON_FLOW_STEPS_MAX)
		return cordon_node_fail(reading->in.doc, node, reading->in.errors, NULL, "a workflow has 1 to %d steps",
					CORDON_FLOW_STEPS_MAX),
		       0;
	workflow->steps = cordon_document_alloc(reading->in.doc, node->n * sizeof(*workflow->steps));
	refs = cordon_document_alloc(reading->in.doc, node->n * sizeof(*refs));
	if (!workflow->steps || !refs)
		return -ENOMEM;
	for (const struct cordon_node *item = node->first; r == 0 && item; item = item->next) {
		reading->step = &workflow->steps[workflow->n_steps];
		reading->refs = &refs[workflow->n_steps++];
		r = read_step(reading, item);
	}
	reading->refs = refs;
	return r;
}

static int read_workflow(struct reading *reading, const struct cordon_node *node)
{
	static const struct key keys[] = {
		{ "id", read_workflow_id }, { "version", read_version }, { "description", read_description },
		{ "tags", read_tags },	    { "inputs", read_inputs },	 { "limits", read_limits },
		{ "steps", read_steps },
	};
	static const char *const required[] = { "id", "version", "steps" };
	int r;

	*reading->workflow = (struct cordon_workflow){ .node = node, .description = "" };
	reading->refs = NULL;
	if (!cordon_reader_collection(&reading->in, node, CORDON_NODE_MAPPING, "a workflow"))
		return 0;
	r = read_keys(reading, node, keys, CORDON_ARRAY_SIZE(keys), "a workflow");
	if (r < 0)
		return r;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(required); i++)
		if (!cordon_node_get(node, required[i]))
			cordon_node_fail(reading->in.doc, node, reading->in.errors, NULL, "a workflow has no '%s'",
					 required[i]);
	return reading->workflow->n_steps ? cordon_workflow_check(&reading->in, reading->workflow, reading->refs) : 0;
}

int cordon_workflows_read(const struct cordon_workflows_ask *ask, struct cordon_workflow **ret_workflows, size_t *ret_n)
{
	struct reading reading = { .ask = ask, .in = ask->reader };
	struct cordon_workflow *workflows;
	size_t n = 0;
	int r = 0;

	*ret_workflows = NULL;
	*ret_n = 0;
	if (!ask->node || !cordon_reader_collection(&reading.in, ask->node, CORDON_NODE_SEQUENCE, "workflows"))
		return 0;
	if (ask->node->n > CORDON_WORKFLOWS_MAX)
		return cordon_node_fail(reading.in.doc, ask->node, reading.in.errors, NULL, "more than %d workflows",
					CORDON_WORKFLOWS_MAX),
		       0;
	workflows = cordon_document_alloc(reading.in.doc, (ask->node->n + 1) * sizeof(*workflows));
	if (!workflows)
		return -ENOMEM;
	for (const struct cordon_node *node = ask->node->first; r == 0 && node; node = node->next) {
		reading.workflow = &workflows[n];
		r = read_workflow(&reading, node);
		for (size_t i = 0; workflows[n].id && i < n; i++)
			if (workflows[i].id && cordon_streq(workflows[i].id, workflows[n].id))
				cordon_node_fail(reading.in.doc, cordon_node_get(node, "id"), reading.in.errors, NULL,
						 "there is a workflow %s already, at line %u", workflows[n].id,
						 workflows[i].node->line);
		n++;
	}
	if (r < 0)
		return r;
	*ret_workflows = workflows;
	*ret_n = n;
	return 0;
}
