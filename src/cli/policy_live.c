/* SPDX-License-Identifier: Apache-2.0 */
/* Asks questions about a policy in a real sandbox: which can be asked without harm, and the run that asks them. */
#include <fcntl.h>
#include <sys/stat.h>

#include "base/path.h"
#include "cli/policy_live.h"
#include "policy/asker.h"
#include "policy/shares.h"
#include "run/captured.h"
#include "view/view.h"

#define INSIDE "/tmp/" CORDON_LIVE_PROBE
#define BASE_MS 60000 /* for the whole run, with QUESTION_MS for each host */
#define QUESTION_MS 6000

int cordon_live_prepare(struct cordon_live_way *live, struct cordon_recipe *recipe, struct cordon_error *err)
{
	ssize_t n = readlink("/proc/self/exe", live->program, sizeof(live->program) - 1);

	if (n < 0)
		return cordon_fail_errno(err, -errno, "cannot find the executable of cordon");
	live->program[n] = '\0';
	live->share = (struct cordon_share){
		.source = live->program, .target = INSIDE, .read_only = true, .named = CORDON_NAMED_BY_NOBODY
	};
	recipe->places = &live->share;
	recipe->n_places = 1;
	return 0;
}

struct asking {
	const struct cordon_policy *policy;
	struct cordon_asker asker;
	struct cordon_buf input;
	size_t n_hosts;
};

static int stat_subject(const struct asking *a, struct stat *ret)
{
	const struct cordon_resolved *found = &a->asker.resolved;

	if (found->place == CORDON_PLACE_OUTSIDE)
		return lstat(found->path, ret);
	return fstatat(a->policy->root.fd, *found->path ? found->path : ".", ret, AT_SYMLINK_NOFOLLOW);
}

/* A directory can be changed by making something in it, as far as the same rules hold there. */
static const char *judge_write_dir(struct asking *a, char *ret_op)
{
	cordon_verdict verdict = a->asker.decision.verdict;
	CORDON_UNCLEARED struct cordon_decision below;
	char path[CORDON_PATH_MAX];

	if (cordon_path_join(a->asker.resolved.path, CORDON_LIVE_PROBE, path, sizeof(path)) < 0)
		return "its path is too long";
	cordon_policy_decide(a->policy, path, CORDON_OP_WRITE, &below);
	if (below.verdict != verdict)
		return "it is a directory in which other rules hold than for itself; ask about a file";
	*ret_op = 'd';
	return NULL;
}

