/* SPDX-License-Identifier: Apache-2.0 */
/* Judges what comes out of a view. */
#include "view/judge.h"
#include "base/path.h"
#include "base/text.h"

/* Characters that HFS+ ignores in names, which git knows, too. */
static bool is_ignored(uint32_t c)
{
	return (c >= 0x200c && c <= 0x200f) || (c >= 0x202a && c <= 0x202e) || (c >= 0x206a && c <= 0x206f) ||
	       c == 0xfeff;
}

static char lower(char c)
{
	return (char)(c >= 'A' && c <= 'Z' ? c | 0x20 : c);
}

bool cordon_judge_is_git_twin(const char *name, size_t n)
{
	static const char *const twins[] = { ".git", "git~1" };
	char folded[8];
	size_t at = 0, used = 0;

	if (n == 4 && memcmp(name, ".git", 4) == 0)
		return false; /* itself; the policy judges it */
	while (at < n) {
		size_t size = cordon_utf8_char(name + at, n - at);

		if (size > 1 && is_ignored(cordon_utf8_decode(name + at, size))) {
			at += size;
			continue;
		}
		/* Windows ends a name at a colon, and drops dots and blanks at the end. */
		if (name[at] == ':')
			break;
		if (used < sizeof(folded))
			folded[used++] = lower(name[at]);
		else if (name[at] != '.' && name[at] != ' ')
			return false;
		at++;
	}
	while (used > 0 && (folded[used - 1] == '.' || folded[used - 1] == ' '))
		used--;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(twins); i++)
		if (used == strlen(twins[i]) && memcmp(folded, twins[i], used) == 0)
			return true;
	return false;
}

static bool has_git_twin(const char *path)
{
	for (const char *at = path;; at++) {
		size_t n = strcspn(at, "/");

		if (cordon_judge_is_git_twin(at, n))
			return true;
		at += n;
		if (!*at)
			return false;
	}
}

/* The protected path that lies below `path`, or NULL. */
static const char *protected_below(const struct cordon_policy *policy, const char *path)
{
	for (size_t i = 0; i < policy->n_protected; i++) {
		const struct cordon_protected *held = &policy->protected_paths[i];

		if (cordon_path_within(held->path, path) && !cordon_streq(held->path, path))
			return held->path;
		if (held->target && cordon_path_within(held->target, path) && !cordon_streq(held->target, path))
			return held->target;
	}
	return NULL;
}

const char *cordon_judge_below(const struct cordon_policy *policy, const char *path)
{
	const char *below = protected_below(policy, path);

	for (size_t i = 0; !below && i < policy->n_grants; i++) {
		const struct cordon_grant *grant = &policy->grants[i];

		for (size_t k = 0;
		     grant->access != CORDON_ACCESS_WRITE && k < cordon_pattern_alternatives(grant->pattern); k++) {
			const char *literal = cordon_pattern_literal(grant->pattern, k);

			if (literal && cordon_path_within(literal, path) && !cordon_streq(literal, path))
				below = literal;
		}
	}
	return below;
}

const char *cordon_judge_change(const struct cordon_policy *policy, const struct cordon_delta_change *change,
				struct cordon_arena *arena, bool *ret_warned)
{
	struct cordon_decision decision;
	const char *below;

	*ret_warned = false;
	cordon_policy_decide(policy, change->path, CORDON_OP_WRITE, &decision);
	if (S_ISDIR(change->new.mode) && change->kind != CORDON_DELTA_DELETED && decision.verdict != CORDON_ALLOW &&
	    cordon_policy_leads_write(policy, change->path))
		decision.verdict = CORDON_ALLOW; /* a directory on the way to what may be written */
	if (decision.verdict == CORDON_DENY)
		return cordon_arena_printf(arena, "%s%s%s", cordon_reason_name(decision.reason),
					   decision.rule ? ": " : "", decision.rule ? decision.rule : "");
	*ret_warned = decision.verdict == CORDON_WARN;
	if (has_git_twin(change->path))
		return "a twin of .git";
	if (change->kind == CORDON_DELTA_DELETED)
		below = protected_below(policy, change->path);
	else
		below = S_ISDIR(change->new.mode) ? NULL : cordon_judge_below(policy, change->path);
	return below ? cordon_arena_printf(arena, "%s below it is protected", below) : NULL;
}
