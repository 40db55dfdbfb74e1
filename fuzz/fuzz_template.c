/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes templates of PRDs: whatever template and values are, the result is JSON with the same keys and structure. */
#include <assert.h>
#include <jansson.h>

#include "base/text.h"
#include "config/prd.h"
#include "config/template.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Keys, lengths and types are those of the template; only strings may differ. */
static void check_same(json_t *old, json_t *new)
{
	const char *key;
	json_t *value;

	assert(json_typeof(old) == json_typeof(new));
	if (json_is_object(old)) {
		assert(json_object_size(old) == json_object_size(new));
		json_object_foreach(old, key, value) {
			assert(json_object_get(new, key));
			check_same(value, json_object_get(new, key));
		}
	} else if (json_is_array(old)) {
		assert(json_array_size(old) == json_array_size(new));
		for (size_t i = 0; i < json_array_size(old); i++)
			check_same(json_array_get(old, i), json_array_get(new, i));
	} else if (!json_is_string(old)) {
		assert(json_equal(old, new));
	}
}

/* The first line of the input is the value of {{a}}, the rest the template. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *line = size ? memchr(data, '\n', size) : NULL;
	size_t n = line ? (size_t)(line - data) : 0, skip = line ? n + 1 : 0;
	const char *text = (const char *)data + skip;
	struct cordon_buf made = CORDON_BUF(CORDON_PRD_SIZE_MAX);
	struct cordon_template_var vars[2] = { { .name = "a", .n_name = 1 },
					       { .name = "b", .n_name = 1, .value = "{{a}}\"" } };
	struct cordon_errors errors = { 0 };
	char *value = strndup((const char *)data, n);
	json_t *old, *new;
	int r;

	assert(value);
	if (!cordon_utf8_valid(value, strlen(value)))
		value[0] = '\0';
	vars[0].value = value;
	r = cordon_template_fill("t", text, size - skip, vars, 2, &made, &errors);
	if (r == 0) {
		assert(errors.n == 0 && vars[0].used && vars[1].used);
		old = json_loadb(text, size - skip, JSON_REJECT_DUPLICATES, NULL);
		new = json_loadb(made.data, made.len, JSON_REJECT_DUPLICATES, NULL);
		assert(old && new);
		check_same(old, new);
		json_decref(old);
		json_decref(new);
	} else {
		assert(errors.n > 0 && made.len == 0);
	}
	free(value);
	cordon_errors_done(&errors);
	cordon_buf_done(&made);
	return 0;
}
