/* SPDX-License-Identifier: Apache-2.0 */
/* The short form of what a session's run protects. */
#include "store/protected.h"

#include <stdio.h>

#include "base/json.h"
#include "base/path.h"
#include "base/util.h"
#include "policy/policy.h"
#include "protect/defaults.h"

#define ABSENT "absent"

/* Rows of the table that follow each other, below one directory. */
struct rows {
	char dir[CORDON_PATH_MAX];
	size_t first, n;
};

void cordon_protected_table(char ret_table[static CORDON_PROTECTED_TABLE_SIZE])
{
	autobuf struct cordon_buf names = CORDON_BUF(1 << 20);
	char digest[CORDON_DIGEST_SIZE];
	size_t n;
	const struct cordon_protect_row *rows = cordon_protect_rows(&n);
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i++)
		r = cordon_buf_addf(&names, "%s\n", rows[i].path);
	ret_table[0] = '\0'; /* equals no digest */
	if (r < 0)
		return;
	cordon_digest(names.data, names.len, digest);
	cordon_copy(ret_table, CORDON_PROTECTED_TABLE_SIZE, digest, CORDON_DIGEST_SHOWN);
}

/* Whether the entry says no more than its state and path do. */
static bool is_plain(const json_t *entry)
{
	const char *where = cordon_json_string(entry, "where");
	const char *state = cordon_json_string(entry, "state");

	return json_object_size(entry) == 5 && json_is_string(json_object_get(entry, "path")) && state &&
	       *state >= 'a' && *state <= 'z' && !strchr(state, ' ') && where &&
	       cordon_streq(where, CORDON_PROTECTED_BY_DEFAULT) && cordon_json_true(entry, "by_default") &&
	       json_is_false(json_object_get(entry, "hard_links"));
}

/* Whether the path is a row of the table, below a directory of ret_len bytes. */
static bool is_row(const char *path, const char *row, size_t *ret_len)
{
	size_t len = strlen(path), tail = strlen(row);

	if (len < tail || !cordon_streq(path + len - tail, row) || (len > tail && path[len - tail - 1] != '/'))
		return false;
	*ret_len = len > tail ? len - tail - 1 : 0;
	return len == tail || *ret_len; /* an absolute path is below no directory of the root */
}

static bool continues(const struct rows *run, const char *path)
{
	size_t n, len;
	const struct cordon_protect_row *rows = cordon_protect_rows(&n);

	return run->n && run->first + run->n < n && is_row(path, rows[run->first + run->n].path, &len) &&
	       len == strlen(run->dir) && memcmp(path, run->dir, len) == 0;
}

/* Begins with the longest row that the path ends in. */
static bool begins(struct rows *run, const char *path)
{
	size_t n, len, best = SIZE_MAX;
	const struct cordon_protect_row *rows = cordon_protect_rows(&n);

	for (size_t i = 0; i < n; i++) {
		if (is_row(path, rows[i].path, &len) && len < best) {
			best = len;
			run->first = i;
		}
	}
	run->n = best != SIZE_MAX && cordon_copy(run->dir, sizeof(run->dir), path, best) == 0;
	return run->n;
}

/* The last item, if it has rows below this directory. */
static const char *last_rows(const json_t *items, const char *dir)
{
	const char *text = json_string_value(json_array_get(items, json_array_size(items) - 1));
	const char *space = text ? strchr(text, ' ') : NULL;

	return space && *text >= '0' && *text <= '9' && cordon_streq(space + 1, dir) ? text : NULL;
}

static int add_rows(json_t *items, struct rows *run)
{
	const char *before = last_rows(items, run->dir);
	size_t n = run->n, total;
	const char *first = cordon_protect_rows(&total)[run->first].path;

	run->n = 0;
	if (n == 0)
		return 0;
	if (before)
		return json_array_set_new(items, json_array_size(items) - 1,
					  json_sprintf("%.*s,%zu-%zu %s", (int)strcspn(before, " "), before, run->first,
						       run->first + n - 1, run->dir));
	/* One name is no shorter as a row. */
	return json_array_append_new(items,
				     n == 1 ? json_sprintf(ABSENT " %s%s%s", run->dir, *run->dir ? "/" : "", first)
					    : json_sprintf("%zu-%zu %s", run->first, run->first + n - 1, run->dir));
}

