/* SPDX-License-Identifier: Apache-2.0 */
/* Tests which accesses are reported, and how often: one line per case, from the call of a process to the events of its
 * run. */
#include "jailed.h"

#include "sandbox/inside/tell.h"
#include "sandbox/watch/report.h"

#define HERE AT_FDCWD
#define UNKNOWN CORDON_ERROR_UNKNOWN

static struct cordon_policy *policy;
static struct cordon_plan *plan;
static struct cordon_watched of_run;

/* The reports, a line each: "op path verdict reason", with '%' for the test's directory, and the count if it is more
 * than 1. */
static char reported[8192];
static size_t n_reported;

static void receive_event(void *data, const struct cordon_event *event)
{
	size_t at = strlen(reported), base = strlen(unit_dir);
	char times[16] = "";

	(void)data;
	n_reported++;
	if (event->count > 1)
		snprintf(times, sizeof(times), " x%u", event->count);
	if (event->kind == CORDON_EVENT_UNTOLD)
		snprintf(reported + at, sizeof(reported) - at, "untold%s\n", times);
	else if (cordon_path_within(event->path, unit_dir))
		snprintf(reported + at, sizeof(reported) - at, "%s %%%s %s %s%s\n", event->op, event->path + base,
			 cordon_verdict_name(event->verdict), cordon_reason_name(event->reason), times);
	else
		snprintf(reported + at, sizeof(reported) - at, "%s %s %s %s%s\n", event->op, event->path,
			 cordon_verdict_name(event->verdict), cordon_reason_name(event->reason), times);
}

static const struct cordon_observer observer = { .event = receive_event };

static void forward_output(void *data)
{
	(void)data;
}

static void begin(cordon_mode mode)
{
	char ws[UNIT_PATH + 4], program[] = "true", *argv[] = { program, NULL };
	struct cordon_run_spec run = { .argv = argv };
	struct cordon_plan_spec spec = { .run = &run, .run_id = "run", .landlock_abi = CORDON_LANDLOCK_ABI_SCOPES };

	jailed_tree();
	snprintf(ws, sizeof(ws), "%s/ws", unit_dir);
	assert_int_equal(cordon_policy_new(ws, &policy, NULL), 0);
	cordon_policy_set_mode(policy, mode);
	assert_int_equal(cordon_policy_add_grant(policy, "src", CORDON_ACCESS_WRITE, NULL, NULL), 0);
	assert_int_equal(cordon_policy_add_grant(policy, "docs", CORDON_ACCESS_READ, NULL, NULL), 0);
	assert_int_equal(cordon_policy_add_grant(policy, "secret", CORDON_ACCESS_NONE, NULL, NULL), 0);
	assert_int_equal(cordon_policy_add_protected(policy, "src/AGENTS.md", NULL, false, NULL), 0);
	run.policy = policy;
	assert_int_equal(cordon_plan_build(&spec, &plan, NULL), 0);
	jailed_start();
	of_run = (struct cordon_watched){
		.plan = plan, .policy = policy, .observer = &observer, .forward_output = forward_output
	};
}

static void end(void)
{
	jailed_end();
	plan = cordon_plan_free(plan);
	cordon_policy_free(policy);
	policy = NULL;
}

struct row {
	const char *name;
	long nr;
	const char *path, *path2; /* of calls with a descriptor before each path */
	long flags;		  /* the third argument, the fifth of a call with two paths */
	int error;		  /* what the call returned */
	const char *reported;	  /* '%' is the test's directory; NULL: nothing */
};

static char first[CORDON_PATH_MAX], second[CORDON_PATH_MAX]; /* the paths that the process names */

/* Judges and reports one call of the process. */
static void call(struct cordon_reports *reports, const struct row *row)
{
	static struct cordon_touch touches[CORDON_TOUCHES_MAX];
	static char text[CORDON_PATH_MAX];
	static struct cordon_hand_message message;
	uint64_t args[6] = { (uint64_t)HERE, row->path ? (uint64_t)(uintptr_t)first : 1, (uint64_t)row->flags };
	size_t n;

	if (row->path)
		jailed_set(first, jailed_text(row->path, text));
	if (row->path2) {
		jailed_set(second, jailed_text(row->path2, text));
		args[2] = (uint64_t)HERE;
		args[3] = (uint64_t)(uintptr_t)second;
		args[4] = (uint64_t)row->flags;
	}
	n = jailed_call(row->nr, args, touches);
	if (!cordon_tell_look(plan, policy, jailed_root, jailed, touches, n, &message))
		return;
	message.code = row->error;
	cordon_reports_told(reports, &message);
}

