/* SPDX-License-Identifier: Apache-2.0 */
/* Records what a run used: sorts each access into the set of what is granted, what lies outside, or what was
 * refused. */
#include <fcntl.h>
#include <sys/stat.h>

#include "base/path.h"
#include "learn/learned.h"

int cordon_learned_init(struct cordon_learned *learned, const struct cordon_policy *policy, bool patterns,
			struct cordon_error *err)
{
	*learned = (struct cordon_learned){ .policy = policy,
					    .patterns = patterns,
					    .inside = cordon_learn_new(),
					    .outside = cordon_learn_new(),
					    .refused = cordon_learn_new() };
	return learned->inside && learned->outside && learned->refused
		       ? 0
		       : cordon_fail_errno(err, -ENOMEM, "learned paths");
}

void cordon_learned_done(struct cordon_learned *learned)
{
	cordon_learn_grants_done(&learned->grants);
	cordon_net_list_done(&learned->used);
	cordon_net_list_done(&learned->hosts);
	learned->inside = cordon_learn_free(learned->inside);
	learned->outside = cordon_learn_free(learned->outside);
	learned->refused = cordon_learn_free(learned->refused);
}

static unsigned int uses_of(const struct cordon_sight *sight)
{
	bool moves = cordon_streq(sight->op, "rename");
	bool goes = moves || cordon_streq(sight->op, "delete");
	unsigned int uses = sight->linked ? CORDON_LEARN_LINKED : 0;

	uses |= moves ? CORDON_LEARN_MOVED : 0;
	if (!sight->type)
		return sight->creates ? uses | CORDON_LEARN_MADE | CORDON_LEARN_WRITTEN : CORDON_LEARN_ABSENT;
	uses |= CORDON_LEARN_EXISTED | (S_ISDIR(sight->type) ? CORDON_LEARN_DIRECTORY : 0);
	if (goes)
		return uses | CORDON_LEARN_MADE | CORDON_LEARN_WRITTEN;
	/* With mkdir -p or O_EXCL, an existing name is only found to exist. */
	if (sight->writes && !cordon_streq(sight->op, "create"))
		return uses | CORDON_LEARN_WRITTEN;
	if (!S_ISDIR(sight->type))
		return uses | CORDON_LEARN_READ;
	return uses | (cordon_streq(sight->op, "read") ? CORDON_LEARN_LISTED : CORDON_LEARN_LOOKED);
}

/* Cuts the path behind its first missing component: what lies below that is missing, too. */
static void cut_missing(const struct cordon_root *root, char path[static CORDON_PATH_MAX])
{
	for (char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		struct stat st;
		bool missing;

		*slash = '\0';
		missing = fstatat(root->fd, path, &st, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT;
		if (missing)
			return;
		*slash = '/';
	}
}

void cordon_learned_sight(struct cordon_learned *learned, const struct cordon_sight *sight)
{
	unsigned int uses = uses_of(sight);
	struct cordon_decision decision;
	struct cordon_learn *set = learned->inside;
	char path[CORDON_PATH_MAX];
	int r;

	if (sight->place == CORDON_PLACE_OUTSIDE) {
		r = uses & CORDON_LEARN_ABSENT ? 0 : cordon_learn_add(learned->outside, sight->path + 1, uses);
	} else {
		memcpy(path, sight->path, strlen(sight->path) + 1);
		if (uses & CORDON_LEARN_ABSENT)
			cut_missing(&learned->policy->root, path);
		cordon_policy_decide(learned->policy, path,
				     uses & (CORDON_LEARN_WRITTEN | CORDON_LEARN_MADE) ? CORDON_OP_WRITE
										       : CORDON_OP_READ,
				     &decision);
		if (decision.verdict == CORDON_DENY)
			set = learned->refused;
		r = cordon_learn_add(set, path, uses);
	}
	learned->truncated |= r < 0;
}

void cordon_learned_host(struct cordon_learned *learned, const char *rule, bool used)
{
	autofree char *tcp = NULL;
	struct cordon_net_rule parsed;
	struct cordon_net_list *list = used ? &learned->used : &learned->hosts;

	/* A host that was reached by a rule with /tcp needs one with it again. */
	if (used && cordon_net_rule_parse(rule, strlen(rule), &parsed, NULL) == 0) {
		const struct cordon_net_rule *by = parsed.kind == CORDON_NET_KIND_ADDRESS
							   ? cordon_net_list_find_address(&learned->policy->net,
											  &parsed.address, parsed.port)
							   : cordon_net_list_find(&learned->policy->net, parsed.name,
										  parsed.port);

		if (by && by->tcp && asprintf(&tcp, "%s/tcp", rule) < 0)
			tcp = NULL;
	}
	learned->truncated |= cordon_net_list_parse(list, tcp ? tcp : rule, NULL, NULL) < 0;
}
