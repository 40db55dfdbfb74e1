/* SPDX-License-Identifier: Apache-2.0 */
/* The set of paths that a run used, and how it becomes few readable patterns: folder by folder, from the deepest
 * folders up. */
#include <stdio.h>

#include "base/buf.h"
#include "base/path.h"
#include "base/text.h"
#include "learn/learn.h"
#include "policy/temp_names.h"

struct cordon_learn_item {
	char *path;
	unsigned int uses;
};

struct cordon_learn {
	struct cordon_learn_item *items;
	size_t n, cap;
	uint32_t *slots;
	size_t n_slots;
	bool sorted;
	/* The last answer of any_beside(). */
	const char *last_dir;
	size_t last_dir_len;
	bool last_answer;
};

/* What a path needs so that the run can use it in the same way again. */
enum cordon_learn_need {
	CORDON_NEED_NOTHING,
	CORDON_NEED_PROBE, /* the run must learn that it is missing */
	CORDON_NEED_LOOK,  /* a directory that the run must pass or look at */
	CORDON_NEED_LIST,
	CORDON_NEED_READ,
	CORDON_NEED_WRITE,
};

/* ---- what a name shows ---- */

static bool is_alnum(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* The extension of a file name without its dot, of at most 12 letters and digits; or NULL. */
static const char *learn_type(const char *name)
{
	const char *dot = strrchr(name, '.');
	size_t n = 0;

	if (!dot || dot == name || !dot[1])
		return NULL;
	while (is_alnum(dot[1 + n]))
		n++;
	return dot[1 + n] || n > 12 ? NULL : dot + 1;
}

/* Whether s has six or more letters and digits of at least two kinds, as mkstemp() and similar functions make them.
 * Only capitals or only digits count as well; only small letters may be a word. */
static bool random_run(const char *s, size_t n)
{
	bool lower = false, upper = false, digit = false;

	for (size_t i = 0; i < n; i++) {
		lower |= s[i] >= 'a' && s[i] <= 'z';
		upper |= s[i] >= 'A' && s[i] <= 'Z';
		digit |= s[i] >= '0' && s[i] <= '9';
	}
	return n >= 6 && (!lower || upper || digit);
}

/* Whether a part of the name looks random: the bytes from *ret_from up to *ret_to. */
static bool learn_random(const char *name, size_t *ret_from, size_t *ret_to)
{
	size_t fixed = cordon_temp_fixed(name);

	if (fixed) {
		*ret_from = fixed;
		*ret_to = strlen(name);
		return true;
	}
	for (size_t i = 0; name[i];) {
		size_t n = 0, keep = 0;

		while (is_alnum(name[i + n]) || (n && name[i + n] == '_'))
			n++;
		if (random_run(name + i, n)) {
			/* At the start there may be a short fixed word before it: "sedAbCdEf", "tmpx1y2z3". */
			while (i == 0 && keep < 3 && name[keep] >= 'a' && name[keep] <= 'z')
				keep++;
			*ret_from = i + keep;
			*ret_to = i + n;
			return true;
		}
		i += n ? n : 1;
	}
	return false;
}

/* ---- the set of paths ---- */

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

static void learn_sort(struct cordon_learn *learn)
{
	if (!learn->sorted && learn->n)
		qsort(learn->items, learn->n, sizeof(*learn->items), by_component);
	learn->last_dir = NULL;
	learn->sorted = true; /* the slots are not valid until the next addition */
}

/* The item of a path, or NULL; only when sorted. */
static const struct cordon_learn_item *learn_find(const struct cordon_learn *learn, const char *path)
{
	const struct cordon_learn_item key = { (char *)(uintptr_t)path, 0 };

	return learn->n ? bsearch(&key, learn->items, learn->n, sizeof(key), by_component) : NULL;
}

void cordon_learn_each(struct cordon_learn *learn, cordon_learn_fn fn, void *data)
{
	learn_sort(learn);
	for (size_t i = 0; i < learn->n; i++)
		learn->items[i].uses |= fn(data, learn->items[i].path, learn->items[i].uses);
}

static enum cordon_learn_need need_of(const struct cordon_learn_item *item)
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

/* ---- temporary names ---- */

struct beside {
	struct cordon_learn *learn;
	const char *path;
	size_t dir_len; /* length of its directory, with the slash */
};

static bool is_written_file(const struct cordon_learn_item *item)
{
	return need_of(item) == CORDON_NEED_WRITE && !(item->uses & CORDON_LEARN_DIRECTORY);
}

/* Whether a name in the same directory was written, too, and so will be granted. */
static bool written_beside(void *data, const char *name, size_t n)
{
	const struct beside *beside = data;
	char path[CORDON_PATH_MAX];
	const struct cordon_learn_item *item;

	if (beside->dir_len + n >= sizeof(path))
		return false;
	memcpy(path, beside->path, beside->dir_len);
	memcpy(path + beside->dir_len, name, n);
	path[beside->dir_len + n] = '\0';
	item = learn_find(beside->learn, path);
	return item && is_written_file(item);
}

/* Whether the same directory has a file that existed from the start and was written. The answer for the last
 * directory is kept, because the paths come in order. */
static bool any_beside(const struct beside *beside)
{
	struct cordon_learn *learn = beside->learn;

	if (learn->last_dir && learn->last_dir_len == beside->dir_len &&
	    strncmp(learn->last_dir, beside->path, beside->dir_len) == 0)
		return learn->last_answer;
	learn->last_dir = beside->path;
	learn->last_dir_len = beside->dir_len;
	learn->last_answer = false;
	for (size_t i = 0; i < learn->n && !learn->last_answer; i++) {
		const struct cordon_learn_item *item = &learn->items[i];

		learn->last_answer = item->uses & CORDON_LEARN_EXISTED && is_written_file(item) &&
				     strncmp(item->path, beside->path, beside->dir_len) == 0 &&
				     !strchr(item->path + beside->dir_len, '/');
	}
	return learn->last_answer;
}

/* Whether this is a temporary name of an atomic save that the lens allows beside its file, so that it needs no
 * grant. */
static bool learn_is_save(struct cordon_learn *learn, const struct cordon_learn_item *item)
{
	const char *name = cordon_path_base(item->path);
	struct beside beside = { learn, item->path, (size_t)(name - item->path) };

	if (!(item->uses & CORDON_LEARN_GONE) || !(item->uses & CORDON_LEARN_MOVED) ||
	    item->uses & CORDON_LEARN_DIRECTORY)
		return false;
	return cordon_temp_of_name(name, false, written_beside, &beside) ||
	       (cordon_temp_of_any(name) && any_beside(&beside));
}

/* The same, or a name with a random part: a grant of exactly that name would not help. */
static bool learn_is_temporary(struct cordon_learn *learn, const struct cordon_learn_item *item, bool patterns)
{
	size_t from, to;

	return item->uses & CORDON_LEARN_GONE &&
	       (learn_random(cordon_path_base(item->path), &from, &to) || (patterns && learn_is_save(learn, item)));
}

/* ---- few readable patterns ---- */

#define MERGE_MAX 2000 /* candidates that are compared with each other; with more, the folder is granted */

enum shape {
	SINGLE,	     /* dir/name, and everything below it */
	RANDOM,	     /* dir/na*me: a part of the name is different every time */
	RANDOM_TREE, /* dir/na*me/ **: the same for a directory */
	LEVEL,	     /* dir/ *.type */
	DEEP,	     /* dir/ ** / *.type */
	ALL,	     /* dir/ * */
	EXACT,	     /* the directory itself, without its content */
};

struct candidate {
	enum shape shape;
	char *dir;  /* SINGLE: the path itself */
	char *type; /* or NULL */
	bool made;
	const char *note;
};

struct list {
	struct candidate *items;
	size_t n, cap;
};

struct maker {
	struct cordon_learn *learn;
	bool patterns;
	enum cordon_learn_need need; /* which items are generalised now */
	struct list list;
	const struct cordon_learn_item **items; /* the items with this need */
	size_t n;
	bool by_name, lens;
};

static void clear(struct list *list, size_t from)
{
	for (size_t i = from; i < list->n; i++) {
		free(list->items[i].dir);
		free(list->items[i].type);
	}
	list->n = from;
}

static int push(struct list *list, enum shape shape, const char *dir, size_t dir_len, const char *type, bool made)
{
	struct candidate made_of = { .shape = shape, .made = made };

	if (list->n == list->cap) {
		size_t cap = list->cap ? list->cap * 2 : 32;
		struct candidate *bigger = reallocarray(list->items, cap, sizeof(*bigger));

		if (!bigger)
			return -ENOMEM;
		list->items = bigger;
		list->cap = cap;
	}
	made_of.dir = strndup(dir, dir_len);
	made_of.type = type ? strdup(type) : NULL;
	if (!made_of.dir || (type && !made_of.type)) {
		free(made_of.dir);
		free(made_of.type);
		return -ENOMEM;
	}
	list->items[list->n++] = made_of;
	return 0;
}

static bool has_type(const struct candidate *c, const char *type)
{
	return c->type && type && cordon_streq(c->type, type);
}

static size_t count_type(const struct list *list, size_t from, const char *type, bool only_patterns)
{
	size_t n = 0;

	for (size_t i = from; i < list->n; i++)
		n += has_type(&list->items[i], type) && (!only_patterns || list->items[i].shape != SINGLE);
	return n;
}

/* Replaces every candidate of a type from `from` on by one pattern (with `direct`: only single files directly in
 * dir). */
static int merge_type(struct list *list, size_t from, const char *dir, size_t dir_len, const char *type_of,
		      enum shape shape, bool direct)
{
	autofree char *type = strdup(type_of);
	bool made = false;
	size_t kept = from;

	if (!type)
		return -ENOMEM;
	for (size_t i = from; i < list->n; i++) {
		struct candidate c = list->items[i];
		bool here = c.shape == SINGLE &&
			    (size_t)(cordon_path_base(c.dir) - c.dir) == (dir_len ? dir_len + 1 : 0);

		if (!has_type(&c, type) || (direct && !here)) {
			list->items[kept++] = c;
			continue;
		}
		made |= c.made;
		free(c.dir);
		free(c.type);
	}
	list->n = kept;
	return push(list, shape, dir, dir_len, type, made);
}

static int merge_direct(struct list *list, size_t from, const char *dir, size_t dir_len)
{
	for (size_t i = from; i < list->n; i++) {
		const struct candidate *c = &list->items[i];
		size_t n = 0;
		int r;

		if (c->shape != SINGLE || !c->type)
			continue;
		for (size_t j = from; j < list->n; j++)
			n += list->items[j].shape == SINGLE && has_type(&list->items[j], c->type) &&
			     (size_t)(cordon_path_base(list->items[j].dir) - list->items[j].dir) ==
				     (dir_len ? dir_len + 1 : 0);
		if (n < CORDON_LEARN_SAME_MIN)
			continue;
		r = merge_type(list, from, dir, dir_len, c->type, LEVEL, true);
		if (r < 0)
			return r;
		i = from - 1; /* start again: the list has changed and become shorter */
	}
	return 0;
}

/* Merges one type in a whole folder: a pattern and more candidates of the same type, or many single files, at least
 * `least`. */
static int merge_deep(struct list *list, size_t from, const char *dir, size_t dir_len, size_t least)
{
	for (size_t i = from; i < list->n; i++) {
		const char *type = list->items[i].type;
		size_t n = type ? count_type(list, from, type, false) : 0;
		int r;

		if (n < 2 || (n < least && !(least && count_type(list, from, type, true))))
			continue;
		if (list->items[i].shape == DEEP && strlen(list->items[i].dir) == dir_len)
			continue;
		r = merge_type(list, from, dir, dir_len, type, DEEP, false);
		if (r < 0)
			return r;
		i = from - 1;
	}
	return 0;
}

static size_t count_patterns(const struct list *list, size_t from)
{
	size_t n = 0;

	for (size_t i = from; i < list->n; i++)
		n += list->items[i].shape == LEVEL || list->items[i].shape == DEEP;
	return n;
}

static bool any_made(const struct list *list, size_t from)
{
	for (size_t i = from; i < list->n; i++)
		if (list->items[i].made)
			return true;
	return false;
}

/* Grants everything below dir with one grant. */
static int grant_folder(struct maker *m, size_t from, const char *dir, size_t dir_len)
{
	clear(&m->list, from);
	/* A name that was only looked for needs a grant of its level only. `made` is false, because in a granted
	 * folder names can be made and removed without the lens. */
	return push(&m->list, m->need == CORDON_NEED_PROBE ? ALL : SINGLE, dir, dir_len, NULL, false);
}

static int grant_root(struct maker *m, const char *note)
{
	int r = grant_folder(m, 0, "", 0);

	if (r == 0)
		m->list.items[0].note = note;
	return r;
}

static int merge_root(struct maker *m)
{
	struct list *list = &m->list;
	int r = 0;

	if (!m->patterns && any_made(list, 0))
		return grant_root(m, "without the lens, names can come and go at the top only like this");
	if (m->patterns && list->n > CORDON_LEARN_ROOT_MAX && list->n <= MERGE_MAX)
		r = merge_deep(list, 0, "", 0, 0);
	if (r < 0 || list->n <= CORDON_LEARN_ROOT_MAX)
		return r;
	if (!m->patterns)
		return list->n > CORDON_LEARN_GRANTS_MAX ? grant_root(m, "too many to name each") : 0;
	/* Single files of the root become one pattern for its level; folders stay as they are. */
	for (size_t i = 0, kept = 0, n = list->n; i < n; i++) {
		struct candidate c = list->items[i];

		if (c.shape == SINGLE && !strchr(c.dir, '/') && c.type) {
			free(c.dir);
			free(c.type);
		} else {
			list->items[kept++] = c;
		}
		list->n = kept;
	}
	r = push(list, ALL, "", 0, NULL, true);
	if (r == 0)
		list->items[list->n - 1].note = "too many files at the top to name each";
	return r == 0 && list->n > CORDON_LEARN_GRANTS_MAX ? grant_root(m, "too many to name each") : r;
}

static int merge(struct maker *m, size_t from, const char *dir, size_t dir_len)
{
	bool many = m->list.n - from > MERGE_MAX;
	int r = m->patterns && !many ? merge_direct(&m->list, from, dir, dir_len) : 0;

	if (many && dir_len)
		return grant_folder(m, from, dir, dir_len);
	if (r < 0 || !dir_len)
		return r < 0 ? r : merge_root(m);
	if (m->patterns)
		r = merge_deep(&m->list, from, dir, dir_len, CORDON_LEARN_SAME_MIN + 1);
	if (r < 0)
		return r;
	/* Without the lens, the run can make and remove names only in a folder that is granted as a whole. */
	if (m->list.n - from > CORDON_LEARN_FOLDER_MAX || count_patterns(&m->list, from) > 2 ||
	    (!m->patterns && any_made(&m->list, from)))
		return grant_folder(m, from, dir, dir_len);
	return 0;
}

static int push_item(struct maker *m, const struct cordon_learn_item *item)
{
	const char *name = cordon_path_base(item->path);
	size_t len = strlen(item->path), from, to;
	bool directory = item->uses & CORDON_LEARN_DIRECTORY;

	if (m->patterns && (m->need == CORDON_NEED_LIST || m->need == CORDON_NEED_LOOK))
		return push(&m->list, m->need == CORDON_NEED_LIST ? ALL : EXACT, item->path, len, NULL, false);
	if (m->need == CORDON_NEED_WRITE && m->patterns && learn_is_temporary(m->learn, item, true)) {
		if (learn_is_save(m->learn, item))
			return 0;
		if (learn_random(name, &from, &to)) {
			int r = push(&m->list, directory ? RANDOM_TREE : RANDOM, item->path, len, NULL, true);

			if (r == 0)
				m->list.items[m->list.n - 1].note = "a name that is different every time";
			return r;
		}
	}
	return push(&m->list, SINGLE, item->path, len, directory ? NULL : learn_type(name),
		    item->uses & CORDON_LEARN_MADE);
}

/* A directory on the way down. Items up to `end` lie in it; its path is the first `dir_len` bytes of each. Items
 * before `next` are done. */
struct level {
	size_t next, end, dir_len;
	size_t from; /* index in the list: candidates from there on belong to this directory */
};

/* Handles the next item of a level: the item itself, or the directory in which it lies, as a new level in
 * *ret_below. Returns 1 when there is a new level. */
static int step(struct maker *m, struct level *level, struct level *ret_below)
{
	size_t at = level->next, next = at + 1;
	const char *path = m->items[at]->path;
	size_t start = level->dir_len ? level->dir_len + 1 : 0, end = start + strcspn(path + start, "/");

	while (next < level->end && strncmp(m->items[next]->path, path, end) == 0 &&
	       (m->items[next]->path[end] == '/' || !m->items[next]->path[end]))
		next++;
	level->next = next; /* a grant for a path covers everything below it */
	*ret_below = (struct level){ .next = at, .end = next, .dir_len = end, .from = m->list.n };
	if (!path[end]) {
		int r = push_item(m, m->items[at]);

		/* But a folder that was only listed does not grant what lies below it. */
		ret_below->next++;
		return r == 0 && m->patterns && m->need == CORDON_NEED_LIST && next > at + 1 ? 1 : r;
	}
	if (end == 4 && strncmp(path, ".git", 4) == 0)
		return push(&m->list, SINGLE, path, end, NULL, false);
	return 1;
}

/* Works from the deepest directories up: a directory is merged when everything below it is. `levels` has room for
 * the greatest number of components. */
static int generalise(struct maker *m)
{
	autofree struct level *levels = calloc(CORDON_PATH_MAX / 2 + 2, sizeof(*levels));
	size_t depth = 1;
	int r = levels ? 0 : -ENOMEM;

	if (levels)
		levels[0].end = m->n;
	while (r >= 0 && depth) {
		struct level *top = &levels[depth - 1];

		if (top->next < top->end) {
			r = step(m, top, top + 1);
			depth += r == 1;
		} else {
			r = merge(m, top->from, m->items[top->end - 1]->path, top->dir_len);
			depth--;
		}
	}
	return r < 0 ? r : 0;
}

static int by_pattern(const void *a, const void *b)
{
	const struct cordon_learn_grant *x = a, *y = b;

	return x->access != y->access ? (x->access == CORDON_ACCESS_WRITE ? -1 : 1) : strcmp(x->pattern, y->pattern);
}

/* Adds a literal name to a pattern. A byte that is not UTF-8 cannot be in a policy file and becomes "any character". */
static int add_name(struct cordon_buf *buf, const char *s, size_t n)
{
	int r = 0;

	for (size_t i = 0, len; r == 0 && i < n; i += len) {
		len = cordon_utf8_char(s + i, n - i);
		if (len == 1 && strchr("*?[]{}\\,!", s[i]))
			r = cordon_buf_addf(buf, "\\%c", s[i]);
		else
			r = len ? cordon_buf_add(buf, s + i, len) : cordon_buf_addc(buf, '?');
		len = len ? len : 1;
	}
	return r;
}

static int add_exact(struct cordon_buf *buf, const char *dir)
{
	size_t len = strlen(dir), last = len;
	int r;

	/* Write the last plain letter as a set of one letter: a pattern that ends in a wildcard covers its own level
	 * only. */
	while (last > 0 && dir[last - 1] != '/' && strchr("*?[]{}\\,!^-", dir[last - 1]))
		last--;
	if (last == 0 || dir[last - 1] == '/' || (unsigned char)dir[last - 1] >= 0x80)
		return add_name(buf, dir, len);
	r = add_name(buf, dir, last - 1);
	if (r == 0)
		r = cordon_buf_addf(buf, "[%c]", dir[last - 1]);
	return r < 0 ? r : add_name(buf, dir + last, len - last);
}

static int pattern_of(const struct candidate *c, struct cordon_buf *buf)
{
	static const char *const tails[] = { [LEVEL] = "*.", [DEEP] = "**/*.", [ALL] = "*" };
	size_t from = 0, to = 0, base = (size_t)(cordon_path_base(c->dir) - c->dir);
	int r;

	if (c->shape == EXACT)
		return add_exact(buf, c->dir);
	if ((c->shape == RANDOM || c->shape == RANDOM_TREE) && learn_random(c->dir + base, &from, &to)) {
		if ((r = add_name(buf, c->dir, base + from)) < 0 || (r = cordon_buf_addc(buf, '*')) < 0 ||
		    (r = add_name(buf, c->dir + base + to, strlen(c->dir + base + to))) < 0)
			return r;
		return c->shape == RANDOM ? 0 : cordon_buf_adds(buf, "/**");
	}
	if (c->shape == SINGLE && !*c->dir)
		return cordon_buf_adds(buf, "**");
	r = add_name(buf, c->dir, strlen(c->dir));
	if (r < 0 || c->shape == SINGLE || c->shape == RANDOM || c->shape == RANDOM_TREE)
		return r;
	if (*c->dir && (r = cordon_buf_addc(buf, '/')) < 0)
		return r;
	r = cordon_buf_adds(buf, tails[c->shape]);
	return r < 0 || !c->type ? r : cordon_buf_adds(buf, c->type);
}

static int append(struct cordon_learn_grants *grants, const char *pattern, cordon_access access, const char *note)
{
	struct cordon_learn_grant *bigger;

	for (size_t i = 0; i < grants->n; i++)
		if (cordon_streq(grants->items[i].pattern, pattern)) {
			if (access == CORDON_ACCESS_WRITE)
				grants->items[i].access = access;
			return 0;
		}
	bigger = reallocarray(grants->items, grants->n + 1, sizeof(*bigger));
	if (!bigger)
		return -ENOMEM;
	grants->items = bigger;
	bigger[grants->n] = (struct cordon_learn_grant){ strdup(pattern), access, note };
	return bigger[grants->n].pattern ? (int)(grants->n++, 0) : -ENOMEM;
}

static int append_all(struct maker *m, struct cordon_learn_grants *grants, cordon_access access, const char *note)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < m->list.n; i++) {
		autobuf struct cordon_buf text = CORDON_BUF(2 * CORDON_PATH_MAX);

		r = pattern_of(&m->list.items[i], &text);
		if (r == 0)
			r = append(grants, text.data, access, m->list.items[i].note ? m->list.items[i].note : note);
		m->by_name |= m->list.items[i].made;
	}
	clear(&m->list, 0);
	return r;
}

