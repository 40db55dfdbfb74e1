/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the list of what is protected by default: the rows of the table, and what git's metadata adds. */
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/listing.h"
#include "base/path.h"
#include "base/setting.h"
#include "protect/envrc.h"
#include "protect/git.h"
#include "protect/nested.h"

#define BYTES_MAX (8 * 1024 * 1024)

/* Whether the root is the home directory, under any name. */
static bool is_home(const struct cordon_root *root)
{
	const char *home = getenv("HOME");
	struct stat a, b;

	return home && *home == '/' && stat(home, &a) == 0 && fstat(root->fd, &b) == 0 && a.st_dev == b.st_dev &&
	       a.st_ino == b.st_ino;
}

static bool parent_exists(const struct cordon_protect_collector *c, const char *path)
{
	char parent[CORDON_PATH_MAX];
	const char *base = cordon_path_base(path);

	return base == path || (cordon_copy(parent, sizeof(parent), path, (size_t)(base - path) - 1) == 0 &&
				cordon_protect_type_of(c, parent) != CORDON_PROTECT_MISSING);
}

static int collect_rows(struct cordon_protect_collector *c)
{
	bool home = is_home(c->root);
	size_t n;
	const struct cordon_protect_row *rows = cordon_protect_rows(&n);

	for (size_t i = 0; i < n; i++) {
		int r;

		if ((rows[i].when == CORDON_PROTECT_HOME && !home) ||
		    (rows[i].when == CORDON_PROTECT_IN_PARENT && !parent_exists(c, rows[i].path)))
			continue;
		r = cordon_protect_append(c, rows[i].path); /* the table has no duplicates */
		if (r < 0)
			return r;
	}
	return 0;
}

/* mise reads `mise.NAME.toml` if MISE_ENV contains NAME. The files for the names in our environment are protected
 * even if they are missing. */
static int collect_mise_named(struct cordon_protect_collector *c, const char *environments)
{
	static const char *const forms[][2] = {
		{ "mise.", ".toml" },	     { "mise.", ".local.toml" },	{ ".mise.", ".toml" },
		{ ".mise.", ".local.toml" }, { ".config/mise.", ".toml" },	{ ".config/mise.", ".local.toml" },
		{ "mise/config.", ".toml" }, { "mise/config.", ".local.toml" },
	};

	while (*(environments += strspn(environments, ","))) {
		size_t n = strcspn(environments, ",");
		char name[NAME_MAX + 32];

		for (size_t i = 0; n < NAME_MAX - 16 && !memchr(environments, '/', n) && i < CORDON_ARRAY_SIZE(forms);
		     i++) {
			int r;

			snprintf(name, sizeof(name), "%s%.*s%s", forms[i][0], (int)n, environments, forms[i][1]);
			r = cordon_protect_collect(c, "", name);
			if (r < 0)
				return r;
		}
		environments += n;
	}
	return 0;
}

static const char *const mise_files[] = { "mise.*.toml", ".mise.*.toml", NULL };
static const char *const mise_directory_files[] = { "config.*.toml", NULL };
static const char *const code_workspaces[] = { "*.code-workspace", NULL };

