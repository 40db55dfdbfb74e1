/* SPDX-License-Identifier: Apache-2.0 */
/* cordon approvals list, show, approve, deny: what waits for a person, and the answers. */
#include <poll.h>
#include <stdio.h>
#include <sys/inotify.h>

#include "base/json.h"
#include "base/path.h"
#include "base/text.h"
#include "cli/ask.h"
#include "cli/commands.h"
#include "cli/records.h"
#include "job/session.h"

#define INDENT "    "
#define SHORT_LINE 72 /* columns of a field that stands beside its name */

enum { OPT_ALL = 1, OPT_FOLLOW, OPT_FOR, OPT_YES };

struct args {
	bool all, follow, yes;
	cordon_approval_span span;
	struct cordon_store store;
	char id[CORDON_ID_SIZE];
};

static int set(void *data, int key, const char *arg, struct cordon_error *err)
{
	struct args *args = data;

	if (key == OPT_FOR)
		return cordon_approval_span_parse(arg, &args->span, err);
	*(key == OPT_ALL ? &args->all : key == OPT_YES ? &args->yes : &args->follow) = true;
	return 0;
}

static void args_done(struct args *args)
{
	cordon_store_done(&args->store);
}

/* clang-format off */
#define ARGS_NONE { .store = CORDON_STORE_NONE }
/* clang-format on */
#define autoargs CORDON_CLEANUP(args_done)

/* ---- list ---- */

/* The texts of a record were escaped when it was written, and are printed as they are: escaping them again would tear their quotation
 * marks open. On a terminal the whole question stands below its line; nothing of it is cut off. */
static void print_approval(const struct cordon_cli *cli, const struct cordon_approval_record *record)
{
	if (cli->quiet) {
		printf("%.*s\n", CORDON_APPROVAL_SHORT, record->id);
	} else if (isatty(STDOUT_FILENO)) {
		printf("%.*s  %s  %s  %s\n", CORDON_APPROVAL_SHORT, record->id,
		       cordon_approval_state_name(record->state), record->created_at, record->principal);
		cordon_cli_wrap(stdout, INDENT, record->question);
	} else {
		printf("%.*s\t%s\t%s\t%s\t%s\n", CORDON_APPROVAL_SHORT, record->id,
		       cordon_approval_state_name(record->state), record->created_at, record->principal,
		       record->question);
	}
}

static int print_approvals(const struct cordon_cli *cli, const struct args *args, struct cordon_error *err)
{
	const struct cordon_approval_query query = { .waiting = !args->all };
	autoapprovals struct cordon_approvals found = { 0 };
	json_auto_t *records = json_array();
	int r = cordon_approvals_load(&args->store, &query, &found, err);

	for (size_t i = 0; r == 0 && i < found.n; i++)
		if (!cli->json)
			print_approval(cli, &found.items[i]);
		else if (json_array_append_new(records, cordon_approval_json(&found.items[i])) < 0)
			r = cordon_fail_errno(err, -ENOMEM, "cannot list the approvals");
	if (r == 0 && cli->json)
		cordon_cli_print_json(cli, json_incref(records));
	return r;
}

/* Prints one line for each approval that waits and has not been printed. */
static int print_new(const struct cordon_cli *cli, const struct cordon_store *store, json_t *seen,
		     struct cordon_error *err)
{
	const struct cordon_approval_query query = { .waiting = true };
	autoapprovals struct cordon_approvals found = { 0 };
	int r = cordon_approvals_load(store, &query, &found, err);

	for (size_t i = 0; r == 0 && i < found.n; i++) {
		const struct cordon_approval_record *record = &found.items[i];

		if (json_object_get(seen, record->id))
			continue;
		json_object_set_new(seen, record->id, json_true());
		if (cli->json) {
			json_auto_t *object = cordon_approval_json(record);

			json_dumpf(object, stdout, JSON_COMPACT);
			putchar('\n');
		} else if (cli->quiet || isatty(STDOUT_FILENO)) {
			print_approval(cli, record);
		} else {
			printf("%.*s\t%s\t%s\n", CORDON_APPROVAL_SHORT, record->id, record->principal, record->question);
		}
		fflush(stdout);
	}
	return r;
}

/* Prints what begins to wait, until a signal ends the process. */
static int follow(const struct cordon_cli *cli, const struct cordon_store *store, struct cordon_error *err)
{
	autofd int watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	json_auto_t *seen = json_object();
	char path[CORDON_PATH_MAX], events[4096];
	struct pollfd fds[] = { { .fd = watch, .events = POLLIN }, { .fd = STDOUT_FILENO } };
	autofd int dir = -1;
	int r = cordon_home_subdir(&store->home, CORDON_APPROVALS_DIR, &dir, err);

	if (r == 0)
		r = cordon_path_join(store->home.path, "state/" CORDON_APPROVALS_DIR, path, sizeof(path));
	if (r < 0)
		return r;
	if (watch < 0 || inotify_add_watch(watch, path, IN_MOVED_TO | IN_ONLYDIR | IN_DONT_FOLLOW) < 0)
		return cordon_fail_errno(err, -errno, "cannot watch the approvals");
	while ((r = print_new(cli, store, seen, err)) == 0) {
		/* A reader that has gone ends it, too. */
		if ((poll(fds, CORDON_ARRAY_SIZE(fds), -1) < 0 && errno != EINTR) ||
		    fds[1].revents & (POLLERR | POLLHUP))
			return 0;
		while (read(watch, events, sizeof(events)) > 0)
			;
	}
	return r;
}

