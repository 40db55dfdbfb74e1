/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Symbolic links to workspace folders in a worker's directory, for 'cordon mount' and 'cordon unmount'. They are a
 * convenience and protect nothing. The directory may have been prepared by an attacker: the code follows no link in it,
 * overwrites nothing, and removes only links with exactly the expected text and directories that have become empty.
 */
#ifndef CORDON_CLI_LINKS_H
#define CORDON_CLI_LINKS_H

#include "cli/manager.h"

typedef enum cordon_link_state {
	CORDON_LINK_PRESENT, /* it existed already */
	CORDON_LINK_CREATED,
	CORDON_LINK_ABSENT, /* there was nothing to remove */
	CORDON_LINK_REMOVED,
	CORDON_LINK_REFUSED, /* something else is in its place */
} cordon_link_state;

struct cordon_link {
	const char *folder; /* as written; borrowed from the workspace */
	char *place;	    /* path in the repository, and so in the directory */
	char *target;	    /* absolute */
	cordon_link_state state;
	size_t kept; /* how many of the parent directories of `place` existed before */
};

struct cordon_links {
	struct cordon_link *items;
	size_t n;
};

/* Makes one link for each folder that lies in no other folder of the list. With `existing` a folder that is missing or
 * leads outside is an error. Prints every error and returns 0 or an exit code. */
int cordon_links_plan(const struct cordon_manager *manager, bool existing, struct cordon_links *ret_links);
void cordon_links_done(struct cordon_links *links);

/* Makes the links that are missing: all of them or none. */
int cordon_links_make(struct cordon_links *links, int dir_fd, struct cordon_error *err);
/* Removes the links that are there, and parent directories that are then empty. Goes on after a failure. Returns
 * -EEXIST when something else is in the place of a link. */
int cordon_links_remove(struct cordon_links *links, int dir_fd, struct cordon_error *err);

/* The common part of 'mount' and 'unmount': parses options and operands ([FOLDERS] DIR) and calls `act` with DIR.
 * Returns an exit code. */
int cordon_links_command(struct cordon_cli *cli, int argc, char **argv,
			 int (*act)(struct cordon_cli *cli, const struct cordon_manager *ws, const char *dir));

/* Returns [{"folder","path","target","state"}]; "path" is relative to the directory. */
json_t *cordon_links_json(const struct cordon_links *links);

#endif
