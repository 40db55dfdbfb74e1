/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What tells a file or directory from every other one that has its name now, had it before, or gets it later: the file
 * handle that the kernel gives it and the id of its file system. Where a file system has no handles, or changes them
 * (FUSE), the inode number and the time of birth count instead; where it has no birth times either, the number alone.
 *
 * The number of the device is no part of it, because it changes at a reboot.
 */
#ifndef CORDON_BASE_IDENTITY_H
#define CORDON_BASE_IDENTITY_H

#include "base/util.h"

#define CORDON_HANDLE_MAX 128	 /* bytes; the kernel's own bound */
#define CORDON_IDENTITY_SIZE 400 /* of the text, with its NUL */

struct cordon_identity {
	uint64_t fsid;
	int handle_type;
	unsigned int handle_len; /* 0: there is none */
	unsigned char handle[CORDON_HANDLE_MAX];
	uint64_t ino;
	int64_t born_s; /* with born_ns, the time of birth; both 0: not known */
	uint32_t born_ns;
};

/* Finds out what an open descriptor is; O_PATH will do. 0 or -errno. */
int cordon_identity_of(int fd, struct cordon_identity *ret_identity);
bool cordon_identity_same(const struct cordon_identity *a, const struct cordon_identity *b);

/* The form in which it is kept: one word for each part. */
void cordon_identity_text(const struct cordon_identity *identity, char ret[static CORDON_IDENTITY_SIZE]);
/* -EINVAL for anything that cordon_identity_text() does not write. */
int cordon_identity_parse(const char *text, struct cordon_identity *ret_identity);

/* Whether two open descriptors are the same object. Nobody can get the number of an inode that is open. */
bool cordon_same_object(int a, int b);

#endif
