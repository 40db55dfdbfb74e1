/* SPDX-License-Identifier: Apache-2.0 */
/* The watch decides which of the accesses that it sees are reported, and counts repetitions. */
#include <sys/stat.h>

#include "base/move_dir.h"
#include "base/path.h"
#include "protect/secrets.h"
#include "sandbox/inside/where.h"
#include "sandbox/watch/outside.h"
#include "sandbox/watch/report.h"

#define INDEX_SIZE (2 * CORDON_WATCH_REPORTS) /* at most half of it is used, so that a search is short */

struct report {
	uint64_t hash;
	unsigned int count;
	cordon_verdict verdict;
	cordon_reason reason;
	const char *op;
	const char *rule, *rule_where, *fence;
	char *path;
};

/* The judgement of one path of the current call. */
struct judged {
	bool pending; /* `found` is to be reported */
	bool missing; /* the path does not exist, and the call does not make it */
	struct report found;
	char path[CORDON_PATH_MAX];
};

struct cordon_reports {
	const struct cordon_watched *watched;
	unsigned int count;
	unsigned int untold; /* violations beyond the bound */
	size_t n;
	struct report items[CORDON_WATCH_REPORTS]; /* in the order in which they happened */
	uint16_t index[INDEX_SIZE];		   /* position + 1; 0: free */
	uint64_t moves[CORDON_WATCH_MOVES];	   /* hashes of the directories that were not renamed */
	size_t n_moves;
	struct judged judged[CORDON_TOUCHES_MAX];
};

/* Counts a decision that began then, in a run that asked for it. */
static void measure(const struct cordon_watched *watched, uint64_t begun)
{
	if (watched->meter)
		cordon_histogram_add(&watched->meter->decide, cordon_meter_now() - begun);
}

struct cordon_reports *cordon_reports_new(const struct cordon_watched *watched)
{
	struct cordon_reports *reports = calloc(1, sizeof(*reports));

	if (!reports)
		return NULL;
	reports->watched = watched;
	return reports;
}

static void report_event(const struct cordon_reports *reports, const struct report *r)
{
	struct cordon_event event = { .kind = CORDON_EVENT_VIOLATION,
				      .op = r->op,
				      .path = r->path,
				      .rule = r->rule,
				      .verdict = r->verdict,
				      .reason = r->reason,
				      .rule_where = r->rule_where,
				      .fence = r->fence,
				      .count = r->count };

	reports->watched->observer->event(reports->watched->observer->data, &event);
}

