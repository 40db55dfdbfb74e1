/* SPDX-License-Identifier: Apache-2.0 */
/* Reads orchestrator.yaml, and writes the first one of a new orchestrator. */
#include <fcntl.h>

#include "base/io.h"
#include "base/path.h"
#include "config/settings_reader.h"
#include "config/suggest.h"
#include "flow/orchestrator_file.h"
#include "flow/private.h"

#define SELECTOR_TIMEOUT_SECONDS 30
#define NUMBER_MAX 1000000000

#define FAIL(reader, node, hint, ...) cordon_node_fail((reader)->in.doc, node, (reader)->in.errors, hint, __VA_ARGS__)

static const char first[] = "# The orchestrator %s: its agents and its workflows. orchestrator.yaml(5) explains the keys.\n"
			    "id: %s\n"
			    "selector_agent: router\n"
			    "default_workflow: default\n"
			    "selection_max_retries: 2\n"
			    "\n"
			    "agents:\n"
			    "  router:\n"
			    "    provider: anthropic\n"
			    "    model: sonnet\n"
			    "    can_orchestrate_workflows: true\n"
			    "  worker:\n"
			    "    provider: anthropic\n"
			    "    model: sonnet\n"
			    "\n"
			    "workflows:\n"
			    "  - id: default\n"
			    "    version: 1\n"
			    "    description: One step that does what a request asks for\n"
			    "    inputs: [user_prompt]\n"
			    "    steps:\n"
			    "      - id: answer\n"
			    "        type: agent_task\n"
			    "        agent: worker\n"
			    "        workspace_mode: run_workspace\n"
			    "        prompt: |\n"
			    "          Do what this request asks for:\n"
			    "          {{inputs.user_prompt}}\n"
			    "          Then write what you did, in a few sentences, to {{workflow.output_paths.summary}}\n"
			    "        outputs: [summary]\n"
			    "        output_files:\n"
			    "          summary: answer/summary-{{workflow.attempt}}.md\n"
			    "\n"
			    "workflow_orchestration:\n"
			    "  max_total_iterations: 12\n"
			    "  default_run_timeout_seconds: 3600\n"
			    "  default_step_timeout_seconds: 900\n"
			    "  max_step_timeout_seconds: 1800\n";

int cordon_orchestrator_file_first(const char *id, struct cordon_buf *ret_text)
{
	return cordon_buf_addf(ret_text, first, id, id);
}

/* ---- values ---- */

static int read_number(struct cordon_settings_reader *reader, const struct cordon_node *node, uint64_t min,
		       uint64_t *ret_number)
{
	if (node->type == CORDON_NODE_BAD)
		return 0;
	if (node->type != CORDON_NODE_SCALAR || cordon_parse_u64(node->text, min, NUMBER_MAX, ret_number) < 0)
		FAIL(reader, node, NULL, "%s must be a number from %u to %d", node->key->text, (unsigned int)min,
		     NUMBER_MAX);
	return 0;
}

/* ---- agents ---- */

static int read_provider(struct cordon_settings_reader *reader, const struct cordon_node *node, void *data)
{
	return cordon_settings_read_id(reader, node, "provider", "the name of a provider",
				       &((struct cordon_flow_agent *)data)->provider);
}

static int read_model(struct cordon_settings_reader *reader, const struct cordon_node *node, void *data)
{
	return cordon_settings_read_text(reader, node, "model", &((struct cordon_flow_agent *)data)->model);
}

static int read_can_orchestrate(struct cordon_settings_reader *reader, const struct cordon_node *node, void *data)
{
	cordon_reader_bool(&reader->in, node, node->key->text,
			   &((struct cordon_flow_agent *)data)->can_orchestrate_workflows);
	return 0;
}

static int read_agent(struct cordon_settings_reader *reader, const struct cordon_node *node, void *data)
{
	static const struct cordon_settings_key keys[] = {
		{ "provider", read_provider },
		{ "model", read_model },
		{ "can_orchestrate_workflows", read_can_orchestrate },
		{ 0 },
	};
	struct cordon_flow_agent *agent = data;

	*agent = (struct cordon_flow_agent){ .id = node->key->text, .node = node };
	if (cordon_settings_is_none(node) || (node->type == CORDON_NODE_MAPPING && !cordon_node_get(node, "provider")))
		FAIL(reader, node->key, "add provider: anthropic", "the agent %s has no provider", agent->id);
	return cordon_settings_read_keys(reader, node, "an agent", keys, agent);
}

static int read_agents(struct cordon_settings_reader *reader, const struct cordon_node *node, void *data)
{
	struct cordon_orchestrator_file *file = data;
	void *items = NULL;
	int r = cordon_settings_read_each(reader, node, "agents", "the id of an agent", sizeof(*file->agents),
					  read_agent, &items, &file->n_agents);

	file->agents = items;
	return r;
}

