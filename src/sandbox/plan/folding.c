/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Refuses a boundary in a directory that folds names: one in which AGENTS.md and agents.md are one file. There a name
 * has more spellings than any list of ours, so no rule can hold it.
 *
 * A file system does not say whether it folds names: ext4 has a flag for each directory, XFS and ZFS an option when they
 * are made, and servers (FUSE, virtiofs, 9p, SMB, NFS) fold or don't as the far end likes. So each directory with a
 * boundary is asked for a name that it has, in another spelling. If it finds one that it does not list, it folds. This
 * only looks; it makes nothing.
 *
 * An agent of an earlier run may have made both spellings as names of their own: then both are listed, and only a
 * directory that tells them apart can do that. Where there is a choice, the name that we ask for is that of a boundary
 * or leads to one, because no agent of another run can take that away while we look.
 */
#include <ctype.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/arena.h"
#include "base/listing.h"
#include "base/path.h"
#include "base/resolve.h"
#include "sandbox/plan/plan.h"

#ifndef FS_CASEFOLD_FL
#define FS_CASEFOLD_FL 0x40000000
#endif

#define TRIES_MAX 64 /* entries of a directory that we try until one gives an answer */
#define SPELLED_MAX (NAME_MAX + 8)

typedef enum fold_answer { UNKNOWN, APART, FOLDS } fold_answer;

struct asked {
	const char *path; /* relative to the area */
	fold_answer answer;
	dev_t dev;
};

struct folding {
	struct cordon_plan *plan;
	const struct cordon_area *area;
	struct asked *asked;
	size_t n_asked, cap_asked;
	dev_t spelled_dev; /* where the spellings were tried that are the same in all directories of a file system */
	bool spelled;
	char name[NAME_MAX + 1], other[SPELLED_MAX]; /* two spellings of one name, when the answer is FOLDS */
};

static bool swap_case(const char *name, char ret[static SPELLED_MAX])
{
	bool any = false;
	size_t i = 0;

	for (; name[i]; i++) {
		unsigned char c = (unsigned char)name[i];

		any |= c < 0x80 && isalpha(c);
		ret[i] = (char)(c < 0x80 && isalpha(c) ? c ^ 0x20 : c);
	}
	ret[i] = '\0';
	return any;
}

/* The first ASCII letter as its full-width form, which compatibility forms of Unicode (NFKC, NFKD) make a plain letter. */
static bool widen(const char *name, char ret[static SPELLED_MAX])
{
	size_t at = 0, n = strlen(name);
	unsigned int wide;

	while (name[at] && !isalpha((unsigned char)name[at]))
		at++;
	if (!name[at] || n + 2 > NAME_MAX)
		return false;
	wide = 0xff21U + ((unsigned int)name[at] - 'A');
	memcpy(ret, name, at);
	ret[at] = (char)0xef;
	ret[at + 1] = (char)(0x80 | (wide >> 6 & 0x3f));
	ret[at + 2] = (char)(0x80 | (wide & 0x3f));
	memcpy(ret + at + 3, name + at + 1, n - at);
	return true;
}

/* The first letter of Latin-1 with an accent, as a letter and a combining mark (NFD). */
static bool decompose(const char *name, char ret[static SPELLED_MAX])
{
	/* Of U+00C0 to U+00FF: the letter, and the mark as '0' plus its distance from U+0300. */
	static const char letters[] = "AAAAAA-CEEEEIIII-NOOOOO--UUUUY--aaaaaa-ceeeeiiii-nooooo--uuuuy-y";
	static const char marks[] = "01238:-W01280128-301238--01281--01238:-W01280128-301238--01281-8";
	const char *at = strchr(name, 0xc3);
	size_t index = at && at[1] ? (unsigned char)at[1] - 0x80U : sizeof(letters);
	size_t n = strlen(name), before;

	if (index >= sizeof(letters) - 1 || letters[index] == '-' || n + 1 > NAME_MAX)
		return false;
	before = (size_t)(at - name);
	memcpy(ret, name, before);
	ret[before] = letters[index];
	ret[before + 1] = (char)0xcc;
	ret[before + 2] = (char)(0x80 + (marks[index] - '0'));
	memcpy(ret + before + 3, at + 2, n - before - 1);
	return true;
}

/* Whether the directory lists exactly this name. */
static bool lists(int dir, const char *name)
{
	autofd int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CORDON_UNCLEARED struct cordon_listing listing;
	const struct dirent64 *entry;

	if (fd < 0)
		return false;
	cordon_listing_init(&listing, fd);
	while ((entry = cordon_listing_next(&listing)))
		if (cordon_streq(entry->d_name, name))
			return true;
	return false;
}

