/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A FUSE server for tests: shows a directory, and finds a name also under other spellings, as servers for other systems do.
 *
 *     foldfs HOW BELOW BACKING MOUNTPOINT [OPTION]...
 *
 * HOW is one of exact (no other spelling), case, end (dots and spaces at the end do not count), ignorable (U+200C does not
 * count), width (full-width letters are letters). BELOW is the directory in the tree from which on names are folded; "" is
 * all of it.
 */
#define FUSE_USE_VERSION 31
#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *how, *below, *backing;

/* The form in which names are compared. */
static void fold(const char *name, char *ret)
{
	size_t n = 0;

	for (const char *p = name; *p; p++) {
		if (strcmp(how, "ignorable") == 0 && strncmp(p, "\xe2\x80\x8c", 3) == 0) {
			p += 2;
		} else if (strcmp(how, "width") == 0 && strncmp(p, "\xef\xbd", 2) == 0 && p[2]) {
			ret[n++] = (char)('a' + ((unsigned char)p[2] - 0x81));
			p += 2;
		} else {
			ret[n++] = (char)(strcmp(how, "case") == 0 ? tolower((unsigned char)*p) : *p);
		}
	}
	while (strcmp(how, "end") == 0 && n > 1 && (ret[n - 1] == '.' || ret[n - 1] == ' '))
		n--;
	ret[n] = '\0';
}

/* Finds the name of an entry under which the directory has `name`; leaves `name` when there is none. */
static void find_entry(const char *dir, char *name)
{
	char wanted[NAME_MAX + 1], found[NAME_MAX + 1], path[2 * PATH_MAX];
	const struct dirent *entry;
	DIR *stream;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	if (faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0 || !(stream = opendir(dir)))
		return;
	fold(name, wanted);
	while ((entry = readdir(stream))) {
		fold(entry->d_name, found);
		if (strcmp(found, wanted) == 0) {
			strcpy(name, entry->d_name);
			break;
		}
	}
	closedir(stream);
}

/* The path in the backing directory. */
static const char *real(const char *path, char ret[2 * PATH_MAX])
{
	size_t n = (size_t)snprintf(ret, PATH_MAX, "%s", backing), top = n;

	while (*path) {
		char name[NAME_MAX + 1];
		size_t len = strcspn(path, "/");

		snprintf(name, sizeof(name), "%.*s", (int)len, path);
		path += len + (path[len] == '/');
		if (!*name)
			continue;
		if (strncmp(ret + top + (n > top), below, strlen(below)) == 0)
			find_entry(ret, name);
		n += (size_t)snprintf(ret + n, PATH_MAX, "/%s", name);
	}
	return ret;
}

#define REAL(path) real(path, (char[2 * PATH_MAX]){ 0 })
#define RESULT(call) ((call) < 0 ? -errno : 0)

static int fs_getattr(const char *path, struct stat *st, struct fuse_file_info *fi)
{
	(void)fi;
	return RESULT(lstat(REAL(path), st));
}

static int fs_readlink(const char *path, char *buffer, size_t size)
{
	ssize_t n = readlink(REAL(path), buffer, size - 1);

	if (n < 0)
		return -errno;
	buffer[n] = '\0';
	return 0;
}

static int fs_readdir(const char *path, void *buffer, fuse_fill_dir_t fill, off_t offset, struct fuse_file_info *fi,
		      enum fuse_readdir_flags flags)
{
	DIR *stream = opendir(REAL(path));
	const struct dirent *entry;

	(void)offset;
	(void)fi;
	(void)flags;
	if (!stream)
		return -errno;
	while ((entry = readdir(stream)))
		fill(buffer, entry->d_name, NULL, 0, 0);
	closedir(stream);
	return 0;
}

static int fs_open(const char *path, struct fuse_file_info *fi)
{
	int fd = open(REAL(path), fi->flags & ~O_NOFOLLOW);

	fi->fh = (uint64_t)fd;
	return RESULT(fd);
}

static int fs_create(const char *path, mode_t mode, struct fuse_file_info *fi)
{
	const struct fuse_context *caller = fuse_get_context();
	int fd = open(REAL(path), fi->flags | O_CREAT, mode);

	if (fd >= 0 && fchown(fd, caller->uid, caller->gid) < 0)
		return -errno;
	fi->fh = (uint64_t)fd;
	return RESULT(fd);
}

static int fs_read(const char *path, char *buffer, size_t size, off_t offset, struct fuse_file_info *fi)
{
	ssize_t n = pread((int)fi->fh, buffer, size, offset);

	(void)path;
	return n < 0 ? -errno : (int)n;
}

static int fs_write(const char *path, const char *buffer, size_t size, off_t offset, struct fuse_file_info *fi)
{
	ssize_t n = pwrite((int)fi->fh, buffer, size, offset);

	(void)path;
	return n < 0 ? -errno : (int)n;
}

static int fs_release(const char *path, struct fuse_file_info *fi)
{
	(void)path;
	return RESULT(close((int)fi->fh));
}

static int fs_mkdir(const char *path, mode_t mode)
{
	const struct fuse_context *caller = fuse_get_context();
	int r = RESULT(mkdir(REAL(path), mode));

	return r < 0 ? r : RESULT(chown(REAL(path), caller->uid, caller->gid));
}

static int fs_unlink(const char *path)
{
	return RESULT(unlink(REAL(path)));
}

static int fs_rmdir(const char *path)
{
	return RESULT(rmdir(REAL(path)));
}

static int fs_rename(const char *from, const char *to, unsigned int flags)
{
	return flags ? -EINVAL : RESULT(rename(REAL(from), REAL(to)));
}

static int fs_truncate(const char *path, off_t size, struct fuse_file_info *fi)
{
	(void)fi;
	return RESULT(truncate(REAL(path), size));
}

static int fs_chmod(const char *path, mode_t mode, struct fuse_file_info *fi)
{
	(void)fi;
	return RESULT(chmod(REAL(path), mode));
}

static int fs_chown(const char *path, uid_t uid, gid_t gid, struct fuse_file_info *fi)
{
	(void)fi;
	return RESULT(lchown(REAL(path), uid, gid));
}

static const struct fuse_operations operations = {
	.getattr = fs_getattr,
	.readlink = fs_readlink,
	.readdir = fs_readdir,
	.open = fs_open,
	.create = fs_create,
	.read = fs_read,
	.write = fs_write,
	.release = fs_release,
	.mkdir = fs_mkdir,
	.unlink = fs_unlink,
	.rmdir = fs_rmdir,
	.rename = fs_rename,
	.truncate = fs_truncate,
	.chmod = fs_chmod,
	.chown = fs_chown,
};

int main(int argc, char **argv)
{
	if (argc < 5) {
		fprintf(stderr, "usage: foldfs HOW BELOW BACKING MOUNTPOINT [OPTION]...\n");
		return 2;
	}
	how = argv[1];
	below = argv[2];
	backing = argv[3];
	argv[3] = argv[0];
	return fuse_main(argc - 3, argv + 3, &operations, NULL);
}
