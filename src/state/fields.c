/* SPDX-License-Identifier: Apache-2.0 */
/* The one reader and the one writer of records. */
#include "state/fields.h"
#include "base/util.h"
#include "config/net_setting.h"
#include "config/recipe_table.h"

static void *member(void *record, const struct cordon_field *field)
{
	return (char *)record + field->offset;
}

static const void *const_member(const void *record, const struct cordon_field *field)
{
	return (const char *)record + field->offset;
}

static bool *group_of(void *record, const struct cordon_field *field)
{
	return field->group ? (bool *)((char *)record + field->group - 1) : NULL;
}

static json_t **other_of(void *record, const struct cordon_record_kind *kind)
{
	return (json_t **)(void *)((char *)record + kind->other);
}

static cordon_recipe_id recipe_id(const struct cordon_field *field, const char *key)
{
	return field->type == CORDON_FIELD_RECIPE ? cordon_recipe_of_project(key, *field->key) : CORDON_RECIPE__MAX;
}

static const struct cordon_field *find(const struct cordon_record_kind *kind, const char *key)
{
	for (const struct cordon_field *field = kind->fields; field->key; field++)
		if ((field->type == CORDON_FIELD_RECIPE ? recipe_id(field, key) != CORDON_RECIPE__MAX
							: cordon_streq(field->key, key)) ||
		    (field->former && cordon_streq(field->former, key)))
			return field;
	return NULL;
}

static bool all_strings(const json_t *value)
{
	size_t i;
	json_t *item;

	if (!json_is_array(value))
		return false;
	json_array_foreach(value, i, item) {
		if (!json_is_string(item))
			return false;
	}
	return true;
}

static int read_name(const char *const *names, const json_t *value, unsigned int *ret)
{
	const char *text = json_string_value(value);

	for (unsigned int i = 0; text && names[i]; i++) {
		if (cordon_streq(names[i], text)) {
			*ret = i;
			return 0;
		}
	}
	return -EBADMSG;
}

static int read_number(const json_t *value, int64_t *ret)
{
	if (!json_is_integer(value))
		return -EBADMSG;
	*ret = json_integer_value(value);
	return 0;
}

static int read_real(const json_t *value, double *ret)
{
	if (!json_is_number(value))
		return -EBADMSG;
	*ret = json_number_value(value);
	return 0;
}

static int read_shared(bool fits, json_t *value, json_t **ret)
{
	if (!fits)
		return -EBADMSG;
	*ret = json_deep_copy(value);
	return *ret ? 0 : -ENOMEM;
}

static int read_string(const json_t *value, char **ret)
{
	if (!json_is_string(value))
		return -EBADMSG;
	*ret = strdup(json_string_value(value));
	return *ret ? 0 : -ENOMEM;
}

static int read_recipe(cordon_recipe_id id, const json_t *value, uint64_t *values)
{
	return cordon_recipe_from_json(id, value, &values[id], NULL) < 0 ? -EBADMSG : 0;
}

static int read_value(const struct cordon_field *field, const char *key, json_t *value, void *to)
{
	switch (field->type) {
	case CORDON_FIELD_TEXT:
		return json_is_string(value) && cordon_copy(to, field->size, json_string_value(value),
							    json_string_length(value)) == 0
			       ? 0
			       : -EBADMSG;
	case CORDON_FIELD_STRING:
		return read_string(value, to);
	case CORDON_FIELD_BOOL:
	case CORDON_FIELD_FLAG:
		*(bool *)to = json_is_true(value);
		return json_is_boolean(value) ? 0 : -EBADMSG;
	case CORDON_FIELD_CODE:
		if (json_is_null(value)) {
			*(int64_t *)to = -1;
			return 0;
		}
		return read_number(value, to);
	case CORDON_FIELD_NUMBER:
	case CORDON_FIELD_COUNT:
		return read_number(value, to);
	case CORDON_FIELD_REAL:
		return read_real(value, to);
	case CORDON_FIELD_NAME:
		return read_name(field->names, value, to);
	case CORDON_FIELD_STRINGS:
		return read_shared(all_strings(value), value, to);
	case CORDON_FIELD_ARRAY:
		return read_shared(json_is_array(value), value, to);
	case CORDON_FIELD_NET:
		return read_shared(cordon_net_json_valid("net", value, NULL) == 0, value, to);
	case CORDON_FIELD_OBJECT:
		return read_shared(json_is_object(value), value, to);
	case CORDON_FIELD_INNER:
		return json_is_object(value) ? cordon_fields_read(field->inner, value, to, NULL) : -EBADMSG;
	case CORDON_FIELD_RECIPE:
		return read_recipe(recipe_id(field, key), value, to);
	case CORDON_FIELD__MAX:
	default:
		return -EBADMSG;
	}
}

static void set_initials(const struct cordon_record_kind *kind, void *record)
{
	for (const struct cordon_field *field = kind->fields; field->key; field++)
		if (field->initial)
			*(bool *)member(record, field) = true;
}

static int read_key(const struct cordon_record_kind *kind, const char *key, json_t *value, void *record)
{
	const struct cordon_field *field = find(kind, key);
	json_t **other = other_of(record, kind);

	if (field) {
		bool *group = group_of(record, field);

		if (group)
			*group = true;
		return read_value(field, key, value, member(record, field));
	}
	if (cordon_streq(key, "schema"))
		return 0;
	if (!*other)
		*other = json_object();
	return json_object_set_new(*other, key, json_deep_copy(value)) < 0 ? -ENOMEM : 0;
}