/* Whether the grants so far allow the use of the path; with `leads`, also of something below it, for a directory. */
static bool granted(const struct cordon_learn_grants *grants, struct cordon_pattern **compiled, const char *path,
		    bool leads)
{
	for (size_t i = 0; i < grants->n; i++)
		if (cordon_pattern_match(compiled[i], path, NULL) || (leads && cordon_pattern_leads(compiled[i], path)))
			return true;
	return false;
}

/* Collects the items that have this need and are not granted yet. */
static int collect_items(struct maker *m, const struct cordon_learn_grants *grants, enum cordon_learn_need need,
			 struct cordon_error *err)
{
	struct cordon_pattern **compiled = calloc(grants->n + 1, sizeof(struct cordon_pattern *));
	int r = compiled ? 0 : cordon_fail_errno(err, -ENOMEM, "patterns");

	m->n = 0;
	m->need = need;
	for (size_t i = 0; r == 0 && i < grants->n; i++)
		r = cordon_pattern_compile(grants->items[i].pattern, &compiled[i], err);
	for (size_t i = 0; r == 0 && i < m->learn->n; i++) {
		const struct cordon_learn_item *item = &m->learn->items[i];
		bool directory = need == CORDON_NEED_LIST || need == CORDON_NEED_LOOK;

		if (need_of(item) == need && !granted(grants, compiled, item->path, directory))
			m->items[m->n++] = item;
	}
	for (size_t i = 0; compiled && i < grants->n; i++)
		cordon_pattern_free(compiled[i]);
	free(compiled);
	return r;
}

