/* SPDX-License-Identifier: Apache-2.0 */
/* Tests which paths each system call names and what it does to them: one line per call, read from this process's own
 * memory. */
#include "unit.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include "sandbox/inside/calls.h"

#define HERE ((long)AT_FDCWD)
#define DIR_FD 30 /* open on the directory "dir" */
#define P(s) ((long)(s))

/* The fields of a touch as letters: Writes, Creates, Follows, Directory, if-Missing; direct is '1', nameless '0'. */
struct row {
	const char *name;
	long nr;
	long args[6];
	struct {
		const char *op, *says, *path; /* paths are in the test's directory; NULL: can't be read */
	} touches[CORDON_TOUCHES_MAX];
};

/* clang-format off */
#define NOTHING { { NULL, NULL, NULL } }
/* clang-format on */

#ifdef SYS_open
#define OLD(name) SYS_##name
#else
#define OLD(name) -1
#endif

static const struct sockaddr_un socket_named = { AF_UNIX, "socket" }, socket_deep = { AF_UNIX, "/run/socket" },
				socket_abstract = { AF_UNIX, "\0socket" }, socket_other = { AF_INET, "socket" };

static const struct row rows[] = {
	/* An open does what its flags say. */
	{ "openat to read", SYS_openat, { HERE, P("a"), O_RDONLY }, { { "read", "F1", "a" } } },
	{ "openat to write", SYS_openat, { HERE, P("a"), O_WRONLY }, { { "write", "WF1", "a" } } },
	{ "openat to read and write", SYS_openat, { HERE, P("a"), O_RDWR }, { { "write", "WF1", "a" } } },
	{ "openat to truncate", SYS_openat, { HERE, P("a"), O_RDONLY | O_TRUNC }, { { "write", "WF1", "a" } } },
	{ "openat to make", SYS_openat, { HERE, P("a"), O_CREAT | O_WRONLY }, { { "write", "WCF1", "a" } } },
	{ "openat to make or read", SYS_openat, { HERE, P("a"), O_CREAT | O_RDONLY }, { { "write", "WCFM1", "a" } } },
	{ "openat to make or truncate", SYS_openat, { HERE, P("a"), O_CREAT | O_TRUNC }, { { "write", "WCF1", "a" } } },
	{ "openat to make only", SYS_openat, { HERE, P("a"), O_CREAT | O_EXCL | O_WRONLY }, { { "create", "WC1", "a" } } },
	{ "openat of the name itself", SYS_openat, { HERE, P("a"), O_RDONLY | O_NOFOLLOW }, { { "read", "1", "a" } } },
	{ "openat O_PATH, whatever else",
	  SYS_openat,
	  { HERE, P("a"), O_PATH | O_CREAT | O_TRUNC | O_WRONLY },
	  { { "look", "1", "a" } } },
	{ "openat, rubbish above",
	  SYS_openat,
	  { HERE, P("a"), (long)0xdeadbeef00000000UL | O_RDONLY },
	  { { "read", "F1", "a" } } },
	{ "open to read", OLD(open), { P("a"), O_RDONLY }, { { "read", "F1", "a" } } },
	{ "open to make", OLD(open), { P("a"), O_CREAT | O_WRONLY, 0600 }, { { "write", "WCF1", "a" } } },
	{ "creat", OLD(creat), { P("a"), 0600 }, { { "write", "WCF1", "a" } } },
	/* Where a path starts. */
	{ "a way below the working directory", SYS_openat, { HERE, P("dir/in"), O_RDONLY }, { { "read", "F", "dir/in" } } },
	{ "a way above it", SYS_openat, { HERE, P("dir/../a"), O_RDONLY }, { { "read", "F", "dir/../a" } } },
	{ "a descriptor", SYS_openat, { DIR_FD, P("in"), O_RDONLY }, { { "read", "F1", "dir/in" } } },
	{ "an absolute path and a descriptor",
	  SYS_openat,
	  { DIR_FD, P("/etc/passwd"), O_RDONLY },
	  { { "read", "F", "/etc/passwd" } } },
	{ "a descriptor that is none", SYS_openat, { 999, P("in"), O_RDONLY }, { { "read", "F1", NULL } } },
	{ "a path that can't be read", SYS_openat, { HERE, 1, O_RDONLY }, { { "read", "F", NULL } } },
	{ "the directory itself", SYS_openat, { HERE, P("."), O_RDONLY }, { { "read", "F", "." } } },
	/* Calls that make a name. */
	{ "mkdirat", SYS_mkdirat, { HERE, P("n"), 0700 }, { { "create", "WCD1", "n" } } },
	{ "mknodat", SYS_mknodat, { DIR_FD, P("n"), 0600, 0 }, { { "create", "WC1", "dir/n" } } },
	{ "symlinkat names its second path",
	  SYS_symlinkat,
	  { P("target"), DIR_FD, P("n") },
	  { { "create", "WC1", "dir/n" } } },
	{ "mkdir", OLD(mkdir), { P("n"), 0700 }, { { "create", "WCD1", "n" } } },
	{ "mknod", OLD(mknod), { P("n"), 0600, 0 }, { { "create", "WC1", "n" } } },
	{ "symlink", OLD(symlink), { P("target"), P("n") }, { { "create", "WC1", "n" } } },
	{ "bind", SYS_bind, { 0, P(&socket_named), sizeof(socket_named) }, { { "create", "WC", "socket" } } },
	{ "bind, absolute", SYS_bind, { 0, P(&socket_deep), sizeof(socket_deep) }, { { "create", "WC", "/run/socket" } } },
	{ "bind, cut short", SYS_bind, { 0, P(&socket_named), sizeof(sa_family_t) + 3 }, { { "create", "WC", "soc" } } },
	{ "bind of an abstract name", SYS_bind, { 0, P(&socket_abstract), sizeof(socket_abstract) }, NOTHING },
	{ "bind of another family", SYS_bind, { 0, P(&socket_other), sizeof(socket_other) }, NOTHING },
	{ "bind without an address", SYS_bind, { 0, 0, 0 }, NOTHING },
	/* Two paths. */
	{ "linkat",
	  SYS_linkat,
	  { HERE, P("a"), DIR_FD, P("n"), 0 },
	  { { "read", "1", "a" }, { "create", "WC1", "dir/n" } } },
	{ "linkat behind a link",
	  SYS_linkat,
	  { HERE, P("a"), HERE, P("n"), AT_SYMLINK_FOLLOW },
	  { { "read", "F1", "a" }, { "create", "WC1", "n" } } },
	{ "renameat", SYS_renameat, { HERE, P("a"), HERE, P("n") }, { { "rename", "W1", "a" }, { "rename", "WC1", "n" } } },
	{ "renameat2",
	  SYS_renameat2,
	  { DIR_FD, P("a"), HERE, P("n"), 0 },
	  { { "rename", "W1", "dir/a" }, { "rename", "WC1", "n" } } },
	{ "link", OLD(link), { P("a"), P("n") }, { { "read", "1", "a" }, { "create", "WC1", "n" } } },
	{ "rename", OLD(rename), { P("a"), P("n") }, { { "rename", "W1", "a" }, { "rename", "WC1", "n" } } },
	/* Calls that act on what is there. */
	{ "unlinkat", SYS_unlinkat, { HERE, P("a"), 0 }, { { "delete", "W1", "a" } } },
	{ "unlink", OLD(unlink), { P("a") }, { { "delete", "W1", "a" } } },
	{ "rmdir", OLD(rmdir), { P("dir") }, { { "delete", "W1", "dir" } } },
	{ "execve", SYS_execve, { P("a"), 0, 0 }, { { "execute", "F1", "a" } } },
	{ "execveat", SYS_execveat, { DIR_FD, P("a"), 0, 0, 0 }, { { "execute", "F1", "dir/a" } } },
	{ "execveat of the name itself",
	  SYS_execveat,
	  { HERE, P("a"), 0, 0, AT_SYMLINK_NOFOLLOW },
	  { { "execute", "1", "a" } } },
	{ "truncate", SYS_truncate, { P("a"), 0 }, { { "write", "WF1", "a" } } },
	{ "fchmodat", SYS_fchmodat, { HERE, P("a"), 0600 }, { { "write", "WF1", "a" } } },
	{ "fchmodat2", 452, { HERE, P("a"), 0600, 0 }, { { "write", "WF1", "a" } } },
	{ "fchmodat2 of the name itself", 452, { HERE, P("a"), 0600, AT_SYMLINK_NOFOLLOW }, { { "write", "W1", "a" } } },
	{ "fchownat", SYS_fchownat, { HERE, P("a"), -1, -1, 0 }, { { "write", "WF1", "a" } } },
	{ "fchownat of the name itself",
	  SYS_fchownat,
	  { HERE, P("a"), -1, -1, AT_SYMLINK_NOFOLLOW },
	  { { "write", "W1", "a" } } },
	{ "lchown", OLD(lchown), { P("a"), -1, -1 }, { { "write", "W1", "a" } } },
	{ "utimensat", SYS_utimensat, { HERE, P("a"), 0, 0 }, { { "write", "WF1", "a" } } },
	{ "utimensat of a descriptor", SYS_utimensat, { DIR_FD, 0, 0, 0 }, NOTHING },
	{ "setxattr", SYS_setxattr, { P("a"), P("user.x"), P("v"), 1, 0 }, { { "write", "WF1", "a" } } },
	{ "lsetxattr", SYS_lsetxattr, { P("a"), P("user.x"), P("v"), 1, 0 }, { { "write", "W1", "a" } } },
	{ "lremovexattr", SYS_lremovexattr, { P("a"), P("user.x") }, { { "write", "W1", "a" } } },
	{ "setxattrat of the name itself",
	  463,
	  { HERE, P("a"), AT_SYMLINK_NOFOLLOW, P("user.x"), 0, 0 },
	  { { "write", "W1", "a" } } },
	{ "removexattrat", 466, { HERE, P("a"), 0, P("user.x") }, { { "write", "WF1", "a" } } },
	/* Calls that only look; a bare descriptor names no path. */
	{ "newfstatat", SYS_newfstatat, { HERE, P("a"), 0, 0 }, { { "look", "1", "a" } } },
	{ "newfstatat of a descriptor", SYS_newfstatat, { DIR_FD, P(""), 0, AT_EMPTY_PATH }, NOTHING },
	{ "statx of what can't be read", SYS_statx, { HERE, 1, 0, 0, 0 }, NOTHING },
	{ "readlinkat", SYS_readlinkat, { DIR_FD, P("a"), 0, 0 }, { { "look", "1", "dir/a" } } },
	{ "chdir", SYS_chdir, { P("dir") }, { { "look", "1", "dir" } } },
	{ "getxattr", SYS_getxattr, { P("a"), P("user.x"), 0, 0 }, { { "look", "1", "a" } } },
	/* Calls that name no path. */
	{ "read", SYS_read, { 0, P("a"), 1 }, NOTHING },
	{ "fchmod", SYS_fchmod, { DIR_FD, 0600 }, NOTHING },
};

