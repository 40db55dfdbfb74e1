/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds out who the user is: the name and the login shell from /etc/passwd, and the name and address that git puts into
 * commits. A static program has no NSS, so this file reads /etc/passwd itself. Of git's configuration only user.name and
 * user.email go inside: the rest may hold tokens, and names programs that git would execute.
 */
#include <fcntl.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/io.h"
#include "base/path.h"
#include "protect/gitconfig.h"
#include "sandbox/plan/plan.h"

#define PASSWD_MAX ((size_t)4 << 20)
#define GITCONFIG_MAX ((size_t)256 << 10)
#define IDENTITY_MAX 512 /* bytes of a name or an address */
#define DEFAULT_SHELL "/bin/sh"

/* Whether the agent sees a program of the host under the same path. */
static bool is_visible(const struct cordon_plan *plan, const struct cordon_policy *policy, const char *path)
{
	static const char *const system[] = { "/usr", "/bin", "/sbin" };

	if (plan->tier == CORDON_TIER_LANDLOCK)
		return true;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(system); i++)
		if (cordon_path_within(path, system[i]))
			return true;
	for (size_t i = 0; i < policy->n_shares; i++) {
		const struct cordon_policy_share *share = &policy->shares[i];

		if (share->target && cordon_streq(share->target, share->source) &&
		    cordon_path_within(path, share->source))
			return true;
	}
	return false;
}

/* The shell to name inside; an account that must not log in (nologin, false) gets the default. */
static const char *choose_shell(struct cordon_plan *plan, const struct cordon_policy *policy, const char *shell)
{
	const char *base = cordon_path_base(shell);

	if (shell[0] != '/' || strlen(shell) >= CORDON_PATH_MAX || strchr(shell, ':') || strchr(shell, '\n') ||
	    cordon_streq(base, "nologin") || cordon_streq(base, "false") || !is_visible(plan, policy, shell) ||
	    access(shell, X_OK) < 0)
		return DEFAULT_SHELL;
	return cordon_arena_strdup(plan->arena, shell);
}

/* Finds the line of our uid and puts a NUL at its end. */
static char *find_account(char *text, uid_t uid)
{
	char wanted[32];
	int n = snprintf(wanted, sizeof(wanted), ":x:%u:", uid);

	for (char *line = text, *next; line && *line; line = next) {
		char *end = strchr(line, '\n'), *name_end = strchr(line, ':');

		next = end ? end + 1 : NULL;
		if (!name_end || (end && name_end > end) || strncmp(name_end, wanted, (size_t)n) != 0)
			continue;
		if (end)
			*end = '\0';
		return line;
	}
	return NULL;
}

int cordon_plan_account(struct cordon_plan *plan, const struct cordon_plan_spec *spec)
{
	static const char usual[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
	autobuf struct cordon_buf text = CORDON_BUF(PASSWD_MAX);
	bool known = cordon_read_file(AT_FDCWD, "/etc/passwd", 0, &text, NULL) == 0 && text.data;
	const char *line = known ? find_account(text.data, plan->uid) : NULL;
	const char *shell = line ? strrchr(line, ':') + 1 : getenv("SHELL");
	size_t len = line ? strspn(line, usual) : 0;

	/* The name is "agent" when it is not there or holds unusual characters. */
	if (plan->uid == 0)
		plan->user = "root";
	else if (len && len < 33 && line[len] == ':')
		plan->user = cordon_arena_printf(plan->arena, "%.*s", (int)len, line);
	else
		plan->user = "agent";
	plan->shell = shell ? choose_shell(plan, spec->run->policy, shell) : DEFAULT_SHELL;
	return plan->user && plan->shell ? 0 : -ENOMEM;
}

/* What git's configuration says of the user; "" where nothing is said yet. */
struct git_user {
	char name[IDENTITY_MAX], email[IDENTITY_MAX];
};

static int on_entry(const struct cordon_gitconfig_entry *entry, void *data)
{
	struct git_user *user = data;
	char *to = cordon_streq(entry->key, "name")    ? user->name
		   : cordon_streq(entry->key, "email") ? user->email
						       : NULL;
	size_t n = entry->value ? strlen(entry->value) : 0;

	if (!to || !n || n >= IDENTITY_MAX || !cordon_streq(entry->section, "user") || *entry->subsection)
		return 0;
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)entry->value[i] < ' ' || entry->value[i] == 127)
			return 0;
	memcpy(to, entry->value, n + 1);
	return 0;
}

/* Takes from one file what is not known yet; true when everything is known. Links are followed, as git does. */
static bool read_gitconfig(const char *dir, const char *name, struct git_user *user)
{
	autobuf struct cordon_buf text = CORDON_BUF(GITCONFIG_MAX);
	struct git_user found = { 0 };
	char path[CORDON_PATH_MAX];

	if (dir[0] == '/' && cordon_path_join(dir, name, path, sizeof(path)) == 0 &&
	    cordon_read_file(AT_FDCWD, path, 0, &text, NULL) == 0 && text.len)
		cordon_gitconfig_parse(text.data, text.len, on_entry, &found);
	if (!*user->name)
		memcpy(user->name, found.name, sizeof(user->name));
	if (!*user->email)
		memcpy(user->email, found.email, sizeof(user->email));
	return *user->name && *user->email;
}

/* Reads the files in which git looks, the one that has the last word first. No include is followed. */
static void find_git_user(struct git_user *ret)
{
	const char *global = getenv("GIT_CONFIG_GLOBAL"), *home = getenv("HOME"), *xdg = getenv("XDG_CONFIG_HOME");

	if (global) {
		if (*global && read_gitconfig(global, "", ret))
			return;
	} else if (home) {
		if (read_gitconfig(home, ".gitconfig", ret))
			return;
		if (xdg && *xdg ? read_gitconfig(xdg, "git/config", ret)
				: read_gitconfig(home, ".config/git/config", ret))
			return;
	}
	read_gitconfig("/etc", "gitconfig", ret);
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

int cordon_plan_git_user(struct cordon_plan *plan, struct cordon_error *err)
{
	autobuf struct cordon_buf text = CORDON_BUF((size_t)4 * IDENTITY_MAX + 64);
	struct git_user user = { 0 };
	struct cordon_step *step;

	find_git_user(&user);
	if (!*user.name && !*user.email)
		return 0;
	if (cordon_buf_adds(&text, "[user]\n") < 0 || add_value(&text, "name", user.name) < 0 ||
	    add_value(&text, "email", user.email) < 0 ||
	    !(step = cordon_plan_step(plan, CORDON_STEP_FILE, "/etc/gitconfig")) ||
	    !(step->text = cordon_arena_strdup(plan->arena, text.data)))
		return cordon_fail_errno(err, -ENOMEM, "plan");
	step->text_len = text.len;
	step->mode = 0444;
	return 0;
}