int cordon_orchestrator_file_agent(const struct cordon_orchestrator_file *file, const char *id,
				   const struct cordon_flow_agent **ret_agent, struct cordon_error *err)
{
	size_t best = CORDON_SUGGEST_FAR;
	const char *nearest = NULL;

	for (size_t i = 0; i < file->n_agents; i++) {
		if (cordon_streq(file->agents[i].id, id)) {
			*ret_agent = &file->agents[i];
			return 0;
		}
		if (cordon_suggest_closer(id, file->agents[i].id, &best))
			nearest = file->agents[i].id;
	}
	cordon_fail(err, -ENOENT, CORDON_KIND_NOT_FOUND, "the orchestrator %s has no agent '%.80s'", file->id, id);
	if (nearest)
		cordon_error_hint(err, "did you mean '%s'?", nearest);
	else
		cordon_error_hint(err, "'cordon orchestrator-agent list %s' shows those that there are", file->id);
	return -ENOENT;
}

/* ---- the rest ---- */

static int read_id(struct cordon_settings_reader *reader, const struct cordon_node *node, void *data)
{
	struct cordon_orchestrator_file *file = data;

	/* file->id is what it must be. */
	if (cordon_reader_text(&reader->in, node, "id") && !cordon_streq(node->text, file->id))
		FAIL(reader, node, "write the id that the settings have",
		     "the id is '%.80s', but the settings call it %s", node->text, file->id);
	return 0;
}

static int read_selector(struct cordon_settings_reader *reader, const struct cordon_node *node, void *data)
{
	return cordon_settings_read_id(reader, node, "selector_agent", "the id of an agent",
				       &((struct cordon_orchestrator_file *)data)->selector_agent);
}

static int read_default_workflow(struct cordon_settings_reader *reader, const struct cordon_node *node, void *data)
{
	return cordon_settings_read_id(reader, node, "default_workflow", "the id of a workflow",
				       &((struct cordon_orchestrator_file *)data)->default_workflow);
}

static int read_max_retries(struct cordon_settings_reader *reader, const struct cordon_node *node, void *data)
{
	return read_number(reader, node, 1, &((struct cordon_orchestrator_file *)data)->selection_max_retries);
}

static int read_selector_timeout(struct cordon_settings_reader *reader, const struct cordon_node *node, void *data)
{
	return read_number(reader, node, 1, &((struct cordon_orchestrator_file *)data)->selector_timeout_seconds);
}

static int read_workflows(struct cordon_settings_reader *reader, const struct cordon_node *node, void *data)
{
	if (cordon_reader_collection(&reader->in, node, CORDON_NODE_SEQUENCE, "workflows"))
		((struct cordon_orchestrator_file *)data)->workflows = node;
	return 0;
}

#define LIMIT(name)                                                                                                    \
	static int read_##name(struct cordon_settings_reader *reader, const struct cordon_node *node, void *data)      \
	{                                                                                                              \
		return read_number(reader, node, 1, &((struct cordon_orchestrator_file *)data)->orchestration.name);   \
	}
LIMIT(max_total_iterations)
LIMIT(default_run_timeout_seconds)
LIMIT(default_step_timeout_seconds)
LIMIT(max_step_timeout_seconds)

static int read_orchestration(struct cordon_settings_reader *reader, const struct cordon_node *node, void *data)
{
	static const struct cordon_settings_key keys[] = {
		{ "max_total_iterations", read_max_total_iterations },
		{ "default_run_timeout_seconds", read_default_run_timeout_seconds },
		{ "default_step_timeout_seconds", read_default_step_timeout_seconds },
		{ "max_step_timeout_seconds", read_max_step_timeout_seconds },
		{ 0 },
	};

	return cordon_settings_read_keys(reader, node, "workflow_orchestration", keys, data);
}

static void check_needed(const struct cordon_settings_reader *reader, const struct cordon_node *root)
{
	static const char *const needed[] = { "id",	"selector_agent", "default_workflow", "selection_max_retries",
					      "agents", "workflows" };

	for (size_t i = 0; root->type == CORDON_NODE_MAPPING && i < CORDON_ARRAY_SIZE(needed); i++)
		if (!cordon_node_get(root, needed[i]))
			FAIL(reader, root, NULL, "%s is missing", needed[i]);
}

