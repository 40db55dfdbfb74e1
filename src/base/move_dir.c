/* SPDX-License-Identifier: Apache-2.0 */
/* Moves a directory entry by entry. May run between clone and exec. */
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/xattr.h>

#include "base/listing.h"
#include "base/move_dir.h"

#define OPEN_DIR (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define PASSES_MAX 64 /* over one directory, in which others may make entries meanwhile */
#define NAME_SIZE 256
#define ATTRIBUTES_SIZE 4096

struct budget {
	size_t entries;
	uint64_t bytes;
};

/* Renames without a trailing slash would follow a link that takes the place of the directory. */
static int copy_name(char ret[static NAME_SIZE], const char *name)
{
	size_t n = strlen(name);

	while (n > 1 && name[n - 1] == '/')
		n--;
	return cordon_copy(ret, NAME_SIZE, name, n);
}

static bool on_one_overlay(int from_fd, int to_fd)
{
	struct statx a, b;
	struct statfs fs;

	return fstatfs(from_fd, &fs) == 0 && fs.f_type == OVERLAYFS_SUPER_MAGIC &&
	       statx(from_fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &a) == 0 &&
	       statx(to_fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &b) == 0 && a.stx_mask & b.stx_mask & STATX_MNT_ID &&
	       a.stx_mnt_id == b.stx_mnt_id;
}

/* Whether everything in a directory fits into the budget. */
static bool fits(int dir, struct budget *budget, unsigned int depth)
{
	CORDON_UNCLEARED struct cordon_listing listing;
	const struct dirent64 *entry;

	if (depth == CORDON_MOVE_DEPTH_MAX)
		return false;
	cordon_listing_init(&listing, dir);
	while ((entry = cordon_listing_next(&listing))) {
		autofd int below = -1;
		struct stat st;
		uint64_t bytes;

		if (budget->entries-- == 0 || fstatat(dir, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			return false;
		bytes = (uint64_t)st.st_blocks * 512;
		if (S_ISREG(st.st_mode) && bytes > budget->bytes)
			return false;
		if (S_ISREG(st.st_mode))
			budget->bytes -= bytes;
		if (!S_ISDIR(st.st_mode))
			continue;
		below = openat(dir, entry->d_name, OPEN_DIR);
		if (below < 0 || !fits(below, budget, depth + 1))
			return false;
	}
	return true;
}

/* Copies what can be copied of the attributes; times come last. */
static void copy_attributes(int from, int to, const struct stat *st)
{
	const struct timespec times[2] = { st->st_atim, st->st_mtim };
	char names[ATTRIBUTES_SIZE], value[ATTRIBUTES_SIZE];
	ssize_t n = flistxattr(from, names, sizeof(names));

	for (ssize_t at = 0; at < n; at += (ssize_t)strlen(names + at) + 1) {
		ssize_t size = fgetxattr(from, names + at, value, sizeof(value));

		if (size >= 0)
			fsetxattr(to, names + at, value, (size_t)size, 0);
	}
	fchmod(to, st->st_mode & 07777);
	futimens(to, times);
}

static int move_tree(int from_fd, const char *from, int to_fd, const char *to, unsigned int depth);

/* Moves all entries of one directory to another. */
static int move_entries(int from, int to, unsigned int depth)
{
	for (unsigned int pass = 0; pass < PASSES_MAX; pass++) {
		CORDON_UNCLEARED struct cordon_listing listing;
		const struct dirent64 *entry;
		bool any = false;

		if (lseek(from, 0, SEEK_SET) < 0)
			return -errno;
		cordon_listing_init(&listing, from);
		while ((entry = cordon_listing_next(&listing))) {
			int r = renameat2(from, entry->d_name, to, entry->d_name, RENAME_NOREPLACE) < 0 ? -errno : 0;

			if (r == -EXDEV)
				r = move_tree(from, entry->d_name, to, entry->d_name, depth + 1);
			if (r < 0 && r != -ENOENT) /* somebody else removed it */
				return r;
			any |= r == 0;
		}
		if (!any)
			return 0;
	}
	return -EBUSY;
}

static int move_tree(int from_fd, const char *from, int to_fd, const char *to, unsigned int depth)
{
	autofd int source = openat(from_fd, from, OPEN_DIR);
	autofd int target = -1;
	struct stat st;
	int r;

	if (source < 0 || fstat(source, &st) < 0)
		return -errno;
	if (depth == CORDON_MOVE_DEPTH_MAX)
		return -EXDEV;
	if (mkdirat(to_fd, to, 0700) < 0 || (target = openat(to_fd, to, OPEN_DIR)) < 0)
		return -errno;
	/* A rename needs no right to write in the directory that is renamed. */
	if ((st.st_mode & 0700) != 0700)
		fchmod(source, (st.st_mode & 07777) | 0700);
	r = move_entries(source, target, depth);
	if (r == 0) {
		copy_attributes(source, target, &st);
		if (unlinkat(from_fd, from, AT_REMOVEDIR) == 0)
			return 0;
		r = -errno;
		fchmod(target, 0700);
	}
	move_entries(target, source, depth);
	if ((st.st_mode & 0700) != 0700)
		fchmod(source, st.st_mode & 07777);
	unlinkat(to_fd, to, AT_REMOVEDIR);
	return r;
}

int cordon_move_dir(int from_fd, const char *from, int to_fd, const char *to, unsigned int flags, bool *ret_too_large)
{
	struct budget budget = { CORDON_MOVE_ENTRIES_MAX, CORDON_MOVE_BYTES_MAX };
	int r = renameat2(from_fd, from, to_fd, to, flags) < 0 ? -errno : 0;
	char source[NAME_SIZE], target[NAME_SIZE];
	autofd int dir = -1;

	if (r != -EXDEV || flags & ~(unsigned int)RENAME_NOREPLACE || !on_one_overlay(from_fd, to_fd) ||
	    copy_name(source, from) < 0 || copy_name(target, to) < 0)
		return r;
	dir = openat(from_fd, source, OPEN_DIR);
	if (dir < 0)
		return r;
	if (!fits(dir, &budget, 0)) {
		*ret_too_large = true;
		return -EXDEV;
	}
	if (!(flags & RENAME_NOREPLACE) && unlinkat(to_fd, target, AT_REMOVEDIR) < 0 && errno != ENOENT)
		return -errno;
	return move_tree(from_fd, source, to_fd, target, 0);
}