static int grant_directories(struct maker *m, struct cordon_learn_grants *grants, enum cordon_learn_need need,
			     struct cordon_error *err)
{
	const char *note = need == CORDON_NEED_LIST ? "listed" : m->patterns ? "looked at, not into" : "looked at";
	int r = collect_items(m, grants, need, err);
	size_t kept = 0;

	/* A folder above another one of these is visible because of that one. But a folder that was listed also
	 * showed its files. */
	for (size_t i = 0; i < m->n; i++)
		if (need == CORDON_NEED_LIST || i + 1 == m->n ||
		    !cordon_path_within(m->items[i + 1]->path, m->items[i]->path))
			m->items[kept++] = m->items[i];
	m->n = kept;
	if (r == 0 && m->n)
		r = generalise(m);
	return r < 0 ? r : append_all(m, grants, CORDON_ACCESS_READ, note);
}

/* Whether the lens will be used. It does not admit that a name is missing unless the name is granted. */
static bool needs_lens(struct maker *m, const struct cordon_learn_grants *grants)
{
	bool lens;

	for (size_t i = 0; i < m->learn->n; i++)
		m->by_name |= (m->learn->items[i].uses & CORDON_LEARN_LINKED) != 0;
	lens = m->by_name;
	for (size_t i = 0; i < grants->n; i++)
		lens |= grants->items[i].pattern[strcspn(grants->items[i].pattern, "*?[{")] &&
			!cordon_streq(grants->items[i].pattern, "**");
	return m->patterns && lens;
}

