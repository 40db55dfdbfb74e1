/* SPDX-License-Identifier: Apache-2.0 */
/* A digest of what a person looked at, so that nothing else is applied or undone afterwards. */
#ifndef CORDON_VIEW_SHOWN_H
#define CORDON_VIEW_SHOWN_H

#include "view/apply.h"
#include "view/journal.h"

/* Of all changes that people are shown, by the identity, size and times of both sides. */
void cordon_shown_delta(const struct cordon_view *view, const struct cordon_delta *delta,
			char ret_shown[static CORDON_SHOWN_SIZE]);
/* Of the steps that an undo takes back. */
void cordon_shown_journal(const struct cordon_apply_journal *journal, char ret_shown[static CORDON_SHOWN_SIZE]);

/* Waits until the clock of file times has passed the last change of the host, at most for a moment: from then on
 * another change to a file can be seen by its time. */
void cordon_shown_settle(const struct cordon_delta *delta);

#endif
