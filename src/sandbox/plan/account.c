/* SPDX-License-Identifier: Apache-2.0 */
/* Finds out who the user is: the name and the login shell. A static program has no NSS, so this file reads /etc/passwd
 * itself. */
#include <fcntl.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/io.h"
#include "base/path.h"
#include "sandbox/plan/plan.h"

#define PASSWD_MAX ((size_t)4 << 20)
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
