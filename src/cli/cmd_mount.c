/* SPDX-License-Identifier: Apache-2.0 */
/* cordon mount: makes links to workspace folders in a worker's directory. The links are a convenience. */
#include <fcntl.h>
#include <sys/stat.h>

#include "cli/commands.h"
#include "cli/links.h"
#include "cli/recipe_options.h"

#define NOTE "Links are a convenience and protect nothing; 'cordon run --workspace' holds the boundary"

static const struct cordon_option options[] = {
	CORDON_RECIPE_OPTIONS(CORDON_RECIPE_OF_FOLDERS),
	{ 0 },
};

static int report(struct cordon_cli *cli, const char *dir, const struct cordon_links *links)
{
	for (size_t i = 0; i < links->n; i++)
		cordon_cli_workspace_log(cli, "%s workspace folder: %s/%s -> %s",
					 links->items[i].state == CORDON_LINK_CREATED ? "Mounted" : "Already mounted",
					 dir, links->items[i].place, links->items[i].target);
	cordon_cli_workspace_log(cli, NOTE);
	if (!cli->json)
		return CORDON_EXIT_OK;
	return cordon_cli_print_json(cli, json_pack("{s:o, s:o, s:s}", "dir", cordon_cli_json_text(dir), "links",
						    cordon_links_json(links), "note", NOTE));
}

static int mount_folders(struct cordon_cli *cli, const struct cordon_manager *ws, const char *dir)
{
	struct cordon_links links CORDON_CLEANUP(cordon_links_done) = { 0 };
	struct cordon_error err = { 0 };
	autofd int fd = -1;
	int r = cordon_links_plan(ws, true, &links);

	if (r)
		return r;
	if (ws->disabled)
		cordon_manager_report_disabled(cli, ws->root.path);
	if (mkdir(dir, 0777) < 0 && errno != EEXIST)
		r = -errno;
	if (r == 0) {
		fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
		r = fd < 0 ? -errno : 0;
	}
	if (r < 0)
		cordon_fail_errno(&err, r, "cannot open directory %s", dir);
	else
		r = cordon_links_make(&links, fd, &err);
	return r < 0 ? cordon_cli_fail(cli, &err) : report(cli, dir, &links);
}

static int run(struct cordon_cli *cli, int argc, char **argv)
{
	return cordon_links_command(cli, argc, argv, mount_folders);
}

const struct cordon_command cordon_cmd_mount = {
	.name = "mount",
	.operands = "[FOLDERS] DIR",
	.summary = "link workspace folders into a worker's directory",
	.details = "Makes DIR/FOLDER a symbolic link to each folder, all or none; what is there already stays. DIR is made when\n"
		   "it is missing. The links are a convenience and protect nothing: 'cordon run --workspace' holds the\n"
		   "boundary. Without FOLDERS WORKSPACE_FOLDERS is read.\n",
	.options = options,
	.run = run,
};
