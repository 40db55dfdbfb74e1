/* SPDX-License-Identifier: Apache-2.0 */
/* Plans the agent's environment, which starts empty, and the paths at which its program may be found. */
#include <stdio.h>

#include "base/arena.h"
#include "base/path.h"
#include "sandbox/plan/plan.h"

static size_t name_length(const char *assignment)
{
	return strcspn(assignment, "=");
}

/* Later settings of a name replace earlier ones. */
static int set(struct cordon_plan *plan, const char *assignment)
{
	size_t n = name_length(assignment);

	if (!assignment[n] || n == 0)
		return -EINVAL;
	for (size_t i = 0; i < plan->n_env; i++) {
		if (name_length(plan->env[i]) == n && memcmp(plan->env[i], assignment, n) == 0) {
			plan->env[i] = cordon_arena_strdup(plan->arena, assignment);
			return plan->env[i] ? 0 : -ENOMEM;
		}
	}
	if (plan->n_env == CORDON_ENV_MAX)
		return -E2BIG;
	plan->env[plan->n_env] = cordon_arena_strdup(plan->arena, assignment);
	return plan->env[plan->n_env++] ? 0 : -ENOMEM;
}

static int set_pair(struct cordon_plan *plan, const char *name, const char *value)
{
	char *assignment = cordon_arena_printf(plan->arena, "%s=%s", name, value);

	return assignment ? set(plan, assignment) : -ENOMEM;
}

char **cordon_env_candidates(struct cordon_arena *arena, char *const *env, size_t n_env, const char *name)
{
	const char *path = CORDON_SANDBOX_PATH;
	char **candidates;
	size_t n = 2;

	for (size_t i = 0; i < n_env; i++)
		if (strncmp(env[i], "PATH=", 5) == 0)
			path = env[i] + 5;
	for (const char *p = path; *p; p++)
		n += *p == ':';
	candidates = cordon_arena_alloc(arena, (n + 1) * sizeof(*candidates));
	if (!candidates)
		return NULL;
	if (strchr(name, '/')) {
		candidates[0] = cordon_arena_strdup(arena, name);
		return candidates[0] ? candidates : NULL;
	}
	n = 0;
	for (const char *p = path;;) {
		size_t len = strcspn(p, ":");

		/* An empty entry would mean the current directory, in which the agent can put programs: leave it
		 * out. */
		if (len && !(candidates[n++] = cordon_arena_printf(arena, "%.*s/%s", (int)len, p, name)))
			return NULL;
		if (!p[len])
			return candidates;
		p += len + 1;
	}
}

static int copy_argv(struct cordon_plan *plan, char *const *argv)
{
	size_t n = 0;

	while (argv[n])
		n++;
	plan->argv = cordon_arena_alloc(plan->arena, (n + 1) * sizeof(*plan->argv));
	if (!plan->argv)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		if (!(plan->argv[i] = cordon_arena_strdup(plan->arena, argv[i])))
			return -ENOMEM;
	return 0;
}

static bool has_home(const struct cordon_policy *policy)
{
	for (size_t i = 0; i < policy->n_shares; i++)
		if (policy->shares[i].home)
			return true;
	return false;
}

static int place_home(struct cordon_plan *plan, const struct cordon_plan_spec *spec)
{
	const char *home = plan->uid == 0 ? "/root" : cordon_arena_printf(plan->arena, "/home/%s", plan->user);

	plan->tmp = CORDON_TEMP_DIR;
	if (plan->tier == CORDON_TIER_LANDLOCK) {
		plan->home = plan->tmp = cordon_arena_printf(plan->arena, "%s", spec->tier_tmp);
		return plan->tmp ? 0 : -ENOMEM;
	}
	if (spec->run->learns && (plan->home = cordon_plan_learn_home(plan, spec))) {
		plan->home_shown = true;
		return 0;
	}
	/* The usual path may be the host's home directory, shown as the workspace or a part of it: HOME must not name
	 * that. And a directory of the host that becomes the home has no place for a workspace below it. */
	if (home &&
	    (cordon_path_within(home, plan->at) || (has_home(spec->run->policy) && cordon_path_within(plan->at, home))))
		home = CORDON_SPARE_HOME;
	plan->home = home;
	return plan->home ? 0 : -ENOMEM;
}

