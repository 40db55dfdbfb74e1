/* SPDX-License-Identifier: Apache-2.0 */
/* Trees of a repository: changed in memory and written, and compared. */
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

#include "loop/git.h"
#include "loop/git_objects.h"
#include "loop/internal.h"

#define TREE_MAX ((size_t)256 << 20)
#define DEPTH_MAX CORDON_LAYER_DEPTH_MAX
#define MODE_DIGITS_MAX 7
#define RAW_MAX 32 /* bytes of an id */

struct entry {
	const char *name;
	unsigned int mode;
	char id[CORDON_GIT_ID_SIZE];
	struct cordon_git_tree *tree; /* once it was read, or made */
};

struct cordon_git_tree {
	struct entry *items; /* by name */
	size_t n, cap;
	bool changed;
};

static bool is_dir(const struct entry *entry)
{
	return S_ISDIR(entry->mode);
}

/* ---- the format ---- */

static void to_hex(const unsigned char *raw, size_t n, char ret[static CORDON_GIT_ID_SIZE])
{
	for (size_t i = 0; i < n; i++)
		snprintf(ret + 2 * i, 3, "%02x", raw[i]);
}

static void to_raw(const char *id, size_t n, unsigned char ret[static RAW_MAX])
{
	for (size_t i = 0; i < n; i++) {
		char two[3] = { id[2 * i], id[2 * i + 1], '\0' };

		ret[i] = (unsigned char)strtoul(two, NULL, 16);
	}
}

static size_t raw_size(const struct cordon_loop *loop)
{
	return loop->git.sha256 ? 32 : 20;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct entry *)a)->name, ((const struct entry *)b)->name);
}

/* In a tree a directory stands where its name with a slash belongs. */
static int by_order(const void *a, const void *b)
{
	const struct entry *x = *(const struct entry *const *)a, *y = *(const struct entry *const *)b;
	size_t n = strlen(x->name), m = strlen(y->name), common = n < m ? n : m;
	int order = memcmp(x->name, y->name, common);
	unsigned char p, q;

	if (order)
		return order;
	p = n > common ? (unsigned char)x->name[common] : is_dir(x) ? '/' : 0;
	q = m > common ? (unsigned char)y->name[common] : is_dir(y) ? '/' : 0;
	return p < q ? -1 : p > q;
}

static int grow(struct cordon_arena *arena, struct cordon_git_tree *tree)
{
	size_t cap = tree->cap ? 2 * tree->cap : 16;
	struct entry *items;

	if (tree->n < tree->cap)
		return 0;
	items = cordon_arena_grow(arena, tree->items, tree->n, cap, sizeof(*items));
	if (!items)
		return -ENOMEM;
	tree->items = items;
	tree->cap = cap;
	return 0;
}

/* "MODE NAME", NUL, and the bytes of the id. */
static int parse(struct cordon_arena *arena, const struct cordon_buf *text, size_t id_size, struct cordon_git_tree *tree)
{
	for (size_t at = 0; at < text->len;) {
		const char *mode = text->data + at, *name = memchr(mode, ' ', text->len - at), *end = NULL;
		unsigned long value;
		struct entry *entry;

		if (name && name > mode && (size_t)(name - mode) <= MODE_DIGITS_MAX)
			end = memchr(name + 1, '\0', text->len - (size_t)(name + 1 - text->data));
		if (!end || end == name + 1 || strspn(mode, "01234567") != (size_t)(name - mode) ||
		    memchr(name + 1, '/', (size_t)(end - name - 1)) ||
		    text->len - (size_t)(end + 1 - text->data) < id_size)
			return -EBADMSG;
		value = strtoul(mode, NULL, 8);
		if (grow(arena, tree) < 0)
			return -ENOMEM;
		entry = &tree->items[tree->n];
		*entry = (struct entry){ .name = cordon_arena_strdup(arena, name + 1), .mode = (unsigned int)value };
		if (!entry->name)
			return -ENOMEM;
		to_hex((const unsigned char *)end + 1, id_size, entry->id);
		tree->n++;
		at = (size_t)(end + 1 - text->data) + id_size;
	}
	if (tree->n)
		qsort(tree->items, tree->n, sizeof(*tree->items), by_name);
	return 0;
}

