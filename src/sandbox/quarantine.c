/* SPDX-License-Identifier: Apache-2.0 */
/* Takes away what an agent made under a guarded name. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/resolve.h"
#include "base/tree.h"
#include "sandbox/quarantine.h"

#define COPY_MAX ((size_t)1 << 20)

static void copy_file(int dir_fd, const char *name, int quarantine_fd, const char *as)
{
	autobuf struct cordon_buf content = CORDON_BUF(COPY_MAX);

	if (quarantine_fd >= 0 && cordon_read_file(dir_fd, name, O_NOFOLLOW, &content, NULL) == 0)
		cordon_write_file(quarantine_fd, as, 0600, content.data ? content.data : "", content.len, NULL);
}

int cordon_quarantine_take(int root_fd, const struct cordon_guard *guard, int quarantine_fd)
{
	autofd int dir = cordon_open_beneath(root_fd, guard->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	char uuid[CORDON_UUID_SIZE], temp[64];
	int r = cordon_uuid_new(uuid);

	if (dir < 0 || r < 0)
		return dir < 0 ? dir : r;
	if (quarantine_fd >= 0 && renameat(dir, guard->name, quarantine_fd, uuid) == 0)
		return 0;
	/* Another file system: out of the way first, so that the name is gone at once. */
	snprintf(temp, sizeof(temp), ".cordon-%s.tmp", uuid);
	if (renameat(dir, guard->name, dir, temp) < 0)
		return -errno;
	copy_file(dir, temp, quarantine_fd, uuid);
	return cordon_tree_remove(dir, temp, NULL);
}
