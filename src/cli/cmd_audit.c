/* SPDX-License-Identifier: Apache-2.0 */
/* cordon audit: prints the audit log. cordon audit verify: checks that no record of it was changed or removed. */
#include <poll.h>
#include <signal.h>
#include <stdio.h>

#include "audit/query.h"
#include "audit/verify.h"
#include "base/time.h"
#include "cli/commands.h"

#define LINE_TEXT_MAX (64 << 10)
#define RUNS_SHOWN 5 /* candidates that a message names */

enum { KEY_FOLLOW = 1, KEY_SINCE, KEY_UNTIL, KEY_KIND, KEY_RUN, KEY_AGENT, KEY_PATH, KEY_DECISION };

struct arguments {
	struct cordon_audit_filter filter;
	struct cordon_buf agent, path; /* what the filter has of them, unless that is in argv */
	bool follow;
	bool colour;
};

static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal_number)
{
	(void)signal_number;
	interrupted = 1;
}

static int set_text(const char *arg, struct cordon_buf *buf, const char **ret_text, struct cordon_error *err)
{
	cordon_buf_reset(buf);
	*ret_text = cordon_audit_as_logged(arg, buf);
	return *ret_text ? 0 : cordon_fail_errno(err, -ENOMEM, "options");
}

static int set_option(void *data, int key, const char *arg, struct cordon_error *err)
{
	struct arguments *args = data;

	switch (key) {
	case KEY_FOLLOW:
		args->follow = true;
		return 0;
	case KEY_SINCE:
		return cordon_audit_since_parse(arg, cordon_time_now(), &args->filter, err);
	case KEY_UNTIL:
		return cordon_audit_until_parse(arg, cordon_time_now(), &args->filter, err);
	case KEY_AGENT:
		return set_text(arg, &args->agent, &args->filter.agent, err);
	case KEY_PATH:
		return set_text(arg, &args->path, &args->filter.path, err);
	case KEY_DECISION:
		return cordon_audit_decision_parse(arg, &args->filter, err);
	case KEY_KIND:
		return cordon_audit_kinds_parse(arg, &args->filter, err);
	case KEY_RUN:
		return cordon_audit_run_parse(arg, &args->filter, err);
	default:
		return 0;
	}
}

static void freep_reader(struct cordon_audit_reader **reader)
{
	*reader = cordon_audit_reader_free(*reader);
}

/* Prints one item if the filter matches it. Counts damaged lines, and prints them unless the output is JSON. */
static int show(const struct cordon_cli *cli, const struct arguments *args, const struct cordon_audit_item *item,
		uint64_t *damaged)
{
	autobuf struct cordon_buf text = CORDON_BUF(LINE_TEXT_MAX);
	int r;

	if (item->damaged) {
		(*damaged)++;
		if (!cli->json && printf("%s:%llu: not a record\n", item->file, (unsigned long long)item->line) < 0)
			return -errno;
		return 0;
	}
	if (!cordon_audit_match(&args->filter, &item->record))
		return 0;
	r = cli->json ? cordon_buf_add(&text, item->text, item->n)
		      : cordon_audit_format(&item->record, args->colour, &text);
	if (r == 0)
		r = cordon_buf_addc(&text, '\n');
	if (r == 0 && fwrite(text.data, 1, text.len, stdout) != text.len)
		r = -errno;
	return r;
}

static int show_all(const struct cordon_cli *cli, const struct arguments *args, struct cordon_audit_reader *reader,
		    uint64_t *damaged, struct cordon_error *err)
{
	struct cordon_audit_item item;
	int r = 0;

	while (!interrupted && (r = cordon_audit_reader_next(reader, &item, err)) > 0) {
		r = show(cli, args, &item, damaged);
		if (r < 0)
			break;
	}
	if (r == 0 && fflush(stdout) != 0)
		r = -errno;
	/* Our own signal handler interrupts writes; that is no failure. */
	if (interrupted)
		return 0;
	return r < 0 && err->code == 0 ? cordon_fail_errno(err, r, "cannot print the audit log") : r;
}

/* Waits until the log may have grown. Returns 1 when the reader of our output has gone. */
static int wait_for_more(int fd, const sigset_t *ends, struct cordon_error *err)
{
	struct pollfd fds[] = { { .fd = fd, .events = POLLIN }, { .fd = STDOUT_FILENO } };
	sigset_t before;
	int r = 0;

	/* The signals are blocked while the flag is read and delivered while we wait, so that none is lost in
	 * between. */
	sigprocmask(SIG_BLOCK, ends, &before);
	if (!interrupted && ppoll(fds, 2, NULL, &before) < 0 && errno != EINTR)
		r = cordon_fail_errno(err, -errno, "cannot wait for the audit log");
	sigprocmask(SIG_SETMASK, &before, NULL);
	return r < 0 ? r : (fds[1].revents & (POLLERR | POLLHUP)) != 0;
}

