/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lower tier, for places without namespaces (a locked-down container) and only on request: Landlock and seccomp
 * carry folder scopes on the host's own tree. Nothing can be mounted, so protected paths inside a writable folder are
 * not held and other processes can be seen; the result, stderr and the audit say so.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/arena.h"
#include "base/path.h"
#include "sandbox/inside.h"

static int rule(struct cordon_plan *plan, const char *path, cordon_right right, struct cordon_error *err)
{
	struct cordon_step *step = cordon_plan_step(plan, CORDON_STEP_RULE, path);

	if (!step)
		return cordon_fail_errno(err, -ENOMEM, "plan");
	step->right = right;
	return 0;
}

/* The same for a path of the system that may be a link, or missing. */
static int system_rule(struct cordon_plan *plan, const char *path, cordon_right right, struct cordon_error *err)
{
	struct cordon_root slash = { .fd = -1, .path = "/" };
	struct cordon_resolved found;
	char host[CORDON_PATH_MAX];

	cordon_resolve(&slash, path, &found);
	if (found.place != CORDON_PLACE_INSIDE || !found.exists ||
	    cordon_path_join("/", found.path, host, sizeof(host)) < 0)
		return 0;
	return rule(plan, host, right, err);
}

static int boundary(void *data, const char *path, cordon_access access, cordon_access outer, struct cordon_error *err)
{
	struct cordon_plan *plan = data;
	char host[CORDON_PATH_MAX];

	if (access == CORDON_ACCESS_NONE && outer == CORDON_ACCESS_NONE)
		return 0;
	if (access < outer) {
		cordon_fail(err, -EOPNOTSUPP, CORDON_KIND_KERNEL_UNSUPPORTED,
			    "%s has fewer rights than what it lies in, which Landlock alone can't hold", path);
		cordon_error_hint(err,
				  "allow user namespaces (see 'cordon doctor'), or grant the folders beside it instead");
		return -EOPNOTSUPP;
	}
	if (cordon_path_join(plan->root, path, host, sizeof(host)) < 0)
		return cordon_fail_errno(err, -ENAMETOOLONG, "%s", path);
	return rule(plan, host, access == CORDON_ACCESS_READ ? CORDON_RIGHT_READ : CORDON_RIGHT_WRITE, err);
}

int cordon_plan_lower_tier(struct cordon_plan *plan, const struct cordon_run_spec *spec, struct cordon_error *err)
{
	static const char *const readable[] = { "/usr",
						"/bin",
						"/sbin",
						"/lib",
						"/lib32",
						"/lib64",
						"/etc/alternatives",
						"/etc/ld.so.cache",
						"/etc/ld.so.conf",
						"/etc/ld.so.conf.d",
						"/etc/passwd",
						"/etc/group",
						"/etc/hosts",
						"/etc/resolv.conf",
						"/etc/nsswitch.conf",
						"/etc/localtime",
						"/etc/ssl/certs",
						"/proc" };
	static const char *const devices[] = { "/dev/null",    "/dev/zero", "/dev/full", "/dev/random",
					       "/dev/urandom", "/dev/tty",  "/dev/pts" };
	int r = 0;

	if (plan->mode == CORDON_MODE_PERMISSIVE)
		return cordon_fail(err, -EOPNOTSUPP, CORDON_KIND_KERNEL_UNSUPPORTED,
				   "permissive mode needs namespaces, which this machine refuses");
	if (!cordon_streq(plan->at, plan->root) || plan->net_none || spec->home || spec->n_shares)
		return cordon_fail(err, -EOPNOTSUPP, CORDON_KIND_KERNEL_UNSUPPORTED,
				   "--at, --home, --share and --net none need namespaces, which this machine refuses");
	for (size_t i = 0; i < spec->policy->n_grants; i++)
		for (size_t j = 0; j < cordon_pattern_alternatives(spec->policy->grants[i].pattern); j++)
			if (!cordon_pattern_literal(spec->policy->grants[i].pattern, j))
				return cordon_fail(err, -EOPNOTSUPP, CORDON_KIND_KERNEL_UNSUPPORTED,
						   "pattern %s judges files by name, which needs namespaces and FUSE",
						   cordon_pattern_text(spec->policy->grants[i].pattern));
	for (size_t i = 0; r == 0 && i < CORDON_ARRAY_SIZE(readable); i++)
		r = system_rule(plan, readable[i], CORDON_RIGHT_READ, err);
	for (size_t i = 0; r == 0 && i < CORDON_ARRAY_SIZE(devices); i++)
		r = system_rule(plan, devices[i], CORDON_RIGHT_DEVICE, err);
	if (r == 0)
		r = rule(plan, spec->tier_tmp, CORDON_RIGHT_WRITE, err);
	if (r == 0)
		r = cordon_plan_boundaries(plan, spec->policy, boundary, plan, err);
	if (r == 0 &&
	    cordon_plan_note(plan, "best effort: without namespaces; Landlock and seccomp alone hold the folders, "
				   "protected paths inside them are not protected") < 0)
		r = cordon_fail_errno(err, -ENOMEM, "plan");
	return r;
}

