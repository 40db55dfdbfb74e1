/* SPDX-License-Identifier: Apache-2.0 */
/* Protects the places in the root that links in protected directories lead to. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/path.h"
#include "base/setting.h"
#include "protect/links.h"

struct search {
	struct cordon_policy *policy;
	size_t entries;
	const char *top; /* the protected directory that is being searched */
	bool by_default; /* nobody asked for it */
	struct cordon_error *err;
};

static int too_large(const struct search *s)
{
	cordon_fail(s->err, -E2BIG, CORDON_KIND_LIMIT,
		    "protected path %s is too large to be searched for symbolic links", s->top);
	if (s->by_default)
		cordon_error_hint(s->err, "leave it unprotected with %s '%s', or choose a root that does not hold it",
				  cordon_setting_name(CORDON_SETTING_UNPROTECT), s->top);
	else
		cordon_error_hint(s->err, "protect the files that matter instead of the whole directory");
	return -E2BIG;
}

static bool is_protected(const struct cordon_policy *policy, const char *path)
{
	for (size_t i = 0; i < policy->n_protected; i++) {
		const struct cordon_protected *known = &policy->protected_paths[i];

		if (cordon_path_within(path, known->path) || (known->target && cordon_path_within(path, known->target)))
			return true;
	}
	return false;
}

/* Whether a mount can protect what is at a resolved path. A missing name can be protected, too: nobody can make it. */
static bool can_be_protected(const struct cordon_policy *policy, const char *path)
{
	autofd int fd = cordon_open_beneath(policy->root.fd, path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	return fd < 0 || fstat(fd, &st) < 0 || S_ISREG(st.st_mode) || S_ISDIR(st.st_mode);
}

static int protect(struct search *s, const char *path)
{
	char where[CORDON_PATH_MAX + 64];

	if (is_protected(s->policy, path))
		return 0;
	snprintf(where, sizeof(where), "a link in %s leads here", s->top);
	return cordon_policy_add_protected(s->policy, path, where, true, s->err);
}

/* Protects a link that was met. The last link of a path is protected with what it leads to. A link on the way is
 * protected as part of the path that leads through it, because not all of the directory behind it is meant. */
static int on_link(void *data, const char *link, const char *rest)
{
	CORDON_UNCLEARED char clean[CORDON_PATH_MAX], path[CORDON_PATH_MAX];

	if (cordon_path_clean(rest, clean, sizeof(clean)) < 0 || cordon_path_join(link, clean, path, sizeof(path)) < 0)
		return protect(data, link);
	return protect(data, path);
}

/* Follows one link to its end. Protects the links on the way as links, so that nobody can make them lead elsewhere. */
static int follow(struct search *s, const char *link)
{
	CORDON_UNCLEARED struct cordon_resolved end;
	int r = cordon_resolve_links(&s->policy->root, link, on_link, s, &end);

	if (r < 0)
		return r;
	/* A link to the root or to a directory above itself would make everything read-only. */
	if (end.place != CORDON_PLACE_INSIDE || cordon_path_within(s->top, end.path) ||
	    !can_be_protected(s->policy, end.path))
		return 0;
	return protect(s, end.path);
}

/* `dir` is the path of `fd`, which this function closes. */
static int search_dir(struct search *s, int fd, const char *dir, unsigned int depth)
{
	DIR *stream = fdopendir(fd);
	int r = 0;

	if (!stream) {
		close(fd);
		return cordon_fail_errno(s->err, -ENOMEM, "cannot list protected path %s", dir);
	}
	for (struct dirent *entry; r == 0 && (entry = readdir(stream));) {
		CORDON_UNCLEARED char path[CORDON_PATH_MAX];
		unsigned char type = entry->d_type;
		struct stat st;

		if (cordon_streq(entry->d_name, ".") || cordon_streq(entry->d_name, ".."))
			continue;
		if (++s->entries > CORDON_PROTECT_LINKS_ENTRIES_MAX || depth > CORDON_PROTECT_LINKS_DEPTH_MAX ||
		    cordon_path_join(dir, entry->d_name, path, sizeof(path)) < 0) {
			r = too_large(s);
			break;
		}
		if (type == DT_UNKNOWN && fstatat(dirfd(stream), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
			type = (unsigned char)IFTODT(st.st_mode);
		if (type == DT_LNK) {
			r = follow(s, path);
		} else if (type == DT_DIR) {
			int sub = openat(dirfd(stream), entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

			if (sub >= 0)
				r = search_dir(s, sub, path, depth + 1);
		}
	}
	closedir(stream);
	return r;
}

/* Whether the directory lies in an earlier protected path, and so was searched already. */
static bool seen(const struct cordon_policy *policy, size_t i, const char *dir)
{
	for (size_t j = 0; j < i; j++) {
		const struct cordon_protected *other = &policy->protected_paths[j];

		if (cordon_path_within(dir, other->target ? other->target : other->path))
			return true;
	}
	return false;
}

int cordon_protect_links_add(struct cordon_policy *policy, struct cordon_error *err)
{
	struct search s = { .policy = policy, .err = err };
	int r = 0;

	/* What is found is added at the end of the array, and searched in its turn. */
	for (size_t i = 0; r == 0 && i < policy->n_protected; i++) {
		const struct cordon_protected *item = &policy->protected_paths[i];
		CORDON_UNCLEARED char dir[CORDON_PATH_MAX];
		int fd;

		if (!item->is_dir && !item->target)
			continue; /* true for nearly all paths; every start of a run comes through here */
		/* Copy the path: the array moves when it grows. */
		if (cordon_copy(dir, sizeof(dir), item->path, strlen(item->path)) < 0)
			continue;
		s.top = dir;
		s.by_default = item->by_default;
		if (item->target) {
			r = follow(&s, dir);
			if (r < 0)
				break;
			item = &policy->protected_paths[i];
			if (cordon_copy(dir, sizeof(dir), item->target, strlen(item->target)) < 0)
				continue;
		}
		if (!*dir || seen(policy, i, dir))
			continue;
		fd = cordon_open_beneath(policy->root.fd, dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd >= 0)
			r = search_dir(&s, fd, dir, 0);
	}
	return r;
}
