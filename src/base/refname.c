/* SPDX-License-Identifier: Apache-2.0 */
/* Names of refs in git. */
#include "base/refname.h"

static bool component_valid(const char *name, size_t n)
{
	if (n == 0 || name[0] == '.' || name[0] == '-' || (n >= 5 && memcmp(name + n - 5, ".lock", 5) == 0))
		return false;
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)name[i];

		if (c <= ' ' || c == 127 || strchr("~^:?*[\\", c) || (c == '.' && i + 1 < n && name[i + 1] == '.') ||
		    (c == '@' && i + 1 < n && name[i + 1] == '{'))
			return false;
	}
	return name[n - 1] != '.';
}

bool cordon_refname_valid(const char *name)
{
	/* Git itself makes no branch with the name HEAD, because nobody could tell the two apart. */
	if (strlen(name) > CORDON_REFNAME_MAX || strncmp(name, "refs/", 5) != 0 || cordon_streq(name, "refs/heads/HEAD"))
		return false;
	for (const char *at = name;; at++) {
		size_t n = strcspn(at, "/");

		if (!component_valid(at, n))
			return false;
		at += n;
		if (!*at)
			return true;
	}
}
