/* SPDX-License-Identifier: Apache-2.0 */
/* The table of settings of a run, and what can be said of every one of them. */
#include "config/recipe_table.h"
#include "config/policy_build.h"
#include "config/values.h"

#define NICE_MAX 19

static int parse_mode(const char *text, uint64_t *ret_value, struct cordon_error *err)
{
	cordon_mode mode;
	int r = cordon_mode_parse(text, &mode, err);

	if (r == 0)
		*ret_value = mode;
	return r;
}

static int parse_lens(const char *text, uint64_t *ret_value, struct cordon_error *err)
{
	cordon_lens_use lens;
	int r = cordon_lens_parse(text, &lens, err);

	if (r == 0)
		*ret_value = lens;
	return r;
}

static int parse_git(const char *text, uint64_t *ret_value, struct cordon_error *err)
{
	cordon_git_mode git;
	int r = cordon_git_parse(text, &git, err);

	if (r == 0)
		*ret_value = git;
	return r;
}

static int parse_nice(const char *text, uint64_t *ret_value, struct cordon_error *err)
{
	if (cordon_parse_u64(text, 0, NICE_MAX, ret_value) == 0)
		return 0;
	return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "'%s' is not a whole number from 0 to %d", text, NICE_MAX);
}

#define RUN CORDON_RECIPE_OF_RUN
#define ASK CORDON_RECIPE_OF_QUESTIONS
#define LEARN CORDON_RECIPE_OF_LEARN
#define LOOP CORDON_RECIPE_OF_LOOP
#define GIT CORDON_RECIPE_OF_GIT
#define FOLDERS CORDON_RECIPE_OF_FOLDERS
#define MODES CORDON_RECIPE_OF_MODES
#define SECTION CORDON_RECIPE_OF_SECTION
#define ROOTS CORDON_RECIPE_OF_ROOTS
#define PROJECTS CORDON_RECIPE_OF_PROJECTS
#define EXECUTE CORDON_RECIPE_OF_EXECUTE
#define SCOPED (RUN | ASK | LOOP | GIT)	  /* all options that say what may be touched */
#define PLACED (RUN | ASK | LOOP | LEARN) /* and what else of the host is there */
#define STARTS (RUN | LOOP | LEARN)

