/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes git configuration as an agent may leave it: the reader stays in bounds and returns only what it promises. */
#include <assert.h>
#include <string.h>

#include "protect/gitconfig.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int check(const struct cordon_gitconfig_entry *entry, void *data)
{
	size_t *entries = data;

	assert(strlen(entry->section) < CORDON_GITCONFIG_NAME_MAX &&
	       strlen(entry->subsection) < CORDON_GITCONFIG_NAME_MAX);
	assert(*entry->key && strlen(entry->key) < CORDON_GITCONFIG_NAME_MAX);
	for (const char *c = entry->key; *c; c++)
		assert((*c >= 'a' && *c <= 'z') || (*c >= '0' && *c <= '9') || *c == '-');
	assert(!entry->value || strlen(entry->value) < CORDON_PATH_MAX);
	++*entries;
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t entries = 0;

	assert(cordon_gitconfig_parse((const char *)data, size, check, &entries) == 0);
	assert(entries <= size);
	return 0;
}
