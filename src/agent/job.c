/* SPDX-License-Identifier: Apache-2.0 */
/* From an agent to the specification of its run. */
#include "agent/job.h"
#include "protect/shares.h"

static int fail(struct cordon_errors *errors, int code, cordon_kind kind, const char *name, const char *what,
		const char *hint)
{
	struct cordon_error err = { 0 };

	cordon_fail(&err, code, kind, "the agent %s %s", name, what);
	if (hint)
		cordon_error_hint(&err, "%s", hint);
	return cordon_errors_add(errors, &err, NULL, 0, 0);
}

static int add_variable(struct cordon_agent_job *job, const char *name, const char *value)
{
	size_t size = strlen(name) + strlen(value) + 2;
	char *text = malloc(size);

	if (!text || cordon_concat(text, size, name, "=", value, (char *)NULL) < 0) {
		free(text);
		return -ENOMEM;
	}
	job->env[job->n_env++] = text;
	return 0;
}

/* Loads the profile, which only a trusted file may name. *ret_file stays NULL without one. */
static int load_profile(const struct cordon_agents *agents, const struct cordon_agent *agent,
			struct cordon_profile_dirs *dirs, struct cordon_policy_file **ret_file,
			struct cordon_errors *errors)
{
	struct cordon_error err = { 0 };
	struct cordon_errors found CORDON_CLEANUP(cordon_errors_done) = { 0 };
	int r;

	if (!agent->profile.text || !agents->trusted)
		return 0;
	cordon_profile_dirs_find(dirs);
	r = cordon_profile_load(dirs, agent->profile.text, ret_file, &found);
	for (size_t i = 0; r < 0 && i < found.n; i++) {
		err = found.items[i];
		cordon_errors_add(errors, &err, *err.where ? NULL : agents->doc->name, agent->profile.line,
				  agent->profile.column);
	}
	return r;
}

/* Adds to the policy what the profile shows of the host: its program, and the directories that it keeps state in. */
static int use_profile(const struct cordon_agents *agents, struct cordon_agent_job *job,
		       const struct cordon_policy_file *file, const struct cordon_profile_dirs *dirs, bool make,
		       struct cordon_errors *errors)
{
	struct cordon_profile_ask ask = {
		.home = dirs->home, .path = getenv("PATH"), .root = agents->root.path, .make = make
	};
	struct cordon_error err = { 0 };
	int r = cordon_profile_collect(file, job->agent->profile.text, &ask, &job->profile, &err);

	if (r == 0)
		r = cordon_shares_add(job->policy, job->profile.shares, job->profile.n_shares, NULL, NULL, true, &err);
	if (r < 0)
		return cordon_errors_add(errors, &err, NULL, 0, 0);
	job->spec.keep_env = job->profile.keep_env;
	job->spec.n_keep_env = job->profile.n_keep_env;
	job->spec.home_env = job->profile.home_env;
	job->spec.n_home_env = job->profile.n_home_env;
	job->spec.path = job->profile.path;
	return 0;
}

/* The plan sets the variables that every agent has. These come after them: those of the profile, what the file defines, then
 * what it passes on from the caller, which only a trusted file may do. */
static int make_env(const struct cordon_agents *agents, struct cordon_agent_job *job)
{
	const struct cordon_agent *agent = job->agent;
	int r = 0;

	job->env = calloc(job->profile.n_env + agent->n_env + agent->env_pass.n + 1, sizeof(*job->env));
	if (!job->env)
		return -ENOMEM;
	for (size_t i = 0; i < job->profile.n_env; i++) {
		job->env[job->n_env] = strdup(job->profile.env[i]);
		if (!job->env[job->n_env++])
			return -ENOMEM;
	}
	for (size_t i = 0; r == 0 && i < agent->n_env; i++)
		r = add_variable(job, agent->env[i].name, agent->env[i].value);
	for (size_t i = 0; r == 0 && agents->trusted && i < agent->env_pass.n; i++) {
		const char *value = getenv(agent->env_pass.items[i].text);

		if (value)
			r = add_variable(job, agent->env_pass.items[i].text, value);
	}
	return r;
}

