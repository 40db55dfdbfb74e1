/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The watch answers the seccomp notifications of a run. It runs in the supervisor.
 *
 * INVARIANT: nothing is allowed because of what is read here. The agent can change its memory between our look and the
 * kernel's. So a path that we read may be reported and may be the reason for a refusal, but never for a permission: a
 * call that continues is judged by the kernel's own rules (mounts, Landlock, modes) as if there were no watch. The
 * watch never opens a file on the agent's behalf; it opens directories with O_PATH to see which one a path means.
 *
 * It does two things. It passes a call that makes an entry in a held directory, which the kernel would refuse to the
 * agent, on to the hand, or refuses it when the name is a boundary (sandbox/watch/held.h). And it reports what is
 * refused or warned of.
 *
 * From the first call on it has a thread of its own, which only waits for calls: the kernel can then run it on the
 * processor of the caller, and the caller there again after the answer. It shares what is judged and reported with the
 * thread that made the watch. That thread holds the lock whenever it does not wait, so the observer gets one event at a
 * time.
 */
#ifndef CORDON_SANDBOX_WATCH_WATCH_H
#define CORDON_SANDBOX_WATCH_WATCH_H

#include <pthread.h>

#include "sandbox/watch/watched.h"

struct cordon_watch;

/* NULL when there is no memory. The watch takes the listener. The caller holds the lock here and in every function
 * below. */
struct cordon_watch *cordon_watch_new(const struct cordon_watched *watched, int listener, pthread_mutex_t *lock);
/* Stops it first. Accepts NULL; always returns NULL. */
struct cordon_watch *cordon_watch_free(struct cordon_watch *watch);
/* What to poll for on the listener. */
struct pollfd cordon_watch_poll(const struct cordon_watch *watch);
/* Call it when poll() reports something: 1; 0 when every process under the filter is gone; or -errno. */
int cordon_watch_wake(struct cordon_watch *watch, short revents);
/* Ends the thread after it has reported what it was about to report; afterwards the watch sees no more calls. Releases
 * the lock while it waits for the thread. */
void cordon_watch_stop(struct cordon_watch *watch);
/* Whether the watch has seen a call that may change something. */
bool cordon_watch_changed(const struct cordon_watch *watch);
/* The number of violations so far. */
unsigned int cordon_watch_count(const struct cordon_watch *watch);

#endif
