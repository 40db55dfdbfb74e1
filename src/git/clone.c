/* SPDX-License-Identifier: Apache-2.0 */
/* Clones a repository of somebody else, in a sandbox. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/dirs.h"
#include "base/path.h"
#include "base/program.h"
#include "base/text.h"
#include "git/clone.h"
#include "policy/shares.h"
#include "run/captured.h"

#define TEXT_MAX ((size_t)16 << 10) /* of what git says */
#define CLONE_TIMEOUT_MS ((uint64_t)3600 * 1000)
#define CLONE_MEMORY ((uint64_t)4 << 30)
#define AT "/clone" /* where git sees the new directory */

struct clone {
	const char *src;
	const char *protocol;	      /* the only one that git may use */
	char local[CORDON_PATH_MAX];  /* a source on this machine, canonical; else "" */
	char host[512];		      /* "name:port" of an address */
	char parent[CORDON_PATH_MAX]; /* of the destination */
	char stage[64];		      /* the name of the new directory in it */
	char scratch[CORDON_PATH_MAX];
	const char *name; /* of the destination in its parent */
	int parent_fd;
	bool staged;
};

/* ---- the source ---- */

static int refuse_source(const char *src, const char *why, const char *hint, struct cordon_error *err)
{
	cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "'%s' %s", src, why);
	cordon_error_hint(err, "%s", hint);
	return -EINVAL;
}

/* Finds the host and port of an address. Names and passwords in it are refused: git would store them. */
static int parse_address(struct clone *clone, const char *rest, const char *port, struct cordon_error *err)
{
	size_t n = strcspn(rest, "/?#");
	const char *at = memchr(rest, '@', n), *colon = rest[0] == '[' ? memmem(rest, n, "]:", 2) : memchr(rest, ':', n);

	if (at)
		return refuse_source(clone->src, "contains a name or password",
				     "clone it yourself with git, which asks your credential helper", err);
	if (!n || rest[0] == '-' || rest[0] == ':' || n >= sizeof(clone->host) - 16)
		return refuse_source(clone->src, "has no host", "write https://HOST/PATH", err);
	memcpy(clone->host, rest, n);
	if (snprintf(clone->host + n, sizeof(clone->host) - n, "%s%s%s", colon ? "" : ":", colon ? "" : port,
		     cordon_streq(clone->protocol, "git") ? "/tcp" : "") >= (int)(sizeof(clone->host) - n))
		return refuse_source(clone->src, "has no host", "write https://HOST/PATH", err);
	return 0;
}

static int use_directory(struct clone *clone, const char *path, struct cordon_error *err)
{
	struct stat st;

	if (!realpath(path, clone->local))
		return errno == ENOENT
			       ? cordon_fail(err, -ENOENT, CORDON_KIND_NOT_FOUND, "there is no directory %s", path)
			       : cordon_fail_errno(err, -errno, "cannot use %s", path);
	if (stat(clone->local, &st) < 0 || !S_ISDIR(st.st_mode))
		return cordon_fail(err, -ENOTDIR, CORDON_KIND_USAGE, "%s is not a directory", path);
	clone->protocol = "file";
	return 0;
}

static int judge_source(struct clone *clone, struct cordon_error *err)
{
	static const struct {
		const char *scheme, *port;
	} known[] = { { "https://", "443" }, { "http://", "80" }, { "git://", "9418" } };
	const char *src = clone->src;

	if (!*src || *src == '-' || !cordon_text_safe(src, strlen(src)))
		return refuse_source(src, "is not a source", "give an address or the path of a repository", err);
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(known); i++) {
		size_t n = strlen(known[i].scheme);

		if (strncmp(src, known[i].scheme, n) != 0)
			continue;
		clone->protocol = i == 0 ? "https" : i == 1 ? "http" : "git";
		return parse_address(clone, src + n, known[i].port, err);
	}
	if (strncmp(src, "file:///", 8) == 0)
		return use_directory(clone, src + 7, err);
	if (strncmp(src, "ssh://", 6) == 0 || (strchr(src, ':') && strcspn(src, ":") < strcspn(src, "/") &&
					       src[0] != '.' && !strstr(src, "::") && access(src, F_OK) < 0))
		return refuse_source(src, "needs your keys for ssh, which the sandbox of git does not get",
				     "clone it yourself with git", err);
	/* A name like ext::sh means a program that git starts. */
	if (strstr(src, "::") || strstr(src, "://"))
		return refuse_source(src, "is not a source that is cloned",
				     "use https://, http://, git://, file:/// or the path of a repository", err);
	return use_directory(clone, src, err);
}