static void check(const struct row *rows, size_t n)
{
	size_t wrong = 0;

	for (size_t i = 0; i < n; i++) {
		struct cordon_reports *reports = cordon_reports_new(&of_run);
		char expected[256] = "";

		assert_non_null(reports);
		*reported = '\0';
		call(reports, &rows[i]);
		if (rows[i].reported)
			snprintf(expected, sizeof(expected), "%s\n", rows[i].reported);
		if (!cordon_streq(reported, expected) || cordon_reports_count(reports) != (rows[i].reported != NULL)) {
			print_error("%s: %s", rows[i].name, *reported ? reported : "nothing\n");
			wrong++;
		}
		cordon_reports_free(reports);
	}
	assert_int_equal(wrong, 0);
}

#define OPEN SYS_openat
#define MAKE (O_CREAT | O_EXCL | O_WRONLY)

static const struct row strict[] = {
	/* Paths with a grant, and paths without. */
	{ "read what may be written", OPEN, "%/ws/src/a", NULL, O_RDONLY, UNKNOWN, NULL },
	{ "write what may be written", OPEN, "%/ws/src/a", NULL, O_WRONLY, UNKNOWN, NULL },
	{ "make where it may be made", OPEN, "%/ws/src/new", NULL, MAKE, UNKNOWN, NULL },
	{ "read what may be read", OPEN, "%/ws/docs/d", NULL, O_RDONLY, UNKNOWN, NULL },
	{ "write what may be read", OPEN, "%/ws/docs/d", NULL, O_WRONLY, UNKNOWN, "write %/ws/docs/d deny grant" },
	{ "make where it may be read", OPEN, "%/ws/docs/new", NULL, O_CREAT | O_WRONLY, UNKNOWN,
	  "create %/ws/docs/new deny grant" },
	{ "read without a grant", OPEN, "%/ws/other/x", NULL, O_RDONLY, UNKNOWN, "read %/ws/other/x deny no_grant" },
	{ "write without a grant", OPEN, "%/ws/other/x", NULL, O_WRONLY, UNKNOWN, "write %/ws/other/x deny no_grant" },
	{ "read what is denied", OPEN, "%/ws/secret/key", NULL, O_RDONLY, UNKNOWN, "read %/ws/secret/key deny deny" },
	{ "execute without a grant", SYS_execveat, "%/ws/other/x", NULL, 0, UNKNOWN,
	  "execute %/ws/other/x deny no_grant" },
	{ "look without a grant", SYS_newfstatat, "%/ws/other/x", NULL, 0, UNKNOWN, NULL },
	{ "open without opening", OPEN, "%/ws/other/x", NULL, O_PATH, UNKNOWN, NULL },
	/* Outside the workspace. */
	{ "read beside the workspace", OPEN, "%/beside/secret", NULL, O_RDONLY, UNKNOWN,
	  "read %/beside/secret deny outside_root" },
	{ "write beside the workspace", OPEN, "%/beside/secret", NULL, O_WRONLY, UNKNOWN,
	  "write %/beside/secret deny outside_root" },
	{ "climb out", OPEN, "../../beside/secret", NULL, O_RDONLY, UNKNOWN, "read %/beside/secret deny outside_root" },
	{ "a link out", OPEN, "%/ws/out", NULL, O_RDONLY, UNKNOWN, "read %/beside/secret deny outside_root" },
	{ "a link to what has no grant", OPEN, "%/ws/src/to-other", NULL, O_RDONLY, UNKNOWN,
	  "read %/ws/other/x deny no_grant" },
	{ "by what it has open", OPEN, "/proc/self/cwd/../../beside/secret", NULL, O_RDONLY, UNKNOWN,
	  "read %/beside/secret deny outside_root" },
	{ "make beside the workspace", OPEN, "%/beside/new", NULL, MAKE, UNKNOWN,
	  "create %/beside/new deny outside_root" },
	{ "a file of the system", OPEN, "/etc/passwd", NULL, O_RDONLY, UNKNOWN, NULL },
	{ "write a file of the system", OPEN, "/etc/passwd", NULL, O_WRONLY, UNKNOWN, NULL },
	/* The agent's own files. */
	{ "read a private file", OPEN, OWN_FILE, NULL, O_RDONLY, UNKNOWN, NULL },
	{ "write a private file", OPEN, OWN_FILE, NULL, O_WRONLY, UNKNOWN, NULL },
	{ "make a private file", OPEN, "/tmp/cordon-unit-new", NULL, MAKE, UNKNOWN, NULL },
	{ "a file without a name", OPEN, "/proc/self/fd/42", NULL, O_RDWR, UNKNOWN, NULL },
	{ "a pipe", OPEN, "/proc/self/fd/41", NULL, O_RDONLY, UNKNOWN, NULL },
	/* Calls that the kernel answers without asking any rule. */
	{ "nothing beside the workspace (ENOENT)", OPEN, "%/beside/nothing", NULL, O_RDONLY, UNKNOWN, NULL },
	{ "nothing in the workspace (ENOENT)", OPEN, "%/ws/nothing", NULL, O_RDONLY, UNKNOWN, NULL },
	{ "nothing in what has no grant", OPEN, "%/ws/other/nothing", NULL, O_RDONLY, UNKNOWN,
	  "read %/ws/other/nothing deny no_grant" },
	{ "nothing in what is denied", OPEN, "%/ws/secret/nothing", NULL, O_RDONLY, UNKNOWN,
	  "read %/ws/secret/nothing deny deny" },
	{ "remove nothing", SYS_unlinkat, "%/ws/nothing", NULL, 0, UNKNOWN, NULL },
	{ "make what is there (EEXIST)", OPEN, "%/ws/docs/d", NULL, MAKE, UNKNOWN, NULL },
	{ "make a directory that is there (EEXIST)", SYS_mkdirat, "%/ws/other", NULL, 0, UNKNOWN, NULL },
	{ "make a directory", SYS_mkdirat, "%/ws/other/new", NULL, 0, UNKNOWN, "create %/ws/other/new deny no_grant" },
	{ "make where no directory is", OPEN, "%/beside/nothing/new", NULL, MAKE, UNKNOWN, NULL },
	{ "make or read what may be read", OPEN, "%/ws/docs/d", NULL, O_CREAT | O_RDONLY, UNKNOWN, NULL },
	{ "make or read what has no grant", OPEN, "%/ws/other/x", NULL, O_CREAT | O_RDONLY, UNKNOWN,
	  "read %/ws/other/x deny no_grant" },
	{ "a loop", OPEN, "%/ws/loop", NULL, O_RDONLY, UNKNOWN, NULL },
	/* Boundaries. */
	{ "write what is protected", OPEN, "%/ws/src/AGENTS.md", NULL, O_WRONLY, UNKNOWN,
	  "write %/ws/src/AGENTS.md deny protected" },
	{ "read what is protected", OPEN, "%/ws/src/AGENTS.md", NULL, O_RDONLY, UNKNOWN, NULL },
	{ "remove what is protected", SYS_unlinkat, "%/ws/src/AGENTS.md", NULL, 0, UNKNOWN,
	  "delete %/ws/src/AGENTS.md deny protected" },
	{ "move what leads to it", SYS_renameat, "../src", "%/ws/src2", 0, UNKNOWN, "rename %/ws/src deny protected" },
	{ "move what leads to it, plainly named", SYS_renameat, "%/ws/src", "%/ws/src2", 0, UNKNOWN,
	  "rename %/ws/src deny protected" },
	{ "remove what leads to it", SYS_unlinkat, "%/ws/src", NULL, AT_REMOVEDIR, UNKNOWN,
	  "delete %/ws/src deny protected" },
	{ "move what is not there where it may be made", SYS_renameat, "%/ws/src/nothing", "%/beside/x", 0, UNKNOWN,
	  NULL },
	{ "link what is not there where it may be made", SYS_linkat, "%/ws/src/nothing", "%/beside/x", 0, UNKNOWN, NULL },
	/* Two paths: the first that is refused is reported. */
	{ "move within", SYS_renameat, "%/ws/src/a", "%/ws/src/b", 0, UNKNOWN, NULL },
	{ "move out", SYS_renameat, "%/ws/src/a", "%/beside/a", 0, UNKNOWN, "rename %/beside/a deny outside_root" },
	{ "move in", SYS_renameat, "%/ws/other/x", "%/ws/src/x", 0, UNKNOWN, "rename %/ws/other/x deny no_grant" },
	{ "move from one refused to another", SYS_renameat, "%/ws/other/x", "%/beside/x", 0, UNKNOWN,
	  "rename %/ws/other/x deny no_grant" },
	{ "move what is not there", SYS_renameat, "%/ws/nothing", "%/beside/x", 0, UNKNOWN, NULL },
	{ "link in what has no grant", SYS_linkat, "%/ws/other/x", "%/ws/src/x", 0, UNKNOWN,
	  "read %/ws/other/x deny no_grant" },
	{ "link out", SYS_linkat, "%/ws/src/a", "%/beside/a", 0, UNKNOWN, "create %/beside/a deny outside_root" },
	/* The result of the call is known. */
	{ "refused, and it was", OPEN, "%/beside/secret", NULL, O_RDONLY, -EACCES,
	  "read %/beside/secret deny outside_root" },
	{ "refused as read-only", OPEN, "%/ws/docs/d", NULL, O_WRONLY, -EROFS, "write %/ws/docs/d deny grant" },
	{ "failed for another reason", OPEN, "%/beside/secret", NULL, O_RDONLY, -ENOENT, NULL },
	{ "was not refused", OPEN, "%/beside/secret", NULL, O_RDONLY, 0, NULL },
	/* A path that can't be read from the process. */
	{ "an unreadable path", OPEN, NULL, NULL, O_RDONLY, UNKNOWN, "read (unreadable) deny unresolvable" },
};

