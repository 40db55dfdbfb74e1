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

uint64_t lens_handle_keep(struct lens *lens, int fd)
{
	struct lens_handle *handle = &lens->handles[++lens->last_handle % LENS_HANDLES_MAX];

	if (handle->number)
		(void)close(handle->fd);
	*handle = (struct lens_handle){ .number = lens->last_handle, .fd = fd };
	return handle->number;
}

/* -1 for 0, and for one that had to make room. */
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
	fd = handle_fd(lens, handle);
	if (fd < 0)
		return lens_reopen(path_fd, O_WRONLY);
	fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	return fd < 0 ? -errno : fd;
}
