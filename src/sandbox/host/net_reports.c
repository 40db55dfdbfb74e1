/* SPDX-License-Identifier: Apache-2.0 */
/* The supervisor reports what cordon-net refused. */
#include <sys/socket.h>

#include "sandbox/host/net_record.h"
#include "sandbox/host/net_reports.h"

static void report(const struct cordon_net_record *record, const struct cordon_observer *observer,
		   struct cordon_result *result)
{
	struct cordon_event event = { .kind = CORDON_EVENT_VIOLATION, .verdict = CORDON_DENY, .count = 1 };

	switch ((enum cordon_net_record_kind)record->kind) {
	case CORDON_NET_REFUSED:
		event.op = record->resolve ? "resolve" : "connect";
		event.path = record->text;
		event.rule = record->rule[0] ? record->rule : NULL;
		event.reason = (cordon_reason)record->reason;
		result->violations++;
		break;
	case CORDON_NET_LIMIT:
		event = (struct cordon_event){
			.kind = CORDON_EVENT_LIMIT, .op = record->text, .limit = record->limit, .count = 1
		};
		break;
	case CORDON_NET_UNTOLD:
		event = (struct cordon_event){ .kind = CORDON_EVENT_UNTOLD, .count = record->limit };
		result->violations += record->limit;
		break;
	case CORDON_NET_FAILED:
		return;
	}
	observer->event(observer->data, &event);
}

int cordon_net_reports_read(const struct cordon_net_process *process, const struct cordon_observer *observer,
			    struct cordon_result *result)
{
	struct cordon_net_record record;
	ssize_t n;

	for (;;) {
		do
			n = recv(process->ctl, &record, sizeof(record), MSG_DONTWAIT);
		while (n < 0 && errno == EINTR);
		if (n < 0 && errno == EAGAIN)
			return 0;
		if (n != (ssize_t)sizeof(record))
			return -EPIPE;
		/* Our own process sent it, but what it read came from the agent. */
		record.text[sizeof(record.text) - 1] = record.rule[sizeof(record.rule) - 1] = '\0';
		if (record.kind == CORDON_NET_FAILED) {
			if (!result->error.code)
				cordon_fail(&result->error, -EIO, CORDON_KIND_IO, "cordon-net: %s", record.text);
			return -EIO;
		}
		if (record.kind > CORDON_NET_UNTOLD || record.kind == 0 || record.reason >= CORDON_REASON__MAX)
			return -EPIPE;
		report(&record, observer, result);
	}
}
