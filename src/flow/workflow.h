/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Definitions of workflows: what `workflows` of an orchestrator.yaml says (cordon-workflow(1)). A workflow has steps; each
 * step is one run of an agent, or waits for a person. A definition is data that cordon checked whole before anything runs.
 *
 *     first step ──► step ──next──► review ──on_approve──► step ──► end
 *                      ▲                └────on_reject────┐
 *                      └──────────────────────────────────┘
 *
 * A run keeps a copy of its definition as JSON (cordon_workflow_json()), and cordon_workflow_parse() reads it back, so that a
 * changed file never changes a run that has begun.
 */
#ifndef CORDON_FLOW_WORKFLOW_H
#define CORDON_FLOW_WORKFLOW_H

#include <jansson.h>

#include "config/reader.h"

#define CORDON_WORKFLOWS_MAX 256
#define CORDON_FLOW_STEPS_MAX 128
#define CORDON_FLOW_KEYS_MAX 64 /* outputs of a step, inputs and tags of a workflow */
#define CORDON_FLOW_ID_MAX 64
#define CORDON_FLOW_PROMPT_MAX ((size_t)256 << 10)
#define CORDON_FLOW_ITERATIONS_MAX 1000
#define CORDON_FLOW_ITERATIONS_DEFAULT 12
#define CORDON_FLOW_RETRIES_MAX 100
#define CORDON_FLOW_SECONDS_MAX (UINT64_C(366) * 24 * 3600)
#define CORDON_FLOW_RUN_SECONDS_DEFAULT 3600
#define CORDON_FLOW_STEP_SECONDS_DEFAULT 900
#define CORDON_FLOW_END SIZE_MAX /* in the place of a step's index: the workflow ends */

typedef enum cordon_flow_type {
	CORDON_FLOW_TASK,	  /* agent_task */
	CORDON_FLOW_REVIEW,	  /* agent_review: an agent decides */
	CORDON_FLOW_HUMAN_REVIEW, /* human_review: a person decides */
} cordon_flow_type;

struct cordon_flow_output {
	const char *key;
	bool optional;
	const char *file; /* a template of a path below the run directory, or NULL: the envelope has it */
};

/* A place of a scalar in the file, for errors that are found after the reading. */
struct cordon_flow_step {
	const char *id;
	cordon_flow_type type;
	const char *agent;   /* NULL only for human_review */
	const char *prompt;  /* the text, or the path of a file (see prompt_file); NULL: none */
	const char *context; /* of a run: the text of the file beside the prompt's; else NULL */
	bool prompt_file;    /* the prompt is the path of a file below the private workspace */
	bool run_workspace;
	bool envelope; /* the result is in the agent's answer, not in files */
	size_t next, on_approve, on_reject;
	bool has_on_reject;
	size_t *needs;
	size_t n_needs;
	struct cordon_flow_output *outputs;
	size_t n_outputs;
	const char **priority; /* final_output_priority */
	size_t n_priority;
	uint64_t max_retries;
	uint64_t timeout_s; /* 0: the orchestrator's default */
	const struct cordon_node *node;
};

struct cordon_workflow {
	const char *id;
	uint64_t version;
	const char *description; /* or "" */
	const char **tags, **inputs;
	size_t n_tags, n_inputs;
	uint64_t max_total_iterations; /* 0: the orchestrator's */
	uint64_t run_timeout_s;	       /* 0: the orchestrator's */
	struct cordon_flow_step *steps;
	size_t n_steps;
	const struct cordon_node *node;
};

struct cordon_workflows_ask {
	struct cordon_reader reader;
	const struct cordon_node *node; /* the list; NULL: none */
	/* Whether an agent of this name exists; NULL: any will do. */
	bool (*has_agent)(const void *data, const char *id);
	const void *data;
	bool snapshot; /* the copy of a run: prompts are texts, and contexts stand beside them */
};

/* Reads all workflows. Every error goes into the list of the reader; returns -ENOMEM or 0. The memory is the document's. */
int cordon_workflows_read(const struct cordon_workflows_ask *ask, struct cordon_workflow **ret_workflows, size_t *ret_n);
/* Calls `tell` for each thing that is allowed and looks like a mistake: a step to which nothing leads. */
void cordon_workflow_notices(const struct cordon_document *doc, const struct cordon_workflow *workflow,
			     void (*tell)(void *data, const char *where, const char *text), void *data);

/* The definition as an object with the keys of the file; NULL without memory. */
json_t *cordon_workflow_json(const struct cordon_workflow *workflow);
/* Reads the copy that a run has, which must be without errors. */
int cordon_workflow_parse(const json_t *definition, struct cordon_document **ret_doc,
			  const struct cordon_workflow **ret_workflow, struct cordon_error *err);

/* SIZE_MAX when there is none. */
size_t cordon_workflow_step(const struct cordon_workflow *workflow, const char *id);
const struct cordon_flow_output *cordon_flow_output(const struct cordon_flow_step *step, const char *key);
const char *cordon_flow_type_name(cordon_flow_type type);
/* Letters, digits, `_` and `-`, at most 64. */
bool cordon_flow_id_valid(const char *id);
/* Whether a clean path is relative and leads nowhere else by its text. */
bool cordon_flow_path_valid(const char *path);

#endif
