/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies single files, links and empty directories. Of what comes out of a view: content with its holes, permission
 * bits, times, and the user's attributes, but no set-id and sticky bits, devices, FIFOs and sockets. Of what the host
 * had: everything that we may give to a copy.
 */
#ifndef CORDON_VIEW_STAGE_H
#define CORDON_VIEW_STAGE_H

#include "view/delta.h"

/* What a copy gets that its source does not have. */
struct cordon_stage_like {
	mode_t mode;			  /* permission bits of the copy */
	const struct cordon_buf *content; /* instead of the source's; NULL: the source's */
	bool owned;			  /* the copy belongs to uid and gid, as far as we may do that */
	uid_t uid;
	gid_t gid;
	int acl_fd; /* the file (O_PATH) whose access list the copy gets, or -1 */
	bool exact; /* it has been the host's: with all bits and attributes */
};

/* Copies the regular file `src_fd` to a new file. Returns 0 or -errno. */
int cordon_stage_file(int src_fd, const struct stat *st, const struct cordon_stage_like *like, int dir_fd,
		      const char *name);
/* Makes a link with the target of the link `src_fd` (O_PATH). */
int cordon_stage_link(int src_fd, const struct stat *st, int dir_fd, const char *name);

/* Copies the user's attributes of a directory (O_PATH). Best effort. */
void cordon_stage_attributes(int src_fd, int dir_fd, const char *name);

/*
 * Copies an entry that is the host's, or was, as exactly as we can. Of a directory the copy is empty, and its owner may
 * do everything in it. Returns 0 or -errno; on failure the directory has no new entry.
 */
int cordon_stage_again(int src_dir_fd, const char *src_name, int dir_fd, const char *name);

#endif
