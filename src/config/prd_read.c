/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a PRD and finds all its errors in one pass. */
#include <inttypes.h>
#include <stdio.h>

#include "base/path.h"
#include "base/refname.h"
#include "base/text.h"
#include "config/prd.h"
#include "config/reader.h"
#include "config/suggest.h"
#include "config/values.h"

struct reading {
	struct cordon_reader in;
	struct cordon_prd *prd;
	size_t *by_id; /* indices of stories, sorted by id */
	size_t n_ids;
};

/* Readers return 0 also for a bad value, which they report; -ENOMEM stops the reading. `what` names the value. */
typedef int read_fn(struct reading *reading, const struct cordon_node *node, const char *what, void *data);

struct key {
	const char *name;
	read_fn *read; /* NULL: kept for others */
	size_t at;     /* of the value in the struct that is filled */
	bool required;
};

#define FAIL(reading, node, hint, ...)                                                                                 \
	cordon_node_fail((reading)->in.doc, node, (reading)->in.errors, hint, __VA_ARGS__)

static bool is_null(const struct cordon_node *node)
{
	return node->type == CORDON_NODE_SCALAR && node->style == CORDON_STYLE_PLAIN && cordon_streq(node->text, "null");
}

static void *alloc(const struct reading *reading, size_t n, size_t size)
{
	return cordon_document_alloc(reading->in.doc, (n + 1) * size);
}

/* ---- values ---- */

static int read_text(struct reading *reading, const struct cordon_node *node, const char *what, void *data)
{
	if (cordon_reader_text(&reading->in, node, what))
		*(const char **)data = node->text;
	return 0;
}

/* Text that says something. */
static int read_name(struct reading *reading, const struct cordon_node *node, const char *what, void *data)
{
	if (!cordon_reader_text(&reading->in, node, what))
		return 0;
	if (node->text[strspn(node->text, " \t\r\n")])
		*(const char **)data = node->text;
	else
		FAIL(reading, node, NULL, "%s must not be empty", what);
	return 0;
}

/* The same on one line that is safe to show. */
static int read_line(struct reading *reading, const struct cordon_node *node, const char *what, void *data)
{
	if (node->type == CORDON_NODE_SCALAR && node->style != CORDON_STYLE_PLAIN &&
	    !cordon_text_safe(node->text, node->len)) {
		FAIL(reading, node, NULL, "%s must not have control characters", what);
		return 0;
	}
	return read_name(reading, node, what, data);
}

static int read_id(struct reading *reading, const struct cordon_node *node, const char *what, void *data)
{
	if (!cordon_reader_text(&reading->in, node, what))
		return 0;
	if (node->len && node->len <= CORDON_PRD_ID_MAX && !strchr(".-", node->text[0]) && !strchr(node->text, '/') &&
	    cordon_text_safe(node->text, node->len))
		*(const char **)data = node->text;
	else
		FAIL(reading, node, "write it as \"US-001\"",
		     "%s must be 1 to %d printable characters without a slash, and begin with neither '.' nor '-'",
		     what, CORDON_PRD_ID_MAX);
	return 0;
}

static int read_branch(struct reading *reading, const struct cordon_node *node, const char *what, void *data)
{
	char ref[CORDON_PATH_MAX];

	if (!cordon_reader_text(&reading->in, node, what))
		return 0;
	if (cordon_concat(ref, sizeof(ref), "refs/heads/", node->text, (char *)NULL) == 0 && cordon_refname_valid(ref))
		*(const char **)data = node->text;
	else
		FAIL(reading, node, "write it as \"feature/cart\"", "%s is not a name that git accepts for a branch",
		     what);
	return 0;
}

static int read_bool(struct reading *reading, const struct cordon_node *node, const char *what, void *data)
{
	(void)cordon_reader_bool(&reading->in, node, what, data);
	return 0;
}

/* A whole number. JSON has no other numbers than decimal ones, and one with a point or an exponent is refused. */
static bool parse_whole(const struct cordon_node *node, int64_t *ret)
{
	bool minus = node->type == CORDON_NODE_SCALAR && node->text[0] == '-';
	uint64_t value;

	if (node->type != CORDON_NODE_SCALAR || node->style != CORDON_STYLE_PLAIN ||
	    cordon_parse_u64(node->text + minus, 0, INT64_MAX, &value) < 0)
		return false;
	*ret = minus ? -(int64_t)value : (int64_t)value;
	return true;
}

