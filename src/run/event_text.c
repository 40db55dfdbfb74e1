/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the events of a run as lines of a log. */
#include "run/event_text.h"

const char *cordon_event_text(const struct cordon_event *event, struct cordon_buf *ret_text)
{
	const char *kind = "notice";
	int r = 0;

	switch (event->kind) {
	case CORDON_EVENT_VIOLATION:
		kind = "violation";
		r = cordon_buf_addf(ret_text, "%s %s: %s", cordon_verdict_name(event->verdict), event->op, event->path);
		break;
	case CORDON_EVENT_UNTOLD:
		kind = "violation";
		r = cordon_buf_addf(ret_text, "%u more violations", event->count);
		break;
	case CORDON_EVENT_LOST:
		r = cordon_buf_addf(ret_text, "the host replaced a protected path: %s", event->path);
		break;
	case CORDON_EVENT_MADE:
		r = cordon_buf_addf(ret_text, "the host made a protected path: %s", event->path);
		break;
	case CORDON_EVENT_LIMIT:
		r = cordon_buf_addf(ret_text, "the %s limit was reached", event->op);
		break;
	case CORDON_EVENT_HARD_LINK:
		r = cordon_buf_addf(ret_text, "a protected path had other names and was copied apart: %s", event->path);
		break;
	case CORDON_EVENT_STARTED:
	case CORDON_EVENT_SCREEN:
	case CORDON_EVENT_LEFT:
		return NULL;
	}
	return r < 0 ? NULL : kind;
}
