/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PID 1 makes the view in which a run works: an overlay of the workspace. Everything that holds in the workspace holds in
 * the view, because the steps of the plan mount its parts instead of the host's. Overlayfs never writes to a lower layer.
 * The agent can't reach the upper one, which lies in none of its mounts. Attributes that mean something to overlayfs
 * ("user.overlay.") are refused to the agent by the kernel, or stored under another name.
 */
#ifndef CORDON_SANDBOX_INSIDE_VIEW_H
#define CORDON_SANDBOX_INSIDE_VIEW_H

#include "sandbox/plan/plan.h"

/* Opens a path of the host, below its root directory `slash_fd`; -ESTALE when it is not any more what the plan judged. */
int cordon_inside_open_judged(int slash_fd, const char *path, dev_t dev, ino_t ino);

/* Makes the overlay; returns a detached mount or -errno. `slash_fd` is the host's root directory. Changes the working
 * directory. */
int cordon_inside_view_make(const struct cordon_plan *plan, int slash_fd);

/* Makes the overlay of a step that binds the changes of another directory; the same way. `upper` is its source. */
int cordon_inside_changes_make(const struct cordon_step *step, int slash_fd, int upper);

/* Opens what a step mounts in the view; returns a descriptor or -errno. -ESTALE when the host's entry is not the one any
 * more that the plan judged. */
int cordon_inside_view_open(const struct cordon_plan *plan, int slash_fd, int view_fd, const struct cordon_step *step);

#endif
