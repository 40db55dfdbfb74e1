/* SPDX-License-Identifier: Apache-2.0 */
/* Temporary names to which editors, `sed -i`, formatters and git write before they rename the file to its real name. */
#ifndef CORDON_POLICY_TEMP_NAMES_H
#define CORDON_POLICY_TEMP_NAMES_H

#include "base/util.h"

/* Whether the first n bytes of `name` are a name that the run may write in the same directory. */
typedef bool (*cordon_temp_writable_fn)(void *data, const char *name, size_t n);

/* Whether the name contains the name of its file (NAME.lock, .NAME.swp), and the run may write that file. `link` is
 * for a symbolic link. */
bool cordon_temp_of_name(const char *name, bool link, cordon_temp_writable_fn writable, void *data);
/* The same for names that somebody who knows the name of the file could foresee: those without a random part. */
bool cordon_temp_predictable(const char *name, cordon_temp_writable_fn writable, void *data);
/* Whether it has a shape that does not contain the name of its file (sedXXXXXX): then a writable file must be beside
 * it. */
bool cordon_temp_of_any(const char *name);
/* The length of the part that is the same in all such names; 0 for other names. */
size_t cordon_temp_fixed(const char *name);

#endif
