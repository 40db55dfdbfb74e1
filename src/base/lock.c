/* SPDX-License-Identifier: Apache-2.0 */
/* The only file but those of the audit log that calls flock(). */
#include "base/lock.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>

#include "base/time.h"

#define POLL_MS 5

int cordon_lock(int fd, int operation)
{
	while (flock(fd, operation) < 0)
		if (errno != EINTR)
			return -errno;
	return 0;
}

int cordon_lock_within(int fd, int operation, int64_t ms)
{
	int64_t until = cordon_time_monotonic() + ms;
	int r;

	while ((r = cordon_lock(fd, operation | LOCK_NB)) == -EWOULDBLOCK && cordon_time_monotonic() < until)
		(void)poll(NULL, 0, POLL_MS);
	return r;
}

bool cordon_lock_is_held(int fd)
{
	int r = cordon_lock(fd, LOCK_SH | LOCK_NB);

	if (r == 0)
		(void)cordon_lock(fd, LOCK_UN);
	return r == -EWOULDBLOCK;
}

int cordon_lock_take(int dir_fd, const char *name, int operation, int *ret_fd, struct cordon_error *err)
{
	for (;;) {
		autofd int fd = openat(dir_fd, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
		struct stat held, named;
		int r;

		if (fd < 0)
			return cordon_fail_errno(err, -errno, "cannot lock %s", name);
		r = cordon_lock(fd, operation);
		if (r == -EWOULDBLOCK)
			return cordon_fail(err, r, CORDON_KIND_CONFLICT, "%s is locked by another process", name);
		if (r < 0 || fstat(fd, &held) < 0)
			return cordon_fail_errno(err, r < 0 ? r : -errno, "cannot lock %s", name);
		/* A process that deletes an object removes its lock file too. Then we hold a lock that nobody else
		 * sees, so we try again. */
		if (held.st_nlink == 0 || fstatat(dir_fd, name, &named, AT_SYMLINK_NOFOLLOW) < 0 ||
		    held.st_ino != named.st_ino || held.st_dev != named.st_dev)
			continue;
		*ret_fd = cordon_steal_fd(&fd);
		return 0;
	}
}
