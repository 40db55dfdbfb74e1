/* SPDX-License-Identifier: Apache-2.0 */
/* The events of a run as lines of a log, for front ends that keep one. */
#ifndef CORDON_RUN_EVENT_TEXT_H
#define CORDON_RUN_EVENT_TEXT_H

#include "base/buf.h"
#include "base/error.h"

#define CORDON_OP_ENV "env" /* of a violation: a variable that was asked for is not there */

/* Whether a violation is about a host and not about a path. */
static inline bool cordon_event_of_net(const struct cordon_event *event)
{
	return event->reason == CORDON_REASON_NO_HOST || event->reason == CORDON_REASON_OTHER_HOST ||
	       event->reason == CORDON_REASON_NOT_PUBLIC || event->reason == CORDON_REASON_HIDDEN_HOST;
}

/* Whether it is a limit that refused something, while the run went on. That counts as a violation. */
bool cordon_event_is_refusal_by_limit(const struct cordon_event *event);

/* Appends one line without its end and returns what kind of line it is: "violation" or "notice". NULL for an event that a log
 * does not have, and without memory. */
const char *cordon_event_text(const struct cordon_event *event, struct cordon_buf *ret_text);

#endif