static const struct row permissive[] = {
	{ "read without a grant", OPEN, "%/ws/other/x", NULL, O_RDONLY, UNKNOWN, "read %/ws/other/x warn no_grant" },
	{ "warned of, and done", OPEN, "%/ws/other/x", NULL, O_WRONLY, 0, "write %/ws/other/x warn no_grant" },
	{ "warned of, and failed", OPEN, "%/ws/other/x", NULL, O_WRONLY, -EACCES, NULL },
	{ "a grant that is too little", OPEN, "%/ws/docs/d", NULL, O_WRONLY, -EROFS, "write %/ws/docs/d deny grant" },
	{ "what is denied", OPEN, "%/ws/secret/key", NULL, O_RDONLY, UNKNOWN, "read %/ws/secret/key deny deny" },
	{ "outside", OPEN, "%/beside/secret", NULL, O_RDONLY, UNKNOWN, "read %/beside/secret deny outside_root" },
	{ "an unreadable path", OPEN, NULL, NULL, O_RDONLY, UNKNOWN, "read (unreadable) warn unresolvable" },
};

static void strict_mode_reports_what_a_rule_refuses_and_nothing_else(void **state)
{
	(void)state;
	begin(CORDON_MODE_STRICT);
	check(strict, CORDON_ARRAY_SIZE(strict));
	end();
}

