/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the hand must know about a process before the hand acts for it. The hand must not act for a process that has
 * given up rights which the hand still has. A program inside may add seccomp filters, which the kernel counts, and
 * Landlock layers, which it does not count. So the hand marks a process before it adds a Landlock layer: with a bit of
 * its coredump_filter, which nobody inside can write and which the process passes on over fork and exec.
 */
#ifndef CORDON_SANDBOX_INSIDE_CALLER_H
#define CORDON_SANDBOX_INSIDE_CALLER_H

#include <sys/types.h>

#include "base/util.h"

struct cordon_caller {
	pid_t leader; /* the process of the thread that calls */
	mode_t umask;
	unsigned int filters; /* seccomp filters in force */
	bool marked;	      /* it may have added Landlock layers */
};

/* The open /proc files of the process that called last. Most calls come from the same process, and opening the files
 * costs more than reading them. An open file stays that of its process, also when another process gets the same number
 * later. */
struct cordon_caller_files {
	pid_t pid; /* 0: none */
	int status_fd;
	int dumped_fd;
};

/* clang-format off */
#define CORDON_CALLER_FILES_NONE { .status_fd = -1, .dumped_fd = -1 }
/* clang-format on */

void cordon_caller_files_done(struct cordon_caller_files *files);

/* False when the process is gone or its files can't be read. */
bool cordon_caller_read(struct cordon_caller_files *files, pid_t pid, struct cordon_caller *ret_caller);
/* Marks a process that is about to give up rights by Landlock. `proc_fd` is a /proc that can be written. False when the
 * process can't be marked; then the call must fail. */
bool cordon_caller_mark(int proc_fd, pid_t pid);
/* The number of seccomp filters of the calling process itself. */
unsigned int cordon_caller_own_filters(void);

#endif
