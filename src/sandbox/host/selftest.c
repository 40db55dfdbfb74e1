/* SPDX-License-Identifier: Apache-2.0 */
/* Starts a real sandbox on a directory of its own, and tests its protections from inside and from outside. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/dirs.h"
#include "base/io.h"
#include "base/path.h"
#include "sandbox/host/launch.h"
#include "sandbox/host/selftest.h"
#include "sandbox/inside/landlock.h"

#define CANARY "CORDON_SELFTEST_CANARY"
#define PROTECTED_TEXT "protected\n"

/* Each line has a promise, and a command that must succeed (yes) or fail (no). The script runs in the workspace; $1 is
 * a file of the host beside it. */
static const char script[] =
	"secret=$1\n"
	"yes() { n=$1; shift; if \"$@\" >/dev/null 2>&1; then echo \"ok $n\"; else echo \"FAIL $n\"; fi; }\n"
	"no() { n=$1; shift; if \"$@\" >/dev/null 2>&1; then echo \"FAIL $n\"; else echo \"ok $n\"; fi; }\n"
	"yes 'the workspace can be written' sh -c 'echo new >made'\n"
	"yes 'a protected file can be read' cat protected\n"
	"no 'a protected file cannot be written' sh -c 'echo x >protected'\n"
	"no 'a protected file cannot be renamed' mv protected other\n"
	"no 'its directory cannot be renamed' mv held elsewhere\n"
	"no 'a missing protected file cannot be made' sh -c 'echo x >absent'\n"
	"no 'files beside the workspace do not exist' test -e \"$secret\"\n"
	"no 'the system cannot be written' sh -c 'echo x >/usr/cordon-selftest'\n"
	"no 'kernel settings cannot be written' sh -c 'echo cordon >/proc/sys/kernel/hostname'\n"
	"no 'no other process tree is seen' test -e /proc/1/root/etc\n"
	"no 'the caller'\"'\"'s environment is not there' printenv " CANARY "\n"
	"no 'nothing can be mounted' mount -t tmpfs none /tmp\n"
	"no 'no user namespace can be made' unshare -U true\n"
	"yes 'no capability is held' grep -q '^CapBnd:.0*$' /proc/self/status\n"
	"yes 'privileges cannot be gained' grep -q '^NoNewPrivs:.1$' /proc/self/status\n"
	"yes 'system calls are filtered' grep -q '^Seccomp:.2$' /proc/self/status\n";
#define PROMISES 16

static void ignore(void *data, const struct cordon_event *event)
{
	(void)data, (void)event;
}

static int make_file(int dir, const char *name, const char *text)
{
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	int r = fd < 0 ? -errno : cordon_write_all(fd, text, strlen(text));

	if (fd >= 0)
		close(fd);
	return r;
}

/* Makes base/secret, and beside it base/workspace with the files to protect. */
static int prepare(int base, const char *path, struct cordon_policy **ret_policy, struct cordon_error *err)
{
	struct cordon_policy *policy = NULL;
	char workspace[CORDON_PATH_MAX];
	int r;

	if (mkdirat(base, "workspace", 0700) < 0 || mkdirat(base, "workspace/held", 0700) < 0)
		return cordon_fail_errno(err, -errno, "cannot prepare the self-test");
	if ((r = make_file(base, "secret", "secret\n")) < 0 ||
	    (r = make_file(base, "workspace/protected", PROTECTED_TEXT)) < 0 ||
	    (r = make_file(base, "workspace/held/file", PROTECTED_TEXT)) < 0 ||
	    (r = cordon_path_join(path, "workspace", workspace, sizeof(workspace))) < 0)
		return cordon_fail_errno(err, r, "cannot prepare the self-test");
	r = cordon_policy_new(workspace, &policy, err);
	if (r == 0)
		r = cordon_policy_protect(policy, "protected", err);
	if (r == 0)
		r = cordon_policy_protect(policy, "held/file", err);
	if (r == 0)
		r = cordon_policy_protect(policy, "absent", err);
	if (r < 0) {
		cordon_policy_free(policy);
		return r;
	}
	*ret_policy = policy;
	return 0;
}

/* Runs the plan with its standard output in our file `output`. */
static int run_captured(const struct cordon_plan *plan, const struct cordon_policy *policy, int output,
			struct cordon_error *err)
{
	const struct cordon_launch how = { .meter_fd = -1, .lock_fd = -1 };
	struct cordon_observer observer = { .event = ignore };
	struct cordon_result result = { 0 };
	struct cordon_child child;
	autofd int saved = fcntl(1, F_DUPFD_CLOEXEC, 3);
	int r;

	if (dup2(output, 1) < 0)
		return cordon_fail_errno(err, -errno, "cannot capture the self-test");
	r = cordon_launch(plan, policy, &observer, &how, &child, err);
	if (r == 0) {
		cordon_supervise(&child, &observer, &result);
		cordon_child_reap(&child);
		if (result.error.code) {
			*err = result.error;
			r = err->code;
		}
	}
	if (saved >= 0)
		dup2(saved, 1);
	else
		close(1);
	return r;
}

static void add(struct cordon_selftests *ret, const char *name, size_t n, bool ok)
{
	struct cordon_selftest *item;

	if (ret->n == CORDON_SELFTESTS_MAX)
		return;
	item = &ret->items[ret->n++];
	cordon_copy(item->name, sizeof(item->name), name, n < sizeof(item->name) ? n : sizeof(item->name) - 1);
	item->ok = ok;
	ret->ok &= ok;
}

