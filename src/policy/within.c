/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides whether a policy is no freer than another one.
 *
 * INVARIANT: the answer "yes" is never wrong. Patterns are not compared as sets of names: a pattern counts as inside
 * another one when that one covers the whole directory in which all matches lie, or when both have the same text. If
 * that does not decide it, the policy counts as freer.
 */
#include "base/path.h"
#include "policy/policy.h"
#include "policy/shares.h"

struct comparison {
	const struct cordon_policy *child, *parent;
	const char *prefix; /* path of the child's root in the parent's root, "" when they are the same */
	struct cordon_error *err;
};

static int freer(const struct comparison *c, const char *what, const char *rule)
{
	return cordon_fail(c->err, -EPERM, CORDON_KIND_POLICY_DENIED, "it would %s%s%s", what, *rule ? ": " : "", rule);
}

/* A path of the parent as the child names it: the rest behind the prefix; "" when the child's root lies in it; NULL
 * when it lies outside the child's root. */
static const char *seen_by_child(const struct comparison *c, const char *path)
{
	if (cordon_path_within(c->prefix, path))
		return "";
	if (!cordon_path_within(path, c->prefix))
		return NULL;
	path += strlen(c->prefix);
	return *path == '/' ? path + 1 : path;
}

/* The directory below which every match of a pattern lies. Where an escape makes the text differ from the names,
 * this is a directory further up, which is the safe answer. */
static void fixed_dir(const char *pattern, char ret[static CORDON_PATH_MAX])
{
	size_t special = strcspn(pattern, "*?[{\\"), end = 0;
	char dir[CORDON_PATH_MAX];

	for (size_t i = 0; i < special; i++)
		if (pattern[i] == '/')
			end = i;
	if (cordon_copy(dir, sizeof(dir), pattern, end) < 0 || cordon_path_clean(dir, ret, CORDON_PATH_MAX) < 0)
		ret[0] = '\0';
}

/* The directory or file at or below which all matches of alternative i lie. */
static const char *top_of(const struct cordon_pattern *pattern, size_t i, char dir[static CORDON_PATH_MAX])
{
	const char *literal = cordon_pattern_literal(pattern, i);

	if (literal)
		return literal;
	fixed_dir(cordon_pattern_text(pattern), dir);
	return dir;
}

/* Whether the pattern matches by the last name alone, at every level: it is `**` and one component behind it. */
static bool is_anywhere(const char *pattern)
{
	return strncmp(pattern, "**/", 3) == 0 && pattern[3] && !strpbrk(pattern + 3, "/{\\");
}

static bool denies_too(const struct comparison *c, const char *pattern)
{
	for (size_t i = 0; i < c->child->n_grants; i++)
		if (c->child->grants[i].access == CORDON_ACCESS_NONE &&
		    cordon_streq(cordon_pattern_text(c->child->grants[i].pattern), pattern))
			return !*c->prefix || is_anywhere(pattern);
	return false;
}

static bool denial_holds(const struct comparison *c, const struct cordon_pattern *pattern)
{
	char dir[CORDON_PATH_MAX];
	const char *seen;

	/* A denial covers everything below it, so a match of the prefix denies all of the child's root. */
	if (*c->prefix && cordon_pattern_match(pattern, c->prefix, NULL))
		return !cordon_policy_leads(c->child, "");
	if (*c->prefix && !cordon_pattern_leads(pattern, c->prefix))
		return true;
	if (denies_too(c, cordon_pattern_text(pattern)))
		return true;
	for (size_t i = 0; i < cordon_pattern_alternatives(pattern); i++) {
		seen = seen_by_child(c, top_of(pattern, i, dir));
		if (seen && cordon_policy_leads(c->child, seen))
			return false;
	}
	return true;
}

static bool protection_holds(const struct comparison *c, const char *path)
{
	const char *seen = path ? seen_by_child(c, path) : NULL;

	return !seen || cordon_policy_holds(c->child, seen);
}

/* The rights that a grant gives in its part of a policy. */
static cordon_access rights(const struct cordon_policy *part, const struct cordon_grant *grant)
{
	return part->read_only && grant->access == CORDON_ACCESS_WRITE ? CORDON_ACCESS_READ : grant->access;
}

/* The greatest specificity that is less than this one, so that "beyond" it means "at least this one". */
static bool just_below(const struct cordon_specificity *s, struct cordon_specificity *ret)
{
	*ret = *s;
	if (ret->literal_prefix) {
		ret->literal_prefix--;
	} else if (ret->literal_components) {
		ret->literal_components--;
		ret->literal_prefix = SIZE_MAX;
	} else {
		return false;
	}
	return true;
}

