/* SPDX-License-Identifier: Apache-2.0 */
/* What the policy decides about names: rights, refusals, links, and directories that move. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>

#include "base/path.h"
#include "lens/lens.h"

static bool allowed(const struct lens *lens, const char *path, cordon_op op, struct cordon_decision *ret)
{
	uint64_t begun = lens->meter ? cordon_meter_now() : 0;

	cordon_policy_decide(lens->policy, path, op, ret);
	if (lens->meter)
		cordon_histogram_add(&lens->meter->decide, cordon_meter_now() - begun);
	return ret->verdict != CORDON_DENY;
}

enum lens_rights lens_judge(const struct lens *lens, const char *path)
{
	struct cordon_decision decision;

	if (allowed(lens, path, CORDON_OP_WRITE, &decision))
		return LENS_WRITE;
	if (allowed(lens, path, CORDON_OP_READ, &decision))
		return LENS_READ;
	return cordon_policy_leads(lens->policy, path) ? LENS_LEADS : LENS_HIDDEN;
}

bool lens_judge_forbidden(const struct lens *lens, const char *path)
{
	struct cordon_decision decision;

	return !allowed(lens, path, CORDON_OP_WRITE, &decision) &&
	       (decision.reason == CORDON_REASON_DENY || decision.reason == CORDON_REASON_PROTECTED);
}

/* Whether a protected path lies at or below the path. Such a directory must stay where it is, and only the host may
 * make it: a link would lead the protected path elsewhere. With `asked`, only paths that somebody asked for count. */
static bool holds_protected(const struct lens *lens, const char *path, bool asked)
{
	const struct cordon_policy *policy = lens->policy;

	for (size_t i = 0; i < policy->n_protected; i++) {
		const struct cordon_protected *protected = &policy->protected_paths[i];

		if (asked && protected->by_default)
			continue;
		if (cordon_path_within(protected->path, path) ||
		    (protected->target && cordon_path_within(protected->target, path)))
			return true;
	}
	return false;
}

bool lens_judge_leads_write(const struct lens *lens, const char *path)
{
	return cordon_policy_leads_write(lens->policy, path);
}

int lens_judge_change(const struct lens *lens, const char *path, bool directory, enum lens_change change)
{
	static const int protected_answer[] = {
		[LENS_CREATE] = -EACCES,   [LENS_REMOVE] = -EBUSY,     [LENS_MODIFY] = -EROFS,
		[LENS_MAKE_DIR] = -EACCES, [LENS_REMOVE_DIR] = -EBUSY,
	};
	struct cordon_decision decision;
	bool write = allowed(lens, path, CORDON_OP_WRITE, &decision);

	/* An empty directory of the built-in list (.github) may come and go: the names below it are judged for
	 * themselves. */
	if (decision.reason == CORDON_REASON_PROTECTED ||
	    (change != LENS_MODIFY && holds_protected(lens, path, change == LENS_MAKE_DIR || change == LENS_REMOVE_DIR)))
		return protected_answer[change];
	if (write || (directory && change != LENS_MODIFY && lens_judge_leads_write(lens, path)))
		return 0;
	return lens_judge(lens, path) == LENS_READ ? -EROFS : -EACCES;
}

/* Adds the names of a path to an absolute one, taken literally. */
static size_t add_names(const char *text, char *path, size_t len)
{
	for (size_t n; *text; text += n + (text[n] == '/')) {
		n = strcspn(text, "/");
		if (n == 0 || (n == 1 && text[0] == '.'))
			continue;
		if (n == 2 && text[0] == '.' && text[1] == '.') {
			while (len > 0 && path[--len] != '/')
				;
			continue;
		}
		path[len++] = '/';
		memcpy(path + len, text, n);
		len += n;
	}
	return len;
}

/* Where the text of a link leads, taken literally: an absolute path, "" for the root directory. */
static void literal_path(const struct lens *lens, const char *joined, char ret[static 2 * CORDON_PATH_MAX])
{
	size_t len = joined[0] == '/' ? 0 : add_names(lens->policy->root.path, ret, 0);

	ret[add_names(joined, ret, len)] = '\0';
}

/* Whether the text of a link, taken literally, is a name that the run may know. */
static bool known_by_text(const struct lens *lens, const char *joined)
{
	const char *root = lens->policy->root.path;
	char path[2 * CORDON_PATH_MAX];
	size_t n = strlen(root);

	literal_path(lens, joined, path);
	return cordon_path_within(path, root) && lens_judge(lens, path + n + (path[n] == '/')) != LENS_HIDDEN;
}

/* Whether the run has file systems of its own there. To us the same text means something else: /proc/self is
 * ourselves. */
static bool is_private(const struct lens *lens, const char *joined)
{
	char path[2 * CORDON_PATH_MAX];

	literal_path(lens, joined, path);
	return cordon_path_within(path, "/proc") || cordon_path_within(path, "/dev");
}

/* Puts the text of a link behind the directory of the link. It uses the text that was read before, and does not read
 * it again: so we judge what the kernel will follow. False when the result is too long. */
