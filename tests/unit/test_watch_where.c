/* SPDX-License-Identifier: Apache-2.0 */
/* Tests where a path leads that a process in its own tree names: one line per case, from the call to the path on the
 * host. */
#include "jailed.h"

#include "sandbox/inside/spot.h"

#define HERE AT_FDCWD

static struct cordon_plan plan;
static struct cordon_places places;

/* S: the process's own tree has the directory of the path; E: the path exists there; "": only the host may have it. */
struct row {
	const char *name;
	int dir;
	const char *path; /* '%': the test's directory */
	int flags;
	const char *says; /* NULL: the path leads to nothing that has a name */
	const char *host;
};

static const struct row rows[] = {
	/* Names, and the directories from which they start. */
	{ "a name in the working directory", HERE, "here", O_RDONLY, "SE", "%/ws/sub/here" },
	{ "a name that is not there", HERE, "nothing", O_RDONLY, "S", "%/ws/sub/nothing" },
	{ "a name to be made", HERE, "new", O_CREAT | O_EXCL | O_WRONLY, "S", "%/ws/sub/new" },
	{ "a directory that is not there", HERE, "no/thing", O_RDONLY, "", "%/ws/sub/no/thing" },
	{ "a name below a file", HERE, "here/x", O_RDONLY, "", "%/ws/sub/here/x" },
	{ "the working directory", HERE, ".", O_RDONLY, "SE", "%/ws/sub" },
	{ "a name from a descriptor", ON_DIR, "inner", O_RDONLY, "SE", "%/ws/dir/inner" },
	{ "a way up from a descriptor", ON_DIR, "../file", O_RDONLY, "SE", "%/ws/file" },
	{ "an absolute path", ON_DIR, "%/ws/file", O_RDONLY, "SE", "%/ws/file" },
	{ "doubled slashes and dots", HERE, "%//ws/./dir//inner", O_RDONLY, "SE", "%/ws/dir/inner" },
	{ "a pipe is no directory", ON_PIPE, "x", O_RDONLY, NULL, NULL },
	{ "a removed directory has no names", ON_REMOVED_DIR, "x", O_RDONLY, NULL, NULL },
	{ "a way out of a removed directory", ON_REMOVED_DIR, "../file", O_RDONLY, "SE", "%/ws/file" },
	/* Paths with "..". */
	{ "the directory above", HERE, "..", O_RDONLY, "SE", "%/ws" },
	{ "a name above", HERE, "../file", O_RDONLY, "SE", "%/ws/file" },
	{ "up and down again", HERE, "../sub/../dir/inner", O_RDONLY, "SE", "%/ws/dir/inner" },
	{ "out of the workspace", HERE, "../../beside/secret", O_RDONLY, "", "%/beside/secret" },
	{ "out, to what nobody has", HERE, "../../beside/nothing", O_RDONLY, "", "%/beside/nothing" },
	{ "above the root stays there", HERE, "../../../../../../../../../../../..%/ws/file", O_RDONLY, "SE",
	  "%/ws/file" },
	/* Links. */
	{ "a link to a file", HERE, "../link", O_RDONLY, "SE", "%/ws/file" },
	{ "the link itself", HERE, "../link", O_RDONLY | O_NOFOLLOW, "SE", "%/ws/link" },
	{ "a link on the way", HERE, "../dirlink/inner", O_RDONLY, "SE", "%/ws/dir/inner" },
	{ "a name to be made behind a link", HERE, "../dirlink/new", O_CREAT | O_WRONLY, "S", "%/ws/dir/new" },
	{ "up behind a link", HERE, "../dirlink/../file", O_RDONLY, "SE", "%/ws/file" },
	{ "a link that leads nowhere", HERE, "../dangling", O_CREAT | O_WRONLY, "S", "%/ws/nowhere" },
	{ "a name to be made where a link stands", HERE, "../dangling", O_CREAT | O_EXCL | O_WRONLY, "SE",
	  "%/ws/dangling" },
	{ "a link out of the workspace", HERE, "../out", O_RDONLY, "", "%/beside/secret" },
	{ "the link out of the workspace itself", HERE, "../out", O_RDONLY | O_NOFOLLOW, "SE", "%/ws/out" },
	{ "a link to what is not beside it", HERE, "../away", O_CREAT | O_WRONLY, "", "%/beside/nothing" },
	{ "a loop", HERE, "../loop", O_RDONLY, NULL, NULL },
	{ "a loop on the way", HERE, "../loop/x", O_RDONLY, NULL, NULL },
	{ "the loop itself", HERE, "../loop", O_RDONLY | O_NOFOLLOW, "SE", "%/ws/loop" },
	/* Names that stand for what a process has open. */
	{ "/proc/self/cwd", HERE, "/proc/self/cwd/here", O_RDONLY, "SE", "%/ws/sub/here" },
	{ "/proc/self/cwd and up", HERE, "/proc/self/cwd/../../beside/secret", O_RDONLY, "", "%/beside/secret" },
	{ "/proc/thread-self/cwd", HERE, "/proc/thread-self/cwd/here", O_RDONLY, "SE", "%/ws/sub/here" },
	{ "/proc/PID/cwd", HERE, "/proc/1/cwd/here", O_RDONLY, "SE", "%/ws/sub/here" },
	{ "/proc/self/task/TID/cwd", HERE, "/proc/self/task/1/cwd/here", O_RDONLY, "SE", "%/ws/sub/here" },
	{ "/proc/self/root", HERE, "/proc/self/root%/ws/file", O_RDONLY, "SE", "%/ws/file" },
	{ "/proc/self/fd/N of a file", HERE, "/proc/self/fd/44", O_RDONLY, "SE", "%/ws/file" },
	{ "/proc/self/fd/N of a directory", HERE, "/proc/self/fd/40/inner", O_RDONLY, "SE", "%/ws/dir/inner" },
	{ "/proc/self/fd/N of a pipe", HERE, "/proc/self/fd/41", O_RDONLY, NULL, NULL },
	{ "/proc/self/fd/N of a removed file", HERE, "/proc/self/fd/42", O_RDONLY, NULL, NULL },
	{ "/proc/self/fd/N that is not open", HERE, "/proc/self/fd/999", O_RDONLY, NULL, NULL },
	{ "/dev/fd/N", HERE, "/dev/fd/44", O_RDONLY, "SE", "%/ws/file" },
	{ "/proc written in a roundabout way", HERE, "//proc/./self/../self//cwd/here", O_RDONLY, "SE", "%/ws/sub/here" },
	{ "in and out of /proc", HERE, "/proc/..%/ws/file", O_RDONLY, "SE", "%/ws/file" },
	{ "a link to /proc/self/cwd", HERE, "../cwdlink", O_RDONLY, "SE", "%/ws/sub" },
	{ "a link to /proc/self/cwd on the way", HERE, "../cwdlink/here", O_RDONLY, "SE", "%/ws/sub/here" },
	{ "a link to /proc on the way", HERE, "../proclink/self/cwd/here", O_RDONLY, "SE", "%/ws/sub/here" },
	/* What only the process has. */
	{ "a file of its own /tmp", HERE, OWN_FILE, O_RDONLY, "SE", OWN_FILE },
};

