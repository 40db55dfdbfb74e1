/* SPDX-License-Identifier: Apache-2.0 */
/* A thread of the supervisor receives the lens's refusals, finds out which system call asked for each, and reports the
 * attempts. */
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <time.h>

#include "base/path.h"
#include "base/resolve.h"
#include "sandbox/host/discarded.h"
#include "sandbox/host/lens_record.h"
#include "sandbox/host/lens_reports.h"
#include "sandbox/watch/hand_ask.h"
#include "sandbox/watch/report.h"

#define STACK (256 << 10)
#define CALL_TRIES 50 /* how often we look at a process that is not yet asleep in its call */
#define CALL_PAUSE_NS 20000
#define LOCK_MS 20

struct cordon_lens_reports {
	const struct cordon_child *child;
	const struct cordon_watched *watched;
	pthread_mutex_t *lock;
	struct cordon_reports *reports;
	pthread_t thread;
	int fd;
	int proc_fd; /* the sandbox's own /proc, because the lens uses the sandbox's process numbers; or -1 */
};

/* What a system call does with a name, as a report says it. */
enum action { LOOKS, OPENS, OPENS_BY_STRUCT, MAKES, TAKES, MOVES, LINKS, CHANGES, RUNS };

/* Calls that are not in the list only look. `path`, `path2` and `flags` are argument numbers; NONE: there is no such
 * argument. */
enum { NONE = -1 };

static const struct call {
	long nr;
	enum action action;
	signed char path, path2, flags;
} calls[] = {
	{ SYS_openat, OPENS, 1, NONE, 2 },
	{ SYS_openat2, OPENS_BY_STRUCT, 1, NONE, 2 },
	{ SYS_mkdirat, MAKES, 1, NONE, NONE },
	{ SYS_mknodat, MAKES, 1, NONE, NONE },
	{ SYS_symlinkat, MAKES, 2, NONE, NONE },
	{ SYS_bind, MAKES, NONE, NONE, NONE },
	{ SYS_linkat, LINKS, 1, 3, NONE },
	{ SYS_renameat, MOVES, 1, 3, NONE },
	{ SYS_renameat2, MOVES, 1, 3, NONE },
	{ SYS_unlinkat, TAKES, 1, NONE, NONE },
	{ SYS_execve, RUNS, 0, NONE, NONE },
	{ SYS_execveat, RUNS, 1, NONE, NONE },
	{ SYS_truncate, CHANGES, 0, NONE, NONE },
	{ SYS_fchmodat, CHANGES, 1, NONE, NONE },
	{ 452 /* fchmodat2 */, CHANGES, 1, NONE, NONE },
	{ SYS_fchownat, CHANGES, 1, NONE, NONE },
	{ SYS_utimensat, CHANGES, 1, NONE, NONE },
	{ SYS_setxattr, CHANGES, 0, NONE, NONE },
	{ SYS_lsetxattr, CHANGES, 0, NONE, NONE },
	{ SYS_removexattr, CHANGES, 0, NONE, NONE },
	{ SYS_lremovexattr, CHANGES, 0, NONE, NONE },
	{ 463 /* setxattrat */, CHANGES, 1, NONE, NONE },
	{ 466 /* removexattrat */, CHANGES, 1, NONE, NONE },
#ifdef SYS_open /* architectures with the older calls */
	{ SYS_open, OPENS, 0, NONE, 1 },
	{ SYS_creat, OPENS, 0, NONE, NONE },
	{ SYS_mkdir, MAKES, 0, NONE, NONE },
	{ SYS_mknod, MAKES, 0, NONE, NONE },
	{ SYS_symlink, MAKES, 1, NONE, NONE },
	{ SYS_link, LINKS, 0, 1, NONE },
	{ SYS_rename, MOVES, 0, 1, NONE },
	{ SYS_unlink, TAKES, 0, NONE, NONE },
	{ SYS_rmdir, TAKES, 0, NONE, NONE },
	{ SYS_chmod, CHANGES, 0, NONE, NONE },
	{ SYS_chown, CHANGES, 0, NONE, NONE },
	{ SYS_lchown, CHANGES, 0, NONE, NONE },
	{ SYS_utime, CHANGES, 0, NONE, NONE },
	{ SYS_utimes, CHANGES, 0, NONE, NONE },
	{ SYS_futimesat, CHANGES, 1, NONE, NONE },
#endif
};

