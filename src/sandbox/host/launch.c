/* SPDX-License-Identifier: Apache-2.0 */
/* The supervisor clones PID 1 of the sandbox. It prepares everything that the child needs before, because the child may
 * not allocate memory. */
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/path.h"
#include "base/setting.h"
#include "base/sys.h"
#include "base/title.h"
#include "protect/hardlinks.h"
#include "sandbox/host/launch.h"
#include "sandbox/host/nested.h"
#include "sandbox/inside/detach.h"
#include "sandbox/inside/hand.h"
#include "sandbox/plan/tripwire.h"

/* Whether a stream is a socket that is still free to reach an abstract name, of the network that the caller is in. */
static bool can_name_sockets(int fd)
{
	struct sockaddr_storage peer;
	int domain = 0, type = 0;
	socklen_t n = sizeof(domain), n_type = sizeof(type), n_peer = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &n) < 0 || domain != AF_UNIX)
		return false;
	return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &n_type) < 0 || type == SOCK_DGRAM ||
	       getpeername(fd, (struct sockaddr *)&peer, &n_peer) < 0;
}

/* Refuses standard streams through which the agent could leave the sandbox: directories, and descriptors with
 * O_PATH. */
static int check_streams(const struct cordon_layers *layers, struct cordon_error *err)
{
	for (int fd = 0; fd < 3; fd++) {
		int flags = fcntl(fd, F_GETFL);
		struct stat st;

		if (flags < 0 || fstat(fd, &st) < 0)
			continue; /* it is closed, and will be /dev/null */
		if ((!layers->scopes || layers->lower) && S_ISSOCK(st.st_mode) && can_name_sockets(fd))
			return cordon_fail(err, -EOPNOTSUPP, CORDON_KIND_KERNEL_UNSUPPORTED,
					   "%s is a socket by which the agent could reach services of the host%s",
					   cordon_detach_name(fd), layers->lower ? "" : " on this kernel");
		if (!S_ISDIR(st.st_mode) && !(flags & O_PATH))
			continue;
		return cordon_fail(err, -EISDIR, CORDON_KIND_POLICY_DENIED,
				   "%s is %s, through which the agent could leave the sandbox", cordon_detach_name(fd),
				   S_ISDIR(st.st_mode) ? "a directory" : "opened with O_PATH");
	}
	return 0;
}

/* The protected files that got a copy of their own after the plan was built. */
struct copies {
	struct cordon_copied_file *files;
	size_t n;
};

static void copies_done(struct copies *copies)
{
	free(copies->files);
}

/* Remembers the new inode for the step that mounts the file. */
static void remember_copy(struct copies *copies, const struct cordon_plan *plan, const char *inside,
			  const struct stat *st)
{
	for (size_t i = 0; i < plan->n_steps; i++) {
		size_t at = 0;

		if (!(plan->steps[i].flags & CORDON_STEP_PROTECT) || !cordon_streq(plan->steps[i].path, inside))
			continue;
		while (at < copies->n && copies->files[at].step != i)
			at++;
		copies->files[at] = (struct cordon_copied_file){ i, st->st_dev, st->st_ino };
		copies->n += at == copies->n;
	}
}

/* Replaces each file at a protected path that has more than one name by a copy, and says so. */
static int break_hard_link(const struct cordon_policy *area, const char *path, const char *inside,
			   const struct cordon_observer *observer, struct stat *ret_st, struct cordon_error *err)
{
	struct cordon_event event = { .kind = CORDON_EVENT_HARD_LINK, .path = inside, .held = true };
	size_t count;
	int r = cordon_hardlinks_break(area->root.fd, path, &area->kept, &count, err);

	if (r < 0)
		return cordon_error_prefix(err, r, "protected path %s", path);
	if (fstatat(area->root.fd, path, ret_st, AT_SYMLINK_NOFOLLOW) < 0)
		return cordon_fail_errno(err, -errno, "cannot stat protected path %s", path);
	event.count = (unsigned int)count;
	observer->event(observer->data, &event);
	return 0;
}