struct cordon_reports *cordon_reports_free(struct cordon_reports *reports)
{
	if (!reports)
		return NULL;
	for (size_t i = 0; i < reports->n; i++) {
		if (reports->items[i].count > 1)
			report_event(reports, &reports->items[i]);
		free(reports->items[i].path);
	}
	if (reports->watched->meter)
		reports->watched->meter->watch_dropped += reports->untold;
	if (reports->untold) {
		struct cordon_event event = { .kind = CORDON_EVENT_UNTOLD, .count = reports->untold };

		reports->watched->observer->event(reports->watched->observer->data, &event);
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

static void add_violation(struct cordon_reports *reports, const struct report *found, const char *path)
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
	report_event(reports, r);
}

static void take_decision(struct report *found, const struct cordon_decision *decision)
{
	found->verdict = decision->verdict;
	found->reason = decision->reason;
	found->rule = decision->rule;
	found->rule_where = decision->rule_where;
	found->fence = decision->fence;
}

void cordon_reports_add(struct cordon_reports *reports, const char *op, const char *path,
			const struct cordon_decision *decision, unsigned int count)
{
	struct report found = { .op = op };

	take_decision(&found, decision);
	while (count-- > 0)
		add_violation(reports, &found, path);
}

void cordon_reports_add_untold(struct cordon_reports *reports, unsigned int count)
{
	reports->count += count;
	reports->untold += count;
}

static cordon_reason reason_of(const struct cordon_guard *guard)
{
	switch (guard->kind) {
	case CORDON_GUARD_DENIED:
		return CORDON_REASON_DENY;
	case CORDON_GUARD_READ_ONLY:
		return CORDON_REASON_GRANT;
	case CORDON_GUARD_PROTECTED:
	case CORDON_GUARD_SHARE:
	case CORDON_GUARD__MAX:
		break;
	}
	return CORDON_REASON_PROTECTED;
}

/* Where the setting stands that protects a path of the root; NULL when none does. */
static const char *where_protected(const struct cordon_policy *policy, const char *rule)
{
	for (size_t i = 0; policy && i < policy->n_protected; i++)
		if (cordon_streq(policy->protected_paths[i].path, rule))
			return policy->protected_paths[i].where;
	return NULL;
}

/* What a boundary of the plan refused, the policy refuses for a rule that it can name, unless the boundary is about
 * something else than this very path. */
static void find_rule(const struct cordon_reports *reports, const char *host, struct report *found)
{
	const struct cordon_policy *policy = reports->watched->policy;
	CORDON_UNCLEARED struct cordon_decision decision;
	const char *path = host + strlen(reports->watched->plan->root);

	found->rule_where = where_protected(policy, found->rule);
	if (!policy || !cordon_path_within(host, reports->watched->plan->root))
		return;
	cordon_policy_decide(policy, path + strspn(path, "/"), CORDON_OP_WRITE, &decision);
	if (decision.verdict == CORDON_DENY && decision.reason == found->reason)
		take_decision(found, &decision);
}

void cordon_reports_refused(struct cordon_reports *reports, const char *op, const struct cordon_guard *guard,
			    const char *rule, const char *path)
{
	struct report found = { .op = op,
				.rule = guard ? guard->path : rule,
				.verdict = CORDON_DENY,
				.reason = guard ? reason_of(guard) : CORDON_REASON_PROTECTED };
	CORDON_UNCLEARED char host[CORDON_PATH_MAX];

	if (cordon_where_to_host(reports->watched->plan, path, host))
		path = host;
	find_rule(reports, path, &found);
	add_violation(reports, &found, path);
}

/* A path of a call, where it leads, and what the host has there. */
struct place {
	const char *op;
	const struct cordon_hand_touch *touch;
	const char *inside;
	bool exists; /* inside, or on the host where the sandbox does not show it */
	char host[CORDON_PATH_MAX];
};

/* Whether this directory exists only inside, as a parent of what is mounted in it: listing it shows nothing of the
 * host. */
static bool leads_to_mounts(const struct cordon_plan *plan, const char *inside)
{
	for (size_t i = 0; i < plan->n_steps; i++)
		if (plan->steps[i].kind == CORDON_STEP_DIR && cordon_streq(plan->steps[i].path, inside))
			return true;
	return false;
}

/* Corrects the policy's verdict on a path outside the root: the policy does not know what the plan put there. */
static cordon_verdict judge_outside(const struct cordon_plan *plan, const struct place *place, cordon_verdict verdict)
{
	const struct cordon_step *step = cordon_plan_covering(plan, place->inside);

	if (step && step->kind == CORDON_STEP_MASK)
		return CORDON_DENY;
	/* A private directory belongs to the agent, whatever the host has there. But a path through a directory that
	 * only the host has is an attempt to reach the host's file. A program that makes a directory is an exception:
	 * it may be making the parents of its own file, and some programs try the deepest one first. */
	if (step && step->kind == CORDON_STEP_PRIVATE)
		return place->touch->shown || place->touch->directory ? CORDON_ALLOW : CORDON_DENY;
	/* It is a share, or it is what a learning run sees of the host. */
	if (step && (step->kind == CORDON_STEP_BIND || step->right != CORDON_RIGHT_NONE))
		return place->touch->writes && step->right != CORDON_RIGHT_WRITE ? CORDON_DENY : CORDON_ALLOW;
	/* It is a parent of a mount, or a path that does not exist on the host either. */
	if (!place->touch->writes && (leads_to_mounts(plan, place->inside) || !place->exists))
		return CORDON_ALLOW;
	return verdict;
}

static bool moves_or_removes(const char *op)
{
	return cordon_streq(op, "delete") || cordon_streq(op, "rename");
}

/*
 * Whether the lens reports this refusal itself. It reports all that it refuses. But it leaves opening for writing, and
 * truncating, a file that may only be read to the kernel: the mode that it shows has no write bits, so the kernel
 * refuses without asking the lens. (sandbox/host/lens_reports.c leaves the other changes of such files to us, because a
 * touch does not say which of them it is.)
 */
static bool lens_reports(const struct cordon_policy *policy, const char *path, const struct place *place)
{
	CORDON_UNCLEARED struct cordon_decision decision;

	if (!cordon_streq(place->op, "write") || !place->exists)
		return true;
	cordon_policy_decide(policy, path, CORDON_OP_READ, &decision);
	return decision.verdict == CORDON_DENY;
}

static bool parent_exists(const char *host)
{
	CORDON_UNCLEARED char dir[CORDON_PATH_MAX];
	const char *name = cordon_path_base(host);

	return cordon_copy(dir, sizeof(dir), host, (size_t)(name - host)) == 0 &&
	       cordon_outside_is_dir(*dir ? dir : "/");
}

/* Whether a missing name lies in a directory that the agent may not read: then the refusal concerns the directory. */
static bool parent_is_refused(const struct cordon_plan *plan, const struct cordon_policy *policy, const char *host)
{
	CORDON_UNCLEARED struct cordon_decision decision;
	CORDON_UNCLEARED char dir[CORDON_PATH_MAX];
	const char *rest = host + strlen(plan->root), *name;

	rest += strspn(rest, "/");
	name = cordon_path_base(rest);
	if (name == rest || !parent_exists(host) || cordon_copy(dir, sizeof(dir), rest, (size_t)(name - rest) - 1) < 0)
		return false;
	cordon_policy_decide(policy, dir, CORDON_OP_READ, &decision);
	return decision.verdict == CORDON_DENY && !cordon_policy_leads(policy, dir);
}

/* Whether the kernel answers without asking any rule: the path does not exist, it exists already, or its directory is
 * missing. */
static bool is_no_attempt(const struct cordon_plan *plan, const struct cordon_policy *policy, const struct place *place,
			  bool within)
{
	bool exists = place->exists || cordon_outside_exists(place->host);

	if (place->touch->creates && place->touch->shown && place->exists)
		return cordon_streq(place->op, "create"); /* EEXIST */
	if (exists)
		return false;
	if (place->touch->creates)
		return !place->touch->shown && !parent_exists(place->host);
	return !within || !parent_is_refused(plan, policy, place->host);
}

/* Whether the call only lists a directory that leads to a grant. */
static bool lists_parent_of_grant(const struct cordon_plan *plan, const struct cordon_policy *policy,
				  const struct place *place, const char *path, const struct cordon_decision *decision)
{
	return decision->reason == CORDON_REASON_NO_GRANT && plan->mode == CORDON_MODE_STRICT && !place->touch->writes &&
	       cordon_policy_leads(policy, path) && (S_ISDIR(place->touch->type) || cordon_outside_is_dir(place->host));
}

static void keep(const struct cordon_reports *reports, struct judged *judged, const struct report *found,
		 const char *path)
{
	/* The process is stopped: forward what it has written before, so that it comes before the report. */
	reports->watched->forward_output(reports->watched->data);
	judged->found = *found;
	memcpy(judged->path, path, strlen(path) + 1);
	judged->pending = true;
}

static bool is_refused(const struct judged *judged)
{
	return judged->pending && judged->found.verdict == CORDON_DENY;
}

/* Denies moving or removing a name that leads to a boundary, and finds its rule; the agent may write into it all the
 * same. */
static void judge_name(const struct cordon_plan *plan, const struct cordon_policy *policy, const struct place *place,
		       struct cordon_decision *decision)
{
	const struct cordon_guard *guard = NULL;

