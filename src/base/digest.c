/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 of bytes, as text. */
#include <errno.h>
#include <sodium.h>
#include <unistd.h>

#include "base/digest.h"

void cordon_digest(const void *bytes, size_t n, char ret_hex[static CORDON_DIGEST_SIZE])
{
	unsigned char sum[crypto_hash_sha256_BYTES];

	crypto_hash_sha256(sum, bytes, n);
	sodium_bin2hex(ret_hex, CORDON_DIGEST_SIZE, sum, sizeof(sum));
}

int cordon_digest_fd(int fd, uint64_t *max, char ret_hex[static CORDON_DIGEST_SIZE])
{
	unsigned char bytes[65536], sum[crypto_hash_sha256_BYTES];
	crypto_hash_sha256_state state;
	ssize_t n;

	crypto_hash_sha256_init(&state);
	while ((n = read(fd, bytes, sizeof(bytes))) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if ((uint64_t)n > *max)
			return -EFBIG;
		*max -= (uint64_t)n;
		crypto_hash_sha256_update(&state, bytes, (unsigned long long)n);
	}
	crypto_hash_sha256_final(&state, sum);
	sodium_bin2hex(ret_hex, CORDON_DIGEST_SIZE, sum, sizeof(sum));
	return 0;
}
