/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From what a run used to the smallest readable policy that covers it: many files of one type below a folder become one
 * pattern of that type, many types become the folder, single files stay single. Pure: no file is looked at.
 *
 *     cordon_learn_add() per access, cordon_learn_grants() at the end; then the policy made of the grants is checked
 *     with cordon_learn_check(), and what it would refuse is granted by name with cordon_learn_grant_add().
 *
 * A name that looks like a secret is never granted; it can be asked for with cordon_learn_secret().
 */
#ifndef CORDON_POLICY_LEARN_H
#define CORDON_POLICY_LEARN_H

#include "policy/policy.h"

#define CORDON_LEARN_PATHS_MAX 200000 /* distinct paths that are remembered */
#define CORDON_LEARN_SAME_MIN 3	      /* files of one type in one folder that make a pattern */
#define CORDON_LEARN_FOLDER_MAX 4     /* grants below one folder; more become the folder */
#define CORDON_LEARN_ROOT_MAX 24      /* the same for the root; more become patterns of its files */
#define CORDON_LEARN_GRANTS_MAX 256   /* more than that nobody reads: the whole root, with a note */

/* How a path was used; one path collects them. */
enum cordon_learn_use {
	CORDON_LEARN_LOOKED = 1 << 0, /* a directory: looked at or passed through */
	CORDON_LEARN_LISTED = 1 << 1, /* a directory: opened */
	CORDON_LEARN_READ = 1 << 2,   /* a file: read, run or looked at */
	CORDON_LEARN_WRITTEN = 1 << 3,
	CORDON_LEARN_MADE = 1 << 4,	 /* the name came, went or moved */
	CORDON_LEARN_MOVED = 1 << 5,	 /* it was renamed away, or something was renamed to it */
	CORDON_LEARN_DIRECTORY = 1 << 6, /* what stands or stood there is one */
	CORDON_LEARN_ABSENT = 1 << 7,	 /* only asked for: nothing was there */
	CORDON_LEARN_GONE = 1 << 8,	 /* made, and not there any more at the end */
	CORDON_LEARN_LINKED = 1 << 9,	 /* reached through a symbolic link */
	CORDON_LEARN_STOOD = 1 << 10,	 /* was there when it was first seen; counts only then */
};

struct cordon_learn;

struct cordon_learn_grant {
	char *pattern;
	cordon_access access; /* read or write */
	const char *note;     /* why it is there, when that is not plain; or NULL. Not to be freed. */
};

struct cordon_learn_grants {
	struct cordon_learn_grant *items; /* write first, then read, each in order of the text */
	size_t n;
	bool by_name; /* names come and go, or are reached through links: folders and files alone need the lens to work
		       */
	bool lens;    /* by_name, or a pattern judges names */
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
/* Adds the path itself. */
int cordon_learn_grant_add(struct cordon_learn_grants *grants, const char *path, cordon_access access,
			   struct cordon_error *err);

/* Calls fn for each path whose use the policy would refuse, secrets left out. Returns how many. With `lens` names that
 * were asked for in vain count too: the lens does not tell that they are missing unless they are granted. */
size_t cordon_learn_check(struct cordon_learn *learn, const struct cordon_policy *policy, bool lens,
			  void (*fn)(void *data, const char *path, cordon_access access), void *data);

/* What sort of secret a path looks like ("environment file", "private key"), by any of its components; or NULL. */
const char *cordon_learn_secret(const char *path);

#endif
