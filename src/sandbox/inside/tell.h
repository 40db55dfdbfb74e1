/* SPDX-License-Identifier: Apache-2.0 */
/* The hand tells the supervisor, as text, what a call touched: the supervisor judges what is reported. */
#ifndef CORDON_SANDBOX_INSIDE_TELL_H
#define CORDON_SANDBOX_INSIDE_TELL_H

#include "sandbox/inside/deed.h"

/* Whether nothing is reported of places where the agent itself makes entries. A mode that warns does report them. */
bool cordon_tell_skips_free(const struct cordon_plan *plan);
/* A quick test, with at most two system calls: true when this touch is certainly not reported. */
bool cordon_tell_skips(const struct cordon_plan *plan, const struct cordon_policy *policy, int root_fd,
		       const struct cordon_touch *touch);

/* Looks where the paths of a call lead, before the call continues: afterwards its process may be gone. True when there
 * is something to tell. The message stays valid until the next look. */
bool cordon_tell_look(const struct cordon_plan *plan, const struct cordon_policy *policy, int root_fd, pid_t pid,
		      const struct cordon_touch *touches, size_t n, struct cordon_hand_message *ret);
/* The same for a learning run, which is told of all paths that may matter. */
bool cordon_tell_sight(const struct cordon_plan *plan, int root_fd, pid_t pid, const struct cordon_touch *touches,
		       size_t n, struct cordon_hand_message *ret);
/* Fills a message about one path inside. */
void cordon_tell_path(struct cordon_hand_message *ret, cordon_hand_kind kind, int code, const char *op,
		      const char *path);

/* Sends a message, and waits until the supervisor has reported it. Ends the process when there is no supervisor. */
void cordon_tell_send(const struct cordon_hand *hand, const struct cordon_hand_message *message, bool wait);

#endif
