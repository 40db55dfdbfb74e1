/* SPDX-License-Identifier: Apache-2.0 */
/* Lists views, finds the one that a person means, and removes those that are not needed any more. */
#include <sys/stat.h>

#include "base/dirs.h"
#include "base/time.h"
#include "store/store.h"
#include "view/internal.h"
#include "view/journal.h"

void cordon_view_list_done(struct cordon_view_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		cordon_view_record_done(&list->items[i]);
	free(list->items);
	*list = (struct cordon_view_list){ 0 };
}

static int add(struct cordon_view_list *list, struct cordon_view_record *record)
{
	if (list->n == list->space) {
		size_t space = list->space ? 2 * list->space : 16;
		struct cordon_view_record *items = reallocarray(list->items, space, sizeof(*items));

		if (!items)
			return -ENOMEM;
		list->items = items;
		list->space = space;
	}
	list->items[list->n++] = *record;
	*record = (struct cordon_view_record){ 0 };
	return 0;
}

static int by_start(const void *a, const void *b)
{
	const struct cordon_view_record *x = a, *y = b;

	if (x->started.sec != y->started.sec)
		return x->started.sec < y->started.sec ? -1 : 1;
	if (x->started.nsec != y->started.nsec)
		return x->started.nsec < y->started.nsec ? -1 : 1;
	return strcmp(x->id, y->id);
}

int cordon_view_list(const struct cordon_home *home, int root_fd, struct cordon_view_list *ret_list,
		     struct cordon_error *err)
{
	autoviewlist struct cordon_view_list list = { 0 };
	json_auto_t *names = NULL;
	autofd int views = -1;
	size_t i;
	json_t *name;
	int r = cordon_view_dir(home, &views, err);

	if (r == 0)
		r = cordon_record_names(views, NULL, &names, err);
	if (r < 0)
		return r;
	json_array_foreach(names, i, name) {
		autoview struct cordon_view view = CORDON_VIEW_NONE;

		if (cordon_view_open(home, json_string_value(name), &view, NULL) < 0)
			continue;
		if (root_fd >= 0 && !cordon_view_is_of(&view.record, root_fd))
			continue;
		if (add(&list, &view.record) < 0)
			return cordon_no_memory(err);
	}
	if (list.n)
		qsort(list.items, list.n, sizeof(*list.items), by_start);
	*ret_list = list;
	list = (struct cordon_view_list){ 0 };
	return 0;
}

static int not_found(const char *text, struct cordon_error *err)
{
	int r = cordon_fail(err, -ENOENT, CORDON_KIND_NOT_FOUND, "there is no view %.80s", text);

	cordon_error_hint(err, "see 'cordon changes list'; of an id, %d characters are enough if no other has them",
			  CORDON_FIND_MIN);
	return r;
}

static int find_latest(const struct cordon_home *home, int root_fd, char ret_id[static CORDON_ID_SIZE],
		       struct cordon_error *err)
{
	autoviewlist struct cordon_view_list list = { 0 };
	int r = cordon_view_list(home, root_fd, &list, err);

	if (r < 0)
		return r;
	for (size_t i = list.n; i-- > 0;) {
		if (list.items[i].state == CORDON_VIEW_DISCARDED)
			continue;
		memcpy(ret_id, list.items[i].id, CORDON_ID_SIZE);
		return 0;
	}
	r = cordon_fail(err, -ENOENT, CORDON_KIND_NOT_FOUND, "this root has no view");
	cordon_error_hint(err, "see 'cordon changes list'");
	return r;
}

int cordon_view_find(const struct cordon_home *home, const char *text, int root_fd, char ret_id[static CORDON_ID_SIZE],
		     struct cordon_error *err)
{
	char beginning[CORDON_UUID_SIZE] = "", found[CORDON_ID_SIZE] = "";
	json_auto_t *names = NULL;
	autofd int views = -1;
	size_t n = strlen(text), i;
	json_t *name;
	int r;

	if (cordon_streq(text, "latest"))
		return find_latest(home, root_fd, ret_id, err);
	if (n < CORDON_FIND_MIN || n >= CORDON_UUID_SIZE || strspn(text, "0123456789abcdefABCDEF-") != n)
		return not_found(text, err);
	for (i = 0; i < n; i++)
		beginning[i] = (char)(text[i] >= 'A' && text[i] <= 'F' ? text[i] | 0x20 : text[i]);
	r = cordon_view_dir(home, &views, err);
	if (r == 0)
		r = cordon_record_names(views, NULL, &names, err);
	if (r < 0)
		return r;
	json_array_foreach(names, i, name) {
		const char *id = json_string_value(name);

		if (!cordon_uuid_valid(id) || strncmp(id, beginning, n) != 0)
			continue;
		if (*found) {
			r = cordon_fail(err, -ENOTUNIQ, CORDON_KIND_USAGE, "%.80s may be several views: %s, %s", text,
					found, id);
			cordon_error_hint(err, "say more of the id");
			return r;
		}
		cordon_copy(found, sizeof(found), id, strlen(id));
	}
	if (!*found)
		return not_found(text, err);
	memcpy(ret_id, found, sizeof(found));
	return 0;
}

