/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a directory a few entries at a time, for whoever looks only at the first ones: readdir() has the kernel read 32 KiB of
 * entries before it returns the first, which takes 0.3 ms in a large directory.
 */
#ifndef CORDON_BASE_LISTING_H
#define CORDON_BASE_LISTING_H

#include <dirent.h>

#include "base/util.h"

#define CORDON_LISTING_BYTES 4096

struct cordon_listing {
	int fd; /* borrowed; its position moves */
	size_t n, at;
	_Alignas(8) char bytes[CORDON_LISTING_BYTES];
};

/* Sets the fields that must be set; the bytes may be anything. */
void cordon_listing_init(struct cordon_listing *listing, int fd);
/* The next entry but "." and "..", valid until the next call; NULL at the end or when the directory can't be read. */
const struct dirent64 *cordon_listing_next(struct cordon_listing *listing);

#endif
