/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the text of a git configuration file, only to find out which files of the tree it names.
 *
 * When in doubt it reads on. Git stops at the first bad line and then runs nothing, so an entry behind a bad line
 * does no harm, but a missed entry would. Sections and keys are lower-cased as git does; values are unquoted.
 * Otherwise the bytes are unchanged, and may be hostile.
 */
#ifndef CORDON_PROTECT_GITCONFIG_H
#define CORDON_PROTECT_GITCONFIG_H

#include "base/util.h"
#include "cordon.h"

#define CORDON_GITCONFIG_NAME_MAX 256 /* of a section, a sub-section or a key; entries with longer names are left out */

struct cordon_gitconfig_entry {
	const char *section;
	const char *subsection; /* "" when there is none */
	const char *key;
	const char *value; /* NULL for a key without "="; cut off after CORDON_PATH_MAX bytes */
};

/* Called for each entry. Returns non-zero to stop; the parser returns that value. */
typedef int (*cordon_gitconfig_fn)(const struct cordon_gitconfig_entry *entry, void *data);

int cordon_gitconfig_parse(const char *text, size_t n, cordon_gitconfig_fn found, void *data);

/* Whether the value of an entry is, or may be, a command or the path of a program that git executes. */
bool cordon_gitconfig_is_command(const struct cordon_gitconfig_entry *entry);

#endif
