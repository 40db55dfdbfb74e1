/* SPDX-License-Identifier: Apache-2.0 */
/* The events of a run as lines of a log, for front ends that keep one. */
#ifndef CORDON_RUN_EVENT_TEXT_H
#define CORDON_RUN_EVENT_TEXT_H

#include "base/buf.h"
#include "base/error.h"

/* Appends one line without its end and returns what kind of line it is: "violation" or "notice". NULL for an event that a log
 * does not have, and without memory. */
const char *cordon_event_text(const struct cordon_event *event, struct cordon_buf *ret_text);

#endif
