/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes what the supervisor hears from a hand: packets of any bytes. It checks them, judges them and reports them;
 * it opens nothing, and each report names a path and an operation. The input is a row of packets: two bytes for the
 * length, then the packet.
 */
#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "sandbox/watch/report.h"
#include "sandbox/watch/watch.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct cordon_policy *policies[2];
static struct cordon_plan *plans[2];

static void receive_event(void *data, const struct cordon_event *event)
{
	(void)data;
	assert(event->kind == CORDON_EVENT_VIOLATION || event->kind == CORDON_EVENT_UNTOLD ||
	       event->kind == CORDON_EVENT_LIMIT);
	assert(event->count > 0);
	if (event->kind != CORDON_EVENT_UNTOLD)
		assert(event->op && event->path && strlen(event->path) < CORDON_PATH_MAX);
}

static void receive_sight(void *data, const struct cordon_sight *sight)
{
	(void)data;
	assert(sight->path && strlen(sight->path) < CORDON_PATH_MAX);
}

static void forward_output(void *data)
{
	(void)data;
}

/* The descriptor that an open would get. */
static int next_fd(void)
{
	int fd = fcntl(0, F_DUPFD, 3);

	close(fd);
	return fd;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	char dir[] = "/tmp/cordon-fuzz-XXXXXX", program[] = "/bin/true", *words[] = { program, NULL };

	(void)argc;
	(void)argv;
	assert(mkdtemp(dir) && chdir(dir) == 0 && mkdir("src", 0755) == 0 && mkdir("secret", 0755) == 0);
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(plans); i++) {
		struct cordon_run_spec run = { .argv = words };
		struct cordon_plan_spec spec = { .run = &run,
						 .run_id = "run",
						 .landlock_abi = CORDON_LANDLOCK_ABI_SCOPES };
		struct cordon_error err = { 0 };

		assert(cordon_policy_new(dir, &policies[i], NULL) == 0);
		cordon_policy_set_mode(policies[i], i ? CORDON_MODE_PERMISSIVE : CORDON_MODE_STRICT);
		assert(cordon_policy_add_grant(policies[i], "src", CORDON_ACCESS_WRITE, NULL, NULL) == 0);
		assert(cordon_policy_add_grant(policies[i], "secret", CORDON_ACCESS_NONE, NULL, NULL) == 0);
		assert(cordon_policy_add_protected(policies[i], "src/AGENTS.md", NULL, false, NULL) == 0);
		run.policy = policies[i];
		if (cordon_plan_build(&spec, &plans[i], &err) < 0) {
			fprintf(stderr, "%s\n", err.message);
			abort();
		}
	}
	assert(rmdir("src") == 0 && rmdir("secret") == 0 && chdir("/") == 0 && rmdir(dir) == 0);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct cordon_observer observer = { .event = receive_event, .sight = receive_sight };
	static struct cordon_hand_message message;
	size_t which = size ? data[0] % CORDON_ARRAY_SIZE(plans) : 0;
	struct cordon_watched watched = {
		.plan = plans[which], .policy = policies[which], .observer = &observer, .forward_output = forward_output
	};
	struct cordon_reports *reports = cordon_reports_new(&watched);
	int before = next_fd();

	assert(reports);
	for (size_t at = 1; at + 2 <= size;) {
		size_t n = data[at] | (size_t)data[at + 1] << 8;

		at += 2;
		n = n > size - at ? size - at : n;
		n = n > sizeof(message) ? sizeof(message) : n;
		/* What an earlier packet left behind this one's end must not count. */
		memset(&message, 'x', sizeof(message));
		memcpy(&message, data + at, n);
		at += n;
		if (cordon_watch_is_whole(&message, n))
			cordon_reports_told(reports, &message);
	}
	cordon_reports_free(reports);
	assert(next_fd() == before);
	return 0;
}