static void describe(const struct cordon_touch *touch, char ret[static 8])
{
	size_t n = 0;

	if (touch->writes)
		ret[n++] = 'W';
	if (touch->creates)
		ret[n++] = 'C';
	if (touch->follows)
		ret[n++] = 'F';
	if (touch->directory)
		ret[n++] = 'D';
	if (touch->if_missing)
		ret[n++] = 'M';
	if (touch->direct)
		ret[n++] = '1';
	if (touch->nameless)
		ret[n++] = '0';
	ret[n] = '\0';
}

static void assert_touch(const struct row *row, size_t i, const struct cordon_touch *touch)
{
	const char *op = row->touches[i].op, *says = row->touches[i].says, *path = row->touches[i].path;
	char expected[2 * CORDON_PATH_MAX] = "", said[8];

	describe(touch, said);
	if (path && *path != '/')
		snprintf(expected, sizeof(expected), "%s/%s", unit_dir, path);
	else if (path)
		snprintf(expected, sizeof(expected), "%s", path);
	if (!cordon_streq(touch->op, op) || !cordon_streq(said, says) || touch->known != (path != NULL) ||
	    (path && !cordon_streq(touch->path, expected)))
		fail_msg("%s: %s, says %s, known %d, path %s", row->name, touch->op, said, touch->known, touch->path);
}

