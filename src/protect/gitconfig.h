/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the text of a git configuration file, only to find out which files of the tree it names.
 *
 * It errs towards reading on: git stops at the first bad line and runs nothing then, so an entry found behind one does
 * no harm, while one missed would. Sections and keys are lower-cased as git does; values are unquoted; the bytes are
 * otherwise untouched and hostile.
 */
#ifndef CORDON_SANDBOX_GITCONFIG_H
#define CORDON_SANDBOX_GITCONFIG_H

#include "base/util.h"
#include "cordon.h"

#define CORDON_GITCONFIG_NAME_MAX 256 /* of a section, a sub-section or a key; entries with longer ones are left out */

struct cordon_gitconfig_entry {
	const char *section;
	const char *subsection; /* "" when there is none */
	const char *key;
	const char *value; /* NULL for a key without "="; cut off after CORDON_PATH_MAX bytes */
};

/* Returns non-zero to stop; the parser returns that value. */
typedef int (*cordon_gitconfig_fn)(const struct cordon_gitconfig_entry *entry, void *data);

int cordon_gitconfig_parse(const char *text, size_t n, cordon_gitconfig_fn found, void *data);

#endif