static int pack_entry(json_t *items, struct rows *run, json_t *entry)
{
	const char *path = cordon_json_string(entry, "path");
	const char *state = cordon_json_string(entry, "state");
	bool plain = is_plain(entry);

	if (plain && cordon_streq(state, ABSENT) && continues(run, path)) {
		run->n++;
		return 0;
	}
	if (add_rows(items, run) < 0)
		return -1;
	if (!plain)
		return json_array_append(items, entry);
	return cordon_streq(state, ABSENT) && begins(run, path)
		       ? 0
		       : json_array_append_new(items, json_sprintf("%s %s", state, path));
}

json_t *cordon_protected_pack(const json_t *entries)
{
	json_auto_t *items = json_array();
	struct rows run = { .n = 0 };
	size_t i;
	json_t *entry;
	int r = items ? 0 : -1;

	json_array_foreach(entries, i, entry) {
		if (r == 0)
			r = pack_entry(items, &run, entry);
	}
	if (r == 0)
		r = add_rows(items, &run);
	return r < 0 ? NULL : cordon_steal_ptr(&items);
}

/* What all plain entries have in common. */
static json_t *plain_entry(json_t *state, json_t *where, json_t *path)
{
	return json_pack("{s:o, s:O, s:b, s:O, s:b}", "path", path, "state", state, "by_default", 1, "where", where,
			 "hard_links", 0);
}

static int unpack_range(json_t *entries, const char *text, const char **ret_end, const char *dir, const char *table,
			json_t *where, size_t *unlisted)
{
	char ours[CORDON_PROTECTED_TABLE_SIZE], *end;
	size_t n, first = strtoul(text, &end, 10), last = 0;
	bool known = dir && *end == '-';
	const struct cordon_protect_row *rows = cordon_protect_rows(&n);
	json_auto_t *state = json_string(ABSENT);
	int r = 0;

	if (known) {
		last = strtoul(end + 1, &end, 10);
		known = first <= last && (*end == ',' || *end == ' ');
	}
	*ret_end = end;
	cordon_protected_table(ours);
	if (!known || last >= n || !*ours || !cordon_streq(table, ours)) {
		*unlisted += known && last < CORDON_PROTECTED_MAX ? last - first + 1 : 1;
		return 0;
	}
	for (size_t i = first; r == 0 && i <= last; i++)
		r = json_array_append_new(entries,
					  plain_entry(state, where,
						      json_sprintf("%s%s%s", dir, *dir ? "/" : "", rows[i].path)));
	return r;
}

/* "0-150,158-163 DIR" */
static int unpack_rows(json_t *entries, const char *text, const char *table, json_t *where, size_t *unlisted)
{
	const char *space = strchr(text, ' ');
	int r;

	do
		r = unpack_range(entries, text, &text, space ? space + 1 : NULL, table, where, unlisted);
	while (r == 0 && *text++ == ',');
	return r;
}

static int unpack_item(json_t *entries, json_t *item, const char *table, json_t *where, size_t *unlisted)
{
	const char *text = json_string_value(item), *space = text ? strchr(text, ' ') : NULL;
	json_auto_t *state = NULL;

	if (json_is_object(item))
		return json_array_append(entries, item);
	if (text && *text >= '0' && *text <= '9')
		return unpack_rows(entries, text, table, where, unlisted);
	if (!space) {
		++*unlisted;
		return 0;
	}
	state = json_stringn(text, (size_t)(space - text));
	return json_array_append_new(entries, plain_entry(state, where, json_string(space + 1)));
}

json_t *cordon_protected_unpack(const json_t *items, const char *table, size_t *ret_unlisted)
{
	json_auto_t *entries = json_array();
	json_auto_t *where = json_string(CORDON_PROTECTED_BY_DEFAULT);
	size_t i, unlisted = 0;
	json_t *item;
	int r = entries && where ? 0 : -1;

	json_array_foreach(items, i, item) {
		if (r == 0)
			r = unpack_item(entries, item, table, where, &unlisted);
	}
	*ret_unlisted = unlisted;
	return r < 0 ? NULL : cordon_steal_ptr(&entries);
}
