/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs of agents. Several agents that are started together are one crew (job/crew.h), whose id is the RUN that people
 * see; each agent is one job of it, with the agent's name.
 */
#ifndef CORDON_AGENT_JOB_H
#define CORDON_AGENT_JOB_H

#include "agent/agent.h"
#include "job/crew.h"
#include "recipe/recipe.h"

#define CORDON_AGENT_LABEL "agents "  /* the label of a crew of agents: this, then the root */
#define CORDON_AGENT_OUTPUT_MAX 65536 /* bytes of stdout and of stderr in a result: the last ones */

/* What a caller may choose for a start. */
struct cordon_agent_start {
	char *const *argv;		    /* or NULL: see the next, else the agent's own command */
	const char *command;		    /* for `sh -c` inside, or NULL */
	struct cordon_recipe_values values; /* those that are set count instead of the agent's own */
	const char *net; /* hosts, as an option has them: what the agent reaches is narrowed to these; or NULL */
	bool in_temp;	 /* start in the private temporary directory instead of the root */
	bool dry;	 /* nothing will be started: make no directories for the state of a profile */
};

/* Everything that the run of one agent needs. It owns what the recipe refers to, and refers to agents. */
struct cordon_agent_job {
	const struct cordon_agent *agent;
	struct cordon_recipe recipe;
	char *shell_argv[4];
};

/* An agent without a command, when none is given, is an error of kind usage. */
int cordon_agent_job_init(const struct cordon_agents *agents, const struct cordon_agent *agent,
			  const struct cordon_agent_start *start, struct cordon_agent_job *ret_job,
			  struct cordon_errors *errors);
void cordon_agent_job_done(struct cordon_agent_job *job);

/* Makes a crew of agents and adds the jobs; `options` has everything but the label. The calling process is the owner. The
 * jobs stay the caller's until the crew is freed. `input` is as in struct cordon_job_spec. */
int cordon_agent_crew(const struct cordon_agents *agents, const struct cordon_agent_job *jobs, size_t n,
		      const struct cordon_crew_options *options, int input, struct cordon_crew **ret_crew,
		      struct cordon_error *err);
/* Starts a run that outlives the caller, in a process of its own, and returns when it has begun. */
int cordon_agents_detach(const struct cordon_agents *agents, const struct cordon_agent_job *jobs, size_t n,
			 unsigned int max_concurrent, char ret_run[static CORDON_UUID_SIZE], struct cordon_error *err);

/* "pending", "running", "completed", "failed", "timeout" or "cancelled". */
const char *cordon_agent_state_name(cordon_job_state state);
/* Whether a crew is one of agents. */
bool cordon_agent_is_run(const struct cordon_crew_info *crew);
/*
 * The result of an agent, or what is known of it so far: runId, agentName, state, exitCode, signal, stdout, stderr, log,
 * startTime, endTime, durationMs, error, violations, sessionId, enforcement. `output` is how many bytes of stdout and of
 * stderr it has, at most CORDON_AGENT_OUTPUT_MAX: the last ones; with 0 both are left out. NULL when memory is out.
 */
json_t *cordon_agent_result(const struct cordon_home *home, const char *run, const struct cordon_job *job,
			    size_t output);
/* Why an agent that has ended did not complete, in one sentence; "" when there is nothing to say. */
void cordon_agent_reason(const struct cordon_job *job, char *ret_text, size_t size);

/* Finds the run of agents whose id begins with `prefix`; an error of kind not_found or, when there are several, usage.
 * NULL finds the latest. */
int cordon_agent_find_run(const struct cordon_home *home, const char *prefix, struct cordon_crew_info *ret_run,
			  struct cordon_error *err);
/* Lists the runs of agents, oldest first; the caller frees the array. */
int cordon_agent_list_runs(const struct cordon_home *home, struct cordon_crew_info **ret_runs, size_t *ret_n,
			   struct cordon_error *err);
/* Finds an agent of a run by its name; case does not matter. The error suggests the nearest one. */
int cordon_agent_find_job(const struct cordon_home *home, const char *run, const char *name, struct cordon_job *ret_job,
			  struct cordon_error *err);
/* Removes what is older than a week, at most once an hour. Failures do not matter. */
void cordon_agent_clean(const struct cordon_home *home);

#endif