/* The call in which a process is stopped. */
struct seen {
	bool known;					    /* false: the process can't be read */
	const struct call *call;			    /* NULL: a call that only looks */
	uint64_t flags;					    /* of an open */
	char path[CORDON_PATH_MAX], path2[CORDON_PATH_MAX]; /* as the process wrote them; "" when they can't be read */
};

static void find_proc(struct cordon_lens_reports *r)
{
	struct statfs fs;

	r->proc_fd = cordon_inside_open_dir(r->child, "/proc");
	if (r->proc_fd < 0 || fstatfs(r->proc_fd, &fs) < 0 || fs.f_type != PROC_SUPER_MAGIC)
		cordon_closep(&r->proc_fd);
}

static int open_of(const struct cordon_lens_reports *r, uint32_t thread, const char *file)
{
	char name[32];

	snprintf(name, sizeof(name), "%u/%s", thread, file);
	return openat(r->proc_fd, name, O_RDONLY | O_CLOEXEC);
}

/* Reads "NR ARG0 ... ARG5 SP PC"; while a process still runs, the text is "running". */
static bool read_registers(int fd, long *ret_nr, uint64_t ret_args[static 6])
{
	const struct timespec pause = { .tv_nsec = CALL_PAUSE_NS };

	for (int tries = 0; tries < CALL_TRIES; tries++) {
		unsigned long long args[6];
		char text[256];
		ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

		if (n <= 0)
			return false;
		text[n] = '\0';
		if (sscanf(text, /* NOLINT(cert-err34-c): the kernel wrote it, and rubbish only changes the words of a report */
			   "%ld %llx %llx %llx %llx %llx %llx", ret_nr, &args[0], &args[1], &args[2], &args[3],
			   &args[4], &args[5]) == 7) {
			for (size_t i = 0; i < 6; i++)
				ret_args[i] = args[i];
			return true;
		}
		nanosleep(&pause, NULL);
	}
	return false;
}

/* Reads a string that may end right before an unmapped page. */
static void read_text(int mem_fd, uint64_t address, char ret[static CORDON_PATH_MAX])
{
	size_t at = 0;

	while (at < CORDON_PATH_MAX - 1) {
		size_t n = 4096 - ((address + at) & 4095);
		ssize_t got;

		if (n > CORDON_PATH_MAX - 1 - at)
			n = CORDON_PATH_MAX - 1 - at;
		got = pread(mem_fd, ret + at, n, (off_t)(address + at));
		if (got <= 0)
			break;
		if (memchr(ret + at, '\0', (size_t)got))
			return;
		at += (size_t)got;
	}
	ret[0] = '\0';
}

static void read_call(struct cordon_lens_reports *r, uint32_t thread, struct seen *ret)
{
	autofd int fd = -1, mem_fd = -1;
	uint64_t args[6];
	long nr;

	ret->known = false;
	ret->call = NULL;
	ret->path[0] = ret->path2[0] = '\0';
	if (r->proc_fd < 0)
		find_proc(r);
	fd = r->proc_fd < 0 ? -1 : open_of(r, thread, "syscall");
	if (fd < 0 || !read_registers(fd, &nr, args))
		return;
	ret->known = true;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(calls) && !ret->call; i++)
		if (calls[i].nr == nr)
			ret->call = &calls[i];
	if (!ret->call)
		return;
	mem_fd = open_of(r, thread, "mem");
	if (ret->call->path != NONE)
		read_text(mem_fd, args[ret->call->path], ret->path);
	if (ret->call->path2 != NONE)
		read_text(mem_fd, args[ret->call->path2], ret->path2);
	ret->flags = ret->call->flags == NONE ? O_CREAT | O_WRONLY | O_TRUNC : args[ret->call->flags] & UINT32_MAX;
	if (ret->call->action == OPENS_BY_STRUCT) {
		struct open_how how = { 0 };

		/* When it can't be read, we take it for the simplest open. */
		if (pread(mem_fd, &how, sizeof(how.flags), (off_t)args[ret->call->flags]) < (ssize_t)sizeof(how.flags))
			how.flags = O_RDONLY;
		ret->flags = how.flags;
	}
}

