/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 of bytes, as text. */
#include <sodium.h>

#include "base/digest.h"

void cordon_digest(const void *bytes, size_t n, char ret_hex[static CORDON_DIGEST_SIZE])
{
	unsigned char sum[crypto_hash_sha256_BYTES];

	crypto_hash_sha256(sum, bytes, n);
	sodium_bin2hex(ret_hex, CORDON_DIGEST_SIZE, sum, sizeof(sum));
}
