/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds out which names are missing in a tree, for callers that ask for many names. A small directory is read once,
 * and then a name that is not in it costs no further system call. The answers are as old as the first question, so
 * use one object only for one pass over a list.
 */
#ifndef CORDON_BASE_NAMES_H
#define CORDON_BASE_NAMES_H

#include "base/util.h"

#define CORDON_NAMES_DIRS 8	 /* directories that are read: the root and some in it */
#define CORDON_NAMES_BYTES 16384 /* of all listings together; a listing that does not fit is not kept */

/* It allocates no memory, so that PID 1 of a sandbox can use it. */
struct cordon_names {
	int root_fd; /* borrowed */
	struct cordon_names_dir {
		const char *path;    /* relative to the root, one component; "" for the root itself */
		const char *entries; /* from getdents64; NULL when the listing is not known */
		size_t n;	     /* bytes of entries */
		uint64_t starts[4];  /* a bit for each start that a name has; all bits when a name is not ASCII */
	} dirs[CORDON_NAMES_DIRS];
	size_t n_dirs;
	size_t used; /* of bytes */
	_Alignas(8) char bytes[CORDON_NAMES_BYTES];
};

/* Also forgets all listings. */
void cordon_names_init(struct cordon_names *names, int root_fd);

/*
 * Whether it is certain that nothing exists at a clean relative path, because its first or its second component is
 * not in its directory. False means that it is not known. `names` may be NULL.
 */
bool cordon_names_lack(struct cordon_names *names, const char *path);
/* The same for the first component alone. */
bool cordon_names_lack_first(struct cordon_names *names, const char *path);
/* Whether it is certain that no name in the root starts with these bytes. */
bool cordon_names_lack_start(struct cordon_names *names, const char *start);
/* The same for the end of a name. */
bool cordon_names_lack_end(struct cordon_names *names, const char *end);

#endif
