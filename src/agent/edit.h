/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of a file of agents that leave every other byte, order and comment alone. */
#ifndef CORDON_AGENT_EDIT_H
#define CORDON_AGENT_EDIT_H

#include "agent/agent.h"

/* A new agent. */
struct cordon_agent_draft {
	const char *name, *role;
	const char *description, *model; /* or NULL */
	const char *patterns;		 /* separated by commas; a comma in braces does not separate */
	const char *read;		 /* more patterns, only to be read; or NULL */
	bool read_only;
};

/* Adds an agent to the file, or makes the file. The text is judged as a whole before it is written. */
int cordon_agents_add(const struct cordon_root *root, const char *config, const struct cordon_agent_draft *draft,
		      char ret_path[static CORDON_PATH_MAX], struct cordon_errors *errors);
int cordon_agents_remove(const struct cordon_root *root, const char *config, const char *name,
			 char ret_path[static CORDON_PATH_MAX], struct cordon_errors *errors);

/* The same in memory: text in, text out. Either draft or name is NULL. */
int cordon_agents_edit(const char *file, cordon_format format, const char *text, size_t len,
		       const struct cordon_agent_draft *draft, const char *name, struct cordon_buf *ret_text,
		       struct cordon_errors *errors);

/* The named drafts for `cordon agent init`. The first has no name that a user gives. */
struct cordon_agent_preset {
	const char *name;
	const char *description;
	struct cordon_agent_draft draft;
};
const struct cordon_agent_preset *cordon_agent_presets(size_t *ret_n);
/* Writes a new agents.json. kind conflict when there is a file of agents already, usage for an unknown preset; NULL is
 * one developer with `src/**`. */
int cordon_agents_init(const struct cordon_root *root, const char *preset, char ret_path[static CORDON_PATH_MAX],
		       struct cordon_error *err);

#endif
