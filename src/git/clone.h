/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clones a repository of somebody else. Git runs in a sandbox in which it can write one new directory, reach the host of the
 * address, or read the directory of the source, and nothing else; so nothing that the source contains or answers can make
 * it do more. It gets no credentials.
 */
#ifndef CORDON_GIT_CLONE_H
#define CORDON_GIT_CLONE_H

#include "base/error.h"

/* An address (https://, http://, git://, file:///) or the path of a repository; relative paths are relative to the current
 * directory. `dst` must be missing, or an empty directory; it appears in one step when all is there, and is untouched after a
 * failure. Submodules are not cloned, and hooks are not made. */
int cordon_git_clone(const char *src, const char *dst, struct cordon_error *err);

#endif