static bool has(int dir, const char *name)
{
	struct stat st;

	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Asks a directory for another spelling of a name. The caller makes sure afterwards that the directory still has the name. */
static fold_answer ask(struct folding *f, int dir, const char *name, const char *other)
{
	if (!has(dir, other) || !has(dir, name) || (lists(dir, name) && lists(dir, other)))
		return APART;
	cordon_copy(f->name, sizeof(f->name), name, strlen(name));
	cordon_copy(f->other, sizeof(f->other), other, strlen(other));
	return FOLDS;
}

/* Asks for the spellings that a whole file system folds or does not: trailing dots and spaces, characters that some
 * ignore, the main stream of a file, forms of Unicode. */
static fold_answer ask_of_file_system(struct folding *f, int dir, const char *name)
{
	static const char *const ends[] = { ".", " ", "\xe2\x80\x8c", "::$DATA" };
	char other[SPELLED_MAX];

	for (size_t i = 0; i < CORDON_ARRAY_SIZE(ends); i++)
		if (strlen(name) + strlen(ends[i]) <= NAME_MAX) {
			(void)snprintf(other, sizeof(other), "%s%s", name, ends[i]);
			if (ask(f, dir, name, other) == FOLDS)
				return FOLDS;
		}
	if (widen(name, other) && ask(f, dir, name, other) == FOLDS)
		return FOLDS;
	return decompose(name, other) ? ask(f, dir, name, other) : APART;
}

/* Asks with one name, which the directory may have. */
static fold_answer ask_name(struct folding *f, int dir, dev_t dev, const char *name)
{
	char other[SPELLED_MAX];
	fold_answer answer;
	bool whole;

	if (strlen(name) > NAME_MAX || !swap_case(name, other))
		return UNKNOWN;
	answer = ask(f, dir, name, other);
	whole = answer == APART && (!f->spelled || f->spelled_dev != dev || strchr(name, 0xc3));
	if (whole)
		answer = ask_of_file_system(f, dir, name);
	if (answer == APART && !has(dir, name))
		return UNKNOWN; /* it has gone, or was never there */
	if (whole) {
		f->spelled = true;
		f->spelled_dev = dev;
	}
	return answer;
}

/* Asks with the names that the directory lists, until one gives an answer. */
static fold_answer ask_listed(struct folding *f, int dir, dev_t dev)
{
	CORDON_UNCLEARED struct cordon_listing listing;
	const struct dirent64 *entry;
	fold_answer answer = UNKNOWN;

	cordon_listing_init(&listing, dir);
	for (int i = 0; answer == UNKNOWN && i < TRIES_MAX && (entry = cordon_listing_next(&listing)); i++)
		answer = ask_name(f, dir, dev, entry->d_name);
	return answer;
}

/* What can be said of a directory that has no name to ask for. */
static fold_answer guess(int dir, const struct asked *above, dev_t dev)
{
	/* File systems that tell names apart, or have a flag where they don't. */
	static const long apart[] = { 0xef53, 0x9123683e, 0x01021994, 0xf2f52010, 0x794c7630, 0x858458f6, 0xca451a4e };
	unsigned int flags = 0;
	struct statfs fs;

	if (ioctl(dir, FS_IOC_GETFLAGS, &flags) == 0 && (flags & FS_CASEFOLD_FL))
		return FOLDS;
	if (fstatfs(dir, &fs) == 0)
		for (size_t i = 0; i < CORDON_ARRAY_SIZE(apart); i++)
			if (fs.f_type == apart[i])
				return APART;
	return above && above->dev == dev ? above->answer : UNKNOWN;
}

/* Asks the directory above the root of an area for the name of the root. */
static void ask_above(struct folding *f, struct asked *ret)
{
	autofd int dir = openat(f->area->policy->root.fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct stat st;

	*ret = (struct asked){ .answer = UNKNOWN };
	if (dir < 0 || fstat(dir, &st) < 0)
		return;
	ret->dev = st.st_dev;
	ret->answer = ask_name(f, dir, st.st_dev, cordon_path_base(f->area->source));
}

static int refuse(const struct folding *f, const char *path, fold_answer answer, struct cordon_error *err)
{
	char host[CORDON_PATH_MAX];

	if (cordon_path_join(f->area->source, path, host, sizeof(host)) < 0)
		return cordon_fail_errno(err, -ENAMETOOLONG, "%s", path);
	if (answer == UNKNOWN) {
		cordon_fail(err, -EACCES, CORDON_KIND_POLICY_DENIED,
			    "can't tell whether %s folds names (AGENTS.md and agents.md as one file): it has none to ask for",
			    host);
		cordon_error_hint(err, "make a file there with a letter in its name");
		return -EACCES;
	}
	if (f->other[0])
		cordon_fail(err, -EACCES, CORDON_KIND_POLICY_DENIED,
			    "%s folds names, '%s' and '%s' are one file: no rule can hold a name there", host, f->name,
			    f->other);
	else
		cordon_fail(err, -EACCES, CORDON_KIND_POLICY_DENIED,
			    "%s folds names (it has the flag of chattr +F): no rule can hold a name there", host);
	cordon_error_hint(err,
			  "move the workspace to a directory that tells names apart, as ext4, XFS and btrfs usually do");
	return -EACCES;
}

static const struct asked *find_asked(const struct folding *f, const char *path, size_t len)
{
	for (size_t i = 0; i < f->n_asked; i++)
		if (strncmp(f->asked[i].path, path, len) == 0 && f->asked[i].path[len] == '\0')
			return &f->asked[i];
	return NULL;
}

/* The first `len` bytes of `path` are a directory, which has the name that follows unless `next` is empty. */
static int ask_dir(struct folding *f, const char *path, size_t len, const char *next, const struct asked *above,
		   struct cordon_error *err)
{
	CORDON_UNCLEARED char dir[CORDON_PATH_MAX], name[NAME_MAX + 1];
	struct asked found = { .answer = UNKNOWN };
	struct asked outside;
	autofd int fd = -1;
	struct stat st;

	if (cordon_copy(dir, sizeof(dir), path, len) < 0)
		return cordon_fail_errno(err, -ENAMETOOLONG, "%s", path);
	fd = cordon_open_beneath(f->area->policy->root.fd, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd == -EACCES) /* it can't be listed */
		fd = cordon_open_beneath(f->area->policy->root.fd, dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return 0; /* it has gone: the start will notice */
	found.dev = st.st_dev;
	if (*next && cordon_copy(name, sizeof(name), next, strcspn(next, "/")) == 0)
		found.answer = ask_name(f, fd, st.st_dev, name);
	if (found.answer == UNKNOWN)
		found.answer = ask_listed(f, fd, st.st_dev);
	if (found.answer == UNKNOWN && !above) {
		ask_above(f, &outside);
		above = &outside;
	}
	if (found.answer == UNKNOWN)
		found.answer = guess(fd, above, st.st_dev);
	if (found.answer != APART)
		return refuse(f, dir, found.answer, err);
	if (f->n_asked == f->cap_asked) {
		f->cap_asked = f->cap_asked ? 2 * f->cap_asked : 32;
		f->asked = cordon_arena_grow(f->plan->arena, f->asked, f->n_asked, f->cap_asked, sizeof(*f->asked));
	}
	found.path = cordon_arena_strdup(f->plan->arena, dir);
	if (!f->asked || !found.path)
		return cordon_fail_errno(err, -ENOMEM, "plan");
	f->asked[f->n_asked++] = found;
	return 0;
}

/* Asks every directory from the root of the area to the one in which a boundary stands or would appear. The first
 * `exists` bytes of its path are there. */
static int ask_on_the_way(struct folding *f, const char *path, size_t dir_len, size_t exists, struct cordon_error *err)
{
	const struct asked *above = NULL;
	int r = 0;

	for (size_t len = 0; r == 0;) {
		const struct asked *known = find_asked(f, path, len);
		const char *next = path + len + (len ? 1 : 0);

		if (!known) {
			r = ask_dir(f, path, len, len < exists ? next : "", above, err);
			known = find_asked(f, path, len);
		}
		above = known;
		if (len >= dir_len || !known)
			break;
		len = (size_t)(next - path) + strcspn(next, "/");
	}
	return r;
}

int cordon_plan_folding(struct cordon_plan *plan, struct cordon_error *err)
{
	int r = 0;

	for (size_t area = 0; r == 0 && area < plan->n_areas; area++) {
		struct folding f = { .plan = plan, .area = &plan->areas[area] };

		/* The lens judges by name everywhere. */
		if (area == 0 && plan->lens)
			r = ask_on_the_way(&f, "", 0, 0, err);
		for (size_t i = 0; r == 0 && i < plan->n_guards; i++) {
			const struct cordon_guard *guard = &plan->guards[i];
			const char *dir = guard->dir + strlen(f.area->at);
			size_t dir_len = strlen(dir + strspn(dir, "/"));

			if (guard->area == area)
				r = ask_on_the_way(&f, guard->path, dir_len,
						   guard->state == CORDON_GUARD_ABSENT ? dir_len : guard->len, err);
		}
	}
	return r;
}