static char text[CORDON_PATH_MAX]; /* the path that the process names */

static void begin(void)
{
	static char ws[UNIT_PATH + 4];

	jailed_tree();
	snprintf(ws, sizeof(ws), "%s/ws", unit_dir);
	plan = (struct cordon_plan){ .root = ws, .at = ws };
	jailed_start();
	places = (struct cordon_places){ .plan = &plan, .root_fd = jailed_root };
}

static bool find(const struct row *row, struct cordon_where *ret)
{
	static char said[CORDON_PATH_MAX];
	static struct cordon_touch touches[CORDON_TOUCHES_MAX];
	const uint64_t args[6] = { (uint64_t)row->dir, (uint64_t)(uintptr_t)text, (uint64_t)row->flags };

	jailed_set(text, jailed_text(row->path, said));
	assert_int_equal(jailed_call(SYS_openat, args, touches), 1);
	return touches[0].known && cordon_where_find(&places, jailed, &touches[0], ret);
}

static void a_path_leads_where_the_kernel_would_take_it(void **state)
{
	static char expected[CORDON_PATH_MAX];
	static struct cordon_where where;
	size_t wrong = 0;

	(void)state;
	begin();
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(rows); i++) {
		const struct row *row = &rows[i];
		char says[3] = "";
		bool found;

		memset(&where, 0xff, sizeof(where));
		found = find(row, &where);
		if (found)
			snprintf(says, sizeof(says), "%s%s", where.shown ? "S" : "", where.exists ? "E" : "");
		if (found != (row->says != NULL) ||
		    (found && (!cordon_streq(says, row->says) ||
			       !cordon_streq(where.inside, jailed_text(row->host, expected))))) {
			print_error("%s: %s %s %s\n", row->name, found ? "found" : "not found", says,
				    found ? where.inside : "");
			wrong++;
		}
	}
	jailed_end();
	assert_int_equal(wrong, 0);
}

