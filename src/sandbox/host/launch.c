/* SPDX-License-Identifier: Apache-2.0 */
/* Clones the sandbox: everything the child needs is prepared before, nothing is allocated after. */
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/path.h"
#include "base/sys.h"
#include "base/title.h"
#include "sandbox/hardlinks.h"
#include "sandbox/landlock.h"
#include "sandbox/launch.h"
#include "sandbox/streams.h"

/* A protected file with a second name gets an inode of its own, and its step the new identity. */
static int break_hard_links(const struct cordon_plan *plan, const struct cordon_policy *policy,
			    const struct cordon_observer *observer, struct cordon_error *err)
{
	for (size_t i = 0; i < plan->n_guards; i++) {
		const struct cordon_guard *guard = &plan->guards[i];
		struct cordon_event event = { .kind = CORDON_EVENT_HARD_LINK, .path = guard->inside, .held = true };
		struct stat st;
		size_t count;
		int r;

		if (!guard->hard_links)
			continue;
		r = cordon_hardlinks_break(policy->root.fd, guard->path, &count, err);
		if (r < 0)
			return cordon_error_prefix(err, r, "protected path %s", guard->path);
		if (fstatat(policy->root.fd, guard->path, &st, AT_SYMLINK_NOFOLLOW) < 0)
			return cordon_fail_errno(err, -errno, "cannot stat protected path %s", guard->path);
		for (size_t j = 0; j < plan->n_steps; j++) {
			if ((plan->steps[j].flags & CORDON_STEP_PROTECT) &&
			    cordon_streq(plan->steps[j].path, guard->inside)) {
				plan->steps[j].dev = st.st_dev;
				plan->steps[j].ino = st.st_ino;
			}
		}
		event.count = (unsigned int)count;
		observer->event(observer->data, &event);
	}
	return 0;
}

static bool guards_names(const struct cordon_plan *plan)
{
	for (size_t i = 0; i < plan->n_guards; i++)
		if (plan->guards[i].state == CORDON_GUARD_ABSENT)
			return true;
	return false;
}

/* A folder workspace reports every attempt to leave it, in either mode, and so does a mode that was asked for by its name;
 * elsewhere only guarded names are watched. */
static bool reports(const struct cordon_plan *plan, const struct cordon_policy *policy)
{
	return plan->mode == CORDON_MODE_PERMISSIVE || policy->folders || policy->reports;
}

static int choose_layers(const struct cordon_plan *plan, bool learning, struct cordon_child *child,
			 struct cordon_error *err)
{
	child->landlock_abi = cordon_landlock_abi();
	if (child->landlock_abi < CORDON_LANDLOCK_ABI_REQUIRED && !plan->best_effort) {
		cordon_fail(err, -EOPNOTSUPP, CORDON_KIND_KERNEL_UNSUPPORTED,
			    "this kernel's Landlock (ABI %u) lacks signal and socket scopes (ABI %d)",
			    child->landlock_abi, CORDON_LANDLOCK_ABI_REQUIRED);
		cordon_error_hint(err, "use Linux 6.12 or newer with landlock in the lsm= list, or --best-effort");
		return -EOPNOTSUPP;
	}
	child->variant = learning			? CORDON_SECCOMP_LEARN
			 : reports(plan, child->policy) ? CORDON_SECCOMP_FULL
			 : guards_names(plan)		? CORDON_SECCOMP_CREATE
							: CORDON_SECCOMP_BASE;
	for (int fd = 0; fd < 3; fd++)
		child->terminal[fd] = plan->terminal && isatty(fd);
	return 0;
}

static int no_namespaces(int code, struct cordon_error *err)
{
	cordon_fail(err, code, CORDON_KIND_KERNEL_UNSUPPORTED, "cannot make the namespaces of a sandbox: %s",
		    strerror(-code));
	cordon_error_hint(err,
			  code == -ENOSPC
				  ? "raise user.max_user_namespaces; see 'cordon doctor'"
				  : "allow user namespaces for this user (see 'cordon doctor'), or use --best-effort");
	return code;
}

static pid_t clone_child(uint64_t more_flags, int cgroup_fd, int *ret_pidfd)
{
	struct clone_args args = {
		.flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP |
			 CLONE_PIDFD | more_flags,
		.exit_signal = SIGCHLD,
		.pidfd = (uint64_t)(uintptr_t)ret_pidfd,
	};

	if (cgroup_fd >= 0) {
		args.flags |= CLONE_INTO_CGROUP;
		args.cgroup = (uint64_t)cgroup_fd;
	}
	return cordon_sys_clone3(&args, sizeof(args));
}

