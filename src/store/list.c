/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists of records, oldest first. The first page of a list needs every record, since only the records have their age.
 * Further pages read only the records that they show, as long as the directory does not change.
 */
#include <stdio.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/json.h"
#include "base/time.h"
#include "store/internal.h"

#define PEEK_MAX ((size_t)64 << 20)
#define SETTLED_MS 1000 /* a directory that changed less than this ago may change again and keep its time of change */

/* The names of the last directory that was listed, sorted by the age of their records. */
struct cordon_store_order {
	struct stat dir;
	json_t *names;
};

/* The records of a directory. */
struct listing {
	const struct cordon_record_kind *kind;
	void **items;
	size_t n, space;
};

static void listing_done(struct listing *listing)
{
	for (size_t i = 0; i < listing->n; i++) {
		cordon_fields_done(listing->kind, listing->items[i]);
		free(listing->items[i]);
	}
	free(listing->items);
}

static const char *id_of(const struct cordon_record_kind *kind, const void *record)
{
	return (const char *)record + kind->id;
}

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

static bool order_is_valid(const struct cordon_store_order *order, const struct stat *dir)
{
	return order && order->names && order->dir.st_dev == dir->st_dev && order->dir.st_ino == dir->st_ino &&
	       order->dir.st_mtim.tv_sec == dir->st_mtim.tv_sec && order->dir.st_mtim.tv_nsec == dir->st_mtim.tv_nsec;
}

/* Saves the order of a list. `dir` is the directory as it was before its names were read. */
static void save_order(struct cordon_store_order *order, const struct stat *dir, const struct cordon_record_kind *kind,
		       const struct listing *listing)
{
	int64_t changed = (int64_t)dir->st_mtim.tv_sec * 1000 + dir->st_mtim.tv_nsec / 1000000;
	json_t *names;

	if (!order || changed > cordon_time_now() - SETTLED_MS)
		return;
	names = json_array();
	for (size_t i = 0; names && i < listing->n; i++)
		json_array_append_new(names, json_string(id_of(kind, listing->items[i])));
	json_decref(order->names);
	order->names = json_array_size(names) == listing->n ? names : NULL;
	if (!order->names)
		json_decref(names);
	order->dir = *dir;
}

/* Sorts by time of creation, then by id, so that every process gets the same order. */
static int compare(const void *a, const void *b, void *data)
{
	const struct cordon_list_source *source = data;
	const struct cordon_record_kind *kind = source->kind;
	const char *x = *(char *const *)a, *y = *(char *const *)b;
	int r = strcmp(x + kind->created_at, y + kind->created_at);

	if (!r)
		r = strcmp(x + kind->id, y + kind->id);
	return source->newest_first ? -r : r;
}

static int load(const struct cordon_store *store, const struct cordon_list_source *source, const char *name,
		void *ret_record, struct cordon_error *err)
{
	char file[NAME_MAX + 32];

	if (source->load)
		return source->load(store, name, ret_record, err);
	snprintf(file, sizeof(file), "%s%s", name, source->path);
	return cordon_record_load(source->kind, source->dir_fd, file, ret_record, err);
}

static json_t *show(const struct cordon_list_source *source, const void *record)
{
	return source->ids_only ? json_string(id_of(source->kind, record)) : source->show(record);
}

static int append(struct listing *listing, void *record)
{
	if (listing->n == listing->space) {
		size_t space = listing->space ? 2 * listing->space : 64;
		void **items = reallocarray(listing->items, space, sizeof(void *));

		if (!items)
			return -ENOMEM;
		listing->items = items;
		listing->space = space;
	}
	listing->items[listing->n++] = record;
	return 0;
}

/* Reads every record. Leaves out a record that is removed meanwhile. */
static int read_all(const struct cordon_store *store, const struct cordon_list_source *source, struct listing *listing,
		    struct cordon_error *err)
{
	json_auto_t *names = NULL;
	size_t i;
	json_t *name;
	int r = cordon_record_names(source->dir_fd, source->suffix, &names, err);

