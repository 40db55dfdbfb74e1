/* SPDX-License-Identifier: Apache-2.0 */
/* cordon session: starts sessions, lists them, sends to them, follows their output and stops them. */
#include <stdio.h>

#include "base/json.h"
#include "cli/commands.h"
#include "cli/records.h"
#include "cli/session_exec.h"
#include "cli/session_follow.h"
#include "config/values.h"

#define GRACE_MS 5000

enum {
	OPT_WORKSPACE = 1,
	OPT_CREATE,
	OPT_NEW,
	OPT_EXTERNAL_ID,
	OPT_SOURCE,
	OPT_MESSAGE,
	OPT_END_INPUT,
	OPT_PARENT,
	OPT_TIMEOUT,
	OPT_DETACH,
	OPT_TERMINAL,
	OPT_FAIL_ON_VIOLATION,
	OPT_STATUS,
	OPT_LIMIT,
	OPT_SINCE,
	OPT_FOLLOW,
	OPT_MAX,
	OPT_GRACE,
	OPT_MAX_AGE,
	OPT_NET,
	OPT_ALLOW,
	OPT_REVOKE,
};

struct args {
	json_t *net; /* an object with what --net, --allow and --revoke give */
	struct cordon_session_request request;
	struct cordon_session_query query;
	bool detach, follow, has_timeout;
	int64_t since;
	size_t max;
	uint64_t wait_ms, grace_ms, max_age_ms;
	char project[CORDON_ID_SIZE], workspace[CORDON_ID_SIZE], id[CORDON_ID_SIZE], parent[CORDON_ID_SIZE];
};

static void args_done(struct args *args)
{
	json_decref(args->net);
}

static int set_number(const char *arg, const char *option, uint64_t max, uint64_t *ret_value, struct cordon_error *err)
{
	if (cordon_parse_u64(arg, 0, max, ret_value) == 0)
		return 0;
	return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "--%s is a number, not %.80s", option, arg);
}

static int set_time(const char *arg, const char *option, uint64_t *ret_ms, struct cordon_error *err)
{
	int r = cordon_timeout_parse(arg, ret_ms, err);

	return r < 0 ? cordon_error_prefix(err, r, "--%s", option) : 0;
}

static int set_more(struct args *args, int key, const char *arg, struct cordon_error *err)
{
	uint64_t value = 0;
	int r;

	switch (key) {
	case OPT_SINCE:
		r = cordon_streq(arg, "-1") ? 0 : set_number(arg, "since", INT64_MAX, &value, err);
		args->since = cordon_streq(arg, "-1") ? -1 : (int64_t)value;
		return r;
	case OPT_MAX:
		r = set_number(arg, "max-events", 100000, &value, err);
		args->max = value;
		return r;
	case OPT_MAX_AGE:
		r = set_number(arg, "max-age-hours", 1000000, &value, err);
		args->max_age_ms = value * 3600000;
		return r;
	case OPT_GRACE:
		return set_time(arg, "grace", &args->grace_ms, err);
	case OPT_TIMEOUT:
		args->has_timeout = true;
		return set_time(arg, "timeout", &args->wait_ms, err);
	default:
		return cordon_cli_parse_limit(arg, &args->query.limit, err);
	}
}

static int set_hosts(struct args *args, int key, const char *arg, struct cordon_error *err)
{
	const char *name = key == OPT_NET ? "net" : key == OPT_ALLOW ? "allow" : "revoke";

	if (!args->net && !(args->net = json_object()))
		return cordon_fail_errno(err, -ENOMEM, "options");
	return cordon_cli_set_hosts(args->net, name, arg, err);
}

static int set(void *data, int key, const char *arg, struct cordon_error *err)
{
	struct args *args = data;

	switch (key) {
	case OPT_WORKSPACE:
		args->request.workspace.id = args->query.workspace = arg;
		return 0;
	case OPT_CREATE:
		args->request.create_workspace = true;
		return 0;
	case OPT_NEW:
		args->request.new_session = true;
		return 0;
	case OPT_EXTERNAL_ID:
		args->request.workspace.external_id = arg;
		return 0;
	case OPT_SOURCE:
		args->request.workspace.source = arg;
		return 0;
	case OPT_MESSAGE:
		args->request.message = arg;
		return 0;
	case OPT_FAIL_ON_VIOLATION:
		args->request.fail_on_violation = true;
		return 0;
	case OPT_END_INPUT:
		args->request.end_input = true;
		return 0;
	case OPT_PARENT:
		args->request.parent = arg;
		return 0;
	case OPT_DETACH:
		args->detach = true;
		return 0;
	case OPT_TERMINAL:
		args->request.terminal = true;
		return 0;
	case OPT_FOLLOW:
		args->follow = true;
		return 0;
	case OPT_NET:
	case OPT_ALLOW:
	case OPT_REVOKE:
		return set_hosts(args, key, arg, err);
	case OPT_STATUS:
		args->query.status = arg;
		return 0;
	default:
		return set_more(args, key, arg, err);
	}
}

