/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a session's run protects, in the short form of its record. Most of the list are names of the built-in table
 * (protect/defaults.h) that are missing in the tree, and they can be derived from the table. Each item is one of:
 *
 *   an object         an entry as the result of a run has it: what somebody asked for
 *   "absent .a/b"     an entry of the default protection: its state and its path
 *   "0-146,150-162 sub/dir"
 *                     missing names of the default protection: these rows of the table, below this directory (the root
 *                     when it is empty)
 *
 * A record of an older version has only objects.
 */
#ifndef CORDON_STORE_PROTECTED_H
#define CORDON_STORE_PROTECTED_H

#include <jansson.h>

#include "base/digest.h"

#define CORDON_PROTECTED_TABLE_SIZE (CORDON_DIGEST_SHOWN + 1)

/* The digest of the names in the built-in table, in their order. */
void cordon_protected_table(char ret_table[static CORDON_PROTECTED_TABLE_SIZE]);
/* Returns the short form of `protected` in the result of a run, for the table of this version, a new reference; NULL when
 * there is no memory. */
json_t *cordon_protected_pack(const json_t *entries);
/* Returns the entries again, in their order, a new reference; NULL when there is no memory. Leaves out rows of another
 * table than `table` and what is not known, *ret_unlisted of them. The result shares the objects of `items`. */
json_t *cordon_protected_unpack(const json_t *items, const char *table, size_t *ret_unlisted);

#endif
