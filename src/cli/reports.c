/* SPDX-License-Identifier: Apache-2.0 */
/* Decides when and where the reports of a run are printed (--reports). */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/path.h"
#include "cli/reports.h"

int cordon_reports_parse(const char *s, cordon_reports_when *ret_when, const char **ret_path, struct cordon_error *err)
{
	static const char file[] = "file:";

	if (cordon_streq(s, "now")) {
		*ret_when = CORDON_REPORTS_NOW;
	} else if (cordon_streq(s, "end")) {
		*ret_when = CORDON_REPORTS_END;
	} else if (strncmp(s, file, sizeof(file) - 1) == 0 && s[sizeof(file) - 1]) {
		*ret_when = CORDON_REPORTS_FILE;
		*ret_path = s + sizeof(file) - 1;
	} else {
		return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "--reports: %s is none of now, end and file:PATH",
				   s);
	}
	return 0;
}

/* Returns whether the agent will be able to change what lies at a path of the host. */
static bool is_in_reach(const char *path, const struct cordon_policy *policy, const struct cordon_plan *plan)
{
	if (cordon_path_within(path, plan->root)) {
		const char *below = path + strlen(plan->root);
		struct cordon_decision decision;

		cordon_policy_decide(policy, below + strspn(below, "/"), CORDON_OP_WRITE, &decision);
		return decision.verdict != CORDON_DENY;
	}
	for (size_t i = 0; i < plan->n_steps; i++) {
		const struct cordon_step *step = &plan->steps[i];
		const char *shown = step->kind == CORDON_STEP_RULE ? step->path : step->source;

		if ((step->kind == CORDON_STEP_BIND || step->kind == CORDON_STEP_RULE) &&
		    step->right == CORDON_RIGHT_WRITE && shown && !(step->flags & CORDON_STEP_READ_ONLY) &&
		    cordon_path_within(path, shown))
			return true;
	}
	return false;
}

/* Opens the directory of a path. ret_path is the path with all links resolved but that of its last name. */
static int open_dir(const char *path, char ret_path[static CORDON_PATH_MAX], struct cordon_error *err)
{
	const char *slash = strrchr(path, '/');
	const char *base = slash ? slash + 1 : path;
	char dir[CORDON_PATH_MAX] = ".", link[40];
	autofd int fd = -1;
	ssize_t n;

	if (!*base || cordon_streq(base, ".") || cordon_streq(base, ".."))
		return cordon_fail(err, -EISDIR, CORDON_KIND_USAGE, "%s is no name for a file", path);
	if (slash && cordon_copy(dir, sizeof(dir), path, (size_t)(base - path)) < 0)
		return cordon_fail_errno(err, -ENAMETOOLONG, "%s", path);
	fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return cordon_fail_errno(err, -errno, "%s", dir);
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, dir, sizeof(dir) - 1);
	if (n <= 0)
		return cordon_fail_errno(err, -errno, "%s", path);
	dir[n] = '\0';
	if (cordon_path_join(dir, base, ret_path, CORDON_PATH_MAX) < 0)
		return cordon_fail_errno(err, -ENAMETOOLONG, "%s", path);
	return cordon_steal_fd(&fd);
}

/* Opens the file for reports. With `dry` it only checks, and leaves *ret_fd alone. */
static int open_file(const char *path, const struct cordon_policy *policy, const struct cordon_plan *plan, bool dry,
		     int *ret_fd, struct cordon_error *err)
{
	char full[CORDON_PATH_MAX];
	autofd int dir = open_dir(path, full, err);
	autofd int fd = -1;
	struct stat st;

	if (dir < 0)
		return dir;
	if (is_in_reach(full, policy, plan)) {
		cordon_fail(err, -EACCES, CORDON_KIND_POLICY_DENIED, "%s lies where the agent can write", path);
		cordon_error_hint(err, "name a file outside the workspace");
		return -EACCES;
	}
	if (dry)
		return 0;
	fd = openat(dir, cordon_path_base(full),
		    O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600);
	if (fd < 0)
		return cordon_fail_errno(err, -errno, "%s", path);
	if (fstat(fd, &st) < 0)
		return cordon_fail_errno(err, -errno, "%s", path);
	if (!S_ISREG(st.st_mode))
		return cordon_fail(err, -EINVAL, CORDON_KIND_POLICY_DENIED, "%s is no regular file", path);
	if (st.st_nlink != 1)
		return cordon_fail(err, -EMLINK, CORDON_KIND_POLICY_DENIED,
				   "%s has another name, under which the agent may reach it", path);
	*ret_fd = cordon_steal_fd(&fd);
	return 0;
}

int cordon_reports_begin(struct cordon_report_queue *queue, cordon_reports_when when, const char *path,
			 const struct cordon_policy *policy, const struct cordon_plan *plan, bool dry,
			 struct cordon_error *err)
{
	int r;

	if (when != CORDON_REPORTS_FILE) {
		queue->holds_back = when == CORDON_REPORTS_END ||
				    (when == CORDON_REPORTS_DEFAULT && plan->asked.terminal && isatty(STDERR_FILENO));
		return 0;
	}
	r = open_file(path, policy, plan, dry, &queue->file, err);
	return r < 0 ? cordon_error_prefix(err, r, "--reports") : 0;
}
