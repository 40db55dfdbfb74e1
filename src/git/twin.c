/* SPDX-License-Identifier: Apache-2.0 */
/* Finds names that some file system takes for ".git". */
#include "git/twin.h"

#include "base/text.h"

/* Characters that HFS+ ignores in names, which git knows, too. */
static bool is_ignored(uint32_t c)
{
	return (c >= 0x200c && c <= 0x200f) || (c >= 0x202a && c <= 0x202e) || (c >= 0x206a && c <= 0x206f) ||
	       c == 0xfeff;
}

static char lower(char c)
{
	return (char)(c >= 'A' && c <= 'Z' ? c | 0x20 : c);
}

bool cordon_git_is_twin(const char *name, size_t n)
{
	static const char *const twins[] = { ".git", "git~1" };
	char folded[8];
	size_t at = 0, used = 0;

	if (n == 4 && memcmp(name, ".git", 4) == 0)
		return false; /* itself; the policy judges it */
	while (at < n) {
		size_t size = cordon_utf8_char(name + at, n - at);

		if (size > 1 && is_ignored(cordon_utf8_decode(name + at, size))) {
			at += size;
			continue;
		}
		/* Windows ends a name at a colon, and drops dots and blanks at the end. */
		if (name[at] == ':')
			break;
		if (used < sizeof(folded))
			folded[used++] = lower(name[at]);
		else if (name[at] != '.' && name[at] != ' ')
			return false;
		at++;
	}
	while (used > 0 && (folded[used - 1] == '.' || folded[used - 1] == ' '))
		used--;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(twins); i++)
		if (used == strlen(twins[i]) && memcmp(folded, twins[i], used) == 0)
			return true;
	return false;
}
