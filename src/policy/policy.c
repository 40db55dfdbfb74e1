/* SPDX-License-Identifier: Apache-2.0 */
/* The policy as data: makes one, adds rules to it, frees it. */
#include <fcntl.h>
#include <sys/stat.h>

#include "base/path.h"
#include "policy/folders.h"
#include "policy/policy.h"
#include "policy/shares.h"

int cordon_policy_new(const char *root, struct cordon_policy **ret_policy, struct cordon_error *err)
{
	struct cordon_policy *policy = calloc(1, sizeof(*policy));
	int r;

	if (!policy)
		return cordon_fail_errno(err, -ENOMEM, "cannot make a policy");
	r = cordon_root_open(root, &policy->root, err);
	if (r < 0) {
		free(policy);
		return r;
	}
	*ret_policy = policy;
	return 0;
}

static void free_grant(struct cordon_grant *grant)
{
	cordon_pattern_free(grant->pattern);
	free(grant->where);
}

static void free_protected(struct cordon_protected *path)
{
	free(path->path);
	free(path->target);
}

void cordon_policy_truncate(struct cordon_policy *policy, size_t n_grants, size_t n_protected)
{
	while (policy->n_grants > n_grants)
		free_grant(&policy->grants[--policy->n_grants]);
	while (policy->n_protected > n_protected)
		free_protected(&policy->protected_paths[--policy->n_protected]);
}

/* NOLINTNEXTLINE(misc-no-recursion): a fence or share has none of its own. */
struct cordon_policy *cordon_policy_free(struct cordon_policy *policy)
{
	if (!policy)
		return NULL;
	cordon_root_done(&policy->root);
	cordon_policy_truncate(policy, 0, 0);
	for (size_t i = 0; i < policy->n_fences; i++)
		cordon_policy_free(policy->fences[i]);
	free(policy->fences);
	free(policy->grants);
	free(policy->protected_paths);
	free(policy->folders);
	cordon_policy_drop_shares(policy, 0);
	free(policy->shares);
	cordon_net_list_done(&policy->net);
	cordon_net_list_done(&policy->fence_net);
	free(policy->fence_net_name);
	free(policy->name);
	free(policy);
	return NULL;
}

void cordon_policy_freep(struct cordon_policy **policy)
{
	*policy = cordon_policy_free(*policy);
}

void cordon_policy_set_mode(struct cordon_policy *policy, cordon_mode mode)
{
	policy->mode = policy->strict_fence ? CORDON_MODE_STRICT : mode;
	for (size_t i = 0; i < policy->n_fences; i++)
		policy->fences[i]->mode = policy->mode;
}

/* Makes room for one more element. The room doubles, so it is used up when n is 0 or a power of two. */
static void *grow(void *array, size_t n, size_t size)
{
	return n & (n - 1) ? array : reallocarray(array, n ? 2 * n : 1, size);
}

static char *copy_where(const char *where)
{
	return where ? strdup(where) : NULL;
}

int cordon_policy_add_grant(struct cordon_policy *policy, const char *pattern, cordon_access access, const char *where,
			    struct cordon_error *err)
{
	struct cordon_grant grant = { .access = access };
	struct cordon_grant *grants;
	int r;

	if ((unsigned int)access > CORDON_ACCESS_WRITE)
		return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "a grant has unknown rights");
	if (policy->n_grants == CORDON_GRANTS_MAX)
		return cordon_fail(err, -E2BIG, CORDON_KIND_LIMIT, "a policy has more than %d grants",
				   CORDON_GRANTS_MAX);
	/* A denial covers everything below it. Otherwise a directory could be denied and its content not. */
	r = access == CORDON_ACCESS_NONE ? cordon_pattern_compile_deep(pattern, &grant.pattern, err)
					 : cordon_pattern_compile(pattern, &grant.pattern, err);
	if (r < 0)
		return r;
	grant.edges = *cordon_pattern_edges(grant.pattern);
	grant.where = copy_where(where);
	grants = grow(policy->grants, policy->n_grants, sizeof(*grants));
	if (grants)
		policy->grants = grants;
	if (!grants || (where && !grant.where)) {
		free_grant(&grant);
		return cordon_fail_errno(err, -ENOMEM, "cannot add a grant");
	}
	grants[policy->n_grants++] = grant;
	return 0;
}

