/* SPDX-License-Identifier: Apache-2.0 */
/* Starts a loop as a process of its own, and stops one. */
#include <fcntl.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <sys/syscall.h>

#include "base/child.h"
#include "base/io.h"
#include "base/json.h"
#include "base/lock.h"
#include "base/program.h"
#include "loop/control.h"
#include "loop/internal.h"
#include "state/kinds.h"

#define PROGRAM "cordon"
#define FAILURE_MAX ((size_t)64 << 10)

int cordon_loop_prd_path(const char *name, char **ret_path, struct cordon_error *err)
{
	char *path = realpath(name, NULL);

	if (!path)
		return errno == ENOENT ? cordon_fail(err, -ENOENT, CORDON_KIND_NOT_FOUND, "there is no PRD %s", name)
				       : cordon_fail_errno(err, -errno, "%s", name);
	*ret_path = path;
	return 0;
}

int cordon_loop_id(const char *root, const char *const *prds, size_t n, char ret_id[static CORDON_LOOP_ID_SIZE],
		   struct cordon_error *err)
{
	if (sodium_init() < 0)
		return cordon_fail(err, -EIO, CORDON_KIND_INTERNAL, "libsodium does not work");
	cordon_loop_make_key(root, prds, n, ret_id);
	return 0;
}

int cordon_loop_dir_open(const struct cordon_home *home, const char *id, int *ret_fd, struct cordon_error *err)
{
	char path[64];
	int fd;

	if (strlen(id) != CORDON_LOOP_ID_SIZE - 1 || strspn(id, "0123456789abcdef") != CORDON_LOOP_ID_SIZE - 1)
		return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "the id of a loop has 32 hexadecimal digits");
	snprintf(path, sizeof(path), CORDON_LOOP_DIRS "/%s", id);
	fd = cordon_open_beneath(home->state_fd, path, CORDON_LOOP_OPEN_DIR);
	if (fd < 0)
		return fd == -ENOENT ? cordon_fail(err, fd, CORDON_KIND_NOT_FOUND, "there is no loop %s", id)
				     : cordon_fail_errno(err, fd, "cannot open the loop %s", id);
	*ret_fd = fd;
	return 0;
}

bool cordon_loop_is_running(int dir_fd)
{
	return cordon_state_kind_lives(CORDON_STATE_KIND_LOOPS, dir_fd);
}

/* The program is beside this one, or this one is a server in a directory of its own. */
static int find_program(char ret_path[static CORDON_PATH_MAX], struct cordon_error *err)
{
	static const char installed[] = CORDON_BINDIR "/" PROGRAM;
	int r = cordon_program_find(PROGRAM, ret_path, err);

	return r < 0 && access(installed, X_OK) == 0
		       ? cordon_copy(ret_path, CORDON_PATH_MAX, installed, sizeof(installed) - 1)
		       : r;
}

int cordon_loop_detach(const struct cordon_home *home, const char *id, char *const *argv, int *ret_fd, pid_t *ret_pid,
		       struct cordon_error *err)
{
	char program[CORDON_PATH_MAX], path[64];
	autofd int dir = -1;
	autofd int failures = -1;
	int r = find_program(program, err);

	snprintf(path, sizeof(path), CORDON_LOOP_DIRS "/%s", id);
	if (r == 0)
		r = cordon_home_subdir(home, path, &dir, err);
	if (r < 0)
		return r;
	if (cordon_loop_is_running(dir)) {
		cordon_fail(err, -EBUSY, CORDON_KIND_CONFLICT, "the loop %s runs already", id);
		cordon_error_hint(err, "look at it with loop_status, or stop it with loop_stop");
		return -EBUSY;
	}
	/* A new file: a process that has the old one does not write to it. */
	if ((unlinkat(dir, CORDON_LOOP_FAILURES, 0) < 0 && errno != ENOENT) ||
	    (failures = openat(dir, CORDON_LOOP_FAILURES, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600)) < 0)
		return cordon_fail_errno(err, -errno, "cannot start the loop");
	*ret_pid = cordon_child_detach(&(struct cordon_detach){ .error_fd = failures, .keep_cwd = true });
	if (*ret_pid == 0) {
		execve(program, argv, environ);
		_exit(127);
	}
	if (*ret_pid < 0)
		return cordon_fail_errno(err, (int)*ret_pid, "cannot start the loop");
	/* A process that has ended already has no descriptor: then the failure tells why. */
	*ret_fd = (int)syscall(SYS_pidfd_open, *ret_pid, 0);
	return 0;
}

int cordon_loop_stop(const struct cordon_home *home, const char *id, struct cordon_error *err)
{
	autofd int dir = -1;
	autofd int fd = -1;
	int r = cordon_loop_dir_open(home, id, &dir, err);

	if (r < 0 || !cordon_loop_is_running(dir))
		return r;
	fd = openat(dir, CORDON_LOOP_STOP, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	return fd < 0 ? cordon_fail_errno(err, -errno, "cannot stop the loop %s", id) : 0;
}

bool cordon_loop_failure(const struct cordon_home *home, const char *id, struct cordon_error *ret_err)
{
	autobuf struct cordon_buf text = CORDON_BUF(FAILURE_MAX);
	autofd int dir = -1;
	autofd int fd = -1;
	json_auto_t *said = NULL;
	const char *message, *hint, *where;

	if (cordon_loop_dir_open(home, id, &dir, NULL) < 0 ||
	    (fd = openat(dir, CORDON_LOOP_FAILURES, O_RDONLY | O_NOFOLLOW | O_CLOEXEC)) < 0 ||
	    cordon_read_fd(fd, CORDON_LOOP_FAILURES, &text, NULL) < 0 || !text.len)
		return false;
	said = json_loadb(text.data, text.len, JSON_DISABLE_EOF_CHECK, NULL);
	message = cordon_json_string(said, "message");
	hint = cordon_json_string(said, "hint");
	if (message)
		cordon_fail(ret_err, -EIO, cordon_kind_parse(cordon_json_string(said, "kind")), "%s", message);
	else
		cordon_fail(ret_err, -EIO, CORDON_KIND_INTERNAL, "%.*s", (int)strcspn(text.data, "\n"), text.data);
	where = cordon_json_string(said, "where");
	if (hint && *hint)
		cordon_error_hint(ret_err, "%s", hint);
	if (where)
		(void)cordon_copy(ret_err->where, sizeof(ret_err->where), where, strlen(where));
	return true;
}
