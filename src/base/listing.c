/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a directory a few entries at a time. */
#include "base/listing.h"

void cordon_listing_init(struct cordon_listing *listing, int fd)
{
	listing->fd = fd;
	listing->n = listing->at = 0;
}

const struct dirent64 *cordon_listing_next(struct cordon_listing *listing)
{
	for (;;) {
		const struct dirent64 *entry;
		ssize_t n;

		if (listing->at == listing->n) {
			n = getdents64(listing->fd, listing->bytes, sizeof(listing->bytes));
			if (n <= 0)
				return NULL;
			listing->n = (size_t)n;
			listing->at = 0;
		}
		entry = (const void *)(listing->bytes + listing->at);
		listing->at += entry->d_reclen;
		if (!cordon_streq(entry->d_name, ".") && !cordon_streq(entry->d_name, ".."))
			return entry;
	}
}