static int read_priority(struct reading *reading, const struct cordon_node *node, const char *what, void *data)
{
	struct cordon_prd_story *story = data;

	story->has_priority = parse_whole(node, &story->priority);
	if (!story->has_priority)
		FAIL(reading, node, "the lower number comes first: 1", "%s must be a whole number, not %s", what,
		     cordon_node_describe(reading->in.doc, node));
	return 0;
}

static int read_workers(struct reading *reading, const struct cordon_node *node, const char *what, void *data)
{
	int64_t value = 0;

	if (parse_whole(node, &value) && value >= 1 && value <= CORDON_PRD_WORKERS_MAX)
		*(unsigned int *)data = (unsigned int)value;
	else
		FAIL(reading, node, NULL, "%s must be a whole number from 1 to %d", what, CORDON_PRD_WORKERS_MAX);
	return 0;
}

static int read_complexity(struct reading *reading, const struct cordon_node *node, const char *what, void *data)
{
	static const char *const known[] = { "simple", "medium", "complex" };

	for (size_t i = 0; i < CORDON_ARRAY_SIZE(known); i++)
		if (node->type == CORDON_NODE_SCALAR && node->style != CORDON_STYLE_PLAIN &&
		    cordon_streq(node->text, known[i])) {
			*(const char **)data = known[i];
			return 0;
		}
	FAIL(reading, node, NULL, "%s must be \"simple\", \"medium\" or \"complex\"", what);
	return 0;
}

static int read_mode(struct reading *reading, const struct cordon_node *node, const char *what, void *data)
{
	struct cordon_prd *prd = data;

	prd->has_mode = node->type == CORDON_NODE_SCALAR && node->style != CORDON_STYLE_PLAIN &&
			cordon_mode_parse(node->text, &prd->mode, NULL) == 0;
	if (!prd->has_mode)
		FAIL(reading, node, NULL, "%s must be \"strict\" or \"permissive\"", what);
	return 0;
}

/* ---- lists of texts ---- */

struct list {
	const char **items;
	size_t n;
};

/* `check` says whether an entry is good, and reports it if not; a negative errno ends the reading. */
static int read_list(struct reading *reading, const struct cordon_node *node, const char *what, struct list *ret,
		     int (*check)(const struct cordon_reader *in, const struct cordon_node *node, const char *what))
{
	struct list list = { 0 };
	char entry[256];

	if (!cordon_reader_collection(&reading->in, node, CORDON_NODE_SEQUENCE, what))
		return 0;
	list.items = alloc(reading, node->n, sizeof(*list.items));
	if (!list.items)
		return -ENOMEM;
	snprintf(entry, sizeof(entry), "an entry of %s", what);
	for (const struct cordon_node *item = node->first; item; item = item->next) {
		int r = check(&reading->in, item, entry);

		if (r < 0)
			return r;
		if (r > 0)
			list.items[list.n++] = item->text;
	}
	*ret = list;
	return 0;
}

static int check_text(const struct cordon_reader *in, const struct cordon_node *node, const char *what)
{
	return cordon_reader_text(in, node, what);
}

static int check_folder(const struct cordon_reader *in, const struct cordon_node *node, const char *what)
{
	if (!cordon_reader_text(in, node, what))
		return 0;
	if (node->text[strspn(node->text, " \t")])
		return 1;
	cordon_node_fail(in->doc, node, in->errors, NULL, "%s must not be empty", what);
	return 0;
}

static int read_criteria(struct reading *reading, const struct cordon_node *node, const char *what, void *data)
{
	struct cordon_prd_story *story = data;
	struct list list = { 0 };
	int r = read_list(reading, node, what, &list, check_text);

	story->criteria = list.items;
	story->n_criteria = list.n;
	return r;
}

static int read_scope(struct reading *reading, const struct cordon_node *node, const char *what, void *data)
{
	struct cordon_prd_story *story = data;
	struct list list = { 0 };
	int r = read_list(reading, node, what, &list, cordon_reader_pattern);

	story->scope = list.items;
	story->n_scope = list.n;
	return r;
}

static int read_folders(struct reading *reading, const struct cordon_node *node, const char *what, void *data)
{
	struct cordon_prd *prd = data;
	struct list list = { 0 };
	int r = read_list(reading, node, what, &list, check_folder);

	/* An empty list could mean everything or nothing, so it is neither. */
	if (node->type == CORDON_NODE_SEQUENCE && node->n == 0)
		FAIL(reading, node, "name folders, or leave it out", "%s must not be empty", what);
	prd->folders = list.items;
	prd->n_folders = list.n;
	return r;
}