/* ---- the destination ---- */

static bool is_empty_dir(int parent_fd, const char *name)
{
	int fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	size_t n = 0;

	if (!dir) {
		cordon_closep(&fd);
		return false;
	}
	while (n < 3 && readdir(dir))
		n++;
	closedir(dir);
	return n == 2;
}

static int judge_destination(struct clone *clone, const char *dst, struct cordon_error *err)
{
	char clean[CORDON_PATH_MAX], path[CORDON_PATH_MAX] = ".";
	size_t n = strlen(dst);
	const char *slash;
	struct stat st;

	while (n > 1 && dst[n - 1] == '/')
		n--;
	if (!n || cordon_copy(clean, sizeof(clean), dst, n) < 0)
		return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "'%s' is not a destination", dst);
	slash = strrchr(clean, '/');
	clone->name = dst + (slash ? (size_t)(slash - clean) + 1 : 0);
	if (slash && cordon_copy(path, sizeof(path), clean, slash == clean ? 1 : (size_t)(slash - clean)) < 0)
		return cordon_fail_errno(err, -ENAMETOOLONG, "%s", dst);
	clone->parent_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (clone->parent_fd < 0 || !realpath(path, clone->parent))
		return cordon_fail_errno(err, -errno, "cannot use the directory of %s", dst);
	if (cordon_streq(clean, ".") || cordon_streq(clean, "..") ||
	    (slash && (cordon_streq(slash, "/.") || cordon_streq(slash, "/.."))))
		return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "'%s' is not a new directory", dst);
	if (fstatat(clone->parent_fd, slash ? slash + 1 : clean, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    !is_empty_dir(clone->parent_fd, slash ? slash + 1 : clean)) {
		cordon_fail(err, -EEXIST, CORDON_KIND_CONFLICT, "%s exists and is not an empty directory", dst);
		cordon_error_hint(err, "choose another destination, or remove it");
		return -EEXIST;
	}
	return 0;
}

static int make_stage(struct clone *clone, struct cordon_error *err)
{
	char id[CORDON_UUID_SIZE];
	int r = cordon_uuid_new(id);

	if (r < 0)
		return cordon_fail_errno(err, r, "cannot make an id");
	snprintf(clone->stage, sizeof(clone->stage), ".cordon-clone-%s", id);
	if (mkdirat(clone->parent_fd, clone->stage, 0700) < 0)
		return cordon_fail_errno(err, -errno, "cannot make a directory in %s", clone->parent);
	clone->staged = true;
	return cordon_path_join(clone->parent, clone->stage, clone->scratch, sizeof(clone->scratch)) < 0
		       ? cordon_fail_errno(err, -ENAMETOOLONG, "%s", clone->parent)
		       : 0;
}

/* ---- git ---- */

static int make_policy(const struct clone *clone, struct cordon_policy **ret_policy, struct cordon_error *err)
{
	CORDON_CLEANUP(cordon_policy_freep) struct cordon_policy *policy = NULL;
	const struct cordon_share share = { .source = clone->local, .read_only = true };
	int r = cordon_policy_new(clone->scratch, &policy, err);

	if (r == 0)
		r = cordon_net_list_parse(&policy->net, clone->host, "the source", err);
	if (r == 0 && *clone->local)
		r = cordon_policy_add_share(policy, &share, false, AT, err);
	if (r == 0)
		*ret_policy = cordon_steal_ptr(&policy);
	return r;
}

/* The last line that git said. Errors escape it: a server may have written it. */
static const char *last_line(struct cordon_buf *text)
{
	const char *line;

	while (text->len && (text->data[text->len - 1] == '\n' || text->data[text->len - 1] == '\r'))
		text->data[--text->len] = '\0';
	line = text->len ? memrchr(text->data, '\n', text->len) : NULL;
	return !text->len ? "git said nothing" : line ? line + 1 : text->data;
}

