/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locks of files and directories, by flock(): the kernel releases a lock when the last descriptor of the open file is
 * closed, and so when its holder dies. `operation` is LOCK_SH, LOCK_EX or LOCK_UN, with LOCK_NB to wait for nobody.
 */
#ifndef CORDON_BASE_LOCK_H
#define CORDON_BASE_LOCK_H

#include <sys/file.h>

#include "base/error.h"

/* 0 or -errno; -EWOULDBLOCK when another process has it, with LOCK_NB. A signal does not end the wait. */
int cordon_lock(int fd, int operation);
/* Tries again and again for `ms`, because a process that holds the lock for ever must not make us wait for ever. */
int cordon_lock_within(int fd, int operation, int64_t ms);
/* Whether another process has the lock for itself. Asks with a shared lock for an instant, so that two who ask at the same
 * time do not take each other for the holder. */
bool cordon_lock_is_held(int fd);

/* Locks a file by its name below a directory, and makes the file when it is missing or was removed while we waited. Closing
 * *ret_fd releases the lock. Kind conflict when another process has it. */
int cordon_lock_take(int dir_fd, const char *name, int operation, int *ret_fd, struct cordon_error *err);

#endif