	if (place->exists && moves_or_removes(place->op))
		guard = cordon_plan_guard_of_name(plan, place->inside);
	if (!guard)
		return;
	decision->verdict = CORDON_DENY;
	decision->reason = reason_of(guard);
	decision->rule = guard->path;
	decision->rule_where = where_protected(policy, guard->path);
	decision->fence = NULL;
}

static bool is_secret_in_home(const char *name)
{
	CORDON_UNCLEARED char first[NAME_MAX + 1];

	for (const char *const *place = cordon_secret_places(); *place; place++)
		if (cordon_path_within(name, *place))
			return true;
	return cordon_copy(first, sizeof(first), name, strcspn(name, "/")) == 0 && cordon_secret_in_home(first);
}

/* Whether a call means to read a secret of the user: one that is missing in the private home of the run, and that the
 * user's own home has. Other names that only the user's home has are no attempt: every shell looks for its settings. */
static bool means_secret(const struct cordon_plan *plan, const struct place *place,
			 char ret_host[static CORDON_PATH_MAX])
{
	const char *home = getenv("HOME"), *name;
	const struct cordon_step *step;

	if (place->touch->writes || place->touch->creates || place->touch->exists || !home || *home != '/' ||
	    !cordon_path_within(place->inside, plan->home))
		return false;
	step = cordon_plan_covering(plan, place->inside);
	name = place->inside + strlen(plan->home);
	name += strspn(name, "/");
	return step && step->kind == CORDON_STEP_PRIVATE && is_secret_in_home(name) &&
	       cordon_path_join(home, name, ret_host, CORDON_PATH_MAX) == 0 && cordon_outside_exists(ret_host);
}

static void fill_resolved(const struct cordon_plan *plan, const struct place *place, bool within,
			  struct cordon_resolved *ret)
{
	const char *path = place->host;

