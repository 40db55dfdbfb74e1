/* SPDX-License-Identifier: Apache-2.0 */
/* From an agent to the recipe of its run. */
#include "agent/job.h"
#include "agent/internal.h"

static int fail(struct cordon_errors *errors, int code, cordon_kind kind, const char *name, const char *what,
		const char *hint)
{
	struct cordon_error err = { 0 };

	cordon_fail(&err, code, kind, "the agent %s %s", name, what);
	if (hint)
		cordon_error_hint(&err, "%s", hint);
	return cordon_errors_add(errors, &err, NULL, 0, 0);
}

/* Loads the profile, which only a trusted file may name. It must grant nothing in the repository, because the scope
 * does that. */
static int load_profile(const struct cordon_agents *agents, struct cordon_agent_job *job, struct cordon_errors *errors)
{
	const struct cordon_agent *agent = job->agent;
	struct cordon_error err = { 0 };
	struct cordon_errors found CORDON_CLEANUP(cordon_errors_done) = { 0 };
	struct cordon_policy_file *file = NULL;
	int r;

	if (!agent->profile.text || !agents->trusted)
		return 0;
	r = cordon_recipe_find_dirs(&job->recipe, &err);
	if (r < 0)
		return cordon_errors_add(errors, &err, NULL, 0, 0);
	r = cordon_profile_load(job->recipe.dirs, agent->profile.text, &file, &found);
	for (size_t i = 0; r < 0 && i < found.n; i++) {
		err = found.items[i];
		cordon_errors_add(errors, &err, *err.where ? NULL : agents->doc->name, agent->profile.line,
				  agent->profile.column);
	}
	if (r < 0)
		return r;
	if (file->rw.n || file->ro.n || file->workspace.n)
		r = cordon_fail(&err, -EPERM, CORDON_KIND_POLICY_DENIED,
				"the profile %s grants paths of the repository, which the scope of %s has to do",
				agent->profile.text, agent->name);
	if (cordon_recipe_add_profile(&job->recipe, agent->profile.text, file, err.code ? NULL : &err) < 0 && r == 0)
		r = err.code;
	return r < 0 ? cordon_errors_add(errors, &err, NULL, 0, 0) : 0;
}

/* INVARIANT: an agent has a scope. A policy without grants would mean the whole repository. */
static int add_scope(struct cordon_agent_job *job, struct cordon_error *err)
{
	const struct cordon_agent *agent = job->agent;
	int r = agent->read.n + agent->write.n
			? 0
			: cordon_fail(err, -EINVAL, CORDON_KIND_CONFIG, "the agent %s has no scope", agent->name);

	for (size_t i = 0; r == 0 && i < agent->read.n; i++)
		r = cordon_recipe_add_rule(&job->recipe, CORDON_RULE_READ, agent->read.items[i].text,
					   agent->read.items[i].where, err);
	for (size_t i = 0; r == 0 && i < agent->write.n; i++)
		r = cordon_recipe_add_rule(&job->recipe, CORDON_RULE_WRITE, agent->write.items[i].text,
					   agent->write.items[i].where, err);
	return r;
}

/* The plan sets the variables that every agent has. These come after them and those of the profile: what the file
 * defines, then what it passes on from the caller, which only a trusted file may do. */
static int add_env(const struct cordon_agents *agents, struct cordon_agent_job *job, struct cordon_error *err)
{
	const struct cordon_agent *agent = job->agent;
	int r = 0;

	for (size_t i = 0; r == 0 && i < agent->n_env; i++)
		r = cordon_recipe_add_env(&job->recipe, agent->env[i].name, agent->env[i].value, err);
	for (size_t i = 0; r == 0 && agents->trusted && i < agent->env_pass.n; i++) {
		const char *value = getenv(agent->env_pass.items[i].text);

		if (value)
			r = cordon_recipe_add_env(&job->recipe, agent->env_pass.items[i].text, value, err);
	}
	return r;
}

static int choose_command(struct cordon_agent_job *job, const struct cordon_agent_start *start)
{
	static char shell[] = "sh", option[] = "-c";

	if (start->argv || !start->command) {
		job->recipe.spec.argv = start->argv ? start->argv : job->agent->command;
		return 0;
	}
	job->shell_argv[0] = shell;
	job->shell_argv[1] = option;
	job->shell_argv[2] = strdup(start->command);
	job->recipe.spec.argv = job->shell_argv;
	return job->shell_argv[2] ? 0 : -ENOMEM;
}

static void fill_spec(const struct cordon_agents *agents, const struct cordon_agent_start *start,
		      struct cordon_agent_job *job)
{
	struct cordon_run_spec *spec = &job->recipe.spec;

	spec->cwd = agents->root.path;
	spec->in_temp = start->in_temp;
	spec->agent = job->agent->name;
	spec->agent_role = job->agent->role;
}

int cordon_agent_job_init(const struct cordon_agents *agents, const struct cordon_agent *agent,
			  const struct cordon_agent_start *start, struct cordon_agent_job *ret_job,
			  struct cordon_errors *errors)
{
	const struct cordon_net_setting net = cordon_agent_net(agents, agent);
	struct cordon_agent_job job = { .agent = agent,
					.recipe = { .root = agents->root.path,
						    .values = agent->values,
						    .file_path = agents->path,
						    .net = &net,
						    .net_within = start->net,
						    .reports_reads = true,
						    .without_settings = true,
						    .without_worktree = true } };
	struct cordon_error err = { 0 };
	int r = choose_command(&job, start);

	if (!agents->trusted)
		cordon_recipe_set_value(&job.recipe, CORDON_RECIPE_BEST_EFFORT, false);
	for (cordon_recipe_id id = 0; id < CORDON_RECIPE__MAX; id++)
		if (start->values.where[id])
			cordon_recipe_set_value(&job.recipe, id, start->values.of[id]);
	if (r < 0)
		r = fail(errors, r, CORDON_KIND_LIMIT, agent->name, "needs more memory", NULL);
	else if (!job.recipe.spec.argv)
		r = fail(errors, -EINVAL, CORDON_KIND_USAGE, agent->name, "has no command",
			 "give one, or add \"command\" to the file");
	else
		r = load_profile(agents, &job, errors);
	if (r == 0 && ((r = add_scope(&job, &err)) < 0 || (r = add_env(agents, &job, &err)) < 0))
		cordon_errors_add(errors, &err, NULL, 0, 0);
	if (r == 0)
		r = cordon_recipe_compile(&job.recipe, start->dry ? CORDON_RECIPE_PLANS : CORDON_RECIPE_STARTS, errors);
	if (r < 0) {
		cordon_agent_job_done(&job);
		return r;
	}
	job.recipe.net = NULL;
	fill_spec(agents, start, &job);
	*ret_job = job;
	if (job.recipe.spec.argv == job.shell_argv)
		ret_job->recipe.spec.argv = ret_job->shell_argv;
	return 0;
}

void cordon_agent_job_done(struct cordon_agent_job *job)
{
	free(job->shell_argv[2]);
	cordon_recipe_done(&job->recipe);
	*job = (struct cordon_agent_job){ 0 };
}