static int pass_on(struct cordon_plan *plan, const char *const *names, size_t n)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i++) {
		const char *value = getenv(names[i]);

		r = value && *value ? set_pair(plan, names[i], value) : 0;
	}
	return r;
}

/* Passes on how to show colours and, where there is a network, how to reach it. What the user put into the variables of
 * a proxy, maybe a password, the agent gets as well. */
static int set_common(struct cordon_plan *plan, const struct cordon_policy *policy)
{
	static const char *const colours[] = { "COLORTERM", "NO_COLOR" };
	static const char *const proxies[] = { "http_proxy", "https_proxy", "no_proxy", "all_proxy",
					       "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY" };
	int r = pass_on(plan, colours, CORDON_ARRAY_SIZE(colours));

	if (r == 0 && cordon_plan_git_reads(policy))
		r = set_pair(plan, "GIT_OPTIONAL_LOCKS", "0");
	/* Landlock hides what /etc/gitconfig says, and not that it exists: git ends when it can't read it. */
	if (r == 0 && plan->tier == CORDON_TIER_LANDLOCK)
		r = set_pair(plan, "GIT_CONFIG_NOSYSTEM", "1");
	/* The proxy of the host is for cordon-net: the run reaches every host that it may reach directly. */
	if (r < 0 || plan->net)
		return r;
	if (!plan->net_none)
		return pass_on(plan, proxies, CORDON_ARRAY_SIZE(proxies));
	/* npm tries a host again that has no address, for more than a minute, and pip for some seconds. */
	r = set_pair(plan, "npm_config_fetch_retries", "0");
	return r < 0 ? r : set_pair(plan, "PIP_RETRIES", "0");
}

/* The environment of a named agent has no variable of ours: neither TERM, because it has no terminal, nor LANG. */
static int set_agent(struct cordon_plan *plan, const struct cordon_run_spec *run)
{
	int r;

	if ((r = set_pair(plan, "TERM", "dumb")) < 0 || (r = set_pair(plan, "LANG", "C.UTF-8")) < 0 ||
	    (r = set_pair(plan, "AGENT_NAME", run->agent)) < 0 ||
	    (r = set_pair(plan, "AGENT_ROLE", run->agent_role ? run->agent_role : "unknown")) < 0 ||
	    (r = set_pair(plan, "AGENT_SCOPE_TEMP", plan->tmp)) < 0)
		return r;
	return set_pair(plan, "AGENT_SCOPE_BASE", plan->at);
}

static int keep_all(struct cordon_plan *plan, const char *start, size_t n)
{
	int r = 0;

	for (char **e = environ; r == 0 && *e; e++)
		if (strncmp(*e, start, n) == 0 && strchr(*e, '='))
			r = set(plan, *e);
	return r;
}

static int keep(struct cordon_plan *plan, const char *name)
{
	size_t n = strlen(name);
	const char *value;

	if (n && name[n - 1] == '*')
		return keep_all(plan, name, n - 1);
	value = getenv(name);
	return value ? set_pair(plan, name, value) : 0;
}

/* A variable whose value is a path below the run's home. */
static int set_in_home(struct cordon_plan *plan, const char *assignment)
{
	size_t n = name_length(assignment);
	const char *path = assignment + n + (assignment[n] == '=');
	char *text = cordon_arena_printf(plan->arena, "%.*s=%s/%s", (int)n, assignment, plan->home, path);

	return text ? set(plan, text) : -ENOMEM;
}

static int set_path(struct cordon_plan *plan, const char *first)
{
	char *path = first ? cordon_arena_printf(plan->arena, "PATH=%s:%s", first, CORDON_SANDBOX_PATH)
			   : cordon_arena_strdup(plan->arena, "PATH=" CORDON_SANDBOX_PATH);

	return path ? set(plan, path) : -ENOMEM;
}

static void unset(struct cordon_plan *plan, const char *name)
{
	size_t n = strlen(name), kept = 0;

	for (size_t i = 0; i < plan->n_env; i++)
		if (name_length(plan->env[i]) != n || memcmp(plan->env[i], name, n) != 0)
			plan->env[kept++] = plan->env[i];
	plan->n_env = kept;
	plan->env[kept] = NULL;
}

