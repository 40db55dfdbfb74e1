/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the escaping of hostile bytes, and the cleaning of paths. */
#include <assert.h>
#include <stdlib.h>

#include "base/path.h"
#include "base/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_escape(const char *text, size_t size)
{
	autobuf struct cordon_buf buf = CORDON_BUF(16 * 65536);
	char fixed[64];

	if (cordon_text_escape(&buf, text, size) < 0)
		abort();
	assert(cordon_utf8_valid(buf.data, buf.len));
	for (size_t i = 0; i < buf.len; i++)
		assert((unsigned char)buf.data[i] >= 0x20 && buf.data[i] != 0x7f);
	cordon_text_escape_fixed(fixed, sizeof(fixed), text, size);
	assert(strlen(fixed) < sizeof(fixed) && strncmp(buf.data, fixed, strlen(fixed)) == 0);
}

static void check_clean(const char *path)
{
	char clean[CORDON_PATH_MAX], again[CORDON_PATH_MAX];

	if (cordon_path_clean(path, clean, sizeof(clean)) < 0)
		return;
	assert(cordon_path_clean(clean, again, sizeof(again)) == 0 && cordon_streq(clean, again));
	assert(!strstr(clean, "//"));
	assert(cordon_path_within(clean, *clean == '/' ? "/" : ""));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	autobuf struct cordon_buf path = CORDON_BUF(65536);

	check_escape((const char *)data, size);
	if (cordon_buf_add(&path, data, size) == 0)
		check_clean(path.data);
	return 0;
}
