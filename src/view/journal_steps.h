/* SPDX-License-Identifier: Apache-2.0 */
/* Carrying out the steps of a journal, and taking them back; internal to journal.c. */
#ifndef CORDON_VIEW_JOURNAL_STEPS_H
#define CORDON_VIEW_JOURNAL_STEPS_H

#include "view/journal.h"

/*
 * Carries out every step that is not carried out yet, or takes back every step that is. Stops at the first one that fails,
 * unless `forced`: then it goes on with the others. -ESTALE (kind conflict) means that the host changed what a step
 * expects; `err` has the first failure.
 */
int cordon_steps_run(struct cordon_journal *journal, bool forward, bool forced, struct cordon_error *err);

/* Describes what the root has at a path, without following any link; mode 0 when there is nothing. 0 or -errno. */
int cordon_steps_look(const struct cordon_journal *journal, const char *path, struct cordon_ident *ret_ident);

#endif
