/* SPDX-License-Identifier: Apache-2.0 */
/* Members of a JSON object, with a default for a member that is missing or has another type. */
#ifndef CORDON_BASE_JSON_H
#define CORDON_BASE_JSON_H

#include <jansson.h>
#include <stdbool.h>

/* `object` may be NULL or no object: then it has no members. A string lives as long as its object. */

/* Returns NULL when there is no such string. */
const char *cordon_json_string(const json_t *object, const char *key);
/* Returns "" when there is no such string. */
const char *cordon_json_text(const json_t *object, const char *key);
/* Whether the member is the string `text`. */
bool cordon_json_is(const json_t *object, const char *key, const char *text);
/* Whether the member is true. */
bool cordon_json_true(const json_t *object, const char *key);
/* Returns 0 when there is no such integer. */
json_int_t cordon_json_integer(const json_t *object, const char *key);
json_int_t cordon_json_integer_or(const json_t *object, const char *key, json_int_t otherwise);
/* Whether an array (or NULL) has this string. */
bool cordon_json_has(const json_t *array, const char *text);

#endif
