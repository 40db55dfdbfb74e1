/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread of the supervisor that receives the lens's records of refusals (lens_record.h), finds out which system call
 * asked for a refused name, and reports the attempts. A call that only looks (stat, a listing, a name in the middle of
 * a path) is no attempt. Neither is a call that would have failed without the policy: it names something that does not
 * exist and does not make it, or it makes something that exists.
 */
#ifndef CORDON_SANDBOX_HOST_LENS_REPORTS_H
#define CORDON_SANDBOX_HOST_LENS_REPORTS_H

#include <pthread.h>

#include "sandbox/host/launch.h"
#include "sandbox/watch/watched.h"

struct cordon_lens_reports;

/* Takes the socket. The caller holds the lock here and in the other function; the observer is called under it. NULL
 * when there is no memory or the thread can't be started. */
struct cordon_lens_reports *cordon_lens_reports_start(int fd, const struct cordon_child *child,
						      const struct cordon_watched *watched, pthread_mutex_t *lock);
/* Call it when the lens has ended: receives its last records, reports repetitions, and returns the number of refusals.
 * Releases the lock meanwhile. Accepts NULL. */
unsigned int cordon_lens_reports_end(struct cordon_lens_reports *reports);

#endif
