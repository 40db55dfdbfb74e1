/* SPDX-License-Identifier: Apache-2.0 */
/* Compares texts by line, with Myers' algorithm in linear space, and merges them. */
#include "view/lines.h"

#include <sodium.h>

/* A part of the texts with more differences than this is reported as one change: the search is quadratic in them. */
#define DIFFERENCES_MAX 2000

bool cordon_text_is(const char *bytes, size_t n)
{
	size_t lines = 0;

	/* An empty text may have no bytes to point at. */
	if (n == 0)
		return true;
	if (n > CORDON_TEXT_BYTES_MAX || memchr(bytes, '\0', n))
		return false;
	for (size_t i = 0; i < n; i++)
		lines += bytes[i] == '\n';
	return lines < CORDON_TEXT_LINES_MAX;
}

int cordon_text_init(struct cordon_text *ret_text, const char *bytes, size_t n)
{
	size_t lines = n > 0 && bytes[n - 1] != '\n';
	size_t *at, line = 0;

	for (size_t i = 0; i < n; i++)
		lines += bytes[i] == '\n';
	at = calloc(lines + 1, sizeof(*at));
	if (!at)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		if (bytes[i] == '\n')
			at[++line] = i + 1;
	at[lines] = n;
	*ret_text = (struct cordon_text){ .bytes = bytes, .n_bytes = n, .at = at, .n = lines };
	return 0;
}

void cordon_text_done(struct cordon_text *text)
{
	free(text->at);
	*text = (struct cordon_text){ 0 };
}

void cordon_edits_done(struct cordon_edits *edits)
{
	free(edits->edit);
	*edits = (struct cordon_edits){ 0 };
}

static bool same_line(const struct cordon_text *a, size_t i, const struct cordon_text *b, size_t j)
{
	size_t n = a->at[i + 1] - a->at[i];

	return n == b->at[j + 1] - b->at[j] && memcmp(a->bytes + a->at[i], b->bytes + b->at[j], n) == 0;
}

/* What a comparison needs: each line as a number that equal lines share, and which lines changed. */
struct compare {
	uint32_t *a, *b;
	bool *gone, *came;
	int32_t *forward, *backward; /* the furthest point on each diagonal */
};

struct slot {
	const struct cordon_text *text;
	size_t line;
	uint32_t number; /* 0: the slot is free */
};

struct table {
	struct slot *slots;
	size_t mask;
	uint32_t next;
	/* INVARIANT: nobody knows it, so no run can write lines that all fall into one place. */
	unsigned char key[crypto_shorthash_KEYBYTES];
};

static size_t hash_line(const struct table *table, const struct cordon_text *text, size_t line)
{
	uint64_t hash;

	_Static_assert(sizeof(hash) == crypto_shorthash_BYTES, "the hash is a number");
	crypto_shorthash((unsigned char *)&hash, (const unsigned char *)text->bytes + text->at[line],
			 text->at[line + 1] - text->at[line], table->key);
	return (size_t)hash & table->mask;
}

static void number_lines(struct table *table, const struct cordon_text *text, uint32_t *ret)
{
	struct slot *slots = table->slots;

	for (size_t i = 0; i < text->n; i++) {
		size_t at = hash_line(table, text, i);

		while (slots[at].number && !same_line(slots[at].text, slots[at].line, text, i))
			at = (at + 1) & table->mask;
		if (!slots[at].number)
			slots[at] = (struct slot){ .text = text, .line = i, .number = ++table->next };
		ret[i] = slots[at].number;
	}
}

/* A rectangle of the two texts: lines a0 to a1 against lines b0 to b1. */
struct box {
	int32_t a0, a1, b0, b1;
};

