/* SPDX-License-Identifier: Apache-2.0 */
/* The changes of a view, and what became of them, as JSON. */
#include <stdio.h>

#include "audit/audit.h"
#include "base/json.h"
#include "base/path.h"
#include "view/patch.h"
#include "view/show.h"

#define SHORT_ID 9

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

/* Says how many there are, to whom not all of them may be shown. */
static json_t *put_total(json_t *object, size_t total, bool truncated, size_t max)
{
	if (object && max) {
		json_object_set_new(object, "total", json_integer((json_int_t)total));
		json_object_set_new(object, "truncated", json_boolean(truncated));
	}
	return object;
}

json_t *cordon_changes_json(const struct cordon_delta *delta, const char *const *paths, size_t n_paths, bool counts,
			    size_t max)
{
	json_t *changes = json_array(), *left = json_array();
	size_t n = 0, n_left = 0, most = max ? max : SIZE_MAX;
	autofree size_t *places = NULL;

	cordon_changes_order(delta, paths, n_paths, &places, &n);
	for (size_t i = 0; i < n && i < most; i++)
		json_array_append_new(changes, change_json(delta, &delta->changes[places[i]], counts));
	for (size_t i = 0; i < delta->n_left; i++)
		if (cordon_delta_named(delta->left[i].path, paths, n_paths) && n_left++ < most)
			json_array_append_new(left,
					      json_pack("{s:o, s:s}", "path", cordon_audit_text(delta->left[i].path),
							"what", delta->left[i].what));
	return put_total(json_pack("{s:o, s:o}", "changes", changes, "left_out", left), n, n > most || n_left > most,
			 max);
}

static json_t *items_json(const struct cordon_apply_items *items, size_t most)
{
	json_t *array = json_array();

	for (size_t i = 0; i < items->n && i < most; i++) {
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

json_t *cordon_git_take_json(const struct cordon_git_take *take)
{
	static const char *const states[] = { "nothing", "ready", "refused", "taken" };
	json_t *refs = json_array(), *findings = json_array(), *notes = json_array();

	for (size_t i = 0; i < take->n_refs; i++)
		json_array_append_new(refs, json_pack("{s:o, s:s, s:s, s:b}", "name",
						      cordon_audit_text(take->refs[i].name), "old", take->refs[i].old,
						      "new", take->refs[i].new, "forced", (int)take->refs[i].forced));
	for (size_t i = 0; i < take->n_findings; i++)
		json_array_append_new(findings, json_pack("{s:s, s:s, s:s, s:b}", "commit", take->findings[i].commit,
							  "path", take->findings[i].path, "why", take->findings[i].why,
							  "refused", (int)take->findings[i].refused));
	for (size_t i = 0; i < take->n_notes; i++)
		json_array_append_new(notes, json_string(take->notes[i]));
	return json_pack("{s:s, s:I, s:I, s:I, s:o, s:o, s:o}", "state", states[take->state], "commits",
			 (json_int_t)take->n_commits, "refused", (json_int_t)take->n_refused, "warned",
			 (json_int_t)take->n_warned, "refs", refs, "paths", findings, "notes", notes);
}

static int ref_line(const json_t *ref, struct cordon_buf *line)
{
	const char *name = cordon_json_text(ref, "name"), *old = cordon_json_text(ref, "old"),
		   *new = cordon_json_text(ref, "new");
	bool tag = strncmp(name, "refs/tags/", 10) == 0;
	const char *shown = strncmp(name, "refs/heads/", 11) == 0 ? name + 11 : name + (strlen(name) > 5 ? 5 : 0);

	if (!*old)
		return cordon_buf_addf(line, "%s: new %s at %.*s", shown, tag ? "tag" : "branch", SHORT_ID, new);
	if (cordon_json_true(ref, "forced"))
		return cordon_buf_addf(line, "%s: %.*s became %.*s, which does not contain it; the old one is %s@{1}",
				       shown, SHORT_ID, old, SHORT_ID, new, shown);
	return cordon_buf_addf(line, "%s: %.*s..%.*s", shown, SHORT_ID, old, SHORT_ID, new);
}

static int path_line(const json_t *path, struct cordon_buf *line)
{
	const char *commit = cordon_json_text(path, "commit");

	return cordon_buf_addf(line, "%s: %s (%s%.*s): %s", cordon_json_true(path, "refused") ? "REFUSED" : "WARNING",
			       cordon_json_text(path, "path"), *commit ? "commit " : "staged", SHORT_ID, commit,
			       cordon_json_text(path, "why"));
}

void cordon_git_lines(const json_t *git, void (*tell)(void *data, const char *line), void *data)
{
	const json_t *paths = json_object_get(git, "paths"), *notes = json_object_get(git, "notes");
	const json_t *refs = cordon_json_is(git, "state", "taken") ? json_object_get(git, "refs") : NULL;
	size_t shown = json_array_size(paths), i;
	json_int_t all = cordon_json_integer(git, "refused") + cordon_json_integer(git, "warned");
	autobuf struct cordon_buf line = CORDON_BUF(4 * CORDON_PATH_MAX);
	json_t *item;

	json_array_foreach(paths, i, item) {
		cordon_buf_reset(&line);
		if (path_line(item, &line) == 0)
			tell(data, line.data);
	}
	cordon_buf_reset(&line);
	if (all > (json_int_t)shown &&
	    cordon_buf_addf(&line, "and %lld paths more", (long long)all - (long long)shown) == 0)
		tell(data, line.data);
	json_array_foreach(notes, i, item)
		tell(data, json_string_value(item));
	json_array_foreach(refs, i, item) {
		cordon_buf_reset(&line);
		if (ref_line(item, &line) == 0)
			tell(data, line.data);
	}
	cordon_buf_reset(&line);
	if (*cordon_json_text(git, "id") &&
	    cordon_buf_addf(
		    &line,
		    "Nothing was taken over. 'cordon git take %.8s' tries again, 'cordon git drop %.8s' removes the commits",
		    cordon_json_text(git, "id"), cordon_json_text(git, "id")) == 0)
		tell(data, line.data);
}

static json_t *repositories_json(const struct cordon_repositories *found)
{
	json_t *list = json_array();

	for (size_t i = 0; i < found->n && i < CORDON_REPOSITORIES_SHOWN_MAX; i++) {
		autobuf struct cordon_buf text = CORDON_BUF(2 * CORDON_PATH_MAX);

		if (cordon_repository_text(&found->items[i], &text) == 0)
			json_array_append_new(list, json_string(text.data));
	}
	return list;
}

json_t *cordon_apply_json(const struct cordon_apply_result *result, size_t max)
{
	size_t most = max ? max : SIZE_MAX;
	json_t *object = json_pack("{s:o, s:o, s:o, s:o}", "changed", items_json(&result->applied, most), "conflicts",
				   items_json(&result->conflicts, most), "refused", items_json(&result->refused, most),
				   "left_out", items_json(&result->left, most));

	put_total(object, result->applied.n,
		  result->applied.n > most || result->conflicts.n > most || result->refused.n > most ||
			  result->left.n > most,
		  max);
	if (object && result->git)
		json_object_set_new(object, "git", cordon_git_take_json(result->git));
	if (object && result->repositories.n)
		json_object_set_new(object, "repositories", repositories_json(&result->repositories));
	return object;
}
