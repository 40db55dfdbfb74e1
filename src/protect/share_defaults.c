/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Default protection in a writable share. It depends on where the share lies on the host: ~/.config contains what
 * the desktop starts; .claude contains the state of an agent, which must be writable, and settings, which the next
 * run of that agent on the host obeys.
 */
#include <fcntl.h>
#include <sys/stat.h>

#include "base/path.h"
#include "protect/defaults.h"
#include "protect/homes.h"
#include "protect/links.h"
#include "protect/shares.h"

/*
 * Directories in which agents keep state and settings, and which names in them are executed or obeyed later:
 * settings, hooks, MCP servers, plugins, commands, instructions, and programs. The rest (sessions, histories,
 * caches) stays writable. docs/protected-by-default.md is the same list for people.
 */
static const struct {
	const char *dir;
	const char *const *names; /* NULL-terminated */
} agents[] = {
	{ ".claude", (const char *const[]){ "settings.json",
					    "settings.local.json",
					    "managed-settings.json",
					    ".config.json",
					    ".mcp.json",
					    "hooks",
					    "plugins",
					    "commands",
					    "agents",
					    "skills",
					    "output-styles",
					    "workflows",
					    "local",
					    "CLAUDE.md",
					    "rules",
					    "statusline.sh",
					    "subagent-statusline.sh",
					    "file-suggestion.sh",
					    "loop.md",
					    "scheduled-tasks",
					    "shell-snapshots",
					    "session-env",
					    NULL } },
	{ ".codex",
	  (const char *const[]){ "config.toml", "config.json", "config.yaml", "hooks.json", "hooks", "rules", "prompts",
				 "skills", "plugins", "agents", "AGENTS.md", "AGENTS.override.md", "instructions.md",
				 ".env", "bin", "packages", "shell_snapshots", "worktrees", NULL } },
	{ ".gemini", (const char *const[]){ "settings.json", "trustedFolders.json", ".env", "extensions", "hooks",
					    "commands", "policies", "agents", "skills", "GEMINI.md", "system.md",
					    "history", "bin", "tmp/bin", NULL } },
	{ ".config/opencode", (const char *const[]){ "opencode.json", "opencode.jsonc", "config.json", "plugin",
						     "plugins", "command", "commands", "agent", "agents", "mode",
						     "modes", "tool", "tools", "skill", "skills", "AGENTS.md", NULL } },
	{ ".local/share/opencode", (const char *const[]){ "bin", "mcp.json", "snapshot", "worktree", "repos", NULL } },
	{ ".factory", (const char *const[]){ "settings.json", "settings.local.json", "rules", "config.json", "mcp.json",
					     "hooks.json", "hooks", "commands", "droids", "skills", "plugins", "bin",
					     "AGENTS.md", NULL } },
	{ ".cursor", (const char *const[]){ "mcp.json", "hooks.json", "hooks", "cli-config.json", "rules", "commands",
					    "extensions", "agents", "skills", NULL } },
	{ ".kiro", (const char *const[]){ "settings", "hooks", "agents", "steering", "powers", NULL } },
	{ ".qwen", (const char *const[]){ "settings.json", "trustedFolders.json", "statusline-command.sh", ".env",
					  "extensions", "hooks", "commands", "agents", "skills", "QWEN.md", NULL } },
	{ ".roo", (const char *const[]){ "mcp.json", "rules", "commands", "skills", NULL } },
	{ ".windsurf", (const char *const[]){ "hooks.json", "hooks", "workflows", "rules", "mcp_config.json", NULL } },
	{ ".goose", (const char *const[]){ "config.yaml", "skills", "recipes", "hooks", NULL } },
	{ ".config/goose",
	  (const char *const[]){ "config.yaml", "permission.yaml", "prompts", "skills", "recipes", "hooks", NULL } },
	{ ".opencode",
	  (const char *const[]){ "bin", "plugin", "plugins", "command", "commands", "agent", "agents", "mode", "modes",
				 "skill", "skills", "tool", "tools", "opencode.json", "opencode.jsonc", NULL } },
	/* A repository's own directory. */
	{ ".git", (const char *const[]){ "config", "config.worktree", "hooks", "info/attributes", "commondir",
					 "modules", "worktrees", NULL } },
};

/* A share, and the policy that it is a part of. */
struct target {
	const struct cordon_policy *policy;
	struct cordon_policy_share *share;
};

static bool is_layered(const struct target *t, const char *path)
{
	char place[CORDON_PATH_MAX];

	if (cordon_path_join(t->share->source, path, place, sizeof(place)) < 0)
		return false;
	for (size_t i = 0; i < t->policy->n_shares; i++)
		if (t->policy->shares[i].kind == CORDON_SHARE_LAYER &&
		    cordon_path_within(place, t->policy->shares[i].source))
			return true;
	return false;
}

static int add(const struct target *t, const char *path, struct cordon_error *err)
{
	struct cordon_policy_share *share = t->share;

	if (is_layered(t, path))
		return 0;
	return cordon_policy_add_protected(share->policy, path, "protected by default", true, err);
}