static void each_call_names_its_paths_and_what_it_does_to_them(void **state)
{
	static struct cordon_touch touches[CORDON_TOUCHES_MAX];
	int dir;

	(void)state;
	unit_mkdir("dir");
	dir = open("dir", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(dup2(dir, DIR_FD), DIR_FD);
	close(dir);
	/* The kernel gives the true path, which may differ from TMPDIR. */
	assert_non_null(getcwd(unit_dir, sizeof(unit_dir)));
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(rows); i++) {
		const struct row *row = &rows[i];
		struct seccomp_notif notif = { .pid = (uint32_t)getpid(), .data = { .nr = (int)row->nr } };
		size_t n;

		if (row->nr < 0)
			continue;
		for (size_t j = 0; j < CORDON_ARRAY_SIZE(row->args); j++)
			notif.data.args[j] = (uint64_t)row->args[j];
		memset(touches, 0xff, sizeof(touches)); /* nothing of the previous call may be left */
		n = cordon_calls_read(&notif, touches);
		if (n != (size_t)(row->touches[0].op != NULL) + (row->touches[1].op != NULL))
			fail_msg("%s touches %zu paths", row->name, n);
		for (size_t j = 0; j < n; j++)
			assert_touch(row, j, &touches[j]);
	}
	close(DIR_FD);
}