static int run_git(const struct clone *clone, struct cordon_error *err)
{
	/* The home of the sandbox is empty, so no configuration of the user counts. */
	char allow[64] = "GIT_ALLOW_PROTOCOL=";
	const char *const env[] = { allow,
				    "GIT_CONFIG_NOSYSTEM=1",
				    "GIT_ATTR_NOSYSTEM=1",
				    "GIT_TERMINAL_PROMPT=0",
				    "GIT_ASKPASS=false",
				    "GIT_LFS_SKIP_SMUDGE=1",
				    "LC_ALL=C",
				    "GIT_CONFIG_COUNT=4",
				    "GIT_CONFIG_KEY_0=core.hooksPath",
				    "GIT_CONFIG_VALUE_0=/dev/null",
				    "GIT_CONFIG_KEY_1=safe.directory",
				    "GIT_CONFIG_VALUE_1=*",
				    "GIT_CONFIG_KEY_2=submodule.recurse",
				    "GIT_CONFIG_VALUE_2=false",
				    "GIT_CONFIG_KEY_3=gc.auto",
				    "GIT_CONFIG_VALUE_3=0" };
	const char *argv[] = { "git",
			       "clone",
			       "-q",
			       "--template=",
			       "--no-local", /* the clone of a path would borrow what its source borrows */
			       "--no-recurse-submodules",
			       "--",
			       *clone->local ? clone->local : clone->src,
			       (AT "/tree"),
			       NULL };
	CORDON_CLEANUP(cordon_policy_freep) struct cordon_policy *policy = NULL;
	struct cordon_buf text autobuf = CORDON_BUF(TEXT_MAX);
	struct cordon_captured end = { 0 };
	struct cordon_run_spec spec = { .argv = (char *const *)(uintptr_t)argv,
					.at = AT,
					.env = (char *const *)(uintptr_t)env,
					.n_env = CORDON_ARRAY_SIZE(env),
					.memory_bytes = CLONE_MEMORY,
					.pids = 512,
					.timeout_ms = CLONE_TIMEOUT_MS };
	int r = make_policy(clone, &policy, err);

	if (r < 0)
		return r;
	if (cordon_concat(allow, sizeof(allow), "GIT_ALLOW_PROTOCOL=", clone->protocol, (char *)NULL) < 0)
		return -ENAMETOOLONG;
	spec.policy = policy;
	spec.cwd = clone->scratch;
	spec.net = *clone->host ? CORDON_NET_HOST : CORDON_NET_NONE;
	r = cordon_run_captured(&spec, NULL, 0, NULL, &text, &end, err);
	if (r < 0)
		return r;
	if (end.error.code) {
		*err = end.error;
		return cordon_error_prefix(err, err->code, "cannot clone %s", clone->src);
	}
	if (end.state == CORDON_STATE_COMPLETED && end.own_exit == 0)
		return 0;
	return cordon_fail(err, -EIO, CORDON_KIND_IO, "cannot clone %s: %s", clone->src,
			   end.state == CORDON_STATE_TIMEOUT ? "it took longer than an hour" : last_line(&text));
}

/* The new tree gets its name in one step; a rename replaces an empty directory, and nothing else. */
static int publish(const struct clone *clone, const char *dst, struct cordon_error *err)
{
	autofd int stage = openat(clone->parent_fd, clone->stage, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	char name[CORDON_PATH_MAX];
	struct stat st;

	if (stage < 0 || fstatat(stage, "tree", &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode))
		return cordon_fail(err, -EIO, CORDON_KIND_IO, "git made no directory");
	if (cordon_copy(name, sizeof(name), clone->name, strcspn(clone->name, "/")) < 0)
		return cordon_fail_errno(err, -ENAMETOOLONG, "%s", dst);
	/* The directory of the sandbox is private; a clone has the mode that git gives. */
	if (renameat(stage, "tree", clone->parent_fd, name) < 0)
		return errno == ENOTEMPTY || errno == EEXIST || errno == ENOTDIR
			       ? cordon_fail(err, -EEXIST, CORDON_KIND_CONFLICT,
					     "%s was made by somebody else meanwhile", dst)
			       : cordon_fail_errno(err, -errno, "cannot make %s", dst);
	return 0;
}

int cordon_git_clone(const char *src, const char *dst, struct cordon_error *err)
{
	struct clone clone = { .src = src, .parent_fd = -1 };
	int r = judge_source(&clone, err);

	if (r == 0)
		r = judge_destination(&clone, dst, err);
	if (r == 0)
		r = make_stage(&clone, err);
	if (r == 0)
		r = run_git(&clone, err);
	if (r == 0)
		r = publish(&clone, dst, err);
	if (clone.staged)
		cordon_dirs_remove(clone.parent_fd, clone.stage, NULL);
	cordon_closep(&clone.parent_fd);
	return r;
}
