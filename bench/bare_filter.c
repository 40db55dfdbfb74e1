/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures what the kernel's own part of a run costs.
 *
 *     bare_filter allow COMMAND [ARG]...   runs a command under the filter of every run and nothing else
 *     bare_filter trap COMMAND [ARG]...    runs it under the watch's filter, with a listener that answers "continue" to
 *                                          every call without looking at it
 *
 * No run, and no watch, can cost less.
 */
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "sandbox/inside/seccomp.h"

#ifndef SECCOMP_IOCTL_NOTIF_SET_FLAGS
#define SECCOMP_IOCTL_NOTIF_SET_FLAGS SECCOMP_IOW(4, __u64)
#define SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP (1UL << 0)
#endif

static bool hung_up(int listener)
{
	struct pollfd fd = { .fd = listener };

	return poll(&fd, 1, 0) == 1 && fd.revents & (POLLHUP | POLLERR);
}

static int64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

static void wake_here(int listener, bool here)
{
	ioctl(listener, SECCOMP_IOCTL_NOTIF_SET_FLAGS, here ? SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP : 0);
}

/* Chooses processors as src/sandbox/watch/watch.c does. */
static void serve(int listener)
{
	static _Alignas(8) char notif_space[4096], resp_space[4096]; /* the kernel's structures may have grown */
	struct seccomp_notif *notif = (void *)notif_space;
	struct seccomp_notif_resp *resp = (void *)resp_space;
	uint32_t last = 0;

	wake_here(listener, true);
	for (;;) {
		int64_t begun = now_ns();
		bool apart;

		memset(notif, 0, sizeof(*notif));
		if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, notif) < 0) {
			if (hung_up(listener))
				return;
			continue;
		}
		apart = notif->pid != last && now_ns() - begun < 3000;
		last = notif->pid;
		*resp = (struct seccomp_notif_resp){ .id = notif->id, .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE };
		if (apart)
			wake_here(listener, false);
		ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, resp);
		if (apart)
			wake_here(listener, true);
	}
}

static int trap(char **argv)
{
	int ends[2], listener = -1, status = 0;
	long pid;

	if (pipe(ends) < 0)
		return 2;
	/* The child shares our descriptors until it executes the command, so we have its listener. */
	pid = syscall(SYS_clone, CLONE_FILES | SIGCHLD, 0, 0, 0, 0);
	if (pid < 0)
		return 2;
	if (pid == 0) {
		cordon_seccomp_install(CORDON_SECCOMP_FULL, &listener);
		if (write(ends[1], &listener, sizeof(listener)) == sizeof(listener) && listener >= 0)
			execvp(argv[0], argv);
		_exit(2);
	}
	if (read(ends[0], &listener, sizeof(listener)) != sizeof(listener) || listener < 0)
		return 2;
	serve(listener);
	if (waitpid((pid_t)pid, &status, 0) < 0 || !WIFEXITED(status))
		return 2;
	return WEXITSTATUS(status);
}

int main(int argc, char **argv)
{
	if (argc < 3 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return 2;
	if (cordon_streq(argv[1], "trap"))
		return trap(argv + 2);
	if (cordon_streq(argv[1], "allow") && cordon_seccomp_install(CORDON_SECCOMP_BASE, NULL) == 0)
		execvp(argv[2], argv + 2);
	return 2;
}
