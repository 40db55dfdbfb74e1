/* SPDX-License-Identifier: Apache-2.0 */
/* Child processes, and processes that outlive the one that starts them. */
#ifndef CORDON_BASE_CHILD_H
#define CORDON_BASE_CHILD_H

#include <signal.h>
#include <sys/types.h>

#include "base/util.h"

/* What a child is, as far as it is not what its parent is. */
struct cordon_fork {
	const int *streams;	 /* become its three standard streams, -1: /dev/null; NULL: these stay as they are */
	const int *kept;	 /* descriptors that stay open beside those, by the same numbers; NULL: all do */
	size_t n_kept;		 /* with 0 none does, unless `kept` is NULL */
	bool own_session;	 /* no signal to the parent's group or terminal reaches it */
	bool plain_signals;	 /* each signal has its default action */
	const sigset_t *blocked; /* NULL: none */
	int death_signal;	 /* it gets this when its parent ends; 0: nothing */
	unsigned int seconds;	 /* SIGALRM ends it after this time; 0: no bound, as for the next two */
	uint64_t memory_bytes;	 /* of its data */
	uint64_t file_bytes;	 /* of a file that it writes; it also leaves no core file */
};

/*
 * Returns twice: with 0 in a new process, with the number of that process in the caller, or with -errno. No handler of
 * the caller's runs in the new process before it is as `how` says, if that has plain_signals. A process that can't be
 * made so exits with CORDON_CHILD_UNMADE. Until exec it must make async-signal-safe calls only if the caller has
 * threads.
 */
pid_t cordon_child_fork(const struct cordon_fork *how);
#define CORDON_CHILD_UNMADE 127
/* Waits for the end of a child, and kills it when it takes too long: -ETIME. *ret_status is that of waitpid(). */
int cordon_child_await(pid_t pid, uint64_t timeout_ms, int *ret_status);

struct cordon_detach {
	int error_fd;	 /* becomes standard error; 0: /dev/null, as the other two streams */
	bool keep_cwd;	 /* else the working directory is "/" */
	const int *kept; /* descriptors that stay open, by the same numbers; no others do */
	size_t n_kept;
};

/*
 * The same for a process that has a session of its own and no parent that waits for it; no signal is blocked, and each
 * has its default action.
 */
pid_t cordon_child_detach(const struct cordon_detach *how);

#endif