static void permissive_mode_warns_of_what_has_no_grant(void **state)
{
	(void)state;
	begin(CORDON_MODE_PERMISSIVE);
	check(permissive, CORDON_ARRAY_SIZE(permissive));
	end();
}

static void what_is_plainly_free_is_passed_at_once(void **state)
{
	static const struct {
		const char *path;
		bool known, nameless, writes, pass;
	} cases[] = {
		{ "/usr/lib/x.so", true, false, false, true },	  { "/etc/passwd", true, false, true, true },
		{ "%/ws/src/a", true, false, true, true },	  { "%/ws/src/new", true, false, true, true },
		{ "%/ws/docs/d", true, false, false, true },	  { "%/ws/docs/d", true, false, true, false },
		{ "%/ws/other/x", true, false, false, false },	  { "%/ws/link", true, false, false, false },
		{ "%/beside/secret", true, false, false, false }, { "/usr/../home/x", true, false, false, false },
		{ "/proc/self/fd/3", true, false, false, false }, { "%/ws/src/a", false, false, false, false },
		{ "%/ws/other/x", true, true, true, true },
	};
	static struct cordon_touch touch;

	(void)state;
	begin(CORDON_MODE_STRICT);
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(cases); i++) {
		touch.known = cases[i].known;
		touch.nameless = cases[i].nameless;
		touch.writes = cases[i].writes;
		touch.op = cases[i].writes ? "write" : "read";
		touch.follows = true;
		jailed_text(cases[i].path, touch.path);
		if (cordon_tell_skips(plan, policy, jailed_root, &touch) != cases[i].pass)
			fail_msg("%s", cases[i].path);
	}
	assert_true(cordon_tell_skips_free(plan));
	end();
}

