/* SPDX-License-Identifier: Apache-2.0 */
/* What the dependencies of stories mean: cycles, what a story needs, and which stories are ready. */
#include "config/prd.h"
#include "config/suggest.h"

/* ---- cycles ---- */

enum colour { WHITE, ON_PATH, DONE };

/* A walk along the dependencies, without recursion: a PRD may be a chain of ten thousand stories. */
struct walk {
	struct cordon_prd *prd;
	unsigned char *colour;
	size_t *path; /* the stories on the way to the present one */
	size_t *next; /* for each of them the dependency that is to be looked at */
	size_t depth;
};

/* The path from the story `back` on is a cycle. */
static int add_cycle(struct walk *walk, size_t back)
{
	struct cordon_prd *prd = walk->prd;
	struct cordon_prd_cycle *cycle;
	size_t start = walk->depth;

	if (prd->n_cycles == CORDON_ERRORS_MAX)
		return 0;
	while (walk->path[start - 1] != back)
		start--;
	start--;
	if (!prd->cycles)
		prd->cycles = cordon_document_alloc(prd->doc, CORDON_ERRORS_MAX * sizeof(*prd->cycles));
	if (!prd->cycles)
		return -ENOMEM;
	cycle = &prd->cycles[prd->n_cycles];
	cycle->n = walk->depth - start;
	cycle->stories = cordon_document_alloc(prd->doc, cycle->n * sizeof(*cycle->stories));
	if (!cycle->stories)
		return -ENOMEM;
	memcpy(cycle->stories, walk->path + start, cycle->n * sizeof(*cycle->stories));
	prd->n_cycles++;
	return 0;
}

static void enter(struct walk *walk, size_t story)
{
	walk->colour[story] = ON_PATH;
	walk->path[walk->depth] = story;
	walk->next[walk->depth++] = 0;
}

static int walk_from(struct walk *walk, size_t start)
{
	int r = 0;

	enter(walk, start);
	while (r == 0 && walk->depth) {
		const struct cordon_prd_story *story = &walk->prd->stories[walk->path[walk->depth - 1]];
		size_t dep;

		if (walk->next[walk->depth - 1] == story->n_deps) {
			walk->colour[walk->path[--walk->depth]] = DONE;
			continue;
		}
		dep = story->deps[walk->next[walk->depth - 1]++];
		if (walk->colour[dep] == ON_PATH)
			r = add_cycle(walk, dep);
		else if (walk->colour[dep] == WHITE)
			enter(walk, dep);
	}
	return r;
}

int cordon_prd_find_cycles(struct cordon_prd *prd)
{
	autofree unsigned char *colour = calloc(prd->n_stories + 1, 1);
	autofree size_t *path = calloc(prd->n_stories + 1, sizeof(*path));
	autofree size_t *next = calloc(prd->n_stories + 1, sizeof(*next));
	struct walk walk = { .prd = prd, .colour = colour, .path = path, .next = next };
	int r = colour && path && next ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < prd->n_stories; i++)
		if (colour[i] == WHITE)
			r = walk_from(&walk, i);
	return r;
}

/* ---- what a story needs ---- */

int cordon_prd_mark_deps(const struct cordon_prd *prd, size_t story, bool *ret_marks)
{
	autofree size_t *todo = calloc(prd->n_stories + 1, sizeof(*todo));
	size_t n = 0;

	if (!todo)
		return -ENOMEM;
	todo[n++] = story;
	while (n) {
		const struct cordon_prd_story *now = &prd->stories[todo[--n]];

		for (size_t i = 0; i < now->n_deps; i++)
			if (!ret_marks[now->deps[i]]) {
				ret_marks[now->deps[i]] = true;
				todo[n++] = now->deps[i];
			}
	}
	return 0;
}

int cordon_prd_find(const struct cordon_prd *prd, const char *id, size_t *ret_index, struct cordon_error *err)
{
	size_t best = CORDON_SUGGEST_FAR;
	const char *near = NULL;

	for (size_t i = 0; i < prd->n_stories; i++) {
		if (cordon_streq(prd->stories[i].id, id)) {
			*ret_index = i;
			return 0;
		}
		if (cordon_suggest_closer(id, prd->stories[i].id, &best))
			near = prd->stories[i].id;
	}
	cordon_fail(err, -ENOENT, CORDON_KIND_NOT_FOUND, "%s has no story '%s'", prd->doc->name, id);
	if (near)
		cordon_error_hint(err, "did you mean %s?", near);
	return -ENOENT;
}

/* ---- ready stories ---- */

static int by_priority(const void *a, const void *b, void *data)
{
	const struct cordon_prd_story *stories = data;
	size_t i = *(const size_t *)a, k = *(const size_t *)b;
	const struct cordon_prd_story *x = &stories[i], *y = &stories[k];

	if (x->has_priority != y->has_priority)
		return x->has_priority ? -1 : 1;
	if (x->has_priority && x->priority != y->priority)
		return x->priority < y->priority ? -1 : 1;
	return i < k ? -1 : i > k;
}

size_t cordon_prd_ready(const struct cordon_prd *prd, size_t *ret_indices)
{
	size_t n = 0;

	for (size_t i = 0; i < prd->n_stories; i++) {
		const struct cordon_prd_story *story = &prd->stories[i];
		bool ready = !story->passes;

		for (size_t k = 0; ready && k < story->n_deps; k++)
			ready = prd->stories[story->deps[k]].passes;
		if (ready)
			ret_indices[n++] = i;
	}
	qsort_r(ret_indices, n, sizeof(*ret_indices), by_priority, prd->stories);
	return n;
}