/* The rest of a path behind the refused name; NULL when the name is not in it. */
static const char *rest_of(const char *path, const char *name)
{
	size_t len = strlen(name);
	const char *found = NULL;

	for (const char *at = path; *at;) {
		size_t n = strcspn(at, "/");
		const char *next = at + n + strspn(at + n, "/");

		/* When the name is in the path twice, either may have been refused; we take the last, which leaves the
		 * shortest rest. */
		if (n == len && strncmp(at, name, n) == 0)
			found = next;
		at = next;
	}
	return found;
}

/* What an open attempts whose path ends with the refused name; NULL when it is no attempt. */
static const char *open_attempt(uint64_t flags, bool exists)
{
	bool writes = (flags & O_ACCMODE) != O_RDONLY || (flags & O_TRUNC);

	if (flags & O_PATH)
		return NULL;
	if (!exists)
		return flags & O_CREAT ? "create" : NULL;
	if ((flags & O_CREAT) && (flags & O_EXCL))
		return NULL; /* EEXIST */
	if ((flags & O_TMPFILE) == O_TMPFILE)
		return "create";
	if (!writes && (flags & O_DIRECTORY))
		return NULL; /* a listing */
	return writes ? "write" : "read";
}

/* Whether a path behind a refused name exists on the host; the process itself did not get so far. */
static bool is_on_host(const struct cordon_lens_reports *r, const char *path)
{
	autofd int fd = path[0] == '/'
				? open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC)
				: cordon_open_beneath(r->watched->workspace_fd, path, O_PATH | O_NOFOLLOW | O_CLOEXEC);

	return fd >= 0;
}

/*
 * What the call attempts, as the `op` of a report; NULL when it is no attempt. `name` is the refused name, `path` the
 * path that it stands for. Adds to `path` what follows the name in the path that the process wrote.
 */
static const char *attempt_of(const struct cordon_lens_reports *r, const struct seen *seen, const char *name,
			      bool exists, char path[static CORDON_PATH_MAX])
{
	const char *first = rest_of(seen->path, name), *second = rest_of(seen->path2, name);
	/* Of two paths we take the one that has the name; the kernel looks up the first one first. */
	const char *rest = first ? first : second ? second : "";
	char clean[CORDON_PATH_MAX], whole[CORDON_PATH_MAX];

	/* When we can't read the process, we report the refusal rather than leave it out. */
	if (!seen->known)
		return exists ? "read" : NULL;
	if (!seen->call || (!exists && *rest))
		return NULL;
	/* A rest with ".." leads somewhere else: then we know only the refused name. */
	if (*rest && cordon_path_clean(rest, clean, sizeof(clean)) == 0 &&
	    cordon_path_join(path, clean, whole, sizeof(whole)) == 0) {
		memcpy(path, whole, strlen(whole) + 1);
		exists = is_on_host(r, path);
	}
	switch (seen->call->action) {
	case OPENS:
	case OPENS_BY_STRUCT:
		return open_attempt(seen->flags, exists);
	case MAKES:
		return exists ? NULL : "create"; /* EEXIST */
	case TAKES:
		return exists ? "delete" : NULL;
	case CHANGES:
		return exists ? "write" : NULL;
	case RUNS:
		return exists ? "execute" : NULL;
	case MOVES:
		return exists || second || !first ? "rename" : NULL;
	case LINKS:
		if (first)
			return exists ? "read" : NULL;
		return exists ? NULL : "create";
	case LOOKS:
		break;
	}
	return NULL;
}