/* ---- objects ---- */

/* Tells of a key that has no effect, if it looks like one that has. */
static int notice_key(struct reading *reading, const struct cordon_node *key, const struct key *keys)
{
	struct cordon_prd *prd = reading->prd;
	struct cordon_document *doc = reading->in.doc;
	const char *meant = NULL;
	size_t best = CORDON_SUGGEST_FAR, size;
	char *text, *where;

	for (; keys->name; keys++)
		if (cordon_suggest_closer(key->text, keys->name, &best))
			meant = keys->name;
	if (!meant || prd->n_notices == CORDON_ERRORS_MAX)
		return 0;
	if (!prd->notices)
		prd->notices = alloc(reading, CORDON_ERRORS_MAX, sizeof(*prd->notices));
	size = strlen(doc->name) + key->len + strlen(meant) + 128;
	text = cordon_document_alloc(doc, size);
	where = prd->notices && text ? (char *)(uintptr_t)cordon_document_where(doc, key) : NULL;
	if (!where)
		return -ENOMEM;
	snprintf(text, size, "%s: '%s' is not a key of a PRD and has no effect; did you mean '%s'?", where, key->text,
		 meant);
	prd->notices[prd->n_notices++] = text;
	return 0;
}

static const struct key *find_key(const struct key *keys, const char *name)
{
	for (; keys->name; keys++)
		if (cordon_streq(keys->name, name))
			return keys;
	return NULL;
}

/* Reads the members of an object. `what` is put before the name of a key in messages. Unknown keys are errors if `closed`. */
static int read_object(struct reading *reading, const struct cordon_node *node, const char *what,
		       const struct key *keys, bool closed, void *data)
{
	char name[256];
	int r = 0;

	for (const struct cordon_node *member = node->first; r == 0 && member; member = member->next) {
		const struct key *key = find_key(keys, member->key->text);

		if (!key && closed)
			FAIL(reading, member->key, NULL, "%s has no key '%s'", what, member->key->text);
		else if (!key)
			r = notice_key(reading, member->key, keys);
		if (!key || !key->read || (is_null(member) && !key->required))
			continue;
		snprintf(name, sizeof(name), "%s of %s", key->name, what);
		r = key->read(reading, member, name, (char *)data + key->at);
	}
	for (; r == 0 && keys->name; keys++)
		if (keys->required && !cordon_node_get(node, keys->name))
			FAIL(reading, node, NULL, "%s has no %s", what, keys->name);
	return r;
}

static int read_workspace(struct reading *reading, const struct cordon_node *node, const char *what, void *data)
{
	static const struct key keys[] = {
		{ "folders", read_folders, 0, false },
		{ "mode", read_mode, 0, false },
		{ "preset", read_line, offsetof(struct cordon_prd, preset), false },
		{ 0 },
	};
	struct cordon_prd *prd = data;

	if (!cordon_reader_collection(&reading->in, node, CORDON_NODE_MAPPING, what))
		return 0;
	prd->has_workspace = true;
	prd->workspace = node;
	return read_object(reading, node, "workspace", keys, true, prd);
}

static int read_parallel(struct reading *reading, const struct cordon_node *node, const char *what, void *data)
{
	static const struct key keys[] = {
		{ "enabled", read_bool, offsetof(struct cordon_prd, parallel_enabled), false },
		{ "maxWorkers", read_workers, offsetof(struct cordon_prd, max_workers), false },
		{ "defaultModel", read_line, offsetof(struct cordon_prd, default_model), false },
		{ "modelStrategy", read_line, offsetof(struct cordon_prd, model_strategy), false },
		{ 0 },
	};

	if (!cordon_reader_collection(&reading->in, node, CORDON_NODE_MAPPING, what))
		return 0;
	return read_object(reading, node, "parallelization", keys, true, data);
}

static int read_story(struct reading *reading, const struct cordon_node *node, size_t index)
{
#define AT(field) offsetof(struct cordon_prd_story, field)
	static const struct key keys[] = {
		{ "id", read_id, AT(id), true },
		{ "title", read_name, AT(title), true },
		{ "description", read_text, AT(description), false },
		{ "acceptanceCriteria", read_criteria, 0, false },
		{ "priority", read_priority, 0, false },
		{ "passes", read_bool, AT(passes), false },
		{ "notes", read_text, AT(notes), false },
		{ "dependencies", NULL, 0, false }, /* read when all ids are known */
		{ "fileScope", read_scope, 0, false },
		{ "estimatedComplexity", read_complexity, AT(complexity), false },
		{ "suggestedModel", read_line, AT(model), false },
		{ 0 },
	};
#undef AT
	struct cordon_prd_story *story = &reading->prd->stories[index];
	char what[48];

	snprintf(what, sizeof(what), "userStories[%zu]", index);
	*story = (struct cordon_prd_story){ .complexity = "medium", .node = node };
	if (!cordon_reader_collection(&reading->in, node, CORDON_NODE_MAPPING, what))
		return 0;
	return read_object(reading, node, what, keys, false, story);
}

