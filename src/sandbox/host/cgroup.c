/* SPDX-License-Identifier: Apache-2.0 */
/* The supervisor makes a control group, ends its processes and removes it. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <time.h>

#include "base/io.h"
#include "base/path.h"
#include "sandbox/host/cgroup.h"

#define MAGIC_V1 0x0027e0eb
#define MAGIC_V2 0x63677270
#define KILL_BATCH 128
#define REMOVE_ROUNDS 40
#define REMOVE_STEP_MAX_NS (64 * 1000 * 1000L)

const char *const cordon_controller_names[CORDON_CONTROLLER__MAX] = {
	[CORDON_CONTROLLER_MEMORY] = "memory",
	[CORDON_CONTROLLER_PIDS] = "pids",
	[CORDON_CONTROLLER_CPU] = "cpu",
};

int cordon_cgroup_write(int dir_fd, const char *file, const char *text)
{
	autofd int fd = openat(dir_fd, file, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
	size_t n = strlen(text);
	ssize_t w;

	if (fd < 0)
		return -errno;
	/* Use one write, because the kernel takes each write as a whole command. */
	do
		w = write(fd, text, n);
	while (w < 0 && errno == EINTR);
	if (w < 0)
		return -errno;
	return (size_t)w == n ? 0 : -EIO;
}