	if (r < 0)
		return r;
	json_array_foreach(names, i, name) {
		void *record = calloc(1, source->kind->size);

		if (!record)
			return cordon_no_memory(err);
		r = load(store, source, json_string_value(name), record, err);
		if (r == 0 && (!source->matches || source->matches(record, source->wanted))) {
			if (append(listing, record) == 0)
				continue;
			r = cordon_no_memory(err);
		}
		cordon_fields_done(source->kind, record);
		free(record);
		if (r < 0 && r != -ENOENT)
			return r;
	}
	return 0;
}

/* Reads one page of a list whose order is known; -ENOENT when a record was removed meanwhile. */
static int read_page(const struct cordon_store *store, const struct cordon_list_source *source, const json_t *names,
		     json_t **ret_list)
{
	json_auto_t *list = json_array();
	void *record = calloc(1, source->kind->size);
	int r = record ? 0 : -ENOMEM;

	for (size_t i = source->offset; r == 0 && i < json_array_size(names) && i - source->offset < source->limit; i++) {
		r = load(store, source, json_string_value(json_array_get(names, i)), record, NULL);
		if (r < 0)
			break;
		if (json_array_append_new(list, show(source, record)) < 0)
			r = -ENOMEM;
		cordon_fields_done(source->kind, record);
	}
	free(record);
	if (r < 0)
		return r;
	*ret_list = cordon_steal_ptr(&list);
	return 0;
}

/* One name of a directory, and when its record was made. */
struct aged {
	char created_at[CORDON_TIME_SIZE];
	const char *name; /* borrowed */
};

/* Finds the time in the text of a record, most often near its beginning. A text that somebody else wrote is a string in it, whose
 * quotes are escaped. */
static int peek(const struct cordon_list_source *source, const char *name, struct aged *ret)
{
	static const char key[] = "\"created_at\": \"";
	const size_t size = sizeof(key) - 1;
	autobuf struct cordon_buf whole = CORDON_BUF(PEEK_MAX);
	char file[NAME_MAX + 32], front[4096];
	const char *at;
	autofd int fd = -1;
	ssize_t n;

	snprintf(file, sizeof(file), "%s%s", name, source->path);
	fd = openat(source->dir_fd, file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, front, sizeof(front));
	if (n < 0)
		return -errno;
	at = memmem(front, (size_t)n, key, size);
	if (!at || at + size + CORDON_TIME_SIZE > front + n) {
		int r = cordon_read_file(source->dir_fd, file, O_NOFOLLOW, &whole, NULL);

		if (r < 0)
			return r;
		at = whole.len ? memmem(whole.data, whole.len, key, size) : NULL;
		if (!at || at + size + CORDON_TIME_SIZE > whole.data + whole.len)
			return -EBADMSG;
	}
	memcpy(ret->created_at, at + size, CORDON_TIME_SIZE - 1);
	ret->name = name;
	return 0;
}

static int compare_aged(const void *a, const void *b, void *data)
{
	const struct cordon_list_source *source = data;
	const struct aged *x = a, *y = b;
	int r = strcmp(x->created_at, y->created_at);

	if (!r)
		r = strcmp(x->name, y->name);
	return source->newest_first ? -r : r;
}

/* The names of all records in the order of their age. -EBADMSG when there is one that is written in another way. */
static int order_quickly(const struct cordon_list_source *source, json_t **ret_names)
{
	json_auto_t *names = NULL;
	json_auto_t *sorted = json_array();
	autofree struct aged *aged = NULL;
	size_t n = 0;
	int r = cordon_record_names(source->dir_fd, source->suffix, &names, NULL);

	aged = r < 0 ? NULL : calloc(json_array_size(names) + 1, sizeof(*aged));
	if (!aged || !sorted)
		return r < 0 ? r : -ENOMEM;
	for (size_t i = 0; i < json_array_size(names); i++) {
		r = peek(source, json_string_value(json_array_get(names, i)), &aged[n]);
		if (r < 0 && r != -ENOENT && r != -ENOTDIR)
			return r;
		n += r == 0;
	}
	qsort_r(aged, n, sizeof(*aged), compare_aged, (void *)(uintptr_t)source);
	for (size_t i = 0; i < n; i++)
		if (json_array_append_new(sorted, json_string(aged[i].name)) < 0)
			return -ENOMEM;
	*ret_names = cordon_steal_ptr(&sorted);
	return 0;
}

