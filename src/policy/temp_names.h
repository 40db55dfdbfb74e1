/* SPDX-License-Identifier: Apache-2.0 */
/* Names under which editors, `sed -i`, formatters and git write before they rename to the name that is meant. */
#ifndef CORDON_POLICY_TEMP_NAMES_H
#define CORDON_POLICY_TEMP_NAMES_H

#include "base/util.h"

/* Whether the first n bytes of `name` are a name that can be written in the same directory. */
typedef bool (*cordon_temp_writable_fn)(void *data, const char *name, size_t n);

/* Whether the name says which file it is for (NAME.lock, .NAME.swp), and that one can be written. `link`: it is to be a
 * symbolic link. */
bool cordon_temp_of_name(const char *name, bool link, cordon_temp_writable_fn writable, void *data);
/* Whether it has a shape that does not say which file it is for (sedXXXXXX): it needs one that can be written beside it. */
bool cordon_temp_of_any(const char *name);
/* The length of the part of such a name that is the same every time; 0 for other names. */
size_t cordon_temp_fixed(const char *name);

#endif
