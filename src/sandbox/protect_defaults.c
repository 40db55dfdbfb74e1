/* SPDX-License-Identifier: Apache-2.0 */
/* What is protected without being asked for: files in the tree that the host executes later. */
#include <fcntl.h>
#include <sys/stat.h>

#include "sandbox/protect_defaults.h"

static const struct cordon_protect_row rows[] = {
	{ ".claude", "Claude Code: settings, hooks and commands", false },
	{ ".codex", "Codex: settings", false },
	{ ".cursor", "Cursor: settings and MCP servers", false },
	{ ".devcontainer", "editors that open development containers", false },
	{ ".envrc", "direnv, on entering the directory", false },
	{ ".gemini", "Gemini CLI: settings", false },
	{ ".husky", "git hooks managed by husky", false },
	{ ".idea", "JetBrains editors: run configurations", false },
	{ ".mcp.json", "agents: MCP servers to start", false },
	{ ".vscode/launch.json", "VS Code, on debugging", false },
	{ ".vscode/settings.json", "VS Code, on opening the folder", false },
	{ ".vscode/tasks.json", "VS Code, on opening the folder", false },
};
static const char *const git_paths[] = { ".git/config", ".git/config.worktree", ".git/hooks", ".git/info/attributes" };

const struct cordon_protect_row *cordon_protect_rows(size_t *ret_n)
{
	*ret_n = CORDON_ARRAY_SIZE(rows);
	return rows;
}

void cordon_protect_list_done(struct cordon_protect_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		free(list->paths[i]);
	free(list->paths);
	*list = (struct cordon_protect_list){ 0 };
}

static int add(struct cordon_protect_list *list, const char *path)
{
	char **bigger = realloc(list->paths, (list->n + 1) * sizeof(*bigger));

	if (!bigger)
		return -ENOMEM;
	list->paths = bigger;
	if (!(list->paths[list->n] = strdup(path)))
		return -ENOMEM;
	list->n++;
	return 0;
}

int cordon_protect_defaults(const struct cordon_root *root, struct cordon_protect_list *ret_list, struct cordon_error *err)
{
	struct cordon_protect_list list = { 0 };
	struct stat st;
	int r = 0;

	for (size_t i = 0; r == 0 && i < CORDON_ARRAY_SIZE(rows); i++)
		r = add(&list, rows[i].path);
	if (r == 0 && fstatat(root->fd, ".git", &st, AT_SYMLINK_NOFOLLOW) == 0) {
		if (!S_ISDIR(st.st_mode))
			r = add(&list, ".git");
		for (size_t i = 0; r == 0 && S_ISDIR(st.st_mode) && i < CORDON_ARRAY_SIZE(git_paths); i++)
			r = add(&list, git_paths[i]);
	}
	if (r < 0) {
		cordon_protect_list_done(&list);
		return cordon_fail_errno(err, r, "protected paths");
	}
	*ret_list = list;
	return 0;
}

int cordon_protect_defaults_add(struct cordon_policy *policy, struct cordon_error *err)
{
	struct cordon_protect_list list = { 0 };
	int r = cordon_protect_defaults(&policy->root, &list, err);

	for (size_t i = 0; r == 0 && i < list.n; i++)
		r = cordon_policy_add_protected(policy, list.paths[i], "protected by default", true, err);
	cordon_protect_list_done(&list);
	return r;
}
