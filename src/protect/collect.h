/* SPDX-License-Identifier: Apache-2.0 */
/* The list of protect/defaults.h while it is being made; internal to the files that make it. */
#ifndef CORDON_PROTECT_COLLECT_H
#define CORDON_PROTECT_COLLECT_H

#include "base/buf.h"
#include "base/names.h"
#include "protect/defaults.h"

/* A list that is being made, and how much may still be read for it. */
struct cordon_protect_collector {
	const struct cordon_root *root;
	struct cordon_names *names; /* knows what is missing in the root; or NULL */
	struct cordon_protect_list list;
	size_t cap;
	struct cordon_protect_list git_dirs; /* which are listed already, or are being listed */
	size_t git_dirs_cap;
	size_t modules_left; /* entries below .git/modules */
	size_t worktrees_left;
	size_t includes_left;		 /* files that configuration files include */
	size_t bytes_left;		 /* bytes that may still be read */
	size_t nested_left;		 /* nested repositories that are still held part by part */
	char *closed;			 /* the directory that could not be read, after -EACCES */
	const char *own;		 /* the worktree of the run, in its common git directory; or NULL */
	const struct cordon_root *outer; /* the git directory outside of the root whose configuration is read; or NULL */
};

enum cordon_protect_type { CORDON_PROTECT_MISSING, CORDON_PROTECT_FILE, CORDON_PROTECT_DIR, CORDON_PROTECT_OTHER };

/* Adds a path that is not in the list yet. */
int cordon_protect_append(struct cordon_protect_collector *c, const char *path);
/* Notes a git directory. 1 when it was noted before: git directories may point to each other. */
int cordon_protect_visit(struct cordon_protect_collector *c, const char *git_dir);
/* Adds dir + "/" + name, once. 0, -ENOMEM, -ENAMETOOLONG, or -E2BIG when the list is full. */
int cordon_protect_collect(struct cordon_protect_collector *c, const char *dir, const char *name);
bool cordon_protect_collected(const struct cordon_protect_collector *c, const char *path);
void cordon_protect_truncate(struct cordon_protect_collector *c, size_t n);

/*
 * For a directory that could not be opened for reading, with this error: -EACCES when the caller owns it, else 0. An agent has
 * the caller's id: it could close a directory in one run and open it in the next one, in which nobody knew what it contains.
 */
int cordon_protect_unread(struct cordon_protect_collector *c, const char *dir, int error);

/* The type of a path whose components must not be links: CORDON_PROTECT_OTHER for a link, a FIFO and so on. */
enum cordon_protect_type cordon_protect_type_of(const struct cordon_protect_collector *c, const char *path);

/*
 * Reads a regular file of the tree: follows links inside the root, but not those that leave it, and never waits. Returns
 * 0 with the text, 1 when there is nothing to read, -E2BIG, -ENOMEM.
 */
int cordon_protect_read(struct cordon_protect_collector *c, const char *path, size_t max, struct cordon_buf *buf);

/*
 * Finds where a path in a file that the host obeys leads, as a clean path relative to the root. Relative paths start at
 * `base`, which is relative to the root or absolute; NULL when it is unknown. False when the path leaves the root or is
 * not known. Links on the way stay in the path, so that they are protected, too.
 */
bool cordon_protect_locate(const struct cordon_protect_collector *c, const char *base, const char *text,
			   char ret[static CORDON_PATH_MAX]);

#endif
