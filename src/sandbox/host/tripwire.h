/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The supervisor serves the tripwires of a run (sandbox/plan/tripwire.h) from its loop, by the bare FUSE protocol, and reports who
 * tries to read what a rule hides.
 *
 * INVARIANT: it opens no file and waits for nobody inside: the device does not block, each request is answered before the next
 * one is read, and nothing that is asked changes the table. Everything that would change something gets EACCES.
 *
 * Attempts to write, make, move or remove are trapped (sandbox/inside/seccomp.h) and reported by the watch alone.
 */
#ifndef CORDON_SANDBOX_HOST_TRIPWIRE_H
#define CORDON_SANDBOX_HOST_TRIPWIRE_H

#include "sandbox/host/launch.h"
#include "sandbox/watch/watched.h"

struct cordon_tripwires;

/* Gets each attempt in the form in which the hand tells of one, before it is answered. */
typedef void (*cordon_tripwires_fn)(void *data, const struct cordon_hand_message *message);

/* NULL when there is no memory. Takes fuse_fd in any case. */
struct cordon_tripwires *cordon_tripwires_new(int fuse_fd, const struct cordon_child *child,
					      const struct cordon_watched *watched, cordon_tripwires_fn tell,
					      void *data);
/* What to poll for POLLIN; -1 when there is nothing (any more). Accepts NULL. */
int cordon_tripwires_poll(const struct cordon_tripwires *tripwires);
/* Answers what waits, but not without end. */
void cordon_tripwires_serve(struct cordon_tripwires *tripwires);
/* Whoever still waits for an answer gets ENOTCONN. Accepts NULL; always returns NULL. */
struct cordon_tripwires *cordon_tripwires_free(struct cordon_tripwires *tripwires);

#endif
