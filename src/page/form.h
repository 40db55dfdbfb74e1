/* SPDX-License-Identifier: Apache-2.0 */
/* The fields of a query or of a form, as browsers encode them: "a=1&b=two+words". */
#ifndef CORDON_PAGE_FORM_H
#define CORDON_PAGE_FORM_H

#include "base/util.h"

#define CORDON_FORM_FIELDS_MAX 4096

/* Names and values lie in `text`, decoded. */
struct cordon_form {
	char *text;
	struct cordon_form_field {
		const char *name, *value;
	} * items;
	size_t n;
};

#define autoform CORDON_CLEANUP(cordon_form_done)

/* -EINVAL for an encoding that is broken, for a NUL and for text that is not UTF-8; -E2BIG for too many; -ENOMEM. */
int cordon_form_parse(const char *text, size_t n, struct cordon_form *ret_fields);
void cordon_form_done(struct cordon_form *fields);
/* The first field with this name, or NULL. */
const char *cordon_form_get(const struct cordon_form *fields, const char *name);

#endif
