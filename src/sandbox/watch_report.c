/* SPDX-License-Identifier: Apache-2.0 */
/* Which of the accesses that the watch sees are told, and how often. */
#include <fcntl.h>
#include <sys/stat.h>

#include "base/path.h"
#include "policy/temp_names.h"
#include "sandbox/watch_report.h"

#define INDEX_SIZE (2 * CORDON_WATCH_REPORTS) /* half full at most, so that a search is short */

struct report {
	uint64_t hash;
	unsigned int count;
	cordon_verdict verdict;
	cordon_reason reason;
	const char *op;
	const char *rule;
	char *path;
};

/* What is to be told of a path of the call that is being judged. */
struct looked {
	bool outside;
	struct report found;
	char path[CORDON_PATH_MAX];
};

struct cordon_reports {
	const struct cordon_child *child;
	const struct cordon_observer *observer;
	bool root_in_system; /* the workspace itself lies in a system directory: text alone says nothing */
	unsigned int count;
	unsigned int untold; /* beyond the bound */
	size_t n;
	struct report items[CORDON_WATCH_REPORTS]; /* in the order in which they came */
	uint16_t index[INDEX_SIZE];		   /* position + 1; 0: free */
	struct cordon_where where;
	struct looked looked[CORDON_TOUCHES_MAX];
};

struct cordon_reports *cordon_reports_new(const struct cordon_child *child, const struct cordon_observer *observer)
{
	struct cordon_reports *reports = calloc(1, sizeof(*reports));

	if (!reports)
		return NULL;
	reports->child = child;
	reports->observer = observer;
	reports->root_in_system = cordon_where_is_system(child->plan->at);
	return reports;
}

static void tell(const struct cordon_reports *reports, const struct report *r)
{
	struct cordon_event event = { .kind = CORDON_EVENT_VIOLATION,
				      .op = r->op,
				      .path = r->path,
				      .rule = r->rule,
				      .verdict = r->verdict,
				      .reason = r->reason,
				      .count = r->count,
				      .by_agent = true };

	reports->observer->event(reports->observer->data, &event);
}

struct cordon_reports *cordon_reports_free(struct cordon_reports *reports)
{
	if (!reports)
		return NULL;
	for (size_t i = 0; i < reports->n; i++) {
		if (reports->items[i].count > 1)
			tell(reports, &reports->items[i]);
		free(reports->items[i].path);
	}
	if (reports->untold) {
		struct cordon_event event = { .kind = CORDON_EVENT_UNTOLD, .count = reports->untold, .by_agent = true };

		reports->observer->event(reports->observer->data, &event);
	}
	free(reports);
	return NULL;
}

unsigned int cordon_reports_count(const struct cordon_reports *reports)
{
	return reports->count;
}

static uint64_t hash_of(const char *op, const char *path)
{
	uint64_t h = 1469598103934665603ULL;

	for (const char *p = op; *p; p++)
		h = (h ^ (unsigned char)*p) * 1099511628211ULL;
	for (const char *p = path; *p; p++)
		h = (h ^ (unsigned char)*p) * 1099511628211ULL;
	return h;
}

static void violation(struct cordon_reports *reports, const struct report *found, const char *path)
{
	uint64_t hash = hash_of(found->op, path);
	size_t at = hash % INDEX_SIZE;
	struct report *r;

	reports->count++;
	for (; reports->index[at]; at = (at + 1) % INDEX_SIZE) {
		r = &reports->items[reports->index[at] - 1];
		if (r->hash == hash && cordon_streq(r->op, found->op) && cordon_streq(r->path, path)) {
			r->count++;
			return;
		}
	}
	if (reports->n == CORDON_WATCH_REPORTS) {
		reports->untold++;
		return;
	}
	r = &reports->items[reports->n];
	*r = *found;
	r->hash = hash;
	r->count = 1;
	r->path = strdup(path);
	if (!r->path) {
		reports->untold++;
		return;
	}
	reports->index[at] = (uint16_t)++reports->n;
	tell(reports, r);
}

void cordon_reports_refused(struct cordon_reports *reports, const struct cordon_guard *guard)
{
	struct report found = {
		.op = "create", .rule = guard->path, .verdict = CORDON_DENY, .reason = CORDON_REASON_PROTECTED
	};

	violation(reports, &found, guard->inside);
}

