/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the ClientHello that the agent sends. */
#include <assert.h>

#include "net/hello.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char name[CORDON_NET_NAME_SIZE], again[CORDON_NET_NAME_SIZE];
	ssize_t r = cordon_hello_name(data, size, name);

	if (r > 0) {
		/* More bytes do not change the answer, and fewer never give another one. */
		assert((size_t)r <= size && cordon_net_name_clean(name, strlen(name), again) == 0 &&
		       cordon_streq(name, again));
		for (size_t n = size > 64 ? size - 64 : 0; n < size; n++) {
			ssize_t fewer = cordon_hello_name(data, n, again);

			assert(n < (size_t)r ? fewer <= 0 : fewer == r && cordon_streq(name, again));
		}
	}
	return 0;
}