static void the_directory_of_a_name_is_found_as_the_process_finds_it(void **state)
{
	static const struct {
		const char *path;
		const char *dir, *name; /* NULL: it can't be found, or not by us */
	} cases[] = {
		{ "%/ws/dir/new", "%/ws/dir", "new" },
		{ "%/ws/dir/inner", "%/ws/dir", "inner" },
		{ "%/ws/dir/new/", "%/ws/dir", "new" },
		{ "%/ws/dirlink/new", "%/ws/dir", "new" },
		{ "%/ws/link", "%/ws", "link" }, /* a link at the last name is not followed */
		{ "%/ws/dirlink", "%/ws", "dirlink" },
		{ "%/ws/sub/../new", "%/ws", "new" },
		{ "/proc/self/cwd/new", "%/ws/sub", "new" },
		{ "/proc/self/fd/40/new", "%/ws/dir", "new" },
		{ "%/ws/proclink/self/cwd/new", "%/ws/sub", "new" },
		{ "%/ws/cwdlink/new", "%/ws/sub", "new" },
		{ "/new", "/", "new" },
		{ "%/ws/no/new", NULL, NULL },
		{ "%/beside/new", NULL, NULL }, /* the process does not have it */
		{ "%/ws/file/new", NULL, NULL },
		{ "%/ws/loop/new", NULL, NULL },
		{ "%/ws/..", NULL, NULL },
		{ "%/ws/.", NULL, NULL },
		{ "/", NULL, NULL },
		{ "/proc/self/fd/41/new", NULL, NULL },
	};
	static struct cordon_hand_memory memory;
	static struct cordon_spot spot;
	static char said[CORDON_PATH_MAX], expected[CORDON_PATH_MAX], dir[CORDON_PATH_MAX];
	struct cordon_spots spots = { .plan = &plan, .memory = &memory };

	(void)state;
	begin();
	spots.root_fd = jailed_root;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(cases); i++) {
		static struct cordon_touch touches[CORDON_TOUCHES_MAX];
		const uint64_t args[6] = { (uint64_t)HERE, (uint64_t)(uintptr_t)text, O_CREAT | O_EXCL | O_WRONLY };
		const struct cordon_spot_caller of = { .thread = jailed, .leader = jailed };
		char link[CORDON_FD_PATH_SIZE];
		ssize_t n;

		jailed_set(text, jailed_text(cases[i].path, said));
		assert_int_equal(jailed_call(SYS_openat, args, touches), 1);
		if (cordon_spot_find(&spots, &of, &touches[0], &spot) != (cases[i].dir != NULL))
			fail_msg("%s", cases[i].path);
		if (!cases[i].dir)
			continue;
		n = readlink(cordon_fd_path(spot.dir_fd, link), dir, sizeof(dir) - 1);
		assert_true(n > 0);
		dir[n] = '\0';
		assert_string_equal(dir, jailed_text(cases[i].dir, expected));
		assert_string_equal(spot.name, cases[i].name);
		cordon_spot_done(&spot);
	}
	jailed_end();
}