/* Finds a point on a shortest path through the box, by searching from both ends. False when that takes too long. */
static bool find_middle(struct compare *c, const struct box *box, int32_t *ret_a, int32_t *ret_b)
{
	int32_t n = box->a1 - box->a0, m = box->b1 - box->b0, delta = n - m;
	int32_t half = (n + m + 1) / 2, offset = n + m + 1;
	int32_t *f = c->forward + offset, *r = c->backward + offset;

	f[1] = 0;
	r[1] = 0;
	for (int32_t d = 0; d <= half && d <= DIFFERENCES_MAX; d++) {
		for (int32_t k = -d; k <= d; k += 2) {
			int32_t x = k == -d || (k != d && f[k - 1] < f[k + 1]) ? f[k + 1] : f[k - 1] + 1;
			int32_t y = x - k, from = x;

			while (x < n && y < m && x >= 0 && y >= 0 && c->a[box->a0 + x] == c->b[box->b0 + y])
				x++, y++;
			f[k] = x;
			if (delta % 2 != 0 && k >= delta - (d - 1) && k <= delta + (d - 1) && from <= n &&
			    from - k <= m && x + r[delta - k] >= n) {
				*ret_a = box->a0 + from;
				*ret_b = box->b0 + from - k;
				return true;
			}
		}
		for (int32_t k = -d; k <= d; k += 2) {
			int32_t x = k == -d || (k != d && r[k - 1] < r[k + 1]) ? r[k + 1] : r[k - 1] + 1;
			int32_t y = x - k;

			while (x < n && y < m && x >= 0 && y >= 0 && c->a[box->a1 - 1 - x] == c->b[box->b1 - 1 - y])
				x++, y++;
			r[k] = x;
			if (delta % 2 == 0 && k >= delta - d && k <= delta + d && x <= n && y <= m &&
			    x + f[delta - k] >= n) {
				*ret_a = box->a1 - x;
				*ret_b = box->b1 - y;
				return true;
			}
		}
	}
	return false;
}

static void mark(bool *changed, int32_t from, int32_t to)
{
	for (int32_t i = from; i < to; i++)
		changed[i] = true;
}

/* Marks the lines that changed in the box. Each level of the recursion at least halves the differences. */
static void compare_box(struct compare *c, struct box box)
{
	for (;;) {
		int32_t a, b;

		while (box.a0 < box.a1 && box.b0 < box.b1 && c->a[box.a0] == c->b[box.b0])
			box.a0++, box.b0++;
		while (box.a0 < box.a1 && box.b0 < box.b1 && c->a[box.a1 - 1] == c->b[box.b1 - 1])
			box.a1--, box.b1--;
		if (box.a0 == box.a1 || box.b0 == box.b1 || !find_middle(c, &box, &a, &b) ||
		    (a == box.a0 && b == box.b0) || (a == box.a1 && b == box.b1)) {
			mark(c->gone, box.a0, box.a1);
			mark(c->came, box.b0, box.b1);
			return;
		}
		compare_box(c, (struct box){ box.a0, a, box.b0, b });
		box.a0 = a;
		box.b0 = b;
	}
}

static int collect_edits(const struct compare *c, size_t n_a, size_t n_b, struct cordon_edits *ret)
{
	struct cordon_edits edits = { 0 };
	size_t cap = 0, i = 0, j = 0;

	while (i < n_a || j < n_b) {
		struct cordon_edit edit = { .a = i, .b = j };

		while (i < n_a && c->gone[i])
			i++;
		while (j < n_b && c->came[j])
			j++;
		edit.n_a = i - edit.a;
		edit.n_b = j - edit.b;
		if (!edit.n_a && !edit.n_b) {
			i++, j++;
			continue;
		}
		if (edits.n == cap) {
			struct cordon_edit *more = reallocarray(edits.edit, cap = cap ? 2 * cap : 16, sizeof(*more));

			if (!more) {
				cordon_edits_done(&edits);
				return -ENOMEM;
			}
			edits.edit = more;
		}
		edits.edit[edits.n++] = edit;
	}
	*ret = edits;
	return 0;
}