static const struct cordon_policy *policy_of(const struct cordon_plan *plan, const struct cordon_policy *policy,
					     size_t area)
{
	return area == 0 ? policy : plan->areas[area].policy;
}

/* Leaves no other name that leads to the inode of a protected file. */
static int break_hard_links(const struct cordon_plan *plan, const struct cordon_policy *policy,
			    const struct cordon_observer *observer, struct copies *copies, struct cordon_error *err)
{
	struct stat st;
	int r = 0;

	for (size_t i = 0; r == 0 && i < plan->n_second_names; i++) {
		const struct cordon_second_name *name = &plan->second_names[i];
		char inside[CORDON_PATH_MAX];

		r = cordon_path_join(plan->areas[name->area].at, name->path, inside, sizeof(inside)) < 0
			    ? cordon_fail_errno(err, -ENAMETOOLONG, "%s", name->path)
			    : break_hard_link(policy_of(plan, policy, name->area), name->path, inside, observer, &st,
					      err);
	}
	for (size_t i = 0; r == 0 && i < plan->n_guards; i++) {
		const struct cordon_guard *guard = &plan->guards[i];

		/* In a view a change through another name makes a copy of that name. */
		if (!guard->hard_links || (plan->view && guard->area == 0))
			continue;
		if (!copies->files &&
		    !(copies->files = calloc(plan->n_steps + 1, sizeof(*copies->files)))) /* one per step at most */
			return cordon_fail_errno(err, -ENOMEM, "cannot copy protected files apart");
		r = break_hard_link(policy_of(plan, policy, guard->area), guard->path, guard->inside, observer, &st,
				    err);
		if (r == 0)
			remember_copy(copies, plan, guard->inside, &st);
	}
	return r;
}

/* Permissive mode reports reads outside the scope too, and so do a policy that asks for it and one that hides something, unless
 * tripwires do that; else the hand sees only changes. */
static bool traps_reads(const struct cordon_plan *plan, const struct cordon_policy *policy)
{
	return plan->mode == CORDON_MODE_PERMISSIVE || policy->reports_reads ||
	       (cordon_plan_hides(plan) && !plan->tripwires);
}

/* Whether a rule may refuse a change of something that the agent sees. Through the lens the kernel itself refuses to open for
 * writing what may only be read, so that only a trap tells of it. */
static bool refuses_changes(const struct cordon_plan *plan)
{
	if (plan->n_guards || plan->view || plan->lens || plan->tripwires)
		return true;
	for (size_t i = 0; i < plan->n_steps; i++) {
		const struct cordon_step *step = &plan->steps[i];

		if (step->kind == CORDON_STEP_BIND && step->flags & CORDON_STEP_READ_ONLY &&
		    (step->flags & CORDON_STEP_SHARE || cordon_path_within(step->path, plan->at)))
			return true;
	}
	return false;
}

static void choose_filter(const struct cordon_plan *plan, bool learning, struct cordon_child *child)
{
	/* The lower tier has no process of ours beside the agent that could see as much as the agent and no more. */
	child->variant = plan->tier != CORDON_TIER_FULL	    ? CORDON_SECCOMP_BASE
			 : learning			    ? CORDON_SECCOMP_LEARN
			 : traps_reads(plan, child->policy) ? CORDON_SECCOMP_FULL
			 : refuses_changes(plan)	    ? CORDON_SECCOMP_CHANGE
							    : CORDON_SECCOMP_BASE;
	for (int fd = 0; fd < 3; fd++)
		child->terminal[fd] = plan->asked.terminal && isatty(fd);
}