/* What may be a temporary name: its path below the root, and how much of it is the directory. */
struct save {
	const struct cordon_policy *policy;
	const char *path;
	size_t dir_len;
};

/* The step whose mount the agent meets at an inside path; NULL for what stands on no mount but our bare tree. */
static const struct cordon_step *covering(const struct cordon_plan *plan, const char *inside)
{
	const struct cordon_step *best = NULL;

	for (size_t i = 0; i < plan->n_steps; i++) {
		const struct cordon_step *s = &plan->steps[i];
		bool covers = s->kind == CORDON_STEP_BIND || s->kind == CORDON_STEP_PRIVATE ||
			      s->kind == CORDON_STEP_MASK || s->kind == CORDON_STEP_RULE;

		if (covers && cordon_path_within(inside, s->path) && (!best || strlen(s->path) >= strlen(best->path)))
			best = s;
	}
	return best;
}

/* A directory that only exists inside, to lead to what is mounted in it: listing it tells nothing. */
static bool leads_to_mounts(const struct cordon_plan *plan, const char *inside)
{
	for (size_t i = 0; i < plan->n_steps; i++)
		if (plan->steps[i].kind == CORDON_STEP_DIR && cordon_streq(plan->steps[i].path, inside))
			return true;
	return false;
}

/* Whether the person who started the run showed this to the agent (--share, --home), and not just the mode did. */
static bool shared(const struct cordon_plan *plan, const struct cordon_step *step)
{
	bool top = strrchr(step->path, '/') == step->path;

	if (step->kind == CORDON_STEP_RULE)
		return step->right != CORDON_RIGHT_NONE && plan->mode == CORDON_MODE_STRICT;
	return step->kind == CORDON_STEP_BIND &&
	       (plan->mode == CORDON_MODE_STRICT || !top || !cordon_streq(step->path, step->source));
}

/* A private directory is the agent's own. But looking there for what the host has at that path, or going through a
 * directory that only the host has, is an attempt to reach the host's. */
