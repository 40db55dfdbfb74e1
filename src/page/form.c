/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes queries and forms. */
#include "page/form.h"

#include "base/text.h"

void cordon_form_done(struct cordon_form *fields)
{
	free(fields->text);
	free(fields->items);
	*fields = (struct cordon_form){ 0 };
}

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Decodes one name or value in place and ends it with a NUL. */
static int decode(char *text, size_t n)
{
	char *to = text;
	size_t i = 0;

	while (i < n) {
		int high = i + 2 < n ? digit(text[i + 1]) : -1, low = i + 2 < n ? digit(text[i + 2]) : -1;

		if (text[i] == '%') {
			if (high < 0 || low < 0 || (high == 0 && low == 0))
				return -EINVAL;
			*to++ = (char)(high << 4 | low);
			i += 3;
		} else {
			*to++ = (char)(text[i] == '+' ? ' ' : text[i]);
			if (text[i++] == '\0')
				return -EINVAL;
		}
	}
	*to = '\0';
	return cordon_utf8_valid(text, (size_t)(to - text)) ? 0 : -EINVAL;
}

static int add(struct cordon_form *fields, char *pair)
{
	size_t name = strcspn(pair, "="), value = pair[name] ? strlen(pair + name + 1) : 0;
	struct cordon_form_field *item = &fields->items[fields->n];

	item->name = pair;
	item->value = pair[name] ? pair + name + 1 : pair + name;
	if (decode(pair, name) < 0 || (pair + name != item->value && decode(pair + name + 1, value) < 0))
		return -EINVAL;
	fields->n++;
	return 0;
}

int cordon_form_parse(const char *text, size_t n, struct cordon_form *ret_fields)
{
	autoform struct cordon_form fields = { 0 };
	size_t pairs = 1;
	int r = 0;

	if (memchr(text, '\0', n))
		return -EINVAL;
	for (size_t i = 0; i < n; i++)
		pairs += text[i] == '&';
	if (pairs > CORDON_FORM_FIELDS_MAX)
		return -E2BIG;
	fields.text = strndup(text, n);
	fields.items = calloc(pairs, sizeof(*fields.items));
	if (!fields.text || !fields.items)
		return -ENOMEM;
	for (char *at = fields.text, *next; r == 0 && at; at = next) {
		next = strchr(at, '&');
		if (next)
			*next++ = '\0';
		if (*at)
			r = add(&fields, at);
	}
	if (r < 0)
		return r;
	*ret_fields = fields;
	fields = (struct cordon_form){ 0 };
	return 0;
}

const char *cordon_form_get(const struct cordon_form *fields, const char *name)
{
	for (size_t i = 0; i < fields->n; i++)
		if (cordon_streq(fields->items[i].name, name))
			return fields->items[i].value;
	return NULL;
}