/* Reads the tree of a commit or, by its id, another one. "" is an empty one. */
static int read_tree(struct cordon_git_trees *trees, const char *name, struct cordon_git_tree **ret)
{
	autobuf struct cordon_buf text = { 0 };
	int r = 0;

	*ret = cordon_arena_alloc(trees->arena, sizeof(**ret));
	if (!*ret)
		return cordon_fail_errno(trees->err, -ENOMEM, "a tree");
	if (*name)
		r = cordon_loop_object_read(trees->loop, name, "tree", TREE_MAX, NULL, &text, trees->err);
	if (r < 0)
		return r;
	r = parse(trees->arena, &text, raw_size(trees->loop), *ret);
	return r < 0 ? cordon_fail_errno(trees->err, r, "cannot read the tree %s", name) : 0;
}

static int read_commit(struct cordon_git_trees *trees, const char *commit, struct cordon_git_tree **ret)
{
	char name[CORDON_GIT_ID_SIZE + 8];

	snprintf(name, sizeof(name), "%s%s", commit, *commit ? "^{tree}" : "");
	return read_tree(trees, name, ret);
}

int cordon_git_trees_open(struct cordon_loop *loop, const char *commit, struct cordon_git_trees *ret,
			  struct cordon_error *err)
{
	*ret = (struct cordon_git_trees){ .loop = loop, .arena = cordon_arena_new(), .err = err };
	return ret->arena ? read_commit(ret, commit, &ret->root) : cordon_fail_errno(err, -ENOMEM, "a tree");
}

void cordon_git_trees_close(struct cordon_git_trees *trees)
{
	trees->arena = cordon_arena_free(trees->arena);
}

/* ---- changing ---- */

