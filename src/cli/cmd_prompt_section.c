/* SPDX-License-Identifier: Apache-2.0 */
/* cordon prompt-section: prints a section in Markdown that describes a workspace to an agent. */
#include <stdio.h>

#include "base/path.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/manager.h"
#include "cli/recipe_options.h"
#include "config/prompt_section.h"
#include "policy/shares.h"

static const struct cordon_option options[] = {
	CORDON_RECIPE_OPTIONS(CORDON_RECIPE_OF_SECTION),
	CORDON_RECIPE_OPTION(CORDON_RECIPE_POLICY, "policy", CORDON_ARG_FILE, "FILE",
			     "describe the policy of a cordon.yaml or .json instead of folders"),
	{ 0 },
};

static int set(void *data, int key, const char *arg, struct cordon_error *err)
{
	return cordon_cli_set(data, key, arg, err);
}

static int print_section(struct cordon_cli *cli, const struct cordon_manager *ws)
{
	autobuf struct cordon_buf buf = CORDON_BUF(8u << 20);
	struct cordon_error err = { 0 };
	struct cordon_prompt_section section = { .mode = ws->mode,
						 .list = ws->list,
						 .folders = (const char *const *)ws->folders.items,
						 .n_folders = ws->folders.n };
	int r = 0;

	/* A section with the word ENABLED would be wrong. */
	if (ws->disabled)
		cordon_manager_report_disabled(cli, ws->root.path);
	else
		r = cordon_prompt_section(&section, &buf);
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

/* ---- a whole policy ---- */

static int add_item(struct cordon_buf *buf, const char *before, const char *name, const char *after)
{
	int r = cordon_buf_adds(buf, before);

	if (r == 0)
		r = cordon_prompt_name(buf, name);
	return r < 0 ? r : cordon_buf_adds(buf, after);
}

/* Lists the patterns of the policy or of one of its fences that have these rights. */
static int add_patterns(struct cordon_buf *buf, const struct cordon_policy *policy, cordon_access access,
			const char *title)
{
	size_t n = 0;
	int r = 0;

	for (size_t i = 0; r == 0 && i < policy->n_grants; i++) {
		if (policy->grants[i].access != access)
			continue;
		r = n++ ? 0 : cordon_buf_addf(buf, "%s:\n\n", title);
		if (r == 0)
			r = add_item(buf, "- `", cordon_pattern_text(policy->grants[i].pattern), "`\n");
	}
	return r == 0 && n ? cordon_buf_adds(buf, "\n") : r;
}

static int add_protected(struct cordon_buf *buf, const struct cordon_policy *policy)
{
	bool by_default = false;
	int r = cordon_buf_adds(buf, "Never change, create, rename or remove:\n\n");

	for (size_t i = 0; r == 0 && i < policy->n_protected; i++) {
		by_default |= policy->protected_paths[i].by_default;
		if (!policy->protected_paths[i].by_default)
			r = add_item(buf, "- `", policy->protected_paths[i].path, "`\n");
	}
	if (r == 0 && by_default)
		r = cordon_buf_adds(buf, "- what the host would execute later: git hooks and configuration, settings of "
					 "editors and agents\n");
	return r < 0 ? r : cordon_buf_adds(buf, "\n");
}

static int add_shares(struct cordon_buf *buf, const struct cordon_policy *policy)
{
	size_t n = 0;
	int r = 0;

	for (size_t i = 0; r == 0 && i < policy->n_shares; i++) {
		const struct cordon_policy_share *share = &policy->shares[i];

		if (share->kind == CORDON_SHARE_LINK)
			continue;
		r = n++ ? 0 : cordon_buf_adds(buf, "## Outside the Workspace\n\n");
		if (r == 0)
			r = add_item(buf, "- `", share->target ? share->target : "~",
				     share->kind == CORDON_SHARE_LAYER ? "`: what you write there is discarded\n"
				     : share->read_only		       ? "`: may be read\n"
								       : "`: may be written\n");
	}
	return r == 0 && n ? cordon_buf_adds(buf, "\n") : r;
}

static int write_policy(const struct cordon_policy *policy, struct cordon_buf *buf)
{
	bool strict = policy->mode == CORDON_MODE_STRICT;
	int r = cordon_buf_addf(
		buf,
		"# Workspace Sandboxing\n\n"
		"This iteration is running with workspace sandboxing ENABLED.\n\n"
		"**Mode**: %s\n\n"
		"## Workspace Rules\n\n%s%s",
		cordon_mode_name(policy->mode),
		strict ? "Everything that is not listed here will FAIL. Paths are relative to the root.\n\n"
		       : "What is not listed here is allowed in the root, and reported with a WARNING.\n\n",
		policy->read_only ? "Nothing may be written.\n\n" : "");

	if (r == 0 && !cordon_policy_has_scope(policy))
		r = cordon_buf_adds(buf, "The whole root may be read and written.\n\n");
	if (r == 0)
		r = add_patterns(buf, policy, CORDON_ACCESS_WRITE, policy->read_only ? "May be read" : "May be written");
	if (r == 0)
		r = add_patterns(buf, policy, CORDON_ACCESS_READ, "May be read");
	if (r == 0)
		r = add_patterns(buf, policy, CORDON_ACCESS_NONE, "Neither read nor written, whatever else is said");
	for (size_t i = 0; r == 0 && i < policy->n_fences; i++)
		r = add_patterns(buf, policy->fences[i], CORDON_ACCESS_WRITE,
				 "Nothing outside of these, whatever else is said");
	if (r == 0)
		r = add_protected(buf, policy);
	return r < 0 ? r : add_shares(buf, policy);
}

static int describe_policy(struct cordon_cli *cli, struct cordon_recipe *asked)
{
	autobuf struct cordon_buf buf = CORDON_BUF(8u << 20);
	struct cordon_error err = { 0 };
	int r = cordon_cli_compile(cli, asked, CORDON_RECIPE_ASKS);

	if (r)
		return r;
	r = write_policy(asked->policy, &buf);
	if (r < 0) {
		cordon_fail_errno(&err, r, "prompt section");
		return cordon_cli_fail(cli, &err);
	}
	if (cli->json)
		return cordon_cli_print_json(cli, json_pack("{s:b, s:s, s:s}", "enabled", true, "mode",
							    cordon_mode_name(asked->policy->mode), "section", buf.data));
	fwrite(buf.data, 1, buf.len, stdout);
	return CORDON_EXIT_OK;
}

static bool is_mode(const char *s)
{
	cordon_mode mode;

	return cordon_mode_parse(s, &mode, NULL) == 0;
}

static int run_with(struct cordon_cli *cli, struct cordon_recipe *asked, int argc, char **argv)
{
	struct cordon_manager ws;
	struct cordon_error err = { 0 };
	const char *folders = NULL;
	int first, r = cordon_cli_parse(cli, argc, argv, 0, set, asked, &first, &err);

	if (r != 0)
		return r > 0 ? CORDON_EXIT_OK : cordon_cli_fail(cli, &err);
	if (asked->policy_path || asked->profile_lists.n)
		return first < argc ? cordon_cli_usage(cli, "folders and a policy can't be described together")
				    : describe_policy(cli, asked);
	if (argc - first > 2)
		return cordon_cli_usage(cli, "a list of folders and a mode are expected, not %d arguments",
					argc - first);
	if (argc - first == 2 && !is_mode(argv[first + 1]))
		return cordon_cli_usage(cli, "MODE is strict or permissive, not %s", argv[first + 1]);
	/* A single argument is the list of folders, unless the variable or a preset has the folders and the argument is a mode. */
	if (argc - first == 2 ||
	    (argc - first == 1 && is_mode(argv[first]) && (asked->preset_name || getenv("WORKSPACE_FOLDERS"))))
		(void)cordon_recipe_set(asked, CORDON_RECIPE_MODE, argv[argc - 1], "MODE", &err);
	if (argc - first == 2 || (argc - first == 1 && !asked->values.where[CORDON_RECIPE_MODE]))
		folders = argv[first];
	r = cordon_manager_open(cli, asked, folders, &ws);
	if (r)
		return r;
	r = print_section(cli, &ws);
	cordon_manager_done(&ws);
	return r;
}

static int run(struct cordon_cli *cli, int argc, char **argv)
{
	struct cordon_recipe asked = { .folder_mode = CORDON_MODE_PERMISSIVE };
	int r = run_with(cli, &asked, argc, argv);

	cordon_recipe_done(&asked);
	return r;
}

const struct cordon_command cordon_cmd_prompt_section = {
	.name = "prompt-section",
	.operands = "[FOLDERS] [MODE]",
	.summary = "print the prompt section that tells an agent about its workspace",
	.details = "The section informs; what holds the boundary is 'cordon run'. MODE is strict or permissive. What is left\n"
		   "out is taken from WORKSPACE_FOLDERS and WORKSPACE_MODE; without either the mode is permissive. With --policy or\n"
		   "--profile the section describes what 'cordon run' with these options allows.\n",
	.options = options,
	.run = run,
};
