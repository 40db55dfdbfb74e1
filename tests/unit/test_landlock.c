/* SPDX-License-Identifier: Apache-2.0 */
/* Landlock: what each class of rights allows and what it refuses, for files, renames and scopes. */
#include "unit.h"

#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <termios.h>

#include "sandbox/inside/landlock.h"
#include "sandbox/plan/layers.h"

/* The tree of each test: rw and rw2 are writable, ro is readable, list can be listed, no is not granted. */
static int make_tree(void **state)
{
	if (unit_setup(state) < 0)
		return -1;
	unit_mkdir("rw");
	unit_mkdir("rw2");
	unit_mkdir("ro");
	unit_mkdir("list");
	unit_mkdir("no");
	unit_write("rw/file", "content");
	unit_write("ro/file", "content");
	unit_write("ro/single", "content");
	unit_write("list/file", "content");
	unit_write("no/file", "content");
	return 0;
}

static int allow(int ruleset, unsigned int abi, const char *path, enum cordon_landlock_class rights)
{
	autofd int fd = open(path, O_PATH | O_CLOEXEC);

	return fd < 0 ? -errno : cordon_landlock_allow(ruleset, abi, fd, rights);
}

static int enter(unsigned int abi)
{
	autofd int ruleset = cordon_landlock_begin(abi);

	if (ruleset < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -1;
	if (allow(ruleset, abi, "rw", CORDON_LANDLOCK_WRITE) < 0 ||
	    allow(ruleset, abi, "rw2", CORDON_LANDLOCK_WRITE) < 0 ||
	    allow(ruleset, abi, "ro", CORDON_LANDLOCK_READ) < 0 ||
	    allow(ruleset, abi, "list", CORDON_LANDLOCK_LIST) < 0 ||
	    allow(ruleset, abi, "/dev/null", CORDON_LANDLOCK_DEVICE) < 0 ||
	    allow(ruleset, abi, "/usr", CORDON_LANDLOCK_READ) < 0 ||
	    allow(ruleset, abi, "/etc", CORDON_LANDLOCK_READ) < 0)
		return -1;
	return cordon_landlock_enforce(ruleset, abi);
}

/* Runs the body in a child, inside the domain or without one, and returns its exit code. */
static int inside(unsigned int abi, int (*body)(const void *), const void *data)
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(abi && enter(abi) < 0 ? 250 : body(data));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* Does one operation, given as text "verb path [path]"; returns 0 or errno. */
static int operation(const void *data)
{
	char verb[16], a[64], b[64];
	int n = sscanf(data, "%15s %63s %63s", verb, a, b), r = -1;

	if (n < 2)
		return 255;
	if (cordon_streq(verb, "read"))
		r = open(a, O_RDONLY | O_CLOEXEC);
	else if (cordon_streq(verb, "list"))
		r = open(a, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	else if (cordon_streq(verb, "write"))
		r = open(a, O_WRONLY | O_CLOEXEC);
	else if (cordon_streq(verb, "create"))
		r = open(a, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	else if (cordon_streq(verb, "truncate"))
		r = truncate(a, 1);
	else if (cordon_streq(verb, "mkdir"))
		r = mkdir(a, 0700);
	else if (cordon_streq(verb, "symlink"))
		r = symlink("x", a);
	else if (cordon_streq(verb, "fifo"))
		r = mknod(a, S_IFIFO | 0600, 0);
	else if (cordon_streq(verb, "whiteout"))
		r = mknod(a, S_IFCHR | 0600, 0);
	else if (cordon_streq(verb, "unlink"))
		r = unlink(a);
	else if (cordon_streq(verb, "rmdir"))
		r = rmdir(a);
	else if (cordon_streq(verb, "rename") && n == 3)
		r = rename(a, b);
	else if (cordon_streq(verb, "link") && n == 3)
		r = link(a, b);
	else if (cordon_streq(verb, "run"))
		r = execl(a, a, (char *)NULL);
	else
		return 254;
	return r < 0 ? errno : 0;
}

static const struct {
	const char *text;
	int expected;
} operations[] = {
	/* Readable, not writable. */
	{ "read ro/file", 0 },
	{ "list ro", 0 },
	{ "run /usr/bin/true", 0 },
	{ "write ro/file", EACCES },
	{ "truncate ro/file", EACCES },
	{ "create ro/new", EACCES },
	{ "mkdir ro/new", EACCES },
	{ "symlink ro/new", EACCES },
	{ "fifo ro/new", EACCES },
	{ "unlink ro/file", EACCES },
	/* Listable. */
	{ "list list", 0 },
	{ "read list/file", EACCES },
	{ "create list/new", EACCES },
	/* Not granted. */
	{ "read no/file", EACCES },
	{ "list no", EACCES },
	{ "list .", EACCES },
	{ "truncate no/file", EACCES },
	{ "unlink no/file", EACCES },
	{ "create new", EACCES },
	/* Writable: every type of file can be made, except a device. */
	{ "read rw/file", 0 },
	{ "write rw/file", 0 },
	{ "truncate rw/file", 0 },
	{ "create rw/new", 0 },
	{ "mkdir rw/dir", 0 },
	{ "symlink rw/link", 0 },
	{ "fifo rw/fifo", 0 },
	{ "whiteout rw/white", EACCES },
	{ "link rw/file rw/hard", 0 },
	{ "rename rw/hard rw/harder", 0 },
	{ "unlink rw/harder", 0 },
	{ "rmdir rw/dir", 0 },
	/* Across directories: allowed if both are writable; not out of the domain or into it. */
	{ "rename rw/new rw2/new", 0 },
	{ "link rw/file rw2/hard", 0 },
	{ "rename rw/file ro/moved", EXDEV },
	{ "link rw/file ro/hard", EXDEV },
	{ "rename ro/single rw/stolen", EXDEV },
	{ "link ro/single rw/stolen", EXDEV },
	{ "rename no/file rw/stolen", EXDEV },
	{ "link no/file rw/stolen", EXDEV },
	/* A device node. */
	{ "write /dev/null", 0 },
	{ "read /dev/zero", EACCES },
};

static bool refused(int answer)
{
	return answer == EACCES || answer == EXDEV;
}

static void classes_allow_and_refuse(void **state)
{
	unsigned int abi = cordon_landlock_abi();

	(void)state;
	assert_in_range(abi, CORDON_LANDLOCK_ABI_SCOPES, CORDON_LANDLOCK_ABI_KNOWN);
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(operations); i++) {
		int answer = inside(abi, operation, operations[i].text);

		/* For a rename out of the domain Landlock returns EXDEV or EACCES; both are refusals. */
		if (operations[i].expected == EXDEV ? !refused(answer) : answer != operations[i].expected)
			fail_msg("%s: %s", operations[i].text, answer ? strerrorname_np(answer) : "succeeds");
	}
	assert_int_equal(access("ro/file", F_OK), 0);
	assert_int_equal(access("no/file", F_OK), 0);
	assert_int_equal(access("rw/stolen", F_OK), -1);
}

static void refusals_are_landlocks(void **state)
{
	(void)state;
	/* The control: each of them succeeds without Landlock. */
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(operations); i++) {
		if (operations[i].expected == 0)
			continue;
		assert_int_equal(unit_teardown(state), 0);
		assert_int_equal(make_tree(state), 0);
		if (inside(0, operation, operations[i].text) != 0)
			fail_msg("fails without Landlock too: %s", operations[i].text);
	}
}

static int terminal_size(const void *path)
{
	struct winsize size;
	int fd = open(path, O_RDWR | O_NOCTTY | O_CLOEXEC);

	if (fd < 0)
		return 255;
	return ioctl(fd, TIOCGWINSZ, &size) < 0 ? errno : 0;
}

/* Opens a new pty and allows its slave as `rights`; 0 or errno of an ioctl on it. */
static int pty_under(enum cordon_landlock_class rights)
{
	autofd int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	unsigned int abi = cordon_landlock_abi();
	char name[64];
	pid_t pid;
	int status;

	assert_true(master >= 0);
	assert_int_equal(grantpt(master) | unlockpt(master) | ptsname_r(master, name, sizeof(name)), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		int ruleset = cordon_landlock_begin(abi);

		if (allow(ruleset, abi, name, rights) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
		    cordon_landlock_enforce(ruleset, abi) < 0)
			_exit(250);
		_exit(terminal_size(name));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void only_the_device_class_allows_ioctl(void **state)
{
	(void)state;
	assert_int_equal(pty_under(CORDON_LANDLOCK_DEVICE), 0);
	assert_int_equal(pty_under(CORDON_LANDLOCK_WRITE), EACCES);
}

static void every_class_fits_files_and_directories_at_every_abi(void **state)
{
	static const char *const paths[] = { "rw", "rw/file", "/dev/null", "/dev" };

	(void)state;
	for (unsigned int abi = 1; abi <= cordon_landlock_abi(); abi++) {
		autofd int ruleset = cordon_landlock_begin(abi);

		assert_true(ruleset >= 0);
		assert_true(fcntl(ruleset, F_GETFD) & FD_CLOEXEC);
		for (size_t i = 0; i < CORDON_ARRAY_SIZE(paths); i++)
			for (int rights = 0; rights < CORDON_LANDLOCK__MAX; rights++)
				assert_int_equal(allow(ruleset, abi, paths[i], (enum cordon_landlock_class)rights), 0);
	}
}

static void older_abis_hold_what_they_know(void **state)
{
	(void)state;
	for (unsigned int abi = 1; abi <= cordon_landlock_abi(); abi++) {
		assert_int_equal(inside(abi, operation, "write ro/file"), EACCES);
		assert_int_equal(inside(abi, operation, "read no/file"), EACCES);
		assert_int_equal(inside(abi, operation, "read ro/file"), 0);
		/* LANDLOCK_ACCESS_FS_REFER exists since ABI 2, TRUNCATE since ABI 3. */
		assert_int_equal(inside(abi, operation, "truncate ro/file"), abi >= 3 ? EACCES : 0);
		assert_int_equal(inside(abi, operation, "link rw/file rw2/x"), abi >= 2 ? 0 : EXDEV);
		unlink("rw2/x");
	}
}

static int signal_parent(const void *pid)
{
	return kill(*(const pid_t *)pid, 0) < 0 ? errno : 0;
}

static int signal_child(const void *data)
{
	pid_t pid = fork();

	(void)data;
	if (pid == 0)
		for (;;)
			pause();
	return kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid ? 0 : 1;
}

static int connect_abstract(const void *data)
{
	const struct sockaddr_un *address = data;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	return connect(fd, (const struct sockaddr *)address, sizeof(*address)) < 0 ? errno : 0;
}

static void no_signal_and_no_abstract_socket_leaves_the_domain(void **state)
{
	unsigned int abi = cordon_landlock_abi();
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	autofd int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	pid_t self = getpid();

	(void)state;
	snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, "cordon-test-%d", (int)self);
	assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(listener, 4), 0);
	assert_int_equal(inside(0, connect_abstract, &address), 0);
	assert_int_equal(inside(0, signal_parent, &self), 0);
	assert_int_equal(inside(abi, connect_abstract, &address), EPERM);
	assert_int_equal(inside(abi, signal_parent, &self), EPERM);
	assert_int_equal(inside(abi, signal_child, NULL), 0);
}

static void bad_input_is_an_error(void **state)
{
	autofd int ruleset = cordon_landlock_begin(cordon_landlock_abi());

	(void)state;
	assert_int_equal(cordon_landlock_begin(0), -EOPNOTSUPP);
	assert_int_equal(cordon_landlock_allow(ruleset, 7, -1, CORDON_LANDLOCK_READ), -EBADF);
	assert_int_equal(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	assert_int_equal(cordon_landlock_enforce(-1, 7), -EBADF);
}

#define in_tree(name) cmocka_unit_test_setup_teardown(name, make_tree, unit_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		in_tree(classes_allow_and_refuse),
		in_tree(refusals_are_landlocks),
		in_tree(every_class_fits_files_and_directories_at_every_abi),
		in_tree(older_abis_hold_what_they_know),
		cmocka_unit_test(only_the_device_class_allows_ioctl),
		in_tree(no_signal_and_no_abstract_socket_leaves_the_domain),
		cmocka_unit_test(bad_input_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
