/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists of records, oldest first. The first page of a list reads every record, since only they know their age; further pages
 * read what they show, for as long as the directory stays as it was.
 */
#include <stdio.h>
#include <sys/stat.h>

#include "base/time.h"
#include "store/internal.h"

#define SETTLED_MS 1000 /* a directory that changed later than this may change again without a trace in its time */

/* The names of the last directory that was listed, by age of their records. */
struct cordon_store_order {
	struct stat dir;
	json_t *names;
};

struct cordon_store_order *cordon_store_order_new(void)
{
	return calloc(1, sizeof(struct cordon_store_order));
}

struct cordon_store_order *cordon_store_order_free(struct cordon_store_order *order)
{
	if (order)
		json_decref(order->names);
	free(order);
	return NULL;
}

static bool is_known(const struct cordon_store_order *order, const struct stat *dir)
{
	return order && order->names && order->dir.st_dev == dir->st_dev && order->dir.st_ino == dir->st_ino &&
	       order->dir.st_mtim.tv_sec == dir->st_mtim.tv_sec && order->dir.st_mtim.tv_nsec == dir->st_mtim.tv_nsec;
}

/* Remembers an order; `dir` is the directory as it was before it was read. */
static void remember(struct cordon_store_order *order, const struct stat *dir, json_t *const *sorted, size_t n)
{
	int64_t changed = (int64_t)dir->st_mtim.tv_sec * 1000 + dir->st_mtim.tv_nsec / 1000000;
	json_t *names;

	if (!order || changed > cordon_time_now() - SETTLED_MS)
		return;
	names = json_array();
	for (size_t i = 0; names && i < n; i++)
		json_array_append(names, json_object_get(sorted[i], "id"));
	json_decref(order->names);
	order->names = json_array_size(names) == n ? names : NULL;
	if (!order->names)
		json_decref(names);
	order->dir = *dir;
}

/* By time of creation, then by id, so that the order is the same for everybody. */
static int compare(const void *a, const void *b)
{
	const json_t *x = *(json_t *const *)a, *y = *(json_t *const *)b;
	int r = strcmp(cordon_record_text(x, "created_at"), cordon_record_text(y, "created_at"));

	return r ? r : strcmp(cordon_record_text(x, "id"), cordon_record_text(y, "id"));
}

static int lower(char c)
{
	return c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c;
}

static bool contains(const char *text, const char *part)
{
	for (;; text++) {
		size_t i = 0;

		while (part[i] && lower(text[i]) == lower(part[i]))
			i++;
		if (!part[i])
			return true;
		if (!*text)
			return false;
	}
}

/* Reads every record there is; one that vanishes meanwhile is not part of the list any more. */
static int read_all(int dir_fd, const char *path, const char *suffix, const char *name_contains, json_t **ret_records,
		    struct cordon_error *err)
{
	json_auto_t *names = NULL;
	json_auto_t *records = json_array();
	size_t i;
	json_t *name;
	int r = cordon_record_names(dir_fd, suffix, &names, err);

	if (r < 0)
		return r;
	json_array_foreach(names, i, name) {
		char file[NAME_MAX + 32];
		json_t *record = NULL;

		snprintf(file, sizeof(file), "%s%s", json_string_value(name), path);
		r = cordon_record_read(dir_fd, file, &record, err);
		if (r == -ENOENT)
			continue;
		if (r < 0)
			return r;
		if (name_contains && !contains(cordon_record_text(record, "name"), name_contains)) {
			json_decref(record);
			continue;
		}
		if (json_array_append_new(records, record) < 0)
			return cordon_no_memory(err);
	}
	*ret_records = cordon_steal_ptr(&records);
	return 0;
}

/* One page of a list whose order is known; -ENOENT when a record has gone meanwhile. */
static int read_page(int dir_fd, const char *path, const json_t *names, size_t offset, size_t limit,
		     json_t *(*show)(const json_t *), json_t **ret_list, struct cordon_error *err)
{
	json_auto_t *list = json_array();

	for (size_t i = offset; i < json_array_size(names) && i - offset < limit; i++) {
		json_auto_t *record = NULL;
		char file[NAME_MAX + 32];
		int r;

		snprintf(file, sizeof(file), "%s%s", json_string_value(json_array_get(names, i)), path);
		r = cordon_record_read(dir_fd, file, &record, err);
		if (r == 0 && json_array_append_new(list, show(record)) < 0)
			r = cordon_no_memory(err);
		if (r < 0)
			return r;
	}
	*ret_list = cordon_steal_ptr(&list);
	return 0;
}

int cordon_record_list(const struct cordon_store *store, int dir_fd, const char *path, const char *suffix,
		       const struct cordon_list_query *query, json_t *(*show)(const json_t *), json_t **ret_list,
		       size_t *ret_total, struct cordon_error *err)
{
	const char *name_contains = query ? query->name_contains : NULL;
	struct stat dir;
	json_auto_t *records = NULL;
	json_auto_t *list = json_array();
	json_t **sorted;
	size_t limit = query && query->limit ? query->limit : CORDON_LIST_MAX;
	size_t offset = query ? query->offset : 0;
	size_t n;
	int r;

	if (fstat(dir_fd, &dir) < 0)
		return cordon_fail_errno(err, -errno, "cannot list the store");
	if (!name_contains && is_known(store->order, &dir) &&
	    read_page(dir_fd, path, store->order->names, offset, limit, show, ret_list, NULL) == 0) {
		if (ret_total)
			*ret_total = json_array_size(store->order->names);
		return 0;
	}
	r = read_all(dir_fd, path, suffix, name_contains, &records, err);
	if (r < 0)
		return r;
	n = json_array_size(records);
	sorted = calloc(n + 1, sizeof(json_t *));
	if (!sorted)
		return cordon_no_memory(err);
	for (size_t i = 0; i < n; i++)
		sorted[i] = json_array_get(records, i);
	qsort(sorted, n, sizeof(json_t *), compare);
	for (size_t i = offset; r == 0 && i < n && i - offset < limit; i++)
		if (json_array_append_new(list, show(sorted[i])) < 0)
			r = cordon_no_memory(err);
	if (r == 0 && !name_contains)
		remember(store->order, &dir, sorted, n);
	free(sorted);
	if (r < 0)
		return r;
	*ret_list = cordon_steal_ptr(&list);
	if (ret_total)
		*ret_total = n;
	return 0;
}

int cordon_project_list(const struct cordon_store *store, const struct cordon_list_query *query, json_t **ret_projects,
			size_t *ret_total, struct cordon_error *err)
{
	return cordon_record_list(store, store->projects_fd, "/project.json", NULL, query, cordon_project_public,
				  ret_projects, ret_total, err);
}

int cordon_workspace_list(const struct cordon_store *store, const char *project_id,
			  const struct cordon_list_query *query, json_t **ret_workspaces, size_t *ret_total,
			  struct cordon_error *err)
{
	autoproject struct cordon_project project = CORDON_PROJECT_NONE;
	autofd int fd = -1;
	int r = cordon_project_hold(store, project_id, 0, &project, err);

	if (r == 0)
		r = cordon_store_dir(project.state_fd, "workspaces", &fd, err);
	if (r < 0)
		return r;
	return cordon_record_list(store, fd, ".json", ".json", query, cordon_workspace_public, ret_workspaces,
				  ret_total, err);
}