/* The lower tier: an ordinary child. Whatever it leaves behind becomes ours, so that it can be ended. */
static pid_t fork_child(int *ret_pidfd)
{
	struct clone_args args = { .flags = CLONE_PIDFD,
				   .exit_signal = SIGCHLD,
				   .pidfd = (uint64_t)(uintptr_t)ret_pidfd };
	pid_t pid;

	if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
		return -1;
	pid = cordon_sys_clone3(&args, sizeof(args));
	if (pid >= 0 || (errno != ENOSYS && errno != EPERM))
		return pid;
	/* Where clone3 is filtered: a fork, and a descriptor of the child afterwards; it waits for us before it acts. */
	pid = fork();
	if (pid > 0)
		*ret_pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	return pid;
}

static int start(struct cordon_child *child, struct cordon_error *err)
{
	bool full = child->plan->tier == CORDON_TIER_FULL;
	struct cordon_notice go = { .kind = CORDON_NOTICE_GO };
	int pair[2], exec[2];
	int r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return cordon_fail_errno(err, -errno, "cannot make a socket");
	child->ctl = pair[0];
	if (pipe2(exec, O_CLOEXEC) < 0) {
		close(pair[1]);
		return cordon_fail_errno(err, -errno, "cannot make a pipe");
	}
	child->exec_fd = exec[0];
	/* Signals wait until the supervisor's loop looks at them; the child starts with none pending. */
	child->pid = full ? clone_child(0, child->limits.cgroup_fd, &child->pidfd) : fork_child(&child->pidfd);
	if (child->pid == 0) {
		struct cordon_inside in = { .plan = child->plan,
					    .limits = &child->limits,
					    .variant = child->variant,
					    .landlock_abi = child->landlock_abi,
					    .ctl = pair[1],
					    .exec_fd = exec[1],
					    .peer = -1,
					    .go = -1,
					    .mounts = CORDON_MOUNTS_NONE };
		const int kept[] = { pair[1], exec[1] };

		memcpy(in.terminal, child->terminal, sizeof(in.terminal));
		/* PID 1 keeps nothing of the supervisor's but what it is given: a lock must end with its holder, and the
		 * other end of a pipe to the agent with whoever writes to it. */
		cordon_close_except(kept, CORDON_ARRAY_SIZE(kept));
		cordon_title_set("cordon-init");
		if (!full)
			cordon_tier_build(&in);
		cordon_inside_build(&in);
	}
	r = child->pid < 0 ? -errno : 0;
	close(pair[1]);
	close(exec[1]);
	if (r < 0)
		return no_namespaces(r, err);
	r = cordon_limits_attach(&child->limits, child->pid, err);
	if (r < 0)
		return r;
	cordon_notice_send(child->ctl, &go, -1);
	return 0;
}

int cordon_namespaces_probe(void)
{
	int pidfd = -1;
	pid_t pid = clone_child(CLONE_NEWNET, -1, &pidfd);
	int r = pid < 0 ? -errno : 0;

	if (pid == 0)
		_exit(0);
	if (pid > 0)
		waitpid(pid, NULL, 0);
	cordon_closep(&pidfd);
	return r;
}

int cordon_launch(const struct cordon_plan *plan, const struct cordon_policy *policy, int quarantine_fd,
		  const struct cordon_observer *observer, struct cordon_child *ret_child, struct cordon_error *err)
{
	struct cordon_child child = { .plan = plan,
				      .policy = policy,
				      .pid = -1,
				      .pidfd = -1,
				      .ctl = -1,
				      .exec_fd = -1,
				      .quarantine_fd = quarantine_fd };
	struct cordon_limits limits = plan->limits;
	int r = choose_layers(plan, observer->sight != NULL, &child, err);

	if (r == 0)
		r = cordon_streams_check(err);
	if (r < 0)
		return r;
	/* Root's other groups would give rights on the host's files; an ordinary user can't lay them down. */
	if (plan->uid == 0 && getgroups(0, NULL) > 0 && setgroups(0, NULL) < 0)
		return cordon_fail_errno(err, -errno, "cannot drop supplementary groups");
	r = break_hard_links(plan, policy, observer, err);
	if (r < 0)
		return r;
	limits.user_namespace = plan->tier == CORDON_TIER_FULL;
	limits.best_effort = plan->best_effort;
	limits.pids_own = 1;
	r = cordon_limits_prepare(&limits, plan->run_id, &child.limits, err);
	if (r < 0)
		return r;
	clock_gettime(CLOCK_REALTIME, &child.started);
	r = start(&child, err);
	if (r < 0) {
		if (child.pid > 0)
			kill(child.pid, SIGKILL);
		cordon_limits_remove(&child.limits);
		cordon_limits_done(&child.limits);
		cordon_closep(&child.ctl);
		cordon_closep(&child.exec_fd);
		cordon_closep(&child.pidfd);
		return r;
	}
	*ret_child = child;
	return 0;
}
