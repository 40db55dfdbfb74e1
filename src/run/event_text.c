/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the events of a run as lines of a log. */
#include <inttypes.h>
#include <stdio.h>
#include <sys/wait.h>

#include "base/setting.h"
#include "run/event_text.h"

/* "100 MiB", or the exact number when it is no multiple. */
static void size_text(uint64_t bytes, char *ret, size_t size)
{
	static const char *const units[] = { "bytes", "KiB", "MiB", "GiB", "TiB" };
	size_t unit = 0;

	while (unit + 1 < CORDON_ARRAY_SIZE(units) && bytes && bytes % 1024 == 0) {
		bytes /= 1024;
		unit++;
	}
	snprintf(ret, size, "%" PRIu64 " %s", bytes, units[unit]);
}

static int limit_text(const struct cordon_event *event, struct cordon_buf *ret_text)
{
	char size[32];

	size_text(event->limit, size, sizeof(size));
	if (cordon_streq(event->op, "memory"))
		return cordon_buf_addf(ret_text, "the run used more memory than %s (%s), and was ended", size,
				       cordon_setting_name(CORDON_SETTING_MEMORY));
	if (cordon_streq(event->op, "outer_memory"))
		return cordon_buf_addf(ret_text,
				       "the kernel killed processes of the run for memory%s%s%s%s%s: a control group around "
				       "it or the machine had no more",
				       event->limit ? ", though it had not reached its own limit of " : "",
				       event->limit ? size : "", event->limit ? " (" : "",
				       event->limit ? cordon_setting_name(CORDON_SETTING_MEMORY) : "",
				       event->limit ? ")" : "");
	if (cordon_streq(event->op, "pids"))
		return cordon_buf_addf(ret_text, "the run wanted more than %" PRIu64 " processes and threads (%s)",
				       event->limit, cordon_setting_name(CORDON_SETTING_PIDS));
	if (cordon_streq(event->op, "timeout"))
		return cordon_buf_addf(ret_text, "the run took longer than %" PRIu64 "%s (%s), and was ended",
				       event->limit % 1000 ? event->limit : event->limit / 1000,
				       event->limit % 1000 ? " ms" : " s", cordon_setting_name(CORDON_SETTING_TIMEOUT));
	if (cordon_streq(event->op, "net_connections"))
		return cordon_buf_addf(ret_text, "the run wanted more than %" PRIu64 " connections at once",
				       event->limit);
	if (cordon_streq(event->op, "net_names"))
		return cordon_buf_addf(ret_text, "the run asked for more than %" PRIu64 " names of hosts", event->limit);
	if (cordon_streq(event->op, "net_buffers"))
		return cordon_buf_addf(ret_text, "the connections of the run held more than %s at once", size);
	if (cordon_streq(event->op, "move"))
		return cordon_buf_addf(ret_text,
				       "the view can't rename %s, which it would have to move entry by entry: it has more "
				       "than %" PRIu64 " entries, or is too large or too deep",
				       event->path, event->limit);
	if (cordon_streq(event->op, "tmp"))
		return cordon_buf_addf(ret_text, "the private /tmp, /dev/shm and home were full (%s together); %s",
				       size, cordon_setting_name(CORDON_SETTING_TMP_SIZE));
	return cordon_buf_addf(ret_text,
			       "the private /tmp, /dev/shm and home had room for no more files (%" PRIu64
			       " together); %s",
			       event->limit, cordon_setting_name(CORDON_SETTING_TMP_SIZE));
}

static int offline_text(const struct cordon_event *event, struct cordon_buf *ret_text)
{
	static const char after[] = "no host can be reached any more; the run goes on";

	if (event->why)
		return cordon_buf_addf(ret_text, "%s: %s", event->why->message, after);
	if (WIFSIGNALED(event->status))
		return cordon_buf_addf(ret_text,
				       "cordon-net, which serves the list of hosts, was killed by signal %d: %s",
				       WTERMSIG(event->status), after);
	return cordon_buf_addf(ret_text, "cordon-net, which serves the list of hosts, ended with status %d: %s",
			       WEXITSTATUS(event->status), after);
}

bool cordon_event_is_refusal_by_limit(const struct cordon_event *event)
{
	return event->kind == CORDON_EVENT_LIMIT && !cordon_streq(event->op, "memory") &&
	       !cordon_streq(event->op, "outer_memory") && !cordon_streq(event->op, "timeout");
}

const char *cordon_event_text(const struct cordon_event *event, struct cordon_buf *ret_text)
{
	const char *kind = "notice";
	int r = 0;

	switch (event->kind) {
	case CORDON_EVENT_VIOLATION:
		kind = "violation";
		r = cordon_buf_addf(ret_text, "%s %s: %s", cordon_verdict_name(event->verdict), event->op, event->path);
		if (r == 0 && cordon_event_of_net(event) && event->rule)
			r = cordon_buf_addf(ret_text, " (allowed by %s)", event->rule);
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
		r = limit_text(event, ret_text);
		break;
	case CORDON_EVENT_HARD_LINK:
		r = cordon_buf_addf(ret_text, "a protected path had other names and was copied apart: %s", event->path);
		break;
	case CORDON_EVENT_OFFLINE:
		r = offline_text(event, ret_text);
		break;
	case CORDON_EVENT_STARTED:
	case CORDON_EVENT_SCREEN:
	case CORDON_EVENT_LEFT:
	case CORDON_EVENT_REACHED:
		return NULL;
	}
	return r < 0 ? NULL : kind;
}