static void each_violation_is_reported_once_and_its_number_at_the_end(void **state)
{
	const struct row read = { "", OPEN, "%/beside/secret", NULL, O_RDONLY, UNKNOWN, NULL };
	const struct row write = { "", OPEN, "%/beside/secret", NULL, O_WRONLY, UNKNOWN, NULL };
	struct cordon_reports *reports;

	(void)state;
	begin(CORDON_MODE_STRICT);
	reports = cordon_reports_new(&of_run);
	*reported = '\0';
	call(reports, &read);
	call(reports, &read);
	call(reports, &write);
	call(reports, &read);
	assert_string_equal(reported,
			    "read %/beside/secret deny outside_root\nwrite %/beside/secret deny outside_root\n");
	assert_int_equal(cordon_reports_count(reports), 4);
	assert_false(cordon_reports_pending(reports));
	*reported = '\0';
	cordon_reports_free(reports);
	assert_string_equal(reported, "read %/beside/secret deny outside_root x3\n");
	end();
}

static void what_others_judged_is_folded_in_the_same_way_and_bounded(void **state)
{
	struct cordon_plan bare = { .root = "/ws", .at = "/ws" };
	const struct cordon_guard guard = { .path = "AGENTS.md", .kind = CORDON_GUARD_DENIED };
	const struct cordon_decision by_grant = { .verdict = CORDON_DENY, .reason = CORDON_REASON_GRANT, .rule = "a" };
	const struct cordon_decision no_grant = { .verdict = CORDON_DENY, .reason = CORDON_REASON_NO_GRANT };
	struct cordon_reports *reports;
	char path[32];

	(void)state;
	of_run = (struct cordon_watched){ .plan = &bare, .observer = &observer, .forward_output = forward_output };
	reports = cordon_reports_new(&of_run);
	*reported = '\0';
	cordon_reports_add(reports, "write", "/ws/a", &by_grant, 2);
	cordon_reports_add(reports, "write", "/ws/a", &by_grant, 1);
	cordon_reports_refused(reports, "create", &guard, NULL, "/ws/AGENTS.md");
	cordon_reports_refused(reports, "rename", NULL, "self", "/ws/b");
	assert_string_equal(reported,
			    "write /ws/a deny grant\ncreate /ws/AGENTS.md deny deny\nrename /ws/b deny protected\n");
	assert_int_equal(cordon_reports_count(reports), 5);
	n_reported = 0;
	for (int i = 0; i < CORDON_WATCH_REPORTS; i++) {
		snprintf(path, sizeof(path), "/ws/%d", i);
		*reported = '\0';
		cordon_reports_add(reports, "read", path, &no_grant, 1);
	}
	assert_int_equal(n_reported, CORDON_WATCH_REPORTS - 3);
	cordon_reports_add_untold(reports, 4);
	assert_int_equal(cordon_reports_count(reports), 5 + CORDON_WATCH_REPORTS + 4);
	*reported = '\0';
	cordon_reports_free(reports);
	assert_string_equal(reported, "write /ws/a deny grant x3\nuntold x7\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		unit_test_in_dir(strict_mode_reports_what_a_rule_refuses_and_nothing_else),
		unit_test_in_dir(permissive_mode_warns_of_what_has_no_grant),
		unit_test_in_dir(what_is_plainly_free_is_passed_at_once),
		unit_test_in_dir(each_violation_is_reported_once_and_its_number_at_the_end),
		cmocka_unit_test(what_others_judged_is_folded_in_the_same_way_and_bounded),
	};

	return cmocka_run_group_tests_name("watch_report", tests, NULL, NULL);
}
