/* SPDX-License-Identifier: Apache-2.0 */
/* cordon stats: what cordon itself cost in a session or a measured run. */
#include <stdio.h>

#include "cli/commands.h"
#include "run/stats.h"

static int set(void *data, int key, const char *arg, struct cordon_error *err)
{
	(void)data, (void)key, (void)arg, (void)err; /* This command has the common options only. */
	return 0;
}

/* "decide.calls: 24", one line for each number. */
static void print_value(const char *group, const char *key, const json_t *value)
{
	const char *dot = *group ? "." : "";

	if (json_is_real(value))
		printf("%s%s%s: %.3f\n", group, dot, key, json_real_value(value));
	else if (json_is_integer(value))
		printf("%s%s%s: %" JSON_INTEGER_FORMAT "\n", group, dot, key, json_integer_value(value));
	else if (json_is_string(value))
		printf("%s%s%s: %s\n", group, dot, key, json_string_value(value));
	else
		printf("%s%s%s: -\n", group, dot, key);
}

static void print_stats(json_t *stats)
{
	static const char *const order[] = { "session_id",     "time",	      "duration_ms",
					     "startup_ms",     "overhead_ms", "mounts",
					     "landlock_rules", "decide",      "lens",
					     "watch",	       "net",	      "helper_rss_bytes" };

	for (size_t i = 0; i < CORDON_ARRAY_SIZE(order); i++) {
		json_t *value = json_object_get(stats, order[i]), *inner;
		const char *key;

		if (!json_is_object(value)) {
			print_value("", order[i], value);
			continue;
		}
		json_object_foreach(value, key, inner)
			print_value(order[i], key, inner);
	}
}

static int report(struct cordon_cli *cli, json_t *stats)
{
	autofree char *text = cli->json ? json_dumps(stats, JSON_COMPACT | JSON_REAL_PRECISION(12)) : NULL;

	if (text)
		printf("%s\n", text);
	else
		print_stats(stats);
	return CORDON_EXIT_OK;
}

static int run(struct cordon_cli *cli, int argc, char **argv)
{
	autohome struct cordon_home home = CORDON_HOME_NONE;
	struct cordon_stats_ask ask = { .max = 1 };
	json_auto_t *list = NULL;
	struct cordon_error err = { 0 };
	size_t ended = 0;
	int first, r = cordon_cli_parse(cli, argc, argv, 0, set, NULL, &first, &err);

	if (r != 0)
		return r > 0 ? CORDON_EXIT_OK : cordon_cli_fail(cli, &err);
	if (argc - first > 1)
		return cordon_cli_usage(cli, "one session is expected, not %d", argc - first);
	if (first < argc)
		r = cordon_audit_run_parse(argv[first], &ask.filter, &err);
	if (r == 0)
		r = cordon_home_open(&home, &err);
	if (r == 0)
		r = cordon_stats_list(&home, &ask, &list, &ended, NULL, &err);
	if (r == 0 && !json_array_size(list)) {
		r = cordon_fail(&err, -ENOENT, CORDON_KIND_NOT_FOUND, "%s%s %s", ended ? "" : "there is no end of ",
				first < argc ? argv[first] : "any run", ended ? "was not measured" : "in the audit log");
		cordon_error_hint(&err, "sessions are measured, and runs with 'cordon run --metrics FILE'");
	}
	return r < 0 ? cordon_cli_fail(cli, &err) : report(cli, json_array_get(list, 0));
}

const struct cordon_command cordon_cmd_stats = {
	.name = "stats",
	.operands = "[SESSION]",
	.summary = "print what cordon itself cost in a session or a measured run",
	.details = "SESSION is the id of a session or of a run with --metrics, or its first characters; without it the latest is\n"
		   "shown. The numbers come from the audit log, and are there when the session has ended.\n",
	.options = NULL,
	.run = run,
};
