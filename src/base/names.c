/* SPDX-License-Identifier: Apache-2.0 */
/* Finds out which names are missing in a tree, from listings of small directories. */
#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/names.h"
#include "base/resolve.h"

#ifndef XFS_SUPER_MAGIC
#define XFS_SUPER_MAGIC 0x58465342
#endif

void cordon_names_init(struct cordon_names *names, int root_fd)
{
	names->root_fd = root_fd;
	names->n_dirs = names->used = 0;
}

/* Whether a listing shows every name of the file system that can be opened. Some file systems have names that they
 * do not list. */
static bool lists_all_names(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 &&
	       (fs.f_type == EXT4_SUPER_MAGIC || fs.f_type == XFS_SUPER_MAGIC || fs.f_type == BTRFS_SUPER_MAGIC ||
		fs.f_type == TMPFS_MAGIC || fs.f_type == OVERLAYFS_SUPER_MAGIC);
}

static int lower(char c)
{
	return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c;
}

/* The bit of a name: from its first bytes, in lower case, and its length. */
static unsigned int bit_of(const char *name, size_t n)
{
	unsigned int sum = (unsigned int)n;

	for (size_t i = 0; i < n && i < 4; i++)
		sum = sum * 31 + (unsigned int)lower(name[i]);
	return sum & 255;
}

/* Notes which names a listing may have, so that most missing ones need no search. */
static void note_starts(struct cordon_names_dir *dir)
{
	for (size_t at = 0; at < dir->n;) {
		const struct dirent64 *entry = (const void *)(dir->entries + at);
		size_t len = strlen(entry->d_name);
		unsigned int bit = bit_of(entry->d_name, len);

		for (size_t i = 0; i < len; i++)
			if ((unsigned char)entry->d_name[i] >= 0x80)
				memset(dir->starts, 0xff, sizeof(dir->starts));
		dir->starts[bit / 64] |= (uint64_t)1 << bit % 64;
		at += entry->d_reclen;
	}
}

/* Reads all entries, or none when they do not fit. */
static void read_entries(struct cordon_names *names, int fd, struct cordon_names_dir *dir)
{
	size_t room = sizeof(names->bytes) - names->used;
	char *bytes = names->bytes + names->used;
	struct stat st;
	ssize_t n = -1;

	/* Do not begin to read a large directory: it would not fit. */
	if (fstat(fd, &st) < 0 || st.st_size > CORDON_NAMES_BYTES || !lists_all_names(fd))
		return;
	/* The end is reached only when a call returns 0. */
	while ((n = getdents64(fd, bytes + dir->n, room - dir->n)) > 0)
		dir->n += (size_t)n;
	if (n < 0)
		return; /* EINVAL: the next entry does not fit */
	dir->entries = bytes;
	names->used += dir->n;
	note_starts(dir);
}

/* Copies a path. The size is rounded up because entries, which are aligned, follow it. */
static const char *keep_path(struct cordon_names *names, const char *path, size_t n)
{
	size_t size = (n + 8) & ~(size_t)7;
	char *copy = names->bytes + names->used;

	if (size > sizeof(names->bytes) - names->used)
		return NULL;
	memcpy(copy, path, n);
	copy[n] = '\0';
	names->used += size;
	return copy;
}

/* The listing of the root or of a directory in it, whose path is the first n bytes of `path`. NULL when there is no
 * room for it. */
static const struct cordon_names_dir *find_dir(struct cordon_names *names, const char *path, size_t n)
{
	struct cordon_names_dir *dir;
	autofd int fd = -1;

	for (size_t i = 0; i < names->n_dirs; i++)
		if (strncmp(names->dirs[i].path, path, n) == 0 && names->dirs[i].path[n] == '\0')
			return &names->dirs[i];
	if (names->n_dirs == CORDON_NAMES_DIRS)
		return NULL;
	dir = &names->dirs[names->n_dirs];
	*dir = (struct cordon_names_dir){ .path = keep_path(names, path, n) };
	if (!dir->path)
		return NULL;
	names->n_dirs++;
	fd = cordon_open_beneath(names->root_fd, dir->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0)
		read_entries(names, fd, dir);
	return dir;
}

/* Whether opening `name` may find this entry, also in a directory that ignores case. Any other character may be the
 * other case of one that is not ASCII. */
static bool may_match(const char *entry, const char *name, size_t n)
{
	size_t i = 0;

	for (; i < n && entry[i]; i++) {
		if ((unsigned char)entry[i] >= 0x80)
			return true;
		if (lower(entry[i]) != lower(name[i]))
			return false;
	}
	return i == n && entry[i] == '\0';
}

static bool dir_lacks(const struct cordon_names_dir *dir, const char *name, size_t n)
{
	if (!dir || !dir->entries)
		return false;
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)name[i] >= 0x80)
			return false;
	if (!(dir->starts[bit_of(name, n) / 64] >> bit_of(name, n) % 64 & 1))
		return true;
	for (size_t at = 0; at < dir->n;) {
		const struct dirent64 *entry = (const void *)(dir->entries + at);

		if (may_match(entry->d_name, name, n))
			return false;
		at += entry->d_reclen;
	}
	return true;
}

bool cordon_names_lack_first(struct cordon_names *names, const char *path)
{
	return names && *path && dir_lacks(find_dir(names, "", 0), path, strcspn(path, "/"));
}

bool cordon_names_lack(struct cordon_names *names, const char *path)
{
	size_t n = strcspn(path, "/");
	const char *rest = path + n + (path[n] == '/');

	if (!names || !*path)
		return false;
	return cordon_names_lack_first(names, path) ||
	       (*rest && dir_lacks(find_dir(names, path, n), rest, strcspn(rest, "/")));
}

/* Whether it is certain that no name in the root has these bytes at its start, or at its end. */
static bool lack_part(struct cordon_names *names, const char *part, bool end)
{
	const struct cordon_names_dir *dir = names ? find_dir(names, "", 0) : NULL;
	size_t n = strlen(part);

	if (!dir || !dir->entries)
		return false;
	for (size_t at = 0; at < dir->n;) {
		const struct dirent64 *entry = (const void *)(dir->entries + at);
		size_t len = strlen(entry->d_name);

		if (len >= n && memcmp(entry->d_name + (end ? len - n : 0), part, n) == 0)
			return false;
		at += entry->d_reclen;
	}
	return true;
}

bool cordon_names_lack_start(struct cordon_names *names, const char *start)
{
	return lack_part(names, start, false);
}

bool cordon_names_lack_end(struct cordon_names *names, const char *end)
{
	return lack_part(names, end, true);
}