/* Where an entry is, or belongs. */
static bool find(const struct cordon_git_tree *tree, const char *name, size_t *ret_at)
{
	size_t low = 0, high = tree->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (strcmp(tree->items[middle].name, name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	*ret_at = low;
	return low < tree->n && cordon_streq(tree->items[low].name, name);
}

static int load(struct cordon_git_trees *trees, struct entry *entry)
{
	return entry->tree ? 0 : read_tree(trees, entry->id, &entry->tree);
}

/* The first name of a path; *ret_rest is what comes after it, or NULL. */
static int first_name(const char *path, char ret[static NAME_MAX + 1], const char **ret_rest)
{
	size_t n = strcspn(path, "/");

	*ret_rest = path[n] ? path + n + 1 : NULL;
	return n ? cordon_copy(ret, NAME_MAX + 1, path, n) : -EINVAL;
}

static int insert(struct cordon_git_trees *trees, struct cordon_git_tree *tree, size_t at, const char *name)
{
	const char *kept = cordon_arena_strdup(trees->arena, name);

	if (!kept || grow(trees->arena, tree) < 0)
		return -ENOMEM;
	memmove(tree->items + at + 1, tree->items + at, (tree->n - at) * sizeof(*tree->items));
	tree->items[at] = (struct entry){ .name = kept };
	tree->n++;
	return 0;
}

int cordon_git_trees_set(struct cordon_git_trees *trees, const char *path, unsigned int mode, const char *id)
{
	struct cordon_git_tree *tree = trees->root;

	for (const char *rest; path; path = rest) {
		char name[NAME_MAX + 1];
		struct entry *entry;
		size_t at = 0;
		int r = first_name(path, name, &rest);

		if (r == 0 && !find(tree, name, &at))
			r = insert(trees, tree, at, name);
		if (r < 0)
			return cordon_fail_errno(trees->err, r, "cannot commit %s", path);
		tree->changed = true;
		entry = &tree->items[at];
		if (!rest) {
			*entry = (struct entry){ .name = entry->name, .mode = mode };
			return cordon_copy(entry->id, sizeof(entry->id), id, strlen(id));
		}
		if (!is_dir(entry)) /* what was there is in the way */
			*entry = (struct entry){ .name = entry->name, .mode = S_IFDIR };
		if (!*entry->id && !entry->tree)
			r = read_tree(trees, "", &entry->tree);
		else
			r = load(trees, entry);
		if (r < 0)
			return r;
		tree = entry->tree;
	}
	return 0;
}

static int remove_below(struct cordon_git_trees *trees, struct cordon_git_tree *tree, const char *path,
			unsigned int depth)
{
	char name[NAME_MAX + 1];
	const char *rest;
	size_t at;
	int r = depth > DEPTH_MAX ? -E2BIG : first_name(path, name, &rest);

	if (r < 0)
		return cordon_fail_errno(trees->err, r, "cannot commit %s", path);
	if (!find(tree, name, &at) || (rest && !is_dir(&tree->items[at])))
		return 0;
	if (!rest) {
		tree->n--;
		memmove(tree->items + at, tree->items + at + 1, (tree->n - at) * sizeof(*tree->items));
		tree->changed = true;
		return 0;
	}
	r = load(trees, &tree->items[at]);
	if (r == 0)
		r = remove_below(trees, tree->items[at].tree, rest, depth + 1);
	tree->changed |= r == 0 && tree->items[at].tree->changed;
	return r;
}

int cordon_git_trees_remove(struct cordon_git_trees *trees, const char *path)
{
	return remove_below(trees, trees->root, path, 0);
}

/* ---- writing ---- */

static int add_entry(struct cordon_buf *out, const struct entry *entry, size_t id_size)
{
	unsigned char raw[RAW_MAX];
	int r = cordon_buf_addf(out, "%o %s", entry->mode, entry->name);

	to_raw(entry->id, id_size, raw);
	if (r == 0)
		r = cordon_buf_addc(out, '\0');
	return r < 0 ? r : cordon_buf_add(out, raw, id_size);
}

static int write_one(struct cordon_git_trees *trees, const struct cordon_git_tree *tree, int objects_fd,
		     char ret_id[static CORDON_GIT_ID_SIZE])
{
	autobuf struct cordon_buf out = CORDON_BUF(TREE_MAX);
	autofree const struct entry **order = calloc(tree->n + 1, sizeof(struct entry *));
	int r = order ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < tree->n; i++)
		order[i] = &tree->items[i];
	if (r == 0 && tree->n)
		qsort(order, tree->n, sizeof(struct entry *), by_order);
	for (size_t i = 0; r == 0 && i < tree->n; i++)
		r = add_entry(&out, order[i], raw_size(trees->loop));
	return r < 0 ? cordon_fail_errno(trees->err, r, "a tree")
		     : cordon_loop_object_write(trees->loop, objects_fd, "tree", out.data ? out.data : "", out.len,
						ret_id, trees->err);
}

static int write_below(struct cordon_git_trees *trees, struct cordon_git_tree *tree, int objects_fd, unsigned int depth,
		       char ret_id[static CORDON_GIT_ID_SIZE])
{
	size_t n = 0;
	int r = depth > DEPTH_MAX ? cordon_fail_errno(trees->err, -E2BIG, "a tree") : 0;

	for (size_t i = 0; r == 0 && i < tree->n; i++) {
		struct entry *entry = &tree->items[i];

		if (entry->tree && entry->tree->changed) {
			r = write_below(trees, entry->tree, objects_fd, depth + 1, entry->id);
			if (!entry->tree->n)
				continue;
		}
		tree->items[n++] = *entry;
	}
	if (r < 0)
		return r;
	tree->n = n;
	tree->changed = false;
	return n || !depth ? write_one(trees, tree, objects_fd, ret_id) : 0;
}

int cordon_git_trees_write(struct cordon_git_trees *trees, int objects_fd, char ret_id[static CORDON_GIT_ID_SIZE])
{
	return write_below(trees, trees->root, objects_fd, 0, ret_id);
}

/* ---- comparing ---- */

struct comparison {
	struct cordon_git_trees trees;
	struct cordon_buf path; /* of the present directory, with a slash at its end */
	struct cordon_buf *out;
};

static void comparison_done(struct comparison *c)
{
	cordon_git_trees_close(&c->trees);
	cordon_buf_done(&c->path);
}

static int compare(struct comparison *c, const char *from, const char *to, unsigned int depth);

/* One side has it, or the other, or both; a directory's files count, and not itself. */
static int compare_entry(struct comparison *c, const struct entry *from, const struct entry *to, unsigned int depth)
{
	bool below = (from && is_dir(from)) || (to && is_dir(to));
	size_t n = c->path.len;
	int r = 0;

	if (from && to && from->mode == to->mode && cordon_streq(from->id, to->id))
		return 0;
	if (from && !is_dir(from) && (!to || is_dir(to)))
		r = cordon_buf_addf(c->out, "0 %0*d\t%s%s", (int)strlen(from->id), 0, c->path.data, from->name);
	else if (to && !is_dir(to))
		r = cordon_buf_addf(c->out, "%o %s\t%s%s", to->mode, to->id, c->path.data, to->name);
	if (r == 0 && ((from && !is_dir(from)) || (to && !is_dir(to))))
		r = cordon_buf_addc(c->out, '\0');
	if (r == 0 && below)
		r = cordon_buf_addf(&c->path, "%s/", from ? from->name : to->name);
	if (r < 0)
		return cordon_fail_errno(c->trees.err, r, "what was committed");
	if (below) {
		r = compare(c, from && is_dir(from) ? from->id : "", to && is_dir(to) ? to->id : "", depth + 1);
		c->path.len = n;
		c->path.data[n] = '\0';
	}
	return r;
}

static int compare_trees(struct comparison *c, const struct cordon_git_tree *from, const struct cordon_git_tree *to,
			 unsigned int depth)
{
	int r = 0;

	for (size_t i = 0, k = 0; r == 0 && (i < from->n || k < to->n);) {
		int order = i == from->n ? 1 : k == to->n ? -1 : strcmp(from->items[i].name, to->items[k].name);

		r = compare_entry(c, order <= 0 ? &from->items[i] : NULL, order >= 0 ? &to->items[k] : NULL, depth);
		i += order <= 0;
		k += order >= 0;
	}
	return r;
}

static int compare(struct comparison *c, const char *from, const char *to, unsigned int depth)
{
	struct cordon_git_tree *old, *new;
	int r = depth > DEPTH_MAX ? cordon_fail_errno(c->trees.err, -E2BIG, "a tree") : 0;

	if (r < 0 || (r = read_tree(&c->trees, from, &old)) < 0 || (r = read_tree(&c->trees, to, &new)) < 0)
		return r;
	return compare_trees(c, old, new, depth);
}

int cordon_git_trees_compare(struct cordon_loop *loop, const char *from, const char *to, struct cordon_buf *ret,
			     struct cordon_error *err)
{
	CORDON_CLEANUP(comparison_done)
	struct comparison c = { .path = CORDON_BUF((size_t)DEPTH_MAX * (NAME_MAX + 1)), .out = ret };
	struct cordon_git_tree *old, *new;
	int r = cordon_buf_adds(&c.path, "");

	if (r == 0)
		r = cordon_git_trees_open(loop, from, &c.trees, err);
	if (r < 0)
		return r;
	old = c.trees.root;
	r = read_commit(&c.trees, to, &new);
	return r < 0 ? r : compare_trees(&c, old, new, 0);
}