int cordon_record_list(const struct cordon_store *store, const struct cordon_list_source *source, json_t **ret_list,
		       size_t *ret_total, struct cordon_error *err)
{
	struct listing listing CORDON_CLEANUP(listing_done) = { .kind = source->kind };
	json_auto_t *list = json_array();
	json_auto_t *names = NULL;
	bool cached = !source->matches && !source->load && !source->newest_first;
	struct stat dir;
	int r;

	if (fstat(source->dir_fd, &dir) < 0)
		return cordon_fail_errno(err, -errno, "cannot list the store");
	if (cached && order_is_valid(store->order, &dir) &&
	    read_page(store, source, store->order->names, ret_list) == 0) {
		if (ret_total)
			*ret_total = json_array_size(store->order->names);
		return 0;
	}
	if (source->quick && order_quickly(source, &names) == 0 && read_page(store, source, names, ret_list) == 0) {
		if (ret_total)
			*ret_total = json_array_size(names);
		return 0;
	}
	r = read_all(store, source, &listing, err);
	if (r < 0)
		return r;
	if (listing.n)
		qsort_r(listing.items, listing.n, sizeof(void *), compare, (void *)(uintptr_t)source);
	for (size_t i = source->offset; i < listing.n && i - source->offset < source->limit; i++)
		if (json_array_append_new(list, show(source, listing.items[i])) < 0)
			return cordon_no_memory(err);
	if (cached)
		save_order(store->order, &dir, source->kind, &listing);
	*ret_list = cordon_steal_ptr(&list);
	if (ret_total)
		*ret_total = listing.n;
	return 0;
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

static bool project_matches(const void *record, const void *wanted)
{
	const struct cordon_project_record *project = record;
	const struct cordon_list_query *query = wanted;

	return (!query->name_contains || contains(project->name, query->name_contains)) &&
	       (!query->only || cordon_json_has(query->only, project->id));
}

static json_t *show_project(const void *record)
{
	return cordon_project_json(record);
}

static json_t *show_workspace(const void *record)
{
	return cordon_workspace_json(record);
}

/* Copies limit, offset and ids_only of the query; `query` may be NULL. */
static void set_query(const struct cordon_list_query *query, struct cordon_list_source *source)
{
	source->limit = query && query->limit ? query->limit : CORDON_LIST_MAX;
	source->offset = query ? query->offset : 0;
	source->ids_only = query && query->ids_only;
}

int cordon_project_list(const struct cordon_store *store, const struct cordon_list_query *query, json_t **ret_projects,
			size_t *ret_total, struct cordon_error *err)
{
	struct cordon_list_source source = {
		.kind = &cordon_project_kind,
		.dir_fd = store->projects_fd,
		.path = "/project.json",
		.show = show_project,
	};

	set_query(query, &source);
	if (query && (query->name_contains || query->only)) {
		source.matches = project_matches;
		source.wanted = query;
	}
	return cordon_record_list(store, &source, ret_projects, ret_total, err);
}

int cordon_workspace_list(const struct cordon_store *store, const char *project_id,
			  const struct cordon_list_query *query, json_t **ret_workspaces, size_t *ret_total,
			  struct cordon_error *err)
{
	struct cordon_list_source source = {
		.kind = &cordon_workspace_kind,
		.path = ".json",
		.suffix = ".json",
		.show = show_workspace,
	};
	autoproject struct cordon_project project = CORDON_PROJECT_NONE;
	autofd int fd = -1;
	int r = cordon_project_hold(store, project_id, 0, &project, err);

	if (r == 0)
		r = cordon_state_dir(project.state_fd, "workspaces", &fd, err);
	if (r < 0)
		return r;
	set_query(query, &source);
	source.dir_fd = fd;
	return cordon_record_list(store, &source, ret_workspaces, ret_total, err);
}