/* Parses the options, checks the number of operands and opens the store. Returns false with the exit code on
 * failure. */
static bool begin(struct cordon_cli *cli, int argc, char **argv, int least, int most, struct args *args, int *ret_first,
		  struct cordon_store *ret_store, int *ret_exit)
{
	struct cordon_error err = { 0 };
	int r = cordon_cli_parse(cli, argc, argv, 0, set, args, ret_first, &err);

	if (r != 0) {
		*ret_exit = r > 0 ? CORDON_EXIT_OK : cordon_cli_fail(cli, &err);
		return false;
	}
	if (argc - *ret_first < least || argc - *ret_first > most) {
		*ret_exit = cordon_cli_usage(cli, "expected: %s",
					     *cli->command->operands ? cli->command->operands : "no argument");
		return false;
	}
	return cordon_cli_open_store(cli, ret_store, ret_exit);
}

/* The same for a command whose first operand is a session: args->id is then its id. */
static bool begin_with_session(struct cordon_cli *cli, int argc, char **argv, int least, int most, struct args *args,
			       int *ret_first, struct cordon_store *ret_store, int *ret_exit)
{
	return begin(cli, argc, argv, least, most, args, ret_first, ret_store, ret_exit) &&
	       cordon_cli_find_session(cli, ret_store, argv[*ret_first], args->id, ret_exit);
}

/* Finds the project, workspace and parent that a new session or a list of sessions is asked for with. A workspace that
 * is to be made gets its id as given. */
static bool find_place(const struct cordon_cli *cli, const struct cordon_store *store, const char *project,
		       struct args *args, int *ret_exit)
{
	const char *workspace = args->request.workspace.id;

	if (project && !cordon_cli_find_project(cli, store, project, 0, args->project, ret_exit))
		return false;
	if (project && workspace && !args->request.create_workspace) {
		if (!cordon_cli_find_workspace(cli, store, args->project, workspace, 0, args->workspace, ret_exit))
			return false;
		args->request.workspace.id = args->query.workspace = args->workspace;
	}
	if (args->request.parent) {
		if (!cordon_cli_find_session(cli, store, args->request.parent, args->parent, ret_exit))
			return false;
		args->request.parent = args->parent;
	}
	if (project)
		args->request.project = args->query.project = args->project;
	return true;
}

static json_t *command_of(int argc, char **argv, int at, struct cordon_error *err)
{
	json_t *command = json_array();

	for (; command && at < argc; at++) {
		if (cordon_cli_append_text(command, "the command", argv[at], err) < 0) {
			json_decref(command);
			return NULL;
		}
	}
	return command;
}

/* Follows a session that was just started, on its terminal or through its output, and then exits with its status. */
static int follow_session(struct cordon_cli *cli, const struct cordon_store *store, const char *id, bool terminal)
{
	autosessionrecord struct cordon_session_record session = { 0 };
	struct cordon_error err = { 0 };
	int r = 0;

	if (terminal && (r = cordon_cli_attach(store, id, &err)) >= 0) {
		if (r > 0) {
			fprintf(stderr, "\r\nsession %s goes on\n", id);
			return CORDON_EXIT_OK;
		}
		r = cordon_session_wait(store, id, UINT64_MAX, &err);
		if (r == 0)
			r = cordon_session_get(store, id, &session, &err);
	} else {
		/* This path is also for a program that ended before we could attach. */
		r = cordon_cli_follow(cli, store, id, -1, true, &session, &err);
	}
	if (r < 0)
		return cordon_cli_fail(cli, &err);
	if (cli->json)
		cordon_cli_print_json(cli, cordon_session_json(&session));
	return cordon_cli_session_exit(&session);
}