int cordon_policy_add_grant_in_all(struct cordon_policy *policy, const char *pattern, cordon_access access,
				   const char *where, struct cordon_error *err)
{
	int r = cordon_policy_has_scope(policy) ? cordon_policy_add_grant(policy, pattern, access, where, err) : 0;

	for (size_t i = 0; r == 0 && i < policy->n_fences; i++)
		if (cordon_policy_has_scope(policy->fences[i]))
			r = cordon_policy_add_grant(policy->fences[i], pattern, access, where, err);
	return r;
}

int cordon_policy_grant(struct cordon_policy *policy, const char *pattern, cordon_access access,
			struct cordon_error *err)
{
	return cordon_policy_add_grant(policy, pattern, access, NULL, err);
}

/*
 * Checks a protected path. A protected link also protects its target, which must lie inside the root. What exists
 * must be a file or a directory. `new` gets the target when it differs from `path`.
 */
static int look_at_protected(const struct cordon_policy *policy, const char *path, struct cordon_protected *new,
			     struct cordon_error *err)
{
	CORDON_UNCLEARED struct cordon_resolved resolved;
	struct stat st;
	autofd int fd = -1;

	/* In nearly all cases the path is missing or contains no link, and at most one system call shows it. Every
	 * start of a run comes through here. */
	new->missing = cordon_names_lack_first(policy->names, path) ||
		       (!strchr(path, '/') && fstatat(policy->root.fd, path, &st, AT_SYMLINK_NOFOLLOW) < 0 &&
			errno == ENOENT);
	if (!new->missing && cordon_names_lack(policy->names, path)) {
		new->missing = true;
		new->lies_in = strcspn(path, "/");
	}
	if (new->missing)
		return 0;
	fd = cordon_open_beneath(policy->root.fd, path, O_PATH | O_CLOEXEC);
	if (fd == -ENOENT || (fd >= 0 && fstat(fd, &st) == 0 && (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)))) {
		new->is_dir = fd >= 0 && S_ISDIR(st.st_mode);
		return 0;
	}
	cordon_resolve(&policy->root, path, &resolved);
	if (resolved.place == CORDON_PLACE_OUTSIDE && !new->by_default) {
		cordon_fail(err, -EXDEV, CORDON_KIND_POLICY_DENIED, "protected path %s leads out of the root, to %s",
			    path, resolved.path);
		cordon_error_hint(err, "replace the link by a file, or protect another path");
		return -EXDEV;
	}
	if (resolved.place != CORDON_PLACE_INSIDE)
		return 0;
	if (resolved.exists &&
	    fstatat(policy->root.fd, *resolved.path ? resolved.path : ".", &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode) && !S_ISLNK(st.st_mode))
		return cordon_fail(err, -EINVAL, CORDON_KIND_POLICY_DENIED,
				   "protected path %s is neither a file nor a directory", path);
	/* The link leads to the root or to a directory above itself. The plan refuses such a path if the user
	 * protects it; a default one needs no more protection. */
	if (cordon_streq(resolved.path, path) || cordon_path_within(path, resolved.path))
		return 0;
	new->target = strdup(resolved.path);
	return new->target ? 0 : cordon_fail_errno(err, -ENOMEM, "cannot protect %s", path);
}

int cordon_protected_clean(const char *path, char clean[static CORDON_PATH_MAX], struct cordon_error *err)
{
	int r = cordon_path_clean(path, clean, CORDON_PATH_MAX);

	if (r == -EXDEV)
		return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "protected path %s contains `..`", path);
	if (r < 0)
		return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "protected path %s is too long", path);
	if (clean[0] == '/') {
		r = cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "protected path %s is absolute", path);
		cordon_error_hint(err, "protected paths are relative to the root");
		return r;
	}
	if (!clean[0]) {
		r = cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "protected path `%s` names no file", path);
		cordon_error_hint(err, "to make the whole root read-only, grant it for reading");
		return r;
	}
	return 0;
}

/* Copies two texts at once, because there are many; the second may be NULL. */
static char *join_texts(const char *first, const char *second, char **ret_second)
{
	size_t n = strlen(first) + 1, n_second = second ? strlen(second) + 1 : 0;
	char *texts = malloc(n + n_second);

	*ret_second = NULL;
	if (!texts)
		return NULL;
	memcpy(texts, first, n);
	if (second)
		*ret_second = memcpy(texts + n, second, n_second);
	return texts;
}

static uint32_t sum_of(const char *path)
{
	uint32_t sum = 0;

	for (; *path; path++)
		sum = sum * 31 + (unsigned char)*path;
	return sum;
}