/* The run gets the URL of the endpoint that adds a credential (cordon-net), and never the credential. */
static int set_endpoints(struct cordon_plan *plan)
{
	int r = 0;

	for (size_t i = 0; r == 0 && plan->net && i < plan->net->n_inject; i++) {
		const struct cordon_net_inject *inject = &plan->net->inject[i];
		char *url = cordon_arena_printf(plan->arena, "http://127.0.0.1:%zu%s", CORDON_NET_INJECT_PORT + i,
						inject->path ? inject->path : "");

		unset(plan, inject->from_env);
		r = url ? set_pair(plan, inject->base_url_env, url) : -ENOMEM;
	}
	return r;
}

/* Finds the variables that were asked for by name and that the run does not get. */
static int find_absent(struct cordon_plan *plan, const struct cordon_run_spec *run)
{
	plan->absent_env = cordon_arena_alloc(plan->arena, (run->n_asked_env + 1) * sizeof(*plan->absent_env));
	if (!plan->absent_env)
		return -ENOMEM;
	for (size_t i = 0; i < run->n_asked_env; i++) {
		const char *name = run->keep_env[i];
		size_t n = strlen(name), at = 0;

		while (at < plan->n_env && (name_length(plan->env[at]) != n || memcmp(plan->env[at], name, n) != 0))
			at++;
		for (size_t k = 0; at == plan->n_env && k < plan->n_absent_env; k++)
			if (cordon_streq(plan->absent_env[k], name))
				at = 0; /* asked for twice */
		if (at == plan->n_env && name[n - 1] != '*')
			plan->absent_env[plan->n_absent_env++] = cordon_arena_strdup(plan->arena, name);
	}
	return 0;
}

static int fill(struct cordon_plan *plan, const struct cordon_plan_spec *spec)
{
	const char *term = getenv("TERM");
	const char *lang = getenv("LANG");
	int r;

	if (cordon_plan_account(plan, spec) < 0)
		return -ENOMEM;
	plan->env = cordon_arena_alloc(plan->arena, (CORDON_ENV_MAX + 1) * sizeof(*plan->env));
	if (!plan->env || copy_argv(plan, spec->run->argv) < 0 || place_home(plan, spec) < 0)
		return -ENOMEM;
	if ((r = set_path(plan, spec->run->path)) < 0 || (r = set_pair(plan, "HOME", plan->home)) < 0 ||
	    (r = set_pair(plan, "USER", plan->user)) < 0 || (r = set_pair(plan, "SHELL", plan->shell)) < 0 ||
	    (r = set_pair(plan, "TERM", term && *term ? term : "dumb")) < 0 ||
	    (r = set_pair(plan, "LANG", lang && *lang ? lang : "C.UTF-8")) < 0 ||
	    (r = set_pair(plan, "TMPDIR", plan->tmp)) < 0 || (r = set_pair(plan, "TEMP_DIR", plan->tmp)) < 0 ||
	    (r = spec->run->agent ? set_agent(plan, spec->run) : set_common(plan, spec->run->policy)) < 0)
		return r;
	for (size_t i = 0; i < spec->run->n_keep_env; i++)
		if ((r = keep(plan, spec->run->keep_env[i])) < 0)
			return r;
	if ((r = set_endpoints(plan)) < 0)
		return r;
	for (size_t i = 0; i < spec->run->n_home_env; i++)
		if ((r = set_in_home(plan, spec->run->home_env[i])) < 0)
			return r;
	for (size_t i = 0; i < spec->run->n_env; i++)
		if ((r = set(plan, spec->run->env[i])) < 0)
			return r;
	if ((r = find_absent(plan, spec->run)) < 0)
		return r;
	plan->candidates = cordon_env_candidates(plan->arena, plan->env, plan->n_env, plan->argv[0]);
	return plan->candidates ? 0 : -ENOMEM;
}

int cordon_plan_env(struct cordon_plan *plan, const struct cordon_plan_spec *spec, struct cordon_error *err)
{
	int r = fill(plan, spec);

	if (r == -E2BIG)
		return cordon_fail(err, r, CORDON_KIND_LIMIT, "more than %d environment variables", CORDON_ENV_MAX);
	if (r == -EINVAL)
		return cordon_fail(err, r, CORDON_KIND_USAGE, "an environment variable is not of the form NAME=VALUE");
	return r < 0 ? cordon_fail_errno(err, r, "environment") : 0;
}