static int run_start(struct cordon_cli *cli, int argc, char **argv)
{
	autostore struct cordon_store store = CORDON_STORE_NONE;
	struct args args CORDON_CLEANUP(args_done) = { 0 };
	struct cordon_error err = { 0 };
	struct cordon_session_answer answer;
	json_auto_t *command = NULL;
	int first, code;

	cli->failure_exit = CORDON_EXIT_REFUSED;
	if (!begin(cli, argc, argv, 1, argc, &args, &first, &store, &code) ||
	    !find_place(cli, &store, argv[first], &args, &code))
		return code;
	args.request.timeout_ms = args.wait_ms;
	args.request.net = json_object_get(args.net, "net");
	if (first + 1 < argc) {
		command = command_of(argc, argv, first + 1, &err);
		if (!command)
			return cordon_cli_fail(cli, &err);
		args.request.command = command;
	}
	/* With a terminal here and without --detach, the program inside gets a terminal too. */
	if (!args.detach && !cli->json && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO))
		args.request.terminal = true;
	/* From here on an interrupt stops the session. */
	if (!args.detach)
		cordon_cli_hold_signals();
	code = cordon_session_start(&store, &args.request, &answer, &err);
	if (code < 0)
		return cordon_cli_fail(cli, &err);
	if (args.detach)
		return cordon_cli_answer(cli, cordon_session_answer_json(&answer));
	return follow_session(cli, &store, answer.session_id, args.request.terminal);
}

static int run_list(struct cordon_cli *cli, int argc, char **argv)
{
	static const struct cordon_column columns[] = {
		{ "session_id", "ID" },
		{ "status", "STATUS" },
		{ "state", "STATE" },
		{ "project_id", "PROJECT" },
		{ "workspace_id", "WORKSPACE" },
		{ "command", "COMMAND" },
		{ "created_at", "CREATED" },
		{ 0 },
	};
	autostore struct cordon_store store = CORDON_STORE_NONE;
	struct args args = { 0 };
	struct cordon_error err = { 0 };
	json_t *sessions = NULL;
	size_t total;
	int first, code;

	if (!begin(cli, argc, argv, 0, 1, &args, &first, &store, &code) ||
	    !find_place(cli, &store, first < argc ? argv[first] : NULL, &args, &code))
		return code;
	args.query.brief = !cli->json;
	if (cordon_session_list(&store, &args.query, &sessions, &total, &err) < 0)
		return cordon_cli_fail(cli, &err);
	if (cli->json)
		return cordon_cli_print_json(cli,
					     json_pack("{s:o, s:I}", "sessions", sessions, "total", (json_int_t)total));
	cordon_cli_print_table(cli, columns, sessions);
	json_decref(sessions);
	return CORDON_EXIT_OK;
}

static int run_get(struct cordon_cli *cli, int argc, char **argv)
{
	autostore struct cordon_store store = CORDON_STORE_NONE;
	struct args args = { 0 };
	struct cordon_error err = { 0 };
	autosessionrecord struct cordon_session_record session = { 0 };
	int first, code;

	if (!begin_with_session(cli, argc, argv, 1, 1, &args, &first, &store, &code))
		return code;
	if (cordon_session_get(&store, args.id, &session, &err) < 0)
		return cordon_cli_fail(cli, &err);
	return cordon_cli_answer(cli, cordon_session_json(&session));
}

static int run_send(struct cordon_cli *cli, int argc, char **argv)
{
	autostore struct cordon_store store = CORDON_STORE_NONE;
	struct args args = { 0 };
	struct cordon_error err = { 0 };
	int64_t last;
	int first, code;

	if (!begin_with_session(cli, argc, argv, 1, 2, &args, &first, &store, &code))
		return code;
	if (argc - first == 1 && !args.request.end_input)
		return cordon_cli_usage(cli, "a message is expected, or --end-input");
	if (cordon_session_send(&store, args.id, argc - first == 2 ? argv[first + 1] : NULL, args.request.end_input,
				&last, &err) < 0)
		return cordon_cli_fail(cli, &err);
	return cordon_cli_answer(cli,
				 json_pack("{s:s, s:I}", "session_id", args.id, "last_event_index", (json_int_t)last));
}

static int run_output(struct cordon_cli *cli, int argc, char **argv)
{
	autostore struct cordon_store store = CORDON_STORE_NONE;
	struct args args = { .since = -1 };
	struct cordon_error err = { 0 };
	autosessionrecord struct cordon_session_record session = { 0 };
	json_auto_t *output = NULL;
	int first, code;

	if (!begin_with_session(cli, argc, argv, 1, 1, &args, &first, &store, &code))
		return code;
	if (args.follow) {
		if (cordon_cli_follow(cli, &store, args.id, args.since, false, &session, &err) < 0)
			return cordon_cli_fail(cli, &err);
		return CORDON_EXIT_OK;
	}
	if (cordon_session_output(&store, args.id, args.since, args.max, &output, &err) < 0)
		return cordon_cli_fail(cli, &err);
	if (cli->json)
		return cordon_cli_print_json(cli, json_incref(output));
	cordon_cli_print_output(output);
	return CORDON_EXIT_OK;
}

