/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Descriptors for the content of files and directories. The lens keeps descriptors for reading and listing between
 * requests: up to a maximum, and the least recently used one is closed first. It never keeps one for writing: as
 * long as such a descriptor is open nobody on the host can execute the file, and the name under which the file is
 * written must be judged each time.
 */
#include <fcntl.h>
#include <stdio.h>

#include "lens/lens.h"

/* Opens the file of an O_PATH descriptor. */
static int reopen(int path_fd, int flags)
{
	char link[32];
	int fd;

	/* A link in /proc/self/fd leads to the inode of the descriptor itself, not to a name. */
	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", path_fd);
	fd = open(link, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	return fd < 0 ? -errno : fd;
}

static void unlist(struct lens *lens, struct lens_node *node)
{
	*(node->newer ? &node->newer->older : &lens->newest) = node->older;
	*(node->older ? &node->older->newer : &lens->oldest) = node->newer;
	node->newer = node->older = NULL;
}

static void list(struct lens *lens, struct lens_node *node)
{
	node->newer = NULL;
	node->older = lens->newest;
	*(lens->newest ? &lens->newest->newer : &lens->oldest) = node;
	lens->newest = node;
}

void lens_file_close(struct lens *lens, struct lens_node *node)
{
	if (node->file_fd < 0)
		return;
	unlist(lens, node);
	cordon_closep(&node->file_fd);
	lens->n_files--;
}

uint64_t lens_handle_keep(struct lens *lens, int fd)
{
	struct lens_handle *handle = &lens->handles[++lens->last_handle % LENS_HANDLES_MAX];

	if (handle->number)
		(void)close(handle->fd);
	*handle = (struct lens_handle){ .number = lens->last_handle, .fd = fd };
	return handle->number;
}

/* Returns -1 for the handle 0, and for a handle that was closed to make room for a newer one. */
static int handle_fd(const struct lens *lens, uint64_t number)
{
	const struct lens_handle *handle = &lens->handles[number % LENS_HANDLES_MAX];

	return number && handle->number == number ? handle->fd : -1;
}

void lens_handle_drop(struct lens *lens, uint64_t number)
{
	if (handle_fd(lens, number) < 0)
		return;
	(void)close(handle_fd(lens, number));
	lens->handles[number % LENS_HANDLES_MAX].number = 0;
}

int lens_file(struct lens *lens, struct lens_node *node, uint64_t handle)
{
	autofd int path_fd = -1;
	int fd = handle_fd(lens, handle);

	if (fd >= 0)
		return fd;
	if (node->file_fd >= 0) {
		unlist(lens, node);
		list(lens, node);
		return node->file_fd;
	}
	if (!S_ISDIR(node->type) && !S_ISREG(node->type))
		return -EINVAL;
	path_fd = lens_open_node(lens, node, false);
	if (path_fd < 0)
		return path_fd;
	/* Opening "." would need the right to search the directory; listing it does not. */
	fd = reopen(path_fd, S_ISDIR(node->type) ? O_RDONLY | O_DIRECTORY : O_RDONLY);
	if (fd < 0)
		return fd;
	node->file_fd = fd;
	list(lens, node);
	lens->n_files++;
	while (lens->n_files > lens->max_files && lens->oldest)
		lens_file_close(lens, lens->oldest);
	return fd;
}

int lens_file_write(struct lens *lens, struct lens_node *node, uint64_t handle)
{
	autofd int path_fd = -1;
	int fd;

	if (!S_ISREG(node->type))
		return -EINVAL;
	path_fd = lens_open_to_change(lens, node);
	if (path_fd < 0)
		return path_fd;
	fd = handle_fd(lens, handle);
	if (fd < 0)
		return reopen(path_fd, O_WRONLY);
	fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	return fd < 0 ? -errno : fd;
}

/* ---- reading and writing ---- */

void lens_op_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi)
{
	struct lens *lens = fuse_req_userdata(req);
	int fd = lens_file(lens, lens_node(lens, ino), fi->fh);
	ssize_t n;

	if (fd < 0) {
		fuse_reply_err(req, -fd);
		return;
	}
	if (size > LENS_REQUEST_MAX)
		size = LENS_REQUEST_MAX;
	n = pread(fd, lens->bytes, size, off);
	if (n < 0)
		fuse_reply_err(req, errno);
	else
		fuse_reply_buf(req, lens->bytes, (size_t)n);
}

