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

int lens_reopen(int path_fd, int flags)
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
	path_fd = lens_open_to_change(lens, node);
	if (path_fd < 0)
		return path_fd;
	fd = handle_fd(lens, handle);
	if (fd < 0)
		return lens_reopen(path_fd, O_WRONLY);
	fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	return fd < 0 ? -errno : fd;
}