/* Removes a directory of views that has no record, because its process was killed while it made or removed the view. */
static bool remove_half(int views, const char *id)
{
	autofd int dir = openat(views, id, CORDON_OPEN_DIR);
	autofd int lock = -1;
	struct stat st;

	return dir >= 0 && fstatat(dir, CORDON_VIEW_RECORD, &st, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT &&
	       cordon_view_lock_dir(dir, &lock, NULL) == 0 && cordon_dirs_remove(views, id, NULL) == 0;
}

/* The first view that may still be applied and that was made on top of view `id`, or NULL. */
static const struct cordon_view_record *find_above(const struct cordon_view_list *list, const char *id)
{
	for (size_t i = 0; i < list->n; i++) {
		const struct cordon_view_record *record = &list->items[i];
		json_t *layer;
		size_t k;

		if (record->state != CORDON_VIEW_LIVE && record->state != CORDON_VIEW_ENDED)
			continue;
		json_array_foreach(record->layers, k, layer) {
			const char *below = json_string_value(layer);

			if (below && cordon_streq(below, id))
				return record;
		}
	}
	return NULL;
}

int cordon_view_check_above(const struct cordon_home *home, const char *id, struct cordon_error *err)
{
	autoviewlist struct cordon_view_list list = { 0 };
	const struct cordon_view_record *above;
	int r = cordon_view_list(home, -1, &list, err);

	if (r < 0 || !(above = find_above(&list, id)))
		return r;
	r = cordon_fail(err, -EBUSY, CORDON_KIND_CONFLICT, "view %s was made on top of view %s", above->id, id);
	cordon_error_hint(err, "apply or discard that one first");
	return r;
}

static bool is_settled(const struct cordon_view_record *record, uint64_t max_age_ms)
{
	int64_t age_ms = cordon_time_now() - record->ended.sec * 1000;

	return (record->state == CORDON_VIEW_APPLIED || record->state == CORDON_VIEW_DISCARDED) && age_ms >= 0 &&
	       (uint64_t)age_ms >= max_age_ms;
}

/* Removes a view that nobody needs any more. One whose undo was interrupted, or that has something of the host's which could
 * not be given back, waits for a person. */
static bool remove_settled(const struct cordon_home *home, struct cordon_view *view, uint64_t max_age_ms)
{
	return is_settled(&view->record, max_age_ms) && cordon_view_lock(view, NULL) == 0 &&
	       is_settled(&view->record, max_age_ms) && !cordon_apply_journal_pending(view) &&
	       !cordon_apply_journal_has_kept(view) && cordon_view_remove(home, view, NULL) == 0;
}

int cordon_view_gc(const struct cordon_home *home, uint64_t max_age_ms, struct cordon_view_counts *ret_counts,
		   struct cordon_error *err)
{
	autoviewlist struct cordon_view_list all = { 0 };
	struct cordon_view_counts counts = { 0 };
	json_auto_t *names = NULL;
	autofd int views = -1;
	size_t i;
	json_t *name;
	int r = cordon_view_dir(home, &views, err);

	if (r < 0)
		return r;
	/* A view that is just being made holds this lock shared until it has its own. */
	if (flock(views, LOCK_EX) < 0)
		return cordon_fail_errno(err, -errno, "cannot lock the views");
	r = cordon_record_names(views, NULL, &names, err);
	if (r == 0)
		r = cordon_view_list(home, -1, &all, err);
	if (r < 0)
		return r;
	json_array_foreach(names, i, name) {
		autoview struct cordon_view view = CORDON_VIEW_NONE;
		const char *id = json_string_value(name);

		if (!cordon_uuid_valid(id))
			continue;
		if (remove_half(views, id)) {
			counts.removed++;
		} else if (cordon_view_open(home, id, &view, NULL) == 0) {
			if (!find_above(&all, id) && remove_settled(home, &view, max_age_ms))
				counts.removed++;
			else if (view.record.state == CORDON_VIEW_LIVE)
				counts.live++;
			else if (view.record.state == CORDON_VIEW_ENDED)
				counts.waiting++;
		}
	}
	*ret_counts = counts;
	return 0;
}
