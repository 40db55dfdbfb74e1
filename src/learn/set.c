/* SPDX-License-Identifier: Apache-2.0 */
/* The set of paths that a run used, and whether a policy allows them. */
#include "learn/set.h"
#include "base/path.h"

struct cordon_learn *cordon_learn_new(void)
{
	return calloc(1, sizeof(struct cordon_learn));
}

struct cordon_learn *cordon_learn_free(struct cordon_learn *learn)
{
	if (!learn)
		return NULL;
	for (size_t i = 0; i < learn->n; i++)
		free(learn->items[i].path);
	free(learn->items);
	free(learn->slots);
	free(learn);
	return NULL;
}

static uint64_t hash_of(const char *path)
{
	uint64_t h = 1469598103934665603ULL;

	for (; *path; path++)
		h = (h ^ (unsigned char)*path) * 1099511628211ULL;
	return h;
}

/* The slots hold index + 1; at most half of them are taken. */
static int rebuild(struct cordon_learn *learn, size_t n_slots)
{
	uint32_t *slots = calloc(n_slots, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	for (size_t i = 0; i < learn->n; i++) {
		size_t at = hash_of(learn->items[i].path) & (n_slots - 1);

		while (slots[at])
			at = (at + 1) & (n_slots - 1);
		slots[at] = (uint32_t)i + 1;
	}
	free(learn->slots);
	learn->slots = slots;
	learn->n_slots = n_slots;
	return 0;
}

static int grow(struct cordon_learn *learn)
{
	size_t cap = learn->cap ? learn->cap * 2 : 64;
	struct cordon_learn_item *bigger;

	if (learn->n < learn->cap)
		return 0;
	bigger = reallocarray(learn->items, cap, sizeof(*bigger));
	if (!bigger)
		return -ENOMEM;
	learn->items = bigger;
	learn->cap = cap;
	return rebuild(learn, cap * 2);
}

int cordon_learn_add(struct cordon_learn *learn, const char *path, unsigned int uses)
{
	int r = learn->sorted ? rebuild(learn, learn->n_slots ? learn->n_slots : 128) : grow(learn);
	size_t at;

	if (r == 0 && learn->sorted)
		r = grow(learn);
	if (r < 0)
		return r;
	learn->sorted = false;
	learn->last_dir = NULL;
	for (at = hash_of(path) & (learn->n_slots - 1); learn->slots[at]; at = (at + 1) & (learn->n_slots - 1)) {
		struct cordon_learn_item *item = &learn->items[learn->slots[at] - 1];

		if (cordon_streq(item->path, path)) {
			item->uses |= uses & ~(unsigned int)CORDON_LEARN_EXISTED;
			return 0;
		}
	}
	if (learn->n >= CORDON_LEARN_PATHS_MAX)
		return -E2BIG;
	learn->items[learn->n] = (struct cordon_learn_item){ strdup(path), uses };
	if (!learn->items[learn->n].path)
		return -ENOMEM;
	learn->slots[at] = (uint32_t)++learn->n;
	return 0;
}

/* Sorts a/b before a-b, so that what lies below a directory follows it directly. */
static int by_component(const void *a, const void *b)
{
	const unsigned char *x = (const unsigned char *)((const struct cordon_learn_item *)a)->path;
	const unsigned char *y = (const unsigned char *)((const struct cordon_learn_item *)b)->path;

	while (*x && *x == *y)
		x++, y++;
	return (*x == '/' ? 1 : *x ? *x + 1 : 0) - (*y == '/' ? 1 : *y ? *y + 1 : 0);
}

void cordon_learn_sort(struct cordon_learn *learn)
{
	if (!learn->sorted && learn->n)
		qsort(learn->items, learn->n, sizeof(*learn->items), by_component);
	learn->last_dir = NULL;
	learn->sorted = true; /* the slots are not valid until the next addition */
}

const struct cordon_learn_item *cordon_learn_find(const struct cordon_learn *learn, const char *path)
{
	const struct cordon_learn_item key = { (char *)(uintptr_t)path, 0 };

	return learn->n ? bsearch(&key, learn->items, learn->n, sizeof(key), by_component) : NULL;
}

void cordon_learn_each(struct cordon_learn *learn, cordon_learn_fn fn, void *data)
{
	cordon_learn_sort(learn);
	for (size_t i = 0; i < learn->n; i++)
		learn->items[i].uses |= fn(data, learn->items[i].path, learn->items[i].uses);
}

enum cordon_learn_need cordon_learn_need(const struct cordon_learn_item *item)
{
	bool names = item->uses & (CORDON_LEARN_WRITTEN | CORDON_LEARN_MADE);

	if (!*item->path || cordon_secret(item->path))
		return CORDON_NEED_NOTHING;
	if (names)
		return CORDON_NEED_WRITE;
	if (item->uses & CORDON_LEARN_DIRECTORY)
		return item->uses & CORDON_LEARN_LISTED ? CORDON_NEED_LIST : CORDON_NEED_LOOK;
	if (item->uses & CORDON_LEARN_READ)
		return CORDON_NEED_READ;
	return item->uses & CORDON_LEARN_ABSENT ? CORDON_NEED_PROBE : CORDON_NEED_NOTHING;
}

size_t cordon_learn_check(struct cordon_learn *learn, const struct cordon_policy *policy, bool lens,
			  void (*fn)(void *data, const char *path, cordon_access access), void *data)
{
	size_t refused = 0;

	cordon_learn_sort(learn);
	for (size_t i = 0; i < learn->n; i++) {
		const struct cordon_learn_item *item = &learn->items[i];
		enum cordon_learn_need need = cordon_learn_need(item);
		cordon_access access = need == CORDON_NEED_WRITE ? CORDON_ACCESS_WRITE : CORDON_ACCESS_READ;
		struct cordon_decision decision;

		if (need == CORDON_NEED_NOTHING || (need == CORDON_NEED_PROBE && !lens) ||
		    (need == CORDON_NEED_WRITE && cordon_learn_is_temporary(learn, item, lens)))
			continue;
		cordon_policy_decide(policy, item->path,
				     access == CORDON_ACCESS_WRITE ? CORDON_OP_WRITE : CORDON_OP_READ, &decision);
		if (decision.verdict == CORDON_ALLOW ||
		    ((need == CORDON_NEED_LIST || need == CORDON_NEED_LOOK) && cordon_policy_leads(policy, item->path)))
			continue;
		refused++;
		fn(data, item->path, access);
	}
	return refused;
}
