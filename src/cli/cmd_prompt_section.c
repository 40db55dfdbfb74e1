/* SPDX-License-Identifier: Apache-2.0 */
/* cordon prompt-section: prints a section in Markdown that describes a workspace to an agent. */
#include <stdio.h>

#include "base/path.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/manager.h"

static const struct cordon_option options[] = {
	CORDON_SCOPE_ROOT_OPTION,
	{ 0 },
};

static int set(void *data, int key, const char *arg, struct cordon_error *err)
{
	return cordon_scope_set(data, key, arg, err);
}

/* A folder's name is untrusted text in a prompt: it gets no line of its own and can't end the code span. */
static int add_name(struct cordon_buf *buf, const char *name)
{
	autobuf struct cordon_buf safe = CORDON_BUF(1u << 21);
	int r = cordon_text_escape(&safe, name, strlen(name));

	for (size_t i = 0; r == 0 && i < safe.len; i++)
		r = safe.data[i] == '`' ? cordon_buf_adds(buf, "\\x60") : cordon_buf_addc(buf, safe.data[i]);
	return r;
}

static const char *const strict_rule =
	"2. **Strict Mode**: File access outside workspace will FAIL. You must stay within workspace boundaries.\n\n";
static const char *const permissive_rule =
	"2. **Permissive Mode**: File access outside workspace is allowed but will be reported with a WARNING. You should "
	"stay within workspace boundaries.\n\n";

static int write_section(const struct cordon_manager *ws, struct cordon_buf *buf)
{
	int r = cordon_buf_addf(buf,
				"# Workspace Sandboxing\n\n"
				"This iteration is running with workspace sandboxing ENABLED.\n\n"
				"## Workspace Configuration\n\n"
				"**Mode**: %s\n"
				"**Allowed Folders**: ",
				cordon_mode_name(ws->mode));

	if (r == 0)
		r = add_name(buf, ws->list);
	if (r == 0)
		r = cordon_buf_addf(
			buf,
			"\n\n## Workspace Rules\n\n"
			"1. **File Access Constraints**: You should primarily work with files within the workspace folders "
			"listed above.\n\n"
			"%s"
			"3. **File Scope**: The story's fileScope has been automatically inferred from workspace contents. "
			"Focus your changes on these patterns.\n\n"
			"4. **Safety**: Do not attempt to access files outside the workspace unless absolutely necessary.\n\n"
			"## Workspace Folders\n\n",
			ws->mode == CORDON_MODE_STRICT ? strict_rule : permissive_rule);
	for (size_t i = 0; r == 0 && i < ws->folders.n; i++) {
		const char *folder = ws->folders.items[i];
		size_t len = strlen(folder);

		r = cordon_buf_adds(buf, "- `");
		if (r == 0)
			r = add_name(buf, folder);
		if (r == 0)
			r = cordon_buf_adds(buf, len && folder[len - 1] == '/' ? "`\n" : "/`\n");
	}
	return r;
}

static int print_section(struct cordon_cli *cli, const struct cordon_manager *ws)
{
	autobuf struct cordon_buf buf = CORDON_BUF(8u << 20);
	struct cordon_error err = { 0 };
	int r = 0;

	/* A section with the word ENABLED would be wrong. */
	if (ws->disabled)
		cordon_manager_report_disabled(cli, &ws->root);
	else
		r = write_section(ws, &buf);
	if (r < 0) {
		cordon_fail_errno(&err, r, "prompt section");
		return cordon_cli_fail(cli, &err);
	}
	if (cli->json)
		return cordon_cli_print_json(cli, json_pack("{s:b, s:s, s:s}", "enabled", !ws->disabled, "mode",
							    cordon_mode_name(ws->mode), "section",
							    buf.data ? buf.data : ""));
	if (buf.len)
		fwrite(buf.data, 1, buf.len, stdout);
	return CORDON_EXIT_OK;
}

static bool is_mode(const char *s)
{
	cordon_mode mode;

	return cordon_mode_parse(s, &mode, NULL) == 0;
}

static int run(struct cordon_cli *cli, int argc, char **argv)
{
	struct cordon_scope scope = { 0 };
	struct cordon_manager ws;
	struct cordon_error err = { 0 };
	const char *folders = NULL;
	int first, r = cordon_cli_parse(cli, argc, argv, 0, set, &scope, &first, &err);

	if (r != 0)
		return r > 0 ? CORDON_EXIT_OK : cordon_cli_fail(cli, &err);
	if (argc - first > 2)
		return cordon_cli_usage(cli, "a list of folders and a mode are expected, not %d arguments",
					argc - first);
	if (argc - first == 2 && !is_mode(argv[first + 1]))
		return cordon_cli_usage(cli, "MODE is strict or permissive, not %s", argv[first + 1]);
	/* A single argument is the list of folders, unless the variable has the folders and the argument is a mode. */
	if (argc - first == 2 || (argc - first == 1 && is_mode(argv[first]) && getenv("WORKSPACE_FOLDERS")))
		scope.mode = argv[argc - 1];
	if (argc - first == 2 || (argc - first == 1 && !scope.mode))
		folders = argv[first];
	r = cordon_manager_open(cli, &scope, folders, &ws);
	if (r)
		return r;
	r = print_section(cli, &ws);
	cordon_manager_done(&ws);
	return r;
}

const struct cordon_command cordon_cmd_prompt_section = {
	.name = "prompt-section",
	.operands = "[FOLDERS] [MODE]",
	.summary = "print the prompt section that tells an agent about its workspace",
	.details = "The section informs; what holds the boundary is 'cordon run'. MODE is strict or permissive. What is left\n"
		   "out is taken from WORKSPACE_FOLDERS and WORKSPACE_MODE; without either the mode is permissive.\n",
	.options = options,
	.run = run,
};