/* Children of one process, from /proc; no stdio, no malloc. */
static size_t children_of(pid_t pid, pid_t *ret, size_t max)
{
	char path[64], text[4096];
	size_t n = 0;
	ssize_t len;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid, (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	len = read(fd, text, sizeof(text) - 1);
	close(fd);
	for (ssize_t i = 0; i < len && n < max;) {
		pid_t value = 0;

		for (; i < len && text[i] >= '0' && text[i] <= '9'; i++)
			value = value * 10 + (text[i] - '0');
		if (value > 0)
			ret[n++] = value;
		i++;
	}
	return n;
}

static void signal_tree(pid_t pid, int signal, unsigned int depth)
{
	pid_t children[512];
	size_t n = depth > 64 ? 0 : children_of(pid, children, CORDON_ARRAY_SIZE(children));

	for (size_t i = 0; i < n; i++) {
		/* Parents first and stopped, so that they make no more. */
		if (signal == SIGKILL)
			kill(children[i], SIGSTOP);
		signal_tree(children[i], signal, depth + 1);
		kill(children[i], signal);
	}
}

void cordon_tier_kill_all(int signal)
{
	pid_t child;

	for (int round = 0; round < 1000 && children_of(getpid(), &child, 1); round++) {
		signal_tree(getpid(), signal, 0);
		if (signal != SIGKILL)
			return;
		/* Orphans come to us, the subreaper. */
		while (waitpid(-1, NULL, WNOHANG | __WALL) > 0)
			;
		usleep(1000);
	}
}

_Noreturn void cordon_tier_build(struct cordon_inside *in)
{
	struct cordon_notice notice;
	int status, fd;
	pid_t agent;

	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
		cordon_inside_fail(in, -errno, "set", "the death signal");
	if (cordon_notice_receive(in->ctl, &notice, &fd) != 1 || notice.kind != CORDON_NOTICE_GO)
		_exit(125);
	in->umask = umask(0);
	umask(in->umask);
	memset(in->terminal, 0, sizeof(in->terminal));
	agent = fork();
	if (agent < 0)
		cordon_inside_fail(in, -errno, "fork", "the agent's process");
	if (agent == 0)
		cordon_agent(in);
	close(in->exec_fd);
	for (;;) {
		fd_set set;
		struct timeval tick = { .tv_usec = 20000 };

		/* No signal descriptor is worth it here: look for both, a few times a second. */
		FD_ZERO(&set);
		FD_SET(in->ctl, &set);
		if (select(in->ctl + 1, &set, NULL, NULL, &tick) > 0) {
			if (cordon_notice_receive(in->ctl, &notice, &fd) != 1)
				break;
			if (notice.kind == CORDON_NOTICE_TERMINATE)
				cordon_tier_kill_all(SIGTERM);
		}
		for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
			if (pid != agent)
				continue;
			cordon_tier_kill_all(SIGKILL);
			notice = (struct cordon_notice){ .kind = CORDON_NOTICE_EXITED, .code = status };
			getrusage(RUSAGE_CHILDREN, &notice.usage);
			cordon_notice_send(in->ctl, &notice, -1);
			_exit(0);
		}
	}
	cordon_tier_kill_all(SIGKILL);
	_exit(125);
}
