/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs git: on the host with an environment and a configuration of ours, and in a sandbox for everything that parses what
 * a run left. INVARIANT: git on the host never reads the configuration or the hooks of a repository. It gets a git
 * directory of ours, which has links to the refs of the repository. INVARIANT: it writes to no other place than that
 * directory and the refs, logs and objects of the repository, whatever links an earlier run left in them: the kernel
 * refuses it (Landlock).
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/child.h"
#include "base/dirs.h"
#include "base/exit.h"
#include "base/io.h"
#include "base/path.h"
#include "git/internal.h"
#include "policy/shares.h"
#include "run/captured.h"
#include "sandbox/inside/landlock.h"

#define TEXT_MAX ((size_t)16 << 10) /* bytes of what git says about a failure */
#define SPARSE_MAX ((size_t)1 << 20)
#define STOP_MS 1000

/* What git is told wherever it runs. Nothing that a repository contains makes it start a program or open a
 * connection. */
static const char *const settings[][2] = {
	{ "core.hooksPath", "/dev/null" },
	{ "core.fsmonitor", "false" },
	{ "core.attributesFile", "/dev/null" },
	{ "core.excludesFile", "/dev/null" },
	{ "core.untrackedCache", "false" },
	{ "core.splitIndex", "false" },
	{ "core.sshCommand", "false" },
	{ "core.pager", "cat" },
	{ "core.editor", "false" },
	{ "core.protectHFS", "true" },
	{ "core.protectNTFS", "true" },
	{ "core.bigFileThreshold", "16m" },
	{ "core.alternateRefsCommand", "true" },
	{ "credential.helper", "" },
	{ "gc.auto", "0" },
	{ "index.sparse", "false" },
	{ "maintenance.auto", "false" },
	{ "pack.threads", "2" },
	{ "protocol.allow", "never" },
	{ "safe.directory", "*" },
	{ "submodule.recurse", "false" },
};

static const char *const environment[] = {
	"GIT_CONFIG_NOSYSTEM=1",
	"GIT_CONFIG_SYSTEM=/dev/null",
	"GIT_CONFIG_GLOBAL=/dev/null",
	"GIT_ATTR_NOSYSTEM=1",
	"GIT_NO_REPLACE_OBJECTS=1",
	"GIT_NO_LAZY_FETCH=1",
	"GIT_ALLOW_PROTOCOL=",
	"GIT_TERMINAL_PROMPT=0",
	"GIT_ASKPASS=false",
	"SSH_ASKPASS=false",
	"GIT_PAGER=cat",
	"GIT_EDITOR=false",
	"GIT_FLUSH=0",
	"GIT_COMMITTER_NAME=cordon",
	"GIT_COMMITTER_EMAIL=cordon@localhost",
	"LC_ALL=C",
	"HOME=/nonexistent",
};

/* A list of variables that is being made. */
struct env {
	char **items;
	size_t n, space;
	int code;
};

static void env_done(struct env *env)
{
	for (size_t i = 0; i < env->n; i++)
		free(env->items[i]);
	free(env->items);
}

static void env_add(struct env *env, const char *fmt, ...) CORDON_PRINTF(2, 3);
static void env_add(struct env *env, const char *fmt, ...)
{
	va_list args;

	if (env->n + 1 >= env->space) {
		size_t space = env->space ? 2 * env->space : 128;
		char **items = reallocarray(env->items, space, sizeof(*items));

		if (!items) {
			env->code = -ENOMEM;
			return;
		}
		env->items = items;
		env->space = space;
	}
	va_start(args, fmt);
	if (vasprintf(&env->items[env->n], fmt, args) < 0)
		env->code = -ENOMEM;
	else
		env->items[++env->n] = NULL;
	va_end(args);
}

/* Git takes a list, in which a colon ends a path, unless the path is quoted. */
static void env_add_alternate(struct env *env, const char *path)
{
	CORDON_UNCLEARED char quoted[2 * CORDON_PATH_MAX];
	size_t n = 0;

	for (; *path && n + 2 < sizeof(quoted); path++) {
		if (*path == '"' || *path == '\\')
			quoted[n++] = '\\';
		quoted[n++] = *path;
	}
	quoted[n] = '\0';
	env_add(env, "GIT_ALTERNATE_OBJECT_DIRECTORIES=\"%s\"", quoted);
}

