/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds out whom git names as the author of commits on the host, and says so inside. Of git's configuration only
 * user.name and user.email go inside: the rest may hold tokens, and names programs that git would execute. Included files
 * are read as git reads them, within bounds, because people keep a name for work in one.
 */
#include <fcntl.h>
#include <stdio.h>
#include <strings.h>

#include "base/arena.h"
#include "base/io.h"
#include "base/path.h"
#include "policy/pattern.h"
#include "protect/gitconfig.h"
#include "sandbox/plan/plan.h"

#define GITCONFIG_MAX ((size_t)256 << 10)
#define INCLUDES_MAX 16
#define DEPTH_MAX 4
#define VALUE_MAX 512 /* bytes of a name or an address */

/* What git's configuration says of the user; "" where nothing is said. */
struct git_user {
	char name[VALUE_MAX], email[VALUE_MAX];
};

/* The file that is being read, and what is found in it. */
struct reading {
	const char *git_dir; /* of the root, which conditions of includes ask for */
	struct git_user found;
	char dir[CORDON_PATH_MAX]; /* of the file */
	unsigned int includes, depth;
};

static void read_file(struct reading *reading, const char *path);

/* Makes the path of a value absolute; ~/ is the home, and relative paths start at the directory of the file. */
static bool expand(const struct reading *reading, const char *text, char ret[static CORDON_PATH_MAX])
{
	const char *home = getenv("HOME");

	if (text[0] == '~')
		return text[1] == '/' && home && home[0] == '/' &&
		       cordon_path_join(home, text + 2, ret, CORDON_PATH_MAX) == 0;
	return *text && cordon_path_join(text[0] == '/' ? "" : reading->dir, text, ret, CORDON_PATH_MAX) == 0;
}

/* Whether the pattern of a condition (gitdir:~/work/) matches the git directory. Git's patterns have the grammar of ours,
 * as far as people use it; one that we can't read matches nothing. */
static bool matches(const struct reading *reading, const char *text, bool fold)
{
	char pattern[CORDON_PATH_MAX], whole[CORDON_PATH_MAX + 8], dir[CORDON_PATH_MAX];
	struct cordon_pattern *compiled = NULL;
	bool anchored = text[0] == '/' || strncmp(text, "~/", 2) == 0 || strncmp(text, "./", 2) == 0, found;
	size_t n = strlen(text);

	if (!n ||
	    (anchored ? !expand(reading, strncmp(text, "./", 2) == 0 ? text + 2 : text, pattern)
		      : cordon_copy(pattern, sizeof(pattern), text, n) < 0) ||
	    cordon_copy(dir, sizeof(dir), reading->git_dir, strlen(reading->git_dir)) < 0)
		return false;
	n = strlen(pattern);
	while (n && pattern[n - 1] == '/')
		pattern[--n] = '\0';
	snprintf(whole, sizeof(whole), "%s%s%s", anchored ? "" : "**/", pattern + strspn(pattern, "/"),
		 text[strlen(text) - 1] == '/' ? "/**" : "");
	for (char *c = whole; fold && *c; c++)
		*c = (char)(*c >= 'A' && *c <= 'Z' ? *c + ('a' - 'A') : *c);
	for (char *c = dir; fold && *c; c++)
		*c = (char)(*c >= 'A' && *c <= 'Z' ? *c + ('a' - 'A') : *c);
	if (cordon_pattern_compile(whole, &compiled, NULL) < 0)
		return false;
	found = cordon_pattern_match(compiled, dir + strspn(dir, "/"), NULL);
	cordon_pattern_free(compiled);
	return found;
}

static bool is_included(const struct reading *reading, const struct cordon_gitconfig_entry *entry)
{
	if (cordon_streq(entry->section, "include"))
		return !*entry->subsection;
	if (!cordon_streq(entry->section, "includeif"))
		return false;
	if (strncmp(entry->subsection, "gitdir:", 7) == 0)
		return matches(reading, entry->subsection + 7, false);
	return strncmp(entry->subsection, "gitdir/i:", 9) == 0 && matches(reading, entry->subsection + 9, true);
}

static void include(struct reading *reading, const char *value)
{
	char path[CORDON_PATH_MAX], dir[CORDON_PATH_MAX];

	if (reading->depth == DEPTH_MAX || reading->includes == INCLUDES_MAX || !expand(reading, value, path))
		return;
	reading->includes++;
	reading->depth++;
	memcpy(dir, reading->dir, sizeof(dir));
	read_file(reading, path);
	memcpy(reading->dir, dir, sizeof(dir));
	reading->depth--;
}

