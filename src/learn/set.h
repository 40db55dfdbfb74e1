/* SPDX-License-Identifier: Apache-2.0 */
/* The set behind learn.h, for the files that make it up. */
#ifndef CORDON_POLICY_LEARN_SET_H
#define CORDON_POLICY_LEARN_SET_H

#include "policy/learn_names.h"

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
	/* Of learn_temps.c. */
	const char *last_dir;
	size_t last_dir_len;
	bool last_answer;
};

/* What a path needs to be used again as it was. */
enum cordon_learn_need {
	CORDON_NEED_NOTHING,
	CORDON_NEED_PROBE, /* to be told that it is missing */
	CORDON_NEED_LOOK,  /* a directory: to be passed or looked at */
	CORDON_NEED_LIST,
	CORDON_NEED_READ,
	CORDON_NEED_WRITE,
};

void cordon_learn_sort(struct cordon_learn *learn);
enum cordon_learn_need cordon_learn_need(const struct cordon_learn_item *item);
/* The item of a path, or NULL; only when sorted. */
const struct cordon_learn_item *cordon_learn_find(const struct cordon_learn *learn, const char *path);
/* A temporary name of an atomic save that the lens will let through beside its file; it needs no grant. */
bool cordon_learn_is_save(struct cordon_learn *learn, const struct cordon_learn_item *item);
/* That, or a name with a part made by chance, which no grant of that very name would help. */
bool cordon_learn_is_passing(struct cordon_learn *learn, const struct cordon_learn_item *item, bool patterns);

#endif
