/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The seed's "mounts": symbolic links to workspace folders in a worker's directory. They are a convenience and protect
 * nothing. The directory may have been prepared by somebody hostile: nothing in it is followed, overwritten or
 * removed but links of exactly the text that belongs there, and directories that have become empty.
 */
#ifndef CORDON_CLI_LINKS_H
#define CORDON_CLI_LINKS_H

#include "cli/manager.h"

typedef enum cordon_link_state {
	CORDON_LINK_PRESENT, /* was there already */
	CORDON_LINK_CREATED,
	CORDON_LINK_ABSENT, /* was not there to be removed */
	CORDON_LINK_REMOVED,
	CORDON_LINK_REFUSED, /* something else is in its place */
} cordon_link_state;

struct cordon_link {
	const char *folder; /* as written; the workspace's memory */
	char *place;	    /* in the repository, and so in the directory */
	char *target;	    /* absolute */
	cordon_link_state state;
	size_t kept; /* how many of the parent directories of `place` were there before */
};

struct cordon_links {
	struct cordon_link *items;
	size_t n;
};

/* One link for each folder that lies in no other one of the list. With `existing` a folder that is missing or leads
 * outside is an error. Prints every error; 0 or an exit code. */
int cordon_links_plan(const struct cordon_manager *manager, bool existing, struct cordon_links *ret_links);
void cordon_links_done(struct cordon_links *links);

/* Makes what is missing, all or nothing. */
int cordon_links_make(struct cordon_links *links, int dir_fd, struct cordon_error *err);
/* Removes what is there, whatever happens to the others, and parents that are empty then. -EEXIST when one of them was
 * refused. */
int cordon_links_remove(struct cordon_links *links, int dir_fd, struct cordon_error *err);

/* What 'mount' and 'unmount' have in common: options and operands ([FOLDERS] DIR), then `act` with DIR. An exit code. */
int cordon_links_command(struct cordon_cli *cli, int argc, char **argv,
			 int (*act)(struct cordon_cli *cli, const struct cordon_manager *ws, const char *dir));

/* [{"folder","path","target","state"}]; "path" is in the directory. */
json_t *cordon_links_json(const struct cordon_links *links);

#endif
