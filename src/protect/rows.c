/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of files outside of .git that the host executes.
 *
 * It contains what runs although nobody wants to run the project's own code: when a user opens a folder, enters a
 * directory, starts an agent, or gives any command of a package manager. It does not contain the project itself
 * (Makefile, package.json, tests, .venv, eslint.config.js), because a user who runs it knows that it is what the
 * agent wrote; nor instructions (AGENTS.md), which a policy may protect; nor what only remote machines run
 * (.github/workflows). docs/protected-by-default.md says more, and a test compares its table with this one.
 */
#include "protect/defaults.h"

static const struct cordon_protect_row rows[] = {
	/* Agents. */
	{ ".claude", "Claude Code: hooks, commands and permissions in its settings", CORDON_PROTECT_ALWAYS },
	{ ".mcp.json", "agents and editors: MCP servers to start", CORDON_PROTECT_ALWAYS },
	{ ".codex", "Codex: settings and MCP servers", CORDON_PROTECT_ALWAYS },
	{ ".cursor", "Cursor: hooks and MCP servers", CORDON_PROTECT_ALWAYS },
	{ ".factory", "Factory droids: hooks, commands and MCP servers", CORDON_PROTECT_ALWAYS },
	{ ".gemini", "Gemini CLI: settings and MCP servers", CORDON_PROTECT_ALWAYS },
	{ ".kiro", "Kiro: hooks and MCP servers", CORDON_PROTECT_ALWAYS },
	{ ".opencode", "opencode: plugins and commands", CORDON_PROTECT_ALWAYS },
	{ "opencode.json", "opencode: MCP servers and formatters to start", CORDON_PROTECT_ALWAYS },
	{ "opencode.jsonc", "the same", CORDON_PROTECT_ALWAYS },
	{ ".qwen", "Qwen Code: settings and MCP servers", CORDON_PROTECT_ALWAYS },
	{ ".roo", "Roo Code: MCP servers", CORDON_PROTECT_ALWAYS },
	{ ".windsurf", "Windsurf: hooks and workflows", CORDON_PROTECT_ALWAYS },
	{ ".aider.conf.yml", "aider: test and lint commands", CORDON_PROTECT_ALWAYS },
	{ ".goose", "goose: recipes and extensions to start", CORDON_PROTECT_ALWAYS },
	{ "crush.json", "Crush: MCP and language servers to start", CORDON_PROTECT_ALWAYS },
	{ ".crush.json", "the same", CORDON_PROTECT_ALWAYS },
	{ "agents.json", "agents: which ones there are and what they start", CORDON_PROTECT_ALWAYS },
	{ ".agent", "agents: skills, workflows and their scripts", CORDON_PROTECT_ALWAYS },
	{ ".github/hooks", "Copilot: hooks", CORDON_PROTECT_ALWAYS },

	/* Editors. */
	{ ".vscode/tasks.json", "VS Code: tasks, also on opening the folder", CORDON_PROTECT_ALWAYS },
	{ ".vscode/settings.json", "VS Code: paths of the programs that extensions run", CORDON_PROTECT_ALWAYS },
	{ ".vscode/launch.json", "VS Code: what the debugger starts", CORDON_PROTECT_ALWAYS },
	{ ".vscode/mcp.json", "VS Code: MCP servers to start", CORDON_PROTECT_ALWAYS },
	{ ".idea", "JetBrains editors: run configurations, watchers and start-up tasks", CORDON_PROTECT_ALWAYS },
	{ ".zed", "Zed: tasks, debuggers and language servers", CORDON_PROTECT_ALWAYS },
	{ ".helix", "Helix: language servers, formatters and debuggers to start", CORDON_PROTECT_ALWAYS },
	{ ".devcontainer", "editors that open development containers: commands on the host", CORDON_PROTECT_ALWAYS },
	{ ".devcontainer.json", "the same", CORDON_PROTECT_ALWAYS },
	{ ".nvim.lua", "Neovim with exrc", CORDON_PROTECT_ALWAYS },
	{ ".nvimrc", "the same", CORDON_PROTECT_ALWAYS },
	{ ".exrc", "Vim and Neovim with exrc", CORDON_PROTECT_ALWAYS },
	{ ".dir-locals.el", "Emacs, on visiting a file", CORDON_PROTECT_ALWAYS },
	{ ".gdbinit", "gdb, on starting here", CORDON_PROTECT_ALWAYS },
	{ ".lldbinit", "lldb, on starting here", CORDON_PROTECT_ALWAYS },

	/* Shell prompts and version managers. */
	{ ".envrc", "direnv, on entering the directory", CORDON_PROTECT_ALWAYS },
	{ "mise.toml", "mise, on entering the directory: environment, hooks", CORDON_PROTECT_ALWAYS },
	{ ".mise.toml", "the same", CORDON_PROTECT_ALWAYS },
	{ "mise.local.toml", "the same", CORDON_PROTECT_ALWAYS },
	{ ".mise.local.toml", "the same", CORDON_PROTECT_ALWAYS },
	{ ".mise", "the same", CORDON_PROTECT_ALWAYS },
	{ ".miserc.toml", "mise: which of its files count", CORDON_PROTECT_ALWAYS },
	{ ".config/mise.toml", "mise, on entering the directory", CORDON_PROTECT_ALWAYS },
	{ ".config/mise", "the same", CORDON_PROTECT_ALWAYS },
	{ ".tool-versions", "asdf and mise: which program a name starts", CORDON_PROTECT_ALWAYS },
	{ "rust-toolchain", "rustup: which compiler cargo starts", CORDON_PROTECT_ALWAYS },
	{ "rust-toolchain.toml", "the same", CORDON_PROTECT_ALWAYS },
	{ "pyvenv.cfg", "Python: makes the root itself a virtual environment", CORDON_PROTECT_ALWAYS },

	/* Git hooks that a hook manager keeps in the tree. */
	{ ".husky", "git hooks, through husky", CORDON_PROTECT_ALWAYS },
	{ ".pre-commit-config.yaml", "git hooks, through pre-commit", CORDON_PROTECT_ALWAYS },
	{ "lefthook.yml", "git hooks, through lefthook", CORDON_PROTECT_ALWAYS },
	{ "lefthook.yaml", "the same", CORDON_PROTECT_ALWAYS },
	{ "lefthook.toml", "the same", CORDON_PROTECT_ALWAYS },
	{ "lefthook.json", "the same", CORDON_PROTECT_ALWAYS },
	{ ".lefthook.yml", "the same", CORDON_PROTECT_ALWAYS },
	{ ".lefthook.yaml", "the same", CORDON_PROTECT_ALWAYS },
	{ ".lefthook.toml", "the same", CORDON_PROTECT_ALWAYS },
	{ ".lefthook.json", "the same", CORDON_PROTECT_ALWAYS },
	{ "lefthook-local.yml", "the same", CORDON_PROTECT_ALWAYS },
	{ "lefthook-local.yaml", "the same", CORDON_PROTECT_ALWAYS },
	{ "lefthook-local.toml", "the same", CORDON_PROTECT_ALWAYS },
	{ "lefthook-local.json", "the same", CORDON_PROTECT_ALWAYS },
	{ ".lefthook-local.yml", "the same", CORDON_PROTECT_ALWAYS },
	{ ".lefthook-local.yaml", "the same", CORDON_PROTECT_ALWAYS },
	{ ".lefthook-local.toml", "the same", CORDON_PROTECT_ALWAYS },
	{ ".lefthook-local.json", "the same", CORDON_PROTECT_ALWAYS },

	/* Other version control. Making one with `hg init` or `jj git init` in a root that had none is normal work,
	 * as with git. */
	{ ".hg/hgrc", "Mercurial: hooks, extensions and commands", CORDON_PROTECT_IN_PARENT },
	{ ".hg/hgrc-not-shared", "the same", CORDON_PROTECT_IN_PARENT },
	{ ".hg/sharedpath", "Mercurial: whose hgrc counts", CORDON_PROTECT_IN_PARENT },
	{ ".jj/repo/config.toml", "Jujutsu: editors, tools and fix commands", CORDON_PROTECT_IN_PARENT },
	{ ".jj/workspace-config.toml", "the same", CORDON_PROTECT_IN_PARENT },

	/* Package managers that start a program named in the tree before they do anything else. */
	{ ".npmrc", "npm and pnpm: shell, node options, registry", CORDON_PROTECT_ALWAYS },
	{ ".pnpmfile.cjs", "pnpm, on installing", CORDON_PROTECT_ALWAYS },
	{ ".yarnrc", "yarn 1: yarn-path", CORDON_PROTECT_ALWAYS },
	{ ".yarnrc.yml", "yarn: yarnPath and plugins", CORDON_PROTECT_ALWAYS },
	{ ".yarn/releases", "yarn itself", CORDON_PROTECT_IN_PARENT },
	{ ".yarn/plugins", "yarn, with every command", CORDON_PROTECT_IN_PARENT },
	{ "bunfig.toml", "bun: files loaded first", CORDON_PROTECT_ALWAYS },
	{ ".cargo/config.toml", "cargo: compiler wrappers, also from editors", CORDON_PROTECT_ALWAYS },
	{ ".cargo/config", "the same", CORDON_PROTECT_ALWAYS },

	/* Only when the root is the user's home directory: what a login, a shell or a session starts. */
	{ ".bashrc", "bash", CORDON_PROTECT_HOME },
	{ ".bash_profile", "bash, on login", CORDON_PROTECT_HOME },
	{ ".bash_login", "bash, on login", CORDON_PROTECT_HOME },
	{ ".bash_logout", "bash, on logout", CORDON_PROTECT_HOME },
	{ ".bash_aliases", "bash, through .bashrc", CORDON_PROTECT_HOME },
	{ ".profile", "shells, on login", CORDON_PROTECT_HOME },
	{ ".zshenv", "zsh", CORDON_PROTECT_HOME },
	{ ".zshrc", "zsh", CORDON_PROTECT_HOME },
	{ ".zprofile", "zsh, on login", CORDON_PROTECT_HOME },
	{ ".zlogin", "zsh, on login", CORDON_PROTECT_HOME },
	{ ".ssh", "ssh: commands in config, keys that may log in", CORDON_PROTECT_HOME },
	{ ".gitconfig", "git, in every repository", CORDON_PROTECT_HOME },
	{ ".config/git", "the same", CORDON_PROTECT_HOME_IN_PARENT },
	{ ".config/autostart", "the desktop session", CORDON_PROTECT_HOME_IN_PARENT },
	{ ".config/systemd", "the user's services", CORDON_PROTECT_HOME_IN_PARENT },
	{ ".config/fish", "fish", CORDON_PROTECT_HOME_IN_PARENT },
	{ ".local/bin", "programs on the path", CORDON_PROTECT_HOME_IN_PARENT },
	{ "bin", "programs on the path", CORDON_PROTECT_HOME },
};

const struct cordon_protect_row *cordon_protect_rows(size_t *ret_n)
{
	*ret_n = CORDON_ARRAY_SIZE(rows);
	return rows;
}
