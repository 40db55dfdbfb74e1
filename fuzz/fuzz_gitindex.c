/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes git's index as an agent may leave it: the reader stays in bounds, and so do the paths that it returns. */
#include <assert.h>
#include <string.h>

#include "protect/gitindex.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int check(void *data, const char *path, uint32_t mode)
{
	size_t *found = data;

	(void)mode;
	assert(strlen(path) < CORDON_PATH_MAX);
	++*found;
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char shared[CORDON_GITINDEX_SHARED_SIZE];
	size_t found = 0;
	int r = cordon_gitindex_parse(data, size, check, &found, shared);

	assert(r == 0 || (r == -EBADMSG && !*shared));
	assert(found <= size && strlen(shared) < sizeof(shared));
	return 0;
}
