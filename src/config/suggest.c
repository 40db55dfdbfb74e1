/* SPDX-License-Identifier: Apache-2.0 */
/* The distance between two short words, for suggestions. */
#include "config/suggest.h"
#include "base/util.h"

#define WORD_MAX 32

static char fold(char c)
{
	if (c == '-')
		return '_';
	return (char)(c >= 'A' && c <= 'Z' ? c | 0x20 : c);
}

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

size_t cordon_suggest_distance(const char *a, const char *b)
{
	size_t row[3][WORD_MAX + 1], n = strlen(a), m = strlen(b);

	if (n > WORD_MAX || m > WORD_MAX)
		return CORDON_SUGGEST_FAR;
	for (size_t j = 0; j <= m; j++)
		row[0][j] = j;
	for (size_t i = 1; i <= n; i++) {
		size_t *now = row[i % 3];
		const size_t *before = row[(i + 2) % 3], *earlier = row[(i + 1) % 3];

		now[0] = i;
		for (size_t j = 1; j <= m; j++) {
			char x = fold(a[i - 1]), y = fold(b[j - 1]);

			now[j] = least(least(now[j - 1], before[j]) + 1, before[j - 1] + (x != y));
			if (i > 1 && j > 1 && x == fold(b[j - 2]) && fold(a[i - 2]) == y)
				now[j] = least(now[j], earlier[j - 2] + 1);
		}
	}
	return row[n % 3][m];
}

bool cordon_suggest_closer(const char *word, const char *known, size_t *best)
{
	size_t distance = cordon_suggest_distance(word, known);

	if (distance >= *best || distance > 1 + strlen(known) / 4 || distance >= strlen(known))
		return false;
	*best = distance;
	return true;
}