static void an_open_keeps_its_flags_and_mode(void **state)
{
	static struct cordon_touch touches[CORDON_TOUCHES_MAX];
	struct seccomp_notif notif = { .pid = (uint32_t)getpid(), .data = { .nr = SYS_openat } };

	(void)state;
	notif.data.args[0] = (uint64_t)AT_FDCWD;
	notif.data.args[1] = (uint64_t)(uintptr_t) "a";
	notif.data.args[2] = O_CREAT | O_RDWR;
	notif.data.args[3] = 0640;
	assert_int_equal(cordon_calls_read(&notif, touches), 1);
	assert_int_equal(touches[0].flags, O_CREAT | O_RDWR);
	assert_int_equal(touches[0].mode, 0640);
	assert_int_equal(touches[0].start, AT_FDCWD);
	assert_true(touches[0].has_text);
	assert_string_equal(touches[0].text, "a");
	notif.data.args[2] = O_CREAT | O_WRONLY;
	notif.data.args[3] = 0600;
	assert_int_equal(cordon_calls_read(&notif, touches), 1);
	assert_int_equal(touches[0].flags, O_CREAT | O_WRONLY);
	assert_int_equal(touches[0].mode, 0600);
}

static void a_removed_directory_has_no_name_and_can_be_left(void **state)
{
	static struct cordon_touch touches[CORDON_TOUCHES_MAX];
	struct seccomp_notif notif = { .pid = (uint32_t)getpid(), .data = { .nr = SYS_openat } };
	char expected[2 * UNIT_PATH];
	int gone;

	(void)state;
	unit_mkdir("gone");
	gone = open("gone", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(rmdir("gone"), 0);
	notif.data.args[0] = (uint64_t)gone;
	notif.data.args[1] = (uint64_t)(uintptr_t) "a";
	assert_int_equal(cordon_calls_read(&notif, touches), 1);
	assert_true(touches[0].nameless);
	notif.data.args[1] = (uint64_t)(uintptr_t) "../a";
	assert_int_equal(cordon_calls_read(&notif, touches), 1);
	assert_false(touches[0].nameless);
	assert_non_null(getcwd(unit_dir, sizeof(unit_dir)));
	snprintf(expected, sizeof(expected), "%s/a", unit_dir);
	assert_string_equal(touches[0].path, expected);
	close(gone);
}

/* A string may end right before an unmapped page; one that does not end is refused. */
static void a_string_is_read_up_to_its_end_and_no_further(void **state)
{
	static char text[CORDON_PATH_MAX];
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *two = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *tail = two + page - 4;

	(void)state;
	assert_true(two != MAP_FAILED);
	assert_int_equal(munmap(two + page, page), 0);
	memcpy(tail, "abc", 4);
	assert_true(cordon_calls_read_string(getpid(), (uint64_t)(uintptr_t)tail, text));
	assert_string_equal(text, "abc");
	tail[3] = 'd';
	assert_false(cordon_calls_read_string(getpid(), (uint64_t)(uintptr_t)tail, text));
	assert_false(cordon_calls_read_string(getpid(), 0, text));
	munmap(two, page);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		unit_test_in_dir(each_call_names_its_paths_and_what_it_does_to_them),
		cmocka_unit_test(an_open_keeps_its_flags_and_mode),
		unit_test_in_dir(a_removed_directory_has_no_name_and_can_be_left),
		cmocka_unit_test(a_string_is_read_up_to_its_end_and_no_further),
	};

	return cmocka_run_group_tests_name("watch_calls", tests, NULL, NULL);
}
