/* SPDX-License-Identifier: Apache-2.0 */
/* The set of paths of learn.h; private to src/learn. */
#ifndef CORDON_LEARN_SET_H
#define CORDON_LEARN_SET_H

#include "learn/names.h"

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
	/* Used by learn/temp_names.c. */
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

void cordon_learn_sort(struct cordon_learn *learn);
enum cordon_learn_need cordon_learn_need(const struct cordon_learn_item *item);
/* The item of a path, or NULL; only when sorted. */
const struct cordon_learn_item *cordon_learn_find(const struct cordon_learn *learn, const char *path);
/* Whether this is a temporary name of an atomic save that the lens allows beside its file, so that it needs no
 * grant. */
bool cordon_learn_is_save(struct cordon_learn *learn, const struct cordon_learn_item *item);
/* The same, or a name with a random part: a grant of exactly that name would not help. */
bool cordon_learn_is_temporary(struct cordon_learn *learn, const struct cordon_learn_item *item, bool patterns);

#endif
