/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a log line by line with the hash of each line, in bounded memory whatever the file contains. */
#include <sodium.h>

#include "audit/lines.h"

void cordon_audit_hash(const char *bytes, size_t n, char ret[static CORDON_AUDIT_HASH_SIZE])
{
	unsigned char digest[crypto_hash_sha256_BYTES];

	crypto_hash_sha256(digest, (const unsigned char *)bytes, n);
	sodium_bin2hex(ret, CORDON_AUDIT_HASH_SIZE, digest, sizeof(digest));
}

void cordon_lines_init(struct cordon_lines *lines, int fd, off_t at, off_t limit)
{
	lines->fd = fd;
	lines->at = at;
	lines->limit = limit;
	lines->pos = lines->have = 0;
}

/* Reads more bytes behind those in the buffer; 0 at the end. */
static ssize_t refill(struct cordon_lines *lines)
{
	size_t space;
	ssize_t n;

	if (lines->pos) {
		memmove(lines->buf, lines->buf + lines->pos, lines->have - lines->pos);
		lines->have -= lines->pos;
		lines->pos = 0;
	}
	space = sizeof(lines->buf) - lines->have;
	if (lines->at >= lines->limit)
		return 0;
	if ((off_t)space > lines->limit - lines->at)
		space = (size_t)(lines->limit - lines->at);
	do
		n = pread(lines->fd, lines->buf + lines->have, space, lines->at);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	lines->at += n;
	lines->have += (size_t)n;
	return n;
}

int cordon_lines_next(struct cordon_lines *lines, struct cordon_line *ret_line)
{
	off_t start = lines->at - (off_t)(lines->have - lines->pos);
	crypto_hash_sha256_state sha;
	unsigned char digest[crypto_hash_sha256_BYTES];
	/* Bytes in the buffer without a newline; bytes of a long line that left the buffer. */
	size_t scanned = 0, before = 0;

	crypto_hash_sha256_init(&sha);
	for (;;) {
		const char *text = lines->buf + lines->pos;
		size_t n = lines->have - lines->pos;
		const char *newline = memchr(text + scanned, '\n', n - scanned);
		ssize_t more;

		if (!newline && n >= CORDON_AUDIT_LINE_MAX) {
			crypto_hash_sha256_update(&sha, (const unsigned char *)text, n);
			before += n;
			lines->pos = lines->have = n = 0;
		}
		if (!newline) {
			scanned = n;
			more = refill(lines);
			if (more < 0)
				return (int)more;
			if (more > 0)
				continue;
			text = lines->buf + lines->pos;
			if (n == 0 && before == 0)
				return 0;
		} else {
			n = (size_t)(newline - text);
		}
		crypto_hash_sha256_update(&sha, (const unsigned char *)text, n);
		crypto_hash_sha256_final(&sha, digest);
		sodium_bin2hex(ret_line->hash, sizeof(ret_line->hash), digest, sizeof(digest));
		lines->pos += n + (newline != NULL);
		ret_line->start = start;
		ret_line->n = before + n;
		ret_line->whole = newline != NULL;
		ret_line->end = start + (off_t)ret_line->n + ret_line->whole;
		ret_line->text = ret_line->n < CORDON_AUDIT_LINE_MAX ? text : NULL;
		return 1;
	}
}