/* Reports an attempt; the caller holds the lock. The lens has refused it; here we only look up by which rule. */
static void report(struct cordon_lens_reports *r, const char *op, const char *path)
{
	const struct cordon_policy *policy = r->child->policy;
	bool reads = cordon_streq(op, "read") || cordon_streq(op, "execute");
	struct cordon_decision decision = { .reason = CORDON_REASON_OUTSIDE_ROOT };
	char full[CORDON_PATH_MAX];

	if (path[0] == '/') {
		/* A link leads out of the root. With CORDON_SECCOMP_FULL the watch reports it, as every other path
		 * outside the root. */
		if (r->child->variant != CORDON_SECCOMP_FULL)
			cordon_reports_add(r->reports, op, path, CORDON_DENY, CORDON_REASON_OUTSIDE_ROOT, NULL, 1);
		return;
	}
	cordon_policy_decide(policy, path, reads ? CORDON_OP_READ : CORDON_OP_WRITE, &decision);
	for (size_t i = 0; decision.verdict != CORDON_DENY && i < policy->n_protected; i++) {
		const struct cordon_protected *protected = &policy->protected_paths[i];

		/* A directory that contains something protected must stay where it is. */
		if (!cordon_path_within(protected->path, path) &&
		    !(protected->target && cordon_path_within(protected->target, path)))
			continue;
		decision.verdict = CORDON_DENY;
		decision.reason = CORDON_REASON_PROTECTED;
		decision.rule = protected->path;
	}
	if (cordon_path_join(r->child->plan->root, path, full, sizeof(full)) == 0)
		cordon_reports_add(r->reports, op, full, CORDON_DENY, decision.reason, decision.rule, 1);
}

/* Reports an attempt (NULL: none) and lets the lens answer. The report comes first, because the process may be refused
 * something else when it goes on. But the thread that holds the lock may itself wait for the name whose look-up waits
 * for us, so after LOCK_MS we let the lens answer and report afterwards. */
static void conclude(struct cordon_lens_reports *r, uint64_t number, const char *op, const char *path)
{
	struct timespec until;
	bool locked;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += LOCK_MS * 1000000L;
	until.tv_sec += until.tv_nsec / 1000000000L;
	until.tv_nsec %= 1000000000L;
	locked = op && pthread_mutex_timedlock(r->lock, &until) == 0;
	if (locked) {
		cordon_output_forward(r->child->output);
		report(r, op, path);
	}
	(void)send(r->fd, &number, sizeof(number), MSG_NOSIGNAL | MSG_DONTWAIT);
	if (op && !locked) {
		pthread_mutex_lock(r->lock);
		report(r, op, path);
	}
	if (op)
		pthread_mutex_unlock(r->lock);
}

static void on_asked(struct cordon_lens_reports *r, const struct cordon_lens_record *record)
{
	static struct seen seen; /* only this thread uses it */
	char path[CORDON_PATH_MAX];
	const char *op;

	memcpy(path, record->texts + record->path_at, strlen(record->texts + record->path_at) + 1);
	/* The hand does nothing else than make entries, and nobody can read its calls. */
	if ((int)record->thread == r->watched->hand->pid) {
		conclude(r, record->number, "create", path);
		return;
	}
	read_call(r, record->thread, &seen);
	op = attempt_of(r, &seen, record->texts, record->exists, path);
	conclude(r, record->number, op, path);
}

/* Whether the watch reports a change of this path. The kernel itself refuses most changes of files that may only be
 * read, so the watch, where there is one, reports all of them. */
static bool watch_reports(const struct cordon_lens_reports *r, const char *path)
{
	CORDON_UNCLEARED struct cordon_decision decision;

	if (r->child->variant == CORDON_SECCOMP_BASE)
		return false;
	cordon_policy_decide(r->child->policy, path, CORDON_OP_READ, &decision);
	return decision.verdict != CORDON_DENY;
}

