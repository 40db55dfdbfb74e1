/* SPDX-License-Identifier: Apache-2.0 */
/* Finds out whether the program of a plan is there inside, as execve() would find out: --dry-run fails where the run
 * would. */
#include <fcntl.h>
#include <sys/stat.h>

#include "base/exit.h"
#include "base/path.h"
#include "base/resolve.h"
#include "sandbox/plan/plan.h"

/* The step that makes or mounts exactly this path; NULL when none does. */
static const struct cordon_step *step_at(const struct cordon_plan *plan, const char *path, cordon_step_kind kind)
{
	for (size_t i = 0; i < plan->n_steps; i++)
		if (plan->steps[i].kind == kind && cordon_streq(plan->steps[i].path, path))
			return &plan->steps[i];
	return NULL;
}

/* The host's path behind an inside path; false when the agent sees nothing of the host there. */
static bool on_host(const struct cordon_plan *plan, const char *path, char ret[static CORDON_PATH_MAX])
{
	const struct cordon_step *best = NULL;

	if (plan->tier == CORDON_TIER_LANDLOCK)
		return cordon_copy(ret, CORDON_PATH_MAX, path, strlen(path)) == 0;
	if (cordon_path_within(path, plan->at))
		return cordon_path_join(plan->root, path + strlen(plan->at), ret, CORDON_PATH_MAX) == 0;
	for (size_t i = 0; i < plan->n_steps; i++) {
		const struct cordon_step *s = &plan->steps[i];

		if ((s->kind == CORDON_STEP_BIND || s->kind == CORDON_STEP_PRIVATE || s->kind == CORDON_STEP_MASK) &&
		    cordon_path_within(path, s->path) && (!best || strlen(s->path) >= strlen(best->path)))
			best = s;
	}
	return best && best->kind == CORDON_STEP_BIND &&
	       cordon_path_join(best->source, path + strlen(best->path), ret, CORDON_PATH_MAX) == 0;
}

/* The text of the link that stands at an inside path; 0 when something else stands there, -ENOENT when nothing does. */
static ssize_t link_at(void *data, const char *path, const char *rest, char ret[static CORDON_PATH_MAX])
{
	const struct cordon_plan *plan = data;
	const struct cordon_step *link;
	char host[CORDON_PATH_MAX];
	struct stat st;
	ssize_t n;

	(void)rest;
	if (on_host(plan, path, host)) {
		if (lstat(host, &st) < 0)
			return -errno;
		n = S_ISLNK(st.st_mode) ? readlink(host, ret, CORDON_PATH_MAX - 1) : 0;
		ret[n < 0 ? 0 : n] = '\0';
		return n < 0 ? -errno : n;
	}
	link = step_at(plan, path, CORDON_STEP_LINK);
	if (link && cordon_copy(ret, CORDON_PATH_MAX, link->text, strlen(link->text)) == 0)
		return (ssize_t)strlen(ret);
	return step_at(plan, path, CORDON_STEP_DIR) || step_at(plan, path, CORDON_STEP_FILE) ? 0 : -ENOENT;
}

/* Walks an absolute inside path. 0 for a file that can be executed, else what execve() says. */
static int look(const struct cordon_plan *plan, const char *path)
{
	char at[CORDON_PATH_MAX], host[CORDON_PATH_MAX];
	struct stat st;
	/* The walk passes the plan on to link_at(), which only reads it. */
	int r = cordon_path_walk(path, link_at, (void *)(uintptr_t)plan, at);

	if (r < 0)
		return r == -ENOTDIR ? -ENOENT : r;
	if (!on_host(plan, at, host))
		return -EACCES;
	if (stat(host, &st) < 0)
		return -errno;
	return S_ISREG(st.st_mode) && access(host, X_OK) == 0 ? 0 : -EACCES;
}

int cordon_plan_check_program(const struct cordon_plan *plan, struct cordon_error *err)
{
	int code = -ENOENT;

	for (char *const *candidate = plan->candidates; *candidate; candidate++) {
		char path[CORDON_PATH_MAX];
		int r;

		if (cordon_path_join(**candidate == '/' ? "" : plan->cwd, *candidate, path, sizeof(path)) < 0)
			continue;
		r = look(plan, path);
		if (r == 0)
			return 0;
		if (r != -ENOENT && code == -ENOENT)
			code = r;
	}
	return cordon_fail_exec(err, code, plan->argv[0]);
}
