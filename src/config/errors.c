/* SPDX-License-Identifier: Apache-2.0 */
/* A bounded list of errors, kept in the order of their places. */
#include "config/errors.h"

void cordon_errors_done(struct cordon_errors *errors)
{
	free(errors->items);
	free(errors->places);
	*errors = (struct cordon_errors){ 0 };
}

/* Allocates all the memory at once: pages that no error uses cost nothing, and growing could fail half-way. */
static bool make_room(struct cordon_errors *errors)
{
	if (!errors->items)
		errors->items = calloc(CORDON_ERRORS_MAX, sizeof(*errors->items));
	if (!errors->places)
		errors->places = calloc(CORDON_ERRORS_MAX, sizeof(*errors->places));
	return errors->items && errors->places && errors->n < CORDON_ERRORS_MAX;
}

static bool stands_behind(const struct cordon_errors_place *place, size_t line, size_t column)
{
	if (!line || !place->line)
		return false;
	return place->line > line || (place->line == line && place->column > column);
}

int cordon_errors_add(struct cordon_errors *errors, const struct cordon_error *err, const char *file, size_t line,
		      size_t column)
{
	size_t at;

	if (!errors)
		return err->code;
	if (!make_room(errors)) {
		errors->dropped++;
		return err->code;
	}
	for (at = errors->n; at > 0 && stands_behind(&errors->places[at - 1], line, column); at--)
		;
	memmove(&errors->items[at + 1], &errors->items[at], (errors->n - at) * sizeof(*errors->items));
	memmove(&errors->places[at + 1], &errors->places[at], (errors->n - at) * sizeof(*errors->places));
	errors->n++;
	errors->items[at] = *err;
	errors->places[at] = (struct cordon_errors_place){ .line = line, .column = column };
	if (file)
		cordon_error_where(&errors->items[at], file, line, column);
	return err->code;
}

bool cordon_errors_drop(struct cordon_errors *errors)
{
	if (!errors || errors->n < CORDON_ERRORS_MAX)
		return false;
	errors->dropped++;
	return true;
}

int cordon_errors_first(const struct cordon_errors *errors, struct cordon_error *err)
{
	if (errors->n == 0)
		return errors->dropped ? cordon_fail_errno(err, -ENOMEM, "cannot report errors") : 0;
	if (err)
		*err = errors->items[0];
	return errors->items[0].code;
}