static int on_entry(const struct cordon_gitconfig_entry *entry, void *data)
{
	struct reading *reading = data;
	char *to = cordon_streq(entry->key, "name")    ? reading->found.name
		   : cordon_streq(entry->key, "email") ? reading->found.email
						       : NULL;
	size_t n = entry->value ? strlen(entry->value) : 0;

	if (n && cordon_streq(entry->key, "path") && is_included(reading, entry))
		include(reading, entry->value);
	if (!to || !n || n >= VALUE_MAX || !cordon_streq(entry->section, "user") || *entry->subsection)
		return 0;
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)entry->value[i] < ' ' || entry->value[i] == 127)
			return 0;
	memcpy(to, entry->value, n + 1);
	return 0;
}

/* Reads a regular file; links are followed, as git does. */
static void read_file(struct reading *reading, const char *path)
{
	autobuf struct cordon_buf text = CORDON_BUF(GITCONFIG_MAX);
	const char *base = cordon_path_base(path);

	if (path[0] != '/' || cordon_read_file(AT_FDCWD, path, 0, &text, NULL) < 0 || !text.len ||
	    cordon_copy(reading->dir, sizeof(reading->dir), path, (size_t)(base - path)) < 0)
		return;
	cordon_gitconfig_parse(text.data, text.len, on_entry, reading);
}

/* Takes from one file what is not known yet; true when everything is known. */
static bool take(struct git_user *user, const char *git_dir, const char *dir, const char *name)
{
	struct reading reading = { .git_dir = git_dir };
	char path[CORDON_PATH_MAX];

	if (cordon_path_join(dir, name, path, sizeof(path)) == 0)
		read_file(&reading, path);
	if (!*user->name)
		memcpy(user->name, reading.found.name, sizeof(user->name));
	if (!*user->email)
		memcpy(user->email, reading.found.email, sizeof(user->email));
	return *user->name && *user->email;
}

/* Reads the files in which git looks, the one that has the last word first. */
static void find(struct git_user *user, const char *git_dir)
{
	const char *global = getenv("GIT_CONFIG_GLOBAL"), *home = getenv("HOME"), *xdg = getenv("XDG_CONFIG_HOME");
	bool own = xdg && *xdg;

	if (global && *global && take(user, git_dir, global, ""))
		return;
	if (!global && home &&
	    (take(user, git_dir, home, ".gitconfig") ||
	     take(user, git_dir, own ? xdg : home, own ? "git/config" : ".config/git/config")))
		return;
	take(user, git_dir, "/etc", "gitconfig");
}

static int add_value(struct cordon_buf *text, const char *key, const char *value)
{
	int r = *value ? cordon_buf_addf(text, "\t%s = \"", key) : 0;

	for (const char *c = value; r == 0 && *c; c++) {
		if (*c == '"' || *c == '\\')
			r = cordon_buf_addc(text, '\\');
		if (r == 0)
			r = cordon_buf_addc(text, *c);
	}
	return r == 0 && *value ? cordon_buf_adds(text, "\"\n") : r;
}

bool cordon_plan_git_reads(const struct cordon_policy *policy)
{
	struct cordon_decision decision;

	cordon_policy_decide(policy, ".git/index.lock", CORDON_OP_WRITE, &decision);
	return decision.verdict == CORDON_DENY;
}

static int add_user(struct cordon_buf *text, const struct git_user *user)
{
	int r = *user->name || *user->email ? cordon_buf_adds(text, "[user]\n") : 0;

	if (r == 0)
		r = add_value(text, "name", user->name);
	return r < 0 ? r : add_value(text, "email", user->email);
}

int cordon_plan_git_user(struct cordon_plan *plan, const struct cordon_policy *policy, struct cordon_error *err)
{
	autobuf struct cordon_buf text = CORDON_BUF((size_t)4 * VALUE_MAX + 128);
	char git_dir[CORDON_PATH_MAX];
	struct git_user user = { 0 };
	struct cordon_step *step;

	if (cordon_path_join(plan->root, ".git", git_dir, sizeof(git_dir)) < 0)
		return 0;
	/* In a worktree or submodule git asks for the directory that .git leads to. */
	for (size_t i = 0; i < policy->n_shares; i++)
		if (policy->shares[i].git)
			cordon_copy(git_dir, sizeof(git_dir), policy->shares[i].source,
				    strlen(policy->shares[i].source));
	find(&user, git_dir);
	/* GIT_OPTIONAL_LOCKS does not reach all of git. */
	if (add_user(&text, &user) < 0 ||
	    (cordon_plan_git_reads(policy) && cordon_buf_adds(&text, "[diff]\n\tautoRefreshIndex = false\n") < 0))
		return cordon_fail_errno(err, -ENOMEM, "plan");
	if (!text.len)
		return 0;
	if (!(step = cordon_plan_step(plan, CORDON_STEP_FILE, "/etc/gitconfig")) ||
	    !(step->text = cordon_arena_strdup(plan->arena, text.data)))
		return cordon_fail_errno(err, -ENOMEM, "plan");
	step->text_len = text.len;
	step->mode = 0444;
	return 0;
}