static int no_namespaces(int code, struct cordon_error *err)
{
	if (cordon_nested()) {
		cordon_fail(err, code, CORDON_KIND_KERNEL_UNSUPPORTED,
			    "already inside a sandbox of cordon, in which no other can be made");
		cordon_error_hint(
			err, "run the command itself, which this sandbox holds; for another scope run cordon outside");
		return code;
	}
	cordon_fail(err, code, CORDON_KIND_KERNEL_UNSUPPORTED, "cannot make the namespaces of a sandbox: %s",
		    strerror(-code));
	if (code == -ENOSPC)
		cordon_error_hint(err, "raise user.max_user_namespaces; see 'cordon doctor'");
	else
		cordon_error_hint(err, "allow user namespaces for this user (see 'cordon doctor'), or use %s",
				  cordon_setting_name(CORDON_SETTING_BEST_EFFORT));
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

/* For the lower tier: makes an ordinary child. The processes that it leaves become our children, so that we can end
 * them. */
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
	/* A filter refuses clone3: fork, and open a pidfd of the child afterwards. The child waits for us before it
	 * does anything. */
	pid = fork();
	if (pid > 0)
		*ret_pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	return pid;
}

/* Whether the run can be recorded beside the set-up: nothing of the workspace is touched before PID 1 mounts it. */
static bool admits_late(const struct cordon_plan *plan)
{
	if (plan->tier != CORDON_TIER_FULL || plan->n_second_names)
		return false;
	/* A control group belongs to a run that is recorded. */
	if (plan->limits.memory_bytes || plan->limits.pids || plan->limits.cpu_millis)
		return false;
	for (size_t i = 0; i < plan->n_guards; i++)
		if (plan->guards[i].hard_links)
			return false;
	return true;
}

static int admit(const struct cordon_launch *how, struct cordon_error *err)
{
	return how->admit ? how->admit(how->data, err) : 0;
}

static int start(struct cordon_child *child, const struct copies *copies, const struct cordon_launch *how,
		 struct cordon_error *err)
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
	child->pid = full ? clone_child(0, child->limits.cgroup_fd, &child->pidfd) : fork_child(&child->pidfd);
	if (child->pid == 0) {
		struct cordon_inside in = { .plan = child->plan,
					    .policy = child->policy,
					    .memory = child->memory,
					    .hand_lock = how->lock_fd,
					    .argv = child->plan->argv,
					    .candidates = child->plan->candidates,
					    .limits = &child->limits.choice,
					    .variant = child->variant,
					    .landlock_abi = child->plan->layers.landlock_abi,
					    .ctl = pair[1],
					    .exec_fd = exec[1],
					    .host_proc = -1,
					    .peer = -1,
					    .net = child->net.inside,
					    .wake = child->net.wake,
					    .go = -1,
					    .mounts = CORDON_MOUNTS_NONE };
		const int kept[] = { pair[1], exec[1], child->net.inside, child->net.wake, how->lock_fd };

		in.mounts.copied = copies->files;
		in.mounts.n_copied = copies->n;
		memcpy(in.terminal, child->terminal, sizeof(in.terminal));
		r = cordon_output_install(child->output);
		if (r < 0)
			cordon_inside_fail(&in, r, "take", "the standard streams");
		/* PID 1 keeps no descriptors of the supervisor except these: a lock must end with the process that
		 * holds it, and a pipe to the agent with the process that writes to it. */
		cordon_close_except(kept, CORDON_ARRAY_SIZE(kept));
		cordon_title_set(CORDON_INIT_NAME);
		if (!full)
			cordon_lower_tier_build(&in);
		cordon_inside_build(&in);
	}
	r = child->pid < 0 ? -errno : 0;
	cordon_output_begin(child->output);
	close(pair[1]);
	close(exec[1]);
	cordon_closep(&child->net.inside);
	if (r < 0)
		return no_namespaces(r, err);
	r = cordon_limits_attach(&child->limits, child->pid, err);
	if (r < 0)
		return r;
	cordon_notice_send(child->ctl, &go, -1);
	if (admits_late(child->plan) && (r = admit(how, err)) < 0)
		return r;
	if (full)
		cordon_notice_send(child->ctl, &go, -1);
	/* Its sockets are made inside before the agent runs, so nobody waits for it. Mostly it starts when it is due. */
	return child->net.at_once ? cordon_net_start(&child->net, err) : 0;
}

