/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the HTTP requests that the agent sends: however the stream is cut into pieces, the same bytes are right. */
#include <assert.h>
#include <stdlib.h>

#include "net/http.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* How many bytes of the stream are sent on when it comes in pieces; *ret_error when an error ends it. */
static size_t sent(const char *data, size_t size, size_t piece, bool *ret_error)
{
	struct cordon_http http = { .name = "a.example.com", .port = 80 };
	size_t done = 0;

	*ret_error = false;
	for (size_t have = piece < size ? piece : size;; have = size - have < piece ? size : have + piece) {
		ssize_t r;

		while (done < have && (r = cordon_http_look(&http, data + done, have - done)) != 0) {
			if (r < 0) {
				*ret_error = true;
				return done;
			}
			assert((size_t)r <= have - done);
			done += (size_t)r;
			http.websocket = false;
		}
		if (have == size)
			return done;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	bool whole, pieces;
	char *text = malloc(size + 1);

	if (!text || !size || size > 8192) {
		free(text);
		return 0;
	}
	memcpy(text, data, size);
	size_t a = sent(text, size, size, &whole), b = sent(text, size, 1 + data[0] % 7, &pieces);

	/* An error may be found earlier where less is there, but nothing is sent on behind it. */
	assert(whole ? b <= a || pieces : true);
	assert(!whole && !pieces ? a == b : true);
	free(text);
	return 0;
}