static int run_list(struct cordon_cli *cli, int argc, char **argv)
{
	autoargs struct args args = ARGS_NONE;
	struct cordon_error err = { 0 };
	int first, r = cordon_cli_parse(cli, argc, argv, 0, set, &args, &first, &err);

	if (r != 0)
		return r > 0 ? CORDON_EXIT_OK : cordon_cli_fail(cli, &err);
	if (first < argc)
		return cordon_cli_usage(cli, "unexpected argument: %s", argv[first]);
	if (args.all && args.follow)
		return cordon_cli_usage(cli, "--follow shows what begins to wait; --all has no meaning with it");
	if (!cordon_cli_open_store(cli, &args.store, &r))
		return r;
	r = args.follow ? follow(cli, &args.store, &err) : print_approvals(cli, &args, &err);
	return r < 0 ? cordon_cli_fail(cli, &err) : CORDON_EXIT_OK;
}

/* ---- one of them ---- */

/* Parses, opens the store and finds the approval. Returns 0, or sets the exit code and returns nonzero. */
static int begin(struct cordon_cli *cli, int argc, char **argv, struct args *args, const char **ret_text, int *ret_exit)
{
	struct cordon_error err = { 0 };
	int first, r = cordon_cli_parse(cli, argc, argv, 0, set, args, &first, &err);

	*ret_exit = r > 0 ? CORDON_EXIT_OK : 0;
	if (r != 0) {
		*ret_exit = r > 0 ? CORDON_EXIT_OK : cordon_cli_fail(cli, &err);
		return -1;
	}
	if (argc - first != 1) {
		*ret_exit = cordon_cli_usage(cli, "one APPROVAL is expected: the beginning of its id, or latest");
		return -1;
	}
	if (!cordon_cli_open_store(cli, &args->store, ret_exit))
		return -1;
	*ret_text = argv[first];
	if (cordon_approval_find(&args->store, argv[first], args->id, &err) < 0) {
		*ret_exit = cordon_cli_fail(cli, &err);
		return -1;
	}
	return 0;
}

/* Replaces a text by its escaped form. */
static int escape(char **text)
{
	autobuf struct cordon_buf escaped = CORDON_BUF(8 * CORDON_APPROVAL_TEXT_MAX);
	int r = cordon_text_escape(&escaped, *text, strlen(*text));

	if (r < 0)
		return r;
	free(*text);
	*text = cordon_buf_steal(&escaped);
	return *text ? 0 : -ENOMEM;
}

/* Prints a record: as JSON with --json, its id with --quiet, else one line per field, of which a terminal cuts nothing. Takes the
 * reference. */
static int print_fields(const struct cordon_cli *cli, json_t *object)
{
	const char *key, *id = cordon_json_string(object, "id");
	json_t *value;

	if (cli->json)
		return cordon_cli_print_json(cli, object);
	if (cli->quiet)
		printf("%.*s\n", CORDON_APPROVAL_SHORT, id);
	json_object_foreach(object, key, value) {
		autofree char *text = json_is_string(value) ? strdup(json_string_value(value))
							    : json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);

		if (cli->quiet || !text)
			continue;
		if (!cordon_text_safe(text, strlen(text)) && escape(&text) < 0)
			continue;
		printf("%s:", key);
		if (strlen(key) + strlen(text) + 3 < SHORT_LINE || !isatty(STDOUT_FILENO)) {
			printf(" %s\n", text);
		} else {
			putchar('\n');
			cordon_cli_wrap(stdout, INDENT, text);
		}
	}
	json_decref(object);
	return CORDON_EXIT_OK;
}

static int run_show(struct cordon_cli *cli, int argc, char **argv)
{
	autoargs struct args args = ARGS_NONE;
	autoapproval struct cordon_approval_record record = { 0 };
	struct cordon_error err = { 0 };
	const char *text;
	int status;

	if (begin(cli, argc, argv, &args, &text, &status) != 0)
		return status;
	if (cordon_approval_get(&args.store, args.id, &record, &err) < 0)
		return cordon_cli_fail(cli, &err);
	return print_fields(cli, cordon_approval_json(&record));
}

/* Shows the question and asks. */
static bool confirm(const struct cordon_approval_record *record)
{
	fprintf(stderr, "%.*s %s (%s) asks:\n", CORDON_APPROVAL_SHORT, record->id, record->principal, record->tool);
	cordon_cli_wrap(stderr, INDENT, record->question);
	return cordon_cli_confirm("Approve this?");
}

