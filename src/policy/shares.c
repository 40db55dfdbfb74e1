/* SPDX-License-Identifier: Apache-2.0 */
/* Shares as part of a policy: adds them, and decides for paths in them. */
#include <fcntl.h>
#include <sys/stat.h>

#include "base/identity.h"
#include "base/path.h"
#include "base/setting.h"
#include "policy/shares.h"

static void free_share(struct cordon_policy_share *share)
{
	cordon_closep(&share->fd);
	free(share->source);
	free(share->named);
	free(share->given);
	free(share->link);
	free(share->target);
	free(share->in_root);
	free(share->where);
	free(share->lower);
	cordon_policy_free(share->policy);
}

void cordon_policy_drop_shares(struct cordon_policy *policy, size_t n_shares)
{
	while (policy->n_shares > n_shares)
		free_share(&policy->shares[--policy->n_shares]);
}

static const char *setting_of(bool home)
{
	return cordon_setting_name(home ? CORDON_SETTING_HOME : CORDON_SETTING_SHARE);
}

static char *name_of(const struct cordon_policy_share *share)
{
	struct cordon_buf text = CORDON_BUF(2 * CORDON_PATH_MAX);
	const char *what = share->git ? "the git directory" : setting_of(share->home);

	if (cordon_buf_addf(&text, "%s %s%s", what, share->source, share->read_only && !share->git ? ":ro" : "") < 0)
		cordon_buf_done(&text);
	return cordon_buf_steal(&text);
}

/* Finds the canonical path of the source and opens what is there, and finds out whether it is a directory. */
static int find_source(struct cordon_policy_share *share, const char *source, struct cordon_error *err)
{
	CORDON_UNCLEARED char path[CORDON_PATH_MAX];
	const char *setting = setting_of(share->home);
	struct stat st;

	if (source[0] != '/')
		return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "%s %s: the path must be absolute", setting, source);
	share->fd = cordon_resolve_open(source, path);
	if (share->fd < 0 || fstat(share->fd, &st) < 0 || (share->home && !S_ISDIR(st.st_mode)))
		return cordon_fail(err, -ENOENT, CORDON_KIND_NOT_FOUND, "%s %s: no such %s", setting, source,
				   share->home ? "directory" : "file or directory");
	share->is_directory = S_ISDIR(st.st_mode);
	share->source = strdup(path);
	return share->source ? 0 : cordon_fail_errno(err, -ENOMEM, "shares");
}

/* Finds the canonical path of a link itself, and where it leads. */
static int find_link(struct cordon_policy_share *share, const char *source, struct cordon_error *err)
{
	struct cordon_root slash = { .fd = -1, .path = "/" };
	CORDON_UNCLEARED char dir[CORDON_PATH_MAX], path[CORDON_PATH_MAX], text[CORDON_PATH_MAX];
	CORDON_UNCLEARED struct cordon_resolved found;
	const char *name = cordon_path_base(source);
	ssize_t n = -1;

	if (cordon_copy(dir, sizeof(dir), source, (size_t)(name - source)) == 0) {
		cordon_resolve(&slash, dir, &found);
		if (found.place == CORDON_PLACE_INSIDE && cordon_path_join("/", found.path, dir, sizeof(dir)) == 0 &&
		    cordon_path_join(dir, name, path, sizeof(path)) == 0)
			n = readlink(path, text, sizeof(text) - 1);
	}
	if (n <= 0)
		return cordon_fail(err, -ENOENT, CORDON_KIND_NOT_FOUND, "%s: no such link", source);
	text[n] = '\0';
	share->source = strdup(path);
	share->link = strdup(text);
	return share->source && share->link ? 0 : cordon_fail_errno(err, -ENOMEM, "shares");
}

static int find_target(struct cordon_policy_share *share, const struct cordon_policy *policy, const char *target,
		       const char *at, struct cordon_error *err)
{
	CORDON_UNCLEARED char clean[CORDON_PATH_MAX], root[CORDON_PATH_MAX];
	const char *rest;

	if (target && strncmp(target, "~/", 2) == 0) {
		if (cordon_path_clean(target, clean, sizeof(clean)) < 0 || !clean[1])
			return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "%s: the path is too long or holds '..'",
					   share->where);
		return (share->target = strdup(clean)) ? 0 : cordon_fail_errno(err, -ENOMEM, "shares");
	}
	if (target && target[0] != '/')
		return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "%s: the path inside must be absolute",
				   share->where);
	if (cordon_path_clean(target ? target : share->source, clean, sizeof(clean)) < 0 ||
	    cordon_path_clean(at ? at : policy->root.path, root, sizeof(root)) < 0)
		return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "%s: the path is too long or holds '..'",
				   share->where);
	if (!(share->target = strdup(clean)))
		return cordon_fail_errno(err, -ENOMEM, "shares");
	if (!cordon_path_within(clean, root) || cordon_streq(clean, root))
		return 0;
	rest = clean + strlen(root);
	share->in_root = strdup(rest + strspn(rest, "/"));
	return share->in_root ? 0 : cordon_fail_errno(err, -ENOMEM, "shares");
}

static int make_policy(struct cordon_policy_share *share, struct cordon_error *err)
{
	int r = cordon_policy_new(share->source, &share->policy, err);

	/* INVARIANT: what the policy judges is what the run mounts. */
	if (r == 0 && !cordon_same_object(share->fd, share->policy->root.fd))
		r = cordon_fail(err, -ESTALE, CORDON_KIND_CONFLICT, "%s: something else was just put in its place",
				share->where);
	if (r == 0)
		r = cordon_policy_add_grant(share->policy, "**",
					    share->read_only ? CORDON_ACCESS_READ : CORDON_ACCESS_WRITE, share->where,
					    err);
	return r;
}

