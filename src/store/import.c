/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Imports a directory: a store of the original (import_store.c), or a plain repository, which becomes the template of a
 * new project. The template is a copy below state/, so later changes of the repository reach no workspace, and no agent
 * reaches the template.
 */
#include <stdarg.h>
#include <stdio.h>

#include "base/confirmed.h"
#include "base/dirs.h"
#include "base/io.h"
#include "base/path.h"
#include "base/resolve.h"
#include "base/text.h"
#include "protect/gitconfig.h"
#include "protect/secrets.h"
#include "store/import.h"

#define GIT_CONFIG_MAX ((size_t)1 << 20)

int cordon_import_note(json_t *notices, const char *fmt, ...)
{
	autobuf struct cordon_buf text = CORDON_BUF(16384);
	char raw[2048];
	va_list ap;

	if (json_array_size(notices) >= CORDON_NOTICES_MAX)
		return 0;
	va_start(ap, fmt);
	vsnprintf(raw, sizeof(raw), fmt, ap);
	va_end(ap);
	if (cordon_text_escape(&text, raw, strlen(raw)) < 0 ||
	    json_array_append_new(notices, json_string(text.data)) < 0)
		return -ENOMEM;
	return 0;
}

/* ---- what must not reach every tenant ---- */

static bool has_password(const char *url)
{
	const char *at = strstr(url, "://"), *end, *user;

	if (!at)
		return false;
	user = at + 3;
	end = user + strcspn(user, "/");
	at = memchr(user, '@', (size_t)(end - user));
	return at && memchr(user, ':', (size_t)(at - user));
}

static int find_credential(const struct cordon_gitconfig_entry *entry, void *data)
{
	(void)data;
	if (!entry->value)
		return 0;
	return cordon_streq(entry->key, "extraheader") || has_password(entry->value) || has_password(entry->subsection);
}

/* Every workspace gets a copy of the repository's configuration, so it must hold no credential. */
static int check_git(int dir_fd, struct cordon_error *err)
{
	autobuf struct cordon_buf config = CORDON_BUF(GIT_CONFIG_MAX);
	autofd int git = openat(dir_fd, ".git", CORDON_OPEN_DIR);
	struct stat st;
	int r;

	if (git < 0 && errno == ENOENT)
		return 0;
	if (git < 0 && (errno == ENOTDIR || errno == ELOOP)) {
		r = cordon_fail(err, -EINVAL, CORDON_KIND_CONFLICT,
				".git is a file or a link: the repository's objects lie elsewhere");
		cordon_error_hint(err, "import the main working tree, or a clone");
		return r;
	}
	if (git < 0)
		return cordon_fail_errno(err, -errno, "cannot open .git");
	if (fstatat(git, "objects/info/alternates", &st, AT_SYMLINK_NOFOLLOW) == 0) {
		r = cordon_fail(err, -EINVAL, CORDON_KIND_CONFLICT,
				"the repository borrows objects from another one (.git/objects/info/alternates)");
		cordon_error_hint(err, "import a clone that does not");
		return r;
	}
	r = cordon_read_file(git, "config", O_NOFOLLOW, &config, err);
	if (r == -ENOENT)
		return 0;
	if (r == 0 && cordon_gitconfig_parse(config.data ? config.data : "", config.len, find_credential, NULL)) {
		r = cordon_fail(err, -EACCES, CORDON_KIND_POLICY_DENIED,
				".git/config holds a password or token, which every workspace would get");
		cordon_error_hint(err,
				  "remove it ('git remote set-url'), and name the variable with the token in env_pass");
	}
	return r;
}

struct left_out {
	json_t *notices;
};

static bool leave_out(void *data, const char *path)
{
	const struct left_out *left = data;
	const char *kind;

	/* Names below .git are git's own. */
	if (cordon_path_within(path, ".git") || !(kind = cordon_secret(path)))
		return false;
	cordon_import_note(left->notices, "%s is left out: it looks like a secret (%s)", path, kind);
	return true;
}

/* ---- a repository ---- */

static int name_after(const char *dir, json_t *settings, struct cordon_error *err)
{
	const char *slash = strrchr(dir, '/');

	if (json_object_get(settings, "name"))
		return 0;
	if (!slash || !slash[1])
		return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "the project needs a name");
	return json_object_set_new(settings, "name", json_string(slash + 1)) < 0
		       ? cordon_fail(err, -EINVAL, CORDON_KIND_USAGE,
				     "the name of the directory is not valid UTF-8: give the project another")
		       : 0;
}

static int import_repository(const struct cordon_store *store, const char *dir, int dir_fd, const json_t *given,
			     json_t **ret_projects, json_t *notices, struct cordon_error *err)
{
	struct left_out left = { .notices = notices };
	const struct cordon_copy_bounds bounds = { CORDON_COPY_TREE, .leave_out = leave_out, .data = &left };
	char path[CORDON_FD_PATH_SIZE];
	const struct cordon_template template = { .dir = cordon_fd_path(dir_fd, path), .whole = &bounds };
	autoprojectrecord struct cordon_project_record project = { 0 };
	json_auto_t *settings = json_copy(
		(json_t *)(uintptr_t)given); /* a copy that we change; json_copy takes no const */
	json_t *shown;
	int r = settings ? name_after(dir, settings, err) : cordon_no_memory(err);

	if (r == 0)
		r = check_git(dir_fd, err);
	if (r == 0)
		r = cordon_project_create(store, settings, &template, &project, err);
	if (r < 0)
		return r;
	shown = cordon_project_json(&project);
	*ret_projects = shown ? json_pack("[o]", shown) : NULL;
	return *ret_projects ? 0 : cordon_no_memory(err);
}

/* INVARIANT: no link that an agent could have turned decides what is copied for every tenant. */
static int judge_way(const struct cordon_store *store, const char *dir, const char *path, struct cordon_error *err)
{
	char given[CORDON_PATH_MAX];
	int r = cordon_path_absolute(dir, given, err);

	return r < 0 ? r : cordon_confirmed_way(&store->home, given, NULL, path, err);
}

int cordon_project_import(const struct cordon_store *store, const char *dir, const json_t *settings,
			  json_t **ret_projects, json_t *notices, struct cordon_error *err)
{
	struct cordon_root root = { .fd = -1 };
	autofd int dir_fd = -1;
	autofd int projects = -1;
	int r = cordon_root_open(dir, &root, err);

	if (r < 0)
		return r;
	r = judge_way(store, dir, root.path, err);
	if (r == 0 &&
	    (cordon_path_within(root.path, store->home.path) || cordon_path_within(store->home.path, root.path)))
		r = cordon_fail(err, -EINVAL, CORDON_KIND_POLICY_DENIED, "%s %s cordon's own records (%s)", root.path,
				cordon_path_within(store->home.path, root.path) ? "holds" : "lies in", store->home.path);
	/* The descriptor of the root is O_PATH. */
	if (r == 0 && (dir_fd = openat(root.fd, ".", CORDON_OPEN_DIR)) < 0)
		r = cordon_fail_errno(err, -errno, "cannot open %s", dir);
	if (r == 0)
		r = cordon_import_is_store(dir_fd, &projects)
			    ? cordon_import_store(store, dir_fd, projects, settings, ret_projects, notices, err)
			    : import_repository(store, root.path, dir_fd, settings, ret_projects, notices, err);
	cordon_root_done(&root);
	return r;
}