/* Prints new records until a signal arrives or the reader of our output has gone. */
static int follow(const struct cordon_cli *cli, const struct arguments *args, struct cordon_audit_reader *reader,
		  uint64_t *damaged, struct cordon_error *err)
{
	struct sigaction action = { .sa_handler = on_interrupt };
	sigset_t ends;
	int fd = cordon_audit_reader_fd(reader, err);
	int r = fd < 0 ? fd : 0;

	sigemptyset(&ends);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGTERM);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	while (r == 0 && !interrupted) {
		/* Read first: records may have been written while the watch was set up. */
		r = cordon_audit_reader_refresh(reader, err);
		if (r == 0)
			r = show_all(cli, args, reader, damaged, err);
		if (r == 0)
			r = wait_for_more(fd, &ends, err);
	}
	return r < 0 ? r : 0;
}

/* Refuses first characters that several runs have, and names these. */
static int settle_run(const struct cordon_home *home, const struct cordon_audit_filter *filter, struct cordon_error *err)
{
	struct cordon_audit_filter same = { .run = filter->run };
	autobuf struct cordon_buf list = CORDON_BUF(1024);
	json_auto_t *runs = NULL;
	size_t n = 0;
	const char *id;
	json_t *first_seen;
	int r;

	if (!filter->run || cordon_uuid_valid(filter->run))
		return 0;
	r = cordon_audit_runs(home, &same, &runs, err);
	if (r < 0 || json_object_size(runs) < 2)
		return r;
	json_object_foreach(runs, id, first_seen) {
		if (n++ < RUNS_SHOWN)
			cordon_buf_addf(&list, "%s%s", n > 1 ? ", " : "", id);
	}
	if (n > RUNS_SHOWN)
		cordon_buf_addf(&list, " and %zu more", n - RUNS_SHOWN);
	r = cordon_fail(err, -ENOTUNIQ, CORDON_KIND_USAGE, "%s may be %zu runs: %s", filter->run, n,
			list.data ? list.data : "");
	cordon_error_hint(err, "say more of the id");
	return r;
}

static int run_with(struct cordon_cli *cli, struct arguments *args, int argc, char **argv)
{
	CORDON_CLEANUP(freep_reader) struct cordon_audit_reader *reader = NULL;
	autohome struct cordon_home home = CORDON_HOME_NONE;
	struct cordon_error err = { 0 };
	uint64_t damaged = 0;
	int first, r = cordon_cli_parse(cli, argc, argv, 0, set_option, args, &first, &err);

	if (r > 0)
		return CORDON_EXIT_OK;
	if (r < 0)
		return cordon_cli_fail(cli, &err);
	if (first < argc)
		return cordon_cli_usage(cli, "unexpected operand: %s", argv[first]);
	args->colour = cordon_cli_colour(STDOUT_FILENO);
	r = cordon_home_open(&home, &err);
	if (r == 0)
		r = settle_run(&home, &args->filter, &err);
	if (r == 0)
		r = cordon_audit_reader_new(&home, &args->filter, &reader, &err);
	if (r == 0)
		r = show_all(cli, args, reader, &damaged, &err);
	if (r == 0 && args->follow)
		r = follow(cli, args, reader, &damaged, &err);
	/* A reader that stops early (`| head`) is no failure. */
	if (r == -EPIPE)
		return CORDON_EXIT_OK;
	if (r < 0)
		return cordon_cli_fail(cli, &err);
	if (damaged) {
		cordon_fail(&err, -EBADMSG, CORDON_KIND_IO, "the audit log has lines that are no records: %llu",
			    (unsigned long long)damaged);
		cordon_error_hint(&err, "see 'cordon audit verify'");
		cordon_cli_fail(cli, &err);
	}
	return CORDON_EXIT_OK;
}

static int run_audit(struct cordon_cli *cli, int argc, char **argv)
{
	struct arguments args = { .agent = CORDON_BUF(LINE_TEXT_MAX), .path = CORDON_BUF(LINE_TEXT_MAX) };
	int r = run_with(cli, &args, argc, argv);

	cordon_buf_done(&args.agent);
	cordon_buf_done(&args.path);
	return r;
}

static json_t *finding_json(const struct cordon_audit_finding *finding)
{
	return json_pack("{s:s, s:I, s:s}", "file", finding->file, "line", (json_int_t)finding->line, "reason",
			 finding->reason);
}

static json_t *report_json(const struct cordon_audit_report *report)
{
	json_t *object = json_pack("{s:b, s:I, s:I, s:I, s:s, s:I, s:I}", "ok", report->breaks == 0, "files",
				   (json_int_t)report->files, "records", (json_int_t)report->records, "last_seq",
				   (json_int_t)report->last_seq, "last_hash", report->last_hash, "breaks",
				   (json_int_t)report->breaks, "torn", (json_int_t)report->torn);

	if (report->breaks)
		json_object_set_new(object, "first_break", finding_json(&report->first_break));
	if (report->torn)
		json_object_set_new(object, "first_torn", finding_json(&report->first_torn));
	return object;
}