/* Makes the memory that the hands share. Only what is used of it takes memory. */
static int make_memory(struct cordon_child *child, struct cordon_error *err)
{
	void *memory;

	if (!cordon_seccomp_watches(child->variant) || child->plan->tier != CORDON_TIER_FULL)
		return 0;
	memory = mmap(NULL, cordon_hand_memory_size(child->plan), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED)
		return cordon_fail_errno(err, -errno, "cannot make memory for the hand");
	child->memory = memory;
	return 0;
}

int cordon_namespaces_probe(void)
{
	int pidfd = -1, status;
	pid_t pid = clone_child(CLONE_NEWNET, -1, &pidfd);
	int r = pid < 0 ? -errno : 0;

	/* AppArmor may let a user make namespaces, and then withhold the capabilities in them. */
	if (pid == 0)
		_exit(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ? errno : 0);
	if (pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status))
		r = -WEXITSTATUS(status);
	cordon_closep(&pidfd);
	return r;
}

void cordon_child_reap(struct cordon_child *child)
{
	int status;

	while (child->pid > 0 && waitpid(child->pid, &status, 0) < 0 && errno == EINTR)
		;
	child->pid = -1;
}

int cordon_launch(const struct cordon_plan *plan, const struct cordon_policy *policy,
		  const struct cordon_observer *observer, const struct cordon_launch *how,
		  struct cordon_child *ret_child, struct cordon_error *err)
{
	struct cordon_child child = { .plan = plan,
				      .policy = policy,
				      .pid = -1,
				      .pidfd = -1,
				      .ctl = -1,
				      .exec_fd = -1,
				      .net = CORDON_NET_PROCESS_NONE };
	struct cordon_limits limits = plan->limits;
	CORDON_CLEANUP(copies_done) struct copies copies = { 0 };
	int r = check_streams(&plan->layers, err);

	choose_filter(plan, observer->sight != NULL, &child);
	if (r == 0 && !admits_late(plan))
		r = admit(how, err);
	if (r < 0)
		return r;
	/* Root's supplementary groups would give rights on the host's files. An ordinary user can't drop them. */
	if (plan->uid == 0 && getgroups(0, NULL) > 0 && setgroups(0, NULL) < 0)
		return cordon_fail_errno(err, -errno, "cannot drop supplementary groups");
	r = cordon_net_prepare(plan, observer->sight || observer->reached, &child.net, err);
	child.net.meter = how->meter_fd;
	if (r == 0)
		r = break_hard_links(plan, policy, observer, &copies, err);
	if (r < 0) {
		cordon_net_stop(&child.net);
		return r;
	}
	limits.user_namespace = plan->tier == CORDON_TIER_FULL;
	limits.best_effort = plan->asked.best_effort;
	limits.pids_own = 1 + cordon_seccomp_watches(child.variant);
	r = cordon_limits_prepare(&limits, plan->run_id, &child.limits, err);
	if (r < 0) {
		cordon_net_stop(&child.net);
		return r;
	}
	clock_gettime(CLOCK_REALTIME, &child.started);
	r = cordon_output_new(&child.output, err);
	if (r == 0)
		r = make_memory(&child, err);
	if (r == 0)
		r = start(&child, &copies, how, err);
	if (r < 0) {
		if (child.pid > 0) {
			kill(child.pid, SIGKILL);
			cordon_child_reap(&child);
		}
		cordon_net_stop(&child.net);
		cordon_output_free(child.output);
		cordon_limits_remove(&child.limits);
		cordon_limits_done(&child.limits);
		if (child.memory)
			munmap(child.memory, cordon_hand_memory_size(plan));
		cordon_closep(&child.ctl);
		cordon_closep(&child.exec_fd);
		cordon_closep(&child.pidfd);
		return r;
	}
	*ret_child = child;
	return 0;
}
