/* SPDX-License-Identifier: Apache-2.0 */
/* A thread of the supervisor receives the lens's refusals, finds out which system call asked for each, and reports the
 * attempts. */
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <sys/socket.h>
#include <time.h>

#include "base/path.h"
#include "base/resolve.h"
#include "sandbox/host/lens_record.h"
#include "sandbox/host/lens_reports.h"
#include "sandbox/host/stopped.h"
#include "sandbox/watch/report.h"

#define STACK (256 << 10)
#define LOCK_MS 20

struct cordon_lens_reports {
	const struct cordon_child *child;
	const struct cordon_watched *watched;
	pthread_mutex_t *lock;
	struct cordon_reports *reports;
	pthread_t thread;
	int fd;
	struct cordon_stopped stopped;
};

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
static const char *attempt_of(const struct cordon_lens_reports *r, const struct cordon_stopped *seen, const char *name,
			      bool exists, char path[static CORDON_PATH_MAX])
{
	const char *first = cordon_stopped_rest(seen->path, name), *second = cordon_stopped_rest(seen->path2, name);
	/* Of two paths we take the one that has the name; the kernel looks up the first one first. */
	const char *rest = first ? first : second ? second : "";
	char clean[CORDON_PATH_MAX], whole[CORDON_PATH_MAX];

	/* When we can't read the process, we report the refusal rather than leave it out. */
	if (!seen->known)
		return exists ? "read" : NULL;
	if (seen->kind == CORDON_CALL_LOOK || (!exists && *rest))
		return NULL;
	/* A rest with ".." leads somewhere else: then we know only the refused name. */
	if (*rest && cordon_path_clean(rest, clean, sizeof(clean)) == 0 &&
	    cordon_path_join(path, clean, whole, sizeof(whole)) == 0) {
		memcpy(path, whole, strlen(whole) + 1);
		exists = is_on_host(r, path);
	}
	switch (seen->kind) {
	case CORDON_CALL_OPEN:
	case CORDON_CALL_OPEN_BY_STRUCT:
		return cordon_stopped_open(seen->flags, exists);
	case CORDON_CALL_CREATE:
	case CORDON_CALL_BIND:
		return exists ? NULL : "create"; /* EEXIST */
	case CORDON_CALL_DELETE:
		return exists ? "delete" : NULL;
	case CORDON_CALL_CHANGE:
		return exists ? "write" : NULL;
	case CORDON_CALL_EXECUTE:
		return exists ? "execute" : NULL;
	case CORDON_CALL_RENAME:
		return exists || second || !first ? "rename" : NULL;
	case CORDON_CALL_LINK:
		if (first)
			return exists ? "read" : NULL;
		return exists ? NULL : "create";
	case CORDON_CALL_LOOK:
		break;
	}
	return NULL;
}

/* By which rule something beside a boundary was refused: that of the boundary whose temporary name it is, or, with no name of
 * one, because the host made it. */
static void decide_beside(const struct cordon_policy *policy, const char *path, const char *boundary,
			  struct cordon_decision *ret)
{
	char beside[CORDON_PATH_MAX];
	size_t dir = (size_t)(cordon_path_base(path) - path);

	if (*boundary && dir + strlen(boundary) < sizeof(beside)) {
		memcpy(beside, path, dir);
		memcpy(beside + dir, boundary, strlen(boundary) + 1);
		cordon_policy_decide(policy, beside, CORDON_OP_WRITE, ret);
		if (ret->verdict == CORDON_DENY)
			return;
	}
	ret->verdict = CORDON_DENY;
	ret->reason = CORDON_REASON_PROTECTED;
	ret->rule = CORDON_RULE_NOT_OF_RUN;
	ret->rule_where = ret->fence = NULL;
}

/* Reports an attempt; the caller holds the lock. The lens has refused it; here we only look up by which rule.
 * `beside`: see CORDON_LENS_BESIDE; else NULL. */
static void report(struct cordon_lens_reports *r, const char *op, const char *path, const char *beside)
{
	const struct cordon_policy *policy = r->child->policy;
	bool reads = cordon_streq(op, "read") || cordon_streq(op, "execute");
	struct cordon_decision decision = { .verdict = CORDON_DENY, .reason = CORDON_REASON_OUTSIDE_ROOT };
	char full[CORDON_PATH_MAX];

	if (path[0] == '/') {
		/* A link leads out of the root. */
		cordon_reports_add(r->reports, op, path, &decision, 1);
		return;
	}
	if (beside)
		decide_beside(policy, path, beside, &decision);
	else
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
		decision.rule_where = protected->where;
		decision.fence = NULL;
	}
	decision.verdict = CORDON_DENY;
	if (cordon_path_join(r->child->plan->root, path, full, sizeof(full)) == 0)
		cordon_reports_add(r->reports, op, full, &decision, 1);
}

/* Reports an attempt (NULL: none) and lets the lens answer. The report comes first, because the process may be refused
 * something else when it goes on. But the thread that holds the lock may itself wait for the name whose look-up waits
 * for us, so after LOCK_MS we let the lens answer and report afterwards. */
static void conclude(struct cordon_lens_reports *r, uint64_t number, const char *op, const char *path,
		     const char *beside)
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
		report(r, op, path, beside);
	}
	(void)send(r->fd, &number, sizeof(number), MSG_NOSIGNAL | MSG_DONTWAIT);
	if (op && !locked) {
		pthread_mutex_lock(r->lock);
		report(r, op, path, beside);
	}
	if (op)
		pthread_mutex_unlock(r->lock);
}

/* The number of the hand that is this thread; CORDON_HANDS_MAX: none. */
static size_t hand_of(const struct cordon_lens_reports *r, int thread)
{
	size_t i = 0;

	while (i < CORDON_HANDS_MAX && r->watched->hands[i] != thread)
		i++;
	return i;
}

static void on_asked(struct cordon_lens_reports *r, const struct cordon_lens_record *record)
{
	char path[CORDON_PATH_MAX];
	const char *op;
	size_t hand;

	memcpy(path, record->texts + record->path_at, strlen(record->texts + record->path_at) + 1);
	/* Nobody can read the calls of a hand. Mostly it only looks; and when it acts in the lens's view, it makes entries. */
	if ((hand = hand_of(r, (int)record->thread)) < CORDON_HANDS_MAX) {
		conclude(r, record->number, r->watched->memory->acting[hand] ? "create" : NULL, path, NULL);
		return;
	}
	cordon_stopped_read(&r->stopped, record->thread);
	op = attempt_of(r, &r->stopped, record->texts, record->exists, path);
	conclude(r, record->number, op, path, NULL);
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
	const char *beside = record->kind == CORDON_LENS_BESIDE ? record->texts : NULL;
	bool reported = record->op < CORDON_ARRAY_SIZE(ops) &&
			!(!beside && record->op == CORDON_LENS_OP_WRITE && watch_reports(r, path));

	conclude(r, record->number, reported ? ops[record->op] : NULL, path, beside);
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
		else if (record.kind == CORDON_LENS_REFUSED || record.kind == CORDON_LENS_BESIDE)
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
		*r = (struct cordon_lens_reports){ .child = child,
						   .watched = watched,
						   .lock = lock,
						   .fd = fd,
						   .stopped = { .child = child, .proc_fd = -1 } };
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
	cordon_stopped_done(&r->stopped);
	free(r);
	return count;
}