static bool reaches(const struct cordon_specificity *s, const struct cordon_specificity *bar)
{
	return s->literal_components > bar->literal_components ||
	       (s->literal_components == bar->literal_components && s->literal_prefix >= bar->literal_prefix);
}

/* Whether a grant with fewer rights could win somewhere at or below `dir` against one of specificity `bar`; a tie
 * goes to the stricter. */
static bool is_undercut(const struct cordon_policy *part, const char *dir, cordon_access wanted,
			const struct cordon_specificity *bar)
{
	struct cordon_specificity s, below;

	for (size_t i = 0; i < part->n_grants; i++) {
		const struct cordon_pattern *pattern = part->grants[i].pattern;

		if (part->grants[i].access == CORDON_ACCESS_NONE || rights(part, &part->grants[i]) >= wanted)
			continue;
		if ((cordon_pattern_match(pattern, dir, &s) && reaches(&s, bar)) ||
		    (just_below(bar, &below) ? cordon_pattern_leads_beyond(pattern, dir, &below)
					     : cordon_pattern_leads(pattern, dir)))
			return true;
	}
	return false;
}

/* Whether a part of the parent gives these rights to everything at and below `dir`, or to what the child's pattern
 * matches there. */
static bool part_gives(const struct cordon_policy *part, const char *dir, const char *pattern, cordon_access wanted)
{
	for (size_t i = 0; i < part->n_grants; i++) {
		const struct cordon_grant *grant = &part->grants[i];
		struct cordon_specificity bar = { 0 };

		if (grant->access == CORDON_ACCESS_NONE || rights(part, grant) < wanted)
			continue;
		if (pattern && cordon_streq(cordon_pattern_text(grant->pattern), pattern)) {
			/* Its specificity depends on the alternative that matches, so we assume the least possible. */
			if (!is_undercut(part, dir, wanted, &bar))
				return true;
		} else if (cordon_pattern_covers(grant->pattern, dir) &&
			   cordon_pattern_match(grant->pattern, dir, &bar)) {
			if (cordon_pattern_alternatives(grant->pattern) > 1)
				bar = (struct cordon_specificity){ 0 };
			if (!is_undercut(part, dir, wanted, &bar))
				return true;
		}
	}
	return false;
}

static bool grant_within(const struct comparison *c, const struct cordon_policy *child,
			 const struct cordon_grant *grant, const struct cordon_policy *parent)
{
	for (size_t i = 0; i < cordon_pattern_alternatives(grant->pattern); i++) {
		const char *literal = cordon_pattern_literal(grant->pattern, i);
		char dir[CORDON_PATH_MAX], place[CORDON_PATH_MAX];

		if (cordon_path_join(c->prefix, top_of(grant->pattern, i, dir), place, sizeof(place)) < 0 ||
		    !part_gives(parent, place, literal || *c->prefix ? NULL : cordon_pattern_text(grant->pattern),
				rights(child, grant)))
			return false;
	}
	return true;
}

static bool has_grant(const struct cordon_policy *part, const struct cordon_grant *grant)
{
	for (size_t i = 0; i < part->n_grants; i++)
		if (part->grants[i].access == grant->access &&
		    cordon_streq(cordon_pattern_text(part->grants[i].pattern), cordon_pattern_text(grant->pattern)))
			return true;
	return false;
}

/* Whether two parts have the same grants, in whatever order; denials are compared elsewhere. */
static bool same_grants(const struct cordon_policy *a, const struct cordon_policy *b)
{
	for (size_t i = 0; i < a->n_grants; i++)
		if (a->grants[i].access != CORDON_ACCESS_NONE && !has_grant(b, &a->grants[i]))
			return false;
	for (size_t i = 0; i < b->n_grants; i++)
		if (b->grants[i].access != CORDON_ACCESS_NONE && !has_grant(a, &b->grants[i]))
			return false;
	return true;
}

/* Whether a part of the child gives no more than a part of the parent. When not, *ret_rule is the grant that is freer,
 * or NULL when it is no single one. */