static bool reaches_for_host(const struct cordon_where *where, const struct cordon_touch *touch)
{
	char dir[CORDON_PATH_MAX];

	if (where->shown)
		return touch->follows && !touch->creates && !where->exists &&
		       faccessat(AT_FDCWD, where->host, F_OK, 0) == 0;
	memcpy(dir, where->host, strlen(where->host) + 1);
	if (touch->creates)
		dir[cordon_path_base(dir) - dir] = '\0';
	return faccessat(AT_FDCWD, dir, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* What the policy can't know of a path outside the root: what the plan put there. */
static cordon_verdict judge_outside(const struct cordon_plan *plan, const struct cordon_where *where,
				    const struct cordon_touch *touch, cordon_verdict verdict)
{
	const struct cordon_step *step = covering(plan, where->inside);
	bool permissive = plan->mode == CORDON_MODE_PERMISSIVE;

	if (step && step->kind == CORDON_STEP_MASK)
		return CORDON_DENY;
	if (step && step->kind == CORDON_STEP_PRIVATE)
		return reaches_for_host(where, touch) ? CORDON_DENY : CORDON_ALLOW;
	if (step && shared(plan, step))
		return touch->writes && step->right != CORDON_RIGHT_WRITE ? CORDON_DENY : CORDON_ALLOW;
	if (!permissive && !touch->writes && leads_to_mounts(plan, where->inside))
		return CORDON_ALLOW;
	/* Nothing is there to be read. */
	if (permissive && !touch->writes && !where->exists)
		return CORDON_ALLOW;
	return verdict;
}

bool cordon_reports_pass(const struct cordon_reports *reports, const struct cordon_places *places,
			 const struct cordon_touch *touch)
{
	CORDON_UNCLEARED char path[CORDON_PATH_MAX];
	CORDON_UNCLEARED struct cordon_decision decision;

	if (!touch->known || touch->nameless)
		return touch->nameless;
	if (!reports->root_in_system && cordon_where_plainly_system(touch->path))
		return true;
	if (!cordon_where_plainly_within(places, touch, path))
		return false;
	cordon_policy_decide(reports->child->policy, path, touch->writes ? CORDON_OP_WRITE : CORDON_OP_READ, &decision);
	return decision.verdict == CORDON_ALLOW;
}

/* A name that the lens lets through for a save, though no grant covers it. */
static bool beside_writable(void *data, const char *name, size_t n)
{
	const struct save *save = data;
	CORDON_UNCLEARED char path[CORDON_PATH_MAX];
	CORDON_UNCLEARED struct cordon_decision decision;

	if (save->dir_len + n >= sizeof(path))
		return false;
	memcpy(path, save->path, save->dir_len);
	if (cordon_copy(path + save->dir_len, sizeof(path) - save->dir_len, name, n) < 0)
		return false;
	cordon_policy_decide(save->policy, path, CORDON_OP_WRITE, &decision);
	return decision.verdict == CORDON_ALLOW;
}

static bool is_save(const struct cordon_plan *plan, const struct cordon_policy *policy, const char *path)
{
	const char *name = cordon_path_base(path);
	struct save save = { .policy = policy, .path = path, .dir_len = (size_t)(name - path) };

	return plan->lens && !policy->no_editor_temps &&
	       (cordon_temp_of_name(name, false, beside_writable, &save) ||
		cordon_temp_of_name(name, true, beside_writable, &save) || cordon_temp_of_any(name));
}

static bool is_dir(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* What a decision against a place in the root is not told for. */
static bool is_no_attempt(const struct cordon_plan *plan, const struct cordon_policy *policy,
			  const struct cordon_where *where, const struct cordon_touch *touch, const char *path,
			  const struct cordon_decision *decision)
{
	if (decision->verdict == CORDON_WARN && !touch->writes && !where->exists)
		return true; /* nothing is there to be read */
	if (decision->reason != CORDON_REASON_NO_GRANT)
		return false;
	/* A listing of what leads to a grant, and of nothing else. */
	if (plan->mode == CORDON_MODE_STRICT && !touch->writes && cordon_policy_leads(policy, path) &&
	    is_dir(where->host))
		return true;
	return is_save(plan, policy, path);
}

static void keep(struct looked *looked, const struct report *found, const char *path)
{
	looked->found = *found;
	memcpy(looked->path, path, strlen(path) + 1);
	looked->outside = true;
}

void cordon_reports_look(struct cordon_reports *reports, size_t i, const struct cordon_places *places, pid_t pid,
			 const struct cordon_touch *touch, bool made)
{
	const struct cordon_plan *plan = reports->child->plan;
	const struct cordon_policy *policy = reports->child->policy;
	struct cordon_where *where = &reports->where;
	struct report found = { .op = touch->op };
	struct cordon_resolved resolved = { .place = CORDON_PLACE_OUTSIDE };
	struct cordon_decision decision;
	bool within;

	reports->looked[i].outside = false;
	if (!touch->known) {
		found.verdict = plan->mode == CORDON_MODE_PERMISSIVE ? CORDON_WARN : CORDON_DENY;
		found.reason = CORDON_REASON_UNRESOLVABLE;
		keep(&reports->looked[i], &found, "(unreadable)");
		return;
	}
	if (cordon_reports_pass(reports, places, touch) || !cordon_where_find(places, pid, touch, where))
		return;
	within = cordon_path_within(where->host, plan->root);
	if (!within && cordon_where_is_system(where->inside))
		return;
	if (within) {
		const char *rest = where->host + strlen(plan->root);

		resolved.place = CORDON_PLACE_INSIDE;
		rest += strspn(rest, "/");
		memcpy(resolved.path, rest, strlen(rest) + 1);
	} else {
		memcpy(resolved.path, where->host, strlen(where->host) + 1);
	}
	resolved.exists = where->exists;
	cordon_policy_judge(policy, &resolved, touch->writes ? CORDON_OP_WRITE : CORDON_OP_READ, &decision);
	if (!within && decision.verdict != CORDON_ALLOW)
		decision.verdict = judge_outside(plan, where, touch, decision.verdict);
	else if (within && is_no_attempt(plan, policy, where, touch, resolved.path, &decision))
		return;
	if (decision.verdict == CORDON_ALLOW)
		return;
	if (made)
		found.op = "create";
	found.verdict = decision.verdict;
	found.reason = decision.reason;
	found.rule = decision.rule;
	keep(&reports->looked[i], &found, where->host);
}

void cordon_reports_tell(struct cordon_reports *reports, size_t i)
{
	if (reports->looked[i].outside)
		violation(reports, &reports->looked[i].found, reports->looked[i].path);
	reports->looked[i].outside = false;
}
