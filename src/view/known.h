/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the view is based on in the host's tree, as we last saw it there: at first when the run ended, later what apply
 * or undo left behind, which is newer than the view although the host has not changed it. state/views/<id>/known lists
 * files and directories, each with its identity and both its times. An entry without an identity says that the host did
 * not have the path when the run ended.
 */
#ifndef CORDON_VIEW_KNOWN_H
#define CORDON_VIEW_KNOWN_H

#include "view/internal.h"
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
void cordon_known_load(int view_fd, const struct cordon_view_devices *devices, struct cordon_known *ret_known);
void cordon_known_done(struct cordon_known *known);
/* What the list has about a path, or NULL. */
const struct cordon_ident *cordon_known_find(const struct cordon_known *known, const char *path);
/* Whether what is at a path is what the list has: a file in the same state, or the same directory whatever is in it. */
bool cordon_known_has(const struct cordon_known *known, const char *path, const struct cordon_ident *ident);

/* Notes what the host has where the view changes something, and has not changed itself: directories by their identity,
 * files by their mode, and which files it does not have. */
void cordon_known_note(int view_fd, const struct cordon_view_devices *devices, const struct cordon_delta *delta);

/* Adds what the steps of a journal left: after they were taken back, every old file that the view was based on; after
 * they were carried out (`forward`), every file of which a part was applied. */
void cordon_known_add(int view_fd, const struct cordon_apply_journal *journal, bool forward);

#endif
