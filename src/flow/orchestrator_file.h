/* SPDX-License-Identifier: Apache-2.0 */
/*
 * orchestrator.yaml in the private workspace of an orchestrator (orchestrator.yaml(5)): its agents and workflows.
 *
 *     id: helpdesk                     # as in config.yaml
 *     selector_agent: router
 *     default_workflow: triage
 *     selection_max_retries: 2
 *     selector_timeout_seconds: 30
 *     agents:
 *       router: {provider: anthropic, model: sonnet, can_orchestrate_workflows: true}
 *     workflows: [...]                 # workflow.h
 *     workflow_orchestration: {max_total_iterations: 12, default_run_timeout_seconds: 3600,
 *                              default_step_timeout_seconds: 900, max_step_timeout_seconds: 1800}
 *
 * INVARIANT: the file lies where agents work. They can't change it (step.c protects it), but it is read as if they could:
 * through descriptors, without following links, bounded. It gives no access: config.yaml alone does.
 */
#ifndef CORDON_FLOW_ORCHESTRATOR_FILE_H
#define CORDON_FLOW_ORCHESTRATOR_FILE_H

#include "base/buf.h"
#include "config/settings_file.h"

#define CORDON_ORCHESTRATOR_FILE "orchestrator.yaml"

/* Strings belong to the file. */
struct cordon_flow_agent {
	const char *id;
	const char *provider;
	const char *model; /* or NULL */
	bool can_orchestrate_workflows;
	const struct cordon_node *node;
};

struct cordon_orchestrator_file {
	struct cordon_document *doc;
	char path[CORDON_PATH_MAX];
	const char *id;
	const char *selector_agent;
	const char *default_workflow;
	uint64_t selection_max_retries;	   /* at least 1 */
	uint64_t selector_timeout_seconds; /* 30 when the file does not say */
	struct cordon_flow_agent *agents;
	size_t n_agents;
	struct {
		uint64_t max_total_iterations; /* here and below, 0 means that the file does not say */
		uint64_t default_run_timeout_seconds;
		uint64_t default_step_timeout_seconds;
		uint64_t max_step_timeout_seconds;
	} orchestration;
	const struct cordon_node *workflows; /* the list, or NULL */
};

/* Reads the file of an orchestrator. All errors are found in one pass. */
int cordon_orchestrator_file_load(const struct cordon_orchestrator *orchestrator,
				  struct cordon_orchestrator_file **ret_file, struct cordon_errors *errors);
/* The same from memory; `path` is for messages, `id` what the file must have. */
int cordon_orchestrator_file_parse(const char *path, const char *id, const char *text, size_t len,
				   struct cordon_orchestrator_file **ret_file, struct cordon_errors *errors);
struct cordon_orchestrator_file *cordon_orchestrator_file_free(struct cordon_orchestrator_file *file);
void cordon_orchestrator_file_freep(struct cordon_orchestrator_file **file);
#define autoorchestratorfile CORDON_CLEANUP(cordon_orchestrator_file_freep)

/* Finds an agent by its id; the error of kind not_found suggests the nearest. */
int cordon_orchestrator_file_agent(const struct cordon_orchestrator_file *file, const char *id,
				   const struct cordon_flow_agent **ret_agent, struct cordon_error *err);

/* The text that a new orchestrator begins with. */
int cordon_orchestrator_file_first(const char *id, struct cordon_buf *ret_text);

#endif
