/* SPDX-License-Identifier: Apache-2.0 */
/* A reader of git's index; the format is gitformat-index(5). */
#include <stdio.h>

#include "protect/gitindex.h"

#define HEADER 12
#define MODE_AT 24 /* offset in an entry */
#define HASH_AT 40 /* offset in an entry, behind the file's status */
#define FLAG_EXTENDED 0x4000
#define LENGTH_MASK 0xfff /* of the flags: the length of the path, or 0xfff when it is longer */

struct index {
	const unsigned char *bytes;
	size_t n;
	size_t at;
	size_t hash_len;
	uint32_t version;
	char path[CORDON_PATH_MAX]; /* of the last entry; in version 4 the next path begins with a part of it */
	size_t path_len;
};

static uint32_t number(const unsigned char *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* Reads how many bytes of the last path version 4 drops: a number of variable length. */
static int take_strip(struct index *index, size_t *ret_strip)
{
	size_t value = 0;

	for (unsigned int i = 0; i < 4; i++) {
		unsigned char c;

		if (index->at >= index->n)
			return -EBADMSG;
		c = index->bytes[index->at++];
		value = ((value + (i ? 1 : 0)) << 7) + (c & 127u);
		if (!(c & 128)) {
			*ret_strip = value;
			return 0;
		}
	}
	return -EBADMSG;
}

/* Reads the path of an entry that begins at `start`; afterwards index->at is behind the entry. The index has its
 * length twice, which shows which length the hashes have. Where the two differ, git may read another path than we
 * would. */
static int take_path(struct index *index, size_t start, size_t length)
{
	const unsigned char *end;
	size_t strip = 0, kept = 0, len;
	int r = index->version == 4 ? take_strip(index, &strip) : 0;

	if (r < 0)
		return r;
	if (index->version == 4) {
		if (strip > index->path_len)
			return -EBADMSG;
		kept = index->path_len - strip;
	}
	end = memchr(index->bytes + index->at, '\0', index->n - index->at);
	len = end ? (size_t)(end - (index->bytes + index->at)) : 0;
	if (!end || kept + len >= sizeof(index->path))
		return -EBADMSG;
	memcpy(index->path + kept, index->bytes + index->at, len);
	index->path_len = kept + len;
	index->path[index->path_len] = '\0';
	index->at += len + 1;
	/* Earlier versions add one to eight NULs, up to a multiple of eight. */
	if (index->version < 4)
		index->at = start + ((index->at - 1 - start + 8) & ~(size_t)7);
	if (index->at > index->n || length != (index->path_len < LENGTH_MASK ? index->path_len : LENGTH_MASK))
		return -EBADMSG;
	return 0;
}

static int take_entry(struct index *index, uint32_t *ret_mode)
{
	size_t start = index->at, flags_at = start + HASH_AT + index->hash_len;
	unsigned int flags;

	if (flags_at + 2 > index->n)
		return -EBADMSG;
	*ret_mode = number(index->bytes + start + MODE_AT);
	flags = (unsigned int)index->bytes[flags_at] << 8 | index->bytes[flags_at + 1];
	index->at = flags_at + 2 + (index->version >= 3 && flags & FLAG_EXTENDED ? 2 : 0);
	return index->at < index->n ? take_path(index, start, flags & LENGTH_MASK) : -EBADMSG;
}

/* Extensions follow the entries: "link" names the other half of a split index by its hash. */
static void take_extensions(struct index *index, char ret_shared[static CORDON_GITINDEX_SHARED_SIZE])
{
	while (index->n - index->at >= 8 + index->hash_len) {
		const unsigned char *at = index->bytes + index->at;
		uint32_t size = number(at + 4);

		if (size > index->n - index->at - 8)
			return;
		if (memcmp(at, "link", 4) == 0 && size >= index->hash_len) {
			size_t len = (size_t)snprintf(ret_shared, CORDON_GITINDEX_SHARED_SIZE, "sharedindex.");

			for (size_t i = 0; i < index->hash_len; i++)
				len += (size_t)snprintf(ret_shared + len, CORDON_GITINDEX_SHARED_SIZE - len, "%02x",
							at[8 + i]);
		}
		index->at += 8 + size;
	}
}

/* With `found` NULL it only checks whether the bytes are an index with hashes of this length. */
static int walk(struct index *index, cordon_gitindex_fn found, void *data)
{
	uint32_t entries = number(index->bytes + 8), mode = 0;
	int r = 0;

	index->at = HEADER;
	index->path_len = 0;
	for (uint32_t i = 0; r == 0 && i < entries; i++) {
		r = take_entry(index, &mode);
		if (r == 0 && found)
			r = found(data, index->path, mode);
	}
	/* The checksum comes last. */
	return r == 0 && index->n - index->at < index->hash_len ? -EBADMSG : r;
}

int cordon_gitindex_parse(const void *bytes, size_t n, cordon_gitindex_fn found, void *data,
			  char ret_shared[static CORDON_GITINDEX_SHARED_SIZE])
{
	static const size_t hash_lens[] = { 20, 32 };
	CORDON_UNCLEARED struct index index = { .bytes = bytes, .n = n };

	ret_shared[0] = '\0';
	if (n < HEADER || memcmp(bytes, "DIRC", 4) != 0)
		return -EBADMSG;
	index.version = number(index.bytes + 4);
	if (index.version < 2 || index.version > 4)
		return -EBADMSG;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(hash_lens); i++) {
		int r;

		index.hash_len = hash_lens[i];
		if (walk(&index, NULL, NULL) < 0)
			continue;
		r = walk(&index, found, data);
		if (r == 0)
			take_extensions(&index, ret_shared);
		return r;
	}
	return -EBADMSG;
}