static void only_a_way_without_links_is_plainly_within(void **state)
{
	static const struct {
		const char *path;
		bool follows, direct;
		const char *within; /* NULL: the quick test does not know */
	} cases[] = {
		{ "%/ws/file", true, false, "file" },
		{ "%/ws/file", true, true, "file" },
		{ "%/ws/nothing", true, false, "nothing" },
		{ "%/ws/nothing", true, true, "nothing" },
		{ "%/ws", true, false, "" },
		{ "%/ws//dir/./inner", true, false, "dir/inner" },
		{ "%/ws/link", true, false, NULL },
		{ "%/ws/link", true, true, NULL },
		{ "%/ws/link", false, true, "link" },
		{ "%/ws/dirlink/inner", true, false, NULL },
		{ "%/ws/sub/../file", true, false, NULL },
		{ "%/ws/..", true, false, NULL },
		{ "%/wsx", true, false, NULL },
		{ "%/beside/secret", true, false, NULL },
	};
	static struct cordon_touch touch;
	static char within[CORDON_PATH_MAX];

	(void)state;
	begin();
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(cases); i++) {
		bool plain;

		jailed_text(cases[i].path, touch.path);
		touch.follows = cases[i].follows;
		touch.direct = cases[i].direct;
		plain = cordon_where_plainly_within(&places, &touch, within);
		if (plain != (cases[i].within != NULL) || (plain && !cordon_streq(within, cases[i].within)))
			fail_msg("%s (%d, %d): %s %s", cases[i].path, touch.follows, touch.direct,
				 plain ? "plain" : "not plain", within);
	}
	jailed_end();
}

static void a_system_path_is_plain_by_its_text_alone(void **state)
{
	static const struct {
		const char *path;
		bool plain, system;
	} cases[] = {
		{ "/usr/lib/x.so", true, true },
		{ "/etc/passwd", true, true },
		{ "/", true, true },
		{ "/dev/null", true, true },
		{ "/usr", true, true },
		{ "/etc/..data/x", true, true },
		{ "/usr/../home/u/x", false, true },
		{ "/usr/lib/..", false, true },
		{ "/proc/cpuinfo", false, true },
		{ "/proc/self/fd/3", false, true },
		{ "/dev/fd/3", false, true },
		{ "/dev/./stdin", false, true },
		{ "/dev//fd", false, true },
		{ "/usrlocal/x", false, false },
		{ "/home/u/usr/x", false, false },
		{ "/srv", false, false },
	};

	(void)state;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(cases); i++) {
		if (cordon_where_plainly_system(cases[i].path) != cases[i].plain ||
		    cordon_where_is_system(cases[i].path) != cases[i].system)
			fail_msg("%s", cases[i].path);
	}
}

static void what_stands_elsewhere_inside_has_the_hosts_name(void **state)
{
	static struct cordon_step steps[] = {
		{ .kind = CORDON_STEP_BIND, .path = "/usr", .source = "/usr" },
		{ .kind = CORDON_STEP_BIND, .path = "/data", .source = "/srv/data" },
		{ .kind = CORDON_STEP_BIND, .path = "/data/in", .source = "/mnt/other" },
		{ .kind = CORDON_STEP_PRIVATE, .path = "/home", .source = "/none" },
	};
	static const struct cordon_plan elsewhere = {
		.root = "/home/u/ws", .at = "/inside/ws", .steps = steps, .n_steps = CORDON_ARRAY_SIZE(steps)
	};
	static const char *const cases[][2] = {
		{ "/inside/ws", "/home/u/ws" },	  { "/inside/ws/a/b", "/home/u/ws/a/b" },
		{ "/inside/wsx", "/inside/wsx" }, { "/data/x", "/srv/data/x" },
		{ "/data/in/x", "/mnt/other/x" }, { "/data/inx", "/srv/data/inx" },
		{ "/database", "/database" },	  { "/usr/bin/sh", "/usr/bin/sh" },
		{ "/home/u/.x", "/home/u/.x" },
	};
	char host[CORDON_PATH_MAX];

	(void)state;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(cases); i++) {
		assert_true(cordon_where_to_host(&elsewhere, cases[i][0], host));
		assert_string_equal(host, cases[i][1]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		unit_test_in_dir(a_path_leads_where_the_kernel_would_take_it),
		unit_test_in_dir(the_directory_of_a_name_is_found_as_the_process_finds_it),
		unit_test_in_dir(only_a_way_without_links_is_plainly_within),
		cmocka_unit_test(a_system_path_is_plain_by_its_text_alone),
		cmocka_unit_test(what_stands_elsewhere_inside_has_the_hosts_name),
	};

	return cmocka_run_group_tests_name("watch_where", tests, NULL, NULL);
}
