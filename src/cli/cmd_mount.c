/* SPDX-License-Identifier: Apache-2.0 */
/* cordon mount: links to workspace folders in a worker's directory, as a convenience. */
#include <fcntl.h>
#include <sys/stat.h>

#include "cli/commands.h"
#include "cli/links.h"

#define NOTE "Links are a convenience and protect nothing; 'cordon run --workspace' holds the boundary"

static const struct cordon_option options[] = {
	CORDON_SCOPE_ROOT_OPTION,
	{ 0 },
};

static int set(void *data, int key, const char *arg, struct cordon_error *err)
{
	return cordon_scope_set(data, key, arg, err);
}

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
		cordon_manager_say_disabled(cli, &ws->root);
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
	struct cordon_scope scope = { 0 };
	struct cordon_manager ws;
	struct cordon_error err = { 0 };
	int first, r = cordon_cli_parse(cli, argc, argv, 0, set, &scope, &first, &err);

	if (r != 0)
		return r > 0 ? CORDON_EXIT_OK : cordon_cli_fail(cli, &err);
	if (argc - first < 1 || argc - first > 2)
		return cordon_cli_usage(cli, "a list of folders and a directory are expected, not %d arguments",
					argc - first);
	r = cordon_manager_open(cli, &scope, argc - first == 2 ? argv[first] : NULL, &ws);
	if (r)
		return r;
	r = mount_folders(cli, &ws, argv[argc - 1]);
	cordon_manager_done(&ws);
	return r;
}

const struct cordon_command cordon_cmd_mount = {
	.name = "mount",
	.operands = "[FOLDERS] DIR",
	.summary = "link workspace folders into a worker's directory",
	.details =
		"Makes DIR/FOLDER a symbolic link to each folder, all or none; what is there already stays. DIR is made when\n"
		"it is missing. The links are a convenience and protect nothing: 'cordon run --workspace' holds the\n"
		"boundary. Without FOLDERS WORKSPACE_FOLDERS is read.\n",
	.options = options,
	.run = run,
};