static int protect_asked(struct cordon_policy_share *share, const struct cordon_share *ask, struct cordon_error *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && share->policy && i < ask->n_protect; i++)
		r = cordon_policy_add_protected(share->policy, ask->protect[i], share->where, false, err);
	return r;
}

static int fill(struct cordon_policy_share *share, const struct cordon_policy *policy, const struct cordon_share *ask,
		const char *at, struct cordon_error *err)
{
	int r = ask->kind == CORDON_SHARE_LINK ? find_link(share, ask->source, err)
					       : find_source(share, ask->source, err);

	if (r < 0)
		return r;
	if (ask->lower && !(share->lower = strdup(ask->lower)))
		return cordon_fail_errno(err, -ENOMEM, "shares");
	share->where = ask->where ? strdup(ask->where) : name_of(share);
	if (!share->where)
		return cordon_fail_errno(err, -ENOMEM, "shares");
	if (!share->home && !ask->target && share->kind != CORDON_SHARE_LINK &&
	    !cordon_streq(ask->source, share->source) && !(share->given = strdup(ask->source)))
		return cordon_fail_errno(err, -ENOMEM, "shares");
	if (!share->home && (r = find_target(share, policy, ask->target, at, err)) < 0)
		return r;
	r = share->is_directory ? make_policy(share, err) : 0;
	return r < 0 ? r : protect_asked(share, ask, err);
}

static int append(struct cordon_policy *policy, struct cordon_policy_share share, const struct cordon_share *ask,
		  const char *at, struct cordon_error *err)
{
	struct cordon_policy_share *shares;
	int r;

	if (policy->n_shares == CORDON_SHARES_MAX)
		return cordon_fail(err, -E2BIG, CORDON_KIND_LIMIT, "a policy has more than %d shares",
				   CORDON_SHARES_MAX);
	r = fill(&share, policy, ask, at, err);
	shares = r < 0 ? NULL : reallocarray(policy->shares, policy->n_shares + 1, sizeof(*shares));
	if (!shares) {
		free_share(&share);
		return r < 0 ? r : cordon_fail_errno(err, -ENOMEM, "shares");
	}
	policy->shares = shares;
	policy->shares[policy->n_shares++] = share;
	return 0;
}

int cordon_policy_add_share(struct cordon_policy *policy, const struct cordon_share *ask, bool home, const char *at,
			    struct cordon_error *err)
{
	struct cordon_policy_share share = { .kind = ask->kind,
					     .fd = -1,
					     .read_only = ask->read_only,
					     .home = home,
					     .own = ask->own,
					     .commits = ask->commits };

	return append(policy, share, ask, at, err);
}

int cordon_policy_add_git_share(struct cordon_policy *policy, const char *source, bool read_only,
				struct cordon_error *err)
{
	return append(policy, (struct cordon_policy_share){ .fd = -1, .read_only = read_only, .git = true },
		      &(struct cordon_share){ .source = source }, NULL, err);
}

static const struct cordon_policy_share *deepest(const struct cordon_policy *policy, const char *path, bool on_host,
						 const char **ret_rest)
{
	const struct cordon_policy_share *best = NULL;
	size_t len = 0;

	for (size_t i = 0; i < policy->n_shares; i++) {
		const char *top = on_host ? policy->shares[i].source : policy->shares[i].in_root;

		if (!top || !cordon_path_within(path, top) || (best && strlen(top) < len))
			continue;
		best = &policy->shares[i];
		len = strlen(top);
	}
	if (best)
		*ret_rest = path + len + strspn(path + len, "/");
	return best;
}

const struct cordon_policy_share *cordon_share_at(const struct cordon_policy *policy, const char *path,
						  const char **ret_rest)
{
	return deepest(policy, path, false, ret_rest);
}

const struct cordon_policy_share *cordon_share_of(const struct cordon_policy *policy, const char *host,
						  const char **ret_rest)
{
	return deepest(policy, host, true, ret_rest);
}

bool cordon_share_decide(const struct cordon_policy *policy, const char *path, cordon_op op, struct cordon_decision *ret)
{
	const char *rest = NULL;
	const struct cordon_policy_share *share = deepest(policy, path, path[0] == '/', &rest);
	size_t len = strnlen(path, sizeof(ret->resolved) - 1);

	if (!share)
		return false;
	if (share->policy) {
		cordon_policy_decide(share->policy, rest, op, ret);
	} else {
		ret->access = share->read_only ? CORDON_ACCESS_READ : CORDON_ACCESS_WRITE;
		ret->verdict = op == CORDON_OP_READ || !share->read_only ? CORDON_ALLOW : CORDON_DENY;
		ret->reason = CORDON_REASON_GRANT;
		ret->rule = share->source;
		ret->rule_where = share->where;
	}
	memmove(ret->resolved, path, len);
	ret->resolved[len] = '\0';
	return true;
}

bool cordon_share_leads(const struct cordon_policy *policy, const char *dir)
{
	for (size_t i = 0; i < policy->n_shares; i++) {
		const char *place = policy->shares[i].in_root;

		if (place && (cordon_path_within(place, dir) || cordon_path_within(dir, place)))
			return true;
	}
	return false;
}
