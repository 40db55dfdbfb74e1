/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the host has a name that the agent asked for and that its tree does not show: a report names only what exists.
 *
 * INVARIANT: this is the only place where the supervisor looks up a name from inside, it opens nothing, and nothing but the
 * text of reports depends on the answer. It starts no automount.
 */
#ifndef CORDON_SANDBOX_WATCH_OUTSIDE_H
#define CORDON_SANDBOX_WATCH_OUTSIDE_H

#include <sys/types.h>

#include "base/util.h"

/* Links are not followed at the end. */
bool cordon_outside_exists(const char *path);
bool cordon_outside_is_dir(const char *path);
/* The file type; 0: it does not exist. */
mode_t cordon_outside_type(const char *path);

#endif