int cordon_lines_diff(const struct cordon_text *a, const struct cordon_text *b, struct cordon_edits *ret_edits)
{
	size_t mask = 64, diagonals = 2 * (a->n + b->n + 2) + 1;
	autofree struct slot *slots = NULL;
	autofree uint32_t *numbers = calloc(a->n + b->n + 1, sizeof(*numbers));
	autofree bool *changed = calloc(a->n + b->n + 1, sizeof(*changed));
	autofree int32_t *furthest = calloc(2 * diagonals, sizeof(*furthest));
	struct compare c = { .a = numbers, .gone = changed, .forward = furthest };
	struct table table;

	while (mask < 2 * (a->n + b->n))
		mask *= 2;
	slots = calloc(mask, sizeof(*slots));
	if (!slots || !numbers || !changed || !furthest)
		return -ENOMEM;
	c.b = numbers + a->n;
	c.came = changed + a->n;
	c.backward = furthest + diagonals;
	table = (struct table){ .slots = slots, .mask = mask - 1 };
	crypto_shorthash_keygen(table.key);
	number_lines(&table, a, c.a);
	number_lines(&table, b, c.b);
	compare_box(&c, (struct box){ 0, (int32_t)a->n, 0, (int32_t)b->n });
	return collect_edits(&c, a->n, b->n, ret_edits);
}

static int add_lines(struct cordon_buf *buf, const struct cordon_text *text, size_t from, size_t n)
{
	/* An empty text has no bytes to point into. */
	if (n == 0)
		return 0;
	return cordon_buf_add(buf, text->bytes + text->at[from], text->at[from + n] - text->at[from]);
}

static bool same_lines(const struct cordon_text *a, size_t i, size_t n, const struct cordon_text *b, size_t j, size_t m)
{
	if (n != m)
		return false;
	for (size_t k = 0; k < n; k++)
		if (!same_line(a, i + k, b, j + k))
			return false;
	return true;
}

int cordon_lines_merge(const struct cordon_text *base, const struct cordon_text *ours, const struct cordon_text *theirs,
		       struct cordon_buf *ret_merged, bool *ret_common)
{
	autoedits struct cordon_edits host = { 0 }, view = { 0 };
	size_t h = 0, v = 0, at = 0;
	bool common = false;
	int r = cordon_lines_diff(base, ours, &host);

	if (r == 0)
		r = cordon_lines_diff(base, theirs, &view);
	while (r == 0) {
		const struct cordon_edit *a = h < host.n ? &host.edit[h] : NULL;
		const struct cordon_edit *b = v < view.n ? &view.edit[v] : NULL;
		const struct cordon_edit *first;
		const struct cordon_text *from;

		if (!a && !b)
			break;
		if (a && b && !(a->a + a->n_a < b->a || b->a + b->n_a < a->a)) {
			if (a->a != b->a || a->n_a != b->n_a || !same_lines(ours, a->b, a->n_b, theirs, b->b, b->n_b))
				return -EEXIST;
			common = true;
			v++;
			b = NULL;
		}
		first = a && (!b || a->a < b->a) ? a : b;
		from = first == a ? ours : theirs;
		r = add_lines(ret_merged, base, at, first->a - at);
		if (r == 0)
			r = add_lines(ret_merged, from, first->b, first->n_b);
		at = first->a + first->n_a;
		if (first == a)
			h++;
		else
			v++;
	}
	if (r == 0)
		r = add_lines(ret_merged, base, at, base->n - at);
	if (r == 0)
		*ret_common = common;
	return r;
}

int cordon_lines_apply(const struct cordon_text *a, const struct cordon_text *b, const struct cordon_edits *edits,
		       const bool *chosen, struct cordon_buf *ret_text)
{
	size_t at = 0;
	int r = 0;

	for (size_t i = 0; r == 0 && i < edits->n; i++) {
		const struct cordon_edit *edit = &edits->edit[i];

		if (!chosen[i])
			continue;
		r = add_lines(ret_text, a, at, edit->a - at);
		if (r == 0)
			r = add_lines(ret_text, b, edit->b, edit->n_b);
		at = edit->a + edit->n_a;
	}
	return r == 0 ? add_lines(ret_text, a, at, a->n - at) : r;
}
