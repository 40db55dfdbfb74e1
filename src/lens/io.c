/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to cordon-lens for the content of files: read, write, allocate, seek, copy. */
#include <fcntl.h>

#include "lens/lens.h"

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