static int run_attach(struct cordon_cli *cli, int argc, char **argv)
{
	autostore struct cordon_store store = CORDON_STORE_NONE;
	struct args args = { 0 };
	struct cordon_error err = { 0 };
	int first, code, r;

	if (!begin_with_session(cli, argc, argv, 1, 1, &args, &first, &store, &code))
		return code;
	r = cordon_cli_attach(&store, args.id, &err);
	return r < 0 ? cordon_cli_fail(cli, &err) : CORDON_EXIT_OK;
}

static int run_exec(struct cordon_cli *cli, int argc, char **argv)
{
	autostore struct cordon_store store = CORDON_STORE_NONE;
	struct args args = { 0 };
	struct cordon_error err = { 0 };
	json_auto_t *answer = NULL;
	json_auto_t *command = NULL;
	struct cordon_ending ending = { 0 };
	const json_t *why;
	int first, code, r, signal = 0;

	cli->failure_exit = CORDON_EXIT_REFUSED;
	if (!begin_with_session(cli, argc, argv, 2, argc, &args, &first, &store, &code))
		return code;
	command = command_of(argc, argv, first + 1, &err);
	r = command ? cordon_cli_session_exec(&store, args.id, command, &answer, &signal, &err) : err.code;
	if (r != 0)
		return r > 0 ? cordon_exit_of_ending(&(struct cordon_ending){ .signal = signal })
			     : cordon_cli_fail(cli, &err);
	why = json_object_get(answer, "why");
	if (why) {
		cordon_fail(&err, -ECANCELED, CORDON_KIND_IO, "%s: %s", argv[first + 1],
			    cordon_json_string(why, "message"));
		cli->failure_exit = (int)cordon_json_integer(answer, "exit_code");
		return cordon_cli_fail(cli, &err);
	}
	ending.signal = (int)cordon_json_integer(answer, "signal");
	ending.exit_code = (int)cordon_json_integer(answer, "exit_code");
	return cordon_exit_of_ending(&ending);
}

static int run_wait(struct cordon_cli *cli, int argc, char **argv)
{
	autostore struct cordon_store store = CORDON_STORE_NONE;
	struct args args = { 0 };
	struct cordon_error err = { 0 };
	autosessionrecord struct cordon_session_record session = { 0 };
	int first, code, r;

	cli->failure_exit = CORDON_EXIT_REFUSED;
	if (!begin_with_session(cli, argc, argv, 1, 1, &args, &first, &store, &code))
		return code;
	r = cordon_session_wait(&store, args.id, args.has_timeout ? args.wait_ms : UINT64_MAX, &err);
	if (r == -ETIMEDOUT)
		cli->failure_exit = CORDON_EXIT_TIMEOUT;
	if (r < 0 || cordon_session_get(&store, args.id, &session, &err) < 0)
		return cordon_cli_fail(cli, &err);
	r = cordon_cli_answer(cli, cordon_session_json(&session));
	return r ? r : cordon_cli_session_exit(&session);
}

static int run_stop(struct cordon_cli *cli, int argc, char **argv)
{
	autostore struct cordon_store store = CORDON_STORE_NONE;
	autosessionrecord struct cordon_session_record session = { 0 };
	struct args args = { .grace_ms = GRACE_MS };
	struct cordon_error err = { 0 };
	int first, code;

	if (!begin_with_session(cli, argc, argv, 1, 1, &args, &first, &store, &code))
		return code;
	if (cordon_session_stop(&store, args.id, args.grace_ms, &err) < 0 ||
	    cordon_session_wait(&store, args.id, args.grace_ms + 60000, &err) < 0 ||
	    cordon_session_get(&store, args.id, &session, &err) < 0)
		return cordon_cli_fail(cli, &err);
	return cordon_cli_answer(cli, cordon_session_json(&session));
}

