/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-1 as FIPS 180-4 describes it; git names the content of files by it. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "view/sha1.h"

struct sha1 {
	uint32_t state[5];
	uint64_t n;
	unsigned char block[64];
};

static uint32_t rotate(uint32_t x, unsigned int n)
{
	return x << n | x >> (32 - n);
}

static void compress(struct sha1 *sha, const unsigned char *block)
{
	uint32_t w[80], a = sha->state[0], b = sha->state[1], c = sha->state[2], d = sha->state[3], e = sha->state[4];

	for (unsigned int t = 0; t < 16; t++)
		w[t] = (uint32_t)block[4 * t] << 24 | (uint32_t)block[4 * t + 1] << 16 |
		       (uint32_t)block[4 * t + 2] << 8 | block[4 * t + 3];
	for (unsigned int t = 16; t < 80; t++)
		w[t] = rotate(w[t - 3] ^ w[t - 8] ^ w[t - 14] ^ w[t - 16], 1);
	for (unsigned int t = 0; t < 80; t++) {
		uint32_t f, k, sum;

		if (t < 20)
			f = (b & c) | (~b & d), k = 0x5a827999;
		else if (t < 40)
			f = b ^ c ^ d, k = 0x6ed9eba1;
		else if (t < 60)
			f = (b & c) | (b & d) | (c & d), k = 0x8f1bbcdc;
		else
			f = b ^ c ^ d, k = 0xca62c1d6;
		sum = rotate(a, 5) + f + e + k + w[t];
		e = d;
		d = c;
		c = rotate(b, 30);
		b = a;
		a = sum;
	}
	sha->state[0] += a;
	sha->state[1] += b;
	sha->state[2] += c;
	sha->state[3] += d;
	sha->state[4] += e;
}

static void feed(struct sha1 *sha, const void *bytes, size_t n)
{
	const unsigned char *from = bytes;
	size_t used = sha->n % 64;

	sha->n += n;
	if (used) {
		size_t take = n < 64 - used ? n : 64 - used;

		memcpy(sha->block + used, from, take);
		from += take;
		n -= take;
		if (used + take < 64)
			return;
		compress(sha, sha->block);
	}
	for (; n >= 64; from += 64, n -= 64)
		compress(sha, from);
	if (n)
		memcpy(sha->block, from, n);
}

#define SHA1_BEGIN                                                                                                     \
	{                                                                                                              \
		.state = { 0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0 }                                \
	}

static void finish(struct sha1 *sha, char ret_hex[static CORDON_BLOB_NAME_SIZE])
{
	static const unsigned char padding[64] = { 0x80 };
	unsigned char length[8];
	uint64_t bits = sha->n * 8;

	feed(sha, padding, (size_t)(sha->n % 64 < 56 ? 56 - sha->n % 64 : 120 - sha->n % 64));
	for (unsigned int i = 0; i < 8; i++)
		length[i] = (unsigned char)(bits >> (56 - 8 * i));
	feed(sha, length, sizeof(length));
	for (unsigned int i = 0; i < 5; i++)
		snprintf(ret_hex + (size_t)8 * i, 9, "%08x", sha->state[i]);
}

void cordon_sha1(const void *bytes, size_t n, char ret_hex[static CORDON_BLOB_NAME_SIZE])
{
	struct sha1 sha = SHA1_BEGIN;

	if (n)
		feed(&sha, bytes, n);
	finish(&sha, ret_hex);
}

void cordon_blob_name(const void *bytes, size_t n, char ret_name[static CORDON_BLOB_NAME_SIZE])
{
	struct sha1 sha = SHA1_BEGIN;
	char header[32];
	int digits = snprintf(header, sizeof(header), "blob %zu", n);

	feed(&sha, header, (size_t)digits + 1);
	if (n)
		feed(&sha, bytes, n);
	finish(&sha, ret_name);
}
