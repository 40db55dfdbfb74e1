/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 of bytes, as text. */
#ifndef CORDON_BASE_DIGEST_H
#define CORDON_BASE_DIGEST_H

#include <stddef.h>
#include <stdint.h>

#define CORDON_DIGEST_SIZE 65  /* 64 hexadecimal digits and a NUL */
#define CORDON_DIGEST_SHOWN 16 /* digits that a person reads */

void cordon_digest(const void *bytes, size_t n, char ret_hex[static CORDON_DIGEST_SIZE]);
/* Of a file, from where the descriptor stands to its end. *max is how many bytes may be read, and becomes less; -EFBIG when
 * there are more. */
int cordon_digest_fd(int fd, uint64_t *max, char ret_hex[static CORDON_DIGEST_SIZE]);

#endif