#define OPTION(id, name, arg, meta, help)                                                                              \
	[CORDON_RECIPE_##                                                                                              \
		id] = { .option = { name, 0, CORDON_ARG_##arg, meta, help, CORDON_KEY_RECIPE + CORDON_RECIPE_##id },   \
			.dashed = "--" name
#define KEY(id) [CORDON_RECIPE_##id] = { .option = { 0 }
#define SPEC(member)                                                                                                   \
	.spec = offsetof(struct cordon_run_spec, member), .size = sizeof(((struct cordon_run_spec *)NULL)->member)
#define RULE(kind) .type = CORDON_RECIPE_RULE, .rule = CORDON_RULE_##kind
#define FLAG .type = CORDON_RECIPE_FLAG
#define NUMBER(function) .type = CORDON_RECIPE_NUMBER, .parse = function
#define WORD(function) .type = CORDON_RECIPE_WORD, .parse = function
#define PROJECT(name, from, to) .project = (name), .least = (from), .most = (to)
#define LIMIT .limit = true, .widens = CORDON_RECIPE_HIGHER, .wider = "the limit is higher"

/* clang-format off */
const struct cordon_recipe_row cordon_recipe_rows[CORDON_RECIPE__MAX] = {
	KEY(VERSION), .key = "version" },
	OPTION(ROOT, "root", DIR, "DIR", "repository root (default: the git top level, else .)"),
		.commands = SCOPED | LEARN | FOLDERS | SECTION | ROOTS, .once = true },
	OPTION(MODE, "workspace-mode", CHOICE, "strict|permissive", "refuse what lies outside, or only warn"),
		.commands = SCOPED | MODES, .key = "mode", .of_policy = true, WORD(parse_mode), .once = true },
	OPTION(WORKSPACE, "workspace", DIR, "FOLDERS", "comma list of folders that may be written"),
		.commands = SCOPED, .key = "workspace", RULE(FOLDERS) },
	OPTION(WRITE, "write", DIR, "FOLDERS", "read the root but known secrets, and write only these folders of where you are"),
		.commands = RUN | ASK, .once = true },
	OPTION(PRESET, "preset", TEXT, "PRESET", "folders, mode, protection and variables of a preset of the settings"),
		.commands = SCOPED | FOLDERS | SECTION, .once = true },
	OPTION(RW, "rw", FILE, "PATTERN", "may be written (repeatable)"),
		.commands = SCOPED, .key = "rw", RULE(WRITE) },
	OPTION(RO, "ro", FILE, "PATTERN", "may be read (repeatable)"), .commands = SCOPED, .key = "ro", RULE(READ) },
	OPTION(DENY, "deny", FILE, "PATTERN", "neither; always wins (repeatable)"),
		.commands = SCOPED, .key = "deny", RULE(DENY) },
	OPTION(DENY_SECRETS, "deny-secrets", NONE, NULL, "hide .env, .ssh, .aws and other known secrets in the root"),
		.commands = SCOPED, .key = "deny_secrets", .of_policy = true, FLAG },
	OPTION(WITHIN, "within", FILE, "PATTERNS", "comma list: nothing else, whatever is granted (repeatable)"),
		.commands = SCOPED, .key = "within", RULE(WITHIN) },
	OPTION(READ_ONLY, "read-only", NONE, NULL, "take every write grant for a read grant"),
		.commands = SCOPED, .key = "read_only", .of_policy = true, FLAG },
	OPTION(PROTECT, "protect", FILE, "PATH", "never changes (repeatable)"),
		.commands = SCOPED, .key = "protect", RULE(PROTECT) },
	OPTION(UNPROTECT, "unprotect", FILE, "PATH", "lift one default protection (repeatable)"),
		.commands = SCOPED, .key = "unprotect", RULE(UNPROTECT) },
	OPTION(DEFAULT_PROTECT, "no-default-protect", NONE, NULL, "leave what the host would execute unprotected"),
		.commands = SCOPED | LEARN, .key = "default_protect", .of_policy = true, FLAG, .initial = true },
	OPTION(POLICY, "policy", FILE, "FILE", "take rules from a cordon.yaml or .json too"),
		.commands = SCOPED, .once = true },
	OPTION(PROFILE, "profile", PROFILE, "NAMES", "comma list of profiles: what a program needs (repeatable)"),
		.commands = SCOPED | LEARN | SECTION, .key = "profiles" },
	OPTION(AT, "at", TEXT, "PATH", "where the agent sees the root (default: the same path)"),
		.commands = PLACED, .key = "at" },
	OPTION(HOME, "home", DIR, "DIR", "home directory that stays (default: private and empty)"),
		.commands = PLACED, .key = "home" },
	OPTION(SHARE, "share", DIR, "DIR[:PATH][:ro]", "show another host directory (repeatable)"),
		.commands = PLACED, .key = "share" },
	OPTION(NET, "net", HOSTS, "HOSTS|host|none|profile",
	       "hosts to reach (NAME[:PORT],...); or all, none, those of the profiles"),
		.commands = PLACED, .key = "net", RULE(NET) },
	OPTION(PROGRAM, "program", TEXT, "PROGRAM",
	       "show a program of the caller's PATH with its package (repeatable)"),
		.commands = STARTS, .key = "program" },
	OPTION(ENV, "env", TEXT, "NAME=VALUE", "set a variable (repeatable)"), .commands = STARTS, .key = "env" },
	OPTION(KEEP_ENV, "keep-env", TEXT, "NAME", "pass a variable on; NAME_* passes all that begin so (repeatable)"),
		.commands = STARTS, .key = "keep_env" },
	KEY(LIMITS), .key = "limits" },
	OPTION(TIMEOUT, "timeout", TEXT, "DURATION", "end the run after this time (90, 90s, 1500ms, 2m, 1h)"),
		.commands = STARTS, .key = "timeout", LIMIT, .agent = "timeout",
		PROJECT("limits.timeout_seconds", 1, 31536000), .unit = 1000,
		NUMBER(cordon_timeout_parse), SPEC(timeout_ms) },
	OPTION(GRACE, "grace", TEXT, "DURATION", "time between SIGTERM and SIGKILL (default: 5s)"),
		.commands = STARTS, NUMBER(cordon_timeout_parse), SPEC(grace_ms) },
	OPTION(MEMORY, "memory", TEXT, "SIZE", "memory of the whole run (512M, 2G)"),
		.commands = STARTS, .key = "memory", LIMIT, .agent = "limits.memory_bytes",
		PROJECT("limits.memory_bytes", CORDON_MEMORY_MIN, UINT64_C(1) << 50),
		NUMBER(cordon_memory_parse), SPEC(memory_bytes) },
	OPTION(PIDS, "pids", TEXT, "N", "processes and threads of the run"),
		.commands = STARTS, .key = "pids", LIMIT, .agent = "limits.pids",
		PROJECT("limits.pids", 1, CORDON_PIDS_MAX),
		NUMBER(cordon_pids_parse), SPEC(pids) },
	OPTION(CPUS, "cpus", TEXT, "N", "CPUs the run may use (2, 0.5)"),
		.commands = STARTS, .key = "cpus", LIMIT, .agent = "limits.cpu",
		NUMBER(cordon_cpus_parse), SPEC(cpu_millis) },
	OPTION(TMP_SIZE, "tmp-size", TEXT, "SIZE", "bytes of the private /tmp, /run and home (default: 2G)"),
		.commands = STARTS, .key = "tmp_size", LIMIT, NUMBER(cordon_memory_parse), SPEC(tmp_bytes) },
	OPTION(NICE, "nice", TEXT, "N", "nice value of the run's processes, 0 to 19"),
		.commands = STARTS | EXECUTE | PROJECTS, .key = "nice", .agent = "nice", PROJECT("nice", 0, NICE_MAX),
		NUMBER(parse_nice), .widens = CORDON_RECIPE_LOWER, .wider = "the value is lower", .planned = true,
		SPEC(nice) },
	OPTION(LENS, "lens", CHOICE, "auto|always|never",
	       "judge names at every operation (default: where a pattern needs it)"),
		.commands = RUN, .key = "lens", WORD(parse_lens), SPEC(lens) },
	KEY(EDITOR_TEMPS), .key = "editor_temps", .of_policy = true,
		.agent = "editor_temps", FLAG, .initial = true, .widens = CORDON_RECIPE_ON,
		.wider = "that allows none" },
	OPTION(BEST_EFFORT, "best-effort", NONE, NULL, "run with fewer layers where the kernel lacks some"),
		.commands = RUN, .key = "best_effort", .agent = "best_effort", .project = "best_effort",
		.always = true, FLAG, .widens = CORDON_RECIPE_ON,
		.wider = "that needs every layer", SPEC(best_effort) },
	OPTION(COW, "cow", NONE, NULL, "work in a copy-on-write view; apply or discard its changes afterwards"),
		.commands = RUN, .key = "cow", .agent = "cow", .project = "cow", FLAG,
		.widens = CORDON_RECIPE_OFF, .wider = "that works in a view" },
	OPTION(GIT, "git", CHOICE, "none|read|commit",
	       "the repository: not there, read-only, or its own copy whose commits are taken over"),
		.commands = RUN, .key = "git", .agent = "git", .project = "git", WORD(parse_git), .widens = CORDON_RECIPE_GITS },
	OPTION(FAIL_ON_VIOLATION, "fail-on-violation", NONE, NULL,
	       "exit with 3 when the command succeeds but was refused or warned of something"),
		.commands = RUN, FLAG, SPEC(fail_on_violation) },
	KEY(DESCRIPTION), .key = "description" },
	KEY(STATE), .key = "state" },
	KEY(PRIVATE), .key = "private" },
	KEY(ARGV), .key = "argv" },
	KEY(ARGV_HINT), .key = "argv_hint" },
};
/* clang-format on */