static bool join_target(const char *path, const char *target, char ret[static 2 * CORDON_PATH_MAX])
{
	const char *base = cordon_path_base(path);
	int n = snprintf(ret, 2 * CORDON_PATH_MAX, "%.*s%s", target[0] == '/' ? 0 : (int)(base - path), path, target);

	return n >= 0 && n < CORDON_PATH_MAX;
}

bool lens_judge_resolve(const struct lens *lens, const char *path, const char *target, struct cordon_resolved *ret)
{
	char joined[2 * CORDON_PATH_MAX];

	if (!join_target(path, target, joined))
		return false;
	cordon_resolve(&lens->policy->root, joined, ret);
	return true;
}

/* Whether the run sees this path outside the root without the lens. */
static bool is_shown(const struct lens *lens, const char *path)
{
	for (const char *shown = lens->shown.data, *end = shown + lens->shown.len; shown < end;
	     shown += strlen(shown) + 1)
		if (cordon_path_within(path, shown))
			return true;
	return false;
}

/* Whether the link at this path may lead to what the run can read anyway: its name need not be in scope, but nobody may
 * have denied it. */
static bool may_lead_out(const struct lens *lens, const char *path)
{
	return lens_judge(lens, path) >= LENS_READ || !lens_judge_forbidden(lens, path);
}

