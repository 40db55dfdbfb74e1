/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Descriptors for content. Those for reading and listing are kept between requests: at most so many, the least
 * recently used goes first. One for writing is never kept: as long as it is open nobody on the host could execute the
 * file, and the name under which it is written is to be judged each time.
 */
#include <fcntl.h>
#include <stdio.h>

#include "lens/lens.h"

int lens_reopen(int path_fd, int flags)
{
	char link[32];
	int fd;

	/* A magic link leads to the very inode the descriptor stands for, not to a name. */
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

int lens_file(struct lens *lens, struct lens_node *node, uint64_t handle)
{
	autofd int path_fd = -1;
	int fd;

	if (handle)
		return LENS_HANDLE_FD(handle);
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
	/* Not by ".", which needs the right to search the directory; listing it does not. */
	fd = lens_reopen(path_fd, S_ISDIR(node->type) ? O_RDONLY | O_DIRECTORY : O_RDONLY);
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
	path_fd = lens_open_node(lens, node, true);
	if (path_fd < 0)
		return path_fd;
	if (!handle)
		return lens_reopen(path_fd, O_WRONLY);
	fd = fcntl(LENS_HANDLE_FD(handle), F_DUPFD_CLOEXEC, 3);
	return fd < 0 ? -errno : fd;
}
