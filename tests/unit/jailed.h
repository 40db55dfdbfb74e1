/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts a jailed process, like those that the watch sees: it has namespaces of its own, and its root has the
 * workspace, its own /proc and /tmp, and nothing of what lies beside the workspace. It is PID 1 there and sleeps, with
 * its working directory in ws/sub and some open descriptors, until the test ends it. Texts of a test are in static
 * memory, which the process has at the same addresses.
 */
#ifndef CORDON_TESTS_JAILED_H
#define CORDON_TESTS_JAILED_H

#include "unit.h"

#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "base/path.h"
#include "sandbox/inside/where.h"

/* Descriptors of the process. */
enum { ON_DIR = 40, ON_PIPE, ON_REMOVED, ON_REMOVED_DIR, ON_FILE };

#define OWN_FILE "/tmp/cordon-unit-own" /* exists inside, and not on the host */

static pid_t jailed;
static int jailed_root = -1;

/* Replaces '%' by the test's directory. */
static inline const char *jailed_text(const char *text, char ret[static CORDON_PATH_MAX])
{
	size_t n = 0;

	for (; *text; text++) {
		if (*text == '%')
			n += (size_t)snprintf(ret + n, CORDON_PATH_MAX - n, "%s", unit_dir);
		else
			ret[n++] = *text;
	}
	ret[n] = '\0';
	return ret;
}

static inline void jailed_tree(void)
{
	static const char *const dirs[] = { "beside", "beside/more", "jail",	"ws",	     "ws/sub",
					    "ws/dir", "ws/src",	     "ws/docs", "ws/secret", "ws/other" };
	static const char *const files[] = { "beside/secret", "ws/file",       "ws/sub/here",
					     "ws/dir/inner",  "ws/src/a",      "ws/src/AGENTS.md",
					     "ws/docs/d",     "ws/secret/key", "ws/other/x" };
	static const char *const links[][2] = { { "file", "ws/link" },
						{ "../beside/secret", "ws/out" },
						{ "nowhere", "ws/dangling" },
						{ "loop", "ws/loop" },
						{ "dir", "ws/dirlink" },
						{ "/proc/self/cwd", "ws/cwdlink" },
						{ "../beside/nothing", "ws/away" },
						{ "../other/x", "ws/src/to-other" },
						{ "/proc", "ws/proclink" } };

	/* The true path, which may differ from TMPDIR. */
	assert_non_null(getcwd(unit_dir, sizeof(unit_dir)));
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(dirs); i++)
		unit_mkdir(dirs[i]);
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(files); i++)
		unit_write(files[i], "x");
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(links); i++)
		unit_link(links[i][0], links[i][1]);
}

static inline bool jailed_write(const char *path, const char *text)
{
	autofd int fd = open(path, O_WRONLY | O_CLOEXEC);

	return fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
}

static inline bool jailed_put(int fd, int number)
{
	return fd >= 0 && dup2(fd, number) == number && close(fd) == 0;
}

static inline bool jailed_enter(uid_t uid, gid_t gid)
{
	char map[64], path[2 * UNIT_PATH];

	snprintf(map, sizeof(map), "%u %u 1", uid, uid);
	if (!jailed_write("/proc/self/uid_map", map) || !jailed_write("/proc/self/setgroups", "deny"))
		return false;
	snprintf(map, sizeof(map), "%u %u 1", gid, gid);
	if (!jailed_write("/proc/self/gid_map", map) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("jail", "jail", "tmpfs", 0, "mode=0755") < 0)
		return false;
	/* Make the parents of the workspace, and nothing else in them. */
	snprintf(path, sizeof(path), "jail%s/ws", unit_dir);
	for (char *p = path + strlen("jail/"); (p = strchr(p, '/')); p++) {
		*p = '\0';
		(void)mkdir(path, 0755);
		*p = '/';
	}
	(void)mkdir("jail/tmp", 0755);
	return mkdir(path, 0755) == 0 && mkdir("jail/proc", 0755) == 0 && mount("ws", path, NULL, MS_BIND, NULL) == 0 &&
	       mount("proc", "jail/proc", "proc", 0, NULL) == 0 && chdir("jail") == 0 &&
	       syscall(SYS_pivot_root, ".", ".") == 0 && umount2(".", MNT_DETACH) == 0;
}

static inline bool jailed_prepare(void)
{
	char ws[UNIT_PATH + 4];
	int pipes[2];

	snprintf(ws, sizeof(ws), "%s/ws", unit_dir);
	return chdir(ws) == 0 && jailed_put(open("dir", O_RDONLY | O_DIRECTORY), ON_DIR) && pipe(pipes) == 0 &&
	       jailed_put(pipes[0], ON_PIPE) && jailed_put(open("removed", O_RDWR | O_CREAT, 0600), ON_REMOVED) &&
	       unlink("removed") == 0 && mkdir("gone", 0755) == 0 &&
	       jailed_put(open("gone", O_RDONLY | O_DIRECTORY), ON_REMOVED_DIR) && rmdir("gone") == 0 &&
	       jailed_put(open("file", O_RDONLY), ON_FILE) && jailed_put(open(OWN_FILE, O_RDWR | O_CREAT, 0600), 3) &&
	       chdir("sub") == 0;
}

/* Fails the test when no namespaces can be made: nothing would be tested. */
static inline void jailed_start(void)
{
	uid_t uid = geteuid();
	gid_t gid = getegid();
	char root[64], ready = 0;
	int gate[2];

	assert_int_equal(pipe(gate), 0);
	jailed = (pid_t)syscall(SYS_clone, CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | SIGCHLD, 0, 0, 0, 0);
	if (jailed < 0)
		fail_msg("no namespaces can be made here");
	if (jailed == 0) {
		ready = 'x';
		if (!jailed_enter(uid, gid))
			ready = 'm';
		else if (jailed_prepare())
			ready = 'y';
		/* A test that fails does not call jailed_end(). */
		if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
			_exit(1);
		if (write(gate[1], &ready, 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(gate[1]);
	assert_int_equal(read(gate[0], &ready, 1), 1);
	close(gate[0]);
	assert_int_equal(ready, 'y');
	snprintf(root, sizeof(root), "/proc/%d/root", (int)jailed);
	jailed_root = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_true(jailed_root >= 0);
}

/* Writes `text` to the same variable in the memory of the process. */
static inline void jailed_set(char *variable, const char *text)
{
	struct iovec local = { (void *)(uintptr_t)text, strlen(text) + 1 }, remote = { variable, local.iov_len };

	assert_int_equal(process_vm_writev(jailed, &local, 1, &remote, 1, 0), (ssize_t)local.iov_len);
}

static inline void jailed_end(void)
{
	kill(jailed, SIGKILL);
	waitpid(jailed, NULL, 0);
	cordon_closep(&jailed_root);
}

/* Reads a call as if the process were stopped in it. It reads texts from the memory of the process: they were there
 * when the process was started, or jailed_set() has written them. */
static inline size_t jailed_call(long nr, const uint64_t args[static 6],
				 struct cordon_touch touches[static CORDON_TOUCHES_MAX])
{
	struct seccomp_notif notif = { .pid = (uint32_t)jailed, .data = { .nr = (int)nr } };

	memcpy(notif.data.args, args, 6 * sizeof(args[0]));
	return cordon_calls_read(&notif, touches);
}

#endif