void lens_op_write(fuse_req_t req, fuse_ino_t ino, const char *bytes, size_t size, off_t off, struct fuse_file_info *fi)
{
	struct lens *lens = fuse_req_userdata(req);
	struct lens_node *node = lens_node(lens, ino);
	autofd int fd = lens_file_write(lens, node, fi->fh);
	bool known;
	size_t done = 0;
	ssize_t n = 0;

	if (fd < 0) {
		lens_reply_err(req, -fd);
		return;
	}
	known = lens_attr_kernel_knows(node, fd);
	while (done < size && (n = pwrite(fd, bytes + done, size - done, off + (off_t)done)) > 0)
		done += (size_t)n;
	if (done == 0 && n < 0) {
		fuse_reply_err(req, errno);
		return;
	}
	lens_attr_own_change(node, fd, known);
	fuse_reply_write(req, done);
}

void lens_op_fsync(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi)
{
	struct lens *lens = fuse_req_userdata(req);
	int fd = lens_file(lens, lens_node(lens, ino), fi->fh);

	if (fd < 0)
		fuse_reply_err(req, -fd);
	else
		fuse_reply_err(req, (datasync ? fdatasync(fd) : fsync(fd)) < 0 ? errno : 0);
}

void lens_op_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t offset, off_t length, struct fuse_file_info *fi)
{
	struct lens *lens = fuse_req_userdata(req);
	struct lens_node *node = lens_node(lens, ino);
	autofd int fd = lens_file_write(lens, node, fi->fh);
	bool known = fd >= 0 && lens_attr_kernel_knows(node, fd);
	int r = fd < 0 ? fd : 0;

	if (r == 0 && fallocate(fd, mode, offset, length) < 0)
		r = -errno;
	if (r == 0)
		lens_attr_own_change(node, fd, known);
	lens_reply_err(req, -r);
}

void lens_op_lseek(fuse_req_t req, fuse_ino_t ino, off_t off, int whence, struct fuse_file_info *fi)
{
	struct lens *lens = fuse_req_userdata(req);
	int fd = lens_file(lens, lens_node(lens, ino), fi->fh);
	off_t at;

	if (fd < 0) {
		fuse_reply_err(req, -fd);
		return;
	}
	at = lseek(fd, off, whence);
	if (at < 0)
		fuse_reply_err(req, errno);
	else
		fuse_reply_lseek(req, at);
}

void lens_op_copy_file_range(fuse_req_t req, fuse_ino_t ino_in, off_t off_in, struct fuse_file_info *fi_in,
			     fuse_ino_t ino_out, off_t off_out, struct fuse_file_info *fi_out, size_t len, int flags)
{
	struct lens *lens = fuse_req_userdata(req);
	struct lens_node *out = lens_node(lens, ino_out);
	int from = lens_file(lens, lens_node(lens, ino_in), fi_in->fh);
	autofd int to = from < 0 ? -1 : lens_file_write(lens, out, fi_out->fh);
	bool known;
	ssize_t n;

	if (from < 0 || to < 0) {
		lens_reply_err(req, from < 0 ? -from : -to);
		return;
	}
	/* Copy only a part, so that one long copy does not keep every other request waiting. The kernel asks for the
	 * rest. */
	if (len > LENS_COPY_MAX)
		len = LENS_COPY_MAX;
	known = lens_attr_kernel_knows(out, to);
	n = copy_file_range(from, &off_in, to, &off_out, len, (unsigned int)flags);
	if (n < 0) {
		fuse_reply_err(req, errno);
		return;
	}
	lens_attr_own_change(out, to, known);
	fuse_reply_write(req, (size_t)n);
}