static int read_stories(struct reading *reading, const struct cordon_node *node, const char *what, void *data)
{
	struct cordon_prd *prd = data;
	int r = 0;

	(void)what;
	if (!cordon_reader_collection(&reading->in, node, CORDON_NODE_SEQUENCE, "userStories"))
		return 0;
	if (node->n > CORDON_PRD_STORIES_MAX) {
		FAIL(reading, node, NULL, "a PRD has at most %d stories, not %" PRIu32, CORDON_PRD_STORIES_MAX, node->n);
		return 0;
	}
	prd->stories = alloc(reading, node->n, sizeof(*prd->stories));
	if (!prd->stories)
		return -ENOMEM;
	for (const struct cordon_node *story = node->first; r == 0 && story; story = story->next)
		r = read_story(reading, story, prd->n_stories++);
	return r;
}

static int read_root(struct reading *reading)
{
#define AT(field) offsetof(struct cordon_prd, field)
	static const struct key keys[] = {
		{ "project", read_line, AT(project), true },
		{ "branchName", read_branch, AT(branch), false },
		{ "description", read_text, AT(description), false },
		{ "source_project", read_line, AT(source_project), false },
		{ "parallelization", read_parallel, 0, false },
		{ "workspace", read_workspace, 0, false },
		{ "userStories", read_stories, 0, true },
		{ 0 },
	};
#undef AT
	const struct cordon_node *root = reading->in.doc->root;

	if (root->type != CORDON_NODE_MAPPING) {
		FAIL(reading, root, NULL, "a PRD must be an object, not %s",
		     cordon_node_describe(reading->in.doc, root));
		return 0;
	}
	return read_object(reading, root, "the PRD", keys, false, reading->prd);
}

/* ---- dependencies ---- */

static int by_id(const void *a, const void *b, void *data)
{
	const struct cordon_prd_story *stories = data;
	size_t x = *(const size_t *)a, y = *(const size_t *)b;
	int order = strcmp(stories[x].id, stories[y].id);

	return order ? order : x < y ? -1 : x > y;
}

/* Sorts the stories that have an id, and reports each id that two of them have. */
static int index_ids(struct reading *reading)
{
	struct cordon_prd *prd = reading->prd;

	reading->by_id = calloc(prd->n_stories + 1, sizeof(*reading->by_id));
	if (!reading->by_id)
		return -ENOMEM;
	for (size_t i = 0; i < prd->n_stories; i++)
		if (prd->stories[i].id)
			reading->by_id[reading->n_ids++] = i;
	qsort_r(reading->by_id, reading->n_ids, sizeof(*reading->by_id), by_id, prd->stories);
	for (size_t i = 1; i < reading->n_ids; i++) {
		const struct cordon_prd_story *first = &prd->stories[reading->by_id[i - 1]];
		const struct cordon_prd_story *second = &prd->stories[reading->by_id[i]];

		if (cordon_streq(first->id, second->id))
			FAIL(reading, cordon_node_get(second->node, "id"), NULL,
			     "the id %s is used twice; the other story begins in line %" PRIu32, second->id,
			     first->node->line);
	}
	return 0;
}

/* Returns SIZE_MAX for an id that no story has. */
static size_t find_id(const struct reading *reading, const char *id)
{
	size_t low = 0, high = reading->n_ids;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = strcmp(reading->prd->stories[reading->by_id[middle]].id, id);

		if (order == 0)
			return reading->by_id[middle];
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return SIZE_MAX;
}

static void fail_unknown(const struct reading *reading, const struct cordon_node *node)
{
	size_t best = CORDON_SUGGEST_FAR;
	const char *near = NULL;
	char hint[CORDON_PRD_ID_MAX + 32];

	if (cordon_errors_drop(reading->in.errors))
		return;
	for (size_t i = 0; i < reading->n_ids; i++) {
		const char *id = reading->prd->stories[reading->by_id[i]].id;

		if (cordon_suggest_closer(node->text, id, &best))
			near = id;
	}
	if (near)
		snprintf(hint, sizeof(hint), "did you mean %s?", near);
	FAIL(reading, node, near ? hint : NULL, "no story has the id '%s'", node->text);
}