static void env_fill(struct env *env)
{
	size_t n = CORDON_ARRAY_SIZE(settings);

	for (size_t i = 0; i < CORDON_ARRAY_SIZE(environment); i++)
		env_add(env, "%s", environment[i]);
	env_add(env, "GIT_CONFIG_COUNT=%zu", n);
	for (size_t i = 0; i < n; i++) {
		env_add(env, "GIT_CONFIG_KEY_%zu=%s", i, settings[i][0]);
		env_add(env, "GIT_CONFIG_VALUE_%zu=%s", i, settings[i][1]);
	}
}

/* ---- the git directory of ours for the host's refs ---- */

static int link_to(const struct cordon_git_repo *repo, int dir, const char *name, struct cordon_error *err)
{
	CORDON_UNCLEARED char path[CORDON_PATH_MAX];

	if (cordon_path_join(repo->common, name, path, sizeof(path)) < 0)
		return cordon_fail_errno(err, -ENAMETOOLONG, "%s", repo->common);
	return symlinkat(path, dir, name) < 0 ? cordon_fail_errno(err, -errno, "cannot link to %s", path) : 0;
}

static int copy_sparse(const struct cordon_git_repo *repo, int dir, struct cordon_error *err)
{
	autobuf struct cordon_buf text = CORDON_BUF(SPARSE_MAX);
	autofd int from = openat(repo->own_fd, "info", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), to = -1;
	int r = from < 0 ? -ENOENT : cordon_read_file(from, "sparse-checkout", O_NOFOLLOW, &text, err);

	if (r < 0 || !text.len)
		return r == -ENOENT ? 0 : r;
	if (mkdirat(dir, "info", 0700) < 0 || (to = openat(dir, "info", O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
		return cordon_fail_errno(err, -errno, "cannot make info");
	return cordon_write_file_unsynced(to, "sparse-checkout", 0600, text.data, text.len, err);
}

/* It is made anew whenever it is needed, so nobody waits for the disk. */
int cordon_git_shim_make(const struct cordon_git_repo *repo, int dir_fd, const char *name, struct cordon_error *err)
{
	static const char *const links[] = { "refs", "packed-refs", "logs", "shallow" };
	autobuf struct cordon_buf config = { 0 }, head = { 0 };
	autofd int dir = -1;
	struct stat st;
	int r = cordon_dirs_remove(dir_fd, name, err);

	if (r < 0)
		return r;
	if (mkdirat(dir_fd, name, 0700) < 0 ||
	    (dir = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) < 0)
		return cordon_fail_errno(err, -errno, "cannot make %s", name);
	if ((r = cordon_git_repo_config(repo, false, &config, err)) < 0 ||
	    (r = cordon_git_repo_head(repo, &head, err)) < 0 || (r = copy_sparse(repo, dir, err)) < 0)
		return r;
	for (size_t i = 0; r == 0 && i < CORDON_ARRAY_SIZE(links); i++)
		if (i == 0 || fstatat(repo->common_fd, links[i], &st, AT_SYMLINK_NOFOLLOW) == 0)
			r = link_to(repo, dir, links[i], err);
	/* The log of HEAD in the common directory is that of the main worktree; another one must not write to it. */
	if (r == 0 && (*repo->own					 ? cordon_buf_reset(&head),
		       cordon_buf_adds(&head, "ref: refs/cordon/none\n") : cordon_buf_addc(&head, '\n')) < 0)
		r = cordon_fail_errno(err, -ENOMEM, "cannot make %s", name);
	if (r == 0)
		r = cordon_write_file_unsynced(dir, "config", 0600, config.data, config.len, err);
	return r < 0 ? r : cordon_write_file_unsynced(dir, "HEAD", 0600, head.data, head.len, err);
}

/* ---- processes ---- */

static int make_memfd(const char *name)
{
	int fd = memfd_create(name, MFD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* Reads the whole memory file; of a text only the last bytes that fit. */
static int read_memfd(int fd, bool end, struct cordon_buf *ret, struct cordon_error *err)
{
	off_t size = lseek(fd, 0, SEEK_END);
	off_t from = end && size > (off_t)ret->max ? size - (off_t)ret->max : 0;

	if (size < 0 || lseek(fd, from, SEEK_SET) < 0)
		return cordon_fail_errno(err, -errno, "cannot read what git wrote");
	return cordon_read_fd(fd, "what git wrote", ret, err);
}

/* The last line that is not empty. */
static const char *last_line(struct cordon_buf *text)
{
	char *line;

	while (text->len && (text->data[text->len - 1] == '\n' || text->data[text->len - 1] == '\r'))
		text->data[--text->len] = '\0';
	line = text->len ? strrchr(text->data, '\n') : NULL;
	return !text->len ? "it said nothing" : line ? line + 1 : text->data;
}

/* ---- where git may write ---- */

static int allow(int ruleset, unsigned int abi, int at, const char *path, enum cordon_landlock_class rights)
{
	autofd int fd = openat(at, path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	/* What is missing can't be written to, and a link is not followed. */
	if (fd < 0)
		return errno == ENOENT || errno == ENOTDIR ? 0 : -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	return S_ISLNK(st.st_mode) ? 0 : cordon_landlock_allow(ruleset, abi, fd, rights);
}

/* The directory in which a path stands. */
static int allow_beside(int ruleset, unsigned int abi, const char *path)
{
	CORDON_UNCLEARED char dir[CORDON_PATH_MAX];
	const char *name = cordon_path_base(path);
	int r = cordon_copy(dir, sizeof(dir), path, (size_t)(name - path));

	return r < 0 ? r : allow(ruleset, abi, AT_FDCWD, dir, CORDON_LANDLOCK_WRITE);
}

/* A ruleset by which git reads everything and writes to its git directory, to what lies beside that, and to the refs, logs and
 * objects of the repository; with objects elsewhere, only beside those. */
static int make_ruleset(const struct cordon_git_call *call, unsigned int abi)
{
	static const char *const parts[] = { "refs", "logs", "objects" };
	autofd int ruleset = cordon_landlock_begin(abi);
	int r = ruleset < 0 ? ruleset : allow(ruleset, abi, AT_FDCWD, "/", CORDON_LANDLOCK_READ);

	if (r == 0)
		r = allow(ruleset, abi, AT_FDCWD, "/dev/null", CORDON_LANDLOCK_NODE);
	if (r == 0)
		r = allow_beside(ruleset, abi, call->git_dir);
	if (r == 0 && call->objects)
		r = allow_beside(ruleset, abi, call->objects);
	for (size_t i = 0; r == 0 && !call->objects && i < CORDON_ARRAY_SIZE(parts); i++)
		r = allow(ruleset, abi, call->repo->common_fd, parts[i], CORDON_LANDLOCK_WRITE);
	return r < 0 ? r : cordon_steal_fd(&ruleset);
}

static bool restrict_self(int ruleset, unsigned int abi)
{
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && cordon_landlock_enforce(ruleset, abi) == 0;
}

struct running {
	int ruleset;
	unsigned int abi;
	char **argv, **env;
};

static _Noreturn void exec_git(const struct cordon_git_call *call, const struct running *how)
{
	signal(SIGPIPE, SIG_DFL);
	if (call->held > 0 && fcntl(call->held, F_SETFD, 0) < 0)
		_exit(127);
	if (chdir(call->cwd ? call->cwd : call->repo->root->path) == 0 && restrict_self(how->ruleset, how->abi))
		execve(call->script ? "/bin/sh" : call->repo->git, how->argv, how->env);
	_exit(127);
}

static int report_status(const struct cordon_git_call *call, int status, int text_fd, struct cordon_error *err)
{
	autobuf struct cordon_buf text = CORDON_BUF(TEXT_MAX);

	if (WIFEXITED(status) && (WEXITSTATUS(status) == 0 || (call->may_differ && WEXITSTATUS(status) == 1)))
		return 0;
	read_memfd(text_fd, true, &text, NULL);
	return cordon_fail(err, -EIO, CORDON_KIND_IO, "git %s failed: %s", call->script ? "diff-tree" : call->argv[0],
			   last_line(&text));
}

static void env_fill_call(struct env *env, const struct cordon_git_call *call)
{
	env_fill(env);
	env_add(env, "PATH=%.*s:/usr/local/bin:/usr/bin:/bin",
		(int)(cordon_path_base(call->repo->git) - call->repo->git - 1), call->repo->git);
	env_add(env, "GIT_DIR=%s", call->git_dir);
	env_add(env, "GIT_WORK_TREE=%s", call->repo->root->path);
	env_add(env, "GIT_OBJECT_DIRECTORY=%s", call->objects ? call->objects : call->repo->objects[0]);
	if (call->objects)
		env_add_alternate(env, call->repo->objects[0]);
	if (call->index)
		env_add(env, "GIT_INDEX_FILE=%s", call->index);
}

/* The words of the command, an array to be freed. */
static const char **make_words(const struct cordon_git_call *call)
{
	const char **words;
	size_t n = 0;

	while (!call->script && call->argv[n])
		n++;
	words = calloc(n + 4, sizeof(*words));
	if (!words)
		return NULL;
	words[0] = call->script ? "sh" : "git";
	if (call->script) {
		words[1] = "-c";
		words[2] = call->script;
	}
	for (size_t i = 0; i < n; i++)
		words[i + 1] = call->argv[i];
	return words;
}

/* Starts git with these streams. */
static int start(const struct cordon_git_call *call, int in, int out, int text, pid_t *ret_pid, struct cordon_error *err)
{
	CORDON_CLEANUP(env_done) struct env env = { 0 };
	autofree const char **words = make_words(call);
	const int streams[] = { in, out, text };
	struct running how = { .abi = cordon_landlock_abi() };
	autofd int ruleset = make_ruleset(call, how.abi);

	if (ruleset < 0)
		return cordon_fail_errno(err, ruleset, "cannot keep git to its directory with Landlock");
	env_fill_call(&env, call);
	if (!words || in < 0 || out < 0 || text < 0 || env.code < 0)
		return cordon_fail_errno(err, env.code < 0 ? env.code : -EMFILE, "cannot run git");
	how.argv = (char **)(uintptr_t)words;
	how.env = env.items;
	how.ruleset = ruleset;
	*ret_pid = cordon_child_fork(&(struct cordon_fork){ .streams = streams, .file_bytes = CORDON_GIT_PACK_BYTES });
	if (*ret_pid < 0)
		return cordon_fail_errno(err, (int)*ret_pid, "cannot run git");
	if (*ret_pid == 0)
		exec_git(call, &how);
	return 0;
}

int cordon_git_call(const struct cordon_git_call *call, struct cordon_buf *ret_output, struct cordon_error *err)
{
	autofd int in = make_memfd("git-input"), out = make_memfd("git-output"), text = make_memfd("git-error");
	int status = 0, r = 0;
	pid_t pid;

	if (in >= 0 && call->input &&
	    ((r = cordon_write_all(in, call->input, call->n_input)) < 0 || lseek(in, 0, SEEK_SET) < 0))
		return cordon_fail_errno(err, r < 0 ? r : -errno, "cannot run git");
	r = start(call, in, out, text, &pid, err);
	if (r < 0)
		return r;
	r = cordon_child_await(pid, CORDON_GIT_TIMEOUT_MS, &status);
	if (r < 0)
		return cordon_fail_errno(err, r, "git %s", call->script ? "diff-tree" : call->argv[0]);
	r = report_status(call, status, text, err);
	if (r < 0 || !ret_output)
		return r;
	ret_output->max = call->max_output;
	return read_memfd(out, false, ret_output, err);
}

int cordon_git_start(const struct cordon_git_call *call, struct cordon_git_process *ret, struct cordon_error *err)
{
	autofd int null = open("/dev/null", O_WRONLY | O_CLOEXEC), ours = -1, theirs = -1;
	int pair[2], r;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return cordon_fail_errno(err, -errno, "cannot run git");
	ours = pair[0];
	theirs = pair[1];
	r = start(call, theirs, theirs, null, &ret->pid, err);
	if (r == 0)
		ret->fd = cordon_steal_fd(&ours);
	return r;
}

void cordon_git_stop(struct cordon_git_process *process)
{
	int status;

	if (process->fd < 0)
		return;
	/* It ends when nobody can ask any more; another process of ours may have a copy of the descriptor. */
	(void)shutdown(process->fd, SHUT_RDWR);
	cordon_closep(&process->fd);
	(void)cordon_child_await(process->pid, STOP_MS, &status);
}

/* ---- the sandbox ---- */

static int make_policy(const struct cordon_git_sandbox *ask, struct cordon_policy **ret_policy, struct cordon_error *err)
{
	CORDON_CLEANUP(cordon_policy_freep) struct cordon_policy *policy = NULL;
	int r = cordon_policy_new(ask->scratch, &policy, err);

	for (size_t i = 0; r == 0 && i < ask->n_objects; i++) {
		char target[64];
		struct cordon_share share = {
			.source = ask->objects[i], .target = target, .read_only = true, .own = true
		};

		snprintf(target, sizeof(target), "/objects/%zu", i);
		r = cordon_policy_add_share(policy, &share, false, "/q", err);
	}
	if (r == 0)
		*ret_policy = cordon_steal_ptr(&policy);
	return r;
}

/* Runs the script. Its state is that of a home of its own, because the run is a part of taking over, and not one of the
 * user's. */
static int run_script(const struct cordon_git_sandbox *ask, const struct env *env, int text_fd,
		      struct cordon_captured *ret_end, struct cordon_error *err)
{
	char *const argv[] = { (char *)(uintptr_t) "/bin/sh", (char *)(uintptr_t) "-c", (char *)(uintptr_t)ask->script,
			       NULL };
	CORDON_CLEANUP(cordon_policy_freep) struct cordon_policy *policy = NULL;
	CORDON_UNCLEARED char home[CORDON_PATH_MAX];
	const int streams[] = { -1, -1, text_fd };
	struct cordon_run_spec spec = { .argv = argv,
					.at = "/q",
					.cwd = ask->scratch,
					.env = env->items,
					.n_env = env->n,
					.net = CORDON_NET_NONE,
					.memory_bytes = CORDON_GIT_MEMORY,
					.pids = 256,
					.timeout_ms = CORDON_GIT_TIMEOUT_MS,
					.grace_ms = 1 };
	struct cordon_capture how = { .streams = streams, .home = home, .file_bytes = CORDON_GIT_PACK_BYTES };
	int r;

	if (cordon_concat(home, sizeof(home), ask->scratch, "-home", (char *)NULL) < 0 ||
	    (mkdir(home, 0700) < 0 && errno != EEXIST))
		return cordon_fail_errno(err, -errno, "cannot make %s", home);
	r = make_policy(ask, &policy, err);
	if (r < 0)
		return r;
	spec.policy = policy;
	r = cordon_run_apart(&spec, &how, ret_end, err);
	if (r == 0 && ret_end->error.code)
		*err = ret_end->error;
	if (r == 0 && ret_end->state == CORDON_STATE_TIMEOUT)
		cordon_fail(err, -ETIME, CORDON_KIND_LIMIT, "it took longer than %d s",
			    (int)(CORDON_GIT_TIMEOUT_MS / 1000));
	if (r == 0 && ret_end->hit_memory)
		cordon_fail(err, -ENOMEM, CORDON_KIND_LIMIT, "it needs more memory than taking over may use");
	return r;
}

int cordon_git_sandbox(const struct cordon_git_sandbox *ask, int *ret_status, struct cordon_buf *ret_text,
		       struct cordon_error *err)
{
	struct cordon_captured end = { .own_exit = CORDON_EXIT_REFUSED };
	CORDON_CLEANUP(env_done) struct env env = { 0 };
	autofd int text = make_memfd("git-error");
	struct cordon_error own = { 0 };
	int r;

	env_fill(&env);
	if (text < 0 || env.code < 0)
		return cordon_fail_errno(err, env.code < 0 ? env.code : -EMFILE, "cannot start a sandbox");
	(void)run_script(ask, &env, text, &end, &own);
	if (own.code)
		dprintf(text, "%s\n", own.message);
	ret_text->max = TEXT_MAX;
	r = read_memfd(text, true, ret_text, err);
	*ret_status = end.own_exit;
	return r;
}
