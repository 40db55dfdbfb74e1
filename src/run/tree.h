/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tree as the agent of a run would see it: each entry with what the agent may do there. A directory in which everything is
 * alike is folded: one entry with the number of what is in it.
 *
 * It reads only what it shows, the names of each directory and the number of entries of each folded one. It follows no link, and it
 * holds no descriptor while it descends, so that depth costs nothing. Names may have any bytes.
 */
#ifndef CORDON_RUN_TREE_H
#define CORDON_RUN_TREE_H

#include <dirent.h>

#include "policy/marks.h"

#define CORDON_TREE_DEPTH 3	    /* the levels that are enough for most readers */
#define CORDON_TREE_COUNT_MAX 10000 /* entries counted in a folded directory */

struct cordon_tree_entry {
	const char *name; /* of the first one: its path, or that of the root */
	const char *path; /* relative to the root */
	unsigned char type;
	cordon_mark mark;
	unsigned int level; /* of the first one: 0 */
	const char *target; /* of a link: where it leads; else NULL */
	const char *share;  /* a share is mounted here, which shows this directory of the host; else NULL */
	bool folded;	    /* a directory whose entries are not shown; the rest is about these */
	bool uniform;	    /* all of them have the same mark, apart from `except` */
	const char *except; /* the text of a pattern, or NULL */
	int n;		    /* how many there are; CORDON_TREE_COUNT_MAX: or more; -errno; of a denied directory: 0 */
};

/* What is to be said behind the entries of a directory. */
struct cordon_tree_rest {
	unsigned int level; /* of the directory */
	int error;	    /* it can't be read; else 0 */
	size_t hidden;	    /* entries that are left out */
	size_t by_mark[CORDON_MARK__MAX];
	bool cut; /* and it has more that were not even read */
};

struct cordon_tree_spec {
	const struct cordon_policy *policy;
	const char *path; /* where to begin; "." for the root */
	uint64_t depth;	  /* levels; 0: no limit */
	bool all;	  /* folds nothing, and leaves nothing out */
	void *data;
	void (*entry)(void *data, const struct cordon_tree_entry *entry);
	/* Follows the entries of each directory that is not folded. */
	void (*end)(void *data, const struct cordon_tree_rest *rest);
};

/* -EXDEV with kind policy_denied when the path lies outside the root. */
int cordon_tree_walk(const struct cordon_tree_spec *spec, struct cordon_error *err);

/* A search for names, in all directories of the root; those near the root come first. It follows no link and looks into no share. */
struct cordon_tree_search {
	const struct cordon_policy *policy;
	const char *text; /* part of a name or, with a slash in it, of a path relative to the root; case does not matter */
	size_t entries;	  /* names that are looked at, at most */
	int64_t deadline; /* of cordon_time_monotonic() */
	void *data;
	/* Gets each that matches, of which name, path, type, mark and target are known; false ends the search. */
	bool (*found)(void *data, const struct cordon_tree_entry *entry);
};

/* How far it came. */
struct cordon_tree_searched {
	size_t entries; /* names that were looked at */
	bool more;	/* there is more, or something could not be read */
};

int cordon_tree_find(const struct cordon_tree_search *search, struct cordon_tree_searched *ret_searched,
		     struct cordon_error *err);

/* "directory", "link", "file", "other" */
const char *cordon_tree_type(unsigned char type);

#endif