static int read_deps(struct reading *reading, struct cordon_prd_story *story, size_t *last_user)
{
	const struct cordon_node *node = cordon_node_get(story->node, "dependencies");
	size_t self = (size_t)(story - reading->prd->stories);

	if (!node || is_null(node) ||
	    !cordon_reader_collection(&reading->in, node, CORDON_NODE_SEQUENCE, "dependencies of a story"))
		return 0;
	story->deps = alloc(reading, node->n, sizeof(*story->deps));
	if (!story->deps)
		return -ENOMEM;
	for (const struct cordon_node *item = node->first; item; item = item->next) {
		size_t found;

		if (!cordon_reader_text(&reading->in, item, "an entry of dependencies"))
			continue;
		found = find_id(reading, item->text);
		if (found == SIZE_MAX) {
			fail_unknown(reading, item);
		} else if (last_user[found] != self + 1) {
			last_user[found] = self + 1;
			story->deps[story->n_deps++] = found;
		}
	}
	return 0;
}

static void fail_cycle(const struct reading *reading, const struct cordon_prd_cycle *cycle)
{
	struct cordon_buf text autobuf = CORDON_BUF(4096);
	const struct cordon_prd *prd = reading->prd;
	const struct cordon_node *node = prd->stories[cycle->stories[0]].node;

	for (size_t i = 0; i < cycle->n && i < 8; i++)
		(void)cordon_buf_addf(&text, "%s -> ", prd->stories[cycle->stories[i]].id);
	if (cycle->n > 8)
		(void)cordon_buf_adds(&text, "... -> ");
	(void)cordon_buf_adds(&text, prd->stories[cycle->stories[0]].id);
	FAIL(reading, cordon_node_get(node, "dependencies"), "remove one of these dependencies",
	     "stories depend on each other: %s", text.data ? text.data : "");
}

static int read_graph(struct reading *reading, unsigned int flags)
{
	struct cordon_prd *prd = reading->prd;
	autofree size_t *last_user = calloc(prd->n_stories + 1, sizeof(*last_user));
	int r = last_user ? index_ids(reading) : -ENOMEM;

	for (size_t i = 0; r == 0 && i < prd->n_stories; i++)
		r = read_deps(reading, &prd->stories[i], last_user);
	if (r == 0)
		r = cordon_prd_find_cycles(prd);
	for (size_t i = 0; r == 0 && !(flags & CORDON_PRD_CYCLES_ALLOWED) && i < prd->n_cycles; i++)
		fail_cycle(reading, &prd->cycles[i]);
	return r;
}

/* ---- the whole ---- */

struct cordon_prd *cordon_prd_free(struct cordon_prd *prd)
{
	if (prd)
		cordon_document_free(prd->doc);
	free(prd);
	return NULL;
}

void cordon_prd_freep(struct cordon_prd **prd)
{
	*prd = cordon_prd_free(*prd);
}

int cordon_prd_read_flags(const char *name, const char *text, size_t len, unsigned int flags,
			  struct cordon_prd **ret_prd, struct cordon_errors *errors)
{
	size_t before = errors->n + errors->dropped;
	autoprd struct cordon_prd *prd = calloc(1, sizeof(*prd));
	struct reading reading = { .prd = prd };
	struct cordon_error err = { 0 };
	int r = prd ? cordon_document_parse(name, CORDON_FORMAT_JSON, text, len, CORDON_PRD_DEPTH_MAX, &prd->doc, errors)
		    : -ENOMEM;

	if (r < 0 && prd)
		return r;
	if (r == 0) {
		prd->parallel_enabled = true;
		reading.in = (struct cordon_reader){ .doc = prd->doc, .errors = errors };
		r = read_root(&reading);
	}
	if (r == 0)
		r = read_graph(&reading, flags);
	free(reading.by_id);
	if (r < 0) {
		cordon_fail_errno(&err, r, "cannot read %s", name);
		return cordon_errors_add(errors, &err, NULL, 0, 0);
	}
	if (errors->n + errors->dropped > before)
		return -EINVAL;
	*ret_prd = cordon_steal_ptr(&prd);
	return 0;
}

int cordon_prd_read(const char *name, const char *text, size_t len, struct cordon_prd **ret_prd,
		    struct cordon_errors *errors)
{
	return cordon_prd_read_flags(name, text, len, 0, ret_prd, errors);
}