static int run_net(struct cordon_cli *cli, int argc, char **argv)
{
	autostore struct cordon_store store = CORDON_STORE_NONE;
	struct args args CORDON_CLEANUP(args_done) = { 0 };
	struct cordon_error err = { 0 };
	json_auto_t *net = NULL;
	json_t *rule;
	size_t i;
	int first, code;

	if (!begin_with_session(cli, argc, argv, 1, 1, &args, &first, &store, &code))
		return code;
	if (cordon_session_net(&store, args.id, json_object_get(args.net, "allow"), json_object_get(args.net, "revoke"),
			       &net, &err) < 0)
		return cordon_cli_fail(cli, &err);
	if (cli->json)
		return cordon_cli_print_json(cli, json_pack("{s:s, s:O}", "session_id", args.id, "net", net));
	if (json_is_string(net))
		puts(json_string_value(net));
	json_array_foreach(json_is_object(net) ? json_object_get(net, "allow") : net, i, rule) {
		puts(json_string_value(rule));
	}
	return CORDON_EXIT_OK;
}

static int run_cleanup(struct cordon_cli *cli, int argc, char **argv)
{
	autostore struct cordon_store store = CORDON_STORE_NONE;
	struct args args = { .max_age_ms = (uint64_t)24 * 3600000 };
	struct cordon_error err = { 0 };
	size_t removed;
	int first, code;

	if (!begin(cli, argc, argv, 0, 0, &args, &first, &store, &code))
		return code;
	if (cordon_session_cleanup(&store, args.max_age_ms, &removed, &err) < 0)
		return cordon_cli_fail(cli, &err);
	return cordon_cli_answer(cli, json_pack("{s:I}", "removed", (json_int_t)removed));
}

static const struct cordon_option start_options[] = {
	{ "workspace", 0, CORDON_ARG_TEXT, "WORKSPACE", "the workspace (default: the project's default one)",
	  OPT_WORKSPACE },
	{ "create-workspace", 0, CORDON_ARG_NONE, NULL, "make the workspace when it is missing", OPT_CREATE },
	{ "external-id", 0, CORDON_ARG_TEXT, "TEXT", "id of the owner of the workspace in another system",
	  OPT_EXTERNAL_ID },
	{ "source", 0, CORDON_ARG_TEXT, "TEXT", "the system that the external id comes from", OPT_SOURCE },
	{ "new-session", 0, CORDON_ARG_NONE, NULL, "do not resume the latest session of the workspace", OPT_NEW },
	{ "message", 0, CORDON_ARG_TEXT, "TEXT", "goes to its standard input", OPT_MESSAGE },
	{ "end-input", 0, CORDON_ARG_NONE, NULL, "close its standard input afterwards", OPT_END_INPUT },
	{ "parent", 0, CORDON_ARG_TEXT, "SESSION", "the session that asks for this one", OPT_PARENT },
	{ "timeout", 0, CORDON_ARG_TEXT, "DURATION", "end it after this time", OPT_TIMEOUT },
	{ "net", 0, CORDON_ARG_HOSTS, "HOSTS|none|profile", "reach only these hosts of those that the project allows",
	  OPT_NET },
	{ "fail-on-violation", 0, CORDON_ARG_NONE, NULL, "a session that was refused or warned of something has failed",
	  OPT_FAIL_ON_VIOLATION },
	{ "terminal", 0, CORDON_ARG_NONE, NULL, "give it a terminal, for attach", OPT_TERMINAL },
	{ "detach", 'd', CORDON_ARG_NONE, NULL, "leave it running and return at once", OPT_DETACH },
	{ 0 },
};

static const struct cordon_option list_options[] = {
	{ "status", 0, CORDON_ARG_CHOICE, "active|completed|failed", "only sessions that stand so", OPT_STATUS },
	{ "workspace", 0, CORDON_ARG_TEXT, "WORKSPACE", "only sessions of this workspace", OPT_WORKSPACE },
	{ "limit", 0, CORDON_ARG_TEXT, "N", "at most this many, the oldest", OPT_LIMIT },
	{ 0 },
};

static const struct cordon_option send_options[] = {
	{ "end-input", 0, CORDON_ARG_NONE, NULL, "close its standard input afterwards", OPT_END_INPUT },
	{ 0 },
};

static const struct cordon_option output_options[] = {
	{ "since", 0, CORDON_ARG_TEXT, "N", "only events after this index (default: -1, all)", OPT_SINCE },
	{ "max-events", 0, CORDON_ARG_TEXT, "N", "at most this many", OPT_MAX },
	{ "follow", 'f', CORDON_ARG_NONE, NULL, "go on until the session ends", OPT_FOLLOW },
	{ 0 },
};