/* The log of calls stands beside the other one. */
static int print_reports_json(const struct cordon_cli *cli, const struct cordon_audit_report *report,
			      const struct cordon_audit_report *calls)
{
	json_t *object = report_json(report);

	json_object_set_new(object, "calls", report_json(calls));
	if (calls->breaks)
		json_object_set_new(object, "ok", json_false());
	return cordon_cli_print_json(cli, object);
}

static void print_finding(const char *what, const struct cordon_audit_finding *finding)
{
	if (finding->line)
		printf("%s: %s:%llu: %s\n", what, finding->file, (unsigned long long)finding->line, finding->reason);
	else
		printf("%s: %s: %s\n", what, finding->file, finding->reason);
}

static void print_report(const struct cordon_audit_report *report, const char *what)
{
	if (report->breaks)
		print_finding("broken", &report->first_break);
	if (report->breaks > 1)
		printf("and %llu more breaks\n", (unsigned long long)report->breaks - 1);
	if (report->torn)
		print_finding("torn", &report->first_torn);
	if (report->torn > 1)
		printf("and %llu more torn lines\n", (unsigned long long)report->torn - 1);
	printf("%s: %llu %s, the last is number %llu with hash %s\n", report->breaks ? "not whole" : "whole",
	       (unsigned long long)report->records, what, (unsigned long long)report->last_seq, report->last_hash);
}

static int no_option(void *data, int key, const char *arg, struct cordon_error *err)
{
	(void)data, (void)key, (void)arg, (void)err;
	return 0;
}

static int run_verify(struct cordon_cli *cli, int argc, char **argv)
{
	autohome struct cordon_home home = CORDON_HOME_NONE;
	struct cordon_audit_report report = { 0 }, calls = { 0 };
	struct cordon_error err = { 0 };
	int first, r = cordon_cli_parse(cli, argc, argv, 0, no_option, NULL, &first, &err);

	if (r > 0)
		return CORDON_EXIT_OK;
	if (r < 0)
		return cordon_cli_fail(cli, &err);
	if (first < argc)
		return cordon_cli_usage(cli, "unexpected operand: %s", argv[first]);
	r = cordon_home_open(&home, &err);
	if (r == 0)
		r = cordon_audit_verify(&home, &(struct cordon_audit_part){ 0 }, &report, &err);
	if (r == 0)
		r = cordon_audit_verify(&home, &(struct cordon_audit_part){ .calls = true }, &calls, &err);
	if (r < 0)
		return cordon_cli_fail(cli, &err);
	if (cli->json) {
		r = print_reports_json(cli, &report, &calls);
		return r ? r : report.breaks || calls.breaks ? CORDON_EXIT_NO : CORDON_EXIT_OK;
	}
	print_report(&report, "records");
	if (calls.records || calls.breaks || calls.torn)
		print_report(&calls, "records of calls");
	return report.breaks || calls.breaks ? CORDON_EXIT_NO : CORDON_EXIT_OK;
}

static const struct cordon_option audit_options[] = {
	{ "follow", 'f', CORDON_ARG_NONE, NULL, "go on with what is written from now on", KEY_FOLLOW },
	{ "since", 0, CORDON_ARG_TEXT, "TIME", "only from a time on: 10m, 2h, 2026-01-02T03:04:05Z", KEY_SINCE },
	{ "until", 0, CORDON_ARG_TEXT, "TIME", "only before a time", KEY_UNTIL },
	{ "kind", 0, CORDON_ARG_TEXT, "EVENT,...", "only these events: violation, refusal, end, ...", KEY_KIND },
	{ "run", 0, CORDON_ARG_TEXT, "RUN-ID", "only this run; the first characters are enough", KEY_RUN },
	{ "agent", 0, CORDON_ARG_TEXT, "NAME", "only agents and orchestrators with this in their name", KEY_AGENT },
	{ "path", 0, CORDON_ARG_TEXT, "TEXT", "only paths and hosts with this in them", KEY_PATH },
	{ "decision", 0, CORDON_ARG_CHOICE, "allow|warn|deny", "only with this decision", KEY_DECISION },
	{ 0 },
};

const struct cordon_command cordon_cmd_audit = {
	.name = "audit",
	.operands = "",
	.summary = "show what runs did, tried and were refused",
	.details = "One line per record, oldest first; with --json the records as they were written, one object per\n"
		   "line. 'cordon audit verify' says whether the log is whole.\n",
	.options = audit_options,
	.run = run_audit,
};

const struct cordon_command cordon_cmd_audit_verify = {
	.name = "audit verify",
	.operands = "",
	.summary = "say whether the audit log is whole",
	.details = "Exits with 0 when every record follows from the one before it and none is missing, with 1 when the\n"
		   "chain is broken; the first break is named as file:line. The hash of the last record, kept elsewhere,\n"
		   "proves the whole log up to it.\n",
	.run = run_verify,
};
