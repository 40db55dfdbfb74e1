/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a command through libcordon: it may write some folders of a directory, and everything that is refused is
 * printed as it happens.
 *
 *     cc run_agent.c $(pkg-config --cflags --libs cordon) -o run_agent
 *     ./run_agent . lib,src sh -c 'echo x > lib/a; echo x > docs/b'
 *
 * Only include/cordon.h is used. The exit status is the same as that of `cordon run`.
 */
#include <stdio.h>

#include <cordon.h>

static int report(const char *what, const struct cordon_error *err)
{
	fprintf(stderr, "run_agent: %s: %s: %s\n", what, cordon_kind_name(err->kind), err->message);
	if (*err->hint)
		fprintf(stderr, "run_agent: hint: %s\n", err->hint);
	return 125;
}

static void on_event(void *data, const struct cordon_event *event)
{
	unsigned int *refused = data;

	if (event->kind != CORDON_EVENT_VIOLATION || event->verdict != CORDON_DENY)
		return;
	++*refused;
	fprintf(stderr, "run_agent: refused: %s %s\n", event->op, event->path);
}

int main(int argc, char **argv)
{
	unsigned int refused = 0;
	struct cordon_observer observer = { .data = &refused, .event = on_event };
	struct cordon_run_spec spec = { .net = CORDON_NET_NONE };
	struct cordon_policy *policy = NULL;
	struct cordon_result result;
	struct cordon_error err = { 0 };
	int status;

	if (argc < 4) {
		fprintf(stderr, "usage: run_agent ROOT FOLDERS COMMAND [ARG]...\n");
		return 2;
	}
	if (cordon_policy_new(argv[1], &policy, &err) < 0)
		return report(argv[1], &err);
	if (cordon_policy_grant_folders(policy, argv[2], &err) < 0 || cordon_policy_protect_defaults(policy, &err) < 0) {
		cordon_policy_free(policy);
		return report(argv[2], &err);
	}
	spec.policy = policy;
	spec.argv = argv + 3;
	if (cordon_run(&spec, &observer, &result, &err) < 0)
		status = report(argv[3], &err);
	else
		status = result.own_exit;
	printf("%s, %u refused, %u counted\n", cordon_state_name(result.state), refused, result.violations);
	cordon_result_done(&result);
	cordon_policy_free(policy);
	return status;
}
