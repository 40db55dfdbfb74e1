/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the head of a request to the server: what passes is plainly written, and more bytes never change a judgement. */
#include <assert.h>

#include "serve/head.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	struct cordon_head whole, part;
	int r = cordon_head_check(text, size, &whole);

	assert(r == 0 || r == -EAGAIN || (r == -EINVAL && whole.status >= 400 && whole.why));
	for (size_t n = 0; n < size; n += 1 + size / 16) {
		int earlier = cordon_head_check(text, n, &part);

		assert(earlier == -EAGAIN || (earlier == r && part.status == whole.status && part.size == whole.size));
	}
	if (r < 0)
		return 0;
	assert(whole.size <= size && whole.size <= CORDON_HEAD_MAX && memcmp(text + whole.size - 4, "\r\n\r\n", 4) == 0);
	for (size_t i = 0; i < whole.size; i++) {
		assert(text[i] != '\0' && text[i] != 0x7f);
		assert(text[i] != '\n' || text[i - 1] == '\r');
		assert(text[i] != '\r' || text[i + 1] == '\n');
	}
	if (whole.query)
		assert(whole.query > text && whole.query + whole.query_size < text + whole.size);
	return 0;
}
