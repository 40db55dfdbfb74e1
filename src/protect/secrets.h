/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is a secret by its name, for everybody who hides or leaves out secrets: `cordon learn` grants none and shows none,
 * and a root that contains a home directory, or a policy with `deny_secrets`, hides them (cordon_secrets_in()).
 */
#ifndef CORDON_PROTECT_SECRETS_H
#define CORDON_PROTECT_SECRETS_H

#include "protect/defaults.h"

#define CORDON_SECRETS_ENTRIES_MAX 4096 /* names read in a directory to find those that match a pattern */
#define CORDON_SECRETS_HOMES_MAX 32

/* The kind of secret that a path looks like ("environment file", "private key"), by any of its components; or NULL. */
const char *cordon_secret(const char *path);
/* The same for a home directory, where more names are secrets: whether a name in it is one, and the places further
 * down, relative to it, NULL-terminated. And places of the system, absolute. */
bool cordon_secret_in_home(const char *name);
const char *const *cordon_secret_places(void);
const char *const *cordon_secret_system_places(void);

/* The names that are hidden: calls fn for each that is no pattern, and tells whether a name is one of them. */
int cordon_secret_names(bool home, int (*fn)(void *data, const char *name), void *data);
bool cordon_secret_is_hidden(const char *name, bool home);

/*
 * Lists what is hidden in a root, relative to it: in each home directory in it, and with `asked` in the root itself. A
 * name may be missing, where its directory exists. Nothing is searched below these directories. *ret_home tells whether
 * the root is the caller's own home directory or contains it.
 */
int cordon_secrets_in(const struct cordon_root *root, bool asked, struct cordon_protect_list *ret_list, bool *ret_home,
		      struct cordon_error *err);

#endif
