/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes what the page makes of hostile bytes: whatever an agent writes, the only markup is that of the page itself. */
#include <assert.h>
#include <stdlib.h>

#include "base/text.h"
#include "page/form.h"
#include "page/html.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Valid UTF-8 without control characters but newlines and tabs, and no angle brackets but those of spans that are all closed. */
static void check(const char *text, size_t n, bool spans)
{
	static const char open[] = "<span class=\"a", shut[] = "</span>";
	long depth = 0;

	assert(cordon_utf8_valid(text, n));
	for (size_t i = 0; i < n; i++) {
		assert((unsigned char)text[i] >= 0x20 || text[i] == '\n' || text[i] == '\t');
		assert(text[i] != 0x7f);
		if (spans && n - i > sizeof(open) && memcmp(text + i, open, sizeof(open) - 1) == 0) {
			depth++;
			for (i += sizeof(open) - 1; text[i] != '"'; i++)
				assert(strchr(" bufk0123456789", text[i]));
			assert(text[++i] == '>');
		} else if (spans && n - i >= sizeof(shut) - 1 && memcmp(text + i, shut, sizeof(shut) - 1) == 0) {
			assert(--depth >= 0);
			i += sizeof(shut) - 2;
		} else {
			assert(!strchr("<>\"'", text[i]));
		}
	}
	assert(depth == 0);
}

static void check_form(const char *text, size_t n)
{
	autoform struct cordon_form form = { 0 };

	if (cordon_form_parse(text, n, &form) < 0)
		return;
	for (size_t i = 0; i < form.n; i++) {
		assert(cordon_utf8_valid(form.items[i].name, strlen(form.items[i].name)));
		assert(cordon_utf8_valid(form.items[i].value, strlen(form.items[i].value)));
		assert(cordon_form_get(&form, form.items[i].name));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cordon_html html = { .out = CORDON_BUF((size_t)64 << 20) };
	autobuf struct cordon_buf copy = CORDON_BUF((size_t)1 << 20);
	const char *text = (const char *)data;

	if (size > 65536 || cordon_buf_add(&copy, text, size) < 0 || !copy.data)
		return 0;
	cordon_html_output(&html, text, size);
	assert(!html.failed);
	check(html.out.data ? html.out.data : "", html.out.len, true);
	cordon_buf_reset(&html.out);
	cordon_html_text(&html, text, size);
	cordon_html(&html, "%s", copy.data);
	assert(!html.failed);
	check(html.out.data ? html.out.data : "", html.out.len, false);
	cordon_buf_reset(&html.out);
	cordon_html_url(&html, copy.data);
	for (size_t i = 0; i < html.out.len; i++)
		assert((unsigned char)html.out.data[i] > 0x20 && !strchr("<>\"'&?#/", html.out.data[i]));
	cordon_buf_done(&html.out);
	check_form(text, size);
	return 0;
}