static void collect(int output, struct cordon_selftests *ret)
{
	autobuf struct cordon_buf text = CORDON_BUF(64 << 10);

	lseek(output, 0, SEEK_SET);
	if (cordon_read_fd(output, "the self-test", &text, NULL) < 0 || !text.data)
		return;
	for (char *line = text.data; *line;) {
		size_t n = strcspn(line, "\n");

		if (strncmp(line, "ok ", 3) == 0)
			add(ret, line + 3, n - 3, true);
		else if (strncmp(line, "FAIL ", 5) == 0)
			add(ret, line + 5, n - 5, false);
		line += n + (line[n] == '\n');
	}
}

static void check_from_outside(int base, struct cordon_selftests *ret)
{
	static const char promise[] = "seen from outside, nothing protected has changed";
	autobuf struct cordon_buf text = CORDON_BUF(4096);
	bool ok = cordon_read_file(base, "workspace/protected", O_NOFOLLOW, &text, NULL) == 0 && text.data &&
		  cordon_streq(text.data, PROTECTED_TEXT) &&
		  faccessat(base, "workspace/held/file", F_OK, AT_SYMLINK_NOFOLLOW) == 0 &&
		  faccessat(base, "workspace/absent", F_OK, AT_SYMLINK_NOFOLLOW) < 0 &&
		  faccessat(base, "workspace/made", F_OK, AT_SYMLINK_NOFOLLOW) == 0;

	add(ret, promise, sizeof(promise) - 1, ok);
}

static int test(int base, const char *path, struct cordon_selftests *ret, struct cordon_error *err)
{
	char secret[CORDON_PATH_MAX], id[CORDON_UUID_SIZE], sh[] = "/bin/sh", c[] = "-c", name[] = "self-test";
	char text[sizeof(script)];
	char *argv[] = { sh, c, text, name, secret, NULL };
	struct cordon_run_spec run = { .argv = argv, .net = CORDON_NET_NONE };
	struct cordon_plan_spec spec = { .run = &run, .run_id = id, .landlock_abi = cordon_landlock_abi() };
	struct cordon_policy *policy = NULL;
	struct cordon_plan *plan = NULL;
	autofd int output = -1;
	int r = prepare(base, path, &policy, err);

	if (r < 0)
		return r;
	memcpy(text, script, sizeof(script));
	run.policy = policy;
	setenv(CANARY, "1", 1);
	output = memfd_create("cordon-selftest", MFD_CLOEXEC);
	r = output < 0 ? -errno : 0;
	if (r < 0 || (r = cordon_uuid_new(id)) < 0 || (r = cordon_path_join(path, "secret", secret, sizeof(secret))) < 0)
		cordon_fail_errno(err, r, "cannot prepare the self-test");
	if (r == 0)
		r = cordon_plan_build(&spec, &plan, err);
	if (r == 0)
		r = run_captured(plan, policy, output, err);
	unsetenv(CANARY);
	if (r == 0) {
		ret->ok = true;
		collect(output, ret);
		ret->ok &= ret->n == PROMISES;
		check_from_outside(base, ret);
	}
	cordon_plan_free(plan);
	cordon_policy_free(policy);
	return r;
}

/* Makes a directory that nobody else has, and opens it. */
static int make_base(char *ret_path, size_t size, struct cordon_error *err)
{
	char id[CORDON_UUID_SIZE];
	int fd, r = cordon_uuid_new(id);

	if (r < 0)
		return cordon_fail_errno(err, r, "cannot prepare the self-test");
	snprintf(ret_path, size, "/tmp/cordon-selftest-%s", id);
	if (mkdir(ret_path, 0700) < 0)
		return cordon_fail_errno(err, -errno, "cannot make %s", ret_path);
	fd = open(ret_path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0)
		return fd;
	r = cordon_fail_errno(err, -errno, "cannot open %s", ret_path);
	rmdir(ret_path);
	return r;
}

int cordon_selftest_run(struct cordon_selftests *ret, struct cordon_error *err)
{
	struct cordon_selftests found = { 0 };
	char path[64];
	autofd int base = make_base(path, sizeof(path), err);
	int r = base < 0 ? base : test(base, path, &found, err);

	if (base >= 0)
		cordon_dirs_remove(AT_FDCWD, path, NULL);
	if (r == 0)
		*ret = found;
	return r;
}

int cordon_setup_probe(struct cordon_error *ret_why)
{
	char path[64], id[CORDON_UUID_SIZE], sh[] = "/bin/sh", c[] = "-c", nothing[] = ":";
	char *argv[] = { sh, c, nothing, NULL };
	struct cordon_run_spec run = { .argv = argv, .net = CORDON_NET_HOST };
	struct cordon_plan_spec spec = { .run = &run, .run_id = id, .landlock_abi = cordon_landlock_abi() };
	struct cordon_policy *policy = NULL;
	struct cordon_plan *plan = NULL;
	struct cordon_error err = { 0 };
	autofd int base = make_base(path, sizeof(path), &err);
	autofd int output = memfd_create("cordon-selftest", MFD_CLOEXEC);
	int r = base < 0 || output < 0 ? -EIO : cordon_uuid_new(id);

	if (r == 0)
		r = cordon_policy_new(path, &policy, &err);
	run.policy = policy;
	/* Which layers the kernel has is judged elsewhere; here only what namespaces are for counts. */
	run.best_effort = true;
	if (r == 0)
		r = cordon_plan_build(&spec, &plan, &err);
	if (r == 0) {
		r = run_captured(plan, policy, output, &err);
		if (err.kind == CORDON_KIND_KERNEL_UNSUPPORTED || err.kind == CORDON_KIND_IO)
			*ret_why = err;
		else
			r = 0;
	} else {
		r = 0;
	}
	cordon_plan_free(plan);
	cordon_policy_free(policy);
	if (base >= 0)
		cordon_dirs_remove(AT_FDCWD, path, NULL);
	return r;
}
