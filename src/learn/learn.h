/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns what a run used into the smallest readable policy that covers it: many files of one type below a folder
 * become one pattern of that type, many types become the folder, single files stay single. Pure: it looks at no
 * file.
 *
 *     Call cordon_learn_add() per access and cordon_learn_grants() at the end. Then check the policy made of the grants
 *     with cordon_learn_check(), and grant what it would refuse by name with cordon_learn_grant_add().
 *
 * A name that looks like a secret is never granted (protect/secrets.h).
 */
#ifndef CORDON_LEARN_LEARN_H
#define CORDON_LEARN_LEARN_H

#include "policy/policy.h"
#include "protect/secrets.h"

#define CORDON_LEARN_PATHS_MAX 200000 /* distinct paths that are stored */
#define CORDON_LEARN_SAME_MIN 3	      /* files of one type in one folder that make a pattern */
#define CORDON_LEARN_FOLDER_MAX 4     /* grants below one folder; more become the folder */
#define CORDON_LEARN_ROOT_MAX 24      /* the same for the root; more become patterns of its files */
#define CORDON_LEARN_GRANTS_MAX 256   /* with more nobody would read them: the whole root is granted, with a note */

/* How a path was used; one path may have several of these. */
enum cordon_learn_use {
	CORDON_LEARN_LOOKED = 1 << 0, /* a directory: looked at or passed through */
	CORDON_LEARN_LISTED = 1 << 1, /* a directory: opened */
	CORDON_LEARN_READ = 1 << 2,   /* a file: read, run or looked at */
	CORDON_LEARN_WRITTEN = 1 << 3,
	CORDON_LEARN_MADE = 1 << 4,	 /* the name was made, removed or renamed */
	CORDON_LEARN_MOVED = 1 << 5,	 /* it was renamed, or something was renamed to it */
	CORDON_LEARN_DIRECTORY = 1 << 6, /* it is or was a directory */
	CORDON_LEARN_ABSENT = 1 << 7,	 /* only looked for: it did not exist */
	CORDON_LEARN_GONE = 1 << 8,	 /* made, and missing at the end */
	CORDON_LEARN_LINKED = 1 << 9,	 /* reached through a symbolic link */
	CORDON_LEARN_EXISTED = 1 << 10,	 /* it existed when it was first seen; ignored later */
};

struct cordon_learn;

struct cordon_learn_grant {
	char *pattern;
	cordon_access access; /* read or write */
	const char *note;     /* why it is there, when that is not obvious; or NULL. Not to be freed. */
};

struct cordon_learn_grants {
	struct cordon_learn_grant *items; /* write first, then read, each in order of the text */
	size_t n;
	/* Names are made and removed, or are reached through links: even with folders and files alone this works
	 * only with the lens. */
	bool by_name;
	bool lens; /* by_name, or a pattern judges names */
};

struct cordon_learn *cordon_learn_new(void);
struct cordon_learn *cordon_learn_free(struct cordon_learn *learn);
/* `path` is clean and relative to the root. -E2BIG when there are too many. */
int cordon_learn_add(struct cordon_learn *learn, const char *path, unsigned int uses);
/* Calls fn for each path in order of the text; what it returns is added to the uses. */
typedef unsigned int (*cordon_learn_fn)(void *data, const char *path, unsigned int uses);
void cordon_learn_each(struct cordon_learn *learn, cordon_learn_fn fn, void *data);

/* Without `patterns` only folders and single files are granted, which work without the lens. */
int cordon_learn_grants(struct cordon_learn *learn, bool patterns, struct cordon_learn_grants *ret,
			struct cordon_error *err);
void cordon_learn_grants_done(struct cordon_learn_grants *grants);
/* Adds a grant for the path itself. */
int cordon_learn_grant_add(struct cordon_learn_grants *grants, const char *path, cordon_access access,
			   struct cordon_error *err);

/* Calls fn for each path whose use the policy would refuse, except secrets. Returns how many. With `lens`, names
 * that were looked for and missing count, too: the lens does not admit that they are missing unless they are
 * granted. */
size_t cordon_learn_check(struct cordon_learn *learn, const struct cordon_policy *policy, bool lens,
			  void (*fn)(void *data, const char *path, cordon_access access), void *data);

#endif