int cordon_learn_grants(struct cordon_learn *learn, bool patterns, struct cordon_learn_grants *ret,
			struct cordon_error *err)
{
	static const struct {
		enum cordon_learn_need need;
		cordon_access access;
		const char *note;
	} rounds[] = {
		{ CORDON_NEED_WRITE, CORDON_ACCESS_WRITE, NULL },
		{ CORDON_NEED_READ, CORDON_ACCESS_READ, NULL },
		{ CORDON_NEED_PROBE, CORDON_ACCESS_READ, "asked for, not there" },
	};
	struct maker m = { .learn = learn, .patterns = patterns };
	struct cordon_learn_grants grants = { 0 };
	int r = 0;

	learn_sort(learn);
	m.items = calloc(learn->n + 1, sizeof(const struct cordon_learn_item *));
	if (!m.items)
		return cordon_fail_errno(err, -ENOMEM, "learned paths");
	for (size_t i = 0; r == 0 && i < CORDON_ARRAY_SIZE(rounds); i++) {
		if (rounds[i].need == CORDON_NEED_PROBE) {
			r = grant_directories(&m, &grants, CORDON_NEED_LIST, err);
			if (r == 0)
				r = grant_directories(&m, &grants, CORDON_NEED_LOOK, err);
			if (r < 0 || !(m.lens = needs_lens(&m, &grants)))
				break;
		}
		r = collect_items(&m, &grants, rounds[i].need, err);
		if (r == 0 && m.n)
			r = generalise(&m);
		if (r == 0)
			r = append_all(&m, &grants, rounds[i].access, rounds[i].note);
	}
	clear(&m.list, 0);
	free(m.list.items);
	free(m.items);
	if (r < 0) {
		cordon_learn_grants_done(&grants);
		return err && err->code ? r : cordon_fail_errno(err, r, "learned paths");
	}
	if (grants.n)
		qsort(grants.items, grants.n, sizeof(*grants.items), by_pattern);
	grants.by_name = patterns && m.by_name;
	grants.lens = m.lens;
	*ret = grants;
	return 0;
}

