/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The watch: answers seccomp notifications of a run.
 *
 * INVARIANT: nothing is allowed because of what is read here. The agent can change its memory between our look and
 * the kernel's, so a path we read may be reported and may be the reason for a refusal, never for a permission: what is
 * let through ("continue") is judged by the kernel's own rules (mounts, Landlock, modes) as if there were no
 * watch. No path is ever opened on the agent's behalf; parents are opened with O_PATH to see which directory is meant.
 *
 * It does two things: in every run with guarded names it refuses their creation early (what races past is caught
 * by PID 1), and in a permissive or reporting run it tells of accesses outside the scope.
 */
#ifndef CORDON_SANDBOX_WATCH_H
#define CORDON_SANDBOX_WATCH_H

#include "sandbox/launch.h"

#define CORDON_WATCH_RECENT 16 /* creations that were let through, kept to tell who made a guarded name */

struct cordon_watch;

/* NULL without memory. The listener becomes the watch's. */
struct cordon_watch *cordon_watch_new(const struct cordon_child *child, const struct cordon_observer *observer,
				      int listener);
struct cordon_watch *cordon_watch_free(struct cordon_watch *watch);
int cordon_watch_fd(const struct cordon_watch *watch);
/* Answers one call, when poll() said that one is there. False when the listener is at its end. */
bool cordon_watch_serve(struct cordon_watch *watch, short revents);
/* Whether the guarded name `dir`/`name` was probably made from inside: the agent tried to make that very name lately,
 * or a creation that was let through just before it did not make what it said it would. */
bool cordon_watch_blames_agent(const struct cordon_watch *watch, const struct cordon_guard *guard);
/* Violations seen so far. */
unsigned int cordon_watch_count(const struct cordon_watch *watch);

#endif