/* Collects the names of a directory that match a pattern. */
static int collect_present(struct cordon_protect_collector *c, const char *dir, const char *const *patterns)
{
	autofd int fd = cordon_names_lack(c->names, dir)
				? -ENOENT
				: cordon_open_beneath(c->root->fd, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CORDON_UNCLEARED struct cordon_listing listing;
	const struct dirent64 *entry;
	int r = fd < 0 ? cordon_protect_unread(c, dir, fd) : 0;

	cordon_listing_init(&listing, fd);
	for (size_t read = 0; r == 0 && fd >= 0 && (entry = cordon_listing_next(&listing)); read++) {
		/* An agent can put any number of names before the one that matters, in an earlier run. */
		if (read == CORDON_PROTECT_ROOT_ENTRIES_MAX)
			return -E2BIG;
		for (const char *const *pattern = patterns; r == 0 && *pattern; pattern++)
			if (fnmatch(*pattern, entry->d_name, 0) == 0)
				r = cordon_protect_collect(c, dir, entry->d_name);
	}
	return r;
}

static int collect_mise(struct cordon_protect_collector *c)
{
	const char *environments = getenv("MISE_ENV");
	int r = environments ? collect_mise_named(c, environments) : 0;

	if (r == 0 && !(cordon_names_lack_start(c->names, "mise.") && cordon_names_lack_start(c->names, ".mise.")))
		r = collect_present(c, "", mise_files);
	/* Other such files are protected if they exist: another shell may have another environment. */
	if (r == 0)
		r = collect_present(c, ".config", mise_files);
	return r < 0 ? r : collect_present(c, "mise", mise_directory_files);
}

/* A VS Code workspace file has settings and tasks. Those that exist are protected, and the one that bears the name of the
 * root: which other one a user opens is not known. */
static int collect_code_workspaces(struct cordon_protect_collector *c)
{
	const char *name = cordon_path_base(c->root->path);
	char own[NAME_MAX + 32];
	int r = 0;

	if (*name && strlen(name) < NAME_MAX - 16) {
		snprintf(own, sizeof(own), "%s.code-workspace", name);
		r = cordon_protect_collect(c, "", own);
	}
	return r == 0 && !cordon_names_lack_end(c->names, ".code-workspace") ? collect_present(c, "", code_workspaces)
									     : r;
}

int cordon_protect_defaults(const struct cordon_root *root, struct cordon_protect_list *ret_list,
			    struct cordon_error *err)
{
	return cordon_protect_defaults_among(root, NULL, ret_list, err);
}

static void begin(struct cordon_protect_collector *c, const struct cordon_root *root, struct cordon_names *names)
{
	*c = (struct cordon_protect_collector){
		.root = root,
		.names = names,
		.modules_left = CORDON_PROTECT_MODULES_MAX,
		.worktrees_left = CORDON_PROTECT_WORKTREES_MAX,
		.includes_left = CORDON_PROTECT_INCLUDES_MAX,
		.bytes_left = BYTES_MAX,
		.nested_left = CORDON_PROTECT_NESTED_MAX,
	};
}

/* Passes the list to the caller, or frees it when the collection ended with the error r. */
static int finish(struct cordon_protect_collector *c, int r, struct cordon_protect_list *ret_list,
		  struct cordon_error *err)
{
	cordon_protect_list_done(&c->git_dirs);
	if (r >= 0) {
		*ret_list = c->list;
		return 0;
	}
	cordon_protect_list_done(&c->list);
	if (r == -EACCES && c->closed) {
		(void)cordon_fail_errno(err, r, "cannot list what the host would execute in %s", c->closed);
		cordon_error_hint(err, "open it with chmod u+rx");
		free(c->closed);
		return r;
	}
	if (r != -E2BIG && r != -ENAMETOOLONG)
		return cordon_fail_errno(err, r, "cannot list what git would execute in %s", c->root->path);
	r = cordon_fail(
		err, -E2BIG, CORDON_KIND_LIMIT,
		"git's metadata and configuration for %s name more submodules, worktrees or files than can be protected",
		c->root->path);
	cordon_error_hint(err,
			  "clean up .git (git worktree prune), or start with %s and name what "
			  "matters with %s",
			  cordon_setting_name(CORDON_SETTING_NO_DEFAULT_PROTECT),
			  cordon_setting_name(CORDON_SETTING_PROTECT));
	return r;
}

int cordon_protect_git_dir(const struct cordon_root *root, const char *own, struct cordon_protect_list *ret_list,
			   struct cordon_error *err)
{
	struct cordon_protect_collector c;

	begin(&c, root, NULL);
	c.own = *own ? own : NULL;
	return finish(&c, cordon_protect_git_root(&c), ret_list, err);
}

int cordon_protect_defaults_among(const struct cordon_root *root, struct cordon_names *names,
				  struct cordon_protect_list *ret_list, struct cordon_error *err)
{
	struct cordon_protect_collector c;
	int r;

	begin(&c, root, names);
	r = collect_rows(&c);
	if (r == 0)
		r = collect_mise(&c);
	if (r == 0)
		r = collect_code_workspaces(&c);
	if (r == 0)
		r = cordon_protect_envrc(&c);
	if (r == 0)
		r = cordon_protect_git(&c);
	if (r == 0)
		r = cordon_protect_nested(&c);
	return finish(&c, r, ret_list, err);
}