static bool is_value(cordon_recipe_id id)
{
	return cordon_recipe_rows[id].type >= CORDON_RECIPE_FLAG;
}

void cordon_recipe_values_add(struct cordon_recipe_values *values, const struct cordon_recipe_values *from)
{
	for (cordon_recipe_id id = 0; id < CORDON_RECIPE__MAX; id++) {
		bool flag = cordon_recipe_rows[id].type == CORDON_RECIPE_FLAG;

		if (!from->where[id] || !is_value(id) || cordon_recipe_rows[id].of_policy ||
		    (values->where[id] && !(flag && from->of[id] != cordon_recipe_rows[id].initial)))
			continue;
		values->of[id] = from->of[id];
		values->where[id] = from->where[id];
	}
}

int cordon_recipe_read(const struct cordon_reader *reader, const struct cordon_node *node, const char *name,
		       cordon_recipe_id id, cordon_recipe_parse_fn *parse, struct cordon_recipe_values *values)
{
	const struct cordon_recipe_row *row = &cordon_recipe_rows[id];
	struct cordon_error err = { 0 };
	bool set = false;

	if (node->type == CORDON_NODE_BAD)
		return 0;
	if (row->type == CORDON_RECIPE_FLAG) {
		if (!cordon_reader_bool(reader, node, name, &set))
			return 0;
		values->of[id] = set;
		return cordon_reader_where(reader, node, &values->where[id]);
	}
	/* A number may be written with or without a unit, with or without quotes, in either format. */
	if (row->type == CORDON_RECIPE_NUMBER && node->type != CORDON_NODE_SCALAR) {
		cordon_node_fail(reader->doc, node, reader->errors, NULL, "%s must be a number, not %s", name,
				 cordon_node_describe(reader->doc, node));
		return 0;
	}
	if (row->type == CORDON_RECIPE_WORD && !cordon_reader_text(reader, node, name))
		return 0;
	if ((parse ? parse : row->parse)(node->text, &values->of[id], &err) < 0)
		return cordon_reader_refuse(reader, node, &err, CORDON_READER_WHOLE);
	return cordon_reader_where(reader, node, &values->where[id]);
}