static const struct cordon_option wait_options[] = {
	{ "timeout", 0, CORDON_ARG_TEXT, "DURATION", "give up after this time, with 124", OPT_TIMEOUT },
	{ 0 },
};

static const struct cordon_option stop_options[] = {
	{ "grace", 0, CORDON_ARG_TEXT, "DURATION", "time between SIGTERM and SIGKILL (default: 5s)", OPT_GRACE },
	{ 0 },
};

static const struct cordon_option net_options[] = {
	{ "allow", 0, CORDON_ARG_HOSTS, "HOSTS", "hosts to add to its list (repeatable)", OPT_ALLOW },
	{ "revoke", 0, CORDON_ARG_HOSTS, "HOSTS", "hosts to remove; their connections end (repeatable)", OPT_REVOKE },
	{ 0 },
};

static const struct cordon_option cleanup_options[] = {
	{ "max-age-hours", 0, CORDON_ARG_TEXT, "N", "keep those that ended later than this ago (default: 24)",
	  OPT_MAX_AGE },
	{ 0 },
};

const struct cordon_command cordon_cmd_session_start = {
	.name = "session start",
	.operands = "PROJECT [-- CMD [ARG]...]",
	.summary = "run the project's agent, or CMD, in a workspace",
	.details = "An isolated project shows the agent its workspace at /workspace; otherwise the whole project is there and the\n"
		   "agent starts in /workspace/workspaces/ID. Without CMD the latest session of the workspace is resumed: one that\n"
		   "runs gets the message, one that has ended is started again.\n"
		   "\n"
		   "Exit status: 0 with --detach; else the command's own, 124 timed out, 125 refused, 126 not executable, 127 not\n"
		   "found, 128+N killed by signal N. An interrupt stops the session.\n",
	.options = start_options,
	.run = run_start,
};

const struct cordon_command cordon_cmd_session_list = {
	.name = "session list",
	.operands = "[PROJECT]",
	.summary = "list sessions, oldest first",
	.options = list_options,
	.run = run_list,
};

const struct cordon_command cordon_cmd_session_get = {
	.name = "session get",
	.operands = "SESSION",
	.summary = "show a session: its state, its settings and its layers",
	.run = run_get,
};

const struct cordon_command cordon_cmd_session_send = {
	.name = "session send",
	.operands = "SESSION [MESSAGE]",
	.summary = "send a line to a session's standard input",
	.options = send_options,
	.run = run_send,
};

const struct cordon_command cordon_cmd_session_output = {
	.name = "session output",
	.operands = "SESSION",
	.summary = "show what a session wrote",
	.details = "The last 1000 events are kept. What the agent wrote to its standard error comes on stderr.\n",
	.options = output_options,
	.run = run_output,
};

const struct cordon_command cordon_cmd_session_attach = {
	.name = "session attach",
	.operands = "SESSION",
	.summary = "connect this terminal with a session's",
	.details = "For sessions that were started with --terminal. Ctrl-] leaves; the session goes on.\n",
	.run = run_attach,
};

const struct cordon_command cordon_cmd_session_exec = {
	.name = "session exec",
	.operands = "SESSION -- CMD [ARG]...",
	.summary = "run another command inside a session, with all its layers",
	.details = "It sees what the agent sees and is held by the same layers, but neither can trace or signal the other. It ends\n"
		   "with the session, and is killed when this command is.\n"
		   "\n"
		   "Exit status: the command's own; 125 refused, 126 not executable, 127 not found, 128+N killed by signal N.\n",
	.run = run_exec,
};

const struct cordon_command cordon_cmd_session_wait = {
	.name = "session wait",
	.operands = "SESSION",
	.summary = "wait for the end of a session, and exit as it did",
	.options = wait_options,
	.run = run_wait,
};

const struct cordon_command cordon_cmd_session_stop = {
	.name = "session stop",
	.operands = "SESSION",
	.summary = "end a session with everything in it",
	.options = stop_options,
	.run = run_stop,
};

const struct cordon_command cordon_cmd_session_net = {
	.name = "session net",
	.operands = "SESSION",
	.summary = "show or change the hosts that a running session reaches",
	.details = "For sessions that were started with a list of hosts. A host that is revoked loses its connections at once. The\n"
		   "project's list stays as it is.\n",
	.options = net_options,
	.run = run_net,
};

const struct cordon_command cordon_cmd_session_cleanup = {
	.name = "session cleanup",
	.operands = "",
	.summary = "remove records and logs of sessions that ended long ago",
	.options = cleanup_options,
	.run = run_cleanup,
};