static bool part_within(const struct comparison *c, const struct cordon_policy *child,
			const struct cordon_policy *parent, const struct cordon_grant **ret_rule)
{
	*ret_rule = NULL;
	if (!*c->prefix && (child->read_only || !parent->read_only) && same_grants(child, parent))
		return true;
	if (child->mode == CORDON_MODE_PERMISSIVE) {
		/* The child can write everything except what its read grants cover. So the parent must have no read
		 * grant. */
		for (size_t i = 0; i < parent->n_grants; i++)
			if (parent->grants[i].access != CORDON_ACCESS_NONE &&
			    rights(parent, &parent->grants[i]) == CORDON_ACCESS_READ)
				return false;
		return cordon_policy_has_scope(parent) || !parent->read_only;
	}
	if (!cordon_policy_has_scope(parent)) {
		if (!parent->read_only || child->read_only)
			return true;
		for (size_t i = 0; i < child->n_grants; i++)
			if (child->grants[i].access == CORDON_ACCESS_WRITE)
				*ret_rule = &child->grants[i];
		return !*ret_rule && cordon_policy_has_scope(child);
	}
	if (!cordon_policy_has_scope(child))
		return part_gives(parent, c->prefix, NULL, child->read_only ? CORDON_ACCESS_READ : CORDON_ACCESS_WRITE);
	for (size_t i = 0; i < child->n_grants; i++) {
		if (child->grants[i].access == CORDON_ACCESS_NONE || grant_within(c, child, &child->grants[i], parent))
			continue;
		*ret_rule = &child->grants[i];
		return false;
	}
	return true;
}

/* Every part of the parent must have a part of the child that stays inside it. */
static int compare_scopes(const struct comparison *c)
{
	const struct cordon_policy *outer, *inner;

	for (size_t i = 0; (outer = cordon_policy_part(c->parent, i)); i++) {
		const struct cordon_grant *rule = NULL, *found;
		bool inside = false;

		for (size_t j = 0; !inside && (inner = cordon_policy_part(c->child, j)); j++) {
			inside = part_within(c, inner, outer, &found);
			if (j == 0)
				rule = found;
		}
		if (inside)
			continue;
		if (!rule)
			return freer(c, "reach more of the root", "");
		return freer(c, rule->access == CORDON_ACCESS_WRITE ? "write more" : "read more",
			     cordon_pattern_text(rule->pattern));
	}
	return 0;
}

/* Compares everything except the shares. */
static int compare(const struct cordon_policy *child, const struct cordon_policy *parent, struct cordon_error *err)
{
	struct comparison c = { .child = child, .parent = parent, .err = err };

	if (!cordon_path_within(child->root.path, parent->root.path))
		return freer(&c, "have another root", child->root.path);
	c.prefix = child->root.path + strlen(parent->root.path);
	while (*c.prefix == '/')
		c.prefix++;
	if (child->mode == CORDON_MODE_PERMISSIVE && parent->mode == CORDON_MODE_STRICT)
		return freer(&c, "be permissive", "");
	for (size_t i = 0; i < parent->n_grants; i++)
		if (parent->grants[i].access == CORDON_ACCESS_NONE && !denial_holds(&c, parent->grants[i].pattern))
			return freer(&c, "deny less", cordon_pattern_text(parent->grants[i].pattern));
	for (size_t i = 0; i < parent->n_protected; i++)
		if (!protection_holds(&c, parent->protected_paths[i].path) ||
		    !protection_holds(&c, parent->protected_paths[i].target))
			return freer(&c, "protect less", parent->protected_paths[i].path);
	return compare_scopes(&c);
}

/* Whether the parent has a share that shows the same, with no fewer rights and no more protection. */
static bool share_holds(const struct cordon_policy *parent, const struct cordon_policy_share *share)
{
	for (size_t i = 0; i < parent->n_shares; i++) {
		const struct cordon_policy_share *outer = &parent->shares[i];

		if (!cordon_path_within(share->source, outer->source) || (outer->read_only && !share->read_only))
			continue;
		if (share->read_only || !outer->policy ||
		    (share->policy && compare(share->policy, outer->policy, NULL) == 0))
			return true;
	}
	return false;
}

int cordon_policy_within(const struct cordon_policy *child, const struct cordon_policy *parent, struct cordon_error *err)
{
	const struct comparison c = { .child = child, .parent = parent, .err = err };

	for (size_t i = 0; i < child->n_shares; i++)
		if (!share_holds(parent, &child->shares[i]))
			return freer(&c, "show more of the host", child->shares[i].source);
	if (cordon_net_list_within(&child->net, &parent->net, err) < 0)
		return -EPERM;
	return compare(child, parent, err);
}
