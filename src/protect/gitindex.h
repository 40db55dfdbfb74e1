/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads git's index (versions 2 to 4): the names that git knows. Gitlinks among them stand for another repository, into
 * which git looks when it works on the outer one. The bytes may be hostile; bytes that are no index give no entries.
 */
#ifndef CORDON_PROTECT_GITINDEX_H
#define CORDON_PROTECT_GITINDEX_H

#include "base/util.h"
#include "cordon.h"

#define CORDON_GITINDEX_TYPE 0170000 /* of a mode */
#define CORDON_GITINDEX_GITLINK 0160000

/* Called for each entry. Returns non-zero to stop; the parser returns that value. The path is as the index has it,
 * and may be hostile; it is "" for an entry of a split index that replaces one in its other half. */
typedef int (*cordon_gitindex_fn)(void *data, const char *path, uint32_t mode);

/*
 * Returns 0, what `found` returned, or -EBADMSG when the bytes are no index. `ret_shared` gets the name of the file
 * with the other half of a split index, or "".
 */
#define CORDON_GITINDEX_SHARED_SIZE 80
int cordon_gitindex_parse(const void *bytes, size_t n, cordon_gitindex_fn found, void *data,
			  char ret_shared[static CORDON_GITINDEX_SHARED_SIZE]);

#endif
