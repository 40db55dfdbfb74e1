/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Named agents, each with a scope, an environment and limits of its own (agents.json(5)). They stand in a file of the
 * repository: agents.json, or .agent/agents.yaml.
 *
 *     {"agents": [{"name": "qa", "role": "qa",
 *                  "scope": {"read": ["src/**"], "write": ["tests/**"]},
 *                  "env": {"CI": "1"}, "command": ["npm", "test"]}]}
 *
 * INVARIANT: whoever can write to the repository can write this file. So nothing in it reaches beyond the repository
 * until a person has said `cordon agent trust`, which records the hash of the file (trust.h). Until then env_pass,
 * profile, best_effort and net (except `none`) have no effect, and callers report each of them.
 *
 * Nothing here prints or has command-line options: the command line and the MCP server call it.
 */
#ifndef CORDON_AGENT_AGENT_H
#define CORDON_AGENT_AGENT_H

#include "base/digest.h"
#include "base/home.h"
#include "config/policy_file.h"
#include "policy/policy.h"

#define CORDON_AGENTS_MAX 1000
#define CORDON_AGENT_NAME_MAX 64
#define CORDON_AGENT_COMMAND_MAX 256 /* words */
#define CORDON_AGENTS_JSON "agents.json"
#define CORDON_AGENTS_YAML ".agent/agents.yaml"

/* One agent. Strings and lists belong to the file; a `where` of NULL means that the file does not set the value. What
 * an agent has from the one that it extends is filled in. */
struct cordon_agent {
	const char *name;
	const char *role;				/* "unknown" when the file does not say */
	const char *description, *model, *instructions; /* for people and for the agent's program; or NULL */
	struct cordon_setting_list read;		/* patterns */
	struct cordon_setting_list write;		/* patterns; write includes read */
	const char *scope_where;
	char **command; /* ends with NULL; or NULL */
	struct cordon_env_setting *env;
	size_t n_env;
	struct cordon_setting_list env_pass;
	const char *env_pass_where;
	struct cordon_setting profile; /* its text is NULL when there is none */
	struct cordon_setting extends; /* the same */
	/* A list only narrows, so it counts without trust; the hosts of a profile and credentials need it. */
	struct cordon_net_setting net;
	/* Numbers, words and flags. `best_effort` needs trust; `cow` and limits only narrow, and of `git` only paths
	 * of the scope are taken over, so they count without it. */
	struct cordon_recipe_values values;
	const struct cordon_node *node; /* in the document */
};

struct cordon_agents {
	struct cordon_document *doc;
	struct cordon_root root;       /* of the repository; patterns are relative to it */
	char path[CORDON_PATH_MAX];    /* of the file, absolute */
	char hash[CORDON_DIGEST_SIZE]; /* of its content */
	bool trusted;
	struct cordon_agent *items; /* in the order of the file */
	size_t n;
};

/*
 * Finds and reads the file of a repository: `config` if it is not NULL (a path, relative to the current directory),
 * else agents.json or .agent/agents.yaml in the root; both is an error. `root` is where to look, or NULL: the top
 * level of the repository around the current directory. Without a file the error is of kind not_found. All errors of
 * the file are found in one pass. Looks up whether it is trusted.
 */
int cordon_agents_load(const char *root, const char *config, struct cordon_agents **ret_agents,
		       struct cordon_errors *errors);
/* Only the path of that file, absolute, which need not exist: then it is agents.json. */
int cordon_agents_find(const struct cordon_root *root, const char *config, char ret_path[static CORDON_PATH_MAX],
		       struct cordon_error *err);
/* Opens the root as cordon_agents_load() does. */
int cordon_agents_root(const char *root, struct cordon_root *ret_root, struct cordon_error *err);
struct cordon_agents *cordon_agents_free(struct cordon_agents *agents);
void cordon_agents_freep(struct cordon_agents **agents);
#define autoagents CORDON_CLEANUP(cordon_agents_freep)

/* Reads a file that is in memory, without a look at the disk or at scopes that extend others. */
int cordon_agents_parse(const char *name, cordon_format format, const char *text, size_t len,
			struct cordon_agents **ret_agents, struct cordon_errors *errors);
/* How a file of this name is read: .json, .yaml or .yml. */
int cordon_agents_format(const char *path, cordon_format *ret_format, struct cordon_error *err);

/* Names do not differ by case alone. The error of kind not_found suggests the nearest name. */
int cordon_agents_get(const struct cordon_agents *agents, const char *name, const struct cordon_agent **ret_agent,
		      struct cordon_error *err);
/* 1 to 64 letters, digits, blanks and _ . -, without a blank at either end. */
int cordon_agent_name_check(const char *name, struct cordon_error *err);
int cordon_agent_role_check(const char *role, struct cordon_error *err);

/* Calls `tell` for each setting of the agent that has no effect, because the file is not trusted or because nothing
 * enforces it yet, with the place and one sentence. */
void cordon_agent_notices(const struct cordon_agents *agents, const struct cordon_agent *agent,
			  void (*tell)(void *data, const char *where, const char *text), void *data);

/* The roles that a file may name; others are allowed, too. */
struct cordon_agent_role {
	const char *name;
	const char *description;
};
const struct cordon_agent_role *cordon_agent_roles(size_t *ret_n);

#endif