void cordon_learn_grants_done(struct cordon_learn_grants *grants)
{
	for (size_t i = 0; i < grants->n; i++)
		free(grants->items[i].pattern);
	free(grants->items);
	*grants = (struct cordon_learn_grants){ 0 };
}

int cordon_learn_grant_add(struct cordon_learn_grants *grants, const char *path, cordon_access access,
			   struct cordon_error *err)
{
	autobuf struct cordon_buf text = CORDON_BUF(2 * CORDON_PATH_MAX);
	int r = add_name(&text, path, strlen(path));

	if (r == 0)
		r = append(grants, text.data, access, NULL);
	return r < 0 ? cordon_fail_errno(err, r, "learned paths") : 0;
}

/* ---- what a policy would refuse ---- */

size_t cordon_learn_check(struct cordon_learn *learn, const struct cordon_policy *policy, bool lens,
			  void (*fn)(void *data, const char *path, cordon_access access), void *data)
{
	size_t refused = 0;

	learn_sort(learn);
	for (size_t i = 0; i < learn->n; i++) {
		const struct cordon_learn_item *item = &learn->items[i];
		enum cordon_learn_need need = need_of(item);
		cordon_access access = need == CORDON_NEED_WRITE ? CORDON_ACCESS_WRITE : CORDON_ACCESS_READ;
		struct cordon_decision decision;

		if (need == CORDON_NEED_NOTHING || (need == CORDON_NEED_PROBE && !lens) ||
		    (need == CORDON_NEED_WRITE && learn_is_temporary(learn, item, lens)))
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
