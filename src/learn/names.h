/* SPDX-License-Identifier: Apache-2.0 */
/* What names tell: secrets (learn.h), types of files, and names that are different every time. */
#ifndef CORDON_POLICY_LEARN_NAMES_H
#define CORDON_POLICY_LEARN_NAMES_H

#include "policy/learn.h"

/* The extension of a file name without its dot, of at most 12 letters and digits; or NULL. */
const char *cordon_learn_type(const char *name);
/* Whether part of the name looks made by chance: the bytes from *ret_from up to *ret_to. */
bool cordon_learn_random(const char *name, size_t *ret_from, size_t *ret_to);

#endif
