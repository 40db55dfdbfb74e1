/* SPDX-License-Identifier: Apache-2.0 */
/* The changes of a view, and what became of them, as JSON. */
#include <stdio.h>

#include "audit/audit.h"
#include "view/patch.h"
#include "view/show.h"

bool cordon_delta_shown(const struct cordon_delta_change *change, const char *const *paths, size_t n_paths)
{
	if (change->kind == CORDON_DELTA_TOUCHED && !change->attributes)
		return false;
	return cordon_delta_named(change->path, paths, n_paths);
}

int cordon_changes_order(const struct cordon_delta *delta, const char *const *paths, size_t n_paths,
			 size_t **ret_places, size_t *ret_n)
{
	size_t *places = calloc(delta->n + 1, sizeof(*places));
	size_t n = 0;

	if (!places)
		return -ENOMEM;
	for (int executed = 1; executed >= 0; executed--)
		for (size_t i = 0; i < delta->n; i++)
			if ((delta->changes[i].who != NULL) == executed &&
			    cordon_delta_shown(&delta->changes[i], paths, n_paths))
				places[n++] = i;
	*ret_places = places;
	*ret_n = n;
	return 0;
}

void cordon_changes_count(const struct cordon_delta *delta, struct cordon_changes_counts *ret_counts)
{
	struct cordon_changes_counts counts = { .left_out = delta->n_left };

	for (size_t i = 0; i < delta->n; i++) {
		const struct cordon_delta_change *change = &delta->changes[i];
		bool deleted = change->kind == CORDON_DELTA_DELETED;

		if (!cordon_delta_shown(change, NULL, 0) || S_ISDIR(deleted ? change->old.mode : change->new.mode))
			continue;
		++*(deleted ? &counts.deleted : change->kind == CORDON_DELTA_ADDED ? &counts.added : &counts.modified);
		counts.executed += change->who != NULL;
	}
	*ret_counts = counts;
}

static const char *type_name(mode_t mode)
{
	return S_ISDIR(mode) ? "directory" : S_ISLNK(mode) ? "link" : S_ISREG(mode) ? "file" : mode ? "special" : NULL;
}

static json_t *change_json(const struct cordon_delta *delta, const struct cordon_delta_change *change, bool counts)
{
	static const char *const kinds[] = { "added", "deleted", "modified", "touched" };
	const struct cordon_ident *ident = change->kind == CORDON_DELTA_DELETED ? &change->old : &change->new;
	struct cordon_patch_count count;
	char mode[8];
	json_t *object = json_pack("{s:o, s:s, s:s}", "path", cordon_audit_text(change->path), "status",
				   kinds[change->kind], "type", type_name(ident->mode));

	if (!object)
		return NULL;
	for (int old = 1; old >= 0; old--) {
		mode_t bits = old ? change->old.mode : change->new.mode;

		if (!bits)
			continue;
		snprintf(mode, sizeof(mode), "%04o", bits & 07777);
		json_object_set_new(object, old ? "old_mode" : "new_mode", json_string(mode));
	}
	if (!S_ISDIR(ident->mode))
		json_object_set_new(object, "size", json_integer((json_int_t)ident->size));
	if (change->who)
		json_object_set_new(object, "executed_by", json_string(change->who));
	if (change->edited)
		json_object_set_new(object, "host_changed", json_true());
	if (change->set_id)
		json_object_set_new(object, "set_id_dropped", json_true());
	if (counts && !S_ISDIR(ident->mode) && cordon_patch_count(delta, change, &count, NULL) == 0) {
		json_object_set_new(object, "binary", json_boolean(count.binary));
		json_object_set_new(object, "insertions", json_integer((json_int_t)count.added));
		json_object_set_new(object, "deletions", json_integer((json_int_t)count.removed));
	}
	return object;
}

json_t *cordon_changes_json(const struct cordon_delta *delta, const char *const *paths, size_t n_paths, bool counts)
{
	json_t *changes = json_array(), *left = json_array();
	autofree size_t *places = NULL;
	size_t n = 0;

	cordon_changes_order(delta, paths, n_paths, &places, &n);
	for (size_t i = 0; i < n; i++)
		json_array_append_new(changes, change_json(delta, &delta->changes[places[i]], counts));
	for (size_t i = 0; i < delta->n_left; i++)
		if (cordon_delta_named(delta->left[i].path, paths, n_paths))
			json_array_append_new(left,
					      json_pack("{s:o, s:s}", "path", cordon_audit_text(delta->left[i].path),
							"what", delta->left[i].what));
	return json_pack("{s:o, s:o}", "changes", changes, "left_out", left);
}

static json_t *items_json(const struct cordon_apply_items *items)
{
	json_t *array = json_array();

	for (size_t i = 0; i < items->n; i++) {
		const struct cordon_apply_item *item = &items->item[i];
		char letter[2] = { item->letter, '\0' };
		json_t *object = json_pack("{s:o, s:s}", "path", cordon_audit_text(item->path), "status", letter);

		if (item->dir)
			json_object_set_new(object, "type", json_string("directory"));
		if (item->merged)
			json_object_set_new(object, "merged", json_true());
		if (item->part)
			json_object_set_new(object, "part", json_true());
		if (item->warned)
			json_object_set_new(object, "warned", json_true());
		if (item->who)
			json_object_set_new(object, "executed_by", json_string(item->who));
		if (item->why)
			json_object_set_new(object, "why", cordon_audit_text(item->why));
		json_array_append_new(array, object);
	}
	return array;
}

json_t *cordon_apply_json(const struct cordon_apply_result *result)
{
	return json_pack("{s:o, s:o, s:o, s:o}", "changed", items_json(&result->applied), "conflicts",
			 items_json(&result->conflicts), "refused", items_json(&result->refused), "left_out",
			 items_json(&result->left));
}
