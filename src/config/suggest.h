/* SPDX-License-Identifier: Apache-2.0 */
/* "Did you mean": the known word that a mistyped one is closest to. */
#ifndef CORDON_CONFIG_SUGGEST_H
#define CORDON_CONFIG_SUGGEST_H

#include <stdbool.h>
#include <stddef.h>

/* How many letters must be changed, added, dropped or swapped with their neighbour to turn one word into the other;
 * ignores case and the difference between - and _. CORDON_SUGGEST_FAR for words that are too long to compare. */
#define CORDON_SUGGEST_FAR 1000
size_t cordon_suggest_distance(const char *a, const char *b);
/* Whether `known` is close enough to `word` to be suggested, and closer than `best`, which is then updated. */
bool cordon_suggest_closer(const char *word, const char *known, size_t *best);

#endif
