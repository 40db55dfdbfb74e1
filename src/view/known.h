/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of the host's tree that apply or undo left behind: they are newer than the view, and yet the host has not changed
 * them. state/views/<id>/known lists them, each with its identity and both its times. An entry without an identity says
 * that the host did not have the path when the run ended.
 */
#ifndef CORDON_VIEW_KNOWN_H
#define CORDON_VIEW_KNOWN_H

#include "view/journal.h"

struct cordon_known {
	struct cordon_arena *arena;
	struct cordon_known_file {
		const char *path;
		struct cordon_ident ident;
	} * files; /* sorted by path */
	size_t n, cap;
};

#define autoknown CORDON_CLEANUP(cordon_known_done)

/* A list that can't be read is empty: then more counts as changed by the host. */
void cordon_known_load(int view_fd, struct cordon_known *ret_known);
void cordon_known_done(struct cordon_known *known);
/* Whether what is at a path is exactly what we left there. `known` may be NULL. */
bool cordon_known_has(const struct cordon_known *known, const char *path, const struct cordon_ident *ident);

/* Adds paths that the host does not have. */
void cordon_known_add_missing(int view_fd, const char *const *paths, size_t n);

/* Adds what the steps of a journal left: after they were taken back, every old file that the view was based on; after they
 * were carried out (`forward`), every file of which a part was applied. */
void cordon_known_add(int view_fd, const struct cordon_journal *journal, bool forward);

#endif