/*
 * INVARIANT: nothing is approved that the person has not seen. Between a list and the answer an agent can ask for something
 * else, so the question is shown first; a program says --yes and the id, which belongs to one question for ever. Few characters of an id
 * may by then be those of another question.
 */
static int judge(const struct cordon_cli *cli, const struct args *args, const char *text)
{
	autoapproval struct cordon_approval_record record = { 0 };
	struct cordon_error err = { 0 };
	bool latest = cordon_streq(text, "latest");

	if (!latest && strlen(text) < CORDON_APPROVAL_SHORT)
		return cordon_cli_usage(cli, "say %d characters of the id", CORDON_APPROVAL_SHORT);
	if (latest && (args->yes || !cordon_cli_can_ask()))
		return cordon_cli_usage(cli, "say the id: latest may be another one by now");
	if (args->yes)
		return 0;
	if (!cordon_cli_can_ask())
		return cordon_cli_usage(cli,
					"there is no terminal to ask on: read 'cordon approvals show %.8s', then say --yes",
					args->id);
	if (cordon_approval_get(&args->store, args->id, &record, &err) < 0)
		return cordon_cli_fail(cli, &err);
	/* One that was answered is no question; the answer will say so. */
	if (record.state != CORDON_APPROVAL_WAITING || confirm(&record))
		return 0;
	cordon_fail(&err, -ECANCELED, CORDON_KIND_CONFLICT, "not approved; approval %.8s still waits", record.id);
	return cordon_cli_fail(cli, &err);
}

static int answer(struct cordon_cli *cli, int argc, char **argv, bool approve)
{
	autoargs struct args args = ARGS_NONE;
	autoapproval struct cordon_approval_record record = { 0 };
	struct cordon_approval_answer given = { .approve = approve, .on = CORDON_APPROVAL_BY_TERMINAL };
	struct cordon_session_allowed allowed = { 0 };
	struct cordon_error err = { 0 };
	const char *text;
	json_t *object;
	int status;

	if (begin(cli, argc, argv, &args, &text, &status) != 0)
		return status;
	status = approve ? judge(cli, &args, text) : 0;
	if (status != 0)
		return status;
	given.span = args.span;
	if (cordon_session_decide(&args.store, args.id, &given, &record, &allowed, &err) < 0)
		return cordon_cli_fail(cli, &err);
	object = cordon_approval_json(&record);
	if (approve && record.grant)
		json_object_set_new(object, "effective", json_string(allowed.now ? "now" : "next_start"));
	if (approve && record.grant && !allowed.now)
		cordon_cli_log(cli, "INFO", CORDON_SESSION_ALLOWED_LATER);
	return print_fields(cli, object);
}

static int run_approve(struct cordon_cli *cli, int argc, char **argv)
{
	return answer(cli, argc, argv, true);
}

static int run_deny(struct cordon_cli *cli, int argc, char **argv)
{
	return answer(cli, argc, argv, false);
}

static const struct cordon_option none[] = { { 0 } };

static const struct cordon_option list_options[] = {
	{ "all", 'a', CORDON_ARG_NONE, NULL, "also those that were answered or have expired", OPT_ALL },
	{ "follow", 'f', CORDON_ARG_NONE, NULL, "print what waits, and go on with what begins to wait", OPT_FOLLOW },
	{ 0 },
};

static const struct cordon_option approve_options[] = {
	{ "for", 0, CORDON_ARG_CHOICE, "once|session|policy", "how long a grant counts; default: once", OPT_FOR },
	{ "yes", 'y', CORDON_ARG_NONE, NULL, "do not ask: whoever says this has read the question", OPT_YES },
	{ 0 },
};

const struct cordon_command cordon_cmd_approvals_list = {
	.name = "approvals list",
	.operands = "",
	.summary = "list the calls of tools that wait for a person",
	.options = list_options,
	.run = run_list,
};

const struct cordon_command cordon_cmd_approvals_show = {
	.name = "approvals show",
	.operands = "APPROVAL",
	.summary = "show one of them: who asks for what, and what it would widen",
	.options = none,
	.run = run_show,
};

const struct cordon_command cordon_cmd_approvals_approve = {
	.name = "approvals approve",
	.operands = "APPROVAL",
	.summary = "allow the call that was asked about, once",
	.details = "The question is shown, and asked about. APPROVAL is at least 8 characters of an id, or latest. The first answer counts,\n"
		   "be it here, on the page or in the client. A client that waits goes on; another has to call again. The approval dies\n"
		   "with the settings that the question is about.\n",
	.options = approve_options,
	.run = run_approve,
};

const struct cordon_command cordon_cmd_approvals_deny = {
	.name = "approvals deny",
	.operands = "APPROVAL",
	.summary = "refuse the call that was asked about",
	.options = none,
	.run = run_deny,
};
