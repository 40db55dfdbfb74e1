/* SPDX-License-Identifier: Apache-2.0 */
/* Memory for keys, which no child process inherits: whatever it is forked for, it reads hostile bytes or runs for long. */
#include "base/secret.h"

#include <sys/mman.h>

unsigned char *cordon_secret_new(size_t size)
{
	void *secret = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (secret == MAP_FAILED)
		return NULL;
	/* INVARIANT: a key is in no process but that which needs it. */
	if (madvise(secret, size, MADV_WIPEONFORK) < 0 || madvise(secret, size, MADV_DONTDUMP) < 0) {
		munmap(secret, size);
		return NULL;
	}
	return secret;
}

unsigned char *cordon_secret_free(unsigned char *secret, size_t size)
{
	if (secret)
		munmap(secret, size); /* the kernel clears a page before anybody else gets it */
	return NULL;
}
