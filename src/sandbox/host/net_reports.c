/* SPDX-License-Identifier: Apache-2.0 */
/* The supervisor reports what cordon-net refused. */
#include <poll.h>
#include <sys/socket.h>

#include "base/time.h"
#include "sandbox/host/net_record.h"
#include "sandbox/host/net_reports.h"

#define END_MS 3000 /* cordon-net tells the rest within this time, or it is not told */

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
	case CORDON_NET_REACHED:
		event.kind = CORDON_EVENT_REACHED;
		event.verdict = CORDON_ALLOW;
		event.op = "connect";
		event.path = record->text;
		break;
	case CORDON_NET_FAILED:
		return;
	}
	observer->event(observer->data, &event);
}

/* Receives the records that are there and calls the observer for each. 0; -EIO when cordon-net could not begin, which
 * result->error explains; -EPIPE when it has ended. */
static int read_reports(const struct cordon_net_process *process, const struct cordon_observer *observer,
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
		if (record.kind > CORDON_NET_REACHED || record.kind == 0 || record.reason >= CORDON_REASON__MAX)
			return -EPIPE;
		report(&record, observer, result);
	}
}

/* cordon-net has ended, or could not be started: nothing can be reached any more, and the run goes on. */
static void report_end(const struct cordon_observer *observer, struct cordon_result *result, int status,
		       const struct cordon_error *why)
{
	struct cordon_event event = { .kind = CORDON_EVENT_OFFLINE, .count = 1, .status = status, .why = why };

	result->offline = true;
	observer->event(observer->data, &event);
}

static void start(struct cordon_net_process *process, const struct cordon_observer *observer,
		  struct cordon_result *result)
{
	struct cordon_error err = { 0 };

	if (cordon_net_start(process, &err) < 0)
		report_end(observer, result, 0, &err);
}

int cordon_net_poll(const struct cordon_net_process *process)
{
	return process->wake >= 0 ? process->wake : process->ctl;
}

int cordon_net_serve(struct cordon_net_process *process, const struct cordon_observer *observer,
		     struct cordon_result *result)
{
	int r, status;

	if (process->wake >= 0) {
		start(process, observer, result);
		return 0;
	}
	r = read_reports(process, observer, result);
	if (r == 0)
		return 0;
	status = cordon_net_stop(process);
	if (r == -EIO)
		return r;
	report_end(observer, result, status, NULL);
	return 0;
}

void cordon_net_end(struct cordon_net_process *process, const struct cordon_observer *observer,
		    struct cordon_result *result)
{
	int64_t end = cordon_time_monotonic() + END_MS;
	struct pollfd ready = { .events = POLLIN };

	if (cordon_net_is_due(process))
		start(process, observer, result);
	ready.fd = process->ctl;
	/* It sees the end of our side, tells what it knows, and exits. */
	if (ready.fd >= 0 && shutdown(ready.fd, SHUT_WR) == 0)
		while (read_reports(process, observer, result) == 0) {
			int64_t left = end - cordon_time_monotonic();

			if (left <= 0 || (poll(&ready, 1, (int)left) < 0 && errno != EINTR))
				break;
		}
	cordon_net_stop(process);
}
