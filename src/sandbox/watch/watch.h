/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The supervisor's side of a hand (sandbox/inside/hand.h). It keeps a copy of the seccomp listener, has PID 1 start the hand
 * when the first call comes and again when the hand was killed, and reports what the hand tells.
 *
 * INVARIANT: the supervisor sees more than the agent, so it opens nothing that the agent named: neither by text, nor by a
 * descriptor of the agent's, nor through /proc/PID/root. It never reads the memory of the agent. Messages are text; what is
 * in them decides only about reports.
 */
#ifndef CORDON_SANDBOX_WATCH_WATCH_H
#define CORDON_SANDBOX_WATCH_WATCH_H

#include <poll.h>

#include "sandbox/watch/watched.h"

#define CORDON_WATCH_FDS 2

struct cordon_watch;

/* NULL when there is no memory. The watch takes the listener; `number` is its place among those of the run. */
struct cordon_watch *cordon_watch_new(struct cordon_watched *watched, int listener, uint32_t number);
/* Reports what was told before. Accepts NULL; always returns NULL. */
struct cordon_watch *cordon_watch_free(struct cordon_watch *watch);
/* What to poll for; accepts NULL. */
void cordon_watch_poll(const struct cordon_watch *watch, struct pollfd ret[static CORDON_WATCH_FDS]);
/* Call it after poll(): 1, or 0 when every process under the filter is gone. */
int cordon_watch_serve(struct cordon_watch *watch, const struct pollfd fds[static CORDON_WATCH_FDS]);
/* Reports what the hand has told by now. */
void cordon_watch_hear(struct cordon_watch *watch);
/* Reports what somebody else has seen, as if the hand had told it: each thing is reported once, whoever saw it. */
void cordon_watch_tell(struct cordon_watch *watch, const struct cordon_hand_message *message);
/* Whether a message of n bytes has known parts only, and its texts end within it. The hand stands where the agent stands, so
 * any bytes may come. */
bool cordon_watch_is_whole(const struct cordon_hand_message *message, size_t n);
/* The number of violations so far. */
unsigned int cordon_watch_count(const struct cordon_watch *watch);

#endif