static void on_refused(struct cordon_lens_reports *r, const struct cordon_lens_record *record)
{
	static const char *const ops[] = { [CORDON_LENS_OP_WRITE] = "write",
					   [CORDON_LENS_OP_CREATE] = "create",
					   [CORDON_LENS_OP_DELETE] = "delete",
					   [CORDON_LENS_OP_RENAME] = "rename" };

	const char *path = record->texts + record->path_at;
	bool reported = record->op < CORDON_ARRAY_SIZE(ops) &&
			!(record->op == CORDON_LENS_OP_WRITE && watch_reports(r, path));

	conclude(r, record->number, reported ? ops[record->op] : NULL, path);
}

/* Says why a directory of a view was not renamed, as the watch does where there is no lens. */
static void on_too_large(struct cordon_lens_reports *r, const struct cordon_lens_record *record)
{
	char path[CORDON_PATH_MAX];

	if (cordon_path_join(r->child->plan->root, record->texts + record->path_at, path, sizeof(path)) == 0) {
		pthread_mutex_lock(r->lock);
		cordon_reports_too_large(r->reports, path);
		pthread_mutex_unlock(r->lock);
	}
	(void)send(r->fd, &record->number, sizeof(record->number), MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void *receive(void *data)
{
	struct cordon_lens_reports *r = data;
	static struct cordon_lens_record record;
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	for (;;) {
		const size_t head = offsetof(struct cordon_lens_record, texts);
		ssize_t n = recv(r->fd, &record, sizeof(record), 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return NULL;
		if ((size_t)n < head)
			continue;
		if (record.kind == CORDON_LENS_DROPPED) {
			pthread_mutex_lock(r->lock);
			cordon_reports_add_untold(r->reports, record.count);
			pthread_mutex_unlock(r->lock);
			continue;
		}
		/* Make sure that both texts end within the message. */
		if (!record.path_at || head + record.path_at >= (size_t)n || record.texts[record.path_at - 1] ||
		    ((char *)&record)[n - 1])
			continue;
		if (record.kind == CORDON_LENS_ASKED)
			on_asked(r, &record);
		else if (record.kind == CORDON_LENS_REFUSED)
			on_refused(r, &record);
		else if (record.kind == CORDON_LENS_TOO_LARGE)
			on_too_large(r, &record);
	}
}

struct cordon_lens_reports *cordon_lens_reports_start(int fd, const struct cordon_child *child,
						      const struct cordon_watched *watched, pthread_mutex_t *lock)
{
	struct cordon_lens_reports *r = calloc(1, sizeof(*r));
	pthread_attr_t attr;

	if (r) {
		*r = (struct cordon_lens_reports){
			.child = child, .watched = watched, .lock = lock, .fd = fd, .proc_fd = -1
		};
		r->reports = cordon_reports_new(watched);
	}
	if (r && r->reports && pthread_attr_init(&attr) == 0) {
		int failed = pthread_attr_setstacksize(&attr, STACK);

		if (!failed)
			failed = pthread_create(&r->thread, &attr, receive, r);
		pthread_attr_destroy(&attr);
		if (!failed)
			return r;
	}
	if (r)
		cordon_reports_free(r->reports);
	free(r);
	close(fd);
	return NULL;
}

unsigned int cordon_lens_reports_end(struct cordon_lens_reports *r)
{
	unsigned int count;

	if (!r)
		return 0;
	/* The thread still receives what was sent before. */
	shutdown(r->fd, SHUT_RDWR);
	pthread_mutex_unlock(r->lock);
	pthread_join(r->thread, NULL);
	pthread_mutex_lock(r->lock);
	count = cordon_reports_count(r->reports);
	cordon_reports_free(r->reports);
	cordon_closep(&r->fd);
	cordon_closep(&r->proc_fd);
	free(r);
	return count;
}
