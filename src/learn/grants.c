/* SPDX-License-Identifier: Apache-2.0 */
/* Generalises a sorted list of paths to few readable patterns, folder by folder, from the deepest folders up. */
#include <stdio.h>

#include "base/buf.h"
#include "base/path.h"
#include "base/text.h"
#include "learn/set.h"

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
	if (m->need == CORDON_NEED_WRITE && m->patterns && cordon_learn_is_temporary(m->learn, item, true)) {
		if (cordon_learn_is_save(m->learn, item))
			return 0;
		if (cordon_learn_random(name, &from, &to)) {
			int r = push(&m->list, directory ? RANDOM_TREE : RANDOM, item->path, len, NULL, true);

			if (r == 0)
				m->list.items[m->list.n - 1].note = "a name that is different every time";
			return r;
		}
	}
	return push(&m->list, SINGLE, item->path, len, directory ? NULL : cordon_learn_type(name),
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
	if ((c->shape == RANDOM || c->shape == RANDOM_TREE) && cordon_learn_random(c->dir + base, &from, &to)) {
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

		if (cordon_learn_need(item) == need && !granted(grants, compiled, item->path, directory))
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

	cordon_learn_sort(learn);
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
