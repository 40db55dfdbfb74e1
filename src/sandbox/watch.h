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
 *
 * From the first call on it has a thread of its own, which waits for calls and nothing else: the kernel then runs it on the
 * processor of who called, and the caller there again after the answer. All that is judged and told it shares with the thread
 * that made the watch, by a lock which that one holds whenever it does not wait: the observer hears one at a time.
 */
#ifndef CORDON_SANDBOX_WATCH_H
#define CORDON_SANDBOX_WATCH_H

#include <pthread.h>

#include "sandbox/launch.h"

struct cordon_watch;

/* NULL without memory. The listener becomes the watch's; the lock is held by the caller now and in every function below. */
struct cordon_watch *cordon_watch_new(const struct cordon_child *child, const struct cordon_observer *observer,
				      int listener, pthread_mutex_t *lock);
/* Gives the lock up while the thread ends. Accepts NULL; always returns NULL. */
struct cordon_watch *cordon_watch_free(struct cordon_watch *watch);
/* What to poll for on the listener. */
struct pollfd cordon_watch_poll(const struct cordon_watch *watch);
/* When poll() has something to say: 1; 0 when every process under the filter is gone; or -errno. */
int cordon_watch_wake(struct cordon_watch *watch, short revents);
/* Whether a guarded name was probably made from inside. */
bool cordon_watch_blames_agent(const struct cordon_watch *watch, const struct cordon_guard *guard);
/* Violations seen so far. */
unsigned int cordon_watch_count(const struct cordon_watch *watch);

#endif