static int choose_command(struct cordon_agent_job *job, const struct cordon_agent_start *start)
{
	static char shell[] = "sh", option[] = "-c";

	if (start->argv || !start->command) {
		job->spec.argv = start->argv ? start->argv : job->agent->command;
		return 0;
	}
	job->shell_argv[0] = shell;
	job->shell_argv[1] = option;
	job->shell_argv[2] = strdup(start->command);
	job->spec.argv = job->shell_argv;
	return job->shell_argv[2] ? 0 : -ENOMEM;
}

/* Narrows what the agent reaches to what the caller asks for. */
static int narrow_net(struct cordon_agent_job *job, const char *net, struct cordon_errors *errors)
{
	struct cordon_net_list list = { 0 };
	struct cordon_error err = { 0 };
	int r = cordon_net_option(net, "net", &job->policy->net, &list, &err);

	if (r == 0)
		r = cordon_net_list_narrow(&job->policy->net, &list, &err);
	cordon_net_list_done(&list);
	return r < 0 ? cordon_errors_add(errors, &err, NULL, 0, 0) : 0;
}

int cordon_agent_job_init(const struct cordon_agents *agents, const struct cordon_agent *agent,
			  const struct cordon_agent_start *start, struct cordon_agent_job *ret_job,
			  struct cordon_errors *errors)
{
	CORDON_CLEANUP(cordon_policy_file_freep) struct cordon_policy_file *profile = NULL;
	struct cordon_agent_job job = { .agent = agent };
	struct cordon_profile_dirs dirs;
	int r = choose_command(&job, start);

	if (r < 0)
		r = fail(errors, r, CORDON_KIND_LIMIT, agent->name, "needs more memory", NULL);
	else if (!job.spec.argv)
		r = fail(errors, -EINVAL, CORDON_KIND_USAGE, agent->name, "has no command",
			 "give one, or add \"command\" to the file");
	else
		r = load_profile(agents, agent, &dirs, &profile, errors);
	if (r == 0)
		r = cordon_agent_policy(agents, agent, profile, &job.policy, errors);
	if (r == 0 && start->net)
		r = narrow_net(&job, start->net, errors);
	if (r == 0 && profile)
		r = use_profile(agents, &job, profile, &dirs, !start->dry, errors);
	if (r == 0 && make_env(agents, &job) < 0)
		r = fail(errors, -ENOMEM, CORDON_KIND_LIMIT, agent->name, "needs more memory", NULL);
	if (r < 0) {
		cordon_agent_job_done(&job);
		return r;
	}
	job.spec.policy = job.policy;
	job.spec.cwd = agents->root.path;
	job.spec.in_temp = start->in_temp;
	job.spec.env = job.env;
	job.spec.n_env = job.n_env;
	job.spec.net = job.policy && cordon_net_list_is_none(&job.policy->net) ? CORDON_NET_NONE : CORDON_NET_HOST;
	job.spec.memory_bytes = agent->memory_bytes;
	job.spec.pids = agent->pids;
	job.spec.cpu_millis = agent->cpu_millis;
	job.spec.timeout_ms = start->timeout_ms ? start->timeout_ms : agent->timeout_ms;
	job.spec.best_effort = agent->best_effort && agents->trusted;
	job.spec.agent = agent->name;
	job.spec.agent_role = agent->role;
	*ret_job = job;
	if (job.spec.argv == job.shell_argv)
		ret_job->spec.argv = ret_job->shell_argv;
	return 0;
}

void cordon_agent_job_done(struct cordon_agent_job *job)
{
	for (size_t i = 0; i < job->n_env; i++)
		free(job->env[i]);
	free(job->env);
	free(job->shell_argv[2]);
	cordon_profile_use_done(&job->profile);
	cordon_policy_free(job->policy);
	*job = (struct cordon_agent_job){ 0 };
}