const char *cordon_recipe_limit(const char *key)
{
	return strncmp(key, "limits.", 7) == 0 ? key + 7 : NULL;
}

cordon_recipe_id cordon_recipe_of_project(const char *key, bool limit)
{
	cordon_recipe_id id = 0;

	for (; id < CORDON_RECIPE__MAX; id++) {
		const char *name = cordon_recipe_rows[id].project, *below = name ? cordon_recipe_limit(name) : NULL;

		if (name && limit == (below != NULL) && cordon_streq(below ? below : name, key))
			break;
	}
	return id;
}

int cordon_recipe_from_json(cordon_recipe_id id, const json_t *value, uint64_t *ret_value, struct cordon_error *err)
{
	const struct cordon_recipe_row *row = &cordon_recipe_rows[id];
	const char *text = json_string_value(value);

	if (row->type == CORDON_RECIPE_FLAG) {
		*ret_value = json_is_true(value);
		return json_is_boolean(value)
			       ? 0
			       : cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "%s must be true or false", row->project);
	}
	if (row->type == CORDON_RECIPE_NUMBER) {
		*ret_value = (uint64_t)json_integer_value(value);
		return json_is_integer(value) && json_integer_value(value) >= 0
			       ? 0
			       : cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "%s must be a number from %llu to %llu",
					     row->project, (unsigned long long)row->least,
					     (unsigned long long)row->most);
	}
	*ret_value = 0;
	if (!text)
		return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "%s must be default|%s", row->project,
				   row->option.meta);
	if (cordon_streq(text, "default") || row->parse(text, ret_value, err) == 0)
		return 0;
	return cordon_error_prefix(err, -EINVAL, "%s", row->project);
}

json_t *cordon_recipe_to_json(cordon_recipe_id id, uint64_t value)
{
	const struct cordon_recipe_row *row = &cordon_recipe_rows[id];
	char word[32];
	uint64_t meant;

	if (row->type == CORDON_RECIPE_FLAG)
		return json_boolean(value);
	if (row->type == CORDON_RECIPE_NUMBER)
		return json_integer((json_int_t)value);
	for (const char *p = row->option.meta; *p; p += strcspn(p, "|"), p += *p == '|')
		if (cordon_copy(word, sizeof(word), p, strcspn(p, "|")) == 0 && row->parse(word, &meant, NULL) == 0 &&
		    meant == value)
			return json_string(word);
	return json_string("default");
}

void cordon_recipe_values_put(const struct cordon_recipe_values *values, struct cordon_run_spec *spec)
{
	for (cordon_recipe_id id = 0; id < CORDON_RECIPE__MAX; id++) {
		const struct cordon_recipe_row *row = &cordon_recipe_rows[id];
		uint64_t value = cordon_recipe_value(values, id);
		uint32_t word = (uint32_t)value;
		bool flag = value;
		char *member = (char *)spec + row->spec;

		if (row->size == sizeof(value))
			memcpy(member, &value, sizeof(value));
		else if (row->size == sizeof(word))
			memcpy(member, &word, sizeof(word));
		else if (row->size == sizeof(flag))
			memcpy(member, &flag, sizeof(flag));
	}
}

bool cordon_recipe_narrow_value(const struct cordon_recipe_values *values, const struct cordon_recipe_values *outer,
				cordon_recipe_id id, const char **ret_why)
{
	uint64_t own = cordon_recipe_value(values, id), theirs = cordon_recipe_value(outer, id);
	bool wider = false;

	switch (cordon_recipe_rows[id].widens) {
	case CORDON_RECIPE_NEVER:
		break;
	case CORDON_RECIPE_ON:
		wider = own && !theirs;
		break;
	case CORDON_RECIPE_OFF:
		wider = !own && theirs;
		break;
	case CORDON_RECIPE_HIGHER:
		wider = theirs && (!own || own > theirs);
		break;
	case CORDON_RECIPE_LOWER:
		wider = own < theirs;
		break;
	case CORDON_RECIPE_GITS:
		wider = !cordon_git_within((cordon_git_mode)own, (cordon_git_mode)theirs);
		*ret_why = cordon_git_mode_name((cordon_git_mode)theirs);
		break;
	}
	if (cordon_recipe_rows[id].wider)
		*ret_why = cordon_recipe_rows[id].wider;
	return !values->where[id] || !wider;
}
