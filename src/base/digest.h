/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 of bytes, as text. */
#ifndef CORDON_BASE_DIGEST_H
#define CORDON_BASE_DIGEST_H

#include <stddef.h>

#define CORDON_DIGEST_SIZE 65  /* 64 hexadecimal digits and a NUL */
#define CORDON_DIGEST_SHOWN 16 /* digits that a person reads */

void cordon_digest(const void *bytes, size_t n, char ret_hex[static CORDON_DIGEST_SIZE]);

#endif