bool lens_judge_link(const struct lens *lens, const char *path, const char *target)
{
	struct cordon_resolved resolved;
	struct cordon_decision decision;
	char joined[2 * CORDON_PATH_MAX];
	autofd int fd = -1;

	if (!join_target(path, target, joined))
		return false;
	/* The kernel follows such a link inside. Where it leads back into the view, it asks for every name on the
	 * way. */
	if (is_private(lens, joined))
		return may_lead_out(lens, path);
	cordon_resolve(&lens->policy->root, joined, &resolved);
	/* A link that leads in a circle leads nowhere. The kernel will find that out: it asks for every name on the
	 * way, and we judge each. */
	if (resolved.place == CORDON_PLACE_UNRESOLVABLE)
		return known_by_text(lens, joined);
	cordon_policy_judge(lens->policy, &resolved, CORDON_OP_READ, &decision);
	if (decision.verdict != CORDON_DENY)
		return true;
	/* The kernel follows the link in the run's own tree (venv/bin/python -> /usr/bin/python3). */
	if (resolved.place == CORDON_PLACE_OUTSIDE && is_shown(lens, resolved.path))
		return may_lead_out(lens, path);
	if (resolved.place != CORDON_PLACE_INSIDE || !cordon_policy_leads(lens->policy, resolved.path))
		return false;
	/* The target leads to something granted only if it is a directory, or may become one. */
	if (resolved.exists)
		fd = cordon_open_beneath(lens->root_fd, resolved.path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return !resolved.exists || fd >= 0;
}

/* True when this part of the policy grants write access to everything at and below the path. */
static bool part_uniform(const struct cordon_policy *part, const char *path)
{
	for (size_t i = 0; i < part->n_grants; i++)
		if (part->grants[i].access != CORDON_ACCESS_WRITE && cordon_pattern_leads(part->grants[i].pattern, path))
			return false;
	/* In permissive mode, or without a scope, only the rules above refuse anything. */
	if (part->mode == CORDON_MODE_PERMISSIVE || !cordon_policy_has_scope(part))
		return true;
	for (size_t i = 0; i < part->n_grants; i++) {
		const struct cordon_pattern *pattern = part->grants[i].pattern;

		for (size_t k = 0; k < cordon_pattern_alternatives(pattern); k++) {
			const char *literal = cordon_pattern_literal(pattern, k);

			if (part->grants[i].access == CORDON_ACCESS_WRITE && literal && cordon_path_within(path, literal))
				return true;
		}
	}
	return false;
}

/* The same for the whole policy. Then nobody needs to look at what lies below the path. */
bool lens_judge_uniform(const struct lens *lens, const char *path)
{
	const struct cordon_policy *part;
	struct cordon_decision decision;

	if (!allowed(lens, path, CORDON_OP_WRITE, &decision) || holds_protected(lens, path, false))
		return false;
	for (size_t i = 0; (part = cordon_policy_part(lens->policy, i)); i++)
		if (!part_uniform(part, path))
			return false;
	return true;
}

/* How many entries and levels may still be judged before a directory is moved. */
struct budget {
	size_t entries, levels;
};

static int judge_below(struct lens *lens, int dir_fd, const char *name, const char *from, const char *to,
		       struct budget *left);

static int judge_entry(struct lens *lens, DIR *dir, const struct dirent *entry, const char *from, const char *to,
		       struct budget *left)
{
	char from_path[CORDON_PATH_MAX], to_path[CORDON_PATH_MAX];
	struct statx stx;
	bool directory;

	if (cordon_streq(entry->d_name, ".") || cordon_streq(entry->d_name, ".."))
		return 0;
	if (left->entries-- == 0 || lens_stat(dirfd(dir), entry->d_name, &stx) < 0 ||
	    cordon_path_join(from, entry->d_name, from_path, sizeof(from_path)) < 0 ||
	    cordon_path_join(to, entry->d_name, to_path, sizeof(to_path)) < 0)
		return -EXDEV;
	directory = S_ISDIR(stx.stx_mode);
	if (lens_judge_change(lens, from_path, directory, LENS_REMOVE) < 0 ||
	    lens_judge_change(lens, to_path, directory, LENS_CREATE) < 0 || !lens_known(lens, from_path, &stx))
		return -EXDEV;
	return directory ? judge_below(lens, dirfd(dir), entry->d_name, from_path, to_path, left) : 0;
}

static int judge_below(struct lens *lens, int dir_fd, const char *name, const char *from, const char *to,
		       struct budget *left)
{
	int fd = left->levels ? openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
	const struct dirent *entry;
	DIR *dir;
	int r;

	if (fd < 0)
		return -EXDEV;
	dir = fdopendir(fd);
	if (!dir) {
		close(fd);
		return -ENOMEM;
	}
	left->levels--;
	do {
		errno = 0;
		entry = readdir(dir);
		/* If the directory cannot be read to its end, we do not know the rest of it. */
		r = entry ? judge_entry(lens, dir, entry, from, to, left) : errno ? -EXDEV : 0;
	} while (r == 0 && entry);
	left->levels++;
	closedir(dir);
	return r;
}

int lens_judge_move(struct lens *lens, int dir_fd, const char *name, const char *from, const char *to)
{
	struct budget left = { .entries = LENS_MOVE_MAX, .levels = LENS_MOVE_LEVELS };

	if (lens_judge_uniform(lens, from) && lens_judge_uniform(lens, to))
		return 0;
	return judge_below(lens, dir_fd, name, from, to, &left);
}

/* Adds a protected path unless it is the root itself: a link that leads to the root must not make the whole
 * workspace read-only. */
static int protect(struct lens *lens, const char *path, const char *where, struct cordon_error *err)
{
	return *path ? cordon_policy_add_protected(lens->policy, path, where, true, err) : 0;
}

/* Resolves the directories before the last name of `path` (relative or absolute) and protects the result. When that
 * is a link, puts its target into `path` and returns 1. Returns 0 when there is nothing more to follow. */
static int protect_step(struct lens *lens, char path[static CORDON_PATH_MAX], const char *where,
			struct cordon_error *err)
{
	char dir[CORDON_PATH_MAX], real[CORDON_PATH_MAX], target[CORDON_PATH_MAX], next[2 * CORDON_PATH_MAX];
	const char *base = cordon_path_base(path);
	struct cordon_resolved resolved;
	autofd int fd = -1;
	ssize_t n;
	int r, len;

	if (cordon_copy(dir, sizeof(dir), path, (size_t)(base - path)) < 0)
		return 0;
	if (!*base || cordon_streq(base, ".") || cordon_streq(base, "..")) {
		cordon_resolve(&lens->policy->root, path, &resolved);
		return resolved.place == CORDON_PLACE_INSIDE ? protect(lens, resolved.path, where, err) : 0;
	}
	cordon_resolve(&lens->policy->root, *dir ? dir : ".", &resolved);
	if (resolved.place != CORDON_PLACE_INSIDE || cordon_path_join(resolved.path, base, real, sizeof(real)) < 0)
		return 0;
	r = protect(lens, real, where, err);
	if (r < 0)
		return r;
	fd = cordon_open_beneath(lens->root_fd, real, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	n = fd < 0 ? -1 : readlinkat(fd, "", target, sizeof(target) - 1);
	if (n <= 0)
		return 0;
	target[n] = '\0';
	len = snprintf(next, sizeof(next), "%s%s%s", target[0] == '/' ? "" : resolved.path,
		       target[0] == '/' || !*resolved.path ? "" : "/", target);
	if (len < 0 || len >= CORDON_PATH_MAX)
		return 0;
	memcpy(path, next, (size_t)len + 1);
	return 1;
}

static int protect_links(struct lens *lens, const char *protected_path, const char *where, struct cordon_error *err)
{
	char path[CORDON_PATH_MAX], clean[CORDON_PATH_MAX];

	if (cordon_copy(path, sizeof(path), protected_path, strlen(protected_path)) < 0)
		return 0;
	for (unsigned int i = 0; i < CORDON_LINKS_MAX; i++) {
		int r = protect_step(lens, path, where, err);

		if (r <= 0)
			return r;
		/* Links to directories on the way are protected as ancestors of the path as it is written. */
		if (path[0] != '/' && cordon_path_clean(path, clean, sizeof(clean)) == 0)
			r = protect(lens, clean, where, err);
		if (r < 0)
			return r;
	}
	return 0;
}

int lens_judge_prepare(struct lens *lens, struct cordon_error *err)
{
	size_t n = lens->policy->n_protected;

	for (size_t i = 0; i < n; i++) {
		/* Copy the pointers: the array moves when it grows. */
		const char *path = lens->policy->protected_paths[i].path;
		const char *where = lens->policy->protected_paths[i].where;
		int r = protect_links(lens, path, where, err);

		if (r < 0)
			return r;
	}
	return 0;
}