int cordon_cgroup_read(int dir_fd, const char *file, char *ret_text, size_t size)
{
	autofd int fd = openat(dir_fd, file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	size_t len = 0;

	if (fd < 0)
		return -errno;
	while (len < size - 1) {
		ssize_t n = read(fd, ret_text + len, size - 1 - len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		len += (size_t)n;
	}
	ret_text[len] = '\0';
	return 0;
}

bool cordon_cgroup_has_word(const char *text, const char *word)
{
	size_t n = strlen(word);

	while (*text) {
		size_t len = strcspn(text, " ,\n");

		if (len == n && memcmp(text, word, n) == 0)
			return true;
		text += len;
		text += strspn(text, " ,\n");
	}
	return false;
}

uint64_t cordon_cgroup_value(const char *text, const char *key)
{
	size_t n = strlen(key);

	while (text && *text) {
		if (strncmp(text, key, n) == 0 && text[n] == ' ')
			return strtoull(text + n + 1, NULL, 10);
		text = strchr(text, '\n');
		if (text)
			text++;
	}
	return 0;
}

/* Opens the parent and checks that it is on a cgroup file system: the mount table that we read may be out of date. */
static int open_parent(const char *parent, bool *ret_v2)
{
	int fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	struct statfs fs;

	if (fd < 0)
		return -errno;
	if (fstatfs(fd, &fs) < 0 || (fs.f_type != MAGIC_V1 && fs.f_type != MAGIC_V2)) {
		close(fd);
		return -EMEDIUMTYPE;
	}
	*ret_v2 = fs.f_type == MAGIC_V2;
	return fd;
}

int cordon_cgroup_open(const char *parent, const char *name, struct cordon_cgroup *ret)
{
	bool is_v2 = false;
	autofd int parent_fd = open_parent(parent, &is_v2);
	autofd int fd = -1;
	int r;

	if (parent_fd < 0)
		return parent_fd;
	fd = openat(parent_fd, name, O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return -errno;
	r = cordon_path_join(parent, name, ret->path, sizeof(ret->path));
	if (r < 0)
		return r;
	ret->v2 = is_v2;
	ret->parent_fd = cordon_steal_fd(&parent_fd);
	ret->fd = cordon_steal_fd(&fd);
	return 0;
}

int cordon_cgroup_make(const char *parent, const char *name, bool v2, struct cordon_cgroup *ret)
{
	bool is_v2 = false;
	autofd int parent_fd = open_parent(parent, &is_v2);
	int r;

	if (parent_fd < 0)
		return parent_fd;
	if (is_v2 != v2)
		return -EMEDIUMTYPE;
	if (mkdirat(parent_fd, name, 0755) < 0)
		return -errno;
	r = cordon_cgroup_open(parent, name, ret);
	if (r < 0)
		unlinkat(parent_fd, name, AT_REMOVEDIR);
	return r;
}

void cordon_cgroup_done(struct cordon_cgroup *group)
{
	cordon_closep(&group->fd);
	cordon_closep(&group->parent_fd);
}

bool cordon_cgroup_empty(const struct cordon_cgroup *group)
{
	char text[32] = "";

	return cordon_cgroup_read(group->fd, "cgroup.procs", text, sizeof(text)) == 0 && *text == '\0';
}

/* The next number of a list of lines; 0 at the end. Skips processes of other pid namespaces, which have the number
 * 0. */
static pid_t next_pid(const char **text)
{
	while (**text) {
		char *end;
		long pid = strtol(*text, &end, 10);

		if (end == *text)
			return 0;
		*text = end + strspn(end, "\n");
		if (pid > 0)
			return (pid_t)pid;
	}
	return 0;
}

static bool has_pid(const char *text, pid_t wanted)
{
	pid_t pid;

	while ((pid = next_pid(&text)) > 0)
		if (pid == wanted)
			return true;
	return false;
}

/*
 * Kills the processes of a group that has no cgroup.kill. INVARIANT: we never signal a number, only a process that was
 * in the group while we had its descriptor open. When another process has got a number meanwhile, the second list does
 * not have it.
 */
static void kill_members(int fd)
{
	char before[16 << 10] = "", after[16 << 10] = "";
	const char *list = before;
	int handles[KILL_BATCH];
	pid_t pids[KILL_BATCH];
	size_t n = 0;

	if (cordon_cgroup_read(fd, "cgroup.procs", before, sizeof(before)) < 0)
		return;
	for (pid_t pid; n < KILL_BATCH && (pid = next_pid(&list)) > 0;) {
		if (pid == getpid())
			continue;
		handles[n] = (int)syscall(SYS_pidfd_open, pid, 0);
		pids[n] = pid;
		if (handles[n] >= 0)
			n++;
	}
	if (cordon_cgroup_read(fd, "cgroup.procs", after, sizeof(after)) < 0)
		*after = '\0';
	for (size_t i = 0; i < n; i++) {
		if (has_pid(after, pids[i]))
			syscall(SYS_pidfd_send_signal, handles[i], SIGKILL, NULL, 0);
		close(handles[i]);
	}
}

static void kill_group(const struct cordon_cgroup *group)
{
	/* Forbid forks, so that the processes can't multiply faster than we kill them. It works only with the pids
	 * controller. */
	cordon_cgroup_write(group->fd, "pids.max", "0");
	if (!group->v2 || cordon_cgroup_write(group->fd, "cgroup.kill", "1") < 0)
		kill_members(group->fd);
}

int cordon_cgroup_remove(const struct cordon_cgroup *group, const char *name)
{
	struct timespec pause = { .tv_nsec = 500 * 1000 };

	for (int round = 0;; round++) {
		if (unlinkat(group->parent_fd, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
			return 0;
		if (errno != EBUSY || round == REMOVE_ROUNDS)
			return -errno;
		kill_group(group);
		nanosleep(&pause, NULL);
		if (pause.tv_nsec < REMOVE_STEP_MAX_NS)
			pause.tv_nsec *= 2;
	}
}

int cordon_cgroup_move_to_leaf(int own_fd)
{
	char text[64] = "", self[16];
	const char *list = text;
	autofd int leaf = -1;
	int r = cordon_cgroup_read(own_fd, "cgroup.procs", text, sizeof(text));

	if (r < 0)
		return r;
	if (next_pid(&list) != getpid() || next_pid(&list) != 0)
		return -EBUSY;
	if (mkdirat(own_fd, CORDON_CGROUP_SELF, 0755) < 0 && errno != EEXIST)
		return -errno;
	leaf = openat(own_fd, CORDON_CGROUP_SELF, O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (leaf < 0)
		return -errno;
	snprintf(self, sizeof(self), "%d", (int)getpid());
	r = cordon_cgroup_write(leaf, "cgroup.procs", self);
	if (r < 0)
		unlinkat(own_fd, CORDON_CGROUP_SELF, AT_REMOVEDIR);
	return r;
}

void cordon_cgroup_move_back(int own_fd, const char *disable)
{
	char self[16];

	/* This fails while other runs use the controllers: then everything stays as it is. */
	if (disable && cordon_cgroup_write(own_fd, "cgroup.subtree_control", disable) < 0)
		return;
	snprintf(self, sizeof(self), "%d", (int)getpid());
	if (cordon_cgroup_write(own_fd, "cgroup.procs", self) == 0)
		unlinkat(own_fd, CORDON_CGROUP_SELF, AT_REMOVEDIR);
}
