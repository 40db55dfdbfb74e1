/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of a journal: carrying them out, taking them back, writing them down; internal to journal.c. */
#ifndef CORDON_VIEW_JOURNAL_STEPS_H
#define CORDON_VIEW_JOURNAL_STEPS_H

#include "view/journal.h"

/*
 * Carries out every step that is not carried out yet, or takes back every step that is. Stops at the first one that
 * fails, unless `forced`: then it goes on with the others. -ESTALE (kind conflict) means that the host changed what a
 * step expects; `err` has the first failure.
 */
int cordon_apply_steps_run(struct cordon_apply_journal *journal, bool forward, bool forced, struct cordon_error *err);

/* Makes the copy of an empty directory that a step is going to remove, if there is none yet. 0 or -errno. */
int cordon_apply_steps_copy_dir(const struct cordon_apply_journal *journal, const struct cordon_apply_step *step);
/* Opens the directory of a path beneath the root, through no link, and finds the last name. A descriptor or -errno. */
int cordon_apply_steps_open_parent(const struct cordon_apply_journal *journal, const char *path, const char **ret_name);

/* Describes what the root has at a path, without following any link; mode 0 when there is nothing. 0 or -errno. */
int cordon_apply_steps_look(const struct cordon_apply_journal *journal, const char *path,
			    struct cordon_ident *ret_ident);

#endif