/* Sets what is tried inside, or returns why nothing is. */
static const char *judge_path(struct asking *a, const struct cordon_question *q, char *ret_op)
{
	const struct cordon_resolved *found = &a->asker.resolved;
	bool write = q->op == CORDON_OP_WRITE, outside = found->place == CORDON_PLACE_OUTSIDE, exists;
	const struct cordon_policy_share *share;
	const char *rest;
	struct stat st;

	if (found->place == CORDON_PLACE_UNRESOLVABLE)
		return "the path leads nowhere";
	share = outside ? cordon_share_of(a->policy, found->path, &rest)
			: cordon_share_at(a->policy, found->path, &rest);
	if (outside && !share)
		return "it is outside the root, where a run sees the system and not the host's files";
	if (outside && (!share->target || !cordon_streq(share->target, share->source)))
		return "it is in a share that has another path inside";
	exists = stat_subject(a, &st) == 0;
	if (exists && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
		return "it is no file and no directory";
	if (!write && !exists)
		return "there is nothing to read";
	if (!write && S_ISDIR(st.st_mode) && a->asker.decision.verdict == CORDON_DENY &&
	    (outside || cordon_policy_leads(a->policy, found->path)))
		return "it is a directory that leads to something allowed, and can be listed";
	if (write && share && (!exists || !S_ISREG(st.st_mode)))
		return "something would have to be made in a share";
	*ret_op = write ? 'w' : 'r';
	return write && exists && S_ISDIR(st.st_mode) ? judge_write_dir(a, ret_op) : NULL;
}

static const char *judge(struct asking *a, const struct cordon_question *q, char *ret_op)
{
	a->asker.connect = q->connect;
	a->asker.op = q->op;
	cordon_asker_ask(&a->asker, q->subject, strlen(q->subject));
	if (!q->connect)
		return judge_path(a, q, ret_op);
	if (!a->policy->net.listed)
		return "the run has the network of the host, and nothing limits it";
	a->n_hosts++;
	*ret_op = cordon_net_list_is_none(&a->policy->net) ? 'n' : 'c';
	return NULL;
}

/* The path as the sandbox has it: relative to the root, where it starts; or the host as rules write it. */
static const char *subject_inside(const struct asking *a, const struct cordon_question *q)
{
	const struct cordon_resolved *found = &a->asker.resolved;

	if (q->connect)
		return a->asker.decision.resolved;
	if (q->subject[0] != '/' || found->place == CORDON_PLACE_OUTSIDE)
		return q->subject;
	return *found->path ? found->path : ".";
}

/* Addresses come first: a name that was looked up has one of its addresses as a label, which leads to the name then. */
static bool is_address(const struct cordon_question *q)
{
	struct cordon_net_rule rule;

	return q->connect && cordon_net_rule_parse(q->subject, strlen(q->subject), &rule, NULL) == 0 &&
	       rule.kind == CORDON_NET_KIND_ADDRESS;
}

static int add(struct asking *a, const struct cordon_question *q, struct cordon_live_answer *ret_answer)
{
	const char *subject;
	char op = 0;
	int r;

	*ret_answer = (struct cordon_live_answer){ .why_not = judge(a, q, &op) };
	if (ret_answer->why_not)
		return 0;
	ret_answer->state = CORDON_LIVE_NO_ANSWER;
	subject = subject_inside(a, q);
	r = cordon_buf_add(&a->input, &op, 1);
	return r < 0 ? r : cordon_buf_add(&a->input, subject, strlen(subject) + 1);
}

static int collect(struct asking *a, const struct cordon_questions *questions, struct cordon_live_answer *ret_answers)
{
	int r = 0;

	for (int addresses = 1; addresses >= 0; addresses--)
		for (size_t i = 0; r == 0 && i < questions->n; i++)
			if (is_address(&questions->items[i]) == addresses)
				r = add(a, &questions->items[i], &ret_answers[i]);
	return r;
}

/* Gives the answers, which are in the order of collect(), to their questions. */
static void spread(const struct cordon_buf *out, const struct cordon_questions *questions,
		   struct cordon_live_answer *ret_answers)
{
	size_t at = 0;

	for (int addresses = 1; addresses >= 0; addresses--)
		for (size_t i = 0; i < questions->n; i++) {
			char answer;

			if (is_address(&questions->items[i]) != addresses || ret_answers[i].why_not)
				continue;
			answer = at < out->len ? out->data[at] : '?';
			at++;
			if (answer == '+' || answer == '-')
				ret_answers[i].state = answer == '+' ? CORDON_LIVE_ALLOWED : CORDON_LIVE_REFUSED;
		}
}

/* Runs the probe in a view that does not stay. */
static int run_probe(struct cordon_recipe *recipe, const struct asking *a, struct cordon_buf *ret_out,
		     struct cordon_error *err)
{
	char name[] = INSIDE, *argv[] = { name, NULL };
	const struct cordon_view_request request = { .policy = recipe->policy, .argv = argv };
	autohome struct cordon_home home = CORDON_HOME_NONE;
	autoview struct cordon_view view = CORDON_VIEW_NONE;
	struct cordon_run_spec spec = recipe->spec;
	struct cordon_captured end = { 0 };
	struct cordon_error own = { 0 };
	int r = cordon_home_open(&home, err);

	if (r == 0)
		r = cordon_view_create(&home, &request, &view, err);
	if (r < 0)
		return r;
	spec.argv = argv;
	spec.cwd = recipe->policy->root.path;
	spec.view = view.path;
	spec.timeout_ms = BASE_MS + a->n_hosts * QUESTION_MS;
	r = cordon_run_captured(&spec, a->input.data, a->input.len, ret_out, NULL, &end, err);
	if (r == 0 && end.own_exit) {
		cordon_fail(err, -EIO, CORDON_KIND_INTERNAL, "the sandbox for --live ended with %d%s%s", end.own_exit,
			    end.error.code ? ": " : "", end.error.code ? end.error.message : "");
		r = -EIO;
	}
	if (cordon_view_remove(&home, &view, &own) < 0 && r == 0) {
		*err = own;
		r = own.code;
	}
	return r;
}

int cordon_live_ask(struct cordon_recipe *recipe, const struct cordon_questions *questions,
		    struct cordon_live_answer *ret_answers, struct cordon_error *err)
{
	CORDON_UNCLEARED struct asking a;
	autobuf struct cordon_buf out = CORDON_BUF(CORDON_QUESTIONS_MAX);
	int r;

	a.policy = recipe->policy;
	a.n_hosts = 0;
	a.input = (struct cordon_buf)CORDON_BUF(SIZE_MAX / 2);
	cordon_asker_init(&a.asker, recipe->policy, CORDON_OP_READ);
	r = collect(&a, questions, ret_answers);
	if (r < 0)
		cordon_fail_errno(err, r, "cannot ask in a sandbox");
	else if (a.input.len)
		r = run_probe(recipe, &a, &out, err);
	if (r == 0)
		spread(&out, questions, ret_answers);
	cordon_asker_done(&a.asker);
	cordon_buf_done(&a.input);
	return r;
}