	if (within) {
		path += strlen(plan->root);
		path += strspn(path, "/");
	}
	ret->place = within ? CORDON_PLACE_INSIDE : CORDON_PLACE_OUTSIDE;
	ret->exists = place->exists;
	memcpy(ret->path, path, strlen(path) + 1);
}

/* Judges a path of which the hand has said where it leads. */
static void judge_place(struct cordon_reports *reports, struct judged *judged, struct place *place)
{
	const struct cordon_plan *plan = reports->watched->plan;
	const struct cordon_policy *policy = reports->watched->policy;
	CORDON_UNCLEARED char secret[CORDON_PATH_MAX];
	struct report found = { .op = place->op };
	struct cordon_resolved resolved;
	struct cordon_decision decision;
	bool within = cordon_path_within(place->host, plan->root), writes = place->touch->writes;
	uint64_t begun;

	if (means_secret(plan, place, secret)) {
		found.verdict = CORDON_DENY;
		found.reason = CORDON_REASON_OUTSIDE_ROOT;
		keep(reports, judged, &found, secret);
		return;
	}
	if (is_no_attempt(plan, policy, place, within)) {
		judged->missing = !place->touch->creates;
		return;
	}
	if (!within && cordon_where_is_system(place->inside))
		return;
	fill_resolved(plan, place, within, &resolved);
	if (place->touch->if_missing && place->exists) {
		writes = false;
		found.op = "read";
	}
	begun = reports->watched->meter ? cordon_meter_now() : 0;
	cordon_policy_judge(policy, &resolved, writes ? CORDON_OP_WRITE : CORDON_OP_READ, &decision);
	measure(reports->watched, begun);
	if (within && decision.verdict != CORDON_DENY)
		judge_name(plan, policy, place, &decision);
	if (!within && decision.verdict != CORDON_ALLOW)
		decision.verdict = judge_outside(plan, place, decision.verdict);
	else if (within &&
		 ((plan->lens && decision.verdict == CORDON_DENY && lens_reports(policy, resolved.path, place)) ||
		  lists_parent_of_grant(plan, policy, place, resolved.path, &decision)))
		return;
	if (decision.verdict == CORDON_ALLOW)
		return;
	if (place->touch->creates && !cordon_streq(place->op, "rename") && !place->exists &&
	    !cordon_outside_exists(place->host))
		found.op = "create";
	take_decision(&found, &decision);
	keep(reports, judged, &found, place->host);
}

void cordon_reports_judge(struct cordon_reports *reports, size_t i, const struct cordon_hand_touch *touch,
			  const char *inside)
{
	struct judged *judged = &reports->judged[i];
	struct place place = { .op = cordon_touch_ops[touch->op], .touch = touch, .inside = inside };
	struct report found = { .op = place.op, .reason = CORDON_REASON_UNRESOLVABLE };

	judged->pending = judged->missing = false;
	/* A call that is refused for its first path is not reported for its second one; and one that moves or links a
	 * missing name fails, whatever its second path is. */
	if (i == 1 && (reports->judged[0].missing || is_refused(&reports->judged[0])))
		return;
	if (touch->plain) {
		judged->missing = i == 0 && !touch->creates && !touch->exists;
		return;
	}
	if (!touch->known) {
		found.verdict = reports->watched->plan->mode == CORDON_MODE_PERMISSIVE ? CORDON_WARN : CORDON_DENY;
		keep(reports, judged, &found, "(unreadable)");
		return;
	}
	if (inside[0] != '/' || !cordon_where_to_host(reports->watched->plan, inside, place.host))
		return;
	place.exists = touch->shown && !touch->unseen ? touch->exists : cordon_outside_exists(place.host);
	judge_place(reports, judged, &place);
}

bool cordon_reports_pending(const struct cordon_reports *reports)
{
	for (size_t i = 0; i < CORDON_TOUCHES_MAX; i++)
		if (reports->judged[i].pending)
			return true;
	return false;
}

/* Whether a rule refused a call that returned this error; other errors have other reasons. */
static bool is_refusal(int error)
{
	return error == -EACCES || error == -EROFS || error == -EBUSY || error == -EPERM || error == -EXDEV;
}

void cordon_reports_report(struct cordon_reports *reports, size_t i, int error)
{
	struct judged *judged = &reports->judged[i];
	bool happened = error == CORDON_ERROR_UNKNOWN ||
			(judged->found.verdict == CORDON_WARN ? error == 0 : is_refusal(error));

	if (judged->pending && happened)
		add_violation(reports, &judged->found, judged->path);
	judged->pending = false;
}

/* Adds a path to what a learning run uses. */
static void add_sight(const struct cordon_reports *reports, const struct cordon_hand_touch *touch, const char *inside)
{
	const struct cordon_plan *plan = reports->watched->plan;
	const struct cordon_observer *observer = reports->watched->observer;
	struct cordon_sight sight = { .op = cordon_touch_ops[touch->op],
				      .writes = touch->writes,
				      .creates = touch->creates,
				      .linked = touch->linked,
				      .type = touch->exists ? touch->type : 0 };
	CORDON_UNCLEARED char host[CORDON_PATH_MAX];

	if (!observer->sight || inside[0] != '/' || !cordon_where_to_host(plan, inside, host))
		return;
	if (!touch->shown)
		sight.type = cordon_outside_type(host);
	sight.place = cordon_path_within(host, plan->root) ? CORDON_PLACE_INSIDE : CORDON_PLACE_OUTSIDE;
	sight.path = host;
	if (sight.place == CORDON_PLACE_INSIDE) {
		sight.path += strlen(plan->root);
		sight.path += strspn(sight.path, "/");
	}
	sight.linked = sight.linked && sight.place == CORDON_PLACE_INSIDE;
	observer->sight(observer->data, &sight);
}

/* Reports a deed that the hand refused. */
static void add_refusal(struct cordon_reports *reports, const struct cordon_hand_message *message, const char *path)
{
	const struct cordon_plan *plan = reports->watched->plan;
	const char *op = cordon_touch_ops[message->touches[0].op];
	const struct cordon_guard *guard = NULL;
	const char *rule = CORDON_RULE_NOT_OF_RUN;

	if (message->code >= 0 && (size_t)message->code < plan->n_guards)
		guard = &plan->guards[message->code];
	else if (message->code == CORDON_HAND_SELF_RESTRICTED)
		rule = CORDON_RULE_SELF_RESTRICTED;
	else if (message->code == CORDON_HAND_LINK_IN_GIT)
		rule = CORDON_RULE_LINK_IN_GIT;
	else if (message->code == CORDON_HAND_OVERLAY_MARK)
		rule = CORDON_RULE_OVERLAY_MARK;
	reports->watched->forward_output(reports->watched->data);
	cordon_reports_refused(reports, op, guard, rule, path);
}

void cordon_reports_told(struct cordon_reports *reports, const struct cordon_hand_message *message)
{
	const char *first = message->n ? message->texts + message->touches[0].path_at : "";

	switch ((cordon_hand_kind)message->kind) {
	case CORDON_HAND_TOUCHES:
		for (uint32_t i = 0; i < message->n; i++)
			cordon_reports_judge(reports, i, &message->touches[i],
					     message->texts + message->touches[i].path_at);
		for (uint32_t i = 0; i < message->n; i++)
			cordon_reports_report(reports, i, message->code);
		break;
	case CORDON_HAND_SIGHTS:
		for (uint32_t i = 0; i < message->n; i++)
			add_sight(reports, &message->touches[i], message->texts + message->touches[i].path_at);
		break;
	case CORDON_HAND_REFUSED:
		if (message->n)
			add_refusal(reports, message, first);
		break;
	case CORDON_HAND_TOO_LARGE:
		if (message->n)
			cordon_reports_too_large(reports, first);
		break;
	case CORDON_HAND_HELLO:
	case CORDON_HAND__MAX:
		break;
	}
}

void cordon_reports_too_large(struct cordon_reports *reports, const char *path)
{
	const struct cordon_observer *observer = reports->watched->observer;
	struct cordon_event event = {
		.kind = CORDON_EVENT_LIMIT, .op = "move", .path = path, .limit = CORDON_MOVE_ENTRIES_MAX, .count = 1
	};
	uint64_t hash = hash_of("move", path);

	for (size_t i = 0; i < reports->n_moves; i++)
		if (reports->moves[i] == hash)
			return;
	if (reports->n_moves == CORDON_WATCH_MOVES)
		return;
	reports->moves[reports->n_moves++] = hash;
	observer->event(observer->data, &event);
}
