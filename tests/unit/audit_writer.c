/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Appends to the audit log of $CORDON_HOME as a supervisor would, for tests that need several processes.
 *
 *     audit_writer [--run ID] [--event E] [--path P] [--count N] [--rotate BYTES] [--keep N] [--ack] [--hold]
 *
 * It writes --count events of one type. With --ack it prints a line after each event that was acknowledged; with
 * --hold it waits for the end of stdin before it closes the log. At the end it prints {"written":…,"dropped":…}.
 */
#include <getopt.h>
#include <stdio.h>

#include "audit/audit.h"

struct arguments {
	struct cordon_audit_ids ids;
	struct cordon_audit_event event;
	uint64_t count, rotate, keep;
	bool ack, hold;
};

static int parse(int argc, char **argv, struct arguments *args)
{
	static const struct option longs[] = {
		{ "run", 1, NULL, 'r' },   { "event", 1, NULL, 'e' },  { "path", 1, NULL, 'p' },
		{ "count", 1, NULL, 'c' }, { "rotate", 1, NULL, 'R' }, { "keep", 1, NULL, 'k' },
		{ "ack", 0, NULL, 'a' },   { "hold", 0, NULL, 'h' },   { 0 },
	};
	int c, r = 0;

	while (r == 0 && (c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		if (c == 'r')
			args->ids.session_id = optarg;
		else if (c == 'e')
			r = cordon_audit_type_parse(optarg, strlen(optarg), &args->event.type);
		else if (c == 'p')
			args->event.path = optarg;
		else if (c == 'c')
			r = cordon_parse_u64(optarg, 0, UINT64_MAX, &args->count);
		else if (c == 'R')
			r = cordon_parse_u64(optarg, 0, UINT64_MAX, &args->rotate);
		else if (c == 'k')
			r = cordon_parse_u64(optarg, 0, 1000, &args->keep);
		else if (c == 'a')
			args->ack = true;
		else if (c == 'h')
			args->hold = true;
		else
			r = -EINVAL;
	}
	return r;
}

static int fail(const struct cordon_error *err)
{
	fprintf(stderr, "audit_writer: %s\n", err->message);
	return 1;
}

int main(int argc, char **argv)
{
	struct arguments args = { .ids = { .session_id = "test" }, .count = 1 };
	autohome struct cordon_home home = CORDON_HOME_NONE;
	struct cordon_audit *audit = NULL;
	struct cordon_error err = { 0 };
	char byte;

	args.event = (struct cordon_audit_event){ .type = CORDON_AUDIT_VIOLATION, .op = "write", .decision = "deny" };
	if (parse(argc, argv, &args) < 0)
		return 2;
	if (cordon_home_open(&home, &err) < 0 || cordon_audit_open(&home, &args.ids, &audit, &err) < 0)
		return fail(&err);
	if (args.rotate)
		cordon_audit_set_rotation(audit, args.rotate, (unsigned int)args.keep);
	for (uint64_t i = 0; i < args.count; i++) {
		json_t *detail = json_pack("{s:I}", "n", (json_int_t)i);
		int r;

		args.event.detail = detail;
		r = cordon_audit_write(audit, &args.event, &err);
		json_decref(detail);
		if (r < 0) {
			cordon_audit_close(audit);
			return fail(&err);
		}
		if (args.ack) {
			printf("%llu\n", (unsigned long long)i);
			fflush(stdout);
		}
	}
	printf("done\n");
	fflush(stdout);
	while (args.hold && read(STDIN_FILENO, &byte, 1) > 0)
		;
	cordon_audit_close(audit);
	return 0;
}
