/* SPDX-License-Identifier: Apache-2.0 */
/* The name that a process shows in /proc. */
#include <sys/prctl.h>

#include "base/title.h"
#include "base/util.h"

static char *first, *end;

/* The kernel puts the strings of argv and environ into memory one after the other. Stop where a string does not
 * follow the one before. */
void cordon_title_init(int argc, char **argv)
{
	first = argc > 0 ? argv[0] : NULL;
	end = first;
	for (int i = 0; i < argc && argv[i] == end; i++)
		end = argv[i] + strlen(argv[i]) + 1;
	for (size_t i = 0; environ && environ[i] && environ[i] == end; i++)
		end = environ[i] + strlen(environ[i]) + 1;
}

void cordon_title_set(const char *title)
{
	size_t n = strlen(title);

	prctl(PR_SET_NAME, title, 0, 0, 0);
	if (!first)
		return;
	memset(first, 0, (size_t)(end - first));
	if (n < (size_t)(end - first))
		memcpy(first, title, n + 1);
}
