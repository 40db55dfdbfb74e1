/* SPDX-License-Identifier: Apache-2.0 */
/* Starts the runs of agents: in the calling process, or in one that nobody waits for. */
#include <fcntl.h>

#include "agent/job.h"
#include "base/child.h"
#include "base/io.h"
#include "base/text.h"

#define KEPT_PER_JOB 640 /* two for each share, and those of the root and the fences */

int cordon_agent_crew(const struct cordon_agents *agents, const struct cordon_agent_job *jobs, size_t n,
		      const struct cordon_crew_options *options, int input, struct cordon_crew **ret_crew,
		      struct cordon_error *err)
{
	char label[CORDON_CREW_LABEL_MAX + 1] = CORDON_AGENT_LABEL;
	size_t at = strlen(label);
	struct cordon_crew_options labelled = *options;
	struct cordon_crew *crew = NULL;
	int r;

	cordon_text_escape_fixed(label + at, sizeof(label) - at, agents->root.path, strlen(agents->root.path));
	labelled.label = label;
	r = cordon_crew_new(&labelled, &crew, err);
	for (size_t i = 0; r == 0 && i < n; i++) {
		struct cordon_job_spec job = {
			.name = jobs[i].agent->name,
			.run = jobs[i].recipe.spec,
			.cow = cordon_recipe_value(&jobs[i].recipe.values, CORDON_RECIPE_COW),
			.git = (cordon_git_mode)cordon_recipe_value(&jobs[i].recipe.values, CORDON_RECIPE_GIT),
			.input = input,
		};

		r = cordon_crew_add(crew, &job, NULL, err);
	}
	if (r < 0) {
		cordon_crew_free(crew);
		return r;
	}
	*ret_crew = crew;
	return 0;
}

/* ---- detached ---- */

/* This runs in the owner of a detached crew. It reports the id of the run, or why there is none, and then stays until the
 * last agent has ended: it starts those that still wait. */
static _Noreturn void own(const struct cordon_agents *agents, const struct cordon_agent_job *jobs, size_t n,
			  unsigned int max_concurrent, int report)
{
	struct cordon_crew_options options = { .max_concurrent = max_concurrent, .detached = true };
	autohome struct cordon_home home = CORDON_HOME_NONE;
	struct cordon_crew *crew = NULL;
	struct cordon_error err = { 0 };
	int r = cordon_agent_crew(agents, jobs, n, &options, 0, &crew, &err);

	if (cordon_write_all(report, &err, sizeof(err)) < 0 ||
	    (r == 0 && cordon_write_all(report, cordon_crew_id(crew), CORDON_UUID_SIZE) < 0))
		_exit(1);
	close(report);
	if (r == 0)
		(void)cordon_crew_wait(crew, NULL, &err);
	if (cordon_home_open(&home, NULL) == 0)
		cordon_agent_clean(&home);
	_exit(0);
}

static bool read_all(int fd, void *bytes, size_t n)
{
	for (size_t at = 0; at < n;) {
		ssize_t got = read(fd, (char *)bytes + at, n - at);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return false;
		at += (size_t)got;
	}
	return true;
}

int cordon_agents_detach(const struct cordon_agents *agents, const struct cordon_agent_job *jobs, size_t n,
			 unsigned int max_concurrent, char ret_run[static CORDON_UUID_SIZE], struct cordon_error *err)
{
	struct cordon_error theirs = { 0 };
	/* Nothing else of the caller's: of a server's connections a client must see the end when the server ends. */
	size_t max = n * KEPT_PER_JOB + 1, kept = 0;
	autofree int *fds = calloc(max, sizeof(*fds));
	int ends[2];
	pid_t pid;

	if (!fds || pipe2(ends, O_CLOEXEC) < 0)
		return cordon_fail_errno(err, fds ? -errno : -ENOMEM, "cannot detach");
	fds[kept++] = ends[1];
	for (size_t i = 0; i < n; i++)
		cordon_crew_needs(jobs[i].recipe.policy, fds, max, &kept);
	pid = cordon_child_detach(&(struct cordon_detach){ .keep_cwd = true, .kept = fds, .n_kept = kept });
	if (pid == 0)
		own(agents, jobs, n, max_concurrent, ends[1]);
	close(ends[1]);
	if (pid < 0 || !read_all(ends[0], &theirs, sizeof(theirs)) ||
	    (!theirs.code && !read_all(ends[0], ret_run, CORDON_UUID_SIZE)))
		cordon_fail(&theirs, -EIO, CORDON_KIND_INTERNAL, "the process that starts the agents has ended");
	close(ends[0]);
	if (theirs.code && err)
		*err = theirs;
	return theirs.code;
}