int cordon_fields_read(const struct cordon_record_kind *kind, const json_t *object, void *ret_record,
		       struct cordon_error *err)
{
	void *record = calloc(1, kind->size);
	const char *key;
	json_t *value;
	int r = record ? 0 : -ENOMEM;

	if (r == 0)
		set_initials(kind, record);
	/* jansson's iterator takes no const object; we change nothing through it. */
	json_object_foreach((json_t *)(uintptr_t)object, key, value) {
		if (r == 0)
			r = read_key(kind, key, value, record);
		if (r == -EBADMSG) {
			cordon_fail(err, r, CORDON_KIND_IO, "the record of a %s is damaged: %.80s", kind->what, key);
			break;
		}
	}
	if (r == 0)
		memcpy(ret_record, record, kind->size);
	else if (record)
		cordon_fields_done(kind, record);
	free(record);
	return r == -ENOMEM ? cordon_fail(err, r, CORDON_KIND_LIMIT, "out of memory") : r;
}

int cordon_fields_complete(const struct cordon_record_kind *kind, const json_t *object, struct cordon_error *err)
{
	for (const struct cordon_field *field = kind->fields; field->key; field++)
		if (field->needed && !json_object_get(object, field->key))
			return cordon_fail(err, -EBADMSG, CORDON_KIND_IO, "the record of a %s is damaged: it has no %s",
					   kind->what, field->key);
	return 0;
}

static json_t *write_shared(const json_t *value)
{
	return value ? json_deep_copy(value) : NULL;
}

/* Returns NULL when there is no value, and then *ret_there is false, or when there is no memory. */
static json_t *write_value(const struct cordon_field *field, const void *from, bool for_others, bool *ret_there)
{
	const char *text;
	int64_t number;

	*ret_there = true;
	switch (field->type) {
	case CORDON_FIELD_TEXT:
		text = from;
		*ret_there = *text;
		return *text ? json_string(text) : NULL;
	case CORDON_FIELD_STRING:
		text = *(char *const *)from;
		*ret_there = text;
		return text ? json_string(text) : NULL;
	case CORDON_FIELD_FLAG:
		*ret_there = *(const bool *)from;
		return json_boolean(*(const bool *)from);
	case CORDON_FIELD_BOOL:
		return json_boolean(*(const bool *)from);
	case CORDON_FIELD_NUMBER:
	case CORDON_FIELD_COUNT:
	case CORDON_FIELD_CODE:
		number = *(const int64_t *)from;
		*ret_there = number || field->type != CORDON_FIELD_COUNT;
		return field->type == CORDON_FIELD_CODE && number == -1 ? json_null() : json_integer(number);
	case CORDON_FIELD_REAL:
		*ret_there = *(const double *)from > 0;
		return json_real(*(const double *)from);
	case CORDON_FIELD_NAME:
		return json_string(field->names[*(const unsigned int *)from]);
	case CORDON_FIELD_STRINGS:
	case CORDON_FIELD_ARRAY:
	case CORDON_FIELD_NET:
	case CORDON_FIELD_OBJECT:
		*ret_there = *(json_t *const *)from;
		return write_shared(*(json_t *const *)from);
	case CORDON_FIELD_INNER:
		return cordon_fields_write(field->inner, from, for_others);
	case CORDON_FIELD_RECIPE: /* write_recipe() */
	case CORDON_FIELD__MAX:
	default:
		return NULL;
	}
}

static int write_recipe(const struct cordon_field *field, const uint64_t *values, json_t *object)
{
	int r = 0;

	for (cordon_recipe_id id = 0; r == 0 && id < CORDON_RECIPE__MAX; id++) {
		const struct cordon_recipe_row *row = &cordon_recipe_rows[id];
		const char *below = row->project ? cordon_recipe_limit(row->project) : NULL;

		if (row->project && (below != NULL) == (*field->key != '\0') && (values[id] || row->always))
			r = json_object_set_new(object, below ? below : row->project,
						cordon_recipe_to_json(id, values[id]));
	}
	return r;
}

json_t *cordon_fields_write(const struct cordon_record_kind *kind, const void *record, bool for_others)
{
	const json_t *other = *(json_t *const *)(const void *)((const char *)record + kind->other);
	json_t *object = json_object();
	int r = object ? 0 : -1;

	for (const struct cordon_field *field = kind->fields; r == 0 && field->key; field++) {
		bool there = !field->group || *(const bool *)((const char *)record + field->group - 1);
		json_t *value = NULL;

		if (!there || (for_others && field->hidden))
			continue;
		if (field->type == CORDON_FIELD_RECIPE) {
			r = write_recipe(field, const_member(record, field), object);
			continue;
		}
		value = write_value(field, const_member(record, field), for_others, &there);
		if (there)
			r = json_object_set_new(object, field->key, value);
		else
			json_decref(value);
	}
	if (r == 0 && other)
		r = json_object_update_missing(object, (json_t *)(uintptr_t)other);
	if (r == 0)
		return object;
	json_decref(object);
	return NULL;
}

void cordon_fields_done(const struct cordon_record_kind *kind, void *record)
{
	for (const struct cordon_field *field = kind->fields; field->key; field++) {
		void *at = member(record, field);

		if (field->type == CORDON_FIELD_STRING)
			free(*(char **)at);
		if (field->type == CORDON_FIELD_STRINGS || field->type == CORDON_FIELD_ARRAY ||
		    field->type == CORDON_FIELD_NET || field->type == CORDON_FIELD_OBJECT)
			json_decref(*(json_t **)at);
		if (field->type == CORDON_FIELD_INNER)
			cordon_fields_done(field->inner, at);
	}
	json_decref(*other_of(record, kind));
	memset(record, 0, kind->size);
}