static void check_selector(const struct cordon_settings_reader *reader, const struct cordon_orchestrator_file *file)
{
	const struct cordon_node *node = cordon_node_get(file->doc->root, "selector_agent");
	const struct cordon_flow_agent *agent = NULL;
	struct cordon_error err = { 0 };

	if (!file->selector_agent)
		return;
	if (cordon_orchestrator_file_agent(file, file->selector_agent, &agent, &err) < 0) {
		err.kind = CORDON_KIND_CONFIG;
		cordon_reader_refuse(&reader->in, node, &err, CORDON_READER_WHOLE);
	} else if (!agent->can_orchestrate_workflows) {
		FAIL(reader, node, "add can_orchestrate_workflows: true to that agent",
		     "the selector agent %s may not orchestrate workflows", agent->id);
	}
}

static int read_document(struct cordon_orchestrator_file *file, struct cordon_errors *errors)
{
	static const struct cordon_settings_key keys[] = {
		{ "id", read_id },
		{ "selector_agent", read_selector },
		{ "default_workflow", read_default_workflow },
		{ "selection_max_retries", read_max_retries },
		{ "selector_timeout_seconds", read_selector_timeout },
		{ "agents", read_agents },
		{ "workflows", read_workflows },
		{ "workflow_orchestration", read_orchestration },
		{ 0 },
	};
	struct cordon_settings_reader reader = { .in = { .doc = file->doc, .errors = errors } };
	int r = cordon_settings_read_keys(&reader, file->doc->root, "the orchestrator", keys, file);

	if (r < 0)
		return r;
	check_needed(&reader, file->doc->root);
	check_selector(&reader, file);
	return 0;
}

/* ---- the file ---- */

struct cordon_orchestrator_file *cordon_orchestrator_file_free(struct cordon_orchestrator_file *file)
{
	if (file)
		cordon_document_free(file->doc);
	free(file);
	return NULL;
}

void cordon_orchestrator_file_freep(struct cordon_orchestrator_file **file)
{
	*file = cordon_orchestrator_file_free(*file);
}

int cordon_orchestrator_file_parse(const char *path, const char *id, const char *text, size_t len,
				   struct cordon_orchestrator_file **ret_file, struct cordon_errors *errors)
{
	autoorchestratorfile struct cordon_orchestrator_file *file = calloc(1, sizeof(*file));
	size_t before = errors->n + errors->dropped;
	struct cordon_error err = { 0 };
	int r;

	if (!file)
		cordon_fail_errno(&err, -ENOMEM, "%s", path);
	else if (cordon_copy(file->path, sizeof(file->path), path, strlen(path)) < 0)
		cordon_fail_errno(&err, -ENAMETOOLONG, "%s", path);
	if (err.code || !file)
		return cordon_errors_add(errors, &err, NULL, 0, 0);
	file->id = id;
	file->selector_timeout_seconds = SELECTOR_TIMEOUT_SECONDS;
	r = cordon_document_parse(path, CORDON_FORMAT_YAML_ALIASES, text, len, CORDON_CONFIG_DEPTH_MAX, &file->doc,
				  errors);
	if (r < 0)
		return r;
	r = read_document(file, errors);
	if (r < 0) {
		cordon_fail_errno(&err, r, "%s", path);
		return cordon_errors_add(errors, &err, NULL, 0, 0);
	}
	if (errors->n + errors->dropped > before)
		return -EINVAL;
	/* The caller's id may go before the file does. */
	file->id = cordon_node_get(file->doc->root, "id")->text;
	*ret_file = cordon_steal_ptr(&file);
	return 0;
}

int cordon_orchestrator_file_load(const struct cordon_orchestrator *orchestrator,
				  struct cordon_orchestrator_file **ret_file, struct cordon_errors *errors)
{
	struct cordon_buf text autobuf = CORDON_BUF(CORDON_CONFIG_SIZE_MAX);
	struct cordon_error err = { 0 };
	char path[CORDON_PATH_MAX];
	autofd int fd = -1;
	int r = cordon_path_join(orchestrator->private_workspace, CORDON_ORCHESTRATOR_FILE, path, sizeof(path));

	if (r < 0)
		cordon_fail_errno(&err, r, "%s", orchestrator->private_workspace);
	else
		r = cordon_private_open(orchestrator, false, &fd, &err);
	if (r == 0)
		r = cordon_read_file(fd, CORDON_ORCHESTRATOR_FILE, O_NOFOLLOW, &text, &err);
	if (r == -ENOENT) {
		cordon_fail(&err, -ENOENT, CORDON_KIND_NOT_FOUND, "the orchestrator %s has no file %s",
			    orchestrator->id, path);
		cordon_error_hint(&err, "'cordon orchestrator add %s' makes one", orchestrator->id);
	} else if (r == -ELOOP) {
		cordon_error_hint(&err, "a link is not followed; put the file itself there");
	}
	if (r < 0)
		return cordon_errors_add(errors, &err, NULL, 0, 0);
	return cordon_orchestrator_file_parse(path, orchestrator->id, text.data ? text.data : "", text.len, ret_file,
					      errors);
}
