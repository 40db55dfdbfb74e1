/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the ClientHello that the agent sends. */
#include <assert.h>

#include "net/hello.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char name[CORDON_NET_NAME_SIZE], again[CORDON_NET_NAME_SIZE];
	int r = cordon_hello_name(data, size, name);

	if (r == 1) {
		/* More bytes do not change the answer, and fewer never give another one. */
		assert(cordon_net_name_clean(name, strlen(name), again) == 0 && cordon_streq(name, again));
		for (size_t n = size > 64 ? size - 64 : 0; n < size; n++)
			assert(cordon_hello_name(data, n, again) == 0 ||
			       (cordon_hello_name(data, n, again) == 1 && cordon_streq(name, again)));
	}
	return 0;
}
