/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records as structs. A table says which key of the JSON object is which member of the struct. One reader and one
 * writer use this table, so each key is written down once. The reader keeps keys that the table does not name, and the
 * writer writes them again.
 */
#ifndef CORDON_STATE_FIELDS_H
#define CORDON_STATE_FIELDS_H

#include <jansson.h>

#include "base/error.h"

typedef enum cordon_field_type {
	CORDON_FIELD_TEXT,    /* char[size]; absent when it is empty */
	CORDON_FIELD_STRING,  /* char *, owned; absent when it is NULL */
	CORDON_FIELD_BOOL,    /* bool */
	CORDON_FIELD_FLAG,    /* bool; absent when it is false */
	CORDON_FIELD_NUMBER,  /* int64_t */
	CORDON_FIELD_COUNT,   /* int64_t; absent when it is 0 */
	CORDON_FIELD_CODE,    /* int64_t; null when it is -1 */
	CORDON_FIELD_REAL,    /* double; absent when it is 0 */
	CORDON_FIELD_NAME,    /* unsigned int, an index into `names` */
	CORDON_FIELD_STRINGS, /* json_t *, an array of strings, owned; absent when it is NULL */
	CORDON_FIELD_ARRAY,   /* json_t *, an array of anything, owned; absent when it is NULL */
	CORDON_FIELD_NET,     /* json_t *, as cordon_net_json_valid() wants it, owned; absent when it is NULL */
	CORDON_FIELD_OBJECT,  /* json_t *, an object, owned; absent when it is NULL */
	CORDON_FIELD_INNER,   /* a struct with its own table, always written */
	/* uint64_t[CORDON_RECIPE__MAX]: the settings of a run that projects have (config/recipe_table.h), each with its own
	 * key. `key` is "limits" for those below that, else "". */
	CORDON_FIELD_RECIPE,
	CORDON_FIELD__MAX
} cordon_field_type;

struct cordon_record_kind;

struct cordon_field {
	const char *key;
	const char *former; /* the key in records of an older version, or NULL */
	cordon_field_type type;
	size_t offset, size;			/* of the member */
	const char *const *names;		/* CORDON_FIELD_NAME: ended by NULL */
	const struct cordon_record_kind *inner; /* CORDON_FIELD_INNER */
	size_t group; /* 1 + the offset of a bool that is true when the record has this field; 0: it always has it */
	bool hidden;  /* only cordon itself sees it, not people and agents */
	bool needed;  /* a record on disk without it is damaged */
	bool initial; /* the value of a bool in a record of an older version, which does not have it */
};

struct cordon_record_kind {
	const char *what; /* "project" */
	size_t size;
	size_t other;	       /* offset of a json_t *: NULL, or an object with the keys that the table does not name */
	size_t id, created_at; /* offsets of texts, by which lists are sorted */
	const struct cordon_field *fields; /* in the order in which they are written; ended by a NULL key */
};

/* Reads a record; ignores `schema`. Returns -EBADMSG (kind io) when a value has another type than the table says;
 * ret_record is untouched then. */
int cordon_fields_read(const struct cordon_record_kind *kind, const json_t *object, void *ret_record,
		       struct cordon_error *err);
/* Returns -EBADMSG when a field is missing that a record on disk must have. */
int cordon_fields_complete(const struct cordon_record_kind *kind, const json_t *object, struct cordon_error *err);
/* Returns the object, a new reference, without `hidden` fields when it is for others; NULL when there is no memory. */
json_t *cordon_fields_write(const struct cordon_record_kind *kind, const void *record, bool for_others);
/* Frees what the record owns and sets all of it to zero. */
void cordon_fields_done(const struct cordon_record_kind *kind, void *record);

#endif