int cordon_policy_add_protected(struct cordon_policy *policy, const char *path, const char *where, bool by_default,
				struct cordon_error *err)
{
	struct cordon_protected new = { .by_default = by_default };
	struct cordon_protected *paths;
	CORDON_UNCLEARED char clean[CORDON_PATH_MAX];
	uint64_t *known;
	int r = cordon_protected_clean(path, clean, err);

	if (r < 0)
		return r;
	new.sum = sum_of(clean);
	known = &policy->protected_sums[new.sum / 64 % CORDON_ARRAY_SIZE(policy->protected_sums)];
	for (size_t i = 0; *known >> new.sum % 64 & 1 && i < policy->n_protected; i++) {
		if (policy->protected_paths[i].sum == new.sum && cordon_streq(policy->protected_paths[i].path, clean)) {
			/* A path that the user protects counts as such, even if it is also a default. */
			policy->protected_paths[i].by_default &= by_default;
			return 0;
		}
	}
	if (policy->n_protected == CORDON_PROTECTED_MAX)
		return cordon_fail(err, -E2BIG, CORDON_KIND_LIMIT, "a policy has more than %d protected paths",
				   CORDON_PROTECTED_MAX);
	r = look_at_protected(policy, clean, &new, err);
	if (r < 0)
		return r;
	new.path = join_texts(clean, where, &new.where);
	paths = grow(policy->protected_paths, policy->n_protected, sizeof(*paths));
	if (paths)
		policy->protected_paths = paths;
	if (!paths || !new.path) {
		free_protected(&new);
		return cordon_fail_errno(err, -ENOMEM, "cannot protect %s", path);
	}
	paths[policy->n_protected++] = new;
	*known |= (uint64_t)1 << new.sum % 64;
	return 0;
}

int cordon_policy_protect(struct cordon_policy *policy, const char *path, struct cordon_error *err)
{
	return cordon_policy_add_protected(policy, path, NULL, false, err);
}

int cordon_policy_add_folder(struct cordon_policy *policy, const char *folder, const char *where,
			     struct cordon_error *err)
{
	char path[CORDON_PATH_MAX];
	autofree char *pattern = NULL;
	int r = cordon_folder_resolve(&policy->root, folder, path, err);

	if (r < 0)
		return r;
	pattern = cordon_pattern_quote(path);
	if (!pattern)
		return cordon_fail_errno(err, -ENOMEM, "cannot grant folder %s", folder);
	return cordon_policy_add_grant(policy, pattern, CORDON_ACCESS_WRITE, where, err);
}

int cordon_policy_grant_folders(struct cordon_policy *policy, const char *folders, struct cordon_error *err)
{
	struct cordon_folders list;
	size_t before = policy->n_grants;
	struct cordon_buf text = CORDON_BUF(SIZE_MAX / 2);
	int r = cordon_folders_parse(folders, &list, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < list.n && r == 0; i++)
		r = cordon_policy_add_folder(policy, list.items[i], "workspace folders", err);
	cordon_folders_done(&list);
	if (r == 0 && (cordon_buf_addf(&text, "%s%s%s", policy->folders ? policy->folders : "",
				       policy->folders ? "," : "", folders) < 0))
		r = cordon_fail_errno(err, -ENOMEM, "cannot grant folders");
	if (r < 0) {
		cordon_policy_truncate(policy, before, policy->n_protected);
		cordon_buf_done(&text);
		return r;
	}
	free(policy->folders);
	policy->folders = cordon_buf_steal(&text);
	policy->reports_reads = true;
	return 0;
}

bool cordon_policy_has_scope(const struct cordon_policy *policy)
{
	for (size_t i = 0; i < policy->n_grants; i++)
		if (policy->grants[i].access != CORDON_ACCESS_NONE)
			return true;
	return false;
}

static bool part_has_write(const struct cordon_policy *policy)
{
	if (policy->read_only)
		return false;
	for (size_t i = 0; i < policy->n_grants; i++)
		if (policy->grants[i].access == CORDON_ACCESS_WRITE)
			return true;
	return !cordon_policy_has_scope(policy);
}

bool cordon_policy_has_write(const struct cordon_policy *policy)
{
	const struct cordon_policy *part;

	for (size_t i = 0; (part = cordon_policy_part(policy, i)); i++)
		if (!part_has_write(part))
			return false;
	return true;
}
