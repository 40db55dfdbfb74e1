/* SPDX-License-Identifier: Apache-2.0 */
/* cordon unmount: removes the links that 'cordon mount' made, and nothing else. */
#include <fcntl.h>

#include "cli/commands.h"
#include "cli/links.h"
#include "cli/recipe_options.h"

static const struct cordon_option options[] = {
	CORDON_RECIPE_OPTIONS(CORDON_RECIPE_OF_FOLDERS),
	{ 0 },
};

static int report(struct cordon_cli *cli, const char *dir, const struct cordon_links *links)
{
	static const char *const words[] = {
		[CORDON_LINK_REMOVED] = "Unmounted",
		[CORDON_LINK_ABSENT] = "Not mounted",
	};

	for (size_t i = 0; i < links->n; i++) {
		const struct cordon_link *link = &links->items[i];

		if (link->state == CORDON_LINK_REMOVED || link->state == CORDON_LINK_ABSENT)
			cordon_cli_workspace_log(cli, "%s workspace folder: %s/%s", words[link->state], dir,
						 link->place);
		else
			cordon_cli_workspace_log(cli, "Left alone, because it is no link of ours: %s/%s", dir,
						 link->place);
	}
	if (!cli->json)
		return CORDON_EXIT_OK;
	return cordon_cli_print_json(cli, json_pack("{s:o, s:o}", "dir", cordon_cli_json_text(dir), "links",
						    cordon_links_json(links)));
}

static int unmount_folders(struct cordon_cli *cli, const struct cordon_manager *ws, const char *dir)
{
	struct cordon_links links CORDON_CLEANUP(cordon_links_done) = { 0 };
	struct cordon_error err = { 0 };
	autofd int fd = -1;
	int printed, r = cordon_links_plan(ws, false, &links);

	if (r)
		return r;
	if (ws->disabled)
		cordon_manager_report_disabled(cli, ws->root.path);
	fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0) {
		cordon_fail_errno(&err, -errno, "cannot open directory %s", dir);
		return cordon_cli_fail(cli, &err);
	}
	r = cordon_links_remove(&links, fd, &err);
	printed = report(cli, dir, &links);
	return r < 0 ? cordon_cli_fail(cli, &err) : printed;
}

static int run(struct cordon_cli *cli, int argc, char **argv)
{
	return cordon_links_command(cli, argc, argv, unmount_folders);
}

const struct cordon_command cordon_cmd_unmount = {
	.name = "unmount",
	.operands = "[FOLDERS] DIR",
	.summary = "remove the links that 'cordon mount' made",
	.details = "Removes only links that lead to the folders, then directories that have become empty; never data. A folder\n"
		   "need not exist any more. Without FOLDERS WORKSPACE_FOLDERS is read.\n",
	.options = options,
	.run = run,
};
