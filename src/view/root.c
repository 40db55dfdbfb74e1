/* SPDX-License-Identifier: Apache-2.0 */
/* Which directory a view was made of, for longer than the machine runs. */
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <sys/stat.h>

#include "view/internal.h"

/*
 * The time of birth, and what the file system itself calls the directory: an inode number alone is given again, and each
 * file system has its own. No part of it can be chosen by who makes a directory.
 */
void cordon_view_identify(int root_fd, char ret_lasting[static CORDON_VIEW_LASTING_SIZE])
{
	union {
		struct file_handle handle;
		char room[sizeof(struct file_handle) + MAX_HANDLE_SZ];
	} name = { .handle.handle_bytes = MAX_HANDLE_SZ };
	char text[2 * MAX_HANDLE_SZ + 1];
	struct statx stx;
	int mount;

	ret_lasting[0] = '\0';
	if (statx(root_fd, "", AT_EMPTY_PATH, STATX_BTIME, &stx) < 0 || !(stx.stx_mask & STATX_BTIME) ||
	    name_to_handle_at(root_fd, "", &name.handle, &mount, AT_EMPTY_PATH) < 0)
		return;
	sodium_bin2hex(text, sizeof(text), name.handle.f_handle, name.handle.handle_bytes);
	snprintf(ret_lasting, CORDON_VIEW_LASTING_SIZE, "%lld.%09u %d %s", (long long)stx.stx_btime.tv_sec,
		 stx.stx_btime.tv_nsec, name.handle.handle_type, text);
}

bool cordon_view_is_of(const struct cordon_view_record *record, int root_fd)
{
	char lasting[CORDON_VIEW_LASTING_SIZE];
	struct stat st;

	if (fstat(root_fd, &st) < 0 || (int64_t)st.st_ino != record->ino)
		return false;
	if ((int64_t)st.st_dev == record->dev)
		return true;
	cordon_view_identify(root_fd, lasting);
	return *lasting && cordon_streq(lasting, record->lasting);
}

int cordon_view_root(const struct cordon_view *view, int *ret_fd, struct cordon_error *err)
{
	autofd int fd = open(view->record.root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return cordon_fail_errno(err, -errno, "cannot open the root %s of the view", view->record.root);
	if (!cordon_view_is_of(&view->record, fd))
		return cordon_fail(err, -ESTALE, CORDON_KIND_CONFLICT,
				   "%s is not the directory any more that the view %s was made of", view->record.root,
				   view->record.id);
	*ret_fd = cordon_steal_fd(&fd);
	return 0;
}

void cordon_view_devices(const struct cordon_view *view, int root_fd, struct cordon_view_devices *ret_devices)
{
	struct stat st;

	ret_devices->noted = ret_devices->now = (uint64_t)view->record.dev;
	if (fstat(root_fd, &st) == 0)
		ret_devices->now = st.st_dev;
}

uint64_t cordon_view_renumber(const struct cordon_view_devices *devices, uint64_t dev)
{
	return dev == devices->noted ? devices->now : dev == devices->now ? devices->noted : dev;
}
