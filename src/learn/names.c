/* SPDX-License-Identifier: Apache-2.0 */
/* What a name shows: the type of a file, and whether a part of it is random. */
#include <stdio.h>

#include "base/path.h"
#include "learn/names.h"
#include "policy/temp_names.h"

static bool is_alnum(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

const char *cordon_learn_type(const char *name)
{
	const char *dot = strrchr(name, '.');
	size_t n = 0;

	if (!dot || dot == name || !dot[1])
		return NULL;
	while (is_alnum(dot[1 + n]))
		n++;
	return dot[1 + n] || n > 12 ? NULL : dot + 1;
}

/* Whether s has six or more letters and digits of at least two kinds, as mkstemp() and similar functions make them.
 * Only capitals or only digits count as well; only small letters may be a word. */
static bool random_run(const char *s, size_t n)
{
	bool lower = false, upper = false, digit = false;

	for (size_t i = 0; i < n; i++) {
		lower |= s[i] >= 'a' && s[i] <= 'z';
		upper |= s[i] >= 'A' && s[i] <= 'Z';
		digit |= s[i] >= '0' && s[i] <= '9';
	}
	return n >= 6 && (!lower || upper || digit);
}

bool cordon_learn_random(const char *name, size_t *ret_from, size_t *ret_to)
{
	size_t fixed = cordon_temp_fixed(name);

	if (fixed) {
		*ret_from = fixed;
		*ret_to = strlen(name);
		return true;
	}
	for (size_t i = 0; name[i];) {
		size_t n = 0, keep = 0;

		while (is_alnum(name[i + n]) || (n && name[i + n] == '_'))
			n++;
		if (random_run(name + i, n)) {
			/* At the start there may be a short fixed word before it: "sedAbCdEf", "tmpx1y2z3". */
			while (i == 0 && keep < 3 && name[keep] >= 'a' && name[keep] <= 'z')
				keep++;
			*ret_from = i + keep;
			*ret_to = i + n;
			return true;
		}
		i += n ? n : 1;
	}
	return false;
}
