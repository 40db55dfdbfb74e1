/* SPDX-License-Identifier: Apache-2.0 */
/* What a name shows: the type of a file, and whether a part of it is random. */
#ifndef CORDON_LEARN_NAMES_H
#define CORDON_LEARN_NAMES_H

#include "learn/learn.h"

/* The extension of a file name without its dot, of at most 12 letters and digits; or NULL. */
const char *cordon_learn_type(const char *name);
/* Whether a part of the name looks random: the bytes from *ret_from up to *ret_to. */
bool cordon_learn_random(const char *name, size_t *ret_from, size_t *ret_to);

#endif
