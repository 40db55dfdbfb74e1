/* SPDX-License-Identifier: Apache-2.0 */
/* The home directories of this machine: the caller's, and those of other people. */
#ifndef CORDON_PROTECT_HOMES_H
#define CORDON_PROTECT_HOMES_H

#include <sys/types.h>

#include "base/resolve.h"

/* The canonical path of something that exists. */
bool cordon_homes_canonical(const char *path, char ret[static CORDON_PATH_MAX]);

/* The canonical path of the directory that $HOME names; "" when there is none, or when it is "/". */
void cordon_homes_user(char ret[static CORDON_PATH_MAX]);

/* Calls fn for each home in /etc/passwd that exists, of root, of a person or of the caller; until it fails. The path is
 * canonical, and never "/". */
int cordon_homes_each(int (*fn)(void *data, const char *home, uid_t uid), void *data);

/* Whether the root is the caller's home, by $HOME or /etc/passwd, or contains it. It looks at no file for a root in
 * $HOME. */
bool cordon_homes_own_in(const struct cordon_root *root);

#endif