static bool exists(const struct cordon_policy_share *share, const char *path)
{
	struct stat st;

	/* In a directory that an earlier run closed it may be there: the plan can't look at it either, and refuses. */
	return fstatat(share->policy->root.fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0 ||
	       (errno != ENOENT && errno != ENOTDIR);
}

/* The end of `path` that begins like `entry`: for .../.config/opencode/x and .config/opencode, the part from .config
 * on. */
static const char *tail_like(const char *path, const char *entry)
{
	for (const char *p = strchr(path, '/'); p; p = strchr(p + 1, '/'))
		if (p[1] && (cordon_path_within(p + 1, entry) || cordon_path_within(entry, p + 1)))
			return p + 1;
	return NULL;
}

static int refuse(const struct cordon_policy_share *share, const char *entry, struct cordon_error *err)
{
	cordon_fail(err, -EACCES, CORDON_KIND_POLICY_DENIED,
		    "%s can't be written: the host executes or obeys what lies in %s", share->where, entry);
	cordon_error_hint(err, "share it read-only (:ro)");
	return -EACCES;
}

/* Protects one path that the host obeys, relative to the directory where the list begins; `tail` is the share,
 * relative to the same directory. */
static int protect_entry(const struct target *t, const char *tail, const char *entry, struct cordon_error *err)
{
	const struct cordon_policy_share *share = t->share;
	const char *rest;

	if (cordon_path_within(tail, entry))
		return refuse(share, entry, err);
	if (!cordon_path_within(entry, tail))
		return 0;
	rest = entry + strlen(tail);
	return share->policy ? add(t, rest + strspn(rest, "/"), err) : 0;
}

/* Protects in a share that is an agent's directory, lies in one, or contains one in its last components. */
static int protect_agents(const struct target *t, struct cordon_error *err)
{
	const struct cordon_policy_share *share = t->share;

	for (size_t i = 0; i < CORDON_ARRAY_SIZE(agents); i++) {
		const char *tail = tail_like(share->source, agents[i].dir);

		if (!tail || (!cordon_path_within(tail, agents[i].dir) &&
			      !(share->policy && exists(share, agents[i].dir + strlen(tail) + 1))))
			continue; /* the run must be able to make .config/opencode */
		for (const char *const *name = agents[i].names; *name; name++) {
			char entry[CORDON_PATH_MAX];
			int r = cordon_path_join(agents[i].dir, *name, entry, sizeof(entry));

			if (r < 0 || (r = protect_entry(t, tail, entry, err)) < 0)
				return r;
		}
	}
	return 0;
}

static bool is_agent_dir(const char *path)
{
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(agents); i++)
		if (cordon_streq(path, agents[i].dir))
			return !cordon_streq(path, ".git");
	return false;
}

/* The home of a run is where its agent keeps state: there only the names that the agent obeys are protected, not its
 * whole directory. */
static int protect_agents_in_home(const struct target *t, struct cordon_error *err)
{
	const struct cordon_policy_share *share = t->share;

	for (size_t i = 0; i < CORDON_ARRAY_SIZE(agents); i++) {
		for (const char *const *name = agents[i].names; *name; name++) {
			char path[CORDON_PATH_MAX];
			int r = cordon_path_join(agents[i].dir, *name, path, sizeof(path));

			if (r < 0 || (exists(share, path) && (r = add(t, path, err)) < 0))
				return r;
		}
	}
	return 0;
}

/* Protects in a share that lies where a row of the table points to (.cargo), or contains it in its last components. */
static int protect_tails(const struct target *t, struct cordon_error *err)
{
	const struct cordon_policy_share *share = t->share;

	size_t n;
	const struct cordon_protect_row *rows = cordon_protect_rows(&n);

	for (size_t i = 0; i < n; i++) {
		const char *tail = tail_like(share->source, rows[i].path);
		int r = 0;

		if (tail && !is_agent_dir(rows[i].path) && rows[i].when != CORDON_PROTECT_HOME)
			r = protect_entry(t, tail, rows[i].path, err);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Protects the rows for the home directory, in a share that lies in it or contains it. */
static int protect_home_rows(const struct target *t, const char *home, struct cordon_error *err)
{
	const struct cordon_policy_share *share = t->share;
	char path[CORDON_PATH_MAX];
	size_t n;
	const struct cordon_protect_row *rows = cordon_protect_rows(&n);

	for (size_t i = 0; *home && !cordon_streq(home, share->source) && i < n; i++) {
		bool only_home = rows[i].when == CORDON_PROTECT_HOME;
		bool holds = cordon_path_within(home, share->source);
		int r = 0;

		if ((!only_home && !holds) || cordon_path_join(home, rows[i].path, path, sizeof(path)) < 0)
			continue;
		if (cordon_path_within(share->source, path)) {
			r = is_agent_dir(rows[i].path) ? 0 : refuse(share, path, err);
		} else if (share->policy && cordon_path_within(path, share->source)) {
			const char *rest = path + strlen(share->source) + 1;

			/* Only what exists: in a home further down in a share, the run must still be able to make
			 * missing names. */
			r = !holds || exists(share, rest) ? add(t, rest, err) : 0;
		}
		if (r < 0)
			return r;
	}
	return 0;
}

int cordon_protect_share(const struct cordon_policy *policy, struct cordon_policy_share *share, struct cordon_error *err)
{
	const struct target t = { policy, share };
	struct cordon_protect_list list = { 0 };
	char home[CORDON_PATH_MAX];
	bool of_the_run;
	int r;

	cordon_homes_user(home);
	of_the_run = share->home && !cordon_streq(share->source, home);
	if ((r = protect_home_rows(&t, home, err)) < 0 || (r = protect_tails(&t, err)) < 0 ||
	    (r = protect_agents(&t, err)) < 0 || !share->policy)
		return r;
	r = cordon_protect_defaults(&share->policy->root, &list, err);
	/* Runs fill a directory that is only their home; there, what the user put into it is protected. */
	for (size_t i = 0; r == 0 && i < list.n; i++)
		if (!of_the_run || (exists(share, list.paths[i]) && !is_agent_dir(list.paths[i])))
			r = add(&t, list.paths[i], err);
	cordon_protect_list_done(&list);
	if (r == 0 && of_the_run)
		r = protect_agents_in_home(&t, err);
	return r < 0 ? r : cordon_protect_links_add(share->policy, err);
}
